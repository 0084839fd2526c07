"""Canonical names of columns."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from ragnb.errors import RagnbError, place, unknown
from ragnb.readers.raw import Lossy, Raw
from ragnb.schema import METRICS, Metric, SharedPicks

WORDS = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
# Canonical columns of cases, traces and gold, and what tools and people call them; other spellings of the same
# words count too.
CASE_ALIASES: Mapping[str, tuple[str, ...]] = {
    name: tuple(others) for name, others in WORDS["columns"].items()
}

# Metrics that a column may also be called with ``_score`` behind: an accuracy_score is no mark from 1 to 10.
_WITH_SCORE = {
    metric.name for metric in METRICS.values() if metric.role == "quality" and metric.high == 1
}


@lru_cache(maxsize=1 << 14)  # the keys of a million passages are a few names
def loose(name: object) -> str:
    """Remove case, spaces, underscores and hyphens, to compare names of metrics.

    Examples
    --------
    >>> loose("Answer Relevance") == loose("answer_relevance")
    True
    """
    return re.sub(r"[\s_\-]+", "", str(name)).casefold()


def spaced(name: str) -> str:
    """Lower the case and turn spaces and hyphens into underscores, to compare names of case columns.

    Examples
    --------
    >>> spaced("Ground Truth") == "ground_truth", spaced("trace_id") == spaced("traceId")
    (True, False)
    """
    return re.sub(r"[\s\-]+", "_", name.strip()).casefold()


def plain(name: object) -> str:
    """Return a name or a cell in lower case without accents, ``_`` between its words.

    Examples
    --------
    >>> plain("chunkSize"), plain(" Moyenne Générale: "), plain("Top-K")
    ('chunk_size', 'moyenne_generale', 'top_k')
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name))
    if not parted.isascii():
        letters = unicodedata.normalize("NFKD", parted)
        bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
        parted = unicodedata.normalize("NFC", bare)
    return re.sub(r"[\W_]+", "_", parted.casefold()).strip("_")


# Names that count where no column has one of `CASE_ALIASES`, the surest first.
_ALSO = {target: [*dict.fromkeys(map(plain, names))] for target, names in WORDS["also"].items()}


def words_in(name: str) -> set[str]:
    """Return the words of a column's name, in lower case.

    Examples
    --------
    >>> words_in("runDuration") == {"run", "duration"}, words_in("回答_长度") == {"回答", "长度"}
    (True, True)
    """
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    # Runs of Latin letters, and of Chinese characters, which have no space between words.
    return {*re.findall(r"[a-z]+|[㐀-鿿]+", parted.casefold())}


def is_reference_name(name: str) -> bool:
    """Return whether a column holds what should have been answered, by its name.

    Examples
    --------
    >>> is_reference_name("expected_output"), is_reference_name("标准回复"), is_reference_name("output")
    (True, True, False)
    """
    known = WORDS["reference"]
    if any(sign in name.casefold() for sign in known["signs"]):
        return True
    return bool({*plain(name).split("_"), *words_in(name)} & {*known["words"]})


def rename_map(
    columns: Sequence[str],
    *,
    picks: Mapping[str, str] | None = None,
    metrics: Iterable[Metric] = (),
    file: str | None = None,
    aliases: Mapping[str, tuple[str, ...]] = CASE_ALIASES,
    clash: Callable[..., str | None] | None = None,
) -> dict[str, str]:
    """Return the canonical name of every column that has one, in column order; those of `picks` come first.

    Parameters
    ----------
    columns : sequence of str
    picks : mapping of column to name, optional
        The caller's own choice; it comes before every alias, and settles which of two columns is meant.
    metrics : iterable of Metric
        The caller's metrics; a column of exactly that name is that metric.
    file : str, optional
        For messages.
    aliases : mapping of name to names
        What each canonical name is also called, besides the metrics.
    clash : function of column names, optional
        Where the first record is that fills several of them with different values, None where none does: such
        columns are read as one. A question that is empty in the column that `picks` names is the other's.

    Raises
    ------
    RagnbError
        If two columns mean one name, do clash, and `picks` names neither, or `picks` names a column that
        is not there.

    Examples
    --------
    >>> rename_map(["user_input", "context_ relevancy", "style"])
    {'user_input': 'question', 'context_ relevancy': 'context_relevancy'}
    """
    if isinstance(picks, SharedPicks):
        picks = picks.of(columns)
    else:
        picks = dict(picks or {})
    for name in picks:
        if name not in columns:
            raise unknown(
                "columns", name, columns, "columns= maps a column of the file to the name it means."
            )
    lookup = _lookup(metrics, aliases, old_ragas="context_relavency" in columns)
    renamed: dict[str, str] = {}
    for name in columns:
        meaning = picks.get(name) or lookup.look(name)
        if meaning is not None:
            renamed[name] = meaning
    # After all others, as faithfulness_score is that metric only where no column is called faithfulness.
    for name in columns:
        metric = lookup.near_metric.get(re.sub("(score|evaluator)$", "", loose(name)))
        if metric and name not in renamed and metric in _WITH_SCORE - set(renamed.values()):
            renamed[name] = metric
    if aliases is CASE_ALIASES:
        renamed |= _also(columns, renamed)
    _refuse_two_of_one_meaning(columns, renamed, picks, file, clash)
    picked_targets = set(picks.values())
    meant = {}
    for name, target in renamed.items():
        # Only a question: the answer beside the column that was picked may be the reference, or another system's.
        fills_gaps = bool(clash) and target == "question"
        if target not in picked_targets or name in picks or fills_gaps:
            meant[name] = target
    # Of several columns of one meaning the first fills the cell, see `rename_columns`: the picked ones go first.
    return dict(sorted(meant.items(), key=lambda item: item[0] not in picks))


def _refuse_two_of_one_meaning(
    columns: Sequence[str],
    renamed: Mapping[str, str],
    picks: Mapping[str, str],
    file: str | None,
    clash: Callable[..., str | None] | None,
) -> None:
    """Refuse two columns that mean one name and do clash, if the caller picked neither; or picked both."""
    picked_targets = set(picks.values())
    for target in dict.fromkeys(renamed.values()):
        is_picked = target in picked_targets
        meaning_of = picks if is_picked else renamed
        names = [name for name in columns if meaning_of.get(name) == target]
        if len(names) < 2:
            continue
        at: str | None = ""
        both = ""
        if clash and not is_picked:
            at = clash(*names)
            if at is None:
                continue
            both = "records fill both with different values; " if at else ""
        best = target if target in names else names[0]
        raise RagnbError(
            f"{at or place(file)}columns {' and '.join(map(repr, names))} both mean {target!r}; "
            f"{both}pick one, such as columns={{{best!r}: {target!r}}}"
        )


def meanings(names: Iterable[str]) -> dict[str, str]:
    """Return the names that have a canonical name, by that.

    Examples
    --------
    >>> meanings(["user_input", "style"])
    {'question': 'user_input'}
    """
    given = list(names)
    look = _usual_lookup().look
    meaning_of = {name: meaning for name in given if (meaning := look(name))}
    meaning_of |= _also(given, meaning_of)
    return {meaning: name for name, meaning in meaning_of.items()}


def _also(columns: Sequence[str], meaning_of: Mapping[str, str]) -> dict[str, str]:
    """Return for each meaning that no column has yet the surest column that may also mean it."""
    by_plain_name: dict[str, str] = {}
    for name in columns:
        if name not in meaning_of:
            by_plain_name.setdefault(plain(name), name)
    also = {}
    for target, aliases in _ALSO.items():
        candidates = [by_plain_name[alias] for alias in aliases if alias in by_plain_name]
        if candidates and target not in meaning_of.values():
            also[candidates[0]] = target
    return also


def second_names(columns: Iterable[str], names: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that may mean what another column was read as, with that meaning.

    Examples
    --------
    >>> second_names(["context", "documents"], {"context": "retrieved_contexts"})
    {'documents': 'retrieved_contexts'}
    """
    taken = {*names.values(), *columns}
    free = {plain(name): name for name in columns if name not in names and name not in CASE_ALIASES}
    return {
        free[other]: target
        for target, others in _ALSO.items()
        for other in others
        if target in taken and other in free
    }


class _Lookup(NamedTuple):
    """What finds the canonical name of a column.

    Attributes
    ----------
    look : function of name to canonical name
        None where a name means nothing.
    near_metric : dict of name to metric
        The metrics by their names as `loose` folds them.
    """

    look: Callable[[str], str | None]
    near_metric: dict[str, str]


def _lookup(
    metrics: Iterable[Metric], aliases: Mapping[str, tuple[str, ...]], old_ragas: bool = False
) -> _Lookup:
    """Return the canonical names of columns.

    A misspelling tells ragas before August 2023, whose factuality is faithfulness.
    """
    exact = {name: target for target, others in aliases.items() for name in (target, *others)}
    # "Index" is an id in this spelling only: pandas calls the number of a row "index".
    near_case = {spaced(name): target for name, target in exact.items() if name != "Index"}
    exact |= _names_of(METRICS.values())
    near_metric = {loose(name): target for name, target in exact.items() if target in METRICS}
    # Added after `near_metric` is made, as the caller's metrics count only under their exact names.
    exact |= _names_of(metrics)
    if old_ragas:
        exact["factuality"] = "faithfulness"
        near_metric["factuality"] = "faithfulness"

    def look(name: str) -> str | None:
        return exact.get(name) or near_case.get(spaced(name)) or near_metric.get(loose(name))

    return _Lookup(look, near_metric)


@cache
def _usual_lookup() -> _Lookup:
    """Return the lookup without metrics of the caller, which is asked about every key of every record."""
    return _lookup((), CASE_ALIASES)


def _names_of(metrics: Iterable[Metric]) -> dict[str, str]:
    """Return the names of metrics, the aliases too, with the name that each means."""
    return {name: metric.name for metric in metrics for name in (metric.name, *metric.aliases)}


def name_columns(
    table: Raw,
    report: Lossy,
    *,
    picks: Mapping[str, str] | None = None,
    metrics: Iterable[Metric] = (),
    aliases: Mapping[str, tuple[str, ...]] = CASE_ALIASES,
) -> dict[str, str]:
    """Give the columns of a table their canonical names, as `rename_map` finds and returns them."""
    names = rename_map(
        list(table.columns),
        picks=picks,
        metrics=metrics,
        file=table.file,
        aliases=aliases,
        clash=table.clash,
    )
    if aliases is CASE_ALIASES:
        for name, target in second_names(table.columns, names).items():
            report.add("kept", name, f"another column is read as {target}", len(table))
    rename_columns(table, names, report)
    return names


def rename_columns(table: Raw, names: Mapping[str, str], report: Lossy) -> None:
    """Rename columns; ``<metric>__status`` follows its metric; a column whose name was picked away is left out.

    Columns of one name become one; where several are filled, the cell of the first in `names` counts.
    """
    sources: dict[str, list[str]] = {}
    for name in table.columns:
        base, mark, tail = name.partition("__")
        target = names.get(name, name)
        if mark and base in names and name not in names:
            target = f"{names[base]}__{tail}"
        if name not in names and target in names.values():
            report.add("left_out", name, f"another column was picked for {target}", len(table))
            continue
        if target != name and target not in sources:
            report.add("mapped", name, target, len(table))
        sources.setdefault(target, []).append(name)
    rank = {name: nth for nth, name in enumerate(names)}
    columns = {}
    for target, given in sources.items():
        given.sort(key=lambda name: rank.get(name, len(rank)))
        if len(given) == 1:
            columns[target] = table.columns[given[0]]
        else:
            columns[target] = table.merged(target, given, report)
    table.columns = columns


def is_measure(name: str) -> bool:
    """Whether a column counts or times something, so that it is no candidate for a metric.

    Examples
    --------
    >>> is_measure("total_tokens"), is_measure("runDuration"), is_measure("top_k"), is_measure("helpfulness")
    (True, True, True, False)
    """
    known = WORDS["measures"]
    if words_in(name) & {*known["words"]} or name.casefold() in known["names"]:
        return True
    return any(sign in name for sign in known["signs"])
