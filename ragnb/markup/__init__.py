"""Small frames and numbers → escaped HTML, Markdown and SVG: the one place where text becomes markup.

Answers, questions and names are text that strangers wrote. Whatever is not `Safe` is escaped here, and
nothing else in the library builds markup from such text.
"""

from ragnb.markup.browse import browse
from ragnb.markup.cells import MISSING, Column, count, number, p_value, percent, with_interval
from ragnb.markup.page import badge, bullets, card, cards, details, figure, fragment, heading, page, style
from ragnb.markup.radar import radar_points, radar_runs
from ragnb.markup.stacked import stacked_svg
from ragnb.markup.svg import DASHES, INK, SYSTEM_COLOURS, TONES, interval_svg
from ragnb.markup.tables import html_table, markdown_table
from ragnb.markup.text import Safe, element, escape, join, md_cell, one_line, text_width
from ragnb.markup.thin import thin_svg
from ragnb.markup.web import radar_svg

__all__ = [
    "DASHES", "INK", "MISSING", "SYSTEM_COLOURS", "TONES", "Column", "Safe", "badge", "browse", "bullets", "card",
    "cards", "count", "details", "element", "escape", "figure", "fragment", "heading", "html_table",
    "interval_svg", "join", "markdown_table", "md_cell", "number", "one_line", "p_value", "page", "percent",
    "radar_points", "radar_runs", "radar_svg", "stacked_svg", "style", "text_width", "thin_svg", "with_interval",
]  # fmt: skip
