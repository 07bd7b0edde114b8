"""Reverse sparsification: train a Monarch model for most of a run, and its dense form for the rest."""

from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.utilities.types import LRSchedulerConfig
from torch import Tensor, nn
from torch.optim import Optimizer

from lab.errors import UserError
from lab.experiment import Experiment
from monarch_core import MonarchLinear, densify
from monarch_core.conversion.kinds import monarch_layers

State = dict[str, Any]


class ReverseSparsification(pl.Callback):
    """Turn every MonarchLinear of the model to nn.Linear at a fraction of the training steps (0.9 in the paper).

    The model computes the same function before and after.  The optimisers and schedulers are configured anew on
    the dense model, as a run resumed after the switch would; then every parameter that stayed keeps its state, the
    schedules go on where they were, and the dense weights get moments estimated from those of their factors.
    """

    def __init__(self, at: float = 0.9) -> None:
        if not 0 <= at <= 1:
            raise UserError(f"ReverseSparsification(at=...) is a fraction of training, 0 to 1; got {at}.")
        self.at = at

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if trainer.world_size > 1:
            raise UserError(
                f"ReverseSparsification changes the parameters during training, which {trainer.world_size} "
                "processes cannot do together; train on one device."
            )
        if stage == "fit" and (other := _not_followed(pl_module)):
            raise UserError(
                f"ReverseSparsification turns MonarchLinear layers to nn.Linear; {other}, which it cannot. Leave that "
                "layer dense, or densify the model after the training."
            )
        pl_module.register_load_state_dict_pre_hook(_densify_if_the_checkpoint_is_dense)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if isinstance(pl_module, Experiment):
            done = pl_module.done
        else:
            done = trainer.global_step / trainer.estimated_stepping_batches
        if done >= self.at and _monarch_layers(pl_module):
            switch_to_dense(trainer, pl_module)


def switch_to_dense(trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
    """Densify the module inside a running fit, and carry optimisers and schedulers over."""
    layers = _monarch_layers(pl_module)
    optimizers, schedules = list(trainer.optimizers), list(trainer.lr_scheduler_configs)
    densify(pl_module)
    trainer.strategy.setup_optimizers(trainer)
    state: dict[Tensor, State] = {}
    for optimizer in optimizers:
        state.update(optimizer.state)
    for name, layer in layers.items():
        dense = pl_module.get_submodule(name)
        assert isinstance(dense, nn.Linear)
        state[dense.weight] = dense_state(layer, state)
    for old, new in zip(optimizers, trainer.optimizers, strict=True):
        _continue_optimizer(old, new, state)
    for before, after in zip(schedules, trainer.lr_scheduler_configs, strict=True):
        _continue_schedule(before, after)


def dense_state(layer: MonarchLinear, state: dict[Tensor, State]) -> State:
    """Adam's state for the dense weight W of a layer, from the states of its factors; empty for other optimisers.

    The step count stays, so that no bias correction magnifies the first steps, and the mean starts at zero.  For
    the second moment, independent entries of dW give E dR[k,j,r,i]^2 = sum_l L[j,l,k,r]^2 E dW[lj,ki]^2 and the
    same for dL: so each sub-block gets the separable estimate rows * columns / mean, as in Adafactor.
    """
    R, L = layer.operator.factors()
    of_R, of_L = state.get(layer.operator.R, {}), state.get(layer.operator.L, {})
    if "exp_avg_sq" not in of_R or "exp_avg_sq" not in of_L:
        return {}
    tiny = torch.finfo(R.dtype).tiny
    scale_R, scale_L = R.detach().square().sum((2, 3)), L.detach().square().sum((1, 3))
    columns = of_R["exp_avg_sq"].sum(2) / scale_L.T[..., None].clamp_min(tiny)  # K J I
    rows = of_L["exp_avg_sq"].sum(3) / scale_R.T[:, None].clamp_min(tiny)  # J O K
    mean = 0.5 * (columns.mean(-1).T[:, None] + rows.mean(1, keepdim=True)).clamp_min(tiny)  # J 1 K
    second = torch.einsum("jlk,kji->ljki", rows / mean, columns).flatten(2).flatten(0, 1)
    second = second[: layer.out_features, : layer.in_features].contiguous()
    dense: State = {"step": of_R["step"].clone(), "exp_avg": torch.zeros_like(second), "exp_avg_sq": second}
    if "max_exp_avg_sq" in of_R:
        dense["max_exp_avg_sq"] = second.clone()
    return dense


def _continue_optimizer(old: Optimizer, new: Optimizer, state: dict[Tensor, State]) -> None:
    group_of = {parameter: group for group in old.param_groups for parameter in group["params"]}
    progress = [g["lr"] / g["initial_lr"] for g in old.param_groups if g.get("initial_lr")]
    for group in new.param_groups:
        stayed = [group_of[p] for p in group["params"] if p in group_of]
        if stayed:
            group["lr"] = stayed[0]["lr"]
        elif progress and "initial_lr" in group:
            group["lr"] = group["initial_lr"] * progress[0]
        for parameter in group["params"]:
            if state.get(parameter):
                new.state[parameter] = state[parameter]


def _continue_schedule(before: LRSchedulerConfig, after: LRSchedulerConfig) -> None:
    fresh = getattr(after.scheduler, "base_lrs", None)
    after.scheduler.load_state_dict(before.scheduler.state_dict())
    if fresh is not None:
        # The groups may be others than before, and with them their initial learning rates.
        after.scheduler.base_lrs = fresh
        after.scheduler._last_lr = [group["lr"] for group in after.scheduler.optimizer.param_groups]


def _monarch_layers(module: nn.Module) -> dict[str, MonarchLinear]:
    return {name: layer for name, layer in module.named_modules() if isinstance(layer, MonarchLinear)}


def _not_followed(module: nn.Module) -> str:
    """A Monarch layer whose dense form is no nn.Linear; empty if there is none."""
    for name, layer in monarch_layers(module).items():
        if not isinstance(layer, MonarchLinear):
            return f"{name} is a {type(layer).__name__}"
        if layer.replaces != "linear":
            return f"{name} stands for a {layer.replaces}"
    return ""


def _densify_if_the_checkpoint_is_dense(
    module: nn.Module, state_dict: dict[str, Tensor], prefix: str, *_: Any
) -> None:
    layers = _monarch_layers(module)
    if layers and all(f"{prefix}{name}.weight" in state_dict for name in layers):
        densify(module)
