"""Where the uncertainty of a mean comes from: documents, questions, answers drawn anew, or calls of the judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats, texts
from ragnb.errors import RagnbError, listing, need_columns, need_known
from ragnb.schema import TOTAL, Metric
from ragnb.weights.columns import MetricsArgument, as_pandas, scored
from ragnb.weights.conversations import conversation_cluster
from ragnb.weights.moments import moments
from ragnb.weights.reductions import weigh

Array = npt.NDArray[np.float64]
_PRICED = ("question", "answer", "judge")


@dataclass(frozen=True, repr=False)
class Noise:
    """How much of the uncertainty of each mean comes from where; made by `noise`.

    Attributes
    ----------
    shares : DataFrame
        ``[system,] metric, source, n, variance, share, low, high, n_clusters``: the variance component, and its
        share of the variance of the mean with a jackknife interval over the documents (else the questions).
        ``answers and judge`` or ``questions and answers`` where the rows cannot tell the two apart.
    steps : DataFrame
        ``[system,] metric, spend_on, more, se_now, se_after, best``: what the standard error becomes if the budget
        buys that many more of one thing, and which is best.
    questions : DataFrame
        ``[system,] metric, <question>, n, mean, sd, n_right, flickers``: each question over its repeats.
    passing : DataFrame
        ``[system,] metric, k, value, low, high, n``: the share of questions that are right in all of k repeats
        (pass^k), of metrics whose right answers are known.
    summary : str
        The shares of the first metric in words.
    """

    shares: pd.DataFrame
    steps: pd.DataFrame
    questions: pd.DataFrame
    passing: pd.DataFrame
    summary: str

    def __repr__(self) -> str:
        return f"Noise({self.summary})"


def noise(
    scores: Any,
    *,
    metrics: MetricsArgument = None,
    metric_weights: Mapping[str, float] | None = None,
    repeat: str = "repeat",
    judge_repeat: str | None = None,
    baseline: str | None = None,
    candidate: str | None = None,
    doc: str = "doc_name",
    threshold: float | Mapping[str, float] | None = None,
    costs: Mapping[str, float] | None = None,
    budget: float | None = None,
    corpus: Literal["sample", "complete"] = "sample",
    level: float = 0.95,
    lang: str = "en",
) -> Noise:
    """Split the uncertainty of each mean by its sources, from answers and judgements that were repeated.

    Parameters
    ----------
    scores : DataFrame or path
        One row per judgement: the metrics, ``sample_id`` or ``question``, and the column of the repeats; optional
        documents and ``system``. Systems are split apart.
    metrics, metric_weights
        As `weighted_means`; the weighted score is split too where there are several metrics.
    repeat : str
        The column that tells the answers to one question apart.
    judge_repeat : str, optional
        The column that tells the judgements of one answer apart; ``judge_repeat`` where there is one.
    baseline, candidate : str, optional
        Two systems of the column ``system``: what is split is the difference, question by question.
    doc : str
        The document column; without it questions are drawn by themselves. Conversations take its place where
        `weighted_means` clusters by them.
    threshold : float or mapping of metric to float, optional
        From which score an answer is right, for ``questions`` and ``passing``; 1 where all scores are 0 or 1.
    costs : mapping, optional
        The price of a new ``question``, of an ``answer`` and of its judgement by the ``judge``, in one currency; 1
        each. `unit_costs` reads what a store knows of them.
    budget : float, optional
        What could be spent; by default as much again as these rows cost.
    corpus : {"sample", "complete"}
        As `weighted_means`: of a complete corpus documents are no source.
    level : float
        Of the intervals.
    lang : {"en", "zh"}
        Of the summary.

    Returns
    -------
    Noise

    Raises
    ------
    RagnbError
        Where no question has two rows, for columns that lack, and for two rows of one answer without
        ``judge_repeat=``.

    Notes
    -----
    Nested variance components by the mean squares, each at least 0: with v the variance of judgements, answers,
    questions and documents (numbers s, r, Q, G), Var(mean) = v_d/G + v_q/(GQ) + v_a/(GQr) + v_j/(GQrs). Of unequal
    numbers the harmonic means count. Searle, Casella & McCulloch, *Variance Components* (1992), chapter 3.

    Examples
    --------
    >>> rows = {"sample_id": ["a", "a", "b", "b", "c", "c"], "repeat": [1, 2] * 3}
    >>> found = noise(pd.DataFrame(rows | {"faithfulness": [0.9, 0.7, 0.4, 0.2, 0.6, 0.8]}))
    >>> found.shares[["source", "share"]].round(2).values.tolist()
    [['questions', 0.86], ['answers and judge', 0.14]]
    """
    frame, chosen = scored(scores, metrics, doc)
    frame = as_pandas(frame)
    judge_repeat = judge_repeat or ("judge_repeat" if "judge_repeat" in frame.columns else None)
    question = next((name for name in ("sample_id", "question") if name in frame.columns), None)
    if question is None:
        raise RagnbError("noise needs a column 'sample_id' or 'question' that repeats")
    need_columns(list(frame.columns), [repeat, *([judge_repeat] if judge_repeat else [])])
    names = [metric.name for metric in chosen if metric.role != "operation"]
    if len([metric for metric in chosen if metric.role == "quality"]) > 1:
        frame = as_pandas(
            weigh(frame, metrics=metrics, metric_weights=metric_weights, doc=doc, strict=False)
        )
        if frame[TOTAL].notna().any():
            names = [TOTAL, *names]
    conversation = conversation_cluster(frame, doc)
    cluster = conversation or doc
    plan = _Plan(
        question,
        repeat,
        judge_repeat,
        cluster if cluster in frame.columns and corpus == "sample" else None,
        "documents" if conversation is None else "conversations",
        _costs(costs),
        budget,
        level,
    )
    parts = _systems(frame, plan, names, baseline, candidate)
    _need_repeats(parts, plan)
    return _split(parts, names, plan, threshold, is_difference=baseline is not None, lang=lang)


class _Plan(NamedTuple):
    question: str
    repeat: str
    judge_repeat: str | None
    doc: str | None
    clusters: str
    costs: Mapping[str, float]
    budget: float | None
    level: float

    @property
    def keys(self) -> list[str]:
        """What tells one judgement from another."""
        if self.judge_repeat is None:
            judge = []
        else:
            judge = [self.judge_repeat]
        return [self.question, self.repeat, *judge]


def _costs(costs: Mapping[str, float] | None) -> Mapping[str, float]:
    if costs is None:
        return dict.fromkeys(_PRICED, 1.0)
    for name, price in costs.items():
        need_known("costs", name, [*_PRICED])
        if not price >= 0:
            raise RagnbError(f"costs[{name!r}]={price!r}: a price is 0 or more")
    lacking = [name for name in _PRICED if name not in costs]
    if lacking:
        whole = {name: costs.get(name, 0) for name in _PRICED}
        raise RagnbError(
            f"costs names no price of {listing(lacking)}; give each, 0 where it costs nothing: costs={whole}"
        )
    return costs


def _systems(
    frame: pd.DataFrame,
    plan: _Plan,
    names: list[str],
    baseline: str | None,
    candidate: str | None,
) -> dict[Any, pd.DataFrame]:
    """Return the rows of each system, or the differences of two."""
    if "system" not in frame.columns:
        if baseline is not None:
            raise RagnbError(f"baseline={baseline!r}: no column 'system' names two systems")
        return {None: frame}
    parts = {str(name): rows for name, rows in frame.groupby("system", sort=False)}
    if baseline is None:
        return parts
    need_known("baseline", baseline, [*parts])
    others = [name for name in parts if name != baseline]
    if candidate is None and len(others) != 1:
        raise RagnbError(f"which system beside {baseline!r}? candidate= (have: {listing(others)})")
    new = candidate or others[0]
    need_known("candidate", new, others)
    return {new: _difference(parts[new], parts[baseline], plan, names)}


def _difference(
    new: pd.DataFrame, old: pd.DataFrame, plan: _Plan, names: list[str]
) -> pd.DataFrame:
    """Return the differences of two systems by question, repeat and judgement."""
    columns = [*plan.keys, *names]
    both = new.merge(old[columns], on=plan.keys, suffixes=("", "__base"))
    if both.empty:
        raise RagnbError(
            f"the systems share no {listing(plan.keys)}; number the repeats of both from 1 on"
        )
    for name in names:
        both[name] = both[name] - both[f"{name}__base"]
    return both


def _need_repeats(parts: Mapping[Any, pd.DataFrame], plan: _Plan) -> None:
    """Refuse rows that say nothing about repeats, or that repeat an answer without saying so."""
    for rows in parts.values():
        again = rows.duplicated(plan.keys)
        if again.any():
            first = rows.loc[again, plan.keys].iloc[0].to_dict()
            raise RagnbError(
                f"two rows have {first}; name what tells them apart: repeat= or judge_repeat="
            )
        if rows[plan.question].nunique() < 2:
            raise RagnbError(
                "noise of one question alone says nothing of others; give two questions or more"
            )
    if all(not rows.duplicated(plan.question).any() for rows in parts.values()):
        raise RagnbError(
            "no question has two rows, so nothing tells the noise of answers from that of questions; answer the "
            "same questions again and number the runs in a column 'repeat'"
        )


class _Sums(NamedTuple):
    """Sums by cluster, a row each, from which every component follows; see `_components`."""

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


def _sums(rows: pd.DataFrame, name: str, plan: _Plan) -> tuple[_Sums, bool]:
    """Return the sums of one metric by document, or by question where no document has two."""
    rows = rows.dropna(subset=[name])
    value = rows[name].astype(float)
    rows = rows.assign(x=value - value.mean())
    by_answer = rows.groupby([plan.question, plan.repeat], sort=False)["x"]
    answers = by_answer.agg(mean="mean", calls="size", var="var").reset_index()
    answers["ss"] = answers["var"].fillna(0.0) * (answers["calls"] - 1)
    by_question = answers.groupby(plan.question, sort=False)
    asked = by_question.agg(
        m=("mean", "mean"), r=("mean", "size"), var=("mean", "var"), ss_j=("ss", "sum")
    )
    asked["df_j"] = by_question["calls"].sum() - by_question.size()
    asked["per_call"] = (1 / answers["calls"]).groupby(answers[plan.question], sort=False).sum()
    asked["ss_a"] = asked["var"].fillna(0.0) * (asked["r"] - 1)
    asked["cluster"] = asked.index
    has_documents = False
    if plan.doc is not None:
        first = rows.drop_duplicates(plan.question).set_index(plan.question)[plan.doc]
        named = first.reindex(asked.index)
        asked["cluster"] = named.astype(object).where(named.notna(), asked.index.to_series())
        n_documents = asked["cluster"].nunique()
        has_documents = 1 < n_documents < len(asked)
        if not has_documents:
            asked["cluster"] = asked.index
    asked["per_answer"] = 1 / asked["r"]
    asked["df_a"] = asked["r"] - 1
    groups = asked.groupby("cluster", sort=False)
    table = groups[["ss_j", "df_j", "ss_a", "df_a", "r", "per_call", "per_answer"]].sum()
    table["n"] = groups.size()
    table["m"] = groups["m"].mean()
    table["ss_q"] = groups["m"].var().fillna(0.0) * (table["n"] - 1)
    column = {key: table[key].to_numpy(dtype=float) for key in table}
    return (
        _Sums(
            column["ss_j"],
            column["df_j"],
            column["ss_a"],
            column["df_a"],
            column["ss_q"],
            column["n"] - 1,
            column["r"],
            column["n"],
            column["per_call"],
            column["per_answer"],
            1 / column["n"],
            np.ones(len(table)),
            column["m"],
            column["m"] ** 2,
        ),
        has_documents,
    )


class _Components(NamedTuple):
    """Variances of documents, questions, answers and judgements, and how many there are of each."""

    variances: Array  # (..., 4)
    numbers: Array  # (..., 4): G, GQ, GQr, GQrs


def _components(sums: _Sums, has_documents: bool) -> _Components:
    """Return the components of sums that may have an axis of resamples."""

    def ratio(top: Array, bottom: Array) -> Array:
        return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)

    s = ratio(sums.n_answers, sums.per_call)
    r = ratio(sums.n_questions, sums.per_answer)
    within = ratio(sums.judgements, sums.judgements_df)
    of_answers = ratio(sums.answers, sums.answers_df)
    between = ratio(sums.squares - ratio(sums.means**2, sums.clusters), sums.clusters - 1)
    if has_documents:
        of_questions = ratio(sums.questions, sums.questions_df)
    else:
        of_questions = between
    judge = within
    answers = np.maximum(of_answers - ratio(within, s), 0.0)
    # Where no answer was drawn anew, answers cannot be told from questions.
    questions = np.maximum(of_questions - ratio(np.maximum(of_answers, ratio(within, s)), r), 0.0)
    documents = np.zeros_like(judge)
    if has_documents:
        per_document = ratio(sums.clusters, sums.per_question)
        documents = np.maximum(between - ratio(of_questions, per_document), 0.0)
    n_answers = sums.n_questions * r
    numbers = [sums.clusters, sums.n_questions, n_answers, n_answers * s]
    return _Components(
        np.stack([documents, questions, answers, judge], axis=-1), np.stack(numbers, axis=-1)
    )


def _of_all(sums: _Sums, has_documents: bool) -> _Components:
    """Return the components of all clusters together."""
    return _components(_Sums(*(np.atleast_1d(part.sum()) for part in sums)), has_documents)


def _merged_sources(sums: _Sums, clusters: str | None) -> dict[str, list[int]]:
    """Return the names of the sources that the rows tell apart, each with its components."""
    has_answers = sums.answers_df.sum() > 0
    has_judge = sums.judgements_df.sum() > 0
    sources: dict[str, list[int]] = {} if clusters is None else {clusters: [0]}
    if not has_answers:
        return sources | {"questions and answers": [1, 2], "judge": [3]}
    sources["questions"] = [1]
    if not has_judge:
        return sources | {"answers and judge": [2, 3]}
    return sources | {"answers": [2], "judge": [3]}


def _shares(sums: _Sums, has_documents: bool, plan: _Plan) -> pd.DataFrame:
    """Return the share of each source with its jackknife interval."""
    sources = _merged_sources(sums, plan.clusters if has_documents else None)
    now = _of_all(sums, has_documents)
    each = _components(_Sums(*(part.sum() - part for part in sums)), has_documents)

    def of_mean(found: _Components) -> Array:
        nothing = np.zeros_like(found.variances)
        some = found.numbers > 0  # none are left where the one cluster with scores is left out
        parts: Array = np.divide(found.variances, found.numbers, out=nothing, where=some)
        columns = [parts[..., places].sum(axis=-1) for places in sources.values()]
        of_sources: Array = np.stack(columns, axis=-1)
        whole = of_sources.sum(axis=-1, keepdims=True)
        nothing = np.full_like(of_sources, np.nan)
        shares: Array = np.divide(of_sources, whole, out=nothing, where=whole > 0)
        return shares

    share = of_mean(now)[0]
    shares = of_mean(each)
    g = len(shares)
    spread = ((shares - shares.mean(axis=0)) ** 2).sum(axis=0)
    if g > 2:
        se = np.sqrt((g - 1) / g * spread)
    else:
        se = np.full(len(share), np.nan)
    half = stats.t_quantile(plan.level, max(g - 1, 1)) * se
    table = pd.DataFrame(
        {
            "source": [*sources],
            "n": [round(float(now.numbers[0, places[0]])) for places in sources.values()],
            "variance": [now.variances[0, places].sum() for places in sources.values()],
            "share": share,
            "low": np.clip(share - half, 0, 1),
            "high": np.clip(share + half, 0, 1),
            "n_clusters": g,
        }
    )
    return table


def _steps(sums: _Sums, has_documents: bool, plan: _Plan) -> pd.DataFrame:
    """Return what the standard error becomes if the budget buys more of one thing."""
    components = _of_all(sums, has_documents)
    v_d, v_q, v_a, v_j = components.variances[0]
    g, n_q, n_a, n_j = components.numbers[0]
    r = n_a / n_q
    s = n_j / n_a
    answer = plan.costs["answer"] + s * plan.costs["judge"]
    question = plan.costs["question"] + r * answer
    budget = n_q * question if plan.budget is None else plan.budget

    def variance(g: float, n_q: float, n_a: float, n_j: float) -> float:
        of_documents = v_d / g if has_documents else 0.0
        return float(of_documents + v_q / n_q + v_a / n_a + v_j / n_j)

    now = variance(g, n_q, n_a, n_j)
    options: dict[str, tuple[float, float]] = {}
    if question > 0:
        more = budget / question
        if has_documents:
            grown = 1 + more / n_q
            options[plan.clusters] = (more * g / n_q, now / grown)
        options["questions"] = (
            more,
            variance(g, n_q + more, n_a + more * r, n_j + more * r * s),
        )
    sources = _merged_sources(sums, plan.clusters if has_documents else None)
    if answer > 0 and "questions" in sources:
        more = budget / answer
        options["answers"] = (more, variance(g, n_q, n_a + more, n_j + more * s))
    if plan.costs["judge"] > 0 and "judge" in sources:
        more = budget / plan.costs["judge"]
        options["judge"] = (more, variance(g, n_q, n_a, n_j + more))
    if options:
        best = min(options, key=lambda name: options[name][1])
    else:
        best = ""
    return pd.DataFrame(
        {
            "spend_on": [*options],
            "more": [more for more, _ in options.values()],
            "se_now": np.sqrt(now),
            "se_after": [np.sqrt(after) for _, after in options.values()],
            "best": [name == best for name in options],
        }
    )


def _worth(sums: _Sums, has_documents: bool) -> tuple[float, float]:
    """Return the number of repeats, and how many times the questions without repeats they are worth."""
    components = _of_all(sums, has_documents)
    _, v_q, v_a, v_j = components.variances[0]
    _, n_q, n_a, n_j = components.numbers[0]
    r = n_a / n_q
    s = n_j / n_a
    of_answer = v_a + v_j / s
    bottom = v_q + of_answer / r
    if bottom > 0:
        return float(r), float((v_q + of_answer) / bottom)
    return float(r), float("nan")


def _threshold_of(
    values: pd.Series[Any], name: str, threshold: float | Mapping[str, float] | None
) -> float | None:
    if isinstance(threshold, Mapping):
        return threshold.get(name)
    if threshold is not None:
        return threshold
    if values.dropna().isin([0, 1]).all():
        return 1.0
    return None


def _questions(rows: pd.DataFrame, name: str, plan: _Plan, at: float | None) -> pd.DataFrame:
    """Return each question over its repeats; judgements of one answer are averaged."""
    answers = (
        rows.dropna(subset=[name])
        .groupby([plan.question, plan.repeat], sort=False)[name]
        .mean()
        .reset_index()
    )
    answers["right"] = np.nan
    if at is not None:
        # What rounding leaves of a mean of judgements that are all at the threshold.
        answers["right"] = (answers[name] >= at - 1e-12).astype(float)
    groups = answers.groupby(plan.question, sort=False)
    table = groups.agg(
        n=(name, "size"), mean=(name, "mean"), sd=(name, "std"), n_right=("right", "sum")
    ).reset_index()
    if at is None:
        table["n_right"] = np.nan
    flickers = (table["n_right"] > 0) & (table["n_right"] < table["n"])
    return table.assign(flickers=flickers)


def _passing(table: pd.DataFrame, rows: pd.DataFrame, plan: _Plan) -> pd.DataFrame:
    """Return the share of questions that are right in all of k repeats, over the draws of k from those there are.

    Notes
    -----
    Σ C(right, k)/C(n, k) over the questions (the unbiased form of pass^k).
    """
    most = int(table["n"].min()) if len(table) else 0
    if table["n_right"].isna().any():
        most = 0
    documents = None
    if plan.doc is not None:
        documents = rows.drop_duplicates(plan.question).set_index(plan.question)[plan.doc]
    out = []
    for k in range(1, most + 1):
        chance = np.ones(len(table))
        for i in range(k):
            chance *= np.maximum(table["n_right"] - i, 0) / (table["n"] - i)
        frame = pd.DataFrame({"sample_id": table[plan.question], "passed": chance})
        if documents is not None:
            frame["doc_name"] = table[plan.question].map(documents).to_numpy()
        row = moments(frame, metrics=Metric("passed")).means(level=plan.level).iloc[0]
        out.append({"k": k, **{key: row[key] for key in ("value", "low", "high", "n")}})
    return pd.DataFrame(out, columns=["k", "value", "low", "high", "n"])


def _split(
    parts: Mapping[Any, pd.DataFrame],
    names: list[str],
    plan: _Plan,
    threshold: float | Mapping[str, float] | None,
    *,
    is_difference: bool,
    lang: str,
) -> Noise:
    made: dict[str, list[pd.DataFrame]] = {
        "shares": [],
        "steps": [],
        "questions": [],
        "passing": [],
    }
    summary = ""
    for system, rows in parts.items():
        for name in names:
            if rows[name].notna().sum() < 2:
                continue
            sums, has_documents = _sums(rows, name, plan)
            if is_difference:
                at = None
            else:
                at = _threshold_of(rows[name], name, threshold)
            table = _questions(rows, name, plan, at)
            found = {
                "shares": _shares(sums, has_documents, plan),
                "steps": _steps(sums, has_documents, plan),
                "questions": table,
                "passing": _passing(table, rows, plan),
            }
            summary = summary or _summary(found["shares"], sums, has_documents, lang)
            for key, frame in found.items():
                frame.insert(0, "metric", name)
                if system is not None:
                    frame.insert(0, "system", system)
                made[key].append(frame)
    if not made["shares"]:
        raise RagnbError(f"none of {listing(names)} has two scores, so there is nothing to split")
    whole = {key: pd.concat(frames, ignore_index=True) for key, frames in made.items()}
    return Noise(**whole, summary=summary)


def _summary(shares: pd.DataFrame, sums: _Sums, has_documents: bool, lang: str) -> str:
    """Return the shares in words, and what the repeats are worth."""
    say = texts.load(lang)
    if shares["share"].isna().any():
        return say("noise.none")
    parts = [
        say("noise.part", share=f"{100 * row['share']:.0f}", source=say(f"noise.{row['source']}"))
        for row in shares.to_dict("records")
    ]
    said = say("noise.shares", parts=say("list.join").join(parts))
    repeats, worth = _worth(sums, has_documents)
    if repeats > 1 and worth == worth:
        said += say("noise.worth", repeats=f"{repeats:.3g}", worth=f"{worth:.2g}")
    return said
