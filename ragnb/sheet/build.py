"""Scenario → Assessment: read, label, weigh, diagnose, check the gates, and say it in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb import diagnostics, weights
from ragnb.comparison.beside import beside_anchor, beside_baseline
from ragnb.comparison.differences import TOTAL, with_ratings
from ragnb.comparison.ladder import Ladder, ladder
from ragnb.comparison.operations import with_operations
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.source import Run, paired_runs
from ragnb.diagnostics import RULES
from ragnb.errors import RagnbError, need_columns, unknown
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
from ragnb.inputs.operations import operation_names
from ragnb.inputs.streams import head_of
from ragnb.inputs.unscored import not_scored_yet
from ragnb.markup import MISSING, is_missing
from ragnb.scenario import Scenario, need_arguments
from ragnb.schema import DEFAULT_GATES, Gate, Metric, quantile_of
from ragnb.sheet.assessment import Assessment
from ragnb.sheet.documents import document_means, stacked
from ragnb.sheet.notes import ledger, notes
from ragnb.sheet.operations import (
    is_asked,
    means_on_spark,
    measure_operations,
    measured_reduction,
    rows_for_gates,
    with_questions_needed,
)
from ragnb.sheet.passing import clustering, passing
from ragnb.sheet.ratings import calibrated
from ragnb.sheet.retrieval import retrieved
from ragnb.traces import outcome_counts
from ragnb.weights import Moments, Weighing
from ragnb.weights.conversations import (
    conversation_cluster,
    conversation_column,
    turn_column,
    turn_trends,
)

if TYPE_CHECKING:
    from ragnb.scenario.settings import Settings


_SLICES = ("kind", "language")
_FEW_GROUPS = 12
_MANY_TURNS = 40


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
    need_arguments(assess, overrides)
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
    asked_of_operation = _of_operation(asked, metrics)
    parts = {
        name: _part(
            scenario,
            inputs,
            streams.of_system(frame, name),
            metrics,
            measured=bool(asked_of_operation),
        )
        for name in names
    }
    measured = {name: part.pop("measured") for name, part in parts.items()}
    answers = {name: part.pop("answers") for name, part in parts.items()}
    of_documents = {name: part.pop("of_documents") for name, part in parts.items()}
    docs = set().union(*(part.pop("docs") for part in parts.values()))
    rows = sum(part.pop("rows") for part in parts.values())
    if rows != inputs.rows:
        raise RagnbError(
            f"the query gave {inputs.rows} rows at first and {rows} rows later; keep its result, as Parquet or "
            "with persist(), and assess that"
        )
    found = {key: stacked({name: parts[name][key] for name in names}) for key in parts[names[0]]}
    means = found["means"]
    no_data = scenario.no_data
    unseen = scenario.documents_may_fail
    worst = found.pop("worst")
    compared = [means]
    if asked_of_operation:
        beside_means = {
            name: rows_for_gates(one, asked_of_operation, scenario.level)
            for name, one in measured.items()
        }
        taken = stacked(beside_means)
        if taken is not None:
            compared.append(taken)
    gates = diagnostics.check_gates(
        pd.concat(compared, ignore_index=True),
        gates=_plain(asked),
        no_data=no_data,
        documents_may_fail=unseen,
    )
    if asked_of_operation:
        gates = with_questions_needed(gates, measured, scenario.level)
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
    comparison, changed, turned, took = beside_baseline(scenario, frame, metrics)
    accepted, said_of_anchor = beside_anchor(scenario, frame, metrics)
    # Pairs hold every question: rows that are streamed are more than memory may hold.
    is_whole = len(names) > 1 and inputs.stream is None
    if is_whole:
        rungs = ladder(scenario, frame, metrics, means)
    else:
        rungs = Ladder()
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
    of_change = []
    if beside:
        differences = with_operations(comparison, took, beside)
        of_change = [diagnostics.check_differences(differences, gates=beside, no_data=no_data)]
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
    if inputs.stream is None:
        scores = weighed(frame)
        turns = _turns(scenario, scores, metrics)
    else:
        scores = streams.worst_rows(frame, weighed, found["diagnoses"])
        turns = None
    sheet = Assessment(
        **found,
        of_documents={name: made for name, made in of_documents.items() if made is not None},
        scenario=scenario,
        scores=scores,
        turns=turns,
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
        operations_compared=took,
        accepted=accepted,
        ladder=rungs.table,
        weightings=rungs.maps,
        noise=None if inputs.stream is not None else _noise(scenario, frame, metrics),
        changed=turned,
        log=inputs.log,
    )
    sheet = replace(sheet, passing=passing(scenario, frame, names, sheet.calibration))
    said = notes(sheet, inputs, metrics, asked_of, docs)
    return replace(sheet, notes=pd.concat([changed, said_of_anchor, said], ignore_index=True))


def _of_operation(gates: Iterable[Gate], metrics: list[Metric]) -> list[Gate]:
    """Return the gates on what answers took that no metric of the run answers, such as ``p95(latency_s)``."""
    own = {metric.name for metric in metrics}
    return [gate for gate in gates if is_asked(gate.metric) and gate.metric not in own]


def _turns(scenario: Scenario, scores: Any, metrics: list[Metric]) -> pd.DataFrame | None:
    """Return how each metric of each system changes over the turns of its conversations; None without turns."""
    turn = turn_column(scores)
    if turn is None:
        return None
    frame = weights.as_pandas(scores)
    conversation = conversation_column(frame)
    if conversation is None:
        return None
    names = [metric.name for metric in metrics if metric.role != "operation"]
    cluster = scenario.cluster or conversation_cluster(frame, scenario.doc) or scenario.doc
    parts = {}
    for name in streams.systems(frame)[1]:
        own = streams.of_system(frame, name)
        parts[name] = turn_trends(
            own,
            [name for name in (TOTAL, *names) if name in own],
            turn=turn,
            conversation=conversation,
            cluster=cluster,
            level=scenario.level,
        )
    found: pd.DataFrame | None = stacked(parts)
    if found is not None and len(found):
        return found
    return None


def _noise(scenario: Scenario, frame: Any, metrics: list[Metric]) -> weights.Noise | None:
    """Return where the uncertainty comes from; None without repeats."""
    if "repeat" not in weights.column_names(frame):
        return None
    with suppress(RagnbError):  # no question has two rows, or two rows are one answer
        return weights.noise(
            frame,
            metrics=metrics,
            metric_weights=scenario.metric_weights or None,
            doc=scenario.doc,
            corpus=scenario.corpus,
            level=scenario.level,
            lang=scenario.lang,
        )
    return None


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
        if rows["primary"].any():
            deciding = rows[rows["primary"]]
        else:
            deciding = rows
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
    gated = [gate.metric for gate in gates if not gate.advisory]
    return {*weighed, *gated, *(found[1] for name in gated if (found := quantile_of(name)))}


def _part(
    scenario: Scenario,
    inputs: Inputs,
    frame: Any,
    metrics: list[Metric],
    *,
    measured: bool = False,
) -> dict[str, Any]:
    """Return the result frames of one system, or of a run that names none.

    `measured` tells whether a gate asks what the answers took.
    """
    doc = scenario.doc
    how = clustering(scenario)
    weighing = _weighing(scenario, metrics)
    weights.need_documents(weights.column_names(frame), **how)
    questions = weights.question_of(frame, **how)
    pairs = list(diagnostics.fitting(RULES, metrics))
    slices = _slices_of(frame, scenario)
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
    measures = operation_names(frame, metrics)
    of_spark = means_on_spark(frame, measures)
    taken = measured_reduction(
        measures if of_spark is None else [],
        metrics,
        doc=doc,
        cluster=scenario.cluster,
        questions=questions,
    )
    # Values of rows on Spark stay there.
    wanted = of_spark is None and (measured or bool(measures))
    reductions = [of_rules, *modes, tenths, *groups, *([taken] if wanted else [])]
    found = weights.reduce_batches(frame, metrics, reductions)
    taken_of_rows = found.pop() if wanted else None
    gains, mode_gains, shares, spread, reduced, *grouped = found
    weighing = _weighing(scenario, metrics, reduced.docs)
    if inputs.labelled:
        outcomes = outcome_counts(frame, lang=scenario.lang)
    else:
        outcomes = None
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
    of_documents = None
    if by_doc:
        score = means.loc[total, "value"].iloc[0]
        of_documents = partial(document_means, grouped[0], weighing, score)
    ranked = None
    ranked_by_step = None
    if inputs.labelled and inputs.stream is None:
        ranked, ranked_by_step = retrieved(scenario, frame, reduced.docs)
    return {
        "docs": reduced.docs,
        "means": means,
        "worst": worst,
        "answers": count_answers(frame, metrics, labelled=inputs.labelled),
        "diagnoses": diagnostics.findings(
            frame, pairs, reduced, gains, weighing, top=3, lang=scenario.lang
        ),
        "modes": diagnostics.mode_summary(mode_gains, shares, weighing),
        "operations": measure_operations(taken_of_rows, scenario.level, columns=measures)
        if of_spark is None
        else of_spark,
        "measured": taken_of_rows,
        "outcomes": outcomes,
        "retrieval": ranked,
        "retrieval_by_step": ranked_by_step,
        "label_counts": _label_counts(frame, [*slices, *by_doc]) if outcomes is not None else None,
        "of_documents": of_documents,
        "slices": _by_slice(grouped[len(by_doc) :], weighing),
        # How many rows score in each tenth, and how many have no score.
        "spread": spread.merge(
            means[["metric", "n_missing", "n_failed", "n_not_applicable"]], on="metric"
        ),
        "rows": int(reduced.rows.sum()),
    }


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


def _check_candidate(scenario: Scenario, names: list[Any], frame: Any) -> None:
    wanted = scenario.candidate
    if wanted is not None and names == [None]:
        if "system" in weights.column_names(frame):
            names = streams.distinct_values(frame, "system")
        else:
            names = []
    if wanted is not None and wanted not in names:
        if names:
            step = ""
        else:
            step = "The rows name no system; leave candidate: out, or add a column 'system'."
        raise unknown("candidate", wanted, [str(name) for name in names], step)


def overlap(frame: Any, metrics: list[Metric], scenario: Scenario, names: list[Any]) -> Overlap:
    """Return what systems have in common where not all answered the same questions, else nothing."""
    if len(names) < 2:
        return {}, 0, None
    # A question without any score was not answered: it must not make the means look comparable.
    some = [
        ~nw.col(m.name).is_null()
        for m in metrics
        if m.name in weights.column_names(frame) and m.role != "operation"
    ]
    if some:
        scored = nw.from_native(frame).filter(nw.any_horizontal(*some, ignore_nulls=True))
    else:
        scored = None
    asked, shared, rows = streams.common_questions(
        frame if scored is None else scored.to_native(), names
    )
    if all(n == shared for n in asked.values()):
        return {}, 0, None
    means = None
    if shared:
        found = weights.moments(rows, metrics=metrics, **clustering(scenario), by="system")
        means = _weighing(scenario, metrics, found.docs).means(found)
    return asked, shared, means


def gates_of(scenario: Scenario, metrics: list[Metric], inputs: Inputs) -> tuple[Gate, ...]:
    """The scenario's gates, else the default ones for what is there, under its policy for what is inconclusive."""
    quality = {metric.name: metric for metric in metrics if metric.role == "quality"}
    ops: dict[str, Any] = {
        name: ">=" if metric.better == "higher" else "<=" for name, metric in quality.items()
    }
    found = list(scenario.gates or ())
    advisory = list[Gate]()
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


def _label_counts(frame: Any, columns: Sequence[str]) -> pd.DataFrame:
    """Return how often each label occurs in the groups of some columns: ``slice, group, label, n``."""
    # Names in two forms of Unicode are one group.
    counted = Counter[tuple[str, str, str]]()
    for name in dict.fromkeys(columns):
        rows = weights.opened(frame).select(
            nw.col(name).alias("group"), nw.col("label").cast(nw.String)
        )
        counts = rows.drop_nulls("label").group_by("group", "label").agg(nw.len().alias("n"))
        for group, label, n in weights.collected(counts).iter_rows():
            if is_missing(group):
                shown = MISSING
            else:
                shown = weights.nfc(str(group))
            counted[name, shown, label] += n
    keys = sorted(counted)
    table = pd.DataFrame(keys, columns=["slice", "group", "label"], dtype=object)
    return table.assign(n=np.array([counted[key] for key in keys], dtype=np.int64))


def _slices_of(frame: Any, scenario: Scenario) -> Sequence[str]:
    """Return the columns of the slices; those nobody asked for only where their groups are few."""
    have = weights.column_names(frame)
    if scenario.slices is not None:
        need_columns(have, scenario.slices)
        return scenario.slices
    turn = turn_column(frame)
    most = dict.fromkeys(_SLICES, _FEW_GROUPS) | ({} if turn is None else {turn: _MANY_TURNS})
    return [
        c
        for c, many in most.items()
        if c in have and 1 < len(streams.distinct_values(frame, c)) <= many
    ]


def _by_slice(found: Sequence[Moments], weighing: Weighing) -> pd.DataFrame | None:
    """Return the means by the groups of each slice."""
    tables = []
    for one in found:
        by = str(one.by)
        tables.append(weighing.means(one).rename(columns={by: "group", f"metric_{by}": by}))
        tables[-1].insert(0, "slice", by)
    if tables:
        return pd.concat(tables, ignore_index=True)
    return None


def weighable(
    source: Any, **overrides: Any
) -> tuple[Scenario, Moments, tuple[Gate, ...], Pairs | None]:
    """Read what `assess` reads, and reduce it once; of a scenario that has not run what it will compute.

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
    try:
        scenario, inputs, metrics = read_inputs(source, overrides)
    except RagnbError:
        planned = not_scored_yet(source, overrides)
        if planned is None:
            raise
        scenario, inputs, metrics = planned
    frame, names = streams.systems(inputs.frame)
    by = None if names == [None] else "system"
    found = weights.moments(frame, metrics=metrics, **clustering(scenario), by=by)
    try:
        pairs = _pairs(scenario, inputs.frame, metrics)
    except RagnbError:
        # A baseline that somebody asks for here is refused in words; that of a file may not pair.
        if overrides.get("baseline"):
            raise
        pairs = None
    # Weights move no quantile of a measure of operation.
    gates = gates_of(scenario, metrics, inputs)
    of_operation = _of_operation(gates, metrics)
    weighed = tuple(gate for gate in gates if gate not in of_operation)
    return scenario, found, _plain(weighed), pairs


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
    if len(every) == 1:
        return with_ratings(every, scenario)[0]
    return None
