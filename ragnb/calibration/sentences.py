"""The sentences of a card, filled with its figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragnb.calibration.corrected import not_random
from ragnb.calibration.ratings import ALL
from ragnb.calibration.words import SIDES, WORST_LAST, text_key, told
from ragnb.errors import listing
from ragnb.texts import load


def summary(verdicts: pd.DataFrame, tolerance: float, lang: str) -> dict[str, Any]:
    """Return the summary of all rows of a card: the worst verdict, the side verdicts and the sentences."""
    rows = verdicts.to_dict("records")
    verdict = max(verdicts["verdict"], key=WORST_LAST.index)
    sides = tuple(side for side in SIDES if any(side in row["sides"] for row in rows))
    # A single row speaks for itself, with all of its reasons.
    if len(rows) == 1:
        reasons = tuple(rows[0]["reasons"])
    else:
        reasons = _reasons_of_several(verdicts, verdict, tolerance, lang)
    return {"verdict": verdict, "sides": sides, "reasons": reasons}


def _reasons_of_several(
    verdicts: pd.DataFrame, verdict: str, tolerance: float, lang: str
) -> tuple[str, ...]:
    """Return the sentences on several rows: how many of each verdict, the best one, the draw, and the plan."""
    say = load(lang)
    rows = verdicts.to_dict("records")
    named = partial(name_of, lang=lang, alone=verdicts["judge"].nunique() == 1)
    counts = {text_key(word): (verdicts["verdict"] == word).sum() for word in WORST_LAST}
    best = max(rows, key=lambda row: (-WORST_LAST.index(row["verdict"]), row["share"]))
    reasons = [
        say(f"calibration.many_{text_key(verdict)}", n=len(rows), **counts),
        f"{say('calibration.best', what=named(best))} {share_line(best, tolerance, lang)}",
    ]
    drawn = [named(row) for row in rows if not_random(row["draw_p"])]
    if drawn:
        reasons.append(say("calibration.draws", what=listing(drawn)))
    planned = rows[0]["labels_planned"]
    spent = [named(row) for row in rows if np.isnan(row["widened"])]
    if pd.isna(planned):
        looks = "look_once"
    elif spent:
        looks = "look_spent_rows"
    else:
        looks = "look_rows"
    reasons.append(say(f"calibration.{looks}", what=listing(spent), labels_planned=planned))
    return tuple(reasons)


def name_of(row: Mapping[Any, Any], lang: str, *, alone: bool) -> str:
    """Return how sentences call the judge: by name if there are several."""
    if not alone:
        key = "both"
    elif row["dimension"] == ALL:
        key = "one"
    else:
        key = "dimension"
    return load(lang)(f"calibration.what_{key}", judge=row["judge"], dimension=row["dimension"])


def share_line(row: Mapping[Any, Any], tolerance: float, lang: str) -> str:
    """Return one sentence on the agreement, its target and the best constant score."""
    key = "share" if np.isfinite(row["low"]) else "no_interval"
    return told(lang, f"calibration.{key}{if_exact(tolerance)}", row, tolerance=tolerance)


def if_exact(tolerance: float) -> str:
    """Return the ending of texts for a tolerance of 0, as of labels that are yes or no."""
    if tolerance:
        return ""
    return "_exact"
