"""Lines of JSON → a Polars frame, by a scanner of whole blocks where they are clean.

The scanner loses a block to one bad byte and turns half a surrogate pair into NUL. So a block that it does not
take, or that holds the escape of a surrogate, is read line by line, and its good lines are scanned again. The
scanner is told the types: it refuses a value of another one, which its own inference would make text in silence.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from mmap import mmap
from typing import IO, TYPE_CHECKING, Any

from ragnb.readers import jsonl

if TYPE_CHECKING:
    import polars as pl

Bytes = bytes | mmap
BLOCK = 2 << 20
_SURROGATE = re.compile(rb"\\u[dD]")
_KEYS = r'"[^"\\]*"\s*:|\\[^"\\]*"\s*:|[{}]'


@dataclass
class Scan:
    """One pass over the lines of a file: the type of each key, and the lines that hold no record.

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
    """

    data: Bytes
    file: IO[bytes] | None
    schema: Mapping[str, Any]
    made: Sequence[pl.Expr] = ()
    tally: jsonl.Tally = field(default_factory=jsonl.Tally)

    def frame(self) -> pl.DataFrame | None:
        """Return the records; None where a value is not of its key's type, or is not what is made of it.

        Raises
        ------
        RagnbError
            For a key that a record holds twice.
        """
        import polars as pl

        whole = self._clean(self.data, self.file)
        grown = self.file is not None and os.fstat(self.file.fileno()).st_size != len(self.data)
        if whole is not None and not grown:
            for line, block in self._blocks():
                check_keys(block, line, self.tally)
            self.tally.good = len(whole)
            return whole
        parts: list[pl.DataFrame] = []
        for line, block in self._blocks():
            part = self._clean(block)
            if part is not None:
                check_keys(block, line, self.tally)
                self.tally.good += len(part)
            else:
                part = self._scanned(self._mended(block, line))
            if part is None:
                return None
            parts.append(part)
        return pl.concat(parts)

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield pieces of whole lines, each with the number of its first line."""
        start, line = 0, 1
        while start < len(self.data):
            end = self.data.find(b"\n", start + BLOCK) + 1 or len(self.data)
            block = self.data[start:end]
            yield line, block
            start, line = end, line + block.count(b"\n")

    def _clean(self, block: Bytes, file: IO[bytes] | None = None) -> pl.DataFrame | None:
        return None if has_surrogate(block) or has_long_line(block) else self._scanned(file or bytes(block))

    def _scanned(self, block: bytes | IO[bytes]) -> pl.DataFrame | None:
        import polars as pl

        try:
            records = pl.scan_ndjson(block, schema=dict(self.schema))
            return records.with_columns(self.made).collect(engine="streaming")
        except (pl.exceptions.PolarsError, ValueError):
            return None

    def _mended(self, block: bytes, first: int) -> bytes:
        """Return the lines that hold a record, in a form that the scanner takes; note the others."""
        good = []
        for number, line in jsonl.lines_of(block):
            record = self.tally.take(first + number - 1, line)
            if record is None:
                continue
            plain = line is not None and not _SURROGATE.search(line) and b"NaN" not in line
            good.append(line if plain and line is not None else _written(record))
        return b"\n".join(good)


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


def has_surrogate(data: Bytes) -> bool:
    """Whether the escape of half a surrogate pair may stand in the lines, which scanners turn into NUL."""
    return _SURROGATE.search(data) is not None


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
