"""fastMRI, multicoil: its files as scans, with ESPIRiT maps kept on disk."""
