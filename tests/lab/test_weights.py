"""Weights files: what goes in comes out, what is not ours is refused."""

import json
import os
import signal

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from lab import checkpoint, weights
from lab.demo import predictor
from lab.errors import UserError


class Tied(nn.Module):
    """Two names for one tensor, as in language models."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.b.weight = self.a.weight


def test_round_trip_with_header_and_tied_weights(tmp_path):
    model = Tied()
    weights.save(tmp_path / "w.safetensors", model, {"app": "demo", "model": "tied", "options": {"width": 3}})
    stored = weights.load(tmp_path / "w.safetensors", app="demo")
    fresh = Tied()
    stored.load_into(fresh)
    assert stored.header == {"app": "demo", "model": "tied", "options": {"width": 3}}
    assert torch.equal(fresh.a.weight, model.a.weight)
    assert fresh.b.weight is fresh.a.weight


def test_bad_files_are_refused_with_a_sentence(tmp_path):
    with pytest.raises(UserError, match="there is no weights file"):
        weights.load(tmp_path / "absent.safetensors", app="demo")
    path = tmp_path / "w.safetensors"
    weights.save(path, nn.Linear(2, 2), {"app": "demo"})
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(UserError, match="not a whole safetensors file"):
        weights.load(path, app="demo")
    save_file({"x": torch.zeros(2)}, path)
    with pytest.raises(UserError, match="no header of this suite"):
        weights.load(path, app="demo")


def test_a_flipped_bit_is_found(tmp_path):
    path = tmp_path / "w.safetensors"
    weights.save(path, nn.Linear(2, 2), {"app": "demo", "size": 16})
    whole = path.read_bytes()
    for place in (len(whole) - 3, whole.index(b": 16") + 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(UserError, match="its checksum is another"):
            weights.load(path, app="demo")


def test_a_flipped_bit_in_a_checkpoint_is_found(tmp_path):
    path = tmp_path / "last.ckpt"
    checkpoint.write(path, {checkpoint.MARK: {}, "x": torch.full((500,), 0.1)})
    whole = path.read_bytes()
    place = whole.index(torch.full((2,), 0.1).numpy().tobytes()) + 100
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with pytest.raises(UserError, match=r"cannot be read safely.*is damaged"):
        checkpoint.check(path)


def test_weights_of_earlier_versions_have_no_checksum(tmp_path):
    path = tmp_path / "w.safetensors"
    save_file({"x": torch.zeros(2)}, path, metadata={"monarch": '{"app": "demo"}'})
    assert weights.load(path, app="demo").header == {"app": "demo"}


def test_weights_of_another_model_are_refused(tmp_path):
    path = tmp_path / "w.safetensors"
    weights.save(path, nn.Linear(2, 2), {"app": "demo"})
    with pytest.raises(UserError, match="do not fit the model"):
        weights.load(path, app="demo").load_into(nn.Linear(3, 2), path)


def test_weights_of_another_application_are_refused(tmp_path):
    path = tmp_path / "w.safetensors"
    weights.save(path, nn.Linear(2, 2), {"app": "mri"})
    with pytest.raises(UserError, match="holds a model of mri, not of demo"):
        weights.load(path, app="demo")


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
@pytest.mark.parametrize("kind", ["weights", "checkpoint"])
def test_a_full_disk_is_a_sentence_and_the_old_file_stays(tmp_path, kind):
    import resource

    def write(size: int) -> None:
        if kind == "weights":
            weights.save(tmp_path / "file", nn.Linear(size, size), {"app": "demo"})
        else:
            checkpoint.write(tmp_path / "file", {"x": torch.zeros(size, size)})

    write(2)
    before = (tmp_path / "file").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with pytest.raises(UserError, match=r"could not write .*file: "):
            write(400)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (tmp_path / "file").read_bytes() == before
    assert os.listdir(tmp_path) == ["file"]


GOOD = {"app": "demo", "model": "monarch", "size": 16, "options": {"blocks": 4}}


def stored(path, header, model=None):
    save_file((model or nn.Linear(2, 2)).state_dict(), path, metadata={"monarch": json.dumps(header)})
    return path


@pytest.mark.parametrize(
    "header",
    [
        [],
        "monarch",
        None,
        3,
        {"app": "demo"},
        {"app": "demo", "model": "monarch", "options": {}},
        GOOD | {"model": "nobody"},
        GOOD | {"model": ["monarch"]},
        GOOD | {"size": "16"},
        GOOD | {"size": -4},
        GOOD | {"options": None},
        GOOD | {"options": {"blocks": 10**9}},
        GOOD | {"options": {"blocks": "4"}},
        GOOD | {"options": {"blocks": True}},
        GOOD | {"options": {"blocks": -1}},
        GOOD | {"options": {"form": "zzz"}},
    ],
)
def test_a_header_that_describes_no_model_is_a_sentence(tmp_path, header):
    path = stored(tmp_path / "w.safetensors", header)
    with pytest.raises(UserError, match=r"w\.safetensors"):
        predictor.load(path)


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00", "{'app': 'demo'}"])
def test_a_header_that_is_no_json_is_a_sentence(tmp_path, text):
    path = tmp_path / "w.safetensors"
    save_file({"x": torch.zeros(2)}, path, metadata={"monarch": text})
    with pytest.raises(UserError, match="a header that is no JSON"):
        weights.load(path, app="demo")


def test_an_endless_header_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes((2**30).to_bytes(8, "little") + b"{")
    with pytest.raises(UserError, match="its header has 1073741824 bytes"):
        weights.load(path, app="demo")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_or_a_folder_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/null"):
        with pytest.raises(UserError, match="is not a regular file"):
            weights.load(path, app="demo")
