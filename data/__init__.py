"""Data sets: generators, readers, masks, and the operators that data and models share."""
