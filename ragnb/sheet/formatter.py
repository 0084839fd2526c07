"""How the numbers, metrics and thresholds of one assessment are written, once for every section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pandas as pd

from ragnb import markup, texts
from ragnb.diagnostics import RULES
from ragnb.diagnostics.rules import past
from ragnb.markup import one_line
from ragnb.markup.blocks import Coverage, Estimate, Link, Mark
from ragnb.markup.html import anchor
from ragnb.schema import METRICS, scale_of

TOTAL = "weighted_score"
OUTCOME = "correct_outcome"
SHARES = ("input_lines", "gold_coverage", "scored_cells")
RIGHT = ("OK", "REFUSAL_OK")
KINDS = {
    "OK": "ok", "ANS_NO_HIT": "miss", "OVER_REFUSAL": "over", "REFUSAL_OK": "refused", "HALLUCINATION": "false",
}  # fmt: skip
"""How an answer's label is drawn: solid where the system answered, outlined where it refused."""
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
        if pd.isna(row["low"]) or pd.isna(row["high"]):
            return ""
        low, high = self.value(metric, row["low"]), self.value(metric, row["high"])
        return f"{low.removesuffix(' %')}–{high}"

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

    def counted(self, row: Row) -> str:
        """Write the n of a row and the documents it comes from."""
        unit, n = self.unit, self.say("chart.n", n=markup.count(row["n"]))
        clusters = markup.count(row["n_clusters"])
        return n if unit == "row" else n + texts.counted(self.say, f"verdict.{unit}s", clusters)

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
        tone = {"pass": "good", "fail": "bad", "undecided": "watch", "no_data": "none"}[gate["outcome"]]
        blocks = bool(gate["blocks"]) and gate["outcome"] != "fail"
        words = self.say(f"sheet.gate_{gate['outcome']}") + self.say("sheet.and_blocks") * blocks
        return Mark("bad" if blocks else tone, words)

    # Absence

    def kind_of_gap(self, row: Row) -> str:
        """Say which kind of absence most of a row's samples have."""
        worst = max(("missing", "failed", "not_applicable"), key=lambda kind: int(row[f"n_{kind}"]))
        return self.say(f"column.{worst}")
