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
    # Sums are of scores less a centre, see `cells.centres`, which is added again.
    middles = np.append(found.cells.centre, total.centre(found.cells.centre))
    spans = [(metric.low, metric.high) for metric in found.metrics]
    spans.append((total.least, total.high))
    shape = (len(found.rows), len(spans))
    has_interval = table["n_clusters"].to_numpy().reshape(shape) >= 2
    low_high_se = np.full((*shape, 3), np.nan)
    # Clusters before single rows. The numbers of a seed depend on this order.
    order = np.argsort(units.cluster < 0, kind="stable")
    for group in range(len(found.rows)):
        chosen = order[units.group[order] == group]
        means = stats.resampled_means(
            units.size[chosen, 0].astype(np.int64),
            units.weight[chosen],
            units.sum[chosen],
            units.variance[chosen],
            resamples=resamples,
            seed=seed,
        )
        for k in np.flatnonzero(has_interval[group]):
            drawn = np.clip(means[:, k] + middles[k], *spans[k])
            low, high = np.nanquantile(drawn, [0.5 - level / 2, 0.5 + level / 2])
            low_high_se[group, k] = low, high, np.nanstd(drawn, ddof=1)
    by_row = low_high_se.reshape(-1, 3)
    # Without a range, identical scores contain no information about their variance.
    by_row[table["low"].isna().to_numpy(), :2] = np.nan
    table[["low", "high", "se"]] = by_row
    return table
