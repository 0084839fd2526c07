"""One row a passage → one row a sample with the list of its passages."""

from __future__ import annotations

from ragnb.readers.lossy import Lossy
from ragnb.readers.names import REPEAT_NAMES, SYSTEM_NAMES
from ragnb.readers.raw import Raw, absent
from ragnb.schema import METRICS

_PASSAGE_COLUMNS = {"passage", "passage_id"}


def fold(raw: Raw, source_names: set[str], report: Lossy, *, scores: bool) -> None:
    """Fold rows that repeat a ``sample_id`` (of one system and run), where the file has passages as rows.

    Nothing is folded where question, answer or a metric differ within a sample; of scores, where any column does.
    """
    if not _PASSAGE_COLUMNS & source_names or not {"sample_id", "retrieved_contexts"} <= set(raw.columns):
        return
    groups: dict[tuple[object, ...], list[int]] = {}
    of_a_run = {"sample_id", "system", "repeat", *SYSTEM_NAMES, *REPEAT_NAMES}
    keys = [cells for name, cells in raw.columns.items() if name.casefold() in of_a_run]
    for row, key in enumerate(zip(*keys, strict=True)):
        groups.setdefault(tuple(map(str, key)), []).append(row)
    if len(groups) == len(raw):
        return
    folded: dict[str, list[object]] = {}
    for name, cells in raw.columns.items():
        held = [[cells[i] for i in rows if not absent(cells[i]) and cells[i] != ""] for rows in groups.values()]
        listed = name in ("retrieved_contexts", "passage_id")
        differ = not listed and any(len(set(map(str, values))) > 1 for values in held)
        if differ and (scores or name in ("question", "answer", "ground_truth_answer", *METRICS)):
            return
        folded[name] = [values if listed or differ else next(iter(values), None) for values in held]
    report.add("mapped", "retrieved_contexts", "one row a passage, folded to one row a sample", len(raw))
    raw.keep([rows[0] for rows in groups.values()])
    raw.columns = folded
