"""The golden set: three hard questions that every judge must get right, a quick check before a calibration.

Its nine numbers prove nothing about a judge, but one of them off by more than a point is reason enough to improve
its prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.calibration.labels import open_ratings, without_people
from ragnb.calibration.rating_table import KEYS
from ragnb.calibration.ratings import Names, need_pandas
from ragnb.calibration.sheets import write_new
from ragnb.calibration.tidying import finish, tidy
from ragnb.errors import need_columns
from ragnb.readers.formats import Source
from ragnb.schema import Rubric
from ragnb.stats import within


def read_golden(source: Source, *, human: Names | None = None, **how: Any) -> pd.DataFrame:
    """Read a golden set as `read_ratings` does; an unfilled one has only missing scores.

    Examples
    --------
    >>> read_golden([{"item_id": "G1", "judge": None, "human": None}])["human"].tolist()
    [nan]
    """
    table = open_ratings(source, how.pop("judge", None), human, **how)
    frame = tidy(table)
    if "human" not in frame:
        raise without_people(table, frame, both=False)
    return finish(frame, table).with_attrs()


def write_golden(template: pd.DataFrame, path: str | PathLike[str]) -> Path:
    """Write a golden set to fill in, as `write_labels` writes a sheet; a file that is there is not written over.

    Examples
    --------
    >>> import tempfile
    >>> from ragnb.calibration import golden_template
    >>> write_golden(golden_template(), Path(tempfile.mkdtemp()) / "golden.csv").name
    'golden.csv'
    """
    write_new({Path(path): template})
    return Path(path)


def golden_template(*, lang: str = "en", dimensions: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the empty sheet of a golden set: three documents, a hard question to each, one row per dimension.

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
    columns = (
        "item_id",
        "hint",
        "doc_name",
        "question",
        "answer",
        "dimension",
        "judge",
        "human",
        "comment",
    )
    names = dimensions or [dimension.name for dimension in Rubric().dimensions]
    rows = [
        {"item_id": f"G{i}", "hint": texts.entry(lang, f"golden.{kind}"), "dimension": name}
        for i, kind in enumerate(("figure", "two_passages", "not_there"), 1)
        for name in names
    ]
    return pd.DataFrame(rows, columns=columns, dtype=object).replace({np.nan: None})


def check_golden(ratings: pd.DataFrame, *, tolerance: float = 1.0) -> pd.DataFrame:
    """Check for every item of a golden set whether judge and human agree within the tolerance.

    Parameters
    ----------
    ratings : DataFrame
        As `read_ratings` returns it; the scores of several raters are averaged.
    tolerance : float
        In points of the scale; 1e-9 is added.

    Returns
    -------
    DataFrame
        ``item_id, dimension, judge, human, difference`` (judge − human) and ``within``: nullable, missing where
        a score is missing. All are within the tolerance when ``within.all(skipna=False)`` is True.

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
    need_pandas(ratings, "rn.read_ratings")
    need_columns(ratings, ["judge", "human"])
    keys = [name for name in KEYS if name in ratings]
    frame = ratings.groupby(keys, sort=False, dropna=False)[["judge", "human"]].mean().reset_index()
    frame["difference"] = frame["judge"] - frame["human"]
    flags = within(frame["judge"], frame["human"], tolerance)  # 1, 0, or nan without both scores
    is_within = pd.Series(flags == 1, dtype="boolean").mask(np.isnan(flags))
    return frame.assign(within=is_within)
