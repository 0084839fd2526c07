"""Export of figures: inline SVG with real text, or a file."""

from __future__ import annotations

import hashlib
import re
from io import BytesIO, StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from xml.etree import ElementTree

from ragnb.errors import unknown
from ragnb.files import write_whole
from ragnb.markup import INK, Safe
from ragnb.plots.canvas import LAST_FONT, alt_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = (".svg", ".png")
_XLINK = "{http://www.w3.org/1999/xlink}"


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
    path, figure = Path(path), cast(Any, ax.get_figure(root=True))
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise unknown("path", path.name, KINDS, "end it in one of these")
    if kind == ".svg":
        return write_whole(path, _svg(figure))
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    return write_whole(path, drawn.getvalue())


def _svg(figure: Any) -> Safe:
    import matplotlib as mpl

    drawn, words = StringIO(), " ".join(filter(None, map(alt_text, figure.axes)))
    # The text stays text, in fonts of the reader: here it is only measured.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ragnb"}):
        nothing = dict.fromkeys(["Creator", "Date", "Format", "Type"])
        figure.savefig(drawn, format="svg", metadata=nothing, transparent=True)
    written = drawn.getvalue().replace(f", '{LAST_FONT}'", "")
    root = ElementTree.fromstring(written)
    _clean(root, "r" + hashlib.sha256(written.encode()).hexdigest()[:10])
    root.attrib |= {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "rg-svg",
        "role": "img",
        "aria-label": words,
        "fill": "currentColor",
        "style": "max-width: 100%; height: auto; stroke-linejoin: round; stroke-linecap: butt",
    }
    return Safe(ElementTree.tostring(root, encoding="unicode"))


def _clean(root: ElementTree.Element, name: str) -> None:
    """Take off namespaces, ids of groups, the style rule that would reach the whole page, and the colour of ink.

    The ids that something points to become the picture's own by its `name`.
    """
    for parent in root.iter():
        for child in [child for child in parent if child.tag.endswith(("}style", "}metadata"))]:
            parent.remove(child)
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
        if node.tag == "g":
            node.attrib.pop("id", None)
        for key, value in list(node.items()):
            node.set(key, f"{name}-{value}" if key == "id" else value.replace("url(#", f"url(#{name}-"))
        if _XLINK + "href" in node.attrib:
            node.set("href", node.attrib.pop(_XLINK + "href").replace("#", f"#{name}-"))
        if "d" in node.attrib:
            node.set("d", " ".join(node.attrib["d"].split()))
        if style := re.sub(f"{INK}|#000000", "currentColor", node.get("style", "")):
            node.set("style", re.sub(r"(font-family: [^;]*)", r"\1, sans-serif", style))
