"""Train an experiment: one function from config to finished run."""

import logging
import os
import sys
import warnings
from collections.abc import Callable, Sequence, Sized
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, cast

import lightning.pytorch as pl
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from torch.utils.data import DataLoader, Dataset

from lab import checkpoint
from lab.budget import Budget, Settle
from lab.callbacks import BestWeights, Metrics, ProgressReport, StepSeeds
from lab.checkpoint import Checkpoints, Interrupted, caught_signals
from lab.config import ExperimentConfig
from lab.console import say
from lab.ending import begin_loading
from lab.errors import UserError
from lab.experiment import Experiment
from lab.loader import EpochBatches, TrainLoader, groups_of, in_order
from lab.memory import keep_freed
from lab.plan import Plan
from lab.run import Run

# Each pattern is the start of a warning of Lightning or torch that says nothing a user could act on.
NOISE = (
    r".*does not have many workers.*",  # num_workers is an option; small data loads faster without
    r".*srun.*command is available.*",  # running without SLURM on a SLURM machine is fine
    r".*The number of training batches .* is smaller than the logging interval.*",  # lab logs by epoch
    r".*Found .* module\(s\) in eval mode.*",
    r".*treespec, LeafSpec.*",  # a deprecation inside Lightning
    r".*isinstance\(treespec, LeafSpec\).*",
    r".*Checkpoint directory .* exists and is not empty.*",
    r".*GPU available but not used.*",  # --accelerator cpu was asked for
    r".*Grad strides do not match bucket view strides.*",  # an axis of length 1 has no meaningful stride
    r".*barrier\(\) is using the device under current context.*",
    r".*barrier\(\): using the device under current context.*",
)


def prepare(config: ExperimentConfig) -> None:
    """Set memory, threads and seed; call it before the model is built."""
    _drop_known_noise()
    keep_freed()
    # Strongly damped values become denormal numbers, which slow a CPU down ten-fold.
    torch.set_flush_denormal(True)
    torch.set_num_threads(config.threads or max((os.cpu_count() or 1) // config.devices, 1))
    torch.manual_seed(config.seed)


def fit(
    experiment: Experiment,
    train: Dataset[Any],
    validation: Dataset[Any],
    run: Run,
    *,
    collate: Callable[[list[Any]], Any] | None = None,
    plan: Plan | None = None,
    budget: Budget | None = None,
    callbacks: Sequence[pl.Callback] = (),
) -> dict[str, float]:
    """Train until the last epoch of the plan, resuming where the run was left; return the best scores.

    Under a budget the plan is settled as the run goes; otherwise it is the options', unless it is given.

    The run's folder then holds metrics, checkpoint and best weights. Ctrl-C and SIGTERM save, print the
    command that resumes and leave with the usual exit status.
    """
    config = run.config
    plan = Plan.stored(run) or plan or (budget.first(budget.pace(run)) if budget else Plan.of(config))
    best, metrics = BestWeights(run), Metrics(run)
    settling = [] if budget is None or isinstance(plan.epoch_steps, int) else [Settle(run, budget, metrics)]
    with caught_signals() as signals:
        observers = metrics, *settling, best, ProgressReport(), *callbacks
        checkpoints = Checkpoints(run, signals)
        own = [StepSeeds(config.seed), *observers, checkpoints]
        trainer = build_trainer(config, run, plan, own)
        samples = len(cast(Sized, train))
        per_pass = EpochBatches(groups_of(train), config.batch_size, config.seed).steps_per_pass
        steps = experiment.steps = plan.steps(per_pass)
        run.update(
            plan=asdict(plan),
            steps={"total": steps.total, "per_pass": per_pass},
            precision=config.precision,
        )
        how: dict[str, Any] = {"num_workers": config.num_workers, "collate_fn": collate}
        how["worker_init_fn"] = begin_loading
        batched = partial(TrainLoader, train, config.batch_size, config.seed, steps=steps, **how)
        validated = DataLoader(validation, batch_sampler=in_order(validation, config.batch_size), **how)
        module = _Data(batched, validated)
        resume_from = _resume_from(run)
        parameters = sum(parameter.numel() for parameter in experiment.model.parameters())
        say(
            f"training {type(experiment.model).__name__}, {parameters:,} parameters, {plan.epochs} epochs of "
            f"{steps.length(0)} steps, {samples} samples, on {_place(config, trainer)}"
        )
        try:
            trainer.fit(experiment, datamodule=module, ckpt_path=resume_from, weights_only=True)
        except Interrupted as interruption:
            run.update(status="interrupted")
            say(f"{interruption}; everything is saved. Continue with:\n  {run.resume_command()}")
            sys.exit(interruption.status)
        except Exception as error:
            if resume_from is None or checkpoints.restored:
                raise
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise UserError(
                f"{resume_from} does not fit this run ({reason[:200]}); delete it to start the run afresh."
            ) from error
        finally:
            _leave_process_group()
    if not best.best:
        raise UserError(
            f"the validation score {experiment.monitor!r} was finite in no epoch, so no weights were kept; the last "
            "checkpoint is. Lower --lr, raise --warmup-steps or set --grad-clip, and begin a new run."
        )
    run.update(status="finished", best=best.best)
    return best.best


def build_trainer(config: ExperimentConfig, run: Run, plan: Plan, callbacks: list[pl.Callback]) -> pl.Trainer:
    """The Lightning Trainer that the config asks for; checkpoints, progress and CSV are lab's own."""
    processes = config.devices * config.num_nodes
    try:
        return pl.Trainer(
            max_epochs=plan.epochs,
            reload_dataloaders_every_n_epochs=0 if isinstance(plan.epoch_steps, int | None) else 1,
            accelerator=config.accelerator,
            devices=config.devices,
            num_nodes=config.num_nodes,
            strategy="ddp" if processes > 1 else "auto",
            gradient_clip_val=config.grad_clip,
            precision="bf16-mixed" if config.precision == "bf16-mixed" else "32-true",
            callbacks=callbacks,
            logger=_further_logger(config, run),
            default_root_dir=run.folder,
            use_distributed_sampler=False,  # EpochBatches shares the data out itself
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
        )
    except (ValueError, RuntimeError, MisconfigurationException) as error:
        raise UserError(
            f"--accelerator {config.accelerator} --devices {config.devices} cannot be used here: {error}"
        ) from error


class _Data(pl.LightningDataModule):
    """Loaders; that of the training is made once Lightning has launched and each process knows its share."""

    def __init__(self, train: Callable[..., TrainLoader], validation: DataLoader[Any]) -> None:
        super().__init__()
        self.train, self.validation = train, validation

    def train_dataloader(self) -> TrainLoader:
        assert self.trainer is not None
        loader = self.train(rank=self.trainer.global_rank, world=self.trainer.world_size)
        # Epochs may differ in length, and Lightning asks for that before it tells the epoch.
        over: Any = self.trainer.fit_loop.epoch_progress.current
        loader.batch_sampler.set_epoch(over.processed)
        return loader

    def val_dataloader(self) -> DataLoader[Any]:
        # Every process validates on everything: an uneven share would bias the mean of the scores.
        return self.validation


def _resume_from(run: Run) -> Path | None:
    if not (run.config.resume and run.checkpoint.exists()):
        return None
    checkpoint.check(run.checkpoint)
    say(f"continuing from {run.checkpoint}")
    return run.checkpoint


def _further_logger(config: ExperimentConfig, run: Run) -> Any:
    """TensorBoard and W&B are optional installs; asked for and absent, they get a sentence."""
    if config.logger == "csv":
        return False
    try:
        if config.logger == "tensorboard":
            from lightning.pytorch.loggers import TensorBoardLogger

            return TensorBoardLogger(run.folder, name="", version="tensorboard")
        from lightning.pytorch.loggers import WandbLogger

        return WandbLogger(name=run.folder.name, project=f"monarch-{config.app}", save_dir=run.folder)
    except ModuleNotFoundError as error:
        raise UserError(
            f"--logger {config.logger} needs: pip install 'monarch-science[{config.logger}]'"
        ) from error


def _drop_known_noise() -> None:
    """Keep warnings that matter, drop the known noise of Lightning and torch."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning", "pytorch_lightning"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for pattern in NOISE:
        warnings.filterwarnings("ignore", message=pattern)


def _leave_process_group() -> None:
    # A process that ends with the group still open is sometimes aborted by its communication threads.
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _place(config: ExperimentConfig, trainer: pl.Trainer) -> str:
    name = type(trainer.accelerator).__name__.removesuffix("Accelerator").lower()
    processes = config.devices * config.num_nodes
    threads = torch.get_num_threads()
    place = f"{name} ({threads} thread{'s' if threads != 1 else ''})" if name == "cpu" else name
    return f"{processes} x {place}" if processes > 1 else place
