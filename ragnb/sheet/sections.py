"""The sections of a sheet, one function each: assessment -> section; and how their numbers are written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from ragnb import markup, texts
from ragnb.calibration import CalibrationCard, calibrate, judge_columns
from ragnb.calibration.card import TONES, parts
from ragnb.comparison.view import difference, difference_table, outcome_mark
from ragnb.diagnostics import RULES, if_documents_fail, input_words, rule_texts
from ragnb.diagnostics.rules import past
from ragnb.errors import RagnbError, listing
from ragnb.inputs.streams import BAD_FIRST, DIGITS
from ragnb.markup import MISSING, Safe, escape, is_missing, one_line
from ragnb.markup.blocks import (
    Bar,
    Block,
    Code,
    Coverage,
    Estimate,
    Histogram,
    Link,
    Mark,
    Measure,
    Measures,
    Picture,
    Sample,
    Samples,
    Section,
    Small,
    Stack,
    Step,
    Steps,
    Table,
    Text,
    Verdict,
)
from ragnb.markup.rendering import anchor, cell
from ragnb.scenario import Scenario
from ragnb.schema import DRAWN, METRICS, records, scale_of
from ragnb.weights import why_no_total

TOTAL = "weighted_score"
OUTCOME = "correct_outcome"
SHARES = ("input_lines", "gold_coverage", "scored_cells")
RIGHT = ("OK", "REFUSAL_OK")
KINDS = {
    "OK": "ok", "ANS_NO_HIT": "miss", "OVER_REFUSAL": "over", "REFUSAL_OK": "refused", "HALLUCINATION": "false",
}  # fmt: skip
"""How an answer's label is drawn: solid where the system answered, outlined where it refused."""
GATE_TONES = {"fail": "bad", "undecided": "watch", "no_data": "none", "pass": "good"}
"""The outcomes of gates, the worst first, and the tone of each."""
Row = Mapping[Any, Any]


def key_of(sample: object) -> str:
    """Return the name of a question's place on the page."""
    return one_line(sample, 80) or "?"


class Formatter:
    """Write an assessment's metrics, values and intervals: scores with three decimals, rates as percentages.

    Parameters
    ----------
    sheet : Assessment
        Of several systems, which are never pooled, one is shown in detail.
    """

    def __init__(self, sheet: Any) -> None:
        shown = getattr(sheet, "shown_system", None)
        self.whole, self.shown = sheet, shown
        self.sheet = sheet = sheet if shown is None else sheet.of_system(shown)
        self.lang: str = sheet.scenario.lang
        self.say = texts.load(self.lang)
        self.rows: dict[str, Row] = {row["metric"]: row for row in sheet.means.to_dict("records")}
        self.ranges = {
            name: (float(row["range_low"]), float(row["range_high"])) for name, row in self.rows.items()
        }
        self.scales = {name: scale_of(name, *ends) for name, ends in self.ranges.items()}
        self.better: dict[str, str] = {name: row["better"] for name, row in self.rows.items()}
        known = {**METRICS, **sheet.scenario.declared}
        self.metrics = {name: known.get(name) for name in sheet.means["metric"]}
        self.rates = [name for name, row in self.rows.items() if row["role"] == "rate"]
        self.quality = [name for name in self.metrics if name != TOTAL and name not in self.rates]
        # The thresholds of a rule mean nothing for a metric of that name on another scale.
        usual = {name: (metric.scale, metric.better) for name, metric in METRICS.items()}
        fits = [name for name in self.metrics if (self.scales[name], self.better[name]) == usual.get(name)]
        self.rules = {rule.metric: rule for rule in RULES if rule.also is None and rule.metric in fits}
        self.total = [TOTAL] if self.quality or not pd.isna(self.rows[TOTAL]["value"]) else []
        # The metrics of a radar: those of quality, else the rates, whose ranges have ends.
        self.axes = [name for name in self.quality or self.rates if self.span(name)]
        self.unit = str(self.rows[TOTAL]["cluster_unit"])  # of the clusters: document, cluster or row
        self.level = f"{100 * sheet.scenario.level:g} %"

    @property
    def gates(self) -> pd.DataFrame:
        """The gates that are shown: input that came through whole is no news."""
        gates: pd.DataFrame = self.whole.gates
        return gates[(gates["role"] != "completeness") | ~(gates["value"] >= 1)]

    # Words

    def name(self, metric: str) -> str:
        """Return what a metric is called, in words where they are known."""
        return str(self.about(metric).get("name", metric))

    def title(self, metric: str) -> str:
        """Return the name as a heading begins."""
        name = self.name(metric)
        return name[:1].upper() + name[1:] if self.about(metric) else name

    def about(self, metric: str) -> dict[str, str]:
        """Return the entry of the catalogue of metrics; an empty one for a metric that is not in it."""
        return dict(texts.entry(self.lang, "metrics").get(metric, {}))

    def gloss(self, metric: str) -> str:
        """Return what a metric measures in a sentence; of a rubric's dimension its scale and bands."""
        rubric = self.sheet.scenario.rubric
        for one in () if rubric is None else rubric.dimensions:
            if one.name == metric:
                what = "; ".join(filter(None, [one.description, *map(": ".join, one.bands.items())]))
                return self.say("sheet.dimension", what=what, low=f"{rubric.low:g}", high=f"{rubric.high:g}")
        return self.about(metric).get("gloss", "")

    def list(self, names: Any, most: int = 3) -> str:
        """Join names; those after the first few are counted."""
        names = list(map(str, names))
        shown = self.say("list.join").join(names[:most])
        return shown if len(names) <= most else self.say("list.more", names=shown, n=len(names) - most)

    def link(self, sample: object) -> Link:
        """Return a link to a question by what it is known by, as `key_of` names its place."""
        return Link(one_line(sample, 40), f"#q={quote(anchor(key_of(sample)))}")

    def heads(self, *keys: str) -> tuple[str, ...]:
        """Return the heads of a table by the keys of their texts; one of numbers begins with ``>``."""
        return tuple(">" * (key[0] == ">") + self.say(key.lstrip(">"), level=self.level) for key in keys)

    def section(
        self, key: str, finding: str, lead: str = "", blocks: Iterable[Block] = (), badge: Mark | str = ""
    ) -> Section:
        """Return a section under its name, with what it shows."""
        return Section(key, self.say(f"section.{key}"), finding, lead, tuple(blocks), badge, self.lang)

    # Numbers

    def is_share(self, metric: str) -> bool:
        return metric in self.rates or metric in SHARES

    def value(self, metric: str, value: Any) -> str:
        """Write a value of a metric without its interval."""
        return markup.percent(value) if self.is_share(metric) else markup.number(value)

    def limit(self, metric: str, value: float) -> str:
        """Write a threshold: a percentage as it was set, a score with three decimals."""
        return f"{100 * value:g} %" if self.is_share(metric) else markup.number(value)

    def ends(self, metric: str, row: Row) -> str:
        """Write the interval alone, ``0.771–0.843``; nothing where there is none."""
        return markup.ends(row["low"], row["high"], percent=self.is_share(metric))

    def interval(self, metric: str, row: Row) -> str:
        """Write ``value (low–high)`` of a row."""
        ends = self.ends(metric, row)
        return self.value(metric, row["value"]) + (f" ({ends})" if ends and not pd.isna(row["value"]) else "")

    def estimate(self, metric: str, row: Row, **more: Any) -> Estimate:
        """Return a row's value with its interval as a cell that is drawn."""
        known = not pd.isna(row["value"])
        exact = self.value(metric, row["value"]) if self.is_share(metric) else markup.number(row["value"], 4)
        return Estimate(
            self.value(metric, row["value"]), self.ends(metric, row) if known else "",
            float(row["value"]), float(row["low"]), float(row["high"]), span=self.span(metric),
            text=self.title(metric), exact=exact if known else "", tone=self.tone(metric, row["value"]), **more,
        )  # fmt: skip

    def n(self, row: Row) -> str:
        """Write the n of a row."""
        return self.say("chart.n", n=markup.count(row["n"]))

    def radar(self, axes: Mapping[str, str], values: Mapping[str, Sequence[Any]], label: str) -> Picture:
        """Return the values of systems as a radar; the axes are metrics by what they are called."""
        ranges = {name: self.scales[metric] for name, metric in axes.items()}
        better = {name: self.better[metric] for name, metric in axes.items()}
        how: dict[str, Any] = {"ranges": ranges, "better": better, "radius": 105, "lang": self.lang}
        return Picture(markup.radar_svg(list(axes), values, label=label, **how), label)

    def counted(self, row: Row) -> str:
        """Write the n of a row and the documents it comes from."""
        clusters, unit = markup.count(row["n_clusters"]), self.unit
        return self.n(row) + ("" if unit == "row" else texts.counted(self.say, f"verdict.{unit}s", clusters))

    def coverage(self, row: Row) -> Coverage:
        """Return how many questions have a score, and what became of the others."""
        lacking = {kind: int(row[f"n_{kind}"]) for kind in ("missing", "failed", "not_applicable")}
        rest = [f"{markup.count(n)} {self.say(f'column.{kind}')}" for kind, n in lacking.items() if n]
        return Coverage(int(row["n"]), int(row["n"]) + sum(lacking.values()), self.say("list.join").join(rest))

    # Thresholds

    def thresholds(self, metric: str) -> tuple[tuple[str, float], ...]:
        """Return the named thresholds of a metric, in its own units, the milder one first."""
        if metric == TOTAL:
            (low, high), bands = self.ranges[TOTAL], self.sheet.scenario.bands
            if not high - low < float("inf"):  # nor where it is nan, of metrics that are not added up
                return ()
            named = [(key, low + (high - low) * getattr(bands, key)) for key in ("good", "watch")]
            return tuple((self.say(f"mark.{key}"), at) for key, at in named)
        found = ((key, getattr(self.rules.get(metric), key, None)) for key in ("warning", "critical"))
        return tuple((self.say(f"severity.{key}"), at) for key, at in found if at is not None)

    def tone(self, metric: str, value: Any) -> str:
        """Return good, watch or bad by the bands (the total) or the rule's thresholds; nothing without any."""
        limits = [at for _, at in self.thresholds(metric)]
        if pd.isna(value) or not limits:
            return ""
        better: Any = self.better[metric]
        return "bad" if past(value, limits[-1], better) else "watch" if past(value, limits[0], better) else "good"

    def span(self, metric: str) -> tuple[float, float] | None:
        """Return the whole range of a metric, where it has ends."""
        low, high = self.ranges[metric]
        return (low, high) if abs(low) < float("inf") and abs(high) < float("inf") else None

    # Gates

    def requirement(self, gate: Row) -> str:
        """Write what a gate asks in words: "At most 5 % of unanswerable questions are answered"."""
        metric = gate["metric"]
        if gate["role"] == "completeness":
            return self.say(f"requirement.{gate['gate']}", at=self.limit(metric, gate["threshold"]))
        key = "at_least" if gate["op"] == ">=" else "at_most"
        bound = self.say(f"requirement.{key}", at=self.limit(metric, gate["threshold"]))
        words = self.about(metric).get("requirement")
        if gate["role"] == "difference":
            text = self.say("requirement.difference", metric=self.title(metric), bound=bound.lower())
        elif words is None:
            text = self.say("requirement.metric", metric=self.title(metric), bound=bound[:1].lower() + bound[1:])
        else:
            text = words.format(bound=bound)
        return text if gate["system"] is None else f"{gate['system']}: {text}"

    def code(self, gate: Row) -> str:
        """Write a gate by its identifiers: ``G2 · under_refusal ≤ 0.05``."""
        what = f"{gate['metric']} {'≥' if gate['op'] == '>=' else '≤'} {gate['threshold']:g}"
        return what if gate["gate"] == gate["metric"] else f"{gate['gate']} · {what}"

    def outcome(self, gate: Row) -> Mark:
        """Return what came out of a gate; one that blocks is bad, however it was decided."""
        blocks = bool(gate["blocks"]) and gate["outcome"] != "fail"
        words = self.say(f"sheet.gate_{gate['outcome']}") + self.say("sheet.and_blocks") * blocks
        return Mark("bad" if blocks else GATE_TONES[gate["outcome"]], words)

    # Absence

    def kind_of_gap(self, row: Row) -> str:
        """Say which kind of absence most of a row's samples have."""
        worst = max(("missing", "failed", "not_applicable"), key=lambda kind: int(row[f"n_{kind}"]))
        return self.say(f"column.{worst}")


# What became of the questions: by kind and language, and from the baseline to this run


_FEW, _MOST_KINDS = 5, 12
LABEL_TONES = {"HALLUCINATION": "bad", "OVER_REFUSAL": "watch", "ANS_NO_HIT": "watch"}  # the others are good


def tally(w: Formatter) -> dict[str, int]:
    """Return how often each label occurs; nothing without labels."""
    table = w.sheet.outcomes
    return {} if table is None else {row["label"]: int(row["n"]) for row in records(table) if row["n"]}


def outcomes(w: Formatter) -> Section | None:
    """Return counts of the labels, never weighted; nothing where no answer has a label."""
    found = tally(w)
    if not found:
        return None
    right, n = counted(w, OUTCOME) or (0, 0)
    groups, counts, blocks = dict[str, list[tuple[str, Stack]]](), w.sheet.label_counts, list[Block]()
    for name, rows in () if counts is None else counts.groupby("slice", sort=False):
        if name != w.sheet.scenario.doc:  # the group with most wrong answers first
            stacks = [(str(group), label_stack(w, part)) for group, part in rows.groupby("group", sort=False)]
            groups[str(name)] = sorted(stacks, key=lambda one: (_right(one[1]) / max(one[1].all, 1), one[0]))
    for name, rows in groups.items():
        heads = (name, *w.heads(">outcomes.questions", ">outcomes.right", "section.outcomes"))
        most = [(group, markup.count(stack.all), f"{_right(stack)}", stack) for group, stack in rows[:_MOST_KINDS]]
        blocks.append(Table(heads, tuple(most), cards=True))
    labels = []
    for label in KINDS:
        mark, k = Mark(LABEL_TONES.get(label, "good"), w.say(f"label.{label}")), found.get(label, 0)
        labels.append(((mark, Code(label)), markup.count(k), markup.percent(k / n)))
    blocks.append(Table(w.heads("column.label", ">column.n", ">column.share"), tuple(labels)))
    blocks += _turned(w)
    worst = [(_right(stack) / stack.all, group, stack) for rows in groups.values() for group, stack in rows
             if stack.all >= _FEW]  # fmt: skip
    finding = w.say("sheet.ended_right", n=markup.count(right), all=markup.count(n))
    if right < n and worst and (low := min(worst, key=lambda one: one[0]))[0] < right / n:
        words = {"k": markup.count(low[2].all - _right(low[2])), "n": markup.count(low[2].all)}
        finding = w.say("outcomes.worst", group=low[1], **words)
    badge = w.say("outcomes.wrong", n=markup.count(n - right)) if right < n else ""
    return w.section("outcomes", finding, w.say("outcomes.lead"), blocks, badge)


def log(w: Formatter) -> Section | None:
    """Return what a log without gold says: undeclared refusals, the days, and the questions to label first."""
    found = w.whole.log
    if found is None:
        return None
    blocks: list[Block] = []
    if len(found.patterns):
        rows: list[tuple[object, ...]] = [
            (Code(one_line(pattern, 80)), markup.count(n), one_line(example, 120))
            for pattern, n, example in found.patterns.itertuples(index=False)
        ]
        heads = w.heads("log.pattern", ">column.n", "log.example")
        blocks.append(Table(heads, tuple(rows), w.say("log.patterns")))
    shares, sizes = ["refusal_rate", "failed"], ["latency_median", "latency_p95", "length_median", "length_p95"]
    sizes = sizes if found.daily["latency_median"].notna().any() else sizes[2:]
    rows = [
        (w.say("log.all") if is_missing(row["day"]) else row["day"], markup.count(row["n"]),
         *(markup.percent(row[name]) for name in shares), *(f"{row[name]:.4g}" for name in sizes))
        for row in records(found.daily)
    ]  # fmt: skip
    heads = w.heads("log.day", ">column.n")
    heads += tuple(">" + w.say(f"log.column.{name}") for name in [*shares, *sizes])
    blocks.append(Table(heads, tuple(rows), w.say("log.daily")))
    rows = [
        (one_line(row["question"], 120), w.say(f"log.reasons.{row['reason']}"), markup.percent(row[DRAWN]))
        for row in records(found.to_label.head(_MOST_KINDS))
    ]
    heads = w.heads("column.question", "log.reason", ">log.chance")
    blocks.append(Table(heads, tuple(rows), w.say("log.to_label")))
    blocks.append(Text((w.say("log.next", n=markup.count(len(found.to_label))),), "note"))
    n = int(found.patterns["n"].max()) if len(found.patterns) else 0
    finding = w.say("log.finding" if n else "log.no_finding", n=markup.count(n))
    return w.section("log", finding, w.say("log.lead"), blocks)


def _right(stack: Stack) -> int:
    good = {KINDS[label] for label in RIGHT}
    return sum(n for kind, _, n in stack.parts if kind in good)


def label_stack(w: Formatter, rows: pd.DataFrame) -> Stack:
    """Return the labels of one group, side by side in one order."""
    counts = dict(zip(rows["label"], rows["n"], strict=True))
    parts = tuple((kind, w.say(f"label.{label}"), int(counts.get(label, 0))) for label, kind in KINDS.items())
    return Stack(parts, sum(n for _, _, n in parts))


def _turned(w: Formatter) -> list[Block]:
    """Return the table from the labels of the baseline to those of this run."""
    changed = w.sheet.changed
    if changed is None or changed["before_label"].isna().all():
        return []
    counts = pd.crosstab(changed["before_label"], changed["now_label"])
    labels = [label for label in KINDS if label in counts.index or label in counts.columns]
    counts = counts.reindex(index=labels, columns=labels, fill_value=0)
    heads = (w.say("outcomes.before_now"), *(f">{w.say(f'label.{label}')}" for label in labels), ">Σ")
    rows = [
        (w.say(f"label.{label}"), *(str(n) if n else "·" for n in row), markup.count(sum(row)))
        for label, row in zip(labels, counts.to_numpy().tolist(), strict=True)
    ]
    baseline = records(w.sheet.comparison)[0]["baseline"] if w.sheet.comparison is not None else ""
    return [Table(heads, tuple(rows), caption=w.say("outcomes.from_to", name=baseline))]


# Every metric in one row, and where it is weak: documents by their pull on the overall score, and slices


_MOST_DOCUMENTS, _MOST_GROUPS, _MOST_METRICS = 30, 8, 8
_WIDELY = 0.8  # of the documents: where a metric is low nearly everywhere, its head says so once


def documents(w: Formatter) -> Section | None:
    """Return documents by metrics and the slices; nothing where there is one document and no slice."""
    table, finding = w.sheet.documents, w.say("section.documents")
    blocks: list[Block] = []
    n = 0 if table is None else table["document"].nunique()
    if table is not None and n > 1:
        order, finding = _by_pull(w, table)
        blocks.append(_table(w, table, order[:_MOST_DOCUMENTS]))
    blocks += _slices(w)
    if not blocks:
        return None
    lead = w.say("documents.lead") if n > 1 else ""
    if n > _MOST_DOCUMENTS:
        lead += w.say("documents.rest", n=markup.count(n - _MOST_DOCUMENTS))
    return w.section("documents", finding, lead, blocks, markup.count(n) if n else "")


def _by_pull(w: Formatter, table: pd.DataFrame) -> tuple[list[str], str]:
    """Return the documents, those that pull the overall score down most first, and what that shows."""
    totals = table[table["metric"] == TOTAL]
    if totals["pull"].notna().any():
        rows = totals.sort_values("pull", kind="stable", na_position="last")
        order, pull = rows["document"].tolist(), float(rows["pull"].iloc[0])
        key = "documents.pulls" if pull < 0 else "documents.alike"
        return order, w.say(key, name=one_line(order[0], 60), pull=_signed(pull))
    return sorted(table["document"].unique()), w.say("section.documents")


def _signed(value: float) -> str:
    return ("−" if value < 0 else "+") + markup.number(abs(value))


def _table(w: Formatter, table: pd.DataFrame, order: list[str]) -> Table:
    cells = {(row["document"], row["metric"]): row for row in records(table)}
    there = set(table.loc[table["value"].notna(), "metric"])
    names = [name for name in w.quality or w.rates if name in there][:_MOST_METRICS]
    means = {name: table.loc[table["metric"] == name, "value"].dropna() for name in names}
    low = {name: sum(w.tone(name, value) in ("watch", "bad") for value in some) for name, some in means.items()}
    widely = {name for name in names if low[name] >= _WIDELY * len(means[name])}
    counts = w.sheet.label_counts
    labels = {} if counts is None else dict(list(counts[counts["slice"] == w.sheet.scenario.doc].groupby("group")))
    pulled = TOTAL in there
    heads = [w.say("column.document")] + [f">{w.say('documents.share')}"] * pulled
    heads += [w.say("section.outcomes")] * bool(labels)
    marks = {name: " ↓" * (w.better[name] == "lower") + " ■" * (name in widely) for name in names}
    heads += [f">{w.title(name)}{mark}" for name, mark in marks.items()]
    heads += [f">{w.title(TOTAL)}", f">{w.say('documents.pull')}"] * pulled
    rows = []
    for one in order:
        cell, total = {name: cells[one, name] for name in names}, cells[one, TOTAL]
        row: list[object] = [one_line(one, 80)]
        row += [f"{100 * total['share']:.0f} %" if total["share"] == total["share"] else ""] * pulled
        row += [label_stack(w, labels[one]) if one in labels else ""] * bool(labels)
        row += [_cell(w, name, cell[name], name in widely) for name in names]
        if pulled:
            row += [_cell(w, TOTAL, total, False), "" if pd.isna(total["pull"]) else _signed(float(total["pull"]))]
        rows.append(tuple(row))
    return Table(tuple(heads), tuple(rows))


def _cell(w: Formatter, metric: str, row: Row, plain: bool) -> object:
    """Write a mean; marked where it is below its threshold, unless the head says that nearly all are."""
    if pd.isna(row["value"]):
        return Small(w.kind_of_gap(row))
    tone = "" if plain else w.tone(metric, row["value"])
    text = w.value(metric, row["value"])
    return Mark(tone, text) if tone in ("watch", "bad") else text


def _slices(w: Formatter) -> list[Block]:
    """Return one table a slice: the metrics by its groups, each mean with its interval and n."""
    out: list[Block] = []
    if w.sheet.slices is None:
        return out
    for name, table in w.sheet.slices.fillna({"group": markup.MISSING}).groupby("slice", sort=False):
        cells = {(row["group"], row["metric"]): row for row in records(table)}
        groups = table["group"].unique().tolist()
        there = set(table.loc[table["value"].notna(), "metric"])
        names = [one for one in [*w.total, *w.quality, *w.rates] if one in there]
        shown = groups[:_MOST_GROUPS]
        rows = tuple((w.title(one), *(mean(w, one, cells[group, one]) for group in shown)) for one in names)
        rest = w.say("documents.groups_rest", n=len(groups) - _MOST_GROUPS) if len(groups) > _MOST_GROUPS else ""
        title = w.say("documents.slice", name=name, level=w.level) + rest
        out.append(Table((w.say("column.metric"), *(f">{group}" for group in shown)), rows, folded=title))
    return out


def mean(w: Formatter, metric: str, row: Row) -> tuple[object, ...]:
    """Return a mean with its interval and n below it."""
    if pd.isna(row["value"]):
        return markup.MISSING, Small(w.kind_of_gap(row))
    return w.value(metric, row["value"]), Small(" · ".join(filter(None, [w.ends(metric, row), w.n(row)])))


def metrics(w: Formatter) -> Section | None:
    """Return the metrics with the overall score first, the rates folded below."""
    names = [*w.total, *w.quality]
    heads = w.heads(*(f"measures.{key}" for key in ("metric", "weight", "n", "mean", "scale", "bins")))
    blocks: list[Block] = [Measures(heads, tuple(measure(w, name) for name in names))] if names else []
    alone = w.whole.systems is None and w.sheet.comparison is None
    blocks += filter(None, [radar(w) if alone else None])
    # Without gold most rates say nothing; they are rows only where all do.
    told = [name for name in w.rates if not pd.isna(w.rows[name]["value"])] or w.rates
    rates = tuple(measure(w, name) for name in told)
    folded = w.say("measures.rates", n=len(rates)) if names else ""
    blocks += [Measures(heads, rates, folded)] if rates else []
    if not blocks:
        return None
    finding, low = metrics_finding(w)
    lead = w.say("measures.lead_weighted" if w.sheet.scenario.doc_weights else "measures.lead", level=w.level)
    badge = Mark("bad", w.say("measures.low", n=low)) if low else ""
    return w.section("metrics", finding, lead, blocks, badge)


def measure(w: Formatter, metric: str) -> Measure:
    """Return the row of one metric."""
    row, about = w.rows[metric], w.gloss(metric)
    lower, why = w.say("chart.lower") if w.better[metric] == "lower" else "", w.kind_of_gap(row)
    if metric == TOTAL:
        why = why_no_total(w.sheet.means, lang=w.lang) or w.say("sheet.nothing_to_add")
        bands = ", ".join(f"{name} ≥ {at:g}" for name, at in w.thresholds(TOTAL))
        about = "; ".join(filter(None, [w.say("measures.total"), bands]))
    missing = pd.isna(row["value"])
    return Measure(
        w.title(metric), metric, " ".join(filter(None, [about, lower])),
        "" if pd.isna(row["weight"]) else f"{row['weight']:g}", w.coverage(row),
        w.estimate(metric, row, thresholds=w.thresholds(metric)), histogram(w, metric),
        why if missing else "", "" if missing else w.counted(row),
    )  # fmt: skip


def histogram(w: Formatter, metric: str) -> Histogram | None:
    """Return how the scores of a metric spread over its range; a bar below its threshold is marked."""
    rows = w.sheet.spread[w.sheet.spread["metric"] == metric]
    if not len(rows) or not rows["n"].sum():
        return None
    low, high = int(rows["n_low"].iloc[0]), int(rows["n_high"].iloc[0])
    between = rows["n"].to_list()
    between[0] -= low
    between[-1] -= high
    limit, ends = next((at for _, at in w.thresholds(metric)), None), rows[["bin_low", "bin_high"]].to_numpy()
    higher, limit = w.better[metric] == "higher", np.nan if limit is None else limit
    below = ends[:, 1] <= limit + 1e-9 if higher else ends[:, 0] >= limit - 1e-9
    return Histogram(low, tuple(map(int, between)), high, tuple(below.tolist()))


def metrics_finding(w: Formatter) -> tuple[str, int]:
    """Return the finding and how many metrics are beyond their threshold; conclusive where whole intervals are."""
    scored = [name for name in w.quality or w.rates if not pd.isna(w.rows[name]["value"])]
    judged = [name for name in scored if w.thresholds(name)]
    low = [name for name in judged if w.tone(name, w.rows[name]["value"]) in ("watch", "bad")]
    if not scored:
        return w.say("measures.nothing"), 0
    if not judged:
        return texts.counted(w.say, "measures.no_thresholds", len(scored)), 0
    if not low:
        return w.say("measures.none_low"), 0
    near = {name: w.rows[name]["high" if w.better[name] == "higher" else "low"] for name in low}
    sure = [name for name in low if w.tone(name, near[name]) in ("watch", "bad")]
    if not sure:
        return w.say("measures.maybe", names=w.list(map(w.title, low))), len(low)
    key = "only" if len(sure) == len(low) == 1 and len(judged) > 1 else "one" if len(sure) == 1 else "some"
    finding = w.say(f"measures.{key}", names=w.list(map(w.name, sure)), n=len(sure))
    return finding[:1].upper() + finding[1:], len(low)


def radar(w: Formatter) -> Picture | None:
    """Return the means as a radar; none where it shows nothing that the table does not."""
    values: dict[str, list[Any]]
    changed = w.sheet.comparison
    axes = [name for name in w.axes if not pd.isna(w.rows[name]["value"])]
    if w.whole.systems is not None:
        table = w.whole.systems if w.whole.common is None else w.whole.common
        cells = {(row["system"], row["metric"]): row["value"] for row in records(table)}
        values = {str(one): [cells[one, name] for name in axes] for one in dict.fromkeys(table["system"])}
    elif changed is not None and changed["candidate"].nunique() == 1:
        rows = {row["metric"]: row for row in records(changed) if row["n_common"]}
        axes = [name for name in axes if name in rows]
        names = [changed[role].iloc[0] for role in ("candidate", "baseline")]
        parts = zip(names, ("candidate_mean", "baseline_mean"), strict=True)
        values = {name: [rows[axis][key] for axis in axes] for name, key in parts}
    else:
        axes = [name for name in axes if w.thresholds(name)]
        means = [w.rows[name]["value"] for name in axes]
        values = {w.say("radar.means"): means, w.say("radar.thresholds"): [w.thresholds(n)[0][1] for n in axes]}
    if len(axes) < 3 or len(values) > len(markup.SYSTEM_COLOURS):
        return None
    label = w.say("radar.label", names=w.list(values, most=5))
    return w.radar({w.title(name): name for name in axes}, values, label)


# The verdict: the first screen, what to fix first, the gates, and whether the judge can be trusted


_MOST_STEPS = 5
_LABEL = {"under_refusal": "HALLUCINATION", "over_refusal": "OVER_REFUSAL"}


def fix_first(w: Formatter) -> Section:
    """Return what to fix in order, each with its evidence, what a fix is worth, and where to look."""
    steps, heads = _steps(w), w.heads("fix.problem", "fix.evidence", "fix.gain", "fix.worst")
    blocks: list[Block] = [Steps(heads, tuple(steps[:_MOST_STEPS]))] if steps else []
    if rest := [step.problem for step in steps[_MOST_STEPS:]]:
        blocks.append(Text((w.say("fix.rest", names=w.list(rest)),), "note"))
    blocks += _modes(w)
    measured = any(not pd.isna(row["value"]) and w.thresholds(metric) for metric, row in w.rows.items())
    lead = w.say("fix.lead" if steps else "fix.nothing" if measured or len(w.gates) else "fix.unknown")
    return w.section("fix", w.say("section.fix"), lead, blocks, str(len(steps)) if steps else "")


def _steps(w: Formatter) -> list[Step]:
    own = [row for row in deciding(w.whole.gates) if row["system"] in (None, w.shown)]
    found = {row["metric"]: row for row in records(w.sheet.diagnoses.sort_values("cost", ascending=False))}
    failed = sorted((row for row in own if row["outcome"] == "fail" or row["blocks"]), key=lambda r: r["outcome"])
    rows = [row for row in failed if row["outcome"] != "no_data" and row["metric"] in w.rows]
    steps = [(row["metric"], partial(_of_gate, w, row, found.get(row["metric"]), len(failed))) for row in rows]
    steps += [(metric, partial(_of_finding, w, row)) for metric, row in found.items()]
    # A gate that is still open is worth a row where something is wrong, however often.
    still_open = [row for row in own if row["outcome"] == "undecided" and _wrong(w, row["metric"])]
    still_open.sort(key=lambda row: -_wrong(w, row["metric"]))
    steps += [(gate["metric"], partial(_of_gate, w, gate, None, len(failed))) for gate in still_open]
    first = dict(reversed(steps))
    return [first[metric]() for metric in dict.fromkeys(metric for metric, _ in steps)]


def _of_gate(w: Formatter, gate: Row, finding: Row | None, failed: int) -> Step:
    metric = gate["metric"]
    limit, value = w.limit(metric, gate["threshold"]), w.value(metric, gate["value"])
    evidence = w.say("fix.limit", value=value, limit=limit, n=w.n(gate))
    wrong, (right, n) = _wrong(w, metric), counted(w, OUTCOME) or (0, 0)
    words = {"right": markup.count(right), "then": markup.count(right + wrong), "n": markup.count(n)}
    last = w.say("fix.no_gate" if failed == 1 else "fix.fewer_gates") if gate["outcome"] == "fail" else ""
    gains = [last, w.say("fix.right", **words) if wrong else _gain(w, finding)]
    parts = _parts(w, metric, finding)
    detail = w.say("fix.open", level=w.level, ends=w.ends(metric, gate)) if gate["outcome"] != "fail" else ""
    text = w.say("list.also").join(gain for gain in gains if gain)
    return Step(_problem(w, metric), Mark(w.outcome(gate).tone, evidence), text, _link(w, metric), parts, detail)


def _of_finding(w: Formatter, row: Row) -> Step:
    metric = row["metric"]
    tone = "bad" if row["severity"] == "critical" else "watch"
    rule = next(rule for rule in RULES if rule.name == row["rule"])
    limit, value = w.limit(metric, row["threshold"]), w.value(metric, row["value"])
    evidence = w.say("fix.threshold", value=value, threshold=limit, n=w.n(row))
    problem = _problem(w, metric)
    if rule.also is not None:
        problem = w.say("fix.although", metric=w.title(metric), other=w.name(rule.also.metric))
    words = {"level": w.level, "ends": w.ends(metric, row)}
    detail = w.say("fix.conclusive" if row["certain"] else "fix.not_conclusive", **words) if words["ends"] else ""
    gain, most = _gain(w, row), _reachable(w, metric)
    if most is not None and past(most, row["threshold"], w.better[metric]):  # type: ignore[arg-type]
        detail += w.say("fix.reachable", most=markup.number(most))
        gain = w.say("fix.beyond_reach", most=markup.number(most))
    return Step(problem, Mark(tone, evidence), gain, _link(w, metric), _parts(w, metric, row), detail)


def _problem(w: Formatter, metric: str) -> str:
    known = w.about(metric).get("problem")
    return known or w.say("fix.high" if w.better[metric] == "lower" else "fix.low", metric=w.title(metric))


def _gain(w: Formatter, finding: Row | None) -> str:
    cost = np.nan if finding is None else finding["cost"]
    return "" if pd.isna(cost) or cost <= 0 else w.say("fix.overall", gain=markup.number(cost))


def _wrong(w: Formatter, metric: str) -> int:
    """Return how many answers a rate counts as wrong; 0 where no label says."""
    k, n = counted(w, metric) or (0, 0)
    return n - k if n and COUNTED[metric][0][0] in RIGHT else k


def _parts(w: Formatter, metric: str, finding: Row | None) -> dict[str, tuple[Any, ...]]:
    """Return causes, actions and the worst samples."""
    if finding is not None:
        causes, actions = finding["causes"], finding["actions"]
    else:
        known = next((rule for rule in RULES if rule.metric == metric and rule.also is None), None)
        causes, actions = ([], []) if known is None else rule_texts(known, w.lang)
    done = [(one["text"], Code(one["setting"])) if one["setting"] else one["text"] for one in actions]
    worst = [] if finding is None else finding["worst"]
    samples = [_sample(w, metric, one) for one in worst]
    parts = {"causes": tuple(causes), "actions": tuple(done), "worst": tuple(samples)}
    return {w.say(f"fix.{key}"): lines for key, lines in parts.items() if lines}


def _sample(w: Formatter, metric: str, sample: Row) -> tuple[Any, ...]:
    known = w.metrics[metric]
    score = "" if known is not None and known.kind == "binary" else w.value(metric, sample["score"])
    names = filter(None, (_text(sample, key) for key in ("sample_id", "system", "doc_name")))
    name, *more = [one_line(one, 40) for one in names] or ["?"]
    asked = one_line(_text(sample, "question"), 80)
    link = w.link(sample["sample_id"]) if not markup.is_missing(sample.get("sample_id")) else name
    return link, " · ".join(part for part in (score, *more, asked) if part)


def _link(w: Formatter, metric: str) -> Link | None:
    """Return where the questions stand that this is about, with their number."""
    label, part = _LABEL.get(metric), counted(w, metric)
    if label is not None and part is not None and part[0]:
        return Link(w.say("fix.samples", n=markup.count(part[0])), f"#o={label}")
    n = int(below(w, metric).sum())
    return Link(w.say("fix.samples", n=markup.count(n)), f"#m={metric}") if n and w.thresholds(metric) else None


def below(w: Formatter, metric: str) -> pd.Series:
    """Return which rows of the sheet are beyond the milder threshold of a metric."""
    scores, limits = w.sheet.scores, w.thresholds(metric)
    if metric not in scores or not limits:
        return pd.Series(False, index=scores.index)
    values = pd.to_numeric(scores[metric], errors="coerce")
    better: Any = w.better[metric]
    return pd.Series(past(values, limits[0][1], better), index=scores.index)


def _reachable(w: Formatter, metric: str) -> float | None:
    """Return the highest mean share of relevant passages that the number of retrieved ones allows."""
    scores = w.sheet.scores
    if metric != "context_relevance" or not {"gold_ids", "chunks", metric} <= {*scores}:
        return None
    rows = scores[scores[metric].notna()]
    sizes = [(len(gold), len(got)) for gold, got in zip(rows["gold_ids"], rows["chunks"], strict=True)
             if isinstance(gold, list) and isinstance(got, list) and got]  # fmt: skip
    if len(sizes) != len(rows) or not sizes:
        return None
    return float(np.average([min(1.0, gold / got) for gold, got in sizes], weights=rows["sample_weight"]))


def _modes(w: Formatter) -> list[Block]:
    """Return the failure modes, where metrics tell them."""
    some = w.sheet.modes[w.sheet.modes["n"] > 0]
    names = [name for name in some["failure_mode"] if name != "not_enough_scores"]
    if not names or not any(name in w.rules for name in w.quality):
        return []
    rows = []
    for row in records(some):
        mark = "good" if row["failure_mode"] == "fine" else "bad" if row["costliest"] else "watch"
        mark = "none" if row["failure_mode"] == "not_enough_scores" else mark
        ends = markup.ends(row["low"], row["high"], percent=True)
        share = markup.percent(row["share"]) + (f" ({ends})" if ends else "")
        name = w.say(f"mode.{row['failure_mode']}")
        rows.append((Mark(mark, name), markup.count(row["n"]), share, markup.number(row["cost"])))
    costliest = next(iter(some.loc[some["costliest"], "failure_mode"]), None)
    title = w.say("fix.modes") if costliest is None else w.say("fix.modes_most", mode=w.say(f"mode.{costliest}"))
    return [Table(w.heads("column.mode", ">column.n", ">column.share", ">column.cost"), tuple(rows), folded=title)]


# Notes without which the numbers would be believed too much.
_CAUTIONS = (
    "stopped_early", "not_compared", "judge_changed", "questions_changed", "many_failed", "stage_unused",
    "stage_streamed", "bad_lines", "no_common_questions", "different_questions", "no_total", "streamed",
)  # fmt: skip
# Which labels a rate counts, and of which: all of them raw, so that a sentence can say "6 of 18".
COUNTED = {
    "under_refusal": (("HALLUCINATION",), ("HALLUCINATION", "REFUSAL_OK")),
    "over_refusal": (("OVER_REFUSAL",), ("OVER_REFUSAL", "OK", "ANS_NO_HIT")),
    "citation_hit_rate": (("OK",), ("OVER_REFUSAL", "OK", "ANS_NO_HIT")),
    "answer_precision": (("OK",), ("OK", "ANS_NO_HIT", "HALLUCINATION")),
    "correct_outcome": (RIGHT, tuple(KINDS)),
}
_GROUPS = {"answerable": ("OK", "ANS_NO_HIT", "OVER_REFUSAL"), "unanswerable": ("REFUSAL_OK", "HALLUCINATION")}


def summary(w: Formatter) -> Section:
    """Return the verdict, what to know before believing it, and the outcome bar."""
    notes = w.whole.notes
    cautions = notes.loc[notes["code"].isin(_CAUTIONS), "text"].tolist()
    gates = deciding(w.whole.gates)
    tone, status, title, lead = _words(w, gates)
    score, name, lines = _score(w)
    said, marks = Mark(tone, w.say(f"status.{status}")), by_outcome(w, gates)
    blocks: list[Block] = [Verdict(said, title, lead, marks, w.say("sheet.gates_count"), score, name, lines)]
    blocks += [Text(tuple(cautions), "caution")] if cautions else []
    blocks += [_by_system(w)] if w.shown is not None else []
    blocks += [_bar(w)] if tally(w) else []
    return w.section("summary", "", blocks=blocks)


def chance(p: float) -> str:
    """Write a probability as a percentage; one that would be written as none is said to be small."""
    return "< 0.1 %" if p < 0.001 else markup.percent(p)


def counted(w: Formatter, metric: str) -> tuple[int, int] | None:
    """Return how many answers a rate counts, and of how many; None where no label says."""
    found, part = tally(w), COUNTED.get(metric)
    if part is None or not (n := sum(found.get(label, 0) for label in part[1])):
        return None
    return sum(found.get(label, 0) for label in part[0]), n


def deciding(gates: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the gates that decide: not those of the input, of advice, and of others than the candidate."""
    return records(gates[(gates["reason"] == "") & (gates["role"] != "completeness")])


def by_outcome(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[Mark, ...]:
    """Return how many gates came out which way, the worst first."""
    counts = {outcome: sum(row["outcome"] == outcome for row in gates) for outcome in GATE_TONES}
    return tuple(Mark(GATE_TONES[key], f"{n} {w.say(f'sheet.gate_{key}')}") for key, n in counts.items() if n)


def sentence(w: Formatter) -> str:
    """Return the verdict as text: status, reason, overall score with its n; of several systems each its own."""
    _, status, title, lead = _words(w, deciding(w.whole.gates))
    several = () if w.shown is None else _of_systems(w).items()
    scores = [f"{name}: {_said(w, rows)}" for name, rows in several] or [_said(w, w.rows)]
    words = {"status": w.say(f"status.{status}"), "title": title, "lead": lead, "score": w.list(scores, most=6)}
    return " ".join(w.say("headline.sentence", **words).split())


def _of_systems(w: Formatter) -> dict[str, dict[str, Row]]:
    """Return the means of each system by metric."""
    parts = w.whole.systems.groupby("system", sort=False)
    return {name: {row["metric"]: row for row in records(part)} for name, part in parts}


def _said(w: Formatter, rows: dict[str, Row]) -> str:
    """Write the overall score, else the share of answers that ended right."""
    metric = _headline(rows)
    if metric is None:
        return w.say("headline.no_score")
    row = rows[metric]
    low, high = (f"{row[end]:g}" for end in ("range_low", "range_high"))
    scale = "" if (low, high) == ("0", "1") else w.say("headline.scale", low=low, high=high)
    return f"{w.title(metric)} {w.interval(metric, row)}{scale}, {w.counted(row)}"


def _headline(rows: dict[str, Row]) -> str | None:
    return next((m for m in (TOTAL, OUTCOME) if m in rows and not pd.isna(rows[m]["value"])), None)


def _words(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[str, str, str, str]:
    """Return the tone, the status, the sentence and its reason."""
    of_input = w.whole.gates[w.whole.gates["role"] == "completeness"]
    if lost := [input_words(row, w.lang) for row in records(of_input[of_input["blocks"]])]:
        return "bad", "incomplete", w.list(lost) + w.say("headline.end"), w.say("headline.incomplete")
    blocking = sorted((row for row in gates if row["blocks"]), key=lambda row: row["outcome"] != "fail")
    if not gates:
        return "none", "no_gates" if w.whole.log is None else "log", *_without_gates(w)
    if blocking:
        systems = list(dict.fromkeys(row["system"] for row in blocking if row["system"] is not None))
        if len({row["system"] for row in gates}) > 1:
            words = {"n": len(systems), "all": len({row["system"] for row in gates}), "names": w.list(systems)}
            return "bad", "failed", w.say("headline.systems", **words), w.say("headline.shown", name=w.shown)
        return "bad", "failed", *blocked(w, blocking[0])
    open_ = [row for row in gates if row["outcome"] == "undecided"]
    if open_:
        return "watch", "undecided", *_undecided(w, open_, len(gates))
    if all(row["outcome"] == "no_data" for row in gates):
        return "none", "no_data", w.say("headline.no_data"), w.say("headline.no_data_why")
    passed = [row for row in gates if row["outcome"] == "pass"]
    nearest = max(passed, key=lambda row: -1.0 if pd.isna(row["p_flip"]) else row["p_flip"])
    key = "passed" if len(passed) == len(gates) else "passed_some"
    title = texts.counted(w.say, f"headline.{key}", len(passed), all=len(gates))
    lead = w.say("headline.nearest", asks=w.requirement(nearest), value=w.interval(nearest["metric"], nearest))
    if not pd.isna(nearest["p_flip"]):
        lead += w.say("headline.flip", p=chance(nearest["p_flip"]))
    return "good", "passed", title, lead


def blocked(w: Formatter, gate: Row) -> tuple[str, str]:
    """Return which gate blocks and why in two sentences, never stronger than its interval."""
    metric, above = gate["metric"], gate["op"] == "<="
    limit, value = w.limit(metric, gate["threshold"]), w.value(metric, gate["value"])
    side = w.say("headline.above" if above else "headline.below")
    sentence, part = w.about(metric).get("headline"), counted(w, metric) if w.shown == gate["system"] else None
    if gate["outcome"] == "no_data":
        return w.say("headline.no_value", asks=w.requirement(gate)), w.say("headline.no_value_why")
    if sentence and part and gate["role"] == "rate" and DRAWN not in w.sheet.scores:  # a weighted rate is no count
        title = sentence.format(k=markup.count(part[0]), n=markup.count(part[1]))
        key = "headline.weighted" if w.sheet.scenario.doc_weights else "headline.rate"
        lead = w.say(key, value=value, limit=limit)
    elif gate["outcome"] == "fail":
        title = w.say("headline.metric", metric=w.title(metric), value=value, side=side, limit=limit)
        lead = w.say("headline.asks", asks=w.requirement(gate))
    else:
        title = w.say("headline.open", asks=w.requirement(gate))
        lead = w.say("headline.seen", value=value)
    ends = w.ends(metric, gate)
    if not ends:
        return title, lead + w.say("headline.no_interval")
    conclusive = gate["outcome"] == "fail"
    near, words = gate["low"] if above else gate["high"], {"ends": ends, "side": side, "level": w.level}
    if conclusive and above and gate["threshold"] > 0 and near / gate["threshold"] >= 2:
        return title, lead + w.say("headline.times", times=f"{10 * near / gate['threshold'] // 1 / 10:g}", **words)
    return title, lead + w.say("headline.conclusive" if conclusive else "headline.inconclusive", **words)


def _undecided(w: Formatter, gates: list[dict[Any, Any]], n: int) -> tuple[str, str]:
    needed = [row for row in gates if not pd.isna(row["more_needed"])]
    title = w.say("headline.undecided", n=len(gates), all=n)
    if not needed:
        return title, w.say("headline.too_close")
    most = max(needed, key=lambda row: row["more_needed"])
    return title, w.say("headline.more", n=markup.count(most["more_needed"]), asks=w.requirement(most))


def _without_gates(w: Formatter) -> tuple[str, str]:
    """Return what the metrics, or the log, say where no gate decides."""
    if any(not pd.isna(w.rows[name]["value"]) for name in w.quality):
        finding = metrics_finding(w)[0] + w.say("headline.end")
        if w.shown is None:
            return finding, w.say("headline.no_gates")
        return f"{w.shown}: {finding}", w.say("headline.no_gates") + w.say("headline.shown", name=w.shown)
    rates = [name for name in w.rates if not pd.isna(w.rows[name]["value"])]
    if not rates:
        return w.say("measures.nothing") + w.say("headline.end"), w.say("headline.nothing_why")
    names = w.list(f"{w.name(name)} {w.value(name, w.rows[name]['value'])}" for name in rates)
    key = "headline.no_gates" if tally(w) else "headline.no_gold"
    return w.say("headline.log", n=markup.count(w.sheet.rows), rates=names), w.say(key)


def _score(w: Formatter) -> tuple[Estimate | None, str, tuple[Any, ...]]:
    """Return the overall score, else the share of answers that ended right; none where neither is there."""
    if (metric := _headline(w.rows)) is None:
        return None, "", ()
    row, notes = w.rows[metric], list[Any]()
    if ends := w.ends(metric, row):
        notes.append(w.say("sheet.ci", level=w.level, ends=ends))
    notes.append(w.counted(row))
    changed, before = w.sheet.comparison, None
    rows = [] if changed is None else records(changed[changed["metric"] == metric])
    if len(rows) == 1 and rows[0]["n_common"]:
        before = float(rows[0]["baseline_mean"])
        mark, than = outcome_mark(rows[0], w.say), Small(w.say("compared.than", name=rows[0]["baseline"]))
        notes.append((replace(mark, text=f"{mark.text} {difference(rows[0], w.say)}"), than))
    estimate = w.estimate(metric, row, before=before)
    name = w.title(metric) if w.shown is None else f"{w.title(metric)} · {markup.one_line(w.shown, 40)}"
    return replace(estimate, interval="", tone=""), name, tuple(notes)


def _by_system(w: Formatter) -> Table:
    """Return one verdict a system; systems are never pooled."""
    means, gates, rows, of_systems = w.whole.systems, w.whole.gates, [], _of_systems(w)
    totals = means[means["metric"] == TOTAL].sort_values("value", ascending=False, kind="stable")
    for name in totals["system"]:
        own = gates[(gates["system"] == name) & (gates["role"] != "completeness")]
        own = own[own["reason"] != "advisory"]
        marks = by_outcome(w, records(own))
        first = next(iter(records(own[own["blocks"]].sort_values("outcome", key=lambda x: x != "fail"))), None)
        reason = "" if first is None else w.requirement({**first, "system": None})
        seen = "" if first is None else w.interval(first["metric"], first)
        metric = _headline(of_systems[name]) or TOTAL
        score = w.interval(metric, of_systems[name][metric])
        rows.append((name, marks or w.say("status.no_gates"), (reason, Small(seen)), score))
    heads = (*w.heads("column.system", "section.gates", "sheet.blocked_by"), f">{w.title(TOTAL)}")
    return Table(heads, tuple(rows), cards=True)


def _bar(w: Formatter) -> Bar:
    """Return how the answers ended, right and wrong, in one bar."""
    found, groups, (right, n) = tally(w), [], counted(w, OUTCOME) or (0, 0)
    for name, labels in _GROUPS.items():
        parts = tuple((KINDS[one], w.say(f"label.{one}"), found[one]) for one in labels if found.get(one))
        groups += [(w.say(f"sheet.{name}"), parts)] if parts else []
    title = w.say("sheet.ended_right", n=markup.count(right), all=markup.count(n))
    return Bar(title + w.say("headline.end"), w.say("sheet.bar_note"), tuple(groups))


def gates(w: Formatter) -> Section | None:
    """Return every gate; nothing where there is none."""
    rows = records(w.gates)
    if not rows:
        return None
    counted = deciding(w.whole.gates)
    marks = by_outcome(w, counted)
    table = Table(_heads(w), tuple(_row(w, row) for row in sorted(rows, key=_urgency)), cards=True)
    lead = w.say("gates.lead", level=w.level)
    return w.section("gates", _finding(w, counted), lead, (table,), marks[0] if marks else "")


def cases(w: Formatter) -> list[tuple[str, str, str, str]]:
    """Return every gate as a case of `ragnb.diagnostics.junit`, with the words of its row in the table."""
    heads, out = [head.removeprefix(">") for head in _heads(w)], []
    for gate in records(w.whole.gates):
        skipped = gate["outcome"] in ("no_data", "undecided") and gate["reason"] == ""
        kind = "failure" if gate["blocks"] else "skipped" if skipped else "system-out"
        system = "" if gate["system"] is None else f" ({gate['system']})"
        title = f"{gate['gate']}{system}: {gate['metric']} {gate['op']} {gate['threshold']:g}"
        *told, _, flip, more = (cell(one, markup.one_line) for one in _row(w, gate))
        told += [f"{head}: {text}" for head, text in zip(heads[4:], (flip, more), strict=True) if text != MISSING]
        words = w.say("list.also").join(text for text in told if text != MISSING)
        out.append((title, kind, gate["outcome"], words))
    return out


def _heads(w: Formatter) -> tuple[str, ...]:
    return w.heads("gates.asks", "gates.outcome", ">gates.seen", "gates.limit", ">gates.flip", ">gates.more")


def _urgency(row: Row) -> tuple[int, int, float]:
    """Order gates by outcome, the advisory ones last; within one the least firm first."""
    firm = -float(row["p_flip"] or 0) if row["p_flip"] == row["p_flip"] else 0.0
    return int(row["reason"] != ""), 0 if row["blocks"] else [*GATE_TONES].index(row["outcome"]), firm


def _finding(w: Formatter, rows: list[dict[str, object]]) -> str:
    n = {key: sum(row["outcome"] == key for row in rows) for key in GATE_TONES}
    if not rows:
        return w.say("gates.advisory_only")
    key = "open" if n["undecided"] else "passed" if n["pass"] else "no_data"
    key = ("failed_open" if n["undecided"] else "failed") if n["fail"] else key
    return w.say(f"gates.finding_{key}", fail=n["fail"], open=n["undecided"], n=len(rows))


def _row(w: Formatter, gate: Row) -> tuple[object, ...]:
    metric, outcome = gate["metric"], w.outcome(gate)
    key = {"advisory": "gates.advisory", "not the candidate": "gates.other_system"}.get(gate["reason"])
    kind = [Small(w.say(key))] if key else []
    if gate["role"] == "completeness":
        return (w.requirement(gate), (outcome, *kind), input_words(gate, w.lang), "", "", "")
    seen: tuple[object, ...] = ("",)
    if not pd.isna(gate["value"]):
        words = ", ".join(filter(None, [w.ends(metric, gate), w.n(gate)]))
        seen = (w.value(metric, gate["value"]), Small(words))
    flip = "" if pd.isna(gate["p_flip"]) else chance(gate["p_flip"])
    asks = (w.requirement(gate), Code(w.code(gate)))
    return asks, (outcome, *kind), seen, (_drawn(w, gate), Small(_distance(w, gate))), flip, _more(w, gate)


def _drawn(w: Formatter, gate: Row) -> Estimate | str:
    metric, at = gate["metric"], float(gate["threshold"])
    span = w.span(metric) if metric in w.ranges and gate["role"] != "difference" else None
    if pd.isna(gate["value"]) or span is None:
        return ""
    shaded = (at, span[1]) if gate["op"] == ">=" else (span[0], at)
    return w.estimate(metric, gate, thresholds=((w.limit(metric, at), at),), shaded=shaded)


def _distance(w: Formatter, gate: Row) -> str:
    """Say by how much the value meets or misses the limit."""
    if pd.isna(gate["value"]):
        return ""
    gap = (gate["value"] - gate["threshold"]) * (1 if gate["op"] == ">=" else -1)
    points = w.is_share(gate["metric"])
    by = w.say("gates.points", n=f"{abs(100 * gap):.1f}") if points else markup.number(abs(gap))
    return w.say("gates.meets" if gap >= 0 else "gates.misses", by=by)


def _more(w: Formatter, gate: Row) -> str | Mark:
    """Say how many more questions would decide a gate; a number beyond reach is said as such."""
    if gate["outcome"] != "undecided" or pd.isna(gate["low"]):
        return ""
    if pd.isna(gate["more_needed"]):
        return w.say("gates.more_documents" if if_documents_fail(gate) else "gates.too_close")
    return w.say("gates.about", n=markup.count(gate["more_needed"]))


def judge(w: Formatter) -> Section | None:
    """Return the verdict of the calibration; without human labels, that nobody can say."""
    card = w.sheet.calibration
    if card is None:
        if not w.quality:
            return None
        known = [METRICS[name].family for name in w.quality if name in METRICS]
        lexical = len(known) == len(w.quality) and set(known) == {"wording"}
        finding = w.say("judge_trust.no_judge" if lexical else "judge_trust.unvalidated")
        text = () if lexical else (Text((w.say("judge_trust.unvalidated_why"),)),)
        return w.section("judge", finding, "", text, w.say("judge_trust.no_labels"))
    first, *rest = card.reasons
    rows = records(card.verdicts)
    heads = w.heads("judge_trust.dimension", "judge_trust.verdict", ">judge_trust.within", "measures.scale",
                    ">judge_trust.bias", ">judge_trust.n")  # fmt: skip
    table = Table(heads, tuple(_judged_row(w, row) for row in rows), cards=True)
    blocks: list[Block] = [Text(tuple(rest), "list"), table] if rest else [table]
    if len(rows) > 1:
        why = tuple((f"{row_name(row)}: {row['verdict']}", Small(" ".join(row["reasons"]))) for row in rows)
        blocks.append(Text(why, "list"))
    bands = [(part.name, block) for part in parts(card) if part.key == "bands" for block in part.blocks]
    blocks += [replace(block, folded=name) for name, block in bands if isinstance(block, Table)]
    blocks.append(Text((w.say("judge_trust.rest"),), "note"))
    mark = Mark(TONES[card.verdict], card.verdict)
    return w.section("judge", first, w.say("judge_trust.lead"), blocks, mark)


def _judged_row(w: Formatter, row: Row) -> tuple[Any, ...]:
    card = w.sheet.calibration
    value, low, high = (float(row[key]) for key in ("share", "low", "high"))
    ends = markup.ends(low, high, percent=True)
    target = ((w.say("judge_trust.target"), card.target),)
    drawn = Estimate(markup.percent(value), ends, value, low, high, (0, 1), target, text=row_name(row))
    bias = markup.number(row["bias"])
    beside = f"{markup.number(row['bias_low'])} … {markup.number(row['bias_high'])}"
    mark = Mark(TONES[row["verdict"]], ", ".join([row["verdict"], *row["sides"]]))
    off = (bias, Small("" if pd.isna(row["bias_low"]) else beside))
    return row_name(row), mark, (markup.percent(value), Small(ends)), drawn, off, str(row["n"])


def calibrated(
    scenario: Scenario, ratings: pd.DataFrame | None, *, judge: Sequence[str] = (), scale: Any = None, **asked: Any
) -> CalibrationCard | None:
    """Return the card of a run's ratings; by default on the scale of the metrics that their dimensions are."""
    if ratings is None:
        return None
    judges = judge_columns(ratings, judge)
    if not judges:
        raise RagnbError(
            f"ratings: {scenario.ratings} holds no scores of a judge (columns: {listing(ratings.columns)}); "
            "join them first, and name what ragnb.read_ratings(…, judged=…) gives"
        )
    names: list[str] = ratings["dimension"].unique().tolist() if "dimension" in ratings else []
    known = [scenario.declared.get(name) or METRICS.get(name) for name in names]
    ranges = {(metric.low, metric.high) if metric else None for metric in known}
    scale = scale or (ranges.pop() if len(ranges) == 1 else None)
    cluster = scenario.cluster if scenario.cluster in ratings else "cluster"
    how: dict[str, Any] = {name: getattr(scenario, name) for name in ("labels_planned", "level", "lang")}
    return calibrate(ratings, judge=judges, scale=scale, cluster=cluster, **how, **asked)


def row_name(row: Mapping[Any, Any]) -> str:
    """Return what a row of the verdicts is called; a judge that is only called ``judge`` needs no name."""
    names = [row["judge"]] * (row["judge"] != "judge") + [row["dimension"]] * (row["dimension"] != "all")
    return " · ".join(map(str, names)) or str(row["judge"])


# Is it better than before: paired differences with their intervals; and systems side by side


_MOST_LINKS = 20


def comparison(w: Formatter) -> Section | None:
    """Return how the run differs from its baseline, and several systems side by side; nothing without either."""
    table = w.whole.comparison
    rows = [] if table is None else records(table := table[table["n_common"] > 0])
    if not rows and w.whole.systems is None:
        return None
    blocks: list[Block] = [difference_table(table, w.lang, name=w.title)] if rows else []
    blocks += [*_systems(w), *filter(None, [radar(w)]), *_changed(w)]
    if not rows:
        finding = w.say("compared.systems", n=w.whole.systems["system"].nunique())
        return w.section("comparison", finding, w.say("compared.systems_lead", level=w.level), blocks)
    first, *more = [row for row in rows if row["primary"]] or rows
    words = {"name": first["baseline"], "metric": w.name(first["metric"]), "value": difference(first, w.say)}
    finding = w.say(f"compared.finding_{first['outcome']}", **words)
    badge = outcome_mark(first, w.say) if first["primary"] or not more else ""
    return w.section("comparison", finding, w.say("compared.lead", level=w.level), blocks, badge)


def _systems(w: Formatter) -> list[Block]:
    """Return the means of all systems, on common questions first where they answered different ones."""
    if w.whole.systems is None:
        return []
    names: list[str] = [*w.total, *w.quality, *w.rates]
    out: list[Block] = []
    n = markup.count(w.whole.common_questions)
    tables = {"common": w.whole.common, "all": w.whole.systems}
    for key, table in ((key, table) for key, table in tables.items() if table is not None):
        first = table[table["metric"] == names[0]].sort_values("value", ascending=False, kind="stable")
        cells = {(row["system"], row["metric"]): row for row in records(table)}
        rows = tuple((one, *(mean(w, name, cells[one, name]) for name in names)) for one in first["system"])
        heads = (w.say("column.system"), *(f">{w.title(name)}" for name in names))
        out.append(Table(heads, rows, caption=w.say(f"compared.{key}_caption", n=n, level=w.level)))
    return out


def _changed(w: Formatter) -> list[Block]:
    """Return the questions that were fixed and broken."""
    changed, out = w.whole.changed, []
    for key in ("fixed", "broken") if changed is not None else ():
        names = changed.loc[changed["change"] == key, "sample_id"].tolist()
        if names:
            links = tuple(w.link(name) for name in names[:_MOST_LINKS])
            rest = (Small(f"+{len(names) - _MOST_LINKS}"),) if len(names) > _MOST_LINKS else ()
            mark = Mark("good" if key == "fixed" else "bad", w.say(f"compared.n_{key}", n=len(names)))
            out.append((mark, *links, *rest))
    return [Text(tuple(out), "changed")] if out else []


# How the run was made, what to keep in mind, and the terms of the page


# What the gates and the judge's section say already.
_ELSEWHERE = ("more_needed", "no_ratings", "default_gates")


def details(w: Formatter) -> Section:
    """Return the settings and weights, the files, where the rows went, and the notes."""
    own = [f"{w.title(name)} {row['weight']:g}" for name, row in w.rows.items() if not pd.isna(row["weight"])]
    docs = [f"{name} {weight:g}" for name, weight in w.sheet.scenario.doc_weights.items()]
    weights = {"metric_weights": own, "doc_weights": [*docs, w.say("details.others")] if docs else []}
    rows = [*_settings(w), *((key, ", ".join(pairs)) for key, pairs in weights.items() if pairs)]
    names = texts.entry(w.lang, "setting")
    notes = w.whole.notes.loc[~w.whole.notes["code"].isin(_ELSEWHERE), "text"]
    blocks: list[Block] = [Text(tuple(notes), "list")] if len(notes) else []
    named = tuple((names.get(key, key), value) for key, value in rows)
    blocks += [Table(w.heads("column.setting", "column.used"), named, folded=w.say("details.settings"))]
    files = tuple((w.say(f"role.{one['role']}"), one["path"], markup.count(one["rows"]), Code(str(one["sha256"])))
                  for one in w.whole.inputs)  # fmt: skip
    heads = (*w.heads("column.role", "column.file", ">column.rows"), "SHA-256")
    blocks += [Table(heads, files, folded=w.say("details.inputs"))] if files else []
    ledger = tuple((row["step"], markup.count(row["rows"])) for row in records(w.whole.ledger))
    steps = Table(w.heads("column.step", ">column.rows"), ledger, folded=w.say("details.ledger"))
    blocks += [steps, Text((w.say("details.rest"),), "note")]
    n = len(w.whole.inputs)
    finding = w.say("details.from_files" if n > 1 else "details.from_file" if n else "details.from_frame", n=n)
    lead = w.say("details.lead") if len(notes) else ""
    return w.section("run", finding, lead, blocks)


def _settings(w: Formatter) -> list[tuple[str, str]]:
    """Return what was set, as pairs of names and values; file names without their folders."""
    s = w.sheet.scenario
    rows = [("name", s.name), ("file", s.path.name if s.path else ""), ("level", w.level), ("doc", s.doc)]
    rows += [("cluster", s.cluster or ""), ("where", ", ".join(f"{k} = {v}" for k, v in s.where.items()))]
    rows += [("corpus", s.corpus if s.corpus != "sample" else "")]
    if (r := s.rubric) is not None:
        rows.append(("rubric", f"{r.low:g}–{r.high:g}, {r.passing.metric} ≥ {r.passing.threshold:g}"))
    yes = {True: w.say("column.yes"), False: w.say("column.no")}
    rows += [("orient", yes[s.orient]), ("rescale", yes[s.rescale]), ("no_data", s.no_data)]
    if w.sheet.outcomes is not None:
        rows += [(key, " | ".join(getattr(s, key))) for key in ("refusal", "patterns", "partial")]
        rows += [(key, getattr(s, key)) for key in ("split", "containment", "join")]
    rows.append(("ragnb", metadata.version("ragnb")))
    return [(name, str(value)) for name, value in rows if value]


def glossary(w: Formatter) -> Section:
    """Return one sentence for each term of the page, and for each metric of this run."""
    skipped = {"documents", "clusters", "questions"} - {f"{w.unit}s"}
    skipped |= set() if len(w.gates) else {"gate", "inconclusive", "flip"}
    skipped |= set() if w.whole.comparison is not None else {"holm", "same"}
    skipped |= set() if w.sheet.outcomes is not None else {"refusal", "right_citation"}
    terms = [(term["word"].format(level=w.level), key, term["text"].format(level=w.level))
             for key, term in texts.entry(w.lang, "glossary").items() if key not in skipped]  # fmt: skip
    # The site is wherever it was built or put; the page itself refers to nothing outside unless it is told where.
    if site := os.environ.get("RAGNB_DOCS", ""):
        site = (Path(site).resolve().as_uri() if Path(site).is_dir() else site).rstrip("/")
    for name in (name for name in w.rows if name != TOTAL and w.gloss(name)):
        more = Link(w.say("sheet.catalogue"), f"{site}/{w.lang}/generated/catalogue/metrics.html#metric-{name}")
        terms.append((w.title(name), name, (w.gloss(name), *([more] if site else []))))
    return w.section("glossary", w.say("section.glossary"), blocks=(Text(tuple(terms), "terms"),))


# Every question of a run, those that ended badly first, with its answer, passages and what its scores lack


MOST_WHOLE, MOST_LISTED = 1000, 10_000
_TEXT_BYTES = 1_000_000  # of all texts of the page, each passage once, so that it opens at once
_MOST_PASSAGES, _MOST_FILTER, _MOST_SCORES = 10, 200, 3


def questions(w: Formatter) -> Section | None:
    """Return the questions; nothing where no row is known."""
    scores = worst_first(w)
    if not len(scores):
        return None
    whole, listed = scores.head(MOST_WHOLE), scores.iloc[MOST_WHOLE:MOST_LISTED]
    made = _Rows(w, whole)
    rows = tuple(made.sample(row, at) for row, at in zip(records(whole), whole.index, strict=True))
    rest = tuple((made.plain(row), made.filters(row, at))
                 for row, at in zip(records(listed), listed.index, strict=True))  # fmt: skip
    n, every = len(whole), w.sheet.rows
    known = texts.entry(w.lang, "questions")
    say = {key: known[key] for key in ("shown", "search", "any", "more", "filters", "passages", "link", "again")}
    key = "streamed" if w.sheet.streamed else "all" if n == every else "most"
    say["standing"] = w.say(f"questions.standing_{key}", n=markup.count(n), all=markup.count(every))
    wrong = sum(row.filters["w"] == "1" for row in rows) + sum(filters["w"] == "1" for _, filters in rest)
    block = Samples(made.heads, rows, made.chips([*(row.filters for row in rows), *(f for _, f in rest)]),
                    made.choices(), say, every, rest)  # fmt: skip
    labelled = "label" in scores and scores["label"].notna().any()
    count = markup.count(every)
    finding = w.say("questions.wrong" if labelled else "questions.lowest", n=markup.count(wrong), all=count)
    return w.section("questions", finding, w.say("questions.lead"), (block,), count)


def worst_first(w: Formatter) -> pd.DataFrame:
    """Return the rows ordered by label, then by weighted score; those without either come last."""
    scores = w.sheet.scores
    label = scores.reindex(columns=["label"])["label"].map({name: i for i, name in enumerate(BAD_FIRST)})
    order = np.lexsort((scores[TOTAL].round(DIGITS).fillna(np.inf), label.fillna(9.0)))
    return pd.DataFrame(scores.iloc[order])


class _Rows:
    """Turn rows into samples; each passage is written once and numbered."""

    def __init__(self, w: Formatter, scores: pd.DataFrame) -> None:
        self.w, self.doc, self.scores = w, w.sheet.scenario.doc, scores
        self.metrics = [name for name in w.quality if name in scores]
        self.below = {name: below(w, name) for name in [*w.quality, *w.rates] if name in scores}
        self.texts = [name for name in ("answer", "ground_truth_answer") if name in scores]
        self.keys: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        known = {} if w.sheet.changed is None else w.sheet.changed.set_index("sample_id").to_dict()
        self.changed, self.before = known.get("change", {}), known.get("before_label", {})
        self.several = w.whole.systems is not None
        self.labelled = "label" in scores and bool(scores["label"].notna().any())
        self.documents = self.doc in scores
        self.shown = self.metrics[:_MOST_SCORES]
        heads = [w.say("column.sample_id"), w.say("column.question")]
        heads += [w.say("column.system")] * self.several + [w.say("column.document")] * self.documents
        heads += [w.say("column.label")] * self.labelled + [f">{w.title(name)}" for name in self.shown]
        self.heads = (*heads, *[f">{w.title(TOTAL)}"] * bool(w.total))
        passages = scores.get("retrieved_contexts", pd.Series(dtype=object)).dropna()
        every = [str(one) for name in self.texts for one in scores[name].dropna()]
        every += {str(one) for cell in passages for one in _list(cell)}
        self.most = longest([len(text.encode("utf-8", "replace")) for text in every], _TEXT_BYTES)

    def key(self, row: Row) -> str:
        """Return what a link to the row names: its id, counted where it comes again."""
        name = key = key_of(row.get("sample_id", row.get("question", "")))
        while anchor(key) in self.keys:  # ids that differ in white space alone would have one place
            self.keys[anchor(name)] += 1
            key = f"{name}~{self.keys[anchor(name)]}"
        self.keys[anchor(key)] = 1
        return key

    def cells(self, row: Row, name: str) -> tuple[Any, ...]:
        label = _text(row, "label")
        cells: list[Any] = [name, one_line(_text(row, "question"), 160)]
        cells += [one_line(_text(row, "system"), 40)] * self.several
        cells += [one_line(_text(row, self.doc), 60)] * self.documents
        if self.labelled:
            cells.append(Mark(LABEL_TONES.get(label, "good"), self.w.say(f"label.{label}")) if label else "")
        names = [*self.shown, *self.w.total]
        return (*cells, *(self.w.value(one, row[one]) if not is_missing(row.get(one)) else "" for one in names))

    def plain(self, row: Row) -> tuple[str, ...]:
        """Return the cells of a row that only the script lists."""
        return tuple(cell.text if isinstance(cell, Mark) else cell or markup.MISSING
                     for cell in self.cells(row, self.key(row)))  # fmt: skip

    def filters(self, row: Row, at: Any) -> dict[str, str]:
        """Return what the filters look at."""
        label = _text(row, "label")
        low = [name for name in self.below if bool(self.below[name].get(at, False))]
        known = str(row.get("sample_id", row.get("question", "")))
        wrong = label not in RIGHT if label else bool(low)
        found = {"w": "1" if wrong else "0", "o": label, "d": _text(row, self.doc), "m": "\n".join(low)}
        return found | ({"c": self.changed[known]} if known in self.changed else {})

    def sample(self, row: Row, at: Any) -> Sample:
        """Return a row whole."""
        key = self.key(row)
        passages = [str(one) for one in _list(row.get("retrieved_contexts"))]
        ids = [str(one.get("id", "")) if isinstance(one, dict) else "" for one in _list(row.get("chunks"))]
        cited = {str(one) for one in _list(row.get("citations"))}
        parts = [(name, row[name]) for name in self.texts if not is_missing(row[name])]
        texts = [(self.w.say(f"column.{name}"), matched(cut(value, self.most), passages) if name == "answer"
                  else cut(value, self.most)) for name, value in parts]  # fmt: skip
        known = str(row.get("sample_id", row.get("question", "")))
        if before := _text(self.before, known):
            texts.append((self.w.say("questions.before"), self.w.say(f"label.{before}")))
        shown = []
        for place, text in enumerate(passages[:_MOST_PASSAGES]):
            name = ids[place] if place < len(ids) else ""
            name += f" · {self.w.say('questions.cited')}" if name and name in cited else ""
            short = cut(text, self.most)
            shown.append((self.numbers.setdefault(short, len(self.numbers) + 1), name, short))
        if not passages and ids:
            names = ", ".join(f"{one} ({self.w.say('questions.cited')})" if one in cited else one for one in ids)
            texts.append((self.w.say("questions.passages"), one_line(names, 600)))
        notes = tuple(self._reasons(row))
        return Sample(key, self.cells(row, key), self.filters(row, at), tuple(texts), tuple(shown), notes)

    def _reasons(self, row: Row) -> Iterator[str]:
        """Yield the scores that are not columns, then why scores are missing."""
        more = [f"{self.w.title(name)} {self.w.value(name, row[name])}" for name in self.metrics[_MOST_SCORES:]
                if not is_missing(row.get(name))]  # fmt: skip
        if more:
            yield " · ".join(more)
        by_reason: dict[str, list[str]] = {}
        for name in self.metrics:
            if is_missing(row.get(name)):
                by_reason.setdefault(_why(self.w, name, row), []).append(self.w.title(name))
        for reason, names in by_reason.items():
            yield f"{self.w.list(names, most=8)}: {reason}"
        if row.get("partial") is True:
            yield self.w.say("questions.partial")
        if miss := _text(row, "miss"):
            yield f"{self.w.say('column.miss')}: {miss}"

    def chips(self, every: Sequence[dict[str, str]]) -> tuple[tuple[str, str, int], ...]:
        """Return the buttons of the first filter with their counts; the first is pressed."""
        def n(key: str, value: str) -> int:
            return sum(one.get(key) == value for one in every)

        names = ("chip_wrong", "chip_right") if self.labelled else ("chip_low", "chip_fine")
        wrong, right = (self.w.say(f"questions.{name}") for name in names)
        found = [("wrong", wrong, n("w", "1"))]
        found += [(label, self.w.say(f"label.{label}"), n("o", label)) for label in LABEL_TONES]
        found += [("right", right, n("w", "0"))]
        found += [(key, self.w.say(f"compared.{key}"), n("c", key)) for key in ("broken", "fixed")]
        every_chip = ("", self.w.say("questions.chip_all"), len(every))
        return (*(chip for chip in found if chip[2]), every_chip)

    def choices(self) -> dict[str, tuple[str, tuple[tuple[str, str], ...]]]:
        """Return the lists to choose from: documents, and metrics below their threshold."""
        docs = self.w.sheet.scores[self.doc].dropna().unique().tolist() if self.documents else []
        low = [name for name in self.below if self.below[name].any()]
        found = {
            "d": (self.w.say("column.document"), tuple((str(doc), one_line(doc, 60)) for doc in docs)),
            "m": (self.w.say("questions.below"), tuple((name, self.w.title(name)) for name in low)),
        }
        return {key: one for key, one in found.items() if 0 < len(one[1]) <= _MOST_FILTER}


def _text(row: Row, key: str) -> str:
    return "" if is_missing(row.get(key)) else str(row[key])


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value] * isinstance(value, str)


def _why(w: Formatter, name: str, row: Row) -> str:
    """Return why a cell holds no score, else the word for that kind of absence."""
    status, reason = (row.get(f"{name}__{what}") for what in ("status", "reason"))
    word = w.say(f"column.{status if status in ('failed', 'not_applicable') else 'missing'}")
    return word if is_missing(reason) or not str(reason).strip() else f"{word}: {one_line(reason, 120)}"


def longest(sizes: Sequence[int], budget: int) -> int:
    """Return at what length texts are cut so that all of them together fit: short ones stay whole.

    Examples
    --------
    >>> longest([10, 10, 500, 500], 1000), longest([10, 20], 1000)
    (490, 1000)
    """
    left = budget
    for place, size in enumerate(sorted(sizes)):
        if size * (len(sizes) - place) > left:
            return left // (len(sizes) - place)
        left -= size
    return budget


def cut(value: object, most: int) -> str:
    """Return a stranger's text of at most so many bytes, with an ellipsis where it goes on."""
    held = str(value).encode("utf-8", "replace")
    return str(value) if len(held) <= most else held[:most].decode("utf-8", "ignore") + " …"


_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w+")
_RUN = 4  # words or Chinese characters in a row that must be found for their wording to count as taken over


def _runs(text: str) -> list[tuple[str, ...]]:
    """Return the runs of tokens of a text in their order."""
    words = [token.casefold() for token in _TOKEN.findall(text)]
    return [tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)]


@lru_cache(maxsize=4096)
def _known(passage: str) -> frozenset[tuple[str, ...]]:
    """Return the runs of a passage, which many questions may have retrieved."""
    return frozenset(_runs(passage))


def matched(answer: str, passages: Sequence[str]) -> Safe:
    """Return an answer as HTML with the wording marked that stands in its passages, four tokens or more at a time.

    Examples
    --------
    >>> matched("It costs at most 450 yuan a night.", ["Rooms cost at most 450 yuan a night in cities."])
    'It costs <mark>at most 450 yuan a night</mark>.'
    """
    places, known = [found.span() for found in _TOKEN.finditer(answer)], list(map(_known, passages))
    held = np.zeros(len(places) + 1, dtype=bool)
    for i, run in enumerate(_runs(answer)):
        held[i : i + _RUN] |= any(run in runs for runs in known)
    parts, last = [], 0
    edges = np.flatnonzero(np.diff(held.astype(int), prepend=0)).tolist()
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        first, stop = places[start][0], places[end - 1][1]
        parts += [escape(answer[last:first]), f"<mark>{escape(answer[first:stop])}</mark>"]
        last = stop
    return Safe("".join([*parts, escape(answer[last:])]))


SECTIONS = {
    "summary": summary, "fix": fix_first, "metrics": metrics, "gates": gates, "outcomes": outcomes, "log": log,
    "comparison": comparison, "documents": documents, "judge": judge, "questions": questions, "run": details,
    "glossary": glossary,
}  # fmt: skip
"""Key of a section -> its function, in the order in which a reader asks."""
