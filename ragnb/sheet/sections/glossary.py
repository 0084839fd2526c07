"""The terms of the page."""

from __future__ import annotations

import os
from pathlib import Path

from ragnb import texts
from ragnb.markup.blocks import Link, Section, Text
from ragnb.schema import TOTAL
from ragnb.sheet.formatter import Formatter


def glossary(w: Formatter) -> Section:
    """Return one sentence for each term of the page, and for each metric of this run."""
    skipped = {"documents", "conversations", "clusters", "questions"} - {f"{w.unit}s"}
    if not len(w.gates):
        skipped |= {"gate", "inconclusive", "flip"}
    if w.whole.comparison is None:
        skipped |= {"holm", "same"}
    if w.sheet.outcomes is None:
        skipped |= {"refusal", "right_citation"}
    terms = [
        (term["word"].format(level=w.level), key, term["text"].format(level=w.level))
        for key, term in texts.entry(w.lang, "glossary").items()
        if key not in skipped
    ]
    # The site is wherever it was built or put; the page itself refers to nothing outside unless it is told where.
    if site := os.environ.get("RAGNB_DOCS", ""):
        site = (Path(site).resolve().as_uri() if Path(site).is_dir() else site).rstrip("/")
    for name in (name for name in w.rows if name != TOTAL and w.gloss(name)):
        more = Link(
            w.say("sheet.catalogue"),
            f"{site}/{w.lang}/generated/catalogue/metrics.html#metric-{name}",
        )
        terms.append((w.title(name), name, (w.gloss(name), *([more] if site else []))))
    return w.section("glossary", w.say("section.glossary"), "", [Text(tuple(terms), "terms")])
