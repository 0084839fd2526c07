"""The rubric of a judge among metrics of other scales: its dimensions are known, and stay out of the total."""

from __future__ import annotations

from collections.abc import Sequence

from ragnb.inputs.gather import Inputs
from ragnb.scenario import Scenario
from ragnb.schema import Metric, Rubric
from ragnb.weights import column_names


def with_judged(scenario: Scenario, inputs: Inputs) -> Scenario:
    """Return a scenario with the rubric that its judge used, and its dimensions among the metrics that it names.

    What was judged was paid for, so it is shown even where ``metrics:`` names others.
    """
    if not any(file["role"] == "judge" for file in inputs.files):
        return scenario
    rubric = scenario.rubric or Rubric()
    metrics = scenario.metrics
    if metrics is not None:
        named = {item if isinstance(item, str) else item.name for item in metrics}
        have = {str(name) for name in column_names(inputs.frame)}
        dimensions = [dimension.name for dimension in rubric.dimensions]
        added = [name for name in dimensions if name in have and name not in named]
        metrics = (*metrics, *added)
    return scenario.replace(rubric=rubric, metrics=metrics)


def apart(scenario: Scenario, metrics: Sequence[Metric]) -> list[str]:
    """Return the dimensions of a rubric that stand beside metrics of another scale and do not enter the total.

    None with ``rescale``, and none where every metric of the total has the scale of the rubric.

    Examples
    --------
    >>> from ragnb.schema import METRICS
    >>> used = [METRICS["faithfulness"], *Rubric().metrics]
    >>> scenario = Scenario(cases="README.md", rubric=Rubric())
    >>> apart(scenario, used)
    ['accuracy', 'completeness', 'clarity']
    >>> apart(scenario, used[1:])
    []
    """
    if scenario.rubric is None or scenario.rescale:
        return []
    names = {dimension.name for dimension in scenario.rubric.dimensions}
    dimensions = [metric for metric in metrics if metric.name in names]
    # The scales of the other metrics that enter the total.
    other_scales = set()
    for metric in metrics:
        weight = scenario.metric_weights.get(metric.name, metric.weight)
        if metric.role == "quality" and metric.name not in names and weight > 0:
            other_scales.add(metric.scale)
    if other_scales <= {metric.scale for metric in dimensions}:
        return []
    return [metric.name for metric in dimensions]


def with_dimensions_apart(scenario: Scenario, metrics: Sequence[Metric]) -> Scenario:
    """Return a scenario in which the dimensions that stand apart have weight 0 in the overall score."""
    names = apart(scenario, metrics)
    if not names:
        return scenario
    weights = {**scenario.metric_weights, **dict.fromkeys(names, 0.0)}
    return scenario.replace(metric_weights=weights)
