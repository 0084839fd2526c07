"""How well a judge agrees with humans, one row a dimension: every number with its interval, in reading order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ragnb.calibration.measures import measure
from ragnb.calibration.raters import Asked, Missing, Names, as_list
from ragnb.calibration.ratings import Ratings, open_ratings
from ragnb.errors import RagnbError

ALL = "all"


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
    """Return how well a judge agrees with humans, one row a judge and dimension.

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
        ``judge``, the columns of `by`, then, with ``_low`` and ``_high`` beside each that has an interval:
        ``n, n_clusters, raters`` (ratings an item), ``n_missing``; ``mean_judge, mean_human``; ``within`` (share
        within ±tolerance), ``floor`` (of an independent judge), ``constant_score, constant`` (the best constant
        judge), ``over_constant`` (their paired difference), ``kappa_within``; the same of values rounded half up
        as ``within_rounded, floor_rounded, constant_rounded, kappa_rounded``; ``ceiling`` (one human against the
        others); ``exact`` (rounded), ``mae, rmse, bias`` (judge − human), ``slope`` (of the difference on the
        mean), ``sd, loa_low, loa_high`` (limits of agreement), ``outside``; ``pearson, spearman, kendall``
        pooled, ``…_within`` clusters, ``…_system`` within systems; ``qwk`` (quadratic kappa over the whole
        scale), ``icc_agreement`` ICC(A,1), ``icc_consistency`` ICC(C,1), ``ccc`` (Lin); ``alpha, alpha_ordinal,
        alpha_nominal`` (Krippendorff, of the humans alone). ``attrs["scale"]`` is the scale. Rounded values and
        ``qwk`` are nan on a scale narrower than 2.

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
    >>> agreement(frame, scale=(1, 5))[["dimension", "n", "within", "constant", "bias"]]
      dimension  n  within  constant  bias
    0       all  4    0.75      0.75 -0.75
    """
    asked = Asked(human, by, scale, cluster, missing, rater)
    rows = []
    for name in as_list(judge):
        opened = open_ratings(ratings, name, asked)
        check_tolerance(tolerance, opened)
        for labels, chosen in blocks(opened, asked.keys):
            rows.append({"judge": name, **labels, **measure(opened, chosen, tolerance, level, digits)})
    frame = pd.DataFrame(rows)
    frame.attrs["scale"] = opened.scale
    return frame


def check_tolerance(tolerance: float, ratings: Ratings) -> None:
    """Refuse a tolerance that cannot tell a good judge from a bad one on this scale."""
    low, high = ratings.scale
    if not 0 <= tolerance < high - low:
        raise RagnbError(
            f"tolerance={tolerance:g} on a scale of {low:g}..{high:g}: every score lies within it; give points of "
            f"the scale, such as {(high - low) / 10:g}"
        )


def blocks(ratings: Ratings, keys: Sequence[str]) -> list[tuple[dict[str, str], Any]]:
    """Return the labels and the rows of every block that `keys` make, in the labels' order; empty ones not."""
    have = [key for key in keys if key in ratings.keys]
    found = []
    for codes in product(*(range(-1, len(ratings.keys[key].names)) for key in have)):
        chosen = np.ones(len(ratings.x), dtype=bool)
        for key, code in zip(have, codes, strict=True):
            chosen &= ratings.keys[key].codes == code
        if chosen.any():
            words = {k: ratings.keys[k].names[c] if c >= 0 else "" for k, c in zip(have, codes, strict=True)}
            found.append(({key: words.get(key, ALL) for key in keys}, chosen))
    return found
