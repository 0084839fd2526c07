"""Sampling of answers to annotate, the annotation sheet without judge scores, and the golden set.

The judge's scores and the systems are in a separate key file, so that annotators do not see them. A golden set is
three hard questions that every judge must get right, a quick check before a calibration: its nine numbers prove
nothing about a judge, but one of them off by more than a point is reason enough to improve its prompt.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.calibration.card import PROBABILITY
from ragnb.calibration.reading import KEYS, read_ratings
from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, listing, need_columns, need_whole, not_a_frame
from ragnb.files import write_whole
from ragnb.readers import to_csv_text
from ragnb.schema import Rubric
from ragnb.stats import within

BANDS = ("low", "middle", "high")
SHOWN = ("question", "ground_truth_answer", "answer", "retrieved_contexts")
_BOM = "\ufeff"  # without it a spreadsheet shows Chinese as rubbish


def draw_labels(
    judged: pd.DataFrame, *, n: int = 120, dimensions: Sequence[str] | None = None, cluster: str = "cluster",
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Draw the answers that people should rate, each with the same chance.

    Parameters
    ----------
    judged : DataFrame
        One row per answer with one column per dimension, as `judge` gives it; or one row per answer and dimension,
        as `read_judged` gives it. ``system`` and the cluster (or ``doc_name``) are used where they are there.
    n : int
        How many answers.
    dimensions : sequence of str, optional
        The columns (or values of ``dimension``) to rate; by default those there of the rubric's.
    cluster : str
        The column of answers that resemble each other; ``doc_name`` where it is absent.
    seed : int
        The same seed draws the same answers, in whatever order the rows come.

    Returns
    -------
    DataFrame
        One row per answer, in the order in which raters see them: ``item_id`` (new, so that it tells a rater
        nothing), ``sample_id, system, cluster, band`` (``low, middle, high``: thirds of the range of the judge's
        mean over the dimensions), what raters read, the judge's score by dimension, and the
        ``inclusion_probability``, n/N, by which estimates are weighted.
        ``attrs["dimensions"]`` names those; ``attrs["population"]`` counts what was drawn from.

    Raises
    ------
    RagnbError
        Where no dimension is known, or an answer appears more than once.

    Warns
    -----
    RagnbWarning
        Where there are fewer answers than `n`, or answers without a score are left out.

    Notes
    -----
    Systematic sampling with a random start from the list ordered by system, band and (in random order) cluster:
    every answer has the chance n/N, so a share over the labels is one of all answers; each system, band and
    cluster gets its part of the labels, to the nearest one or two (Cochran, Sampling Techniques, 1977, ch. 8).
    Rate all of them: answers left out, or picked, by their human score make every estimate wrong without a trace.

    Examples
    --------
    >>> scores = pd.DataFrame({"sample_id": list("abcd"), "accuracy": [9.0, 2.0, 8.0, 3.0]})
    >>> drawn = draw_labels(scores, n=2, seed=1)
    >>> sorted(drawn["band"])
    ['high', 'low']
    """
    if not isinstance(judged, pd.DataFrame):
        raise not_a_frame(judged, "ragnb.calibration.read_judged")
    items, names = _items(judged, dimensions, cluster)
    mean = items[names].mean(axis=1)
    unscored = int(mean.isna().sum())
    if unscored:
        warnings.warn(f"{unscored} answers without a judge score are excluded", RagnbWarning, stacklevel=2)
    items, mean = items[mean.notna()], mean[mean.notna()]
    need_whole("n", n)
    if n > len(items):
        text = f"n={n}, but there are only {len(items)} judged answers; all are drawn"
        warnings.warn(text, RagnbWarning, stacklevel=2)
    third = np.clip(np.ceil(3 * (mean - mean.min()) / (mean.max() - mean.min() or 1)) - 1, 0, 2).astype(int)
    rng = np.random.default_rng(seed)
    place = {name: rank for rank, name in enumerate(rng.permutation(sorted(items["cluster"].unique())))}
    system, size = pd.factorize(items["system"], sort=True)[0], min(n, len(items))
    order = np.lexsort((rng.random(len(items)), items["cluster"].map(place), third, system))
    steps = ((np.arange(size) + rng.random()) * len(items) / max(size, 1)).astype(int)
    items = items.assign(band=np.array(BANDS, dtype=object)[third])
    drawn: pd.DataFrame = items.iloc[order[np.minimum(steps, len(items) - 1)]]
    drawn = drawn.assign(**{PROBABILITY: size / len(items)}).iloc[rng.permutation(size)].reset_index(drop=True)
    width = max(3, len(str(len(drawn))))
    drawn.insert(0, "item_id", [f"L{i + 1:0{width}d}" for i in range(len(drawn))])
    drawn.attrs = {"dimensions": names, "population": len(items), "seed": seed}
    return drawn


def _items(frame: pd.DataFrame, dimensions: Sequence[str] | None, cluster: str) -> tuple[pd.DataFrame, list[str]]:
    """Return one row per answer in an order that the caller's does not change, and the dimensions."""
    frame = frame.rename(columns={"item_id": "sample_id"} if "sample_id" not in frame else {})
    there, long = [str(c) for c in frame], "judge" in frame
    if long:
        frame, there = _spread(frame)
    rubric = there if long else [d.name for d in Rubric().dimensions if d.name in frame]
    names = rubric if dimensions is None else list(dimensions)
    missing = next((name for name in names if name not in there), None)
    if missing or not names or "sample_id" not in frame:
        what = f"dimension {missing!r} does not exist" if missing else "there is no judge score to sample by"
        what = what if "sample_id" in frame else "no column says which answer a row is"
        raise RagnbError(f"{what}; {did_you_mean(missing or 'judge', there)}")
    group = frame.get(cluster, frame.get("doc_name", frame["sample_id"]))
    frame = frame.assign(
        system=frame["system"].astype(str) if "system" in frame else "",
        cluster=group.where(group.notna(), frame["sample_id"]).astype(str),
    )
    _once(frame, ["sample_id", "system"])
    first = ["sample_id", "system", "cluster", *(c for c in SHOWN if c in frame)]
    return frame.sort_values(["sample_id", "system"])[[*first, *names]].reset_index(drop=True), names


def _spread(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Pivot one row per dimension (and rater) into one row per answer."""
    if "dimension" not in frame:
        frame = frame.assign(dimension="overall")
    keys = [c for c in ("sample_id", "system") if c in frame]
    if "rater" in frame:
        frame = frame.drop_duplicates([*keys, "dimension"])
    _once(frame, [*keys, "dimension"])
    names = [str(name) for name in frame["dimension"].unique()]
    wide = frame.set_index([*keys, "dimension"])["judge"].unstack("dimension").reset_index()
    about = frame.drop(columns=["dimension", "judge", "human", "rater"], errors="ignore").drop_duplicates(keys)
    return about.merge(wide.rename_axis(columns=None), on=keys), names


def _once(frame: pd.DataFrame, keys: list[str]) -> None:
    again = frame.duplicated(keys)
    if again.any():
        raise RagnbError(
            f"answer {frame.loc[again, 'sample_id'].iloc[0]!r} appears more than once; keep one row per "
            "answer, or name the column 'system' that distinguishes them"
        )


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
    >>> from ragnb.calibration import draw_labels
    >>> scores = pd.DataFrame({"sample_id": ["a"], "accuracy": [9.0], "answer": ["w"]})
    >>> sheet, key = write_labels(draw_labels(scores, n=1), Path(tempfile.mkdtemp()) / "labels.csv")
    >>> print(sheet.read_text(encoding="utf-8-sig"), key.name, end="")
    item_id,answer,accuracy,rater,comment
    L001,w,,,
     labels.judge.csv
    """
    sheet, names = Path(path), drawn.attrs["dimensions"]
    key = sheet.with_name(f"{sheet.stem}.judge.csv")
    for file in (sheet, key):
        _refuse_existing(file)
    shown = drawn[["item_id", *(c for c in SHOWN if c in drawn)]].assign(
        **dict.fromkeys([*names, "rater", "comment"], None)
    )
    if "retrieved_contexts" in shown:
        shown["retrieved_contexts"] = shown["retrieved_contexts"].map(_numbered)
    systems = ["system"] if drawn["system"].any() else []
    hidden = drawn[["item_id", "sample_id", *systems, "cluster", "band", PROBABILITY, *names]]
    write_whole(key, _BOM + to_csv_text(hidden))
    return write_whole(sheet, _BOM + to_csv_text(shown)), key


def write_golden(template: pd.DataFrame, path: str | PathLike[str]) -> Path:
    """Write a golden set to fill in, as `write_labels` writes a sheet; a file that is there is not written over.

    Examples
    --------
    >>> import tempfile
    >>> from ragnb.calibration import golden_template
    >>> write_golden(golden_template(), Path(tempfile.mkdtemp()) / "golden.csv").name
    'golden.csv'
    """
    _refuse_existing(Path(path))
    return write_whole(Path(path), _BOM + to_csv_text(template))


def _refuse_existing(file: Path) -> None:
    if file.exists():
        raise RagnbError(f"{file}: already exists and may contain ratings; choose another file, or move it")


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
    whole = pd.concat(frames, ignore_index=True)
    again = whole.duplicated([name for name in (*KEYS, "rater") if all(name in frame for frame in frames)])
    if again.any():
        names = listing(whole.loc[again, "rater"].unique())
        raise RagnbError(f"{listing(paths)}: rater {names} rated an item twice; fill in the column 'rater'")
    lossy = [row for frame in frames for row in frame.attrs["lossy"]]
    whole.attrs = {"lossy": lossy, "source": {**frames[0].attrs["source"], "rows": len(whole)}}
    return whole


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
    columns = ("item_id", "hint", "doc_name", "question", "answer", "dimension", "judge", "human", "comment")
    rows = [
        {"item_id": f"G{i}", "hint": texts.entry(lang, f"golden.{kind}"), "dimension": dimension}
        for i, kind in enumerate(("figure", "two_passages", "not_there"), 1)
        for dimension in dimensions or [one.name for one in Rubric().dimensions]
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
    if not isinstance(ratings, pd.DataFrame):
        raise not_a_frame(ratings, "rn.read_ratings")
    need_columns(ratings, ["judge", "human"])
    keys = [name for name in KEYS if name in ratings]
    frame = ratings.groupby(keys, sort=False, dropna=False)[["judge", "human"]].mean().reset_index()
    frame["difference"] = frame["judge"] - frame["human"]
    flags = within(frame["judge"], frame["human"], tolerance)
    return frame.assign(within=pd.Series(flags == 1, dtype="boolean").mask(np.isnan(flags)))
