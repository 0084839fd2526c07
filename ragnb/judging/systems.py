"""Systems that answer while they are judged: several side by side, or one that tries again with the suggestions.

Their answers are kept like judgements, and never asked for twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragnb import stats, texts
from ragnb.errors import RagnbError, RagnbWarning, need_columns
from ragnb.judging.run import Judged, frame_of, judge, passages_of, plain_id, text_of
from ragnb.markup import number, with_interval
from ragnb.schema import Rubric, note_frame, note_row
from ragnb.scoring.answers import called
from ragnb.store import Cell, Client, Outcome, Store, StoreLike, opened, run_cells

System = Callable[..., Any]


def arena(
    questions: Any, *, systems: Mapping[str, Any], client: Client, store: StoreLike = None,
    progress: bool | None = None, **how: Any,
) -> Judged:  # fmt: skip
    """Have one judge score several systems over one set of questions.

    Parameters
    ----------
    questions : DataFrame or iterable of EvalCase or mappings
        ``question``, ``sample_id``, references, ``doc_name``; answers in it are left out.
    systems : mapping of name to system
        A callable that takes a question and returns an answer, or a mapping with ``answer`` and perhaps
        ``retrieved_contexts`` (a coroutine function or a plain one, which runs in threads); or recorded answers:
        a frame of ``sample_id, answer`` and perhaps ``retrieved_contexts``, or a mapping of sample to answer.
    client, store, progress, **how
        As for `judge`, `repeats`, `rubric` and `peek` among them. The judge is not told whose answer it reads. A
        callable's answers are kept under the system's name: give a changed system another name.

    Returns
    -------
    Judged
        One row a system and question, with ``system``. What a system has not answered is ``not_applicable``.

    Raises
    ------
    RagnbError
        For no systems, repeated sample ids, and recorded answers without ids.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> found = arena([{"question": "Who?"}], systems={"a": {}, "b": {"1": None}}, client=client, probes=False)
    >>> found[["sample_id", "system", "accuracy__reason"]]
      sample_id system accuracy__reason
    0         1      a        no answer
    1         1      b        no answer
    """
    asked = frame_of(questions).drop(columns=["answer", "retrieved_contexts", "system"], errors="ignore")
    if not systems:
        raise RagnbError("systems is empty; name at least one: {'name': callable or recorded answers}")
    if asked["sample_id"].duplicated().any():
        raise RagnbError("the questions hold a sample_id twice; give each question its own")
    frame = pd.concat([asked.assign(system=name) for name in systems], ignore_index=True)
    recorded = {name: _recorded(name, system) for name, system in systems.items() if not callable(system)}
    calls = frame[~frame["system"].isin([*recorded])]
    with opened(store) as kept:
        arguments = [[text_of(question)] for question in calls["question"]]
        called_for = dict(zip(calls.index, _answers(calls, arguments, systems, kept, progress), strict=True))
        answers = [
            called_for[place] if place in called_for else _answer_of(recorded[name].get(sample))
            for place, sample, name in zip(frame.index, frame["sample_id"], frame["system"], strict=True)
        ]
        filled = [answer or {"answer": None, "retrieved_contexts": None} for answer in answers]
        frame = pd.concat([frame, pd.DataFrame(filled, dtype=object)], axis=1)
        return judge(frame, client=client, store=kept, progress=progress, **how)


def _recorded(name: str, system: Any) -> Mapping[Any, Any]:
    """Return recorded answers by sample."""
    if isinstance(system, Mapping):
        return system
    rows = system if isinstance(system, pd.DataFrame) else pd.DataFrame(list(system))
    need_columns(rows.columns, ("sample_id", "answer"), f"systems[{name!r}] needs it.")
    return {row["sample_id"]: row for row in rows.to_dict("records")}


def _answer_of(reply: Any) -> dict[str, Any]:
    """Return what a system replied, as an answer and its passages."""
    if not isinstance(reply, Mapping):
        if reply is not None and not isinstance(reply, str | float):
            raise RagnbError(f"a system returned a {type(reply).__name__}; return the answer, or {{'answer': …}}")
        reply = {"answer": reply}
    passages = passages_of(reply.get("retrieved_contexts"))
    return {"answer": text_of(reply.get("answer")), "retrieved_contexts": passages}


def _answers(
    asked: pd.DataFrame, arguments: Sequence[list[Any]], systems: Mapping[str, System], store: Store,
    progress: bool | None,
) -> list[dict[str, Any] | None]:  # fmt: skip
    """Call the system of each row for the answers that the store does not hold; None where it failed."""
    cells = [
        Cell(
            plain_id(row["sample_id"]), f"answer/{row['system']}", {"arguments": given}, row["system"], calls=0,
            missing=() if given[0] else ("question",), cluster=text_of(row.get("doc_name")),
        )
        for row, given in zip(asked.to_dict("records"), arguments, strict=True)
    ]  # fmt: skip

    async def work(cell: Cell) -> Outcome:
        return Outcome.of(_answer_of(await called("system", systems[cell.model], *cell.inputs["arguments"])))

    return list(run_cells(cells, work, store, name="answers", progress=progress).frame["value"])


@dataclass(frozen=True)
class Improved:
    """What a retry loop came to.

    Parameters
    ----------
    attempts : DataFrame
        Every attempt, judged: the columns of `judge`, ``attempt`` (0 is the answer that was given) and ``kept``.
    kept : DataFrame
        One row a case: its attempt of the highest score, the earliest of equals.
    gain : DataFrame
        ``metric, before, after, value`` (mean of after − before), ``low, high, n, n_clusters``, ``n_tried`` again.
    cost : dict
        ``answers`` of the system and ``calls`` and ``tokens`` of the judge beyond the first attempts; tokens None
        where the endpoint did not tell.
    notes : DataFrame
        What to know before the gain is believed: ``code, about, text``.
    """

    attempts: pd.DataFrame
    kept: pd.DataFrame
    gain: pd.DataFrame
    cost: dict[str, Any]
    notes: pd.DataFrame


def improve(
    cases: Any, system: System, client: Client, *, name: str = "system", rubric: Rubric | None = None,
    bar: float = 8.0, attempts: int = 2, store: StoreLike = None, rejudge: int = 2, level: float = 0.95,
    progress: bool | None = None, **options: Any,
) -> Improved:  # fmt: skip
    """Judge answers, and while accuracy is under the bar have the system answer again with the judge's suggestion.

    Parameters
    ----------
    cases, client, rubric, store, progress, **options
        As for `judge`.
    system : callable
        Takes question, answer and suggestion; returns an answer, or a mapping with ``answer`` and perhaps
        ``retrieved_contexts``, without which those of the case stay. It may be a coroutine function.
    name : str
        Of the system, under which its answers are kept in the store.
    bar : float
        On the dimension that decides whether an answer passes (accuracy); stricter than passing on purpose.
    attempts : int
        Further answers a case at most.
    rejudge : int
        How often a failed judgement is made again; one that fails to the end is no score and ends the loop.
    level : float
        Of the interval of the gain.

    Returns
    -------
    Improved

    Raises
    ------
    RagnbError
        As `judge`, and for numbers that make no sense.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> found = improve([{"question": "Who?", "answer": None}], lambda *told: "Ann.", client, probes=False)
    >>> found.attempts["accuracy__status"].tolist(), found.cost["answers"]
    (['not_applicable'], 0)
    """
    rubric = rubric or Rubric()
    if attempts < 1 or rejudge < 0 or not rubric.low <= bar <= rubric.high:
        raise RagnbError(
            f"attempts={attempts}, rejudge={rejudge}, bar={bar}; give ≥ 1, ≥ 0 and a score of the scale"
        )
    metric, current = rubric.passing.metric, frame_of(cases)
    current = current.assign(case=range(len(current)))
    rounds, bills, answers, rejudged, failed = list[pd.DataFrame](), list[dict[str, Any]](), 0, 0, 0
    with opened(store) as kept:
        for attempt in range(attempts + 1):
            # Failed judgements are open in the store, so the same call makes them again.
            for left in reversed(range(rejudge + 1)):
                judged = judge(current, client=client, rubric=rubric, store=kept, progress=progress, **options)
                unread = int((judged[f"{metric}__status"] == "failed").sum())
                rejudged += unread * bool(left)
                if not unread:
                    break
            failed += unread
            rounds.append(pd.DataFrame(judged).assign(attempt=attempt))
            bills += [judged.attrs["judge"]["spent"]] * bool(attempt)
            options = options | {"probes": False}
            low = judged[judged[metric] < bar].assign(system=name)
            if attempt == attempts or low.empty:
                break
            hints = [text_of(hint) or "" for hint in low["suggestion"]]
            arguments = [list(row) for row in zip(low["question"], low["answer"], hints, strict=True)]
            replies = _answers(low, arguments, {name: system}, kept, progress)
            answers += len(low)
            rows = zip(current.loc[low.index].to_dict("records"), replies, strict=True)
            next_rows = [row | _known(reply) for row, reply in rows if _known(reply).get("answer")]
            if not next_rows:
                break
            current = pd.DataFrame(next_rows, dtype=object)
    tokens = [bill[part] for bill in bills for part in ("tokens_in", "tokens_out")]
    cost: dict[str, Any] = {"answers": answers, "calls": int(sum(bill["calls"] for bill in bills))}
    cost |= {"tokens": None if None in tokens else int(sum(tokens))}
    whole, gain = _gain(pd.concat(rounds, ignore_index=True), metric, level)
    say, notes = texts.load(options.get("lang", "en")), list[dict[str, str]]()
    if gain["n_tried"]:
        words = {part: number(gain[part], 2) for part in ("before", "after")} | {"metric": metric, "n": gain["n"]}
        words |= {"gain": with_interval(gain["value"], gain["low"], gain["high"], digits=2)}
        notes += [note_row("gained", metric, say("judge.loop.gained", **words, tried=gain["n_tried"]))]
        notes += [note_row("same_judge", "", say("judge.loop.same_judge"))]
        warnings.warn(say("judge.loop.same_judge"), RagnbWarning, stacklevel=2)
    elif gain["n"]:
        notes += [note_row("gained_nothing", metric, say("judge.loop.gained_nothing", n=gain["n"], bar=bar))]
    spent = cost | {"tokens": "—" if cost["tokens"] is None else cost["tokens"]}
    notes += [note_row("cost", "", say("judge.loop.cost", **spent))]
    if rejudged:
        notes += [note_row("rejudged", "", say("judge.loop.rejudged", n=rejudged, left=failed))]
    best = whole[whole["kept"]].reset_index(drop=True)
    return Improved(whole, best, pd.DataFrame([gain]), cost, note_frame(notes))


def _known(reply: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a system told; the passages of the case stay where it told none."""
    return {key: value for key, value in (reply or {}).items() if value is not None}


def _gain(attempts: pd.DataFrame, metric: str, level: float) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return all attempts with those that are kept, and the mean of what the kept ones gained."""
    attempts = attempts.sort_values(["case", "attempt"], kind="stable", ignore_index=True)
    best = attempts.sort_values(metric, ascending=False, kind="stable", na_position="last")
    attempts["kept"] = attempts.index.isin(best.drop_duplicates("case").index)
    first = attempts[attempts["attempt"] == 0].set_index("case")
    first = first.assign(after=attempts[attempts["kept"]].set_index("case")[metric]).dropna(subset=metric)
    named = "doc_name" in attempts and attempts.loc[attempts["attempt"] == 0, "doc_name"].notna().all()
    difference = (first["after"] - first[metric]).to_numpy(float)
    mean = stats.clustered_mean(difference, first["doc_name"] if named else None, level=level)
    gain = {"metric": metric, "before": first[metric].mean(), "after": first["after"].mean(), "value": mean.value}
    gain |= {"low": mean.low, "high": mean.high, "n": mean.n, "n_clusters": mean.n_clusters}
    return attempts.drop(columns="case"), gain | {"n_tried": int((attempts["attempt"] == 1).sum())}
