"""Columns of verdicts: what is a pass, what is good, and which end of the scores beside them is better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import pandas as pd

from ragnb.readers.facts import (
    SILENT,
    WORDS,
    Direction,
    count_verdicts,
    direction_of_name,
    is_failure,
    name_tokens,
    verdict_value,
)
from ragnb.readers.failures import tells_if_answered
from ragnb.readers.kinds import Cells, as_number, is_blank, pass_of, set_failed
from ragnb.readers.names import loose, spaced
from ragnb.readers.raw import Lossy, Raw, Values, is_text
from ragnb.schema import CASE_COLUMNS, NOT_METRICS, Metric

VERDICT_WORDS = WORDS["verdict"]
_VERDICT_NAMES = frozenset(map(spaced, VERDICT_WORDS["names"]))
_LOOSE_VERDICT_NAMES = frozenset(map(loose, _VERDICT_NAMES))
_REFERENCE = frozenset(VERDICT_WORDS["reference"])


def are_verdicts(name: str, found: Cells) -> bool:
    """Whether the words of a column are verdicts, beside no number."""
    is_verdict = found.verdicts > 0 or name_is_verdict(name)
    return is_verdict and found.words > 0 and not found.numbers and not found.others


def note_verdicts(
    raw: Raw,
    name: str,
    scores: Iterable[Any],
    thresholds: Iterable[Any],
    verdicts: Iterable[Any],
) -> None:
    """Keep the direction that verdicts beside the scores of a metric say; without thresholds, who passes tells."""
    numbers = [as_number(cell) for cell in scores]
    limits = [as_number(cell) for cell in thresholds]
    passed = [pass_of(cell) for cell in verdicts]
    # A threshold may differ by row (promptfoo writes one a test), so scores are held against their own.
    if any(limit is not None for limit in limits):
        direction = count_verdicts(numbers, limits, passed).direction
    else:
        direction = _separated(numbers, passed)
    if direction is not None:
        raw.verdicts[name] = direction


def _separated(scores: Sequence[float | None], passed: Sequence[bool | None]) -> Direction | None:
    """Return the direction where all scores that pass lie on one side of those that do not."""
    pairs = zip(scores, passed, strict=True)
    known_pairs = [(score, good) for score, good in pairs if score is not None and good is not None]
    good = [score for score, is_good in known_pairs if is_good]
    bad = [score for score, is_good in known_pairs if not is_good]
    # Where all pass, or all fail, nothing tells the sides apart.
    if not good or not bad:
        return None
    if min(good) > max(bad):
        return Direction("higher", "every score that passes lies above every one that fails")
    if max(good) < min(bad):
        return Direction("lower", "every score that passes lies below every one that fails")
    return None


def verdicts_beside(raw: Raw) -> None:
    """Keep what columns of verdicts and thresholds beside a metric's say, such as ``toxicity_passed``."""
    near = {loose(column): column for column in raw.columns}
    for column in list(raw.columns):
        folded = loose(column)
        sides = [near.get(folded + loose(end)) for end in VERDICT_WORDS["passed"]]
        beside = next((side for side in sides if side and side != column), None)
        # What a tool's own layout says of a direction counts more than a column beside it.
        if beside is None or column in raw.verdicts:
            continue
        limits = [near.get(folded + loose(end)) for end in VERDICT_WORDS["threshold"]]
        limit = next((name for name in limits if name), None)
        thresholds = raw.columns[limit] if limit else [None] * len(raw)
        note_verdicts(raw, column, raw.columns[column], thresholds, raw.columns[beside])


def labels_beside(raw: Raw) -> None:
    """Keep what the labels beside a score say, such as Phoenix's ``hallucinated`` (scored 1) and ``factual``."""
    near = {loose(column): column for column in raw.columns}
    for column in list(raw.columns):
        stem = loose(column).removesuffix("score")
        label = near.get(f"{stem}label")
        if stem == loose(column) or label is None or column in raw.verdicts:
            continue
        labels = [
            cell if isinstance(cell, str) and cell.strip() else None for cell in raw.columns[label]
        ]
        # Phoenix scores some classes 1 and others 0, and which of them is good differs by its evaluator.
        is_good_label = good_labels({word for word in labels if word is not None})
        scores = [as_number(cell) for cell in raw.columns[column]]
        passed = [None if word is None else is_good_label.get(word) for word in labels]
        better = _better_by_labels(scores, passed)
        if better is not None:
            bad = next(word for word, is_good in is_good_label.items() if not is_good)
            end = "high" if better == "lower" else "low"
            raw.verdicts[column] = Direction(better, f"its label {bad!r} has {end} scores")


def _better_by_labels(scores: Sequence[float | None], passed: Sequence[bool | None]) -> str | None:
    """Return which end of scores is better, given which labels beside them are good; None if these do not say."""
    direction = _separated(scores, passed)
    if direction is not None:
        return direction.better
    bad_scores = {score for score, is_good in zip(scores, passed, strict=True) if is_good is False}
    # A run without one good answer still says which end is bad, if that end has but one number.
    if True in passed:
        return None
    if bad_scores == {1.0}:
        return "lower"
    if bad_scores == {0.0}:
        return "higher"
    return None


def good_labels(words: Set[str]) -> dict[str, bool]:
    """Return which labels are good: of two, one that names what is bad tells of the other.

    Examples
    --------
    >>> sorted(good_labels({"factual", "hallucinated"}).items()), good_labels({"hallucinated"})
    ([('factual', True), ('hallucinated', False)], {'hallucinated': False})
    >>> good_labels({"yes", "no"}), good_labels({"a", "b", "toxic"})
    ({}, {})
    """
    classes = set(words)
    # A third word may say that the judge failed, and tells of neither class.
    if len(classes) > 2:
        classes = {word for word in classes if not is_failure(word)}
    bad = {word for word in classes if _names_bad(word)}
    if len(bad) != 1 or len(classes) > 2:
        return {}
    return {word: word not in bad for word in classes}


def _names_bad(word: str) -> bool:
    """Return whether a label names what is bad: ``fail`` or ``toxic``, not ``no``, which answers any question."""
    verdict = verdict_value(word)
    if verdict is not None:
        return verdict == (0.0, True)
    named = direction_of_name(word)
    return named is not None and named.better == "lower"


def direction_of(
    raw: Raw, column: str, metric: Metric | None, row: Mapping[str, Any], convention: str | None
) -> Direction:
    """Return the direction of a metric, by the strongest evidence that speaks.

    Parameters
    ----------
    column : str
        What the file calls it.
    metric : Metric or None
        The metric of METRICS that this name means.
    row : mapping
        What the layout says of it, with ``better`` where it does.
    convention : {"higher", None}
        Whether the tool takes more for better in whatever it scores; a name that says otherwise is asked.
    """
    if column in raw.verdicts:
        return raw.verdicts[column]
    if row.get("better"):
        return Direction(row["better"], "the layout of the tool")
    if metric is not None:
        return Direction(metric.better, f"{metric.name!r} is a metric that ragnb knows")
    named = direction_of_name(column)
    # A tool for which more is always better, and a name such as toxicity: only the caller knows which holds.
    if convention and named is not None and named.better != convention:
        return Direction(
            "?", f"its tool takes {convention} for better, and {named.evidence} says otherwise"
        )
    if named is not None:
        return named
    if convention:
        return Direction(convention, f"its tool takes {convention} for better in all metrics")
    return SILENT


def name_is_verdict(name: str) -> bool:
    """Whether a column is named for what a yes in it says: ``passed``, ``correct``, ``verdict``, 通过.

    Examples
    --------
    >>> name_is_verdict("is_correct"), name_is_verdict("needs_table")
    (True, False)
    """
    return spaced(name) in _VERDICT_NAMES or loose(name) in _LOOSE_VERDICT_NAMES


def is_reference(name: str) -> bool:
    """Whether a column holds what people say or what should come out, and no score of an answer.

    Examples
    --------
    >>> is_reference("human_label"), is_reference("expected_verdict"), is_reference("verdict")
    (True, True, False)
    """
    signs = VERDICT_WORDS["reference_anywhere"]
    return bool({*name_tokens(name)} & _REFERENCE) or any(sign in name for sign in signs)


def verdict_columns(raw: Raw, taken: Iterable[str]) -> dict[str, Direction]:
    """Return the columns whose cells are all verdicts, and which verdict is good in each.

    Where a column beside them holds what people say, all are labels, and ratings have their own reader. A flag
    that is false just where the answer is missing says whether the call came back.
    """
    directions: dict[str, Direction] = {}
    barred = {*CASE_COLUMNS, *NOT_METRICS, *taken, "label", "answerable", "gold_ids"}
    has_reference = False
    for name, cells in raw.columns.items():
        if name in barred or "__" in name:
            continue
        if tells_if_answered(cells, name, raw.cells("answer")):
            continue
        direction = _verdict_direction(name, cells)
        if direction is None:
            continue
        if is_reference(name):
            has_reference = True
        else:
            directions[name] = direction
    if has_reference:
        return {}
    return directions


def _verdict_direction(name: str, cells: Values) -> Direction | None:
    """Return which verdict of a column is good, None where its cells are no verdicts or no one says."""
    if name_is_verdict(name) and _only_0_and_1(cells):
        return Direction("higher", f"{name!r} is a name for a verdict whose yes is good")
    if isinstance(cells, pd.Series) and not is_text(cells):
        # Booleans have no word that says which of them is good, so the name has to say it.
        if cells.dtype != bool:  # other numbers are read as such already
            return None
    else:
        # The repr makes a truth value among texts a verdict too, and never a list or an object.
        words = {
            cell if isinstance(cell, str) else repr(cell) for cell in cells if not is_blank(cell)
        }
        verdict_of = {word: verdict_value(word) for word in words}
        verdicts = [verdict for verdict in verdict_of.values() if verdict is not None]
        n_failures = sum(
            verdict is None and is_failure(word) for word, verdict in verdict_of.items()
        )
        if not verdicts or len(verdicts) + n_failures < len(words):
            return None
        if any(says_merit for _, says_merit in verdicts):
            return Direction("higher", "its words say which verdict is good")
    if name_is_verdict(name):
        return Direction("higher", f"{name!r} is a name for a verdict whose yes is good")
    named = direction_of_name(name)
    if named is not None and not named.open:
        return named
    return None


def _only_0_and_1(cells: Values) -> bool:
    """Whether all cells that hold something are 0 or 1."""
    if isinstance(cells, pd.Series) and not is_text(cells):
        given = cells.dropna()
        return len(given) > 0 and bool(given.isin([0, 1]).all())
    filled = [cell for cell in cells if not is_blank(cell)]
    numbers = {as_number(cell) for cell in filled if not isinstance(cell, list | dict)}
    return bool(filled) and numbers <= {0.0, 1.0}


def read_verdicts(raw: Raw, name: str, report: Lossy) -> None:
    """Make a column of verdicts numbers: 1 and 0, and ``failed`` where a word says neither."""
    cells = list(raw.columns[name])
    failed: dict[int, str] = {}
    for row, cell in enumerate(cells):
        if is_blank(cell):
            cells[row] = None
            continue
        passed = pass_of(cell)
        if passed is None:
            failed[row] = str(cell).strip()
            cells[row] = None
        else:
            cells[row] = float(passed)
    raw.columns[name] = cells
    if failed:
        set_failed(raw, name, failed)
    report.add("mapped", name, "verdicts, read as 1 and 0", len(cells))
