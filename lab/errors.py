"""The one exception for mistakes that a person can mend, and the word they may have meant."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A wrong flag, an unusable file, a full disk: shown as one sentence, without a traceback.

    The message says what was expected, what came and what to do. Commands print it and exit with 2.
    """


def nearest(word: str, choices: Iterable[str]) -> str:
    """` (did you mean X?)` where something is close enough, otherwise nothing.

    >>> nearest("mon", ["mno", "fno"]), nearest("zebra", ["mno", "fno"])
    (' (did you mean mno?)', '')
    """
    close = difflib.get_close_matches(word, [choice for choice in choices if choice], n=3, cutoff=0.5)
    # Of equally close words the one with the same letters: a transposition is the commonest slip.
    best = max(close, key=lambda choice: sorted(choice) == sorted(word), default=None)
    return f" (did you mean {best}?)" if best else ""
