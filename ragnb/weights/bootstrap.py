"""Percentile intervals by resampling clusters, a check of the intervals of `means`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.weights.means import means_table

if TYPE_CHECKING:
    from ragnb.weights.moments import Moments

_FEWEST = 100


def bootstrapped(
    found: Moments,
    metric_weights: Mapping[str, float] | None,
    doc_weights: Mapping[str, float] | None,
    *,
    resamples: int,
    seed: int,
    level: float,
    **how: bool,
) -> pd.DataFrame:
    """Return the table of `Moments.bootstrap`; `how` is as in `means_table`.

    Raises
    ------
    RagnbError
        As `Moments.bootstrap`.
    """
    if found.corpus == "complete":
        raise RagnbError(
            "the bootstrap resamples documents; corpus='complete' says that these are all of them"
        )
    if resamples < _FEWEST:
        raise RagnbError(
            f"resamples={resamples!r} are too few for an interval; take at least {_FEWEST}"
        )
    table, units, total = means_table(found, metric_weights, doc_weights, level, **how)
    middles = np.append(found.cells.centre, total.centre(found.cells.centre))
    spans = np.array([[m.low, m.high] for m in found.metrics] + [[total.least, total.high]])
    usable = table["n_clusters"].to_numpy().reshape(len(found.rows), len(spans)) >= 2
    ends = np.full((*usable.shape, 3), np.nan)
    order = np.argsort(units.cluster < 0, kind="stable")
    for g in range(len(found.rows)):
        chosen = order[units.group[order] == g]
        sizes = units.size[chosen, 0].astype(np.int64)
        parts = (part[chosen] for part in (units.weight, units.sum, units.variance))
        means = stats.resampled_means(sizes, *parts, resamples=resamples, seed=seed)
        for k in np.flatnonzero(usable[g]):
            drawn = np.clip(means[:, k] + middles[k], *spans[k])
            ends[g, k] = [
                *np.nanquantile(drawn, [0.5 - level / 2, 0.5 + level / 2]),
                np.nanstd(drawn, ddof=1),
            ]
    # Without a range, identical scores contain no information about their variance.
    ends.reshape(-1, 3)[table["low"].isna().to_numpy(), :2] = np.nan
    table[["low", "high", "se"]] = ends.reshape(-1, 3)
    return table
