"""Labelled rows and rows that only the judge saw, checked and brought together, so that none counts twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ragnb.calibration.raters import Asked
from ragnb.calibration.ratings import scores_of
from ragnb.errors import RagnbError

Scale = tuple[float, float] | None


def pooled(ratings: Any, judged: Any, judge: str, asked: Asked) -> tuple[pd.DataFrame, list[str]]:
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
        As `agreement`; for a column that only one of the frames has, an item twice, an item in both frames.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 5], "human": [3, None], "cluster": ["a", None]})
    >>> table, groups = pooled(frame, None, "judge", Asked())
    >>> table["cluster"].tolist(), groups
    ([0, 1], [])
    """
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


def _codes(names: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return clusters as whole numbers; a row without a name is its own."""
    codes = pd.factorize(names)[0]
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
