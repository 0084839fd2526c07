"""What a judge scores by: dimensions, anchors, and what passes."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    model_validator,
)

from ragnb.errors import did_you_mean
from ragnb.schema.base import Finite, Flag, Frozen, Text, Weight, Words, refuse
from ragnb.schema.gates import Gate
from ragnb.schema.metric import RUBRIC, Metric, metric_name

_REPLY = ("tag", "analysis", "reason", "suggestion")  # what a reply holds beside its scores


def _folded(name: str) -> str:
    """Return a name as a reader of a reply would take it, whatever its width and case."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _dimension(name: str) -> str:
    """Take a name that a reply can have beside its other fields."""
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


def _named_passing(gate: Any) -> Any:
    """Return the passing score with the name that a gate has to have and nobody writes there."""
    if isinstance(gate, Mapping):
        return {"name": "passing", **gate}
    return gate


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
    passing: Annotated[Gate, BeforeValidator(_named_passing)] = Gate(
        "passing", "accuracy", ">=", 7.0
    )
    anchors: tuple[Anchor, ...] = ()
    decimals: Flag = True
    grades_refusals: Flag | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> Rubric:
        scale = f"{self.low:g} to {self.high:g}"
        if not self.low < self.high:
            raise refuse(f"the scale is {scale}; low must lie below high", "low")
        self._need_dimensions()
        self._need_passing(scale)
        if not self.decimals:
            scale = f"{scale}, in whole numbers"
        for i, anchor in enumerate(self.anchors):
            self._need_scores(anchor, i, scale)
        return self

    def _need_dimensions(self) -> None:
        """Refuse dimensions that make no total, and two of one name."""
        if not sum(d.weight for d in self.dimensions) > 0:
            why = "no dimension with a positive weight" if self.dimensions else "no dimension"
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

    def _need_passing(self, scale: str) -> None:
        """Refuse a passing score of no dimension, of the wrong direction or outside the scale."""
        gate = self.passing
        names = [d.name for d in self.dimensions]
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

    def _need_scores(self, anchor: Anchor, i: int, scale: str) -> None:
        """Refuse the `i`-th anchor where it does not score every dimension, and each on the scale."""
        where = ("anchors", i, "scores")
        names = [d.name for d in self.dimensions]
        for name in dict.fromkeys([*names, *anchor.scores]):
            score = anchor.scores.get(name)
            if name not in names:
                raise refuse(f"is not a dimension; {did_you_mean(name, names)}", *where, name)
            if score is None:
                raise refuse(
                    f"has no score for {name!r}; an anchor needs a score for every dimension",
                    *where,
                )
            is_whole = score % 1 == 0
            if not self.low <= score <= self.high or not (self.decimals or is_whole):
                raise refuse(f"{score:g} is outside the scale, which is {scale}", *where, name)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Its dimensions as metrics, with their range and weight."""
        grades_refusals = self.grades_refusals
        if grades_refusals is None:
            # The bands for accuracy that come with ragnb grade refusals.
            grades_refusals = any(d.name == "accuracy" and not d.bands for d in self.dimensions)
        return tuple(
            Metric(
                d.name,
                self.low,
                self.high,
                "higher",
                kind="ordinal",
                # A judge's mark for "cost" is a quality, whatever the word says elsewhere.
                role="quality",
                family=RUBRIC,
                needs=("answer", "question"),
                weight=d.weight,
                grades_refusals=grades_refusals,
            )
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
