"""Files of fields: made once, whole or not at all, and read back as they were made."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from data.burgers.config import GenerateConfig as BurgersConfig
from data.burgers.generate import solve_samples as solve_burgers
from data.darcy.config import GenerateConfig as DarcyConfig
from data.darcy.generate import solve_samples
from data.fields.generator import ensure, generate
from data.fields.geometry import Box
from data.fields.info import spread
from data.fields.options import ShowConfig, Told
from data.fields.reader import open_fields
from data.fields.show import show
from lab.errors import UserError


def darcy(out: Path | None = None, **changes: object) -> DarcyConfig:
    return DarcyConfig(**{"num_samples": 6, "resolution": 8, "workers": 1, "out": out} | changes)  # type: ignore[arg-type]


def burgers(out: Path | None = None, **changes: object) -> BurgersConfig:
    small = {"num_samples": 3, "resolution": 8, "frames": 4, "workers": 1, "out": out}
    return BurgersConfig(**small | changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(darcy(tmp_path_factory.mktemp("darcy") / "darcy.h5"))


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(burgers(tmp_path_factory.mktemp("burgers") / "burgers.h5"))


def test_a_static_file_gives_inputs_and_solutions(static: Path) -> None:
    fields = open_fields(static)
    expected = solve_samples(darcy().settings, [4])[0]
    assert (fields.problem, fields.names, fields.static, fields.frames) == ("darcy", ("pressure",), True, 1)
    assert np.array_equal(fields.load_inputs()[4], expected[..., 0, :1])
    assert np.array_equal(fields.load()[4], expected[..., 1:])
    assert fields.grid.weights is None
    assert fields.geometry == Box("walls", "walls")
    assert torch.equal(fields.grid.rows, (torch.arange(8, dtype=torch.float64) + 0.5) / 8)


def test_a_moving_file_gives_frames_at_its_times(moving: Path) -> None:
    fields = open_fields(moving)
    expected = solve_burgers(burgers().settings, [1])[0]
    assert (fields.problem, fields.names, fields.static) == ("burgers-walls", ("u", "v"), False)
    assert torch.allclose(fields.times, 0.05 * torch.arange(4, dtype=torch.float64))
    assert np.array_equal(fields.load()[1], expected)
    with pytest.raises(UserError, match="change with time"):
        fields.load_inputs()


def test_a_split_takes_the_first_and_the_last(static: Path) -> None:
    fields = open_fields(static)
    train, test = fields.split(3, 2)
    assert (train.samples, test.samples) == (range(3), range(4, 6))
    assert torch.equal(test.load(), fields.load()[4:])
    assert torch.equal(test.split(1, 1)[1].load_inputs(), fields.load_inputs()[5:])
    with pytest.raises(UserError, match="offers 6 samples, fewer than 5"):
        fields.split(5, 2)


def test_a_description_tells_files_apart(static: Path, moving: Path) -> None:
    described = open_fields(static).split(3, 2)[1].describe()
    assert described["samples"] == [4, 6]
    assert described["grid"] == [8, 8]
    assert described["fingerprint"] == darcy().settings.fingerprint
    assert described["fingerprint"] != open_fields(moving).describe()["fingerprint"]


def test_fields_can_be_sent_to_another_process(moving: Path) -> None:
    fields = open_fields(moving)
    before = fields.load()
    assert torch.equal(pickle.loads(pickle.dumps(fields)).load(), before)


def test_files_of_another_kind_are_refused_in_one_sentence(tmp_path: Path, static: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        open_fields(tmp_path / "absent.h5")
    (tmp_path / "torn.h5").write_bytes(static.read_bytes()[:3000])
    with pytest.raises(UserError, match="not a whole HDF5 file"):
        open_fields(tmp_path / "torn.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["v"] = np.zeros(3)
    with pytest.raises(UserError, match=r"holds no array of fields, .* but v \(3,\)"):
        open_fields(tmp_path / "other.h5")


def test_a_sample_that_is_not_finite_is_named(tmp_path: Path, static: Path) -> None:
    copy = tmp_path / "copy.h5"
    copy.write_bytes(static.read_bytes())
    with h5py.File(copy, "r+") as file:
        file["solution"][3, 2, 2] = np.nan
    with pytest.raises(UserError, match="sample 3 contains NaN"):
        open_fields(copy).load()


def test_ensure_uses_a_larger_file_and_continues_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, static: Path
) -> None:
    monkeypatch.setenv("MONARCH_DATA", str(tmp_path))
    parts = tmp_path / f".darcy_N6_8x8_seed0.{darcy().settings.fingerprint}.parts"
    parts.mkdir()
    np.save(parts / "000002.npy", np.full((8, 8, 1, 2), 7.0, dtype=np.float32))  # as an earlier run left it
    larger = ensure(darcy())
    assert larger.name == "darcy_N6_8x8_seed0.h5"
    assert torch.equal(open_fields(larger).load()[2], torch.full((8, 8, 1, 1), 7.0))
    assert torch.equal(open_fields(larger).load()[3:], open_fields(static).load()[3:])
    assert ensure(darcy(num_samples=4)) == larger
    assert ensure(darcy(num_samples=4, seed=1)).name == "darcy_N4_8x8_seed1.h5"
    assert sorted(os.listdir(tmp_path)) == ["darcy_N4_8x8_seed1.h5", "darcy_N6_8x8_seed0.h5"]


def test_show_draws_the_fields(tmp_path: Path, static: Path, moving: Path) -> None:
    for file in (static, moving):
        pictures = show(ShowConfig(file, samples=2, frames=3, out=tmp_path))
        assert [picture.suffix for picture in pictures] == ([".png"] if file == static else [".png", ".gif"])
        for picture in pictures:
            with Image.open(picture) as image:
                assert np.asarray(image.convert("RGB")).std() > 10


@pytest.mark.filterwarnings("error")
def test_a_sample_that_is_zero_throughout_is_drawn(tmp_path: Path) -> None:
    np.savez(tmp_path / "rest.npz", u=np.zeros((2, 3, 8, 12)), v=np.ones((2, 3, 8, 12)))
    _, movie = show(ShowConfig(tmp_path / "rest.npz", out=tmp_path))
    with Image.open(movie) as image:
        assert np.asarray(image.convert("RGB")).min() > 200  # the middle of the colours, not their lower end


def test_the_summary_is_that_of_all_samples_together(tmp_path: Path) -> None:
    u = np.random.default_rng(0).standard_normal((5, 3, 8, 12)) + 100 * np.arange(5)[:, None, None, None]
    np.savez(tmp_path / "own.npz", u=u, c=u[:, 0])
    rows = spread(open_fields(tmp_path / "own.npz")).rows
    assert [row["field"] for row in rows] == ["u", "c (constant)"]
    for row, values in zip(rows, (u, u[:, 0]), strict=True):
        for key in ("mean", "std", "min", "max"):
            assert row[key] == pytest.approx(getattr(values, key)(), rel=1e-5)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"periodic": "z"}, "--periodic takes x, y or x,y"),
        ({"periodic": "x", "walls": "x"}, "x cannot be both"),
        ({"time_step": -1.0}, "--time-step must be above 0"),
    ],
)
def test_show_refuses_what_cannot_be_told(told: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ShowConfig(Path("flow.h5"), **told)


def test_a_coarser_grid_has_every_kth_point_of_both_sides(tmp_path: Path) -> None:
    np.save(tmp_path / "u.npy", np.random.default_rng(0).standard_normal((2, 3, 8, 9)))
    fields = open_fields(tmp_path / "u.npy", told=Told(periodic="x,y"))
    assert fields.at_resolution(8).grid.resolution == (8, 9)
    with pytest.raises(UserError, match=r"--resolution 4 .* 8 x 9 points .* possible are 8\.$"):
        fields.at_resolution(4)


@pytest.mark.parametrize("package", ["navier_stokes", "darcy", "burgers", "shallow_water", "fields"])
def test_help_answers_without_the_heavy_libraries(package: str, root: Path) -> None:
    script = (
        f"import sys, runpy; sys.argv = ['{package}', '--help']\n"
        f"try: runpy.run_module('data.{package}', run_name='__main__')\n"
        "finally: assert not {'torch', 'scipy', 'matplotlib', 'torch_harmonics'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("--frames" if package == "fields" else "--num-samples") in done.stdout


@pytest.mark.parametrize(
    ("package", "flags", "message"),
    [
        ("darcy", ["--grid", "128", "--resolution", "64"], "odd multiple"),
        ("darcy", ["--low", "-1"], "two positive permeabilities"),
        ("darcy", ["--num-samples", "0"], "--num-samples must be at least 1"),
        ("burgers", ["--nu", "0"], "--nu must be above 0"),
        ("burgers", ["--grid", "32"], "--grid no smaller"),
        ("burgers", ["--frames", "1"], "--frames must be at least 2"),
        ("shallow_water", ["--resolution", "63"], "even number"),
        ("shallow_water", ["--seed", "-1"], "--seed must be at least 0"),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(
    package: str, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from importlib import import_module

    from lab.cli import run

    command = import_module(f"data.{package}.__main__").generate
    assert run(f"python -m data.{package}", {"": command}, flags) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1
