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
    day = day.reset_index(drop=True)
    first = first_of_last(day.dropna())
    codes, dates = pd.factorize(day, sort=True)  # of a request whose day is missing the code is -1
    known = codes >= 0
    is_compared = len(dates) >= LEAST_DAYS and bool((dates < first).any())
    now = np.ones(len(codes), dtype=bool)
    before = np.zeros(len(codes), dtype=bool)
    if is_compared:
        is_last = np.asarray(dates >= first)
        now = known & is_last[codes]
        before = known & ~is_last[codes]
    rows = []
    by_day = []
    for name in MEASURES:
        if name in values:
            value = np.asarray(values[name], dtype=float)
            rows.append(_row(name, value, codes, before, now, level, is_compared))
            by_day.append(_by_day(name, value, codes))
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table["p_holm"] = stats.holm(table["p"].to_numpy(dtype=float))
    table["outcome"] = [
        _outcome(row, p_holm, level, is_compared)
        for row, p_holm in zip(rows, table["p_holm"], strict=True)
    ]
    table = table.astype(
        dict.fromkeys(("before_k", "before_n", "now_k", "now_n", "most_k"), "int64")
    )
    of_day = pd.Series(dates)
    table["most_day"] = of_day.reindex(table["most_day"].to_numpy(dtype=int)).to_numpy()
    if by_day:
        every = pd.concat(by_day, ignore_index=True)
    else:
        every = pd.DataFrame(columns=[*DAY_COLUMNS])
    every["day"] = of_day.reindex(every["day"].to_numpy(dtype=int)).to_numpy()
    return Changes(table, every)


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


def _row(
    name: str,
    value: Values,
    codes: Codes,
    before: Mask,
    now: Mask,
    level: float,
    is_compared: bool,
) -> dict[str, Any]:
    """Return a measure, without its outcome."""
    some = ~np.isnan(value)
    sides = [before & some, now & some]
    is_share = name != "latency"
    made: dict[str, Any] = {"measure": name, "most_day": -1, "most_k": 0}
    for side, rows in zip(("before", "now"), sides, strict=True):
        part = value[rows]
        made[f"{side}_k"] = int(part.sum()) if is_share else 0
        made[f"{side}_n"] = len(part)
        middle = np.mean if is_share else np.median
        made[f"{side}"] = float(middle(part)) if len(part) else math.nan
    if is_share and made["now_k"]:
        events = np.bincount(codes[now & (value == 1) & (codes >= 0)])
        if len(events):
            made["most_day"] = int(events.argmax())
            made["most_k"] = int(events.max())
    difference = low = high = p = math.nan
    if is_compared and all(rows.any() for rows in sides):
        estimated = _share if is_share else _medians
        pairs = [estimated(value[rows], codes[rows]) for rows in sides]
        (old, old_se, old_df), (new, new_se, new_df) = pairs
        difference = new - old
        se = math.hypot(old_se, new_se)
        if se > 0 and old_df > 0 and new_df > 0:
            df = se**4 / (old_se**4 / old_df + new_se**4 / new_df)
            low, high = stats.t_interval(difference, se, df, level)
            p = stats.t_p_value(difference, se, df)
    return made | {"difference": difference, "low": low, "high": high, "p": p}


def _share(value: Values, codes: Codes) -> tuple[float, float, float]:
    """Return a share with its standard error and degrees of freedom, days the clusters."""
    share = stats.clustered_mean(value, codes)
    n = len(value)
    k = float(value.sum())
    careful = (k + 1) / (n + 2)
    floor = math.sqrt(careful * (1 - careful) / n)
    return share.value, max(share.se if share.se == share.se else 0.0, floor), share.n_clusters - 1


def _medians(value: Values, codes: Codes) -> tuple[float, float, float]:
    """Return the mean of the medians of days with its standard error and degrees of freedom."""
    medians = _medians_of_days(value, codes)
    if len(medians) < 2:
        return float(medians.mean()), 0.0, 0.0
    return (
        float(medians.mean()),
        float(medians.std(ddof=1)) / math.sqrt(len(medians)),
        len(medians) - 1,
    )


def _medians_of_days(value: Values, codes: Codes) -> Values:
    """Return the median of each day that has values, by day."""
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    return np.array([np.median(part) for part in np.split(value[order], ends)])


def _outcome(row: dict[str, Any], p_holm: float, level: float, is_compared: bool) -> str:
    if not is_compared:
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
    some = ~np.isnan(value) & (codes >= 0)
    n = np.bincount(codes[some])
    k = np.bincount(codes[some], value[some])
    kept = np.flatnonzero(n)
    is_latency = name == "latency" and len(kept) > 0
    if is_latency:
        middle = _medians_of_days(value[some], codes[some])
    else:
        middle = k[kept] / n[kept]
    made = {"measure": name, "day": kept, "k": k[kept].astype(float), "n": n[kept], "value": middle}
    return pd.DataFrame(made, columns=list(DAY_COLUMNS)).tail(_MOST_DAYS)
