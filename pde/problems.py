"""The problems that operators are trained on; importing this needs no torch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from data.fields.geometry import Box, Geometry, Move, Sphere
from data.fields.options import short

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

    def order(self, fields: "Tensor") -> int:
        """After how many repetitions all is as before: 2, or the points around a periodic axis."""
        kind, _, axis = self.move.partition(" ")
        return fields.shape[AXES[axis]] if kind == "turn" else 2

    def image(self, fields: "Tensor", steps: "Tensor") -> "Tensor":
        """Each sample after a number of repetitions of its own, less than the order."""
        kind, _, axis = self.move.partition(" ")
        if kind == "turn":
            return _turned(fields, AXES[axis], steps)
        image = fields.transpose(*AXES.values()) if kind == "transpose" else fields.flip(AXES[axis])
        image = image.flip(-1) if self.vector else image.clone()
        image[..., list(self.odd)] *= -1
        return image.where((steps == 1).view(-1, *[1] * (fields.ndim - 1)), fields)


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
        options: the options of `python -m pde.train` that its generator has, too.
        case: the option whose values are columns of its table; none if the table has a single column.
        symmetries: every symmetry of the problem is a product of these.
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

    def case_name(self, value: float | None) -> str:
        """A column of its table, as names of files and columns have it: `nu1e-5`, or the problem's own name."""
        return self.name if self.case is None or value is None else f"{self.case}{short(value)}"

    def case_title(self, value: float | None) -> str:
        """The title of such a column."""
        return self.title if self.case is None or value is None else f"{self.case} = {value:g}"


PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        Problem(  # its forcing leaves no mirror images
            "navier-stokes",
            "Navier-Stokes flow, periodic",
            "data.navier_stokes",
            Box(),
            shown="vorticity",
            frames_in=10,
            options=("nu", "precision", "max_grid"),
            case="nu",
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
        ),
    )
}


def own_problem(fields: "Fields", frames_in: int) -> Problem:
    """The problem that a user's own file poses."""
    from data.fields.told import require_geometry

    require_geometry(fields.path, fields.source.layout)
    title = f"own data, {fields.path.name}"
    return Problem("own", title, "", fields.geometry, fields.names[0], frames_in, fields.static)
