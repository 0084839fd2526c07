"""What repeated answers tell: where the uncertainty of a mean comes from, and how often a question is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, listing, need_columns, need_known
from ragnb.schema import TOTAL, Metric
from ragnb.weights.columns import MetricsArgument, as_pandas, scored
from ragnb.weights.components import (
    ByCluster,
    Design,
    by_cluster,
    document_of,
    shares_of,
    steps_of,
    worth_of,
)
from ragnb.weights.conversations import conversation_cluster
from ragnb.weights.moments import moments
from ragnb.weights.reductions import weigh

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
    if judge_repeat is None and "judge_repeat" in frame.columns:
        judge_repeat = "judge_repeat"
    question = next((name for name in ("sample_id", "question") if name in frame.columns), None)
    if question is None:
        raise RagnbError("noise needs a column 'sample_id' or 'question' that repeats")
    keys = [repeat] if judge_repeat is None else [repeat, judge_repeat]
    need_columns(list(frame.columns), keys)
    names = [metric.name for metric in chosen if metric.role != "operation"]
    n_quality = sum(metric.role == "quality" for metric in chosen)
    if n_quality > 1:
        weighed = weigh(
            frame, metrics=metrics, metric_weights=metric_weights, doc=doc, strict=False
        )
        frame = as_pandas(weighed)
        if frame[TOTAL].notna().any():
            names = [TOTAL, *names]
    conversation = conversation_cluster(frame, doc)
    cluster = conversation or doc
    # Of a complete corpus the documents are all there are, and bring no uncertainty.
    is_drawn = cluster in frame.columns and corpus == "sample"
    design = Design(
        question=question,
        repeat=repeat,
        judge_repeat=judge_repeat,
        doc=cluster if is_drawn else None,
        clusters="documents" if conversation is None else "conversations",
        costs=_costs(costs),
        budget=budget,
        level=level,
    )
    parts = _systems(frame, design, names, baseline, candidate)
    _need_repeats(parts, design)
    return _split(parts, names, design, threshold, is_difference=baseline is not None, lang=lang)


def _costs(costs: Mapping[str, float] | None) -> Mapping[str, float]:
    if costs is None:
        return dict.fromkeys(_PRICED, 1.0)
    for name, price in costs.items():
        need_known("costs", name, [*_PRICED])
        if not price >= 0:
            raise RagnbError(f"costs[{name!r}]={price!r}: a price is 0 or more")
    lacking = [name for name in _PRICED if name not in costs]
    if lacking:
        # Taken as 0, a price that was left out would make what it is for look cheaper than it is.
        whole = {name: costs.get(name, 0) for name in _PRICED}
        raise RagnbError(
            f"costs names no price of {listing(lacking)}; give each, 0 where it costs nothing: costs={whole}"
        )
    return costs


def _systems(
    frame: pd.DataFrame,
    design: Design,
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
    return {new: _difference(parts[new], parts[baseline], design, names)}


def _difference(
    new: pd.DataFrame, old: pd.DataFrame, design: Design, names: list[str]
) -> pd.DataFrame:
    """Return the differences of two systems by question, repeat and judgement."""
    columns = [*design.keys, *names]
    both = new.merge(old[columns], on=design.keys, suffixes=("", "__base"))
    if both.empty:
        raise RagnbError(
            f"the systems share no {listing(design.keys)}; number the repeats of both from 1 on"
        )
    for name in names:
        both[name] = both[name] - both[f"{name}__base"]
    return both


def _need_repeats(parts: Mapping[Any, pd.DataFrame], design: Design) -> None:
    """Refuse rows that say nothing about repeats, or that repeat an answer without saying so."""
    for rows in parts.values():
        again = rows.duplicated(design.keys)
        if again.any():
            first = rows.loc[again, design.keys].iloc[0].to_dict()
            raise RagnbError(
                f"two rows have {first}; name what tells them apart: repeat= or judge_repeat="
            )
        if rows[design.question].nunique() < 2:
            raise RagnbError(
                "noise of one question alone says nothing of others; give two questions or more"
            )
    if all(not rows.duplicated(design.question).any() for rows in parts.values()):
        raise RagnbError(
            "no question has two rows, so nothing tells the noise of answers from that of questions; answer the "
            "same questions again and number the runs in a column 'repeat'"
        )


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


def _questions(rows: pd.DataFrame, name: str, design: Design, at: float | None) -> pd.DataFrame:
    """Return each question over its repeats; judgements of one answer are averaged."""
    by_answer = rows.dropna(subset=[name]).groupby([design.question, design.repeat], sort=False)
    answers = by_answer[name].mean().reset_index()
    answers["right"] = np.nan
    if at is not None:
        # What rounding leaves of a mean of judgements that are all at the threshold.
        answers["right"] = (answers[name] >= at - 1e-12).astype(float)
    groups = answers.groupby(design.question, sort=False)
    table = groups.agg(
        n=(name, "size"), mean=(name, "mean"), sd=(name, "std"), n_right=("right", "sum")
    ).reset_index()
    if at is None:
        table["n_right"] = np.nan
    flickers = (table["n_right"] > 0) & (table["n_right"] < table["n"])
    return table.assign(flickers=flickers)


def _passing(table: pd.DataFrame, rows: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Return the share of questions that are right in all of k repeats, over the draws of k from those there are.

    Notes
    -----
    Σ C(right, k)/C(n, k) over the questions (the unbiased form of pass^k).
    """
    # Of the question with the fewest repeats; none where right answers are not known.
    most = int(table["n"].min()) if len(table) else 0
    if table["n_right"].isna().any():
        most = 0
    documents = None
    if design.doc is not None:
        documents = document_of(rows, design)
    found = []
    for k in range(1, most + 1):
        # C(right, k)/C(n, k), a factor at a time.
        chance = np.ones(len(table))
        for drawn in range(k):
            chance *= np.maximum(table["n_right"] - drawn, 0) / (table["n"] - drawn)
        frame = pd.DataFrame({"sample_id": table[design.question], "passed": chance})
        if documents is not None:
            frame["doc_name"] = table[design.question].map(documents).to_numpy()
        mean = moments(frame, metrics=Metric("passed")).means(level=design.level).iloc[0]
        found.append({"k": k, **{key: mean[key] for key in ("value", "low", "high", "n")}})
    return pd.DataFrame(found, columns=["k", "value", "low", "high", "n"])


def _split(
    parts: Mapping[Any, pd.DataFrame],
    names: list[str],
    design: Design,
    threshold: float | Mapping[str, float] | None,
    *,
    is_difference: bool,
    lang: str,
) -> Noise:
    """Return the four tables of every system and metric, one below another, and the first shares in words."""
    tables: dict[str, list[pd.DataFrame]] = {
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
            clustered = by_cluster(rows, name, design)
            at = None
            if not is_difference:  # a difference of scores is neither right nor wrong
                at = _threshold_of(rows[name], name, threshold)
            questions = _questions(rows, name, design, at)
            of_metric = {
                "shares": shares_of(clustered, design),
                "steps": steps_of(clustered, design),
                "questions": questions,
                "passing": _passing(questions, rows, design),
            }
            summary = summary or _summary(of_metric["shares"], clustered, lang)
            for key, frame in of_metric.items():
                frame.insert(0, "metric", name)
                if system is not None:
                    frame.insert(0, "system", system)
                tables[key].append(frame)
    if not tables["shares"]:
        raise RagnbError(f"none of {listing(names)} has two scores, so there is nothing to split")
    whole = {key: pd.concat(frames, ignore_index=True) for key, frames in tables.items()}
    return Noise(**whole, summary=summary)


def _summary(shares: pd.DataFrame, clustered: ByCluster, lang: str) -> str:
    """Return the shares in words, and what the repeats are worth."""
    say = texts.load(lang)
    if shares["share"].isna().any():
        return say("noise.none")
    parts = []
    for row in shares.to_dict("records"):
        source = say(f"noise.{row['source']}")
        parts.append(say("noise.part", share=f"{100 * row['share']:.0f}", source=source))
    summary = say("noise.shares", parts=say("list.join").join(parts))
    repeats, worth = worth_of(clustered)
    if repeats > 1 and not np.isnan(worth):
        summary += say("noise.worth", repeats=f"{repeats:.3g}", worth=f"{worth:.2g}")
    return summary
