"""What a run of judging comes to: a scores frame with its notes on top, and the judge's own noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats, texts
from ragnb.judging.plan import Task, weighted
from ragnb.judging.verdict import TEXTS
from ragnb.markup import element, fragment, number, one_line, with_interval
from ragnb.schema import NOTE_COLUMNS, Rubric, note_row

NOISE_COLUMNS = ("metric", "value", "low", "high", "n", "n_judgements", "least_difference")


class Judged(pd.DataFrame):
    """A scores frame that says what is to be known of its judge before its numbers are read.

    What is made of it (a selection, a merge) is a plain DataFrame.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    @property
    def notes(self) -> pd.DataFrame:
        """What is to be known before the scores are read: ``code, about, text``."""
        return pd.DataFrame(self.attrs["judge"]["notes"], columns=list(NOTE_COLUMNS), dtype=object)

    @property
    def noise(self) -> pd.DataFrame:
        """The judge's own noise, one row a metric, from repeated judgements; no rows without.

        ``value`` is the standard deviation of one judgement of one answer, ``low, high`` its interval, ``n``
        answers, ``n_judgements``, and ``least_difference`` (1.96·√2·value) what two single judgements differ by
        before it is more than noise.
        """
        return pd.DataFrame(self.attrs["judge"]["noise"], columns=list(NOISE_COLUMNS))

    @property
    def probes(self) -> pd.DataFrame:
        """The probes that were judged before: ``pair, kind, value, status, reason``."""
        return pd.DataFrame(self.attrs["judge"]["probes"], columns=["pair", "kind", "value", "status", "reason"])

    def __repr__(self) -> str:
        return "\n".join([*(f"- {one_line(text)}" for text in self.notes["text"]), "", super().__repr__()])

    def _repr_html_(self) -> str:
        items = [element("li", text) for text in self.notes["text"]]
        lang = str(self.attrs["judge"]["lang"])
        table = pd.DataFrame(self).to_html(max_rows=20, max_cols=12)
        return str(fragment(element("ul", *items), lang=lang)) + table


def judged_frame(frame: pd.DataFrame, tasks: Sequence[Task], run: pd.DataFrame, rubric: Rubric) -> pd.DataFrame:
    """Put the judgements of a run beside their cases; repeats enter as their mean.

    Parameters
    ----------
    frame : DataFrame
        The cases.
    tasks : sequence of Task
        One a case.
    run : DataFrame
        Of the store: each task's repeats one after the other.
    """
    cells = run.to_dict("records")
    repeats = len(cells) // max(1, len(tasks))
    rows = [_row(task, cells[place * repeats : (place + 1) * repeats], rubric) for place, task in enumerate(tasks)]
    kinds = dict.fromkeys([*(d.name for d in rubric.dimensions), "weighted_score"], "float64")
    kinds |= dict.fromkeys(["judge__passages", "judge__cut", "judge__evidence", "judge__repeats"], "Int64")
    found = pd.DataFrame(rows, index=frame.index, dtype=object).astype(kinds | {"is_passing": "boolean"})
    return pd.concat([frame, found], axis=1)


def _row(task: Task, cells: Sequence[Mapping[Any, Any]], rubric: Rubric) -> dict[str, Any]:
    values = [cell["value"] for cell in cells if cell["status"] == "ok"]
    names = [d.name for d in rubric.dimensions]
    scores = {name: float(np.mean([value[name] for value in values])) for name in names} if values else {}
    status, reason = ("ok", None) if values else (cells[-1]["status"], str(cells[-1]["reason"]))
    if status == "pending":
        status, reason = "missing", "not judged yet"
    row: dict[str, Any] = {name: scores.get(name, np.nan) for name in names}
    row["weighted_score"] = weighted(rubric, scores) if scores else np.nan
    row["is_passing"] = scores[rubric.passing.metric] >= rubric.passing.threshold if scores else pd.NA
    row |= {name: values[0][name] if values else None for name in TEXTS}
    row |= {f"{name}__{part}": told for name in names for part, told in (("status", status), ("reason", reason))}
    parse = values[0]["parse_status"] if values else str(reason).partition(":")[0] if status == "failed" else None
    return row | {
        **{f"judge__{name}": getattr(task, name) for name in ("mode", "peek", "passages", "cut", "evidence")},
        "judge__parse": parse,
        "judge__repeats": len(values),
        "judge__reply": cells[-1]["reply"],
    }


def noise_rows(run: pd.DataFrame, tasks: int, rubric: Rubric, level: float = 0.95) -> list[dict[str, Any]]:
    """The pooled standard deviation of a judgement within its answer, with its interval by answers."""
    repeats = len(run) // max(1, tasks)
    cells = [run.iloc[place * repeats : (place + 1) * repeats] for place in range(tasks)]
    good = [list(part.loc[part["status"] == "ok", "value"]) for part in cells]
    good = [values for values in good if len(values) > 1]
    rows = []
    for dimension in rubric.dimensions if good else ():
        scores = [np.array([value[dimension.name] for value in values], float) for values in good]
        found = stats.clustered_mean(np.array([np.var(part, ddof=1) for part in scores]), level=level)
        value, low, high = np.sqrt(np.maximum([found.value, found.low, found.high], 0))
        known = {"n": found.n, "n_judgements": sum(map(len, scores)), "least_difference": 1.96 * 2**0.5 * value}
        rows.append({"metric": dimension.name, "value": value, "low": low, "high": high, **known})
    return rows


def run_notes(
    found: pd.DataFrame, rubric: Rubric, noise: Sequence[Mapping[str, Any]], options: Any, stopped: str | None
) -> list[dict[str, str]]:
    """The notes on what was judged, beside those of the probes."""
    say = texts.load(options.lang)
    metric = rubric.passing.metric
    notes = []
    scores = found[metric].dropna()
    if len(scores) >= 10 and scores.nunique() == 1:
        score = number(scores.iloc[0], 1)
        notes.append(note_row("flat", metric, say("judge.note.flat", n=len(scores), score=score, metric=metric)))
    if stopped is not None and (left := int((found[f"{metric}__status"] == "missing").sum())):
        notes.append(note_row("stopped", "", say("judge.note.stopped", n=left, why=stopped)))
    for system, part in found[found["judge__mode"] == "peek"].groupby("judge__peek"):
        notes.append(note_row("peeked", str(system), say("judge.note.peeked", n=len(part), system=system)))
    shortened = found[found["judge__cut"].fillna(0) > 0]
    if len(shortened):
        lost = int((shortened["judge__evidence"] > shortened["judge__passages"] - shortened["judge__cut"]).sum())
        text = say(
            "judge.note.cut", n=len(shortened), top_k=options.top_k, budget=options.max_context_tokens or "—"
        )
        more = f" {say('judge.note.cut_evidence', n=lost)}" if lost else ""
        notes.append(note_row("cut", "", text + more))
    repeats = int(found["judge__repeats"].max()) if len(found) else 0
    if noise and options.temperature == 0 and not any(row["value"] for row in noise):
        text = say("judge.note.still", n=noise[0]["n"], repeats=repeats)
        return [*notes, note_row("still", "", text)]
    for row in noise:
        words = {"sd": number(row["value"], 2), "interval": _ends(row), "n": row["n"], "metric": row["metric"]}
        words |= {"judgements": row["n_judgements"], "least": number(row["least_difference"], 1)}
        notes.append(note_row("noise", str(row["metric"]), say("judge.note.noise", **words)))
    return notes


def _ends(row: Mapping[str, Any]) -> str:
    """The interval of a value, in brackets, without the value."""
    return with_interval(row["value"], row["low"], row["high"], digits=2).partition(" ")[2]
