"""One judge on one dimension as judge × human × cluster cells: what every number on the card is made of."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ragnb.calibration.raters import Array
from ragnb.calibration.ratings import Ratings
from ragnb.stats import Estimate

Codes = npt.NDArray[np.int64]
DEALT = 1000


@dataclass(frozen=True)
class Cells:
    """Rated pairs, each distinct one once; `counts` says how many it stands for.

    `cluster` is None where every rating stands alone. `group` holds one column more, where asked for. `weights`
    are 1 / inclusion probability, on average 1; where they differ, every rating has a cluster, its own at least.
    """

    x: Array
    y: Array
    cluster: Codes | None
    counts: Array
    group: Codes
    weights: Array

    @property
    def how(self) -> dict[str, Any]:
        """What the means of `ragnb.stats` take beside the values."""
        return {"clusters": self.cluster, "counts": self.counts, "weights": self.weights}

    @property
    def sums(self) -> dict[str, Any]:
        """What its functions of sums take, for which a weight is a fraction of a row."""
        return {"clusters": self.cluster, "counts": self.counts * self.weights}

    @property
    def n(self) -> int:
        """How many ratings there are."""
        return round(float(self.counts.sum()))

    @property
    def n_clusters(self) -> int:
        """How many clusters they come from."""
        return self.n if self.cluster is None else len(np.unique(self.cluster))

    def where(self, chosen: Any) -> Cells:
        """Return some of the cells, by flags or by places."""
        return replace(self, **{name: part[chosen] for name, part in vars(self).items() if part is not None})


def cells_of(ratings: Ratings, chosen: npt.NDArray[np.bool_], group: Codes | None = None) -> Cells:
    """Return the distinct pairs among the chosen rows, within clusters and groups.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb.calibration.ratings import Asked, open_ratings
    >>> rows = open_ratings(pd.DataFrame({"judge": [4, 4, 2], "human": [5, 5, 2]}), "judge", Asked())
    >>> cells_of(rows, rows.both).counts.tolist()
    [1.0, 2.0]
    """
    rows = np.flatnonzero(chosen & ratings.both)
    counts, parts = ratings.counts[rows], [(codes[rows], size) for codes, size in ratings.coded]
    for codes in (ratings.cluster, group):
        own = np.zeros(len(rows), dtype=np.int64) if codes is None else codes[rows] - min(int(codes.min()), 0)
        parts.append((own, int(own.max(initial=0)) + 1))
    key, space = np.zeros(len(rows), dtype=np.int64), 1.0
    for own, size in parts:
        key, space = key * max(size, 1) + own, space * max(size, 1)
    if space <= 4 * len(rows) + 4096:
        total = np.bincount(key, weights=counts, minlength=1)
        one = np.zeros(len(total), dtype=np.intp)
        one[key] = np.arange(len(rows))  # any row of a cell shows what it holds
        one, total = one[total > 0], total[total > 0]
    else:
        _, one, at = np.unique(key, return_index=True, return_inverse=True)
        total = np.bincount(at, weights=counts)
    x, y, w = (values[rows[one]] for values in (ratings.x, ratings.y, ratings.weights))
    w, cluster, group = w * total.sum() / max(total @ w, 1e-300), parts[3][0][one], parts[4][0][one]
    cells = Cells(x, y, None if ratings.cluster is None else cluster, total.astype(float), group, w)
    return cells.where(np.lexsort((w, x, y, cluster, group)))


def dealt(cells: Cells, seed: int) -> Cells:
    """Return the cells with at most 1,000 clusters: lone ratings and surplus clusters are dealt into groups.

    Random groups of clusters are clusters themselves (Wolter 2007, Introduction to Variance Estimation,
    chapter 2); a bootstrap over 1,000 of them costs the same for a thousand ratings and for a million.
    """
    rng = np.random.default_rng(seed)
    if cells.cluster is not None:
        names, code = np.unique(cells.cluster, return_inverse=True)
        if len(names) <= DEALT:
            return replace(cells, cluster=code.astype(np.int64))
        return replace(cells, cluster=(rng.permutation(len(names)) % DEALT)[code].astype(np.int64))
    counts = cells.counts.astype(np.int64)
    groups = int(min(DEALT, counts.sum()))
    if cells.n <= 50_000:
        at = np.repeat(np.arange(len(counts)), counts)
        return replace(cells.where(at), cluster=rng.permutation(len(at)) % groups, counts=np.ones(len(at)))
    drawn = rng.multinomial(counts, np.full(groups, 1 / groups))
    at, own = np.nonzero(drawn)
    return replace(cells.where(at), cluster=own.astype(np.int64), counts=drawn[at, own].astype(float))


def fingerprint(parts: list[tuple[str, Cells]]) -> str:
    """Return the SHA-256 of the cells, the same whatever the engine and the order of the rows."""
    digest = hashlib.sha256()
    for name, cells in parts:
        digest.update(name.encode())
        weights = cells.weights if np.ptp(cells.weights) > 0 else None
        for column in (cells.x, cells.y, cells.cluster, cells.counts, weights):
            digest.update(np.round(np.asarray([] if column is None else column, dtype="<f8"), 9).tobytes())
    return digest.hexdigest()


def spread(name: str, found: Estimate) -> dict[str, float]:
    """Return an estimate as ``name, name_low, name_high``."""
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
