"""The gold set: joined to traces, and checked for suitability."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, listing
from ragnb.polars import pl
from ragnb.readers.frames import canonical
from ragnb.traces import columns
from ragnb.traces.answers import trimmed_and_lowered
from ragnb.weights import as_pandas

FEWEST, FEWEST_OF_A_KIND, MOST_LISTED = 10, 3, 50
_UNMET = ("unmatched", "gold_without_trace", "repeated_questions", "repeated_ids", "question_differs")
Findings = list[tuple[str, bool | None, Sequence[str]]]


@dataclass(frozen=True)
class Match:
    """The gold row of each trace (null for none), the keys of both (see `keys_of`), and the joining columns."""

    rows: pl.Series
    traces: pl.DataFrame
    gold: pl.DataFrame
    by: str


def keys_of(frame: Any, by_id: bool = True) -> pl.DataFrame:
    """Return ``id, question, name`` of each row: the name is the id (ignored without `by_id`), else the question.

    Examples
    --------
    >>> keys_of(pd.DataFrame({"sample_id": [7, None], "question": ["x", "y"]})).rows()
    [('7', 'x', '7'), (None, 'y', 'y')]
    """
    ids = columns.ids(frame, "sample_id" if by_id else "")
    keys = pl.DataFrame({"id": ids, "question": columns.texts(frame, "question")})
    return keys.with_columns(name=pl.coalesce("id", "question", pl.lit("")))


def match(traces: Any, gold: Any, join: str) -> Match:
    """Join traces to gold by ``sample_id`` where both have it, else by question; of a repeated key, the last row.

    Raises
    ------
    RagnbError
        For gold without ``answerable``, and where both share no key.

    Examples
    --------
    >>> gold = pd.DataFrame({"sample_id": ["a", "b"], "question": ["x", "y"], "answerable": True})
    >>> match(pd.DataFrame({"question": ["y", "z"]}), gold, "auto").rows.to_list()
    [1, None]
    """
    if "answerable" not in gold.columns:
        raise RagnbError(f"gold has no column 'answerable'; {did_you_mean('answerable', list(gold.columns))}")
    if not any(key in traces.columns and key in gold.columns for key in ("sample_id", "question")):
        raise RagnbError("traces and gold share neither 'sample_id' nor 'question'; rename one in both")
    ours, theirs = (keys_of(frame, join == "auto") for frame in (traces, gold))
    known = theirs["id"].drop_nulls()
    by_id = bool(ours["id"].is_in(known.implode()).any())
    if not by_id:
        if len(known) and ours["id"].null_count() < len(ours):
            own, golden = (listing(sorted(keys["id"].drop_nulls().unique()), 3) for keys in (ours, theirs))
            text = f"no sample_id of the traces ({own}) is in gold ({golden}); they are joined by question text"
            warnings.warn(text, RagnbWarning, stacklevel=3)
        ours, theirs = (keys_of(frame, by_id=False) for frame in (traces, gold))
    table = theirs.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    last_id, last_question = (
        table.drop_nulls(key).unique(key, keep="last").select(key, gold_id="id", **{f"by_{key}": "row"})
        for key in ("id", "question")
    )
    met = ours.join(last_id.drop("gold_id"), on="id", how="left", maintain_order="left")
    met = met.join(last_question, on="question", how="left", maintain_order="left")
    # By text, a row with an id of its own takes only gold that has none.
    free = pl.col("id").is_null() | pl.col("gold_id").is_null()
    rows = met.select(pl.coalesce("by_id", pl.when(free).then(pl.col("by_question")))).to_series()
    return Match(rows, ours, theirs, "sample_id" if by_id else "question")


def join_counts(traces: Any, met: Match | None) -> dict[str, Any]:
    """Return the join report: counts, and the first of the names behind each count."""
    keys = keys_of(traces) if met is None else met.traces
    names = keys["name"]
    unmet: Mapping[str, Sequence[str] | pl.Series] = _unmet(met) if met else dict.fromkeys(_UNMET, ())
    # A question that the same system (and repeat) has answered before.
    run = {name: columns.texts(traces, name) for name in ("system", "repeat") if name in traces.columns}
    again = pl.DataFrame({"name": names} | run).select(~pl.struct(pl.all()).is_first_distinct()).to_series()
    listed = {**unmet, "duplicate_traces": names.filter(again)}
    report: dict[str, Any] = {"by": met and met.by, "n_traces": len(names), "n_gold": len(met.gold) if met else 0}
    report["n_matched"] = met.rows.count() if met else 0
    report |= {f"n_{name}": len(items) for name, items in listed.items()}
    return report | {name: list(items[:MOST_LISTED]) for name, items in listed.items()}


def _unmet(met: Match) -> dict[str, Sequence[str] | pl.Series]:
    reached = met.gold["name"].gather(met.rows.drop_nulls().unique())
    differs = met.gold["question"].gather(met.rows) != met.traces["question"]
    return {
        "unmatched": met.traces["name"].filter(met.rows.is_null()),
        "gold_without_trace": met.gold["name"].filter(~met.gold["name"].is_in(reached.implode())),
        "repeated_questions": repeats(met.gold["question"]),
        "repeated_ids": repeats(met.gold["id"]),
        "question_differs": met.traces["name"].filter(differs),
    }


def repeats(items: pl.Series) -> list[str]:
    """Return every item beyond the first of its name.

    Examples
    --------
    >>> repeats(columns.as_series(["a", "b", "a", "a", None, None]))
    ['a', 'a']
    """
    keys = items.drop_nulls()
    return keys.filter(~keys.is_first_distinct()).to_list()


def warn_of_repeats(met: Match) -> None:
    """Warn if a trace was joined by a key that occurs more than once in the gold set."""
    reached = met.gold.select(pl.all().gather(met.rows.drop_nulls()))
    by_id = (met.traces["id"].filter(met.rows.is_not_null()) == reached["id"]).fill_null(False)
    steps = {"question": "give traces and gold a sample_id", "id": "make every sample_id unique"}
    for key, used in (("question", reached.filter(~by_id)), ("id", reached.filter(by_id))):
        names = sorted(set(repeats(met.gold[key])) & set(used[key].unique()))
        if names:
            what = "sample_id" if key == "id" else key
            found = f"gold holds {len(names)} {what}(s) more than once ({listing(names, 3)})"
            warnings.warn(f"{found}; the last one is used: {steps[key]}", RagnbWarning, stacklevel=3)


def expectations(gold: Any) -> pl.DataFrame:
    """Return what gold expects, one row per question.

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
    ids, answerable = columns.distinct(columns.id_lists(gold, "gold_ids")), columns.answerable(gold)
    named = ids.list.len().sum() > 0 or (ids.is_not_null().any() and not (answerable == 1).any())
    ids = ids.fill_null(pl.Series([[]], dtype=ids.dtype)) if named else ids.clear(len(ids))
    claims = trimmed_and_lowered(columns.texts(gold, "gold_claim"))[1]
    expected = pl.DataFrame({"answerable": answerable, "gold_ids": ids, "claim": claims})
    return expected.with_columns(matched=pl.lit(True))


def check_gold(gold: pd.DataFrame, *, previous: pd.DataFrame | None = None, lang: str = "en") -> pd.DataFrame:
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
    yes, no = (keys["answerable"] == 1).fill_null(False), (keys["answerable"] == 0).fill_null(False)
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
        changed = [name for name, question in now.items() if name in then and then[name] != question]
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
