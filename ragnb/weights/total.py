"""Totals: validated weights, and how metrics combine into the weighted score."""

from __future__ import annotations

import math
import unicodedata
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from ragnb import stats
from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, outside, place, unknown
from ragnb.readers.names import rename_map
from ragnb.schema import METRICS, Metric, known_metric

if TYPE_CHECKING:
    import pandas as pd

    from ragnb.weights.moments import Moments

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def canonical_name(name: object) -> str:
    """Return a name as text: a whole number as its digits, which columns with gaps hold as floats.

    Examples
    --------
    >>> canonical_name(7.0), canonical_name(0.5), canonical_name("7.0")
    ('7', '0.5', '7.0')
    """
    if isinstance(name, float) and name.is_integer():
        return str(int(name))
    return str(name)


def nfc(name: object) -> str:
    """Return a name in Unicode form NFC, in which document names are compared.

    Examples
    --------
    >>> nfc("re\\u0301sume\\u0301.pdf") == "r\\u00e9sum\\u00e9.pdf"
    True
    """
    return unicodedata.normalize("NFC", canonical_name(name))


def metric_name(name: str, names: Collection[str] = ()) -> str:
    """Return ragnb's name of the metric that a frame's header means; any other name, and those of `names`, stay.

    Examples
    --------
    >>> metric_name("Groundedness"), metric_name("Groundedness", ["Groundedness"]), metric_name("q")
    ('faithfulness', 'Groundedness', 'q')
    """
    if name in names:
        meant = name
    else:
        meant = rename_map([name]).get(name, name)
    if meant in METRICS:
        return meant
    return name


def check_weights(
    weights: Mapping[str, Any] | None, what: str, names: Collection[str] = ()
) -> dict[str, float]:
    """Return the weights as floats, or refuse them.

    Parameters
    ----------
    weights : mapping of name to weight, or None
        Finite, ≥ 0; 0 leaves its name out. Booleans and strings are no weights. None and ``{}`` mean 1.0
        everywhere.
    what : str
        ``metric_weights`` or ``doc_weights``, for the message.
    names : collection of str
        Metrics that are what they are called; what a tool calls another one is ragnb's name of it.

    Raises
    ------
    RagnbError
        With the key and the value.

    Examples
    --------
    >>> check_weights({"faithfulness": 2}, "metric_weights")
    {'faithfulness': 2.0}
    """
    checked: dict[str, float] = {}
    if weights is not None and not isinstance(weights, Mapping):
        raise RagnbError(f"{what}={weights!r} is not a mapping; write {{name: weight}}")
    for name, value in (weights or {}).items():
        where = place(key=f"{what}.{name}")
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
            raise RagnbError(f"{where}{value!r} is not a weight; write a number such as 0.3")
        try:
            number = float(value)
        except (OverflowError, ValueError):  # a whole number beyond floats, a signalling nan
            number = math.inf
        if not 0 <= number < math.inf:
            raise RagnbError(
                f"{where}{value!r} is not a weight; it must be finite and not negative"
            )
        if what == "doc_weights":
            key = nfc(name)
        else:
            key = metric_name(str(name), names)
        if key in checked:
            raise RagnbError(
                f"{where}the name appears twice (equal in Unicode form NFC); keep one of them"
            )
        checked[key] = number
    return checked


def present_weights(weights: Mapping[str, float], names: Collection[str]) -> dict[str, float]:
    """Return the weights of names that occur, compared in Unicode form NFC.

    Examples
    --------
    >>> present_weights({"a": 2.0, "b": 3.0}, ["b", "c"])
    {'b': 3.0}
    """
    return {name: weight for name, weight in weights.items() if name in names or nfc(name) in names}


def warn_unused(weights: Mapping[str, float], names: Collection[str], what: str) -> None:
    """Warn about each weight whose name does not occur, with suggestions."""
    have = set(names)
    for name in weights:
        if name not in have:
            text = f"{what} names {name!r}, which does not occur; {did_you_mean(name, list(names))}"
            warnings.warn(text, RagnbWarning, stacklevel=outside())


def refuse_all_zero(left: bool, what: str) -> None:
    """Refuse weights that are all 0."""
    if not left:
        raise RagnbError(f"{what}: all weights are 0; give one a positive weight, such as 1.0")


def document_weights(
    weights: Mapping[str, float], names: Sequence[str], codes: npt.NDArray[np.int64]
) -> Array:
    """Return the weight of each document in order, last of rows without one; `codes` are the rows' documents.

    Names that do not occur warn, and weights of 0 that leave out every row are refused.
    """
    each = np.ones(len(names) + 1)
    if weights:
        places = [place for place, name in enumerate(names) if name in weights]
        each[places] = [weights[names[place]] for place in places]
        if len(places) < len(weights):
            warn_unused(weights, names, "doc_weights")
    refuse_all_zero(bool(each[codes].any()) or not len(codes), "doc_weights")
    return each


@dataclass(frozen=True)
class Total:
    """The total of metrics: Σ weight · (intercept + slope · score) / Σ weight over the available scores.

    Attributes
    ----------
    given : (K,) float
        The weight of each metric as the caller gives it; 0 for a rate that is not named.
    weights : (K,) float
        Those relative to the largest; all 0 where there is no total.
    slopes, intercepts : (K,) float
        The affine map of a metric into the total: −1 turns a lower-is-better metric round, 1/range rescales.
    low, high : float
        The total's own range; nan where there is no total.
    least : float
        The least that the total can be: below `low` where a cosine, which enters at its raw value, is negative.
    reason : str
        Why there is no total: a code (``mixed``, ``unbounded``), a colon and its detail; empty where there is one.
    """

    given: Array
    weights: Array
    slopes: Array
    intercepts: Array
    low: float
    high: float
    least: float
    reason: str = ""

    def shares(self, present: Flags) -> Array:
        """Return each metric's part of the total of rows with these gaps; they add up to 1, or to 0 without it."""
        weight = present * self.weights
        scale = weight.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(weight, scale, out=np.zeros_like(weight), where=scale > 0))

    def mapped(self, centres: Array) -> Array:
        """Return the centres of the metrics as they enter the total."""
        return np.asarray(self.slopes * centres + self.intercepts)

    def is_centred(self, centres: Array) -> bool:
        """Whether each metric with a weight is centred on the middle of its range."""
        width = self.high - self.low
        if not np.isfinite(width):
            return False
        off = self.mapped(centres)[self.weights > 0] - (self.low / 2 + self.high / 2)
        return bool((np.abs(off) <= 1e-9 * width).all())

    def centre(self, centres: Array) -> float:
        """Return the centre of the weighted score: the middle of its range, else that of its metrics."""
        if self.is_centred(centres):
            return self.low / 2 + self.high / 2
        if not self.weights.any():
            return 0.0
        return float(self.weights @ self.mapped(centres) / self.weights.sum())

    def expression(self) -> nw.Expr:
        """Return the weighted score over ``__v0``, ``__v1`` …, null where nothing with a weight has a score."""
        numerator = []
        denominator = []
        for k in np.flatnonzero(self.weights):
            weight = float(self.weights[k])
            value = nw.col(f"__v{k}")  # a null counts as 0 in a sum
            mapped = value * float(self.slopes[k]) + float(self.intercepts[k])
            numerator.append(mapped * weight)
            denominator.append(nw.when(~value.is_null()).then(nw.lit(weight)))
        if not numerator:
            return nw.lit(None, dtype=nw.Float64)
        scale = nw.sum_horizontal(*denominator)
        return nw.when(scale > 0).then(nw.sum_horizontal(*numerator) / scale)


def total_of(
    metrics: Sequence[Metric],
    weights: Mapping[str, Any] | None,
    *,
    orient: bool = True,
    rescale: bool = False,
    strict: bool = True,
    known: bool = True,
) -> Total:
    """Return the total of metrics, or the reason why there is none.

    Parameters
    ----------
    metrics : Metric objects
    weights : mapping of metric to weight, or None
        As the caller gives them.
    orient, rescale : bool
        As in `weighted_means`.
    strict : bool
        Whether metrics that cannot be combined raise.
    known : bool
        Whether a weight of an unknown metric is refused, and one of a metric that is absent warns.

    Raises
    ------
    RagnbError
        For weights that are none or leave out every metric that would count, and a weight of a measure of
        operation; with `strict`, metrics
        of different ranges (1–10 and 0–1 are not combined), and a lower-is-better metric without a finite range.

    Examples
    --------
    >>> total_of([Metric("a"), Metric("b", role="rate")], {"a": 2.0}, known=False).given
    array([2., 0.])
    """
    given = _given_weights(metrics, weights, known=known)
    used = [metric for metric, weight in zip(metrics, given, strict=True) if weight > 0]
    spans = {(0.0, 1.0) if rescale and m.bounded else m.scale for m in used}
    reason, advice = _why_not_combined(used, len(spans), orient=orient)
    if advice and strict:
        raise RagnbError(advice)
    low = high = np.nan
    if len(spans) == 1 and not reason:
        low, high = spans.pop()
    # A cosine's own low is below that of its scale.
    least = min([low, *(m.low for m in used if m.scale[0] != m.low)])
    slopes, intercepts = _affine_maps(metrics, orient=orient, rescale=rescale)
    if reason:
        relative = np.zeros(len(metrics))
    else:
        relative = stats.relative(given)
    return Total(given, relative, slopes, intercepts, low, high, least, reason)


def _given_weights(
    metrics: Sequence[Metric], weights: Mapping[str, Any] | None, *, known: bool
) -> Array:
    """Return the weight of each metric: the caller's, else its own; 0 for a rate that is not named."""
    names = [metric.name for metric in metrics]
    checked = check_weights(weights, "metric_weights", names)
    if known:
        odd = [name for name in checked if name not in names and known_metric(name) is None]
        if odd:
            step = "A metric of your own is declared first: metrics=[Metric(name, low, high)]."
            raise unknown("metric_weights", odd[0], list(dict.fromkeys([*names, *METRICS])), step)
        warn_unused(checked, names, "metric_weights")
    for metric in metrics:
        if metric.role == "operation" and checked.get(metric.name, 0.0) > 0:
            raise RagnbError(
                f"metric_weights.{metric.name}: latency, tokens and cost never enter the total; leave the weight "
                f"out and set a gate on the mean of {metric.name!r}, or declare it with role='quality'"
            )
    default = [metric.weight if metric.role == "quality" else 0.0 for metric in metrics]
    given = [checked.get(name, weight) for name, weight in zip(names, default, strict=True)]
    # Rates alone have no weight of their own, and no total: nobody asked for one.
    refuse_all_zero(any(given) or not any(default), "metric_weights")
    return np.array(given, dtype=float)


def _why_not_combined(used: Sequence[Metric], n_spans: int, *, orient: bool) -> tuple[str, str]:
    """Return the code of why metrics have no total, and what to do about it; both empty where they have one."""
    endless = [m.name for m in used if orient and m.better == "lower" and not m.bounded]
    if endless:
        name = endless[-1]
        advice = (
            f"{name!r} is lower-is-better and has no finite range; declare one, or orient=False"
        )
        return f"unbounded: {name}", advice
    if n_spans > 1:
        listed = ", ".join(f"{m.name} {m.low:g}..{m.high:g}" for m in used)
        advice = f"metrics with different ranges are not combined ({listed}); select metrics, or pass rescale=True"
        return f"mixed: {listed}", advice
    return "", ""


def _affine_maps(metrics: Sequence[Metric], *, orient: bool, rescale: bool) -> tuple[Array, Array]:
    """Return slope and intercept of each metric's map into the total."""
    ends = [metric.scale if metric.bounded else (0.0, 1.0) for metric in metrics]
    bottom, top = np.array(ends, dtype=float).reshape(-1, 2).T
    is_bounded = np.array([metric.bounded for metric in metrics], dtype=bool)
    is_lower = np.array([metric.better == "lower" for metric in metrics], dtype=bool)
    is_turned = is_lower & is_bounded & orient
    is_rescaled = is_bounded & rescale
    width = np.where(is_rescaled, top - bottom, 1.0)
    # Turned: bottom + top − score, so that the best score stays at the top of the range.
    start = np.where(is_turned, bottom + top, 0.0) - np.where(is_rescaled, bottom, 0.0)
    return np.where(is_turned, -1.0, 1.0) / width, start / width


@dataclass(frozen=True)
class Weighing:
    """The settings shared by all functions of weighted means, see `weighted_means`.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb.weights import moments
    >>> found = moments(pd.DataFrame({"faithfulness": [1.0, 0.5], "doc_name": ["a", "b"]}))
    >>> Weighing(doc_weights={"a": 3}).means(found).loc[0, "value"].item()
    0.875
    """

    metric_weights: Mapping[str, float] | None = None
    doc_weights: Mapping[str, float] | None = None
    doc: str = "doc_name"
    cluster: str | None = None
    level: float = 0.95
    orient: bool = True
    rescale: bool = False
    corpus: str = "sample"

    def means(self, found: Moments) -> pd.DataFrame:
        """Return the table of means; metrics that cannot be combined leave the weighted score missing."""
        return found.means(**self.of_total, level=self.level, strict=False)

    @property
    def of_total(self) -> dict[str, Any]:
        """The settings of the weighted score, as keywords of `Moments.means` and `weigh`."""
        return {
            name: getattr(self, name)
            for name in ("metric_weights", "doc_weights", "orient", "rescale")
        }
