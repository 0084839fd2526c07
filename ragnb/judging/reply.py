"""The objects in a reply: read strictly, else with Chinese signs, else leniently; a number is never repaired."""

from __future__ import annotations

import html
import json
import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ragnb.errors import RagnbError
from ragnb.files import patterns_of

_FILE = Path(__file__).with_name("verdict.toml")
RULES = tomllib.loads(_FILE.read_text("utf-8"))
pattern = patterns_of(_FILE)
NUMBER_SIGNS = str.maketrans(*RULES["signs"]["numbers"])
_PUNCTUATION = str.maketrans(*RULES["signs"]["punctuation"])
_CLOSERS = RULES["closers"]
_DEPTH = 12  # of objects and lists; no verdict is nested deeper


def has(name: str, text: str, words: str = "") -> bool:
    """Return whether a pattern is found in a text."""
    return pattern(name, words).search(text) is not None


def fits(name: str, text: str, words: str = "") -> bool:
    """Return whether the whole of a text is a pattern."""
    return pattern(name, words).fullmatch(text) is not None


def rules_out(table: str, sentence: str, words: str = "") -> bool:
    """Return the decision of a table for a sentence: the first row whose pattern matches."""
    rows: list[tuple[str, bool]] = RULES["sentences"][table]
    for name, outcome in rows:
        if has(name, sentence, words):
            return outcome
    return False


class Unreadable(RagnbError):
    """A reply without a readable verdict; `parse_status` is the reason in one word."""

    def __init__(self, parse_status: str, why: str) -> None:
        super().__init__(why)
        self.parse_status = parse_status


def refuse(when: object, parse_status: str, why: str) -> None:
    """Refuse a reply where something holds, with the reason in a word and in a sentence."""
    if when:
        raise Unreadable(parse_status, why)


def bare_number(value: str) -> str:
    """Return a number as it is read: full-width digits are digits, and emphasis is none of it."""
    text = value.strip().translate(NUMBER_SIGNS).casefold()
    emphasised = re.fullmatch(r"(\*{1,3}|`|_{1,2})\s{0,2}(.*?)\s{0,2}\1(.*)", text, re.DOTALL)
    if emphasised:
        return (emphasised[2] + emphasised[3]).strip()  # also **8** / 10
    return text.removeprefix("**").strip()


def squashed(text: str) -> str:
    """Return a text without blanks, quotes and escapes, to find it in another."""
    return re.sub(r"[\s\"'\\`]+", "", text).casefold()


def without_objects(text: str, found: Sequence[Found]) -> str:
    """Return a text with blanks and a line break for each object, every other sign in its place."""
    parts = list[str]()
    place = 0
    for one in found:
        if one.value is None:
            continue
        parts += [text[place : one.start], "\n".rjust(one.end - one.start)]
        place = one.end
    return "".join([*parts, text[place:]])


def folded(text: str) -> str:
    """Fold to lower case and ASCII punctuation, keeping every position."""
    if text.isascii():
        return text.lower()
    return "".join(map(_folded_sign, text))


def _folded_sign(sign: str) -> str:
    """Fold one sign; one that would become several, such as a ligature, stays as it is."""
    if ord(sign) > 126:
        fold = unicodedata.normalize("NFKC", sign).lower()
    else:
        fold = sign.lower()
    return fold if len(fold) == 1 else sign


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
    kept = list[str]()
    depth = 0
    place = 0
    for mark in pattern("thought").finditer(text):
        if not depth:
            kept.append(text[place : mark.start()])
        closing = mark.lastgroup  # only what closes a block has a group
        if closing == "final":  # the channel of the answer begins, whatever is open
            depth = 0
        elif closing:
            if not depth:
                kept.clear()
            depth = max(0, depth - 1)
        # A mark that closes itself, <think/>, opens nothing.
        elif not mark[0].rstrip(">＞").endswith("/"):
            depth += 1
        place = mark.end()
    text = "".join([*kept, text[place:]])
    fence = pattern("thought_fence")
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
    for _ in range(2):  # a string in a string, too
        body = _unfenced(text).strip()
        if pattern("escaped_object").match(body):
            body = f'"{body}"'
        with suppress(ValueError):
            if pattern("object_in_a_string").match(body):
                text = json.loads(body, strict=False)
    text = re.sub(r"(?<=[,{\"])<br\s{0,2}/?>", "\n", text)
    # Only where quotes are written so: a text may well hold other entities.
    if "&quot;" in text or "&#34;" in text:
        return html.unescape(text)
    return text


def _unfenced(text: str) -> str:
    """Return the inside of a reply that is one fence."""
    fence = pattern("fence").match(text)
    if fence:
        return text[fence.end() :].rstrip().removesuffix(fence[1])
    return text


def find_objects(text: str, most_unread: int | None = None) -> list[Found]:
    """Return the outermost objects of a text, lists of objects, and what begins as one and cannot be read.

    A text that is nothing but members, without the braces, is an object too. Each opening that cannot be read
    costs some tenths of a millisecond, so a reader of replies gives up after `most_unread` of them: the last that
    is found then stands for the rest of the text.

    Examples
    --------
    >>> [(one.value, one.how) for one in find_objects('Sure: {"accuracy": 8}')]
    [((('accuracy', '8'),), 'strict')]
    >>> [(one.value, one.how) for one in find_objects("｛“accuracy”：8分，｝")]
    [((('accuracy', '8分'),), 'repaired')]
    """
    objects_read = list[Found]()
    unread = 0
    end = 0
    for opening in _OPENING.finditer(text):
        place = opening.start()
        if place < end:  # within the object before
            continue
        one = _read_strictly(text, place) or _read_leniently(text, place)
        objects_read.append(one)
        if one.value is not None:
            end = one.end
            continue
        unread += 1
        if most_unread is not None and unread >= most_unread:
            break
        end = place + 1  # where one is broken, another may begin within it
    return objects_read or _members_alone(text)


def _read_strictly(text: str, start: int) -> Found | None:
    """Return the JSON value that begins here; None where there is none or it is nested too deep."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if _is_nested_within(value, _DEPTH):
        return Found(value, start, end, "strict")
    return None


def _is_nested_within(value: Any, depth: int) -> bool:
    """Return whether objects and lists are nested at most so deep: what walks through them recurses."""
    level = [value]
    for _ in range(depth + 1):
        level = [item for outer in level for item in _inside(outer)]
        if not level:
            return True
    return False


def _inside(value: Any) -> list[Any]:
    """Return the objects and lists that are members of one."""
    if isinstance(value, Object):
        return [item for _, item in value if isinstance(item, Object | list)]
    return [item for item in value if isinstance(item, Object | list)]


_OPENING = re.compile(r"[{｛](?!\s{0,40}[{｛\[])|[\[［](?=\s{0,40}[{｛])")


def _members_alone(text: str) -> list[Found]:
    """Return the object of a text that is nothing but its members."""
    body = _unfenced(text).strip()
    if not pattern("lines_alone").match(body):
        return []
    # Without the marks of YAML around it, or a brace that closes what none has opened.
    body = body.removeprefix("---").rstrip().removesuffix("}").removesuffix("---")
    in_braces = "{" + body + "\n}"
    read = _read_leniently(in_braces, 0)
    if read.value and read.end == len(in_braces):
        return [Found(read.value, 0, len(text), "repaired")]
    return []


# Numbers stay texts as they are written, and members with the same key are all kept.
_DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=Object, parse_int=str, parse_float=str, parse_constant=str
)


# What is written of tokens that are no words.
_SIGNS = {"colon": ":", "commas": ",", "comment": "", "ellipsis": ""}


def _read_leniently(text: str, start: int) -> Found:
    """Read the object or list that begins here as a person would: whatever its quotes, colons and commas.

    It is written anew as JSON, a word without quotes as a string; no sign of a value is changed.
    """
    copy = _Copy(text, start)
    while copy.closers or not copy.written:
        token = pattern(copy.expected_part()).match(text, copy.place)
        if token is None or len(copy.closers) > _DEPTH:
            # Nothing but blanks follows: the reply breaks off here. A slice, so that time stays linear.
            is_cut = not text[copy.place : copy.place + 99].strip()
            return Found(None, start, copy.place, "truncated" if is_cut else "no_json")
        if not copy.take(token):
            return Found(None, start, copy.place, "truncated")
    with suppress(ValueError):
        return Found(_DECODER.decode("".join(copy.written)), start, copy.place, copy.how)
    return Found(None, start, copy.place, "no_json")


@dataclass
class _Copy:
    """A text that is written anew as JSON: up to where, its pieces, what is open, and how it had to be read."""

    text: str
    place: int
    written: list[str] = field(default_factory=list)
    closers: list[str] = field(default_factory=list)
    how: str = "folded"

    @property
    def last(self) -> str:
        """The last piece, as if a list were open before the first."""
        return self.written[-1] if self.written else "["

    def expected_part(self) -> str:
        """Return the name of the pattern of what may stand here."""
        if self.last == ":":
            return "value_part"
        if self.closers[-1:] == ["}"]:
            return "member_part"
        return "entry_part"

    def take(self, token: re.Match[str]) -> bool:
        """Write the next token; False where it is a string that nothing closes."""
        kind = str(token.lastgroup)
        word = token[kind]
        omitted = self._omitted_before(kind)
        is_repaired = (
            bool(omitted)
            or (self.last, kind) == (",", "close")
            or kind in ("comment", "key")
            or word in ("'", "`")
        )
        self.place = token.end()
        if kind == "quote":
            start = self.place
            ends = _string_ends(self.text, _CLOSERS[word])
            end = ends[bisect_right(ends, start - 1)]  # the first from here on
            # A string that ends the text leaves its object open.
            if end + 1 >= len(self.text):
                self.place = end
                return False
            self.place = end + 1
            escape = r"\\(u[0-9a-fA-F]{4}|.)"
            word = re.sub(escape, _unescaped, self.text[start:end], flags=re.DOTALL)
        elif kind == "bare":
            word = self._bare_word()
            is_repaired = is_repaired or not fits("plain_value", word)
        elif kind == "commas":
            is_repaired = is_repaired or not fits("one_comma", word)
        elif kind == "open":
            self.closers.append(_CLOSERS[word.translate(_PUNCTUATION)])
        elif kind == "close":
            self.closers.pop()
            if self.last == ",":  # JSON has no comma after the last member
                self.written.pop()
        self.written += filter(None, (omitted, _piece(kind, word)))
        if kind == "ellipsis" or self.how == "elided":
            self.how = "elided"
        elif is_repaired:
            self.how = "repaired"
        return True

    def _omitted_before(self, kind: str) -> str:
        """Return what should stand between the last piece and the next."""
        if kind in ("open", "quote", "key", "bare") and self.last not in ("{", "[", ",", ":"):
            return ","
        if kind in ("commas", "close") and self.last == ":":
            return "null"
        return ""

    def _bare_word(self) -> str:
        """Return the word without quotes that begins here, and pass over it."""
        start = self.place
        ending = pattern("bare_ends").search(self.text, start)
        self.place = ending.start() if ending else len(self.text)
        return self.text[start : self.place].strip()


def _piece(kind: str, word: str) -> str:
    """Return a token as JSON."""
    if kind in ("open", "close"):
        return word.translate(_PUNCTUATION)
    if kind in _SIGNS:
        return _SIGNS[kind]
    if (kind, word) == ("bare", "null"):
        return "null"
    return json.dumps(word)


@lru_cache(maxsize=16)
def _string_ends(text: str, closers: str) -> list[int]:
    """Return where such a quote would end a string, and the text's end; found once, so that time is linear."""
    ends_a_string = pattern("ends_a_string")
    ends = list[int]()
    # An escape is passed over whole, so that the quote in it ends nothing.
    for mark in re.finditer(rf"\\.|[{closers}]", text, re.DOTALL):
        if mark[0] in closers and ends_a_string.match(text, mark.end()):
            ends.append(mark.start())
    return [*ends, len(text)]


def _unescaped(escape: re.Match[str]) -> str:
    """Return the character of an escape; of one that JSON does not know, what follows the backslash."""
    with suppress(ValueError):
        return str(json.loads(f'"{escape[0]}"'))
    return escape[1]


@lru_cache(maxsize=1024)
def plain(text: str) -> str:
    """Return a key or a name as it is compared: folded, without invisible signs and marks around it.

    Examples
    --------
    >>> plain(" **Ａccuracy** ")
    'accuracy'
    """
    lower = unicodedata.normalize("NFKC", text).casefold()
    # Category Cf: signs of format, such as a zero-width joiner.
    visible = "".join(sign for sign in lower if unicodedata.category(sign) != "Cf")
    # A key of nothing but marks stays what it is.
    return re.sub(r"^[\W_]+|[\W_]+$", "", visible) or visible.strip()


def objects(value: Any, without: str = "") -> Iterator[Object]:
    """Yield an object and all objects within it, but for those under keys that fit a pattern."""
    if isinstance(value, Object):
        yield value
    if isinstance(value, Object | list):
        for member in value:
            key, item = member if isinstance(value, Object) else ("", member)
            if not (without and has(without, key_words(key))):
                yield from objects(item, without)


def members_of(value: Any, without: str = "") -> list[tuple[str, Any]]:
    """Return each member of an object and of those within it, but for those within some keys."""
    return [member for part in objects(value, without) for member in part]


def key_words(key: str) -> str:
    """Return a key as words in small letters: ``maxScore`` and ``max_score`` are ``max score``."""
    return re.sub(r"[\s_\-]+", " ", plain(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key)))
