"""Components of the variance of a mean: of documents, questions, answers and judgements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats

Array = npt.NDArray[np.float64]


class Design(NamedTuple):
    """What nests in what: judgements, answers, questions, documents; and what more of each costs."""

    question: str
    repeat: str
    judge_repeat: str | None
    doc: str | None  # None: questions are drawn by themselves
    clusters: str  # what `doc` holds, for readers: documents or conversations
    costs: Mapping[str, float]  # of a new question, answer, judge's call
    budget: float | None
    level: float

    @property
    def keys(self) -> list[str]:
        """What tells one judgement from another."""
        keys = [self.question, self.repeat]
        if self.judge_repeat is not None:
            keys.append(self.judge_repeat)
        return keys


class Sums(NamedTuple):
    """Sums by cluster, a row each, from which every component follows; see `components`."""

    judgements: Array  # Σ(x − mean)² within answers, and their degrees of freedom
    judgements_df: Array
    answers: Array  # Σ(mean − mean)² of answers within questions
    answers_df: Array
    questions: Array  # Σ(mean − mean)² of questions within documents
    questions_df: Array
    n_answers: Array
    n_questions: Array
    per_call: Array  # Σ 1/calls, Σ 1/answers, 1/questions: for the harmonic means
    per_answer: Array
    per_question: Array
    clusters: Array
    means: Array  # Σ of the means of clusters, and of their squares
    squares: Array


class ByCluster(NamedTuple):
    """The sums of one metric by document, or by question where no document has two."""

    sums: Sums
    has_documents: bool

    def of_all(self) -> Components:
        """Return the components of all clusters together."""
        whole = Sums(*(np.atleast_1d(part.sum()) for part in self.sums))
        return components(whole, self.has_documents)

    def without_each(self) -> Components:
        """Return the components of all clusters but one, a row for each that is left out."""
        rest = Sums(*(part.sum() - part for part in self.sums))
        return components(rest, self.has_documents)

    def sources(self, design: Design) -> dict[str, list[int]]:
        """Return the names of the sources that the rows tell apart, each with the places of its components."""
        sources: dict[str, list[int]] = {}
        if self.has_documents:
            sources[design.clusters] = [0]
        has_answers = self.sums.answers_df.sum() > 0
        has_judge = self.sums.judgements_df.sum() > 0
        if not has_answers:
            return sources | {"questions and answers": [1, 2], "judge": [3]}
        sources["questions"] = [1]
        if not has_judge:
            return sources | {"answers and judge": [2, 3]}
        return sources | {"answers": [2], "judge": [3]}


class Components(NamedTuple):
    """Variances of documents, questions, answers and judgements, and how many there are of each."""

    variances: Array  # (..., 4)
    numbers: Array  # (..., 4): G, GQ, GQr, GQrs


def by_cluster(rows: pd.DataFrame, name: str, design: Design) -> ByCluster:
    """Return the sums of one metric over answers, then over questions, then over clusters.

    Examples
    --------
    >>> rows = pd.DataFrame({"q": ["a", "a", "b", "b"], "again": [1, 2] * 2, "score": [1, 0, 1, 1.0]})
    >>> found = by_cluster(rows, "score", Design("q", "again", None, None, "documents", {}, None, 0.95))
    >>> found.sums.answers.tolist(), found.has_documents
    ([0.5, 0.0], False)
    """
    rows = rows.dropna(subset=[name])
    value = rows[name].astype(float)
    # Less the mean, so that sums of squares keep their digits.
    rows = rows.assign(x=value - value.mean())
    questions = _over_answers(rows, design)
    questions["cluster"] = questions.index
    has_documents = False
    if design.doc is not None:
        named = document_of(rows, design).reindex(questions.index)
        # A question without a document is a cluster of its own.
        cluster = named.astype(object).where(named.notna(), questions.index.to_series())
        has_documents = 1 < cluster.nunique() < len(questions)
        if has_documents:
            questions["cluster"] = cluster

    groups = questions.groupby("cluster", sort=False)
    added = ["ss_j", "df_j", "ss_a", "df_a", "n_answers", "per_call", "per_answer"]
    table = groups[added].sum()
    n_questions = groups.size()
    mean = groups["mean"].mean()
    squares = groups["mean"].var().fillna(0.0) * (n_questions - 1)

    def column(values: pd.Series[Any]) -> Array:
        return values.to_numpy(dtype=float)

    return ByCluster(
        Sums(
            judgements=column(table["ss_j"]),
            judgements_df=column(table["df_j"]),
            answers=column(table["ss_a"]),
            answers_df=column(table["df_a"]),
            questions=column(squares),
            questions_df=column(n_questions) - 1,
            n_answers=column(table["n_answers"]),
            n_questions=column(n_questions),
            per_call=column(table["per_call"]),
            per_answer=column(table["per_answer"]),
            per_question=1 / column(n_questions),
            clusters=np.ones(len(table)),
            means=column(mean),
            squares=column(mean) ** 2,
        ),
        has_documents,
    )


def document_of(rows: pd.DataFrame, design: Design) -> pd.Series[Any]:
    """Return the document of each question, by question: that of its first row.

    Examples
    --------
    >>> rows = pd.DataFrame({"q": ["a", "a", "b"], "doc": ["x", "x", "y"]})
    >>> document_of(rows, Design("q", "again", None, "doc", "documents", {}, None, 0.95)).to_dict()
    {'a': 'x', 'b': 'y'}
    """
    first = rows.drop_duplicates(design.question)
    return first.set_index(design.question)[design.doc]


def _over_answers(rows: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Return a row a question: its mean, and the sums over its answers and their judgements (``_a``, ``_j``)."""
    of_answer = rows.groupby([design.question, design.repeat], sort=False)["x"]
    answers = of_answer.agg(mean="mean", calls="size", var="var").reset_index()
    # pandas has no variance of one value; its sum of squares is 0.
    answers["ss"] = answers["var"].fillna(0.0) * (answers["calls"] - 1)
    answers["per_call"] = 1 / answers["calls"]
    of_question = answers.groupby(design.question, sort=False)
    questions = of_question.agg(
        mean=("mean", "mean"),
        n_answers=("mean", "size"),
        var=("mean", "var"),
        ss_j=("ss", "sum"),
        calls=("calls", "sum"),
        per_call=("per_call", "sum"),
    )
    questions["df_j"] = questions["calls"] - questions["n_answers"]
    questions["ss_a"] = questions["var"].fillna(0.0) * (questions["n_answers"] - 1)
    questions["df_a"] = questions["n_answers"] - 1
    questions["per_answer"] = 1 / questions["n_answers"]
    return questions


def _ratio(top: Array, bottom: Array) -> Array:
    """Divide; 0 where there is nothing to divide by."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def components(sums: Sums, has_documents: bool) -> Components:
    """Return the components of sums that may have an axis of resamples, each at least 0.

    Examples
    --------
    >>> rows = pd.DataFrame({"q": ["a", "a", "b", "b"], "again": [1, 2] * 2, "score": [1, 0, 1, 1.0]})
    >>> found = by_cluster(rows, "score", Design("q", "again", None, None, "documents", {}, None, 0.95))
    >>> found.of_all().variances.tolist()
    [[0.0, 0.0, 0.25, 0.0]]
    """
    calls = _ratio(sums.n_answers, sums.per_call)  # harmonic means: s, then r of `noise`
    answers = _ratio(sums.n_questions, sums.per_answer)
    # Mean squares, of the innermost first. Each holds what lies below it, too.
    of_calls = _ratio(sums.judgements, sums.judgements_df)
    of_answers = _ratio(sums.answers, sums.answers_df)
    squares = sums.squares - _ratio(sums.means**2, sums.clusters)
    of_clusters = _ratio(squares, sums.clusters - 1)
    if has_documents:
        of_questions = _ratio(sums.questions, sums.questions_df)
    else:
        of_questions = of_clusters

    per_answer = _ratio(of_calls, calls)  # what the calls leave in the mean of an answer
    v_answers = np.maximum(of_answers - per_answer, 0.0)
    # Where no answer was drawn anew, answers cannot be told from questions.
    v_questions = np.maximum(of_questions - _ratio(np.maximum(of_answers, per_answer), answers), 0)
    v_documents = np.zeros_like(of_calls)
    if has_documents:
        questions = _ratio(sums.clusters, sums.per_question)
        v_documents = np.maximum(of_clusters - _ratio(of_questions, questions), 0.0)
    n_answers = sums.n_questions * answers
    return Components(
        variances=np.stack([v_documents, v_questions, v_answers, of_calls], axis=-1),
        numbers=np.stack([sums.clusters, sums.n_questions, n_answers, n_answers * calls], axis=-1),
    )


def shares_of(found: ByCluster, design: Design) -> pd.DataFrame:
    """Return the share of each source in the variance of the mean, with its jackknife interval.

    Examples
    --------
    >>> rows = pd.DataFrame({"q": ["a", "a", "b", "b"], "again": [1, 2] * 2, "score": [1, 0, 1, 1.0]})
    >>> design = Design("q", "again", None, None, "documents", {}, None, 0.95)
    >>> shares_of(by_cluster(rows, "score", design), design)[["source", "share"]].values.tolist()
    [['questions', 0.0], ['answers and judge', 1.0]]
    """
    sources = found.sources(design)
    now = found.of_all()
    share = _shares_in_mean(now, sources)[0]
    without_each = _shares_in_mean(found.without_each(), sources)
    g = len(without_each)
    se = np.full(len(share), np.nan)
    if g > 2:  # of two, what is left is one cluster, whose shares say nothing
        spread = ((without_each - without_each.mean(axis=0)) ** 2).sum(axis=0)
        se = np.sqrt((g - 1) / g * spread)
    margin = stats.t_quantile(design.level, max(g - 1, 1)) * se
    return pd.DataFrame(
        {
            "source": [*sources],
            "n": [round(float(now.numbers[0, places[0]])) for places in sources.values()],
            "variance": [now.variances[0, places].sum() for places in sources.values()],
            "share": share,
            "low": np.clip(share - margin, 0, 1),
            "high": np.clip(share + margin, 0, 1),
            "n_clusters": g,
        }
    )


def _shares_in_mean(found: Components, sources: Mapping[str, list[int]]) -> Array:
    """Return the share of each source, shape (..., sources); nan where nothing varies."""
    in_mean: Array = np.divide(
        found.variances,
        found.numbers,
        out=np.zeros_like(found.variances),
        where=found.numbers > 0,  # none are left where the one cluster with scores is left out
    )
    columns = [in_mean[..., places].sum(axis=-1) for places in sources.values()]
    of_sources: Array = np.stack(columns, axis=-1)
    whole = of_sources.sum(axis=-1, keepdims=True)
    unknown = np.full_like(of_sources, np.nan)
    shares: Array = np.divide(of_sources, whole, out=unknown, where=whole > 0)
    return shares


class _Option(NamedTuple):
    """What the budget can buy: how many more of a thing, and the variance of the mean after it."""

    more: float
    variance: float


def steps_of(found: ByCluster, design: Design) -> pd.DataFrame:
    """Return what the standard error becomes if the budget buys more of one thing.

    Examples
    --------
    >>> rows = pd.DataFrame({"q": ["a", "a", "b", "b"], "again": [1, 2] * 2, "score": [1, 0, 1, 1.0]})
    >>> costs = {"question": 1.0, "answer": 1.0, "judge": 1.0}
    >>> design = Design("q", "again", None, None, "documents", costs, 10.0, 0.95)
    >>> steps_of(by_cluster(rows, "score", design), design)[["spend_on", "more"]].values.tolist()
    [['questions', 2.0], ['answers', 5.0]]
    """
    all_clusters = found.of_all()
    v_d, v_q, v_a, v_j = all_clusters.variances[0]
    g, n_q, n_a, n_j = all_clusters.numbers[0]
    answers = n_a / n_q  # of a question
    calls = n_j / n_a  # of an answer
    # A new answer is judged as often as those there are; a new question is answered as often.
    answer_price = design.costs["answer"] + calls * design.costs["judge"]
    question_price = design.costs["question"] + answers * answer_price
    budget = design.budget
    if budget is None:
        budget = n_q * question_price

    def variance(n_q: float, n_a: float, n_j: float) -> float:
        of_documents = v_d / g if found.has_documents else 0.0
        return float(of_documents + v_q / n_q + v_a / n_a + v_j / n_j)

    now = variance(n_q, n_a, n_j)
    options: dict[str, _Option] = {}
    if question_price > 0:
        more = budget / question_price
        if found.has_documents:
            # New documents bring questions along, and every part of the variance falls alike.
            growth = 1 + more / n_q
            options[design.clusters] = _Option(more * g / n_q, now / growth)
        after = variance(n_q + more, n_a + more * answers, n_j + more * answers * calls)
        options["questions"] = _Option(more, after)
    sources = found.sources(design)
    if answer_price > 0 and "questions" in sources:
        more = budget / answer_price
        options["answers"] = _Option(more, variance(n_q, n_a + more, n_j + more * calls))
    if design.costs["judge"] > 0 and "judge" in sources:
        more = budget / design.costs["judge"]
        options["judge"] = _Option(more, variance(n_q, n_a, n_j + more))
    best = min(options, key=lambda name: options[name].variance, default="")
    return pd.DataFrame(
        {
            "spend_on": [*options],
            "more": [option.more for option in options.values()],
            "se_now": np.sqrt(now),
            "se_after": [np.sqrt(option.variance) for option in options.values()],
            "best": [name == best for name in options],
        }
    )


def worth_of(found: ByCluster) -> tuple[float, float]:
    """Return the number of repeats, and how many times the questions without repeats they are worth.

    Examples
    --------
    >>> rows = pd.DataFrame({"q": ["a", "a", "b", "b"], "again": [1, 2] * 2, "score": [1, 0, 1, 1.0]})
    >>> worth_of(by_cluster(rows, "score", Design("q", "again", None, None, "documents", {}, None, 0.95)))
    (2.0, 2.0)
    """
    all_clusters = found.of_all()
    _, v_q, v_a, v_j = all_clusters.variances[0]
    _, n_q, n_a, n_j = all_clusters.numbers[0]
    repeats = n_a / n_q
    calls = n_j / n_a
    of_one_answer = v_a + v_j / calls
    repeated = v_q + of_one_answer / repeats
    if repeated > 0:
        return float(repeats), float((v_q + of_one_answer) / repeated)
    return float(repeats), float("nan")
