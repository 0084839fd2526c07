"""JSON Lines, read in blocks, so that a bad line loses only itself.

`read` makes Python objects of the lines, with every type as it is. `frames` scans blocks into Polars frames, which
is quicker. The scanner loses a block to one bad byte, turns half a surrogate pair into NUL, and of a key given
twice keeps one value: so a block that it does not take, or that holds the escape of a surrogate, is read line by
line and its good lines are scanned again, and the keys of every block are looked at.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from ragnb.errors import RagnbError, place
from ragnb.polars import pl
from ragnb.readers.cells import as_text
from ragnb.readers.document import Document, likely_encoding
from ragnb.readers.raw import Lossy, Raw, absent, clean_text, from_records

LONGEST_LINE = 16 * 1024 * 1024
LISTED_LINES = 100  # by number; the rest are counted
BLOCK = 1 << 24
_LOOKED_AT, _MOST_PLACES = 1 << 20, 100  # bytes of a bad line, and places in it, so that none takes long
_FIRST_KEY = re.compile(r'\{\s*"[^"\\]*"\s*:')
_SPACED_COLON = re.compile(rb'"\s+:')
_TOKEN = re.compile(r'(?P<key>"[^"\\]*(?:\\.[^"\\]*)*")\s*:|"[^"\\]*(?:\\.[^"\\]*)*"|[{}]', re.DOTALL)
_KEYS = r'"[^"\\]*"\s*:|\\[^"\\]*"\s*:|[{}]'
_SURROGATE = re.compile(rb"\\u[dD]")


@dataclass
class Tally:
    """The counts of good and bad lines of one file.

    Attributes
    ----------
    path : Path or None
    good : int
        Records read.
    bad : list of (line, reason)
        Lines that hold no record, or more than one.
    lost : int
        Records that the bad lines held, as far as can be inferred.
    replaced : int
        Records read with lone surrogates replaced.
    hint : str
        The encoding that the first undecodable line may be in.
    """

    path: Path | None = None
    good: int = 0
    bad: list[tuple[int, str]] = field(default_factory=list)
    lost: int = 0
    replaced: int = 0
    hint: str = ""

    def take(self, number: int, line: bytes | None) -> dict[str, Any] | None:
        """Count a line and return its record; None for a bad line.

        Raises
        ------
        RagnbError
            Where an object of the record holds a key twice.
        """
        record, why, replaced = _record(line)
        if record is None or line is None:
            n = 1 if line is None else records_in(line)
            self.lost += n
            self.bad.append((number, f"{n} records on one line" if n > 1 else why))
            if line and "UTF-8" in why:
                self.hint = self.hint or likely_encoding(line)
            return None
        self.refuse_repeated(number, line, record)
        self.good += 1
        self.replaced += replaced
        return record

    def refuse_repeated(self, number: int, line: bytes, record: Any) -> None:
        """Refuse a record with a repeated key: parsers silently use the last value."""
        found = repeated_key(line, record)
        if found:
            raise RagnbError(
                f"{place(self.path, number, found[0])}appears twice in one record; keep one of the two"
            )


def read(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read the records; bad lines are listed in the report, or raise where `strict`.

    Raises
    ------
    RagnbError
        For the first bad line where `strict`; if no more lines are good than bad; for a key that a record holds
        twice.
    """
    tally = Tally(document.path)
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in (one for first, block in blocks(document) for one in lines_of(block, first)):
        record = tally.take(number, line)
        if record is not None:
            records.append(record)
            lines.append(number)
        elif strict:
            break
    judge(tally, report, strict)
    return Raw(from_records(records), "jsonl", str(document.path), lines)


def judge(tally: Tally, report: Lossy, strict: bool) -> None:
    """Put bad lines and replaced surrogates into the report, or raise as `read` does."""
    bad, good = tally.bad, tally.good
    if bad and strict:
        raise RagnbError(f"{place(tally.path, bad[0][0])}{bad[0][1]}, expected one JSON object")
    if not good and not bad:
        raise RagnbError(f"{place(tally.path)}the file is empty")
    if len(bad) >= good:
        number, why = bad[0]
        step = tally.hint or "a JSON file of another form is format='json'"
        raise RagnbError(
            f"{place(tally.path, number)}{why}; {len(bad)} of {len(bad) + good} lines contain no record; {step}"
        )
    for number, why in bad[:LISTED_LINES]:
        report.add("bad_line", None, f"line {number}: {why}")
    report.add("bad_line", None, "further bad lines", len(bad[LISTED_LINES:]))
    report.add("unparsed", None, "records with lone surrogates, replaced by U+FFFD", tally.replaced)
    report.expect(good + tally.lost, tally.replaced + tally.lost)


def records_in(line: bytes) -> int:
    """Return how many records a line that is no record holds: glued together, cut short, or both.

    A record is taken to begin where another one ends, and where the first key of the line stands again.

    Examples
    --------
    >>> records_in(b'{"q": 1}{"q": 2} {"q": 3}'), records_in(b'{"q": "cut sho{"q": 2}'), records_in(b'{"q": "cut')
    (3, 2, 1)
    >>> records_in(b'{"id": 1, "chunks": [{"id": 2}, {"id": 3}], "answer": "cut')
    1
    """
    text = line[:_LOOKED_AT].decode("utf-8", "replace")
    first = _FIRST_KEY.match(text)
    start = re.compile(rf"{re.escape(first[0])}|(?<=\}})\s*\{{" if first else r"(?<=\})\s*\{")
    return 1 + sum(_begins_record(text, place.start()) for place in islice(start.finditer(text, 1), _MOST_PLACES))


def _begins_record(text: str, start: int) -> bool:
    """Whether a record begins in the midst of a line: after what cannot stand before a nested object, or whole."""
    if text[max(start - 20, 0) : start].rstrip()[-1:] not in (",", ":", "[", ""):
        return True
    with suppress(ValueError, RecursionError):
        end = json.JSONDecoder().raw_decode(text, start)[1]
        return text[end:].lstrip()[:1] in ("", "{")
    return False


def repeated_key(text: bytes, value: Any) -> tuple[str, int] | None:
    """Return the first key that an object holds twice, and the character where it stands again; None for none.

    Parameters
    ----------
    text : bytes
        JSON in UTF-8.
    value
        What a parser made of it, the last one of equal keys taken.

    Examples
    --------
    >>> repeated_key(b'{"a": 1, "b": {"a": 2}}', {"a": 1, "b": {"a": 2}}) is None
    True
    >>> repeated_key(b'{"a": 1, "a": 2}', {"a": 2})
    ('a', 9)
    """
    named = text.count(b'":')
    if b" :" in text or b"\t" in text or b"\r" in text or b"\n" in text:
        named += sum(1 for _ in _SPACED_COLON.finditer(text))
    # Every key has such a colon; texts may hold more of them, so that only equal counts prove anything.
    with suppress(RecursionError):
        if named == (_key_count(value) if isinstance(value, dict | list) else 0):
            return None
    return _second_of_two(text.decode("utf-8", "replace"))


def _key_count(value: Any) -> int:
    n = 0
    if type(value) is dict:
        n, value = len(value), value.values()
    for item in value:
        if type(item) is dict or type(item) is list:
            n += _key_count(item)
    return n


def _second_of_two(text: str) -> tuple[str, int] | None:
    """Return the first key that stands again in its object, and where, in what is JSON."""
    open_keys: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            open_keys.append(set())
        elif token[0] == "}":
            open_keys.pop()
        elif token["key"] is not None:
            key = json.loads(token["key"], strict=False)
            if key in open_keys[-1]:
                return key, token.start()
            open_keys[-1].add(key)
    return None


def blocks(document: Document) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of whole lines, each with the number of its first line; a line over the limit is cut short."""
    line = 1
    text = None if document.is_utf8 else io.BytesIO(document.text().encode("utf-8", "surrogatepass"))
    with document.open() if text is None else text as stream:
        while block := stream.read(BLOCK):
            rest = stream.readline(LONGEST_LINE + 2)
            while rest[LONGEST_LINE:] and not rest.endswith(b"\n") and (more := stream.readline(LONGEST_LINE)):
                rest = rest[: LONGEST_LINE + 1] + more[-1:]
            block = (block.removeprefix(b"\xef\xbb\xbf") if line == 1 else block) + rest
            yield line, block
            line += block.count(b"\n")


def lines_of(block: bytes, first: int = 1) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbers and lines that hold something; None for a line over the limit."""
    for number, line in enumerate(block.split(b"\n"), first):
        if stripped := line.strip():
            yield number, stripped if len(line) <= LONGEST_LINE else None


def frames(document: Document, report: Lossy) -> Iterator[pl.DataFrame]:
    """Yield the records block by block as Polars frames; bad lines are listed once all is read.

    Each key's type is inferred from all its values in a block; values of several types are text.
    """
    tally = Tally(document.path)
    for first, block in blocks(document):
        frame = None
        if not _SURROGATE.search(block) and all(len(line) <= LONGEST_LINE for line in block.split(b"\n")):
            frame = _scanned(block)
        if frame is not None:
            _refuse_repeated(block, first, tally)
            tally.good += len(frame)
        else:
            taken = [tally.take(number, line) for number, line in lines_of(block, first)]
            records = [record for record in taken if record is not None]
            mode: Any = "constants" if b"Infinity" in block else "null"  # which the scanner does not take
            frame = _scanned(b"\n".join(to_json(record, inf_nan_mode=mode) for record in records))
            if frame is None:
                frame = pl.DataFrame([series(name, cells) for name, cells in from_records(records).items()])
        if len(frame):
            yield frame
    judge(tally, report, False)


def _scanned(block: bytes) -> pl.DataFrame | None:
    """Return the records by the scanner; None where it does not take them."""
    with suppress(pl.exceptions.PolarsError, ValueError):
        return pl.read_ndjson(block, infer_schema_length=None)
    return None


def series(name: str, cells: Sequence[Any]) -> pl.Series:
    """Return cells as a Polars series; cells of several types become text.

    Examples
    --------
    >>> series("a", [1, "b"]).to_list(), series("a", [1, 2.5, float("nan")]).to_list()
    (['1', 'b'], [1.0, 2.5, None])
    """
    values = [None if absent(cell) else cell for cell in cells]
    kinds = set(map(type, values)) - {type(None)}
    with suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(name, values, dtype=pl.Float64 if kinds == {int, float} else None)
    return pl.Series(name, [as_text(cell) for cell in values], dtype=pl.String)


def _refuse_repeated(block: bytes, first: int, tally: Tally) -> None:
    """Refuse a record of a block with a repeated key.

    Lines with the same keys and braces in the same order are alike, so that one of each kind is looked at.
    """
    lines = block.split(b"\n")
    texts = pl.Series("keys", lines).cast(pl.String, strict=False).to_frame().lazy()
    kinds = texts.select(pl.col("keys").str.extract_all(_KEYS)).with_row_index("at")
    kinds = kinds.group_by(pl.col("keys").list.join("")).agg(pl.col("at").min())
    for at in sorted(kinds.collect(engine="streaming")["at"].to_list()):
        if (record := _record(lines[at].strip())[0]) is not None:
            tally.refuse_repeated(first + at, lines[at], record)


def _record(line: bytes | None) -> tuple[dict[str, Any] | None, str, bool]:
    """Return the object of a line, or why there is none, and whether lone surrogates in it were replaced."""
    if line is None:
        return None, f"longer than {LONGEST_LINE >> 20} MB", False
    replaced = False
    try:
        value = from_json(line)
    except ValueError:
        try:  # again, for lone surrogates and deep nesting
            parsed = json.loads(line.decode("utf-8"), parse_constant=float)
            value = clean_text(parsed)
            replaced = value != parsed
        except UnicodeDecodeError as error:
            return None, f"byte {error.start} is not UTF-8", False
        except json.JSONDecodeError as error:
            return None, f"no JSON at character {error.pos + 1} ({error.msg})", False
        except (ValueError, RecursionError) as error:
            return None, f"no JSON that can be read ({str(error)[:80]})", False
    return (value, "", replaced) if isinstance(value, dict) else (None, f"found {type(value).__name__}", False)
