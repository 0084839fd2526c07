"""What the frames of a run say in words: the verdict, the notes, the ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragnb.assessment.inputs import Inputs
from ragnb.assessment.streams import MOST_SHOWN, head_of
from ragnb.calibration import CalibrationCard
from ragnb.diagnostics import least_set_note
from ragnb.errors import listing, near_names
from ragnb.gates import input_words
from ragnb.markup import count, number, one_line, percent, with_interval
from ragnb.ratings import looks_like_ratings
from ragnb.scenario import Scenario
from ragnb.schema import METRICS, Metric, note_frame, note_row, records, undeclared_columns
from ragnb.texts import counted, entry, load
from ragnb.traces import count_unanswerable
from ragnb.weights import nfc
from ragnb.weights import notes as weight_notes

Row = dict[str, str]
_OF_TRACES = ("without_answer", "empty", "citations_flagged", "partial")
_FEASIBLE = 100  # times the questions there are; beyond that, more of them is no advice
_LOSSY_SAID = {"bad_line": "bad_lines", **{word: word for word in ("unparsed", "left_out", "kept", "clipped")}}


def nothing_to_average(frame: pd.DataFrame) -> str:
    """Word the refusal of a table in which no metric is known."""
    if looks_like_ratings([str(c) for c in frame.columns]):
        return (
            f"these are ratings (columns: {listing(frame.columns)}), which say whether to trust a judge: run "
            "ragnb calibrate on the file, or name it as ratings: in a scenario beside scores or traces"
        )
    numbers = undeclared_columns(frame)
    step = f"declare one, such as metrics=[rn.Metric({numbers[0]!r}, low, high)]" if numbers else "score it first"
    return f"no column is a metric that ragnb knows (numeric columns: {listing(numbers)}); {step}"


@dataclass(frozen=True)
class Overlap:
    """What systems that answered different questions have in common.

    Attributes
    ----------
    asked : dict of system to int
        How many questions each answered.
    common : int
        How many all of them answered.
    means : DataFrame or None
        The means by system on those; None without any.
    """

    asked: dict[Any, int]
    common: int
    means: pd.DataFrame | None


def verdict(scenario: Scenario, means: pd.DataFrame, gates: pd.DataFrame) -> str:
    """Return the answer to "is it good enough?" in one sentence, with the headline, its n and documents."""
    say = load(scenario.lang)
    of_input = gates["role"] == "completeness"
    lost = records(gates[of_input & gates["blocks"]])
    imperfect = records(gates[of_input & ~gates["blocks"] & (gates["value"] < 1)])
    if lost:
        what = say("note.join").join(input_words(row, scenario.lang) for row in lost)
        head = say("verdict.incomplete", what=what)
    else:
        head = _gate_words(gates[~of_input], scenario.lang)
    seen = "".join(f"{say('verdict.part')}{input_words(row, scenario.lang)}" for row in imperfect)
    tail = _headline(means, say) if "system" not in means else _headlines(means, say)
    return head + seen + tail + say("verdict.end")


def _gate_words(gates: pd.DataFrame, lang: str) -> str:
    say = load(lang)
    deciding = gates[gates["reason"] == ""]
    blocking, open_ = deciding[deciding["blocks"]], int((deciding["outcome"] == "undecided").sum())
    skipped, n = int((deciding["outcome"] == "no_data").sum()), len(deciding)
    systems = deciding["system"].dropna().unique()
    if not n:
        advisory = gates[gates["reason"] == "advisory"]
        missed = int((advisory["outcome"] == "fail").sum())
        return say("verdict.advisory", n=missed, all=len(advisory)) if missed else say("verdict.no_gates")
    if len(blocking):
        words = _why_blocked(records(blocking)[0], lang)
        if len(systems) < 2:
            return say("verdict.not_yet", blocking=len(blocking), gates=n, first=words)
        failing = blocking["system"].unique().tolist()
        names = listing(failing, most=4)
        return say("verdict.systems_fail", n=len(failing), all=len(systems), names=names, first=words)
    if open_:
        return say("verdict.undecided", undecided=open_, gates=n)
    if skipped == n:
        return say("verdict.no_data")
    if skipped:
        return say("verdict.passed_some", n=n - skipped, gates=n)
    return counted(say, "verdict.passed", n)


def _why_blocked(row: Mapping[Any, Any], lang: str) -> str:
    """Say which gate fails in words: "answered although unanswerable 35.6 %, at most 5.0 %"."""
    say, written = load(lang), percent if row["role"] == "rate" else number
    what = entry(lang, "metric_in_words").get(row["metric"], row["metric"])
    value = say("word.missing") if pd.isna(row["value"]) else written(row["value"])
    key = "verdict.at_least" if row["op"] == ">=" else "verdict.at_most"
    text = say(key, metric=what, value=value, threshold=written(row["threshold"]))
    return text if row["system"] is None else say("verdict.of_system", system=row["system"], text=text)


def _headline(means: pd.DataFrame, say: Callable[..., str]) -> str:
    """Say the share of correct outcomes where gold tells what is answerable, else the weighted score."""
    rows = {row["metric"]: row for row in records(means)}
    total, outcome = rows["weighted_score"], rows.get("correct_outcome")
    widest = max(rows.values(), key=lambda row: row["n"])
    if outcome is not None and not pd.isna(outcome["value"]):
        score = with_interval(outcome["value"], outcome["low"], outcome["high"], percent=True)
        tail = counted(say, "verdict.outcome", int(outcome["n"]), score=score)
    elif pd.isna(total["value"]):
        tail = counted(say, "verdict.without_total", int(widest["n"]))
    else:
        tail = counted(say, "verdict.total", int(total["n"]), score=_scored(total, say))
    unit = total["cluster_unit"]
    return tail + (counted(say, f"verdict.{unit}s", int(widest["n_clusters"])) if unit != "row" else "")


def _scored(total: Mapping[Any, Any], say: Callable[..., str]) -> str:
    score = with_interval(total["value"], total["low"], total["high"])
    low, high = float(total["range_low"]), float(total["range_high"])
    return score if (low, high) == (0.0, 1.0) else score + say("verdict.scale", low=f"{low:g}", high=f"{high:g}")


def _headlines(means: pd.DataFrame, say: Callable[..., str]) -> str:
    """Say the headline of each system; systems are never pooled."""
    outcomes = means[(means["metric"] == "correct_outcome") & means["value"].notna()]
    rows = records(outcomes if len(outcomes) else means[means["metric"] == "weighted_score"])
    what = say("verdict.outcomes" if len(outcomes) else "verdict.totals")
    return what + _listed(rows, say, percent=bool(len(outcomes)))


def _listed(rows: list[dict[Any, Any]], say: Callable[..., str], *, percent: bool) -> str:
    told = [
        f"{row['system']} {with_interval(row['value'], row['low'], row['high'], percent=percent)}" for row in rows
    ]
    return listing(told, most=6)


def notes(
    scenario: Scenario, inputs: Inputs, found: Mapping[str, Any], gates: pd.DataFrame, metrics: list[Metric],
    card: CalibrationCard | None, overlap: Overlap | None, docs: Collection[str],
) -> pd.DataFrame:  # fmt: skip
    """Return all notes of a run, the ones that change how numbers are read first."""
    lang, means = scenario.lang, found["means"]
    rows: list[Row] = [*_system_notes(scenario, means, overlap)]
    rows += _of_all_or_one({name: _mean_notes(part, metrics, lang) for name, part in by_system(means)})
    rows += _judge_notes(card, metrics, lang)
    rows += inputs.stages
    rows += _unused_weights(scenario, metrics, docs)
    rows += _setting_notes(scenario, inputs, metrics)
    rows += _gate_notes(scenario, gates)
    rows += _trace_notes(inputs, lang)
    rows += _reading_notes(inputs, lang)
    rows += _column_notes(head_of(inputs.frame), metrics, lang)
    return note_frame(rows)


def by_system(frame: pd.DataFrame) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yield the frame of each system; the whole frame for None where it holds one system."""
    if "system" not in frame:
        yield None, frame
        return
    for name, part in frame.groupby("system", sort=False):
        yield name, part.drop(columns="system").reset_index(drop=True)


def _mean_notes(means: pd.DataFrame, metrics: list[Metric], lang: str) -> list[Row]:
    return [*records(weight_notes(means, lang=lang)), *least_set_note(means, metrics, lang=lang)]


def _of_all_or_one(parts: Mapping[Any, list[Row]]) -> list[Row]:
    """Return the notes of several systems: once what holds for all, else after the name of the system."""
    out = []
    for name, rows in parts.items():
        for row in rows:
            everywhere = all(row in others for others in parts.values())
            out.append(row if everywhere else row | {"text": f"{name}: {row['text']}"})
    return out


def _system_notes(scenario: Scenario, means: pd.DataFrame, overlap: Overlap | None) -> Iterator[Row]:
    if "system" not in means:
        return
    say, names = load(scenario.lang), means["system"].unique()
    key = "systems" if scenario.candidate is None else "systems_candidate"
    yield note_row("systems", "system", say(f"note.{key}", n=len(names), candidate=scenario.candidate))
    if overlap is None:
        return
    asked = listing(f"{name} {count(n)}" for name, n in overlap.asked.items())
    if overlap.means is None:
        yield note_row("no_common_questions", "system", say("note.no_common_questions", asked=asked))
        return
    rows = records(overlap.means[overlap.means["metric"] == "weighted_score"])
    rates = all(pd.isna(row["value"]) for row in rows)
    if rates:
        rows = records(overlap.means[overlap.means["metric"] == "correct_outcome"])
    told = _listed(sorted(rows, key=lambda row: -row["value"]), say, percent=rates)
    text = say("note.different_questions", asked=asked, n=count(overlap.common), means=told)
    yield note_row("different_questions", "system", text)


def _judge_notes(card: CalibrationCard | None, metrics: list[Metric], lang: str) -> Iterator[Row]:
    """Say whether people would agree with the scores, unless they were shown to."""
    if card is None and any(metric.role == "quality" for metric in metrics):
        yield note_row("no_ratings", "ratings", load(lang)("sheet.no_ratings"))
    if card is not None and card.verdict != "TRUST":
        yield note_row("judge_not_trusted", "judge", load(lang)("note.judge", reason=card.reasons[0]))


def _unused_weights(scenario: Scenario, metrics: list[Metric], docs: Collection[str]) -> Iterator[Row]:
    """Say which weights are for what does not occur, with the near names."""
    say = load(scenario.lang)
    names = [metric.name for metric in metrics]
    absent = [("metric", name, names) for name in scenario.metric_weights if name not in names]
    absent += [("doc", name, sorted(docs)) for name in scenario.doc_weights if nfc(name) not in docs]
    for what, name, have in absent:
        near = near_names(name, have)
        hint = say("editor.near", names=", ".join(near)) if near else ""
        yield note_row(f"{what}_weight_absent", name, say(f"note.{what}_weight_absent", name=name) + hint)


def _setting_notes(scenario: Scenario, inputs: Inputs, metrics: list[Metric]) -> Iterator[Row]:
    say = load(scenario.lang)
    if inputs.stream is not None:
        text = say("note.streamed", n=count(inputs.rows), shown=count(min(MOST_SHOWN, inputs.rows)))
        yield note_row("streamed", "scores", text)
    blind = [m.name for m in metrics if m.role == "quality" and not m.grades_refusals]
    unanswerable = count_unanswerable(inputs.frame) if blind else 0
    if unanswerable:
        text = say("note.unanswerable", n=count(unanswerable), metrics=listing(blind))
        yield note_row("unanswerable", ", ".join(blind), text)
    if scenario.doc_weights:
        yield note_row("doc_weighted", scenario.doc, say("note.doc_weighted", n=len(scenario.doc_weights)))
    if not scenario.orient:
        yield note_row("not_oriented", "weighted_score", say("note.not_oriented"))
    if scenario.rescale:
        yield note_row("rescaled", "weighted_score", say("note.rescaled"))


def _gate_notes(scenario: Scenario, gates: pd.DataFrame) -> Iterator[Row]:
    say = load(scenario.lang)
    if scenario.gates is None and len(gates):
        yield note_row("default_gates", "gates", say("note.default_gates"))
    for row in records(gates[gates["reason"] == ""]):
        more = row["more_needed"]
        if row["outcome"] == "undecided" and not pd.isna(more) and more > 0:
            key = "note.more_needed" if more <= _FEASIBLE * row["n"] else "note.on_the_bar"
            text = say(key, gate=_called(row), more=count(more), n=count(row["n"]))
            yield note_row("more_needed", str(row["gate"]), text)
        if row["outcome"] == "no_data":
            key = "note.no_data_blocks" if row["blocks"] else "note.no_data_skipped"
            yield note_row("no_data", str(row["gate"]), say(key, gate=_called(row)))


def _called(row: Mapping[Any, Any]) -> str:
    name = str(row["gate"]) if row["gate"] == row["metric"] else f"{row['gate']} ({row['metric']})"
    return name if row["system"] is None else f"{row['system']}: {name}"


def _trace_notes(inputs: Inputs, lang: str) -> Iterator[Row]:
    say = load(lang)
    if inputs.labelled and not inputs.with_gold:
        yield note_row("no_gold", "traces", say("note.no_gold"))
    for row in inputs.gold:
        few = row["finding"] in ("questions", "answerable", "unanswerable")
        yield note_row(f"gold_{row['finding']}", "gold", row["text"] + ("" if few else _first(say, row["names"])))
    if inputs.repeated:
        told = (say("note.quoted", text=one_line(text, 60), n=count(n)) for text, n in inputs.repeated.items())
        text = say("note.repeated_answers", answers=say("note.join").join(told))
        yield note_row("repeated_answers", "traces", text)
    keys = ("unmatched", "gold_without_trace", "duplicate_traces", "question_differs")
    for key in (*keys, *_OF_TRACES):
        n = int(inputs.join.get(f"n_{key}", 0))
        if n and (inputs.with_gold or key in ("duplicate_traces", *_OF_TRACES)):
            yield note_row(key, "traces", say(f"note.{key}", n=count(n)) + _first(say, inputs.join.get(key, ())))


def _first(say: Callable[..., str], names: Sequence[str]) -> str:
    """Name the first of what a note counts."""
    return say("note.first", names=", ".join(one_line(name, 60) for name in names[:3])) if names else ""


def _reading_notes(inputs: Inputs, lang: str) -> Iterator[Row]:
    """One note a kind of loss and column; harmless renames stay in the ledger of the readers."""
    say = load(lang)
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in inputs.lossy:
        said = row["what"] in _LOSSY_SAID and (row["column"] or row["what"] == "bad_line")
        if said and (row["role"], row["what"]) != ("gold", "kept"):  # check_gold says it better
            found.setdefault((_LOSSY_SAID[row["what"]], row["role"], str(row["column"] or "")), []).append(row)
    for (code, role, column), rows in found.items():
        count, details = sum(int(row["n"]) for row in rows), listing((row["detail"] for row in rows), most=5)
        text = say(f"note.{code}", role=say(f"role.{role}"), column=column, n=count, detail=details)
        yield note_row(code, column or role, text)


def _column_notes(frame: pd.DataFrame, metrics: list[Metric], lang: str) -> Iterator[Row]:
    used = {metric.name for metric in metrics}
    embedded = [name for name in used if name in METRICS and METRICS[name].family == "wording"]
    if embedded:
        names = ", ".join(sorted(embedded))
        yield note_row("wording_only", names, load(lang)("note.wording_only", names=names))
    others = [name for name in undeclared_columns(frame) if name not in used]
    if others:
        text = load(lang)("note.not_averaged", columns=listing(others))
        yield note_row("not_averaged", ", ".join(others), text)


def ledger(inputs: Inputs, means: pd.DataFrame, lang: str) -> pd.DataFrame:
    """Return where the rows came from and where they went: ``step, rows``."""
    say = load(lang)
    steps = [(say(f"step.{code}"), rows) for code, rows in inputs.steps]
    total = means["role"] == "total"
    steps += [(say("step.rows"), inputs.rows), (say("step.weighted"), int(means.loc[total, "n"].sum()))]
    steps += [
        (say("step.failed_cells"), int(means["n_failed"].sum())),
        (say("step.not_applicable_cells"), int(means["n_not_applicable"].sum())),
        (say("step.missing_cells"), int(means.loc[~total, "n_missing"].sum())),
    ]
    return pd.DataFrame(steps, columns=["step", "rows"])
