"""The foot of a sheet: how it was made, and the words used."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.assessment.parts import Writer, paragraph
from ragnb.markup import Column, Safe, element, join


def made(w: Writer) -> Safe:
    """The settings and weights that were used, the files that were read, and where the rows went."""
    weights = [(f"{what}_weights", weight_rows(w, what)) for what in ("metric", "doc")]
    said = [(key, "\n".join(f"{name}: {weight}" for name, weight in pairs)) for key, pairs in weights if pairs]
    frame = pd.DataFrame([*settings(w), *said], columns=["setting", "used"], dtype=object)
    ledger = w.table(w.sheet.ledger, "step rows:count", w.say("sheet.ledger"))
    rest = paragraph(w.say("sheet.made_rest"), "rg-note")
    return w.section("made", w.table(frame, "setting used"), _inputs(w), ledger, rest)


def settings(w: Writer) -> list[tuple[str, str]]:
    """Return what was set, as pairs of names and values; file names without their folders."""
    s = w.sheet.scenario
    rows = [("name", s.name), ("file", s.path.name if s.path else ""), ("level", w.level), ("doc", s.doc)]
    rows += [("cluster", s.cluster or ""), ("where", ", ".join(f"{k} = {v}" for k, v in s.where.items()))]
    if (r := s.rubric) is not None:
        rows.append(("rubric", f"{r.low:g}–{r.high:g}, {r.passing.metric} ≥ {r.passing.threshold:g}"))
    yes = {True: w.say("column.yes"), False: w.say("column.no")}
    rows += [("orient", yes[s.orient]), ("rescale", yes[s.rescale]), ("no_data", s.no_data)]
    if w.sheet.outcomes is not None:
        rows += [(key, " | ".join(getattr(s, key))) for key in ("refusal", "patterns", "partial")]
        rows += [(key, getattr(s, key)) for key in ("split", "containment", "join")]
    return [(name, value) for name, value in rows if value]


def weight_rows(w: Writer, what: str) -> list[tuple[str, str]]:
    """Return the weights that were used: of every metric in the total, and of the documents that are named."""
    if what == "doc":
        return [(name, f"{weight:g}") for name, weight in w.sheet.scenario.doc_weights.items()]
    return [(name, f"{row['weight']:g}") for name, row in w.rows.items() if not pd.isna(row["weight"])]


def _inputs(w: Writer) -> Safe:
    if not w.sheet.inputs:
        return Safe("")
    columns = w.columns("role path=file rows:count") | {"sha256": Column("SHA-256")}
    codes = [element("code", f"{str(one['sha256'])[:16]}…", title=one["sha256"]) for one in w.sheet.inputs]
    names = [w.say(f"role.{one['role']}") for one in w.sheet.inputs]
    shown = zip(w.sheet.inputs, names, codes, strict=True)
    rows = [one | {"role": name, "sha256": code} for one, name, code in shown]
    return w.table(rows, columns, w.say("sheet.inputs"))


def glossary(w: Writer) -> Safe:
    """One sentence for each word that a reader may not know, and for each metric of this run."""
    known: dict[str, Any] = texts.entry(w.lang, "glossary")
    skipped = {"documents", "clusters", "questions"} - {f"{w.unit}s"}
    said = [key for key, text in known.items() if isinstance(text, str) and key not in skipped]
    rows = [
        _term(w.say(f"column.{key}", level=w.level), key, w.say(f"glossary.{key}", level=w.level)) for key in said
    ]
    metrics = known["metric"] | _dimensions(w)
    rows += [_term(name, "-".join(name.split()), metrics[name]) for name in w.rows if name in metrics]
    return w.section("glossary", element("dl", *rows))


def _dimensions(w: Writer) -> dict[str, str]:
    """One sentence for each dimension of the scenario's rubric: its scale, and what its scores mean."""
    if (rubric := w.sheet.scenario.rubric) is None:
        return {}
    known = {"low": f"{rubric.low:g}", "high": f"{rubric.high:g}"}
    what = {d.name: [d.description, *map(": ".join, d.bands.items())] for d in rubric.dimensions}
    return {
        name: w.say("sheet.dimension", what="; ".join(filter(None, said)), **known) for name, said in what.items()
    }


def _term(word: str, key: str, sentence: str) -> Safe:
    return join([element("dt", element("strong", word), id=f"term-{key}"), element("dd", sentence)])
