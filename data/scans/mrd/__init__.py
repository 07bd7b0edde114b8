"""ISMRMRD (MRD): raw acquisitions of Cartesian scans, sorted, whitened and without readout oversampling."""
