"""Other people's files, each written here by the description of its layout: read, or refused in one sentence."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from scipy.io import savemat

from data.fields.__main__ import convert, info, show
from data.fields.geometry import Box, Sphere
from data.fields.options import Told
from data.fields.reader import open_fields
from lab.cli import run
from lab.errors import UserError
from monarch_core.transforms.sphere import quadrature

SAMPLES, FRAMES, ROWS, COLUMNS = 3, 5, 8, 12
WALLS = Box("walls", "walls")
Written = tuple[Path, np.ndarray]
"""A file, and what the reader is to make of it: (sample, row, column, frame, field)."""


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def centres(n: int, length: float = 1.0) -> np.ndarray:
    return (np.arange(n) + 0.5) / n * length


def write_flow(
    folder: Path, name: str = "2D_CFD_Rand_M0.1_Eta0.01_Zeta0.01_periodic_128_Train.hdf5"
) -> Written:
    values = random(SAMPLES, FRAMES, ROWS, COLUMNS, 4)
    with h5py.File(folder / name, "w") as file:
        for i, field in enumerate(("density", "pressure", "Vx", "Vy")):
            file[field] = values[..., i]
        file["x-coordinate"], file["y-coordinate"] = centres(ROWS), centres(COLUMNS, 2.0)
        file["t-coordinate"] = np.arange(FRAMES + 1) * 0.05  # PDEBench adds the end of the last step
    return folder / name, np.moveaxis(values, 1, 3)


def write_groups(folder: Path, channels: int = 2) -> Written:
    values = random(SAMPLES, FRAMES, ROWS, COLUMNS, channels)
    path = folder / "2D_diff-react_NA_NA.h5"
    with h5py.File(path, "w") as file:
        for i, sample in enumerate(values):
            group = file.create_group(f"{i:04d}")
            group["data"] = sample
            group["grid/x"], group["grid/y"] = centres(ROWS, 2.0) - 1, centres(COLUMNS, 2.0) - 1
            group["grid/t"] = np.linspace(0, 5, FRAMES)
    return path, np.moveaxis(values, 1, 3)


def write_darcy(folder: Path) -> Written:
    values = random(SAMPLES, 1, ROWS, ROWS)
    path = folder / "2D_DarcyFlow_beta1.0_Train.hdf5"
    with h5py.File(path, "w") as file:
        file["tensor"], file["nu"] = values, 2 * values[:, 0]
        file["x-coordinate"], file["y-coordinate"] = centres(ROWS), centres(ROWS)
        file.attrs["beta"] = 1.0
    return path, np.moveaxis(values, 1, 3)[..., None]


def write_matlab_darcy(folder: Path) -> Written:
    values = random(SAMPLES, ROWS + 1, ROWS + 1)
    path = folder / "piececonst_r9_N3_smooth1.mat"
    savemat(path, {"coeff": 2.0 * values.astype(np.float64), "sol": values, "Kcoeff": values[..., :1]})
    return path, values[..., None, None]


def write_well(folder: Path, sphere: bool = False, dimensions: int = 2) -> Written:
    """A scalar, a vector, and two fields that lack axes."""
    axes = ["theta", "phi"] if sphere else ["x", "y"]
    scalar, vector = random(SAMPLES, FRAMES, ROWS, COLUMNS), random(SAMPLES, FRAMES, ROWS, COLUMNS, 2)
    mask, forcing = random(ROWS, COLUMNS), random(SAMPLES, FRAMES, COLUMNS)
    path = folder / "well.hdf5"
    with h5py.File(path, "w") as file:
        file.attrs.update(
            {"dataset_name": "shear_flow", "n_spatial_dims": dimensions, "n_trajectories": SAMPLES}
        )
        file.attrs["grid_type"] = "spherical" if sphere else "cartesian"
        file.attrs["simulation_parameters"], file.attrs["Reynolds"] = ["Reynolds"], 1e4
        about = file.create_group("dimensions")
        about.attrs["spatial_dims"] = axes
        about["time"] = np.arange(FRAMES) * 0.1
        rows = quadrature("legendre-gauss", ROWS)[0].numpy() if sphere else np.arange(ROWS) / ROWS
        columns = np.arange(COLUMNS) / COLUMNS * (2 * np.pi if sphere else 3)
        about[axes[0]], about[axes[1]] = rows, columns
        for axis, kind in zip(axes, ("PERIODIC", "WALL"), strict=True):
            condition = file.create_group(f"boundary_conditions/{axis}_{kind.lower()}")
            condition.attrs["associated_dims"], condition.attrs["bc_type"] = [axis], kind
        fields: list[tuple[str, str, np.ndarray, tuple[bool, bool, list[bool]]]] = [
            ("t0_fields", "tracer", scalar, (True, True, [True, True])),
            ("t0_fields", "mask", mask, (False, False, [True, True])),
            ("t0_fields", "forcing", forcing, (True, True, [False, True])),
            ("t1_fields", "velocity", vector, (True, True, [True, True])),
        ]
        for group, name, values, (sample, time, space) in fields:
            file[f"{group}/{name}"] = values
            varies = {"sample_varying": sample, "time_varying": time, "dim_varying": space}
            file[f"{group}/{name}"].attrs.update(varies)
        file["t0_fields"].attrs["field_names"] = ["tracer", "mask", "forcing"]
        file["t1_fields"].attrs["field_names"] = ["velocity"]
        file.create_group("t2_fields").attrs["field_names"] = np.array([], dtype="S1")
    full = np.broadcast_to(mask, scalar.shape), np.broadcast_to(forcing[:, :, None], scalar.shape)
    return path, np.moveaxis(np.concatenate([np.stack([scalar, *full], -1), vector], -1), 1, 3)


def write_npy(folder: Path) -> Written:
    values = random(SAMPLES, FRAMES, ROWS, COLUMNS)
    np.save(folder / "wind.npy", values.astype(np.float64))
    return folder / "wind.npy", np.moveaxis(values, 1, 3)[..., None]


def write_npz(folder: Path) -> Written:
    values = random(SAMPLES, FRAMES, ROWS, COLUMNS, 3)
    coordinates = {"x": centres(ROWS), "y": centres(COLUMNS), "t": np.arange(FRAMES) * 0.5}
    np.savez(folder / "own.npz", velocity=values[..., :2], p=values[..., 2], **coordinates)
    return folder / "own.npz", np.moveaxis(values, 1, 3)


def write_labelled(folder: Path) -> Written:
    """As NetCDF-4 does: dimensions are data sets that are attached as scales."""
    values = random(SAMPLES, ROWS, COLUMNS, FRAMES)
    path = folder / "own.nc"
    with h5py.File(path, "w") as file:
        file["wave/h"] = np.moveaxis(values, 3, 0)
        for i, (name, n) in enumerate((("time", FRAMES), ("batch", SAMPLES), ("x", ROWS), ("y", COLUMNS))):
            file[name] = np.arange(n) * 0.5
            file[name].make_scale(name)
            file["wave/h"].dims[i].attach_scale(file[name])
    return path, values[..., None]


def write_map(folder: Path) -> Written:
    values = random(SAMPLES, ROWS, COLUMNS)
    with h5py.File(folder / "map.h5", "w") as file:
        file["inputs"], file["outputs"] = np.stack([2 * values, values], -1), values
    return folder / "map.h5", values[..., None, None]


WRITERS: dict[str, tuple[Callable[[Path], Written], dict[str, Any]]] = {
    "flow": (
        write_flow,
        {
            "names": ("density", "pressure", "Vx", "Vy"),
            "geometry": Box(),
            "dt": 0.05,
            "problem": "compressible-flow",
        },
    ),
    "groups": (write_groups, {"names": ("activator", "inhibitor"), "geometry": WALLS, "dt": 1.25}),
    "darcy": (
        write_darcy,
        {"problem": "darcy", "geometry": WALLS, "inputs": ("permeability",), "static": True},
    ),
    "matlab darcy": (
        write_matlab_darcy,
        {"problem": "darcy", "geometry": WALLS, "inputs": ("permeability",), "static": True},
    ),
    "well": (
        write_well,
        {
            "problem": "shear_flow",
            "names": ("tracer", "mask", "forcing", "velocity_x", "velocity_y"),
            "geometry": Box("periodic", "walls"),
            "dt": 0.1,
        },
    ),
    "npy": (write_npy, {"names": ("wind",), "problem": "own", "dt": 1.0}),
    "npz": (write_npz, {"names": ("velocity0", "velocity1", "p"), "dt": 0.5}),
    "labelled": (write_labelled, {"names": ("wave/h",), "dt": 0.5}),
    "map": (write_map, {"names": ("outputs",), "inputs": ("inputs0", "inputs1"), "static": True}),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_is_read_as_its_layout_says(tmp_path: Path, kind: str) -> None:
    write, expected = WRITERS[kind]
    path, values = write(tmp_path)
    found = open_fields(path)
    assert np.array_equal(found.load().numpy(), values)
    assert found[1].dtype == torch.float32
    for key in ("problem", "names", "geometry", "inputs"):
        assert getattr(found, key) == expected.get(key, getattr(found, key))
    assert found.static == expected.get("static", False)
    if "dt" in expected:
        assert found.times.tolist() == pytest.approx((np.arange(FRAMES) * expected["dt"]).tolist())
    if found.static:
        assert np.allclose(found.load_inputs()[..., 0].numpy(), 2 * values[..., 0, 0])
    assert bool(found.source.layout.unsaid) == ("geometry" not in expected)
    again = pickle.dumps(found)
    assert len(again) < 6000
    assert torch.equal(pickle.loads(again).load(), found.load())


@pytest.mark.parametrize("kind", WRITERS)
def test_fingerprints_follow_the_content(tmp_path: Path, kind: str) -> None:
    path, _ = WRITERS[kind][0](tmp_path)
    (tmp_path / "other").mkdir()
    same, _ = WRITERS[kind][0](tmp_path / "other")
    assert open_fields(path).fingerprint == open_fields(same).fingerprint != ""


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("share", [0.02, 0.6])
def test_a_truncated_file_is_refused(tmp_path: Path, kind: str, share: float) -> None:
    path, _ = WRITERS[kind][0](tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UserError, match=r"truncated|not a whole|not a file of fields"):
        open_fields(path).load()


def test_lengths_and_parameters_are_kept(tmp_path: Path) -> None:
    assert open_fields(write_flow(tmp_path)[0]).parameters == pytest.approx({"length_x": 1, "length_y": 2})
    assert open_fields(write_darcy(tmp_path)[0]).parameters == {"beta": 1.0}
    well = open_fields(write_well(tmp_path)[0]).parameters
    assert well == pytest.approx({"Reynolds": 1e4, "length_x": 1.0, "length_y": 3.0})


def test_shallow_water_of_pdebench_is_told_by_its_one_channel(tmp_path: Path) -> None:
    found = open_fields(write_groups(tmp_path, channels=1)[0])
    assert (found.problem, found.names) == ("dam-break", ("height",))


def test_the_points_of_the_matlab_file_include_the_walls(tmp_path: Path) -> None:
    assert open_fields(write_matlab_darcy(tmp_path)[0]).grid.rows.tolist() == [
        i / ROWS for i in range(ROWS + 1)
    ]


def test_a_spherical_file_has_the_geometry_of_its_latitudes(tmp_path: Path) -> None:
    path, values = write_well(tmp_path, sphere=True)
    found = open_fields(path)
    assert found.geometry == Sphere("legendre-gauss")
    assert found.names[-2:] == ("velocity_theta", "velocity_phi")
    assert np.array_equal(found.load().numpy(), values)
    found.source._file.close()  # type: ignore[attr-defined]
    with h5py.File(path, "r+") as file:
        file["dimensions/theta"][:] = file["dimensions/theta"][:][::-1]
    south_first = open_fields(path)
    assert np.array_equal(south_first.load().numpy(), values[:, ::-1])


def test_what_is_told_counts(tmp_path: Path) -> None:
    path, values = write_flow(tmp_path, "flow.hdf5")
    assert open_fields(path).source.layout.unsaid == ("x", "y")
    half = open_fields(path, told=Told(periodic="x"))
    assert (half.geometry, half.source.layout.unsaid) == (Box("periodic", "walls"), ("y",))
    whole = open_fields(path, told=Told(periodic="x", walls="y", fields="Vy,density"))
    assert (whole.names, whole.source.layout.unsaid) == (("Vy", "density"), ())
    assert np.array_equal(whole.load().numpy(), values[..., [3, 0]])
    assert len({fields.fingerprint for fields in (open_fields(path), half, whole)}) == 3
    assert open_fields(path, told=Told(sphere="equiangular")).geometry == Sphere("equiangular")


def test_axes_and_arrays_of_plain_files_can_be_told(tmp_path: Path) -> None:
    values = random(SAMPLES, ROWS, ROWS, FRAMES)
    np.savez(tmp_path / "a.npz", u=values, other=np.zeros((2, 7, 3)))
    told = Told(fields="u", axes="sample,x,y,time")
    assert np.array_equal(open_fields(tmp_path / "a.npz", told=told).load()[..., 0].numpy(), values)
    savemat(tmp_path / "b.mat", {"v": values})
    told = Told(axes="sample,x,y,field", periodic="x,y")
    found = open_fields(tmp_path / "b.mat", told=told)
    assert (found.frames, found.geometry) == (1, Box())
    assert np.array_equal(found.load()[..., 0, :].numpy(), values)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"u": (5, 16, 16, 7)}, r"may not be \(sample, time, x, y\).*--axes sample,x,y,time"),
        ({"u": (5, 16, 16, 16)}, r"may not be \(sample, time, x, y\)"),
        ({"u": (5, 16, 16)}, r"where \(sample, time, x, y\) or .*name the two arrays of a map"),
        (
            {"u": (5, 7, 16, 16), "v": (5, 6, 16, 16)},
            r"'v without its fields' has the shape \(5, 6, 16, 16\)",
        ),
        ({"u": (5, 7, 16, 16), "x": (15,)}, r"'coordinate x' has the shape \(15,\)"),
        ({"u": (5, 64)}, "fields on a line; only fields with two space dimensions"),
        ({"u": (5, 3, 8, 8, 8)}, "3 space dimensions, and two are the limit"),
        ({"u": (5,)}, r"no array of fields, .* but u \(5,\)"),
        ({"inputs": (5, 1, 8, 8), "outputs": (5, 1, 8, 8)}, r"may not be \(sample, x, y, field\)"),
        ({"u": (0, 7, 16, 16)}, "holds no samples"),
    ],
)
def test_ambiguous_and_impossible_arrays_are_refused(
    tmp_path: Path, arrays: dict[str, tuple[int, ...]], message: str
) -> None:
    np.savez(tmp_path / "own.npz", **{name: np.zeros(shape) for name, shape in arrays.items()})
    with pytest.raises(UserError, match=message):
        open_fields(tmp_path / "own.npz")


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"axes": "sample,x,time"}, "do not fit 'u'"),
        ({"axes": "sample,time,x,height"}, "an axis 'height' is not known"),
        ({"axes": "sample,x,y,z"}, "3 space dimensions"),
        ({"fields": "v"}, r"no array 'v' of fields; it holds u"),
        ({"periodic": "z"}, "--periodic takes x, y or x,y"),
        ({"periodic": "x", "walls": "x"}, "x cannot be both"),
        ({"sphere": "equiangular", "walls": "x"}, "--sphere says all"),
    ],
)
def test_what_cannot_be_told_is_refused(tmp_path: Path, told: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "own.npz", u=random(SAMPLES, FRAMES, ROWS, COLUMNS))
    with pytest.raises(UserError, match=message):
        open_fields(tmp_path / "own.npz", told=Told(**told))


def test_other_dimensions_of_pdebench_and_the_well_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "1D_Burgers.hdf5", "w") as file:
        file["tensor"], file["x-coordinate"] = np.zeros((3, 5, 16)), np.zeros(16)
    with h5py.File(tmp_path / "3D_CFD.hdf5", "w") as file:
        for name in ("density", "pressure", "Vx", "Vy", "Vz"):
            file[name] = np.zeros((2, 3, 4, 4, 4))
    well, _ = write_well(tmp_path, dimensions=3)
    for path, count in (
        (tmp_path / "1D_Burgers.hdf5", "line"),
        (tmp_path / "3D_CFD.hdf5", "3 "),
        (well, "3 "),
    ):
        with pytest.raises(UserError, match=f"holds fields (on a|with) {count}"):
            open_fields(path)


def test_uneven_points_are_refused(tmp_path: Path) -> None:
    path, _ = write_flow(tmp_path)
    with h5py.File(path, "r+") as file:
        file["x-coordinate"][:] = centres(ROWS) ** 2
    with pytest.raises(UserError, match="the points of x are not equally spaced"):
        open_fields(path)


def test_a_file_of_another_kind_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(UserError, match=r"not a file of fields in a format that is known here"):
        open_fields(tmp_path / "notes.txt")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """`python -m data.fields`: exit status, and what was printed."""

    def called(*words: object) -> tuple[int, str]:
        commands = {"info": info, "show": show, "convert": convert}
        status = run("python -m data.fields", commands, [str(word) for word in words])
        out = capsys.readouterr()
        return status, out.out + out.err

    return called


@pytest.mark.parametrize("kind", WRITERS)
def test_convert_keeps_everything(tmp_path: Path, kind: str, command: Callable[..., tuple[int, str]]) -> None:
    path, values = WRITERS[kind][0](tmp_path)
    status, said = command("convert", path, tmp_path / "out.h5", "--periodic", "x", "--walls", "y")
    assert status == 0, said
    found = open_fields(tmp_path / "out.h5")
    assert np.array_equal(found.load().numpy(), values)
    before = open_fields(path, told=Told(periodic="x", walls="y"))
    assert found.geometry == Box("periodic", "walls")
    for key in ("problem", "names", "inputs", "static", "fingerprint", "parameters"):
        assert getattr(found, key) == getattr(before, key)
    assert torch.equal(found.times, before.times)


def test_convert_asks_for_the_boundary(tmp_path: Path, command: Callable[..., tuple[int, str]]) -> None:
    path, _ = write_npy(tmp_path)
    status, said = command("convert", path, tmp_path / "out.h5", "--periodic", "x")
    assert status == 2
    assert "does not say whether its fields are periodic; add --periodic y if they are" in said
    assert not (tmp_path / "out.h5").exists()
    assert command("convert", path, path, "--periodic", "x,y")[0] == 2


@pytest.mark.parametrize("kind", WRITERS)
def test_info_and_show_take_every_format(
    tmp_path: Path, kind: str, command: Callable[..., tuple[int, str]]
) -> None:
    path, values = WRITERS[kind][0](tmp_path)
    status, said = command("info", path)
    assert status == 0, said
    assert f"samples   {SAMPLES}" in said
    assert f"grid      {values.shape[1]} x {values.shape[2]}" in said
    assert ("not said by the file for x and y" in said) == ("geometry" not in WRITERS[kind][1])
    for name in open_fields(path).names:
        assert name in said
    if kind in ("well", "map"):
        status, said = command(
            "show", path, "--samples", "1", "--frames", "2", "--out", tmp_path / "pictures"
        )
        assert status == 0, said
        assert (tmp_path / "pictures" / f"{path.stem}.png").is_file()
