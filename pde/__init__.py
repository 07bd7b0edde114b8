"""Neural operators for flows: the Monarch Neural Operator and its baselines."""
