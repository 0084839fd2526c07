"""Every number of one judge on one dimension, in the order in which it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragnb import stats
from ragnb.calibration.cells import Cells, cells_of, spread
from ragnb.calibration.raters import Array
from ragnb.calibration.ratings import Ratings
from ragnb.stats import Estimate

NONE = Estimate(np.nan, np.nan, np.nan, np.nan, 0, 0)


def measure(
    ratings: Ratings, chosen: Any, tolerance: float, level: float, digits: int | None = 10
) -> dict[str, Any]:
    """Return every number of one row of `agreement`."""
    cells = cells_of(ratings, chosen)
    total = round(float(ratings.counts[chosen].sum()))
    grid = None if ratings.raters is None else ratings.raters[chosen]
    known = np.nan if grid is None else float(np.sum(~np.isnan(grid), axis=1).mean())
    row: dict[str, Any] = {"n": cells.n, "n_clusters": cells.n_clusters, "raters": known}
    row["n_missing"] = total - cells.n
    row |= _closeness(cells, ratings.scale, tolerance, level)
    row |= _humans(ratings, chosen, tolerance, level)
    row |= _distance(cells, ratings.scale, level)
    row |= _order(ratings, chosen, cells, level, digits)
    row |= _one_number(cells, ratings.scale, level)
    return row | _alpha(ratings, chosen, level)


def _closeness(cells: Cells, scale: tuple[float, float], tolerance: float, level: float) -> dict[str, float]:
    x, y, how = cells.x, cells.y, {**cells.how, "level": level}
    near: dict[str, Any] = {"tolerance": tolerance, **how}
    ends = {"ends": scale, **how}
    row = spread("mean_judge", stats.clustered_mean(x, **ends))
    row |= spread("mean_human", stats.clustered_mean(y, **ends))
    row |= spread("within", stats.within_share(x, y, **near))
    sums: dict[str, Any] = {"tolerance": tolerance, "level": level, **cells.sums}
    row["floor"] = stats.chance_floor(x, y, tolerance=tolerance, counts=sums["counts"])
    score, constant = stats.best_constant(y, **near)
    row |= {"constant_score": score, **spread("constant", constant)}
    row |= spread("over_constant", over_constant(cells, score, tolerance, level))
    row |= spread("kappa_within", stats.within_kappa(x, y, **sums))
    wide = scale[1] - scale[0] >= 2
    labels = np.arange(np.ceil(scale[0]), np.floor(scale[1]) + 1)
    j, h = stats.round_half_up(x), stats.round_half_up(y)
    row |= spread("within_rounded", stats.within_share(j, h, **near) if wide else NONE)
    row["floor_rounded"] = stats.chance_floor(j, h, tolerance=tolerance, counts=sums["counts"]) if wide else np.nan
    best = stats.best_constant(y, levels=labels, rounded=True, **near)[1] if wide else NONE
    return (
        row
        | spread("constant_rounded", best)
        | spread("kappa_rounded", stats.within_kappa(j, h, **sums) if wide else NONE)
    )


def over_constant(cells: Cells, score: float, tolerance: float, level: float) -> Estimate:
    """Return the judge's share less that of a judge that always gives `score`, pair by pair."""
    mine = stats.within(cells.x, cells.y, tolerance)
    theirs = stats.within(np.full(len(cells.y), score), cells.y, tolerance)
    return stats.clustered_mean(mine - theirs, **cells.how, level=level)


def _distance(cells: Cells, scale: tuple[float, float], level: float) -> dict[str, float]:
    x, y, how = cells.x, cells.y, {**cells.how, "level": level}
    wide = scale[1] - scale[0] >= 2
    exact = stats.within_share(x, y, tolerance=0, rounded=True, **how) if wide else NONE
    row = spread("exact", exact) | spread("mae", stats.mae(x, y, scale=scale, **how))
    row |= spread("rmse", stats.rmse(x, y, **how)) | spread("bias", stats.bias(x, y, **how))
    row |= spread("slope", stats.slope_on_mean(x, y, **cells.sums, level=level))
    limits = stats.limits_of_agreement(x, y, **cells.sums, level=level)
    row["sd"] = limits.sd
    return row | spread("loa_low", limits.low) | spread("loa_high", limits.high) | {"outside": limits.outside}


def _order(ratings: Ratings, chosen: Any, cells: Cells, level: float, digits: int | None) -> dict[str, float]:
    """Correlations, pooled and within groups."""
    system = ratings.keys.get("system")
    grouped = None if system is None else cells_of(ratings, chosen & (system.codes >= 0), system.codes)
    row: dict[str, float] = {}
    for kind in ("pearson", "spearman", "kendall"):
        how: dict[str, Any] = {**cells.sums, "digits": digits, "level": level}
        row |= spread(kind, stats.correlation(cells.x, cells.y, kind, **how))
        inner = (
            None
            if cells.cluster is None
            else stats.correlation(cells.x, cells.y, kind, within=cells.cluster, **how)
        )
        row |= spread(f"{kind}_within", inner or NONE)
        of_system = NONE
        if grouped is not None:
            how = {**grouped.sums, "within": grouped.group, "digits": digits, "level": level}
            of_system = stats.correlation(grouped.x, grouped.y, kind, **how)
        row |= spread(f"{kind}_system", of_system)
    return row


def _one_number(cells: Cells, scale: tuple[float, float], level: float) -> dict[str, float]:
    x, y, how = cells.x, cells.y, {**cells.sums, "level": level}
    wide = scale[1] - scale[0] >= 2 and cells.n > 0
    around = float(np.floor(scale[0])), float(np.ceil(scale[1]))
    row = spread("qwk", stats.quadratic_kappa(x, y, around, **how) if wide else NONE)
    icc = stats.icc(np.column_stack([x, y]), **how)
    row |= spread("icc_agreement", icc["ICC(A,1)"]) | spread("icc_consistency", icc["ICC(C,1)"])
    return row | spread("ccc", stats.concordance(x, y, **how))


def _single(ratings: Ratings, chosen: Any) -> tuple[Array, Any, Array]:
    """The raters' grid, the clusters and the weights, one row an item."""
    grid = ratings.raters if ratings.raters is not None else np.empty((len(ratings.x), 0))
    rows = np.repeat(np.flatnonzero(chosen), ratings.counts[chosen].astype(np.int64))
    return grid[rows], None if ratings.cluster is None else ratings.cluster[rows], ratings.weights[rows]


def _humans(ratings: Ratings, chosen: Any, tolerance: float, level: float) -> dict[str, float]:
    if ratings.raters is None:
        return spread("ceiling", NONE)
    grid, clusters, weights = _single(ratings, chosen)
    how: dict[str, Any] = {"tolerance": tolerance, "weights": weights, "level": level}
    return spread("ceiling", stats.human_ceiling(grid, clusters, **how))


def _alpha(ratings: Ratings, chosen: Any, level: float) -> dict[str, float]:
    row: dict[str, float] = {}
    for name, metric in (("alpha", "interval"), ("alpha_ordinal", "ordinal"), ("alpha_nominal", "nominal")):
        found = NONE
        if ratings.raters is not None:
            grid, clusters, _ = _single(ratings, chosen)
            found = stats.krippendorff_alpha(grid, metric, clusters, level=level)
        row |= spread(name, found)
    return row
