"""Traces meet gold: by sample_id where both have it, else by exact question text; what did not meet is told."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbWarning, listing
from ragnb.traces import columns
from ragnb.traces.columns import Flags, Positions

if TYPE_CHECKING:
    import polars as pl

MOST_LISTED = 50


@dataclass(frozen=True)
class Keys:
    """What the rows of a frame are known by."""

    ids: pl.Series
    questions: pl.Series

    @classmethod
    def of(cls, frame: Any, by_id: bool) -> Keys:
        """Read the keys of a frame; without `by_id` its ids are left aside."""
        return cls(ids_of(frame, "sample_id" if by_id else ""), columns.texts(frame, "question"))

    def names(self) -> pl.Series:
        """Return for each row the key it is joined by."""
        return self.ids.zip_with(self.ids.is_not_null(), self.questions).fill_null("")


def ids_of(frame: Any, name: str) -> pl.Series:
    """Return a column of ids as texts in one form."""
    own = not isinstance(frame, pd.DataFrame) and name in frame.columns
    if own and str(frame.schema[name]).startswith(("String", "Int", "UInt")):
        return columns.names(columns.texts(frame, name))
    return columns.names(columns.column(frame, name))


@dataclass(frozen=True)
class Met:
    """Which row of gold each trace met (−1 for none), and by what."""

    rows: Positions
    ours: Keys
    theirs: Keys
    by: str

    @property
    def matched(self) -> Flags:
        """Which traces met a row of gold."""
        return self.rows >= 0


def match(traces: Any, gold: Any, join: str) -> Met:
    """Return for each trace the row of its gold; of a repeated key the last row counts.

    Examples
    --------
    >>> gold = pd.DataFrame({"sample_id": ["a", "b"], "question": ["x", "y"]})
    >>> match(pd.DataFrame({"question": ["y", "z"]}), gold, "auto").rows
    array([ 1, -1])
    """
    import polars as pl

    ours, theirs = (Keys.of(frame, by_id=join == "auto") for frame in (traces, gold))
    by_id = _share_ids(ours.ids, theirs.ids)
    if not by_id:
        ours, theirs = (Keys(keys.ids.clear(len(keys.ids)), keys.questions) for keys in (ours, theirs))
    table = pl.DataFrame({"id": theirs.ids, "q": theirs.questions}).with_row_index("row")
    last_id = table.drop_nulls("id").unique("id", keep="last").select("id", "row")
    last_q = table.drop_nulls("q").unique("q", keep="last")
    met = pl.DataFrame({"id": ours.ids, "q": ours.questions})
    for key, rows in (("id", last_id), ("q", last_q.select("q", "id", by_q="row"))):
        met = met.join(rows, on=key, how="left", maintain_order="left")
    # By text, a row with an id of its own takes only gold that has none.
    free = pl.col("id").is_null() | pl.col("id_right").is_null()
    found = met.select(pl.coalesce("row", pl.when(free).then(pl.col("by_q"))).cast(pl.Int64).fill_null(-1))
    return Met(found.to_series().to_numpy(), ours, theirs, "sample_id" if by_id else "question")


def _share_ids(ours: pl.Series, theirs: pl.Series) -> bool:
    known = theirs.drop_nulls()
    met = bool(ours.is_in(known.implode()).any())
    if not met and len(known) and ours.null_count() < len(ours):
        own, gold = (listing(sorted(ids.drop_nulls().unique()), 3) for ids in (ours, theirs))
        text = f"no sample_id of the traces ({own}) is in gold ({gold}); they are joined by question text"
        warnings.warn(text, RagnbWarning, stacklevel=5)
    return met


def report_of(traces: Any, met: Met | None) -> dict[str, Any]:
    """Return the join report: counts, and the first of the names behind each count."""
    ours = Keys.of(traces, True) if met is None else met.ours
    names = ours.names()
    none: Mapping[str, Sequence[str] | pl.Series] = dict.fromkeys(_UNMET, ())
    told = {**(_unmet(met, names) if met else none), "duplicate_traces": names.filter(_again(traces, names))}
    counts: dict[str, Any] = {"by": met and met.by, "n_traces": len(names)}
    counts["n_gold"] = len(met.theirs.questions) if met else 0
    counts["n_matched"] = int(met.matched.sum()) if met else 0
    counts |= {f"n_{name}": len(items) for name, items in told.items()}
    return counts | {name: list(items[:MOST_LISTED]) for name, items in told.items()}


_UNMET = ("unmatched", "gold_without_trace", "repeated_questions", "repeated_ids", "question_differs")


def _unmet(met: Met, names: pl.Series) -> Mapping[str, Sequence[str] | pl.Series]:
    gold_names = met.theirs.names()
    reached = set(gold_names.gather(np.unique(met.rows[met.matched])))
    rows = np.where(met.matched, met.rows, 0)
    asked = met.theirs.questions.gather(rows) if len(gold_names) else met.ours.questions
    differs = (asked != met.ours.questions).fill_null(False).to_numpy() & met.matched
    return {
        "unmatched": names.filter(~met.matched),
        "gold_without_trace": [name for name in gold_names.to_list() if name not in reached],
        "repeated_questions": repeats(met.theirs.questions),
        "repeated_ids": repeats(met.theirs.ids),
        "question_differs": names.filter(differs),
    }


def repeats(items: pl.Series) -> list[str]:
    """Return every item beyond the first of its name.

    Examples
    --------
    >>> repeats(columns.as_series(["a", "b", "a", "a", None, None]))
    ['a', 'a']
    """
    held = items.drop_nulls()
    return held.filter(~held.is_first_distinct()).to_list()


def _again(traces: Any, names: pl.Series) -> pl.Series:
    """Return which traces answer a question that the same system (and repeat) has answered before."""
    import polars as pl

    parts = {c: columns.texts(traces, c) for c in ("system", "repeat") if c in traces.columns}
    keys = pl.DataFrame({"name": names} | parts)
    return keys.select(~pl.struct(pl.all()).is_first_distinct()).to_series()


def warn_of_repeats(met: Met) -> None:
    """Warn where a trace met gold by a key that gold holds more than once."""
    twice = {"question": met.theirs.questions, "sample_id": met.theirs.ids}
    twice = {what: keys.filter(keys.is_not_null() & keys.is_duplicated()) for what, keys in twice.items()}
    if not any(map(len, twice.values())):
        return
    rows = met.rows[met.matched]
    by_id = (met.ours.ids.filter(met.matched) == met.theirs.ids.gather(rows)).fill_null(False).to_numpy()
    used = {"question": met.theirs.questions.gather(rows[~by_id]), "sample_id": met.theirs.ids.gather(rows[by_id])}
    for what, reached in used.items():
        names = sorted(set(twice[what]) & set(reached.unique()))
        if names:
            step = "give traces and gold a sample_id" if what == "question" else "make every sample_id unique"
            found = f"gold holds {len(names)} {what}(s) more than once ({listing(names, 3)})"
            warnings.warn(f"{found}; the last one wins: {step}", RagnbWarning, stacklevel=3)
