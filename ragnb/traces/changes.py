"""What changed in a log: four measures of the last seven days beside the days before."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats

Values = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
LAST_DAYS = 7  # a week, so that each day of the week is on both sides
LEAST_DAYS = 14
"""Days with requests below which nothing is compared."""
MEASURES = ("refused", "failed", "unsupported", "latency")
COLUMNS = (
    "measure",
    "before_k",
    "before_n",
    "before",
    "now_k",
    "now_n",
    "now",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "outcome",
    "most_day",
    "most_k",
)
DAY_COLUMNS = ("measure", "day", "k", "n", "value")
_MOST_DAYS = 90  # of the picture
# Events of the last days that are of a single day: the share, and the number, from which it is said so.
_ONE_DAY = 0.75
_LEAST_ON_A_DAY = 3  # events, without which a day stands out by chance


class Changes(NamedTuple):
    """The measures, the last seven days beside those before, and each of them by day."""

    measures: pd.DataFrame
    days: pd.DataFrame


def changes(values: dict[str, Any], days: Any, level: float = 0.95) -> Changes:
    """Compare the last seven days of a log with the days before, clustered by day.

    Parameters
    ----------
    values : dict of measure to array
        Of `MEASURES`, one value a request: 0 or 1, of latency seconds; nan where the measure does not apply. A
        measure that no column speaks of is left out.
    days : Series of datetime64 or None
        The day of each request, missing where nothing says.
    level : float
        Of the intervals.

    Returns
    -------
    Changes
        ``measures``: how many of how many before and in the last days, the shares (of latency the medians), the
        difference with its interval, and the outcome: ``rose`` or ``fell`` where Holm's correction over the
        measures leaves it, ``one_day`` where most of the events of the last days are of one of them, else
        ``no_change``; ``all`` where there are fewer than 14 days, and the last days are then all of them.
        ``days``: each measure by day.

    Notes
    -----
    Days are the clusters: a share is a ratio of sums over days. Its standard error is at least that of as many
    independent requests (with one event more of either kind), so that seven days without an event do not look as
    if nothing could happen. Of latency the medians of days are compared. The degrees of freedom are Welch's.

    Examples
    --------
    >>> days = pd.Series(pd.date_range("2026-01-01", periods=20).repeat(30))
    >>> refused = np.r_[np.tile([0.0] * 28 + [1.0] * 2, 13), np.tile([0.0] * 20 + [1.0] * 10, 7)]
    >>> changes({"refused": refused}, days).measures[["before_k", "now_k", "outcome"]].values.tolist()
    [[26, 70, 'rose']]
    """
    if days is None:
        day = pd.Series(pd.NaT, index=range(_size(values)))
    else:
        day = pd.Series(days)
    sides = _sides(day.reset_index(drop=True))
    rows = []
    by_day = []
    for name in MEASURES:
        if name in values:
            value = np.asarray(values[name], dtype=float)
            rows.append(_row(name, value, sides, level))
            by_day.append(_by_day(name, value, sides.codes))
    measures = pd.DataFrame(rows, columns=list(COLUMNS))
    measures["p_holm"] = stats.holm(measures["p"].to_numpy(dtype=float))
    measures["outcome"] = [
        _outcome(row, p_holm, level, sides.are_compared)
        for row, p_holm in zip(rows, measures["p_holm"], strict=True)
    ]
    counts = ("before_k", "before_n", "now_k", "now_n", "most_k")
    measures = measures.astype(dict.fromkeys(counts, "int64"))
    if by_day:
        of_days = pd.concat(by_day, ignore_index=True)
    else:
        of_days = pd.DataFrame(columns=[*DAY_COLUMNS])
    # Codes of days become dates; -1, which is no day, becomes a missing one.
    dates = pd.Series(sides.dates)
    measures["most_day"] = dates.reindex(measures["most_day"].to_numpy(dtype=int)).to_numpy()
    of_days["day"] = dates.reindex(of_days["day"].to_numpy(dtype=int)).to_numpy()
    return Changes(measures, of_days)


class _Sides(NamedTuple):
    """The requests of a log before and in its last days.

    Attributes
    ----------
    dates : index of datetime64
        The days with requests, in order.
    codes : (N,) array of int
        The day of each request among `dates`, -1 where it is missing.
    before, now : (N,) array of bool
        Which requests are of which side; where nothing is compared, all are of now.
    are_compared : bool
    """

    dates: Any
    codes: Codes
    before: Mask
    now: Mask
    are_compared: bool


def _sides(day: pd.Series[Any]) -> _Sides:
    first = first_of_last(day.dropna())
    codes, dates = pd.factorize(day, sort=True)

    are_compared = len(dates) >= LEAST_DAYS and bool((dates < first).any())
    if not are_compared:
        everything = np.ones(len(codes), dtype=bool)
        return _Sides(dates, codes, before=~everything, now=everything, are_compared=False)
    is_known = codes >= 0
    is_last = np.asarray(dates >= first)
    before = is_known & ~is_last[codes]
    now = is_known & is_last[codes]
    return _Sides(dates, codes, before, now, are_compared=True)


def first_of_last(days: pd.Series[Any]) -> Any:
    """Return the first of the last seven days up to the latest of some days; NaT of none.

    Examples
    --------
    >>> first_of_last(pd.to_datetime(pd.Series(["2026-01-01", "2026-01-20"])))
    Timestamp('2026-01-14 00:00:00')
    """
    return days.max() - pd.Timedelta(days=LAST_DAYS - 1)


def _size(values: dict[str, Any]) -> int:
    return max((len(value) for value in values.values()), default=0)


class _Estimate(NamedTuple):
    value: float
    se: float
    df: float


def _row(name: str, value: Values, sides: _Sides, level: float) -> dict[str, Any]:
    """Return a measure, without its outcome."""
    codes = sides.codes
    applies = ~np.isnan(value)
    before = sides.before & applies
    now = sides.now & applies
    is_share = name != "latency"
    middle = np.mean if is_share else np.median
    row: dict[str, Any] = {"measure": name, "most_day": -1, "most_k": 0}
    for side, requests in (("before", before), ("now", now)):
        part = value[requests]
        row[f"{side}_k"] = int(part.sum()) if is_share else 0
        row[f"{side}_n"] = len(part)
        row[side] = float(middle(part)) if len(part) else math.nan
    if is_share and row["now_k"]:
        events = np.bincount(codes[now & (value == 1) & (codes >= 0)])
        # Empty where no event has a day.
        if len(events):
            row["most_day"] = int(events.argmax())
            row["most_k"] = int(events.max())
    row |= {"difference": math.nan, "low": math.nan, "high": math.nan, "p": math.nan}
    if sides.are_compared and before.any() and now.any():
        estimate = _share if is_share else _medians
        old = estimate(value[before], codes[before])
        new = estimate(value[now], codes[now])
        difference = new.value - old.value
        row["difference"] = difference
        se = math.hypot(old.se, new.se)
        if se > 0 and old.df > 0 and new.df > 0:
            df = se**4 / (old.se**4 / old.df + new.se**4 / new.df)  # Welch–Satterthwaite
            row["low"], row["high"] = stats.t_interval(difference, se, df, level)
            row["p"] = stats.t_p_value(difference, se, df)
    return row


def _share(value: Values, codes: Codes) -> _Estimate:
    """Return a share with its standard error and degrees of freedom, days the clusters."""
    share = stats.clustered_mean(value, codes)
    n = len(value)
    n_events = float(value.sum())
    # The error of independent requests, with one more event and one more non-event: see the notes of `changes`.
    careful_share = (n_events + 1) / (n + 2)
    least_se = math.sqrt(careful_share * (1 - careful_share) / n)
    clustered_se = 0.0 if math.isnan(share.se) else share.se
    return _Estimate(share.value, max(clustered_se, least_se), share.n_clusters - 1)


def _medians(value: Values, codes: Codes) -> _Estimate:
    """Return the mean of the medians of days with its standard error and degrees of freedom."""
    medians = _medians_of_days(value, codes)
    n_days = len(medians)
    mean = float(medians.mean())
    if n_days < 2:  # one day has no spread
        return _Estimate(mean, 0.0, 0.0)
    return _Estimate(mean, float(medians.std(ddof=1)) / math.sqrt(n_days), n_days - 1)


def _medians_of_days(value: Values, codes: Codes) -> Values:
    """Return the median of each day that has values, by day."""
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1  # where the next day begins
    return np.array([np.median(of_day) for of_day in np.split(value[order], ends)])


def _outcome(row: dict[str, Any], p_holm: float, level: float, are_compared: bool) -> str:
    """Return what became of a measure: see `changes`."""
    if not are_compared:
        return "all"
    if p_holm <= 1 - level:
        if row["difference"] > 0:
            return "rose"
        return "fell"
    if row["most_k"] >= max(_LEAST_ON_A_DAY, _ONE_DAY * row["now_k"]):
        return "one_day"
    return "no_change"


def _by_day(name: str, value: Values, codes: Codes) -> pd.DataFrame:
    """Return a measure by day, of the last days at most; days by their codes."""
    counts = ~np.isnan(value) & (codes >= 0)
    n = np.bincount(codes[counts])
    k = np.bincount(codes[counts], value[counts])
    days = np.flatnonzero(n)
    if name == "latency" and len(days):
        middle = _medians_of_days(value[counts], codes[counts])
    else:
        middle = k[days] / n[days]
    table = {"measure": name, "day": days, "k": k[days].astype(float), "n": n[days]}
    table["value"] = middle
    return pd.DataFrame(table, columns=list(DAY_COLUMNS)).tail(_MOST_DAYS)
