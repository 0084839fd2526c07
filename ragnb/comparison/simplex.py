"""Over all weights of the metrics: who leads, where conclusively, and where the winner flips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.comparison.differences import paired_runs, total_of_pairs
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.source import run_of
from ragnb.errors import RagnbError, listing, unknown
from ragnb.stats.estimates import packed
from ragnb.weights.columns import Array
from ragnb.weights.total import Total

POINTS = 100_000
_SEED = 20_26
_BLOCK = 1 << 22
_STEPS = 60


def weight_map(
    scores: Any,
    *,
    baseline: Any = None,
    candidate: str | None = None,
    system: str = "system",
    on: str | None = None,
    **settings: Any,
) -> WeightMap:
    """Reduce two systems to what tells which of them leads under any weights of the metrics.

    Parameters
    ----------
    scores, baseline, candidate, system, on, **settings
        As for `compare`; of several systems name the candidate. ``metric_weights`` are today's.

    Returns
    -------
    WeightMap

    Raises
    ------
    RagnbError
        As `compare`; for fewer than two metrics, and for metrics that do not add up.

    Notes
    -----
    Within a pattern of metrics that both systems have, the difference of the weighted scores is linear in the
    weights over their sum. So the difference is ω·s and its squared jackknife error ω'Mω, ω the normalised weights
    of each pattern, s and M sums over clusters that no weight enters: exact for any weights, and as fast for 10⁷
    rows as for 100.

    Examples
    --------
    >>> rows = {"sample_id": [*"abcd"] * 2, "system": ["new"] * 4 + ["old"] * 4}
    >>> rows |= {"faithfulness": [.9, .8, .9, .7, .5, .6, .5, .4]}
    >>> rows |= {"context_recall": [.5, .4, .5, .5, .6, .7, .6, .7]}
    >>> found = weight_map(pd.DataFrame(rows), baseline="old")
    >>> found.flips.set_index("metric")["flip"].round(2).to_dict()
    {'faithfulness': 0.35, 'context_recall': 0.65}
    """
    run = run_of(scores, system=system, settings=settings, name="candidate")
    _, every = paired_runs(run, baseline, candidate, system, on, settings=settings)
    if len(every) > 1:
        names = listing(pairs.candidate for pairs in every)
        raise RagnbError(f"a weight map is of one candidate; name it: candidate='…' (have: {names})")
    total = total_of_pairs(every[0], run.scenario)
    if total.reason:
        raise RagnbError(
            f"metrics that do not add up have no weight map ({total.reason}); select metrics of one range, "
            "or pass rescale=True"
        )
    kept = np.array([m.role == "quality" or w > 0 for m, w in zip(every[0].metrics, total.given, strict=True)])
    if kept.sum() < 2:
        raise RagnbError("a weight map weighs two metrics or more against each other; name two: metrics=[…]")
    return WeightMap.of(every[0], total, kept, run.scenario.level)


@dataclass(frozen=True, repr=False)
class WeightMap:
    """The difference of two systems' weighted scores as a function of the metric weights; see `weight_map`.

    Attributes
    ----------
    candidate, baseline : str
    metrics : tuple of str
    today : (K,) float
        Today's weights, as shares.
    level : float
    differences : (Q, K) float
        Oriented and scaled as in the total: above 0 the candidate is better.
    clusters, weights : (Q,) arrays
        Of the questions.
    """

    candidate: str
    baseline: str
    metrics: tuple[str, ...]
    today: Array
    level: float
    differences: Array
    clusters: npt.NDArray[np.intp]
    weights: Array

    @classmethod
    def of(cls, pairs: Pairs, total: Total, kept: npt.NDArray[np.bool_], level: float) -> WeightMap:
        """Make the map of pairs."""
        d = (pairs.differences * total.slopes)[:, kept]
        asked = ~np.isnan(d).all(axis=1) & (pairs.weights > 0)
        names = tuple(m.name for m, one in zip(pairs.metrics, kept, strict=True) if one)
        shares = total.given[kept] / total.given[kept].sum()
        return cls(
            pairs.candidate, pairs.baseline, names, shares, level, d[asked], packed(pairs.clusters[asked]),
            pairs.weights[asked],
        )  # fmt: skip

    @cached_property
    def _patterns(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """The patterns of metrics that both have, and that of each question."""
        found, of = np.unique(~np.isnan(self.differences), axis=0, return_inverse=True)
        return found, of.reshape(-1)

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """Σv and Σv·d by cluster and pattern: (G, P) and (G, P, K)."""
        present, of = self._patterns
        g, p = int(self.clusters.max()) + 1, len(present)
        cell, v = self.clusters * p + of, self.weights
        counts = np.asarray(np.bincount(cell, v, g * p).reshape(g, p), dtype=float)
        columns = [np.bincount(cell, v * np.nan_to_num(x), g * p).reshape(g, p) for x in self.differences.T]
        return counts, np.stack(columns, axis=2)

    @cached_property
    def _forms(self) -> dict[bytes, tuple[Array, Array, float]]:
        """The forms that were made, by the patterns in use."""
        return {}

    def _form(self, used: npt.NDArray[np.bool_]) -> tuple[Array, Array, float]:
        """Return the linear and the quadratic form over the patterns in use, and t's degrees of freedom."""
        if (key := used.tobytes()) not in self._forms:
            self._forms[key] = self._made(used)
        return self._forms[key]

    def _made(self, used: npt.NDArray[np.bool_]) -> tuple[Array, Array, float]:
        counts, sums = self._sums
        a = counts[:, used].sum(axis=1)
        there = a > 0
        a, s = a[there], sums[there][:, used].reshape(int(there.sum()), -1)
        total, g = a.sum(), len(a)
        mean, h = s.sum(axis=0) / total, a / total
        if g < 2:
            return mean, np.full((len(mean),) * 2, np.nan), 1.0
        parts = (s - a[:, None] * mean) / ((1 - h) * total)[:, None]
        return mean, (g - 1) / g * parts.T @ parts, max(1 / float(h @ h) - 1, 1.0)

    def at(self, metric_weights: Mapping[str, float] | npt.ArrayLike) -> pd.DataFrame:
        """Return the difference at some weights, as `compare` gives it for the weighted score.

        Parameters
        ----------
        metric_weights : mapping of name to weight, or (M, K) array
            A mapping leaves what it does not name at weight 1, as everywhere; rows of an array are weights in the
            order of `metrics`.

        Returns
        -------
        DataFrame
            ``value, low, high`` of candidate − baseline; one row a weighting.
        """
        if isinstance(metric_weights, Mapping):
            for name in metric_weights:
                if name not in self.metrics:
                    raise unknown("metric", name, list(self.metrics))
            metric_weights = [[metric_weights.get(name, 1.0) for name in self.metrics]]
        w = np.atleast_2d(np.asarray(metric_weights, dtype=float))
        sound = np.isfinite(w).all() and (w >= 0).all() and w.any(axis=1).all()
        if w.shape[1] != len(self.metrics) or not sound:
            raise RagnbError(
                f"weights are {len(self.metrics)} numbers of at least 0, not all 0, for {listing(self.metrics)}"
            )
        present = self._patterns[0]
        scale = w @ present.T
        found = np.empty((3, len(w)))
        keys, of = np.unique(scale > 0, axis=0, return_inverse=True)
        for k, used in enumerate(keys):
            rows = np.flatnonzero(of.reshape(-1) == k)
            linear, quadratic, df = self._form(used)
            step = max(1, _BLOCK // max(len(linear), 1))
            for some in np.array_split(rows, -(-len(rows) // step)):
                shares = w[some][:, None, :] * present[used] / scale[some][:, used, None]
                omega = shares.reshape(len(some), -1)
                se = np.sqrt(np.maximum(np.einsum("mi,mi->m", omega @ quadratic, omega), 0.0))
                value = omega @ linear
                half = float(stats.t_quantile(self.level, df)) * se
                found[:, some] = value, value - half, value + half
        return pd.DataFrame(found.T, columns=["value", "low", "high"])

    @cached_property
    def points(self) -> pd.DataFrame:
        """The difference at 100,000 fixed weightings, even over the simplex: a column a metric, then `at`."""
        drawn = np.random.default_rng(_SEED).standard_exponential((POINTS, len(self.metrics)))
        shares = drawn / drawn.sum(axis=1, keepdims=True)
        return pd.concat([pd.DataFrame(shares, columns=list(self.metrics)), self.at(shares)], axis=1)

    @property
    def shares(self) -> dict[str, float]:
        """For which share of all weightings each system leads, and leads conclusively.

        ``candidate, candidate_conclusive, baseline, baseline_conclusive``.
        """
        p = self.points
        return {
            "candidate": float((p["value"] > 0).mean()), "candidate_conclusive": float((p["low"] > 0).mean()),
            "baseline": float((p["value"] < 0).mean()), "baseline_conclusive": float((p["high"] < 0).mean()),
        }  # fmt: skip

    @cached_property
    def flips(self) -> pd.DataFrame:
        """One metric's weight moved, the others kept in proportion: where the leader changes.

        ``metric``, its share ``today``, ``flip`` (the share nearest to today's at which the other system leads;
        nan where none does), ``distance`` (of the two), and the difference with none of the weight (``without``)
        and all of it (``alone``). The first row is the metric that matters most: the nearest flip, else the one
        that moves the difference most.
        """
        rows = []
        for k, name in enumerate(self.metrics):
            strip = self.strip(name)
            flip = self._crossing(k, strip)
            ends = strip["value"].iloc[[0, -1]].tolist()
            rows.append((name, float(self.today[k]), flip, abs(flip - self.today[k]), *ends))
        table = pd.DataFrame(rows, columns=["metric", "today", "flip", "distance", "without", "alone"])
        moved = -(table["alone"] - table["without"]).abs()
        order = table.assign(moved=moved).sort_values(["distance", "moved"], kind="stable").index
        return table.loc[order].reset_index(drop=True)

    def strip(self, metric: str, *, points: int = 101) -> pd.DataFrame:
        """Return the difference while one metric's share goes from 0 to 1: ``share, value, low, high``."""
        if metric not in self.metrics:
            raise unknown("metric", metric, list(self.metrics))
        share = np.linspace(0, 1, points)
        return self.at(self._moved(self.metrics.index(metric), share)).assign(share=share)[
            ["share", "value", "low", "high"]
        ]

    def _moved(self, k: int, share: Array) -> Array:
        rest = self.today.copy()
        rest[k] = 0.0
        if not rest.any():
            rest[np.arange(len(rest)) != k] = 1.0
        weights = np.outer(1 - share, rest / rest.sum())
        weights[:, k] = share
        return weights

    def _crossing(self, k: int, strip: pd.DataFrame) -> float:
        """Return the share nearest to today's at which the sign of the difference changes."""
        now = float(self.at(self.today)["value"].iloc[0])
        share, other = strip["share"].to_numpy(), (np.sign(strip["value"]) == -np.sign(now)).to_numpy()
        if not now or not other.any():
            return np.nan
        there = share[other]
        far = there[[np.argmin(np.abs(there - self.today[k]))]]
        return float(self._border(self._moved(k, far), now)[0, k])

    def _border(self, ends: Array, now: float) -> Array:
        """Return where, on the way from today's weights to others, the sign of the difference changes."""
        low, high = np.zeros(len(ends)), np.ones(len(ends))
        for _ in range(_STEPS):
            middle = (low + high) / 2
            same = self.at(self.today + middle[:, None] * (ends - self.today))["value"].to_numpy() * now > 0
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        border: Array = self.today + high[:, None] * (ends - self.today)
        return border

    @cached_property
    def nearest_flip(self) -> dict[str, Any] | None:
        """Return the weights nearest to today's at which the other system leads; None where it never does.

        ``weights`` (shares) and ``distance``, the share of all weight that moves. Found among the fixed points,
        the single metrics and the transfers from one metric to another, each drawn to the very border.
        """
        now = float(self.at(self.today)["value"].iloc[0])
        if not now:
            return None
        p, names = self.points, list(self.metrics)
        beyond = p.loc[np.sign(p["value"]) == -np.sign(now), names].to_numpy()
        beyond = beyond[np.argsort(np.abs(beyond - self.today).sum(axis=1))[:500]]
        transfers = [
            self.today - self.today[i] * np.eye(len(names))[i] + self.today[i] * np.eye(len(names))[j]
            for i in range(len(names)) for j in range(len(names)) if i != j and self.today[i] > 0
        ]  # fmt: skip
        ends = np.vstack([beyond, np.eye(len(names)), *transfers])
        ends = ends[self.at(ends)["value"].to_numpy() * now < 0]
        if not len(ends):
            return None
        border = self._border(ends, now)
        moved = np.abs(border - self.today).sum(axis=1) / 2
        best = int(np.argmin(moved))
        return {"weights": dict(zip(names, border[best].tolist(), strict=True)), "distance": float(moved[best])}

    def __repr__(self) -> str:
        """Say who leads where, in words."""
        shares = self.shares
        leader, name = ("candidate", self.candidate) if shares["candidate"] >= 0.5 else ("baseline", self.baseline)
        words = f"{name} leads for {shares[leader]:.0%} of all weightings, conclusively for "
        words += f"{shares[f'{leader}_conclusive']:.0%}"
        flip = self.nearest_flip
        flips = f"; flips when {flip['distance']:.0%} of the weight moves" if flip else ""
        return f"WeightMap({words}{flips})"
