"""The means of a run beside those of its baseline as a radar."""

from __future__ import annotations

from ragnb.markup import blocks
from ragnb.markup.rendering import SYSTEM_COLOURS
from ragnb.sheet.formatter import Formatter


def radar(w: Formatter) -> blocks.Picture | None:
    """Return the means of systems, or of a run and its baseline; nothing of one alone, which repeats its table."""
    # The metrics of quality, else the rates, whose ranges have ends.
    axes = [name for name in w.quality or w.rates if w.span(name) and w.known(name)]
    comparison = w.sheet.comparison
    values: dict[str, list[float]]  # by system, along the axes
    if w.whole.systems is not None:
        # On the questions that all systems answered, where there are such.
        means = w.whole.systems if w.whole.common is None else w.whole.common
        by_metric = means.set_index("metric")["value"]
        of_systems = by_metric.groupby(means["system"].to_numpy(), sort=False)
        values = {str(system): of_system[axes].tolist() for system, of_system in of_systems}
    elif comparison is not None and comparison["candidate"].nunique() == 1:
        rows = comparison[comparison["n_common"] > 0].set_index("metric")
        axes = [name for name in axes if name in rows.index]
        values = {
            comparison[role].iloc[0]: rows.loc[axes, f"{role}_mean"].tolist()
            for role in ("candidate", "baseline")
        }
    else:
        return None
    # A polygon of two axes is a line; one more system than colours would share one.
    if len(axes) < 3 or len(values) > len(SYSTEM_COLOURS):
        return None
    label = w.say("radar.label", names=w.list(values, most=5))
    return w.radar({w.title(name): name for name in axes}, values, label)
