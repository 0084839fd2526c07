"""Every metric in one row: what it measures, its weight, its mean on its scale, and what the mean is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ragnb import markup, texts
from ragnb.markup.blocks import Block, Histogram, Mark, Measure, Measures, Picture, Section
from ragnb.schema import records
from ragnb.sheet.formatter import TOTAL, Formatter
from ragnb.weights import why_no_total


def metrics(w: Formatter) -> Section | None:
    """Return the metrics with the overall score first, the rates folded below."""
    names = [*w.total, *w.quality]
    keys = ("metric", "weight", "n", "mean", "scale", "bins")
    heads = tuple(w.say(f"measures.{key}", level=w.level) for key in keys)
    blocks: list[Block] = [Measures(heads, tuple(measure(w, name) for name in names))] if names else []
    ring = radar(w) if w.whole.systems is None and w.sheet.comparison is None else None
    blocks += [ring] if isinstance(ring, Picture) else []
    # Without gold most rates say nothing; they are rows only where all do.
    told = [name for name in w.rates if not pd.isna(w.rows[name]["value"])] or w.rates
    rates = tuple(measure(w, name) for name in told)
    folded = w.say("measures.rates", n=len(rates)) if names else ""
    blocks += [Measures(heads, rates, folded)] if rates else []
    if not blocks:
        return None
    finding, low = metrics_finding(w)
    lead = w.say("measures.lead_weighted" if w.sheet.scenario.doc_weights else "measures.lead", level=w.level)
    badge = Mark("bad", w.say("measures.low", n=low)) if low else ""
    return Section("metrics", w.say("section.metrics"), finding, lead, tuple(blocks), badge, w.lang)


def measure(w: Formatter, metric: str) -> Measure:
    """Return the row of one metric."""
    row, about = w.rows[metric], w.gloss(metric)
    lower, why = w.say("chart.lower") if w.better[metric] == "lower" else "", w.kind_of_gap(row)
    if metric == TOTAL:
        why = why_no_total(w.sheet.means, lang=w.lang) or w.say("sheet.nothing_to_add")
        bands = ", ".join(f"{name} ≥ {at:g}" for name, at in w.thresholds(TOTAL))
        about = "; ".join(filter(None, [w.say("measures.total"), bands]))
    missing = pd.isna(row["value"])
    return Measure(
        w.title(metric), metric, " ".join(filter(None, [about, lower])),
        "" if pd.isna(row["weight"]) else f"{row['weight']:g}", w.coverage(row),
        w.estimate(metric, row, thresholds=w.thresholds(metric)), histogram(w, metric),
        why if missing else "", "" if missing else w.counted(row),
    )  # fmt: skip


def histogram(w: Formatter, metric: str) -> Histogram | None:
    """Return how the scores of a metric spread over its range; a bar below its threshold is marked."""
    rows = w.sheet.spread[w.sheet.spread["metric"] == metric]
    if not len(rows) or not rows["n"].sum():
        return None
    low, high = int(rows["n_low"].iloc[0]), int(rows["n_high"].iloc[0])
    between = rows["n"].to_list()
    between[0] -= low
    between[-1] -= high
    limit, ends = next((at for _, at in w.thresholds(metric)), None), rows[["bin_low", "bin_high"]].to_numpy()
    higher, limit = w.better[metric] == "higher", np.nan if limit is None else limit
    below = ends[:, 1] <= limit + 1e-9 if higher else ends[:, 0] >= limit - 1e-9
    return Histogram(low, tuple(map(int, between)), high, tuple(below.tolist()))


def metrics_finding(w: Formatter) -> tuple[str, int]:
    """Return the finding and how many metrics are beyond their threshold; conclusive where whole intervals are."""
    scored = [name for name in w.quality or w.rates if not pd.isna(w.rows[name]["value"])]
    judged = [name for name in scored if w.thresholds(name)]
    low = [name for name in judged if w.tone(name, w.rows[name]["value"]) in ("watch", "bad")]
    if not scored:
        return w.say("measures.nothing"), 0
    if not judged:
        return texts.counted(w.say, "measures.no_thresholds", len(scored)), 0
    if not low:
        return w.say("measures.none_low"), 0
    near = {name: w.rows[name]["high" if w.better[name] == "higher" else "low"] for name in low}
    sides = {name: 1 if w.better[name] == "higher" else -1 for name in low}
    sure = [name for name in low if sides[name] * (w.thresholds(name)[0][1] - near[name]) > 0]
    if not sure:
        return w.say("measures.maybe", names=w.list(map(w.title, low))), len(low)
    key = "only" if len(sure) == len(low) == 1 and len(judged) > 1 else "one" if len(sure) == 1 else "some"
    finding = w.say(f"measures.{key}", names=w.list(map(w.name, sure)), n=len(sure))
    return finding[:1].upper() + finding[1:], len(low)


def radar(w: Formatter) -> Picture | None:
    """Return the means as a radar; none where it shows nothing that the table does not."""
    values: dict[str, list[Any]]
    changed = w.sheet.comparison
    axes = [name for name in w.axes if not pd.isna(w.rows[name]["value"])]
    if w.whole.systems is not None:
        table = w.whole.systems if w.whole.common is None else w.whole.common
        cells = {(row["system"], row["metric"]): row["value"] for row in records(table)}
        values = {str(one): [cells[one, name] for name in axes] for one in dict.fromkeys(table["system"])}
    elif changed is not None and changed["candidate"].nunique() == 1:
        rows = {row["metric"]: row for row in records(changed) if row["n_common"]}
        axes = [name for name in axes if name in rows]
        names = [changed[role].iloc[0] for role in ("candidate", "baseline")]
        parts = zip(names, ("candidate_mean", "baseline_mean"), strict=True)
        values = {name: [rows[axis][key] for axis in axes] for name, key in parts}
    else:
        axes = [name for name in axes if w.thresholds(name)]
        means = [w.rows[name]["value"] for name in axes]
        values = {w.say("radar.means"): means, w.say("radar.thresholds"): [w.thresholds(n)[0][1] for n in axes]}
    if len(axes) < 3 or len(values) > len(markup.SYSTEM_COLOURS):
        return None
    label = w.say("radar.label", names=w.list(values, most=5))
    picture = markup.radar_svg(
        [w.title(name) for name in axes], values, label=label, radius=105, lang=w.lang,
        ranges={w.title(name): w.scales[name] for name in axes},
        better={w.title(name): w.better[name] for name in axes},
    )  # fmt: skip
    return Picture(picture, label)
