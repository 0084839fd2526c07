"""What the answers of two systems took on the same questions, and how far that differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.ratings import with_ends
from ragnb.comparison.estimates import difference, outcome_of, p_value
from ragnb.comparison.pairs import ABSENT, FAILED, NOT_APPLICABLE, Pairs
from ragnb.comparison.source import Run, paired_runs, run_of
from ragnb.inputs.operations import ERRORS, operation_names
from ragnb.scenario import need_arguments
from ragnb.schema import Gate, Metric, kind_of_operation, quantile_of
from ragnb.schema.operations import better_of_name
from ragnb.weights import opened
from ragnb.weights.total import Array

if TYPE_CHECKING:
    from ragnb.scenario.settings import SharedSettings

COLUMNS = (
    "candidate",
    "baseline",
    "metric",
    "statistic",
    "outcome",
    "value",
    "low",
    "high",
    "p",
    "p_holm",
    "candidate_value",
    "baseline_value",
    "change",
    "change_low",
    "change_high",
    "n_common",
    "n_clusters",
    "better",
    "level",
)
_NUMBERS = (
    "value",
    "low",
    "high",
    "p",
    "candidate_value",
    "baseline_value",
    "change",
    "change_low",
    "change_high",
)
_LEAST_TOLD = 0.01  # of the baseline's value: a hundredth more latency is no news, however sure
QUANTILES = {"median": 0.5, "p95": 0.95}


def compare_operations(
    scores: Any,
    *,
    baseline: Any = None,
    candidate: str | None = None,
    system: str = "system",
    on: str | None = None,
    **settings: Unpack[SharedSettings],
) -> pd.DataFrame:
    """Compare what the answers of systems took with a baseline: latency, tokens, cost and errors.

    Parameters
    ----------
    scores, baseline, candidate, system, on, **settings
        As for `ragnb.compare`.

    Returns
    -------
    DataFrame
        One row a candidate, measure and statistic (``mean, median, p95``): ``value`` (candidate − baseline on the
        questions that both took a measure of) with its interval ``low, high``, ``p`` and ``p_holm`` (over the rows
        of a candidate), both sides as ``candidate_value, baseline_value``, ``change`` (candidate ÷ baseline − 1,
        of means) with its interval ``change_low, change_high``, and ``outcome``: ``better`` or ``worse`` where the
        interval excludes 0 and ``p_holm`` < 1 − level, else ``undecided``. Empty where the sides share no measure.

    Raises
    ------
    RagnbError
        As `ragnb.compare`.

    Notes
    -----
    Questions are paired and count alike, whatever their documents weigh; documents are the clusters. A mean has
    value ± t·se of the jackknife, its change that of the logarithm of the ratio; a quantile the paired clustered
    bootstrap, see `ragnb.stats.quantile_difference`. Of questions that were answered several times the mean alone
    is compared, as quantiles of their means would hide the slow ones.

    Examples
    --------
    >>> rows = {"sample_id": [*range(20)] * 2, "system": ["new"] * 20 + ["old"] * 20, "faithfulness": 0.9}
    >>> took = [1 + k / 20 for k in range(20)]
    >>> scores = pd.DataFrame(rows | {"latency_s": [*took, *(2 * one for one in took)]})
    >>> compare_operations(scores, baseline="old")[["metric", "statistic", "outcome", "change"]].round(2)
          metric statistic outcome  change
    0  latency_s      mean  better    -0.5
    1  latency_s    median  better     NaN
    2  latency_s       p95  better     NaN
    """
    need_arguments(compare_operations, settings)
    run = run_of(scores, system=system, settings=settings, name="candidate")
    how: dict[str, Any] = {"candidate": candidate, "on": on, "settings": settings}
    other, pairs = paired_runs(run, baseline, **how)
    return operations_beside(run, other, pairs, **how)


def operations_beside(run: Run, other: Run, every: Sequence[Pairs], **how: Any) -> pd.DataFrame:
    """Return the table of `compare_operations` for runs that are read, and whose quality is paired already.

    Parameters
    ----------
    run, other, every, **how
        What `ragnb.comparison.source.paired_runs` was given and returned.
    """
    names = _shared(run, other)
    level = run.scenario.level
    measured: list[Pairs] = []
    if names:
        # Whatever a table holds: a difference needs no range.
        metrics = tuple(Metric(name, -np.inf, np.inf, role="operation") for name in names)
        measured_run = replace(run, metrics=metrics, frame=_finite(run.frame, names))
        if other is run:
            # A baseline inside the run is a system of it; pairs exist, so there is at least one.
            baseline: Any = every[0].baseline
        else:
            baseline = replace(other, metrics=metrics, frame=_finite(other.frame, names))
        _, measured = paired_runs(measured_run, baseline, **how)
    tables = []
    for position, pairs in enumerate(every):
        rows: list[dict[str, Any]] = []
        if measured:
            rows += _measures(measured[position], level)
        rows += _errors(pairs, level)
        tables.append(_decided(pd.DataFrame(rows, columns=list(COLUMNS)), level))
    there = [table for table in tables if len(table)]
    if there:
        return pd.concat(there, ignore_index=True)
    return pd.DataFrame(columns=list(COLUMNS))


def _shared(run: Run, other: Run) -> list[str]:
    """Return the measures of operation of both sides."""
    theirs = operation_names(other.frame, other.metrics)
    return [name for name in operation_names(run.frame, run.metrics) if name in theirs]


def _finite(frame: Any, names: list[str]) -> Any:
    """Return rows in which an infinite measure is missing: it is one that nobody took."""
    columns = []
    for name in names:
        number = nw.col(name).cast(nw.Float64)
        columns.append(nw.when(number.is_finite()).then(number).alias(name))
    return opened(frame).with_columns(*columns).to_native()


def _measures(pairs: Pairs, level: float) -> Iterator[dict[str, Any]]:
    """Yield the rows of each measure: its mean and, where no question was answered twice, its quantiles."""
    repeated = bool(np.isfinite(pairs.noise).any())
    for k, metric in enumerate(pairs.metrics):
        new, old = pairs.scores[:, :, k]
        both = ~(np.isnan(new) | np.isnan(old))
        if not both.any():
            continue
        about = _about(pairs, metric.name, level) | {"better": better_of_name(metric.name)}
        yield about | {"statistic": "mean"} | _mean(pairs, new, old, level)
        if repeated:
            continue
        for statistic, q in QUANTILES.items():
            quantile = stats.quantile_difference(new, old, q, pairs.clusters, level=level)
            yield {
                **about,
                "statistic": statistic,
                **_ends(quantile),
                "p": quantile.p,
                "candidate_value": np.quantile(new[both], q),
                "baseline_value": np.quantile(old[both], q),
            }


def _about(pairs: Pairs, metric: str, level: float) -> dict[str, Any]:
    return {
        "candidate": pairs.candidate,
        "baseline": pairs.baseline,
        "metric": metric,
        "level": level,
    }


def _ends(found: stats.Estimate) -> dict[str, Any]:
    return {**with_ends(found), "n_common": found.n, "n_clusters": found.n_clusters}


def _mean(
    pairs: Pairs, new: Array, old: Array, level: float, width: float = np.inf
) -> dict[str, Any]:
    """Return the difference of two means and their ratio, on common questions."""
    equal_weights = np.ones(len(new))  # document weights apply to scores only
    mean = difference(new - old, pairs.clusters, equal_weights, width=width, level=level)
    both = ~np.isnan(new - old)
    mean_new = float(new[both].mean())
    mean_old = float(old[both].mean())
    row = _ends(mean) | {
        "p": p_value(mean),
        "candidate_value": mean_new,
        "baseline_value": mean_old,
    }
    # A ratio needs two means above 0, its jackknife two clusters.
    if min(mean_new, mean_old) <= 0 or mean.n_clusters < 2:
        return row
    codes = stats.packed(pairs.clusters[both])
    sums_by_cluster = stats.sums_by(codes, np.stack([old[both], new[both]], axis=1))
    sizes = np.bincount(codes).astype(float)
    # Of the logarithm: no end of its interval is a change of −100 % or less.
    log_ratio = stats.jackknife(
        lambda sums: np.log(stats.ratio(sums)), sums_by_cluster, sizes, level=level
    )
    change, low, high = np.expm1([log_ratio.value, log_ratio.low, log_ratio.high])
    if np.isnan(low):
        # All ratios are equal: what is left of the interval is that of the difference.
        low = mean.low / mean_old
        high = mean.high / mean_old
    return row | {"change": change, "change_low": low, "change_high": high}


def _errors(pairs: Pairs, level: float) -> Iterator[dict[str, Any]]:
    """Yield how the share of failed answers differs, on questions that both were asked, where any failed."""
    states = pairs.states
    applies = states != NOT_APPLICABLE
    # An answer has failed if every metric that applies to it has: (2, Q).
    failed = ((states == FAILED) | ~applies).all(axis=2) & applies.any(axis=2)
    asked = (states != ABSENT).any(axis=2).all(axis=0)
    if not failed[:, asked].any():
        return
    new, old = np.where(asked, failed.astype(float), np.nan)
    about = _about(pairs, ERRORS, level) | {"better": "lower", "statistic": "mean"}
    yield about | _mean(pairs, new, old, level, width=1.0)


def _decided(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return rows of one candidate with what they decide, after Holm's correction over all of them."""
    if table.empty:
        return table
    table = table.astype(dict.fromkeys(_NUMBERS, float))
    table["p_holm"] = stats.holm(table["p"])
    table["outcome"] = [
        outcome_of(
            row["low"],
            row["high"],
            margin=np.nan,  # so that nothing is "same"
            better=row["better"],
            p=row["p_holm"],
            alpha=1 - level,
        )
        for row in table.to_dict("records")
    ]
    return table


def with_operations(
    compared: pd.DataFrame | None, table: pd.DataFrame | None, gates: Iterable[Gate]
) -> pd.DataFrame | None:
    """Return the table of `ragnb.compare` with the differences in operation that gates name, as they name them.

    Parameters
    ----------
    compared, table : DataFrame or None
        Of quality, and what `compare_operations` returns.
    gates : iterable of Gate
        With ``not_worse_than``, such as on ``p95(latency_s)``.
    """
    if compared is None or table is None:
        return compared
    there = set(compared["metric"])
    statistic_of = {q: name for name, q in QUANTILES.items()}
    parts = [compared]
    for name in dict.fromkeys(gate.metric for gate in gates if gate.metric not in there):
        q, measure = quantile_of(name) or (None, name)
        # Of a quantile that is not compared, such as the 99th percentile, there are no rows.
        statistic = "mean" if q is None else statistic_of.get(q)
        rows = table[(table["metric"] == measure) & (table["statistic"] == statistic)]
        parts.append(rows.assign(metric=name, range_low=0.0, range_high=np.inf))
    # Frames without rows would turn the whole numbers of the others into floats, and their bools into objects.
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def said_of(table: pd.DataFrame, candidate: str) -> list[Mapping[Any, Any]]:
    """Return the rows of a candidate that its first line tells: what is decided, one statement a measure.

    Of a time the 95th percentile, else the median, else the mean; of all else the mean. A difference that may be
    below 1 % is in the table alone.
    """
    changed = table[(table["candidate"] == candidate) & table["outcome"].isin(["better", "worse"])]
    first: dict[str, Mapping[Any, Any]] = {}
    for statistic in ("p95", "median", "mean"):
        for row in changed[changed["statistic"] == statistic].to_dict("records"):
            # By its name alone the share of errors would be a time.
            is_time = row["metric"] != ERRORS and kind_of_operation(row["metric"]) == "time"
            if statistic != "mean" and not is_time:
                continue
            least = min(abs(row["low"]), abs(row["high"]))
            is_small = least < _LEAST_TOLD * abs(row["baseline_value"])
            if not is_small:
                first.setdefault(row["metric"], row)
    return [first[name] for name in dict.fromkeys(changed["metric"]) if name in first]
