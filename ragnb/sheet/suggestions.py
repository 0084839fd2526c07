"""What a judge suggests for the answers that do not pass, grouped by wording."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pandas as pd

from ragnb.markup import is_missing, one_line
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Row, once
from ragnb.sheet.passing_pictures import passing_row

_END = re.compile(r"[\s.!。！]+$")


class Suggestion(NamedTuple):
    """A suggestion by its wording: of how many answers, their mean on the deciding dimension, and one of them."""

    text: str
    n: int
    mean: float
    example: Row


@once
def suggested(w: Formatter) -> list[Suggestion]:
    """Return the suggestions for the answers that do not pass, the most frequent first; none without a rubric.

    Suggestions are one where they differ only in case, white space and the mark at their end. Of rows that are
    not all held nothing is counted.
    """
    row = passing_row(w)
    scores: pd.DataFrame = w.whole.scores
    if row is None or "suggestion" not in scores or w.whole.streamed:
        return []
    values = scores[row["metric"]].astype(float)
    failing = scores[w.own & (values < row["threshold"])]
    groups: dict[str, list[dict[Any, Any]]] = {}
    for one in records(failing):
        if not is_missing(one["suggestion"]) and str(one["suggestion"]).strip():
            text = _END.sub("", one_line(one["suggestion"], 200))
            groups.setdefault(text.casefold(), []).append({**one, "suggestion": text})
    found = [
        Suggestion(
            rows[0]["suggestion"],
            len(rows),
            sum(float(one[row["metric"]]) for one in rows) / len(rows),
            min(rows, key=lambda one: one[row["metric"]]),
        )
        for rows in groups.values()
    ]
    return sorted(found, key=lambda one: (-one.n, one.mean, one.text))
