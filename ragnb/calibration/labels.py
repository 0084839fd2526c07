"""How many labels a verdict still needs, with the reason, and what a budget of labels would buy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.pooled import Scale, parts, pooled
from ragnb.calibration.raters import Asked, Missing, Names
from ragnb.errors import RagnbError
from ragnb.markup import number, percent
from ragnb.stats.means import Array
from ragnb.texts import load


def labels_needed(
    ratings: Any,
    *,
    judge: str = "judge",
    human: Names = "human",
    by: Names | None = "dimension",
    cluster: str | None = "cluster",
    item: str = "item_id",
    scale: Scale = None,
    missing: Missing = None,
    tolerance: float = 1.0,
    target: float = 0.8,
    level: float = 0.95,
    power: float = 0.8,
    lang: str = "en",
) -> pd.DataFrame:
    """Return how many labels show that the share within the tolerance exceeds the target, and why.

    Parameters
    ----------
    ratings, judge, human, by, cluster, item, scale, missing
        As in `corrected_mean`.
    tolerance : float
        |judge − human| that still agrees, in points of the scale, compared on raw values.
    target : float
        The share to exceed, in (0, 1).
    level, power : float
        1 − level is the one-sided risk of showing what is not so; `power` the chance to show what is.

    Returns
    -------
    DataFrame
        [by,] ``n, total, more, independent`` (Int64, missing where no number suffices), ``deff, rho, seen,
        planned, reason, text``: see `ragnb.stats.LabelsNeeded`.

    Examples
    --------
    >>> ratings = pd.DataFrame({"judge": [4] * 40, "human": [4] * 38 + [1] * 2})
    >>> labels_needed(ratings)[["total", "more", "reason"]]
       total  more   reason
    0     76    36  counted
    """
    rows = []
    asked = Asked(human, by, scale, cluster, missing, item=item)
    for head, flags, how in _flags(ratings, tolerance, judge, asked):
        need = stats.labels_needed(flags, **how, target=target, alpha=1 - level, power=power)
        text = labels_text(need, len(flags), target, lang)
        rows.append(head | {"n": len(flags)} | asdict(need) | {"text": text})
    return whole_labels(rows)


def label_budget(
    ratings: Any,
    *,
    judge: str = "judge",
    human: Names = "human",
    by: Names | None = "dimension",
    cluster: str | None = "cluster",
    item: str = "item_id",
    scale: Scale = None,
    missing: Missing = None,
    tolerance: float = 1.0,
    target: float = 0.8,
    level: float = 0.95,
    labels: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Return a curve: with so many labels, so wide an interval, and so good a chance to show the target.

    Parameters
    ----------
    ratings, judge, human, by, cluster, item, scale, missing, tolerance, target, level
        As in `labels_needed`.
    labels : sequence of int, optional
        The budgets; None lays some 40 past what is there and what is needed.

    Returns
    -------
    DataFrame
        [by,] ``labels, share`` (seen now), ``low, high`` (its interval expected at so many labels),
        ``half_width, probability`` (of showing the target, were the seen share the true one), ``cautious``
        (were its lower 80 % bound), ``target, n`` (labels now).

    Examples
    --------
    >>> ratings = pd.DataFrame({"judge": [4] * 40, "human": [4] * 38 + [1] * 2})
    >>> label_budget(ratings, labels=[40, 76, 150])[["labels", "half_width", "probability", "cautious"]].round(2)
       labels  half_width  probability  cautious
    0      40        0.08         0.83      0.46
    1      76        0.05         0.99      0.82
    2     150        0.04         1.00      0.98
    """
    curves = []
    asked = Asked(human, by, scale, cluster, missing, item=item)
    for head, flags, how in _flags(ratings, tolerance, judge, asked):
        curve = budget_curve(flags, how["clusters"], target, level, labels, weights=how["weights"])
        for at, (name, value) in enumerate(head.items()):
            curve.insert(at, name, value)
        curves.append(curve)
    return pd.concat(curves, ignore_index=True)


def budget_curve(
    flags: Array,
    clusters: Any,
    target: float,
    level: float,
    labels: Sequence[int] | None = None,
    counts: Any = None,
    weights: Any = None,
) -> pd.DataFrame:
    """Return the curve of one group's flags of agreement."""
    curve = stats.label_budget(
        flags, clusters, target=target, alpha=1 - level, level=level, sizes=labels, weights=weights, counts=counts
    )
    rows = np.ones(len(flags)) if counts is None else counts
    return pd.DataFrame(
        {
            "labels": curve.labels.astype(int),
            "share": float(np.average(flags, weights=rows if weights is None else rows * weights)),
            "low": curve.low,
            "high": curve.high,
            "half_width": (curve.high - curve.low) / 2,
            "probability": curve.chance,
            "cautious": curve.cautious,
            "target": target,
            "n": round(float(np.sum(rows))),
        }
    )


def whole_labels(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return rows of labels needed as a frame, their numbers whole or missing."""
    return pd.DataFrame(rows).astype(dict.fromkeys(("total", "more", "independent"), "Int64"))


def labels_text(need: stats.LabelsNeeded, n: int, target: float, lang: str = "en") -> str:
    """Say how many labels are missing and why.

    Examples
    --------
    >>> need = stats.labels_needed([1] * 7 + [0] * 3, target=0.8)
    >>> labels_text(need, 10, 0.8)
    'More labels will not help: 70.0 % of the ratings agree, and 80.0 % is asked for.'
    """
    say: Callable[..., str] = load(lang)
    key = "enough" if need.more == 0 else need.reason
    shares = {"seen": percent(need.seen), "planned": percent(need.planned), "target": percent(target)}
    deff = number(need.deff, 2)
    return say(f"labels.{key}", n=n, total=need.total, more=need.more, deff=deff, **shares)


def _flags(
    ratings: Any, tolerance: float, judge: str, asked: Asked
) -> Iterator[tuple[dict[str, Any], Array, dict[str, Array]]]:
    """Yield each group's name, its flags of agreement, and their clusters and weights."""
    table, groups = pooled(ratings, None, judge, asked)
    table = table.dropna(subset=["judge", "human"])
    if not len(table):
        raise RagnbError("no row has both a judge's and a human's score; label some of the items that it scored")
    for head, part in parts(table, groups):
        how = {"clusters": part["cluster"].to_numpy(), "weights": part["weight"].to_numpy()}
        yield head, stats.within(part["judge"], part["human"], tolerance), how
