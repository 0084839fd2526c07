"""The questions of two systems as pairs, from the rows of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError, listing, need_known
from ragnb.scenario import Scenario
from ragnb.schema import Metric
from ragnb.weights import Batch, Reduction, check_weights, column_names, reduce_batches
from ragnb.weights.clusters import INSIDE, QUESTIONS, need_documents, question_clusters, question_of
from ragnb.weights.columns import Codes
from ragnb.weights.conversations import is_conversation
from ragnb.weights.total import Array

if TYPE_CHECKING:
    from ragnb.comparison.source import Run

REFERENCE = "ground_truth_answer"
# What became of a metric of one question under one system; absent is a question that it was not asked.
STATES = ("ok", "failed", "not_applicable", "missing", "absent")
OK, FAILED, NOT_APPLICABLE, MISSING, ABSENT = range(len(STATES))


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
    new_references : int
        Common questions whose reference answers differ.
    origins : pair of (run, system)
        Where the rows of both systems are, with their texts; None where the rows are of one system.
    human : (2, Q, K) float, optional
        What people gave, see `rated_pairs`.
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
    reworded: int
    new_references: int
    origins: tuple[tuple[Run, str | None], ...]
    human: Array | None = None

    @property
    def complete(self) -> bool:
        """Whether the clusters are documents, and these are the entire corpus."""
        return self.unit == INSIDE

    @property
    def key(self) -> str:
        """The column that identifies questions."""
        return str(self.labels.columns[0])

    @property
    def swapped(self) -> Pairs:
        """The same questions with the baseline as the candidate."""
        other_side = {"candidate_label": "baseline_label", "baseline_label": "candidate_label"}
        human = self.human
        if human is not None:
            human = human[::-1]
        return replace(
            self,
            candidate=self.baseline,
            baseline=self.candidate,
            labels=self.labels.rename(columns=other_side),
            scores=self.scores[::-1],
            states=self.states[::-1],
            noise=self.noise[::-1],
            origins=self.origins[::-1],
            human=human,
        )


def rows_of(
    frame: Any,
    metrics: Sequence[Metric],
    labels: Iterable[str | None],
    *,
    doc: str = "doc_name",
    texts: Sequence[str] = (),
    only: Mapping[str, Sequence[Any]] | None = None,
) -> pd.DataFrame:
    """Return the scores, statuses and labels of rows of any engine, those whose labels are among `only`.

    Names of documents, in the column `doc`, are compared in Unicode form NFC, as their weights are. `texts` are
    columns taken as they are.

    Examples
    --------
    >>> rows_of(pd.DataFrame({"sample_id": ["1"], "faithfulness": [0.5]}), [Metric("faithfulness")], ["sample_id"])
      sample_id  faithfulness  faithfulness__status
    0         1           0.5                     0
    """
    have = column_names(frame)
    kept = [name for name in dict.fromkeys(labels) if name is not None and name in have]

    def of_batch(batch: Batch) -> pd.DataFrame:
        coded = {name: batch.labels(name, compose=name == doc) for name in kept}
        columns: dict[str, Any] = {}
        for name, labels_of_rows in coded.items():
            # The names become a column of text before their rows do, as there are fewer.
            names_and_none = pd.Series([*labels_of_rows.names, None]).array
            # A row without a label has the code −1, which takes the last.
            columns[name] = names_and_none.take(labels_of_rows.codes)
        for metric in metrics:
            score = batch.values(metric)
            state = batch.status(metric)
            # The status of a score that was never made is 0, like that of one that is there.
            is_missing = (state == OK) & np.isnan(score)
            columns[metric.name] = score
            columns[f"{metric.name}__status"] = np.where(is_missing, np.int8(MISSING), state)
        for name in texts:
            columns[name] = batch.frame[name].to_numpy(object)
        table = pd.DataFrame(columns)
        if only:
            return table[table[[*only]].isin(only).all(axis=1)]
        return table

    reduction = Reduction(of_batch, pd.concat, [*kept, *texts])
    return cast(pd.DataFrame, reduce_batches(frame, metrics, [reduction])[0])


class RunRows:
    """The rows of the runs that are compared, whose questions are numbered once for all of them.

    Parameters
    ----------
    tables : sequence of DataFrame
        One a run, as `rows_of` returns them.
    system : str
        The column that names systems.
    """

    def __init__(self, tables: Sequence[pd.DataFrame], system: str) -> None:
        self._tables = tables
        self._system = system
        self._numbered: dict[str, Numbered] = {}
        self._of_system: dict[tuple[int, str | None], SystemRows] = {}

    def of(self, run: int, name: str | None) -> SystemRows:
        """Return the rows of one system of a run; None is a run that names none, or one only."""
        if (run, name) not in self._of_system:
            table = self._tables[run]
            place = np.arange(len(table))
            if name is not None:
                place = np.flatnonzero(table[self._system] == name)
            self._of_system[run, name] = SystemRows(self, run, place)
        return self._of_system[run, name]

    def rows(self, run: int, place: Codes) -> pd.DataFrame:
        """Return some rows of a run, without the name of their system."""
        table = self._tables[run].drop(columns=self._system, errors="ignore")
        if len(place) == len(table):
            return table
        return table.take(place)

    def numbered(self, key: str) -> Numbered:
        """Return the questions that a column tells apart, over all runs."""
        if key not in self._numbered:
            # Over all runs at once, so that a question has the same number in each of them.
            codes, names = pd.factorize(pd.concat([table[key] for table in self._tables]))
            ends = np.cumsum([len(table) for table in self._tables])
            self._numbered[key] = Numbered(np.split(codes, ends[:-1]), names)
        return self._numbered[key]


class Numbered(NamedTuple):
    """The questions of all runs: the number of each row, by run, −1 where it has none, and the name of each."""

    of_run: Sequence[Codes]
    names: pd.Index[Any]


class SystemRows:
    """The rows of one system, which are reduced to its questions once for all its comparisons.

    Parameters
    ----------
    source : RunRows
        Where they are.
    run : int
        Which of its tables.
    place : (n,) int
        Which of its rows.
    """

    def __init__(self, source: RunRows, run: int, place: Codes) -> None:
        self.source = source
        self.rows = source.rows(run, place)
        self._run = run
        self._place = place
        self._by_key: dict[str, Questions] = {}

    def by(self, key: str, metrics: Sequence[Metric]) -> Questions:
        """Return the questions that a column tells apart."""
        if key not in self._by_key:
            numbers = self.source.numbered(key).of_run[self._run][self._place]
            self._by_key[key] = Questions.of(self.rows.drop(columns=key), numbers, metrics)
        return self._by_key[key]


@dataclass(frozen=True)
class Questions:
    """The questions of one system, in the order in which they first occur.

    Attributes
    ----------
    numbers : (Q,) int
        What identifies them, see `RunRows.numbered`.
    scores, noise : (Q, K) float
        The mean over repeats and the variance that these alone give it, see `Pairs`.
    states : (Q, K) int
        Index into `STATES`.
    labels : DataFrame
        The first label of each question that is not missing, of every other column.
    """

    numbers: Codes
    scores: Array
    noise: Array
    states: npt.NDArray[np.int8]
    labels: pd.DataFrame

    @classmethod
    def of(cls, rows: pd.DataFrame, number: Codes, metrics: Sequence[Metric]) -> Questions:
        """Reduce rows to the questions with their numbers; rows without one (−1) are left out."""
        named = number >= 0
        if not named.all():
            rows = rows[named]
        rows = rows.reset_index(drop=True)
        number = number[named]
        scored = [metric.name for metric in metrics]
        status = [f"{name}__status" for name in scored]
        scores = rows[scored].to_numpy(dtype=float)
        states = np.where(np.isnan(scores), rows[status].to_numpy(dtype=np.int8), np.int8(0))
        labels = rows.drop(columns=[*scored, *status])
        if np.bincount(number).max(initial=0) <= 1:
            # As most runs are: nothing to reduce.
            numbers = number
            noise = np.full(scores.shape, np.nan)
        else:
            codes, numbers = pd.factorize(number)
            # A Series: pandas writes an array out in words before it takes it as keys.
            question = pd.Series(codes)
            of_question = pd.DataFrame(scores).groupby(question)
            noise = (of_question.var() / of_question.count()).to_numpy()
            scores = of_question.mean().to_numpy()
            # Of several rows without a score, a failed one is the most informative.
            states = pd.DataFrame(states).groupby(question).min().to_numpy(dtype=np.int8)
            labels = labels.groupby(question).first().reset_index(drop=True)
        return cls(numbers, scores, noise, states, labels)


def paired(
    sides: Sequence[SystemRows],
    metrics: Sequence[Metric],
    on: str | None,
    scenario: Scenario,
    names: tuple[str, str],
    origins: Any,
) -> Pairs:
    """Return the questions of two systems as pairs, those of the candidate first."""
    key = on or _key([side.rows for side in sides])
    for name, side in zip(names, sides, strict=True):
        have = [str(column) for column in side.rows.columns]
        need_known("on", key, have, f"{name!r} does not have it.")
    of_new, of_old = (side.by(key, metrics) for side in sides)
    every_name = sides[0].source.numbered(key).names
    # The candidate's questions in their order, then those of the baseline alone.
    position = np.full(len(every_name), -1)  # of a question by its number, among those of both
    position[of_new.numbers] = np.arange(len(of_new.numbers))
    is_alone = position[of_old.numbers] < 0
    numbers = np.concatenate([of_new.numbers, of_old.numbers[is_alone]])
    size = len(numbers)
    position[numbers] = np.arange(size)
    questions = every_name.take(numbers)
    places = [position[of_new.numbers], position[of_old.numbers]]
    # The numbers of a metric lie side by side: what is computed of a few metrics and many questions is then quick.
    by_metric = (len(metrics), 2, size)
    scores: Array = np.moveaxis(np.full(by_metric, np.nan), 0, -1)
    noise: Array = np.moveaxis(np.full(by_metric, np.nan), 0, -1)
    states = np.moveaxis(np.full(by_metric, ABSENT, dtype=np.int8), 0, -1)
    for k, (place, of_side) in enumerate(zip(places, (of_new, of_old), strict=True)):
        scores[k, place] = of_side.scores
        noise[k, place] = of_side.noise
        states[k, place] = of_side.states
    columns = of_new.labels.columns.union(of_old.labels.columns, sort=False)
    new, old = (
        _placed(of_side.labels, place, size, columns)
        for place, of_side in zip(places, (of_new, of_old), strict=True)
    )
    labels = new.where(new.notna(), old)
    is_reworded = np.zeros(size, dtype=bool)
    if "question" in labels:
        # One id and two texts are two questions: neither side was asked the other's.
        is_reworded = _differs(new["question"], old["question"])
        states[:, is_reworded] = ABSENT
        scores[:, is_reworded] = np.nan
    reworded = int(is_reworded.sum())
    new_references = 0
    if REFERENCE in labels:
        # Scores that were made with another reference may differ for that alone.
        new_references = int((_differs(new[REFERENCE], old[REFERENCE]) & ~is_reworded).sum())
        labels = labels.drop(columns=REFERENCE)
    if "label" in labels:
        labels = labels.assign(candidate_label=new["label"], baseline_label=old["label"])
    # `Pairs.key` is the first column.
    labels.insert(0, key, questions)
    is_asked = states.min(axis=2) < ABSENT  # (2, Q): of any metric
    if not is_asked.all(axis=0).any():
        raise _nothing_in_common(names, key, questions, reworded)
    doc_weights = check_weights(scenario.doc_weights, "doc_weights")
    clusters, unit = _clusters(labels, key, scenario)
    weights: Array = np.ones(size)
    if doc_weights and scenario.doc in labels:
        weights_of_docs = labels[scenario.doc].map(doc_weights).fillna(1.0)
        weights = stats.relative(np.array(weights_of_docs, dtype=np.float64))
    candidate, baseline = names
    return Pairs(
        metrics=tuple(metrics),
        candidate=candidate,
        baseline=baseline,
        labels=labels,
        scores=scores,
        states=states,
        noise=noise,
        clusters=clusters,
        unit=unit,
        weights=weights,
        reworded=reworded,
        new_references=new_references,
        origins=origins,
    )


def _differs(new: pd.Series[Any], old: pd.Series[Any]) -> npt.NDArray[np.bool_]:
    """Return where both sides have a text and the two are not the same."""
    both = new.notna() & old.notna()
    return (both & (new != old)).to_numpy()


def _nothing_in_common(
    names: tuple[str, str], key: str, questions: Any, reworded: int
) -> RagnbError:
    """Return the error for two sides without a pair: ids that agree by chance, or none that agree."""
    if reworded:
        return RagnbError(
            f"{names[0]!r} and {names[1]!r} ask different questions under the same {key} ({reworded}); "
            "compare runs over one question set, or name the column that tells their questions: on='…'"
        )
    return RagnbError(
        f"{names[0]!r} and {names[1]!r} have no question in common (by {key}: {listing(questions[:3])}, …); "
        "compare runs over one question set, or name the column that tells their questions: on='…'"
    )


def _placed(labels: pd.DataFrame, place: Codes, size: int, columns: pd.Index) -> pd.DataFrame:
    """Return the labels of a system's questions among those of both, missing where it was not asked."""
    row = np.full(size, -1)
    row[place] = np.arange(len(place))
    return labels.reindex(row).reindex(columns=columns).set_axis(range(size))


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
    # How many of the ids that both sides have stand for the same text on both.
    ids = shared[0]
    first_of_ids = [side.dropna(subset=shared).drop_duplicates(ids) for side in sides]
    new, old = (side.set_index(ids)["question"] for side in first_of_ids)
    same = int(new.eq(old.reindex(new.index)).sum())
    # How many texts both sides have, whatever their ids.
    asked = [side["question"].dropna().drop_duplicates() for side in sides]
    common = int(asked[0].isin(asked[1]).sum())
    # Ids that a tool makes in each run agree by chance; a few questions that were reworded keep their ids.
    if common > 2 * same:
        return "question"
    return "sample_id"


def _clusters(
    labels: pd.DataFrame, key: str, scenario: Scenario
) -> tuple[npt.NDArray[np.intp], str]:
    """Return the clusters, as `moments` defines them: the caller's, documents, else questions."""
    batch = Batch(labels)
    doc = scenario.doc
    cluster = scenario.cluster
    if scenario.corpus == "complete":
        need_documents([*labels], doc, cluster, scenario.corpus)
        return batch.groups(doc, compose=True).codes, INSIDE
    docs = batch.labels(doc if doc in labels else None, compose=True)
    questions = None
    if cluster is None:
        questions = question_of(labels.drop(columns=key), doc=doc)
        clusters = question_clusters(batch, docs, questions)
    else:
        clusters = batch.labels(cluster)
    # A question without a cluster is one by itself.
    own_cluster = len(clusters.names) + np.arange(len(labels))
    codes = np.where(clusters.codes < 0, own_cluster, clusters.codes)
    if cluster is not None and clusters.names:
        if is_conversation(cluster):
            return codes, "conversation"
        return codes, "cluster"
    if docs.names:
        return codes, "document"
    if questions:
        return codes, "question"
    return codes, "row"
