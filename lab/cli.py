"""Commands as a table of functions, their arguments as dataclasses.

A command is a function with one parameter, a dataclass. The dataclass's fields become `--dashed-flags`,
the string under a field its help, fields without a default positional arguments, bool fields bare flags.
Where the dataclass has a registry of models, the options of every model become flags too.
Values come from, in rising order: the field's default, the preset, `--config file.yaml`, the flags.
A mistake is answered with one line and exit status 2.
"""

import dataclasses
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from lab.checks import flag
from lab.ending import status_of
from lab.errors import UserError, nearest
from lab.files import read_yaml
from lab.help import Formatter, group_actions, option_help
from lab.manifest import program
from lab.presets import apply_preset, value_of
from lab.registry import Registry, without_none

if typing.TYPE_CHECKING:
    from jsonargparse import ArgumentParser

Command = Callable[[Any], Any]


def main(commands: Command | Mapping[str, Command]) -> NoReturn:
    """Be the module that `python -m` was given: its one command, or a table of them."""
    sys.exit(run(" ".join(program()), commands if isinstance(commands, Mapping) else {"": commands}))


def run(prog: str, commands: Mapping[str, Command], argv: Sequence[str] | None = None) -> int:
    """Parse `argv`, call the command it names and return the exit status.

    The command "" is the one meant when the first word names no other.
    """
    words = list(sys.argv[1:] if argv is None else argv)

    def parse_and_call() -> None:
        name, command = _choose(commands, words)
        config = parse(
            _config_class(command),
            words[1:] if name else words,
            prog=f"{prog} {name}".strip(),
            command=command,
            others=commands,
        )
        command(config)

    return status_of(parse_and_call)


def parse(
    config_class: type[Any],
    words: Sequence[str],
    *,
    prog: str,
    command: Command | None = None,
    others: Mapping[str, Command] | None = None,
) -> Any:
    """Read a command line into an instance of `config_class`."""
    import argparse

    parser = _parser(config_class, prog, command, others or {})
    words = [_flag_as_defined(word, config_class) for word in words]
    if (file := value_of("--config", words)) is not None and Path(file).exists():
        _refuse_impossible_file(Path(file))
    words = _with_bracketed_lists(config_class, words)
    preset: dict[str, Any] = {}
    try:
        if not {"-h", "--help"} & set(words):
            preset = apply_preset(parser, config_class, words)
        namespace = parser.parse_args(words)
    except argparse.ArgumentError as error:
        raise UserError(_explain(error, parser, config_class, prog)) from error
    registry = _registry(config_class)
    values = {
        entry.name: getattr(namespace, entry.name)
        for entry in dataclasses.fields(config_class)
        if not (registry and entry.name == "options")
    }
    _refuse_null(values, typing.get_type_hints(config_class))
    _refuse_huge(values)
    if registry is not None:
        # A preset speaks of whatever model is chosen: what that model does not have, it passes over.
        own = registry.options() if config_class.every_model else registry[values["model"]].defaults
        usual = {key: value for key, value in preset.items() if key in own}
        given = {key: getattr(namespace, key) for key in registry.options()}
        values["options"] = usual | {key: value for key, value in given.items() if value is not None}
    return config_class(**values)


def _registry(config_class: type[Any]) -> Registry | None:
    return getattr(config_class, "registry", None) if "options" in _field_names(config_class) else None


def _refuse_impossible_file(path: Path) -> None:
    """Refuse a configuration that the parser would wait for, go through without end, or fail at."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no options; give one per line, such as `seed: 1`.")
    _refuse_huge({str(key): value for key, value in content.items()}, f" ({path})")


def _refuse_huge(values: Mapping[str, Any], where: str = "") -> None:
    """Refuse whole numbers that no library takes, and no manifest."""
    for key, value in values.items():
        if isinstance(value, int) and abs(value) >= 2**63:
            shown = str(value) if abs(value) < 10**20 else f"{str(value)[:20]}..."
            raise UserError(f"{flag(key)} cannot be as large as {shown}{where}.")


def _refuse_null(values: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Refuse null where a configuration file must not say it; the parser takes it for anything."""
    for key, value in values.items():
        if value is None and type(None) not in typing.get_args(hints[key]):
            raise UserError(f"{flag(key)} needs a value, not null; leave the entry out for the usual one.")


def _field_names(config_class: type[Any]) -> list[str]:
    return [entry.name for entry in dataclasses.fields(config_class)]


def _choose(commands: Mapping[str, Command], words: list[str]) -> tuple[str, Command]:
    if words and words[0] in commands:
        return words[0], commands[words[0]]
    positional = bool(words) and not words[0].startswith("-")
    if "" in commands and not (positional and not _positionals(_config_class(commands[""]))):
        return "", commands[""]
    names = ", ".join(name for name in commands if name)
    if not names:
        registry = _registry(_config_class(commands[""]))
        meant = f" (did you mean --model {words[0]}?)" if registry and words[0] in registry else ""
        raise UserError(f"this command takes options only, not {words[0]!r}{meant}; --help lists them.")
    if not positional:
        raise UserError(f"a command is missing; choose one of {names}.")
    raise UserError(f"there is no command {words[0]!r}{nearest(words[0], commands)}; choose one of {names}.")


def _config_class(command: Command) -> type[Any]:
    hints = {name: hint for name, hint in typing.get_type_hints(command).items() if name != "return"}
    (config_class,) = hints.values()
    return typing.cast(type[Any], config_class)


def _positionals(config_class: type[Any]) -> list[str]:
    missing = dataclasses.MISSING
    fields = dataclasses.fields(config_class)
    return [field.name for field in fields if field.default is missing and field.default_factory is missing]


def _parser(
    config_class: type[Any], prog: str, command: Command | None, others: Mapping[str, Command]
) -> "ArgumentParser":
    from jsonargparse import ArgumentParser, set_parsing_settings

    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    description = (command.__doc__ if command else config_class.__doc__) or ""
    names = [name for name in others if name and not prog.endswith(f" {name}")]
    parser = ArgumentParser(
        prog=prog,
        usage=" ".join([prog, *(name.upper() for name in _positionals(config_class)), "[--options]"]),
        description=description,
        epilog=f"other commands: {', '.join(names)}" if names else None,
        exit_on_error=False,
        formatter_class=Formatter,
    )
    parser.add_argument("--config", action="config", help="YAML file with any of the options below.")
    registry = _registry(config_class)
    parser.add_class_arguments(
        config_class, as_group=False, as_positional=True, skip={"options"} if registry else set()
    )
    if registry is not None:
        for models in registry.options().values():
            option, text = next(iter(models.values())), option_help(models, registry)
            parser.add_argument(f"--{option.name}", type=option.type | None, default=None, help=text)
    for action in parser._actions:
        action.help = re.sub(
            r"%(?!\()", "%%", action.help or ""
        )  # argparse takes a bare % for a place to fill
        _use_dashes(parser, action)
        if action.dest == "model" and registry is not None:
            action.help = f"{action.help} {'; '.join(f'{e.name}: {e.summary}' for e in registry.values())}."
        if _type_of(config_class, action.dest) is bool:
            action.nargs, action.const = "?", True
    group_actions(parser, config_class, registry)
    return parser


def _type_of(config_class: type[Any], dest: str) -> Any:
    """The type of an option, be it a field or an option of a model."""
    registry = _registry(config_class)
    hint = typing.get_type_hints(config_class).get(dest)
    if hint is None and registry is not None and dest in registry.options():
        hint = next(iter(registry.options()[dest].values())).type
    return without_none(hint)


def _use_dashes(parser: "ArgumentParser", action: Any) -> None:
    dashed = [
        _with_underscores_as_dashes(option) for option in action.option_strings if option != "--print_config"
    ]
    if dashed:
        action.option_strings = dashed
        parser._option_string_actions.update(dict.fromkeys(dashed, action))


def _with_underscores_as_dashes(word: str) -> str:
    name, equals, value = word.partition("=")
    if not name.startswith("--") or name == "--print_config":
        return word
    return name.replace("_", "-") + equals + value


def _flag_as_defined(word: str, config_class: type[Any]) -> str:
    """A flag with dashes, and by the option's own name where it was called by an alias."""
    name, equals, value = _with_underscores_as_dashes(word).partition("=")
    aliases = {flag(alias): flag(meant) for alias, meant in getattr(config_class, "aliases", {}).items()}
    return aliases.get(name, name) + equals + value


def _with_bracketed_lists(config_class: type[Any], words: list[str]) -> list[str]:
    """`--models mno,fno` and `--models mno fno` as `--models [mno,fno]`, for the flags that take lists.

    A command with positional arguments takes commas only: a word after a space could be one of those.
    """
    hints = {name: without_none(hint) for name, hint in typing.get_type_hints(config_class).items()}
    lists = {flag(name) for name, hint in hints.items() if typing.get_origin(hint) is list}
    several = not _positionals(config_class)
    result: list[str] = []
    open_list = ""  # the flag whose list is being read
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            open_list = word if word in lists else ""
            result.append(f"{name}={_bracketed(value)}" if name in lists and equals else word)
        elif open_list and result[-1] == open_list:
            result.append(_bracketed(word))
        elif open_list and several:
            result[-1] = _bracketed(f"{result[-1]},{word}")
        else:
            result.append(word)
    return result


def _bracketed(value: str) -> str:
    if value == "null":
        return value
    entries = (entry.strip("[] ") for entry in value.split(","))
    return f"[{','.join(entry for entry in entries if entry)}]"


def _explain(error: Exception, parser: "ArgumentParser", config_class: type[Any], prog: str) -> str:
    """One sentence that quotes the flag the person typed."""
    text = str(error)
    flags = [
        option for option in parser._option_string_actions if option.startswith("--") and "_" not in option
    ]
    if match := re.search(r"[Uu]nrecognized arguments: (.*)", text):
        word = match.group(1).split()[0]
        near = nearest(word.partition("=")[0], flags)
        return f"there is no option {word}{near}; {prog} --help lists them all."
    if match := re.search(r"Parser key \"([\w.]+)\":", text):
        key = match.group(1)
        return f"{flag(key)} {_expectation(config_class, key, text)}."
    if match := re.search(r"Option '([\w.]+)' is not accepted", text):
        key = match.group(1)
        registry = _registry(config_class)
        if registry is not None and key.startswith("options."):
            own = key.removeprefix("options.")
            return f"a model's options stand beside the others in a configuration: {own}, not {key}."
        names = [*_field_names(config_class), *(registry.options() if registry else ())]
        return f"the configuration has no entry {key!r}{nearest(key, names)}."
    if match := re.search(r"required.*?:? ['\"]?([\w, ]+)", text):
        return f"{match.group(1).strip()} is missing; {prog} --help shows how to give it."
    return " ".join(text.removeprefix("argument ").split()).rstrip(".") + "."


def _expectation(config_class: type[Any], key: str, text: str) -> str:
    if "File does not exist" in text:
        return f"names {text.rsplit(': ', 1)[-1].strip()}, but there is no such file"
    match = re.search(r"(?:Got|Given) value: (.*)", text)
    if match is None:
        return " ".join(text.split("\n", 1)[-1].split()).rstrip(".")
    came = match.group(1).strip()
    hint = _type_of(config_class, key) or str
    if typing.get_origin(hint) is typing.Literal:
        choices = [str(choice) for choice in typing.get_args(hint)]
        return f"takes one of {', '.join(choices)}, not {came!r}{nearest(came, choices)}"
    if hint in (int, float):
        return f"takes {'a whole number' if hint is int else 'a number'}, not {came!r}"
    return f"takes a value of type {getattr(hint, '__name__', hint)}, not {came!r}"
