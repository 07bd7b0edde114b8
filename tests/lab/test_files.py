"""Files are whole or absent."""

import errno
import os
import stat

import pytest

from lab.errors import UserError
from lab.files import atomic_path, fingerprint, read_json, write_json


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
