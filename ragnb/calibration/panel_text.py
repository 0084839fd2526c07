"""The sentences and tables that show a panel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragnb.calibration.panel_frames import PANEL
from ragnb.calibration.ratings import ALL
from ragnb.markup import amount, amounts, count, ends, number, percent, signed
from ragnb.markup.blocks import Mark, Small, Table
from ragnb.texts import load

if TYPE_CHECKING:
    from ragnb.calibration.panels import Panel

_TONES_OF_VERDICTS = {"TRUST": "good", "REJECT": "bad"}  # any other is watched
_TONES_OF_OUTCOMES = {"better": "good", "worse": "bad", "undecided": "none"}


def sentence(panel: Panel, row: Mapping[Any, Any]) -> str:
    """Return what a panel is worth in one dimension, from its row of ``worth``."""
    text = _gain_text(panel, row)
    if not pd.isna(row["saved_low"]):
        text += _labels_text(row, panel.lang)
    if not pd.isna(row["extra_cost"]):
        text += _worth_text(row, panel.lang)
    return text


def _gain_text(panel: Panel, row: Mapping[Any, Any]) -> str:
    """Return how often the panel agrees, compared with its best judge."""
    say = load(panel.lang)
    is_of_panel = panel.judges["judge"] == PANEL
    is_of_dimension = panel.judges["dimension"] == row["dimension"]
    of_panel = panel.judges[is_of_dimension & is_of_panel].iloc[0]
    gain = signed(row["gain"], True)
    low = signed(row["gain_low"], True)
    high = signed(row["gain_high"], True)
    if row["outcome"] != "undecided":
        # The sentence says "more often" or "less often", so the numbers have no sign, and the smaller comes first.
        gain, low, high = (text.lstrip("+−-") for text in (gain, low, high))
        low, high = sorted((low, high), key=float)
    if row["dimension"] == ALL:
        dimension = ""
    else:
        dimension = say("panel.of", name=row["dimension"])
    words = {
        "dimension": dimension,
        "share": percent(of_panel["share"]),
        "best": row["best"],
        "gain": say("gates.points", n=gain),
        "ends": say("sheet.from_to", low=low, high=high),
        "n": count(row["n_labels"]),
        "tolerance": f"{panel.card.tolerance:g}",
    }
    return str(say(f"panel.{row['outcome']}", **words))


def _labels_text(row: Mapping[Any, Any], lang: str) -> str:
    """Return how many labels the panel saves, or how many more it needs."""
    if row["labels_saved"] >= 0:
        key = "saved"
        sign = 1
    else:
        key = "needs"
        sign = -1
    low, high = sorted((sign * row["saved_low"], sign * row["saved_high"]))
    say = load(lang)
    return str(
        say(
            f"panel.{key}",
            labels=_whole(sign * row["labels_saved"]),
            low=_whole(low),
            high=_whole(high),
            n=count(row["n_labels"]),
            best=row["correlated"],
        )
    )


def _worth_text(row: Mapping[Any, Any], lang: str) -> str:
    """Return whether the labels saved are worth the price of the further judges."""
    say = load(lang)
    return str(
        say(
            f"panel.worth_{row['worth']}",
            ends=amounts(row["saved_cost_low"], row["saved_cost_high"]),
            extra=amount(row["extra_cost"]),
            saved=amount(row["saved_cost"]),
        )
    )


def _whole(value: float) -> str:
    """Write a count that may be below 0, with a minus that is as wide as a plus."""
    return count(value).replace("-", "−")


def judges_table(panel: Panel) -> Table:
    """Return the judges side by side, the panel among them."""
    say = load(panel.lang)
    several = panel.judges["dimension"].nunique() > 1
    has_price = panel.judges["price"].notna().any()
    within = say("panel.within", tolerance=f"{panel.card.tolerance:g}")
    heads = [
        say("panel.judge"),
        say("panel.verdict"),
        f">{within}",
        f">{say('panel.bias')}",
        f">{say('panel.mae')}",
        f">{say('panel.rho')}",
        ">n",
    ]
    if several:
        heads.insert(0, say("panel.dimension"))
    if has_price:
        heads.append(f">{say('panel.price')}")
    rows = []
    for row in panel.judges.to_dict("records"):
        if row["judge"] == PANEL:
            judge = say("panel.median")
        else:
            judge = row["judge"]
        cells: list[Any] = [
            judge,
            Mark(_TONES_OF_VERDICTS.get(row["verdict"], "watch"), row["verdict"]),
            (percent(row["share"]), Small(ends(row["low"], row["high"], percent=True))),
            signed(row["bias"]),
            number(row["mae"]),
            (number(row["rho"]), Small(ends(row["rho_low"], row["rho_high"]))),
            count(row["n"]),
        ]
        if several:
            cells.insert(0, row["dimension"])
        if has_price:
            cells.append(amount(row["price"]))
        rows.append(tuple(cells))
    return Table(tuple(heads), tuple(rows), caption=say("panel.caption"))


def added_table(panel: Panel) -> Table:
    """Return what each judge adds to the others."""
    say = load(panel.lang)
    several = panel.added["dimension"].nunique() > 1
    heads = [
        say("panel.judge"),
        f">{say('panel.without')}",
        f">{say('panel.adds')}",
        say("column.outcome"),
    ]
    if several:
        heads.insert(0, say("panel.dimension"))
    rows = []
    for row in panel.added.to_dict("records"):
        adds = say("gates.points", n=signed(row["adds"], True))
        low = signed(row["low"], True)
        high = signed(row["high"], True)
        outcome = row["outcome"]
        cells: list[Any] = [
            row["judge"],
            percent(row["without"]),
            (adds, Small(say("sheet.from_to", low=low, high=high))),
            Mark(_TONES_OF_OUTCOMES[outcome], say(f"panel.adds_{outcome}")),
        ]
        if several:
            cells.insert(0, row["dimension"])
        rows.append(tuple(cells))
    return Table(tuple(heads), tuple(rows), caption=say("panel.added_caption"))
