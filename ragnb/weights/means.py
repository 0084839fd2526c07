"""The table of means from moments, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.schema import TOTAL
from ragnb.stats import sums_by
from ragnb.weights.cells import Cells, Counts, add_up
from ragnb.weights.total import (
    Array,
    Total,
    check_weights,
    document_weights,
    total_of,
)
from ragnb.weights.units import ROUNDING, Units, by_group, cell_columns

if TYPE_CHECKING:
    from ragnb.weights.moments import Moments

Names = npt.NDArray[np.object_]

_MANY = 60  # documents: with more, those that could have failed unseen change little
_MOST = 0.5  # of the weight: a cluster with more than this share of a mean is worth a note
_DESIGN = 3.0  # questions a document that count: with fewer, unseen documents change little
_TIE = 1e-9  # what sums differ by in their rounding


@dataclass(frozen=True)
class _Sums:
    """What groups of rows sum up to, groups × columns: every metric and, last, the weighted score.

    Attributes
    ----------
    mass : Σv of the scored rows
    value : the mean on the scale of its metric, nan without scored rows
    se : its jackknife standard error over clusters
    n, n_clusters : how many rows and clusters are scored
    n_eff, g_eff : Kish's effective numbers of rows and of clusters
    sum_h4 : Σh⁴ of the clusters' shares h in the mean
    """

    mass: Array
    value: Array
    se: Array
    n: Counts
    n_clusters: Array
    n_eff: Array
    g_eff: Array
    sum_h4: Array


@dataclass(frozen=True)
class _Columns:
    """What is known of each column, of the metrics and, last, of the weighted score."""

    name: Names
    low: Array
    high: Array
    better: Names
    kind: Names
    role: Names
    weight: Array
    reason: Names


@dataclass(frozen=True)
class _Spread:
    """How sure the means are: both ends of the interval, its standard error and what that rests on."""

    low: Array
    high: Array
    se: Array
    df: Array
    n_clusters: Array
    unit: Any


def means_table(
    source: Moments,
    metric_weights: Mapping[str, float] | None,
    doc_weights: Mapping[str, float] | None,
    level: float,
    **how: bool,
) -> tuple[pd.DataFrame, Units, Total]:
    """Return the frame of `weighted_means` for one set of weights, the units behind its intervals, and the total.

    Raises
    ------
    RagnbError
        As `total_of`, and for weights of 0 that leave out every row.
    """
    if not 0 < level < 1:
        raise RagnbError(f"level={level!r} must lie between 0 and 1, such as 0.95")
    total = total_of(source.metrics, metric_weights, **how)
    doc_weight = _relative_weights(source, doc_weights)
    if source.corpus == "complete":
        cells = source.by_document().cells
    else:
        cells = source.cells
    sums, units, shares = _sums(cells, total, doc_weight, groups=len(source.rows))
    columns = _columns(source.metrics, total)
    spread = _spread(source, total, sums, columns, level)
    unseen = np.full((2, *sums.value.shape), np.nan)
    if source.corpus == "complete":
        spread = _of_complete_corpus(source, total, sums, columns, spread, doc_weight, level)
    elif source.unit == "document":
        unseen = _unseen(source, total, sums, columns, spread, units, level)
    dominant = _dominant(source, units, shares)
    table = _tabulated(source, sums, columns, spread, unseen, dominant, level)
    return table, units, total


def values_table(
    source: Moments, metric_weights: Mapping[str, float] | None, **how: bool
) -> pd.DataFrame:
    """Return the means alone, a row a group and a column a metric, and how many rows have a weighted score.

    They are those of `means_table` without document weights, in a small part of its time: of a million documents
    each mean may be asked for, but the intervals of the few that are shown.
    """
    total = total_of(source.metrics, metric_weights, **how)
    cells = source.cells
    sums, counts, _ = cell_columns(cells, total)
    of_cells = by_group(cells.group, len(source.rows))
    v = _comparable(cells.weight[:, None], counts, cells, of_cells)
    mass = of_cells(v * counts)
    values = np.divide(of_cells(v * sums), mass, out=np.full_like(mass, np.nan), where=mass > 0)
    values += np.append(cells.centre, total.centre(cells.centre))
    names = [*(metric.name for metric in source.metrics), TOTAL]
    table = pd.DataFrame(dict(zip(names, values.T, strict=True)))
    table[f"{TOTAL}__n"] = of_cells(counts)[:, -1].astype(np.int64)
    return table


def _relative_weights(source: Moments, doc_weights: Mapping[str, float] | None) -> Array:
    """Return the weight of each document and, last, of rows without one, the largest 1."""
    doc = source.cells.doc
    each = document_weights(check_weights(doc_weights, "doc_weights"), source.docs, doc)
    each[-1] *= (doc < 0).any()  # what no row has is no measure of the others
    return stats.relative(each)


def _sums(cells: Cells, total: Total, doc_weight: Array, groups: int) -> tuple[_Sums, Units, Array]:
    """Return the means of groups, the units of their intervals, and the share h of each unit in its mean.

    Notes
    -----
    With a_g = Σ v over a cluster's scored rows, A = Σ a_g, θ = Σ v s / A and u_g = Σ v (s − θ), the variance is
    (G−1)/G · Σ (u_g / (1 − a_g/A))² / A².
    """
    columns = cell_columns(cells, total)
    counts = columns[1]
    of_cells = by_group(cells.group, groups)
    v = (doc_weight[cells.doc] * cells.weight)[:, None]
    v = _comparable(v, counts, cells, of_cells)
    units = Units.of(cells, v, columns)
    of_units = by_group(units.group, groups)
    mass = of_units(units.size * units.weight)  # A
    scored = mass > 0
    n_clusters = of_units(units.size * (units.weight > 0))
    theta = of_units(units.size * units.sum)
    np.divide(theta, mass, out=theta, where=scored)
    inverse_mass = np.divide(1.0, mass, out=np.zeros_like(mass), where=scored)
    # What is known of the one group there mostly is needs no copy for each of its units.
    group = np.zeros(1, dtype=int) if groups == 1 else units.group
    h = units.weight * inverse_mass[group]  # a_g/A: the share of a unit in the mean of its group
    squared = _squared_influence(units, theta[group], h)
    h_squared = h * h
    sum_h2 = of_units(units.size * h_squared)
    # Sums are of scores less a centre, see `cells.centres`, which is added again here.
    middles = np.append(cells.centre, total.centre(cells.centre))
    sums = _Sums(
        mass=mass,
        value=np.where(scored, theta + middles, np.nan),
        se=stats.jackknife_se(mass, n_clusters, of_units(units.size * squared)),
        n=of_cells(counts).astype(np.int64),
        n_clusters=n_clusters,
        n_eff=stats.kish(mass, of_cells(v**2 * counts)),
        g_eff=np.divide(1.0, sum_h2, out=np.zeros_like(sum_h2), where=sum_h2 > 0),
        sum_h4=of_units(units.size * h_squared * h_squared),
    )
    return sums, units, h


def _squared_influence(units: Units, theta: Array, h: Array) -> Array:
    """Return (u_g / (1 − a_g/A))² of each unit: how far the mean moves without it, times A.

    In place: with very many documents each of these arrays is large.
    """
    squared = units.sum - theta * units.weight
    squared *= squared
    squared += units.variance
    rest = 1 - h
    # Without the one cluster that has all the weight there is no mean; `jackknife_se` asks for two.
    rest[h >= 1] = 1.0
    rest *= rest
    squared /= rest
    return squared


def _comparable(v: Array, counts: Array, cells: Cells, of_cells: Callable[..., Array]) -> Array:
    """Return the weights of cells; where they are far apart, relative to the largest in each group and column."""
    if not len(v) or v[v > 0].min(initial=np.inf) > stats.LOST_IN_ROUNDING * v.max():
        return v
    # A group of small weights alone is a mean like any other: only what is small beside its largest is lost.
    weight = np.where(counts > 0, v, 0.0)
    largest = of_cells(weight, np.maximum)[cells.group]
    v = np.divide(weight, largest, out=np.zeros_like(weight), where=largest > 0)
    v[v <= stats.LOST_IN_ROUNDING] = 0.0
    return v


def _columns(metrics: Sequence[Any], total: Total) -> _Columns:
    """Return what is known of the metrics and, last, of the weighted score."""

    def of_metrics(name: str, of_total: object) -> Names:
        return np.array([*(getattr(metric, name) for metric in metrics), of_total], dtype=object)

    role = of_metrics("role", "total")
    weighed = (role[:-1] == "quality") | (total.given > 0)
    return _Columns(
        name=of_metrics("name", TOTAL),
        low=of_metrics("low", total.low).astype(float),
        high=of_metrics("high", total.high).astype(float),
        better=of_metrics("better", "higher"),
        kind=of_metrics("kind", "continuous"),
        role=role,
        weight=np.append(np.where(weighed, total.given, np.nan), np.nan),
        reason=np.array([""] * len(metrics) + [total.reason], dtype=object),
    )


def _ranges(columns: _Columns, total: Total) -> tuple[Array, Array]:
    """Return the ends between which the means may lie."""
    return np.append(columns.low[:-1], total.least), columns.high


def _spread(source: Moments, total: Total, sums: _Sums, columns: _Columns, level: float) -> _Spread:
    """Return the intervals over clusters."""
    at_ends = _of_columns(source, total)
    ends = stats.mean_interval(
        sums.value,
        sums.se,
        g_eff=sums.g_eff,
        n_kish=sums.n_eff,
        ranges=_ranges(columns, total),
        binary=(at_ends.sum(axis=2) >= sums.n) & (sums.n > 0),
        sum_h4=sums.sum_h4,
        elsewhere=(sums.n - at_ends.max(axis=2), sums.n),
        level=level,
    )
    return _Spread(*ends, sums.se, sums.g_eff - 1, sums.n_clusters, source.unit)


def _of_complete_corpus(
    source: Moments,
    total: Total,
    sums: _Sums,
    columns: _Columns,
    spread: _Spread,
    doc_weight: Array,
    level: float,
) -> _Spread:
    """Return the intervals over the questions within documents, where these are all there are.

    Where a document has one question only, its documents tell more than nothing, and stay the units.
    """
    se, df, questions = _within_documents(source, total, doc_weight, sums.mass)
    enough = np.isfinite(se) & np.isfinite(sums.value)
    low, high = stats.mean_interval(
        sums.value,
        se,
        g_eff=sums.g_eff,
        n_kish=sums.n_eff,
        ranges=_ranges(columns, total),
        level=level,
        df=df,
    )
    unit = np.full(sums.value.shape, source.unit, dtype=object)
    unit[~enough] = "document"
    return _Spread(
        low=np.where(enough, low, spread.low),
        high=np.where(enough, high, spread.high),
        se=np.where(enough, se, spread.se),
        df=np.where(enough, df, spread.df),
        n_clusters=np.where(enough, questions, spread.n_clusters),
        unit=unit,
    )


def _unseen(
    source: Moments,
    total: Total,
    sums: _Sums,
    columns: _Columns,
    spread: _Spread,
    units: Units,
    level: float,
) -> Array:
    """Return how low the mean may be if documents like none that were seen fail, and the share of these.

    Both are nan where a document failed, where there are many documents, and where clusters are no documents.
    """
    nothing = np.full((2, *sums.value.shape), np.nan)
    few = sums.g_eff < _MANY - _TIE
    if not few.any():
        return nothing
    of_units = by_group(units.group, len(source.rows))
    scored = units.weight > 0
    middles = np.append(source.cells.centre, total.centre(source.cells.centre))
    mean_of_unit = np.divide(units.sum, units.weight, out=np.zeros_like(units.sum), where=scored)
    mean_of_unit += middles
    lowest, highest = _ranges(columns, total)
    worst_score = np.where(columns.better == "lower", highest, lowest)
    best_score = np.where(columns.better == "lower", lowest, highest)
    # Below 0 where lower is better: shares of it rise towards the best score all the same.
    width = best_score - worst_score
    # Without a finite range a document cannot fail entirely: inf / inf is nan, and nothing is shown.
    with np.errstate(invalid="ignore"):
        loss = np.where(scored, (best_score - mean_of_unit) / width, 0.0)
        largest_loss = of_units(loss, np.maximum)
        above_worst = (sums.value - worst_score) / width
        # Where lower is better, the worse end of the interval is the upper one.
        low_above_worst = (spread.low - worst_score) / width
        high_above_worst = (spread.high - worst_score) / width
        worse_end = np.minimum(low_above_worst, high_above_worst)
        # A document failed if it has less than half of what the mean is above the worst score.
        none_failed = 1 - largest_loss > above_worst / 2 + _TIE
        is_document = (units.cluster >= 0) & (units.cluster < len(source.docs))
        n_documents = of_units(is_document[:, None] & scored)
        g_eff = np.maximum(sums.g_eff, 1.0)
        floor, share = stats.unseen_failures(worse_end, g_eff, alpha=1 - level)
        shown = few & none_failed & np.isfinite(worse_end) & (sums.n_clusters == n_documents)
        shown &= sums.n_eff > (_DESIGN - _TIE) * sums.g_eff
        return np.where(shown, (worst_score + width * floor, share), nothing)


def _dominant(source: Moments, units: Units, shares: Array) -> tuple[Array, Names]:
    """Return the share and the name of a cluster that has most of the weight of a mean, else nan and nothing.

    None is told of a complete corpus, where questions are the units.
    """
    shape = (len(source.rows), shares.shape[1])
    code = np.full(shape, -1)
    share = np.full(shape, np.nan)
    if source.corpus != "complete":
        unit, column = np.nonzero((shares > _MOST + _TIE) & (units.cluster >= 0)[:, None])
        code[units.group[unit], column] = units.cluster[unit]
        share[units.group[unit], column] = shares[unit, column]
    if (code < 0).all():
        return share, np.array([""], dtype=object)
    return share, np.array([*source.clusters, ""], dtype=object)[code]


def _tabulated(
    source: Moments,
    sums: _Sums,
    columns: _Columns,
    spread: _Spread,
    unseen: Array,
    dominant: tuple[Array, Names],
    level: float,
) -> pd.DataFrame:
    """Return the frame of means, a row a group and column."""
    # Identical scores of no range give no width.
    has_range = np.isfinite(columns.high - columns.low)
    varies = spread.se > np.finfo(float).eps * np.abs(sums.value)
    no_width = ~has_range & ~varies
    # The weighted score, the last column, is made of scores: it has none that failed or do not apply.
    with_total = np.pad(source.counts, ((0, 0), (0, 1), (0, 0)))
    failed, absent = with_total.transpose(2, 0, 1)
    low_if, share_unseen = unseen
    top_share, top_cluster = dominant
    parts: dict[str, Any] = {
        "metric": columns.name,
        "weight": columns.weight,
        "value": sums.value,
        "low": np.where(no_width, np.nan, spread.low),
        "high": np.where(no_width, np.nan, spread.high),
        "se": spread.se,
        "n": sums.n,
        "n_missing": source.rows[:, None] - sums.n - failed - absent,
        "n_failed": failed,
        "n_not_applicable": absent,
        "n_clusters": spread.n_clusters.astype(np.int64),
        "n_eff": sums.n_eff,
        "df": spread.df,
        "cluster_unit": spread.unit,
        "range_low": columns.low,
        "range_high": columns.high,
        "better": columns.better,
        "kind": columns.kind,
        "role": columns.role,
        "level": level,
        "low_if": low_if,
        "share_unseen": share_unseen,
        "top_share": top_share,
        "top_cluster": top_cluster,
        "reason": columns.reason,
    }
    # What is known of a metric holds in every group.
    groups, width = sums.value.shape
    table = pd.DataFrame({name: _column(part, groups, width) for name, part in parts.items()})
    if source.by is not None:
        table = table.rename(columns={source.by: f"metric_{source.by}"})
        table.insert(0, source.by, np.repeat(np.array(source.groups, dtype=object), width))
    return table


def _column(part: Any, groups: int, width: int) -> Any:
    """Return a column of groups × width rows; a part of one group, or of one value, is that of them all.

    Texts are made once and repeated: of a million documents they are seven million rows.
    """
    if groups > 1 and np.ndim(part) == 1 and part.dtype == object:
        places = np.broadcast_to(np.arange(len(part)), (groups, width)).ravel()
        return pd.Series(part).take(places).array
    return np.broadcast_to(part, (groups, width)).ravel()


def _of_columns(source: Moments, total: Total) -> Counts:
    """Return how many scores of each metric and, last, of the total are at their bad and at their good end.

    Of a total of some metrics at most as many rows as of each of them: with fewer, its interval is no narrower.
    """
    at_ends = source.at_ends.copy()
    used = np.flatnonzero(total.weights)
    quality = [k for k, metric in enumerate(source.metrics) if metric.role == "quality"]
    if len(used) and set(used) != set(quality):
        at_ends[:, -1] = at_ends[:, used].min(axis=1)
    return at_ends


def _within_documents(
    source: Moments, total: Total, doc_weight: Array, mass: Array
) -> tuple[Array, Array, Array]:
    """Return se, degrees of freedom and n for a complete corpus of documents, groups × columns.

    Repeats are averaged by question first. Where they are uneven, a document's variance rises by N Σr²/(Σr)².
    """
    cells = source.cells
    # A stratum is a document within a group, one number for both. Document −1 is that of rows without one.
    stratum = cells.group * len(doc_weight) + cells.doc + 1
    cells = add_up(cells, stratum, cells.doc, cells.cluster)
    questions = Units.of(cells, np.ones((cells.size, 1)), cell_columns(cells, total))
    strata, code = np.unique(questions.group, return_inverse=True)

    def of_stratum(part: Array) -> Array:
        return sums_by(code, questions.size * part)

    repeats = questions.weight
    has_score = repeats > 0
    mean = np.divide(questions.sum, repeats, out=np.zeros_like(repeats), where=has_score)
    n = of_stratum(has_score.astype(float))
    first = of_stratum(mean)
    second = of_stratum(mean**2 + questions.variance)
    rows = of_stratum(repeats)
    rows_squared = of_stratum(repeats**2)

    n_or_one = np.where(n > 0, n, 1.0)
    squares = second - first**2 / n_or_one
    squares[squares < ROUNDING * second] = 0.0
    uneven = n_or_one * rows_squared / np.where(rows > 0, rows, 1.0) ** 2
    group, document = np.divmod(strata, len(doc_weight))
    inverse_mass = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)
    # `doc_weight` has the rows without a document last, the strata have them first.
    weight = np.roll(doc_weight, 1)[document][:, None]
    share = weight * rows * inverse_mass[group]
    ends = np.searchsorted(group, np.arange(len(mass) + 1))
    ses = []
    dfs = []
    counts = []
    for of_group in map(slice, ends, ends[1:]):
        se, df = stats.stratified_se(
            share[of_group], n[of_group], squares[of_group], uneven[of_group]
        )
        ses.append(se)
        dfs.append(df)
        # A document of weight 0 has no part in the mean, nor have its questions.
        counts.append(np.where(share[of_group] > 0, n[of_group], 0.0).sum(axis=0))
    return np.array(ses), np.array(dfs), np.array(counts)
