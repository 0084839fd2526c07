"""The frames of one judge on one dimension, ready for the card and for charts: where to trust it, whom it favours,
what its scores mean in the humans' points, and what more labels would buy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.corrected import DRAW, WAYS, corrected_mean, corrected_ways
from ragnb.calibration.ratings import (
    ALL,
    PROBABILITY,
    Asked,
    Cells,
    Codes,
    Flags,
    Ratings,
    cells_of,
    columns_of,
    random_groups,
    scores_of,
    with_ends,
)
from ragnb.stats import Estimate
from ragnb.stats.estimates import NONE, sums_by
from ragnb.stats.means import Array
from ragnb.weights import nfc

LEAST_CLUSTERS = 5
WIDEST = 20  # a scale with more whole labels is cut into ten bands
TOO_FEW = "too few"
MOST_POINTS = 20
MOST_CELLS = 5000
MAP_COLUMNS = ["map", "mae", "mae_low", "mae_high", "share", "low", "high", "gain", "gain_low", "gain_high"]
MAP_COLUMNS += ["helps", "passes"]


@dataclass(frozen=True)
class Settings:
    """What a verdict is asked with."""

    tolerance: float
    target: float
    delta: float | None
    level: float
    resamples: int
    seed: int
    lang: str

    def acceptable_bias(self, scale: tuple[float, float]) -> float:
        """Return the acceptable bias: the one asked for, else 1/18 of the scale."""
        return (scale[1] - scale[0]) / 18 if self.delta is None else self.delta


def frames_of(ratings: Ratings, chosen: Flags, cells: Cells, settings: Settings) -> dict[str, pd.DataFrame]:
    """Return the frames that rest on one judge's cells on one dimension."""
    maps = recalibration(cells, ratings.scale, settings)
    return {
        "bands": pd.DataFrame(bands(cells, ratings.scale, settings)),
        "inflation": pd.DataFrame(inflation(ratings, chosen, cells, settings.level)),
        "recalibration": pd.DataFrame(maps, columns=MAP_COLUMNS),
        "counts": counted(cells, ratings.scale),
        "reliability": reliability(cells, ratings.scale, settings),
        "budget": budget(cells, settings),
    }


def band_of(x: Array, scale: tuple[float, float]) -> tuple[Codes, dict[int, str]]:
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


def bands(cells: Cells, scale: tuple[float, float], settings: Settings) -> list[dict[str, Any]]:
    """Return a row a band of the judge's score, its verdict adjusted by Holm over the bands that have one."""
    code, names = band_of(cells.x, scale)
    rows = []
    for band, name in names.items():
        part = cells.where(code == band)
        how: dict[str, Any] = {**part.how, "level": settings.level}
        share = stats.within_share(part.x, part.y, tolerance=settings.tolerance, **how)
        above = stats.p_above(share, settings.target, share=True) if part.n_clusters >= LEAST_CLUSTERS else np.nan
        row: dict[str, Any] = {"band": name, "start": float(part.x.min()), "end": float(part.x.max())}
        row |= {"share": share.value, "low": share.low, "high": share.high}
        row |= with_ends("bias", stats.bias(part.x, part.y, **how))
        row |= {"n": part.n, "n_clusters": part.n_clusters, "p": min(above, 1 - above)}
        rows.append(row | {"verdict": "TRUST" if above <= 0.5 else "REJECT"})
    for row, p in zip(rows, stats.holm([row["p"] for row in rows]), strict=True):
        proven = row["verdict"] if p <= 1 - settings.level else "NOT PROVEN"
        row |= {"p": float(p), "verdict": proven if row["n_clusters"] >= LEAST_CLUSTERS else TOO_FEW}
    return rows


def inflation(ratings: Ratings, chosen: Flags, cells: Cells, level: float) -> list[dict[str, Any]]:
    """Return a row a group: the bias in it, its interval, and how far it lies from the bias elsewhere."""
    rows = [_biased("overall", "", cells, NONE, level)]
    for kind, codes, names in _groupings(ratings, chosen):
        split = cells_of(ratings, chosen & (codes >= 0), codes)
        groups = np.unique(split.group)
        for group in groups if len(groups) > 1 else []:
            inside = split.group == group
            rows.append(_biased(kind, names[group], split.where(inside), _beside(split, inside, level), level))
    for kind in dict.fromkeys(row["kind"] for row in rows):
        same = [row for row in rows if row["kind"] == kind]
        for row, p in zip(same, stats.holm([row["p"] for row in same]), strict=True):
            row |= {"p": float(p), "inflated": bool(row["value"] > 0 and p <= 1 - level)}
    return rows


def _biased(kind: str, group: str, cells: Cells, rest: Estimate, level: float) -> dict[str, Any]:
    bias = stats.bias(cells.x, cells.y, **cells.how, level=level)
    one_sided = stats.p_above(bias, 0.0)
    row = {"kind": kind, "group": group, "value": bias.value, "low": bias.low, "high": bias.high}
    row |= with_ends("beside", rest)
    return row | {"p": 2 * min(one_sided, 1 - one_sided), "n": bias.n, "n_clusters": bias.n_clusters}


def _beside(cells: Cells, inside: Flags, level: float) -> Estimate:
    """Return the bias in the group less the bias outside it, by the jackknife over clusters."""
    gap = cells.x - cells.y
    parts, times = cells.weights[:, None] * np.column_stack([inside, inside * gap, ~inside, ~inside * gap]), None
    if cells.cluster is None:
        times = cells.counts
    else:
        code = np.unique(cells.cluster, return_inverse=True)[1]
        parts = sums_by(code, cells.counts[:, None] * parts)

    def gap_of_means(s: Array) -> Array:
        return np.asarray(s[..., 1] / s[..., 0] - s[..., 3] / s[..., 2])

    return stats.jackknife(gap_of_means, parts, parts[:, 0] + parts[:, 2], times=times, level=level)


def _groupings(ratings: Ratings, chosen: Flags) -> Iterator[tuple[str, Codes, dict[int, str]]]:
    """Yield each column by which bias is looked at: its name, its groups as codes, their names."""
    for name, labels in ratings.groups.items():
        yield name, labels.codes, dict(enumerate(labels.names))
    for name, values in ratings.sizes.items():
        seen = chosen & ratings.both & ~np.isnan(values)
        if not seen.any():
            continue
        order = np.argsort(values[seen])
        upto, total = np.cumsum(ratings.counts[seen][order]), ratings.counts[seen].sum()
        low, high = values[seen][order][np.searchsorted(upto, total * np.array([1 / 3, 2 / 3]) - 1e-9)]
        codes = np.where(np.isnan(values), -1, (values > low).astype(np.int64) + (values > high))
        yield name, codes.astype(np.int64), {0: f"≤ {low:g}", 1: f"{low:g} – {high:g}", 2: f"> {high:g}"}


def recalibration(cells: Cells, scale: tuple[float, float], settings: Settings) -> list[dict[str, Any]]:
    """Return raw scores, a constant, a line and a rising curve side by side, each judged out of fold."""
    target, level, delta = settings.target, settings.level, settings.acceptable_bias(scale)
    own = cells if cells.cluster is not None else random_groups(cells, settings.seed)
    if own.n_clusters < 2:
        return []
    how: dict[str, Any] = {**own.how, "tolerance": settings.tolerance}
    maps = stats.recalibrate(own.x, own.y, level=level, **how)
    rows = []
    for name, part in maps.items():
        low = stats.within_share(part.predicted, own.y, level=2 * level - 1, **how).low
        passes = part.helps and low >= target and part.within.value > maps["constant"].within.value
        passes = bool(passes and part.bias.low >= -delta and part.bias.high <= delta)
        row = {"map": name, **with_ends("mae", part.mae), "share": part.within.value}
        row |= {"low": part.within.low, "high": part.within.high}
        row |= with_ends("gain", part.gain if name in stats.MAPS else NONE)
        rows.append(row | {"helps": part.helps, "passes": passes})
    return rows


def reliability(cells: Cells, scale: tuple[float, float], settings: Settings) -> pd.DataFrame:
    """Return E[human | judge] at each score with its interval, and the isotonic map with a bootstrap band.

    A point is a score of the judge, or one of twenty equal parts of the ratings.
    """
    values, place = np.unique(np.round(cells.x, 9), return_inverse=True)
    if len(values) > MOST_POINTS:
        before = np.cumsum(np.bincount(place, weights=cells.counts))
        part_of = np.floor((before - 1e-9) / before[-1] * MOST_POINTS).astype(np.int64)
        place = np.unique(part_of, return_inverse=True)[1][place]
    rows = []
    for k in range(int(place.max(initial=-1)) + 1):
        part = cells.where(place == k)
        mean = stats.clustered_mean(part.y, **part.how, ends=scale, level=settings.level)
        score = float(np.average(part.x, weights=part.sums["counts"]))
        rows.append((score, mean.value, mean.low, mean.high, mean.n, mean.n_clusters))
    frame = pd.DataFrame(rows, columns=["judge_score", "human", "low", "high", "n", "n_clusters"])
    human = frame["human"].to_numpy()
    weights = np.bincount(place, weights=cells.sums["counts"]).astype(float)
    low, high = _isotonic_band(cells, place, human, weights, settings)
    curves = {"isotonic": rising(human[None, :], weights)[0], "isotonic_low": low, "isotonic_high": high}
    for at, (name, curve) in enumerate(curves.items(), 4):
        frame.insert(at, name, curve)
    return frame


def rising(means: Array, weights: Array) -> Array:
    """Return the weighted isotonic fit of each row.

    Examples
    --------
    >>> rising(np.array([[1.0, 3.0, 2.0]]), np.ones(3)).tolist()
    [[1.0, 2.5, 2.5]]
    """
    from scipy.optimize import isotonic_regression

    return np.array([isotonic_regression(row, weights=weights).x for row in means])


def _isotonic_band(
    cells: Cells, place: Codes, human: Array, weights: Array, settings: Settings
) -> tuple[Array, Array]:
    """Return percentiles of the isotonic fit when clusters are drawn again; nan with one cluster."""
    k, level = len(human), settings.level
    own = random_groups(replace(cells, group=place), settings.seed)
    units = own.n_clusters
    if units < 2 or settings.resamples < 1 or own.cluster is None:
        return np.full(k, np.nan), np.full(k, np.nan)
    key, rows = own.cluster * k + own.group, own.sums["counts"]
    parts = (np.bincount(key, w, minlength=units * k) for w in (rows, rows * own.y))
    size, sums = (part.reshape(units, k).astype(float) for part in parts)
    drawn: dict[str, Any] = {"resamples": settings.resamples, "seed": settings.seed}
    means = stats.resampled_means(np.ones(units, dtype=np.int64), size, sums, np.zeros_like(size), **drawn)
    curves = rising(np.where(np.isnan(means), human, means), weights)
    low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.asarray(low), np.asarray(high)


def counted(cells: Cells, scale: tuple[float, float]) -> pd.DataFrame:
    """Return judge × human cells and their counts; ``attrs["step"]`` is what scores were rounded to, or 0."""
    step, x, y = 0.0, cells.x, cells.y
    if len(np.unique(np.column_stack([x, y]), axis=0)) > MOST_CELLS:
        step = (scale[1] - scale[0]) / 100
        x, y = (np.round((v - scale[0]) / step) * step + scale[0] for v in (x, y))
    frame = pd.DataFrame({"judge_score": x, "human_score": y, "n": cells.counts.astype(np.int64)})
    frame = frame.groupby(["judge_score", "human_score"], as_index=False)[["n"]].sum()
    frame.attrs["step"] = step
    return frame


def budget(cells: Cells, settings: Settings) -> pd.DataFrame:
    """Return a curve: with so many labels, so wide an interval, and so good a chance to show the target.

    ``labels``; ``share``, as seen now, and its ``low, high, half_width`` expected at so many labels;
    ``probability`` of showing the target, were the seen share the true one, and ``cautious``, were its lower 80 %
    bound; ``target``; ``n`` labels now.
    """
    flags, level = stats.within(cells.x, cells.y, settings.tolerance), settings.level
    curve = stats.label_budget(flags, **cells.how, target=settings.target, alpha=1 - level, level=level)
    frame = pd.DataFrame(curve).astype({"labels": int})
    frame.insert(1, "share", float(np.average(flags, weights=cells.sums["counts"])))
    frame.insert(4, "half_width", (frame["high"] - frame["low"]) / 2)
    return frame.assign(target=settings.target, n=cells.n)


def corrected(
    ratings: Ratings, chosen: Flags, more: pd.DataFrame | None, settings: Settings
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the mean by the judge alone, by the humans alone, and corrected: of all, and of each system.

    Beside it: whether the labels of all look like a random draw, as `corrected_mean` tells it.
    """
    parts = [("", chosen, more)]
    system = ratings.keys.get("system")
    if system is not None and len(np.unique(system.codes[chosen])) > 1:
        for code, name in enumerate(system.names):
            known = None if more is None or "system" not in more else more[more["system"].map(nfc) == name]
            parts.append((name, chosen & (system.codes == code), known))
    frames, draws = [], []
    for name, rows, extra in parts:
        if (rows & ratings.both).any():
            ways, draw = _ways(ratings, rows, extra, settings)
            ways.insert(0, "system", name)
            frames.append(ways)
            draws.append(draw)
    return pd.concat(frames, ignore_index=True), draws[0]


def _ways(
    ratings: Ratings, chosen: Flags, more: pd.DataFrame | None, settings: Settings
) -> tuple[pd.DataFrame, dict[str, float]]:
    if more is None and not (chosen & np.isnan(ratings.y) & ~np.isnan(ratings.x)).any():
        # Where humans rated all that the judge did, their mean needs no correction.
        cells = cells_of(ratings, chosen)
        counts = {"weight": 0.0, "n": cells.n, "n_judged": 0, "n_clusters": cells.n_clusters}
        how: dict[str, Any] = {**cells.how, "ends": ratings.scale, "level": settings.level}
        rows = []
        for way, values in zip(WAYS, (cells.x, cells.y, cells.y), strict=True):
            mean = stats.clustered_mean(values, **how)
            rows.append({"way": way, "value": mean.value, "low": mean.low, "high": mean.high, **counts})
        return pd.DataFrame(rows), dict.fromkeys(DRAW, np.nan)
    at = np.repeat(np.flatnonzero(chosen), ratings.counts[chosen].astype(np.int64))
    frame = pd.DataFrame({"judge": ratings.x[at], "human": ratings.y[at]})
    frame[PROBABILITY] = ratings.weights.min() / ratings.weights[at]
    if ratings.cluster is not None and ratings.cluster_names:
        codes = ratings.cluster[at]
        frame["cluster"] = codes if more is None else np.asarray(ratings.cluster_names, dtype=object)[codes]
    means = corrected_mean(
        frame, judged=more, by=None, scale=ratings.scale, level=settings.level, lang=settings.lang
    )
    return corrected_ways(means), dict(zip(DRAW, means[list(DRAW)].to_numpy(dtype=float)[0], strict=True))


def judged_rows(judged: Any, judge: str, asked: Asked) -> pd.DataFrame:
    """Return a judge's further rows: ``judge, dimension``, and ``cluster, system`` where they are known."""
    have = columns_of(judged)
    names = {name: "dimension" for name in asked.keys[:1] if name in have}
    cluster = asked.cluster if asked.cluster in have else None
    alone = replace(asked, human=(), by=list(names), cluster=cluster, groups=())
    scores = scores_of(judged, judge, alone, rows=True, where="judged: ")
    names |= {} if cluster is None else {cluster: "cluster"}
    names |= {"system": "system"} if "system" in have and "system" not in names else {}
    found = scores.table[list(names)].rename(columns=names).assign(judge=scores.x)
    if "cluster" in found:
        found["cluster"] = found["cluster"].map(nfc)
    return found if "dimension" in found else found.assign(dimension=ALL)
