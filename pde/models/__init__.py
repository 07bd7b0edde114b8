"""The models of the neural operators: each entered here once. `build("mno", 1, 64, groups=5)` makes one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.fields.geometry import Box, Geometry, Line, Sphere
from lab.errors import UserError
from lab.registry import Entry, Option, Registry
from pde.models.options import (
    CARRIED,
    CELLS,
    DEPTH,
    EXPANSION,
    LATENT,
    MODES,
    MODES_Y,
    PUBLISHED,
    SHEAR,
    START,
    SURROUNDINGS,
    TRANSFORMS,
    WIDTH,
    check_fixed,
    check_mno,
)

if TYPE_CHECKING:
    from data.fields.layout import Grid
    from pde.models.parts.model import Model
    from pde.models.parts.resolution import Resolution

Variants = Mapping[str, Mapping[str, Any]]


def _as_it_is(geometry: Geometry) -> Variants:
    """The model with its defaults, where no transform is made for the boundary."""
    return {} if geometry.transforms else {"": {}}


def _with_each_start(geometry: Geometry, **options: Any) -> Variants:
    """The model from the DFT and from each transform that is made for the boundary."""
    return {f"-{start}": {"start": start, **options} for start in ("dft", *geometry.transforms)}


def _mno_variants(geometry: Geometry) -> Variants:
    if not geometry.transforms:
        return {"": {}}
    # The swap is FNO itself, but for its transforms, which learn. Harmonics need more than one matrix per axis;
    # between walls the design's, one for each, forecasts better after the same time.
    form = {"form": "grid"} if isinstance(geometry, Sphere) else {}
    return {**_with_each_start(geometry, **form), "-swap": {**form, "start": "dft", "twin": "fno"}}


def _fno_variants(geometry: Geometry) -> Variants:
    padded = {"-padded": {"padding": 0.125}} if any(geometry.bounded) else {}
    carried = {} if isinstance(geometry, Line) else {"-transport": {"transport": True}}
    return {"": {}, **padded, **carried}


@dataclass(frozen=True)
class OperatorEntry(Entry):
    """A model of this application.

    `variants` names the options with which it takes part in the table of a geometry, {suffix of the name: options};
    `sphere` says that it only works on the sphere, `lines` that it works on lines, too.
    """

    variants: Callable[[Geometry], Variants] = _as_it_is
    sphere: bool = False
    lines: bool = False

    def suits(self, geometry: Geometry) -> bool:
        """Whether the model works on such a domain."""
        if isinstance(geometry, Line):
            return self.lines
        return not self.sphere or isinstance(geometry, Sphere)


MODELS = Registry(
    "pde",
    OperatorEntry(
        "mno",
        "the Monarch Neural Operator: transforms that learn, from an exact start",
        "pde.models.mno:mno",
        options=(*TRANSFORMS, WIDTH, MODES, MODES_Y, DEPTH, EXPANSION, LATENT, CELLS, *SURROUNDINGS),
        title="MNO",
        check=check_mno,
        variants=_mno_variants,
        lines=True,
    ),
    OperatorEntry(
        "lfno",
        "its Fourier twin: the same latent operator, transforms fixed",
        "pde.models.lfno:LFNO",
        options=(START, SHEAR, WIDTH, MODES, MODES_Y, DEPTH, LATENT, CELLS, *SURROUNDINGS),
        title="latent FNO",
        check=check_fixed,
        variants=lambda geometry: _with_each_start(geometry) if geometry.transforms else {"": {}},
        lines=True,
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
            *PUBLISHED,
        ),
        title="FNO",
        check=check_fixed,
        variants=_fno_variants,
        lines=True,
    ),
    OperatorEntry(
        "ffno",
        "the factorised Fourier Neural Operator, residual after the feed-forward",
        "pde.models.ffno:FFNO",
        options=(WIDTH, MODES, DEPTH, EXPANSION, *PUBLISHED),
        title="F-FNO",
        lines=True,
    ),
    OperatorEntry(
        "sfno",
        "the spherical Fourier Neural Operator: harmonics of a sphere, weights per degree",
        "pde.models.sfno:SFNO",
        options=(WIDTH, MODES, DEPTH, *PUBLISHED),
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


def comparison(geometry: Geometry, static: bool = False) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """The rows of the table of a geometry: {name: (model, options)}; nothing is carried in a static problem."""
    return {
        f"{entry.name}{suffix}": (entry.name, options)
        for entry in MODELS.values()
        if isinstance(entry, OperatorEntry) and entry.suits(geometry)
        for suffix, options in entry.variants(geometry).items()
        if not (static and options.get("transport"))
    }


def check_geometry(name: str, options: Mapping[str, Any], geometry: Geometry) -> None:
    """Refuse a model or an option that does not suit the geometry."""
    entry, padding = MODELS[name], options.get("padding")
    if isinstance(geometry, Line):
        _check_line(entry, options)
    harmonic = options.get("start") == "sht"
    if (harmonic or getattr(entry, "sphere", False)) and not isinstance(geometry, Sphere):
        flag = "--start sht" if harmonic else f"--model {name}"
        raise UserError(
            f"{flag} only works on the sphere, such as --problem shallow-water; here is {geometry}."
        )
    diagonal = "--shear" if options.get("shear") else "--coordinates diagonal"
    if (options.get("shear") or options.get("coordinates") == "diagonal") and geometry != Box():
        raise UserError(
            f"{diagonal} works along x + y of a box that is periodic both ways; here is {geometry}."
        )
    walls = isinstance(geometry, Box) and any(geometry.bounded)
    if options.get("parity") is not None and not walls:
        raise UserError(f"--parity {options['parity']} is for fields between walls; here is {geometry}.")
    if (options.get("refine") or 1) > 1 and (not isinstance(geometry, Box) or walls):
        raise UserError(
            f"--refine {options['refine']} is for a box that is periodic both ways; here is {geometry}."
        )
    if (options.get("refine") or 1) > 1 and not options.get("transport"):
        raise UserError(f"--refine {options['refine']} is for fields that are carried: add --transport true.")
    if (options.get("refine") or 1) > 1 and options.get("filter") == "monarch":
        raise UserError("--filter monarch learns the transforms of one grid: leave --refine out.")
    if padding is not None and not any(geometry.bounded):
        raise UserError(
            f"--padding {padding:g}: the domain is periodic in both directions, there is nothing to pad."
        )
    if padding is not None and not 0 < padding < 1:
        raise UserError(f"--padding must be between 0 and 1, not {padding:g}.")


def _check_line(entry: Entry, options: Mapping[str, Any]) -> None:
    """Refuse what needs a plane."""
    if not getattr(entry, "lines", False):
        able = ", ".join(name for name, each in MODELS.items() if getattr(each, "lines", False))
        raise UserError(
            f"--model {entry.name} needs a plane, and the data lies on a line; take one of {able}."
        )
    planar = {"transport", "modes_y", "learn_y"} & {key for key, value in options.items() if value}
    if options.get("form") in ("grid", "per-frequency"):
        planar.add("form")
    planar |= {key for key in ("learn_x",) if options.get(key) in ("per-frequency", "per-point")}
    if planar:
        key = min(planar)
        shown = f"--{key.replace('_', '-')} {options[key]}".removesuffix(" True")
        raise UserError(f"{shown} needs a plane, and the data lies on a line; leave it out.")


def build(name: str, in_channels: int, grid: "Grid | Resolution", fields: int = 1, **options: Any) -> "Model":
    """The model called `name`, from (batch, x, y, in_channels) to (batch, x, y, fields).

    The channels are the fields of the frames that the model sees. `grid` is where the points lie; a number of points
    per side, or (rows, columns), stands for a periodic box, and (points, 1) for a periodic line.
    """
    from data.fields.layout import Grid
    from pde.models.parts.resolution import shown, sides

    if not isinstance(grid, Grid):
        rows, columns = sides(grid)
        grid = Grid.of(Line() if columns == 1 else Box(), rows, columns)
    chosen = MODELS.settled(name, options)
    check_geometry(name, chosen, grid.geometry)
    make = MODELS[name].load()
    harmonic = chosen.get("start") == "sht" or getattr(MODELS[name], "sphere", False)
    try:
        arguments = chosen | _of_grid(grid, fields, chosen, harmonic)
        for part_of_transport in CARRIED:
            arguments.pop(part_of_transport.name, None)
        model: Model = make(in_channels, grid.resolution, fields, **arguments)
    except (ValueError, TypeError) as error:
        raise UserError(f"{name} cannot be built on {shown(grid.resolution)} points: {error}") from error
    return model


def _of_grid(grid: "Grid", fields: int, options: Mapping[str, Any], harmonic: bool) -> dict[str, Any]:
    """Options that depend on the grid, in its terms; `harmonic` says whether the transform is that of a sphere."""
    from pde.models.parts.coordinates import Coordinates
    from pde.models.parts.latent import coarse
    from pde.models.parts.transport import Transport

    geometry, sphere = grid.geometry, isinstance(grid.geometry, Sphere)
    found: dict[str, Any] = {}
    if "padding" in options:
        found["padding"] = geometry.padding(options["padding"] or 0.0, grid.resolution)
    if harmonic:
        found["latitudes"] = geometry.latitudes
    if options.get("latent") is not None and isinstance(geometry, Line):
        found["latent"] = options["latent"], 1
    if "latent" in options and options["latent"] is None:
        # As many latitudes as the harmonics need, whatever the start, so that all starts have the same shapes.
        modes = max(options["modes"], options["modes_y"] or 0)
        found["latent"] = coarse(grid.resolution, modes, sphere=sphere)
    if "coordinates" in options:
        found["coordinates"] = Coordinates(options["coordinates"] or "plain", geometry)
        found["coordinates"].on(*grid.resolution)
    if "transport" in options:
        around: dict[str, Any] = {
            "filter": options["filter"] or "diagonal",
            "parity": options["parity"] or "even",
            "sheared": bool(options.get("shear")),
            "refine": options["refine"] or 1,
        }
        carries = options["transport"]
        found["transport"] = Transport(grid.resolution, geometry, fields, **around) if carries else None
    for yes_or_no in ("shear", "cells"):
        if yes_or_no in options:
            found[yes_or_no] = bool(options[yes_or_no])
    if "form" in options:
        usual = "per-frequency" if options["start"] == "sht" else "separable"
        found["form"] = options["form"] or usual
    return found
