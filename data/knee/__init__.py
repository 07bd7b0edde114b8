"""Synthetic knees, and simulated scans of your own images, in SKM-TEA's layout."""
