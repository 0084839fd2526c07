"""Where the scores are lost: documents by metrics, the worst on top."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, unknown
from ragnb.markup import INK, count, number, text_width
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import WIDTH, Axes, Look, canvas, fitted
from ragnb.plots.heat import grid, heads, name_columns
from ragnb.plots.means import TOTAL, Means, Metrics

ORDERS = ("worst", "frame")


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
    table, every = chosen(means, metrics, by, order, lang)
    names, say = first(every, most), texts.load(lang)
    titles = [table.head(metric) for metric in table.metrics]
    labels = [f"{fitted(name)}  {_n(table, name)}" for name in names]
    shades = np.array([[1.0 - table.place(name, metric) for metric in table.metrics] for name in names])
    shades = shades.reshape(len(names), len(table.metrics))
    written = [[number(table.get(name, metric, "value")) for metric in table.metrics] for name in names]
    beside = max((text_width(label, 9.0) for label in labels), default=0.0)
    # Three decimals a cell: a picture of many metrics is wider; names of a few stand across.
    width = min(max(WIDTH, (beside + (30.0 if len(titles) > 6 else 62.0) * len(titles) + 20) / 72), 12.0)
    room = (width * 72 - beside - 20) / max(len(titles), 1)
    heading, upright, high = heads(titles, room)
    with canvas(0.9 + high / 72 + 0.26 * max(len(names), 1), lang, width, **look) as (ax, tell):
        grid(ax, shades, written, cmap="YlOrBr", size=8.5 if room > 34 else 7.5)
        ax.set_yticklabels(labels)
        name_columns(ax, heading, upright)
        if table.metrics[-1:] == (TOTAL,) and len(titles) > 1:
            ax.axvline(len(titles) - 1, color=INK, linewidth=1.8, label="_total")
        below = "; ".join([say("chart.darker"), *rest(say, every, names)])
        told = [f"{fitted(name)}: {_told(table, name)}" for name in names]
        tell(_worst(table, names, say), "; ".join(told), below)
    return ax


def chosen(means: pd.DataFrame, metrics: Metrics, by: str, order: str, lang: str) -> tuple[Means, list[str]]:
    """Return the frame made ready, and its documents in the order asked for."""
    if order not in ORDERS:
        raise unknown("order", order, ORDERS)
    table = Means(means, metrics, by, lang, total=True)
    if table.endless:
        raise RagnbError(f"{table.endless[0]!r} has no finite range to shade or to lay out; leave it out")
    names = list(table.systems)
    if order == "worst":
        total = {name: table.get(name, TOTAL, "value") for name in names}
        if all(map(is_missing, total.values())):
            places = {name: [table.place(name, metric) for metric in table.metrics] for name in names}
            total = {name: min((at for at in places[name] if at == at), default=None) for name in names}
        names.sort(key=lambda name: float("inf") if is_missing(total[name]) else float(total[name]))
    return table, names


def first(names: list[str], most: int) -> list[str]:
    """Return as many names as are drawn."""
    if most < 1:
        raise RagnbError(f"most={most} draws nothing; give the number of documents to draw, such as 30")
    return names[:most]


def rest(say: Callable[..., str], names: list[str], shown: list[str]) -> list[str]:
    """Say how many documents are not drawn."""
    return [say("chart.rest", n=count(len(names) - len(shown)))] * (len(names) > len(shown))


def _n(table: Means, name: str) -> str:
    """The n of a document; where its metrics differ, the least and the most."""
    found = [table.get(name, metric, "n") for metric in table.metrics]
    known = sorted({int(n) for n in found if not is_missing(n)})
    ends = "–".join(map(count, dict.fromkeys([*known[:1], *known[-1:]])))
    return texts.load(table.lang)("chart.n", n=ends) if known else ""


def _told(table: Means, name: str) -> str:
    return ", ".join(f"{fitted(metric)} {table.written(name, metric)}" for metric in table.metrics)


def _worst(table: Means, names: list[str], say: Callable[..., str]) -> str:
    """Name the worst of all cells, and its document."""
    cells = [(table.place(name, metric), name, metric) for name in names for metric in table.metrics]
    scored = [cell for cell in cells if cell[0] >= 0]
    if not scored:
        return say("chart.nothing")
    _, name, metric = min([cell for cell in scored if cell[2] != TOTAL] or scored, key=lambda cell: cell[0])
    value = table.written(name, metric)
    return say("chart.worst", name=fitted(name), metric=table.head(metric), value=value)
