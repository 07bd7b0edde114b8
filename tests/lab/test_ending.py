"""How commands end, whatever ends them: one sentence or none, the usual status, nothing left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from lab.ending import held_signals, let_signals_through, status_of
from lab.errors import Stopped, UserError, readable
from lab.files import atomic_path

TOO_LITTLE = (
    "error: there is too little memory; take a smaller --batch-size, --num-workers 0 or another machine.\n"
)


@pytest.fixture(autouse=True)
def listening() -> Iterator[None]:
    """Ctrl-C is heard, as at a terminal: a command that was stopped no longer listens."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (OSError(28, "No space left on device", "runs/x"), 2, "error: No space left on device (runs/x).\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (MemoryError(), 2, TOO_LITTLE),
        (RuntimeError("can't start new thread"), 2, TOO_LITTLE),
        (RuntimeError("DataLoader worker (pid(s) 7) exited unexpectedly"), 2, TOO_LITTLE),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), 2, TOO_LITTLE),
    ],
)
def test_what_the_system_refuses_is_a_sentence(capsys, raised, status, said):
    def command() -> None:
        raise raised

    assert status_of(command) == status
    assert capsys.readouterr().err == said


@pytest.mark.skipif(os.name != "posix", reason="elsewhere SIGTERM ends a process at once")
def test_sigterm_unwinds_every_command(capsys, tmp_path):
    def command() -> None:
        with atomic_path(tmp_path / "result.txt") as temporary:
            temporary.write_text("half")
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    assert status_of(command) == 143
    assert capsys.readouterr().err == "terminated\n"
    assert signal.getsignal(signal.SIGTERM) is before
    assert os.listdir(tmp_path) == []


class Finalised:
    """Gets a signal in its finaliser, where Python drops exceptions."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere SIGTERM ends a process at once")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_in_a_finaliser_is_not_lost(capsys, number, status):
    def command() -> None:
        Finalised(number)
        time.sleep(10)

    begun = time.monotonic()
    assert status_of(command) == status
    assert time.monotonic() - begun < 5
    assert "Traceback" not in capsys.readouterr().err


def test_what_a_library_makes_of_a_signal_is_the_signal_still(capsys):
    def command() -> None:
        with readable("flow.h5"):
            raise SystemError("returned a result with an exception set") from Stopped(signal.SIGTERM)

    assert status_of(command) == 143
    assert capsys.readouterr().err == "terminated\n"


def test_output_that_nobody_reads_any_more_ends_a_command_quietly(root):
    words = [sys.executable, "-m", "lab.demo.models"]
    with subprocess.Popen(
        words, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode in (1, 141)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.npz")
    with pytest.raises(UserError, match=r"x\.npz is a pipe or a device"), readable(tmp_path / "x.npz"):
        (tmp_path / "x.npz").open("rb")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_that_are_held_come_at_the_end_or_when_they_are_let_through(number):
    seen = []

    def command() -> None:
        with held_signals():
            signal.raise_signal(number)
            seen.append("held")
            if len(seen) == 2:
                let_signals_through()
                seen.append("not reached")
        seen.append("not reached")

    before = signal.getsignal(signal.SIGINT)
    for _ in range(2):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
        try:
            assert status_of(command) == 128 + number
        finally:
            signal.signal(signal.SIGINT, before)
    assert seen == ["held", "held"]
