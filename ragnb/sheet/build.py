"""Scenario → Assessment: read, label, weigh, diagnose, check the gates, and say it in words."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb import diagnostics, schema, weights
from ragnb.calibration import CalibrationCard
from ragnb.comparison.differences import beside_anchor, beside_baseline, with_ratings
from ragnb.comparison.ladder import ladder
from ragnb.comparison.source import Pairs, Run, paired_runs
from ragnb.diagnostics import RULES, gates_json, if_documents_fail, junit, least_set_note
from ragnb.diagnostics.completeness import too_much
from ragnb.errors import RagnbError, listing, near_names, need_columns, unknown
from ragnb.files import json_text, write_whole
from ragnb.inputs import (
    Coverage,
    Inputs,
    at_worst,
    computed_rates,
    count_answers,
    count_not_applicable,
    make_account,
    read_inputs,
    streams,
    system_coverage,
)
from ragnb.inputs.candidates import left_out
from ragnb.inputs.streams import MOST_SHOWN, head_of
from ragnb.markup import MISSING, count, number, one_line, percent, with_interval
from ragnb.markup.blocks import Section
from ragnb.markup.rendering import render_fragment, render_markdown, render_page
from ragnb.readers import to_csv_text
from ragnb.scenario import Scenario
from ragnb.scenario.model import flow
from ragnb.schema import (
    DEFAULT_GATES,
    DRAWN,
    METRICS,
    Gate,
    Metric,
    holding_notes,
    note_frame,
    note_row,
    records,
)
from ragnb.sheet.operations import measure_operations, operation_names
from ragnb.sheet.sections import SECTIONS, Formatter, calibrated, cases, sentence
from ragnb.texts import counted, load
from ragnb.texts.errors import translated
from ragnb.traces import Log, count_unanswerable, outcome_counts
from ragnb.traces.citations import SHAPES as CITATION_FORMS
from ragnb.traces.citations import tried
from ragnb.traces.log import MOST_CHECKED
from ragnb.weights import Moments, Weighing, nfc
from ragnb.weights import notes as weight_notes

if TYPE_CHECKING:
    from ragnb.scenario.settings import Settings

_SLICES, _FEW_GROUPS = ("kind", "language"), 12
# Of systems that answered different questions: how many each answered, how many all, and the means on those.
Overlap = tuple[Mapping[Any, int], int, pd.DataFrame | None]


def assess(source: Any, **overrides: Unpack[Settings]) -> Assessment:
    """Lay one run out on one sheet: means, diagnoses, gates, notes and a verdict.

    Parameters
    ----------
    source : Scenario, path, or frame
        A scenario, the path of one (``.yaml``), or any results file (also a pattern or a folder of files of one
        format, which are read as one table) or frame with no scenario at all. Together
        with ``gold=`` the file or frame holds traces.
    **overrides
        Any field of `Scenario` for this run only, such as ``metric_weights=``, ``metrics=``, ``lang=``; no file
        is touched. None or blank keeps the scenario's value.

    Returns
    -------
    Assessment
        Metrics that cannot be added up leave the weighted score missing, with a note; nothing raises for that.
        Without gates in the scenario, traces with gold are checked by `DEFAULT_GATES`; the warning thresholds
        of the diagnostic rules are shown for scores and never block. Where the rows name several systems in the
        column ``system``, each has its own means, gates and diagnoses, and the run passes only if every one
        does, or the ``candidate`` of the scenario.

    Raises
    ------
    RagnbError
        For a scenario, a file or a frame that is not understood.

    Notes
    -----
    Parquet and JSONL files (a pattern such as ``scores/*.parquet``, a folder, or one file) and Polars LazyFrames
    of more than 200,000 rows (of JSON lines: 128 MB) are read in a stream, not held: every number is of all
    rows, and ``scores`` holds the worst of them, as a note says. Scores and traces that are joined must fit in
    memory.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.4, 0.8], "doc_name": ["a", "b", "c"]})
    >>> sheet = assess(scores, metric_weights={"faithfulness": 2})
    >>> sheet.means[["metric", "weight", "n"]].head(1)
             metric  weight  n
    0  faithfulness     2.0  3
    """
    scenario, inputs, metrics = read_inputs(source, overrides)
    try:
        return _sheet(scenario, inputs, metrics)
    finally:
        if inputs.stream is not None:
            inputs.stream.close()


def _sheet(scenario: Scenario, inputs: Inputs, metrics: list[Metric]) -> Assessment:
    frame, names = streams.systems(inputs.frame)
    _check_candidate(scenario, names, frame)
    asked = gates_of(scenario, metrics, inputs)
    parts = {
        name: _part(scenario, inputs, streams.of_system(frame, name), metrics) for name in names
    }
    answers = {name: part.pop("answers") for name, part in parts.items()}
    docs = set().union(*(part.pop("docs") for part in parts.values()))
    rows = sum(part.pop("rows") for part in parts.values())
    if rows != inputs.rows:
        raise RagnbError(
            f"the query gave {inputs.rows} rows at first and {rows} rows later; keep its result, as Parquet or "
            "with persist(), and assess that"
        )
    found = {key: _stacked({name: parts[name][key] for name in names}) for key in parts[names[0]]}
    means, no_data, unseen = found["means"], scenario.no_data, scenario.documents_may_fail
    worst = found.pop("worst")
    gates = diagnostics.check_gates(
        means, gates=_plain(asked), no_data=no_data, documents_may_fail=unseen
    )
    offered = {}
    if scenario.metrics is None and scenario.rubric is None:  # else somebody chose
        used = [metric.name for metric in metrics]
        offered = left_out(head_of(inputs.frame), used, inputs.facts)
    if not inputs.labelled:  # rates that a tool scored and ragnb did not compute
        weighed_rates = {name for name, weight in scenario.metric_weights.items() if weight > 0}
        offered |= {
            metric.name: "rate"
            for metric in metrics
            if metric.role == "rate"
            and metric.family not in ("wording", "log")
            and metric.name not in weighed_rates
        }
    comparison, changed, turned = beside_baseline(scenario, frame, metrics)
    accepted, said_of_anchor = beside_anchor(scenario, frame, metrics)
    # Pairs hold every question: rows that are streamed are more than memory may hold.
    is_whole = len(names) > 1 and inputs.stream is None
    rungs = ladder(scenario, frame, metrics, means) if is_whole else None
    account = make_account(
        means,
        worst=worst,
        lines=inputs.lines,
        coverage=_coverage(scenario, inputs, frame, names, comparison),
        answers=answers,
        metrics=metrics,
        decides=_deciding(means, asked),
        computed=computed_rates(inputs.labelled, inputs.log is not None),
        expect=scenario.expect,
        blank=scenario.blank,
    )
    allow = scenario.allow.model_dump()
    gates = diagnostics.reopen_incomplete(gates, account, allow=allow)
    of_input = diagnostics.completeness(account, allow=allow, no_data=no_data)
    beside = [gate for gate in asked if gate.not_worse_than is not None]
    if beside and scenario.baseline is None:
        raise RagnbError(
            f"gate {beside[0].name!r} asks not_worse_than: baseline, and the scenario names none; add "
            "baseline: with a system, a table of scores or the folder of a run"
        )
    of_change = (
        [diagnostics.check_differences(comparison, gates=beside, no_data=no_data)] if beside else []
    )
    gates = pd.concat([gates, *of_change, of_input], ignore_index=True)
    if scenario.candidate is not None:  # among several systems only its gates block
        other = gates["system"].notna() & (gates["system"] != scenario.candidate)
        reason = gates["reason"].mask(other, "not the candidate")
        gates = gates.assign(blocks=gates["blocks"] & ~other, reason=reason)
    asked_of, common_questions, common = overlap(frame, metrics, scenario, names)
    settings = _weighing(scenario, metrics, docs)
    weighed: Any = partial(
        weights.weigh, metrics=metrics, doc=settings.doc, strict=False, **settings.of_total
    )
    sheet = Assessment(
        **found,
        scenario=scenario,
        scores=weighed(frame)
        if inputs.stream is None
        else streams.worst_rows(frame, weighed, found["diagnoses"]),
        rows=inputs.rows,
        systems=means if len(names) > 1 else None,
        common=common,
        common_questions=common_questions,
        gates=gates,
        account=account,
        notes=changed,
        ledger=ledger(inputs, means, scenario.lang),
        inputs=inputs.files,
        calibration=calibrated(scenario, inputs.ratings),
        left_out=offered,
        comparison=comparison,
        accepted=accepted,
        ladder=rungs,
        changed=turned,
        log=inputs.log,
    )
    said = notes(sheet, inputs, metrics, asked_of, docs)
    return replace(sheet, notes=pd.concat([changed, said_of_anchor, said], ignore_index=True))


def _coverage(
    scenario: Scenario,
    inputs: Inputs,
    frame: Any,
    names: Sequence[Any],
    comparison: pd.DataFrame | None,
) -> list[Coverage]:
    """Return what each system was expected to answer: gold, cases, the baseline, else what its neighbours did."""
    found = [*inputs.coverage, *_baseline_coverage(comparison, names)]
    told = {one.system for one in found}
    if scenario.expect is None and not scenario.sample:  # a sample may hold other questions of each
        found += [one for one in system_coverage(frame, names) if one.system not in told]
    return found


def _baseline_coverage(comparison: pd.DataFrame | None, names: Sequence[Any]) -> list[Coverage]:
    """Return for each candidate how many questions that the baseline scored it scored too."""
    if comparison is None:
        return []
    out = []
    for candidate, rows in comparison.groupby("candidate", sort=False):
        deciding = rows[rows["primary"]] if rows["primary"].any() else rows
        scored = deciding["n_common"] + deciding["n_lost"]
        if not scored.any():
            continue
        share = deciding["n_common"] / scored.where(scored > 0)
        worst = deciding.iloc[int(np.nanargmin(share.to_numpy(dtype=float)))]
        expected = int(worst["n_common"] + worst["n_lost"])
        system = candidate if len(names) > 1 else None
        out.append(Coverage("baseline", system, expected, int(worst["n_common"])))
    return out


def _deciding(means: pd.DataFrame, gates: Iterable[Gate]) -> set[str]:
    """Return the metrics that the total or a gate that blocks uses."""
    weighed = means.loc[means["weight"] > 0, "metric"]
    return {*weighed, *(gate.metric for gate in gates if not gate.advisory)}


def _part(scenario: Scenario, inputs: Inputs, frame: Any, metrics: list[Metric]) -> dict[str, Any]:
    """Return the result frames of one system, or of a run that names none."""
    doc, how = scenario.doc, _clustering(scenario)
    weighing = _weighing(scenario, metrics)
    weights.need_documents(weights.column_names(frame), **how)
    questions = weights.question_of(frame, **how)
    pairs, slices = list(diagnostics.fitting(RULES, metrics)), _slices_of(frame, scenario)
    by_doc = [doc] if doc in weights.column_names(frame) else []
    bounded = [metric for metric in metrics if metric.bounded and metric.role == "quality"]
    of_docs = [(by, weights.question_of(frame, **how, by=by)) for by in by_doc]
    parts = [(None, questions), *of_docs, *((by, questions) for by in slices)]
    groups = [weights.moments_reduction(metrics, **how, by=by, questions=ids) for by, ids in parts]
    modes = diagnostics.mode_reductions(
        metrics, diagnostics.warning_bars(RULES, metrics), weighing, questions
    )
    of_rules = diagnostics.rule_gains(pairs, metrics, weighing)
    tenths = weights.histogram_reduction(bounded)
    found = weights.reduce_batches(frame, metrics, [of_rules, *modes, tenths, *groups])
    gains, mode_gains, shares, spread, reduced, *grouped = found
    weighing = _weighing(scenario, metrics, reduced.docs)
    outcomes = outcome_counts(frame, lang=scenario.lang) if inputs.labelled else None
    means = weighing.means(reduced)
    # A total does not apply to a question to which none of its metrics applies.
    total = means["role"] == "total"
    beside = count_not_applicable(frame, metrics)
    means.loc[total, "n_not_applicable"] += beside
    means.loc[total, "n_missing"] -= beside
    of_quality = means[(means["role"] == "quality") & means["metric"].isin(m.name for m in bounded)]
    worst = means
    if of_quality[["n_missing", "n_failed"]].to_numpy().any():
        derived = weights.moments_reduction(
            metrics, **how, questions=questions, derive=at_worst(bounded)
        )
        worst = weighing.means(weights.reduce_batches(frame, metrics, [derived])[0])
    return {
        "docs": reduced.docs,
        "means": means,
        "worst": worst,
        "answers": count_answers(frame, metrics, labelled=inputs.labelled),
        "diagnoses": diagnostics.findings(
            frame, pairs, reduced, gains, weighing, top=3, lang=scenario.lang
        ),
        "modes": diagnostics.mode_summary(mode_gains, shares, weighing),
        "operations": measure_operations(frame, operation_names(frame, metrics)),
        "outcomes": outcomes,
        "label_counts": _label_counts(frame, [*slices, *by_doc]) if outcomes is not None else None,
        "documents": _by_document(grouped[: len(by_doc)], weighing, means),
        "slices": _by_slice(grouped[len(by_doc) :], weighing),
        # How many rows score in each tenth, and how many have no score.
        "spread": spread.merge(
            means[["metric", "n_missing", "n_failed", "n_not_applicable"]], on="metric"
        ),
        "rows": int(reduced.rows.sum()),
    }


def _clustering(scenario: Scenario) -> dict[str, Any]:
    """Return the columns of documents and clusters, and what is known of all documents."""
    return {"doc": scenario.doc, "cluster": scenario.cluster, "corpus": scenario.corpus}


def _weighing(
    scenario: Scenario, metrics: list[Metric], docs: Collection[str] | None = None
) -> Weighing:
    """Return how means are weighed, without the weights of what does not occur, which a note names."""
    doc_weights = scenario.doc_weights
    return Weighing(
        weights.present_weights(scenario.metric_weights, [metric.name for metric in metrics]),
        doc_weights if docs is None else weights.present_weights(doc_weights, docs),
        scenario.doc,
        scenario.cluster,
        scenario.level,
        scenario.orient,
        scenario.rescale,
        scenario.corpus,
    )


def _stacked(parts: Mapping[Any, Any]) -> Any:
    """Return the frames of several systems as one, with the column ``system``; that of a single one as it is."""
    named = {name: frame for name, frame in parts.items() if frame is not None}
    if len(parts) == 1 or not named:
        return next(iter(named.values()), None)
    whole = pd.concat(named.values(), ignore_index=True)
    names = pd.Index([*named], dtype=object).repeat([len(frame) for frame in named.values()])
    whole.insert(0, "system", names)
    return whole


def _check_candidate(scenario: Scenario, names: list[Any], frame: Any) -> None:
    wanted = scenario.candidate
    if wanted is not None and names == [None]:
        names = (
            streams.distinct_values(frame, "system")
            if "system" in weights.column_names(frame)
            else []
        )
    if wanted is not None and wanted not in names:
        step = (
            ""
            if names
            else "The rows name no system; leave candidate: out, or add a column 'system'."
        )
        raise unknown("candidate", wanted, [str(name) for name in names], step)


def overlap(frame: Any, metrics: list[Metric], scenario: Scenario, names: list[Any]) -> Overlap:
    """Return what systems have in common where not all answered the same questions, else nothing."""
    # A question without any score was not answered: it must not make the means look comparable.
    some = [
        ~nw.col(m.name).is_null()
        for m in metrics
        if m.name in weights.column_names(frame) and m.role != "operation"
    ]
    scored = (
        nw.from_native(frame).filter(nw.any_horizontal(*some, ignore_nulls=True)) if some else None
    )
    asked, shared, rows = streams.common_questions(
        frame if scored is None else scored.to_native(), names
    )
    if all(n == shared for n in asked.values()):
        return {}, 0, None
    means = None
    if shared:
        found = weights.moments(rows, metrics=metrics, **_clustering(scenario), by="system")
        means = _weighing(scenario, metrics, found.docs).means(found)
    return asked, shared, means


def gates_of(scenario: Scenario, metrics: list[Metric], inputs: Inputs) -> tuple[Gate, ...]:
    """The scenario's gates, else the default ones for what is there, under its policy for what is inconclusive."""
    quality = {metric.name: metric for metric in metrics if metric.role == "quality"}
    ops: dict[str, Any] = {
        name: ">=" if metric.better == "higher" else "<=" for name, metric in quality.items()
    }
    found, advisory = list(scenario.gates or ()), list[Gate]()
    if scenario.gates is None:
        there = {metric.name for metric in metrics} if inputs.with_gold else ()
        # Somebody named these in the tool that scored, so they block.
        named = {name: row["threshold"] for name, row in inputs.tools.items() if name in ops}
        named = {name: at for name, at in named.items() if at is not None}
        found = [gate for gate in DEFAULT_GATES if gate.metric in there]
        found += [Gate(name, name, ops[name], at) for name, at in named.items()]
        # Nobody named these thresholds, so they are shown and never block.
        bars = diagnostics.warning_bars(
            RULES, [metric for name, metric in quality.items() if name not in named]
        )
        advisory = [Gate(name, name, ops[name], bar, advisory=True) for name, bar in bars.items()]
    given = (
        {name: value for name, value in asdict(gate).items() if value is not None} for gate in found
    )
    policy = {"undecided": scenario.undecided}
    return (
        *(Gate(**one | (policy if one["undecided"] == "value" else {})) for one in given),
        *advisory,
    )


# The parts of a run: by document, by slice


def _by_document(
    found: Sequence[Moments], weighing: Weighing, whole: pd.DataFrame
) -> pd.DataFrame | None:
    """Return the means by document, without rows that have none; of totals what they weigh and how they pull."""
    if not found:
        return None
    means = replace(weighing, doc_weights=None).means(found[0])
    named = means.dropna(subset=[found[0].by], ignore_index=True)
    named.columns = pd.Index(["document", *named.columns[1:]])
    by_name = {weights.nfc(name): weight for name, weight in (weighing.doc_weights or {}).items()}
    total, of_all = named["role"] == "total", whole.loc[whole["role"] == "total"].iloc[0]
    weighed = named["n"] * [by_name.get(weights.nfc(name), 1.0) for name in named["document"]]
    named["share"] = (weighed / weighed[total].sum()).where(total)
    named["pull"] = named["share"] * (named["value"] - of_all["value"])
    return named if len(named) else None


def _label_counts(frame: Any, columns: Sequence[str]) -> pd.DataFrame:
    """Return how often each label occurs in the groups of some columns: ``slice, group, label, n``."""
    tables = [
        pd.DataFrame(
            {name: [] for name in ("slice", "group", "label")} | {"n": pd.Series(dtype="int64")}
        )
    ]
    for name in dict.fromkeys(columns):
        rows = weights.opened(frame).select(
            nw.col(name).alias("group"), nw.col("label").cast(nw.String)
        )
        counts = rows.drop_nulls("label").group_by("group", "label").agg(nw.len().alias("n"))
        table = (
            weights.collected(counts)
            .to_pandas()
            .astype({"group": object})
            .fillna({"group": MISSING})
        )
        tables.append(
            table.assign(slice=name, group=[weights.nfc(str(group)) for group in table["group"]])
        )
    # Names in two forms of Unicode are one group.
    return pd.concat(tables).groupby(["slice", "group", "label"], as_index=False).agg({"n": "sum"})


def _slices_of(frame: Any, scenario: Scenario) -> Sequence[str]:
    """Return the columns of the slices; those nobody asked for only where their groups are few."""
    have = weights.column_names(frame)
    if scenario.slices is not None:
        need_columns(have, scenario.slices)
        return scenario.slices
    return [
        c
        for c in _SLICES
        if c in have and 1 < len(streams.distinct_values(frame, c)) <= _FEW_GROUPS
    ]


def _by_slice(found: Sequence[Moments], weighing: Weighing) -> pd.DataFrame | None:
    """Return the means by the groups of each slice."""
    tables = []
    for one in found:
        by = str(one.by)
        tables.append(weighing.means(one).rename(columns={by: "group", f"metric_{by}": by}))
        tables[-1].insert(0, "slice", by)
    return pd.concat(tables, ignore_index=True) if tables else None


# What a weight editor moves: the settings, the moments and the gates of a run, before any weight


def weighable(
    source: Any, **overrides: Any
) -> tuple[Scenario, Moments, tuple[Gate, ...], Pairs | None]:
    """Read what `assess` reads, and reduce it once.

    Parameters
    ----------
    source : Scenario, path, frame or Moments
    **overrides
        Fields of `Scenario`, as `assess` takes them.

    Returns
    -------
    (scenario, moments, gates, pairs)
        The moments by system, where there are several; the pairs of a candidate and its baseline, or of two
        systems, else None.

    Examples
    --------
    >>> import pandas as pd
    >>> weighable(pd.DataFrame({"faithfulness": [0.9, 0.4], "doc_name": ["a", "b"]}))[1]
    Moments(2 rows in 2 cells: 1 metrics, 2 documents, 1 groups)
    """
    if isinstance(source, Moments):
        scenario = Scenario.without_files(metrics=source.metrics).replace(**overrides)
        return scenario, source, _plain(gates_of(scenario, list(source.metrics), Inputs())), None
    scenario, inputs, metrics = read_inputs(source, overrides)
    frame, names = streams.systems(inputs.frame)
    by = None if names == [None] else "system"
    found = weights.moments(frame, metrics=metrics, **_clustering(scenario), by=by)
    # A baseline that somebody asks for here is refused in words; that of a file, as any two systems, may not pair.
    pairs = None
    with suppress(*[] if overrides.get("baseline") else [RagnbError]):
        pairs = _pairs(scenario, inputs.frame, metrics)
    return scenario, found, _plain(gates_of(scenario, metrics, inputs)), pairs


def _plain(gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
    """Return the gates on means; weights alone do not tell a difference from a baseline."""
    return tuple(gate for gate in gates if gate.not_worse_than is None)


def _pairs(scenario: Scenario, frame: Any, metrics: list[Metric]) -> Pairs | None:
    """Return the questions of the one candidate and its baseline, else of two systems; None for any others."""
    run = Run(scenario.name, scenario, frame, tuple(metrics))
    others = [name for name in run.systems if name != (scenario.candidate or run.systems[0])]
    if (scenario.baseline or (others if len(others) == 1 else None)) is None:
        return None
    _, every = paired_runs(run, scenario.baseline or others[0])
    return with_ratings(every, scenario)[0] if len(every) == 1 else None


_COMPACT = ("summary", "fix", "metrics", "gates", "outcomes", "log", "comparison", "documents")
_PACKAGES = (
    "numpy",
    "pandas",
    "scipy",
    "pydantic",
    "narwhals",
    "polars",
    "matplotlib",
    "papermill",
)


@dataclass(frozen=True, repr=False)
class Assessment:
    """Every small result frame of one run, made by `assess`.

    Attributes
    ----------
    scenario : Scenario
        The settings that were used, overrides included.
    scores : DataFrame
        The rows, weighed: ``weighted_score``, ``sample_weight``; with traces also their labels and rates. Of rows
        too many to hold (see `assess`) only those that the sheet shows: the 1,000 worst by weighted score, and
        the worst samples of the diagnoses. No number of the sheet is computed from them.
    rows : int
        How many rows the sheet is about.
    spread : DataFrame
        ``[system,] metric, bin_low, bin_high, n, n_low, n_high, n_missing, n_failed, n_not_applicable``: how many
        rows score in each tenth of a metric's range and at its very ends, and how many have no score.
    means : DataFrame
        As `weighted_means` gives it: the metrics, the rates, last ``weighted_score``.
    systems, common : DataFrame or None
        Where there are several systems, which are never pooled, ``means``, ``diagnoses``, ``modes``, ``outcomes``,
        ``documents`` and ``slices`` have a first column ``system``, and ``systems`` is ``means``; ``common`` is
        the same on the questions that all of them answered, where they did not answer the same ones; how many
        those are is ``common_questions``.
    documents : DataFrame or None
        The means by document; rows of one document are the clusters of its own interval.
    slices : DataFrame or None
        The same by the groups of the scenario's slices: ``slice, group`` and the columns of means.
    diagnoses, modes : DataFrame
        As `diagnose` and ``diagnostics.failure_summary`` give them.
    outcomes : DataFrame or None
        ``label, meaning, n, share`` of labelled traces.
    label_counts : DataFrame or None
        ``slice, group, label, n``: the same by the groups of the slices, and by document.
    gates : DataFrame
        As `check_gates` gives it, a row a gate and system, after them the gates on completeness (see
        ``diagnostics.completeness``).
    account : DataFrame
        ``stage, subject, system, expected, seen, lost, reason, failed, not_applicable, decides, worst``: what was
        expected and what came, from the ``lines`` of the files over ``questions`` and ``answers`` to the ``cells``
        of each metric and the ``total``; ``expected = seen + lost``. ``decides``: a gate or the total uses it.
        ``worst``: the mean if all that is lost were wrong.
    calibration : CalibrationCard or None
        Of the scenario's ratings; None without.
    comparison : DataFrame or None
        Beside the scenario's ``baseline``, as `compare` gives it; `report` names the previous run where the
        scenario names none.
    accepted : DataFrame or None
        Beside the scenario's ``anchor``, the accepted run, in the same form; None where that is the baseline.
    ladder : DataFrame or None
        Of several systems without candidate and baseline: the one with the best score beside each other one, as
        `compare` gives it, Holm's correction over the pairs.
    changed : DataFrame or None
        Of one candidate beside its baseline, one row a common question: ``sample_id`` (or what tells questions),
        ``before, now`` (its score that decides), ``before_label, now_label`` of traces with gold, and ``change``:
        ``fixed`` and ``broken`` where the answer turned right or wrong, else ``better, worse, same``.
    notes : DataFrame
        ``code, about, text``: what a reader must know before believing the numbers.
    ledger : DataFrame
        ``step, rows``: where the rows came from and where they went.
    inputs : list of dict
        ``role, path, sha256, rows`` of the files read.
    operations : DataFrame or None
        ``metric, n, mean, median, p95`` of each latency, number of tokens and cost; None where no column is one.
    left_out : mapping of column to str
        The columns that the table offers as metrics and that do not count, where nobody chose the metrics: what is
        not known of each (``direction, scale``), or that it is not ``declared``.
    log : Log or None
        Of traces without gold: ``patterns, daily, to_label``, the last a gold file to fill in.
    only : str or None
        The one of several systems whose frames these are, after `of_system`.

    Examples
    --------
    >>> from ragnb import assess
    >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
    >>> sheet.means["metric"].tolist()
    ['faithfulness', 'weighted_score']
    """

    scenario: Scenario
    scores: pd.DataFrame
    rows: int
    spread: pd.DataFrame
    means: pd.DataFrame
    systems: pd.DataFrame | None
    common: pd.DataFrame | None
    common_questions: int
    documents: pd.DataFrame | None
    slices: pd.DataFrame | None
    diagnoses: pd.DataFrame
    modes: pd.DataFrame
    outcomes: pd.DataFrame | None
    label_counts: pd.DataFrame | None
    gates: pd.DataFrame
    account: pd.DataFrame
    notes: pd.DataFrame
    ledger: pd.DataFrame
    inputs: list[dict[str, Any]]
    calibration: CalibrationCard | None = None
    operations: pd.DataFrame | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    comparison: pd.DataFrame | None = None
    accepted: pd.DataFrame | None = None
    ladder: pd.DataFrame | None = None
    changed: pd.DataFrame | None = None
    log: Log | None = None
    only: str | None = None

    @cached_property
    def verdict(self) -> str:
        """The answer to "is it good enough?" with its reason and the overall score, as the page begins."""
        return sentence(Formatter(self))

    @property
    def streamed(self) -> bool:
        """Whether `scores` holds only some of the rows."""
        return len(self.scores) < self.rows

    @property
    def blocked(self) -> bool:
        """Whether a gate blocks."""
        return bool(self.gates["blocks"].any())

    @property
    def incomplete(self) -> bool:
        """Whether more input lines are damaged or lost than ``allow:`` accepts."""
        return bool((self.gates["reason"] == "incomplete").any())

    @property
    def shown_system(self) -> str | None:
        """The system that a page shows in detail: `only`, the candidate, what gates block most, or the best."""
        if self.systems is None or self.only is not None:
            return self.only
        blocks, totals = (
            self.gates.groupby("system")["blocks"].sum(),
            self.systems["metric"] == "weighted_score",
        )
        order = self.systems[totals].assign(blocks=-self.systems["system"].map(blocks).fillna(0))
        worst = order.sort_values(["blocks", "value"], kind="stable")["system"].iloc[0]
        if self.ladder is not None and not self.gates["blocks"].any():
            return str(self.ladder["candidate"].iloc[0])
        return self.scenario.candidate or str(worst)

    def of_system(self, name: str) -> Assessment:
        """Return the same run with the frames of one system alone, which its pages show in detail.

        Raises
        ------
        RagnbError
            For a name that is none of the systems.

        Examples
        --------
        >>> from ragnb import assess
        >>> scores = pd.DataFrame({"question": ["x", "x"], "faithfulness": [1.0, 0.8], "system": ["a", "b"]})
        >>> assess(scores).of_system("b").means["value"].tolist()
        [0.8, 0.8]
        """
        names = (
            self.systems["system"].unique().tolist()
            if self.systems is not None and self.only is None
            else []
        )
        if name not in names:
            raise unknown("system", name, names)
        own: dict[str, Any] = {}
        for name_of_frame in (
            "means",
            "spread",
            "diagnoses",
            "modes",
            "operations",
            "outcomes",
            "label_counts",
            "documents",
            "slices",
        ):
            if (frame := getattr(self, name_of_frame)) is not None:
                own[name_of_frame] = (
                    frame[frame["system"] == name].drop(columns="system").reset_index(drop=True)
                )
        return replace(self, **own, only=name)

    def __repr__(self) -> str:
        return f"Assessment({self.verdict!r}, {self.rows} rows, {len(self.notes)} notes)"

    def sections(self, *keys: str) -> list[Section]:
        """Return the sections of the sheet that have something to say, in reading order.

        Parameters
        ----------
        *keys : str
            Of ``summary, fix, metrics, gates, outcomes, log, comparison, documents, judge, questions, run,
            glossary``; by default all.

        Raises
        ------
        RagnbError
            For a key that is none of these.

        Examples
        --------
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
        >>> [section.key for section in sheet.sections("metrics", "gates")]
        ['metrics', 'gates']
        """
        for key in keys:
            if key not in SECTIONS:
                raise unknown("section", key, SECTIONS)
        writer = Formatter(self)
        made = (SECTIONS[key](writer) for key in keys or SECTIONS)
        return [section for section in made if section is not None]

    def section(self, key: str) -> Section | None:
        """Return one section, which shows itself in a notebook and prints as Markdown; None where it is empty.

        Examples
        --------
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
        >>> sheet.section("metrics").name
        'Metrics'
        """
        return next(iter(self.sections(key)), None)

    @property
    def title(self) -> str:
        """What the run is called."""
        scenario = self.scenario
        named = scenario.title or (scenario.name if "name" in scenario.model_fields_set else None)
        return named or load(scenario.lang)("sheet.title")

    def _repr_html_(self) -> str:
        return render_fragment(self.sections(*_COMPACT))

    def to_html(self) -> str:
        """Return the whole page, which opens from a file and asks no host."""
        say, lang = load(self.scenario.lang), self.scenario.lang
        docs = 0 if self.documents is None else self.documents["document"].nunique()
        key = (
            "sheet.questions" if self.systems is None else "sheet.answers"
        )  # each system answers each
        facts = [f"{datetime.now(UTC):%Y-%m-%d}", counted(say, key, count(self.rows))]
        facts += [counted(say, "sheet.documents", count(docs))] if docs else []
        return render_page(self.sections(), title=self.title, facts=facts, lang=lang)

    def to_markdown(self) -> str:
        """Return the sheet as Markdown, without times and machine paths: equal input gives equal text.

        Examples
        --------
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8, 0.9], "doc_name": ["a", "b", "c"]}), gates=[])
        >>> next(line for line in sheet.to_markdown().splitlines() if line.startswith("- faith"))[:28]
        '- faithfulness: 0.9000 (w=1)'
        """
        sections = [section for section in self.sections() if section.key != "glossary"]
        return render_markdown(sections, title=self.title)

    def to_junit(self) -> str:
        """Return the gates as a JUnit XML test suite: one that blocks fails, one that is not decided is skipped.

        Examples
        --------
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
        >>> sheet.to_junit()[:22]
        '<?xml version="1.0" en'
        """
        return junit(self.scenario.name, cases(Formatter(self)))

    def save(
        self, folder: str | os.PathLike[str], *, command: str | None = None
    ) -> dict[str, Path]:
        """Write the page and the tables of the run into a folder; each file appears whole or not at all.

        Parameters
        ----------
        folder : path
            Made if it is not there.
        command : str, optional
            What was called, for ``run.json``.

        Returns
        -------
        dict of name to path
            ``scores.csv, means.csv, gates.json, gates.junit.xml, report.html, report.md, run.json,
            scenario.snapshot.yaml``; ``worst.csv`` in the place of ``scores.csv`` where the rows were too many to
            hold; with ratings also ``calibration.json, calibration.md``; of a log ``log_daily.csv, to_label.csv``.

        Examples
        --------
        >>> import tempfile
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
        >>> sorted(sheet.save(tempfile.mkdtemp()))[:4]
        ['gates.json', 'gates.junit.xml', 'means.csv', 'report.html']
        """
        judge = None if self.calibration is None else self.calibration.verdict
        result = {
            "blocked": self.blocked,
            "verdict": self.verdict,
            "overall": _overall(self),
            "judge": judge,
        }
        texts = {
            "worst.csv" if self.streamed else "scores.csv": to_csv_text(self.scores),
            "means.csv": to_csv_text(self.means),
            "gates.json": gates_json(self.gates, account=self.account),
            "gates.junit.xml": self.to_junit(),
            "report.html": self.to_html(),
            "report.md": self.to_markdown(),
            "scenario.snapshot.yaml": self.scenario.snapshot_text(relative_to=Path(folder)),
            "run.json": json_text(run_record(self.scenario, self.inputs, command, **result)),
        }
        if self.calibration is not None:
            texts["calibration.json"] = json_text(self.calibration.to_dict())
            texts["calibration.md"] = self.calibration.to_markdown()
        if self.log is not None:
            texts["log_daily.csv"] = to_csv_text(self.log.daily)
            texts["to_label.csv"] = "\ufeff" + to_csv_text(self.log.to_label)
        return {name: write_whole(Path(folder) / name, text) for name, text in texts.items()}


def run_record(
    scenario: Scenario, inputs: Any, command: str | None = None, **result: Any
) -> dict[str, Any]:
    """Return how a run was made (versions, input hashes, settings, command, time), and its result."""
    return {
        "ragnb": metadata.version("ragnb"),
        "python": platform.python_version(),
        "packages": {
            name: metadata.version(name)
            for name in _PACKAGES
            if any(metadata.distributions(name=name))
        },
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "scenario": scenario.name,
        "inputs": inputs,
        "weights": {"metric_weights": scenario.metric_weights, "doc_weights": scenario.doc_weights},
        **result,
    }


def _overall(sheet: Assessment) -> dict[str, Any]:
    """The weighted score as JSON holds it: what is not there is null."""
    row = Formatter(sheet).rows["weighted_score"]
    names = ("value", "low", "high", "range_low", "range_high")
    *found, low, high = (float(row[name]) if math.isfinite(row[name]) else None for name in names)
    counts = {name: int(row[name]) for name in ("n", "n_clusters")}
    return (
        dict(zip(names, found, strict=False))
        | counts
        | {"range": None if None in (low, high) else [low, high]}
    )


Row = dict[str, str]
_MANY = 5  # decisions side by side, of which one errs by chance in more than a tenth of runs
Say = Callable[..., str]
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
    means, lang, say = sheet.means, sheet.scenario.lang, load(sheet.scenario.lang)
    by_name = {}
    for name, part in (
        means.groupby("system", sort=False) if sheet.systems is not None else [(None, means)]
    ):
        own = part.drop(columns="system", errors="ignore").reset_index(drop=True)
        by_name[name] = [
            *records(weight_notes(own, lang=lang)),
            *least_set_note(own, metrics, lang=lang),
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
    reasons = [f"{metric.name}__reason" for metric in metrics] if inputs.stream is None else []
    if (
        left := inputs.frame.filter(reasons).eq(schema.STOPPED_EARLY).any(axis=1).sum()
        if reasons
        else 0
    ):
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
    candidate, answered = (
        sheet.scenario.candidate,
        listing(f"{name} {count(n)}" for name, n in asked.items()),
    )
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
    rates = not (rows["metric"] == "weighted_score").any()
    means = (
        f"{row['system']} {with_interval(row['value'], row['low'], row['high'], rates)}"
        for row in records(
            rows[rows["metric"] == ("correct_outcome" if rates else "weighted_score")]
        )
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
    drawn, rows = DRAWN in weights.column_names(inputs.frame), {"n": count(inputs.rows)}
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
            (not scenario.orient, "not_oriented", "weighted_score", {}),
            (scenario.rescale, "rescaled", "weighted_score", {}),
            (drawn, "drawn", DRAWN, {}),
        ],
    )


def _gate_notes(sheet: Assessment, metrics: list[Metric], say: Say) -> Iterator[Row]:
    """Say how firm the gates are; and of findings and intervals side by side, how many chance alone makes."""
    gates, level, slices = sheet.gates, sheet.scenario.level, sheet.slices
    asked = gates[gates["reason"] == ""]
    n, rules = (
        int((asked["role"] != "completeness").sum()),
        len(list(diagnostics.fitting(RULES, metrics))),
    )
    certain = int(sheet.diagnoses["certain"].sum())
    shown = 0 if slices is None else int(slices["low"].notna().sum())
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
    own = account[
        (account["subject"] == gate["metric"]) & account["stage"].isin(["cells", "total"])
    ]
    if gate["system"] is not None:
        own = own[own["system"] == gate["system"]]
    return any(too_much(row, sheet.scenario.allow.cells) for row in records(own))


def _of_gate(sheet: Assessment, row: Mapping[Any, Any], say: Say) -> Iterator[Row]:
    """Say of a gate that asks something what would decide it, or that documents nobody has seen may fail."""
    more, gate, means = row["more_needed"], str(row["gate"]), sheet.means
    named = gate if gate == row["metric"] else f"{gate} ({row['metric']})"
    named = named if row["system"] is None else f"{row['system']}: {named}"
    if if_documents_fail(row):
        write = percent if row["role"] == "rate" else number
        key = "documents_may_fail" if row["outcome"] == "pass" else "documents_unseen"
        told = {"share": percent(row["share_unseen"]), "low": write(row["low_if"])}
        own = means if row["system"] is None else means[means["system"] == row["system"]]
        n = own.loc[own["metric"] == row["metric"], "n_clusters"].iloc[0]
        yield _note(say, "documents_may_fail", gate, key, gate=named, n=n, **told)
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
    found = inputs.join.get("citations", ())
    for row in found:
        if row["form"] in CITATION_FORMS and row["form"] not in ("field", "list"):
            n, of = count(row["n"]), count(row["of"])
            said = say("note.citations_read", n=n, of=of, form=CITATION_FORMS[row["form"]])
            yield note_row("citations_read", row["system"] or "traces", _of_system(row, said))
    citing = {row["system"] for row in found if row["form"] is not None}
    forms = tried(sheet.scenario.citations)
    shapes = [say("log.citation_field") if one == "field" else CITATION_FORMS[one] for one in forms]
    for row in found:
        asked = _rate(sheet, "citation_hit_rate", row["system"])
        if row["system"] in citing or not asked:
            continue
        names = say("note.join").join(shapes)
        said = say("note.no_citations", n=count(row["of"]), forms=names)
        yield note_row("no_citations", row["system"] or "traces", _of_system(row, said))
    for name in [None] if sheet.systems is None else sheet.systems["system"].unique():
        claims, answerable = (
            _rate(sheet, rate, name) for rate in ("claim_containment", "over_refusal")
        )
        if claims and claims < answerable:
            said = say("note.claims", n=count(claims), of=count(answerable))
            yield note_row("claims", "claim_containment", _of_system({"system": name}, said))


def _of_system(row: Mapping[str, Any], text: str) -> str:
    return text if row["system"] is None else f"{row['system']}: {text}"


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
    yield from holding_notes(
        say, [(inputs.labelled and not inputs.with_gold, "no_gold", "traces", {})]
    )
    if inputs.log is not None:
        proposed, checked = inputs.log.patterns, count(inputs.log.checked)
        line, most = f"patterns: {flow(proposed['pattern'].tolist())}", count(proposed["n"].max())
        yield from holding_notes(
            say,
            [
                (len(proposed), "refusals_proposed", "patterns", {"n": most, "line": line}),
                (
                    inputs.log.checked == MOST_CHECKED,
                    "log_checked",
                    "support_lexical",
                    {"n": checked, "of": count(inputs.rows)},
                ),
            ],
        )
    for fact in inputs.facts:
        # Questions that repeat, and nothing says whether systems or runs gave the answers.
        if fact["fact"] == "owner" and fact["open"]:
            counts = {name: count(n) for name, n in fact["value"].items()}
            yield _note(say, "repeats", fact["role"], **counts)
    for row in inputs.gold:
        few = row["finding"] in ("questions", "answerable", "unanswerable")
        yield note_row(
            f"gold_{row['finding']}",
            "gold",
            row["text"] + ("" if few else _first(say, row["names"])),
        )
    told = (
        say("note.quoted", text=one_line(text, 60), n=count(n))
        for text, n in inputs.repeated.items()
    )
    answers = say("note.join").join(told)
    yield from holding_notes(say, [(answers, "repeated_answers", "traces", {"answers": answers})])
    of_gold = ("unmatched", "gold_without_trace", "duplicate_traces", "question_differs")
    for key in (*of_gold, *_OF_TRACES) if inputs.with_gold else ("duplicate_traces", *_OF_TRACES):
        if n := int(inputs.join.get(f"n_{key}", 0)):
            yield note_row(
                key,
                "traces",
                say(f"note.{key}", n=count(n)) + _first(say, inputs.join.get(key, ())),
            )
    yield from _citation_notes(sheet, inputs, say)
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for loss in inputs.lossy:
        said = loss["what"] in _LOSSY_SAID and (loss["column"] or loss["what"] == "bad_line")
        if said and (loss["role"], loss["what"]) != ("gold", "kept"):  # check_gold says it better
            found.setdefault(
                (_LOSSY_SAID[loss["what"]], loss["role"], str(loss["column"] or "")), []
            ).append(loss)
    for (code, role, column), rows in found.items():
        n = sum(int(row["n"]) for row in rows)
        details = listing((translated(row["detail"], lang) for row in rows), most=5)
        yield _note(
            say, code, column or role, role=say(f"role.{role}"), column=column, n=n, detail=details
        )
    used = {metric.name for metric in metrics}
    lexical = ", ".join(
        sorted(name for name in used if name in METRICS and METRICS[name].family == "wording")
    )
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
    return (
        say("note.first", names=", ".join(one_line(name, 60) for name in names[:3]))
        if names
        else ""
    )


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
