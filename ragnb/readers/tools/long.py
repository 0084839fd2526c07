"""Long tables: a row a metric of a sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from ragnb.errors import RagnbError, listing
from ragnb.readers.names import WORDS, meanings
from ragnb.readers.owner import is_repeat_name, owner_rank
from ragnb.readers.raw import Lossy, Raw, Values, absent, clean_text
from ragnb.schema import METRICS

_LONG_KEYS = {"sample_id", "question", "system", "repeat", "doc_name"}


def is_long(columns: Set[str]) -> bool:
    """Whether one column names the metric and another holds its score, of samples that are named."""
    names = set(meanings(columns))
    words = WORDS["long"]
    has_pair = bool(columns & {*words["metric"]} and columns & {*words["score"]})
    names_sample = bool(names & {"sample_id", "question"})
    # A table with a column for a metric is wide; its "name" and "score" are something else.
    is_wide = bool(names & set(METRICS))
    return has_pair and names_sample and not is_wide


def read_long(raw: Raw, report: Lossy) -> None:
    """Turn the metrics into columns.

    Raises
    ------
    RagnbError
        Where one sample has two scores of one metric, with the line of the second.
    """
    column_of = {
        role: next((column for column in names if column in raw.columns), "")
        for role, names in WORDS["long"].items()
    }
    name = column_of["metric"]
    score = column_of["score"]
    reason = column_of["reason"]  # empty where there is none
    unnamed = [absent(metric) or not str(metric).strip() for metric in raw.columns[name]]
    raw.drop(unnamed, name, "scores that name no metric", report, need=True)
    columns = raw.columns
    keys = _key_columns(raw, (name, score, reason))
    samples = _rows_of_samples(raw, name, keys)
    first_rows = [next(iter(row_of.values())) for row_of in samples]
    wide: dict[str, Values] = {key: [columns[key][row] for row in first_rows] for key in keys}
    for other in columns:
        if other in (*keys, name, score, reason):
            continue
        if _is_same_in_each(columns[other], samples):
            wide[other] = [columns[other][row] for row in first_rows]
        else:
            report.add("left_out", other, "differs between the metrics of a sample", len(raw))
    for metric in dict.fromkeys(metric for row_of in samples for metric in row_of):
        wide[metric] = _cells_of(metric, columns[score], samples)
        if reason:
            wide[f"{metric}__reason"] = _cells_of(metric, columns[reason], samples)
    report.add("mapped", name, "one row a metric, turned to one row a sample", len(raw))
    raw.keep(first_rows)  # for the lines, as the columns are replaced
    raw.columns = wide


def _key_columns(raw: Raw, of_score: Sequence[str]) -> list[str]:
    """Return the columns that say which sample a row is of, in their order in the table.

    `of_score` are the columns of the metric, its score and its reason.
    """
    metric = of_score[0]
    columns = raw.columns
    keys = [name for name in columns if {*meanings([name])} & _LONG_KEYS or is_repeat_name(name)]
    for name in columns:
        may_own = name not in (*keys, *of_score) and owner_rank(name) is not None
        # Of a column that may name the system, where without it two rows are of one sample.
        if may_own and raw.distinct(*keys, metric) < raw.distinct(*keys, metric, name):
            keys.append(name)
    keys.sort(key=list(columns).index)
    return keys


def _rows_of_samples(raw: Raw, name: str, keys: Sequence[str]) -> list[dict[str, int]]:
    """Return the row of each metric of each sample.

    Raises
    ------
    RagnbError
        Where one sample has two scores of one metric, with the line of the second.
    """
    samples: dict[tuple[str, ...], dict[str, int]] = {}
    cells = zip(*(map(str, raw.columns[column]) for column in (name, *keys)), strict=True)
    for row, (metric, *key) in enumerate(cells):
        row_of = samples.setdefault(tuple(key), {})
        if row_of.setdefault(clean_text(metric), row) != row:
            raise RagnbError(
                f"{raw.where(row)}a second {metric!r} of one sample ({listing(keys)} are the same); name the "
                "column that distinguishes the rows: columns={'…': 'system'} or columns={'…': 'repeat'}"
            )
    return list(samples.values())


def _is_same_in_each(cells: Values, samples: Iterable[Mapping[str, int]]) -> bool:
    """Return whether the rows of each sample all hold the same in a column."""
    return all(len({str(cells[row]) for row in row_of.values()}) == 1 for row_of in samples)


def _cells_of(metric: str, cells: Values, samples: Iterable[Mapping[str, int]]) -> list[Any]:
    """Return the cell of a metric's row of each sample; None where a sample has none."""
    return [cells[row_of[metric]] if metric in row_of else None for row_of in samples]
