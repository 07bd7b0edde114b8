"""Training under the settings: what changes at the switch and at the projection, and that a run can be resumed."""

import csv
import json
from math import log
from pathlib import Path

import lightning.pytorch as pl
import pytest
import torch
from torch.utils.data import default_collate

from lab import trainer, weights
from lab.checkpoint import Interrupted
from lab.errors import UserError
from monarch_core import MonarchLinear, monarchize
from tests.text.conftest import config
from text import train as training
from text.config import TableConfig, TrainConfig
from text.experiment import LanguageModelling
from text.metrics import bits_per_byte, surprise
from text.models import build
from text.predictor import load
from text.settings import SETTINGS
from text.sources import corpus
from text.train import initial_model, pretrained_weights

SWITCHING = ("--setting", "reverse", "--switch-at", "0.5", "--epochs", "4", "--epoch-steps", "3")


def final_state(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]


def header(folder: Path) -> dict:
    return weights.load(folder / "weights.safetensors", app="text").header


class StopAt(pl.Callback):
    """Interrupt a run before one of its steps, after a checkpoint."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_start(self, trainer: pl.Trainer, *_: object) -> None:
        if trainer.global_step == self.step:
            raise Interrupted(2)


@pytest.mark.parametrize("step", [3, 9])
def test_a_run_resumed_on_either_side_of_the_switch_ends_where_the_whole_run_ends(
    step, train_small, monkeypatch
):
    whole = train_small("whole", *SWITCHING)
    build_trainer = trainer.build_trainer
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "build_trainer", lambda *a: build_trainer(*a[:3], [StopAt(step), *a[3]]))
        with pytest.raises(SystemExit):
            train_small("parts", *SWITCHING)
    parts = train_small("parts", *SWITCHING, "--resume")
    first, second = final_state(whole), final_state(parts)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert (whole / "weights.safetensors").read_bytes() == (parts / "weights.safetensors").read_bytes()


class Around(pl.Callback):
    """The matrices and the loss of one batch as every step begins, before or after the switch."""

    seen: list[tuple[bool, float]]

    def __init__(self) -> None:
        self.seen = []

    def on_train_batch_start(self, trainer: pl.Trainer, module: LanguageModelling, *_: object) -> None:
        windows = torch.arange(34).view(2, 17)
        with torch.no_grad():
            loss = surprise(module.model, *module.model.question(windows)).mean().item()
        self.seen.append((module.model.is_monarch, loss))


def test_reverse_computes_the_same_function_at_the_switch(train_small, monkeypatch):
    before, after, build_trainer = Around(), Around(), trainer.build_trainer
    monkeypatch.setattr(
        trainer, "build_trainer", lambda *a: build_trainer(*a[:3], [before, *a[3][:-1], after, a[3][-1]])
    )
    folder = train_small("reverse", *SWITCHING)
    assert [monarch for monarch, _ in before.seen] == [True] * 7 + [False] * 5
    assert [monarch for monarch, _ in after.seen] == [True] * 6 + [False] * 6
    assert after.seen[6][1] == pytest.approx(before.seen[6][1], rel=1e-5)
    assert load(folder / "weights.safetensors").model.is_monarch == (header(folder)["options"]["blocks"] == 4)
    assert not any("operator" in name for name in final_state(folder))


@pytest.mark.parametrize("model", ["gpt", "bert"])
def test_project_starts_as_the_projection_of_the_pretrained_model(model, texts, workplace):
    own = config(texts, "--model", model, "--setting", "project")
    path, text = pretrained_weights(own), corpus(own)
    started = initial_model(own, text, path)
    expected = build(model, 256, 16, size="tiny", blocks=None)
    expected.load_state_dict(weights.load(path, app="text").tensors)
    monarchize(expected, select=r"^layers\.", blocks=4)
    windows, numbers = default_collate(list(text.held_out("validation", 16, 4)))
    scores = [
        LanguageModelling(each, own, text.vocabulary, 1.0).scores((windows, numbers))["bits_per_byte"]
        for each in (started, expected)
    ]
    assert torch.equal(*scores)
    assert sum(isinstance(each, MonarchLinear) for each in started.modules()) == 12
    dense = initial_model(config(texts, "--model", model, "--setting", "finetune"), text, path)
    assert not dense.is_monarch
    assert all(
        torch.equal(dense.state_dict()[k], v) for k, v in weights.load(path, app="text").tensors.items()
    )


def test_adapters_alone_learn_and_are_in_the_weights(train_small, texts, workplace):
    folder = train_small("adapter", "--setting", "adapter", "--adapter-rank", "2")
    own = config(texts, "--setting", "adapter", "--adapter-rank", "2")
    before = weights.load(pretrained_weights(own), app="text").tensors
    after = load(folder / "weights.safetensors").model.state_dict()
    frozen = {name.replace(".base.", "."): value for name, value in after.items() if ".operator." not in name}
    assert frozen.keys() == before.keys()
    assert all(torch.equal(frozen[name], before[name]) for name in before)
    factors = {name: value for name, value in after.items() if ".operator." in name}
    assert len(factors) == 24  # L and R beside each of the six matrices of two blocks
    assert all(value.abs().max() > 0 for value in factors.values())
    assert header(folder)["adapter"] == {"blocks": 4, "rank": 2}


def test_a_model_with_adapters_starts_as_the_pretrained_model(texts, workplace):
    started, plain = (
        initial_model(own, corpus(own), pretrained_weights(own))
        for own in (config(texts, "--setting", setting) for setting in ("adapter", "finetune"))
    )
    tokens = torch.arange(32).view(2, 16)
    assert torch.equal(started(tokens), plain(tokens))


def test_finetune_and_project_share_their_pretraining_and_read_the_other_half(train_small, workplace):
    for setting in ("finetune", "project"):
        train_small(setting, "--setting", setting, "--finetune-lr", "0.1")
    folders = {path.name for path in (workplace / "runs" / "text").iterdir()}
    (shared,) = folders - {"finetune", "project"}
    assert shared.startswith("gpt-pretrain-seed0-")
    assert SETTINGS["pretrain"].part == "first"
    assert SETTINGS["project"].part == SETTINGS["finetune"].part == "second"


def test_fine_tuning_has_its_own_learning_rate(texts):
    own = config(texts, "--setting", "finetune", "--lr", "0.01", "--finetune-lr", "0.2")
    assert own.peak_lr == pytest.approx(0.002)
    assert own.pretraining().peak_lr == pytest.approx(0.01)
    other = config(texts, "--setting", "project", "--lr", "0.01", "--finetune-lr", "0.3")
    assert own.pretraining().name == other.pretraining().name
    assert config(texts, "--setting", "finetune", "--seed", "1").pretraining().name != own.pretraining().name


def test_pretraining_does_not_take_the_steps_of_the_run_that_follows_it(texts):
    own = config(texts, "--setting", "finetune", "--steps-of", "runs/text/one/manifest.json")
    assert own.steps_of is not None
    assert own.pretraining().steps_of is None
    assert own.pretraining().name == config(texts, "--setting", "finetune").pretraining().name


def test_the_factors_learn_at_the_rates_of_compute_better_spent(texts, workplace):
    own = config(texts, "--setting", "monarch", "--lr", "0.01")
    experiment = LanguageModelling(initial_model(own, corpus(own)), own, corpus(own).vocabulary, 1.0)
    rates = {id(p): group["lr"] for group in experiment.parameter_groups() for p in group["params"]}
    down = experiment.model.layers[0].feed_forward.down.operator
    # 256 -> 64 with 4 blocks: R reads 64 of 256 inputs, L reads 4 blocks x rank 4 = 16.
    assert rates[id(down.R)] == pytest.approx(0.01 * 256 / 64 / 2)
    assert rates[id(down.L)] == pytest.approx(0.01 * 256 / 16 / 2)
    assert rates[id(experiment.model.tokens.weight)] == 0.01


def test_monarch_models_train_without_dropout(texts, workplace):
    text = corpus(config(texts))
    for setting, expected in (("dense", 0.3), ("monarch", 0.0), ("reverse", 0.0)):
        model = initial_model(config(texts, "--setting", setting, "--dropout", "0.3"), text)
        assert model.dropout.p == model.layers[0].dropout.p == model.layers[0].attention.dropout == expected


def test_bits_per_byte_are_the_code_length_of_the_text(texts, workplace):
    """Against a token by token computation of -log2 p, in float64."""
    own = config(texts)
    text, model = corpus(own), build("gpt", 256, 16, size="tiny").double().eval()
    windows = text.held_out("test", 16, 3)
    total = 0.0
    for window, _ in windows:
        for end in range(1, 17):
            with torch.no_grad():
                chances = model(window[None, :end])[0, -1].softmax(0)
            total -= torch.log2(chances[window[end]]).item()
    experiment = LanguageModelling(model, own, text.vocabulary, text.bytes_per_token["test"])
    with torch.no_grad():
        found = experiment.scores(default_collate(list(windows)))["bits_per_byte"].mean().item()
    assert found == pytest.approx(total / (3 * 16), rel=1e-6)


def test_bits_per_byte_do_not_depend_on_how_long_tokens_are():
    nats = torch.tensor([3 * log(2.0)])
    assert bits_per_byte(nats, 1.0).item() == pytest.approx(3)
    assert bits_per_byte(nats, 2.0).item() == pytest.approx(1.5)


@pytest.mark.parametrize(("model", "setting"), [("gpt", "dense"), ("gpt", "monarch"), ("bert", "monarch")])
def test_it_learns(model, setting, train_small):
    words = (
        "--model",
        model,
        "--setting",
        setting,
        "--epochs",
        "2",
        "--epoch-steps",
        "30",
        "--batch-size",
        "8",
    )
    with (train_small("run", *words) / "metrics.csv").open() as file:
        bits = [float(row["bits_per_byte"]) for row in csv.DictReader(file)]
    assert bits[-1] < bits[0] < 8
    assert bits[-1] < 5.5


def test_minutes_choose_the_steps_and_a_resumed_run_keeps_them(train_small, monkeypatch):
    words = ("--setting", "reverse", "--minutes", "0.01", "--epochs", "2", "--batch-size", "2")
    folder = train_small("timed", *words)
    plan = json.loads((folder / "manifest.json").read_text())["plan"]
    assert (plan["epochs"], len(plan["epoch_steps"])) == (2, 2)
    monkeypatch.setattr(training, "pace", lambda *_: pytest.fail("measured again"))
    train_small("timed", *words, "--resume")
    assert json.loads((folder / "manifest.json").read_text())["plan"] == plan


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({"switch_at": 1.5}, "--switch-at is a fraction"),
        ({"dropout": 1.0}, "--dropout"),
        ({"minutes": 0.0}, "--minutes must be above 0"),
        ({"context": 4}, "--context must be at least 8"),
        ({"vocabulary_size": 100}, "--vocabulary-size"),
        ({"setting": "monarch", "options": {"blocks": None}}, "needs --blocks"),
        ({"setting": "adapter", "options": {"blocks": 100, "size": "tiny"}}, "--blocks must be at most 64"),
    ],
)
def test_impossible_options_are_refused(options, answer):
    with pytest.raises(UserError, match=answer):
        TrainConfig(**options)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({"seeds": 0}, "--seeds must be at least 1"),
        ({"settings": []}, "--settings needs"),
        ({"times": [0.7, 0.0]}, "--times are fractions above 0, not 0.7 0.0"),
    ],
)
def test_impossible_tables_are_refused(options, answer):
    with pytest.raises(UserError, match=answer):
        TableConfig(**options)
