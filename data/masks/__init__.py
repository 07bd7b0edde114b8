"""Sampling masks: what kinds there are, a pool of them on disk, and workers that never hang."""
