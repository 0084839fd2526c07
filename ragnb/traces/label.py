"""Traces labelled by gold: answered or refused, retrieved, cited, and what the outcome is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, cast

import pandas as pd

from ragnb.errors import RagnbError, did_you_mean, need_known
from ragnb.polars import pl
from ragnb.readers.executors import mapped, on_spark, reduced
from ragnb.readers.failures import failure_columns, outcomes
from ragnb.readers.frames import as_called, brought, canonical
from ragnb.readers.raw import collector_paused
from ragnb.schema import METRICS
from ragnb.traces import answers, columns
from ragnb.traces import citations as citing
from ragnb.traces.answerable import mark_unanswerable
from ragnb.traces.citations import Citations, Split
from ragnb.traces.matching import (
    Frame,
    Join,
    Match,
    answer_counts,
    gold_frame,
    join_counts,
    join_on_spark,
    match,
    warn_of_repeats,
)
from ragnb.traces.outcomes import LABELS
from ragnb.traces.soundness import Kinds, expectations, kinds_in, names_ids
from ragnb.weights import (
    column_names,
)

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
    labelled, report = labelled_and_joined(
        traces,
        gold=gold,
        refusal=refusal,
        patterns=patterns,
        partial=partial,
        split=split,
        citations=citations,
        containment=containment,
        join=join,
    )
    if isinstance(labelled, pd.DataFrame):
        labelled.attrs["join"] = report
    return labelled


def labelled_and_joined(
    traces: Frame,
    *,
    gold: Any,
    refusal: str | Sequence[str],
    patterns: str | Sequence[str],
    partial: str | Sequence[str],
    split: Split,
    citations: Citations,
    containment: Literal["auto", "latin"],
    join: Join,
) -> tuple[Frame, dict[str, Any] | None]:
    """Label traces as `label_traces` does; return the join report, too, None of rows that Spark holds."""
    traces = brought(traces, "read_traces")
    named = canonical(traces, reader="read_traces")
    gold = gold_frame(gold)
    have = column_names(named)
    if "answer" not in have:
        raise RagnbError(f"traces have no column 'answer'; {did_you_mean('answer', have)}")
    choices: dict[str, tuple[str, Iterable[str]]] = {
        "split": (split, citing.SEPARATORS),
        "citations": (citations, citing.CHOICES),
        "containment": (containment, ("auto", "latin")),
        "join": (join, ("auto", "question")),
    }
    for name, (value, known) in choices.items():
        need_known(name, value, list(known))
    how = _How(
        refusals=_words(refusal),
        patterns=_words(patterns),
        partial=_words(partial),
        split=split,
        citations=citations,
        whole_claims=containment == "auto",
    )
    if on_spark(named):
        labelled: Any = _label_on_spark(named, gold, join, how)
        report = None
    else:
        frame = columns.with_chunks(columns.workable(named))
        met = None if gold is None else match(frame, gold, join)
        if met is not None:
            warn_of_repeats(met)
        rows, report = _labelled(frame, gold, met, how)
        labelled = columns.as_brought(rows, traces)
    return cast(Frame, as_called(labelled, named, traces)), report


class _How(NamedTuple):
    """How answers are read: the options of `label_traces`, checked."""

    refusals: list[str]
    patterns: list[str]
    partial: list[str]
    split: Split
    citations: Citations
    whole_claims: bool  # see `answers.claim_texts`


def _label_on_spark(traces: Any, gold: Any, join: Join, how: _How) -> Any:
    """Return PySpark's traces labelled batch by batch, once the query runs.

    What all rows decide together (how gold is joined, whether it names ids, which form the citations have) is
    found before, so that no batch decides it for itself.
    """
    by = join_on_spark(traces, gold, join)
    named = _names_ids_on_spark(traces) if gold is None else None

    def match_part(part: pl.DataFrame) -> Match | None:
        if gold is None:
            return None
        return match(part, gold, by)

    def seen(part: pl.DataFrame) -> dict[str | None, citing.Seen]:
        rows = _read_rows(part, gold, match_part(part), how, named)[1]
        return citing.read(
            rows, split=how.split, citations=how.citations, known=_gold_ids(gold)
        ).seen

    forms = None
    if how.citations == "auto":
        forms = citing.chosen(reduced(traces, seen, citing.merged), how.citations)

    def label(part: pl.DataFrame) -> Any:
        return _labelled(part, gold, match_part(part), how, named=named, forms=forms)[0]

    return mapped(traces, label)


def _names_ids_on_spark(traces: Any) -> bool:
    """Return whether traces that hold their own gold name ids, see `names_ids`."""
    have = column_names(traces)
    # Without either column any other will do: `kinds_in` treats a column that is not there as missing.
    read = [name for name in ("answerable", "gold_ids") if name in have] or have[:1]
    kinds = reduced(
        traces.select(*read),
        kinds_in,
        lambda of_parts: Kinds(*map(any, zip(*of_parts, strict=True))),
    )
    return names_ids(kinds)


def _labelled(
    frame: Any,
    gold: Any,
    met: Match | None,
    how: _How,
    *,
    named: bool | None = None,
    forms: Mapping[str | None, str] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Return the labelled rows of pandas or Polars, and the join report with what became of the answers.

    `forms` says how the answers of each system cite, where that was found on more rows than these.
    """
    # Polars releases Python's lock while it works, so that submitted work runs while citations are read.
    with collector_paused(), ThreadPoolExecutor() as pool:
        frame, rows = _read_rows(frame, gold, met, how, named)
        counts = pool.submit(join_counts, frame, met)
        contained = pool.submit(answers.holds, rows["lower"], rows["claim"], how.whole_claims)
        ranks = pool.submit(_ranks, rows)

        citations_read = citing.read(
            rows, split=how.split, citations=how.citations, known=_gold_ids(gold)
        )
        if forms is None:
            forms = citing.chosen(citations_read.seen, how.citations)
        cited = citing.taken(citations_read, rows["system"], forms)

        rows = rows.drop("citations").hstack(cited)
        new = _outcomes(rows.with_columns(contained=contained.result(), rank=ranks.result()))
        # Whether an answer failed is kept for later steps such as `read_log`, which look for `ok` alone.
        if failure_columns(frame.columns) and "ok" not in frame.columns:
            new = new.with_columns(rows["ok"])
        labelled = mark_unanswerable(columns.assemble(frame, new), metrics=METRICS.values())

        report = counts.result() | answer_counts(new.with_columns(rows["answer"]))
        report["citations"] = citing.citation_forms(new.with_columns(rows["system"]))
        return labelled, report


def _read_rows(
    frame: Any, gold: Any, met: Match | None, how: _How, named: bool | None
) -> tuple[Any, pl.DataFrame]:
    """Return the traces with gold's columns, and what the labels are made of."""
    if met is None:
        expected = expectations(frame, named)
    else:
        frame = columns.with_gold(frame, gold, met.rows)
        expected = expectations(gold).select(pl.all().gather(met.rows))
    rows = _answers(frame).hstack(expected).with_columns(system=columns.texts(frame, "system"))
    return frame, rows.with_columns(_refusals(how.refusals, how.patterns, how.partial))


def _gold_ids(gold: Any) -> pl.Series | None:
    """Return all ids that gold names, as those that an answer may cite."""
    if gold is None:
        return None
    return columns.id_lists(gold, "gold_ids").explode()


def _words(words: str | Sequence[str]) -> list[str]:
    if isinstance(words, str):
        return [words]
    return list(words)


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
    >>> import pandas as pd
    >>> came(pd.DataFrame({"answer": ["Yes.", ""], "error": [None, "timeout"]})).to_list()
    [True, False]
    """
    names = failure_columns([str(name) for name in frame.columns])
    if [*names] == ["ok"]:
        ok = columns.column(frame, "ok")
        if ok.dtype in (pl.Boolean, pl.Null):
            return ok.cast(pl.Boolean)
    outcome = None
    if names:
        cells = {name: columns.cells(frame, name) for name in names}
        outcome = outcomes(cells, columns.cells(frame, "answer"))
    if outcome is None:
        return pl.Series("ok", [None] * len(frame), dtype=pl.Boolean)
    return pl.Series("ok", outcome[0], dtype=pl.Boolean)


def _refusals(
    tokens: Sequence[str], patterns: Sequence[str], partial: Sequence[str]
) -> list[pl.Expr]:
    """Return who answered, who refused, and who refused in part (and so answered); null without an answer.

    A whole answer that is a token is a refusal; else a partial pattern goes before a pattern of refusals.
    """
    lowered_tokens = answers.trimmed_and_lowered(columns.as_series(tokens))[1]
    is_token = pl.col("lower").is_in(lowered_tokens.implode())
    is_partial = answers.matches(partial, "partial") & ~is_token
    is_refused = is_token | (answers.matches(patterns, "patterns") & ~is_partial)
    facts = {"answered": ~is_refused, "refused": is_refused, "partial": is_partial}
    return [
        pl.when(pl.col("answer").is_not_null()).then(fact).alias(name)
        for name, fact in facts.items()
    ]


def _ranks(rows: pl.DataFrame) -> pl.Series:
    """Return the rank of the first chunk that is a gold id of its row, null where none is."""
    rows = rows.select("chunks", "gold_ids").with_row_index("row")
    ranks = pl.int_ranges(1, pl.col("chunks").list.len() + 1)
    chunks = rows.select("row", id="chunks", rank=ranks).explode("id", "rank")
    gold_ids = rows.select("row", id="gold_ids").explode("id")
    hits = chunks.join(gold_ids, on=["row", "id"], how="semi")
    first = hits.group_by("row").agg(pl.col("rank").min())
    return rows.select("row").join(first, on="row", how="left", maintain_order="left")["rank"]


def _outcomes(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the new columns: facts, label, why nothing was hit, citations, rates, why a rate has no number."""
    gold_ids = pl.col("gold_ids")
    refused = pl.col("refused")
    cited = pl.col("citations_predicted")
    hit = (cited.list.set_intersection(gold_ids).list.len() > 0).fill_null(False)
    rows = rows.with_columns(
        hit=pl.when(gold_ids.is_not_null()).then(hit),
        compliant=pl.when(refused.is_not_null()).then(cited.is_not_null() | refused),
    )
    # Each step uses columns of the one before: the label the facts, the rates the label, the miss the rates.
    rows = rows.with_columns(label=_label())
    rates = _rates()
    rows = rows.with_columns(rate.cast(pl.Float64).alias(name) for name, rate in rates.items())
    is_missed = pl.col("label") == "ANS_NO_HIT"
    misses = {
        "not retrieved": is_missed & (pl.col("retrieval_hit") == 0),
        "retrieved, not cited": is_missed & (pl.col("retrieval_hit") == 1),
    }
    return rows.select(
        *FACTS,
        "label",
        _first_word(misses, MISSES).alias("miss"),
        "citations_predicted",
        "citations_flagged",
        "citations_form",
        *rates,
        *_statuses(list(rates)),
    )


def _label() -> pl.Expr:
    """Return the label of an answer, null where a fact that decides it is not known."""
    answerable = pl.col("answerable") == 1
    unanswerable = pl.col("answerable") == 0
    answered = pl.col("answered").cast(pl.Float64)
    hit = pl.col("hit").cast(pl.Float64)
    words = {
        "OK": answerable & (answered == 1) & (hit == 1),
        "REFUSAL_OK": unanswerable & (answered == 0),
        "OVER_REFUSAL": answerable & (answered == 0),
        "HALLUCINATION": unanswerable & (answered == 1),
        "ANS_NO_HIT": answerable & (answered == 1) & (hit == 0),
    }
    return _first_word(words, LABELS)


def _rates() -> dict[str, pl.Expr]:
    """Return what each rate counts of an answer: 1, 0 or a share, null where the rate is not about it."""
    answerable = pl.col("answerable")
    gold_ids = pl.col("gold_ids")
    chunks = pl.col("chunks")
    label = pl.col("label")
    # As numbers, a product is null where a factor is.
    answered = pl.col("answered").cast(pl.Float64)
    refused = pl.col("refused").cast(pl.Float64)
    hit = pl.col("hit").cast(pl.Float64)
    contained = pl.col("contained").cast(pl.Float64)
    of_answerable = pl.when(answerable == 1).then(1.0)
    # Chunks of which none has an id say nothing about retrieval; an empty list says that nothing was retrieved.
    some_id = chunks.list.eval(pl.element().is_not_null()).list.any()
    is_measured = (chunks.list.len() == 0) | some_id
    retrieval = pl.when(is_measured & (gold_ids.list.len() > 0) & (answerable == 1))
    shared = chunks.list.set_intersection(gold_ids).list.len()
    # Where gold names no ids, answers have no label, and the share among refusals alone would mean nothing.
    has_outcome = label.is_not_null() & gold_ids.is_not_null()
    return {
        "correct_outcome": pl.when(has_outcome).then(label.is_in(["OK", "REFUSAL_OK"])),
        "answer_precision": pl.when(answered == 1).then(answerable * hit),
        "over_refusal": of_answerable * refused,
        "under_refusal": pl.when(answerable == 0).then(answered),
        "citation_hit_rate": of_answerable * answered * hit,
        "claim_containment": of_answerable * answered * contained,
        "compliance": pl.when(pl.col("matched")).then(pl.col("compliant")),
        "retrieval_hit": retrieval.then(pl.col("rank").is_not_null()),
        "retrieval_recall": retrieval.then(shared / gold_ids.list.len()),
        "reciprocal_rank": retrieval.then((1 / pl.col("rank")).fill_null(0)),
    }


def _statuses(rates: Sequence[str]) -> list[pl.Expr]:
    """Return why a rate has no number for an answer."""
    answerable = pl.col("answerable")
    refused = pl.col("refused")
    # Most rates are about answerable questions.
    is_outside = dict.fromkeys(rates, answerable == 0)
    is_outside["answer_precision"] = refused
    is_outside["under_refusal"] = answerable == 1
    is_outside["correct_outcome"] = pl.lit(False)
    is_outside["compliance"] = pl.lit(False)
    # An answer that failed is one lost answer, not a failed cell of each rate; and a rate that needs gold does not
    # apply where there is none.
    is_lacking = refused.is_null() & ~pl.col("failed") & answerable.is_not_null()
    statuses = []
    for name in rates:
        words = {
            "ok": pl.col(name).is_not_null(),
            "not_applicable": is_outside[name].fill_null(False) | ~is_lacking.fill_null(False),
            "missing": True,
        }
        statuses.append(_first_word(words, STATUSES).alias(f"{name}__status"))
    return statuses


def _first_word(words: Mapping[str, Any], choices: Sequence[str]) -> pl.Expr:
    """Return the first word whose condition is met, null where none is."""
    kind = pl.Enum(choices)
    return pl.coalesce(
        pl.when(condition).then(pl.lit(word, dtype=kind)) for word, condition in words.items()
    )
