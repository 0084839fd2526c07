"""A judge's reply → a verdict, or the reason why there is none; a number is never clamped, rounded or guessed."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragnb import texts
from ragnb.judging.replies import CONFLICT, Unreadable, plain, read_object
from ragnb.schema import Rubric

TEXTS = ("analysis", "reason", "suggestion")
_INSIDE = {
    *("scores", "score", "ratings", "rating", "dimensions", "verdict", "result", "evaluation"),
    *("评分", "分数", "得分", "评价", "结果"),
}
_VALUE = ("score", "value", "rating", "分数", "得分", "评分")
_NUMBER = re.compile(
    r"([-+]?\d{1,9}(?:\.\d{1,18})?)\s{0,4}(?:/\s{0,4}(\d{1,4}(?:\.0)?)|分|points?|pts?|out of (\d{1,4}))?"
)
_AFTER = re.compile(r"\s*(?:(?:分|points?|pts?|out of \d+)\s*)?(?:$|[\"'”’」』,;}\])\n]|//|#)")


@dataclass(frozen=True)
class Verdict:
    """What a reply says.

    Parameters
    ----------
    raw : str
        The reply as it came.
    parse_status : str
        How it was read: ``strict``, ``folded`` or ``repaired``. Or why it was not: ``empty``, ``too_long``,
        ``no_json``, ``truncated``, ``several``, ``missing_field``, ``conflicting``, ``not_a_number``,
        ``fraction``, ``out_of_range``.
    why : str or None
        The same in a sentence, where it was not read.
    scores : mapping of dimension to float
        Empty where it was not read.
    analysis, reason, suggestion : str
        Empty where the reply has none.

    Examples
    --------
    >>> Verdict("", "empty", "the reply is empty").status
    'failed'
    """

    raw: str
    parse_status: str
    why: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    analysis: str = ""
    reason: str = ""
    suggestion: str = ""

    @property
    def status(self) -> str:
        """``ok`` or ``failed``."""
        return "ok" if self.scores else "failed"


def parse_verdict(text: str, rubric: Rubric | None = None) -> Verdict:
    """Read a judge's reply: as JSON, else with Chinese signs folded, else mended; then check every score.

    Parameters
    ----------
    text : str
        The reply, with whatever stands around its JSON.
    rubric : Rubric, optional
        Its dimensions are required, each a number on its scale. ``8``, ``"8"``, ``"8/10"`` and ``"8分"`` are the
        same; a bool, NaN, a fraction where none is allowed, a value out of range, two values for one dimension,
        two objects with scores and JSON that breaks off are failures.

    Returns
    -------
    Verdict
        It never raises for what a reply holds.

    Examples
    --------
    >>> parse_verdict('{"accuracy": 9, "completeness": 8.5, "clarity": "7/10"}').scores
    {'accuracy': 9.0, 'completeness': 8.5, 'clarity': 7.0}
    >>> parse_verdict('{"accuracy": 11, "completeness": 8, "clarity": 7}').why
    'accuracy is 11; the scale is 1 to 10'
    """
    rubric = rubric or Rubric()
    try:
        return _read(text, rubric)
    except Unreadable as error:
        return Verdict(text, error.parse_status, str(error))


def _read(text: str, rubric: Rubric) -> Verdict:
    names = {plain(word): d.name for d in rubric.dimensions for word in _words(d.name)}
    names |= {plain(d.name): d.name for d in rubric.dimensions}  # its own name is nobody else's other name
    found = read_object(text, lambda value: any(True for _ in _given(value, names)))
    given: dict[str, Any] = {}
    for name, value in _given(found.value, names):
        if value is CONFLICT or (name in given and given[name] != value):
            raise Unreadable("conflicting", f"{name} has two values")
        given[name] = value
    missing = [d.name for d in rubric.dimensions if d.name not in given]
    if missing:
        raise Unreadable("missing_field", f"the reply has no {', '.join(missing)}")
    scores = {d.name: _number(d.name, given[d.name], rubric) for d in rubric.dimensions}
    _agree(found.rest, names, scores, whole=found.how != "strict")
    words = {plain(key): value for key, value in found.value.items() if isinstance(key, str)}
    return Verdict(text, found.how, None, scores, **{name: _said(words.get(name)) for name in TEXTS})


def _words(name: str) -> set[str]:
    """The further names that a dimension may have in a reply: that of each language."""
    return {word for lang in texts.LANGUAGES if (word := texts.entry(lang, "judge.dimensions").get(name))}


def _given(value: Mapping[str, Any], names: Mapping[str, str], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Each dimension's value, at the top or in an object of scores."""
    for key, item in value.items():
        word = plain(str(key))
        if word in names:
            inner = [item[key] for key in _VALUE if key in item] if isinstance(item, dict) else [item]
            yield names[word], inner[0] if len(inner) == 1 else CONFLICT
        elif word in _INSIDE and isinstance(item, dict) and depth == 0:
            yield from _given(item, names, depth + 1)


def _number(name: str, value: Any, rubric: Rubric) -> float:
    text = plain(value) if isinstance(value, str) else None
    if text is not None:
        found = _NUMBER.fullmatch(text)
        of = next(filter(None, found.groups()[1:]), None) if found else None
        if found is None or (of is not None and float(of) != rubric.high):
            raise Unreadable("not_a_number", f"{name} is {value[:40]!r}, which is no score")
        value = float(found[1])
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable("not_a_number", f"{name} is {str(value)[:40]}, which is no score")
    if isinstance(value, float) and math.isnan(value):
        raise Unreadable("not_a_number", f"{name} is NaN")
    if not rubric.low <= value <= rubric.high:
        scale = f"{rubric.low:g} to {rubric.high:g}"
        raise Unreadable("out_of_range", f"{name} is {str(value)[:20]}; the scale is {scale}")
    if not rubric.decimals and value != int(value):
        raise Unreadable("fraction", f"{name} is {value}; the scale has whole numbers")
    return float(value)


def _agree(rest: str, names: Mapping[str, str], scores: Mapping[str, float], whole: bool) -> None:
    """Refuse where the text around the object, or one that had to be mended, gives another value."""
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    mention = re.compile(
        rf"(?<!\w)({words})[\"'”’」』*]{{0,3}}\s{{0,8}}[:=]\s{{0,8}}[\"'“‘「*]{{0,3}}([-+]?\d[\d.,/e]{{0,20}})",
    )
    folded = unicodedata.normalize("NFKC", rest).casefold()
    for found in mention.finditer(folded):
        name, said = names[found[1]], found[2].rstrip(".,")
        number = _NUMBER.fullmatch(said)
        same = number is not None and float(number[1]) == scores[name]
        after = r"\s*[^\s\d]" if found[2].endswith(",") else _AFTER
        cut = whole and not re.compile(after).match(folded, found.end())
        if not same or cut:
            raise Unreadable("conflicting", f"{name} has more in the reply than one number")


def _said(value: Any) -> str:
    """A text of the reply; a list of texts is joined."""
    if isinstance(value, list):
        return "\n".join(str(item) for item in value)
    return "" if value is None or value is CONFLICT else str(value)
