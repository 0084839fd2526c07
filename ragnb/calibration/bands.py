"""Where a judge can be trusted, and whom it favours: agreement by its own score, bias by group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ragnb import stats
from ragnb.calibration.cells import Cells, cells_of, spread
from ragnb.calibration.raters import Array
from ragnb.calibration.ratings import Ratings
from ragnb.stats import Estimate
from ragnb.stats.estimates import NONE, sums_by

LEAST_CLUSTERS = 5
WIDEST = 20  # a scale with more whole labels is cut into ten bands
TOO_FEW = "too few"


def band_of(x: Array, scale: tuple[float, float]) -> tuple[npt.NDArray[np.int64], dict[int, str]]:
    """Return a band a score: the label it rounds to, or a tenth of a scale without labels, and the bands' names.

    Examples
    --------
    >>> band_of(np.array([1.4, 2.5]), (1, 5))
    (array([1, 3]), {1: '1', 3: '3'})
    >>> band_of(np.array([0.05, 1.0]), (0, 1))
    (array([0, 9]), {0: '0–0.1', 9: '0.9–1'})
    """
    low, high = scale
    if 2 <= high - low <= WIDEST:
        code = stats.round_half_up(x).astype(np.int64)
        return code, {int(c): str(int(c)) for c in np.unique(code)}
    step = (high - low) / 10
    code = np.clip(np.floor((x - low) / step + 1e-9), 0, 9).astype(np.int64)
    return code, {int(c): f"{low + c * step:g}–{low + (c + 1) * step:g}" for c in np.unique(code)}


def decided(share: Estimate, target: float) -> tuple[str, float]:
    """Return TRUST, REJECT or NOT PROVEN for a share, and the one-sided p-value in the direction seen."""
    above = stats.p_above(share, target, share=True)
    if np.isnan(above):
        return "NOT PROVEN", np.nan
    return ("TRUST" if above <= 0.5 else "REJECT"), min(above, 1 - above)


def bands(
    cells: Cells, scale: tuple[float, float], tolerance: float, target: float, level: float
) -> list[dict[str, Any]]:
    """Return a row a band of the judge's score, its verdict adjusted by Holm over the bands that have one."""
    code, names = band_of(cells.x, scale)
    rows: list[dict[str, Any]] = []
    for band, name in names.items():
        part = cells.where(code == band)
        how: dict[str, Any] = {**part.how, "level": level}
        share = stats.within_share(part.x, part.y, tolerance=tolerance, **how)
        toward, p = (TOO_FEW, np.nan) if part.n_clusters < LEAST_CLUSTERS else decided(share, target)
        row = {"band": name, "start": float(part.x.min()), "end": float(part.x.max())}
        row |= {"share": share.value, "low": share.low, "high": share.high}
        row |= spread("bias", stats.bias(part.x, part.y, **how))
        rows.append(row | {"n": part.n, "n_clusters": part.n_clusters, "p": p, "verdict": toward})
    for row, p in zip(rows, stats.holm([row["p"] for row in rows]), strict=True):
        proven = row["verdict"] == TOO_FEW or p <= 1 - level
        row |= {"p": float(p), "verdict": row["verdict"] if proven else "NOT PROVEN"}
    return rows


def inflation(ratings: Ratings, chosen: npt.NDArray[np.bool_], cells: Cells, level: float) -> list[dict[str, Any]]:
    """Return a row a group: the bias in it, its interval, and how far it lies from the bias elsewhere."""
    whole = stats.bias(cells.x, cells.y, **cells.how, level=level)
    rows = [_biased("overall", "", whole, NONE)]
    for kind, codes, names in _groupings(ratings, chosen):
        split = cells_of(ratings, chosen & (codes >= 0), codes)
        groups = np.unique(split.group)
        if len(groups) < 2:
            continue
        for group in groups:
            part = split.where(split.group == group)
            found = stats.bias(part.x, part.y, **part.how, level=level)
            rows.append(_biased(kind, names[group], found, _beside(split, split.group == group, level)))
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        for row, p in zip(own, stats.holm([row["p"] for row in own]), strict=True):
            row |= {"p": float(p), "inflated": bool(row["value"] > 0 and p <= 1 - level)}
    return rows


def _biased(kind: str, group: str, found: Estimate, rest: Estimate) -> dict[str, Any]:
    one_sided = stats.p_above(found, 0.0)
    row = {"kind": kind, "group": group, "value": found.value, "low": found.low, "high": found.high}
    row |= spread("beside", rest)
    return row | {"p": 2 * min(one_sided, 1 - one_sided), "n": found.n, "n_clusters": found.n_clusters}


def _beside(cells: Cells, inside: npt.NDArray[np.bool_], level: float) -> Estimate:
    """The bias in the group less the bias outside it, by the jackknife over clusters."""
    gap = cells.x - cells.y
    parts = cells.weights[:, None] * np.column_stack([inside, inside * gap, ~inside, ~inside * gap])
    if cells.cluster is None:
        sums, times = parts, cells.counts
    else:
        code = np.unique(cells.cluster, return_inverse=True)[1]
        sums, times = sums_by(code, cells.counts[:, None] * parts), None

    def gap_of_means(s: Array) -> Array:
        return np.asarray(s[..., 1] / s[..., 0] - s[..., 3] / s[..., 2])

    return stats.jackknife(gap_of_means, sums, sums[:, 0] + sums[:, 2], times=times, level=level)


def _groupings(
    ratings: Ratings, chosen: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, npt.NDArray[np.int64], dict[int, str]]]:
    for name, labels in ratings.groups.items():
        yield name, labels.codes, dict(enumerate(labels.names))
    for name, values in ratings.sizes.items():
        seen = chosen & ratings.both & ~np.isnan(values)
        if not seen.any():
            continue
        low, high = _thirds(values[seen], ratings.counts[seen])
        codes = np.where(np.isnan(values), -1, (values > low).astype(np.int64) + (values > high))
        yield name, codes.astype(np.int64), {0: f"≤ {low:g}", 1: f"{low:g} – {high:g}", 2: f"> {high:g}"}


def _thirds(values: Array, counts: Array) -> tuple[float, float]:
    order = np.argsort(values)
    at = np.searchsorted(np.cumsum(counts[order]), counts.sum() * np.array([1 / 3, 2 / 3]) - 1e-9)
    low, high = values[order][at]
    return float(low), float(high)
