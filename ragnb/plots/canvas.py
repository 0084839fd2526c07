"""Shared parts of charts: Axes with ragnb's fonts and colours, text alternatives, and SVG and PNG of them."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from inspect import Parameter, signature
from io import BytesIO, StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast, get_type_hints

from ragnb import texts
from ragnb.errors import RagnbWarning, unknown
from ragnb.files import write_whole
from ragnb.markup import Safe, escape, one_line, text_width
from ragnb.markup.rendering import INK, SYSTEM_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any

CJK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Noto Sans CJK TC",
    "Source Han Sans TC",
    "Noto Sans CJK JP",
    "Droid Sans Fallback",
    "Heiti SC",
    "STHeiti",
    "SimHei",
    "SimSun",
    "Arial Unicode MS",
)
LAST_FONT = "Last Resort High-Efficiency"
NO_FONT = (
    "no font with Chinese characters is installed, so a PNG shows boxes in their place; install one, such as "
    "'Noto Sans CJK SC' (Debian: fonts-noto-cjk or the smaller fonts-wqy-microhei) and restart the kernel. "
    "plots.svg(ax) needs none: it uses the reader's fonts"
)
# Grids and missing evidence: contrast 3 : 1 on white and on a dark page.
GREY = "#8c8c8c"

WIDTH = 7.2  # inches: a column of a page, so that text in charts is as large as text beside them
KINDS = (".svg", ".png")
_SETTINGS: Any = {
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "white",
    "font.size": 9,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    # A name with dollar signs is a name, not mathematics.
    "text.parse_math": False,
    "text.usetex": False,
}


MARKS = ("o", "s", "^", "D", "v")
"""The mark of each system, in the order of `ragnb.markup.rendering.SYSTEM_COLOURS`."""


class Look(TypedDict, total=False):
    """Options of every chart: the language, Axes to draw in (new by default), and the finding as a title."""

    lang: str | None
    ax: Axes | None
    finding: str | None


class LookOfSystems(Look, total=False):
    """Options of charts of several systems: also their names in the order of their colours."""

    systems: Sequence[str] | None


def system_places(look: Mapping[str, Any], names: Sequence[str]) -> list[int]:
    """Return the place of each system among the colours, dashes and marks, so that it has one in all charts.

    A system that ``systems`` does not name takes the next free place.

    Examples
    --------
    >>> system_places({}, ["new", "old"]), system_places({"systems": ["old", "new"]}, ["new", "other"])
    ([0, 1], [1, 2])
    """
    order = list(dict.fromkeys([*(look.get("systems") or ()), *names]))
    return [order.index(name) % len(SYSTEM_COLOURS) for name in names]


def cjk_font() -> str | None:
    """Return the first installed font that is known to support Chinese, or None.

    matplotlib keeps its list of fonts in a file, which may be older than a font: one that is not in the list is
    looked for on the system, once in a process.

    Examples
    --------
    >>> font = cjk_font()
    >>> font is None or font in CJK_FONTS
    True
    """
    from matplotlib.font_manager import fontManager

    def known() -> str | None:
        return next((name for name in CJK_FONTS if name in fontManager.get_font_names()), None)

    return known() or _add_new_fonts() or known()


@cache
def _add_new_fonts() -> None:
    """Make the fonts known to matplotlib that were installed after it listed them."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    for path in set(findSystemFonts()) - {font.fname for font in fontManager.ttflist}:
        with suppress(OSError, RuntimeError):  # FreeType cannot read it
            fontManager.addfont(path)


@contextmanager
def canvas(
    look: Mapping[str, Any], height: float, width: float = WIDTH
) -> Iterator[tuple[Axes, Callable[..., None]]]:
    """Yield Axes to draw in, passed or new, and a function that sets title and text alternative.

    It takes what is seen, the values, and the labels of the axes. The title is the caller's finding, for None what
    is seen; an empty finding draws no title, as under a caption that says it.
    """
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    ax = look.get("ax")
    finding = look.get("finding")
    # A figure is made outside the context: a notebook's backend loads with the first one, and sets itself up.
    if ax is None:
        figure = plt.figure(figsize=(width, height), facecolor="white", layout="constrained")
    else:
        figure = None
    with mpl.rc_context(_SETTINGS):
        axes: Any = ax if figure is None else figure.subplots()
        broken_lines = 0  # that wrapping adds to the label of the x axis

        def describe(seen: str, values: Sequence[str], *labels: str) -> None:
            nonlocal broken_lines
            for axis, label in zip((axes.xaxis, axes.yaxis), labels, strict=False):
                text = label
                if axis is axes.xaxis:
                    room = title_width(axes)
                    text = "\n".join(wrapped(line, room, 8.5) for line in label.split("\n"))
                    broken_lines = text.count("\n") - label.count("\n")
                axis.set_label_text(text, fontsize=8.5)
            title = seen if finding is None else finding
            if title:
                axes.set_title(wrapped(one_line(title), title_width(axes), 10.5))
            # The text alternative has a finding even where no title is drawn; the text itself adds the full stop.
            sentence = (finding or seen).rstrip(".。 ")
            numbers = "; ".join(value for value in values if value)
            words = speaker(look)("chart.words", finding=sentence, values=numbers)
            axes.set_label(one_line(words))

        axes.spines[["top", "right"]].set_visible(False)
        yield axes, describe
        if figure is not None:
            # Further lines of title, legend and label are not taken from the picture.
            if axes.get_legend():
                _, names = axes.get_legend_handles_labels()
            else:
                names = []
            rows_of_legend = -(-len(names) // _columns(axes, names))  # rounded up
            lines = axes.get_title(loc="left").count("\n") + rows_of_legend + broken_lines
            figure.set_size_inches(width, height + 0.2 * lines)
        _set_fonts(axes)


def speaker(look: Mapping[str, Any]) -> Callable[..., str]:
    """Return the function that looks up texts in the language of a chart."""
    return texts.load(look.get("lang") or "en")


def _set_fonts(ax: Axes) -> None:
    """Set every text in a font that has its characters; if there is none, warn once a PNG is drawn."""
    from matplotlib import font_manager
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.text import Text

    def warn(event: Any) -> None:
        # SVG keeps its text and needs no font of this machine.
        if isinstance(event.renderer, RendererAgg):
            event.canvas.mpl_disconnect(connection)
            warnings.warn(NO_FONT, RagnbWarning, stacklevel=2)

    written: Any = ax.findobj(Text)
    characters: set[str] = set().union(*(text.get_text() for text in written))
    is_wide = any(unicodedata.east_asian_width(char) in "WF" for char in characters)
    font = cjk_font() if is_wide else None
    if is_wide and font is None:
        connection = cast(Any, ax.figure).canvas.mpl_connect("draw_event", warn)
    # The last font has a box for every character (since matplotlib 3.11): named, it is used without a warning.
    if LAST_FONT in font_manager.fontManager.get_font_names():
        last = LAST_FONT
    else:
        last = None
    families = ["DejaVu Sans"]
    families += [family for family in (font, last) if family is not None]
    ax.tick_params(labelfontfamily=families)
    for text in written:
        text.set(fontfamily=families, parse_math=False)


def show_keywords(chart: Any) -> None:
    """Show in a chart's signature, where a notebook looks for them, the keywords that it shares with others."""
    own = signature(chart)
    if "look" not in own.parameters:
        return
    # `look` is typed as Unpack[…] of a TypedDict, whose fields are the keywords.
    (options,) = get_type_hints(chart)["look"].__args__
    shared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in options.__annotations__
    ]
    without_look = list(own.parameters.values())[:-1]
    chart.__signature__ = own.replace(parameters=[*without_look, *shared])


# An interval in brackets; opening marks with a run of narrow characters or one wide one; spaces.
_WORD = re.compile(
    r"\[[^\[\]\s]+, [^\[\]\s]+\]\s*|[(\[（《“「【]*(?:[^\s\u1100-\uffff]+|[\u1100-\uffff])\s*|\s+"
)


def wrapped(text: str, points: float, size: float = 9.0) -> str:
    """Break text into lines of at most `points`: at spaces, between wide characters, in long names after ``_``.

    Examples
    --------
    >>> wrapped("a_long_name 中文名", 44, 10).splitlines()
    ['a_long_', 'name 中', '文名']
    >>> wrapped("best 100.0 % [99.2, 100.0]", 90).splitlines()
    ['best 100.0 %', '[99.2, 100.0]']
    """
    lines = [""]
    # An opening mark stays with what it opens, and an interval in one piece.
    for word in _WORD.findall(text):
        if text_width(word.rstrip(), size) <= points:
            pieces = [word]
        else:
            pieces = re.findall(r"[^_-]*[_-]+\s*|[^_-]+", word)
        for piece in pieces:
            # A closing mark never starts a line.
            closing = unicodedata.category(piece[0]) in ("Po", "Pe", "Pf")
            fits = text_width(lines[-1] + piece.rstrip(), size) <= points
            if lines[-1] and not closing and not fits:
                lines.append("")
            lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def fitted(name: object, points: float = 170.0, size: float = 9.0) -> str:
    """Return a name on one line, cut with an ellipsis where it is wider than `points`.

    Examples
    --------
    >>> fitted("short"), fitted("很长的文档名称", 40)
    ('short', '很长的…')
    """
    text = one_line(name)
    if text_width(text, size) <= points:
        return text
    while text and text_width(text + "…", size) > points:
        text = text[:-1]
    return text.rstrip() + "…"


def title_width(ax: Axes) -> float:
    """Return the width of a title over these Axes, in points; what is laid out later is estimated."""
    figure: Any = ax.figure
    if figure.get_layout_engine() is None or len(figure.axes) > 1:
        return float(ax.get_window_extent().width / figure.dpi * 72)
    # The names beside the axis take their width from the figure; it is laid out only when it is drawn.
    lines = []
    for label in ax.get_yticklabels():
        lines += label.get_text().splitlines()
    margin = max((text_width(line, 9.0) for line in lines), default=0.0)
    return float(figure.bbox.width / figure.dpi * 72 - 24 - margin)


def legend_below(ax: Axes, points: float = 34) -> None:
    """Put the legend, where there is something to name, `points` below the Axes whatever their height."""
    from matplotlib.transforms import ScaledTranslation

    _, names = ax.get_legend_handles_labels()
    if not names:
        return
    # In points from the foot of the Axes: a share of their height would vary with it.
    figure = cast(Any, ax.figure)
    below = ax.transAxes + ScaledTranslation(0, -points / 72, figure.dpi_scale_trans)
    ax.legend(
        ncols=_columns(ax, names),
        handlelength=4,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=below,
        borderaxespad=0,
    )


def _columns(ax: Axes, names: Sequence[str]) -> int:
    """Return how many columns of a legend fit side by side, three at most."""
    widest = max((text_width(name, 9.0) for name in names), default=0.0)
    with_mark = widest + 60  # points: a mark and the space between columns
    return max(1, min(3, int(title_width(ax) // with_mark)))


def alt_text(ax: Axes) -> str:
    """Return the text alternative of a chart: the finding and the numbers. It is stored as the Axes' label.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb import plots
    >>> plots.alt_text(plots.outcomes(pd.DataFrame({"label": ["OK"], "n": [3]})))
    'OK is most frequent: 3 of 3. OK 3.'
    """
    return str(ax.get_label())


# Files


def svg(ax: Axes) -> Safe:
    """Return the figure of these Axes as inline SVG for any page.

    Text stays text, in the reader's fonts; what is drawn in the colour of the text follows the page; equal
    figures give equal bytes; ids are the picture's own; nothing is fetched. The figure is closed for pyplot, so
    that a notebook does not show it a second time.

    Parameters
    ----------
    ax : Axes
        Any Axes of the figure, drawn by a function of this room or not.

    Returns
    -------
    Safe
        An ``<svg role="img">`` whose label is the `alt_text` of all Axes of the figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb import plots
    >>> picture = plots.svg(plots.outcomes(pd.DataFrame({"label": ["OK"], "n": [3]})))
    >>> picture[:4], 'aria-label="OK is most frequent: 3 of 3. OK 3."' in picture
    ('<svg', True)
    """
    from matplotlib import pyplot as plt

    figure: Any = ax.get_figure(root=True)
    picture = _svg(figure)
    plt.close(figure)
    return picture


def save(ax: Axes, path: str | PathLike[str]) -> Path:
    """Write the figure of these Axes as a file: SVG with its text as text, or PNG on white paper.

    Parameters
    ----------
    ax : Axes
        Any Axes of the figure.
    path : str or Path
        Ends in ``.svg`` or ``.png``; folders that are not there are made.

    Returns
    -------
    Path
        Of the file, whole at any moment.

    Raises
    ------
    RagnbError
        For another ending.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> from ragnb import plots
    >>> ax = plots.outcomes(pd.DataFrame({"label": ["OK"], "n": [3]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [plots.save(ax, f"{folder}/counts.{kind}").name for kind in ("svg", "png")]
    ['counts.svg', 'counts.png']
    """
    path = Path(path)
    figure = cast(Any, ax.get_figure(root=True))
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise unknown("path", path.name, KINDS, "end it in one of these")
    if kind == ".svg":
        return write_whole(path, _svg(figure))
    drawn = BytesIO()
    # Without the version of matplotlib in it, equal pictures are equal files.
    figure.savefig(drawn, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    return write_whole(path, drawn.getvalue())


def _svg(figure: Any) -> Safe:
    """Return a figure as SVG that is part of a page."""
    import matplotlib as mpl

    drawn = StringIO()
    words = " ".join(filter(None, map(alt_text, figure.axes)))
    no_metadata = dict.fromkeys(["Creator", "Date", "Format", "Type"])
    # The text stays text, in fonts of the reader: here it is only measured. The words tell its ids from others'.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": words}):
        figure.savefig(drawn, format="svg", metadata=no_metadata, transparent=True)
    # Neither the head of a file, nor a style rule that would reach the whole page.
    picture = re.sub(r"(?s)^.*?(?=<svg)|<(metadata|style)\b.*?</\1>", "", drawn.getvalue())
    picture = re.sub(r"<[^>]+>", _plain_tag, picture)
    attributes = _ATTRIBUTES.format(words=escape(words))
    return Safe(picture.replace("<svg", f"<svg {attributes}", 1))


_ATTRIBUTES = (
    'class="rg-svg" role="img" aria-label="{words}" fill="currentColor" '
    'style="max-width: 100%; height: auto; stroke-linejoin: round; stroke-linecap: butt"'
)
_TAGS = {
    r"\s+": " ",
    ' xmlns:xlink="[^"]*"': "",
    "xlink:href": "href",
    '^<g id="[^"]*"': "<g",
    f", '{LAST_FONT}'": "",
    'font-family: [^;"]*': r"\g<0>, sans-serif",
    # What is drawn in the colour of the text follows the page.
    f"{INK}|#000000": "currentColor",
}


def _plain_tag(tag: re.Match[str]) -> str:
    """Return a tag as it stands in a page: a text between tags is none, its brackets are escaped."""
    text = tag[0]
    for pattern, written in _TAGS.items():
        text = re.sub(pattern, written, text)
    return text
