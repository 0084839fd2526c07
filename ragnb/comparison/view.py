"""A comparison as it is displayed: headline, tables with formatted cells, and notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.comparison.beside import changes
from ragnb.comparison.differences import TOTAL, Margin, compared, with_ratings
from ragnb.comparison.estimates import OFTEN, Verdict, gate_verdict, outcome_of, pass_chance
from ragnb.comparison.operations import operations_beside, said_of
from ragnb.comparison.pairs import Pairs
from ragnb.comparison.people import APART, BY_PEOPLE, UNCHECKED
from ragnb.comparison.source import Run, anchor_beside, paired_runs, run_of
from ragnb.errors import need_known
from ragnb.inputs.operations import ERRORS
from ragnb.markup import (
    MISSING,
    amount,
    amounts,
    count,
    number,
    one_line,
    p_value,
    percent,
    signed,
)
from ragnb.markup.blocks import Block, Estimate, Mark, Section, Small, Table, Text
from ragnb.markup.rendering import render_markdown, render_page
from ragnb.schema import kind_of_operation, records, unit_of
from ragnb.texts import counted

_TONES = {
    "better": "good",
    "better_within": "good",
    "same": "good",
    "undecided": "none",
    "worse_within": "watch",
    "worse": "bad",
}


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
    by = by or (
        scenario.doc if documents and (pairs[0].unit == "document" or pairs[0].complete) else None
    )
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
    notes_of_table = [*_notes(table, say)]
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
        notes_of_table += (say("compare.anchor", head=text) for text in _notes(accepted, say))
        table = pd.concat([table, accepted], ignore_index=True)
    said = [
        f"{row['about']}: {row['text']}" if len(pairs) > 1 and row["about"] else row["text"]
        for row in notes
    ]
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


def change(row: Mapping[Any, Any], say: Any, name: str = "value") -> str:
    """Write a difference in a column of a row: that of a rate in percentage points."""
    share = row["role"] == "rate"
    text = signed(row[name], share)
    if share and text != MISSING:
        return str(say("gates.points", n=text))
    return text


def difference(row: Mapping[Any, Any], say: Any, name: str = "{}") -> str:
    """Write a difference with its interval where there is one, ``+0.113 (+0.036 to +0.191)``.

    Examples
    --------
    >>> row = {"value": 0.113, "low": 0.036, "high": 0.191, "role": "rate"}
    >>> difference(row, texts.load("en"))
    '+11.3 points (+3.6 to +19.1)'
    """
    low, high = (signed(row[name.format(end)], row["role"] == "rate") for end in ("low", "high"))
    text = change(row, say, name.format("value"))
    if MISSING in (low, text):
        return text
    return f"{text} ({say('sheet.from_to', low=low, high=high)})"


def outcome_mark(row: Mapping[Any, Any], say: Any) -> Mark:
    """Return the outcome of a comparison in words."""
    return Mark(_TONES[row["outcome"]], say(f"compared.{row['outcome']}"))


def _word(row: Mapping[Any, Any], say: Any) -> str:
    """Return the outcome in words; what the judge alone sees and people do not is not shown."""
    if row.get("people") in BY_PEOPLE:
        judged = outcome_of(
            row["judge_low"], row["judge_high"], margin=row["margin"], better=row["better"]
        )
        side = judged.removesuffix("_within")
        is_open = row["outcome"] in ("same", "undecided")
        if is_open and side in ("better", "worse"):
            return str(say(f"compared.not_shown_{side}"))
    return str(say(f"compared.{row['outcome']}"))


def headline(row: dict[Any, Any], say: Any) -> str:
    """Return the outcome of one metric in one line."""
    unit = row["cluster_unit"]
    common = counted(say, "compare.common", count(row["n_common"]))
    if unit != "row":
        common += counted(say, f"compare.{unit}s", count(row["n_clusters"]))
    if row["n_lost"]:
        common += say("compare.lost", lost=count(row["n_lost"]), n=count(_scored(row)))
    if row.get("people") in BY_PEOPLE:
        common += say("compare.beside_people", words=_judge_and_people(row, say))
    words = {
        "new": row["candidate"],
        "base": row["baseline"],
        "metric": row["metric"],
        "common": common,
    }
    return str(
        say(
            "compare.head",
            outcome=_word(row, say),
            value=difference(row, say),
            **words,
        )
    )


def _other_losses(table: pd.DataFrame, decisive: Mapping[Any, Any], say: Any) -> str:
    """Return which other metrics of the candidate are conclusively worse, for the end of its first line."""
    if decisive["outcome"] in ("worse", "worse_within"):
        return ""
    own = table[(table["candidate"] == decisive["candidate"]) & ~table["primary"]]
    lost = [row for row in records(own) if row["outcome"] in ("worse", "worse_within")]
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


def _scored(row: Mapping[Any, Any]) -> int:
    """Return how many questions the baseline scored, of those that the metric applies to on both sides."""
    return int(row["n_common"] + row["n_lost"])


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
        told = amounts(*ends)
    else:
        ends = sorted([abs(row["change_low"]), abs(row["change_high"])])
        size = _share(row["change"])
        told = "–".join(map(_share, ends))
    return str(say(f"compare.took_{kind}_{word}", name=name, size=size, ends=told))


def operations_table(table: pd.DataFrame, lang: str) -> Table:
    """Return how what the answers took differs, a row a measure and statistic."""
    say = texts.load(lang)
    several = table["candidate"].nunique() > 1
    level = f"{100 * table['level'].iloc[0]:g} %"
    rows = []
    for row in records(table):
        name = (row["metric"], Small(say(f"operations.{row['statistic']}")))
        between = _ends_of(_signed_amount(row["low"]), _signed_amount(row["high"]), say)
        relative = ""
        if not pd.isna(row["change"]):
            ends = _percent_change(row["change_low"]), _percent_change(row["change_high"])
            relative = f"{_percent_change(row['change'])} ({_ends_of(*ends, say)})"
        cells = (
            amount(row["baseline_value"]),
            amount(row["candidate_value"]),
            (_signed_amount(row["value"]), Small(between)),
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


def _signed_amount(value: float) -> str:
    if pd.isna(value):
        return MISSING
    return f"{_sign(value)}{amount(abs(value))}"


def _percent_change(share: float) -> str:
    if pd.isna(share):
        return MISSING
    return f"{_sign(share)}{_share(share)}"


def _sign(value: float) -> str:
    if value < 0:
        return "−"
    return "+"


def _share(share: float) -> str:
    """Write how large a relative change is; a small one with a decimal."""
    return percent(abs(share), 0 if abs(share) >= 0.1 else 1)


def _ends_of(low: str, high: str, say: Any) -> str:
    if MISSING in (low, high):
        return ""
    return str(say("sheet.from_to", low=low, high=high))


def _why(left_out: str, say: Any) -> str:
    """Return why questions are excluded, in a language: ``new: 3 failed, 2 absent``."""
    pattern = r"(?<=[:,] )(\d+) (failed|not_applicable|missing|absent)(?=[,;]|$)"
    return re.sub(pattern, lambda found: f"{found[1]} {say(f'compare.state.{found[2]}')}", left_out)


def _notes(table: pd.DataFrame, say: Any) -> Iterator[str]:
    """Yield what to know before believing the numbers, a sentence or two each."""
    if not table["primary"].any():
        yield say("compare.no_primary")
    several = table["candidate"].nunique() > 1
    for name, rows in table.groupby("candidate", sort=False):
        yield from (f"{name}: " * several + text for text in _notes_of(records(rows), say))


def _notes_of(rows: Sequence[dict[Any, Any]], say: Any) -> Iterator[str]:
    decisive = [row for row in rows if row["primary"]] or rows
    if partly := [row for row in rows if row["left_out"]]:
        listed = (
            f"{row['metric']} {count(row['n_left_out'])} ({_why(row['left_out'], say)})"
            for row in partly
        )
        bounds = [
            (row["metric"], change(row, say), change(row, say, "worst_case")) for row in decisive
        ]
        worst = ", ".join(
            f"{metric} {bound}" for metric, value, bound in bounds if bound not in (value, MISSING)
        )
        text = say("compare.one_side", metrics="; ".join(listed))
        yield text + (say("compare.worst", values=worst) if worst else "")
    for row in (row for row in decisive if pd.notna(row["all_value"])):
        asked = count(row["n_common"] + row["n_left_out"])
        whole = difference(row, say, "all_{}")
        yield say(
            "compare.overlap",
            metric=row["metric"],
            n=count(row["n_common"]),
            asked=asked,
            value=whole,
        )
    small = (row for row in rows if row["below_noise"])
    noisy = [
        f"{row['metric']} {change(row, say)} (±{change(row, say, 'noise').lstrip('+')})"
        for row in small
    ]
    if noisy:
        yield say("compare.noise", metrics=", ".join(noisy))
    yield from _people_notes(rows, say)
    open_rows = [
        row
        for row in rows
        if row["outcome"] == "undecided"
        and not row["incomplete"]
        and row.get("people") != UNCHECKED
    ]
    late = (row for row in open_rows if row["low"] * row["high"] > 0)
    if metrics := ", ".join(row["metric"] for row in late):
        yield say("compare.holm", metrics=metrics)
    for row in (row for row in decisive if row["incomplete"]):
        words = {"lost": count(row["n_lost"]), "n": count(_scored(row))}
        yield say("compare.incomplete", metric=row["metric"], new=row["candidate"], **words)
    for row in decisive:
        if row["incomplete"] or row.get("people") == UNCHECKED:
            continue
        more = row["questions_needed"] - row["n_common"]
        if np.isnan(row["low"]):
            key = "no_interval"
        elif np.isnan(more):
            key = "no_difference"
        else:
            key = "needed"
        words = {"metric": row["metric"], "value": change(row, say), "margin": f"{row['margin']:g}"}
        words |= {
            "n": count(row["n_common"]),
            "detectable": change(row, say, "detectable").lstrip("+"),
        }
        if row["outcome"] in ("same", "undecided"):
            yield say(
                f"compare.{'within' if row['outcome'] == 'same' else key}",
                more=count(more),
                **words,
            )
        elif row["outcome"].endswith("_within"):
            yield say(f"compare.{row['outcome']}", **words)
        elif gate_verdict(row) == Verdict.NOT_PROVEN:
            yield say("compare.worse_unsure", metric=row["metric"])
    for row in decisive:
        if row.get("people") in BY_PEOPLE:  # more ratings help, too, not questions alone
            continue
        chance, needed = pass_chance(row)
        if chance < OFTEN:
            told = {"n": count(row["n_common"]), "needed": count(needed)}
            yield say("compare.pass_chance", chance=percent(chance), **told)


def _people_notes(rows: Sequence[dict[Any, Any]], say: Any) -> Iterator[str]:
    """Yield what people's ratings made of each metric that they rated."""
    for row in rows:
        told = {"metric": row["metric"], "n": count(row.get("n_human", 0))}
        if row.get("people") == UNCHECKED:
            yield say("compare.unchecked", new=row["candidate"], base=row["baseline"], **told)
        elif row.get("people") in BY_PEOPLE:
            yield say("compare.people_decide", words=_judge_and_people(row, say), **told)


def _judge_and_people(row: Mapping[Any, Any], say: Any) -> str:
    """Write what the judge and what people found, and whom the judge favours."""
    told = {"judge": change(row, say, "judge_value"), "n": count(row["n_human"])}
    if row["people"] == APART:
        key = "judge_and_people_apart"
    else:
        key = "judge_and_people"
    text = str(say(f"compare.{key}", people=difference(row, say, "human_{}"), **told))
    if row["judge_bias_low"] * row["judge_bias_high"] > 0:
        favours_new = (row["judge_bias"] > 0) == (row["better"] == "higher")
        who = row["candidate"] if favours_new else row["baseline"]
        bias = change(row, say, "judge_bias").lstrip("+−-")
        text += str(say("compare.judge_favours", system=who, bias=bias))
    return text


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
        lines = tuple(Mark(_TONES[one], text) for text, one in self.head.items()) or (
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
