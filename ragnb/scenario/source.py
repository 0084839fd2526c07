"""Read a scenario's YAML strictly: a stranger's file cannot surprise, and every value knows its line.

The tree is built from the parser's events, without recursion and without the constructors of the YAML library, so
that nothing but text, numbers, true, false, lists and mappings can come out of a file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragnb.errors import RagnbError, place
from ragnb.scenario.words import Where, dotted, invisible, shown
from ragnb.schema import masked

MAX_BYTES = 1_000_000
MAX_DEPTH = 12

_NULL = ("", "~", "null", "Null", "NULL")
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)\.[0-9]*)(?:[eE][-+]?[0-9]+)?")
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
        for end in range(len(where), 0, -1):
            if where[:end] in self.lines:
                return self.lines[where[:end]]
        return 1


def read_source(file: Path) -> Source:
    """Read a YAML file into a tree with lines; whatever is not plain YAML 1.2 is refused."""
    return read_text(_text(file), file)


def read_text(text: str, file: Path) -> Source:
    """Read YAML text as `read_source` does; messages name it by `file`, which need not exist."""
    tree = _Tree(file)
    error: tuple[int, str, bool] | None = None
    try:
        tree.take(_events(text))
    except RagnbError:
        raise
    except Exception as problem:  # the parser lets ValueError, RecursionError and others out of broken text
        error = _problem(problem, text)
    if error is not None:
        line, why, several = error
        raise RagnbError(f"{place(file, line, _key_of_line(text, line, several))}this is not valid YAML: {why}")
    if not isinstance(tree.root, dict):
        raise RagnbError(f"{place(file, 1)}a scenario is a mapping such as 'scores: my_scores.csv'")
    return Source(file, text, tree.root, tree.lines)


def _text(file: Path) -> str:
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


def _events(text: str) -> Iterable[Any]:
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
    found = (
        re.match(r"[\s\-]{0,200}['\"]?([^\s:'\"{}\[\],#][^:'\"{}\[\],#]{0,80})['\"]?\s{0,20}:", rows[line - 1])
        if (known and line <= len(rows))
        else None
    )
    return masked(found.group(1).strip()) if found else None


@dataclass
class _Open:
    """A list or mapping that is being filled."""

    where: Where
    value: dict[str, Any] | list[Any]
    key: str | None = None
    seen: set[str] = field(default_factory=set)

    @property
    def next(self) -> Where:
        return (*self.where, len(self.value) if isinstance(self.value, list) else str(self.key))

    def add(self, value: Any) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        else:
            self.value[str(self.key)] = value
            self.key = None


class _Tree:
    """The tree as it grows from the parser's events."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.root: Any = None
        self.lines: dict[Where, int] = {}
        self.open: list[_Open] = []
        self.documents = 0

    def refuse(self, line: int, where: Where, why: str) -> RagnbError:
        return RagnbError(f"{place(self.file, line, dotted(where) or None)}{why}")

    def take(self, events: Iterable[Any]) -> None:
        for event in events:
            kind = type(event).__name__
            line = event.start_mark.line + 1
            if kind == "DocumentStartEvent":
                self._document(event, line)
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                self.open.pop()
            elif kind in ("AliasEvent", "ScalarEvent", "MappingStartEvent", "SequenceStartEvent"):
                self._node(event, kind, line)

    def _document(self, event: Any, line: int) -> None:
        self.documents += 1
        if self.documents > 1:
            raise self.refuse(line, (), "a second document begins; a scenario file holds one")
        if event.version or event.tags:
            raise self.refuse(line, (), "directives (%YAML, %TAG) are not taken; remove the line")

    def _node(self, event: Any, kind: str, line: int) -> None:
        top = self.open[-1] if self.open else None
        is_key = top is not None and isinstance(top.value, dict) and top.key is None
        where: Where = () if top is None else top.where if is_key else top.next
        if kind == "AliasEvent" or event.anchor is not None:
            raise self.refuse(line, where, "anchors (&) and aliases (*) are not taken; write the value out")
        if event.tag is not None or (kind == "ScalarEvent" and event.implicit == (False, False)):
            raise self.refuse(line, where, "tags (!) are not taken; write the plain value")
        if is_key and top is not None:
            self._key(top, event, kind, line)
            return
        self.lines.setdefault(where, line)
        value: Any = self._scalar(event, where, line) if kind == "ScalarEvent" else {} if kind[0] == "M" else []
        if top is None:
            self.root = value
        else:
            top.add(value)
        if kind != "ScalarEvent":
            self.open.append(_Open(where, value))
            if len(self.open) > MAX_DEPTH:
                raise self.refuse(line, where[:3], f"nested deeper than {MAX_DEPTH} levels")

    def _key(self, top: _Open, event: Any, kind: str, line: int) -> None:
        if kind != "ScalarEvent" or not event.value.strip():
            raise self.refuse(line, top.where, "a key must be a word, not empty, a list or a mapping")
        key: str = event.value
        where = (*top.where, key)
        if key == "<<" and event.style is None:
            raise self.refuse(line, where, "merge keys are not taken; write the values out")
        if unseen := invisible(key):
            clean = "".join(c for c in key if not invisible(c))
            raise self.refuse(
                line,
                (*top.where, clean),
                f"the key holds invisible characters ({', '.join(unseen)}); type it anew",
            )
        same = unicodedata.normalize("NFC", key)
        if same in top.seen:
            first = next(self.lines[(*top.where, k)] for k in top.value if unicodedata.normalize("NFC", k) == same)
            raise self.refuse(line, where, f"the key stands here twice, first on line {first}; keep one")
        top.seen.add(same)
        top.key = key
        self.lines[where] = line

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
