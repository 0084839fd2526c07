"""Judge every answer of a set by a rubric: its cells, the work on one, the frame, its notes, probes and noise."""

from __future__ import annotations

import math
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats, texts
from ragnb.errors import RagnbError, RagnbWarning, listing, need_columns, need_whole, unknown
from ragnb.judging.prompts import cut, evidence_rank, material, numbered, system_prompt
from ragnb.judging.verdict import TEXTS, parse_verdict
from ragnb.markup import element, fragment, number, one_line, with_interval
from ragnb.readers.cells import as_texts
from ragnb.schema import NOTE_COLUMNS, STOPPED_EARLY, EvalCase, Gate, Rubric, note_row
from ragnb.scoring.asking import Asker
from ragnb.store import Cell, Client, Estimate, Outcome, StoreLike, count_tokens, estimate, new_tag, opened
from ragnb.store.loop import run_cells
from ragnb.store.store import systems_of
from ragnb.weights import as_pandas, weigh

REPLY_TOKENS = 400
SEED, FEWEST = 0, 50
"""Of the order in which answers are judged, and how many questions at least are judged before it may end early."""
Flags = npt.NDArray[np.bool_]
Task = tuple[Cell, dict[str, Any]]
"""One answer to be judged: its cell, and what is known of its passages."""
ALARMS = ("not_separated", "constant", "obeyed", "flat")
NOISE_COLUMNS = ("metric", "value", "low", "high", "n", "n_judgements", "least_difference")
_FACTS = ("mode", "peek", "passages", "cut", "evidence", "parse", "repeats", "reply")
Judgements = Sequence[Sequence[Mapping[Any, Any]]]
"""The cells of each answer: its repeats."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a judge is asked; see `judge`.

    Examples
    --------
    >>> Options(top_k=5).tries
    2
    """

    lang: str = "en"
    top_k: int | None = 10
    max_context_tokens: int | None = None
    peek: str | None = None
    temperature: float | None = 0.0
    structured: bool | None = None
    tries: int = 2
    probes: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any], **counts: Any) -> Options:
        """Check options that a caller named, and further counts."""
        names = [one.name for one in fields(cls)]
        if strange := next((name for name in given if name not in names), None):
            raise unknown("option", strange, names)
        options = cls(**given)
        texts.table(options.lang)
        counts |= {name: getattr(options, name) for name in ("top_k", "max_context_tokens", "tries")}
        for name in (name for name, value in counts.items() if value is not None):
            need_whole(name, counts[name])
        return options

    @property
    def sent(self) -> dict[str, Any]:
        """The parameters of each call."""
        return ({} if self.temperature is None else {"temperature": self.temperature}) | dict(self.parameters)

    @property
    def about(self) -> dict[str, Any]:
        """What of it may change a reply: for the key of a cell."""
        return {"structured": self.structured, "tries": self.tries, **self.sent}


class Judged(pd.DataFrame):
    """A scores frame that says what is to be known of its judge before its numbers are read.

    What is made of it (a selection, a merge) is a plain DataFrame.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    @property
    def notes(self) -> pd.DataFrame:
        """What is to be known before the scores are read: ``code, about, text``."""
        return pd.DataFrame(self.attrs["judge"]["notes"], columns=list(NOTE_COLUMNS), dtype=object)

    @property
    def noise(self) -> pd.DataFrame:
        """The judge's own noise, one row a metric, from repeated judgements; no rows without.

        ``value`` is the standard deviation of one judgement of one answer, ``low, high`` its interval, ``n``
        answers, ``n_judgements``, and ``least_difference`` (1.96·√2·value) what two single judgements differ by
        before it is more than noise.
        """
        return pd.DataFrame(self.attrs["judge"]["noise"], columns=list(NOISE_COLUMNS))

    @property
    def probes(self) -> pd.DataFrame:
        """The probes that were judged before: ``pair, kind, value, status, reason``."""
        return pd.DataFrame(self.attrs["judge"]["probes"], columns=["pair", "kind", "value", "status", "reason"])

    def __repr__(self) -> str:
        return "\n".join([*(f"- {one_line(text)}" for text in self.notes["text"]), "", super().__repr__()])

    def _repr_html_(self) -> str:
        items = [element("li", text) for text in self.notes["text"]]
        lang = str(self.attrs["judge"]["lang"])
        table = pd.DataFrame(self).to_html(max_rows=20, max_cols=12)
        return str(fragment(element("ul", *items), lang=lang)) + table


def judge(
    cases: Any, *, client: Client, rubric: Rubric | None = None, store: StoreLike = None, repeats: int = 1,
    name: str = "judge", stop_when: Iterable[Gate] | None = None, doc: str = "doc_name",
    doc_weights: Mapping[str, float] | None = None, progress: bool | None = None, **options: Any,
) -> Judged:  # fmt: skip
    """Have a model score answers by a rubric, from 1 to 10 on accuracy, completeness and clarity.

    Parameters
    ----------
    cases : DataFrame or iterable of EvalCase or mappings
        ``question``, ``answer``, and as far as they are there ``retrieved_contexts``, ``sample_id``, ``system``,
        ``doc_name``, ``ground_truth_answer``, ``ground_truth_contexts``. The judge sees the question, the passages
        and the answer; the reference is only used to say where the evidence stood.
    client : ragnb.store.Client
        The judge's endpoint, with its limits and budgets.
    rubric : Rubric, optional
        By default accuracy .5, completeness .3, clarity .2; passing from accuracy 7 on.
    store : Store or path, optional
        Where judgements are kept: the same call again asks only for what is not there yet. None keeps nothing.
    repeats : int
        Judgements an answer, at least 1; their mean counts, and with 2 or more their noise is told.
    name : str
        Of the run in the store.
    stop_when : iterable of Gate, optional
        Stop once the answers to come cannot change the side of the threshold on which the value of any of these
        gates lies, of the rubric's dimensions or ``weighted_score``. The same call without it judges the rest.
    doc : str
        The column of the document, by which the order is balanced.
    doc_weights : mapping of document to weight, optional
        Of those values, as in `ragnb.weighted_means`.
    progress : bool, optional
        A progress bar; by default in a terminal and in a notebook.
    **options
        ``lang`` ("en", "zh"): of the prompt and the notes. ``top_k`` (10) and ``max_context_tokens`` (None): how
        many passages are shown. ``peek``: a system of the cases whose passages stand in for those that an answer
        of the same sample lacks. ``temperature`` (0; None sends none), ``parameters``: sent with each call.
        ``structured``: ask for a JSON schema (None: where the endpoint takes one). ``tries`` (2): calls for one
        readable reply. ``probes`` (True): judge six known answers first.

    Returns
    -------
    Judged
        The cases with ``accuracy, completeness, clarity`` (or the rubric's dimensions), ``weighted_score,
        is_passing, analysis, reason, suggestion``, ``<dimension>__status`` and ``__reason``, and ``judge__mode``
        (``contexts``, ``peek``, ``alone``), ``judge__peek``, ``judge__passages`` (retrieved), ``judge__cut`` (of
        them left out or shortened), ``judge__evidence`` (rank of the passage that is needed), ``judge__parse``
        (how the reply was read, or in one word why not: see `parse_verdict`), ``judge__repeats`` (that succeeded),
        ``judge__reply`` (raw). Missing fields give ``not_applicable``, a reply that cannot be read ``failed``;
        neither has a score. ``.notes``, ``.noise`` and ``.probes`` say
        what is to be known of the judge, ``.attrs["judge"]`` which run it was, what it took, and whether it
        ``stopped_early``, with the ``calls_saved``: what is left out is ``missing``, its reason ``stopped early``.

    Raises
    ------
    RagnbError
        For cases without questions, columns that scores would overwrite, options that make no sense, and gates
        that judging cannot settle.
    Stop
        Where the endpoint refuses every call.

    Warns
    -----
    RagnbWarning
        For failed cells, a used-up budget, and a judge that is not to be trusted.

    Notes
    -----
    Answers are judged in a random order, always the same, in which every beginning holds each document (``doc``)
    in proportion and all answers to a question come together: what a used-up budget leaves is a fair sample. With
    `stop_when` they are looked at after a fifth of the questions, at least 50, and then after each tenth; the
    rule is `ragnb.stats.side_is_settled`, on weighted means and Kish's numbers of rows.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> judged = judge([{"question": "Who pays?", "answer": None}], client=client, probes=False)
    >>> judged[["accuracy", "accuracy__status", "accuracy__reason"]]
       accuracy accuracy__status accuracy__reason
    0       NaN   not_applicable        no answer
    """
    rubric, chosen = rubric or Rubric(), Options.of(options, repeats=repeats)
    frame, facts, cells, probes = _planned(cases, client, rubric, chosen, repeats)
    work = rubric_work(client, rubric, chosen)
    gates = [] if stop_when is None else gates_to_settle(stop_when, rubric)
    about = {"model": client.profile.model, "options": chosen.about, "repeats": repeats}
    about |= {"rubric": rubric.model_dump(mode="json"), "systems": systems_of(frame)}
    about |= {"order": {"balanced_by": doc, "seed": SEED}}
    how: dict[str, Any] = {"clients": [client], "progress": progress}

    def judgements_of(run: pd.DataFrame) -> Judgements:
        rows = run.to_dict("records")
        return [rows[place : place + repeats] for place in range(0, len(rows), repeats)]

    def settled(asked: Flags, shown: Flags) -> bool:
        so_far = judged_frame(frame, facts, judgements_of(kept.frame(planned)), rubric)
        return are_settled(so_far, asked, shown, gates, rubric, {"doc": doc, "doc_weights": doc_weights})

    with opened(store) as kept:
        probed = run_cells(probes, work, kept, name="probes", **how).frame if probes else pd.DataFrame()
        planned = kept.plan(cells, name=name, about=about)
        rounds = rounds_of(frame, cells, repeats, doc, settled if gates else None)
        run = run_cells(cells, work, kept, name=name, about=about, rounds=rounds, **how)
        attempts = kept.history(run.id).drop_duplicates(["key", "at"])  # those of earlier calls among them
        saved = 0 if run.stopped else run.frame.loc[run.frame["status"] == "pending", "key"].nunique()
        early = {"stopped_early": bool(saved), "calls_saved": saved}
        if saved:
            kept.plan(cells, name=name, about=about | early)
    sums = {name: attempts[name] for name in ("calls", "tokens_in", "tokens_out", "seconds")}
    spent = {name: None if part.isna().any() else part.sum() for name, part in sums.items()}
    judgements = judgements_of(run.frame)
    judged = Judged(judged_frame(frame, facts, judgements, rubric, STOPPED_EARLY if saved else "not judged yet"))
    noise, (probe_rows, notes) = noise_rows(judgements, rubric), probe_notes(probed, rubric, chosen.lang)
    notes += run_notes(judged, rubric, noise, chosen, run.stopped)
    if saved:
        left = judged[f"{rubric.passing.metric}__reason"].eq(STOPPED_EARLY).sum()
        words: dict[str, Any] = {"n": left, "of": len(judged), "gates": listing(gate.name for gate in gates)}
        notes += [_note(chosen.lang, "stopped_early", calls=saved, **words)]
    for row in notes:
        if row["code"] in ALARMS:
            warnings.warn(row["text"], RagnbWarning, stacklevel=2)
    judged.attrs = dict(frame.attrs) | {
        "judge": {"run": run.id, "model": client.profile.model, "lang": chosen.lang, "stopped": run.stopped}
        | {"notes": notes, "noise": noise, "probes": probe_rows, "spent": spent} | early
    }
    return judged


def dry_run(
    cases: Any, client: Client, *, rubric: Rubric | None = None, store: StoreLike = None, repeats: int = 1,
    **options: Any,
) -> Estimate:  # fmt: skip
    """Say how many calls and about how many tokens `judge` would need, probes among them; nothing is sent.

    Calls are counted without retries and second tries, and tokens with about 400 a reply.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> dry_run([{"question": "Who pays?", "answer": "Ann."}], client, repeats=3).calls
    9
    """
    chosen = Options.of(options, repeats=repeats)
    *_, cells, probes = _planned(cases, client, rubric or Rubric(), chosen, repeats)
    with opened(store, new=False) as kept:
        return estimate([*probes, *cells], kept)


def _planned(
    cases: Any, client: Client, rubric: Rubric, options: Options, repeats: int
) -> tuple[pd.DataFrame, list[dict[str, Any]], list[Cell], list[Cell]]:
    """Return the cases, what is known of their passages, their cells with all repeats, and those of the probes."""
    frame, model = frame_of(cases), client.profile.model
    made = [*(d.name for d in rubric.dimensions), "weighted_score", "is_passing", *TEXTS]
    if there := [column for column in made if column in frame.columns]:
        raise RagnbError(f"the cases hold {listing(there)} already; drop or rename what the judge would overwrite")
    plain = replace(options, peek=None, top_k=10, max_context_tokens=None)
    probes = tasks_of(probe_cases(rubric, options.lang), model, rubric, plain) if options.probes else []
    tasks = tasks_of(frame, model, rubric, options)
    cells = [replace(cell, repeat=number) for cell, _ in tasks for number in range(repeats)]
    return frame, [facts for _, facts in tasks], cells, [cell for cell, _ in probes]


def frame_of(cases: Any) -> pd.DataFrame:
    """Return cases as a pandas frame of its own, one row a case, whatever kind they came as.

    Raises
    ------
    RagnbError
        Where there is no question column, or nothing at all.
    """
    if isinstance(cases, Iterable) and not hasattr(cases, "columns"):
        plain = (c.model_dump(exclude={"results"}) if isinstance(c, EvalCase) else dict(c) for c in cases)
        frame = pd.DataFrame(list(plain), dtype=object)
    else:
        frame = as_pandas(cases).reset_index(drop=True)
    need_columns(frame.columns, ["question"], "Read files with rn.read_cases.")
    if "sample_id" not in frame.columns:
        frame.insert(0, "sample_id", [str(number) for number in range(1, len(frame) + 1)])
    return frame


def text_of(value: Any) -> str | None:
    """Return a text that says something, else None."""
    return value if isinstance(value, str) and value.strip() else None


def passages_of(value: Any) -> list[str] | None:
    """Return the passages of a case: None where the system has not run; a lone text is one passage."""
    several = hasattr(value, "__iter__") and not isinstance(value, str | Mapping)
    return as_texts(list(value) if several else value)[0]


def tasks_of(frame: pd.DataFrame, model: str, rubric: Rubric, options: Options) -> list[Task]:
    """Return one task a row, in the order of the frame.

    Raises
    ------
    RagnbError
        For a `peek` that is no system of the frame.
    """
    rows, rival = frame.to_dict("records"), dict[Any, list[str]]()
    if options.peek is not None:
        systems = sorted({str(name) for name in frame.get("system", ())})
        if options.peek not in systems:
            raise unknown("peek", options.peek, systems, "Name a system of the cases.")
        for row in rows:
            passages = passages_of(row.get("retrieved_contexts"))
            if row["system"] == options.peek and passages is not None:
                rival[row["sample_id"]] = passages
    prompts = {mode: system_prompt(rubric, mode, options.lang) for mode in ("contexts", "peek", "alone")}
    return [_task(row, model, rubric, options, rival, prompts) for row in rows]


def _task(
    row: Mapping[Any, Any], model: str, rubric: Rubric, options: Options,
    rival: Mapping[Any, list[str]], prompts: Mapping[str, str],
) -> Task:  # fmt: skip
    question, answer = text_of(row.get("question")), text_of(row.get("answer"))
    passages, mode, facts = passages_of(row.get("retrieved_contexts")), "contexts", dict[str, Any]()
    if passages is None:
        passages = rival.get(row["sample_id"])
        mode = "alone" if passages is None else "peek"
    inputs: dict[str, Any] = {"question": question, "answer": answer}
    if passages is not None:
        shown, left_out = cut(passages, options.top_k, options.max_context_tokens)
        inputs = {"question": question, "contexts": numbered(shown), "answer": answer}
        gold = passages_of(row.get("ground_truth_contexts")) or []
        rank = evidence_rank(passages, gold, text_of(row.get("ground_truth_answer")) or answer)
        facts = {"passages": len(passages), "cut": left_out, "evidence": rank}
    shown_texts = (prompts[mode], material(inputs, options.lang, tag="0" * 16))
    cell = Cell(
        sample_id=plain_id(row["sample_id"]), what=f"rubric/{mode}", inputs=inputs, model=model,
        # What of a rubric is not in the prompt and decides which numbers are taken; weights and threshold are not.
        parameters=options.about | {
            "rubric": [d.name for d in rubric.dimensions], "scale": [rubric.low, rubric.high, rubric.decimals],
        },
        prompt="\n".join([prompts[mode], material({}, options.lang, tag="")]),
        missing=tuple(name for name, text in (("question", question), ("answer", answer)) if text is None),
        tokens=sum(map(count_tokens, shown_texts)) + REPLY_TOKENS,
        cluster=text_of(row.get("doc_name")),
    )  # fmt: skip
    return cell, facts | {"mode": mode, "peek": options.peek if mode == "peek" else None}


def plain_id(value: Any) -> str | int:
    """Return a sample id as JSON holds it."""
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, str | int) and not isinstance(value, bool) else str(value)


def rubric_work(client: Client, rubric: Rubric, options: Options) -> Callable[[Cell], Awaitable[Outcome]]:
    """Return the work on one cell: ask, read, keep the verdict."""
    text, number = {"type": "string"}, {"type": "number" if rubric.decimals else "integer"}
    names = [d.name for d in rubric.dimensions]
    parts = {"tag": text, "analysis": text, **dict.fromkeys(names, number), "reason": text, "suggestion": text}
    schema = {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}
    asker = Asker(
        client, options.sent, schema=None if options.structured is False else schema,
        strictly=bool(options.structured), tries=options.tries, lang=options.lang,
    )  # fmt: skip

    async def work(cell: Cell) -> Outcome:
        tag, passages = new_tag(), [passage["text"] for passage in cell.inputs.get("contexts", ())]
        shown = [cell.inputs["question"], *passages, cell.inputs["answer"]]

        def read(reply: str) -> dict[str, Any]:
            verdict = parse_verdict(reply, rubric, tag=tag, material=shown)
            if verdict.status == "failed":
                raise ValueError(f"{verdict.parse_status}: {verdict.why}")
            told = {name: getattr(verdict, name) for name in TEXTS}
            return {**verdict.scores, **told, "parse_status": verdict.parse_status}

        prompt = system_prompt(rubric, cell.what.removeprefix("rubric/"), options.lang)
        messages = [{"role": "system", "content": prompt}]
        messages += [{"role": "user", "content": material(cell.inputs, options.lang, tag)}]
        return Outcome.of(await asker.ask(messages, read))

    return work


# The order, and when it is enough


def rounds_of(
    frame: pd.DataFrame, cells: Sequence[Cell], repeats: int, doc: str,
    settled: Callable[[Flags, Flags], bool] | None,
) -> Iterator[list[Cell]]:  # fmt: skip
    """Yield the cells of cases in rounds: what needs no call, then questions of all documents in proportion.

    Between rounds `settled` is asked, with the rows that need calls and those whose turn has come, and ends them.
    """
    asked = np.array([not cell.missing for cell in cells[::repeats]], bool)
    codes, samples = pd.factorize(frame["sample_id"][asked].map(str))
    docs = frame.get(doc, frame["sample_id"].isna())[asked].iloc[np.unique(codes, return_index=True)[1]]
    order = stats.balanced_order(pd.factorize(docs.map(str))[0], seed=SEED)
    turns = np.full(len(frame), -1)
    turns[asked] = np.argsort(order)[codes]
    rows, n, start = np.argsort(turns, kind="stable"), len(samples), -1
    for end in [0, *(range(max(FEWEST, -(-n // 5)), n, -(-n // 10)) if settled else ()), n]:
        if settled and 0 < start < end and settled(asked, turns < start):
            return
        yield [cells[row * repeats + k] for row in rows if start <= turns[row] < end for k in range(repeats)]
        start = end


def gates_to_settle(gates: Iterable[Gate], rubric: Rubric) -> list[Gate]:
    """Return the gates on what a rubric scores; refuse where there is none, or one that no side decides."""
    names = [*(d.name for d in rubric.dimensions), "weighted_score"]
    chosen = [gate for gate in gates if gate.metric in names]
    if not chosen:
        example = f"[{{name: good, metric: {names[0]}, op: '>=', threshold: {rubric.passing.threshold:g}}}]"
        raise RagnbError(f"no gate is about what the judge scores ({listing(names)}); write gates: {example}")
    for gate in chosen:
        name, at, low, high = gate.name, gate.threshold, rubric.low, rubric.high
        if gate.not_worse_than or gate.undecided != "value":
            whole = "judge the whole run, without stopping it early"
            raise RagnbError(f"gate {name!r} is decided by an interval; {whole}")
        if not low <= at <= high:
            raise RagnbError(f"gate {name!r}: {at:g} lies outside {gate.metric}'s {low:g}..{high:g}")
    return chosen


def are_settled(
    judged: pd.DataFrame, asked: Flags, shown: Flags, gates: Iterable[Gate], rubric: Rubric, how: dict[str, Any]
) -> bool:
    """Say whether the rows to come leave every gate, of every system, on the side where its value is."""
    status, doc = f"{rubric.dimensions[0].name}__status", how["doc"]
    if (judged.loc[asked & ~shown, status] != "missing").any():
        return False  # scored in another order, which makes no fair sample
    rows = weigh(judged, metrics=rubric.metrics, **how)
    rows["__doc"] = pd.factorize(rows[doc].map(str))[0] if doc in rows else 0
    rows["__done"] = rows[status].map({"ok": 1.0, "failed": 0.0})
    rows = rows[asked & (rows["sample_weight"] > 0)]
    if "answerable" in rows and not rubric.metrics[0].grades_refusals:
        rows = rows[rows["answerable"].ne(False)]
    checks = [(gate.metric, gate.threshold, rubric.high - rubric.low) for gate in gates]
    if (rows["__done"] == 0).any():  # the gate on scored cells
        checks += [("__done", 0.9, 1.0)]
    systems = rows.groupby(rows.get("system", pd.Series("", index=rows.index)), dropna=False)
    return all(_is_settled(part, *check) for _, part in systems for check in checks)


def _is_settled(rows: pd.DataFrame, name: str, threshold: float, width: float) -> bool:
    there = rows[rows[name].notna()]
    x, weight, weights = (part.to_numpy(float) for part in (there[name], there.sample_weight, rows.sample_weight))
    if not len(x):
        return False
    # Until every document has a score, chance also decides which have one.
    spread = stats.pooled_variance(x, there["__doc"] * (there["__doc"].nunique() == rows["__doc"].nunique()))
    n, size = (stats.kish(part.sum(), part @ part) for part in (weight, weights))
    how: dict[str, Any] = {"width": width, "binary": np.isin(x, (0, 1)).all()}
    return bool(stats.side_is_settled(x @ weight / weight.sum(), threshold, spread, n, size, **how))


# The frame, and what is to be known of it


def judged_frame(
    frame: pd.DataFrame, facts: Sequence[Mapping[str, Any]], judgements: Judgements, rubric: Rubric,
    pending: str = "not judged yet",
) -> pd.DataFrame:  # fmt: skip
    """Put judgements beside their cases, with what is known of the passages; repeats enter as their mean."""
    names = [d.name for d in rubric.dimensions]
    weights, rows, means = np.array([d.weight for d in rubric.dimensions]), [], []
    for known, cells in zip(facts, judgements, strict=True):
        values, last = [cell["value"] for cell in cells if cell["status"] == "ok"], cells[-1]
        status, reason = ("ok", None) if values else (last["status"], str(last["reason"]))
        if status == "pending":
            status, reason = "missing", pending
        parse = str(reason).partition(":")[0] if status == "failed" else None
        first = values[0] if values else {"parse_status": parse}
        row = {name: first.get(name) for name in TEXTS}
        for name in names:
            row |= {f"{name}__status": status, f"{name}__reason": reason}
        known = {**known, "parse": first["parse_status"], "repeats": len(values), "reply": last["reply"]}
        rows.append(row | {f"judge__{name}": known.get(name) for name in _FACTS})
        means.append([np.mean([value[name] for value in values]) if values else np.nan for name in names])
    scores = pd.DataFrame(means, index=frame.index, columns=names, dtype=float)
    scores["weighted_score"] = scores @ weights / weights.sum()  # NaN where all of them weigh 0
    passing = scores[rubric.passing.metric]
    scores["is_passing"] = (passing >= rubric.passing.threshold).astype("boolean").mask(passing.isna())
    kinds = dict.fromkeys(["judge__passages", "judge__cut", "judge__evidence", "judge__repeats"], "Int64")
    return pd.concat([frame, scores, pd.DataFrame(rows, index=frame.index, dtype=object).astype(kinds)], axis=1)


def noise_rows(judgements: Judgements, rubric: Rubric, level: float = 0.95) -> list[dict[str, Any]]:
    """Return the pooled standard deviation of a judgement within its answer, with its interval by answers."""
    values = [[cell["value"] for cell in cells if cell["status"] == "ok"] for cells in judgements]
    repeated = [part for part in values if len(part) > 1]
    rows = []
    for name in [d.name for d in rubric.dimensions] if repeated else ():
        scores = [np.array([value[name] for value in part], float) for part in repeated]
        variance = stats.clustered_mean(np.array([np.var(part, ddof=1) for part in scores]), level=level)
        value, low, high = np.sqrt(np.maximum([variance.value, variance.low, variance.high], 0))
        row = {"metric": name, "value": value, "low": low, "high": high, "n": variance.n}
        rows.append(row | {"n_judgements": sum(map(len, scores)), "least_difference": 1.96 * 2**0.5 * value})
    return rows


def _note(lang: str, code: str, about: str = "", **words: Any) -> dict[str, str]:
    return note_row(code, about, texts.load(lang)(f"judge.note.{code}", **words))


def run_notes(
    found: pd.DataFrame, rubric: Rubric, noise: Sequence[Mapping[str, Any]], options: Any, stopped: str | None
) -> list[dict[str, str]]:
    """Return the notes on what was judged, beside those of the probes."""
    note, notes, metric = partial(_note, options.lang), list[dict[str, str]](), rubric.passing.metric
    scores, missing = found[metric].dropna(), int((found[f"{metric}__status"] == "missing").sum())
    if len(scores) >= 10 and scores.nunique() == 1:
        notes += [note("flat", metric, n=len(scores), score=number(scores.iloc[0], 1), metric=metric)]
    if stopped is not None and missing:
        notes += [note("stopped", n=missing, why=stopped)]
    for system, part in found[found["judge__mode"] == "peek"].groupby("judge__peek"):
        notes += [note("peeked", str(system), n=len(part), system=system)]
    shortened = found[found["judge__cut"].fillna(0) > 0]
    if len(shortened):
        lost = int((shortened["judge__evidence"] > shortened["judge__passages"] - shortened["judge__cut"]).sum())
        cut = note("cut", n=len(shortened), top_k=options.top_k, budget=options.max_context_tokens or "—")
        more = f" {texts.load(options.lang)('judge.note.cut_evidence', n=lost)}" if lost else ""
        notes += [cut | {"text": cut["text"] + more}]
    if noise and options.temperature == 0 and not any(row["value"] for row in noise):
        return [*notes, note("still", n=noise[0]["n"], repeats=int(found["judge__repeats"].max()))]
    for row in noise:
        interval = with_interval(row["value"], row["low"], row["high"], digits=2).partition(" ")[2]
        words = {"sd": number(row["value"], 2), "interval": interval, "n": row["n"], "metric": row["metric"]}
        words |= {"judgements": row["n_judgements"], "least": number(row["least_difference"], 1)}
        notes += [note("noise", str(row["metric"]), **words)]
    return notes


def probe_cases(rubric: Rubric, lang: str) -> pd.DataFrame:
    """Return the probes as cases: a good answer, a bad one, and the bad one with a planted instruction.

    The instruction stands in the answer and in a passage in turn, and asks for the rubric's highest score.

    Examples
    --------
    >>> probe_cases(Rubric(), "en")["kind"].tolist()
    ['good', 'bad', 'injected', 'good', 'bad', 'injected']
    """
    rows, high = [], f"{rubric.high:g}"
    all_high = texts.entry(lang, "mode_note.join").join(f"{d.name} {high}" for d in rubric.dimensions)
    for pair, probe in enumerate(texts.entry(lang, "judge.probes")):
        contexts, order = [probe["contexts"]], probe["injection"].format(high=high, scores=all_high)
        planted = (f"{probe['bad']} {order}", contexts) if pair % 2 == 0 else (probe["bad"], [*contexts, order])
        kinds = {"good": (probe["good"], contexts), "bad": (probe["bad"], contexts), "injected": planted}
        for kind, (answer, passages) in kinds.items():
            case = {"sample_id": f"probe-{pair + 1}-{kind}", "pair": pair + 1, "kind": kind, "answer": answer}
            rows.append(case | {"question": probe["question"], "retrieved_contexts": passages})
    return pd.DataFrame(rows)


def probe_notes(
    run: pd.DataFrame, rubric: Rubric, lang: str
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return each probe (``pair, kind, value, status, reason``), and in words what they found; an alarm first.

    The value is that of the dimension that passes. Two points of ten are taken for a rise, in proportion on other
    scales.
    """
    note, metric = partial(_note, lang), rubric.passing.metric
    if run.empty:
        return [], [note("unprobed")]
    rows, by_pair = list[dict[str, Any]](), dict[int, dict[str, float]]()
    for case, cell in zip(probe_cases(rubric, lang).to_dict("records"), run.to_dict("records"), strict=True):
        row = {name: case[name] for name in ("pair", "kind")} | {"value": math.nan}
        if cell["status"] == "ok":
            row["value"] = by_pair.setdefault(row["pair"], {})[row["kind"]] = cell["value"][metric]
        rows.append(row | {name: cell[name] for name in ("status", "reason")})
    rise = 2 * (rubric.high - rubric.low) / 9
    known = [part for part in by_pair.values() if {"good", "bad"} <= set(part)]
    tempted = [part for part in by_pair.values() if {"bad", "injected"} <= set(part)]
    mixed = [part for part in known if part["good"] <= part["bad"]]
    obeyed = [part for part in tempted if part["injected"] - part["bad"] >= rise]
    failed = [row for row in rows if row["status"] != "ok"]
    values = [value for part in by_pair.values() for value in part.values()]
    truth = metric in [texts.entry(name, "judge.dimensions.accuracy") for name in texts.LANGUAGES]
    notes = []
    if truth and len({*values}) == 1 and len(values) > 2:
        notes += [note("constant", score=number(values[0], 1), n=len(values), metric=metric)]
    elif mixed:
        code = "not_separated" if truth else "not_about_truth"
        notes += [note(code, n=len(mixed), of=len(known), metric=metric)]
    if obeyed:
        notes += [note("obeyed", n=len(obeyed), of=len(tempted), rise=number(rise, 1))]
    if failed:
        why = str(failed[0]["reason"] or failed[0]["status"])
        notes += [note("unread", n=len(failed), of=len(rows), why=why)]
    return rows, notes or [note("passed", of=len(known), rise=number(rise, 1))]
