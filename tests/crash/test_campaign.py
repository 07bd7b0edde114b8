"""The short part of the campaign: some kills, full disks, malformed and mutated files, always the same ones."""

import ast
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.crash import kills, readers
from tests.crash.commands import COMMANDS, make_inputs
from tests.crash.flushes import unflushed
from tests.crash.specimens import SPECIMENS, uncovered
from tests.crash.trial import CRASHED, REFUSED, Outcome, interposed, preload

PACKAGES = ("lab", "data", "pde", "mri", "text")
TRIED = {"lab.demo.train": 9, "data.navier_stokes": 5, "data.darcy": 7}
"""Commands that are disturbed here, at every so-many-th operation."""
SELF_MADE = tuple(one for one in SPECIMENS if one.name.startswith(("fields", "scans", "masks")))
"""Specimens that need no inputs."""
LIBRARIES = (
    "lightning.pytorch",
    "jsonargparse",
    "rich.table",
    "lab.trainer",
    "lab.demo.experiment",
    "scipy.io",
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("campaign")


@pytest.fixture(scope="module")
def pool(base: Path) -> Iterator[ProcessPoolExecutor]:
    """One process that has imported everything, with its file operations counted."""
    with interposed() as counting:
        if not counting:
            pytest.skip("needs a C compiler")
        with ProcessPoolExecutor(1, get_context("spawn"), _begin) as pool:
            pool.submit(make_inputs, base / "inputs", (), ()).result()
            yield pool


def _begin() -> None:
    preload(("torch", "torch.export", *LIBRARIES))


@pytest.mark.parametrize("name", TRIED)
def test_a_kill_or_a_full_disk_at_any_operation_loses_nothing(
    base: Path, pool: ProcessPoolExecutor, name: str
) -> None:
    inputs, work = base / "inputs", base / "work"
    work.mkdir(exist_ok=True)
    found = pool.submit(kills.disturb, name, inputs, work, TRIED[name]).result()
    assert [each for wrong in found.failed.values() for each in wrong] == []
    assert found.tried["kills"] > 4, "the operations of the libraries are not seen"
    assert set(found.tried) == {*kills.PARTS.values(), "flushes"}
    for state, (_, where) in found.states.items():
        assert pool.submit(kills.continue_from, name, state, inputs, work).result() == [], where


@pytest.mark.parametrize("name", [one.name for one in SELF_MADE])
def test_malformed_and_mutated_files_are_read_or_refused_in_one_sentence(
    base: Path, pool: ProcessPoolExecutor, name: str
) -> None:
    inputs, work = base / "inputs", base / "readers"
    work.mkdir(exist_ok=True)
    lines = pool.submit(readers.try_malformed, name, range(3, 10**6, 41), inputs, work).result()
    lines += pool.submit(readers.try_mutations, name, range(4), 1, inputs, work).result()
    assert len(lines) > 4
    assert [line for line in lines if line] == []


def test_the_campaign_has_hundreds_of_malformed_files(tmp_path: Path) -> None:
    fields = [one for one in SELF_MADE if one.name.startswith("fields: own")]
    count = sum(
        1 for one in fields for _ in readers.damages(one.make(tmp_path, _made(tmp_path / one.name[8:])))
    )
    assert count > 400


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_every_command_of_the_suite_is_in_the_campaign(root: Path) -> None:
    found = set()
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            body = ast.parse(path.read_text()).body
            if body and isinstance(body[-1], ast.If) and "__main__" in ast.dump(body[-1].test):
                found.add(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__main__"))
    assert found == {each.module for each in COMMANDS}


def test_every_format_has_a_specimen(tmp_path: Path) -> None:
    assert uncovered(tmp_path, tmp_path / "made", SELF_MADE) == []


def test_what_is_wrong_with_an_answer_is_seen() -> None:
    assert not Outcome(0, "fine", 1).complaint
    assert not Outcome(REFUSED, "some words\nerror: there is no file x.\n", 1).complaint
    assert (
        "ValueError"
        in Outcome(CRASHED, "Traceback (most recent call last):\n  ...\nValueError: x\n", 1).complaint
    )
    assert "SIGSEGV" in Outcome(-11, "", 1).complaint
    assert "one sentence" in Outcome(REFUSED, "", 1).complaint
    assert "20 s" in Outcome(-9, "", 20, too_slow=True).complaint


def test_a_missing_a_torn_and_a_left_file_are_differences(tmp_path: Path) -> None:
    for folder, names in (("a", "x y z"), ("b", "x y w")):
        (tmp_path / folder).mkdir()
        for name in names.split():
            (tmp_path / folder / name).write_text(folder if name == "y" else "same")
    found = kills.differences(tmp_path / "a", tmp_path / "b")
    assert found == ["w is missing", "z is too much", "y differs"]


def test_what_a_power_cut_could_tear_is_seen(tmp_path: Path) -> None:
    whole = [
        "open .a.1.tmp.txt",
        "write .a.1.tmp.txt",
        "fsync .a.1.tmp.txt",
        "rename .a.1.tmp.txt a.txt",
        "fsync .",
    ]

    def found(*lines: str) -> list[str]:
        journal = "\n".join("\t".join([*line.split(), "", ""][:3]) for line in lines)
        return list(unflushed(journal, tmp_path))

    assert found(*whole, *whole) == []
    assert found("mkdir x", "fsync .") == []
    assert "before its content" in found(*whole[:2], *whole[3:])[0]
    assert "was not flushed" in found(*whole[:4])[0]
    assert "was not flushed" in found(*whole[:4], *whole)[0]
    assert "was not flushed" in found("mkdir x")[0]
    assert "under its own name" in found("open a.txt", "write a.txt")[0]
    assert found("open log.txt", "write log.txt") == []
