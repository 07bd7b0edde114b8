"""MRI scans: one interface for scans and their slices, SENSE, and one file or folder per format."""
