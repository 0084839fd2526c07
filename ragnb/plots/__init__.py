"""Result frames → matplotlib Axes; charts compute nothing, and each has a text alternative.

Each function takes the result frame first and ``ax=None`` and returns the Axes. No global setting of
matplotlib is changed.
"""

from ragnb.errors import need_package
from ragnb.plots.agreement import bland_altman, judge_human
from ragnb.plots.canvas import alt_text, cjk_font, save, show_keywords, svg
from ragnb.plots.card import band_shares, bias_by, corrected_means, label_budget, reliability
from ragnb.plots.means import intervals
from ragnb.plots.operations import quality_by_cost
from ragnb.plots.pairs import by_depth, differences, win_rates
from ragnb.plots.questions import distribution, outcomes
from ragnb.plots.simplex import weight_map
from ragnb.plots.webs import radar

need_package("matplotlib", extra="notebook")

__all__ = [
    "alt_text",
    "band_shares",
    "bias_by",
    "bland_altman",
    "by_depth",
    "cjk_font",
    "corrected_means",
    "differences",
    "distribution",
    "intervals",
    "judge_human",
    "label_budget",
    "outcomes",
    "quality_by_cost",
    "radar",
    "reliability",
    "save",
    "svg",
    "weight_map",
    "win_rates",
]

for _name in __all__:
    show_keywords(globals()[_name])
