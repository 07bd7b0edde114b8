"""`python -m mri.models`: the methods, with their parameters and operations per slice."""

import sys

from lab.cli import run
from mri.config import ModelsConfig


def show(config: ModelsConfig) -> None:
    """List the methods with their parameters and real operations for one slice."""
    from lab.table import Column, Table
    from mri.models import MODELS, build

    ky, kz = config.plane
    table = Table(
        [
            Column("model", "--model"),
            Column("summary", "method"),
            Column("parameters", "parameters"),
            Column("gflops", "GFLOP per slice", digits=3),
        ],
        caption=f"Methods for a slice of {ky} x {kz} from {config.coils} coils",
    )
    for name, entry in MODELS.items():
        method = build(name, (ky, kz))
        cost = {"parameters": method.num_parameters, "gflops": method.flops(config.coils) / 1e9}
        table.rows.append({"model": name, "summary": entry.summary, **cost})
    table.print()


if __name__ == "__main__":
    sys.exit(run("python -m mri.models", {"": show}))
