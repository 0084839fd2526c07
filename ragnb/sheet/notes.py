"""What a reader must know before believing the numbers, as notes; and where the rows went."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ragnb.calibration import CalibrationCard
from ragnb.diagnostics import RULES, fitting, if_documents_fail, least_set_note
from ragnb.errors import listing, near_names
from ragnb.inputs.gather import Inputs
from ragnb.inputs.streams import MOST_SHOWN, head_of
from ragnb.markup import count, number, one_line, percent, with_interval
from ragnb.scenario import Scenario
from ragnb.schema import METRICS, STOPPED_EARLY, Metric, note_frame, note_row, records, undeclared_columns
from ragnb.texts import load
from ragnb.traces import count_unanswerable
from ragnb.weights import nfc
from ragnb.weights import notes as weight_notes

Row = dict[str, str]
_MANY = 5  # decisions side by side, of which one errs by chance in more than a tenth of runs
Say = Callable[..., str]
Overlap = tuple[Mapping[Any, int], int, pd.DataFrame | None]
"""Of systems that answered different questions: how many each answered, how many all, and the means on those."""
_OF_TRACES = ("without_answer", "empty", "citations_flagged", "partial")
_LOSSY_SAID = {"bad_line": "bad_lines", **{word: word for word in ("unparsed", "left_out", "kept", "clipped")}}


def notes(
    scenario: Scenario, inputs: Inputs, means: pd.DataFrame, gates: pd.DataFrame, metrics: list[Metric],
    card: CalibrationCard | None, overlap: Overlap, docs: Collection[str],
    found: Mapping[str, Any],
) -> pd.DataFrame:  # fmt: skip
    """Return all notes of a run, the ones that change how numbers are read first."""
    lang, say = scenario.lang, load(scenario.lang)
    parts = dict(iter(means.groupby("system", sort=False))) if "system" in means else {None: means}
    by_name = {}
    for name, part in parts.items():
        own = part.drop(columns="system", errors="ignore").reset_index(drop=True)
        by_name[name] = [*records(weight_notes(own, lang=lang)), *least_set_note(own, metrics, lang=lang)]
    return note_frame([
        *_system_notes(scenario, inputs, means, metrics, overlap, say),
        *_of_all_or_one(by_name),
        *_judge_notes(card, metrics, say),
        *inputs.stages,
        *_setting_notes(scenario, inputs, metrics, docs, say),
        *_gate_notes(scenario, gates, means, metrics, found, say),
        *_input_notes(inputs, metrics, say),
    ])  # fmt: skip


def _note(say: Say, code: str, about: str, key: str = "", **values: object) -> Row:
    """Return the note of a code; its text is that of the code, if not of another key."""
    return note_row(code, about, say(f"note.{key or code}", **values))


def _of_all_or_one(parts: Mapping[Any, list[Row]]) -> Iterator[Row]:
    """Yield the notes of several systems: once what holds for all, else after the name of the system."""
    for name, rows in parts.items():
        for row in rows:
            everywhere = all(row in others for others in parts.values())
            yield row if everywhere else row | {"text": f"{name}: {row['text']}"}


def _system_notes(
    scenario: Scenario, inputs: Inputs, means: pd.DataFrame, metrics: list[Metric], overlap: Overlap, say: Say
) -> Iterator[Row]:
    """Say what a judge left out because the gates were settled, and what several systems have in common."""
    reasons = [f"{metric.name}__reason" for metric in metrics] if inputs.stream is None else []
    if left := inputs.frame.filter(reasons).eq(STOPPED_EARLY).any(axis=1).sum() if reasons else 0:
        calls = left * pd.to_numeric(inputs.frame.get("judge__repeats", pd.Series([1]))).max()
        yield _note(say, "stopped_early", "judge", n=count(left), of=count(inputs.rows), calls=count(int(calls)))
    if "system" not in means:
        return
    key = "systems" if scenario.candidate is None else "systems_candidate"
    yield _note(say, "systems", "system", key, n=means["system"].nunique(), candidate=scenario.candidate)
    questions, common, table = overlap
    asked = listing(f"{name} {count(n)}" for name, n in questions.items())
    if table is not None:
        rows = records(table[table["metric"] == "weighted_score"])
        if rates := all(pd.isna(row["value"]) for row in rows):
            rows = records(table[table["metric"] == "correct_outcome"])
        rows = sorted(rows, key=lambda row: -row["value"])
        told = (f"{row['system']} {with_interval(row['value'], row['low'], row['high'], rates)}" for row in rows)
        yield _note(
            say, "different_questions", "system", asked=asked, n=count(common), means=listing(told, most=6)
        )
    elif questions:
        yield _note(say, "no_common_questions", "system", asked=asked)


def _judge_notes(card: CalibrationCard | None, metrics: list[Metric], say: Say) -> Iterator[Row]:
    """Say whether people would agree with the scores, unless they were shown to."""
    if card is None and any(metric.role == "quality" for metric in metrics):
        yield note_row("no_ratings", "ratings", say("sheet.no_ratings"))
    if card is not None and card.verdict != "TRUST":
        yield _note(say, "judge_not_trusted", "judge", "judge", reason=card.reasons[0])


def _setting_notes(
    scenario: Scenario, inputs: Inputs, metrics: list[Metric], docs: Collection[str], say: Say
) -> Iterator[Row]:
    """Say which weights are for what does not occur, with the near names, and what settings do to the numbers."""
    names = [metric.name for metric in metrics]
    absent = [("metric", name, names) for name in scenario.metric_weights if name not in names]
    absent += [("doc", name, sorted(docs)) for name in scenario.doc_weights if nfc(name) not in docs]
    for what, name, have in absent:
        near = near_names(name, have)
        hint = say("editor.near", names=", ".join(near)) if near else ""
        yield note_row(f"{what}_weight_absent", name, say(f"note.{what}_weight_absent", name=name) + hint)
    if inputs.stream is not None:
        yield _note(say, "streamed", "scores", n=count(inputs.rows), shown=count(min(MOST_SHOWN, inputs.rows)))
    blind = [m.name for m in metrics if m.role == "quality" and not m.grades_refusals]
    if blind and (unanswerable := count_unanswerable(inputs.frame)):
        yield _note(say, "unanswerable", ", ".join(blind), n=count(unanswerable), metrics=listing(blind))
    if scenario.doc_weights:
        yield _note(say, "doc_weighted", scenario.doc, n=len(scenario.doc_weights))
    if not scenario.orient:
        yield _note(say, "not_oriented", "weighted_score")
    if scenario.rescale:
        yield _note(say, "rescaled", "weighted_score")


def _gate_notes(
    scenario: Scenario, gates: pd.DataFrame, means: pd.DataFrame, metrics: list[Metric], found: Mapping[str, Any],
    say: Say,
) -> Iterator[Row]:  # fmt: skip
    """Say how firm the gates are; and of findings and intervals side by side, how many chance alone makes."""
    if scenario.gates is None and len(gates):
        yield _note(say, "default_gates", "gates")
    deciding = gates[(gates["reason"] == "") & (gates["role"] != "completeness")]
    if len(deciding) >= _MANY:
        wrong = 1 - (0.5 + scenario.level / 2) ** len(deciding)
        yield _note(say, "many_gates", "gates", n=len(deciding), p=percent(wrong))
    of_mean = {(row.get("system"), row["metric"]): row for row in records(means)}
    for row in records(gates[gates["reason"] == ""]):
        more, gate = row["more_needed"], str(row["gate"])
        named = gate if gate == row["metric"] else f"{gate} ({row['metric']})"
        named = named if row["system"] is None else f"{row['system']}: {named}"
        if if_documents_fail(row):
            write = percent if row["role"] == "rate" else number
            key = "documents_may_fail" if row["outcome"] == "pass" else "documents_unseen"
            told = {"share": percent(row["share_unseen"]), "low": write(row["low_if"])}
            n = of_mean[row["system"], row["metric"]]["n_clusters"]
            yield _note(say, "documents_may_fail", gate, key, gate=named, n=n, **told)
        elif row["outcome"] == "undecided" and not pd.isna(row["low"]):
            key = "on_the_bar" if pd.isna(more) else "more_needed"
            yield _note(say, "more_needed", gate, key, gate=named, more=count(more), n=count(row["n"]))
        if row["outcome"] == "no_data":
            yield _note(say, "no_data", gate, "no_data_blocks" if row["blocks"] else "no_data_skipped", gate=named)
    rules, certain = len(list(fitting(RULES, metrics))), int(found["diagnoses"]["certain"].sum())
    if rules >= _MANY and certain:
        wrong = 1 - (0.5 + scenario.level / 2) ** rules
        yield _note(say, "many_rules", "diagnoses", n=rules, certain=certain, p=percent(wrong))
    slices = found["slices"]
    n = 0 if slices is None else int(slices["low"].notna().sum())
    if (chance := round(n * (1 - scenario.level))) >= 1:
        level = f"{100 * scenario.level:g} %"
        yield _note(say, "many_slices", "slices", n=count(n), level=level, wrong=count(chance))


def _input_notes(inputs: Inputs, metrics: list[Metric], say: Say) -> Iterator[Row]:
    """Say what the traces lack, one note a kind of loss and column, and which columns are left out.

    Harmless renames stay in the ledger of the readers.
    """
    if inputs.labelled and not inputs.with_gold:
        yield _note(say, "no_gold", "traces")
    for row in inputs.gold:
        few = row["finding"] in ("questions", "answerable", "unanswerable")
        yield note_row(f"gold_{row['finding']}", "gold", row["text"] + ("" if few else _first(say, row["names"])))
    if inputs.repeated:
        told = (say("note.quoted", text=one_line(text, 60), n=count(n)) for text, n in inputs.repeated.items())
        yield _note(say, "repeated_answers", "traces", answers=say("note.join").join(told))
    keys = ("unmatched", "gold_without_trace", "duplicate_traces", "question_differs")
    for key in (*keys, *_OF_TRACES):
        n = int(inputs.join.get(f"n_{key}", 0))
        if n and (inputs.with_gold or key in ("duplicate_traces", *_OF_TRACES)):
            yield note_row(key, "traces", say(f"note.{key}", n=count(n)) + _first(say, inputs.join.get(key, ())))
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for loss in inputs.lossy:
        said = loss["what"] in _LOSSY_SAID and (loss["column"] or loss["what"] == "bad_line")
        if said and (loss["role"], loss["what"]) != ("gold", "kept"):  # check_gold says it better
            found.setdefault((_LOSSY_SAID[loss["what"]], loss["role"], str(loss["column"] or "")), []).append(loss)
    for (code, role, column), rows in found.items():
        n, details = sum(int(row["n"]) for row in rows), listing((row["detail"] for row in rows), most=5)
        yield _note(say, code, column or role, role=say(f"role.{role}"), column=column, n=n, detail=details)
    used = {metric.name for metric in metrics}
    embedded = sorted(name for name in used if name in METRICS and METRICS[name].family == "wording")
    if embedded:
        yield _note(say, "wording_only", names := ", ".join(embedded), names=names)
    others = [name for name in undeclared_columns(head_of(inputs.frame)) if name not in used]
    if others:
        yield _note(say, "not_averaged", ", ".join(others), columns=listing(others))


def _first(say: Say, names: Sequence[str]) -> str:
    """Name the first of what a note counts."""
    return say("note.first", names=", ".join(one_line(name, 60) for name in names[:3])) if names else ""


def ledger(inputs: Inputs, means: pd.DataFrame, lang: str) -> pd.DataFrame:
    """Return where the rows came from and where they went: ``step, rows``."""
    total = means["role"] == "total"
    steps = [*inputs.steps, ("rows", inputs.rows), ("weighted", means.loc[total, "n"].sum())]
    steps += [(f"{kind}_cells", means[f"n_{kind}"].sum()) for kind in ("failed", "not_applicable")]
    steps.append(("missing_cells", means.loc[~total, "n_missing"].sum()))
    say = load(lang)
    return pd.DataFrame([(say(f"step.{code}"), int(rows)) for code, rows in steps], columns=["step", "rows"])
