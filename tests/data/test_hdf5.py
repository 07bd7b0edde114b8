"""HDF5 files gone wrong: every reader answers with one sentence that names the file, and answers soon."""

import errno
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from data.fields.file import write
from data.fields.geometry import Box
from data.fields.layout import Grid, Layout
from data.fields.reader import open_fields
from data.hdf5 import Hdf5File
from data.scans.mapped import write_array
from data.scans.reader import open_scan
from lab.errors import UserError
from tests.data.mri_files import fastmri_scan, skm_tea_scan

SIDE = 8


def fields(path: Path) -> None:
    layout = Layout(
        "navier-stokes", ("vorticity",), Grid.of(Box(), SIDE), torch.arange(1.0, 4, dtype=torch.float64),
        inputs=("vorticity",), fingerprint="0123456789abcdef",
    )  # fmt: skip
    samples = np.random.default_rng(0).standard_normal((2, SIDE, SIDE, 4, 1)).astype(np.float32)
    write(path, layout, range(2), ((one[:, :, 0], one[:, :, 1:]) for one in samples))


def old_navier_stokes(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.attrs.update(
            {"nu": 1e-3, "resolution": SIDE, "fingerprint": "0", "first_sample": 0, "num_samples": 2}
        )
        file["a"], file["u"] = np.zeros((2, SIDE, SIDE), "f4"), np.zeros((2, SIDE, SIDE, 3), "f4")
        file["t"] = np.arange(3.0)


def public_matlab(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["u"], file["t"] = np.zeros((3, SIDE, SIDE, 2), "f4"), np.arange(3.0)


def read_fields(path: Path) -> None:
    found = open_fields(path)
    found.load()
    if found.inputs:
        found.load_inputs()


def read_scan(path: Path) -> None:
    scan = open_scan(path)
    scan.read_target(0)
    scan.mask(4)


KINDS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], None]]] = {
    "fields": (fields, read_fields),
    "old": (old_navier_stokes, read_fields),
    "matlab": (public_matlab, read_fields),
    "skm-tea": (skm_tea_scan, read_scan),
    "fastmri": (fastmri_scan, read_scan),
}
COMPOUND = np.dtype([("re", "f4"), ("name", "S3")])


def link_outside(file: h5py.File, name: str) -> None:
    with h5py.File(Path(file.filename).with_name("other.h5"), "w") as other:
        other["x"] = np.zeros(3)
    file[name] = h5py.ExternalLink("other.h5", "x")


WRONG_MEMBERS: dict[str, Callable[[h5py.File, str], Any]] = {
    "absent": lambda file, name: None,
    "group": lambda file, name: file.create_group(name),
    "soft link to nothing": lambda file, name: file.__setitem__(name, h5py.SoftLink("/nowhere")),
    "link to itself": lambda file, name: file.__setitem__(name, h5py.SoftLink(f"/{name}")),
    "link outside": link_outside,
    "link to an absent file": lambda file, name: file.__setitem__(name, h5py.ExternalLink("absent.h5", "x")),
    "named type": lambda file, name: file.__setitem__(name, np.dtype("f4")),
    "texts": lambda file, name: file.__setitem__(name, ["a", "b"]),
    "compound": lambda file, name: file.create_dataset(name, (3,), COMPOUND),
    "null": lambda file, name: file.__setitem__(name, h5py.Empty("f4")),
    "scalar": lambda file, name: file.__setitem__(name, 1.0),
    "seven axes": lambda file, name: file.__setitem__(name, np.zeros([1] * 7, "f4")),
    "nothing in it": lambda file, name: file.create_dataset(name, (0,), "f4"),
    "absurdly long": lambda file, name: file.create_dataset(name, (2**50,), "f8", chunks=(1024,)),
    "absurd on every axis": lambda file, name: file.create_dataset(
        name, [2**15] * 4, "c8", chunks=(1, 8, 8, 8)
    ),
}
MEMBERS = {
    "fields": ["solution", "inputs", "rows", "columns", "times"],
    "old": ["a", "u", "t"],
    "matlab": ["u"],
    "skm-tea": ["kspace", "maps", "target", "masks"],
    "fastmri": ["kspace", "reconstruction_rss", "ismrmrd_header"],
}


@pytest.mark.parametrize("damage", WRONG_MEMBERS)
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in MEMBERS.items() for name in names]
)
def test_members_of_the_wrong_kind_are_one_sentence(tmp_path, monkeypatch, kind, name, damage):
    monkeypatch.setenv("MONARCH_DATA", str(tmp_path / "cache"))
    make, read = KINDS[kind]
    path = tmp_path / "file.h5"
    make(path)
    with h5py.File(path, "r+") as file:
        del file[name]
        WRONG_MEMBERS[damage](file, name)
    with pytest.raises(UserError, match=r"file\.h5") as caught:
        read(path)
    assert "\n" not in str(caught.value)


WRONG_ATTRIBUTES: dict[str, Any] = {
    "vector": np.arange(3),
    "matrix of texts": [["a", "b"], ["c", "d"]],
    "nothing": h5py.Empty("f4"),
    "float": 1.5,
    "nan": float("nan"),
    "compound": np.zeros((), COMPOUND),
    "deep": "[" * 60_000,
    "huge": 2**62,
    "negative": -1,
}
ATTRIBUTES = {
    "fields": ["names", "inputs", "geometry", "fingerprint", "first_sample", "num_samples", "problem"],
    "old": ["fingerprint", "first_sample", "num_samples", "resolution"],
}
ACCEPTABLE = {"fingerprint": {"deep"}, "problem": {"deep"}, "first_sample": {"huge", "negative"}}
"""Any text is a fingerprint or a name; samples may be counted from anywhere."""


@pytest.mark.parametrize("wrong", [*WRONG_ATTRIBUTES, "absent"])
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in ATTRIBUTES.items() for name in names]
)
def test_attributes_of_the_wrong_kind_are_one_sentence(tmp_path, kind, name, wrong):
    make, read = KINDS[kind]
    path = tmp_path / "file.h5"
    make(path)
    with h5py.File(path, "r+") as file:
        del file.attrs[name]
        if wrong != "absent":
            file.attrs[name] = WRONG_ATTRIBUTES[wrong]
    if wrong in ACCEPTABLE.get(name, ()) or (kind, name, wrong) == ("old", "fingerprint", "absent"):
        read(path)  # without its fingerprint the old file is one of the public ones
        return
    with pytest.raises(UserError) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_an_attribute_of_absurd_size_is_not_read(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as file:
        file.attrs["names"] = np.zeros(2**18)
    with pytest.raises(UserError, match=r"the attribute 'names' has the shape"):
        Hdf5File(tmp_path / "x.h5").attributes()


@pytest.mark.parametrize("name", ["solution", "inputs"])
def test_a_flipped_bit_is_found_when_the_sample_is_read(tmp_path, name):
    path = tmp_path / "file.h5"
    fields(path)
    with h5py.File(path) as file:
        offset = file[name].id.get_chunk_info(1).byte_offset
    content = bytearray(path.read_bytes())
    content[offset + 17] ^= 4
    path.write_bytes(content)
    found = open_fields(path)
    assert found[0].isfinite().all(), "the other samples are as they were"
    with pytest.raises(UserError, match=rf"file\.h5 is damaged: reading '{name}' failed"):
        found.load() if name == "solution" else found.load_inputs()


def test_a_flipped_bit_anywhere_changes_no_number_in_silence(tmp_path):
    path = tmp_path / "file.h5"
    fields(path)
    content, wanted = path.read_bytes(), open_fields(path)
    samples, inputs = wanted.load(), wanted.load_inputs()
    refused = 0
    for place in range(0, len(content), 61):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        try:
            found = open_fields(path)
            assert torch.equal(found.load(), samples)
            assert torch.equal(found.load_inputs(), inputs)
            assert torch.equal(found.times, wanted.times)
            assert (found.fingerprint, found.geometry) == (wanted.fingerprint, wanted.geometry)
        except UserError:
            refused += 1
    assert refused > 30, "free space in the file is all that may change unnoticed"


def test_files_without_checksums_are_read_as_before(tmp_path):
    path = tmp_path / "file.h5"
    fields(path)
    before = open_fields(path).load()
    with h5py.File(path, "r+") as file:
        for name in ("solution", "inputs"):
            values = file[name][()]
            del file[name]
            file.create_dataset(name, data=values, chunks=(1, *values.shape[1:]))
    assert torch.equal(open_fields(path).load(), before)


@pytest.mark.parametrize("room", [0, 2048, 100_000])
def test_a_full_disk_is_an_error_and_no_crash(tmp_path, room):
    """In a process of its own, with all that HDF5 does at its end."""
    script = f"""
        import resource, sys
        import numpy as np
        from pathlib import Path
        from data.hdf5 import new_file
        resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))
        try:
            with new_file(Path("x.h5")) as file:
                for i in range(20):
                    file.create_dataset(f"d{{i}}", data=np.ones((50, 50)), chunks=(5, 50), fletcher32=True)
        except OSError as error:
            print(type(error).__name__, error.errno)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, f"OSError {errno.EFBIG}\n", "")


def test_axes_are_named_by_labels_or_scales_or_not_at_all(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["u"], file["v"], file["w"] = (np.zeros((2, 3)) for _ in range(3))
        for i, name in enumerate(("time", "x")):
            file["u"].dims[i].label = name
            file[f"axes/{name}"] = np.arange(2 + i)
            file[f"axes/{name}"].make_scale(name)
            file["v"].dims[i].attach_scale(file[f"axes/{name}"])
        file["w"].dims[0].label = "time"
    found = Hdf5File(tmp_path / "x.h5")
    assert [found.axis_names(name) for name in "uvw"] == [["time", "x"], ["time", "x"], []]


@pytest.mark.parametrize("name", ["units", "constants", "symmetries"])
@pytest.mark.parametrize("value", [3, "[1]", "[" * 60_000, np.arange(3), h5py.Empty("f4")], ids=str)
def test_optional_attributes_of_the_wrong_kind_are_one_sentence(tmp_path, name, value):
    fields(tmp_path / "file.h5")
    with h5py.File(tmp_path / "file.h5", "r+") as file:
        file.attrs[name] = value
    with pytest.raises(UserError, match=r"file\.h5.*attribute"):
        open_fields(tmp_path / "file.h5")


@pytest.mark.parametrize("names", ["{", "[]", '{"bone": 1}', 3])
def test_names_of_tissues_that_are_none_are_one_sentence(tmp_path, names):
    skm_tea_scan(tmp_path / "MTR_001.h5")
    with h5py.File(tmp_path / "MTR_001.h5", "r+") as file:
        file["segmentation"] = np.ones(file["target"].shape[:3], np.uint8)
        file["segmentation"].attrs["names"] = names
    with pytest.raises(UserError, match=r"MTR_001\.h5.*'names'"):
        open_scan(tmp_path / "MTR_001.h5").segmentation()


def test_a_mapped_array_on_a_full_disk_is_a_sentence_and_no_crash(tmp_path, monkeypatch):
    """Writing to mapped memory that the disk has no room for ends a process by SIGBUS: room is reserved before."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)

    def fill(array):
        raise AssertionError("nothing is written to it")

    with pytest.raises(UserError, match=r"could not write .*x\.npy: No space left"):
        write_array(tmp_path / "x.npy", (3, 4), fill)
    assert os.listdir(tmp_path) == []


def test_nothing_in_a_scan_says_when_it_was_written(tmp_path):
    skm_tea_scan(tmp_path / "MTR_001.h5")
    times: list[bool] = []
    with h5py.File(tmp_path / "MTR_001.h5") as file:
        file.visititems(lambda _, entry: times.append(entry.id.get_create_plist().get_obj_track_times()))
    assert len(times) > 4
    assert not any(times)
