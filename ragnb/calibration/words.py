"""The card in sentences: first for whoever decides, then for whoever checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb.calibration import verdict
from ragnb.calibration.corrected import draw_text, not_random
from ragnb.calibration.labels import labels_text
from ragnb.calibration.table import ALL
from ragnb.calibration.verdict import Settings
from ragnb.errors import listing
from ragnb.markup import number, percent
from ragnb.schema import note_frame, note_row
from ragnb.stats import LabelsNeeded
from ragnb.texts import load

ROUGH = 20


def what(row: Mapping[Any, Any], lang: str, *, alone: bool) -> str:
    """Return the judge in words: by its name where there are several."""
    key = "both" if not alone else "one" if row["dimension"] == ALL else "dimension"
    return load(lang)(f"calibration.what_{key}", judge=row["judge"], dimension=row["dimension"])


def _slug(word: str) -> str:
    return word.lower().replace(" ", "_")


def labels(needs: LabelsNeeded, row: Mapping[Any, Any], settings: Settings) -> str:
    """Return how many labels are missing, or why more of them will not help."""
    say = load(settings.lang)
    if row["verdict"] == verdict.TRUST:
        return say("calibration.labels_done")
    reason = verdict.hopeless(row)
    if needs.reason != "share_at_or_below_target" and reason:
        return say(f"calibration.labels_{reason}")
    return labels_text(needs, row["n"], settings.target, settings.lang)


def share_line(row: Mapping[Any, Any], tolerance: float, lang: str) -> str:
    """Return the share beside its target and the best constant, in one sentence."""
    values = {"share": percent(row["share"]), "constant": percent(row["constant"])}
    values |= {"tolerance": f"{tolerance:g}", "score": f"{row['constant_score']:.3g}"}
    if not np.isfinite(row["low"]):
        return load(lang)("calibration.no_interval", **values)
    ends = {"low": percent(row["low"]), "high": percent(row["high"]), "target": percent(row["target"])}
    return load(lang)("calibration.share", **values, **ends)


def reasons(
    row: Mapping[Any, Any],
    table: Mapping[str, Any],
    frames: Mapping[str, pd.DataFrame],
    needs: str,
    settings: Settings,
    scale: tuple[float, float],
) -> tuple[str, ...]:
    """Return the sentences of one judge and dimension, the two that decide first."""
    lang, say = settings.lang, load(settings.lang)
    out = [say(f"calibration.headline_{_slug(row['verdict'])}", what=what(row, lang, alone=True))]
    out += [share_line(row, settings.tolerance, lang), _against_constant(row, table, lang), _bias(row, lang)]
    out += _beside(row, table, frames, lang)
    for word in (verdict.TRUST, verdict.REJECT):
        named = frames["bands"].loc[frames["bands"]["verdict"] == word, "band"]
        out += [say(f"calibration.bands_{_slug(word)}", bands=", ".join(named))] if len(named) else []
    out.append(needs)
    part = percent(settings.tolerance / (scale[1] - scale[0]))
    width = {"low": f"{scale[0]:g}", "high": f"{scale[1]:g}", "floor": percent(table["floor"])}
    out.append(say("calibration.width", tolerance=f"{settings.tolerance:g}", part=part, **width))
    if np.isfinite(table["ceiling"]):
        out.append(say("calibration.ceiling", ceiling=percent(table["ceiling"])))
    return tuple(out)


def _ends(row: Mapping[Any, Any], name: str, write: Any) -> dict[str, str]:
    return {"low": write(row[f"{name}_low"]), "high": write(row[f"{name}_high"])}


def _against_constant(row: Mapping[Any, Any], table: Mapping[str, Any], lang: str) -> str:
    key = "beats" if row["beats_constant"] else "beats_open" if table["over_constant"] > 0 else "beats_not"
    ends = _ends(table, "over_constant", percent)
    return load(lang)(f"calibration.{key}", gain=percent(table["over_constant"]), **ends)


def _bias(row: Mapping[Any, Any], lang: str) -> str:
    inside = row["bias_low"] >= -row["delta"] and row["bias_high"] <= row["delta"]
    where = "inside" if row["unbiased"] else "outside" if verdict.hopeless(row) == "bias" else "open"
    where = "system" if inside and not row["unbiased"] else where
    values = {"bias": signed(row["bias"]), "delta": f"{row['delta']:.3g}", **_ends(row, "bias", signed)}
    return load(lang)(f"calibration.bias_{where}", **values)


def _beside(
    row: Mapping[Any, Any], table: Mapping[str, Any], frames: Mapping[str, pd.DataFrame], lang: str
) -> list[str]:
    say, out = load(lang), []
    if verdict.RECALIBRATE in row["sides"]:
        maps = frames["recalibration"]
        best = maps[maps["passes"]].sort_values("mae").iloc[0]
        ends = {name: percent(best[name]) for name in ("share", "low", "high")}
        out.append(say("calibration.recalibrate", map=say(f"calibration.word.{best['map']}"), **ends))
    if verdict.RANKING_ONLY in row["sides"]:
        value = number(table["kendall_within"], 2)
        ends = _ends(table, "kendall_within", lambda end: number(end, 2))
        out.append(say("calibration.ranking", value=value, **ends))
    groups = frames["inflation"]
    found = groups[groups["inflated"] & groups["kind"].isin(["overall", "system"])]
    for part in found.to_dict("records"):
        ends = {"bias": number(part["value"], 2), "low": signed(part["low"]), "high": signed(part["high"])}
        key = "inflated" if part["kind"] == "overall" else "inflated_system"
        out.append(say(f"calibration.{key}", **ends, system=part["group"]))
    return out


def signed(value: float) -> str:
    """Return a difference with its sign.

    Examples
    --------
    >>> signed(0.594), signed(-0.405), signed(float("nan"))
    ('+0.59', '−0.41', '—')
    """
    written = number(abs(value) if np.isfinite(value) else value, 2)
    return written if not np.isfinite(value) or float(written) == 0 else f"{'+' if value > 0 else '−'}{written}"


def summary(verdicts: pd.DataFrame, tolerance: float, lang: str) -> dict[str, Any]:
    """Return what a card says of all its rows: the worst verdict, their side verdicts and the sentences."""
    sides = tuple(side for side in verdict.SIDES if any(side in found for found in verdicts["sides"]))
    reasons = _opening(verdicts, tolerance, lang)
    return {"verdict": verdict.worst(verdicts["verdict"].tolist()), "sides": sides, "reasons": reasons}


def _opening(verdicts: pd.DataFrame, tolerance: float, lang: str) -> tuple[str, ...]:
    """Return the card's sentences: those of its row, or a count of verdicts and the row nearest to the target."""
    rows = verdicts.to_dict("records")
    if len(rows) == 1:
        return tuple(rows[0]["reasons"])
    say, words = load(lang), verdicts["verdict"]
    counts = {"n": len(rows), "trust": (words == verdict.TRUST).sum(), "reject": (words == verdict.REJECT).sum()}
    counts["open"] = len(rows) - counts["trust"] - counts["reject"]
    best = max(rows, key=lambda row: (-verdict.WORST_LAST.index(row["verdict"]), row["share"]))
    alone = verdicts["judge"].nunique() == 1
    drawn = [what(row, lang, alone=alone) for row in rows if not_random(row["draw_p"])]
    warned = [say("calibration.draws", what=listing(drawn))] if drawn else []
    first = say(f"calibration.many_{_slug(verdict.worst(words.tolist()))}", **counts)
    nearest = say("calibration.best", what=what(best, lang, alone=alone))
    return (first, " ".join([nearest, share_line(best, tolerance, lang)]), *warned)


def notes(
    table: pd.DataFrame,
    verdicts: pd.DataFrame,
    guessed: tuple[float, float] | None,
    clustered: bool,
    drawn: bool | None,
    weighted: bool,
    lang: str,
) -> pd.DataFrame:
    """Return what a reader must know before believing the numbers."""
    say = load(lang)
    fewest, missing = int(table["n_clusters"].min()), int(table["n_missing"].sum())
    tested = [row for row in verdicts.to_dict("records") if not_random(row["draw_p"])]
    alone = verdicts["judge"].nunique() == 1
    found: Sequence[tuple[str, bool, dict[str, Any]]] = [
        ("rows_are_clusters", not clustered, {}),
        ("few_clusters", clustered and fewest < ROUGH, {"n": fewest}),
        ("guessed_scale", guessed is not None, _scale(guessed)),
        ("missing", missing > 0, {"n": missing}),
        ("one_rater", bool(table["raters"].isna().all()), {}),
        ("weighted", weighted, {}),
        ("not_random", drawn is False and not tested, {}),
        ("unknown_draw", drawn is None, {}),
    ]
    held = [(code, values) for code, holds, values in found if holds]
    rows = [note_row(code, "", say(f"calibration.note.{code}", **values)) for code, values in held]
    for row in tested:
        name, text = what(row, lang, alone=alone), draw_text(row, lang)
        text = say("calibration.about", what=name, text=text) if len(verdicts) > 1 else text
        rows.append(note_row("not_random", name, text))
    return note_frame(rows)


def _scale(scale: tuple[float, float] | None) -> dict[str, str]:
    return {} if scale is None else {"low": f"{scale[0]:g}", "high": f"{scale[1]:g}"}
