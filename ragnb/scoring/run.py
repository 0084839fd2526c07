"""Cells done, and laid beside their cases as the scores frame."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.schema import METRICS, Metric, Profile, note_row
from ragnb.scoring.asking import Asker, Nothing
from ragnb.scoring.plan import Local, Plan, in_range, planned
from ragnb.scoring.ragas import Embed, collected, imported
from ragnb.scoring.relevance import relevance
from ragnb.scoring.table import EMBEDDED, SCORERS, by_wording
from ragnb.store import Cell, Client, Estimate, Outcome, Run, StoreLike, estimate, opened, run_cells, systems_of


def evaluate(
    cases: Any,
    *,
    metrics: Iterable[str | Metric] | str | Metric | None = None,
    llm: Client | Profile | None = None,
    embeddings: Client | Profile | Local | None = None,
    store: StoreLike = None,
    parameters: Mapping[str, Any] | None = None,
    refusal: Iterable[str] = ("not in context",),
    lang: str = "en",
    name: str = "",
    progress: bool | None = None,
) -> pd.DataFrame:
    """Score cases, and return them with a column for each metric.

    Parameters
    ----------
    cases : path, frame, records or sequence of EvalCase
        What `read_cases` reads.
    metrics : names, optional
        Some of ``scoring.SCORERS``. By default, with a judge: faithfulness, answer_relevancy, context_recall,
        context_precision, context_relevance, noise_sensitivity, factual_correctness, semantic_similarity and
        answer_correctness; without one the embedded checks of wording: support_lexical, number_support and
        name_support.
    llm : Client or Profile, optional
        The judge. A Client has limits and budgets of its own.
    embeddings : Client, Profile or function, optional
        For answer_relevancy, semantic_similarity and answer_correctness; a function takes a list of texts and
        returns one vector a text, and may be a coroutine function.
    store : Store or path, optional
        Where each cell is kept. A second run pays only for what is not there; without a store nothing outlives
        the call.
    parameters : mapping, optional
        Sent with every call of the judge, over temperature 0 and a JSON response format; None takes one out.
    refusal : sequence of str
        Answers, trimmed and in lower case, that make no statement: the checks of wording do not apply to them.
    lang : {"en", "zh"}
        Of our own prompt (context_relevance) and of the notes. The prompts of ragas are English.
    name : str
        Of the run, for ``ragnb runs``.
    progress : bool, optional
        A progress bar; by default in a terminal and in a notebook.

    Returns
    -------
    DataFrame
        The cases, in their order, with all their columns, and for each metric ``<metric>`` (in [0, 1]; NaN
        without a value), ``<metric>__status`` (``ok``, ``not_applicable``, ``failed``, ``missing``) and
        ``<metric>__reason``. A ratio of 0/0 is ``missing``, and so is a cell that a used-up budget left open.
        ``attrs["spent"]`` holds ``run, calls, tokens_in, tokens_out`` of all the run's cells, ``attrs["failed"]``
        the raw replies of the failed ones, ``attrs["notes"]`` what must be known to read the scores.

    Raises
    ------
    RagnbError
        For cases or metrics that are not understood, or a metric without its judge or embeddings.
    MissingExtraError
        Without the extra ``ragas``, for the metrics that ragas computes.
    Stop
        Where the endpoint refuses every call (key, model). What was done before is kept.

    Notes
    -----
    Metrics by ragas 0.4 are its current collections; context_precision is judged against the reference answer,
    factual_correctness is rounded to two decimals, a negative answer_relevancy counts as 0. A case whose
    ``retrieved_contexts`` is ``[]`` has context_recall 0, and no context_precision. ``scoring.expected`` counts
    the calls beforehand.

    Examples
    --------
    >>> cases = pd.DataFrame({"question": ["How long?"], "answer": ["36 months."],
    ...                       "retrieved_contexts": [["The warranty is 24 months."]]})
    >>> scores = evaluate(cases)
    >>> scores[["number_support", "number_support__reason"]]
       number_support   number_support__reason
    0             0.0  not in the passages: 36
    """
    plan = planned(cases, metrics, llm, embeddings, parameters, lang, refusal)
    if any(scorer.by == "ragas" for scorer in plan.scorers):
        imported()  # what cannot be imported stops the run here, not each cell of it
    with opened(store) as kept:
        about = {"metrics": [s.name for s in plan.scorers], "lang": lang, "systems": systems_of(plan.cases)}
        run = run_cells(
            plan.cells(), _work(plan), kept, clients=plan.clients, name=name, about=about, progress=progress
        )
    return _scores(plan, run)


def expected(cases: Any, *, store: StoreLike = None, **options: Any) -> Estimate:
    """Count the calls and tokens that `evaluate` would need; nothing is sent, and nothing is written.

    Parameters
    ----------
    cases, store, **options
        As for `evaluate`: `metrics`, `llm`, `embeddings`, `parameters`, `refusal`, `lang`.

    Returns
    -------
    Estimate
        Calls of the judge and of the embeddings; what the store has already is not counted. Replies that have
        to be asked for again come on top. Calls of a function count as the calls of an endpoint would.

    Examples
    --------
    >>> case = {"question": "How long?", "answer": "36 months.", "retrieved_contexts": ["24 months."]}
    >>> profile = Profile(base_url="http://127.0.0.1:8080/v1", model="small")
    >>> expected([case], metrics="faithfulness", llm=profile).calls
    2
    """
    cells = planned(cases, **options).cells()
    with opened(store, new=False) as kept:
        return estimate(cells, kept)


def _work(plan: Plan) -> Callable[[Cell], Awaitable[Outcome]]:
    """What one cell takes: with no passage what follows from that, else whoever computes the metric."""
    asker = Asker(plan.llm, plan.parameters) if plan.llm is not None else None
    embed = _embedding(plan.embeddings)

    async def work(cell: Cell) -> Outcome:
        scorer, inputs = SCORERS[cell.what], cell.inputs
        if "retrieved_contexts" in inputs and not inputs["retrieved_contexts"] and scorer.nothing is not None:
            if isinstance(scorer.nothing, str):
                return _missing(scorer.nothing)
            return Outcome("ok", scorer.nothing, "nothing was retrieved")
        if scorer.by == "wording":
            value, said = by_wording(scorer.name, inputs["answer"], inputs["retrieved_contexts"])
            return _missing("the answer holds none: 0/0") if math.isnan(value) else Outcome("ok", value, said)
        try:
            if scorer.by == "ours" and asker is not None:
                found = await relevance(asker, inputs["question"], inputs["retrieved_contexts"], plan.lang)
            else:
                found = await collected(scorer, inputs, asker, embed)
        except Nothing as why:
            return _missing(str(why))
        low = METRICS[scorer.name].low if scorer.name in METRICS else 0.0
        value_or_none, said = in_range(found, low=low, cosine=bool(scorer.embeds))
        return Outcome.failed(said or "") if value_or_none is None else Outcome("ok", value_or_none, said)

    return work


def _missing(why: str) -> Outcome:
    """Done and paid for, and without a value: it is not tried again, and is no failure."""
    return Outcome.of({"missing": why})


def _embedding(embeddings: Client | Local | None) -> Embed | None:
    if embeddings is None or isinstance(embeddings, Client):
        return None if embeddings is None else embeddings.embed

    async def embed(given: Sequence[str]) -> list[list[float]]:
        found = embeddings(list(given))
        found = await found if inspect.isawaitable(found) else found
        vectors: list[list[float]] = np.asarray(found, dtype=float).reshape(len(given), -1).tolist()
        return vectors

    return embed


def _scores(plan: Plan, run: Run) -> pd.DataFrame:
    """The cells beside their cases: one row a case, three columns a metric."""
    rows, width = run.frame.to_dict("records"), len(plan.scorers)
    added: dict[str, list[Any]] = {}
    for place, scorer in enumerate(plan.scorers):
        found = [_read(row) for row in rows[place::width]]
        for suffix, part in zip(("", "__status", "__reason"), zip(*found, strict=True), strict=False):
            added[f"{scorer.name}{suffix}"] = list(part)
    kept = plan.cases.drop(columns=[name for name in added if name in plan.cases])
    scores = pd.concat([kept, pd.DataFrame(added, index=kept.index)], axis=1)
    taken = run.frame[["calls", "tokens_in", "tokens_out"]].apply(pd.to_numeric, errors="coerce").sum()
    scores.attrs["spent"] = {"run": run.id, **taken.astype(int).to_dict(), "stopped": run.stopped}
    shown = ("sample_id", "what", "reason", "reply")
    scores.attrs["failed"] = [{key: row[key] for key in shown} for row in rows if row["status"] == "failed"]
    scores.attrs["notes"] = list(_notes(plan))
    return scores


def _read(row: Mapping[Any, Any]) -> tuple[float, str, str | None]:
    """Value, status and reason of a cell."""
    if row["status"] == "pending":
        return math.nan, "missing", "not scored yet; run it again"
    if isinstance(row["value"], dict):
        return math.nan, "missing", row["value"]["missing"]
    return math.nan if row["value"] is None else float(row["value"]), row["status"], row["reason"]


def _notes(plan: Plan) -> Iterable[dict[str, str]]:
    say = texts.load(plan.lang)
    names = [scorer.name for scorer in plan.scorers]
    embedded = [name for name in names if name in EMBEDDED]
    if embedded:
        told = ", ".join(embedded)
        yield note_row("wording_only", told, say("note.wording_only", names=told))
    if plan.left_out:
        left = ", ".join(plan.left_out)
        yield note_row("no_embeddings", left, say("note.no_embeddings", metrics=left))
