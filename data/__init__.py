"""Data: generators and readers."""
