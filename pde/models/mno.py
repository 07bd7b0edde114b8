"""The Monarch Neural Operator: a neural operator whose transforms are Monarch operators that learn."""

from typing import Any, Literal

from torch import nn

from pde.models.grid import GridPlane
from pde.models.monarch_axis import MonarchAxis
from pde.models.operator import FactorisedOperator, PlainOperator, SpectralOperator
from pde.models.plane import Plane
from pde.models.transform import Axis, Start

Twin = Literal["fno", "ffno"]
Form = Literal["separable", "monarch", "grid"]


def mno(
    in_frames: int,
    resolution: int,
    *,
    twin: Twin = "fno",
    form: Form = "separable",
    start: Start = "dft",
    groups: int = 1,
    shared: bool = False,
    width: int = 20,
    modes: int = 12,
    depth: int = 4,
    expansion: int = 2,
) -> SpectralOperator:
    """The operator that equals its Fourier twin when it starts at the DFT, and then learns its transforms.

    Arguments:
        twin: the architecture, FNO's or F-FNO's.
        form: separable (one matrix for all rows, one for all columns), monarch (the same, each a Monarch matrix
            of the axis's length), grid (a matrix for each row and each kept column).
        start: where the transforms begin.
        groups: groups of channels, each with its own transforms; the grid form has one.
        shared: whether all layers use the same transforms.
        width, modes, depth, expansion: as in the twin.
    """
    if width % groups:
        raise ValueError(f"{width} channels cannot be shared out among {groups} groups.")

    def axis(signed: bool) -> Axis:
        if form == "monarch":
            return MonarchAxis(resolution, modes, signed=signed, start=start, groups=groups)
        return Axis(resolution, modes, signed=signed, start=start, learn=True, groups=groups)

    def transforms() -> Any:
        if twin == "ffno":
            return nn.ModuleList((axis(False), axis(False)))
        return (
            GridPlane(resolution, modes, start=start) if form == "grid" else Plane.of(axis(True), axis(False))
        )

    common = transforms() if shared else None
    make = transforms if common is None else lambda: common
    if twin == "ffno":
        return FactorisedOperator(in_frames, resolution, width, modes, depth, expansion, make)
    return PlainOperator(in_frames, resolution, width, modes, depth, make)


def transform_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters of the transforms of a model; none for a Fourier operator."""
    transforms = (module for module in model.modules() if isinstance(module, Axis | GridPlane))
    unique = {id(parameter): parameter for module in transforms for parameter in module.parameters()}
    return list(unique.values())
