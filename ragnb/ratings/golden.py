"""The golden set: three hard questions that every judge must get right, as a quick check before a calibration.

Nine numbers prove nothing about a judge; one of them off by more than a point is reason enough to mend its prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, did_you_mean, not_a_frame
from ragnb.schema import Rubric
from ragnb.stats import within


def golden_template(*, lang: str = "en", dimensions: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the empty sheet of a golden set: three documents, a hard question to each, a row a dimension.

    Parameters
    ----------
    lang : {"en", "zh"}
        The language of the hints.
    dimensions : sequence of str, optional
        By default those of `Rubric`.

    Returns
    -------
    DataFrame
        ``item_id, hint`` (what makes a question hard: a figure among others, two passages, no answer in the
        document), ``doc_name, question, answer, dimension`` (of the rubric), ``judge, human, comment``; what is to
        be filled in is empty.

    Examples
    --------
    >>> golden_template()[["item_id", "dimension"]].shape, golden_template()["item_id"].nunique()
    ((9, 2), 3)
    """
    rows = [
        {"item_id": f"G{i}", "hint": texts.entry(lang, f"golden.{kind}"), "doc_name": None, "question": None,
         "answer": None, "dimension": dimension, "judge": None, "human": None, "comment": None}
        for i, kind in enumerate(("figure", "two_passages", "not_there"), 1)
        for dimension in dimensions or [one.name for one in Rubric().dimensions]
    ]  # fmt: skip
    return pd.DataFrame(rows, dtype=object)


def check_golden(
    ratings: pd.DataFrame, *, judge: str = "judge", human: str = "human", tolerance: float = 1.0
) -> pd.DataFrame:
    """Say of every item of a golden set whether judge and people lie within the tolerance.

    Parameters
    ----------
    ratings : DataFrame
        As `read_ratings` returns it; the scores of several raters are averaged.
    judge, human : str
        The columns of the scores.
    tolerance : float
        In points of the scale; 1e-9 is added.

    Returns
    -------
    DataFrame
        ``item_id, dimension, judge, human, difference`` (judge − human) and ``within``: nullable, missing where
        a score is missing. All lie within the tolerance when ``within.all(skipna=False)`` is True.

    Raises
    ------
    RagnbError
        For a column that is not there.

    Examples
    --------
    >>> golden = pd.DataFrame({"item_id": ["G1", "G2"], "judge": [9.0, 6.0], "human": [8.0, 4.0]})
    >>> check_golden(golden)["within"].tolist()
    [True, False]
    """
    if not isinstance(ratings, pd.DataFrame):
        raise not_a_frame(ratings, "rn.read_ratings")
    for name in (judge, human):
        if name not in ratings:
            raise RagnbError(f"column {name!r} is not there; {did_you_mean(name, [str(c) for c in ratings])}")
    keys = [c for c in ("item_id", "dimension", "system") if c in ratings]
    frame = ratings.groupby(keys, sort=False, dropna=False)[[judge, human]].mean().reset_index()
    flags = within(frame[judge].to_numpy(float), frame[human].to_numpy(float), tolerance)
    frame["difference"] = frame[judge] - frame[human]
    frame["within"] = pd.Series(flags == 1, dtype="boolean").mask(np.isnan(flags))
    return frame.rename(columns={judge: "judge", human: "human"})
