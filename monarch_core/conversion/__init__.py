"""Dense models to Monarch and back: which layers, how, with what loss, and how the result is stored."""
