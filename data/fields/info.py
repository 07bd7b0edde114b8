"""What is understood of a file of fields, in a few lines and a table."""

import numpy as np

from data.fields.options import InfoConfig
from data.fields.reader import Fields, open_fields
from data.fields.told import Retold
from lab.console import say
from lab.table import Column, Table

LOOKED_AT = 20
"""Samples, spread over the file, that the table is made from: of a large file not all."""


def info(config: InfoConfig) -> Table:
    """Print the summary of a file; returns the table of its fields."""
    fields = open_fields(config.file, told=config)
    say(summary(fields))
    table = spread(fields)
    table.print()
    return table


def summary(fields: Fields) -> str:
    """Samples, frames, fields, grid, geometry and times, as text."""
    source, layout, times = fields.source, fields.source.layout, fields.times
    kind = type(source.source if isinstance(source, Retold) else source).__name__
    rows, columns = fields.grid.resolution
    unsaid = f", not said by the file for {' and '.join(layout.unsaid)}" if layout.unsaid else ""
    lines = [
        f"{fields.path.name}: {fields.problem}, read as {kind}",
        f"  samples   {len(fields)}",
        f"  kind      {'a map from input to answer' if fields.static else 'trajectories'}",
        f"  fields    {', '.join(fields.names)}",
        *([f"  inputs    {', '.join(fields.inputs)}"] if fields.inputs else []),
        *([f"  constants {', '.join(fields.constants)}"] if fields.constants else []),
        f"  grid      {f'{rows} x {columns}' if 'y' in fields.geometry.axes else f'{rows} points on a line'}",
        f"  geometry  {fields.geometry}{unsaid}",
    ]
    if not fields.static:
        unit = f" {fields.units['time']}" if "time" in fields.units else ""
        lines.append(f"  frames    {fields.frames}, t = {float(times[0]):g} to {float(times[-1]):g}{unit}")
    if layout.symmetries:
        lines.append(f"  keeps     {', '.join(layout.symmetries)}")
    if fields.parameters:
        given = ", ".join(f"{key} = {value}" for key, value in fields.parameters.items())
        lines.append(f"  given     {given}")
    return "\n".join(lines)


def spread(fields: Fields) -> Table:
    """Mean, standard deviation and extremes of each field, of some samples."""
    chosen = sorted(set(np.linspace(0, len(fields) - 1, LOOKED_AT).round().astype(int).tolist()))
    columns = [Column("field"), *([Column("unit")] if fields.units else [])]
    columns += [Column(key, digits=4) for key in ("mean", "std", "min", "max")]
    table = Table(columns)
    some = np.stack([fields[i].double().flatten(0, 2).numpy() for i in chosen])
    groups = [(fields.names, some)]
    if fields.inputs:
        given = [fields.one(i).load_inputs()[0].double().flatten(0, 1).numpy() for i in chosen]
        groups.insert(0, (tuple(f"{name} (input)" for name in fields.inputs), np.stack(given)))
    if fields.constants:
        kept = [fields.one(i).load_constants()[0].double().flatten(0, 1).numpy() for i in chosen]
        groups.append((tuple(f"{name} (constant)" for name in fields.constants), np.stack(kept)))
    for names, values in groups:
        for name, each in zip(names, np.moveaxis(values, -1, 0), strict=True):
            numbers = {key: float(getattr(each, key)()) for key in ("mean", "std", "min", "max")}
            unit = fields.units.get(name.removesuffix(" (input)").removesuffix(" (constant)"))
            table.rows.append({"field": name, "unit": unit, **numbers})
    return table
