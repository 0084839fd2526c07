"""Agreement of a judge with human labels: one row per measure, each with its interval; and the frames of a card,
which say where to trust it, whom it favours, what its scores mean in the humans' points, what more labels buy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.ratings import (
    Asked,
    Cells,
    Codes,
    Missing,
    Names,
    as_list,
    blocks,
    cells_of,
    open_ratings,
    random_groups,
    with_ends,
)
from ragnb.stats import Estimate
from ragnb.stats.estimates import NONE, complete_rows, ratio
from ragnb.stats.means import Array

LEAST_CLUSTERS = 5
WIDEST = 20  # a scale with more whole labels is cut into ten bands
MOST_POINTS = 20
MOST_CELLS = 5000
MAP_COLUMNS = ["map", "mae", "mae_low", "mae_high", "share", "low", "high", "gain", "gain_low", "gain_high"]
MAP_COLUMNS += ["helps", "passes"]
MEASURES = (
    "within", "floor", "constant", "constant_score", "over_constant", "ceiling", "within_rounded", "exact",
    "mean_judge", "mean_human", "mae", "bias", "slope", "loa_low", "loa_high", "kendall", "kendall_by_system",
    "qwk", "alpha", "raters", "n_missing",
)  # fmt: skip
"""Every measure, in reading order."""


def agreement(
    ratings: Any, *, judge: Names = "judge", human: Names = "human", by: Names | None = "dimension",
    tolerance: float = 1.0, scale: tuple[float, float] | None = None, cluster: str | None = "cluster",
    level: float = 0.95, missing: Missing = None, rater: str = "rater", digits: int | None = 10,
) -> pd.DataFrame:  # fmt: skip
    """Return how well a judge agrees with humans, one row per judge, dimension and measure.

    Parameters
    ----------
    ratings : DataFrame
        One row per item and dimension (or one a rater, with ``item_id`` and a `rater` column), of pandas, Polars,
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
        The column of clusters (documents, conversations). Absent or None: every row stands alone, which makes
        intervals too narrow wherever that is not so.
    level : float
        Of the intervals, in (0, 1).
    missing : float or sequence of float or "outside", optional
        Marks for an answer that could not be parsed, such as -1; they count as missing. ``"outside"`` declares
        whatever is outside `scale` such a mark: means over runs that hold a −1 are no ratings.
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
        ``raters``             human ratings per item
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
    >>> table = agreement(frame, scale=(1, 5)).set_index("measure")
    >>> table.loc[["within", "constant", "bias"], "value"].tolist()
    [0.75, 0.75, -0.75]
    """
    asked = Asked(human, by, scale, cluster, missing, rater, tolerance=tolerance, level=level, digits=digits)
    frames = []
    for name in as_list(judge):
        table, opened = open_ratings(ratings, name, asked)
        for labels, rows in blocks(table, opened):
            frames.append(measure_rows({"judge": name, **labels}, measured(rows, cells_of(rows), opened)))
    frame = pd.concat(frames, ignore_index=True)
    frame.attrs["scale"] = opened.scale
    return frame


def measure_rows(head: dict[str, Any], measures: dict[str, Estimate]) -> pd.DataFrame:
    """Return the rows of one judge and dimension."""
    parts = ("value", "low", "high", "n", "n_clusters")
    rows = [{"measure": name, **{part: getattr(one, part) for part in parts}} for name, one in measures.items()]
    return pd.DataFrame([head | row for row in rows])


def measured(rows: pd.DataFrame, cells: Cells, asked: Asked) -> dict[str, Estimate]:
    """Return every measure of one judge on one dimension that applies, by name."""
    x, y, scale = cells.judge, cells.human, asked.ends
    how: dict[str, Any] = {**cells.how, "level": asked.level}
    sums: dict[str, Any] = {**cells.sums, "level": asked.level}
    near: dict[str, Any] = {**how, "tolerance": asked.tolerance}

    def plain(value: float) -> Estimate:
        return Estimate(value, np.nan, np.nan, np.nan, cells.n, cells.n_clusters)

    score, constant = stats.best_constant(y, **near)
    low, high = stats.limits_of_agreement(x, y, **sums)
    measures = {
        "within": cells.share(asked.tolerance, level=asked.level),
        "floor": plain(stats.chance_floor(x, y, tolerance=asked.tolerance, counts=sums["counts"])),
        "constant": constant,
        "constant_score": plain(score),
        "over_constant": over_constant(cells, score, asked.tolerance, level=asked.level),
        "mean_judge": stats.clustered_mean(x, ends=scale, **how),
        "mean_human": stats.clustered_mean(y, ends=scale, **how),
        "mae": stats.mae(x, y, scale=scale, **how),
        "bias": cells.bias(level=asked.level),
        "loa_low": low,
        "loa_high": high,
        "slope": stats.slope_on_mean(x, y, **sums),
        "kendall": stats.kendall(x, y, digits=asked.digits, **sums),
        "n_missing": plain(round(float(rows["count"].sum())) - cells.n),
    }
    if scale[1] - scale[0] >= 2:
        rounded = stats.round_half_up(x), stats.round_half_up(y)
        measures["within_rounded"] = stats.within_share(*rounded, **near)
        measures["exact"] = stats.within_share(*rounded, **near | {"tolerance": 0})
        measures["qwk"] = stats.quadratic_kappa(x, y, (np.floor(scale[0]), np.ceil(scale[1])), **sums)
    if ":system" in rows:
        few = random_groups(cells_of(rows[rows[":system"] != ""], rows[":system"].cat.codes), seed=0)
        scores, system = (few.judge, few.human), few.group
        if len(np.unique(system)) > 1:
            measures["kendall_by_system"] = stats.kendall_of_means(*scores, system, **few.sums, level=asked.level)
    if "rater0" in rows:
        rows = rows.loc[rows.index.repeat(rows["count"].astype(int))]
        grid = rows.filter(regex="^rater").to_numpy()
        of = None if cells.cluster is None else rows["cluster"]
        measures["raters"] = plain(float(np.sum(~np.isnan(grid), axis=1).mean()))
        ceiling: dict[str, Any] = {"tolerance": asked.tolerance, "weights": rows["weight"], "level": asked.level}
        measures["ceiling"] = stats.human_ceiling(grid, of, **ceiling)
        measures["alpha"] = stats.krippendorff_alpha(grid, of, level=asked.level)
    return {name: measures[name] for name in MEASURES if name in measures}


def over_constant(cells: Cells, score: float, tolerance: float, **options: Any) -> Estimate:
    """Return the paired difference between the judge's agreement and that of a constant `score`."""
    theirs = stats.within(np.full(len(cells.human), score), cells.human, tolerance)
    return stats.clustered_mean(cells.flags(tolerance) - theirs, **cells.how, **options)


def _band_of(x: Array, low: float, high: float) -> tuple[Codes, dict[int, str]]:
    """Return a band a score, the label it rounds to or a tenth of a scale without labels, and the bands' names."""
    if 2 <= high - low <= WIDEST:
        code = stats.round_half_up(x).astype(np.int64)
        return code, {int(c): str(int(c)) for c in np.unique(code)}
    step = (high - low) / 10
    code = np.clip(np.floor((x - low) / step + 1e-9), 0, 9).astype(np.int64)
    return code, {int(c): f"{low + c * step:g}–{low + (c + 1) * step:g}" for c in np.unique(code)}


def bands(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return one row per band of the judge's score, its verdict adjusted by Holm over the bands that have one."""
    code, names = _band_of(cells.judge, *asked.ends)
    rows = []
    for band, name in names.items():
        part = cells.where(code == band)
        share = part.share(asked.tolerance, level=asked.level)
        above = stats.p_above(share, asked.target, share=True, fraction=asked.fraction)
        above = above if part.n_clusters >= LEAST_CLUSTERS else np.nan
        row = {"band": name, "start": float(part.judge.min()), "end": float(part.judge.max())}
        row |= with_ends(share, "share") | with_ends(part.bias(level=asked.level), "bias", "bias_")
        row |= {"n": part.n, "n_clusters": part.n_clusters, "p": min(above, 1 - above)}
        rows.append(row | {"verdict": "TRUST" if above <= 0.5 else "REJECT"})
    frame = pd.DataFrame(rows)
    frame["p"] = stats.holm(frame["p"])
    frame["verdict"] = frame["verdict"].where(frame["p"] <= 1 - asked.level, "NOT PROVEN")
    frame["verdict"] = frame["verdict"].mask(frame["n_clusters"] < LEAST_CLUSTERS, "too few")
    return frame


def inflation(rows: pd.DataFrame, cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return one row per group: its bias with interval, and the difference from the bias of the other groups."""
    found = [_biased("overall", "", cells, NONE, asked)]
    for kind, codes, names in _groupings(rows, asked):
        split = cells_of(rows[codes >= 0], codes[codes >= 0])
        groups = np.unique(split.group)
        for group in groups if len(groups) > 1 else []:
            inside = split.group == group
            rest = _beside(split, inside, asked.level)
            found.append(_biased(kind, names[group], split.where(inside), rest, asked))
    frame = pd.DataFrame(found)
    frame["p"] = frame.groupby("kind", sort=False)["p"].transform(stats.holm)
    return frame.assign(inflated=(frame["value"] > 0) & (frame["p"] <= 1 - asked.level))


def _biased(kind: str, group: str, cells: Cells, rest: Estimate, asked: Asked) -> dict[str, Any]:
    bias, decisive = (cells.bias(level=asked.level, fraction=fraction) for fraction in (None, asked.fraction))
    one_sided = stats.p_above(bias, 0.0)
    row = {"kind": kind, "group": group, **with_ends(bias), "upper": decisive.high}
    row |= {**with_ends(rest, "beside", "beside_"), "p": 2 * min(one_sided, 1 - one_sided)}
    return row | {"n": bias.n, "n_clusters": bias.n_clusters}


def _beside(cells: Cells, inside: Any, level: float) -> Estimate:
    """Return the bias in the group less the bias outside it, by the jackknife over clusters."""
    rows = complete_rows([cells.judge - cells.human], **cells.how)
    sides = [rows.weights * side for side in (inside, ~inside)]
    parts = rows.sums(*(part for side in sides for part in (side, side * rows.columns[0])))

    def gap(sums: Array) -> Array:
        return ratio(sums[..., :2]) - ratio(sums[..., 2:])

    return stats.jackknife(gap, parts, parts[:, 0] + parts[:, 2], times=rows.times, level=level)


def _groupings(rows: pd.DataFrame, asked: Asked) -> Iterator[tuple[str, Any, Any]]:
    """Yield each column by which bias is looked at: its name, its groups as codes (−1: none), their names."""
    columns = {name: rows[f":{name}"] for name in asked.groups}
    amounts = {name: column for name, column in columns.items() if pd.api.types.is_numeric_dtype(column)}
    for name in (name for name in columns if name not in amounts):
        yield name, columns[name].cat.codes.to_numpy(np.int64) - 1, columns[name].cat.categories[1:]
    for name, column in amounts.items():
        values = column.to_numpy(dtype=float, na_value=np.nan)
        seen = ~np.isnan(values) & rows[["judge", "human"]].notna().all(axis=1).to_numpy()
        if seen.any():
            order = np.flatnonzero(seen)[np.argsort(values[seen], kind="stable")]
            upto = np.cumsum(rows["count"].to_numpy()[order])
            low, high = values[order][np.searchsorted(upto, upto[-1] * np.array([1 / 3, 2 / 3]) - 1e-9)]
            codes = np.where(np.isnan(values), -1, (values > low).astype(np.int64) + (values > high))
            yield name, codes, [f"≤ {low:g}", f"{low:g} – {high:g}", f"> {high:g}"]


def recalibration(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return raw scores, a constant, a line and a rising curve side by side, each judged out of fold."""
    own = cells if cells.cluster is not None else random_groups(cells, asked.seed)
    maps, rows, how = {}, [], {**own.how, "level": asked.level}
    if own.n_clusters > 1:
        scores = stats.recalibrate(own.judge, own.human, own.how["clusters"], counts=own.counts)
        maps = {name: replace(own, judge=predicted) for name, predicted in scores.items()}
    errors = {name: np.abs(mapped.judge - own.human) for name, mapped in maps.items()}
    mae = {name: stats.clustered_mean(error, **how) for name, error in errors.items()}
    shares = {name: mapped.share(asked.tolerance, level=asked.level) for name, mapped in maps.items()}
    for name, mapped in maps.items():
        low = mapped.share(asked.tolerance, level=2 * asked.level - 1, fraction=asked.fraction).low
        helps = name in stats.MAPS and mae[name].value < min(mae["raw"].value, mae["constant"].value)
        passes = helps and low >= asked.target and shares[name].value > shares["constant"].value
        passes = bool(passes and asked.accepts(mapped.bias(level=asked.level, fraction=asked.fraction)))
        gain = stats.clustered_mean(errors["raw"] - errors[name], **how) if name in stats.MAPS else NONE
        row = {"map": name, **with_ends(mae[name], "mae", "mae_"), **with_ends(shares[name], "share")}
        rows.append(row | with_ends(gain, "gain", "gain_") | {"helps": helps, "passes": passes})
    return pd.DataFrame(rows, columns=MAP_COLUMNS)


def reliability(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return E[human | judge] at each score with its interval, and the isotonic map.

    A point is a score of the judge, or one of twenty equal parts of the ratings.
    """
    from scipy.optimize import isotonic_regression

    values, place = np.unique(np.round(cells.judge, 9), return_inverse=True)
    if len(values) > MOST_POINTS:
        before = np.cumsum(np.bincount(place, weights=cells.counts))
        part_of = np.floor((before - 1e-9) / before[-1] * MOST_POINTS).astype(np.int64)
        place = np.unique(part_of, return_inverse=True)[1][place]
    rows = []
    for k in range(int(place.max(initial=-1)) + 1):
        part = cells.where(place == k)
        mean = stats.clustered_mean(part.human, **part.how, ends=asked.ends, level=asked.level)
        score = float(np.average(part.judge, weights=part.sums["counts"]))
        rows.append({"judge_score": score, **with_ends(mean, "human"), "n": mean.n, "n_clusters": mean.n_clusters})
    frame = pd.DataFrame(rows)
    weights = np.bincount(place, weights=cells.sums["counts"])
    frame.insert(4, "isotonic", isotonic_regression(frame["human"], weights=weights).x)
    return frame


def counts(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return judge × human cells and their counts, rounded to a hundredth of the scale where they are many."""
    low, high = asked.ends
    frame = pd.DataFrame({"judge_score": cells.judge, "human_score": cells.human, "n": cells.counts.astype(int)})
    scores = ["judge_score", "human_score"]
    if len(frame[scores].drop_duplicates()) > MOST_CELLS:
        step = (high - low) / 100
        frame[scores] = ((frame[scores] - low) / step).round() * step + low
    return frame.groupby(scores, as_index=False)[["n"]].sum()


def budget(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Return the label budget: interval width and probability of showing the target by number of labels.

    ``labels``; ``share``, as seen now, and its ``low, high`` expected at so many labels;
    ``probability`` of showing the target, were the seen share the true one, and ``cautious``, were its lower 80 %
    bound; ``target``; ``n`` labels now.
    """
    curve = stats.label_budget(cells.flags(asked.tolerance), **cells.how, **asked.goal, level=asked.level)
    frame = pd.DataFrame(curve).astype({"labels": int})
    frame.insert(1, "share", cells.share(asked.tolerance).value)
    return frame.assign(target=asked.target, n=cells.n)


# Each makes the frame of its name on a card.
FRAMES = (bands, recalibration, counts, reliability, budget)
