"""The small models that users pass around: a gate, a diagnostic rule, an endpoint profile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.dataclasses import dataclass

_CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True)
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

    Examples
    --------
    >>> Gate("G1", "answer_precision", ">=", 0.80).threshold
    0.8
    """

    name: str
    metric: str
    op: Operator
    threshold: float = Field(strict=True, allow_inf_nan=False, validation_alias=AliasChoices("threshold", "at"))
    advisory: bool = Field(default=False, strict=True)


DEFAULT_GATES: tuple[Gate, ...] = (
    Gate("G1", "answer_precision", ">=", 0.80),
    Gate("G2", "under_refusal", "<=", 0.05),
    Gate("G3", "over_refusal", "<=", 0.25),
    Gate("G4", "citation_hit_rate", ">=", 0.75),
    Gate("G5", "compliance", ">=", 0.98),
)
"""The five gates of a refusal and citation check."""


@dataclass(frozen=True, config=_CONFIG)
class Rule:
    """A diagnostic rule: the bars of one metric, and what they mean when they are passed.

    Parameters
    ----------
    metric : str
        The metric that is read.
    warning, critical : float or None
        Strict bars in the metric's units; None where there is no such severity.
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


class Profile(BaseModel):
    """An OpenAI-compatible endpoint: base URL, model, and the NAME of the variable that holds the key.

    Examples
    --------
    >>> Profile(base_url="http://127.0.0.1:8080/v1", model="small", api_key_env="JUDGE_KEY").model
    'small'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    base_url: str
    model: str
    api_key_env: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_key(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            literal = [k for k in data if re.fullmatch(r"(?i)(api_?key|key|token|secret|password)", str(k))]
            if literal:
                raise ValueError(
                    f"{literal[0]!r} holds a key; keep it in an environment variable, named in 'api_key_env'"
                )
        return data

    @field_validator("base_url")
    @classmethod
    def _url_holds_no_key(cls, url: str) -> str:
        if not re.fullmatch(r"https?://[^/@\s?#]+(/[^?#\s]*)?", url):
            raise ValueError("base_url must be http(s)://host/… without a user, a key or a query in it")
        return url

    @field_validator("api_key_env")
    @classmethod
    def _is_a_name(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", name):
            raise ValueError("api_key_env must be an environment variable's name (A-Z, 0-9, _), not a key")
        return name
