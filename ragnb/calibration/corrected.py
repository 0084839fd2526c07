"""What humans would say of everything the judge scored: few labels correct many scores, and carry the interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.ratings import Asked, Codes, Missing, Names, scores_of, with_ends
from ragnb.errors import RagnbError, unknown
from ragnb.markup import number
from ragnb.texts import load

Scale = tuple[float, float] | None
_ESTIMATE = ("value", "low", "high")
_FEW = 20
WAYS = ("judge", "human", "corrected")
DRAW = ("judge_labelled", "judge_rest", "draw_z", "draw_p")
DRAW_LEVEL = 0.01
_COLUMNS = [*_ESTIMATE, "se", "n", "n_judged", "n_clusters", "weight"]
_COLUMNS += [f"{way}_{name}" for way in ("human", "judge") for name in _ESTIMATE]
_COLUMNS += ["bias", "bias_low", "bias_high", *DRAW, "note"]


def corrected_mean(
    ratings: Any,
    *,
    judged: Any = None,
    judge: str = "judge",
    human: Names = "human",
    by: Names | None = "dimension",
    cluster: str | None = "cluster",
    item: str = "item_id",
    scale: Scale = None,
    missing: Missing = None,
    level: float = 0.95,
    lang: str = "en",
) -> pd.DataFrame:
    """Return the mean that humans would give, from few labels and many scores of a judge.

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
        Rows of one cluster move together; it may hold labelled and unlabelled rows. Without the column rows count
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
    asked = Asked(human, by, scale, cluster, missing, item=item)
    table, groups = pooled(ratings, judged, judge, asked, level)
    rows = [head | _row(part, scale or _ends(part), level, lang) for head, part in parts(table, groups)]
    return _noted(rows, lang)


def corrected_difference(
    ratings: Any,
    *,
    judged: Any = None,
    baseline: str,
    system: str = "system",
    judge: str = "judge",
    human: Names = "human",
    by: Names | None = "dimension",
    cluster: str | None = "cluster",
    item: str = "item_id",
    scale: Scale = None,
    missing: Missing = None,
    level: float = 0.95,
    lang: str = "en",
) -> pd.DataFrame:
    """Return how far humans would put each system above a baseline, from paired labels and a judge's scores.

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
    asked = Asked(human, by, scale, cluster, missing, item=item, system=system)
    table, groups = pooled(ratings, judged, judge, asked, level)
    groups = [name for name in groups if name != system]
    table = table.rename(columns={system: "system"})
    for name, called in {"item": item, "system": system}.items():
        if name not in table:
            raise RagnbError(f"no column {called!r}; a paired difference needs an item and a system a row")
    systems = list(pd.unique(table["system"]))
    if baseline not in systems:
        raise unknown("baseline", baseline, list(map(str, systems)))
    rows = []
    for head, part in parts(table, groups):
        base = part[part["system"] == baseline].set_index("item")
        for other in (name for name in systems if name != baseline):
            theirs = part[part["system"] == other].set_index("item")
            gap = theirs[["judge", "human"]].sub(base[["judge", "human"]]).dropna(subset="judge")
            gap["cluster"], gap["weight"] = theirs["cluster"], _pair_weight(theirs, base)
            rows.append(head | {"system": other, "baseline": baseline} | _row(gap, (-np.inf, np.inf), level, lang))
    return _noted(rows, lang)


def corrected_ways(means: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of `corrected_mean` with one row a way of asking: the judge alone, humans alone, corrected.

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
    counts = ["weight", "n", "n_judged", "n_clusters"]
    frames = []
    for way in WAYS:
        names = {name if way == "corrected" else f"{way}_{name}": name for name in _ESTIMATE}
        part = means[[*heads, *names, *counts]].rename(columns=names)
        part.insert(len(heads), "way", way)
        frames.append(part)
    return pd.concat(frames).sort_index(kind="stable", ignore_index=True)


def _ends(part: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of the scores at hand; scores all alike show none."""
    low, high = (float(end) for end in np.nanquantile(part[["judge", "human"]].to_numpy(), [0, 1]))
    return (low, high) if low < high else (-np.inf, np.inf)


def _row(part: pd.DataFrame, ends: tuple[float, float], level: float, lang: str) -> dict[str, Any]:
    """Return one row of the result: the three means with their intervals, the bias, and a note."""
    labelled, seen = part["human"].notna(), part["judge"].notna()
    mine, more = part[labelled & seen], part[~labelled & seen]
    counts = {"n": len(mine), "n_judged": len(more), "n_clusters": int(mine["cluster"].nunique())}
    unjudged = int((labelled & ~seen).sum())
    if len(mine) < 2:
        return counts | {"note": load(lang)("corrected.no_labels", n=len(mine))}
    judge, human = mine["judge"], mine["human"]
    how: dict[str, Any] = {"weights": mine["weight"], "level": level}
    found = stats.ppi_jackknife(human, judge, more["judge"], mine["cluster"], more["cluster"], ends=ends, **how)
    alone = stats.clustered_mean(human, mine["cluster"], ends=ends, **how)
    every = part[seen] if len(more) else mine
    of_all = None if len(more) else mine["weight"]  # all rows are what the labels were drawn from
    theirs = stats.clustered_mean(every["judge"], every["cluster"], weights=of_all, ends=ends, level=level)
    bias = stats.bias(judge, human, mine["cluster"], **how)
    out = {"value": found.value, "low": found.low, "high": found.high, "se": found.se, "weight": found.weight}
    for way, estimate in (("judge", theirs), ("human", alone)):
        out |= {f"{way}_{name}": getattr(estimate, name) for name in _ESTIMATE}
    out |= with_ends("bias", bias)
    if len(more) and np.ptp(mine["weight"]) == 0:
        drawn = stats.draw_test(judge, more["judge"], mine["cluster"], more["cluster"])
        out |= dict(zip(DRAW, (drawn.labelled, drawn.rest, drawn.z, drawn.p), strict=True))
    note = _note(found, bias, counts["n_clusters"], unjudged, lang)
    return out | counts | {"n_clusters": found.n_clusters, "note": note}


def _noted(rows: list[dict[str, Any]], lang: str) -> pd.DataFrame:
    """Return the rows with Holm's p-values of their draws, those that do not look random told in their notes."""
    for row, p in zip(rows, stats.holm([row.get("draw_p", np.nan) for row in rows]), strict=True):
        row["draw_p"] = float(p)
        if not_random(p):
            row["note"] = ("" if lang == "zh" else " ").join([row["note"], draw_text(row, lang)])
    heads = [name for name in rows[0] if name not in _COLUMNS]
    return pd.DataFrame(rows, columns=[*heads, *_COLUMNS])


def not_random(p: float) -> bool:
    """Whether labels do not look like a random draw, at the level of 1 % over all rows of a table."""
    return bool(p <= DRAW_LEVEL)


def draw_text(row: Mapping[Any, Any], lang: str) -> str:
    """Say that labels do not look like a random draw, with the judge's means on them and on the rest."""
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
            "is not known; draw both answers of an item together, or leave out the column inclusion_probability"
        )
    return one["weight"]


def _note(found: stats.Corrected, bias: stats.Estimate, labelled: int, unjudged: int, lang: str) -> str:
    """Say what a reader must know beside the numbers: the judge's bias first."""
    say = load(lang)
    ends = {"bias": number(bias.value), "low": number(bias.low), "high": number(bias.high)}
    side = "above" if bias.low > 0 else "below" if bias.high < 0 else "open" if bias.low <= 0 else "unknown"
    words = [say(f"corrected.judge_{side}", **ends)]
    if not found.n_judged:
        words.append(say("corrected.no_judged"))
    elif found.weight == 0:
        words.append(say("corrected.no_weight"))
    if labelled == 1:
        words.append(say("corrected.one_cluster"))
    elif labelled < _FEW:
        words.append(say("corrected.few_clusters", n=labelled))
    if unjudged:
        words.append(say("corrected.unjudged", n=unjudged))
    return ("" if lang == "zh" else " ").join(words)


def pooled(
    ratings: Any, judged: Any, judge: str, asked: Asked, level: float = 0.95
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row an item with its human mean (nan where nobody labelled it), and the grouping columns.

    Parameters
    ----------
    ratings, judged
        As in `corrected_mean`.

    Returns
    -------
    (DataFrame, list of str)
        ``item, system`` where they are known, the groups, ``human, judge, weight`` (1 / inclusion probability),
        and ``cluster`` as whole numbers; a row without a cluster is its own.

    Raises
    ------
    RagnbError
        As `agreement`; for a column that only one of the frames has, an item twice, an item in both frames, no
        label at all.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 5], "human": [3, None], "cluster": ["a", None]})
    >>> table, groups = pooled(frame, None, "judge", Asked())
    >>> table["cluster"].tolist(), groups
    ([0, 1], [])
    """
    if not 0 < level < 1:
        raise RagnbError(f"level={level} is not between 0 and 1; give a share such as 0.95")
    found = [scores_of(ratings, judge, asked, rows=True)]
    there = found[0].table.columns
    groups = [name for name in asked.keys if name in there]
    keys = [name for name in dict.fromkeys((asked.item, asked.system, *groups)) if name in there]
    taken = [name for name in dict.fromkeys((*keys, asked.cluster)) if name is not None and name in there]
    if judged is not None:
        alone = replace(asked, human=())
        found.append(scores_of(judged, judge, alone, rows=True, needs=taken, where="judged: "))
    parts = [part.table[taken].assign(judge=part.x, human=part.y, weight=part.weights) for part in found]
    if asked.item in keys:
        _refuse_twice(parts, keys)
    table = pd.concat(parts, ignore_index=True)
    if not table["human"].notna().any():
        raise RagnbError(
            "no row has a human's score: a judge's mean says nothing of its own bias; label some items"
        )
    codes = _codes(table[asked.cluster]) if asked.cluster in taken else np.arange(len(table))
    names = {asked.item: "item", asked.system: "system"}
    return table.rename(columns={k: names[k] for k in keys if k not in groups}).assign(cluster=codes), groups


def parts(table: pd.DataFrame, groups: list[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield each group's values by column, and its rows; all rows at once where nothing groups them.

    Examples
    --------
    >>> [(head, len(part)) for head, part in parts(pd.DataFrame({"dimension": ["a", "b", "a"]}), ["dimension"])]
    [({'dimension': 'a'}, 2), ({'dimension': 'b'}, 1)]
    """
    if not groups:
        yield {}, table
    for key, part in table.groupby(groups, sort=False, dropna=False) if groups else ():
        yield dict(zip(groups, key, strict=True)), part


def _codes(names: pd.Series[Any]) -> Codes:
    """Return clusters as whole numbers; a row without a name is its own."""
    codes = pd.factorize(names)[0].astype(np.int64)
    lone = codes < 0
    codes[lone] = codes.max(initial=-1) + 1 + np.arange(lone.sum())
    return codes


def _refuse_twice(parts: list[pd.DataFrame], keys: list[str]) -> None:
    """Refuse an item that stands twice in a frame, or in both the labelled rows and the others."""
    for part in parts:
        again = part.duplicated(keys)
        if again.any():
            twice = part.loc[again, keys].iloc[0].to_dict()
            raise RagnbError(
                f"{twice} stands there twice; give one row an item, or a column 'rater' to tell them apart"
            )
    for others in parts[1:]:
        first, second = (pd.MultiIndex.from_frame(part[keys].astype(str)) for part in (parts[0], others))
        both = second.isin(first)
        if both.any():
            one = others.loc[both, keys].iloc[0].to_dict()
            raise RagnbError(
                f"{int(both.sum())} rows of judged are in ratings too, the first {one}: they would count twice; "
                "leave in judged only what nobody labelled"
            )
