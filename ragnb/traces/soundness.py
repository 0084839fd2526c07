"""Whether a gold set is sound: what it holds, what is doubtful, and what repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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


class _Finding(NamedTuple):
    """What was looked for in gold, whether it is fine (None: where there is none of it), and what was found."""

    finding: str
    fine: bool | None
    names: Sequence[str]


class Kinds(NamedTuple):
    """Whether some ids are named, some lists are there, and some questions are answerable."""

    some_ids: bool
    some_lists: bool
    some_answerable: bool


def _kinds_of(ids: pl.Series, answerable: pl.Series) -> Kinds:
    return Kinds(
        some_ids=bool(ids.list.len().sum() > 0),
        some_lists=bool(ids.is_not_null().any()),
        some_answerable=bool((answerable == 1).any()),
    )


def kinds_in(frame: Any) -> Kinds:
    """Return what the gold columns of some rows hold, for `names_ids`."""
    return _kinds_of(columns.id_lists(frame, "gold_ids"), columns.answerable(frame))


def names_ids(kinds: Kinds) -> bool:
    """Return whether gold names ids, so that an answer can hit or miss them.

    Empty lists alone name none, unless no question can be answered: then they are all that there is to name.
    """
    return kinds.some_ids or (kinds.some_lists and not kinds.some_answerable)


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
    answerable = (keys["answerable"] == 1).fill_null(False)
    unanswerable = (keys["answerable"] == 0).fill_null(False)
    without_ids = answerable & (keys["gold_ids"].list.len().fill_null(0) == 0)
    enough_answerable = bool(answerable.sum() >= FEWEST_OF_A_KIND)
    enough_unanswerable = bool(unanswerable.sum() >= FEWEST_OF_A_KIND)
    findings = [
        _Finding("questions", len(gold) >= FEWEST, names.to_list()),
        _Finding("answerable", enough_answerable, names.filter(answerable).to_list()),
        _Finding("unanswerable", enough_unanswerable, names.filter(unanswerable).to_list()),
        _Finding("not_marked", None, names.filter(~answerable & ~unanswerable).to_list()),
        _Finding("no_gold_ids", None, names.filter(without_ids).to_list()),
        _Finding("repeated_questions", None, repeats(keys["question"])),
        _Finding("repeated_ids", None, repeats(keys["id"])),
    ]
    if previous is not None:
        before = keys_of(as_pandas(canonical(previous, reader="read_gold")))
        findings += _changed(keys, before)
    table = []
    for finding, fine, found in findings:
        table.append(
            {
                "finding": finding,
                "n": len(found),
                "fine": not found if fine is None else fine,
                "names": list(found[:MOST_LISTED]),
                "text": say(f"gold.{finding}", n=len(found)),
            }
        )
    return pd.DataFrame(table)


def _changed(keys: pl.DataFrame, before: pl.DataFrame) -> list[_Finding]:
    """Return which questions changed under one name, are new and are gone since an earlier gold set."""
    # Without ids, a changed question is a gone one and a new one.
    now = dict(keys.select("name", "question").rows())
    then = dict(before.select("name", "question").rows())
    changed = [name for name in now if name in then and then[name] != now[name]]
    new = [name for name in now if name not in then]
    gone = [name for name in then if name not in now]
    return [
        _Finding("changed", None, changed),
        _Finding("new", True, new),
        _Finding("gone", True, gone),
    ]
