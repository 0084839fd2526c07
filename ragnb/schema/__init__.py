"""The one frame contract: column names, status words, what a metric is and needs, and the small models.

Frames are wide, one row per sample. A column name with ``__`` is never a metric.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from ragnb.errors import RagnbError, did_you_mean, listing, unknown
from ragnb.schema.operations import better_of_name
from ragnb.schema.operations import is_operation as is_operation
from ragnb.schema.operations import kind_of_operation as kind_of_operation
from ragnb.schema.operations import quantile_of as quantile_of
from ragnb.schema.operations import unit_of as unit_of
from ragnb.schema.ranks import MEASURES as MEASURES
from ragnb.schema.ranks import rank_measure as rank_measure
from ragnb.schema.secrets import (
    holds_secret,
    is_secret_name,
    masked,
    refuse_secrets,
    url_holds_secret,
)

if TYPE_CHECKING:
    import pandas as pd

CASE_COLUMNS = (
    "sample_id",
    "question",
    "ground_truth_answer",
    "ground_truth_contexts",
    "answer",
    "retrieved_contexts",
    "doc_name",
    "system",
    "persona",
    "source_units",
    "generation_params",
)
DERIVED_COLUMNS = ("weighted_score", "sample_weight", "is_passing")
DRAWN = "inclusion_probability"
"""The column of the chance with which a row was drawn: numbers are weighted by its inverse."""
NOT_METRICS = frozenset(
    {*CASE_COLUMNS, *DERIVED_COLUMNS, DRAWN, "citations", "chunks", "ts", "ok", "repeat"}
)
RESULT_COLUMNS = (
    "metric",
    "weight",
    "value",
    "low",
    "high",
    "se",
    "n",
    "n_missing",
    "n_failed",
    "n_not_applicable",
    "n_clusters",
    "n_eff",
)
NOTE_COLUMNS = ("code", "about", "text")
STOPPED_EARLY = "stopped early"
"""Why a question has no score that a judge left out, as the rest could not change the side of any gate."""


def note_row(code: str, about: str, text: str) -> dict[str, str]:
    """Return one row of a notes frame: a code to test on, what it is about, and the sentence.

    Examples
    --------
    >>> note_row("few_clusters", "faithfulness", "Only 3 documents.")["code"]
    'few_clusters'
    """
    return {"code": code, "about": about, "text": text}


def holding_notes(
    say: Callable[..., str],
    notes: Iterable[tuple[Any, str, str, Mapping[str, Any]]],
    of: str = "note",
) -> list[dict[str, str]]:
    """Return those of notes that hold: ``(whether it holds, code, about, values)``; `of` is the table of texts.

    Examples
    --------
    >>> holding_notes(lambda key, n: f"{key}: {n}", [(True, "few", "x", {"n": 3}), (False, "many", "x", {})])
    [{'code': 'few', 'about': 'x', 'text': 'note.few: 3'}]
    """
    return [
        note_row(code, about, say(f"{of}.{code}", **values))
        for holds, code, about, values in notes
        if holds
    ]


def note_frame(rows: Iterable[dict[str, str]]) -> pd.DataFrame:
    """Return notes as a frame with the columns ``code, about, text``, each sentence once.

    Examples
    --------
    >>> len(note_frame([note_row("a", "b", "c"), note_row("a", "b", "c")]))
    1
    """
    import pandas as pd

    once = dict.fromkeys(tuple(row[name] for name in NOTE_COLUMNS) for row in rows)
    return pd.DataFrame(list(once), columns=list(NOTE_COLUMNS), dtype=object)


def records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a small frame as mappings; pandas' own ``to_dict`` takes ten times as long.

    Examples
    --------
    >>> import pandas as pd
    >>> records(pd.DataFrame({"metric": ["a", "b"], "n": [1, 2]}))
    [{'metric': 'a', 'n': 1}, {'metric': 'b', 'n': 2}]
    """
    columns = [column.tolist() for _, column in frame.items()]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]


class Frozen(BaseModel):
    """Settings that take no key they do not know and repeat no value in a message."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class EvalResult(BaseModel):
    """What a metric gave for a case: a score, or why there is none.

    Examples
    --------
    >>> EvalResult(score=0.5, status="ok").reason is None
    True
    """

    model_config = ConfigDict(extra="allow")
    score: float | None = None
    status: Literal["ok", "not_applicable", "failed", "missing"] = "missing"
    reason: str | None = None


class EvalCase(BaseModel):
    """A question put to a system: the reference side, the system side, and where it came from.

    ``results`` has for a metric its `EvalResult`; `evaluate` and `judge` write theirs into the cases of a list.
    ``retrieved_contexts`` None means that the system has not run; an empty list that it retrieved nothing.

    Examples
    --------
    >>> EvalCase(question="Who pays?", answer="The buyer.").retrieved_contexts is None
    True
    """

    model_config = ConfigDict(extra="allow")
    question: str
    sample_id: str | None = None
    ground_truth_answer: str | None = None
    ground_truth_contexts: list[str] | None = None
    answer: str | None = None
    retrieved_contexts: list[str] | None = None
    doc_name: str | None = None
    system: str | None = None
    persona: str | dict[str, Any] | None = None
    source_units: list[str | dict[str, Any]] | None = None
    generation_params: dict[str, Any] | None = None
    results: dict[str, EvalResult] = Field(default_factory=dict)


def keep_results(cases: Any, table: pd.DataFrame) -> None:
    """Write the results of a table into the cases that it is of, in their order, where they are `EvalCase`.

    Examples
    --------
    >>> import pandas as pd
    >>> case = EvalCase(question="Who?")
    >>> keep_results([case], pd.DataFrame({"tone": [0.5], "tone__status": ["ok"]}))
    >>> case.results["tone"].score
    0.5
    """
    held = [cases] if isinstance(cases, EvalCase) else cases
    if not isinstance(held, list | tuple) or len(held) != len(table):
        return
    ends = [str(name) for name in table.columns if str(name).endswith("__status")]
    names = [end.removesuffix("__status") for end in ends]
    for case, row in zip(held, records(table), strict=True):
        if not isinstance(case, EvalCase):
            continue
        for name in (name for name in names if name in row):
            reason = row.get(f"{name}__reason")
            case.results[name] = EvalResult(
                score=None if _is_gone(row[name]) else float(row[name]),
                status=row[f"{name}__status"],
                reason=None if _is_gone(reason) else str(reason),
            )


def _is_gone(value: Any) -> bool:
    return value is None or value != value or str(value) == "<NA>"


def missing_fields(cases: pd.DataFrame, needs: Iterable[str]) -> list[tuple[str, ...]]:
    """Return for each case which of the fields it lacks; text that is blank counts as lacking.

    Examples
    --------
    >>> import pandas as pd
    >>> missing_fields(pd.DataFrame({"answer": ["Ann.", None]}), ["answer", "question"])
    [('question',), ('answer', 'question')]
    """
    present = {}
    for field in needs:
        cells: Any = cases.get(field, [None] * len(cases))
        least = 0 if field == "retrieved_contexts" else 1  # which are there also as an empty list
        present[field] = [
            bool(cell.strip())
            if isinstance(cell, str)
            else hasattr(cell, "__len__") and len(cell) >= least
            for cell in cells
        ]
    return [
        tuple(field for field, there in present.items() if not there[i]) for i in range(len(cases))
    ]


class SharedPicks(dict[str, str]):
    """Column → the name it means. A file takes those that it has; one that no file has is refused in the end.

    Examples
    --------
    >>> picks = SharedPicks({"可答": "answerable", "答": "answer"})
    >>> picks.of(["问", "可答"])
    {'可答': 'answerable'}
    >>> picks.of(["答"])
    {'答': 'answer'}
    >>> picks.need_all()
    """

    _seen: Mapping[str, None] = MappingProxyType({})

    def of(self, columns: Sequence[str]) -> dict[str, str]:
        """Return the picks of a file with these columns."""
        self._seen = {**self._seen, **dict.fromkeys(columns)}
        return {name: target for name, target in self.items() if name in columns}

    def need_all(self) -> None:
        """Refuse a pick that no file had."""
        for name in self:
            if name not in self._seen:
                raise unknown(
                    "columns",
                    name,
                    list(self._seen),
                    "columns= maps a column of a file to its meaning",
                )


Needs = tuple[str, ...]
Text = Annotated[str, Field(strict=True)]
Words = Annotated[str, Field(strict=True, min_length=1)]
Number = Annotated[float, Field(strict=True)]
Finite = Annotated[Number, Field(allow_inf_nan=False)]
Weight = Annotated[Finite, Field(ge=0)]
Flag = Annotated[bool, Field(strict=True)]
_CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True)

RUBRIC = "rubric"
"""The family of the metrics that a rubric's dimensions are."""

CLIP = 1e-6
"""How far beyond an end of its range a value is taken for the end: a float32 cosine of 1 is 1.00000011921."""

COSINES = frozenset({"semantic_similarity"})
"""Metrics whose values from -1 to 1 enter a total as they are, beside scores from 0 to 1."""

_SCALES = (
    (-1, 1, 0),
    (-2, 2, 1.01),
    (1, 5, 1.01),
    (1, 10, 5),
    (0, 10, 5),
    (0, 100, 10),
)
"""Low and high of a scale, and what some value must lie beyond: else all of them are on a narrower one."""


def declare_step(name: str, low: float, high: float) -> str:
    """Word how to declare the scale that values from low to high may be on, for a refusal.

    A scale is proposed only where the values use more of it than a narrower one has.

    Examples
    --------
    >>> declare_step("faithfulness", 1, 4)
    "declare its scale: metrics=[rn.Metric('faithfulness', 1, 5)] if it is 1..5"
    >>> declare_step("faithfulness", 0, 1.01)
    "declare its scale: metrics=[rn.Metric('faithfulness', low, high)]"
    """
    if not (ends := range_of(low, high)) or ends == (0, 1):
        return f"declare its scale: metrics=[rn.Metric({name!r}, low, high)]"
    a, b = ends
    other = "; divide by 100 if these are percent" if b == 100 else ""
    other = "; clear the cells with -1 if it means a failed score" if low == -1 else other
    return f"declare its scale: metrics=[rn.Metric({name!r}, {a}, {b})] if it is {a}..{b}{other}"


def range_of(low: float, high: float) -> tuple[int, int] | None:
    """Return the usual scale that values from low to high may be on; None where they fit none.

    Examples
    --------
    >>> range_of(0, 0.9), range_of(1, 4), range_of(0, 1.01), range_of(-3, 70)
    ((0, 1), (1, 5), None, None)
    """
    if low >= -CLIP and high <= 1 + CLIP:
        return 0, 1
    fit = (row for row in _SCALES if row[0] <= low and high <= row[1] and (low < 0) == (row[0] < 0))
    return next(((a, b) for a, b, narrower in fit if max(high, -low) > narrower), None)


def scale_of(name: str, low: float, high: float) -> tuple[float, float]:
    """Return the ends between which a metric is added up and shown beside others: of a cosine 0 and 1.

    Examples
    --------
    >>> scale_of("semantic_similarity", -1, 1), scale_of("preference", -1, 1)
    ((0.0, 1.0), (-1, 1))
    """
    return (0.0, 1.0) if name in COSINES and (low, high) == (-1, 1) else (low, high)


def metric_name(name: str) -> str:
    """Take a name that a metric's column can have.

    Examples
    --------
    >>> metric_name("语气")
    '语气'
    """
    if not name.strip() or "__" in name or name in (*CASE_COLUMNS, *DERIVED_COLUMNS):
        raise ValueError(
            f"{name!r} is not a valid metric name: it is empty, contains '__' or is a ragnb column"
        )
    return name


_UNSAID = object()  # stands for a setting that is not given, until `Metric` finds it from the name


def _unsaid() -> Any:
    return _UNSAID


def _by_name() -> Any:
    """Return a field that the name of the metric settles where it is not given."""
    return Field(default_factory=_unsaid, validate_default=True)


# These are validators and no default factories: one that looks at other fields adds an error of its own to theirs.


def _given_role(role: Any, info: ValidationInfo) -> Any:
    """Return the role of a metric, from its name where none is given."""
    if role is not _UNSAID:
        return role
    return "operation" if is_operation(info.data.get("name", "")) else "quality"


def _given_direction(better: Any, info: ValidationInfo) -> Any:
    """Return the better end of a metric, from its name where none is given; refuse the open choice of a card."""
    name = info.data.get("name", "")
    if better == "?":
        raise ValueError(
            f"'?' is an open choice of {name!r}: write better: lower if less is better, as for a rate of errors, "
            "or better: higher if more is better; in Python better='lower' or better='higher'"
        )
    if better is not _UNSAID:
        return better
    return better_of_name(name) if is_operation(name) else "higher"


def _given_high(end: Any, info: ValidationInfo) -> Any:
    """Return the upper end of a metric; a latency or a cost has none where none is given."""
    if end is _UNSAID:
        return math.inf if is_operation(info.data.get("name", "")) else 1.0
    return _known_end(end, info)


def _known_end(end: Any, info: ValidationInfo) -> Any:
    """Refuse an open end of a scale, with what to put in its place."""
    if end == "?":
        raise ValueError(
            f"'?' is an open choice of {info.data.get('name')!r}: write the lowest and the highest score "
            "that the scale allows, such as low: 1 and high: 5; in Python rn.Metric(name, 1, 5)"
        )
    return end


@dataclass(frozen=True, config=_CONFIG)
class Metric:
    """A metric: its name, its range, and which end is better.

    Parameters
    ----------
    name : str
        The column that holds it; no ``__`` in it.
    low, high : float
        The ends of the range; ``inf`` where there is none. A measure of operation is 0 to ``inf`` by default.
    better : {"higher", "lower"}
        Which end is good; of a measure of operation the lower one by default (more throughput).
    kind : {"continuous", "ordinal", "binary"}
        What its values are.
    role : {"quality", "rate", "operation"}
        A rate enters the weighted score only where the metric weights name it; a measure of operation (latency,
        tokens, cost), which a name that says so has by default, never does.
    family : str
        The part of a RAG system it looks at.
    needs : tuple of str
        The case columns that must be there for it to apply.
    weight : float
        Its weight where the caller names none.
    aliases : tuple of str
        Other names of the same thing; readers rename them.
    variant : str
        What exactly is computed, where tools differ.
    grades_refusals : bool
        Whether it tells a correct refusal from an invented answer. Any other metric does not apply to questions
        that gold calls unanswerable: else inventing an answer could raise its mean.
    blank : {"lost", "not_applicable"}
        What an empty cell without evidence is to `assess`: a lost score, or one that is left out on purpose.

    Examples
    --------
    >>> Metric("gpt_groundedness", 1, 5).high
    5.0
    >>> Metric("latency_ms").role, Metric("latency_ms").better
    ('operation', 'lower')
    """

    name: Annotated[str, AfterValidator(metric_name)]
    low: Annotated[Number, BeforeValidator(_known_end)] = 0.0
    high: Annotated[Number, BeforeValidator(_given_high)] = _by_name()
    better: Annotated[Literal["higher", "lower"], BeforeValidator(_given_direction)] = _by_name()
    kind: Literal["continuous", "ordinal", "binary"] = "continuous"
    role: Annotated[Literal["quality", "rate", "operation"], BeforeValidator(_given_role)] = (
        _by_name()
    )
    family: str = ""
    needs: Needs = ()
    weight: Weight = 1.0
    aliases: Needs = ()
    variant: str = ""
    grades_refusals: Flag = False
    blank: Literal["lost", "not_applicable"] = "lost"

    @model_validator(mode="after")
    def _range_is_open(self) -> Metric:
        if not self.low < self.high:  # nor is NaN below anything
            raise ValueError(
                f"range of {self.name!r} is {self.low}..{self.high}; low must lie below high"
            )
        return self

    @property
    def scale(self) -> tuple[float, float]:
        """The ends between which it is added up and shown beside others, as `scale_of` says."""
        return scale_of(self.name, self.low, self.high)

    @property
    def bounded(self) -> bool:
        """Whether both ends of the range are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)


TABLE = tomllib.loads(files(__package__).joinpath("known.toml").read_text(encoding="utf-8"))

METRICS: Mapping[str, Metric] = MappingProxyType(
    {row["name"]: Metric(**row) for row in TABLE["metric"]}
)
"""The metrics that ragnb knows, by name."""

KNOWN_RATES = frozenset(name for name, metric in METRICS.items() if metric.role == "rate")

MetricLike = str | Metric


def known_metric(name: str) -> Metric | None:
    """Return the metric that ragnb knows by a name: one of METRICS, or a measure by rank such as ``recall@5``.

    Examples
    --------
    >>> known_metric("hit@3").kind, known_metric("faithfulness").role, known_metric("tone")
    ('binary', 'quality', None)
    """
    found = rank_measure(name)
    if found is None:
        return METRICS.get(name)
    kind: Literal["binary", "continuous"] = "binary" if found[0] == "hit" else "continuous"
    return Metric(name, kind=kind, role="rate", family="retrieval")


def metric_list(metrics: MetricLike | Iterable[MetricLike] | None) -> list[MetricLike] | None:
    """Return what a caller gave as ``metrics=`` as a list, or refuse what names no metrics.

    Raises
    ------
    RagnbError
        For a mapping, which holds weights, and for anything but names and Metric objects.

    Examples
    --------
    >>> metric_list("faithfulness")
    ['faithfulness']
    """
    if metrics is None or isinstance(metrics, str | Metric):
        return None if metrics is None else [metrics]
    if isinstance(metrics, Mapping):
        raise RagnbError(
            f"metrics={dict(metrics)!r} is a mapping, and metrics= takes names; write metrics={list(metrics)!r}, "
            f"and pass weights as metric_weights={dict(metrics)!r}"
        )
    given: list[Any] = list(metrics) if isinstance(metrics, Iterable) else [metrics]
    for item in given:
        if not isinstance(item, str | Metric):
            raise RagnbError(
                f"metrics= contains {item!r}, which is not a metric; write names such as 'faithfulness' or "
                "Metric objects; weights go into metric_weights={name: weight}"
            )
    return given


def resolve_metrics(
    metrics: MetricLike | Iterable[MetricLike] | None, columns: Sequence[str]
) -> tuple[Metric, ...]:
    """Turn what a caller named into metrics whose columns are there.

    Parameters
    ----------
    metrics : None, str, Metric, or several
        None takes every column that METRICS declares. Metric objects add to METRICS (and to the columns
        of METRICS when no name is given beside them); names, the Metric objects of METRICS, and the dimensions
        of a rubric select.
    columns : sequence of str
        The columns of the frame.

    Returns
    -------
    tuple of Metric
        In the order named; for None in the order of METRICS.

    Raises
    ------
    RagnbError
        For a name that neither METRICS nor the caller declares, that is not a column, or that is named twice, and
        for ratings where no metric is named.

    Examples
    --------
    >>> [m.name for m in resolve_metrics(None, ["faithfulness", "latency"])]
    ['faithfulness']
    """
    known = tuple(metric for name, metric in METRICS.items() if name in columns)
    given = metric_list(metrics)
    if given is None and not known and {"judge", "human"} <= set(columns):
        raise RagnbError(
            f"these are ratings (columns: {listing(columns)}), human and judge scores, not metrics: "
            "use rn.calibrate or rn.agreement (ragnb calibrate on a file)"
        )
    if given is None:
        return known
    declared = {metric.name: metric for metric in given if isinstance(metric, Metric)}
    new = [m for m in declared.values() if m.family != RUBRIC and METRICS.get(m.name) != m]
    if declared and len(new) == len(given):
        given = [*(metric for metric in known if metric.name not in declared), *given]
    chosen = []
    for name in [item if isinstance(item, str) else item.name for item in given]:
        metric = declared.get(name) or known_metric(name)
        if metric is None and name in columns and is_operation(name):
            metric = Metric(name)  # which needs no declaration: no total asks for its range
        if metric is None:
            step = f"Declare it: Metric({name!r}, low, high)" if name in columns else ""
            raise unknown("metric", name, [*METRICS, *declared], step)
        if name not in columns:
            have = [column for column in columns if column in METRICS or column in declared]
            raise unknown("metric", name, have, "It is not a column.")
        chosen.append(metric)
    names = [metric.name for metric in chosen]
    if len(set(names)) < len(names):
        raise RagnbError(f"metrics={names!r} names one metric twice; name each once")
    return tuple(chosen)


def undeclared_columns(frame: Any) -> list[str]:
    """Return the numeric columns that no one declared: they are listed, never averaged.

    Examples
    --------
    >>> import pandas as pd
    >>> undeclared_columns(pd.DataFrame({"faithfulness": [1.0], "latency": [2.5], "question": ["a"]}))
    ['latency']
    """
    numeric = map(
        str, frame.select_dtypes("number", exclude="timedelta").columns
    )  # which leaves flags out
    return [name for name in numeric if name not in {*METRICS, *NOT_METRICS} and "__" not in name]


# The small models that users pass around

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_OURS = (
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "accept-encoding",
)
_LITERAL = "contains what looks like a key; put the key in an environment variable and its name in api_key_env"
Operator = Literal[">=", "<="]


@dataclass(frozen=True, config=_CONFIG)
class Gate:
    """A threshold that a metric's mean must meet: ``value op threshold``.

    Parameters
    ----------
    name : str
        What the gate is called, such as ``G1``.
    metric : str
        A metric of the means frame, ``weighted_score``, a quantile of what the answers took such as
        ``p95(latency_s)``, or ``errors``, the share of answers that failed.
    op : {">=", "<="}
    threshold : float
        In the metric's own units (a rate of 80 % is 0.8).
    advisory : bool
        Whether it is shown only and never blocks.
    not_worse_than : {"baseline"}, optional
        In the place of `op` and `threshold`: the difference from the baseline of the run decides.
    by : float
        How much worse than the baseline is still accepted, in the metric's own units.
    undecided : {"value", "block", "pass"}
        What an inconclusive gate does: blocks where the value itself misses the threshold, always, or never.

    Examples
    --------
    >>> Gate("G1", "answer_precision", ">=", 0.80).threshold
    0.8
    >>> Gate("recall", "context_recall", not_worse_than="baseline", by=0.02).by
    0.02
    """

    name: str
    metric: str
    # Absent only beside not_worse_than, and such a gate becomes a plain one before it is decided.
    op: Operator = cast(Operator, None)
    threshold: Finite = cast(float, None)
    advisory: Flag = False
    not_worse_than: Literal["baseline"] | None = None
    by: float = Field(default=0.0, strict=True, ge=0, allow_inf_nan=False)
    undecided: Literal["value", "block", "pass"] = "value"

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Gate:
        for name in ("op", "threshold"):
            given = getattr(self, name) is not None
            if given and self.not_worse_than:
                raise refuse("cannot be combined with not_worse_than: baseline; leave it out", name)
            if not (given or self.not_worse_than):
                raise refuse("is required with the metric, or else not_worse_than: baseline", name)
        if self.by and not self.not_worse_than:
            raise refuse("requires not_worse_than: baseline", "by")
        return self


DEFAULT_GATES = tuple(Gate(**row) for row in TABLE["gate"])
"""The five gates of a refusal and citation check."""


@dataclass(frozen=True, config=_CONFIG)
class Rule:
    """A diagnostic rule: the thresholds of one metric, and what it means to be below or above them.

    Parameters
    ----------
    metric : str
        The metric that is read.
    warning, critical : float or None
        Strict thresholds in the metric's units; None where there is no such severity.
    name : str
        Key of the texts; the metric's name by default.
    also : Gate, optional
        A second condition on another metric's mean that must hold too.
    causes, actions : mapping of language to texts, optional
        The rule's own texts; without them those of the language files under ``rules.<name>``.
    example : mapping of metric to mean
        Means that fire the rule; a test runs it.

    Examples
    --------
    >>> Rule("faithfulness", 0.7, 0.5, example={"faithfulness": 0.4}).name
    'faithfulness'
    """

    metric: str
    warning: float | None
    critical: float | None = None
    name: str = Field(default_factory=lambda data: data["metric"])
    also: Gate | None = None
    causes: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    actions: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    example: Mapping[str, float] = Field(default_factory=dict)


def _endpoint(url: str) -> str:
    if not re.fullmatch(r"https?://[^/@\s?#]+(/[^?#\s]*)?", url):
        raise ValueError("base_url must be http(s)://host/… without a user, a key or a query in it")
    if url_holds_secret(url):
        raise ValueError(_LITERAL)
    return url


def _model_name(model: str) -> str:
    if holds_secret(model):
        raise ValueError(_LITERAL)
    return model


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name) or holds_secret(name):
        raise ValueError(
            "api_key_env must be an environment variable's name (A-Z, 0-9, _), not a key"
        )
    return name


def _headers(headers: dict[str, str]) -> dict[str, str]:
    names = [header.lower() for header in headers]
    for header, variable in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", header) or holds_secret(header):
            raise ValueError(
                "headers_env contains an invalid header name; write {api-key: VARIABLE}"
            )
        if names.count(header.lower()) > 1 or header.lower() in _OURS:
            why = "is sent by ragnb itself" if header.lower() in _OURS else "appears twice"
            raise ValueError(f"headers_env.{header} {why}; leave it out")
        if not _VARIABLE.fullmatch(variable) or holds_secret(variable):
            raise ValueError(
                f"headers_env.{header} must be an environment variable's name (A-Z, 0-9, _), not the value"
            )
    return headers


class Profile(Frozen):
    """An OpenAI-compatible endpoint: base URL, model, and the NAMES of the variables that hold its keys.

    Parameters
    ----------
    base_url, model : str
    api_key_env : str, optional
        The environment variable of the key; without one a placeholder is sent, as local servers want.
    headers_env : mapping of str to str, optional
        Headers that a gateway wants, each with the environment variable that holds its value.
    proxy_env : bool
        Whether proxies (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY) and certificates (SSL_CERT_FILE,
        SSL_CERT_DIR) of the environment are used. By default nothing of the environment is.

    Examples
    --------
    >>> Profile(base_url="http://127.0.0.1:8080/v1", model="small", api_key_env="JUDGE_KEY").model
    'small'
    """

    base_url: Annotated[str, AfterValidator(_endpoint)]
    model: Annotated[str, AfterValidator(_model_name)]
    api_key_env: Annotated[str, AfterValidator(_variable)] | None = None
    headers_env: Annotated[dict[str, str], AfterValidator(_headers)] | None = None
    proxy_env: Flag = False

    @model_validator(mode="before")
    @classmethod
    def _no_key(cls, data: Any) -> Any:
        for name in map(str, data if isinstance(data, Mapping) else ()):
            if name not in cls.model_fields and (is_secret_name(name) or holds_secret(name)):
                raise ValueError(
                    f"{masked(name)!r} contains a key; put it in an environment variable, named in "
                    "'api_key_env', or for a header in 'headers_env: {api-key: VARIABLE}'"
                )
        return data

    @property
    def variables(self) -> list[str]:
        """The environment variables that hold its keys."""
        return [name for name in (self.api_key_env, *(self.headers_env or {}).values()) if name]


_REPLY = ("tag", "analysis", "reason", "suggestion")  # what a reply holds beside its scores


def refuse(reason: str, *below: str | int) -> PydanticCustomError:
    """Return the error of a validator, for a place `below` the value it looks at.

    Examples
    --------
    >>> refuse("is blank", "anchors", 0).context
    {'reason': 'is blank', 'below': ['anchors', 0]}
    """
    return PydanticCustomError(
        "ragnb", "{reason}", {"reason": reason, "below": list[str | int](below)}
    )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _dimension(name: str) -> str:
    if _folded(name) in _REPLY or not name.isprintable():
        raise ValueError(
            f"{name!r} is not a valid dimension name: it is a field of the reply, or invisible"
        )
    return metric_name(name)


class Dimension(Frozen, str_strip_whitespace=True):
    """One dimension of a rubric: its weight, what it looks at, and what its scores mean.

    `bands` are scores, or ranges of them, with their meaning, in the order in which the judge reads them.

    Examples
    --------
    >>> Dimension(name="tone", weight=0.5, bands={"4-5": "warm", "1-3": "curt"}).weight
    0.5
    """

    name: Annotated[Words, AfterValidator(_dimension)]
    weight: Weight = 1.0
    description: Text = ""
    bands: dict[Words, Words] = Field(default_factory=dict)


class Anchor(Frozen, str_strip_whitespace=True):
    """An answer with the scores it earns, shown to the judge so that scores keep their level.

    Without contexts it is shown where answers are judged without passages.

    Examples
    --------
    >>> Anchor(question="Who pays?", answer="Ann.", scores={"accuracy": 2}).scores["accuracy"]
    2.0
    """

    question: Words
    answer: Words
    scores: dict[Words, Finite]
    contexts: tuple[Words, ...] = ()
    analysis: Text = ""
    reason: Text = ""
    suggestion: Text = ""


class Rubric(Frozen, str_strip_whitespace=True):
    """A rubric: dimensions scored on one scale, what earns which score, and when a sample passes.

    Without bands and anchors of its own, a dimension named accuracy, completeness or clarity takes those that come
    with ragnb for 1 to 10, in the language of the run. More is better in every dimension. `passing` compares
    one of them with a threshold; `decimals` False refuses 7.5. An anchor scores every dimension.
    `grades_refusals` says whether the bands reward a correct refusal, so that scores of unanswerable questions
    enter the total: by default where accuracy has the bands that come with ragnb.

    Examples
    --------
    >>> [d.weight for d in Rubric().dimensions]
    [0.5, 0.3, 0.2]
    """

    low: Finite = 1.0
    high: Finite = 10.0
    dimensions: tuple[Dimension, ...] = (
        Dimension(name="accuracy", weight=0.5),
        Dimension(name="completeness", weight=0.3),
        Dimension(name="clarity", weight=0.2),
    )
    passing: Annotated[
        Gate,
        BeforeValidator(
            lambda gate: {"name": "passing", **gate} if isinstance(gate, Mapping) else gate
        ),
    ] = Gate("passing", "accuracy", ">=", 7.0)
    anchors: tuple[Anchor, ...] = ()
    decimals: Flag = True
    grades_refusals: Flag | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> Rubric:
        scale = f"{self.low:g} to {self.high:g}"
        if not self.low < self.high:
            raise refuse(f"the scale is {scale}; low must lie below high", "low")
        if not sum(d.weight for d in self.dimensions) > 0:
            why = "no dimension" if not self.dimensions else "no dimension with a positive weight"
            raise refuse(
                f"holds {why}; write, for example, {{name: tone, weight: 1}}", "dimensions"
            )
        names = [d.name for d in self.dimensions]
        folded = [_folded(name) for name in names]
        for i, name in enumerate(folded):
            if name in folded[:i]:
                raise refuse(
                    f"{names[i]!r} appears twice; name each dimension once", "dimensions", i, "name"
                )
        gate = self.passing
        if gate.metric not in names:
            step = f"set the passing score: passing: {{metric: {names[0]}, op: '>=', threshold: …}}"
            why = (
                f"{gate.metric!r} is not a dimension; {did_you_mean(gate.metric, names)}. Or {step}"
            )
            raise refuse(why, "passing", "metric")
        if gate.op != ">=":
            raise refuse(
                "'<=' is not accepted: more is better in every dimension; write '>='",
                "passing",
                "op",
            )
        if not self.low <= gate.threshold <= self.high:
            why = f"{gate.threshold:g} is outside the scale {scale}; give a score on it"
            raise refuse(f"{why}: passing: {{…, threshold: …}}", "passing", "threshold")
        scale = scale if self.decimals else f"{scale}, in whole numbers"
        for i, anchor in enumerate(self.anchors):
            where = ("anchors", i, "scores")
            for name in dict.fromkeys([*names, *anchor.scores]):
                score = anchor.scores.get(name)
                if name not in names:
                    raise refuse(f"is not a dimension; {did_you_mean(name, names)}", *where, name)
                if score is None:
                    raise refuse(
                        f"has no score for {name!r}; an anchor needs a score for every dimension",
                        *where,
                    )
                if not self.low <= score <= self.high or (not self.decimals and score % 1):
                    raise refuse(f"{score:g} is outside the scale, which is {scale}", *where, name)
        return self

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Its dimensions as metrics, with their range and weight."""
        usual = any(d.name == "accuracy" and not d.bands for d in self.dimensions)
        known: dict[str, Any] = {
            "kind": "ordinal",
            "family": RUBRIC,
            "needs": ("answer", "question"),
        }
        known["grades_refusals"] = usual if self.grades_refusals is None else self.grades_refusals
        return tuple(
            # A judge's mark for "cost" is a quality, whatever the word says elsewhere.
            Metric(d.name, self.low, self.high, "higher", role="quality", weight=d.weight, **known)
            for d in self.dimensions
        )

    def weighed(self, weights: Mapping[str, float]) -> Rubric:
        """Return it with other weights of the dimensions that `weights` names.

        Examples
        --------
        >>> [d.weight for d in Rubric().weighed({"clarity": 2.0, "faithfulness": 1.0}).dimensions]
        [0.5, 0.3, 2.0]
        """
        weighed = [
            d.model_copy(update={"weight": weights.get(d.name, d.weight)}) for d in self.dimensions
        ]
        return self.model_copy(update={"dimensions": tuple(weighed)})
