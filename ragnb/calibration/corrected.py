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
    Ratings,
    Scale,
    as_list,
    cells_of,
    open_ratings,
    with_ends,
)
from ragnb.errors import RagnbError, need_columns, unknown
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
    opened = _opened(ratings, judged, judge, asked)
    rows = []
    for head, part in opened.blocks():
        rows.append(head | corrected_row(part, _ends(part) if opened.guessed else opened.asked.ends, asked))
    return _noted(rows, lang)


def corrected_difference(
    ratings: Any, *, judged: Any = None, baseline: str, system: str = "system", judge: str = "judge",
    human: Names = "human", by: Names | None = "dimension", cluster: str | None = "cluster",
    item: str = "item_id", scale: Scale | None = None, missing: Missing = None, level: float = 0.95,
    lang: str = "en",
) -> pd.DataFrame:  # fmt: skip
    """Return the estimated human difference of each system from a baseline, from paired labels and judge scores.

    An item counts where both systems have it: labelled where both have a human's score, else judged. A judge that
    favours both systems alike does no harm; one that favours one of them is corrected.

    Parameters
    ----------
    ratings, judged, judge, human, by, cluster, item, scale, missing, level
        As in `corrected_mean`; `item` and `system` are needed. The same item may stand in both frames under
        different systems.
    baseline : str
        The system that the others are compared with.

    Returns
    -------
    DataFrame
        [by,] ``system, baseline`` and the columns of `corrected_mean`, all of the difference system − baseline;
        ``n`` counts pairs.

    Examples
    --------
    >>> rows = [(i, s, 3 + i % 2 + (s == "b"), (3 + i % 2 if i < 6 else None)) for i in range(12) for s in "ab"]
    >>> table = pd.DataFrame(rows, columns=["item_id", "system", "judge", "human"])
    >>> corrected_difference(table, baseline="a")[["system", "value", "judge_value", "n", "n_judged"]]
      system  value  judge_value  n  n_judged
    0      b    0.0          1.0  6         6
    """
    by = [name for name in as_list(by) if name != system]
    asked = Asked(human, by, scale, cluster, missing, item=item, system=system, whole=True, level=level, lang=lang)
    opened = _opened(ratings, judged, judge, asked)
    need_columns(opened.keys, (item, system), "A paired difference needs one row per item and system.")
    systems = list(pd.unique(opened.table[f":{system}"]))
    if baseline not in systems:
        raise unknown("baseline", baseline, list(map(str, systems)))
    rows = []
    for head, part in opened.blocks():
        answers = {name: part[part[f":{system}"] == name].set_index(f":{item}") for name in systems}
        base = answers.pop(baseline)
        for other, theirs in answers.items():
            gap = theirs[["judge", "human"]].sub(base[["judge", "human"]]).dropna(subset="judge")
            gap[["cluster", "count"]], gap["weight"] = theirs[["cluster", "count"]], _pair_weight(theirs, base)
            pair = corrected_row(gap, (-np.inf, np.inf), asked)
            rows.append(head | {"system": other, "baseline": baseline} | pair)
    return _noted(rows, lang)


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


def _opened(ratings: Any, judged: Any, judge: str, asked: Asked) -> Ratings:
    """Return one row per item, labelled or not; an item twice and no label at all are refused."""
    if not 0 < asked.level < 1:
        raise RagnbError(f"level={asked.level} is not between 0 and 1; give a share such as 0.95")
    load(asked.lang)
    opened = open_ratings(ratings, judge, asked, judged)
    keys = opened.table[[f":{name}" for name in opened.keys]].set_axis(opened.keys, axis=1)
    if asked.item in keys:
        further = opened.table["further"]
        again = keys.assign(further=further).duplicated()
        both = keys.astype(str).duplicated() & further
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
    if not opened.table["human"].notna().any():
        raise RagnbError(
            "no row has a human score: the judge's bias cannot be estimated from its own scores; label some items"
        )
    return opened


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
            out |= dict(zip(DRAW, astuple(stats.draw_test(*scores, *of)), strict=True))
    out |= with_ends(found) | {"se": found.se, "weight": found.weight} | with_ends(bias, "bias", "bias_")
    out |= with_ends(judge, "judge_value", "judge_") | with_ends(human, "human_value", "human_")
    out["note"] = _note(found, bias, cells.n_clusters, unjudged, asked.lang)
    return out | {"n_clusters": found.n_clusters}


def _noted(rows: list[dict[str, Any]], lang: str) -> pd.DataFrame:
    """Return the rows with Holm's p-values of the randomness test, and a note on those that fail it."""
    heads = [name for name in rows[0] if name not in COLUMNS]
    for row, p in zip(rows, stats.holm([row.get("draw_p", np.nan) for row in rows]), strict=True):
        row["draw_p"] = float(p)
        if not_random(p):
            row["note"] = _joined([row["note"], draw_text(row, lang)], lang)
    return pd.DataFrame(rows, columns=[*heads, *COLUMNS])


def _joined(sentences: list[str], lang: str) -> str:
    return ("" if lang == "zh" else " ").join(sentences)


def not_random(p: float) -> bool:
    """Whether labels do not look like a random sample, at the 1 % level over all rows of a table."""
    return bool(p <= DRAW_LEVEL)


def draw_text(row: Mapping[Any, Any], lang: str) -> str:
    """Return a sentence on labels that do not look like a random sample, with the judge's means on both parts."""
    means = {"labelled": number(row["judge_labelled"], 2), "rest": number(row["judge_rest"], 2)}
    return load(lang)("corrected.not_random", **means, z=number(abs(row["draw_z"]), 1))


def _pair_weight(one: pd.DataFrame, other: pd.DataFrame) -> pd.Series[float]:
    """Return the weight of each item that two systems share, one where both were drawn by the item."""
    shared = one.index.intersection(other.index)
    one, other = one.loc[shared], other.loc[shared]
    apart = one["human"].notna() & other["human"].notna() & ((one["weight"] - other["weight"]).abs() > 1e-9)
    if apart.any():
        raise RagnbError(
            f"item {apart.idxmax()!r}: its two answers have different inclusion probabilities: that of the pair "
            "is unknown; draw both answers of an item together, or leave out the column inclusion_probability"
        )
    return one["weight"]


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
