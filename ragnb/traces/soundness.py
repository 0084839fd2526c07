"""Whether a gold set is sound: what it holds, what is doubtful, and what repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.polars import pl
from ragnb.readers.frames import canonical
from ragnb.traces import columns
from ragnb.traces.answers import trimmed_and_lowered
from ragnb.traces.matching import FEWEST, FEWEST_OF_A_KIND, MOST_LISTED, keys_of, repeats
from ragnb.weights import (
    as_pandas,
)

Findings = list[tuple[str, bool | None, Sequence[str]]]


def _kinds_of(ids: pl.Series, answerable: pl.Series) -> tuple[bool, ...]:
    """Return whether some ids are named, some lists are there, and some questions are answerable."""
    return (
        bool(ids.list.len().sum() > 0),
        bool(ids.is_not_null().any()),
        bool((answerable == 1).any()),
    )


def kinds_in(frame: Any) -> tuple[bool, ...]:
    return _kinds_of(columns.id_lists(frame, "gold_ids"), columns.answerable(frame))


def names_ids(kinds: tuple[bool, ...]) -> bool:
    return kinds[0] or (kinds[1] and not kinds[2])


def expectations(gold: Any, named: bool | None = None) -> pl.DataFrame:
    """Return what gold expects, one row per question; `named` says whether other rows too name ids.

    Returns
    -------
    DataFrame
        ``answerable`` (1, 0 or null), ``gold_ids`` (distinct; null everywhere where gold has answerable questions
        and names no ids anywhere), ``claim`` (trimmed and lower-cased), ``matched`` (true).

    Examples
    --------
    >>> gold = pd.DataFrame({"answerable": [True], "gold_ids": [["a", "a"]], "gold_claim": ["30 Days "]})
    >>> expectations(gold).rows()
    [(1.0, ['a'], '30 days', True)]
    """
    ids = columns.distinct(columns.id_lists(gold, "gold_ids"))
    answerable = columns.answerable(gold)
    if named is None:
        named = names_ids(_kinds_of(ids, answerable))
    if named:
        ids = ids.fill_null(pl.Series([[]], dtype=ids.dtype))
    else:
        ids = ids.clear(len(ids))
    claims = trimmed_and_lowered(columns.texts(gold, "gold_claim"))[1]
    expected = pl.DataFrame({"answerable": answerable, "gold_ids": ids, "claim": claims})
    return expected.with_columns(matched=pl.lit(True))


def check_gold(
    gold: pd.DataFrame, *, previous: pd.DataFrame | None = None, lang: str = "en"
) -> pd.DataFrame:
    """Check a gold set for problems before using it.

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
        For an ``answerable`` that is neither true nor false, and ``gold_ids`` that are not list.

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
    keys = keys_of(gold).hstack(expectations(gold))
    rows = columns.as_series([str(row) for row in gold.index])
    names = keys["name"].zip_with(keys["name"] != "", rows)
    yes = (keys["answerable"] == 1).fill_null(False)
    no = (keys["answerable"] == 0).fill_null(False)
    without_ids = yes & (keys["gold_ids"].list.len().fill_null(0) == 0)
    findings: Findings = [
        ("questions", len(gold) >= FEWEST, names.to_list()),
        ("answerable", yes.sum() >= FEWEST_OF_A_KIND, names.filter(yes).to_list()),
        ("unanswerable", no.sum() >= FEWEST_OF_A_KIND, names.filter(no).to_list()),
        ("not_marked", None, names.filter(~yes & ~no).to_list()),
        ("no_gold_ids", None, names.filter(without_ids).to_list()),
        ("repeated_questions", None, repeats(keys["question"])),
        ("repeated_ids", None, repeats(keys["id"])),
    ]
    if previous is not None:
        before = keys_of(as_pandas(canonical(previous, reader="read_gold")))
        # Without ids, a changed question is a gone one and a new one.
        now, then = (dict(frame.select("name", "question").rows()) for frame in (keys, before))
        changed = [
            name for name, question in now.items() if name in then and then[name] != question
        ]
        findings += [
            ("changed", None, changed),
            ("new", True, [name for name in now if name not in then]),
            ("gone", True, [name for name in then if name not in now]),
        ]
    return pd.DataFrame(
        {
            "finding": finding,
            "n": len(items),
            "fine": not items if fine is None else bool(fine),
            "names": list(items[:MOST_LISTED]),
            "text": say(f"gold.{finding}", n=len(items)),
        }
        for finding, fine, items in findings
    )
