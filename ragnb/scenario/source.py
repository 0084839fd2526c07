"""The YAML of a scenario: read with the line of every key, refused in words, and written."""

from __future__ import annotations

import json
import math
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragnb.errors import RagnbError, place
from ragnb.scenario.examples import KeyPath
from ragnb.schema.secrets import masked, shown

REFUSALS = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))
_SYNTAX: Mapping[str, str] = REFUSALS["syntax"]

MAX_BYTES = 1_000_000  # of a scenario; what is larger is data
MAX_DEPTH = 12  # levels of YAML, more than any key of a scenario has

_ALIASES = "anchors (&) and aliases (*) are not supported; write the value out"
_TAGS = "tags (!) are not supported; write the plain value"
_WHOLE = {
    "undefined alias": _ALIASES,
    "undefined tag handle": _TAGS,
    "another document": "a second YAML document starts here; a scenario file contains one",
    "maximum depth": f"nested deeper than {MAX_DEPTH} levels",
}
"""What the library says of a text that is well formed and not taken, and what is said of it here."""

# Comments and blank lines may stand before a directive.
_DIRECTIVE = re.compile(r"(?:[ \t]*(?:#.*)?(?:\r\n|\r|\n))*%")
_KEY = re.compile(r"[\s\-\[{]{0,200}['\"]?([^\s:'\"{}\[\],#][^:'\"{}\[\],#]{0,80})['\"]?\s{0,20}:")
_NUMBER = re.compile(
    r"[-+]?(?:0|[1-9][0-9]{0,399}|(?:0|[1-9][0-9]*)\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+][0-9]+)?"
    r"|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
)
# Text to this library, numbers to others: hexadecimal in capitals, sexagesimal, an exponent without a sign.
_NUMBER_ELSEWHERE = re.compile(
    r"[-+]?(?:0[xXoObB][0-9a-fA-F_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|\.[0-9][0-9_]*[eE][0-9]+)"
)
# Text to every reader: two letters in a row, and none of the words that some take for something else.
_WORD = r"[\w./](?:[\w./:+\-]*\w)?"
_PLAIN = re.compile(rf"(?!0[xXoObB])(?=.*[^\W\d_]{{2}}){_WORD}(?: {_WORD})*")
_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
# Unicode gives these no format category, and yet they draw nothing.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

# Plain YAML 1.2 in and out: a stranger's file cannot surprise, every value knows its line, every reader agrees.
# The library composes the tree and resolves its plain words. Nothing but text, numbers, true, false, nothing,
# lists and mappings comes out; what only some readers take, or take for something else, is refused.


def dotted(where: KeyPath) -> str:
    """Word a place in the tree.

    Examples
    --------
    >>> dotted(("gates", 0, "at"))
    'gates[0].at'
    """
    parts = [f"[{part}]" if isinstance(part, int) else f".{masked(part)}" for part in where]
    return "".join(parts).removeprefix(".")


def invisible(text: str) -> list[str]:
    """Return the characters of a name that no one sees, as ``U+XXXX``.

    Examples
    --------
    >>> invisible("faith\\u202efulness"), invisible("差旅报销制度.pdf")
    (['U+202E'], [])
    """
    unseen = [
        char
        for char in text
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") or _BLANK.match(char)
    ]
    return [f"U+{ord(char):04X}" for char in dict.fromkeys(unseen)]


def nfc(text: str) -> str:
    """Return a name in its composed Unicode spelling, in which names are compared."""
    return unicodedata.normalize("NFC", text)


def flow(value: Any, style: str | None = None) -> str:
    """Write a value on one line: text in the quotes of `style`, else bare where every reader takes it for text.

    Examples
    --------
    >>> print(flow({"lang": "zh", "kept": [True, 1e-05, 2], "no": "it's", "says": "1e3"}))
    {lang: zh, kept: [true, 1.0e-05, 2], "no": "it's", says: "1e3"}
    """
    if isinstance(value, Mapping):
        entries = [f"{flow(name)}: {flow(item)}" for name, item in value.items()]
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return _number_text(value)
    if style == "'":
        return "'" + value.replace("'", "''") + "'"
    if style is None and _PLAIN.fullmatch(value) and value.lower().strip(".") not in _WORDS:
        return value
    # YAML reads strings of JSON, but takes some characters that do not print only as escapes.
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08X}" for char in quoted)


def _number_text(value: Any) -> str:
    """Write a number so that every reader of YAML takes it for one."""
    # The floats of numpy would be written with their type.
    text = repr(float(value) if isinstance(value, float) else value)
    if math.isinf(value) or "." in text:
        return text.replace("inf", ".inf")
    # YAML 1.1 takes 1e-05 for text: a float has a point there.
    return text.replace("e", ".0e")


def block(tree: Mapping[str, Any], column: int = 0, newline: str = "\n", step: int = 2) -> str:
    """Write a mapping as lines set in by `column`, mappings in it by `step` more, and one line per item of a list.

    Examples
    --------
    >>> print(block({"weights": {"甲.pdf": 1}, "metrics": ["clarity", {"name": "tone", "low": 0.0}]}), end="")
    weights:
      甲.pdf: 1
    metrics:
    - clarity
    - {name: tone, low: 0.0}
    """
    lines = []
    for name, value in tree.items():
        head = f"{' ' * column}{flow(name)}:"
        if isinstance(value, Mapping) and value:
            lines.append(f"{head}{newline}")
            lines.append(block(value, column + step, newline, step))
        elif isinstance(value, list | tuple) and value:
            lines.append(f"{head}{newline}")
            lines += [f"{' ' * column}- {flow(item)}{newline}" for item in value]
        else:
            lines.append(f"{head} {flow(value)}{newline}")
    return "".join(lines)


def text_of(file: Path) -> str:
    """Return the text of a file of settings, which must be UTF-8 and small."""
    with file.open("rb") as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise RagnbError(
            f"{place(file)}larger than {MAX_BYTES:,} bytes; a scenario holds settings, not data"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
    # What it may be instead; raised outside of the `except`, as that error holds the bytes of the file.
    hint = ""
    with suppress(UnicodeDecodeError):
        raw.decode("gb18030")
        hint = (
            " (it may be GBK; 'encoding:' in a scenario is for the files it names, not for itself)"
        )
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        hint = " (it looks like UTF-16)"
    raise RagnbError(f"{place(file, line)}not UTF-8{hint}; save the file as UTF-8")


def read_text(text: str, file: Path) -> Source:
    """Read YAML text into a tree with lines; whatever is not plain YAML 1.2 is refused.

    Messages name it by `file`, which need not exist.
    """
    directive = _DIRECTIVE.match(text)
    if directive:
        line = len(directive[0].splitlines())
        raise RagnbError(
            f"{place(file, line)}directives (%YAML, %TAG) are not supported; remove the line"
        )
    try:
        root = compose(text)
    except Exception as problem:  # the parser lets ValueError and others out of broken text
        raise _syntax_refusal(problem, text, file) from None
    if root is None or root.id != "mapping":
        raise RagnbError(f"{place(file, 1)}a scenario is a mapping such as 'scores: my_scores.csv'")
    source = Source(file, text)
    source.data = source.value(root, ())
    return source


def compose(text: str) -> Any:
    """Return the nodes of one YAML document, with their places in the text; None for an empty one."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = MAX_DEPTH + 1
    # The warning quotes the file, and every anchor is refused.
    yaml.composer.warn_double_anchors = False
    return yaml.compose(text)


def _syntax_refusal(error: Exception, text: str, file: Path) -> RagnbError:
    """Word the library's exception by line and reason; its own text quotes the file and is left out."""
    problem = str(getattr(error, "problem", None) or "")
    line = _line_of(error, problem, text)
    rows = text.splitlines()
    # An exception without a problem and a position has no line: what is on the first one is not its key.
    has_place = bool(problem) or getattr(error, "position", None) is not None
    key = None
    if has_place and line <= len(rows):
        key = _KEY.match(rows[line - 1])
    where = place(file, line, masked(key[1].strip()) if key else None)
    for sign, refusal in _WHOLE.items():
        if sign in problem:
            return RagnbError(f"{where}{refusal}")
    if "block scalar" in str(getattr(error, "context", "")):
        problem = 'a value that starts with > or | needs quotes, such as op: ">="'
    if "'\\t'" in problem:
        problem = "a tab cannot indent; use spaces"
    why = masked(problem) or "a character or an escape that YAML does not allow"
    for sign, meaning in _SYNTAX.items():
        if sign in problem:
            why = meaning
            break
    return RagnbError(f"{where}this is not valid YAML: {why}")


def _line_of(error: Exception, problem: str, text: str) -> int:
    """Return the line of an exception of the library, counted from 1; 1 where it has none."""
    # What is never closed is found at the end of the text: it began where the context is.
    is_at_end = "end" in problem and "stream" in problem
    mark = getattr(error, "problem_mark", None)
    if is_at_end:
        mark = getattr(error, "context_mark", None) or mark
    if mark:
        return int(mark.line) + 1
    position = getattr(error, "position", None)  # of a character that YAML does not allow
    if isinstance(position, int):
        return text.count("\n", 0, position) + 1
    return 1


@dataclass
class Source:
    """A YAML file that was read: its text, the values that its nodes represent, and the line of each."""

    file: Path
    text: str = field(repr=False)
    data: dict[str, Any] = field(default_factory=dict, repr=False)
    lines: dict[KeyPath, int] = field(default_factory=dict, repr=False)

    def line(self, where: KeyPath) -> int:
        """Return the line of a place, or of the nearest place above it."""
        for end in range(len(where), 0, -1):
            line = self.lines.get(where[:end])
            if line is not None:
                return line
        return 1

    def _refusal(self, node: Any, where: KeyPath, why: str) -> RagnbError:
        line = node.start_mark.line + 1
        return RagnbError(f"{place(self.file, line, dotted(where) or None)}{why}")

    def _checked(self, node: Any, where: KeyPath) -> int:
        """Return the line of a node, which begins with its tag or anchor if it has one."""
        begins = self.text[node.start_mark.index :][:1]
        if node.anchor is not None or begins == "&":
            raise self._refusal(node, where, _ALIASES)
        if begins == "!":
            raise self._refusal(node, where, _TAGS)
        return int(node.start_mark.line) + 1

    def value(self, node: Any, where: KeyPath) -> Any:
        """Return what a node represents."""
        # The line of a key is there already, where its value may begin on a later one.
        self.lines.setdefault(where, self._checked(node, where))
        if node.id == "sequence":
            return [self.value(item, (*where, i)) for i, item in enumerate(node.value)]
        if node.id == "mapping":
            first_lines: dict[str, int] = {}
            mapping = {}
            for key_node, item in node.value:
                key = self._key(key_node, where, first_lines)
                mapping[key] = self.value(item, (*where, key))
            return mapping
        return self._scalar(node, where)

    def _scalar(self, node: Any, where: KeyPath) -> str | int | float | bool | None:
        """Return what a word represents, by the tag that the library gives it."""
        text: str = node.value
        if node.style is not None:  # in quotes, or a block of text
            return text
        kind = node.tag.rpartition(":")[2]  # of "tag:yaml.org,2002:int"
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        is_number = kind in ("int", "float")
        if is_number and _NUMBER.fullmatch(text):
            if kind == "int":
                return int(text)
            # .inf and .nan are inf and nan to Python.
            return float(re.sub(r"\.(?=[iInN])", "", text))
        if not is_number and not _NUMBER_ELSEWHERE.fullmatch(text):
            return text  # also dates, =, yes and no
        why = (
            f"{shown(text)} is a number to some YAML parsers but not to others; "
            "write a plain decimal number, or put it in quotes if it is text"
        )
        raise self._refusal(node, where, why)

    def _key(self, node: Any, above: KeyPath, first_lines: dict[str, int]) -> str:
        """Return a key of a mapping, whose keys so far, normalised, are on `first_lines`."""
        line = self._checked(node, above)
        if node.id != "scalar" or not node.value.strip():
            raise self._refusal(node, above, "a key must be a word, not empty, a list or a mapping")
        key: str = node.value
        if key == "<<" and node.style is None:
            raise self._refusal(
                node, (*above, key), "merge keys are not supported; write the values out"
            )
        unseen = invisible(key)
        if unseen:
            clean = "".join(char for char in key if not invisible(char))
            why = f"the key contains invisible characters ({', '.join(unseen)}); retype it"
            raise self._refusal(node, (*above, clean), why)
        composed = nfc(key)
        if composed in first_lines:
            why = f"the key appears twice, first on line {first_lines[composed]}; keep one"
            raise self._refusal(node, (*above, key), why)
        first_lines[composed] = line
        self.lines[(*above, key)] = line
        return key
