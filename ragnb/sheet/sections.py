"""The sections of a sheet, one function each: assessment -> section; and how their numbers are written."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from importlib import metadata
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import markup, texts
from ragnb.calibration import CalibrationCard, calibrate, judge_columns
from ragnb.calibration.card import TONES, parts
from ragnb.comparison.differences import RIGHT
from ragnb.comparison.view import change, difference, difference_table, outcome_mark
from ragnb.diagnostics import RULES, if_documents_fail, rule_texts
from ragnb.diagnostics.completeness import COMPLETENESS
from ragnb.diagnostics.rules import past
from ragnb.errors import RagnbError, listing
from ragnb.inputs.streams import BAD_FIRST, DIGITS
from ragnb.markup import (
    MISSING,
    Safe,
    blocks,
    count,
    escape,
    is_missing,
    number,
    one_line,
    percent,
    signed,
    telling_digits,
)
from ragnb.markup.blocks import (
    Block,
    Code,
    Estimate,
    Link,
    Mark,
    Section,
    Small,
    Stack,
    Table,
    Text,
)
from ragnb.markup.rendering import SYSTEM_COLOURS, anchor, cell, radar_svg
from ragnb.scenario import Scenario
from ragnb.schema import DRAWN, METRICS, records, scale_of
from ragnb.sheet.account import (
    account_table,
    blocking_words,
    gate_words,
    incomplete_metrics,
    said_losses,
    worst_words,
)
from ragnb.sheet.standing import Standing, standing
from ragnb.weights import why_no_total

TOTAL = "weighted_score"
OUTCOME = "correct_outcome"
DATA = tomllib.loads(Path(__file__).with_name("labels.toml").read_text(encoding="utf-8"))
LABELS: dict[str, dict[str, str]] = DATA["labels"]
# The outcomes of gates, the worst first, and the tone of each.
GATE_TONES = {"fail": "bad", "undecided": "watch", "no_data": "none", "pass": "good"}
RULE_OF = {rule.metric: rule for rule in RULES if rule.also is None}
Row = Mapping[Any, Any]
Write = Callable[[Any], Any]


def table_of(rows: Iterable[Any], columns: Sequence[tuple[str, Write]], **how: Any) -> Table:
    """Return a table of rows: its columns as their heads and what writes a cell of them."""
    cells = tuple(tuple(write(row) for _, write in columns) for row in rows)
    return Table(tuple(head for head, _ in columns), cells, **how)


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
        self.whole, self.shown = sheet, getattr(sheet, "shown_system", None)
        self.sheet = sheet = sheet.of_system(self.shown) if "system" in sheet.means else sheet
        self.lang: str = sheet.scenario.lang
        self.say = texts.load(self.lang)
        self.rows: dict[str, Row] = {row["metric"]: row for row in records(sheet.means)}
        self.better: dict[str, Any] = {name: row["better"] for name, row in self.rows.items()}
        ends = {name: (row["range_low"], row["range_high"]) for name, row in self.rows.items()}
        self.scales = {name: scale_of(name, *span) for name, span in ends.items()}
        self.rates = [name for name, row in self.rows.items() if row["role"] == "rate"]
        self.operations = [name for name, row in self.rows.items() if row["role"] == "operation"]
        self.quality = [
            name
            for name in self.rows
            if name != TOTAL and name not in [*self.rates, *self.operations]
        ]
        # The thresholds of a rule mean nothing for a metric of that name on another scale.
        usual = {name: (metric.scale, metric.better) for name, metric in METRICS.items()}
        fits = [
            name for name in self.rows if (self.scales[name], self.better[name]) == usual.get(name)
        ]
        self.rules = {name: RULE_OF[name] for name in fits if name in RULE_OF}
        self.total = [TOTAL] if self.quality or self.known(TOTAL) else []
        self.unit = str(
            self.rows[TOTAL]["cluster_unit"]
        )  # of the clusters: document, cluster or row
        self.level = f"{100 * sheet.scenario.level:g} %"

    @property
    def answers(self) -> int:
        """How many rows the means are of: those of the system that is shown."""
        row = self.rows[TOTAL]
        return int(row["n"] + row["n_missing"] + row["n_failed"] + row["n_not_applicable"])

    @property
    def own(self) -> pd.Series:
        """Which rows of the sheet are of the system that is shown; systems are never counted together."""
        scores: pd.DataFrame = self.sheet.scores
        if self.shown is None or "system" not in scores:
            return pd.Series(True, index=scores.index)
        return scores["system"].astype(object).fillna(MISSING).map(str) == str(self.shown)

    @property
    def gates(self) -> pd.DataFrame:
        """The gates that are shown: input that came through whole is no news."""
        gates: pd.DataFrame = self.whole.gates
        return gates[(gates["role"] != "completeness") | ~(gates["value"] >= 1)]

    def known(self, metric: str) -> bool:
        """Whether a metric has a mean."""
        return not pd.isna(self.rows[metric]["value"])

    @cached_property
    def standing(self) -> Standing:
        """How the means stand against their thresholds."""
        return standing(self, incomplete_metrics(self))

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
                what = "; ".join(
                    filter(None, [one.description, *map(": ".join, one.bands.items())])
                )
                return self.say(
                    "sheet.dimension", what=what, low=f"{rubric.low:g}", high=f"{rubric.high:g}"
                )
        return self.about(metric).get("gloss", "")

    def list(self, names: Any, most: int = 3) -> str:
        """Join names; those after the first few are counted."""
        names = list(map(str, names))
        shown = self.say("list.join").join(names[:most])
        return (
            shown if len(names) <= most else self.say("list.more", names=shown, n=len(names) - most)
        )

    def link(self, sample: object) -> Link:
        """Return a link to a question by what it is known by, as `key_of` names its place."""
        return Link(one_line(sample, 40), f"#q={quote(anchor(key_of(sample)))}")

    def head(self, key: str) -> str:
        """Return the head of a column by the key of its text; one of numbers begins with ``>``."""
        return ">" * (key[0] == ">") + self.say(key.lstrip(">"), level=self.level)

    def table(self, rows: Iterable[Any], columns: Mapping[str, Write], **how: Any) -> Table:
        """Return a table of rows: its columns by the keys of their heads, each with what writes a cell of it."""
        return table_of(rows, [(self.head(key), write) for key, write in columns.items()], **how)

    def section(
        self,
        key: str,
        finding: str,
        lead: str = "",
        blocks: Iterable[Block | None] = (),
        badge: Mark | str = "",
    ) -> Section:
        """Return a section under its name, with the blocks that there are."""
        there = tuple(block for block in blocks if block is not None)
        return Section(key, self.say(f"section.{key}"), finding, lead, there, badge, self.lang)

    # Numbers

    def is_share(self, metric: str) -> bool:
        return metric in self.rates or metric in COMPLETENESS

    def value(self, metric: str, value: Any, beside: Row | None = None) -> str:
        """Write a value of a metric without its interval, to the digits that a gate `beside` it needs."""
        if metric in self.operations:
            return amount(value)
        write = percent if self.is_share(metric) else number
        return write(value, self.digits(metric, beside or {}))

    def digits(self, metric: str, row: Row) -> int:
        """Return how many decimals tell a gate's value and interval from its threshold."""
        times, least = (100, 1) if self.is_share(metric) else (1, 3)
        if pd.isna(row.get("threshold", math.nan)):
            return least
        told = [times * row[name] for name in ("value", "low", "high") if not pd.isna(row[name])]
        return telling_digits(told, times * row["threshold"], least)

    def limit(self, metric: str, value: float) -> str:
        """Write a threshold: a percentage as it was set, a score with three decimals."""
        if metric in self.operations:
            return amount(value)
        return f"{100 * value:g} %" if self.is_share(metric) else number(value)

    def ends(self, metric: str, row: Row) -> str:
        """Write the interval alone, ``0.771–0.843``; nothing where there is none."""
        if metric in self.operations:
            known = not (pd.isna(row["low"]) or pd.isna(row["high"]))
            return f"{amount(row['low'])}–{amount(row['high'])}" if known else ""
        digits = self.digits(metric, row)
        return markup.ends(row["low"], row["high"], self.is_share(metric), digits)

    def interval(self, metric: str, row: Row) -> str:
        """Write ``value (low–high)`` of a row."""
        ends = self.ends(metric, row)
        return self.value(metric, row["value"], row) + (
            f" ({ends})" if ends and not pd.isna(row["value"]) else ""
        )

    def said(self, row: Row) -> dict[str, str]:
        """Return what sentences say of a gate or a finding: value, limit, interval, n."""
        metric, side = row["metric"], "above" if row.get("op") == "<=" else "below"
        return {
            "metric": self.title(metric),
            "value": self.value(metric, row["value"], row),
            "n": self.n(row),
            "ends": self.ends(metric, row),
            "limit": self.limit(metric, row["threshold"]),
            "level": self.level,
            "side": self.say(f"headline.{side}"),
        }

    def estimate(self, metric: str, row: Row, **more: Any) -> Estimate:
        """Return a row's value with its interval as a cell that is drawn."""
        value, known = self.value(metric, row["value"], row), not pd.isna(row["value"])
        exact = value if self.is_share(metric) else number(row["value"], 4)
        return Estimate(
            value,
            self.ends(metric, row) if known else "",
            row["value"],
            row["low"],
            row["high"],
            span=self.span(metric),
            text=self.title(metric),
            exact=exact if known else "",
            tone=self.tone(metric, row["value"]),
            **more,
        )

    def n(self, row: Row) -> str:
        """Write the n of a row."""
        return self.say("chart.n", n=count(row["n"]))

    def radar(
        self, axes: Mapping[str, str], values: Mapping[str, Sequence[Any]], label: str
    ) -> blocks.Picture:
        """Return the values of systems as a radar; the axes are metrics by what they are called."""
        drawn = [
            (name, self.scales[metric], self.better[metric] == "lower")
            for name, metric in axes.items()
        ]
        return blocks.Picture(
            radar_svg(drawn, values, label=label, radius=105, lang=self.lang), label
        )

    def counted(self, row: Row) -> str:
        """Write the n of a row and the documents it comes from."""
        clusters, unit = count(row["n_clusters"]), self.unit
        return self.n(row) + (
            "" if unit == "row" else texts.counted(self.say, f"verdict.{unit}s", clusters)
        )

    # Thresholds

    def thresholds(self, metric: str) -> tuple[tuple[str, float], ...]:
        """Return the named thresholds of a metric, in its own units, the milder one first."""
        if metric != TOTAL:
            rule: Any = self.rules.get(metric)
            known = {} if rule is None else {"warning": rule.warning, "critical": rule.critical}
            return tuple(
                (self.say(f"severity.{key}"), at) for key, at in known.items() if at is not None
            )
        low, high = self.span(TOTAL) or (0.0, 0.0)
        bands = (
            {}
            if low == high
            else {key: getattr(self.sheet.scenario.bands, key) for key in ("good", "watch")}
        )
        return tuple(
            (self.say(f"mark.{key}"), low + (high - low) * at) for key, at in bands.items()
        )

    def tone(self, metric: str, value: Any) -> str:
        """Return good, watch or bad by the bands (the total) or the rule's thresholds; nothing without any."""
        limits = [at for _, at in self.thresholds(metric)]
        if pd.isna(value) or not limits:
            return ""
        better = self.better[metric]
        return (
            "bad"
            if past(value, limits[-1], better)
            else "watch"
            if past(value, limits[0], better)
            else "good"
        )

    def is_low(self, metric: str, value: Any) -> bool:
        """Whether a value is beyond a threshold of its metric."""
        return self.tone(metric, value) in ("watch", "bad")

    def share_low(self, metric: str, values: npt.ArrayLike) -> float:
        """Return the share of some values that are beyond a threshold of their metric."""
        limits = [at for _, at in self.thresholds(metric)]
        if not limits:
            return 0.0
        better = self.better[metric]
        return float(np.mean(past(values, limits[0], better) | past(values, limits[-1], better)))

    def span(self, metric: str) -> tuple[float, float] | None:
        """Return the whole range of a metric, where it has ends."""
        low, high = self.rows[metric]["range_low"], self.rows[metric]["range_high"]
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None

    # Gates

    def requirement(self, gate: Row) -> str:
        """Write what a gate asks in words: "At most 5 % of unanswerable questions are answered"."""
        metric, limit = gate["metric"], self.limit(gate["metric"], gate["threshold"])
        if gate["role"] == "completeness":
            return self.say(f"requirement.{gate['gate']}", at=limit)
        bound = self.say(
            "requirement.at_least" if gate["op"] == ">=" else "requirement.at_most", at=limit
        )
        key = "difference" if gate["role"] == "difference" else "metric"
        plain = self.say(f"requirement.{key}", metric=self.title(metric), bound=bound.lower())
        words = self.about(metric).get("requirement") if key == "metric" else None
        text = words.format(bound=bound) if words else plain
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


def tally(w: Formatter) -> dict[str, int]:
    """Return how often each label occurs; nothing without labels."""
    table = w.sheet.outcomes
    return (
        {} if table is None else {row["label"]: int(row["n"]) for row in records(table) if row["n"]}
    )


def counted(w: Formatter, metric: str) -> tuple[int, int]:
    """Return how many answers a rate counts, and of how many: of 0 where no label says."""
    found = tally(w)
    k, n = (
        sum(found.get(label, 0) for label in labels)
        for labels in DATA["counted"].get(metric, ((), ()))
    )
    return k, n


def label_mark(w: Formatter, label: str) -> Mark:
    """Return a label in words."""
    return Mark(LABELS[label]["tone"], w.say(f"label.{label}"))


def label_stack(w: Formatter, rows: pd.DataFrame) -> Stack:
    """Return the labels of one group, side by side in one order."""
    counts = dict(zip(rows["label"], rows["n"], strict=True))
    return Stack(
        tuple(
            (row["kind"], w.say(f"label.{label}"), int(counts.get(label, 0)))
            for label, row in LABELS.items()
        ),
        int(rows["n"].sum()),
    )


def outcomes(w: Formatter) -> Section | None:
    """Return counts of the labels, never weighted; nothing where no answer has a label."""
    found, (right, n), shown, worst = (
        tally(w),
        counted(w, OUTCOME),
        list[Block | None](),
        list[Row](),
    )
    if not found:
        return None
    for name, counts in w.sheet.label_counts.groupby("slice", sort=False):
        if name != w.sheet.scenario.doc:  # the group with the largest share of wrong answers first
            groups = [
                _of_group(w, str(group), rows)
                for group, rows in counts.groupby("group", sort=False)
            ]
            groups.sort(key=lambda one: (one["share"], one["group"]))
            worst += [one for one in groups if one["n"] >= _FEW]
            heads = (
                str(name),
                *map(w.head, (">outcomes.questions", ">outcomes.right", "section.outcomes")),
            )
            most = [
                (one["group"], count(one["n"]), str(one["right"]), one["stack"]) for one in groups
            ]
            shown.append(Table(heads, tuple(most[:_MOST_KINDS]), cards=True))
    shown.append(
        w.table(
            LABELS,
            {
                "column.label": lambda label: (label_mark(w, label), Code(label)),
                ">column.n": lambda label: count(found.get(label, 0)),
                ">column.share": lambda label: percent(found.get(label, 0) / n),
            },
        )
    )
    finding = w.say("sheet.ended_right", n=count(right), all=count(n))
    low = min(worst, key=lambda one: one["share"], default={"share": 1})
    if low["share"] < right / n:
        words = {"k": count(low["n"] - low["right"]), "n": count(low["n"])}
        finding = w.say("outcomes.worst", group=low["group"], **words)
    badge = w.say("outcomes.wrong", n=count(n - right)) if right < n else ""
    return w.section("outcomes", finding, w.say("outcomes.lead"), [*shown, _turned(w)], badge)


def _of_group(w: Formatter, name: str, rows: pd.DataFrame) -> Row:
    """Return the labels of a group: how many answers it has, and how many and which share of them are right."""
    n, right = int(rows["n"].sum()), int(rows.loc[rows["label"].isin(RIGHT), "n"].sum())
    return {
        "group": name,
        "n": n,
        "right": right,
        "share": right / n,
        "stack": label_stack(w, rows),
    }


def _turned(w: Formatter) -> Table | None:
    """Return the table from the labels of the baseline to those of this run."""
    changed = w.sheet.changed
    if changed is None or changed["before_label"].isna().all():
        return None
    counts = pd.crosstab(changed["before_label"], changed["now_label"])
    labels = [label for label in LABELS if label in counts.index or label in counts.columns]
    counts = counts.reindex(index=labels, columns=labels, fill_value=0)
    words = [w.say(f"label.{label}") for label in labels]
    rows = [
        (word, *(str(n) if n else "·" for n in row), count(sum(row)))
        for word, row in zip(words, counts.to_numpy().tolist(), strict=True)
    ]
    heads = (w.say("outcomes.before_now"), *(f">{word}" for word in words), ">Σ")
    baseline = "" if w.sheet.comparison is None else w.sheet.comparison["baseline"].iloc[0]
    return Table(heads, tuple(rows), caption=w.say("outcomes.from_to", name=baseline))


def log(w: Formatter) -> Section | None:
    """Return what a log without gold says: undeclared refusals, the days, and the questions to label first."""
    found = w.whole.log
    if found is None:
        return None
    patterns = w.table(
        records(found.patterns),
        {
            "log.pattern": lambda row: Code(one_line(row["pattern"], 80)),
            ">column.n": lambda row: count(row["n"]),
            "log.example": lambda row: one_line(row["example"], 120),
        },
        caption=w.say("log.patterns"),
    )
    sizes = ["latency_median", "latency_p95"] * bool(found.daily["latency_median"].notna().any())
    sizes += ["length_median", "length_p95"]
    columns: dict[str, Write] = {
        "log.day": lambda row: w.say("log.all") if is_missing(row["day"]) else row["day"],
        ">column.n": lambda row: count(row["n"]),
    }
    written: dict[str, Write] = {"refusal_rate": percent}
    if found.daily["failed"].notna().any():  # else no column speaks of failures
        written["failed"] = percent
    written |= {key: lambda size: "" if is_missing(size) else f"{size:.4g}" for key in sizes}
    daily = found.daily.assign(
        **{key: found.daily[key].map(write) for key, write in written.items()}
    )
    columns |= {f">log.column.{key}": itemgetter(key) for key in written}
    days = w.table(records(daily), columns, caption=w.say("log.daily"))
    to_label = w.table(
        records(found.to_label.head(_MOST_KINDS)),
        {
            "column.question": lambda row: one_line(row["question"], 120),
            "log.reason": lambda row: w.say(f"log.reasons.{row['reason']}"),
            ">log.chance": lambda row: percent(row[DRAWN]),
        },
        caption=w.say("log.to_label"),
    )
    note = Text((w.say("log.next", n=count(len(found.to_label))),), "note")
    n = int(found.patterns["n"].max()) if len(found.patterns) else 0
    finding = w.say("log.finding" if n else "log.no_finding", n=count(n))
    return w.section(
        "log", finding, w.say("log.lead"), [patterns if n else None, days, to_label, note]
    )


# Every metric in one row, and where it is weak: documents by their pull on the overall score, and slices


_MOST_DOCUMENTS, _MOST_GROUPS, _MOST_METRICS = 30, 8, 8
_WIDELY = 0.8  # of the documents: where a metric is low nearly everywhere, its head says so once


def documents(w: Formatter) -> Section | None:
    """Return documents by metrics, those that pull the overall score down most first, and the slices.

    Nothing where there is one document and no slice.
    """
    table, finding, shown = w.sheet.documents, w.say("section.documents"), _slices(w)
    n = 0 if table is None or table["value"].isna().all() else table["document"].nunique()
    if n > 1:
        rows = table[table["metric"] == TOTAL]
        rows = rows.sort_values("document" if rows["pull"].isna().all() else "pull", kind="stable")
        order, pull = rows["document"].tolist(), rows["pull"].iloc[0]
        if not pd.isna(pull):
            key = "documents.pulls" if pull < 0 else "documents.alike"
            finding = w.say(key, name=one_line(order[0], 60), pull=signed(pull))
        shown = [_table(w, table, order[:_MOST_DOCUMENTS]), *shown]
    if not shown:
        return None
    lead = w.say("documents.lead") if n > 1 else ""
    lead += w.say("documents.rest", n=count(n - _MOST_DOCUMENTS)) if n > _MOST_DOCUMENTS else ""
    return w.section("documents", finding, lead, shown, count(n) if n else "")


def _table(w: Formatter, table: pd.DataFrame, order: Sequence[str]) -> Table:
    """Return documents by their means."""
    # There may be a hundred thousand documents: only the rows of those that are shown are taken out.
    in_order = table["document"].isin(order)
    cells = {(row["document"], row["metric"]): row for row in records(table[in_order])}
    means = dict(iter(table.dropna(subset=["value"]).groupby("metric")["value"]))
    names = [name for name in w.quality or w.rates if name in means][:_MOST_METRICS]
    widely = {name for name in names if w.share_low(name, means[name]) >= _WIDELY}
    marks = {name: " ↓" * (w.better[name] == "lower") + " ■" * (name in widely) for name in names}
    counts = w.sheet.label_counts
    labels = {}
    if counts is not None:
        of_shown = (counts["slice"] == w.sheet.scenario.doc) & counts["group"].isin(order)
        labels = dict(iter(counts[of_shown].groupby("group")))

    def mean_of(name: str) -> Write:
        return lambda one: _cell(w, cells[one, name], name in widely)

    columns: list[tuple[str, Write]] = [(w.say("column.document"), lambda one: one_line(one, 80))]
    if TOTAL in means:
        columns.append((w.head(">documents.share"), lambda one: _share(cells[one, TOTAL]["share"])))
    if labels:
        stacks = {one: label_stack(w, rows) for one, rows in labels.items()}
        columns.append((w.say("section.outcomes"), lambda one: stacks.get(one, "")))
    columns += [(f">{w.title(name)}{mark}", mean_of(name)) for name, mark in marks.items()]
    if TOTAL in means:
        columns += [(f">{w.title(TOTAL)}", mean_of(TOTAL))]
        columns += [(w.head(">documents.pull"), lambda one: signed(cells[one, TOTAL]["pull"]))]
    return table_of(order, columns)


def _share(value: float) -> str:
    return "" if pd.isna(value) else f"{100 * value:.0f} %"


def _cell(w: Formatter, row: Row, plain: bool) -> object:
    """Write a mean; marked where it is below its threshold, unless the head says that nearly all are."""
    metric, value = row["metric"], row["value"]
    if pd.isna(value):
        return Small(w.kind_of_gap(row))
    text = w.value(metric, value)
    return Mark(w.tone(metric, value), text) if not plain and w.is_low(metric, value) else text


def _slices(w: Formatter) -> list[Block]:
    """Return one table a slice: the metrics by its groups, each mean with its interval and n."""
    shown, slices = list[Block](), w.sheet.slices
    for name, table in (
        () if slices is None else slices.fillna({"group": MISSING}).groupby("slice", sort=False)
    ):
        groups, there = (
            table["group"].unique().tolist(),
            set(table.dropna(subset="value")["metric"]),
        )
        in_order = table["group"].isin(groups[:_MOST_GROUPS])
        cells = {(row["group"], row["metric"]): _mean(w, row) for row in records(table[in_order])}
        rest = (
            w.say("documents.groups_rest", n=len(groups) - _MOST_GROUPS)
            if len(groups) > _MOST_GROUPS
            else ""
        )
        title = w.say("documents.slice", name=name, level=w.level) + rest
        rows = tuple(
            (w.title(one), *(cells[group, one] for group in groups[:_MOST_GROUPS]))
            for one in [*w.total, *w.quality, *w.rates]
            if one in there
        )
        heads = (w.say("column.metric"), *(f">{group}" for group in groups[:_MOST_GROUPS]))
        shown.append(Table(heads, rows, folded=title))
    return shown


def _mean(w: Formatter, row: Row) -> tuple[object, ...]:
    """Return a mean with its interval and n below it."""
    metric = row["metric"]
    if pd.isna(row["value"]):
        return MISSING, Small(w.kind_of_gap(row))
    return w.value(metric, row["value"]), Small(
        " · ".join(filter(None, [w.ends(metric, row), w.n(row)]))
    )


def metrics(w: Formatter) -> Section | None:
    """Return the metrics with the overall score first, the rates folded below."""
    names = [*w.total, *w.quality]
    # Without gold most rates say nothing; they are rows only where all do.
    told = [name for name in w.rates if w.known(name)] or w.rates
    alone = w.whole.systems is None and w.sheet.comparison is None
    folded = w.say("measures.rates", n=len(told)) if names else ""
    shown = [
        _measures(w, names),
        radar(w) if alone else None,
        _measures(w, told, folded),
        _operations(w),
    ]
    found = w.standing
    lead = w.say(
        "measures.lead_weighted" if w.sheet.scenario.doc_weights else "measures.lead", level=w.level
    )
    badge = Mark(found.tone, w.say("measures.low", n=found.low)) if found.low else ""
    return w.section("metrics", found.finding, lead, shown, badge) if names or told else None


def amount(value: Any) -> str:
    """Write a latency, a number of tokens or a cost: four digits, or all those before the point.

    Examples
    --------
    >>> amount(1523.4), amount(0.00042), amount(2.5), amount(None)
    ('1,523', '0.00042', '2.5', '—')
    """
    if pd.isna(value):
        return MISSING
    return count(value) if abs(value) >= 1000 else f"{value:.4g}"


def _operations(w: Formatter) -> Table | None:
    """Return what the answers took: latency, tokens, cost. A log has its own table by day."""
    table = w.sheet.operations
    if table is None or w.sheet.log is not None:
        return None

    def mean(row: Row) -> tuple[str, Small]:
        declared = w.rows.get(row["metric"])
        interval = "" if declared is None else w.ends(row["metric"], declared)
        return amount(row["mean"]), Small(interval)

    columns: dict[str, Write] = {
        "operations.column": lambda row: row["metric"],
        ">column.n": lambda row: count(row["n"]),
        ">operations.mean": mean,
        ">operations.median": lambda row: amount(row["median"]),
        ">operations.p95": lambda row: amount(row["p95"]),
    }
    return w.table(records(table), columns, caption=w.say("operations.caption"))


def _measures(w: Formatter, names: list[str], folded: str = "") -> Table | None:
    heads = tuple(
        w.head(f"measures.{key}") for key in ("metric", "weight", "n", "mean", "scale", "bins")
    )
    return Table(heads, tuple(measure(w, name) for name in names), folded=folded) if names else None


def measure(w: Formatter, metric: str) -> blocks.Measure:
    """Return the row of one metric."""
    row, about, why = (
        w.rows[metric],
        w.gloss(metric),
        "" if w.known(metric) else w.kind_of_gap(w.rows[metric]),
    )
    lower = w.say("chart.lower") if w.better[metric] == "lower" else ""
    if metric == TOTAL:
        why = why and (why_no_total(w.sheet.means, lang=w.lang) or w.say("sheet.nothing_to_add"))
        bands = ", ".join(f"{name} ≥ {at:g}" for name, at in w.thresholds(TOTAL))
        about = "; ".join(filter(None, [w.say("measures.total"), bands]))
    lacking = {kind: int(row[f"n_{kind}"]) for kind in ("missing", "failed", "not_applicable")}
    rest = w.list((f"{count(n)} {w.say(f'column.{kind}')}" for kind, n in lacking.items() if n))
    return blocks.Measure(
        w.title(metric),
        metric,
        " ".join(filter(None, [about, lower])),
        "" if pd.isna(row["weight"]) else f"{row['weight']:g}",
        int(row["n"]),
        int(row["n"]) + sum(lacking.values()),
        rest,
        w.estimate(metric, row, thresholds=w.thresholds(metric)),
        histogram(w, metric),
        why,
        "" if why else w.counted(row),
    )


def histogram(w: Formatter, metric: str) -> blocks.Histogram | None:
    """Return how the scores of a metric spread over its range; a bar below its threshold is marked."""
    rows = w.sheet.spread[w.sheet.spread["metric"] == metric]
    if not rows["n"].sum():
        return None
    low, high, between = int(rows["n_low"].iloc[0]), int(rows["n_high"].iloc[0]), rows["n"].tolist()
    between[0] -= low
    between[-1] -= high
    limit = next((at for _, at in w.thresholds(metric)), np.nan)
    below = (
        rows["bin_high"] <= limit + 1e-9
        if w.better[metric] == "higher"
        else rows["bin_low"] >= limit - 1e-9
    )
    return blocks.Histogram(low, tuple(between), high, tuple(below.tolist()))


def radar(w: Formatter) -> blocks.Picture | None:
    """Return the means as a radar; none where it shows nothing that the table does not."""
    # The metrics of quality, else the rates, whose ranges have ends.
    axes = [name for name in w.quality or w.rates if w.span(name) and w.known(name)]
    changed, systems = (
        w.sheet.comparison,
        w.whole.systems if w.whole.common is None else w.whole.common,
    )
    if w.whole.systems is not None:
        parts = systems.set_index("metric")["value"].groupby(
            systems["system"].to_numpy(), sort=False
        )
        values = {str(name): part[axes].tolist() for name, part in parts}
    elif changed is not None and changed["candidate"].nunique() == 1:
        rows = changed[changed["n_common"] > 0].set_index("metric")
        axes = [name for name in axes if name in rows.index]
        roles = ("candidate", "baseline")
        values = {changed[role].iloc[0]: rows.loc[axes, f"{role}_mean"].tolist() for role in roles}
    else:
        axes = [name for name in axes if w.thresholds(name)]
        values = {w.say("radar.means"): [w.rows[name]["value"] for name in axes]}
        values[w.say("radar.thresholds")] = [w.thresholds(name)[0][1] for name in axes]
    if len(axes) < 3 or len(values) > len(SYSTEM_COLOURS):
        return None
    label = w.say("radar.label", names=w.list(values, most=5))
    return w.radar({w.title(name): name for name in axes}, values, label)


# The verdict: the first screen, what to fix first, the gates, and whether the judge can be trusted


_MOST_STEPS = 5


def fix_first(w: Formatter) -> Section | None:
    """Return what to fix in order, each with its evidence, what a fix is worth, and where to look, if anything."""
    steps, heads = (
        _steps(w),
        tuple(w.say(f"fix.{key}") for key in ("problem", "evidence", "gain", "worst")),
    )
    rest = w.list(step.problem for step in steps[_MOST_STEPS:])
    lost = blocking_words(w)
    if not steps and not lost:
        return None
    # What is missing may be what is below a threshold.
    lead = w.say("fix.lead") if steps else w.say("fix.input", lost=w.list(lost))
    shown = [
        blocks.Steps(heads, tuple(steps[:_MOST_STEPS])) if steps else None,
        Text((w.say("fix.rest", names=rest),), "note") if rest else None,
        _modes(w),
    ]
    return w.section("fix", w.say("section.fix"), lead, shown, str(len(steps)) if steps else "")


def _steps(w: Formatter) -> list[blocks.Step]:
    own = [row for row in deciding(w.whole.gates) if row["system"] in (None, w.shown)]
    found = {
        row["metric"]: row
        for row in records(w.sheet.diagnoses.sort_values("cost", ascending=False))
    }
    failed = sorted(
        (row for row in own if row["outcome"] == "fail" or row["blocks"]),
        key=lambda r: r["outcome"],
    )
    # A gate that is still open is worth a row where something is wrong, however often.
    still_open = [row for row in own if row["outcome"] == "undecided" and _wrong(w, row["metric"])]
    still_open.sort(key=lambda row: -_wrong(w, row["metric"]))
    stopping = [row for row in failed if row["outcome"] != "no_data" and row["metric"] in w.rows]
    steps = {metric: _of_finding(w, row) for metric, row in found.items()}
    gates = {row["metric"]: row for row in [*still_open[::-1], *stopping[::-1]]}
    for metric in [metric for metric in gates if metric not in found or gates[metric] in stopping]:
        steps[metric] = _of_gate(w, gates[metric], found.get(metric), len(failed))
    order = [*(row["metric"] for row in stopping), *found, *(row["metric"] for row in still_open)]
    return [steps[metric] for metric in dict.fromkeys(order)]


def _of_gate(w: Formatter, gate: Row, finding: Row | None, failed: int) -> blocks.Step:
    metric, said, fails = gate["metric"], w.said(gate), gate["outcome"] == "fail"
    wrong, (right, n) = _wrong(w, metric), counted(w, OUTCOME)
    words = {"right": count(right), "then": count(right + wrong), "n": count(n)}
    last = w.say("fix.no_gate" if failed == 1 else "fix.fewer_gates") if fails else ""
    gains = [last, w.say("fix.right", **words) if wrong else _gain(w, finding)]
    return blocks.Step(
        _problem(w, metric),
        Mark(w.outcome(gate).tone, w.say("fix.limit", **said)),
        w.say("list.also").join(filter(None, gains)),
        _link(w, metric),
        _parts(w, metric, finding),
        "" if fails else w.say("fix.open", **said),
    )


def _of_finding(w: Formatter, row: Row) -> blocks.Step:
    metric, said, problem = row["metric"], w.said(row), _problem(w, row["metric"])
    if (also := next(rule.also for rule in RULES if rule.name == row["rule"])) is not None:
        problem = w.say("fix.although", metric=w.title(metric), other=w.name(also.metric))
    detail = (
        w.say("fix.conclusive" if row["certain"] else "fix.not_conclusive", **said)
        if said["ends"]
        else ""
    )
    gain, most = _gain(w, row), _reachable(w, metric)
    if most is not None and past(most, row["threshold"], w.better[metric]):
        detail += w.say("fix.reachable", most=number(most))
        gain = w.say("fix.beyond_reach", most=number(most))
    evidence = Mark(
        "bad" if row["severity"] == "critical" else "watch", w.say("fix.threshold", **said)
    )
    return blocks.Step(problem, evidence, gain, _link(w, metric), _parts(w, metric, row), detail)


def _problem(w: Formatter, metric: str) -> str:
    known = w.about(metric).get("problem")
    return known or w.say(
        "fix.high" if w.better[metric] == "lower" else "fix.low", metric=w.title(metric)
    )


def _gain(w: Formatter, finding: Row | None) -> str:
    cost = 0 if finding is None else finding["cost"]
    return w.say("fix.overall", gain=number(cost)) if cost > 0 else ""


def _wrong(w: Formatter, metric: str) -> int:
    """Return how many answers a rate counts as wrong; 0 where no label says."""
    k, n = counted(w, metric)
    return k if wrong_label(metric) else n - k


def wrong_label(metric: str) -> str:
    """Return the label that a rate of wrong answers counts; nothing for any other metric."""
    label: str = DATA["counted"].get(metric, [["OK"]])[0][0]
    return "" if label in RIGHT else label


def _parts(w: Formatter, metric: str, finding: Row | None) -> dict[str, tuple[Any, ...]]:
    """Return causes, actions and the worst samples."""
    rule = RULE_OF.get(metric)
    causes, actions = rule_texts(rule, w.lang) if rule else ([], [])
    if finding is not None:
        causes, actions = finding["causes"], finding["actions"]
    done = tuple(
        (one["text"], Code(one["setting"])) if one["setting"] else one["text"] for one in actions
    )
    worst = tuple(_sample(w, metric, one) for one in ([] if finding is None else finding["worst"]))
    parts = {"causes": tuple(causes), "actions": done, "worst": worst}
    return {w.say(f"fix.{key}"): lines for key, lines in parts.items() if lines}


def _sample(w: Formatter, metric: str, sample: Row) -> tuple[Any, ...]:
    score = "" if w.rows[metric]["kind"] == "binary" else w.value(metric, sample["score"])
    names = filter(None, (_text(sample, key) for key in ("sample_id", "system", "doc_name")))
    name, *more = [one_line(one, 40) for one in names] or ["?"]
    link = name if is_missing(sample.get("sample_id")) else w.link(sample["sample_id"])
    return link, " · ".join(filter(None, (score, *more, one_line(_text(sample, "question"), 80))))


def _link(w: Formatter, metric: str) -> Link | None:
    """Return where the questions stand that this is about, with their number."""
    label = wrong_label(metric)
    n = counted(w, metric)[0] if label else 0
    target = f"#o={label}"
    if not n:
        n = int((below(w, metric) & w.own).sum())
        target = f"#m={metric}"
    if not n:
        return None
    if w.shown is None:
        return Link(w.say("fix.samples", n=count(n)), target)
    said = w.say("fix.samples_of", n=count(n), system=one_line(w.shown, 40))
    return Link(said, f"{target}&s={quote(w.shown, safe='')}")


def below(w: Formatter, metric: str) -> pd.Series:
    """Return which rows of the sheet are beyond the milder threshold of a metric."""
    scores, limits = w.sheet.scores, w.thresholds(metric)
    if metric not in scores or not limits:
        return pd.Series(False, index=scores.index)
    values = pd.to_numeric(scores[metric], errors="coerce")
    return pd.Series(past(values, limits[0][1], w.better[metric]), index=scores.index)


def _reachable(w: Formatter, metric: str) -> float | None:
    """Return the highest mean share of relevant passages that the number of retrieved ones allows."""
    scores = w.sheet.scores
    if metric != "context_relevance" or not {"gold_ids", "chunks", metric} <= {*scores}:
        return None
    rows = scores[w.own & scores[metric].notna()]
    sizes = [
        (len(gold), len(got))
        for gold, got in zip(rows["gold_ids"], rows["chunks"], strict=True)
        if isinstance(gold, list) and isinstance(got, list) and got
    ]
    if len(sizes) != len(rows) or not sizes:
        return None
    return float(
        np.average([min(1.0, gold / got) for gold, got in sizes], weights=rows["sample_weight"])
    )


def _modes(w: Formatter) -> Table | None:
    """Return the failure modes, where metrics tell them."""
    some = w.sheet.modes[w.sheet.modes["n"] > 0]
    if set(some["failure_mode"]) <= {"not_enough_scores"} or not any(
        name in w.rules for name in w.quality
    ):
        return None
    most = some.loc[some["costliest"], "failure_mode"].tolist()
    tones = {"fine": "good", "not_enough_scores": "none"}

    def share(row: Row) -> str:
        ends = markup.ends(row["low"], row["high"], percent=True)
        return percent(row["share"]) + (f" ({ends})" if ends else "")

    def mode(row: Row) -> Mark:
        tone = tones.get(row["failure_mode"], "bad" if row["costliest"] else "watch")
        return Mark(tone, w.say(f"mode.{row['failure_mode']}"))

    columns: dict[str, Write] = {"column.mode": mode, ">column.n": lambda row: count(row["n"])}
    columns |= {">column.share": share, ">column.cost": lambda row: number(row["cost"])}
    title = w.say("fix.modes_most", mode=w.say(f"mode.{most[0]}")) if most else w.say("fix.modes")
    return w.table(records(some), columns, folded=title)


def summary(w: Formatter) -> Section:
    """Return the verdict, what to know before believing it, and the outcome bar."""
    gates, notes = deciding(w.whole.gates), w.whole.notes
    cautions = tuple(notes.loc[notes["code"].isin(DATA["notes"]["cautions"]), "text"])
    tone, status, title, lead = _words(w, gates)
    said = Mark(tone, w.say(f"status.{status}"))
    verdict = blocks.Verdict(
        said, title, lead, by_outcome(w, gates), w.say("sheet.gates_count"), *_score(w)
    )
    shown = [
        verdict,
        Text(cautions, "caution") if cautions else None,
        None if w.shown is None else _by_system(w),
    ]
    return w.section("summary", "", "", [*shown, _bar(w)])


def chance(p: float) -> str:
    """Write a probability as a percentage; one that would be written as none is said to be small."""
    return "< 0.1 %" if p < 0.001 else percent(p)


def deciding(gates: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the gates that decide: not those of the input, of advice, and of others than the candidate."""
    return records(gates[(gates["reason"] == "") & (gates["role"] != "completeness")])


def by_outcome(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[Mark, ...]:
    """Return how many gates came out which way, the worst first."""
    counts = {outcome: sum(row["outcome"] == outcome for row in gates) for outcome in GATE_TONES}
    return tuple(
        Mark(GATE_TONES[key], f"{n} {w.say(f'sheet.gate_{key}')}") for key, n in counts.items() if n
    )


def sentence(w: Formatter) -> str:
    """Return the verdict as text: status, reason, overall score with its n; of several systems each its own."""
    _, status, title, lead = _words(w, deciding(w.whole.gates))
    several = () if w.shown is None else _of_systems(w).items()
    scores = [f"{name}: {_said(w, rows)}" for name, rows in several] or [_said(w, w.rows)]
    words = {
        "status": w.say(f"status.{status}"),
        "title": title,
        "lead": lead,
        "score": w.list(scores, most=6),
    }
    notes = w.whole.notes
    repeats = notes.loc[notes["code"] == "repeats", "text"]
    return " ".join([*w.say("headline.sentence", **words).split(), *repeats])


def _of_systems(w: Formatter) -> dict[str, dict[str, Row]]:
    """Return the means of each system by metric."""
    parts = w.whole.systems.groupby("system", sort=False)
    return {name: {row["metric"]: row for row in records(part)} for name, part in parts}


def _said(w: Formatter, rows: Mapping[str, Row]) -> str:
    """Write the overall score, else the share of answers that ended right."""
    if (metric := _headline(rows)) is None:
        return w.say("headline.no_score") + (_parts_of_total(w, {}) if w.quality else "")
    low, high = (f"{rows[metric][end]:g}" for end in ("range_low", "range_high"))
    scale = "" if (low, high) == ("0", "1") else w.say("headline.scale", low=low, high=high)
    row = rows[metric]
    said = f"{w.title(metric)} {w.interval(metric, row)}{scale}, {w.counted(row)}"
    said += worst_words(w, metric, row)
    return said + (_parts_of_total(w, rows) if metric == TOTAL else "")


def _parts_of_total(w: Formatter, rows: Mapping[str, Row]) -> str:
    """Say which metrics the total is of, and what the table offers beside them; nothing where that is all."""
    offered: Mapping[str, str] = w.whole.left_out
    if not offered:
        return ""
    of = [name for name, row in rows.items() if row["role"] != "total" and row["weight"] > 0]
    why = {code: w.say(f"headline.left_out_{code}") for code in set(offered.values())}
    names = [w.say("headline.left_out_name", name=n, why=why[code]) for n, code in offered.items()]
    of_which = w.say("headline.of", names=w.list(map(w.name, of), most=6)) if of else ""
    return of_which + w.say("headline.left_out", names=w.list(names, most=6))


def _headline(rows: Mapping[str, Row]) -> str | None:
    return next((m for m in (TOTAL, OUTCOME) if m in rows and not pd.isna(rows[m]["value"])), None)


# The rates that are 0 where no citation is read.
_OF_CITATIONS = ("answer_precision", "citation_hit_rate", "correct_outcome", "compliance")


def _words(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[str, str, str, str]:
    """Return the tone, the status, the sentence and its reason, which begins with all that was lost."""
    if blocking := blocking_words(w):
        title = w.list(blocking) + w.say("headline.end")
        return "bad", "incomplete", title, w.say("headline.incomplete")
    tone, status, title, lead = _decided(w, gates)
    if losses := said_losses(w):
        said = w.say("list.also").join(losses) + w.say("headline.end")
        lead = w.say("headline.losses", losses=said, lead=lead)
    return tone, status, title, lead


def _decided(w: Formatter, gates: list[dict[Any, Any]]) -> tuple[str, str, str, str]:
    """Return the tone, the status, the sentence and its reason of input that is complete enough."""
    if not gates:
        if w.whole.log is not None or not any(map(w.known, w.quality)):
            return "none", "no_gates" if w.whole.log is None else "log", *_without_gates(w)
        found = w.standing
        if _is_open(_rungs(w)):
            return "watch", "undecided", *_without_gates(w)
        return found.tone, f"standing_{found.status}", *_without_gates(w)
    if blocking := sorted(
        (row for row in gates if row["blocks"]), key=lambda row: row["outcome"] != "fail"
    ):
        # A difference from the baseline is of no single system.
        every, stopped = (
            list(dict.fromkeys(row["system"] for row in rows if row["system"] is not None))
            for rows in (gates, blocking)
        )
        if len(every) < 2 or not stopped:
            return "bad", "failed", *blocked(w, blocking[0])
        words = {"n": len(stopped), "all": len(every), "names": w.list(stopped)}
        return (
            "bad",
            "failed",
            w.say("headline.systems", **words),
            w.say("headline.shown", name=w.shown),
        )
    if still_open := [row for row in gates if row["outcome"] == "undecided"]:
        return "watch", "undecided", *_undecided(w, still_open, len(gates))
    if not (passed := [row for row in gates if row["outcome"] == "pass"]):
        return "none", "no_data", w.say("headline.no_data"), w.say("headline.no_data_why")
    nearest = max(passed, key=lambda row: -1.0 if pd.isna(row["p_flip"]) else row["p_flip"])
    key = "passed" if len(passed) == len(gates) else "passed_some"
    title = texts.counted(w.say, f"headline.{key}", len(passed), all=len(gates))
    lead = w.say(
        "headline.nearest",
        asks=w.requirement(nearest),
        value=w.interval(nearest["metric"], nearest),
    )
    flip = "" if pd.isna(nearest["p_flip"]) else w.say("headline.flip", p=chance(nearest["p_flip"]))
    return "good", "passed", title, lead + flip


def blocked(w: Formatter, gate: Row) -> tuple[str, str]:
    """Return which gate blocks and why in two sentences, never stronger than its interval."""
    metric, at, fails = gate["metric"], gate["threshold"], gate["outcome"] == "fail"
    said = w.said(gate) | {"asks": w.requirement(gate)}
    if gate["outcome"] == "no_data":
        return w.say("headline.no_value", **said), w.say("headline.no_value_why")
    if fails and (none_found := _no_citations(w, gate)):
        return none_found, w.say("headline.asks", **said)
    sentence, (k, n) = (
        w.about(metric).get("headline"),
        counted(w, metric) if w.shown == gate["system"] else (0, 0),
    )
    key = "open" if not fails else "differs" if gate["role"] == "difference" else "metric"
    title = w.say(f"headline.{key}", **said)
    lead = w.say("headline.asks" if fails else "headline.seen", **said)
    if (
        sentence and n and gate["role"] == "rate" and DRAWN not in w.sheet.scores
    ):  # a weighted rate is no count
        title = sentence.format(k=count(k), n=count(n))
        lead = w.say(
            "headline.weighted" if w.sheet.scenario.doc_weights else "headline.rate", **said
        )
    if not said["ends"]:
        return title, lead + w.say("headline.no_interval")
    if fails and gate["op"] == "<=" and at > 0 and gate["low"] / at >= 2:
        return title, lead + w.say(
            "headline.times", times=f"{10 * gate['low'] / at // 1 / 10:g}", **said
        )
    return title, lead + w.say("headline.conclusive" if fails else "headline.inconclusive", **said)


def _no_citations(w: Formatter, gate: Row) -> str:
    """Return the sentence that no answer cites anything, for a rate that would say so by a 0; else nothing."""
    if gate["metric"] not in _OF_CITATIONS:
        return ""
    notes = w.whole.notes
    rows = notes[
        (notes["code"] == "no_citations") & notes["about"].isin([gate["system"], "traces"])
    ]
    return str(rows["text"].iloc[0]) if len(rows) else ""


def _undecided(w: Formatter, gates: list[dict[Any, Any]], n: int) -> tuple[str, str]:
    title = w.say("headline.undecided", n=len(gates), all=n)
    if not (needed := [row for row in gates if not pd.isna(row["more_needed"])]):
        return title, w.say("headline.too_close")
    most = max(needed, key=lambda row: row["more_needed"])
    return title, w.say("headline.more", n=count(most["more_needed"]), asks=w.requirement(most))


def _without_gates(w: Formatter) -> tuple[str, str]:
    """Return what the metrics, or the log, say where no gate decides."""
    if any(map(w.known, w.quality)):
        finding = w.standing.finding + w.say("headline.end")
        if w.shown is None:
            return finding, w.say("headline.no_gates")
        if rungs := _rungs(w):
            title = ladder_finding(w, rungs) + w.say("headline.end")
            lead = w.say("ladder.of", name=w.shown, finding=finding) + w.say("headline.no_gates")
            return title, lead + w.say("headline.shown", name=w.shown)
        return f"{w.shown}: {finding}", w.say("headline.no_gates") + w.say(
            "headline.shown", name=w.shown
        )
    names = w.list(
        f"{w.name(name)} {w.value(name, w.rows[name]['value'])}"
        for name in w.rates
        if w.known(name)
    )
    if not names:
        return w.say("measures.nothing") + w.say("headline.end"), w.say("headline.nothing_why")
    key = "headline.no_gates" if tally(w) else "headline.no_gold"
    said = w.say("headline.log", n=count(w.answers), rates=names)
    return said, w.say(key)


def _score(w: Formatter) -> tuple[Estimate | None, str, tuple[Any, ...]]:
    """Return the overall score, else the share of answers that ended right; none where neither is there."""
    if (metric := _headline(w.rows)) is None:
        return None, "", ()
    row, before = w.rows[metric], None
    notes: list[Any] = [w.say("sheet.ci", level=w.level, ends=w.ends(metric, row))] * bool(
        w.ends(metric, row)
    )
    notes.append(w.counted(row))
    if worst := worst_words(w, metric, row, "account.worst_alone"):
        notes.append(worst)
    if metric == TOTAL and (parts := _parts_of_total(w, w.rows)):
        notes.append(parts.lstrip(",，;；、 "))
    changed = [] if w.sheet.comparison is None else records(w.sheet.comparison)
    rows = [
        one for one in changed if one["metric"] == metric and w.shown in (None, one["candidate"])
    ]
    if len(rows) == 1 and rows[0]["n_common"]:
        mark, before = outcome_mark(rows[0], w.say), float(rows[0]["baseline_mean"])
        than = Small(w.say("compared.than", name=rows[0]["baseline"]))
        notes.append((Mark(mark.tone, f"{mark.text} {difference(rows[0], w.say)}"), than))
    name = w.title(metric) if w.shown is None else f"{w.title(metric)} · {one_line(w.shown, 40)}"
    return w.estimate(metric, row, before=before)._replace(interval="", tone=""), name, tuple(notes)


def _by_system(w: Formatter) -> Table:
    """Return one verdict a system; systems are never pooled."""
    gates, of_systems = w.whole.gates, _of_systems(w)
    judging = gates[(gates["role"] != "completeness") & (gates["reason"] != "advisory")]
    stopping = gates[gates["blocks"]].sort_values(
        "outcome", key=lambda outcome: outcome != "fail", kind="stable"
    )

    def blocked_by(name: str) -> tuple[Any, ...]:
        for first in records(
            stopping[(stopping["system"] == name) & (stopping["role"] != "completeness")]
        ):
            return w.requirement({**first, "system": None}), Small(
                w.interval(first["metric"], first)
            )
        return "", Small("")

    def score(name: str) -> str:
        metric = _headline(of_systems[name]) or TOTAL
        return w.interval(metric, of_systems[name][metric])

    def marks(name: str) -> Any:
        return by_outcome(w, records(judging[judging["system"] == name])) or w.say(
            "status.no_gates"
        )

    columns: list[tuple[str, Write]] = [
        (w.say("column.system"), str),
        (w.say("section.gates"), marks),
    ]
    columns += [(w.say("sheet.blocked_by"), blocked_by), (f">{w.title(TOTAL)}", score)]
    return table_of(_best_first(w.whole.systems, TOTAL), columns, cards=True)


def _best_first(means: pd.DataFrame, metric: str) -> list[str]:
    """Return the systems by a metric."""
    rows = means[means["metric"] == metric].sort_values("value", ascending=False, kind="stable")
    return rows["system"].tolist()


def _bar(w: Formatter) -> blocks.Bar | None:
    """Return how the answers ended, right and wrong, in one bar."""
    found, (right, n) = tally(w), counted(w, OUTCOME)
    groups = dict[str, list[tuple[str, str, int]]]()
    for label, row in ((label, row) for label, row in LABELS.items() if label in found):
        groups.setdefault(row["group"], []).append(
            (row["kind"], w.say(f"label.{label}"), found[label])
        )
    title = w.say("sheet.ended_right", n=count(right), all=count(n)) + w.say("headline.end")
    shown = tuple((w.say(f"sheet.{name}"), tuple(parts)) for name, parts in groups.items())
    return blocks.Bar(title, w.say("sheet.bar_note"), shown) if found else None


def gates(w: Formatter) -> Section | None:
    """Return every gate; nothing where there is none."""
    rows, judging = records(w.gates), deciding(w.whole.gates)
    table = Table(_heads(w), tuple(_row(w, row) for row in sorted(rows, key=_urgency)), cards=True)
    lead, badge = w.say("gates.lead", level=w.level), next(iter(by_outcome(w, judging)), "")
    return w.section("gates", _finding(w, judging), lead, [table], badge) if rows else None


def cases(w: Formatter) -> list[tuple[str, str, str, str]]:
    """Return every gate as a case of `ragnb.diagnostics.junit`, with the words of its row in the table."""
    heads, out = [head.removeprefix(">") for head in _heads(w)], []
    for gate in records(w.whole.gates):
        skipped = gate["outcome"] in ("no_data", "undecided") and gate["reason"] == ""
        kind = "failure" if gate["blocks"] else "skipped" if skipped else "system-out"
        system = "" if gate["system"] is None else f" ({gate['system']})"
        title = f"{gate['gate']}{system}: {gate['metric']} {gate['op']} {gate['threshold']:g}"
        *told, _, flip, more = (cell(one, one_line) for one in _row(w, gate))
        told += [
            f"{head}: {text}"
            for head, text in zip(heads[4:], (flip, more), strict=True)
            if text != MISSING
        ]
        words = w.say("list.also").join(text for text in told if text != MISSING)
        out.append((title, kind, gate["outcome"], words))
    return out


def _heads(w: Formatter) -> tuple[str, ...]:
    keys = (
        "gates.asks",
        "gates.outcome",
        ">gates.seen",
        "gates.limit",
        ">gates.flip",
        ">gates.more",
    )
    return tuple(map(w.head, keys))


def _urgency(row: Row) -> tuple[int, int, float]:
    """Order gates by outcome, the advisory ones last; within one the least firm first."""
    firm: float = 0.0 if pd.isna(row["p_flip"]) else -row["p_flip"]
    return (
        int(row["reason"] != ""),
        0 if row["blocks"] else [*GATE_TONES].index(row["outcome"]),
        firm,
    )


def _finding(w: Formatter, rows: list[dict[str, object]]) -> str:
    n = {key: sum(row["outcome"] == key for row in rows) for key in GATE_TONES}
    if not rows:
        lost = [gate for gate in records(w.whole.gates) if gate["role"] == "completeness"]
        failed = sum(bool(gate["blocks"]) for gate in lost)
        if failed:
            return texts.counted(w.say, "gates.incomplete", failed)
        return w.say("gates.advisory_only")
    key = (
        "failed"
        if n["fail"]
        else "open"
        if n["undecided"]
        else "no_data"
        if not n["pass"]
        else "passed"
        if n["pass"] == len(rows)
        else "passed_some"
    )
    key += "_open" if n["fail"] and n["undecided"] else ""
    if key == "passed":
        return texts.counted(w.say, "gates.finding_passed", len(rows))
    counts = {"fail": n["fail"], "open": n["undecided"], "passed": n["pass"], "n": len(rows)}
    return w.say(f"gates.finding_{key}", **counts)


def _row(w: Formatter, gate: Row) -> tuple[object, ...]:
    metric, outcome = gate["metric"], w.outcome(gate)
    key = {"advisory": "gates.advisory", "not the candidate": "gates.other_system"}.get(
        gate["reason"]
    )
    kind = [Small(w.say(key))] if key else []
    if gate["role"] == "completeness":
        return w.requirement(gate), (outcome, *kind), gate_words(w, gate), "", "", ""
    asks, seen, place = (w.requirement(gate), Code(w.code(gate))), ("",), ("", Small(""))
    if not pd.isna(gate["value"]):
        words = ", ".join(filter(None, [w.ends(metric, gate), w.n(gate)]))
        seen = (w.value(metric, gate["value"], gate), Small(words))
        place = _place(w, gate)
    flip = "" if pd.isna(gate["p_flip"]) else chance(gate["p_flip"])
    return asks, (outcome, *kind), seen, place, flip, _more(w, gate)


def _place(w: Formatter, gate: Row) -> tuple[Estimate | str, Small]:
    """Return where the value stands beside the limit, drawn and in words: by how much it meets or misses it."""
    metric, at, above = gate["metric"], float(gate["threshold"]), gate["op"] == ">="
    gap = (gate["value"] - at) * (1 if above else -1)
    digits = w.digits(metric, gate)
    if w.is_share(metric):
        by = w.say("gates.points", n=f"{abs(100 * gap):.{digits}f}")
    else:
        by = number(abs(gap), digits)
    words = Small(w.say("gates.meets" if gap >= 0 else "gates.misses", by=by))
    if metric not in w.rows or gate["role"] == "difference" or (span := w.span(metric)) is None:
        return "", words
    shaded = (at, span[1]) if above else (span[0], at)
    return w.estimate(metric, gate, thresholds=((w.limit(metric, at), at),), shaded=shaded), words


def _more(w: Formatter, gate: Row) -> str:
    """Say how many more questions would decide a gate; a number beyond reach is said as such."""
    if gate["outcome"] != "undecided" or pd.isna(gate["low"]):
        return ""
    if gate["metric"] in incomplete_metrics(w):  # what is lost would decide it, not more questions
        return ""
    if pd.isna(gate["more_needed"]):
        return w.say("gates.more_documents" if if_documents_fail(gate) else "gates.too_close")
    return w.say("gates.about", n=count(gate["more_needed"]))


def judge(w: Formatter) -> Section | None:
    """Return the verdict of the calibration; without human labels, that nobody can say."""
    card = w.sheet.calibration
    if card is None:
        lexical = all(name in METRICS and METRICS[name].family == "wording" for name in w.quality)
        finding = w.say("judge_trust.no_judge" if lexical else "judge_trust.unvalidated")
        text = None if lexical else Text((w.say("judge_trust.unvalidated_why"),))
        return (
            w.section("judge", finding, "", [text], w.say("judge_trust.no_labels"))
            if w.quality
            else None
        )
    first, *rest = card.reasons
    rows, target = records(card.verdicts), ((w.say("judge_trust.target"), card.target),)

    def ends(row: Row) -> str:
        return markup.ends(row["low"], row["high"], percent=True)

    def drawn(row: Row) -> Estimate:
        values, span = (row["share"], row["low"], row["high"]), (0.0, 1.0)
        return Estimate(percent(row["share"]), ends(row), *values, span, target, text=row_name(row))

    def bias(row: Row) -> tuple[Any, ...]:
        low, high = number(row["bias_low"]), number(row["bias_high"])
        return number(row["bias"]), Small("" if low == MISSING else f"{low} … {high}")

    table = w.table(
        rows,
        {
            "judge_trust.dimension": row_name,
            "judge_trust.verdict": lambda row: Mark(
                TONES[row["verdict"]], ", ".join([row["verdict"], *row["sides"]])
            ),
            ">judge_trust.within": lambda row: (percent(row["share"]), Small(ends(row))),
            "measures.scale": drawn,
            ">judge_trust.bias": bias,
            ">judge_trust.n": lambda row: str(row["n"]),
        },
        cards=True,
    )
    why = tuple(
        (f"{row_name(row)}: {row['verdict']}", Small(" ".join(row["reasons"]))) for row in rows
    )
    bands = [
        (part.name, block) for part in parts(card) if part.key == "bands" for block in part.blocks
    ]
    shown = [
        Text(tuple(rest), "list") if rest else None,
        table,
        Text(why, "list") if len(rows) > 1 else None,
        *(block._replace(folded=name) for name, block in bands if isinstance(block, Table)),
        Text((w.say("judge_trust.rest"),), "note"),
    ]
    return w.section(
        "judge", first, w.say("judge_trust.lead"), shown, Mark(TONES[card.verdict], card.verdict)
    )


def calibrated(
    scenario: Scenario,
    ratings: pd.DataFrame | None,
    *,
    judge: Sequence[str] = (),
    scale: Any = None,
    **asked: Any,
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
    how: dict[str, Any] = {
        name: getattr(scenario, name) for name in ("labels_planned", "level", "lang")
    }
    return calibrate(ratings, judge=judges, scale=scale, cluster=cluster, **how, **asked)


def row_name(row: Mapping[Any, Any]) -> str:
    """Return what a row of the verdicts is called; a judge that is only called ``judge`` needs no name."""
    names = [row["judge"]] * (row["judge"] != "judge") + [row["dimension"]] * (
        row["dimension"] != "all"
    )
    return " · ".join(map(str, names)) or str(row["judge"])


# Is it better than before: paired differences with their intervals; and systems side by side


_MOST_LINKS = 20


def comparison(w: Formatter) -> Section | None:
    """Return how the run differs from its baseline, and several systems side by side; nothing without either."""
    table = w.whole.comparison
    rows = [] if table is None else records(table := table[table["n_common"] > 0])
    accepted = w.whole.accepted
    if accepted is not None:
        accepted = accepted[accepted["n_common"] > 0]
    said = [] if accepted is None else [*_beside_anchor(w, accepted)]
    if not rows and not said and w.whole.systems is None:
        return None
    beside_anchor = [difference_table(accepted, w.lang, name=w.title)] if said else []
    lines = [Text((line,)) for line in said]
    if not rows and (rungs := _rungs(w)):
        lead = w.say("compared.lead", level=w.level)
        below = [*lines, *beside_anchor, *_ladder(w, rungs), *_systems(w), radar(w)]
        return w.section("comparison", ladder_finding(w, rungs), lead, below)
    others = [*beside_anchor, *_systems(w), radar(w), _changed(w)]
    if not rows and said:
        lead = w.say("compared.lead", level=w.level)
        return w.section("comparison", said[0], lead, others)
    shown = [*lines, *others]
    if not rows:
        finding = w.say("compared.systems", n=w.whole.systems["system"].nunique())
        return w.section(
            "comparison", finding, w.say("compared.systems_lead", level=w.level), shown
        )
    first, *more = [row for row in rows if row["primary"]] or rows
    finding = _difference_finding(w, first)
    badge = outcome_mark(first, w.say) if first["primary"] or not more else ""
    differences = difference_table(table, w.lang, name=w.title)
    return w.section(
        "comparison", finding, w.say("compared.lead", level=w.level), [differences, *shown], badge
    )


def _difference_finding(w: Formatter, row: Mapping[Any, Any]) -> str:
    """Return a sentence on one difference."""
    words = {
        "name": row["baseline"],
        "metric": w.name(row["metric"]),
        "value": difference(row, w.say),
    }
    return w.say(f"compared.finding_{row['outcome']}", **words)


def _beside_anchor(w: Formatter, accepted: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on each candidate beside the accepted run."""
    decisive = accepted[accepted["primary"]] if accepted["primary"].any() else accepted[:1]
    for row in records(decisive):
        yield w.say("compare.anchor", head=_difference_finding(w, row))


_LEAST_COMMON = 20  # questions that both systems answered; fewer are no comparison


def _rungs(w: Formatter) -> list[dict[Any, Any]]:
    """Return the differences that decide between the best of several systems and the others."""
    table = w.whole.ladder
    return [] if table is None else records(table[table["primary"]])


def _is_open(rungs: list[dict[Any, Any]]) -> bool:
    """Whether nothing is known of the best of several systems and one of the others."""
    few = any(row["n_common"] < _LEAST_COMMON for row in rungs)
    return few or any(row["outcome"] in ("undecided", "worse", "worse_within") for row in rungs)


def ladder_finding(w: Formatter, rungs: list[dict[Any, Any]]) -> str:
    """Return in one sentence whether the best of several systems is better than the others."""
    nearest = next((row for row in rungs if row["outcome"] != "better"), rungs[0])
    words = {
        "first": nearest["candidate"],
        "other": nearest["baseline"],
        "difference": difference(nearest, w.say),
        "margin": f"{nearest['margin']:g}",
        "n": count(nearest["n_common"]),
    }
    if nearest["n_common"] < _LEAST_COMMON:
        return w.say("ladder.few", **words)
    if nearest["outcome"] == "better":
        words["others"] = w.list(f"{row['baseline']} ({change(row, w.say)})" for row in rungs)
        return w.say("ladder.better", **words)
    key = nearest["outcome"] if nearest["outcome"] in ("better_within", "same") else "open"
    needed = nearest["questions_needed"]
    if key == "open" and not pd.isna(needed) and needed > nearest["n_common"]:
        words["more"] = count(needed - nearest["n_common"])
        key = "open_more"
    return w.say(f"ladder.{key}", **words)


def _ladder(w: Formatter, rungs: list[dict[Any, Any]]) -> Iterator[Table]:
    """Yield the differences of the best system from each other one, the metric that decides first."""
    for row in rungs:
        of_pair = w.whole.ladder[w.whole.ladder["baseline"] == row["baseline"]]
        yield difference_table(of_pair, w.lang, name=w.title)


def _systems(w: Formatter) -> Iterator[Table]:
    """Yield the means of all systems, on common questions first where they answered different ones."""
    names, n = [*w.total, *w.quality, *w.rates], count(w.whole.common_questions)
    tables = {"common": w.whole.common, "all": w.whole.systems}
    for key, table in (
        (key, table) for key, table in tables.items() if w.shown is not None and table is not None
    ):
        cells = {(row["system"], row["metric"]): _mean(w, row) for row in records(table)}
        heads = (w.say("column.system"), *(f">{w.title(name)}" for name in names))
        rows = tuple(
            (one, *(cells[one, name] for name in names)) for one in _best_first(table, names[0])
        )
        yield Table(heads, rows, caption=w.say(f"compared.{key}_caption", n=n, level=w.level))


def _changed(w: Formatter) -> Text | None:
    """Return the questions that were fixed and broken."""
    out = []
    for key, tone in (
        {"fixed": "good", "broken": "bad"}.items() if w.whole.changed is not None else ()
    ):
        names = w.whole.changed.loc[w.whole.changed["change"] == key, "sample_id"].tolist()
        rest = [Small(f"+{len(names) - _MOST_LINKS}")] if len(names) > _MOST_LINKS else []
        mark = Mark(tone, w.say(f"compared.n_{key}", n=len(names)))
        out += [(mark, *map(w.link, names[:_MOST_LINKS]), *rest)] if names else []
    return Text(tuple(out), "changed") if out else None


# How the run was made, what to keep in mind, and the terms of the page


def details(w: Formatter) -> Section:
    """Return the settings and weights, the files, where the rows went, and the notes."""
    elsewhere, n = w.whole.notes["code"].isin(DATA["notes"]["elsewhere"]), len(w.whole.inputs)
    notes = tuple(w.whole.notes.loc[~elsewhere, "text"])
    settings = w.table(
        _settings(w).items(),
        {
            "column.setting": lambda row: row[0],
            "column.used": lambda row: row[1],
        },
        folded=w.say("details.settings"),
    )
    files = w.table(
        w.whole.inputs,
        {
            "column.role": lambda row: w.say(f"role.{row['role']}"),
            "column.file": lambda row: row["path"],
            ">column.rows": lambda row: count(row["rows"]),
            "column.hash": lambda row: Code(str(row["sha256"])),
        },
        folded=w.say("details.inputs"),
    )
    steps = w.table(
        records(w.whole.ledger),
        {
            "column.step": lambda row: row["step"],
            ">column.rows": lambda row: count(row["rows"]),
        },
        folded=w.say("details.ledger"),
    )
    finding = w.say(
        "details.from_files" if n > 1 else "details.from_file" if n else "details.from_frame", n=n
    )
    shown = [Text(notes, "list") if notes else None, settings, files if n else None, steps]
    shown.append(account_table(w))
    shown.append(Text((w.say("details.rest"),), "note"))
    return w.section("run", finding, w.say("details.lead") if notes else "", shown)


def _settings(w: Formatter) -> dict[str, str]:
    """Return what was set, by its name, each as it is written; file names without their folders."""
    scenario, rubric, names = (
        w.sheet.scenario,
        w.sheet.scenario.rubric,
        texts.entry(w.lang, "setting"),
    )
    weights = [
        f"{w.title(name)} {row['weight']:g}"
        for name, row in w.rows.items()
        if not pd.isna(row["weight"])
    ]
    docs = [f"{name} {weight:g}" for name, weight in scenario.doc_weights.items()]
    passing = (
        rubric
        and f"{rubric.low:g}–{rubric.high:g}, {rubric.passing.metric} ≥ {rubric.passing.threshold:g}"
    )
    values: dict[str, Any] = {name: getattr(scenario, name, "") for name in names} | {
        "file": scenario.path and scenario.path.name,
        "level": w.level,
        "rubric": passing,
        "where": ", ".join(f"{key} = {value}" for key, value in scenario.where.items()),
        "corpus": scenario.corpus if scenario.corpus != "sample" else "",
        "ragnb": metadata.version("ragnb"),
        "metric_weights": ", ".join(weights),
        "doc_weights": docs and ", ".join([*docs, w.say("details.others")]),
    }
    values |= {
        name: w.say("column.yes" if values[name] else "column.no") for name in ("orient", "rescale")
    }
    if w.sheet.outcomes is None:
        values |= dict.fromkeys(
            ("refusal", "patterns", "partial", "split", "containment", "join"), ""
        )
    given = {names[name]: value for name, value in values.items() if value}
    return {
        name: value if isinstance(value, str) else " | ".join(value)
        for name, value in given.items()
    }


def glossary(w: Formatter) -> Section:
    """Return one sentence for each term of the page, and for each metric of this run."""
    skipped = {"documents", "clusters", "questions"} - {f"{w.unit}s"}
    skipped |= set() if len(w.gates) else {"gate", "inconclusive", "flip"}
    skipped |= set() if w.whole.comparison is not None else {"holm", "same"}
    skipped |= set() if w.sheet.outcomes is not None else {"refusal", "right_citation"}
    terms = [
        (term["word"].format(level=w.level), key, term["text"].format(level=w.level))
        for key, term in texts.entry(w.lang, "glossary").items()
        if key not in skipped
    ]
    # The site is wherever it was built or put; the page itself refers to nothing outside unless it is told where.
    if site := os.environ.get("RAGNB_DOCS", ""):
        site = (Path(site).resolve().as_uri() if Path(site).is_dir() else site).rstrip("/")
    for name in (name for name in w.rows if name != TOTAL and w.gloss(name)):
        more = Link(
            w.say("sheet.catalogue"),
            f"{site}/{w.lang}/generated/catalogue/metrics.html#metric-{name}",
        )
        terms.append((w.title(name), name, (w.gloss(name), *([more] if site else []))))
    return w.section("glossary", w.say("section.glossary"), "", [Text(tuple(terms), "terms")])


# Every question of a run, those that ended badly first, with its answer, passages and what its scores lack


MOST_WHOLE, MOST_LISTED = 1000, 10_000
_TEXT_BYTES = 1_000_000  # of all texts of the page, each passage once, so that it opens at once
_MOST_PASSAGES, _MOST_FILTER, _MOST_SCORES = 10, 200, 3
_BELOW = "__below"
_WORDS = (
    "shown",
    "search",
    "any",
    "more",
    "filters",
    "passages",
    "link",
    "again",
)  # that the script says


def questions(w: Formatter) -> Section | None:
    """Return the questions; nothing where no row is known."""
    made = _Rows(w, worst_first(w))
    rows = records(made.scores)
    samples = tuple(map(made.sample, rows[:MOST_WHOLE]))
    rest = tuple((made.plain(row), made.filters(row)) for row in rows[MOST_WHOLE:])
    every, filters = (
        count(w.sheet.rows),
        [*(sample.filters for sample in samples), *(held for _, held in rest)],
    )
    key = "streamed" if w.sheet.streamed else "all" if len(samples) == w.sheet.rows else "most"
    say = {
        word: made.words[word] for word in _WORDS
    }  # the script fills what stands in their braces
    say["standing"] = w.say(f"questions.standing_{key}", n=count(len(samples)), all=every)
    heads = (w.say("column.sample_id"), *(head for head, _ in made.columns))
    block = blocks.Samples(
        heads, samples, made.chips(filters), made.choices(), say, w.sheet.rows, rest
    )
    own = [held for held in filters if w.shown is None or held["s"] == w.shown]
    wrong = sum(held["w"] == "1" for held in own)
    finding = _questions_finding(w, wrong, is_labelled=made.labelled)
    return (
        w.section("questions", finding, w.say("questions.lead"), [block], every) if rows else None
    )


def _questions_finding(w: Formatter, wrong: int, *, is_labelled: bool) -> str:
    """Return how many answers are wrong, do not pass their rubric, or are below a threshold."""
    every = count(w.sheet.rows if w.shown is None else w.answers)
    total = w.rows.get(TOTAL, {"n": 0})
    unscored = w.answers - int(total["n"])
    key = "questions.wrong" if is_labelled else "questions.lowest"
    if not is_labelled:
        if not any(row["n"] for row in w.rows.values()):
            return w.say("questions.none_scored", all=every)
        if failing := _not_passing(w):
            return w.say("questions.not_passing", **failing)
        if not any(w.thresholds(name) for name in (*w.quality, *w.rates)):
            return texts.counted(w.say, "questions.plain", every)
        if unscored > 0 and total["n"]:
            scored = count(int(total["n"]))
            return w.say(
                "questions.lowest_scored", n=count(wrong), scored=scored, missing=count(unscored)
            )
    if w.shown is None:
        return w.say(key, n=count(wrong), all=every)
    return w.say(f"{key}_of", n=count(wrong), all=every, system=one_line(w.shown, 40))


def _not_passing(w: Formatter) -> dict[str, str]:
    """Return how many answers do not pass the rubric, of how many that have its score; empty without a rubric."""
    rubric, scores = w.sheet.scenario.rubric, w.sheet.scores
    if rubric is None or (rule := rubric.passing).metric not in scores:
        return {}
    values = scores[rule.metric].astype(float)
    if w.shown is not None and "system" in scores:
        values = values[scores["system"].astype(str) == w.shown]
    values = values.dropna()
    failing = int((values < rule.threshold).sum())
    named = {"metric": w.name(rule.metric), "at": f"{rule.threshold:g}"}
    return {"n": count(failing), "all": count(len(values)), **named} if len(values) else {}


def worst_first(w: Formatter) -> pd.DataFrame:
    """Return the rows that the page lists, by label, then by weighted score; those without either come last.

    The column `_BELOW` holds the metrics that are beyond their threshold, `label` nothing but labels of ours.
    """
    scores: pd.DataFrame = w.sheet.scores
    low = pd.DataFrame(
        {name: below(w, name) for name in [*w.quality, *w.rates] if name in scores}, scores.index
    )
    label = scores.reindex(columns=["label"])["label"].map(str)
    label, place = (
        label.where(label.isin([*LABELS])),
        label.map({name: i for i, name in enumerate(BAD_FIRST)}),
    )
    order = np.lexsort((scores[TOTAL].round(DIGITS).fillna(np.inf), place.fillna(9.0)))[
        :MOST_LISTED
    ]
    names: Any = [low.columns[flags].tolist() for flags in low.iloc[order].to_numpy(bool)]
    return scores.assign(label=label).iloc[order].assign(**{_BELOW: names})


class _Rows:
    """Turn rows into samples; each passage is written once and numbered."""

    def __init__(self, w: Formatter, scores: pd.DataFrame) -> None:
        self.w, self.scores, self.doc = w, scores, w.sheet.scenario.doc
        self.words = texts.entry(w.lang, "questions")
        self.metrics = [name for name in w.quality if name in scores]
        self.texts = [name for name in ("answer", "ground_truth_answer") if name in scores]
        self.keys, self.numbers = dict[str, int](), dict[str, int]()
        known = {} if w.sheet.changed is None else w.sheet.changed.set_index("sample_id").to_dict()
        self.changed, self.before = known.get("change", {}), known.get("before_label", {})
        self.labelled = bool(scores["label"].notna().any())
        self.columns: list[tuple[str, Write]] = [(w.say("column.question"), _line("question", 160))]
        self.columns += [(w.say("column.system"), _line("system", 40))] * (
            w.whole.systems is not None
        )
        self.columns += [(w.say("column.document"), _line(self.doc, 60))] * (self.doc in scores)
        self.columns += [(w.say("column.label"), self.label)] * self.labelled
        shown = [*self.metrics[:_MOST_SCORES], *w.total]
        self.columns += [(f">{w.title(name)}", partial(self.score, name)) for name in shown]
        whole = scores.head(MOST_WHOLE)
        every = [str(one) for name in self.texts for one in whole[name].dropna()]
        every += {str(one) for cell in whole.get("retrieved_contexts", ()) for one in _list(cell)}
        self.most = longest([len(text.encode("utf-8", "replace")) for text in every], _TEXT_BYTES)

    def key(self, row: Row) -> str:
        """Return what a link to the row names: its id, counted where it comes again."""
        name = key = key_of(_id(row))
        while anchor(key) in self.keys:  # ids that differ in white space alone would have one place
            self.keys[anchor(name)] += 1
            key = f"{name}~{self.keys[anchor(name)]}"
        self.keys[anchor(key)] = 1
        return key

    def label(self, row: Row) -> Mark | str:
        return label_mark(self.w, row["label"]) if _text(row, "label") else ""

    def score(self, name: str, row: Row) -> str:
        return "" if is_missing(row.get(name)) else self.w.value(name, row[name])

    def plain(self, row: Row) -> tuple[str, ...]:
        """Return the cells of a row that only the script lists."""
        cells = [self.key(row), *(write(row) for _, write in self.columns)]
        return tuple(cell.text if isinstance(cell, Mark) else cell or MISSING for cell in cells)

    def filters(self, row: Row) -> dict[str, str]:
        """Return what the filters look at."""
        label, low, known = _text(row, "label"), row[_BELOW], _id(row)
        wrong = label not in RIGHT if label else bool(low)
        found = {
            "w": "1" if wrong else "0",
            "o": label,
            "d": _text(row, self.doc),
            "m": "\n".join(low),
        }
        if self.w.whole.systems is not None:
            found["s"] = _text(row, "system")
        return found | ({"c": self.changed[known]} if known in self.changed else {})

    def sample(self, row: Row) -> blocks.Sample:
        """Return a row whole."""
        key, passages = self.key(row), [str(one) for one in _list(row.get("retrieved_contexts"))]
        ids = [
            str(one.get("id", "")) if isinstance(one, dict) else ""
            for one in _list(row.get("chunks"))
        ]
        say, words, cited = (
            self.w.say,
            self.words["cited"],
            {str(one) for one in _list(row.get("citations"))},
        )
        lines: list[tuple[str, Any]] = []
        for name in (name for name in self.texts if not is_missing(row[name])):
            text = cut(row[name], self.most)
            lines.append(
                (say(f"column.{name}"), matched(text, passages) if name == "answer" else text)
            )
        if before := _text(self.before, _id(row)):
            lines.append((say("questions.before"), say(f"label.{before}")))
        shown = []
        for name, passage in zip(
            [*ids, *[""] * len(passages)], passages[:_MOST_PASSAGES], strict=False
        ):
            text, title = (
                cut(passage, self.most),
                f"{name} · {words}" if name and name in cited else name,
            )
            shown.append((self.numbers.setdefault(text, len(self.numbers) + 1), title, text))
        if not passages and ids:
            names = ", ".join(f"{one} ({words})" if one in cited else one for one in ids)
            lines.append((say("questions.passages"), one_line(names, 600)))
        cells = (key, *(write(row) for _, write in self.columns))
        return blocks.Sample(
            key, cells, self.filters(row), tuple(lines), tuple(shown), tuple(self.reasons(row))
        )

    def reasons(self, row: Row) -> Iterator[str]:
        """Yield the scores that are not columns, then why scores are missing."""
        w, gone = self.w, dict[str, list[str]]()
        more = [name for name in self.metrics[_MOST_SCORES:] if not is_missing(row[name])]
        if more:
            yield " · ".join(f"{w.title(name)} {w.value(name, row[name])}" for name in more)
        for name in (name for name in self.metrics if is_missing(row[name])):
            gone.setdefault(_why(w, name, row), []).append(w.title(name))
        yield from (f"{w.list(names, most=8)}: {reason}" for reason, names in gone.items())
        if row.get("partial") is True:
            yield w.say("questions.partial")
        if miss := _text(row, "miss"):
            yield f"{w.say('column.miss')}: {miss}"

    def chips(self, every: Sequence[Row]) -> tuple[tuple[str, str, int], ...]:
        """Return the buttons of the first filter with their counts; the first is pressed."""
        say, names = self.w.say, ("wrong", "right") if self.labelled else ("low", "fine")
        wrong, right = (say(f"questions.chip_{name}") for name in names)
        chips = [
            ("wrong", wrong, "w", "1"),
            *((one, say(f"label.{one}"), "o", one) for one in BAD_FIRST),
        ]
        chips.append(("right", right, "w", "0"))
        chips += [(one, say(f"compared.{one}"), "c", one) for one in ("broken", "fixed")]
        counts = [
            (code, label, sum(one.get(key) == value for one in every))
            for code, label, key, value in chips
        ]
        return (*(chip for chip in counts if chip[2]), ("", say("questions.chip_all"), len(every)))

    def choices(self) -> dict[str, tuple[str, tuple[tuple[str, str], ...]]]:
        """Return the lists to choose from: documents, and metrics below their threshold."""
        w, scores = self.w, self.w.sheet.scores
        docs = scores[self.doc].dropna().unique().tolist() if self.doc in scores else []
        low = [
            name
            for name in [*w.quality, *w.rates]
            if any(name in names for names in self.scores[_BELOW])
        ]
        found = {
            "d": (w.say("column.document"), tuple((str(doc), one_line(doc, 60)) for doc in docs)),
            "m": (w.say("questions.below"), tuple((name, w.title(name)) for name in low)),
        }
        if w.whole.systems is not None:
            names = w.whole.systems["system"].unique().tolist()
            options = tuple((str(name), one_line(name, 60)) for name in names)
            found["s"] = (w.say("column.system"), options)
        return {key: one for key, one in found.items() if 0 < len(one[1]) <= _MOST_FILTER}


def _text(row: Row, key: str) -> str:
    return "" if is_missing(row.get(key)) else str(row[key])


def _id(row: Row) -> str:
    """Return what a question is known by."""
    return _text(row, "sample_id") or _text(row, "question")


def _line(key: str, most: int) -> Write:
    return lambda row: one_line(_text(row, key), most)


def _list(value: Any) -> list[Any]:
    return (
        list(value)
        if isinstance(value, list | tuple | np.ndarray)
        else [value] * isinstance(value, str)
    )


def _why(w: Formatter, name: str, row: Row) -> str:
    """Return why a cell holds no score, else the word for that kind of absence."""
    status, reason = (row.get(f"{name}__{what}") for what in ("status", "reason"))
    word = w.say(f"column.{status if status in ('failed', 'not_applicable') else 'missing'}")
    return (
        word
        if is_missing(reason) or not str(reason).strip()
        else f"{word}: {one_line(reason, 120)}"
    )


def longest(sizes: Sequence[int], budget: int) -> int:
    """Return at what length texts are cut so that all of them together fit: short ones stay whole.

    Examples
    --------
    >>> longest([10, 10, 500, 500], 1000), longest([10, 20], 1000)
    (490, 1000)
    """
    ordered = np.sort(np.array(sizes, dtype=int))
    room = (budget - np.cumsum(ordered) + ordered) // np.arange(
        len(ordered), 0, -1
    )  # for each of those left
    return int(next(iter(room[ordered > room]), budget))


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
    "summary": summary,
    "fix": fix_first,
    "metrics": metrics,
    "gates": gates,
    "outcomes": outcomes,
    "log": log,
    "comparison": comparison,
    "documents": documents,
    "judge": judge,
    "questions": questions,
    "run": details,
    "glossary": glossary,
}
"""Key of a section -> its function, in the order in which a reader asks."""
