"""A process that makes Poisson masks: a job a line on standard input, a mask a line on standard output.

Started by `data.masks.workers`, which kills it when it is stuck. It is a program of its own rather than a
`multiprocessing` worker because that would run the caller's main script again, guard or no guard.
"""

import base64
import json
import sys

import numpy as np

from data.masks.generate import generate
from data.masks.spec import MaskSpec


def main() -> None:
    """Compile once, then answer until standard input is closed."""
    generate(MaskSpec("poisson", (32, 32), 2.0), seed=0)
    _answer({})
    for line in sys.stdin:
        job = json.loads(line)
        spec = MaskSpec("poisson", tuple(job["grid"]), job["acceleration"], tuple(job["calibration"]))
        try:
            mask = generate(spec, job["seed"])
            _answer({"mask": base64.b64encode(np.packbits(mask).tobytes()).decode()})
        except (ValueError, ZeroDivisionError) as error:
            _answer({"error": str(error)})


def _answer(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
