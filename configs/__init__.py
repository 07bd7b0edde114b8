"""YAML presets, one folder per application; each file holds only what differs from the defaults."""
