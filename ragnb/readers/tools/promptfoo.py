"""Tables of promptfoo: named scores, their assertions, and a score of the row that is made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragnb.readers.kinds import as_number
from ragnb.readers.raw import Lossy, Raw, absent, from_records
from ragnb.readers.results import scored
from ragnb.readers.tools.failures import failed_with_error, shared_threshold
from ragnb.readers.verdicts import note_verdicts

_BROKEN = re.compile(
    r"^Error running|threw (an )?error|execution failed|^API (call )?error", re.IGNORECASE
)


# What would count them twice.
MEAN_OF_NAMED = "the mean of the named scores of a row"
# What only it counts, and how far rounding may take it from them.
MORE_THAN_NAMED = "counts assertions without a name too: a metric beside the named scores"
_ROUNDED_SCORE = 0.011  # promptfoo writes scores with two decimals


def read_promptfoo(raw: Raw, report: Lossy) -> None:
    """Spread the variables and the named scores, and take the provider (and prompt) for the system.

    The caller says which variable is the question, where its name does not: ``columns={"prompt": "question"}``.
    """
    columns = raw.columns
    errors = raw.cells("error")  # read before a variable of that name may become a column
    if "system" in columns:
        columns["system"] = _systems(raw)
    answers = [
        cell.get("output") if isinstance(cell, dict) else cell for cell in raw.cells("answer")
    ]
    if "answer" in columns:
        columns["answer"] = answers
    lost = _lost_rows(raw.cells("failureReason"), errors, answers)
    columns.pop("id", None)
    metrics = ["score"] if "score" in columns else []
    _spread_objects(raw, "vars", report)
    metrics += _spread_objects(raw, "namedScores", report)
    assertions = [_assertions(cell) for cell in raw.cells("gradingResult")]
    for name in metrics:
        _read_metric(raw, name, lost, errors, assertions, report)
    if len(metrics) > 1 and metrics[0] == "score":
        if _counts_more(columns["score"], [columns[name] for name in metrics[1:]]):
            report.add("kept", "score", MORE_THAN_NAMED, len(raw))
            return
        raw.scales.pop("score", None)
        for name in ("score", "score__status", "score__reason"):
            columns.pop(name, None)
        report.add("left_out", "score", MEAN_OF_NAMED, len(raw))


def _systems(raw: Raw) -> list[Any]:
    """Return the provider of each row, with the number of its prompt where there are several prompts."""
    systems = [
        cell.get("label") or cell.get("id") if isinstance(cell, dict) else cell
        for cell in raw.cells("system")
    ]
    prompts = raw.cells("promptIdx")
    if len(set(map(str, prompts))) > 1:
        pairs = zip(systems, prompts, strict=True)
        return [f"{system or ''} prompt {prompt}" for system, prompt in pairs]
    return systems


def _lost_rows(reasons: Iterable[Any], errors: Iterable[Any], answers: Iterable[Any]) -> list[bool]:
    """Return which rows promptfoo could not answer or score; it writes a score of 0 for them all the same."""
    lost = []
    for reason, has_only_error in zip(reasons, failed_with_error(errors, answers), strict=True):
        # promptfoo's failureReason is 0 for none, 1 for an assertion that failed, and 2 for an error. An
        # assertion that failed is a score of 0, although `error` holds its message. A file without the reason
        # tells by an error beside no answer.
        lost.append(str(reason) in ("2", "2.0") or (absent(reason) and has_only_error))
    return lost


def _spread_objects(raw: Raw, name: str, report: Lossy) -> list[str]:
    """Turn a column of objects into a column for each of their keys, and return the names of these."""
    objects = [cell if isinstance(cell, dict) else {} for cell in raw.columns.pop(name, ())]
    spread = from_records(objects)
    n_rows = len(objects) if spread else 0
    report.add("mapped", name, "a column each", n_rows)
    named = {f"{name}.{key}" if key in raw.columns else key: cells for key, cells in spread.items()}
    raw.columns |= named
    return list(named)


def _read_metric(
    raw: Raw,
    name: str,
    lost: Iterable[bool],
    errors: Iterable[Any],
    assertions: Sequence[Mapping[str, Mapping[str, Any]]],
    report: Lossy,
) -> None:
    """Make the score of the rows, or a named one, a metric, with what its assertions say of it.

    Parameters
    ----------
    lost : iterable of bool
        Which rows have no answer or no score.
    errors : iterable
        The message of each row.
    assertions : sequence of mapping of metric to result
        Of each row, as `_assertions` returns them.
    """
    results = [row.get(name, {}) for row in assertions]
    failed = []
    for is_lost, row, result in zip(lost, assertions, results, strict=True):
        # A row's score counts an assertion that broke as 0.
        behind = row.values() if name == "score" else [result]
        failed.append(is_lost or any(part.get("broken") for part in behind))
    # The score of the assertion itself: the named score is multiplied by a weight, which may be 0.
    scores = [
        result.get("score", named_score)
        for result, named_score in zip(results, raw.columns[name], strict=True)
    ]
    reasons = [
        (error or result.get("reason")) if bad else None
        for bad, error, result in zip(failed, errors, results, strict=True)
    ]
    verdicts = [
        None if bad else result.get("pass") for bad, result in zip(failed, results, strict=True)
    ]
    thresholds = [result.get("threshold") for result in results]
    note_verdicts(raw, name, scores, thresholds, verdicts)
    scored(raw, name, scores, failed, reasons, shared_threshold(results))
    why = "the answer was not made or not scored (failureReason 2, or an error): failed"
    report.add("mapped", name, why, sum(failed))


def read_promptfoo_csv(raw: Raw, report: Lossy) -> None:
    """Take the metrics and the answer of the one provider of a CSV export, whose scores have two decimals."""
    columns = raw.columns
    failed = [str(word) == "ERROR" for word in columns["Status"]]
    for name in list(columns):
        if name.startswith("Metric: "):
            scored(raw, name.removeprefix("Metric: "), columns.pop(name), failed)
            report.add("mapped", name, "a metric; the status ERROR is failed", len(failed))
    if "Score" in columns and raw.scales:
        named = [columns[name] for name in raw.scales]
        total = columns.pop("Score")
        scores = [None if bad else cell for bad, cell in zip(failed, total, strict=True)]
        if _counts_more(scores, named):
            scored(raw, "score", total, failed)
            report.add("kept", "Score", MORE_THAN_NAMED, len(failed))
        else:
            report.add("left_out", "Score", MEAN_OF_NAMED, len(failed))
    # The column of a provider's answers is headed "[provider] prompt".
    of_providers = [name for name in columns if name.startswith("[")]
    raw.rename(dict.fromkeys(of_providers[:1], "answer"), report)


def _counts_more(scores: Iterable[Any], named: Sequence[Sequence[Any]]) -> bool:
    """Return whether the score of a row lies beyond its named scores, so that it is no mean of them alone."""
    for score, *parts in zip(scores, *named, strict=True):
        total = as_number(score)
        numbers = [number for cell in parts if (number := as_number(cell)) is not None]
        if total is None or len(numbers) < len(parts):
            continue
        if not min(numbers) - _ROUNDED_SCORE <= total <= max(numbers) + _ROUNDED_SCORE:
            return True
    return False


def _assertions(grading: Any) -> dict[str, dict[str, Any]]:
    """Return the result of each metric that one assertion gives; its named score leaves out a weight of 0."""
    by_metric: dict[str, list[dict[str, Any]]] = {}
    if isinstance(grading, dict):
        for part in grading.get("componentResults") or ():
            assertion = part.get("assertion") or {}
            result = {
                "score": part.get("score"),
                "pass": part.get("pass"),
                "reason": part.get("reason"),
                "threshold": assertion.get("threshold"),
                # The beginning of a message is enough; it may go on with a whole reply.
                "broken": bool(_BROKEN.search(str(part.get("reason"))[:200])),
            }
            by_metric.setdefault(str(assertion.get("metric")), []).append(result)
    # Several assertions under one metric make up its named score together: no single result is the metric's.
    return {name: results[0] for name, results in by_metric.items() if len(results) == 1}
