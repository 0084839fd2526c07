"""What may be spent, and what has been."""

from __future__ import annotations

from dataclasses import dataclass

from ragnb.store.cells import Stop


@dataclass
class Budget:
    """Calls and tokens: spent so far, and at most.

    Examples
    --------
    >>> budget = Budget(max_calls=2)
    >>> budget.calls += 2
    >>> print(budget.full(1, 0))
    the budget of 2 calls is used up: 2 of 2 calls and 0 tokens are used; run it again with a larger max_calls \
(--max-calls) to go on
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    calls: int = 0
    tokens: int = 0

    def full(self, calls: int, tokens: int) -> UsedUp | None:
        """Say why so many further calls and tokens do not fit in; None if they do."""
        for what, used, further, most in (
            ("calls", self.calls, calls, self.max_calls),
            ("tokens", self.tokens, tokens, self.max_tokens),
        ):
            if most is not None and (used + further > most or used >= most):
                return UsedUp(self, what, further)
        return None


class UsedUp(Stop):
    """A budget has no room; the message gives the numbers of the moment when it is read.

    Cells under way go on when a run stops, so that what is used is known only at its end.
    """

    def __init__(self, budget: Budget, what: str, further: int) -> None:
        super().__init__(what)
        self.budget, self.what, self.further = budget, what, further

    def __str__(self) -> str:
        used, most = getattr(self.budget, self.what), getattr(self.budget, f"max_{self.what}")
        spent = " and ".join(
            f"{getattr(self.budget, name):,}{'' if limit is None else f' of {limit:,}'} {name}"
            for name, limit in (("calls", self.budget.max_calls), ("tokens", self.budget.max_tokens))
        )
        state = "is used up" if used >= most else "has no room for the next cell"
        need = "" if used >= most else f", and it needs about {self.further:,} {self.what}"
        return (
            f"the budget of {most:,} {self.what} {state}: {spent} are used{need}; run it again with a larger "
            f"max_{self.what} (--max-{self.what}) to go on"
        )
