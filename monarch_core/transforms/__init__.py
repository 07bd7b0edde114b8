"""Fast transforms in closed form: one per axis, several axes, grids and the sphere."""
