"""The ladder: of several systems the one with the best score, compared with each of the others, pair by pair."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.comparison.columns import total_of_pairs
from ragnb.comparison.differences import compared, with_ratings
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.simplex import WeightMap
from ragnb.comparison.source import Run, pairs_of_systems
from ragnb.errors import RagnbError
from ragnb.scenario import Scenario
from ragnb.schema import TOTAL, Metric

MOST_RUNGS = 9  # systems below the first that it is compared with: more are a table to rank, not to choose from
_CLAIMS = ("better", "better_within", "worse", "worse_within")


class Ladder(NamedTuple):
    """The system with the best score beside each other one.

    Attributes
    ----------
    table : DataFrame or None
        As `compare`; None where there is nothing to compare.
    maps : tuple of WeightMap
        For each pair at which weights of the metrics which of the two leads; none where the metrics do not add up,
        or where ratings of people decide.
    """

    table: pd.DataFrame | None = None
    maps: tuple[WeightMap, ...] = ()


def ladder(scenario: Scenario, frame: Any, metrics: list[Metric], systems: pd.DataFrame) -> Ladder:
    """Compare the system with the best score with the others; empty where a candidate or a baseline is named.

    Parameters
    ----------
    systems : DataFrame
        The means of each system, with the column ``system``.

    Returns
    -------
    Ladder
        The first system against each other one in the order of their scores. ``p_holm`` of the
        metric that decides is adjusted over the pairs, and a pair that no longer holds is ``undecided``. Empty,
        too, where nothing decides between the systems, or they have no question in common.

    Examples
    --------
    >>> rows = {"sample_id": [*"abcdef"] * 2, "system": ["new"] * 6 + ["old"] * 6}
    >>> scores = pd.DataFrame(rows | {"faithfulness": [.9, .8, .9, .7, .8, .9, .5, .4, .5, .4, .4, .5]})
    >>> means = pd.DataFrame({"system": ["new", "old"], "metric": "weighted_score", "value": [.8, .45]})
    >>> found = ladder(Scenario.without_files(), scores, [Metric("faithfulness")], means).table
    >>> found.loc[found["primary"], ["candidate", "baseline", "outcome"]].values.tolist()
    [['new', 'old', 'better']]
    """
    if scenario.baseline is not None or scenario.candidate is not None:
        return Ladder()
    totals = systems[(systems["metric"] == TOTAL) & systems["value"].notna()]
    order = totals.sort_values("value", ascending=False, kind="stable")["system"].tolist()
    if len(order) < 2:
        return Ladder()
    first, *others = order
    run = Run(scenario.name, scenario, frame, tuple(metrics))
    couples = [(str(first), str(other)) for other in others[:MOST_RUNGS]]
    try:
        pairs = list(pairs_of_systems(run, couples=couples))
    except RagnbError:  # no question in common, or nothing that tells questions
        return Ladder()
    table = compared(with_ratings(pairs, scenario), scenario)
    decides = table["primary"].to_numpy()
    if not decides.any():
        return Ladder()
    # The pairs are as many tests of the metric that decides: only its rows are adjusted over them.
    adjusted = stats.holm(table["p"].where(decides))
    no_longer = decides & (adjusted >= 1 - scenario.level) & table["outcome"].isin(_CLAIMS)
    table["p_holm"] = np.where(decides, adjusted, table["p_holm"])
    table = table.assign(outcome=table["outcome"].mask(no_longer, "undecided"))
    if scenario.ratings is not None:
        return Ladder(table)
    return Ladder(table, _maps(pairs, scenario))


def _maps(pairs: list[Pairs], scenario: Scenario) -> tuple[WeightMap, ...]:
    """Return the weight map of each pair, none where the metrics of one cannot be added up."""
    with suppress(RagnbError):
        return tuple(
            WeightMap.of(one, total_of_pairs(one, scenario), scenario.level) for one in pairs
        )
    return ()
