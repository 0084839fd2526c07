"""One guard around what reads the files of other tools: damage is told in a sentence, never as a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ragnb.errors import MissingExtraError, RagnbError, place

LONGEST_MESSAGE = 300  # characters of what a library says of a damaged file


@contextmanager
def told_in_words(file: object = None) -> Iterator[None]:
    """Turn whatever a damaged or too large file raises into an error with its name and the next step.

    Examples
    --------
    >>> with told_in_words("a.json"):
    ...     int("high")
    Traceback (most recent call last):
    ragnb.errors.RagnbError: a.json: is damaged or not what its tool writes (ValueError: invalid literal for int()
    with base 10: 'high'); save it again with the tool, or pass its samples as a table
    """
    try:
        yield
    except RagnbError as error:
        if len(str(error)) <= 10 * LONGEST_MESSAGE:
            raise
        raise RagnbError(_cut(error, 10 * LONGEST_MESSAGE)) from None
    except (OSError, MissingExtraError):
        raise  # the file itself: missing, not permitted; or the package that reads it
    except MemoryError:
        raise RagnbError(
            f"{place(file)}needs more memory than there is; split the file, or read a part of it"
        ) from None
    except Exception as error:
        raise RagnbError(
            f"{place(file)}is damaged or not what its tool writes ({type(error).__name__}: "
            f"{_cut(error, LONGEST_MESSAGE)}); save it again with the tool, or pass its samples as a table"
        ) from error


def _cut(error: BaseException, longest: int) -> str:
    """Return what an error says in at most so many characters."""
    said = str(error)
    return said if len(said) <= longest else f"{said[: longest - 1]}…"
