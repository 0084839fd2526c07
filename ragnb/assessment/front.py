"""The first screen of a sheet: the verdict, its four numbers, and how sure they are."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from ragnb import markup, texts
from ragnb.assessment.parts import OUTCOME, TOTAL, Row, Writer, lead
from ragnb.assessment.tables import gate_tone
from ragnb.markup import MISSING, Safe, bullets, element, join, one_line

_CARD, _MOST_BADGES = 182, 8


def title(w: Writer) -> str:
    """Return what the run is called."""
    scenario = w.sheet.scenario
    named = scenario.title or (scenario.name if "name" in scenario.model_fields_set else None)
    return named or w.say("sheet.title")


def verdict(w: Writer) -> Safe:
    """The title, and the answer to "is it good enough?" in one line."""
    return join([w.heading(title(w), level=1, anchor="verdict"), lead(verdict_tone(w), w.sheet.verdict)])


def verdict_tone(w: Writer) -> str:
    """Bad where a gate blocks, watch where one is undecided, good where all hold; without gates the total's."""
    if w.sheet.blocked:
        return "bad"
    seen = set(w.gates.loc[w.gates["reason"] == "", "outcome"])
    if not seen:
        return w.tone(TOTAL, w.rows[TOTAL]["value"]) or "none"
    return "none" if seen == {"no_data"} else "good" if seen <= {"pass", "no_data"} else "watch"


def cards(w: Writer) -> Safe:
    """Question 1 in four numbers."""
    return markup.cards([_overall(w), _gates(w), _weakest(w), _unscored(w)])


def _overall(w: Writer) -> Safe:
    """The share of correct outcomes where gold is there, as inventing cannot raise it; else the weighted score."""
    if OUTCOME in w.rows and not pd.isna(w.rows[OUTCOME]["value"]):
        return _mean_card(w, w.of_shown(w.say("sheet.outcome")), OUTCOME)
    row = w.rows[TOTAL]
    label = w.of_shown(w.term("weighted_score", w.say("sheet.overall")))
    if pd.isna(row["value"]):
        return markup.card(label, MISSING, note=w.why_missing(TOTAL))
    return _mean_card(w, label, TOTAL)


def _mean_card(w: Writer, label: str, metric: str, note: str = "") -> Safe:
    row = w.rows[metric]
    tone, picture = w.tone(metric, row["value"]), w.drawn(metric, row, width=_CARD)
    said = join([f"{w.ends(metric, row)} · {w.counted(row)}", *([Safe("<br>"), note] if note else [])])
    mark = markup.badge(tone, lang=w.lang) if tone else ""
    return markup.card(label, w.value(metric, row["value"]), mark=mark, picture=picture, note=said)


def _gates(w: Writer) -> Safe:
    gates, label = w.gates, w.term("gate", w.say("sheet.gates_card"))
    if not len(gates):
        return markup.card(label, MISSING, note=w.say("sheet.no_gates"))
    said = w.say("sheet.of", n=int(gates["blocks"].sum()), all=len(gates))
    rows = gates.to_dict("records")
    marks = [_badge(w, row) for row in rows[:_MOST_BADGES]]
    rest = f"+ {len(rows) - _MOST_BADGES}" if len(rows) > _MOST_BADGES else ""
    mark = markup.badge(verdict_tone(w), lang=w.lang)
    return markup.card(label, said, mark=mark, note=join([*marks, rest]))


def _badge(w: Writer, gate: Row) -> Safe:
    what = "" if gate["gate"] == gate["metric"] else w.name(gate["metric"])
    what = what if gate["system"] is None else f"{what} ({one_line(gate['system'], 24)})".strip()
    return element("div", markup.badge(gate_tone(gate), one_line(gate["gate"], 24)), " ", what)


def _weakest(w: Writer) -> Safe:
    label = w.of_shown(w.say("sheet.weakest"))
    found = {name: share for name in w.quality or w.rates if (share := _share(w, name)) is not None}
    if not found:
        return markup.card(label, MISSING, note=w.say("sheet.nothing_scored"))
    metric = min(found, key=lambda name: found[name])
    said = join([label, w.say("sheet.colon"), element("strong", metric)])
    note = texts.entry(w.lang, "glossary.metric").get(metric, "")
    return _mean_card(w, said, metric, note)


def _share(w: Writer, metric: str) -> float | None:
    """Place a mean on 0–1 of its range, 1 the good end, to see which metric is weakest."""
    span, value = w.span(metric), w.rows[metric]["value"]
    if span is None or pd.isna(value):
        return None
    share = float((value - span[0]) / (span[1] - span[0]))
    return 1 - share if w.better[metric] == "lower" else share


def _unscored(w: Writer) -> Safe:
    cells = {k: sum(int(w.rows[m][f"n_{k}"]) for m in w.quality) for k in ("failed", "missing", "not_applicable")}
    said = w.say("sheet.cells", **{k: markup.count(n) for k, n in cells.items()})
    note = said if w.quality else w.say("sheet.without_label")
    many = "many_failed" in set(w.sheet.notes["code"])
    tone = "bad" if many else "watch" if cells["failed"] + cells["missing"] else "good"
    value = w.say("sheet.of", n=markup.count(w.sheet.unscored), all=markup.count(w.sheet.rows))
    return markup.card(w.say("sheet.unscored"), value, mark=markup.badge(tone, lang=w.lang), note=note)


def notes(w: Writer) -> Safe:
    """What a reader must know before believing the numbers; nothing where there is nothing to say."""
    small = [(text, [" ", element("span", about, class_="rg-why")] if about else []) for text, about in _notes(w)]
    return w.section("notes", bullets(join([text, *more]) for text, more in small) if small else "")


def said(w: Writer) -> list[str]:
    """Return the notes as texts, each with what it is about where that is not all."""
    return [f"{text} ({about})" if about else text for text, about in _notes(w)]


def _notes(w: Writer) -> Iterator[tuple[str, str]]:
    for text, about in w.sheet.notes[["text", "about"]].itertuples(index=False):
        names = [name for name in about.split(", ") if name in w.rows]
        some = names and len(names) < len(w.rows) and any(name not in text for name in names)
        yield text, about if some else ""
