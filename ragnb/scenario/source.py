"""Read a scenario's YAML strictly: a stranger's file cannot surprise, and every value knows its line.

The tree is built from the parser's events, without the constructors of the YAML library, so that nothing but text,
numbers, true, false, lists and mappings can come out of a file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from ragnb.errors import RagnbError, place
from ragnb.scenario.words import Where, dotted, invisible, shown
from ragnb.schema import masked

MAX_BYTES = 1_000_000
MAX_DEPTH = 12
_ENDS = ("MappingEndEvent", "SequenceEndEvent")

_NULL = ("", "~", "null", "Null", "NULL")
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)\.[0-9]*)(?:[eE][-+]?[0-9]+)?")
_KEY = re.compile(r"[\s\-]{0,200}['\"]?([^\s:'\"{}\[\],#][^:'\"{}\[\],#]{0,80})['\"]?\s{0,20}:")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF|nan|NaN|NAN)")
# Numbers to one YAML reader, text or other numbers to the next.
_UNCLEAR = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    r"|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?)"
)


@dataclass(frozen=True)
class Source:
    """A YAML file that was read: its text, its tree, and the line of each place in the tree."""

    file: Path
    text: str = field(repr=False)
    data: dict[str, Any] = field(repr=False)
    lines: dict[Where, int] = field(repr=False)

    def line(self, where: Where) -> int:
        """Return the line of a place, or of the nearest place above it."""
        places = (where[:end] for end in range(len(where), 0, -1))
        return next((self.lines[above] for above in places if above in self.lines), 1)


def read_text(text: str, file: Path) -> Source:
    """Read YAML text into a tree with lines; whatever is not plain YAML 1.2 is refused.

    Messages name it by `file`, which need not exist.
    """
    tree = _Tree(file, text)
    error: tuple[int, str, bool] | None = None
    try:
        root = tree.root()
    except RagnbError:
        raise
    except Exception as problem:  # the parser lets ValueError, RecursionError and others out of broken text
        error = _problem(problem, text)
    if error is not None:
        line, why, several = error
        raise RagnbError(f"{place(file, line, _key_of_line(text, line, several))}this is not valid YAML: {why}")
    if not isinstance(root, dict):
        raise RagnbError(f"{place(file, 1)}a scenario is a mapping such as 'scores: my_scores.csv'")
    return Source(file, text, root, tree.lines)


def text_of(file: Path) -> str:
    """Return the text of a file of settings, which must be UTF-8 and small."""
    with file.open("rb") as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise RagnbError(f"{place(file)}larger than {MAX_BYTES:,} bytes; a scenario holds settings, not data")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
    raise RagnbError(f"{place(file, line)}not UTF-8{_other_encoding(raw)}; save the file as UTF-8")


def _other_encoding(raw: bytes) -> str:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return " (it looks like UTF-16)"
    try:
        raw.decode("gb18030")
    except UnicodeDecodeError:
        return ""
    return " (it may be GBK; 'encoding:' in a scenario is for the files it names, not for itself)"


def _events(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).parse(text)  # type: ignore[no-any-return]


def _problem(error: Exception, text: str) -> tuple[int, str, bool]:
    """Word a parser's exception by line and reason; its own text quotes the file and is left out."""
    why = str(getattr(error, "problem", None) or "")
    if not why:
        at = getattr(error, "position", None)
        line = text.count("\n", 0, at) + 1 if isinstance(at, int) else 1
        return line, "a character or an escape that YAML does not allow", isinstance(at, int)
    ended = "end" in why and "stream" in why
    mark = (ended and getattr(error, "context_mark", None)) or getattr(error, "problem_mark", None)
    if "block scalar" in str(getattr(error, "context", "")):
        why = 'a value that starts with > or | needs quotes, such as op: ">="'
    if "'\\t'" in why:
        why = "a tab cannot indent; use spaces"
    return (mark.line + 1 if mark else 1), masked(why), True


def _key_of_line(text: str, line: int, known: bool) -> str | None:
    rows = text.splitlines()
    found = _KEY.match(rows[line - 1]) if known and line <= len(rows) else None
    return masked(found.group(1).strip()) if found else None


class _Tree:
    """The tree that the parser's events make, and the line of each place in it."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self.events = _events(text)
        self.lines: dict[Where, int] = {}

    def refuse(self, line: int, where: Where, why: str) -> RagnbError:
        return RagnbError(f"{place(self.file, line, dotted(where) or None)}{why}")

    def root(self) -> Any:
        """Return what the one document holds, None for none."""
        root, documents = None, 0
        for event in self.events:
            if type(event).__name__ != "DocumentStartEvent":
                continue
            line, documents = event.start_mark.line + 1, documents + 1
            if documents > 1:
                raise self.refuse(line, (), "a second document begins; a scenario file holds one")
            if event.version or event.tags:
                raise self.refuse(line, (), "directives (%YAML, %TAG) are not taken; remove the line")
            root = self._value(next(self.events), ())
        return root

    def _value(self, event: Any, where: Where) -> Any:
        """Return what an event begins; a list or mapping takes all events up to its end."""
        kind, line = self._plain(event, where)
        self.lines.setdefault(where, line)
        if kind == "ScalarEvent":
            return self._scalar(event, where, line)
        if len(where) >= MAX_DEPTH:
            raise self.refuse(line, where[:3], f"nested deeper than {MAX_DEPTH} levels")
        inside = takewhile(lambda inner: type(inner).__name__ not in _ENDS, self.events)
        if kind == "SequenceStartEvent":
            return [self._value(inner, (*where, i)) for i, inner in enumerate(inside)]
        made: dict[str, Any] = {}
        spelled: dict[str, int] = {}
        for inner in inside:
            key = self._key(inner, where, spelled)
            made[key] = self._value(next(self.events), (*where, key))
        return made

    def _plain(self, event: Any, where: Where) -> tuple[str, int]:
        """Return the kind and the line of what an event begins; refuse what only some YAML readers take."""
        kind, line = type(event).__name__, event.start_mark.line + 1
        if kind == "AliasEvent" or event.anchor is not None:
            raise self.refuse(line, where, "anchors (&) and aliases (*) are not taken; write the value out")
        if event.tag is not None or (kind == "ScalarEvent" and event.implicit == (False, False)):
            raise self.refuse(line, where, "tags (!) are not taken; write the plain value")
        return kind, line

    def _key(self, event: Any, above: Where, spelled: dict[str, int]) -> str:
        """Return a key of a mapping, whose keys so far, normalised, stand on the lines `spelled`."""
        kind, line = self._plain(event, above)
        if kind != "ScalarEvent" or not event.value.strip():
            raise self.refuse(line, above, "a key must be a word, not empty, a list or a mapping")
        key: str = event.value
        where = (*above, key)
        if key == "<<" and event.style is None:
            raise self.refuse(line, where, "merge keys are not taken; write the values out")
        if unseen := invisible(key):
            clean = "".join(c for c in key if not invisible(c))
            why = f"the key holds invisible characters ({', '.join(unseen)}); type it anew"
            raise self.refuse(line, (*above, clean), why)
        same = unicodedata.normalize("NFC", key)
        if same in spelled:
            raise self.refuse(line, where, f"the key stands here twice, first on line {spelled[same]}; keep one")
        spelled[same] = self.lines[where] = line
        return key

    def _scalar(self, event: Any, where: Where, line: int) -> Any:
        text: str = event.value
        if event.style is not None:
            return text
        if text in _NULL or text in _BOOL:
            return _BOOL.get(text)
        if _INT.fullmatch(text) and len(text) <= 400:
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        if special := _SPECIAL.fullmatch(text):
            return float(special[1] + special[2])
        if _UNCLEAR.fullmatch(text):
            raise self.refuse(
                line,
                where,
                f"{shown(text)} is a number to one YAML reader and not to the next; "
                "write a plain decimal number, or put it in quotes if it is text",
            )
        return text
