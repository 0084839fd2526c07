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


_SCALES = ((-1, 1), (-2, 2), (1, 5), (1, 10), (0, 100))


def declare_step(name: str, low: float, high: float) -> str:
    """Word how to declare the scale that values from low to high may be on, for a refusal.

    Examples
    --------
    >>> declare_step("faithfulness", 1, 4)
    "declare its scale: metrics=[rn.Metric('faithfulness', 1, 5)] if it is 1..5"
    """
    fits = [(a, b) for a, b in _SCALES if a <= low and high <= b and (low < 0 or a >= 0)]
    if not fits:
        return f"declare its scale: metrics=[rn.Metric({name!r}, low, high)]"
    (a, b), *_ = fits
    other = "; divide by 100 if these are percent" if b == 100 else ""
    other = "; empty the cells of -1 if it stands for a failed score" if low == -1 else other
    return f"declare its scale: metrics=[rn.Metric({name!r}, {a}, {b})] if it is {a}..{b}{other}"


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
    def bounded(self) -> bool:
        """Whether both ends of the range are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)
