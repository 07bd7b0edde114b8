"""Reverse sparsification inside real Lightning runs: small, on the CPU, to the end."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from lab.errors import UserError
from lab.sparsify import ReverseSparsification, dense_state
from monarch_core import MonarchLinear, monarchize, param_groups

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty"),
]

EPOCHS, BATCHES = 6, 10
STEPS = EPOCHS * BATCHES


class Regression(pl.LightningModule):
    """sin of a random projection, learned by two Monarch layers and a dense one."""

    def __init__(self, optimizer: str = "adamw", lr: float = 3e-3) -> None:
        super().__init__()
        self.net = nn.Sequential(
            MonarchLinear(32, 96, blocks=4), nn.GELU(), MonarchLinear(96, 96, blocks=4), nn.Linear(96, 1)
        )
        self.optimizer, self.lr = optimizer, lr
        self.losses: list[float] = []
        self.rates: list[float] = []

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.losses.append(loss.item())
        self.rates.append(max(group["lr"] for group in self.trainer.optimizers[0].param_groups))
        return loss

    def configure_optimizers(self) -> Any:
        groups = param_groups(self, self.lr, 0.01)
        if self.optimizer == "adamw":
            optimizer = torch.optim.AdamW(groups)
        else:
            optimizer = torch.optim.SGD(groups, lr=self.lr, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - 0.9 * step / STEPS)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def batches() -> DataLoader:
    numbers = torch.Generator().manual_seed(1)
    x = torch.randn(BATCHES * 32, 32, generator=numbers)
    y = torch.sin(x @ torch.randn(32, 1, generator=numbers) / 4)
    return DataLoader(TensorDataset(x, y), batch_size=32)


def fit(
    module: pl.LightningModule, *callbacks: pl.Callback, epochs: int = EPOCHS, resume: Path | None = None
) -> pl.Trainer:
    trainer = pl.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[*callbacks, StopAfter(epochs)],
    )
    trainer.fit(module, batches(), ckpt_path=resume, weights_only=False)
    return trainer


class StopAfter(pl.Callback):
    """Interrupt a run after some epochs without changing its planned length."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        trainer.should_stop = trainer.current_epoch + 1 >= self.epochs


class LossAroundSwitch(pl.Callback):
    """The loss over all data just before and just after another callback has acted, at every step."""

    def __init__(self) -> None:
        self.values: list[tuple[bool, float]] = []

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        x, y = batches().dataset.tensors
        with torch.no_grad():
            loss = nn.functional.mse_loss(pl_module.net(x), y).item()
        self.values.append((any(isinstance(m, MonarchLinear) for m in pl_module.modules()), loss))


@pytest.fixture(scope="module")
def whole_run() -> tuple[Regression, pl.Trainer, list[tuple[bool, float]], list[tuple[bool, float]]]:
    torch.manual_seed(0)
    before, after, module = LossAroundSwitch(), LossAroundSwitch(), Regression()
    trainer = fit(module, before, ReverseSparsification(at=0.5), after)
    return module, trainer, before.values, after.values


def test_the_switch_happens_once_at_its_step_and_leaves_the_function_alone(whole_run):
    _, _, before, after = whole_run
    assert [step for step in range(STEPS) if before[step][0] != after[step][0]] == [STEPS // 2]
    assert not after[-1][0]
    assert after[STEPS // 2][1] == pytest.approx(before[STEPS // 2][1], rel=1e-5)


def test_the_loss_keeps_falling_through_the_switch(whole_run):
    _, _, before, _ = whole_run
    losses, switch = [loss for _, loss in before], STEPS // 2
    largest_step_before = max(abs(b - a) for a, b in pairwise(losses[10:switch]))
    for step in range(switch, switch + 10):
        assert losses[step + 1] - losses[step] < 1.5 * largest_step_before
    assert losses[-1] < losses[switch] < 0.5 * losses[0]


def test_the_schedule_goes_on_with_the_dense_learning_rate(whole_run):
    module, _, _, _ = whole_run
    schedule = [1 - 0.9 * step / STEPS for step in range(STEPS)]
    factor = max(
        value
        for layer in (MonarchLinear(32, 96), MonarchLinear(96, 96))
        for value in layer.learning_rate_multipliers().values()
    )
    expected = [module.lr * s * (factor if step < STEPS // 2 else 1) for step, s in enumerate(schedule)]
    assert module.rates == pytest.approx(expected, rel=1e-6)


def test_parameters_that_stay_keep_their_state(whole_run):
    module, trainer, _, _ = whole_run
    state = trainer.optimizers[0].state
    assert {int(state[p]["step"]) for p in module.parameters()} == {STEPS}


def test_a_run_resumed_after_the_switch_ends_where_the_whole_run_ends(whole_run, tmp_path):
    whole = whole_run[0]
    torch.manual_seed(0)
    first = Regression()
    trainer = fit(first, ReverseSparsification(at=0.5), epochs=4)
    trainer.save_checkpoint(tmp_path / "dense.ckpt")
    second = Regression()
    resumed = fit(second, ReverseSparsification(at=0.5), resume=tmp_path / "dense.ckpt")
    assert resumed.global_step == STEPS
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(second.state_dict()[name], value, rtol=1e-5, atol=1e-6)


def test_a_run_resumed_before_the_switch_still_switches(whole_run, tmp_path):
    whole = whole_run[0]
    torch.manual_seed(0)
    first = Regression()
    fit(first, ReverseSparsification(at=0.5), epochs=2).save_checkpoint(tmp_path / "monarch.ckpt")
    assert any(isinstance(m, MonarchLinear) for m in first.modules())
    second = Regression()
    fit(second, ReverseSparsification(at=0.5), resume=tmp_path / "monarch.ckpt")
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(second.state_dict()[name], value, rtol=1e-5, atol=1e-6)


def test_optimisers_without_moments_switch_too():
    module = Regression("sgd", lr=1e-2)
    fit(module, ReverseSparsification(at=0.5))
    assert not any(isinstance(m, MonarchLinear) for m in module.modules())
    epoch_before, last = module.losses[STEPS // 2 - BATCHES : STEPS // 2], module.losses[-BATCHES:]
    assert sum(last) < sum(epoch_before)


def test_the_second_moment_is_right_when_it_is_separable():
    layer = MonarchLinear(24, 18, blocks=(4, 3), rank=2, dtype=torch.float64)
    J, K, O, I = 3, 4, 6, 6
    rows, columns = torch.rand(J, K, O).double() + 0.5, torch.rand(J, K, I).double() + 0.5
    truth = torch.einsum("jkl,jki->ljki", rows, columns)
    R, L = layer.operator.factors()
    with torch.no_grad():
        R.fill_(0.7)  # equal sizes: the estimate, which knows only sums over a block, is then exact
        L.fill_(-0.4)
        of_R = torch.einsum("jlkr,ljki->kjri", L.square(), truth)
        of_L = torch.einsum("kjri,ljki->jlkr", R.square(), truth)
    step = torch.tensor(7.0)
    state = {
        layer.operator.R: {"step": step, "exp_avg": torch.zeros_like(R), "exp_avg_sq": of_R},
        layer.operator.L: {"step": step, "exp_avg": torch.zeros_like(L), "exp_avg_sq": of_L},
    }
    dense = dense_state(layer, state)
    assert dense["step"] == 7
    torch.testing.assert_close(dense["exp_avg_sq"], truth.reshape(18, 24))


def test_layers_that_it_cannot_turn_dense_are_refused_before_the_training():
    module = Regression()
    attention = nn.ModuleDict({"attention": nn.MultiheadAttention(32, 4)})
    monarchize(attention)
    module.others = attention
    with pytest.raises(UserError, match=r"others\.attention is a MonarchAttention, which it cannot"):
        fit(module, ReverseSparsification(at=0.5))
    assert module.losses == []


@pytest.mark.parametrize("at", [-0.1, 1.5])
def test_a_fraction_outside_the_run_is_refused(at):
    with pytest.raises(UserError, match="fraction of training"):
        ReverseSparsification(at=at)
