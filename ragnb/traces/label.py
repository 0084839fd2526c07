"""Traces → a scores frame: what each row did, its label, and the 0/1 columns whose means are the rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

import numpy as np

from ragnb.errors import RagnbError, did_you_mean, unknown
from ragnb.readers.frames import as_called, canonical
from ragnb.readers.raw import collector_paused
from ragnb.schema import METRICS
from ragnb.traces import answers, columns, facts, outcomes
from ragnb.traces.answers import Split
from ragnb.traces.columns import Flags, Lists
from ragnb.traces.engines import as_brought, assemble, with_gold, workable
from ragnb.traces.join import Met, match, report_of, warn_of_repeats
from ragnb.traces.unanswerable import mark_unanswerable
from ragnb.traces.wanted import Floats, Gold

Join = Literal["auto", "question"]
Frame = TypeVar("Frame")


def label_traces(
    traces: Frame,
    *,
    gold: Any = None,
    refusal: str | Sequence[str] = ("not in context",),
    patterns: str | Sequence[str] = (),
    partial: str | Sequence[str] = (),
    split: Split = "space",
    containment: Literal["auto", "latin"] = "auto",
    join: Join = "auto",
) -> Frame:
    """Label every trace, and give it the columns whose means are the refusal, citation and retrieval rates.

    Parameters
    ----------
    traces : DataFrame
        One row an answer: ``answer``, and ``question`` or ``sample_id``; optional ``citations`` (list of ids),
        ``chunks`` (list of ids or of ``{"id": ...}``, best first), ``system``, ``repeat``, ``ok`` (where it is
        false, an empty answer is none). Of pandas, Polars, PyArrow or DuckDB; the rows are worked on in memory. Of
        PySpark they come back as Polars.
    gold : DataFrame, optional
        One row a question: ``answerable``, and ``question`` or ``sample_id``; optional ``gold_ids``,
        ``gold_claim``. Further columns travel onto the rows. Without it, such columns of `traces` are used.
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
    containment : {"auto", "latin"}
        Whether a claim that has no Latin phrase, or is not Latin, also counts when it occurs whole.
    join : {"auto", "question"}
        By ``sample_id`` where both have it, else by exact question text; or by text alone.

    Returns
    -------
    DataFrame
        Of the caller's engine: the traces' rows and columns, then gold's, then ``answered, refused, partial,
        hit, contained, compliant`` (nullable booleans), ``label``, ``miss`` (why nothing was hit),
        ``citations_predicted``, ``citations_flagged`` (a list stands in the text that cannot be taken whole),
        and the rates of `RATES`: 0/1 (``retrieval_recall`` and ``reciprocal_rank`` in [0, 1]), nan where the
        rate does not apply, and ``<rate>__status`` (``ok, not_applicable, failed, missing``) that says why.
        Scores that the traces bring along do not apply to unanswerable questions (see `mark_unanswerable`).
        A pandas frame's ``attrs["join"]`` is the `join_report`.

    Raises
    ------
    RagnbError
        For a column that is missing, an option or a pattern that is unknown, and a cell of the wrong kind.

    Examples
    --------
    >>> import pandas as pd
    >>> traces = pd.DataFrame({"question": ["x", "y"], "answer": ["Yes. citations: [a]", "Not in context"]})
    >>> gold = pd.DataFrame({"question": ["x", "y"], "answerable": [True, False], "gold_ids": [["a"], []]})
    >>> label_traces(traces, gold=gold)[["label", "citation_hit_rate", "under_refusal"]]
            label  citation_hit_rate  under_refusal
    0          OK                1.0            NaN
    1  REFUSAL_OK                NaN            0.0
    """
    named = canonical(traces, reader="read_traces")
    frame: Any = workable(named)
    gold = gold if gold is None else workable(canonical(gold, reader="read_gold"))
    _check_options(frame, split, containment, join)
    with collector_paused(), ThreadPoolExecutor() as pool:
        trimmed = pool.submit(answers.trimmed, columns.texts(frame, "answer"))
        met = _meet(frame, gold, join)
        if met is not None:
            warn_of_repeats(met)
            frame = with_gold(frame, gold, met.rows)
        wanted = Gold.of(frame, np.arange(len(frame))) if met is None else Gold.of(gold, met.rows)
        (texts, odd), failed = trimmed.result(), _failed(frame)
        texts = facts.without_failed(texts, failed)
        contained = pool.submit(facts.contained, wanted, texts, odd, containment == "auto")
        retrieval = pool.submit(lambda: facts.retrieval(wanted, Lists.of(frame, "chunks")))
        report = pool.submit(report_of, frame, met)
        said = facts.spoken(texts, _words(refusal), _words(patterns), _words(partial))
        predicted, flagged = facts.citations(frame, texts, split)
        done = said | {
            "hit": facts.hits(wanted, predicted),
            "contained": contained.result(),
            "compliant": facts.compliant(predicted, said["refused"]),
        }
        made = _columns(wanted, done, retrieval.result(), (predicted, flagged), failed)
        told = report.result() | {
            "n_without_answer": texts.null_count(),
            "n_empty": int(((texts == "").fill_null(False).to_numpy() & (done["answered"] == 1)).sum()),
            "n_citations_flagged": int(flagged.sum()),
            "n_partial": int((done["partial"] == 1).sum()),
        }
        labelled = mark_unanswerable(assemble(frame, made, told), metrics=METRICS.values())
        out: Frame = as_called(as_brought(labelled, traces), named, traces)
        return out


def _columns(
    wanted: Gold, done: Mapping[str, Floats], found: dict[str, Floats], cited: tuple[Lists, Flags], failed: Flags
) -> dict[str, Any]:
    """The columns of a labelled frame, as `assemble` takes them."""
    import polars as pl

    answerable = wanted.answerable_rows()
    label = outcomes.labels(done, answerable)
    # Where gold names no ids, answers have no label, and the share among refusals alone would mean nothing.
    outcome = outcomes.correct(label) if wanted.ids is not None else np.full(len(label), np.nan)
    rates = {"correct_outcome": outcome} | outcomes.rates(done, answerable) | found
    rates["compliance"] = np.where(wanted.row >= 0, rates["compliance"], np.nan)
    new: dict[str, Any] = {name: pl.Series(fact, nan_to_null=True).cast(pl.Boolean) for name, fact in done.items()}
    new |= {"label": (label, outcomes.LABELS)}
    new |= {"miss": (outcomes.misses(label, rates["retrieval_hit"]), outcomes.MISSES)}
    new |= {"citations_predicted": cited[0], "citations_flagged": cited[1]} | rates
    statuses = outcomes.statuses(rates, done, answerable, failed)
    return new | {name: (codes, outcomes.STATUSES) for name, codes in statuses.items()}


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
    frame: Any = workable(canonical(traces, reader="read_traces"))
    gold = gold if gold is None else workable(canonical(gold, reader="read_gold"))
    return report_of(frame, _meet(frame, gold, join))


def _check_options(traces: Any, split: str, containment: str, join: str) -> None:
    if "answer" not in traces.columns:
        raise RagnbError(f"traces have no column 'answer'; {did_you_mean('answer', list(traces.columns))}")
    options = {"split": (split, answers.PARTING), "containment": (containment, ("auto", "latin"))}
    for name, (value, choices) in (options | {"join": (join, ("auto", "question"))}).items():
        if value not in choices:
            raise unknown(name, value, list(choices))


def _words(words: str | Sequence[str]) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def _meet(traces: Any, gold: Any, join: str) -> Met | None:
    if gold is None:
        return None
    if "answerable" not in gold.columns:
        raise RagnbError(f"gold has no column 'answerable'; {did_you_mean('answerable', list(gold.columns))}")
    if not any(key in traces.columns and key in gold.columns for key in ("sample_id", "question")):
        raise RagnbError("traces and gold share neither 'sample_id' nor 'question'; rename one in both")
    return match(traces, gold, join)


def _failed(frame: Any) -> Flags:
    if str(getattr(frame, "schema", {}).get("ok")) == "Boolean":
        return np.asarray(frame["ok"].not_().fill_null(False).to_numpy(), dtype=bool)
    ok = columns.column(frame, "ok")
    return np.fromiter((not columns.absent(v) and not v for v in ok), dtype=bool, count=len(ok))
