"""The terms of the page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ragnb import texts
from ragnb.markup.blocks import Link, Section, Text
from ragnb.schema import TOTAL
from ragnb.sheet.formatter import Formatter


def glossary(w: Formatter) -> Section:
    """Return one sentence for each term of the page, and for each metric of this run."""
    # Terms that this page does not use; of the kinds of clusters only the one that this run has.
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
    site = os.environ.get("RAGNB_DOCS", "")
    if site and Path(site).is_dir():
        site = Path(site).resolve().as_uri()
    site = site.rstrip("/")
    for name in w.rows:
        if name == TOTAL or not w.gloss(name):
            continue
        text: tuple[Any, ...] = (w.gloss(name),)
        if site:
            place = f"{site}/{w.lang}/generated/catalogue/metrics.html#metric-{name}"
            text = (*text, Link(w.say("sheet.catalogue"), place))
        terms.append((w.title(name), name, text))
    return w.section("glossary", w.say("section.glossary"), "", [Text(tuple(terms), "terms")])
