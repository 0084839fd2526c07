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
# Of a rule that looks at a second metric, too, the threshold alone judges no mean.
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
        # `whole` is what all systems share: gates, notes, rows. `sheet` is the system that is shown in detail.
        self.whole = sheet
        self.shown = getattr(sheet, "shown_system", None)
        if "system" in sheet.means:
            sheet = sheet.of_system(self.shown)
        self.sheet = sheet
        self.lang: str = sheet.scenario.lang
        self.say = texts.load(self.lang)
        self.rows: dict[str, Row] = {row["metric"]: row for row in records(sheet.means)}
        self.better: dict[str, Any] = {name: row["better"] for name, row in self.rows.items()}
        self.scales = {
            name: scale_of(name, row["range_low"], row["range_high"])
            for name, row in self.rows.items()
        }
        self.rates = [name for name, row in self.rows.items() if row["role"] == "rate"]
        self.operations = [name for name, row in self.rows.items() if row["role"] == "operation"]
        not_of_quality = {TOTAL, *self.rates, *self.operations}
        of_quality = [name for name in self.rows if name not in not_of_quality]
        self.dimensions = self._dimensions_apart(of_quality)
        self.quality = [name for name in of_quality if name not in self.dimensions]
        # The thresholds of a rule mean nothing for a metric of that name on another scale.
        usual = {name: (metric.scale, metric.better) for name, metric in METRICS.items()}
        fits = [
            name for name in self.rows if (self.scales[name], self.better[name]) == usual.get(name)
        ]
        self.rules = {name: RULE_OF[name] for name in fits if name in RULE_OF}
        # A list, so that it can be put before others: [*w.total, *w.quality].
        self.total = [TOTAL] if self.quality or self.known(TOTAL) else []
        # What a cluster is: a document, a cluster that somebody named, or a row.
        self.unit = str(self.rows[TOTAL]["cluster_unit"])
        self.level = f"{100 * sheet.scenario.level:g} %"
        self.found: dict[Callable[[Formatter], Any], Any] = {}  # what `once` keeps

    def _dimensions_apart(self, of_quality: Sequence[str]) -> list[str]:
        """Return the dimensions of a rubric that have a section of their own beside metrics of another scale.

        They have no weight in the total. Where one of them has a weight, or nothing else was scored, all of them
        are metrics like any other.
        """
        rubric = self.sheet.scenario.rubric
        if rubric is None:
            return []
        names = {dimension.name for dimension in rubric.dimensions}
        apart = [name for name in of_quality if name in names and not self.rows[name]["weight"]]
        others = [name for name in of_quality if name not in names]
        if others and len(apart) + len(others) == len(of_quality):
            return apart
        return []

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
        # A share that is missing is not known to be whole, so it is shown, too: hence no `value < 1`.
        is_whole = gates["value"] >= 1
        return gates[(gates["role"] != "completeness") | ~is_whole]

    def known(self, metric: str) -> bool:
        """Whether a metric has a mean."""
        return not pd.isna(self.rows[metric]["value"])

    # Words

    def name(self, metric: str) -> str:
        """Return what a metric is called, in words where they are known."""
        quantile = quantile_of(metric)
        if quantile is not None:
            return self.quantile(*quantile)
        return str(self.about(metric).get("name", metric))

    def quantile(self, q: float, column: str) -> str:
        """Return a quantile of a measure of operation in words."""
        if q == 0.5:
            return self.say("operations.median_of", name=column)
        return self.say("operations.quantile_of", name=column, percent=f"{100 * q:g}")

    def title(self, metric: str) -> str:
        """Return the name as a heading begins."""
        name = self.name(metric)
        # A name that is not in the catalogue is somebody's column: it stays as they wrote it.
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
            for dimension in rubric.dimensions:
                if dimension.name == metric:
                    bands = [f"{span}: {words}" for span, words in dimension.bands.items()]
                    parts = [part for part in (dimension.description, *bands) if part]
                    low = f"{rubric.low:g}"
                    high = f"{rubric.high:g}"
                    return self.say("sheet.dimension", what="; ".join(parts), low=low, high=high)
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
        shown = tuple(block for block in blocks if block is not None)
        name = self.say(f"section.{key}")
        if self.shown is not None and key in _OF_ONE_SYSTEM:
            name = f"{name} · {one_line(self.shown, 30)}"
        return Section(key, name, finding, lead, shown, badge, self.lang)

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
        unit = 1
        least = 3
        if self.is_share(metric):  # written in per cent
            unit = 100
            least = 1
        if pd.isna(row.get("threshold", math.nan)):
            return least
        known = [row[name] for name in ("value", "low", "high") if not pd.isna(row[name])]
        return telling_digits([unit * value for value in known], unit * row["threshold"], least)

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
        value = self.value(metric, row["value"], row)
        if not ends or pd.isna(row["value"]):
            return value
        return f"{value} ({ends})"

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
        interval = ""
        exact = ""
        if not pd.isna(row["value"]):
            interval = self.ends(metric, row)
            # Markdown, which scripts read, has one decimal more than the page.
            exact = value if self.is_share(metric) else number(row["value"], 4)
        return Estimate(
            value,
            interval,
            row["value"],
            row["low"],
            row["high"],
            span=self.span(metric),
            text=self.title(metric),
            exact=exact,
            tone=self.tone(metric, row["value"]),
            **more,
        )

    def mean_cell(self, row: Row) -> tuple[object, ...]:
        """Return a mean with its interval and n below it."""
        metric = row["metric"]
        if pd.isna(row["value"]):
            return MISSING, Small(self.kind_of_gap(row))
        evidence = [part for part in (self.ends(metric, row), self.n(row)) if part]
        return self.value(metric, row["value"]), Small(" · ".join(evidence))

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
        svg = radar_svg(drawn, values, label=label, radius=105, lang=self.lang)
        return blocks.Picture(svg, label)

    def counted(self, row: Row) -> str:
        """Write the n of a row and the documents it comes from."""
        if self.unit == "row":  # as many clusters as rows: the n says it
            return self.n(row)
        clusters = texts.counted(self.say, f"verdict.{self.unit}s", count(row["n_clusters"]))
        return self.n(row) + clusters

    # Thresholds

    def thresholds(self, metric: str) -> tuple[tuple[str, float], ...]:
        """Return the named thresholds of a metric, in its own units, the milder one first."""
        if metric == TOTAL:
            return self._bands_of_total()
        rule: Any = self.rules.get(metric)
        if rule is None:
            return ()
        severities = {"warning": rule.warning, "critical": rule.critical}
        return tuple(
            (self.say(f"severity.{key}"), at) for key, at in severities.items() if at is not None
        )

    def _bands_of_total(self) -> tuple[tuple[str, float], ...]:
        """Return the scenario's bands, which are shares of the range of the total, in its own units."""
        span = self.span(TOTAL)
        if span is None or span[0] == span[1]:
            return ()
        low, high = span
        bands = self.sheet.scenario.bands
        shares = {"good": bands.good, "watch": bands.watch}
        return tuple(
            (self.say(f"mark.{key}"), low + (high - low) * share) for key, share in shares.items()
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
        is_low = past(values, limits[0], better) | past(values, limits[-1], better)
        return float(np.mean(is_low))

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
        limit = self.limit(metric, gate["threshold"])
        if gate["role"] == "completeness":
            return self.say(f"requirement.{gate['gate']}", at=limit)
        bound = self.bound("higher" if gate["op"] == ">=" else "lower", limit)
        # The catalogue words what is asked of a mean; of a difference from a baseline it would be false.
        own_words = None
        key = "difference"
        if gate["role"] != "difference":
            own_words = self.about(metric).get("requirement")
            key = "metric"
        if own_words:
            text = own_words.format(bound=bound)
        else:
            text = self.say(f"requirement.{key}", metric=self.title(metric), bound=bound.lower())
        if gate["system"] is None:
            return text
        return f"{gate['system']}: {text}"

    def bound(self, better: str, limit: str) -> str:
        """Write what is asked of a value: "at least 0.8" where higher is better, "at most" where lower is."""
        key = "requirement.at_least" if better == "higher" else "requirement.at_most"
        return self.say(key, at=limit)

    def code(self, gate: Row) -> str:
        """Write a gate by its identifiers: ``G2 · under_refusal ≤ 0.05``."""
        sign = "≥" if gate["op"] == ">=" else "≤"
        code = f"{gate['metric']} {sign} {gate['threshold']:g}"
        if (
            gate["gate"] == gate["metric"]
        ):  # a gate without a name of its own is called as its metric
            return code
        return f"{gate['gate']} · {code}"

    def outcome(self, gate: Row) -> Mark:
        """Return what came out of a gate; one that blocks is bad, however it was decided."""
        outcome = gate["outcome"]
        words = self.say(f"sheet.gate_{outcome}")
        # That a gate which failed blocks goes without saying.
        if gate["blocks"] and outcome != "fail":
            return Mark("bad", words + self.say("sheet.and_blocks"))
        return Mark(GATE_TONES[outcome], words)

    # Absence

    def kind_of_gap(self, row: Row) -> str:
        """Say which kind of absence most of a row's samples have."""
        worst = max(("missing", "failed", "not_applicable"), key=lambda kind: int(row[f"n_{kind}"]))
        return self.say(f"column.{worst}")


def once(find: Callable[[Formatter], Found]) -> Callable[[Formatter], Found]:
    """Find something out about a run the first time that its page asks, and remember it.

    It is kept with the formatter, so that nothing of one page is found on another.
    """

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
    """Return a cell as text; nothing where it is missing or there is no such column."""
    if is_missing(row.get(key)):
        return ""
    return str(row[key])


def id_of(row: Row) -> str:
    """Return what a question is known by."""
    return text_of(row, "sample_id") or text_of(row, "question")


def list_of(value: Any) -> list[Any]:
    """Return the items of a cell; a text alone is one item, and anything else is none."""
    if isinstance(value, list | tuple | np.ndarray):
        return list(value)
    if isinstance(value, str):
        return [value]
    return []
