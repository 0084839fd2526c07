"""Is it better than before: paired differences with their intervals; and systems side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragnb import markup
from ragnb.markup.blocks import Block, Estimate, Mark, Section, Small, Table, Text
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Row
from ragnb.sheet.sections.metrics import radar
from ragnb.sheet.sections.summary import difference

_TONES = {"better": "good", "same": "good", "undecided": "none", "worse": "bad"}
_MOST = 20


def comparison(w: Formatter) -> Section | None:
    """Return how the run differs from its baseline, and several systems side by side; nothing without either."""
    table = w.whole.comparison
    rows = [] if table is None else [row for row in records(table) if row["n_common"]]
    if not rows and w.whole.systems is None:
        return None
    blocks: list[Block] = []
    if rows:
        blocks.append(_differences(w, rows))
    blocks += _systems(w)
    picture = radar(w)
    blocks += [picture] if picture is not None else []
    blocks += _changed(w)
    primary = [row for row in rows if row["primary"]] or rows
    finding = _finding(w, primary) if rows else w.say("compared.systems", n=w.whole.systems["system"].nunique())
    badge: Mark | str = ""
    if len(primary) == 1 or (rows and primary[0]["primary"]):
        badge = Mark(_TONES[primary[0]["outcome"]], w.say(f"compared.{primary[0]['outcome']}"))
    lead = w.say("compared.lead", level=w.level) if rows else w.say("compared.systems_lead", level=w.level)
    return Section("comparison", w.say("section.comparison"), finding, lead, tuple(blocks), badge, w.lang)


def _finding(w: Formatter, rows: Sequence[Row]) -> str:
    row = rows[0]
    words = {"name": row["baseline"], "metric": w.name(row["metric"]), "value": difference(w, row)}
    return w.say(f"compared.finding_{row['outcome']}", candidate=row["candidate"], **words)


def _differences(w: Formatter, rows: Sequence[Row]) -> Table:
    several = len({row["candidate"] for row in rows}) > 1
    widest = 0.0
    for row in rows:
        if (scale := _scale(row)) is not None:
            ends = (abs(row[key]) / scale for key in ("value", "low", "high") if not pd.isna(row[key]))
            widest = max([widest, *ends])
    heads = ["metric", ">baseline", ">candidate", ">difference", "axis", "outcome", ">wins", ">p"]
    names = [">" * key.startswith(">") + w.say(f"compared.head_{key.lstrip('>')}", level=w.level) for key in heads]
    body = []
    for row in sorted(rows, key=lambda row: not row["primary"]):
        metric = row["metric"]
        written = [w.value(metric, row[key]) for key in ("baseline_mean", "candidate_mean")]
        outcome = Mark(_TONES[row["outcome"]], w.say(f"compared.{row['outcome']}"))
        name = (row["candidate"], Small(w.title(metric))) if several else w.title(metric)
        body.append((
            name, *written, difference(w, row), _drawn(w, row, widest), outcome,
            f"{row['wins']} / {row['ties']} / {row['losses']}",
            markup.p_value(row["p" if pd.isna(row["p_holm"]) else "p_holm"]),
        ))  # fmt: skip
    return Table(tuple(names), tuple(body), cards=True)


def _scale(row: Row) -> float | None:
    """The width of a metric's range, in which differences of different metrics are drawn on one axis."""
    width = float(row["range_high"] - row["range_low"])
    return width if width < float("inf") else None


def _drawn(w: Formatter, row: Row, widest: float) -> Estimate | str:
    scale = _scale(row)
    if scale is None or pd.isna(row["value"]) or not widest:
        return ""
    value, low, high = (float(row[key]) / scale for key in ("value", "low", "high"))
    margin = (-row["margin"] / scale, row["margin"] / scale) if not pd.isna(row["margin"]) else None
    name, zero = w.title(row["metric"]), (("0", 0.0),)
    return Estimate(difference(w, row), "", value, low, high, (-widest, widest), zero, margin, text=name)


def _systems(w: Formatter) -> list[Block]:
    """Return the means of all systems, on common questions first where they answered different ones."""
    if w.whole.systems is None:
        return []
    names: list[str] = [*w.total, *w.quality, *w.rates]
    out: list[Block] = []
    n = markup.count(w.whole.common_questions)
    for key, table in (("common", w.whole.common), ("all", w.whole.systems)):
        if table is None:
            continue
        first = table[table["metric"] == names[0]].sort_values("value", ascending=False, kind="stable")
        cells = {(row["system"], row["metric"]): row for row in records(table)}
        rows = []
        for one in first["system"]:
            seen = [cells[one, name] for name in names]
            rows.append((one, *((w.value(name, row["value"]), Small(_small(w, name, row)))
                                for name, row in zip(names, seen, strict=True))))  # fmt: skip
        heads = (w.say("column.system"), *(f">{w.title(name)}" for name in names))
        out.append(Table(heads, tuple(rows), caption=w.say(f"compared.{key}_caption", n=n, level=w.level)))
    return out


def _small(w: Formatter, metric: str, row: Row) -> str:
    if pd.isna(row["value"]):
        return w.kind_of_gap(row)
    return " · ".join(filter(None, [w.ends(metric, row), w.say("chart.n", n=markup.count(row["n"]))]))


def _changed(w: Formatter) -> list[Block]:
    """Return the questions that were fixed and broken."""
    changed, out = w.whole.changed, []
    for key in ("fixed", "broken") if changed is not None else ():
        names = changed.loc[changed["change"] == key, "sample_id"].tolist()
        if names:
            links = tuple(w.link(name) for name in names[:_MOST])
            rest = (Small(f"+{len(names) - _MOST}"),) if len(names) > _MOST else ()
            mark = Mark("good" if key == "fixed" else "bad", w.say(f"compared.n_{key}", n=len(names)))
            out.append((mark, *links, *rest))
    return [Text(tuple(out), "changed")] if out else []
