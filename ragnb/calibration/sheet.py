"""The card as HTML and Markdown: the sentences first, every table below."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnb import markup
from ragnb.markup import Column, Safe, bullets, element, join
from ragnb.texts import entry, load

if TYPE_CHECKING:
    from ragnb.calibration.card import CalibrationCard

TONES = {"TRUST": "good", "NOT PROVEN": "watch", "REJECT": "bad"}
_LAYOUT: dict[str, Any] = tomllib.loads(Path(__file__).with_name("sheet.toml").read_text(encoding="utf-8"))
Table = tuple[str, pd.DataFrame, dict[str, Column]]


def tables(card: CalibrationCard) -> Iterator[Table]:
    """Yield the tables of a card in reading order: key of its title, frame, columns."""
    say = load(card.lang)
    words: dict[str, str] = entry(card.lang, "calibration.word")
    whole = words["overall"]
    frames = {
        "verdicts": card.verdicts.assign(sides=[", ".join(sides) for sides in card.verdicts["sides"]]),
        "bands": card.bands.replace({"verdict": {"too few": words["too_few"]}}),
        "inflation": card.inflation.replace({"kind": {"overall": whole}}),
        "recalibration": card.recalibration.replace({"map": words}),
        "corrected": card.corrected.replace({"system": {"": whole}, "way": words}),
        "table": measured(card),
    }
    heads = {"judge": card.verdicts, "dimension": card.verdicts, "system": card.corrected}
    alone = {name for name, frame in heads.items() if frame[name].nunique() < 2}
    for key, columns in _LAYOUT["tables"].items():
        if len(frames[key]):
            named = {"judge": {}, "dimension": {}} | columns
            shown = {n: _column(n, how, say, card.level) for n, how in named.items() if n not in alone}
            yield key, frames[key], shown


def _column(name: str, own: dict[str, Any], say: Callable[..., str], level: float) -> Column:
    """Return a column under its heading, which tells an interval's level."""
    how = {"label": name, "written": False} | _LAYOUT["columns"].get(name, {}) | own
    label, written = say(f"calibration.column.{how.pop('label')}"), how.pop("written")
    interval = written or "interval" in how.get("kind", "")
    return Column(f"{label} [{level:.0%}]" if interval else label, **how)


def measured(card: CalibrationCard) -> pd.DataFrame:
    """Return the agreement table turned on its side, one row a measure, written out."""
    names: dict[str, str] = entry(card.lang, "calibration.measure")
    rows = []
    for row in card.table.to_dict("records"):
        for name, label in names.items():
            ends = [row.get(f"{name}_{end}", np.nan) for end in ("low", "high")]
            if not pd.isna(row[name]):
                head = {"judge": row["judge"], "dimension": row["dimension"], "measure": label}
                rows.append(head | {"value": _written(name, row[name], *ends)})
    return pd.DataFrame(rows)


def _written(name: str, value: float, low: float, high: float) -> str:
    if name in _LAYOUT["counts"]:
        return markup.count(value)
    share = name in _LAYOUT["shares"]
    if np.isnan(low):
        return markup.percent(value) if share else markup.number(value)
    return markup.with_interval(value, low, high, percent=share)


def footer(card: CalibrationCard) -> list[tuple[str, str]]:
    """Return what made the card, label and value."""
    say = load(card.lang)
    out = []
    for name, label in entry(card.lang, "calibration.footer").items():
        if name not in card.footer:
            continue
        value = card.footer[name]
        if isinstance(value, bool):
            value = say("column.yes" if value else "column.no")
        out.append((label, say("calibration.footer.unsaid") if value is None else f"{value}"))
    return out


def to_html(card: CalibrationCard) -> Safe:
    """Return the card for the output of a notebook cell."""
    say = load(card.lang)
    first, *rest = card.reasons
    mark = markup.badge(TONES[card.verdict], card.verdict, lang=card.lang)
    beside = join(Safe(f" {markup.badge('watch', side, lang=card.lang)}") for side in card.sides)
    body: list[Any] = [element("p", mark, beside), element("p", element("strong", first))]
    body.append(element("p", rest[0]))
    body += [bullets(rest[1:])] if rest[1:] else []
    for key, frame, columns in tables(card):
        body.append(titled(card, key, frame, columns, folded=key == "table"))
    notes = [element("h3", say("calibration.title.notes")), bullets(card.notes["text"])]
    body += notes if len(card.notes) else []
    made = bullets(f"{label}: {value}" for label, value in footer(card))
    body.append(markup.details(say("calibration.title.footer"), made))
    return markup.fragment(join(body), lang=card.lang)


def titled(
    card: CalibrationCard, key: str, frame: pd.DataFrame, columns: dict[str, Column], *, folded: bool = False
) -> Safe:
    """Return one of `tables` as HTML under its title."""
    title = load(card.lang)(f"calibration.title.{key}")
    table = markup.html_table(frame, columns=columns, lang=card.lang)
    return markup.details(title, table) if folded else join([element("h3", title), table])


def to_markdown(card: CalibrationCard) -> str:
    """Return the card as Markdown: equal input gives equal text."""
    say = load(card.lang)
    first, *rest = (markup.md_cell(line) for line in card.reasons)
    parts = [f"**{first}**", rest[0], *(["\n".join(f"- {line}" for line in rest[1:])] if rest[1:] else [])]
    for key, frame, columns in tables(card):
        parts.append(f"## {say(f'calibration.title.{key}')}")
        parts.append(markup.markdown_table(frame, columns=columns))
    if len(card.notes):
        parts.append(f"## {say('calibration.title.notes')}")
        parts.append("\n".join(f"- {markup.md_cell(text)}" for text in card.notes["text"]))
    parts.append(f"## {say('calibration.title.footer')}")
    parts.append("\n".join(f"- {markup.md_cell(label)}: {markup.md_cell(value)}" for label, value in footer(card)))
    return "\n\n".join(parts) + "\n"


def to_dict(card: CalibrationCard) -> dict[str, Any]:
    """Return the card as plain values that JSON can hold: frames as records, null for what is missing."""
    out: dict[str, Any] = {}
    for name, value in vars(card).items():
        if isinstance(value, pd.DataFrame):
            out[name] = json.loads(value.to_json(orient="records", double_precision=12))
        else:
            out[name] = list(value) if isinstance(value, tuple) else value
    return out
