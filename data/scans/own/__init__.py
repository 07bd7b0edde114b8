"""Scans of one's own: k-space with named axes in BART, MATLAB and NumPy files, and ISMRMRD acquisitions."""
