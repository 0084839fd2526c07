"""A system that is run on each question of the cases: its passages, its answers, and how long they took."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, did_you_mean
from ragnb.readers import read_cases
from ragnb.readers.passages import passage_text
from ragnb.schema import missing_fields
from ragnb.store.budget import METER
from ragnb.store.calls import CallFailed, Cell, Outcome, Stop
from ragnb.store.client import Client
from ragnb.store.loop import run_cells
from ragnb.store.store import StoreLike, opened

MEASURED = ("latency_s", "tokens_in", "tokens_out")
"""Columns of an answer that differ from run to run."""


def answer_cases(
    cases: Any,
    *,
    generate: Callable[[str, list[str] | None], Any],
    retrieve: Callable[[str], Any] | None = None,
    system: str = "",
    version: str = "",
    store: StoreLike = None,
    client: Client | Sequence[Client] = (),
    concurrency: int = 4,
    progress: bool | None = None,
) -> pd.DataFrame:
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
    client : Client or several
        What the functions ask, so that its tokens and requests are counted.
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
        with `client` ``tokens_in`` and ``tokens_out`` their tokens; NaN where they are not known.
        ``attrs["account"]`` counts the cells and the requests that `client` sent: see `ragnb.store.Run`.

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
    clients = [client] if isinstance(client, Client) else [*client]
    frame = read_cases(cases)

    async def work(cell: Cell) -> Outcome:
        started = time.perf_counter()
        question = cell.inputs["question"]
        passages = None
        if retrieve is not None:
            passages = _texts_of(await called("retrieve", retrieve, question))
        answer = await called("generate", generate, question, passages)
        if not isinstance(answer, str):
            raise CallFailed(f"generate returned {type(answer).__name__}, not a text")
        value = {"retrieved_contexts": passages, "answer": answer}
        return Outcome.of(value | _measured(started, bool(clients)))

    # Part of the inputs only where a version is named, so that answers stored without one are found again.
    about_system = {"version": version} if version else {}
    lacking = missing_fields(frame, ["question"])
    cells = [
        Cell(sample_id, "answer", {"question": question} | about_system, system, missing=missing)
        for sample_id, question, missing in zip(
            frame["sample_id"], frame["question"], lacking, strict=True
        )
    ]
    with opened(store) as kept:
        run = run_cells(
            cells,
            work,
            kept,
            clients=clients,
            name=system,
            concurrency=concurrency,
            progress=progress,
            label="answer",
        )
    answers = run.frame
    values = pd.DataFrame([value or {} for value in answers["value"]], frame.index, dtype=object)
    # None where a system failed, and not NaN, which is neither a list of passages nor a text.
    given = values.reindex(columns=["retrieved_contexts", "answer"]).replace({np.nan: None})
    done = frame.assign(**given)
    done["answer__status"] = answers["status"].replace("pending", "missing").tolist()
    # Without a client of ours nobody counts tokens or costs.
    measures = MEASURED if clients else MEASURED[:1]
    for name in measures:
        done[name] = pd.to_numeric(values.get(name, pd.Series(index=frame.index))).tolist()
    done["answer__reason"] = answers["reason"].tolist()
    if system:
        done["system"] = system
    done.attrs["account"] = run.account
    return done


def _texts_of(passages: Any) -> list[str] | None:
    """Return the texts of what a retriever found, texts or passages of any library; None for no retrieval."""
    if passages is None:
        return None
    if isinstance(passages, str | bytes | dict) or not isinstance(passages, Iterable):
        raise CallFailed(f"retrieve returned {type(passages).__name__}, not a list of texts")
    texts = []
    for passage in passages:
        try:
            text = passage_text(passage)
        except RagnbError as error:
            raise CallFailed(f"retrieve: {error}") from None
        if text is None:
            raise CallFailed(
                f"retrieve returned a list of {type(passage).__name__}, not a list of texts"
            )
        texts.append(text)
    return texts


def _measured(started: float, asks_model: bool) -> dict[str, Any]:
    """Return what an answer took; of a call that was paid before a run was killed, what it took then."""
    meter = METER.get()
    calls = meter.recalled if meter else []
    seconds = time.perf_counter() - started + sum(call.seconds for call in calls)
    tokens: list[int | None] = [None, None]
    if meter and asks_model:
        tokens = meter.tokens_of_all
    return dict(zip(MEASURED, [round(seconds, 3), *tokens], strict=True))


async def called(what: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a thread, and await what it returns if need be; what it raises is a failed call."""
    try:
        # A coroutine function returns at once, and what it returns runs in the loop.
        result = await asyncio.to_thread(function, *args)
        if inspect.isawaitable(result):
            return await result
        return result
    except (CallFailed, Stop):
        raise
    except Exception as error:
        raise CallFailed(f"{what}: {type(error).__name__}: {error}") from None


def _forget_of_another_folder(module: str, folder: Path) -> None:
    """Forget an imported module where the folder has its own: two scenarios may each have a rag.py."""
    top = module.partition(".")[0]
    candidates = [folder / f"{top}.py", folder / top / "__init__.py"]
    in_folder = {path.resolve() for path in candidates if path.is_file()}
    imported_from = getattr(sys.modules.get(top), "__file__", None)
    if not in_folder or imported_from is None or Path(imported_from).resolve() in in_folder:
        return
    # A copy, because the loop deletes entries.
    for name in list(sys.modules):
        if name == top or name.startswith(f"{top}."):
            del sys.modules[name]
    # The folder may have changed since the importer listed it.
    importlib.invalidate_caches()


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
    module, _, function = name.partition(":")
    if not (module.strip() and function.strip()):
        raise RagnbError(
            f"{name!r} does not name a function; write package.module:function, such as rag:answer"
        )
    first = str(folder.resolve())
    if sys.path[:1] != [first]:
        sys.path.insert(0, first)
    _forget_of_another_folder(module, folder)
    try:
        imported = importlib.import_module(module)
    except Exception as error:
        raise RagnbError(
            f"{name!r}: the module {module!r} cannot be imported ({type(error).__name__}: {error}); looked for "
            f"in {folder.resolve()} and among the installed packages"
        ) from error
    value: Callable[..., Any] | None = getattr(imported, function, None)
    if value is None or not callable(value):
        public = {key: item for key, item in vars(imported).items() if not key.startswith("_")}
        have = [key for key, item in public.items() if callable(item)]
        raise RagnbError(
            f"{name!r}: {module!r} has no such function; {did_you_mean(function, have)}"
        )
    return value
