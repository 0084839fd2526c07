"""What agreement is measured by: rates, biases and correlations with their intervals, and the frames of a card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.calibration.cells import bias, cells_of, design, flags, mean, random_groups, share
from ragnb.calibration.ratings import Asked, Names, brought_ratings, opened_blocks, with_ends
from ragnb.calibration.scores import Missing, as_list
from ragnb.calibration.words import LAYOUT, NOT_PROVEN, REJECT, TRUST
from ragnb.stats import NONE, SLACK, Array, Estimate

# Clusters: with fewer a slice has no verdict, as its interval says next to nothing.
LEAST_CLUSTERS = 5
WIDEST = 20  # a scale with more whole labels is cut into ten bands
MOST_POINTS = 20  # of the reliability curve; judges with more values are put into as many bins
# Pairs of different scores; continuous scales have more, and a chart of them shows nothing.
MOST_CELLS = 5000


def agreement(
    ratings: Any,
    *,
    judge: Names = "judge",
    human: Names = "human",
    by: Names | None = "dimension",
    tolerance: float | None = None,
    scale: tuple[float, float] | None = None,
    cluster: str | None = "cluster",
    level: float = 0.95,
    missing: Missing = None,
    rater: str = "rater",
) -> pd.DataFrame:
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
    tolerance : float, optional
        In points of the scale. None is 1; 0, which is exact agreement, where every score is 0 or 1.
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
        ``kendall``            Kendall's τ-b of the ratings to ten decimals, so that means of raters that differ
                               in the last bit are ties; ``kendall_by_system`` of the systems' means
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
    ratings, judge, human = brought_ratings(
        ratings,
        judge,
        human,
        missing=missing,
        scale=scale,
        rater=rater,
        named=[*as_list(by), *as_list(cluster)],
    )
    asked = Asked(
        human,
        by,
        scale,
        cluster,
        missing,
        rater,
        tolerance=1.0 if tolerance is None else tolerance,
        usual=tolerance is None,
        level=level,
    )
    blocks = opened_blocks(ratings, judge, asked)
    frames = [
        measure_rows(labels, measured(rows, cells_of(rows), opened_as))
        for labels, rows, opened_as in blocks
    ]
    frame = pd.concat(frames, ignore_index=True)
    frame.attrs["scale"] = blocks[-1][2].scale
    return frame


def measure_rows(head: dict[str, Any], measures: dict[str, Estimate]) -> pd.DataFrame:
    """Return the rows of one judge and dimension."""
    rows = [head | {"measure": name} | asdict(found) for name, found in measures.items()]
    return pd.DataFrame(rows, columns=[*head, "measure", "value", "low", "high", "n", "n_clusters"])


def measured(rows: pd.DataFrame, cells: pd.DataFrame, asked: Asked) -> dict[str, Estimate]:
    """Return every measure of one judge on one dimension that applies, by name."""
    x = cells["judge"]
    y = cells["human"]
    scale = asked.scale
    within = share(cells, asked)
    how: dict[str, Any] = {**design(cells), "level": asked.level}
    sums: dict[str, Any] = {**design(cells, of_sums=True), "level": asked.level}

    def without_interval(value: float) -> Estimate:
        return Estimate(value, np.nan, np.nan, np.nan, within.n, within.n_clusters)

    n_ratings = round(float(rows["count"].sum()))
    floor = stats.chance_floor(x, y, tolerance=asked.tolerance, counts=sums["counts"])
    score, constant = stats.best_constant(y, tolerance=asked.tolerance, **how)
    low, high = stats.limits_of_agreement(x, y, **sums)
    measures = {
        "within": within,
        "constant": constant,
        "constant_score": without_interval(score),
        "floor": without_interval(floor),
        "over_constant": over_constant(cells, score, asked),
        "mean_judge": mean(x, cells, asked, ends=scale),
        "mean_human": mean(y, cells, asked, ends=scale),
        "mae": stats.mae(x, y, scale=scale, **how),
        "bias": bias(cells, asked),
        "loa_low": low,
        "loa_high": high,
        "slope": stats.slope_on_mean(x, y, **sums),
        "kendall": stats.kendall(x, y, digits=10, **sums),
        "n_missing": without_interval(n_ratings - within.n),
    }
    # All fractions of a scale such as 0..1 would round to its two ends.
    if scale[1] - scale[0] >= 2:
        rounded = cells.assign(judge=stats.round_half_up(x), human=stats.round_half_up(y))
        measures["within_rounded"] = share(rounded, asked)
        measures["exact"] = share(rounded, replace(asked, tolerance=0.0))
        labels = (np.floor(scale[0]), np.ceil(scale[1]))
        measures["qwk"] = stats.quadratic_kappa(x, y, labels, **sums)
    if ":system" in rows:
        of_system = cells_of(rows[rows[":system"] != ""], rows[":system"].cat.codes)
        grouped = random_groups(of_system)
        if grouped["group"].nunique() > 1:
            measures["kendall_by_system"] = stats.kendall_of_means(
                grouped["judge"],
                grouped["human"],
                grouped["group"],
                **design(grouped, of_sums=True),
                level=asked.level,
            )
    if "rater0" in rows:
        # The functions of raters take no counts: an engine's row of many items is repeated.
        items = rows.loc[rows.index.repeat(rows["count"].astype(int))]
        grid = items.filter(regex="^rater").to_numpy()  # items × raters
        clusters = None if sums["clusters"] is None else items["cluster"]
        raters_per_item = np.sum(~np.isnan(grid), axis=1)
        measures["raters"] = without_interval(float(raters_per_item.mean()))
        measures["ceiling"] = stats.human_ceiling(
            grid,
            clusters,
            tolerance=asked.tolerance,
            weights=items["weight"],
            level=asked.level,
        )
        measures["alpha"] = stats.krippendorff_alpha(grid, clusters, level=asked.level)
    return {name: measures[name] for name in LAYOUT["measures"] if name in measures}


def over_constant(cells: pd.DataFrame, score: float, asked: Asked, **options: Any) -> Estimate:
    """Return the paired difference between the judge's agreement and that of a constant `score`."""
    gain = flags(cells, asked) - flags(cells.assign(judge=score), asked)
    return mean(gain, cells, asked, **options)


def bands(cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return one row per band of the judge's score, its verdict adjusted by Holm over the bands that have one.

    A band is the label that a score rounds to, or a tenth of a scale without labels.
    """
    low, high = asked.scale
    has_labels = 2 <= high - low <= WIDEST
    step = (high - low) / 10
    if has_labels:
        code = stats.round_half_up(cells["judge"])
    else:
        # The highest score belongs to the last tenth, and so none is the eleventh.
        code = np.clip(np.floor((cells["judge"].to_numpy() - low) / step + SLACK), 0, 9)
    rows = []
    for band in np.unique(code):
        part = cells[code == band]
        agreement = share(part, asked)
        above = stats.p_above(agreement, asked.target, share=True, fraction=asked.fraction)
        if agreement.n_clusters < LEAST_CLUSTERS:
            above = np.nan  # which Holm's correction passes over
        if has_labels:
            name = f"{band:g}"
        else:
            name = f"{low + band * step:g}–{low + (band + 1) * step:g}"
        row = {
            "band": name,
            "start": part["judge"].min(),
            "end": part["judge"].max(),
            **with_ends(agreement, "share"),
            **with_ends(bias(part, asked), "bias", "bias_"),
            "n": agreement.n,
            "n_clusters": agreement.n_clusters,
            "p": min(above, 1 - above),
            "verdict": TRUST if above <= 0.5 else REJECT,
        }
        rows.append(row)
    frame = pd.DataFrame(rows)
    # The side of each band is known; whether it is shown, only now.
    frame["p"] = stats.holm(frame["p"])
    frame["verdict"] = frame["verdict"].where(frame["p"] <= 1 - asked.level, NOT_PROVEN)
    frame["verdict"] = frame["verdict"].mask(frame["n_clusters"] < LEAST_CLUSTERS, "too few")
    return frame


def inflation(rows: pd.DataFrame, cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return one row per group: its bias with interval, and the difference from the bias of the other groups."""
    table = [_inflation_row("overall", "", cells, NONE, asked)]
    for grouping in _groupings(rows, asked):
        has_group = grouping.codes >= 0
        split = cells_of(rows[has_group], grouping.codes[has_group])
        # A single group is all the ratings, and has no others to differ from.
        if split["group"].nunique() < 2:
            continue
        difference = split["judge"] - split["human"]
        for group in np.unique(split["group"]):
            inside = split["group"] == group
            rest = stats.contrast(difference, inside, **design(split), level=asked.level)
            name = grouping.names[group]
            table.append(_inflation_row(grouping.kind, name, split[inside], rest, asked))
    frame = pd.DataFrame(table)
    frame["p"] = frame.groupby("kind", sort=False)["p"].transform(stats.holm)
    return frame.assign(inflated=(frame["value"] > 0) & (frame["p"] <= 1 - asked.level))


def _inflation_row(
    kind: str, group: str, part: pd.DataFrame, rest: Estimate, asked: Asked
) -> dict[str, Any]:
    """Return the bias of a group, and `rest`, its difference from that of the other groups."""
    shown = bias(part, asked)
    # The verdict looks at the bias as often as labels are planned to be looked at, by a wider interval.
    decisive = bias(part, asked, fraction=asked.fraction)
    above = stats.p_above(shown, 0.0)
    return {
        "kind": kind,
        "group": group,
        **with_ends(shown),
        "upper": decisive.high,
        **with_ends(rest, "beside", "beside_"),
        "p": 2 * min(above, 1 - above),  # two-sided
        "n": shown.n,
        "n_clusters": shown.n_clusters,
    }


class _Grouping(NamedTuple):
    """A column by which bias is looked at: its name, each row's group as a code (−1: none), the groups' names."""

    kind: str
    codes: npt.NDArray[np.integer[Any]]
    names: Any  # a sequence of str


def _groupings(rows: pd.DataFrame, asked: Asked) -> Iterator[_Grouping]:
    """Yield the columns by which bias is looked at, those of labels before those of amounts."""
    rated = rows[["judge", "human"]].notna().all(axis=1).to_numpy()
    is_amount = {name: pd.api.types.is_numeric_dtype(rows[f":{name}"]) for name in asked.groups}
    for name in sorted(is_amount, key=is_amount.__getitem__):
        column = rows[f":{name}"]
        if is_amount[name]:
            values = column.to_numpy(dtype=float, na_value=np.nan)
            seen = rated & column.notna().to_numpy()
            if seen.any():
                yield _thirds_of(name, values, seen, rows["count"].to_numpy())
        else:
            # The first label, "", means none (see `open_ratings`).
            codes = column.cat.codes.to_numpy(np.int64) - 1
            yield _Grouping(name, codes, column.cat.categories[1:])


def _thirds_of(name: str, values: Array, seen: npt.NDArray[np.bool_], counts: Array) -> _Grouping:
    """Return an amount cut where a third and two thirds of the ratings that are `seen` lie below."""
    order = np.flatnonzero(seen)[np.argsort(values[seen], kind="stable")]
    ratings_up_to = np.cumsum(counts[order])
    cuts = ratings_up_to[-1] * np.array([1 / 3, 2 / 3])
    low, high = values[order][np.searchsorted(ratings_up_to, cuts - 1e-9)]
    third = (values > low).astype(np.int64) + (values > high)
    codes = np.where(np.isnan(values), -1, third)
    return _Grouping(name, codes, [f"≤ {low:g}", f"{low:g} – {high:g}", f"> {high:g}"])


def recalibration(cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return raw scores, a constant, a line and a rising curve side by side, each judged out of fold."""
    # Folds are made of clusters, so ratings that stand alone are put together first.
    if (cells["cluster"] < 0).all():
        split = random_groups(cells, asked.seed)
    else:
        split = cells
    mapped: dict[str, Array] = {}
    if split["cluster"].nunique() > 1:
        mapped = stats.recalibrate(
            split["judge"], split["human"], split["cluster"], counts=split["count"]
        )
    errors = {name: np.abs(scores - split["human"]) for name, scores in mapped.items()}
    maes = {name: mean(error, split, asked) for name, error in errors.items()}
    shares = {name: share(split.assign(judge=scores), asked) for name, scores in mapped.items()}
    rows = []
    for name, scores in mapped.items():
        helps = False
        passes = False
        gain = NONE
        # The other two, raw and constant, are what maps are compared with.
        if name in stats.MAPS:
            gain = mean(errors["raw"] - errors[name], split, asked)
            helps = maes[name].value < min(maes["raw"].value, maes["constant"].value)
            beats_constant = shares[name].value > shares["constant"].value
            passes = helps and beats_constant and _would_pass(split.assign(judge=scores), asked)
        row = {
            "map": name,
            **with_ends(maes[name], "mae", "mae_"),
            **with_ends(shares[name], "share"),
            **with_ends(gain, "gain", "gain_"),
            "helps": helps,
            "passes": passes,
        }
        rows.append(row)
    return pd.DataFrame(rows, columns=LAYOUT["frames"]["recalibration"])


def _would_pass(cells: pd.DataFrame, asked: Asked) -> bool:
    """Whether mapped scores meet the bounds of the share and the bias that TRUST needs (see `verdict_row`)."""
    once = 2 * asked.level - 1  # the two-sided interval whose ends are one-sided bounds at `level`
    lower_bound = share(cells, asked, level=once, fraction=asked.fraction).low
    if not lower_bound >= asked.target:
        return False
    return asked.accepts(bias(cells, asked, fraction=asked.fraction))


def reliability(cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return E[human | judge] at each score with its interval, and the isotonic map.

    A point is a score of the judge, or one of twenty equal parts of the ratings.
    """
    from scipy.optimize import isotonic_regression

    place = cells["judge"].round(9)
    if place.nunique() > MOST_POINTS:
        ratings_up_to = cells.groupby(place)["count"].sum().cumsum()
        # Less a little, so that the last score is in the last part and does not begin one of its own.
        part_of_score = np.floor((ratings_up_to - SLACK) / ratings_up_to.iloc[-1] * MOST_POINTS)
        place = place.map(part_of_score)
    rows = []
    weights = []
    for _, part in cells.groupby(place):
        human = mean(part["human"], part, asked, ends=asked.scale)
        size = part["count"] * part["weight"]
        rows.append(
            {
                "judge_score": np.average(part["judge"], weights=size),
                **with_ends(human, "human"),
                "n": human.n,
                "n_clusters": human.n_clusters,
            }
        )
        weights.append(size.sum())
    frame = pd.DataFrame(rows)
    frame.insert(4, "isotonic", isotonic_regression(frame["human"], weights=weights).x)
    return frame


def counts(cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return judge × human cells and their counts, rounded to a hundredth of the scale where they are many."""
    low, high = asked.scale
    scores = ["judge_score", "human_score"]
    frame = cells[["judge", "human", "count"]].astype({"count": int})
    frame = frame.set_axis([*scores, "n"], axis=1)
    if len(frame[scores].drop_duplicates()) > MOST_CELLS:
        step = (high - low) / 100
        frame[scores] = ((frame[scores] - low) / step).round() * step + low
    # The cells are of clusters, too, so one pair of scores has many of them.
    return frame.groupby(scores, as_index=False)[["n"]].sum()


def budget(cells: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return the label budget: interval width and probability of showing the target by number of labels.

    ``labels``; ``share``, as seen now, and its ``low, high`` expected at so many labels;
    ``probability`` of showing the target, were the seen share the true one, and ``chance`` of it when only the
    labels at hand are known of the truth; ``target``; ``n`` labels now.
    """
    agrees = flags(cells, asked)
    curve = stats.label_budget(agrees, **design(cells), **asked.goal, level=asked.level)
    frame = pd.DataFrame(curve).astype({"labels": int})
    # The same on every row, so that the table can be read by itself.
    now = share(cells, asked)
    frame.insert(1, "share", now.value)
    return frame.assign(target=asked.target, n=now.n)


# What makes each frame of a card.
FRAMES = {
    "bands": bands,
    "recalibration": recalibration,
    "counts": counts,
    "reliability": reliability,
    "budget": budget,
}
Measures = Mapping[str, Estimate]
