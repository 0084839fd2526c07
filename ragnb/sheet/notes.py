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
# The kinds of loss of the readers that are said, each with the code of its note.
_LOSSY_SAID = {
    "bad_line": "bad_lines",
    "unparsed": "unparsed",
    "left_out": "left_out",
    "kept": "kept",
    "clipped": "clipped",
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
    say = load(lang)
    parts: list[tuple[Any, pd.DataFrame]] = [(None, means)]
    if sheet.systems is not None:
        parts = list(means.groupby("system", sort=False))
    on_means = {}
    for name, part in parts:
        means_of_system = part.drop(columns="system", errors="ignore").reset_index(drop=True)
        on_means[name] = [
            *records(weight_notes(means_of_system, lang=lang)),
            *least_set_note(means_of_system, metrics, lang=lang),
        ]
    return note_frame(
        [
            *_system_notes(sheet, inputs, metrics, asked, say),
            *_of_all_or_one(on_means),
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
            # What holds for all comes once a system; `note_frame` keeps one of equal notes.
            if all(row in others for others in parts.values()):
                yield row
            else:
                yield row | {"text": f"{name}: {row['text']}"}


def _system_notes(
    sheet: Assessment, inputs: Inputs, metrics: list[Metric], asked: Mapping[Any, int], say: Say
) -> Iterator[Row]:
    """Say what a judge left out because the gates were settled, and what several systems have in common."""
    if inputs.stream is None:
        yield from _stopped_notes(inputs, metrics, say)
    if sheet.systems is None:
        return
    candidate = sheet.scenario.candidate
    n_systems = sheet.systems["system"].nunique()
    key = "systems" if candidate is None else "systems_candidate"
    yield _note(say, "systems", "system", key, n=n_systems, candidate=candidate)
    answered = listing(f"{name} {count(n)}" for name, n in asked.items())
    if sheet.common is None:
        # `asked` is empty where all systems answered the same questions: then there is nothing to say.
        yield from holding_notes(
            say, [(asked, "no_common_questions", "system", {"asked": answered})]
        )
        return
    rows = sheet.common.dropna(subset="value").sort_values("value", ascending=False, kind="stable")
    # Where no system has a total, as of traces without scores, the share of right answers is compared.
    is_rate = not (rows["metric"] == TOTAL).any()
    shown = "correct_outcome" if is_rate else TOTAL
    means = (
        f"{row['system']} {with_interval(row['value'], row['low'], row['high'], is_rate)}"
        for row in records(rows[rows["metric"] == shown])
    )
    yield _note(
        say,
        "different_questions",
        "system",
        asked=answered,
        n=count(sheet.common_questions),
        means=listing(means, most=6),
    )


def _stopped_notes(inputs: Inputs, metrics: list[Metric], say: Say) -> Iterator[Row]:
    """Say how many answers a judge left out because the gates were settled, and how many calls that saved."""
    reasons = [f"{metric.name}__reason" for metric in metrics]
    if not reasons:
        return
    left = inputs.frame.filter(reasons).eq(schema.STOPPED_EARLY).any(axis=1).sum()
    if not left:
        return
    repeats = inputs.frame.get("judge__repeats", pd.Series([1]))  # judge calls per answer
    calls = left * pd.to_numeric(repeats).max()
    yield _note(
        say,
        "stopped_early",
        "judge",
        n=count(left),
        of=count(inputs.rows),
        calls=count(int(calls)),
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
    yield from _absent_weight_notes(scenario, metrics, docs, say)
    # They do not tell a correct refusal from an invented answer (see `Metric`).
    blind = [
        metric.name for metric in metrics if metric.role == "quality" and not metric.grades_refusals
    ]
    n_unanswerable = count_unanswerable(inputs.frame) if blind else 0
    drawn = DRAWN in weights.column_names(inputs.frame)
    of_stream = {"n": count(inputs.rows), "shown": count(min(MOST_SHOWN, inputs.rows))}
    of_unanswerable = {"n": count(n_unanswerable), "metrics": listing(blind)}
    yield from holding_notes(
        say,
        [
            (inputs.stream, "streamed", "scores", of_stream),
            (n_unanswerable, "unanswerable", ", ".join(blind), of_unanswerable),
            (scenario.doc_weights, "doc_weighted", scenario.doc, {"n": len(scenario.doc_weights)}),
            (not scenario.orient, "not_oriented", TOTAL, {}),
            (scenario.rescale, "rescaled", TOTAL, {}),
            (drawn, "drawn", DRAWN, {}),
        ],
    )


def _absent_weight_notes(
    scenario: Scenario, metrics: list[Metric], docs: Collection[str], say: Say
) -> Iterator[Row]:
    """Say which weights are for metrics and documents that do not occur, with the near names."""
    names = [metric.name for metric in metrics]
    absent = [("metric", name, names) for name in scenario.metric_weights if name not in names]
    absent += [
        ("doc", name, sorted(docs)) for name in scenario.doc_weights if nfc(name) not in docs
    ]
    for what, name, have in absent:
        code = f"{what}_weight_absent"
        text = say(f"note.{code}", name=name)
        near = ", ".join(near_names(name, have))
        if near:
            text += say("editor.near", names=near)
        yield note_row(code, name, text)


def _gate_notes(sheet: Assessment, metrics: list[Metric], say: Say) -> Iterator[Row]:
    """Say how firm the gates are; and of findings and intervals side by side, how many chance alone makes."""
    gates = sheet.gates
    level = sheet.scenario.level
    slices = sheet.slices
    deciding = gates[gates["reason"] == ""]
    n_gates = int((deciding["role"] != "completeness").sum())
    n_rules = len(list(diagnostics.fitting(RULES, metrics)))
    n_certain = int(sheet.diagnoses["certain"].sum())
    n_intervals = 0
    if slices is not None:
        n_intervals = int(slices["low"].notna().sum())
    # Of so many intervals that do not hold the value that they are for.
    n_wrong_by_chance = round(n_intervals * (1 - level))

    def wrong(decisions: int) -> str:
        """Write the probability that at least one of so many errs."""
        # A decision is wrong where its interval lies wholly on the wrong side: one of its two tails.
        return percent(1 - (0.5 + level / 2) ** decisions)

    yield from holding_notes(
        say,
        [
            (sheet.scenario.gates is None and len(gates), "default_gates", "gates", {}),
            (n_gates >= _MANY, "many_gates", "gates", {"n": n_gates, "p": wrong(n_gates)}),
        ],
    )
    for row in records(deciding):
        yield from _of_gate(sheet, row, say)
    of_rules = {"n": n_rules, "certain": n_certain, "p": wrong(n_rules)}
    of_slices = {
        "n": count(n_intervals),
        "level": f"{100 * level:g} %",
        "wrong": count(n_wrong_by_chance),
    }
    yield from holding_notes(
        say,
        [
            (n_rules >= _MANY and n_certain, "many_rules", "diagnoses", of_rules),
            (n_wrong_by_chance, "many_slices", "slices", of_slices),
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
    metric = row["metric"]
    named = gate if gate == metric else f"{gate} ({metric})"
    if row["system"] is not None:
        named = f"{row['system']}: {named}"
    if if_documents_fail(row):
        key = "documents_may_fail" if row["outcome"] == "pass" else "documents_unseen"
        write = percent if row["role"] == "rate" else number
        yield _note(
            say,
            "documents_may_fail",
            gate,
            key,
            gate=named,
            n=_n_clusters(sheet, metric, row["system"]),
            share=percent(row["share_unseen"]),
            low=write(row["low_if"]),
        )
    elif row["outcome"] == "undecided" and not pd.isna(row["low"]) and not _lost(sheet, row):
        key = "on_the_bar" if pd.isna(more) else "more_needed"
        yield _note(say, "more_needed", gate, key, gate=named, more=count(more), n=count(row["n"]))
    if row["outcome"] == "no_data":
        key = "no_data_blocks" if row["blocks"] else "no_data_skipped"
        yield _note(say, "no_data", gate, key, gate=named)


def _n_clusters(sheet: Assessment, metric: str, system: Any) -> Any:
    """Return how many clusters the mean of a metric is of, of one system where a gate is of one."""
    means = sheet.means
    if system is not None:
        means = means[means["system"] == system]
    return means.loc[means["metric"] == metric, "n_clusters"].iloc[0]


def _citation_notes(sheet: Assessment, inputs: Inputs, say: Say) -> Iterator[Row]:
    """Say in which form the answers of each system cite, that none does, and how many questions have a claim."""
    forms_seen = inputs.join.get("citations", ())
    for row in forms_seen:
        # A field and the list after "citations:" say themselves that they cite; any other form is inferred.
        if row["form"] in CITATION_FORMS and row["form"] not in ("field", "list"):
            form = CITATION_FORMS[row["form"]]
            text = say("note.citations_read", n=count(row["n"]), of=count(row["of"]), form=form)
            about = row["system"] or "traces"
            yield note_row("citations_read", about, _of_system(row["system"], text))
    citing = {row["system"] for row in forms_seen if row["form"] is not None}
    written = CITATION_FORMS | {"field": say("log.citation_field")}
    shapes = say("note.join").join(written[form] for form in tried(sheet.scenario.citations))
    for row in forms_seen:
        n_asked = _n_of_rate(sheet, "citation_hit_rate", row["system"])
        if row["system"] in citing or not n_asked:
            continue
        text = say("note.no_citations", n=count(row["of"]), forms=shapes)
        about = row["system"] or "traces"
        yield note_row("no_citations", about, _of_system(row["system"], text))
    systems = [None] if sheet.systems is None else sheet.systems["system"].unique()
    for system in systems:
        n_claims = _n_of_rate(sheet, "claim_containment", system)
        n_answerable = _n_of_rate(sheet, "over_refusal", system)
        if n_claims and n_claims < n_answerable:
            text = say("note.claims", n=count(n_claims), of=count(n_answerable))
            yield note_row("claims", "claim_containment", _of_system(system, text))


def _of_system(system: Any, text: str) -> str:
    """Return a sentence after the name of its system, where there are several."""
    if system is None:
        return text
    return f"{system}: {text}"


def _n_of_rate(sheet: Assessment, metric: str, system: Any) -> int:
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
    # Without gold nothing is joined, so that only repeats can be told.
    joined = ["duplicate_traces"]
    if inputs.with_gold:
        joined = ["unmatched", "gold_without_trace", "duplicate_traces", "question_differs"]
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
    # The column of turns has a section of its own.
    if sheet.turns is not None:
        used.add(str(turn_column(inputs.frame)))
    numeric = schema.undeclared_columns(head_of(inputs.frame))
    others = [name for name in numeric if name not in used]
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
