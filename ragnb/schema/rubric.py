"""What a judge scores by: dimensions on one scale, what earns which score, and from where on an answer passes."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator
from pydantic_core import PydanticCustomError

from ragnb.errors import did_you_mean
from ragnb.schema.metric import Metric, metric_name
from ragnb.schema.models import Gate

RUBRIC = "rubric"
"""The family of the metrics that a rubric's dimensions are."""

_SAID = ("analysis", "reason", "suggestion")  # what a reply holds beside its scores


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
    if _folded(name) in _SAID or not name.isprintable():
        raise ValueError(f"{name!r} cannot name a dimension: a reply has it already, or it cannot be seen")
    return metric_name(name)


_CONFIG = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)
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

    model_config = _CONFIG
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

    model_config = _CONFIG
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

    model_config = _CONFIG
    low: Number = 1.0
    high: Number = 10.0
    dimensions: tuple[Dimension, ...] = (
        Dimension(name="accuracy", weight=0.5),
        Dimension(name="completeness", weight=0.3),
        Dimension(name="clarity", weight=0.2),
    )
    passing: Annotated[Gate, BeforeValidator(_named)] = Gate("passing", "accuracy", ">=", 7.0)
    anchors: tuple[Anchor, ...] = ()
    decimals: StrictBool = True
    grades_refusals: StrictBool | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> Rubric:
        if not self.low < self.high:
            raise refuse(f"the scale is {self.low:g} to {self.high:g}; low must lie below high", "low")
        if not sum(d.weight for d in self.dimensions) > 0:
            why = "no dimension" if not self.dimensions else "no dimension with a positive weight"
            raise refuse(f"holds {why}; write, for example, {{name: tone, weight: 1}}", "dimensions")
        names = [d.name for d in self.dimensions]
        folded = [_folded(name) for name in names]
        for i, name in enumerate(folded):
            if name in folded[:i]:
                raise refuse(f"{names[i]!r} stands here twice; name each dimension once", "dimensions", i, "name")
        self._check_passing(names)
        for i, anchor in enumerate(self.anchors):
            for name in dict.fromkeys([*names, *anchor.scores]):
                self._check_score(anchor.scores.get(name), name, names, i)
        return self

    def _check_passing(self, names: list[str]) -> None:
        gate = self.passing
        if gate.metric not in names:
            step = f"say from where on an answer passes: passing: {{metric: {names[0]}, op: '>=', threshold: …}}"
            why = f"{gate.metric!r} is no dimension; {did_you_mean(gate.metric, names)}. Or {step}"
            raise refuse(why, "passing", "metric")
        if gate.op != ">=":
            raise refuse("'<=' is not taken, as more is better in every dimension; write '>='", "passing", "op")
        if not self.low <= gate.threshold <= self.high:
            why = f"{gate.threshold:g} lies off the scale {self.low:g} to {self.high:g}; write a score of it"
            raise refuse(f"{why}: passing: {{…, threshold: …}}", "passing", "threshold")

    def _check_score(self, score: float | None, name: str, names: list[str], place: int) -> None:
        where = ("anchors", place, "scores")
        if name not in names:
            raise refuse(f"is no dimension; {did_you_mean(name, names)}", *where, name)
        if score is None:
            raise refuse(f"has no score for {name!r}; an anchor scores every dimension", *where)
        if not self.low <= score <= self.high or (not self.decimals and score % 1):
            scale = f"{self.low:g} to {self.high:g}{'' if self.decimals else ', in whole numbers'}"
            raise refuse(f"{score:g} lies off the scale, which is {scale}", *where, name)

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
        own = [d.model_copy(update={"weight": weights.get(d.name, d.weight)}) for d in self.dimensions]
        return self.model_copy(update={"dimensions": tuple(own)})
