"""Geometries: what the shape of a domain and its boundary imply for everything downstream. Nothing here imports torch.

A geometry knows nothing of the number of points; methods take the coordinates of rows and columns instead, which
`data.fields.layout.Grid` holds beside it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lab.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

Boundary = Literal["periodic", "walls"]
Latitudes = Literal["legendre-gauss", "equiangular"]
"""Grids as torch-harmonics names them: the zeros of a Legendre polynomial, or equal steps from pole to pole."""
Move = Literal[
    "mirror rows", "mirror columns", "transpose", "half turn", "turn rows", "turn columns", "turn diagonally"
]
"""Turns move a field along periodic axes; diagonally, as far back along columns as ahead along rows. Half a turn is
that of a torus about a point, x to -x and y to -y."""
Regions = dict[str, tuple[float, float]]


class Geometry(ABC):
    """A domain of rows and columns, and what its boundary implies."""

    kind: ClassVar[str]
    axes: ClassVar[tuple[str, ...]] = ("x", "y")
    """The axes along which there are points: x along rows, y along columns."""

    @property
    @abstractmethod
    def bounded(self) -> tuple[bool, bool]:
        """Whether the domain ends along rows and along columns, instead of being periodic."""

    @property
    @abstractmethod
    def transforms(self) -> tuple[str, ...]:
        """Those made for this boundary, the most fitting first. The DFT ("dft") is possible on any grid."""

    @property
    @abstractmethod
    def symmetries(self) -> tuple[Move, ...]:
        """The moves that map the domain onto itself; an equation may keep fewer of them."""

    @property
    @abstractmethod
    def places(self) -> Regions:
        """Regions by the absolute value of `positions`, as [from, to); empty where all places are alike."""

    @property
    @abstractmethod
    def place(self) -> str:
        """What `positions` measures, as the label of an axis."""

    @property
    def latitudes(self) -> Latitudes | None:
        """The kind of grid that the rows of a sphere have."""
        return None

    @abstractmethod
    def coordinates(self, rows: int, columns: int) -> "tuple[Tensor, Tensor]":
        """The usual points of such a domain, float64."""

    @abstractmethod
    def positions(self, rows: "Tensor", columns: "Tensor") -> "Tensor":
        """The place of every point (row, column), rounded so that equal places are equal."""

    @abstractmethod
    def features(self, rows: int, columns: int) -> "Tensor":
        """Smooth functions on the domain that tell its points apart: (row, column, feature), float64."""

    @abstractmethod
    def picture(self, field: "Tensor") -> "Tensor":
        """A field (row, column) as an image whose first line is its top."""

    def map_latitudes(self, rows: "Tensor") -> "Tensor | None":
        """Latitudes of the lines of a picture, in degrees, where it is drawn on a map; None where it is flat."""
        return None

    def weights(self, rows: "Tensor") -> "Tensor | None":
        """Quadrature weights of the rows, of mean 1; None where all points weigh the same."""
        return None

    def every(self, stride: int, rows: "Tensor", columns: "Tensor") -> tuple[slice, slice] | None:
        """Every `stride`-th of these rows and columns, where they form a grid of this kind again; else None."""
        return (slice(None), slice(None)) if stride == 1 else None

    def padding(self, fraction: float, resolution: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns to pad with: a fraction of those along which the domain ends.

        >>> Box("periodic", "walls").padding(0.125, (64, 64)), Sphere().padding(0.125, (64, 128))
        ((0, 8), (8, 0))
        """
        ends = zip(resolution, self.bounded, strict=True)
        rows, columns = (round(fraction * points) if bounded else 0 for points, bounded in ends)
        return rows, columns

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON holds; `from_dict` is the way back.

        >>> from_dict(Box("walls", "periodic").to_dict())
        Box(rows='walls', columns='periodic')
        """
        return {"kind": self.kind, **vars(self)}


@dataclass(frozen=True)
class Box(Geometry):
    """The unit square, x along rows and y along columns, each axis periodic or between walls.

    Periodic points are i / n. Between walls they are the middles of cells, (i + 1/2) / n: the sines of a DST of type 2
    vanish on those walls, and the slopes of the cosines of a DCT of type 2 do. Files of others may have points on the
    walls instead, i / (n - 1).
    """

    kind = "box"
    rows: Boundary = "periodic"
    columns: Boundary = "periodic"

    @property
    def bounded(self) -> tuple[bool, bool]:
        return self.rows == "walls", self.columns == "walls"

    @property
    def transforms(self) -> tuple[str, ...]:
        return ("dst", "dct") if all(self.bounded) else ()

    @property
    def symmetries(self) -> tuple[Move, ...]:
        moves: dict[Move, bool] = {"mirror rows": True, "mirror columns": True}
        moves |= {"transpose": self.rows == self.columns}
        moves |= {"turn rows": self.rows == "periodic", "turn columns": self.columns == "periodic"}
        moves |= dict.fromkeys(("half turn", "turn diagonally"), not any(self.bounded))
        return tuple(move for move, possible in moves.items() if possible)

    @property
    def places(self) -> Regions:
        near, far = 1 / 16, 1 / 4
        regions = {"within 1/16 of a wall": (0.0, near), "1/16 to 1/4": (near, far), "beyond": (far, 1.0)}
        return regions if any(self.bounded) else {}

    place = "distance from the nearest wall"

    def coordinates(self, rows: int, columns: int) -> "tuple[Tensor, Tensor]":
        import torch

        x, y = (
            (torch.arange(n, dtype=torch.float64) + (0.5 if bounded else 0.0)) / n
            for n, bounded in zip((rows, columns), self.bounded, strict=True)
        )
        return x, y

    def positions(self, rows: "Tensor", columns: "Tensor") -> "Tensor":
        x, y = (
            points.minimum(1 - points) if bounded else points.new_full(points.shape, float("inf"))
            for points, bounded in zip((rows, columns), self.bounded, strict=True)
        )
        return x[:, None].minimum(y).round(decimals=9)

    def features(self, rows: int, columns: int) -> "Tensor":
        """Sine and cosine of a periodic axis; from -1 to 1 between walls."""
        import torch

        x, y = self.coordinates(rows, columns)
        found = []
        for points, bounded in zip((x[:, None], y[None]), self.bounded, strict=True):
            angle = 2 * torch.pi * points
            found += [2 * points - 1] if bounded else [angle.sin(), angle.cos()]
        return torch.stack([feature.expand(rows, columns) for feature in found], -1)

    def picture(self, field: "Tensor") -> "Tensor":
        """x to the right, y upwards."""
        return field.T.flip(0)

    def every(self, stride: int, rows: "Tensor", columns: "Tensor") -> tuple[slice, slice] | None:
        x, y = (
            _every(stride, points, end) for points, end in zip((rows, columns), self.bounded, strict=True)
        )
        return None if x is None or y is None else (x, y)


def _every(stride: int, points: "Tensor", bounded: bool) -> slice | None:
    """Every k-th point of an axis. Walls that are among the points stay; else the middles of wider cells do.

    Points that are neither, such as the inner ones of finite differences, are not thinned.
    """
    n, first, last = len(points), float(points[0]), 1 - float(points[-1])  # distances from the walls
    on_walls = bounded and max(abs(first), abs(last)) < 1e-6
    middles = bounded and max(abs(first - 0.5 / n), abs(last - 0.5 / n)) < 1e-6
    if bounded and not on_walls and not middles:
        return slice(None) if stride == 1 else None
    if (n - on_walls) % stride or (middles and stride % 2 == 0):
        return None
    return slice(stride // 2 if middles else 0, None, stride)


@dataclass(frozen=True)
class Line(Geometry):
    """The unit interval, periodic or between walls, as a grid of one column: x along rows, points as those of a box."""

    kind = "line"
    axes = ("x",)
    rows: Boundary = "periodic"

    @property
    def bounded(self) -> tuple[bool, bool]:
        return self.rows == "walls", False

    @property
    def transforms(self) -> tuple[str, ...]:
        return ("dst", "dct") if self.rows == "walls" else ()

    @property
    def symmetries(self) -> tuple[Move, ...]:
        return ("mirror rows",) if self.rows == "walls" else ("mirror rows", "turn rows")

    @property
    def places(self) -> Regions:
        return self._box.places

    place = Box.place

    def coordinates(self, rows: int, columns: int = 1) -> "tuple[Tensor, Tensor]":
        return self._box.coordinates(rows, columns)

    def positions(self, rows: "Tensor", columns: "Tensor") -> "Tensor":
        return self._box.positions(rows, columns)

    def features(self, rows: int, columns: int) -> "Tensor":
        """Those of x alone."""
        return self._box.features(rows, columns)[..., : 1 if self.rows == "walls" else 2]

    def picture(self, field: "Tensor") -> "Tensor":
        """x to the right."""
        return field.T

    def every(self, stride: int, rows: "Tensor", columns: "Tensor") -> tuple[slice, slice] | None:
        x = _every(stride, rows, self.bounded[0])
        return None if x is None else (x, slice(None))

    @property
    def _box(self) -> Box:
        return Box(self.rows, "periodic")


@dataclass(frozen=True)
class Sphere(Geometry):
    """The sphere: rows are colatitudes from north to south, columns longitudes from 0, both in radians."""

    kind = "sphere"
    latitudes: Latitudes = "legendre-gauss"

    bounded = (True, False)
    transforms = ("sht",)
    symmetries = ("mirror rows", "mirror columns", "turn columns")
    places: ClassVar[Regions] = {
        "beyond 60 degrees": (60.0, float("inf")),  # with the poles themselves, where the grid has them
        "30 to 60": (30.0, 60.0),
        "within 30": (0.0, 30.0),
    }
    place = "latitude (degrees)"

    @classmethod
    def of(cls, colatitudes: "Tensor") -> "Sphere":
        """The sphere whose rows have these colatitudes."""
        from monarch_core.transforms.sphere import quadrature

        kinds: tuple[Latitudes, ...] = ("legendre-gauss", "equiangular")
        for kind in kinds:
            if quadrature(kind, len(colatitudes))[0].allclose(colatitudes.double(), atol=1e-6):
                return cls(kind)
        raise UserError(
            "the latitudes of the data are neither Gauss's nor equiangular; harmonics need one of them."
        )

    def coordinates(self, rows: int, columns: int) -> "tuple[Tensor, Tensor]":
        import torch

        from monarch_core.transforms.sphere import quadrature

        longitudes = 2 * torch.pi * torch.arange(columns, dtype=torch.float64) / columns
        return quadrature(self.latitudes, rows)[0], longitudes

    def positions(self, rows: "Tensor", columns: "Tensor") -> "Tensor":
        return (90 - rows.rad2deg()).round(decimals=6)[:, None].expand(-1, len(columns))

    def features(self, rows: int, columns: int) -> "Tensor":
        """The Cartesian coordinates of the points of the unit sphere."""
        import torch

        theta, phi = self.coordinates(rows, columns)
        ring, height = theta.sin()[:, None], theta.cos()[:, None]
        return torch.stack((ring * phi.cos(), ring * phi.sin(), height.expand(rows, columns)), -1)

    def picture(self, field: "Tensor") -> "Tensor":
        """The map, north above."""
        return field

    def map_latitudes(self, rows: "Tensor") -> "Tensor | None":
        return 90 - rows.rad2deg()

    def weights(self, rows: "Tensor") -> "Tensor | None":
        from monarch_core.transforms.sphere import quadrature

        weights = quadrature(self.latitudes, len(rows))[1]
        return weights / weights.mean()


KINDS: dict[str, type[Geometry]] = {"box": Box, "line": Line, "sphere": Sphere}


def from_dict(stored: dict[str, Any]) -> Geometry:
    """The geometry that `to_dict` described."""
    try:
        return KINDS[stored["kind"]](**{key: value for key, value in stored.items() if key != "kind"})
    except (KeyError, TypeError) as error:
        raise UserError(
            f"the geometry {stored} is not known here; known are {', '.join(KINDS)}. Update this program."
        ) from error
