"""The facts of a metric: what was found out about a column, and the evidence for it.

A number counts only when its scale and its direction are known. What a reader finds, and where evidence is silent,
is recorded beside the frame as rows that a card can print.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

FactName = Literal["scale", "direction", "blank", "row", "owner"]


class Fact(TypedDict):
    """One fact of a metric, or of the table where `metric` is None.

    ``open`` says that evidence is silent or contradicts itself, so that the caller has to say it.
    """

    metric: str | None
    fact: FactName
    value: Any
    evidence: str
    open: bool


def facts_told(facts: Iterable[Mapping[str, Any]]) -> set[tuple[Any, Any]]:
    """Return which facts are told, as pairs of metric and kind of fact.

    Examples
    --------
    >>> sorted(facts_told([{"metric": "tone", "fact": "scale"}, {"metric": "tone", "fact": "direction"}]))
    [('tone', 'direction'), ('tone', 'scale')]
    """
    return {(fact["metric"], fact["fact"]) for fact in facts}


def fact_row(
    metric: str | None, fact: FactName, value: Any, evidence: str, *, open: bool = False
) -> Fact:
    """Return one fact.

    Examples
    --------
    >>> fact_row("toxicity", "direction", "lower", "'toxicity' is a word for what is bad")["value"]
    'lower'
    """
    return Fact(metric=metric, fact=fact, value=value, evidence=evidence, open=open)


WORDS = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))
_DIRECTION = WORDS["direction"]
_STEMS = {side: tuple(_DIRECTION[side]) for side in ("lower", "higher", "turned")}
_ANYWHERE = {side: tuple(_DIRECTION[f"{side}_anywhere"]) for side in ("lower", "higher", "turned")}
_BEFORE = frozenset(_DIRECTION["before"])  # turn the word behind them: non_toxic
_BEHIND = frozenset(_DIRECTION["behind"])  # turn the word before them: error_free
_WHOLE = frozenset(_DIRECTION["whole"])  # stems that count only as a whole word
_NEUTRAL = frozenset(_DIRECTION["neutral"])  # say nothing behind another word: toxicity_score
# What a name with words for both is about, where it ends in one of these: refusal_accuracy.
_HEADS = frozenset(_DIRECTION["heads"])
_TOKEN = re.compile(r"[^\W_]+")
# Where words begin without a sign between them, as in errorRate.
_CAMEL = re.compile(r"(?<=[a-zа-я0-9])(?=[A-ZА-Я])")


class Direction(NamedTuple):
    """Which end of a metric is better, ``higher``, ``lower`` or ``?``, and the evidence in words."""

    better: str
    evidence: str

    @property
    def open(self) -> bool:
        """Whether evidence is silent or contradicts itself."""
        return self.better == "?"


SILENT = Direction("?", "nothing in the file says which end is better")


def name_tokens(name: str) -> list[str]:
    """Return the words of a column's name in their order, in lower case.

    Examples
    --------
    >>> name_tokens("errorRate_v2"), name_tokens("Fehler-Quote")
    (['error', 'rate', 'v2'], ['fehler', 'quote'])
    """
    return _TOKEN.findall(_CAMEL.sub(" ", unicodedata.normalize("NFKC", name)).casefold())


def _kind_of(token: str) -> str | None:
    """Return whether a word is one for what is bad (``lower``) or good (``higher``), None for any other."""
    # Words that are turned to good come first: `harmless` begins with one for what is bad.
    sides = {"turned": "higher", "lower": "lower", "higher": "higher"}
    for side, better in sides.items():
        if any(_begins_with(token, stem) for stem in _STEMS[side]):
            return better
    for side, better in sides.items():
        if any(sign in token for sign in _ANYWHERE[side]):
            return better
    return None


def _begins_with(token: str, stem: str) -> bool:
    """Return whether a word begins with a stem, or is it, where only the whole word counts."""
    if stem in _WHOLE:
        return token in (stem, f"{stem}s")
    return token.startswith(stem)


def direction_of_name(name: str) -> Direction | None:
    """Return the direction that the words of a name say; None where they say none.

    A word for what is bad is turned by what stands beside it, as in ``error_free`` and ``non_toxic``. Of words for
    both, nothing follows: ``?``.

    Examples
    --------
    >>> names = ("hallucination_rate", "non_toxic", "幻觉率", "answer_quality")
    >>> [direction_of_name(name).better for name in names]
    ['lower', 'higher', 'lower', 'higher']
    >>> direction_of_name("tone_of_voice") is None
    True
    """
    words = _telling_words(name_tokens(name))
    if not words:
        return None
    if len({word.better for word in words}) == 1:
        telling = words[0]
        return Direction(telling.better, f"{telling.token!r} in its name")
    # The last word is what the name is about: an accuracy of refusals, an error of precision.
    last = words[-1]
    if last.token not in _HEADS and last.better == "higher":
        shown = " and ".join(repr(word.token) for word in words)
        return Direction("?", f"the words {shown} of its name contradict each other")
    return Direction(last.better, f"{last.token!r} in its name")


class _TellingWord(NamedTuple):
    """A word of a name that says which end is better, ``higher`` or ``lower``."""

    token: str
    better: str


def _telling_words(tokens: list[str]) -> list[_TellingWord]:
    """Return the words of a name that say which end is better, as what stands beside them turns it."""
    words: list[_TellingWord] = []
    for place, token in enumerate(tokens):
        better = _kind_of(token)
        before = tokens[place - 1] if place > 0 else ""
        behind = tokens[place + 1] if place + 1 < len(tokens) else ""
        if better == "lower" and before in _BEFORE:
            # In `correct_refusal` the first word only turns the second, and says nothing by itself.
            words = [word for word in words if word.token != before]
            better = "higher"
        elif better == "lower" and behind in _BEHIND:
            better = "higher"
        is_neutral = better == "higher" and token in _NEUTRAL and words
        if better and not is_neutral:
            words.append(_TellingWord(token, better))
    return words


class Verdicts(NamedTuple):
    """How many cases of a metric are told apart by ``score >= threshold``, and how many by ``<=``."""

    higher: int
    lower: int

    @property
    def direction(self) -> Direction | None:
        """The direction that the verdicts say; None where no case tells."""
        if self.higher and self.lower:
            return Direction(
                "?",
                f"its verdicts contradict each other: {self.higher} of {self.higher + self.lower} cases pass "
                f"at or above the threshold, {self.lower} at or below it",
            )
        if self.lower:
            return Direction(
                "lower",
                f"{self.lower} of {self.lower} verdicts are those of scores at or below the threshold",
            )
        if self.higher:
            return Direction(
                "higher",
                f"{self.higher} of {self.higher} verdicts are those of scores at or above the threshold",
            )
        return None


def count_verdicts(
    scores: Iterable[float | None],
    thresholds: Iterable[float | None],
    verdicts: Iterable[bool | None],
) -> Verdicts:
    """Count the cases whose verdict tells which side of the threshold is good; a score at the threshold does not.

    Examples
    --------
    >>> count_verdicts([0.8, 0.9, 0.5], [0.5, 0.5, 0.5], [False, False, True])
    Verdicts(higher=0, lower=2)
    """
    higher = lower = 0
    for score, threshold, passed in zip(scores, thresholds, verdicts, strict=True):
        if score is None or threshold is None or passed is None:
            continue
        if abs(score - threshold) <= TIE:
            continue
        if (score > threshold) == passed:
            higher += 1
        else:
            lower += 1
    return Verdicts(higher, lower)


# Scores and thresholds are decimals: what differs by less was rounded.
TIE = 1e-9


def verdict_value(cell: Any) -> tuple[float, bool] | None:
    """Return a verdict as 1 or 0, and whether its word says by itself which is good; None for what is no verdict.

    Examples
    --------
    >>> verdict_value(" PASS "), verdict_value("no"), verdict_value("未通过"), verdict_value("maybe")
    ((1.0, True), (0.0, False), (0.0, True), None)
    """
    if isinstance(cell, bool):
        return float(cell), False
    if not isinstance(cell, str):
        return None
    return _VERDICTS.get(fold_word(cell))


def fold_word(cell: str) -> str:
    """Return a cell's text without what a person does not mean by it: case, space, an end mark, brackets."""
    return unicodedata.normalize("NFKC", cell).strip().strip("()*.!").strip().casefold()


_VERDICTS: dict[str, tuple[float, bool]] = {
    **{fold_word(word): (1.0, False) for word in WORDS["verdict"]["yes"]},
    **{fold_word(word): (0.0, False) for word in WORDS["verdict"]["no"]},
    **{fold_word(word): (1.0, True) for word in WORDS["verdict"]["good"]},
    **{fold_word(word): (0.0, True) for word in WORDS["verdict"]["bad"]},
}


def is_failure(cell: str) -> bool:
    """Whether a cell says that a score could not be made.

    Examples
    --------
    >>> [is_failure(cell) for cell in ("Failed", "N/A: timeout", "ERROR: rate limit", "超时", "0.5", "good")]
    [True, True, True, True, False, False]
    """
    return _FAILURE.match(unicodedata.normalize("NFKC", cell).strip().casefold()) is not None


def is_technical(text: str) -> bool:
    """Whether a text is what a program says that did not get through, and no opinion of an answer.

    Examples
    --------
    >>> texts = ("RateLimitError: 429", "judge timed out", "请求超时", "failed to name the date")
    >>> [is_technical(text) for text in texts]
    [True, True, True, False]
    """
    return TECHNICAL.search(unicodedata.normalize("NFKC", text).strip().casefold()) is not None


TECHNICAL = re.compile("|".join(WORDS["failed"]["technical"]))


def _failure_pattern() -> re.Pattern[str]:
    """Return the pattern of a cell that begins with a word for a failure."""
    words = sorted(WORDS["failed"]["words"], key=len, reverse=True)
    failures = "|".join(map(re.escape, words))
    missing = "|".join(map(re.escape, WORDS["failed"]["missing"]))
    # Chinese, Japanese and Korean words have no space behind them.
    whole_word = rf"(?:{failures})(?![a-zà-ÿа-я])"
    # By itself "n/a" is a missing score; with a reason behind it, as in "N/A: timeout", one that failed.
    with_reason = rf"(?:{missing})\s*[:(\-–—,;]+\s*\S"
    return re.compile(rf"[\[(<]?(?:{whole_word}|{with_reason})")


_FAILURE = _failure_pattern()
