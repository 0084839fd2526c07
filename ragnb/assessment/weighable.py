"""What a weight editor moves: the settings, the moments and the gates of a run, before any weight."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ragnb.assessment.build import gates_of
from ragnb.comparison.differences import paired_runs
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.source import Run, systems_of
from ragnb.errors import RagnbError
from ragnb.inputs import Inputs, gather, opened, prepared
from ragnb.scenario import Scenario
from ragnb.schema import Gate, Metric
from ragnb.weights import Moments, moments


@dataclass(frozen=True)
class Weighable:
    """A run before any weight.

    Attributes
    ----------
    scenario : Scenario
    moments : Moments
        By system, where there are several.
    gates : tuple of Gate
    pairs : Pairs, optional
        Of a candidate and its baseline, or of two systems.
    """

    scenario: Scenario
    moments: Moments
    gates: tuple[Gate, ...]
    pairs: Pairs | None = None


def weighable(source: Any, **overrides: Any) -> Weighable:
    """Read what `assess` reads, and reduce it once.

    Parameters
    ----------
    source : Scenario, path, frame or Moments
    **overrides
        Fields of `Scenario`, as `assess` takes them.

    Examples
    --------
    >>> import pandas as pd
    >>> weighable(pd.DataFrame({"faithfulness": [0.9, 0.4], "doc_name": ["a", "b"]})).moments
    Moments(2 rows in 2 cells: 1 metrics, 2 documents, 1 groups)
    """
    if isinstance(source, Moments):
        scenario = Scenario.without_files(metrics=source.metrics).replace(**overrides)
        return Weighable(scenario, source, _plain(gates_of(scenario, list(source.metrics), Inputs())))
    scenario, frame = opened(source, overrides)
    inputs = gather(scenario, frame)
    metrics = prepared(scenario, inputs)
    several = "system" in inputs.frame and inputs.frame["system"].nunique() > 1
    how: dict[str, Any] = {"doc": scenario.doc, "cluster": scenario.cluster, "corpus": scenario.corpus}
    found = moments(inputs.frame, metrics=metrics, **how, by="system" if several else None)
    # A baseline that somebody asks for here is refused in words; that of a file, as any two systems, may not pair.
    pairs = None
    with suppress(*[] if overrides.get("baseline") else [RagnbError]):
        pairs = _pairs(scenario, inputs.frame, metrics)
    return Weighable(scenario, found, _plain(gates_of(scenario, metrics, inputs)), pairs)


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
