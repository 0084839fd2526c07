"""One guard around what reads the files of other tools: damage is told in a sentence, never as a traceback.

A record whose damage breaks the reading of a layout is lost and counted, with its place; the others are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from ragnb.errors import MissingExtraError, RagnbError, place
from ragnb.readers.raw import Lossy, Raw

Told = TypeVar("Told")
LONGEST_MESSAGE = 300  # characters of what a library says of a damaged file
# What is not damage of a record: what ragnb says itself, the file, the machine.
_NO_DAMAGE = (RagnbError, OSError, MemoryError, MissingExtraError)


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
        # Our own message may quote names from a damaged file, which can be of any length.
        longest = 10 * LONGEST_MESSAGE
        if len(str(error)) <= longest:
            raise
        raise RagnbError(_cut(error, longest)) from None
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
    message = str(error)
    if len(message) <= longest:
        return message
    return f"{message[: longest - 1]}…"


def record_by_record(
    raw: Raw,
    report: Lossy,
    origin: MutableMapping[str, object],
    read: Callable[[Raw, Lossy], Told],
) -> tuple[Raw, Told]:
    """Read a table; where it cannot be read whole, leave out and count the records that cannot be read alone.

    Parameters
    ----------
    raw : Raw
        Stays as it is.
    report : Lossy
        Gets what `read` reports, and a ``bad_line`` for each record that is lost.
    origin : mutable mapping
        Its ``rows`` and ``damaged`` are corrected.
    read : callable
        Changes the table that it gets.

    Returns
    -------
    tuple of Raw and what `read` returns

    Examples
    --------
    >>> raw, report, origin = Raw({"n": ["1", [2]]}, "json", "a.json"), Lossy(), {"rows": 2, "damaged": 0}
    >>> whole, _ = record_by_record(raw, report, origin, lambda raw, _: [int(n) for n in raw.columns["n"]])
    >>> whole.columns, origin, report.rows[0]["detail"][:35]
    ({'n': ['1']}, {'rows': 1, 'damaged': 1}, 'a.json, row 2: the record is damage')
    """
    rows = range(len(raw))
    lost = Lossy()
    try:
        reading = _read_rows(raw, rows, read)
    except _NO_DAMAGE:
        raise
    except Exception as error:
        damage = _damaged(raw, rows, read)
        # Where every record is damaged, or none is on its own, the records are not what is wrong.
        if not 0 < len(damage) < len(raw):
            raise error
        part = replace(raw, columns=dict(raw.columns))
        part.lose(damage, damage, lost)
        reading = _read_rows(part, range(len(part)), read)
    report.rows += [*lost.rows, *reading.report.rows]
    damaged = lost.damaged + reading.report.damaged
    if damaged:
        report.damaged += damaged
        origin["rows"] = len(raw) - damaged
        origin["damaged"] = report.damaged
    return reading.table, reading.detail


class _RowsRead(NamedTuple, Generic[Told]):
    """A table as it is read, what its reader returns, and what it reports."""

    table: Raw
    detail: Told
    report: Lossy


def _read_rows(
    raw: Raw, rows: Sequence[int], read: Callable[[Raw, Lossy], Told]
) -> _RowsRead[Told]:
    """Read some rows of a table in a copy of their own, and report apart: the reading may break half-way."""
    part = replace(
        raw,
        columns=dict(raw.columns),
        scales={name: dict(scale) for name, scale in raw.scales.items()},
        verdicts=dict(raw.verdicts),
        spans=dict(raw.spans),
        facts=list(raw.facts),
        graded=set(raw.graded),
    )
    if len(rows) < len(raw):
        part.keep(rows)
    report = Lossy()
    detail = read(part, report)
    return _RowsRead(part, detail, report)


def _damaged(raw: Raw, rows: Sequence[int], read: Callable[[Raw, Lossy], Told]) -> dict[int, str]:
    """Return the rows that cannot be read alone, and why; halves that can be read are not looked into."""
    try:
        _read_rows(raw, rows, read)
    except RagnbError:
        if len(rows) > 1:
            return _halves(raw, rows, read)
        return {}  # a part of a table may lack what the whole one has
    except (OSError, MemoryError):
        raise
    except Exception as error:
        if len(rows) > 1:
            return _halves(raw, rows, read)
        return {rows[0]: f"{type(error).__name__}: {_cut(error, LONGEST_MESSAGE)}"}
    return {}


def _halves(raw: Raw, rows: Sequence[int], read: Callable[[Raw, Lossy], Told]) -> dict[int, str]:
    """Return the damaged rows of both halves of some rows."""
    middle = len(rows) // 2
    return _damaged(raw, rows[:middle], read) | _damaged(raw, rows[middle:], read)
