"""Presets: named sets of options in `configs/<app>/<preset>.yaml`, holding what differs from the defaults.

An application whose numbers depend on one of its options keeps the presets of each value in a folder of that name,
`configs/<app>/<value>/<preset>.yaml`; those of the option's default are in the application's own folder.
"""

import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from lab.checks import flag
from lab.console import say
from lab.errors import UserError
from lab.files import read_yaml
from lab.paths import presets_dir

if typing.TYPE_CHECKING:
    from jsonargparse import ArgumentParser

Preset = Literal["auto", "paper", "laptop", "benchmark", "smoke"]


def apply_preset(parser: "ArgumentParser", config_class: type[Any], words: Sequence[str]) -> dict[str, Any]:
    """Make the preset named on the command line (or in its config file) the parser's defaults; return its values.

    A class takes part by having a field `preset` and a class attribute `app`; `presets_by` may name the field whose
    values have presets of their own, `unset_by` the options that a preset leaves alone where another is given, and a
    class method `presumed` tell which options follow from those given. Options of models are left to the caller, who
    knows which model is meant.
    """
    app = getattr(config_class, "app", None)
    if app is None or "preset" not in config_class.__dataclass_fields__:
        return {}
    asked = _asked_for("preset", words) or str(config_class.__dataclass_fields__["preset"].default)
    name, reason = _automatic() if asked == "auto" else (asked, "as asked")
    if name not in typing.get_args(Preset):
        return {}  # the parser will object, quoting the flag
    by = getattr(config_class, "presets_by", None)
    presume = getattr(config_class, "presumed", None)
    presumed: dict[str, Any] = presume(lambda option: _asked_for(option, words)) if presume else {}
    value = (_asked_for(by, words) or presumed.get(by)) if by else None
    if value is not None and not (presets_dir(app) / value).is_dir():
        value = None  # the default, or a mistake to which the parser will object
    values = read_preset(app if value is None else f"{app}/{value}", name) | {"preset": name}
    for key, other in getattr(config_class, "unset_by", {}).items():
        if _asked_for(other, words) is not None:
            values.pop(key, None)
    fields = config_class.__dataclass_fields__
    parser.set_defaults({key: each for key, each in (values | presumed).items() if key in fields})
    if not any(word.startswith("--print_config") for word in words):
        say(f"preset {name}: {reason}")
    return values


def read_preset(app: str, name: str) -> dict[str, Any]:
    """The options that a preset changes."""
    import yaml

    path = presets_dir(app) / f"{name}.yaml"
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml")))
        raise UserError(f"{app} has no preset {name!r}; configs/{app} holds {names}.")
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def _automatic() -> tuple[str, str]:
    import torch

    if torch.accelerator.is_available():
        accelerator = torch.accelerator.current_accelerator()
        return (
            "paper",
            f"chosen because an accelerator ({accelerator}) is present; --preset laptop is quicker",
        )
    return "laptop", "chosen because no accelerator was found; --preset paper runs the paper's protocol"


def _asked_for(option: str, words: Sequence[str]) -> str | None:
    """The value that the command line, or its config file, gives to an option."""
    asked = value_of(flag(option), words)
    file = value_of("--config", words)
    if asked is None and file is not None and Path(file).is_file():
        content = read_yaml(file)
        asked = content.get(option) if isinstance(content, dict) else None
    return None if asked in (None, "auto") else str(asked)


def value_of(flag: str, words: Sequence[str]) -> str | None:
    """The last value given to `flag`, in either spelling (`--flag value`, `--flag=value`)."""
    value = None
    for position, word in enumerate(words):
        if word == flag and position + 1 < len(words):
            value = words[position + 1]
        elif word.startswith(f"{flag}="):
            value = word.partition("=")[2]
    return value
