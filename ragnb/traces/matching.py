"""Which trace meets which question of gold: by id, else by the text, each at most once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import narwhals as nw
import pandas as pd

from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, listing, outside
from ragnb.polars import pl
from ragnb.readers.executors import mapped, on_spark, reduced
from ragnb.readers.frames import canonical
from ragnb.readers.traces import read_gold
from ragnb.traces import columns
from ragnb.weights import (
    collected,
    column_names,
    opened,
)
from ragnb.weights.columns import count_where

FEWEST = 10  # questions that a gold set should have
FEWEST_OF_A_KIND = 3  # answerable questions that it should have, and as many unanswerable ones
MOST_LISTED = 50  # names behind each count of a report
_UNMET = (
    "unmatched",
    "gold_without_trace",
    "repeated_questions",
    "repeated_ids",
    "question_differs",
)


@dataclass(frozen=True)
class Match:
    """The gold row of each trace (null for none), the keys of both (see `keys_of`), and the joining columns."""

    rows: pl.Series
    traces: pl.DataFrame
    gold: pl.DataFrame
    by: str


def keys_of(frame: Any, by_id: bool = True) -> pl.DataFrame:
    """Return ``id, question, name`` of each row: the name is the id (ignored without `by_id`), else the question.

    Examples
    --------
    >>> keys_of(pd.DataFrame({"sample_id": [7, None], "question": ["x", "y"]})).rows()
    [('7', 'x', '7'), (None, 'y', 'y')]
    """
    ids = columns.ids(frame, "sample_id" if by_id else "")
    keys = pl.DataFrame({"id": ids, "question": columns.texts(frame, "question")})
    return keys.with_columns(name=pl.coalesce("id", "question", pl.lit("")))


def match(traces: Any, gold: Any, join: str) -> Match:
    """Join traces to gold by ``sample_id`` where both have it, else by question; of a repeated key, the last row.

    `join` is one of `label_traces`, or ``id`` where other rows are known to meet gold by it.

    Raises
    ------
    RagnbError
        For gold without ``answerable``, and where both share no key.

    Examples
    --------
    >>> gold = pd.DataFrame({"sample_id": ["a", "b"], "question": ["x", "y"], "answerable": True})
    >>> match(pd.DataFrame({"question": ["y", "z"]}), gold, "auto").rows.to_list()
    [1, None]
    """
    if "answerable" not in gold.columns:
        raise RagnbError(
            f"gold has no column 'answerable'; {did_you_mean('answerable', list(gold.columns))}"
        )
    if not any(key in traces.columns and key in gold.columns for key in ("sample_id", "question")):
        raise RagnbError(
            "traces and gold share neither 'sample_id' nor 'question'; rename one in both"
        )
    of_traces = keys_of(traces, join != "question")
    of_gold = keys_of(gold, join != "question")
    gold_ids = of_gold["id"].drop_nulls()
    by_id = join == "id" or bool(of_traces["id"].is_in(gold_ids.implode()).any())
    if not by_id:
        trace_ids = of_traces["id"].drop_nulls()
        if len(gold_ids) and len(trace_ids):
            first_of_traces = listing(sorted(trace_ids.unique()), 3)
            first_of_gold = listing(sorted(gold_ids.unique()), 3)
            text = (
                f"no sample_id of the traces ({first_of_traces}) is in gold ({first_of_gold}); "
                "they are joined by question text"
            )
            warnings.warn(text, RagnbWarning, stacklevel=outside())
        of_traces = keys_of(traces, by_id=False)
        of_gold = keys_of(gold, by_id=False)
    rows = _gold_rows(of_traces, of_gold)
    return Match(rows, of_traces, of_gold, "sample_id" if by_id else "question")


def _gold_rows(of_traces: pl.DataFrame, of_gold: pl.DataFrame) -> pl.Series:
    """Return the row of gold that each trace meets, by id, else by question; null for none."""
    table = of_gold.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    last_of_id = table.drop_nulls("id").unique("id", keep="last").select("id", by_id="row")
    last_of_question = (
        table.drop_nulls("question")
        .unique("question", keep="last")
        .select("question", gold_id="id", by_question="row")
    )
    met = of_traces.join(last_of_id, on="id", how="left", maintain_order="left")
    met = met.join(last_of_question, on="question", how="left", maintain_order="left")
    # By text, a row with an id of its own takes only gold that has none.
    is_free = pl.col("id").is_null() | pl.col("gold_id").is_null()
    by_question = pl.when(is_free).then(pl.col("by_question"))
    return met.select(pl.coalesce("by_id", by_question)).to_series()


def join_counts(traces: Any, met: Match | None) -> dict[str, Any]:
    """Return the join report: counts, and the first of the names behind each count."""
    by = None
    n_gold = 0
    n_matched = 0
    unmet: Mapping[str, Sequence[str] | pl.Series] = dict.fromkeys(_UNMET, ())
    if met is None:
        names = keys_of(traces)["name"]
    else:
        names = met.traces["name"]
        by = met.by
        n_gold = len(met.gold)
        n_matched = met.rows.count()
        unmet = _unmet(met)
    # A question that the same system (and repeat) has answered before.
    run = {
        name: columns.texts(traces, name) for name in ("system", "repeat") if name in traces.columns
    }
    questions = pl.DataFrame({"name": names} | run)
    is_again = questions.select(~pl.struct(pl.all()).is_first_distinct()).to_series()
    listed = {**unmet, "duplicate_traces": names.filter(is_again)}

    report: dict[str, Any] = {"by": by, "n_traces": len(names), "n_gold": n_gold}
    report["n_matched"] = n_matched
    for name, items in listed.items():
        report[f"n_{name}"] = len(items)
    for name, items in listed.items():
        report[name] = list(items[:MOST_LISTED])
    return report


def _unmet(met: Match) -> dict[str, Sequence[str] | pl.Series]:
    """Return the names behind each of `_UNMET`."""
    reached = _reached(met)
    differs = met.gold["question"].gather(met.rows) != met.traces["question"]
    return {
        "unmatched": met.traces["name"].filter(met.rows.is_null()),
        "gold_without_trace": met.gold["name"].filter(~met.gold["name"].is_in(reached.implode())),
        "repeated_questions": repeats(met.gold["question"]),
        "repeated_ids": repeats(met.gold["id"]),
        "question_differs": met.traces["name"].filter(differs),
    }


def _reached(met: Match) -> pl.Series:
    """Return the names of the gold questions that some trace met."""
    return met.gold["name"].gather(met.rows.drop_nulls().unique())


def repeats(items: pl.Series) -> list[str]:
    """Return every item beyond the first of its name.

    Examples
    --------
    >>> repeats(columns.as_series(["a", "b", "a", "a", None, None]))
    ['a', 'a']
    """
    keys = items.drop_nulls()
    return keys.filter(~keys.is_first_distinct()).to_list()


def warn_of_repeats(met: Match) -> None:
    """Warn if a trace was joined by a key that occurs more than once in the gold set."""
    # The row of gold of each trace that met one.
    reached = met.gold.select(pl.all().gather(met.rows.drop_nulls()))
    trace_ids = met.traces["id"].filter(met.rows.is_not_null())
    is_by_id = (trace_ids == reached["id"]).fill_null(False)
    _warn_of_repeated(
        met.gold["question"],
        reached["question"].filter(~is_by_id),
        what="question",
        step="give traces and gold a sample_id",
    )
    _warn_of_repeated(
        met.gold["id"],
        reached["id"].filter(is_by_id),
        what="sample_id",
        step="make every sample_id unique",
    )


def _warn_of_repeated(in_gold: pl.Series, used: pl.Series, *, what: str, step: str) -> None:
    """Warn of the keys that occur more than once in gold and that traces were joined by."""
    names = sorted(set(repeats(in_gold)) & set(used.unique()))
    if names:
        message = f"gold holds {len(names)} {what}(s) more than once ({listing(names, 3)})"
        warnings.warn(
            f"{message}; the last one is used: {step}", RagnbWarning, stacklevel=outside()
        )


Join = Literal["auto", "question"]
Frame = TypeVar("Frame")


def gold_frame(gold: Any) -> Any:
    """Return gold, a frame of any engine, a file or records, as a frame to work on."""
    if gold is None:
        return None
    if isinstance(gold, str | os.PathLike | list):
        return pd.DataFrame(read_gold(gold))
    return columns.workable(canonical(gold, reader="read_gold"))


def answer_counts(labelled: Any) -> dict[str, int]:
    """Return how many answers are missing, empty, cite what cannot be taken whole, and refuse in part.

    Parameters
    ----------
    labelled : DataFrame of any engine but pandas
        With what `label_traces` adds.

    Examples
    --------
    >>> made = pl.DataFrame({"answer": ["", None], "answered": [True, None], "citations_flagged": False})
    >>> answer_counts(made.with_columns(partial=False))
    {'n_without_answer': 1, 'n_empty': 1, 'n_citations_flagged': 0, 'n_partial': 0}
    """
    blank = nw.col("answer").str.strip_chars() == ""
    counts = {
        "n_without_answer": nw.col("answered").is_null(),
        "n_empty": nw.col("answered") & blank,
        "n_citations_flagged": nw.col("citations_flagged"),
        "n_partial": nw.col("partial"),
    }
    return tally(labelled, counts)


def tally(frame: Any, conditions: Mapping[str, nw.Expr]) -> dict[str, int]:
    """Return how many rows meet each condition, counted on their engine."""
    counts = [count_where(condition, name) for name, condition in conditions.items()]
    counted = collected(opened(frame).select(*counts))
    # In SQL, and so in DuckDB and Spark, a sum over no rows is null.
    return {name: int(counted[name].item() or 0) for name in conditions}


def join_report(traces: Any, *, gold: Any, join: Join = "auto") -> dict[str, Any]:
    """Return how traces and gold meet: counts, and the first 50 names behind each.

    Parameters
    ----------
    traces, gold, join
        As `label_traces` takes them.

    Returns
    -------
    dict
        ``by`` (``sample_id`` or ``question``), ``n_traces``, ``n_gold``, ``n_matched``, and for each of
        ``unmatched`` (traces that are not in gold), ``gold_without_trace``, ``repeated_questions`` and
        ``repeated_ids`` of gold (each beyond the first), ``question_differs`` (met by id, with another
        question), ``duplicate_traces`` (of one system and repeat) the count ``n_…`` and the names.

    Examples
    --------
    >>> import pandas as pd
    >>> gold = pd.DataFrame({"question": ["x", "y"], "answerable": [True, False]})
    >>> report = join_report(pd.DataFrame({"question": ["x", "z"], "answer": ["a", "b"]}), gold=gold)
    >>> report["unmatched"], report["gold_without_trace"]
    (['z'], ['y'])
    """
    frame = canonical(traces, reader="read_traces")
    gold = gold_frame(gold)
    if on_spark(frame):
        return _report_on_spark(frame, gold, join_on_spark(frame, gold, join))
    frame = columns.workable(frame)
    met = None if gold is None else match(frame, gold, join)
    return join_counts(frame, met)


def join_on_spark(traces: Any, gold: Any, join: Join) -> str:
    """Return how the batches of PySpark's traces are joined: by id only if an id of gold is in any of them."""
    if gold is None or join == "question":
        return "question"
    if "sample_id" not in column_names(traces) or "sample_id" not in column_names(gold):
        return "question"
    gold_ids = columns.ids(gold, "sample_id").drop_nulls().implode()
    some_met = reduced(
        traces.select("sample_id"),
        lambda part: columns.ids(part, "sample_id").is_in(gold_ids).any(),
        any,
    )
    if some_met:
        return "id"
    return "question"


class _PartReport(NamedTuple):
    """The join report of some batches, and the names of the gold questions that their rows met."""

    report: dict[str, Any]
    reached: set[str]


# What adds up over batches. The other counts are of gold, which is the same in every batch, or are taken over all
# rows.
_SUMS = ("n_traces", "n_matched", "n_unmatched", "n_question_differs")
_LISTS = ("unmatched", "question_differs")


def _merged_reports(parts: Sequence[_PartReport]) -> _PartReport:
    """Return the report of all batches; what `_report_on_spark` counts over all rows is left as it is."""
    report = dict(parts[0].report)
    for name in _SUMS:
        report[name] = sum(part.report[name] for part in parts)
    for name in _LISTS:
        items = [item for part in parts for item in part.report[name]]
        report[name] = items[:MOST_LISTED]
    return _PartReport(report, set().union(*(part.reached for part in parts)))


def _report_on_spark(traces: Any, gold: Any, join: str) -> dict[str, Any]:
    """Return the join report of PySpark's traces, counted on the executors."""
    keys = ("sample_id", "question", "system", "repeat")
    have = [name for name in keys if name in column_names(traces)]
    rows = traces.select(*have)

    def part_report(part: pl.DataFrame) -> _PartReport:
        if gold is None:
            return _PartReport(join_counts(part, None), set())
        met = match(part, gold, join)
        return _PartReport(join_counts(part, met), set(_reached(met)))

    def names_and_runs(part: pl.DataFrame) -> pl.DataFrame:
        run = {name: columns.texts(part, name) for name in have if name in ("system", "repeat")}
        return keys_of(part, gold is None or join == "id").select("name").with_columns(**run)

    whole = reduced(rows, part_report, _merged_reports)
    report: dict[str, Any] = whole.report
    if gold is not None:
        gold_names = keys_of(gold, join == "id")["name"]
        without_trace = [name for name in gold_names if name not in whole.reached]
        report["n_gold_without_trace"] = len(without_trace)
        report["gold_without_trace"] = without_trace[:MOST_LISTED]
    # A question may come again in another batch: repeats are counted over all rows.
    questions = nw.from_native(mapped(rows, names_and_runs))
    sizes = questions.group_by(*questions.collect_schema().names()).agg(nw.len().alias("n"))
    repeated = sizes.filter(nw.col("n") > 1)
    n_duplicates = collected(repeated.select((nw.col("n") - 1).sum())).item()
    first = collected(repeated.select("name").sort("name").head(MOST_LISTED))["name"].to_list()
    return report | {"n_duplicate_traces": int(n_duplicates or 0), "duplicate_traces": first}
