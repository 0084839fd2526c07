"""A judge's reply → the objects in it: read strictly, else with Chinese signs, else leniently; never guessed."""

from __future__ import annotations

import html
import json
import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ragnb.errors import RagnbError

LONGEST = 20_000  # 190,000 characters took 4 s in the event loop; verdicts have 2,000
_DEPTH = 12
_OPENERS = "\"'“”‘’「『＂`"
_SIGNS = str.maketrans("：，｛｝［］、；＝", ":,{}[],;=")
_CLOSERS = dict.fromkeys('"＂', '"＂') | dict.fromkeys("“”", '”“"') | dict.fromkeys("‘’", "’‘'")
_CLOSERS |= {"'": "'", "「": "」", "『": "』", "`": "`"}

@cache
def _table(section: str) -> dict[str, str]:
    rows: dict[str, str] = tomllib.loads(files(__package__).joinpath("replies.toml").read_text("utf-8"))[section]
    return rows


def _written(text: str, parts: Mapping[str, str]) -> str:
    """A pattern with what it names in braces put in place."""
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
    """What cannot be read, and how far it went."""


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
        if mark["a"] or mark["b"] or mark["c"] or mark["d"] or mark["e"]:
            if not depth and not mark["e"]:
                kept.clear()
            depth = 0 if mark["e"] else max(0, depth - 1)
        elif not mark[0].rstrip(">＞").endswith("/"):
            depth += 1
        place = mark.end()
    text, fence = "".join([*kept, text[place:]]), pattern("thought_fence")
    if depth or any(mark["open"] is not None for mark in fence.finditer(text)):
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
        if re.match(r"\{(?:\s|\\[nrt]){0,40}\\+\"", body):
            body = f'"{body}"'
        if not re.match(r"\"(?:\\+\")?(?:\\+[nrt]|\s){0,40}[{\[]", body):
            break
        try:
            inner = json.loads(body, strict=False)
        except ValueError:
            break
        text = inner if isinstance(inner, str) else text
    text = re.sub(r"(?<=[,{\"])<br\s{0,2}/?>", "\n", text)
    return html.unescape(text) if "&quot;" in text or "&#34;" in text else text


def _unfenced(text: str) -> str:
    """The inside of a reply that is one fence."""
    fence = re.match(r"\s{0,40}(`{1,8}|~{3,8})(?:[a-zA-Z0-9_]{0,12}[ \t]{0,8}\n|(?=[{\"\[]))", text)
    if fence is None:
        return text
    body = text[fence.end() :].rstrip()
    return body[: -len(fence[1])] if body.endswith(fence[1]) else body


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
    reader = _Reader(text)
    for match in re.finditer(r"[{｛](?!\s{0,40}[{｛\[])|[\[［](?=\s{0,40}[{｛])", text):
        place = match.start()
        if place < end:
            continue
        try:
            value, end = _DECODER.raw_decode(text, place)
            one = Found(value, place, end, "strict")
        except (ValueError, RecursionError):
            one = reader.value_at(place)
        found.append(one)
        end = one.end if one.value is not None or reader.deep else place + 1
    if not found:
        found = reader.members_alone()
    return found


_DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=Object, parse_int=Raw, parse_float=Raw, parse_constant=Raw
)


class _Reader:
    """Reads a value as a person would: whatever its quotes, colons and commas; no sign of a value is changed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ends: dict[str, list[int]] = {}

    def value_at(self, place: int) -> Found:
        """Read the object or list that begins here."""
        self.mended = self.elided = self.deep = False
        try:
            value, end = self._value(place, 0, "bare_ends")
        except _Broken as fault:
            (at,) = fault.args
            return Found(None, place, at, "truncated" if at >= len(self.text) else "no_json")
        how = "elided" if self.elided else "repaired" if self.mended else "folded"
        return Found(value, place, end, how)

    def members_alone(self) -> list[Found]:
        """The object of a text that is nothing but its members."""
        body = _unfenced(self.text).strip()
        if not pattern("lines_alone").match(body):
            return []
        body = body.removeprefix("---").rstrip().removesuffix("}").removesuffix("---")
        one = _Reader("{" + body + "\n}").value_at(0)
        return [Found(one.value, 0, len(self.text), "repaired")] if one.end == len(body) + 3 and one.value else []

    def _skip(self, place: int) -> int:
        while True:
            blank = pattern("blank").match(self.text, place)
            place = blank.end() if blank else place
            comment = pattern("comment").match(self.text, place)
            if comment is None:
                return place
            self.mended, place = True, comment.end()

    def _sign(self, place: int) -> str:
        return self.text[place : place + 1].translate(_SIGNS)

    def _value(self, place: int, depth: int, bare_ends: str) -> tuple[Any, int]:
        sign = self._sign(place)
        if depth > _DEPTH:
            self.deep = True  # no verdict lies so deep; what is within is not tried again
            raise _Broken(place)
        if sign in ("{", "["):
            return self._inside(place + 1, depth + 1, "}" if sign == "{" else "]")
        if sign and sign in _OPENERS:
            return self._string(place)
        return self._bare(place, bare_ends)

    def _inside(self, place: int, depth: int, closer: str) -> tuple[Any, int]:
        """The members of an object, or the items of a list."""
        keys, values, place = list[str](), list[Any](), self._skip(place)
        while self._sign(place) != closer:
            if ellipsis := pattern("ellipsis").match(self.text, place):
                self.elided, place = True, self._skip(ellipsis.end())
            else:
                if closer == "}":
                    key, place = self._key(place)
                    keys.append(key)
                bare_ends = "bare_ends" if closer == "}" else "bare_item_ends"
                value, place = self._value(self._skip(place), depth, bare_ends)
                values.append(value)
            place = self._separated(place, closer)
        return Object(zip(keys, values, strict=True)) if closer == "}" else values, place + 1

    def _separated(self, place: int, closer: str) -> int:
        """The place of the next member, or of the bracket that closes."""
        start, place = place, self._skip(place)
        if place >= len(self.text):
            raise _Broken(place)
        commas = 0
        while self._sign(place) in (",", ";"):
            self.mended = self.mended or commas > 0 or self._sign(place) == ";"
            commas, place = commas + 1, self._skip(place + 1)
        if self._sign(place) == closer:
            self.mended = self.mended or commas > 0
        elif not commas:  # left out: only where a blank and a key show that a member ended
            if closer == "]" or start == place or not pattern("any_key").match(self.text[place : place + 140]):
                raise _Broken(place)
            self.mended = True
        return place

    def _key(self, place: int) -> tuple[str, int]:
        sign = self.text[place : place + 1]
        if sign and sign in _OPENERS:
            key, place = self._string(place)
        elif bare := pattern("bare_key").match(self.text, place):
            key, place, self.mended = bare[1], bare.end(), True
        else:
            raise _Broken(place)
        place = self._skip(place)
        if self._sign(place) not in (":", "="):
            raise _Broken(place)
        return str(key), place + (2 if self.text[place : place + 2] in ("=>", ":=", "::") else 1)

    def _string(self, place: int) -> tuple[str, int]:
        sign = self.text[place]
        self.mended = self.mended or sign in "'`"
        ends = self.ends.setdefault(_CLOSERS[sign], []) or self._ends_of(_CLOSERS[sign])
        nth = bisect_right(ends, place)
        if nth >= len(ends) or ends[nth] > len(self.text):
            raise _Broken(len(self.text))
        inner = self.text[place + 1 : ends[nth]]
        return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescaped, inner, flags=re.DOTALL), ends[nth] + 1

    def _ends_of(self, closers: str) -> list[int]:
        """All places where such a quote would end a string: found once, so that time grows with the text."""
        ends = self.ends[closers]
        for match in re.finditer(rf"\\.|[{closers}]", self.text, re.DOTALL):
            if match[0] in closers and pattern("ends_a_string").match(self.text, match.end()):
                ends.append(match.start())
        ends.append(len(self.text) + 1)
        return ends

    def _bare(self, place: int, ends: str) -> tuple[Raw, int]:
        end = pattern(ends).search(self.text, place)
        stop = end.start() if end else len(self.text)
        word = self.text[place:stop].strip()
        self.mended = self.mended or not re.fullmatch(r"-?[0-9０-９]+(?:[.．][0-9０-９]+)?|true|false|null", word)
        return Raw(word), stop


def _unescaped(found: re.Match[str]) -> str:
    """What an escape stands for."""
    sign = found[1]
    if len(sign) == 5:
        return chr(int(sign[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(sign, sign)


def inner_objects(value: Any) -> Iterator[Object]:
    """Yield an object and all objects within it."""
    if isinstance(value, Object):
        yield value
        for _, item in value:
            yield from inner_objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from inner_objects(item)


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
