"""One request to a judge: with a JSON schema if the endpoint supports it; unreadable replies are retried."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import BaseModel, StrictBool, ValidationError

from ragnb import texts
from ragnb.store import CallFailed, Client, new_tag

T = TypeVar("T")
PARAMETERS: Mapping[str, Any] = {"temperature": 0.0, "response_format": {"type": "json_object"}}
"""What goes with every call of a metric, where the caller does not say otherwise."""


class Nothing(Exception):
    """The metric is 0/0 for this case: there is no statement to score."""


class Asker:
    """Asks one endpoint, and remembers whether it takes a schema.

    Parameters
    ----------
    client : Client
    parameters : mapping
        Sent with every call.
    schema : mapping, optional
        JSON schema of a reply. An endpoint that refuses it is asked plainly from then on.
    tries : int
        Calls for one reply that can be read.
    lang : {"en", "zh"}
        Of the request for another reply.
    """

    def __init__(
        self,
        client: Client,
        parameters: Mapping[str, Any],
        *,
        schema: Mapping[str, Any] | None = None,
        tries: int = 2,
        lang: str = "en",
    ) -> None:
        self.client = client
        self.parameters = parameters
        self.schema = schema
        self.tries = tries
        self.lang = lang

    async def ask(
        self, messages: Sequence[dict[str, str]], read: Callable[[str], T], unread: str = ""
    ) -> T:
        """Return what `read` makes of a reply; one that it refuses (ValueError) is asked for again.

        Raises
        ------
        CallFailed
            With `unread` and the reason of the last reply.
        """
        talk = list(messages)
        for _ in range(self.tries):
            text = await self._send(talk)
            try:
                return read(text)
            except ValueError as error:
                why = " ".join(str(error).split())[:300]
            again = texts.load(self.lang)("judge.again", why=why)
            talk = [
                *messages,
                {"role": "assistant", "content": text},
                {"role": "user", "content": again},
            ]
        raise CallFailed(unread + why)

    async def _send(self, talk: Sequence[dict[str, str]]) -> str:
        """Send a talk, with the schema as long as the endpoint takes it."""
        if self.schema is not None:
            schema = {"name": "verdict", "strict": True, "schema": self.schema}
            form = {"response_format": {"type": "json_schema", "json_schema": schema}}
            try:
                return await self.client.chat(talk, **form, **self.parameters)
            except CallFailed as fault:
                # The statuses by which endpoints refuse a parameter that they do not know.
                if not re.match(r"HTTP (400|415|422)\b", str(fault)):
                    raise
        text = await self.client.chat(talk, **self.parameters)
        # The same call went through without a schema, so the schema was the fault.
        self.schema = None
        return text

    async def ask_once(self, prompt: str, read: Callable[[str], T]) -> T:
        """Ask one prompt for JSON."""
        messages = [{"role": "user", "content": prompt}]
        unread = "the reply could not be read, twice: "
        return await self.ask(messages, lambda text: read(json_part(text)), unread)


def json_part(text: str) -> str:
    """Return what stands between the first and the last brace: without fences and words around.

    Examples
    --------
    >>> json_part('Here it is: ```json {"verdict": 1} ``` Done.')
    '{"verdict": 1}'
    """
    start = text.find("{")
    end = text.rfind("}")
    if 0 <= start < end:
        return text[start : end + 1]
    return text


def with_data(instruction: str, data: Mapping[str, Any]) -> str:
    """Return a prompt with its data as JSON between two tags that the data cannot hold."""
    tag = f"data-{new_tag()}"
    block = json.dumps(data, ensure_ascii=False, indent=1).replace("<", "\\u003c")
    return f"{instruction}\n\n<{tag}>\n{block}\n</{tag}>"


async def relevance(asker: Asker, question: str, passages: Sequence[str], lang: str) -> float:
    """Ask which passages help to answer the question, and return their share, in [0, 1].

    The metric of this name in ragas is a rating of all passages together, and no share.
    """
    by_number = {str(n): text for n, text in enumerate(passages, 1)}
    data = {"question": question, "passages": by_number}
    prompt = with_data(texts.load(lang)("scoring.relevance"), data)
    verdicts = await asker.ask_once(prompt, lambda text: _verdicts(text, len(passages)))
    return sum(verdicts) / len(verdicts)


class Relevance(BaseModel):
    """The form of such a reply: of each passage, by its number, whether it helps."""

    relevant: dict[str, StrictBool]


def _verdicts(text: str, n: int) -> list[bool]:
    """Read a reply about n passages; one that leaves a passage out, or has others, is none."""
    with suppress(ValidationError):
        relevant = Relevance.model_validate_json(text).relevant
        if set(relevant) == {str(place) for place in range(1, n + 1)}:
            return list(relevant.values())
    raise ValueError(
        f"'relevant' must hold true or false for each of the passages 1 to {n}, and nothing else"
    )
