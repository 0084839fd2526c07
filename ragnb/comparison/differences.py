"""Systems question by question: paired differences with outcomes, the questions that changed, and ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration import read_rated
from ragnb.calibration.ratings import with_ends
from ragnb.comparison.estimates import (
    FLATTERED,
    TIE,
    detectable,
    difference,
    mean_of,
    outcome_of,
    p_value,
)
from ragnb.comparison.pairs import STATES, Pairs
from ragnb.comparison.people import UNCHECKED, decided_apart, decided_by_people
from ragnb.comparison.source import paired_runs, run_of
from ragnb.errors import RagnbError, listing, need_known
from ragnb.scenario import Scenario, need_arguments
from ragnb.schema import TOTAL
from ragnb.stats import NONE, Estimate
from ragnb.weights.columns import Codes
from ragnb.weights.total import Array, Flags, Total, total_of

if TYPE_CHECKING:
    from ragnb.scenario.settings import SharedSettings

_LITTLE_OVERLAP = 0.3
_SAME_SHARE = 1 / 20
_ABOUT = ("range_low", "range_high", "better", "kind", "role", "weight", "reason")
_OF_METRIC = _ABOUT[3:]  # a slice of that name takes the place of the metric's own
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


@dataclass(frozen=True)
class Column:
    """One metric of the pairs, or their total: the source of one row of the table, which ends in `about`.

    Attributes
    ----------
    metric : str
    about : dict
    scores, own, filled : (2, Q) float
        Of the candidate and the baseline: where both have a score; each side's own; with the worst where one side
        lost its score.
    noise, states : (2, Q)
        As in `Pairs`.
    human : (2, Q) float or None
        As in `Pairs`.
    """

    metric: str
    about: dict[str, Any]
    scores: Array
    own: Array
    filled: Array
    noise: Array
    states: Array
    human: Array | None = None

    @property
    def width(self) -> float:
        """The length of the range."""
        return float(self.about["range_high"] - self.about["range_low"])

    @property
    def gain(self) -> Array:
        """Candidate − baseline of each question, above 0 where it is better."""
        return np.asarray(
            (self.scores[0] - self.scores[1]) * (1 if self.about["better"] == "higher" else -1)
        )


def with_ratings(every: Sequence[Pairs], scenario: Scenario) -> list[Pairs]:
    """Return pairs with the ratings of a scenario, where these tell systems apart."""
    if scenario.ratings is None:
        return [*every]
    ratings = read_rated(scenario.ratings, encoding=scenario.encoding)
    if "system" in ratings:
        return [rated_pairs(one, ratings) for one in every]
    return [*every]


def total_of_pairs(pairs: Pairs, scenario: Scenario) -> Total:
    """Return how the metrics of pairs add up under the settings of a scenario."""
    how: dict[str, Any] = {"orient": scenario.orient, "rescale": scenario.rescale, "strict": False}
    return total_of(pairs.metrics, scenario.metric_weights, **how)


def columns_of(pairs: Pairs, scenario: Scenario) -> list[Column]:
    """Return the metrics of pairs and, last, their weighted score."""
    total = total_of_pairs(pairs, scenario)
    there = ~np.isnan(pairs.scores)
    both: Flags = np.all(there, axis=0)
    worst = np.array(
        [metric.low if metric.better == "higher" else metric.high for metric in pairs.metrics]
    )
    lost = there.any(axis=0) & ~there & (pairs.states != 2).all(axis=0)
    filled = np.where(lost, np.where(np.isfinite(worst), worst, np.nan), pairs.scores)
    abouts: list[tuple[Any, ...]] = [
        (
            m.name,
            m.low,
            m.high,
            m.better,
            m.kind,
            m.role,
            float(w) if m.role == "quality" or w > 0 else np.nan,
            "",
        )
        for m, w in zip(pairs.metrics, total.given, strict=True)
    ]
    abouts.append(
        (TOTAL, total.low, total.high, "higher", "continuous", "total", np.nan, total.reason)
    )

    def added(scores: Array, present: Flags) -> Array:
        """Return the weighted score of each question over the metrics that are present, nan without any."""
        weights = present * total.weights
        score = (weights * (np.nan_to_num(scores) * total.slopes + total.intercepts)).sum(axis=-1)
        with np.errstate(invalid="ignore"):  # 0/0 is nan
            return np.asarray(score / weights.sum(axis=-1))

    share = total.shares(both)
    noise = np.where(share > 0, pairs.noise * (share * total.slopes) ** 2, 0.0).sum(axis=-1)
    parts = {
        "scores": (np.where(both, pairs.scores, np.nan), added(pairs.scores, both)),
        "own": (pairs.scores, added(pairs.scores, there)),
        "filled": (filled, added(filled, np.all(~np.isnan(filled), axis=0))),
        "noise": (pairs.noise, noise),
        "states": (pairs.states, np.zeros(noise.shape, dtype=int)),
    }
    if pairs.human is not None:
        # A metric that nobody rated enters the people's total as it was scored.
        rated = ~np.isnan(pairs.human).all(axis=(0, 1))
        filled_in = np.where(rated, pairs.human, pairs.scores)
        everyone = np.all(~np.isnan(filled_in) | ~both, axis=2)
        people = np.where(everyone, added(filled_in, both), np.nan)
        counts = bool((rated & (total.weights > 0)).any())
        parts["human"] = pairs.human, people if counts else np.full(noise.shape, np.nan)
    # By column, so that what is computed of a column reads its numbers one after the other.
    whole = {
        name: np.concatenate([np.moveaxis(part, -1, 0), last[None]])
        for name, (part, last) in parts.items()
    }
    return [
        Column(
            name,
            dict(zip(_ABOUT, about, strict=True)),
            **{key: part[k] for key, part in whole.items()},
        )
        for k, (name, *about) in enumerate(abouts)
    ]


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
    rows = []
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
            row["_pair"] = number
            rows.append(row)
    table = pd.DataFrame(rows)
    if table.empty:
        return table
    of_pair = table.pop("_pair")
    table["level"] = level
    if by is None:
        family = ~table["primary"] & (table["metric"] != TOTAL)
        table["p_holm"] = table["p"].where(family).groupby(of_pair).transform(stats.holm)
        adjusted = table["p_holm"].where(family, table["p"])
    else:
        each = [of_pair, table["metric"]]
        adjusted = table["p_bh"] = table["p"].groupby(each).transform(_false_discovery)
    ends = zip(table["low"], table["high"], table["margin"], table["better"], adjusted, strict=True)
    words = [
        outcome_of(*two, margin=m, better=better, p=p, alpha=1 - level)
        for *two, m, better, p in ends
    ]
    if "people" in table:
        # What a judge says of a system on which people never checked it decides nothing.
        words = np.where(table["people"] == UNCHECKED, "undecided", words).tolist()
    table["incomplete"] = _lost_too_much(table, scenario) if by is None else False
    table = table.drop(columns="worst_if_lost")
    # Questions are rarely lost at random: what is left must not pass for the whole.
    flattered = table["incomplete"] & np.isin(words, FLATTERED)
    table.insert(3, "outcome", np.where(flattered, "undecided", words).astype(object))
    return table


def _lost_too_much(table: pd.DataFrame, scenario: Scenario) -> pd.Series[bool]:
    """Return of which metrics so many of the baseline's questions are lost that what is left cannot decide.

    Too much is more than ``allow:`` accepts, or, where a scenario accepts no share of its own, so much that the
    difference would be beyond the margin if each lost score were the worst.
    """
    is_too_many = (
        table["n_lost"] > scenario.allow.questions * (table["n_common"] + table["n_lost"]) + TIE
    )
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
        yield from (_row(pairs, column, slice(None), level) for column in columns)
        return
    need_known("by", by, [str(name) for name in pairs.labels], "Neither side has it.")
    if (values := pairs.labels[by]).isna().all():
        raise RagnbError(f"by={by!r}: no question has a value in it")
    for value in sorted(values.dropna().unique(), key=str):
        inside = (values == value).to_numpy()
        for column in columns:
            row = _row(pairs, column, inside, level)
            rest = _difference(pairs, column, column.scores, ~inside, level)
            if by in _LATER or by in row.keys() - set(_OF_METRIC):
                raise RagnbError(
                    f"by={by!r} is also a column of the table; give your column another name"
                )
            row.pop(by, None)  # a kind of question takes the place of the metric's kind
            without = {f"{name}_without": getattr(rest, name) for name in ("value", "low", "high")}
            yield {**dict(list(row.items())[:2]), by: value, **row, **without}


def _row(pairs: Pairs, column: Column, kept: Any, level: float) -> dict[str, Any]:
    """Return one row of the table, over the questions that are kept."""
    weight = pairs.weights[kept]
    clusters = pairs.clusters[kept]
    new, old = column.scores[:, kept]
    scores = column.own[:, kept]
    gain = column.gain[kept]
    there = ~np.isnan(gain) & (weight > 0)
    only = ~np.isnan(scores) & np.isnan(gain) & (weight > 0)
    alone = only.sum(axis=1).tolist()
    paired = _difference(pairs, column, column.scores, kept, level)
    shown = detectable(paired, level)
    noise = _noise(column.noise[:, kept][:, there], weight[there], level)
    row = {
        "candidate": pairs.candidate,
        "baseline": pairs.baseline,
        "metric": column.metric,
        **with_ends(paired),
        "p": p_value(paired),
        "candidate_mean": _mean(new, weight),
        "baseline_mean": _mean(old, weight),
        "se": paired.se,
        "df": paired.df,
        "n_common": paired.n,
        "n_only_candidate": alone[0],
        "n_only_baseline": alone[1],
        "n_lost": _lost(column.states[0, kept][only[1]]),
        "n_left_out": sum(alone),
        "left_out": _left_out(pairs, column.states[:, kept], only),
        "wins": int((gain[there] > TIE).sum()),
        "ties": int((np.abs(gain[there]) <= TIE).sum()),
        "losses": int((gain[there] < -TIE).sum()),
        "correlation": _correlation(new[there], old[there]),
        **_unpaired(scores, clusters, weight, level, pairs.complete),
        "detectable": shown,
        "questions_needed": _questions_needed(paired, shown),
        "noise": noise,
        "below_noise": abs(paired.value) < noise,
        "worst_case": _mean(column.filled[0, kept] - column.filled[1, kept], weight),
        # What the baseline lost is no excuse for what the candidate did.
        "worst_if_lost": _mean(column.filled[0, kept] - scores[1], weight),
        **with_ends(
            _everywhere(paired, scores, only, clusters, weight, level), "all_value", "all_"
        ),
        "n_clusters": paired.n_clusters,
        "n_eff": paired.n_eff,
        "cluster_unit": pairs.unit,
        **column.about,
    }
    if column.human is None:
        return row
    return row | _of_people(pairs, column, kept, paired, level)


def _unpaired(
    own: Array, clusters: Codes, weight: Array, level: float, complete: bool
) -> dict[str, float]:
    """Return the difference of two means as if their questions were not the same ones: what pairing gains."""
    new, old = (mean_of(side, clusters, weight, level, complete) for side in own)
    value = new.value - old.value
    se = float(np.hypot(new.se, old.se))
    half = float(stats.t_quantile(level, max(min(new.df, old.df), 1.0))) * se
    return {
        "unpaired_value": value,
        "unpaired_se": se,
        "unpaired_low": value - half,
        "unpaired_high": value + half,
    }


def _everywhere(
    found: Estimate, own: Array, only: Flags, clusters: Codes, weight: Array, level: float
) -> Estimate:
    """Return the difference over all questions of either side, where common ones alone tell little; else none."""
    few = found.n < _LITTLE_OVERLAP * (found.n + only.sum())
    if not few:
        return NONE
    return stats.contrast(
        own.ravel(),
        np.repeat([True, False], len(weight)),
        clusters=np.tile(clusters, 2),
        weights=np.tile(weight, 2),
        level=level,
    )


def _correlation(new: Array, old: Array) -> float:
    """Return the correlation of both sides; nan of fewer than three questions, and where a side is constant."""
    if len(new) < 3 or np.ptp(new) < TIE or np.ptp(old) < TIE:
        return np.nan
    return float(np.corrcoef(new, old)[0, 1])


def _questions_needed(found: Estimate, shown: float) -> float:
    """Return how many questions would show a difference, where as many as there are show one of `shown`."""
    if abs(found.value) <= TIE:
        # Of no difference no number of questions shows one.
        return np.nan
    return float(np.ceil(found.n * (shown / abs(found.value)) ** 2))


def _of_people(
    pairs: Pairs, column: Column, kept: Any, found: Estimate, level: float
) -> dict[str, Any]:
    """Return the columns of what people say of a difference, and what they change in those of the judge."""
    assert column.human is not None
    weight = pairs.weights[kept]
    clusters = pairs.clusters[kept]
    human = column.human[:, kept]
    new, old = column.scores[:, kept]
    people = decided_by_people(
        human[0] - human[1],
        new - old,
        clusters,
        weight,
        width=column.width,
        level=level,
        complete=pairs.complete,
        is_rated=not np.isnan(human).all(),
    )
    if not people.is_covered and not pairs.complete:
        scores = np.stack([new, old])
        unpaired_ratings = decided_apart(
            human, scores, clusters, weight, width=column.width, level=level
        )
        people = unpaired_ratings or people
    columns = people.as_columns(found)
    if people.is_covered:
        corrected = people.corrected
        columns |= with_ends(corrected)
        columns["se"] = corrected.se
        columns["df"] = corrected.df
        columns["p"] = p_value(corrected)
        columns["detectable"] = detectable(corrected, level)
        # More ratings narrow it too: how many questions would do is not told by the questions alone.
        columns["questions_needed"] = np.nan
    return columns


def _lost(states: Array) -> int:
    """Count the questions that only the baseline scored, without those that the metric does not apply to."""
    return int((states != STATES.index("not_applicable")).sum())


def _left_out(pairs: Pairs, states: Array, only: Flags) -> str:
    """Count why questions scored by one side are not pairs, by the status of the other side's score."""
    parts = []
    for name, lacking in (
        (pairs.candidate, states[0, only[1]]),
        (pairs.baseline, states[1, only[0]]),
    ):
        why = [f"{n} {STATES[k]}" for k, n in enumerate(np.bincount(lacking)) if n and k]
        if why:
            parts += [f"{name}: {', '.join(why)}"]
    return "; ".join(parts)


def _difference(pairs: Pairs, column: Column, sides: Array, kept: Any, level: float) -> Estimate:
    """Return the paired difference of a column's scores, or of people's, over the questions that are kept."""
    return difference(
        sides[0, kept] - sides[1, kept],
        pairs.clusters[kept],
        pairs.weights[kept],
        width=column.width,
        level=level,
        complete=pairs.complete,
    )


def _mean(values: Array, weights: Array) -> float:
    there = ~np.isnan(values) & (weights > 0)
    if there.any():
        return float(np.average(values[there], weights=weights[there]))
    return np.nan


def _noise(variances: Array, weights: Array, level: float) -> float:
    """Return the bound of the mean difference, at `level`, if the systems differed by judge noise alone."""
    from scipy.special import ndtri

    of_question = variances.sum(axis=0)
    if not (repeated := ~np.isnan(of_question)).any():
        return np.nan
    # Questions that were not repeated are as noisy as those that were.
    spread = np.where(repeated, of_question, of_question[repeated].mean())
    return float(ndtri(0.5 + level / 2) * np.sqrt(weights**2 @ spread) / weights.sum())


def primary_of(columns: Sequence[Column], asked: str | None) -> Column | None:
    """Return the metric that decides: the requested one, the total, ``correct_outcome`` or the only one."""
    named = {column.metric: column for column in columns}
    if asked is not None:
        need_known("primary", asked, [*named])
    elif not columns[-1].about["reason"] and columns[-1].width > 0:
        return columns[-1]
    return named.get(asked or "correct_outcome", columns[0] if len(columns) == 2 else None)


def _margins(columns: Sequence[Column], asked: Margin) -> dict[str, float]:
    """Return the margin of each metric; nan where the range is endless and none is given."""
    usual = {c.metric: c.width * _SAME_SHARE if np.isfinite(c.width) else np.nan for c in columns}
    if isinstance(asked, Mapping):
        given = asked
    elif asked is None:
        given = {}
    else:
        given = dict.fromkeys(usual, asked)
    for name, value in given.items():
        need_known("margin", name, list(usual))
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < np.inf:
            raise RagnbError(
                f"margin={value!r} for {name!r}; give a number above 0 in the metric's own units"
            )
    return usual | {name: float(value) for name, value in given.items()}


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
        people = read_rated(ratings)
    if lacking := [name for name in ("item_id", "system", "human") if name not in people]:
        raise RagnbError(
            f"the ratings have no {listing(lacking)}; give one row per item and system, as rn.read_ratings does"
        )
    people = people.astype({"item_id": str, "system": str})
    labels = pairs.labels
    # Answers that were drawn have ids of their own, and beside them those of their questions.
    names = [name for name in (pairs.key, "sample_id") if name in labels]
    found = {
        (name, item): int(labels[name].isin(people[item].astype(str)).sum())
        for name in names
        for item in ("item_id", "sample_id")
        if item in people
    }
    name, item = max(found, key=lambda both: found[both])
    ids = labels[name]
    people = people.assign(item_id=people[item].astype(str))
    human = np.full(pairs.scores.shape, np.nan)
    systems = [pairs.candidate, pairs.baseline]
    for k, metric in enumerate(pairs.metrics):
        if "dimension" in people:
            given = people[people["dimension"] == metric.name]
        else:
            given = people
        means = given.groupby(["item_id", "system"])["human"].mean().unstack()
        human[:, :, k] = means.reindex(ids).reindex(columns=systems).to_numpy(float).T
    return replace(pairs, human=human)
