"""The frames of a panel: its judges side by side, what each adds, and what the panel is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.card import CalibrationCard
from ragnb.calibration.panel_items import PanelItems
from ragnb.stats import Estimate

PANEL = "panel"
"""The median of the judges, as a judge."""
JUDGES = (
    "dimension",
    "judge",
    "verdict",
    "share",
    "low",
    "high",
    "bias",
    "mae",
    "rho",
    "rho_low",
    "rho_high",
    "n",
    "n_clusters",
    "price",
)
ADDED = (
    "dimension",
    "judge",
    "adds",
    "low",
    "high",
    "p",
    "p_holm",
    "outcome",
    "without",
    "n",
    "n_clusters",
)
WORTH = (
    "dimension",
    "best",
    "gain",
    "gain_low",
    "gain_high",
    "outcome",
    "correlated",
    "labels_saved",
    "saved_low",
    "saved_high",
    "n_labels",
    "n_judged",
    "extra_cost",
    "saved_cost",
    "saved_cost_low",
    "saved_cost_high",
    "worth",
)
Parts = Sequence[tuple[Any, PanelItems]]  # dimensions, with their items


def judges_frame(
    card: CalibrationCard, parts: Parts, judges: list[str], prices: Mapping[str, float] | None
) -> pd.DataFrame:
    """Return one row a dimension and judge, the panel among them: the card's figures, ρ and the price."""
    table = card.verdicts[[name for name in JUDGES if name in card.verdicts]].copy()
    mae = card.table[card.table["measure"] == "mae"].set_index(["judge", "dimension"])["value"]
    table["mae"] = [mae.get((row.judge, row.dimension), np.nan) for row in table.itertuples()]
    items_of_dimension = dict(parts)
    rhos = []
    for row in table.itertuples():
        of_judge = judges if row.judge == PANEL else [str(row.judge)]
        items = items_of_dimension.get(row.dimension)
        rhos.append(stats.NONE if items is None else items.correlation(of_judge))
    table["rho"] = [rho.value for rho in rhos]
    table["rho_low"] = [rho.low for rho in rhos]
    table["rho_high"] = [rho.high for rho in rhos]
    if prices is None:
        price_of = {}
    else:
        price_of = {**prices, PANEL: sum(prices.values())}
    table["price"] = table["judge"].map(price_of).astype(float)
    # The card goes by judge; here the judges of a dimension are side by side, dimensions in the card's order.
    dimension = pd.Categorical(table["dimension"], list(dict.fromkeys(table["dimension"])))
    order = np.argsort(dimension.codes, kind="stable")
    return table.iloc[order][list(JUDGES)].reset_index(drop=True)


def added_frame(parts: Parts, judges: list[str]) -> pd.DataFrame:
    """Return one row a dimension and judge: the panel's share less that of the panel without the judge."""
    tables = []
    for dimension, items in parts:
        of_panel = items.within(judges)
        rows = []
        for name in judges:
            rest = [other for other in judges if other != name]
            adds = items.mean(of_panel - items.within(rest))
            rows.append(
                {
                    "dimension": dimension,
                    "judge": name,
                    "adds": adds.value,
                    "low": adds.low,
                    "high": adds.high,
                    "p": _p(adds),
                    "without": items.share(rest),
                    "n": adds.n,
                    "n_clusters": adds.n_clusters,
                }
            )
        table = pd.DataFrame(rows)
        table["p_holm"] = stats.holm(table["p"].to_numpy(float))
        is_shown = table["p_holm"] < 1 - items.level
        # The intervals are of one judge each; Holm's correction over the judges must agree.
        table["outcome"] = [
            _outcome(low, high) if shown else "undecided"
            for low, high, shown in zip(table["low"], table["high"], is_shown, strict=True)
        ]
        tables.append(table[list(ADDED)])
    if tables:
        return pd.concat(tables, ignore_index=True)
    return pd.DataFrame(columns=list(ADDED))


def _p(difference: Estimate) -> float:
    """Return the two-sided p-value of a difference of 0; nan without a standard error."""
    if difference.se > 0:
        return stats.t_p_value(difference.value, difference.se, difference.df)
    return np.nan


def _outcome(low: float, high: float) -> str:
    """Return on which side of 0 the interval of a difference lies; one that is missing decides nothing."""
    if low > 0:
        return "better"
    if high < 0:
        return "worse"
    return "undecided"


def worth_frame(
    parts: Parts,
    judges: list[str],
    prices: Mapping[str, float] | None,
    label_price: float | None,
    n_items: int | None,
) -> pd.DataFrame:
    """Return one row a dimension: the panel beside its best judge, the labels that it saves, and their price."""
    rows = []
    for dimension, items in parts:
        n_labels = len(items.human)
        if n_labels == 0:
            continue
        best = max(judges, key=lambda name: items.share([name]))
        gain = items.mean(items.within(judges) - items.within([best]))
        # Of a judge that gives one score ρ is nan; it loses to every ρ, which is -1 or more.
        rhos = pd.Series({name: items.correlation([name]).value for name in judges}).fillna(-2.0)
        closest = max(judges, key=lambda name: rhos[name])
        saving = items.correlation(judges, [closest])
        n_judged = items.judged if n_items is None else n_items
        row: dict[str, Any] = {
            "dimension": dimension,
            "best": best,
            "gain": gain.value,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "outcome": _outcome(gain.low, gain.high),
            "correlated": closest,
            "labels_saved": n_labels * saving.value,
            "saved_low": n_labels * saving.low,
            "saved_high": n_labels * saving.high,
            "n_labels": n_labels,
            "n_judged": n_judged,
        }
        if prices is not None and label_price is not None:
            # The judge with the highest correlation is paid for in any case.
            extra_cost = (sum(prices.values()) - prices[closest]) * n_judged
            saved_cost_low = label_price * n_labels * saving.low
            saved_cost_high = label_price * n_labels * saving.high
            row["extra_cost"] = extra_cost
            row["saved_cost"] = label_price * n_labels * saving.value
            row["saved_cost_low"] = saved_cost_low
            row["saved_cost_high"] = saved_cost_high
            row["worth"] = _pays(saved_cost_low, saved_cost_high, extra_cost)
        rows.append(row)
    return pd.DataFrame(rows, columns=list(WORTH))


def _pays(low: float, high: float, cost: float) -> str:
    """Return whether what is saved, of which an interval is known, is more than a cost."""
    if low > cost:
        return "yes"
    if high < cost:
        return "no"
    return "undecided"
