"""The table of metrics that ragnb knows, and how a caller's names and columns become metrics."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, listing, unknown
from ragnb.schema.columns import CASE_COLUMNS, DERIVED_COLUMNS, TRACE_COLUMNS
from ragnb.schema.metric import Metric
from ragnb.schema.models import Gate
from ragnb.schema.rubric import RUBRIC, Rubric

_TABLE = tomllib.loads(files(__package__).joinpath("known.toml").read_text(encoding="utf-8"))
_RATES = [Metric(**row) for row in _TABLE["rate"]]
_ROWS = (*(Metric(**row) for row in _TABLE["metric"]), *Rubric().metrics, *_RATES)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ROWS})
"""The metrics that ragnb knows, by name."""

KNOWN_RATES = frozenset(metric.name for metric in _RATES)

DEFAULT_GATES: tuple[Gate, ...] = tuple(Gate(**row) for row in _TABLE["gate"])
"""The five gates of a refusal and citation check."""

MetricLike = str | Metric


def metric_list(metrics: MetricLike | Iterable[MetricLike] | None) -> list[MetricLike] | None:
    """Return what a caller gave as ``metrics=`` as a list, or refuse what names no metrics.

    Raises
    ------
    RagnbError
        For a mapping, which holds weights, and for anything but names and Metric objects.

    Examples
    --------
    >>> metric_list("faithfulness")
    ['faithfulness']
    """
    if metrics is None or isinstance(metrics, str | Metric):
        return None if metrics is None else [metrics]
    if isinstance(metrics, Mapping):
        raise RagnbError(
            f"metrics={dict(metrics)!r} is a mapping, and metrics= takes names; write metrics={list(metrics)!r}, "
            f"and hand weights to metric_weights={dict(metrics)!r}"
        )
    given: list[Any] = list(metrics) if isinstance(metrics, Iterable) else [metrics]
    for item in given:
        if not isinstance(item, str | Metric):
            raise RagnbError(
                f"metrics= holds {item!r}, which names no metric; write names such as 'faithfulness' or "
                "Metric objects; weights go into metric_weights={name: weight}"
            )
    return given


def resolve_metrics(
    metrics: MetricLike | Iterable[MetricLike] | None, columns: Sequence[str]
) -> tuple[Metric, ...]:
    """Turn what a caller named into metrics whose columns are there.

    Parameters
    ----------
    metrics : None, str, Metric, or several
        None takes every column that METRICS declares. Metric objects add to METRICS (and to the columns
        of METRICS when no name is given beside them); names, the Metric objects of METRICS, and the dimensions
        of a rubric select.
    columns : sequence of str
        The columns of the frame.

    Returns
    -------
    tuple of Metric
        In the order named; for None in the order of METRICS.

    Raises
    ------
    RagnbError
        For a name that neither METRICS nor the caller declares, that is not a column, or that is named twice, and
        for ratings where no metric is named.

    Examples
    --------
    >>> [m.name for m in resolve_metrics(None, ["faithfulness", "latency"])]
    ['faithfulness']
    """
    known = tuple(metric for name, metric in METRICS.items() if name in columns)
    if metrics is None and not known and {"judge", "human"} <= set(columns):
        raise RagnbError(
            f"these are ratings (columns: {listing(columns)}), people's scores beside a judge's, no metric: "
            "use rn.calibrate or rn.agreement (ragnb calibrate on a file)"
        )
    given = metric_list(metrics)
    if given is None:
        return known
    own = {metric.name: metric for metric in given if isinstance(metric, Metric)}
    new = [m for m in own.values() if m.family != RUBRIC and METRICS.get(m.name) != m]
    if own and len(new) == len(given):
        given = [*(metric for metric in known if metric.name not in own), *given]
    chosen = [_resolve_one(item, own, columns) for item in given]
    names = [metric.name for metric in chosen]
    if len(set(names)) < len(names):
        raise RagnbError(f"metrics={names!r} names one metric twice; name each once")
    return tuple(chosen)


def _resolve_one(item: MetricLike, own: Mapping[str, Metric], columns: Sequence[str]) -> Metric:
    name = item if isinstance(item, str) else item.name
    metric = own.get(name) or METRICS.get(name)
    if metric is None:
        step = f"Declare it: Metric({name!r}, low, high)" if name in columns else ""
        raise unknown("metric", name, [*METRICS, *own], step)
    if name not in columns:
        raise unknown("metric", name, [c for c in columns if c in METRICS or c in own], "It is not a column.")
    return metric


def undeclared_columns(frame: pd.DataFrame) -> list[str]:
    """Return the numeric columns that no one declared: they are listed, never averaged.

    Examples
    --------
    >>> undeclared_columns(pd.DataFrame({"faithfulness": [1.0], "latency": [2.5], "question": ["a"]}))
    ['latency']
    """
    skip = {*METRICS, *CASE_COLUMNS, *DERIVED_COLUMNS, *TRACE_COLUMNS}
    return [
        str(name)
        for name in frame.columns
        if name not in skip
        and "__" not in str(name)
        and pd.api.types.is_numeric_dtype(frame[name])
        and not pd.api.types.is_bool_dtype(frame[name])
    ]
