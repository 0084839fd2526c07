"""Judge every answer of a set by a rubric: its cells, the work on one, the frame, its notes, probes and noise.

Then systems that answer while they are judged: several side by side, or one that tries again with the suggestions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats, texts
from ragnb.errors import RagnbError, RagnbWarning, listing, need_known, need_whole
from ragnb.judging.prompt import cut, evidence_rank, material, numbered, system_prompt
from ragnb.judging.verdict import TEXTS, parse_verdict
from ragnb.markup import element, number, one_line, with_interval
from ragnb.markup.rendering import fragment
from ragnb.readers import read_cases
from ragnb.readers.cells import as_texts
from ragnb.schema import (
    NOTE_COLUMNS,
    STOPPED_EARLY,
    Gate,
    Rubric,
    holding_notes,
    keep_results,
    note_frame,
)
from ragnb.scoring.asking import Asker
from ragnb.scoring.run import called
from ragnb.stats import Flags
from ragnb.store.client import Cell, Client, Outcome, count_tokens, new_tag
from ragnb.store.loop import Estimate, Run, estimate, run_cells, total_account
from ragnb.store.store import Store, StoreLike, opened, systems_of
from ragnb.weights import weigh

REPLY_TOKENS = 400
# Of the order in which answers are judged, and how many questions at least are judged before it may end early.
SEED, FEWEST = 0, 50
# One answer to be judged: its cell, and what is known of its passages.
Task = tuple[Cell, dict[str, Any]]
# A note: whether it holds, its code, what it is about, and the words of its text.
Told = tuple[Any, str, str, dict[str, Any]]
System = Callable[..., Any]
ALARMS = ("not_separated", "constant", "obeyed", "flat")
NOISE_COLUMNS = ("metric", "value", "low", "high", "n", "n_judgements", "least_difference")
_FACTS = ("mode", "peek", "passages", "cut", "evidence", "parse", "repeats", "reply")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a judge; see `judge`.

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
    tries: int = 2
    probes: bool = True
    repeats: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Check options that a caller named."""
        for name in given:
            need_known("option", name, [one.name for one in fields(cls)])
        options = cls(**given)
        texts.table(options.lang)
        for name in ("repeats", "tries", "top_k", "max_context_tokens"):
            if (count := getattr(options, name)) is not None:
                need_whole(name, count)
        return options

    @property
    def sent(self) -> dict[str, Any]:
        """The parameters of each call."""
        return ({} if self.temperature is None else {"temperature": self.temperature}) | dict(
            self.parameters
        )

    @property
    def about(self) -> dict[str, Any]:
        """The options that may change a reply, for the key of a cell."""
        return {"tries": self.tries, **self.sent}


class Judged(pd.DataFrame):
    """A scores frame with notes on the reliability of its judge.

    What is made of it (a selection, a merge) is a plain DataFrame.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    @property
    def notes(self) -> pd.DataFrame:
        """The notes on the scores: ``code, about, text``."""
        return pd.DataFrame(self.attrs["judge"]["notes"], columns=list(NOTE_COLUMNS), dtype=object)

    @property
    def noise(self) -> pd.DataFrame:
        """The judge's noise, one row per metric, from repeated judgements; empty without repeats.

        ``value`` is the standard deviation of one judgement of one answer, ``low, high`` its interval, ``n``
        answers, ``n_judgements``, and ``least_difference`` (1.96·√2·value) what two single judgements differ by
        before it is more than noise.
        """
        return pd.DataFrame(self.attrs["judge"]["noise"], columns=list(NOISE_COLUMNS))

    @property
    def probes(self) -> pd.DataFrame:
        """The probes judged before the run: ``pair, kind, value, status, reason``."""
        return pd.DataFrame(
            self.attrs["judge"]["probes"], columns=["pair", "kind", "value", "status", "reason"]
        )

    def __repr__(self) -> str:
        return _as_text(self.notes, pd.DataFrame(self))

    def _repr_html_(self) -> str:
        return _as_html(self.notes, pd.DataFrame(self), str(self.attrs["judge"]["lang"]))


def _as_text(notes: pd.DataFrame, table: pd.DataFrame) -> str:
    """Return notes and the table below them for a terminal."""
    return "\n".join([*(f"- {one_line(text)}" for text in notes["text"]), "", repr(table)])


def _as_html(notes: pd.DataFrame, table: pd.DataFrame, lang: str) -> str:
    """Return notes and the table below them for a notebook."""
    items = element("ul", *(element("li", text) for text in notes["text"]))
    return str(fragment(items, lang=lang)) + table.to_html(max_rows=20, max_cols=12)


def judge(
    cases: Any,
    *,
    client: Client,
    rubric: Rubric | None = None,
    store: StoreLike = None,
    repeats: int = 1,
    name: str = "judge",
    stop_when: Iterable[Gate] | None = None,
    doc: str = "doc_name",
    doc_weights: Mapping[str, float] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Judged:
    """Score answers by a rubric with a model, from 1 to 10 on accuracy, completeness and clarity.

    Parameters
    ----------
    cases : path, frame, records or sequence of EvalCase
        What `read_cases` reads: ``question``, ``answer``, and optionally ``retrieved_contexts``,
        ``sample_id``, ``system``, ``doc_name``, ``ground_truth_answer``, ``ground_truth_contexts``. The judge
        sees the question, the passages and the answer; the reference only gives the rank of the evidence.
    client : ragnb.store.Client
        The judge's endpoint, with its limits and budgets.
    rubric : Rubric, optional
        By default accuracy .5, completeness .3, clarity .2; passing from accuracy 7 on.
    store : Store or path, optional
        Where judgements are saved: the same call again judges only what is missing. None saves nothing.
    repeats : int
        judgements per answer, at least 1; they are averaged, and with 2 or more their noise is estimated.
    name : str
        Of the run in the store.
    stop_when : iterable of Gate, optional
        Stop once the remaining answers cannot change on which side of its threshold the value of any of these
        gates is, of the rubric's dimensions or ``weighted_score``. The same call without it judges the rest.
    doc : str
        The column of the document, by which the order is balanced.
    doc_weights : mapping of document to weight, optional
        Of those values, as in `ragnb.weighted_means`.
    progress : bool, optional
        A progress bar; by default in a terminal and in a notebook.
    **options
        ``lang`` ("en", "zh"): of the prompt and the notes. ``top_k`` (10) and ``max_context_tokens`` (None): how
        many passages are shown. ``peek``: a system of the cases whose passages are used for those that an answer
        of the same sample lacks. ``temperature`` (0; None sends none), ``parameters``: sent with each call.
        ``tries`` (2): calls for one readable reply. ``probes`` (True): judge six answers of known quality first.

    Returns
    -------
    Judged
        The cases with ``accuracy, completeness, clarity`` (or the rubric's dimensions), ``weighted_score,
        is_passing, analysis, reason, suggestion``, ``<dimension>__status`` and ``__reason``, and ``judge__mode``
        (``contexts``, ``peek``, ``alone``), ``judge__peek``, ``judge__passages`` (retrieved), ``judge__cut`` (of
        them left out or shortened), ``judge__evidence`` (rank of the passage that is needed), ``judge__parse``
        (how the reply was read, or in one word why not: see `parse_verdict`), ``judge__repeats`` (that succeeded),
        ``judge__reply`` (raw). Missing fields give ``not_applicable``, a reply that cannot be read ``failed``;
        neither has a score. ``.notes``, ``.noise`` and ``.probes``
        describe the reliability of the judge, ``.attrs["judge"]`` which run it was, what it took, the ``account``
        of its cells, probes among them, and requests (see `ragnb.store.Run`), and whether it
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
        For failed cells, a used-up budget, and a judge that cannot be trusted.

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
    plan = Plan(cases, client, rubric, options | {"repeats": repeats})
    gates = [] if stop_when is None else gates_to_settle(stop_when, plan.rubric)
    about = {"model": client.profile.model, "options": plan.options.about, "repeats": repeats}
    about |= {"rubric": plan.rubric.model_dump(mode="json"), "systems": systems_of(plan.frame)}
    about |= {"order": {"balanced_by": doc, "seed": SEED}}
    how: dict[str, Any] = {"clients": [client], "progress": progress}
    weighed = {"doc": doc, "doc_weights": doc_weights}

    def settled(shown: Flags) -> bool:
        return plan.are_settled(plan.scores(kept.frame(planned)), shown, gates, weighed)

    with opened(store) as kept:
        asked_first: dict[str, Any] = {"name": "probes", "label": "judge: probes", **how}
        probed, accounts = pd.DataFrame(), list[Mapping[str, int]]()
        if plan.probes:
            probe_run = run_cells(plan.probes, plan.work, kept, **asked_first)
            probed = probe_run.frame
            accounts.append(probe_run.account)
        planned = kept.plan(plan.cells, name=name, about=about)
        rounds = plan.rounds(doc, settled if gates else None)
        run = run_cells(
            plan.cells, plan.work, kept, name=name, about=about, rounds=rounds, label="judge", **how
        )
        accounts.append(run.account)
        spent = spent_on(kept.frame(run.id, attempts="all"))
        saved = (
            0 if run.stopped else run.frame.loc[run.frame["status"] == "pending", "key"].nunique()
        )
        early = {"stopped_early": bool(saved), "calls_saved": saved}
        if saved:
            kept.plan(plan.cells, name=name, about=about | early)
    judged = Judged(plan.scores(run.frame, STOPPED_EARLY if saved else "not judged yet"))
    lang, noise = plan.options.lang, plan.noise(run.frame)
    probe_rows, notes = probe_notes(probed, plan.rubric, lang)
    left = judged[f"{plan.rubric.passing.metric}__reason"].eq(STOPPED_EARLY).sum()
    words = {
        "n": left,
        "of": len(judged),
        "gates": listing(gate.name for gate in gates),
        "calls": saved,
    }
    told = [*plan.notes(judged, noise, run.stopped), (saved, "stopped_early", "", words)]
    notes += holding_notes(texts.load(lang), told, "judge.note")
    for text in [row["text"] for row in notes if row["code"] in ALARMS]:
        warnings.warn(text, RagnbWarning, stacklevel=2)
    judged.attrs = dict(plan.frame.attrs) | {
        "judge": {
            "run": run.id,
            "model": client.profile.model,
            "lang": lang,
            "stopped": run.stopped,
        }
        | {"notes": notes, "noise": noise, "probes": probe_rows.to_dict("records"), "spent": spent}
        | {"account": total_account(accounts)}
        | early
    }
    keep_results(cases, judged)
    return judged


def spent_on(history: pd.DataFrame) -> dict[str, Any]:
    """Return what the attempts of a history took, those of earlier calls among them; None where it is unknown."""
    attempts = history.drop_duplicates(["key", "at"])
    sums = {name: attempts[name] for name in ("calls", "tokens_in", "tokens_out", "seconds")}
    return {name: None if part.isna().any() else part.sum() for name, part in sums.items()}


def dry_run(
    cases: Any,
    client: Client,
    *,
    rubric: Rubric | None = None,
    store: StoreLike = None,
    repeats: int = 1,
    **options: Any,
) -> Estimate:
    """Estimate the calls and tokens that `judge` would need, including probes; nothing is sent.

    Calls are counted without retries and second tries, and tokens with about 400 a reply.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> dry_run([{"question": "Who pays?", "answer": "Ann."}], client, repeats=3).calls
    9
    """
    plan = Plan(cases, client, rubric, options | {"repeats": repeats})
    return estimate([*plan.probes, *plan.cells], store)


def text_of(value: Any) -> str | None:
    """Return a text that is not blank, else None."""
    return value if isinstance(value, str) and value.strip() else None


class Plan:
    """The answers to judge: their cells with all repeats, the facts about their passages, and the probes.

    Parameters
    ----------
    cases, client, rubric, options
        As for `judge`.
    """

    def __init__(
        self, cases: Any, client: Client, rubric: Rubric | None, options: Mapping[str, Any]
    ) -> None:
        self.rubric, self.options, self.frame = (
            rubric or Rubric(),
            Options.of(options),
            read_cases(cases),
        )
        self.names = [d.name for d in self.rubric.dimensions]
        made = [*self.names, "weighted_score", "is_passing", *TEXTS]
        if there := [column for column in made if column in self.frame.columns]:
            raise RagnbError(
                f"the cases already have {listing(there)}; drop or rename these columns"
            )
        text, number = {"type": "string"}, {"type": "number" if self.rubric.decimals else "integer"}
        parts = dict.fromkeys(["tag", "analysis", *self.names, "reason", "suggestion"], text)
        parts |= dict.fromkeys(self.names, number)
        schema = {
            "type": "object",
            "properties": parts,
            "required": list(parts),
            "additionalProperties": False,
        }
        tries, lang = self.options.tries, self.options.lang
        self.asker = Asker(client, self.options.sent, schema=schema, tries=tries, lang=lang)
        plain = replace(self.options, peek=None, top_k=10, max_context_tokens=None)
        probes = self._tasks(probe_cases(self.rubric, lang), plain) if self.options.probes else []
        self.probes, tasks = [cell for cell, _ in probes], self._tasks(self.frame, self.options)
        self.facts = [facts for _, facts in tasks]
        self.asked = np.array([not cell.missing for cell, _ in tasks], bool)
        self.cells = [
            replace(cell, repeat=n) for cell, _ in tasks for n in range(self.options.repeats)
        ]

    def _tasks(self, frame: pd.DataFrame, options: Options) -> list[Task]:
        """Return one task a row, in the order of the frame."""
        rows, rival, peek = frame.to_dict("records"), dict[Any, list[str]](), options.peek
        if peek is not None:
            systems = sorted({str(name) for name in frame.get("system", ())})
            need_known("peek", peek, systems, "Name a system of the cases.")
            held = (
                row
                for row in rows
                if row["system"] == peek and row.get("retrieved_contexts") is not None
            )
            rival = {row["sample_id"]: row["retrieved_contexts"] for row in held}
        prompts = {
            mode: system_prompt(self.rubric, mode, options.lang)
            for mode in ("contexts", "peek", "alone")
        }
        # What is not in the prompt and decides which numbers are taken; weights and threshold do not.
        scale = [self.rubric.low, self.rubric.high, self.rubric.decimals]
        taken, model = {"rubric": self.names, "scale": scale}, self.asker.client.profile.model

        def task(row: Mapping[Any, Any]) -> Task:
            inputs: dict[str, Any] = {
                name: text_of(row.get(name)) for name in ("question", "answer")
            }
            missing = tuple(name for name, text in inputs.items() if text is None)
            passages, mode, facts = row.get("retrieved_contexts"), "contexts", dict[str, Any]()
            if passages is None:
                mode = "alone" if (passages := rival.get(row["sample_id"])) is None else "peek"
            if passages is not None:
                shown, left_out = cut(passages, options.top_k, options.max_context_tokens)
                gold, expected = (
                    row.get("ground_truth_contexts") or [],
                    text_of(row.get("ground_truth_answer")),
                )
                rank = evidence_rank(passages, gold, expected or inputs["answer"])
                facts = {"passages": len(passages), "cut": left_out, "evidence": rank}
                inputs = {
                    "question": inputs["question"],
                    "contexts": numbered(shown),
                    "answer": inputs["answer"],
                }
            size = count_tokens(prompts[mode]) + count_tokens(
                material(inputs, options.lang, tag="0" * 16)
            )
            cell = Cell(
                str(row["sample_id"]),
                f"rubric/{mode}",
                inputs,
                model,
                options.about | taken,
                prompt="\n".join([prompts[mode], material({}, options.lang, tag="")]),
                missing=missing,
                tokens=size + REPLY_TOKENS,
                cluster=text_of(row.get("doc_name")),
            )
            return cell, facts | {"mode": mode, "peek": peek if mode == "peek" else None}

        return [task(row) for row in rows]

    async def work(self, cell: Cell) -> Outcome:
        """Ask for one verdict, read and keep it."""
        tag, passages = new_tag(), [passage["text"] for passage in cell.inputs.get("contexts", ())]
        shown = [cell.inputs["question"], *passages, cell.inputs["answer"]]

        def read(reply: str) -> dict[str, Any]:
            if (
                verdict := parse_verdict(reply, self.rubric, tag=tag, material=shown)
            ).status == "failed":
                raise ValueError(f"{verdict.parse_status}: {verdict.why}")
            told = {name: getattr(verdict, name) for name in TEXTS}
            return {**verdict.scores, **told, "parse_status": verdict.parse_status}

        prompt = system_prompt(self.rubric, cell.what.removeprefix("rubric/"), self.options.lang)
        messages = [{"role": "system", "content": prompt}]
        messages += [{"role": "user", "content": material(cell.inputs, self.options.lang, tag=tag)}]
        return Outcome.of(await self.asker.ask(messages, read))

    def rounds(self, doc: str, settled: Callable[[Flags], bool] | None) -> Iterator[list[Cell]]:
        """Yield the cells of cases in rounds: what needs no call, then questions of all documents in proportion.

        Between rounds `settled` is asked, with the rows whose turn has come, and ends them.
        """
        asked, samples, repeats = self.asked, self.frame["sample_id"], self.options.repeats
        codes, names = pd.factorize(samples[asked].map(str))
        docs = self.frame.get(doc, samples.isna())[asked].iloc[
            np.unique(codes, return_index=True)[1]
        ]
        turns = np.full(len(samples), -1)
        turns[asked] = np.argsort(stats.balanced_order(pd.factorize(docs.map(str))[0], seed=SEED))[
            codes
        ]
        rows, n, start = np.argsort(turns, kind="stable"), len(names), -1
        for end in [0, *(range(max(FEWEST, -(-n // 5)), n, -(-n // 10)) if settled else ()), n]:
            if settled and 0 < start < end and settled(turns < start):
                return
            due = rows[(start <= turns[rows]) & (turns[rows] < end)]
            yield [self.cells[row * repeats + k] for row in due for k in range(repeats)]
            start = end

    def are_settled(
        self, judged: pd.DataFrame, shown: Flags, gates: Iterable[Gate], how: dict[str, Any]
    ) -> bool:
        """Return whether the remaining rows cannot change the side of any gate of any system."""
        status, doc, metrics = f"{self.names[0]}__status", how["doc"], self.rubric.metrics
        if (judged.loc[self.asked & ~shown, status] != "missing").any():
            return False  # scored in another order, which makes no fair sample
        rows = weigh(judged, metrics=metrics, **how)
        rows["__doc"] = pd.factorize(rows[doc].map(str))[0] if doc in rows else 0
        rows["__done"] = rows[status].map({"ok": 1.0, "failed": 0.0})
        rows = rows[self.asked & (rows["sample_weight"] > 0)]
        if "answerable" in rows and not metrics[0].grades_refusals:
            rows = rows[rows["answerable"].ne(False)]
        checks = [
            (gate.metric, gate.threshold, self.rubric.high - self.rubric.low) for gate in gates
        ]
        checks += [("__done", 0.9, 1.0)] * bool(
            (rows["__done"] == 0).any()
        )  # the gate on scored cells
        systems = rows.groupby(rows.get("system", pd.Series("", index=rows.index)), dropna=False)
        return all(_is_settled(part, *check) for _, part in systems for check in checks)

    def scores(self, run: pd.DataFrame, pending: str = "not judged yet") -> pd.DataFrame:
        """Join judgements to their cases, with facts about the passages; repeats are averaged."""
        names, frame, rule = self.names, self.frame, self.rubric.passing
        weights = np.array([d.weight for d in self.rubric.dimensions])
        values, cells = verdicts_of(run), run[~run["repeat"].shift(-1, fill_value=0).astype(bool)]
        values, cells = (
            values.reindex(columns=[*names, *TEXTS, "parse_status"]),
            cells.set_axis(range(len(frame))),
        )
        n = values.groupby(level=0).size().reindex(cells.index, fill_value=0)
        told = values[~values.index.duplicated()].reindex(cells.index).astype(object)
        status = cells["status"].replace("pending", "missing").mask(n > 0, "ok")
        reason = cells["reason"].map(str).mask(status == "missing", pending).mask(n > 0, None)
        parse = told["parse_status"].mask(
            status == "failed", reason.map(lambda text: str(text).partition(":")[0])
        )
        known = pd.DataFrame(self.facts, dtype=object).assign(
            parse=parse, repeats=n, reply=cells["reply"]
        )
        known = known.reindex(columns=_FACTS).add_prefix("judge__")
        states = {f"{name}__{part.name}": part for name in names for part in (status, reason)}
        scores = values[names].astype(float).groupby(level=0).mean().reindex(cells.index)
        scores["weighted_score"] = scores @ weights / weights.sum()  # NaN where all of them weigh 0
        passing = scores[rule.metric]
        scores["is_passing"] = (passing >= rule.threshold).astype("boolean").mask(passing.isna())
        beside = pd.concat([told[[*TEXTS]], pd.DataFrame(states), known], axis=1)
        kinds = dict.fromkeys(
            ["judge__passages", "judge__cut", "judge__evidence", "judge__repeats"], "Int64"
        )
        beside = beside.astype(object).where(beside.notna(), None).astype(kinds)
        return pd.concat(
            [frame, scores.set_axis(frame.index), beside.set_axis(frame.index)], axis=1
        )

    def noise(self, run: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the pooled standard deviation of a judgement within its answer, with its interval by answers."""
        values, rows = verdicts_of(run), []
        values = values[values.index.duplicated(keep=False)]
        for name in self.names if len(values) else ():
            variance = stats.clustered_mean(
                values[name].astype(float).groupby(level=0).var().to_numpy()
            )
            value, low, high = np.sqrt(np.maximum([variance.value, variance.low, variance.high], 0))
            row = {"metric": name, "value": value, "low": low, "high": high, "n": variance.n}
            rows.append(
                row | {"n_judgements": len(values), "least_difference": 1.96 * 2**0.5 * value}
            )
        return rows

    def notes(
        self, found: pd.DataFrame, noise: list[dict[str, Any]], stopped: str | None
    ) -> Iterator[Told]:
        """Yield the notes on the judgements, in addition to those of the probes."""
        options, metric, repeats = (
            self.options,
            self.rubric.passing.metric,
            found["judge__repeats"].max(),
        )
        scores, missing = (
            found[metric].dropna(),
            int((found[f"{metric}__status"] == "missing").sum()),
        )
        words: dict[str, Any] = {
            "n": len(scores),
            "score": number(scores.max(), 1),
            "metric": metric,
        }
        yield len(scores) >= 10 and scores.nunique() == 1, "flat", metric, words
        yield stopped is not None and missing, "stopped", "", {"n": missing, "why": stopped}
        peeked = (found["judge__mode"] == "peek").sum()
        yield peeked, "peeked", str(options.peek), {"n": peeked, "system": options.peek}
        shortened = found[found["judge__cut"].fillna(0) > 0]
        lost = int(
            (
                shortened["judge__evidence"]
                > shortened["judge__passages"] - shortened["judge__cut"]
            ).sum()
        )
        evidence = " " + texts.load(options.lang)("judge.note.cut_evidence", n=lost) if lost else ""
        words = {
            "top_k": options.top_k,
            "budget": options.max_context_tokens or "—",
            "evidence": evidence,
        }
        yield len(shortened), "cut", "", {"n": len(shortened), **words}
        still = options.temperature == 0 and not any(row["value"] for row in noise)
        for row in noise[:1] if still else noise:
            deviation = with_interval(row["value"], row["low"], row["high"], digits=2)
            words = {
                **row,
                "sd": deviation,
                "least": number(row["least_difference"], 1),
                "repeats": repeats,
            }
            yield True, "still" if still else "noise", "" if still else row["metric"], words


def gates_to_settle(gates: Iterable[Gate], rubric: Rubric) -> list[Gate]:
    """Return the gates on a rubric's scores; refuse if there is none, or one that its value does not decide."""
    names = [*(d.name for d in rubric.dimensions), "weighted_score"]
    if not (chosen := [gate for gate in gates if gate.metric in names]):
        example = f"[{{name: good, metric: {names[0]}, op: '>=', threshold: {rubric.passing.threshold:g}}}]"
        raise RagnbError(
            f"no gate uses a metric of the judge ({listing(names)}); write gates: {example}"
        )
    low, high = rubric.low, rubric.high
    for gate in chosen:
        if gate.not_worse_than or gate.undecided != "value":
            whole = "judge the whole run, without stopping it early"
            raise RagnbError(f"gate {gate.name!r} is decided by an interval; {whole}")
        if not low <= (at := gate.threshold) <= high:
            raise RagnbError(
                f"gate {gate.name!r}: {at:g} lies outside {gate.metric}'s {low:g}..{high:g}"
            )
    return chosen


def _is_settled(rows: pd.DataFrame, name: str, threshold: float, width: float) -> bool:
    there = rows[rows[name].notna()]
    x, weight, weights = (
        part.to_numpy(float) for part in (there[name], there.sample_weight, rows.sample_weight)
    )
    if not len(x):
        return False
    # Until every document has a score, chance also decides which have one.
    variance = stats.pooled_variance(
        x, there["__doc"] * (there["__doc"].nunique() == rows["__doc"].nunique())
    )
    n, size = (stats.kish(part.sum(), part @ part) for part in (weight, weights))
    how: dict[str, Any] = {"width": width, "binary": np.isin(x, (0, 1)).all()}
    return bool(
        stats.side_is_settled(x @ weight / weight.sum(), threshold, variance, n, size, **how)
    )


# The frame and its notes


def verdicts_of(run: pd.DataFrame) -> pd.DataFrame:
    """Return what was read of a run, one row per judgement, by the place of its answer."""
    places, ok = np.cumsum(run["repeat"].to_numpy() == 0) - 1, run["status"].to_numpy() == "ok"
    return pd.DataFrame(run["value"][ok].tolist(), index=places[ok])


def probe_cases(rubric: Rubric, lang: str) -> pd.DataFrame:
    """Return the probes as cases: a good answer, a bad one, and the bad one with a planted instruction.

    The instruction occurs in the answer and in a passage in turn, and asks for the rubric's highest score.

    Examples
    --------
    >>> probe_cases(Rubric(), "en")["kind"].tolist()
    ['good', 'bad', 'injected', 'good', 'bad', 'injected']
    """
    rows, high = [], f"{rubric.high:g}"
    all_high = texts.entry(lang, "mode_note.join").join(
        f"{d.name} {high}" for d in rubric.dimensions
    )
    for pair, probe in enumerate(texts.entry(lang, "judge.probes")):
        contexts, order = probe["contexts"], probe["injection"].format(high=high, scores=all_high)
        planted = (
            (f"{probe['bad']} {order}", contexts)
            if pair % 2 == 0
            else (probe["bad"], [*contexts, order])
        )
        kinds = {
            "good": (probe["good"], contexts),
            "bad": (probe["bad"], contexts),
            "injected": planted,
        }
        for kind, (answer, passages) in kinds.items():
            case = {
                "sample_id": f"probe-{pair + 1}-{kind}",
                "pair": pair + 1,
                "kind": kind,
                "answer": answer,
            }
            rows.append(case | {"question": probe["question"], "retrieved_contexts": passages})
    return pd.DataFrame(rows)


def probe_notes(
    run: pd.DataFrame, rubric: Rubric, lang: str
) -> tuple[pd.DataFrame, list[dict[str, str]]]:
    """Return each probe (``pair, kind, value, status, reason``) and the notes on them, alarms first.

    The value is that of the dimension that passes. Two points of ten are taken for a rise, in proportion on other
    scales.
    """
    metric, rise = rubric.passing.metric, 2 * (rubric.high - rubric.low) / 9
    if run.empty:
        return run, holding_notes(texts.load(lang), [(True, "unprobed", "", {})], "judge.note")
    rows = probe_cases(rubric, lang)[["pair", "kind"]]
    values = verdicts_of(run).reindex(rows.index, columns=[metric])[metric].astype(float)
    rows = rows.assign(value=values, status=run["status"], reason=run["reason"])
    pairs = rows.pivot(index="pair", columns="kind", values="value")
    known, tempted = pairs.dropna(subset=["good", "bad"]), pairs.dropna(subset=["bad", "injected"])
    mixed, obeyed = (
        sum(known["good"] <= known["bad"]),
        sum(tempted["injected"] - tempted["bad"] >= rise),
    )
    failed = rows[rows["status"] != "ok"]
    why = failed["reason"].fillna(failed["status"])
    truth = metric in [texts.entry(name, "judge.dimensions.accuracy") for name in texts.LANGUAGES]
    constant = truth and values.nunique() == 1 and values.count() > 2
    of = {"of": len(known), "rise": number(rise, 1), "metric": metric}
    told: list[Told] = [
        (
            constant,
            "constant",
            "",
            {"score": number(values.max(), 1), "n": values.count(), "metric": metric},
        ),
        (
            mixed and not constant,
            "not_separated" if truth else "not_about_truth",
            "",
            of | {"n": mixed},
        ),
        (obeyed, "obeyed", "", of | {"n": obeyed, "of": len(tempted)}),
        (
            len(failed),
            "unread",
            "",
            {"n": len(failed), "of": len(rows), "why": next(iter(why), "")},
        ),
    ]
    say = texts.load(lang)
    found = holding_notes(say, told, "judge.note")
    return rows, found or holding_notes(say, [(True, "passed", "", of)], "judge.note")


# Systems that answer while they are judged; their answers are stored like judgements and reused


def arena(
    questions: Any,
    *,
    systems: Mapping[str, System],
    client: Client,
    store: StoreLike = None,
    progress: bool | None = None,
    **how: Any,
) -> Judged:
    """Score several systems on one set of questions with one judge.

    Parameters
    ----------
    questions : path, frame, records or sequence of EvalCase
        What `read_cases` reads: ``question``, ``sample_id``, references, ``doc_name``; answers in it are left out.
    systems : mapping of name to system
        A callable that takes a question and returns an answer, or a mapping with ``answer`` and perhaps
        ``retrieved_contexts`` (a coroutine function or a plain one, which runs in threads). Answers that are
        there already are judged as cases with a column ``system``, by `judge`.
    client, store, progress, **how
        As for `judge`, `repeats`, `rubric` and `peek` among them. The judge is not told whose answer it reads. A
        callable's answers are kept under the system's name: give a changed system another name.

    Returns
    -------
    Judged
        One row per system and question, with ``system``. What a system has not answered is ``not_applicable``.

    Raises
    ------
    RagnbError
        For no systems, and repeated sample ids.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> systems = {"a": lambda question: None, "b": lambda question: ""}
    >>> found = arena([{"question": "Who?"}], systems=systems, client=client, probes=False)
    >>> found[["sample_id", "system", "accuracy__reason"]]
      sample_id system accuracy__reason
    0         1      a        no answer
    1         1      b        no answer
    """
    asked = read_cases(questions).drop(
        columns=["answer", "retrieved_contexts", "system"], errors="ignore"
    )
    if not systems:
        raise RagnbError("systems is empty; name at least one: {'name': callable}")
    if asked["sample_id"].duplicated().any():
        raise RagnbError("the questions contain a sample_id twice; give each question its own")
    frame = pd.concat([asked.assign(system=name) for name in systems], ignore_index=True)
    with opened(store) as kept:
        asking = frame.assign(arguments=frame["question"].map(lambda question: [text_of(question)]))
        answers = _answers(asking, systems, kept, progress=progress).frame["value"]
        filled = [answer or {"answer": None, "retrieved_contexts": None} for answer in answers]
        frame = pd.concat([frame, pd.DataFrame(filled, dtype=object)], axis=1)
        return judge(frame, client=client, store=kept, progress=progress, **how)


def _answer_of(reply: Any) -> dict[str, Any]:
    """Return what a system replied, as an answer and its passages."""
    if not isinstance(reply, Mapping):
        if reply is not None and not isinstance(reply, str | float):
            raise RagnbError(
                f"a system returned a {type(reply).__name__}; return the answer, or {{'answer': …}}"
            )
        reply = {"answer": reply}
    passages = reply.get("retrieved_contexts")
    several = isinstance(passages, Iterable) and not isinstance(passages, str | Mapping)
    contexts, _ = as_texts([*passages] if several else passages)
    return {"answer": text_of(reply.get("answer")), "retrieved_contexts": contexts}


def _answers(asked: pd.DataFrame, systems: Mapping[str, System], store: Store, **how: Any) -> Run:
    """Call the system of each row, which may use the clients in `how`, for answers that are not in the store."""
    cells = [
        Cell(
            str(row["sample_id"]),
            f"answer/{row['system']}",
            {"arguments": row["arguments"]},
            row["system"],
            calls=len(how.get("clients", ())),
            tokens=2 * REPLY_TOKENS + count_tokens(str(row["arguments"])),
            missing=() if row["arguments"][0] else ("question",),
            cluster=text_of(row.get("doc_name")),
        )
        for row in asked.to_dict("records")
    ]

    async def work(cell: Cell) -> Outcome:
        return Outcome.of(
            _answer_of(await called("system", systems[cell.model], *cell.inputs["arguments"]))
        )

    return run_cells(cells, work, store, name="answers", label="answer", **how)


async def _asked(
    client: Client, say: Callable[..., str], question: str, answer: str, suggestion: str
) -> str:
    """Ask the model of a client for a better answer."""
    text = say("judge.loop.message", question=question, answer=answer, suggestion=suggestion)
    return await client.chat([{"role": "user", "content": text}])


@dataclass(frozen=True, repr=False)
class Improved:
    """The result of a retry loop; in a notebook its notes and the kept answers.

    Parameters
    ----------
    attempts : DataFrame
        Every attempt, judged: the columns of `judge`, ``attempt`` (0 is the answer that was given), ``kept``, and
        ``<metric>__before``, the score of attempt 0.
    kept : DataFrame
        One row per case: its attempt of the highest score, the earliest of equals.
    gain : DataFrame
        ``metric, before, after, value`` (mean of after − before), ``low, high, n, n_clusters``, ``n_tried`` again.
    cost : dict
        ``answers`` of the system and ``calls`` of the judge beyond the first attempts, and the ``tokens`` of both,
        as far as ragnb made the calls; None where the endpoint did not report.
    notes : DataFrame
        What to know before the gain is believed: ``code, about, text``. With ``unanswered`` the system failed
        on some answers, with ``stopped`` some were not retried or judged yet.
    lang : {"en", "zh"}
        Of the notes.
    account : dict
        The cells of all rounds, first answers among them, and the requests sent: see `ragnb.store.Run`.
    """

    attempts: pd.DataFrame
    kept: pd.DataFrame
    gain: pd.DataFrame
    cost: dict[str, Any]
    notes: pd.DataFrame
    lang: str = "en"
    account: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return _as_text(self.notes, self._shown())

    def _repr_html_(self) -> str:
        return _as_html(self.notes, self._shown(), self.lang)

    def _shown(self) -> pd.DataFrame:
        metric = self.gain["metric"].iloc[0]
        return self.kept[
            ["sample_id", "question", f"{metric}__before", metric, "attempt", "answer"]
        ]


def improve(
    cases: Any,
    *,
    system: System | Client,
    client: Client,
    name: str = "system",
    rubric: Rubric | None = None,
    threshold: float | None = None,
    attempts: int = 2,
    store: StoreLike = None,
    doc: str = "doc_name",
    level: float = 0.95,
    progress: bool | None = None,
    **options: Any,
) -> Improved:
    """Judge answers, and retry those below the threshold with the judge's suggestion.

    A failed judgement is made again, at most twice; one that fails to the end is no score and ends the loop.

    Parameters
    ----------
    cases, client, rubric, store, progress, **options
        As for `judge`. With a store, the same call again asks neither the system nor the judge anything twice.
    system : callable or ragnb.store.Client
        Takes question, answer and suggestion; returns an answer, or a mapping with ``answer`` and perhaps
        ``retrieved_contexts``, without which those of the case stay. It may be a coroutine function. A client's
        model is given the three as one message.
    name : str
        Of the system, under which its answers are kept in the store: give a changed system another name.
    threshold : float, optional
        On the dimension that decides whether an answer passes (accuracy). By default stricter than passing, by a
        ninth of the scale: 8 on 1–10.
    attempts : int
        Further answers a case at most.
    doc : str
        The column of the document, by which the interval of the gain is clustered.
    level : float
        Of the interval of the gain.

    Returns
    -------
    Improved

    Raises
    ------
    RagnbError
        As `judge`, for cases of several systems, and for numbers that make no sense.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> cases, system = [{"question": "Who?", "answer": None}], lambda question, answer, suggestion: "Ann."
    >>> found = improve(cases, system=system, client=client, probes=False)
    >>> found.attempts["accuracy__status"].tolist(), found.cost["answers"]
    (['not_applicable'], 0)
    """
    rubric = rubric or Rubric()
    if threshold is None:
        threshold = min(rubric.high, rubric.passing.threshold + (rubric.high - rubric.low) / 9)
    need_whole("attempts", attempts)
    if not rubric.low <= threshold <= rubric.high:
        raise RagnbError(
            f"threshold={threshold:g} is not on the scale, {rubric.low:g} to {rubric.high:g}"
        )
    metric, current, lang = rubric.passing.metric, read_cases(cases), options.get("lang", "en")
    need_one_system(current)
    current = current.assign(__case=range(len(current)))
    say, rounds, runs, stopped = texts.load(lang), list[pd.DataFrame](), list[str](), None
    clients = [system] if isinstance(system, Client) else []
    called_for: System = partial(_asked, system, say) if isinstance(system, Client) else system
    rejudged = failed = unanswered = 0
    accounts = list[Mapping[str, int]]()
    with opened(store) as kept:
        how: dict[str, Any] = {
            "client": client,
            "rubric": rubric,
            "store": kept,
            "doc": doc,
            "progress": progress,
        }
        for attempt in range(attempts + 1):
            # Failed judgements are open in the store, so the same call makes them again.
            for left in (2, 1, 0):
                judged = judge(current, **how, **options)
                accounts.append(judged.attrs["judge"]["account"])
                unread = int((judged[f"{metric}__status"] == "failed").sum())
                stopped, rejudged = (
                    judged.attrs["judge"]["stopped"] or stopped,
                    rejudged + unread * bool(left),
                )
                if not unread or stopped:
                    break
            failed += unread
            rounds.append(pd.DataFrame(judged).assign(attempt=attempt))
            runs.append(judged.attrs["judge"]["run"])
            options = options | {"probes": False}
            low = judged[judged[metric] < threshold].assign(system=name)
            if attempt == attempts or low.empty or stopped:
                break
            hints = low["suggestion"].map(lambda hint: text_of(hint) or "")
            low["arguments"] = [
                list(row) for row in zip(low["question"], low["answer"], hints, strict=True)
            ]
            answered = _answers(low, {name: called_for}, kept, clients=clients, progress=progress)
            accounts.append(answered.account)
            stopped = answered.stopped
            runs.append(answered.id)
            next_rows = []
            for row, reply in zip(
                current.loc[low.index].to_dict("records"), answered.frame["value"], strict=True
            ):
                if reply and reply["answer"]:
                    # The passages of the case are kept where the system returned none.
                    next_rows.append(
                        row | {key: value for key, value in reply.items() if value is not None}
                    )
            unanswered += 0 if stopped else len(low) - len(next_rows)
            if not next_rows:
                break
            current = pd.DataFrame(next_rows, dtype=object)
        # An answer that the system repeats is judged already, and paid for once.
        bill = pd.concat([kept.frame(run, attempts="all") for run in runs], ignore_index=True)
        bill = bill[~bill["key"].isin(kept.frame(runs[0])["key"])].drop_duplicates(["key", "at"])
    by_system, spent = bill["what"].str.startswith("answer/").astype(bool), spent_on(bill)
    tokens = [spent["tokens_in"], spent["tokens_out"]]
    cost: dict[str, Any] = {
        "answers": int(by_system.sum()),
        "calls": int(bill.loc[~by_system, "calls"].sum()),
    }
    cost |= {"tokens": None if None in tokens else int(sum(tokens))}
    whole, gain = _gain(pd.concat(rounds, ignore_index=True), metric, doc, level)
    shown = {part: number(gain[part], 2) for part in ("before", "after")}
    shown |= {"gain": with_interval(gain["value"], gain["low"], gain["high"], digits=2)}
    words = gain | shown | {"tried": gain["n_tried"], "threshold": f"{threshold:g}"}
    told: list[Told] = [
        (gain["n_tried"], "gained", metric, words),
        (gain["n_tried"], "same_judge", metric, {}),
        (gain["n"] and not (cost["answers"] or stopped), "gained_nothing", metric, words),
        (
            True,
            "cost",
            metric,
            cost | ({"tokens": say("judge.loop.unreported")} if None in tokens else {}),
        ),
        (rejudged, "rejudged", metric, {"n": rejudged, "left": failed}),
        (unanswered, "unanswered", metric, {"n": unanswered}),
        (stopped, "stopped", metric, {"why": stopped}),
    ]
    best = whole[whole["kept"]].reset_index(drop=True)
    notes = note_frame(holding_notes(say, told, "judge.loop"))
    account = total_account(accounts)
    return Improved(whole, best, pd.DataFrame([gain]), cost, notes, lang, account)


def need_one_system(cases: pd.DataFrame) -> None:
    """Refuse answers of several systems: one system cannot retry them all, and a gain over them is nobody's."""
    if len(several := systems_of(cases)) > 1:
        raise RagnbError(
            f"the cases have answers of several systems ({listing(several)}); keep those of one system "
            "(where: {system: NAME} in a scenario)"
        )


def _gain(
    attempts: pd.DataFrame, metric: str, doc: str, level: float
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return all attempts with those that are kept, and the mean of what the kept ones gained."""
    attempts = attempts.sort_values(["__case", "attempt"], kind="stable", ignore_index=True)
    by_case = attempts[metric].astype(float).groupby(attempts["__case"])
    attempts["kept"] = attempts.index.isin(
        by_case.transform(lambda part: part.fillna(-np.inf).idxmax())
    )
    attempts[f"{metric}__before"] = by_case.transform(lambda part: part.iloc[0])
    kept = attempts[attempts["kept"] & attempts[f"{metric}__before"].notna()]
    before, after = (kept[name].astype(float) for name in (f"{metric}__before", metric))
    named = doc in kept and kept[doc].notna().all()
    mean = stats.clustered_mean(
        (after - before).to_numpy(), kept[doc] if named else None, level=level
    )
    gain = {"metric": metric, "before": before.mean(), "after": after.mean(), "value": mean.value}
    gain |= {"low": mean.low, "high": mean.high, "n": mean.n, "n_clusters": mean.n_clusters}
    return attempts.drop(columns="__case"), gain | {
        "n_tried": int((attempts["attempt"] == 1).sum())
    }
