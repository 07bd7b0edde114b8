"""`python -m mri.models`: the methods, with their parameters and operations per slice."""

from lab.cli import main
from mri.config import ModelsConfig


def show(config: ModelsConfig) -> None:
    """List the methods with their parameters and real operations for one slice."""
    from lab.console import say
    from lab.errors import UserError
    from lab.table import Column, Table
    from mri.models import MODELS, build

    ky, kz = config.plane
    columns = [Column("--model"), Column("method"), Column("parameters"), Column("GFLOP per slice", digits=3)]
    table = Table(columns, caption=f"Methods for a slice of {ky} x {kz} from {config.coils} coils")
    for name, entry in MODELS.items():
        try:
            method = build(name, (ky, kz))
        except UserError as error:  # of a side that it cannot have; the others can
            say(str(error))
            continue
        table.add(name, entry.summary, method.num_parameters, method.flops(config.coils) / 1e9)
    table.print()


if __name__ == "__main__":
    main(show)
