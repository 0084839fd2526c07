"""Cells, the distinct pairs of a judge's score and a human one with their counts, and the means over them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.ratings import Asked, counted
from ragnb.stats import Array, Estimate

MOST_CLUSTERS = 1000  # that a jackknife leaves out one by one; more are put together at random


def cells_of(rows: pd.DataFrame, group: Any = 0) -> pd.DataFrame:
    """Return the distinct pairs among rows of opened ratings, within clusters and groups.

    Returns
    -------
    DataFrame
        ``judge, human, cluster`` (−1 where every rating stands alone), ``count``, the ratings of each, ``weight``,
        1 / inclusion probability, on average 1 (where they differ, every rating has a cluster), ``group``.

    Examples
    --------
    >>> from ragnb.calibration.ratings import open_ratings
    >>> rows = open_ratings(pd.DataFrame({"judge": [4, 4, 2], "human": [5, 5, 2]}), "judge", Asked())[0]
    >>> cells_of(rows)["count"].tolist()
    [1.0, 2.0]
    """
    keys = ["group", "cluster", "human", "judge", "weight"]
    pairs = rows[[*keys[1:], "count"]].assign(group=group).dropna(subset=["human", "judge"])
    # In this order whatever the order of the rows: the fingerprint and the random groups go by it.
    cells = counted(pairs).sort_values(keys, ignore_index=True)
    counts = cells["count"].to_numpy()
    weights = cells["weight"].to_numpy() / cells["weight"].max()  # equal ones are exactly 1
    # Without a single pair the total is 0, and so is what it would divide.
    total_weight = max(float(counts @ weights), 1e-300)
    return cells.assign(weight=weights * counts.sum() / total_weight)


def design(cells: pd.DataFrame, *, of_sums: bool = False) -> dict[str, Any]:
    """Return the keyword arguments of the means in `ragnb.stats`.

    Functions of sums take no weights: for them a weight is a fraction of a row.
    """
    if (cells["cluster"] < 0).all():
        clusters = None
    else:
        clusters = cells["cluster"].to_numpy()
    counts = cells["count"].to_numpy()
    weights = cells["weight"].to_numpy()
    if of_sums:
        by_row = {"counts": counts * weights}
    else:
        by_row = {"counts": counts, "weights": weights}
    return {"clusters": clusters, **by_row}


def flags(cells: pd.DataFrame, asked: Asked) -> Array:
    """Return which pairs agree within the tolerance."""
    return stats.within(cells["judge"], cells["human"], asked.tolerance)


def mean(values: Any, cells: pd.DataFrame, asked: Asked, **options: Any) -> Estimate:
    """Return the clustered mean of one value per cell."""
    settings = {**design(cells), "level": asked.level, **options}
    return stats.clustered_mean(values, **settings)


def share(cells: pd.DataFrame, asked: Asked, **options: Any) -> Estimate:
    """Return the share of pairs within the tolerance."""
    settings = {**design(cells), "tolerance": asked.tolerance, "level": asked.level, **options}
    return stats.within_share(cells["judge"], cells["human"], **settings)


def bias(cells: pd.DataFrame, asked: Asked, **options: Any) -> Estimate:
    """Return the mean of judge − human."""
    settings = {**design(cells), "level": asked.level, **options}
    return stats.bias(cells["judge"], cells["human"], **settings)


def random_groups(cells: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return the cells with at most 1,000 clusters; single ratings and surplus clusters are grouped.

    Random groups of clusters are clusters themselves (Wolter 2007, Introduction to Variance Estimation,
    chapter 2); a bootstrap over 1,000 of them costs the same for a thousand ratings and for a million.
    """
    rng = np.random.default_rng(seed)
    if (cells["cluster"] >= 0).all():
        code = stats.packed(cells["cluster"].to_numpy())
        n_clusters = code.max(initial=-1) + 1
        if n_clusters <= MOST_CLUSTERS:
            return cells
        return cells.assign(cluster=rng.permutation(n_clusters)[code] % MOST_CLUSTERS)
    # The ratings of a cell go to different groups, so they are dealt out one by one and counted again.
    cell_of_rating = np.repeat(np.arange(len(cells)), cells["count"].astype(int))
    n_ratings = len(cell_of_rating)
    n_groups = min(MOST_CLUSTERS, n_ratings)
    group_of_rating = rng.permutation(n_ratings) % n_groups
    # Cell and group in one number, whose repetitions `unique` counts.
    pairs, sizes = np.unique(cell_of_rating * n_groups + group_of_rating, return_counts=True)
    return cells.take(pairs // n_groups).assign(cluster=pairs % n_groups, count=sizes.astype(float))


def fingerprint(parts: Mapping[str, pd.DataFrame]) -> str:
    """Return the SHA-256 of the cells, the same whatever the engine and the order of the rows."""
    digest = hashlib.sha256()
    for name, cells in parts.items():
        digest.update(name.encode())
        columns = ["judge", "human"]
        if not (cells["cluster"] < 0).all():
            columns.append("cluster")
        columns.append("count")
        # Equal weights change no number, so they leave the fingerprint of ratings without chances as it is.
        if np.ptp(cells["weight"]) != 0:
            columns.append("weight")
        # Rows that only the judge scored use up cluster codes, too; packed, they change nothing here.
        codes = cells.assign(cluster=stats.packed(cells["cluster"].to_numpy()))
        for column in columns:
            # As fine as `SLACK`, below which two scores count as equal.
            digest.update(np.round(codes[column].to_numpy(dtype="<f8"), 9).tobytes())
    return digest.hexdigest()
