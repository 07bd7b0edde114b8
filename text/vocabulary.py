"""Tokens: every byte, or byte pairs learned from the training text."""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from lab.errors import UserError

SEPARATOR = 0
"""The token between documents, in either vocabulary."""


class Vocabulary(Protocol):
    """From text to tokens and back."""

    @property
    def size(self) -> int:
        """Number of tokens."""

    def encode(self, text: str) -> np.ndarray:
        """The tokens of a text."""

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of some tokens."""

    def header(self) -> Any:
        """What `from_header` makes the vocabulary from again."""


class Bytes:
    """Each byte of the UTF-8 text is a token; 0, which no text contains, separates documents.

    >>> Bytes().encode("né").tolist(), Bytes().decode([110, 195, 169])
    ([110, 195, 169], 'né')
    """

    size = 256

    def encode(self, text: str) -> np.ndarray:
        return np.frombuffer(text.encode(), dtype=np.uint8)

    def decode(self, tokens: Iterable[int]) -> str:
        return bytes(tokens).decode(errors="replace")

    def header(self) -> Any:
        return "bytes"


class BytePairs:
    """A byte-level BPE vocabulary of the `tokenizers` library."""

    def __init__(self, description: str) -> None:
        self._tokenizer = _library().Tokenizer.from_str(description)

    @classmethod
    def learned(cls, texts: Iterable[str], size: int) -> "BytePairs":
        """The vocabulary with the most frequent pairs of some texts."""
        library = _library()
        level = library.pre_tokenizers.ByteLevel
        tokenizer = library.Tokenizer(library.models.BPE())
        tokenizer.pre_tokenizer = level(add_prefix_space=False)
        tokenizer.decoder = library.decoders.ByteLevel()
        trainer = library.trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=level.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer.to_str())

    @property
    def size(self) -> int:
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> np.ndarray:
        return np.array(self._tokenizer.encode(text).ids, dtype=np.uint16)

    def decode(self, tokens: Iterable[int]) -> str:
        return self._tokenizer.decode(list(tokens))

    def header(self) -> Any:
        return self._tokenizer.to_str()


def from_header(header: str) -> Vocabulary:
    """The vocabulary that a weights file or a data set was made with."""
    return Bytes() if header == "bytes" else BytePairs(header)


def _library() -> Any:
    try:
        import tokenizers
    except ModuleNotFoundError as error:
        raise UserError("--vocabulary bpe needs: pip install 'monarch-science[bpe]'") from error
    return tokenizers
