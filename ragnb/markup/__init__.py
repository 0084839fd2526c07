"""Small frames and numbers → escaped HTML, Markdown and SVG: the one place where text becomes markup.

Answers, questions and names are text that strangers wrote. Whatever is not `Safe` is escaped here, and
nothing else in the library builds markup from such text.
"""

from ragnb.markup.rendering import (
    DASHES,
    INK,
    SYSTEM_COLOURS,
    draw,
    fragment,
    radar_points,
    radar_runs,
    radar_svg,
    style,
)
from ragnb.markup.text import (
    MISSING,
    TONES,
    Safe,
    count,
    element,
    ends,
    escape,
    is_missing,
    join,
    md_cell,
    number,
    one_line,
    p_value,
    percent,
    signed,
    text_width,
    with_interval,
)
