"""Traces → a scores frame: what each row did, its label, and the 0/1 columns whose means are the rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, did_you_mean, unknown
from ragnb.traces import cells, facts
from ragnb.traces.cells import Split, absent
from ragnb.traces.facts import Floats, Objects, chosen
from ragnb.traces.join import match, report_of

GOLD_COLUMNS = ("answerable", "gold_ids", "gold_claim")
LABELS = ("OK", "REFUSAL_OK", "OVER_REFUSAL", "HALLUCINATION", "ANS_NO_HIT")
NOT_RETRIEVED, NOT_CITED = "not retrieved", "retrieved, not cited"


def label_traces(
    traces: pd.DataFrame,
    gold: pd.DataFrame | None = None,
    *,
    refusal: str | Sequence[str] = ("not in context",),
    patterns: str | Sequence[str] = (),
    split: Split = "space",
    containment: Literal["auto", "latin"] = "auto",
    join: Literal["auto", "question"] = "auto",
) -> pd.DataFrame:
    """Label every trace, and give it the columns whose means are the refusal, citation and retrieval rates.

    Parameters
    ----------
    traces : DataFrame
        One row an answer: ``answer``, and ``question`` or ``sample_id``; optional ``citations`` (list of ids),
        ``chunks`` (list of ids or of ``{"id": ...}``, best first), ``system``, ``repeat``, ``ok``.
    gold : DataFrame, optional
        One row a question: ``answerable``, and ``question`` or ``sample_id``; optional ``gold_ids``,
        ``gold_claim``. Further columns travel onto the rows. Without it, such columns of `traces` are used.
    refusal : str or sequence of str
        An answer that equals one of them, trimmed and lower-cased, is a refusal.
    patterns : str or sequence of str
        Regular expressions: an answer in which one is found is a refusal. Case is ignored; look-around and
        back-references are not taken.
    split : {"space", "comma"}
        What parts the ids of ``citations: [...]`` in an answer: commas and white space, or commas alone.
    containment : {"auto", "latin"}
        Whether a claim that has no Latin phrase, or is not Latin, also counts when it occurs whole.
    join : {"auto", "question"}
        By ``sample_id`` where both have it, else by exact question text; or by text alone.

    Returns
    -------
    DataFrame
        The traces' rows and columns, then gold's, then ``answered, refused, hit, contained, compliant``
        (nullable booleans), ``label``, ``miss`` (why nothing was hit), ``citations_predicted``,
        ``citations_flagged`` (a list stands in the text that cannot be taken whole), and the rates of `RATES`:
        0/1 (``retrieval_recall`` and ``reciprocal_rank`` in [0, 1]), nan where the rate does not apply, and
        ``<rate>__status`` (``ok, not_applicable, failed, missing``) that says why.
        ``attrs["join"]`` counts and lists what did not meet.

    Raises
    ------
    RagnbError
        For a column that is missing, an option or a pattern that is unknown, and a cell of the wrong kind.

    Examples
    --------
    >>> traces = pd.DataFrame({"question": ["x", "y"], "answer": ["Yes. citations: [a]", "Not in context"]})
    >>> gold = pd.DataFrame({"question": ["x", "y"], "answerable": [True, False], "gold_ids": [["a"], []]})
    >>> label_traces(traces, gold)[["label", "citation_hit_rate", "under_refusal"]]
            label  citation_hit_rate  under_refusal
    0          OK                1.0            NaN
    1  REFUSAL_OK                NaN            0.0
    """
    _check_options(traces, split, containment, join)
    frame, matched, report = _with_gold(traces, gold, join)
    answers = [None if absent(v) else cells.tidy(v) for v in cells.column(frame, "answer")]
    predicted, flagged = facts.citations(frame, split)
    gold_ids = facts.gold_ids(frame, matched)
    answerable = facts.answerable(frame)
    done = facts.refused(answers, _words(refusal), _words(patterns))
    done |= {
        "hit": facts.hits(predicted, gold_ids),
        "contained": facts.contained(frame, answers, containment == "auto"),
        "compliant": facts.compliant(predicted, done["refused"]),
    }
    rates = facts.rates(done, answerable) | facts.retrieval(frame, gold_ids, answerable)
    rates["compliance"] = np.where(matched, rates["compliance"], np.nan)
    label = _labels(done, answerable)
    new: dict[str, Any] = {name: _nullable(fact) for name, fact in done.items()}
    words = {"label": label, "miss": _misses(label, rates["retrieval_hit"]), "citations_predicted": predicted}
    new |= {name: pd.Series(items, frame.index, dtype=object) for name, items in words.items()}
    new |= {"citations_flagged": flagged} | rates | facts.statuses(frame, rates, done, answerable)
    out = frame.drop(columns=[c for c in new if c in frame]).assign(**new)
    report |= {"n_without_answer": answers.count(None), "n_citations_flagged": sum(flagged)}
    out.attrs = {**traces.attrs, "join": report}
    return out


def _check_options(traces: pd.DataFrame, split: str, containment: str, join: str) -> None:
    if "answer" not in traces:
        raise RagnbError(f"traces have no column 'answer'; {did_you_mean('answer', list(traces.columns))}")
    options = {"split": (split, cells.SPLITS), "containment": (containment, ("auto", "latin"))}
    for name, (value, choices) in (options | {"join": (join, ("auto", "question"))}).items():
        if value not in choices:
            raise unknown(name, value, list(choices))


def _words(words: str | Sequence[str]) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def _with_gold(
    traces: pd.DataFrame, gold: pd.DataFrame | None, join: str
) -> tuple[pd.DataFrame, npt.NDArray[np.bool_], dict[str, Any]]:
    """Return the traces with gold's columns, whether each row takes part in the rates, and the join report."""
    if gold is None:
        return traces.copy(), np.ones(len(traces), dtype=bool), report_of(traces, None, 0, {})
    if "answerable" not in gold:
        raise RagnbError(f"gold has no column 'answerable'; {did_you_mean('answerable', list(gold.columns))}")
    if not any(key in traces and key in gold for key in ("sample_id", "question")):
        raise RagnbError("traces and gold share neither 'sample_id' nor 'question'; rename one in both")
    row, report = match(traces, gold, join)
    frame = traces.drop(columns=[c for c in GOLD_COLUMNS if c in traces])
    theirs = gold.reset_index(drop=True).reindex(row).set_axis(frame.index)
    for column in theirs:
        gaps = column in frame and bool(frame[column].isna().any())
        if column not in frame:
            frame[column] = theirs[column]
        elif gaps:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), theirs[column])
    return frame, row >= 0, report


def _labels(done: Mapping[str, Floats], answerable: Floats) -> Objects:
    answered, hit = done["answered"], done["hit"]
    yes, no = answerable == 1, answerable == 0
    return chosen(
        {
            "OK": yes & (answered == 1) & (hit == 1),
            "REFUSAL_OK": no & (answered == 0),
            "OVER_REFUSAL": yes & (answered == 0),
            "HALLUCINATION": no & (answered == 1),
            "ANS_NO_HIT": yes & (answered == 1) & (hit == 0),
        },
        len(answerable),
    )


def _misses(label: Objects, retrieved: Floats) -> Objects:
    missed = label == "ANS_NO_HIT"
    return chosen({NOT_RETRIEVED: missed & (retrieved == 0), NOT_CITED: missed & (retrieved == 1)}, len(label))


def _nullable(fact: Floats) -> pd.arrays.BooleanArray:
    gone = np.isnan(fact)
    return pd.arrays.BooleanArray(np.where(gone, 0.0, fact).astype(bool), gone)
