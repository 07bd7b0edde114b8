"""Pictures to look through on a page: what is compared, and the numbers that go into the file.

A `Stack` is one thing to look at (a test sample, an echo of a scan): the truth and what every method made of it, as
pictures along one axis (frames, slices). A `Viewer` is several stacks under the same controls.
"""

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

LEVELS = 65_535
"""Pictures are stored in 16 bits: 8 would show in errors, and in a narrow window."""
ROOM = 9 * 2**20
"""Bytes that the pictures of a page may take as they are stored; what is more is thinned."""

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Curves:
    """Lines beside the pictures, one per method: values (point,), or (picture, point) that follow the slider."""

    title: str
    x_label: str
    x: Sequence[float]
    lines: Mapping[str, Array]
    log_x: bool = False
    marks_picture: bool = False
    """Whether its points are the pictures, so that the one on show is marked."""


@dataclass(frozen=True)
class Stack:
    """Pictures (number, line, column) of one thing: the truth, and what each method made of it."""

    choice: Mapping[str, str]
    """What it is, by the name of each control: {"sample": "3", "viscosity": "1e-5"}."""
    truth: Array
    made: Mapping[str, Array]
    notes: Mapping[str, str] = field(default_factory=dict)
    """A score of each method, shown above its picture."""
    curves: Sequence[Curves] = ()
    aspect: float = 1.0
    """Height of a pixel over its width."""
    unit: str = ""
    latitudes: Sequence[float] = ()
    """Of the lines, in degrees from north to south: such pictures are drawn on a map of the whole sphere, whose left
    edge is the first column."""


@dataclass(frozen=True)
class Viewer:
    """Stacks under one set of controls.

    `kind` says how they are read: a field has a sign, and colours symmetric about zero; an image is a magnitude, with
    window and level; a map is a quantity in colours from zero (T2 in ms, say), blank where it is NaN.
    """

    title: str
    kind: Literal["field", "image", "map"]
    along: str
    """What the slider counts: frame, slice."""
    stacks: Sequence[Stack]
    labels: Sequence[str] = ()
    """Of the pictures: times, positions; their numbers when not given."""
    truth: str = "truth"
    """What the reference is called."""
    note: str = ""
    """What else a reader should know of the pictures, as a sentence."""
    thinned: str = ""
    """What was left out to keep the page small, as a sentence."""

    def described(self) -> dict[str, Any]:
        """The viewer as the page's script reads it; pictures are named by their number in `pictures`."""
        number = iter(range(sum(1 + len(stack.made) for stack in self.stacks)))
        return {
            "title": self.title,
            "kind": self.kind,
            "along": self.along,
            "thinned": self.thinned,
            "truth": self.truth,
            "note": self.note,
            "labels": list(self.labels),
            "stacks": [
                {
                    "choice": dict(stack.choice),
                    "shape": list(stack.truth.shape),
                    "range": self._range(stack),
                    "truth": next(number),
                    "made": {name: next(number) for name in stack.made},
                    "notes": dict(stack.notes),
                    "curves": [_described(curves) for curves in stack.curves],
                    "aspect": stack.aspect,
                    "unit": stack.unit,
                    "latitudes": [float(each) for each in stack.latitudes],
                }
                for stack in self.stacks
            ],
        }

    def pictures(self) -> Iterator[str]:
        """All pictures as text, in the order of `described`."""
        for stack in self.stacks:
            low, high = self._range(stack)
            for values in (stack.truth, *stack.made.values()):
                yield packed(values, low, high, missing=low if self.kind == "map" else high)

    def _range(self, stack: Stack) -> tuple[float, float]:
        """Half as much again as that of the truth, so that overshoots show and a divergence hides nothing."""
        finite = stack.truth[np.isfinite(stack.truth)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        if self.kind == "map":
            low = 0.0
        spare = 0.25 * (high - low or 1.0)
        return (low if low >= 0 else low - spare), high + spare


def packed(values: Array, low: float, high: float, missing: float) -> str:
    """Pictures as text: levels between low and high in 16 bits, differences along each line, compressed.

    NaN is stored as `missing`: as the upper end where a model diverged.
    """
    finite = np.nan_to_num(values, nan=missing, posinf=high, neginf=low)
    scaled = (np.clip(finite, low, high) - low) / max(high - low, 1e-30)
    levels = np.rint(LEVELS * scaled).astype(np.int64)
    steps = np.diff(levels, axis=-1, prepend=0) % (LEVELS + 1)
    # All low bytes, then all high ones, which are mostly alike and compress well.
    halves = np.stack((steps % 256, steps // 256)).astype(np.uint8)
    return base64.b64encode(zlib.compress(halves.tobytes(), 9)).decode()


def thinned(viewer: Viewer, room: int = ROOM) -> Viewer:
    """The viewer with as many stacks and pictures as fit into `room` bytes, spread evenly; it says what is missing.

    At least one stack stays, with one picture.
    """
    stacks, every = list(viewer.stacks), 1
    while (
        len(stacks) > 1 and _bytes(stacks) > 3 * room
    ):  # rather fewer samples than a movie with three frames
        stacks = stacks[: max(1, round(len(stacks) * 3 * room / _bytes(stacks)))]
    pictures = max(stack.truth.shape[0] for stack in stacks)
    while every < pictures and _bytes(stacks, every) > room:
        every += 1
    words = [f"the first {len(stacks)} of {len(viewer.stacks)}"] if len(stacks) < len(viewer.stacks) else []
    words += [f"one {viewer.along} in {every}"] if every > 1 else []
    if not words:
        return viewer
    kept = [
        replace(
            stack,
            truth=stack.truth[::every],
            made={name: values[::every] for name, values in stack.made.items()},
            curves=[_thinned(curves, every, stack.truth.shape[0]) for curves in stack.curves],
        )
        for stack in stacks
    ]
    labels = viewer.labels or [str(number + 1) for number in range(pictures)]
    sentence = f"To keep this page small, only {' and '.join(words)} are shown."
    return replace(viewer, stacks=kept, labels=labels[::every], thinned=sentence)


def _bytes(stacks: Sequence[Stack], every: int = 1) -> int:
    """About what the pictures take: two bytes each, of which base64 adds a third and compression takes a third."""
    return sum(2 * stack.truth[::every].size * (1 + len(stack.made)) for stack in stacks)


def _thinned(curves: Curves, every: int, pictures: int) -> Curves:
    if curves.marks_picture:
        lines = {name: values[::every] for name, values in curves.lines.items()}
        return replace(curves, x=curves.x[::every], lines=lines)
    follows = {name: values[::every] if values.ndim == 2 else values for name, values in curves.lines.items()}
    return replace(curves, lines=follows)


def _described(curves: Curves) -> dict[str, Any]:
    return {
        "title": curves.title,
        "xLabel": curves.x_label,
        "x": [float(value) for value in curves.x],
        "lines": {name: np.asarray(values, float).tolist() for name, values in curves.lines.items()},
        "logX": curves.log_x,
        "marksPicture": curves.marks_picture,
    }
