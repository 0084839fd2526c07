"""Result frames → matplotlib Axes: what is drawn was computed elsewhere, and every picture says it in words too.

Each function takes the result frame first and ``ax=None`` and returns the Axes. No global setting of
matplotlib is changed.
"""

from ragnb.errors import need_package
from ragnb.plots.bins import distribution
from ragnb.plots.budget import label_budget
from ragnb.plots.canvas import alt_text, cjk_font, show_keywords
from ragnb.plots.carried import by_weight
from ragnb.plots.counts import outcomes
from ragnb.plots.curves import band_shares, reliability
from ragnb.plots.differences import bland_altman
from ragnb.plots.documents import documents
from ragnb.plots.dots import intervals
from ragnb.plots.estimates import bias_by, corrected_means
from ragnb.plots.output import save, svg
from ragnb.plots.pairs import judge_human
from ragnb.plots.shape import radar

need_package("matplotlib", extra="notebook")

__all__ = [
    "alt_text", "band_shares", "bias_by", "bland_altman", "by_weight", "cjk_font", "corrected_means",
    "distribution", "documents", "intervals", "judge_human", "label_budget", "outcomes", "radar", "reliability",
    "save", "svg",
]  # fmt: skip

for _name in __all__:
    show_keywords(globals()[_name])
