"""Logs without gold: the rates that need no labels, refusal patterns to propose, the questions to label first."""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb.polars import pl
from ragnb.readers.names import loose
from ragnb.readers.passages import passage_text
from ragnb.schema import DRAWN
from ragnb.traces import answers, columns
from ragnb.traces.changes import Changes, changes

WORDS = tomllib.loads(Path(__file__).with_name("log.toml").read_text(encoding="utf-8"))
TIMES: tuple[str, ...] = tuple(WORDS["times"])
"""Columns that say when a question was asked."""
LATENCY: tuple[str, ...] = tuple(WORDS["latency"])
"""Columns that say how long an answer took."""
REASONS = ("repeated", "empty", "unsupported", "refused", "other")
SUPPORT = ("support_lexical", "number_support", "name_support")
# Answers whose wording is compared with their passages: a rate of them is known to 1.4 points.
MOST_CHECKED = 5000
_SECONDS_MOST = 100.0  # a median latency above it is of milliseconds
_OFTEN = 3  # times that a question was asked, from which on answers to it that repeat count
_TO_LABEL = 60  # questions of the gold file that a log proposes: an hour's work
_FEW = 5  # questions of a document and reason: smaller groups are put together
_MOST_DOCS = 12  # documents that are drawn from one by one; of more, groups go by reason alone
_MOST_DAYS = 31  # that are told day by day; longer logs go by week or month


@dataclass(frozen=True)
class Log:
    """What a log without gold says beside its rates.

    Attributes
    ----------
    patterns : DataFrame
        ``pattern, n, example``: what refusals look like, and how many answers that count as answers match it.
    daily : DataFrame
        ``day`` (of many days the week or month; missing without times), ``n, refusal_rate``, ``failed`` (missing
        where no column speaks of failures), ``latency_median, latency_p95, length_median, length_p95``.
    to_label : DataFrame
        A gold file to fill in, in random order: ``question, answerable, gold_ids, doc_name, reason,
        inclusion_probability``.
    checked : int
        How many answers the lexical checks looked at.
    changes, days : DataFrame
        The measures of the last seven days beside those before, and each by day: see `ragnb.traces.changes`.
    """

    patterns: pd.DataFrame
    daily: pd.DataFrame
    to_label: pd.DataFrame
    checked: int
    changes: pd.DataFrame
    days: pd.DataFrame


def read_log(labelled: pd.DataFrame, level: float = 0.95) -> tuple[pd.DataFrame, Log]:
    """Return labelled traces with the rates that need no gold, and what else they say.

    Parameters
    ----------
    labelled : DataFrame
        What `label_traces` returns, with ``question`` or ``sample_id``.
    level : float
        Of the intervals of what changed, and of its decisions.

    Returns
    -------
    DataFrame, Log
        The rows with ``refusal_rate, refusal_rate_proposed, repeated_answer, empty_retrieval`` and, where the
        texts of passages are there, ``support_lexical, number_support, name_support`` (of 5,000 answers at most,
        drawn by a hash of their question), nan where a rate does not apply.

    Examples
    --------
    >>> from ragnb.traces import label_traces
    >>> said = pd.DataFrame({"question": ["a", "b"], "answer": ["Sorry, I cannot answer this.", "Yes."]})
    >>> rows, log = read_log(label_traces(said))
    >>> rows["refusal_rate_proposed"].tolist(), log.patterns["n"].tolist()
    ([1.0, 0.0], [1, 1])
    """
    frame = labelled.reset_index(drop=True)
    known = frame["answered"].notna().to_numpy()
    answered = frame["answered"].astype("boolean").fillna(False).to_numpy(dtype=bool)
    texts = frame["answer"].map(lambda cell: cell.strip() if isinstance(cell, str) else "")
    hits = _refusals(texts.where(answered))
    proposed = hits.any(axis=1).to_numpy(dtype=bool)
    asked_by = frame["question" if "question" in frame else "sample_id"]
    question = asked_by.fillna("").astype(str)  # an empty record has none
    asked = question.groupby(texts).transform("nunique").to_numpy()
    passages = _passages(frame)
    failed = ok_of(frame).eq(False).fillna(False)  # of an answer that failed nothing is measured
    passages = [None if gone else held for gone, held in zip(failed, passages, strict=True)]
    rates: dict[str, Any] = {
        "refusal_rate": np.where(known, ~answered, np.nan),
        "refusal_rate_proposed": np.where(known, ~answered | proposed, np.nan),
        "repeated_answer": np.where(
            known, answered & ~proposed & (texts != "") & (asked >= _OFTEN), np.nan
        ),
        "empty_retrieval": [math.nan if cells is None else float(not cells) for cells in passages],
    }
    order = pd.Series(
        [hashlib.blake2b(one.encode("utf-8"), digest_size=8).hexdigest() for one in question]
    )
    bare = "retrieved_contexts" not in frame  # a chunk that is a text is an id
    in_order = order[answered & ~proposed].sort_values().index
    checked, support = _support(texts, passages, in_order, bare=bare)
    made = rates | support if checked else rates
    rows = frame.assign(**{name: cells for name, cells in made.items() if name not in frame})
    rows.attrs = labelled.attrs
    counts = hits.sum().sort_values(ascending=False, kind="stable")
    counts = counts[counts > 0]
    examples = [texts[hits[name]].iloc[0] for name in counts.index]
    patterns = pd.DataFrame(
        {"pattern": counts.index, "n": counts.to_numpy(dtype=int), "example": examples}
    )
    compared = _changes(rows, level)
    drawn = _to_label(rows, question, order, passages)
    daily = _daily(rows)
    log = Log(patterns, daily, drawn, checked, compared.measures, compared.days)
    return rows, log


def _support(
    answers: pd.Series, passages: Sequence[Any], order: Iterable[int], *, bare: bool
) -> tuple[int, dict[str, list[Any]]]:
    """Return how many answers were compared with the texts of their passages, the first of an order, and how.

    `bare` says that a passage which is a text is an id.
    """
    # At use: scoring brings the client of a model, which scores and comparisons do without.
    from ragnb.scoring.lexical import name_support, number_support, support_lexical

    checked = 0
    support: dict[str, list[Any]] = {name: [math.nan] * len(answers) for name in SUPPORT}
    support |= {f"{name}__reason": [None] * len(answers) for name in SUPPORT[1:]}
    for row in order:
        if checked == MOST_CHECKED:
            break
        texts_of_passages = [
            passage_text(one) for one in passages[row] or () if not _is_id(one, bare=bare)
        ]
        texts = [text for text in texts_of_passages if text]
        if not texts:
            continue
        checked += 1
        answer = answers[row]
        support["support_lexical"][row] = support_lexical(answer, texts)
        for name, check in (("number_support", number_support), ("name_support", name_support)):
            support[name][row], lost = check(answer, texts)
            support[f"{name}__reason"][row] = ", ".join(lost) or None
    return checked, support


def _is_id(passage: Any, *, bare: bool) -> bool:
    """Whether a passage is an id alone, as most logs have them: it is not searched for a text."""
    if isinstance(passage, dict):
        return passage.keys() == {"id"}
    return bare and isinstance(passage, str)


def _changes(rows: pd.DataFrame, level: float) -> Changes:
    """Compare the last seven days with those before; a measure that no column speaks of is left out."""
    ok = ok_of(rows)
    failed = ok.eq(False).fillna(False).to_numpy(dtype=bool)
    values: dict[str, Any] = {
        "refused": rows["refusal_rate_proposed"].where(~failed).to_numpy(dtype=float)
    }
    if ok.notna().any():
        values["failed"] = np.where(ok.isna(), np.nan, failed.astype(float))
    if "number_support" in rows and rows["number_support"].notna().any():
        support = rows["number_support"].astype(float)
        values["unsupported"] = (support < 1).astype(float).where(support.notna()).to_numpy()
    name = column_named(rows, LATENCY)
    if name is not None:
        latency = pd.to_numeric(rows[name], errors="coerce").astype(float).where(~failed)
        is_milliseconds = loose(name).endswith("ms") or bool(latency.median() > _SECONDS_MOST)
        values["latency"] = (latency / (1000 if is_milliseconds else 1)).to_numpy()
    times = named_column(rows, TIMES)
    moments = None if times is None else _moments(times)
    if moments is None:
        days = None
    else:
        days = moments.dt.tz_localize(None).dt.normalize()
    return changes(values, days, level)


def _refusals(texts: pd.Series[Any]) -> pd.DataFrame:
    """Return which answers each of the known forms of refusals is found in."""
    words = WORDS["refusals"]
    rows = pl.DataFrame(
        {"answer": pl.Series([t if isinstance(t, str) else None for t in texts], dtype=pl.String)}
    )
    hits = rows.select(answers.matches([w], "patterns").fill_null(False).alias(w) for w in words)
    return pd.DataFrame({word: hits[word].to_numpy() for word in words})


def _passages(frame: pd.DataFrame) -> list[Any]:
    """Return what was retrieved for each answer, None where nobody says."""
    name = next((name for name in ("retrieved_contexts", "chunks") if name in frame), None)
    if name:
        cells = columns.cells(frame, name)
    else:
        cells = [None] * len(frame)
    return [list(cell) if isinstance(cell, list | tuple | np.ndarray) else None for cell in cells]


def _daily(rows: pd.DataFrame) -> pd.DataFrame:
    times = named_column(rows, TIMES)
    # Without a column that speaks of failures there is no share of them.
    table = pd.DataFrame(
        {"day": _days(times), "refusal_rate": rows["refusal_rate"], "failed": math.nan}
    )
    ok = ok_of(rows)
    if ok.notna().any():
        table["failed"] = 1.0 - ok.fillna(True).astype(float)
    latency = named_column(rows, LATENCY)
    table["latency"] = math.nan if latency is None else pd.to_numeric(latency, errors="coerce")
    said = rows["answer"].to_numpy(dtype=object)
    table["length"] = [len(cell) if isinstance(cell, str) else math.nan for cell in said]
    by = table.groupby("day", dropna=False, sort=True)
    made = by.agg(
        n=("failed", "size"), refusal_rate=("refusal_rate", "mean"), failed=("failed", "mean")
    )
    for name in ("latency", "length"):
        made[f"{name}_median"], made[f"{name}_p95"] = by[name].median(), by[name].quantile(0.95)
    return made.reset_index()


def ok_of(rows: pd.DataFrame) -> pd.Series[Any]:
    """Return whether each answer came, missing where no column says.

    Examples
    --------
    >>> ok_of(pd.DataFrame({"ok": [True, None]})).tolist(), ok_of(pd.DataFrame({"a": [1]})).isna().tolist()
    ([True, <NA>], [True])
    """
    if "ok" not in rows:
        return pd.Series(pd.NA, index=rows.index, dtype="boolean")
    return rows["ok"].astype("boolean")


def named_column(rows: pd.DataFrame, names: Sequence[str]) -> Any:
    """Return the first column of some names, whatever their case, blanks and underscores; None without one.

    Examples
    --------
    >>> named_column(pd.DataFrame({"Latency-MS": [3]}), LATENCY).tolist()
    [3]
    """
    name = column_named(rows, names)
    if name is None:
        return None
    return rows[name]


def column_named(rows: pd.DataFrame, names: Sequence[str]) -> str | None:
    """Return the name of the first column of some names, as `named_column` finds it.

    Examples
    --------
    >>> column_named(pd.DataFrame({"Latency-MS": [3]}), LATENCY)
    'Latency-MS'
    """
    near = {loose(name): name for name in reversed(list(map(str, rows.columns)))}
    return next((near[loose(name)] for name in names if loose(name) in near), None)


def _days(times: Any) -> Any:
    """Return the day of each time, in UTC; numbers are seconds or milliseconds since 1970."""
    if times is None:
        return None
    moments = _moments(times)
    # A log of many answers has few days: each is written once.
    day_of, days = pd.factorize(moments.dt.normalize())
    for form in ("%Y-%m-%d", "%G-W%V", "%Y-%m"):
        span = pd.Series(days.strftime(form))
        if span.nunique() <= _MOST_DAYS:
            break
    return span.reindex(day_of).set_axis(moments.index)


def _moments(times: Any) -> Any:
    """Return the times in UTC; numbers are seconds or milliseconds since 1970."""
    numbers = pd.to_numeric(times, errors="coerce")
    if numbers.notna().any():
        unit: Any = "ms" if numbers.abs().max() > 1e11 else "s"
        return pd.to_datetime(numbers, unit=unit, utc=True, errors="coerce")
    return pd.to_datetime(times, utc=True, errors="coerce", format="ISO8601")


def _to_label(
    rows: pd.DataFrame, question: pd.Series[Any], order: pd.Series[Any], passages: list[Any]
) -> pd.DataFrame:
    """Return the questions to label, drawn by hash from strata of document and reason, with their chances.

    `WORDS` says how often a question of each reason is drawn, compared with others; small strata are one.
    """
    nothing = pd.Series(math.nan, rows.index)
    support = pd.DataFrame({name: rows.get(name, nothing) for name in SUPPORT})
    low = support["support_lexical"] < support["support_lexical"].quantile(0.25)
    reasons = {
        "repeated": rows["repeated_answer"] == 1,
        "empty": rows["empty_retrieval"] == 1,
        "unsupported": low | (support[[*SUPPORT[1:]]] < 1).any(axis=1),
        "refused": rows["refusal_rate_proposed"] == 1,
    }
    reason = np.select(
        [found.to_numpy(dtype=bool) for found in reasons.values()], [*reasons], "other"
    )
    table = pd.DataFrame({"question": question, "reason": reason, "order": order})
    table["document"] = _documents(rows, passages)
    table["rank"] = table["reason"].map(REASONS.index)
    table = table.sort_values(["rank", "order"], kind="stable").drop_duplicates(
        "question", ignore_index=True
    )
    if table["document"].nunique() > _MOST_DOCS:
        table["document"] = ""
    small = table.groupby(["document", "reason"])["question"].transform("size") < _FEW
    strata = table.groupby([table["document"].mask(small, ""), "reason"])
    effort = table["reason"].map(WORDS["effort"])
    size = strata["question"].transform("size")
    wanted = _TO_LABEL * effort * size / effort.sum()
    n = wanted.round().clip(lower=2).clip(upper=size)
    table[DRAWN] = n / size
    drawn = table[strata["order"].rank(method="first") <= n].sort_values("order", ignore_index=True)
    named = drawn["document"] if "doc_name" in rows else ""
    drawn = drawn.assign(answerable="", gold_ids="", doc_name=named)
    return drawn[["question", "answerable", "gold_ids", "doc_name", "reason", DRAWN]]


def _documents(rows: pd.DataFrame, passages: list[Any]) -> list[str]:
    """Return the document of each answer, else that of the passage that was ranked first, by its id."""
    if "doc_name" in rows:
        return columns.texts(rows, "doc_name").fill_null("").to_list()
    firsts = [cells[0] if cells else None for cells in passages]
    ids = [one.get("id") if isinstance(one, dict) else one for one in firsts]
    # `terms.pdf#12` is a place in a document; other ids do not say which they are of.
    places = [one if isinstance(one, str) and "#" in one[:200] else "" for one in ids]
    return [place.partition("#")[0] for place in places]
