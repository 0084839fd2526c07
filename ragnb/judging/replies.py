"""A judge's reply → the one JSON object in it: as it stands, with signs folded, or mended; never guessed."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

from ragnb.errors import RagnbError, require

LONGEST = 200_000
CONFLICT = object()  # stands for a key that was given two different values
_LOOKS_LIKE_AN_OBJECT = re.compile(r"\{\s{0,40}(?:[\"'“”‘’「『＂}]|\w{1,40}\s{0,8}[:：])")
_CLOSERS = dict.fromkeys('"＂', '"＂') | dict.fromkeys("“”", '”“"') | dict.fromkeys("‘’", "’‘'")
_CLOSERS |= {"'": "'", "「": "」", "『": "』"}
_QUOTES = "\"'“”‘’「『＂"
_ENDS_A_STRING = re.compile(
    rf"\s{{0,40}}(?:$|[:：}}｝\]］]|[,，]\s{{0,40}}(?:$|[{_QUOTES}{{｛\[}}｝\]］]|-?\d|//|#|\w{{1,40}}\s{{0,8}}[:：]))"
    rf"|\s{{0,40}}\n\s{{0,40}}[{_QUOTES}]"
)
_SIGNS = str.maketrans("：，｛｝［］、", ":,{}[],") | {ord("０") + n: str(n) for n in range(10)} | {ord("．"): "."}
_THOUGHT = re.compile(r"\s{0,40}<(think|thinking|reasoning)>")


class Unreadable(RagnbError):
    """A reply from which no verdict can be read; `parse_status` says in one word why."""

    def __init__(self, parse_status: str, why: str) -> None:
        super().__init__(why)
        self.parse_status = parse_status


class Found(NamedTuple):
    """The object, how it was read (``strict``, ``folded`` or ``repaired``), and what must agree with it."""

    value: dict[str, Any]
    how: str
    rest: str


def read_object(text: str, wanted: Callable[[dict[str, Any]], bool]) -> Found:
    """Find the one object in a reply for which `wanted` is true.

    Raises
    ------
    Unreadable
        ``empty``, ``too_long``, ``no_json``, ``truncated``, ``several``, ``missing_field`` (no object is wanted).

    Examples
    --------
    >>> read_object('Sure: {"accuracy": 8}', lambda found: "accuracy" in found)[:2]
    ({'accuracy': 8}, 'strict')
    >>> read_object("｛“accuracy”：8，｝", lambda found: "accuracy" in found)[:2]
    ({'accuracy': 8}, 'repaired')
    """
    if not text.strip():
        raise Unreadable("empty", "the reply is empty")
    if len(text) > LONGEST:
        raise Unreadable("too_long", f"the reply has {len(text):,} characters")
    body = _after_thinking(text)
    objects, broken = _scan(body)
    if not broken and any(wanted(value) for value, *_ in objects):
        value, start, end = _only(objects, wanted)
        return Found(value, "strict", body[:start] + "\n" + body[end:])
    folded, whole = fold(body)
    if "{" not in folded:
        raise Unreadable("no_json", "the reply holds no JSON object")
    if not whole:
        raise Unreadable("truncated", "the reply ends in the middle of its JSON")
    objects, broken = _scan(folded)
    if not broken:
        return Found(_only(objects, wanted)[0], "folded", folded)
    return Found(_only(_mended(folded), wanted)[0], "repaired", folded)


def _after_thinking(text: str) -> str:
    """What follows the thoughts that a reasoning model writes first."""
    found = _THOUGHT.match(text)
    if found is None:
        return text
    _, end, answer = text.rpartition(f"</{found[1]}>")
    if not end:
        raise Unreadable("truncated", "the reply ends in the middle of the model's thoughts")
    return answer


def _scan(text: str) -> tuple[list[tuple[dict[str, Any], int, int]], bool]:
    """All whole objects with their places, and whether one is broken."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_pairs)
    objects: list[tuple[dict[str, Any], int, int]] = []
    place = text.find("{")
    while place >= 0:
        end = place + 1
        if _LOOKS_LIKE_AN_OBJECT.match(text, place):
            try:
                value, end = decoder.raw_decode(text, place)
            except (ValueError, RecursionError):
                return objects, True
            objects.append((value, place, end))
        place = text.find("{", end)
    return objects, False


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a key with two different values keeps neither."""
    value: dict[str, Any] = {}
    for key, item in pairs:
        value[key] = item if key not in value or value[key] == item else CONFLICT
    return value


def _only(
    objects: list[tuple[dict[str, Any], int, int]], wanted: Callable[[dict[str, Any]], bool]
) -> tuple[dict[str, Any], int, int]:
    found = [one for one in objects if wanted(one[0])]
    if len(found) > 1:
        raise Unreadable("several", f"the reply holds {len(found)} objects with scores")
    if not found:
        raise Unreadable("missing_field", "the reply holds no object with the fields that were asked for")
    return found[0]


def _mended(text: str) -> list[tuple[dict[str, Any], int, int]]:
    """What json_repair makes of the text from its first brace to its last."""
    repair = require("json_repair", extra="judge")
    try:
        found = repair.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        raise Unreadable("no_json", "the reply's JSON cannot be mended") from None
    items = found if isinstance(found, list) else [found]
    return [(item, 0, 0) for item in items if isinstance(item, dict)]


def fold(text: str) -> tuple[str, bool]:
    """Return text whose braces, quotes, colons and digits are JSON's, and whether all braces and quotes close.

    Only what stands within braces is folded, and nothing within quotes; a quote ends a string where a colon, a
    comma before a further key or a bracket follows it, so that quotes inside a text stay part of it.

    Examples
    --------
    >>> fold("｛“accuracy”：８，“reason”：“他说“好”。”｝")
    ('{"accuracy":8,"reason":"他说“好”。"}', True)
    """
    out, depth, place = list[str](), 0, 0
    while place < len(text):
        sign = text[place].translate(_SIGNS)
        if depth and sign in _CLOSERS:
            end = _closing(text, place)
            if end is None:
                return "".join([*out, text[place:]]), False
            out.append(_as_string(text[place + 1 : end]))
            place = end + 1
            continue
        depth += {"{": 1, "[": int(depth > 0), "}": -1, "]": -int(depth > 0)}.get(sign, 0)
        depth = max(depth, 0)
        out.append(sign if depth or sign == "}" else text[place])
        place += 1
    return "".join(out), depth == 0


def _closing(text: str, start: int) -> int | None:
    """Where the string that opens at `start` ends."""
    place = start + 1
    while place < len(text):
        if text[place] == "\\":
            place += 1
        elif text[place] in _CLOSERS[text[start]] and _ENDS_A_STRING.match(text, place + 1):
            return place
        place += 1
    return None


def _as_string(inner: str) -> str:
    """A JSON string of what stood between the quotes, its escapes kept."""
    kept = re.sub(r"(?s)\\(.)|\"", lambda found: '\\"' if found[1] is None else _escape(found[1]), inner)
    return f'"{kept}"'


def _escape(char: str) -> str:
    return f"\\{char}" if char in '"\\/bfnrtu' else char


def plain(text: str) -> str:
    """A key or a number as it is compared: folded, without outer blanks.

    Examples
    --------
    >>> plain(" Ａccuracy ")
    'accuracy'
    """
    return unicodedata.normalize("NFKC", text).strip().casefold()
