"""What the weight editor weighs: the moments of a run, its gates and its pairs."""

from __future__ import annotations

from typing import Any

from ragnb import weights
from ragnb.comparison.differences import with_ratings
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.source import Run, paired_runs
from ragnb.errors import RagnbError
from ragnb.inputs import Inputs, read_inputs, streams
from ragnb.inputs.unscored import not_scored_yet
from ragnb.scenario import Scenario
from ragnb.schema import Gate, Metric
from ragnb.sheet.checks import gates_of, of_operation, plain
from ragnb.sheet.passing import clustering
from ragnb.weights import Moments


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
        return scenario, source, plain(gates_of(scenario, list(source.metrics), Inputs())), None
    try:
        scenario, inputs, metrics = read_inputs(source, overrides)
    except RagnbError:
        planned = not_scored_yet(source, overrides)
        if planned is None:
            raise
        scenario, inputs, metrics = planned
    frame, names = streams.systems(inputs.frame)
    by = None if names == [None] else "system"  # [None]: the rows are not of several systems
    reduced = weights.moments(frame, metrics=metrics, **clustering(scenario), by=by)
    try:
        pairs = _pairs(scenario, inputs.frame, metrics)
    except RagnbError:
        # A baseline that somebody asks for here is refused in words; that of a file may not pair.
        if overrides.get("baseline"):
            raise
        pairs = None
    # Weights move no quantile of a measure of operation.
    gates = gates_of(scenario, metrics, inputs)
    of_measures = of_operation(gates, metrics)
    weighed = tuple(gate for gate in gates if gate not in of_measures)
    return scenario, reduced, plain(weighed), pairs


def _pairs(scenario: Scenario, frame: Any, metrics: list[Metric]) -> Pairs | None:
    """Return the questions of the one candidate and its baseline, else of two systems; None for any others."""
    run = Run(scenario.name, scenario, frame, tuple(metrics))
    baseline = scenario.baseline
    # Two systems need no words on which is compared with which; of more it is not known.
    if not baseline:
        if not run.systems:
            return None
        candidate = scenario.candidate or run.systems[0]
        others = [name for name in run.systems if name != candidate]
        if len(others) != 1:
            return None
        baseline = others[0]
    _, all_pairs = paired_runs(run, baseline)
    if len(all_pairs) == 1:
        return with_ratings(all_pairs, scenario)[0]
    return None
