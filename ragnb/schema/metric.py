"""What a metric is: its range, its direction, its role, what it needs, and which are known."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic.dataclasses import dataclass

from ragnb.errors import RagnbError, listing, unknown
from ragnb.schema.base import CONFIG, Flag, Needs, Number, Weight
from ragnb.schema.columns import CASE_COLUMNS, DERIVED_COLUMNS, NOT_METRICS
from ragnb.schema.operations import (
    better_of_name,
    is_operation,
)
from ragnb.schema.ranks import rank_measure
from ragnb.schema.shown import Catalogue

RUBRIC = "rubric"
"""The family of the metrics that a rubric's dimensions are."""

CLIP = 1e-6
"""How far beyond an end of its range a value is taken for the end: a float32 cosine of 1 is 1.00000011921."""

COSINES = frozenset({"semantic_similarity"})
"""Metrics whose values from -1 to 1 enter a total as they are, beside scores from 0 to 1."""

_SCALES = (
    (-1, 1, 0),
    (-2, 2, 1.01),
    (1, 5, 1.01),
    (1, 10, 5),
    (0, 10, 5),
    (0, 100, 10),
)
"""Low and high of a scale, and what some value must lie beyond: else all of them are on a narrower one."""


def declare_step(name: str, low: float, high: float) -> str:
    """Word how to declare the scale that values from low to high may be on, for a refusal.

    A scale is proposed only where the values use more of it than a narrower one has.

    Examples
    --------
    >>> declare_step("faithfulness", 1, 4)
    "declare its scale: metrics=[rn.Metric('faithfulness', 1, 5)] if it is 1..5"
    >>> declare_step("faithfulness", 0, 1.01)
    "declare its scale: metrics=[rn.Metric('faithfulness', low, high)]"
    """
    scale = range_of(low, high)
    if scale is None or scale == (0, 1):
        return f"declare its scale: metrics=[rn.Metric({name!r}, low, high)]"
    a, b = scale
    other_way = ""
    if b == 100:
        other_way = "; divide by 100 if these are percent"
    if low == -1:
        other_way = "; clear the cells with -1 if it means a failed score"
    return (
        f"declare its scale: metrics=[rn.Metric({name!r}, {a}, {b})] if it is {a}..{b}{other_way}"
    )


def range_of(low: float, high: float) -> tuple[int, int] | None:
    """Return the usual scale that values from low to high may be on; None where they fit none.

    Examples
    --------
    >>> range_of(0, 0.9), range_of(1, 4), range_of(0, 1.01), range_of(-3, 70)
    ((0, 1), (1, 5), None, None)
    """
    if low >= -CLIP and high <= 1 + CLIP:
        return 0, 1
    for bottom, top, narrower in _SCALES:
        is_inside = bottom <= low and high <= top
        has_same_signs = (low < 0) == (bottom < 0)
        if is_inside and has_same_signs and max(high, -low) > narrower:
            return bottom, top
    return None


def scale_of(name: str, low: float, high: float) -> tuple[float, float]:
    """Return the ends between which a metric is added up and shown beside others: of a cosine 0 and 1.

    Examples
    --------
    >>> scale_of("semantic_similarity", -1, 1), scale_of("preference", -1, 1)
    ((0.0, 1.0), (-1, 1))
    """
    if name in COSINES and (low, high) == (-1, 1):
        return (0.0, 1.0)
    return (low, high)


def metric_name(name: str) -> str:
    """Take a name that a metric's column can have.

    Examples
    --------
    >>> metric_name("语气")
    '语气'
    """
    if not name.strip() or "__" in name or name in (*CASE_COLUMNS, *DERIVED_COLUMNS):
        raise ValueError(
            f"{name!r} is not a valid metric name: it is empty, contains '__' or is a ragnb column"
        )
    return name


_UNSAID = object()  # stands for a setting that is not given, until `Metric` finds it from the name


def _unsaid() -> Any:
    return _UNSAID


def _by_name() -> Any:
    """Return a field that the name of the metric settles where it is not given."""
    return Field(default_factory=_unsaid, validate_default=True)


# These are validators and no default factories: one that looks at other fields adds an error of its own to theirs.


def _given_role(role: Any, info: ValidationInfo) -> Any:
    """Return the role of a metric, from its name where none is given."""
    if role is not _UNSAID:
        return role
    if is_operation(info.data.get("name", "")):
        return "operation"
    return "quality"


def _given_direction(better: Any, info: ValidationInfo) -> Any:
    """Return the better end of a metric, from its name where none is given; refuse the open choice of a card."""
    name = info.data.get("name", "")
    if better == "?":
        raise ValueError(
            f"'?' is an open choice of {name!r}: write better: lower if less is better, as for a rate of errors, "
            "or better: higher if more is better; in Python better='lower' or better='higher'"
        )
    if better is not _UNSAID:
        return better
    if is_operation(name):
        return better_of_name(name)
    return "higher"


def _given_high(end: Any, info: ValidationInfo) -> Any:
    """Return the upper end of a metric; a latency or a cost has none where none is given."""
    if end is _UNSAID:
        if is_operation(info.data.get("name", "")):
            return math.inf
        return 1.0
    return _known_end(end, info)


def _known_end(end: Any, info: ValidationInfo) -> Any:
    """Refuse an open end of a scale, with what to put in its place."""
    if end == "?":
        raise ValueError(
            f"'?' is an open choice of {info.data.get('name')!r}: write the lowest and the highest score "
            "that the scale allows, such as low: 1 and high: 5; in Python rn.Metric(name, 1, 5)"
        )
    return end


@dataclass(frozen=True, config=CONFIG)
class Metric:
    """A metric: its name, its range, and which end is better.

    Parameters
    ----------
    name : str
        The column that holds it; no ``__`` in it.
    low, high : float
        The ends of the range; ``inf`` where there is none. A measure of operation is 0 to ``inf`` by default.
    better : {"higher", "lower"}
        Which end is good; of a measure of operation the lower one by default (more throughput).
    kind : {"continuous", "ordinal", "binary"}
        What its values are.
    role : {"quality", "rate", "operation"}
        A rate enters the weighted score only where the metric weights name it; a measure of operation (latency,
        tokens, cost), which a name that says so has by default, never does.
    family : str
        The part of a RAG system it looks at.
    needs : tuple of str
        The case columns that must be there for it to apply.
    weight : float
        Its weight where the caller names none.
    aliases : tuple of str
        Other names of the same thing; readers rename them.
    variant : str
        What exactly is computed, where tools differ.
    grades_refusals : bool
        Whether it tells a correct refusal from an invented answer. Any other metric does not apply to questions
        that gold calls unanswerable: else inventing an answer could raise its mean.
    blank : {"lost", "not_applicable"}
        What an empty cell without evidence is to `assess`: a lost score, or one that is left out on purpose.

    Examples
    --------
    >>> Metric("gpt_groundedness", 1, 5).high
    5.0
    >>> Metric("latency_ms").role, Metric("latency_ms").better
    ('operation', 'lower')
    """

    name: Annotated[str, AfterValidator(metric_name)]
    low: Annotated[Number, BeforeValidator(_known_end)] = 0.0
    high: Annotated[Number, BeforeValidator(_given_high)] = _by_name()
    better: Annotated[Literal["higher", "lower"], BeforeValidator(_given_direction)] = _by_name()
    kind: Literal["continuous", "ordinal", "binary"] = "continuous"
    role: Annotated[Literal["quality", "rate", "operation"], BeforeValidator(_given_role)] = (
        _by_name()
    )
    family: str = ""
    needs: Needs = ()
    weight: Weight = 1.0
    aliases: Needs = ()
    variant: str = ""
    grades_refusals: Flag = False
    blank: Literal["lost", "not_applicable"] = "lost"

    @model_validator(mode="after")
    def _range_is_open(self) -> Metric:
        if not self.low < self.high:  # nor is NaN below anything
            raise ValueError(
                f"range of {self.name!r} is {self.low}..{self.high}; low must lie below high"
            )
        return self

    @property
    def scale(self) -> tuple[float, float]:
        """The ends between which it is added up and shown beside others, as `scale_of` says."""
        return scale_of(self.name, self.low, self.high)

    @property
    def bounded(self) -> bool:
        """Whether both ends of the range are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)


TABLE = tomllib.loads(files(__package__).joinpath("known.toml").read_text(encoding="utf-8"))

METRICS: Mapping[str, Metric] = Catalogue(
    "METRICS", {row["name"]: Metric(**row) for row in TABLE["metric"]}
)
"""The metrics that ragnb knows, by name."""

KNOWN_RATES = frozenset(name for name, metric in METRICS.items() if metric.role == "rate")

MetricLike = str | Metric


def known_metric(name: str) -> Metric | None:
    """Return the metric that ragnb knows by a name: one of METRICS, or a measure by rank such as ``recall@5``.

    Examples
    --------
    >>> known_metric("hit@3").kind, known_metric("faithfulness").role, known_metric("tone")
    ('binary', 'quality', None)
    """
    measure = rank_measure(name)
    if measure is None:
        return METRICS.get(name)
    kind: Literal["binary", "continuous"] = "continuous"
    if measure[0] == "hit":
        kind = "binary"
    return Metric(name, kind=kind, role="rate", family="retrieval")


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
    if metrics is None:
        return None
    if isinstance(metrics, str | Metric):
        return [metrics]
    if isinstance(metrics, Mapping):
        raise RagnbError(
            f"metrics={dict(metrics)!r} is a mapping, and metrics= takes names; write metrics={list(metrics)!r}, "
            f"and pass weights as metric_weights={dict(metrics)!r}"
        )
    given: list[Any]
    if isinstance(metrics, Iterable):
        given = list(metrics)
    else:
        given = [metrics]
    for item in given:
        if not isinstance(item, str | Metric):
            raise RagnbError(
                f"metrics= contains {item!r}, which is not a metric; write names such as 'faithfulness' or "
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
    given = metric_list(metrics)
    if given is None and not known and {"judge", "human"} <= set(columns):
        raise RagnbError(
            f"these are ratings (columns: {listing(columns)}), human and judge scores, not metrics: "
            "use rn.calibrate or rn.agreement (ragnb calibrate on a file)"
        )
    if given is None:
        return known
    declared = {metric.name: metric for metric in given if isinstance(metric, Metric)}
    new = [m for m in declared.values() if m.family != RUBRIC and METRICS.get(m.name) != m]
    # Where all that is given declares a metric, nothing selects: the known columns are taken, too.
    if declared and len(new) == len(given):
        given = [*(metric for metric in known if metric.name not in declared), *given]
    chosen = []
    for name in [item if isinstance(item, str) else item.name for item in given]:
        metric = declared.get(name) or known_metric(name)
        if metric is None and name in columns and is_operation(name):
            metric = Metric(name)  # which needs no declaration: no total asks for its range
        if metric is None:
            step = f"Declare it: Metric({name!r}, low, high)" if name in columns else ""
            raise unknown("metric", name, [*METRICS, *declared], step)
        if name not in columns:
            have = [column for column in columns if column in METRICS or column in declared]
            raise unknown("metric", name, have, "It is not a column.")
        chosen.append(metric)
    names = [metric.name for metric in chosen]
    if len(set(names)) < len(names):
        raise RagnbError(f"metrics={names!r} names one metric twice; name each once")
    return tuple(chosen)


def undeclared_columns(frame: Any) -> list[str]:
    """Return the numeric columns that no one declared: they are listed, never averaged.

    Examples
    --------
    >>> import pandas as pd
    >>> undeclared_columns(pd.DataFrame({"faithfulness": [1.0], "latency": [2.5], "question": ["a"]}))
    ['latency']
    """
    # pandas counts flags as no numbers: they are left out.
    numeric = map(str, frame.select_dtypes("number", exclude="timedelta").columns)
    return [name for name in numeric if name not in {*METRICS, *NOT_METRICS} and "__" not in name]
