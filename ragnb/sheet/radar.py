"""The means of a run beside those of its baseline as a radar."""

from __future__ import annotations

from ragnb.markup import blocks
from ragnb.markup.rendering import SYSTEM_COLOURS
from ragnb.sheet.formatter import Formatter


def radar(w: Formatter) -> blocks.Picture | None:
    """Return the means of systems, or of a run and its baseline; nothing of one alone, which repeats its table."""
    # The metrics of quality, else the rates, whose ranges have ends.
    axes = [name for name in w.quality or w.rates if w.span(name) and w.known(name)]
    changed = w.sheet.comparison
    if w.whole.common is None:
        systems = w.whole.systems
    else:
        systems = w.whole.common
    if w.whole.systems is not None:
        parts = systems.set_index("metric")["value"].groupby(
            systems["system"].to_numpy(), sort=False
        )
        values = {str(name): part[axes].tolist() for name, part in parts}
    elif changed is not None and changed["candidate"].nunique() == 1:
        rows = changed[changed["n_common"] > 0].set_index("metric")
        axes = [name for name in axes if name in rows.index]
        roles = ("candidate", "baseline")
        values = {changed[role].iloc[0]: rows.loc[axes, f"{role}_mean"].tolist() for role in roles}
    else:
        return None
    if len(axes) < 3 or len(values) > len(SYSTEM_COLOURS):
        return None
    label = w.say("radar.label", names=w.list(values, most=5))
    return w.radar({w.title(name): name for name in axes}, values, label)
