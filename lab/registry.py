"""The models of an application, each entered once.

An entry says what a model is called, what it does, where it is and which options it has. The command line, its help,
the checks, tables, figures and the headers of weights files all follow from the entry; there is no other list of
models. Nothing here imports a model before it is asked for.
"""

import numbers
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from lab.checks import flag
from lab.errors import UserError, nearest


@dataclass(frozen=True)
class Option:
    """One option of a model: a flag on the command line and a keyword of the model."""

    name: str
    type: Any
    default: Any
    help: str
    at_least: float | None = None
    at_most: float = 2**16
    """No size of a layer or count of anything is larger; a damaged header can ask for it."""

    def with_default(self, default: Any) -> "Option":
        """The same option of a model that has another default."""
        return replace(self, default=default)

    def check(self, value: Any) -> None:
        """Refuse a value that the option cannot have."""
        choices = [choice for kind in _kinds(self.type) for choice in typing.get_args(kind)]
        if choices and value is not None and value not in choices:
            known = ", ".join(str(choice) for choice in choices)
            raise UserError(
                f"{flag(self.name)} takes one of {known}, not {value!r}{nearest(str(value), map(str, choices))}."
            )
        kind = without_none(self.type)
        if kind in (int, float, bool) and value is not None and not _is_a(kind, value):
            raise UserError(f"{flag(self.name)} takes a value of type {kind.__name__}, not {value!r}.")
        if isinstance(value, int | float) and value > self.at_most:
            raise UserError(f"{flag(self.name)} must be at most {self.at_most:g}, not {value}.")
        if self.at_least is not None and value is not None and not value >= self.at_least:
            raise UserError(f"{flag(self.name)} must be at least {self.at_least:g}, not {value}.")


@dataclass(frozen=True)
class Entry:
    """One model. `target` is "module:name" of the class or function that makes it, imported by `load`."""

    name: str
    summary: str
    target: str
    options: tuple[Option, ...] = ()
    title: str = ""
    """What figures call it; the name where empty."""
    learned: bool = True
    """Whether gradients train it."""
    versatile: bool = False
    """Whether one training serves all cases of a table, such as all accelerations."""
    check: Callable[[Mapping[str, Any]], None] | None = None
    """Refuses, with a `UserError`, options that do not go together."""

    @property
    def shown(self) -> str:
        """What figures call it."""
        return self.title or self.name

    @property
    def defaults(self) -> dict[str, Any]:
        """The options as they are when nothing is chosen."""
        return {option.name: option.default for option in self.options}

    def load(self) -> Any:
        """Import what makes the model."""
        module, _, name = self.target.partition(":")
        return getattr(import_module(module), name)


class Registry(Mapping[str, Entry]):
    """The models of an application by name, in the order of its tables.

    >>> width = Option("width", int, 20, "Channels.", at_least=1)
    >>> models = Registry("pde", Entry("fno", "Fourier", "torch.nn:Linear", (width,)), Entry("unet", "U", "x:y"))
    >>> models.settled("fno", {}), models.settled("fno", {"width": 8})
    ({'width': 20}, {'width': 8})
    >>> models.settled("unet", {"width": 8})
    Traceback (most recent call last):
    lab.errors.UserError: --width does nothing with --model unet; it belongs to fno.
    """

    def __init__(self, app: str, *entries: Entry) -> None:
        self.app = app
        self._entries = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            known = ", ".join(self)
            raise UserError(f"there is no model {name!r}{nearest(name, self)}; choose one of {known}.")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def options(self) -> dict[str, dict[str, Option]]:
        """Every option of any model: {option: {model: the option as that model has it}}."""
        found: dict[str, dict[str, Option]] = {}
        for entry in self.values():
            for option in entry.options:
                found.setdefault(option.name, {})[entry.name] = option
        return found

    def settled(self, name: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """All options of a model: those chosen, checked, and the defaults of the others."""
        entry = self[name]
        own = {option.name: option for option in entry.options}
        for key, value in chosen.items():
            if key not in own:
                owners = self.options().get(key)
                if owners is None:
                    raise UserError(f"no model has an option {flag(key)}{nearest(key, self.options())}.")
                raise UserError(
                    f"{flag(key)} does nothing with --model {name}; it belongs to {', '.join(owners)}."
                )
            own[key].check(value)
        settled = entry.defaults | dict(chosen)
        if entry.check is not None:
            entry.check(settled)
        return settled


def _is_a(kind: type, value: Any) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, numbers.Integral if kind is int else numbers.Real)


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The Literal types in a type hint, which may be a union with None."""
    parts = (hint, *typing.get_args(hint)) if typing.get_origin(hint) is not typing.Literal else (hint,)
    return tuple(part for part in parts if typing.get_origin(part) is typing.Literal)


def without_none(hint: Any) -> Any:
    """`float | None` to `float`; other unions stay as they are."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 else hint
