"""A pool of masks on disk that grows on demand.

One small file per mask, written under a temporary name and renamed. A mask depends on nothing but the pool and its
name. So several processes may fill one pool at once (each goes through the missing names in an order of its own and
skips what another has finished), and a training run that is resumed finds the masks it began with.
"""

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from data.masks.generate import generate
from data.masks.spec import MaskSpec
from data.scans.sense import centre
from lab.errors import readable
from lab.files import atomic_path
from lab.loader import mix
from lab.paths import datasets_dir
from lab.progress import Progress

VERSION = 2
"""Part of the folder's name: raised whenever the same name would give another mask."""


class MaskPool:
    """Masks of one specification: numbered ones for training, and one of its own for each scan.

        pool = MaskPool(MaskSpec("poisson", (416, 80), 2))
        masks = pool.training(1000)                       # bool (1000, 416, 80)
        numbers = draw(seed, epoch, indices, len(masks))  # which mask each example of a batch gets
        batch_masks = pad(masks[numbers], (512, 160))
        test_mask = pad(pool.for_scan("MTR_005"), (512, 160))

    A Poisson mask of SKM-TEA's size takes some 0.05 s to make; call `training` before the loop, not inside it.
    """

    def __init__(self, spec: MaskSpec, root: str | Path | None = None) -> None:
        self.spec = spec
        self.folder = Path(root or datasets_dir() / "masks") / f"{spec.name}_v{VERSION}"

    def __len__(self) -> int:
        """How many training masks there are without a gap."""
        number = 0
        while self._path(_number_name(number)).exists():
            number += 1
        return number

    def training(self, count: int) -> Tensor:
        """The first `count` numbered masks, bool (count, ky, kz); missing ones are made."""
        names = [_number_name(number) for number in range(count)]
        self._fill(names)
        return torch.from_numpy(np.stack([self._read(name)[0] for name in names]))

    def for_scan(self, scan_id: str) -> Tensor:
        """The evaluation mask of a scan, bool (ky, kz): its seed comes from the scan's name."""
        return self.for_scans([scan_id])[scan_id]

    def for_scans(self, scan_ids: Sequence[str]) -> dict[str, Tensor]:
        """The evaluation masks of several scans; missing ones are made."""
        self._fill([_scan_name(scan_id) for scan_id in scan_ids])
        return {scan_id: torch.from_numpy(self._read(_scan_name(scan_id))[0]) for scan_id in scan_ids}

    def accelerations(self, count: int) -> list[float]:
        """The actual accelerations of the first `count` numbered masks."""
        return [self._read(_number_name(number))[1] for number in range(count)]

    def _fill(self, names: Sequence[str]) -> None:
        missing = [name for name in names if not self._path(name).exists()]
        if not missing:
            return
        random.Random().shuffle(missing)
        with Progress(len(missing), f"masks {self.spec.name}", unit="mask") as progress:
            for name in missing:
                if not self._path(name).exists():  # another process may have made it by now
                    self._make(name)
                progress.advance()

    def _make(self, name: str) -> None:
        seed = stable_seed(name, 0)
        mask = generate(self.spec, seed)
        acceleration = self.spec.actual_acceleration(int(mask.sum()))
        with atomic_path(self._path(name)) as temporary:
            np.savez(temporary, bits=np.packbits(mask), acceleration=acceleration, seed=seed)

    def _read(self, name: str) -> tuple[np.ndarray, float]:
        path, (ky, kz) = self._path(name), self.spec.grid
        with readable(path, "delete it and it is made again"), path.open("rb") as raw, np.load(raw) as file:
            mask = np.unpackbits(file["bits"], count=ky * kz).reshape(ky, kz).astype(bool)
            return mask, float(file["acceleration"])

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"


def stable_seed(*parts: object) -> int:
    """31 bits that depend on the text of the parts only, on every machine and Python version.

    >>> stable_seed("scan-MTR_001", 0)
    1712562061
    """
    text = "|".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") >> 1


def draw(seed: int, epoch: int, indices: Sequence[int] | Tensor, count: int) -> Tensor:
    """Which of `count` masks each example gets: a pure function, so that a resumed run draws the same.

    >>> draw(0, 3, [5, 6, 7], 1000)
    tensor([665, 641, 871])
    """
    positions = indices.tolist() if isinstance(indices, Tensor) else indices
    return torch.tensor([mix(seed, epoch, position) % count for position in positions])


def pad(mask: Tensor, shape: tuple[int, int]) -> Tensor:
    """Masks (..., ky, kz) of the acquired grid in the middle of the zero-padded grid.

    >>> pad(torch.ones(416, 80, dtype=torch.bool), (512, 160)).float().mean()
    tensor(0.4062)
    """
    padded = mask.new_zeros(*mask.shape[:-2], *shape)
    padded[..., centre(mask.shape[-2], shape[0]), centre(mask.shape[-1], shape[1])] = mask
    return padded


def density(masks: Tensor) -> Tensor:
    """How often each point is sampled: the mean (ky, kz) of masks (count, ky, kz)."""
    return masks.float().mean(0)


def _number_name(number: int) -> str:
    return f"train-{number:05}"


def _scan_name(scan_id: str) -> str:
    return f"scan-{scan_id}"
