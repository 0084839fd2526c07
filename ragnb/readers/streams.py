"""Scores too large for memory: a query over their files under canonical names, instead of a frame.

Parquet is scanned where it lies. JSON lines are read once, block by block, and written as Parquet into a temporary
folder, which lives as long as the stream. Cells are made what the frame contract says by the query.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import pandas as pd

from ragnb.errors import RagnbError, place
from ragnb.files import digest
from ragnb.polars import pl
from ragnb.readers.cells import IDS, NO_NUMBER, TEXTS, as_text
from ragnb.readers.columns import case_cells, declared, to_frame
from ragnb.readers.documents import Document, find_documents
from ragnb.readers.evidence import failed_among, is_error_column, is_success_column, shown_words
from ragnb.readers.executors import on_spark
from ragnb.readers.facts import TECHNICAL, facts_told, verdict_value
from ragnb.readers.formats import format_of
from ragnb.readers.frames import canonical, polars_series
from ragnb.readers.graded import LONGEST_WORD, MOST_GRADES, grades_of_words, note_grades
from ragnb.readers.ids import identify
from ragnb.readers.jsons import record_blocks
from ragnb.readers.kinds import SAYS_NOTHING, Cells, kind_of_cell
from ragnb.readers.layouts import sniff
from ragnb.readers.metrics import (
    may_be_metric,
    note_candidate,
    note_metrics,
    open_facts,
    settle_scales,
)
from ragnb.readers.names import name_columns
from ragnb.readers.owner import name_owner, tell_repeats
from ragnb.readers.query import Query, item_of
from ragnb.readers.raw import Lossy, Raw, agree, from_records
from ragnb.readers.results import is_nest_of_scores, spread_results
from ragnb.readers.scores import near_ends
from ragnb.readers.verdicts import are_verdicts, is_reference
from ragnb.schema import CLIP, Metric, SharedPicks, metric_list

# Maximum in memory: rows of a query or of Parquet files, bytes of JSON lines.
ROWS = 200_000
BYTES = 1 << 27  # of a file of JSON lines: larger ones are read in blocks
MOST_WORDS = 1_000
"""Of the different words in a metric's column, how many are looked at."""


@dataclass
class Stream:
    """Rows as a query, and what a reader says about them.

    Attributes
    ----------
    frame : polars.LazyFrame or pyspark.sql.DataFrame
    rows : int
    origin : dict
        ``path, sha256, format, rows, lines, damaged``.
    lossy : list of dict
    facts : list of Fact
    metrics : list of dict
        Metrics whose values say another scale than METRICS does: ``metric, low, high, better, threshold``.
    close : function
        Remove the folder where the rows lie, if not in the caller's own files, as the end of the stream does; the
        query cannot run any more.
    """

    frame: Any
    rows: int
    origin: dict[str, Any]
    lossy: list[dict[str, Any]]
    close: Callable[[], Any] = bool
    facts: Sequence[Any] = ()
    metrics: Sequence[dict[str, Any]] = ()


def stream_scores(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    metrics: Iterable[str | Metric] | None = None,
) -> Stream | None:
    """Return scores that are too large for memory as a query under canonical names; None for others.

    Parameters
    ----------
    source
        The path of Parquet or JSONL files (also a pattern or a folder), of more than 200,000 rows (of JSON lines:
        128 MB); or a query of any length: a Polars LazyFrame, a DuckDB relation, a PySpark frame.
    columns, encoding, metrics
        As for `read_scores`.

    Returns
    -------
    Stream or None
        Rows as `read_scores` gives them, with these differences: ``sample_id`` is made by the row's place; a
        cell that holds a list as text is parsed only where it is shown; ranges are checked in use.

    Raises
    ------
    RagnbError
        As `read_scores`; for files that differ in columns, and for tables of haystack and TruLens, which are
        reshaped in memory only.

    Examples
    --------
    >>> stream_scores([{"faithfulness": 0.5}]) is None
    True
    """
    report = Lossy()
    paths: list[Path] = []
    stream = Stream(None, 0, {"path": None, "sha256": None, "format": "frame"}, report.rows)
    query = nw.from_native(source, pass_through=True)
    is_query = isinstance(query, nw.LazyFrame)
    if on_spark(source):
        return stream_spark(source, columns, metrics or ())
    if is_query:
        # A relation of DuckDB is turned into a query of Polars.
        stream.frame = source if query.implementation.is_polars() else source.pl(lazy=True)
    elif isinstance(source, str | os.PathLike):
        paths = _open_files(stream, source, encoding, report)
    if stream.frame is None:
        return None
    stream.rows = int(item_of(stream.frame, pl.len()))
    is_spilled = stream.close is not bool
    # In memory more is known of a file; a query was made by somebody who does not want it there.
    if stream.rows <= ROWS and not is_spilled and not is_query:
        return None
    table = Query(_spread(stream.frame), stream.rows, stream.origin["path"] or "the frame")
    # These tools have a row for each metric, and rows of one answer may lie anywhere in the file.
    if any(sniff(tool, {*table.kinds}) for tool in ("haystack", "trulens")):
        raise RagnbError(
            f"{place(table.file)}{table.rows:,} rows of a TruLens or haystack table are more than can be "
            "reshaped at once; read parts of it with rn.read_scores and write them as Parquet"
        )
    chosen = metric_list(metrics)
    own_metrics = [metric for metric in chosen or () if isinstance(metric, Metric)]
    name_columns(table, report, picks=columns, metrics=own_metrics)
    _check_kinds(table, declared(chosen, list(table.columns)))
    identify(table, report)
    name_owner(table, report)
    # Again, as other columns may be the ids and the system by now.
    _check_kinds(table, {})
    tell_repeats(table, report)
    known = _settled(table, declared(chosen, list(table.columns)), own_metrics)
    stream.facts = table.facts
    stream.metrics = [{"metric": name, **row} for name, row in table.scales.items()]
    if "sample_id" not in table.columns:
        position = (pl.int_range(pl.len(), dtype=pl.Int64) + 1).cast(pl.String)
        table.columns = {"sample_id": position, **table.columns}
        report.add("made", "sample_id", "position of the row", table.rows)
    stream.frame = typed(table.named(), known, table.file, report)
    # The reader of JSON lines has counted them, with those that hold no record.
    report.expect(0 if report.lines else stream.rows)
    stream.origin |= {"rows": stream.rows, "lines": report.lines, "damaged": report.damaged}
    stream.origin["sha256"] = digest(paths) if paths else None
    return stream


def _open_files(stream: Stream, source: Any, encoding: str | None, report: Lossy) -> list[Path]:
    """Return the paths of the files of a source; Parquet and large JSON lines become the stream's query."""
    documents = find_documents(source, encoding)
    format = format_of(documents, None).name
    paths = [document.path for document in documents]
    is_packed = [path.name.lower().endswith(".gz") for path in paths]
    stream.origin |= {"path": str(source), "format": format}
    if format == "parquet" and not any(is_packed):
        stream.frame = scan_parquet(paths)
    elif format == "jsonl":
        # In bytes when unpacked: gzip packs JSON texts to about an eighth.
        sizes = [
            path.stat().st_size * (8 if packed else 1)
            for path, packed in zip(paths, is_packed, strict=True)
        ]
        if sum(sizes) > BYTES:
            folder = Path(tempfile.mkdtemp(prefix="ragnb-"))
            stream.close = weakref.finalize(stream, shutil.rmtree, folder, ignore_errors=True)
            stream.frame = spill(documents, folder, report)
    return paths


def _settled(table: Query, known: Mapping[str, Metric], own: Sequence[Metric]) -> dict[str, Metric]:
    """Return the metrics of a query on the scale that their values say; one whose scale is open counts no more.

    The facts are those that `settle_metrics` finds in memory, but for what verdicts beside the scores say.
    """
    named = {metric.name: metric for metric in own}
    declared = dict(known)
    made: dict[str, Metric] = {}
    settle_scales(table, declared, made, named, spans_of)
    for name in open_facts(table.facts):
        if name not in named:
            declared.pop(name, None)
    # Values outside a metric's range are refused in use, with their row.
    note_metrics(table, declared, made, named)
    kinds = table.named().collect_schema()
    settled = {*declared, *made}
    candidates = [name for name in table.columns if name not in settled and may_be_metric(name)]
    numeric = [name for name in candidates if kinds[name].is_numeric()]
    known_facts = facts_told(table.facts)
    for name, (low, high, _) in spans_of(table, numeric).items():
        note_candidate(table, name, low, high, known_facts)
    kinds_of_words = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
    for name in candidates:
        if kinds[name] not in kinds_of_words:
            continue
        grades = grades_of_words(_words_of(table.named(), name))
        if grades is not None and not is_reference(name):
            note_grades(table, name, grades, known_facts)
    return declared | made


def _words_of(frame: pl.LazyFrame, name: str) -> dict[str, int]:
    """Return the distinct texts of a column and how often each stands; none where one is long or they are many."""
    cells = frame.select(pl.col(name).cast(pl.String).alias("word")).drop_nulls()
    # A look at the first rows avoids grouping a column of long texts, which has nearly as many groups as rows.
    is_long = pl.col("word").str.len_chars().max() > LONGEST_WORD
    if item_of(cells.head(_FIRST_ROWS), is_long):
        return {}
    # One more than grades may have is enough to tell that they are too many.
    counts = cells.group_by("word").agg(pl.len().alias("n")).head(MOST_GRADES + 1)
    n_of = dict(counts.collect(engine="streaming").rows())
    blank = [word for word in n_of if word.strip().casefold() in NO_NUMBER]
    return {word: n for word, n in n_of.items() if word not in blank and len(word) <= LONGEST_WORD}


_FIRST_ROWS = 1000  # whose length tells texts from words


def spans_of(table: Query, names: Iterable[str]) -> dict[str, tuple[float, float, bool]]:
    """Return the least and greatest number of columns of a query, and whether all are whole.

    Examples
    --------
    >>> import polars as pl
    >>> spans_of(Query(pl.LazyFrame({"a": [4, None, 9], "b": ["x", "y", "z"]}), 3), ["a", "b"])
    {'a': (4.0, 9.0, True)}
    """
    kinds = table.named().collect_schema()
    flat = [name for name in names if not (kinds[name].is_nested() or kinds[name].is_temporal())]
    if not flat:
        return {}
    summaries: list[pl.Expr] = []  # three of each column
    for name in flat:
        number = table.columns[name]
        if not kinds[name].is_numeric():
            number = number.cast(pl.String, strict=False)
        number = number.cast(pl.Float64, strict=False)
        number = pl.when(number.is_finite()).then(number)
        summaries += [
            number.min().alias(f"{name} low"),
            number.max().alias(f"{name} high"),
            (number == number.floor()).all().alias(f"{name} whole"),
        ]
    # One query for all columns, as each query reads the files anew.
    row = table.frame.select(summaries).collect(engine="streaming").row(0)
    spans = {}
    for name, low, high, whole in zip(flat, row[0::3], row[1::3], row[2::3], strict=True):
        if low is not None:  # a column without a number
            spans[name] = (low, high, whole)
    return spans


def _check_kinds(table: Query, metrics: Collection[str]) -> None:
    """Refuse cells that a query cannot turn into the numbers, identifiers and texts that they are to be."""
    for name, kind in table.named().collect_schema().items():
        odd: tuple[Any, ...] = ()
        if name in metrics:
            odd = (pl.Object, pl.Binary)
        elif name in (*IDS, *TEXTS):
            odd = (pl.Object, pl.Duration)
        # A query fails when it runs, far from the file; here the message can name the column.
        if kind in odd or (name == "sample_id" and kind.is_nested()):
            raise RagnbError(
                f"{place(table.file)}column {name!r} holds {kind}, no text or number; convert it"
            )


def stream_spark(
    frame: Any, columns: Mapping[str, str] | None, metrics: Iterable[Any] = (), **how: Any
) -> Stream:
    """Return PySpark's rows under canonical names, ids that are blank as missing ones, and all else as it is.

    Parameters
    ----------
    frame, columns, metrics
        As for `stream_scores`.
    **how
        Options of `canonical`.

    Raises
    ------
    RagnbError
        For two columns that mean one name, and a pick that is not there.
    """
    picks: Mapping[str, str] = columns or {}
    if isinstance(columns, SharedPicks):
        picks = columns.of(frame.columns)
    declared_metrics = [metric for metric in metrics if isinstance(metric, Metric)]
    named = canonical(frame, "system", metrics=declared_metrics, picks=picks, **how)
    ids = [nw.col(name) for name, kind in named.dtypes if name in IDS and kind == "string"]
    without_blank_ids = [nw.when(id != "").then(id) for id in ids]
    named = nw.from_native(named).with_columns(without_blank_ids).to_native()
    n_rows = named.count()
    report = Lossy()
    for name, new in zip(frame.columns, named.columns, strict=True):
        if name != new:
            report.add("mapped", name, new, n_rows)
    origin = {"path": None, "sha256": None, "format": "frame", "rows": n_rows}
    return Stream(named, n_rows, origin, report.rows)


def scan_parquet(paths: list[Path]) -> pl.LazyFrame:
    """Return a query over Parquet files with the same columns.

    Raises
    ------
    RagnbError
        For a file that is no Parquet file, and one whose columns are not those of the first.
    """
    schemas: list[Any] = []
    for path in paths:
        try:
            schemas.append(pl.scan_parquet(path).collect_schema())
        except pl.exceptions.PolarsError as error:
            raise RagnbError(f"{place(path)}is not a Parquet file ({str(error)[:120]})") from error
        agree(str(paths[0]), schemas[0], str(path), schemas[-1], "parquet")
    if all(list(schema.items()) == list(schemas[0].items()) for schema in schemas):
        return pl.scan_parquet(paths)
    # One file has whole numbers where another has fractions: Polars takes the wider kind.
    return pl.concat([pl.scan_parquet(path) for path in paths], how="diagonal_relaxed")


def spill(documents: Sequence[Document], folder: Path, report: Lossy) -> pl.LazyFrame:
    """Write the records of JSONL files as Parquet files into a folder, and return a query over them.

    Raises
    ------
    RagnbError
        As the reader of JSONL raises; for a file without a metric that the first one has.
    """
    parts: list[Path] = []
    columns: list[list[str]] = []
    for document in documents:
        lossy_of_batch = Lossy()
        names = dict[str, None]()
        for _, records in record_blocks(document, lossy_of_batch):
            raw = Raw(from_records(records), "jsonl")
            spread_results(raw, Lossy())
            names |= dict.fromkeys(raw.columns)
            parts.append(folder / f"{len(parts):06}.parquet")
            series = [
                polars_series(name, list(map(_flat, cells))) for name, cells in raw.columns.items()
            ]
            # lz4: it is written once and read a few times, and size does not matter.
            pl.DataFrame(series).write_parquet(parts[-1], compression="lz4")
        report.of_file(document.path.name, lossy_of_batch)
        columns.append([*names])
        agree(str(documents[0].path), columns[0], str(document.path), columns[-1], "jsonl")
    try:
        frames = pl.concat([pl.scan_parquet(part) for part in parts], how="diagonal_relaxed")
        frames.collect_schema()
    except pl.exceptions.PolarsError as error:
        where = place(documents[0].path.parent)
        raise RagnbError(f"{where}a key has values of incompatible types ({error})") from error
    return frames


def _flat(cell: Any) -> Any:
    """Return a nested cell as text, but for a list of texts."""
    is_list_of_texts = isinstance(cell, list) and {*map(type, cell)} <= {str}
    if isinstance(cell, dict | list) and not is_list_of_texts:
        return as_text(cell)
    return cell


def _spread(frame: Any) -> Any:
    """Turn structs of scores (metric → number, or score, status and reason) into columns, as in memory."""
    kinds = frame.collect_schema()
    for name, kind in kinds.items():
        if name != "results" and isinstance(kind, pl.Struct) and is_nest_of_scores(name):
            frame = _unnested(frame, name, kind, set(kinds))
    results = kinds.get("results")
    if not isinstance(results, pl.Struct):
        return frame
    ends = {"score": "", "status": "__status", "reason": "__reason"}
    cells = pl.col("results").struct
    columns: list[pl.Expr] = []
    for metric in results.fields:
        for part in getattr(metric.dtype, "fields", []):
            if part.name in ends:
                cell = cells.field(metric.name).struct.field(part.name)
                columns.append(cell.alias(metric.name + ends[part.name]))
    return frame.with_columns(columns).drop("results")


def _unnested(frame: Any, outer: str, kind: pl.Struct, taken: Collection[str]) -> Any:
    """Turn a struct of plain numbers, and texts beside them, into columns; any other stays."""
    has_number = any(field.dtype.is_numeric() for field in kind.fields)
    is_flat = not any(field.dtype.is_nested() for field in kind.fields)
    if not has_number or not is_flat:
        return frame
    cells = pl.col(outer).struct
    columns: list[pl.Expr] = []
    for field in kind.fields:
        name = f"{outer}.{field.name}" if field.name in taken else field.name
        columns.append(cells.field(field.name).alias(name))
    return frame.with_columns(columns).drop(outer)


def typed(
    frame: pl.LazyFrame, metrics: Mapping[str, Metric], file: str, report: Lossy
) -> pl.LazyFrame:
    """Return a query whose metrics are floats, and whose identifiers and case texts are texts.

    Values that are taken for an end of their range are counted in the report, by one query over all metrics.

    Raises
    ------
    RagnbError
        For a text in a metric's column that is not a number, with the sample.

    Examples
    --------
    >>> import polars as pl
    >>> from ragnb.schema import METRICS
    >>> query = pl.LazyFrame({"sample_id": [7.0], "faithfulness": ["True"]})
    >>> typed(query, {"faithfulness": METRICS["faithfulness"]}, "s.parquet", Lossy()).collect().rows()
    [('7', 1.0)]
    """
    columns: list[pl.Expr] = []
    near_an_end: dict[tuple[str, float], pl.Expr] = {}  # by metric and end
    kinds = frame.collect_schema()
    row_error = _broken_rows(kinds)
    has_gap = _has_blank_score(metrics, kinds)
    for name, kind in kinds.items():
        if name in metrics and not kind.is_nested() and not kind.is_temporal():
            scores = _Scores(pl.col(name), None)
            if kind in (pl.String, pl.Categorical, pl.Enum):
                scores = _words_read(frame, name, file, report)
            value = scores.value.cast(pl.Float64).fill_nan(None)
            reason = row_error
            if scores.is_failure is not None:
                word = pl.when(scores.is_failure).then(pl.col(name).cast(pl.String))
                reason = word if row_error is None else pl.coalesce(word, row_error)
            if row_error is not None:
                # Beside an error of the call itself a number is no score, unless the error explains a gap.
                technical = row_error.str.to_lowercase().str.contains(TECHNICAL.pattern)
                value = pl.when(~technical.fill_null(False) | has_gap).then(value)
            if reason is not None:
                columns += _failures(name, kinds, value.is_null(), reason)
            for end, near in near_ends(value, metrics[name]):
                near_an_end[name, end] = near
                value = pl.when(near).then(end).otherwise(value)
            columns.append(value.alias(name))
        elif name in IDS or name in TEXTS:
            columns.append(text_cells(name, kind).alias(name))
    if near_an_end:
        counts = [near.sum().alias(str(nth)) for nth, near in enumerate(near_an_end.values())]
        counted = frame.select(counts).collect(engine="streaming").row(0)
        for (name, end), n in zip(near_an_end, counted, strict=True):
            report.add("clipped", name, f"within {CLIP:g} of {end:g}", n)
    return frame.with_columns(columns)


def _has_blank_score(metrics: Iterable[str], kinds: Mapping[str, Any]) -> pl.Expr:
    """Return whether a row lacks the number of a metric: an error in the row is that one's."""
    numeric = [name for name in metrics if name in kinds and kinds[name].is_numeric()]
    if not numeric:
        return pl.lit(False)
    numbers = [pl.col(name).cast(pl.Float64).fill_nan(None) for name in numeric]
    return pl.any_horizontal(*(number.is_null() for number in numbers))


class _Scores(NamedTuple):
    """The cells of a metric as numbers, and which of them hold a word for a failure; None where none does."""

    value: pl.Expr
    is_failure: pl.Expr | None


def _words_read(frame: pl.LazyFrame, name: str, file: str, report: Lossy) -> _Scores:
    """Return a metric of texts as numbers, and which cells hold a word for a failure.

    Verdicts are 1 and 0 where no number stands beside them; what may mean two things is refused.
    """
    text = pl.col(name).cast(pl.String)
    folded = text.str.strip_chars().str.to_lowercase()
    number = folded.cast(pl.Float64, strict=False)
    is_number = number.is_finite().fill_null(False)
    no_numbers = frame.filter(text.is_not_null() & ~is_number)
    counted = no_numbers.group_by(text.alias("word")).agg(
        pl.len().alias("n"), pl.col("sample_id").first()
    )
    words = counted.head(MOST_WORDS).collect(engine="streaming").rows()
    kinds = {word: kind_of_cell(word) for word, _, _ in words}
    cells = _count_cells(int(item_of(frame, is_number.sum()) or 0), words, kinds)
    values: dict[str, float | None] = {}
    failed: set[str] = set()
    if are_verdicts(name, cells):
        verdict_of = {word: verdict_value(word) for word in kinds}
        values = {word: verdict[0] for word, verdict in verdict_of.items() if verdict}
        failed = _of(kinds, "failure") - values.keys()
    else:
        failed = failed_among(cells, kinds)
        values = {word: _truth(word) for word in _of(kinds, "number")}
    need_value = set(kinds) - failed - _of(kinds, "blank")
    for word, _, sample in words:
        if word in need_value and values.get(word) is None:
            raise RagnbError(
                f"{place(file)}column {name!r}: found {word!r} (sample_id {sample!r}), "
                "expected a number or an empty cell; write a number in its place, or keep the column as "
                f"text: columns={{{name!r}: '{name}_text'}}"
            )
    n_failed = sum(n for word, n, _ in words if word in failed)
    report.add("left_out", name, f"words, read as failed scores: {shown_words(failed)}", n_failed)
    value: pl.Expr = pl.when(is_number).then(number)
    if values:
        of_words = text.replace_strict(values, default=None, return_dtype=pl.Float64)
        value = pl.when(is_number).then(number).otherwise(of_words)
    is_failure = text.is_in(list(failed)) if failed else None
    return _Scores(value, is_failure)


def _count_cells(
    n_numbers: int, words: Iterable[tuple[str, int, Any]], kinds: Mapping[str, str]
) -> Cells:
    """Count the cells of a metric by what they hold, given the words that are no plain numbers and their kinds."""
    counts: Counter[str] = Counter()
    for word, n, _ in words:
        counts[kinds[word]] += n
    others = counts["other"] + counts["odd"]
    return Cells(n_numbers + counts["number"], counts["failure"], counts["verdict"], others)


def _of(kinds: Mapping[str, str], kind: str) -> set[str]:
    """Return the words of a kind, such as ``failure``."""
    return {word for word, kind_of_word in kinds.items() if kind_of_word == kind}


def _truth(word: str) -> float | None:
    """Return 1 for a true, 0 for a false, None for a number in another notation, which a query does not read."""
    verdict = verdict_value(word)
    if verdict is None:
        return None
    return verdict[0]


def _broken_rows(kinds: Mapping[str, Any]) -> pl.Expr | None:
    """Return why a row has no score, from its columns of errors and of success; None where there are none."""
    reasons = []
    for name, kind in kinds.items():
        if kind == pl.String and is_error_column(name):
            word = pl.col(name).str.strip_chars()
            says = ~word.str.to_lowercase().is_in(list(SAYS_NOTHING)) & word.is_not_null()
            reasons.append(pl.when(says).then(word))
        elif kind == pl.Boolean and is_success_column(name):
            reasons.append(pl.when(~pl.col(name)).then(pl.lit(f"{name}: false")))
    if reasons:
        return pl.coalesce(reasons)
    return None


def _failures(
    name: str, kinds: Mapping[str, Any], blank: pl.Expr, reason: pl.Expr
) -> list[pl.Expr]:
    """Return the status and reason of a metric whose blank cells are failures where there is a reason."""

    def text_of(column: str) -> pl.Expr:
        if column in kinds:
            return pl.col(column).cast(pl.String)
        return pl.lit(None, dtype=pl.String)

    status = text_of(f"{name}__status")
    given_reason = text_of(f"{name}__reason")
    # A status or reason in the file itself counts more.
    failed = blank & reason.is_not_null() & status.is_null()
    new_status = pl.when(failed).then(pl.lit("failed")).otherwise(status)
    new_reason = pl.when(failed & given_reason.is_null()).then(reason).otherwise(given_reason)
    return [new_status.alias(f"{name}__status"), new_reason.alias(f"{name}__reason")]


def text_cells(name: str, kind: pl.DataType) -> pl.Expr:
    """Return a column of identifiers or texts as texts; null where a cell holds none."""
    value = pl.col(name)
    if kind.is_nested():
        if kind == pl.List(pl.String) and name in TEXTS:
            return pl.when(value.list.len() > 0).then(value.list.join("\n"))
        return value
    text = value if kind == pl.String else value.cast(pl.String)
    if name in TEXTS:
        # What pandas writes for a missing text.
        return pl.when(~text.str.contains(r"^\s*(?:NaN|<NA>)\s*$")).then(text)
    if kind.is_float():
        # Ids beside a missing one are floats in Parquet: 7.0 is the id 7.
        whole = value.cast(pl.Int64, strict=False).cast(pl.String)
        id = pl.when(value == value.round()).then(whole).otherwise(text)
        return pl.when(value.is_not_nan()).then(id)
    if kind == pl.String:
        return pl.when(text != "").then(text)
    return text


def shown_rows(rows: pl.DataFrame) -> pd.DataFrame:
    """Return a few rows of a stream as a pandas frame whose cells are those that `read_scores` gives.

    Examples
    --------
    >>> import polars as pl
    >>> shown_rows(pl.DataFrame({"retrieved_contexts": ["['a', 'b']"]}))["retrieved_contexts"].tolist()
    [['a', 'b']]
    """
    raw = Raw({name: rows[name].to_list() for name in rows.columns}, "stream")
    case_cells(raw, Lossy())
    frame = to_frame(raw, Lossy())
    # In a few rows a column of numbers may have none, and would be one of objects.
    numeric = [name for name, kind in rows.schema.items() if kind.is_numeric() and name not in IDS]
    return frame.assign(**{name: pd.to_numeric(frame[name]) for name in numeric})
