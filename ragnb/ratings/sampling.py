"""Which answers people should rate: drawn by the judge's score and by system, spread over clusters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, not_a_frame
from ragnb.ratings.tables import CHANCE
from ragnb.schema import Rubric

BANDS = ("low", "middle", "high")
SHOWN = ("question", "ground_truth_answer", "answer", "retrieved_contexts")


def draw_labels(
    judged: pd.DataFrame,
    *,
    n: int = 120,
    dimensions: Sequence[str] | None = None,
    judge: str = "judge",
    cluster: str = "cluster",
    seed: int = 0,
) -> pd.DataFrame:
    """Draw the answers that people should rate, each with the same chance.

    Parameters
    ----------
    judged : DataFrame
        One row an answer with one column a dimension, as `judge` gives it; or one row an answer and dimension,
        as `read_judged` gives it. ``system`` and the cluster (or ``doc_name``) are used where they are there.
    n : int
        How many answers.
    dimensions : sequence of str, optional
        The columns (or values of ``dimension``) to rate; by default those there of the rubric's.
    judge : str
        The column of the judge's score where a row is an answer and a dimension.
    cluster : str
        The column of answers that resemble each other; ``doc_name`` where it is absent.
    seed : int
        The same seed draws the same answers, in whatever order the rows come.

    Returns
    -------
    DataFrame
        One row an answer, in the order in which raters see them: ``item_id`` (new, so that it tells a rater
        nothing), ``sample_id, system, cluster, band`` (``low, middle, high``: thirds of the range of the judge's
        mean over the dimensions), what raters read, the judge's score by dimension, and the
        ``inclusion_probability``, n/N, by which estimates are weighted.
        ``attrs["dimensions"]`` names those; ``attrs["population"]`` counts what was drawn from.

    Raises
    ------
    RagnbError
        Where no dimension is known, or an answer stands there more than once.

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
        raise not_a_frame(judged, "ragnb.ratings.read_judged")
    items, names = _items(judged, dimensions, judge, cluster)
    mean = items[names].mean(axis=1)
    unscored = int(mean.isna().sum())
    if unscored:
        warnings.warn(f"{unscored} answers without a judge's score are left out", RagnbWarning, stacklevel=2)
    items, mean = items[mean.notna()], mean[mean.notna()]
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise RagnbError(f"n={n!r} must be a whole number of answers, 1 or more")
    if n > len(items):
        text = f"n={n}, but there are only {len(items)} judged answers; all are drawn"
        warnings.warn(text, RagnbWarning, stacklevel=2)
    span = float(mean.max() - mean.min()) if len(mean) else 0.0
    thirds = np.clip(np.ceil(3 * (mean - mean.min()) / span) - 1, 0, 2).astype(int) if span else mean * 0
    items = items.assign(band=[BANDS[int(third)] for third in thirds])
    rng = np.random.default_rng(seed)
    drawn = items.iloc[_systematic(items, min(n, len(items)), rng)]
    drawn = drawn.assign(**{CHANCE: len(drawn) / len(items)})
    drawn = drawn.iloc[rng.permutation(len(drawn))].reset_index(drop=True)
    width = max(3, len(str(len(drawn))))
    drawn.insert(0, "item_id", [f"L{i + 1:0{width}d}" for i in range(len(drawn))])
    drawn.attrs = {"dimensions": names, "population": len(items), "seed": seed}
    return drawn


def _systematic(items: pd.DataFrame, n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return n positions with equal chances, each group of neighbours in the ordered list getting its part."""
    place = {name: rank for rank, name in enumerate(rng.permutation(sorted(items["cluster"].unique())))}
    at_random, cluster = rng.random(len(items)), items["cluster"].map(place).to_numpy()
    band = items["band"].map(BANDS.index).to_numpy()
    order = np.lexsort((at_random, cluster, band, pd.factorize(items["system"], sort=True)[0]))
    steps = (np.arange(n) + rng.random()) * len(items) / max(n, 1)
    chosen: np.ndarray[Any, Any] = order[np.minimum(steps.astype(int), len(items) - 1)]
    return chosen


def _items(
    judged: pd.DataFrame, dimensions: Sequence[str] | None, judge: str, cluster: str
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row an answer in an order that the caller's does not change, and the dimensions."""
    frame = judged.rename(columns={"item_id": "sample_id"} if "sample_id" not in judged else {})
    if judge in frame:
        frame, there = _spread(frame, judge)
    else:
        rubric = [d.name for d in Rubric().dimensions]
        there = [c for c in (dimensions or rubric) if c in frame]
    names = list(there if dimensions is None else dimensions)
    missing = [name for name in names if name not in there]
    if missing or not names or "sample_id" not in frame:
        what = f"dimension {missing[0]!r} is not there" if missing else "there is no judge's score to draw by"
        what = what if "sample_id" in frame else "no column says which answer a row is"
        choices = [str(c) for c in (there if judge in judged else judged.columns)]
        raise RagnbError(f"{what}; {did_you_mean(missing[0] if missing else judge, choices)}")
    group = frame.get(cluster, frame.get("doc_name", frame["sample_id"]))
    frame = frame.assign(
        system=frame["system"].astype(str) if "system" in frame else "",
        cluster=group.where(group.notna(), frame["sample_id"]).astype(str),
    )
    _once(frame, ["sample_id", "system"])
    first = ["sample_id", "system", "cluster", *(c for c in SHOWN if c in frame)]
    return frame.sort_values(["sample_id", "system"])[[*first, *names]].reset_index(drop=True), names


def _spread(frame: pd.DataFrame, judge: str) -> tuple[pd.DataFrame, list[str]]:
    """Turn one row a dimension (and rater) into one row an answer."""
    if "dimension" not in frame:
        frame = frame.assign(dimension="overall")
    keys = [c for c in ("sample_id", "system") if c in frame]
    if "rater" in frame:
        frame = frame.drop_duplicates([*keys, "dimension"])
    _once(frame, [*keys, "dimension"])
    names = [str(name) for name in frame["dimension"].unique()]
    wide = frame.set_index([*keys, "dimension"])[judge].unstack("dimension").reset_index()
    about = frame.drop(columns=["dimension", judge, "human", "rater"], errors="ignore").drop_duplicates(keys)
    return about.merge(wide.rename_axis(columns=None), on=keys), names


def _once(frame: pd.DataFrame, keys: list[str]) -> None:
    again = frame.duplicated(keys)
    if again.any():
        raise RagnbError(
            f"answer {frame.loc[again, 'sample_id'].iloc[0]!r} stands there more than once; keep one row an "
            "answer, or name the column 'system' that tells them apart"
        )
