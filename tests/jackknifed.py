"""Ratings as hypothesis draws them, the jackknife of any statistic by hand, and the familiar standard errors."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import stats as scipy_stats


@st.composite
def rated(draw, scores, least, most=40):
    """Judge, human and cluster columns with at least three clusters."""
    n = draw(st.integers(least, most))
    judge, human = (
        np.array(draw(st.lists(scores, min_size=n, max_size=n)), dtype=float) for _ in range(2)
    )
    cluster = np.array(
        [*draw(st.lists(st.integers(0, 5), min_size=n - 3, max_size=n - 3)), 0, 1, 2]
    )
    return judge, human, cluster


def by_hand(statistic, judge, human, cluster):
    """The statistic and its standard error, leaving out one cluster at a time."""
    value = statistic(judge, human)
    keep = [cluster != g for g in np.unique(cluster)]
    without = np.array([statistic(judge[rows], human[rows]) for rows in keep])
    return value, np.sqrt((len(keep) - 1) / len(keep) * np.sum((without - value) ** 2))


def familiar_se(values, clusters):
    """The cluster-robust standard error of a mean, G/(G−1) Σu² / n²."""
    x = np.asarray(values, dtype=float)
    sums = np.bincount(
        np.unique(np.asarray(clusters), return_inverse=True)[1], weights=x - x.mean()
    )
    return np.sqrt(len(sums) / (len(sums) - 1) * np.sum(sums**2)) / len(x)


def familiar_ppi(y, f, more, of, of_more, weight=None):
    """The corrected mean written out as in its paper, row by row: value, sandwich's se, t-interval, λ."""
    y, f, more = (np.asarray(part, dtype=float) for part in (y, f, more))
    n, m = len(y), len(more)
    lam = weight
    if weight is None:
        cov = np.mean((y - y.mean()) * (f - f.mean()))
        lam = np.clip(cov / ((1 + n / m) * np.var([*f, *more], ddof=1)), 0, 1)
    error = y - lam * f
    sums = dict.fromkeys([*of, *of_more], 0.0)
    for e, g in zip(error, of, strict=True):
        sums[g] += (e - error.mean()) / n
    for b, g in zip(more, of_more, strict=True):
        sums[g] += lam * (b - more.mean()) / m
    g = len(sums)
    se = np.sqrt(g / (g - 1) * sum(s**2 for s in sums.values()))
    value, half = y.mean() + lam * (more.mean() - f.mean()), scipy_stats.t.ppf(0.975, g - 1) * se
    return SimpleNamespace(
        value=value, se=se, low=value - half, high=value + half, weight=lam, n_clusters=g
    )


def wide(table):
    """One row a judge and group, of one row a measure: each value, its ends as ``_low, _high``, and n."""
    heads = [
        name for name in table if name not in ("measure", "value", "low", "high", "n", "n_clusters")
    ]
    rows = []
    for key, part in table.groupby(heads, sort=False, dropna=False):
        row = dict(zip(heads, key, strict=True)) | part.iloc[0][["n", "n_clusters"]].to_dict()
        for one in part.to_dict("records"):
            ends = {f"{one['measure']}_{end}": one[end] for end in ("low", "high")}
            row |= {one["measure"]: one["value"], **ends}
        rows.append(row)
    return pd.DataFrame(rows)


def drawn_ratings(seed, n=30, m=60, clusters=8, spread=0.5):
    """Labelled rows and further rows, clusters of many sizes that hold both, scores 1–5."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, clusters, n + m) ** 2 // clusters
    truth = 3 + spread * rng.normal(size=clusters)[of] + rng.normal(size=n + m)
    judge = np.clip(np.round(truth + 0.6 + rng.normal(scale=0.7, size=n + m)), 1, 5)
    table = pd.DataFrame({"judge": judge, "human": np.clip(np.round(truth), 1, 5), "cluster": of})
    table.insert(0, "item_id", [f"q{i}" for i in range(n + m)])
    return table[:n], table[n:].drop(columns="human")
