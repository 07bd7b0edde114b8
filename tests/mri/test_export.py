"""Exported methods: the same reconstruction from onnxruntime and from a .pt2 file, in real arithmetic."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from data.scans.sense import sample
from lab import export as exporting
from lab import weights
from lab.cli import run as command
from mri.config import TrainConfig
from mri.experiment import header
from mri.export import export
from mri.models import MODELS, build
from mri.predictor import InPairs, load

EVERYTHING = {"form": "grid", "start": "density", "per_echo": True, "steps": 2, "consistency": True}
SMALL: dict[str, dict[str, Any]] = {"unet": {"channels": 2}}
EXPORTED = [name for name, entry in MODELS.items() if entry.load().not_in_pairs_because is None]


def stored(path: Path, model: str, plane: tuple[int, int] = (12, 10), **options: Any) -> Path:
    """Weights of a method away from its start."""
    plane = (33, 32) if model == "unet" else plane
    config = TrainConfig(model=model, options=options)
    method = build(model, plane, torch.rand(plane) + 0.1, **config.options)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    weights.save(path, method, header(method, config))
    return path


def call(*words: object) -> int:
    return command("python -m mri.export", {"": export}, [str(word) for word in words])


def error(file: Path, path: Path, given: Any) -> float:
    """Of k-space as it was measured: the file applies the mask itself."""
    method = load(path).method
    with torch.no_grad():
        expected = method(sample(given.full, given.mask), given.maps, given.mask, given.echo)
    answer = exporting.run(file, as_pairs(given.full, given.maps, given.mask, given.echo))
    return exporting.relative(answer, torch.view_as_real(expected))


def as_pairs(kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> dict[str, Tensor]:
    pairs = {"kspace": torch.view_as_real(kspace), "maps": torch.view_as_real(maps)}
    return {**pairs, "mask": mask.float(), "echo": echo}


@pytest.mark.parametrize(
    ("model", "options"),
    [*((name, SMALL.get(name, {})) for name in EXPORTED), ("msense", EVERYTHING)],
)
def test_the_reconstruction_in_onnxruntime_is_the_predictors(model, options, problem, tmp_path, capsys):
    path, file = stored(tmp_path / "w.safetensors", model, **options), tmp_path / "m.onnx"
    assert call("--weights", path, "--out", file) == 0
    assert "checked: the file agrees" in capsys.readouterr().out
    plane = load(path).method.plane
    for batch, coils in ((1, 1), (3, 5)):
        given = problem(plane, coils=coils, batch=batch, dtype=torch.complex64)
        assert error(file, path, given) < 1e-5
    assert exporting.read_metadata(file)["plane"] == list(plane)


@pytest.mark.parametrize(("model", "options"), [("msense", {"steps": 2}), ("unet", {"channels": 2})])
def test_the_reconstruction_of_a_pt2_file_is_the_predictors(model, options, problem, tmp_path):
    path, file = stored(tmp_path / "w.safetensors", model, **options), tmp_path / "m.pt2"
    assert call("--weights", path, "--out", file) == 0
    given = problem(load(path).method.plane, coils=2, batch=4, dtype=torch.complex64)
    assert error(file, path, given) < 1e-5


@pytest.mark.parametrize("options", [dict(zip(EVERYTHING, chosen, strict=True)) for chosen in itertools.product(
    ("separable", "grid"), ("idft", "density"), (False, True), (1, 3), (False, True)
)])  # fmt: skip
def test_every_form_of_msense_is_the_same_in_real_arithmetic(options, problem, tmp_path):
    method = load(stored(tmp_path / "w.safetensors", "msense", (6, 10), **options)).method
    given = problem((6, 10), dtype=torch.complex64)
    with torch.no_grad():
        expected = torch.view_as_real(method(*given.inputs))
        found = InPairs(method)(**as_pairs(*given.inputs))
    assert exporting.relative(found, expected) < 1e-5


@pytest.mark.parametrize("plane", [(12, 10), (13, 9), (7, 11)])  # even, odd, prime
def test_sense_in_real_arithmetic_has_any_size(plane, problem):
    given = problem(plane, dtype=torch.complex64)
    method = build("sense", plane)
    found = InPairs(method)(**as_pairs(*given.inputs))
    assert exporting.relative(found, torch.view_as_real(method(*given.inputs))) < 1e-5


@pytest.mark.parametrize("model", [name for name in MODELS if name not in EXPORTED])
def test_methods_outside_torch_are_refused_with_a_sentence(model, tmp_path, capsys):
    path = stored(tmp_path / "w.safetensors", model)
    assert call("--weights", path, "--out", tmp_path / "m.onnx") == 2
    said = capsys.readouterr().err
    assert "cannot be exported: " in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_metadata_repeats_the_header_and_explains_the_axes(suffix, tmp_path):
    path, file = stored(tmp_path / "w.safetensors", "sense"), tmp_path / f"m{suffix}"
    assert call("--weights", path, "--out", file) == 0
    metadata, known = exporting.read_metadata(file), weights.load(path, app="mri").header
    assert {key: metadata[key] for key in known} == known
    assert metadata["layout"]["image"] == ["batch", "ky", "kz", "re, im"]
    assert "version" in metadata


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--weights is missing"),
        (["--weights", "w", "--out", "m.nii"], "ends in .onnx or .pt2, not m.nii."),
        (["--weights", "pde.safetensors"], "holds a model of pde, not of mri"),
    ],
)
def test_mistakes_get_a_sentence(words, sentence, workplace, capsys):
    weights.save(Path("pde.safetensors"), nn.Linear(2, 2), {"app": "pde"})
    assert call(*words) == 2
    assert sentence in capsys.readouterr().err
