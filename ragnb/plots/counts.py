"""Counts of outcomes, such as the labels of traces: bars from zero, each with its count."""

from __future__ import annotations

from typing import Unpack

import pandas as pd

from ragnb import texts
from ragnb.errors import need_columns
from ragnb.markup import SYSTEM_COLOURS, percent
from ragnb.plots.canvas import Axes, Look, canvas, fitted, legend_below
from ragnb.plots.dots import check_systems
from ragnb.plots.means import split


def outcomes(
    outcomes: pd.DataFrame, *, label: str = "label", by: str | None = None, lang: str = "en", **look: Unpack[Look]
) -> Axes:
    """Draw counts as bars, one row a label, in the order of the frame.

    Parameters
    ----------
    outcomes : DataFrame
        ``[by,] label, n``, and optionally ``share`` in [0, 1], as an Assessment's ``outcomes`` or ``modes``.
    label : str
        The column of labels, such as ``meaning`` or ``failure_mode``.
    by : str, optional
        The column of systems, at most five: a bar for each, side by side.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}
    finding : str, optional
        What the picture shows, in a sentence: its title, and the start of its words. By default what stands out
        in the frame; empty for no title.

    Returns
    -------
    Axes
        The count, and the share where the frame has it, stand beside each bar.

    Raises
    ------
    RagnbError
        For a column that is not there, and for more than five systems.

    Examples
    --------
    >>> axes = outcomes(pd.DataFrame({"label": ["OK", "REFUSAL_OK"], "n": [3, 1], "share": [0.75, 0.25]}))
    >>> [float(bar.get_width()) for bar in axes.patches], [text.get_text() for text in axes.texts]
    ([3.0, 1.0], ['3 (75.0 %)', '1 (25.0 %)'])
    """
    from matplotlib.ticker import MaxNLocator

    need_columns(outcomes.columns, (label, "n"))
    labels = list(dict.fromkeys(str(name) for name in outcomes[label]))
    systems = split(outcomes, by)
    check_systems(list(systems))
    names = [fitted(name) for name in labels]
    many, say, said = len(systems), texts.load(lang), []
    with canvas(0.9 + 0.26 * max(len(labels), 1) * many + 0.2 * (many > 1), lang, **look) as (ax, tell):
        for number, (system, part) in enumerate(systems.items()):
            places = [labels.index(str(name)) for name in part[label]]
            heights = [place - 0.4 + 0.8 * (number + 0.5) / many for place in places]
            colour, n = SYSTEM_COLOURS[number], part["n"].to_numpy(dtype=float)
            bars = ax.barh(heights, n, 0.7 / many, color=colour, label=fitted(system) or "_one")
            shares = part["share"] if "share" in part else [None] * len(part)
            counts = [
                f"{int(k)}" if share is None else f"{int(k)} ({percent(share)})"
                for k, share in zip(part["n"], shares, strict=True)
            ]
            ax.bar_label(bars, counts, padding=4, fontsize=8.5)
            told = ", ".join(f"{names[place]} {count}" for place, count in zip(places, counts, strict=True))
            said.append(f"{fitted(system)}: {told}" if by else told)
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.margins(x=0.12)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.tick_params(axis="y", length=0)
        if many > 1:
            legend_below(ax)
        tell(_seen(label, systems, lang), "; ".join(said), say("chart.count"))
    return ax


def _seen(label: str, systems: dict[str, pd.DataFrame], lang: str) -> str:
    """Say which label comes most often, of each system or, where they agree, of all."""
    say, found = texts.load(lang), {}
    for system, part in systems.items():
        if part["n"].sum():
            top = part.iloc[int(part["n"].to_numpy().argmax())]
            found[system] = fitted(top[label]), int(top["n"]), int(part["n"].sum())
    names = {name for name, _, _ in found.values()}
    if len(found) > 1 and len(names) == 1:
        return say("chart.most_in_all", name=names.pop(), systems=len(found))
    each = [
        (f"{fitted(system)}: " if system else "") + say("chart.most", name=name, k=k, n=n)
        for system, (name, k, n) in found.items()
    ]
    return "; ".join(each[:3] + [f"+ {len(each) - 3}"] * (len(each) > 3)) or say("chart.nothing_counted")
