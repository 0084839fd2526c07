"""Columns of facts: one array a question asked of every trace, 1 yes, 0 no, nan unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ragnb.traces import answers
from ragnb.traces.columns import Flags, Lists
from ragnb.traces.forms import lowered
from ragnb.traces.wanted import Floats, Gold

if TYPE_CHECKING:
    import polars as pl


def spoken(
    texts: pl.Series, tokens: Sequence[str], patterns: Sequence[str], partial: Sequence[str]
) -> dict[str, Floats]:
    """Return who answered, who refused, and who refused in part (and so answered); nan without an answer.

    A whole answer that is a token is a refusal; else a partial pattern goes before a pattern of refusals.

    Examples
    --------
    >>> from ragnb.traces import columns
    >>> said = spoken(columns.as_series(["no", None, "not that, but this"]), ["no"], ["^no"], ["but"])
    >>> said["refused"], said["partial"]
    (array([ 1., nan,  0.]), array([ 0., nan,  1.]))
    """
    there = texts.is_not_null().to_numpy()
    whole = answers.equal(texts, tokens)
    part = answers.found(texts, partial, "partial") & ~whole
    refused = whole | (answers.found(texts, patterns) & ~part)
    facts = {"answered": ~refused, "refused": refused, "partial": part}
    return {name: np.where(there, fact, np.nan) for name, fact in facts.items()}


def without_failed(texts: pl.Series, failed: Flags) -> pl.Series:
    """Return the answers without the empty ones of calls that failed: these said nothing.

    Examples
    --------
    >>> from ragnb.traces import columns
    >>> without_failed(columns.as_series(["", "", "x"]), np.array([True, False, True])).to_list()
    [None, '', 'x']
    """
    import polars as pl

    return texts.set((texts == "").fill_null(False) & pl.Series(failed), None) if failed.any() else texts


def citations(frame: Any, texts: pl.Series, split: answers.Split) -> tuple[Lists, Flags]:
    """Return the cited ids of each row (its list field, else its text), and which texts could not be taken.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb.traces import columns
    >>> frame = pd.DataFrame({"answer": ["citations: [a]", "b"], "citations": [None, ["b", "b"]]})
    >>> lists, flagged = citations(frame, columns.texts(frame, "answer"), "space")
    >>> lists.nested().to_list(), flagged.tolist()
    ([['a'], ['b']], [False, False])
    """
    import polars as pl

    field = Lists.of(frame, "citations")
    if field.there.all():
        return field.distinct(), np.zeros(len(texts), dtype=bool)
    said, flagged = answers.cited(texts.set(pl.Series(field.there), None) if field.there.any() else texts, split)
    if field.there.any():
        rows = np.concatenate([field.rows, said.rows])
        order = np.argsort(rows, kind="stable")
        joined = pl.concat([field.names, said.names]).gather(order)
        said = Lists(field.there | said.there, rows[order], joined)
    return said.distinct(), flagged


def hits(gold: Gold, cited: Lists) -> Floats:
    """Return whether cited and gold ids have one in common; nan where gold's are unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> gold = Gold.of(pd.DataFrame({"gold_ids": [["a", "b"]]}), np.array([0, 0, -1]))
    >>> hits(gold, Lists.of(pd.DataFrame({"c": [["a"], None, ["a"]]}), "c"))
    array([ 1.,  0., nan])
    """
    out = np.where((gold.row >= 0) & (gold.ids is not None), 0.0, np.nan)
    out[cited.rows[gold.members(cited)[0]]] = 1
    return out


def contained(gold: Gold, texts: pl.Series, odd: pl.Series, whole: bool) -> Floats:
    """Return whether each answer holds something of its claim; nan without an answer or a claim.

    Of the answers, `odd` says which may change when they are lower-cased.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragnb.traces import columns, forms
    >>> gold = Gold.of(pd.DataFrame({"gold_claim": ["30 days", None]}), np.array([0, 1]))
    >>> texts = columns.as_series(["It is 30 days.", "yes"])
    >>> contained(gold, texts, forms.unsettled(texts), True)
    array([ 1., nan])
    """
    out = np.full(len(texts), np.nan)
    claimed = np.append((gold.claims.str.len_bytes() > 0).fill_null(False).to_numpy(), False)[gold.row]
    asked = np.flatnonzero(claimed & texts.is_not_null().to_numpy())
    if len(asked):
        claims = gold.claims.fill_null("").unique(maintain_order=True)
        number = gold.claims.fill_null("").replace_strict(claims, np.arange(len(claims))).to_numpy()
        tidied = lowered(texts.gather(asked), odd.gather(asked))
        out[asked] = answers.holds(tidied, claims, number[gold.row[asked]], whole)
    return out


def retrieval(gold: Gold, chunks: Lists) -> dict[str, Floats]:
    """Return what the chunk ids hold of the gold ids: any, the share, one over the rank of the first.

    Rows without chunks (None), without gold ids, or unanswerable are nan, and so are chunks of which none has an
    id; an empty list of chunks is 0.

    Examples
    --------
    >>> import pandas as pd
    >>> gold = Gold.of(pd.DataFrame({"gold_ids": [["a", "c"]], "answerable": [True]}), np.array([0]))
    >>> chunks = Lists.of(pd.DataFrame({"chunks": [[{"id": "b"}, {"id": "a"}]]}), "chunks")
    >>> {name: values.tolist() for name, values in retrieval(gold, chunks).items()}
    {'retrieval_hit': [1.0], 'retrieval_recall': [0.5], 'reciprocal_rank': [0.5]}
    """
    size = len(gold.row)
    none = np.zeros(len(gold.answerable), dtype=np.int64)
    held = none if gold.ids is None else np.bincount(gold.ids.rows, minlength=len(none))
    wanted = np.append(held, 0)[gold.row]
    nameless, named = (np.bincount(chunks.rows, chunks.names.is_null() == no, size) > 0 for no in (True, False))
    asked = chunks.there & (named | ~nameless) & (wanted > 0) & (gold.answerable_rows() == 1)
    at, number = gold.members(chunks)
    first = np.searchsorted(chunks.rows, np.arange(size))
    rows, first_met = np.unique(chunks.rows[at], return_index=True)
    rank = np.full(size, np.inf)
    rank[rows] = at[first_met] - first[rows] + 1
    span = int(number.max(initial=0)) + 1
    pairs = np.unique(chunks.rows[at] * span + number) // span
    share = np.bincount(pairs, minlength=size) / np.maximum(wanted, 1)
    measures = {"retrieval_hit": np.isfinite(rank), "retrieval_recall": share, "reciprocal_rank": 1 / rank}
    return {name: np.where(asked, values, np.nan) for name, values in measures.items()}


def compliant(cited: Lists, refused: Floats) -> Floats:
    """Return whether each row has a citations list, even an empty one, or is a refusal.

    Examples
    --------
    >>> import pandas as pd
    >>> cited = Lists.of(pd.DataFrame({"c": [[], None, None]}), "c")
    >>> compliant(cited, np.array([0.0, 0.0, 1.0]))
    array([1., 0., 1.])
    """
    return np.where(np.isnan(refused), np.nan, np.maximum(cited.there, refused))
