"""From options to training, validation and test samples: sequences of tokens, from documents of their own for each.

A document is a file, or a piece of the one file that was given. Its place in [0, 1) decides what it is used for: the
hash of a file's name, so that the split stays the same wherever the files lie and however many there are; the position
of a piece.
"""

import hashlib
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Subset

from lab.console import say
from lab.errors import UserError, readable
from lab.files import atomic_path, fingerprint
from lab.locks import only_process
from lab.paths import datasets_dir
from text.config import DataOptions
from text.settings import Part
from text.vocabulary import SEPARATOR, BytePairs, Bytes, Vocabulary, from_header

ROLES = ("first", "second", "validation", "test")
"""What documents are used for: either half of the training, validation, test."""
HELD_OUT = 0.05
"""Fraction of the documents to validate on, and the same again to test on."""
PIECES = 400
"""Pieces that a single file is cut into, at line breaks."""
LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "encodings", "__pycache__"}
"""Folders of the standard library: tests, which not every installation has, foreign packages, and tables."""


class Document(NamedTuple):
    """A text, its name and its place in [0, 1)."""

    name: str
    place: float
    text: str

    @property
    def role(self) -> str:
        """What it is used for, one of ROLES."""
        if self.place < HELD_OUT:
            return "test"
        if self.place < 2 * HELD_OUT:
            return "validation"
        return "first" if self.place < 0.5 + HELD_OUT else "second"


class Windows(Dataset[tuple[Tensor, int]]):
    """Consecutive windows of context + 1 tokens (the last one of each is the first of the next), and their numbers."""

    def __init__(self, tokens: np.ndarray, context: int) -> None:
        self.tokens, self.context = tokens, context

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // self.context

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        begin = index * self.context
        return torch.from_numpy(self.tokens[begin : begin + self.context + 1].astype(np.int64)), index


@dataclass(frozen=True)
class Corpus:
    """The tokens of all documents, by what they are used for."""

    tokens: dict[str, np.ndarray]
    bytes_per_token: dict[str, float]
    vocabulary: Vocabulary
    description: dict[str, Any]

    def training(self, part: Part, context: int) -> Windows:
        """All training sequences of a part of the documents."""
        halves = ("first", "second") if part == "all" else (part,)
        return Windows(np.concatenate([self.tokens[half] for half in halves]), context)

    def held_out(self, role: str, context: int, number: int) -> Subset[tuple[Tensor, int]]:
        """So many sequences to validate or test on, spread over the documents."""
        windows = Windows(self.tokens[role], context)
        chosen = np.unique(np.linspace(0, len(windows) - 1, min(number, len(windows))).round().astype(int))
        return Subset(windows, chosen.tolist())


def corpus(options: DataOptions) -> Corpus:
    """The tokens that the options ask for, kept in datasets/ once computed."""
    found = documents(options.data)
    description = _describe(options, found)
    path = datasets_dir() / "text" / f"{description['fingerprint']}.npz"
    wait = "waiting for another process that makes the tokens"
    with only_process(path.with_suffix(".lock"), lambda: say(wait)):
        if not path.exists():
            _write(options, found, path)
    with readable(path, "delete it and it is made again"), np.load(path) as file:
        tokens = {role: file[role] for role in ROLES}
        for role in ROLES:
            if tokens[role].ndim != 1:
                raise ValueError(f"{role!r} is no row of tokens")
        rates = dict(zip(ROLES, file["bytes_per_token"].tolist(), strict=True))
        vocabulary = from_header(str(file["vocabulary"]))
    shortest = min(ROLES, key=lambda role: len(tokens[role]))
    if len(tokens[shortest]) <= options.context:
        raise UserError(
            f"the text has {len(tokens[shortest])} tokens for the part {shortest!r}, too few for a sequence of "
            f"--context {options.context}; give more documents, or all text in one file, which is cut by position."
        )
    return Corpus(tokens, rates, vocabulary, description)


def documents(data: Path | None) -> list[Document]:
    """The documents of a file or folder, by default of Python's standard library, in the order of their names."""
    if data is not None and data.is_file():
        return list(_pieces(data))
    folder = Path(sysconfig.get_path("stdlib")) if data is None else data
    if not folder.is_dir():
        raise UserError(f"--data names {data}, but there is no such file or folder.")
    found = [
        Document(name, int(hashlib.sha256(name.encode()).hexdigest()[:12], 16) / 16**12, text)
        for name, path in sorted(_files(folder, standard_library=data is None))
        if (text := _text(path))
    ]
    if not found:
        raise UserError(f"--data {data} holds no text files; give a folder of UTF-8 text.")
    return found


def _files(folder: Path, standard_library: bool) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob("*.py" if standard_library else "*"):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in parts)
        # _sysconfigdata and its like are written when Python is built, and tell of the machine.
        unwanted = standard_library and (LEFT_OUT & set(parts) or parts[-1].startswith("_sysconfigdata"))
        if path.is_file() and not hidden and not unwanted:
            yield "/".join(parts), path


def _text(path: Path) -> str | None:
    """A file as text; None for one that is empty or no UTF-8 text."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return None
    return None if not text or "\0" in text else text


def _pieces(path: Path) -> Iterator[Document]:
    text = _text(path)
    if text is None:
        raise UserError(f"--data {path} is empty or is not UTF-8 text.")
    # As bytes: the n-th character of a long text is far slower to find than its n-th byte.
    lines, begin = text.encode().splitlines(keepends=True), 0
    total = sum(map(len, lines))
    pieces: list[list[bytes]] = [[] for _ in range(PIECES)]
    for line in lines:
        pieces[begin * PIECES // total].append(line)
        begin += len(line)
    for number, piece in enumerate(pieces):
        if piece:
            yield Document(f"{number:03d}", number / PIECES, b"".join(piece).decode())


def _describe(options: DataOptions, found: list[Document]) -> dict[str, Any]:
    """What a run's manifest says of its data."""
    vocabulary = [options.vocabulary, options.vocabulary_size if options.vocabulary == "bpe" else None]
    contents = {document.name: hashlib.sha256(document.text.encode()).hexdigest() for document in found}
    standard = options.data is None
    return {
        "name": "Python standard library" if standard else Path(options.data or "").name,
        "origin": f"source text of Python {sysconfig.get_python_version()}" if standard else "own text",
        "documents": len(found),
        "bytes": sum(len(document.text.encode()) for document in found),
        "fingerprint": fingerprint([contents, vocabulary]),
    }


def _write(options: DataOptions, found: list[Document], path: Path) -> None:
    training = (document.text for document in found if document.role in ("first", "second"))
    vocabulary: Vocabulary = Bytes()
    if options.vocabulary == "bpe":
        say(f"learning {options.vocabulary_size} byte pairs")
        vocabulary = BytePairs.learned(training, options.vocabulary_size)
    separator = np.array([SEPARATOR], dtype=np.uint16)
    tokens, rates = {}, []
    for role in ROLES:
        texts = [document.text for document in found if document.role == role]
        parts = [part.astype(np.uint16) for text in texts for part in (vocabulary.encode(text), separator)]
        tokens[role] = np.concatenate(parts or [separator])
        rates.append(sum(len(text.encode()) + 1 for text in texts) / len(tokens[role]))
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        arrays: dict[str, Any] = {"vocabulary": vocabulary.header(), "bytes_per_token": rates, **tokens}
        np.savez(file, **arrays)
