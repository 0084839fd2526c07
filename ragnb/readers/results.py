"""Results of evaluators, however deep in a cell or in lists they are, as columns of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ragnb.readers.names import WORDS, plain
from ragnb.readers.raw import Lossy, Raw, Values, absent, from_records, is_text, unpacked

# What holds where a layout does not say it; which end is better is looked for in other evidence.
UNIT_SCALE: dict[str, Any] = {"low": 0.0, "high": 1.0, "better": None, "threshold": None}
_OF_A_SCORE = {
    "score",
    "reason",
    "explanation",
    "status",
    "name",
    "label",
    "metadata",
    "kind",
    "direction",
}
# Keys of a result in a list of results: its metric, and what is said of its score.
_SAID_OF_RESULT = ("reason", "explanation", "status", "error")
_RESULT_NAMES = ("name", "metric", "metric_name", "metricName", "key", "evaluator", "dimension")
_NESTS = frozenset(map(plain, WORDS["nests"]["names"]))


def scored(
    raw: Raw,
    name: str,
    scores: Values,
    failed: Iterable[bool] = (),
    reasons: Iterable[Any] = (),
    scale: Mapping[str, Any] = UNIT_SCALE,
) -> None:
    """Set the columns of a metric, its status and reasons, and declare its scale; a failure has no score."""
    # A tool that tells no failures passes none at all.
    status = ["failed" if bad else None for bad in failed] or [None] * len(scores)
    raw.columns[name] = [
        None if has_failed else cell for has_failed, cell in zip(status, scores, strict=True)
    ]
    _beside(raw, name, status, reasons)
    raw.scales[name] = {key: scale.get(key, default) for key, default in UNIT_SCALE.items()}


def _beside(raw: Raw, name: str, status: Iterable[Any], reasons: Iterable[Any]) -> None:
    """Set the columns of a metric's status and reasons, each where one of its cells says something."""
    for end, cells in (("status", list(status)), ("reason", list(reasons))):
        if not all(map(absent, cells)):
            raw.columns[f"{name}__{end}"] = cells


def spread_results(raw: Raw, report: Lossy) -> None:
    """Turn objects into a column per metric: ``results``, ``scores``, ``evaluation`` and the like (metric → number
    or score, status and reason), and a metric's own objects of a score and a reason."""
    for name in [name for name in raw.columns if is_nest_of_scores(name)]:
        cells = raw.columns[name]
        # A series of numbers or truth values holds no objects and is not gone through.
        if is_text(cells) or not isinstance(cells, pd.Series):
            cells = by_name([unpacked(cell, r"\s*[\[{].*") for cell in cells])
        objects = _objects(cells, _holds_results)
        if not objects:
            continue
        # Before the metrics get their columns, so that one may have the name of the nest.
        del raw.columns[name]
        report.add("mapped", name, "a column a metric", len(objects))
        for key, inner in from_records(objects).items():
            _unnest(raw, name, key, inner)
    for name in list(raw.columns):
        objects = _objects(raw.columns[name], _is_one_score)
        if objects:
            _results(raw, name, objects)
            report.add("mapped", name, "the score of an object, and its reason", len(objects))


def by_name(cells: Sequence[Any]) -> Sequence[Any]:
    """Return lists of named results, as Langfuse keeps the scores of a trace, as objects of metric → result.

    Where a cell is no such list, or holds a name twice, all are returned as they are.

    Examples
    --------
    >>> by_name([[{"name": "faithfulness", "value": 0.5}], [], None])
    [{'faithfulness': {'score': 0.5}}, {}, None]
    """
    objects: list[Any] = []
    for cell in cells:
        results = [] if absent(cell) else cell
        if not isinstance(results, list):
            return cells
        named: dict[str, Any] = {}
        for result in results:
            keys = {*result} if isinstance(result, Mapping) else set()
            name_key = next((key for key in _RESULT_NAMES if key in keys), None)
            score_key = next((key for key in ("score", "value") if key in keys), None)
            if name_key is None or score_key is None or str(result[name_key]) in named:
                return cells
            remarks = {key: result[key] for key in _SAID_OF_RESULT if key in keys}
            named[str(result[name_key])] = {"score": result[score_key], **remarks}
        objects.append(None if absent(cell) else named)
    return objects


def is_nest_of_scores(name: str) -> bool:
    """Return whether a column of this name may hold the scores of a row in an object.

    Examples
    --------
    >>> is_nest_of_scores("ragasScores"), is_nest_of_scores("metadata")
    (True, False)
    """
    return plain(name) in _NESTS


def _holds_results(cell: Mapping[str, Any]) -> bool:
    """Return whether an object holds scores, and nothing that is not a score or said of them."""
    if _is_one_score(cell):
        return False  # one metric, whose name is that of the object
    values = [*cell.values()]
    holds_result = any(map(_is_result, values))
    return holds_result and all(_is_result(value) or isinstance(value, str) for value in values)


def _is_one_score(cell: Mapping[str, Any]) -> bool:
    """Return whether an object is one score with what is said of it, and holds nothing else."""
    return {"score"} <= set(cell) <= _OF_A_SCORE


def _unnest(raw: Raw, outer: str, key: str, cells: Sequence[Any]) -> None:
    """Make a column of what objects hold under a key; of a name that is taken, below the name of the objects."""
    name = f"{outer}.{key}" if key in raw.columns else key
    if any(isinstance(cell, Mapping) for cell in cells):
        # An evaluator may write a bare number in one row, and an object in another.
        results = [cell if isinstance(cell, Mapping) else {"score": cell} for cell in cells]
        _results(raw, name, results)
    else:
        raw.columns[name] = list(cells)


def _objects(cells: Values, fits: Callable[[Any], bool]) -> list[Any]:
    """Return cells as objects where all that hold something are such as fit, else none."""
    if isinstance(cells, pd.Series) or not any(type(cell) is dict and cell for cell in cells):
        return []
    objects = [{} if absent(cell) else cell for cell in cells]
    if all(isinstance(cell, Mapping) and (not cell or fits(cell)) for cell in objects):
        return objects
    return []


def _is_result(value: Any) -> bool:
    """Return whether a value is a score: a number, an object with a score or status, or a missing one."""
    if isinstance(value, Mapping):
        return bool({"score", "status"} & set(value))
    return absent(value) or isinstance(value, int | float)


def _results(raw: Raw, metric: str, results: list[Any]) -> None:
    """Set the columns of a metric from its results; an error is its reason where there is no score."""
    scores = []
    reasons = []
    status = []
    for result in results:
        score = result.get("score")
        error = result.get("error") if absent(score) else None
        scores.append(score)
        if absent(error):
            reasons.append(result.get("reason", result.get("explanation")))
            status.append(result.get("status"))
        else:
            reasons.append(error)
            status.append("failed")
    raw.columns[metric] = scores
    _beside(raw, metric, status, reasons)
