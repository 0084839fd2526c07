"""Whether the words in a verdict and around it agree with its scores: another value or scale, or a retraction."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragnb.errors import listing
from ragnb.judging.checks import (
    is_disowned,
    leaves_a_verdict,
    retracts,
    sentences_of,
    withdraws,
)
from ragnb.judging.fields import NUMERALS, Fields
from ragnb.judging.reply import (
    Object,
    bare_number,
    fits,
    folded,
    has,
    key_words,
    members_of,
    objects,
    pattern,
    refuse,
)


class Agreement:
    """A comparison of the scores of a reply with everything else that it says."""

    def __init__(self, fields: Fields, material: Sequence[str]) -> None:
        self.fields = fields
        self.material = material

    def check_members(self, chosen: Object, scores: Mapping[str, float]) -> None:
        """Refuse if another member of the object gives another value or scale."""
        for key, value in members_of(chosen):
            self._check_member(key, value, scores)
        for part in objects(chosen, without="beside"):
            for name, value in self.fields.meant(part):
                refuse(value != scores[name], "conflicting", f"{name} has two values")
            for key, value in part:
                if isinstance(value, str):
                    self._check_text(key, value, scores)

    def _check_member(self, key: str, value: Any, scores: Mapping[str, float]) -> None:
        """Refuse a member that has other numbers, or by which the judge does not stand by its scores."""
        words = key_words(key)
        shown = str(value)[:40]
        items = value if isinstance(value, list) else []
        numbers = [item for item in items if isinstance(item, str) and fits("plain_value", item)]
        # What is true, false or null is NaN here, and no score.
        others = {*map(_number_of, numbers)} - {*scores.values()}
        refuse(others, "conflicting", f"{key} has other numbers: {', '.join(numbers)[:40]}")
        of_scale: list[tuple[str, str]] = []
        if has("dimension", words, self.fields.words) and isinstance(value, str):
            of_scale = pattern("of_the_scale").findall(folded(value))  # such as 7 and 10 of 7/10
        contradicts = any(
            float(top) == self.fields.rubric.high and float(number) not in scores.values()
            for number, top in of_scale
        )
        refuse(contradicts, "conflicting", f"{key} speaks of another value: {shown}")
        unsure = fits("unsure_key", words) and fits("unsure", str(value).casefold())
        refuse(unsure, "retracted", f"{key} is {shown}: the judge does not trust its scores")
        is_aside = isinstance(value, str) and fits("aside_key", words)
        taken_back = is_aside and withdraws(str(value).casefold(), self.fields.words)
        refuse(taken_back, "retracted", f"{key} takes the scores back: {shown}")

    def _check_text(self, key: str, value: str, scores: Mapping[str, float]) -> None:
        """Refuse a text of the object that speaks of another value or scale."""
        is_note = fits("note_key", key_words(key))
        # The value of a dimension has been read as its score.
        text = "" if self.fields.dimension(key)[0] else folded(value)
        # A note speaks of the answer, too: of its numbers only what is said of a score counts.
        other = self._other_value(text, scores, "own_mention" if is_note else "mention")
        is_corrected = is_note and self._is_corrected(text, scores)
        refuse(other or is_corrected, "conflicting", f"{key} speaks of another value: {text[:40]}")
        if is_note or len(text) >= 40:
            return
        out_of = pattern("out_of").search(text)
        if out_of:
            high = self.fields.rubric.high
            # A sum of all dimensions has the sum of their scales.
            is_other_scale = float(out_of[1]) not in (high, high * len(scores))
            refuse(is_other_scale, "other_scale", f"{key} states another scale: {text[:40]}")

    def check_words(
        self, before: str, after: str, chosen: Object, scores: Mapping[str, float], tagged: bool
    ) -> None:
        """Refuse if the text around the object retracts it or gives another value or scale."""
        # No pattern finds what begins in one text and ends in the next where a full stop is between them.
        around = f"{before}\n.\n{after}"
        own_texts = "\n.\n".join(_texts_of(chosen)).casefold()
        self._check_numbers(before, around, scores, tagged)
        # What is told of the material may name a scale of its own.
        own_words = pattern("told_of_material").sub(" ", own_texts) if tagged else own_texts
        for text in (around, own_words):
            scale = self._other_scale(text)
            refuse(scale, "other_scale", f"the reply speaks of another scale: {str(scale)[:60]}")
        name = self._other_value(around, scores)
        refuse(name, "conflicting", f"{name} has more in the reply than one number")
        # Scores that are repeated after the object, and their mean, take nothing back.
        rest = self._without_their_mean(self.fields.mention.sub(" ", after), scores)
        taken_back = (
            has("dimension", rest, self.fields.words)
            or not all(leaves_a_verdict(sentence) for sentence in sentences_of(rest))
            or is_disowned(before, self.fields.words, self.material, signed=tagged)
            or has("refused", around)
            or has("no_numbers", own_texts)
            or retracts(own_texts, self.fields.words, self.material)
        )
        refuse(
            taken_back,
            "retracted",
            "the reply says that its scores are none, or may take them back",
        )

    def _check_numbers(
        self, before: str, around: str, scores: Mapping[str, float], tagged: bool
    ) -> None:
        """Refuse if the text around the object has numbers that look like scores and are none of these."""
        low = self.fields.rubric.low
        high = self.fields.rubric.high
        for row in pattern("listed").findall(around):
            differs = not {*map(float, row)} <= {*scores.values()}
            refuse(differs, "conflicting", f"the reply also has the scores {', '.join(row)}")
        labelled = [float(number) for number in pattern("labelled_number").findall(before)]
        strange = [n for n in labelled if low <= n <= high and n not in scores.values()]
        # Two names with numbers are a list of scores, whatever the language of the names.
        refuse(len(strange) > 1, "conflicting", f"the reply also has the scores {listing(strange)}")
        # A number beside what a dimension is called in another language, or of the scale, is a score.
        stated = [float(number) for number in pattern("number_elsewhere").findall(around)]
        for number, top in pattern("of_the_scale").findall(around):
            if float(top) == high:
                stated.append(float(number))
        others = {*stated} - {*scores.values()} if tagged else set()
        refuse(others, "conflicting", f"the reply also has the scores {listing(sorted(others))}")

    def _is_corrected(self, text: str, scores: Mapping[str, float]) -> bool:
        """Return whether a reason says that a score ought to be another one."""
        elsewhere = {*map(float, pattern("correction_elsewhere").findall(text))}
        of_name = [self._other_value(text, scores, of) for of in ("own_correction", "own_lowering")]
        return any(of_name) or not elsewhere <= {*scores.values()}

    def _other_value(
        self, text: str, scores: Mapping[str, float], of: str = "mention"
    ) -> str | None:
        """Return the dimension of which a text gives another value than its score, or another scale."""
        high = self.fields.rubric.high
        for name, value, scale in self.fields.mentions(text, of):
            # Of what is not a single number the value is NaN, which equals no score.
            if value != scores[name] or (scale and float(scale) != high):
                return name
        return None

    def _other_scale(self, text: str) -> str | None:
        """Return the words by which a text names another scale."""
        low = self.fields.rubric.low
        high = self.fields.rubric.high
        for stated in pattern("stated").finditer(text):
            numbers = [float(NUMERALS.get(number, number)) for number in stated.groups() if number]
            # The last is the upper end, of "1 to 10" as of "out of 10".
            if numbers and (numbers[-1] != high or not {*numbers} <= {low, high}):
                return stated[0]
        other = pattern("other_scale").search(text)
        if other:
            return other[0]
        return None

    def _without_their_mean(self, text: str, scores: Mapping[str, float]) -> str:
        """Return a text without lines that are nothing but the scores' mean or sum, of the rubric's scale."""
        mean = sum(scores.values()) / len(scores)

        high = self.fields.rubric.high

        def kept(line: re.Match[str]) -> str:
            value = float(line[1])
            top = float(line[2] or high)  # of the scale, where the line names one
            # Also where it is rounded.
            is_mean = abs(value - mean) <= 0.5 and top == high
            is_sum = value == sum(scores.values()) and top == high * len(scores)
            if is_mean or is_sum:
                return " "
            return line[0]

        return pattern("summary").sub(kept, text)


def _texts_of(chosen: Object) -> Iterator[str]:
    """Yield the texts of an object and of all within it, also those in lists."""
    for _, value in members_of(chosen):
        items = value if isinstance(value, list) else [value]
        yield from (item for item in items if isinstance(item, str))


def _number_of(written: str) -> float:
    """Return a number as it is written; NaN of a word."""
    try:
        return float(bare_number(written))
    except ValueError:
        return math.nan
