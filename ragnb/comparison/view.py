"""A comparison as it is displayed: headline, tables with formatted cells, and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.comparison.beside import changes
from ragnb.comparison.differences import Margin, compared, with_ratings
from ragnb.comparison.notes import comparison_notes, judge_and_people
from ragnb.comparison.operations import operations_beside, said_of
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.people import BY_PEOPLE
from ragnb.comparison.source import Run, anchor_beside, paired_runs, run_of
from ragnb.comparison.wording import (
    TONES,
    difference,
    ends_of,
    outcome_mark,
    outcome_word,
    percent_change,
    scored_questions,
    share_of,
    signed_amount,
)
from ragnb.errors import need_known
from ragnb.inputs.operations import ERRORS
from ragnb.markup import amount, amounts, count, number, one_line, p_value, percent, signed
from ragnb.markup.blocks import Block, Estimate, Mark, Section, Small, Table, Text
from ragnb.markup.rendering import render_markdown, render_page
from ragnb.schema import TOTAL, kind_of_operation, records, unit_of
from ragnb.texts import counted

_LOSSES = ("worse", "worse_within")
_LONGEST_NAME = 40  # characters of a system's name in the head of a column


def compare_view(
    new: Any,
    baseline: Any = None,
    *,
    settings: Mapping[str, Any] | None = None,
    metrics: Sequence[str] = (),
    margin: Margin = None,
    primary: str | None = None,
    by: str | None = None,
    documents: bool = False,
    system: str = "system",
    **how: Any,
) -> tuple[View, pd.DataFrame, pd.DataFrame | None]:
    """Compare two runs as `compare` does; return the view, the table, and the table of slices.

    Parameters
    ----------
    settings : mapping, optional
        Fields of `Scenario`.
    metrics : sequence of str
        The metrics to compare; by default all.
    documents : bool
        Without `by`, give slices by document where the scores name documents.
    margin, primary, by, system, **how
        As for `compare`; of `how`, ``candidate`` and ``on``.

    Returns
    -------
    View, DataFrame, DataFrame or None
        Where the scenario names an ``anchor:``, the table has the rows against it too, with its own ``baseline``.
    """
    run = run_of(new, system=system, settings=settings)
    if metrics:
        run = _with_metrics(run, metrics)
    other, pairs = paired_runs(run, baseline, settings=settings, by=by, **how)
    scenario = run.scenario
    pairs = with_ratings(pairs, scenario)
    has_documents = pairs[0].unit == "document" or pairs[0].complete
    if not by and documents and has_documents:
        by = scenario.doc
    table = compared(pairs, scenario, margin=margin, primary=primary)
    if by is None:
        slices = None
    else:
        slices = compared(pairs, scenario, by=by, margin=margin, primary=primary)
    operations = operations_beside(run, other, pairs, settings=settings, **how)
    say = texts.load(scenario.lang)
    head = _first_lines(table, operations, pairs, say)
    shown = [(say("compare.metrics"), difference_table(without_operations(table), scenario.lang))]
    if slices is not None:
        shown += _tables_of_slices(slices, by, scenario.lang)
    if len(operations):
        shown.append((say("compare.operations"), operations_table(operations, scenario.lang)))
    notes = _notes_on_changes(run, other, pairs)
    notes += comparison_notes(table, say)
    pairs_with_anchor = _pairs_with_anchor(run, baseline, settings, how)
    if pairs_with_anchor is not None:
        accepted = compared(
            with_ratings(pairs_with_anchor, scenario), scenario, margin=margin, primary=primary
        )
        head |= _first_lines_of_anchor(accepted, say)
        heading = say("compare.beside_anchor", base=pairs_with_anchor[0].baseline)
        shown.append((heading, difference_table(accepted, scenario.lang)))
        for note in comparison_notes(accepted, say):
            notes.append(say("compare.anchor", head=note))
        table = pd.concat([table, accepted], ignore_index=True)
    candidates = ", ".join(one.candidate for one in pairs)
    title = say("compare.title", new=candidates, base=pairs[0].baseline)
    view = View(scenario.lang, title, head, shown, notes, operations)
    return view, table, slices


def _with_metrics(run: Run, names: Sequence[str]) -> Run:
    """Return a run with some of its metrics, in the order of the run."""
    for name in names:
        need_known("metric", name, [metric.name for metric in run.metrics])
    return replace(run, metrics=tuple(metric for metric in run.metrics if metric.name in names))


def _first_lines(
    table: pd.DataFrame, operations: pd.DataFrame, pairs: Sequence[Pairs], say: Any
) -> dict[str, str]:
    """Return the first line of each candidate, with its outcome; none where no metric decides."""
    changed_references = {one.candidate: one.new_references for one in pairs}
    lines = {}
    for row in records(table[table["primary"]]):
        line = headline(row, say)
        line += _other_losses(table, row, say)
        line += operations_line(operations, row["candidate"], say)
        line += _references(changed_references[row["candidate"]], say)
        lines[line] = row["outcome"]
    return lines


def _tables_of_slices(
    slices: pd.DataFrame, by: str | None, lang: str
) -> Iterator[tuple[str, Table]]:
    """Yield a table with its heading for the metric that decides; for every metric where none does."""
    say = texts.load(lang)
    if slices["primary"].any():
        slices = slices[slices["primary"]]
    for metric, rows in slices.groupby("metric", sort=False):
        yield say("compare.by", by=by, metric=metric), difference_table(rows, lang, by=by)


def _notes_on_changes(run: Run, other: Run, pairs: Sequence[Pairs]) -> list[str]:
    """Return what else changed between two runs; of several candidates each note names its own."""
    notes = []
    for row in changes(run, other, pairs):
        # A change of the judge is about no candidate.
        if len(pairs) > 1 and row["about"]:
            notes.append(f"{row['about']}: {row['text']}")
        else:
            notes.append(row["text"])
    return notes


def _pairs_with_anchor(
    run: Run, baseline: Any, settings: Mapping[str, Any] | None, how: Mapping[str, Any]
) -> list[Pairs] | None:
    """Pair a run with the accepted one, None where there is none or it is what the run is compared with anyway."""
    other = run.scenario.baseline if baseline is None else baseline
    anchor = anchor_beside(run.scenario, other)
    # Without any baseline `paired_runs` has fallen back on the anchor: the first table is that comparison.
    if anchor is None or other is None:
        return None
    return paired_runs(run, anchor, settings=settings, **how)[1]


def _first_lines_of_anchor(accepted: pd.DataFrame, say: Any) -> dict[str, str]:
    """Return the first line of each candidate beside the accepted run, with its outcome."""
    lines = {}
    for row in records(accepted[accepted["primary"]]):
        line = headline(row, say) + _other_losses(accepted, row, say)
        lines[say("compare.anchor", head=line)] = row["outcome"]
    return lines


def headline(row: dict[Any, Any], say: Any) -> str:
    """Return the outcome of one metric in one line."""
    unit = row["cluster_unit"]
    common = counted(say, "compare.common", count(row["n_common"]))
    # Where every question is its own cluster, their number is in the line already.
    if unit != "row":
        common += counted(say, f"compare.{unit}s", count(row["n_clusters"]))
    if row["n_lost"]:
        common += say("compare.lost", lost=count(row["n_lost"]), n=count(scored_questions(row)))
    if row.get("people") in BY_PEOPLE:
        common += say("compare.beside_people", words=judge_and_people(row, say))
    line = say(
        "compare.head",
        outcome=outcome_word(row, say),
        value=difference(row, say),
        new=row["candidate"],
        base=row["baseline"],
        metric=row["metric"],
        common=common,
    )
    return str(line)


def _other_losses(table: pd.DataFrame, decisive: Mapping[Any, Any], say: Any) -> str:
    """Return which other metrics of the candidate are conclusively worse, for the end of its first line."""
    # The line says already that the candidate is worse.
    if decisive["outcome"] in _LOSSES:
        return ""
    others = table[(table["candidate"] == decisive["candidate"]) & ~table["primary"]]
    losses = []
    for row in records(others):
        # What the answers took has its own part of the line, see `operations_line`.
        if row["outcome"] not in _LOSSES or row["role"] == "operation" or row["metric"] == TOTAL:
            continue
        outcome = say(f"compared.{row['outcome']}")
        losses.append(f"{row['metric']} {difference(row, say)} ({outcome})")
    if losses:
        return str(say("compare.but_worse", metrics=", ".join(losses)))
    return ""


def _references(changed: int, say: Any) -> str:
    """Return how many reference answers changed, for the end of a first line: the scores may follow them."""
    if changed:
        return str(say("compare.references", changed=count(changed)))
    return ""


def difference_table(
    table: pd.DataFrame, lang: str, *, by: str | None = None, name: Callable[[str], str] = str
) -> Table:
    """Return differences as they are shown, the metric that decides first; each is drawn on the metric's range.

    Parameters
    ----------
    table : DataFrame
        As `compare` returns it.
    by : str, optional
        The column whose values stand in the place of the metric.
    name : function
        Names a metric.
    """
    say = texts.load(lang)
    table = table.sort_values("primary", ascending=False, kind="stable")
    several = table["candidate"].nunique() > 1
    # A slice of one cluster, such as a document, has no interval; it tells by what the difference is without it.
    alone = by is not None and table["p"].isna().all()
    adjusted = "p_holm" if by is None else "p_bh"
    rows = []
    for row, drawn in zip(records(table), _shares_of_range(table), strict=True):
        shown = name(row["metric"]) if by is None else str(row[by])
        text = difference(row, say)
        write = percent if row["role"] == "rate" else number
        questions: tuple[Any, ...] = (count(row["n_common"]),)
        if row["n_left_out"]:
            questions += (Small(say("compare.excluded", n=count(row["n_left_out"]))),)
        # The metric that decides and the total are not among those that Holm's correction is over.
        if pd.isna(row[adjusted]):
            p = row["p"]
        else:
            p = row[adjusted]
        if alone:
            last = difference(row, say, "{}_without")
        else:
            last = p_value(p)
        rows.append(
            (
                (row["candidate"], Small(shown)) if several else shown,
                write(row["baseline_mean"]),
                write(row["candidate_mean"]),
                (text, *_picture(drawn, f"{shown}: {text}")),
                outcome_mark(row, say),
                f"{row['wins']} / {row['ties']} / {row['losses']}",
                questions,
                last,
            )
        )
    if alone:
        key_of_last = "without"
    elif by is None:
        key_of_last = "p"
    else:
        key_of_last = "p_bh"
    level = _level_of(table)
    # A leading ">" aligns a column to the right.
    heads = [
        say("column.metric") if by is None else by,
        f">{one_line(table['baseline'].iloc[0], _LONGEST_NAME)}",
        f">{one_line(_head_of_candidates(table, say), _LONGEST_NAME)}",
        f">{one_line(say('compare.difference', level=level), _LONGEST_NAME)}",
        say("column.outcome"),
        f">{say('compare.wins')}",
        f">{say('compare.n')}",
        f">{say(f'compare.{key_of_last}', level=level)}",
    ]
    return Table(tuple(heads), tuple(rows), cards=True)


class _Shares(NamedTuple):
    """A difference with its interval and margin as shares of its metric's range, nan where that has no end.

    `widest` is the largest of all rows of a table, so that all are drawn on one scale.
    """

    value: float
    low: float
    high: float
    margin: float
    widest: float


def _shares_of_range(table: pd.DataFrame) -> list[_Shares]:
    """Return the differences of a table on the scale that they are drawn on."""
    width = (table["range_high"] - table["range_low"]).replace(np.inf, np.nan)
    shares = table[["value", "low", "high"]].div(width, axis=0)
    widest = shares.abs().max().max()
    margins = table["margin"] / width
    return [
        _Shares(value, low, high, margin, widest)
        for (value, low, high), margin in zip(shares.to_numpy(float), margins, strict=True)
    ]


def _picture(drawn: _Shares, text: str) -> tuple[Estimate, ...]:
    """Return the picture of a difference, 0 in its middle; none where it has no place on the scale."""
    # Where all differences are exactly 0 the scale has no length.
    if not drawn.widest or np.isnan(drawn.value):
        return ()
    if np.isnan(drawn.margin):
        shaded = None
    else:
        shaded = (-drawn.margin, drawn.margin)
    picture = Estimate(
        written="",
        interval="",
        value=drawn.value,
        low=drawn.low,
        high=drawn.high,
        span=(-drawn.widest, drawn.widest),
        thresholds=(("0", 0.0),),
        shaded=shaded,
        text=text,
    )
    return (picture,)


def _level_of(table: pd.DataFrame) -> str:
    """Write the confidence level of a table, ``95 %``."""
    return f"{100 * table['level'].iloc[0]:g} %"


def _head_of_candidates(table: pd.DataFrame, say: Any) -> str:
    """Return what heads the numbers of the candidates: the name of one; several are named in their rows."""
    if table["candidate"].nunique() > 1:
        return str(say("compare.candidate_mean"))
    return str(table["candidate"].iloc[0])


def without_operations(table: pd.DataFrame) -> pd.DataFrame:
    """Return differences without those in operation, which have a table of their own, unless that is all."""
    rest = table[table["role"] != "operation"]
    if len(rest):
        return rest
    return table


def operations_line(table: pd.DataFrame, candidate: str, say: Any) -> str:
    """Return what the answers of a candidate took beside the baseline, for the end of its first line."""
    statements = [_took(row, say) for row in said_of(table, candidate)]
    if statements:
        return str(say("compare.took", what=say("list.also").join(statements)))
    return ""


def _took(row: Mapping[Any, Any], say: Any) -> str:
    """Write one decided difference: a time by how much, all else by what share."""
    if row["metric"] == ERRORS:
        kind = "errors"
    else:
        kind = kind_of_operation(row["metric"])
    word = "more" if row["value"] > 0 else "less"
    name = row["metric"]
    if row["statistic"] != "mean":
        name = say(f"operations.{row['statistic']}_of", name=name)
    # The word says which way, so sizes have no sign; for a decrease this swaps the ends of the interval.
    if kind == "time" or pd.isna(row["change"]):
        ends = sorted([abs(row["low"]), abs(row["high"])])
        size = f"{amount(abs(row['value']))} {unit_of(row['metric'])}".rstrip()
        interval = amounts(*ends)
    else:
        ends = sorted([abs(row["change_low"]), abs(row["change_high"])])
        size = share_of(row["change"])
        interval = "–".join(share_of(end) for end in ends)
    return str(say(f"compare.took_{kind}_{word}", name=name, size=size, ends=interval))


def operations_table(table: pd.DataFrame, lang: str) -> Table:
    """Return how what the answers took differs, a row a measure and statistic."""
    say = texts.load(lang)
    several = table["candidate"].nunique() > 1
    rows = []
    for row in records(table):
        name: tuple[Any, ...] = (row["metric"], Small(say(f"operations.{row['statistic']}")))
        if several:
            name = (row["candidate"], *name)
        interval = ends_of(signed_amount(row["low"]), signed_amount(row["high"]), say)
        cells = (
            name,
            amount(row["baseline_value"]),
            amount(row["candidate_value"]),
            (signed_amount(row["value"]), Small(interval)),
            _relative_change(row, say),
            outcome_mark(row, say),
            count(row["n_common"]),
        )
        rows.append(cells)
    level = _level_of(table)
    heads = (
        say("operations.column"),
        f">{one_line(table['baseline'].iloc[0], _LONGEST_NAME)}",
        f">{one_line(_head_of_candidates(table, say), _LONGEST_NAME)}",
        f">{say('compare.difference', level=level)}",
        f">{say('compare.relative', level=level)}",
        say("column.outcome"),
        f">{say('compare.n')}",
    )
    return Table(heads, tuple(rows), caption=say("compare.operations_caption"))


def _relative_change(row: Mapping[Any, Any], say: Any) -> str:
    """Write a relative change with its interval; empty where there is none, as of quantiles."""
    if pd.isna(row["change"]):
        return ""
    low = percent_change(row["change_low"])
    high = percent_change(row["change_high"])
    return f"{percent_change(row['change'])} ({ends_of(low, high, say)})"


@dataclass(frozen=True)
class View:
    """A comparison as it is displayed: headlines with their outcomes, tables with headings, notes.

    Attributes
    ----------
    lang : {"en", "zh"}
    title : str
    head : dict of str to str
        A line for each candidate, and its outcome; empty where no metric decides.
    tables : list of (heading, Table)
        The metrics, then the slices.
    notes : list of str
    operations : DataFrame, optional
        As `ragnb.compare_operations`.
    """

    lang: str
    title: str
    head: dict[str, str]
    tables: list[tuple[str, Table]]
    notes: list[str]
    operations: pd.DataFrame | None = None

    @property
    def sections(self) -> list[Section]:
        """The first lines, each table, and last the notes."""
        say = texts.load(self.lang)
        lines: tuple[Any, ...] = tuple(
            Mark(TONES[outcome], text) for text, outcome in self.head.items()
        )
        if not lines:
            lines = (say("compare.no_word"),)
        parts: list[tuple[str, Block]] = [(self.title, Text(lines, "lead")), *self.tables]
        if self.notes:
            parts.append((say("compare.notes"), Text(tuple(self.notes), "list")))
        return [
            Section(f"part-{place}", title, title, blocks=(block,), lang=self.lang)
            for place, (title, block) in enumerate(parts)
        ]

    def markdown(self) -> str:
        return render_markdown(self.sections)

    def html(self) -> str:
        """Return a page that opens offline."""
        return render_page(self.sections, title=self.title, lang=self.lang)


def changed_section(changed: pd.DataFrame, *, lang: str = "en") -> Section:
    """Return the questions that `changed_questions` found, both scores and answers side by side.

    Examples
    --------
    >>> rows = {"sample_id": [*"ab"] * 2, "system": ["new"] * 2 + ["old"] * 2, "correct_outcome": [1, 0, 0, 0]}
    >>> from ragnb.comparison import changed_questions
    >>> "+1.000" in repr(changed_section(changed_questions(pd.DataFrame(rows), baseline="old")))
    True
    """
    say = texts.load(lang)
    several = changed["candidate"].nunique() > 1
    heads = {}
    if several:
        heads["candidate"] = say("column.candidate")
    for name in ("question", "sample_id", "doc_name", "change", "value"):
        heads[name] = say(f"compare.{name}")
    for side in ("candidate", "baseline"):
        if len(changed) and not several:
            system = changed[side].iloc[0]
        else:
            system = say(f"column.{side}")
        for kind in ("answer", "mode"):
            heads[f"{side}_{kind}"] = say(
                f"compare.{kind}_of", system=one_line(system, _LONGEST_NAME)
            )
    heads = {name: head for name, head in heads.items() if name in changed}
    if not len(changed):
        block: Block = Text((say("compare.no_change"),))
        return Section("changed", say("compare.changed", metric=""), blocks=(block,), lang=lang)
    # All other columns are shown as they are.
    writers: dict[str, Callable[[Any], Any]] = {
        "change": lambda change: say(f"compared.{change}"),
        "value": signed,
        "candidate_mode": lambda mode: say(f"mode.{mode}"),
        "baseline_mode": lambda mode: say(f"mode.{mode}"),
    }
    columns = []
    for name in heads:
        if name in writers:
            columns.append(changed[name].map(writers[name]))
        else:
            columns.append(changed[name])
    block = Table(tuple(heads.values()), tuple(zip(*columns, strict=True)))
    title = say("compare.changed", metric=changed["metric"].iloc[0])
    return Section("changed", title, blocks=(block,), lang=lang)
