"""Bounds of options, refused in one wording wherever an option is."""

from pathlib import Path
from typing import Any

from lab.errors import UserError
from lab.manifest import program


def flag(key: str) -> str:
    """An option as it is written on the command line.

    >>> flag("batch_size")
    '--batch-size'
    """
    return f"--{key.replace('_', '-')}"


def at_least(config: Any, bound: float, *keys: str, remedy: str = "") -> None:
    """Refuse a config in which one of these options is below the bound; what was not given (None) passes."""
    for key in keys:
        value = getattr(config, key)
        if value is not None and not value >= bound:
            raise UserError(f"{flag(key)} must be at least {bound:g}, not {value}{remedy}.")


def above(config: Any, bound: float, *keys: str, remedy: str = "") -> None:
    """Refuse a config in which one of these options is not above the bound; what was not given (None) passes."""
    for key in keys:
        value = getattr(config, key)
        if value is not None and not value > bound:
            raise UserError(f"{flag(key)} must be above {bound:g}, not {value}{remedy}.")


def at_most(config: Any, bound: float, *keys: str, remedy: str = "") -> None:
    """Refuse a config in which one of these options is above the bound; what was not given (None) passes."""
    for key in keys:
        value = getattr(config, key)
        if value is not None and not value <= bound:
            raise UserError(f"{flag(key)} must be at most {bound:g}, not {value}{remedy}.")


def existing_file(config: Any, key: str) -> Path:
    """The file that an option names; an option that was not given, or that points nowhere, is refused."""
    path: Path | None = getattr(config, key)
    if path is None:
        raise UserError(f"{flag(key)} is missing; {' '.join(program())} --help shows how to give it.")
    if not path.is_file():
        raise UserError(f"{flag(key)} names {path}, but there is no such file.")
    return path
