"""Traces and their gold set → a labelled scores frame, and the rates that are its means."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import narwhals as nw
import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, listing, need_known
from ragnb.polars import pl
from ragnb.readers.executors import mapped, on_spark, reduced
from ragnb.readers.failures import failure_columns, outcomes
from ragnb.readers.frames import as_called, brought, canonical
from ragnb.readers.raw import collector_paused
from ragnb.readers.traces import read_gold
from ragnb.schema import KNOWN_RATES, METRICS, Metric, metric_list
from ragnb.traces import answers, columns
from ragnb.traces import citations as citing
from ragnb.traces.answers import trimmed_and_lowered
from ragnb.traces.citations import Citations, Split
from ragnb.weights import (
    MetricsArgument,
    as_pandas,
    collected,
    column_names,
    moments,
    opened,
    plain_sums,
)
from ragnb.weights.columns import count_where

FEWEST, FEWEST_OF_A_KIND, MOST_LISTED = 10, 3, 50
_UNMET = (
    "unmatched",
    "gold_without_trace",
    "repeated_questions",
    "repeated_ids",
    "question_differs",
)
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

    `join` is one of `label_traces`, or ``id`` where other rows are known to meet gold by it.

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
        raise RagnbError(
            f"gold has no column 'answerable'; {did_you_mean('answerable', list(gold.columns))}"
        )
    if not any(key in traces.columns and key in gold.columns for key in ("sample_id", "question")):
        raise RagnbError(
            "traces and gold share neither 'sample_id' nor 'question'; rename one in both"
        )
    ours, theirs = (keys_of(frame, join != "question") for frame in (traces, gold))
    known = theirs["id"].drop_nulls()
    by_id = join == "id" or bool(ours["id"].is_in(known.implode()).any())
    if not by_id:
        if len(known) and ours["id"].null_count() < len(ours):
            own, golden = (
                listing(sorted(keys["id"].drop_nulls().unique()), 3) for keys in (ours, theirs)
            )
            text = f"no sample_id of the traces ({own}) is in gold ({golden}); they are joined by question text"
            warnings.warn(text, RagnbWarning, stacklevel=3)
        ours, theirs = (keys_of(frame, by_id=False) for frame in (traces, gold))
    table = theirs.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    last_id, last_question = (
        table.drop_nulls(key)
        .unique(key, keep="last")
        .select(key, gold_id="id", **{f"by_{key}": "row"})
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
    unmet: Mapping[str, Sequence[str] | pl.Series] = (
        _unmet(met) if met else dict.fromkeys(_UNMET, ())
    )
    # A question that the same system (and repeat) has answered before.
    run = {
        name: columns.texts(traces, name) for name in ("system", "repeat") if name in traces.columns
    }
    again = (
        pl.DataFrame({"name": names} | run)
        .select(~pl.struct(pl.all()).is_first_distinct())
        .to_series()
    )
    listed = {**unmet, "duplicate_traces": names.filter(again)}
    report: dict[str, Any] = {
        "by": met and met.by,
        "n_traces": len(names),
        "n_gold": len(met.gold) if met else 0,
    }
    report["n_matched"] = met.rows.count() if met else 0
    report |= {f"n_{name}": len(items) for name, items in listed.items()}
    return report | {name: list(items[:MOST_LISTED]) for name, items in listed.items()}


def _unmet(met: Match) -> dict[str, Sequence[str] | pl.Series]:
    reached = _reached(met)
    differs = met.gold["question"].gather(met.rows) != met.traces["question"]
    return {
        "unmatched": met.traces["name"].filter(met.rows.is_null()),
        "gold_without_trace": met.gold["name"].filter(~met.gold["name"].is_in(reached.implode())),
        "repeated_questions": repeats(met.gold["question"]),
        "repeated_ids": repeats(met.gold["id"]),
        "question_differs": met.traces["name"].filter(differs),
    }


def _reached(met: Match) -> pl.Series:
    return met.gold["name"].gather(met.rows.drop_nulls().unique())


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
            warnings.warn(
                f"{found}; the last one is used: {steps[key]}", RagnbWarning, stacklevel=3
            )


def _kinds_of(ids: pl.Series, answerable: pl.Series) -> tuple[bool, ...]:
    """Return whether some ids are named, some lists are there, and some questions are answerable."""
    return (
        bool(ids.list.len().sum() > 0),
        bool(ids.is_not_null().any()),
        bool((answerable == 1).any()),
    )


def _kinds_in(frame: Any) -> tuple[bool, ...]:
    return _kinds_of(columns.id_lists(frame, "gold_ids"), columns.answerable(frame))


def _names_ids(kinds: tuple[bool, ...]) -> bool:
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
    ids, answerable = columns.distinct(columns.id_lists(gold, "gold_ids")), columns.answerable(gold)
    named = _names_ids(_kinds_of(ids, answerable)) if named is None else named
    ids = ids.fill_null(pl.Series([[]], dtype=ids.dtype)) if named else ids.clear(len(ids))
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


Join = Literal["auto", "question"]
Frame = TypeVar("Frame")
FACTS = ("answered", "refused", "partial", "hit", "contained", "compliant")
MISSES = ("not retrieved", "retrieved, not cited")
STATUSES = ("missing", "ok", "not_applicable")


def label_traces(
    traces: Frame,
    *,
    gold: Any = None,
    refusal: str | Sequence[str] = ("not in context",),
    patterns: str | Sequence[str] = (),
    partial: str | Sequence[str] = (),
    split: Split = "space",
    citations: Citations = "auto",
    containment: Literal["auto", "latin"] = "auto",
    join: Join = "auto",
) -> Frame:
    """Label every trace, and give it the columns whose means are the refusal, citation and retrieval rates.

    Parameters
    ----------
    traces : DataFrame
        One row per answer: ``answer``, and ``question`` or ``sample_id``; optional ``citations`` (list of ids),
        ``chunks`` (list of ids or of ``{"id": ...}``, best first), ``system``, ``repeat``, and what says that an
        answer failed and so is none: ``ok``, ``error``, ``status`` and the like (see `read_traces`). Of pandas,
        Polars, PyArrow or DuckDB, whose rows are worked on in memory, or of PySpark, whose executors label them
        once the query runs.
    gold : DataFrame or path, optional
        One row per question, or what `read_gold` reads: ``answerable``, and ``question`` or ``sample_id``;
        optional ``gold_ids``, ``gold_claim``. Further columns travel onto the rows. Without it, such columns of
        `traces` are used.
    refusal : str or sequence of str
        An answer that equals one of them, trimmed and lower-cased, is a refusal.
    patterns : str or sequence of str
        Regular expressions: an answer in which one is found is a refusal. Case is ignored; look-around and
        back-references are not taken.
    partial : str or sequence of str
        Regular expressions, as `patterns`: an answer in which one is found refuses in part. It counts as
        answered, even where a pattern of `patterns` is found in it too, and is shown.
    split : {"space", "comma"}
        What parts the ids of ``citations: [...]`` in an answer: commas (also ``，、``) and white space, or commas
        alone (also ``，``), for ids that hold blanks or ``、``.
    citations : {"auto", "list", "inline", "brackets", "parentheses", "lenticular", "footnotes", "links", "tags", \
"sources", "numbers"}
        Where citations are read. ``auto`` takes the list field, else ``citations: [...]`` in the text, else the
        one inline form that the answers of a system show: ``[id]``, ``(id)``, ``【id】``, ``[^id]``,
        ``[text](id)``, ``<cite>id</cite>``, ``source: id``, of ids in the passages of the row or in gold, or
        ``[1]``, a place among these passages. ``list`` takes no inline form, ``inline`` every one of them where
        there is no list, and the name of a form that form alone.
    containment : {"auto", "latin"}
        Whether a claim that has no Latin phrase, or is not Latin, also counts when it occurs whole.
    join : {"auto", "question"}
        By ``sample_id`` where both have it, else by exact question text; or by text alone.

    Returns
    -------
    DataFrame
        Of the caller's engine: the traces' rows and columns, then gold's, then ``answered, refused, partial,
        hit, contained, compliant`` (nullable booleans), ``label``, ``miss`` (why nothing was hit),
        ``citations_predicted``, ``citations_flagged`` (a list occurs in the text that cannot be taken whole),
        ``citations_form`` (where they were read: ``field``, ``list`` or an inline form),
        and the rates of `RATES`: 0/1 (``retrieval_recall`` and ``reciprocal_rank`` in [0, 1]), nan where the
        rate does not apply, and ``<rate>__status`` (``ok, not_applicable, missing``) that says why. An answer that
        failed has no rates: it is one lost answer.
        Scores that the traces bring along do not apply to unanswerable questions (see `mark_unanswerable`).
        A pandas frame's ``attrs["join"]`` is the `join_report`.

    Raises
    ------
    RagnbError
        For a column that is missing, an option or a pattern that is unknown, a cell of the wrong kind, and
        citations in two forms that name different ids.

    Examples
    --------
    >>> import pandas as pd
    >>> traces = pd.DataFrame({"question": ["x", "y"], "answer": ["Yes [a].", "Not in context"]})
    >>> gold = pd.DataFrame({"question": ["x", "y"], "answerable": [True, False], "gold_ids": [["a"], []]})
    >>> label_traces(traces, gold=gold)[["label", "citation_hit_rate", "under_refusal"]]
            label  citation_hit_rate  under_refusal
    0          OK                1.0            NaN
    1  REFUSAL_OK                NaN            0.0
    """
    traces = brought(traces, "read_traces")
    named = canonical(traces, reader="read_traces")
    gold = gold_frame(gold)
    if "answer" not in (have := column_names(named)):
        raise RagnbError(f"traces have no column 'answer'; {did_you_mean('answer', have)}")
    options = {
        "split": (split, citing.SEPARATORS),
        "citations": (citations, citing.CHOICES),
        "containment": (containment, ("auto", "latin")),
    }
    for name, (value, choices) in (options | {"join": (join, ("auto", "question"))}).items():
        need_known(name, value, list(choices))
    words = [_words(refusal), _words(patterns), _words(partial)]
    how: dict[str, Any] = {
        "words": words,
        "split": split,
        "citations": citations,
        "whole": containment == "auto",
    }
    if on_spark(named):
        by, own = _join_on_spark(named, gold, join), None
        if gold is None:  # of all rows, not of each batch
            asked = named.select(
                *([n for n in ("answerable", "gold_ids") if n in have] or have[:1])
            )
            own = _names_ids(
                reduced(asked, _kinds_in, lambda kinds: tuple(map(any, zip(*kinds, strict=True))))
            )

        def match_part(part: pl.DataFrame) -> Match | None:
            return None if gold is None else match(part, gold, by)

        def seen(part: pl.DataFrame) -> dict[str | None, citing.Seen]:
            rows = _read_rows(part, gold, match_part(part), words, own)[1]
            return citing.read(rows, split=split, citations=citations, known=_gold_ids(gold)).seen

        forms = (
            citing.chosen(reduced(named, seen, citing.merged), citations)
            if citations == "auto"
            else None
        )

        def label(part: pl.DataFrame) -> Any:
            return _labelled(part, gold, match_part(part), named=own, forms=forms, **how)[0]

        made: Any = mapped(named, label)
    else:
        frame = columns.with_chunks(columns.workable(named))
        met = None if gold is None else match(frame, gold, join)
        if met is not None:
            warn_of_repeats(met)
        labelled, report = _labelled(frame, gold, met, **how)
        made = columns.as_brought(labelled, traces, {"join": report})
    return cast(Frame, as_called(made, named, traces))


def _labelled(
    frame: Any,
    gold: Any,
    met: Match | None,
    *,
    words: Sequence[Sequence[str]],
    split: Split,
    citations: Citations,
    whole: bool,
    named: bool | None = None,
    forms: Mapping[str | None, str] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Return the labelled rows of pandas or Polars, and the join report with what became of the answers.

    `forms` says how the answers of each system cite, where that was found on more rows than these.
    """
    with collector_paused(), ThreadPoolExecutor() as pool:
        frame, rows = _read_rows(frame, gold, met, words, named)
        counts = pool.submit(join_counts, frame, met)
        contained = pool.submit(answers.holds, rows["lower"], rows["claim"], whole)
        ranks = pool.submit(_ranks, rows)
        found = citing.read(rows, split=split, citations=citations, known=_gold_ids(gold))
        forms = citing.chosen(found.seen, citations) if forms is None else forms
        rows = rows.drop("citations").hstack(citing.taken(found, rows["system"], forms))
        made = _outcomes(rows.with_columns(contained=contained.result(), rank=ranks.result()))
        if failure_columns(frame.columns) and "ok" not in frame.columns:
            made = made.with_columns(rows["ok"])
        labelled = mark_unanswerable(columns.assemble(frame, made), metrics=METRICS.values())
        report = counts.result() | answer_counts(made.with_columns(rows["answer"]))
        return labelled, report | {
            "citations": citing.citation_forms(made.with_columns(rows["system"]))
        }


def _read_rows(
    frame: Any, gold: Any, met: Match | None, words: Sequence[Sequence[str]], named: bool | None
) -> tuple[Any, pl.DataFrame]:
    """Return the traces with gold's columns, and what the labels are made of."""
    if met is None:
        expected = expectations(frame, named)
    else:
        frame = columns.with_gold(frame, gold, met.rows)
        expected = expectations(gold).select(pl.all().gather(met.rows))
    rows = _answers(frame).hstack(expected).with_columns(system=columns.texts(frame, "system"))
    return frame, rows.with_columns(_refusals(*words))


def gold_frame(gold: Any) -> Any:
    """Return gold, a frame of any engine, a file or records, as a frame to work on."""
    if gold is None:
        return None
    if isinstance(gold, str | os.PathLike | list):
        return pd.DataFrame(read_gold(gold))
    return columns.workable(canonical(gold, reader="read_gold"))


def _gold_ids(gold: Any) -> pl.Series | None:
    """Return all ids that gold names, as those that an answer may cite."""
    return None if gold is None else columns.id_lists(gold, "gold_ids").explode()


def answer_counts(labelled: Any) -> dict[str, int]:
    """Return how many answers are missing, empty, cite what cannot be taken whole, and refuse in part.

    Parameters
    ----------
    labelled : DataFrame of any engine but pandas
        With what `label_traces` adds.

    Examples
    --------
    >>> made = pl.DataFrame({"answer": ["", None], "answered": [True, None], "citations_flagged": False})
    >>> answer_counts(made.with_columns(partial=False))
    {'n_without_answer': 1, 'n_empty': 1, 'n_citations_flagged': 0, 'n_partial': 0}
    """
    blank = nw.col("answer").str.strip_chars() == ""
    counts = {
        "n_without_answer": nw.col("answered").is_null(),
        "n_empty": nw.col("answered") & blank,
        "n_citations_flagged": nw.col("citations_flagged"),
        "n_partial": nw.col("partial"),
    }
    return _tally(labelled, counts)


def _tally(frame: Any, conditions: Mapping[str, nw.Expr]) -> dict[str, int]:
    """Return how many rows meet each condition, counted on their engine."""
    ones = (count_where(met, name) for name, met in conditions.items())
    found = collected(opened(frame).select(*ones))
    return {name: int(found[name].item() or 0) for name in conditions}


def join_report(traces: Any, *, gold: Any, join: Join = "auto") -> dict[str, Any]:
    """Return how traces and gold meet: counts, and the first 50 names behind each.

    Parameters
    ----------
    traces, gold, join
        As `label_traces` takes them.

    Returns
    -------
    dict
        ``by`` (``sample_id`` or ``question``), ``n_traces``, ``n_gold``, ``n_matched``, and for each of
        ``unmatched`` (traces that are not in gold), ``gold_without_trace``, ``repeated_questions`` and
        ``repeated_ids`` of gold (each beyond the first), ``question_differs`` (met by id, with another
        question), ``duplicate_traces`` (of one system and repeat) the count ``n_…`` and the names.

    Examples
    --------
    >>> import pandas as pd
    >>> gold = pd.DataFrame({"question": ["x", "y"], "answerable": [True, False]})
    >>> report = join_report(pd.DataFrame({"question": ["x", "z"], "answer": ["a", "b"]}), gold=gold)
    >>> report["unmatched"], report["gold_without_trace"]
    (['z'], ['y'])
    """
    frame = canonical(traces, reader="read_traces")
    gold = gold_frame(gold)
    if on_spark(frame):
        return _report_on_spark(frame, gold, _join_on_spark(frame, gold, join))
    frame = columns.workable(frame)
    return join_counts(frame, None if gold is None else match(frame, gold, join))


def _join_on_spark(traces: Any, gold: Any, join: Join) -> str:
    """Return how the batches of PySpark's traces are joined: by id only if an id of gold is in any of them."""
    if (
        gold is None
        or join == "question"
        or not all("sample_id" in column_names(one) for one in (traces, gold))
    ):
        return "question"
    known = columns.ids(gold, "sample_id").drop_nulls().implode()
    met = reduced(
        traces.select("sample_id"),
        lambda part: columns.ids(part, "sample_id").is_in(known).any(),
        any,
    )
    return "id" if met else "question"


def _report_on_spark(traces: Any, gold: Any, join: str) -> dict[str, Any]:
    """Return the join report of PySpark's traces, counted on the executors."""
    asked = [
        name
        for name in ("sample_id", "question", "system", "repeat")
        if name in column_names(traces)
    ]
    sums, lists = (
        ("n_traces", "n_matched", "n_unmatched", "n_question_differs"),
        ("unmatched", "question_differs"),
    )

    def counted(part: pl.DataFrame) -> tuple[dict[str, Any], set[str]]:
        met = None if gold is None else match(part, gold, join)
        return join_counts(part, met), set() if met is None else set(_reached(met))

    def merged(parts: list[tuple[dict[str, Any], set[str]]]) -> tuple[dict[str, Any], set[str]]:
        reports = [report for report, _ in parts]
        whole = reports[0] | {name: sum(one[name] for one in reports) for name in sums}
        whole |= {
            name: [item for one in reports for item in one[name]][:MOST_LISTED] for name in lists
        }
        return whole, set().union(*(reached for _, reached in parts))

    def named(part: pl.DataFrame) -> pl.DataFrame:
        run = {name: columns.texts(part, name) for name in asked if name in ("system", "repeat")}
        return keys_of(part, gold is None or join == "id").select("name").with_columns(**run)

    report: dict[str, Any]
    report, reached = reduced(traces.select(*asked), counted, merged)
    if gold is not None:
        names = [name for name in keys_of(gold, join == "id")["name"] if name not in reached]
        report |= {"n_gold_without_trace": len(names), "gold_without_trace": names[:MOST_LISTED]}
    runs = nw.from_native(mapped(traces.select(*asked), named))
    again = (
        runs.group_by(*runs.collect_schema().names())
        .agg(nw.len().alias("n"))
        .filter(nw.col("n") > 1)
    )
    n = collected(again.select((nw.col("n") - 1).sum())).item()
    first = collected(again.select("name").sort("name").head(MOST_LISTED))["name"].to_list()
    return report | {"n_duplicate_traces": int(n or 0), "duplicate_traces": first}


def _words(words: str | Sequence[str]) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def _answers(frame: Any) -> pl.DataFrame:
    """Return ``answer`` (null where the call failed), in ``lower`` case, ``ok``, ``failed``, ids."""
    answer, lower = answers.trimmed_and_lowered(columns.texts(frame, "answer"))
    ok = came(frame)
    failed = ~ok.fill_null(True)
    answer = answer.set(failed, None)
    lower = lower.set(failed, None)
    lists = {name: columns.id_lists(frame, name) for name in ("citations", "chunks")}
    return pl.DataFrame({"answer": answer, "lower": lower, "ok": ok, "failed": failed, **lists})


def came(frame: Any) -> pl.Series:
    """Return whether each answer came, by the columns that speak of failures; null where none does.

    Examples
    --------
    >>> came(pd.DataFrame({"answer": ["Yes.", ""], "error": [None, "timeout"]})).to_list()
    [True, False]
    """
    names = failure_columns([str(name) for name in frame.columns])
    if [*names] == ["ok"] and (ok := columns.column(frame, "ok")).dtype in (pl.Boolean, pl.Null):
        return ok.cast(pl.Boolean)
    cells = {name: columns.cells(frame, name) for name in names}
    found = outcomes(cells, columns.cells(frame, "answer")) if names else None
    none = [None] * len(frame)
    return pl.Series("ok", none if found is None else found[0], dtype=pl.Boolean)


def _refusals(
    tokens: Sequence[str], patterns: Sequence[str], partial: Sequence[str]
) -> list[pl.Expr]:
    """Return who answered, who refused, and who refused in part (and so answered); null without an answer.

    A whole answer that is a token is a refusal; else a partial pattern goes before a pattern of refusals.
    """
    words = answers.trimmed_and_lowered(columns.as_series(tokens))[1]
    whole = pl.col("lower").is_in(words.implode())
    part = answers.matches(partial, "partial") & ~whole
    refused = whole | (answers.matches(patterns, "patterns") & ~part)
    facts = {"answered": ~refused, "refused": refused, "partial": part}
    return [
        pl.when(pl.col("answer").is_not_null()).then(fact).alias(name)
        for name, fact in facts.items()
    ]


def _ranks(rows: pl.DataFrame) -> pl.Series:
    """Return the rank of the first chunk that is a gold id of its row, null where none is."""
    rows = rows.select("chunks", "gold_ids").with_row_index("row")
    ranks = pl.int_ranges(1, pl.col("chunks").list.len() + 1)
    chunks = rows.select("row", id="chunks", rank=ranks).explode("id", "rank")
    wanted = rows.select("row", id="gold_ids").explode("id")
    first = (
        chunks.join(wanted, on=["row", "id"], how="semi").group_by("row").agg(pl.col("rank").min())
    )
    return rows.select("row").join(first, on="row", how="left", maintain_order="left")["rank"]


def _outcomes(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the new columns: facts, label, why nothing was hit, citations, rates, why a rate has no number."""
    answerable, gold_ids, chunks = pl.col("answerable"), pl.col("gold_ids"), pl.col("chunks")
    refused, cited = pl.col("refused"), pl.col("citations_predicted")
    hit = (cited.list.set_intersection(gold_ids).list.len() > 0).fill_null(False)
    rows = rows.with_columns(
        hit=pl.when(gold_ids.is_not_null()).then(hit),
        compliant=pl.when(refused.is_not_null()).then(cited.is_not_null() | refused),
    )
    # As numbers, a product is null where a factor is.
    answered, hit, contained = (
        pl.col(fact).cast(pl.Float64) for fact in ("answered", "hit", "contained")
    )
    yes, no = answerable == 1, answerable == 0
    of_answerable = pl.when(yes).then(1.0)
    words = {
        "OK": yes & (answered == 1) & (hit == 1),
        "REFUSAL_OK": no & (answered == 0),
        "OVER_REFUSAL": yes & (answered == 0),
        "HALLUCINATION": no & (answered == 1),
        "ANS_NO_HIT": yes & (answered == 1) & (hit == 0),
    }
    # Chunks of which none has an id say nothing about retrieval; an empty list says that nothing was retrieved.
    measured = (chunks.list.len() == 0) | chunks.list.eval(pl.element().is_not_null()).list.any()
    retrieval = pl.when(measured & (gold_ids.list.len() > 0) & yes)
    shared = chunks.list.set_intersection(gold_ids).list.len()
    rates = {
        # Where gold names no ids, answers have no label, and the share among refusals alone would mean nothing.
        "correct_outcome": pl.when(pl.col("label").is_not_null() & gold_ids.is_not_null()).then(
            pl.col("label").is_in(["OK", "REFUSAL_OK"])
        ),
        "answer_precision": pl.when(answered == 1).then(answerable * hit),
        "over_refusal": of_answerable * refused.cast(pl.Float64),
        "under_refusal": pl.when(no).then(answered),
        "citation_hit_rate": of_answerable * answered * hit,
        "claim_containment": of_answerable * answered * contained,
        "compliance": pl.when(pl.col("matched")).then(pl.col("compliant")),
        "retrieval_hit": retrieval.then(pl.col("rank").is_not_null()),
        "retrieval_recall": retrieval.then(shared / gold_ids.list.len()),
        "reciprocal_rank": retrieval.then((1 / pl.col("rank")).fill_null(0)),
    }
    outside = dict.fromkeys(rates, no) | {"answer_precision": refused, "under_refusal": yes}
    outside |= dict.fromkeys(("correct_outcome", "compliance"), pl.lit(False))
    rows = rows.with_columns(label=_first_word(words, LABELS))
    rows = rows.with_columns(rate.cast(pl.Float64).alias(name) for name, rate in rates.items())
    missed = pl.col("label") == "ANS_NO_HIT"
    places = {
        "not retrieved": pl.col("retrieval_hit") == 0,
        "retrieved, not cited": pl.col("retrieval_hit") == 1,
    }
    # An answer that failed is one lost answer, not a failed cell of each rate; and a rate that needs gold does not
    # apply where there is none.
    lacking = refused.is_null() & ~pl.col("failed") & answerable.is_not_null()
    statuses = [
        _first_word(
            {
                "ok": pl.col(name).is_not_null(),
                "not_applicable": outside[name].fill_null(False) | ~lacking.fill_null(False),
                "missing": True,
            },
            STATUSES,
        ).alias(f"{name}__status")
        for name in rates
    ]
    miss = _first_word({word: missed & place for word, place in places.items()}, MISSES)
    found = (
        "label",
        miss.alias("miss"),
        "citations_predicted",
        "citations_flagged",
        "citations_form",
    )
    return rows.select(*FACTS, *found, *rates, *statuses)


def _first_word(words: Mapping[str, Any], choices: Sequence[str]) -> pl.Expr:
    """Return the first word whose condition is met, null where none is."""
    kind = pl.Enum(choices)
    return pl.coalesce(pl.when(met).then(pl.lit(word, dtype=kind)) for word, met in words.items())


LABELS = ("OK", "REFUSAL_OK", "OVER_REFUSAL", "HALLUCINATION", "ANS_NO_HIT")
UNANSWERABLE = ("false", "0", "0.0", "否", "no", "n", "f", "unanswerable", "不可回答", "无法回答")
ANSWERABLE = (
    "true",
    "1",
    "1.0",
    "是",
    "yes",
    "y",
    "t",
    "answerable",
    "可回答",
    "",
    "nan",
    "none",
    "null",
)
_OTHER_RATES = ("wording", "log")
RATES = tuple(
    name for name in METRICS if name in KNOWN_RATES and METRICS[name].family not in _OTHER_RATES
)
"""The rates, in the order of METRICS."""


def refusal_metrics(
    labelled: Any,
    *,
    metrics: MetricsArgument = None,
    doc_weights: Mapping[str, float] | None = None,
    by: str | None = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return the refusal, citation and retrieval rates of labelled traces, with intervals.

    Parameters
    ----------
    labelled : DataFrame
        What `label_traces` returns, of pandas, Polars, PyArrow, DuckDB or PySpark.
    metrics : names, optional
        Some of `RATES`; None takes all that are there.
    doc_weights, by, doc, cluster, level
        As `ragnb.weighted_means` takes them.

    Returns
    -------
    DataFrame
        The columns of `ragnb.weighted_means`, with no total row, and ``numerator``: the plain sum of the column
        over the ``n`` rows where the rate applies. ``value`` is ``numerator / n`` without document weights,
        and nan, never 0, where nothing applies.

    Raises
    ------
    RagnbError
        For a name that is no rate or no column, and as `ragnb.weighted_means` does.

    Examples
    --------
    >>> from ragnb.traces import label_traces
    >>> traces = pd.DataFrame({"question": ["x", "y"], "answer": ["Yes. citations: [a]", "Not in context"]})
    >>> gold = pd.DataFrame({"question": ["x", "y"], "answerable": [True, True], "gold_ids": [["a"], ["b"]]})
    >>> labelled = label_traces(traces, gold=gold)
    >>> refusal_metrics(labelled, metrics="over_refusal")[["metric", "value", "numerator", "n"]]
             metric  value  numerator  n
    0  over_refusal    0.5        1.0  2
    """
    labelled = canonical(labelled, doc, cluster, by, reader="read_traces")
    have, asked = column_names(labelled), metric_list(metrics)
    there = [name for name in RATES if name in have]
    if asked is None and not there:
        step = did_you_mean(RATES[0], have)
        raise RagnbError(
            f"the frame contains no rate; label the traces with rn.label_traces; {step}"
        )
    names = there if asked is None else [one if isinstance(one, str) else one.name for one in asked]
    for name in names:
        need_known("metric", name, there, "Label the traces with rn.label_traces.")
    found = moments(labelled, metrics=names, doc=doc, cluster=cluster, by=by)
    means = found.means(doc_weights=doc_weights, level=level)
    means = means[means["role"] != "total"].reset_index(drop=True)
    means["numerator"] = plain_sums(found).ravel()
    return means


def outcome_counts(labelled: Any, *, lang: str = "en") -> pd.DataFrame:
    """Return the frequency of each label, and its meaning.

    Parameters
    ----------
    labelled : DataFrame
        What `label_traces` returns, of pandas, Polars, PyArrow, DuckDB or PySpark. Rows without a label are left
        out.
    lang : {"en", "zh"}

    Returns
    -------
    DataFrame
        ``label, meaning, n, share``; all five labels, in one order. ``share`` is nan where no row has a label.

    Raises
    ------
    RagnbError
        For a frame without labels.

    Examples
    --------
    >>> outcome_counts(pd.DataFrame({"label": ["OK", "OK", None]}))[["label", "n", "share"]].head(2)
            label  n  share
    0          OK  2    1.0
    1  REFUSAL_OK  0    0.0
    """
    say = texts.load(lang)
    have = column_names(labelled)
    if "label" not in have:
        step = did_you_mean("label", have)
        raise RagnbError(
            f"the frame has no column 'label'; label the traces with rn.label_traces; {step}"
        )
    word = nw.col("label").cast(nw.String)
    n = np.array([*_tally(labelled, {one: word == one for one in LABELS}).values()], dtype=np.int64)
    share = n / n.sum() if n.sum() else np.full(len(n), np.nan)
    meaning = [say(f"label.{name}") for name in LABELS]
    return pd.DataFrame({"label": LABELS, "meaning": meaning, "n": n, "share": share})


def repeated_answers(labelled: Any, *, least: int = 3, most: int = 3) -> dict[str, int]:
    """Count the questions with an identical answer that counts as an answer and hits no gold id.

    Parameters
    ----------
    labelled : DataFrame
        What `label_traces` returns.
    least : int
        How many questions an answer must be given to.
    most : int
        How many answers are returned, the most frequent first.

    Returns
    -------
    dict of str to int
        Answer → different questions. Refusals, whole or in part, and answers with a right citation are left out.

    Examples
    --------
    >>> from ragnb.traces import label_traces
    >>> said = pd.DataFrame({"question": ["a", "b", "c"], "answer": ["无法回答"] * 3})
    >>> repeated_answers(label_traces(said)), repeated_answers(label_traces(said, refusal=["无法回答"]))
    ({'无法回答': 3}, {})
    """
    yes = {name: nw.col(name).fill_null(False) for name in ("answered", "hit", "partial")}
    misses = (
        opened(labelled)
        .filter(yes["answered"] & ~yes["hit"] & ~yes["partial"])
        .select("question", "answer")
    )
    said = misses.unique().with_columns(nw.col("answer").cast(nw.String).str.strip_chars())
    often = said.group_by("answer").agg(nw.len().alias("n")).filter(nw.col("n") >= least)
    found: Any = collected(often.sort("n", "answer", descending=[True, False]).head(most))
    return dict(found.iter_rows())


def mark_unanswerable(frame: Frame, *, metrics: Iterable[Metric]) -> Frame:
    """Return the frame with the scores of unanswerable questions not applicable where a metric cannot grade a
    refusal.

    Else inventing an answer could raise a mean that a correct refusal has no part in.

    Parameters
    ----------
    frame : DataFrame or polars.LazyFrame
        Without a column ``answerable`` it is returned as it is.
    metrics : iterable of Metric
        Those with ``grades_refusals`` keep their scores, and so do the rates, which know what was answerable.

    Examples
    --------
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.2], "answerable": [True, False]})
    >>> mark_unanswerable(scores, metrics=[Metric("faithfulness")])["faithfulness"].tolist()
    [0.9, nan]
    """
    rows = nw.from_native(cast(Any, frame))
    names = rows.collect_schema().names()
    blind = [
        metric.name
        for metric in metrics
        if metric.name in names
        and not metric.grades_refusals
        and (metric.role == "quality" or metric.family == "wording")
    ]
    if not blind or "answerable" not in names:
        return frame
    if isinstance(frame, pd.DataFrame) and not count_unanswerable(frame):
        return frame
    made: list[nw.Expr] = []
    for name in blind:
        status = f"{name}__status"
        word = nw.col(status).cast(nw.String) if status in names else nw.lit(None, nw.String)
        made.append(nw.when(~_unanswerable()).then(nw.col(name)).alias(name))
        made.append(
            nw.when(_unanswerable()).then(nw.lit("not_applicable")).otherwise(word).alias(status)
        )
    return cast(Frame, rows.with_columns(*made).to_native())


def count_unanswerable(frame: Any) -> int:
    """Return how many rows ask what gold calls unanswerable.

    Examples
    --------
    >>> count_unanswerable(pd.DataFrame({"answerable": [True, False, None]}))
    1
    """
    rows = opened(frame)
    if "answerable" not in rows.collect_schema().names():
        return 0
    if isinstance(rows, nw.DataFrame):
        odd = rows.select(_answerable_word()).filter(
            ~nw.col("answerable").is_in([*UNANSWERABLE, *ANSWERABLE])
        )
        if len(odd := odd.drop_nulls()):
            raise RagnbError(
                f"column 'answerable': found {odd.item(0, 0)!r}, expected true or false"
            )
    return _tally(frame, {"n": _unanswerable()})["n"]


def _answerable_word() -> nw.Expr:
    return nw.col("answerable").cast(nw.String).str.strip_chars().str.to_lowercase()


def _unanswerable() -> nw.Expr:
    return _answerable_word().is_in(UNANSWERABLE).fill_null(False)


def sample_traces(
    traces: Frame, *, share: float = 0.01, key: str = "sample_id", salt: str = ""
) -> Frame:
    """Return the rows whose key hashes below a share: the same rows in every order, file and chunk.

    A larger share keeps the rows of a smaller one. All rows of one key stay together or leave together.

    Parameters
    ----------
    traces : DataFrame
        Of pandas, Polars, PyArrow, DuckDB or PySpark.
    share : float in [0, 1]
        The part of the keys to keep, in expectation.
    key : str
        What is hashed, as text. A row without one is hashed by its ``question``; a row without either is left
        out, except under a share of 1.
    salt : str
        Another salt draws another sample.

    Returns
    -------
    DataFrame
        The kept rows, in their order, of the caller's engine.

    Raises
    ------
    RagnbError
        For a share outside [0, 1], and where neither the key nor ``question`` is a column.

    Notes
    -----
    A key is kept when the first 8 bytes of BLAKE2b of its UTF-8 text, personalised by the salt's own hash, lie
    below share · 2⁶⁴ as a big-endian number.

    Examples
    --------
    >>> traces = pd.DataFrame({"sample_id": [str(i) for i in range(1000)], "answer": "x"})
    >>> len(sample_traces(traces, share=0.1))
    105
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise RagnbError(f"share={share!r} must lie between 0 and 1, such as 0.01 for one percent")
    have = column_names(traces)
    if key not in have and "question" not in have:
        raise RagnbError(f"key={key!r} is not a column; {did_you_mean(key, have)}")
    person = hashlib.blake2b(salt.encode("utf-8"), digest_size=16).digest()
    threshold = round(share * (1 << 64))

    def is_kept(name: str | None) -> bool:
        if name is None:
            return share == 1
        digest = hashlib.blake2b(name.encode("utf-8"), digest_size=8, person=person).digest()
        return int.from_bytes(digest, "big") < threshold

    def sampled(frame: Any) -> Any:
        ids, questions = columns.ids(frame, key), columns.texts(frame, "question")
        kept = np.array(
            [is_kept(name) for name in ids.zip_with(ids.is_not_null(), questions)], dtype=bool
        )
        return frame[kept] if isinstance(frame, pd.DataFrame) else frame.filter(kept)

    if on_spark(traces):
        return cast(Frame, mapped(traces, sampled))
    return cast(Frame, columns.as_brought(sampled(columns.workable(traces)), traces, {}))
