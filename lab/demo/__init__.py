"""The smallest application: recover a hidden Monarch matrix from examples. It has the same files as pde and mri."""
