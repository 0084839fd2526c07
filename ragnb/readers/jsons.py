"""Records of JSON and JSON Lines: whole, by sections, by columns, and those of a file that is cut."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain, count, islice
from typing import Any

from ragnb.errors import (
    RagnbError,
    listing,
    place,
)
from ragnb.readers.documents import Document, empty_file
from ragnb.readers.encodings import likely_encoding
from ragnb.readers.evallog import of_inspect
from ragnb.readers.failures import failure_columns
from ragnb.readers.names import meanings, plain
from ragnb.readers.owner import stacked_lists, unlisted
from ragnb.readers.raw import (
    LISTED_LINES,
    Lossy,
    Raw,
    clean_text,
    from_records,
)
from ragnb.readers.rows import check_list, counts_all, is_selection, totals_error
from ragnb.schema import METRICS

LONGEST_LINE = 16 * 1024 * 1024
BLOCK = 1 << 24  # characters of the records that are handed on together: 16 MB
# Bytes of a bad line, and places in it, so that none takes long.
_LOOKED_AT = 1 << 20
_MOST_PLACES = 100  # where a next record is looked for after a broken one
_FIRST_KEY = re.compile(r'\{\s*"[^"\\]*"\s*:')
_TOKEN = re.compile(
    r'(?P<key>"[^"\\]*(?:\\.[^"\\]*)*")\s*:|"[^"\\]*(?:\\.[^"\\]*)*"|[{}]', re.DOTALL
)
_SURROGATE = re.compile(rb"\\u[dD]")
_REPLACED = "records with lone surrogates, replaced by U+FFFD"
_SAMPLE = {"question", "answer"}

# Files of tools without results, by a key of theirs: what they are, and where the results are.
NO_RESULTS = {
    "testRunLink": (
        "the link of DeepEval to a page",
        "the results are in .deepeval/.latest_run_full.json",
    ),
    "test_cases_lookup_map": (
        "the cache of DeepEval",
        "the results are in .deepeval/.latest_run_full.json",
    ),
}


class _Twice(LookupError):
    """A key that an object holds twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _Twice
    return made


# One for all lines: `json.loads` makes a decoder for each call that has a hook.
_DECODER = json.JSONDecoder(parse_constant=float, object_pairs_hook=_object)


def _parsed(text: str) -> Any:
    """Return what JSON holds; `_Twice` is raised for a key twice in an object, of which parsers use the last."""
    return _DECODER.decode(text)


def _second_of_two(document: Document, text: str, line: int = 1) -> RagnbError:
    """Return the refusal of the first key that stands again in its object, in JSON that starts on a line."""
    open_keys: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            open_keys.append(set())
        elif token[0] == "}":
            open_keys.pop()
        elif token["key"] is not None:
            key = json.loads(token["key"], strict=False)
            if key in open_keys[-1]:
                line += text.count("\n", 0, token.start())
                break
            open_keys[-1].add(key)
    return RagnbError(
        f"{place(document.path, line, key)}appears twice in one object; keep one of the two"
    )


def record_blocks(
    document: Document, report: Lossy, strict: bool = False
) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
    """Yield the records of JSON lines, and the line of each, in blocks; bad lines are listed once all is read.

    Raises
    ------
    RagnbError
        For the first bad line where `strict`; if no more lines are good than bad; for a key that a record holds
        twice.
    """
    bad: list[tuple[int, str]] = []
    good = size = lost = replaced = 0
    step = "name a JSON file of another form .json (format='json')"
    numbers = list[int]()
    records = list[dict[str, Any]]()
    for number, line in _lines(document):
        try:
            record, why, marked = _record(line)
        except _Twice:
            raise _second_of_two(document, (line or b"").decode(), number) from None
        if record is not None and line is not None:
            numbers.append(number)
            records.append(record)
            good = good + 1
            size = size + len(line)
            replaced = replaced + marked
            if size > BLOCK:
                yield numbers, records
                numbers = []
                records = []
                size = 0
            continue
        if strict:
            raise RagnbError(f"{place(document.path, number)}{why}, expected one JSON object")
        held = 1 if line is None else records_in(line)
        lost += held
        if line is not None and "UTF-8" in why and "encoding" not in step:
            step = likely_encoding(line)
        bad.append((number, f"{held} records on one line" if held > 1 else why))
    yield numbers, records
    if not good and not bad:
        raise empty_file(document.path)
    if len(bad) >= good:
        number, why = bad[0]
        raise RagnbError(
            f"{place(document.path, number)}{why}; {len(bad)} of {len(bad) + good} lines contain no record; {step}"
        )
    for number, why in bad[:LISTED_LINES]:
        report.add("bad_line", None, f"line {number}: {why}")
    report.add("bad_line", None, "further bad lines", len(bad[LISTED_LINES:]))
    report.add("unparsed", None, _REPLACED, replaced)
    report.expect(good + lost, replaced + lost)


def first_records(document: Document, most: int) -> list[dict[str, Any]]:
    """Return the records among the first lines of JSON lines, to see what they are before all are read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> _ = file.write_text('{"q": 1}\\n{"q": 2}\\n{"q": 3}\\n')
    >>> first_records(Document(file), most=2)
    [{'q': 1}, {'q': 2}]
    """
    records = list[dict[str, Any]]()
    with suppress(_Twice):
        for _, line in islice(_lines(document), most):
            record, _, _ = _record(line)
            if record is not None:
                records.append(record)
    return records


def _lines(document: Document) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbers and lines that hold something; None for a line over the limit."""
    if document.is_utf8:
        opened: Any = document.open()
    else:
        opened = io.BytesIO(document.text().encode("utf-8", "surrogatepass"))
    with opened as stream:
        for number in count(1):
            line = rest = stream.readline(LONGEST_LINE + 1)
            if not line:
                return
            while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
                rest = stream.readline(LONGEST_LINE + 1)
            if stripped := (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip():
                yield number, stripped if len(line.removesuffix(b"\n")) <= LONGEST_LINE else None


def _record(line: bytes | None) -> tuple[dict[str, Any] | None, str, bool]:
    """Return the object of a line, or why there is none, and whether lone surrogates in it were replaced."""
    if line is None:
        return None, f"longer than {LONGEST_LINE >> 20} MB", False
    try:
        value_read = _parsed(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return None, f"byte {error.start} is not UTF-8", False
    except json.JSONDecodeError as error:
        return None, f"no JSON at character {error.pos + 1} ({error.msg})", False
    except (ValueError, RecursionError) as error:
        return None, f"no JSON that can be read ({str(error)[:80]})", False
    if not isinstance(value_read, dict):
        return None, f"found {type(value_read).__name__}", False
    value = clean_text(value_read) if _SURROGATE.search(line) else value_read
    return value, "", value != value_read


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
    return 1 + sum(
        _begins_record(text, place.start())
        for place in islice(start.finditer(text, 1), _MOST_PLACES)
    )


def _begins_record(text: str, start: int) -> bool:
    """Whether a record begins in the midst of a line: after what cannot stand before a nested object, or whole."""
    if text[max(start - 20, 0) : start].rstrip()[-1:] not in (",", ":", "[", ""):
        return True
    with suppress(ValueError, RecursionError):
        end = json.JSONDecoder().raw_decode(text, start)[1]
        return text[end:].lstrip()[:1] in ("", "{")
    return False


def read_lines(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read JSON lines; a file that begins as a JSON list, and is one, as that list."""
    with suppress(RagnbError), document.open() as stream:
        if stream.read(1 << 10).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
            return read_json(document, report, strict)
    blocks = list(record_blocks(document, report, strict))
    lines, records = (list(chain.from_iterable(parts)) for parts in zip(*blocks, strict=True))
    return Raw(from_records(records), "jsonl", str(document.path), lines)


def read_json(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read a list of records, a dict of columns, or a split table (``columns`` and ``data``)."""
    text = document.text()
    if not text.strip():
        raise empty_file(document.path)
    try:
        value = _parsed(text)
    except _Twice:
        raise _second_of_two(document, text) from None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{") and "\n" in text.strip():
            return read_lines(document, report, strict)
        raise RagnbError(
            f"{place(document.path, error.lineno)}is not valid JSON ({error.msg}); write it again if it is cut "
            "off; if each line is a record, name it .jsonl (format='jsonl')"
        ) from error
    except (RecursionError, ValueError) as error:
        raise RagnbError(f"{place(document.path)}is not readable JSON ({error})") from error
    if r"\ud" in text.lower():
        cleaned = clean_text(value)
    else:
        cleaned = value
    lost = list[int]()
    columns = _columns_of(document, cleaned, report, lost, strict)
    rows = list(zip(*columns.values(), strict=True))
    if cleaned == value:
        replaced = 0
    else:
        replaced = sum("\ufffd" in str(row) for row in rows)
    report.add("unparsed", None, _REPLACED, replaced)
    report.expect(len(rows) + len(lost), replaced + len(lost))
    return Raw(columns, "json", str(document.path))


def _shape(cell: Any) -> tuple[Any, ...] | int | None:
    """Return the keys of an object, the length of a list, and None for anything else."""
    if isinstance(cell, dict):
        return tuple(cell)
    if isinstance(cell, list):
        return len(cell)
    return None


def _columns_of(
    document: Document, value: Any, report: Lossy, lost: list[int], strict: bool
) -> dict[str, list[Any]]:
    """Return the columns of a JSON value; `lost` gets the places of what is no record among records."""
    if isinstance(value, dict):
        columns = _split_columns(value)
        if columns is not None:
            return columns
        value = _inside(document, value, report)
    if isinstance(value, list):
        records = _records_only(document, value, report, lost, strict=strict)
        return from_records(records, document.path)
    if isinstance(value, dict) and _holds_columns(value):
        return {
            str(name): list(c.values() if isinstance(c, dict) else c) for name, c in value.items()
        }
    raise _no_table(document, value)


def _split_columns(value: dict[str, Any]) -> dict[str, list[Any]] | None:
    """Return the columns that pandas writes with ``orient="split"``; None for anything else."""
    rows = value.get("data")
    names = value.get("columns")
    if not isinstance(rows, list) or not isinstance(names, list):
        return None
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return None
    return {str(name): [row[i] for row in rows] for i, name in enumerate(names)}


def _inside(document: Document, value: dict[str, Any], report: Lossy) -> Any:
    """Return the records of an object that holds them under a key of its own, else the object itself."""
    rows = value.get("data")
    if isinstance(rows, list) and isinstance(value.get("schema"), dict):
        # pandas, ``orient="table"``
        index = value["schema"].get("primaryKey")
        return [
            {k: v for k, v in row.items() if [k] != index} if isinstance(row, dict) else row
            for row in rows
        ]
    for sign, (what, step) in NO_RESULTS.items():
        if sign in value and "testRunData" not in value:
            raise RagnbError(f"{place(document.path)}is {what} and has no samples; {step}")
    held: Any = value
    if isinstance(value.get("eval"), dict) and isinstance(value.get("samples"), list):
        held = of_inspect(value, value["samples"], report)
    if not isinstance(held, dict):
        return held
    damaged = list[tuple[Any, Any]]()
    records = _records_in(document, _without_damage(held, damaged), report)
    if records is None:
        return _columns_by_section(held) or held
    return next((given for made, given in damaged if made is records), records)


def _records_only(
    document: Document, rows: list[Any], report: Lossy, lost: list[int], *, strict: bool
) -> Any:
    """Return the objects among records; the places of what else there is are lost, and listed."""
    records = _without_damage(rows, [])
    for i, row in enumerate(rows, 1):
        if isinstance(row, dict):
            continue
        if strict or records is rows:
            raise RagnbError(
                f"{document.path}, record {i}: found {type(row).__name__}, expected an object"
            )
        lost.append(i)
        if len(lost) <= LISTED_LINES:
            why = f"found {type(row).__name__}, expected an object"
            report.add("bad_line", None, f"record {i}: {why}")
    report.add("bad_line", None, "further bad lines", len(lost[LISTED_LINES:]))
    return records


def _holds_columns(value: dict[str, Any]) -> bool:
    """Return whether an object holds columns of one length, or objects of the same keys as cells by row."""
    shapes = {_shape(cell) for cell in value.values()}
    shape = shapes.pop() if len(shapes) == 1 else None
    if isinstance(shape, int):
        return True
    return shape is not None and bool(meanings(value) or not meanings(shape))


def _no_table(document: Document, value: Any) -> RagnbError:
    """Return the refusal of a JSON value that is no table: totals, or anything else."""
    if isinstance(value, dict):
        totals = totals_error(document.path, value)
        if totals is not None:
            return totals
        found = f"an object with the keys {listing(value)}"
    else:
        found = type(value).__name__
    return RagnbError(
        f"{place(document.path)}found {found}; expected a list of records (also under a key of its own), an "
        "object of columns of one length, or an object with 'columns' and 'data'"
    )


def _without_damage(value: Any, damaged: list[tuple[Any, Any]]) -> Any:
    """Return lists of records, also in objects, without what is none among them.

    `damaged` gets each such list, as it is made and as it was given.

    Examples
    --------
    >>> _without_damage([{"q": "Who?"}, "cut", {"q": "When?"}], [])
    [{'q': 'Who?'}, {'q': 'When?'}]
    >>> _without_damage({"results": [{"q": "Who?"}, "a", "b"]}, [])
    {'results': [{'q': 'Who?'}, 'a', 'b']}
    """
    if isinstance(value, dict):
        return {key: _without_damage(cell, damaged) for key, cell in value.items()}
    if not isinstance(value, list):
        return value
    records = [row for row in value if isinstance(row, dict)]
    mostly = len(value) / 2 < len(records) < len(value)
    if not mostly or not any(map(_is_sample, records)):
        return value
    damaged.append((records, value))
    return records


def _columns_by_section(value: Mapping[str, Any]) -> dict[str, list[Any]] | None:
    """Return columns that stand in sections, such as inputs and metrics; None where the lists are no columns.

    A metric may be an object that holds, beside its mean, the list of its scores.

    Examples
    --------
    >>> inputs = {"question": ["Who?", "When?"]}
    >>> metrics = {"faithfulness": {"score": 0.5, "individual_scores": [0, 1]}}
    >>> _columns_by_section({"inputs": inputs, "metrics": metrics})
    {'question': ['Who?', 'When?'], 'faithfulness': [0, 1]}
    """
    columns: dict[str, list[Any]] = {}
    sections = [section for section in value.values() if isinstance(section, dict)]
    for section in sections:
        for name, cell in section.items():
            inner = cell.values() if isinstance(cell, dict) else [cell]
            lists = [one for one in inner if isinstance(one, list)]
            if len(lists) != 1 or name in columns:
                return None
            columns[name] = lists[0]
    sizes = {len(cells) for cells in columns.values()}
    are_samples = len(sizes) == 1 and bool(_SAMPLE & meanings(columns).keys())
    if are_samples:
        return columns
    return None


def _records_in(
    document: Document, value: dict[str, Any], report: Lossy, nested: bool = False
) -> list[Any] | None:
    """Return the records that an object holds: itself, those under the one key with samples, or those by id."""
    roles = meanings(value)
    if not nested and isinstance(value.get(roles.get("question", "")), str):
        return [value]
    lists = {
        k: v
        for k, v in value.items()
        if isinstance(v, list) and v and all(isinstance(r, dict) for r in v)
    }
    keys = [key for key, rows in lists.items() if len(lists) == 1 or _is_sample(rows[0])]
    # Each list holds the records of one metric.
    if len(keys) > 1 and all("score" in row for key in keys for row in lists[key]):
        return [{**row, "metric": key} for key in keys for row in lists[key]]
    whole = [key for key in keys if not is_selection(key)]
    # Failures beside all results are among them, else they are the rest of the run.
    if len(whole) == 1:
        parts = [key for key in lists if is_selection(key) and _is_outcome(lists[key][0])]
        records = lists[whole[0]]
        counted = counts_all(value, len(records))
        if counted:
            rest = []
        else:
            rest = unlisted(records, [row for key in parts for row in lists[key]])
        if rest:
            value = {k: v for k, v in value.items() if k not in parts}
            value[whole[0]] = lists[whole[0]] = records + rest
            why = f"records of the same run that {whole[0]!r} does not hold"
            report.add("mapped", None, f"{listing(parts)}: {why}", len(rest))
        keys = whole
    if len(keys) > 1:
        return _of_systems(document, {key: lists[key] for key in keys}, report)
    if keys and {roles[name] for name in _SAMPLE & roles.keys()} <= {*lists}:
        check_list(document.path, value, keys[0], report)
        others = [key for key in value if key != keys[0]]
        report.add("left_out", None, f"keys beside {keys[0]!r}: {listing(others)}", len(others))
        return lists[keys[0]]
    if nested or roles:
        inner = {}
    else:
        inner = {k: v for k, v in value.items() if isinstance(v, dict)}
    if (
        inner
        and len(inner) == len(value)
        and all(_SAMPLE & meanings(record).keys() for record in inner.values())
    ):
        return [{"sample_id": name, **record} for name, record in value.items()]
    found = {name: _records_in(document, one, report, True) for name, one in inner.items()}
    held = {name: records for name, records in found.items() if records}
    if len(held) > 1:
        return _of_systems(document, held, report)
    return next(iter(held.values()), None)


def _is_outcome(record: Mapping[str, Any]) -> bool:
    """Return whether a record says what came of a question: scores or an error, unlike an example of a prompt."""
    scored = METRICS.keys() & meanings(record).keys()
    return bool(scored) or "error" in failure_columns(record).values()


def _is_sample(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a question or an answer, or an id and a score."""
    roles = meanings(record).keys()
    ids = "sample_id" in roles or any(plain(name).endswith("id") for name in record)
    return bool(_SAMPLE & roles or (ids and METRICS.keys() & roles))


def _of_systems(
    document: Document, lists: Mapping[str, list[Any]], report: Lossy
) -> list[dict[str, Any]]:
    """Return lists of records under the names of systems as one; lists of different questions are refused."""
    for name in lists:
        check_list(document.path, lists, name, report)
    records = stacked_lists(lists)
    if records is None:
        raise RagnbError(
            f"{place(document.path)}contains records under {listing(lists)}; keep one of these lists"
        )
    for name, rows in lists.items():
        report.add("mapped", name, "the system of the records under this key", len(rows))
    return records
