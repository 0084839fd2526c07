"""Documents by the weight they carry: does a heavy one pull the result its way?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Unpack

import pandas as pd

from ragnb import texts
from ragnb.errors import unknown
from ragnb.markup import INK, SYSTEM_COLOURS
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import Axes, Look, canvas, fitted
from ragnb.plots.documents import chosen, first, rest
from ragnb.plots.means import TOTAL, Means
from ragnb.plots.rows import draw_row, name_rows, whole


def by_weight(
    means: pd.DataFrame, *, doc_weights: Mapping[str, float] | None = None, metric: str = TOTAL,
    by: str = "document", most: int = 30, lang: str = "en", **look: Unpack[Look],
) -> Axes:  # fmt: skip
    """Draw each document's score against the weight it carries, the heaviest on top.

    Parameters
    ----------
    means : DataFrame
        ``document, metric, value, low, high, n``: an Assessment's ``documents``, or `weighted_means` by document.
    doc_weights : mapping of document to weight, optional
        As everywhere: 1.0 for a document that is not named.
    metric : str
        Which row of each document.
    by : str
        The column of documents.
    most : int
        How many documents are drawn, the heaviest and of these the lowest first; the rest is counted below.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}
    finding : str, optional
        The title and the start of the words; by default the heaviest document's score. Empty for no title.

    Returns
    -------
    Axes
        A row a document: its weight before its name, its score with the interval of its own questions and n. A
        line parts documents of different weights.

    Raises
    ------
    RagnbError
        For an unknown metric, column or document, and for ``most`` below 1.

    Examples
    --------
    >>> means = pd.DataFrame({"document": ["a", "b"], "metric": "weighted_score", "value": [0.9, 0.4], "n": 4})
    >>> ax = by_weight(means, doc_weights={"b": 3.0})
    >>> ax.get_title(loc="left"), [label.get_text() for label in ax.get_yticklabels()]
    ('The heaviest document, b (×3), scores 0.400 [—, —]', ['×3  b', '×1  a'])
    """
    table, names = chosen(means, [metric], by, "worst", lang)
    weights = dict.fromkeys(names, 1.0)
    for name, weight in (doc_weights or {}).items():
        if name not in names:
            raise unknown("doc_weights", name, names)
        weights[name] = weight
    names = sorted(names, key=lambda name: -weights[name])
    shown, say = first(names, most), texts.load(lang)
    labels = [f"×{weights[name]:g}  {fitted(name)}" for name in shown]
    axis = say("chart.by_weight", metric=say("chart.total") if metric == TOTAL else fitted(metric))
    with canvas(1.0 + 0.27 * max(len(shown), 1), lang, **look) as (ax, tell):
        for y, name in enumerate(shown):
            draw_row(ax, y, table.estimate(name, metric), table.counted(name, metric), SYSTEM_COLOURS[0])
            if y and weights[name] != weights[shown[y - 1]]:
                ax.axhline(y - 0.5, color=INK, linewidth=0.6, alpha=0.5, label="_step")
        name_rows(ax, labels)
        whole(ax, *table.ranges[metric])
        below = "; ".join([axis, *rest(say, names, shown)])
        told = [f"{label} {table.written(name, metric)}" for label, name in zip(labels, shown, strict=True)]
        tell(_heaviest(table, shown, weights, metric, say), "; ".join(told), below)
    return ax


def _heaviest(
    table: Means, shown: list[str], weights: Mapping[str, float], metric: str, say: Callable[..., str]
) -> str:
    """Say what the heaviest document scores; where all weigh the same, the lowest."""
    scored = [name for name in shown if not is_missing(table.get(name, metric, "value"))]
    if not scored:
        return say("chart.nothing")
    key = "chart.heaviest" if len({weights[name] for name in shown}) > 1 else "chart.lowest"
    weight = f"{weights[scored[0]]:g}"
    return say(key, name=fitted(scored[0]), value=table.written(scored[0], metric), weight=weight)
