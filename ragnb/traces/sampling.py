"""A sample of traces that is the same whatever order or piece they come in."""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, did_you_mean
from ragnb.traces.columns import texts
from ragnb.traces.engines import workable
from ragnb.traces.join import ids_of

Frame = TypeVar("Frame")
_RANGE = 1 << 64


def sample_by_hash(traces: Frame, share: float = 0.01, *, key: str = "sample_id", salt: str = "") -> Frame:
    """Return the rows whose key hashes below a share: the same rows in every order, file and chunk.

    A larger share keeps the rows of a smaller one. All rows of one key stay together or leave together.

    Parameters
    ----------
    traces : DataFrame
        Of pandas or Polars.
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
    >>> len(sample_by_hash(traces, 0.1))
    105
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise RagnbError(f"share={share!r} must lie between 0 and 1, such as 0.01 for one percent")
    frame: Any = workable(traces)
    if key not in frame.columns and "question" not in frame.columns:
        raise RagnbError(f"key={key!r} is no column; {did_you_mean(key, [str(c) for c in frame.columns])}")
    ids, questions = ids_of(frame, key), texts(frame, "question")
    names = ids.zip_with(ids.is_not_null(), questions)
    start = hashlib.blake2b(digest_size=8, person=hashlib.blake2b(salt.encode("utf-8"), digest_size=16).digest())
    bar = round(share * _RANGE)
    known = {name: _place(start, name) < bar for name in names.drop_nulls().unique()}
    known[None] = share == 1
    kept = np.fromiter((known[name] for name in names.to_list()), dtype=bool, count=len(names))
    out: Any = frame[kept] if isinstance(frame, pd.DataFrame) else frame.filter(kept)
    return cast(Frame, out)


def _place(start: Any, name: str) -> int:
    digest = start.copy()
    digest.update(name.encode("utf-8"))
    return int.from_bytes(digest.digest(), "big")
