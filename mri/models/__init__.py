"""Reconstruction methods, one a file; `registry.build` makes one from its name and options."""
