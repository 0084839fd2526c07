"""Gates, and the rules that name what is wrong below them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from pydantic import (
    Field,
    model_validator,
)
from pydantic.dataclasses import dataclass

from ragnb.schema.base import CONFIG, Finite, Flag, refuse
from ragnb.schema.metric import TABLE
from ragnb.schema.shown import Listed

Operator = Literal[">=", "<="]


@dataclass(frozen=True, config=CONFIG)
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


DEFAULT_GATES = Listed("DEFAULT_GATES", (Gate(**row) for row in TABLE["gate"]))
"""The five gates of a refusal and citation check."""


@dataclass(frozen=True, config=CONFIG)
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
