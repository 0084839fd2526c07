"""What the small models have in common: types of their fields, and how a validator refuses."""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
)
from pydantic_core import PydanticCustomError


class Frozen(BaseModel):
    """Settings that take no key they do not know and repeat no value in a message."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


Needs = tuple[str, ...]
Text = Annotated[str, Field(strict=True)]
Words = Annotated[str, Field(strict=True, min_length=1)]
Number = Annotated[float, Field(strict=True)]
Finite = Annotated[Number, Field(allow_inf_nan=False)]
Weight = Annotated[Finite, Field(ge=0)]
Flag = Annotated[bool, Field(strict=True)]
CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True)


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
