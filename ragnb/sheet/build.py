"""Scenario → Assessment: read, label, weigh, diagnose, check the gates, and say it in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb import weights
from ragnb.comparison.beside import beside_anchor, beside_baseline
from ragnb.comparison.ladder import Ladder, ladder
from ragnb.errors import RagnbError, unknown
from ragnb.inputs import (
    Coverage,
    Inputs,
    computed_rates,
    make_account,
    read_inputs,
    streams,
    system_coverage,
)
from ragnb.inputs.candidates import left_out
from ragnb.inputs.streams import head_of
from ragnb.scenario import Scenario, need_arguments
from ragnb.schema import TOTAL, Metric
from ragnb.sheet.assessment import Assessment
from ragnb.sheet.checks import check_means, deciding, gates_of, of_operation, with_completeness
from ragnb.sheet.documents import stacked
from ragnb.sheet.notes import ledger, notes
from ragnb.sheet.passing import clustering, passing
from ragnb.sheet.ratings import calibrated
from ragnb.sheet.system import SystemFrames, system_frames, weighing_of
from ragnb.weights.conversations import (
    conversation_cluster,
    conversation_column,
    turn_column,
    turn_trends,
)

if TYPE_CHECKING:
    from ragnb.scenario.settings import Settings


class Overlap(NamedTuple):
    """What several systems have in common that answered different questions.

    Attributes
    ----------
    answered : mapping of system to int
        How many questions each answered; empty where all answered the same ones.
    common : int
        How many questions all of them answered.
    means : DataFrame or None
        On those questions, in the form of `Assessment.systems`; None where there is none.
    """

    answered: Mapping[Any, int]
    common: int
    means: pd.DataFrame | None


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
    """Compute every frame of a run that has been read, and put them on one sheet."""
    frame, names = streams.systems(inputs.frame)
    _check_candidate(scenario, names, frame)
    gates = gates_of(scenario, metrics, inputs)
    gates_of_operation = of_operation(gates, metrics)
    systems = {
        name: system_frames(
            scenario,
            inputs,
            streams.of_system(frame, name),
            metrics,
            measured=bool(gates_of_operation),
        )
        for name in names
    }
    _check_rows(inputs, systems.values())
    frames = _stacked_frames(systems)
    means = frames["means"]
    docs = set().union(*(system.docs for system in systems.values()))
    taken = {name: system.taken for name, system in systems.items()}
    checked = check_means(gates, gates_of_operation, means, taken, scenario)
    differences = beside_baseline(scenario, frame, metrics)
    accepted, anchor_notes = beside_anchor(scenario, frame, metrics)
    coverage = _coverage(scenario, inputs, frame, names, differences.table)
    account = _account(scenario, inputs, metrics, systems, means, coverage, deciding(means, gates))
    asked, common_questions, common_means = overlap(frame, metrics, scenario, names)
    # Pairs, turns and repeats hold every question: rows that are streamed are more than memory may hold.
    is_whole = inputs.stream is None
    rungs = Ladder()
    if is_whole and len(names) > 1:
        rungs = ladder(scenario, frame, metrics, means)
    scores = _weighed_rows(scenario, inputs, frame, metrics, docs, frames["diagnoses"])
    calibration = calibrated(scenario, inputs.ratings)
    sheet = Assessment(
        **frames,
        of_documents={
            name: system.of_documents
            for name, system in systems.items()
            if system.of_documents is not None
        },
        scenario=scenario,
        scores=scores,
        turns=_turns(scenario, scores, metrics) if is_whole else None,
        rows=inputs.rows,
        systems=means if len(names) > 1 else None,
        common=common_means,
        common_questions=common_questions,
        gates=with_completeness(checked, account, gates, differences, scenario),
        account=account,
        notes=differences.notes,
        ledger=ledger(inputs, means, scenario.lang),
        inputs=inputs.files,
        calibration=calibration,
        passing=passing(scenario, frame, names, calibration),
        left_out=_left_out(scenario, inputs, metrics),
        comparison=differences.table,
        operations_compared=differences.operations,
        accepted=accepted,
        ladder=rungs.table,
        weightings=rungs.maps,
        noise=_noise(scenario, frame, metrics) if is_whole else None,
        changed=differences.questions,
        log=inputs.log,
    )
    # The other notes are of what the sheet shows, so they are made last; those on comparisons stay first.
    run_notes = notes(sheet, inputs, metrics, asked, docs)
    every_note = pd.concat([differences.notes, anchor_notes, run_notes], ignore_index=True)
    return replace(sheet, notes=every_note)


def _account(
    scenario: Scenario,
    inputs: Inputs,
    metrics: list[Metric],
    systems: Mapping[Any, SystemFrames],
    means: pd.DataFrame,
    coverage: list[Coverage],
    decides: Collection[str],
) -> pd.DataFrame:
    """Return what was expected and what came, over all systems; `decides` are the metrics that decide."""
    return make_account(
        means,
        worst=stacked({name: system.worst for name, system in systems.items()}),
        lines=inputs.lines,
        coverage=coverage,
        answers={name: system.answers for name, system in systems.items()},
        metrics=metrics,
        decides=decides,
        computed=computed_rates(inputs.labelled, inputs.log is not None),
        expect=scenario.expect,
        blank=scenario.blank,
    )


def _check_rows(inputs: Inputs, systems: Iterable[SystemFrames]) -> None:
    """Refuse a query that gave other rows when it ran again."""
    rows = sum(system.rows for system in systems)
    if rows != inputs.rows:
        raise RagnbError(
            f"the query gave {inputs.rows} rows at first and {rows} rows later; keep its result, as Parquet or "
            "with persist(), and assess that"
        )


def _stacked_frames(systems: Mapping[Any, SystemFrames]) -> dict[str, Any]:
    """Return each frame of all systems, one below the other."""
    first = next(iter(systems.values()))
    return {
        key: stacked({name: system.frames[key] for name, system in systems.items()})
        for key in first.frames
    }


def _weighed_rows(
    scenario: Scenario,
    inputs: Inputs,
    frame: Any,
    metrics: list[Metric],
    docs: Collection[str],
    diagnoses: pd.DataFrame,
) -> Any:
    """Return the rows with their weighted scores; of a stream only the worst."""
    weighing = weighing_of(scenario, metrics, docs)
    weighed: Any = partial(
        weights.weigh, metrics=metrics, doc=weighing.doc, strict=False, **weighing.of_total
    )
    if inputs.stream is None:
        return weighed(frame)
    return streams.worst_rows(frame, weighed, diagnoses)


def _left_out(scenario: Scenario, inputs: Inputs, metrics: list[Metric]) -> dict[str, str]:
    """Return what the table offers as metrics that do not count, where nobody chose them, and why."""
    offered = {}
    if scenario.metrics is None and scenario.rubric is None:
        used = [metric.name for metric in metrics]
        offered = left_out(head_of(inputs.frame), used, inputs.facts)
    # The rates of labelled traces are ragnb's own; those below a tool scored.
    if inputs.labelled:
        return offered
    weighed = {name for name, weight in scenario.metric_weights.items() if weight > 0}
    for metric in metrics:
        is_rate = metric.role == "rate" and metric.family not in ("wording", "log")
        if is_rate and metric.name not in weighed:
            offered[metric.name] = "rate"
    return offered


def _turns(scenario: Scenario, scores: Any, metrics: list[Metric]) -> pd.DataFrame | None:
    """Return how each metric of each system changes over the turns of its conversations; None without turns."""
    turn = turn_column(scores)
    if turn is None:
        return None
    frame = weights.as_pandas(scores)
    conversation = conversation_column(frame)
    if conversation is None:
        return None
    trending = [TOTAL, *(metric.name for metric in metrics if metric.role != "operation")]
    cluster = scenario.cluster or conversation_cluster(frame, scenario.doc) or scenario.doc
    _, systems = streams.systems(frame)
    parts = {}
    for system in systems:
        rows_of_system = streams.of_system(frame, system)
        parts[system] = turn_trends(
            rows_of_system,
            [metric for metric in trending if metric in rows_of_system],
            turn=turn,
            conversation=conversation,
            cluster=cluster,
            level=scenario.level,
        )
    trends: pd.DataFrame | None = stacked(parts)
    if trends is not None and len(trends):
        return trends
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
    coverage = [*inputs.coverage, *_baseline_coverage(comparison, names)]
    covered = {known.system for known in coverage}
    # A sample may hold other questions of each system, so that none tells what another should have answered.
    if scenario.expect is None and not scenario.sample:
        coverage += [
            by_neighbours
            for by_neighbours in system_coverage(frame, names)
            if by_neighbours.system not in covered
        ]
    return coverage


def _baseline_coverage(comparison: pd.DataFrame | None, names: Sequence[Any]) -> list[Coverage]:
    """Return for each candidate how many questions that the baseline scored it scored too."""
    if comparison is None:
        return []
    covered = []
    for candidate, rows in comparison.groupby("candidate", sort=False):
        if rows["primary"].any():
            deciding = rows[rows["primary"]]
        else:
            deciding = rows
        scored_by_baseline = deciding["n_common"] + deciding["n_lost"]
        if not scored_by_baseline.any():
            continue
        # A metric that the baseline never scored has no share: it must not be taken for the worst one.
        share = deciding["n_common"] / scored_by_baseline.where(scored_by_baseline > 0)
        worst = deciding.iloc[int(np.nanargmin(share.to_numpy(dtype=float)))]
        expected = int(worst["n_common"] + worst["n_lost"])
        system = candidate if len(names) > 1 else None
        covered.append(Coverage("baseline", system, expected, int(worst["n_common"])))
    return covered


def _check_candidate(scenario: Scenario, names: list[Any], frame: Any) -> None:
    """Refuse a candidate that is none of the systems."""
    wanted = scenario.candidate
    if wanted is None:
        return
    # A run of one system is not told apart by name (see `streams.systems`), but its rows may name it.
    if names == [None]:
        names = []
        if "system" in weights.column_names(frame):
            names = streams.distinct_values(frame, "system")
    if wanted in names:
        return
    step = ""
    if not names:
        step = "The rows name no system; leave candidate: out, or add a column 'system'."
    raise unknown("candidate", wanted, [str(name) for name in names], step)


def overlap(frame: Any, metrics: list[Metric], scenario: Scenario, names: list[Any]) -> Overlap:
    """Return what systems have in common where not all answered the same questions, else nothing."""
    nothing = Overlap({}, 0, None)
    if len(names) < 2:
        return nothing
    # A question without any score was not answered: it must not make the means look comparable.
    have = weights.column_names(frame)
    has_score = [
        ~nw.col(metric.name).is_null()
        for metric in metrics
        if metric.name in have and metric.role != "operation"
    ]
    scored = frame
    if has_score:
        has_any = nw.any_horizontal(*has_score, ignore_nulls=True)
        scored = nw.from_native(frame).filter(has_any).to_native()
    answered, common, rows = streams.common_questions(scored, names)
    if all(n == common for n in answered.values()):
        return nothing
    means = None
    if common:
        reduced = weights.moments(rows, metrics=metrics, **clustering(scenario), by="system")
        means = weighing_of(scenario, metrics, reduced.docs).means(reduced)
    return Overlap(answered, common, means)
