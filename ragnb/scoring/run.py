"""Cases → cells: what each metric needs and who computes it, the scores frame, and the answers to be scored."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, need_known
from ragnb.readers import read_cases
from ragnb.schema import (
    METRICS,
    Metric,
    Profile,
    keep_results,
    metric_list,
    missing_fields,
    note_row,
)
from ragnb.scoring import gold, lexical, ragas
from ragnb.scoring.answering import called
from ragnb.scoring.asking import PARAMETERS, Asker, Nothing, relevance
from ragnb.store.budget import count_tokens
from ragnb.store.calls import CallFailed, Cell, Outcome
from ragnb.store.client import Client
from ragnb.store.loop import Estimate, Run, estimate, run_cells
from ragnb.store.store import StoreLike, opened, systems_of

Local = Callable[[list[str]], Any]
_PER_CALL = 1000  # tokens of a prompt's own text and its reply, about
_WITHOUT_MODEL = {"wording": "ragnb wording 1", "gold": "ragnb gold passages 1"}
"""What a cell that needs no model is computed by: another number here, and stores compute it again."""


@dataclass(frozen=True)
class Scorer:
    """A metric that can be computed.

    Parameters
    ----------
    name : str
        Its column; where METRICS knows the metric, its name there.
    needs : sequence of str
        Case columns; a case that lacks one is ``not_applicable``.
    by : {"ragas", "ours", "wording", "gold"}
        Who computes it: ragas' current collections, our own prompt, or no model at all: by the wording of the
        answer, or by the gold passages.
    made_of : str
        The class in ``ragas.metrics.collections``, or the function in `ragnb.scoring.lexical` or
        `ragnb.scoring.gold`.
    calls : sequence of int
        Calls of the judge for one case: a fixed number, and a number for each retrieved passage.
    embeds : int
        Calls of the embeddings for one case.
    nothing : float or str, optional
        What holds where the system retrieved nothing: the value, or why there is none. None leaves it to the
        judge.

    Examples
    --------
    >>> SCORERS["noise_sensitivity"].judge_calls({"retrieved_contexts": ["a", "b"]})
    7
    """

    name: str
    needs: Sequence[str]
    by: Literal["ragas", "ours", "wording", "gold"]
    made_of: str
    calls: Sequence[int] = (0, 0)
    embeds: int = 0
    nothing: float | str | None = None

    def follows(self, inputs: Mapping[str, Any]) -> bool:
        """Say whether what holds follows from nothing being retrieved."""
        return self.nothing is not None and not inputs.get("retrieved_contexts", True)

    def judge_calls(self, inputs: Mapping[str, Any]) -> int:
        """Calls of the judge that one case is expected to need, without retries."""
        fixed, each = self.calls
        return fixed + each * len(inputs.get("retrieved_contexts") or ())


_TABLE = tomllib.loads(files(__package__).joinpath("scorers.toml").read_text("utf-8"))
SCORERS: Mapping[str, Scorer] = MappingProxyType(
    {name: Scorer(name, **row) for name, row in _TABLE.items()}
)
"""Every metric that `evaluate` computes, by name."""

JUDGED = tuple(name for name, scorer in SCORERS.items() if any(scorer.calls) or scorer.embeds)
"""Those that a judge or embeddings compute: the default where there is a judge."""

EMBEDDED = tuple(name for name, scorer in SCORERS.items() if scorer.by == "wording")
"""Those that need no model and no key: the default without a judge."""

BY_GOLD = tuple(name for name, scorer in SCORERS.items() if scorer.by == "gold")
"""Those that need gold passages and no model: in the default where some case has gold passages."""

_BY_ANSWER = "context_precision_by_answer"  # which asks a model what gold passages say for nothing


def default_metrics(
    *, has_judge: bool, has_vectors: bool = True, has_gold: bool = False
) -> list[str]:
    """Return the metrics that are computed where nobody names any.

    Examples
    --------
    >>> "answer_relevancy" in default_metrics(has_judge=True, has_vectors=False)
    False
    >>> "context_precision" in default_metrics(has_judge=True, has_gold=True)
    True
    """
    names = {*(JUDGED if has_judge else EMBEDDED)}
    if has_gold:
        names = names.union(BY_GOLD) - {_BY_ANSWER}
    if not has_vectors:
        names = {name for name in names if not SCORERS[name].embeds}
    return [name for name in SCORERS if name in names]  # in the order of the table


class Plan:
    """The metrics of one run and their models; metrics that cannot be computed are refused."""

    def __init__(
        self,
        cases: Any,
        *,
        metrics: Any = None,
        client: Client | Profile | None = None,
        embeddings: Client | Profile | Local | None = None,
        parameters: Mapping[str, Any] | None = None,
        lang: str = "en",
        refusal: Iterable[str] = ("not in context",),
    ) -> None:
        self.client = Client(client) if isinstance(client, Profile) else client
        self.embeddings = Client(embeddings) if isinstance(embeddings, Profile) else embeddings
        named = metric_list(metrics)
        self.left_out = list[str]()  # of the default, for want of embeddings
        names = [metric if isinstance(metric, str) else metric.name for metric in named or ()]
        self.lang = lang
        self.cases = read_cases(cases)
        self.has_gold = gold.has_gold(self.cases)
        if named is None:
            default = {"has_judge": self.client is not None, "has_gold": self.has_gold}
            names = default_metrics(**default)
            computed = default_metrics(**default, has_vectors=self.embeddings is not None)
            self.left_out = [name for name in names if name not in computed]
        if len({*names}) < len(names):
            raise RagnbError(f"metrics={names!r} names one metric twice; name each once")
        for name in names:
            need_known("metric", name, list(SCORERS))
        self.scorers = [SCORERS[name] for name in names if name not in self.left_out]
        for scorer in self.scorers:
            if any(scorer.calls) and self.client is None:
                raise RagnbError(
                    f"metric {scorer.name!r} needs a judge; pass client=Profile(base_url=…, model=…)"
                )
            if scorer.embeds and self.embeddings is None:
                raise RagnbError(
                    f"metric {scorer.name!r} needs embeddings; pass embeddings=Profile(…) or a function"
                )
        sent = {**PARAMETERS, **(parameters or {})}
        self.parameters = {name: value for name, value in sent.items() if value is not None}
        refusals = [refusal] if isinstance(refusal, str) else refusal
        self.refusals = {text.strip().lower() for text in refusals}

    def cells(self) -> list[Cell]:
        """One cell for each case and metric, case by case."""
        missing = [missing_fields(self.cases, scorer.needs) for scorer in self.scorers]
        ids = gold.ids_of(self.cases)
        cells = []
        for place, row in enumerate(self.cases.to_dict("records")):
            pair = ids[place]
            for scorer, lacks in zip(self.scorers, missing, strict=True):
                if scorer.by == "gold" and pair is not None:
                    cells.append(self._gold_cell(scorer, row, pair))
                else:
                    cells.append(self._cell(scorer, row, lacks[place]))
        return cells

    def _cell(self, scorer: Scorer, row: Mapping[Any, Any], missing: tuple[str, ...]) -> Cell:
        if scorer.by == "wording" and not missing:
            answer = str(row["answer"]).strip().lower()
            if answer in self.refusals:
                missing = ("statement: the answer is a refusal",)
        inputs = {name: row[name] for name in scorer.needs if name not in missing}
        return self._cell_of(scorer, row, inputs, missing)

    def _gold_cell(
        self, scorer: Scorer, row: Mapping[Any, Any], ids: tuple[list[Any], list[Any]]
    ) -> Cell:
        """Return a cell that compares ids in place of texts."""
        inputs = {**dict(zip(gold.PASSAGES, ids, strict=True)), "by_id": True}
        return self._cell_of(scorer, row, inputs, ())

    def _cell_of(
        self,
        scorer: Scorer,
        row: Mapping[Any, Any],
        inputs: Mapping[str, Any],
        missing: tuple[str, ...],
    ) -> Cell:
        """Return a cell of one metric and case; what may change its value is in its key."""
        doc = row.get("doc_name")
        calls = 0 if scorer.follows(inputs) else scorer.judge_calls(inputs)
        tokens = 0  # for a metric that only embeds, too
        if calls:
            tokens = calls * _PER_CALL + (calls + scorer.embeds) * _tokens_of(inputs)
        model = _WITHOUT_MODEL.get(scorer.by, "ragas")
        parameters = dict[str, Any]()
        if any(scorer.calls) and self.client is not None:
            model = self.client.profile.model
            parameters |= self.parameters
        elif scorer.embeds:
            model = _name_of(self.embeddings)
        if scorer.by == "ragas":
            parameters["tool"] = ragas.installed()
        if scorer.embeds:
            parameters["embeddings"] = _name_of(self.embeddings)
        # The prompts of ragas are those of its version.
        prompt = texts.load(self.lang)("scoring.relevance") if scorer.by == "ours" else ""
        return Cell(
            row["sample_id"],
            scorer.name,
            inputs,
            model,
            parameters,
            prompt,
            missing=missing,
            calls=calls + scorer.embeds,
            tokens=tokens,
            cluster=doc if isinstance(doc, str) else None,
        )

    async def work(self, cell: Cell) -> Outcome:
        """Compute a metric of one case; one that is finished without a value is not retried, and is no failure."""
        try:
            value, note = await self._value(SCORERS[cell.what], cell.inputs)
        except Nothing as why:
            return Outcome.of({"missing": str(why)})
        return Outcome("ok", value, note)

    async def _value(self, scorer: Scorer, inputs: Mapping[str, Any]) -> tuple[float, str | None]:
        """Return with no passage what follows from that, else what computes the metric makes of the case."""
        if scorer.follows(inputs):
            if not isinstance(scorer.nothing, float):
                raise Nothing(scorer.nothing)
            return scorer.nothing, "nothing was retrieved"
        if scorer.by == "gold":
            return by_gold(scorer.made_of, inputs)
        if scorer.by == "wording":
            return by_wording(scorer.name, inputs["answer"], inputs["retrieved_contexts"])
        judge = None
        if self.client and any(scorer.calls):
            judge = Asker(self.client, self.parameters)
        if scorer.by == "ours" and judge:
            value = await relevance(
                judge, inputs["question"], inputs["retrieved_contexts"], self.lang
            )
        else:
            embed: Any = None
            if scorer.embeds and isinstance(self.embeddings, Client):
                embed = self.embeddings.embed
            elif scorer.embeds:
                embed = self._embed
            value = await ragas.collected(scorer.made_of, inputs, judge, embed)
        low = METRICS[scorer.name].low if scorer.name in METRICS else 0.0
        return in_range(value, low=low, cosine=bool(scorer.embeds))

    async def _embed(self, given: Sequence[str]) -> list[list[float]]:
        """Return vectors by the caller's function."""
        function: Any = self.embeddings
        returned = await called("embeddings", function, list(given))
        # One row for each text, whatever type and shape the function returns.
        matrix = np.asarray(returned, dtype=float).reshape(len(given), -1)
        vectors: list[list[float]] = matrix.tolist()
        return vectors


def _tokens_of(inputs: Mapping[str, Any]) -> int:
    """Estimate the tokens of the texts of a case."""
    total = 0
    for part in inputs.values():
        for text in [part] if isinstance(part, str) else part:
            total += count_tokens(str(text))
    return total


def _name_of(embeddings: Client | Local | None) -> str:
    """Return what the key of a cell says of the embeddings: their model, or the function or class by its name."""
    if isinstance(embeddings, Client):
        return embeddings.profile.model
    # An object that is called has no name of its own.
    named: Any = embeddings if hasattr(embeddings, "__qualname__") else type(embeddings)
    return f"{named.__module__}.{named.__qualname__}"


def in_range(value: float, *, low: float = 0.0, cosine: bool = False) -> tuple[float, str | None]:
    """Return a value of [low, 1] rounded to hide floating-point noise, and its reason; any other is a failed call.

    Examples
    --------
    >>> in_range(0.9999999999999), in_range(-0.25, cosine=True), in_range(-0.25, low=-1, cosine=True)
    ((1.0, None), (0.0, 'a cosine of -0.25 counts as 0'), (-0.25, None))
    """
    rounded = round(value, 12)  # 8 digits of 1/3 would put a mean just below its threshold
    if cosine and rounded < low:
        return low, f"a cosine of {rounded:.2g} counts as {low:g}"
    if not low <= rounded <= 1:
        raise CallFailed(f"{value:g} is outside {low:g}..1")
    return rounded, None


def by_wording(name: str, answer: str, contexts: list[str]) -> tuple[float, str | None]:
    """Compute a lexical check, with the parts of the answer that the passages do not contain as its reason.

    Examples
    --------
    >>> by_wording("number_support", "36 months.", ["24 months."])
    (0.0, 'not in the passages: 36')
    """
    support = getattr(lexical, name)(answer, contexts)
    value, absent = support if isinstance(support, tuple) else (support, [])
    if math.isnan(value):
        raise Nothing("the answer holds none: 0/0")
    if not absent:
        return value, None
    return value, f"not in the passages: {', '.join(absent)}"


def by_gold(name: str, inputs: Mapping[str, Any]) -> tuple[float, str | None]:
    """Compare what was retrieved with the gold passages, with how they were matched as the reason.

    Examples
    --------
    >>> by_gold("precision", {"retrieved_contexts": ["x", "a b c d."], "ground_truth_contexts": ["A b c d"]})
    (0.5, 'gold passages matched by text: 1 equal')
    """
    retrieved, wanted = (inputs[side] for side in gold.PASSAGES)
    if inputs.get("by_id"):
        by = "id"
        match = gold.by_id(retrieved, wanted)
    else:
        by = "text"
        match = gold.by_text(retrieved, wanted)
    if not match.found:
        raise Nothing("the gold passages hold no words: 0/0")
    value = getattr(gold, name)(match)
    means = ", ".join(f"{n} {means}" for means, n in match.how.items() if means != "id" and n)
    matched = means or str(sum(match.relevant))
    return round(value, 12), f"gold passages matched by {by}: {matched}"


def evaluate(
    cases: Any,
    *,
    metrics: Iterable[str | Metric] | str | Metric | None = None,
    client: Client | Profile | None = None,
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
        context_precision_by_answer, context_relevance, noise_sensitivity, factual_correctness,
        semantic_similarity and answer_correctness; without one the embedded checks of wording: support_lexical,
        number_support and name_support. Where some case has gold passages, context_precision and
        context_recall_by_passages as well, and context_precision_by_answer is not asked for.
    client : Client or Profile, optional
        The judge. A Client has limits and budgets of its own.
    embeddings : Client, Profile or function, optional
        For answer_relevancy, semantic_similarity and answer_correctness; a function takes a list of texts and
        returns one vector a text, and may be a coroutine function.
    store : Store or path, optional
        Where each cell is kept. A second run pays only for what does not exist; without a store nothing outlives
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
        ``attrs["spent"]`` holds ``run, calls, tokens_in, tokens_out`` of all the run's cells, ``attrs["account"]``
        how many were done now or reused and the requests sent (see `ragnb.store.Run`), ``attrs["failed"]`` the
        raw replies of the failed ones, ``attrs["notes"]`` what must be known to read the scores.

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
    Metrics by ragas 0.4 are its current collections; factual_correctness is rounded to two decimals, a negative
    answer_relevancy counts as 0. context_precision and context_recall_by_passages compare what was retrieved
    with the gold passages (see `ragnb.scoring.gold`): by ids where cases have ``chunks`` and ``gold_ids`` (or
    ``retrieved_context_ids`` and ``reference_context_ids``, or passages that are objects with an ``id``), else
    by texts. A case whose ``retrieved_contexts`` is ``[]`` has context_recall 0, and no context_precision.
    ``scoring.expected`` counts the calls beforehand.

    Examples
    --------
    >>> cases = pd.DataFrame({"question": ["How long?"], "answer": ["36 months."],
    ...                       "retrieved_contexts": [["The warranty is 24 months."]]})
    >>> scores = evaluate(cases)
    >>> scores[["number_support", "number_support__reason"]]
       number_support   number_support__reason
    0             0.0  not in the passages: 36
    """
    plan = Plan(
        cases,
        metrics=metrics,
        client=client,
        embeddings=embeddings,
        parameters=parameters,
        lang=lang,
        refusal=refusal,
    )
    if any(scorer.by == "ragas" for scorer in plan.scorers):
        ragas.imported()  # what cannot be imported stops the run here, not each cell of it
    with opened(store) as kept:
        about = {
            "metrics": [scorer.name for scorer in plan.scorers],
            "lang": lang,
            "systems": systems_of(plan.cases),
        }
        # Judge and embeddings may share a client, which is opened once.
        clients = dict.fromkeys(
            one for one in (plan.client, plan.embeddings) if isinstance(one, Client)
        )
        run = run_cells(
            plan.cells(),
            plan.work,
            kept,
            clients=[*clients],
            name=name,
            about=about,
            progress=progress,
            label="evaluate",
        )
        scores = _scores(plan, run)
    keep_results(cases, scores)
    return scores


def expected(cases: Any, *, store: StoreLike = None, **options: Any) -> Estimate:
    """Estimate the calls and tokens that `evaluate` would need; nothing is sent or written.

    Parameters
    ----------
    cases, store, **options
        As for `evaluate`: `metrics`, `client`, `embeddings`, `parameters`, `refusal`, `lang`.

    Returns
    -------
    Estimate
        Calls of the judge and of the embeddings; what the store has already is not counted. Replies that have
        to be asked for again come on top. Calls of a function count as the calls of an endpoint would.

    Examples
    --------
    >>> case = {"question": "How long?", "answer": "36 months.", "retrieved_contexts": ["24 months."]}
    >>> profile = Profile(base_url="http://127.0.0.1:8080/v1", model="small")
    >>> expected([case], metrics="faithfulness", client=profile).calls
    2
    """
    return estimate(Plan(cases, **options).cells(), store)


def _scores(plan: Plan, run: Run) -> pd.DataFrame:
    """Join the scores to their cases: one row per case, three columns per metric."""
    cells = run.frame
    # A cell whose metric is 0/0 is done, and its value says why there is no score; see `Plan.work`.
    why = cells["value"].map(lambda value: value["missing"] if isinstance(value, dict) else None)
    why = why.mask(cells["status"] == "pending", "not scored yet; run it again")
    parts = {
        "": cells["value"].mask(why.notna()).astype(float),
        "__status": cells["status"].mask(why.notna(), "missing"),
        "__reason": cells["reason"].mask(why.notna(), why),
    }
    added = {}
    for place, scorer in enumerate(plan.scorers):
        for suffix, part in parts.items():
            # Cells come case by case, so that those of one metric lie as far apart as there are metrics.
            added[f"{scorer.name}{suffix}"] = part.to_numpy()[place :: len(plan.scorers)]
    scores = plan.cases.drop(columns=[*added], errors="ignore")
    scores = pd.concat([scores, pd.DataFrame(added, index=scores.index)], axis=1)
    # Rows of equal input share a cell.
    paid = cells.drop_duplicates("key")[["calls", "tokens_in", "tokens_out"]]
    taken = paid.apply(pd.to_numeric, errors="coerce").sum()
    scores.attrs["spent"] = {"run": run.id, **taken.astype(int).to_dict(), "stopped": run.stopped}
    scores.attrs["account"] = run.account
    failed = cells.loc[cells["status"] == "failed", ["sample_id", "what", "reason", "reply"]]
    scores.attrs["failed"] = failed.to_dict("records")
    scores.attrs["notes"] = _notes(plan)
    return scores


def _notes(plan: Plan) -> list[dict[str, str]]:
    """Return what must be known to read the scores."""
    say = texts.load(plan.lang)
    without_gold = []
    if not plan.has_gold:
        without_gold = [scorer.name for scorer in plan.scorers if scorer.by == "gold"]
    metrics_by_code = {
        "wording_only": [scorer.name for scorer in plan.scorers if scorer.by == "wording"],
        "no_embeddings": plan.left_out,
        "no_gold_passages": without_gold,
    }
    notes = []
    for code, metrics in metrics_by_code.items():
        if metrics:
            names = ", ".join(metrics)
            notes.append(note_row(code, names, say(f"note.{code}", names=names, metrics=names)))
    return notes
