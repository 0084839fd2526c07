"""One number for both closeness and order: Lin's concordance, quadratic weighted kappa, intraclass correlation."""

from __future__ import annotations

from functools import partial

import numpy as np

from ragnb.errors import RagnbError
from ragnb.stats.agreement import round_half_up
from ragnb.stats.closeness import second_moments
from ragnb.stats.estimates import Counts, Estimate, Labels, Values, jackknife, t_interval
from ragnb.stats.means import Array
from ragnb.stats.tally import tallied


def _concordance(s: Array) -> Array:
    _, mx, my, vx, vy, cov = second_moments(s)
    ccc: Array = 2 * cov / (vx + vy + (mx - my) ** 2)
    return ccc


def concordance(
    judge: Values, human: Values, clusters: Labels = None, *, counts: Counts = None, level: float = 0.95
) -> Estimate:
    """Return Lin's concordance correlation 2·cov/(var j + var h + (mean j − mean h)²), variances with divisor n.

    Correlation times how close the line lies to the diagonal. Without clusters the interval is Lin's, on
    Fisher's z, for independent rows; with clusters it is the jackknife's. nan where both never vary.

    Notes
    -----
    Lin (1989), Biometrics 45, 255–268, with the correction of 2000, Biometrics 56, 324–325.

    Examples
    --------
    >>> round(concordance([1, 2, 3, 4], [2, 3, 4, 5]).value, 4)
    0.7143
    """
    t = tallied(judge, human, clusters, counts)
    found = t.of_moments(_concordance, bounded=True, level=level)
    if clusters is not None or found.n < 3 or not abs(found.value) < 1:
        return found
    with np.errstate(divide="ignore", invalid="ignore"):
        n, mx, my, vx, vy, cov = (np.float64(part) for part in second_moments(t.times @ t.moments()))
        r2, c = cov**2 / (vx * vy), np.float64(found.value)
        u2 = (mx - my) ** 2 / np.sqrt(vx * vy)
        r = np.sign(cov) * np.sqrt(r2)
        variance = (1 - r2) * c**2 / ((1 - c**2) * r2) + 2 * c**3 * (1 - c) * u2 / (r * (1 - c**2) ** 2)
        variance -= c**4 * u2**2 / (2 * r2 * (1 - c**2) ** 2)
        se = float(np.sqrt(variance / (n - 2))) * (1 - float(c) ** 2)
    low, high = t_interval(found.value, se, np.inf, level, bounded=True)
    return Estimate(found.value, low, high, se, found.n, found.n_clusters)


def quadratic_kappa(
    judge: Values,
    human: Values,
    scale: tuple[float, float],
    clusters: Labels = None,
    *,
    counts: Counts = None,
    level: float = 0.95,
) -> Estimate:
    """Return the quadratic weighted kappa of both, rounded half up, over the full label range.

    Weights are distances between labels, so a label that nobody gave changes nothing; that makes this kappa
    Lin's concordance of the rounded values, and gives it that jackknife interval. Rounded values outside the
    scale raise RagnbError.

    Notes
    -----
    Cohen (1968), Psychol. Bull. 70, 213–220; the identity is King and Chinchilli's (2001), Stat. Med. 20.

    Examples
    --------
    >>> human, judge = [1, 1, 2, 2, 9, 9, 10, 10, 2, 9], [1, 2, 2, 9, 9, 10, 10, 10, 1, 9]
    >>> round(quadratic_kappa(judge, human, (1, 10)).value, 4)
    0.836
    """
    x, y = round_half_up(judge), round_half_up(human)
    for name, values in (("judge", x), ("human", y)):
        outside = values[(values < scale[0]) | (values > scale[1])]
        if len(outside):
            raise RagnbError(f"{name} holds {outside[0]:g}, outside scale={scale}; give the scale the raters used")
    return tallied(x, y, clusters, counts).of_moments(_concordance, bounded=True, level=level)


def _squares(s: Array) -> tuple[Array, Array, Array, Array, int]:
    """Mean squares of rows, columns and error, n and k, from sums of (1, row², all², each column)."""
    k = s.shape[-1] - 3
    n, columns = s[..., 0], s[..., 3:]
    middle = columns.sum(axis=-1) ** 2 / (n * k)
    rows = s[..., 1] / k - middle
    between = np.sum(columns**2, axis=-1) / n - middle
    inside = s[..., 2] - s[..., 1] / k
    msr, msc = rows / (n - 1), between / (k - 1)
    return msr, msc, np.maximum(inside - between, 0.0) / ((n - 1) * (k - 1)), n, k


def _icc(s: Array, form: str) -> Array:
    msr, msc, mse, n, k = _squares(s)
    bottom = msr + (k - 1) * mse + (k / n * (msc - mse) if form == "ICC(A,1)" else 0.0)
    return np.asarray(np.where(bottom > 0, (msr - mse) / bottom, np.nan), dtype=float)


def _f_limits(s: Array, form: str, level: float) -> tuple[float, float]:
    """Limits of an ICC for independent items, from the F distribution."""
    from scipy.special import fdtri

    msr, msc, mse, n, k = _squares(s)
    p = 0.5 + level / 2
    if form == "ICC(C,1)":
        df = (n - 1) * (k - 1)
        low, high = msr / mse / fdtri(n - 1, df, p), msr / mse * fdtri(df, n - 1, p)
        return float((low - 1) / (low + k - 1)), float((high - 1) / (high + k - 1))
    rho = float(_icc(s, form))
    raters, noise = k * rho * msc, (n * (1 + (k - 1) * rho) - k * rho) * mse
    v = (n - 1) * (k - 1) * (raters + noise) ** 2 / ((n - 1) * raters**2 + noise**2)
    under, over = fdtri(n - 1, v, p), fdtri(v, n - 1, p)
    spread = k * msc + (k * n - k - n) * mse
    with np.errstate(invalid="ignore"):  # v near 0 has no finite quantile: no limit
        low = n * (msr - under * mse) / (under * spread + n * msr)
        high = n * (over * msr - mse) / (spread + n * over * msr)
    return float(low), float(high)


def icc(
    ratings: Values, clusters: Labels = None, *, counts: Counts = None, level: float = 0.95
) -> dict[str, Estimate]:
    """Return two intraclass correlations of complete items × raters, in McGraw and Wong's names.

    ICC(A,1) counts a rater's constant bias as disagreement, ICC(C,1) does not: their gap is the bias that a
    constant would remove.

    Parameters
    ----------
    ratings : array, shape (items, raters ≥ 2)
        Judge and human side by side, or several humans. Items with a nan are left out.
    clusters : array, shape (items,), optional
        Without clusters the intervals are those of the F distribution, for independent items; with clusters
        the jackknife's, on Fisher's z.

    Notes
    -----
    Shrout and Fleiss (1979), Psychol. Bull. 86, 420–428: ICC(A,1) and ICC(C,1) are their (2,1) and (3,1);
    McGraw and Wong (1996), Psychol. Methods 1, 30–46.

    Examples
    --------
    >>> judges = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    >>> {form: round(found.value, 2) for form, found in icc(judges).items()}
    {'ICC(A,1)': 0.29, 'ICC(C,1)': 0.71}
    """
    grid = np.asarray(ratings, dtype=float)
    if grid.ndim != 2 or grid.shape[1] < 2:
        raise RagnbError(f"ratings has shape {grid.shape}; give items × raters with two raters or more")
    total, k = grid.sum(axis=1), grid.shape[1]
    t = tallied(total, total, clusters, counts)
    grid, total = grid[~np.isnan(total)], t.x
    centre = float(t.counts @ total / t.counts.sum() / k) if len(grid) else 0.0
    grid, total = grid - centre, total - k * centre
    sums = t.sums([np.ones(len(grid)), total**2, np.sum(grid**2, axis=1), *grid.T])
    found = {}
    for form in ("ICC(A,1)", "ICC(C,1)"):
        one = jackknife(partial(_icc, form=form), sums, sums[:, 0], times=t.times, bounded=True, level=level)
        if clusters is None and np.isfinite(one.value) and one.value < 1:
            low, high = _f_limits(t.times @ sums, form, level)
            one = Estimate(one.value, low, high, one.se, one.n, one.n_clusters)
        found[form] = one
    return found
