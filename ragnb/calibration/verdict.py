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
    constant_score = measures["constant_score"].value
    once = 2 * asked.level - 1  # the two-sided interval whose ends are one-sided bounds at `level`
    plan: dict[str, Any] = {"level": once, "fraction": asked.fraction}
    agrees = share(cells, asked, **plan)
    bias_seen = bias(cells, asked, fraction=asked.fraction)
    beats = over_constant(cells, constant_score, asked, **plan).low > 0
    # Written so that nan, where no system is inflated or the plan is spent, takes nothing away.
    most_favoured = groups.loc[groups["inflated"] & (groups["kind"] == "system"), "upper"].max()
    unbiased = asked.accepts(bias_seen) and not most_favoured > asked.delta
    # With nan for a bound, as of a single cluster, neither comparison holds: NOT PROVEN.
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
        "constant_score": constant_score,
        "beats_constant": bool(beats),
        **with_ends(measures["bias"], "bias", "bias_"),
        "bias_lower": bias_seen.low,
        "bias_upper": bias_seen.high,
        "delta": asked.delta,
        "unbiased": bool(unbiased),
        "n": agrees.n,
        "labels_planned": asked.labels_planned,
        "widened": _widening(asked, agrees.df),
        "n_clusters": agrees.n_clusters,
    }


def _widening(asked: Asked, df: float) -> float:
    """Return the factor by which planned looks widen the interval of the share; nan where the plan is spent."""
    if asked.fraction is None:
        return 1.0
    if asked.fraction > 1:
        return np.nan
    return stats.widening(asked.fraction, df, level=2 * asked.level - 1)


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
    # A share at or below the target has a text of its own, which goes before the other reasons.
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
    facts = _facts(row, measures, ranks, asked)
    looks = _looks_of(asked)
    headline = "spent" if looks == "spent" else text_key(row["verdict"])
    sentences = [
        say(f"calibration.headline_{headline}", facts),
        share_line(row, asked.tolerance, asked.lang),
        say(f"calibration.look_{looks}", facts),
        say(f"calibration.{_gain_key(row, measures['over_constant'])}", facts),
        say(f"calibration.bias_{_bias_key(row)}", facts),
    ]
    passing = frames["recalibration"].query("passes").sort_values("mae")
    if RECALIBRATE in row["sides"] and len(passing):
        best = passing.iloc[0].to_dict()
        name = entry(asked.lang, "calibration.word")[best["map"]]
        sentences.append(say("calibration.recalibrate", best, map=name))
    if RANKING_ONLY in row["sides"]:
        sentences.append(say("calibration.ranking", facts))
    inflated = frames["inflation"].query("inflated and kind in ['overall', 'system']")
    for group in inflated.to_dict("records"):
        if group["kind"] == "system":
            sentences.append(say("calibration.inflated_system", group))
        else:
            sentences.append(say("calibration.inflated", group))
    bands = frames["bands"]
    for verdict in (TRUST, REJECT):
        named = ", ".join(bands.loc[bands["verdict"] == verdict, "band"])
        if named:
            sentences.append(say(f"calibration.bands_{text_key(verdict)}", {"bands": named}))
    sentences.append(needs)
    sentences.append(say(f"calibration.width{if_exact(asked.tolerance)}", facts))
    if np.isfinite(facts["ceiling"]):
        sentences.append(say("calibration.ceiling", facts))
    return tuple(sentences)


def _facts(
    row: Mapping[str, Any], measures: Measures, ranks: Estimate, asked: Asked
) -> dict[str, Any]:
    """Return the numbers that the sentences name."""
    low, high = asked.scale
    # Without single raters there is neither, and no sentence that names them.
    ceiling = measures.get("ceiling", NONE)
    alpha = measures.get("alpha", NONE)
    return {
        **row,
        **with_ends(measures["over_constant"], "gain", "gain_"),
        **with_ends(ranks, "rank", "rank_"),
        "what": name_of(row, asked.lang, alone=True),
        # By the fourth-root rule (see `stats.widening`), what it will be at the last planned look.
        "least": row["widened"] * (asked.fraction or 1) ** 0.25,
        "tolerance": asked.tolerance,
        "part": asked.tolerance / (high - low),
        "scale_low": low,
        "scale_high": high,
        "floor": measures["floor"].value,
        "ceiling": ceiling.value,
        "n_ceiling": ceiling.n,
        "n_rated": alpha.n,
    }


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
