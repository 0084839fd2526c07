"""What is asked, what came back, and why a call failed: cells, outcomes and calls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal

from ragnb.errors import RagnbError
from ragnb.schema.secrets import refuse_secrets


class CallFailed(RagnbError):
    """A call or its reply gives no result: the cell becomes ``failed`` with this reason.

    Parameters
    ----------
    message : str
        The reason.
    reply : str, optional
        The raw text that came, where the client has not kept it as a reply.
    """

    def __init__(self, message: str, reply: str | None = None) -> None:
        super().__init__(message)
        self.reply = reply


class Stop(RagnbError):
    """The run cannot continue for a reason outside of the cells: unfinished cells stay pending.

    Parameters
    ----------
    message : str
        Why, and what to do before the run is taken up again.
    refused : bool
        True where the endpoint would refuse every call (a bad key, an unknown model): then `run_cells` raises
        it. False for a used-up budget or a long wait: then `run_cells` returns what there is, with a warning.
    """

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value for keys: sorted, ASCII, arrays as lists.

    Raises
    ------
    RagnbError
        For what JSON cannot hold, NaN and infinity among it.

    Examples
    --------
    >>> canonical({"b": 1, "a": ["甲"]})
    '{"a":["\\\\u7532"],"b":1}'
    """
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain
        )
    except (TypeError, ValueError) as error:
        raise RagnbError(f"a {type(value).__name__} cannot be stored as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays, tuples' kin and pydantic models as plain values."""
    for name in ("tolist", "model_dump"):
        if hasattr(value, name):
            return getattr(value, name)()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def digest(text: str) -> str:
    """Return 32 hexadecimal digits of the SHA-256 of a text; lone surrogates count as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, eq=False)
class Cell:
    """One piece of work: this metric or rubric, of this sample, by this model and prompt.

    Parameters
    ----------
    sample_id : str or int
    what : str
        The metric, or the rubric and its mode: ``faithfulness``, ``rubric/peek``.
    inputs : mapping
        All that the work reads of the case, as JSON values (question, answer, contexts …). Only their hash is
        stored.
    model : str
        The model that does the work, or the name and version of a function.
    parameters : mapping
        Temperature, variant, seed: all that may change the result, as JSON values.
    prompt : str
        The text of the prompt, or of all prompts of the work, without the inputs; its hash enters the key.
    repeat : int
        Which of several judgements of the same thing, from 0; see `judge`.
    missing : tuple of str
        Fields that the work needs and the case lacks. Not empty: the cell is ``not_applicable``, and no call
        is made.
    calls, tokens : int
        How many calls, and about how many tokens (prompt and reply), are expected: for budgets and `estimate`.
        Not in the key.
    cluster : str, optional
        The document of the sample, for intervals. Not in the key.

    Examples
    --------
    >>> one = Cell("s1", "faithfulness", {"answer": "Ja."}, model="small")
    >>> one.key == Cell("s1", "faithfulness", {"answer": "Ja."}, model="large").key
    False
    """

    sample_id: str | int
    what: str
    inputs: Mapping[str, Any]
    model: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    repeat: int = 0
    missing: tuple[str, ...] = ()
    calls: int = 1
    tokens: int = 0
    cluster: str | None = None

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the key is made of: the hashes of inputs and prompt, the rest in clear.

        Raises
        ------
        RagnbError
            For a key of an endpoint among the parameters; see `refuse_secrets`.
        """
        _refuse_keys(canonical(self.parameters))
        hashes = {"inputs": digest(canonical(self.inputs)), "prompt": digest(self.prompt)}
        named = {
            "sample_id": self.sample_id,
            "what": self.what,
            "model": self.model,
            "repeat": self.repeat,
        }
        return named | hashes | {"parameters": self.parameters, "missing": list(self.missing)}

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits; cells with equal keys are the same work and computed once."""
        return digest(canonical(self.about))


@lru_cache(maxsize=64)
def _refuse_keys(parameters: str) -> None:
    """Look at parameters once, as thousands of cells have the same."""
    refuse_secrets(json.loads(parameters), "parameters")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cell: ``ok`` and a value, ``not_applicable``, or ``failed`` and a reason.

    The work makes it by `of`, `failed` or `lacking`; the loop adds what the calls of the cell took.

    Parameters
    ----------
    status : {"ok", "not_applicable", "failed"}
    value : JSON value
        Of an ``ok`` cell: a finite number, a text, or a list or mapping of such. None otherwise.
    reason : str, optional
        Why there is no value.
    replies : tuple of str or int
        The raw texts of all replies, in the order they came, or the numbers of their calls in the store.
    calls : int
        Calls that were sent, retries among them.
    tokens_in, tokens_out : int or None
        Of all calls; None where the endpoint did not say.
    seconds : float
        From the start of the cell to its end, waits for a place and for retries among it.

    Examples
    --------
    >>> Outcome.of(0.5).status, Outcome.lacking(["ground_truth_answer"]).reason
    ('ok', 'no ground_truth_answer')
    """

    status: Literal["ok", "not_applicable", "failed"]
    value: Any = None
    reason: str | None = None
    replies: tuple[str | int, ...] = ()
    calls: int = 0
    tokens_in: int | None = 0
    tokens_out: int | None = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if (self.status == "ok") != (self.value is not None):
            raise RagnbError(f"an outcome of status {self.status!r} has the value {self.value!r}")
        canonical(self.value)

    @classmethod
    def of(cls, value: Any) -> Outcome:
        """The work is done: a value."""
        return cls("ok", value)

    @classmethod
    def failed(cls, reason: str, *replies: str) -> Outcome:
        """The work gave no value. `replies` only where they are not those of the client's calls."""
        return cls("failed", None, reason, replies)

    @classmethod
    def lacking(cls, missing: Iterable[str]) -> Outcome:
        """The case lacks fields that the work needs."""
        return cls("not_applicable", None, f"no {', '.join(missing)}")


@dataclass(frozen=True)
class Call:
    """One request that was answered.

    Parameters
    ----------
    key : str or None
        Hash of the request, and of an ordinal where equal requests differ on purpose; see `Meter.key`.
    reply : JSON value
        The text, or the vectors of an embedding.
    tag : str, optional
        The random tag that the request held; see `new_tag`.
    tokens_in, tokens_out : int or None
        None where the endpoint did not say.
    seconds : float
        From the request to its reply, waits for a place and for retries among it.
    """

    key: str | None
    reply: Any
    tag: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0
