"""Is the gold set fit to measure with: its size, its balance, and what is missing, repeated or changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.readers.frames import canonical
from ragnb.traces.join import MOST_LISTED, Keys, repeats
from ragnb.traces.wanted import Gold
from ragnb.weights import as_pandas

FEWEST, FEWEST_OF_A_KIND = 10, 3


def check_gold(gold: pd.DataFrame, *, previous: pd.DataFrame | None = None, lang: str = "en") -> pd.DataFrame:
    """Look a gold set over before anything is measured with it.

    Parameters
    ----------
    gold : DataFrame
        As `ragnb.read_gold` gives it.
    previous : DataFrame, optional
        The gold set of an earlier run: questions that changed under one ``sample_id`` are found.
    lang : {"en", "zh"}

    Returns
    -------
    DataFrame
        ``finding, n, fine, names, text``. The findings: ``questions`` (fine from 10 on), ``answerable`` and
        ``unanswerable`` (each fine from 3 on), ``not_marked`` (neither), ``no_gold_ids`` (answerable, yet no ids),
        ``repeated_questions``, ``repeated_ids``, and with `previous` ``changed``, ``new``, ``gone``.

    Raises
    ------
    RagnbError
        For an ``answerable`` that is neither true nor false, and ``gold_ids`` that are no list.

    Examples
    --------
    >>> gold = pd.DataFrame({"question": ["x", "y"], "answerable": [True, False], "gold_ids": [None, []]})
    >>> check_gold(gold)[["finding", "n", "fine"]].iloc[[0, 4]]
           finding  n   fine
    0    questions  2  False
    4  no_gold_ids  1  False
    """
    say = texts.load(lang)
    gold = as_pandas(canonical(gold, reader="read_gold"))
    previous = previous if previous is None else as_pandas(canonical(previous, reader="read_gold"))
    keys = Keys.of(gold, by_id=True)
    names = [name or str(row) for name, row in zip(keys.names(), gold.index, strict=True)]
    wanted = Gold.of(gold, np.arange(len(gold)))
    marked = wanted.answerable
    held = np.bincount(wanted.ids.rows if wanted.ids else [], minlength=len(gold))
    pairs = list(zip(names, marked, held == 0, strict=True))
    found: list[tuple[str, bool | None, Sequence[str]]] = [
        ("questions", len(gold) >= FEWEST, names),
        ("answerable", sum(marked == 1) >= FEWEST_OF_A_KIND, [n for n, m, _ in pairs if m == 1]),
        ("unanswerable", sum(marked == 0) >= FEWEST_OF_A_KIND, [n for n, m, _ in pairs if m == 0]),
        ("not_marked", None, [n for n, m, _ in pairs if m not in (0, 1)]),
        ("no_gold_ids", None, [n for n, m, empty in pairs if m == 1 and empty]),
        ("repeated_questions", None, repeats(keys.questions)),
        ("repeated_ids", None, repeats(keys.ids)),
    ]
    if previous is not None:
        found += _compared(gold, previous)
    rows = [_row(finding, fine, items, say(f"gold.{finding}", n=len(items))) for finding, fine, items in found]
    return pd.DataFrame(rows)


def _row(finding: str, fine: bool | None, items: Sequence[str], text: str) -> dict[str, Any]:
    fine = not items if fine is None else bool(fine)
    return {"finding": finding, "n": len(items), "fine": fine, "names": list(items[:MOST_LISTED]), "text": text}


def _compared(gold: pd.DataFrame, previous: pd.DataFrame) -> list[tuple[str, bool | None, Sequence[str]]]:
    """Compare by sample_id where both sets have it; else a changed question is a gone one and a new one."""
    ours, theirs = (Keys.of(frame, by_id=True) for frame in (gold, previous))
    now, before = (dict(zip(keys.names(), keys.questions, strict=True)) for keys in (ours, theirs))
    changed = [name for name, q in now.items() if name in before and before[name] != q]
    return [
        ("changed", None, changed),
        ("new", True, [name for name in now if name not in before]),
        ("gone", True, [name for name in before if name not in now]),
    ]
