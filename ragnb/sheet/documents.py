"""The means by document of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from ragnb import weights
from ragnb.weights import Moments, Weighing


def stacked(parts: Mapping[Any, Any]) -> Any:
    """Return the frames of several systems as one, with the column ``system``; that of a single one as it is.

    Examples
    --------
    >>> stacked({"a": pd.DataFrame({"n": [1]}), "b": pd.DataFrame({"n": [2]})}).to_dict("list")
    {'system': ['a', 'b'], 'n': [1, 2]}
    """
    named = {name: frame for name, frame in parts.items() if frame is not None}
    if len(parts) == 1 or not named:
        return next(iter(named.values()), None)
    whole = pd.concat(named.values(), ignore_index=True)
    names = pd.Index([*named], dtype=object).repeat([len(frame) for frame in named.values()])
    whole.insert(0, "system", names)
    return whole


def document_means(found: Moments, weighing: Weighing, score: float) -> pd.DataFrame | None:
    """Return the means by document, without rows that have none; of totals what they weigh and how they pull.

    Parameters
    ----------
    found : Moments
        By document.
    weighing : Weighing
        How the whole is weighed; within a document its weight says nothing.
    score : float
        The weighted score of all documents.
    """
    means = replace(weighing, doc_weights=None).means(found)
    named = means.dropna(subset=[found.by], ignore_index=True)
    if named.empty:
        return None
    named.columns = pd.Index(["document", *named.columns[1:]])
    weighed = named["n"].astype(float)
    if weighing.doc_weights:
        by_name = {weights.nfc(name): weight for name, weight in weighing.doc_weights.items()}
        weight_of = {name: by_name.get(weights.nfc(name), 1.0) for name in found.groups}
        weighed *= named["document"].map(weight_of)
    total = named["role"] == "total"
    named["share"] = (weighed / weighed[total].sum()).where(total)
    named["pull"] = named["share"] * (named["value"] - score)
    return named
