"""How the numbers of one assessment are written, once for every part of its sheet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragnb import markup, texts
from ragnb.assessment.result import Assessment
from ragnb.diagnostics import RULES
from ragnb.diagnostics.rules import past
from ragnb.markup import MISSING, Column, Safe, element, join, one_line
from ragnb.schema import METRICS, Rule, scale_of
from ragnb.weights import why_no_total

TOTAL = "weighted_score"
OUTCOME = "correct_outcome"
_SHARES = ("input_lines", "gold_coverage", "scored_cells")
Row = Mapping[Any, Any]


class Writer:
    """Writes an assessment's metrics, values and intervals: scores with three decimals, rates as percentages.

    Parameters
    ----------
    sheet : Assessment
    linked : bool
        Whether headings are anchors and statistical words link to the glossary at the foot of a page.
    """

    def __init__(self, sheet: Assessment, *, linked: bool = True) -> None:
        shown = getattr(sheet, "shown_system", None)
        # Systems are never pooled: of several, one is shown in detail.
        self.sheet = sheet = sheet if shown is None else sheet.of_system(shown)
        self.shown, self.linked = shown, linked
        self.lang = sheet.scenario.lang
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
        self.rules = {rule.metric: rule for rule in RULES if rule.also is None and self._fits(rule)}
        self.total = [TOTAL] if self.quality or not pd.isna(self.rows[TOTAL]["value"]) else []
        # The metrics of a radar: those of quality, else the rates, whose ranges have ends.
        self.axes = [name for name in self.quality or self.rates if self.span(name)]
        self.unit = str(self.rows[TOTAL]["cluster_unit"])  # of the clusters: document, cluster or row
        self.level = f"{100 * sheet.scenario.level:g} %"

    def _fits(self, rule: Rule) -> bool:
        """Bars of a rule mean nothing for a metric of that name on another scale."""
        known, name = METRICS[rule.metric], rule.metric
        return name in self.metrics and (self.scales[name], self.better[name]) == (known.scale, known.better)

    def of_shown(self, text: str) -> str:
        """Return a caption with the name of the one system of several that is shown in detail."""
        return text if self.shown is None else join([text, f" · {one_line(self.shown, 40)}"])

    @property
    def gates(self) -> pd.DataFrame:
        """The gates that are shown: input that came through whole is no news."""
        gates = self.sheet.gates
        return gates[(gates["role"] != "completeness") | ~(gates["value"] >= 1)]

    def name(self, metric: str) -> str:
        """Return what a metric is called here."""
        return self.say("chart.total") if metric == TOTAL else metric

    def value(self, metric: str, value: Any) -> str:
        """Write a value of a metric without its interval."""
        return markup.percent(value) if metric in (*self.rates, *_SHARES) else markup.number(value)

    def score(self, metric: str, value: Any) -> list[str]:
        """Write the score of one sample; that of a yes or no says nothing beside the sample itself."""
        known = self.metrics[metric]
        return [] if known is not None and known.kind == "binary" else [self.value(metric, value)]

    def interval(self, metric: str, row: Row) -> str:
        """Write ``value [low, high]`` of a row."""
        if pd.isna(row["low"]) and metric in _SHARES:
            return self.value(metric, row["value"])
        return markup.with_interval(row["value"], row["low"], row["high"], metric in (*self.rates, *_SHARES))

    def asks(self, gate: Row) -> str:
        """Write what a gate asks, in the metric's own units."""
        op = "≥" if gate["op"] == ">=" else "≤"
        system = "" if gate["system"] is None else f"{gate['system']}: "
        name = self.name(gate["metric"])
        name = self.say("gate.difference", metric=name) if gate["role"] == "difference" else name
        return f"{system}{name} {op} {self.value(gate['metric'], gate['threshold'])}"

    def ends(self, metric: str, row: Row) -> str:
        """Write the interval alone; nothing where there is no value."""
        return self.interval(metric, row).removeprefix(self.value(metric, row["value"])).strip()

    def bars(self, metric: str) -> list[tuple[str, float]]:
        """Return the named thresholds of a metric, in its own units."""
        if metric == TOTAL:
            (low, high), bands = self.ranges[TOTAL], self.sheet.scenario.bands
            return [(self.say(f"mark.{k}"), low + (high - low) * getattr(bands, k)) for k in ("watch", "good")]
        found = ((key, getattr(self.rules.get(metric), key, None)) for key in ("warning", "critical"))
        return [(self.say(f"severity.{key}"), at) for key, at in found if at is not None]

    def tone(self, metric: str, value: Any) -> str:
        """Return good, watch or bad by the bands (the total) or the rule's bars; nothing where there are none."""
        bars = [at for _, at in self.bars(metric)]
        if pd.isna(value) or not bars:
            return ""
        good, bad = (bars[1], bars[0]) if metric == TOTAL else (bars[0], bars[-1])
        better: Any = self.better[metric]
        return "bad" if past(value, bad, better) else "watch" if past(value, good, better) else "good"

    def span(self, metric: str) -> tuple[float, float] | None:
        """Return the whole range of a metric, where it has ends."""
        low, high = self.ranges[metric]
        return (low, high) if abs(low) < float("inf") and abs(high) < float("inf") else None

    def drawn(self, metric: str, row: Row, *, width: int = 0, bars: list[float] | None = None) -> Safe:
        """Draw a row's interval with its named thresholds; without a width, thin, for a cell of a table."""
        span = self.span(metric)
        if span is None or (not width and pd.isna(row["value"])):
            return Safe("")
        ends = row["value"], row["low"], row["high"]
        how: dict[str, Any] = {"span": span, "label": self.name(metric), "percent": metric in self.rates}
        if width:
            return markup.interval_svg(*ends, bars=self.bars(metric), width=width, **how)
        return markup.thin_svg(*ends, bars=bars or [at for _, at in self.bars(metric)], **how)

    def counted(self, row: Row) -> str:
        """Write the n of a row and the documents it comes from."""
        unit = self.unit
        n = self.say("chart.n", n=markup.count(row["n"]))
        clusters = markup.count(row["n_clusters"])
        return n if unit == "row" else n + texts.counted(self.say, f"verdict.{unit}s", clusters)

    def term(self, key: str, label: str | None = None) -> str:
        """Return a column's label; on a page it links to its sentence in the glossary."""
        said = self.say(f"column.{key}", level=self.level) if label is None else label
        if not self.linked or not isinstance(texts.entry(self.lang, "glossary").get(key), str):
            return said
        return element("a", said, href=f"#term-{key}", title=self.say(f"glossary.{key}", level=self.level))

    def heading(self, text: str, *, level: int = 2, anchor: str = "") -> Safe:
        """Return a heading; only a page has anchors, so that two outputs of a notebook do not share names."""
        if not self.linked:
            return element(f"h{level}", text)
        return markup.heading(text, level=level, anchor=anchor or None)

    def section(self, key: str, *body: object) -> Safe:
        """Return a part of the sheet under its heading; an empty one is an empty text."""
        inside = join(body)
        return join([self.heading(self.say(f"sheet.{key}"), anchor=key), inside]) if inside else Safe("")

    def columns(self, said: str) -> dict[str, Column]:
        """Return the columns of a table, said as ``name=label:kind``: the label where it is not the name."""
        found = re.findall(r"(\w+)=?(\w*):?(\w*)", said)
        return {name: Column(self.term(label or name), kind or "text") for name, label, kind in found}

    def table(self, rows: Any, columns: Mapping[str, Column] | str, caption: str | None = None) -> Safe:
        """Return a frame or records as a table in the sheet's language."""
        shown = self.columns(columns) if isinstance(columns, str) else columns
        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=[*shown], dtype=object)
        return markup.html_table(frame, columns=shown, caption=caption, lang=self.lang)

    def why_missing(self, metric: str) -> str:
        """Say why a metric has no mean."""
        total = why_no_total(self.sheet.means, lang=self.lang) or self.say("sheet.nothing_to_add")
        return total if metric == TOTAL else self.kind_of_gap(self.rows[metric])

    def kind_of_gap(self, row: Row) -> str:
        """Say which kind of absence most of a row's samples have."""
        worst = max(("missing", "failed", "not_applicable"), key=lambda kind: int(row[f"n_{kind}"]))
        return self.say(f"column.{worst}")


def gap(reason: str, word: str | None = None) -> Safe:
    """Return the dash of a missing cell with its reason on hover and a word of it in the text."""
    return element("span", MISSING, " ", element("span", word or reason, class_="rg-why"), title=one_line(reason))


def paragraph(text: object, class_: str | None = None) -> Safe:
    """Return a paragraph; nothing for no text."""
    return element("p", text, class_=class_) if text else Safe("")


def lead(tone: str, *said: object) -> Safe:
    """Return the first sentence of a sheet, after the mark of its tone."""
    mark = element("span", markup.TONES[tone], class_=f"rg-mark rg-{tone}", aria_hidden="true")
    return paragraph(join([mark, " ", *said]), "rg-lead")
