"""Claims that words cannot decide, before a judge: durable, billed, and with reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.judging import judge
from ragnb.schema import Dimension, Gate, Rubric
from ragnb.store import Client

SUPPORT = "support"
_VERDICTS = {1: "not found", 2: "partly", 3: "supported"}


def judged_claims(
    rows: pd.DataFrame,
    passages: list[list[str]],
    *,
    client: Client,
    store: Any = None,
    lang: str = "en",
    progress: bool | None = None,
) -> pd.DataFrame:
    """Return claims with the verdicts of a judge on those that their wording leaves open.

    Parameters
    ----------
    rows : DataFrame
        Those of `ragnb.traces.Claims`.
    passages : list of list of str
        The texts in which each claim was looked for.
    client, store, lang, progress
        As for `ragnb.label_claims`.

    Returns
    -------
    DataFrame
        With ``decided_by, support, support__reason``. A claim whose reply is lost or cannot be read is undecided.
    """
    has_texts = np.array([bool(of_claim) for of_claim in passages], dtype=bool)
    places = np.flatnonzero(_open(rows) & has_texts)  # of the claims that the judge is asked about
    decided = rows.assign(decided_by="wording", **{SUPPORT: np.nan, f"{SUPPORT}__reason": None})
    if not len(places):
        return decided
    say = texts.load(lang)
    cases = pd.DataFrame(
        {
            "sample_id": [str(place) for place in places],
            "question": say("claims.question"),
            "answer": rows["claim"].to_numpy()[places],
            "retrieved_contexts": [passages[place] for place in places],
        }
    )
    judged = judge(
        cases,
        client=client,
        rubric=_rubric(lang),
        store=store,
        name="claims",
        lang=lang,
        probes=False,
        progress=progress,
    )
    judgements = judged.set_index("sample_id").reindex(cases["sample_id"])
    scores = judgements[SUPPORT].to_numpy(float)
    verdicts = decided["verdict"].to_numpy(dtype=object).copy()
    # A missing score is NaN, which is no key: the claim stays undecided.
    verdicts[places] = [_VERDICTS.get(score, "undecided") for score in scores]
    decided_by = decided["decided_by"].to_numpy(dtype=object).copy()
    decided_by[places] = "judge"
    support = np.full(len(rows), np.nan)
    support[places] = scores
    reasons = np.full(len(rows), None, dtype=object)
    reasons[places] = judgements["reason"]
    decided = decided.assign(
        verdict=verdicts,
        decided_by=decided_by,
        **{SUPPORT: support, f"{SUPPORT}__reason": reasons},
    )
    decided.attrs["judge"] = judged.about
    return decided


def _open(rows: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which claims are found in part, in another script, or in other words without a missing figure."""
    is_undecided = rows["verdict"].isin(["partly", "undecided"])
    # Of a claim without figures their share is nan, which is not below 1.
    has_missing_figure = rows["figures"] < 1
    is_in_other_words = (rows["verdict"] == "not found") & ~has_missing_figure
    return (is_undecided | is_in_other_words).to_numpy(dtype=bool)


def _rubric(lang: str) -> Rubric:
    say = texts.load(lang)
    bands = {str(score): say(f"claims.band_{score}") for score in (3, 2, 1)}
    dimension = Dimension(name=SUPPORT, description=say("claims.support"), bands=bands)
    return Rubric(
        low=1,
        high=3,
        dimensions=(dimension,),
        passing=Gate("passing", SUPPORT, ">=", 3.0),
        decimals=False,
    )
