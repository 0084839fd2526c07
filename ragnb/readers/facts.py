"""The facts of a metric: what was found out about a column, and the evidence for it.

A number counts only when its scale and its direction are known. What a reader finds, and where evidence is silent,
is recorded beside the frame as rows that a card can print.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

FactName = Literal["scale", "direction", "blank", "row", "owner"]


class Fact(TypedDict):
    """One fact of a metric, or of the table where `metric` is None.

    ``open`` says that evidence is silent or contradicts itself, so that the caller has to say it.
    """

    metric: str | None
    fact: FactName
    value: Any
    evidence: str
    open: bool


def fact_row(
    metric: str | None, fact: FactName, value: Any, evidence: str, *, open: bool = False
) -> Fact:
    """Return one fact.

    Examples
    --------
    >>> fact_row("toxicity", "direction", "lower", "'toxicity' is a word for what is bad")["value"]
    'lower'
    """
    return Fact(metric=metric, fact=fact, value=value, evidence=evidence, open=open)
