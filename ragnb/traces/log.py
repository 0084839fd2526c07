"""Logs without gold: the rates that need no labels, refusal patterns to propose, the answers to label first."""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb.polars import pl
from ragnb.readers.cells import passage_text
from ragnb.readers.raw import absent
from ragnb.schema import DRAWN
from ragnb.scoring.lexical import name_support, number_support, support_lexical
from ragnb.traces import answers

WORDS = tomllib.loads(Path(__file__).with_name("log.toml").read_text(encoding="utf-8"))
LOG_RATES = ("refusal_rate", "refusal_rate_proposed", "repeated_answer", "empty_retrieval")
REASONS = ("repeated", "empty", "unsupported", "refused", "other")
_OFTEN, _CHECKED, _TO_LABEL, _FEW, _MOST_DOCS, _MOST_DAYS = 3, 5000, 60, 5, 12, 31


@dataclass(frozen=True)
class Log:
    """What a log without gold says beside its rates.

    Attributes
    ----------
    patterns : DataFrame
        ``pattern, n, example``: what refusals look like and how many answers that count as answers match it.
    daily : DataFrame
        ``day`` (or week or month), ``n, refusal_rate, failed, latency_median, latency_p95, length_median, length_p95``; one row without
        times.
    to_label : DataFrame
        A gold file to fill in: ``question, answerable, gold_ids, doc_name, reason, inclusion_probability``.
    checked : int
        How many answers the lexical checks looked at.
    """

    patterns: pd.DataFrame
    daily: pd.DataFrame
    to_label: pd.DataFrame
    checked: int


def read_log(labelled: pd.DataFrame) -> tuple[pd.DataFrame, Log]:
    """Return labelled traces with the rates that need no gold, and what else they say.

    Parameters
    ----------
    labelled : DataFrame
        What `label_traces` returns, with ``question``.

    Notes
    -----
    The lexical checks look at 5,000 answers at most, those whose question hashes lowest; the others have no value.

    Examples
    --------
    >>> from ragnb.traces import label_traces
    >>> said = pd.DataFrame({"question": ["a", "b"], "answer": ["Sorry, I cannot answer this.", "Yes."]})
    >>> rows, log = read_log(label_traces(said))
    >>> rows["refusal_rate_proposed"].tolist(), log.patterns["n"].tolist()
    ([1.0, 0.0], [1])
    """
    frame = labelled.reset_index(drop=True)
    answered = frame["answered"].astype("boolean").fillna(False).to_numpy(dtype=bool)
    known = frame["answered"].notna().to_numpy()
    texts = frame["answer"].astype(object)
    matched = _matches(texts.where(answered, None))
    hits = pd.DataFrame(matched, index=WORDS["refusals"]).T
    counts = hits.sum().sort_values(ascending=False, kind="stable")
    counts = counts[counts > 0]
    examples = [texts[hits[name].to_numpy()].iloc[0] for name in counts.index]
    patterns = pd.DataFrame({"pattern": counts.index, "n": counts.to_numpy(dtype=int), "example": examples})
    proposed = hits.any(axis=1).to_numpy()
    question = frame.get("question", frame.get("sample_id")).astype(str)
    word = texts.map(lambda cell: cell.strip() if isinstance(cell, str) else "")
    said_to = question.groupby(word).transform("nunique").to_numpy()
    passages = _passages(frame)
    empty = np.array([math.nan if found is None else float(not found) for found in passages])
    rates: dict[str, Any] = {
        "refusal_rate": np.where(known, ~answered, np.nan),
        "refusal_rate_proposed": np.where(known, ~answered | proposed, np.nan),
        "repeated_answer": np.where(known, answered & ~proposed & (word != "").to_numpy() & (said_to >= _OFTEN), np.nan),
        "empty_retrieval": empty,
    }
    order = pd.Series([_hash(one) for one in question])
    chosen = set(order[answered].nsmallest(_CHECKED).index)
    texts_of = _texts(frame)
    if any(texts_of):
        checks = {"support_lexical": lambda *given: (support_lexical(*given), []),
                  "number_support": number_support, "name_support": name_support}  # fmt: skip
        for name, check in checks.items():
            found = [check(texts[i], texts_of[i]) if i in chosen and texts_of[i] else (math.nan, [])
                     for i in range(len(frame))]  # fmt: skip
            rates[name] = [value for value, _ in found]
            rates[f"{name}__reason"] = [", ".join(lost) or None for _, lost in found]
    rows = frame.assign(**{name: cells for name, cells in rates.items() if name not in frame})
    rows.attrs = labelled.attrs
    log = Log(patterns, _daily(rows), _to_label(rows, question, order), len(chosen) if any(texts_of) else 0)
    return rows, log


def _matches(texts: pd.Series[Any]) -> list[np.ndarray[Any, Any]]:
    rows = pl.DataFrame({"answer": pl.Series(texts.tolist(), dtype=pl.String)})
    found = rows.select(answers.matches([word], "patterns").fill_null(False).alias(str(i))
                        for i, word in enumerate(WORDS["refusals"]))  # fmt: skip
    return [found[name].to_numpy() for name in found.columns]


def _passages(frame: pd.DataFrame) -> list[Any]:
    """Return what was retrieved for each answer, None where nobody says."""
    for name in ("retrieved_contexts", "chunks"):
        if name in frame:
            return [None if absent(cell) else list(cell) for cell in frame[name].map(_listed)]
    return [None] * len(frame)


def _listed(cell: Any) -> Any:
    return cell if isinstance(cell, list | tuple | np.ndarray) else None


def _texts(frame: pd.DataFrame) -> list[list[str]]:
    """Return the texts of the passages of each answer, where they are there."""
    found = [[passage_text(one) for one in cells or ()] for cells in _passages(frame)]
    bare = "retrieved_contexts" not in frame  # a chunk that is a text is an id
    return [[t for t, one in zip(row, cells or (), strict=True) if t and not (bare and isinstance(one, str))]
            for row, cells in zip(found, _passages(frame), strict=True)]  # fmt: skip


def _daily(rows: pd.DataFrame) -> pd.DataFrame:
    days = _days(rows.get("ts"))
    latency = next((pd.to_numeric(rows[name], errors="coerce") for name in WORDS["latency"] if name in rows), None)
    length = rows["answer"].map(lambda cell: len(cell) if isinstance(cell, str) else math.nan).astype(float)
    failed = ~rows["ok"].astype("boolean").fillna(True).astype(bool) if "ok" in rows else pd.Series(False, rows.index)
    nothing = pd.Series(math.nan, index=rows.index)
    parts = {"latency": nothing if latency is None else latency, "length": length}
    table = pd.DataFrame({"day": days, "refusal_rate": rows["refusal_rate"], "failed": failed.astype(float), **parts})
    by = table.groupby("day", dropna=False, sort=True)
    made = by.agg(n=("failed", "size"), refusal_rate=("refusal_rate", "mean"), failed=("failed", "mean"))
    for name in parts:
        made[f"{name}_median"], made[f"{name}_p95"] = by[name].median(), by[name].quantile(0.95)
    return made.reset_index()


def _days(times: pd.Series[Any] | None) -> Any:
    """Return the day of each time in UTC, of many days the week or month; numbers are (milli)seconds since 1970."""
    if times is None:
        return None
    numbers = pd.to_numeric(times, errors="coerce")
    if numbers.notna().any():
        large = numbers.abs().max() > 1e11
        found = pd.to_datetime(numbers, unit="ms" if large else "s", utc=True, errors="coerce")
    else:
        found = pd.to_datetime(times, utc=True, errors="coerce", format="ISO8601")
    spans = [found.dt.strftime(form) for form in ("%Y-%m-%d", "%G-W%V", "%Y-%m")]
    return next((span for span in spans if span.nunique() <= _MOST_DAYS), spans[-1])


def _hash(question: str) -> int:
    return int.from_bytes(hashlib.blake2b(question.encode("utf-8"), digest_size=8).digest(), "big")


def _to_label(rows: pd.DataFrame, question: pd.Series[Any], order: pd.Series[Any]) -> pd.DataFrame:
    """Return the questions to label: drawn by hash from strata of document and reason, with their chances.

    An answer that may be wrong is drawn three times as often as others, one that may be a refusal twice.
    """
    support = pd.concat([rows[n] for n in ("support_lexical", "number_support", "name_support") if n in rows] or
                        [pd.Series(math.nan, rows.index)], axis=1)  # fmt: skip
    low = support.iloc[:, 0] < support.iloc[:, 0].quantile(0.25)
    conditions = [rows["repeated_answer"] == 1, rows["empty_retrieval"] == 1, low | (support.iloc[:, 1:] < 1).any(axis=1),
                  rows["refusal_rate_proposed"] == 1]  # fmt: skip
    reason = pd.Series(np.select([one.to_numpy(bool) for one in conditions], REASONS[:-1], REASONS[-1]))
    table = pd.DataFrame({"question": question, "reason": reason, "order": order, "doc_name": _documents(rows)})
    table["rank"] = table["reason"].map(REASONS.index)
    table = table.sort_values(["rank", "order"], kind="stable").drop_duplicates("question")
    few = table["doc_name"].nunique() <= _MOST_DOCS
    named = table["doc_name"].fillna("") if few else pd.Series("", table.index)
    size = table.groupby([named, "reason"])["question"].transform("size")
    stratum = table["reason"] + "\0" + named.where(size >= _FEW, "")
    wanted = table["reason"].map(WORDS["effort"])
    share = _TO_LABEL * wanted / wanted.sum()
    size = table.groupby(stratum)["question"].transform("size")
    n = share.groupby(stratum).transform("sum").round().clip(lower=2).clip(upper=size)
    place = table.groupby(stratum)["order"].rank(method="first")
    drawn = table.assign(**{DRAWN: n / size})[place <= n].sort_values("order")
    drawn = drawn.assign(answerable="", gold_ids="", doc_name=drawn["doc_name"] if "doc_name" in rows else "")
    return drawn[["question", "answerable", "gold_ids", "doc_name", "reason", DRAWN]].reset_index(drop=True)


def _documents(rows: pd.DataFrame) -> list[str | None]:
    """Return the document of each answer, else that of the passage that was ranked first, by its id."""
    if "doc_name" in rows:
        return [None if absent(cell) else str(cell) for cell in rows["doc_name"]]
    firsts: Sequence[Any] = [cells[0] if cells else None for cells in _passages(rows)] if "chunks" in rows else []
    ids = [one.get("id") if isinstance(one, dict) else one for one in firsts] or [None] * len(rows)
    return [one.partition("#")[0] if isinstance(one, str) and "#" in one else None for one in ids]
