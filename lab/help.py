"""How --help looks: options under headings, each with its default, and which models an option belongs to."""

import argparse
import typing
from collections.abc import Mapping
from typing import Any

from lab.registry import Option, Registry, without_none

if typing.TYPE_CHECKING:
    from jsonargparse import ArgumentParser

HEADINGS = ("run", "data", "model", "training", "hardware")
"""The groups of options, in this order."""


class Formatter(argparse.HelpFormatter):
    """Help with the default behind each option that has one, and nothing about Python's types."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, max_help_position=28, **options)

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        shown = "" if action.default is argparse.SUPPRESS else _shown_default(action.default)
        return text if not shown or "(default" in text else f"{text} (default: {shown})"

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return action.dest.upper()
        words = ", ".join(action.option_strings)
        if action.nargs in (0, "?"):
            return words
        return f"{words} {_choices(action) or action.dest.rsplit('_', 1)[-1].upper()}"


def group_actions(parser: "ArgumentParser", config_class: type[Any], registry: Registry | None) -> None:
    """Put the options under the headings of the classes that define them (`group`); models' options under model."""
    heading = {}
    for kind in config_class.__mro__:  # the class furthest up that has the field is the one that defined it
        for name in getattr(kind, "__annotations__", {}):
            heading[name] = kind.__dict__.get("group", "training" if hasattr(kind, "group") else None)
    for name in registry.options() if registry else ():
        heading[name] = "model"
    found = [title for title in HEADINGS if title in heading.values()]
    groups = {title: parser.add_argument_group(f"{title} options") for title in found}
    plain = parser._optionals._group_actions
    for action in list(plain):
        title = heading.get(action.dest)
        if title in groups:
            plain.remove(action)
            groups[title]._group_actions.append(action)


def option_help(models: Mapping[str, Option], registry: Registry) -> str:
    """What an option of some models does, whose it is, and what it is by default."""
    texts = {option.help for option in models.values()}
    assert len(texts) == 1, f"{next(iter(models))} and others describe one option differently: {texts}"
    defaults: dict[str, list[str]] = {}
    for model, option in models.items():
        defaults.setdefault(_shown_default(option.default), []).append(model)
    usual = max(defaults, key=lambda shown: len(defaults[shown]))
    special = [
        f"{shown or 'none'} for {', '.join(which)}" for shown, which in defaults.items() if shown != usual
    ]
    told = "; ".join([usual, *special] if usual else special)
    whose = "" if len(models) == len(registry) else f"{', '.join(models)}: "
    return f"{whose}{texts.pop()}" + (f" (default: {told})" if told else "")


def _shown_default(value: Any) -> str:
    if value is None or value is False or value == [] or value == "":
        return ""
    return ",".join(str(each) for each in value) if isinstance(value, list | tuple) else str(value)


def _choices(action: Any) -> str:
    """The values of a Literal, in braces, where they are few."""
    hint = without_none(getattr(action, "_typehint", None))
    if typing.get_origin(hint) is not typing.Literal:
        return ""
    text = "{" + ",".join(str(choice) for choice in typing.get_args(hint)) + "}"
    return text if len(text) < 50 else ""
