"""What a judge does to an estimate: its bias by group, means with and without correction, labels against width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from ragnb.errors import unknown
from ragnb.markup import INK, SYSTEM_COLOURS, TONES, count, number, with_interval
from ragnb.markup.cells import is_missing
from ragnb.plots.canvas import GREY, Axes, fitted, legend_below
from ragnb.plots.card import OfCard, Part, part
from ragnb.plots.differences import signed
from ragnb.plots.rows import BAD, draw_row, estimate, name_rows, whole

WAYS = ("judge", "human", "corrected")
_LOOKS = dict(zip(WAYS, zip(SYSTEM_COLOURS[:3], "sDo", strict=True), strict=True))


def bias_by(card: Any, *, kind: str = "system", delta: float | None = None, **look: Unpack[OfCard]) -> Axes:
    """Draw by how much the judge is above the humans, overall and by system (or another kind of group).

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``inflation``: ``[judge, dimension,] kind, group, value, low, high, n``, optionally
        ``inflated``.
    kind : str
        Which groups: ``system``, ``length``, ``answerability`` or any that the card was asked for.
    judge, dimension : str, optional
        Which, where there are several.
    delta : float, optional
        The acceptable bias, in points; by default the card's. A frame alone has none, and no zone.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default the inflated groups. Empty for no title.

    Returns
    -------
    Axes
        A row a group, overall first, then the most inflated; the zone within ±delta shaded around 0. Inflated
        groups have their own colour, shape and word.

    Raises
    ------
    RagnbError
        For several judges or dimensions and no choice, and for unknown ones or an unknown kind.

    Examples
    --------
    >>> import pandas as pd
    >>> found = pd.DataFrame({"kind": "system", "group": ["a", "b"], "value": [0.1, 0.9], "low": [-0.1, 0.6],
    ...                       "high": [0.3, 1.2], "n": 50, "inflated": [False, True]})
    >>> ax = bias_by(found)
    >>> ax.get_title(loc="left"), [label.get_text() for label in ax.get_yticklabels()]
    ('Too kind: b +0.900 [0.600, 1.200]', ['b', 'a'])
    """
    p = part(card, "inflation", ("kind", "group", "value", "n"), **look)
    kinds = [str(name) for name in dict.fromkeys(p.rows["kind"]) if name != "overall"]
    if kind not in kinds and kinds:
        raise unknown("kind", kind, kinds)
    say, zone = p.say, p.set("delta", delta if delta is not None else p.beside("verdicts").get("delta"))
    rows = p.rows[p.rows["kind"].isin(["overall", kind])].sort_values("value", ascending=False, kind="stable")
    records = sorted(rows.to_dict("records"), key=lambda row: row["kind"] != "overall")
    overall = say("calibration.word.overall")
    names = [overall if row["kind"] == "overall" else fitted(row["group"]) for row in records]
    said = [signed(*estimate(row)) for row in records]
    with p.canvas(1.1 + 0.32 * max(len(names), 1)) as (ax, tell):
        if zone is not None:
            ax.axvspan(-zone, zone, color=GREY, alpha=0.2, linewidth=0, label="_delta", zorder=0)
        ax.axvline(0, color=INK, linewidth=1, label="_zero", zorder=1)
        for y, row in enumerate(records):
            high = bool(row.get("inflated"))
            words = [said[y], p.n(row["n"])] + ([f"{TONES['watch']} {say('chart.inflated')}"] if high else [])
            draw_row(ax, y, estimate(row), "  ".join(words), *((BAD, "^") if high else ()))
        name_rows(ax, names)
        shaded = "" if zone is None else say("chart.bias_zone", delta=f"{zone:.3g}")
        told = [f"{name} {words}" for name, words in zip(names, said, strict=True)]
        tell(_kind_to(records, names, said, p), p.words(told), say("chart.bias_axis") + shaded)
    return ax


def _kind_to(records: list[dict[Any, Any]], names: list[str], said: list[str], p: Part) -> str:
    found = [f"{names[k]} {said[k]}" for k, row in enumerate(records) if row.get("inflated")]
    if found:
        more = [f"+ {len(found) - 3}"] * (len(found) > 3)
        return p.say("chart.too_kind", groups=p.say("chart.and").join(found[:3] + more))
    if not records:
        return p.say("chart.no_pairs")
    return p.say("chart.not_too_kind", value=f"{names[0]} {said[0]}")


def corrected_means(card: Any, *, scale: tuple[float, float] | None = None, **look: Unpack[OfCard]) -> Axes:
    """Draw means by the judge alone, by the humans alone, and by the judge corrected by the humans.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``corrected``: ``[judge, dimension, system,] way, value, low, high, n``, optionally
        ``n_judged``.
    judge, dimension : str, optional
        Which, where there are several.
    scale : (low, high), optional
        The whole scale; by default the card's, else what the intervals take.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default the corrected mean beside the judge's. Empty for no
        title.

    Returns
    -------
    Axes
        Three rows a system, in the order of the frame, one colour and shape a way.

    Raises
    ------
    RagnbError
        For several judges or dimensions and no choice, and for unknown ones or an unknown way.

    Examples
    --------
    >>> import pandas as pd
    >>> means = pd.DataFrame({"system": "a", "way": ["judge", "human", "corrected"], "value": [8.0, 7.0, 7.1],
    ...                       "low": [7.8, 6.0, 6.6], "high": [8.2, 8.0, 7.6], "n": 40})
    >>> corrected_means(means).get_title(loc="left")
    'Corrected mean of a: 7.100 [6.600, 7.600]; the judge alone says 8.000'
    """
    p = part(card, "corrected", ("way", "value", "n"), **look)
    say, rows = p.say, p.rows if "system" in p.rows else p.rows.assign(system="")
    systems = list(dict.fromkeys(map(str, rows["system"])))
    records = {(str(row["system"]), str(row["way"])): row for row in rows.to_dict("records")}
    for _, way in records:
        if way not in WAYS:
            raise unknown("way", way, WAYS)
    ways = [way for way in WAYS if any(held == way for _, held in records)]
    names = [fitted(name) or say("chart.all_systems") for name in systems]
    space = len(ways) + 0.6
    bottom = max(space * len(names), 1.0) - 1.0
    with p.canvas(1.3 + 0.28 * (bottom + 1)) as (ax, tell):
        told = []
        for place, system in enumerate(systems):
            for step, way in enumerate(ways):
                row = records.get((system, way), {})
                words, label = _counted(row, p), say(f"chart.way.{way}") if place == 0 else "_row"
                draw_row(ax, place * space + step, estimate(row), words, *_LOOKS[way], label)
                told.append(f"{names[place]}, {say(f'chart.way.{way}')} {words}")
        middle = [place * space + (len(ways) - 1) / 2 for place in range(len(names))]
        name_rows(ax, names, middle, bottom)
        held = p.set("scale", scale)
        if held is not None:
            whole(ax, float(held[0]), float(held[1]))
        if names:
            legend_below(ax)
        tell(_corrected(records, systems, names, p), p.words(told), say("chart.mean_score"))
    return ax


def _counted(row: Mapping[Any, Any], p: Part) -> str:
    words = with_interval(*estimate(row))
    if not is_missing(row.get("value")):
        words += "  " + p.n(row["n"])
        judged: Any = row.get("n_judged")
        if row["way"] == "corrected" and not is_missing(judged) and judged > 0:
            words += " + " + count(judged)
    return words


def _corrected(records: dict[Any, Any], systems: list[str], names: list[str], p: Part) -> str:
    """Say what correction makes of the first system, beside what the judge alone says."""
    for system, name in zip(systems, names, strict=True):
        row, alone = records.get((system, "corrected"), {}), records.get((system, "judge"), {})
        if not is_missing(row.get("value")):
            value = with_interval(*estimate(row))
            return p.say("chart.corrected", system=name, value=value, judge=number(alone.get("value")))
    return p.say("chart.nothing")
