"""Traces drawn for people to read, with the chance of each."""

from __future__ import annotations

import hashlib
from typing import Any, cast

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, did_you_mean
from ragnb.readers.executors import mapped, on_spark
from ragnb.traces import columns
from ragnb.traces.matching import Frame
from ragnb.weights import (
    column_names,
)


def sample_traces(
    traces: Frame, *, share: float = 0.01, key: str = "sample_id", salt: str = ""
) -> Frame:
    """Return the rows whose key hashes below a share: the same rows in every order, file and chunk.

    A larger share keeps the rows of a smaller one. All rows of one key stay together or leave together.

    Parameters
    ----------
    traces : DataFrame
        Of pandas, Polars, PyArrow, DuckDB or PySpark.
    share : float in [0, 1]
        The part of the keys to keep, in expectation.
    key : str
        What is hashed, as text. A row without one is hashed by its ``question``; a row without either is left
        out, except under a share of 1.
    salt : str
        Another salt draws another sample.

    Returns
    -------
    DataFrame
        The kept rows, in their order, of the caller's engine.

    Raises
    ------
    RagnbError
        For a share outside [0, 1], and where neither the key nor ``question`` is a column.

    Notes
    -----
    A key is kept when the first 8 bytes of BLAKE2b of its UTF-8 text, personalised by the salt's own hash, lie
    below share · 2⁶⁴ as a big-endian number.

    Examples
    --------
    >>> traces = pd.DataFrame({"sample_id": [str(i) for i in range(1000)], "answer": "x"})
    >>> len(sample_traces(traces, share=0.1))
    105
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise RagnbError(f"share={share!r} must lie between 0 and 1, such as 0.01 for one percent")
    have = column_names(traces)
    if key not in have and "question" not in have:
        raise RagnbError(f"key={key!r} is not a column; {did_you_mean(key, have)}")
    # Hashed, as `person` of BLAKE2b takes 16 bytes at most.
    person = hashlib.blake2b(salt.encode("utf-8"), digest_size=16).digest()
    threshold = round(share * (1 << 64))

    def is_kept(name: str | None) -> bool:
        if name is None:
            return share == 1
        digest = hashlib.blake2b(name.encode("utf-8"), digest_size=8, person=person).digest()
        return int.from_bytes(digest, "big") < threshold

    def sampled(frame: Any) -> Any:
        ids = columns.ids(frame, key)
        questions = columns.texts(frame, "question")
        names = ids.zip_with(ids.is_not_null(), questions)
        kept = np.array([is_kept(name) for name in names], dtype=bool)
        if isinstance(frame, pd.DataFrame):
            return frame[kept]
        return frame.filter(kept)

    if on_spark(traces):
        return cast(Frame, mapped(traces, sampled))
    return cast(Frame, columns.as_brought(sampled(columns.workable(traces)), traces))
