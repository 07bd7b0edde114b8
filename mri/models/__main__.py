"""`python -m mri.models`: the methods, with parameters and operations a slice."""

import sys

from lab.cli import run
from mri.config import ModelsConfig


def models(config: ModelsConfig) -> None:
    """List the methods with their parameters and real operations for one slice."""
    from lab.table import Column, Table
    from mri.config import MODELS
    from mri.models.registry import build

    ky, kz = config.plane
    table = Table(
        [
            Column("model", "--model"),
            Column("what", "method"),
            Column("parameters", "parameters"),
            Column("gflops", "GFLOP a slice", digits=3),
        ],
        caption=f"Methods for a slice of {ky} x {kz} from {config.coils} coils",
    )
    for name in MODELS:
        method = build(name, (ky, kz))
        what = (type(method).__doc__ or "").strip().splitlines()[0]
        table.rows.append(
            {
                "model": name,
                "what": what,
                "parameters": method.num_parameters,
                "gflops": method.flops(config.coils) / 1e9,
            }
        )
    table.print()


if __name__ == "__main__":
    sys.exit(run("python -m mri.models", {"": models}))
