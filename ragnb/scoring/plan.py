"""Cases and metrics → cells: what is to be done, by whom, and under which key."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, unknown
from ragnb.readers import read_cases
from ragnb.schema import EvalCase, Metric, Profile, metric_list, missing_fields
from ragnb.scoring import ragas
from ragnb.scoring.asking import PARAMETERS
from ragnb.scoring.relevance import prompt_of
from ragnb.scoring.table import EMBEDDED, JUDGED, SCORERS, Scorer
from ragnb.store import Cell, Client, count_tokens

Local = Callable[[list[str]], Any]
_PER_CALL, _WORDING = 1000, "ragnb wording 1"  # tokens of a prompt's own text and its reply, about


@dataclass
class Plan:
    """What one run computes, and with what.

    Parameters
    ----------
    cases : DataFrame
    scorers : tuple of Scorer
    llm : Client or None
    embeddings : Client, function or None
    parameters : dict
        Sent with every call of the judge.
    lang : str
        Of our own prompts.
    refusal : tuple of str
        Answers that make no statement.
    left_out : list of str
        Metrics of the default choice that cannot be computed, as there are no embeddings.
    """

    cases: pd.DataFrame
    scorers: tuple[Scorer, ...]
    llm: Client | None
    embeddings: Client | Local | None
    parameters: dict[str, Any]
    lang: str
    refusal: tuple[str, ...]
    left_out: list[str] = field(default_factory=list)

    @property
    def clients(self) -> list[Client]:
        """The clients of the run, each once."""
        return list({id(c): c for c in (self.llm, self.embeddings) if isinstance(c, Client)}.values())

    def cells(self) -> list[Cell]:
        """One cell for each case and metric, case by case."""
        missing = {scorer.name: missing_fields(self.cases, scorer.needs) for scorer in self.scorers}
        rows = self.cases.to_dict("records")
        clusters = self.cases["doc_name"] if "doc_name" in self.cases else [None] * len(rows)
        return [
            self._cell(scorer, row, missing[scorer.name][place], doc if isinstance(doc, str) else None)
            for place, (row, doc) in enumerate(zip(rows, clusters, strict=True))
            for scorer in self.scorers
        ]

    def _cell(self, scorer: Scorer, row: Mapping[Any, Any], missing: tuple[str, ...], doc: str | None) -> Cell:
        if scorer.by == "wording" and not missing and str(row["answer"]).strip().lower() in self.refusal:
            missing = ("statement: the answer is a refusal",)
        inputs = {name: row[name] for name in scorer.needs if name not in missing}
        free = "retrieved_contexts" in inputs and not inputs["retrieved_contexts"] and scorer.nothing is not None
        calls = 0 if free else scorer.judge_calls(inputs)
        texts = [text for part in inputs.values() for text in ([part] if isinstance(part, str) else part)]
        tokens = calls * _PER_CALL + (calls + scorer.embeds) * sum(count_tokens(str(text)) for text in texts)
        return Cell(
            sample_id=row["sample_id"], what=scorer.name, inputs=inputs, model=self._model(scorer),
            parameters=self._parameters(scorer), prompt=prompt_of(self.lang) if scorer.by == "ours" else "",
            missing=missing, calls=calls + scorer.embeds, tokens=tokens if calls else 0, cluster=doc,
        )  # fmt: skip

    def _model(self, scorer: Scorer) -> str:
        if any(scorer.calls) and self.llm is not None:
            return self.llm.profile.model
        return _name_of(self.embeddings) if scorer.embeds else _WORDING if scorer.by == "wording" else "ragas"

    def _parameters(self, scorer: Scorer) -> dict[str, Any]:
        found = dict(self.parameters) if any(scorer.calls) else {}
        found |= {"tool": ragas.installed()} if scorer.by == "ragas" else {}
        return found | ({"embeddings": _name_of(self.embeddings)} if scorer.embeds else {})


def planned(
    cases: Any,
    metrics: Iterable[str | Metric] | str | Metric | None = None,
    llm: Client | Profile | None = None,
    embeddings: Client | Profile | Local | None = None,
    parameters: Mapping[str, Any] | None = None,
    lang: str = "en",
    refusal: Iterable[str] = ("not in context",),
) -> Plan:
    """Check what the caller wants, and plan it."""
    judge = Client(llm) if isinstance(llm, Profile) else llm
    vectors = Client(embeddings) if isinstance(embeddings, Profile) else embeddings
    left_out: list[str] = []
    named = metric_list(metrics)
    if named is None:
        chosen = [SCORERS[name] for name in (EMBEDDED if judge is None else JUDGED)]
        left_out = [s.name for s in chosen if s.embeds and vectors is None]
        chosen = [s for s in chosen if s.name not in left_out]
    else:
        chosen = [_scorer(metric) for metric in named]
        if len({s.name for s in chosen}) < len(chosen):
            raise RagnbError(f"metrics={[s.name for s in chosen]!r} names one metric twice; name each once")
    for scorer in chosen:
        if any(scorer.calls) and judge is None:
            raise RagnbError(f"metric {scorer.name!r} needs a judge; pass llm=Profile(base_url=…, model=…)")
        if scorer.embeds and vectors is None:
            raise RagnbError(f"metric {scorer.name!r} needs embeddings; pass embeddings=Profile(…) or a function")
    sent = {k: v for k, v in {**PARAMETERS, **(parameters or {})}.items() if v is not None}
    refused = tuple(text.strip().lower() for text in ([refusal] if isinstance(refusal, str) else refusal))
    return Plan(frame_of(cases), tuple(chosen), judge, vectors, sent, lang, refused, left_out)


def frame_of(cases: Any) -> pd.DataFrame:
    """Read cases from whatever holds them; cases of the model EvalCase keep null and [] apart."""
    if isinstance(cases, Sequence) and not isinstance(cases, str) and cases and isinstance(cases[0], EvalCase):
        cases = [case.model_dump(exclude_none=True, exclude={"results"}) for case in cases]
    return read_cases(cases)


def _scorer(metric: str | Metric) -> Scorer:
    name = metric if isinstance(metric, str) else metric.name
    if name not in SCORERS:
        raise unknown("metric", name, list(SCORERS))
    return SCORERS[name]


def _name_of(embeddings: Client | Local | None) -> str:
    if isinstance(embeddings, Client):
        return embeddings.profile.model
    kind: Any = embeddings if hasattr(embeddings, "__qualname__") else type(embeddings)
    return f"{kind.__module__}.{kind.__qualname__}"


def in_range(value: float, *, low: float = 0.0, cosine: bool = False) -> tuple[float | None, str | None]:
    """Return a value of [low, 1] without the last bits of its arithmetic, and what is to be said of it.

    Examples
    --------
    >>> in_range(0.9999999999), in_range(-0.25, cosine=True), in_range(-0.25, low=-1, cosine=True)
    ((1.0, None), (0.0, 'a cosine of -0.25 counts as 0'), (-0.25, None))
    """
    rounded = round(value, 8)
    if cosine and rounded < low:
        return low, f"a cosine of {rounded:.2g} counts as {low:g}"
    fits = math.isfinite(value) and low <= rounded <= 1
    return (rounded, None) if fits else (None, f"{value:g} is outside {low:g}..1")
