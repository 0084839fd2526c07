"""How an assessment's metrics, values, intervals and gates are written: one formatter a page."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import markup, texts
from ragnb.diagnostics import RULES
from ragnb.diagnostics.completeness import COMPLETENESS
from ragnb.diagnostics.rules import past
from ragnb.markup import (
    MISSING,
    amount,
    amounts,
    blocks,
    count,
    is_missing,
    number,
    one_line,
    percent,
    telling_digits,
)
from ragnb.markup.blocks import (
    Block,
    Estimate,
    Link,
    Mark,
    Section,
    Small,
    Table,
)
from ragnb.markup.rendering import anchor, radar_svg
from ragnb.schema import METRICS, TOTAL, quantile_of, records, scale_of

OUTCOME = "correct_outcome"
DATA = tomllib.loads(Path(__file__).with_name("labels.toml").read_text(encoding="utf-8"))
LABELS: dict[str, dict[str, str]] = DATA["labels"]
# The outcomes of gates, the worst first, and the tone of each.
GATE_TONES = {"fail": "bad", "undecided": "watch", "no_data": "none", "pass": "good"}
# The sections that show one of several systems.
_OF_ONE_SYSTEM = ("fix", "metrics", "judged", "outcomes", "retrieval", "documents", "turns")
RULE_OF = {rule.metric: rule for rule in RULES if rule.also is None}


Row = Mapping[Any, Any]
Write = Callable[[Any], Any]
Found = TypeVar("Found")


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
        self.whole = sheet
        self.shown = getattr(sheet, "shown_system", None)
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
        rubric = sheet.scenario.rubric
        if rubric is None:
            names = set()
        else:
            names = {one.name for one in rubric.dimensions}
        apart = [name for name in self.quality if name in names and not self.rows[name]["weight"]]
        others = [name for name in self.quality if name not in names]
        # The dimensions of a rubric that have a section of their own beside metrics of another scale.
        self.dimensions = []
        if others and len(apart) + len(others) == len(self.quality):
            self.dimensions = apart
        self.quality = [name for name in self.quality if name not in self.dimensions]
        # The thresholds of a rule mean nothing for a metric of that name on another scale.
        usual = {name: (metric.scale, metric.better) for name, metric in METRICS.items()}
        fits = [
            name for name in self.rows if (self.scales[name], self.better[name]) == usual.get(name)
        ]
        self.rules = {name: RULE_OF[name] for name in fits if name in RULE_OF}
        self.total = [TOTAL] if self.quality or self.known(TOTAL) else []
        # What a cluster is: a document, a cluster that somebody named, or a row.
        self.unit = str(self.rows[TOTAL]["cluster_unit"])
        self.level = f"{100 * sheet.scenario.level:g} %"
        self.found: dict[Callable[[Formatter], Any], Any] = {}  # what `once` keeps

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

    # Words

    def name(self, metric: str) -> str:
        """Return what a metric is called, in words where they are known."""
        found = quantile_of(metric)
        if found is not None:
            return self.quantile(*found)
        return str(self.about(metric).get("name", metric))

    def quantile(self, q: float, column: str) -> str:
        """Return a quantile of a measure of operation in words."""
        if q == 0.5:
            return self.say("operations.median_of", name=column)
        return self.say("operations.quantile_of", name=column, percent=f"{100 * q:g}")

    def title(self, metric: str) -> str:
        """Return the name as a heading begins."""
        name = self.name(metric)
        if self.about(metric):
            return name[:1].upper() + name[1:]
        return name

    def about(self, metric: str) -> dict[str, str]:
        """Return the entry of the catalogue of metrics; an empty one for a metric that is not in it."""
        return dict(texts.entry(self.lang, "metrics").get(metric, {}))

    def gloss(self, metric: str) -> str:
        """Return what a metric measures in a sentence; of a rubric's dimension its scale and bands."""
        rubric = self.sheet.scenario.rubric
        if rubric is not None:
            for one in rubric.dimensions:
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
        if len(names) <= most:
            return shown
        return self.say("list.more", names=shown, n=len(names) - most)

    def link(self, sample: object) -> Link:
        """Return a link to a question by what it is known by, as `key_of` names its place."""
        return Link(one_line(sample, 40), f"#q={quote(anchor(key_of(sample)))}")

    def head(self, key: str) -> str:
        """Return the head of a column by the key of its text; one of numbers begins with ``>``."""
        text = self.say(key.removeprefix(">"), level=self.level)
        if key.startswith(">"):
            return f">{text}"
        return text

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
        name = self.say(f"section.{key}")
        if self.shown is not None and key in _OF_ONE_SYSTEM:
            name = f"{name} · {one_line(self.shown, 30)}"
        return Section(key, name, finding, lead, there, badge, self.lang)

    # Numbers

    def is_share(self, metric: str) -> bool:
        return metric in self.rates or metric in COMPLETENESS

    def is_amount(self, metric: str) -> bool:
        """Whether a metric is a measure of operation or a quantile of one, written in its own digits."""
        return metric in self.operations or quantile_of(metric) is not None

    def value(self, metric: str, value: Any, beside: Row | None = None) -> str:
        """Write a value of a metric without its interval, to the digits that a gate `beside` it needs."""
        if self.is_amount(metric):
            return amount(value)
        write = percent if self.is_share(metric) else number
        return write(value, self.digits(metric, beside or {}))

    def digits(self, metric: str, row: Row) -> int:
        """Return how many decimals tell a gate's value and interval from its threshold."""
        times, least = (100, 1) if self.is_share(metric) else (1, 3)
        if pd.isna(row.get("threshold", math.nan)):
            return least
        numbers = [times * row[name] for name in ("value", "low", "high") if not pd.isna(row[name])]
        return telling_digits(numbers, times * row["threshold"], least)

    def limit(self, metric: str, value: float) -> str:
        """Write a threshold: a percentage as it was set, a score with three decimals."""
        if self.is_amount(metric):
            return amount(value)
        if self.is_share(metric):
            return f"{100 * value:g} %"
        return number(value)

    def ends(self, metric: str, row: Row) -> str:
        """Write the interval alone, ``0.771–0.843``; nothing where there is none."""
        if self.is_amount(metric):
            return amounts(row["low"], row["high"])
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
        metric = row["metric"]
        side = "above" if row.get("op") == "<=" else "below"
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
        value = self.value(metric, row["value"], row)
        known = not pd.isna(row["value"])
        if self.is_share(metric):
            exact = value
        else:
            exact = number(row["value"], 4)
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

    def mean_cell(self, row: Row) -> tuple[object, ...]:
        """Return a mean with its interval and n below it."""
        metric = row["metric"]
        if pd.isna(row["value"]):
            return MISSING, Small(self.kind_of_gap(row))
        below = filter(None, [self.ends(metric, row), self.n(row)])
        return self.value(metric, row["value"]), Small(" · ".join(below))

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
        clusters = count(row["n_clusters"])
        unit = self.unit
        return self.n(row) + (
            "" if unit == "row" else texts.counted(self.say, f"verdict.{unit}s", clusters)
        )

    # Thresholds

    def thresholds(self, metric: str) -> tuple[tuple[str, float], ...]:
        """Return the named thresholds of a metric, in its own units, the milder one first."""
        if metric != TOTAL:
            rule: Any = self.rules.get(metric)
            if rule is None:
                known = {}
            else:
                known = {"warning": rule.warning, "critical": rule.critical}
            return tuple(
                (self.say(f"severity.{key}"), at) for key, at in known.items() if at is not None
            )
        low, high = self.span(TOTAL) or (0.0, 0.0)
        if low == high:
            bands = {}
        else:
            bands = {key: getattr(self.sheet.scenario.bands, key) for key in ("good", "watch")}
        return tuple(
            (self.say(f"mark.{key}"), low + (high - low) * at) for key, at in bands.items()
        )

    def tone(self, metric: str, value: Any) -> str:
        """Return good, watch or bad by the bands (the total) or the rule's thresholds; nothing without any."""
        limits = [at for _, at in self.thresholds(metric)]
        if pd.isna(value) or not limits:
            return ""
        better = self.better[metric]
        if past(value, limits[-1], better):
            return "bad"
        if past(value, limits[0], better):
            return "watch"
        return "good"

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
        low = self.rows[metric]["range_low"]
        high = self.rows[metric]["range_high"]
        if math.isfinite(low) and math.isfinite(high):
            return (low, high)
        return None

    # Gates

    def requirement(self, gate: Row) -> str:
        """Write what a gate asks in words: "At most 5 % of unanswerable questions are answered"."""
        metric = gate["metric"]
        limit = self.limit(gate["metric"], gate["threshold"])
        if gate["role"] == "completeness":
            return self.say(f"requirement.{gate['gate']}", at=limit)
        bound = self.bound("higher" if gate["op"] == ">=" else "lower", limit)
        if gate["role"] == "difference":
            key = "difference"
        else:
            key = "metric"
        plain = self.say(f"requirement.{key}", metric=self.title(metric), bound=bound.lower())
        if key == "metric":
            words = self.about(metric).get("requirement")
        else:
            words = None
        text = words.format(bound=bound) if words else plain
        if gate["system"] is None:
            return text
        return f"{gate['system']}: {text}"

    def bound(self, better: str, limit: str) -> str:
        """Write what is asked of a value: "at least 0.8" where higher is better, "at most" where lower is."""
        return self.say(
            "requirement.at_least" if better == "higher" else "requirement.at_most", at=limit
        )

    def code(self, gate: Row) -> str:
        """Write a gate by its identifiers: ``G2 · under_refusal ≤ 0.05``."""
        what = f"{gate['metric']} {'≥' if gate['op'] == '>=' else '≤'} {gate['threshold']:g}"
        if gate["gate"] == gate["metric"]:
            return what
        return f"{gate['gate']} · {what}"

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


def once(find: Callable[[Formatter], Found]) -> Callable[[Formatter], Found]:
    """Find something out about a run the first time that its page asks, and remember it."""

    @wraps(find)
    def remembered(w: Formatter) -> Found:
        if find not in w.found:
            w.found[find] = find(w)
        return cast(Found, w.found[find])

    return remembered


def below(w: Formatter, metric: str) -> pd.Series:
    """Return which rows of the sheet are beyond the milder threshold of a metric."""
    scores = w.sheet.scores
    limits = w.thresholds(metric)
    if metric not in scores or not limits:
        return pd.Series(False, index=scores.index)
    values = pd.to_numeric(scores[metric], errors="coerce")
    return pd.Series(past(values, limits[0][1], w.better[metric]), index=scores.index)


def chance(p: float) -> str:
    """Write a probability as a percentage; one that would be written as none is said to be small."""
    if p < 0.001:
        return "< 0.1 %"
    return percent(p)


def text_of(row: Row, key: str) -> str:
    if is_missing(row.get(key)):
        return ""
    return str(row[key])


def id_of(row: Row) -> str:
    """Return what a question is known by."""
    return text_of(row, "sample_id") or text_of(row, "question")


def list_of(value: Any) -> list[Any]:
    if isinstance(value, list | tuple | np.ndarray):
        return list(value)
    return [value] * isinstance(value, str)
