"""One question to the judge's endpoint: with a schema where it takes one, and again where the reply is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ragnb import texts
from ragnb.errors import RagnbError, unknown
from ragnb.judging.prompts import Message
from ragnb.judging.verdict import Verdict
from ragnb.store import CallFailed, Client


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a judge is asked; see `judge`.

    Examples
    --------
    >>> Options(top_k=5).tries
    2
    """

    lang: str = "en"
    top_k: int | None = 10
    max_context_tokens: int | None = None
    peek: str | None = None
    temperature: float | None = 0.0
    structured: bool | None = None
    tries: int = 2
    probes: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Check options that a caller named."""
        names = [one.name for one in fields(cls)]
        for name in given:
            if name not in names:
                raise unknown("option", name, names)
        options = cls(**given)
        texts.table(options.lang)
        for name in ("top_k", "max_context_tokens", "tries"):
            if getattr(options, name) is not None:
                check_whole(name, getattr(options, name))
        return options

    @property
    def sent(self) -> dict[str, Any]:
        """The parameters of each call."""
        own = {} if self.temperature is None else {"temperature": self.temperature}
        return own | dict(self.parameters)

    @property
    def about(self) -> dict[str, Any]:
        """What of it may change a reply: for the key of a cell."""
        return {"structured": self.structured, "tries": self.tries, **self.sent}


def check_whole(name: str, value: Any) -> None:
    """Refuse a number of repeats, tries or passages that makes no sense."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise RagnbError(f"{name}={value!r}; give a whole number of 1 or more")


class Judge:
    """Asks one endpoint, and remembers whether it takes a schema."""

    def __init__(self, client: Client, options: Options) -> None:
        self.client, self.options = client, options
        self.plain = options.structured is False

    async def ask(
        self, messages: Sequence[Message], schema: Mapping[str, Any], read: Callable[[str], Verdict]
    ) -> Verdict:
        """Ask until a reply can be read, at most `tries` times.

        Raises
        ------
        CallFailed
            With the parse status and the reason of the last reply.
        """
        talk = list(messages)
        for _ in range(self.options.tries):
            text = await self._send(talk, schema)
            verdict = read(text)
            if verdict.status == "ok":
                return verdict
            why = texts.load(self.options.lang)("judge.again", why=verdict.why)
            talk = [*messages, {"role": "assistant", "content": text}, {"role": "user", "content": why}]
        raise CallFailed(f"{verdict.parse_status}: {verdict.why}")

    async def _send(self, talk: Sequence[Message], schema: Mapping[str, Any]) -> str:
        if self.plain:
            return (await self.client.chat(talk, **self.options.sent)).text
        form = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}
        try:
            return (await self.client.chat(talk, response_format=form, **self.options.sent)).text
        except CallFailed as fault:
            if self.options.structured or not re.match(r"HTTP (400|415|422)\b", str(fault)):
                raise
        text = (await self.client.chat(talk, **self.options.sent)).text
        self.plain = True  # the same call went through without a schema, so the schema was the fault
        return text
