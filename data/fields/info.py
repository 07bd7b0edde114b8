"""What is understood of a file of fields, in a few lines and a table."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

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
    # Sample by sample, each of which may be large.
    groups = [(fields.names, _spread(fields[i] for i in chosen))]
    if fields.inputs:
        given = tuple(f"{name} (input)" for name in fields.inputs)
        groups.insert(0, (given, _spread(fields.one(i).load_inputs() for i in chosen)))
    if fields.constants:
        kept = tuple(f"{name} (constant)" for name in fields.constants)
        groups.append((kept, _spread(fields.one(i).load_constants() for i in chosen)))
    for names, found in groups:
        for place, name in enumerate(names):
            numbers = {key: float(values[place]) for key, values in found.items()}
            unit = fields.units.get(name.removesuffix(" (input)").removesuffix(" (constant)"))
            table.rows.append({"field": name, "unit": unit, **numbers})
    return table


def _spread(samples: Iterable[Tensor]) -> dict[str, Tensor]:
    """Mean, standard deviation and extremes of each field of samples (..., field), all of the same size."""
    lines = (sample.double().flatten(0, -2) for sample in samples)
    each = [(x.mean(0), x.var(0, correction=0), x.amin(0), x.amax(0)) for x in lines]
    means, variances, low, high = (torch.stack(parts) for parts in zip(*each, strict=True))
    mean = means.mean(0)
    std = (variances + (means - mean).square()).mean(0).sqrt()
    return {"mean": mean, "std": std, "min": low.amin(0), "max": high.amax(0)}
