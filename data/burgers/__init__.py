"""Viscous Burgers flow in a box with walls: generator and solver."""
