"""Judge every answer of a set by a rubric: one frame, its notes on top, nothing paid for twice."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, RagnbWarning, listing
from ragnb.judging.asking import Judge, Options, check_whole
from ragnb.judging.judged import Judged, judged_frame, noise_rows, run_notes
from ragnb.judging.plan import frame_of, rubric_work, tasks_of
from ragnb.judging.probes import ALARMS, probe_cells, probe_notes, probe_rows
from ragnb.judging.verdict import TEXTS
from ragnb.schema import Rubric
from ragnb.store import Cell, Client, Estimate, Run, Store, StoreLike, estimate, opened, repeated, run_cells
from ragnb.store.store import systems_of


def judge(
    cases: Any,
    *,
    client: Client,
    rubric: Rubric | None = None,
    store: StoreLike = None,
    repeats: int = 1,
    name: str = "judge",
    progress: bool | None = None,
    **options: Any,
) -> Judged:
    """Have a model score answers by a rubric, from 1 to 10 on accuracy, completeness and clarity.

    Parameters
    ----------
    cases : DataFrame or iterable of EvalCase or mappings
        ``question``, ``answer``, and as far as they are there ``retrieved_contexts``, ``sample_id``, ``system``,
        ``doc_name``, ``ground_truth_answer``, ``ground_truth_contexts``. The judge sees the question, the passages
        and the answer; the reference is only used to say where the evidence stood.
    client : ragnb.store.Client
        The judge's endpoint, with its limits and budgets.
    rubric : Rubric, optional
        By default accuracy .5, completeness .3, clarity .2; passing from accuracy 7 on.
    store : Store or path, optional
        Where judgements are kept: the same call again asks only for what is not there yet. None keeps nothing.
    repeats : int
        Judgements an answer, at least 1; their mean counts, and with 2 or more their noise is told.
    name : str
        Of the run in the store.
    progress : bool, optional
        A progress bar; by default in a terminal and in a notebook.
    **options
        ``lang`` ("en", "zh"): of the prompt and the notes. ``top_k`` (10) and ``max_context_tokens`` (None): how
        many passages are shown. ``peek``: a system of the cases whose passages stand in for those that an answer
        of the same sample lacks. ``temperature`` (0; None sends none), ``parameters``: sent with each call.
        ``structured``: ask for a JSON schema (None: where the endpoint takes one). ``tries`` (2): calls for one
        readable reply. ``probes`` (True): judge six known answers first.

    Returns
    -------
    Judged
        The cases with ``accuracy, completeness, clarity`` (or the rubric's dimensions), ``weighted_score,
        is_passing, analysis, reason, suggestion``, ``<dimension>__status`` and ``__reason``, and ``judge__mode``
        (``contexts``, ``peek``, ``alone``), ``judge__peek``, ``judge__passages`` (retrieved), ``judge__cut`` (of
        them left out or shortened), ``judge__evidence`` (rank of the passage that is needed), ``judge__parse``
        (how the reply was read, or in one word why not: see `parse_verdict`), ``judge__repeats`` (that succeeded),
        ``judge__reply`` (raw). Missing fields give ``not_applicable``, a reply that cannot be read ``failed``;
        neither has a score. ``.notes``, ``.noise`` and ``.probes`` say
        what is to be known of the judge, ``.attrs["judge"]`` which run it was and what it took.

    Raises
    ------
    RagnbError
        For cases without questions, columns that scores would overwrite, and options that make no sense.
    Stop
        Where the endpoint refuses every call.

    Warns
    -----
    RagnbWarning
        For failed cells, a used-up budget, and a judge that is not to be trusted.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> judged = judge([{"question": "Who pays?", "answer": None}], client=client, probes=False)
    >>> judged[["accuracy", "accuracy__status", "accuracy__reason"]]
       accuracy accuracy__status accuracy__reason
    0       NaN   not_applicable        no answer
    """
    rubric, chosen = rubric or Rubric(), Options.of(options)
    frame, tasks, cells, probes = _planned(cases, client, rubric, repeats, chosen)
    work = rubric_work(Judge(client, chosen), rubric)
    with opened(store) as kept:
        probed = []
        if probes:
            first = run_cells(probes, work, kept, clients=[client], name="probes", progress=progress)
            probed = probe_rows(first.frame, rubric, chosen.lang)
        about = {"model": client.profile.model, "options": chosen.about, "repeats": repeats}
        about |= {"rubric": rubric.model_dump(mode="json"), "systems": systems_of(frame)}
        run = run_cells(cells, work, kept, clients=[client], name=name, about=about, progress=progress)
        spent = _spent(kept, run)
    found = judged_frame(frame, tasks, run.frame, rubric)
    noise = noise_rows(run.frame, len(tasks), rubric)
    told = run_notes(found, rubric, noise, chosen, run.stopped)
    rows = [*probe_notes(probed, rubric, chosen.lang), *told]
    for row in rows:
        if row["code"] in ALARMS:
            warnings.warn(row["text"], RagnbWarning, stacklevel=2)
    judged = Judged(found)
    judged.attrs = dict(frame.attrs) | {
        "judge": {"run": run.id, "model": client.profile.model, "lang": chosen.lang, "stopped": run.stopped}
        | {"notes": rows, "noise": noise, "probes": probed, "spent": spent}
    }
    return judged


def dry_run(
    cases: Any, client: Client, *, rubric: Rubric | None = None, store: StoreLike = None, repeats: int = 1,
    **options: Any,
) -> Estimate:  # fmt: skip
    """Say how many calls and about how many tokens `judge` would need, probes among them; nothing is sent.

    Calls are counted without retries and second tries, and tokens with about 400 a reply.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> dry_run([{"question": "Who pays?", "answer": "Ann."}], client, repeats=3).calls
    9
    """
    _, _, cells, probes = _planned(cases, client, rubric or Rubric(), repeats, Options.of(options))
    with opened(store, new=False) as kept:
        return estimate([*probes, *cells], kept)


def _planned(
    cases: Any, client: Client, rubric: Rubric, repeats: int, options: Options
) -> tuple[pd.DataFrame, list[Any], list[Cell], list[Cell]]:
    """The cases, their tasks, the cells of all repeats, and the cells of the probes."""
    check_whole("repeats", repeats)
    frame = frame_of(cases)
    made = [*(d.name for d in rubric.dimensions), "weighted_score", "is_passing", *TEXTS]
    there = [column for column in made if column in frame.columns]
    if there:
        raise RagnbError(f"the cases hold {listing(there)} already; drop or rename what the judge would overwrite")
    tasks = tasks_of(frame, client.profile.model, rubric, options)
    probes = probe_cells(client.profile.model, rubric, options) if options.probes else []
    return frame, tasks, list(repeated([task.cell for task in tasks], repeats)), probes


def _spent(store: Store, run: Run) -> dict[str, Any]:
    """What all attempts at a run's cells took, those of earlier calls among them."""
    attempts = store.history(run.id).drop_duplicates(["key", "at"])
    known = {name: attempts[name] for name in ("calls", "tokens_in", "tokens_out", "seconds")}
    return {name: None if part.isna().any() else part.sum() for name, part in known.items()}


