"""Checkpoints: written whole, read without unpickling, refused with a sentence when they are not ours."""

import signal
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import lightning.pytorch as pl
import torch

from lab.errors import Stopped, UserError
from lab.files import atomic_path
from lab.run import Run

MARK = "monarch_lab"
KEYS = {
    "epoch": int,
    "global_step": int,
    "loops": dict,
    "callbacks": dict,
    "state_dict": dict,
    "optimizer_states": list,
    "lr_schedulers": list,
}
"""What a checkpoint of Lightning has."""
STATES = ("Metrics", "BestWeights")
"""Callbacks without whose states a run would go on as another."""


class Interrupted(Exception):
    """Ctrl-C or SIGTERM came and the state has been saved; `status` is the exit status."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.status = 128 + number


def check(path: Path) -> None:
    """Refuse a checkpoint that is truncated, foreign or would have to be unpickled."""
    if not zipfile.is_zipfile(path):
        raise UserError(
            f"{path} is not a whole checkpoint, perhaps truncated; delete it to start the run afresh."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch does not compare the checksums that it writes
        if damaged is not None:
            raise ValueError(f"{damaged} is damaged")
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds; each means that this file cannot be trusted
        reason = str(error).strip().split("\n")[0]
        raise UserError(
            f"{path} cannot be read safely as a checkpoint ({reason}); delete it to start the run afresh."
        ) from error
    if not isinstance(content, dict) or MARK not in content:
        raise UserError(f"{path} was not written by this suite; point --name at one of its runs.")
    missing = [key for key, kind in KEYS.items() if not isinstance(content.get(key), kind)]
    if not missing:
        missing += [key for key in ("state_dict", "optimizer_states") if not content[key]]
        missing += [name for name in STATES if not content["callbacks"].get(name)]
    if missing:
        raise UserError(f"{path} lacks {', '.join(missing)}; delete it to start the run afresh.")


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint, whole or not at all."""
    with atomic_path(path) as temporary:
        try:
            torch.save(content, temporary)
        except RuntimeError as error:
            # The writer of torch hides what the system said behind its own count of bytes.
            if "inline_container" in str(error) or "PytorchStreamWriter" in str(error):
                raise OSError("the disk is full or failed") from error
            raise


@contextmanager
def caught_signals() -> Iterator[list[int]]:
    """Note the first SIGINT or SIGTERM instead of dying from it; a second one interrupts at once."""
    received: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        if received:
            raise Stopped(number)
        received.append(number)

    try:
        before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread, where signals cannot be caught
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Checkpoints(pl.Callback):
    """Keep `last.ckpt` fresh: at each epoch's end, every few minutes within it, and when a signal came.

    The last batch of an epoch is left to the epoch's end: between the two lies the validation, and a
    checkpoint taken before it would skip it.
    """

    def __init__(self, run: Run, signals: list[int]) -> None:
        self.run, self.signals = run, signals
        self.restored = False
        self._saved = time.monotonic()

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self.restored = True  # whatever goes wrong before is the fault of the checkpoint

    def on_save_checkpoint(
        self, trainer: pl.Trainer, module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        checkpoint[MARK] = {"app": self.run.config.app, "step": trainer.global_step}

    def on_train_batch_end(self, trainer: pl.Trainer, module: pl.LightningModule, *batch: Any) -> None:
        if trainer.is_last_batch:
            return
        signalled = self._signalled(trainer)
        due = time.monotonic() - self._saved > 60 * self.run.config.checkpoint_minutes
        if signalled or trainer.strategy.broadcast(due):
            self._save(trainer)
        if signalled:
            raise Interrupted(self._number())

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._save(trainer)
        if self._signalled(trainer):
            raise Interrupted(self._number())

    def _signalled(self, trainer: pl.Trainer) -> bool:
        # One process alone must not leave: the others would wait for it in the next reduction.
        return trainer.strategy.reduce_boolean_decision(bool(self.signals), all=False)

    def _number(self) -> int:
        return self.signals[0] if self.signals else signal.SIGTERM

    def _save(self, trainer: pl.Trainer) -> None:
        content = trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
        if trainer.is_global_zero:
            write(self.run.checkpoint, content)
        trainer.strategy.barrier()
        self._saved = time.monotonic()
