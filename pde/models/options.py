"""Options that several models share, and what does not go together. Nothing here needs torch.

An option that depends on the problem is None by default; `pde.problems.Problem.design` says what it is then.
"""

from collections.abc import Mapping
from typing import Any, Literal

from lab.errors import UserError
from lab.registry import Option

Learn = Literal["fixed", "matrix", "monarch", "per-frequency", "per-point"]
Filter = Literal["none", "diagonal", "monarch"]
Parity = Literal["even", "odd"]

WIDTH = Option("width", int, 20, "Channels.", at_least=1)
MODES = Option("modes", int, 12, "Kept frequencies per axis.", at_least=1)
MODES_Y = Option(
    "modes_y",
    int | None,
    None,
    "Kept frequencies along y, where they are not as many as along x.",
    at_least=1,
)
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
CELLS = Option(
    "cells",
    bool | None,
    None,
    "Let the layers see what lies within the cells of the coarse grid, besides the kept frequencies; where there is a "
    "coarse grid they do when not given.",
)
START = Option(
    "start",
    Literal["dft", "dct", "dst", "sht", "random"],
    "dft",
    "Where transforms that learn begin, and the others stay; sht only works on the sphere.",
)
SHEAR = Option(
    "shear", bool | None, None, "Work in the coordinates x + y and y; what suits the problem when not given."
)
COORDINATES = Option(
    "coordinates",
    Literal["plain", "geometry", "diagonal"] | None,
    None,
    "What tells the network where a point is: x and y from 0 to 1, as published for FNO (plain), functions that fit "
    "the domain (geometry), or the phase of x + y (diagonal); what suits the problem when not given.",
)
TRANSPORT = Option(
    "transport",
    bool | None,
    None,
    "Carry the fields along the characteristics of velocities that the network gives; what suits the problem when not "
    "given.",
)
FILTER = Option(
    "filter",
    Filter | None,
    None,
    "With --transport: what the field passes before and after it is carried. Nothing, a learned multiplier per "
    "frequency (diagonal), or that between transforms that learn too, a matrix along x for each frequency of y "
    "(monarch); what suits the problem when not given.",
)
PARITY = Option(
    "parity",
    Parity | None,
    None,
    "With --transport, between walls: how fields go on beyond a wall. As in a mirror (even), or with the opposite sign "
    "(odd), which suits fields that are zero on the walls; what suits the problem when not given.",
)
REFINE = Option(
    "refine",
    int | None,
    None,
    "With --transport, on a torus: points of the field that is carried for each point of the data, along each axis; "
    "2 suits flows with finer scales than the data shows. One when not given.",
    at_least=1,
)
CARRIED = (FILTER, PARITY, REFINE)
"""Those that say how fields are carried."""
SURROUNDINGS = (COORDINATES, TRANSPORT, *CARRIED)
PUBLISHED = (COORDINATES, TRANSPORT.with_default(False), *CARRIED)
"""Those of operators that were published without transport, and have it where it is asked for."""
TRANSFORMS = (
    Option(
        "twin",
        Literal["latent", "fno", "ffno"],
        "latent",
        "The Fourier operator whose architecture it has; latent is that of lfno.",
    ),
    Option(
        "form",
        Literal["separable", "monarch", "grid", "per-frequency"] | None,
        None,
        "What learns: one matrix for all rows and one for all columns (separable), the same factorised as Monarch "
        "matrices (monarch), a matrix for each row and each kept column (grid), or a matrix along x for each "
        "frequency of y, which stays fixed (per-frequency); what suits the problem when not given.",
    ),
    START,
    Option(
        "learn_x",
        Learn | None,
        None,
        "What learns along x, whatever the form: nothing (fixed), one matrix, one Monarch matrix, a matrix per "
        "frequency of the other axis, or one per point of it.",
    ),
    Option("learn_y", Learn | None, None, "What learns along y, likewise."),
    SHEAR,
    Option("groups", int, 1, "Groups of channels with transforms of their own.", at_least=1),
    Option("shared", bool, False, "Use the same transforms in all layers."),
    Option("transform_lr", float, 0.3, "Learning rate of the transforms, relative to --lr.", at_least=0),
    Option(
        "transform_from",
        float,
        0.4,
        "Share of the training after which the transforms begin to learn.",
        at_least=0,
    ),
    Option(
        "transform_decay",
        float,
        0.0,
        "Decay of the transforms towards their start per step, relative to their learning rate.",
        at_least=0,
    ),
)


def designed(options: Mapping[str, Any], design: Mapping[str, Any]) -> dict[str, Any]:
    """Options with the problem's design where they were left open and the design goes with those that were chosen."""
    fitting = dict(design)
    if options.get("modes") != MODES.default:
        fitting.pop("modes_y", None)  # is made for the usual number along x
    if options.get("groups", 1) > 1:
        fitting["form"] = "separable"  # a matrix per frequency takes one group of channels
    if options.get("twin", "latent") == "latent":  # the others have no coarse grid
        fitting["cells"] = True
    if options.get("twin") == "ffno":  # goes axis by axis, and has no plane to design
        fitting |= {"form": "separable", "shear": False, "modes_y": None}
    return {**options, **{key: value for key, value in fitting.items() if options.get(key, "") is None}}


def check_mno(options: Mapping[str, Any]) -> None:
    """Refuse options of mno that do not go together."""
    twin, form = options["twin"], options["form"]
    if options["expansion"] != EXPANSION.default and twin != "ffno":
        raise UserError("--expansion belongs to the feed-forward of F-FNO: add --twin ffno.")
    if options["latent"] is not None and twin != "latent":
        raise UserError(f"--latent belongs to the twin latent: leave --twin {twin} out.")
    if options["cells"] and twin != "latent":
        raise UserError(f"--cells are those of the coarse grid of the twin latent: leave --twin {twin} out.")
    if twin == "ffno" and (form in ("grid", "per-frequency") or options["shear"]):
        raise UserError(
            "--twin ffno goes axis by axis; --form grid, --form per-frequency and --shear take whole planes: "
            "leave --twin ffno out."
        )
    if form in ("grid", "per-frequency") and options["groups"] > 1:
        raise UserError(f"--form {form} has one group of channels: leave --groups out.")
    if options["start"] == "sht" and (form or "grid") not in ("grid", "per-frequency"):
        raise UserError("--start sht has a matrix for each order: add --form grid or --form per-frequency.")
    if not 0 <= options["transform_from"] <= 1:
        raise UserError(
            f"--transform-from is a share of the training, 0 to 1, not {options['transform_from']}."
        )


def check_fixed(options: Mapping[str, Any]) -> None:
    """Refuse options of operators with fixed transforms."""
    if options["start"] == "random":
        raise UserError("--start random is for transforms that learn: take --model mno.")
