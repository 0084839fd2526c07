"""Count the words of each section of the site, for the ranking of its search (`search.js`).

Sphinx's own index knows which page has a word, and no more: a page of a hundred sections has them all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

# How often a word counts in the heading of a section or in its index entries, and in the title of its page.
_HEADING = 5
_TITLE = 2
_FILE = "sections.js"


class Section(NamedTuple):
    """A section without those below it."""

    anchor: str
    heading: str
    text: str
    entries: str


def setup(app: Sphinx) -> None:
    """Write the counts after each build, and load them on the page of the search."""
    app.connect("html-page-context", _load)
    app.connect("build-finished", _write)


def _load(app: Sphinx, page: str, *_: Any) -> None:
    if page == "search":
        app.add_js_file(_FILE)


def _write(app: Sphinx, failure: Exception | None) -> None:
    indexer = getattr(app.builder, "indexer", None)
    if failure is not None or indexer is None:
        return
    counted = _counted(app, indexer.lang)
    text = json.dumps(counted, ensure_ascii=False, separators=(",", ":"))
    path = Path(app.outdir) / "_static" / _FILE
    path.write_text(f"const SECTIONS = {text};\n", encoding="utf-8")


def _counted(app: Sphinx, language: Any) -> dict[str, Any]:
    """Return the sections, ``[page, anchor, heading]``, and of each word ``[section, count, section, count]``."""

    @cache
    def stem(word: str) -> str:
        found: str = language.stem(word).lower()
        return found

    def count(text: str, weight: int = 1) -> Counter[str]:
        words = [stem(word) for word in language.split(text)]
        kept = Counter(word for word in words if language.word_filter(word))
        return Counter({word: weight * n for word, n in kept.items()})

    sections: list[tuple[str, str, str]] = []
    terms: dict[str, list[int]] = {}
    for page in sorted(app.env.found_docs):
        title = app.env.titles[page].astext()
        for section in _sections(app.env.get_doctree(page)):
            words = count(section.text)
            words += count(f"{section.heading} {section.entries}", _HEADING)
            words += count(title, _TITLE)
            for word, n in words.items():
                terms.setdefault(word, []).extend((len(sections), n))
            sections.append((page, section.anchor, section.heading))
    return {"sections": sections, "terms": terms}


def _sections(tree: nodes.document) -> Iterator[Section]:
    for node in tree.findall(nodes.section):
        own = [part for part in node.children if not isinstance(part, nodes.section)]
        heading = " ".join(part.astext() for part in own if isinstance(part, nodes.title))
        text = " ".join(part.astext() for part in own if not isinstance(part, nodes.title))
        entries = [
            entry[1]
            for part in own
            for index in part.findall(addnodes.index)
            for entry in index["entries"]
        ]
        yield Section(node["ids"][0], heading, text, " ".join(entries))
