"""fastMRI, multicoil: its files through the same slice interface, with ESPIRiT maps kept on disk."""
