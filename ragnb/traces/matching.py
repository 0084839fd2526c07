"""Which trace meets which question of gold: by id, else by the text, each at most once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

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

FEWEST = 10
FEWEST_OF_A_KIND = 3
MOST_LISTED = 50
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
    ours, theirs = (keys_of(frame, join != "question") for frame in (traces, gold))
    known = theirs["id"].drop_nulls()
    by_id = join == "id" or bool(ours["id"].is_in(known.implode()).any())
    if not by_id:
        if len(known) and ours["id"].null_count() < len(ours):
            own, golden = (
                listing(sorted(keys["id"].drop_nulls().unique()), 3) for keys in (ours, theirs)
            )
            text = f"no sample_id of the traces ({own}) is in gold ({golden}); they are joined by question text"
            warnings.warn(text, RagnbWarning, stacklevel=outside())
        ours, theirs = (keys_of(frame, by_id=False) for frame in (traces, gold))
    table = theirs.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    last_id, last_question = (
        table.drop_nulls(key)
        .unique(key, keep="last")
        .select(key, gold_id="id", **{f"by_{key}": "row"})
        for key in ("id", "question")
    )
    met = ours.join(last_id.drop("gold_id"), on="id", how="left", maintain_order="left")
    met = met.join(last_question, on="question", how="left", maintain_order="left")
    # By text, a row with an id of its own takes only gold that has none.
    free = pl.col("id").is_null() | pl.col("gold_id").is_null()
    rows = met.select(pl.coalesce("by_id", pl.when(free).then(pl.col("by_question")))).to_series()
    return Match(rows, ours, theirs, "sample_id" if by_id else "question")


def join_counts(traces: Any, met: Match | None) -> dict[str, Any]:
    """Return the join report: counts, and the first of the names behind each count."""
    keys = keys_of(traces) if met is None else met.traces
    names = keys["name"]
    unmet: Mapping[str, Sequence[str] | pl.Series] = dict.fromkeys(_UNMET, ())
    if met:
        unmet = _unmet(met)
    # A question that the same system (and repeat) has answered before.
    run = {
        name: columns.texts(traces, name) for name in ("system", "repeat") if name in traces.columns
    }
    again = (
        pl.DataFrame({"name": names} | run)
        .select(~pl.struct(pl.all()).is_first_distinct())
        .to_series()
    )
    listed = {**unmet, "duplicate_traces": names.filter(again)}
    report: dict[str, Any] = {
        "by": met and met.by,
        "n_traces": len(names),
        "n_gold": len(met.gold) if met else 0,
    }
    report["n_matched"] = met.rows.count() if met else 0
    report |= {f"n_{name}": len(items) for name, items in listed.items()}
    return report | {name: list(items[:MOST_LISTED]) for name, items in listed.items()}


def _unmet(met: Match) -> dict[str, Sequence[str] | pl.Series]:
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
    reached = met.gold.select(pl.all().gather(met.rows.drop_nulls()))
    by_id = (met.traces["id"].filter(met.rows.is_not_null()) == reached["id"]).fill_null(False)
    steps = {"question": "give traces and gold a sample_id", "id": "make every sample_id unique"}
    for key, used in (("question", reached.filter(~by_id)), ("id", reached.filter(by_id))):
        names = sorted(set(repeats(met.gold[key])) & set(used[key].unique()))
        if names:
            what = "sample_id" if key == "id" else key
            message = f"gold holds {len(names)} {what}(s) more than once ({listing(names, 3)})"
            warnings.warn(
                f"{message}; the last one is used: {steps[key]}", RagnbWarning, stacklevel=outside()
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
    ones = (count_where(met, name) for name, met in conditions.items())
    counted = collected(opened(frame).select(*ones))
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
    return join_counts(frame, None if gold is None else match(frame, gold, join))


def join_on_spark(traces: Any, gold: Any, join: Join) -> str:
    """Return how the batches of PySpark's traces are joined: by id only if an id of gold is in any of them."""
    if (
        gold is None
        or join == "question"
        or not all("sample_id" in column_names(one) for one in (traces, gold))
    ):
        return "question"
    known = columns.ids(gold, "sample_id").drop_nulls().implode()
    met = reduced(
        traces.select("sample_id"),
        lambda part: columns.ids(part, "sample_id").is_in(known).any(),
        any,
    )
    if met:
        return "id"
    return "question"


def _report_on_spark(traces: Any, gold: Any, join: str) -> dict[str, Any]:
    """Return the join report of PySpark's traces, counted on the executors."""
    asked = [
        name
        for name in ("sample_id", "question", "system", "repeat")
        if name in column_names(traces)
    ]
    sums = ("n_traces", "n_matched", "n_unmatched", "n_question_differs")
    lists = ("unmatched", "question_differs")

    def counted(part: pl.DataFrame) -> tuple[dict[str, Any], set[str]]:
        met = None if gold is None else match(part, gold, join)
        return join_counts(part, met), set() if met is None else set(_reached(met))

    def merged(parts: list[tuple[dict[str, Any], set[str]]]) -> tuple[dict[str, Any], set[str]]:
        reports = [report for report, _ in parts]
        whole = reports[0] | {name: sum(one[name] for one in reports) for name in sums}
        whole |= {
            name: [item for one in reports for item in one[name]][:MOST_LISTED] for name in lists
        }
        return whole, set().union(*(reached for _, reached in parts))

    def named(part: pl.DataFrame) -> pl.DataFrame:
        run = {name: columns.texts(part, name) for name in asked if name in ("system", "repeat")}
        return keys_of(part, gold is None or join == "id").select("name").with_columns(**run)

    report: dict[str, Any]
    report, reached = reduced(traces.select(*asked), counted, merged)
    if gold is not None:
        names = [name for name in keys_of(gold, join == "id")["name"] if name not in reached]
        report |= {"n_gold_without_trace": len(names), "gold_without_trace": names[:MOST_LISTED]}
    runs = nw.from_native(mapped(traces.select(*asked), named))
    again = (
        runs.group_by(*runs.collect_schema().names())
        .agg(nw.len().alias("n"))
        .filter(nw.col("n") > 1)
    )
    n = collected(again.select((nw.col("n") - 1).sum())).item()
    first = collected(again.select("name").sort("name").head(MOST_LISTED))["name"].to_list()
    return report | {"n_duplicate_traces": int(n or 0), "duplicate_traces": first}
