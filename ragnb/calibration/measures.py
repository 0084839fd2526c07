"""How well a judge agrees with humans, one row a measure: every number with its interval, in reading order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.ratings import (
    Asked,
    Cells,
    Flags,
    Missing,
    Names,
    Ratings,
    as_list,
    cells_of,
    open_ratings,
    random_groups,
)
from ragnb.stats import Estimate

MEASURES = (
    "within", "floor", "constant", "constant_score", "over_constant", "ceiling", "within_rounded", "exact",
    "mean_judge", "mean_human", "mae", "bias", "slope", "loa_low", "loa_high", "kendall", "kendall_by_system",
    "qwk", "alpha", "raters", "n_missing",
)  # fmt: skip
"""Every measure, in reading order."""


def agreement(
    ratings: Any,
    *,
    judge: Names = "judge",
    human: Names = "human",
    by: Names | None = "dimension",
    tolerance: float = 1.0,
    scale: tuple[float, float] | None = None,
    cluster: str | None = "cluster",
    level: float = 0.95,
    missing: Missing = None,
    rater: str = "rater",
    digits: int | None = 10,
) -> pd.DataFrame:
    """Return how well a judge agrees with humans, one row a judge, dimension and measure.

    Parameters
    ----------
    ratings : DataFrame
        One row an item and dimension (or one a rater, with ``item_id`` and a `rater` column), of pandas, Polars,
        PyArrow, DuckDB or PySpark; other engines than pandas count judge × human × cluster themselves, and rows
        stay where they are. Scores are numbers on one scale, nan or null where there is none.
    judge : str or sequence of str
        The judge's column; several judges give a block of rows each.
    human : str or sequence of str
        The humans' column. Several columns, ``human1, human2, …`` beside it, or a `rater` column are single
        raters: the human score is their mean (or the column itself, where it is there too), and the ceiling and
        alpha come from them.
    by : str or sequence of str or None
        What gets a row each, such as ``["dimension", "system"]``. Without a ``dimension`` column there is one
        row, ``all``.
    tolerance : float
        In points of the scale.
    scale : (float, float), optional
        The lowest and highest label, such as (1, 10). None takes the whole numbers around what is seen.
    cluster : str or None
        What moves together (a document, a conversation). Absent or None: every row stands alone, which makes
        intervals too narrow wherever that is not so.
    level : float
        Of the intervals, in (0, 1).
    missing : float or sequence of float or "outside", optional
        Marks for an answer that could not be parsed, such as -1; they count as missing. ``"outside"`` declares
        whatever lies outside `scale` such a mark: means over runs that hold a −1 are no ratings.
    rater : str
        The column that names the human of a row, in the long layout.
    digits : int, optional
        Decimals to which correlations round first: means that differ in the last bit are ties. None ranks them
        as they are, as scipy and most papers do; that moves ρ and τ-b in the second or third decimal.

    Returns
    -------
    DataFrame
        ``judge``, the columns of `by`, ``measure, value, low, high, n, n_clusters``; ``low, high`` are missing
        where a measure has no interval. A measure that does not apply has no row. ``attrs["scale"]`` is the scale.

        =====================  ==========================================================================
        ``within``             share within ±tolerance; ``within_rounded`` with both rounded half up
        ``floor``              share of an independent judge with the same scores
        ``constant``           share of the best constant judge, which always answers ``constant_score``
        ``over_constant``      the judge's share less that one's, pair by pair
        ``ceiling``            share of one human against the mean of the others (single raters)
        ``exact``              share of equal scores, both rounded
        ``mae``                mean absolute error
        ``bias``               mean of judge − human, beside ``mean_judge`` and ``mean_human``
        ``loa_low, loa_high``  limits of agreement
        ``slope``              slope of the difference on the mean
        ``qwk``                quadratic weighted kappa over the whole scale
        ``kendall``            Kendall's τ-b of the ratings; ``kendall_by_system`` of the systems' means
        ``alpha``              Krippendorff's α of the humans alone (single raters)
        ``raters``             human ratings an item
        ``n_missing``          rows left out, as a score is missing
        =====================  ==========================================================================

        ``exact, within_rounded`` and ``qwk`` need a scale of 2 points or more.

    Raises
    ------
    RagnbError
        For unknown columns, scores that are text, infinite or outside the scale, an undeclared −1, two scales in
        one frame, and a tolerance as wide as the scale.

    Notes
    -----
    Shares, exact agreement and bias are means by the one clustered estimator, correlations and the rest
    delete-one-cluster jackknives; each formula and its source is in `ragnb.stats`.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 5, 2, 1], "human": [5, 5, 4, 1]})
    >>> found = agreement(frame, scale=(1, 5)).set_index("measure")
    >>> found.loc[["within", "constant", "bias"], "value"].tolist()
    [0.75, 0.75, -0.75]
    """
    asked = Asked(human, by, scale, cluster, missing, rater)
    frames = []
    for name in as_list(judge):
        opened = open_ratings(ratings, name, asked, tolerance)
        for labels, chosen in opened.blocks(asked.keys):
            measures = measured(opened, chosen, cells_of(opened, chosen), tolerance, level, digits)
            frames.append(measure_rows({"judge": name, **labels}, measures))
    frame = pd.concat(frames, ignore_index=True)
    frame.attrs["scale"] = opened.scale
    return frame


def measure_rows(head: dict[str, Any], measures: dict[str, Estimate]) -> pd.DataFrame:
    """Return the rows of one judge and dimension."""
    parts = ("value", "low", "high", "n", "n_clusters")
    rows = [{"measure": name, **{part: getattr(one, part) for part in parts}} for name, one in measures.items()]
    return pd.DataFrame([head | row for row in rows])


def measured(
    ratings: Ratings, chosen: Flags, cells: Cells, tolerance: float, level: float, digits: int | None = 10
) -> dict[str, Estimate]:
    """Return every measure of one judge on one dimension that applies, by name."""
    x, y, scale = cells.x, cells.y, ratings.scale
    how: dict[str, Any] = {**cells.how, "level": level}
    sums: dict[str, Any] = {**cells.sums, "level": level}
    score, constant = stats.best_constant(y, tolerance=tolerance, **how)

    def plain(value: float) -> Estimate:
        return Estimate(value, np.nan, np.nan, np.nan, cells.n, cells.n_clusters)

    low, high = stats.limits_of_agreement(x, y, **sums)
    found = {
        "within": stats.within_share(x, y, tolerance=tolerance, **how),
        "floor": plain(stats.chance_floor(x, y, tolerance=tolerance, counts=sums["counts"])),
        "constant": constant,
        "constant_score": plain(score),
        "over_constant": over_constant(cells, score, tolerance, level),
        "mean_judge": stats.clustered_mean(x, ends=scale, **how),
        "mean_human": stats.clustered_mean(y, ends=scale, **how),
        "mae": stats.mae(x, y, scale=scale, **how),
        "bias": stats.bias(x, y, **how),
        "loa_low": low,
        "loa_high": high,
        "slope": stats.slope_on_mean(x, y, **sums),
        "kendall": stats.kendall(x, y, digits=digits, **sums),
        "n_missing": plain(round(float(ratings.counts[chosen].sum())) - cells.n),
    }
    if scale[1] - scale[0] >= 2:
        rounded = stats.round_half_up(x), stats.round_half_up(y)
        found["within_rounded"] = stats.within_share(*rounded, tolerance=tolerance, **how)
        found["exact"] = stats.within_share(*rounded, tolerance=0, **how)
        found["qwk"] = stats.quadratic_kappa(x, y, (np.floor(scale[0]), np.ceil(scale[1])), **sums)
    system = ratings.keys.get("system")
    if system is not None and len(np.unique(system.codes[chosen & ratings.both])) > 1:
        own = random_groups(cells_of(ratings, chosen & (system.codes >= 0), system.codes), seed=0)
        found["kendall_by_system"] = stats.kendall_of_means(own.x, own.y, own.group, **own.sums, level=level)
    if ratings.raters is not None:
        rows = np.repeat(np.flatnonzero(chosen), ratings.counts[chosen].astype(np.int64))
        grid, of = ratings.raters[rows], None if ratings.cluster is None else ratings.cluster[rows]
        found["raters"] = plain(float(np.sum(~np.isnan(ratings.raters[chosen]), axis=1).mean()))
        weights = ratings.weights[rows]
        found["ceiling"] = stats.human_ceiling(grid, of, tolerance=tolerance, weights=weights, level=level)
        found["alpha"] = stats.krippendorff_alpha(grid, of, level=level)
    return {name: found[name] for name in MEASURES if name in found}


def over_constant(cells: Cells, score: float, tolerance: float, level: float) -> Estimate:
    """Return the judge's share less that of a judge that always gives `score`, pair by pair."""
    mine = stats.within(cells.x, cells.y, tolerance)
    theirs = stats.within(np.full(len(cells.y), score), cells.y, tolerance)
    return stats.clustered_mean(mine - theirs, **cells.how, level=level)
