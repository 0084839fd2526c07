"""One question to the judge, answered as JSON of a given form; what cannot be read is asked once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ragnb.store import CallFailed, Client

T = TypeVar("T")
PARAMETERS: Mapping[str, Any] = {"temperature": 0.0, "response_format": {"type": "json_object"}}
"""What goes with every call, where the caller does not say otherwise."""


class Nothing(Exception):
    """The metric is 0/0 for this case: there is no statement to look at."""


class Asker:
    """A judge that answers in JSON.

    Parameters
    ----------
    client : Client
    parameters : mapping
        Sent with every call.
    """

    def __init__(self, client: Client, parameters: Mapping[str, Any]) -> None:
        self.client, self.parameters = client, parameters

    async def ask(self, prompt: str, read: Callable[[str], T]) -> T:
        """Send a prompt and read the reply; a reply that `read` refuses (ValueError) is asked for once more."""
        messages = [{"role": "user", "content": prompt}]
        for _ in range(2):
            reply = await self.client.chat(messages, **self.parameters)
            try:
                return read(json_part(reply.text))
            except ValueError as error:
                said = " ".join(str(error).split())[:300]
            again = f"This reply could not be read: {said}. Reply again, with the JSON alone."
            messages += [{"role": "assistant", "content": reply.text}, {"role": "user", "content": again}]
        raise CallFailed(f"the reply could not be read, twice: {said}")


def json_part(text: str) -> str:
    """Return what stands between the first and the last brace: without fences and words around.

    Examples
    --------
    >>> json_part('Here it is: ```json {"verdict": 1} ``` Done.')
    '{"verdict": 1}'
    """
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text
