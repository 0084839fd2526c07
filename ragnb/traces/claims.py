"""Answers sentence by sentence: what each cites, and how much of it is found in what it cites."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pandas as pd

from ragnb.errors import RagnbError, did_you_mean, need_known
from ragnb.readers.frames import brought, canonical
from ragnb.readers.raw import absent
from ragnb.schema import Metric
from ragnb.traces import citations as citing
from ragnb.traces import columns
from ragnb.traces.citations import Citations, Split
from ragnb.traces.label import label_traces
from ragnb.traces.matching import Join
from ragnb.traces.rates import rates_by_system
from ragnb.weights import column_names

if TYPE_CHECKING:
    from ragnb.store import Client

VERDICTS = ("supported", "partly", "not found", "undecided", "cites nothing known", "uncited")
"""What becomes of a claim, from the best to the worst."""
ENOUGH = 0.6
LITTLE = 0.3
"""Shares of the wording from which a claim counts as supported, and below which nothing of it is found."""

# A sentence ends at full-width marks, at Latin ones before white space (not in 3.5 or a.pdf), with the quotes and
# brackets that close behind either, and at the end of a line.
_ENDS = re.compile(r"[。！？；]+[”’」』）)]*|[.!?]+[\"'”’)]*(?=\s|$)|[\r\n]+")
# After these a point ends no sentence, nor after a single letter.
_SHORT = re.compile(
    r"(?i)^\s*\(?\d{1,2}\.$|(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|nos|dr|mr|mrs|ms|prof|inc|ltd|fig|art|sec|para|pp?|vol|ed|"
    r"bzw|z\.b|ca|[a-z])\.$"
)
# What opens a line of a list, a heading or a quotation in Markdown.
_MARK = re.compile(r"^\s*(?:[-*•+]|\(?\d{1,2}[.)、]|#{1,6}|>)\s+")
# A citation in any inline form, or the label of a list of them. Brackets with more in them are text of the answer.
_CITATION = re.compile(
    r"\[\^?[^\[\]\n]{1,120}\]|【[^【】\n]{1,120}】|<(?:cite|ref|sup|citation|source)\b[^<>]*>[^<>]*</[a-z]+>|"
    r"(?i:citations?:\s*)"
)
# A list of the whole answer is no part of any sentence.
_LIST = re.compile(r"(?i)\bcitations?\s*[:：]\s*\[[^\]\n]{0,2000}\]")
_WORD = re.compile(r"\w")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


class Claims(NamedTuple):
    """The claims of answers, and their rates.

    Attributes
    ----------
    rows : DataFrame
        ``sample_id, question, system, doc_name`` of the answer where it has them, then ``claim`` (the sentence
        without its citations), ``place`` (its number in the answer), ``cited_by`` (whether the ``sentence``
        cites, or the ``answer`` lists for all of them), ``cited`` (ids), ``cited_known`` (those among the
        passages), ``cited_gold``, ``wording`` (share found in the passages that it cites, of an uncited claim in
        all of the row), ``figures, names`` (shares found there, nan without any), ``figures_missing,
        names_missing``, and ``verdict``, one of `VERDICTS`. With a judge also ``decided_by`` (``wording`` or
        ``judge``), ``support`` (its score, 1 to 3, which `ragnb.calibrate` takes beside labels of people) and
        ``support__reason``.
    rates : DataFrame
        ``[system,] metric, value, low, high, n, n_clusters, cluster_unit``: ``cited_share`` of the claims
        of answers that cite sentence by sentence, ``claim_support`` (the share of the cited claims that is
        supported), and ``figure_support`` (the share of the figures that is found), clustered by document, else by
        question.
    """

    rows: pd.DataFrame
    rates: pd.DataFrame


def label_claims(
    traces: Any,
    *,
    gold: Any = None,
    passages: Mapping[str, str] | pd.DataFrame | None = None,
    refusal: str | Sequence[str] = ("not in context",),
    patterns: str | Sequence[str] = (),
    split: Split = "space",
    citations: Citations = "auto",
    join: Join = "auto",
    client: Client | None = None,
    store: Any = None,
    lang: str = "en",
    progress: bool | None = None,
    doc: str = "doc_name",
    level: float = 0.95,
) -> Claims:
    """Take answers apart into claims, and look for each in the passages that it cites.

    Without `client` no model is asked.

    Parameters
    ----------
    traces : DataFrame or path
        One row per answer: ``answer`` and ``chunks`` with ``id`` and ``text``, or ``retrieved_contexts`` (texts,
        which ``[1]`` cites by their place); optional ``citations``. What cites a passage without a text is
        undecided.
    gold, refusal, patterns, split, citations, join
        As `label_traces`. A refusal has no claims.
    passages : mapping of id to text, or DataFrame, optional
        The texts of passages of which the traces hold ids alone; of a frame its columns ``id`` and ``text``.
    client : ragnb.store.Client, optional
        A judge for the claims that words cannot decide: those that are found in part, in another script, or in
        other words without a figure that is missing. Its verdict takes the place of theirs.
    store : Store or path, optional
        Where its judgements are saved, see `ragnb.judge`: the same call again asks only what is missing.
    lang : {"en", "zh"}
        Of the judge's prompt.
    progress : bool, optional
        A bar while it judges.
    doc : str
        The document column.
    level : float
        Of the intervals of the rates.

    Returns
    -------
    Claims

    Raises
    ------
    RagnbError
        As `label_traces`; and for traces without ``chunks``.

    Notes
    -----
    A claim is a sentence, a line of a list or a row of a table. It is *supported* if all its figures, all its
    names and at least 60 % of its wording are found in what it cites; *not found* if none of its figures is, or
    less than 30 % of its wording; *partly* between; *undecided* where it is written in another script than what
    it cites, or negated where the sentence nearest to it is not (or the reverse), in English and Chinese. A list
    of citations at the end of an answer, or in a field, is that of each of its sentences. Words do not tell
    whether a sentence is true.

    Examples
    --------
    >>> chunks = [{"id": "a", "text": "Returns are accepted within 14 days."}]
    >>> answers = ["Returns are accepted within 14 days [a].", "Returns are accepted within 90 days [a]."]
    >>> traces = pd.DataFrame({"question": ["x", "y"], "answer": answers, "chunks": [chunks, chunks]})
    >>> label_claims(traces).rows["verdict"].tolist()
    ['supported', 'not found']
    """
    traces = brought(traces, "read_traces")
    named = columns.with_chunks(columns.workable(canonical(traces, reader="read_traces")))
    have = column_names(named)
    if "chunks" not in have and "retrieved_contexts" in have:
        named = _numbered(named)
        have = [*have, "chunks"]
    for name in ("answer", "chunks"):
        if name not in have:
            raise RagnbError(f"traces have no column {name!r}; {did_you_mean(name, have)}")
    need_known("citations", citations, list(citing.CHOICES))
    labelled = label_traces(
        named,
        gold=gold,
        citations=citations,
        refusal=refusal,
        patterns=patterns,
        split=split,
        join=join,
    )
    if isinstance(labelled, pd.DataFrame):
        frame = labelled
    else:
        frame = labelled.to_pandas()
    answers = list(_answers(frame, _corpus(passages)))
    rows, texts = _rows(answers, frame, doc, split)
    if client is not None:
        from ragnb.traces.judged_claims import judged_claims

        rows = judged_claims(rows, texts, client=client, store=store, lang=lang, progress=progress)
    return Claims(rows, _rates(rows, doc, level))


def _numbered(frame: Any) -> Any:
    """Return traces whose passages are texts with chunks that are named by their places, as ``[1]`` cites them."""
    chunks: list[list[dict[str, Any]] | None] = []
    for cell in columns.cells(frame, "retrieved_contexts"):
        if absent(cell):
            chunks.append(None)
            continue
        # An empty passage keeps its number, so that [3] is the third of the list.
        chunks.append([{"id": str(n), "text": text} for n, text in enumerate(cell, 1) if text])
    if isinstance(frame, pd.DataFrame):
        rows = frame
    else:
        rows = frame.to_pandas()
    return rows.assign(chunks=pd.Series(chunks, index=rows.index, dtype=object))


class _Answer(NamedTuple):
    """An answer with claims.

    Attributes
    ----------
    row : int
        Its place in the frame.
    sentences : list of str
        With their citations.
    passages : dict of id to text
        Those of its row; blank of a passage without a text.
    gold : set of str
        The ids that gold names.
    form : str or None
        Where its citations were read, as in ``citations_form``.
    of_answer : tuple of str
        The ids that it cites as a whole.
    """

    row: int
    sentences: list[str]
    passages: Mapping[str, str]
    gold: frozenset[str]
    form: str | None
    of_answer: tuple[str, ...]


def _corpus(passages: Mapping[str, str] | pd.DataFrame | None) -> Mapping[str, str]:
    """Return the texts of passages by their ids."""
    if isinstance(passages, pd.DataFrame):
        for name in ("id", "text"):
            if name not in passages:
                raise RagnbError(
                    f"passages have no column {name!r}; {did_you_mean(name, [*map(str, passages)])}"
                )
        return dict(zip(passages["id"].astype(str), passages["text"], strict=True))
    return passages or {}


def _answers(frame: pd.DataFrame, corpus: Mapping[str, str]) -> Iterator[_Answer]:
    """Yield the answers that are none of a refusal or a failure."""
    refused = frame["refused"].fillna(True).astype(bool)  # missing of an answer that failed
    for row in range(len(frame)):
        text = frame["answer"].iloc[row]
        if refused.iloc[row] or not isinstance(text, str):
            continue
        gold: Any = frame["gold_ids"].iloc[row] if "gold_ids" in frame else None
        form = frame["citations_form"].iloc[row]
        cited = frame["citations_predicted"].iloc[row]
        yield _Answer(
            row=row,
            sentences=sentences_of(_LIST.sub(" ", text)),
            passages=_passages(frame["chunks"].iloc[row], corpus),
            gold=frozenset() if absent(gold) else frozenset(map(str, gold)),
            form=None if absent(form) else str(form),
            of_answer=() if absent(cited) else tuple(cited),
        )


def _passages(cell: Any, corpus: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the passages of a row by their ids, blank without one; of pieces of one id all."""
    passages: dict[str, str] = {}
    if absent(cell):
        return passages
    for item in cell:
        if not isinstance(item, Mapping):
            item = {"id": item}
        if absent(item.get("id")):
            continue
        name = str(item["id"])
        text = item.get("text") or item.get("page_content") or item.get("content")
        text = text or corpus.get(name)
        passages.setdefault(name, "")
        if isinstance(text, str) and text.strip():
            passages[name] = f"{passages[name]}\n{text}" if passages[name] else text
    return passages


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, each line of a list and row of a table its own, with their citations.

    Examples
    --------
    >>> sentences_of("It costs 3.5 euro, e.g. for Dr. Li. [a] Ask.\\n- 年假为10天。[b]病假另计。")
    ['It costs 3.5 euro, e.g. for Dr. Li. [a]', 'Ask.', '年假为10天。[b]', '病假另计。']
    """
    sentences: list[str] = []
    for piece in _pieces(text):
        # A citation behind the point belongs to the sentence before it.
        while sentences:
            # Matched at the beginning only: `search` would take quadratic time over long runs of blanks.
            lead = re.match(rf"\s*(?:{_CITATION.pattern})", piece)
            # Only a label at the end of a line, such as "Citations:", reaches over a break: that is taken below,
            # where the break is stripped.
            if lead is None or "\n" in lead[0]:
                break
            if lead[0][:1].isspace():
                sentences[-1] = f"{sentences[-1]} {lead[0].strip()}"
            else:
                sentences[-1] += lead[0]
            piece = piece[lead.end() :]
        stripped = _MARK.sub("", piece.strip()).strip()
        if _WORD.search(_CITATION.sub("", stripped)):
            sentences.append(stripped)
        elif sentences and _CITATION.search(stripped):
            sentences[-1] = f"{sentences[-1]} {stripped}"
    return sentences


def _pieces(text: str) -> list[str]:
    """Return a text cut behind each end of a sentence; together the pieces are the text."""
    pieces = []
    begin = 0
    for end in _ENDS.finditer(text):
        piece = text[begin : end.end()]
        is_abbreviation = _SHORT.search(piece.rstrip()) is not None
        if is_abbreviation and "\n" not in end[0] and end.end() < len(text):
            continue
        pieces.append(piece)
        begin = end.end()
    pieces.append(text[begin:])
    return pieces


@lru_cache(maxsize=1_000)
def _sentences(passage: str) -> tuple[str, ...]:
    """Return the sentences of a passage, which all claims of an answer are compared with."""
    return tuple(sentences_of(passage))


_CLAIM_COLUMNS = (
    "place",
    "claim",
    "cited_by",
    "cited",
    "cited_known",
    "cited_gold",
    "wording",
    "figures",
    "names",
    "figures_missing",
    "names_missing",
    "verdict",
)


def _rows(
    answers: Sequence[_Answer], frame: pd.DataFrame, doc: str, split: Split
) -> tuple[pd.DataFrame, list[list[str]]]:
    """Return a row for each claim, and the texts of the passages that it was looked for in."""
    cited = _cited(answers, frame, split)
    kept = [name for name in ("sample_id", "question", "system", "repeat", doc) if name in frame]
    rows = []
    texts = []
    for answer, per_sentence in zip(answers, cited, strict=True):
        about = {name: frame[name].iloc[answer.row] for name in kept}
        sentences = zip(answer.sentences, per_sentence, strict=True)
        for place, (sentence, ids) in enumerate(sentences, 1):
            # A citation that stood before a punctuation mark leaves a blank there.
            claim = re.sub(r"\s+([.,;:!?])", r"\1", _without_citations(sentence))
            # By identity, see `_cited`: a sentence may cite the same ids itself.
            is_listed = bool(ids) and ids is answer.of_answer
            cited_by = "answer" if is_listed else "sentence"
            looked_in, judged = _judged(claim, ids, answer)
            texts.append(looked_in)
            rows.append({**about, "place": place, "claim": claim, "cited_by": cited_by, **judged})
    return pd.DataFrame(rows, columns=[*kept, *_CLAIM_COLUMNS]), texts


def _without_citations(sentence: str) -> str:
    return re.sub(r"\s{2,}", " ", _CITATION.sub("", sentence)).strip()


def _cited(
    answers: Sequence[_Answer], frame: pd.DataFrame, split: Split
) -> list[list[tuple[str, ...]]]:
    """Return what each sentence of each answer cites: inline, else what the whole answer lists."""
    cited: list[list[tuple[str, ...]]] = [[] for _ in answers]
    # What an answer lists at its end or in a field may be cited beside its sentences, too.
    forms = [answer.form if answer.form in citing.FORMS else "inline" for answer in answers]
    # Without the answer, whose whole text would be copied for each of its sentences.
    needed = [name for name in ("chunks", "gold_ids", "answerable", "system") if name in frame]
    for form in dict.fromkeys(forms):
        places = []  # in `answers`, of the answer of each sentence
        sentences = []
        for place, answer in enumerate(answers):
            if forms[place] == form:
                places += [place] * len(answer.sentences)
                sentences += answer.sentences
        # Each sentence is labelled as if it were an answer, to a question of its own.
        parts = frame[needed].iloc[[answers[place].row for place in places]]
        parts = parts.reset_index(drop=True)
        parts = parts.assign(answer=sentences, question=[str(n) for n in range(len(sentences))])
        labelled = label_traces(parts, split=split, citations=cast(Citations, form))
        for place, ids in zip(places, labelled["citations_predicted"], strict=True):
            cited[place].append(() if absent(ids) else tuple(ids))
    for place, answer in enumerate(answers):
        if forms[place] == "inline" and not any(cited[place]):
            cited[place] = [answer.of_answer] * len(answer.sentences)
    return cited


class _Support(NamedTuple):
    """How much of a claim passages hold, 0 to 1 or nan, and the figures and names that none of them has."""

    wording: float
    figures: float
    names: float
    figures_missing: list[str]
    names_missing: list[str]


def _support_of(claim: str, texts: Sequence[str]) -> _Support:
    """Return how much of a claim is found in texts."""
    # At use: scoring brings the client of a model, which scores and comparisons do without.
    from ragnb.scoring.lexical import name_support, number_support, support_lexical

    wording = support_lexical(claim, texts)
    if not texts:
        return _Support(wording, math.nan, math.nan, [], [])
    figures, figures_missing = number_support(claim, texts)
    names, names_missing = name_support(claim, texts)
    return _Support(wording, figures, names, figures_missing, names_missing)


def _judged(claim: str, ids: tuple[str, ...], answer: _Answer) -> tuple[list[str], dict[str, Any]]:
    """Return what a claim was looked for in, how much of it is found there, and what that makes of it."""
    known = [name for name in ids if name in answer.passages]
    looked_in = known
    if not ids:
        looked_in = [*answer.passages]
    texts = [answer.passages[name] for name in looked_in if answer.passages[name]]
    support = _support_of(claim, texts)
    if known or not ids:
        verdict = _verdict(claim, ids, texts, support)
    else:
        verdict = "cites nothing known"
    return texts, {
        "cited": list(ids),
        "cited_known": known,
        "cited_gold": [name for name in ids if name in answer.gold],
        **support._asdict(),
        "verdict": verdict,
    }


class Standing(NamedTuple):
    """What becomes of a sentence beside passages.

    Attributes
    ----------
    verdict : str
        ``supported``, ``partly``, ``not found`` or ``undecided``.
    missing : list of str
        The figures and names that no passage has.
    """

    verdict: str
    missing: list[str]


def standing_of(sentence: str, passages: Sequence[str]) -> Standing:
    """Return how much of a sentence is found in passages, whatever it cites.

    Examples
    --------
    >>> standing_of("Returns are accepted within 90 days [a].", ["Returns are accepted within 14 days."])
    Standing(verdict='not found', missing=['90'])
    """
    claim = _without_citations(sentence)
    texts = [text for text in passages if text]
    if not texts:
        return Standing("undecided", [])
    support = _support_of(claim, texts)
    # Any id will do: it keeps the claim from counting as uncited.
    verdict = _verdict(claim, ("",), texts, support)
    return Standing(verdict, [*support.figures_missing, *support.names_missing])


def _verdict(
    claim: str,
    ids: tuple[str, ...],
    texts: Sequence[str],
    support: _Support,
) -> str:
    """Return the verdict on a claim whose passages are known."""
    from ragnb.traces.negation import is_reversed

    if not ids:
        return "uncited"
    # Figures are the same in every script, so that they decide even where the wording cannot.
    if support.figures == 0:
        return "not found"
    is_other_script = bool(_CJK.search(claim)) != any(_CJK.search(text) for text in texts)

    if math.isnan(support.wording) or (is_other_script and support.wording < ENOUGH):
        return "undecided"
    if support.wording < LITTLE:
        return "not found"
    if support.wording < ENOUGH or support.figures < 1 or support.names < 1:
        return "partly"
    sentences = [sentence for text in texts for sentence in _sentences(text)]
    if is_reversed(claim, sentences):
        return "undecided"
    return "supported"


_RATES = ("cited_share", "claim_support", "figure_support")


def _rates(rows: pd.DataFrame, doc: str, level: float) -> pd.DataFrame:
    """Return the rates of the claims by system, clustered by document, else by question."""
    is_cited = rows["verdict"] != "uncited"
    # A list of the whole answer does not say which of its sentences cite.
    of_sentence = rows["cited_by"] == "sentence"
    decided = is_cited & (rows["verdict"] != "undecided")
    is_supported = rows["verdict"] == "supported"
    kept = [name for name in ("sample_id", "question", "system", doc) if name in rows]
    scores = rows[kept].assign(
        cited_share=is_cited.astype(float).where(of_sentence),
        claim_support=is_supported.astype(float).where(decided),
        figure_support=rows["figures"].astype(float),
    )
    metrics = [Metric(name, role="rate", family="citation") for name in _RATES]
    shown = ["metric", "value", "low", "high", "n", "n_clusters", "cluster_unit"]
    if scores.empty:
        return pd.DataFrame(columns=shown)
    means = rates_by_system(scores, metrics, doc=doc, level=level)
    if "system" in scores:
        shown = ["system", *shown]
    return means[shown]
