"""The verdict on each judge and dimension: trusted, rejected, or not proven, every number behind it, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats, texts
from ragnb.calibration.card import SIDES, WORST_LAST, CalibrationCard, name_of, share_line, signed, summary
from ragnb.calibration.corrected import draw_text, not_random
from ragnb.calibration.frames import Settings, corrected, frames_of, judged_rows
from ragnb.calibration.measures import measure_rows, measured, over_constant
from ragnb.calibration.ratings import (
    ALL,
    PROBABILITY,
    Asked,
    Cells,
    Missing,
    Names,
    Ratings,
    as_list,
    cells_of,
    columns_of,
    fingerprint,
    group_columns,
    open_ratings,
)
from ragnb.errors import RagnbError, unknown
from ragnb.markup import number, percent
from ragnb.schema import note_frame, note_row
from ragnb.stats import Estimate, LabelsNeeded
from ragnb.stats.estimates import NONE

TRUST, NOT_PROVEN, REJECT = WORST_LAST
RECALIBRATE, RANKING_ONLY, INFLATED = SIDES
ABOUT = ("judge_id", "prompt_sha256", "rater_protocol", "drawn_at_random")
ROUGH = 20  # fewer clusters make intervals that are themselves rough
Measures = Mapping[str, Estimate]


@dataclass(frozen=True)
class Piece:
    """One judge on one dimension: its row of the verdicts, its part of every frame, and what they rest on."""

    row: dict[str, Any]
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
    texts.table(lang)
    limits = {"target": (target, 0.0, 1.0), "level": (level, 0.5, 1.0), "delta": (delta, 0.0, np.inf)}
    for name, (value, low, high) in limits.items():
        if value is not None and not low < value < high:
            raise RagnbError(f"{name}={value} is not between {low:g} and {high:g}")
    for name in about or {}:
        if name not in ABOUT:
            raise unknown("about", name, ABOUT)
    columns = columns_of(ratings)
    asked = Asked(human, by, scale, cluster, missing, rater, groups=group_columns(columns, groups))
    pieces = [piece for name in as_list(judge) for piece in _pieces(ratings, name, asked, judged, settings)]
    for piece, p in zip(pieces, stats.holm([piece.row["draw_p"] for piece in pieces]), strict=True):
        piece.row["draw_p"] = float(p)
        if not_random(p):
            first = piece.row["reasons"]
            piece.row["reasons"] = (*first[:2], draw_text(piece.row, lang), *first[2:])
    parts = {key: [piece.frames[key] for piece in pieces] for key in pieces[0].frames}
    frames: dict[str, Any] = {key: pd.concat(found, ignore_index=True) for key, found in parts.items()}
    frames["counts"].attrs["step"] = max(found.attrs["step"] for found in parts["counts"])
    lows, highs = zip(*(piece.ratings.scale for piece in pieces), strict=True)
    frames["table"].attrs["scale"] = ends = min(lows), max(highs)
    verdicts = pd.DataFrame([piece.row for piece in pieces])
    source = getattr(ratings, "attrs", {}).get("source") or {}  # of a frame that a reader made of a file
    footer = _footer(about, pieces, frames["table"], PROBABILITY in columns, settings)
    return CalibrationCard(
        **summary(verdicts, tolerance, lang), verdicts=verdicts, **frames,
        notes=_notes(frames["table"], verdicts, pieces, footer["drawn_at_random"], source, lang), footer=footer,
        tolerance=tolerance, target=target, delta=settings.acceptable_bias(ends), level=level, scale=ends,
        lang=lang,
    )  # fmt: skip


def _pieces(ratings: Any, judge: str, asked: Asked, judged: Any, settings: Settings) -> Iterator[Piece]:
    """Measure and decide every dimension of one judge."""
    opened = open_ratings(ratings, judge, asked, settings.tolerance)
    more = None if judged is None else judged_rows(judged, judge, asked)
    for labels, chosen in opened.blocks(asked.keys):
        head = {"judge": judge, "dimension": labels[asked.keys[0]] if asked.keys else ALL}
        cells = cells_of(opened, chosen)
        if not cells.n:
            raise RagnbError(f"{head}: no row has both a judge's and a human's score; label some of its items")
        measures = measured(opened, chosen, cells, settings.tolerance, settings.level)
        frames = frames_of(opened, chosen, cells, settings)
        groups = frames["inflation"]
        row = head | verdict_row(cells, measures, groups, settings, opened.scale)
        if row["verdict"] == TRUST:  # then each of these biases is shown to be acceptable
            groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"] = False
        inside = None if more is None else more[more["dimension"] == head["dimension"]]
        frames["corrected"], draw = corrected(opened, chosen, inside, settings)
        ranks = rank_within(cells, settings.level)
        row |= draw | {"sides": _sides(row["verdict"], ranks, frames["recalibration"], groups)}
        flags = stats.within(cells.x, cells.y, settings.tolerance)
        needs = stats.labels_needed(flags, **cells.how, target=settings.target, alpha=1 - settings.level)
        text = _labels_line(needs, row, settings)
        whole = dict.fromkeys(("total", "more", "independent"), "Int64")
        frames["labels_needed"] = pd.DataFrame([asdict(needs) | {"text": text}]).astype(whole)
        row["reasons"] = _reasons(row, measures, ranks, frames, text, settings, opened.scale)
        for frame in frames.values():
            frame.insert(0, "dimension", head["dimension"])
            frame.insert(0, "judge", judge)
        yield Piece(row, frames | {"table": measure_rows(head, measures)}, cells, opened)


def verdict_row(
    cells: Cells, measures: Measures, groups: pd.DataFrame, settings: Settings, scale: tuple[float, float]
) -> dict[str, Any]:
    """Return the verdict and what it was decided on.

    TRUST needs three things at once, each at `level`: the share's one-sided lower bound reaches the target, the
    judge agrees more often than the best constant (one-sided, pair by pair), and the interval of the bias lies
    inside ±delta; so must that of every system which the judge inflates. REJECT: the share's one-sided upper
    bound misses the target.
    """
    tolerance, target, delta = settings.tolerance, settings.target, settings.acceptable_bias(scale)
    once = 2 * settings.level - 1  # the two-sided interval whose ends are one-sided bounds at `level`
    share = stats.within_share(cells.x, cells.y, tolerance=tolerance, **cells.how, level=once)
    both, bias, score = measures["within"], measures["bias"], measures["constant_score"].value
    beats = over_constant(cells, score, tolerance, once).low > 0
    favoured = groups.loc[groups["inflated"] & (groups["kind"] == "system"), "high"].max()
    unbiased = bias.low >= -delta and bias.high <= delta and not favoured > delta
    trusted = share.low >= target and beats and unbiased
    return {
        "verdict": TRUST if trusted else REJECT if share.high < target else NOT_PROVEN,
        "share": share.value, "low": both.low, "high": both.high, "lower": share.low, "upper": share.high,
        "target": target, "constant": measures["constant"].value, "constant_score": score,
        "beats_constant": bool(beats), "bias": bias.value, "bias_low": bias.low, "bias_high": bias.high,
        "delta": delta, "unbiased": bool(unbiased), "n": cells.n, "n_clusters": cells.n_clusters,
    }  # fmt: skip


def rank_within(cells: Cells, level: float) -> Estimate:
    """Return Kendall's τ-b within clusters; none where every rating stands alone."""
    if cells.cluster is None:
        return NONE
    clusters, counts = cells.sums["clusters"], cells.sums["counts"]
    return stats.kendall_within(cells.x, cells.y, clusters, counts=counts, digits=10, level=level)


def _sides(verdict: str, ranks: Estimate, maps: pd.DataFrame, groups: pd.DataFrame) -> tuple[str, ...]:
    """Return the side verdicts, in the order of `SIDES`; none stands beside TRUST."""
    holds = {
        RECALIBRATE: verdict != TRUST and maps["passes"].any(),
        RANKING_ONLY: verdict != TRUST and ranks.low > 0,
        INFLATED: groups.loc[groups["kind"].isin(["overall", "system"]), "inflated"].any(),
    }
    return tuple(side for side, held in holds.items() if held)


def _hopeless(row: Mapping[str, Any]) -> str | None:
    """Return why more labels alone will not bring TRUST, beside a share at or below the target."""
    if row["bias_low"] > row["delta"] or row["bias_high"] < -row["delta"]:
        return "bias"
    return "constant" if np.isfinite(row["share"]) and row["share"] <= row["constant"] else None


def _labels_line(needs: LabelsNeeded, row: Mapping[str, Any], settings: Settings) -> str:
    """Say how many labels are missing, or why more of them will not help."""
    say, reason = texts.load(settings.lang), _hopeless(row)
    if row["verdict"] == TRUST:
        return say("calibration.labels_done")
    if needs.reason != "share_at_or_below_target" and reason:
        return say(f"calibration.labels_{reason}")
    key = "enough" if needs.more == 0 else needs.reason
    shares = {"seen": percent(needs.seen), "planned": percent(needs.planned), "target": percent(settings.target)}
    counts = {"n": row["n"], "total": needs.total, "more": needs.more}
    return say(f"labels.{key}", **counts, deff=number(needs.deff, 2), **shares)


def _reasons(
    row: Mapping[str, Any],
    measures: Measures,
    ranks: Estimate,
    frames: Mapping[str, pd.DataFrame],
    needs: str,
    settings: Settings,
    scale: tuple[float, float],
) -> tuple[str, ...]:
    """Return the sentences of one judge and dimension, the two that decide first."""
    lang, say = settings.lang, texts.load(settings.lang)

    def tell(key: str, **values: Any) -> str:
        return say(f"calibration.{key}", **values)

    gain, delta = measures["over_constant"], row["delta"]
    key = "beats" if row["beats_constant"] else "beats_open" if gain.value > 0 else "beats_not"
    inside = row["bias_low"] >= -delta and row["bias_high"] <= delta
    where = "inside" if row["unbiased"] else "outside" if _hopeless(row) == "bias" else "open"
    where = "system" if inside and not row["unbiased"] else where
    bias = {name: signed(row[column]) for name, column in
            (("bias", "bias"), ("low", "bias_low"), ("high", "bias_high"))}  # fmt: skip
    out = [
        tell(f"headline_{_slug(row['verdict'])}", what=name_of(row, lang, alone=True)),
        share_line(row, settings.tolerance, lang),
        tell(key, gain=percent(gain.value), low=percent(gain.low), high=percent(gain.high)),
        tell(f"bias_{where}", **bias, delta=f"{delta:.3g}"),
    ]
    if RECALIBRATE in row["sides"]:
        maps = frames["recalibration"]
        best = maps[maps["passes"]].sort_values("mae").iloc[0]
        ends = {name: percent(best[name]) for name in ("share", "low", "high")}
        out.append(tell("recalibrate", map=tell(f"word.{best['map']}"), **ends))
    if RANKING_ONLY in row["sides"]:
        out.append(tell("ranking", **{name: number(getattr(ranks, name), 2) for name in ("value", "low", "high")}))
    groups = frames["inflation"]
    for part in groups[groups["inflated"] & groups["kind"].isin(["overall", "system"])].to_dict("records"):
        ends = {"bias": number(part["value"], 2), "low": signed(part["low"]), "high": signed(part["high"])}
        key = "inflated" if part["kind"] == "overall" else "inflated_system"
        out.append(tell(key, **ends, system=part["group"]))
    for word in (TRUST, REJECT):
        named = frames["bands"].loc[frames["bands"]["verdict"] == word, "band"]
        out += [tell(f"bands_{_slug(word)}", bands=", ".join(named))] if len(named) else []
    width = {"low": f"{scale[0]:g}", "high": f"{scale[1]:g}", "tolerance": f"{settings.tolerance:g}"}
    width |= {"part": percent(settings.tolerance / (scale[1] - scale[0]))}
    out += [needs, tell("width", **width, floor=percent(measures["floor"].value))]
    ceiling = measures["ceiling"].value if "ceiling" in measures else np.nan
    return (*out, tell("ceiling", ceiling=percent(ceiling))) if np.isfinite(ceiling) else tuple(out)


def _slug(word: str) -> str:
    return word.lower().replace(" ", "_")


def _footer(
    about: Mapping[str, Any] | None,
    pieces: Sequence[Piece],
    table: pd.DataFrame,
    recorded: bool,
    settings: Settings,
) -> dict[str, Any]:
    """Return the run details; `recorded` says that the labels' inclusion probabilities are."""
    given = {name: (about or {}).get(name) for name in ABOUT}
    if any(not_random(piece.row["draw_p"]) for piece in pieces):
        given["drawn_at_random"] = False
    elif recorded and given["drawn_at_random"] is None:
        given["drawn_at_random"] = True
    named = [(f"{piece.row['judge']}\n{piece.row['dimension']}", piece.cells) for piece in pieces]
    raters = table.loc[table["measure"] == "raters", "value"]
    return given | {
        "data_sha256": fingerprint(named), "seed": settings.seed, "resamples": settings.resamples,
        "n": sum(piece.cells.n for piece in pieces),
        "n_clusters": max(piece.cells.n_clusters for piece in pieces),
        "raters": float(raters.mean()) if len(raters) else None,
        "n_missing": int(table.loc[table["measure"] == "n_missing", "value"].sum()),
    }  # fmt: skip


def _notes(
    table: pd.DataFrame, verdicts: pd.DataFrame, pieces: Sequence[Piece], drawn: bool | None,
    source: Mapping[str, Any], lang: str,
) -> pd.DataFrame:  # fmt: skip
    """Return what a reader must know before believing the numbers."""
    say, first, (low, high) = texts.load(lang), pieces[0].ratings, table.attrs["scale"]
    fewest, missing = int(verdicts["n_clusters"].min()), table.loc[table["measure"] == "n_missing", "value"].sum()
    tested = [row for row in verdicts.to_dict("records") if not_random(row["draw_p"])]
    clustered, alone = bool(first.cluster_names), verdicts["judge"].nunique() == 1
    found: Sequence[tuple[str, bool, dict[str, Any]]] = [
        ("damaged", bool(source.get("damaged")), {"n": source.get("damaged"), "lines": source.get("lines")}),
        ("rows_are_clusters", not clustered, {}),
        ("few_clusters", clustered and fewest < ROUGH, {"n": fewest}),
        ("guessed_scale", first.guessed, {"low": f"{low:g}", "high": f"{high:g}"}),
        ("missing", missing > 0, {"n": int(missing)}),
        ("one_rater", "raters" not in set(table["measure"]), {}),
        ("weighted", any(np.ptp(piece.cells.weights) > 0 for piece in pieces), {}),
        ("not_random", drawn is False and not tested, {}),
        ("unknown_draw", drawn is None, {}),
    ]
    held = [(code, values) for code, holds, values in found if holds]
    rows = [note_row(code, "", say(f"calibration.note.{code}", **values)) for code, values in held]
    for row in tested:
        name, text = name_of(row, lang, alone=alone), draw_text(row, lang)
        text = say("calibration.about", what=name, text=text) if len(verdicts) > 1 else text
        rows.append(note_row("not_random", name, text))
    return note_frame(rows)
