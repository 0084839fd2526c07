"""What the frames of a run say in words: the verdict, the notes, the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ragnb.assessment.inputs import Inputs
from ragnb.assessment.streams import MOST_SHOWN, head_of
from ragnb.calibration import CalibrationCard
from ragnb.diagnostics import least_set_note
from ragnb.errors import listing
from ragnb.markup import count, one_line, with_interval
from ragnb.ratings import looks_like_ratings
from ragnb.scenario import Scenario
from ragnb.schema import METRICS, Metric, note_frame, note_row, records, undeclared_columns
from ragnb.texts import counted, load
from ragnb.weights import column_names
from ragnb.weights import notes as weight_notes

Row = dict[str, str]
QUESTIONS = ("sample_id", "question")
"""What tells the rows of one question, the surer first."""
_OF_TRACES = ("without_answer", "empty", "citations_flagged", "partial")
_FEASIBLE = 100  # times the questions there are; beyond that, more of them is no advice
_LOSSY_SAID = {"bad_line": "bad_lines", "unparsed": "unparsed", "left_out": "left_out", "kept": "kept"}


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


def verdict(scenario: Scenario, means: pd.DataFrame, gates: pd.DataFrame, several: bool) -> str:
    """Return the answer to "is it good enough?" in one sentence, with the overall score, n and documents."""
    say = load(scenario.lang)
    blocking, open_ = int(gates["blocks"].sum()), int((gates["outcome"] == "undecided").sum())
    skipped = int((gates["outcome"] == "no_data").sum())
    if not len(gates):
        head = say("verdict.no_gates")
    elif blocking:
        head = say("verdict.not_yet", blocking=blocking, gates=len(gates))
    elif open_:
        head = say("verdict.undecided", undecided=open_, gates=len(gates))
    elif skipped == len(gates):
        head = say("verdict.no_data")
    elif skipped:
        head = say("verdict.passed_some", n=len(gates) - skipped, gates=len(gates))
    else:
        head = counted(say, "verdict.passed", len(gates))
    total = means.iloc[-1]
    widest = means.iloc[int(means["n"].to_numpy().argmax())]
    if pd.isna(total["value"]):
        tail = counted(say, "verdict.without_total", int(widest["n"]))
    else:
        score = with_interval(total["value"], total["low"], total["high"])
        low, high = means.attrs["ranges"]["weighted_score"]
        if (low, high) != (0.0, 1.0):
            score += say("verdict.scale", low=f"{low:g}", high=f"{high:g}")
        tail = counted(say, "verdict.answers" if several else "verdict.total", int(total["n"]), score=score)
    unit = means.attrs["clusters"]
    clusters = int(widest["n_clusters"])
    return head + tail + (counted(say, f"verdict.{unit}s", clusters) if unit != "row" else "") + say("verdict.end")


def notes(
    scenario: Scenario, inputs: Inputs, means: pd.DataFrame, gates: pd.DataFrame, modes: pd.DataFrame,
    metrics: list[Metric], systems: int, card: CalibrationCard | None,
) -> pd.DataFrame:  # fmt: skip
    """Return all notes of a run, the ones that change how numbers are read first."""
    lang = scenario.lang
    rows: list[Row] = records(weight_notes(means, lang))
    if scenario.cluster in QUESTIONS and scenario.doc not in column_names(inputs.frame):
        rows.append(note_row("questions_independent", "", load(lang)("note.questions_independent")))
    rows += least_set_note(means, metrics, lang=lang)
    rows += _judge_notes(card, metrics, lang)
    rows += inputs.stages
    rows += _setting_notes(scenario, inputs, systems)
    rows += _gate_notes(scenario, gates)
    rows += _trace_notes(inputs, lang)
    rows += _reading_notes(inputs, lang)
    rows += _column_notes(head_of(inputs.frame), metrics, lang)
    return note_frame(rows)


def _judge_notes(card: CalibrationCard | None, metrics: list[Metric], lang: str) -> Iterator[Row]:
    """Say whether people would agree with the scores, unless they were shown to."""
    if card is None and any(metric.role == "quality" for metric in metrics):
        yield note_row("no_ratings", "ratings", load(lang)("sheet.no_ratings"))
    if card is not None and card.verdict != "TRUST":
        yield note_row("judge_not_trusted", "judge", load(lang)("note.judge", reason=card.reasons[0]))


def _setting_notes(scenario: Scenario, inputs: Inputs, systems: int) -> Iterator[Row]:
    say = load(scenario.lang)
    if inputs.stream is not None:
        text = say("note.streamed", n=count(inputs.rows), shown=count(min(MOST_SHOWN, inputs.rows)))
        yield note_row("streamed", "scores", text)
    if systems > 1:
        yield note_row("pooled_systems", "system", say("note.pooled_systems", n=systems))
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
    for row in records(gates):
        more = row["more_needed"]
        if row["outcome"] == "undecided" and not pd.isna(more) and more > 0:
            key = "note.more_needed" if more <= _FEASIBLE * row["n"] else "note.on_the_bar"
            text = say(key, gate=_called(row), more=count(more), n=count(row["n"]))
            yield note_row("more_needed", str(row["gate"]), text)
        if row["outcome"] == "no_data":
            key = "note.no_data_blocks" if row["blocks"] else "note.no_data_skipped"
            yield note_row("no_data", str(row["gate"]), say(key, gate=_called(row)))


def _called(row: Mapping[Any, Any]) -> str:
    return str(row["gate"]) if row["gate"] == row["metric"] else f"{row['gate']} ({row['metric']})"


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
    total = means.iloc[-1]
    steps += [(say("step.rows"), inputs.rows), (say("step.weighted"), int(total["n"]))]
    steps += [
        (say("step.failed_cells"), int(means["n_failed"].sum())),
        (say("step.not_applicable_cells"), int(means["n_not_applicable"].sum())),
        (say("step.missing_cells"), int(means["n_missing"].iloc[:-1].sum())),
    ]
    return pd.DataFrame(steps, columns=["step", "rows"])
