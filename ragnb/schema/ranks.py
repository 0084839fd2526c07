"""Measures of ranked passages, named as the field names them: ``recall@5``, ``ndcg@10``."""

from __future__ import annotations

import re

MEASURES = ("hit", "recall", "precision", "ndcg", "mrr", "map")
"""What is measured of the first k passages, in the order in which it is shown."""
_NAME = re.compile(rf"({'|'.join(MEASURES)})@([1-9]\d{{0,5}})")


def rank_measure(name: str) -> tuple[str, int] | None:
    """Return the measure and the depth that a name such as ``recall@5`` says; None for any other name.

    Examples
    --------
    >>> rank_measure("recall@5"), rank_measure("recall"), rank_measure("recall@0")
    (('recall', 5), None, None)
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return (match[1], int(match[2]))
