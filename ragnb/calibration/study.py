"""The study that makes a calibration card: what is asked, one judge on one dimension after another, the notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.calibration.card import CalibrationCard
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
from ragnb.calibration.measures import FRAMES, inflation, measure_rows, measured
from ragnb.calibration.ratings import (
    ALL,
    PROBABILITY,
    USUAL_GROUPS,
    Asked,
    Names,
    brought_judged,
    brought_ratings,
    columns_of,
    opened_blocks,
)
from ragnb.calibration.scores import Missing, Scale, as_list
from ragnb.calibration.sentences import name_of, summary
from ragnb.calibration.verdict import labels_line, reasons_of, sides_of, verdict_row
from ragnb.calibration.words import LAYOUT, TRUST, told
from ragnb.errors import RagnbError, need_columns, need_known, need_whole
from ragnb.readers.reading import remembered
from ragnb.schema import note_frame, note_row
from ragnb.stats import NONE, Estimate
from ragnb.texts import load

ABOUT = ("judge_id", "prompt_sha256", "rater_protocol", "drawn_at_random")


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
    judged : DataFrame or path, optional
        Further rows with the judge's score alone, for the corrected mean; no item of `ratings` (matched by
        ``item_id``, dimension and system, as far as both have them). Rows of `ratings` without a human score
        count as such too. The judge's scores on them and on the labelled rows show whether the labels look
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
        As `agreement`; for a target outside (0, 1), for `labels_planned` that is no whole number of 1 or more, for
        an item in both `ratings` and `judged`, and for ratings with no row that both rated.

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
    load(lang)  # refuses an unknown language before the work
    reading: dict[str, Any] = {
        "missing": missing,
        "scale": scale,
        "named": [*as_list(by), *as_list(cluster), *(groups or ())],
    }
    brought = brought_ratings(ratings, judge, human, rater=rater, **reading)
    judged = brought_judged(judged, judge, brought.judge, **reading)
    ratings, judge, human = brought
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
    used_tolerance = blocks[0][2].tolerance
    parts = [_study(labels, rows, opened_as) for labels, rows, opened_as in blocks]
    rows = [part.row for part in parts]
    # The tests of the draw share one level over the rows, so no row could say its own before all were there.
    doubtful = doubtful_draws(rows)
    for row in doubtful:
        first_two = row["reasons"][:2]
        row["reasons"] = (*first_two, draw_text(row, lang), *row["reasons"][2:])
    frames: dict[str, Any] = {
        name: pd.concat([part.frames[name] for part in parts], ignore_index=True)
        for name in parts[0].frames
    }
    # Each judge's scale is guessed with its own scores; the card's holds them all.
    scales = [opened_as.scale for *_, opened_as in blocks]
    card_scale = (min(low for low, _ in scales), max(high for _, high in scales))
    frames["table"].attrs["scale"] = card_scale
    verdicts = pd.DataFrame(rows).astype({"labels_planned": "Int64"})
    footer = _footer_of(asked, about or {}, parts, frames["table"])
    # Labels that do not look random are none, whatever the caller said; recorded chances speak for a random draw.
    if doubtful or (PROBABILITY in columns and footer["drawn_at_random"] is None):
        footer["drawn_at_random"] = not doubtful
    notes = _notes(
        verdicts,
        [part.cells for part in parts],
        footer,
        source=remembered(ratings).origin,  # of a frame that a reader made of a file
        guessed=card_scale if scale is None else None,
        clustered=cluster in columns,
        lang=lang,
    )
    return CalibrationCard(
        **summary(verdicts, used_tolerance, lang),
        verdicts=verdicts,
        **frames,
        notes=notes,
        footer=footer,
        scale=card_scale,
        delta=(card_scale[1] - card_scale[0]) / 18 if delta is None else delta,
        tolerance=used_tolerance,
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


class _Part(NamedTuple):
    """One judge on one dimension: its row of the verdicts, its part of every frame, and the cells it is about."""

    row: dict[str, Any]
    frames: dict[str, pd.DataFrame]
    cells: pd.DataFrame


def _study(labels: dict[str, Any], rows: pd.DataFrame, asked: Asked) -> _Part:
    """Measure and decide one judge on one dimension."""
    # The column of `by` may have any name, and with by=None there is none.
    head = dict(zip(("judge", "dimension"), (*labels.values(), ALL), strict=False))
    rated = rows[~rows["further"]]
    cells = cells_of(rated)
    if cells.empty:
        raise RagnbError(
            f"{head}: no row has both a judge score and a human score; label some of its items"
        )
    if asked.labels_planned:
        n_labels = round(float(cells["count"].sum()))
        asked = replace(asked, fraction=n_labels / asked.labels_planned)
    else:
        asked = replace(asked, fraction=None)
    measures = measured(rated, cells, asked)
    groups = inflation(rated, cells, asked)
    row = head | verdict_row(cells, measures, groups, asked)
    if row["verdict"] == TRUST:
        # Then each of these biases is shown to be acceptable.
        groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"] = False
    means = _corrected_means(rows, rated, asked)
    # The first mean is that of all systems; without two labels it has no test of the draw.
    row |= {name: means[0].get(name, np.nan) for name in DRAW}
    frames = {"inflation": groups}
    frames |= {name: make(cells, asked) for name, make in FRAMES.items()}
    frames["corrected"] = _corrected_frame(means)
    ranks = _ranks_within(cells, asked)
    row["sides"] = sides_of(row["verdict"], ranks, frames["recalibration"], groups)
    needs = stats.labels_needed(flags(cells, asked), **design(cells), **asked.goal)
    needs_text = labels_line(needs, row, asked.lang)
    frames["labels_needed"] = _needs_frame(needs, needs_text)
    row["reasons"] = reasons_of(row, measures, ranks, frames, needs_text, asked)
    frames = {name: frame.assign(**head)[[*head, *frame]] for name, frame in frames.items()}
    frames["table"] = measure_rows(head, measures)
    return _Part(row, frames, cells)


def _needs_frame(needs: stats.LabelsNeeded, text: str) -> pd.DataFrame:
    """Return the labels needed as one row, whose counts are whole numbers or missing."""
    counts = dict.fromkeys(("total", "more", "independent", "likely"), "Int64")
    return pd.DataFrame([asdict(needs) | {"text": text}]).astype(counts)


def _corrected_means(rows: pd.DataFrame, rated: pd.DataFrame, asked: Asked) -> list[dict[str, Any]]:
    """Return the judge's mean without its bias, of all rows and, of several systems, of each of them."""
    rows_of = {"": rows}
    if ":system" in rows and rated[":system"].nunique() > 1:
        for name, part in rows.groupby(":system", observed=True):
            if name:  # "" are rows without a system
                rows_of[str(name)] = part
    return [
        {"system": name, **corrected_row(part, asked.scale, asked)}
        for name, part in rows_of.items()
    ]


def _corrected_frame(means: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the corrected means with a row a way of asking; of a system without any label there are none."""
    scored = [mean for mean in means if mean["n"]]
    columns = ["system", *LAYOUT["frames"]["means"]]
    return corrected_ways(pd.DataFrame(scored, columns=columns))


def _ranks_within(cells: pd.DataFrame, asked: Asked) -> Estimate:
    """Return how well the judge ranks as people do within clusters; none where there are no clusters."""
    sums = design(cells, of_sums=True)
    if sums["clusters"] is None:
        return NONE
    return stats.kendall_within(
        cells["judge"], cells["human"], **sums, digits=10, level=asked.level
    )


def _footer_of(
    asked: Asked, about: Mapping[str, Any], parts: Sequence[_Part], table: pd.DataFrame
) -> dict[str, Any]:
    """Return what a card says of its data: where they come from, how many they are, and their fingerprint."""
    cells_of_row = {f"{part.row['judge']}\n{part.row['dimension']}": part.cells for part in parts}
    values = table.groupby("measure")["value"]
    footer: dict[str, Any] = {name: about.get(name) for name in ABOUT}
    return footer | {
        "data_sha256": fingerprint(cells_of_row),
        "seed": asked.seed,
        "labels_planned": asked.labels_planned,
        "n": int(sum(part.row["n"] for part in parts)),
        # Rows are of the same clusters or of some of them, so their numbers do not add up.
        "n_clusters": int(max(part.row["n_clusters"] for part in parts)),
        "raters": values.mean().get("raters"),
        "n_missing": int(values.sum()["n_missing"]),
    }


def _notes(
    verdicts: pd.DataFrame,
    cells: Sequence[pd.DataFrame],
    footer: Mapping[str, Any],
    *,
    source: Mapping[str, Any],
    guessed: Scale | None,
    clustered: bool,
    lang: str,
) -> pd.DataFrame:
    """Return the caveats of the numbers; `guessed` is the scale if the caller did not give it."""
    doubtful = verdicts[verdicts["draw_p"].map(not_random)].to_dict("records")
    fewest = verdicts["n_clusters"].min()
    drawn = footer["drawn_at_random"]
    low, high = guessed or (0.0, 0.0)  # only the note on a guessed scale shows them
    facts = {**footer, **source, "fewest": fewest, "low": low, "high": high}
    holding = {
        "damaged": source.get("damaged"),
        "rows_are_clusters": not clustered,
        "few_clusters": clustered and fewest < ROUGH,
        "guessed_scale": guessed,
        "missing": footer["n_missing"],
        "one_rater": footer["raters"] is None,
        "weighted": any(np.ptp(part["weight"]) > 0 for part in cells),
        # Where the scores show it, each row's own sentence below says so.
        "not_random": drawn is False and not doubtful,
        "unknown_draw": drawn is None,
    }
    notes = [
        note_row(code, "", told(lang, f"calibration.note.{code}", facts))
        for code, holds in holding.items()
        if holds
    ]
    say = load(lang)
    one_judge = verdicts["judge"].nunique() == 1
    for row in doubtful:
        name = name_of(row, lang, alone=one_judge)
        text = say("calibration.about", what=name, text=draw_text(row, lang))
        notes.append(note_row("not_random", name, text))
    return note_frame(notes)
