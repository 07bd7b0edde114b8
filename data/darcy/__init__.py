"""Darcy flow on the unit square with zero pressure on the walls: generator and solver."""
