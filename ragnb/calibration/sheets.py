"""The sheet that people fill in, and its key file, so that they do not see what the judge said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb.calibration.labels import SHOWN, reading_of_ratings
from ragnb.calibration.rating_table import KEYS
from ragnb.calibration.ratings import PROBABILITY
from ragnb.errors import RagnbError, listing, need_columns
from ragnb.files import write_whole
from ragnb.readers import Reading, to_csv_text

_BOM = "\ufeff"  # without it a spreadsheet shows Chinese as rubbish


def write_labels(
    drawn: pd.DataFrame, path: str | PathLike[str], *, dimensions: Sequence[str] | None = None
) -> tuple[Path, Path]:
    """Write the sheet that raters fill in, and apart from it the key with the judge's scores.

    Parameters
    ----------
    drawn : DataFrame
        From `draw_labels`.
    path : path
        The raters' sheet, a ``.csv``: what they read, an empty column a dimension, ``rater`` and ``comment``. It
        holds neither the judge's scores nor the system, and opens in a spreadsheet with Chinese intact.
    dimensions : sequence of str, optional
        The columns to rate, of a table that no longer says them itself: a drawn one that was merged or read again.

    Returns
    -------
    (Path, Path)
        The sheet, and ``<name>.judge.csv`` beside it: ``item_id, sample_id, system, cluster, band,
        inclusion_probability`` and the judge's scores. Raters do not get it; ``read_labels(sheet, key)`` joins
        the two.

    Raises
    ------
    RagnbError
        Where a file of either name is there already: it may hold ratings. Where nothing says which columns are
        dimensions.

    Examples
    --------
    >>> import tempfile
    >>> from ragnb.calibration import draw_labels
    >>> scores = pd.DataFrame({"sample_id": ["a"], "accuracy": [9.0], "answer": ["w"]})
    >>> sheet, key = write_labels(draw_labels(scores, n=1), Path(tempfile.mkdtemp()) / "labels.csv")
    >>> print(sheet.read_text(encoding="utf-8-sig"), key.name, end="")
    item_id,answer,accuracy,rater,comment
    L001,w,,,
     labels.judge.csv
    """
    sheet = Path(path)
    names = [*(dimensions or drawn.attrs.get("dimensions", ()))]
    if not names:
        numbers = drawn.select_dtypes("number").columns.drop(PROBABILITY, errors="ignore")
        raise RagnbError(
            "the drawn table no longer says which of its columns people rate; name them: dimensions=[…] "
            f"(columns of numbers: {listing(numbers)})"
        )
    need_columns(drawn, names)
    key = sheet.with_name(f"{sheet.stem}.judge.csv")
    have = [name for name in SHOWN if name in drawn]
    # Empty columns to fill in; those of the dimensions take the place of the judge's scores.
    empty = dict.fromkeys([*names, "rater", "comment"], None)
    shown = drawn[["item_id", *have]].assign(**empty)
    if "retrieved_contexts" in shown:
        shown["retrieved_contexts"] = shown["retrieved_contexts"].map(_numbered)
    # Without systems `draw_labels` leaves the column empty.
    systems = ["system"] if drawn["system"].any() else []
    hidden = drawn[["item_id", "sample_id", *systems, "cluster", "band", PROBABILITY, *names]]
    write_new({key: hidden, sheet: shown})
    return sheet, key


def write_new(sheets: Mapping[Path, pd.DataFrame]) -> None:
    """Write sheets that spreadsheets can open, none of them over a file that is there."""
    # Both are looked for before the first is written, so that no half of a pair is left.
    for file in sheets:
        if file.exists():
            raise RagnbError(
                f"{file}: already exists and may contain ratings; choose another file, or move it"
            )
    for file, frame in sheets.items():
        write_whole(file, _BOM + to_csv_text(frame))


def _numbered(contexts: Any) -> Any:
    """Write passages as a person reads them."""
    if not isinstance(contexts, list | tuple | np.ndarray):
        return contexts
    return "\n\n".join(f"[{i}] {text}" for i, text in enumerate(contexts, 1))


def reading_of_rated(file: str | PathLike[str], **options: Any) -> Reading:
    """Read ratings as `read_ratings` does; a drawn sheet together with the key that was written beside it.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = write_whole(folder / "ann.csv", "item_id,accuracy\\nL001,8\\n")
    >>> _ = write_whole(folder / "ann.judge.csv", "item_id,system,accuracy\\nL001,new,9\\n")
    >>> reading_of_rated(folder / "ann.csv").frame[["system", "judge", "human"]].values.tolist()
    [['new', 9.0, 8.0]]
    """
    key = Path(file).with_name(f"{Path(file).stem}.judge.csv")
    if options.get("judged") is None and key.is_file():
        options["judged"] = key
    return reading_of_ratings(file, **options)


def read_labels(
    sheets: str | PathLike[str] | Iterable[str | PathLike[str]],
    key: str | PathLike[str] | None,
    **options: Any,
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
    return reading_of_labels(sheets, key, **options).with_attrs()


def reading_of_labels(
    sheets: str | PathLike[str] | Iterable[str | PathLike[str]],
    key: str | PathLike[str] | None,
    **options: Any,
) -> Reading:
    """Read as `read_labels` does; several sheets have the origin of the first."""
    if isinstance(sheets, str | PathLike):
        paths = [sheets]
    else:
        paths = list(sheets)
    readings = [reading_of_ratings(path, judged=key, **options) for path in paths]
    if len(readings) == 1:
        return readings[0]
    frames = [reading.frame for reading in readings]
    for path, frame in zip(paths, frames, strict=True):
        # The reader leaves out a column that nobody filled in; of several sheets each is one person's.
        if "rater" not in frame:
            after_human = list(frame).index("human") + 1
            frame.insert(after_human, "rater", Path(path).stem)
    whole = pd.concat(frames, ignore_index=True)
    # By columns that only some sheets have, their rows would differ from the others in any case.
    shared_keys = [name for name in (*KEYS, "rater") if all(name in frame for frame in frames)]
    is_second = whole.duplicated(shared_keys)
    if is_second.any():
        names = listing(whole.loc[is_second, "rater"].unique())
        raise RagnbError(
            f"{listing(paths)}: rater {names} rated an item twice; fill in the column 'rater'"
        )
    lossy = [row for reading in readings for row in reading.lossy]
    return Reading(whole, readings[0].origin | {"rows": len(whole)}, lossy)
