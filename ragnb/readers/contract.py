"""The cells of a table of samples, made what the frame contract says: texts, identifiers, lists, results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from ragnb.readers.cells import as_id, as_text, joined_texts, last_turns, parse_list, text_lists
from ragnb.readers.lossy import Lossy
from ragnb.readers.names import REPEAT_NAMES, SYSTEM_NAMES
from ragnb.readers.raw import TEXT, Raw, Values, absent, is_text, unpacked
from ragnb.schema import METRICS

CONTEXTS = ("retrieved_contexts", "ground_truth_contexts")
IDS = ("sample_id", "doc_name", "system", "repeat", "persona", "cluster", "item_id")
_PASSAGE_COLUMNS = {"passage", "passage_id"}
_OF_A_SCORE = {"score", "reason", "explanation", "status", "name", "label", "metadata", "kind", "direction"}
TEXTS = ("question", "answer", "ground_truth_answer")
LISTS = ("source_units", "generation_params", "chunks", "citations", "gold_ids", "passage_id")


def made_ids(raw: Raw) -> Values:
    """Number the samples as they appear; the same question of another system or repeat is the same sample."""
    runs = [raw.columns[name] for name in ("system", "repeat") if name in raw.columns]
    if not runs:
        return [str(i + 1) for i in range(len(raw))]
    questions = raw.columns.get("question", [None] * len(raw))
    asked: Counter[tuple[str, ...]] = Counter()
    ids: dict[tuple[str, int], str] = {}
    made: Values = []
    for row in zip(questions, *runs, strict=True):
        key = tuple(map(str, row))
        asked[key] += 1
        made.append(ids.setdefault((key[0], asked[key]), str(len(ids) + 1)))
    return made


def case_cells(raw: Raw, report: Lossy) -> None:
    """Make the cells of the case columns what the frame contract says: texts, identifiers, lists."""
    for name in CONTEXTS:
        if name in raw.columns:
            text_lists(raw, name, report)
    if "question" in raw.columns:
        last_turns(raw, "question", report)
    if "ground_truth_answer" in raw.columns:
        joined_texts(raw, "ground_truth_answer", report)
    readers: dict[str, Callable[[Any], Any]] = dict.fromkeys(TEXTS, as_text if raw.typed else _text_of_csv)
    readers |= dict.fromkeys(IDS, as_id) | ({} if raw.typed else dict.fromkeys(LISTS, _parsed))
    for name, read in readers.items():
        cells = raw.columns.get(name)
        if isinstance(cells, pd.Series):
            raw.columns[name] = cells if name in LISTS else _mapped(cells, read)
        elif cells is not None:
            nested = 0 if name in LISTS else sum(isinstance(value, dict | list) for value in cells)
            report.add("unparsed", name, "objects and lists, kept as their JSON text", nested)
            raw.columns[name] = [read(value) for value in cells]


def _mapped(cells: pd.Series[Any], read: Callable[[Any], Any]) -> Values:
    """Return what `read` makes of the cells, called once for each distinct one; of texts it changes few."""
    odd = cells == "" if read is as_id else cells.astype(str).str.strip().isin(["NaN", "<NA>"])
    if is_text(cells) and not odd.any():
        return cells
    codes, distinct = pd.factorize(cells, use_na_sentinel=False)
    made = [read(cell) for cell in distinct.tolist()]
    return pd.Series(made, dtype=TEXT).take(codes).reset_index(drop=True)


def _text_of_csv(value: Any) -> str | None:
    return as_text(value) or None


def _parsed(value: Any) -> Any:
    """Return the list or object of a cell of text; other text as it is; None for an empty cell."""
    if not isinstance(value, str) or not value.strip():
        return None if absent(value) or isinstance(value, str) else value
    if value.lstrip().startswith("{"):
        return unpacked(value, ".*")
    parsed = parse_list(value)
    return value if parsed is None else parsed


def spread_results(raw: Raw, report: Lossy) -> None:
    """Turn objects into columns a metric: ``results``, ``metrics`` or ``scores`` (metric → number or score, status
    and reason), and a metric's own objects of a score and a reason."""
    for name in ("metrics", "scores", "results"):
        held = _objects(raw.columns.get(name, []), lambda cell: all(map(_is_result, cell.values())))
        if held:
            del raw.columns[name]
            report.add("mapped", name, "a column a metric", len(held))
        for metric in dict.fromkeys(key for cell in held for key in cell):
            cells = [cell.get(metric) for cell in held]
            _results(raw, str(metric), [c if isinstance(c, Mapping) else {"score": c} for c in cells])
    for name in list(raw.columns):
        if found := _objects(raw.columns[name], lambda cell: {"score"} <= set(cell) <= _OF_A_SCORE):
            _results(raw, name, found)
            report.add("mapped", name, "the score of an object, and its reason", len(found))


def _objects(cells: Values, fits: Callable[[Any], bool]) -> list[Any]:
    """Return cells as objects where all that hold something are such as fit, else none."""
    if isinstance(cells, pd.Series):
        return []
    held = [{} if absent(c) else c for c in cells] if any(type(c) is dict and c for c in cells) else []
    return held if all(isinstance(c, Mapping) and (not c or fits(c)) for c in held) else []


def _is_result(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool({"score", "status"} & set(value))
    return absent(value) or isinstance(value, int | float)


def _results(raw: Raw, metric: str, found: list[Any]) -> None:
    raw.columns[metric] = [cell.get("score") for cell in found]
    for end, other in (("status", "status"), ("reason", "explanation")):
        cells = [cell.get(end, cell.get(other)) for cell in found]
        if not all(map(absent, cells)):
            raw.columns[f"{metric}__{end}"] = cells


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
