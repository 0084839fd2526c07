"""Every number of one judge on one dimension, in the order in which it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragnb import stats
from ragnb.calibration.cells import Cells, cells_of, spread
from ragnb.calibration.ratings import Ratings
from ragnb.stats import Estimate
from ragnb.stats.estimates import NONE


def measure(
    ratings: Ratings, chosen: Any, tolerance: float, level: float, digits: int | None = 10
) -> dict[str, Any]:
    """Return every number of one row of `agreement`."""
    cells, scale = cells_of(ratings, chosen), ratings.scale
    x, y = cells.x, cells.y
    how: dict[str, Any] = {**cells.how, "level": level}
    sums: dict[str, Any] = {**cells.sums, "level": level}
    near: dict[str, Any] = {"tolerance": tolerance, **how}
    crossed: dict[str, Any] = {"tolerance": tolerance, "counts": sums["counts"]}
    score, constant = stats.best_constant(y, **near)
    limits, icc = stats.limits_of_agreement(x, y, **sums), stats.icc(np.column_stack([x, y]), **sums)
    people = None if ratings.raters is None else ratings.raters[chosen]
    row: dict[str, Any] = {
        "n": cells.n,
        "n_clusters": cells.n_clusters,
        "raters": np.nan if people is None else float(np.sum(~np.isnan(people), axis=1).mean()),
        "n_missing": round(float(ratings.counts[chosen].sum())) - cells.n,
        "mean_judge": stats.clustered_mean(x, ends=scale, **how),
        "mean_human": stats.clustered_mean(y, ends=scale, **how),
        "within": stats.within_share(x, y, **near),
        "floor": stats.chance_floor(x, y, **crossed),
        "constant_score": score,
        "constant": constant,
        "over_constant": over_constant(cells, score, tolerance, level),
        "kappa_within": stats.within_kappa(x, y, tolerance=tolerance, **sums),
        **{"within_rounded": NONE, "floor_rounded": np.nan, "constant_rounded": NONE, "kappa_rounded": NONE},
        **{"ceiling": NONE, "exact": NONE},
        "mae": stats.mae(x, y, scale=scale, **how),
        "rmse": stats.rmse(x, y, **how),
        "bias": stats.bias(x, y, **how),
        "slope": stats.slope_on_mean(x, y, **sums),
        "sd": limits.sd,
        "loa_low": limits.low,
        "loa_high": limits.high,
        "outside": limits.outside,
        **_order(ratings, chosen, cells, level, digits),
        "qwk": NONE,
        "icc_agreement": icc["ICC(A,1)"],
        "icc_consistency": icc["ICC(C,1)"],
        "ccc": stats.concordance(x, y, **sums),
        **{"alpha": NONE, "alpha_ordinal": NONE, "alpha_nominal": NONE},
    }
    if scale[1] - scale[0] >= 2:
        j, h = stats.round_half_up(x), stats.round_half_up(y)
        labels = np.arange(np.ceil(scale[0]), np.floor(scale[1]) + 1)
        row["within_rounded"] = stats.within_share(j, h, **near)
        row["floor_rounded"] = stats.chance_floor(j, h, **crossed)
        row["constant_rounded"] = stats.best_constant(h, levels=labels, **near)[1]
        row["kappa_rounded"] = stats.within_kappa(j, h, tolerance=tolerance, **sums)
        row["exact"] = stats.within_share(j, h, **{**near, "tolerance": 0})
        around = float(np.floor(scale[0])), float(np.ceil(scale[1]))
        row["qwk"] = stats.quadratic_kappa(x, y, around, **sums)
    if ratings.raters is not None:
        rows = np.repeat(np.flatnonzero(chosen), ratings.counts[chosen].astype(np.int64))
        grid, of = ratings.raters[rows], None if ratings.cluster is None else ratings.cluster[rows]
        weighed: dict[str, Any] = {"tolerance": tolerance, "weights": ratings.weights[rows], "level": level}
        row["ceiling"] = stats.human_ceiling(grid, of, **weighed)
        for name, metric in (("alpha", "interval"), ("alpha_ordinal", "ordinal"), ("alpha_nominal", "nominal")):
            row[name] = stats.krippendorff_alpha(grid, metric, of, level=level)
    return {
        column: number
        for name, found in row.items()
        for column, number in (spread(name, found) if isinstance(found, Estimate) else {name: found}).items()
    }


def over_constant(cells: Cells, score: float, tolerance: float, level: float) -> Estimate:
    """Return the judge's share less that of a judge that always gives `score`, pair by pair."""
    mine = stats.within(cells.x, cells.y, tolerance)
    theirs = stats.within(np.full(len(cells.y), score), cells.y, tolerance)
    return stats.clustered_mean(mine - theirs, **cells.how, level=level)


def _order(
    ratings: Ratings, chosen: Any, cells: Cells, level: float, digits: int | None
) -> dict[str, Estimate]:
    """Correlations, pooled and within groups."""
    system = ratings.keys.get("system")
    parts: dict[str, tuple[Cells, Any]] = {"": (cells, None)}
    if cells.cluster is not None:
        parts["_within"] = cells, cells.cluster
    if system is not None:
        grouped = cells_of(ratings, chosen & (system.codes >= 0), system.codes)
        parts["_system"] = grouped, grouped.group
    row: dict[str, Estimate] = {}
    for kind in ("pearson", "spearman", "kendall"):
        row |= dict.fromkeys((kind, f"{kind}_within", f"{kind}_system"), NONE)
        for name, (part, within) in parts.items():
            how: dict[str, Any] = {**part.sums, "within": within, "digits": digits, "level": level}
            row[kind + name] = stats.correlation(part.x, part.y, kind, **how)
    return row
