"""Retrieval by rank: how far down the passages that gold names were found, question by question and on average."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, need_known, outside
from ragnb.polars import pl
from ragnb.readers.frames import as_called, brought, canonical
from ragnb.readers.raw import absent
from ragnb.schema import MEASURES, known_metric, rank_measure
from ragnb.traces import columns
from ragnb.traces.matching import Join, gold_frame, match, warn_of_repeats
from ragnb.traces.rates import rates_by_system
from ragnb.weights import column_names
from ragnb.weights.conversations import conversation_column

DEPTHS = (1, 3, 5, 10)
RELEVANCE = "gold_relevance"
"""A list beside ``gold_ids``: how relevant each passage is; without it all are equally so."""

Order = Literal["listed", "score"]


def label_retrieval(
    traces: Any,
    *,
    gold: Any = None,
    k: int | Sequence[int] = DEPTHS,
    order: Order = "listed",
    join: Join = "auto",
) -> Any:
    """Give each trace the measures of its ranked passages: columns such as ``recall@5`` and ``ndcg@10``.

    Parameters
    ----------
    traces : DataFrame or path
        One row per answer, or per query of a retriever alone: ``chunks`` (ids or ``{"id": …}``, best first), and
        ``question`` or ``sample_id``. Of pandas, Polars, PyArrow or DuckDB.
    gold : DataFrame or path, optional
        ``gold_ids``, and ``question`` or ``sample_id``; optional ``gold_relevance`` (numbers beside the ids, as
        qrels of TREC and BEIR have them) and ``answerable``. Without it such columns of `traces` are used.
    k : int or several
        How many passages from the top are looked at.
    order : {"listed", "score"}
        Whether the passages rank as they are listed, which is what the model read, or by the ``score`` of each,
        equal ones by their ids from last to first as trec_eval has it.
    join : {"auto", "question"}
        As `label_traces`.

    Returns
    -------
    DataFrame
        The traces' rows and columns, gold's, and for each k ``hit@k, recall@k, precision@k, ndcg@k, mrr@k, map@k``
        in [0, 1], nan where the question has no relevant passage or nothing tells what was retrieved, with
        ``<measure>@k__status``. A passage that is listed again counts at its first place, and the ones below it
        move up. The gain of nDCG is the relevance itself; ``precision@k`` divides by k, ``recall@k`` and ``map@k``
        by all relevant passages, as trec_eval.

    Raises
    ------
    RagnbError
        For columns that lack, depths below 1, and ``order="score"`` where a passage has no score.

    Examples
    --------
    >>> traces = pd.DataFrame({"sample_id": ["a", "b"], "chunks": [["p", "q"], ["r", "p"]]})
    >>> gold = pd.DataFrame({"sample_id": ["a", "b"], "gold_ids": [["q"], ["r", "s"]]})
    >>> label_retrieval(traces, gold=gold, k=2)[["recall@2", "mrr@2", "precision@2"]]
       recall@2  mrr@2  precision@2
    0       1.0    0.5          0.5
    1       0.5    1.0          0.5
    """
    depths = _depths(k)
    need_known("order", order, ["listed", "score"])
    need_known("join", join, ["auto", "question"])
    traces = brought(traces, "read_traces")
    named = canonical(traces, reader="read_traces")
    frame = columns.with_chunks(columns.workable(named))
    have = column_names(frame)
    if "chunks" not in have:
        raise RagnbError(f"traces have no column 'chunks'; {did_you_mean('chunks', have)}")
    gold = gold_frame(gold)
    if gold is not None:
        _need_ids(gold)
        met = match(frame, _with_answerable(gold), join)
        warn_of_repeats(met)
        frame = columns.with_gold(frame, gold, met.rows)
    _need_ids(frame)
    _warn_of_listed_again(frame)
    made = _measured(frame, depths, order)
    labelled = columns.as_brought(columns.assemble(frame, made), traces)
    return as_called(labelled, named, traces)


def retrieval(
    traces: Any,
    *,
    gold: Any = None,
    k: int | Sequence[int] = DEPTHS,
    by: str | None = None,
    order: Order = "listed",
    join: Join = "auto",
    doc: str = "doc_name",
    cluster: str | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return hit rate, recall, precision, nDCG, MRR and MAP at several depths, with clustered intervals.

    Parameters
    ----------
    traces, gold, k, order, join
        As `label_retrieval`.
    by : str, optional
        A column to group by. ``step`` of traces whose passages carry the number of the search that found them
        (several hops of an agent): what each search alone found, so that one sees which hop lost the passage.
    doc, cluster, level
        As `weighted_means`.

    Returns
    -------
    DataFrame
        ``[system,] [by,] measure, k, value, low, high, n, n_missing, n_not_applicable, n_clusters, cluster_unit``.

    Raises
    ------
    RagnbError
        As `label_retrieval`; and for ``by="step"`` where no passage has a step.

    Examples
    --------
    >>> traces = pd.DataFrame({"sample_id": ["a", "b"], "chunks": [["p", "q"], ["r", "p"]]})
    >>> gold = pd.DataFrame({"sample_id": ["a", "b"], "gold_ids": [["q"], ["r", "s"]]})
    >>> found = retrieval(traces, gold=gold, k=(1, 2))
    >>> found.loc[found["measure"] == "recall", ["k", "value", "n"]]
       k  value  n
    2  1   0.25  2
    3  2   0.75  2
    """
    depths = _depths(k)
    frame = brought(traces, "read_traces")
    if by == "step":
        rows = columns.workable(canonical(frame, reader="read_traces"))
        frame = _by_step(columns.with_chunks(rows))
    labelled = columns.workable(label_retrieval(frame, gold=gold, k=depths, order=order, join=join))
    return _means(labelled, depths, by=by, doc=doc, cluster=cluster, level=level)


def rank_means(
    labelled: Any,
    depths: Sequence[int],
    *,
    by: str | None = None,
    doc: str = "doc_name",
    cluster: str | None = None,
    **how: Any,
) -> pd.DataFrame:
    """Return what `retrieval` does, of traces that have their gold; `how` is passed on to `weighted_means`.

    Examples
    --------
    >>> rows = pd.DataFrame({"question": ["x"], "chunks": [["a"]], "gold_ids": [["a"]], "answerable": [True]})
    >>> rank_means(rows, (1,))["value"].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    frame = columns.with_chunks(columns.workable(labelled))
    if by == "step":
        frame = _by_step(frame)
    measures = _measured(frame, depths, "listed")
    measured = columns.workable(columns.assemble(frame, measures))
    return _means(measured, depths, by=by, doc=doc, cluster=cluster, **how)


def _means(
    labelled: Any,
    depths: Sequence[int],
    *,
    by: str | None,
    doc: str,
    cluster: str | None,
    **how: Any,
) -> pd.DataFrame:
    """Return the means of the measures as `retrieval` shows them."""
    names = [f"{measure}@{depth}" for measure in MEASURES for depth in depths]
    statuses = [f"{name}__status" for name in names]
    rows = pd.DataFrame({name: columns.cells(labelled, name) for name in [*names, *statuses]})
    # Beside the measures, only the columns that tell rows, groups and clusters apart are kept.
    conversation = conversation_column(labelled)
    for name in ("sample_id", "question", "system", "repeat", doc, cluster, conversation, by):
        if name is not None and name in labelled.columns:
            rows[name] = columns.cells(labelled, name)
    metrics = [metric for name in names if (metric := known_metric(name)) is not None]
    means = rates_by_system(rows, metrics, by=by, doc=doc, cluster=cluster, **how)
    return _shaped(means, by)


_KEPT = ("value", "low", "high", "n", "n_missing", "n_not_applicable", "n_clusters", "cluster_unit")


def _shaped(means: pd.DataFrame, by: str | None) -> pd.DataFrame:
    """Return the means as a row a measure and depth."""
    parts = [rank_measure(name) or ("", 0) for name in means["metric"]]
    rows = means.assign(measure=[measure for measure, _ in parts], k=[depth for _, depth in parts])
    groups = ["system"] if "system" in rows else []
    if by and by not in groups:
        groups.append(by)
    shaped: pd.DataFrame = rows[[*groups, "measure", "k", *_KEPT]]
    if by == "step":  # groups are named by their text
        steps = [int(step) if str(step).isdigit() else step for step in shaped["step"]]
        shaped = shaped.assign(step=steps)
    return shaped


def _depths(k: int | Sequence[int]) -> tuple[int, ...]:
    """Return the depths in order, each once."""
    given = [k] if isinstance(k, int | np.integer) else list(k)
    # True is an int in Python, and no depth.
    wrong = [
        depth for depth in given if isinstance(depth, bool) or depth != int(depth) or depth < 1
    ]
    if not given or wrong:
        raise RagnbError(f"k={k!r}: depths are whole numbers from 1 on, such as k=(1, 3, 5, 10)")
    return tuple(sorted({int(depth) for depth in given}))


def _need_ids(frame: Any) -> None:
    if "gold_ids" not in frame.columns:
        have = list(map(str, frame.columns))
        raise RagnbError(
            f"no column 'gold_ids' says which passages are relevant; {did_you_mean('gold_ids', have)}"
        )


def _with_answerable(gold: Any) -> Any:
    """Return gold with ``answerable``: where it does not say so, a question with relevant passages is."""
    if "answerable" in gold.columns:
        return gold
    some = columns.id_lists(gold, "gold_ids").list.len().fill_null(0) > 0
    if isinstance(gold, pd.DataFrame):
        return gold.assign(answerable=some.to_list())
    return gold.with_columns(answerable=some)


def _measured(frame: Any, depths: Sequence[int], order: Order) -> pl.DataFrame:
    """Return the measures of each row, and why one has no number."""
    chunks = columns.id_lists(frame, "chunks")
    # Passages of which none has an id say nothing; an empty list says that nothing was retrieved.
    is_known = (chunks.list.len() == 0) | (chunks.list.drop_nulls().list.len() > 0)
    relevant_passages = _relevant_passages(frame)
    listed = _listed(frame, chunks, order)
    place_in_row = pl.int_range(1, pl.len() + 1).over("row")
    # The best possible order, by whose gain nDCG divides.
    ideal = relevant_passages.sort(["row", "relevance"], descending=[False, True])
    ideal = ideal.with_columns(rank=place_in_row)
    hits = listed.join(relevant_passages, on=["row", "id"], how="inner").sort(["row", "rank"])
    hits = hits.with_columns(so_far=place_in_row)  # relevant passages down to this rank
    table = pl.DataFrame({"row": pl.Series(range(len(chunks)), dtype=pl.Int64)})
    relevant = relevant_passages.group_by("row").agg(relevant=pl.len())
    table = table.join(relevant, on="row", how="left", maintain_order="left")
    for depth in depths:
        of_depth = _at_depth(hits, ideal, depth)
        table = table.join(of_depth, on="row", how="left", maintain_order="left")
    return _with_statuses(table, is_known, _is_answerable(frame), depths)


def _is_answerable(frame: Any) -> pl.Series:
    """Return whether a question has an answer; where nothing says so, it may have one."""
    return columns.answerable(frame).fill_null(1.0) == 1


def _with_statuses(
    table: pl.DataFrame, is_known: pl.Series, is_answerable: pl.Series, depths: Sequence[int]
) -> pl.DataFrame:
    """Return the measures in their order, nan where one does not apply or nothing tells it."""
    table = table.with_columns(known=is_known.fill_null(False), answerable=is_answerable)
    applies = (pl.col("relevant").fill_null(0) > 0) & pl.col("answerable")
    word = pl.when(pl.col("known")).then(pl.lit("ok")).otherwise(pl.lit("missing"))
    status = pl.when(applies).then(word).otherwise(pl.lit("not_applicable"))
    measures = []
    for measure in MEASURES:
        for depth in depths:
            name = f"{measure}@{depth}"
            value = pl.when(applies & pl.col("known")).then(pl.col(name).fill_null(0.0))
            measures.append(value.cast(pl.Float64).alias(name))
            measures.append(status.alias(f"{name}__status"))
    return table.select(measures)


def _at_depth(hits: pl.DataFrame, ideal: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Return all measures of the first `depth` passages of each row that has a relevant one.

    `hits` are the relevant passages at their ranks, `ideal` all relevant ones in the best order.

    Notes
    -----
    As trec_eval: P = hits/k, recall and AP over all relevant passages, nDCG of Σ rel/log2(rank + 1) over that of
    the ideal order.
    """
    gain = pl.col("relevance") / (pl.col("rank") + 1).log(2)
    precision = pl.col("so_far") / pl.col("rank")
    all_relevant = ideal.group_by("row").agg(relevant=pl.len())
    best = ideal.filter(pl.col("rank") <= depth).group_by("row").agg(best_gain=gain.sum())
    top = hits.filter(pl.col("rank") <= depth)
    of_top = top.group_by("row").agg(
        gain=gain.sum(), n=pl.len(), first=pl.col("rank").min(), precisions=precision.sum()
    )
    rows = all_relevant.join(best, on="row", how="left").join(of_top, on="row", how="left")
    # A row without a hit at this depth has no row in `of_top`.
    n_hits = pl.col("n").fill_null(0)
    return rows.select(
        "row",
        (n_hits > 0).cast(pl.Float64).alias(f"hit@{depth}"),
        (n_hits / pl.col("relevant")).alias(f"recall@{depth}"),
        (n_hits / depth).alias(f"precision@{depth}"),
        (pl.col("gain").fill_null(0.0) / pl.col("best_gain")).alias(f"ndcg@{depth}"),
        (1 / pl.col("first")).fill_null(0.0).alias(f"mrr@{depth}"),
        (pl.col("precisions").fill_null(0.0) / pl.col("relevant")).alias(f"map@{depth}"),
    )


def _relevant_passages(frame: Any) -> pl.DataFrame:
    """Return the relevant passages: ``row, id, relevance``, each once, with its highest relevance."""
    names = columns.id_lists(frame, "gold_ids")
    relevance = _relevance(frame, names)
    rows = pl.DataFrame({"row": pl.Series(range(len(names)), dtype=pl.Int64), "id": names})
    rows = rows.with_columns(relevance=relevance).explode("id", "relevance").drop_nulls("id")
    # In qrels a passage of relevance 0 was judged and is not relevant.
    kept = rows.filter(pl.col("relevance") > 0)
    return kept.group_by("row", "id", maintain_order=True).agg(pl.col("relevance").max())


def _relevance(frame: Any, names: pl.Series) -> pl.Series:
    """Return a list of numbers beside each list of ids, 1 where nothing grades them."""
    if RELEVANCE in frame.columns:
        cells = columns.cells(frame, RELEVANCE)
    else:
        cells = [None] * len(names)
    lists: list[list[float] | None] = []
    for row, (given, ids) in enumerate(zip(cells, names.to_list(), strict=True)):
        if ids is None:  # no gold met this row
            lists.append(None)
            continue
        n_ids = len(ids)
        if given is None or isinstance(given, float):  # pandas writes a missing cell as nan
            lists.append([1.0] * n_ids)
            continue
        if len(given) != n_ids:
            raise RagnbError(
                f"{RELEVANCE}, row {row}: {len(given)} numbers beside {n_ids} gold_ids; write one for each id"
            )
        lists.append([float(number) for number in given])
    return pl.Series("relevance", lists, dtype=pl.List(pl.Float64))


def _listed(frame: Any, chunks: pl.Series, order: Order) -> pl.DataFrame:
    """Return the passages of each row at their rank: ``row, id, rank``; one that is listed again counts once."""
    rows = pl.DataFrame({"row": pl.Series(range(len(chunks)), dtype=pl.Int64), "id": chunks})
    if order == "score":
        rows = rows.with_columns(score=_scores(frame)).explode("id", "score")
        rows = rows.sort(
            ["row", "score", "id"], descending=[False, True, True], maintain_order=True
        )
    else:
        rows = rows.explode("id")
    rows = rows.with_row_index("place")
    # Passages without an id keep their places and are never found. Each is called by its place behind a zero
    # byte, so that it repeats no other.
    name = pl.coalesce("id", pl.format("\0{}", "place"))
    once = rows.filter(pl.struct("row", name.alias("name")).is_first_distinct())
    return once.with_columns(rank=pl.int_range(1, pl.len() + 1).over("row")).drop("place")


def _warn_of_listed_again(frame: Any) -> None:
    """Say how many rows list a passage more than once, and how it counts."""
    chunks = columns.id_lists(frame, "chunks")
    rows = pl.DataFrame({"row": pl.Series(range(len(chunks)), dtype=pl.Int64), "id": chunks})
    named = rows.explode("id").drop_nulls("id")
    n_rows = named.filter(named.is_duplicated())["row"].n_unique()
    if n_rows:
        text = (
            f"{n_rows} of {len(chunks)} rows list a passage more than once; each counts at its first place and "
            "the ones below it move up"
        )
        warnings.warn(text, RagnbWarning, stacklevel=outside())


def _scores(frame: Any) -> pl.Series:
    """Return the score of each passage of each row."""
    lists: list[list[float] | None] = []
    for row, cell in enumerate(columns.cells(frame, "chunks")):
        if absent(cell):
            lists.append(None)
            continue
        scores: list[Any] = [item.get("score") if isinstance(item, dict) else None for item in cell]
        lacking = [place for place, score in enumerate(scores, 1) if absent(score)]
        if lacking:
            raise RagnbError(
                f"order='score': passage {lacking[0]} of row {row} has no score; leave order= out to rank "
                "passages as they are listed"
            )
        lists.append([float(score) for score in scores])
    return pl.Series("score", lists, dtype=pl.List(pl.Float64))


def _by_step(frame: Any) -> Any:
    """Return a row for each search of each trace, with the passages that it found."""
    if "chunks" not in frame.columns:
        return frame
    rows = []
    steps = []
    passages = []
    for row, cell in enumerate(columns.cells(frame, "chunks")):
        for step, of_step in _steps(cell).items():
            rows.append(row)
            steps.append(step)
            passages.append(of_step)
    if all(step is None for step in steps):
        raise RagnbError(
            "by='step': no passage says in which step it was found; read the traces with rn.read_traces, "
            "which numbers the passages of steps, turns and spans, or leave by= out"
        )
    if not isinstance(frame, pd.DataFrame):
        frame = frame.to_pandas()
    return frame.iloc[rows].reset_index(drop=True).assign(chunks=passages, step=steps)


def _steps(cell: Any) -> dict[Any, list[Any]]:
    """Return the passages of a cell by the number of their step."""
    steps: dict[Any, list[Any]] = {}
    if absent(cell):
        return steps
    for item in cell:
        step = item.get("step") if isinstance(item, dict) else None
        steps.setdefault(step, []).append(item)
    return steps


def telling_depths(frame: Any) -> tuple[int, ...]:
    """Return the usual depths up to the one that holds every list of passages; none where passages have no id.

    Where nothing was retrieved, that is known without ids.

    Examples
    --------
    >>> telling_depths(pd.DataFrame({"chunks": [["a", "b"], ["a"]]}))
    (1, 3)
    >>> telling_depths(pd.DataFrame({"chunks": [[], None]}))
    (1,)
    """
    lists = columns.id_lists(columns.with_chunks(columns.workable(frame)), "chunks").drop_nulls()
    sizes: list[int] = lists.list.len().to_list()
    n_ids = lists.list.drop_nulls().list.len().sum()
    if not sizes or (any(sizes) and not n_ids):
        return ()
    longest = max(sizes)
    shorter = [depth for depth in DEPTHS if depth < longest]
    beyond = [depth for depth in DEPTHS if depth >= longest]
    return (*shorter, *beyond[:1])


def has_steps(frame: Any) -> bool:
    """Whether passages of one row were found in several searches, as those of an agent.

    Examples
    --------
    >>> has_steps(pd.DataFrame({"chunks": [[{"id": "a", "step": 1}, {"id": "b", "step": 2}]]}))
    True
    """
    if "chunks" not in column_names(frame):
        return False
    return any(len(_steps(cell)) > 1 for cell in columns.cells(columns.workable(frame), "chunks"))


def with_ranks(frame: Any, names: Iterable[str]) -> Any:
    """Return labelled traces with the measures by rank that some names ask for.

    Examples
    --------
    >>> rows = pd.DataFrame({"question": ["x"], "chunks": [["a"]], "gold_ids": [["a"]], "answerable": [True]})
    >>> "recall@2" in with_ranks(rows, ["recall@2", "faithfulness"])
    True
    """
    asked = [name for name in names if rank_measure(name) is not None]
    have = column_names(frame)
    if not asked or not {"chunks", "gold_ids"} <= {*have}:
        return frame
    depths = {int(name.split("@")[1]) for name in asked}
    labelled = label_retrieval(frame, k=sorted(depths))
    kept = {*have, *asked, *(f"{name}__status" for name in asked)}
    return labelled[[name for name in column_names(labelled) if name in kept]]
