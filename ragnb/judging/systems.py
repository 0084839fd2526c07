"""Systems that answer while they are judged: an arena of several, and one that tries again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats, texts
from ragnb.errors import RagnbError, need_whole
from ragnb.judging.plan import REPLY_TOKENS, Told, need_one_system, text_of
from ragnb.judging.run import Judged, as_html, as_text, judge, spent_on
from ragnb.markup import number, with_interval
from ragnb.readers import read_cases
from ragnb.readers.cells import as_texts
from ragnb.schema import (
    Rubric,
    holding_notes,
    note_frame,
)
from ragnb.scoring.answering import called
from ragnb.store.budget import count_tokens
from ragnb.store.calls import Cell, Outcome
from ragnb.store.client import Client
from ragnb.store.loop import Run, run_cells, total_account
from ragnb.store.store import Store, StoreLike, opened

System = Callable[..., Any]


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
        return as_text(self.notes, self._shown())

    def _repr_html_(self) -> str:
        return as_html(self.notes, self._shown(), self.lang)

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
    metric = rubric.passing.metric
    current = read_cases(cases)
    lang = options.get("lang", "en")
    need_one_system(current)
    current = current.assign(__case=range(len(current)))
    say = texts.load(lang)
    rounds = list[pd.DataFrame]()
    runs = list[str]()
    stopped = None
    clients = [system] if isinstance(system, Client) else []
    called_for: System
    if isinstance(system, Client):
        called_for = partial(_asked, system, say)
    else:
        called_for = system
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
                stopped = judged.attrs["judge"]["stopped"] or stopped
                rejudged = rejudged + unread * bool(left)
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
            if not stopped:
                unanswered += len(low) - len(next_rows)
            if not next_rows:
                break
            current = pd.DataFrame(next_rows, dtype=object)
        # An answer that the system repeats is judged already, and paid for once.
        bill = pd.concat([kept.frame(run, attempts="all") for run in runs], ignore_index=True)
        bill = bill[~bill["key"].isin(kept.frame(runs[0])["key"])].drop_duplicates(["key", "at"])
    by_system = bill["what"].str.startswith("answer/").astype(bool)
    spent = spent_on(bill)
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
