"""What `calibrate` returns: one card with everything a verdict on a judge rests on, as HTML and as Markdown."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb import markup
from ragnb.calibration.corrected import not_random
from ragnb.calibration.ratings import ALL
from ragnb.errors import listing, unknown
from ragnb.markup import Column, Safe, bullets, element, join, number, percent
from ragnb.texts import entry, load

WORST_LAST = ("TRUST", "NOT PROVEN", "REJECT")
SIDES = ("RECALIBRATE", "RANKING ONLY", "INFLATED")
TONES = {"TRUST": "good", "NOT PROVEN": "watch", "REJECT": "bad"}
LAYOUT: dict[str, Any] = tomllib.loads(Path(__file__).with_name("card.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, repr=False)
class CalibrationCard:
    """A verdict on a judge (or several, side by side) and every number behind it, made by `calibrate`.

    A *row* is one judge on one dimension. Every frame begins with ``judge, dimension``, so several judges and
    dimensions live in one frame; `only` cuts the card to some of them. Each row has its own verdict in
    ``verdicts``; the card's is the worst of them: TRUST only where every row is TRUST (each tested at its level,
    so that their conjunction keeps it), REJECT where one row is. Estimates are ``value`` or named, with
    ``low, high``, ``n`` and ``n_clusters``; missing is nan. Bias is judge − human, in points of the scale.

    Attributes
    ----------
    verdict : {"TRUST", "NOT PROVEN", "REJECT"}
        The worst of the rows.
    sides : tuple of str
        Side verdicts of any row, of ``RECALIBRATE``, ``RANKING ONLY``, ``INFLATED``, in this order.
    reasons : tuple of str
        Sentences in `lang`; the first two say all that a hurried reader needs.
    verdicts : DataFrame
        ``judge, dimension, verdict, sides`` (tuple), ``reasons`` (tuple of sentences), ``share, lower, upper``
        (the raw share within the tolerance and its one-sided bounds; ``low, high`` are two-sided), ``target,
        constant, constant_score`` (share and answer of the best constant judge), ``beats_constant, bias, bias_low,
        bias_high, delta, unbiased`` (its interval, and that of every inflated system, lies inside ±delta), ``n,
        n_clusters, judge_labelled, judge_rest, draw_z, draw_p``: the judge's means on labelled rows and on the
        rest, and the test of a random draw (`stats.draw_test`, Holm over the rows).
    table : DataFrame
        What `agreement` gives: ``judge, dimension, measure, value, low, high, n, n_clusters``.
    bands : DataFrame
        By the judge's score: ``judge, dimension, band`` (label), ``start, end`` (both inside the band),
        ``share, low, high`` (within the tolerance), ``bias, bias_low, bias_high, n, n_clusters, p`` (Holm),
        ``verdict`` (``TRUST``, ``REJECT``, ``NOT PROVEN``, or ``too few`` under 5 clusters).
    inflation : DataFrame
        ``judge, dimension, kind`` (``overall``, ``system``, ``length``, ``answerability``, any group asked for),
        ``group, value`` (bias), ``low, high, beside, beside_low, beside_high`` (bias less that of all other
        groups), ``p`` (of a bias of 0, Holm over the groups of its kind), ``n, n_clusters, inflated`` (the bias is
        shown to lie above 0; beside TRUST no system's is, as each such bias is shown to be acceptable).
    recalibration : DataFrame
        ``judge, dimension, map`` (``raw``, ``constant``, ``linear``, ``isotonic``), ``mae, mae_low, mae_high,
        share, low, high`` (out of fold), ``gain, gain_low, gain_high`` (fall of MAE against raw), ``helps``
        (MAE below raw and constant), ``passes`` (would be TRUST).
    labels_needed : DataFrame
        ``judge, dimension, total, more, independent`` (Int64, missing where no number suffices), ``deff, rho,
        seen, planned, reason`` (``counted``, ``share_at_or_below_target``, ``too_close_to_tell``), ``text``.
    budget : DataFrame
        The label-budget curve: ``judge, dimension`` and the columns of `label_budget`.
    counts : DataFrame
        ``judge, dimension, judge_score, human_score, n``: cells for the heat map and Bland–Altman's points.
        Past 5,000 cells both scores are rounded to a hundredth of the scale; ``attrs["step"]`` says so.
    reliability : DataFrame
        ``judge, dimension, judge_score, human`` (mean of the humans at it), ``low, high, isotonic,
        isotonic_low, isotonic_high`` (cluster bootstrap), ``n, n_clusters``; at most 20 points a row, equal parts
        of the ratings where the judge gave more scores.
    corrected : DataFrame
        ``judge, dimension, system`` ("" for all), ``way`` (``judge``, ``human``, ``corrected``), ``value, low,
        high, weight, n, n_judged, n_clusters``.
    notes : DataFrame
        ``code, about, text``: what a reader must know before believing the numbers.
    footer : dict
        ``judge_id, prompt_sha256, rater_protocol, drawn_at_random, data_sha256, seed, resamples, n, n_clusters,
        raters, n_missing``; None where the caller did not say.
    tolerance, target, delta, level : float
        As they were asked for; `delta`, the acceptable bias, is 1/18 of the scale by default.
    scale : (float, float)
        The lowest and highest label.
    lang : {"en", "zh"}

    Examples
    --------
    >>> from ragnb.calibration import calibrate
    >>> card = calibrate(pd.DataFrame({"judge": [5, 1, 5, 2] * 40, "human": [5, 1, 4, 2] * 40}), scale=(1, 5))
    >>> card
    CalibrationCard('NOT PROVEN', sides=('INFLATED',), 1 rows)
    """

    verdict: str
    sides: tuple[str, ...]
    reasons: tuple[str, ...]
    verdicts: pd.DataFrame
    table: pd.DataFrame
    bands: pd.DataFrame
    inflation: pd.DataFrame
    recalibration: pd.DataFrame
    labels_needed: pd.DataFrame
    budget: pd.DataFrame
    counts: pd.DataFrame
    reliability: pd.DataFrame
    corrected: pd.DataFrame
    notes: pd.DataFrame
    footer: dict[str, Any]
    tolerance: float
    target: float
    delta: float
    level: float
    scale: tuple[float, float]
    lang: str = "en"

    def __repr__(self) -> str:
        return f"CalibrationCard({self.verdict!r}, sides={self.sides!r}, {len(self.verdicts)} rows)"

    def only(self, *, judge: str | None = None, dimension: str | None = None) -> CalibrationCard:
        """Return the card of one judge, one dimension, or one judge on one dimension.

        Raises
        ------
        RagnbError
            For a judge or a dimension that is not on the card.

        Examples
        --------
        >>> from ragnb.calibration import calibrate
        >>> rows = pd.DataFrame({"judge": [4, 2] * 30, "human": [4, 2] * 30, "dimension": ["x", "x", "y"] * 20})
        >>> calibrate(rows, scale=(1, 5)).only(dimension="x").verdicts["dimension"].tolist()
        ['x']
        """
        wanted = {name: value for name, value in (("judge", judge), ("dimension", dimension)) if value is not None}
        for name, value in wanted.items():
            if value not in set(self.verdicts[name]):
                raise unknown(name, value, sorted(set(self.verdicts[name])))
        frames: dict[str, Any] = {}
        for name, frame in vars(self).items():
            if isinstance(frame, pd.DataFrame) and name != "notes":
                chosen = (frame[list(wanted)] == pd.Series(wanted)).all(axis=1)
                frames[name] = frame[chosen].reset_index(drop=True)
        return replace(self, **summary(frames["verdicts"], self.tolerance, self.lang), **frames)

    def _repr_html_(self) -> str:
        first, second, *rest = self.reasons
        badges = [markup.badge(TONES[self.verdict], self.verdict, lang=self.lang)]
        badges += [Safe(f" {markup.badge('watch', side, lang=self.lang)}") for side in self.sides]
        body: list[Any] = [element("p", *badges), element("p", element("strong", first)), element("p", second)]
        body += [bullets(rest)] if rest else []
        body += [part.html(self.lang, folded=part.key in ("table", "footer")) for part in parts(self)]
        return markup.fragment(join(body), lang=self.lang)

    def to_markdown(self) -> str:
        """Return the card as Markdown, without times and machine paths: equal input gives equal text."""
        first, second, *rest = (markup.md_cell(line) for line in self.reasons)
        blocks = [f"**{first}**", second, *(["\n".join(f"- {line}" for line in rest)] if rest else [])]
        blocks += [f"## {part.title}\n\n{part.markdown()}" for part in parts(self)]
        return "\n\n".join(blocks) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold: frames as lists of records, None where a value is missing."""
        out: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, pd.DataFrame):
                out[name] = json.loads(value.to_json(orient="records", double_precision=12))
            else:
                out[name] = list(value) if isinstance(value, tuple) else value
        return out


@dataclass(frozen=True)
class Part:
    """A table of a card, or a list of sentences, under its title."""

    key: str
    title: str
    frame: pd.DataFrame = field(default_factory=pd.DataFrame)
    columns: dict[str, Column] = field(default_factory=dict)
    lines: tuple[str, ...] = ()

    def markdown(self) -> str:
        """Return the part without its title as Markdown."""
        listed = "\n".join(f"- {markup.md_cell(line)}" for line in self.lines)
        return listed or markup.markdown_table(self.frame, columns=self.columns)

    def html(self, lang: str, *, folded: bool = False) -> Safe:
        """Return the part under its title as HTML."""
        lines, table = bullets(self.lines), markup.html_table(self.frame, columns=self.columns, lang=lang)
        body = lines if self.lines else table
        return markup.details(self.title, body) if folded else join([element("h3", self.title), body])


def parts(card: CalibrationCard) -> Iterator[Part]:
    """Yield the tables of a card that have rows in reading order, then its notes and its footer."""
    say, words = load(card.lang), entry(card.lang, "calibration.word")
    whole = words["overall"]
    frames = {
        "verdicts": card.verdicts.assign(sides=[", ".join(sides) for sides in card.verdicts["sides"]]),
        "bands": card.bands.replace({"verdict": {"too few": words["too_few"]}}),
        "inflation": card.inflation.replace({"kind": {"overall": whole}}),
        "recalibration": card.recalibration.replace({"map": words}),
        "corrected": card.corrected.replace({"system": {"": whole}, "way": words}),
        "table": _written(card),
    }
    heads = {"judge": card.verdicts, "dimension": card.verdicts, "system": card.corrected}
    alone = {name for name, frame in heads.items() if frame[name].nunique() < 2}
    for key, columns in LAYOUT["tables"].items():
        shown = {}
        for name, own in ({"judge": {}, "dimension": {}} | columns).items():
            how = {"label": name, "written": False} | LAYOUT["columns"].get(name, {}) | own
            label, written = say(f"calibration.column.{how.pop('label')}"), how.pop("written")
            interval = written or "interval" in how.get("kind", "")
            if name not in alone:
                shown[name] = Column(f"{label} [{card.level:.0%}]" if interval else label, **how)
        if len(frames[key]):
            yield Part(key, say(f"calibration.title.{key}"), frames[key], shown)
    for key, lines in {"notes": tuple(card.notes["text"]), "footer": tuple(_footer(card))}.items():
        if lines:
            yield Part(key, say(f"calibration.title.{key}"), lines=lines)


def _written(card: CalibrationCard) -> pd.DataFrame:
    """Return the agreement table with its measures named and their values written out."""
    rows = card.table[card.table["value"].notna()].to_dict("records")
    for row in rows:
        share, value = row["measure"] in LAYOUT["shares"], row["value"]
        if np.isfinite(row["low"]):
            text = markup.with_interval(value, row["low"], row["high"], percent=share)
        else:
            text = markup.count(value) if row["measure"] == "n_missing" else (percent if share else number)(value)
        row |= {"measure": entry(card.lang, "calibration.measure")[row["measure"]], "value": text}
    return pd.DataFrame(rows)


def _footer(card: CalibrationCard) -> Iterator[str]:
    """Yield what made the card, label and value."""
    say = load(card.lang)
    for name, label in entry(card.lang, "calibration.footer").items():
        if name in card.footer:
            value = card.footer[name]
            if isinstance(value, bool):
                value = say("column.yes" if value else "column.no")
            yield f"{label}: {say('calibration.footer.unsaid') if value is None else value}"


def summary(verdicts: pd.DataFrame, tolerance: float, lang: str) -> dict[str, Any]:
    """Return what a card says of all its rows: the worst verdict, their side verdicts and the sentences."""
    rows, words = verdicts.to_dict("records"), verdicts["verdict"]
    verdict, reasons = max(words, key=WORST_LAST.index), tuple(rows[0]["reasons"])
    if len(rows) > 1:
        say, alone = load(lang), verdicts["judge"].nunique() == 1
        sums = ((words == word).sum() for word in WORST_LAST)
        counts = dict(zip(("trust", "open", "reject"), sums, strict=True))
        best = max(rows, key=lambda row: (-WORST_LAST.index(row["verdict"]), row["share"]))
        nearest = say("calibration.best", what=name_of(best, lang, alone=alone))
        drawn = [name_of(row, lang, alone=alone) for row in rows if not_random(row["draw_p"])]
        reasons = (
            say(f"calibration.many_{verdict.lower().replace(' ', '_')}", n=len(rows), **counts),
            f"{nearest} {share_line(best, tolerance, lang)}",
            *([say("calibration.draws", what=listing(drawn))] if drawn else []),
        )
    sides = tuple(side for side in SIDES if any(side in row["sides"] for row in rows))
    return {"verdict": verdict, "sides": sides, "reasons": reasons}


def name_of(row: Mapping[Any, Any], lang: str, *, alone: bool) -> str:
    """Return the judge in words: by its name where there are several."""
    key = "both" if not alone else "one" if row["dimension"] == ALL else "dimension"
    return load(lang)(f"calibration.what_{key}", judge=row["judge"], dimension=row["dimension"])


def share_line(row: Mapping[Any, Any], tolerance: float, lang: str) -> str:
    """Return the share beside its target and the best constant, in one sentence."""
    values = {"share": percent(row["share"]), "constant": percent(row["constant"])}
    values |= {"tolerance": f"{tolerance:g}", "score": f"{row['constant_score']:.3g}"}
    if not np.isfinite(row["low"]):
        return load(lang)("calibration.no_interval", **values)
    ends = {name: percent(row[name]) for name in ("low", "high", "target")}
    return load(lang)("calibration.share", **values, **ends)


def signed(value: float) -> str:
    """Return a difference with its sign.

    Examples
    --------
    >>> signed(0.594), signed(-0.405), signed(float("nan"))
    ('+0.59', '−0.41', '—')
    """
    written = number(abs(value) if np.isfinite(value) else value, 2)
    return written if not np.isfinite(value) or float(written) == 0 else f"{'+' if value > 0 else '−'}{written}"
