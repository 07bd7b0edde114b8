"""Exported forecasters: the same forecast from onnxruntime and from a .pt2 file, and what the file says of itself."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import nn

from data.fields.geometry import Sphere
from data.fields.layout import Grid
from lab import export as exporting
from lab import weights
from lab.cli import run as command
from monarch_core import __version__
from pde.config import TrainConfig
from pde.experiment import make_training
from pde.export import export
from pde.models import MODELS
from pde.predictor import load
from pde.problems import PROBLEMS
from pde.sources import Samples

MEANING = {"input_names": ["vorticity"], "field_names": ["vorticity"], "interval": 1.0}
SMALL = {"width": 4, "modes": 3, "depth": 1}


def stored(path: Path, model: str = "mno", *, fields: int = 1, side: int = 16, **options: Any) -> Path:
    """Weights of an untrained model whose data have a mean and a spread of their own."""
    problem = options.pop(
        "problem", "shallow-water" if getattr(MODELS[model], "sphere", False) else "navier-stokes"
    )
    recipe = options.pop("recipe", "map" if PROBLEMS[problem].static else "markov")
    small = {key: value for key, value in SMALL.items() if key in MODELS[model].defaults}
    config = TrainConfig(problem=problem, model=model, recipe=recipe, options=small | options)
    geometry = PROBLEMS[problem].geometry
    grid = Grid.of(geometry, side, 2 * side if isinstance(geometry, Sphere) else side)
    scale = torch.tensor([3.0, 0.1, 50.0])[:fields]
    frames = [1, 1] if PROBLEMS[problem].static else [10, 2]
    given, wanted = (5 * scale + scale * torch.randn(3, *grid.resolution, n, fields) for n in frames)
    training, _ = make_training(config, Samples(given, wanted), grid, MEANING)
    weights.save(path, training.model, training.header())
    return path


def call(*words: object) -> int:
    return command("python -m pde.export", {"": export}, [str(word) for word in words])


def frames_for(path: Path, batch: int, fields: int = 1) -> torch.Tensor:
    predictor = load(path)
    mean, std = predictor.input_scale
    frames = predictor.in_frames + predictor.net.lead
    return mean + std * torch.randn(batch, *predictor.net.resolution, frames, fields)


def error(file: Path, path: Path, batch: int, steps: int, fields: int = 1) -> float:
    frames = frames_for(path, batch, fields)
    with torch.no_grad():
        expected = load(path).predict(frames, steps)
    answer = exporting.run(file, {"frames": frames})
    assert answer.shape == (batch, *expected.shape[1:3], steps, fields)
    return exporting.relative(answer, expected)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_makes_the_same_step_in_onnxruntime(model, tmp_path, capsys):
    path = stored(tmp_path / "w.safetensors", model, side=32 if model == "unet" else 16)
    assert call("--weights", path, "--out", tmp_path / "m.onnx") == 0
    assert "checked: the file agrees" in capsys.readouterr().out
    assert max(error(tmp_path / "m.onnx", path, batch, 1) for batch in (1, 5)) < 1e-5


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_a_rollout_is_the_predictors(suffix, tmp_path):
    path = stored(tmp_path / "w.safetensors", recipe="fno", groups=2)  # ten frames in
    file = tmp_path / f"m{suffix}"
    assert call("--weights", path, "--out", file, "--steps", 4) == 0
    assert max(error(file, path, batch, 4) for batch in (1, 5)) < 1e-5


@pytest.mark.parametrize("steps", [1, 3])
def test_a_rollout_on_a_finer_grid_is_the_predictors(steps, tmp_path):
    path = stored(tmp_path / "w.safetensors", refine=2)
    assert call("--weights", path, "--out", tmp_path / "m.pt2", "--steps", steps) == 0
    assert error(tmp_path / "m.pt2", path, 3, steps) < 1e-5


def test_several_fields_keep_their_own_scales(tmp_path):
    path = stored(tmp_path / "w.safetensors", "lfno", fields=2, problem="burgers-walls", start="dst")
    assert call("--weights", path, "--out", tmp_path / "m.pt2", "--steps", 2) == 0
    assert max(error(tmp_path / "m.pt2", path, batch, 2, fields=2) for batch in (1, 4)) < 1e-5


def test_the_input_of_a_static_problem_has_its_one_answer(tmp_path, capsys):
    path = stored(tmp_path / "w.safetensors", "fno", problem="darcy", padding=0.125)
    assert call("--weights", path, "--out", tmp_path / "m.pt2") == 0
    assert max(error(tmp_path / "m.pt2", path, batch, 1) for batch in (1, 4)) < 1e-5
    assert call("--weights", path, "--out", tmp_path / "m.pt2", "--steps", 3) == 2
    assert "an input of darcy has one answer" in capsys.readouterr().err


def test_a_rollout_does_not_grow_the_file(tmp_path):
    path = stored(tmp_path / "w.safetensors", "resnet", width=2)
    sizes = []
    for steps in (2, 40):
        assert call("--weights", path, "--out", tmp_path / "m.pt2", "--steps", steps) == 0
        sizes.append((tmp_path / "m.pt2").stat().st_size)
    assert sizes[1] < 1.02 * sizes[0]


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_metadata_says_what_the_numbers_are(suffix, tmp_path):
    path, file = stored(tmp_path / "w.safetensors", "resnet", width=2), tmp_path / f"m{suffix}"
    assert call("--weights", path, "--out", file, "--steps", 2) == 0
    metadata, predictor = exporting.read_metadata(file), load(path)
    header = weights.load(path, app="pde").header
    assert {key: metadata[key] for key in header} == header
    assert metadata["field_names"] == ["vorticity"]
    assert (metadata["app"], metadata["model"], metadata["steps"]) == ("pde", "resnet", 2)
    assert (metadata["resolution"], metadata["version"]) == ([16, 16], __version__)
    assert metadata["geometry"] == PROBLEMS["navier-stokes"].geometry.to_dict()
    assert metadata["normalisation"] == {
        key: pytest.approx(float(getattr(predictor, key))) for key in ("mean", "std", "change")
    }


def test_a_file_with_other_numbers_is_not_written(tmp_path, monkeypatch, capsys):
    """The check after writing notices weights that are wrong by a thousandth."""
    path, save = stored(tmp_path / "w.safetensors", "resnet", width=2), exporting._save

    def spoiled(model: exporting.Exportable, file: Path) -> None:
        save(model, file)
        graph = onnx.load(file)
        largest = max(graph.graph.initializer, key=lambda tensor: np.prod(tensor.dims))
        largest.CopyFrom(
            numpy_helper.from_array(numpy_helper.to_array(largest) * np.float32(1.001), largest.name)
        )
        onnx.save(graph, file)

    monkeypatch.setattr(exporting, "_save", spoiled)
    assert call("--weights", path, "--out", tmp_path / "m.onnx") == 2
    assert "differs from the model itself" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.onnx"))


def test_without_onnxruntime_the_file_is_written_and_it_says_so(tmp_path, monkeypatch, capsys):
    path = stored(tmp_path / "w.safetensors", "resnet", width=2)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert call("--weights", path, "--out", tmp_path / "m.onnx") == 0
    assert "not checked: running ONNX files needs onnxruntime" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--weights is missing"),
        (["--weights", "absent"], "--weights names absent, but there is no such file."),
        (["--weights", "w.safetensors", "--out", "m.tflite"], "ends in .onnx or .pt2, not m.tflite."),
        (["--weights", "w.safetensors", "--steps", "0"], "--steps must be at least 1, not 0."),
        (["--weights", "mri.safetensors"], "holds a model of mri, not of pde"),
    ],
)
def test_mistakes_get_a_sentence(words, sentence, workplace, capsys):
    weights.save(Path("mri.safetensors"), nn.Linear(2, 2), {"app": "mri"})
    assert call(*words) == 2
    assert sentence in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(workplace, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert call("--weights", "w.safetensors") == 2
    assert "pip install 'monarch-science[export]', or write a .pt2" in capsys.readouterr().err


def test_what_torch_cannot_export_is_refused_with_a_sentence(tmp_path, monkeypatch, capsys):
    path = stored(tmp_path / "w.safetensors", "resnet", width=2)
    net = type(load(path).net)
    forward = net.forward
    monkeypatch.setattr(net, "forward", lambda self, x: forward(self, x) if float(x.sum()) > 0 else x)
    assert call("--weights", path, "--out", tmp_path / "m.pt2") == 2
    said = capsys.readouterr().err
    assert "cannot export resnet as .pt2" in said
    assert said.count("\n") == 1


def test_what_sees_all_given_frames_takes_no_more_of_them(tmp_path):
    """With a finer grid, too: tests begin with as many."""
    path = stored(tmp_path / "w.safetensors", "fno", recipe="fno", transport=True, refine=2)
    assert call("--weights", path, "--out", tmp_path / "m.pt2") == 0
    frames = 5 + 3 * torch.randn(2, 16, 16, 10, 1)
    answer = exporting.run(tmp_path / "m.pt2", {"frames": frames})
    with torch.no_grad():
        assert exporting.relative(answer, load(path).predict(frames, 1)) < 1e-5
