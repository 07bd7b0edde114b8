"""The 2-D slices of some scans, one by one and in batches."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from data.scans.scan import Scan
from lab.errors import UserError
from lab.progress import Progress


class Slice(NamedTuple):
    """One 2-D problem. Tensors are as stored; divide `kspace` and `target` by `scale` to normalise."""

    kspace: Tensor
    """complex64 (coils, ky, kz), fully sampled, centred."""
    maps: Tensor
    """complex64 (coils, ky, kz)."""
    target: Tensor
    """complex64 (ky, kz)."""
    scale: float
    """Standard deviation of |target| over the scan's whole volume, all echoes."""
    scan_id: str
    slice_index: int
    echo: int
    position: int
    """Place in the data set; with the seed and the epoch it chooses the training mask."""


class SliceDataset(Dataset[Slice]):
    """The slices of some scans, scan by scan, slice by slice, echo by echo; read when they are asked for.

    The data set of one scan and one echo is that volume, in order. Batches of scans with different numbers
    of coils need `collate`; slices of different sizes cannot share a batch.
    """

    def __init__(self, scans: Sequence[Scan], echoes: Sequence[int] | None = None) -> None:
        self.scans = list(scans)
        self.items = [
            (scan, slice_index, echo)
            for scan in self.scans
            for slice_index in range(scan.num_slices)
            for echo in (range(scan.num_echoes) if echoes is None else echoes)
        ]
        for scan, _, echo in self.items:
            if echo not in range(scan.num_echoes):
                raise UserError(f"{scan.scan_id} has {scan.num_echoes} echoes; there is no echo {echo + 1}.")
        self._compute_scales()

    @property
    def groups(self) -> list[tuple[int, int]]:
        """The size (ky, kz) of each slice: those of one size can share a batch."""
        return [scan.matrix_shape[1:] for scan, _, _ in self.items]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Slice:
        scan, slice_index, echo = self.items[index]
        kspace, maps, target = scan.checked(slice_index, echo)
        return Slice(
            kspace, maps, target, scan.scale, scan.scan_id, slice_index, echo, range(len(self))[index]
        )

    def _compute_scales(self) -> None:
        unknown = [scan for scan in self.scans if not scan.scale_is_known]
        if unknown:
            with Progress(len(unknown), "normalisation", unit="scan") as progress:
                for scan in unknown:
                    _ = scan.scale
                    progress.advance()


class EchoesTogether(Dataset[list[Slice]]):
    """Slices with all their echoes: an item is the list of a slice's echoes, which a batch holds one after the other.

    `places` are the items, each by the numbers of its echoes in the data set. The echoes of an item have its own place
    in this data set as their `position`, so that they get one mask, as they do in a scanner.
    """

    def __init__(self, slices: SliceDataset, places: Sequence[Sequence[int]]) -> None:
        self.slices, self.places = slices, [list(place) for place in places]

    @property
    def groups(self) -> list[tuple[tuple[int, int], int]]:
        """The size (ky, kz) of each slice and how many echoes it has."""
        sizes = self.slices.groups
        return [(sizes[place[0]], len(place)) for place in self.places]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> list[Slice]:
        position = range(len(self))[index]
        return [self.slices[one]._replace(position=position) for one in self.places[index]]


def collate(items: Sequence[Slice | list[Slice]]) -> Slice:
    """Stack slices into a batch; those with fewer coils get empty ones, which add nothing to any SENSE sum."""
    slices = [one for item in items for one in (item if isinstance(item, list) else [item])]
    coils = max(one.kspace.shape[0] for one in slices)
    return default_collate(
        [one._replace(kspace=_fill(one.kspace, coils), maps=_fill(one.maps, coils)) for one in slices]
    )


def _fill(tensor: Tensor, coils: int) -> Tensor:
    missing = coils - tensor.shape[0]
    return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])]) if missing else tensor
