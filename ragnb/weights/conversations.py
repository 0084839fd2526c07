"""Conversations: which column tells them, which tells their turns, and how quality changes over turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.readers.names import WORDS, loose
from ragnb.weights.columns import collected, column_names, key_of, opened

_CONVERSATION = {loose(name) for name in WORDS["conversation"]["id"]}
_TURN = {loose(name) for name in WORDS["conversation"]["turn"]}
_RUNS = 1.5  # sessions in which a question occurs on average, from which on they are runs
TREND_COLUMNS = ("metric", "slope", "low", "high", "p", "p_holm", "n", "n_conversations", "level")


def is_conversation(name: str | None) -> bool:
    """Whether a column of this name tells conversations.

    Examples
    --------
    >>> [is_conversation(name) for name in ("conversation_id", "sessionId", "会话", "doc_name", None)]
    [True, True, True, False, False]
    """
    return name is not None and loose(name) in _CONVERSATION


def conversation_column(frame: Any) -> str | None:
    """Return the column of conversations, where one of them has several rows.

    Sessions in each of which the same questions were asked are runs, and no conversations.

    Examples
    --------
    >>> conversation_column(pd.DataFrame({"session_id": ["a", "a", "b"], "faithfulness": [1.0, 0.5, 1.0]}))
    'session_id'
    >>> conversation_column(pd.DataFrame({"session_id": ["a", "b"], "faithfulness": [1.0, 0.5]})) is None
    True
    """
    named = filter(is_conversation, column_names(frame))
    return next((name for name in named if _is_label(frame, name) and _repeats(frame, name)), None)


def conversation_cluster(frame: Any, doc: str = "doc_name") -> str | None:
    """Return the column of conversations, where they are the clusters of the rows.

    None, too, where every conversation is about one document and there are fewer documents: these are then the
    clusters, as what is alike in a conversation is alike in its document.

    Examples
    --------
    >>> rows = {"session_id": [*"aabbcc"], "doc_name": [*"xxxxyy"], "faithfulness": 1.0}
    >>> conversation_cluster(pd.DataFrame(rows)) is None
    True
    """
    name = conversation_column(frame)
    if name is None or doc not in column_names(frame):
        return name
    table = _labels(frame, [name, doc])
    documents = table[doc].nunique()
    if table[doc].isna().any() or documents >= table[name].nunique():
        return name
    across = table.drop_duplicates()[name].duplicated().any()
    if across:
        return name
    return None


def turn_column(frame: Any) -> str | None:
    """Return the numeric column of the turns of conversations.

    Examples
    --------
    >>> turn_column(pd.DataFrame({"Turn": [1, 2], "faithfulness": [1.0, 0.5]}))
    'Turn'
    """
    schema = opened(frame).collect_schema()
    named = [name for name in column_names(frame) if loose(name) in _TURN]
    return next((name for name in named if schema[name].is_numeric()), None)


def _is_label(frame: Any, name: str) -> bool:
    kind = opened(frame).collect_schema()[name]
    if kind.is_nested() or kind == nw.Unknown:
        return False
    if kind == nw.Object:  # pandas: texts, or lists of messages
        return isinstance(frame, pd.DataFrame) and all(
            isinstance(cell, str | int) for cell in frame[name].dropna()
        )
    return True


def _labels(frame: Any, columns: list[str]) -> pd.DataFrame:
    """Return columns of the rows that have the first of them, as texts."""
    rows = opened(frame)
    keys = [key_of(rows, name).cast(nw.String).alias(f"k{k}") for k, name in enumerate(columns)]
    table = collected(rows.select(*keys).filter(~nw.col("k0").is_null())).to_pandas()
    return table.set_axis(columns, axis=1)


def _repeats(frame: Any, name: str) -> bool:
    """Whether there are several values, one has several rows of one system, and they are no runs of one set."""
    have = column_names(frame)
    by = [name, *(other for other in ("system",) if other in have)]
    table = _labels(frame, [*by, *(other for other in ("question",) if other in have)])
    if table[name].nunique() < 2 or not table.duplicated(by).any():
        return False
    if "question" not in table:
        return True
    known = table.dropna(subset="question")
    in_one = known.drop_duplicates([*by, "question"])
    # Each question in many sessions: those are runs, or seeds, of one set of questions.
    asked = in_one.drop_duplicates([*by[1:], "question"])
    return len(in_one) < _RUNS * max(len(asked), 1)


def turn_trends(
    scores: pd.DataFrame,
    metrics: Iterable[str],
    *,
    turn: str,
    conversation: str,
    cluster: str | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return by how much each metric changes from turn to turn within a conversation.

    Parameters
    ----------
    scores : DataFrame
        One row an answer, of one system.
    metrics : iterable of str
        Columns of scores.
    turn, conversation : str
        Columns of `scores`.
    cluster : str, optional
        The clusters of correlated conversations; by default each conversation is one.

    Returns
    -------
    DataFrame
        ``metric, slope, low, high, p, p_holm, n, n_conversations, level``; only conversations with several scored
        turns tell.

    Notes
    -----
    The slope of least squares of scores on turns, both centred on the mean of their conversation: that long
    conversations are harder ones does not enter. Its interval is that of the jackknife over the clusters.

    Examples
    --------
    >>> rows = {"session_id": ["a"] * 3 + ["b"] * 3 + ["c"] * 3, "turn": [1, 2, 3] * 3}
    >>> scores = pd.DataFrame(rows | {"faithfulness": [.9, .8, .7, .5, .4, .2, .8, .7, .7]})
    >>> found = turn_trends(scores, ["faithfulness"], turn="turn", conversation="session_id")
    >>> found[["slope", "low", "high", "n"]].round(3).values.tolist()
    [[-0.1, -0.224, 0.024, 9.0]]
    """
    rows = []
    for metric in metrics:
        values = pd.to_numeric(scores[metric], errors="coerce").to_numpy(float)
        turns = pd.to_numeric(scores[turn], errors="coerce").to_numpy(float)
        kept = ~(np.isnan(values) | np.isnan(turns)) & scores[conversation].notna().to_numpy()
        part = scores[kept]
        code = pd.factorize(part[conversation])[0]
        x = turns[kept]
        y = values[kept]
        n = np.bincount(code)
        if not len(n):
            continue
        # The turns of a conversation add up to 0 then, so that its mean score drops out of Σ turn · score.
        x = x - (np.bincount(code, x) / n)[code]
        if cluster is None:
            among = code
        else:
            among = pd.factorize(part[cluster])[0]
        # A row without a cluster is one with its conversation.
        among = np.where(among < 0, among.max(initial=-1) + 1 + code, among)
        clusters = stats.packed(among)
        parts = stats.sums_by(clusters, np.stack([x * x, x * y], axis=1))
        is_usable = parts[:, 0] > 0
        sizes = np.bincount(clusters).astype(float)
        if not is_usable.any():
            continue
        slope = stats.jackknife(stats.ratio, parts[is_usable], sizes[is_usable], level=level)
        p = np.nan
        if not np.isnan(slope.low):
            p = stats.t_p_value(slope.value, slope.se, slope.df)
        rows.append(
            {
                "metric": metric,
                "slope": slope.value,
                "low": slope.low,
                "high": slope.high,
                "p": p,
                "n": int(kept.sum()),
                "n_conversations": int((np.bincount(code, x * x) > 0).sum()),
                "level": level,
            }
        )
    table = pd.DataFrame(rows, columns=[name for name in TREND_COLUMNS if name != "p_holm"])
    table.insert(5, "p_holm", stats.holm(table["p"].to_numpy(float)))
    return table
