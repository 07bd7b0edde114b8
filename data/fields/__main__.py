"""Commands for files of fields: look at one (show), put shards together (join)."""

import sys

from data.fields.options import JoinConfig, ShowConfig
from lab.cli import run


def show(config: ShowConfig) -> None:
    """Write a contact sheet and an animation of FILE and print what its fields are like."""
    from data.fields.show import show

    show(config)


def join(config: JoinConfig) -> None:
    """Join the shards beside FILE into FILE."""
    from data.fields.join import join

    join(config)


if __name__ == "__main__":
    sys.exit(run("python -m data.fields", {"": show, "show": show, "join": join}))
