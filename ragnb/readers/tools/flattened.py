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
    tool = TOOLS["flattened"]
    scores = []
    of_models = set()
    references = [name for name in columns if name.startswith("reference.")]
    for name in list(columns):
        side, _, rest = name.partition(".")
        evaluator, _, short = rest.rpartition(".")
        if short == "output" and evaluator:
            short = evaluator
        if name in references and (len(references) == 1 or "answer" in meanings([rest])):
            short = "ground_truth_answer"
        if side in tool["sides"] and short and short not in columns:
            raw.rename({name: short}, report)
            if side == "feedback" or (side == "outputs" and evaluator):
                scores.append(short)
            if side == "outputs":
                of_models |= {short}
    for name in scores:
        sides = (columns.get(f"{name.removesuffix('_score')}_{end}") for end in tool["verdicts"])
        beside = next((cells for cells in sides if cells is not None), None)
        base = name.removesuffix("_score")
        limit = columns.get(f"{name}_threshold", columns.get(f"{base}_threshold"))
        if beside is not None and name in columns:
            note_verdicts(raw, name, columns[name], limit or [None] * len(raw), beside)
    limits = {name: columns.pop(f"{name}_threshold", ()) for name in scores}
    differing = set()
    ended = {name: [*columns.get(f"{name}_status", ())] for name in scores}
    for name in scores:
        twin = twin_of(name, scores, tool["ends"])
        if twin is not None and name in columns:
            if _alike(columns[name], columns[twin]):
                why = "said by another column of the metric too"
                report.add("left_out", name, why, len(columns.pop(name)))
            else:  # it stays, as a column that nobody declared: the total says that it leaves it out
                differing.add(name)
        raw.rename({f"{name}_reason": f"{name}__reason"}, report)
    counted = [name for name in scores if name in columns and name not in differing]
    for name in (name for name in counted if not is_measure(name)):
        failed = failed_with_error(raw.cells("error"), columns[name])
        known = tool["metrics"] if name in of_models else ()
        row: dict[str, Any] = next(
            ({"better": "higher", **row} for row in known if matches(name, row)), {}
        )
        scored(
            raw,
            name,
            columns[name],
            failed,
            (),
            scale_in(row) | shared_threshold({"threshold": cell} for cell in limits[name]),
        )
        set_skipped(raw, name, ended.get(name, ()), report)


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
