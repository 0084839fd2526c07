"""Whether the words in a verdict and around it agree with its scores: another value or scale, or a retraction."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain

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
            numbers = value if isinstance(value, list) else []
            numbers = [one for one in numbers if isinstance(one, str) and fits("plain_value", one)]
            others = {*map(_number_of, numbers)} - {*scores.values()}
            refuse(others, "conflicting", f"{key} has other numbers: {', '.join(numbers)[:40]}")
            name = has("dimension", key_words(key), self.fields.words) and isinstance(value, str)
            if name:
                of_scale = pattern("of_the_scale").findall(folded(value))
            else:
                of_scale = []
            contradicts = any(
                float(top) == self.fields.rubric.high and float(one) not in scores.values()
                for one, top in of_scale
            )
            refuse(contradicts, "conflicting", f"{key} speaks of another value: {str(value)[:40]}")
            unsure = fits("unsure_key", key_words(key)) and fits("unsure", str(value).casefold())
            refuse(
                unsure,
                "retracted",
                f"{key} is {str(value)[:40]}: the judge does not trust its scores",
            )
            aside = isinstance(value, str) and fits("aside_key", key_words(key))
            taken_back = aside and withdraws(str(value).casefold(), self.fields.words)
            refuse(taken_back, "retracted", f"{key} takes the scores back: {str(value)[:40]}")
        for part in objects(chosen, without="beside"):
            twice = next(
                (name for name, value in self.fields.meant(part) if value != scores[name]), None
            )
            refuse(twice, "conflicting", f"{twice} has two values")
            for key, value in ((key, value) for key, value in part if isinstance(value, str)):
                note = fits("note_key", key_words(key))
                text = "" if self.fields.dimension(key)[0] else folded(value)
                other = self._other_value(text, scores, "own_mention" if note else "mention")
                is_corrected = note and self._is_corrected(text, scores)
                refuse(
                    other or is_corrected,
                    "conflicting",
                    f"{key} speaks of another value: {text[:40]}",
                )
                if len(text) < 40 and not note:
                    of = pattern("out_of").search(text)
                else:
                    of = None
                another = of and float(of[1]) not in (
                    self.fields.rubric.high,
                    self.fields.rubric.high * len(scores),
                )
                refuse(another, "other_scale", f"{key} states another scale: {text[:40]}")

    def check_words(
        self, before: str, after: str, chosen: Object, scores: Mapping[str, float], tagged: bool
    ) -> None:
        """Refuse if the text around the object retracts it or gives another value or scale."""
        # No pattern finds what begins in one text and ends in the next where a full stop is between them.
        values = [value for _, value in members_of(chosen)]
        around = f"{before}\n.\n{after}"
        lists = [value if isinstance(value, list) else [value] for value in values]
        items = list(chain.from_iterable(lists))
        own_texts = "\n.\n".join(item for item in items if isinstance(item, str)).casefold()
        for row in pattern("listed").findall(around):
            other = not {*map(float, row)} <= {*scores.values()}
            refuse(other, "conflicting", f"the reply also has the scores {', '.join(row)}")
        labelled = [float(number) for number in pattern("labelled_number").findall(before)]
        strange = [
            n
            for n in labelled
            if self.fields.rubric.low <= n <= self.fields.rubric.high and n not in scores.values()
        ]
        refuse(len(strange) > 1, "conflicting", f"the reply also has the scores {listing(strange)}")
        # A number beside what a dimension is called in another language, or of the scale, is a score.
        stated = [float(number) for number in pattern("number_elsewhere").findall(around)]
        stated += [
            float(number)
            for number, top in pattern("of_the_scale").findall(around)
            if float(top) == self.fields.rubric.high
        ]
        others = {*stated} - {*scores.values()} if tagged else set()
        refuse(others, "conflicting", f"the reply also has the scores {listing(sorted(others))}")
        for text in (
            around,
            pattern("told_of_material").sub(" ", own_texts) if tagged else own_texts,
        ):
            scale = self._other_scale(text)
            refuse(scale, "other_scale", f"the reply speaks of another scale: {str(scale)[:60]}")
        name = self._other_value(around, scores)
        refuse(name, "conflicting", f"{name} has more in the reply than one number")
        left = self._without_their_mean(self.fields.mention.sub(" ", after), scores)
        back = has("dimension", left, self.fields.words)
        back = back or not all(leaves_a_verdict(part) for part in sentences_of(left))
        back = back or is_disowned(before, self.fields.words, self.material, signed=tagged)
        back = (
            back
            or has("refused", around)
            or has("no_numbers", own_texts)
            or retracts(own_texts, self.fields.words, self.material)
        )
        refuse(back, "retracted", "the reply says that its scores are none, or may take them back")

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
        mentions = self.fields.mentions(text, of)
        wrong = (
            n
            for n, value, scale in mentions
            if value != scores[n] or (scale and float(scale) != high)
        )
        return next(wrong, None)

    def _other_scale(self, text: str) -> str | None:
        """Return the words by which a text names another scale."""
        low = self.fields.rubric.low
        high = self.fields.rubric.high
        for stated in pattern("stated").finditer(text):
            numbers = [float(NUMERALS.get(one, one)) for one in stated.groups() if one]
            if numbers and (numbers[-1] != high or not {*numbers} <= {low, high}):
                return stated[0]
        if other := pattern("other_scale").search(text):
            return other[0]
        return None

    def _without_their_mean(self, text: str, scores: Mapping[str, float]) -> str:
        """Return a text without lines that are nothing but the scores' mean or sum, of the rubric's scale."""
        mean = sum(scores.values()) / len(scores)

        def kept(line: re.Match[str]) -> str:
            value = float(line[1])
            most = float(line[2] or self.fields.rubric.high)
            is_mean = abs(value - mean) <= 0.5 and most == self.fields.rubric.high
            is_sum = value == sum(scores.values()) and most == self.fields.rubric.high * len(scores)
            if is_mean or is_sum:
                return " "
            return line[0]

        return pattern("summary").sub(kept, text)


def _number_of(written: str) -> float:
    """Return a number as it is written; NaN of a word."""
    try:
        return float(bare_number(written))
    except ValueError:
        return math.nan
