"""The Monarch Neural Operator: a neural operator whose transforms are Monarch operators that learn."""

from functools import partial
from typing import Any, Literal

from torch import nn

from pde.models.grid import GridPlane
from pde.models.latent import LatentOperator, coarse
from pde.models.legendre import Latitudes
from pde.models.monarch_axis import MonarchAxis
from pde.models.operator import FactorisedOperator, PlainOperator, SpectralOperator
from pde.models.plane import Plane
from pde.models.resolution import Resolution, sides
from pde.models.transform import Axis, Start

Twin = Literal["latent", "fno", "ffno"]
Form = Literal["separable", "monarch", "grid"]


def mno(
    in_channels: int,
    resolution: Resolution,
    fields: int = 1,
    *,
    twin: Twin | None = None,
    form: Form = "separable",
    start: Start = "dft",
    groups: int = 1,
    shared: bool = False,
    width: int = 20,
    modes: int = 12,
    depth: int = 4,
    expansion: int = 2,
    latent: Resolution | None = None,
    latitudes: Latitudes = "legendre-gauss",
) -> SpectralOperator:
    """The operator that equals its Fourier twin when it starts at the DFT, and then learns its transforms.

    Arguments:
        twin: the architecture: that of layers on a coarse grid of their own (latent, the default), FNO's or F-FNO's.
        form: separable (one matrix for all rows, one for all columns), monarch (the same, each a Monarch matrix
            of the axis's length), grid (a matrix for each row and each kept column).
        start: where the transforms begin.
        groups: groups of channels, each with its own transforms; the grid form has one.
        shared: whether all layers use the same transforms.
        width, modes, depth, expansion: as in the twin.
        latent: points of the coarse grid; half of the fine one's by default.
        latitudes: the grid of a sphere, for the start sht, which is of the grid form.
    """
    twin = twin or "latent"
    if width % groups:
        raise ValueError(f"{width} channels cannot be shared out among {groups} groups.")
    if form == "grid" and (groups > 1 or twin == "ffno"):
        raise ValueError("the grid form is of a plane and has one group of channels.")

    def axis(n: int, signed: bool, out: int | None = None, groups: int = groups) -> Axis:
        if form == "monarch":
            return MonarchAxis(n, modes, signed=signed, start=start, groups=groups, out=out)
        return Axis(n, modes, signed=signed, start=start, learn=True, groups=groups, out=out)

    def plane(grid: Resolution, out: Resolution, groups: int = 1) -> Plane | GridPlane:
        if form == "grid":
            return GridPlane(grid, modes, start=start, out=out, latitudes=latitudes)
        (rows, columns), (below, beside) = sides(grid), sides(out)
        return Plane.of(axis(rows, True, below, groups), axis(columns, False, beside, groups))

    if twin == "latent":
        return LatentOperator(
            in_channels,
            resolution,
            width,
            modes,
            depth,
            latent or coarse(sides(resolution), modes, sphere=start == "sht"),
            plane,
            layer_plane=partial(plane, groups=groups),
            shared=shared,
            fields=fields,
        )

    def transforms() -> Any:
        rows, columns = sides(resolution)
        if twin == "ffno":
            return nn.ModuleList((axis(rows, False), axis(columns, False)))
        return plane(resolution, resolution, groups)

    common = transforms() if shared else None
    make = transforms if common is None else lambda: common
    if twin == "ffno":
        return FactorisedOperator(
            in_channels, resolution, width, modes, depth, expansion, make, fields=fields
        )
    return PlainOperator(in_channels, resolution, width, modes, depth, make, fields=fields)


def transform_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters of the transforms of a model; none for a Fourier operator."""
    transforms = (module for module in model.modules() if isinstance(module, Axis | GridPlane))
    unique = {id(parameter): parameter for module in transforms for parameter in module.parameters()}
    return list(unique.values())
