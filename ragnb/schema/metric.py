"""What a metric is."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from ragnb.schema.columns import CASE_COLUMNS, DERIVED_COLUMNS

Needs = tuple[str, ...]
Number = Annotated[float, Field(strict=True)]
_CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True)


CLIP = 1e-6
"""How far beyond an end of its range a value is taken for the end: a float32 cosine of 1 is 1.00000011921."""

COSINES = frozenset({"semantic_similarity"})
"""Metrics whose values from -1 to 1 enter a total as they are, beside scores from 0 to 1."""

_SCALES = ((-1, 1, 0), (-2, 2, 1.01), (1, 5, 1.01), (1, 10, 5), (0, 100, 10))
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
    fits = [
        (a, b)
        for a, b, narrower in _SCALES
        if a <= low and high <= b and (low < 0) == (a < 0) and max(high, -low) > narrower
    ]
    if not fits:
        return f"declare its scale: metrics=[rn.Metric({name!r}, low, high)]"
    (a, b), *_ = fits
    other = "; divide by 100 if these are percent" if b == 100 else ""
    other = "; empty the cells of -1 if it stands for a failed score" if low == -1 else other
    return f"declare its scale: metrics=[rn.Metric({name!r}, {a}, {b})] if it is {a}..{b}{other}"


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
        raise ValueError(f"{name!r} cannot name a metric: it is empty, holds '__' or is a column of ragnb")
    return name


@dataclass(frozen=True, config=_CONFIG)
class Metric:
    """A metric: its name, its range, and which end is better.

    Parameters
    ----------
    name : str
        The column that holds it; no ``__`` in it.
    low, high : float
        The ends of the range; ``inf`` where there is none.
    better : {"higher", "lower"}
        Which end is good.
    kind : {"continuous", "ordinal", "binary"}
        What its values are.
    role : {"quality", "rate"}
        A rate enters the weighted score only where the metric weights name it.
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

    Examples
    --------
    >>> Metric("gpt_groundedness", 1, 5).high
    5.0
    """

    name: Annotated[str, AfterValidator(metric_name)]
    low: Number = 0.0
    high: Number = 1.0
    better: Literal["higher", "lower"] = "higher"
    kind: Literal["continuous", "ordinal", "binary"] = "continuous"
    role: Literal["quality", "rate"] = "quality"
    family: str = ""
    needs: Needs = ()
    weight: Annotated[Number, Field(ge=0, allow_inf_nan=False)] = 1.0
    aliases: Needs = ()
    variant: str = ""
    grades_refusals: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _range_is_open(self) -> Metric:
        if math.isnan(self.low) or math.isnan(self.high) or not self.low < self.high:
            raise ValueError(f"range of {self.name!r} is {self.low}..{self.high}; low must lie below high")
        return self

    @property
    def scale(self) -> tuple[float, float]:
        """The ends between which it is added up and shown beside others, as `scale_of` says."""
        return scale_of(self.name, self.low, self.high)

    @property
    def bounded(self) -> bool:
        """Whether both ends of the range are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)
