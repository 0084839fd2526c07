"""Systems question by question: paired differences with outcomes, the questions that changed, and ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration import reading_of_rated
from ragnb.comparison.columns import Column, columns_of, primary_of
from ragnb.comparison.estimates import FLATTERED, TIE, outcome_of
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.people import UNCHECKED
from ragnb.comparison.row import SAME_SHARE, difference_of, row_of
from ragnb.comparison.source import paired_runs, run_of
from ragnb.errors import RagnbError, listing, need_known
from ragnb.scenario import Scenario, need_arguments
from ragnb.schema import TOTAL

if TYPE_CHECKING:
    from ragnb.scenario.settings import SharedSettings

# A slice of that name takes the place of the metric's own.
_OF_METRIC = ("kind", "role", "weight", "reason")
_LATER = ("outcome", "primary", "margin", "level", "p_bh")
Margin = float | Mapping[str, float] | None


def compare(
    scores: Any,
    *,
    baseline: Any = None,
    candidate: str | None = None,
    system: str = "system",
    margin: Margin = None,
    by: str | None = None,
    on: str | None = None,
    primary: str | None = None,
    ratings: Any = None,
    **settings: Unpack[SharedSettings],
) -> pd.DataFrame:
    """Compare systems with a baseline on their common questions.

    Parameters
    ----------
    scores : DataFrame, path or Scenario
        Of one system or several (column `system`), on any engine: scores, labelled traces, or with ``gold=``
        traces; a file, a scenario, the folder of a run, ``reports/<scenario>/latest``, a run of a store
        (``runs.sqlite#3fa1c2d4``).
    baseline : str, DataFrame or path
        A system of `scores`, or another source of the same kinds. By default that of the scenario.
    candidate : str, optional
        The system to compare; by default every other one.
    system : str
        The column that names systems.
    margin : float or mapping of metric to float, optional
        *same* means that the whole interval is within ± margin; by default a twentieth of a metric's range.
    by : str, optional
        A column, such as the document or a kind of question: one row per value of it and metric, and what the
        difference is without it. A column called kind, role, weight or reason takes the place of the metric's own.
    on : str, optional
        The column that identifies questions; by default ``sample_id``, or ``question`` if ids do not match.
    primary : str, optional
        The metric that decides; by default the weighted score, else ``correct_outcome``, else the only metric.
    ratings : DataFrame, optional
        Human ratings (``item_id, dimension, judge, human, system``): for each metric that people rated, ``value``
        and its interval are the judge's difference corrected by theirs, and decide; see Notes.
    **settings
        Fields of `Scenario`, such as ``metrics=``, ``metric_weights=``, ``doc_weights=``, ``level=``, ``corpus=``.

    Returns
    -------
    DataFrame
        One row per candidate and metric, then the weighted score: ``candidate, baseline, metric, outcome, value``
        (candidate − baseline) with its interval ``low, high``, ``p`` and ``p_holm`` (over the metrics that are not
        primary; `by` has ``p_bh``, Benjamini and Hochberg's over its values), both means on the common questions,
        ``n_common``, ``n_only_candidate, n_only_baseline``, ``n_lost`` (of the latter those to which the
        metric applies) and ``left_out`` (why), ``wins, ties, losses``,
        ``correlation``, the interval without pairing (``unpaired_low, unpaired_high``), ``detectable`` (the
        difference that such a set shows at 80 % power), ``questions_needed`` (to show the difference seen),
        ``worst_case`` (the difference if every score that one side lacks were the worst), ``noise`` (what repeats
        alone differ by, 95 %) and ``below_noise``. ``outcome``: ``better`` or ``worse`` where the interval
        excludes 0 and, but for the primary, ``p_holm`` < 1 − level, then ``better_within`` or ``worse_within``
        where all of it is within ± margin; else ``same`` where it is within ± margin; else ``undecided``.
        ``incomplete``: more of the questions that the baseline scored are lost than ``allow:`` accepts (5 %), or
        with each lost score at its worst the difference would leave the margin; only ``worse`` is then concluded.

    Raises
    ------
    RagnbError
        For systems and columns that do not exist, sources without a common question, and metrics of different
        ranges on the two sides.

    Notes
    -----
    A question counts if both systems have a score, so a failure of one never helps it. Documents are the
    clusters, as in `weighted_means`; repeats of a question enter as their mean. The interval is value ± t·se with
    the delete-one-document jackknife.

    With `ratings`, H is the difference of human ratings on a question rated for both systems, D the judge's: value
    = mean H + λ·(mean D over all − mean D over the rated), by `stats.ppi_jackknife`. The table then has
    ``judge_value`` and ``human_value`` with their intervals, ``n_human``, ``judge_bias`` (mean D − H on the rated)
    with its interval, and ``people``: ``decided``, ``unchecked`` (fewer than 20 pairs or 5 clusters: the metric is
    undecided) or ``unrated`` (nobody rated the metric: the judge's difference stands).

    Examples
    --------
    >>> rows = {"sample_id": [*"abcdef"] * 2, "system": ["new"] * 6 + ["old"] * 6}
    >>> scores = pd.DataFrame(rows | {"faithfulness": [.9, .8, .9, .7, .8, .9, .5, .6, .5, .4, .4, .5]})
    >>> compare(scores, baseline="old")[["metric", "outcome", "value", "n_common"]].round(3)
               metric outcome  value  n_common
    0    faithfulness  better   0.35         6
    1  weighted_score  better   0.35         6
    """
    need_arguments(compare, settings)
    run = run_of(scores, system=system, settings=settings, name="candidate")
    _, pairs = paired_runs(run, baseline, candidate, on, by, settings)
    if ratings is not None:
        pairs = [rated_pairs(one, ratings) for one in pairs]
    return compared(pairs, run.scenario, margin=margin, by=by, primary=primary)


def with_ratings(every: Sequence[Pairs], scenario: Scenario) -> list[Pairs]:
    """Return pairs with the ratings of a scenario, where these tell systems apart."""
    if scenario.ratings is None:
        return [*every]
    ratings = reading_of_rated(scenario.ratings, encoding=scenario.encoding).frame
    if "system" in ratings:
        return [rated_pairs(one, ratings) for one in every]
    return [*every]


def compared(
    every: Iterable[Pairs],
    scenario: Scenario,
    *,
    margin: Margin = None,
    by: str | None = None,
    primary: str | None = None,
    only_primary: bool = False,
) -> pd.DataFrame:
    """Return the table of `compare` for candidates under the settings of a scenario, or of it what decides."""
    level = scenario.level
    rows: list[dict[str, Any]] = []
    for number, pairs in enumerate(every):
        columns = columns_of(pairs, scenario)
        decides = primary_of(columns, primary)
        margins = _margins(columns, margin)
        if only_primary:
            if decides is None:
                continue
            columns = [decides]
        for row in _rows(pairs, columns, by, level):
            is_primary = decides is not None and row["metric"] == decides.metric
            row["primary"] = is_primary
            row["margin"] = margins[row["metric"]]
            # Not the name of the candidate: p-values are adjusted within each pair, and pairs of one candidate
            # with several baselines are in one table, see `standings`.
            row["_pair"] = number
            rows.append(row)
    table = pd.DataFrame(rows)
    if table.empty:
        return table
    of_pair = table.pop("_pair")
    table["level"] = level
    if by is None:
        # The metric that decides is named beforehand, so it is not one of many; the total stays out, too.
        family = ~table["primary"] & (table["metric"] != TOTAL)
        table["p_holm"] = table["p"].where(family).groupby(of_pair).transform(stats.holm)
        adjusted = table["p_holm"].where(family, table["p"])
    else:
        each = [of_pair, table["metric"]]
        adjusted = table["p_bh"] = table["p"].groupby(each).transform(_false_discovery)
    outcomes = _outcomes(table, adjusted, alpha=1 - level)
    if by is None:
        table["incomplete"] = _lost_too_much(table, scenario)
    else:
        table["incomplete"] = False
    table = table.drop(columns="worst_if_lost")
    # Questions are rarely lost at random: what is left must not pass for the whole.
    is_flattered = table["incomplete"] & np.isin(outcomes, FLATTERED)
    table.insert(3, "outcome", np.where(is_flattered, "undecided", outcomes).astype(object))
    return table


def _outcomes(table: pd.DataFrame, adjusted: pd.Series[float], alpha: float) -> list[str]:
    """Return the word for each difference, given its adjusted p-value."""
    ends = zip(table["low"], table["high"], table["margin"], table["better"], adjusted, strict=True)
    outcomes = [
        outcome_of(low, high, margin=margin, better=better, p=p, alpha=alpha)
        for low, high, margin, better, p in ends
    ]
    if "people" not in table:
        return outcomes
    # What a judge says of a system on which people never checked it decides nothing.
    return [
        "undecided" if people == UNCHECKED else outcome
        for people, outcome in zip(table["people"], outcomes, strict=True)
    ]


def _lost_too_much(table: pd.DataFrame, scenario: Scenario) -> pd.Series[bool]:
    """Return of which metrics so many of the baseline's questions are lost that what is left cannot decide.

    Too much is more than ``allow:`` accepts, or, where a scenario accepts no share of its own, so much that the
    difference would be beyond the margin if each lost score were the worst.
    """
    n_scored = table["n_common"] + table["n_lost"]  # by the baseline
    is_too_many = table["n_lost"] > scenario.allow.questions * n_scored + TIE
    if "questions" in scenario.allow.model_fields_set:
        return is_too_many
    sign = table["better"].map({"higher": 1.0, "lower": -1.0})
    is_beyond = sign * table["worst_if_lost"] < -table["margin"] - TIE
    return is_too_many | ((table["n_lost"] > 0) & is_beyond)


def _rows(
    pairs: Pairs, columns: Sequence[Column], by: str | None, level: float
) -> Iterator[dict[str, Any]]:
    """Yield one row per metric or, with `by`, per value of a column and metric, with the difference without it."""
    if by is None:
        yield from (row_of(pairs, column, slice(None), level) for column in columns)
        return
    need_known("by", by, [str(name) for name in pairs.labels], "Neither side has it.")
    values = pairs.labels[by]
    if values.isna().all():
        raise RagnbError(f"by={by!r}: no question has a value in it")
    for value in sorted(values.dropna().unique(), key=str):
        inside = (values == value).to_numpy()
        for column in columns:
            row = row_of(pairs, column, inside, level)
            rest = difference_of(pairs, column, column.scores, ~inside, level)
            if by in _LATER or by in row.keys() - set(_OF_METRIC):
                raise RagnbError(
                    f"by={by!r} is also a column of the table; give your column another name"
                )
            row.pop(by, None)  # a kind of question takes the place of the metric's kind
            # The value comes after the two systems, before the metric.
            names = {name: row.pop(name) for name in ("candidate", "baseline")}
            without = {
                "value_without": rest.value,
                "low_without": rest.low,
                "high_without": rest.high,
            }
            yield names | {by: value} | row | without


def _margins(columns: Sequence[Column], asked: Margin) -> dict[str, float]:
    """Return the margin of each metric; nan where the range is endless and none is given."""
    margins = {}
    for column in columns:
        margins[column.metric] = column.width * SAME_SHARE if np.isfinite(column.width) else np.nan
    if isinstance(asked, Mapping):
        given = asked
    elif asked is None:
        given = {}
    else:
        given = dict.fromkeys(margins, asked)
    for name, value in given.items():
        need_known("margin", name, list(margins))
        # True and False are numbers to Python.
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < np.inf:
            raise RagnbError(
                f"margin={value!r} for {name!r}; give a number above 0 in the metric's own units"
            )
        margins[name] = float(value)
    return margins


def _false_discovery(p: pd.Series[float]) -> pd.Series[float]:
    """Return p-values adjusted as Benjamini and Hochberg do (1995, J. R. Stat. Soc. B 57, 289–300)."""
    from scipy.stats import false_discovery_control

    known = p.dropna()
    if len(known):
        return pd.Series(false_discovery_control(known), known.index).reindex(p.index)
    return p


def rated_pairs(pairs: Pairs, ratings: Any) -> Pairs:
    """Return pairs with what people gave both systems, their ratings of a question found by its id or text."""
    if isinstance(ratings, pd.DataFrame):
        people = ratings
    else:
        people = reading_of_rated(ratings).frame
    lacking = [name for name in ("item_id", "system", "human") if name not in people]
    if lacking:
        raise RagnbError(
            f"the ratings have no {listing(lacking)}; give one row per item and system, as rn.read_ratings does"
        )
    people = people.astype({"item_id": str, "system": str})
    labels = pairs.labels
    # Answers that were drawn have ids of their own, and beside them those of their questions. The two columns that
    # name most questions in common are taken.
    n_found = {}
    for name in (pairs.key, "sample_id"):
        for item in ("item_id", "sample_id"):
            if name in labels and item in people:
                is_rated = labels[name].isin(people[item].astype(str))
                n_found[name, item] = int(is_rated.sum())
    name, item = max(n_found, key=lambda both: n_found[both])
    ids = labels[name]
    people = people.assign(item_id=people[item].astype(str))
    human = np.full(pairs.scores.shape, np.nan)
    systems = [pairs.candidate, pairs.baseline]
    for k, metric in enumerate(pairs.metrics):
        if "dimension" in people:
            given = people[people["dimension"] == metric.name]
        else:
            given = people
        means = given.groupby(["item_id", "system"])["human"].mean().unstack()  # items × systems
        human[:, :, k] = means.reindex(ids).reindex(columns=systems).to_numpy(float).T
    return replace(pairs, human=human)
