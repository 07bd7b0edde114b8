"""The Monarch Neural Operator: a neural operator whose transforms are Monarch operators that learn."""

from collections.abc import Sequence
from typing import Any, Literal

from monarch_core import AxisTransform, PlaneTransform
from monarch_core.transforms.starts import Latitudes
from monarch_core.transforms.tables import Learn
from pde.models.parts.coordinates import Coordinates
from pde.models.parts.factorised import FactorisedOperator, along_axes
from pde.models.parts.latent import LatentOperator, coarse
from pde.models.parts.plain import PlainOperator
from pde.models.parts.resolution import Resolution, sides
from pde.models.parts.spectral import SpectralOperator
from pde.models.parts.transport import Transport

Twin = Literal["latent", "fno", "ffno"]
Form = Literal["separable", "monarch", "grid", "per-frequency"]

FORMS: dict[str, tuple[Learn, Learn]] = {
    "separable": ("matrix", "matrix"),
    "monarch": ("monarch", "monarch"),
    "grid": ("per-frequency", "per-point"),
    "per-frequency": ("per-frequency", "fixed"),
}
"""What learns along x and along y."""


def mno(
    in_channels: int,
    resolution: Resolution,
    fields: int = 1,
    *,
    twin: Twin = "latent",
    form: Form = "separable",
    learn_x: Learn | None = None,
    learn_y: Learn | None = None,
    shear: bool = False,
    start: str = "dft",
    groups: int = 1,
    shared: bool = False,
    width: int = 20,
    modes: int = 12,
    modes_y: int | None = None,
    depth: int = 4,
    expansion: int = 2,
    latent: Resolution | None = None,
    cells: bool = False,
    latitudes: Latitudes = "legendre-gauss",
    transform_lr: float = 1.0,
    transform_decay: float = 0.0,
    transform_from: float = 0.0,
    coordinates: Coordinates | None = None,
    transport: Transport | None = None,
) -> SpectralOperator:
    """The operator that equals its Fourier twin when it starts at the DFT, and then learns its transforms.

    Arguments:
        twin: the architecture: that of layers on a coarse grid of their own (latent, the default), FNO's or F-FNO's.
        form: separable (one matrix for all rows, one for all columns), monarch (the same, each a Monarch matrix
            of the axis's length), grid (a matrix for each row and each kept column), per-frequency (a matrix along x
            for each frequency of y, which stays fixed: y is the axis along which the problem is symmetric).
        learn_x, learn_y: instead of what the form says, what learns along x and along y: fixed, matrix, monarch,
            per-frequency (a matrix for each frequency of the other axis), per-point. An axis along which the problem
            is symmetric is best fixed.
        shear: work in the coordinates x + y and y of a square torus.
        start: where the transforms begin.
        groups: groups of channels, each with its own transforms; one where an axis has a matrix per line.
        shared: whether all layers use the same transforms.
        width, modes, depth, expansion: as in the twin; modes_y: modes along y, where they are other than those along x.
        latent: points of the coarse grid; half of the fine one's by default.
        cells: in the twin latent, let the layers see what lies within the cells of the coarse grid.
        latitudes: the grid of a sphere, for the start sht, which needs the grid form.
        transform_lr, transform_decay, transform_from: how the transforms learn; see `Model`.
        coordinates, transport: see `SpectralOperator`.
    """
    fine, kept = sides(resolution), (modes, modes_y or modes)
    surroundings: dict[str, Any] = {"fields": fields, "coordinates": coordinates, "transport": transport}
    operator: SpectralOperator
    along_x, along_y = learn_x or FORMS[form][0], learn_y or FORMS[form][1]
    if width % groups:
        raise ValueError(f"{width} channels cannot be shared out among {groups} groups.")
    if start == "sht" and along_x not in ("fixed", "per-frequency"):
        raise ValueError(
            "the spherical harmonic transform has a matrix for each order; it needs the grid form."
        )
    if start == "sht" and along_y == "per-frequency":
        raise ValueError(
            "the spherical harmonic transform begins along y, the longitudes, and learning y per frequency of x begins "
            "along x; let y learn in another way."
        )

    def plane(
        grid: tuple[int, int], out: tuple[int, int], groups: int, shear: Sequence[bool]
    ) -> PlaneTransform:
        return PlaneTransform(
            grid,
            kept,
            out=out,
            start=start,
            learn=(along_x, along_y),
            groups=groups,
            shear=shear,
            latitudes=latitudes,
        )

    def once_if_shared(make: Any) -> Any:
        common = make() if shared else None
        return (lambda: common) if shared else make

    if twin == "ffno":
        if modes_y not in (None, modes):
            raise ValueError("F-FNO keeps as many modes along x as along y: leave modes_y out.")
        if shear:
            raise ValueError(
                "sheared coordinates belong to a transform of the plane; F-FNO goes axis by axis."
            )

        def axis(which: int, points: int) -> AxisTransform:
            learned = (along_x, along_y)[which]
            return AxisTransform(points, modes, start=start, learn=learned, groups=groups)

        make = once_if_shared(lambda: along_axes(axis, fine))
        operator = FactorisedOperator(
            in_channels, resolution, width, modes, depth, expansion, make, **surroundings
        )
    elif twin == "fno":
        make = once_if_shared(lambda: plane(fine, fine, groups, (shear, shear)))
        operator = PlainOperator(in_channels, resolution, width, depth, make, **surroundings)
    else:
        within = sides(latent or coarse(fine, modes, sphere=start == "sht"))
        operator = LatentOperator(
            in_channels,
            resolution,
            width,
            depth,
            within,
            lambda: plane(fine, within, 1, (shear, False)),
            once_if_shared(lambda: plane(within, within, groups, (False, False))),
            lambda: plane(within, fine, 1, (False, shear)),
            cells=cells,
            **surroundings,
        )
    operator.transform_lr, operator.transform_decay = transform_lr, transform_decay
    operator.transform_from = transform_from
    return operator
