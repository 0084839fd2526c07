"""Systems that answer while they are judged, side by side in an arena."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError
from ragnb.judging.plan import REPLY_TOKENS, text_of
from ragnb.judging.run import Judged, judge
from ragnb.readers import read_cases
from ragnb.readers.passages import as_texts
from ragnb.scoring.answering import called
from ragnb.store.budget import count_tokens
from ragnb.store.calls import Cell, Outcome
from ragnb.store.client import Client
from ragnb.store.loop import Run, run_cells
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
    to_answer = read_cases(questions).drop(
        columns=["answer", "retrieved_contexts", "system"], errors="ignore"
    )
    if not systems:
        raise RagnbError("systems is empty; name at least one: {'name': callable}")
    if to_answer["sample_id"].duplicated().any():
        raise RagnbError("the questions contain a sample_id twice; give each question its own")
    frame = pd.concat([to_answer.assign(system=name) for name in systems], ignore_index=True)
    with opened(store) as kept:
        asking = frame.assign(arguments=frame["question"].map(lambda question: [text_of(question)]))
        answers = answers_of(asking, systems, kept, progress=progress).frame["value"]
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
    if isinstance(passages, Iterable) and not isinstance(passages, str | Mapping):
        passages = [*passages]  # a system may yield them
    contexts, _ = as_texts(passages)
    return {"answer": text_of(reply.get("answer")), "retrieved_contexts": contexts}


def answers_of(asked: pd.DataFrame, systems: Mapping[str, System], store: Store, **how: Any) -> Run:
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
        # The name of the system is the model of its cell, and so enters the key.
        system = systems[cell.model]
        reply = await called("system", system, *cell.inputs["arguments"])
        return Outcome.of(_answer_of(reply))

    return run_cells(cells, work, store, name="answers", label="answer", **how)
