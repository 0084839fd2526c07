"""The system that is to be scored, run over the cases: what it retrieves and what it answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError
from ragnb.scoring.run import frame_of
from ragnb.store import CallFailed, Cell, Client, Outcome, Stop, StoreLike, opened, run_cells


def answer_cases(
    cases: Any, retrieve: Callable[[str], Any], generate: Callable[[str, list[str] | None], Any], *,
    system: str = "", store: StoreLike = None, clients: tuple[Client, ...] = (), concurrency: int = 4,
    progress: bool | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Fill the system side of cases: ask a system each question, and note what it retrieves and answers.

    Parameters
    ----------
    cases : path, frame, records or sequence of EvalCase
        What `read_cases` reads.
    retrieve : function of a question
        Returns the passages, a list of texts; ``[]`` if it finds none, None if there is no retrieval.
    generate : function of a question and its passages
        Returns the answer. Both functions may be coroutine functions; plain ones run in threads, `concurrency`
        at a time.
    system : str
        The name of the system, written into the column ``system``. A store needs it: two systems must not share
        their answers.
    store : Store or path, optional
        Where each answer is kept: a second run asks only what failed or is not there.
    clients : tuple of Client
        Those that the functions use.
    concurrency : int
        Cases under way at a time.
    progress : bool, optional
        A progress bar; by default in a terminal and in a notebook.

    Returns
    -------
    DataFrame
        The cases, in their order, with ``retrieved_contexts`` and ``answer`` as the system gave them, and
        ``answer__status`` (``ok``, ``failed``, ``not_applicable``) and ``answer__reason``. Where it failed, both
        are None: as if the system had not run.

    Raises
    ------
    RagnbError
        For cases that are not understood, and for a store without the system's name.

    Examples
    --------
    >>> done = answer_cases([{"question": "Who pays?"}], lambda question: [], lambda question, found: "Not said.")
    >>> done[["retrieved_contexts", "answer", "answer__status"]]
      retrieved_contexts     answer answer__status
    0                 []  Not said.             ok
    """
    if store is not None and not system.strip():
        raise RagnbError("a store keeps answers by the name of the system; pass system='…'")
    frame = frame_of(cases)

    async def work(cell: Cell) -> Outcome:
        question = cell.inputs["question"]
        passages = await called("retrieve", retrieve, question)
        if passages is not None and not isinstance(passages, str | bytes | dict):
            passages = list(passages)
        if passages is not None and not (isinstance(passages, list) and all(isinstance(p, str) for p in passages)):
            raise CallFailed(f"retrieve returned {type(passages).__name__}, not a list of texts")
        answer = await called("generate", generate, question, passages)
        if not isinstance(answer, str):
            raise CallFailed(f"generate returned {type(answer).__name__}, not a text")
        return Outcome.of({"retrieved_contexts": passages, "answer": answer})

    asked = [isinstance(text, str) and bool(text.strip()) for text in frame["question"]]
    cells = [
        Cell(name, "answer", {"question": text if there else ""}, system, missing=() if there else ("question",))
        for name, text, there in zip(frame["sample_id"], frame["question"], asked, strict=True)
    ]
    with opened(store) as kept:
        run = run_cells(
            cells, work, kept, clients=clients, concurrency=concurrency, name=system, progress=progress
        )
    return _filled(frame, run.frame, system)


async def called(what: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a plain function in a thread, or await a coroutine function; what it raises is a failed call."""
    try:
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        found = await asyncio.to_thread(function, *args)
        return await found if inspect.isawaitable(found) else found
    except (CallFailed, Stop):
        raise
    except Exception as error:
        raise CallFailed(f"{what}: {type(error).__name__}: {error}") from None


def _filled(cases: pd.DataFrame, cells: pd.DataFrame, system: str) -> pd.DataFrame:
    done = cases.copy()
    values = [value if isinstance(value, dict) else {} for value in cells["value"]]
    for name in ("retrieved_contexts", "answer"):
        done[name] = pd.Series([value.get(name) for value in values], index=done.index, dtype=object)
    status = ["missing" if word == "pending" else word for word in cells["status"]]
    done["answer__status"], done["answer__reason"] = status, cells["reason"].tolist()
    if system:
        done["system"] = system
    return done
