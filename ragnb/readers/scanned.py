"""Traces of a JSONL file as a Polars frame: which keys it has, of which types, and what they are called.

Polars' scanner loses a block to one bad byte and turns half a surrogate pair into NUL. So a block that it does not
take, or that holds the escape of a surrogate, is read line by line, and its good lines are scanned again. The
scanner is told the types: it refuses a value of another one, which its own inference would make text in silence.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragnb.errors import RagnbWarning, place
from ragnb.files import is_pattern
from ragnb.readers import jsonl
from ragnb.readers.cells import as_id, as_text
from ragnb.readers.contract import IDS
from ragnb.readers.document import Document, find_document
from ragnb.readers.lossy import Lossy
from ragnb.readers.names import apply_names, name_system, rename_map
from ragnb.readers.raw import Raw, absent

if TYPE_CHECKING:
    import polars as pl

SAMPLED = 500
BLOCK = 1 << 24
_SURROGATE = re.compile(rb"\\u[dD]")
_KEYS = r'"[^"\\]*"\s*:|\\[^"\\]*"\s*:|[{}]'
TEXTS = {"question", "answer", *IDS}
EXPECTED = ("citations", "chunks", "ok", "system", "repeat", "qid")


def scan(
    source: Any, *, format: str | None, strict: bool, columns: Mapping[str, str] | None, encoding: str | None
) -> pl.DataFrame | None:
    """Return traces under their canonical names; None for what has to be read value by value.

    Keys are those of the first 500 lines, of 500 lines spread over the file, and those that labels depend on.
    """
    if not isinstance(source, str | os.PathLike) or is_pattern(source):
        return None
    document = find_document(source, encoding)
    lines = format == "jsonl" or (format is None and document.suffix in (".jsonl", ".ndjson"))
    if not lines or not document.is_utf8:
        return None
    data = document.data().removeprefix(jsonl.BOM)
    schema = _schema(data, columns)
    found = None if schema is None else _records(data, schema, document)
    if found is None or len(found[0].bad) >= len(found[1]):
        return None
    tally, frame = found
    report = Lossy()
    jsonl.judge(tally, report, strict)
    _tell(report, document)
    frame = frame.select([s for s in frame if s.null_count() < len(s)])
    names = rename_map(frame.columns, picks=columns, file=str(document.path))
    named = name_system(apply_names({name: [name] for name in frame.columns}, names, report), report)
    if "answer" not in named or not {"question", "sample_id"} & set(named):
        return None
    return _settled(frame.select([frame[str(was[0])].alias(name) for name, was in named.items()]))


def as_polars(raw: Raw, report: Lossy) -> pl.DataFrame:
    """Return a raw table of traces as a Polars frame; a column of several types becomes text."""
    import polars as pl

    columns = []
    for name, cells in raw.columns.items():
        if name == "chunks":
            cells = [c if c is None else [as_id(item.get("id")) for item in c] for c in cells]
        columns.append(series(name, cells))
    _tell(report, raw.file)
    return pl.DataFrame(columns)


def series(name: str, cells: Sequence[Any]) -> pl.Series:
    """Return cells as a Polars series; cells of several types become text.

    Examples
    --------
    >>> series("a", [1, "b"]).to_list(), series("a", [1, 2.5, float("nan")]).to_list()
    (['1', 'b'], [1.0, 2.5, None])
    """
    import polars as pl

    held = [None if absent(cell) else cell for cell in cells]
    try:
        if {type(cell) for cell in held} <= {int, float, type(None)} and any(type(c) is float for c in held):
            return pl.Series(name, held, dtype=pl.Float64, strict=False)
        return pl.Series(name, held)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(name, [as_text(cell) for cell in held], dtype=pl.String)


def _tell(report: Lossy, where: Document | str) -> None:
    """Warn of what was lost: a Polars frame has no place for a report."""
    lost = [row for row in report.rows if row["what"] in ("bad_line", "unparsed")]
    if lost:
        told = "; ".join(str(row["detail"]) for row in lost[:5]) + "; …" * (len(lost) > 5)
        n = sum(int(str(row["n"])) for row in lost if row["what"] == "bad_line")
        file = where.path if isinstance(where, Document) else where
        warnings.warn(f"{place(file)}{n} lines left out; {told}", RagnbWarning, stacklevel=4)


def _schema(data: bytes, columns: Mapping[str, str] | None) -> dict[str, Any] | None:
    """Return the type of each key that a sample of lines holds, None where one has no single type."""
    import polars as pl

    records = [record for line in _sampled(data) if (record := jsonl._record(line)[0]) is not None]
    kinds: dict[str, set[str]] = {key: set() for key in EXPECTED}
    for record in records:
        for key, value in record.items():
            kinds.setdefault(key, set()).add(_kind(value))
    names = rename_map([k for k, kind in kinds.items() if kind], picks=columns, clash=lambda *_: None)
    if len({*names.values()}) < len(names):
        return None  # two keys of one name: whether they clash, the cells tell
    types = {"str": pl.String, "int": pl.Int64, "float": pl.Float64, "bool": pl.Boolean}
    lists = ("chunks", "citations")
    default = {"citations": pl.List(pl.String), "chunks": pl.String, "ok": pl.Boolean}
    schema = {}
    for key, found in kinds.items():
        name, kind = names.get(key, key), found - {"none"} - ({"int"} if "float" in found else set())
        if not kind:
            schema[key] = default.get(name, pl.String)
        elif name in lists and kind <= {"list", "ids"}:
            schema[key] = pl.List(pl.String)
        elif kind <= ({"list", "chunks"} if name == "chunks" else {"str", "int"} if name in TEXTS else set()):
            schema[key] = pl.String
        elif len(kind) == 1 and kind <= {*types} and name not in lists:
            schema[key] = types[min(kind)]
        else:
            return None
    return schema


def _sampled(data: bytes) -> list[bytes]:
    head = data[: 1 << 22].split(b"\n", SAMPLED)[:SAMPLED]
    step = max(len(data) // SAMPLED, 1)
    starts = (data.find(b"\n", at) + 1 for at in range(0, len(data), step))
    spread = [data[at : data.find(b"\n", at) if data.find(b"\n", at) >= 0 else None] for at in starts if at]
    return [line.strip() for line in [*head, *spread] if line.strip()]


def _kind(value: Any) -> str:
    if isinstance(value, list):
        held = {type(item) for item in value}
        chunks = held == {dict} and all("id" in item for item in value)
        return "list" if not held else "ids" if held <= {str, int} else "chunks" if chunks else "other"
    return {type(None): "none", str: "str", bool: "bool", int: "int", float: "float"}.get(type(value), "other")


def _records(
    data: bytes, schema: Mapping[str, Any], document: Document
) -> tuple[jsonl.Tally, pl.DataFrame] | None:
    """Return the records, chunks as lists of ids; None where a value is not of its type, or there are none."""
    import polars as pl

    chunks, objects = pl.col("chunks"), pl.List(pl.Struct({"id": pl.String}))
    # Nested values are scanned as text first, which is quick. It lacks escapes: where it had some it is no JSON.
    plain = pl.when(chunks.str.contains("\\", literal=True)).then(pl.lit("?")).otherwise(chunks)
    ids = pl.element().struct.field("id")
    scans: list[tuple[Mapping[str, Any], list[pl.Expr]]] = [(schema, [])]
    if schema.get("chunks") == pl.String:
        scans = [
            (schema, [plain.str.json_decode(objects).list.eval(ids).alias("chunks")]),
            ({**schema, "chunks": objects}, [chunks.list.eval(ids)]),
        ]
    for types, made in scans:
        tally = jsonl.Tally(document.path)
        frame = _scanned(data, types, made, tally)
        if frame is not None and len(frame):
            return tally, frame
    return None


def _scanned(
    data: bytes, schema: Mapping[str, Any], made: Sequence[pl.Expr], tally: jsonl.Tally
) -> pl.DataFrame | None:
    """Return the records of lines, `made` in the place of keys; None where a value is not of its key's type.

    Raises
    ------
    RagnbError
        For a key that a record holds twice.
    """
    import polars as pl
    from pydantic_core import to_json

    def scan(block: bytes) -> pl.DataFrame | None:
        try:
            return pl.scan_ndjson(block, schema=dict(schema)).with_columns(made).collect(engine="streaming")
        except (pl.exceptions.PolarsError, ValueError):
            return None

    def pieces() -> Iterator[tuple[int, bytes]]:
        start, line = 0, 1
        while start < len(data):
            end = data.find(b"\n", start + BLOCK) + 1 or len(data)
            yield line, data[start:end]
            start, line = end, line + data.count(b"\n", start, end)

    def mended(block: bytes, first: int) -> pl.DataFrame | None:
        """Scan the lines that hold a record, in a form that the scanner takes; note the others."""
        good = []
        for number, line in jsonl.lines_of(block):
            record = tally.take(first + number - 1, line)
            if record is not None and line is not None:
                plain = not _SURROGATE.search(line) and b"NaN" not in line
                good.append(line if plain else to_json(record, inf_nan_mode="null"))
        return scan(b"\n".join(good))

    parts: list[pl.DataFrame] = []
    for part in in_parts(pieces(), scan, mended, tally):
        if part is None:
            return None
        parts.append(part)
    return pl.concat(parts) if parts else None


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


def _is_odd(block: bytes) -> bool:
    """Whether a scanner cannot be trusted with lines: half a surrogate pair, or a line longer than are read."""
    if len(block) > jsonl.LONGEST_LINE and any(len(line) > jsonl.LONGEST_LINE for line in block.split(b"\n")):
        return True
    return _SURROGATE.search(block) is not None


def _settled(frame: pl.DataFrame) -> pl.DataFrame:
    """Make cells that hold nothing null."""
    import polars as pl

    words = pl.col([c for c in ("question", "answer") if c in frame.columns])
    ids = pl.col([c for c in IDS if c in frame.columns])
    no_word = words.str.contains(r"^\s*(?:NaN|<NA>)\s*$").not_()
    cited = [name for name in ("citations",) if frame.schema.get(name) == pl.List(pl.String)]
    retrieved = pl.col([name for name in ("chunks",) if frame.schema.get(name) == pl.List(pl.String)])
    named = (retrieved.list.len() == 0) | retrieved.list.eval((pl.element() != "").fill_null(False)).list.any()
    return frame.with_columns(
        pl.when(named).then(retrieved).name.keep(),
        pl.when(no_word).then(words).name.keep(),
        pl.when(ids != "").then(ids).name.keep(),
        pl.col(cited).list.eval(pl.element().filter(pl.element() != "")),
    )
