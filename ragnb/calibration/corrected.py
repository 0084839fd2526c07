"""Corrected means: estimate the human mean of everything a judge scored from few labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.ratings import (
    Asked,
    Missing,
    Names,
    Scale,
    blocks,
    cells_of,
    open_ratings,
    with_ends,
)
from ragnb.errors import RagnbError
from ragnb.markup import number
from ragnb.texts import load

_FEW = 20
_ESTIMATE = ("value", "low", "high")
WAYS = {"judge": "judge_", "human": "human_", "corrected": ""}
DRAW = ["judge_labelled", "judge_rest", "draw_z", "draw_p"]
DRAW_LEVEL = 0.01
COLUMNS = [*_ESTIMATE, "se", "n", "n_judged", "n_clusters", "weight"]
COLUMNS += [f"{way}_{name}" for way in ("human", "judge") for name in _ESTIMATE]
COLUMNS += ["bias", "bias_low", "bias_high", *DRAW, "note"]


def corrected_mean(
    ratings: Any, *, judged: Any = None, judge: str = "judge", human: Names = "human",
    by: Names | None = "dimension", cluster: str | None = "cluster", item: str = "item_id",
    scale: Scale | None = None, missing: Missing = None, level: float = 0.95, lang: str = "en",
) -> pd.DataFrame:  # fmt: skip
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
    0   3.46  1.47   4.8     0.7  0.75
    """
    asked = Asked(human, by, scale, cluster, missing, item=item, whole=True, level=level, lang=lang)
    if not 0 < level < 1:
        raise RagnbError(f"level={level} is not between 0 and 1; give a share such as 0.95")
    load(lang)
    table, opened = open_ratings(ratings, judge, asked, judged)
    _refuse_twice(table, item)
    if not table["human"].notna().any():
        raise RagnbError(
            "no row has a human score: the judge's bias cannot be estimated from its own scores; label some items"
        )
    rows, head = [], dict[str, Any]()
    for head, part in blocks(table, opened):
        rows.append(head | corrected_row(part, _ends(part) if scale is None else opened.ends, asked))
    for row, p in zip(rows, stats.holm([row.get("draw_p", np.nan) for row in rows]), strict=True):
        row["draw_p"] = float(p)
        if not_random(p):
            row["note"] = _joined([row["note"], draw_text(row, lang)], lang)
    return pd.DataFrame(rows, columns=[*head, *COLUMNS])


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
    heads = list(means.columns[: means.columns.get_loc("value")])
    frames = []
    for way, prefix in WAYS.items():
        names = {f"{prefix}{name}": name for name in _ESTIMATE}
        part = means[[*heads, *names, "weight", "n", "n_judged", "n_clusters"]].rename(columns=names)
        part.insert(len(heads), "way", way)
        frames.append(part)
    return pd.concat(frames).sort_index(kind="stable", ignore_index=True)


def _refuse_twice(table: pd.DataFrame, item: str) -> None:
    """Refuse an item that appears twice."""
    keys, further = table.filter(regex="^:").rename(columns=lambda name: name[1:]), table["further"]
    if item not in keys:
        return
    again, both = keys.assign(further=further).duplicated(), keys.astype(str).duplicated() & further
    first = keys[again if again.any() else both][:1].to_dict("records")
    if again.any():
        raise RagnbError(
            f"{first[0]} appears twice; give one row per item, or a column 'rater' that distinguishes them"
        )
    if first:
        raise RagnbError(
            f"{int(both.sum())} rows of judged are in ratings too, the first {first[0]}: they would count "
            "twice; keep only unlabelled rows in judged"
        )


def _ends(part: pd.DataFrame) -> Scale:
    """Return the lowest and highest observed score; identical scores have no range."""
    low, high = (float(end) for end in np.nanquantile(part[["judge", "human"]].to_numpy(), [0, 1]))
    return (low, high) if low < high else (-np.inf, np.inf)


def corrected_row(part: pd.DataFrame, ends: Scale, asked: Asked) -> dict[str, Any]:
    """Return one row of the result: the three means with their intervals, the bias, and a note."""
    cells, seen, labelled = cells_of(part), part["judge"].notna(), part["human"].notna()
    n_judged, unjudged = (int(part.loc[rows, "count"].sum()) for rows in (seen & ~labelled, labelled & ~seen))
    out: dict[str, Any] = {"n": cells.n, "n_judged": n_judged, "n_clusters": cells.n_clusters}
    if cells.n < 2:
        return out | {"note": load(asked.lang)("corrected.no_labels", n=cells.n)}
    how: dict[str, Any] = {"ends": ends, "level": asked.level}
    bias = cells.bias(level=asked.level)
    judge, human = (stats.clustered_mean(scores, **cells.how, **how) for scores in (cells.judge, cells.human))
    found = stats.Corrected(*astuple(human))
    if n_judged:  # all rows together are the population that the labels were sampled from
        rows = part.loc[part.index.repeat(part["count"].astype(int))]
        alone = None if cells.cluster is None else rows["cluster"]
        judge = stats.clustered_mean(rows["judge"], alone, **how)
        mine, more = (rows[rows["judge"].notna() & (rows["human"].notna() == known)] for known in (True, False))
        of = (None, None) if alone is None else (mine["cluster"], more["cluster"])
        weights, scores = mine["weight"], (mine["judge"], more["judge"])
        found = stats.ppi_jackknife(mine["human"], *scores, *of, weights=weights, **how)
        if np.ptp(weights) == 0:
            out |= zip(DRAW, stats.draw_test(*scores, *of), strict=True)
    out |= with_ends(found) | {"se": found.se, "weight": found.weight} | with_ends(bias, "bias", "bias_")
    out |= with_ends(judge, "judge_value", "judge_") | with_ends(human, "human_value", "human_")
    out["note"] = _note(found, bias, cells.n_clusters, unjudged, asked.lang)
    return out | {"n_clusters": found.n_clusters}


def _joined(sentences: list[str], lang: str) -> str:
    return ("" if lang == "zh" else " ").join(sentences)


def not_random(p: float) -> bool:
    """Whether labels do not look like a random sample, at the 1 % level over all rows of a table."""
    return bool(p <= DRAW_LEVEL)


def draw_text(row: Mapping[Any, Any], lang: str) -> str:
    """Return a sentence on labels that do not look like a random sample, with the judge's means on both parts."""
    means = {"labelled": number(row["judge_labelled"], 2), "rest": number(row["judge_rest"], 2)}
    return load(lang)("corrected.not_random", **means, z=number(abs(row["draw_z"]), 1))


def _note(found: stats.Corrected, bias: stats.Estimate, labelled: int, unjudged: int, lang: str) -> str:
    """Return the notes on a corrected mean, the judge's bias first."""
    say = load(lang)
    ends = {"bias": number(bias.value), "low": number(bias.low), "high": number(bias.high)}
    side = "above" if bias.low > 0 else "below" if bias.high < 0 else "open" if bias.low <= 0 else "unknown"
    told = {
        f"judge_{side}": True,
        "no_judged": not found.n_judged,
        "no_weight": found.n_judged and found.weight == 0,
        "one_cluster": labelled == 1,
        "few_clusters": 1 < labelled < _FEW,
        "unjudged": unjudged,
    }
    n = {"few_clusters": labelled, "unjudged": unjudged}
    return _joined([say(f"corrected.{key}", **ends, n=n.get(key)) for key, holds in told.items() if holds], lang)
