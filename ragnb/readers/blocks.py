"""Lines of JSON → a Polars frame, by a scanner of whole blocks where they are clean.

The scanner loses a block to one bad byte and turns half a surrogate pair into NUL. So a block that it does not
take, or that holds the escape of a surrogate, is read line by line, and its good lines are scanned again. The
scanner is told the types: it refuses a value of another one, which its own inference would make text in silence.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from mmap import mmap
from typing import IO, TYPE_CHECKING, Any

from ragnb.readers import jsonl

if TYPE_CHECKING:
    import polars as pl

Bytes = bytes | mmap
BLOCK = 2 << 20
_SURROGATE = re.compile(rb"\\u[dD]")
_KEYS = r'"[^"\\]*"\s*:|\\[^"\\]*"\s*:|[{}]'


def records(
    data: Bytes, file: IO[bytes] | None, schema: Mapping[str, Any], made: Sequence[pl.Expr], tally: jsonl.Tally
) -> pl.DataFrame | None:
    """Return the records of lines; None where a value is not of its key's type, or is not what is made of it.

    Parameters
    ----------
    data : bytes
    file : open file, or None
        The file that holds these bytes and no others; it is scanned in their place.
    schema : mapping of key to Polars type
    made : expressions
        What takes the place of a key as it is scanned.
    tally : Tally
        What becomes of the lines.

    Raises
    ------
    RagnbError
        For a key that a record holds twice.
    """
    import polars as pl

    def scanned(block: bytes | IO[bytes]) -> pl.DataFrame | None:
        try:
            return pl.scan_ndjson(block, schema=dict(schema)).with_columns(made).collect(engine="streaming")
        except (pl.exceptions.PolarsError, ValueError):
            return None

    def pieces() -> Iterator[tuple[int, bytes]]:
        start, line = 0, 1
        while start < len(data):
            end = data.find(b"\n", start + BLOCK) + 1 or len(data)
            yield line, data[start:end]
            start, line = end, line + data[start:end].count(b"\n")

    def mended(block: bytes, first: int) -> pl.DataFrame | None:
        """Scan the lines that hold a record, in a form that the scanner takes; note the others."""
        good = []
        for number, line in jsonl.lines_of(block):
            record = tally.take(first + number - 1, line)
            if record is not None and line is not None:
                plain = not _SURROGATE.search(line) and b"NaN" not in line
                good.append(line if plain else _written(record))
        return scanned(b"\n".join(good))

    whole = None if _is_odd(data) else scanned(file or bytes(data))
    if whole is not None and (file is None or os.fstat(file.fileno()).st_size == len(data)):
        for line, block in pieces():
            check_keys(block, line, tally)
        tally.good = len(whole)
        return whole
    parts: list[pl.DataFrame] = []
    for part in in_parts(pieces(), scanned, mended, tally):
        if part is None:
            return None
        parts.append(part)
    return pl.concat(parts)


def in_parts(
    pieces: Iterable[tuple[int, bytes]], quick: Callable[[bytes], pl.DataFrame | None],
    slow: Callable[[bytes, int], Any], tally: jsonl.Tally,
) -> Iterator[Any]:  # fmt: skip
    """Yield what a scanner makes of pieces of whole lines, each with its first line; `slow` takes the odd ones."""
    for line, block in pieces:
        part = None if _is_odd(block) else quick(block)
        if part is None:
            yield slow(block, line)
        else:
            check_keys(block, line, tally)
            tally.good += len(part)
            yield part


def check_keys(block: bytes, first: int, tally: jsonl.Tally) -> None:
    """Refuse a key that a record holds twice, in lines that a scanner took: it keeps one of the two in silence.

    Lines with the same keys and braces in the same order are alike, so that one of each kind is looked at.

    Raises
    ------
    RagnbError
    """
    import polars as pl

    lines = block.split(b"\n")
    keys = pl.Series("keys", lines).cast(pl.String).to_frame().lazy().select(pl.col("keys").str.extract_all(_KEYS))
    kinds = keys.with_row_index("at").group_by(pl.col("keys").list.join("")).agg(pl.col("at").min())
    for at in sorted(kinds.collect(engine="streaming")["at"].to_list()):
        record = jsonl._record(lines[at].strip())[0]
        if record is not None:
            tally.refuse_repeated(first + at, lines[at], record)


def _written(record: Any) -> bytes:
    return json.dumps(_without_nan(record), ensure_ascii=False).encode("utf-8")


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and value != value else value


def _is_odd(data: Bytes) -> bool:
    """Whether a scanner cannot be trusted with lines: it turns half a surrogate pair into NUL."""
    return _SURROGATE.search(data) is not None or has_long_line(data)


def has_long_line(data: Bytes) -> bool:
    """Whether a line is longer than the reader takes, looked for by leaps.

    Examples
    --------
    >>> has_long_line(b"a" * (jsonl.LONGEST_LINE + 1)), has_long_line(b"a\\n" * 9)
    (True, False)
    """
    start = 0
    while start + jsonl.LONGEST_LINE < len(data):
        end = data.rfind(b"\n", start, start + jsonl.LONGEST_LINE + 1)
        if end < 0:
            return True
        start = end + 1
    return False
