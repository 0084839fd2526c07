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
_LONGEST = 200  # characters; beyond them suggestions are not told apart


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
    answers_of: dict[str, list[dict[Any, Any]]] = {}
    for answer in records(failing):
        if not is_missing(answer["suggestion"]) and str(answer["suggestion"]).strip():
            text = _END.sub("", one_line(answer["suggestion"], _LONGEST))
            answers_of.setdefault(text.casefold(), []).append({**answer, "suggestion": text})
    grouped = [_suggestion(answers, row["metric"]) for answers in answers_of.values()]
    # The text last, so that the order is the same whatever the order of the rows.
    return sorted(grouped, key=lambda one: (-one.n, one.mean, one.text))


def _suggestion(answers: list[dict[Any, Any]], metric: str) -> Suggestion:
    """Return the suggestion that some answers share, as it is worded first; the worst answer is its example."""
    scores = [float(answer[metric]) for answer in answers]
    return Suggestion(
        text=answers[0]["suggestion"],
        n=len(answers),
        mean=sum(scores) / len(scores),
        example=min(answers, key=lambda answer: answer[metric]),
    )
