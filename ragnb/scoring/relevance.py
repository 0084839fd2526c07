"""The share of the retrieved passages that speak to the question, by our own prompt.

The metric of this name in ragas is a rating of all passages together, and no share.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence

from ragnb import texts
from ragnb.scoring.asking import Asker


def prompt_of(lang: str) -> str:
    """The prompt without its data: what enters the key of a cell."""
    return texts.load(lang)("scoring.relevance")


async def relevance(asker: Asker, question: str, passages: Sequence[str], lang: str) -> float:
    """Ask which passages help to answer the question, and return their share, in [0, 1]."""
    tag = f"data-{secrets.token_hex(8)}"
    data = {"question": question, "passages": {str(n): text for n, text in enumerate(passages, 1)}}
    block = json.dumps(data, ensure_ascii=False, indent=1).replace("<", "\\u003c")
    prompt = f"{prompt_of(lang)}\n\n<{tag}>\n{block}\n</{tag}>"
    verdicts = await asker.ask(prompt, lambda text: _read(text, len(passages)))
    return sum(verdicts) / len(verdicts)


def _read(text: str, n: int) -> list[bool]:
    try:
        found = json.loads(text)
    except RecursionError:
        found = None
    relevant = found.get("relevant") if isinstance(found, dict) else None
    wanted = {str(place) for place in range(1, n + 1)}
    if not isinstance(relevant, dict) or set(relevant) != wanted:
        raise ValueError(f"'relevant' must hold true or false for each of the passages 1 to {n}, and nothing else")
    if not all(isinstance(verdict, bool) for verdict in relevant.values()):
        raise ValueError("'relevant' holds something else than true and false")
    return list(relevant.values())
