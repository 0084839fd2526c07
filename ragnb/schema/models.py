"""The small models that users pass around: a gate, a diagnostic rule, an endpoint profile, a judge's rubric."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from ragnb.errors import did_you_mean
from ragnb.schema.frames import RUBRIC, TABLE, Flag, Metric, metric_name
from ragnb.schema.secrets import holds_secret, is_secret_name, masked, url_holds_secret

_CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_OURS = ("host", "connection", "content-length", "content-type", "transfer-encoding", "accept-encoding")
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
        A metric of the means frame, or ``weighted_score``.
    op : {">=", "<="}
    threshold : float
        In the metric's own units (a rate of 80 % is 0.8). ``at``, its name in version 0.1, is still read.
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
    threshold: Annotated[float, Field(strict=True, allow_inf_nan=False)] = Field(
        default=cast(float, None), validation_alias=AliasChoices("threshold", "at")
    )
    advisory: Flag = False
    not_worse_than: Literal["baseline"] | None = None
    by: float = Field(default=0.0, strict=True, ge=0, allow_inf_nan=False)
    undecided: Literal["value", "block", "pass"] = "value"

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Gate:
        for name in ("op", "threshold"):
            given = getattr(self, name) is not None
            if given and self.not_worse_than is not None:
                raise refuse("cannot be combined with not_worse_than: baseline; leave it out", name)
            if not given and self.not_worse_than is None:
                raise refuse("is required with the metric, or else not_worse_than: baseline", name)
        if self.by and self.not_worse_than is None:
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
    name: str = ""
    also: Gate | None = None
    causes: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    actions: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    example: Mapping[str, float] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.metric)


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
        raise ValueError("api_key_env must be an environment variable's name (A-Z, 0-9, _), not a key")
    return name


def _headers(headers: dict[str, str]) -> dict[str, str]:
    seen: set[str] = set()
    for header, variable in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", header) or holds_secret(header):
            raise ValueError("headers_env contains an invalid header name; write {api-key: VARIABLE}")
        if header.lower() in seen or header.lower() in _OURS:
            why = "appears twice" if header.lower() in seen else "is sent by ragnb itself"
            raise ValueError(f"headers_env.{header} {why}; leave it out")
        if not _VARIABLE.fullmatch(variable) or holds_secret(variable):
            raise ValueError(
                f"headers_env.{header} must be an environment variable's name (A-Z, 0-9, _), not the value"
            )
        seen.add(header.lower())
    return headers


class Profile(BaseModel):
    """An OpenAI-compatible endpoint: base URL, model, and the NAMES of the variables that hold its keys.

    Parameters
    ----------
    base_url, model : str
    api_key_env : str, optional
        The environment variable of the key; without one a placeholder is sent, as local servers want.
    headers_env : mapping of str to str, optional
        Headers that a gateway wants, each with the environment variable that holds its value.

    Examples
    --------
    >>> Profile(base_url="http://127.0.0.1:8080/v1", model="small", api_key_env="JUDGE_KEY").model
    'small'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    base_url: Annotated[str, AfterValidator(_endpoint)]
    model: Annotated[str, AfterValidator(_model_name)]
    api_key_env: Annotated[str, AfterValidator(_variable)] | None = None
    headers_env: Annotated[dict[str, str], AfterValidator(_headers)] | None = None

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
    return PydanticCustomError("ragnb", "{reason}", {"reason": reason, "below": list[str | int](below)})


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _dimension(name: str) -> str:
    if _folded(name) in _REPLY or not name.isprintable():
        raise ValueError(f"{name!r} is not a valid dimension name: it is a field of the reply, or invisible")
    return metric_name(name)


_STRIPPED = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)
Text = Annotated[str, Field(strict=True)]
Words = Annotated[str, Field(strict=True, min_length=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Weight = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]


class Dimension(BaseModel):
    """One dimension of a rubric: its weight, what it looks at, and what its scores mean.

    `bands` are scores, or ranges of them, with their meaning, in the order in which the judge reads them.

    Examples
    --------
    >>> Dimension(name="tone", weight=0.5, bands={"4-5": "warm", "1-3": "curt"}).weight
    0.5
    """

    model_config = _STRIPPED
    name: Annotated[Words, AfterValidator(_dimension)]
    weight: Weight = 1.0
    description: Text = ""
    bands: dict[Words, Words] = Field(default_factory=dict)


class Anchor(BaseModel):
    """An answer with the scores it earns, shown to the judge so that scores keep their level.

    Without contexts it is shown where answers are judged without passages.

    Examples
    --------
    >>> Anchor(question="Who pays?", answer="Ann.", scores={"accuracy": 2}).scores["accuracy"]
    2.0
    """

    model_config = _STRIPPED
    question: Words
    answer: Words
    scores: dict[Words, Number]
    contexts: tuple[Words, ...] = ()
    analysis: Text = ""
    reason: Text = ""
    suggestion: Text = ""


def _named(gate: Any) -> Any:
    return {"name": "passing", **gate} if isinstance(gate, Mapping) else gate


class Rubric(BaseModel):
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

    model_config = _STRIPPED
    low: Number = 1.0
    high: Number = 10.0
    dimensions: tuple[Dimension, ...] = (
        Dimension(name="accuracy", weight=0.5),
        Dimension(name="completeness", weight=0.3),
        Dimension(name="clarity", weight=0.2),
    )
    passing: Annotated[Gate, BeforeValidator(_named)] = Gate("passing", "accuracy", ">=", 7.0)
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
            raise refuse(f"holds {why}; write, for example, {{name: tone, weight: 1}}", "dimensions")
        names = [d.name for d in self.dimensions]
        folded = [_folded(name) for name in names]
        for i, name in enumerate(folded):
            if name in folded[:i]:
                raise refuse(f"{names[i]!r} appears twice; name each dimension once", "dimensions", i, "name")
        gate = self.passing
        if gate.metric not in names:
            step = f"set the passing score: passing: {{metric: {names[0]}, op: '>=', threshold: …}}"
            why = f"{gate.metric!r} is not a dimension; {did_you_mean(gate.metric, names)}. Or {step}"
            raise refuse(why, "passing", "metric")
        if gate.op != ">=":
            raise refuse("'<=' is not accepted: more is better in every dimension; write '>='", "passing", "op")
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
                    raise refuse(f"has no score for {name!r}; an anchor needs a score for every dimension", *where)
                if not self.low <= score <= self.high or (not self.decimals and score % 1):
                    raise refuse(f"{score:g} is outside the scale, which is {scale}", *where, name)
        return self

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Its dimensions as metrics, with their range and weight."""
        graded = self.grades_refusals
        if graded is None:
            graded = any(d.name == "accuracy" and not d.bands for d in self.dimensions)
        known: dict[str, Any] = {"kind": "ordinal", "family": RUBRIC, "needs": ("answer", "question")}
        known["grades_refusals"] = graded
        return tuple(Metric(d.name, self.low, self.high, weight=d.weight, **known) for d in self.dimensions)

    def weighed(self, weights: Mapping[str, float]) -> Rubric:
        """Return it with other weights of the dimensions that `weights` names.

        Examples
        --------
        >>> [d.weight for d in Rubric().weighed({"clarity": 2.0, "faithfulness": 1.0}).dimensions]
        [0.5, 0.3, 2.0]
        """
        weighed = [d.model_copy(update={"weight": weights.get(d.name, d.weight)}) for d in self.dimensions]
        return self.model_copy(update={"dimensions": tuple(weighed)})
