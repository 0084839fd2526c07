"""What is compared: frames, files, scenarios, run folders, runs of a store → the questions of two systems."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError, listing, near_names, need_known, unknown
from ragnb.files import slug
from ragnb.inputs import read_scenario, scenario_of, streams
from ragnb.readers.names import rename_map
from ragnb.scenario import Scenario, load_scenario
from ragnb.schema import Metric
from ragnb.weights import Batch, Reduction, check_weights, column_names, reduce_batches
from ragnb.weights.clusters import INSIDE, QUESTIONS, need_documents, question_clusters, question_of
from ragnb.weights.conversations import is_conversation
from ragnb.weights.total import Array

REPORTS = Path("reports")
# What two runs of one evaluation have in common; files and columns are each run's own.
REFERENCE = "ground_truth_answer"
_SHARED = (
    "lang",
    "doc",
    "cluster",
    "rubric",
    "metrics",
    "metric_weights",
    "doc_weights",
    "orient",
    "rescale",
    "level",
    "candidate",
    "baseline",
    "anchor",
    "gates",
    "corpus",
    "no_data",
)
# What became of a metric of one question under one system; absent is a question that it was not asked.
STATES = ("ok", "failed", "not_applicable", "missing", "absent")


@dataclass(frozen=True)
class Run:
    """The scores of one run.

    Attributes
    ----------
    name : str
        Of its file or system.
    scenario : Scenario
        Its settings.
    frame : DataFrame of any engine
    metrics : tuple of Metric
    system : str
        The column that names systems.
    judge : str
        The judge and its rubric, as its own settings name them; empty where they name none.
    numbered : bool
        Whether its ids are places in the file, as it has none.
    """

    name: str
    scenario: Scenario
    frame: Any
    metrics: tuple[Metric, ...]
    system: str = "system"
    judge: str = ""
    numbered: bool = False

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Those that its rows name."""
        named = self.system in column_names(self.frame)
        if named:
            return tuple(str(name) for name in streams.distinct_values(self.frame, self.system))
        return ()


def run_of(
    source: Any,
    *,
    system: str = "system",
    settings: Mapping[str, Any] | None = None,
    like: Scenario | None = None,
    name: str = "",
) -> Run:
    """Read one run.

    Parameters
    ----------
    source : DataFrame, path or Scenario
        See `ragnb.compare`.
    settings : mapping
        Fields of `Scenario` that apply to this call.
    like : Scenario, optional
        The settings of the run that it is compared with.
    name : str
        Of a frame whose rows name no single system.
    """
    shared = {
        key: getattr(like, key)
        for key in _SHARED
        if like is not None and key in like.model_fields_set
    }
    settings = shared | dict(settings or {})
    label = ""
    snapshot = None
    if isinstance(source, str | os.PathLike):
        label, source, snapshot = _at(os.fspath(source), settings)
    frame = None if isinstance(source, Scenario) else source
    scenario = (source if frame is None else Scenario.without_files()).replace(**settings)
    scenario, inputs, metrics = read_scenario(scenario, frame)
    made = any((row["what"], row["column"]) == ("made", "sample_id") for row in inputs.lossy)
    label = label or (scenario.name if frame is None else "")
    judge = judge_of(snapshot or scenario)
    run = Run(label or name, scenario, inputs.frame, tuple(metrics), system, judge, made)
    if not label and len(run.systems) == 1:
        return replace(run, name=run.systems[0])
    return run


def located(path: str) -> str | None:
    """Return the file or folder that a path or scenario name refers to, None if there is none.

    ``latest`` is the newest run of all scenarios, ``reports/NAME/latest`` or ``NAME`` the newest of one;
    ``store.sqlite#RUN`` is a run of a store.
    """
    file, sign, _ = path.rpartition("#")
    if (sign and Path(file).is_file()) or Path(path).exists():
        return path
    if Path(path).name == "latest":
        pointers = [Path(path).with_name("latest.txt")]
    else:
        pointers = []
    pointers += [Path(path) / "latest.txt", REPORTS / slug(path) / "latest.txt"]
    if path == "latest":
        pointers = sorted(
            REPORTS.glob("*/latest.txt"), key=lambda one: one.stat().st_mtime, reverse=True
        )
    named = (
        str(one.parent / one.read_text(encoding="utf-8").strip())
        for one in pointers
        if one.is_file()
    )
    return next(named, None)


def need_baseline(baseline: str, systems: Collection[str]) -> None:
    """Refuse a baseline that is neither one of the systems nor a file or run."""
    if baseline not in systems and located(baseline) is None:
        folder = Path(baseline).parent
        there: list[str] = []
        with suppress(OSError):
            there = [entry.name for entry in folder.iterdir() if entry.is_file()]
        tables = [str(folder / name) for name in near_names(Path(baseline).name, there, least=75)]
        step = "Name one of these, a table of scores, or a run such as reports/NAME/latest"
        raise unknown("baseline", baseline, [*systems, *tables], step)


def _at(path: str, settings: Mapping[str, Any]) -> tuple[str, Any, Scenario | None]:
    """Return the name of a run, if it is not that of its settings, what it is read from, and its snapshot."""
    if (place := located(path)) is None:
        raise RagnbError(
            f"{path}: there is no such file, folder of a run or scenario with a run in {REPORTS}/; name a table "
            "of scores, reports/NAME/latest, or store.sqlite#RUN"
        )
    file, sign, run = place.rpartition("#")
    if sign and Path(file).is_file():
        from ragnb.store import Store

        with Store(file, new=False) as store:
            return store.named(run), store.scores(run), None
    if not (Path(place).is_dir() and (Path(place) / "run.json").is_file()):
        return "", scenario_of(Path(place), settings), None
    if not (table := Path(place) / "scores.csv").is_file():
        raise RagnbError(
            f"{place}: the run was read in a stream and kept only its worst rows (worst.csv); compare the files "
            "that it was made from"
        )
    snapshot = load_scenario(Path(place) / "scenario.snapshot.yaml")
    kept = {key: getattr(snapshot, key) for key in _SHARED if key in snapshot.model_fields_set}
    label = f"{snapshot.name} {Path(place).name.partition('-')[0]}"
    return label, Scenario(scores=table, name=snapshot.name, **kept), snapshot


def judge_of(scenario: Scenario) -> str:
    """Return what decides a judge's scores, as one text."""
    profile = scenario.llm_profiles.get("judge")
    rubric = scenario.rubric
    if profile:
        who = f"{profile.model} at {profile.base_url}"
    else:
        who = ""
    if rubric:
        return f"{who} {rubric.model_dump_json()}"
    return who


@dataclass(frozen=True)
class Pairs:
    """The questions of two systems, including those that only one of them has.

    Attributes
    ----------
    metrics : tuple of Metric
    candidate, baseline : str
    labels : DataFrame
        One row per question: the key that identifies it, and the columns requested (document, cluster, …).
    scores : (2, Q, K) float
        Of the candidate, then the baseline: the mean over repeats, nan where there is none.
    states : (2, Q, K) int
        Index into `STATES`.
    noise : (2, Q, K) float
        The variance that repeats alone give to that mean; nan without repeats.
    clusters : (Q,) int
        The column of clusters of correlated rows.
    unit : str
        What the clusters are: ``cluster``, ``document``, ``question`` or ``row``; `INSIDE` of a complete corpus.
    weights : (Q,) float
        Of the questions' documents.
    reworded : int
        Questions of one id whose texts differ: they are no pairs.
    new_references : int
        Common questions whose reference answers differ.
    origins : pair of (run, system)
        Where the rows of both systems are, with their texts; None where the rows are of one system.
    human : (2, Q, K) float, optional
        What people gave, see `rated_pairs`.
    """

    metrics: tuple[Metric, ...]
    candidate: str
    baseline: str
    labels: pd.DataFrame
    scores: Array
    states: npt.NDArray[np.int8]
    noise: Array
    clusters: npt.NDArray[np.intp]
    unit: str
    weights: Array
    reworded: int
    new_references: int
    origins: tuple[tuple[Run, str | None], ...]
    human: Array | None = None

    @property
    def complete(self) -> bool:
        """Whether the clusters are documents, and these are the entire corpus."""
        return self.unit == INSIDE

    @property
    def key(self) -> str:
        """The column that identifies questions."""
        return str(self.labels.columns[0])

    @property
    def swapped(self) -> Pairs:
        """The same questions with the baseline as the candidate."""
        ends = {"candidate_label": "baseline_label", "baseline_label": "candidate_label"}
        return replace(
            self,
            candidate=self.baseline,
            baseline=self.candidate,
            labels=self.labels.rename(columns=ends),
            scores=self.scores[::-1],
            states=self.states[::-1],
            noise=self.noise[::-1],
            origins=self.origins[::-1],
            human=None if self.human is None else self.human[::-1],
        )


def rows_of(
    frame: Any,
    metrics: Sequence[Metric],
    labels: Iterable[str | None],
    *,
    doc: str = "doc_name",
    texts: Sequence[str] = (),
    only: Mapping[str, Sequence[Any]] | None = None,
) -> pd.DataFrame:
    """Return the scores, statuses and labels of rows of any engine, those whose labels are among `only`.

    Names of documents, in the column `doc`, are compared in Unicode form NFC, as their weights are. `texts` are
    columns taken as they are.

    Examples
    --------
    >>> rows_of(pd.DataFrame({"sample_id": ["1"], "faithfulness": [0.5]}), [Metric("faithfulness")], ["sample_id"])
      sample_id  faithfulness  faithfulness__status
    0         1           0.5                     0
    """
    have = column_names(frame)
    kept = [name for name in dict.fromkeys(labels) if name is not None and name in have]

    def of_batch(batch: Batch) -> pd.DataFrame:
        coded = {name: batch.labels(name, compose=name == doc) for name in kept}
        columns = {
            name: np.array([*one.names, None], dtype=object)[one.codes]
            for name, one in coded.items()
        }
        for metric in metrics:
            score = batch.values(metric)
            state = batch.status(metric)
            columns[metric.name] = score
            columns[f"{metric.name}__status"] = np.where(
                (state == 0) & np.isnan(score), np.int8(3), state
            )
        table = pd.DataFrame(columns | {name: batch.frame[name].to_numpy(object) for name in texts})
        if only:
            return table[table[[*only]].isin(only).all(axis=1)]
        return table

    return cast(
        pd.DataFrame,
        reduce_batches(frame, metrics, [Reduction(of_batch, pd.concat, [*kept, *texts])])[0],
    )


def paired_runs(
    run: Run,
    baseline: Any = None,
    candidate: str | None = None,
    on: str | None = None,
    by: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> tuple[Run, list[Pairs]]:
    """Pair each candidate of a run with its baseline; return the run that contains the baseline too."""
    scenario = run.scenario
    system = run.system
    if baseline is None:
        baseline = scenario.baseline
    if baseline is None:
        baseline = scenario.anchor
    if baseline is None:
        if run.systems:
            have = f"one of the systems {listing(run.systems)}, or another run"
        else:
            have = "another run"
        raise RagnbError(f"compare needs a baseline: name {have}: baseline='…'")
    inside = isinstance(baseline, str) and baseline in run.systems
    if isinstance(baseline, str):
        need_baseline(baseline, run.systems)
    if inside:
        other = run
    elif isinstance(baseline, Run):
        other = baseline
    else:
        other = run_of(baseline, system=system, settings=settings, like=scenario, name="baseline")
    metrics = _shared_metrics(run, other)
    columns = list(dict.fromkeys(name for one in (run, other) for name in column_names(one.frame)))
    on = _column_of(on, columns)
    for option, column in {"on": on, "by": by}.items():
        if column is not None:
            need_known(option, column, columns, "Neither side has it.")
    asked = all("question" in column_names(one.frame) for one in (run, other))
    if (run.numbered or other.numbered) and not (inside or on or asked):
        raise RagnbError(
            "rows without sample_id and question could only be paired by their places; give both sides a column "
            "sample_id or question, or name the one that tells their questions: on='…'"
        )
    read: tuple[str | None, ...] = ("sample_id", "question", on, scenario.doc, scenario.cluster)
    read += (by, "label", system)
    if not inside:
        read += (REFERENCE,)
    rows = [rows_of(run.frame, metrics, read, doc=scenario.doc)]
    if inside:
        rows += rows
    else:
        rows += [rows_of(other.frame, metrics, read, doc=scenario.doc)]
    out = []
    for pair in _sides(run, other, baseline if inside else None, candidate or scenario.candidate):
        of_pair = zip(rows, pair, strict=True)
        sides = [part if name is None else part[part[system] == name] for part, name in of_pair]
        new = pair[0] or run.name or "candidate"
        old = pair[1] or other.name or "baseline"
        if new != old:
            names = (new, old)
        else:
            names = (f"{new} (new)", f"{old} (old)")
        out.append(_paired(sides, metrics, on, scenario, names, ((run, pair[0]), (other, pair[1]))))
    return other, out


def anchor_beside(scenario: Scenario, baseline: Any) -> Any:
    """Return the accepted run of a scenario; None without one, and where it is the baseline anyway."""
    anchor = scenario.anchor
    if anchor is None or not isinstance(baseline, str | Path):
        return anchor
    if Path(baseline).resolve() == Path(anchor).resolve():
        return None
    return anchor


def _column_of(on: str | None, columns: Sequence[str]) -> str | None:
    """Return the column that tells questions by the name it has here, as other tools write it or as we do."""
    if on is None or on in columns:
        return on
    return rename_map([on]).get(on, on)


def pairs_of_systems(
    run: Run, on: str | None = None, *, couples: Iterable[tuple[str, str]]
) -> Iterator[Pairs]:
    """Yield the pairs of systems of one run, each couple a candidate and its baseline; rows are read once."""
    scenario = run.scenario
    columns = [*column_names(run.frame)]
    on = _column_of(on, columns)
    if on is not None:
        need_known("on", on, columns, "Neither side has it.")
    read = ("sample_id", "question", on, scenario.doc, scenario.cluster, "label", run.system)
    rows = rows_of(run.frame, run.metrics, read, doc=scenario.doc)
    parts = {name: rows[rows[run.system] == name] for name in run.systems}
    for new, old in couples:
        origins = (run, new), (run, old)
        yield _paired([parts[new], parts[old]], run.metrics, on, scenario, (new, old), origins)


def _shared_metrics(run: Run, other: Run) -> list[Metric]:
    theirs = {metric.name: metric for metric in other.metrics}
    if not (metrics := [metric for metric in run.metrics if metric.name in theirs]):
        raise RagnbError(
            f"the two sides share no metric ({listing(m.name for m in run.metrics)}; {listing(theirs)}); score "
            "both with the same metrics"
        )
    for name, (low, high) in ((metric.name, (metric.low, metric.high)) for metric in metrics):
        if (theirs[name].low, theirs[name].high) != (low, high):
            raise RagnbError(
                f"{name!r} goes from {low:g} to {high:g} on one side and from {theirs[name].low:g} to "
                f"{theirs[name].high:g} on the other; declare one range for both"
            )
    return metrics


def _sides(
    run: Run, other: Run, inside: str | None, candidate: str | None
) -> Iterable[tuple[str | None, str | None]]:
    """Return which systems are compared; None is a run that names none, or one only."""
    if candidate is not None:
        need_known("candidate", candidate, run.systems)
    chosen: Sequence[str | None] = run.systems
    if candidate is not None:
        chosen = [candidate]
    if inside is not None:
        if not (others := [name for name in chosen if name != inside]):
            raise RagnbError(
                f"{inside!r} is compared with itself; name another system, or another run: baseline='…'"
            )
        return [(name, inside) for name in others]
    if len(run.systems) <= 1:
        chosen = [None]
    several = len(other.systems) > 1
    if lacking := [name for name in chosen if several and name not in other.systems]:
        step = "write the rows of one of them to a file of its own, and compare with that"
        if lacking[0] is None:
            raise RagnbError(
                f"the baseline holds the systems {listing(other.systems)}, and the other side names none; {step}"
            )
        raise RagnbError(
            f"the baseline holds the systems {listing(other.systems)}, none named {lacking[0]!r}; {step}"
        )
    return [(name, name if several else None) for name in chosen]


def _paired(
    sides: Sequence[pd.DataFrame],
    metrics: Sequence[Metric],
    on: str | None,
    scenario: Scenario,
    names: tuple[str, str],
    origins: Any,
) -> Pairs:
    """Return the questions of two systems as pairs, from the rows of the candidate and the baseline."""
    system = origins[0][0].system
    key = on or _key(sides)
    for name, side in zip(names, sides, strict=True):
        need_known("on", key, [str(c) for c in side.columns], f"{name!r} does not have it.")
    rows = pd.concat(
        [side.drop(columns=system, errors="ignore") for side in sides], ignore_index=True
    )
    of_new = np.repeat([True, False], [len(side) for side in sides])[rows[key].notna()]
    rows = rows[rows[key].notna()]
    code, questions = pd.factorize(rows[key])
    size = len(questions)
    scored = [metric.name for metric in metrics]
    # The cells of the candidate's questions come first, then those of the baseline's.
    cells, cell, shape = (
        range(2 * size),
        # A Series: pandas writes an array out in words before it takes it as keys.
        pd.Series(np.where(of_new, code, code + size), rows.index),
        (2, size, len(scored)),
    )
    x = rows[scored].astype(float)
    word = rows[[f"{name}__status" for name in scored]].where(x.isna().to_numpy(), 0)
    of_cell = x.groupby(cell)
    scores, noise = (
        np.array(table.reindex(cells)).reshape(shape)
        for table in (of_cell.mean(), of_cell.var() / of_cell.count())
    )
    # Of several rows without a score, a failed one is the most informative.
    states = np.array(word.groupby(cell).min().reindex(cells, fill_value=4), dtype=np.int8).reshape(
        shape
    )
    first = rows.drop(columns=[key, *scored, *word]).groupby(cell).first().reindex(cells)
    new = first[:size]
    old = first[size:].set_axis(range(size))
    labels = new.where(new.notna(), old)
    reworded = np.zeros(size, dtype=bool)
    if "question" in labels:
        texts = new["question"], old["question"]
        reworded = (texts[0].notna() & texts[1].notna() & (texts[0] != texts[1])).to_numpy()
        states[:, reworded], scores[:, reworded] = 4, np.nan
    new_references = 0
    if REFERENCE in labels:
        both = new[REFERENCE].notna() & old[REFERENCE].notna() & ~reworded
        new_references = int((both & (new[REFERENCE] != old[REFERENCE])).sum())
        labels = labels.drop(columns=REFERENCE)
    if "label" in labels:
        labels = labels.assign(candidate_label=new["label"], baseline_label=old["label"])
    labels.insert(0, key, np.asarray(questions, dtype=object))
    if not (states.min(axis=2) < 4).all(axis=0).any():
        if reworded.any():
            raise RagnbError(
                f"{names[0]!r} and {names[1]!r} ask different questions under the same {key} ({reworded.sum()}); "
                "compare runs over one question set, or name the column that tells their questions: on='…'"
            )
        raise RagnbError(
            f"{names[0]!r} and {names[1]!r} have no question in common (by {key}: {listing(questions[:3])}, …); "
            "compare runs over one question set, or name the column that tells their questions: on='…'"
        )
    own = check_weights(scenario.doc_weights, "doc_weights")
    clusters = _clusters(labels, key, scenario)
    docs = labels.get(scenario.doc, pd.Series("", labels.index))
    weights = stats.relative(docs.map(own).fillna(1.0).to_numpy(float))
    counts = int(reworded.sum()), new_references
    return Pairs(
        tuple(metrics), *names, labels, scores, states, noise, *clusters, weights, *counts, origins
    )


def _key(sides: Sequence[pd.DataFrame]) -> str:
    """Return the column that identifies questions: the texts, if ids of one question differ between the sides."""
    if not (shared := [name for name in QUESTIONS if all(name in side for side in sides)]):
        raise RagnbError(
            "it is unclear which rows belong to one question; give both a column sample_id (or question), or name "
            "theirs: on='…'"
        )
    if len(shared) == 1:
        return shared[0]
    whole = [side.dropna(subset=shared).drop_duplicates(shared[0]) for side in sides]
    new, old = (side.set_index(shared[0])["question"] for side in whole)
    same = int(new.eq(old.reindex(new.index)).sum())
    asked = [side["question"].dropna().drop_duplicates() for side in sides]
    common = int(asked[0].isin(asked[1]).sum())
    if common > 2 * same:
        return "question"
    return "sample_id"


def _clusters(
    labels: pd.DataFrame, key: str, scenario: Scenario
) -> tuple[npt.NDArray[np.intp], str]:
    """Return the clusters, as `moments` defines them: the caller's, documents, else questions."""
    batch = Batch(labels)
    doc = scenario.doc
    cluster = scenario.cluster
    if scenario.corpus == "complete":
        need_documents([*labels], doc, cluster, scenario.corpus)
        return batch.groups(doc, compose=True).codes, INSIDE
    docs = batch.labels(doc if doc in labels else None, compose=True)
    questions = None
    if cluster is None:
        questions = question_of(labels.drop(columns=key), doc=doc)
        found = question_clusters(batch, docs, questions)
    else:
        found = batch.labels(cluster)
    codes = np.where(found.codes < 0, len(found.names) + np.arange(len(labels)), found.codes)
    unit = "document" if docs.names else "row"
    if cluster is not None and found.names:
        if is_conversation(cluster):
            unit = "conversation"
        else:
            unit = "cluster"
    return codes, "question" if unit == "row" and questions else unit
