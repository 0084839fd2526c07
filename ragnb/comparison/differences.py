"""Two systems question by question: paired differences with outcomes, and the questions that changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats, texts
from ragnb.calibration import read_ratings
from ragnb.calibration.card import gap
from ragnb.comparison.source import Run, judge_of, need_baseline, run_of, systems_of
from ragnb.diagnostics import failure_modes
from ragnb.diagnostics.findings import MODES, NEEDED
from ragnb.diagnostics.rules import same_scale
from ragnb.errors import RagnbError, listing, need_known, unknown
from ragnb.markup import count
from ragnb.readers.names import rename_map
from ragnb.scenario import Scenario
from ragnb.schema import Metric, note_frame, note_row
from ragnb.stats import NONE, Estimate, packed, sums_by
from ragnb.texts.errors import translated
from ragnb.weights import Batch, Reduction, check_weights, column_names, reduce_batches
from ragnb.weights.clusters import INSIDE, QUESTIONS, need_documents, question_clusters, question_of
from ragnb.weights.total import Array, Flags, Total, total_of

# What became of a metric of one question under one system; absent is a question that it was not asked.
STATES = ("ok", "failed", "not_applicable", "missing", "absent")


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
    origins : pair of (rows, system)
        Where the rows of both systems are, with their texts; None where the rows are of one system.
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
    reworded: int = 0
    origins: tuple[tuple[Any, str | None], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the clusters are documents, and these are the entire corpus."""
        return self.unit == INSIDE

    @property
    def differences(self) -> Array:
        """Candidate − baseline, questions × metrics; nan where either has no score."""
        return np.asarray(self.scores[0] - self.scores[1])


def rows_of(
    frame: Any, metrics: Sequence[Metric], labels: Iterable[str | None], *, doc: str = "doc_name"
) -> pd.DataFrame:
    """Return the scores, statuses and labels of rows of any engine, without their texts.

    Names of documents, in the column `doc`, are compared in Unicode form NFC, as their weights are.

    Examples
    --------
    >>> rows_of(pd.DataFrame({"sample_id": ["1"], "faithfulness": [0.5]}), [Metric("faithfulness")], ["sample_id"])
      sample_id  faithfulness  faithfulness__status
    0         1           0.5                     0
    """
    have = column_names(frame)
    kept = [name for name in dict.fromkeys(labels) if name is not None and name in have]

    def of_batch(batch: Batch) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        for name in kept:
            found = batch.labels(name, compose=name == doc)
            columns[name] = np.array([*found.names, None], dtype=object)[found.codes]
        for metric in metrics:
            score, state = batch.values(metric), batch.status(metric)
            columns[metric.name] = score
            columns[f"{metric.name}__status"] = np.where((state == 0) & np.isnan(score), np.int8(3), state)
        return pd.DataFrame(columns)

    whole = partial(pd.concat, ignore_index=True)
    return cast(pd.DataFrame, reduce_batches(frame, metrics, [Reduction(of_batch, whole, kept)])[0])


def pairs_of(
    rows: Mapping[str, pd.DataFrame], metrics: Sequence[Metric], *, on: str | None = None, doc: str = "doc_name",
    cluster: str | None = None, corpus: str = "sample", doc_weights: Mapping[str, float] | None = None,
) -> Pairs:  # fmt: skip
    """Return the questions of two systems as pairs.

    Parameters
    ----------
    rows : mapping of name to DataFrame
        The candidate's, then the baseline's, from `rows_of`.
    on : str, optional
        The column that identifies questions; by default ``sample_id``, or ``question`` where ids are only places.

    Raises
    ------
    RagnbError
        Where no column tells the questions of both, or they have none in common.

    Examples
    --------
    >>> one = pd.DataFrame({"sample_id": ["1"], "faithfulness": [0.5], "faithfulness__status": [0]})
    >>> pairs_of({"new": one, "old": one}, [Metric("faithfulness")]).differences.tolist()
    [[0.0]]
    """
    (candidate, new), (baseline, old) = rows.items()
    sides = [new, old]
    key = on or _key(sides)
    for name, side in rows.items():
        need_known("on", key, [str(c) for c in side.columns], f"{name!r} does not have it.")
    asked = [side.loc[side[key].notna()].reset_index(drop=True) for side in sides]
    codes, names = pd.factorize(pd.concat([side[key] for side in asked], ignore_index=True))
    size, split = len(names), len(asked[0])
    coded = list(zip(asked, (codes[:split], codes[split:]), strict=True))
    parts = [_side(side, code, size, metrics) for side, code in coded]
    scores, states, noise = (np.stack(arrays) for arrays in zip(*parts, strict=True))
    scored = {name for metric in metrics for name in (metric.name, f"{metric.name}__status")}
    labels, reworded = pd.DataFrame({key: np.asarray(names, dtype=object)}), 0
    for column in dict.fromkeys(str(c) for side in asked for c in side if c != key and c not in scored):
        values = [_first(side, code, column, size) for side, code in coded]
        labels[column] = np.where(pd.isna(values[0]), values[1], values[0])
        if column == "question" and key != "question":
            changed = np.array([a is not None and b is not None and a != b for a, b in zip(*values, strict=True)])
            states[:, changed], scores[:, changed], reworded = 4, np.nan, int(changed.sum())
    if not (states.min(axis=2) < 4).all(axis=0).any():
        if reworded:
            raise RagnbError(
                f"{candidate!r} and {baseline!r} ask different questions under the same {key} ({reworded}); "
                "compare runs over one question set, or name the column that tells their questions: on='…'"
            )
        raise RagnbError(
            f"{candidate!r} and {baseline!r} have no question in common (by {key}: {listing(names[:3])}, …); "
            "compare runs over one question set, or name the column that tells their questions: on='…'"
        )
    clusters, unit = _clusters(labels, doc, cluster, key, corpus)
    own = check_weights(doc_weights, "doc_weights")
    weights = labels[doc].map(lambda name: own.get(name, 1.0)) if doc in labels else pd.Series(1.0, labels.index)
    return Pairs(
        tuple(metrics), candidate, baseline, labels, scores, states.astype(np.int8), noise, clusters, unit,
        np.asarray(weights, dtype=float), reworded,
    )  # fmt: skip


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
    by_id = [side.set_index(shared[0])["question"] for side in whole]
    common = by_id[0].index.intersection(by_id[1].index)
    same = int((by_id[0][common].to_numpy() == by_id[1][common].to_numpy()).sum())
    texts = [set(side["question"].dropna()) for side in sides]
    return "question" if len(texts[0] & texts[1]) > 2 * same else "sample_id"


def _side(
    side: pd.DataFrame, code: npt.NDArray[np.intp], size: int, metrics: Sequence[Metric]
) -> tuple[Array, npt.NDArray[np.int8], Array]:
    """Return the mean, state and noise of each question and metric."""
    x = side[[metric.name for metric in metrics]].astype(float)
    word = side[[f"{metric.name}__status" for metric in metrics]].where(x.isna().to_numpy(), 0)
    scores, questions = x.groupby(code), range(size)
    noise = (scores.var() / scores.count()).reindex(questions).to_numpy()
    # Of several rows without a score, a failed one is the most informative.
    states = word.groupby(code).min().reindex(questions, fill_value=4).to_numpy(np.int8)
    return scores.mean().reindex(questions).to_numpy(), states, noise


def _first(side: pd.DataFrame, code: npt.NDArray[np.intp], column: str, size: int) -> npt.NDArray[Any]:
    """Return the first value of a column for each question, None if missing."""
    values: npt.NDArray[Any] = np.full(size, None, dtype=object)
    if column in side:
        there = side[column].notna().to_numpy()
        values[code[there][::-1]] = side[column].to_numpy(object)[there][::-1]
    return values


def _clusters(
    labels: pd.DataFrame, doc: str, cluster: str | None, key: str, corpus: str
) -> tuple[npt.NDArray[np.intp], str]:
    """Return the clusters, as `moments` defines them: the caller's, documents, else questions."""
    batch = Batch(labels)
    if corpus == "complete":
        need_documents(list(map(str, labels)), doc, cluster, corpus)
        return batch.groups(doc, compose=True).codes.astype(np.intp), INSIDE
    docs = batch.labels(doc if doc in labels else None, compose=True)
    questions = question_of(labels.drop(columns=key), doc=doc) if cluster is None else None
    found = batch.labels(cluster) if cluster is not None else question_clusters(batch, docs, questions)
    alone = found.codes < 0
    codes = found.codes.astype(np.intp)
    codes[alone] = len(found.names) + np.arange(int(alone.sum()))
    unit = "cluster" if cluster is not None and found.names else "document" if docs.names else "row"
    return codes, "question" if unit == "row" and questions else unit


TOTAL = "weighted_score"
POWER = 0.8
# A smaller difference is none: what rounding leaves.
TIE = 1e-9
_FEW_CHANGED = 20
_LITTLE_OVERLAP = 0.3
_SAME_SHARE = 1 / 20
_OF_METRIC = ("kind", "role", "weight", "reason")  # a slice of that name takes the place of the metric's own
_LATER = ("outcome", "primary", "margin", "level", "p_bh")
Margin = float | Mapping[str, float] | None


def compare(
    scores: Any, *, baseline: Any = None, candidate: str | None = None, system: str = "system",
    margin: Margin = None, by: str | None = None, on: str | None = None, primary: str | None = None,
    ratings: Any = None, **settings: Any,
) -> pd.DataFrame:  # fmt: skip
    """Compare systems with a baseline on their common questions.

    Parameters
    ----------
    scores : DataFrame, path or Scenario
        Of one system or several (column `system`), on any engine: scores, labelled traces, or with ``gold=``
        traces; a file, a scenario, the folder of a run, ``reports/<scenario>/latest``, a run of a store
        (``runs.sqlite#3fa1c2d4``).
    baseline : str, DataFrame or path
        A system of `scores`, or another source of the same kinds. By default that of the scenario.
    candidate : str, optional
        The system to compare; by default every other one.
    system : str
        The column that names systems.
    margin : float or mapping of metric to float, optional
        *same* means that the whole interval is within ± margin; by default a twentieth of a metric's range.
    by : str, optional
        A column, such as the document or a kind of question: one row per value of it and metric, and what the
        difference is without it. A column called kind, role, weight or reason takes the place of the metric's own.
    on : str, optional
        The column that identifies questions; by default ``sample_id``, or ``question`` if ids do not match.
    primary : str, optional
        The metric that decides; by default the weighted score, else ``correct_outcome``, else the only metric.
    ratings : DataFrame, optional
        Human ratings (``item_id, dimension, judge, human, system``): adds their difference on the rated questions
        to each metric, and whether it supports the judge's.
    **settings
        Fields of `Scenario`, such as ``metrics=``, ``metric_weights=``, ``doc_weights=``, ``level=``, ``corpus=``.

    Returns
    -------
    DataFrame
        One row per candidate and metric, then the weighted score: ``candidate, baseline, metric, outcome, value``
        (candidate − baseline) with its interval ``low, high``, ``p`` and ``p_holm`` (over the metrics that are not
        primary; `by` has ``p_bh``, Benjamini and Hochberg's over its values), both means on the common questions,
        ``n_common``, ``n_only_candidate, n_only_baseline`` and ``left_out`` (why), ``wins, ties, losses``,
        ``correlation``, the interval without pairing (``unpaired_low, unpaired_high``), ``detectable`` (the
        difference that such a set shows at 80 % power), ``questions_needed`` (to show the difference seen),
        ``worst_case`` (the difference if every score that one side lacks were the worst), ``noise`` (what repeats
        alone differ by, 95 %) and ``below_noise``. ``outcome``: ``same`` where the interval is within ± margin;
        else ``better`` or ``worse`` where it excludes 0 and, but for the primary, ``p_holm`` < 1 − level; else
        ``undecided``.

    Raises
    ------
    RagnbError
        For systems and columns that do not exist, sources without a common question, and metrics of different
        ranges on the two sides.

    Notes
    -----
    A question counts if both systems have a score, so a failure of one never helps it. Documents are the
    clusters, as in `weighted_means`; repeats of a question enter as their mean. The interval is value ± t·se with
    the delete-one-document jackknife.

    Examples
    --------
    >>> rows = {"sample_id": [*"abcdef"] * 2, "system": ["new"] * 6 + ["old"] * 6}
    >>> scores = pd.DataFrame(rows | {"faithfulness": [.9, .8, .9, .7, .8, .9, .5, .6, .5, .4, .4, .5]})
    >>> compare(scores, baseline="old")[["metric", "outcome", "value", "n_common"]].round(3)
               metric outcome  value  n_common
    0    faithfulness  better   0.35         6
    1  weighted_score  better   0.35         6
    """
    run = run_of(scores, system=system, settings=settings, name="candidate")
    _, pairs = paired_runs(run, baseline, candidate, system, on, by, settings)
    table = compared(pairs, run.scenario, margin=margin, by=by, primary=primary)
    return table if ratings is None else beside_people(table, pairs, ratings, run.scenario.level, by)


def paired_runs(
    run: Run, baseline: Any = None, candidate: str | None = None, system: str = "system", on: str | None = None,
    by: str | None = None, settings: Mapping[str, Any] | None = None,
) -> tuple[Run, list[Pairs]]:  # fmt: skip
    """Pair each candidate of a run with its baseline; return the run that contains the baseline too."""
    scenario = run.scenario
    baseline = scenario.baseline if baseline is None else baseline
    if baseline is None:
        have = f"one of the systems {listing(run.systems)}, or another run" if run.systems else "another run"
        raise RagnbError(f"compare needs a baseline: name {have}: baseline='…'")
    inside = isinstance(baseline, str) and baseline in run.systems
    if isinstance(baseline, str):
        need_baseline(baseline, run.systems)
    shared: dict[str, Any] = {"system": system, "settings": settings or {}, "like": scenario, "name": "baseline"}
    other = run if inside else run_of(baseline, **shared)
    metrics = _shared_metrics(run, other)
    on, by = (_label(option, column, (run, other)) for option, column in (("on", on), ("by", by)))
    asked = all("question" in column_names(one.frame) for one in (run, other))
    if (run.numbered or other.numbered) and not (inside or on or asked):
        raise RagnbError(
            "rows without sample_id and question could only be paired by their places; give both sides a column "
            "sample_id or question, or name the one that tells their questions: on='…'"
        )
    labels = ("sample_id", "question", on, scenario.doc, scenario.cluster, by, system)
    new_rows = rows_of(run.frame, metrics, labels, doc=scenario.doc)
    old_rows = new_rows if inside else rows_of(other.frame, metrics, labels, doc=scenario.doc)
    shape = {name: getattr(scenario, name) for name in ("doc", "cluster", "corpus", "doc_weights")}
    out = []
    for new, old in _sides(run, other, baseline if inside else None, candidate or scenario.candidate):
        names = new or run.name or "candidate", old or other.name or "baseline"
        names = (f"{names[0]} (new)", f"{names[1]} (old)") if names[0] == names[1] else names
        sides = {names[0]: _of(new_rows, system, new), names[1]: _of(old_rows, system, old)}
        pairs = pairs_of(sides, metrics, on=on, **shape)
        out.append(replace(pairs, origins=((run.frame, new), (other.frame, old))))
    return other, out


def _label(option: str, column: str | None, runs: Iterable[Run]) -> str | None:
    """Return the column that an option names, under the name that it was read as."""
    have = list(dict.fromkeys(name for run in runs for name in column_names(run.frame)))
    read_as = column if column is None or column in have else rename_map([column]).get(column, column)
    if column is not None and read_as not in have:
        raise unknown(option, column, have, "Neither side has it.")
    return read_as


def _shared_metrics(run: Run, other: Run) -> list[Metric]:
    theirs = {metric.name: metric for metric in other.metrics}
    if not (metrics := [metric for metric in run.metrics if metric.name in theirs]):
        raise RagnbError(
            f"the two sides share no metric ({listing(m.name for m in run.metrics)}; {listing(theirs)}); score "
            "both with the same metrics"
        )
    for metric in metrics:
        low, high = theirs[metric.name].low, theirs[metric.name].high
        if (low, high) != (metric.low, metric.high):
            raise RagnbError(
                f"{metric.name!r} goes from {metric.low:g} to {metric.high:g} on one side and from {low:g} to "
                f"{high:g} on the other; declare one range for both"
            )
    return metrics


def _sides(
    run: Run, other: Run, inside: str | None, candidate: str | None
) -> Iterable[tuple[str | None, str | None]]:
    """Yield which systems are compared; None is a run that names none, or one only."""
    if candidate is not None and candidate not in run.systems:
        raise unknown("candidate", candidate, list(run.systems))
    chosen: list[str | None] = [*run.systems] if candidate is None else [candidate]
    if inside is not None:
        if not (others := [name for name in chosen if name != inside]):
            raise RagnbError(
                f"{inside!r} is compared with itself; name another system, or another run: baseline='…'"
            )
        return [(name, inside) for name in others]
    if len(run.systems) < 2:
        chosen = [None]
    if len(other.systems) < 2:
        return [(name, None) for name in chosen]
    if lacking := [name for name in chosen if name not in other.systems]:
        raise RagnbError(
            f"the baseline holds the systems {listing(other.systems)}, none named {lacking[0]!r}; keep one of "
            "them in a file of its own"
        )
    return [(name, name) for name in chosen]


def _of(rows: pd.DataFrame, system: str, name: str | None) -> pd.DataFrame:
    return (rows if name is None else rows[rows[system] == name]).drop(columns=system, errors="ignore")


@dataclass(frozen=True)
class _Column:
    """One metric of the pairs, or their total: the source of one row of the table, which ends in `about`."""

    metric: str
    scores: Array
    own: Array
    left_out: str
    filled: Array
    noise: Array
    about: dict[str, Any]

    @property
    def width(self) -> float:
        """The length of the range."""
        return float(self.about["range_high"] - self.about["range_low"])


def total_of_pairs(pairs: Pairs, scenario: Scenario) -> Total:
    """Return how the metrics of pairs add up under the settings of a scenario."""
    how: dict[str, Any] = {"orient": scenario.orient, "rescale": scenario.rescale, "strict": False}
    return total_of(pairs.metrics, scenario.metric_weights, **how)


def weighted_scores(total: Total, scores: Array, present: Flags) -> Array:
    """Return the weighted score of each question over the metrics that are present, nan without any.

    Parameters
    ----------
    scores, present : (..., Q, K)
    """
    weights = present * total.weights
    added = (weights * (np.nan_to_num(scores) * total.slopes + total.intercepts)).sum(axis=-1)
    with np.errstate(invalid="ignore"):  # 0/0 is nan
        return np.asarray(added / weights.sum(axis=-1))


def columns_of(pairs: Pairs, scenario: Scenario) -> list[_Column]:
    """Return the metrics of pairs and, last, their weighted score."""
    total = total_of_pairs(pairs, scenario)
    there: Flags = ~np.isnan(pairs.scores)
    both: Flags = np.all(there, axis=0)
    ends = np.array([(m.low, m.high) if m.better == "higher" else (m.high, m.low) for m in pairs.metrics])
    lacks = there.any(axis=0) & ~both & (pairs.states != 2).all(axis=0)
    filled = np.where(~there & lacks, ends[:, 0], pairs.scores)
    filled = np.where(np.isfinite(filled), filled, np.nan)
    out = []
    for k, metric in enumerate(pairs.metrics):
        own, left_out = pairs.scores[:, :, k], _left_out(pairs, k, there[:, :, k] & ~both[:, k])
        weight = float(total.given[k]) if metric.role == "quality" or total.given[k] > 0 else np.nan
        about: dict[str, Any] = {"range_low": metric.low, "range_high": metric.high, "better": metric.better}
        about |= {"kind": metric.kind, "role": metric.role, "weight": weight, "reason": ""}
        scores = np.where(both[:, k], own, np.nan)
        out.append(_Column(metric.name, scores, own, left_out, filled[:, :, k], pairs.noise[:, :, k], about))
    whole, own = (weighted_scores(total, pairs.scores, present) for present in (both, there))
    known: Flags = np.logical_and(*~np.isnan(filled))
    share = total.shares(both)
    noise = (np.nan_to_num(pairs.noise) * (share * total.slopes) ** 2).sum(axis=-1)
    noise[(np.isnan(pairs.noise) & (share > 0)).any(axis=-1)] = np.nan
    about = {"range_low": total.low, "range_high": total.high, "better": "higher", "kind": "continuous"}
    about |= {"role": "total", "weight": np.nan, "reason": total.reason}
    return [*out, _Column(TOTAL, whole, own, "", weighted_scores(total, filled, known), noise, about)]


def _left_out(pairs: Pairs, k: int, only: Flags) -> str:
    """Count why questions scored by one side are not pairs, by the status of the other side's score."""
    parts = []
    for name, side, mask in ((pairs.candidate, 0, only[1]), (pairs.baseline, 1, only[0])):
        counts = np.bincount(pairs.states[side, mask, k], minlength=len(STATES))
        why = ", ".join(f"{n} {word}" for word, n in zip(STATES, counts, strict=True) if n)
        parts += [f"{name}: {why}"] if why else []
    return "; ".join(parts)


def compared(pairs: Iterable[Pairs], scenario: Scenario, **how: Any) -> pd.DataFrame:
    """Return the table of `compare` for candidates under the settings of a scenario."""
    return pd.concat([_compared(one, scenario, **how) for one in pairs], ignore_index=True)


def _compared(
    pairs: Pairs, scenario: Scenario, *, margin: Margin = None, by: str | None = None, primary: str | None = None
) -> pd.DataFrame:
    columns, level = columns_of(pairs, scenario), scenario.level
    whole = (_row(pairs, column, slice(None), level) for column in columns)
    table = pd.DataFrame(whole if by is None else _by(pairs, columns, by, level))
    decides = primary_of(columns, primary)
    table["primary"] = table["metric"] == (decides and decides.metric)
    table["margin"] = _margins(columns, margin).reindex(table["metric"]).to_numpy()
    table["level"] = level
    if by is None:
        family = ~table["primary"] & (table["metric"] != TOTAL)
        table["p_holm"] = stats.holm(table["p"].where(family))
        adjusted = table["p_holm"].where(family, table["p"])
    else:
        adjusted = table["p_bh"] = table.groupby("metric")["p"].transform(_false_discovery)
    ends = zip(table["low"], table["high"], table["margin"], table["better"], adjusted, strict=True)
    table.insert(3, "outcome", [
        outcome_of(low, high, margin=m, better=better, p=p, alpha=1 - level) for low, high, m, better, p in ends
    ])  # fmt: skip
    return table


def _row(pairs: Pairs, column: _Column, kept: Any, level: float) -> dict[str, Any]:
    """Return one row of the table, over the questions that are kept."""
    v, clusters = pairs.weights[kept], pairs.clusters[kept]
    new, old = column.scores[:, kept]
    d = new - old
    found = _difference(pairs, column, kept, level)
    apart = [mean_of(side, clusters, v, level, pairs.complete) for side in column.own[:, kept]]
    se = float(np.hypot(apart[0].se, apart[1].se))
    half = float(stats.t_quantile(level, max(min(apart[0].df, apart[1].df), 1.0))) * se
    unpaired = apart[0].value - apart[1].value
    there = ~np.isnan(d) & (v > 0)
    only = (~np.isnan(column.own[:, kept]) & np.isnan(new) & (v > 0)).sum(axis=1).tolist()
    few = found.n < _LITTLE_OVERLAP * (found.n + sum(only))
    everywhere = all_questions(column.own[0, kept], column.own[1, kept], clusters, v, level) if few else NONE
    oriented = d[there] * (1 if column.about["better"] == "higher" else -1)
    shown = detectable(found, level)
    times = (shown / abs(found.value)) ** 2 if found.value else np.nan
    noise = _noise(column.noise[:, kept][:, there], v[there], level)
    constant = len(oriented) < 3 or np.ptp(new[there]) < TIE or np.ptp(old[there]) < TIE
    return {
        "candidate": pairs.candidate, "baseline": pairs.baseline, "metric": column.metric,
        "value": found.value, "low": found.low, "high": found.high, "p": p_value(found),
        "candidate_mean": _mean(new, v), "baseline_mean": _mean(old, v), "se": found.se, "df": found.df,
        "n_common": found.n, "n_only_candidate": only[0], "n_only_baseline": only[1],
        "n_left_out": sum(only), "left_out": column.left_out, "wins": int((oriented > TIE).sum()),
        "ties": int((np.abs(oriented) <= TIE).sum()), "losses": int((oriented < -TIE).sum()),
        "correlation": np.nan if constant else float(np.corrcoef(new[there], old[there])[0, 1]),
        "unpaired_value": unpaired, "unpaired_se": se, "unpaired_low": unpaired - half,
        "unpaired_high": unpaired + half, "detectable": shown, "questions_needed": np.ceil(found.n * times),
        "noise": noise, "below_noise": abs(found.value) < noise,
        "worst_case": _mean(column.filled[0, kept] - column.filled[1, kept], v), "all_value": everywhere.value,
        "all_low": everywhere.low, "all_high": everywhere.high, "n_clusters": found.n_clusters,
        "n_eff": found.n_eff, "cluster_unit": pairs.unit, **column.about,
    }  # fmt: skip


def _difference(pairs: Pairs, column: _Column, kept: Any, level: float) -> Estimate:
    """Return the paired difference over the questions that are kept."""
    d, width = column.scores[0, kept] - column.scores[1, kept], column.width
    plain = column.about["kind"] == "binary" and bool(np.isin(d[~np.isnan(d)] / width, (-1, 0, 1)).all())
    how: dict[str, Any] = {"width": width, "binary": plain, "level": level, "complete": pairs.complete}
    return difference(d, pairs.clusters[kept], pairs.weights[kept], **how)


def _mean(values: Array, weights: Array) -> float:
    there = ~np.isnan(values) & (weights > 0)
    return float(np.average(values[there], weights=weights[there])) if there.any() else np.nan


def _noise(variances: Array, weights: Array, level: float) -> float:
    """Return the bound of the mean difference, at `level`, if the systems differed by judge noise alone."""
    from scipy.special import ndtri

    of_question = variances.sum(axis=0)
    if not (repeated := ~np.isnan(of_question)).any():
        return np.nan
    # Questions that were not repeated are as noisy as those that were.
    spread = np.where(repeated, of_question, of_question[repeated].mean())
    return float(ndtri(0.5 + level / 2) * np.sqrt(weights**2 @ spread) / weights.sum())


def _by(pairs: Pairs, columns: Sequence[_Column], by: str, level: float) -> Iterator[dict[str, Any]]:
    """Return one row per value of a column and metric, and the difference over the other questions."""
    need_known("by", by, [str(name) for name in pairs.labels], "Neither side has it.")
    if (values := pairs.labels[by]).isna().all():
        raise RagnbError(f"by={by!r}: no question has a value in it")
    for value in sorted(values.dropna().unique(), key=str):
        inside = (values == value).to_numpy()
        for column in columns:
            row, rest = _row(pairs, column, inside, level), _difference(pairs, column, ~inside, level)
            if by in _LATER or by in row.keys() - set(_OF_METRIC):
                raise RagnbError(f"by={by!r} is also a column of the table; give your column another name")
            row.pop(by, None)  # a kind of question takes the place of the metric's kind
            without = {f"{name}_without": getattr(rest, name) for name in ("value", "low", "high")}
            yield {**dict(list(row.items())[:2]), by: value, **row, **without}


def primary_of(columns: Sequence[_Column], asked: str | None) -> _Column | None:
    """Return the metric that decides: the requested one, the total, ``correct_outcome`` or the only one."""
    named = {column.metric: column for column in columns}
    if asked is not None and asked not in named:
        raise unknown("primary", asked, [*named])
    if asked is None and not columns[-1].about["reason"] and columns[-1].width > 0:
        return columns[-1]
    return named.get(asked or "correct_outcome", columns[0] if len(columns) == 2 else None)


def _margins(columns: Sequence[_Column], asked: Margin) -> pd.Series[float]:
    """Return the margin of each metric; nan where the range is endless and none is given."""
    own = {c.metric: c.width * _SAME_SHARE if np.isfinite(c.width) else np.nan for c in columns}
    given = asked if isinstance(asked, Mapping) else {} if asked is None else dict.fromkeys(own, asked)
    for name, value in given.items():
        need_known("margin", name, list(own))
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < np.inf:
            raise RagnbError(f"margin={value!r} for {name!r}; give a number above 0 in the metric's own units")
    return pd.Series({**own, **given}, dtype=float)


def _false_discovery(p: pd.Series[float]) -> pd.Series[float]:
    """Return p-values adjusted as Benjamini and Hochberg do (1995, J. R. Stat. Soc. B 57, 289–300)."""
    from scipy.stats import false_discovery_control

    known = p.dropna()
    return pd.Series(false_discovery_control(known), known.index).reindex(p.index) if len(known) else p


def beside_people(
    table: pd.DataFrame, pairs: Iterable[Pairs], ratings: Any, level: float, by: str | None = None
) -> pd.DataFrame:
    """Return the table with the difference in what people gave, and whether it bears out the judge's."""
    people = ratings if isinstance(ratings, pd.DataFrame) else read_ratings(ratings)
    if lacking := [name for name in ("item_id", "system", "human") if name not in people]:
        raise RagnbError(
            f"the ratings have no {listing(lacking)}; give one row per item and system, as rn.read_ratings does"
        )
    people = people.astype({"item_id": str, "system": str})
    rows = []
    for one in pairs:
        names = [name for name in dict.fromkeys([one.labels.columns[0], "sample_id"]) if name in one.labels]
        ids = max((one.labels[name] for name in names), key=lambda x: int(x.isin(people["item_id"]).sum()))
        asked = pd.DataFrame({"cluster": one.clusters, "weight": one.weights}).set_index(ids.to_numpy())
        slices = [(None, asked)] if by is None else list(asked.groupby(one.labels[by].to_numpy()))
        for metric in one.metrics:
            given = people[people["dimension"] == metric.name] if "dimension" in people else people
            given = given.groupby(["item_id", "system"])["human"].mean().unstack()
            given = given.reindex(columns=[one.candidate, one.baseline]).dropna()
            gap = (given[one.candidate] - given[one.baseline]).to_frame("d")
            for value, part in slices:
                d = gap.join(part, how="inner").astype({"d": float})
                how: dict[str, Any] = {"width": metric.high - metric.low, "level": level, "complete": one.complete}
                columns = (d[name].to_numpy() for name in ("d", "cluster", "weight"))
                found = difference(*columns, **how) if len(d) else NONE
                rows.append({
                    "candidate": one.candidate, "metric": metric.name, **({} if by is None else {by: value}),
                    "human_value": found.value, "human_low": found.low, "human_high": found.high,
                    "n_human": found.n,
                })  # fmt: skip
    whole = table.merge(pd.DataFrame(rows), on=["candidate", "metric", *([] if by is None else [by])], how="left")
    seen = (whole["human_low"] > 0) | (whole["human_high"] < 0)
    agree = seen & (np.sign(whole["human_value"]) == np.sign(whole["value"]))
    whole["supported"] = pd.Series(np.where(whole["n_human"] > 0, agree, None), dtype=object)
    return whole


# The estimate of one difference, and what it says


def difference(
    values: Array, clusters: npt.NDArray[np.intp], weights: Array, *, width: float = np.inf,
    binary: bool = False, level: float = 0.95, complete: bool = False,
) -> Estimate:  # fmt: skip
    """Return the mean of paired differences with its clustered interval, value ± t·se.

    Parameters
    ----------
    values : (Q,) float
        Candidate − baseline, nan where a side has no score.
    width : float
        Of the metric's range.
    binary : bool
        Both scores are 0 or 1.
    complete : bool
        The clusters are documents, and the entire corpus: see `ragnb.weighted_means`.

    Notes
    -----
    se is the delete-one-cluster jackknife's, t has max(G_eff − 1, 1) degrees of freedom. Where fewer than 20 of n
    pass/fail questions differ, it is at least √(c + 2 − (ΣD)²/(n + 2))/(n + 2), c those that differ (Bonett and
    Price 2012, J. Educ. Behav. Stat. 37, 479–488): the jackknife alone covers 71 % then. Differences all equal
    have no spread to judge by and take that floor for c = 0, on the metric's range. One cluster has no interval.

    Examples
    --------
    >>> found = difference(np.array([0.1, 0.3, 0.2, 0.2]), np.arange(4), np.ones(4))
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.2, 0.07, 0.33)
    """
    if (found := mean_of(values, clusters, weights, level, complete)).n_clusters < 2:
        return replace(found, low=np.nan, high=np.nan)
    there = values[~np.isnan(values) & (weights > 0)] / width if np.isfinite(width) else np.empty(0)
    n, se = len(there), found.se
    changed = int((np.abs(there) > TIE).sum())
    if n and binary and changed < _FEW_CHANGED:
        se = max(se, float(np.sqrt(changed + 2 - there.sum() ** 2 / (n + 2))) / (n + 2) * width)
    elif n and not se > 1e-12 * max(1.0, abs(found.value)):
        se = float(np.sqrt(2)) / (n + 2) * width
    half = float(stats.t_quantile(level, found.df)) * se if se > 0 else np.nan
    return replace(found, se=se, low=found.value - half, high=found.value + half)


def mean_of(
    values: Array, clusters: npt.NDArray[np.intp], weights: Array, level: float, complete: bool
) -> Estimate:
    """Return the mean of one side, or of differences, over clusters or over documents that are all there are."""
    mean = stats.stratified_mean if complete else stats.clustered_mean
    return mean(values, clusters, weights=weights, level=level)


def p_value(found: Estimate) -> float:
    """Return the two-sided p-value of no difference: p ≤ α exactly where the interval at 1 − α excludes 0.

    Examples
    --------
    >>> round(p_value(Estimate(0.2, 0.07, 0.33, 0.041, 4, 4, df=3.0)), 3)
    0.016
    """
    from scipy.special import stdtr

    if not np.isfinite(found.low):
        return np.nan
    return float(2 * stdtr(found.df, -abs(found.value) / found.se))


def detectable(found: Estimate, level: float) -> float:
    """Return the difference that a set like this one would show at 80 % power.

    Examples
    --------
    >>> round(detectable(Estimate(0.0, -0.1, 0.1, 0.05, 50, 50, df=49.0), 0.95), 3)
    0.143
    """
    if not np.isfinite(found.low):
        return np.nan
    return float(stats.t_quantile(level, found.df) + stats.t_quantile(2 * POWER - 1, found.df)) * found.se


def outcome_of(low: float, high: float, *, margin: float, better: str, p: float = 0.0, alpha: float = 0.05) -> str:
    """Return the word for an interval of candidate − baseline.

    Parameters
    ----------
    margin : float
        *same* is inside ± margin; nan has no *same*.
    better : {"higher", "lower"}
        Which sign of the difference is good.
    p : float
        The adjusted p-value that must be below `alpha` for better or worse.

    Examples
    --------
    >>> outcome_of(0.01, 0.09, margin=0.05, better="higher"), outcome_of(-0.01, 0.04, margin=0.05, better="higher")
    ('better', 'same')
    """
    if not (np.isfinite(low) and np.isfinite(high)):
        return "undecided"
    if -margin <= low and high <= margin:
        return "same"
    if (low > 0 or high < 0) and p < alpha:
        return "better" if (low > 0) == (better == "higher") else "worse"
    return "undecided"


def all_questions(
    new: Array, old: Array, clusters: npt.NDArray[np.intp], weights: Array, level: float
) -> Estimate:
    """Return the difference of two means over all questions of each side, clusters shared.

    Where few questions are common, it uses those of one side too: delete-one-cluster jackknife of the difference
    of the two means.
    """
    sides = [(np.where(np.isnan(x), 0.0, weights), np.nan_to_num(x)) for x in (new, old)]
    sums = sums_by(packed(clusters), np.stack([part for v, x in sides for part in (v, v * x)], axis=1))
    return stats.jackknife(gap, sums, sums[:, 0] + sums[:, 2], level=level)


CHANGES = ("fixed", "broken", "better", "worse")
RIGHT = ("OK", "REFUSAL_OK")
TEXTS = {"answer": "answer", "contexts": "retrieved_contexts"}


def changed_questions(
    scores: Any, *, baseline: Any = None, candidate: str | None = None, system: str = "system",
    metric: str | None = None, n: int = 20, on: str | None = None, **settings: Any,
) -> pd.DataFrame:  # fmt: skip
    """Return the questions whose score changed most, with both answers and passages and what they failed by.

    Parameters
    ----------
    scores, baseline, candidate, system, on
        As in `compare`.
    metric : str, optional
        The metric whose differences count; by default the one that decides in `compare`.
    n : int
        How many questions at most that became better, and as many that became worse.
    **settings
        As in `compare`.

    Returns
    -------
    DataFrame
        One row per candidate and question, the largest change first: ``candidate, baseline, metric``, ``sample_id,
        question, doc_name`` (and `on`) where the rows have them, ``change``, ``value`` (candidate − baseline),
        ``candidate_value, baseline_value``, then ``candidate_answer, baseline_answer, candidate_contexts,
        baseline_contexts`` where the columns exist, and ``candidate_mode, baseline_mode``, the failure modes,
        where faithfulness and answer_relevancy are among the metrics. ``change`` is ``fixed`` where the score rose
        and the question now passes: its pass/fail score turned, or its failure mode became ``fine``; ``broken``
        is the reverse; else ``better`` or ``worse``.

    Raises
    ------
    RagnbError
        As `compare`; for several metrics of which none decides, and an `n` that is not a whole number above 0.

    Notes
    -----
    Repeats of a question enter as their mean, and the answer shown is that of the first. A question that one
    side could not score is not among them: `compare` counts it in ``left_out``.

    Examples
    --------
    >>> rows = {"sample_id": [*"abc"] * 2, "system": ["new"] * 3 + ["old"] * 3, "answer": [*"uvwxyz"]}
    >>> scores = pd.DataFrame(rows | {"correct_outcome": [1, 0, 1, 0, 1, 1]})
    >>> table = changed_questions(scores, baseline="old")
    >>> table[["sample_id", "change", "value", "candidate_answer", "baseline_answer"]]
      sample_id  change  value candidate_answer baseline_answer
    0         a   fixed    1.0                u               x
    1         b  broken   -1.0                v               y
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise RagnbError(f"n={n!r}: give the number of questions to show of each direction, 1 or more")
    run = run_of(scores, system=system, settings=settings, name="candidate")
    _, every = paired_runs(run, baseline, candidate, system, on, settings=settings)
    return pd.concat([_changed(one, run.scenario, metric, n, system) for one in every], ignore_index=True)


def _changed(pairs: Pairs, scenario: Scenario, metric: str | None, n: int, system: str) -> pd.DataFrame:
    columns = columns_of(pairs, scenario)
    if (column := primary_of(columns, metric)) is None:
        choices = listing(one.metric for one in columns[:-1])
        reason = columns[-1].about["reason"]
        raise RagnbError(f"several metrics and no total ({reason}); name one of {choices}: metric='…'")
    new, old = column.scores
    gain = np.nan_to_num(new - old) * (1 if column.about["better"] == "higher" else -1) * (pairs.weights > 0)
    key, asked = str(pairs.labels.columns[0]), pairs.labels.iloc[:, 0].astype(str)
    order = np.lexsort([asked, -np.abs(gain).round(9)])  # of equal changes by name: rows of a query have no order
    moved = [order[sign * gain[order] > TIE][:n] for sign in (1, -1)]
    at = np.array([k for k in order if k in {*moved[0], *moved[1]}], dtype=np.intp)
    labels, modes = pairs.labels.iloc[at].reset_index(drop=True), _modes(pairs, at)
    turned = (np.abs(gain[at]) >= column.width - TIE) & (column.about["kind"] == "binary")
    names = {"candidate": pairs.candidate, "baseline": pairs.baseline, "metric": column.metric}
    shown = [name for name in dict.fromkeys([key, "sample_id", "question", scenario.doc]) if name in labels]
    table = pd.DataFrame(names, index=labels.index).join(labels[shown])
    table["change"] = _words(gain[at] > 0, turned, modes)
    table["value"], table["candidate_value"], table["baseline_value"] = new[at] - old[at], new[at], old[at]
    texts = [_texts(*origin, key, labels[key].tolist(), system, TEXTS.values()) for origin in pairs.origins]
    for name, source in TEXTS.items():
        if any(source in one for one in texts):
            for role, one in zip(("candidate", "baseline"), texts, strict=True):
                table[f"{role}_{name}"] = one[source].reindex(labels[key]).to_list() if source in one else None
    if modes is not None:
        table["candidate_mode"], table["baseline_mode"] = modes
    return table


def question_changes(pairs: Pairs, scenario: Scenario) -> pd.DataFrame:
    """Return what became of each common question from the baseline to the candidate.

    Returns
    -------
    DataFrame
        ``sample_id`` (or what tells questions), ``before, now`` (the score that decides; nan where none does),
        ``before_label, now_label`` (None without gold) and ``change``: ``fixed``, ``broken``, ``better``,
        ``worse`` or ``same``.
    """
    column = primary_of(columns_of(pairs, scenario), None)
    common = np.all(pairs.states < 4, axis=0).any(axis=1)
    key = str(pairs.labels.columns[0])
    table = pd.DataFrame({"sample_id": pairs.labels.loc[common, key].astype(str).to_numpy(object)})
    now, before = (np.full(len(common), np.nan),) * 2 if column is None else column.scores
    table["before"], table["now"] = before[common], now[common]
    for role, origin in zip(("now", "before"), pairs.origins, strict=True):
        found = _texts(*origin, key, table["sample_id"].tolist(), "system", ["label"])
        table[f"{role}_label"] = found["label"].reindex(table["sample_id"]).to_list() if "label" in found else None
    sign = 1 if column is None or column.about["better"] == "higher" else -1
    gain = sign * (table["now"] - table["before"]).fillna(0.0)
    change = np.select([gain > TIE, gain < -TIE], ["better", "worse"], "same")
    right = [table[f"{role}_label"].isin(RIGHT) for role in ("now", "before")]
    known = table[["now_label", "before_label"]].notna().all(axis=1)
    turned = [known & right[0] & ~right[1], known & right[1] & ~right[0]]
    return table.assign(change=np.select(turned, ["fixed", "broken"], np.where(known, "same", change)))


def _modes(pairs: Pairs, at: npt.NDArray[np.intp]) -> Any:
    """Return the failure modes of some questions, of the candidate and the baseline; None where none applies."""
    own = [metric for metric in pairs.metrics if same_scale(metric)]
    if not {*NEEDED} <= {metric.name for metric in own}:
        return None
    frames = [pd.DataFrame(side[at], columns=[metric.name for metric in pairs.metrics]) for side in pairs.scores]
    return np.stack([failure_modes(one, metrics=own)["failure_mode"].to_numpy(object) for one in frames])


def _words(better: Flags, turned: Flags, modes: Any) -> list[str]:
    """Return the word for each change; one that the failure modes contradict is no more than better or worse."""
    if modes is not None:
        after, before = modes
        known = (after != MODES[0]) & (before != MODES[0])
        fine = np.where(better, after, before) == MODES[-1]
        turned = turned | (known & fine & (after != before))
    return [CHANGES[2 * (not turn) + (not up)] for up, turn in zip(better, turned, strict=True)]


def _texts(
    frame: Any, name: str | None, key: str, questions: Sequence[str], system: str, columns: Iterable[str]
) -> pd.DataFrame:
    """Return columns of some questions, one row each, from rows of any engine; those that are there."""
    wanted, have = set(questions), [text for text in columns if text in column_names(frame)]

    def of_batch(batch: Batch) -> pd.DataFrame:
        asked = batch.labels(key)
        kept = np.array([*(one in wanted for one in asked.names), False])[asked.codes]
        if name is not None:
            named = batch.labels(system)
            kept &= np.array([*(one == name for one in named.names), False])[named.codes]
        rows = {text: batch.frame[text].to_numpy(object)[kept] for text in have}
        return pd.DataFrame(rows, index=np.array([*asked.names, None], dtype=object)[asked.codes[kept]])

    def first(parts: list[pd.DataFrame]) -> pd.DataFrame:
        whole = pd.concat(parts)
        return whole[~whole.index.duplicated()]

    return cast(pd.DataFrame, reduce_batches(frame, [], [Reduction(of_batch, first, [key, system, *have])])[0])


def beside_baseline(
    scenario: Scenario, frame: Any, metrics: list[Metric]
) -> tuple[pd.DataFrame | None, pd.DataFrame, pd.DataFrame | None]:
    """Return how a run differs from the baseline of its scenario, the notes that come before, and each question.

    Returns
    -------
    DataFrame or None, DataFrame, DataFrame or None
        As `compare`, None without a baseline or where the two cannot be compared, which a note then says; and
        ``code, about, text``: questions, documents or a judge that changed, so that no such change is taken for
        one of the system.
    """
    if scenario.baseline is None:
        return None, note_frame([]), None
    run = Run(scenario.name, scenario, frame, tuple(metrics), systems_of(frame, "system"), judge_of(scenario))
    say = texts.load(scenario.lang)
    need_baseline(str(scenario.baseline), run.systems)
    try:
        other, pairs = paired_runs(run)
    except RagnbError as error:
        reason = translated(str(error), scenario.lang)
        return None, note_frame([note_row("not_compared", "", say("note.not_compared", reason=reason))]), None
    turned = question_changes(pairs[0], scenario) if len(pairs) == 1 else None
    return compared(pairs, scenario), note_frame(changes(run, other, pairs)), turned


def changes(run: Run, other: Run, pairs: Iterable[Pairs]) -> list[dict[str, str]]:
    """Return a note for each of judge, questions and documents that changed between two runs."""
    scenario = run.scenario
    rows = [row for one in pairs for row in _of_questions(one, scenario.doc, scenario.lang)]
    if run.judge and other.judge and run.judge != other.judge:
        rows.insert(0, note_row("judge_changed", "", texts.load(scenario.lang)("note.judge_changed")))
    return rows


def _of_questions(pairs: Pairs, doc: str, lang: str) -> Iterator[dict[str, str]]:
    say = texts.load(lang)
    there: Flags = np.any(pairs.states < 4, axis=2)
    only = [int((there[side] & ~there[1 - side]).sum()) for side in (0, 1)]
    if any(only) or pairs.reworded:
        counts = {"new": count(only[0]), "old": count(only[1]), "reworded": count(pairs.reworded)}
        text = say("note.questions_changed", n=count(int(np.logical_and(*there).sum())), **counts)
        yield note_row("questions_changed", pairs.candidate, text)
    if doc in pairs.labels:
        sides = [set(pairs.labels.loc[side, doc].dropna()) for side in there]
        if sides[0] != sides[1]:
            counts = {"new": count(len(sides[0] - sides[1])), "old": count(len(sides[1] - sides[0]))}
            yield note_row("documents_changed", pairs.candidate, say("note.documents_changed", **counts))
