"""A judge's reply → the objects in it: read strictly, else with Chinese signs, else leniently; never guessed."""

from __future__ import annotations

import html
import json
import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from ragnb.errors import RagnbError

_DEPTH = 12  # no verdict lies deeper
_SIGNS = str.maketrans("：，｛｝［］、；＝", ":,{}[],;=")
_CLOSERS = dict.fromkeys('"＂', '"＂') | dict.fromkeys("“”", '”“"') | dict.fromkeys("‘’", "’‘'")
_CLOSERS |= {"'": "'", "「": "」", "『": "』", "`": "`"}


@cache
def _table(section: str) -> dict[str, str]:
    rows: dict[str, str] = tomllib.loads(files(__package__).joinpath("replies.toml").read_text("utf-8"))[section]
    return rows


def _written(text: str, parts: Mapping[str, str]) -> str:
    """Return a pattern with what it names in braces put in place."""
    return re.sub(r"\{([a-z_]+)\}", lambda part: _written(parts[part[1]], parts), re.sub(r"(?:^|\n) *", "", text))


@cache
def pattern(name: str, words: str = "") -> re.Pattern[str]:
    """Return a pattern of ``replies.toml``; `words` stand for ``{words}`` in it."""
    parts = _table("patterns")
    return re.compile(_written(parts[name], parts | {"words": words}))


@cache
def word_set(name: str) -> frozenset[str]:
    """Return the words of a list of ``replies.toml``."""
    return frozenset(word.strip() for word in _table("words")[name].split(","))


class Unreadable(RagnbError):
    """A reply from which no verdict can be read; `parse_status` says in one word why."""

    def __init__(self, parse_status: str, why: str) -> None:
        super().__init__(why)
        self.parse_status = parse_status


class Raw(str):
    """A number, a constant or a word without quotes, as the reply has it."""


class Object(tuple[tuple[str, Any], ...]):
    """The members of an object in their order, those with the same key too."""


class Found(NamedTuple):
    """A value of a reply, where it is, and how it was read: ``strict``, ``folded`` or ``repaired``.

    `value` is an `Object`, a list of some, or None for what begins as an object and cannot be read; then `how` is
    ``truncated`` or ``no_json``. An object with an ellipsis for a member is ``elided``: a pattern, not a value.
    """

    value: Any
    start: int
    end: int
    how: str


class _Broken(Exception):
    """What cannot be read."""


def without_thoughts(text: str) -> str:
    """Return a reply without the blocks in which a model thinks.

    What stands before a closing mark without an opening one was thought too: some endpoints swallow the first.

    Raises
    ------
    Unreadable
        ``truncated`` where a block is not closed.

    Examples
    --------
    >>> without_thoughts("<think>8? [THINK]9?[/THINK]</think> 7")
    ' 7'
    """
    kept, depth, place = list[str](), 0, 0
    for mark in pattern("thought").finditer(text):
        if not depth:
            kept.append(text[place : mark.start()])
        if final := mark.lastgroup:  # only what closes a block has a group
            if not depth and final != "final":
                kept.clear()
            depth = max(0, depth - 1) if final != "final" else 0
        elif not mark[0].rstrip(">＞").endswith("/"):
            depth += 1
        place = mark.end()
    text, fence = "".join([*kept, text[place:]]), pattern("thought_fence")
    if depth or any(block["open"] is not None for block in fence.finditer(text)):
        raise Unreadable("truncated", "the reply ends in the middle of the model's thoughts")
    return fence.sub("", text)


def unwrapped(text: str) -> str:
    """Return the JSON of a reply that is nothing but a JSON text in a string, or has its quotes escaped.

    Examples
    --------
    >>> unwrapped(r'"{\\"accuracy\\": 8}"')
    '{"accuracy": 8}'
    """
    for _ in range(2):
        body = _unfenced(text).strip()
        body = f'"{body}"' if pattern("escaped_object").match(body) else body
        with suppress(ValueError):
            text = json.loads(body, strict=False) if pattern("object_in_a_string").match(body) else text
    text = re.sub(r"(?<=[,{\"])<br\s{0,2}/?>", "\n", text)
    return html.unescape(text) if "&quot;" in text or "&#34;" in text else text


def _unfenced(text: str) -> str:
    """Return the inside of a reply that is one fence."""
    fence = pattern("fence").match(text)
    return text[fence.end() :].rstrip().removesuffix(fence[1]) if fence else text


def find_objects(text: str) -> list[Found]:
    """Return the outermost objects of a text, lists of objects, and what begins as one and cannot be read.

    A text that is nothing but members, without the braces, is an object too.

    Examples
    --------
    >>> [(one.value, one.how) for one in find_objects('Sure: {"accuracy": 8}')]
    [((('accuracy', '8'),), 'strict')]
    >>> [(one.value, one.how) for one in find_objects("｛“accuracy”：8分，｝")]
    [((('accuracy', '8分'),), 'repaired')]
    """
    found, end = list[Found](), 0
    for match in re.finditer(r"[{｛](?!\s{0,40}[{｛\[])|[\[［](?=\s{0,40}[{｛])", text):
        if (place := match.start()) >= end:
            try:
                value, end = _DECODER.raw_decode(text, place)
                found.append(Found(value, place, end, "strict"))
            except (ValueError, RecursionError):
                reader = _Reader(text, place)
                found.append(reader.read())
                # Where one is broken, another may begin within it, but for what is too deep anyway.
                end = place + 1 if found[-1].value is None and not reader.deep else found[-1].end
    return found or _members_alone(text)


def _members_alone(text: str) -> list[Found]:
    """Return the object of a text that is nothing but its members."""
    body = _unfenced(text).strip()
    if not pattern("lines_alone").match(body):
        return []
    body = body.removeprefix("---").rstrip().removesuffix("}").removesuffix("---")
    value, _, end, _ = _Reader("{" + body + "\n}", 0).read()
    return [Found(value, 0, len(text), "repaired")] if value and end == len(body) + 3 else []


_DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=Object, parse_int=Raw, parse_float=Raw, parse_constant=Raw
)


class _Reader:
    """Reads a value as a person would: whatever its quotes, colons and commas; no sign of a value is changed."""

    def __init__(self, text: str, place: int) -> None:
        self.text, self.place = text, place
        self.mended = self.elided = self.deep = False

    def read(self) -> Found:
        """Read the object or list that begins here."""
        start = self.place
        try:
            value = self._value(0, "bare_ends")
        except _Broken:
            return Found(None, start, self.place, "truncated" if self.place >= len(self.text) else "no_json")
        how = "elided" if self.elided else "repaired" if self.mended else "folded"
        return Found(value, start, self.place, how)

    def _take(self, name: str) -> re.Match[str] | None:
        """Go past what a pattern matches here."""
        found = pattern(name).match(self.text, self.place)
        self.place = found.end() if found else self.place
        return found

    def _skip(self) -> None:
        while self._take("blank") and self._take("comment"):
            self.mended = True

    def _sign(self) -> str:
        return self.text[self.place : self.place + 1].translate(_SIGNS)

    def _value(self, depth: int, bare_ends: str) -> Any:
        sign = self._sign()
        if depth > _DEPTH:
            self.deep = True
            raise _Broken
        if sign in ("{", "["):
            return self._inside(depth + 1, "}" if sign == "{" else "]")
        if sign in _CLOSERS:
            return self._string()
        end = pattern(bare_ends).search(self.text, self.place)
        start, self.place = self.place, end.start() if end else len(self.text)
        word = self.text[start : self.place].strip()
        self.mended = self.mended or not pattern("plain_value").fullmatch(word)
        return None if word == "null" else Raw(word)

    def _inside(self, depth: int, closer: str) -> Any:
        """Return the members of an object, or the items of a list."""
        keys, values = list[str](), list[Any]()
        self.place += 1
        self._skip()
        while self._sign() != closer:
            if self._take("ellipsis"):
                self.elided = True
                self._skip()
            else:
                if closer == "}":
                    keys.append(self._key())
                values.append(self._value(depth, "bare_ends" if closer == "}" else "bare_item_ends"))
            self._separate(closer)
        self.place += 1
        return Object(zip(keys, values, strict=True)) if closer == "}" else values

    def _separate(self, closer: str) -> None:
        """Go to the next member, or to the bracket that closes."""
        start = self.place
        self._skip()
        apart = start < self.place
        if commas := self._take("commas"):
            alone = pattern("one_comma").fullmatch(commas[0]) and self._sign() != closer
            self.mended = self.mended or not alone
        elif self._sign() != closer:  # left out: only where a blank and a key show that a member ended
            self.mended = True
            if closer == "]" or not apart or not pattern("any_key").match(self.text, self.place):
                raise _Broken

    def _key(self) -> str:
        if self._sign() in _CLOSERS:
            key = self._string()
        elif bare := self._take("bare_key"):
            key, self.mended = bare[1], True
        else:
            raise _Broken
        self._skip()
        if not self._take("colon"):
            raise _Broken
        self._skip()
        return key

    def _string(self) -> str:
        sign, start = self.text[self.place], self.place + 1
        self.mended = self.mended or sign in "'`"
        ends = _string_ends(self.text, _CLOSERS[sign])
        end = ends[bisect_right(ends, self.place)]
        self.place = end + 1
        if end == len(self.text):
            raise _Broken
        return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescaped, self.text[start:end], flags=re.DOTALL)


@lru_cache(maxsize=16)
def _string_ends(text: str, closers: str) -> list[int]:
    """Return where such a quote would end a string, and the text's end; found once, so that time is linear."""
    marks = [mark for mark in re.finditer(rf"\\.|[{closers}]", text, re.DOTALL) if mark[0] in closers]
    ends = (mark.start() for mark in marks if pattern("ends_a_string").match(text, mark.end()))
    return [*ends, len(text)]


def _unescaped(found: re.Match[str]) -> str:
    """Return what an escape stands for."""
    sign = found[1]
    if len(sign) == 5:
        return chr(int(sign[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(sign, sign)


def inner_objects(value: Any) -> Iterator[Object]:
    """Yield an object and all objects within it."""
    if isinstance(value, Object):
        yield value
    if isinstance(value, Object | list):
        for item in value:
            yield from inner_objects(item[1] if isinstance(value, Object) else item)


def plain(text: str) -> str:
    """Return a key or a name as it is compared: folded, without invisible signs and marks around it.

    Examples
    --------
    >>> plain(" **Ａccuracy** ")
    'accuracy'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    visible = "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")
    return re.sub(r"^[\W_]+|[\W_]+$", "", visible) or visible.strip()
