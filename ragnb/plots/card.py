"""Charts of a calibration card: one judge on one dimension, from the card or one of its frames."""

from __future__ import annotations

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
_VERDICTS = {
    "TRUST": (GOOD, "o"),
    "REJECT": (BAD, "s"),
    "NOT PROVEN": (WATCH, "^"),
    "too few": (GREY, "D"),
}
_WAYS = dict(
    zip(("judge", "human", "corrected"), zip(SYSTEM_COLOURS, "sDo", strict=False), strict=True)
)
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
    p = Part(card, "reliability", ("judge_score", "human", "n"), look)
    names = ["judge_score", "human", "n", "low", "high", "isotonic"]
    say = p.say
    curve = p.rows.sort_values("judge_score", kind="stable").reindex(columns=names).astype(float)
    x, human, n, low, high, isotonic = curve.to_numpy().T
    with canvas(p.look, 4.0) as (ax, describe):
        ends = p.ends(x, human, low, high)
        ax.plot(
            ends, ends, color=GREY, linewidth=1, linestyle="--", label=say("chart.right_on_average")
        )
        ax.fill_between(x, low, high, color=BLUE, alpha=0.15, linewidth=0, label="_band")
        ax.vlines(x, low, high, color=BLUE, linewidth=1.6, label="_interval")
        faces = np.where(np.isnan(low), "none", BLUE)
        sizes = np.maximum(90 * n / max(n.max(initial=1.0), 1.0), 14)
        ax.scatter(
            x, human, s=sizes, c=faces, edgecolors=BLUE, label=say("chart.human_mean"), zorder=3
        )
        ax.plot(x, isotonic, color=ORANGE, linewidth=1.6, label=say("chart.isotonic"))
        # Every second n where they would touch.
        for k in range(0, len(x), 1 + len(x) // 12):
            many = p.n(n[k]) if k == 0 and len(x) < 8 else count(n[k])
            ax.annotate(many, (x[k], 0), (0, 3), label="_n", ha="center", fontsize=7.5, **_FOOT)
        whole_scale(ax, "x", *ends, margin=0.04)
        whole_scale(ax, "y", *ends, margin=0.04, below=0.088)
        legend_below(ax, 36)
        words = [with_interval(*row) for row in zip(human, low, high, strict=True)]
        finding = say("chart.no_intervals" if np.isnan(low).all() else "chart.none_off")
        off = np.nan_to_num(np.fmax(low - x, x - high))
        if off.max(initial=0.0) > 0:
            # Of equals the last.
            k = len(off) - 1 - int(off[::-1].argmax())
            finding = say("chart.humans_say", score=f"{x[k]:g}", value=words[k])
        lines = [
            f"{score:g}: {word} ({p.n(many)})"
            for score, word, many in zip(x, words, n, strict=True)
        ]
        describe(finding, [p.about, *lines], say("chart.judge_axis"), say("chart.human_axis"))
    return ax


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
    p = Part(card, "bands", ("band", "share", "n"), look)
    if "start" not in p.rows:
        bands = p.rows.iloc[::-1]
    else:
        bands = p.rows.sort_values("start", ascending=False)
    threshold = p.set("target")
    say = p.say
    rows = list[Row]()
    shown: dict[str, list[str]] = {"TRUST": [], "REJECT": []}
    for row in bands.to_dict("records"):
        name = fitted(row["band"])
        verdict = str(row.get("verdict", ""))
        at = estimate(row, "share")
        words = [with_interval(*at, percent=True), p.n(row["n"])]
        if verdict in _VERDICTS:
            words += [say(f"chart.verdict.{verdict.lower().replace(' ', '_')}")]
        rows.append((name, [Dot(at, "  ".join(words), *_VERDICTS.get(verdict, ()))]))
        shown.get(verdict, []).insert(0, name)
    shares = [
        say(f"chart.bands.{key.lower()}", bands=", ".join(bands))
        for key, bands in shown.items()
        if bands
    ]
    if shares:
        finding = say("chart.bands.all", found=say("chart.and").join(shares))
    else:
        finding = say("chart.bands.none")
    if bands["share"].isna().all():
        finding = say("chart.no_pairs")
    width = p.set("tolerance")
    axis = say(
        "chart.band_axis" if width else "chart.band_axis_exact",
        tolerance=f"{width:g}",
        target=percent(threshold),
    )
    how: Any = {"about": p.about, "finding": finding, "labels": [axis, say("chart.judge_axis")]}
    with dot_rows(p.look, rows, span=(0.0, 1.0), **how) as ax:
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
    p = Part(card, "inflation", ("kind", "group", "value", "n"), look)
    if kinds := [str(name) for name in dict.fromkeys(p.rows["kind"]) if name != "overall"]:
        need_known("kind", kind, kinds)
    say = p.say
    zone = next(iter(p.beside("verdicts").get("delta", ())), p.set("delta"))
    groups = p.rows[p.rows["kind"].isin(["overall", kind])].assign(part=p.rows["kind"] != "overall")
    rows = list[Row]()
    values = list[str]()
    inflated = list[str]()
    for row in groups.sort_values(
        ["part", "value"], ascending=[True, False], kind="stable"
    ).to_dict("records"):
        if row["part"]:
            name = fitted(row["group"])
        else:
            name = say("calibration.word.overall")
        at = estimate(row)
        high = bool(row.get("inflated"))
        words = [signed(*at), p.n(row["n"])] + [f"{TONES['watch']} {say('chart.inflated')}"] * high
        values.append(f"{name} {words[0]}")
        inflated += values[-1:] * high
        rows.append((name, [Dot(at, "  ".join(words), *((BAD, "^") if high else ()))]))
    more = [f"+ {len(inflated) - 3}"] * (len(inflated) > 3)
    finding = say("chart.too_kind", groups=say("chart.and").join(inflated[:3] + more))
    if not inflated:
        if values:
            finding = say("chart.not_too_kind", value=values[0])
        else:
            finding = say("chart.no_pairs")
    label = say("chart.bias_axis") + (
        "" if zone is None else say("chart.bias_zone", delta=f"{zone:.3g}")
    )
    with dot_rows(p.look, rows, about=p.about, finding=finding, labels=[label]) as ax:
        if zone is not None:
            ax.axvspan(-zone, zone, color=GREY, alpha=0.2, linewidth=0, label="_delta", zorder=0)
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
    p = Part(card, "corrected", ("way", "value", "n"), look)
    say = p.say
    if "system" in p.rows:
        means = p.rows
    else:
        means = p.rows.assign(system="")
    for way in sorted(set(means["way"])):
        need_known("way", way, tuple(_WAYS))
    by_way = {(str(row["system"]), str(row["way"])): row for row in means.to_dict("records")}
    rows = list[Row]()
    finding = ""
    for system in dict.fromkeys(system for system, _ in by_way):
        rows.append((fitted(system) or say("chart.all_systems"), []))
        for way in (way for way in _WAYS if way in set(means["way"])):
            row = by_way.get((system, way), {})
            words = value = with_interval(*estimate(row))
            if not is_missing(row.get("value")):
                words += "  " + p.n(row["n"])
                if way == "corrected":
                    judged = row.get("n_judged", 0)
                    words += f" + {count(judged)}" * (judged > 0)
                    alone = number(by_way.get((system, "judge"), {}).get("value"))
                    finding = finding or say(
                        "chart.corrected", system=rows[-1][0], value=value, judge=alone
                    )
            rows[-1][1].append(Dot(estimate(row), words, *_WAYS[way], say(f"chart.way.{way}")))
    how: Any = {
        "about": p.about,
        "span": p.set("scale"),
        "finding": finding or say("chart.nothing"),
    }
    with dot_rows(p.look, rows, **how, labels=[say("chart.mean_score")]) as ax:
        return ax


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

    p = Part(card, "budget", ("labels", "share", "low", "high", "probability"), look)
    say = p.say
    curve = p.rows.sort_values("labels", kind="stable").reset_index(drop=True)
    x = curve["labels"].to_numpy(dtype=float)
    records = curve.to_dict("records")
    first: Any = records[0] if records else {}
    target = first.get("target", p.set("target"))
    n = first.get("n")
    with canvas(p.look, 3.6) as (ax, describe):
        band: Any = {
            "color": BLUE,
            "alpha": 0.2,
            "linewidth": 0,
            "label": say("chart.expected_interval"),
        }
        ax.fill_between(x, curve["low"].astype(float), curve["high"].astype(float), **band)
        for column, colour, style, key in _CURVES:
            if column in curve:
                ax.plot(
                    x,
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
            ax.set(xscale="log", xlim=(x.min(), max(x.max(), x.min() * 1.01)))
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.xaxis.set_major_formatter("{x:,.0f}")
            ax.minorticks_off()
        legend_below(ax, 36)
        values = []
        for row in records:
            words = {
                "labels": count(row["labels"]),
                "interval": ends(row["low"], row["high"], percent=True),
            }
            values.append(say("chart.budget_row", chance=percent(row["probability"]), **words))
        if values:
            near = values[int(np.abs(x - first.get("n", 0)).argmin())]
        else:
            near = say("chart.no_intervals")
        finding = next(iter(p.beside("labels_needed").get("text", ())), None) or near
        describe(
            finding, [p.about, *values[:: max(len(records) // 5, 1)]], say("chart.labels_axis")
        )
    return ax
