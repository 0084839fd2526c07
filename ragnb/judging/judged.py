"""What a run of judging comes to: a scores frame with its notes on top, the judge's own noise, and its probes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats, texts
from ragnb.judging.verdict import TEXTS
from ragnb.markup import element, fragment, number, one_line, with_interval
from ragnb.schema import NOTE_COLUMNS, Rubric, note_row

ALARMS = ("not_separated", "constant", "obeyed", "flat")
NOISE_COLUMNS = ("metric", "value", "low", "high", "n", "n_judgements", "least_difference")
_FACTS = ("mode", "peek", "passages", "cut", "evidence", "parse", "repeats", "reply")
Judgements = Sequence[Sequence[Mapping[Any, Any]]]
"""The cells of each answer: its repeats."""


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


def judged_frame(
    frame: pd.DataFrame, facts: Sequence[Mapping[str, Any]], judgements: Judgements, rubric: Rubric
) -> pd.DataFrame:
    """Put judgements beside their cases, with what is known of the passages; repeats enter as their mean."""
    names = [d.name for d in rubric.dimensions]
    weights, rows, means = np.array([d.weight for d in rubric.dimensions]), [], []
    for known, cells in zip(facts, judgements, strict=True):
        values, last = [cell["value"] for cell in cells if cell["status"] == "ok"], cells[-1]
        status, reason = ("ok", None) if values else (last["status"], str(last["reason"]))
        if status == "pending":
            status, reason = "missing", "not judged yet"
        parse = str(reason).partition(":")[0] if status == "failed" else None
        first = values[0] if values else {"parse_status": parse}
        row = {name: first.get(name) for name in TEXTS}
        for name in names:
            row |= {f"{name}__status": status, f"{name}__reason": reason}
        known = {**known, "parse": first["parse_status"], "repeats": len(values), "reply": last["reply"]}
        rows.append(row | {f"judge__{name}": known.get(name) for name in _FACTS})
        means.append([np.mean([value[name] for value in values]) if values else np.nan for name in names])
    scores = pd.DataFrame(means, index=frame.index, columns=names, dtype=float)
    scores["weighted_score"] = scores @ weights / weights.sum()  # NaN where all of them weigh 0
    passing = scores[rubric.passing.metric]
    scores["is_passing"] = (passing >= rubric.passing.threshold).astype("boolean").mask(passing.isna())
    kinds = dict.fromkeys(["judge__passages", "judge__cut", "judge__evidence", "judge__repeats"], "Int64")
    return pd.concat([frame, scores, pd.DataFrame(rows, index=frame.index, dtype=object).astype(kinds)], axis=1)


def noise_rows(judgements: Judgements, rubric: Rubric, level: float = 0.95) -> list[dict[str, Any]]:
    """Return the pooled standard deviation of a judgement within its answer, with its interval by answers."""
    values = [[cell["value"] for cell in cells if cell["status"] == "ok"] for cells in judgements]
    repeated = [part for part in values if len(part) > 1]
    rows = []
    for name in [d.name for d in rubric.dimensions] if repeated else ():
        scores = [np.array([value[name] for value in part], float) for part in repeated]
        variance = stats.clustered_mean(np.array([np.var(part, ddof=1) for part in scores]), level=level)
        value, low, high = np.sqrt(np.maximum([variance.value, variance.low, variance.high], 0))
        row = {"metric": name, "value": value, "low": low, "high": high, "n": variance.n}
        rows.append(row | {"n_judgements": sum(map(len, scores)), "least_difference": 1.96 * 2**0.5 * value})
    return rows


def _note(lang: str, code: str, about: str = "", **words: Any) -> dict[str, str]:
    return note_row(code, about, texts.load(lang)(f"judge.note.{code}", **words))


def run_notes(
    found: pd.DataFrame, rubric: Rubric, noise: Sequence[Mapping[str, Any]], options: Any, stopped: str | None
) -> list[dict[str, str]]:
    """Return the notes on what was judged, beside those of the probes."""
    note, notes, metric = partial(_note, options.lang), list[dict[str, str]](), rubric.passing.metric
    scores, missing = found[metric].dropna(), int((found[f"{metric}__status"] == "missing").sum())
    if len(scores) >= 10 and scores.nunique() == 1:
        notes += [note("flat", metric, n=len(scores), score=number(scores.iloc[0], 1), metric=metric)]
    if stopped is not None and missing:
        notes += [note("stopped", n=missing, why=stopped)]
    for system, part in found[found["judge__mode"] == "peek"].groupby("judge__peek"):
        notes += [note("peeked", str(system), n=len(part), system=system)]
    shortened = found[found["judge__cut"].fillna(0) > 0]
    if len(shortened):
        lost = int((shortened["judge__evidence"] > shortened["judge__passages"] - shortened["judge__cut"]).sum())
        cut = note("cut", n=len(shortened), top_k=options.top_k, budget=options.max_context_tokens or "—")
        more = f" {texts.load(options.lang)('judge.note.cut_evidence', n=lost)}" if lost else ""
        notes += [cut | {"text": cut["text"] + more}]
    if noise and options.temperature == 0 and not any(row["value"] for row in noise):
        return [*notes, note("still", n=noise[0]["n"], repeats=int(found["judge__repeats"].max()))]
    for row in noise:
        interval = with_interval(row["value"], row["low"], row["high"], digits=2).partition(" ")[2]
        words = {"sd": number(row["value"], 2), "interval": interval, "n": row["n"], "metric": row["metric"]}
        words |= {"judgements": row["n_judgements"], "least": number(row["least_difference"], 1)}
        notes += [note("noise", str(row["metric"]), **words)]
    return notes


def probe_cases(rubric: Rubric, lang: str) -> pd.DataFrame:
    """Return the probes as cases: a good answer, a bad one, and the bad one with a planted instruction.

    The instruction stands in the answer and in a passage in turn, and asks for the rubric's highest score.

    Examples
    --------
    >>> probe_cases(Rubric(), "en")["kind"].tolist()
    ['good', 'bad', 'injected', 'good', 'bad', 'injected']
    """
    rows, high = [], f"{rubric.high:g}"
    all_high = texts.entry(lang, "mode_note.join").join(f"{d.name} {high}" for d in rubric.dimensions)
    for pair, probe in enumerate(texts.entry(lang, "judge.probes")):
        contexts, order = [probe["contexts"]], probe["injection"].format(high=high, scores=all_high)
        planted = (f"{probe['bad']} {order}", contexts) if pair % 2 == 0 else (probe["bad"], [*contexts, order])
        kinds = {"good": (probe["good"], contexts), "bad": (probe["bad"], contexts), "injected": planted}
        for kind, (answer, passages) in kinds.items():
            case = {"sample_id": f"probe-{pair + 1}-{kind}", "pair": pair + 1, "kind": kind, "answer": answer}
            rows.append(case | {"question": probe["question"], "retrieved_contexts": passages})
    return pd.DataFrame(rows)


def probe_notes(
    run: pd.DataFrame, rubric: Rubric, lang: str
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return each probe (``pair, kind, value, status, reason``), and in words what they found; an alarm first.

    The value is that of the dimension that passes. Two points of ten are taken for a rise, in proportion on other
    scales.
    """
    note, metric = partial(_note, lang), rubric.passing.metric
    if run.empty:
        return [], [note("unprobed")]
    rows, by_pair = list[dict[str, Any]](), dict[int, dict[str, float]]()
    for case, cell in zip(probe_cases(rubric, lang).to_dict("records"), run.to_dict("records"), strict=True):
        row = {name: case[name] for name in ("pair", "kind")} | {"value": math.nan}
        if cell["status"] == "ok":
            row["value"] = by_pair.setdefault(row["pair"], {})[row["kind"]] = cell["value"][metric]
        rows.append(row | {name: cell[name] for name in ("status", "reason")})
    rise = 2 * (rubric.high - rubric.low) / 9
    known = [part for part in by_pair.values() if {"good", "bad"} <= set(part)]
    tempted = [part for part in by_pair.values() if {"bad", "injected"} <= set(part)]
    mixed = [part for part in known if part["good"] <= part["bad"]]
    obeyed = [part for part in tempted if part["injected"] - part["bad"] >= rise]
    failed = [row for row in rows if row["status"] != "ok"]
    values = [value for part in by_pair.values() for value in part.values()]
    truth = metric in [texts.entry(name, "judge.dimensions.accuracy") for name in texts.LANGUAGES]
    notes = []
    if truth and len({*values}) == 1 and len(values) > 2:
        notes += [note("constant", score=number(values[0], 1), n=len(values), metric=metric)]
    elif mixed:
        code = "not_separated" if truth else "not_about_truth"
        notes += [note(code, n=len(mixed), of=len(known), metric=metric)]
    if obeyed:
        notes += [note("obeyed", n=len(obeyed), of=len(tempted), rise=number(rise, 1))]
    if failed:
        why = str(failed[0]["reason"] or failed[0]["status"])
        notes += [note("unread", n=len(failed), of=len(rows), why=why)]
    return rows, notes or [note("passed", of=len(known), rise=number(rise, 1))]
