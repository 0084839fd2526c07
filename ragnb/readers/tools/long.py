"""Long tables: a row a metric of a sample."""

from __future__ import annotations

from collections.abc import Set

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
    named = (
        columns & {*words["metric"]}
        and columns & {*words["score"]}
        and names & {"sample_id", "question"}
    )
    return bool(named and not names & set(METRICS))


def read_long(raw: Raw, report: Lossy) -> None:
    """Turn the metrics into columns.

    Raises
    ------
    RagnbError
        Where one sample has two scores of one metric, with the line of the second.
    """
    word = {
        role: next((n for n in names if n in raw.columns), "")
        for role, names in WORDS["long"].items()
    }
    name = word["metric"]
    score = word["score"]
    reason = word["reason"]
    unnamed = [absent(metric) or not str(metric).strip() for metric in raw.columns[name]]
    raw.drop(unnamed, name, "scores that name no metric", report, need=True)
    columns = raw.columns
    keys = [n for n in columns if {*meanings([n])} & _LONG_KEYS or is_repeat_name(n)]
    for other in columns:
        named = other not in (*keys, name, score, reason) and owner_rank(other) is not None
        # Of a column that may name the system, where without it two rows are of one sample.
        if named and raw.distinct(*keys, name) < raw.distinct(*keys, name, other):
            keys.append(other)
    keys.sort(key=list(columns).index)
    rows: dict[tuple[str, ...], dict[str, int]] = {}
    for i, (metric, *key) in enumerate(
        zip(*(map(str, columns[n]) for n in (name, *keys)), strict=True)
    ):
        row_of_key = rows.setdefault(tuple(key), {})
        if row_of_key.setdefault(clean_text(metric), i) != i:
            raise RagnbError(
                f"{raw.where(i)}a second {metric!r} of one sample ({listing(keys)} are the same); name the column "
                "that distinguishes the rows: columns={'…': 'system'} or columns={'…': 'repeat'}"
            )
    samples = list(rows.values())
    firsts = [next(iter(row_of_key.values())) for row_of_key in samples]
    wide: dict[str, Values] = {n: [columns[n][i] for i in firsts] for n in keys}
    for other in (n for n in columns if n not in (*keys, name, score, reason)):
        if all(
            len({str(columns[other][i]) for i in row_of_key.values()}) == 1
            for row_of_key in samples
        ):
            wide[other] = [columns[other][i] for i in firsts]
        else:
            report.add("left_out", other, "differs between the metrics of a sample", len(raw))
    for metric in dict.fromkeys(metric for row_of_key in samples for metric in row_of_key):
        for source, made in ((score, metric), (reason, f"{metric}__reason")):
            if source:
                wide[made] = [
                    columns[source][row_of_key[metric]] if metric in row_of_key else None
                    for row_of_key in samples
                ]
    report.add("mapped", name, "one row a metric, turned to one row a sample", len(raw))
    raw.keep(firsts)
    raw.columns = wide
