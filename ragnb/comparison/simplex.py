"""Weight map: which system leads for which metric weights, and where the leader changes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.comparison.columns import total_of_pairs
from ragnb.comparison.estimates import TIE, Changes, least_error
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.source import paired_runs, run_of
from ragnb.errors import RagnbError, RagnbWarning, listing, need_known, outside
from ragnb.scenario import need_arguments
from ragnb.stats import packed
from ragnb.weights.total import Array, Flags, Total

if TYPE_CHECKING:
    from ragnb.scenario.settings import SharedSettings

POINTS = 100_000  # draws of weights: a share of them is known to .3 percentage points
_SEED = 20_26  # the same map each time it is drawn
_BLOCK = 1 << 22  # numbers in memory at once: 32 MB
_NEAREST = 500  # points from which the nearest flip is looked for
_STEPS = 60  # halvings, after which a weight is known to 1e-18


def weight_map(
    scores: Any,
    *,
    baseline: Any = None,
    candidate: str | None = None,
    system: str = "system",
    on: str | None = None,
    **settings: Unpack[SharedSettings],
) -> WeightMap:
    """Compute for all metric weights which of two systems leads.

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
        As `compare`; for fewer than two metrics, and for metrics that cannot be combined.

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
    need_arguments(weight_map, settings)
    run = run_of(scores, system=system, settings=settings, name="candidate")
    _, every = paired_runs(run, baseline, candidate, on, settings=settings)
    if len(every) > 1:
        names = listing(pairs.candidate for pairs in every)
        raise RagnbError(
            f"a weight map is of one candidate; name it: candidate='…' (have: {names})"
        )
    if run.scenario.ratings is not None:
        text = (
            "the weight map goes by the judge's scores alone; the ratings of people decide in rn.compare, with "
            "the same weights"
        )
        warnings.warn(text, RagnbWarning, stacklevel=outside())
    return WeightMap.of(every[0], total_of_pairs(every[0], run.scenario), run.scenario.level)


class Form(NamedTuple):
    """The squared standard error as a quadratic form, Student's t, and the effective sizes it rests on."""

    matrix: Array
    times: float
    n_kish: float
    g_eff: float


@dataclass(frozen=True)
class Kinds:
    """The questions of a weight map by what changes in them, for every weighting at once.

    Attributes
    ----------
    pattern, changed, full, count : (R,), (R, K), (R, K), (R,)
        Kinds of questions: their pattern, which metrics differ, by how much of the range where it is all of it
        (−1 or 1, else 0), and how many they are.
    totals, products : (P, K), (P, K, K) float
        Σd and Σddᵀ by pattern, d as a share of the range, without the weights of documents.
    weight_squares : (P,) float
        Σv².
    present : (P, K) bool
        The metrics of each pattern.
    """

    pattern: npt.NDArray[np.intp]
    changed: Flags
    full: npt.NDArray[np.int8]
    count: npt.NDArray[np.intp]
    totals: Array
    products: Array
    weight_squares: Array
    present: Flags

    @classmethod
    def of(cls, d: Array, v: Array, pattern: npt.NDArray[np.intp], present: Flags) -> Kinds:
        """Count the kinds of the differences `d`, nan where a side has no score."""
        n_patterns = len(present)
        shares = np.nan_to_num(d)
        changed = np.abs(shares) > TIE
        is_full = np.abs(np.abs(shares) - 1) <= TIE
        full = np.where(is_full, np.sign(shares), 0).astype(np.int8)
        # Many questions are of few kinds, so that no weighting has to look at each question again.
        table = np.column_stack([pattern, changed, full]).astype(np.int64)
        kinds, count = np.unique(table, axis=0, return_counts=True)
        k = d.shape[1]
        totals = np.zeros((n_patterns, k))
        np.add.at(totals, pattern, shares)
        of_patterns = [shares[pattern == one] for one in range(n_patterns)]
        products = np.stack([part.T @ part for part in of_patterns])
        squares = np.bincount(pattern, v**2, n_patterns).astype(float)
        # The columns as they were put together: the pattern, what changed, and which way it changed fully.
        pattern_of_kind = kinds[:, 0]
        changed_in_kind = kinds[:, 1 : k + 1] > 0
        fully_in_kind = kinds[:, k + 1 :].astype(np.int8)
        return cls(
            pattern=pattern_of_kind,
            changed=changed_in_kind,
            full=fully_in_kind,
            count=count,
            totals=totals,
            products=products,
            weight_squares=squares,
            present=present,
        )

    def changes(self, omega: Array, used: Flags, support: Flags) -> Changes:
        """Return what changes at some weightings of the same metrics, over the patterns in use.

        Parameters
        ----------
        omega : (M, patterns in use · K) float
            The weights of each metric in each pattern.
        used : (P,) bool
            The patterns in use.
        support : (K,) bool
            The metrics that have a weight in any of these weightings.
        """
        inside = used[self.pattern]
        changed = self.changed[inside] & support
        differs = changed.any(axis=1)
        count = self.count[inside]
        # A weighted score changes by the whole range only where all its metrics do, and the same way.
        there = self.present[self.pattern[inside]] & support
        full = np.where(there, self.full[inside], 0)
        is_whole = (np.abs(full.sum(axis=1)) == there.sum(axis=1)) & there.any(axis=1)
        k = self.totals.shape[1]
        weights = omega.reshape(len(omega), -1, k)  # (M, patterns in use, K)
        total = np.einsum("mpk,pk->m", weights, self.totals[used])
        squares = np.einsum("mpk,pkl,mpl->m", weights, self.products[used], weights)
        return Changes(
            n=int(count.sum()),
            changed=int(count[differs].sum()),
            whole=bool(is_whole[differs].all()),
            total=total,
            squares=squares,
        )


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
    present : (P, K) bool
        The patterns of metrics that both systems have.
    counts, sums : (G, P), (G, P, K) float
        Σv and Σv·d by cluster and pattern; d oriented and scaled as in the total: above 0 the candidate is better.
    kinds : Kinds
        What the least standard error of `compare` goes by.
    width : float
        Of the total's range.
    """

    candidate: str
    baseline: str
    metrics: tuple[str, ...]
    today: Array
    level: float
    present: Flags
    counts: Array
    sums: Array
    kinds: Kinds
    width: float
    # By the patterns in use; today's weights change none.
    _forms: dict[bytes, Form] = field(default_factory=dict)

    @classmethod
    def of(cls, pairs: Pairs, total: Total, level: float) -> WeightMap:
        """Return the map of pairs over the metrics of their total."""
        if pairs.complete:
            raise RagnbError("a weight map treats the documents as a sample; pass corpus='sample'")
        if total.reason:
            raise RagnbError(
                f"metrics with different ranges have no weight map ({total.reason}); select metrics of one range, "
                "or pass rescale=True"
            )
        # A rate or a measure of operation has a place in the map only where it is given a weight.
        kept = np.array(
            [
                metric.role == "quality" or weight > 0
                for metric, weight in zip(pairs.metrics, total.given, strict=True)
            ]
        )
        # Intercepts cancel out in a difference.
        d = ((pairs.scores[0] - pairs.scores[1]) * total.slopes)[:, kept]  # (Q, K)
        asked = ~np.isnan(d).all(axis=1) & (pairs.weights > 0)
        if kept.sum() < 2 or not asked.any():
            raise RagnbError(
                "a weight map needs at least two metrics that both systems have; name two: "
                "metrics=[…]"
            )
        d = d[asked]
        v = pairs.weights[asked]
        cluster = packed(pairs.clusters[asked])
        present, pattern = np.unique(~np.isnan(d), axis=0, return_inverse=True)
        pattern = pattern.ravel()  # NumPy 2.0.0 returns the inverse of rows as a column
        # Sums of v and of v·d over the questions of each cluster and pattern.
        shape = int(cluster.max()) + 1, len(present)
        cell = np.ravel_multi_index((cluster, pattern), shape)
        summands = [v, *(v * np.nan_to_num(of_metric) for of_metric in d.T)]
        sums = [
            np.bincount(cell, summand, shape[0] * shape[1]).reshape(shape) for summand in summands
        ]
        cells: Array = np.stack(sums, axis=2).astype(float)
        width = float(total.high - total.low)
        weights = total.given[kept]
        return cls(
            candidate=pairs.candidate,
            baseline=pairs.baseline,
            metrics=tuple(
                metric.name for metric, used in zip(pairs.metrics, kept, strict=True) if used
            ),
            today=weights / weights.sum(),
            level=level,
            present=present,
            counts=cells[..., 0],
            sums=cells[..., 1:],
            kinds=Kinds.of(d / width, v, pattern, present),
            width=width,
        )

    def reweighed(self, metric_weights: Mapping[str, float]) -> WeightMap:
        """Return the map with these weights as the current ones."""
        weights = np.array([metric_weights[name] for name in self.metrics], dtype=float)
        return replace(self, today=weights / weights.sum())

    @cached_property
    def _totals(self) -> tuple[Array, Array]:
        return self.counts.sum(axis=0), self.sums.sum(axis=0)

    def _form(self, used: Flags) -> Form:
        """Return the standard error over the patterns in use as a quadratic form, and what goes with it."""
        mass = self.counts[:, used].sum(axis=1)  # (G,): Σv of each cluster
        there = mass > 0
        mass = mass[there]
        sums = self.sums[there][:, used].reshape(len(mass), -1)  # (G, patterns in use · K)
        total = mass.sum()
        n_clusters = len(mass)
        squares = float(self.kinds.weight_squares[used].sum())
        n_kish = float(stats.kish(total, squares))
        if n_clusters < 2:
            size = sums.shape[1]
            return Form(np.full((size, size), np.nan), np.nan, n_kish, 1.0)
        share = mass / total
        # By how much the means move without each cluster: the delete-one jackknife, its error a quadratic form.
        moves = (sums - np.outer(share, sums.sum(axis=0))) / ((1 - share) * total)[:, None]
        df = max(1 / float(share @ share) - 1, 1.0)
        matrix = np.asarray((n_clusters - 1) / n_clusters * moves.T @ moves)
        return Form(matrix, float(stats.t_quantile(self.level, df)), n_kish, df + 1)

    def _form_of(self, used: Flags) -> Form:
        """Return the form over the patterns in use, computed once for each such set."""
        key = used.tobytes()
        if key not in self._forms:
            self._forms[key] = self._form(used)
        return self._forms[key]

    def _errors(self, omega: Array, form: Form, used: Flags) -> Array:
        """Return the standard errors at some weightings, none below the least where few questions change."""
        squared = np.einsum("mi,mi->m", omega @ form.matrix, omega)
        se: Array = np.sqrt(np.maximum(squared, 0.0))
        if not np.isfinite(self.width) or np.isnan(form.times):
            return se
        # Which questions change depends on which metrics have a weight, not on how much: one count does for these.
        has_weight = omega.reshape(len(omega), -1, len(self.metrics)).any(axis=1)
        value = np.abs(self._of_patterns(omega, used))
        for support in np.unique(has_weight, axis=0):
            rows = np.flatnonzero((has_weight == support).all(axis=1))
            changes = self.kinds.changes(omega[rows], used, support)
            # As in `difference`: an error that is nan counts as none.
            identical = ~(se[rows] > 1e-12 * np.maximum(1.0, value[rows]))
            least = least_error(changes, form.n_kish, form.g_eff, identical=identical)
            applies = identical | changes.are_few
            floor = np.where(applies, least * self.width, 0.0)
            se[rows] = np.maximum(se[rows], floor)
        return se

    def _of_patterns(self, omega: Array, used: Flags) -> Array:
        """Return the difference at some weightings over the patterns in use."""
        counts, sums = self._totals
        return np.asarray(omega @ sums[used].ravel() / counts[used].sum())

    def _value(self, w: Array) -> Array:
        """Return the difference at some weights, without its interval."""
        counts, sums = self._totals
        scale = w @ self.present.T  # (M, P): the weight of the metrics that a pattern has
        means: Array = np.divide(w @ sums.T, scale, out=np.zeros_like(scale), where=scale > 0)
        with np.errstate(invalid="ignore"):  # no question has any of these metrics
            return np.asarray(means.sum(axis=1) / ((scale > 0) @ counts))

    @property
    def order(self) -> tuple[str, str]:
        """The system that leads at the current weights, and the other one."""
        ahead = self._value(self.today[None])[0] >= 0
        if ahead:
            return (self.candidate, self.baseline)
        return (self.baseline, self.candidate)

    def _flipped(self, values: Array) -> Flags:
        """Return at which differences the other system leads than does today."""
        sign_today = np.sign(self._value(self.today[None])[0])
        return np.asarray(values * sign_today < -TIE)

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
            ``value, low, high`` of candidate − baseline; one row per weighting.
        """
        if isinstance(metric_weights, Mapping):
            for name in metric_weights:
                need_known("metric", name, self.metrics)
            metric_weights = [[metric_weights.get(name, 1.0) for name in self.metrics]]
        w = np.atleast_2d(np.asarray(metric_weights, dtype=float))
        are_weights = np.isfinite(w).all() and (w >= 0).all() and w.any(axis=1).all()
        if w.shape[1] != len(self.metrics) or not are_weights:
            raise RagnbError(
                f"weights are {len(self.metrics)} numbers of at least 0, not all 0, for {listing(self.metrics)}"
            )
        scale = w @ self.present.T
        half = np.empty(len(w))
        # Weightings with the same patterns in use have one form; without a weight of 0 that is all of them.
        uses, use_of = np.unique(scale > 0, axis=0, return_inverse=True)
        for number, used in enumerate(uses):
            rows = np.flatnonzero(use_of.reshape(-1) == number)
            form = self._form_of(used)
            n_blocks = -(-len(rows) * len(form.matrix) // _BLOCK)  # rounded up
            for some in np.array_split(rows, n_blocks):
                # Each pattern's weights add up to 1 over the metrics that it has.
                shares = w[some][:, None, :] * self.present[used] / scale[some][:, used, None]
                omega = shares.reshape(len(some), -1)
                half[some] = form.times * self._errors(omega, form, used)
        value = self._value(w)
        low = np.maximum(value - half, -self.width)
        high = np.minimum(value + half, self.width)
        return pd.DataFrame({"value": value, "low": low, "high": high})

    @cached_property
    def points(self) -> pd.DataFrame:
        """The difference at 100,000 fixed weightings, uniform on the simplex: one column per metric, then `at`."""
        # Exponential numbers over their sum are uniform on the simplex.
        drawn = np.random.default_rng(_SEED).standard_exponential((POINTS, len(self.metrics)))
        shares = drawn / drawn.sum(axis=1, keepdims=True)
        weights = pd.DataFrame(shares, columns=list(self.metrics))
        return pd.concat([weights, self.at(shares)], axis=1)

    @property
    def shares(self) -> dict[str, float]:
        """The share of all weightings at which each system leads, and leads conclusively.

        ``candidate, candidate_conclusive, baseline, baseline_conclusive``.
        """
        points = self.points
        leads = {
            "candidate": points["value"] > 0,
            "candidate_conclusive": points["low"] > 0,
            "baseline": points["value"] < 0,
            "baseline_conclusive": points["high"] < 0,
        }
        return {name: float(rows.mean()) for name, rows in leads.items()}

    @cached_property
    def flips(self) -> pd.DataFrame:
        """Where the leader changes if one metric's weight changes and the others stay in proportion.

        ``metric``, its share ``today``, ``flip`` (the share nearest to today's at which the other system leads;
        nan where none does), ``distance`` (of the two), and the difference with none of the weight (``without``)
        and all of it (``alone``). The first row is the metric that matters most: the nearest flip, else the one
        that moves the difference most.
        """
        share = np.linspace(0, 1, 101)
        k = len(self.metrics)
        ways = np.stack([self._moved(metric, share) for metric in range(k)])  # (K, 101, K)
        values = self._value(ways.reshape(-1, k)).reshape(k, -1)  # (K, 101)
        away = np.where(self._flipped(values), np.abs(share - self.today[:, None]), np.inf)
        # From the nearest of the 101 shares back to the border; of each metric its own share there.
        nearest = ways[np.arange(k), away.argmin(axis=1)]
        border = self._border(nearest).diagonal()
        flip = np.where(np.isfinite(away).any(axis=1), border, np.nan)
        distance = np.abs(flip - self.today)
        without = values[:, 0]
        alone = values[:, -1]
        table = pd.DataFrame(
            {
                "metric": self.metrics,
                "today": self.today,
                "flip": flip,
                "distance": distance,
                "without": without,
                "alone": alone,
            }
        )
        order = np.lexsort((-np.abs(alone - without), distance))  # nan comes last
        return table.iloc[order].reset_index(drop=True)

    def strip(self, metric: str, *, points: int = 101) -> pd.DataFrame:
        """Return the difference while one metric's share goes from 0 to 1: ``share, value, low, high``."""
        need_known("metric", metric, self.metrics)
        share = np.linspace(0, 1, points)
        differences = self.at(self._moved(self.metrics.index(metric), share))
        return pd.concat([pd.DataFrame({"share": share}), differences], axis=1)

    def _moved(self, k: int, share: Array) -> Array:
        """Return weightings in which one metric has these shares, and the others today's proportions."""
        is_other = np.arange(len(self.today)) != k
        rest = self.today * is_other
        # Where today all weight is on this metric, the others share equally what it gives away.
        if not rest.any():
            rest = is_other
        weights = np.outer(1 - share, rest / rest.sum())
        weights[:, k] = share
        return weights

    def _border(self, ends: Array) -> Array:
        """Return where, on the way from today's weights to others, the sign of the difference changes."""
        now = self._value(self.today[None])[0]
        # By halving: at `low` of the way the sign is still today's, at `high` it is not.
        low = np.zeros(len(ends))
        high = np.ones(len(ends))
        for _ in range(_STEPS):
            middle = (low + high) / 2
            same = self._value(self.today + middle[:, None] * (ends - self.today)) * now > 0
            low = np.where(same, middle, low)
            high = np.where(same, high, middle)
        return np.asarray(self.today + high[:, None] * (ends - self.today))

    @cached_property
    def nearest_flip(self) -> dict[str, Any] | None:
        """Return the weights nearest to the current ones at which the other system leads; None if it never does.

        ``weights`` (shares) and ``distance``, the share of all weight that moves. Found among the fixed points,
        the single metrics and the transfers from one metric to another, each drawn to the very border.
        """
        is_flipped = self._flipped(self.points["value"].to_numpy())
        beyond = self.points.loc[is_flipped, list(self.metrics)].to_numpy()
        nearest = np.argsort(np.abs(beyond - self.today).sum(axis=1))[:_NEAREST]
        alone = np.eye(len(self.metrics))
        # (K, K, K): all of today's weight of one metric given to another.
        transfers = self.today + self.today[:, None, None] * (alone - alone[:, None])
        ends = np.vstack([beyond[nearest], alone, *transfers])
        ends = ends[self._flipped(self._value(ends))]
        if not len(ends):
            return None
        border = self._border(ends)
        # What one metric gives another takes: half of the differences is the weight that moves.
        moved = np.abs(border - self.today).sum(axis=1) / 2
        best = int(np.argmin(moved))
        weights = dict(zip(self.metrics, border[best].tolist(), strict=True))
        return {"weights": weights, "distance": float(moved[best])}

    def __repr__(self) -> str:
        """Return a summary of which system leads."""
        shares = self.shares
        if shares["candidate"] >= 0.5:
            name = self.candidate
            share = shares["candidate"]
            conclusive = shares["candidate_conclusive"]
        else:
            name = self.baseline
            share = shares["baseline"]
            conclusive = shares["baseline_conclusive"]
        words = f"{name} leads for {share:.0%} of all weightings, conclusively for {conclusive:.0%}"
        flip = self.nearest_flip
        if flip:
            words += f"; flips when {flip['distance']:.0%} of the weight moves"
        return f"WeightMap({words})"
