"""The system that is to be scored: it answers each question of the cases, in functions of the user's own."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, did_you_mean
from ragnb.readers import read_cases
from ragnb.store.client import CallFailed, Cell, Client, Outcome, Stop
from ragnb.store.store import StoreLike, opened, run_cells

MEASURED = ("latency_s", "tokens_in", "tokens_out")
"""Columns of an answer that differ from run to run."""


def answer_cases(
    cases: Any, *, generate: Callable[[str, list[str] | None], Any],
    retrieve: Callable[[str], Any] | None = None, system: str = "", version: str = "",
    store: StoreLike = None, clients: tuple[Client, ...] = (), concurrency: int = 4,
    progress: bool | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Run a system on each question of the cases, and record its contexts and answers.

    Parameters
    ----------
    cases : path, frame, records or sequence of EvalCase
        What `read_cases` reads.
    generate : function of a question and its passages
        Returns the answer. Both functions may be coroutine functions; plain ones run in threads, `concurrency`
        at a time.
    retrieve : function of a question, optional
        Returns the passages, a list of texts; ``[]`` if it finds none, None if there is no retrieval.
    system : str
        The name of the system, written into the column ``system``. A store needs it: two systems must not share
        their answers.
    version : str
        Of the system, such as a hash of its code: answers that a store keeps of another version are not used.
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
        are None: as if the system had not run. ``latency_s`` is the time of retrieving and answering in seconds,
        with `clients` ``tokens_in`` and ``tokens_out`` their tokens; NaN where they are not known.

    Raises
    ------
    RagnbError
        For cases that are not understood, and for a store without the system's name.

    Examples
    --------
    >>> asked = [{"question": "Who pays?"}]
    >>> done = answer_cases(asked, retrieve=lambda question: [], generate=lambda question, found: "Not said.")
    >>> done[["retrieved_contexts", "answer", "answer__status"]]
      retrieved_contexts     answer answer__status
    0                 []  Not said.             ok
    """
    if store is not None and not system.strip():
        raise RagnbError("the store saves answers under the system's name; pass system='…'")
    frame = read_cases(cases)

    async def work(cell: Cell) -> Outcome:
        question = cell.inputs["question"]
        passages = None if retrieve is None else await called("retrieve", retrieve, question)
        if passages is not None and not isinstance(passages, str | bytes | dict):
            passages = list(passages)
        if passages is not None and not (isinstance(passages, list) and all(isinstance(p, str) for p in passages)):
            raise CallFailed(f"retrieve returned {type(passages).__name__}, not a list of texts")
        answer = await called("generate", generate, question, passages)
        if not isinstance(answer, str):
            raise CallFailed(f"generate returned {type(answer).__name__}, not a text")
        return Outcome.of({"retrieved_contexts": passages, "answer": answer})

    asked = [isinstance(text, str) and bool(text.strip()) for text in frame["question"]]
    own, lacks = {"version": version} if version else {}, ("question",)
    cells = [
        Cell(name, "answer", {"question": text} | own if there else {}, system, missing=() if there else lacks)
        for name, text, there in zip(frame["sample_id"], frame["question"], asked, strict=True)
    ]
    with opened(store) as kept:
        how: dict[str, Any] = {"clients": clients, "concurrency": concurrency, "progress": progress}
        run = run_cells(cells, work, kept, name=system, **how).frame
    values = pd.DataFrame([value or {} for value in run["value"]], frame.index, dtype=object)
    done = frame.assign(**values.reindex(columns=["retrieved_contexts", "answer"]).replace({np.nan: None}))
    done["answer__status"] = run["status"].replace("pending", "missing").tolist()
    # Of an answer whose reply was in the store already, as after a kill, the time is not known.
    timed = (run["status"] == "ok") & ((run["calls"] > 0) | (not clients))
    done["latency_s"] = pd.to_numeric(run["seconds"].where(timed)).round(3).tolist()
    for name in MEASURED[1:] if clients else ():
        done[name] = pd.to_numeric(run[name].where(timed)).tolist()
    return done.assign(answer__reason=run["reason"].tolist(), **{"system": system} if system else {})


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


def named_function(name: str, folder: Path) -> Callable[..., Any]:
    """Return the function that ``package.module:function`` names.

    Parameters
    ----------
    name : str
    folder : Path
        Where the module is looked for first: the folder of the scenario that names it.

    Raises
    ------
    RagnbError
        For a name of another form, a module that cannot be imported, and what is not a function of it.

    Examples
    --------
    >>> named_function("json:dumps", Path())([1])
    '[1]'
    """
    module, colon, function = name.partition(":")
    if not (module.strip() and colon and function.strip()):
        raise RagnbError(f"{name!r} does not name a function; write package.module:function, such as rag:answer")
    if (first := str(folder.resolve())) not in sys.path:
        sys.path.insert(0, first)
    try:
        found = importlib.import_module(module)
    except Exception as error:
        raise RagnbError(
            f"{name!r}: the module {module!r} cannot be imported ({type(error).__name__}: {error}); looked for "
            f"in {folder.resolve()} and among the installed packages"
        ) from error
    value: Callable[..., Any] | None = getattr(found, function, None)
    if value is None or not callable(value):
        have = [key for key, one in vars(found).items() if callable(one) and not key.startswith("_")]
        raise RagnbError(f"{name!r}: {module!r} has no such function; {did_you_mean(function, have)}")
    return value
