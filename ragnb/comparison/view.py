"""A comparison as it is displayed: headline, tables with formatted cells, and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    for name in metrics:
        need_known("metric", name, [metric.name for metric in run.metrics])
    if metrics:
        run = replace(
            run, metrics=tuple(metric for metric in run.metrics if metric.name in metrics)
        )
    other, pairs = paired_runs(run, baseline, settings=settings, by=by, **how)
    scenario = run.scenario
    notes = changes(run, other, pairs)
    pairs = with_ratings(pairs, scenario)
    if not by and documents and (pairs[0].unit == "document" or pairs[0].complete):
        by = scenario.doc
    table = compared(pairs, scenario, margin=margin, primary=primary)
    if by is None:
        slices = None
    else:
        slices = compared(pairs, scenario, by=by, margin=margin, primary=primary)
    say = texts.load(scenario.lang)
    names = {"new": ", ".join(one.candidate for one in pairs), "base": pairs[0].baseline}
    changed = {one.candidate: one.new_references for one in pairs}
    took = operations_beside(run, other, pairs, settings=settings, **how)
    head = {
        headline(row, say)
        + _other_losses(table, row, say)
        + operations_line(took, row["candidate"], say)
        + _references(changed[row["candidate"]], say): row["outcome"]
        for row in records(table[table["primary"]])
    }
    shown = [(say("compare.metrics"), difference_table(without_operations(table), scenario.lang))]
    if slices is not None:
        for metric, rows in (slices[slices["primary"]] if head else slices).groupby(
            "metric", sort=False
        ):
            shown.append(
                (
                    say("compare.by", by=by, metric=metric),
                    difference_table(rows, scenario.lang, by=by),
                )
            )
    if len(took):
        shown.append((say("compare.operations"), operations_table(took, scenario.lang)))
    notes_of_table = [*comparison_notes(table, say)]
    anchored = _beside_anchor(run, baseline, settings, how)
    if anchored is not None:
        accepted = compared(
            with_ratings(anchored, scenario), scenario, margin=margin, primary=primary
        )
        for row in records(accepted[accepted["primary"]]):
            line = headline(row, say) + _other_losses(accepted, row, say)
            head[say("compare.anchor", head=line)] = row["outcome"]
        base = anchored[0].baseline
        shown.append(
            (say("compare.beside_anchor", base=base), difference_table(accepted, scenario.lang))
        )
        notes_of_table += (
            say("compare.anchor", head=text) for text in comparison_notes(accepted, say)
        )
        table = pd.concat([table, accepted], ignore_index=True)
    said = []
    for row in notes:
        about = row["about"] if len(pairs) > 1 else ""
        said.append(f"{about}: {row['text']}" if about else row["text"])
    title = say("compare.title", **names)
    view = View(scenario.lang, title, head, shown, [*said, *notes_of_table], took)
    return view, table, slices


def _beside_anchor(
    run: Run, baseline: Any, settings: Mapping[str, Any] | None, how: Mapping[str, Any]
) -> list[Pairs] | None:
    """Pair a run with the accepted one, None where there is none or it is what the run is compared with anyway."""
    other = run.scenario.baseline if baseline is None else baseline
    anchor = anchor_beside(run.scenario, other)
    if anchor is None or other is None:
        return None
    return paired_runs(run, anchor, settings=settings, **how)[1]


def headline(row: dict[Any, Any], say: Any) -> str:
    """Return the outcome of one metric in one line."""
    unit = row["cluster_unit"]
    common = counted(say, "compare.common", count(row["n_common"]))
    if unit != "row":
        common += counted(say, f"compare.{unit}s", count(row["n_clusters"]))
    if row["n_lost"]:
        common += say("compare.lost", lost=count(row["n_lost"]), n=count(scored_questions(row)))
    if row.get("people") in BY_PEOPLE:
        common += say("compare.beside_people", words=judge_and_people(row, say))
    words = {
        "new": row["candidate"],
        "base": row["baseline"],
        "metric": row["metric"],
        "common": common,
    }
    return str(
        say(
            "compare.head",
            outcome=outcome_word(row, say),
            value=difference(row, say),
            **words,
        )
    )


def _other_losses(table: pd.DataFrame, decisive: Mapping[Any, Any], say: Any) -> str:
    """Return which other metrics of the candidate are conclusively worse, for the end of its first line."""
    if decisive["outcome"] in ("worse", "worse_within"):
        return ""
    others = table[(table["candidate"] == decisive["candidate"]) & ~table["primary"]]
    lost = [row for row in records(others) if row["outcome"] in ("worse", "worse_within")]
    lost = [row for row in lost if row["role"] != "operation"]
    listed = (
        f"{row['metric']} {difference(row, say)} ({say('compared.' + row['outcome'])})"
        for row in lost
        if row["metric"] != TOTAL
    )
    metrics = ", ".join(listed)
    if metrics:
        return str(say("compare.but_worse", metrics=metrics))
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
    level = f"{100 * table['level'].iloc[0]:g} %"
    width = (table["range_high"] - table["range_low"]).replace(np.inf, np.nan)
    shares = table[["value", "low", "high"]].div(width, axis=0)
    widest = shares.abs().max().max()
    margins = table["margin"] / width
    rows = []
    # A slice of one cluster, such as a document, has no interval; it tells by what the difference is without it.
    alone = by is not None and table["p"].isna().all()
    adjusted = "p_holm" if by is None else "p_bh"
    for row, (value, low, high), margin in zip(
        records(table), shares.to_numpy(float), margins, strict=True
    ):
        shown = name(row["metric"]) if by is None else str(row[by])
        text = difference(row, say)
        write = percent if row["role"] == "rate" else number
        drawn = tuple[Estimate, ...]()
        if widest and not np.isnan(value):
            shaded = None if np.isnan(margin) else (-margin, margin)
            label = f"{shown}: {text}"
            drawn = (
                Estimate(
                    "", "", value, low, high, (-widest, widest), (("0", 0.0),), shaded, text=label
                ),
            )
        excluded = [Small(say("compare.excluded", n=count(row["n_left_out"])))] * bool(
            row["n_left_out"]
        )
        tested = p_value(row["p" if pd.isna(row[adjusted]) else adjusted])
        rows.append(
            (
                (row["candidate"], Small(shown)) if several else shown,
                write(row["baseline_mean"]),
                write(row["candidate_mean"]),
                (text, *drawn),
                outcome_mark(row, say),
                f"{row['wins']} / {row['ties']} / {row['losses']}",
                (count(row["n_common"]), *excluded),
                difference(row, say, "{}_without") if alone else tested,
            )
        )
    if several:
        side = say("compare.candidate_mean")
    else:
        side = table["candidate"].iloc[0]
    if alone:
        last = "without"
    elif by is None:
        last = "p"
    else:
        last = "p_bh"
    numbers = [table["baseline"].iloc[0], side, say("compare.difference", level=level)]
    heads = [
        say("column.metric") if by is None else by,
        *(f">{one_line(head, 40)}" for head in numbers),
    ]
    heads += [
        say("column.outcome"),
        *(">" + say(f"compare.{key}", level=level) for key in ("wins", "n", last)),
    ]
    return Table(tuple(heads), tuple(rows), cards=True)


def without_operations(table: pd.DataFrame) -> pd.DataFrame:
    """Return differences without those in operation, which have a table of their own, unless that is all."""
    rest = table[table["role"] != "operation"]
    if len(rest):
        return rest
    return table


def operations_line(table: pd.DataFrame, candidate: str, say: Any) -> str:
    """Return what the answers of a candidate took beside the baseline, for the end of its first line."""
    if len(table):
        said = [_took(row, say) for row in said_of(table, candidate)]
    else:
        said = []
    if said:
        return str(say("compare.took", what=say("list.also").join(said)))
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
    if kind == "time" or pd.isna(row["change"]):
        ends = sorted([abs(row["low"]), abs(row["high"])])
        size = f"{amount(abs(row['value']))} {unit_of(row['metric'])}".rstrip()
        interval = amounts(*ends)
    else:
        ends = sorted([abs(row["change_low"]), abs(row["change_high"])])
        size = share_of(row["change"])
        interval = "–".join(map(share_of, ends))
    return str(say(f"compare.took_{kind}_{word}", name=name, size=size, ends=interval))


def operations_table(table: pd.DataFrame, lang: str) -> Table:
    """Return how what the answers took differs, a row a measure and statistic."""
    say = texts.load(lang)
    several = table["candidate"].nunique() > 1
    level = f"{100 * table['level'].iloc[0]:g} %"
    rows = []
    for row in records(table):
        name = (row["metric"], Small(say(f"operations.{row['statistic']}")))
        between = ends_of(signed_amount(row["low"]), signed_amount(row["high"]), say)
        relative = ""
        if not pd.isna(row["change"]):
            ends = percent_change(row["change_low"]), percent_change(row["change_high"])
            relative = f"{percent_change(row['change'])} ({ends_of(*ends, say)})"
        cells = (
            amount(row["baseline_value"]),
            amount(row["candidate_value"]),
            (signed_amount(row["value"]), Small(between)),
            relative,
            outcome_mark(row, say),
            count(row["n_common"]),
        )
        rows.append(((row["candidate"], *name) if several else name, *cells))
    if several:
        side = say("compare.candidate_mean")
    else:
        side = table["candidate"].iloc[0]
    heads = (
        say("operations.column"),
        f">{one_line(table['baseline'].iloc[0], 40)}",
        f">{one_line(side, 40)}",
        f">{say('compare.difference', level=level)}",
        f">{say('compare.relative', level=level)}",
        say("column.outcome"),
        f">{say('compare.n')}",
    )
    return Table(heads, tuple(rows), caption=say("compare.operations_caption"))


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
        lines = tuple(Mark(TONES[one], text) for text, one in self.head.items()) or (
            say("compare.no_word"),
        )
        parts: list[tuple[str, Block]] = [(self.title, Text(lines, "lead")), *self.tables]
        parts += [(say("compare.notes"), Text(tuple(self.notes), "list"))] * bool(self.notes)
        named = enumerate(parts)
        return [
            Section(f"part-{k}", one, one, blocks=(block,), lang=self.lang)
            for k, (one, block) in named
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
    word = {"change": lambda one: say(f"compared.{one}"), "value": signed}
    if several:
        heads = {"candidate": say("column.candidate")}
    else:
        heads = {}
    heads |= {
        name: say(f"compare.{name}")
        for name in ("question", "sample_id", "doc_name", "change", "value")
    }
    for side in ("candidate", "baseline"):
        if len(changed) and not several:
            who = changed[side].iloc[0]
        else:
            who = say(f"column.{side}")
        for kind in ("answer", "mode"):
            heads[f"{side}_{kind}"] = say(f"compare.{kind}_of", system=one_line(who, 40))
            word[f"{side}_mode"] = lambda one: say(f"mode.{one}")
    shown = {name: head for name, head in heads.items() if name in changed}
    written = (changed[name].map(word.get(name, lambda one: one)) for name in shown)
    table = Table(tuple(shown.values()), tuple(zip(*written, strict=True)))
    block = table if len(changed) else Text((say("compare.no_change"),))
    metric = changed["metric"].iloc[0] if len(changed) else ""
    return Section("changed", say("compare.changed", metric=metric), blocks=(block,), lang=lang)
