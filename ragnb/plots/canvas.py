"""What every chart shares: Axes with our fonts and colours, words for those who cannot see it, and SVG."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ragnb.errors import RagnbWarning
from ragnb.markup import INK, Safe, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
NO_FONT = (
    "no font with Chinese characters is installed, so a PNG shows boxes in their place; install one, such as "
    "'Noto Sans CJK SC' (Debian: fonts-noto-cjk or the smaller fonts-wqy-microhei) and restart the kernel. "
    "plots.svg(ax) needs none: it uses the reader's fonts"
)
LONGEST = 40
WIDTH = 7.2
_XLINK = "{http://www.w3.org/1999/xlink}"


def cjk_font() -> str | None:
    """Return the first font on this system that is known to hold Chinese, or None.

    Examples
    --------
    >>> font = cjk_font()
    >>> font is None or font in CJK_FONTS
    True
    """
    from matplotlib import font_manager

    here = set(font_manager.fontManager.get_font_names())
    return next((name for name in CJK_FONTS if name in here), None)


def _families(words: Iterable[object]) -> list[str]:
    wide = any(unicodedata.east_asian_width(char) in "WF" for word in words for char in str(word))
    found = cjk_font() if wide else None
    if wide and found is None:
        # Up through canvas, contextlib and the chart to its caller.
        warnings.warn(NO_FONT, RagnbWarning, stacklevel=5)
    return ["DejaVu Sans", *([found] if found else [])]


def _settings(families: list[str]) -> Any:
    ink = dict.fromkeys(["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"], INK)
    return ink | {
        "font.family": families,
        "font.size": 9,
        "axes.titlesize": 10.5,
        "axes.titlelocation": "left",
        "axes.labelsize": 9,
        "legend.frameon": False,
        # A name with dollar signs is a name, not mathematics.
        "text.parse_math": False,
        "text.usetex": False,
    }


@contextmanager
def canvas(ax: Axes | None, width: float, height: float, words: Iterable[object]) -> Iterator[Axes]:
    """Give Axes to draw in: those passed, or those of a new figure of `width` by `height` inches.

    `words` are the texts that will stand in the chart; they decide the fonts.
    """
    import matplotlib as mpl
    from matplotlib import pyplot as plt
    from matplotlib.text import Text

    families = _families(words)
    # A figure is made outside the context: a notebook's backend loads with the first one, and sets itself up.
    figure = plt.figure(figsize=(width, height), layout="constrained") if ax is None else None
    with mpl.rc_context(_settings(families)):
        if figure is not None:
            ax = figure.subplots()
        assert ax is not None
        yield ax
        ax.tick_params(labelfontfamily=families)
        for artist in ax.findobj(Text):
            assert isinstance(artist, Text)
            artist.set_fontfamily(families)
            artist.set_parse_math(False)


def describe(ax: Axes, finding: str, said: str) -> None:
    """Set the finding as the title, and finding and numbers as the words of the picture."""
    if finding:
        ax.set_title(one_line(finding))
    ax.set_label(one_line(f"{finding}. {said}" if finding else said))


def alt_text(ax: Axes) -> str:
    """Return what the picture shows, in words: the finding and the numbers. It is kept as the Axes' label.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb import plots
    >>> plots.alt_text(plots.outcomes(pd.DataFrame({"label": ["OK"], "n": [3]})))
    'Counts: OK 3.'
    """
    return str(ax.get_label())


def svg(ax: Axes) -> Safe:
    """Return the figure of these Axes as inline SVG that any page can hold.

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
    >>> picture[:4], 'aria-label="Counts: OK 3."' in picture
    ('<svg', True)
    """
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    figure: Any = ax.figure
    figure = figure.figure or figure
    written = StringIO()
    nothing = dict.fromkeys(["Creator", "Date", "Format", "Type"])
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ragnb"}):
        figure.savefig(written, format="svg", metadata=nothing, transparent=True)
    plt.close(figure)
    root = ElementTree.fromstring(written.getvalue())
    _bare(root)
    root.set("xmlns", "http://www.w3.org/2000/svg")
    root.set("class", "rg-svg")
    root.set("role", "img")
    root.set("aria-label", " ".join(filter(None, map(alt_text, figure.axes))))
    root.set("fill", "currentColor")
    root.set("style", "max-width: 100%; height: auto; stroke-linejoin: round; stroke-linecap: butt")
    _own_ids(root)
    return Safe(ElementTree.tostring(root, encoding="unicode"))


def _bare(root: ElementTree.Element) -> None:
    """Take off namespaces, the style rule that would reach the whole page, and the colour of ink."""
    for parent in root.iter():
        for child in [child for child in parent if child.tag.endswith(("}style", "}metadata"))]:
            parent.remove(child)
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
        if _XLINK + "href" in node.attrib:
            node.set("href", node.attrib.pop(_XLINK + "href"))
        if "d" in node.attrib:
            node.set("d", " ".join(node.attrib["d"].split()))
        style = re.sub(f"{INK}|#000000", "currentColor", node.get("style", ""))
        if style:
            node.set("style", re.sub(r"(font-family: [^;]*)", r"\1, sans-serif", style))


def _own_ids(root: ElementTree.Element) -> None:
    """Drop ids that nothing refers to, and make the others the picture's own."""
    pointer = re.compile(r"#(?=[mphci][0-9a-f]{10})([\w-]+)")
    pointing = [
        (node, key)
        for node in root.iter()
        for key, value in node.attrib.items()
        if key == "href" or value.startswith("url(#") or "url(#" in (value if key == "style" else "")
    ]
    used = {name for node, key in pointing for name in re.findall(r"#([\w.-]+)", node.attrib[key])}
    for node in root.iter():
        if node.get("id") not in used:
            node.attrib.pop("id", None)
    own = "r" + hashlib.sha256(ElementTree.tostring(root)).hexdigest()[:10]
    for node in root.iter():
        if "id" in node.attrib:
            node.set("id", f"{own}-{node.attrib['id']}")
    for node, key in pointing:
        node.set(key, pointer.sub(rf"#{own}-\1", node.attrib[key]))
