"""Tables of LangSmith and Azure, whose columns are flattened objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from ragnb.readers.kinds import set_skipped
from ragnb.readers.names import is_measure, meanings
from ragnb.readers.raw import Lossy, Raw, absent
from ragnb.readers.results import scored
from ragnb.readers.tools.failures import failed_with_error, shared_threshold
from ragnb.readers.tools.known import TOOLS, matches, scale_in
from ragnb.readers.verdicts import note_verdicts


def read_flattened(raw: Raw, report: Lossy) -> None:
    """Take prefixes off the columns of LangSmith and Azure, and the thresholds and reasons of their metrics."""
    columns = raw.columns
    scores, of_outputs = _without_prefixes(raw, report)
    for name in scores:
        _note_verdicts_beside(raw, name)
    thresholds = {name: columns.pop(f"{name}_threshold", ()) for name in scores}
    # Read before twins are left out, as the column of the status is one of them.
    states = {name: [*columns.get(f"{name}_status", ())] for name in scores}
    differing = _without_twins(raw, scores, report)
    for name in scores:
        if name not in columns or name in differing or is_measure(name):
            continue
        known: dict[str, Any] = {}
        # LangSmith's feedback is on no known scale; Azure writes its metrics among the outputs.
        if name in of_outputs:
            # The first row that matches decides.
            rows = [row for row in TOOLS["flattened"]["metrics"] if matches(name, row)]
            if rows:
                known = {"better": "higher", **rows[0]}
        failed = failed_with_error(raw.cells("error"), columns[name])
        threshold = shared_threshold({"threshold": cell} for cell in thresholds[name])
        scale = scale_in(known) | threshold
        scored(raw, name, columns[name], failed, reasons=(), scale=scale)
        set_skipped(raw, name, states[name], report)


class _Shortened(NamedTuple):
    """The columns that hold what an evaluator gave, and those that stood among the outputs."""

    scores: list[str]
    of_outputs: set[str]


def _without_prefixes(raw: Raw, report: Lossy) -> _Shortened:
    """Name columns without the side and the evaluator before them."""
    columns = raw.columns
    scores: list[str] = []
    of_outputs: set[str] = set()
    references = [name for name in columns if name.startswith("reference.")]
    for name in list(columns):
        side, _, rest = name.partition(".")
        evaluator, _, short = rest.rpartition(".")
        # An evaluator whose only number is called output, as in outputs.accuracy.output.
        if short == "output" and evaluator:
            short = evaluator
        # The reference answer, by its name or because it is the only reference column.
        if name in references and (len(references) == 1 or "answer" in meanings([rest])):
            short = "ground_truth_answer"
        if side not in TOOLS["flattened"]["sides"] or not short or short in columns:
            continue
        raw.rename({name: short}, report)
        if side == "feedback" or (side == "outputs" and evaluator):
            scores.append(short)
        if side == "outputs":
            of_outputs.add(short)
    return _Shortened(scores, of_outputs)


def _note_verdicts_beside(raw: Raw, name: str) -> None:
    """Note the verdicts that stand in a column beside a score, with the threshold that they were made by."""
    columns = raw.columns
    base = name.removesuffix("_score")
    ends = TOOLS["flattened"]["verdicts"]
    beside = [f"{base}_{end}" for end in ends]
    verdicts = next((columns[column] for column in beside if column in columns), None)
    thresholds = columns.get(f"{name}_threshold", columns.get(f"{base}_threshold"))
    if verdicts is not None and name in columns:
        note_verdicts(raw, name, columns[name], thresholds or [None] * len(raw), verdicts)


def _without_twins(raw: Raw, scores: list[str], report: Lossy) -> set[str]:
    """Leave out columns that say a metric a second time, and return those that say another number.

    These stay, as columns that nobody declared: the total says that it leaves them out.
    """
    columns = raw.columns
    differing: set[str] = set()
    for name in scores:
        twin = twin_of(name, scores, TOOLS["flattened"]["ends"])
        if twin is not None and name in columns:
            if _alike(columns[name], columns[twin]):
                why = "said by another column of the metric too"
                report.add("left_out", name, why, len(columns.pop(name)))
            else:
                differing.add(name)
        raw.rename({f"{name}_reason": f"{name}__reason"}, report)
    return differing


def twin_of(name: str, scores: Collection[str], ends: Collection[str]) -> str | None:
    """Return the column of the same metric that counts in place of one; None where there is none."""
    base, _, end = name.rpartition("_")
    # Azure writes a metric that a model rates under an older name too: gpt_groundedness beside groundedness.
    if name.startswith("gpt_") and name.removeprefix("gpt_") in scores:
        return name.removeprefix("gpt_")
    if base in scores and end in ends:
        return base
    return None


def _alike(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Whether two columns never hold different scores in a row; an empty cell or a verdict is no other score."""
    pairs = zip(one, other, strict=True)
    return not any(_is_score(score) and _is_score(twin) and score != twin for score, twin in pairs)


def _is_score(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool) and not absent(cell)
