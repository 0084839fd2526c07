"""From ratings to one card: every judge and dimension measured, decided, and put into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats, texts
from ragnb.calibration import verdict, words
from ragnb.calibration.card import CalibrationCard
from ragnb.calibration.cells import Cells, cells_of, fingerprint
from ragnb.calibration.corrected import draw_text, not_random
from ragnb.calibration.frames import corrected, frames_of, judged_rows
from ragnb.calibration.labels import budget_curve
from ragnb.calibration.measures import measure
from ragnb.calibration.raters import PROBABILITY, Asked, Missing, Names, as_list
from ragnb.calibration.ratings import Ratings, columns_of, group_columns, open_ratings
from ragnb.calibration.table import ALL, blocks, check_tolerance
from ragnb.calibration.verdict import Settings
from ragnb.errors import RagnbError, unknown

FRAMES = ("bands", "inflation", "recalibration", "labels_needed", "budget", "counts", "reliability", "corrected")
ABOUT = ("judge_id", "prompt_sha256", "rater_protocol", "drawn_at_random")


@dataclass(frozen=True)
class Piece:
    """One judge on one dimension: its verdict, its row of the table, its part of every frame."""

    row: dict[str, Any]
    numbers: dict[str, Any]
    frames: dict[str, pd.DataFrame]
    cells: Cells
    ratings: Ratings


def calibrate(
    ratings: Any,
    *,
    judge: Names = "judge",
    human: Names = "human",
    by: str | None = "dimension",
    tolerance: float = 1.0,
    target: float = 0.8,
    delta: float | None = None,
    scale: tuple[float, float] | None = None,
    cluster: str | None = "cluster",
    level: float = 0.95,
    missing: Missing = None,
    rater: str = "rater",
    judged: Any = None,
    groups: Sequence[str] | None = None,
    about: Mapping[str, Any] | None = None,
    resamples: int = 2000,
    seed: int = 0,
    lang: str = "en",
) -> CalibrationCard:
    """Decide whether a judge's scores can stand in for human ratings: TRUST, REJECT or NOT PROVEN.

    Parameters
    ----------
    ratings, judge, human, tolerance, scale, cluster, level, missing, rater
        As in `agreement`; estimates are weighted by a column ``inclusion_probability`` where it is there.
    by : str or None
        The column whose values get a verdict each.
    target : float
        The share within ±tolerance that is asked for, in (0, 1).
    delta : float, optional
        The acceptable bias, in points of the scale; None takes 1/18 of the scale: 0.5 on 1–10, 0.056 on 0–1.
    judged : DataFrame, optional
        Further rows with the judge's score alone, for the corrected mean. Rows of `ratings` without a human
        score count as such too. The judge's scores on them and on the labelled rows show whether the labels look
        like a random draw; a draw by the *human* score cannot be found: nobody scored the rest.
    groups : sequence of str, optional
        Columns by which bias is looked at; None takes ``system``, answerability and lengths that are there.
        Columns of more than six numbers are cut into thirds.
    about : mapping, optional
        For the footer: ``judge_id, prompt_sha256, rater_protocol, drawn_at_random``. The last is False on the card
        where the judge's scores speak against it, and True where chances are recorded and nobody said.
    resamples, seed : int
        Of the cluster bootstrap behind the band of the reliability curve.
    lang : {"en", "zh"}
        The language of the sentences.

    Returns
    -------
    CalibrationCard

    Raises
    ------
    RagnbError
        As `agreement`; for a target outside (0, 1), and for ratings with no row that both rated.

    Examples
    --------
    >>> frame = pd.DataFrame({"judge": [4, 5, 2, 1] * 50, "human": [5, 4, 2, 1] * 50})
    >>> card = calibrate(frame, scale=(1, 5))
    >>> card.verdict, card.verdicts["share"].tolist()
    ('TRUST', [1.0])
    """
    settings = Settings(tolerance, target, delta, level, resamples, seed, lang)
    _check(settings, about)
    columns = columns_of(ratings)
    asked = Asked(human, by, scale, cluster, missing, rater, groups=group_columns(columns, groups))
    pieces = [piece for name in as_list(judge) for piece in _pieces(ratings, name, asked, judged, settings)]
    return _card(pieces, about, PROBABILITY in columns, settings)


def _card(
    pieces: Sequence[Piece], about: Mapping[str, Any] | None, recorded: bool, settings: Settings
) -> CalibrationCard:
    """Lay the pieces on one card; `recorded` says that the labels' inclusion probabilities are."""
    for piece, p in zip(pieces, stats.holm([piece.row["draw_p"] for piece in pieces]), strict=True):
        piece.row["draw_p"] = float(p)
        if not_random(p):
            said = piece.row["reasons"]
            piece.row["reasons"] = (*said[:2], draw_text(piece.row, settings.lang), *said[2:])
    parts = {key: [piece.frames[key] for piece in pieces] for key in FRAMES}
    frames: dict[str, Any] = {key: pd.concat(found, ignore_index=True) for key, found in parts.items()}
    frames["counts"].attrs["step"] = max(found.attrs["step"] for found in parts["counts"])
    verdicts = pd.DataFrame([piece.row for piece in pieces])
    table = pd.DataFrame([piece.numbers for piece in pieces])
    lows, highs = zip(*(piece.ratings.scale for piece in pieces), strict=True)
    table.attrs["scale"] = ends = min(lows), max(highs)
    first, footer = pieces[0].ratings, _footer(about, pieces, recorded, settings)
    drawn, weighted = footer["drawn_at_random"], any(np.ptp(piece.cells.weights) > 0 for piece in pieces)
    guessed, clustered = ends if first.guessed else None, bool(first.cluster_names)
    notes = words.notes(table, verdicts, guessed, clustered, drawn, weighted, settings.lang)
    return CalibrationCard(
        **words.summary(verdicts, settings.tolerance, settings.lang),
        verdicts=verdicts,
        table=table,
        **frames,
        notes=notes,
        footer=footer,
        tolerance=settings.tolerance,
        target=settings.target,
        delta=settings.acceptable_bias(ends),
        level=settings.level,
        scale=ends,
        lang=settings.lang,
    )


def _pieces(ratings: Any, judge: str, asked: Asked, judged: Any, settings: Settings) -> Iterator[Piece]:
    """Measure and decide every dimension of one judge."""
    opened = open_ratings(ratings, judge, asked)
    check_tolerance(settings.tolerance, opened)
    more = None if judged is None else judged_rows(judged, judge, asked)
    for labels, chosen in blocks(opened, asked.keys):
        head = {"judge": judge, "dimension": labels[asked.keys[0]] if asked.keys else ALL}
        cells = cells_of(opened, chosen)
        if not cells.n:
            raise RagnbError(f"{head}: no row has both a judge's and a human's score; label some of its items")
        measured = head | measure(opened, chosen, settings.tolerance, settings.level)
        frames = frames_of(opened, chosen, cells, settings)
        groups = frames["inflation"]
        row = head | verdict.verdict_row(cells, measured, groups, settings, opened.scale)
        if row["verdict"] == verdict.TRUST:  # then each of these biases is shown to be acceptable
            groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"] = False
        inside = None if more is None else more[more["dimension"] == head["dimension"]]
        frames["corrected"], draw = corrected(opened, chosen, inside, settings)
        row |= draw
        row["sides"] = verdict.sides(row["verdict"], measured, frames["recalibration"], frames["inflation"])
        flags = stats.within(cells.x, cells.y, settings.tolerance)
        needs = stats.labels_needed(flags, **cells.how, target=settings.target, alpha=1 - settings.level)
        text = words.labels(needs, row, settings)
        whole = dict.fromkeys(("total", "more", "independent"), "Int64")
        frames["labels_needed"] = pd.DataFrame([asdict(needs) | {"text": text}]).astype(whole)
        frames["budget"] = budget_curve(flags, cells, settings)
        row["reasons"] = words.reasons(row, measured, frames, text, settings, opened.scale)
        for frame in frames.values():
            frame.insert(0, "dimension", head["dimension"])
            frame.insert(0, "judge", judge)
        yield Piece(row, measured, frames, cells, opened)


def _check(settings: Settings, about: Mapping[str, Any] | None) -> None:
    texts.table(settings.lang)
    for name, value, low, high in (
        ("target", settings.target, 0.0, 1.0),
        ("level", settings.level, 0.5, 1.0),
        ("delta", settings.delta, 0.0, np.inf),
    ):
        if value is not None and not low < value < high:
            raise RagnbError(f"{name}={value} is not between {low:g} and {high:g}")
    for name in about or {}:
        if name not in ABOUT:
            raise unknown("about", name, ABOUT)


def _footer(
    about: Mapping[str, Any] | None, pieces: Sequence[Piece], recorded: bool, settings: Settings
) -> dict[str, Any]:
    told = {name: (about or {}).get(name) for name in ABOUT}
    if any(not_random(piece.row["draw_p"]) for piece in pieces):
        told["drawn_at_random"] = False
    elif recorded and told["drawn_at_random"] is None:
        told["drawn_at_random"] = True
    named = [(f"{piece.row['judge']}\n{piece.row['dimension']}", piece.cells) for piece in pieces]
    raters = [piece.numbers["raters"] for piece in pieces if np.isfinite(piece.numbers["raters"])]
    return told | {
        "data_sha256": fingerprint(named),
        "seed": settings.seed,
        "resamples": settings.resamples,
        "n": sum(piece.cells.n for piece in pieces),
        "n_clusters": max(piece.cells.n_clusters for piece in pieces),
        "raters": float(np.mean(raters)) if raters else None,
        "n_missing": sum(int(piece.numbers["n_missing"]) for piece in pieces),
    }
