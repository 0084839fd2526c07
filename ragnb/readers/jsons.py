"""Records of JSON and JSON Lines: whole, by sections, by columns, and those of a file that is cut."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count, islice
from typing import Any, NamedTuple

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

LONGEST_LINE = 16 * 1024 * 1024  # bytes, unpacked
BLOCK = 1 << 24  # bytes of the lines whose records are yielded together: 16 MB
# A bad line may be 16 MB of braces: only its first bytes and places are searched for further records.
_LOOKED_AT = 1 << 20  # bytes
_MOST_PLACES = 100
# The first key of a line, with which the other records of the file most likely begin, too.
_FIRST_KEY = re.compile(r'\{\s*"[^"\\]*"\s*:')
# A key, any other text, or a brace: texts are matched too, so that what looks like a key inside one is skipped.
_TOKEN = re.compile(
    r'(?P<key>"[^"\\]*(?:\\.[^"\\]*)*")\s*:|"[^"\\]*(?:\\.[^"\\]*)*"|[{}]', re.DOTALL
)
# Only an escape of \ud800 … \udfff can become a lone surrogate: bytes of one are no UTF-8.
_SURROGATE = re.compile(rb"\\u[dD]")
_REPLACED = "records with lone surrogates, replaced by U+FFFD"
# Samples have at least one of these, as a key of each record or as a column.
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
    record = dict(pairs)
    if len(record) < len(pairs):
        raise _Twice
    return record


# One for all lines: `json.loads` makes a decoder for each call that has a hook.
_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _parsed(text: str) -> Any:
    """Return what JSON holds; `_Twice` is raised for a key twice in an object, of which parsers use the last."""
    return _DECODER.decode(text)


def _second_of_two(document: Document, text: str, line: int = 1) -> RagnbError:
    """Return the refusal of the first key that stands again in its object, in JSON that starts on a line."""
    # The decoder's hook knows the keys but no places; the tokens have places.
    open_keys: list[set[str]] = []  # of each object that is open, the outermost first
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            open_keys.append(set())
        elif token[0] == "}":
            open_keys.pop()
        elif token["key"] is not None:
            # Unescaped, as `"\u0061"` and `"a"` are one key.
            key = json.loads(token["key"], strict=False)
            if key in open_keys[-1]:
                line += text.count("\n", 0, token.start())
                break
            open_keys[-1].add(key)
    return RagnbError(
        f"{place(document.path, line, key)}appears twice in one object; keep one of the two"
    )


class _BadLine(NamedTuple):
    """The number of a line that is no record, and why it is none."""

    number: int
    why: str


# What a line holds: a record, or None and why there is none, and whether lone surrogates in it were replaced. Not
# a NamedTuple: to make one for each of a million lines takes a tenth of the time of reading them.
_Line = tuple[dict[str, Any] | None, str, bool]


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
    bad: list[_BadLine] = []
    good = 0  # lines
    lost = 0  # records on bad lines
    replaced = 0  # good records with lone surrogates
    step = "name a JSON file of another form .json (format='json')"
    numbers = list[int]()
    records = list[dict[str, Any]]()
    block_size = 0  # bytes
    for number, line in _lines(document):
        try:
            record, why, was_replaced = _record(line)
        except _Twice:
            raise _second_of_two(document, (line or b"").decode(), number) from None
        if line is not None and record is not None:
            numbers.append(number)
            records.append(record)
            good += 1
            replaced += was_replaced
            block_size += len(line)
            if block_size > BLOCK:
                yield numbers, records
                # New lists: the caller may keep those that were yielded.
                numbers = []
                records = []
                block_size = 0
            continue
        if strict:
            raise RagnbError(f"{place(document.path, number)}{why}, expected one JSON object")
        held = 1 if line is None else records_in(line)
        lost += held
        # The first line that is not UTF-8 tells the encoding of them all.
        if line is not None and "UTF-8" in why and "encoding" not in step:
            step = likely_encoding(line)
        if held > 1:
            why = f"{held} records on one line"
        bad.append(_BadLine(number, why))
    yield numbers, records
    if not good and not bad:
        raise empty_file(document.path)
    # In JSON of another form a line may still be a record, such as the last one of a list.
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
    # A repeated key ends this look ahead; reading the whole file refuses it with its place.
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
        # UTF-7 may decode to lone surrogates: then their line is bad, not the whole file.
        opened = io.BytesIO(document.text().encode("utf-8", "surrogatepass"))
    with opened as stream:
        for number in count(1):
            line = stream.readline(LONGEST_LINE + 1)
            if not line:
                return
            # What is left of a line over the limit is read in pieces, so that none fills the memory.
            rest = line
            while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
                rest = stream.readline(LONGEST_LINE + 1)
            content = line
            if number == 1:
                content = content.removeprefix(b"\xef\xbb\xbf")
            content = content.strip()
            if not content:
                continue
            if len(line.removesuffix(b"\n")) > LONGEST_LINE:
                yield number, None
            else:
                yield number, content


def _record(line: bytes | None) -> _Line:
    """Return the object of a line, or why there is none."""
    if line is None:
        return _no_record(f"longer than {LONGEST_LINE >> 20} MB")
    try:
        value = _parsed(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return _no_record(f"byte {error.start} is not UTF-8")
    except json.JSONDecodeError as error:
        return _no_record(f"no JSON at character {error.pos + 1} ({error.msg})")
    except (ValueError, RecursionError) as error:
        # Limits of Python: a number of more than 4,300 digits, or about a thousand nested brackets.
        return _no_record(f"no JSON that can be read ({str(error)[:80]})")
    if not isinstance(value, dict):
        return _no_record(f"found {type(value).__name__}")
    if not _SURROGATE.search(line):
        return value, "", False
    # An escape may also be half of a pair, such as that of an emoji, which stays.
    cleaned = clean_text(value)
    return cleaned, "", cleaned != value


def _no_record(why: str) -> _Line:
    return None, why, False


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
    pattern = r"(?<=\})\s*\{"  # an object behind another one
    first_key = _FIRST_KEY.match(text)
    if first_key:
        pattern = rf"{re.escape(first_key[0])}|{pattern}"
    # From 1 on: the record with which the line begins is always counted.
    places = islice(re.compile(pattern).finditer(text, 1), _MOST_PLACES)
    return 1 + sum(_begins_record(text, match.start()) for match in places)


def _begins_record(text: str, start: int) -> bool:
    """Whether a record begins in the midst of a line: after what cannot stand before a nested object, or whole."""
    # A few characters are enough, and do not copy the whole line for each place.
    sign_before = text[max(start - 20, 0) : start].rstrip()[-1:]
    if sign_before not in (",", ":", "[", ""):
        return True
    # A nested object is followed by a comma or a bracket, a record by nothing or by the next record.
    with suppress(ValueError, RecursionError):
        _, end = json.JSONDecoder().raw_decode(text, start)
        return text[end:].lstrip()[:1] in ("", "{")
    return False


def read_lines(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read JSON lines; a file that begins as a JSON list, and is one, as that list."""
    # `read_json` calls this function only for a text that begins with a brace, so that the two never call each
    # other in circles. What begins like a list and is none, such as lines of lists, is refused below by line.
    with suppress(RagnbError), document.open() as stream:
        head = stream.read(1 << 10)
        if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
            return read_json(document, report, strict)
    lines = list[int]()
    records = list[dict[str, Any]]()
    for numbers, block in record_blocks(document, report, strict):
        lines += numbers
        records += block
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
        # What comes after a first object is another line of JSON Lines.
        if error.msg == "Extra data" and text.lstrip().startswith("{") and "\n" in text.strip():
            return read_lines(document, report, strict)
        raise RagnbError(
            f"{place(document.path, error.lineno)}is not valid JSON ({error.msg}); write it again if it is cut "
            "off; if each line is a record, name it .jsonl (format='jsonl')"
        ) from error
    except (RecursionError, ValueError) as error:
        raise RagnbError(f"{place(document.path)}is not readable JSON ({error})") from error
    cleaned = value
    if r"\ud" in text.lower():  # without such an escape there is no lone surrogate
        cleaned = clean_text(value)
    lost = list[int]()
    columns = _columns_of(document, cleaned, report, lost, strict)
    rows = list(zip(*columns.values(), strict=True))
    replaced = 0
    if cleaned != value:
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
        return {str(name): _cells_of_column(column) for name, column in value.items()}
    raise _no_table(document, value)


def _cells_of_column(column: dict[str, Any] | list[Any]) -> list[Any]:
    """Return the cells of a column, which are a list, or an object with the labels of the rows."""
    if isinstance(column, dict):
        return list(column.values())
    return list(column)


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
        return _without_unnamed_index(rows, value["schema"], report)
    for sign, (what, step) in NO_RESULTS.items():
        # The file with the results holds the link, too.
        if sign in value and "testRunData" not in value:
            raise RagnbError(f"{place(document.path)}is {what} and has no samples; {step}")
    # Inspect writes a log as an archive or as JSON.
    if isinstance(value.get("eval"), dict) and isinstance(value.get("samples"), list):
        return of_inspect(value, value["samples"], report)
    damaged = list[_DamagedList]()
    whole = _without_damage(value, damaged)
    records = _records_in(document, whole, report)
    if records is None:
        return _columns_by_section(value) or value
    # The records were found in a list without its damage; `_records_only` counts that in the list as it was given.
    for one in damaged:
        if one.records is records:
            return one.given
    if any(records is cells for cells in _lists_in(whole)):
        return records
    # Where several lists were made one, what is damaged in any of them comes behind the records. A list inside a
    # record, such as its messages, holds no records of the file.
    inside = {id(cells) for record in records for cells in _lists_in(record)}
    lost = []
    for one in damaged:
        if id(one.records) not in inside:
            lost += [row for row in one.given if not isinstance(row, dict)]
    return [*records, *lost]


def _without_unnamed_index(rows: list[Any], schema: dict[str, Any], report: Lossy) -> list[Any]:
    """Return the records that pandas writes with ``orient="table"``, without index levels that had no name.

    As of a frame in memory, a level with a name is a column, and one that only numbers the rows is not missed.
    """
    key = schema.get("primaryKey")
    levels = key if isinstance(key, list) else []
    # What pandas calls levels without a name; a frame with a level that is really named so cannot be told apart.
    if len(levels) == 1:
        names_of_unnamed = ["index"]
    else:
        names_of_unnamed = [f"level_{i}" for i in range(len(levels))]
    unnamed = {name for name, usual in zip(levels, names_of_unnamed, strict=True) if name == usual}
    if not unnamed:
        return rows
    fields = schema.get("fields")
    if not isinstance(fields, list):
        fields = []
    integers = [
        field.get("name")
        for field in fields
        if isinstance(field, dict) and field.get("type") == "integer"
    ]
    if any(name not in integers for name in unnamed):
        report.add("left_out", "", "index without a name", len(rows))
    without_index = []
    for row in rows:
        if isinstance(row, dict):
            row = {name: cell for name, cell in row.items() if name not in unnamed}
        without_index.append(row)
    return without_index


def _lists_in(value: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield the lists of an object and of the objects in it."""
    for cell in value.values():
        if isinstance(cell, list):
            yield cell
        elif isinstance(cell, dict):
            yield from _lists_in(cell)


def _records_only(
    document: Document, rows: list[Any], report: Lossy, lost: list[int], *, strict: bool
) -> Any:
    """Return the objects among records; the places of what else there is are lost, and listed."""
    records = _without_damage(rows, [])
    for i, row in enumerate(rows, 1):
        if isinstance(row, dict):
            continue
        # The very list comes back where its objects are too few, or no samples, to call the rest damage.
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
    if len(shapes) != 1:
        return False
    (shape,) = shapes
    if shape is None:
        return False
    if isinstance(shape, int):
        return True
    # Objects of the same keys may be records by their id, too: then the inner keys are names that have a meaning.
    return bool(meanings(value)) or not meanings(shape)


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


class _DamagedList(NamedTuple):
    """The records of a list that holds something else, too, and the list as it was given."""

    records: list[dict[str, Any]]
    given: list[Any]


def _without_damage(value: Any, damaged: list[_DamagedList]) -> Any:
    """Return lists of records, also in objects, without what is none among them; `damaged` gets each such list.

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
    mostly_records = len(value) / 2 < len(records) < len(value)
    if not mostly_records or not any(map(_is_sample, records)):
        return value
    damaged.append(_DamagedList(records, value))
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
            parts = cell.values() if isinstance(cell, dict) else [cell]
            lists = [part for part in parts if isinstance(part, list)]
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
    lists = _lists_of_records(value)
    # Where there is only one list, its records need not look like samples.
    keys = [key for key, rows in lists.items() if len(lists) == 1 or _is_sample(rows[0])]
    # Each list holds the records of one metric.
    if len(keys) > 1 and all("score" in row for key in keys for row in lists[key]):
        return [{**row, "metric": key} for key in keys for row in lists[key]]
    # Failures beside all results are among them, else they are the rest of the run.
    whole = [key for key in keys if not is_selection(key)]
    if len(whole) == 1:
        value = _with_rest_of_run(value, lists, whole[0], report)
        lists[whole[0]] = value[whole[0]]
        keys = whole
    if len(keys) > 1:
        return _of_systems(document, {key: lists[key] for key in keys}, report)
    # A question or an answer that is no list of records is a column, and the list may be another one.
    sample_keys = {roles[name] for name in _SAMPLE & roles.keys()}
    if keys and sample_keys <= lists.keys():
        key = keys[0]
        check_list(document.path, value, key, report)
        others = [name for name in value if name != key]
        report.add("left_out", None, f"keys beside {key!r}: {listing(others)}", len(others))
        return lists[key]
    # One level deep, and not in an object whose keys are columns.
    if nested or roles:
        return None
    objects = {key: cell for key, cell in value.items() if isinstance(cell, dict)}
    if _are_samples_by_id(value, objects):
        return [{"sample_id": name, **record} for name, record in value.items()]
    records_by_key = {}
    for key, cell in objects.items():
        records = _records_in(document, cell, report, nested=True)
        if records:
            records_by_key[key] = records
    if len(records_by_key) > 1:
        return _of_systems(document, records_by_key, report)
    return next(iter(records_by_key.values()), None)


def _lists_of_records(value: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the cells of an object that are lists of objects only, and not empty."""

    def is_list_of_records(cell: Any) -> bool:
        return isinstance(cell, list) and bool(cell) and all(isinstance(row, dict) for row in cell)

    return {key: cell for key, cell in value.items() if is_list_of_records(cell)}


def _with_rest_of_run(
    value: dict[str, Any], lists: Mapping[str, list[Any]], key: str, report: Lossy
) -> dict[str, Any]:
    """Return an object whose list under `key` holds the failures, too, that only other lists of it hold."""
    records = lists[key]
    # As many as the object counts are all: failures that are not among them are of something else.
    if counts_all(value, len(records)):
        return value
    parts = [name for name in lists if is_selection(name) and _is_outcome(lists[name][0])]
    rest = unlisted(records, [row for name in parts for row in lists[name]])
    if not rest:
        return value
    why = f"records of the same run that {key!r} does not hold"
    report.add("mapped", None, f"{listing(parts)}: {why}", len(rest))
    whole = {name: cell for name, cell in value.items() if name not in parts}
    whole[key] = records + rest
    return whole


def _are_samples_by_id(value: Mapping[str, Any], objects: Mapping[str, dict[str, Any]]) -> bool:
    """Return whether all that an object holds are objects with a question or an answer."""
    if not objects or len(objects) < len(value):
        return False
    return all(_SAMPLE & meanings(record).keys() for record in objects.values())


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
