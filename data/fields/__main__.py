"""Commands for files of fields: what is in one (info, show), another format (convert), shards (join)."""

from data.fields.options import ConvertConfig, InfoConfig, JoinConfig, ShowConfig
from lab.cli import main


def show(config: ShowConfig) -> None:
    """Write a contact sheet and an animation of FILE and print what its fields are like."""
    from data.fields.show import show

    show(config)


def info(config: InfoConfig) -> None:
    """Print what is understood of FILE: samples, frames, fields, grid, geometry, times, spread of each field."""
    from data.fields.info import info

    info(config)


def convert(config: ConvertConfig) -> None:
    """Write the fields of FILE to OUT in the format of this suite."""
    from data.fields.convert import convert

    convert(config)


def join(config: JoinConfig) -> None:
    """Join the shards beside FILE into FILE."""
    from data.fields.join import join

    join(config)


if __name__ == "__main__":
    main({"": show, "info": info, "show": show, "convert": convert, "join": join})
