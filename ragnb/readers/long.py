"""One row a sample and metric, as Langfuse, Phoenix and many scripts write scores, becomes one row a sample."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

from ragnb.errors import RagnbError, listing
from ragnb.readers import langfuse, phoenix
from ragnb.readers.lossy import Lossy
from ragnb.readers.names import REPEAT_NAMES, SYSTEM_NAMES, meanings
from ragnb.readers.raw import Raw, absent, clean_text
from ragnb.schema import METRICS

_NAMES = ("metric", "metric_name", "scorer", "指标", "评估指标", "指标名称")
_SCORES = ("score", "value", "metric_value", "分数", "得分")
_REASONS = ("reason", "explanation", "comment", "rationale", "理由")
_KEYS = {"sample_id", "question", "system", "repeat", "doc_name"}


def sniff(columns: Set[str]) -> bool:
    """Whether one column names the metric and another holds its score, of samples that are named.

    Examples
    --------
    >>> sniff({"sample_id", "metric", "score"}), sniff({"metric", "score"}), sniff({"question", "faithfulness"})
    (True, False, False)
    """
    told = set(meanings(columns))
    named = columns & {*_NAMES} and columns & {*_SCORES} and told & {"sample_id", "question"}
    return _of_langfuse(columns) or _of_phoenix(columns) or bool(named and not told & set(METRICS))


def _of_langfuse(columns: Set[str]) -> bool:
    return langfuse.sniff(columns) and "traceId" in columns


def _of_phoenix(columns: Set[str]) -> bool:
    return phoenix.sniff(columns) and "annotation_name" in columns


def read(raw: Raw, report: Lossy) -> None:
    """Turn the metrics into columns; what people scored is left out, ratings have a reader of their own.

    Raises
    ------
    RagnbError
        Where one sample has two scores of one metric, with the line of the second.
    """
    _of_a_tool(raw, report)
    columns = raw.columns
    name = next(name for name in _NAMES if name in columns)
    unnamed = [absent(metric) or not str(metric).strip() for metric in columns[name]]
    _keep(raw, report, name, "scores that name no metric", unnamed)
    columns = raw.columns
    score = next(name for name in _SCORES if name in columns)
    reason = next((name for name in _REASONS if name in columns), None)
    keys = [n for n in columns if {*meanings([n])} & _KEYS or n.casefold() in (*SYSTEM_NAMES, *REPEAT_NAMES)]
    rows: dict[tuple[str, ...], dict[str, int]] = {}
    metrics = [clean_text(str(metric))[0] for metric in columns[name]]
    for i, (metric, *key) in enumerate(zip(metrics, *(columns[n] for n in keys), strict=True)):
        held = rows.setdefault(tuple(map(str, key)), {})
        if metric in held:
            raise RagnbError(
                f"{raw.where(i)}a second {metric!r} of one sample ({listing(keys)} are the same); name the column "
                "that tells the rows apart: columns={'…': 'system'} or columns={'…': 'repeat'}"
            )
        held[metric] = i
    firsts = [next(iter(held.values())) for held in rows.values()]
    wide: dict[str, list[Any]] = {n: [columns[n][i] for i in firsts] for n in keys}
    for other in [n for n in columns if n not in (*keys, name, score, reason)]:
        cells = columns[other]
        if all(len({str(cells[i]) for i in held.values()}) == 1 for held in rows.values()):
            wide[other] = [cells[i] for i in firsts]
        else:
            report.add("left_out", other, "differs between the metrics of a sample", len(cells))
    for metric in dict.fromkeys(m for held in rows.values() for m in held):
        at = [held.get(metric) for held in rows.values()]
        wide[metric] = [None if i is None else columns[score][i] for i in at]
        if reason:
            wide[f"{metric}__reason"] = [None if i is None else columns[reason][i] for i in at]
    report.add("mapped", name, "one row a metric, turned to one row a sample", len(raw))
    raw.keep(firsts)
    raw.columns = wide


def _of_a_tool(raw: Raw, report: Lossy) -> None:
    """Bring an export of Langfuse or Phoenix to a sample, a metric, a score and a comment."""
    columns = raw.columns
    if _of_langfuse(set(columns)):
        by_people = [kind == "ANNOTATION" for kind in columns["source"]]
        _keep(raw, report, "source", "annotations by people; read_ratings reads them", by_people)
        texts = [kind not in ("NUMERIC", "BOOLEAN") for kind in raw.columns["dataType"]]
        _keep(raw, report, "dataType", "scores that are no numbers", texts)
        columns = raw.columns
        name, score, comment, ids = "name", "value", "comment", langfuse.scored_ids(raw)
    elif _of_phoenix(set(columns)):
        by_people = [str(kind).upper() == "HUMAN" for kind in columns["annotator_kind"]]
        _keep(raw, report, "annotator_kind", "annotations by people; read_ratings reads them", by_people)
        columns, name = raw.columns, "annotation_name"
        score = "score" if "score" in columns else "result.score"
        comment = score.replace("score", "explanation")
        ids = columns.get("context.span_id", columns.get("span_id", [None] * len(raw)))
    else:
        return
    report.add("mapped", name, "metric", len(raw))
    raw.columns = {"sample_id": ids, "metric": columns[name], "score": columns[score]}
    if comment in columns:
        raw.columns["comment"] = columns[comment]


def _keep(raw: Raw, report: Lossy, column: str, why: str, out: Iterable[bool]) -> None:
    kept = [i for i, gone in enumerate(out) if not gone]
    report.add("left_out", column, why, len(raw) - len(kept))
    if not kept:
        raise RagnbError(f"{raw.where()}holds no score but {why}")
    raw.keep(kept)
