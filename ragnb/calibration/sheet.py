"""The card as HTML and Markdown: the sentences first, every table below."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnb import markup
from ragnb.markup import Column, Safe, bullets, element, join
from ragnb.texts import entry, load

if TYPE_CHECKING:
    from ragnb.calibration.card import CalibrationCard

TONES = {"TRUST": "good", "NOT PROVEN": "watch", "REJECT": "bad"}
_SHARES = {"within", "floor", "constant", "over_constant", "within_rounded", "floor_rounded", "constant_rounded"}
_SHARES |= {"ceiling", "exact", "outside"}
_WHOLE = {"n", "n_clusters", "n_missing"}
Table = tuple[str, pd.DataFrame, dict[str, Column]]


def tables(card: CalibrationCard) -> Iterator[Table]:
    """Yield the tables of a card in reading order: key of its title, frame, columns."""
    say = load(card.lang)
    level = f"{card.level:.0%}"

    def head(name: str, kind: Any = "text", digits: int = 3, **how: Any) -> Column:
        label = say(f"calibration.column.{name}")
        return Column(f"{label} [{level}]" if "interval" in kind else label, kind, digits=digits, **how)

    both = {"judge": head("judge")} if card.verdicts["judge"].nunique() > 1 else {}
    both |= {"dimension": head("dimension")} if card.verdicts["dimension"].nunique() > 1 else {}
    size = {"n": head("n", "count"), "n_clusters": head("n_clusters", "count")}
    share = {"share": head("share", "percent_interval")}
    bias = {"bias": head("bias", "interval", 2, low="bias_low", high="bias_high")}
    shown = card.verdicts.assign(sides=[", ".join(sides) for sides in card.verdicts["sides"]])
    more = {"constant": head("constant", "percent"), **bias, "sides": head("sides")}
    yield "verdicts", shown, {**both, "verdict": head("verdict"), **share, **more, **size}
    bands = card.bands.replace({"verdict": {"too few": say("calibration.word.too_few")}})
    yield "bands", bands, {**both, "band": head("band"), **share, **bias, "verdict": head("verdict"), **size}
    named = card.inflation.replace({"kind": {"overall": say("calibration.word.overall")}})
    beside = head("beside", "interval", 2, low="beside_low", high="beside_high")
    groups = {"kind": head("kind"), "group": head("group"), "value": head("bias", "interval", 2)}
    yield "inflation", named, {**both, **groups, "beside": beside, "p": head("p", "number"), **size}
    if len(card.recalibration):
        maps = card.recalibration.assign(map=_worded(card.recalibration["map"], say))
        error = head("mae", "interval", low="mae_low", high="mae_high")
        yield "recalibration", maps, {**both, "map": head("map"), "mae": error, **share}
    ways = card.corrected.replace({"system": {"": say("calibration.word.overall")}})
    ways = ways.assign(way=_worded(ways["way"], say))
    several = {"system": head("group")} if ways["system"].nunique() > 1 else {}
    means = {**several, "way": head("way"), "value": head("value", "interval", 2), "n": head("n", "count")}
    yield "corrected", ways, {**both, **means, "n_judged": head("n_judged", "count")}
    # A measure's value is written out, in its own way, with its interval.
    measures = {"measure": head("measure"), "value": Column(head("value", "interval").label)}
    yield "table", measured(card), {**both, **measures}


def _worded(names: pd.Series[Any], say: Callable[..., str]) -> list[str]:
    return [say(f"calibration.word.{name}") for name in names]


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
    if name in _WHOLE:
        return markup.count(value)
    if np.isnan(low):
        return markup.percent(value) if name in _SHARES else markup.number(value)
    return markup.with_interval(value, low, high, percent=name in _SHARES)


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
