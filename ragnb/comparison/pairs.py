"""Pairs of two systems: one row per question, with both scores and the reason if one is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb.errors import RagnbError, listing, unknown
from ragnb.schema import Metric
from ragnb.weights import Batch, Reduction, check_weights, column_names, reduce_batches
from ragnb.weights.clusters import INSIDE, QUESTIONS, need_documents, question_clusters, question_of
from ragnb.weights.columns import Array

STATES = ("ok", "failed", "not_applicable", "missing", "absent")
"""What became of a metric of one question under one system; absent is a question that it was not asked."""


@dataclass(frozen=True)
class Pairs:
    """The questions of two systems, including those that only one of them has.

    Attributes
    ----------
    metrics : tuple of Metric
    candidate, baseline : str
    labels : DataFrame
        One row per question: the key that identifies it, and the columns requested (document, cluster, …).
    scores : (2, Q, K) float
        Of the candidate, then the baseline: the mean over repeats, nan where there is none.
    states : (2, Q, K) int
        Index into `STATES`.
    noise : (2, Q, K) float
        The variance that repeats alone give to that mean; nan without repeats.
    clusters : (Q,) int
        The column of clusters of correlated rows.
    unit : str
        What the clusters are: ``cluster``, ``document``, ``question`` or ``row``; `INSIDE` of a complete corpus.
    weights : (Q,) float
        Of the questions' documents.
    reworded : int
        Questions of one id whose texts differ: they are no pairs.
    origins : pair of (rows, system)
        Where the rows of both systems are, with their texts; None where the rows are of one system.
    """

    metrics: tuple[Metric, ...]
    candidate: str
    baseline: str
    labels: pd.DataFrame
    scores: Array
    states: npt.NDArray[np.int8]
    noise: Array
    clusters: npt.NDArray[np.intp]
    unit: str
    weights: Array
    reworded: int = 0
    origins: tuple[tuple[Any, str | None], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the clusters are documents, and these are the entire corpus."""
        return self.unit == INSIDE

    @property
    def differences(self) -> Array:
        """Candidate − baseline, questions × metrics; nan where either has no score."""
        return np.asarray(self.scores[0] - self.scores[1])


def rows_of(
    frame: Any, metrics: Sequence[Metric], labels: Iterable[str | None], *, doc: str = "doc_name"
) -> pd.DataFrame:
    """Return the scores, statuses and labels of rows of any engine, without their texts.

    Names of documents, in the column `doc`, are compared in Unicode form NFC, as their weights are.

    Examples
    --------
    >>> rows_of(pd.DataFrame({"sample_id": ["1"], "faithfulness": [0.5]}), [Metric("faithfulness")], ["sample_id"])
      sample_id  faithfulness  faithfulness__status
    0         1           0.5                     0
    """
    have = column_names(frame)
    kept = [name for name in dict.fromkeys(labels) if name is not None and name in have]

    def of_batch(batch: Batch) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        for name in kept:
            found = batch.labels(name, compose=name == doc)
            columns[name] = np.array([*found.names, None], dtype=object)[found.codes]
        for metric in metrics:
            score, state = batch.values(metric), batch.status(metric)
            columns[metric.name] = score
            columns[f"{metric.name}__status"] = np.where((state == 0) & np.isnan(score), np.int8(3), state)
        return pd.DataFrame(columns)

    whole = partial(pd.concat, ignore_index=True)
    return cast(pd.DataFrame, reduce_batches(frame, metrics, [Reduction(of_batch, whole, kept)])[0])


def pairs_of(
    rows: Mapping[str, pd.DataFrame],
    metrics: Sequence[Metric],
    *,
    on: str | None = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    corpus: str = "sample",
    doc_weights: Mapping[str, float] | None = None,
) -> Pairs:
    """Return the questions of two systems as pairs.

    Parameters
    ----------
    rows : mapping of name to DataFrame
        The candidate's, then the baseline's, from `rows_of`.
    on : str, optional
        The column that identifies questions; by default ``sample_id``, or ``question`` where ids are only places.

    Raises
    ------
    RagnbError
        Where no column tells the questions of both, or they have none in common.

    Examples
    --------
    >>> one = pd.DataFrame({"sample_id": ["1"], "faithfulness": [0.5], "faithfulness__status": [0]})
    >>> pairs_of({"new": one, "old": one}, [Metric("faithfulness")]).differences.tolist()
    [[0.0]]
    """
    (candidate, new), (baseline, old) = rows.items()
    sides = [new, old]
    key = on or _key(sides)
    for name, side in rows.items():
        if key not in side:
            raise unknown("on", key, [str(c) for c in side.columns], f"{name!r} does not have it.")
    asked = [side.loc[side[key].notna()].reset_index(drop=True) for side in sides]
    codes, names = pd.factorize(pd.concat([side[key] for side in asked], ignore_index=True))
    size, split = len(names), len(asked[0])
    coded = list(zip(asked, (codes[:split], codes[split:]), strict=True))
    parts = [_side(side, code, size, metrics) for side, code in coded]
    scores, states, noise = (np.stack(arrays) for arrays in zip(*parts, strict=True))
    scored = {name for metric in metrics for name in (metric.name, f"{metric.name}__status")}
    others = [str(c) for side in asked for c in side if c != key and c not in scored]
    labels, reworded = pd.DataFrame({key: np.asarray(names, dtype=object)}), 0
    for column in dict.fromkeys(others):
        values = [_first(side, code, column, size) for side, code in coded]
        labels[column] = np.where(pd.isna(values[0]), values[1], values[0])
        if column == "question" and key != "question":
            changed = np.array([a is not None and b is not None and a != b for a, b in zip(*values, strict=True)])
            states[:, changed], scores[:, changed], reworded = 4, np.nan, int(changed.sum())
    if not (states.min(axis=2) < 4).all(axis=0).any():
        if reworded:
            raise RagnbError(
                f"{candidate!r} and {baseline!r} ask different questions under the same {key} ({reworded}); "
                "compare runs over one question set, or name the column that tells their questions: on='…'"
            )
        raise RagnbError(
            f"{candidate!r} and {baseline!r} have no question in common (by {key}: {listing(names[:3])}, …); "
            "compare runs over one question set, or name the column that tells their questions: on='…'"
        )
    clusters, unit = _clusters(labels, doc, cluster, key, corpus)
    own = check_weights(doc_weights, "doc_weights")
    weights = labels[doc].map(lambda name: own.get(name, 1.0)) if doc in labels else pd.Series(1.0, labels.index)
    return Pairs(
        tuple(metrics), candidate, baseline, labels, scores, states.astype(np.int8), noise, clusters, unit,
        np.asarray(weights, dtype=float), reworded,
    )  # fmt: skip


def _key(sides: Sequence[pd.DataFrame]) -> str:
    """Return the column that identifies questions: the texts, if ids of one question differ between the sides."""
    shared = [name for name in QUESTIONS if all(name in side for side in sides)]
    if not shared:
        raise RagnbError(
            "it is unclear which rows belong to one question; give both a column sample_id (or question), or name "
            "theirs: on='…'"
        )
    if len(shared) == 1:
        return shared[0]
    whole = [side.dropna(subset=shared).drop_duplicates(shared[0]) for side in sides]
    by_id = [side.set_index(shared[0])["question"] for side in whole]
    common = by_id[0].index.intersection(by_id[1].index)
    same = int((by_id[0][common].to_numpy() == by_id[1][common].to_numpy()).sum())
    texts = [set(side["question"].dropna()) for side in sides]
    return "question" if len(texts[0] & texts[1]) > 2 * same else "sample_id"


def _side(
    side: pd.DataFrame, code: npt.NDArray[np.intp], size: int, metrics: Sequence[Metric]
) -> tuple[Array, npt.NDArray[np.int8], Array]:
    """Return the mean, state and noise of each question and metric."""
    shape = (size, len(metrics))
    scores, noise, states = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, 4, dtype=np.int8)
    for k, metric in enumerate(metrics):
        x, state = side[metric.name].to_numpy(float), side[f"{metric.name}__status"].to_numpy(np.int8)
        there = ~np.isnan(x)
        n = np.bincount(code[there], minlength=size)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.bincount(code[there], x[there], size) / n
            squares = np.bincount(code[there], (x[there] - mean[code[there]]) ** 2, size)
            noise[:, k] = np.where(n > 1, squares / (n - 1) / n, np.nan)
        scores[:, k] = mean
        for word in (3, 2, 1):  # of several rows without a score, a failed one is the most informative
            states[code[state == word], k] = word
        states[n > 0, k] = 0
    return scores, states, noise


def _first(side: pd.DataFrame, code: npt.NDArray[np.intp], column: str, size: int) -> npt.NDArray[Any]:
    """Return the first value of a column for each question, None if missing."""
    values: npt.NDArray[Any] = np.full(size, None, dtype=object)
    if column in side:
        there = side[column].notna().to_numpy()
        values[code[there][::-1]] = side[column].to_numpy(object)[there][::-1]
    return values


def _clusters(
    labels: pd.DataFrame, doc: str, cluster: str | None, key: str, corpus: str
) -> tuple[npt.NDArray[np.intp], str]:
    """Return the clusters, as `moments` defines them: the caller's, documents, else questions."""
    batch = Batch(labels)
    if corpus == "complete":
        need_documents(list(map(str, labels)), doc, cluster, corpus)
        return batch.groups(doc, compose=True).codes.astype(np.intp), INSIDE
    docs = batch.labels(doc if doc in labels else None, compose=True)
    questions = question_of(labels.drop(columns=key), doc=doc) if cluster is None else None
    found = batch.labels(cluster) if cluster is not None else question_clusters(batch, docs, questions)
    alone = found.codes < 0
    codes = found.codes.astype(np.intp)
    codes[alone] = len(found.names) + np.arange(int(alone.sum()))
    unit = "cluster" if cluster is not None and found.names else "document" if docs.names else "row"
    return codes, "question" if unit == "row" and questions else unit
