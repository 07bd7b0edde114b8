"""What the applications share to run an experiment."""
