"""Which columns of a table are metrics: those whose scale and direction are known; others are candidates.

The one place that decides it for what is read. What is decided, and what is open, is recorded with its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from ragnb.readers.cells import IDS, LISTS
from ragnb.readers.evidence import mark_broken_rows, mark_failed_words, mark_minus_one
from ragnb.readers.facts import SILENT, Direction, direction_of_name, facts_told
from ragnb.readers.failures import tells_if_answered
from ragnb.readers.graded import graded_columns, grades_of, note_grades, read_grades
from ragnb.readers.names import is_measure, meanings
from ragnb.readers.raw import Lossy, Raw, is_text
from ragnb.readers.scales import has_rubric, is_judged, judged_scale, spans_of
from ragnb.readers.tools.known import TOOLS
from ragnb.readers.verdicts import direction_of, read_verdicts, verdict_columns
from ragnb.schema import CASE_COLUMNS, CLIP, METRICS, NOT_METRICS, RUBRIC, Metric, range_of

Spans = Mapping[str, tuple[float, float, bool]]
_CANONICAL = "a metric that ragnb knows"
_NO_CANDIDATES = {*CASE_COLUMNS, *NOT_METRICS, *IDS, *LISTS, "label", "answerable"}


class Settled(NamedTuple):
    """The metrics of a table: those of METRICS and of the caller by name, and those that the file declares."""

    known: dict[str, Metric]
    tools: list[Metric]


def known_metric(column: str) -> Metric | None:
    """Return the metric of METRICS that a column's name means.

    Examples
    --------
    >>> known_metric("Answer Relevancy").name, known_metric("style") is None
    ('answer_relevancy', True)
    """
    return METRICS.get(next(iter(meanings([column])), ""))


def open_facts(facts: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the first open fact of each metric that has one.

    Examples
    --------
    >>> row = {"metric": "bias", "fact": "direction", "value": "?", "evidence": "silent", "open": True}
    >>> list(open_facts([row, {**row, "metric": "f1", "open": False}]))
    ['bias']
    """
    open_by_metric: dict[str, Mapping[str, Any]] = {}
    for fact in facts:
        is_of_metric = fact["open"] and fact["fact"] in ("scale", "direction")
        if is_of_metric and fact["metric"] is not None:
            open_by_metric.setdefault(fact["metric"], fact)
    return open_by_metric


def settle_directions(raw: Raw, layout: str, own: Iterable[Metric]) -> None:
    """Decide which end of each metric is better that a layout declares, or whose verdicts stand beside it.

    A metric whose direction is open is declared no longer: its column is a candidate.
    """
    declared = {metric.name: metric for metric in own}
    convention = TOOLS.get(layout, {}).get("better")
    for column, row in list(raw.scales.items()):
        if column in declared:
            raw.scales[column] = {**row, "better": declared[column].better}
            continue
        metric = known_metric(column)
        direction = direction_of(raw, column, metric, row, convention)
        if direction.open:
            del raw.scales[column]
        else:
            raw.scales[column] = {**row, "better": direction.better}
        raw.fact(column, "direction", direction.better, direction.evidence, open=direction.open)
    for column, direction in raw.verdicts.items():
        metric = known_metric(column)
        if column in raw.scales or column in declared or metric is None:
            continue
        # The verdicts of this file say what its scores mean, whatever the name means elsewhere.
        if direction.better in ("higher", "lower") and direction.better != metric.better:
            raw.scales[column] = {
                "low": metric.low,
                "high": metric.high,
                "better": direction.better,
                "threshold": None,
            }
        raw.fact(column, "direction", direction.better, direction.evidence, open=direction.open)


def settle_metrics(
    raw: Raw,
    known: Mapping[str, Metric],
    tools: Iterable[Metric],
    own: Iterable[Metric],
    names: Mapping[str, str],
    report: Lossy,
    *,
    loose: bool = False,
) -> Settled:
    """Decide which columns are metrics, and make their cells numbers or failures.

    Parameters
    ----------
    known, tools, own
        The metrics of METRICS and of the caller whose columns are there; those of the tool; the caller's alone.
    names : mapping of column to canonical name
    loose : bool
        Whether a file is only looked at: then columns of verdicts become numbers whatever stands beside them.
    """
    declared = {metric.name: metric for metric in own}
    for fact in raw.facts:  # those found before the columns had their names
        fact["metric"] = names.get(str(fact["metric"]), fact["metric"])
    made = {metric.name: metric for metric in tools}
    undecided = {name: metric for name, metric in known.items() if name not in made}
    _make_numbers(raw, undecided | made, declared, names, report)

    settle_scales(raw, undecided, made, declared, spans_of)
    for name in open_facts(raw.facts):
        if name not in declared:
            undecided.pop(name, None)
            made.pop(name, None)

    verdicts = verdict_columns(raw, {*undecided, *made, *open_facts(raw.facts)})
    for name, direction in verdicts.items():
        raw.fact(name, "scale", (0, 1), "all its cells are verdicts")
        raw.fact(name, "direction", direction.better, direction.evidence)
    # A file of verdicts alone is about them; beside scores they are most often made of these.
    has_metrics = bool(undecided or made or declared)
    are_alone = not has_metrics and not _has_scores(raw, verdicts)
    for name, direction in verdicts.items():
        if loose or are_alone:
            read_verdicts(raw, name, report)
        if are_alone:
            made[name] = Metric(name, 0, 1, _end(direction), kind="binary")
            raw.scales[name] = {
                "low": 0,
                "high": 1,
                "better": direction.better,
                "threshold": None,
                "kind": "binary",
            }

    _note_graded(raw, {*undecided, *made, *verdicts}, report, loose=loose)
    for name, (low, high) in raw.spans.items():
        evidence = f"values from {low:g} to {high:g} in it and beside it"
        raw.fact(name, "scale", range_of(low, high), evidence, open=True)
    note_metrics(raw, undecided, made, declared)
    return Settled(undecided, list(made.values()))


def _make_numbers(
    raw: Raw,
    metrics: Mapping[str, Metric],
    declared: Collection[str],
    names: Mapping[str, str],
    report: Lossy,
) -> None:
    """Make the cells of metrics numbers, and failures where words, a -1 or an error of the row say so."""
    # Before -1 and scales are looked at, the cells have to be numbers.
    for name in metrics:
        grades = grades_of(raw.columns[name])
        if grades is None or not grades.need_reading(typed=raw.typed):
            mark_failed_words(raw, name, report)
            continue
        read_grades(raw, name, grades, report)
        # "4/5" says its scale itself; a declaration by the caller counts more.
        if grades.ends not in (None, (0, 1)) and name not in declared:
            raw.spans[name] = grades.ends
    for metric in metrics.values():
        mark_minus_one(raw, metric, report)
    for name in _text_candidates(raw, metrics):
        mark_failed_words(raw, name, report, declared=False)
    mark_broken_rows(raw, dict.fromkeys(metrics), names, report)


def _note_graded(raw: Raw, taken: Collection[str], report: Lossy, *, loose: bool) -> None:
    """Record what is known of grades that are no plain numbers, and make them some where a file is looked at."""
    names = [name for name in raw.columns if name not in taken and may_be_metric(name)]
    known_facts = facts_told(raw.facts)
    for name, grades in graded_columns(raw, names).items():
        note_grades(raw, name, grades, known_facts)
        if loose:
            read_grades(raw, name, grades, report)


def _has_scores(raw: Raw, verdicts: Collection[str]) -> bool:
    """Whether a column of numbers may be a score too, so that verdicts alone are not what the file is about."""
    others = [name for name in raw.columns if name not in verdicts and may_be_metric(name)]
    return bool(spans_of(raw, others))


def _end(direction: Direction) -> Any:
    """Return the better end; `Any`, as a metric takes two words only, and the direction may be open."""
    return direction.better


def _text_candidates(raw: Raw, taken: Collection[str]) -> list[str]:
    """Return the columns of texts that may hold numbers and words for failures."""
    candidates = []
    for name, cells in raw.columns.items():
        has_texts = not isinstance(cells, pd.Series) or is_text(cells)
        if has_texts and name not in taken and may_be_metric(name):
            candidates.append(name)
    return candidates


def settle_scales(
    raw: Raw,
    found: dict[str, Metric],
    made: dict[str, Metric],
    declared: Mapping[str, Metric],
    measured: Callable[[Any, Iterable[str]], Spans],
) -> None:
    """Record the metrics of METRICS whose scale is open, and give those their own whose values say it.

    `measured` returns the least and greatest number of columns of `raw`, and whether all are whole.
    """
    # Costs and times have no scale to be wrong about.
    to_settle = [
        name
        for name, metric in found.items()
        if name not in declared and METRICS.get(name) == metric and metric.role == "quality"
    ]
    if not to_settle:
        return
    settled = {*declared, *made}
    # One judge scores all its dimensions on one scale: what stands beside a column tells of it.
    judged = [
        name
        for name in raw.columns
        if name not in settled and may_be_metric(name) and is_judged(name)
    ]
    spans = measured(raw, dict.fromkeys([*to_settle, *judged]))
    rubric = has_rubric(raw.columns)
    for name in to_settle:
        scale = judged_scale(name, spans, rubric=rubric)
        metric = METRICS[name]
        if scale.ends is None:
            raw.fact(name, "scale", scale.proposed, scale.evidence, open=True)
        elif scale.ends != (metric.low, metric.high):
            low, high = scale.ends
            made[name] = Metric(name, low, high, metric.better)
            raw.scales[name] = {
                "low": low,
                "high": high,
                "better": metric.better,
                "threshold": None,
            }
            del found[name]
        elif name in spans:
            _propose(raw, name, metric, spans)


def _propose(
    raw: Raw, name: str, metric: Metric, spans: Mapping[str, tuple[float, float, bool]]
) -> None:
    """Keep the range of a metric outside its scale, with those beside it that one judge may have scored."""
    low, high, _ = spans[name]
    is_told = name in raw.spans  # its cells say the scale, as 4/5 does
    if is_told or (metric.low <= low and high <= metric.high):
        return
    # Only whole numbers from 0 to 100: a count of tokens is no score of the same judge.
    lows = [low]
    highs = [high]
    for other_low, other_high, is_whole in spans.values():
        if is_whole and other_low >= 0 and other_high <= 100:
            lows.append(other_low)
            highs.append(other_high)
    raw.spans[name] = (min(lows), max(highs))


def note_metrics(
    raw: Raw,
    found: Mapping[str, Metric],
    made: Mapping[str, Metric],
    declared: Mapping[str, Metric],
) -> None:
    """Record scale and direction of the metrics, where no stronger evidence was recorded before."""
    known_facts = facts_told(raw.facts)
    for name, metric in [*found.items(), *made.items()]:
        if name in declared:
            evidence = "declared"
        elif name in made:
            evidence = "the layout of the tool, and values that fit it"
        else:
            evidence = _CANONICAL
        if (name, "scale") not in known_facts:
            raw.fact(name, "scale", (metric.low, metric.high), evidence)
        # Where verdicts stand beside a metric, `settle_directions` has recorded what they say.
        if (name, "direction") not in known_facts:
            raw.fact(name, "direction", metric.better, evidence)


def _is_catalogued(name: str, low: float, high: float) -> bool:
    """Whether METRICS knows the scale and the direction of a column; a rubric's names are those of many scales."""
    metric = METRICS.get(name)
    # Accuracy is 0..1 with one tool, 1..5 and 1..10 with others.
    if metric is None or metric.family == RUBRIC:
        return False
    return metric.low - CLIP <= low and high <= metric.high + CLIP


def note_candidates(raw: Raw, frame: pd.DataFrame, taken: Collection[str]) -> None:
    """Record scale and direction, or that they are open, of numeric columns that are no metrics yet.

    What was asked of a column that holds no numbers is forgotten: it is none.
    """
    numbers = {str(name): cells for name, cells in frame.select_dtypes("number").items()}
    with_grades = numbers.keys() | raw.graded
    raw.facts = [
        fact
        for fact in raw.facts
        if not fact["open"] or fact["metric"] is None or fact["metric"] in with_grades
    ]
    known_facts = facts_told(raw.facts)
    for name, cells in numbers.items():
        if name in taken or not may_be_metric(name):
            continue
        # A flag that is false exactly where no answer came says that the call failed, and is no score.
        if tells_if_answered(list(cells), name, raw.cells("answer")):
            continue
        given = pd.to_numeric(cells).dropna()
        if len(given):
            note_candidate(raw, name, float(given.min()), float(given.max()), known_facts)


def may_be_metric(name: str) -> bool:
    """Whether a column of numbers may be a metric, by its name.

    Examples
    --------
    >>> [may_be_metric(name) for name in ("helpful", "question", "helpful__status", "latency")]
    [True, False, False, False]
    """
    return name not in _NO_CANDIDATES and "__" not in name and not is_measure(name)


def note_candidate(
    raw: Raw, name: str, low: float, high: float, told: Collection[tuple[Any, Any]] = ()
) -> None:
    """Record scale and direction of a column of numbers from `low` to `high`, or that they are open.

    What is `told` of the column already, as pairs of `facts_told`, stays as it is.

    Examples
    --------
    >>> raw = Raw({"tone": [3, 5]}, "frame")
    >>> note_candidate(raw, "tone", 3, 5)
    >>> [(fact["fact"], fact["value"], fact["open"]) for fact in raw.facts]
    [('scale', (1, 5), True), ('direction', '?', True)]
    """
    if _is_catalogued(name, low, high):
        return  # a metric of METRICS that nobody chose this time
    if (name, "scale") not in told:
        ends = range_of(low, high)
        # Values that are all 1 may also be the low end of a scale from 1 to 5.
        is_share = ends == (0, 1) and not (low == high == 1)
        raw.fact(name, "scale", ends, f"values from {low:g} to {high:g}", open=not is_share)
    if (name, "direction") not in told:
        direction = raw.verdicts.get(name) or direction_of_name(name) or SILENT
        raw.fact(name, "direction", direction.better, direction.evidence, open=direction.open)
