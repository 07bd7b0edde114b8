"""A process that makes Poisson masks: a job a line on standard input, a mask a line on standard output.

It gives up on a mask that takes too much *processor* time, which does not depend on how busy the machine is;
`data.masks.workers`, which starts it, kills it should even that fail. It is a program of its own rather than
a `multiprocessing` worker because that would run the caller's main script again, guard or no guard.
"""

import base64
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from data.masks.generate import generate
from data.masks.spec import MaskSpec


class TookTooLong(Exception):
    """The processor-time limit was reached."""


def processor_seconds(grid: tuple[int, int]) -> float:
    """The limit for one mask: about 50 times what it takes at acceleration 2.

    >>> processor_seconds((416, 80))
    17.14
    """
    return 0.5 + 5e-4 * grid[0] * grid[1]


def main() -> None:
    """Compile once, then answer until standard input is closed."""
    generate(MaskSpec("poisson", (32, 32), 2.0), seed=0)
    _answer({})
    for line in sys.stdin:
        job = json.loads(line)
        spec = MaskSpec("poisson", tuple(job["grid"]), job["acceleration"], tuple(job["calibration"]))
        try:
            with _limit(processor_seconds(spec.grid)):
                mask = generate(spec, job["seed"])
            _answer({"mask": base64.b64encode(np.packbits(mask).tobytes()).decode()})
        except TookTooLong:
            _answer({"error": "the search for its density never ended"})
        except (ValueError, ZeroDivisionError) as error:
            _answer({"error": str(error)})


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Raise `TookTooLong` within the block; not where the system has no interval timers (Windows)."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def raise_error(*_: object) -> None:
        raise TookTooLong

    signal.signal(signal.SIGPROF, raise_error)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _answer(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
