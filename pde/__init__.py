"""Neural operators for the Navier-Stokes equation: the Monarch Neural Operator and its baselines."""
