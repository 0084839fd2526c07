"""What a run would cost, before anything is paid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragnb.store.cells import Cell
from ragnb.store.store import Store


@dataclass(frozen=True)
class Estimate:
    """A dry run: how many cells there are, how many are to be done, and what they are expected to need.

    Parameters
    ----------
    cells : int
        Distinct cells.
    done : int
        Those that the store has already.
    not_applicable : int
        Further ones that lack a field, and need no call.
    calls, tokens : int
        Expected of the rest, without retries; tokens of prompts and replies, right to about a third.
    """

    cells: int
    done: int
    not_applicable: int
    calls: int
    tokens: int


def estimate(cells: Iterable[Cell], store: Store | None = None) -> Estimate:
    """Count what a run of these cells would need; nothing is sent, and nothing is written.

    Examples
    --------
    >>> estimate([Cell("s1", "rubric", {}, calls=2, tokens=900), Cell("s2", "rubric", {}, missing=("answer",))])
    Estimate(cells=2, done=0, not_applicable=1, calls=2, tokens=900)
    """
    distinct = {cell.key: cell for cell in cells}
    done = store.settled(distinct.values()) if store is not None else set()
    still = [cell for key, cell in distinct.items() if key not in done]
    paid = [cell for cell in still if not cell.missing]
    calls, tokens = sum(cell.calls for cell in paid), sum(cell.tokens for cell in paid)
    return Estimate(len(distinct), len(done), len(still) - len(paid), calls, tokens)
