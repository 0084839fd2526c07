"""What the facts of a trace add up to: its rates, its label, why it missed, why a rate has no number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from ragnb.traces.columns import Flags
from ragnb.traces.wanted import Floats

Codes = npt.NDArray[np.int8]
LABELS = ("OK", "REFUSAL_OK", "OVER_REFUSAL", "HALLUCINATION", "ANS_NO_HIT")
MISSES = ("not retrieved", "retrieved, not cited")
STATUSES = ("missing", "ok", "not_applicable", "failed")


def coded(flags: Iterable[Flags], size: int) -> Codes:
    """Return for each row the place of the flag that is set (the last of several), −1 for none.

    Examples
    --------
    >>> coded([np.array([True, False]), np.array([True, False])], 2)
    array([ 1, -1], dtype=int8)
    """
    out = np.full(size, -1, dtype=np.int8)
    for place, flag in enumerate(flags):
        out[flag] = place
    return out


def rates(done: Mapping[str, Floats], answerable: Floats) -> dict[str, Floats]:
    """Return the columns whose means are the refusal and citation rates, nan outside the denominator.

    Examples
    --------
    >>> yes = np.array([1.0])
    >>> done = dict.fromkeys(["answered", "hit", "contained", "compliant"], yes) | {"refused": 1 - yes}
    >>> rates(done, yes)["citation_hit_rate"]
    array([1.])
    """
    answered, hit = done["answered"], done["hit"]
    yes = np.where(answerable == 1, 1.0, np.nan)
    return {
        "answer_precision": np.where(answered == 1, answerable * hit, np.nan),
        "over_refusal": yes * done["refused"],
        "under_refusal": np.where(answerable == 0, answered, np.nan),
        "citation_hit_rate": yes * answered * hit,
        "claim_containment": yes * answered * done["contained"],
        "compliance": done["compliant"].copy(),
    }


def correct(label: Codes) -> Floats:
    """Return 1 for an answer with a right citation or a correct refusal, 0 for another label, nan for none.

    Examples
    --------
    >>> correct(np.array([0, 1, 4, -1], dtype=np.int8))
    array([ 1.,  1.,  0., nan])
    """
    good = [LABELS.index("OK"), LABELS.index("REFUSAL_OK")]
    return np.where(label < 0, np.nan, np.isin(label, good).astype(float))


def statuses(
    scored: Mapping[str, Floats], done: Mapping[str, Floats], answerable: Floats, failed: Flags
) -> dict[str, Codes]:
    """Return for each rate the place in STATUSES of why a row has a number or none.

    Parameters
    ----------
    scored : mapping of rate to (N,) float
    done : mapping of fact to (N,) float
    answerable : (N,) float
    failed : (N,) bool
        Calls that failed; they count where there is no answer.

    Examples
    --------
    >>> done, yes = {"refused": np.array([0.0])}, np.array([1.0])
    >>> codes = statuses({"under_refusal": np.array([np.nan])}, done, yes, np.array([False]))
    >>> STATUSES[codes["under_refusal__status"][0]]
    'not_applicable'
    """
    refused = done["refused"]
    outside = dict.fromkeys(scored, answerable == 0)
    outside |= {"answer_precision": refused == 1, "under_refusal": answerable == 1}
    outside |= dict.fromkeys(("correct_outcome", "compliance"), np.zeros(len(refused), dtype=bool))
    failed = failed & np.isnan(refused)
    out = {}
    for name, values in scored.items():
        reason = np.where(outside[name], np.int8(2), np.where(failed, np.int8(3), np.int8(0)))
        out[f"{name}__status"] = np.where(np.isnan(values), reason, np.int8(1)).astype(np.int8)
    return out


def labels(done: Mapping[str, Floats], answerable: Floats) -> Codes:
    """Return for each row the place of its label in LABELS, −1 for none."""
    answered, hit = done["answered"], done["hit"]
    yes, no = answerable == 1, answerable == 0
    words = {
        "OK": yes & (answered == 1) & (hit == 1),
        "REFUSAL_OK": no & (answered == 0),
        "OVER_REFUSAL": yes & (answered == 0),
        "HALLUCINATION": no & (answered == 1),
        "ANS_NO_HIT": yes & (answered == 1) & (hit == 0),
    }
    return coded((words[name] for name in LABELS), len(answerable))


def misses(label: Codes, retrieved: Floats) -> Codes:
    """Return for each answer that hit nothing the place in MISSES of why, −1 for others and where unknown."""
    missed = label == LABELS.index("ANS_NO_HIT")
    return coded([missed & (retrieved == 0), missed & (retrieved == 1)], len(label))
