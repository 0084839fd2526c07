"""The retry loop: a system tries again with the judge's suggestion; what that gained, cost and proves."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragnb import stats, texts
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.judging.judged import Judged
from ragnb.judging.plan import frame_of, text_of
from ragnb.judging.run import judge
from ragnb.judging.systems import System, answer_cell, answers_of
from ragnb.markup import number, with_interval
from ragnb.schema import Rubric, note_frame, note_row
from ragnb.store import Client, Store, StoreLike, opened


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
    cases: Any,
    system: System,
    client: Client,
    *,
    name: str = "system",
    rubric: Rubric | None = None,
    bar: float = 8.0,
    attempts: int = 2,
    store: StoreLike = None,
    rejudge: int = 2,
    level: float = 0.95,
    progress: bool | None = None,
    **options: Any,
) -> Improved:
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
    rounds, bills, answers, again = list[pd.DataFrame](), list[dict[str, Any]](), 0, [0, 0]
    with opened(store) as kept:
        for attempt in range(attempts + 1):
            judged = _judged(current, client, kept, again, rejudge, progress, rubric=rubric, **options)
            rounds.append(pd.DataFrame(judged).assign(attempt=attempt))
            bills += [judged.attrs["judge"]["spent"]] * bool(attempt)
            options = options | {"probes": False}
            low = judged[judged[metric] < bar]
            if attempt == attempts or low.empty:
                break
            current = _again(current[current["case"].isin(low["case"])], low, system, name, kept, progress)
            answers += len(low)
            if current.empty:
                break
    tokens = [bill[part] for bill in bills for part in ("tokens_in", "tokens_out")]
    cost: dict[str, Any] = {"answers": answers, "calls": int(sum(bill["calls"] for bill in bills))}
    cost |= {"tokens": None if None in tokens else int(sum(tokens))}
    return _improved(rounds, metric, bar, cost, again, level, options.get("lang", "en"))


def _judged(
    current: pd.DataFrame, client: Client, store: Store, again: list[int], rejudge: int, progress: bool | None,
    **how: Any,
) -> Judged:  # fmt: skip
    """Judge a round; failed judgements are open in the store, so the same call makes them again."""
    for left in reversed(range(rejudge + 1)):
        judged = judge(current, client=client, store=store, progress=progress, **how)
        failed = int((judged[f"{how['rubric'].passing.metric}__status"] == "failed").sum())
        if not failed or not left:
            break
        again[0] += failed
    again[1] += failed
    return judged


def _again(
    asked: pd.DataFrame, low: pd.DataFrame, system: System, name: str, store: Store, progress: bool | None
) -> pd.DataFrame:
    """The cases with the system's next answers; those it failed to answer are out."""
    rows = asked.to_dict("records")
    hints = [text_of(hint) or "" for hint in low["suggestion"]]
    cells = [
        answer_cell(row, name, [row["question"], row["answer"], hint])
        for row, hint in zip(rows, hints, strict=True)
    ]
    said = answers_of(cells, system, store, progress)
    made = []
    for row, answer in zip(rows, said, strict=True):
        if answer is not None and answer["answer"] is not None:
            new = {key: value for key, value in answer.items() if value is not None}
            made.append({str(key): value for key, value in row.items()} | new)
    return pd.DataFrame(made, columns=[*asked.columns] if not made else None, dtype=object)


def _improved(
    rounds: list[pd.DataFrame], metric: str, bar: float, cost: dict[str, Any], again: list[int], level: float,
    lang: str,
) -> Improved:  # fmt: skip
    attempts = pd.concat(rounds, ignore_index=True).sort_values(
        ["case", "attempt"], kind="stable", ignore_index=True
    )
    best = attempts.sort_values(metric, ascending=False, kind="stable", na_position="last")
    attempts["kept"] = attempts.index.isin(best.drop_duplicates("case").index)
    kept, first = (
        attempts[attempts[column] == value].set_index("case") for column, value in (("kept", True), ("attempt", 0))
    )
    both = first[metric].notna()
    before, after = first.loc[both, metric], kept.loc[both, metric]
    named = "doc_name" in first.columns and first["doc_name"].notna().all()
    clusters = first.loc[both, "doc_name"] if named else None
    tried = int((attempts["attempt"] == 1).sum())
    found = stats.clustered_mean((after - before).to_numpy(float), clusters, level=level)
    row = {"metric": metric, "before": before.mean(), "after": after.mean(), "value": found.value}
    row |= {"low": found.low, "high": found.high, "n": found.n, "n_clusters": found.n_clusters, "n_tried": tried}
    notes = note_frame(_notes(row, cost, again, bar, lang))
    if tried:
        warnings.warn(texts.load(lang)("judge.loop.same_judge"), RagnbWarning, stacklevel=3)
    attempts = attempts.drop(columns="case")
    return Improved(attempts, attempts[attempts["kept"]].reset_index(drop=True), pd.DataFrame([row]), cost, notes)


def _notes(
    row: dict[str, Any], cost: dict[str, Any], again: list[int], bar: float, lang: str
) -> list[dict[str, str]]:
    say = texts.load(lang)
    notes = []
    if row["n_tried"]:
        ends = with_interval(row["value"], row["low"], row["high"], digits=2)
        numbers = {"before": number(row["before"], 2), "after": number(row["after"], 2), "gain": ends}
        numbers |= {"metric": row["metric"]}
        gained = say("judge.loop.gained", **numbers, n=row["n"], tried=row["n_tried"])
        notes += [note_row("gained", row["metric"], gained)]
        notes += [note_row("same_judge", "", say("judge.loop.same_judge"))]
    elif row["n"]:
        notes += [note_row("gained_nothing", row["metric"], say("judge.loop.gained_nothing", n=row["n"], bar=bar))]
    told = {**cost, "tokens": "—" if cost["tokens"] is None else cost["tokens"]}
    notes += [note_row("cost", "", say("judge.loop.cost", **told))]
    if again[0]:
        notes += [note_row("rejudged", "", say("judge.loop.rejudged", n=again[0], left=again[1]))]
    return notes
