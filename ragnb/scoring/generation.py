"""Question sets from documents, some that no passage answers, and their review by a person."""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Annotated, Any

import pandas as pd
from pydantic import BaseModel, StringConstraints

from ragnb import texts
from ragnb.errors import RagnbError, did_you_mean, need_columns, place
from ragnb.files import short_hash
from ragnb.readers.formats import load
from ragnb.readers.raw import Lossy, absent
from ragnb.schema import Profile, records
from ragnb.scoring.asking import PARAMETERS, Asker, with_data
from ragnb.scoring.documents import passages_of
from ragnb.scoring.lexical import support_lexical
from ragnb.store import (
    Cell,
    Client,
    Estimate,
    Outcome,
    StoreLike,
    count_tokens,
    estimate,
    opened,
    run_cells,
    total_account,
)

KINDS = ("single", "multi", "unanswerable")
_ROUNDS = 3  # of calls, the later ones in place of questions that the checks dropped
# Passages, the nearest in wording, in which an answer is looked for that must not be there.
_NEAR = 8
_REPLY_TOKENS = 300  # of a question with its answer; for estimates only


class _Reply(BaseModel):
    """The form of a reply: a question, and where it can be answered the answer and its evidence."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    answer: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    evidence: list[str] = []


class _Verdict(BaseModel):
    """Whether passages answer a question."""

    answered: bool


class Plan:
    """Which questions are asked for, of which passages; the same documents and settings give the same plan.

    Parameters
    ----------
    documents, **options
        As for `generate_cases`.
    """

    def __init__(
        self,
        documents: Any,
        client: Client | Profile,
        *,
        n: int = 20,
        unanswerable: float = 0.2,
        multi_passage: float = 0.2,
        personas: Sequence[str] = (),
        lang: str = "en",
        seed: int = 0,
        **reading: Any,
    ) -> None:
        passages = passages_of(documents, **reading)
        if n < 1 or unanswerable < 0 or multi_passage < 0 or unanswerable + multi_passage > 1:
            raise RagnbError(
                f"n={n}, unanswerable={unanswerable}, multi_passage={multi_passage}; give at least one question, "
                "and shares that are 0 or more and together at most 1"
            )
        self.client = Client(client) if isinstance(client, Profile) else client
        self.lang = lang
        self.seed = seed
        self.say = texts.load(lang)
        self.personas = [*personas]
        self.asker = Asker(self.client, PARAMETERS, lang=lang)
        # Ordered by a hash of each passage, so that the rest keeps its order when a document is added.
        self.passages = passages.assign(
            order=[short_hash(f"{seed} {unit}") for unit in passages["unit"]]
        )
        n_unanswerable = round(n * unanswerable)
        # A single passage has no neighbour for a question about two.
        n_multi = round(n * multi_passage) if len(passages) > 1 else 0
        kinds = ["unanswerable"] * n_unanswerable + ["multi"] * n_multi
        # Cut to n, as the two shares may be rounded up to more than n questions together.
        self.kinds = [*kinds, *["single"] * n][:n]
        random.Random(seed).shuffle(self.kinds)
        self.numbers = count(1)
        self.sources = self._sources()

    def _sources(self) -> Iterator[list[dict[Any, Any]]]:
        """Yield a passage and its neighbour for a question of two, documents in turn."""
        rows = self.passages.sort_values("order", kind="stable").to_dict("records")
        by_document: dict[str, list[dict[Any, Any]]] = {}
        for row in rows:
            by_document.setdefault(row["doc_name"], []).append(row)
        for lap in count():
            for own in by_document.values():
                first = own[lap % len(own)]
                # A document of one passage takes its neighbour from another.
                others = own if len(own) > 1 else rows
                second = others[(others.index(first) + 1) % len(others)]
                nth_question = lap // len(own) + 1  # about this passage
                yield [first | {"nth": nth_question}, second]

    def cells(self, kinds: Sequence[str]) -> list[Cell]:
        """Return a cell for each question of these kinds, of the next passages."""
        return [self._cell(kind, number) for kind, number in zip(kinds, self.numbers, strict=False)]

    def _cell(self, kind: str, number: int) -> Cell:
        sources = next(self.sources)
        if kind != "multi":
            sources = sources[:1]
        persona = ""
        if self.personas:
            persona = self.personas[(number - 1) % len(self.personas)]
        inputs = {
            "kind": kind,
            "units": [row["unit"] for row in sources],
            "passages": {row["unit"]: row["text"] for row in sources},
            "persona": persona,
            "nth": sources[0]["nth"],
        }
        calls = 2 if kind == "unanswerable" else 1  # the second checks that nothing answers it
        tokens = calls * (_REPLY_TOKENS + count_tokens(self.prompt(inputs)))
        return Cell(
            f"g{number:03d}",
            "generate",
            inputs,
            self.client.profile.model,
            {**PARAMETERS, "seed": self.seed},
            self.say(f"generate.{kind}"),
            calls=calls,
            tokens=tokens,
            cluster=str(sources[0]["doc_name"]),
        )

    def prompt(self, inputs: Mapping[str, Any]) -> str:
        """Return the request for one question."""
        say = self.say
        persona = inputs["persona"]
        nth = inputs["nth"]
        lines = [say("generate.task"), say(f"generate.{inputs['kind']}")]
        if persona:
            lines.append(say("generate.persona", persona=persona))
        if nth > 1:
            lines.append(say("generate.nth", nth=nth))
        if inputs["kind"] == "unanswerable":
            lines.append(say("generate.form_unanswerable"))
        else:
            lines.append(say("generate.form"))
        return with_data("\n".join(lines), {"passages": inputs["passages"]})

    async def work(self, cell: Cell) -> Outcome:
        """Ask for one question; what cannot be used is dropped, with the reason."""
        reply = await self.asker.ask_once(self.prompt(cell.inputs), _Reply.model_validate_json)
        if cell.inputs["kind"] == "unanswerable":
            if await self._is_answered(reply.question, cell.inputs["passages"]):
                return Outcome.of({"dropped": "answered"})
            return Outcome.of({"question": reply.question})
        fault = _without_evidence(reply.evidence, [*cell.inputs["passages"].values()])
        if fault:
            return Outcome.of({"dropped": fault})
        return Outcome.of(reply.model_dump())

    async def _is_answered(self, question: str, passages: Mapping[str, str]) -> bool:
        """Ask whether the passages that a question was made of, or those nearest to it, answer it after all."""
        near = {row["unit"]: row["text"] for row in self._nearest(question)}
        data = {"question": question, "passages": {**near, **passages}}
        prompt = with_data(self.say("generate.check"), data)
        return await self.asker.ask_once(
            prompt, lambda text: _Verdict.model_validate_json(text).answered
        )

    def _nearest(self, question: str) -> list[dict[Any, Any]]:
        """Return the passages nearest to a question in wording."""
        rows = self.passages.to_dict("records")
        return sorted(rows, key=lambda row: -support_lexical(question, [row["text"]]))[:_NEAR]


def _without_evidence(quotes: Sequence[str], passages: Sequence[str]) -> str:
    """Say why the evidence does not hold: a quote that is in no passage, or a passage without a quote."""
    quotes = [_plain(quote) for quote in quotes if quote.strip()]
    plain = [_plain(text) for text in passages]
    if not quotes or not all(any(quote in text for text in plain) for quote in quotes):
        return "not_verbatim"
    if all(any(quote in text for quote in quotes) for text in plain):
        return ""
    return "one_passage"


def _plain(text: str) -> str:
    """Return a text as quotes are compared: the line breaks of a file are blanks to a model."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def generation_cost(
    documents: Any, *, client: Client | Profile, store: StoreLike = None, **options: Any
) -> Estimate:
    """Estimate the calls and tokens that `generate_cases` would need, without those that replace dropped
    questions.

    Examples
    --------
    >>> documents = pd.DataFrame({"text": ["The pump weighs 4 kg.", "It runs for 730 days."]})
    >>> profile = Profile(base_url="http://127.0.0.1:8080/v1", model="small")
    >>> generation_cost(documents, client=profile, n=10).calls
    12
    """
    plan = Plan(documents, client, **options)
    return estimate(plan.cells(plan.kinds), store)


def generate_cases(
    documents: Any,
    *,
    client: Client | Profile,
    n: int = 20,
    unanswerable: float = 0.2,
    multi_passage: float = 0.2,
    personas: Sequence[str] = (),
    lang: str = "en",
    seed: int = 0,
    store: StoreLike = None,
    encoding: str = "utf-8",
    columns: Mapping[str, str] | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Make a question set from documents, with reference answers whose evidence stands word for word in a passage.

    Parameters
    ----------
    documents, encoding, columns
        A folder of texts or a table of passages: see `ragnb.scoring.passages_of`.
    client : Client or Profile
        The model that writes the questions.
    n : int
        Questions wanted.
    unanswerable, multi_passage : float in [0, 1]
        The share of questions that the documents do not answer, and of those that need two passages.
    personas : sequence of str
        Who asks, in turn, such as ``"a new employee"``.
    lang : {"en", "zh"}
        Of the questions.
    seed : int
        Of the choice of passages and of the order of the kinds.
    store : Store or path, optional
        Where each question is kept: the same call again asks only for what is missing.
    progress : bool, optional
        A progress bar; by default in a terminal and in a notebook.

    Returns
    -------
    DataFrame
        Cases: ``sample_id, question, ground_truth_answer`` (None where there is none), ``ground_truth_contexts,
        doc_name, source_units, persona, kind`` (``single``, ``multi``, ``unanswerable``), ``answerable`` and
        ``generation_params`` (kind, evidence, model, language, seed). ``attrs["dropped"]`` counts what was left
        out: ``not_verbatim`` (a quote that is in no passage), ``one_passage`` (evidence from one passage only),
        ``answered`` (the documents answer it after all), ``duplicate``, ``failed``. ``attrs["account"]`` counts
        the cells and the requests sent: see `ragnb.store.Run`.

    Raises
    ------
    RagnbError
        For documents without text, and numbers that make no sense.
    Stop
        Where the endpoint refuses every call. What was done before is kept.

    Notes
    -----
    Documents take turns, so that each has its share of the questions. What is dropped is replaced by questions
    about the next passages, in three rounds at most. An unanswerable question is checked by the same model
    against the eight passages closest in wording. Read the questions before you use them:
    `ragnb.widgets.ReviewSheet`.

    Examples
    --------
    >>> documents = pd.DataFrame({"text": ["The pump weighs 4 kg."]})
    >>> profile = Profile(base_url="http://127.0.0.1:8080/v1", model="small")
    >>> generate_cases(documents, client=profile, n=0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ragnb.errors.RagnbError: n=0, unanswerable=0.2, multi_passage=0.2; give at least one question, ...
    """
    plan = Plan(
        documents,
        client,
        n=n,
        unanswerable=unanswerable,
        multi_passage=multi_passage,
        personas=personas,
        lang=lang,
        seed=seed,
        encoding=encoding,
        columns=columns,
    )
    rows = dict[str, dict[str, Any]]()
    dropped = Counter[str]()
    wanted = plan.kinds
    accounts = list[Mapping[str, int]]()
    how: dict[str, Any] = {"clients": [plan.client], "progress": progress, "name": "generate"}
    with opened(store) as kept:
        for _ in range(_ROUNDS):
            cells = plan.cells(wanted)
            run = run_cells(cells, plan.work, kept, **how)
            accounts.append(run.account)
            outcomes = zip(cells, run.frame["status"], run.frame["value"], strict=True)
            for cell, status, value in outcomes:
                why = value.get("dropped") if status == "ok" else status
                if why:
                    dropped[why] += 1
                    continue
                comparable = _comparable(value["question"])
                if comparable in rows:
                    dropped["duplicate"] += 1
                else:
                    rows[comparable] = _row(plan, cell, value)
            have = Counter(row["kind"] for row in rows.values())
            wanted = [kind for kind in KINDS for _ in range(plan.kinds.count(kind) - have[kind])]
            if not wanted or run.stopped:
                break
    cases = pd.DataFrame([*rows.values()], columns=_CASE_COLUMNS)
    cases.attrs["dropped"] = dict(dropped)
    cases.attrs["account"] = total_account(accounts)
    return cases


def _comparable(question: str) -> str:
    """Return a question without case, blanks and punctuation: what differs in nothing else is asked twice."""
    folded = unicodedata.normalize("NFKC", question).casefold()
    return re.sub(r"[\W_]+", "", folded)


_CASE_COLUMNS = [
    "sample_id",
    "question",
    "ground_truth_answer",
    "ground_truth_contexts",
    "doc_name",
    "source_units",
    "persona",
    "kind",
    "answerable",
    "generation_params",
]


def _row(plan: Plan, cell: Cell, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the case of a question that is kept."""
    kind = cell.inputs["kind"]
    is_answerable = kind != "unanswerable"
    answer = None
    contexts = None
    if is_answerable:
        answer = value["answer"].strip() or None
        contexts = [*cell.inputs["passages"].values()]
    return {
        "sample_id": cell.sample_id,
        "question": value["question"].strip(),
        "ground_truth_answer": answer,
        "ground_truth_contexts": contexts,
        "doc_name": cell.cluster,
        "source_units": cell.inputs["units"],
        "persona": cell.inputs["persona"] or None,
        "kind": kind,
        "answerable": is_answerable,
        "generation_params": {
            "kind": kind,
            "evidence": value.get("evidence", []),
            "model": cell.model,
            "lang": plan.lang,
            "seed": plan.seed,
        },
    }


def endpoint(
    client: Client, *, lang: str = "en", refusal: str = "not in context"
) -> Callable[..., Any]:
    """Return a function of a question and its passages that asks a chat endpoint for the answer.

    Without passages (None) the endpoint is the whole system and gets the question alone; with passages it is told
    to answer from them, and to say `refusal` where they do not hold the answer.
    """
    say = texts.load(lang)
    parameters = {"temperature": 0.0}

    async def generate(question: str, passages: list[str] | None) -> str:
        prompt = question
        if passages is not None:
            by_number = {str(n): text for n, text in enumerate(passages, 1)}
            data = {"question": question, "passages": by_number}
            prompt = with_data(say("generate.answer", refusal=refusal), data)
        reply = await client.chat([{"role": "user", "content": prompt}], **parameters)
        return reply.strip()

    return generate


DECISIONS = ("keep", "edit", "drop")
WORDING = ["question", "ground_truth_answer"]  # which an edit may change
_FROM_PERSON = ("sample_id", "decision", *WORDING, "comment")  # read from a sheet that comes back
_SHEET = (*_FROM_PERSON, "doc_name", "kind", "evidence")


def review_sheet(cases: pd.DataFrame) -> pd.DataFrame:
    """Return the sheet on which a person decides about each question of a set; no decision is taken yet.

    Parameters
    ----------
    cases : DataFrame
        With ``sample_id, question, ground_truth_answer`` and, where there are, ``doc_name`` and
        ``generation_params`` with ``kind`` and ``evidence`` (verbatim quotes).

    Returns
    -------
    DataFrame
        ``sample_id, decision, question, ground_truth_answer, comment, doc_name, kind, evidence``, all texts, in
        the order of the cases. ``decision`` is to become ``keep``, ``edit`` (the row then holds the new wording of
        question and answer) or ``drop``; blank is not reviewed.

    Raises
    ------
    RagnbError
        For a column that is not there, and two cases with one id.

    Examples
    --------
    >>> made = {"kind": "single", "evidence": ["Returns are free."]}
    >>> cases = pd.DataFrame({"sample_id": ["a"], "question": ["Who pays?"], "ground_truth_answer": ["The shop."],
    ...                       "generation_params": [made]})
    >>> review_sheet(cases).loc[0, ["decision", "kind", "evidence"]].tolist()
    ['', 'single', 'Returns are free.']
    """
    need_columns(cases.columns, ["sample_id", *WORDING])
    cells: Any = cases.get("generation_params", [{}] * len(cases))
    params = [cell if isinstance(cell, Mapping) else {} for cell in cells]
    blank = pd.Series("", cases.index)
    sheet = pd.DataFrame({name: cases.get(name, blank) for name in _SHEET}, dtype=object)
    sheet["kind"] = [param.get("kind", "") for param in params]
    sheet["evidence"] = ["\n\n".join(param.get("evidence") or []) for param in params]
    sheet = sheet.reset_index(drop=True).map(_text)
    is_repeated = sheet["sample_id"].duplicated()
    if is_repeated.any():
        twice = sheet.loc[is_repeated, "sample_id"].iloc[0]
        raise RagnbError(f"two cases have the id {twice!r}; each needs one of its own")
    return sheet


def _text(cell: Any) -> str:
    """Return a cell of a sheet as a text, "" for what is not there."""
    if absent(cell):
        return ""
    return str(cell).strip()


def with_decisions(
    cases: pd.DataFrame, decisions: Any, *, encoding: str | None = None
) -> pd.DataFrame:
    """Return the sheet of some cases with the decisions, the new wordings and the comments of another sheet.

    Parameters
    ----------
    cases : DataFrame
        As for `review_sheet`.
    decisions : path or DataFrame
        A sheet, in any order of rows. Whatever is not in it has not been reviewed.
    encoding : str, optional
        Of a file; by default UTF-8.

    Raises
    ------
    RagnbError
        For a decision that is none, an id that no case has or that appears twice, an edit without a question,
        and a new wording whose decision is not ``edit``: each with its row.

    Examples
    --------
    >>> cases = pd.DataFrame({"sample_id": ["a", "b"], "question": ["q", "r"], "ground_truth_answer": ["s", "t"]})
    >>> decisions = review_sheet(cases).tail(1).assign(decision=" Drop ")
    >>> with_decisions(cases, decisions)["decision"].tolist()
    ['', 'drop']
    """
    cells = {row["sample_id"]: row for row in records(review_sheet(cases))}
    raw, _ = load(decisions, Lossy(), format=None, strict=True, encoding=encoding)
    need_columns(raw.columns, ["sample_id", "decision"])
    names = [name for name in _FROM_PERSON if name in raw.columns]
    given = pd.DataFrame({name: list(map(_text, raw.columns[name])) for name in names})
    file = place(raw.file)
    seen = set[str]()
    # As a person counts rows: in a text file from 2 on, below the names of the columns.
    first_number = 1 if raw.typed else 2
    for number, row in enumerate(records(given), first_number):
        key = row["sample_id"]
        decision = row["decision"].casefold()
        if key not in cells:
            raise RagnbError(
                f"{file}row {number}: no case has the id {key!r}; is the sheet of another set?"
            )
        if key in seen:
            raise RagnbError(
                f"{file}row {number}: the id {key!r} appears twice; keep one row for each question"
            )
        if decision not in ("", *DECISIONS):
            hint = did_you_mean(decision, DECISIONS)
            raise RagnbError(
                f"{file}row {number}: the decision {row['decision']!r} is not known; {hint}"
            )
        wording = {name: row[name] for name in WORDING if name in row}
        # Compared by words: blanks and line breaks do not make a change.
        changed = [
            name for name, text in wording.items() if text.split() != cells[key][name].split()
        ]
        if changed and decision in ("", "keep"):
            raise RagnbError(
                f"{file}row {number}: {changed[0]} was changed, but the decision is {decision!r}; write edit to "
                "use the new wording, or restore the old one"
            )
        if decision == "edit" and wording.get("question") == "":
            raise RagnbError(f"{file}row {number}: an edit needs a question; write one, or drop it")
        seen.add(key)
        cells[key] |= {"decision": decision, "comment": row.get("comment", "")}
        if decision == "edit":
            cells[key] |= wording
    return pd.DataFrame(list(cells.values()), columns=list(_SHEET), dtype=object)


def reviewed(cases: pd.DataFrame, decisions: Any, *, encoding: str | None = None) -> pd.DataFrame:
    """Return the cases without those that were dropped, and with the edits.

    Parameters
    ----------
    cases : DataFrame
        As for `review_sheet`.
    decisions : path or DataFrame
        A sheet of `review_sheet` with decisions, as a person has left it.
    encoding : str, optional
        Of a file; by default UTF-8. Spreadsheets in Chinese may save ``"gb18030"``.

    Returns
    -------
    DataFrame
        Rows in the order and with the index and columns of `cases`. ``generation_params`` of a reviewed case says
        ``"reviewed": "keep"`` or ``"edit"`` besides; one that is not reviewed stays as it is.

    Raises
    ------
    RagnbError
        As `with_decisions`.

    Examples
    --------
    >>> cases = pd.DataFrame({"sample_id": ["a", "b"], "question": ["q", "r"], "ground_truth_answer": ["s", "t"]})
    >>> decisions = review_sheet(cases).assign(decision=["drop", "edit"], question=["q", "Why?"])
    >>> reviewed(cases, decisions).iloc[0].tolist()
    ['b', 'Why?', 't', {'reviewed': 'edit'}]
    """
    sheet = with_decisions(cases, decisions, encoding=encoding).set_index(cases.index)
    cells = cases.get("generation_params", pd.Series(None, cases.index, dtype=object))
    params = []
    for cell, decision in zip(cells, sheet["decision"], strict=True):
        if not decision:
            params.append(cell)
        elif isinstance(cell, Mapping):
            params.append({**cell, "reviewed": decision})
        else:
            params.append({"reviewed": decision})
    result = cases.assign(generation_params=pd.Series(params, cases.index, dtype=object))
    edited = sheet["decision"] == "edit"
    for name in WORDING:
        result[name] = result[name].mask(edited, sheet[name].replace("", None))
    return result[sheet["decision"] != "drop"]
