"""The models of the neural operators: each entered here once. `build("mno", 1, 64, groups=5)` makes one."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from data.fields.geometry import Box, Geometry, Sphere
from lab.errors import UserError
from lab.registry import Entry, Option, Registry

if TYPE_CHECKING:
    from data.fields.layout import Grid
    from pde.models.parts.model import Model
    from pde.models.parts.resolution import Resolution

Variants = Mapping[str, Mapping[str, Any]]
Learn = Literal["fixed", "matrix", "monarch", "per-frequency", "per-point"]


def _as_it_is(geometry: Geometry) -> Variants:
    """The model with its defaults, where no transform is made for the boundary."""
    return {} if geometry.transforms else {"": {}}


def _with_each_start(geometry: Geometry, **options: Any) -> Variants:
    """The model from the DFT and from each transform that is made for the boundary."""
    return {f"-{start}": {"start": start, **options} for start in ("dft", *geometry.transforms)}


def _mno_variants(geometry: Geometry) -> Variants:
    if not geometry.transforms:
        return {"": {}}
    # The swap is FNO itself, but for its transforms, which learn.
    swap = {"form": "grid", "start": "dft", "twin": "fno"}
    return {**_with_each_start(geometry, form="grid"), "-swap": swap}


def _fno_variants(geometry: Geometry) -> Variants:
    return {"": {}, "-padded": {"padding": 0.125}} if any(geometry.bounded) else {"": {}}


@dataclass(frozen=True)
class OperatorEntry(Entry):
    """A model of this application.

    `variants` names the options with which it takes part in the table of a geometry, {suffix of the name: options};
    `sphere` says that it only works on the sphere.
    """

    variants: Callable[[Geometry], Variants] = _as_it_is
    sphere: bool = False


def _check_mno(options: Mapping[str, Any]) -> None:
    twin, form = options["twin"], options["form"]
    if options["expansion"] != EXPANSION.default and twin != "ffno":
        raise UserError("--expansion belongs to the feed-forward of F-FNO: add --twin ffno.")
    if options["latent"] is not None and twin != "latent":
        raise UserError(f"--latent belongs to the twin latent: leave --twin {twin} out.")
    if form == "grid" and twin == "ffno":
        raise UserError("--form grid transforms planes, and F-FNO goes axis by axis: leave --twin ffno out.")
    if form == "grid" and options["groups"] > 1:
        raise UserError("--form grid has one group of channels: leave --groups out.")
    if options["start"] == "sht" and form != "grid" and options["learn_x"] not in ("fixed", "per-frequency"):
        raise UserError("--start sht has a matrix for each order: add --form grid.")


def _check_fixed(options: Mapping[str, Any]) -> None:
    if options["start"] == "random":
        raise UserError("--start random is for transforms that learn: take --model mno.")


WIDTH = Option("width", int, 20, "Channels.", at_least=1)
MODES = Option("modes", int, 12, "Kept frequencies per axis.", at_least=1)
DEPTH = Option("depth", int, 4, "Spectral layers.", at_least=1)
EXPANSION = Option(
    "expansion", int, 2, "Width of the feed-forward's hidden layer over that of the layer.", at_least=1
)
LATENT = Option(
    "latent",
    int | None,
    None,
    "Points per side of the coarse grid that the layers work on; half of the fine grid's when not given.",
    at_least=1,
)
START = Option(
    "start",
    Literal["dft", "dct", "dst", "sht", "random"],
    "dft",
    "Where transforms that learn begin, and the others stay; sht only works on the sphere.",
)
TRANSFORMS = (
    Option(
        "twin",
        Literal["latent", "fno", "ffno"],
        "latent",
        "The Fourier operator whose architecture it has; latent is that of lfno.",
    ),
    Option(
        "form",
        Literal["separable", "monarch", "grid"],
        "separable",
        "One matrix for all rows and one for all columns (separable), the same factorised as Monarch matrices "
        "(monarch), or a matrix for each row and each kept column (grid).",
    ),
    Option(
        "learn_x",
        Learn | None,
        None,
        "What learns along x, whatever the form: nothing (fixed), one matrix, one "
        "Monarch matrix, a matrix per frequency of the other axis, or one per point of it.",
    ),
    Option("learn_y", Learn | None, None, "What learns along y, likewise."),
    Option("shear", bool, False, "Work in the coordinates x + y and y of a square torus."),
    Option("groups", int, 1, "Groups of channels with transforms of their own.", at_least=1),
    Option("shared", bool, False, "Use the same transforms in all layers."),
    Option("transform_lr", float, 1.0, "Learning rate of the transforms, relative to --lr.", at_least=0),
    Option(
        "transform_decay",
        float,
        0.0,
        "Decay of the transforms towards their start per step, relative to their learning rate.",
        at_least=0,
    ),
)

MODELS = Registry(
    "pde",
    OperatorEntry(
        "mno",
        "the Monarch Neural Operator: transforms that learn, from an exact start",
        "pde.models.mno:mno",
        options=(*TRANSFORMS[:2], START, *TRANSFORMS[2:], WIDTH, MODES, DEPTH, EXPANSION, LATENT),
        title="MNO",
        check=_check_mno,
        variants=_mno_variants,
    ),
    OperatorEntry(
        "lfno",
        "its Fourier twin: the same latent operator, transforms fixed",
        "pde.models.lfno:LFNO",
        options=(START, WIDTH, MODES, DEPTH, LATENT),
        title="latent FNO",
        check=_check_fixed,
        variants=lambda geometry: _with_each_start(geometry) if geometry.transforms else {"": {}},
    ),
    OperatorEntry(
        "fno",
        "the Fourier Neural Operator",
        "pde.models.fno:FNO",
        options=(
            START,
            WIDTH,
            MODES,
            DEPTH,
            Option("padding", float | None, None, "Zeros beyond walls or poles, as a fraction of the grid."),
            Option(
                "batch_norm", bool, False, "Batch norm after each layer, as in the published parameter count."
            ),
        ),
        title="FNO",
        check=_check_fixed,
        variants=_fno_variants,
    ),
    OperatorEntry(
        "ffno",
        "the factorised Fourier Neural Operator, residual after the feed-forward",
        "pde.models.ffno:FFNO",
        options=(WIDTH, MODES, DEPTH, EXPANSION),
        title="F-FNO",
    ),
    OperatorEntry(
        "sfno",
        "the spherical Fourier Neural Operator: harmonics of a sphere, weights per degree",
        "pde.models.sfno:SFNO",
        options=(WIDTH, MODES, DEPTH),
        title="SFNO",
        variants=lambda geometry: {"": {}},
        sphere=True,
    ),
    OperatorEntry("unet", "the U-Net of Turbulent-Flow-Net", "pde.models.unet:UNet", title="U-Net"),
    OperatorEntry(
        "tfnet",
        "TF-Net: the flow split in three by learnable filters",
        "pde.models.tfnet:TFNet",
        title="TF-Net",
    ),
    OperatorEntry(
        "resnet",
        "18 convolutions with residuals",
        "pde.models.resnet:ResNet",
        options=(WIDTH.with_default(43),),
        title="ResNet",
    ),
)


def comparison(geometry: Geometry) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """The rows of the table of a geometry: {name: (model, options)}."""
    return {
        f"{entry.name}{suffix}": (entry.name, options)
        for entry in MODELS.values()
        if isinstance(entry, OperatorEntry) and not (entry.sphere and not isinstance(geometry, Sphere))
        for suffix, options in entry.variants(geometry).items()
    }


def check_geometry(name: str, options: Mapping[str, Any], geometry: Geometry) -> None:
    """Refuse a model or an option that does not suit the geometry."""
    entry, padding = MODELS[name], options.get("padding")
    harmonic = options.get("start") == "sht"
    if (harmonic or getattr(entry, "sphere", False)) and not isinstance(geometry, Sphere):
        flag = "--start sht" if harmonic else f"--model {name}"
        raise UserError(
            f"{flag} only works on the sphere, such as --problem shallow-water; here is {geometry}."
        )
    if padding is not None and not any(geometry.bounded):
        raise UserError(
            f"--padding {padding:g}: the domain is periodic in both directions, there is nothing to pad."
        )
    if padding is not None and not 0 < padding < 1:
        raise UserError(f"--padding must be between 0 and 1, not {padding:g}.")


def build(name: str, in_channels: int, grid: "Grid | Resolution", fields: int = 1, **options: Any) -> "Model":
    """The model called `name`, from (batch, x, y, in_channels) to (batch, x, y, fields).

    The channels are the fields of the frames that the model sees. `grid` is where the points lie; a number of points
    per side, or (rows, columns), stands for a periodic box.
    """
    from data.fields.layout import Grid
    from pde.models.parts.resolution import shown, sides

    if not isinstance(grid, Grid):
        grid = Grid.of(Box(), *sides(grid))
    chosen = MODELS.settled(name, options)
    check_geometry(name, chosen, grid.geometry)
    make = MODELS[name].load()
    try:
        model: Model = make(in_channels, grid.resolution, fields, **chosen | _of_grid(grid, make, chosen))
    except (ValueError, TypeError) as error:
        raise UserError(f"{name} cannot be built on {shown(grid.resolution)} points: {error}") from error
    return model


def _of_grid(grid: "Grid", make: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that depend on the grid, in its terms."""
    from pde.models.parts.latent import coarse

    known, found = inspect.signature(make).parameters, dict[str, Any]()
    if "padding" in known:
        found["padding"] = grid.geometry.padding(options["padding"] or 0.0, grid.resolution)
    if "latitudes" in known and grid.geometry.latitudes is not None:
        found["latitudes"] = grid.geometry.latitudes
    if "latent" in known and options["latent"] is None:
        # As many latitudes as the harmonics need, whatever the start, so that all starts have the same shapes.
        sphere = isinstance(grid.geometry, Sphere)
        found["latent"] = coarse(grid.resolution, options["modes"], sphere=sphere)
    return found
