"""Whose a row is: the column that tells systems apart, and the one that counts the runs of a system.

A column of a telling name is the system if each question occurs once for each of its values. Columns that hold a
system in their name (``baseline_f1``, ``guarded_f1``) and lists under the names of systems become rows. Questions
that repeat where nothing says why are counted, never pooled in silence.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import combinations
from pathlib import Path
from typing import Any

from ragnb.readers.names import meanings, plain, rename_columns
from ragnb.readers.raw import Lossy, Raw, absent
from ragnb.schema import CASE_COLUMNS, METRICS

ROW_WORDS = tomllib.loads(Path(__file__).with_name("rows.toml").read_text(encoding="utf-8"))
_OWNERS = ROW_WORDS["owners"]
_PAIRS = ROW_WORDS["pairs"]

# Of all pairs of a question and a system, how many have to be there; by a column whose name says nothing, all.
FEWEST_PAIRS = 0.5
# A column whose name says nothing has at most this many values, and there are at least so many questions.
MOST_SYSTEMS = 20
FEWEST_QUESTIONS = 4  # with fewer, a column that repeats as systems do may do so by chance
# How many columns of settings may make up the name of a system.
_MOST_JOINED = 4
# A name cut to be shown has at least this many characters.
_SHORTEST_CUT = 12
# Of a wider table the names are not taken apart.
_MOST_PAIRED = 300

_NEVER = {plain(word) for word in _OWNERS["never"]}
# Lists, as the place of a word in them is its rank.
_SURE = [plain(word) for word in _OWNERS["sure"]]
_WORDS = [plain(word) for word in _OWNERS["words"]]
_SETTINGS = [plain(word) for word in _OWNERS["settings"]]
_RANKED = [*_SURE, *_WORDS, *_SETTINGS]
_REPEATS = {plain(word) for word in _OWNERS["repeats"]}
_ENDS = {plain(word) for word in _OWNERS["ends"]}
# Whose numbers are names.
_NAMED = {plain(word) for word in _OWNERS["named"]}


def owner_rank(name: str) -> int | None:
    """Return how surely a name says that its column holds systems or their settings, 0 first; None if it does not.

    Examples
    --------
    >>> owner_rank("model") < owner_rank("Retriever") < owner_rank("chunkSize")
    True
    >>> owner_rank("question"), owner_rank("judge_model"), owner_rank("model_answer")
    (None, None, None)
    """
    whole_name = plain(name)
    words = whole_name.split("_")
    if len(words) > 1 and words[-1] in _ENDS:
        words = words[:-1]
    stem = "_".join(words)
    if {*words, stem, whole_name} & _NEVER:
        return None
    for candidate in (whole_name, stem):
        if candidate in _RANKED:
            return _RANKED.index(candidate)
    # A setting is named whole: a token_overlap is a metric.
    if words[-1] in _WORDS:
        return _WORDS.index(words[-1]) + len(_SURE)
    return None


def named_systems(columns: Iterable[str]) -> list[str]:
    """Return the columns whose names can only mean systems; where there are none, those that may hold them.

    Examples
    --------
    >>> named_systems(["retriever", "model", "question"]), named_systems(["retriever", "question"])
    (['model'], ['retriever'])
    """
    ranks = {name: owner_rank(name) for name in columns}
    named = [name for name, rank in ranks.items() if rank is not None]
    sure = [name for name in named if plain(name) in _SURE]
    return sure or named


def is_repeat_name(name: str) -> bool:
    """Return whether a column of this name counts runs.

    Examples
    --------
    >>> is_repeat_name("Seed"), is_repeat_name("model")
    (True, False)
    """
    return plain(name) in _REPEATS


def name_owner(table: Raw, report: Lossy) -> None:
    """Rename the column that tells systems apart to ``system``, and the one that counts runs to ``repeat``.

    Where questions repeat, the system is the column (or the settings together) of which each question has each
    value once. Where they do not, a column that can only mean systems is taken by its name, if it is the only one.
    """
    key = repeated_key(table)
    counts = _run_counts(table, key)
    named = _owner_columns(table, counts)
    owners: Sequence[str] = ()
    if key is not None:
        owners = _telling(table, key, named, counts)
        if not owners and not counts and "system" not in table.columns:
            owners = _unnamed(table, key)
    if owners:
        _call_system(table, owners, key, report)
    elif "system" not in table.columns:
        by_name = _by_name_alone(table, named, key, report)
        if by_name:
            _call_system(table, by_name, None, report)
    _call_repeat(table, counts, key, report)


def name_by_name(table: Raw, report: Lossy) -> None:
    """Rename the columns of systems and of runs by their names alone, as in tables of ratings or gold."""
    key = repeated_key(table)
    counts = _run_counts(table, key)
    if "system" not in table.columns:
        owners = _by_name_alone(table, _owner_columns(table, counts), key, report)
        rename_columns(table, dict.fromkeys(owners, "system"), report)
    _call_repeat(table, counts, key, report)


def repeated_key(table: Raw) -> str | None:
    """Return the column whose values are questions, if rows share them: the id, else the question."""
    for name in ("sample_id", "question"):
        if name in table.columns and table.distinct(name) < len(table):
            return name
    return None


def _run_counts(table: Raw, key: str | None) -> list[str]:
    """Return the columns that count the runs of a system; none where no question repeats."""
    if key is None:
        return []
    counts = [name for name in table.columns if is_repeat_name(name) and table.is_count(name)]
    if counts:
        return counts
    # A column such as version or config that holds 1, 2, 3 counts runs; a model or a setting may be a number.
    numbered = [name for name in table.columns if _may_be_numbered(name) and table.counts_up(name)]
    if len(numbered) == 1:
        return numbered
    return []


def _may_be_numbered(name: str) -> bool:
    """Return whether a column of this name may number what it tells apart, so that its numbers are no names."""
    if name in CASE_COLUMNS or name in METRICS or owner_rank(name) is None:
        return False
    words = plain(name)
    return words not in _SETTINGS and not any(word in _NAMED for word in words.split("_"))


def _owner_columns(table: Raw, counts: Sequence[str]) -> list[str]:
    """Return the columns whose names say that they hold systems or settings, the surest first."""
    settled = {*CASE_COLUMNS, *METRICS, "repeat", *counts} - {"system"}
    ranks = {name: owner_rank(name) for name in table.columns if name not in settled}
    named = [(rank, name) for name, rank in ranks.items() if rank is not None]
    return [name for _, name in sorted(named, key=lambda pair: pair[0])]


def _telling(table: Raw, key: str, named: Sequence[str], counts: Sequence[str]) -> Sequence[str]:
    """Return the columns of which, together, each question has each value once; the fewest that do."""
    n_questions = table.distinct(key)
    varying = [name for name in named if table.is_plain(name) and table.distinct(name) > 1]
    widest = min(_MOST_JOINED, len(varying))
    for width in range(1, widest + 1):
        for owners in combinations(varying, width):
            # A count of runs may tell apart what is left, but never instead of a system.
            n_told_apart = table.distinct(key, *owners, *counts[:1])
            n_systems = table.distinct(*owners)
            n_runs = table.distinct(counts[0]) if counts else 1
            is_complete = n_told_apart >= FEWEST_PAIRS * n_questions * n_systems * n_runs
            if n_told_apart == len(table) and is_complete and n_systems > 1:
                return sorted(owners, key=list(table.columns).index)
    return ()


def _unnamed(table: Raw, key: str) -> Sequence[str]:
    """Return the one column of texts, of whatever name, of which each question has each value once."""
    n_rows = len(table)
    n_questions = table.distinct(key)
    n_systems = n_rows / n_questions
    if n_questions < FEWEST_QUESTIONS or n_systems > MOST_SYSTEMS or n_rows % n_questions:
        return ()
    settled = {*CASE_COLUMNS, *METRICS, "repeat"}
    candidates = []
    for name in table.columns:
        if name in settled or "__" in name:
            continue
        if {*plain(name).split("_"), plain(name)} & _NEVER:
            continue
        # The checks that read cells come last, as they may be a query over millions of rows.
        if not table.holds_words(name) or table.distinct(name) != n_systems:
            continue
        if table.distinct(key, name) == n_rows:
            candidates.append(name)
    if len(candidates) == 1:
        return candidates
    return ()


def _by_name_alone(
    table: Raw, named: Sequence[str], key: str | None, report: Lossy
) -> Sequence[str]:
    """Return the one column whose name can only mean systems; several are kept as they are, and listed."""
    sure = [name for name in named if plain(name) in _SURE]
    if key is None:
        # A store of passages tells systems apart where questions repeat; elsewhere it may be any store.
        sure = [name for name in sure if plain(name) != "store"]
    if len(sure) > 1:
        why = f"one of {len(sure)} columns that may name the system"
        for name in sure:
            report.add("kept", name, why, len(table))
    if len(sure) == 1:
        return sure
    return ()


def _call_system(table: Raw, owners: Sequence[str], key: str | None, report: Lossy) -> None:
    """Make the columns that were found the system, and row numbers that call themselves ids something else."""
    if [*owners] == ["system"]:
        return
    if table.columns.get("system") is not None and "system" not in owners:
        table.columns["system_before"] = table.columns.pop("system")
        report.add("kept", "system", "the same in rows that another column tells apart", len(table))
    # The questions repeat and the ids do not, so the ids only number rows.
    if key == "question" and "sample_id" in table.columns and "row_id" not in table.columns:
        free_sample_id(table, report)
    names_joined = " / ".join(owners)
    if key is not None:
        table.fact(None, "owner", names_joined, _evidence_of_pairs(table, key, owners))
    if len(owners) == 1:
        rename_columns(table, {owners[0]: "system"}, report)
        return
    joined = table.joined(owners)
    table.columns.pop("system", None)  # so that the new one comes last
    table.columns["system"] = joined
    for name in owners:
        report.add("mapped", name, f"part of the system's name: {names_joined}", len(table))


def _evidence_of_pairs(table: Raw, key: str, owners: Sequence[str]) -> str:
    """Return, in words, how completely the questions occur with the values of the owners."""
    names_joined = " / ".join(owners)
    n_systems = table.distinct(*owners)
    n_questions = table.distinct(key)
    n_pairs = table.distinct(key, *owners)
    n_possible = n_questions * n_systems
    if n_pairs < n_possible:
        return f"{n_pairs} of {n_possible} pairs of a question and a value of {names_joined} occur"
    return f"each of {n_questions} questions occurs once for each of {n_systems} values of {names_joined}"


def free_sample_id(table: Raw, report: Lossy) -> None:
    """Call ids that only number rows ``row_id``, in their place."""
    table.columns = {
        "row_id" if name == "sample_id" else name: cells for name, cells in table.columns.items()
    }
    report.add("kept", "sample_id", "numbers rows, not questions: row_id", len(table))


def _call_repeat(table: Raw, counts: Sequence[str], key: str | None, report: Lossy) -> None:
    """Call the count of runs ``repeat`` where it tells apart the rows of a question and system."""
    counts = [name for name in counts if name in table.columns]
    if key is None or "repeat" in table.columns or len(counts) != 1:
        return
    # The ids may have become `row_id` since the key was looked for.
    if key not in table.columns:
        key = "question"
    keys = [name for name in (key, "system", *counts) if name in table.columns]
    if table.distinct(*keys) == len(table):
        rename_columns(table, {counts[0]: "repeat"}, report)


def tell_repeats(table: Raw, report: Lossy) -> None:
    """Record how many rows share a question where no system and no repeat tells them apart."""
    key = repeated_key(table)
    if key is None:
        return
    n_rows = len(table)
    n_questions = table.distinct(key)
    keys = [name for name in (key, "system", "repeat") if name in table.columns]
    n_repeated = n_rows - table.distinct(*keys)
    if n_repeated > 0:
        # Rows without a question do not repeat one. Mostly there is none to look for.
        n_repeated -= max(table.blanks(key) - 1, 0)
    # Ids that differ tell a few rows of one text apart, such as one question about two documents.
    has_other_ids = key == "question" and "sample_id" in table.columns
    if n_repeated <= 0 or (has_other_ids and n_repeated < n_rows / 5):
        return
    evidence = f"{n_rows} rows of {n_questions} questions; nothing says what tells them apart"
    step = (
        f"{n_rows} rows of {n_questions} questions, and nothing says what tells them apart; "
        "columns={'…': 'system'} or columns={'…': 'repeat'} names the column that does"
    )
    report.add("kept", key, step, n_repeated)
    counts = {"rows": n_rows, "questions": n_questions}
    table.fact(None, "owner", counts, evidence, open=True)


# Columns and lists that carry the system in their name


def stack_pairs(raw: Raw, report: Lossy) -> None:
    """Turn columns that hold the system in their name, such as ``baseline_f1`` and ``guarded_f1``, into rows."""
    if len(raw.columns) > _MOST_PAIRED:
        return
    for split in (_before, _after):
        placed = _placed(list(raw.columns), split)
        if placed:
            stack_systems(raw, placed, report)
            return


# What is longer is a text, as where a file has no line of names, and has too many parts to try.
_LONGEST_NAME = 200


def _before(name: str) -> list[tuple[str, str]]:
    """Return the ways to read a name as that of a system and what follows it."""
    gaps = re.finditer(r"[_\s.\-:/|]+|(?<=[a-z0-9])(?=[A-Z])", name)
    return [
        (name[: gap.start()], name[gap.end() :])
        for gap in gaps
        if gap.start() and gap.end() < len(name)
    ]


def _after(name: str) -> list[tuple[str, str]]:
    """Return the ways to read a name as what stands before the name of a system."""
    # "faithfulness (dense)" and "faithfulness[dense]" as faithfulness_dense.
    bare = re.sub(r"\s*[(\[](.+)[)\]]$", r"_\1", name)
    return [(system, metric) for metric, system in _before(bare)]


def _placed(columns: Sequence[str], split: Any) -> dict[str, tuple[str, str]]:
    """Return for each column with a system in its name that system and the rest; none where it is not sure.

    Each system has to have the same measures. One measure is enough where a name is known to be a system's.
    """
    # What stands beside a metric, such as its status, goes where the metric goes.
    beside = {name: name.partition("__") for name in columns if "__" in name}
    columns = [name for name in columns if name not in beside and len(name) <= _LONGEST_NAME]
    systems = _systems_in_names(columns, split)
    placed = {}
    for name in columns:
        for system, rest in split(name):
            if system in systems and name not in placed:
                placed[name] = (system, rest)
    for name, (metric, mark, end) in beside.items():
        if metric in placed:
            system, rest = placed[metric]
            placed[name] = (system, f"{rest}{mark}{end}")
    return placed


def _systems_in_names(columns: Sequence[str], split: Any) -> list[str]:
    """Return the systems with the same measures in whose names most columns can be parted; none if not sure."""
    measures: dict[str, set[str]] = {}  # of what may be a system: plain names
    columns_of: dict[str, set[str]] = {}
    for name in columns:
        # A name that means something as a whole, such as answer_relevancy, is not parted.
        if meanings([name]):
            continue
        for system, rest in split(name):
            if _is_part(system):
                continue
            columns_of.setdefault(system, set()).add(name)
            if _ends_as_measure(rest):
                measures.setdefault(system, set()).add(plain(rest))
    answering = {
        system for system, names in columns_of.items() if _has_answer(names, system, split)
    }
    known = {plain(word) for word in _PAIRS["systems"]}
    generic = {plain(word) for word in _PAIRS["generic"]}
    best: list[str] = []
    most = (0, 0)
    for own_measures in measures.values():
        alike = [system for system, others in measures.items() if others == own_measures]
        if len(alike) < 2:
            continue
        # A single measure, or generic ones, may also belong to two parts of one system.
        has_measures = len(own_measures - generic) > 1
        is_known = bool({plain(system) for system in alike} & known)
        if not (has_measures or is_known or answering.issuperset(alike)):
            continue
        # Of several ways to part the names, the one that leaves fewest columns without a system.
        n_placed = len(set().union(*(columns_of[system] for system in alike)))
        if (n_placed, len(alike)) > most:
            best = alike
            most = (n_placed, len(alike))
    return best


def _has_answer(names: Iterable[str], system: str, split: Any) -> bool:
    """Return whether one of the columns with a system in its name is that system's answer."""
    for name in names:
        for first, rest in split(name):
            if first == system and "answer" in meanings([rest]):
                return True
    return False


def _is_measure_name(name: str) -> bool:
    """Return whether a name is that of a measure: a metric of METRICS, or one such as ``recall_at_5``."""
    if meanings([name]).keys() & METRICS.keys():
        return True
    words = plain(name)
    without_rank = re.sub(r"_?(at_?)?\d+$", "", words)
    return words in _PAIRS["measures"] or without_rank in _PAIRS["measures"]


def _ends_as_measure(name: str) -> bool:
    """Return whether a name, or what stands at its end, is that of a measure, as in ``document_mrr``."""
    words = plain(name).split("_")
    ends = ("_".join(words[start:]) for start in range(len(words)))
    return any(map(_is_measure_name, ends))


def _is_part(system: str) -> bool:
    """Return whether what may be a system's name consists of parts of the names of metrics."""
    words = plain(system).split("_")
    return all(word in _PAIRS["parts"] or word.isdigit() for word in words)


def stack_systems(raw: Raw, placed: Mapping[str, tuple[str, str]], report: Lossy) -> None:
    """Turn columns of several systems side by side into rows of one system each.

    Parameters
    ----------
    raw : Raw
    placed : mapping of column to (system, column)
        Whose a column is, and what it is called in the rows of that system; any other holds for every system.
    report : Lossy
    """
    wide = raw.columns
    n_rows = len(raw)
    systems = list(dict.fromkeys(system for system, _ in placed.values()))
    shared = [name for name in wide if name not in placed]
    # Where two columns are the same one of a system, the first counts: in reverse it is set last.
    cells_of = {placed[name]: wide[name] for name in reversed(wide) if name in placed}
    # All rows of the first system, then all of the next.
    long: dict[str, Any] = {name: list(wide[name]) * len(systems) for name in shared}
    long["system"] = [system for system in systems for _ in range(n_rows)]
    for column in dict.fromkeys(column for _, column in placed.values()):
        long[column] = [
            cell for system in systems for cell in cells_of.get((system, column), [None] * n_rows)
        ]
    for name, (system, column) in placed.items():
        report.add("mapped", name, f"{column} of system {system}", n_rows)
    for name in shared:
        report.add("kept", name, "one column for every system", n_rows)
    raw.keep([*range(n_rows)] * len(systems))  # so that each row has its line
    raw.columns = long
    raw.fact(None, "owner", " / ".join(systems), "the names of columns hold the systems")


def stacked_lists(lists: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]] | None:
    """Return the records of lists that answer the same questions as one list with a ``system``, else None.

    Examples
    --------
    >>> rows = [{"question": "Who?", "faithfulness": 1.0}]
    >>> [row["system"] for row in stacked_lists({"bm25": rows, "dense": rows})]
    ['bm25', 'dense']
    >>> stacked_lists({"train": rows, "test": rows}) is None
    True
    """
    splits = {plain(word) for word in ROW_WORDS["keys"]["splits"]}
    if len(lists) < 2 or {plain(name) for name in lists} & splits:
        return None
    questions = [_questions(rows) for rows in lists.values()]
    in_any = set().union(*questions)
    in_all = in_any.intersection(*questions)
    if not in_any or len(in_all) < FEWEST_PAIRS * len(in_any):
        return None
    # Records that say their system are not of the one that their list is named for.
    if any("system" in row for rows in lists.values() for row in rows):
        return None
    return [{"system": name, **row} for name, rows in lists.items() for row in rows]


def unlisted(
    rows: Iterable[Mapping[str, Any]], others: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the records of others that ask what no record of rows asks; each is named by its question or id.

    Examples
    --------
    >>> passed = [{"question": "Who?", "faithfulness": 1.0}]
    >>> failed = [{"question": "When?", "faithfulness": 0.0}, {"question": "Who?", "faithfulness": 1.0}]
    >>> unlisted(passed, failed)
    [{'question': 'When?', 'faithfulness': 0.0}]
    """
    listed: dict[str, set[str]] = {"question": set(), "id": set()}
    for row in rows:
        for kind, name in _names_of(row).items():
            listed[kind].add(name)
    unlisted_rows = []
    for row in others:
        # Only what both sides have can be compared, the question first: ids may number each list anew.
        names = {kind: name for kind, name in _names_of(row).items() if listed[kind]}
        first_kind = next(iter(names), None)
        if first_kind is None:
            continue
        name = names[first_kind]
        if not _is_among(name, listed[first_kind]):
            unlisted_rows.append(row)
            listed[first_kind].add(name)
    return unlisted_rows


def _names_of(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the question and the id of a record, where it has them."""
    roles = meanings(record)
    other_ids = (name for name in record if plain(name) in _QUESTION_IDS)
    columns = {
        "question": roles.get("question"),
        "id": roles.get("sample_id") or next(other_ids, None),
    }
    return {
        kind: str(record[column]).strip()
        for kind, column in columns.items()
        if column is not None and not absent(record[column])
    }


def _is_among(name: str, names: Set[str]) -> bool:
    """Return whether a name is one of some, also where it was cut short to be shown."""
    if name in names:
        return True
    start = re.sub(r"\s*(\.\.\.|…)$", "", name)
    return len(start) >= _SHORTEST_CUT and any(listed.startswith(start) for listed in names)


def _questions(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return what records ask: their questions, else their ids."""
    questions: set[str] = set()
    for row in rows:
        roles = meanings(row)
        other_ids = (name for name in row if plain(name) in _QUESTION_IDS)
        column = roles.get("question") or roles.get("sample_id") or next(other_ids, None)
        if column is not None and not absent(row[column]):
            questions.add(str(row[column]))
    return questions


_QUESTION_IDS = {plain(word) for word in ROW_WORDS["ids"]["question"]}
