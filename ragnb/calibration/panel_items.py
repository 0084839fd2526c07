"""The items that a panel of judges and people scored, and the estimates over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.calibration.ratings import ALL, PROBABILITY, Asked, sides_of, text_labels
from ragnb.calibration.scores import as_list, numbers, without_missing
from ragnb.stats import Estimate


def items_of(table: pd.DataFrame, scores: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Return one row an item: the judges' scores, the mean of people, dimension, cluster and weight.

    `calibrate` has checked the table; here its columns are read as there.
    """
    rows = scores.copy()
    sides = sides_of([str(name) for name in table], asked)
    people = {
        name: without_missing(numbers(table, name), asked.scale, asked.missing)
        for name in (*sides.human, *sides.raters)
    }
    # A column beside those of single raters is their mean, and is taken as it is.
    if sides.human:
        rows["human"] = people[sides.human[0]]
    else:
        rows["human"] = pd.DataFrame(people, rows.index).mean(axis=1)
    by = [name for name in as_list(asked.by) if name in table]
    if by:
        # As the card has them, whose rows they stand beside: 1.0 is "1", and an empty cell "".
        rows["dimension"] = pd.Series(text_labels(table[by[0]]), rows.index).astype(str)
    else:
        rows["dimension"] = ALL
    has_clusters = asked.cluster is not None and asked.cluster in table
    rows["cluster"] = table[asked.cluster] if has_clusters else np.nan
    rows["weight"] = 1.0
    if PROBABILITY in table:
        # Drawn with unequal chances: each label represents so many answers.
        rows["weight"] = 1 / pd.to_numeric(table[PROBABILITY], errors="coerce")
    # A row is an item already, unless raters have a row each.
    if not sides.is_long:
        return rows
    keys = [rows["dimension"], table[asked.item]]
    keys += [table[name] for name in ("system", "dimension", asked.cluster) if name in table]
    rows_of_item = rows.groupby(keys, sort=False, dropna=False)
    # Only the human score differs between the raters of an item; `calibrate` has refused other tables.
    how: dict[Any, Any] = dict.fromkeys(["dimension", *scores], "first")
    how |= {"human": "mean", "cluster": "first", "weight": "first"}
    return rows_of_item.agg(how).reset_index(drop=True)


@dataclass(frozen=True)
class PanelItems:
    """The items of one dimension that people and all judges scored; `judged` counts those without people, too."""

    scores: pd.DataFrame
    human: pd.Series[float]
    clusters: npt.NDArray[np.intp]
    weights: npt.NDArray[np.float64]
    tolerance: float
    level: float
    judged: int

    @classmethod
    def of(
        cls, rows: pd.DataFrame, judges: list[str], tolerance: float, level: float
    ) -> PanelItems:
        """Return the items among rows of `items_of`."""
        # Judges are compared on the same items, so one that a judge lost is compared with none.
        scored = rows.dropna(subset=judges)
        both = scored.dropna(subset="human")
        clusters = stats.lone_apart(pd.factorize(both["cluster"])[0])
        weights = both["weight"].to_numpy(float)
        return cls(both[judges], both["human"], clusters, weights, tolerance, level, len(scored))

    def within(self, judges: list[str]) -> npt.NDArray[np.float64]:
        """Return for each item whether the median of some judges is within the tolerance of people."""
        return stats.within(self.scores[judges].median(axis=1), self.human, self.tolerance)

    def mean(self, values: Any) -> Estimate:
        """Return the clustered mean of one value an item, a difference of two shares."""
        return stats.clustered_mean(
            values, self.clusters, weights=self.weights, ends=(-1.0, 1.0), level=self.level
        )

    def share(self, judges: list[str]) -> float:
        """Return in how many items the median of some judges is within the tolerance of people."""
        return float(np.average(self.within(judges), weights=self.weights))

    def correlation(self, *panels: list[str]) -> Estimate:
        """Return ρ of the median of some judges and people; of two sets, what the first saves beside the second.

        That is 1 − (1 − ρ²)/(1 − ρ²) of the two, the share of the labels. Where the second explains people wholly
        it is 0: beside it no label is needed, so that none can be saved.
        """
        y = self.human.to_numpy(float)
        # A correlation is a function of these sums, so the jackknife needs nothing but them by cluster.
        columns = [np.ones(len(y)), y, y * y]  # n, Σy, Σy²
        for names in panels:
            x = self.scores[names].median(axis=1).to_numpy(float)
            columns += [x, x * x, x * y]
        rows = np.stack(columns, axis=1) * self.weights[:, None]
        clusters = stats.packed(self.clusters)
        sums = stats.sums_by(clusters, rows)
        sizes = np.bincount(clusters).astype(float)
        if len(panels) == 1:
            return stats.jackknife(_rho, sums, sizes, bounded=True, level=self.level)
        second = _unexplained(sums.sum(axis=0), _SECOND_PANEL)
        if second <= _NOTHING:
            n_clusters = len(sizes)
            return Estimate(0.0, 0.0, 0.0, 0.0, len(y), n_clusters, max(n_clusters - 1.0, 1.0))
        return stats.jackknife(_saving, sums, sizes, level=self.level)


# Where the sums of each of two panels begin, after n, Σy and Σy² of people.
_FIRST_PANEL = 3
_SECOND_PANEL = 6
# A share of variance that is 0 but for rounding; one label in a million that differs leaves more.
_NOTHING = 1e-9


def _rho(sums: npt.NDArray[np.float64], first: int = _FIRST_PANEL) -> npt.NDArray[np.float64]:
    """Return Pearson's correlation with the human scores from sums, those of a panel from `first` on."""
    n, y, yy = np.moveaxis(sums[..., :3], -1, 0)
    x, xx, xy = np.moveaxis(sums[..., first : first + 3], -1, 0)
    # All three are n² times what their names say, which the quotient cancels.
    covariance = n * xy - x * y
    variance_of_panel = n * xx - x * x
    variance_of_people = n * yy - y * y
    return np.asarray(covariance / np.sqrt(variance_of_panel * variance_of_people))


def _saving(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the share of the labels that the first panel saves beside the second (see `panel`)."""
    by_first = _unexplained(sums, _FIRST_PANEL)
    by_second = _unexplained(sums, _SECOND_PANEL)
    # Where the second leaves nothing only without one of the clusters, there is no interval.
    return np.asarray(1 - by_first / np.where(by_second <= _NOTHING, np.nan, by_second))


def _unexplained(sums: npt.NDArray[np.float64], first: int) -> npt.NDArray[np.float64]:
    """Return 1 − ρ² from sums: the share of the variance of people that a panel does not explain."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 - _rho(sums, first) ** 2)
