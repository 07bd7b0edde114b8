"""Training batches: every sample once an epoch, new order each epoch, the same on several processes."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import Dataset, Subset

from lab.errors import UserError
from lab.loader import EpochBatches, TrainLoader, groups_of, in_order, mix


class Numbers(Dataset):
    """Samples that say which one they are and in which epoch they were read."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index, self.epoch])


@given(samples=st.integers(1, 40), batch=st.integers(1, 10), seed=st.integers(0, 5), epoch=st.integers(0, 3))
def test_an_epoch_shows_no_sample_twice_and_drops_only_a_ragged_end(samples, batch, seed, epoch):
    batches = EpochBatches(samples, batch, seed)
    batches.set_epoch(epoch)
    shown = list(itertools.chain.from_iterable(batches))
    assert len(set(shown)) == len(shown)
    assert samples - len(shown) < min(batch, samples)
    assert len(list(batches)) == len(batches)


def test_order_depends_on_seed_and_epoch_alone():
    def order(seed: int, epoch: int) -> list[list[int]]:
        batches = EpochBatches(20, 5, seed)
        batches.set_epoch(epoch)
        return list(batches)

    assert order(1, 2) == order(1, 2)
    assert order(1, 2) != order(1, 3)
    assert order(1, 2) != order(2, 2)


@given(steps=st.integers(1, 12), samples=st.integers(4, 30), start=st.integers(0, 12))
def test_epochs_of_any_length_go_through_the_same_passes(steps, samples, start):
    def stream(batches: EpochBatches, epochs: int) -> list[list[int]]:
        shown = []
        for epoch in range(epochs):
            batches.set_epoch(epoch)
            shown += list(batches)
        return shown

    by_pass = stream(EpochBatches(samples, 4, 5), 12)
    by_steps = EpochBatches(samples, 4, 5, steps=steps)
    assert len(by_steps) == steps
    assert stream(by_steps, len(by_pass) // steps) == by_pass[: len(by_pass) // steps * steps]
    by_steps.set_epoch(0)
    by_steps.start = start
    assert list(by_steps) == by_pass[start:steps]


@given(
    groups=st.lists(st.sampled_from("ab"), min_size=1, max_size=30),
    batch=st.integers(1, 7),
    epoch=st.integers(0, 3),
)
def test_batches_have_samples_of_one_group_and_every_group_has_batches(groups, batch, epoch):
    batches = EpochBatches(groups, batch, 3)
    batches.set_epoch(epoch)
    shown = list(batches)
    assert len(shown) == len(batches)
    assert all(len({groups[index] for index in one}) == 1 for one in shown)
    for group in set(groups):
        members = [index for one in shown for index in one if groups[index] == group]
        count = groups.count(group)
        assert len(set(members)) == len(members)
        assert 0 <= count - len(members) < min(batch, count)


def test_batches_of_the_groups_come_in_mixed_order():
    shown = ["ab"[index >= 20] for index, *_ in EpochBatches("a" * 20 + "b" * 20, 2, 0)]
    assert shown not in (["a"] * 10 + ["b"] * 10, ["b"] * 10 + ["a"] * 10)
    assert sorted(shown) == ["a"] * 10 + ["b"] * 10


def test_processes_share_out_batches_of_groups_too():
    groups = "aabbbababbaabbbbaaab"
    alone = list(EpochBatches(groups, 4, 7))
    shares = [list(EpochBatches(groups, 4, 7, rank, 2)) for rank in range(2)]
    assert [sorted(one + other) for one, other in zip(*shares, strict=True)] == [sorted(one) for one in alone]


def test_a_part_of_a_data_set_has_its_groups():
    class Grouped(Numbers):
        groups = "aaaabbbbaabb"

    part = Subset(Grouped(), [11, 0, 4, 8, 1])
    assert list(groups_of(part)) == list("babaa")
    assert in_order(part, 2) == [[0, 2], [1, 3], [4]]
    assert in_order(Numbers(), 5) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


@given(world=st.integers(1, 4), per_process=st.integers(1, 3), samples=st.integers(12, 30))
def test_processes_together_see_the_batches_of_one(world, per_process, samples):
    batch = world * per_process
    alone = list(EpochBatches(samples, batch, 7))
    shares = [list(EpochBatches(samples, batch, 7, rank, world)) for rank in range(world)]
    together = [sorted(itertools.chain.from_iterable(parts)) for parts in zip(*shares, strict=True)]
    assert together == [sorted(part) for part in alone]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_a_loader_goes_on_where_its_state_was_taken(taken, workers):
    def epoch_of(loader: TrainLoader, epoch: int) -> list[list[int]]:
        loader.batch_sampler.set_epoch(epoch)
        return [batch.flatten().tolist() for batch in loader]

    whole = TrainLoader(Numbers(), 4, seed=3)
    expected = epoch_of(whole, 5) + epoch_of(whole, 6)
    first = TrainLoader(Numbers(), 4, seed=3, num_workers=workers)
    first.batch_sampler.set_epoch(5)
    batches = iter(first)
    seen = [next(batches).flatten().tolist() for _ in range(taken)]
    state = first.state_dict()
    batches.close()
    second = TrainLoader(Numbers(), 4, seed=3, num_workers=workers)
    second.load_state_dict(state)
    if taken < 3:
        seen += [batch.flatten().tolist() for batch in second]
    assert seen + epoch_of(second, 6) == expected


def test_mixing_scatters_neighbouring_seeds():
    values = {mix(seed, step) for seed in range(30) for step in range(30)}
    assert len(values) == 900
    bits = sum(bin(mix(0, step) ^ mix(0, step + 1)).count("1") for step in range(200)) / 200
    assert 28 < bits < 35


def test_too_few_samples_for_the_processes_are_a_sentence():
    with pytest.raises(
        UserError, match="1 samples cannot be shared out among 2 processes; take fewer --devices"
    ):
        EpochBatches(1, batch_size=2, seed=0, world=2)
