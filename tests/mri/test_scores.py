"""Which runs share a row of a table."""

from dataclasses import fields
from pathlib import Path

import pytest

from lab.config import as_plain_dict
from lab.runs import FinishedRun, rows
from mri.config import TrainConfig
from mri.models import MODELS

OTHER = {
    "acc": 3.0, "num_train": 2, "mask": "lines", "masks": 7, "echo": "1", "slices": 3, "val_slices": 5,
    "skip_bad": True, "knees": 9, "knee_shape": [8, 32, 24], "model": "unet", "samples": 64, "recipe": "paper",
    "loss": "l1", "similarity": 1.0, "lr": 0.5, "weight_decay": 0.5, "schedule": "constant", "shift": 0.1,
    "turn": True, "epochs": 99, "epoch_steps": 9, "batch_size": 3, "warmup_steps": 9, "step_size": 9,
    "grad_clip": 0.5, "start": "density", "form": "grid", "per_echo": True, "steps": 9, "consistency": True,
    "decay_towards": "zero", "rank": 2,
}  # fmt: skip
TOGETHER = TrainConfig.placement | {"seed"}
OPTIONS = [entry.name for entry in fields(TrainConfig) if entry.name != "options"]


def finished(folder: str, source: str = "knees", **changes) -> FinishedRun:
    config = as_plain_dict(TrainConfig()) | changes
    return FinishedRun(Path(folder), config, {"data": {"source": source, "fingerprint": folder}})


@pytest.mark.parametrize("key", [*OPTIONS, *MODELS["msense"].defaults])
def test_runs_share_a_row_only_if_they_differ_in_placement_or_seed(key):
    value = 1 if key == "seed" else OTHER.get(key, "other")
    found = rows([finished("a"), finished("b", **{key: value})], TrainConfig, apart=("acc", "num_train"))
    assert len(found) == (1 if key in TOGETHER else 2)
    if key not in TOGETHER | {"acc", "num_train"}:
        assert len({row.label for row in found}) == 2


def test_runs_on_other_data_have_rows_of_their_own_but_other_scans_of_one_set_do_not_need_a_label():
    assert len(rows([finished("a"), finished("b", source="brains")], TrainConfig)) == 2
    few = rows([finished("a"), finished("b", num_train=1)], TrainConfig, apart=("acc", "num_train"))
    assert [row.label for row in few] == ["msense", "msense"]
