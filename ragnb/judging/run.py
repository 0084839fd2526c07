"""Judging: scores of answers by a rubric, with probes, notes, and what it cost."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbWarning, listing
from ragnb.judging.plan import ALARMS, SEED, Condition, Plan, gates_to_settle, probe_notes
from ragnb.markup import element, one_line
from ragnb.markup.rendering import fragment
from ragnb.schema import (
    NOTE_COLUMNS,
    STOPPED_EARLY,
    Gate,
    Rubric,
    holding_notes,
    keep_results,
)
from ragnb.stats import Flags
from ragnb.store.client import Client
from ragnb.store.loop import Estimate, Run, estimate, run_cells, total_account
from ragnb.store.store import Store, StoreLike, opened, systems_of

NOISE_COLUMNS = ("metric", "value", "low", "high", "n", "n_judgements", "least_difference")


class Judged(pd.DataFrame):
    """A scores frame with notes on the reliability of its judge.

    What is made of it (a selection, a merge) is a plain DataFrame.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    @property
    def about(self) -> dict[str, Any]:
        """Which run of the judge it was and what it took: what ``attrs["judge"]`` holds, see `judge`."""
        return cast(dict[str, Any], self.attrs["judge"])

    @property
    def notes(self) -> pd.DataFrame:
        """The notes on the scores: ``code, about, text``."""
        return pd.DataFrame(self.about["notes"], columns=list(NOTE_COLUMNS), dtype=object)

    @property
    def noise(self) -> pd.DataFrame:
        """The judge's noise, one row per metric, from repeated judgements; empty without repeats.

        ``value`` is the standard deviation of one judgement of one answer, ``low, high`` its interval, ``n``
        answers, ``n_judgements``, and ``least_difference`` (1.96·√2·value) what two single judgements differ by
        before it is more than noise.
        """
        return pd.DataFrame(self.about["noise"], columns=list(NOISE_COLUMNS))

    @property
    def probes(self) -> pd.DataFrame:
        """The probes judged before the run: ``pair, kind, value, status, reason``."""
        return pd.DataFrame(
            self.about["probes"], columns=["pair", "kind", "value", "status", "reason"]
        )

    def __repr__(self) -> str:
        return as_text(self.notes, pd.DataFrame(self))

    def _repr_html_(self) -> str:
        return as_html(self.notes, pd.DataFrame(self), str(self.about["lang"]))


def as_text(notes: pd.DataFrame, table: pd.DataFrame) -> str:
    """Return notes and the table below them for a terminal."""
    items = [f"- {one_line(text)}" for text in notes["text"]]
    return "\n".join([*items, "", repr(table)])


def as_html(notes: pd.DataFrame, table: pd.DataFrame, lang: str) -> str:
    """Return notes and the table below them for a notebook."""
    items = element("ul", *(element("li", text) for text in notes["text"]))
    return str(fragment(items, lang=lang)) + table.to_html(max_rows=20, max_cols=12)


def judge(
    cases: Any,
    *,
    client: Client,
    rubric: Rubric | None = None,
    store: StoreLike = None,
    repeats: int = 1,
    name: str = "judge",
    stop_when: Iterable[Gate] | None = None,
    doc: str = "doc_name",
    doc_weights: Mapping[str, float] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Judged:
    """Score answers by a rubric with a model, from 1 to 10 on accuracy, completeness and clarity.

    Parameters
    ----------
    cases : path, frame, records or sequence of EvalCase
        What `read_cases` reads: ``question``, ``answer``, and optionally ``retrieved_contexts``,
        ``sample_id``, ``system``, ``doc_name``, ``ground_truth_answer``, ``ground_truth_contexts``. The judge
        sees the question, the passages and the answer; the reference only gives the rank of the evidence.
    client : ragnb.store.Client
        The judge's endpoint, with its limits and budgets.
    rubric : Rubric, optional
        By default accuracy .5, completeness .3, clarity .2; passing from accuracy 7 on.
    store : Store or path, optional
        Where judgements are saved: the same call again judges only what is missing. None saves nothing.
    repeats : int
        judgements per answer, at least 1; they are averaged, and with 2 or more their noise is estimated.
    name : str
        Of the run in the store.
    stop_when : iterable of Gate, optional
        Stop once the remaining answers cannot change on which side of its threshold the value of any of these
        gates is, of the rubric's dimensions or ``weighted_score``. The same call without it judges the rest.
    doc : str
        The column of the document, by which the order is balanced.
    doc_weights : mapping of document to weight, optional
        Of those values, as in `ragnb.weighted_means`.
    progress : bool, optional
        A progress bar; by default in a terminal and in a notebook.
    **options
        ``lang`` ("en", "zh"): of the prompt and the notes. ``top_k`` (10) and ``max_context_tokens`` (None): how
        many passages are shown. ``peek``: a system of the cases whose passages are used for those that an answer
        of the same sample lacks. ``temperature`` (0; None sends none), ``parameters``: sent with each call.
        ``tries`` (2): calls for one readable reply. ``probes`` (True): judge six answers of known quality first.

    Returns
    -------
    Judged
        The cases with ``accuracy, completeness, clarity`` (or the rubric's dimensions), ``weighted_score,
        is_passing, analysis, reason, suggestion``, ``<dimension>__status`` and ``__reason``, and ``judge__mode``
        (``contexts``, ``peek``, ``alone``), ``judge__peek``, ``judge__passages`` (retrieved), ``judge__cut`` (of
        them left out or shortened), ``judge__evidence`` (rank of the passage that is needed), ``judge__parse``
        (how the reply was read, or in one word why not: see `parse_verdict`), ``judge__repeats`` (that succeeded),
        ``judge__reply`` (raw). Missing fields give ``not_applicable``, a reply that cannot be read ``failed``;
        neither has a score. ``.notes``, ``.noise`` and ``.probes``
        describe the reliability of the judge, ``.attrs["judge"]`` which run it was, what it took, the ``account``
        of its cells, probes among them, and requests (see `ragnb.store.Run`), and whether it
        ``stopped_early``, with the ``calls_saved``: what is left out is ``missing``, its reason ``stopped early``.

    Raises
    ------
    RagnbError
        For cases without questions, columns that scores would overwrite, options that make no sense, and gates
        that judging cannot settle.
    Stop
        Where the endpoint refuses every call.

    Warns
    -----
    RagnbWarning
        For failed cells, a used-up budget, and a judge that cannot be trusted.

    Notes
    -----
    Answers are judged in a random order, always the same, in which every beginning holds each document (``doc``)
    in proportion and all answers to a question come together: what a used-up budget leaves is a fair sample. With
    `stop_when` they are looked at after a fifth of the questions, at least 50, and then after each tenth; the
    rule is `ragnb.stats.side_is_settled`, on weighted means and Kish's numbers of rows.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> judged = judge([{"question": "Who pays?", "answer": None}], client=client, probes=False)
    >>> judged[["accuracy", "accuracy__status", "accuracy__reason"]]
       accuracy accuracy__status accuracy__reason
    0       NaN   not_applicable        no answer
    """
    plan = Plan(cases, client, rubric, options | {"repeats": repeats})
    if stop_when is None:
        gates = []
    else:
        gates = gates_to_settle(stop_when, plan.rubric)
    about = {
        "model": client.profile.model,
        "options": plan.options.about,
        "repeats": repeats,
        "rubric": plan.rubric.model_dump(mode="json"),
        "systems": systems_of(plan.frame),
        "order": {"balanced_by": doc, "seed": SEED},
    }
    weighed = {"doc": doc, "doc_weights": doc_weights}
    with opened(store) as kept:
        done = _run(plan, kept, gates, weighed, client=client, name=name, about=about, bar=progress)
    pending = STOPPED_EARLY if done.saved else "not judged yet"
    judged = Judged(plan.scores(done.run.frame, pending))
    noise = plan.noise(done.run.frame)
    probe_rows, notes = probe_notes(done.probed, plan.rubric, plan.options.lang)
    notes += _notes(plan, judged, noise, done, gates)
    for note in notes:
        if note["code"] in ALARMS:
            warnings.warn(note["text"], RagnbWarning, stacklevel=2)
    judged.attrs = dict(plan.frame.attrs)
    judged.attrs["judge"] = {
        "run": done.run.id,
        "model": client.profile.model,
        "lang": plan.options.lang,
        "stopped": done.run.stopped,
        "notes": notes,
        "noise": noise,
        "probes": probe_rows.to_dict("records"),
        "spent": done.spent,
        "account": done.account,
        **done.early,
    }
    keep_results(cases, judged)
    return judged


@dataclass(frozen=True)
class _Done:
    """What a store holds once all cells of a plan are judged, or as many as were to be.

    Attributes
    ----------
    run : Run
        The judgements.
    probed : DataFrame
        The probes judged before; empty without.
    account : dict
        The cells and requests of both.
    spent : dict
        What all attempts took, those of earlier calls among them.
    saved : int
        The judgements that were not needed to decide the gates.
    """

    run: Run
    probed: pd.DataFrame
    account: dict[str, int]
    spent: dict[str, Any]
    saved: int

    @property
    def early(self) -> dict[str, Any]:
        """What a run says of itself that stopped as soon as its gates were decided."""
        return {"stopped_early": bool(self.saved), "calls_saved": self.saved}


def _run(
    plan: Plan,
    kept: Store,
    gates: Sequence[Gate],
    weighed: dict[str, Any],
    *,
    client: Client,
    name: str,
    about: Mapping[str, Any],
    bar: bool | None,
) -> _Done:
    """Judge the probes, then the answers until all are judged or `gates` are decided."""
    how: dict[str, Any] = {"clients": [client], "progress": bar}
    accounts = list[Mapping[str, int]]()
    probed = pd.DataFrame()
    if plan.probes:
        of_probes = run_cells(
            plan.probes, plan.work, kept, name="probes", label="judge: probes", **how
        )
        probed = of_probes.frame
        accounts.append(of_probes.account)
    # The run is in the store before the first round, as `settled` reads it there; `run_cells` takes it up.
    planned = kept.plan(plan.cells, name=name, about=about)

    def settled(shown: Flags) -> bool:
        return plan.are_settled(plan.scores(kept.frame(planned)), shown, gates, weighed)

    rounds = plan.rounds(weighed["doc"], settled if gates else None)
    run = run_cells(
        plan.cells, plan.work, kept, name=name, about=about, rounds=rounds, label="judge", **how
    )
    accounts.append(run.account)
    saved = 0
    # What a budget or an error left open is still wanted.
    if not run.stopped:
        saved = int(run.frame.loc[run.frame["status"] == "pending", "key"].nunique())
    spent = spent_on(kept.frame(run.id, attempts="all"))
    done = _Done(run, probed, total_account(accounts), spent, saved)
    if saved:
        # Who reads the store shall see that its open judgements are not wanted.
        kept.plan(plan.cells, name=name, about={**about, **done.early})
    return done


def _notes(
    plan: Plan, judged: pd.DataFrame, noise: Any, done: _Done, gates: Sequence[Gate]
) -> list[dict[str, str]]:
    """Return what must be known to read the scores."""
    words = {
        "n": judged[f"{plan.rubric.passing.metric}__reason"].eq(STOPPED_EARLY).sum(),
        "of": len(judged),
        "gates": listing(gate.name for gate in gates),
        "calls": done.saved,
    }
    conditions = [
        *plan.notes(judged, noise, done.run.stopped),
        Condition(done.saved, "stopped_early", "", words),
    ]
    return holding_notes(texts.load(plan.options.lang), conditions, "judge.note")


def spent_on(history: pd.DataFrame) -> dict[str, Any]:
    """Return what the attempts of a history took, those of earlier calls among them; None where it is unknown."""
    # Rows of equal input share a cell, whose attempts the history then holds more than once.
    attempts = history.drop_duplicates(["key", "at"])
    columns = {name: attempts[name] for name in ("calls", "tokens_in", "tokens_out", "seconds")}
    return {name: None if cells.isna().any() else cells.sum() for name, cells in columns.items()}


def dry_run(
    cases: Any,
    client: Client,
    *,
    rubric: Rubric | None = None,
    store: StoreLike = None,
    repeats: int = 1,
    **options: Any,
) -> Estimate:
    """Estimate the calls and tokens that `judge` would need, including probes; nothing is sent.

    Calls are counted without retries and second tries, and tokens with about 400 a reply.

    Examples
    --------
    >>> from ragnb.schema import Profile
    >>> client = Client(Profile(base_url="http://127.0.0.1:8080/v1", model="small"))
    >>> dry_run([{"question": "Who pays?", "answer": "Ann."}], client, repeats=3).calls
    9
    """
    plan = Plan(cases, client, rubric, options | {"repeats": repeats})
    return estimate([*plan.probes, *plan.cells], store)
