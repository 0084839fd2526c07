"""The radar: two systems and more, or one beside its thresholds as a ring."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragnb import markup
from ragnb.markup.blocks import Picture
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter


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
