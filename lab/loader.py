"""Training batches whose order depends on the seed and the epoch alone, and which resume within an epoch."""

from collections.abc import Hashable, Iterator, Sequence, Sized
from typing import Any, cast

import torch
from torch.utils.data import DataLoader, Dataset, Sampler, Subset

from lab.errors import UserError
from lab.plan import Steps


def mix(*numbers: int) -> int:
    """Blend seed, epoch, step or index into one 63-bit seed; near inputs give unrelated outputs.

    >>> mix(0, 1) != mix(1, 0), mix(3, 4) == mix(3, 4)
    (True, True)
    """
    state = 0
    for number in numbers:
        # splitmix64: each input is added to the state, then the bits are scattered.
        state = (state + number + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 31
    return state >> 1


Groups = Sequence[Hashable]
"""To which group each sample of a data set belongs."""


def groups_of(dataset: Dataset[Any]) -> Groups:
    """Which samples may share a batch: those of one group. A data set with several has an attribute `groups`."""
    if isinstance(dataset, Subset):
        inner = groups_of(dataset.dataset)
        return [inner[index] for index in dataset.indices]
    return cast(Groups, getattr(dataset, "groups", None) or [0] * len(cast(Sized, dataset)))


def in_order(dataset: Dataset[Any], batch_size: int) -> list[list[int]]:
    """Batches of everything, in order but for the groups: first all batches of the first one.

    >>> in_order(Subset([0] * 9, [0, 1, 2, 3, 4]), 2)
    [[0, 1], [2, 3], [4]]
    """
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups_of(dataset)):
        members.setdefault(group, []).append(index)
    return [
        same[first : first + batch_size]
        for same in members.values()
        for first in range(0, len(same), batch_size)
    ]


class EpochBatches(Sampler[list[int]]):
    """Batches of shuffled indices: a new order each pass over the data, shared out among the processes.

    An epoch is one pass, or as many `steps` as it is told to have, each epoch going on where the one before it
    stopped. Process `rank` of `world` takes every world-th index of each global batch, so that the processes
    together see exactly the batches that one process would. A batch has samples of one group. A last batch of a group
    that would be ragged is dropped, unless the group is smaller than a batch.
    """

    def __init__(
        self,
        samples: int | Groups,
        batch_size: int,
        seed: int,
        rank: int = 0,
        world: int = 1,
        steps: Steps | int | None = None,
    ) -> None:
        groups = [0] * samples if isinstance(samples, int) else samples
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        self.group = torch.tensor([numbers[group] for group in groups])
        self.counts = self.group.bincount().tolist()
        self.batch_sizes = [min(batch_size, count - count % world) for count in self.counts]
        self.seed, self.rank, self.world = seed, rank, world
        self.epoch = 0
        self.start = 0
        if min(self.batch_sizes) < world:
            raise UserError(
                f"{min(self.counts)} samples cannot be shared out among {world} processes; take fewer --devices."
            )
        self.steps = steps if isinstance(steps, Steps) else Steps(1, [steps or self.steps_per_pass])

    @property
    def steps_per_pass(self) -> int:
        """Batches that show every sample once."""
        return sum(count // size for count, size in zip(self.counts, self.batch_sizes, strict=True))

    def __len__(self) -> int:
        return self.steps.length(self.epoch)

    @property
    def sampler(self) -> "EpochBatches":
        """Itself: Lightning looks for `set_epoch` on a batch sampler's sampler."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order comes next."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        start, self.start = self.start, 0
        step, end = self.steps.begin(self.epoch) + start, self.steps.begin(self.epoch + 1)
        while step < end:
            number, done = divmod(step, self.steps_per_pass)
            for batch in self._pass(number)[done : done + end - step]:
                yield batch.tolist()
                step += 1

    def _pass(self, number: int) -> list[torch.Tensor]:
        """This process's share of the batches of one pass."""
        generator = torch.Generator().manual_seed(mix(self.seed, number))
        order = torch.randperm(len(self.group), generator=generator)
        batches: list[torch.Tensor] = []
        for group, (count, size) in enumerate(zip(self.counts, self.batch_sizes, strict=True)):
            mine = order[self.group[order] == group][self.rank :: self.world]
            steps, share = count // size, size // self.world
            batches += mine[: steps * share].view(steps, share).unbind()
        if len(self.counts) == 1:
            return batches
        return [batches[place] for place in torch.randperm(len(batches), generator=generator).tolist()]


class TrainLoader(DataLoader[Any]):
    """A DataLoader over `EpochBatches` that tells Lightning's checkpoints how far it has come.

    `options` are further ones of a DataLoader. A data set with a method `set_epoch` is told the epoch before its
    workers start, so that what it draws at random can be a function of seed, epoch and index.
    """

    batch_sampler: EpochBatches

    def __init__(
        self,
        dataset: Dataset[Any],
        batch_size: int,
        seed: int,
        *,
        rank: int = 0,
        world: int = 1,
        steps: Steps | int | None = None,
        **options: Any,
    ) -> None:
        batches = EpochBatches(groups_of(dataset), batch_size, seed, rank, world, steps)
        super().__init__(dataset, batch_sampler=batches, **options)
        self._delivered = 0

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        batches = self.batch_sampler
        self._delivered = batches.start
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(batches.epoch)
        for batch in super().__iter__():
            self._delivered += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Epoch and number of batches delivered in it; the end of an epoch is the start of the next."""
        epoch, start = self.batch_sampler.epoch, self._delivered
        return {"epoch": epoch + 1, "start": 0} if start == len(self) else {"epoch": epoch, "start": start}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from where `state_dict` was taken."""
        self.batch_sampler.epoch, self.batch_sampler.start = state["epoch"], state["start"]
