"""Files that are either whole or absent: written under a temporary name, then renamed."""

import errno
import glob
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from lab.errors import UserError

T = TypeVar("T")
_TEMPORARY = re.compile(r"\..*\.(\d+)\.tmp(\.[^.]+)?(\.gz)?")


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it is renamed onto `path`, on failure removed.

    The temporary name keeps the suffix, because libraries choose the format by it. Two processes that
    write the same path do not disturb each other: the last one to finish wins. What a killed process left of the
    same path is removed.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a" / "result.txt"
    >>> with atomic_path(target) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> target.read_text(), len(list(target.parent.iterdir()))
    ('whole', 1)
    """
    path = Path(path)
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    stem = path.name.removesuffix(suffix)
    temporary = path.with_name(f".{stem}.{os.getpid()}.tmp{suffix}")
    try:
        make_folder(path.parent)
        _remove_left(path.parent.glob(f".{glob.escape(stem)}.*.tmp{glob.escape(suffix)}"))
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        yield temporary
        if temporary.is_file():
            # Some libraries create files that only their owner may read; colleagues read runs too.
            temporary.chmod(0o666 & ~_umask())
            _flush_to_disk(temporary)
        os.replace(temporary, path)
        _flush_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, so that a power cut cannot lose their names."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _flush_folder(folder.parent)


def reserve(path: Path, size: int) -> None:
    """Let a file have room for so many bytes; if the disk is too full for that, it fails here and not half-way."""
    if hasattr(os, "posix_fallocate"):  # not on macOS and Windows
        with path.open("ab") as file:
            os.posix_fallocate(file.fileno(), 0, size)


def is_temporary(path: Path) -> bool:
    """Whether `atomic_path` gave this name.

    >>> is_temporary(Path(".config.123.tmp.yaml")), is_temporary(Path("config.yaml"))
    (True, False)
    """
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files below `folder` whose process is gone; where that is in doubt, leave them."""
    _remove_left(folder.rglob(".*.tmp*"))


def _remove_left(paths: Iterable[Path]) -> None:
    for path in paths:
        match = _TEMPORARY.fullmatch(path.name)
        if match and _is_gone(int(match[1])):
            path.unlink(missing_ok=True)


def _is_gone(pid: int) -> bool:
    if os.name != "posix":  # elsewhere the signal 0 is no mere question
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # somebody else's process, or no number that a process can have
        return False
    return False


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _flush_to_disk(path: Path) -> None:
    # Without this a power cut after the rename can leave the new name with the old disk blocks.
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    # The new name itself is in the folder, which a power cut can lose too.
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems cannot
                raise
        finally:
            os.close(descriptor)


def unwritable(path: str | Path, error: OSError) -> UserError:
    """Turn a full disk or a forbidden folder into a sentence."""
    reason = error.strerror or str(error)
    return UserError(f"could not write {path}: {reason}. Free some space or choose another folder.")


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write a JSON file atomically, indented, in the order given."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: str | Path) -> Any:
    """Read a JSON file; a broken or absent one is a `UserError` that names it."""
    text = _read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid JSON ({error}); restore or delete it.") from error


def read_table(path: str | Path) -> dict[str, Any]:
    """Read a JSON or YAML file that is a table: entries by name."""
    found = read_yaml(path) if Path(path).suffix == ".yaml" else read_json(path)
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise UserError(f"{path} is no table of entries; restore or delete it.")
    return found


MOST_ENTRIES = 100_000
"""Of a YAML file: far more than any has, and few enough to go through."""
PLAIN = {int, float, str, bool, list, dict, type(None)}


def check_kinds(path: Path, entries: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Refuse entries of a table in a run's folder that are not of the plain type that they should have."""
    for key, value in entries.items():
        hint = hints.get(key)
        is_union = get_origin(hint) in (Union, UnionType)
        kinds = get_args(hint) if is_union else (hint,)
        if not set(kinds) <= PLAIN:
            continue
        allowed = tuple(kind for kind in kinds if kind is not None) + ((int,) if float in kinds else ())
        number_for_bool = isinstance(value, bool) and bool not in kinds
        too_large = isinstance(value, int) and abs(value) >= 2**63
        if not isinstance(value, allowed) or number_for_bool or too_large:
            came = f"{key} is {str(value)[:40]!r}"
            raise UserError(f"{path}: {came}, which cannot be; restore it, or move the run elsewhere.")


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file, without objects of Python; a broken or absent one is a `UserError` that names it."""
    import yaml

    text = _read_text(path)
    try:
        document = yaml.compose(text, yaml.SafeLoader)
        if _expanded_size(document) > MOST_ENTRIES:
            raise ValueError(f"with its aliases written out it has more than {MOST_ENTRIES:,} entries")
        if isinstance(document, yaml.MappingNode):
            _refuse_repetition([key.value for key, _ in document.value if isinstance(key, yaml.ScalarNode)])
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path} is not valid YAML ({reason[:200]}); restore or delete it.") from error


def _refuse_repetition(keys: list[str]) -> None:
    """YAML would take the last of them and say nothing."""
    for key, times in Counter(keys).items():
        if times > 1:
            raise ValueError(f"{key!r} stands in it {times} times")


def _expanded_size(node: Any, known: dict[int, int] | None = None) -> int:
    """Entries of a YAML document if every alias were what it stands for."""
    known = {} if known is None else known
    if id(node) not in known:
        known[id(node)] = 1  # also of a node within itself
        below = node.value if isinstance(getattr(node, "value", None), list) else []  # of a mapping, pairs
        parts = (part for each in below for part in (each if isinstance(each, tuple) else (each,)))
        known[id(node)] += sum(_expanded_size(part, known) for part in parts)
    return known[id(node)]


def _read_text(path: str | Path) -> str:
    if not Path(path).is_file():  # a pipe or a device would be read without end
        raise UserError(f"there is no file {path}.")
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read as text ({error}); restore or delete it.") from error


def kept(folder: Path, key: Any, compute: Callable[[], T]) -> T:
    """The JSON-like value that `compute` gives: computed once per key, kept in a file of `folder` with a checksum."""
    from lab.console import say

    name = fingerprint(key)
    path, older = folder / f"{name}.kept.json", folder / f"{name}.json"
    if path.exists():
        with suppress(UserError):
            found = read_table(path)
            if found.get("checksum") == fingerprint(found.get("value")):
                return found["value"]
        say(f"{path} is damaged: computing it again")
    # Earlier versions kept the value alone.
    value = read_json(older) if older.exists() else json.loads(json.dumps(compute()))
    write_json(path, {"checksum": fingerprint(value), "value": value})
    return value


def content_hash(path: Path) -> str:
    """A hash of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fingerprint(value: Any) -> str:
    """A short stable hash of a JSON-like value, to tell one data set or configuration from another.

    >>> fingerprint({"b": 1, "a": [2.0]}) == fingerprint({"a": [2.0], "b": 1})
    True
    """
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
