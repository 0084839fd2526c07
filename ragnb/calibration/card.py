"""The calibration card: a judge beside people, and whether to trust it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ragnb.calibration.sentences import summary
from ragnb.calibration.words import LAYOUT, TONES, filled
from ragnb.errors import need_known
from ragnb.markup import number
from ragnb.markup.blocks import Mark, Section, Table, Text
from ragnb.markup.rendering import render_fragment, render_markdown
from ragnb.texts import entry, load


@dataclass(frozen=True, repr=False)
class CalibrationCard:
    """The verdict on one or several judges, with every number behind it; created by `calibrate`.

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
        bias_high, bias_lower, bias_upper`` (the latter two for the verdict), ``delta, unbiased`` (they, and the
        upper one of every inflated system, are inside ±delta), ``n, labels_planned, widened`` (how many times as
        wide as for one look the share's margin is for the verdict; missing where the plan is spent, as ``lower,
        upper`` are), ``n_clusters, judge_labelled, judge_rest, draw_z, draw_p``: the judge's means on labelled
        rows and on the rest, and the test of a random draw (`stats.draw_test`, Holm over the rows).
    table : DataFrame
        What `agreement` gives: ``judge, dimension, measure, value, low, high, n, n_clusters``.
    bands : DataFrame
        By the judge's score: ``judge, dimension, band`` (label), ``start, end`` (both inside the band),
        ``share, low, high`` (within the tolerance), ``bias, bias_low, bias_high, n, n_clusters, p`` (Holm),
        ``verdict`` (``TRUST``, ``REJECT``, ``NOT PROVEN``, or ``too few`` under 5 clusters).
    inflation : DataFrame
        ``judge, dimension, kind`` (``overall``, ``system``, ``length``, ``answerability``, any group asked for),
        ``group, value`` (bias), ``low, high, upper`` (the one for the verdict), ``beside, beside_low,
        beside_high`` (bias less that of all other groups), ``p`` (of a bias of 0, Holm over the groups of its
        kind), ``n, n_clusters, inflated`` (the bias is shown to be above 0; beside TRUST no system's is, as each
        such bias is shown to be acceptable).
    recalibration : DataFrame
        ``judge, dimension, map`` (``raw``, ``constant``, ``linear``, ``isotonic``), ``mae, mae_low, mae_high,
        share, low, high`` (out of fold), ``gain, gain_low, gain_high`` (fall of MAE against raw), ``helps``
        (MAE below raw and constant), ``passes`` (would be TRUST).
    labels_needed : DataFrame
        ``judge, dimension, total, more, independent`` (Int64, missing where no number suffices), ``deff, rho,
        seen, planned, reason`` (``counted``, ``beyond_plan``, ``share_at_or_below_target``,
        ``too_close_to_tell``), ``text``.
    budget : DataFrame
        The label-budget curve: ``judge, dimension`` and the columns of `label_budget`.
    counts : DataFrame
        ``judge, dimension, judge_score, human_score, n``: cells for the heat map and Bland–Altman's points.
        Past 5,000 cells both scores are rounded to a hundredth of the scale.
    reliability : DataFrame
        ``judge, dimension, judge_score, human`` (mean of the humans at it), ``low, high, isotonic, n,
        n_clusters``; at most 20 points a row, equal parts of the ratings where the judge gave more scores.
    corrected : DataFrame
        ``judge, dimension, system`` ("" for all), ``way`` (``judge``, ``human``, ``corrected``), ``value, low,
        high, weight, n, n_judged, n_clusters``.
    notes : DataFrame
        ``code, about, text``: what a reader must know before believing the numbers.
    footer : dict
        ``judge_id, prompt_sha256, rater_protocol, drawn_at_random, data_sha256, seed, n, n_clusters, raters,
        n_missing``; None where the caller did not say.
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
        frames = {key: part for key, part in vars(self).items() if isinstance(part, pd.DataFrame)}
        # Notes and footer are of all the ratings, and stay as they are.
        del frames["notes"]
        for name, value in {"judge": judge, "dimension": dimension}.items():
            if value is not None:
                need_known(name, value, sorted(set(self.verdicts[name])))
                frames = {
                    key: part[part[name] == value].reset_index(drop=True)
                    for key, part in frames.items()
                }
        changed: dict[str, Any] = summary(frames["verdicts"], self.tolerance, self.lang) | frames
        return replace(self, **changed)

    def sections(self) -> list[Section]:
        """Return the verdict with its reasons, then each table that has rows, the notes and what made the card."""
        title = entry(self.lang, "section.judge")
        headline, *other_reasons = self.reasons
        verdict = Mark(TONES[self.verdict], self.verdict)
        sides = [Mark("watch", side) for side in self.sides]
        blocks = Text(((verdict, *sides),)), Text(tuple(other_reasons), "list")
        first = Section("verdict", title, headline, blocks=blocks, lang=self.lang)
        return [first, *parts(self)]

    def _repr_html_(self) -> str:
        return render_fragment(self.sections())

    def to_markdown(self) -> str:
        """Return the card as Markdown, without times and machine paths: equal input gives equal text."""
        return render_markdown(self.sections())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: frames as lists of records, None for a missing value."""
        record = dict(vars(self))
        for name, value in record.items():
            if isinstance(value, tuple):
                record[name] = list(value)
            elif isinstance(value, pd.DataFrame):
                # Through pandas' JSON, which takes NumPy's numbers and writes nan as null, unlike Python's.
                record[name] = json.loads(value.to_json(orient="records", double_precision=12))
        return record


def parts(card: CalibrationCard) -> Iterator[Section]:
    """Yield the tables of a card that have rows in reading order, then its notes and its footer."""
    say = load(card.lang)
    words = entry(card.lang, "calibration.word")
    frames = {
        "verdicts": card.verdicts.assign(sides=card.verdicts["sides"].map(", ".join)),
        "bands": card.bands.replace({"verdict": {"too few": words["too_few"]}}),
        "inflation": card.inflation.replace({"kind": {"overall": words["overall"]}}),
        "recalibration": card.recalibration.replace({"map": words}),
        "corrected": card.corrected.replace({"system": {"": words["overall"]}, "way": words}),
        "table": _measures(card),
    }
    hidden = _columns_without_news(card)
    blocks: dict[str, Table | Text] = {}
    for key, columns in LAYOUT["tables"].items():
        blocks[key] = _table(card, frames[key], columns, hidden)
    blocks["notes"] = Text(tuple(card.notes["text"]), "list")
    blocks["footer"] = Text(tuple(_footer(card)), "list")
    for key, block in blocks.items():
        title = say(f"calibration.title.{key}")
        content = block.rows if isinstance(block, Table) else block.lines
        if content:
            yield Section(key, title, title, blocks=(block,))


def _columns_without_news(card: CalibrationCard) -> set[str]:
    """Return the columns that would say the same in every row, or nothing."""
    frame_of = {"judge": card.verdicts, "dimension": card.verdicts, "system": card.corrected}
    hidden = {name for name, frame in frame_of.items() if frame[name].nunique() < 2}
    if card.verdicts["labels_planned"].isna().all():
        hidden |= {"labels_planned", "widened"}
    return hidden


def _table(
    card: CalibrationCard,
    frame: pd.DataFrame,
    columns: Mapping[str, Mapping[str, Any]],
    hidden: Collection[str],
) -> Table:
    """Return a frame as a table of the columns that ``card.toml`` names, each written in its form."""
    say = load(card.lang)
    rows = frame.to_dict("records")
    shown = [name for name in ("judge", "dimension", *columns) if name not in hidden]
    cells_of_head = {}
    for name in shown:
        # What all tables say of a column; a table may say it otherwise.
        look = LAYOUT["columns"].get(name, {}) | columns.get(name, {})
        form = look.get("form", f"{{{name}}}")
        head = say(f"calibration.column.{look.get('label', name)}")
        if "[" in form or "interval" in look:
            head += f" [{card.level:.0%}]"
        if "form" in look:
            head = ">" + head  # a column of numbers, set to the right
        cells_of_head[head] = ["" if pd.isna(row[name]) else filled(form, row) for row in rows]
    return Table(tuple(cells_of_head), tuple(zip(*cells_of_head.values(), strict=True)))


def _measures(card: CalibrationCard) -> pd.DataFrame:
    """Return the agreement table with its measures named and their values written out."""
    names = entry(card.lang, "calibration.measure")
    rows = card.table[card.table["value"].notna()].to_dict("records")
    for row in rows:
        forms = LAYOUT["forms"][LAYOUT["measures"][row["measure"]]]
        has_interval = np.isfinite(row["low"])
        row["value"] = filled(forms[int(has_interval)], row)
        row["measure"] = names[row["measure"]]
    return pd.DataFrame(rows)


def _footer(card: CalibrationCard) -> Iterator[str]:
    """Yield what made the card, label and value."""
    say = load(card.lang)
    labels = entry(card.lang, "calibration.footer")
    for name in labels:
        if name not in card.footer:
            continue
        value = card.footer[name]
        if value is None:
            value = labels["unsaid"]
        elif isinstance(value, bool):
            answer = "yes" if value else "no"
            value = say(f"column.{answer}")
        elif isinstance(value, float):
            value = number(value, 2)
        yield f"{labels[name]}: {value}"
