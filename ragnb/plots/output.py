"""A figure leaves the notebook: as inline SVG whose text is text, or as a file."""

from __future__ import annotations

import hashlib
import re
from io import BytesIO, StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ragnb.errors import unknown
from ragnb.files import write_whole
from ragnb.markup import INK, Safe
from ragnb.plots.canvas import alt_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = (".svg", ".png")
_LAST = "Last Resort High-Efficiency"
_XLINK = "{http://www.w3.org/1999/xlink}"


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
    >>> picture[:4], 'aria-label="OK comes most often: 3 of 3. OK 3."' in picture
    ('<svg', True)
    """
    from matplotlib import pyplot as plt

    figure = _figure(ax)
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
    path, figure = Path(path), _figure(ax)
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise unknown("path", path.name, KINDS, "end it in one of these")
    if kind == ".svg":
        return write_whole(path, _svg(figure))
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    return write_whole(path, drawn.getvalue())


def _figure(ax: Axes) -> Any:
    figure: Any = ax.figure
    return figure.figure or figure


def _svg(figure: Any) -> Safe:
    import matplotlib as mpl
    from matplotlib import font_manager
    from matplotlib.text import Text

    written = StringIO()
    nothing = dict.fromkeys(["Creator", "Date", "Format", "Type"])
    # The text stays text, in fonts of the reader: here it is only measured, and matplotlib 3.11 brings a font that
    # has a box for every character. Named, it is used without a warning.
    last = [_LAST] if _LAST in font_manager.fontManager.get_font_names() else []
    families = [(text, text.get_fontfamily()) for text in figure.findobj(Text)]
    for text, names in families:
        text.set_fontfamily([*names, *last])
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ragnb"}):
        figure.savefig(written, format="svg", metadata=nothing, transparent=True)
    for text, names in families:
        text.set_fontfamily(names)
    root = ElementTree.fromstring(written.getvalue().replace(f", '{_LAST}'", ""))
    _bare(root)
    _own_ids(root)
    root.attrib |= {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "rg-svg",
        "role": "img",
        "aria-label": " ".join(filter(None, map(alt_text, figure.axes))),
        "fill": "currentColor",
        "style": "max-width: 100%; height: auto; stroke-linejoin: round; stroke-linecap: butt",
    }
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
    pointer = re.compile(r"(?<=#)[\w.-]+")
    nodes = list(root.iter())
    pointed = {name for node in nodes for value in node.attrib.values() for name in pointer.findall(value)}
    used = {name for node in nodes if (name := node.get("id")) in pointed}
    for node in nodes:
        if node.get("id") not in used:
            node.attrib.pop("id", None)
    own = "r" + hashlib.sha256(ElementTree.tostring(root)).hexdigest()[:10]
    for node in nodes:
        for key, value in node.items():
            named = f"{own}-{value}" if key == "id" else value
            node.set(key, pointer.sub(lambda m: f"{own}-{m[0]}" if m[0] in used else m[0], named))
