"""What the tests of the readers share: small files, what a frame holds, what is listed as lost, refusals."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragnb.errors import RagnbError


def write(folder: Path, name: str, data: Any, encoding: str = "utf-8") -> Path:
    """Write bytes, a text or anything else as JSON; a name that ends in ``.gz`` is packed."""
    text = data if isinstance(data, str | bytes) else json.dumps(data, ensure_ascii=False)
    written = text if isinstance(text, bytes) else text.encode(encoding)
    (folder / name).write_bytes(gzip.compress(written) if name.endswith(".gz") else written)
    return folder / name


def csv_text(header: list[str], *rows: list[Any], separator: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def rows(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Return the cells of some columns; a missing one is None."""
    cells = frame[list(columns)].astype(object).itertuples(index=False)
    return [
        tuple(None if np.ndim(cell) == 0 and pd.isna(cell) else cell for cell in row)
        for row in cells
    ]


def told(frame: pd.DataFrame, *what: str) -> list[tuple[str, str | None, int]]:
    """Return what is listed as lost or changed, of all kinds or of some."""
    listed = frame.attrs["lossy"]
    return [
        (row["what"], row["column"], row["n"]) for row in listed if not what or row["what"] in what
    ]


def refused(call: Callable[[], object], *words: str) -> str:
    """Return the message with which a call is refused; it has every one of the words."""
    with pytest.raises(RagnbError) as caught:
        call()
    for word in words:
        assert word in str(caught.value), f"{word!r} not in: {caught.value}"
    return str(caught.value)
