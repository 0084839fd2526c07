"""What a parser reads on a page of the sheet: tables, questions, links, data, and the numbers of a text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

_NUMBER = re.compile(r"(?<![\w.])[+−-]?\d[\d,]*(?:\.\d+)?(?![\w])")
_VOID = {"meta", "br", "input", "wbr"}
PAYLOADS = [  # what a stranger may write in the hope that a browser runs it
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    '"><svg onload=alert(3)>',
    "</style><script>alert(4)</script>",
    "javascript:alert(5)",
    "'};alert(6);//",
    "</title><script>alert(7)</script>",
    "<iframe srcdoc='<script>alert(8)</script>'>",
]


def numbers(text: str) -> list[str]:
    """Every number of a text, as it is written, without the commas of thousands."""
    return [found.replace(",", "").rstrip(",") for found in _NUMBER.findall(text)]


class Cells(list[str]):
    """Texts of the cells of a row, without pictures; `codes` in them; `whole` with the words of the pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.codes: list[str] = []
        self.whole: list[str] = []


class Reader(HTMLParser):
    """Tables and questions as lists of rows of texts, every tag with its attributes, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[Cells]] = []
        self.samples: list[list[str]] = []
        self.passages: list[str] = []
        self.marked: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.markup = "", text
        self.open: list[tuple[str, dict[str, str | None], int]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.tags.append((tag, held))
        if tag not in _VOID:
            self.open.append((tag, held, len(self.text)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append(Cells())
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.tables[-1][-1].whole.append("")
        elif tag == "svg" and self._in("td", "th"):
            self.tables[-1][-1].whole[-1] += f" {held.get('aria-label') or ''} "
        elif tag == "summary" and self._classes("q"):
            self.samples.append([])
        elif (
            tag == "span"
            and self._in("summary")
            and self._classes("q")
            and self.open[-2][0] == "summary"
        ):
            self.samples[-1].append("")
        elif self._in("td", "th"):
            is_line = held.get("class") == "rg-line"
            if is_line or tag in ("small", "code", "br"):
                self._add(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while any(tag == name for name, *_ in self.open):
            name, attrs, start = self.open.pop()
            words = self.text[start:]
            if name == "mark":
                self.marked.append(words)
            elif attrs.get("class") == "rg-passage":
                self.passages.append(words.strip())
            elif name == "code" and self._in("td", "th"):
                self.tables[-1][-1].codes.append(words)
            if name == tag:
                break
        if tag in ("td", "th"):
            row = self.tables[-1][-1]
            row[-1] = re.sub(r"\s+", " ", row[-1]).strip()

    def handle_data(self, data: str) -> None:
        if self._in("style", "title", "script") and not self._in("svg"):
            return
        if not self._in("svg"):
            self._add(data)
        self.text += data

    def _add(self, data: str) -> None:
        if self._in("td", "th"):
            self.tables[-1][-1][-1] += data
            self.tables[-1][-1].whole[-1] += data
        elif self.samples and self._in("summary") and self._classes("q") and self.samples[-1]:
            self.samples[-1][-1] += data

    def _in(self, *tags: str) -> bool:
        return any(tag in tags for tag, *_ in self.open)

    def _classes(self, name: str) -> bool:
        return any(name in (attrs.get("class") or "").split() for _, attrs, _ in self.open)

    def within(self, tag: str) -> str:
        """The text of the first element of that name, by reading the page's markup again."""
        found = re.search(rf"<{tag}\b.*?</{tag}>", self.markup, re.DOTALL)
        return Reader(found[0]).text if found else ""


def table_of(markdown: str) -> list[list[str]]:
    """The rows of the first Markdown table of a text, as cells."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def island(page: str) -> Any:
    """The data that the script of a page reads."""
    found = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def anchored(blocks: Any, kind: type) -> list[Any]:
    """The blocks of one kind."""
    return [block for block in blocks if isinstance(block, kind)]
