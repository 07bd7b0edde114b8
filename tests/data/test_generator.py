"""The generator: the same numbers however they are made, and no harm from a kill or a full disk."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import data.parallel
from data.fields.generator import ensure, generate
from data.fields.join import join
from data.fields.options import JoinConfig
from data.fields.reader import open_fields
from data.navier_stokes.config import GenerateConfig
from data.navier_stokes.generate import solve_samples
from lab.errors import UserError

SMALL = {"nu": 1e-3, "num_samples": 6, "final_time": 3, "grid": 16, "resolution": 8, "workers": 1}
FLAGS = ["--nu", "1e-3", "--num-samples", "6", "--final-time", "3", "--grid", "16", "--resolution", "8"]


def small(out: Path, **changes: object) -> GenerateConfig:
    return GenerateConfig(**SMALL | {"out": out} | changes)  # type: ignore[arg-type]


def datasets(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {name: file[name][...] for name in file}


def assert_same(found: Path, expected: Path) -> None:
    for name, values in datasets(expected).items():
        assert np.array_equal(datasets(found)[name], values), name
    with h5py.File(found) as one, h5py.File(expected) as other:
        for name, value in other.attrs.items():
            assert np.array_equal(one.attrs[name], value), name


def command(*arguments: str, under: Sequence[str] = ()) -> "subprocess.Popen[str]":
    words = [*under, sys.executable, "-m", "data.navier_stokes", *arguments]
    root = Path(__file__).parents[2]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=root, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that an undisturbed run makes."""
    return generate(small(tmp_path_factory.mktemp("whole") / "data.h5"))


def test_the_file_holds_the_samples_and_says_how_they_were_made(whole: Path) -> None:
    found = datasets(whole)
    assert found["solution"].shape == (6, 8, 8, 3, 1)
    assert found["times"].tolist() == [1.0, 2.0, 3.0]
    flow = small(whole).settings
    expected = solve_samples(flow, [4])[0]
    assert np.array_equal(found["inputs"][4], expected[..., 0, :])
    assert np.array_equal(found["solution"][4], expected[..., 1:, :])
    with h5py.File(whole) as file:
        assert file["solution"].chunks == (1, 8, 8, 3, 1)
        assert file.attrs["nu"] == 1e-3
        assert file.attrs["fingerprint"] == flow.fingerprint
    assert [p.name for p in whole.parent.iterdir()] == ["data.h5"]


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_sample_does_not_depend_on_which_others_are_asked_for(precision: str) -> None:
    flow = small(Path("x"), grid=32, precision=precision).settings
    together = solve_samples(flow, [0, 3, 17])
    for i, sample in enumerate((0, 3, 17)):
        assert np.array_equal(solve_samples(flow, [sample])[0], together[i])


def test_two_processes_make_the_same_file(tmp_path: Path) -> None:
    one, two = (generate(small(tmp_path / f"{n}.h5", num_samples=20, workers=n)) for n in (1, 2))
    assert_same(one, two)


def test_joined_shards_equal_the_whole(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "data.h5"
    for part in (1, 2, 4):
        generate(small(out, shard=f"{part}/4"))
    with pytest.raises(UserError, match=r"1 of 4 shards are missing.*shard-3-of-4"):
        join(JoinConfig(out))
    generate(small(out, shard="3/4"))
    join(JoinConfig(out, remove_shards=True))
    assert_same(out, whole)
    assert [p.name for p in tmp_path.iterdir()] == ["data.h5"]


def test_a_join_killed_while_it_removed_shards_is_finished(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "data.h5"
    for part in (1, 2):
        generate(small(out, shard=f"{part}/2"))
    join(JoinConfig(out))
    next(tmp_path.glob("*shard-1*")).unlink()  # as far as it came
    join(JoinConfig(out, remove_shards=True))
    assert_same(out, whole)
    assert [p.name for p in tmp_path.iterdir()] == ["data.h5"]


def test_shards_of_another_flow_are_not_joined(tmp_path: Path) -> None:
    generate(small(tmp_path / "data.h5", shard="1/2"))
    generate(small(tmp_path / "data.h5", shard="2/2", seed=1))
    with pytest.raises(UserError, match="other parameters"):
        join(JoinConfig(tmp_path / "data.h5"))


def test_a_killed_run_continues_and_ends_in_the_same_file(tmp_path: Path) -> None:
    slow = {"final_time": 30, "grid": 32, "num_samples": 48}
    flags = ["--nu", "1e-3", "--num-samples", "48", "--final-time", "30", "--grid", "32", "--resolution", "8"]
    out = tmp_path / "killed.h5"
    process = command(*flags, "--out", str(out), "--workers", "2")
    deadline = time.monotonic() + 120
    while len(done := list(tmp_path.glob(".*.parts/0*.npy"))) < 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not out.exists()
    assert 1 <= len(done) < 48, "the run was not killed half-way: nothing was tested"
    untouched = {part: part.stat().st_mtime_ns for part in done}

    done[0].with_name("000047.npy").write_bytes(done[0].read_bytes()[:500])  # as a power cut may leave it
    out.with_name(".killed.1.tmp.h5").write_bytes(b"a torn file")
    seen = {}
    original = np.save

    def watch(path: Path, values: np.ndarray) -> None:
        seen[path] = True
        original(path, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "save", watch)
        generate(small(out, **slow))
    assert len(seen) <= 48 - len(untouched), "finished samples were made again"
    assert_same(out, generate(small(tmp_path / "undisturbed.h5", **slow)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["killed.h5", "undisturbed.h5"]


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    flags = ["--nu", "1e-5", "--num-samples", "2", "--grid", "256", "--out", str(tmp_path / "x.h5")]
    process = command(*flags, "--workers", "2")
    deadline = time.monotonic() + 60
    while len(_group(process.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(4)  # until the workers have started
    process.kill()
    process.communicate()
    while _group(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _group(process.pid)


def _group(leader: int) -> list[int]:
    """Processes of the group that are alive."""
    alive = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            alive.append(int(stat.parent.name))
    return alive


def test_a_full_disk_is_one_sentence_and_keeps_what_was_done(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "data.h5"
    few_blocks = ["sh", "-c", 'ulimit -f 6 && exec "$@"', "sh"]  # enough for a sample, not for the whole
    process = command(*FLAGS, "--out", str(out), "--workers", "1", under=few_blocks)
    _, errors = process.communicate()
    assert process.returncode == 2, errors
    assert errors.startswith("error: could not write")
    assert errors.count("\n") == 1
    assert not out.exists()
    assert len(list(tmp_path.glob(".*.parts/*.npy"))) == 6
    assert_same(generate(small(out)), whole)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UserError, match="could not write"):
        generate(small(tmp_path / "file" / "data.h5"))


def test_a_file_with_other_data_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "data.h5"
    generate(small(out, num_samples=2))
    with pytest.raises(UserError, match="holds other data"):
        generate(small(out, seed=1))
    assert open_fields(out).describe()["fingerprint"] == small(out).settings.fingerprint


def test_ensure_uses_a_larger_file_of_the_same_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONARCH_DATA", str(tmp_path))
    larger = ensure(GenerateConfig(**SMALL))  # type: ignore[arg-type]
    assert ensure(GenerateConfig(**SMALL | {"num_samples": 4})) == larger  # type: ignore[arg-type]
    (tmp_path / "navier_stokes_damaged.h5").write_bytes(b"torn")
    other = ensure(GenerateConfig(**SMALL | {"num_samples": 4, "seed": 1}))  # type: ignore[arg-type]
    assert other.name == "navier_stokes_nu1e-3_N4_T3_8x8_seed1_grid16.h5"
    assert len(list(tmp_path.glob("*.h5"))) == 3
    assert ensure(GenerateConfig(**SMALL)) == larger  # type: ignore[arg-type]


def test_a_half_made_set_of_the_old_code_is_continued(whole: Path, tmp_path: Path) -> None:
    """Its samples had no axis of fields; its folder had the same name."""
    out, config = tmp_path / "data.h5", small(tmp_path / "data.h5")
    parts = tmp_path / f".data.{config.settings.fingerprint}.parts"
    parts.mkdir()
    for sample, values in enumerate(solve_samples(config.settings, [0, 1])[..., 0]):
        np.save(parts / f"{sample:06}.npy", values)
    times = {part.name: part.stat().st_mtime_ns for part in parts.iterdir()}
    seen = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "data.parallel.shutil.rmtree",
            lambda folder, **_: seen.update({p.name: p.stat().st_mtime_ns for p in folder.iterdir()}),
        )
        generate(config)
    assert times.items() < seen.items(), "finished samples were made again"
    assert_same(out, whole)


def test_a_smaller_set_made_meanwhile_is_not_taken_for_complete(tmp_path: Path) -> None:
    """The lock is free only after the other process has written fewer samples under the same name."""
    out = tmp_path / "data.h5"

    @contextmanager
    def other_process(path: Path, on_wait: object) -> Iterator[None]:
        generate(small(tmp_path / "other.h5", num_samples=2)).rename(out)
        with original(path, on_wait):
            yield

    with pytest.MonkeyPatch.context() as patch:
        original, calls = data.parallel.only_process, []

        def once(path: Path, on_wait: object) -> object:
            calls.append(path)
            return (other_process if len(calls) == 1 else original)(path, on_wait)  # type: ignore[arg-type]

        patch.setattr(data.parallel, "only_process", once)
        with pytest.raises(UserError, match="fewer samples"):
            generate(small(out, num_samples=4))


def test_other_data_for_the_same_path_waits_for_the_same_lock(tmp_path: Path) -> None:
    locks: list[Path] = []

    class Held(Exception):
        pass

    def held(path: Path, on_wait: object) -> None:
        locks.append(path)
        raise Held

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data.parallel, "only_process", held)
        for seed in (0, 1):
            with pytest.raises(Held):
                generate(small(tmp_path / "data.h5", seed=seed))
    assert locks[0] == locks[1]


def test_fingerprint_tells_what_decides_the_numbers_and_nothing_else(tmp_path: Path) -> None:
    plain = small(tmp_path).settings.fingerprint
    assert small(tmp_path / "x", workers=2, num_samples=2).settings.fingerprint == plain
    for change in ({"nu": 2e-3}, {"seed": 1}, {"grid": 32}, {"final_time": 4}, {"initial_std": 0.185}):
        assert small(tmp_path, **change).settings.fingerprint != plain
    assert small(tmp_path, precision="float32").settings.fingerprint != plain


def test_defaults_follow_the_viscosity() -> None:
    usual = {nu: GenerateConfig(nu=nu).settings for nu in (1e-3, 1e-4, 1e-5)}
    assert [(flow.final_time, flow.grid) for flow in usual.values()] == [(50, 64), (30, 128), (20, 256)]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--shard", "5/4"], "--shard takes a part"),
        (["--shard", "x"], "--shard takes a part"),
        (["--grid", "65"], "--grid must be a multiple"),
        (["--nu", "-1"], "--nu must be above 0"),
        (["--num-samples", "0"], "--num-samples must be at least 1"),
        (["--nu", "water"], "--nu"),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from data.navier_stokes.__main__ import generate as command_function
    from lab.cli import run

    assert run("python -m data.navier_stokes", {"": command_function}, flags) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_two_runs_at_once_make_one_file(tmp_path: Path, whole: Path) -> None:
    out = tmp_path / "data.h5"
    processes = [command(*FLAGS, "--out", str(out), "--workers", "1") for _ in range(2)]
    for process in processes:
        assert process.wait() == 0, process.communicate()
        process.communicate()
    assert_same(out, whole)
    assert os.listdir(tmp_path) == ["data.h5"]


@pytest.mark.parametrize("flushed", [True, False])
def test_what_becomes_of_denormal_numbers_is_left_as_it_was(flushed: bool) -> None:
    """A training that makes its data first computes what the same training computes once the data is there."""
    try:
        torch.set_flush_denormal(flushed)
        solve_samples(small(Path("unused.h5")).settings, [0])
        assert (float(torch.full((1,), 1e-40) * 1) == 0) == flushed
    finally:
        torch.set_flush_denormal(False)
