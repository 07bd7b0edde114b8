"""Bridges to libraries that monarch_core does not need: import the one you use."""
