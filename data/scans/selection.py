"""Which scans take part: those that can be read, of every size or of one, and nested few-shot subsets of them."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from data.scans.scan import Scan
from lab.errors import UserError, readable

FEW_SHOT_SEED = 1000
Shape = tuple[int, ...]


@dataclass
class Selection:
    """The scans that take part, and why each of the others does not."""

    scans: list[Scan]
    dropped: dict[str, str] = field(default_factory=dict)
    """Scan to reason, one sentence each."""
    shared_out: str = ""
    """How one folder was shared out among the splits, where it was."""

    def report(self) -> str:
        """What was left out, and what was shared out, for people to read; empty if nothing was."""
        left_out = [f"left out {scan_id}: {reason}" for scan_id, reason in self.dropped.items()]
        return "\n".join([*left_out, *([self.shared_out] if self.shared_out else [])])


def few_shot_order(names: Sequence[str]) -> list[str]:
    """The order whose first N names are the training subset of N scans: sorted, then shuffled with seed 1000.

    The published subsets shuffle the *whole* split; scans of another size are dropped afterwards.

    >>> few_shot_order(["c", "a", "b"]) == few_shot_order(["a", "b", "c"])
    True
    """
    order = sorted(names)
    random.Random(FEW_SHOT_SEED).shuffle(order)
    return order


def select(
    planes: Mapping[str, Shape | None],
    open_scan: Callable[[str], Scan],
    *,
    wanted: Shape | None,
    count: int | None,
    skip_bad: bool,
) -> Selection:
    """Open the files that are listed with the wanted size (ky, kz) of slices (None: any), `count` of them (None: all).

    With a count they are the first in few-shot order, otherwise all, sorted. A file listed without a size
    was not looked into. One that cannot be used stops everything with the reason, unless `skip_bad`.
    """
    if count is not None and count < 1:
        raise UserError(f"at least one scan is needed, not {count}.")
    chosen: list[Scan] = []
    dropped: dict[str, str] = {}
    for name in sorted(planes) if count is None else few_shot_order(list(planes)):
        plane = planes[name]
        if plane is not None and wanted is not None and tuple(plane) != tuple(wanted):
            dropped[Path(name).stem] = f"its slices are {_by(plane)}, not {_by(wanted)}."
        elif len(chosen) != count:
            try:
                with readable(name):
                    chosen.append(open_scan(name))
            except UserError as error:
                if not skip_bad:
                    raise
                dropped[Path(name).stem] = str(error)
    if len(chosen) < (count or 1):
        reasons = "".join(f" {name}: {reason}" for name, reason in list(dropped.items())[:3])
        raise UserError(
            f"{count or 'some'} scans are wanted, but of {len(planes)} listed only {len(chosen)} can be used.{reasons}"
        )
    return Selection(chosen, dropped)


def _by(plane: Shape) -> str:
    return " x ".join(str(side) for side in plane)
