"""Several systems, pair by pair on their common questions, and the ranks that the differences support."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from ragnb import stats
from ragnb.comparison.differences import Margin, compared
from ragnb.comparison.source import pairs_of_systems, run_of
from ragnb.errors import RagnbError, listing
from ragnb.scenario import need_arguments
from ragnb.schema import records

if TYPE_CHECKING:
    from ragnb.scenario.settings import SharedSettings


@dataclass(frozen=True, repr=False)
class Standings:
    """Every pair of systems, and their ranks; made by `standings`.

    Attributes
    ----------
    pairs : DataFrame
        What `compare` returns for each pair in both directions, on the metric that decides; ``p_holm`` is Holm's
        over all pairs, and ``win_rate`` the share of common questions on which the candidate scores higher, ties
        counted as half.
    ranks : DataFrame
        ``system, rank, rank_high, value, win_rate, n_better, n_worse``, the best first: `rank` is one more than
        the systems that are conclusively better, `rank_high` how far down it may be as nothing shows otherwise;
        `value` is the mean difference from the others.
    metric : str
        The metric that decides.
    """

    pairs: pd.DataFrame
    ranks: pd.DataFrame
    metric: str

    @property
    def places(self) -> dict[str, str]:
        """The rank of each system as a text, the best first; ``1–2`` where it is tied."""
        places = {}
        for row in records(self.ranks):
            place = f"{row['rank']}"
            if row["rank_high"] > row["rank"]:
                place += f"–{row['rank_high']}"
            places[row["system"]] = place
        return places

    def __repr__(self) -> str:
        places = ", ".join(f"{name} {place}" for name, place in self.places.items())
        return f"Standings({self.metric}: {places})"


def standings(
    scores: Any,
    *,
    metric: str | None = None,
    system: str = "system",
    on: str | None = None,
    margin: Margin = None,
    **settings: Unpack[SharedSettings],
) -> Standings:
    """Compare every pair of systems on the questions that both were asked, and rank them.

    Parameters
    ----------
    scores : DataFrame, path or Scenario
        As for `compare`, of two systems or more; what `arena` returns.
    metric : str, optional
        That decides; by default the weighted score, as in `compare`.
    on, margin, **settings
        As for `compare`.

    Returns
    -------
    Standings

    Raises
    ------
    RagnbError
        For fewer than two systems, where no metric decides, and as `compare`.

    Examples
    --------
    >>> rows = {"sample_id": [*"abcdef"] * 3, "system": ["a"] * 6 + ["b"] * 6 + ["c"] * 6}
    >>> scores = [.9, .8, .9, .7, .8, .9, .8, .9, .8, .8, .8, .9, .5, .4, .5, .4, .4, .5]
    >>> standings(pd.DataFrame(rows | {"faithfulness": scores}))
    Standings(weighted_score: a 1–2, b 1–2, c 3)
    """
    need_arguments(standings, settings)
    run = run_of(scores, system=system, settings=settings)
    # A candidate that a scenario names decides its gates; here every system is ranked.
    run = replace(run, scenario=run.scenario.model_copy(update={"candidate": None}))
    if len(run.systems) < 2:
        have = listing(run.systems) or "none"
        raise RagnbError(f"standings need two or more systems; column {system!r} names {have}")
    # Each two systems are paired once; the other direction is the same pairs with the sides exchanged.
    once = pairs_of_systems(run, on, couples=itertools.combinations(run.systems, 2))
    by_ends = {(pairs.candidate, pairs.baseline): pairs for pairs in once}
    by_ends |= {(old, new): pairs.swapped for (new, old), pairs in by_ends.items()}
    every = [by_ends[new, old] for old in run.systems for new in run.systems if new != old]
    pairs = compared(every, run.scenario, margin=margin, primary=metric, only_primary=True)
    if pairs.empty:
        raise RagnbError("no metric decides between the systems; name it: metric='…'")
    pairs["p_holm"] = _adjusted_over_pairs(pairs)
    # What all pairs together do not show is what an interval that holds 0 would say.
    alpha = 1 - float(pairs["level"].iloc[0])
    is_shown = pairs["p_holm"] < alpha
    pairs["outcome"] = pairs["outcome"].where(is_shown, pairs["outcome"].replace(_NOT_SHOWN))
    pairs["win_rate"] = (pairs["wins"] + pairs["ties"] / 2) / pairs["n_common"]
    ranks = _ranks_of(pairs)
    return Standings(pairs, ranks, str(pairs["metric"].iloc[0]))


_NOT_SHOWN = {
    "better": "undecided",
    "worse": "undecided",
    "better_within": "same",
    "worse_within": "same",
}


def _adjusted_over_pairs(pairs: pd.DataFrame) -> list[float]:
    """Return the p-values of all pairs after Holm's correction; both directions of a pair are one test."""
    tests = [frozenset(ends) for ends in zip(pairs["candidate"], pairs["baseline"], strict=True)]
    p_of_test = dict(zip(tests, pairs["p"], strict=True))
    adjusted = dict(zip(p_of_test, stats.holm(list(p_of_test.values())), strict=True))
    return [adjusted[test] for test in tests]


def _ranks_of(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the ranks of the systems, the best first; see `Standings`."""
    # Above 0 the system is better, also on a metric of which less is better.
    value = pairs["value"] * pairs["better"].map({"higher": 1.0, "lower": -1.0})
    won = {f"n_{word}": pairs["outcome"] == word for word in ("better", "worse")}
    counts = {"value": "mean", "win_rate": "mean", "n_better": "sum", "n_worse": "sum"}
    ranks = (
        pairs.assign(value=value, **won)
        .groupby("candidate")
        .agg(counts)
        .reset_index(names="system")
    )
    ranks.insert(1, "rank", ranks["n_worse"] + 1)
    ranks.insert(2, "rank_high", len(ranks) - ranks["n_better"])
    return ranks.sort_values(
        ["rank", "rank_high", "value"],
        ascending=[True, True, False],
        kind="stable",
        ignore_index=True,
    )
