"""Which answers people should rate: drawn over the scores of the judge, and over documents."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
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
    n_unscored = int(mean.isna().sum())
    if n_unscored:
        text = f"{n_unscored} answers without a judge score are excluded"
        warnings.warn(text, RagnbWarning, stacklevel=2)
    items = items[mean.notna()]
    mean = mean[mean.notna()]
    need_whole("n", n)
    if pairs:
        drawn, population = _drawn_pairs(items, mean, n, seed)
        return _with_ids(drawn, population, names, seed)
    if n > len(items):
        text = f"n={n}, but there are only {len(items)} judged answers; all are drawn"
        warnings.warn(text, RagnbWarning, stacklevel=2)
    third = _thirds(mean, mean)
    system = pd.factorize(items["system"], sort=True)[0]
    rng = np.random.default_rng(seed)
    cluster_rank = _random_ranks(items["cluster"], rng)
    # By system, within it by band, and so on: the last key of `lexsort` is the first to sort by.
    order = np.lexsort((rng.random(len(items)), cluster_rank, third, system))
    size = min(n, len(items))
    chosen = order[_even_steps(size, len(items), rng)]
    items = items.assign(band=np.array(BANDS, dtype=object)[third])
    drawn = items.iloc[chosen]
    # Raters see them in random order, not system by system.
    drawn = drawn.assign(**{PROBABILITY: size / len(items)}).iloc[rng.permutation(size)]
    return _with_ids(drawn, len(items), names, seed)


def _thirds(scores: pd.Series[float], all_scores: pd.Series[float]) -> npt.NDArray[np.int64]:
    """Return the thirds of the judge's range in which scores lie, 0, 1, 2; all 0 where it gives one score."""
    lowest = all_scores.min()
    range_of_scores = all_scores.max() - lowest or 1.0
    share = (scores - lowest) / range_of_scores
    # An upper end belongs to its third; the lowest score of all, whose ceiling is 0, to the first.
    return np.asarray(np.clip(np.ceil(3 * share) - 1, 0, 2).astype(int))


def _random_ranks(clusters: pd.Series[Any], rng: np.random.Generator) -> pd.Series[int]:
    """Return the place of each row's cluster in a random order of them."""
    # Sorted first, so that a seed gives the same order whatever the order of the rows.
    in_random_order = rng.permutation(sorted(clusters.unique()))
    rank_of = {name: rank for rank, name in enumerate(in_random_order)}
    return clusters.map(rank_of)


def _even_steps(size: int, population: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return positions at equal distances in a list, from a random start: a systematic sample."""
    steps: npt.NDArray[np.int64] = (
        (np.arange(size) + rng.random()) * population / max(size, 1)
    ).astype(int)
    # The last may be rounded up to the length of the list.
    return np.asarray(np.minimum(steps, population - 1))


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
    # No answer is there twice, so as many rows as there are systems are one answer of each.
    n_answers = items["sample_id"].map(items["sample_id"].value_counts())
    items = items[n_answers == systems]
    if items.empty:
        raise RagnbError(
            "no question has a judged answer of every system; check the column sample_id"
        )
    questions = items.drop_duplicates("sample_id")
    if n > len(questions):
        text = f"n={n}, but there are only {len(questions)} questions of all systems; all are drawn"
        warnings.warn(text, RagnbWarning, stacklevel=3)
    rng = np.random.default_rng(seed)
    cluster_rank = _random_ranks(questions["cluster"], rng)
    order = np.lexsort((rng.random(len(questions)), cluster_rank))
    size = min(n, len(questions))
    chosen = questions["sample_id"].iloc[order[_even_steps(size, len(questions), rng)]]
    band = np.array(BANDS, dtype=object)[_thirds(mean[items.index], mean)]
    items = items.assign(band=band, **{PROBABILITY: size / len(questions)})
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
    if "sample_id" not in frame:
        frame = frame.rename(columns={"item_id": "sample_id"})
    usual = [d.name for d in Rubric().dimensions if d.name in frame]
    there = [str(name) for name in frame]
    if "judge" in frame:  # one row per dimension
        frame, there = _spread(frame)
        usual = there
    names = usual if dimensions is None else list(dimensions)
    missing = next((name for name in names if name not in there), None)
    fault = ""
    if "sample_id" not in frame:
        fault = "no column says which answer a row is"
    elif missing:
        fault = f"dimension {missing!r} does not exist"
    elif not names:
        fault = "there is no judge score to sample by"
    if fault:
        raise RagnbError(f"{fault}; {did_you_mean(missing or 'judge', there)}")
    # Where no cluster is named, an answer's sample is its cluster.
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
    """Refuse an answer that appears more than once."""
    again = frame.duplicated(keys)
    if again.any():
        raise RagnbError(
            f"answer {frame.loc[again, 'sample_id'].iloc[0]!r} appears more than once; keep one row per "
            "answer, or name the column 'system' that distinguishes them"
        )
