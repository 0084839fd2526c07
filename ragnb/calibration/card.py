"""The verdict on each judge and dimension: trusted, rejected, or not proven; and the card with every number behind
it, as HTML and as Markdown."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.ratings import (
    ALL,
    COLUMNS,
    DRAW,
    FRAMES,
    PROBABILITY,
    Asked,
    Cells,
    Missing,
    Names,
    Scale,
    as_list,
    blocks,
    cells_of,
    columns_of,
    corrected_row,
    corrected_ways,
    draw_text,
    fingerprint,
    group_columns,
    inflation,
    measure_rows,
    measured,
    not_random,
    open_ratings,
    over_constant,
    with_ends,
)
from ragnb.errors import RagnbError, listing, need_whole, unknown
from ragnb.markup import count, number, percent, with_interval
from ragnb.markup.blocks import Block, Mark, Section, Table, Text
from ragnb.markup.html import render_fragment
from ragnb.markup.markdown import render_markdown
from ragnb.schema import note_frame, note_row
from ragnb.stats import Estimate, LabelsNeeded
from ragnb.stats.estimates import NONE
from ragnb.texts import entry, load

WORST_LAST = TRUST, NOT_PROVEN, REJECT = ("TRUST", "NOT PROVEN", "REJECT")
SIDES = RECALIBRATE, RANKING_ONLY, INFLATED = ("RECALIBRATE", "RANKING ONLY", "INFLATED")
TONES = {TRUST: "good", NOT_PROVEN: "watch", REJECT: "bad"}
ABOUT = ("judge_id", "prompt_sha256", "rater_protocol", "drawn_at_random")
ROUGH = 20  # fewer clusters make intervals that are themselves rough
Measures = Mapping[str, Estimate]
LAYOUT: dict[str, Any] = tomllib.loads(Path(__file__).with_name("card.toml").read_text(encoding="utf-8"))


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
        >>> rows = pd.DataFrame({"judge": [4, 2] * 30, "human": [4, 2] * 30, "dimension": ["x", "x", "y"] * 20})
        >>> calibrate(rows, scale=(1, 5)).only(dimension="x").verdicts["dimension"].tolist()
        ['x']
        """
        frames: dict[str, Any] = {key: part for key, part in vars(self).items() if isinstance(part, pd.DataFrame)}
        del frames["notes"]
        for name, value in (("judge", judge), ("dimension", dimension)):
            if value not in {None, *self.verdicts[name]}:
                raise unknown(name, value, sorted(set(self.verdicts[name])))
            if value is not None:
                frames = {key: part[part[name] == value].reset_index(drop=True) for key, part in frames.items()}
        return replace(self, **summary(frames["verdicts"], self.tolerance, self.lang), **frames)

    def sections(self) -> list[Section]:
        """Return the verdict with its reasons, then each table that has rows, the notes and what made the card."""
        (first, *rest), say = self.reasons, load(self.lang)
        marks = Mark(TONES[self.verdict], self.verdict), *(Mark("watch", side) for side in self.sides)
        blocks = Text((marks,)), Text(tuple(rest), "list")
        return [Section("verdict", say("section.judge"), first, blocks=blocks, lang=self.lang), *parts(self)]

    def _repr_html_(self) -> str:
        return render_fragment(self.sections())

    def to_markdown(self) -> str:
        """Return the card as Markdown, without times and machine paths: equal input gives equal text."""
        return render_markdown(self.sections())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: frames as lists of records, None for a missing value."""

        def plain(value: Any) -> Any:
            if isinstance(value, pd.DataFrame):
                return json.loads(value.to_json(orient="records", double_precision=12))
            return list(value) if isinstance(value, tuple) else value

        return {name: plain(value) for name, value in vars(self).items()}


def parts(card: CalibrationCard) -> Iterator[Section]:
    """Yield the tables of a card that have rows in reading order, then its notes and its footer."""
    say, words = load(card.lang), entry(card.lang, "calibration.word")
    whole = words["overall"]
    frames = {
        "verdicts": card.verdicts.assign(sides=[", ".join(sides) for sides in card.verdicts["sides"]]),
        "bands": card.bands.replace({"verdict": {"too few": words["too_few"]}}),
        "inflation": card.inflation.replace({"kind": {"overall": whole}}),
        "recalibration": card.recalibration.replace({"map": words}),
        "corrected": card.corrected.replace({"system": {"": whole}, "way": words}),
        "table": _measures(card),
    }
    heads = {"judge": card.verdicts, "dimension": card.verdicts, "system": card.corrected}
    alone = {name for name, frame in heads.items() if frame[name].nunique() < 2}
    alone |= {"labels_planned", "widened"} if card.verdicts["labels_planned"].isna().all() else set()
    for key, columns in LAYOUT["tables"].items():
        labels, written, rows = [], [], frames[key].to_dict("records")
        for name, own in ({"judge": {}, "dimension": {}} | columns).items():
            how = {"label": name, "kind": "text"} | LAYOUT["columns"].get(name, {}) | own
            label, kind = say(f"calibration.column.{how['label']}"), how["kind"]
            interval = (key, name) == ("table", "value") or "interval" in kind
            if name not in alone:
                labels.append(">" * (kind != "text") + label + f" [{card.level:.0%}]" * interval)
                written.append([_cell(row, name, **how) for row in rows])
        if rows:
            yield _part(key, Table(tuple(labels), tuple(zip(*written, strict=True))), say)
    for key, lines in {"notes": tuple(card.notes["text"]), "footer": tuple(_footer(card))}.items():
        if lines:
            yield _part(key, Text(lines, "list"), say)


def _cell(
    row: Mapping[Any, Any], name: str, *, kind: str, low: str = "low", high: str = "high", digits: int = 3,
    **_: str
) -> str:
    """Write one cell of a card; an interval reads the columns of its ends."""
    value = row[name]
    if pd.isna(value):
        return ""
    if "interval" in kind:
        return with_interval(value, row[low], row[high], kind != "interval", digits)
    write = {"percent": percent, "count": count}.get(kind, str)
    return number(value, digits) if kind == "number" else write(value)


def _part(key: str, block: Block, say: Any) -> Section:
    title = say(f"calibration.title.{key}")
    return Section(key, title, title, blocks=(block,))


def _measures(card: CalibrationCard) -> pd.DataFrame:
    """Return the agreement table with its measures named and their values written out."""
    rows = card.table[card.table["value"].notna()].to_dict("records")
    for row in rows:
        share, value = row["measure"] in LAYOUT["shares"], row["value"]
        if np.isfinite(row["low"]):
            text = with_interval(value, row["low"], row["high"], percent=share)
        else:
            text = count(value) if row["measure"] == "n_missing" else (percent if share else number)(value)
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
            elif isinstance(value, float):
                value = number(value, 2)
            yield f"{label}: {say('calibration.footer.unsaid') if value is None else value}"


def summary(verdicts: pd.DataFrame, tolerance: float, lang: str) -> dict[str, Any]:
    """Return the summary of all rows of a card: the worst verdict, the side verdicts and the sentences."""
    rows, words = verdicts.to_dict("records"), verdicts["verdict"]
    verdict, reasons = max(words, key=WORST_LAST.index), tuple(rows[0]["reasons"])
    if len(rows) > 1:
        say, alone = load(lang), verdicts["judge"].nunique() == 1
        sums = ((words == word).sum() for word in WORST_LAST)
        counts = dict(zip(("trust", "open", "reject"), sums, strict=True))
        best = max(rows, key=lambda row: (-WORST_LAST.index(row["verdict"]), row["share"]))
        nearest = say("calibration.best", what=name_of(best, lang, alone=alone))
        drawn = [name_of(row, lang, alone=alone) for row in rows if not_random(row["draw_p"])]
        spent = [name_of(row, lang, alone=alone) for row in rows if np.isnan(row["widened"])]
        looks = "look_once" if pd.isna(rows[0]["labels_planned"]) else "look_spent_rows" if spent else "look_rows"
        reasons = (
            say(f"calibration.many_{_slug(verdict)}", n=len(rows), **counts),
            f"{nearest} {share_line(best, tolerance, lang)}",
            *([say("calibration.draws", what=listing(drawn))] if drawn else []),
            say(f"calibration.{looks}", what=listing(spent), labels=rows[0]["labels_planned"]),
        )
    sides = tuple(side for side in SIDES if any(side in row["sides"] for row in rows))
    return {"verdict": verdict, "sides": sides, "reasons": reasons}


def name_of(row: Mapping[Any, Any], lang: str, *, alone: bool) -> str:
    """Return how sentences call the judge: by name if there are several."""
    key = "both" if not alone else "one" if row["dimension"] == ALL else "dimension"
    return load(lang)(f"calibration.what_{key}", judge=row["judge"], dimension=row["dimension"])


def share_line(row: Mapping[Any, Any], tolerance: float, lang: str) -> str:
    """Return one sentence on the agreement, its target and the best constant score."""
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
    written = number(value, 2)
    return f"+{written}" if value > 0 and float(written) else written.replace("-", "−")


class Piece(NamedTuple):
    """One judge on one dimension: its row of the verdicts and its part of every frame."""

    row: dict[str, Any]
    frames: dict[str, pd.DataFrame]
    cells: Cells


def calibrate(
    ratings: Any, *, judge: Names = "judge", human: Names = "human", by: str | None = "dimension",
    tolerance: float = 1.0, target: float = 0.8, delta: float | None = None,
    scale: tuple[float, float] | None = None, cluster: str | None = "cluster", level: float = 0.95,
    missing: Missing = None, rater: str = "rater", judged: Any = None, groups: Sequence[str] | None = None,
    labels_planned: int | None = None, about: Mapping[str, Any] | None = None, seed: int = 0,
    lang: str = "en",
) -> CalibrationCard:  # fmt: skip
    """Decide whether a judge's scores can replace human ratings: TRUST, REJECT or NOT PROVEN.

    Parameters
    ----------
    ratings, judge, human, tolerance, scale, cluster, level, missing, rater
        As in `agreement`; estimates are weighted by a column ``inclusion_probability`` where it is there.
    by : str or None
        The column whose values get a verdict each.
    target : float
        The agreement within ±tolerance that must be shown, in (0, 1).
    delta : float, optional
        The acceptable bias, in points of the scale; None takes 1/18 of the scale: 0.5 on 1–10, 0.056 on 0–1.
    judged : DataFrame, optional
        Further rows with the judge's score alone, for the corrected mean. Rows of `ratings` without a human
        score count as such too. The judge's scores on them and on the labelled rows show whether the labels look
        like a random sample; selection by the *human* score cannot be detected, as the rest is unlabelled.
    groups : sequence of str, optional
        Columns to group bias by; None takes ``system``, answerability and lengths, as available.
        Columns of more than six numbers are cut into thirds.
    labels_planned : int, optional
        The maximum number of labels (items with a human score, per dimension), set before the first look.
        The verdict may then be checked repeatedly as labels come in: its margins are wider by the fourth root of
        planned ÷ labelled, and within 15 looks TRUST is false in at most 5.5 % of cases. ``low, high`` stay those
        of one look; ``lower, upper, bias_lower, bias_upper``, which decide, are the wider ones. Beyond the plan
        they are missing and the verdict is NOT PROVEN until a new plan with new labels. None: one look.
    about : mapping, optional
        For the footer: ``judge_id, prompt_sha256, rater_protocol, drawn_at_random``. The last is False on the card
        if the judge's scores contradict it, and True if probabilities are recorded and it is not given.
    seed : int
        Of the groups that ratings without clusters are put into, for maps that are judged out of fold.
    lang : {"en", "zh"}
        The language of the sentences.

    Returns
    -------
    CalibrationCard

    Raises
    ------
    RagnbError
        As `agreement`; for a target outside (0, 1), for `labels_planned` that is no whole number of 1 or more, and
        for ratings with no row that both rated.

    Notes
    -----
    The fourth-root rule is that of `stats.mean_interval`. A plan raised after looking is not valid: TRUST is then
    false in 7 % (1.5 times the plan) to 8.6 % (twice) of cases. More than 20 looks: slightly over 5 %.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 5, 2, 1] * 50, "human": [5, 4, 2, 1] * 50})
    >>> card = calibrate(frame, scale=(1, 5))
    >>> card.verdict, card.verdicts["share"].tolist()
    ('TRUST', [1.0])
    """
    limits = ("target", target, 0.0, 1.0), ("level", level, 0.5, 1.0), ("delta", delta, 0.0, np.inf)
    for name, value, low, high in limits:
        if value is not None and not low < value < high:
            raise RagnbError(f"{name}={value} is not between {low:g} and {high:g}")
    for name in about or {}:
        if name not in ABOUT:
            raise unknown("about", name, ABOUT)
    if labels_planned is not None:
        need_whole("labels_planned", labels_planned)
    load(lang)
    columns = columns_of(ratings)
    asked = Asked(
        human, by, scale, cluster, missing, rater, groups=group_columns(columns, groups), tolerance=tolerance,
        level=level, target=target, delta=delta, labels_planned=labels_planned, seed=seed, lang=lang,
    )  # fmt: skip
    pieces: list[Piece] = []
    scales: list[Scale] = []
    for name in as_list(judge):
        table, opened = open_ratings(ratings, name, asked, judged)
        scales.append(opened.ends)
        for labels, rows in blocks(table, opened):
            head = {"judge": name, "dimension": next(iter(labels.values()), ALL)}
            pieces.append(_piece(head, rows, opened))
    for piece, p in zip(pieces, stats.holm([piece.row["draw_p"] for piece in pieces]), strict=True):
        piece.row["draw_p"] = float(p)
        if not_random(p):
            first = piece.row["reasons"]
            piece.row["reasons"] = (*first[:2], draw_text(piece.row, lang), *first[2:])
    parts = {key: [piece.frames[key] for piece in pieces] for key in pieces[0].frames}
    frames: dict[str, Any] = {key: pd.concat(found, ignore_index=True) for key, found in parts.items()}
    frames["table"].attrs["scale"] = ends = min(low for low, _ in scales), max(high for _, high in scales)
    verdicts = pd.DataFrame([piece.row for piece in pieces]).astype({"labels_planned": "Int64"})
    given = {name: (about or {}).get(name) for name in ABOUT}
    if any(not_random(piece.row["draw_p"]) for piece in pieces):
        given["drawn_at_random"] = False
    elif PROBABILITY in columns and given["drawn_at_random"] is None:
        given["drawn_at_random"] = True
    named = [(f"{piece.row['judge']}\n{piece.row['dimension']}", piece.cells) for piece in pieces]
    values = frames["table"].groupby("measure")["value"]
    footer = given | {
        "data_sha256": fingerprint(named), "seed": seed, "labels_planned": labels_planned,
        "n": sum(piece.cells.n for piece in pieces),
        "n_clusters": max(piece.cells.n_clusters for piece in pieces),
        "raters": values.mean().get("raters"), "n_missing": int(values.sum()["n_missing"]),
    }
    source = getattr(ratings, "attrs", {}).get("source") or {}  # of a frame that a reader made of a file
    notes = _notes(verdicts, pieces, footer, source, ends if scale is None else None, cluster in columns, lang)
    return CalibrationCard(
        **summary(verdicts, tolerance, lang), verdicts=verdicts, **frames, notes=notes, footer=footer,
        tolerance=tolerance, target=target, delta=replace(asked, scale=ends).acceptable_bias, level=level,
        scale=ends, lang=lang,
    )  # fmt: skip


def _piece(head: dict[str, Any], rows: pd.DataFrame, asked: Asked) -> Piece:
    """Measure and decide one judge on one dimension."""
    rated = rows[~rows["further"]]
    cells = cells_of(rated)
    if not cells.n:
        raise RagnbError(f"{head}: no row has both a judge score and a human score; label some of its items")
    asked = replace(asked, fraction=cells.n / asked.labels_planned if asked.labels_planned else None)
    measures, groups = measured(rated, cells, asked), inflation(rated, cells, asked)
    frames = {"inflation": groups} | {make.__name__: make(cells, asked) for make in FRAMES}
    row = head | verdict_row(cells, measures, groups, asked)
    if row["verdict"] == TRUST:  # then each of these biases is shown to be acceptable
        groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"] = False
    frames["corrected"], draw = _corrected(rows, asked)
    ranks = NONE
    if cells.cluster is not None:
        ranks = stats.kendall_within(cells.judge, cells.human, **cells.sums, digits=10, level=asked.level)
    row |= draw | {"sides": _sides(row["verdict"], ranks, frames["recalibration"], groups)}
    needs = stats.labels_needed(cells.flags(asked.tolerance), **cells.how, **asked.goal)
    text = _labels_line(needs, row, asked)
    whole = dict.fromkeys(("total", "more", "independent"), "Int64")
    frames["labels_needed"] = pd.DataFrame([asdict(needs) | {"text": text}]).astype(whole)
    row["reasons"] = _reasons(row, measures, ranks, frames, text, asked)
    for frame in frames.values():
        frame.insert(0, "dimension", head["dimension"])
        frame.insert(0, "judge", head["judge"])
    return Piece(row, frames | {"table": measure_rows(head, measures)}, cells)


def _corrected(rows: pd.DataFrame, asked: Asked) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the mean by the judge alone, by the humans alone, and corrected: of all, and of each system.

    And whether all labels look like a random sample, as in `corrected_mean`.
    """
    parts = {"": rows}
    if ":system" in rows and rows.loc[~rows["further"], ":system"].nunique() > 1:
        parts |= {str(name): part for name, part in rows.groupby(":system", observed=True) if name}
    found = [{"system": name, **corrected_row(part, asked.ends, asked)} for name, part in parts.items()]
    means = pd.DataFrame([row for row in found if row["n"]], columns=["system", *COLUMNS])
    return corrected_ways(means), {name: found[0].get(name, np.nan) for name in DRAW}


def verdict_row(cells: Cells, measures: Measures, groups: pd.DataFrame, asked: Asked) -> dict[str, Any]:
    """Return the verdict and the interval that it is based on.

    TRUST needs three things at once, each at `level`: the share's one-sided lower bound reaches the target, the
    judge agrees more often than the best constant (one-sided, pair by pair), and the interval of the bias lies
    inside ±delta; so must that of every system which the judge inflates. REJECT: the share's one-sided upper
    bound misses the target. Where labels are planned, each bound holds at every look together.
    """
    target, delta, score = asked.target, asked.acceptable_bias, measures["constant_score"].value
    once = 2 * asked.level - 1  # the two-sided interval whose ends are one-sided bounds at `level`
    plan: dict[str, Any] = {"level": once, "fraction": asked.fraction}
    share, bias = cells.share(asked.tolerance, **plan), cells.bias(**plan | {"level": asked.level})
    beats = over_constant(cells, score, asked.tolerance, **plan).low > 0
    favoured = groups.loc[groups["inflated"] & (groups["kind"] == "system"), "upper"].max()
    unbiased = asked.accepts(bias) and not favoured > delta
    widened = 1.0 if asked.fraction is None else stats.widening(asked.fraction, share.df, level=once)
    trusted = share.low >= target and beats and unbiased
    return {
        "verdict": TRUST if trusted else REJECT if share.high < target else NOT_PROVEN,
        **with_ends(measures["within"], "share"), "lower": share.low, "upper": share.high, "target": target,
        "constant": measures["constant"].value, "constant_score": score, "beats_constant": bool(beats),
        **with_ends(measures["bias"], "bias", "bias_"), "bias_lower": bias.low, "bias_upper": bias.high,
        "delta": delta, "unbiased": bool(unbiased), "n": cells.n, "labels_planned": asked.labels_planned,
        "widened": np.nan if (asked.fraction or 0) > 1 else widened, "n_clusters": cells.n_clusters,
    }  # fmt: skip


def _sides(verdict: str, ranks: Estimate, maps: pd.DataFrame, groups: pd.DataFrame) -> tuple[str, ...]:
    """Return the side verdicts, in the order of `SIDES`; TRUST has none."""
    holds = {
        RECALIBRATE: verdict != TRUST and maps["passes"].any(),
        RANKING_ONLY: verdict != TRUST and ranks.low > 0,
        INFLATED: groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"].any(),
    }
    return tuple(side for side, held in holds.items() if held)


def _hopeless(row: Mapping[str, Any]) -> str | None:
    """Return why more labels alone will not lead to TRUST, other than an agreement at or below the target."""
    if row["bias_lower"] > row["delta"] or row["bias_upper"] < -row["delta"]:
        return "bias"
    return "constant" if np.isfinite(row["share"]) and row["share"] <= row["constant"] else None


def _labels_line(needs: LabelsNeeded, row: Mapping[str, Any], asked: Asked) -> str:
    """Return how many more labels are needed, or why more of them will not help."""
    say, reason = load(asked.lang), _hopeless(row)
    if row["verdict"] == TRUST:
        return say("calibration.labels_done")
    if needs.reason != "share_at_or_below_target" and reason:
        return say(f"calibration.labels_{reason}")
    key = "enough" if needs.more == 0 else needs.reason
    values = _written(percent, {"seen": needs.seen, "planned": needs.planned, "target": asked.target})
    counts = {"n": row["n"], "total": needs.total, "more": needs.more, "labels": asked.labels_planned}
    return say(f"labels.{key}", deff=number(needs.deff, 2), **values, **counts)


def _written(form: Callable[[Any], str], values: Mapping[str, Any]) -> dict[str, str]:
    return {name: form(value) for name, value in values.items()}


def _reasons(
    row: Mapping[str, Any], measures: Measures, ranks: Estimate, frames: Mapping[str, pd.DataFrame], needs: str,
    asked: Asked,
) -> tuple[str, ...]:  # fmt: skip
    """Return the sentences of one judge and dimension, the two that decide first."""
    say, two, what = load(asked.lang), partial(number, digits=2), name_of(row, asked.lang, alone=True)
    gain, delta = measures["over_constant"], row["delta"]

    def tell(key: str, **values: Any) -> str:
        return say(f"calibration.{key}", **values)

    beats = "beats" if row["beats_constant"] else "beats_open" if gain.value > 0 else "beats_not"
    where = "inside" if row["unbiased"] else "outside" if _hopeless(row) == "bias" else "open"
    if not row["unbiased"] and row["bias_lower"] >= -delta and row["bias_upper"] <= delta:
        where = "system"
    looks = "once" if asked.fraction is None else "spent" if asked.fraction > 1 else "planned"
    plan = {"n": row["n"], "labels": asked.labels_planned, "times": two(row["widened"])}
    plan["least"] = two(row["widened"] * (asked.fraction or 1) ** 0.25)
    plan |= _written(percent, {end: row[end] for end in ("lower", "upper")})
    plan |= _written(signed, {end: row[end] for end in ("bias_lower", "bias_upper")})
    out = [
        tell(f"headline_{'spent' if looks == 'spent' else _slug(row['verdict'])}", what=what),
        share_line(row, asked.tolerance, asked.lang),
        tell(f"look_{looks}", **plan),
        tell(beats, **_written(percent, with_ends(gain, "gain"))),
        tell(f"bias_{where}", **_written(signed, with_ends(measures["bias"], "bias")), delta=f"{delta:.3g}"),
    ]
    if RECALIBRATE in row["sides"]:
        best = frames["recalibration"].query("passes").sort_values("mae").iloc[0]
        shares = _written(percent, {name: best[name] for name in ("share", "low", "high")})
        out.append(tell("recalibrate", map=tell(f"word.{best['map']}"), **shares))
    if RANKING_ONLY in row["sides"]:
        out.append(tell("ranking", **_written(two, with_ends(ranks))))
    for part in frames["inflation"].query("inflated and kind in ['overall', 'system']").to_dict("records"):
        values = _written(signed, {end: part[end] for end in ("low", "high")})
        key = "inflated" if part["kind"] == "overall" else "inflated_system"
        out.append(tell(key, bias=two(part["value"]), system=part["group"], **values))
    for word in (TRUST, REJECT):
        named = frames["bands"].loc[frames["bands"]["verdict"] == word, "band"]
        out += [tell(f"bands_{_slug(word)}", bands=", ".join(named))] if len(named) else []
    low, high = asked.ends
    width = _written("{:g}".format, {"low": low, "high": high, "tolerance": asked.tolerance})
    shares = _written(percent, {"part": asked.tolerance / (high - low), "floor": measures["floor"].value})
    out += [needs, tell("width", **width, **shares)]
    ceiling = measures["ceiling"].value if "ceiling" in measures else np.nan
    return (*out, tell("ceiling", ceiling=percent(ceiling))) if np.isfinite(ceiling) else tuple(out)


def _slug(word: str) -> str:
    return word.lower().replace(" ", "_")


def _notes(
    verdicts: pd.DataFrame, pieces: Sequence[Piece], footer: Mapping[str, Any], source: Mapping[str, Any],
    guessed: Scale | None, clustered: bool, lang: str,
) -> pd.DataFrame:  # fmt: skip
    """Return the caveats of the numbers."""
    say, fewest, drawn = load(lang), int(verdicts["n_clusters"].min()), footer["drawn_at_random"]
    low, high = guessed or (0.0, 0.0)
    tested = [row for row in verdicts.to_dict("records") if not_random(row["draw_p"])]
    found: Sequence[tuple[str, Any, dict[str, Any]]] = [
        ("damaged", source.get("damaged"), {"n": source.get("damaged"), "lines": source.get("lines")}),
        ("rows_are_clusters", not clustered, {}),
        ("few_clusters", clustered and fewest < ROUGH, {"n": fewest}),
        ("guessed_scale", guessed, {"low": f"{low:g}", "high": f"{high:g}"}),
        ("missing", footer["n_missing"], {"n": footer["n_missing"]}),
        ("one_rater", footer["raters"] is None, {}),
        ("weighted", any(np.ptp(piece.cells.weights) > 0 for piece in pieces), {}),
        ("not_random", drawn is False and not tested, {}),
        ("unknown_draw", drawn is None, {}),
    ]
    rows = [note_row(code, "", say(f"calibration.note.{code}", **values)) for code, held, values in found if held]
    for row in tested:
        name = name_of(row, lang, alone=verdicts["judge"].nunique() == 1)
        rows.append(note_row("not_random", name, say("calibration.about", what=name, text=draw_text(row, lang))))
    return note_frame(rows)
