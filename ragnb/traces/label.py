"""Traces → a scores frame: the label of each row, and the 0/1 columns whose means are the rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

from ragnb.errors import RagnbError, did_you_mean, unknown
from ragnb.polars import pl
from ragnb.readers.frames import as_called, canonical
from ragnb.readers.raw import absent, collector_paused
from ragnb.schema import METRICS
from ragnb.traces import answers, columns
from ragnb.traces.answers import Split
from ragnb.traces.gold import expectations, join_counts, match, warn_of_repeats
from ragnb.traces.rates import LABELS, mark_unanswerable

Join = Literal["auto", "question"]
Frame = TypeVar("Frame")
FACTS = ("answered", "refused", "partial", "hit", "contained", "compliant")
MISSES = ("not retrieved", "retrieved, not cited")
STATUSES = ("missing", "ok", "not_applicable", "failed")


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
        One row per answer: ``answer``, and ``question`` or ``sample_id``; optional ``citations`` (list of ids),
        ``chunks`` (list of ids or of ``{"id": ...}``, best first), ``system``, ``repeat``, ``ok`` (where it is
        false, an empty answer is none). Of pandas, Polars, PyArrow or DuckDB; the rows are worked on in memory. Of
        PySpark they come back as Polars.
    gold : DataFrame, optional
        One row per question: ``answerable``, and ``question`` or ``sample_id``; optional ``gold_ids``,
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
        ``citations_predicted``, ``citations_flagged`` (a list occurs in the text that cannot be taken whole),
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
    frame: Any = columns.workable(named)
    gold = gold if gold is None else columns.workable(canonical(gold, reader="read_gold"))
    if "answer" not in frame.columns:
        raise RagnbError(f"traces have no column 'answer'; {did_you_mean('answer', list(frame.columns))}")
    options = {"split": (split, answers.SEPARATORS), "containment": (containment, ("auto", "latin"))}
    for name, (value, choices) in (options | {"join": (join, ("auto", "question"))}).items():
        if value not in choices:
            raise unknown(name, value, list(choices))
    with collector_paused(), ThreadPoolExecutor() as pool:
        met = None if gold is None else match(frame, gold, join)
        if met is None:
            expected = expectations(frame)
        else:
            warn_of_repeats(met)
            frame = columns.with_gold(frame, gold, met.rows)
            expected = expectations(gold).select(pl.all().gather(met.rows))
        counts = pool.submit(join_counts, frame, met)
        rows = _answers(frame).hstack(expected)
        contained = pool.submit(answers.holds, rows["lower"], rows["claim"], containment == "auto")
        ranks = pool.submit(_ranks, rows)
        rows = rows.with_columns(_refusals(_words(refusal), _words(patterns), _words(partial)))
        rows = _with_citations(rows, split)
        made = _outcomes(rows.with_columns(contained=contained.result(), rank=ranks.result()))
        report = counts.result() | {
            "n_without_answer": rows["answer"].null_count(),
            "n_empty": int(((rows["answer"] == "") & rows["answered"]).sum()),
            "n_citations_flagged": int(rows["citations_flagged"].sum()),
            "n_partial": int(rows["partial"].sum()),
        }
        labelled = mark_unanswerable(columns.assemble(frame, made), metrics=METRICS.values())
        out: Frame = as_called(columns.as_brought(labelled, traces, {"join": report}), named, traces)
        return out


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
    frame: Any = columns.workable(canonical(traces, reader="read_traces"))
    gold = gold if gold is None else columns.workable(canonical(gold, reader="read_gold"))
    return join_counts(frame, None if gold is None else match(frame, gold, join))


def _words(words: str | Sequence[str]) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def _answers(frame: Any) -> pl.DataFrame:
    """Return ``answer`` (null where a call failed with an empty one), in ``lower`` case, ``failed``, ids."""
    answer, lower = answers.trimmed_and_lowered(columns.texts(frame, "answer"))
    ok = columns.column(frame, "ok")
    if ok.dtype not in (pl.Boolean, pl.Null):
        ok = pl.Series([None if absent(cell) else bool(cell) for cell in ok.to_list()], dtype=pl.Boolean)
    failed = ~ok.cast(pl.Boolean).fill_null(True)
    answer, lower = (texts.set((answer == "") & failed, None) for texts in (answer, lower))
    lists = {name: columns.id_lists(frame, name) for name in ("citations", "chunks")}
    return pl.DataFrame({"answer": answer, "lower": lower, "failed": failed, **lists})


def _refusals(tokens: Sequence[str], patterns: Sequence[str], partial: Sequence[str]) -> list[pl.Expr]:
    """Return who answered, who refused, and who refused in part (and so answered); null without an answer.

    A whole answer that is a token is a refusal; else a partial pattern goes before a pattern of refusals.
    """
    words = answers.trimmed_and_lowered(columns.as_series(tokens))[1]
    whole = pl.col("lower").is_in(words.implode())
    part = answers.matches(partial, "partial") & ~whole
    refused = whole | (answers.matches(patterns, "patterns") & ~part)
    facts = {"answered": ~refused, "refused": refused, "partial": part}
    return [pl.when(pl.col("answer").is_not_null()).then(fact).alias(name) for name, fact in facts.items()]


def _with_citations(rows: pl.DataFrame, split: Split) -> pl.DataFrame:
    """Return the rows with their cited ids, of the list field, else of the text, and which texts are not taken."""
    field = rows["citations"]
    lists, flagged = answers.cited(rows["answer"].set(field.is_not_null(), None), split)
    return rows.with_columns(
        citations_predicted=columns.distinct(field).zip_with(field.is_not_null(), lists), citations_flagged=flagged
    )


def _ranks(rows: pl.DataFrame) -> pl.Series:
    """Return the rank of the first chunk that is a gold id of its row, null where none is."""
    rows = rows.select("chunks", "gold_ids").with_row_index("row")
    ranks = pl.int_ranges(1, pl.col("chunks").list.len() + 1)
    chunks = rows.select("row", id="chunks", rank=ranks).explode("id", "rank")
    wanted = rows.select("row", id="gold_ids").explode("id")
    first = chunks.join(wanted, on=["row", "id"], how="semi").group_by("row").agg(pl.col("rank").min())
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
    answered, hit, contained = (pl.col(fact).cast(pl.Float64) for fact in ("answered", "hit", "contained"))
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
    places = {"not retrieved": pl.col("retrieval_hit") == 0, "retrieved, not cited": pl.col("retrieval_hit") == 1}
    failed = pl.col("failed") & refused.is_null()
    statuses = [
        _first_word(
            {"ok": pl.col(name).is_not_null(), "not_applicable": outside[name], "failed": failed, "missing": True},
            STATUSES,
        ).alias(f"{name}__status")
        for name in rates
    ]
    miss = _first_word({word: missed & place for word, place in places.items()}, MISSES)
    found = ("label", miss.alias("miss"), "citations_predicted", "citations_flagged")
    return rows.select(*FACTS, *found, *rates, *statuses)


def _first_word(words: Mapping[str, Any], choices: Sequence[str]) -> pl.Expr:
    """Return the first word whose condition is met, null where none is."""
    kind = pl.Enum(choices)
    return pl.coalesce(pl.when(met).then(pl.lit(word, dtype=kind)) for word, met in words.items())
