"""Result frames → matplotlib Axes: what is drawn was computed elsewhere, and every picture says it in words too.

Each function takes the result frame first and ``ax=None`` and returns the Axes. No global setting of
matplotlib is changed.
"""

from ragnb.plots.bins import distribution
from ragnb.plots.canvas import alt_text, cjk_font
from ragnb.plots.counts import outcomes
from ragnb.plots.dots import intervals
from ragnb.plots.output import save, svg
from ragnb.plots.shape import radar

__all__ = ["alt_text", "cjk_font", "distribution", "intervals", "outcomes", "radar", "save", "svg"]
