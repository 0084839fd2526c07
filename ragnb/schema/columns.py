"""Column names and status words: one name a thing, everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

CASE_COLUMNS = (
    "sample_id", "question", "ground_truth_answer", "ground_truth_contexts", "answer", "retrieved_contexts",
    "doc_name", "system", "persona", "source_units", "generation_params",
)  # fmt: skip
TRACE_COLUMNS = ("citations", "chunks", "ts", "ok", "repeat")
DERIVED_COLUMNS = ("weighted_score", "sample_weight", "is_passing")
STATUS_WORDS = ("ok", "not_applicable", "failed", "missing")
RESULT_COLUMNS = (
    "metric", "weight", "value", "low", "high", "se", "n", "n_missing", "n_failed", "n_not_applicable",
    "n_clusters", "n_eff",
)  # fmt: skip
ABOUT_COLUMNS = (
    "df", "cluster_unit", "range_low", "range_high", "better", "kind", "role", "level", "top_share", "top_cluster",
    "reason",
)  # fmt: skip
"""What later functions need to know of a mean; where rows are grouped by a column of such a name, ``metric_`` goes
before it."""
NOTE_COLUMNS = ("code", "about", "text")


def note_row(code: str, about: str, text: str) -> dict[str, str]:
    """Return one row of a notes frame: a code to test on, what it is about, and the sentence.

    Examples
    --------
    >>> note_row("few_clusters", "faithfulness", "Only 3 documents.")["code"]
    'few_clusters'
    """
    return {"code": code, "about": about, "text": text}


def note_frame(rows: Iterable[dict[str, str]]) -> pd.DataFrame:
    """Return notes as a frame with the columns ``code, about, text``, each sentence once.

    Examples
    --------
    >>> len(note_frame([note_row("a", "b", "c"), note_row("a", "b", "c")]))
    1
    """
    once = dict.fromkeys(tuple(row[name] for name in NOTE_COLUMNS) for row in rows)
    return pd.DataFrame(list(once), columns=list(NOTE_COLUMNS), dtype=object)


def records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a small frame as mappings; pandas' own ``to_dict`` takes ten times as long.

    Examples
    --------
    >>> records(pd.DataFrame({"metric": ["a", "b"], "n": [1, 2]}))
    [{'metric': 'a', 'n': 1}, {'metric': 'b', 'n': 2}]
    """
    columns = [column.tolist() for _, column in frame.items()]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]
