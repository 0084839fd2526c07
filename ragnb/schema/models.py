"""The small models that users pass around: a gate, a diagnostic rule, an endpoint profile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.dataclasses import dataclass

from ragnb.schema.secrets import holds_secret, is_secret_name, masked, url_holds_secret

_CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_OURS = ("host", "connection", "content-length", "content-type", "transfer-encoding", "accept-encoding")
_LITERAL = "holds what looks like a key; put the key in an environment variable and its name in api_key_env"
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
    base_url: str
    model: str
    api_key_env: str | None = None
    headers_env: dict[str, str] | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_key(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            literal = [
                k
                for k in data
                if k not in cls.model_fields and (is_secret_name(str(k)) or holds_secret(str(k)))
            ]
            if literal:
                raise ValueError(
                    f"{masked(str(literal[0]))!r} holds a key; keep it in an environment variable, named in "
                    "'api_key_env', or for a header in 'headers_env: {api-key: VARIABLE}'"
                )
        return data

    @field_validator("base_url")
    @classmethod
    def _url_holds_no_key(cls, url: str) -> str:
        if not re.fullmatch(r"https?://[^/@\s?#]+(/[^?#\s]*)?", url):
            raise ValueError("base_url must be http(s)://host/… without a user, a key or a query in it")
        if url_holds_secret(url):
            raise ValueError(_LITERAL)
        return url

    @field_validator("model")
    @classmethod
    def _model_is_no_key(cls, model: str) -> str:
        if holds_secret(model):
            raise ValueError(_LITERAL)
        return model

    @field_validator("api_key_env")
    @classmethod
    def _is_a_name(cls, name: str | None) -> str | None:
        if name is not None and (not _VARIABLE.fullmatch(name) or holds_secret(name)):
            raise ValueError("api_key_env must be an environment variable's name (A-Z, 0-9, _), not a key")
        return name

    @property
    def variables(self) -> list[str]:
        """The environment variables that hold its keys."""
        return [name for name in (self.api_key_env, *(self.headers_env or {}).values()) if name]

    @field_validator("headers_env")
    @classmethod
    def _are_names(cls, headers: dict[str, str] | None) -> dict[str, str] | None:
        seen: set[str] = set()
        for header, variable in (headers or {}).items():
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", header) or holds_secret(header):
                raise ValueError("headers_env holds a name that no header can have; write {api-key: VARIABLE}")
            if header.lower() in seen or header.lower() in _OURS:
                why = "appears twice" if header.lower() in seen else "is sent by ragnb itself"
                raise ValueError(f"headers_env.{header} {why}; leave it out")
            if not _VARIABLE.fullmatch(variable) or holds_secret(variable):
                raise ValueError(
                    f"headers_env.{header} must be an environment variable's name (A-Z, 0-9, _), not the value"
                )
            seen.add(header.lower())
        return headers
