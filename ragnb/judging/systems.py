"""Systems that answer while they are judged: their answers are kept like judgements, and never asked for twice."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, unknown
from ragnb.judging.judged import Judged
from ragnb.judging.plan import frame_of, passages_of, plain_id, text_of
from ragnb.judging.run import judge
from ragnb.store import Cell, Client, Outcome, Store, StoreLike, opened, run_cells

System = Callable[..., Any]


def arena(
    questions: Any,
    systems: Mapping[str, Any],
    client: Client,
    *,
    store: StoreLike = None,
    progress: bool | None = None,
    **how: Any,
) -> Judged:
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
    >>> found = arena([{"question": "Who?"}], {"a": {}, "b": {"1": None}}, client, probes=False)
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
    with opened(store) as kept:
        parts = [_answered(asked, name, system, kept, progress) for name, system in systems.items()]
        return judge(pd.concat(parts, ignore_index=True), client=client, store=kept, progress=progress, **how)


def _answered(asked: pd.DataFrame, name: str, system: Any, store: Store, progress: bool | None) -> pd.DataFrame:
    """The questions with one system's answers and passages."""
    if callable(system):
        cells = [answer_cell(row, name, [text_of(row["question"])]) for row in asked.to_dict("records")]
        answers: list[Any] = answers_of(cells, system, store, progress)
    elif isinstance(system, Mapping):
        answers = [given(system.get(key)) for key in asked["sample_id"]]
    else:
        rows = system if isinstance(system, pd.DataFrame) else pd.DataFrame(list(system))
        for column in ("sample_id", "answer"):
            if column not in rows.columns:
                raise unknown("column", column, list(map(str, rows.columns)), f"systems[{name!r}] needs it.")
        known = {row["sample_id"]: given(row) for row in rows.to_dict("records")}
        answers = [known.get(key) for key in asked["sample_id"]]
    told = [answer or {"answer": None, "retrieved_contexts": None} for answer in answers]
    return pd.concat([asked, pd.DataFrame(told, index=asked.index, dtype=object)], axis=1).assign(system=name)


def given(said: Any) -> dict[str, Any]:
    """What a system said, as an answer and its passages."""
    if isinstance(said, Mapping):
        return {
            "answer": text_of(said.get("answer")),
            "retrieved_contexts": passages_of(said.get("retrieved_contexts")),
        }
    if said is not None and not isinstance(said, str | float):
        raise RagnbError(f"a system returned a {type(said).__name__}; return the answer, or {{'answer': …}}")
    return {"answer": text_of(said), "retrieved_contexts": None}


def answer_cell(row: Mapping[Any, Any], name: str, arguments: Sequence[Any]) -> Cell:
    """The cell of one call of a system: what it is given decides the key."""
    return Cell(
        plain_id(row["sample_id"]), f"answer/{name}", {"arguments": list(arguments)}, name, calls=0,
        missing=() if arguments[0] else ("question",), cluster=text_of(row.get("doc_name")),
    )  # fmt: skip


def answers_of(
    cells: Sequence[Cell], system: System, store: Store, progress: bool | None
) -> list[dict[str, Any] | None]:
    """Call a system for the answers that the store does not hold; None where one failed."""

    async def work(cell: Cell) -> Outcome:
        arguments = cell.inputs["arguments"]
        if inspect.iscoroutinefunction(system):
            said = await system(*arguments)
        else:
            said = await asyncio.to_thread(system, *arguments)
        return Outcome.of(given(said))

    run = run_cells(cells, work, store, name="answers", progress=progress)
    return [row["value"] if row["status"] == "ok" else None for row in run.frame.to_dict("records")]
