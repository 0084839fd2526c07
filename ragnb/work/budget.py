"""What may be spent, and what has been."""

from __future__ import annotations

from dataclasses import dataclass

from ragnb.work.cells import Stop


@dataclass
class Budget:
    """Calls and tokens: spent so far, and at most.

    Examples
    --------
    >>> budget = Budget(max_calls=2)
    >>> budget.calls += 2
    >>> print(budget.full(1, 0))
    the budget of 2 calls is used up (2 used, the next need about 1); run it again with a larger max_calls to go on
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    calls: int = 0
    tokens: int = 0

    def full(self, calls: int, tokens: int) -> Stop | None:
        """Say why so many further calls and tokens do not fit in; None if they do."""
        for what, used, further, most in (
            ("calls", self.calls, calls, self.max_calls),
            ("tokens", self.tokens, tokens, self.max_tokens),
        ):
            if most is not None and (used + further > most or used >= most):
                return Stop(
                    f"the budget of {most} {what} is used up ({used} used, the next need about {further}); "
                    f"run it again with a larger max_{what} to go on"
                )
        return None
