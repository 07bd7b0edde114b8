"""`python -m mri.table`: train what both tables of the paper need, then make them."""

import sys

from lab.cli import run
from mri.config import TableConfig


def table(config: TableConfig) -> None:
    """Train every method at every acceleration and number of scans, skipping finished runs, and evaluate."""
    from mri.campaign import campaign

    campaign(config)


if __name__ == "__main__":
    sys.exit(run("python -m mri.table", {"": table}))
