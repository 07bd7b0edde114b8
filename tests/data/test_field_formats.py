"""The reader: generated files and every public layout; damaged files are one sentence."""

import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from scipy.io import savemat
from torch.utils.data import DataLoader

from data.fields.file import write
from data.fields.fno_matlab import viscosity_in_name
from data.fields.geometry import Box, Sphere
from data.fields.layout import Grid, Layout
from data.fields.reader import open_fields
from lab.errors import UserError

SAMPLES, SIDE, FRAMES = 5, 8, 7


@pytest.fixture(scope="module")
def fields() -> np.ndarray:
    """w[sample, x, y, frame], frame 0 being the initial field; every value differs."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((SAMPLES, SIDE, SIDE, FRAMES + 1)).astype(np.float32)


def write_generated(path: Path, fields: np.ndarray) -> Path:
    samples, side, _, frames = fields.shape
    grid, times = Grid.of(Box(), side), torch.arange(1.0, frames, dtype=torch.float64)
    known = {"parameters": {"nu": 1e-3}, "fingerprint": "0123456789abcdef"}
    layout = Layout("navier-stokes", ("vorticity",), grid, times, inputs=("vorticity",), **known)
    write(path, layout, range(samples), ((w[..., :1], w[..., 1:, None]) for w in fields))
    return path


def write_old(path: Path, fields: np.ndarray) -> Path:
    """As `python -m data.navier_stokes` wrote before there was one format."""
    samples, side, _, frames = fields.shape
    with h5py.File(path, "w") as file:
        file.attrs.update({"nu": 1e-3, "final_time": frames - 1, "resolution": side, "precision": "float32"})
        file.attrs.update({"fingerprint": "0123456789abcdef", "numbers_version": 1})
        file.attrs.update({"first_sample": 0, "num_samples": samples})
        file.create_dataset("a", data=fields[..., 0], chunks=(1, side, side))
        file.create_dataset("u", data=fields[..., 1:], chunks=(1, side, side, frames - 1))
        file["t"] = np.arange(1.0, frames)
    return path


def write_v5(path: Path, fields: np.ndarray) -> Path:
    times = np.arange(1.0, fields.shape[-1])[None]
    savemat(path, {"a": fields[..., 0], "u": fields[..., 1:], "t": times})
    return path


def write_v73(path: Path, fields: np.ndarray) -> Path:
    """HDF5 behind MATLAB's 512-byte header, the axes in reverse."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in (("a", fields[..., 0]), ("u", fields[..., 1:])):
            file[name] = values.T
            file[name].attrs["MATLAB_class"] = np.bytes_("single")
        file["t"] = np.arange(1.0, fields.shape[-1])[:, None]
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116) + bytes(8) + b"\x00\x02IM")
    return path


LAYOUTS = {
    "navier_stokes_nu1e-3_N5_T7_8x8_seed0.h5": write_generated,
    "navier_stokes_nu1e-3_N5_T7_8x8_seed0_float32.h5": write_old,
    "ns_V1e-3_N5000_T50.mat": write_v73,
    "NavierStokes_V1e-3_N1200_T20.mat": write_v5,
}


@pytest.fixture(params=LAYOUTS)
def file(request: pytest.FixtureRequest, tmp_path: Path, fields: np.ndarray) -> Path:
    return LAYOUTS[request.param](tmp_path / request.param, fields)


def test_every_layout_gives_the_same_trajectories(file: Path, fields: np.ndarray) -> None:
    found = open_fields(file)
    assert len(found) == SAMPLES
    assert (found.problem, found.names, found.static) == ("navier-stokes", ("vorticity",), False)
    assert (found.geometry, found.parameters["nu"]) == (Box(), 1e-3)
    assert found.times.tolist() == list(range(1, FRAMES + 1))
    assert np.array_equal(found.load()[..., 0].numpy(), fields[..., 1:])
    assert found[2].dtype == torch.float32


def test_the_initial_field_stays_available(tmp_path: Path, fields: np.ndarray) -> None:
    for write_one in (write_generated, write_old):
        found = open_fields(write_one(tmp_path / f"{write_one.__name__}.h5", fields)).split(1, 2)[1]
        assert np.array_equal(found.load_inputs()[..., 0].numpy(), fields[3:, ..., 0])


def test_every_other_point_is_a_coarser_file(file: Path, fields: np.ndarray) -> None:
    coarse = open_fields(file).at_resolution(4).split(3, 1)[0]
    assert np.array_equal(coarse.load()[..., 0].numpy(), fields[:3, ::2, ::2, 1:])
    assert coarse.grid.rows.tolist() == [0.0, 0.25, 0.5, 0.75]
    assert coarse.describe()["grid"] == [4, 4]
    with pytest.raises(UserError, match=r"--resolution 3 .* 8 x 8 points .* possible are 8, 4\.$"):
        open_fields(file).at_resolution(3)


def test_split_is_first_to_train_and_last_to_test(file: Path, fields: np.ndarray) -> None:
    train, test = open_fields(file, num_samples=4, frames=3).split(2, 1)
    assert np.array_equal(train.load()[..., 0].numpy(), fields[:2, ..., 1:4])
    assert np.array_equal(test.load()[..., 0].numpy(), fields[3:4, ..., 1:4])


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_loader_workers_read_what_the_parent_reads(file: Path, context: str) -> None:
    trajectories = open_fields(file)
    expected = trajectories.load()
    if context == "spawn":
        assert torch.equal(pickle.loads(pickle.dumps(trajectories)).load(), expected)
        return
    loader = DataLoader(trajectories, batch_size=2, num_workers=2, multiprocessing_context="fork")
    assert torch.equal(torch.cat(list(loader)), expected)


def test_pickles_stay_small(file: Path) -> None:
    trajectories = open_fields(file)
    trajectories.load()
    assert len(pickle.dumps(trajectories)) < 5000


def test_a_straight_copy_of_a_public_file_is_recognised_by_its_times(
    tmp_path: Path, fields: np.ndarray
) -> None:
    path = tmp_path / "copy.h5"
    with h5py.File(path, "w") as file:
        file["u"], file["t"] = fields[..., 1:], np.arange(1.0, FRAMES + 1)
    assert np.array_equal(open_fields(path).load()[..., 0].numpy(), fields[..., 1:])


@pytest.mark.parametrize(
    ("name", "nu"),
    [
        ("ns_V1e-3_N5000_T50.mat", 1e-3),
        ("ns_V1e-4_N10000_T30.mat", 1e-4),
        ("NavierStokes_V1e-5_N1200_T20.mat", 1e-5),
        ("ns_data_V1e-4_N20_T50_R256test.mat", 1e-4),
        ("ns_data_V100_N1000_T50_1.mat", None),
        ("ns_data_V10000_N1200_T20.mat", None),
    ],
)
def test_public_names_tell_the_viscosity(name: str, nu: float | None) -> None:
    assert viscosity_in_name(name) == nu


def test_fingerprints_of_public_files_follow_their_content(tmp_path: Path, fields: np.ndarray) -> None:
    one = open_fields(write_v5(tmp_path / "ns_V1e-3_a.mat", fields)).describe()["fingerprint"]
    same = open_fields(write_v73(tmp_path / "ns_V1e-3_b.mat", fields)).describe()["fingerprint"]
    other = open_fields(write_v5(tmp_path / "ns_V1e-3_c.mat", 2 * fields)).describe()["fingerprint"]
    assert one == same != other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_samples": 6}, "has 5 samples, fewer than the 6 asked for"),
        ({"frames": 50}, "has 7 frames, fewer than the 50 asked for"),
    ],
)
def test_what_the_file_cannot_give_is_refused(file: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        open_fields(file, **options)


def test_another_viscosity_is_refused(file: Path) -> None:
    found = open_fields(file)
    found.expect(nu=1e-3)
    with pytest.raises(UserError, match=r"has nu = 0\.001 where 1e-05 was expected"):
        found.expect(nu=1e-5)


def test_a_split_larger_than_the_file_is_refused(file: Path) -> None:
    with pytest.raises(UserError, match="offers 5 samples, fewer than 4 to train on and 2 to test on"):
        open_fields(file).split(4, 2)


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_a_truncated_file_is_refused(file: Path, share: float) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UserError, match=r"truncated|cannot be read|not a whole"):
        open_fields(file).load()


def test_a_file_without_u_is_read_as_plain_arrays(tmp_path: Path) -> None:
    savemat(tmp_path / "x.mat", {"v": np.zeros((2, 4, 4, 3))})
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["v"] = np.zeros((2, 4, 4, 3))
    for name in ("x.mat", "x.h5"):
        with pytest.raises(UserError, match=r"'v' of shape \(2, 4, 4, 3\) may not be \(sample, time, x, y\)"):
            open_fields(tmp_path / name)


def test_a_wrong_shape_is_refused(tmp_path: Path) -> None:
    savemat(tmp_path / "x.mat", {"u": np.zeros((2, 4, 5, 3))})
    with pytest.raises(UserError, match=r"u of shape \(2, 4, 5, 3\); \(samples, n, n, frames\) was expected"):
        open_fields(tmp_path / "x.mat")


@pytest.mark.parametrize("name", LAYOUTS)
def test_nan_is_refused_and_its_sample_named(tmp_path: Path, fields: np.ndarray, name: str) -> None:
    damaged = fields.copy()
    damaged[3, 1, 2, 4] = np.nan
    with pytest.raises(UserError, match="sample 3 contains NaN"):
        open_fields(LAYOUTS[name](tmp_path / name, damaged)).load()


def test_an_absent_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        open_fields(tmp_path / "nothing.mat")


@pytest.mark.parametrize("problem", ["darcy", "burgers-walls", "shallow-water"])
def test_field_files_without_a_geometry_are_told_by_their_problem(tmp_path: Path, problem: str) -> None:
    geometry = Sphere() if problem == "shallow-water" else Box("walls", "walls")
    inputs = ("permeability",) if problem == "darcy" else ()
    grid, static = Grid.of(geometry, 8, 16), problem == "darcy"
    times = torch.zeros(1 if static else 3)
    layout = Layout(problem, ("a", "b"), grid, times, inputs=inputs, static=static, fingerprint="f")
    values = np.random.default_rng(0).standard_normal((2, *layout.shape)).astype(np.float32)
    given = values[..., 0, :1] if static else [None, None]
    path = tmp_path / "old.h5"
    write(path, layout, range(2), zip(given, values, strict=True))
    with h5py.File(path, "r+") as file:
        del file.attrs["geometry"], file.attrs["static"]
        file["weights"] = np.ones(8)
    found = open_fields(path)
    assert (found.geometry, found.static, found.problem) == (geometry, static, problem)
    assert np.array_equal(found.load().numpy(), values)
