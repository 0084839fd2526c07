"""Means of a judge corrected by labels of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.cells import bias, cells_of, design, mean
from ragnb.calibration.ratings import (
    Asked,
    Names,
    brought_judged,
    brought_ratings,
    opened_blocks,
    with_ends,
)
from ragnb.calibration.scores import Missing, Scale, as_list
from ragnb.calibration.words import BETWEEN, LAYOUT, told
from ragnb.errors import RagnbError
from ragnb.texts import load

WAYS = {"judge": "judge_", "human": "human_", "corrected": ""}
DRAW = ("judge_labelled", "judge_rest", "draw_z", "draw_p")
DRAW_LEVEL = 0.01  # a warning about how labels were drawn is false once in a hundred honest draws
# Where Σ 1/p of the labels is a smaller part of the population, rows with small chances are missing.
LEAST_REPRESENTED = 0.8
ROUGH = 20  # fewer clusters make intervals that are themselves rough


def corrected_mean(
    ratings: Any,
    *,
    judged: Any = None,
    judge: str = "judge",
    human: Names = "human",
    by: Names | None = "dimension",
    cluster: str | None = "cluster",
    item: str = "item_id",
    scale: Scale | None = None,
    missing: Missing = None,
    level: float = 0.95,
    lang: str = "en",
) -> pd.DataFrame:
    """Return the estimated human mean, from few labels and many scores of a judge.

    Parameters
    ----------
    ratings : frame of any engine
        As `agreement` takes them; rows without a human's score count as judged. Labels drawn with unequal chances
        need the column ``inclusion_probability``; labelled and judged rows together are then what was drawn from.
    judged : frame, optional
        Further rows with the judge's score alone, drawn from the same population; no item of `ratings`.
    by : str or sequence of str, optional
        One row of the result a dimension, or a dimension and system. None: one row.
    cluster : str
        Rows of one cluster are correlated; it may hold labelled and unlabelled rows. Without the column rows count
        as independent.
    scale : (float, float), optional
        The lowest and highest score there is. None takes the ends of the scores at hand.
    missing, human
        As in `agreement`.

    Returns
    -------
    DataFrame
        [by,] ``value, low, high, se``: the corrected mean; ``n`` labelled and ``n_judged`` further rows,
        ``n_clusters``; ``weight``, λ in 0–1: what the judge's scores were worth. Beside it ``human_value,
        human_low, human_high``, the labels alone; ``judge_value, judge_low, judge_high``, the judge's scores of
        all rows, with their ``bias, bias_low, bias_high`` (judge − human on labelled rows). ``judge_labelled,
        judge_rest, draw_z, draw_p``: whether the judge scores the labelled rows as it does the rest
        (`stats.draw_test`, Holm over the rows of the result; missing where chances are recorded and unequal).
        ``note``: what to know in words. Without two labelled rows a group has no mean, neither the judge's.

    Raises
    ------
    RagnbError
        For wrong columns or scores, an item twice or in both frames, no label at all.

    Notes
    -----
    Prediction-powered inference with λ tuned (Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453), interval by
    delete-one-cluster jackknife: `ragnb.stats.ppi_jackknife`. It needs labels drawn at random, or recorded
    chances. A draw by the judge's score is found and noted; a draw by the human score cannot be detected.

    Examples
    --------
    >>> ratings = pd.DataFrame({"judge": [4, 5, 3, 5], "human": [3, 5, 2, 4], "cluster": [1, 1, 2, 3]})
    >>> judged = pd.DataFrame({"judge": [5, 4, 4, 3, 5], "cluster": [1, 2, 4, 4, 5]})
    >>> corrected_mean(ratings, judged=judged, scale=(1, 5))[["value", "low", "high", "weight", "bias"]].round(2)
       value   low  high  weight  bias
    0   3.46  1.84  4.63     0.7  0.75
    """
    reading: dict[str, Any] = {
        "missing": missing,
        "scale": scale,
        "named": [*as_list(by), *as_list(cluster), item],
    }
    brought = brought_ratings(ratings, judge, human, **reading)
    judged = brought_judged(judged, judge, brought.judge, **reading)
    ratings, _, human = brought
    judge = str(brought.judge)
    # Whole: labelled and judged rows are matched by item, and each is needed with its cluster.
    asked = Asked(human, by, scale, cluster, missing, item=item, whole=True, level=level, lang=lang)
    if not 0 < level < 1:
        raise RagnbError(f"level={level} is not between 0 and 1; give a share such as 0.95")
    load(lang)  # refuses an unknown language before the work
    blocks = opened_blocks(ratings, judge, asked, judged)
    if not any(part["human"].notna().any() for _, part, _ in blocks):
        raise RagnbError(
            "no row has a human score: the judge's bias cannot be estimated from its own scores; label some items"
        )
    rows = [labels | corrected_row(part, scale or _ends(part), asked) for labels, part, _ in blocks]
    for row in doubtful_draws(rows):
        row["note"] += BETWEEN[lang] + draw_text(row, lang)
    _judge, *by_columns = blocks[0][0]  # there is one judge, so no column says which
    return pd.DataFrame(rows, columns=[*by_columns, *LAYOUT["frames"]["means"]])


def corrected_ways(means: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of `corrected_mean` with one row per way of asking: the judge alone, humans alone, corrected.

    Returns
    -------
    DataFrame
        [by,] ``way, value, low, high, weight, n, n_judged, n_clusters``, for a forest chart.

    Examples
    --------
    >>> ratings = pd.DataFrame({"judge": [4, 5, 3, 5], "human": [3, 5, 2, 4]})
    >>> corrected_ways(corrected_mean(ratings))["way"].tolist()
    ['judge', 'human', 'corrected']
    """
    heads = list(means)[: list(means).index("value")]
    frames = []
    for way, prefix in WAYS.items():
        names = {f"{prefix}{name}": name for name in ("value", "low", "high")}
        columns = [*heads, "way", *names, "weight", "n", "n_judged", "n_clusters"]
        frames.append(means.assign(way=way)[columns].rename(columns=names))
    return pd.concat(frames).sort_index(kind="stable", ignore_index=True)


def _ends(part: pd.DataFrame) -> Scale:
    """Return the lowest and highest observed score; identical scores have no range."""
    low, high = (float(end) for end in np.nanquantile(part[["judge", "human"]].to_numpy(), [0, 1]))
    if low < high:
        return (low, high)
    return (-np.inf, np.inf)


def corrected_row(part: pd.DataFrame, ends: Scale, asked: Asked) -> dict[str, Any]:
    """Return one row of the result: the three means with their intervals, the bias, and a note."""
    cells = cells_of(part)
    is_judged = part["judge"].notna()
    is_labelled = part["human"].notna()
    n_judged = int(part.loc[is_judged & ~is_labelled, "count"].sum())
    n_unjudged = int(part.loc[is_labelled & ~is_judged, "count"].sum())
    bias_found = bias(cells, asked)
    row: dict[str, Any] = {
        "n": bias_found.n,
        "n_judged": n_judged,
        "n_clusters": bias_found.n_clusters,
    }
    # A judge's mean is never shown without its bias, which a single label does not show.
    if bias_found.n < 2:
        return row | {"note": load(asked.lang)("corrected.no_labels", n=bias_found.n)}
    human = mean(cells["human"], cells, asked, ends=ends)
    if n_judged:
        judge, corrected, draw = _from_population(part, ends, asked)
        row |= draw
    else:
        # Every row is labelled: there is nothing to correct by, and the labels' mean is the result.
        judge = mean(cells["judge"], cells, asked, ends=ends)
        corrected = stats.Corrected(*astuple(human))
    row |= with_ends(corrected)
    row["se"] = corrected.se
    row["weight"] = corrected.weight
    row |= with_ends(bias_found, "bias", "bias_")
    row |= with_ends(judge, "judge_value", "judge_")
    row |= with_ends(human, "human_value", "human_")
    row["n_clusters"] = corrected.n_clusters
    row["note"] = _note(row, bias_found.n_clusters, n_unjudged, asked.lang)
    return row


class _FromPopulation(NamedTuple):
    """The judge's mean over all rows, the corrected one, and what is known of how the labels were drawn."""

    judge: stats.Estimate
    corrected: stats.Corrected
    draw: dict[str, Any]


def _from_population(part: pd.DataFrame, ends: Scale, asked: Asked) -> _FromPopulation:
    """Return the means of rows of which some are labelled: together they are what the labels were drawn from."""
    how: dict[str, Any] = {"ends": ends, "level": asked.level}
    rows = part.loc[part.index.repeat(part["count"].astype(int))].dropna(subset="judge")
    labelled = rows[rows["human"].notna()]
    rest = rows[rows["human"].isna()]
    clusters: dict[str, Any] = {"all": None, "labelled": None, "rest": None}
    if design(part)["clusters"] is not None:
        clusters = {
            "all": rows["cluster"],
            "labelled": labelled["cluster"],
            "rest": rest["cluster"],
        }
    judge = stats.clustered_mean(rows["judge"], clusters["all"], **how)
    weights = labelled["weight"]
    corrected = stats.ppi_jackknife(
        labelled["human"],
        labelled["judge"],
        rest["judge"],
        clusters["labelled"],
        clusters["rest"],
        weights=weights / weights.max(),  # equal ones are exactly 1
        **how,
    )
    # Labels drawn with unequal chances differ from the rest by design, so there is nothing to test.
    if np.ptp(weights) == 0:
        test = stats.draw_test(
            labelled["judge"], rest["judge"], clusters["labelled"], clusters["rest"]
        )
        draw = dict(zip(DRAW, test, strict=True))
    else:
        draw = {"represented": float(weights.sum()), "population": len(rows)}
    return _FromPopulation(judge, corrected, draw)


def not_random(p: float) -> bool:
    """Whether labels do not look like a random sample, at the 1 % level over all rows of a table."""
    return bool(p <= DRAW_LEVEL)


def doubtful_draws(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adjust the tests of the draw by Holm over the rows; return those whose labels do not look random."""
    adjusted = stats.holm([row.get("draw_p", np.nan) for row in rows])
    for row, p in zip(rows, adjusted, strict=True):
        row["draw_p"] = float(p)
    return [row for row in rows if not_random(row["draw_p"])]


def draw_text(row: Mapping[Any, Any], lang: str) -> str:
    """Return a sentence on labels that do not look like a random sample, with the judge's means on both parts."""
    return told(lang, "corrected.not_random", row, distance=abs(row["draw_z"]))


def _note(row: Mapping[str, Any], labelled: int, unjudged: int, lang: str) -> str:
    """Return the notes on a corrected mean, the judge's bias first."""
    low = row["bias_low"]
    high = row["bias_high"]
    if low > 0:
        side = "above"
    elif high < 0:
        side = "below"
    elif low <= 0:
        side = "open"
    else:
        side = "unknown"  # of a single cluster there is no interval
    # Both are there only for labels drawn with unequal chances; for others nothing is known to be missing.
    represented = row.get("represented", np.inf)
    needed = LEAST_REPRESENTED * row.get("population", 0)
    holding = {
        f"judge_{side}": True,
        "no_judged": not row["n_judged"],
        "no_weight": row["n_judged"] and row["weight"] == 0,
        "one_cluster": labelled == 1,
        "few_clusters": 1 < labelled < ROUGH,
        "rare_missing": represented < needed,
        "unjudged": unjudged,
    }
    facts = {**row, "labelled": labelled, "unjudged": unjudged}
    notes = [told(lang, f"corrected.{key}", facts) for key, holds in holding.items() if holds]
    return BETWEEN[lang].join(notes)
