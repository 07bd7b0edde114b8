"""Files are whole or absent."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from lab.errors import UserError
from lab.files import (
    atomic_path,
    fingerprint,
    is_temporary,
    kept,
    make_folder,
    read_json,
    read_table,
    remove_leftovers,
    reserve,
    write_json,
)


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "result.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_path(path) as temporary:
        raise ZeroDivisionError(temporary.write_text("half of the new"))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["result.txt"]


def test_the_target_never_shows_a_half_written_state(tmp_path):
    path = tmp_path / "result.txt"
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        assert not path.exists()
        assert temporary.suffix == ".txt"
        temporary.write_text("whole")
    assert path.read_text() == "whole"


def test_a_full_disk_is_a_sentence_that_names_the_file(tmp_path):
    with pytest.raises(UserError, match=r"could not write .*result\.txt: No space left on device"):  # noqa: SIM117
        with atomic_path(tmp_path / "result.txt"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="could not write"), atomic_path(tmp_path / "file" / "x.txt"):
        pass


def test_files_are_readable_as_the_umask_says(tmp_path):
    with atomic_path(tmp_path / "x") as temporary:
        temporary.write_text("")
        temporary.chmod(0o600)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o666 & ~mask


def test_json_round_trip_and_broken_json(tmp_path):
    write_json(tmp_path / "a.json", {"nu": 1e-4, "names": ["é"]})
    assert read_json(tmp_path / "a.json") == {"nu": 1e-4, "names": ["é"]}
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(UserError, match=r"b\.json is not valid JSON"):
        read_json(tmp_path / "b.json")
    with pytest.raises(UserError, match="there is no file"):
        read_json(tmp_path / "c.json")


def test_fingerprints_tell_values_apart():
    assert fingerprint({"nu": 1e-4}) != fingerprint({"nu": 1e-3})


def dead_process() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@pytest.mark.skipif(os.name != "posix", reason="elsewhere one cannot ask whether a process lives")
def test_temporary_files_of_dead_processes_are_removed_and_no_others(tmp_path):
    dead = dead_process()
    gone = [
        tmp_path / f".weights.{dead}.tmp.safetensors",
        tmp_path / "checkpoints" / f".last.{dead}.tmp.ckpt",
    ]
    kept = [
        tmp_path / f".weights.{os.getpid()}.tmp.safetensors",
        tmp_path / ".weights.1.tmp.safetensors",
        tmp_path / f".weights.{10**30}.tmp.safetensors",
        tmp_path / f"mine.{dead}.tmp.txt",
        tmp_path / "weights.safetensors",
    ]
    for path in gone + kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    remove_leftovers(tmp_path)
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in kept)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere folders cannot be opened")
def test_the_folder_is_flushed_after_the_rename(tmp_path, monkeypatch):
    events = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "replace", lambda *names: (events.append("rename"), replace(*names)))
    monkeypatch.setattr(
        os, "fsync", lambda file: (events.append(stat.S_ISDIR(os.fstat(file).st_mode)), fsync(file))
    )
    write_json(tmp_path / "a.json", 1)
    assert events == [False, "rename", True]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere one cannot ask whether a process lives")
def test_writing_a_file_removes_what_a_killed_process_left_of_it(tmp_path):
    left, other, alive = (
        tmp_path / name
        for name in (f".a.{dead_process()}.tmp.json", f".b.{dead_process()}.tmp.json", ".a.1.tmp.json")
    )
    for path in (left, other, alive):
        path.write_text("half")
    write_json(tmp_path / "a.json", 1)
    assert sorted(os.listdir(tmp_path)) == sorted([alive.name, other.name, "a.json"])


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, '{"a": ' * 50_000])
def test_deep_and_endless_json_is_a_sentence(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError, match=r"a\.json is not valid JSON"):
        read_json(tmp_path / "a.json")


def test_a_pipe_is_no_json(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(UserError, match="there is no file"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", "a: [", "not valid YAML"),
        ("a.yaml", "!!python/object/apply:os.getcwd []", "not valid YAML"),
        ("a.yaml", "- 1", "no table of entries"),
        ("a.yaml", "1: 2", "no table of entries"),
        ("a.json", "null", "no table of entries"),
    ],
)
def test_what_is_no_table_is_a_sentence(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=said):
        read_table(tmp_path / name)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere folders cannot be opened")
def test_the_name_of_every_new_folder_is_flushed(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append(os.readlink(f"/proc/self/fd/{file}")))
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert flushed == [str(tmp_path), str(tmp_path / "a")]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="cannot reserve space")
def test_reserved_space_is_there_and_what_was_written_stays(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    reserve(path, 10_000)
    assert path.read_bytes() == b"abc".ljust(10_000, b"\0")


def test_what_is_kept_is_computed_once_and_again_where_it_is_damaged(tmp_path, capsys):
    calls = []

    def compute():
        calls.append(1)
        return {"errors": (0.25, float("inf")), "n": 1}

    wanted = {"errors": [0.25, float("inf")], "n": 1}
    assert [kept(tmp_path, "key", compute) for _ in range(2)] == [wanted, wanted]
    assert len(calls) == 1
    (path,) = tmp_path.iterdir()
    whole = path.read_text()
    for damaged in (whole.replace("0.25", "0.35"), whole[:-9], "[]", "{}", '"zzz"', ""):
        path.write_text(damaged)
        assert kept(tmp_path, "key", compute) == wanted
        assert "is damaged: computing it again" in " ".join(capsys.readouterr().out.split())
        assert path.read_text() == whole
    assert len(calls) == 7


def test_what_earlier_versions_kept_is_not_computed_again(tmp_path):
    write_json(tmp_path / f"{fingerprint('key')}.json", [1, 2])
    assert [kept(tmp_path, "key", lambda: [3]) for _ in range(2)] == [[1, 2], [1, 2]]


def test_a_temporary_name_keeps_the_whole_ending_of_a_compressed_file(tmp_path):
    with atomic_path(tmp_path / "v.1.nii.gz") as temporary:
        assert temporary.name.endswith(".tmp.nii.gz")
        assert is_temporary(temporary)
        temporary.write_text("whole")
    assert os.listdir(tmp_path) == ["v.1.nii.gz"]
