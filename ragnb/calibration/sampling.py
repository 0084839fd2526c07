"""Which answers people should rate: drawn over the scores of the judge, and over documents."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragnb.calibration.labels import BANDS, SHOWN
from ragnb.calibration.ratings import (
    PROBABILITY,
    need_pandas,
)
from ragnb.errors import (
    RagnbError,
    RagnbWarning,
    did_you_mean,
    need_whole,
)
from ragnb.schema import Rubric


def draw_labels(
    judged: pd.DataFrame,
    *,
    n: int = 120,
    dimensions: Sequence[str] | None = None,
    cluster: str = "cluster",
    seed: int = 0,
    pairs: bool = False,
) -> pd.DataFrame:
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
    pairs : bool
        Draw `n` questions that all systems answered, at random within each document in turn, and every system's
        answer to each: the ratings then decide `ragnb.compare`.

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
    need_pandas(judged, "ragnb.calibration.read_judged")
    items, names = _items(judged, dimensions, cluster)
    mean = items[names].mean(axis=1)
    if unscored := int(mean.isna().sum()):
        warnings.warn(
            f"{unscored} answers without a judge score are excluded", RagnbWarning, stacklevel=2
        )
    items = items[mean.notna()]
    mean = mean[mean.notna()]
    need_whole("n", n)
    if pairs:
        return _with_ids(*_drawn_pairs(items, mean, n, seed), names, seed)
    if n > len(items):
        text = f"n={n}, but there are only {len(items)} judged answers; all are drawn"
        warnings.warn(text, RagnbWarning, stacklevel=2)
    # Thirds of the judge's range: 0, 1, 2; all are 0 where it gives one score.
    range_of_scores = mean.max() - mean.min() or 1
    share = (mean - mean.min()) / range_of_scores
    third = np.clip(np.ceil(3 * share) - 1, 0, 2).astype(int)
    rng = np.random.default_rng(seed)
    place = {
        name: rank for rank, name in enumerate(rng.permutation(sorted(items["cluster"].unique())))
    }
    system = pd.factorize(items["system"], sort=True)[0]
    size = min(n, len(items))
    order = np.lexsort((rng.random(len(items)), items["cluster"].map(place), third, system))
    steps = ((np.arange(size) + rng.random()) * len(items) / max(size, 1)).astype(int)
    items = items.assign(band=np.array(BANDS, dtype=object)[third])
    drawn: pd.DataFrame = items.iloc[order[np.minimum(steps, len(items) - 1)]]
    drawn = drawn.assign(**{PROBABILITY: size / len(items)}).iloc[rng.permutation(size)]
    return _with_ids(drawn, len(items), names, seed)


def _drawn_pairs(
    items: pd.DataFrame, mean: pd.Series[float], n: int, seed: int
) -> tuple[pd.DataFrame, int]:
    """Return the answers of all systems to drawn questions in random order, and how many answers there were.

    Never by what the judge saw: of pairs picked where it sees a gain, people seem to see one, too.
    """
    systems = items["system"].nunique()
    if systems < 2:
        raise RagnbError(
            "pairs=True draws questions that two or more systems answered, and the table has one; give a table "
            "with a column system"
        )
    times = items["sample_id"].map(items["sample_id"].value_counts())
    items = items[times == systems]
    if items.empty:
        raise RagnbError(
            "no question has a judged answer of every system; check the column sample_id"
        )
    questions = items.drop_duplicates("sample_id")
    if n > len(questions):
        text = f"n={n}, but there are only {len(questions)} questions of all systems; all are drawn"
        warnings.warn(text, RagnbWarning, stacklevel=3)
    rng = np.random.default_rng(seed)
    place = {
        name: rank
        for rank, name in enumerate(rng.permutation(sorted(questions["cluster"].unique())))
    }
    order = np.lexsort((rng.random(len(questions)), questions["cluster"].map(place)))
    size = min(n, len(questions))
    steps = ((np.arange(size) + rng.random()) * len(questions) / max(size, 1)).astype(int)
    chosen = questions["sample_id"].iloc[order[np.minimum(steps, len(questions) - 1)]]
    scale = mean.max() - mean.min() or 1.0
    third = np.clip(np.ceil(3 * (mean[items.index] - mean.min()) / scale) - 1, 0, 2).astype(int)
    items = items.assign(
        band=np.array(BANDS, dtype=object)[third], **{PROBABILITY: size / len(questions)}
    )
    drawn = items[items["sample_id"].isin(chosen)]
    return drawn.iloc[rng.permutation(len(drawn))], len(items)


def _with_ids(drawn: pd.DataFrame, population: int, names: list[str], seed: int) -> pd.DataFrame:
    """Return drawn answers with ids that tell a rater nothing."""
    drawn = drawn.reset_index(drop=True)
    width = max(3, len(str(len(drawn))))
    drawn.insert(0, "item_id", [f"L{i + 1:0{width}d}" for i in range(len(drawn))])
    drawn.attrs = {"dimensions": names, "population": population, "seed": seed}
    return drawn


def _items(
    frame: pd.DataFrame, dimensions: Sequence[str] | None, cluster: str
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row per answer in an order that the caller's does not change, and the dimensions."""
    frame = frame.rename(columns={"item_id": "sample_id"} if "sample_id" not in frame else {})
    rubric = [d.name for d in Rubric().dimensions if d.name in frame]
    there = [str(name) for name in frame]
    if "judge" in frame:  # one row per dimension
        frame, there = _spread(frame)
        rubric = there
    names = rubric if dimensions is None else list(dimensions)
    missing = next((name for name in names if name not in there), None)
    if missing or not names or "sample_id" not in frame:
        if missing:
            what = f"dimension {missing!r} does not exist"
        else:
            what = "there is no judge score to sample by"
        if "sample_id" not in frame:
            what = "no column says which answer a row is"
        raise RagnbError(f"{what}; {did_you_mean(missing or 'judge', there)}")
    group = frame.get(cluster, frame.get("doc_name", frame["sample_id"])).fillna(frame["sample_id"])
    system = frame["system"].astype(str) if "system" in frame else ""
    frame = frame.assign(system=system, cluster=group.astype(str)).sort_values(
        ["sample_id", "system"]
    )
    _once(frame, ["sample_id", "system"])
    first = ["sample_id", "system", "cluster", *(c for c in SHOWN if c in frame)]
    return frame[[*first, *names]].reset_index(drop=True), names


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
    about = frame.drop(
        columns=["dimension", "judge", "human", "rater"], errors="ignore"
    ).drop_duplicates(keys)
    return about.merge(wide.rename_axis(columns=None), on=keys), names


def _once(frame: pd.DataFrame, keys: list[str]) -> None:
    if (again := frame.duplicated(keys)).any():
        raise RagnbError(
            f"answer {frame.loc[again, 'sample_id'].iloc[0]!r} appears more than once; keep one row per "
            "answer, or name the column 'system' that distinguishes them"
        )
