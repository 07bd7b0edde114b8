"""Other people's files, written by the description of their layout: read, or refused in one sentence."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from scipy.io import netcdf_file, savemat

from data.fields.__main__ import convert, info, show
from data.fields.geometry import Box, Line, Sphere
from data.fields.options import Told
from data.fields.reader import open_fields
from lab.cli import run
from lab.errors import UserError
from tests.data.field_files import (
    COLUMNS,
    FRAMES,
    LINES,
    ROWS,
    SAMPLES,
    WRITERS,
    boundary,
    centres,
    random,
    write_darcy,
    write_flow,
    write_groups,
    write_line,
    write_matlab_darcy,
    write_netcdf3,
    write_npy,
    write_well,
    write_zarr,
)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_is_read_as_its_layout_says(tmp_path: Path, kind: str) -> None:
    write, expected = WRITERS[kind]
    path, values = write(tmp_path)
    found = open_fields(path)
    np.testing.assert_allclose(
        found.load().numpy(), values, rtol=1e-6, atol=1e-7
    )  # packed values are rounded
    assert found[1].dtype == torch.float32
    for key in ("problem", "names", "geometry", "inputs", "constants", "units"):
        assert getattr(found, key) == expected.get(key, getattr(found, key))
    assert found.static == expected.get("static", False)
    if "dt" in expected:
        assert found.times.tolist() == pytest.approx((np.arange(FRAMES) * expected["dt"]).tolist())
    if found.static:
        assert np.allclose(found.load_inputs()[..., 0].numpy(), 2 * values[..., 0, 0])
    assert bool(found.source.layout.unsaid) == ("geometry" not in expected)
    if not found.static:
        assert torch.equal(found.part(1, slice(2, 4)), found[1][..., 2:4, :])
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
    if path.is_dir():
        path_cut = max(
            (each for each in path.rglob("*") if each.is_file()), key=lambda each: each.stat().st_size
        )
    else:
        path_cut = path
    whole = path_cut.read_bytes()
    path_cut.write_bytes(whole[: int(share * len(whole))])
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


def test_the_points_of_the_matlab_file_include_the_walls_and_so_do_fewer(tmp_path: Path) -> None:
    path, values = write_matlab_darcy(tmp_path)
    found = open_fields(path)
    assert found.grid.rows.tolist() == [i / ROWS for i in range(ROWS + 1)]
    coarse = found.at_resolution(ROWS // 2 + 1)
    assert coarse.grid.rows.tolist() == [2 * i / ROWS for i in range(ROWS // 2 + 1)]
    assert np.array_equal(coarse.load().numpy(), values[:, ::2, ::2])
    assert np.array_equal(coarse.load_inputs().numpy(), 2 * values[:, ::2, ::2, 0])


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
        ({"u": (5, 16, 16)}, r"may not be \(sample, time, x\).*--axes sample,x,time"),
        ({"u": (5, 2, 3, 4, 5, 6)}, r"where .*\(sample, time, x, y\) or .*name the two arrays of a map"),
        ({"u": (5, 7, 16, 16), "v": (5, 6, 16, 16)}, r"'v' has the shape \(5, 6, 16, 16\)"),
        ({"u": (5, 7, 16, 16), "x": (15,)}, r"'coordinate x' has the shape \(15,\)"),
        ({"u": (5, 64)}, r"no array of fields, .* but u \(5, 64\); two arrays of a map are called inputs"),
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
        ({"units": "height"}, "--units takes names and units"),
        ({"units": "height=m"}, "--units: .* has no field 'height'; it has u"),
        ({"keeps": "turn x"}, r"'turn x' is no symmetry of own.npz, .*; it may have mirror x, mirror y\."),
        ({"keeps": "mirror x:v"}, "'v', which is no field"),
        ({"time_step": 0.0}, "--time-step must be above 0"),
    ],
)
def test_what_cannot_be_told_is_refused(tmp_path: Path, told: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "own.npz", u=random(SAMPLES, FRAMES, ROWS, COLUMNS))
    with pytest.raises(UserError, match=message):
        open_fields(tmp_path / "own.npz", told=Told(**told))


def test_other_dimensions_of_pdebench_and_the_well_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "3D_CFD.hdf5", "w") as file:
        for name in ("density", "pressure", "Vx", "Vy", "Vz"):
            file[name] = np.zeros((2, 3, 4, 4, 4))
    well, _ = write_well(tmp_path, dimensions=3)
    for path in (tmp_path / "3D_CFD.hdf5", well):
        with pytest.raises(UserError, match="holds fields with 3 space dimensions, and two are the limit"):
            open_fields(path)


def test_constants_are_those_of_the_file(tmp_path: Path) -> None:
    path, values = write_line(tmp_path)
    constants = open_fields(path).load_constants().numpy()
    assert np.array_equal(constants[..., 0], 2 * values[:, :, :, 0, 0])
    assert np.array_equal(constants[:, 3, 0, 1], [0.5, 1.5, 2.5])
    path, _ = write_well(tmp_path)
    with h5py.File(path) as file:
        mask = file["t0_fields/mask"][()]
    constants = open_fields(path).load_constants().numpy()
    assert np.array_equal(constants[1, ..., 0], mask)
    assert np.array_equal(constants[:, 3, 4, 1], [0.0, 1.0, 2.0])


def test_a_file_tells_its_geometry_and_symmetries_by_attributes(tmp_path: Path) -> None:
    layout = open_fields(write_zarr(tmp_path)[0]).source.layout
    assert (layout.grid.geometry, layout.unsaid) == (Box(), ())
    assert layout.symmetries == ("mirror x", "turn y")
    told = Told(walls="y", keeps="mirror y", units="u=cm/s,time=ms", time_step=0.1)
    layout = open_fields(tmp_path / "store.zarr", told=told).source.layout
    assert (layout.grid.geometry, layout.symmetries) == (Box("periodic", "walls"), ("mirror y",))
    assert layout.units == {"u": "cm/s", "time": "ms"}
    assert layout.times.tolist() == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize(
    ("attributes", "told", "message"),
    [
        (
            {"periodic": "true"},
            {"walls": "x,y"},
            "--periodic takes x, y or x,y, not 'true', as the attribute 'per",
        ),
        (
            {"sphere": "yes"},
            {"sphere": "equiangular"},
            "--sphere takes legendre-gauss or equiangular, not 'yes', as",
        ),
        (
            {"units": "m/s"},
            {"units": "u=m/s"},
            "--units takes names and units, .*, not 'm/s', as the attribute",
        ),
        ({"keeps": "turn x"}, {"periodic": "x,y"}, "'turn x' is no symmetry of own.h5"),
        ({"keeps": "rotation"}, {"keeps": "mirror x"}, "'rotation' is no symmetry of own.h5"),
    ],
)
def test_flags_count_more_than_what_a_file_says(
    tmp_path: Path, attributes: dict[str, str], told: dict[str, Any], message: str
) -> None:
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["u"] = random(SAMPLES, FRAMES, ROWS, COLUMNS)
        file.attrs.update(attributes)
    with pytest.raises(UserError, match=message):
        open_fields(tmp_path / "own.h5")
    layout = open_fields(tmp_path / "own.h5", told=Told(**told)).source.layout
    assert layout.symmetries == {"turn x": ("turn x",), "rotation": ("mirror x",)}.get(
        attributes.get("keeps"), ()
    )


def test_fields_that_are_left_out_may_have_units_and_symmetries(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["u"], file["v"] = random(2, SAMPLES, FRAMES, ROWS, COLUMNS)
        file.attrs.update({"periodic": "x,y", "units": "u=m,v=s", "keeps": "mirror x:v,mirror y:u"})
    layout = open_fields(tmp_path / "own.h5", told=Told(fields="u")).source.layout
    assert (layout.units, layout.symmetries) == ({"u": "m"}, ("mirror y:u",))


def test_times_that_count_from_a_date_have_the_unit_before_it(tmp_path: Path) -> None:
    path, _ = write_netcdf3(tmp_path)
    with netcdf_file(path, "a") as file:
        file.variables["time"].units = "hours since 1979-01-01 00:00"
    assert open_fields(path).units["time"] == "hours"


def test_arrays_are_read_in_the_order_that_is_told(tmp_path: Path) -> None:
    u, v = random(2, SAMPLES, FRAMES, ROWS, COLUMNS)
    np.savez(tmp_path / "own.npz", u=u, v=v)
    found = open_fields(tmp_path / "own.npz", told=Told(fields="v,u"))
    assert found.names == ("v", "u")
    assert np.array_equal(found.load()[..., 0].permute(0, 3, 1, 2).numpy(), v)


def test_complex_numbers_are_refused(tmp_path: Path) -> None:
    u = random(SAMPLES, FRAMES, ROWS, COLUMNS)
    np.savez(tmp_path / "own.npz", psi=u + 1j * u, v=u)
    savemat(tmp_path / "own.mat", {"psi": u + 1j * u, "v": u})
    for name in ("own.npz", "own.mat"):
        with pytest.raises(
            UserError, match=r"'psi' holds complex numbers, .* save its real and its imaginary"
        ):
            open_fields(tmp_path / name)
        assert open_fields(tmp_path / name, told=Told(fields="v")).names == ("v",)


@pytest.mark.parametrize(
    ("latitudes", "message"),
    [
        (np.linspace(90, -90, ROWS), None),
        (np.deg2rad(np.linspace(0, 180, ROWS)), None),
        (np.linspace(-90, 90, ROWS), "its latitudes run from south to north"),
        (
            90 - 180 * centres(ROWS),
            r"78.75 to -78.75 degrees, are not those of --sphere equiangular, 90.00 to -90.00;",
        ),
    ],
)
def test_latitudes_are_those_of_the_sphere_that_is_told(
    tmp_path: Path, latitudes: np.ndarray, message: str | None
) -> None:
    np.savez(tmp_path / "own.npz", u=random(SAMPLES, FRAMES, ROWS, COLUMNS), lat=latitudes)
    told = Told(sphere="equiangular")
    if message is None:
        assert open_fields(tmp_path / "own.npz", told=told).geometry == Sphere("equiangular")
        return
    with pytest.raises(UserError, match=message):
        open_fields(tmp_path / "own.npz", told=told)


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
    line = kind in LINES
    status, said = command("convert", path, tmp_path / "out.h5", *boundary(kind), "--keeps", "mirror x")
    assert status == 0, said
    found = open_fields(tmp_path / "out.h5")
    np.testing.assert_allclose(found.load().numpy(), values, rtol=1e-6, atol=1e-7)
    before = open_fields(path, told=Told(periodic="x", walls="" if line else "y"))
    assert found.geometry == (Line() if line else Box("periodic", "walls"))
    assert torch.equal(found.load_constants(), before.load_constants())
    assert found.source.layout.symmetries == ("mirror x",)
    for key in ("problem", "names", "inputs", "static", "fingerprint", "parameters", "constants", "units"):
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
    across = "points on a line" if kind in LINES else f"x {values.shape[2]}"
    assert f"grid      {values.shape[1]} {across}" in said
    assert ("not said by the file for x" in said) == ("geometry" not in WRITERS[kind][1])
    for name in open_fields(path).names:
        assert name in said
    if kind in ("well", "map", "line flow", "line map"):
        status, said = command(
            "show", path, "--samples", "1", "--frames", "2", "--out", tmp_path / "pictures"
        )
        assert status == 0, said
        assert (tmp_path / "pictures" / f"{path.stem}.png").is_file()
