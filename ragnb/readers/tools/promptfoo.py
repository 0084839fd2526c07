"""Tables of promptfoo: named scores, their assertions, and a score of the row that is made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
    rows = len(raw)
    errors = raw.cells("error")
    prompts = raw.cells("promptIdx")
    answers = raw.cells("answer")
    systems = [
        c.get("label") or c.get("id") if isinstance(c, dict) else c for c in raw.cells("system")
    ]
    if len(set(map(str, prompts))) > 1:
        systems = [
            f"{system or ''} prompt {prompt}"
            for system, prompt in zip(systems, prompts, strict=True)
        ]
    answers = [cell.get("output") if isinstance(cell, dict) else cell for cell in answers]
    columns |= {n: cells for n, cells in (("system", systems), ("answer", answers)) if n in columns}
    # A file without failureReason tells by an error beside no answer.
    codes = zip(raw.cells("failureReason"), failed_with_error(errors, answers), strict=True)
    lost = [str(code) in ("2", "2.0") or (absent(code) and broken) for code, broken in codes]
    columns.pop("id", None)
    metrics = ["score"] if "score" in columns else []
    for name in ("vars", "namedScores"):
        spread = from_records(
            [cell if isinstance(cell, dict) else {} for cell in columns.pop(name, ())]
        )
        report.add("mapped", name, "a column each", rows * bool(spread))
        named = {f"{name}.{key}" if key in columns else key: cells for key, cells in spread.items()}
        columns |= named
        if name == "namedScores":
            metrics += named
    graded = [_assertions(cell) for cell in raw.cells("gradingResult")]
    for name in metrics:
        own = [row.get(name, {}) for row in graded]
        # A row's score counts an assertion that broke as 0.
        parts = [[*row.values()] if name == "score" else [row.get(name, {})] for row in graded]
        failed = [
            bad or any(c.get("broken") for c in row) for bad, row in zip(lost, parts, strict=True)
        ]
        cells = [cell.get("score", given) for cell, given in zip(own, columns[name], strict=True)]
        whys = zip(failed, errors, own, strict=True)
        reasons = [(error or cell.get("reason")) if bad else None for bad, error, cell in whys]
        limits = [cell.get("threshold") for cell in own]
        verdicts = [
            None if bad else cell.get("pass") for bad, cell in zip(failed, own, strict=True)
        ]
        note_verdicts(raw, name, cells, limits, verdicts)
        scored(raw, name, cells, failed, reasons, shared_threshold(own))
        why = "the answer was not made or not scored (failureReason 2, or an error): failed"
        report.add("mapped", name, why, sum(failed))
    if len(metrics) > 1 and metrics[0] == "score":
        if _counts_more(columns["score"], [columns[name] for name in metrics[1:]]):
            report.add("kept", "score", MORE_THAN_NAMED, rows)
            return
        # The score of a row is the mean of its named scores, and would count them twice.
        raw.scales.pop("score", None)
        for name in ("score", "score__status", "score__reason"):
            columns.pop(name, None)
        report.add("left_out", "score", MEAN_OF_NAMED, rows)


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
    raw.rename(
        dict.fromkeys([name for name in columns if name.startswith("[")][:1], "answer"), report
    )


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
    made: dict[str, list[dict[str, Any]]] = {}
    if isinstance(grading, dict):
        for part in (grading or {}).get("componentResults") or ():
            about = part.get("assertion") or {}
            made.setdefault(str(about.get("metric")), []).append(
                {
                    "score": part.get("score"),
                    "pass": part.get("pass"),
                    "reason": part.get("reason"),
                    "threshold": about.get("threshold"),
                    "broken": bool(_BROKEN.search(str(part.get("reason"))[:200])),
                }
            )
    return {name: parts[0] for name, parts in made.items() if len(parts) == 1}
