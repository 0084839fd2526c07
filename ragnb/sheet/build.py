"""Scenario → Assessment: read, label, weigh, diagnose, check the gates, and say it in words, system by system."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Unpack

import narwhals as nw
import pandas as pd

from ragnb import diagnostics, weights
from ragnb.comparison.changed import beside_baseline
from ragnb.comparison.differences import paired_runs
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.source import Run, systems_of
from ragnb.diagnostics import RULES
from ragnb.errors import RagnbError, need_columns, unknown
from ragnb.inputs import Inputs, gather, join_stages, opened, prepared, streams, with_cases
from ragnb.markup import MISSING
from ragnb.scenario import Scenario
from ragnb.schema import DEFAULT_GATES, Gate, Metric
from ragnb.sheet import notes
from ragnb.sheet.notes import Overlap
from ragnb.sheet.result import Assessment
from ragnb.sheet.sections.judge import calibrated
from ragnb.traces import count_unanswerable, outcome_counts
from ragnb.weights import Moments, Weighing

if TYPE_CHECKING:
    from ragnb.scenario.settings import Settings

_SLICES, _FEW_GROUPS = ("kind", "language"), 12


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
    scenario, frame = opened(source, overrides)
    scenario = with_cases(scenario) if frame is None else scenario
    inputs = gather(scenario, frame)
    if frame is None:
        join_stages(scenario, inputs)
    try:
        return _sheet(scenario, inputs)
    finally:
        if inputs.stream is not None:
            inputs.stream.close()


def _sheet(scenario: Scenario, inputs: Inputs) -> Assessment:
    metrics = prepared(scenario, inputs)
    frame, names = streams.systems(inputs.frame)
    _check_candidate(scenario, names, frame)
    asked = gates_of(scenario, metrics, inputs)
    parts = {name: _part(scenario, inputs, streams.of_system(frame, name), metrics) for name in names}
    docs = set().union(*(part.pop("docs") for part in parts.values()))
    unscored = sum(part.pop("unscored") for part in parts.values())
    found = {key: _stacked({name: parts[name][key] for name in names}) for key in parts[names[0]]}
    means, no_data, unseen = found["means"], scenario.no_data, scenario.documents_may_fail
    gates = diagnostics.check_gates(means, gates=_plain(asked), no_data=no_data, documents_may_fail=unseen)
    limits: dict[str, Any] = {"allow": scenario.damaged.allow, "no_data": no_data}
    of_input = diagnostics.completeness(means, lines=inputs.lines, coverage=inputs.coverage, **limits)
    comparison, changed, turned = beside_baseline(scenario, frame, metrics)
    beside = [gate for gate in asked if gate.not_worse_than is not None]
    if beside and scenario.baseline is None:
        raise RagnbError(
            f"gate {beside[0].name!r} asks not_worse_than: baseline, and the scenario names none; add "
            "baseline: with a system, a table of scores or the folder of a run"
        )
    of_change = [diagnostics.check_differences(comparison, gates=beside, no_data=no_data)] if beside else []
    gates = pd.concat([gates, *of_change, of_input], ignore_index=True)
    if scenario.candidate is not None:  # among several systems only its gates block
        other = gates["system"].notna() & (gates["system"] != scenario.candidate)
        reason = gates["reason"].mask(other, "not the candidate")
        gates = gates.assign(blocks=gates["blocks"] & ~other, reason=reason)
    shared = overlap(frame, metrics, scenario, names)
    card = calibrated(scenario, inputs.ratings)
    said = notes.notes(scenario, inputs, means, gates, metrics, card, shared, docs, found)
    settings = _weighing(scenario, metrics, docs)
    weighed = weights.weigh(frame, metrics=metrics, doc=settings.doc, strict=False, **settings.of_total)
    return Assessment(
        **found,
        scenario=scenario,
        scores=weighed if inputs.stream is None else streams.worst_rows(weighed, found["diagnoses"]),
        rows=inputs.rows,
        unscored=unscored,
        systems=means if len(names) > 1 else None,
        common=shared[2],
        common_questions=shared[1],
        gates=gates,
        notes=pd.concat([changed, said], ignore_index=True),
        ledger=notes.ledger(inputs, means, scenario.lang),
        inputs=inputs.files,
        calibration=card,
        comparison=comparison,
        changed=turned,
    )


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
    modes = diagnostics.mode_reductions(metrics, diagnostics.warning_bars(RULES, metrics), weighing, questions)
    of_rules = diagnostics.rule_gains(pairs, metrics, weighing)
    tenths = weights.histogram_reduction(bounded, ends=True)
    found = weights.reduce_batches(frame, metrics, [of_rules, *modes, tenths, *groups])
    gains, mode_gains, shares, spread, reduced, *grouped = found
    weighing = _weighing(scenario, metrics, reduced.docs)
    outcomes = outcome_counts(frame, lang=scenario.lang) if inputs.labelled else None
    means = weighing.means(reduced)
    if not any(metric.role == "quality" and metric.grades_refusals for metric in metrics):
        # A total of metrics that cannot grade a refusal does not apply to a question that has no answer.
        total, beside = means["role"] == "total", count_unanswerable(frame)
        means.loc[total, "n_not_applicable"] += beside
        means.loc[total, "n_missing"] -= beside
    return {
        "docs": reduced.docs,
        "means": means,
        "diagnoses": diagnostics.findings(frame, pairs, reduced, gains, weighing, top=3, lang=scenario.lang),
        "modes": diagnostics.mode_summary(mode_gains, shares, weighing),
        "outcomes": outcomes,
        "label_counts": _label_counts(frame, [*slices, *by_doc]) if outcomes is not None else None,
        "documents": _by_document(grouped[: len(by_doc)], weighing, means),
        "slices": _by_slice(grouped[len(by_doc) :], weighing),
        # How many rows score in each tenth, and how many have no score.
        "spread": spread.merge(means[["metric", "n_missing", "n_failed", "n_not_applicable"]], on="metric"),
        "unscored": _unscored(frame, reduced, outcomes),
    }


def _clustering(scenario: Scenario) -> dict[str, Any]:
    """Return the columns of documents and clusters, and what is known of all documents."""
    return {"doc": scenario.doc, "cluster": scenario.cluster, "corpus": scenario.corpus}


def _weighing(scenario: Scenario, metrics: list[Metric], docs: Collection[str] | None = None) -> Weighing:
    """Return how means are weighed, without the weights of what does not occur, which a note names."""
    doc_weights = scenario.doc_weights
    return Weighing(
        weights.present_weights(scenario.metric_weights, [metric.name for metric in metrics]),
        doc_weights if docs is None else weights.present_weights(doc_weights, docs),
        scenario.doc, scenario.cluster, scenario.level, scenario.orient, scenario.rescale, scenario.corpus,
    )  # fmt: skip


def _stacked(parts: Mapping[Any, Any]) -> Any:
    """Return the frames of several systems as one, with the column ``system``; that of a single one as it is."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    named = {name: frame for name, frame in parts.items() if frame is not None}
    if not named:
        return None
    whole = pd.concat(named.values(), ignore_index=True)
    names = pd.Index([*named], dtype=object).repeat([len(frame) for frame in named.values()])
    whole.insert(0, "system", names)
    return whole


def _check_candidate(scenario: Scenario, names: list[Any], frame: Any) -> None:
    wanted = scenario.candidate
    if wanted is not None and names == [None]:
        names = streams.distinct_values(frame, "system") if "system" in weights.column_names(frame) else []
    if wanted is not None and wanted not in names:
        step = "" if names else "The rows name no system; leave candidate: out, or add a column 'system'."
        raise unknown("candidate", wanted, [str(name) for name in names], step)


def overlap(frame: Any, metrics: list[Metric], scenario: Scenario, names: list[Any]) -> Overlap:
    """Return what systems have in common where not all answered the same questions, else nothing."""
    # A question without any score was not answered: it must not make the means look comparable.
    some = [~nw.col(m.name).is_null() for m in metrics if m.name in weights.column_names(frame)]
    scored = nw.from_native(frame).filter(nw.any_horizontal(*some, ignore_nulls=True)) if some else None
    asked, shared, rows = streams.common_questions(frame if scored is None else scored.to_native(), names)
    if all(n == shared for n in asked.values()):
        return {}, 0, None
    means = None
    if shared:
        found = weights.moments(rows, metrics=metrics, **_clustering(scenario), by="system")
        means = _weighing(scenario, metrics, found.docs).means(found)
    return asked, shared, means


def gates_of(scenario: Scenario, metrics: list[Metric], inputs: Inputs) -> tuple[Gate, ...]:
    """The scenario's gates, else the default ones for what is there, under its policy for what is inconclusive."""
    policy = scenario.undecided
    if scenario.gates is not None:
        return tuple(_under(policy, gate) for gate in scenario.gates)
    there = {metric.name for metric in metrics} if inputs.with_gold else ()
    found = [_under(policy, gate) for gate in DEFAULT_GATES if gate.metric in there]
    quality = [metric for metric in metrics if metric.role == "quality"]
    ops: dict[str, Any] = {metric.name: ">=" if metric.better == "higher" else "<=" for metric in quality}
    # Nobody named these thresholds, so they are shown and never block.
    bars = diagnostics.warning_bars(RULES, quality)
    found += [Gate(name, name, ops[name], bar, advisory=True) for name, bar in bars.items()]
    return tuple(found)


def _under(policy: Any, gate: Gate) -> Gate:
    """Return a gate under the policy of the scenario, if it has none of its own."""
    given = {name: value for name, value in asdict(gate).items() if value is not None}
    return Gate(**given | {"undecided": policy}) if gate.undecided == "value" else gate


# The parts of a run: by document, by slice, by tenths of each metric, and what has no score at all


def _unscored(frame: Any, reduced: Moments, outcomes: pd.DataFrame | None) -> int:
    """Return how many rows have no score of quality though one applies; of traces without any metric, no label."""
    quality = [k for k, metric in enumerate(reduced.metrics) if metric.role == "quality"]
    if quality:
        alone = ~reduced.cells.present[:, quality].any(axis=1)
        graded = any(reduced.metrics[k].grades_refusals for k in quality)
        return int(reduced.cells.n[alone].sum()) - (0 if graded else count_unanswerable(frame))
    return int(reduced.rows.sum()) - (0 if outcomes is None else int(outcomes["n"].sum()))


def _by_document(found: Sequence[Moments], weighing: Weighing, whole: pd.DataFrame) -> pd.DataFrame | None:
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
    tables = []
    for name in dict.fromkeys(columns):
        rows = weights.opened(frame).select(name, nw.col("label").cast(nw.String))
        counts = weights.collected(rows.group_by(name, "label").agg(nw.len().alias("n"))).to_pandas()
        counts = counts.dropna(subset="label").rename(columns={name: "group"}).fillna({"group": MISSING})
        tables.append(counts.assign(slice=name, group=[weights.nfc(str(group)) for group in counts["group"]]))
    names = ["slice", "group", "label", "n"]
    found = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=names)
    return found[names].sort_values(names[:3], ignore_index=True)


def _slices_of(frame: Any, scenario: Scenario) -> Sequence[str]:
    """Return the columns of the slices; those nobody asked for only where their groups are few."""
    have = weights.column_names(frame)
    if scenario.slices is not None:
        need_columns(have, scenario.slices)
        return scenario.slices
    return [c for c in _SLICES if c in have and 1 < len(streams.distinct_values(frame, c)) <= _FEW_GROUPS]


def _by_slice(found: Sequence[Moments], weighing: Weighing) -> pd.DataFrame | None:
    """Return the means by the groups of each slice."""
    tables = []
    for one in found:
        by = str(one.by)
        tables.append(weighing.means(one).rename(columns={by: "group", f"metric_{by}": by}))
        tables[-1].insert(0, "slice", by)
    return pd.concat(tables, ignore_index=True) if tables else None


# What a weight editor moves: the settings, the moments and the gates of a run, before any weight


def weighable(source: Any, **overrides: Any) -> tuple[Scenario, Moments, tuple[Gate, ...], Pairs | None]:
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
    scenario, frame = opened(source, overrides)
    inputs = gather(scenario, frame)
    metrics = prepared(scenario, inputs)
    several = "system" in inputs.frame and inputs.frame["system"].nunique() > 1
    by = "system" if several else None
    found = weights.moments(inputs.frame, metrics=metrics, **_clustering(scenario), by=by)
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
    run = Run(scenario.name, scenario, frame, tuple(metrics), systems_of(frame, "system"))
    others = [name for name in run.systems if name != (scenario.candidate or run.systems[0])]
    if (scenario.baseline or (others if len(others) == 1 else None)) is None:
        return None
    _, every = paired_runs(run, scenario.baseline or others[0])
    return every[0] if len(every) == 1 else None
