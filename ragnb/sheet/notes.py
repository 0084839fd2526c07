"""What a reader must know before believing the numbers, and where the rows went."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragnb import diagnostics, schema, weights
from ragnb.calibration import CalibrationCard
from ragnb.diagnostics import RULES, if_documents_fail, least_set_note
from ragnb.diagnostics.completeness import too_much
from ragnb.errors import listing, near_names
from ragnb.inputs import Inputs
from ragnb.inputs.streams import MOST_SHOWN, head_of
from ragnb.markup import count, number, one_line, percent, with_interval
from ragnb.scenario import Scenario
from ragnb.scenario.source import flow
from ragnb.schema import (
    DRAWN,
    METRICS,
    TOTAL,
    Metric,
    holding_notes,
    note_frame,
    note_row,
    records,
)
from ragnb.texts import load
from ragnb.texts.errors import translated
from ragnb.traces import count_unanswerable
from ragnb.traces.citations import SHAPES as CITATION_FORMS
from ragnb.traces.citations import tried
from ragnb.traces.log import MOST_CHECKED, Log
from ragnb.weights import nfc
from ragnb.weights import notes as weight_notes
from ragnb.weights.conversations import turn_column

if TYPE_CHECKING:
    from ragnb.sheet.assessment import Assessment


Row = dict[str, str]
Say = Callable[..., str]
_MANY = 5  # decisions side by side, of which one errs by chance in more than a tenth of runs
_OF_TRACES = ("without_answer", "empty", "citations_flagged", "partial")
_LOSSY_SAID = {
    "bad_line": "bad_lines",
    **{word: word for word in ("unparsed", "left_out", "kept", "clipped")},
}


def notes(
    sheet: Assessment,
    inputs: Inputs,
    metrics: list[Metric],
    asked: Mapping[Any, int],
    docs: Collection[str],
) -> pd.DataFrame:
    """Return all notes of a run, the ones that change how numbers are read first."""
    means = sheet.means
    lang = sheet.scenario.lang
    say = load(sheet.scenario.lang)
    by_name = {}
    if sheet.systems is None:
        parts: list[tuple[Any, pd.DataFrame]] = [(None, means)]
    else:
        parts = list(means.groupby("system", sort=False))
    for name, part in parts:
        means_of_system = part.drop(columns="system", errors="ignore").reset_index(drop=True)
        by_name[name] = [
            *records(weight_notes(means_of_system, lang=lang)),
            *least_set_note(means_of_system, metrics, lang=lang),
        ]
    return note_frame(
        [
            *_system_notes(sheet, inputs, metrics, asked, say),
            *_of_all_or_one(by_name),
            *_judge_notes(sheet.calibration, metrics, say),
            *inputs.stages,
            *_setting_notes(sheet.scenario, inputs, metrics, docs, say),
            *_gate_notes(sheet, metrics, say),
            *_input_notes(sheet, inputs, metrics, say, lang),
        ]
    )


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
    sheet: Assessment, inputs: Inputs, metrics: list[Metric], asked: Mapping[Any, int], say: Say
) -> Iterator[Row]:
    """Say what a judge left out because the gates were settled, and what several systems have in common."""
    if inputs.stream is None:
        reasons = [f"{metric.name}__reason" for metric in metrics]
    else:
        reasons = []
    left = 0
    if reasons:
        left = inputs.frame.filter(reasons).eq(schema.STOPPED_EARLY).any(axis=1).sum()
    if left:
        calls = left * pd.to_numeric(inputs.frame.get("judge__repeats", pd.Series([1]))).max()
        yield _note(
            say,
            "stopped_early",
            "judge",
            n=count(left),
            of=count(inputs.rows),
            calls=count(int(calls)),
        )
    if sheet.systems is None:
        return
    candidate = sheet.scenario.candidate
    answered = listing(f"{name} {count(n)}" for name, n in asked.items())
    key = "systems" if candidate is None else "systems_candidate"
    yield _note(
        say, "systems", "system", key, n=sheet.systems["system"].nunique(), candidate=candidate
    )
    if sheet.common is None:
        yield from holding_notes(
            say, [(asked, "no_common_questions", "system", {"asked": answered})]
        )
        return
    rows = sheet.common.dropna(subset="value").sort_values("value", ascending=False, kind="stable")
    rates = not (rows["metric"] == TOTAL).any()
    shown = "correct_outcome" if rates else TOTAL
    means = (
        f"{row['system']} {with_interval(row['value'], row['low'], row['high'], rates)}"
        for row in records(rows[rows["metric"] == shown])
    )
    n = count(sheet.common_questions)
    yield _note(
        say, "different_questions", "system", asked=answered, n=n, means=listing(means, most=6)
    )


def _judge_notes(card: CalibrationCard | None, metrics: list[Metric], say: Say) -> Iterator[Row]:
    """Say whether people would agree with the scores, unless they were shown to."""
    if card is not None and card.verdict != "TRUST":
        yield _note(say, "judge_not_trusted", "judge", reason=card.reasons[0])
    if card is None and any(metric.role == "quality" for metric in metrics):
        yield _note(say, "no_ratings", "ratings")


def _setting_notes(
    scenario: Scenario, inputs: Inputs, metrics: list[Metric], docs: Collection[str], say: Say
) -> Iterator[Row]:
    """Say which weights are for what does not occur, with the near names, and what settings do to the numbers."""
    names = [metric.name for metric in metrics]
    absent = [("metric", name, names) for name in scenario.metric_weights if name not in names]
    absent += [
        ("doc", name, sorted(docs)) for name in scenario.doc_weights if nfc(name) not in docs
    ]
    for what, name, have in absent:
        near = ", ".join(near_names(name, have))
        hint = say("editor.near", names=near) if near else ""
        yield note_row(
            f"{what}_weight_absent", name, say(f"note.{what}_weight_absent", name=name) + hint
        )
    blind = [m.name for m in metrics if m.role == "quality" and not m.grades_refusals]
    unanswerable = count_unanswerable(inputs.frame) if blind else 0
    drawn = DRAWN in weights.column_names(inputs.frame)
    rows = {"n": count(inputs.rows)}
    yield from holding_notes(
        say,
        [
            (
                inputs.stream,
                "streamed",
                "scores",
                rows | {"shown": count(min(MOST_SHOWN, inputs.rows))},
            ),
            (
                unanswerable,
                "unanswerable",
                ", ".join(blind),
                {"n": count(unanswerable), "metrics": listing(blind)},
            ),
            (scenario.doc_weights, "doc_weighted", scenario.doc, {"n": len(scenario.doc_weights)}),
            (not scenario.orient, "not_oriented", TOTAL, {}),
            (scenario.rescale, "rescaled", TOTAL, {}),
            (drawn, "drawn", DRAWN, {}),
        ],
    )


def _gate_notes(sheet: Assessment, metrics: list[Metric], say: Say) -> Iterator[Row]:
    """Say how firm the gates are; and of findings and intervals side by side, how many chance alone makes."""
    gates = sheet.gates
    level = sheet.scenario.level
    slices = sheet.slices
    asked = gates[gates["reason"] == ""]
    n = int((asked["role"] != "completeness").sum())
    rules = len(list(diagnostics.fitting(RULES, metrics)))
    certain = int(sheet.diagnoses["certain"].sum())
    if slices is None:
        shown = 0
    else:
        shown = int(slices["low"].notna().sum())
    by_chance = round(shown * (1 - level))

    def wrong(decisions: int) -> str:
        """Write the probability that at least one of so many errs."""
        return percent(1 - (0.5 + level / 2) ** decisions)

    yield from holding_notes(
        say,
        [
            (sheet.scenario.gates is None and len(gates), "default_gates", "gates", {}),
            (n >= _MANY, "many_gates", "gates", {"n": n, "p": wrong(n)}),
        ],
    )
    for row in records(asked):
        yield from _of_gate(sheet, row, say)
    of_rules = {"n": rules, "certain": certain, "p": wrong(rules)}
    of_slices = {"n": count(shown), "level": f"{100 * level:g} %", "wrong": count(by_chance)}
    yield from holding_notes(
        say,
        [
            (rules >= _MANY and certain, "many_rules", "diagnoses", of_rules),
            (by_chance, "many_slices", "slices", of_slices),
        ],
    )


def _lost(sheet: Assessment, gate: Mapping[Any, Any]) -> bool:
    """Whether a gate's metric lost too much, so that what is lost would decide it and not more questions."""
    account = sheet.account
    rows_of_metric = account[
        (account["subject"] == gate["metric"]) & account["stage"].isin(["cells", "total"])
    ]
    if gate["system"] is not None:
        rows_of_metric = rows_of_metric[rows_of_metric["system"] == gate["system"]]
    return any(too_much(row, sheet.scenario.allow.cells) for row in records(rows_of_metric))


def _of_gate(sheet: Assessment, row: Mapping[Any, Any], say: Say) -> Iterator[Row]:
    """Say of a gate that asks something what would decide it, or that documents nobody has seen may fail."""
    more = row["more_needed"]
    gate = str(row["gate"])
    means = sheet.means
    if gate == row["metric"]:
        named = gate
    else:
        named = f"{gate} ({row['metric']})"
    if row["system"] is not None:
        named = f"{row['system']}: {named}"
    if if_documents_fail(row):
        write = percent if row["role"] == "rate" else number
        if row["outcome"] == "pass":
            key = "documents_may_fail"
        else:
            key = "documents_unseen"
        words = {"share": percent(row["share_unseen"]), "low": write(row["low_if"])}
        if row["system"] is None:
            own = means
        else:
            own = means[means["system"] == row["system"]]
        n = own.loc[own["metric"] == row["metric"], "n_clusters"].iloc[0]
        yield _note(say, "documents_may_fail", gate, key, gate=named, n=n, **words)
    elif row["outcome"] == "undecided" and not pd.isna(row["low"]) and not _lost(sheet, row):
        key = "on_the_bar" if pd.isna(more) else "more_needed"
        yield _note(say, "more_needed", gate, key, gate=named, more=count(more), n=count(row["n"]))
    if row["outcome"] == "no_data":
        yield _note(
            say,
            "no_data",
            gate,
            "no_data_blocks" if row["blocks"] else "no_data_skipped",
            gate=named,
        )


def _citation_notes(sheet: Assessment, inputs: Inputs, say: Say) -> Iterator[Row]:
    """Say in which form the answers of each system cite, that none does, and how many questions have a claim."""
    forms_seen = inputs.join.get("citations", ())
    for row in forms_seen:
        if row["form"] in CITATION_FORMS and row["form"] not in ("field", "list"):
            n = count(row["n"])
            of = count(row["of"])
            said = say("note.citations_read", n=n, of=of, form=CITATION_FORMS[row["form"]])
            yield note_row("citations_read", row["system"] or "traces", _of_system(row, said))
    citing = {row["system"] for row in forms_seen if row["form"] is not None}
    forms = tried(sheet.scenario.citations)
    shapes = [say("log.citation_field") if one == "field" else CITATION_FORMS[one] for one in forms]
    for row in forms_seen:
        asked = _rate(sheet, "citation_hit_rate", row["system"])
        if row["system"] in citing or not asked:
            continue
        names = say("note.join").join(shapes)
        said = say("note.no_citations", n=count(row["of"]), forms=names)
        yield note_row("no_citations", row["system"] or "traces", _of_system(row, said))
    systems = [None] if sheet.systems is None else sheet.systems["system"].unique()
    for system in systems:
        claims, answerable = (
            _rate(sheet, rate, system) for rate in ("claim_containment", "over_refusal")
        )
        if claims and claims < answerable:
            said = say("note.claims", n=count(claims), of=count(answerable))
            yield note_row("claims", "claim_containment", _of_system({"system": system}, said))


def _of_system(row: Mapping[str, Any], text: str) -> str:
    if row["system"] is None:
        return text
    return f"{row['system']}: {text}"


def _rate(sheet: Assessment, metric: str, system: Any) -> int:
    """Return the n of a rate, of one system where there are several."""
    means = sheet.means
    if system is not None and sheet.systems is not None:
        means = sheet.systems[sheet.systems["system"] == system]
    return int(means.loc[means["metric"] == metric, "n"].sum())


def _input_notes(
    sheet: Assessment, inputs: Inputs, metrics: list[Metric], say: Say, lang: str
) -> Iterator[Row]:
    """Say what the traces lack, one note a kind of loss and column, and which columns are left out.

    Harmless renames stay in the ledger of the readers.
    """
    without_gold = inputs.labelled and not inputs.with_gold
    yield from holding_notes(say, [(without_gold, "no_gold", "traces", {})])
    if inputs.log is not None:
        yield from _log_notes(inputs.log, inputs.rows, say)
    for fact in inputs.facts:
        # Questions that repeat, and nothing says whether systems or runs gave the answers.
        if fact["fact"] == "owner" and fact["open"]:
            counts = {name: count(n) for name, n in fact["value"].items()}
            yield _note(say, "repeats", fact["role"], **counts)
    yield from _gold_notes(inputs, say)
    yield from _citation_notes(sheet, inputs, say)
    yield from _loss_notes(inputs, say, lang)
    yield from _column_notes(sheet, inputs, metrics, say)


def _log_notes(log: Log, rows: int, say: Say) -> Iterator[Row]:
    """Say which refusals nobody declared, and of how many answers the wording was looked at."""
    proposed = log.patterns
    patterns = {
        "n": count(proposed["n"].max()),
        "line": f"patterns: {flow(proposed['pattern'].tolist())}",
    }
    checked = {"n": count(log.checked), "of": count(rows)}
    yield from holding_notes(
        say,
        [
            (len(proposed), "refusals_proposed", "patterns", patterns),
            (log.checked == MOST_CHECKED, "log_checked", "support_lexical", checked),
        ],
    )


def _gold_notes(inputs: Inputs, say: Say) -> Iterator[Row]:
    """Say what is wrong with the gold set, which answers repeat, and what does not join."""
    for row in inputs.gold:
        text = row["text"]
        # Of few questions the text itself says how many; of anything else the first are named.
        if row["finding"] not in ("questions", "answerable", "unanswerable"):
            text += _first(say, row["names"])
        yield note_row(f"gold_{row['finding']}", "gold", text)
    quoted = (
        say("note.quoted", text=one_line(text, 60), n=count(n))
        for text, n in inputs.repeated.items()
    )
    answers = say("note.join").join(quoted)
    yield from holding_notes(say, [(answers, "repeated_answers", "traces", {"answers": answers})])
    if inputs.with_gold:
        joined = ["unmatched", "gold_without_trace", "duplicate_traces", "question_differs"]
    else:
        joined = ["duplicate_traces"]
    for key in (*joined, *_OF_TRACES):
        n = int(inputs.join.get(f"n_{key}", 0))
        if n:
            first = _first(say, inputs.join.get(key, ()))
            yield note_row(key, "traces", say(f"note.{key}", n=count(n)) + first)


def _loss_notes(inputs: Inputs, say: Say, lang: str) -> Iterator[Row]:
    """Say what readers could not read, one note a kind of loss and column."""
    losses: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for loss in inputs.lossy:
        kind = loss["what"]
        role = loss["role"]
        # What gold keeps, `check_gold` says better.
        if kind not in _LOSSY_SAID or (role, kind) == ("gold", "kept"):
            continue
        if loss["column"] or kind == "bad_line":
            place = (_LOSSY_SAID[kind], role, str(loss["column"] or ""))
            losses.setdefault(place, []).append(loss)
    for (code, role, column), rows in losses.items():
        yield _note(
            say,
            code,
            column or role,
            role=say(f"role.{role}"),
            column=column,
            n=sum(int(row["n"]) for row in rows),
            detail=listing((translated(row["detail"], lang) for row in rows), most=5),
        )


def _column_notes(
    sheet: Assessment, inputs: Inputs, metrics: list[Metric], say: Say
) -> Iterator[Row]:
    """Say which metrics look at the wording alone, and which numbers are not averaged."""
    used = {metric.name for metric in metrics}
    of_wording = [
        name for name in sorted(used) if name in METRICS and METRICS[name].family == "wording"
    ]
    lexical = ", ".join(of_wording)
    if sheet.turns is not None:
        used |= {str(turn_column(inputs.frame))}
    others = [name for name in schema.undeclared_columns(head_of(inputs.frame)) if name not in used]
    yield from holding_notes(
        say,
        [
            (lexical, "wording_only", lexical, {"names": lexical}),
            (others, "not_averaged", ", ".join(others), {"columns": listing(others)}),
        ],
    )


def _first(say: Say, names: Sequence[str]) -> str:
    """Name the first of what a note counts."""
    if names:
        return say("note.first", names=", ".join(one_line(name, 60) for name in names[:3]))
    return ""


def ledger(inputs: Inputs, means: pd.DataFrame, lang: str) -> pd.DataFrame:
    """Return where the rows came from and where they went: ``step, rows``."""
    total = means["role"] == "total"
    steps = [*inputs.steps, ("rows", inputs.rows), ("weighted", means.loc[total, "n"].sum())]
    steps += [(f"{kind}_cells", means[f"n_{kind}"].sum()) for kind in ("failed", "not_applicable")]
    steps.append(("missing_cells", means.loc[~total, "n_missing"].sum()))
    say = load(lang)
    return pd.DataFrame(
        [(say(f"step.{code}"), int(rows)) for code, rows in steps], columns=["step", "rows"]
    )
