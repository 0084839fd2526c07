"""What calls may cost and what they took: limits, and a meter of what runs inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ragnb.store.calls import Call, Cell, Stop, canonical, digest

MOST_TOKENS = 10**9  # of one call; a server's larger count is no count
Send = Callable[[], Awaitable[Call]]


@dataclass(eq=False)
class Meter:
    """What the calls of one cell have taken so far, and how each is made `once`.

    `replies` holds numbers of calls in the store, and texts of replies that were none; `latest` the last call of
    each asyncio task, at fault if the cell fails; `recalled` calls whose replies came from the store.
    """

    cell: Cell
    once: Callable[[Meter, str, Send], Awaitable[Any]]
    tag: str | None = None
    calls: int = 0
    counts: list[tuple[int | None, int | None]] = field(default_factory=list)
    replies: list[str | int] = field(default_factory=list)
    latest: dict[Any, int] = field(default_factory=dict)
    recalled: list[Call] = field(default_factory=list)
    _times_asked: Counter[str] = field(default_factory=Counter)  # by request

    @property
    def tokens(self) -> list[int | None]:
        """Tokens of the prompts and of the replies; an unreported one makes the sum unknown."""
        return _sums(self.counts)

    @property
    def tokens_of_all(self) -> list[int | None]:
        """The same with those of calls whose replies came from the store."""
        recalled = [(call.tokens_in, call.tokens_out) for call in self.recalled]
        return _sums([*self.counts, *recalled])

    def key(self, request: Mapping[str, Any], *, drawn: bool) -> str:
        """Return the key of a call: equal for requests that need to be paid for once.

        The random tag is left out. Replies that are `drawn` (at a temperature) differ on purpose: the key tells
        the cell and the ordinal among its equal requests. Others are shared by all cells of the same repeat.
        """
        # JSON writes a zero byte as an escape, so without a tag nothing is left out.
        text = canonical(request).replace(self.tag or "\0", "")
        self._times_asked[text] += 1
        if drawn:
            identity = [text, self.cell.key, self._times_asked[text]]
        else:
            identity = [text, self.cell.repeat]
        return digest(canonical(identity))


def _sums(counts: Iterable[tuple[int | None, int | None]]) -> list[int | None]:
    """Return the sum of the first parts and that of the second ones; 0 of no counts."""
    columns = zip((0, 0), *counts, strict=True)
    return [None if None in column else sum(column) for column in columns]


METER: ContextVar[Meter | None] = ContextVar("METER", default=None)


def count_tokens(text: str) -> int:
    """Estimate the number of tokens of a text without the model's tokenizer.

    Four ASCII characters count as one token, and so does each other character: right to about a third for
    English and Chinese.

    Examples
    --------
    >>> count_tokens("Who pays for it?"), count_tokens("谁来付款？")
    (4, 5)
    """
    ascii_ = sum(map(str.isascii, text))
    return -(-ascii_ // 4) + len(text) - ascii_


@dataclass
class Budget:
    """Calls and tokens: spent so far, and at most.

    Examples
    --------
    >>> budget = Budget(max_calls=2)
    >>> budget.calls += 2
    >>> print(f"{budget}: {budget.full(0)}")
    2 of 2 calls and 0 tokens: the budget of 2 calls is used up; run it again with a larger max_calls \
(--max-calls) to resume
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    calls: int = 0
    tokens: int = 0

    def __str__(self) -> str:
        used = ((self.calls, self.max_calls, "calls"), (self.tokens, self.max_tokens, "tokens"))
        parts = []
        for n, most, what in used:
            limit = "" if most is None else f" of {most:,}"
            parts.append(f"{n:,}{limit} {what}")
        return " and ".join(parts)

    def full(self, tokens: int) -> Stop | None:
        """Say why one further call, of so many tokens, does not fit in; None if it does."""
        limits = (
            ("calls", self.calls, self.max_calls, 1),
            ("tokens", self.tokens, self.max_tokens, tokens),
        )
        for what, used, most, further in limits:
            if most is None:
                continue
            # Also where the next call is expected to take nothing, as of cells that name no tokens.
            if used >= most:
                state = "is used up"
            elif used + further > most:
                state = f"is too small for the next call, which needs about {further:,}"
            else:
                continue
            return Stop(
                f"the budget of {most:,} {what} {state}; run it again with a larger max_{what} "
                f"(--max-{what}) to resume"
            )
        return None
