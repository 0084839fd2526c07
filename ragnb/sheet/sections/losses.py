"""The questions on which another system beats the best: what switching to it would make worse."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragnb.comparison.wording import change
from ragnb.inputs.streams import QUESTIONS
from ragnb.markup import count, one_line
from ragnb.markup.blocks import Section, Small
from ragnb.sheet.formatter import Formatter, Write, table_of
from ragnb.sheet.ladder import rungs_of

_MOST = 10


def losses(w: Formatter) -> Section | None:
    """Return where the runner-up scores higher, the largest losses first; nothing where it never does.

    Of rows that are not all held, and of a metric of which less is better, nothing is listed.
    """
    scores: pd.DataFrame = w.whole.scores
    rungs = rungs_of(w)
    key = next((name for name in QUESTIONS if name in scores), None)
    if not rungs or key is None or w.whole.streamed:
        return None
    row = rungs[0]
    first = row["candidate"]
    other = row["baseline"]
    metric = row["metric"]
    if metric not in scores or w.better[metric] == "lower":
        return None
    # The ladder has the names of systems as texts, the rows may have numbers.
    pair = scores[scores["system"].astype(str).isin([first, other])]
    # The mean of a question that was answered several times; without those that one system lacks.
    wide = pair.pivot_table(index=key, columns="system", values=metric, aggfunc="mean").dropna()
    wide.columns = wide.columns.map(str)
    change_of = wide[first] - wide[other]
    lost = change_of[change_of < 0].sort_values(kind="stable")
    if lost.empty:
        return None
    rows_of_questions = pair.drop_duplicates(key).set_index(key)

    def question(name: Any) -> tuple[Any, ...]:
        text = rows_of_questions.loc[name].get("question", name)
        # Where questions are told by their text, there is no id to show below it.
        sample_id = "" if key == "question" else one_line(name, 40)
        return one_line(text, 120), Small(sample_id)

    def score_of(system: str) -> Write:
        return lambda name: w.value(metric, wide.loc[name, system])

    def lost_by(name: Any) -> str:
        return change({**row, "value": lost[name]}, w.say)

    columns: list[tuple[str, Write]] = [
        (w.say("column.question"), question),
        (f">{one_line(first, 40)}", score_of(first)),
        (f">{one_line(other, 40)}", score_of(other)),
        (w.head(">systems.difference"), lost_by),
    ]
    words = {"n": count(len(lost)), "all": count(len(wide)), "first": first, "other": other}
    finding = w.say("systems.losses", **words)
    table = table_of(lost.index[:_MOST].tolist(), columns)
    return w.section("losses", finding, w.say("systems.losses_lead"), [table])
