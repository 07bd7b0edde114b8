"""The Monarch Neural Operator: a neural operator whose transforms are Monarch operators that learn."""

from collections.abc import Sequence
from typing import Any, Literal

from monarch_core import AxisTransform, PlaneTransform
from monarch_core.transforms.starts import Latitudes
from monarch_core.transforms.tables import Learn
from pde.models.parts.factorised import FactorisedOperator
from pde.models.parts.latent import LatentOperator, coarse
from pde.models.parts.plain import PlainOperator
from pde.models.parts.resolution import Resolution, sides
from pde.models.parts.spectral import SpectralOperator

Twin = Literal["latent", "fno", "ffno"]
Form = Literal["separable", "monarch", "grid"]

FORMS: dict[str, tuple[Learn, Learn]] = {
    "separable": ("matrix", "matrix"),
    "monarch": ("monarch", "monarch"),
    "grid": ("per-frequency", "per-point"),
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
    modes: int | Sequence[int] = 12,
    depth: int = 4,
    expansion: int = 2,
    latent: Resolution | None = None,
    latitudes: Latitudes = "legendre-gauss",
    transform_lr: float = 1.0,
    transform_decay: float = 0.0,
) -> SpectralOperator:
    """The operator that equals its Fourier twin when it starts at the DFT, and then learns its transforms.

    Arguments:
        twin: the architecture: that of layers on a coarse grid of their own (latent, the default), FNO's or F-FNO's.
        form: separable (one matrix for all rows, one for all columns), monarch (the same, each a Monarch matrix
            of the axis's length), grid (a matrix for each row and each kept column).
        learn_x, learn_y: instead of what the form says, what learns along x and along y: fixed, matrix, monarch,
            per-frequency (a matrix for each frequency of the other axis), per-point. An axis along which the problem
            is symmetric is best fixed.
        shear: work in the coordinates x + y and y of a square torus.
        start: where the transforms begin.
        groups: groups of channels, each with its own transforms; one where an axis has a matrix per line.
        shared: whether all layers use the same transforms.
        width, modes, depth, expansion: as in the twin; modes may be a number for x and one for y.
        latent: points of the coarse grid; half of the fine one's by default.
        latitudes: the grid of a sphere, for the start sht, which needs the grid form.
        transform_lr, transform_decay: how the transforms learn; see `Model`.
    """
    fine = sides(resolution)
    operator: SpectralOperator
    along_x, along_y = learn_x or FORMS[form][0], learn_y or FORMS[form][1]
    if width % groups:
        raise ValueError(f"{width} channels cannot be shared out among {groups} groups.")
    if start == "sht" and along_x not in ("fixed", "per-frequency"):
        raise ValueError(
            "the spherical harmonic transform has a matrix for each order; it needs the grid form."
        )

    def plane(
        grid: tuple[int, int], out: tuple[int, int], groups: int, shear: Sequence[bool]
    ) -> PlaneTransform:
        return PlaneTransform(
            grid,
            modes,
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
        if not isinstance(modes, int):
            raise ValueError("F-FNO keeps as many modes along x as along y; give one number.")
        kept = modes
        if shear:
            raise ValueError(
                "sheared coordinates belong to a transform of the plane; F-FNO goes axis by axis."
            )

        def axes() -> tuple[AxisTransform, AxisTransform]:
            x, y = (
                AxisTransform(n, kept, start=start, learn=learned, groups=groups)
                for n, learned in zip(fine, (along_x, along_y), strict=True)
            )
            return x, y

        make = once_if_shared(axes)
        operator = FactorisedOperator(
            in_channels, resolution, width, modes, depth, expansion, make, fields=fields
        )
    elif twin == "fno":
        make = once_if_shared(lambda: plane(fine, fine, groups, (shear, shear)))
        operator = PlainOperator(in_channels, resolution, width, depth, make, fields=fields)
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
            fields=fields,
        )
    operator.transform_lr, operator.transform_decay = transform_lr, transform_decay
    return operator
