"""Tables of LangSmith and Azure, whose columns are flattened objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

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
    scores, of_models = _without_prefixes(raw, report)
    for name in scores:
        _note_verdicts_beside(raw, name)
    limits = {name: columns.pop(f"{name}_threshold", ()) for name in scores}
    states = {name: [*columns.get(f"{name}_status", ())] for name in scores}
    differing = _without_twins(raw, scores, report)
    for name in scores:
        if name not in columns or name in differing or is_measure(name):
            continue
        known: dict[str, Any] = {}
        if name in of_models:
            # The first row that matches decides.
            rows = [row for row in TOOLS["flattened"]["metrics"] if matches(name, row)]
            known = {"better": "higher", **rows[0]} if rows else {}
        failed = failed_with_error(raw.cells("error"), columns[name])
        threshold = shared_threshold({"threshold": cell} for cell in limits[name])
        scored(raw, name, columns[name], failed, (), scale_in(known) | threshold)
        set_skipped(raw, name, states[name], report)


def _without_prefixes(raw: Raw, report: Lossy) -> tuple[list[str], set[str]]:
    """Name columns without the side and the evaluator before them.

    Returns
    -------
    list of str, set of str
        The columns that hold what an evaluator gave, and those that stood among the outputs.
    """
    columns = raw.columns
    scores: list[str] = []
    of_models: set[str] = set()
    references = [name for name in columns if name.startswith("reference.")]
    for name in list(columns):
        side, _, rest = name.partition(".")
        evaluator, _, short = rest.rpartition(".")
        if short == "output" and evaluator:
            short = evaluator
        if name in references and (len(references) == 1 or "answer" in meanings([rest])):
            short = "ground_truth_answer"
        if side not in TOOLS["flattened"]["sides"] or not short or short in columns:
            continue
        raw.rename({name: short}, report)
        if side == "feedback" or (side == "outputs" and evaluator):
            scores.append(short)
        if side == "outputs":
            of_models.add(short)
    return scores, of_models


def _note_verdicts_beside(raw: Raw, name: str) -> None:
    """Note the verdicts that stand in a column beside a score, with the threshold that they were made by."""
    columns = raw.columns
    base = name.removesuffix("_score")
    ends = TOOLS["flattened"]["verdicts"]
    verdicts = next((columns[f"{base}_{end}"] for end in ends if f"{base}_{end}" in columns), None)
    limits = columns.get(f"{name}_threshold", columns.get(f"{base}_threshold"))
    if verdicts is not None and name in columns:
        note_verdicts(raw, name, columns[name], limits or [None] * len(raw), verdicts)


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
    if name.startswith("gpt_") and name[4:] in scores:
        return name[4:]
    if base in scores and end in ends:
        return base
    return None


def _alike(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Whether two columns never hold different scores in a row; an empty cell or a verdict is no other score."""
    pairs = zip(one, other, strict=True)
    return not any(_is_score(mine) and _is_score(its) and mine != its for mine, its in pairs)


def _is_score(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool) and not absent(cell)
