"""Scores and cases: any table of samples → the canonical frame."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
from pydantic import ValidationError

from ragnb.errors import RagnbError, listing, near_names, place, unknown
from ragnb.readers.cells import as_id
from ragnb.readers.columns import case_cells, declared, to_frame
from ragnb.readers.failures import name_log_flag
from ragnb.readers.formats import Source, load
from ragnb.readers.frames import native
from ragnb.readers.guard import record_by_record, told_in_words
from ragnb.readers.ids import identify
from ragnb.readers.layouts import declare_scales, lay_out
from ragnb.readers.lists import parse_list
from ragnb.readers.mean_rows import leave_out_means
from ragnb.readers.metrics import (
    known_metric,
    note_candidates,
    settle_directions,
    settle_metrics,
)
from ragnb.readers.names import WORDS, meanings, name_columns, plain
from ragnb.readers.nested import read_lists
from ragnb.readers.owner import (
    is_repeat_name,
    name_owner,
    named_systems,
    stack_pairs,
    tell_repeats,
)
from ragnb.readers.raw import (
    Lossy,
    Raw,
    Values,
    absent,
    check_columns,
    collector_paused,
    text_series,
)
from ragnb.readers.reading import Reading
from ragnb.readers.results import spread_results
from ragnb.readers.rows import check_samples
from ragnb.readers.scores import metric_values
from ragnb.readers.tables import NAMELESS
from ragnb.readers.tools.annotations import judged
from ragnb.readers.verdicts import labels_beside, verdicts_beside
from ragnb.schema import (
    METRICS,
    EvalCase,
    Metric,
    MetricLike,
    metric_list,
    missing_fields,
    undeclared_columns,
)

_OF_A_PASSAGE = frozenset(map(plain, WORDS["of_a_passage"]["names"]))


def read_scores(
    source: Source,
    *,
    format: str | None = None,
    strict: bool = False,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    metrics: MetricLike | Iterable[MetricLike] | None = None,
) -> pd.DataFrame:
    """Read scored samples from a file or from memory into the scores frame.

    Parameters
    ----------
    source : path, frame, or records
        CSV, TSV, JSON, JSONL or Parquet, each also ``.gz``; a frame of pandas, Polars, PyArrow, DuckDB or
        PySpark; an object with ``to_pandas()``; a list of dicts or EvalCase.
    format : {"csv", "tsv", "json", "jsonl", "parquet"}, optional
        Where the extension does not say it.
    strict : bool
        Raise at the first line of a JSONL file that holds no record, instead of listing it.
    columns : mapping of column to name, optional
        The caller's own choice of what a column means, before every alias: ``{"prompt": "question"}``.
        A column that maps to itself stays what it is.
    encoding : str, optional
        Of text files; strict UTF-8 (with or without a byte order mark) by default.
    metrics : str, Metric or several, optional
        Metric objects declare columns that ragnb does not know; names select which columns are held to
        their range; None holds every column that METRICS declares.

    Returns
    -------
    DataFrame
        One row per sample: case columns by their canonical names, metrics as floats in their range (NaN is
        missing), other columns as they are, a plain index. ``sample_id`` is text; where there is none it is
        ``"1"``, ``"2"``, … by position, the same for the same question of another ``system``.
        ``attrs["lossy"]`` lists what was changed or not understood (dicts of ``what, column, detail, n``),
        ``attrs["metrics"]``, where a tool's layout knows them, lists range, direction, threshold and number of
        failures of its metrics, which hold wherever the frame is passed, as long as pandas keeps them.
        ``attrs["facts"]`` lists what was found out about metrics, rows and owners (dicts
        of ``metric, fact, value, evidence, open``).
        ``attrs["source"]`` is ``{path, sha256, format, layout, rows, lines, damaged}``:
        the records that the file should hold, and how many of them do not parse, had bytes replaced or are lost;
        of several files, those of the one with the largest share.

    Raises
    ------
    RagnbError
        For a source that is not there, is empty, is of no known format or encoding, holds totals or no
        numbers; for two columns that mean one name; for a metric cell that is not a number or is outside
        its range. The message names file, line (or row) and column.

    Examples
    --------
    >>> frame = read_scores([{"user_input": "Who?", "response": "Ann.", "faithfulness": 1.0}])
    >>> frame.columns.tolist(), frame["sample_id"].tolist()
    (['sample_id', 'question', 'answer', 'faithfulness'], ['1'])
    """
    reading = reading_of_scores(
        source, format=format, strict=strict, columns=columns, encoding=encoding, metrics=metrics
    )
    return reading.with_attrs()


def reading_of_scores(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    metrics: MetricLike | Iterable[MetricLike] | None = None,
    **how: Any,
) -> Reading:
    """Read as `read_scores` does; `how` are its other arguments."""
    reading = _read(source, columns, metrics, **how)
    frame = reading.frame
    has_scores = any(
        pd.api.types.is_numeric_dtype(frame[name]) or "__" in name for name in frame.columns
    )
    if not has_scores:
        raise RagnbError(
            f"{place(reading.origin['path'] or 'the frame')}has no column of scores (columns: "
            f"{listing(frame.columns)}); cases without scores are read by read_cases"
        )
    return reading


def read_cases(
    source: Source,
    *,
    format: str | None = None,
    strict: bool = False,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    metrics: MetricLike | Iterable[MetricLike] | None = None,
) -> pd.DataFrame:
    """Read evaluation cases: questions, answers, contexts and references, with or without scores.

    A table with one row per passage is folded to one row per sample.

    Parameters
    ----------
    source, format, strict, columns, encoding, metrics
        As for `read_scores`.

    Returns
    -------
    DataFrame
        As `read_scores` returns. A context column holds lists of texts; None means that the system has not
        run, an empty list that it retrieved nothing. Where passages were objects, ``retrieved_doc_names`` holds
        the documents that they name and ``retrieved_fields`` what else they hold, an entry a passage.

    Raises
    ------
    RagnbError
        As `read_scores`; and where there is no question.

    Examples
    --------
    >>> read_cases([{"q": "Who?", "contexts": "['Ann.', 'Bo.']"}])["retrieved_contexts"].tolist()
    [['Ann.', 'Bo.']]
    """
    reading = reading_of_cases(
        source, format=format, strict=strict, columns=columns, encoding=encoding, metrics=metrics
    )
    return reading.with_attrs()


def reading_of_cases(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    metrics: MetricLike | Iterable[MetricLike] | None = None,
    **how: Any,
) -> Reading:
    """Read as `read_cases` does; `how` are its other arguments."""
    return _read(source, columns, metrics, cases=True, **how)


def read_table(
    source: Source, *, columns: Mapping[str, str] | None = None, encoding: str | None = None
) -> Reading:
    """Read any table as far as it can be read, to say what it is: no metric is held to its range.

    Of two columns that mean one name, the first is picked.

    Examples
    --------
    >>> read_table([{"q": "Who?", "faithfulness": 5}]).frame["faithfulness"].tolist()
    [5]
    """
    try:
        reading = _read(source, columns, None, loose=True, encoding=encoding)
    except RagnbError as error:
        picks = dict(columns or {})
        # The refusal of two columns of one meaning proposes one of them; several such pairs take several readings.
        proposed = re.search(r"; pick one, such as columns=(\{.*\})$", str(error))
        if proposed:
            picks |= ast.literal_eval(proposed[1])
        if picks == (columns or {}):
            raise
        return read_table(source, columns=picks, encoding=encoding)
    reading.picks = dict(columns or {})
    return reading


@collector_paused()
def _read(
    source: Source,
    columns: Mapping[str, str] | None,
    metrics: MetricLike | Iterable[MetricLike] | None,
    cases: bool = False,
    loose: bool = False,
    **how: Any,
) -> Reading:
    with told_in_words(source if isinstance(source, str | Path) else None):
        return _read_guarded(source, columns, metrics, cases, loose, **how)


def _read_guarded(
    source: Source,
    columns: Mapping[str, str] | None,
    metrics: MetricLike | Iterable[MetricLike] | None,
    cases: bool,
    loose: bool,
    **how: Any,
) -> Reading:
    """Read a source as `_read` does; damage may raise anything."""
    report = Lossy()
    chosen = metric_list(metrics)
    declared_metrics = [metric for metric in chosen or () if isinstance(metric, Metric)]
    loaded, origin = load(source, report, **how)
    raw, origin["layout"] = record_by_record(loaded, report, origin, _laid_out)
    # Verdicts and labels beside a score are found by its own name, so before columns get canonical names.
    verdicts_beside(raw)
    labels_beside(raw)
    settle_directions(raw, str(origin["layout"]), declared_metrics)
    tools = _of_tool(raw, declared_metrics)
    if any(row["detail"] == NAMELESS for row in report.rows):
        _refuse_title(raw)
    names_in_file = set(raw.columns)
    names = name_columns(raw, report, picks=columns, metrics=[*declared_metrics, *tools])
    # Messages and steps say what was asked and answered, where no column does.
    if loose or not {"question", "answer"} <= raw.columns.keys():
        read_lists(raw, report)
    is_totals = _settle_rows(raw, report, names_in_file, cases=cases, loose=loose)
    if cases:
        raw.need("question")
    known = declared(chosen, list(raw.columns))
    if not known and not tools:
        name_log_flag(raw, report)
    # A caller's choice of columns may have given the column of a tool's metric another name.
    tools = [metric for metric in tools if metric.name in raw.columns]
    settled = settle_metrics(raw, known, tools, declared_metrics, names, report, loose=loose)
    # A tool's metric that is out of range is kept as a plain column, and so is one of METRICS where a file is only
    # looked at (`loose`); else `to_frame` refuses that.
    tools = [metric for metric in settled.tools if _fits(raw, metric, report)]
    known = {
        name: metric
        for name, metric in settled.known.items()
        if not loose or _fits(raw, metric, report)
    }
    metrics_of_frame = known | {metric.name: metric for metric in tools}
    frame = to_frame(raw, report, metrics_of_frame)
    scales = _scales_and_facts(frame, raw, metrics_of_frame, names, report)
    return Reading(
        frame,
        origin | {"rows": len(frame)},
        report.rows,
        scales,
        raw.facts,
        # A scale is proposed that a refusal would propose too.
        spans=dict(raw.spans) if loose else {},
        is_totals=is_totals,
    )


def _settle_rows(
    raw: Raw, report: Lossy, names_in_file: set[str], *, cases: bool, loose: bool
) -> bool:
    """Make each row an answer: without rows of means, with its id and its owner, passages in it.

    Parameters
    ----------
    names_in_file : set of str
        The names of the columns as they are in the file.
    cases, loose
        As in `_read`.

    Returns
    -------
    bool
        Whether the rows are means and totals.

    Raises
    ------
    RagnbError
        For rows that are means and totals, unless they are only looked at (`loose`).
    """
    identify(raw, report)
    totals = leave_out_means(raw, report)
    try:
        check_samples(raw, totals)
    except RagnbError as error:
        if not loose or error is raw.uneven:
            raise
        is_totals = True
    else:
        is_totals = False
    # Before the owner is looked for: rows of passages repeat a question, and no system tells them apart.
    fold(raw, names_in_file, report, scores=not cases)
    name_owner(raw, report)
    tell_repeats(raw, report)
    has_ids = "sample_id" in raw.columns and any(
        as_id(cell) is not None for cell in raw.columns["sample_id"]
    )
    if not has_ids:
        raw.columns.pop("sample_id", None)
        raw.columns = {"sample_id": text_series(made_ids(raw)), **raw.columns}
        report.add("made", "sample_id", "position of the question", len(raw))
    case_cells(raw, report)
    n_bare = _rows_of_no_text(raw)
    # Where no row has one, the table just has no texts.
    if n_bare < len(raw):
        why = "rows with neither question nor answer: a mean or total?"
        report.add("kept", None, why, n_bare)
    return is_totals


def _rows_of_no_text(raw: Raw) -> int:
    """Count the rows that have no question, answer or passage."""
    texts = {}
    for name in {"question", "answer", "retrieved_contexts"} & raw.columns.keys():
        cells = raw.columns[name]
        # Lists of passages stay objects; a series keeps its kind.
        texts[name] = pd.Series(cells, dtype=getattr(cells, "dtype", object))
    return int(pd.DataFrame(texts).isna().all(axis=1).sum())


def _scales_and_facts(
    frame: pd.DataFrame,
    raw: Raw,
    metrics: Mapping[str, Metric],
    names: Mapping[str, str],
    report: Lossy,
) -> list[dict[str, Any]]:
    """Return the scales that a tool's layout declares; note what the other columns of numbers may be."""
    note_candidates(raw, frame, list(metrics))
    for name in undeclared_columns(frame):
        # At least 90 of 100: a misspelling of the name, not another word.
        for near in near_names(name, [*METRICS], most=1, least=90):
            step = f"near {near!r}; columns={{{name!r}: {near!r}}} makes it that metric"
            report.add("kept", name, step, len(frame))
    scales = []
    for name, scale in raw.scales.items():
        metric = names.get(name, name)
        if metric not in metrics:
            continue
        failed = frame.get(f"{metric}__status", pd.Series()).eq("failed")
        scales.append({"metric": metric, **scale, "n_failed": int(failed.sum())})
    return scales


def _laid_out(raw: Raw, report: Lossy) -> str:
    """Convert a tool's layout to one row per sample, declare its scales, and return its name."""
    layout = lay_out(raw, report)
    if layout in ("langfuse", "phoenix"):
        judged(raw, report)
    spread_results(raw, report)
    stack_pairs(raw, report)
    declare_scales(raw, layout)
    return layout


def _refuse_title(raw: Raw) -> None:
    """Refuse a table whose columns are named in its second row, below a title or the names of groups."""
    first_row = [str(cells[0]) for cells in raw.columns.values() if len(raw)]
    names = meanings(first_row)
    # One word that ragnb knows may also be a cell of the first sample.
    if len(names) > 1:
        raise RagnbError(
            f"{place(raw.file)}the names of columns ({listing(names.values())}) are not in the first row; "
            "write all names there, without a title above and without merged cells"
        )


def _of_tool(raw: Raw, own: Iterable[Metric]) -> list[Metric]:
    """Return the metrics that a tool's layout declares, but for those of the caller and of METRICS.

    On another scale than the metric of METRICS that its name means, a tool's metric keeps its own name.
    """
    metrics = []
    of_caller = {metric.name for metric in own}
    for name, scale in raw.scales.items():
        if name in of_caller:
            continue
        known = known_metric(name)
        metric_name = name
        if known and (known.low, known.high) == (scale["low"], scale["high"]):
            if known.better == scale["better"]:
                continue
            metric_name = known.name  # only its direction differs
        low = scale["low"]
        high = scale["high"]
        with suppress(ValidationError):  # a name that no metric can have
            metrics.append(Metric(metric_name, low, high, scale["better"], role="quality"))
    return metrics


def _fits(raw: Raw, metric: Metric, report: Lossy) -> bool:
    """Whether all cells of a metric are numbers in its range; where they are not, the report says why."""
    try:
        metric_values(raw, metric, Lossy())
    except RagnbError as error:
        # Of "file, line 3: column 'x': found 'a', expected a number; write …" only what is wrong.
        _, _, problem = str(error).partition(f"{metric.name!r}: ")
        why, _, _ = problem.partition("; write")
        step = f"no metric in {metric.low:g}..{metric.high:g}: {why}"
        report.add("kept", metric.name, step, len(raw))
        return False
    return True


def made_ids(raw: Raw) -> Values:
    """Number the samples as they appear; the same question of another system or repeat is the same sample."""
    keys = [name for name in ("system", "repeat") if name in raw.columns]
    if not keys:
        return [str(row + 1) for row in range(len(raw))]
    texts = {name: list(map(str, raw.cells(name))) for name in ("question", *keys)}
    rows = pd.DataFrame(texts, dtype=object)
    # A question that one system answers twice is two samples: its nth row is the same sample in every system.
    nth = rows.groupby(["question", *keys], sort=False).cumcount()
    samples = rows.groupby([rows["question"], nth], sort=False).ngroup()
    return [str(sample + 1) for sample in samples]


def fold(raw: Raw, source_names: set[str], report: Lossy, *, scores: bool) -> None:
    """Group rows of one question (of one system and run), if the file has passages as rows.

    Nothing is folded where question, answer or a metric differ within a sample; of scores, where any column does
    that says nothing of a passage.
    """
    key = "sample_id" if "sample_id" in raw.columns else "question"
    of_passage = {name for name in source_names if plain(name) in _OF_A_PASSAGE}
    if not of_passage or not {key, "retrieved_contexts"} <= {*raw.columns}:
        return
    groups = _rows_of_samples(raw, key, of_passage)
    if len(groups) == len(raw) or _holds_lists(raw.columns["retrieved_contexts"]):
        return
    one_per_sample = {"question", "answer", "ground_truth_answer", *METRICS}
    folded: dict[str, list[object]] = {}
    for name, cells in raw.columns.items():
        filled = [
            [cells[row] for row in rows if not absent(cells[row]) and cells[row] != ""]
            for rows in groups
        ]
        if name == "retrieved_contexts" or name in of_passage:
            folded[name] = [*filled]
        elif all(len(set(map(str, values))) <= 1 for values in filled):
            folded[name] = [next(iter(values), None) for values in filled]
        elif scores or name in one_per_sample:
            return
        else:
            folded[name] = [*filled]
    why = "one row a passage, folded to one row a sample"
    report.add("mapped", "retrieved_contexts", why, len(raw))
    raw.keep([rows[0] for rows in groups])  # for the lines, as the columns are replaced
    raw.columns = folded


def _rows_of_samples(raw: Raw, key: str, of_passage: set[str]) -> list[list[int]]:
    """Return the rows of each sample: those of one question, one system and one run."""
    of_run = {key, "system", "repeat", *named_systems(raw.columns)} - of_passage
    names = [name for name in raw.columns if name in of_run or is_repeat_name(name)]
    groups: dict[tuple[str, ...], list[int]] = {}
    for row, cells in enumerate(zip(*(raw.columns[name] for name in names), strict=True)):
        groups.setdefault(tuple(map(str, cells)), []).append(row)
    return list(groups.values())


def _holds_lists(cells: Values) -> bool:
    """Whether cells hold several passages each, so that a row is no passage."""
    return any(
        isinstance(cell, list)
        or (isinstance(cell, str) and cell.lstrip()[:1] == "[" and parse_list(cell))
        for cell in cells
    )


def applicable_metrics(
    cases: pd.DataFrame | Iterable[EvalCase], *, metrics: Iterable[MetricLike] | None = None
) -> pd.DataFrame:
    """Return which metrics apply to the cases, and the missing fields of those that do not.

    Parameters
    ----------
    cases : DataFrame or iterable of EvalCase
        One row per case, canonical column names, of any engine.
    metrics : iterable of str or Metric, optional
        Which to look at; by default those of METRICS that need fields and are neither rubric dimensions nor
        checks of wording.

    Returns
    -------
    DataFrame
        One row per metric and pattern of missing fields: ``metric, missing_fields`` (tuple, empty where it
        applies), ``n_cases``, ``applies``.

    Raises
    ------
    RagnbError
        For a name that METRICS does not know, and for what holds no cases.

    Examples
    --------
    >>> table = applicable_metrics([EvalCase(question="Who?", answer="Ann.", retrieved_contexts=["Ann."])])
    >>> sorted(table.loc[table.applies, "metric"])
    ['answer_relevancy', 'context_relevance', 'faithfulness']
    """
    frame = _case_frame(cases)
    named = metric_list(metrics)
    for item in named or ():
        if isinstance(item, str) and item not in METRICS:
            raise unknown("metric", item, list(METRICS))
    if named is None:
        chosen = [
            metric
            for metric in METRICS.values()
            if metric.needs and metric.family not in ("rubric", "wording")
        ]
    else:
        chosen = [item if isinstance(item, Metric) else METRICS[item] for item in named]
    rows = []
    for metric in chosen:
        n_cases_of = Counter(missing_fields(frame, metric.needs))
        # The fewest missing fields first, so that the cases to which a metric applies lead the list.
        for missing in sorted(n_cases_of, key=lambda fields: (len(fields), fields)):
            row = {
                "metric": metric.name,
                "missing_fields": missing,
                "n_cases": n_cases_of[missing],
                "applies": not missing,
            }
            rows.append(row)
    return pd.DataFrame(rows, columns=["metric", "missing_fields", "n_cases", "applies"])


def _case_frame(cases: Any) -> pd.DataFrame:
    """Return cases, a frame of any engine or EvalCases, as a pandas frame."""
    if isinstance(cases, pd.DataFrame):
        check_columns(cases)
        return cases
    # A table of PyArrow can have two columns of one name, which `native` refuses.
    if hasattr(cases, "column_names"):
        table = native(cases)
    else:
        table = nw.from_native(cases, pass_through=True)
    if isinstance(table, nw.DataFrame | nw.LazyFrame):
        return pd.DataFrame(table.lazy().collect().to_dict(as_series=False))
    if isinstance(cases, Iterable) and not isinstance(cases, str | Mapping):
        rows = list(cases)
    else:
        rows = [cases]
    if not all(isinstance(row, EvalCase) for row in rows):
        if isinstance(cases, str):
            given = repr(cases)
            path = given
        else:
            given = type(cases).__name__
            path = "path"
        raise RagnbError(
            f"{given} is neither a frame of cases nor a list of EvalCase; "
            f"rn.read_cases({path}) makes a frame of a file, or of a list of records"
        )
    return pd.DataFrame([case.model_dump() for case in rows], columns=list(EvalCase.model_fields))
