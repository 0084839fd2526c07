"""Heat maps: shaded cells with their numbers in them; documents by metrics, the worst on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ragnb.markup import INK, MISSING, count, number, text_width
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import GREY, WIDTH, Axes, Look, canvas, fitted, wrapped
from ragnb.plots.means import TOTAL, Means, Metrics, rank_documents

# Neither is the ink of the page, which turns light where the page is dark: cells keep their shade there.
DARK, LIGHT = "#111111", "#ffffff"
_SIZE = 8.5


def grid(ax: Axes, shades: np.ndarray, written: Sequence[Sequence[str]], cmap: str, size: float = _SIZE) -> None:
    """Shade cells from 0 (light) to 1 (dark), nan for a cell without shade, and write in each.

    A cell that says `MISSING` is hatched; an empty text leaves it bare. The first row is on top.
    """
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle
    from seaborn import heatmap
    from seaborn.utils import relative_luminance

    if shades.size:
        # Not the ends of the map, so that a cell stands out from white paper and from a dark page.
        look: Any = {"vmin": -0.05, "vmax": 1.2, "linewidths": 0.5, "linecolor": to_rgba(GREY, 0.25)}
        heatmap(shades, ax=ax, cmap=cmap, cbar=False, xticklabels=False, yticklabels=False, **look)
        faces = ax.collections[-1].get_facecolor()
    for k, ((y, x), shade) in enumerate(np.ndenumerate(shades)):
        if written[y][x] == MISSING:
            ax.add_patch(Rectangle((x, y), 1, 1, fill=False, hatch="////", edgecolor=GREY, linewidth=0))
        # Seaborn's own numbers turn white at a luminance of .408, where black is still the clearer (WCAG).
        ink: Any = {} if np.isnan(shade) else {"color": LIGHT if relative_luminance(faces[k]) < 0.179 else DARK}
        if written[y][x]:
            ax.text(x + 0.5, y + 0.5, written[y][x], ha="center", va="center", fontsize=size, **ink)
    rows, columns = shades.shape
    ax.set(xlim=(0, columns), ylim=(max(rows, 1), 0))
    ax.set(xticks=np.arange(columns) + 0.5, yticks=np.arange(rows) + 0.5)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def heads(names: Sequence[str], points: float) -> tuple[list[str], bool, float]:
    """Lay out names of columns that are `points` wide: across where three lines hold each, else upright.

    Returns the names, broken into lines, whether they are upright, and how high they stand, in points.

    Examples
    --------
    >>> heads(["context_recall"], 60.0)
    (['context_\\nrecall'], False, 22.0)
    """
    across = [wrapped(name, points - 4, _SIZE) for name in names]
    lines = max((name.count("\n") + 1 for name in across), default=0)
    if lines <= 3 and all(text_width(line, _SIZE) <= points - 2 for name in across for line in name.splitlines()):
        return across, False, 11.0 * lines
    upright = [fitted(name, 150.0, _SIZE) for name in names]
    return upright, True, max(text_width(name, _SIZE) for name in upright)


def documents(
    means: pd.DataFrame, *, metrics: Metrics = None, by: str = "document", order: str = "worst", most: int = 30,
    lang: str = "en", **look: Unpack[Look],
) -> Axes:  # fmt: skip
    """Draw documents by metrics as a heat map, the worst document on top, the numbers in the cells.

    Parameters
    ----------
    means : DataFrame
        ``document, metric, value, n`` and more: an Assessment's ``documents``, or `weighted_means` by document.
    metrics : str or several, optional
        The columns; by default the metrics that enter the weighted score, and the total.
    by : str
        The column of documents.
    order : {"worst", "frame"}
        By the total, where the frame has it, else by the document's worst metric; or as the frame has them, such
        as by cost.
    most : int
        How many documents are drawn; the rest is counted below.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}
    finding : str, optional
        The title and the start of the words; by default the worst documents. Empty for no title.

    Returns
    -------
    Axes
        The darker a cell, the nearer to the bad end of its metric's range; a mean that is missing is hatched
        and says ``—``. A document's name gives its n, the least and the most over its metrics where they differ.

    Raises
    ------
    RagnbError
        For an unknown metric, column or order, and for ``most`` below 1.

    Examples
    --------
    >>> means = pd.DataFrame({"document": ["a", "b"], "metric": "faithfulness", "value": [0.9, None], "n": [4, 0]})
    >>> ax = documents(means)
    >>> [label.get_text() for label in ax.get_yticklabels()], [text.get_text() for text in ax.texts]
    (['a  n = 4', 'b  n = 0'], ['0.900', '—'])
    """
    table, every, rest = rank_documents(means, metrics, by, lang, most=most, order=order)
    names, columns = every[:most], table.metrics
    titles = [table.head(metric) for metric in columns]
    labels = [f"{fitted(name)}  {_n(table, name)}" for name in names]
    shades = np.array([[1.0 - table.place(name, metric) for metric in columns] for name in names])
    written = [[number(table.row(name, metric).get("value")) for metric in columns] for name in names]
    margin = max((text_width(label, 9.0) for label in labels), default=0.0) + 20
    # Three decimals a cell: a picture of many metrics is wider; names of a few stand across.
    width = min(max(WIDTH, (margin + (30.0 if len(titles) > 6 else 62.0) * len(titles)) / 72), 12.0)
    points = (width * 72 - margin) / max(len(titles), 1)
    heading, upright, high = heads(titles, points)
    with canvas(0.9 + high / 72 + 0.26 * max(len(names), 1), lang, width, **look) as (ax, describe):
        shape = len(names), len(columns)
        grid(ax, shades.reshape(shape), written, cmap="YlOrBr", size=_SIZE if points > 34 else 7.5)
        ax.set_yticklabels(labels)
        ax.xaxis.tick_top()
        turn: Any = {"rotation": 90, "va": "bottom"} if upright else {}
        ax.set_xticklabels(heading, fontsize=_SIZE, **turn)
        ax.xaxis.set_label_position("bottom")
        if columns[-1:] == (TOTAL,) and len(columns) > 1:
            ax.axvline(len(columns) - 1, color=INK, linewidth=1.8, label="_total")
        values = [f"{fitted(name)}: {table.words(name)}" for name in names]
        describe(_worst(table, names), "; ".join(values), "; ".join([table.say("chart.darker"), *rest]))
    return ax


def _n(table: Means, name: str) -> str:
    """The n of a document; where its metrics differ, the least and the most."""
    cells: list[Any] = [table.row(name, metric).get("n") for metric in table.metrics]
    known = sorted({int(n) for n in cells if not is_missing(n)})
    ends = "–".join(map(count, dict.fromkeys([*known[:1], *known[-1:]])))
    return table.say("chart.n", n=ends) if known else ""


def _worst(table: Means, names: list[str]) -> str:
    """Name the worst of all cells, and its document."""
    cells = [(table.place(name, metric), name, metric) for name in names for metric in table.metrics]
    scored = [cell for cell in cells if cell[0] >= 0]
    if not scored:
        return table.say("chart.nothing")
    _, name, metric = min([cell for cell in scored if cell[2] != TOTAL] or scored, key=lambda cell: cell[0])
    value = table.written(name, metric)
    return table.say("chart.worst", name=fitted(name), metric=table.head(metric), value=value)
