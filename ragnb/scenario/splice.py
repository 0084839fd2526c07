"""YAML text that says something else afterwards: only the characters of what changed are replaced.

Places come from the marks of the YAML library's nodes. What stands in the text is never written anew, because a
dumped tree re-spaces lines that nobody touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ragnb.scenario.snapshot import plain_number

Tree = Mapping[str, Any]
_BREAK = re.compile(r"\r\n|\r|\n")
_DOCUMENT_END = re.compile(r"^\.\.\.(?=\s|$)", re.MULTILINE)
# Text to every YAML reader: two letters in a row, and none of the words that some take for something else.
_PLAIN = re.compile(r"(?!0[xXoObB])(?=.*[^\W\d_]{2})[\w./][\w./:+\-]*\w")
_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})


class _Edit(NamedTuple):
    """Characters from `start` to `end` give way to `text`; `lines` start on a line of their own."""

    start: int
    end: int
    text: str
    lines: bool = False


def splice(text: str, old: Tree, new: Tree) -> str:
    """Return the text of the mapping `old` with as little changed as makes it say `new`.

    Parameters
    ----------
    text : str
        YAML as `read_text` takes it, and `old` the tree that it gave.
    old, new : mapping
        Nested mappings; lists are the same in both. A mapping that loses its last key reads as None.

    Examples
    --------
    >>> old, new = {"a": 1, "b": {"c": 2}}, {"a": 0.5, "b": {"c": 2, "丁戊": 3}}
    >>> print(splice("a: 1  # one\\nb: {c: 2}\\n", old, new), end="")
    a: 0.5  # one
    b: {c: 2, 丁戊: 3}
    """
    root = _compose(text)
    newline = found[0] if (found := _BREAK.search(text)) else "\n"
    step = next(_steps(root), 2)
    edits = list(_changes(text, root, old, new, newline, step, True))
    text = _applied(text, edits, newline)
    for where in _gone(old, new):
        text = _cut(text, _compose(text), where)
    return text


def _compose(text: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).compose(text)


def _is_mapping(node: Any) -> bool:
    return type(node).__name__ == "MappingNode"


def _steps(node: Any) -> Iterator[int]:
    """How far the file's own nested mappings are set in."""
    for key, value in node.value if _is_mapping(node) and not node.flow_style else ():
        if _is_mapping(value) and value.value and not value.flow_style:
            yield value.start_mark.column - key.start_mark.column
        yield from _steps(value)


def _changes(
    text: str, node: Any, old: Tree, new: Tree, newline: str, step: int, top: bool = False
) -> Iterator[_Edit]:
    for key, value in node.value:
        before, after = old[key.value], new.get(key.value, old[key.value])
        if _is_mapping(value) and isinstance(after, Mapping):
            yield from _changes(text, value, before, after, newline, step)
        elif after != before:
            yield _replaced(text, node, key, value, after, newline, step)
    fresh = {name: value for name, value in new.items() if name not in old}
    if not fresh:
        return
    if node.flow_style:
        last = _end(text, *node.value[-1]) if node.value else node.start_mark.index + 1
        yield _Edit(last, last, (", " if node.value else "") + _flow(fresh)[1:-1])
        return
    at = _line_end(text, _end(text, *node.value[-1]))
    if top:  # comments at the foot of a file belong to what stands above them
        foot = _DOCUMENT_END.search(text, at)
        at = foot.start() if foot else len(text)
    yield _Edit(at, at, _block(fresh, node.start_mark.column, step, newline), True)


def _replaced(text: str, parent: Any, key: Any, value: Any, after: Any, newline: str, step: int) -> _Edit:
    start, end = value.start_mark.index, value.end_mark.index
    if value.value == "" and value.style is None:  # nothing stands after the colon
        colon = _end(text, key, value)
        if isinstance(after, Mapping) and not parent.flow_style:
            at = _line_end(text, colon)
            return _Edit(at, at, _block(after, key.start_mark.column + step, step, newline), True)
        return _Edit(colon, colon, f" {_flow(after)}")
    return _Edit(start, end, _flow(after, value.style) + (newline if text[start:end].endswith("\n") else ""))


def _end(text: str, key: Any, value: Any) -> int:
    """Where an entry ends: a block mapping's own mark lies past the comments that follow it."""
    if value.value == "" and getattr(value, "style", "") is None:
        return text.index(":", key.end_mark.index) + 1
    if type(value).__name__ != "ScalarNode" and value.value and not value.flow_style:
        last = value.value[-1]
        return _end(text, *last) if _is_mapping(value) else _end(text, key, last)
    return int(value.end_mark.index)


def _line_end(text: str, at: int) -> int:
    """The beginning of the next line."""
    if text[at - 1 : at] in ("\r", "\n"):  # a block of text ends there already
        return at
    found = _BREAK.search(text, at)
    return found.end() if found else len(text)


def _applied(text: str, edits: list[_Edit], newline: str) -> str:
    made, at = "", 0
    for edit in sorted(edits, key=lambda edit: edit.start):  # stable: what is nested deeper comes first
        made += text[at : edit.start]
        made += newline if edit.lines and made and not made.endswith(("\r", "\n")) else ""
        made, at = made + edit.text, edit.end
    return made + text[at:]


def _flow(value: Any, style: str | None = None) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_spelled(name)}: {_flow(item)}" for name, item in value.items()) + "}"
    return _spelled(value, style) if isinstance(value, str) else plain_number(value)


def _block(value: Tree, column: int, step: int, newline: str) -> str:
    lines = []
    for name, item in value.items():
        nested = isinstance(item, Mapping) and bool(item)
        lines.append(f"{' ' * column}{_spelled(name)}:{'' if nested else f' {_flow(item)}'}{newline}")
        lines += [_block(item, column + step, step, newline)] if nested else []
    return "".join(lines)


def _spelled(text: str, style: str | None = None) -> str:
    """Write text in the single quotes that stood there, bare where all readers take it for text, else quoted."""
    if style == "'":
        return "'" + text.replace("'", "''") + "'"
    bare = style is None and _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    return text if bare else json.dumps(text, ensure_ascii=False)


def _gone(old: Tree, new: Tree) -> Iterator[tuple[str, ...]]:
    for key, value in old.items():
        if key not in new:
            yield (key,)
        elif isinstance(value, Mapping) and isinstance(new[key], Mapping):
            yield from ((key, *rest) for rest in _gone(value, new[key]))


def _cut(text: str, node: Any, where: tuple[str, ...]) -> str:
    """Take one entry out: its whole lines, or its part of a list in braces."""
    place = next(i for i, (key, _) in enumerate(node.value) if key.value == where[0])
    key, value = node.value[place]
    if len(where) > 1:
        return _cut(text, value, where[1:])
    start, end = key.start_mark.index, _end(text, key, value)
    if not node.flow_style:
        start -= key.start_mark.column
        return text[:start] + text[_line_end(text, end) :]
    comma = re.compile(r"\s*,[ \t]*").match(text, end)
    if comma is not None:
        return text[:start] + text[comma.end() :]
    before = _end(text, *node.value[place - 1]) if place else start
    between = re.fullmatch(r"\s*,\s*", text[before:start])  # a comment in between stays, and so does its comma
    return text[: before if between else start] + text[end:]
