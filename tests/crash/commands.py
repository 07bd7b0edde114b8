"""Every command of the suite in its smallest form, and what it finds when it starts.

Commands run in a folder of their own, `place`. What they only read is in `inputs`, made once; what they continue or
change is copied into the place first.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.crash.trial import in_child, run_command
from tests.data import own_files

FLOW = (
    "data.navier_stokes --nu 1e-2 --final-time 12 --grid 16 --resolution 16 --precision float32 --workers 1"
)
SMALL = "--num-samples 2 --resolution 8 --workers 1 --out made.h5"
DEMO = "--preset smoke --epochs 1 --resume"
PDE = "--preset smoke --nu 1e-2 --data {inputs}/flow.h5 --width 4 --modes 3"
MRI = "--preset smoke --data {inputs}/knees --epochs 1 --slices 2 --val-slices 1 --masks 2 --resume"
TEXT = "--preset smoke --data {inputs}/text.txt --epochs 1"
PDE_TABLE = f"{PDE} --nus 1e-2 --models mno --minutes null"
MRI_TABLE = f"{MRI} --models sense,dc-sense --accs 2 --few-shot 1 --num-train 1"
TEXT_TABLE = f"{TEXT} --settings dense --seeds 1"


@dataclass(frozen=True)
class Command:
    """`python -m` and these words, begun in a folder that holds copies of some inputs."""

    words: str
    start: tuple[str, ...] = ()
    seconds: float = 120
    every: int = 1
    """Only every n-th of the states that are left is continued from: for slow commands whose states are much alike,
    because they write one result after the other and read none of them."""

    @property
    def module(self) -> str:
        """What runs."""
        return self.words.split()[0]

    @property
    def name(self) -> str:
        """The module, and the subcommand where it has several."""
        first = self.words.split()[1:2]
        return " ".join(
            [self.module, *(word for word in first if not word.startswith("-") and "." not in word)]
        )


COMMANDS = (
    Command(f"lab.demo.train {DEMO} --name a"),
    Command("lab.demo.eval", ("runs/demo",)),
    Command("lab.demo.table --preset smoke --epochs 1 --models monarch"),
    Command("lab.demo.models"),
    Command("data.navier_stokes --nu 1e-2 --final-time 2 --grid 8 " + SMALL),
    Command("data.darcy " + SMALL),
    Command("data.burgers --frames 2 " + SMALL),
    Command("data.shallow_water --frames 2 --spin-up 0 " + SMALL),
    Command("data.fields show {inputs}/flow.h5 --samples 1 --frames 2 --out pictures"),
    Command("data.fields info {inputs}/flow.h5"),
    Command("data.fields convert {inputs}/flow.h5 made.h5"),
    Command("data.fields join shards/flow.h5 --remove-shards", ("shards",)),
    Command("data.knee --subjects 1 --shape [8,32,24] --jobs 1 --out knees"),
    Command("data.knee from-images {inputs}/images.npz --out scans"),
    Command("data.knee show {inputs}/knees --out pictures", every=3),
    Command("data.scans info {inputs}/knees/files_recon_calib-24/MTR_001.h5"),
    Command("data.scans show {inputs}/own.npy --out pictures"),
    Command("data.masks --count 2 --ky 32 --kz 24 --picture masks.png"),
    Command(f"pde.train {PDE} --name a --resume"),
    Command("pde.eval --figures false", ("runs/pde",), every=3),
    Command(f"pde.table {PDE_TABLE}", ("tables/runs/pde",), every=5),
    Command("pde.export --weights {inputs}/runs/pde/small/weights.safetensors --out model.pt2", every=3),
    Command("pde.models"),
    Command(f"mri.train {MRI} --name a"),
    Command("mri.eval --figures false", ("runs/mri",), every=2),
    Command(f"mri.table {MRI_TABLE}", ("tables/runs/mri",), every=5),
    Command("mri.reconstruct --weights {inputs}/runs/mri/one/weights.safetensors "
            "--input {inputs}/knees/files_recon_calib-24/MTR_001.h5 --out volume.nii.gz"),
    Command("mri.export --weights {inputs}/runs/mri/one/weights.safetensors --out model.pt2", every=3),
    Command("mri.models"),
    Command(f"text.train {TEXT} --name a --resume"),
    Command("text.eval", ("runs/text",), every=3),
    Command(f"text.table {TEXT_TABLE}", ("tables/runs/text",), every=5),
    Command("text.models --sizes tiny"),
)  # fmt: skip

MAKE = (
    FLOW + " --num-samples 8 --out {inputs}/flow.h5",
    FLOW + " --num-samples 2 --shard 1/2 --out {inputs}/shards/flow.h5",
    FLOW + " --num-samples 2 --shard 2/2 --out {inputs}/shards/flow.h5",
    "data.knee --subjects 4 --shape [8,32,24] --jobs 1 --out {inputs}/knees",
    f"lab.demo.train {DEMO} --name one",
    f"pde.train {PDE} --name one",
    f"pde.train {PDE.replace('--width 4 --modes 3', '--model resnet --width 2')} --name small",
    f"mri.train {MRI} --name one",
    f"text.train {TEXT} --name one",
)
"""What makes the inputs."""
TABLES = (f"pde.table {PDE_TABLE}", f"mri.table {MRI_TABLE}", f"text.table {TEXT_TABLE}")
"""What makes their finished runs; that tables train what is missing is tried with the smallest, lab.demo.table."""

MODULES = tuple(sorted({command.module for command in COMMANDS}))
LIBRARIES = (
    "lightning.pytorch", "matplotlib.pyplot", "PIL.GifImagePlugin", "nibabel", "scipy.io", "sigpy.mri.app",
    "skimage.metrics", "safetensors.torch", "jsonargparse", "rich.table", "yaml", "filelock", "torch.export",
    "lab.trainer", "lab.export", "lab.report", "pde.scores", "pde.report", "pde.figures", "pde.experiment",
    "pde.sources", "mri.scores", "mri.report", "mri.figures", "mri.search", "mri.experiment", "mri.volumes",
    "text.scores", "text.report", "text.experiment", "text.figures", "lab.demo.scores", "lab.demo.report",
    "data.knee.generate", "data.knee.from_images", "data.knee.show", "data.fields.show", "data.fields.convert",
    "data.fields.join", "data.fields.info", "data.scans.info", "data.scans.show", "data.masks.summary",
    "data.navier_stokes.generate",
    "data.darcy.generate", "data.burgers.generate", "data.shallow_water.generate", "monarch_core",
)  # fmt: skip
"""What commands import when they run."""


def make_inputs(inputs: Path, made: tuple[str, ...] = MAKE, tables: tuple[str, ...] = TABLES) -> None:
    """Make what the commands read; the runs are in `inputs/runs`."""
    inputs.mkdir(parents=True)
    lines = (f"line {i} of a text to learn from\n" for i in range(1500))
    (inputs / "text.txt").write_text("".join(lines))
    random = np.random.default_rng(0)
    np.save(
        inputs / "own.npy", own_files.kspace(2, (24, 20))
    )  # without coil maps: they are estimated and kept
    np.savez(inputs / "images.npz", images=random.random((2, 32, 32)).astype(np.float32))
    (inputs / "tables").mkdir()
    for place, every in ((inputs, made), (inputs / "tables", tables)):
        for words in every:
            done = in_child(lambda words=words: run_command(words.format(inputs=inputs)), place, seconds=600)
            if done.status != 0:
                raise RuntimeError(f"{words} failed: {done.output}")
    for results in (inputs / "tables" / "runs").glob("*/*-results"):
        shutil.rmtree(results)


def set_up(command: Command, inputs: Path, place: Path) -> None:
    """An empty place with the copies that the command starts from."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in command.start:
        shutil.copytree(inputs / name, place / name.removeprefix("tables/"))
