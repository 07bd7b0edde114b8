"""The one exception for mistakes that a person can mend, and the word they may have meant."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class UserError(Exception):
    """A wrong flag, an unusable file, a full disk: shown as one sentence, without a traceback.

    The message says what was expected, what came and what to do. Commands print it and exit with 2.
    """


class Stopped(BaseException):
    """A signal came that nothing waits for: everything unwinds, and the process ends with `status`.

    No `KeyboardInterrupt`, which libraries catch, and no `Exception`, which mends nothing here.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.status = 128 + number


@contextmanager
def readable(path: str | Path, remedy: str = "it is damaged: fetch it again") -> Iterator[None]:
    """Whatever a file from elsewhere makes its parser raise within the block becomes one sentence that names it.

    >>> with readable("flow.h5"):
    ...     [].pop()
    Traceback (most recent call last):
    lab.errors.UserError: flow.h5 cannot be read (pop from empty list); it is damaged: fetch it again.
    """
    try:
        if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
            raise UserError(f"{path} is a pipe or a device, which would be waited for; give a file.")
        yield
    except UserError:
        raise
    except Exception as error:  # parsers have no exception in common
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{path} cannot be read ({reason[:200]}); {remedy}.") from error


def nearest(word: str, choices: Iterable[str]) -> str:
    """` (did you mean X?)` where something is close enough, otherwise nothing.

    >>> nearest("mon", ["mno", "fno"]), nearest("zebra", ["mno", "fno"])
    (' (did you mean mno?)', '')
    """
    close = difflib.get_close_matches(word, [choice for choice in choices if choice], n=3, cutoff=0.5)
    # Of equally close words the one with the same letters: a transposition is the commonest slip.
    best = max(close, key=lambda choice: sorted(choice) == sorted(word), default=None)
    return f" (did you mean {best}?)" if best else ""
