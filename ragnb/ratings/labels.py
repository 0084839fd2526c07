"""The sheet that raters fill in, without what the judge said, and the way back.

The judge's scores and the systems lie apart in a key, so that nobody rates with them in view.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing
from ragnb.files import write_whole
from ragnb.ratings.reading import read_ratings
from ragnb.ratings.sampling import SHOWN
from ragnb.ratings.tables import CHANCE
from ragnb.readers import to_csv_text

_BOM = "\ufeff"  # without it a spreadsheet shows Chinese as rubbish


def write_labels(drawn: pd.DataFrame, path: str | PathLike[str]) -> tuple[Path, Path]:
    """Write the sheet that raters fill in, and apart from it the key with the judge's scores.

    Parameters
    ----------
    drawn : DataFrame
        From `draw_labels`.
    path : path
        The raters' sheet, a ``.csv``: what they read, an empty column a dimension, ``rater`` and ``comment``. It
        holds neither the judge's scores nor the system, and opens in a spreadsheet with Chinese intact.

    Returns
    -------
    (Path, Path)
        The sheet, and ``<name>.judge.csv`` beside it: ``item_id, sample_id, system, cluster, band,
        inclusion_probability`` and the judge's scores. Raters do not get it; ``read_labels(sheet, key)`` joins
        the two.

    Raises
    ------
    RagnbError
        Where a file of either name is there already: it may hold ratings.

    Examples
    --------
    >>> import tempfile
    >>> from ragnb.ratings import draw_labels
    >>> scores = pd.DataFrame({"sample_id": ["a"], "accuracy": [9.0], "answer": ["w"]})
    >>> sheet, key = write_labels(draw_labels(scores, n=1), Path(tempfile.mkdtemp()) / "labels.csv")
    >>> print(sheet.read_text(encoding="utf-8-sig"), key.name, end="")
    item_id,answer,accuracy,rater,comment
    L001,w,,,
     labels.judge.csv
    """
    sheet = Path(path)
    key = sheet.with_name(f"{sheet.stem}.judge.csv")
    for file in (sheet, key):
        _refuse_existing(file)
    names = drawn.attrs["dimensions"]
    shown = drawn[["item_id", *(c for c in SHOWN if c in drawn)]].copy()
    if "retrieved_contexts" in shown:
        shown["retrieved_contexts"] = shown["retrieved_contexts"].map(_numbered)
    blank = shown.assign(**dict.fromkeys([*names, "rater", "comment"], None))
    hidden = drawn[["item_id", "sample_id", "system", "cluster", "band", CHANCE, *names]]
    if not hidden["system"].any():
        hidden = hidden.drop(columns="system")
    write_whole(key, _BOM + to_csv_text(hidden))
    return write_whole(sheet, _BOM + to_csv_text(blank)), key


def write_golden(template: pd.DataFrame, path: str | PathLike[str]) -> Path:
    """Write a golden set to fill in, as `write_labels` writes a sheet; a file that is there is not written over.

    Examples
    --------
    >>> import tempfile
    >>> from ragnb.ratings import golden_template
    >>> write_golden(golden_template(), Path(tempfile.mkdtemp()) / "golden.csv").name
    'golden.csv'
    """
    _refuse_existing(Path(path))
    return write_whole(Path(path), _BOM + to_csv_text(template))


def _refuse_existing(file: Path) -> None:
    if file.exists():
        raise RagnbError(f"{file}: is there already and may hold ratings; name another file, or move it away")


def _numbered(contexts: Any) -> Any:
    """Write passages as a person reads them."""
    if not isinstance(contexts, list | tuple | np.ndarray):
        return contexts
    return "\n\n".join(f"[{i}] {text}" for i, text in enumerate(contexts, 1))


def read_labels(
    sheets: str | PathLike[str] | Iterable[str | PathLike[str]], key: str | PathLike[str] | None, **options: Any
) -> pd.DataFrame:
    """Read filled-in sheets, one or one a rater, with the judge's scores of their key.

    Parameters
    ----------
    sheets : path or several
        Where the column ``rater`` is empty and there are several sheets, the name of the file is the rater's.
    key : path or None
        The file that `write_labels` left beside the sheet; None where the sheets hold the judge's scores.
    **options
        As `read_ratings` takes them, such as ``encoding="gb18030"``.

    Returns
    -------
    DataFrame
        As `read_ratings` returns.

    Raises
    ------
    RagnbError
        As `read_ratings`; and where two sheets are of one rater.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> files = {"ann.csv": "item_id,accuracy\\nL001,8\\n", "key.csv": "item_id,accuracy\\nL001,9\\n"}
    >>> paths = [write_whole(folder / name, text) for name, text in files.items()]
    >>> read_labels(*paths)
      item_id dimension  judge  human
    0    L001  accuracy    9.0    8.0
    """
    paths = [sheets] if isinstance(sheets, str | PathLike) else list(sheets)
    frames = [read_ratings(path, judged=key, **options) for path in paths]
    if len(frames) == 1:
        return frames[0]
    for path, frame in zip(paths, frames, strict=True):
        if "rater" not in frame:
            frame.insert(list(frame).index("human") + 1, "rater", Path(path).stem)
    keys = ["item_id", *(c for c in ("dimension", "system") if all(c in f for f in frames)), "rater"]
    whole = pd.concat(frames, ignore_index=True)
    again = whole.duplicated(keys)
    if again.any():
        names = listing(whole.loc[again, "rater"].unique())
        raise RagnbError(f"{listing(paths)}: rater {names} rated an item twice; fill in the column 'rater'")
    whole.attrs = {
        "lossy": [row for frame in frames for row in frame.attrs["lossy"]],
        "source": {**frames[0].attrs["source"], "rows": len(whole)},
    }
    return whole
