"""Language models: trained dense, trained Monarch, from Monarch to dense, and from dense to Monarch."""
