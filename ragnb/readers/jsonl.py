"""One JSON object a line, read byte by byte so that one bad line costs one line.

A scanner of whole files loses the file to one bad byte and turns a number beside a text into text; a parser a
line keeps every other line and every type, and is the faster way to Python objects.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

from ragnb.errors import RagnbError, place
from ragnb.files.document import Document, likely_encoding
from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import Raw, clean_text, from_records

LONGEST_LINE = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


def read(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read the records; bad lines are listed in the report, or raise where `strict`.

    A file that begins as a JSON list, and in which lines are no records, is read as that list.

    Raises
    ------
    RagnbError
        For the first bad line where `strict`; if no more lines are good than bad.
    """
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    bad: list[tuple[int, str]] = []
    replaced = 0
    hint, listed = "", None
    with _stream(document) as stream:
        for number, line in _lines(stream):
            listed = line is not None and line.startswith(b"[") if listed is None else listed
            record, why, surrogates = _record(line)
            if record is not None:
                records.append(record)
                lines.append(number)
                replaced += surrogates
                continue
            bad.append((number, why))
            if strict:
                break
            hint = hint or (likely_encoding(line) if line and "UTF-8" in why else "")
    if listed and len(bad) >= len(records):
        from ragnb.readers import table

        with suppress(RagnbError):
            return table.read_json(document, report, strict)
    judge(document, report, bad, len(records), replaced, strict, hint)
    return Raw(from_records(records), "jsonl", str(document.path), lines)


def judge(
    document: Document,
    report: Lossy,
    bad: list[tuple[int, str]],
    good: int,
    replaced: int,
    strict: bool,
    hint: str = "",
) -> None:
    """Put bad lines and replaced surrogates into the report, or raise as `read` does."""
    if bad and strict:
        raise RagnbError(f"{place(document.path, bad[0][0])}{bad[0][1]}, expected one JSON object")
    if not good and not bad:
        raise RagnbError(f"{place(document.path)}the file is empty")
    if len(bad) >= good:
        number, why = bad[0]
        step = hint or "a JSON file of another form is format='json'"
        raise RagnbError(
            f"{place(document.path, number)}{why}; {len(bad)} of {len(bad) + good} lines hold no record; {step}"
        )
    report.bad_lines(bad)
    report.add("unparsed", None, "lone surrogates, replaced by U+FFFD", replaced)


def lines_of(data: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbers and lines of some bytes, as they are read from a file."""
    return _lines(io.BytesIO(data))


def _stream(document: Document) -> Any:
    if document.is_utf8:
        return document.open()
    return io.BytesIO(document.text().encode("utf-8", "surrogatepass"))


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Yield line numbers and lines that hold something; None for a line over the limit, which is skipped."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(_BOM)
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            yield number, None
        elif stripped := line.strip():
            yield number, stripped


def _record(line: bytes | None) -> tuple[dict[str, Any] | None, str, int]:
    """Return the object of a line, or why there is none, and how many lone surrogates were replaced."""
    from pydantic_core import from_json

    if line is None:
        return None, f"longer than {LONGEST_LINE >> 20} MB", 0
    surrogates = 0
    try:
        value = from_json(line)
    except ValueError:
        value, why, surrogates = _slowly(line)
        if why:
            return None, why, 0
    if not isinstance(value, dict):
        return None, f"found {type(value).__name__}", 0
    return value, "", surrogates


def _slowly(line: bytes) -> tuple[Any, str, int]:
    """Parse what the fast parser refuses: lone surrogates and deep nesting; else say what is wrong."""
    try:
        text = line.decode("utf-8")
        value, n = clean_text(json.loads(text, parse_constant=_constant))
    except UnicodeDecodeError as error:
        return None, f"byte {error.start} is not UTF-8", 0
    except json.JSONDecodeError as error:
        return None, f"no JSON at character {error.pos + 1} ({error.msg})", 0
    except (ValueError, RecursionError) as error:
        return None, f"no JSON that can be read ({str(error)[:80]})", 0
    return value, "", n


def _constant(word: str) -> float:
    return math.nan if word == "NaN" else float(word)
