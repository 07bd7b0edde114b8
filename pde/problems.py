"""The problems that operators are trained on; importing this needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from data.fields.geometry import Box, Geometry, Move, Sphere
from data.fields.options import short
from lab.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

    from data.fields.reader import Fields

ProblemName = Literal["navier-stokes", "darcy", "burgers-walls", "shallow-water", "own"]
DEFAULT: ProblemName = "navier-stokes"
"""The problem of commands that name none, and of runs from before there were others."""

OWN = "own"
"""The problem of a user's own file, which tells what the others have in `PROBLEMS`."""

AXES = {"rows": 1, "columns": 2}
"""Of fields (sample, row, column, ..., field)."""


@dataclass(frozen=True)
class Symmetry:
    """A map of fields that turns solutions into solutions: a move of the domain, and what fields do in it.

    The moves are those that `Geometry.symmetries` offers; the equation decides which of them it keeps.
    """

    move: Move
    odd: tuple[int, ...] = ()
    """Fields that change their sign."""
    vector: bool = False
    """Whether the two fields are components of a vector, which change places when the axes do."""
    shift: tuple[float, float] = (0.0, 0.0)
    """How far along the periodic axes a transposed or turned field is taken from, as shares of the periods:
    w(y + a, x + b), or w(a - x, b - y) after half a turn."""

    def require(self, resolution: tuple[int, int]) -> None:
        """Refuse a grid that the symmetry does not map onto itself."""
        remedy = "leave --symmetries and --average-symmetries out."
        square = self.move in ("transpose", "turn diagonally")
        if square and len(set(resolution)) > 1:
            rows, columns = resolution
            raise UserError(
                f"the symmetry {self.move!r} needs as many rows as columns, not {rows} x {columns}: {remedy}"
            )
        for share, points in zip(self.shift, resolution, strict=True):
            if share * points % 1:
                raise UserError(
                    f"the symmetry {self.move!r} shifts by {share:g} of a period, which is no whole number of {points} "
                    f"points: {remedy}"
                )

    def order(self, fields: "Tensor") -> int:
        """How many images there are, counting the field itself: 2, or the points along a periodic axis."""
        kind, _, axis = self.move.partition(" ")
        return fields.shape[AXES.get(axis, 1)] if kind == "turn" else 2

    def image(self, fields: "Tensor", steps: "Tensor", *, inverse: bool = False) -> "Tensor":
        """Each sample after a number of moves of its own, less than the order; or the way back from there."""
        kind, _, axis = self.move.partition(" ")
        if kind == "turn":
            steps = -steps if inverse else steps
            if axis == "diagonally":
                return _turned(_turned(fields, 1, steps), 2, -steps)
            return _turned(fields, AXES[axis], steps)
        image = self._moved(fields, kind, axis, inverse)
        image = image.flip(-1) if self.vector else image.clone()
        image[..., list(self.odd)] *= -1
        return image.where((steps == 1).view(-1, *[1] * (fields.ndim - 1)), fields)

    def _moved(self, fields: "Tensor", kind: str, axis: str, inverse: bool) -> "Tensor":
        both = tuple(AXES.values())
        a, b = (round(share * fields.shape[axis]) for share, axis in zip(self.shift, both, strict=True))
        if kind == "mirror":
            return fields.flip(AXES[axis])
        if kind == "half":  # is its own inverse
            return fields.flip(both).roll((a + 1, b + 1), both)
        return fields.transpose(*both).roll((a, b) if inverse else (-b, -a), both)


def _turned(fields: "Tensor", axis: int, steps: "Tensor") -> "Tensor":
    import torch

    points = torch.arange(fields.shape[axis], device=fields.device)
    source = (points - steps[:, None]) % fields.shape[axis]
    which = torch.arange(len(fields), device=fields.device)[:, None]
    return fields.transpose(1, axis)[which, source].transpose(1, axis)


@dataclass(frozen=True)
class Problem:
    """What training and evaluation need to know of a problem beyond its data.

    Attributes:
        title: how tables and figures call it.
        package: where `data.fields.generator` finds it.
        geometry: the domain of its data; a file tells its own.
        shown: the field that figures show.
        frames_in: frames that are given before the forecast begins; of a static problem, the input.
        static: whether an input has one answer, instead of frames that follow each other.
        options: the options of `python -m pde.train` that its generator has, too, there without `solver_`.
        case: the option whose values are columns of its table; none if the table has a single column.
        symmetries: every symmetry of the problem is a product of these.
        design: options of models that suit it, where they are not chosen.
    """

    name: ProblemName
    title: str
    package: str
    geometry: Geometry
    shown: str
    frames_in: int = 1
    static: bool = False
    options: tuple[str, ...] = ("resolution",)
    case: str | None = None
    symmetries: tuple[Symmetry, ...] = ()
    design: Mapping[str, Any] = field(default_factory=lambda: {"coordinates": "geometry"})

    def case_name(self, value: float | None) -> str:
        """A column of its table, as names of files and columns have it: `nu1e-5`, or the problem's own name."""
        return self.name if self.case is None or value is None else f"{self.case}{short(value)}"

    def case_title(self, value: float | None) -> str:
        """The title of such a column."""
        return self.title if self.case is None or value is None else f"{self.case} = {value:g}"


PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        Problem(
            "navier-stokes",
            "Navier-Stokes flow, periodic",
            "data.navier_stokes",
            Box(),
            shown="vorticity",
            frames_in=10,
            options=("nu", "solver_precision", "max_grid"),
            case="nu",
            # The forcing sin 2 pi (x + y) + cos 2 pi (x + y) depends on x + y alone. Vorticity is odd in a mirror, and
            # the forcing changes its sign half a period further.
            symmetries=(
                Symmetry("turn diagonally"),
                Symmetry("half turn", shift=(0.25, 0.0)),
                Symmetry("transpose", odd=(0,), shift=(0.25, 0.25)),
            ),
            design={
                "coordinates": "diagonal",
                "transport": True,
                "filter": "diagonal",
                "shear": True,
                "form": "per-frequency",
                "modes_y": 16,
            },
        ),
        Problem(
            "darcy",
            "Darcy flow between walls",
            "data.darcy",
            Box("walls", "walls"),
            shown="pressure",
            static=True,
            symmetries=(Symmetry("mirror rows"), Symmetry("mirror columns"), Symmetry("transpose")),
        ),
        Problem(
            "burgers-walls",
            "Burgers flow between walls",
            "data.burgers",
            Box("walls", "walls"),
            shown="u",
            symmetries=(  # of u, v; a velocity turns around in the mirror that it faces
                Symmetry("mirror rows", odd=(0,)),
                Symmetry("mirror columns", odd=(1,)),
                Symmetry("transpose", vector=True),
            ),
            design={"coordinates": "geometry", "transport": True, "filter": "diagonal", "parity": "odd"},
        ),
        Problem(
            "shallow-water",
            "shallow water on the sphere",
            "data.shallow_water",
            Sphere(),
            shown="vorticity",
            symmetries=(
                # In the mirror of the equator whirls turn the other way, as the Coriolis force of the other
                # hemisphere does: of geopotential, vorticity and divergence the second changes its sign.
                Symmetry("mirror rows", odd=(1,)),
                Symmetry("turn columns"),
            ),
            # Waves of the geopotential run through the flow rather than with it: carried, forecasts diverge.
            design={"coordinates": "geometry", "transport": False, "filter": "none"},
        ),
    )
}


def own_problem(fields: "Fields", frames_in: int) -> Problem:
    """The problem that a user's own file poses."""
    from data.fields.told import require_geometry, symmetry_of

    layout = fields.source.layout
    require_geometry(fields.path, layout)
    kept = (symmetry_of(word, layout, fields.path) for word in layout.symmetries)
    return Problem(
        "own",
        f"own data, {fields.path.name}",
        "",
        fields.geometry,
        fields.names[0],
        frames_in,
        fields.static,
        design={"coordinates": "geometry", "filter": "none" if any(fields.geometry.bounded) else "diagonal"},
        symmetries=tuple(Symmetry(move, odd=odd) for move, odd in kept),
    )
