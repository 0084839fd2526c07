"""Charts of a calibration card: one judge on one dimension, from the card or one of its frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from ragnb.errors import need_known
from ragnb.markup import TONES, count, ends, is_missing, number, percent, with_interval
from ragnb.markup.rendering import INK, SYSTEM_COLOURS
from ragnb.plots.canvas import GREY, Axes, Look, canvas, fitted, legend_below
from ragnb.plots.means import estimate
from ragnb.plots.part import BAD, BLUE, GOOD, ORANGE, WATCH, Part, signed
from ragnb.plots.rows import Dot, Row, dot_rows, percents, whole_scale

# Written at a place of the scale and a height of the Axes, a few points beside it.
_FOOT: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
# The colour and the mark of each verdict.
_VERDICTS = {
    "TRUST": (GOOD, "o"),
    "REJECT": (BAD, "s"),
    "NOT PROVEN": (WATCH, "^"),
    "too few": (GREY, "D"),
}
# The colour and the mark of each way to a mean.
_WAYS = {
    "judge": (SYSTEM_COLOURS[0], "s"),
    "human": (SYSTEM_COLOURS[1], "D"),
    "corrected": (SYSTEM_COLOURS[2], "o"),
}
_MOST_NAMED = 3  # inflated groups in a title; further ones are counted
# The lines of a label budget: column, colour, style and name.
_CURVES = (
    ("share", BLUE, "-", "share_seen"),
    ("probability", ORANGE, "-", "chance"),
    ("chance", ORANGE, "--", "chance_known"),
)


def reliability(card: Any, **look: Unpack[Look]) -> Axes:
    """Draw the mean of the humans where the judge gave each score, with its band and the isotonic curve.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``reliability``: ``[judge, dimension,] judge_score, human, low, high, isotonic, n``.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default the score whose humans' interval stands furthest from
        it. Empty for no title.

    Returns
    -------
    Axes
        Points of E[human | judge], their intervals, clusters respected, joined to a band where neighbours have
        both; the diagonal of a judge that is right on average; n along the bottom. A missing mean is a gap.

    Raises
    ------
    RagnbError
        For several judges or dimensions: ``card.only(judge=…)`` takes one.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"judge_score": [1, 2], "human": [1.5, 1.8], "low": 1.2, "high": [1.8, 2.2], "n": 9})
    >>> reliability(curve).get_title(loc="left")
    'Where the judge scores 1, the human mean is 1.500 [1.200, 1.800]'
    """
    part = Part(card, "reliability", ("judge_score", "human", "n"), look)
    say = part.say
    names = ["judge_score", "human", "n", "low", "high", "isotonic"]
    curve = part.rows.sort_values("judge_score", kind="stable").reindex(columns=names).astype(float)
    x, human, n, low, high, isotonic = curve.to_numpy().T
    with canvas(part.look, 4.0) as (ax, describe):
        scale = part.ends(x, human, low, high)
        ax.plot(
            scale,
            scale,
            color=GREY,
            linewidth=1,
            linestyle="--",
            label=say("chart.right_on_average"),
        )
        ax.fill_between(x, low, high, color=BLUE, alpha=0.15, linewidth=0, label="_band")
        ax.vlines(x, low, high, color=BLUE, linewidth=1.6, label="_interval")
        # A mean without an interval is hollow. Areas are in proportion to the ratings, but never too small to see.
        faces = np.where(np.isnan(low), "none", BLUE)
        areas = np.maximum(90 * n / max(n.max(initial=1.0), 1.0), 14)
        ax.scatter(
            x, human, s=areas, c=faces, edgecolors=BLUE, label=say("chart.human_mean"), zorder=3
        )
        ax.plot(x, isotonic, color=ORANGE, linewidth=1.6, label=say("chart.isotonic"))
        # Every second n where they would touch.
        for k in range(0, len(x), 1 + len(x) // 12):
            size = part.n(n[k]) if k == 0 and len(x) < 8 else count(n[k])
            ax.annotate(size, (x[k], 0), (0, 3), label="_n", ha="center", fontsize=7.5, **_FOOT)
        whole_scale(ax, "x", *scale, margin=0.04)
        # More room below the scale, for the numbers along the bottom.
        whole_scale(ax, "y", *scale, margin=0.04, below=0.088)
        legend_below(ax, 36)
        means = [with_interval(*row) for row in zip(human, low, high, strict=True)]
        lines = []
        for score, mean, size in zip(x, means, n, strict=True):
            lines.append(f"{score:g}: {mean} ({part.n(size)})")
        finding = _most_off(x, low, high, means, say)
        describe(finding, [part.about, *lines], say("chart.judge_axis"), say("chart.human_axis"))
    return ax


def _most_off(x: Any, low: Any, high: Any, means: Sequence[str], say: Any) -> str:
    """Say which score is furthest outside the interval of the human mean, or that none is."""
    off = np.nan_to_num(np.fmax(low - x, x - high))  # 0 without an interval
    if off.max(initial=0.0) > 0:
        k = len(off) - 1 - int(off[::-1].argmax())  # of equals the last
        return str(say("chart.humans_say", score=f"{x[k]:g}", value=means[k]))
    if np.isnan(low).all():
        return str(say("chart.no_intervals"))
    return str(say("chart.none_off"))


def band_shares(card: Any, **look: Unpack[Look]) -> Axes:
    """Draw the share within the tolerance by the judge's score, against the target.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``bands``: ``[judge, dimension,] band, share, low, high, n``, optionally ``start, verdict``.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default the bands with a verdict. Empty for no title.

    Returns
    -------
    Axes
        One row per band, the highest on top: the share on its interval, its verdict by shape, colour
        and word. Target and tolerance are the card's, else 0.8 and 1.

    Raises
    ------
    RagnbError
        For several judges or dimensions: ``card.only(judge=…)`` takes one.

    Examples
    --------
    >>> import pandas as pd
    >>> bands = pd.DataFrame({"band": ["1-5", "6-10"], "share": [0.4, 0.9], "n": 90})
    >>> band_shares(bands.assign(verdict=["REJECT", "TRUST"])).get_title(loc="left")
    'The judge is trusted where it scores 6-10; rejected where it scores 1-5'
    """
    part = Part(card, "bands", ("band", "share", "n"), look)
    say = part.say
    if "start" not in part.rows:
        bands = part.rows.iloc[::-1]
    else:
        bands = part.rows.sort_values("start", ascending=False)
    threshold = part.set("target")
    tolerance = part.set("tolerance")
    rows = list[Row]()
    names_of: dict[str, list[str]] = {"TRUST": [], "REJECT": []}
    for row in bands.to_dict("records"):
        name = fitted(row["band"])
        verdict = str(row.get("verdict", ""))
        at = estimate(row, "share")
        words = [with_interval(*at, percent=True), part.n(row["n"])]
        look_of_dot: tuple[str, ...] = ()  # the colour and the mark, if not those of every dot
        if verdict in _VERDICTS:
            words.append(say(f"chart.verdict.{verdict.lower().replace(' ', '_')}"))
            look_of_dot = _VERDICTS[verdict]
        rows.append((name, [Dot(at, "  ".join(words), *look_of_dot)]))
        if verdict in names_of:
            # The highest band is drawn first; a sentence names them from the lowest.
            names_of[verdict].insert(0, name)
    shares = []
    for verdict, names in names_of.items():
        if names:
            shares.append(say(f"chart.bands.{verdict.lower()}", bands=", ".join(names)))
    if bands["share"].isna().all():
        finding = say("chart.no_pairs")
    elif shares:
        finding = say("chart.bands.all", found=say("chart.and").join(shares))
    else:
        finding = say("chart.bands.none")
    if tolerance:
        key = "band_axis"
    else:
        key = "band_axis_exact"
    axis = say(f"chart.{key}", tolerance=f"{tolerance:g}", target=percent(threshold))
    how: Any = {"about": part.about, "finding": finding, "labels": [axis, say("chart.judge_axis")]}
    with dot_rows(part.look, rows, span=(0.0, 1.0), **how) as ax:
        percents(ax.xaxis)
        ax.axvline(threshold, color=INK, linewidth=1.2, linestyle="--", label="_target", zorder=1)
    return ax


def bias_by(card: Any, *, kind: str = "system", **look: Unpack[Look]) -> Axes:
    """Draw by how much the judge is above the humans, overall and by system (or another kind of group).

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``inflation``: ``[judge, dimension,] kind, group, value, low, high, n``, optionally
        ``inflated``.
    kind : str
        Which groups: ``system``, ``length``, ``answerability`` or any that the card was asked for.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default the inflated groups. Empty for no title.

    Returns
    -------
    Axes
        One row per group, overall first, then the most inflated; the zone within ±delta, of a card, shaded.
        Inflated groups have their own colour, shape and word.

    Raises
    ------
    RagnbError
        For several judges or dimensions: ``card.only(judge=…)`` takes one; and for an unknown kind.

    Examples
    --------
    >>> import pandas as pd
    >>> found = pd.DataFrame({"kind": "system", "group": ["a", "b"], "value": [0.1, 0.9], "low": [-0.1, 0.6],
    ...                       "high": [0.3, 1.2], "n": 50, "inflated": [False, True]})
    >>> ax = bias_by(found)
    >>> ax.get_title(loc="left"), [label.get_text() for label in ax.get_yticklabels()]
    ('Inflated scores: b +0.900 [0.600, 1.200]', ['b', 'a'])
    """
    part = Part(card, "inflation", ("kind", "group", "value", "n"), look)
    say = part.say
    kinds = [str(name) for name in dict.fromkeys(part.rows["kind"]) if name != "overall"]
    # Of a card with the overall bias alone, that is drawn, whatever the kind.
    if kinds:
        need_known("kind", kind, kinds)
    # What was decided with, else the setting of the card.
    delta = next(iter(part.beside("verdicts").get("delta", ())), part.set("delta"))
    groups = part.rows[part.rows["kind"].isin(["overall", kind])]
    groups = groups.assign(part=part.rows["kind"] != "overall")
    groups = groups.sort_values(["part", "value"], ascending=[True, False], kind="stable")
    rows = list[Row]()
    values = list[str]()
    inflated = list[str]()
    for row in groups.to_dict("records"):
        if row["part"]:
            name = fitted(row["group"])
        else:
            name = say("calibration.word.overall")
        at = estimate(row)
        value = f"{name} {signed(*at)}"
        words = [signed(*at), part.n(row["n"])]
        look_of_dot: tuple[str, ...] = ()  # the colour and the mark, if not those of every dot
        values.append(value)
        if row.get("inflated"):
            inflated.append(value)
            words.append(f"{TONES['watch']} {say('chart.inflated')}")
            look_of_dot = (BAD, "^")
        rows.append((name, [Dot(at, "  ".join(words), *look_of_dot)]))
    if inflated:
        named = inflated[:_MOST_NAMED]
        if len(inflated) > _MOST_NAMED:
            named.append(f"+ {len(inflated) - _MOST_NAMED}")
        finding = say("chart.too_kind", groups=say("chart.and").join(named))
    elif values:
        finding = say("chart.not_too_kind", value=values[0])
    else:
        finding = say("chart.no_pairs")
    label = say("chart.bias_axis")
    if delta is not None:
        label += say("chart.bias_zone", delta=f"{delta:.3g}")
    with dot_rows(part.look, rows, about=part.about, finding=finding, labels=[label]) as ax:
        if delta is not None:
            ax.axvspan(-delta, delta, color=GREY, alpha=0.2, linewidth=0, label="_delta", zorder=0)
        ax.axvline(0, color=INK, linewidth=1, label="_zero", zorder=1)
    return ax


def corrected_means(card: Any, **look: Unpack[Look]) -> Axes:
    """Draw means by the judge alone, by the humans alone, and by the judge corrected by the humans.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``corrected``: ``[judge, dimension, system,] way, value, low, high, n``, optionally
        ``n_judged``.
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
        For several judges or dimensions: ``card.only(judge=…)`` takes one; and for an unknown way.

    Examples
    --------
    >>> import pandas as pd
    >>> means = pd.DataFrame({"system": "a", "way": ["judge", "human", "corrected"], "value": [8.0, 7.0, 7.1],
    ...                       "low": [7.8, 6.0, 6.6], "high": [8.2, 8.0, 7.6], "n": 40})
    >>> corrected_means(means).get_title(loc="left")
    'Corrected mean of a: 7.100 [6.600, 7.600]; judge alone: 8.000'
    """
    part = Part(card, "corrected", ("way", "value", "n"), look)
    say = part.say
    if "system" in part.rows:
        means = part.rows
    else:
        means = part.rows.assign(system="")
    ways = set(means["way"])
    for way in sorted(ways):
        need_known("way", way, tuple(_WAYS))
    by_way = {(str(row["system"]), str(row["way"])): row for row in means.to_dict("records")}
    rows = list[Row]()
    finding = ""
    for system in dict.fromkeys(system for system, _ in by_way):
        name = fitted(system) or say("chart.all_systems")
        dots = list[Dot]()
        for way, (colour, mark) in _WAYS.items():
            if way not in ways:
                continue
            row = by_way.get((system, way), {})
            at = estimate(row)
            words = _words_of_way(part, way, row)
            dots.append(Dot(at, words, colour, mark, say(f"chart.way.{way}")))
            # Of several systems the first one that has a corrected mean.
            if way == "corrected" and not finding and not is_missing(row.get("value")):
                judge_alone = by_way.get((system, "judge"), {}).get("value")
                finding = say(
                    "chart.corrected",
                    system=name,
                    value=with_interval(*at),
                    judge=number(judge_alone),
                )
        rows.append((name, dots))
    how: Any = {
        "about": part.about,
        "span": part.set("scale"),
        "finding": finding or say("chart.nothing"),
    }
    with dot_rows(part.look, rows, **how, labels=[say("chart.mean_score")]) as ax:
        return ax


def _words_of_way(part: Part, way: str, row: Mapping[Any, Any]) -> str:
    """Write a mean with its n, a corrected one also with how many more answers the judge alone scored."""
    words = with_interval(*estimate(row))
    if is_missing(row.get("value")):
        return words
    words += f"  {part.n(row['n'])}"
    n_judged = row.get("n_judged", 0)
    if way == "corrected" and n_judged > 0:
        words += f" + {count(n_judged)}"
    return words


def label_budget(card: Any, **look: Unpack[Look]) -> Axes:
    """Draw, against the number of labels, the interval to expect and the chance to show the target.

    Parameters
    ----------
    card : CalibrationCard or DataFrame
        A card, or its ``budget``: ``[judge, dimension,] labels, share, low, high, probability``, optionally
        ``chance, target, n``, as ``card.budget`` holds it.
    ax : Axes, optional
        By default those of a new figure.
    lang : {"en", "zh"}, optional
        By default the card's.
    finding : str, optional
        The title and the start of the words; by default what the card says of the labels needed, else what the
        labels at hand give. Empty for no title.

    Returns
    -------
    Axes
        Shares on one scale from 0 to 100 %, labels on a logarithmic one: the interval as a band about the share
        seen, the target as a dashed line, the chance to show it as lines (the seen share taken for true, and
        when only the labels at hand are known of the truth); the labels at hand as an upright line.

    Raises
    ------
    RagnbError
        For several judges or dimensions: ``card.only(judge=…)`` takes one.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"labels": [50, 200], "share": 0.9, "low": [0.78, 0.85], "high": [0.96, 0.94],
    ...                       "probability": [0.5, 0.99], "target": 0.8, "n": 50})
    >>> label_budget(curve).get_title(loc="left")
    '50 labels: 78.0–96.0 %, probability 50.0 %'
    """
    from matplotlib.ticker import LogLocator

    part = Part(card, "budget", ("labels", "share", "low", "high", "probability"), look)
    say = part.say
    curve = part.rows.sort_values("labels", kind="stable").reset_index(drop=True)
    labels = curve["labels"].to_numpy(dtype=float)
    records = curve.to_dict("records")
    # The target and the number of labels at hand are those of the card, the same in each row.
    first: Any = records[0] if records else {}
    target = first.get("target", part.set("target"))
    n = first.get("n")
    with canvas(part.look, 3.6) as (ax, describe):
        ax.fill_between(
            labels,
            curve["low"].astype(float),
            curve["high"].astype(float),
            color=BLUE,
            alpha=0.2,
            linewidth=0,
            label=say("chart.expected_interval"),
        )
        for column, colour, style, key in _CURVES:
            if column in curve:
                ax.plot(
                    labels,
                    curve[column],
                    color=colour,
                    linewidth=1.6,
                    linestyle=style,
                    label=say(f"chart.{key}"),
                )
        ax.axhline(
            target, color=INK, lw=1, ls="--", label=say("chart.target", target=percent(target))
        )
        if not is_missing(n):
            ax.axvline(float(n), color=INK, linewidth=1, linestyle=":", label="_now")
            now = say("chart.labels_now", n=count(n))
            ax.annotate(now, (float(n), 0.06), (3, 0), label="_note", fontsize=8, **_FOOT)
        ax.set_ylim(-0.02, 1.02)
        percents(ax.yaxis)
        if records:
            # A single number of labels would make an axis without a length.
            end = max(labels.max(), labels.min() * 1.01)
            ax.set(xscale="log", xlim=(labels.min(), end))
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.xaxis.set_major_formatter("{x:,.0f}")
            ax.minorticks_off()
        legend_below(ax, 36)
        values = []
        for row in records:
            value = say(
                "chart.budget_row",
                labels=count(row["labels"]),
                interval=ends(row["low"], row["high"], percent=True),
                chance=percent(row["probability"]),
            )
            values.append(value)
        # What the card says of the labels needed, else the point nearest to the labels there are now.
        finding = next(iter(part.beside("labels_needed").get("text", ())), None)
        if not finding:
            if values:
                finding = values[int(np.abs(labels - first.get("n", 0)).argmin())]
            else:
                finding = say("chart.no_intervals")
        step = max(len(records) // 5, 1)  # a handful of points are enough in words
        describe(finding, [part.about, *values[::step]], say("chart.labels_axis"))
    return ax
