"""Two-dimensional Navier-Stokes data of the FNO benchmark: generator, reader, viewer."""
