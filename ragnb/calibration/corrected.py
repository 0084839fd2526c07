"""Means of a judge corrected by labels of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.cells import bias, cells_of, design, mean
from ragnb.calibration.ratings import Asked, Names, brought_ratings, opened_blocks, with_ends
from ragnb.calibration.scores import Missing, Scale
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
    judged = brought_ratings(judged, judge, human)[0]
    ratings, named, human = brought_ratings(ratings, judge, human)
    judge = str(named)
    asked = Asked(human, by, scale, cluster, missing, item=item, whole=True, level=level, lang=lang)
    if not 0 < level < 1:
        raise RagnbError(f"level={level} is not between 0 and 1; give a share such as 0.95")
    load(lang)
    blocks = opened_blocks(ratings, judge, asked, judged)
    if not any(part["human"].notna().any() for _, part, _ in blocks):
        raise RagnbError(
            "no row has a human score: the judge's bias cannot be estimated from its own scores; label some items"
        )
    rows = [labels | corrected_row(part, scale or _ends(part), asked) for labels, part, _ in blocks]
    for row in doubtful_draws(rows):
        row["note"] += BETWEEN[lang] + draw_text(row, lang)
    return pd.DataFrame(rows, columns=[*list(blocks[0][0])[1:], *LAYOUT["frames"]["means"]])


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
    seen = part["judge"].notna()
    labelled = part["human"].notna()
    off = bias(cells, asked)
    alone = design(part)["clusters"] is None
    n_judged, unjudged = (
        int(part.loc[rows, "count"].sum()) for rows in (seen & ~labelled, labelled & ~seen)
    )
    out: dict[str, Any] = {"n": off.n, "n_judged": n_judged, "n_clusters": off.n_clusters}
    if off.n < 2:
        return out | {"note": load(asked.lang)("corrected.no_labels", n=off.n)}
    judge, human = (mean(cells[name], cells, asked, ends=ends) for name in ("judge", "human"))
    corrected = stats.Corrected(*astuple(human))
    if n_judged:  # all rows together are the population that the labels were sampled from
        how: dict[str, Any] = {"ends": ends, "level": asked.level}
        rows = part.loc[part.index.repeat(part["count"].astype(int))].dropna(subset="judge")
        judge = stats.clustered_mean(rows["judge"], None if alone else rows["cluster"], **how)
        mine, more = (rows[rows["human"].notna() == known] for known in (True, False))
        of = (None, None) if alone else (mine["cluster"], more["cluster"])
        scores = (mine["judge"], more["judge"])
        weights = mine["weight"]
        shares = weights / weights.max()  # equal ones are exactly 1
        corrected = stats.ppi_jackknife(mine["human"], *scores, *of, weights=shares, **how)
        if np.ptp(weights) == 0:
            out |= zip(DRAW, stats.draw_test(*scores, *of), strict=True)
        else:
            out |= {"represented": float(weights.sum()), "population": len(rows)}
    out |= with_ends(corrected) | {
        "se": corrected.se,
        "weight": corrected.weight,
        **with_ends(off, "bias", "bias_"),
    }
    out |= with_ends(judge, "judge_value", "judge_") | with_ends(human, "human_value", "human_")
    return out | {
        "n_clusters": corrected.n_clusters,
        "note": _note(out, off.n_clusters, unjudged, asked.lang),
    }


def not_random(p: float) -> bool:
    """Whether labels do not look like a random sample, at the 1 % level over all rows of a table."""
    return bool(p <= DRAW_LEVEL)


def doubtful_draws(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adjust the tests of the draw by Holm over the rows; return those whose labels do not look random."""
    for row, p in zip(rows, stats.holm([row.get("draw_p", np.nan) for row in rows]), strict=True):
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
        side = "unknown"
    holding = {
        f"judge_{side}": True,
        "no_judged": not row["n_judged"],
        "no_weight": row["n_judged"] and row["weight"] == 0,
        "one_cluster": labelled == 1,
        "few_clusters": 1 < labelled < ROUGH,
        "rare_missing": row.get("represented", np.inf)
        < LEAST_REPRESENTED * row.get("population", 0),
        "unjudged": unjudged,
    }
    facts = {**row, "labelled": labelled, "unjudged": unjudged}
    return BETWEEN[lang].join(
        told(lang, f"corrected.{key}", facts) for key in holding if holding[key]
    )
