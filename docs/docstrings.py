"""Docstrings of the suite as reStructuredText.

They are written to be read in the source: plain text, code in single backticks, equations and tables indented,
doctests, lists, and sections such as `Attributes:` with one `name: meaning` per entry. Characters that reStructuredText
would take for markup, as in |x|, mean themselves.
"""

import re
from collections.abc import Iterator
from itertools import groupby

SECTION = re.compile(r"[A-Z][a-z]+:")
ITEM = re.compile(r"(-|\d+\.) ")


def as_rst(lines: list[str]) -> Iterator[str]:
    """The lines of a docstring, with what is indented as literal text."""
    blocks = [list(block) for blank, block in groupby(lines, key=lambda line: not line.strip()) if not blank]
    for block in blocks:
        first, *rest = block
        if first.lstrip().startswith(">>>"):
            yield from (line.strip() if line.startswith(" ") else line for line in block)
        elif SECTION.fullmatch(first.strip()) and rest:
            yield from _section(first.strip(), rest)
        elif ITEM.match(first):
            yield from map(escaped, block)
        else:
            yield from _paragraphs(block)
        yield ""


def _section(name: str, entries: list[str]) -> Iterator[str]:
    """`name: meaning` entries, which may run over several lines, as a list."""
    yield from (f"**{name}**", "")
    margin = min(len(line) - len(line.lstrip()) for line in entries)
    for line in entries:
        begins = len(line) - len(line.lstrip()) == margin
        word, colon, meaning = line.strip().partition(": ")
        if begins and colon:
            yield f"- ``{word}``: {escaped(meaning)}"
        else:
            yield f"{'- ' if begins else '  '}{escaped(line.strip())}"


def _paragraphs(block: list[str]) -> Iterator[str]:
    for indented, part in groupby(block, key=lambda line: line.startswith("  ")):
        if indented:
            yield from ("", "::", "", *(f"    {line}" for line in part), "")
        else:
            yield from map(escaped, part)


def escaped(text: str) -> str:
    """Text in which only backticks are markup.

    >>> print(escaped("|x|_1 of `a*b`, and 2*n_"))
    \\|x\\|\\_1 of `a*b`, and 2\\*n\\_
    """
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\\*|_])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)
