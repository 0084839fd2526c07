"""A system that tries again where the judge is not content, and what that gains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats, texts
from ragnb.errors import RagnbError, need_whole
from ragnb.judging.plan import Condition, need_one_system, text_of
from ragnb.judging.run import Judged, as_html, as_text, judge, spent_on
from ragnb.judging.systems import System, answers_of
from ragnb.markup import number, with_interval
from ragnb.readers import read_cases
from ragnb.schema import (
    Rubric,
    holding_notes,
    note_frame,
)
from ragnb.store.client import Client
from ragnb.store.loop import total_account
from ragnb.store.store import StoreLike, opened

_JUDGED_AGAIN = 2  # times that a failed judgement is made again


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
        # A ninth of the scale is one point of 1 to 10.
        threshold = min(rubric.high, rubric.passing.threshold + (rubric.high - rubric.low) / 9)
    need_whole("attempts", attempts)
    if not rubric.low <= threshold <= rubric.high:
        raise RagnbError(
            f"threshold={threshold:g} is not on the scale, {rubric.low:g} to {rubric.high:g}"
        )
    metric = rubric.passing.metric
    lang = options.get("lang", "en")
    say = texts.load(lang)
    current = read_cases(cases)
    need_one_system(current)
    current = current.assign(__case=range(len(current)))
    if isinstance(system, Client):
        answering: System = partial(_asked, system, say)
    else:
        answering = system
    with opened(store) as kept:
        loop = _Loop(
            metric,
            {
                "client": client,
                "rubric": rubric,
                "store": kept,
                "doc": doc,
                "progress": progress,
                **options,
            },
        )
        for attempt in range(attempts + 1):
            judged = loop.judge(current, attempt)
            low = judged[judged[metric] < threshold]
            if attempt == attempts or low.empty or loop.stopped:
                break
            current = loop.answer(
                current.loc[low.index],
                low.assign(system=name),
                {name: answering},
                clients=[system] if isinstance(system, Client) else [],
            )
            if current.empty:
                break
        # An answer that the system repeats is judged already, and paid for once.
        bill = pd.concat([kept.frame(run, attempts="all") for run in loop.runs], ignore_index=True)
        first_keys = kept.frame(loop.runs[0])["key"]  # of the judgements of the given answers
        bill = bill[~bill["key"].isin(first_keys)]
        bill = bill.drop_duplicates(["key", "at"])
    cost = _cost(bill)
    judged_attempts, gain = _gain(pd.concat(loop.rounds, ignore_index=True), metric, doc, level)
    return Improved(
        attempts=judged_attempts,
        kept=judged_attempts[judged_attempts["kept"]].reset_index(drop=True),
        gain=pd.DataFrame([gain]),
        cost=cost,
        notes=_notes(loop, gain, cost, threshold, say),
        lang=lang,
        account=total_account(loop.accounts),
    )


@dataclass
class _Loop:
    """Rounds of judging and answering: what they gave, what they used, and why they stopped.

    Parameters
    ----------
    metric : str
        The dimension that decides whether an answer passes.
    how : mapping
        The keywords of `judge`.
    """

    metric: str
    how: dict[str, Any]
    rounds: list[pd.DataFrame] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    accounts: list[Mapping[str, int]] = field(default_factory=list)
    stopped: str | None = None
    rejudged: int = 0
    failed: int = 0
    unanswered: int = 0

    def judge(self, cases: pd.DataFrame, attempt: int) -> Judged:
        """Judge answers; a failed judgement is open in the store, so that the same call makes it again."""
        for left in range(_JUDGED_AGAIN, -1, -1):
            judged = judge(cases, **self.how)
            about = judged.about
            self.accounts.append(about["account"])
            self.stopped = about["stopped"] or self.stopped
            failed = int((judged[f"{self.metric}__status"] == "failed").sum())
            if left:
                self.rejudged += failed
            if not failed or self.stopped:
                break
        self.failed += failed
        self.rounds.append(pd.DataFrame(judged).assign(attempt=attempt))
        self.runs.append(about["run"])
        # Once is enough to know the judge.
        self.how["probes"] = False
        return judged

    def answer(
        self,
        cases: pd.DataFrame,
        low: pd.DataFrame,
        systems: Mapping[str, System],
        *,
        clients: list[Client],
    ) -> pd.DataFrame:
        """Return the cases that a system answers again, given what the judge suggested; none where it does not."""
        hints = low["suggestion"].map(lambda hint: text_of(hint) or "")
        arguments = zip(low["question"], low["answer"], hints, strict=True)
        answered = answers_of(
            low.assign(arguments=pd.Series(map(list, arguments), low.index)),
            systems,
            self.how["store"],
            clients=clients,
            progress=self.how["progress"],
        )
        self.accounts.append(answered.account)
        self.stopped = answered.stopped
        self.runs.append(answered.id)
        answered_cases = []
        replies = answered.frame["value"]
        for row, reply in zip(cases.to_dict("records"), replies, strict=True):
            if reply and reply["answer"]:
                # The passages of the case are kept where the system returned none.
                given = {key: value for key, value in reply.items() if value is not None}
                answered_cases.append(row | given)
        # Where a budget ended the run, the others were not asked.
        if not self.stopped:
            self.unanswered += len(low) - len(answered_cases)
        return pd.DataFrame(answered_cases, dtype=object)


def _cost(bill: pd.DataFrame) -> dict[str, Any]:
    """Return the answers of the system and the calls of the judge, and the tokens where all are known."""
    by_system = bill["what"].str.startswith("answer/").astype(bool)
    spent = spent_on(bill)
    tokens = [spent["tokens_in"], spent["tokens_out"]]
    return {
        "answers": int(by_system.sum()),
        "calls": int(bill.loc[~by_system, "calls"].sum()),
        "tokens": None if None in tokens else int(sum(tokens)),
    }


def _notes(
    loop: _Loop,
    gain: Mapping[str, Any],
    cost: Mapping[str, Any],
    threshold: float,
    say: Callable[..., str],
) -> pd.DataFrame:
    """Return what a reader must know of the gain."""
    metric = loop.metric
    words = {
        **gain,
        "before": number(gain["before"], 2),
        "after": number(gain["after"], 2),
        "gain": with_interval(gain["value"], gain["low"], gain["high"], digits=2),
        "tried": gain["n_tried"],
        "threshold": f"{threshold:g}",
    }
    used = dict(cost)
    if used["tokens"] is None:
        used["tokens"] = say("judge.loop.unreported")
    is_without_answers = gain["n"] and not (cost["answers"] or loop.stopped)
    words_if_rejudged = {"n": loop.rejudged, "left": loop.failed}
    conditions = [
        Condition(gain["n_tried"], "gained", metric, words),
        Condition(gain["n_tried"], "same_judge", metric, {}),
        Condition(is_without_answers, "gained_nothing", metric, words),
        Condition(True, "cost", metric, used),
        Condition(loop.rejudged, "rejudged", metric, words_if_rejudged),
        Condition(loop.unanswered, "unanswered", metric, {"n": loop.unanswered}),
        Condition(loop.stopped, "stopped", metric, {"why": loop.stopped}),
    ]
    return note_frame(holding_notes(say, conditions, "judge.loop"))


def _gain(
    attempts: pd.DataFrame, metric: str, doc: str, level: float
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return all attempts with those that are kept, and the mean of what the kept ones gained."""
    attempts = attempts.sort_values(["__case", "attempt"], kind="stable", ignore_index=True)
    by_case = attempts[metric].astype(float).groupby(attempts["__case"])
    # The earliest of equal ones, and without any score the answer that was given.
    best = by_case.transform(lambda scores: scores.fillna(-np.inf).idxmax())
    attempts["kept"] = attempts.index.isin(best)
    attempts[f"{metric}__before"] = by_case.transform(lambda scores: scores.iloc[0])
    kept = attempts[attempts["kept"] & attempts[f"{metric}__before"].notna()]
    before = kept[f"{metric}__before"].astype(float)
    after = kept[metric].astype(float)
    docs = None
    if doc in kept and kept[doc].notna().all():
        docs = kept[doc]
    mean = stats.clustered_mean((after - before).to_numpy(), docs, level=level)
    gain = {
        "metric": metric,
        "before": before.mean(),
        "after": after.mean(),
        "value": mean.value,
        "low": mean.low,
        "high": mean.high,
        "n": mean.n,
        "n_clusters": mean.n_clusters,
        "n_tried": int((attempts["attempt"] == 1).sum()),
    }
    return attempts.drop(columns="__case"), gain
