"""A small valid file for every reader of the suite, to be damaged.

Files of fields and scans come from the writers that the tests of their formats have: a writer that is added there is
part of the campaign. `uncovered` names the formats of the registries that no specimen is read by.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from data.fields import reader as fields_reader
from data.fields.file import write as write_fields
from data.fields.geometry import Box
from data.fields.layout import Grid, Layout
from data.fields.options import Told
from data.scans import reader as scans_reader
from lab import cli
from tests.crash.trial import in_child, run_command
from tests.data import field_files, mri_files, test_field_formats, test_own_scans

Read = Callable[[Path], Any]


@dataclass(frozen=True)
class Specimen:
    """A file in a folder, how it is made and read; what is read of a `checked` one has checksums.

    `path` is the file that is damaged, in the folder that `make` fills.
    """

    name: str
    make: Callable[[Path, Path], Path]
    """From the inputs of the campaign and an empty folder to the file."""
    read: Read
    checked: bool = False
    finite: bool = False
    """Numbers of arrays that are not finite are refused, but for arrays that are `unused`."""
    unused: tuple[str, ...] = ()
    seconds: float = 20
    most: int | None = None
    """Malformed files that are tried, of those that take a whole command each."""


def read_fields(path: Path) -> str:
    """Everything in a file of fields; a hash of the samples."""
    told = Told(periodic="x,y") if path.suffix in (".npy", ".npz") else Told()
    fields = fields_reader.open_fields(path, told=told)
    found = [fields.load()] + ([fields.load_inputs()] if fields.inputs else [])
    found += [fields.load_constants()] if fields.constants else []
    return hashlib.sha256(b"".join(values.numpy().tobytes() for values in found)).hexdigest()


def read_scan(path: Path) -> str:
    """The slices, the mask and the scale of a scan; a hash of the slices."""
    scan = scans_reader.open_scan(path)
    found = [
        tensor
        for index in range(min(scan.num_slices, 2))
        for tensor in scan.checked(index, scan.num_echoes - 1)
    ]
    scan.mask(4)
    scan.segmentation()
    _ = scan.scale
    return hashlib.sha256(b"".join(tensor.resolve_conj().numpy().tobytes() for tensor in found)).hexdigest()


def read_split(path: Path) -> None:
    """The scans that an annotation file lists."""
    for scan in scans_reader.load_scans(path.parents[2], "train").scans:
        scan.checked(0, 0)


def read_weights(app: str) -> Read:
    """A trained model; a hash of its numbers."""
    package = "lab.demo" if app == "demo" else app

    def read(path: Path) -> str:
        loaded = import_module(f"{package}.predictor").load(path)
        parts = (loaded, *vars(loaded).values())  # it is a module or has one
        model = next(part for part in parts if isinstance(part, nn.Module))
        numbers = (
            value.reshape(-1).view(torch.uint8).numpy().tobytes() for value in model.state_dict().values()
        )
        return hashlib.sha256(b"".join(numbers)).hexdigest()

    return read


def read_config(path: Path) -> None:
    """A configuration file."""
    from lab.demo.config import TrainConfig

    cli.parse(TrainConfig, ["--config", str(path)], prog="python -m lab.demo.train")


def resume(path: Path) -> int:
    """A run that is continued: its folder is runs/demo/one."""
    return run_command("lab.demo.train --preset smoke --epochs 1 --name one --resume")


def evaluate(path: Path) -> int:
    """A finished run that is tabulated."""
    return run_command("lab.demo.eval")


def read_images(path: Path) -> None:
    """Magnitude images that become scans."""
    from data.knee.config import FromImagesConfig
    from data.knee.from_images import read_images

    read_images(path, FromImagesConfig(path))


def read_masks(path: Path) -> str:
    """Sampling masks that were made before; a hash of them."""
    return hashlib.sha256(_pool(path.parents[1]).training(1).numpy().tobytes()).hexdigest()


def read_text(path: Path) -> None:
    """A text to learn from."""
    _tokens(path)


def read_tokens(path: Path) -> str:
    """Tokens that were made before, of the text beside their folder; a hash of them."""
    os.environ["MONARCH_DATA"] = str(path.parents[1])
    found = _tokens(path.parents[2] / "text.txt").tokens
    return hashlib.sha256(b"".join(found[role].tobytes() for role in sorted(found))).hexdigest()


def _tokens(path: Path) -> Any:
    from text.config import DataOptions
    from text.sources import corpus

    return corpus(DataOptions(data=path, context=16))


def _pool(root: Path) -> Any:
    from data.masks.pool import MaskPool
    from data.masks.spec import MaskSpec

    return MaskPool(MaskSpec("poisson", (32, 24), 2), root)


def _make_fields(inputs: Path, folder: Path) -> Path:
    times = torch.arange(1.0, 4, dtype=torch.float64)
    known: dict[str, Any] = {
        "inputs": ("vorticity",),
        "fingerprint": "0123456789abcdef",
        "parameters": {"nu": 1e-3},
        "constants": ("depth",),
        "units": {"vorticity": "1/s"},
        "symmetries": ("turn x",),
    }
    layout = Layout("navier-stokes", ("vorticity",), Grid.of(Box(), 8), times, **known)
    samples = np.random.default_rng(0).standard_normal((3, 8, 8, 5, 1)).astype(np.float32)
    parts = ((one[:, :, 0], one[:, :, 1:4], one[:, :, 4]) for one in samples)
    write_fields(folder / "flow.h5", layout, range(3), parts)
    return folder / "flow.h5"


def _make_old_fields(inputs: Path, folder: Path) -> Path:
    import h5py

    path = _make_fields(inputs, folder)
    with h5py.File(path, "r+") as file:
        del file.attrs["geometry"]
        file.attrs["problem"] = "darcy"
    return path


def _by_layout(name: str, write: Callable[[Path, np.ndarray], Path]) -> Specimen:
    values = np.random.default_rng(0).standard_normal((3, 8, 8, 5)).astype(np.float32)
    return Specimen(
        f"fields: {write.__name__[6:]}",
        lambda _, folder: write(folder / name, values),
        read_fields,
        finite=True,
        unused=UNUSED.get(write.__name__[6:], ()),
    )


UNUSED = {
    "v5": ("a", "t"),
    "v73": ("a", "t"),
    "groups": ("0001/grid", "0002/grid"),
    "sorption": ("0001/grid", "0002/grid"),
    "burgers": ("a_x",),
    "navier-stokes": ("a", "t"),
    "darcy": ("x-coordinate", "y-coordinate"),
    "matlab darcy": ("Kcoeff",),
    "fastmri": ("reconstruction_rss",),
    "npz": ("te",),
    "MATLAB": ("te",),
}
"""Arrays that foreign formats have and their readers do not use."""


def _foreign() -> list[Specimen]:
    """The writers of foreign formats, but for folders of files (Zarr), whose damage the tests of formats try."""
    return [
        Specimen(
            f"fields: {name}",
            lambda _, folder, write=write: write(folder)[0],
            read_fields,
            finite=True,
            unused=UNUSED.get(name, ()),
        )
        for name, (write, _) in field_files.WRITERS.items()
        if "zarr" not in name
    ]


def _scans() -> list[Specimen]:
    """The writers of scans, each with a path."""
    found = []
    for name, write in vars(mri_files).items():
        if name.endswith("_scan") and write.__module__ == mri_files.__name__:
            make = lambda _, folder, name=name, write=write: _written(write, folder / f"{name}.h5")  # noqa: E731
            found.append(
                Specimen(
                    f"scans: {name[:-5]}",
                    make,
                    read_scan,
                    checked=name == "skm_tea_scan",
                    finite=True,
                    unused=UNUSED.get(name[:-5], ()),
                )
            )
    found.append(Specimen("scans: skm_tea with tissues", _make_tissues, read_scan, checked=True, finite=True))
    found.append(Specimen("scans: notes", _make_notes, lambda path: read_scan(path.with_suffix(".npy"))))
    for name, writer in test_own_scans.WRITERS.items():
        make = lambda _, folder, writer=writer: writer(folder)  # noqa: E731
        unused = UNUSED.get(name, ())
        found.append(Specimen(f"scans: {name}", make, read_scan, finite=True, unused=unused))
    return found


def _make_tissues(_: Path, folder: Path) -> Path:
    import h5py

    path = _written(mri_files.skm_tea_scan, folder / "MTR_001.h5")
    with h5py.File(path, "r+") as file:
        file.create_dataset("segmentation", data=np.ones(mri_files.SHAPE, np.uint8), fletcher32=True)
        file["segmentation"].attrs["names"] = '{"1": "bone"}'
    return path


def _make_notes(_: Path, folder: Path) -> Path:
    path = test_own_scans.as_numpy(folder).with_suffix(".json")
    notes = {"axes": ["slice", "coil", "ky", "kz"], "voxel_spacing": [1, 1, 4], "orientation": ["SI", "AP", "LR"],
             "echo_ms": 5.0, "repetition_ms": 20.0, "flip_degrees": 20}  # fmt: skip
    path.write_text(json.dumps(notes))
    return path


def _make_scores(inputs: Path, folder: Path) -> Path:
    _copied("runs/demo/one/config.yaml")(inputs, folder)
    done = in_child(lambda: run_command("lab.demo.eval"), folder)
    if done.status != 0:
        raise RuntimeError(done.output)
    return next(folder.rglob("*.kept.json"))


def evaluated(path: Path) -> str:
    """A finished run whose scores were kept; the table."""
    if status := evaluate(path):
        raise SystemExit(status)
    return (path.parents[1] / "table.csv").read_text()


def _written(write: Callable[[Path], None], path: Path) -> Path:
    write(path)
    return path


def _copied(name: str, target: str | None = None) -> Callable[[Path, Path], Path]:
    """A file of the inputs, alone or with the run or data set around it."""

    def make(inputs: Path, folder: Path) -> Path:
        place = folder / (target or Path(name).name)
        if name.startswith("runs/") and target is None:
            shutil.copytree(inputs / "runs" / "demo", folder / "runs" / "demo")
            return folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(inputs / name, place)
        return place

    return make


def _make_split(inputs: Path, folder: Path) -> Path:
    shutil.copytree(inputs / "knees", folder / "knees")
    return folder / "knees" / "annotations" / "v1.0.0" / "train.json"


def _make_tokens(inputs: Path, folder: Path) -> Path:
    text = _copied("text.txt")(inputs, folder)
    os.environ["MONARCH_DATA"] = str(folder / "kept")
    try:
        _tokens(text)
    finally:
        del os.environ["MONARCH_DATA"]
    return next((folder / "kept" / "text").glob("*.npz"))


def _make_masks(inputs: Path, folder: Path) -> Path:
    pool = _pool(folder)
    pool.training(1)
    return next(pool.folder.iterdir())


APPS = ("demo", "pde", "mri", "text")

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("fields: own format", _make_fields, read_fields, checked=True, finite=True),
    Specimen("fields: own format, older", _make_old_fields, read_fields, checked=True, finite=True),
    *(_by_layout(name, write) for name, write in test_field_formats.LAYOUTS.items()),
    *_foreign(),
    *_scans(),
    Specimen("annotations", _make_split, read_split),
    *(Specimen(f"weights: {app}", _copied(f"runs/{app}/one/weights.safetensors", "w.safetensors"), read_weights(app),
               checked=True) for app in APPS),
    Specimen("checkpoint", _copied("runs/demo/one/checkpoints/last.ckpt"), resume, seconds=60, most=120),
    Specimen("run: config.yaml", _copied("runs/demo/one/config.yaml"), resume, seconds=60, most=120),
    Specimen("run: manifest.json", _copied("runs/demo/one/manifest.json"), resume, seconds=60, most=120),
    Specimen("finished run: config.yaml", _copied("runs/demo/one/config.yaml"), evaluate, seconds=60, most=120),
    Specimen("finished run: manifest.json", _copied("runs/demo/one/manifest.json"), evaluate, seconds=60, most=120),
    Specimen("finished run: metrics.csv", _copied("runs/demo/one/metrics.csv"), evaluate, seconds=60, most=120),
    Specimen("finished run: scores", _make_scores, evaluated, checked=True, seconds=60, most=60),
    Specimen("configuration", _copied("runs/demo/one/config.yaml", "options.yaml"), read_config),
    Specimen("images", _copied("images.npz"), read_images),
    Specimen("masks", _make_masks, read_masks, checked=True),
    Specimen("text", _copied("text.txt"), read_text),
    Specimen("tokens", _make_tokens, read_tokens, checked=True),
)  # fmt: skip


def uncovered(inputs: Path, folder: Path, specimens: tuple[Specimen, ...] = SPECIMENS) -> list[str]:
    """Formats of the registries that read none of the specimens."""
    missing = {kind.__name__ for kind in fields_reader.FORMATS}
    missing |= {type(form).__name__ for form in scans_reader.FORMATS}
    for number, specimen in enumerate(specimens):
        place = folder / str(number)
        place.mkdir(parents=True)
        path = specimen.make(inputs, place)
        if specimen.read is read_fields:
            kind = next((kind for kind in fields_reader.FORMATS if kind.recognises(path)), None)
            missing -= {kind.__name__} if kind else set()
        if specimen.read is read_scan:
            owner = next((form for form in scans_reader.FORMATS if form.owns_file(path)), None)
            missing -= {type(owner).__name__}
    return sorted(missing)
