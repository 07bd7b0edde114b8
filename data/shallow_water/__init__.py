"""Shallow water on the rotating sphere: generator, and torch-harmonics' solver for many samples at once."""
