"""The problems that operators are trained on; nothing here needs torch."""

from dataclasses import dataclass
from typing import Any, Literal

NAVIER_STOKES = ("mno", "lfno", "fno", "ffno", "unet", "tfnet", "resnet")
"""The models of the table of the periodic flow."""

ProblemName = Literal["navier-stokes", "darcy", "burgers-walls", "shallow-water"]


@dataclass(frozen=True)
class Problem:
    """What training and evaluation need to know of a problem beyond its data."""

    name: ProblemName
    title: str
    """How tables and figures call it."""
    frames_in: int
    """Frames that are given before the forecast begins; of a static problem, the input."""
    package: str
    """The package under data/ that makes it."""
    static: bool = False
    """Whether an input has one answer, instead of frames that follow each other."""
    walls: tuple[bool, bool] = (False, False)
    """The axes, rows and columns, along which fields are not periodic."""
    sphere: bool = False
    """Rows are latitudes, columns longitudes."""
    transforms: tuple[str, ...] = ()
    """The transforms made for its boundary, the most fitting first."""
    shown: int = 0
    """The field that figures show."""

    def padding(self, fraction: float, resolution: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns to pad with: a fraction of those that are not periodic."""
        rows, columns = (
            round(fraction * n) if wall else 0 for n, wall in zip(resolution, self.walls, strict=True)
        )
        return rows, columns

    def comparison(self) -> dict[str, dict[str, Any]]:
        """The models of its table by name, each as options of `python -m pde.train`."""
        if not self.transforms:
            return {name: {"model": name} for name in NAVIER_STOKES}
        models: dict[str, dict[str, Any]] = {
            "fno": {"model": "fno"},
            "fno-padded": {"model": "fno", "padding": 0.125},
        }
        if self.sphere:
            models["sfno"] = {"model": "sfno"}
        starts = ("dft", *self.transforms)
        models |= {f"lfno-{name}": {"model": "lfno", "start": name} for name in starts}
        models |= {f"mno-{name}": {"model": "mno", "form": "grid", "start": name} for name in starts}
        # FNO itself, but for its transforms, which learn.
        models["mno-swap"] = {"model": "mno", "form": "grid", "start": "dft", "twin": "fno"}
        return models


PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        Problem("navier-stokes", "Navier-Stokes flow, periodic", 10, "navier_stokes"),
        Problem(
            "darcy",
            "Darcy flow between walls",
            1,
            "darcy",
            static=True,
            walls=(True, True),
            transforms=("dst", "dct"),
        ),
        Problem(
            "burgers-walls",
            "Burgers flow between walls",
            1,
            "burgers",
            walls=(True, True),
            transforms=("dst", "dct"),
        ),
        Problem(
            "shallow-water",
            "shallow water on the sphere",
            1,
            "shallow_water",
            walls=(True, False),
            sphere=True,
            transforms=("sht",),
            shown=1,
        ),
    )
}
