"""Labelled rows and rows that only the judge saw, checked and brought together, so that none counts twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing, unknown
from ragnb.weights import as_pandas

By = str | Sequence[str] | None
Scale = tuple[float, float] | None


def group_names(by: By, there: Sequence[str]) -> list[str]:
    """Return the grouping columns; a frame without ``dimension`` is of one dimension.

    Examples
    --------
    >>> group_names("dimension", ["judge", "human"]), group_names(["system"], ["system"])
    ([], ['system'])
    """
    names = [] if by is None else [by] if isinstance(by, str) else [str(name) for name in by]
    for name in names:
        if name not in there and name != "dimension":
            raise unknown("by", name, there)
    return [name for name in names if name in there]


def pooled(
    ratings: Any,
    judged: Any = None,
    *,
    judge: str = "judge",
    human: str = "human",
    by: By = "dimension",
    cluster: str = "cluster",
    item: str = "item_id",
    system: str = "system",
    scale: Scale = None,
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row an item with its human mean (nan where nobody labelled it), and the grouping columns.

    Parameters
    ----------
    ratings, judged
        As in `corrected_mean`.

    Returns
    -------
    (DataFrame, list of str)
        ``item, system`` where they are known, the groups, ``human, judge``, and ``cluster`` as whole numbers; a
        row without a cluster is its own.

    Raises
    ------
    RagnbError
        For a column that is missing in one of the frames, text or infinite scores, a score off the scale, an item
        twice, an item in both frames.

    Examples
    --------
    >>> table, groups = pooled(pd.DataFrame({"judge": [4, 5], "human": [3, None], "cluster": ["a", None]}))
    >>> table["cluster"].tolist(), groups
    ([0, 1], [])
    """
    sources = [as_pandas(ratings)] + ([] if judged is None else [as_pandas(judged)])
    there = list(map(str, sources[0].columns))
    groups = group_names(by, there)
    keys = [name for name in dict.fromkeys((item, system, *groups)) if name in there]
    taken = list(dict.fromkeys([*keys, *([cluster] if cluster in there else [])]))
    if cluster not in there and cluster != "cluster":
        raise unknown("cluster", cluster, there)
    parts = []
    for at, source in enumerate(sources):
        wanted = [*taken, judge, *([human] if at == 0 else [])]
        for name in wanted:
            if name not in source.columns:
                where = ("ratings", "judged")[at]
                raise unknown("column", name, list(source.columns), f"{where} needs {listing(wanted)}")
        part = source[taken].copy()
        part["judge"] = _scores(source, judge, scale)
        part["human"] = _scores(source, human, scale) if at == 0 else np.nan
        parts.append(_items(part, keys, item, rated="rater" in source.columns and at == 0))
    if len(parts) == 2 and item in keys:
        _refuse_overlap(parts[0], parts[1], keys)
    table = pd.concat(parts, ignore_index=True) if len(parts) == 2 else parts[0]
    codes = _codes(table[cluster]) if cluster in there else np.arange(len(table))
    names = {item: "item", system: "system"}
    return table.rename(columns={k: names[k] for k in keys if k not in groups}).assign(cluster=codes), groups


def _codes(names: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return clusters as whole numbers; a row without a name is its own."""
    codes = pd.factorize(names)[0]
    lone = codes < 0
    codes[lone] = codes.max(initial=-1) + 1 + np.arange(lone.sum())
    return codes


def _scores(frame: pd.DataFrame, name: str, scale: Scale) -> pd.Series[float]:
    """Return a column of scores as floats, or say which row holds what no score can be."""
    column = frame[name]
    values = pd.to_numeric(column, errors="coerce").astype(float)
    wrong = (values.isna() & column.notna()) | np.isinf(values)
    step = "convert the column to numbers, and leave missing scores empty"
    low, high = (-np.inf, np.inf) if scale is None else scale
    if not wrong.any() and scale is not None:
        wrong, step = (values < low - 1e-9) | (values > high + 1e-9), f"the scale is {low:g} to {high:g}; {step}"
    if not wrong.any() and scale is None and (values == -1).any() and (values[values != -1] >= 0).all():
        wrong, step = values == -1, f"it looks like a reply that did not parse; give scale=(low, high), or {step}"
    if wrong.any():
        at = int(np.argmax(wrong))
        raise RagnbError(f"column {name!r}, row {column.index[at]!r}: {column.iloc[at]!r} is no score: {step}")
    return values


def _items(part: pd.DataFrame, keys: list[str], item: str, *, rated: bool) -> pd.DataFrame:
    """Return one row an item: the humans' mean where several rated it."""
    if item not in keys or not part.duplicated(keys).any():
        return part
    if not rated:
        twice = part.loc[part.duplicated(keys), keys].iloc[0].to_dict()
        raise RagnbError(
            f"{twice} stands there twice; give one row an item, or a column 'rater' to tell them apart"
        )
    grouped = part.groupby(keys, sort=False, dropna=False)
    if (grouped["judge"].nunique() > 1).any():
        torn = (grouped["judge"].nunique() > 1).idxmax()
        raise RagnbError(f"item {torn!r} has several scores of the judge; give one judge and one score an item")
    rest = {name: "first" for name in part.columns if name not in (*keys, "human")}
    return grouped.agg(rest | {"human": "mean"}).reset_index()


def _refuse_overlap(labelled: pd.DataFrame, others: pd.DataFrame, keys: list[str]) -> None:
    first, second = (pd.MultiIndex.from_frame(part[keys].astype(str)) for part in (labelled, others))
    both = second.isin(first)
    if both.any():
        one = others.loc[both, keys].iloc[0].to_dict()
        raise RagnbError(
            f"{int(both.sum())} rows of judged are in ratings too, the first {one}: they would count twice; "
            "leave in judged only what nobody labelled"
        )
