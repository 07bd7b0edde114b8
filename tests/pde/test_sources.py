"""From options to samples: splits that do not overlap, and what is given and wanted of a sample."""

import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest

from data.fields.geometry import Sphere
from lab.cli import parse
from lab.errors import UserError
from pde.config import DataOptions, TrainConfig
from pde.sources import Split

FEW = {"num_train": 4, "num_val": 2, "num_test": 2}


def test_splits_do_not_overlap(flow_file):
    split = Split(DataOptions(nu=1e-2, data=flow_file, num_train=5, num_val=2, num_test=2))
    ranges = [set(part.samples) for part in (split.train, split.validation, split.test)]
    assert [len(part) for part in ranges] == [5, 2, 2]
    assert len(set.union(*ranges)) == 9
    assert split.test.samples == range(8, 10)


def test_a_file_of_another_viscosity_is_refused(flow_file):
    with pytest.raises(UserError, match="has nu = "):
        Split(DataOptions(nu=1e-3, data=flow_file, **FEW))


def test_a_file_of_another_problem_is_refused(flow_file):
    with pytest.raises(UserError, match="holds samples of navier-stokes, not of darcy"):
        Split(DataOptions(problem="darcy", data=flow_file, **FEW))


def test_a_flow_is_given_by_its_first_frames(flow_file):
    split = Split(DataOptions(nu=1e-2, data=flow_file, **FEW))
    given, wanted = split.load(split.train)
    assert (given.shape, wanted.shape) == ((4, 16, 16, 10, 1), (4, 16, 16, 3, 1))


def test_a_map_pairs_inputs_with_answers(field_file):
    split = Split(DataOptions(problem="darcy", data=field_file("darcy"), **FEW))
    given, wanted = split.load(split.train)
    assert set(given.unique().tolist()) == {3.0, 12.0}  # the two permeabilities
    assert given.shape == wanted.shape == (4, 16, 16, 1, 1)
    assert float(wanted.min()) > 0  # a pressure with a source everywhere


def test_rows_of_the_sphere_have_weights_of_mean_one(field_file):
    grid = Split(DataOptions(problem="shallow-water", data=field_file("shallow-water"), **FEW)).grid
    assert grid.weights is not None
    assert float(grid.weights.mean()) == pytest.approx(1.0, abs=1e-6)
    assert grid.geometry == Sphere("legendre-gauss")


def copy_with(source: Path, target: Path, change: Callable[[h5py.File], None]) -> Path:
    shutil.copy(source, target)
    with h5py.File(target, "r+") as file:
        change(file)
    return target


def test_samples_that_nothing_can_be_learned_from_are_named(field_file, tmp_path):
    def zero(file: h5py.File) -> None:
        file["solution"][1] = 0

    def constant(file: h5py.File) -> None:
        file["inputs"][...] = 3

    tries = {zero: "sample 1 is zero throughout", constant: "permeability is 3 everywhere"}
    for number, (change, said) in enumerate(tries.items()):
        path = copy_with(field_file("darcy"), tmp_path / f"{number}.h5", change)
        split = Split(DataOptions(problem="darcy", data=path, **FEW))
        with pytest.raises(UserError, match=said):
            split.load(split.train)


def test_a_preset_leaves_the_resolution_of_a_given_file_alone(field_file, capsys):
    words = ["--problem", "darcy", "--preset", "smoke"]
    of_file = parse(TrainConfig, [*words, "--data", str(field_file("darcy"))], prog="x")
    assert (parse(TrainConfig, words, prog="x").resolution, of_file.resolution) == (16, None)
