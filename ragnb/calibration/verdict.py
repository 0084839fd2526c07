"""The verdict on a judge, and the reasons for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.cells import bias, share
from ragnb.calibration.measures import Measures, over_constant
from ragnb.calibration.ratings import Asked, with_ends
from ragnb.calibration.sentences import if_exact, name_of, share_line
from ragnb.calibration.words import (
    INFLATED,
    NOT_PROVEN,
    RANKING_ONLY,
    RECALIBRATE,
    REJECT,
    TRUST,
    text_key,
    told,
)
from ragnb.stats import NONE, Estimate, LabelsNeeded
from ragnb.texts import entry


def verdict_row(
    cells: pd.DataFrame, measures: Measures, groups: pd.DataFrame, asked: Asked
) -> dict[str, Any]:
    """Return the verdict and the interval that it is based on.

    TRUST needs three things at once, each at `level`: the share's one-sided lower bound reaches the target, the
    judge agrees more often than the best constant (one-sided, pair by pair), and the interval of the bias lies
    inside ±delta; so must that of every system which the judge inflates. REJECT: the share's one-sided upper
    bound misses the target. Where labels are planned, each bound holds at every look together.
    """
    score = measures["constant_score"].value
    once = 2 * asked.level - 1  # the two-sided interval whose ends are one-sided bounds at `level`
    plan: dict[str, Any] = {"level": once, "fraction": asked.fraction}
    agrees = share(cells, asked, **plan)
    off = bias(cells, asked, fraction=asked.fraction)
    beats = over_constant(cells, score, asked, **plan).low > 0
    # Written so that nan, where no system is inflated or the plan is spent, takes nothing away.
    most_favoured = groups.loc[groups["inflated"] & (groups["kind"] == "system"), "upper"].max()
    unbiased = asked.accepts(off) and not most_favoured > asked.delta
    if asked.fraction is None:
        widened = 1.0
    elif asked.fraction > 1:
        widened = np.nan  # the plan is spent
    else:
        widened = stats.widening(asked.fraction, agrees.df, level=once)
    if agrees.low >= asked.target and beats and unbiased:
        verdict = TRUST
    elif agrees.high < asked.target:
        verdict = REJECT
    else:
        verdict = NOT_PROVEN
    return {
        "verdict": verdict,
        **with_ends(measures["within"], "share"),
        "lower": agrees.low,
        "upper": agrees.high,
        "target": asked.target,
        "constant": measures["constant"].value,
        "constant_score": score,
        "beats_constant": bool(beats),
        **with_ends(measures["bias"], "bias", "bias_"),
        "bias_lower": off.low,
        "bias_upper": off.high,
        "delta": asked.delta,
        "unbiased": bool(unbiased),
        "n": agrees.n,
        "labels_planned": asked.labels_planned,
        "widened": widened,
        "n_clusters": agrees.n_clusters,
    }


def sides_of(
    verdict: str, ranks: Estimate, maps: pd.DataFrame, groups: pd.DataFrame
) -> tuple[str, ...]:
    """Return the side verdicts, in the order of `SIDES`; TRUST has none."""
    holds = {
        RECALIBRATE: verdict != TRUST and maps["passes"].any(),
        RANKING_ONLY: verdict != TRUST and ranks.low > 0,
        INFLATED: groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"].any(),
    }
    return tuple(side for side, held in holds.items() if held)


def _hopeless(row: Mapping[str, Any]) -> str | None:
    """Return why more labels alone will not lead to TRUST, other than an agreement at or below the target."""
    if row["bias_lower"] > row["delta"] or row["bias_upper"] < -row["delta"]:
        return "bias"
    if np.isfinite(row["share"]) and row["share"] <= row["constant"]:
        return "constant"
    return None


def labels_line(needs: LabelsNeeded, row: Mapping[str, Any], lang: str) -> str:
    """Return how many more labels are needed, or why more of them will not help."""
    hopeless = _hopeless(row)
    if row["verdict"] == TRUST:
        key = "calibration.labels_done"
    elif hopeless and needs.reason != "share_at_or_below_target":
        key = f"calibration.labels_{hopeless}"
    elif needs.reason != "counted":
        key = f"labels.{needs.reason}"
    elif needs.likely is None:
        key = "labels.counted_never_likely"
    elif needs.likely <= row["n"]:
        key = "labels.enough"
    else:
        key = "labels.counted"
    return told(lang, key, row, **asdict(needs))


def reasons_of(
    row: Mapping[str, Any],
    measures: Measures,
    ranks: Estimate,
    frames: Mapping[str, pd.DataFrame],
    needs: str,
    asked: Asked,
) -> tuple[str, ...]:
    """Return the sentences of one judge and dimension, the two that decide first."""
    say = partial(told, asked.lang)
    low, high = asked.scale
    gain = measures["over_constant"]
    facts = {
        **row,
        **with_ends(gain, "gain", "gain_"),
        **with_ends(ranks, "rank", "rank_"),
        "what": name_of(row, asked.lang, alone=True),
        "least": row["widened"] * (asked.fraction or 1) ** 0.25,
        "tolerance": asked.tolerance,
        "part": asked.tolerance / (high - low),
        "scale_low": low,
        "scale_high": high,
        "floor": measures["floor"].value,
        "ceiling": measures.get("ceiling", NONE).value,
        "n_ceiling": measures.get("ceiling", NONE).n,
        "n_rated": measures.get("alpha", NONE).n,
    }
    looks = _looks_of(asked)
    if looks == "spent":
        headline = "spent"
    else:
        headline = text_key(row["verdict"])
    out = [
        say(f"calibration.headline_{headline}", facts),
        share_line(row, asked.tolerance, asked.lang),
        say(f"calibration.look_{looks}", facts),
        say(f"calibration.{_gain_key(row, gain)}", facts),
        say(f"calibration.bias_{_bias_key(row)}", facts),
    ]
    passing = frames["recalibration"].query("passes").sort_values("mae")
    if RECALIBRATE in row["sides"] and len(passing):
        best = passing.iloc[0].to_dict()
        name = entry(asked.lang, "calibration.word")[best["map"]]
        out.append(say("calibration.recalibrate", best, map=name))
    if RANKING_ONLY in row["sides"]:
        out.append(say("calibration.ranking", facts))
    inflated = frames["inflation"].query("inflated and kind in ['overall', 'system']")
    for part in inflated.to_dict("records"):
        if part["kind"] == "system":
            out.append(say("calibration.inflated_system", part))
        else:
            out.append(say("calibration.inflated", part))
    for word in (TRUST, REJECT):
        bands = frames["bands"]
        named = ", ".join(bands.loc[bands["verdict"] == word, "band"])
        if named:
            out.append(say(f"calibration.bands_{text_key(word)}", {"bands": named}))
    out.append(needs)
    out.append(say(f"calibration.width{if_exact(asked.tolerance)}", facts))
    if np.isfinite(facts["ceiling"]):
        out.append(say("calibration.ceiling", facts))
    return tuple(out)


def _looks_of(asked: Asked) -> str:
    """Return whether the labels are looked at once, as planned, or after the plan was spent."""
    if asked.fraction is None:
        return "once"
    if asked.fraction > 1:
        return "spent"
    return "planned"


def _gain_key(row: Mapping[str, Any], gain: Estimate) -> str:
    """Return which sentence says whether a judge beats the best constant score."""
    if row["beats_constant"]:
        return "beats"
    if gain.value > 0:
        return "beats_open"
    return "beats_not"


def _bias_key(row: Mapping[str, Any]) -> str:
    """Return which sentence says where the interval of a judge's bias lies."""
    delta = row["delta"]
    if row["unbiased"]:
        return "inside"
    if _hopeless(row) == "bias":
        return "outside"
    if row["bias_lower"] >= -delta and row["bias_upper"] <= delta:
        # Overall it is inside; one of the systems is not.
        return "system"
    return "open"
