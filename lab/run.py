"""A run's folder: `runs/<app>/<name>/`, owned by one run at a time."""

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from filelock import BaseFileLock

from lab import manifest
from lab.checks import flag
from lab.config import ExperimentConfig, differences, write_yaml
from lab.console import close_log, is_first_process, open_log, say
from lab.errors import Stopped, UserError
from lab.files import is_temporary, read_table, remove_leftovers, write_json
from lab.locks import try_lock
from lab.paths import plain_name, runs_dir

BEGUN = ("config.yaml", "manifest.json")
"""The files that make a folder a run."""
LOCK = ".lock"
_NAME_FOR_CHILDREN = "MONARCH_RUN_NAME"
_continued_by: ContextVar[str | None] = ContextVar("continued_by", default=None)


class Run:
    """The folder of one run and what is written into it.

    config.yaml, manifest.json, metrics.csv, checkpoints/last.ckpt, weights.safetensors (the best so far),
    figures/, log.txt. `with Run.open(config) as run:` makes it or, with `--resume`, takes it up again, and
    lets go of it at the end; two runs never share one.

    A folder is a run once it has both config.yaml and manifest.json, each of which appears whole; nothing else is
    written before. A start that was killed earlier leaves a folder that the next start of that name makes its own.
    """

    def __init__(self, folder: Path, config: ExperimentConfig) -> None:
        self.folder, self.config = folder, config
        self.manifest: dict[str, Any] = {}
        self._lock: BaseFileLock | None = None
        self._begun = time.monotonic()

    @classmethod
    def open(cls, config: ExperimentConfig, data: dict[str, Any] | None = None) -> Self:
        """Make the folder that `config` names, or take it up again where `config.resume` says so."""
        name = config.name
        if name is None:
            name = os.environ.get(_NAME_FOR_CHILDREN)
        if name is None and config.resume and _launcher_job() is None:
            raise UserError("--resume needs --name: which run to continue, or to begin if there is none.")
        if name is None:
            name = _fresh_name(config)
        run = cls(runs_dir() / config.app / plain_name(name, "--name"), replace(config, name=name))
        # Processes that Lightning launches repeat this command and must find the same folder.
        os.environ[_NAME_FOR_CHILDREN] = name
        if is_first_process():
            try:
                run._claim(data)
            except BaseException:
                run.close()
                raise
        elif (run.folder / "manifest.json").is_file():
            run.manifest = manifest.read(
                run.folder / "manifest.json"
            )  # of the process that launched this one
        return run

    @property
    def checkpoint(self) -> Path:
        """The last checkpoint, from which the run continues."""
        return self.folder / "checkpoints" / "last.ckpt"

    @property
    def weights(self) -> Path:
        """The best weights so far."""
        return self.folder / "weights.safetensors"

    @property
    def figures(self) -> Path:
        """Where pictures of this run go."""
        return self.folder / "figures"

    def resume_command(self) -> str:
        """The command that continues this run, or the whole campaign that it is part of."""
        module = manifest.command_line().split(" --")[0]
        stored = shlex.quote(str(self.folder / "config.yaml"))
        return _continued_by.get() or f"{module} --config {stored} --resume"

    def update(self, **entries: Any) -> None:
        """Change entries of the manifest; the wall time grows by this session's."""
        if not is_first_process():
            return
        now = time.monotonic()
        self.manifest["wall_seconds"] = round(self.manifest.get("wall_seconds", 0.0) + now - self._begun, 1)
        self._begun = now
        self.manifest |= entries
        write_json(self.folder / "manifest.json", self.manifest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        # SystemExit is how an interrupted run leaves, with its status already written.
        try:
            if isinstance(error, Stopped | KeyboardInterrupt):
                self.update(status="interrupted")
            elif error is not None and not isinstance(error, SystemExit):
                self.update(status="failed", error=f"{type(error).__name__}: {error}")
        finally:  # also where the disk is full
            self.close()

    def close(self) -> None:
        """Let go of the folder."""
        os.environ.pop(_NAME_FOR_CHILDREN, None)
        close_log(self.folder / "log.txt")
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _claim(self, data: dict[str, Any] | None) -> None:
        config = self.config
        self._refuse_if_taken()  # before the lock, so that a run in progress is told by its name too
        self._take_lock()
        self._refuse_if_taken()
        remove_leftovers(self.folder)
        if self._is_begun():
            self._refuse_other_options(self.folder / "config.yaml")
            self.manifest = manifest.read(self.folder / "manifest.json")
            self._refuse_other_data(data)
            self.manifest.pop("error", None)  # how an earlier session ended
            sessions = self.manifest.setdefault("resumed", [])
            sessions.append({"command": manifest.command_line(), "git": manifest.git_state()})
        else:
            write_yaml(config, self.folder / "config.yaml")
            self.manifest = manifest.describe(config.seed, data)
        self.update(status="running")
        open_log(self.folder / "log.txt")
        say(f"run folder {self.folder}")

    def _is_begun(self) -> bool:
        return all((self.folder / name).is_file() for name in BEGUN)

    def _refuse_if_taken(self) -> None:
        if self._is_begun():
            if not self.config.resume:
                raise UserError(
                    f"there is a run called {self.config.name} already ({self.folder}); add --resume to continue it, "
                    "or choose another --name."
                )
        elif self.folder.is_dir():
            foreign = (path for path in self.folder.iterdir() if not is_temporary(path))
            if others := {path.name for path in foreign} - {*BEGUN, LOCK}:
                raise UserError(
                    f"{self.folder} is not a run, for it lacks {' or '.join(BEGUN)}, but it holds {min(others)}; "
                    "choose another --name."
                )

    def _take_lock(self) -> None:
        self._lock = try_lock(self.folder / LOCK)
        if self._lock is None:
            raise UserError(
                f"another process is working in {self.folder}; wait for it or choose another --name."
            )

    def _refuse_other_options(self, stored: Path) -> None:
        changed = differences(self.config, read_table(stored))
        if changed:
            listing = ", ".join(f"{flag(key)} was {then}, now {now}" for key, (now, then) in changed.items())
            raise UserError(
                f"{self.folder} was begun with other options ({listing}); resume with: {self.resume_command()}"
            )

    def _refuse_other_data(self, data: dict[str, Any] | None) -> None:
        known = self.manifest.get("data")
        before = known.get("fingerprint") if isinstance(known, dict) else None
        now = (data or {}).get("fingerprint")
        if before != now:
            raise UserError(
                f"{self.folder} was trained on other data (fingerprint {before}, now {now}); "
                "give it the same data, or start a new run under another --name."
            )


@contextmanager
def continued_by(command: str) -> Iterator[None]:
    """Runs within the block are part of a campaign: when interrupted, they are continued by its command."""
    token = _continued_by.set(command)
    try:
        yield
    finally:
        _continued_by.reset(token)


def _fresh_name(config: ExperimentConfig) -> str:
    """A name nobody has: date and label, or the launcher's job id, which all its processes share."""
    job = _launcher_job()
    stem = f"{job or time.strftime('%Y%m%d-%H%M%S')}-{config.label()}"
    name, attempt = stem, 1
    while job is None and (runs_dir() / config.app / name).exists():
        attempt += 1
        name = f"{stem}-{attempt}"
    return name


def _launcher_job() -> str | None:
    if int(os.environ.get("SLURM_NTASKS", "1")) > 1:
        return f"job{os.environ.get('SLURM_JOB_ID', os.getppid())}"
    if "TORCHELASTIC_RUN_ID" in os.environ:
        run_id = os.environ["TORCHELASTIC_RUN_ID"]
        # The default id is the word none; then the launcher's process number tells one launch from another.
        return f"job{os.getppid() if run_id == 'none' else run_id}"
    return None
