"""How the run was made, what to keep in mind, and the terms of the page."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

import pandas as pd

from ragnb import markup, texts
from ragnb.markup.blocks import Block, Code, Link, Section, Table, Text
from ragnb.schema import records
from ragnb.sheet.formatter import TOTAL, Formatter

# What the gates and the judge's section say already.
_ELSEWHERE = ("more_needed", "no_ratings", "default_gates")


def details(w: Formatter) -> Section:
    """Return the settings and weights, the files, where the rows went, and the notes."""
    own = [f"{w.title(name)} {row['weight']:g}" for name, row in w.rows.items() if not pd.isna(row["weight"])]
    docs = [f"{name} {weight:g}" for name, weight in w.sheet.scenario.doc_weights.items()]
    weights = {"metric_weights": own, "doc_weights": [*docs, w.say("details.others")] if docs else []}
    rows = [*_settings(w), *((key, ", ".join(pairs)) for key, pairs in weights.items() if pairs)]
    names = texts.entry(w.lang, "setting")
    notes = w.whole.notes.loc[~w.whole.notes["code"].isin(_ELSEWHERE), "text"]
    blocks: list[Block] = [Text(tuple(notes), "list")] if len(notes) else []
    named = tuple((names.get(key, key), value) for key, value in rows)
    blocks += [Table((w.say("column.setting"), w.say("column.used")), named, folded=w.say("details.settings"))]
    files = tuple((w.say(f"role.{one['role']}"), one["path"], markup.count(one["rows"]), Code(str(one["sha256"])))
                  for one in w.whole.inputs)  # fmt: skip
    heads = (*(w.say(f"column.{key}") for key in ("role", "file")), f">{w.say('column.rows')}", "SHA-256")
    blocks += [Table(heads, files, folded=w.say("details.inputs"))] if files else []
    ledger = tuple((row["step"], markup.count(row["rows"])) for row in records(w.whole.ledger))
    steps = (w.say("column.step"), f">{w.say('column.rows')}")
    blocks += [Table(steps, ledger, folded=w.say("details.ledger")), Text((w.say("details.rest"),), "note")]
    n = len(w.whole.inputs)
    finding = w.say("details.from_files" if n > 1 else "details.from_file" if n else "details.from_frame", n=n)
    lead = w.say("details.lead") if len(notes) else ""
    return Section("run", w.say("section.run"), finding, lead, tuple(blocks), lang=w.lang)


def _settings(w: Formatter) -> list[tuple[str, str]]:
    """Return what was set, as pairs of names and values; file names without their folders."""
    s = w.sheet.scenario
    rows = [("name", s.name), ("file", s.path.name if s.path else ""), ("level", w.level), ("doc", s.doc)]
    rows += [("cluster", s.cluster or ""), ("where", ", ".join(f"{k} = {v}" for k, v in s.where.items()))]
    rows += [("corpus", s.corpus if s.corpus != "sample" else "")]
    if (r := s.rubric) is not None:
        rows.append(("rubric", f"{r.low:g}–{r.high:g}, {r.passing.metric} ≥ {r.passing.threshold:g}"))
    yes = {True: w.say("column.yes"), False: w.say("column.no")}
    rows += [("orient", yes[s.orient]), ("rescale", yes[s.rescale]), ("no_data", s.no_data)]
    if w.sheet.outcomes is not None:
        rows += [(key, " | ".join(getattr(s, key))) for key in ("refusal", "patterns", "partial")]
        rows += [(key, getattr(s, key)) for key in ("split", "containment", "join")]
    rows.append(("ragnb", metadata.version("ragnb")))
    return [(name, str(value)) for name, value in rows if value]


def glossary(w: Formatter) -> Section:
    """Return one sentence for each term of the page, and for each metric of this run."""
    skipped = {"documents", "clusters", "questions"} - {f"{w.unit}s"}
    skipped |= set() if len(w.gates) else {"gate", "inconclusive", "flip"}
    skipped |= set() if w.whole.comparison is not None else {"holm", "same"}
    skipped |= set() if w.sheet.outcomes is not None else {"refusal", "right_citation"}
    terms = [(term["word"].format(level=w.level), key, term["text"].format(level=w.level))
             for key, term in texts.entry(w.lang, "glossary").items() if key not in skipped]  # fmt: skip
    # The site is wherever it was built or put; the page itself refers to nothing outside unless it is told where.
    if site := os.environ.get("RAGNB_DOCS", ""):
        site = (Path(site).resolve().as_uri() if Path(site).is_dir() else site).rstrip("/")
    for name in (name for name in w.rows if name != TOTAL and w.gloss(name)):
        more = Link(w.say("sheet.catalogue"), f"{site}/{w.lang}/generated/catalogue/metrics.html#metric-{name}")
        terms.append((w.title(name), name, (w.gloss(name), *([more] if site else []))))
    name = w.say("section.glossary")
    return Section("glossary", name, name, "", (Text(tuple(terms), "terms"),), lang=w.lang)
