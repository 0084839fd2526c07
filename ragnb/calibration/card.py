"""The calibration card: a judge beside people, and whether to trust it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.cells import cells_of, design, fingerprint, flags
from ragnb.calibration.corrected import (
    DRAW,
    ROUGH,
    corrected_row,
    corrected_ways,
    doubtful_draws,
    draw_text,
    not_random,
)
from ragnb.calibration.measures import (
    FRAMES,
    inflation,
    measure_rows,
    measured,
)
from ragnb.calibration.ratings import (
    ALL,
    PROBABILITY,
    USUAL_GROUPS,
    Asked,
    Names,
    brought_ratings,
    columns_of,
    opened_blocks,
)
from ragnb.calibration.scores import Missing, Scale
from ragnb.calibration.sentences import name_of, summary
from ragnb.calibration.verdict import labels_line, reasons_of, sides_of, verdict_row
from ragnb.calibration.words import LAYOUT, TONES, TRUST, filled, told
from ragnb.errors import (
    RagnbError,
    need_columns,
    need_known,
    need_whole,
)
from ragnb.markup import number
from ragnb.markup.blocks import Mark, Section, Table, Text
from ragnb.markup.rendering import render_fragment, render_markdown
from ragnb.readers.reading import remembered
from ragnb.schema import note_frame, note_row
from ragnb.stats import NONE, Estimate
from ragnb.texts import entry, load

ABOUT = ("judge_id", "prompt_sha256", "rater_protocol", "drawn_at_random")


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
        frames = {key: part for key, part in vars(self).items() if isinstance(part, pd.DataFrame)}
        del frames["notes"]
        for name, value in {"judge": judge, "dimension": dimension}.items():
            if value is not None:
                need_known(name, value, sorted(set(self.verdicts[name])))
                frames = {
                    key: part[part[name] == value].reset_index(drop=True)
                    for key, part in frames.items()
                }
        parts: dict[str, Any] = summary(frames["verdicts"], self.tolerance, self.lang) | frames
        return replace(self, **parts)

    def sections(self) -> list[Section]:
        """Return the verdict with its reasons, then each table that has rows, the notes and what made the card."""
        (first, *rest), title = self.reasons, entry(self.lang, "section.judge")
        marks = (
            Mark(TONES[self.verdict], self.verdict),
            *(Mark("watch", side) for side in self.sides),
        )
        blocks = Text((marks,)), Text(tuple(rest), "list")
        return [Section("verdict", title, first, blocks=blocks, lang=self.lang), *parts(self)]

    def _repr_html_(self) -> str:
        return render_fragment(self.sections())

    def to_markdown(self) -> str:
        """Return the card as Markdown, without times and machine paths: equal input gives equal text."""
        return render_markdown(self.sections())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: frames as lists of records, None for a missing value."""
        record = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
        }
        for name, value in record.items():
            if isinstance(value, pd.DataFrame):
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
    heads = {"judge": card.verdicts, "dimension": card.verdicts, "system": card.corrected}
    alone = {name for name, frame in heads.items() if frame[name].nunique() < 2}
    if card.verdicts["labels_planned"].isna().all():
        alone |= {"labels_planned", "widened"}
    blocks: dict[str, Table | Text] = {}
    for key, columns in LAYOUT["tables"].items():
        rows = frames[key].to_dict("records")
        written = {}
        for name in (name for name in ("judge", "dimension", *columns) if name not in alone):
            look = LAYOUT["columns"].get(name, {}) | columns.get(name, {})
            form = look.get("form", f"{{{name}}}")
            label = say(f"calibration.column.{look.get('label', name)}")
            if "[" in form or "interval" in look:
                level = f" [{card.level:.0%}]"
            else:
                level = ""
            cells = ["" if pd.isna(row[name]) else filled(form, row) for row in rows]
            written[">" * ("form" in look) + label + level] = cells
        blocks[key] = Table(tuple(written), tuple(zip(*written.values(), strict=True)))
    blocks |= {
        "notes": Text(tuple(card.notes["text"]), "list"),
        "footer": Text(tuple(_footer(card)), "list"),
    }
    for key, block in blocks.items():
        title = say(f"calibration.title.{key}")
        content = block.rows if isinstance(block, Table) else block.lines
        if content:
            yield Section(key, title, title, blocks=(block,))


def _measures(card: CalibrationCard) -> pd.DataFrame:
    """Return the agreement table with its measures named and their values written out."""
    rows = card.table[card.table["value"].notna()].to_dict("records")
    for row in rows:
        forms = LAYOUT["forms"][LAYOUT["measures"][row["measure"]]]
        row["value"] = filled(forms[int(np.isfinite(row["low"]))], row)
        row["measure"] = entry(card.lang, "calibration.measure")[row["measure"]]
    return pd.DataFrame(rows)


def _footer(card: CalibrationCard) -> Iterator[str]:
    """Yield what made the card, label and value."""
    labels = entry(card.lang, "calibration.footer")
    for name in (name for name in labels if name in card.footer):
        if (value := card.footer[name]) is None or isinstance(value, bool):
            if value is None:
                value = labels["unsaid"]
            else:
                value = load(card.lang)(f"column.{'yes' if value else 'no'}")
        yield f"{labels[name]}: {number(value, 2) if isinstance(value, float) else value}"


def calibrate(
    ratings: Any,
    *,
    judge: Names = "judge",
    human: Names = "human",
    by: str | None = "dimension",
    tolerance: float | None = None,
    target: float = 0.8,
    delta: float | None = None,
    scale: tuple[float, float] | None = None,
    cluster: str | None = "cluster",
    level: float = 0.95,
    missing: Missing = None,
    rater: str = "rater",
    judged: Any = None,
    groups: Sequence[str] | None = None,
    labels_planned: int | None = None,
    about: Mapping[str, Any] | None = None,
    seed: int = 0,
    lang: str = "en",
) -> CalibrationCard:
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
    _check_between("target", target, 0.0, 1.0)
    _check_between("level", level, 0.5, 1.0)
    _check_between("delta", delta, 0.0, np.inf)
    for name in about or {}:
        need_known("about", name, ABOUT)
    if labels_planned is not None:
        need_whole("labels_planned", labels_planned)
    load(lang)
    judged = brought_ratings(judged, judge, human)[0]
    ratings, judge, human = brought_ratings(ratings, judge, human)
    columns = columns_of(ratings)
    need_columns(columns, groups or ())
    if groups is None:
        groups = [name for name in columns if USUAL_GROUPS.fullmatch(name)]
    asked = Asked(
        human,
        by,
        scale,
        cluster,
        missing,
        rater,
        groups=tuple(groups),
        tolerance=1.0 if tolerance is None else tolerance,
        usual=tolerance is None,
        level=level,
        target=target,
        delta=delta,
        labels_planned=labels_planned,
        seed=seed,
        lang=lang,
    )
    blocks = opened_blocks(ratings, judge, asked, judged)
    used = blocks[0][2].tolerance
    rows, tables, cells = zip(*(_piece(*one) for one in blocks), strict=True)
    doubtful = doubtful_draws(rows)
    for row in doubtful:
        row["reasons"] = (*row["reasons"][:2], draw_text(row, lang), *row["reasons"][2:])
    frames: dict[str, Any] = {
        key: pd.concat([table[key] for table in tables], ignore_index=True) for key in tables[0]
    }
    scales = [own.scale for *_, own in blocks]
    ends = (min(low for low, _ in scales), max(high for _, high in scales))
    frames["table"].attrs["scale"] = ends
    verdicts = pd.DataFrame(rows).astype({"labels_planned": "Int64"})
    footer = _footer_of(asked, about or {}, rows, cells, frames["table"])
    if doubtful or (PROBABILITY in columns and footer["drawn_at_random"] is None):
        footer["drawn_at_random"] = not doubtful
    # Of a frame that a reader made of a file.
    source = remembered(ratings).origin
    notes = _notes(
        verdicts, cells, footer, source, ends if scale is None else None, cluster in columns, lang
    )
    return CalibrationCard(
        **summary(verdicts, used, lang),
        verdicts=verdicts,
        **frames,
        notes=notes,
        footer=footer,
        scale=ends,
        delta=(ends[1] - ends[0]) / 18 if delta is None else delta,
        tolerance=used,
        target=target,
        level=level,
        lang=lang,
    )


def _check_between(name: str, value: float | None, low: float, high: float) -> None:
    """Refuse a number that is not between two others."""
    if value is None or low < value < high:
        return
    if high == 1 and 1 < value <= 100:
        raise RagnbError(f"{name}={value} is not between {low:g} and 1; write {value / 100:g}")
    raise RagnbError(f"{name}={value} is not between {low:g} and {high:g}")


def _footer_of(
    asked: Asked,
    about: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    cells: Sequence[pd.DataFrame],
    table: pd.DataFrame,
) -> dict[str, Any]:
    """Return what a card says of its data: where they come from, how many they are, and their fingerprint."""
    named = {
        f"{row['judge']}\n{row['dimension']}": part for row, part in zip(rows, cells, strict=True)
    }
    values = table.groupby("measure")["value"]
    return {name: about.get(name) for name in ABOUT} | {
        "data_sha256": fingerprint(named),
        "seed": asked.seed,
        "labels_planned": asked.labels_planned,
        "n": int(sum(row["n"] for row in rows)),
        "n_clusters": int(max(row["n_clusters"] for row in rows)),
        "raters": values.mean().get("raters"),
        "n_missing": int(values.sum()["n_missing"]),
    }


def _piece(
    labels: dict[str, Any], rows: pd.DataFrame, asked: Asked
) -> tuple[dict[str, Any], dict[str, pd.DataFrame], pd.DataFrame]:
    """Measure and decide one judge on one dimension: its row of the verdicts and its part of every frame."""
    head = dict(zip(("judge", "dimension"), (*labels.values(), ALL), strict=False))
    rated = rows[~rows["further"]]
    cells = cells_of(rated)
    if cells.empty:
        raise RagnbError(
            f"{head}: no row has both a judge score and a human score; label some of its items"
        )
    if asked.labels_planned:
        labelled = round(float(cells["count"].sum()))
        asked = replace(asked, fraction=labelled / asked.labels_planned)
    else:
        asked = replace(asked, fraction=None)
    measures = measured(rated, cells, asked)
    groups = inflation(rated, cells, asked)
    row = head | verdict_row(cells, measures, groups, asked)
    if row["verdict"] == TRUST:
        # Then each of these biases is shown to be acceptable.
        groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"] = False
    frames = {"inflation": groups}
    frames |= {name: make(cells, asked) for name, make in FRAMES.items()}
    means = _corrected_means(rows, rated, asked)
    scored = [mean for mean in means if mean["n"]]
    columns = ["system", *LAYOUT["frames"]["means"]]
    frames["corrected"] = corrected_ways(pd.DataFrame(scored, columns=columns))
    ranks = _ranks_within(cells, asked)
    row |= {name: means[0].get(name, np.nan) for name in DRAW}
    row["sides"] = sides_of(row["verdict"], ranks, frames["recalibration"], groups)
    needs = stats.labels_needed(flags(cells, asked), **design(cells), **asked.goal)
    text = labels_line(needs, row, asked.lang)
    whole = dict.fromkeys(("total", "more", "independent", "likely"), "Int64")
    frames["labels_needed"] = pd.DataFrame([asdict(needs) | {"text": text}]).astype(whole)
    row["reasons"] = reasons_of(row, measures, ranks, frames, text, asked)
    frames = {name: frame.assign(**head)[[*head, *frame]] for name, frame in frames.items()}
    return row, frames | {"table": measure_rows(head, measures)}, cells


def _corrected_means(rows: pd.DataFrame, rated: pd.DataFrame, asked: Asked) -> list[dict[str, Any]]:
    """Return the judge's mean without its bias, of all rows and, of several systems, of each of them."""
    parts = {"": rows}
    if ":system" in rows and rated[":system"].nunique() > 1:
        of_system = rows.groupby(":system", observed=True)
        parts |= {str(name): part for name, part in of_system if name}
    return [
        {"system": name, **corrected_row(part, asked.scale, asked)} for name, part in parts.items()
    ]


def _ranks_within(cells: pd.DataFrame, asked: Asked) -> Estimate:
    """Return how well the judge ranks as people do within clusters; none where there are no clusters."""
    how = design(cells, of_sums=True)
    if how["clusters"] is None:
        return NONE
    return stats.kendall_within(cells["judge"], cells["human"], **how, digits=10, level=asked.level)


def _notes(
    verdicts: pd.DataFrame,
    cells: Sequence[pd.DataFrame],
    footer: Mapping[str, Any],
    source: Mapping[str, Any],
    guessed: Scale | None,
    clustered: bool,
    lang: str,
) -> pd.DataFrame:
    """Return the caveats of the numbers."""
    doubtful = verdicts[verdicts["draw_p"].map(not_random)].to_dict("records")
    fewest, drawn, (low, high) = (
        verdicts["n_clusters"].min(),
        footer["drawn_at_random"],
        guessed or (0.0, 0.0),
    )
    facts = {**footer, **source, "fewest": fewest, "low": low, "high": high}
    holding = {
        "damaged": source.get("damaged"),
        "rows_are_clusters": not clustered,
        "few_clusters": clustered and fewest < ROUGH,
        "guessed_scale": guessed,
        "missing": footer["n_missing"],
        "one_rater": footer["raters"] is None,
        "weighted": any(np.ptp(part["weight"]) > 0 for part in cells),
        "not_random": drawn is False and not doubtful,
        "unknown_draw": drawn is None,
    }
    rows = [
        note_row(code, "", told(lang, f"calibration.note.{code}", facts))
        for code in holding
        if holding[code]
    ]
    for row in doubtful:
        name = name_of(row, lang, alone=verdicts["judge"].nunique() == 1)
        text = load(lang)("calibration.about", what=name, text=draw_text(row, lang))
        rows.append(note_row("not_random", name, text))
    return note_frame(rows)
