"""The adapter to ragas: its current metrics, called through our client, with telemetry off."""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import ValidationError

from ragnb.errors import MissingExtraError, RagnbError, require
from ragnb.scoring.asking import Asker, Nothing

PINS = ("ragas>=0.4.3,<0.5", "langchain-community>=0.4,<0.4.2", "instructor>=1.15")
Embed = Callable[[Sequence[str]], Awaitable[list[list[float]]]]
_NAMES = {"question": "user_input", "answer": "response", "ground_truth_answer": "reference"}
# Classes of ragas 0.4 for replies with one verdict for each statement of an earlier reply.
_ONE_EACH = ("NLIStatementOutput", "StatementFaithfulnessOutput")
_VERDICTS = ("verdict", "attributed", "noncommittal")  # fields of replies that must be 0 or 1


def installed() -> str:
    """Return the version of ragas, which fixes its prompts: it enters the key of a cell.

    Raises
    ------
    MissingExtraError
        Where it is not installed.
    """
    try:
        return f"ragas {version('ragas')}"
    except PackageNotFoundError:
        raise _missing("it is not installed") from None


def _missing(why: object) -> MissingExtraError:
    pins = " ".join(f'"{pin}"' for pin in PINS)
    return MissingExtraError(
        f'ragas cannot be imported ({why}); it comes with: pip install "ragnb[ragas]", '
        f"which holds the versions that work together: {pins}"
    )


@cache
def imported() -> Any:
    """Import ragas with its telemetry off, and return its metrics."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    try:
        require("ragas._analytics", extra="ragas").do_not_track.cache_clear()
        return require("ragas.metrics.collections", extra="ragas")
    except ImportError as error:
        raise _missing(error.__cause__ or error) from error


async def collected(
    made_of: str, inputs: Mapping[str, Any], asker: Asker | None, embed: Embed | None
) -> float:
    """Compute a metric of ragas for one case, with a judge and embeddings where it takes them.

    Raises
    ------
    Nothing
        Where the value is 0/0.
    CallFailed
        Where the judge's replies do not fit.
    """
    parts: dict[str, Any] = {}
    if asker:
        parts["llm"] = _judge()(asker)
    if embed:
        parts["embeddings"] = _vectors()(embed)
    metric = getattr(imported(), made_of)(**parts)
    named = {_NAMES.get(name, name): value for name, value in inputs.items()}
    # Both texts in one call, before the metric asks for each of them by `embed_text`.
    if embed and "reference" in named:
        await parts["embeddings"].know([named["response"], named["reference"]])
    if not named.get("retrieved_contexts", True):
        named["retrieved_contexts"] = [""]  # judged against nothing: the answer has no support
    value = float((await metric.ascore(**named)).value)
    if math.isnan(value):
        raise Nothing("no statement was found: 0/0" if asker else "a text has no direction: 0/0")
    return value


@cache
def _judge() -> Any:
    """Our client behind the interface of ragas. It refuses input that ragas would silently count wrong."""

    class Judge(require("ragas.llms.base", extra="ragas").InstructorBaseRagasLLM):  # type: ignore[misc]
        def __init__(self, asker: Asker) -> None:
            self.asker = asker
            self.sizes = set[int]()

        def generate(self, prompt: str, response_model: Any) -> Any:
            raise RagnbError(
                "a ragas metric makes calls outside the event loop; this version is not supported"
            )

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            def read(text: str) -> Any:
                try:
                    reply = response_model.model_validate_json(text)
                except ValidationError as error:
                    faults = []
                    for fault in error.errors():
                        place = ".".join(map(str, fault["loc"]))
                        faults.append(f"{place}: {fault['msg']}")
                    raise ValueError("; ".join(faults)) from None
                self._check(reply.model_dump(), response_model.__name__)
                return reply

            reply = await self.asker.ask_once(prompt, read)
            statements = getattr(reply, "statements", getattr(reply, "claims", None))
            if statements is not None:
                self.sizes.add(len(statements))
            if statements == [] and response_model.__name__ == "StatementGeneratorOutput":
                raise Nothing("no statement was found: 0/0")
            return reply

        def _check(self, reply: dict[str, Any], form: str) -> None:
            """Refuse a reply with too few or too many verdicts, and one whose verdicts are no verdicts."""
            rows = [row for part in reply.values() if isinstance(part, list) for row in part]
            # A metric may split several texts into statements: a reply has to fit one of them.
            if form in _ONE_EACH and len(rows) not in self.sizes:
                sizes = " or ".join(map(str, sorted(self.sizes)))
                raise ValueError(f"{len(rows)} verdicts for {sizes} statements")
            for row in [reply, *(row for row in rows if isinstance(row, dict))]:
                for name in _VERDICTS:
                    if row.get(name, 0) not in (0, 1):
                        raise ValueError(f"{name}={row[name]!r} is neither 0 nor 1")

    return Judge


@cache
def _vectors() -> Any:
    """Embeddings behind the interface of ragas, with a cache."""

    class Vectors(require("ragas.embeddings.base", extra="ragas").BaseRagasEmbedding):  # type: ignore[misc]
        def __init__(self, embed: Embed) -> None:
            super().__init__()
            self.embed = embed
            self.known = dict[str, list[float]]()

        async def know(self, texts: Sequence[str]) -> None:
            new = list(dict.fromkeys(text for text in texts if text not in self.known))
            if new:
                self.known |= dict(zip(new, await self.embed(new), strict=True))

        def embed_text(self, text: str, **more: Any) -> list[float]:
            return self.known[text]  # one metric of ragas asks so, within the event loop

        async def aembed_text(self, text: str, **more: Any) -> list[float]:
            await self.know([text])
            return self.known[text]

        async def aembed_texts(self, texts: list[str], **more: Any) -> list[list[float]]:
            await self.know(texts)
            return [self.known[text] for text in texts]

    return Vectors
