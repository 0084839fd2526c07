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
_MILLISECONDS_FROM = 1e11  # since 1970: as seconds, a time above it would be after the year 5138
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
    is_known = frame["answered"].notna().to_numpy()
    is_answered = frame["answered"].astype("boolean").fillna(False).to_numpy(dtype=bool)
    texts = frame["answer"].map(lambda cell: cell.strip() if isinstance(cell, str) else "")
    # An answer that is a refusal already needs no pattern that makes it one.
    hits = _refusals(texts.where(is_answered))
    is_proposed = hits.any(axis=1).to_numpy(dtype=bool)
    key = "question" if "question" in frame else "sample_id"
    question = frame[key].fillna("").astype(str)  # an empty record has none
    passages = _passages(frame)

    rates: dict[str, Any] = {
        "refusal_rate": np.where(is_known, ~is_answered, np.nan),
        "refusal_rate_proposed": np.where(is_known, ~is_answered | is_proposed, np.nan),
    }
    n_questions = question.groupby(texts).transform("nunique").to_numpy()  # with this very answer
    is_repeated = is_answered & ~is_proposed & (texts != "") & (n_questions >= _OFTEN)
    rates["repeated_answer"] = np.where(is_known, is_repeated, np.nan)
    rates["empty_retrieval"] = [
        math.nan if of_answer is None else float(not of_answer) for of_answer in passages
    ]

    # A hash of the question gives the same random order whatever the order of the lines in the log.
    order = pd.Series(
        [hashlib.blake2b(text.encode("utf-8"), digest_size=8).hexdigest() for text in question]
    )
    rows_to_check = order[is_answered & ~is_proposed].sort_values().index
    is_bare = "retrieved_contexts" not in frame  # a chunk that is a text is an id
    checked, support = _support(texts, passages, rows_to_check, is_bare=is_bare)
    measured = rates
    if checked:
        measured = rates | support
    # A log that brings such a column along keeps its own.
    rows = frame.assign(**{name: cells for name, cells in measured.items() if name not in frame})
    rows.attrs = labelled.attrs

    compared = _changes(rows, level)
    log = Log(
        patterns=_patterns(hits, texts),
        daily=_daily(rows),
        to_label=_to_label(rows, question, order, passages),
        checked=checked,
        changes=compared.measures,
        days=compared.days,
    )
    return rows, log


def _patterns(hits: pd.DataFrame, texts: pd.Series[Any]) -> pd.DataFrame:
    """Return the forms of refusals that were found, the most frequent first, each with its first answer."""
    counts = hits.sum().sort_values(ascending=False, kind="stable")
    counts = counts[counts > 0]
    examples = [texts[hits[pattern]].iloc[0] for pattern in counts.index]
    return pd.DataFrame(
        {"pattern": counts.index, "n": counts.to_numpy(dtype=int), "example": examples}
    )


def _support(
    answers: pd.Series, passages: Sequence[Any], order: Iterable[int], *, is_bare: bool
) -> tuple[int, dict[str, list[Any]]]:
    """Return how many answers were compared with the texts of their passages, the first of an order, and how.

    `is_bare` says that a passage which is a text is an id.
    """
    # At use: scoring brings the client of a model, which scores and comparisons do without.
    from ragnb.scoring.lexical import name_support, number_support, support_lexical

    checked = 0
    checks = {"number_support": number_support, "name_support": name_support}
    support: dict[str, list[Any]] = {name: [math.nan] * len(answers) for name in SUPPORT}
    # Which figures and names no passage has.
    support |= {f"{name}__reason": [None] * len(answers) for name in checks}
    for row in order:
        if checked == MOST_CHECKED:
            break
        with_text = [item for item in passages[row] or () if not _is_id(item, is_bare=is_bare)]
        texts = [text for text in map(passage_text, with_text) if text]
        if not texts:
            continue
        checked += 1
        answer = answers[row]
        support["support_lexical"][row] = support_lexical(answer, texts)
        for name, check in checks.items():
            support[name][row], missing = check(answer, texts)
            support[f"{name}__reason"][row] = ", ".join(missing) or None
    return checked, support


def _is_id(passage: Any, *, is_bare: bool) -> bool:
    """Whether a passage is an id alone, as most logs have them: it is not searched for a text."""
    if isinstance(passage, dict):
        return passage.keys() == {"id"}
    return is_bare and isinstance(passage, str)


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
        # An answer counts as unsupported as soon as one of its figures is in no passage.
        support = rows["number_support"].astype(float)
        values["unsupported"] = (support < 1).astype(float).where(support.notna()).to_numpy()
    name = column_named(rows, LATENCY)
    if name is not None:
        latency = pd.to_numeric(rows[name], errors="coerce").astype(float).where(~failed)
        is_milliseconds = loose(name).endswith("ms") or bool(latency.median() > _SECONDS_MOST)
        per_second = 1000 if is_milliseconds else 1
        values["latency"] = (latency / per_second).to_numpy()
    days = None
    times = named_column(rows, TIMES)
    if times is not None:
        days = _moments(times).dt.tz_localize(None).dt.normalize()
    return changes(values, days, level)


def _refusals(texts: pd.Series[Any]) -> pd.DataFrame:
    """Return which answers each of the known forms of refusals is found in, a column a form."""
    patterns = WORDS["refusals"]
    cells = [text if isinstance(text, str) else None for text in texts]
    rows = pl.DataFrame({"answer": pl.Series(cells, dtype=pl.String)})

    hits = rows.select(
        answers.matches([pattern], "patterns").fill_null(False).alias(pattern)
        for pattern in patterns
    )
    return pd.DataFrame({pattern: hits[pattern].to_numpy() for pattern in patterns})


def _passages(frame: pd.DataFrame) -> list[Any]:
    """Return what was retrieved for each answer, None where nobody says or the answer failed."""
    if "retrieved_contexts" in frame:
        cells = columns.cells(frame, "retrieved_contexts")
    elif "chunks" in frame:
        cells = columns.cells(frame, "chunks")
    else:
        cells = [None] * len(frame)
    has_failed = ok_of(frame).eq(False).fillna(False)
    passages: list[Any] = []
    for cell, failed in zip(cells, has_failed, strict=True):
        # Of an answer that failed nothing is measured.
        is_list = not failed and isinstance(cell, list | tuple | np.ndarray)
        passages.append(list(cell) if is_list else None)
    return passages


def _daily(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table `Log.daily`."""
    times = named_column(rows, TIMES)
    # Without a column that speaks of failures there is no share of them.
    table = pd.DataFrame(
        {"day": _days(times), "refusal_rate": rows["refusal_rate"], "failed": math.nan}
    )
    ok = ok_of(rows)
    if ok.notna().any():
        table["failed"] = 1.0 - ok.fillna(True).astype(float)
    table["latency"] = math.nan
    latency = named_column(rows, LATENCY)
    if latency is not None:
        table["latency"] = pd.to_numeric(latency, errors="coerce")
    answer_cells = rows["answer"].to_numpy(dtype=object)
    # Lengths in characters.
    table["length"] = [len(cell) if isinstance(cell, str) else math.nan for cell in answer_cells]
    # Answers without a time are a group of their own.
    by_day = table.groupby("day", dropna=False, sort=True)
    daily = by_day.agg(
        n=("failed", "size"), refusal_rate=("refusal_rate", "mean"), failed=("failed", "mean")
    )
    for name in ("latency", "length"):
        daily[f"{name}_median"] = by_day[name].median()
        daily[f"{name}_p95"] = by_day[name].quantile(0.95)
    return daily.reset_index()


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
    # From last to first, so that of columns with one loose name the first counts.
    columns_by_loose_name = {loose(name): name for name in reversed(list(map(str, rows.columns)))}
    for name in names:
        if loose(name) in columns_by_loose_name:
            return columns_by_loose_name[loose(name)]
    return None


def _days(times: Any) -> Any:
    """Return the day, or of many days the week or month, of each time, in UTC; None without times."""
    if times is None:
        return None
    moments = _moments(times)
    # A log of many answers has few days: each is written once.
    day_of, days = pd.factorize(moments.dt.normalize())
    for form in ("%Y-%m-%d", "%G-W%V", "%Y-%m"):
        written = pd.Series(days.strftime(form))
        if written.nunique() <= _MOST_DAYS:
            break
    # A time that cannot be read has the code -1, for which `written` has no entry: its day is missing.
    return written.reindex(day_of).set_axis(moments.index)


def _moments(times: Any) -> Any:
    """Return the times in UTC; numbers are seconds or milliseconds since 1970."""
    numbers = pd.to_numeric(times, errors="coerce")
    if numbers.notna().any():
        unit: Any = "ms" if numbers.abs().max() > _MILLISECONDS_FROM else "s"
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
    wording = support["support_lexical"]
    is_low = wording < wording.quantile(0.25)
    lacks_figure_or_name = (support[["number_support", "name_support"]] < 1).any(axis=1)
    conditions = {
        "repeated": rows["repeated_answer"] == 1,
        "empty": rows["empty_retrieval"] == 1,
        "unsupported": is_low | lacks_figure_or_name,
        "refused": rows["refusal_rate_proposed"] == 1,
    }
    masks = [condition.to_numpy(dtype=bool) for condition in conditions.values()]
    # Of several reasons the first one counts.
    reason = np.select(masks, [*conditions], "other")
    table = pd.DataFrame({"question": question, "reason": reason, "order": order})
    table["document"] = _documents(rows, passages)
    table["rank"] = table["reason"].map(REASONS.index)
    # A question that was asked several times is drawn once, for the first reason that any of its answers gives.
    table = table.sort_values(["rank", "order"], kind="stable")
    table = table.drop_duplicates("question", ignore_index=True)

    if table["document"].nunique() > _MOST_DOCS:
        table["document"] = ""
    is_small = table.groupby(["document", "reason"])["question"].transform("size") < _FEW
    strata = table.groupby([table["document"].mask(is_small, ""), "reason"])
    effort = table["reason"].map(WORDS["effort"])
    size = strata["question"].transform("size")  # questions in the stratum of each
    # Proportional to the size of a stratum times its effort; over all strata the sum is `_TO_LABEL`.
    wanted = _TO_LABEL * effort * size / effort.sum()
    n_drawn = wanted.round().clip(lower=2).clip(upper=size)
    table[DRAWN] = n_drawn / size
    # The first questions of a stratum in the order of their hashes are a random sample of it.
    is_drawn = strata["order"].rank(method="first") <= n_drawn
    drawn = table[is_drawn].sort_values("order", ignore_index=True)
    # Documents guessed from the ids of passages serve the draw only, and are not shown.
    named = drawn["document"] if "doc_name" in rows else ""
    drawn = drawn.assign(answerable="", gold_ids="", doc_name=named)
    return drawn[["question", "answerable", "gold_ids", "doc_name", "reason", DRAWN]]


def _documents(rows: pd.DataFrame, passages: list[Any]) -> list[str]:
    """Return the document of each answer, else that of the passage that was ranked first, by its id."""
    if "doc_name" in rows:
        return columns.texts(rows, "doc_name").fill_null("").to_list()
    documents = []
    for of_answer in passages:
        first = of_answer[0] if of_answer else None
        name: Any = first.get("id") if isinstance(first, dict) else first
        # `terms.pdf#12` is a place in a document; other ids do not say which they are of. Only the beginning
        # counts, as a passage may also be a whole text with a `#` somewhere in it.
        is_place = isinstance(name, str) and "#" in name[:200]
        documents.append(name.partition("#")[0] if is_place else "")
    return documents
