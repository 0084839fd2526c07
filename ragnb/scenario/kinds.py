"""The kinds of value a setting can be: text, number, weight, file, pattern, metric, gate, profile, bands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    model_validator,
)

from ragnb.scenario import checks
from ragnb.schema import Gate, Metric, Profile

Text = Annotated[str, Field(strict=True), AfterValidator(checks.visible)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Weight = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False), BeforeValidator(checks.plain_decimal)]
Weights = Annotated[dict[Text, Weight], AfterValidator(checks.distinct_keys)]
File = Annotated[Path, BeforeValidator(checks.input_file)]
Files = Annotated[Path, BeforeValidator(checks.input_files)]
Pattern = Annotated[str, Field(strict=True), AfterValidator(checks.pattern)]
Columns = Annotated[dict[Text, Text], AfterValidator(checks.one_target)]
Where = dict[Text, Annotated[str | int | bool | float, PlainValidator(checks.plain_value)]]
MetricWeights = Annotated[Weights, AfterValidator(checks.known_weights)]
GateRow = Annotated[Gate, BeforeValidator(checks.exact_numbers)]
MetricRow = Annotated[
    Annotated[str, Field(strict=True), Tag("<name>")]
    | Annotated[Metric, BeforeValidator(checks.exact_numbers), Tag("<metric>")],
    Discriminator(lambda item: "<name>" if isinstance(item, str) else "<metric>"),
]
Metrics = Annotated[tuple[MetricRow, ...], AfterValidator(checks.known_metrics)]


class Bands(BaseModel):
    """Where the weighted score, on 0–1, counts as good and where as one to watch; below that it is bad.

    Examples
    --------
    >>> Bands().good
    0.7
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    good: Number = Field(default=0.7, ge=0, le=1)
    watch: Number = Field(default=0.5, ge=0, le=1)

    @model_validator(mode="after")
    def _in_order(self) -> Bands:
        if not self.good > self.watch:
            raise ValueError(f"good={self.good:g} must lie above watch={self.watch:g}")
        return self


class Damaged(BaseModel):
    """Which share of the input lines may be damaged or lost before the input counts as incomplete.

    Examples
    --------
    >>> Damaged(allow=0.01).allow
    0.01
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    allow: Number = Field(default=0.0, ge=0, le=1)


ProfileRow = Profile
