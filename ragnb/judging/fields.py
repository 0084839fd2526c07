"""What the members of an object in a reply mean by a rubric: its scores, their scale, and remarks against them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ragnb import texts
from ragnb.judging.reply import (
    NUMBER_SIGNS,
    RULES,
    Object,
    Unreadable,
    bare_number,
    find_objects,
    fits,
    has,
    key_words,
    pattern,
    plain,
    refuse,
)
from ragnb.schema import Rubric

NUMERALS = RULES["numerals"]


class Fields:
    """A reader of the scores of one rubric, in members of objects and in texts."""

    def __init__(self, rubric: Rubric) -> None:
        self.rubric = rubric
        tables = [texts.entry(lang, "judge.dimensions") for lang in texts.LANGUAGES]
        names = {
            plain(table.get(d.name, d.name)): d.name for table in tables for d in rubric.dimensions
        }
        endings = {
            # 准确性, 准确度 and 准确率 are one word for a judge that answers in Chinese.
            re.sub("[性度率]$", end, word): name
            for word, name in names.items()
            for end in "性度率"
        }
        # A dimension's own name is never another's other name.
        self.names = endings | names | {plain(d.name): d.name for d in rubric.dimensions}
        # The longest first, or a pattern stops at a name that begins another.
        self.words = "|".join(sorted(map(re.escape, self.names), key=len, reverse=True))
        self.mention = pattern("mention", self.words)

    def dimension(self, key: str) -> tuple[str | None, str | None]:
        """Return the dimension that a key names, and the scale that it states: '' where its value is the scale."""
        word = plain(key)
        readings: list[tuple[str, str | None]] = [(word, None)]
        scale = pattern("scale_of").fullmatch(word)  # accuracy max
        if scale:
            readings.append((scale[1], ""))
        suffixed = pattern("suffixed").fullmatch(word)  # accuracy (1-10)
        if suffixed:
            readings.append((plain(suffixed[1]), suffixed[2] or suffixed[3]))
        for name, stated_scale in readings:
            if name in self.names:
                return self.names[name], stated_scale
        return None, None

    def members(self, value: Any, of: str = "", depth: int = 0) -> Iterator[tuple[str, str, Any]]:
        """Yield each score, scale and remark against it, at the top or in objects of scores, or of one (`of`)."""
        if isinstance(value, str) and depth and value.lstrip()[:1] in ("{", "｛", "["):
            # Some models write the object of scores as a text in a member; two objects would be two verdicts.
            inner = find_objects(value)
            value = inner[0].value if len(inner) == 1 else None
        # A reply that nests deeper than any rubric is no verdict, and must not exhaust the stack.
        if not isinstance(value, Object | list) or depth > 6:
            return
        if isinstance(value, list):
            for item in value:
                yield from self.members(item, of, depth + 1)
            return
        of = self._named_dimension(value) or of
        for key, item in value:
            words = key_words(key)
            name, scale = None, None
            if not of:  # within a dimension, keys are its own: value, scale, remark
                name, scale = self.dimension(key)
            if name is None:
                kind = self._kind(of, words, item)
            elif scale == "":
                kind = "scale"
            else:
                kind = "score"
            if scale:
                yield "scale", str(name), scale
            if kind == "score" and isinstance(item, Object):
                yield from self.members(item, name or of, depth + 1)
            elif kind == "inside":
                yield from self.members(item, "", depth + 1)
            elif kind == "score":
                yield kind, name or of, item
            elif kind:
                yield kind, name or words, item

    def _named_dimension(self, value: Object) -> str | None:
        """Return the dimension of an object like ``{"name": …, "score": …}``, where it is a value and no key."""
        keys = [key_words(key) for key, _ in value]
        names = [
            item
            for words, (_, item) in zip(keys, value, strict=True)
            if fits("name_key", words) and isinstance(item, str)
        ]
        if len(names) != 1:
            return None
        dimension, _ = self.dimension(names[0])
        has_value = any(fits("value_key", words) for words in keys)
        return dimension if has_value else None

    def _kind(self, of: str, words: str, item: Any) -> str:
        """Return what a member is, by the first row of a table that fits its key and content."""
        rows = RULES["keys"]["of_one_score" if of else "of_scores"]
        if isinstance(item, Object | list):
            content = "{" if item else ""  # the rows ask only whether something is within
        elif item is None:
            content = ""
        else:
            content = str(item).strip().casefold()
        # The last row of each table fits all.
        kind = next(
            kind for kind, key, text in rows if fits(key, words, self.words) and fits(text, content)
        )
        return str(kind)

    def meant(self, value: Any) -> set[tuple[str, float]]:
        """Return the scores of an object, in whatever form."""
        meant = set[tuple[str, float]]()
        for kind, name, item in self.members(value):
            with suppress(Unreadable):
                if kind == "score":
                    meant |= {(name, self.number(name, item))}
        return meant

    def scores(self, value: Any) -> dict[str, float]:
        """Return the one score of each dimension; a remark against them and another scale are refused."""
        given = {d.name: list[Any]() for d in self.rubric.dimensions}
        for kind, name, item in self.members(value):
            refuse(kind == "remark", "retracted", f"the object says {name}: {str(item)[:40]}")
            refuse(
                kind == "strange",
                "not_a_number",
                f"{name[:40]!r} ({str(item)[:40]}) is beside a score",
            )
            if kind == "scale":
                self._same_scale(name, item)
            else:
                given[name].append(item)
        missing = [name for name, values in given.items() if not values]
        refuse(missing, "missing_field", f"the reply has no {', '.join(missing)}")
        read = {
            name: {self.number(name, value) for value in values} for name, values in given.items()
        }
        for name, numbers in read.items():
            refuse(len(numbers) > 1, "conflicting", f"{name} has two values")
        return {name: numbers.pop() for name, numbers in read.items()}

    def _same_scale(self, name: str, value: Any) -> None:
        """Refuse a scale that is not the rubric's."""
        low = self.rubric.low
        high = self.rubric.high
        stated = str(value)
        written = re.findall(r"(?<![0-9.])[0-9]+(?:\.[0-9]+)?", stated.translate(NUMBER_SIGNS))
        numbers = {*map(float, written)}
        other = (
            not numbers
            # "1-10" names both ends, "out of 10" the upper one. The lower alone has to be called the least.
            or not numbers <= {low, high}
            or (high not in numbers and not fits("least", name))
        )
        refuse(
            other,
            "other_scale",
            f"{name} states another scale: {stated[:40]}; it is {low:g} to {high:g}",
        )

    def number(self, name: str, value: Any) -> float:
        """Return the number of a score as it is written; never of one that was repaired."""
        # Numbers of a reply are read as texts, so that none is changed; what is no text is none.
        number = None
        if isinstance(value, str):
            number = pattern("number").fullmatch(bare_number(value))
        if number is None or has("hedged", number["told"] or ""):
            raise Unreadable("not_a_number", f"{name} is {str(value)[:40]!r}, which is no score")
        low = self.rubric.low
        high = self.rubric.high
        score = float(number[1])
        scale = f"the scale is {low:g} to {high:g}"
        other = float(number[2] or number[3] or high) != high
        refuse(other, "other_scale", f"{name} is {value[:40]!r}; {scale}")
        refuse(not low <= score <= high, "out_of_range", f"{name} is {number[1][:20]}; {scale}")
        whole = self.rubric.decimals or score.is_integer()
        refuse(not whole, "fraction", f"{name} is {number[1]}; the scale has whole numbers")
        return score

    def mentions(self, text: str, of: str = "mention") -> Iterator[tuple[str, float, str | None]]:
        """Return each dimension with the number and scale in a text; NaN if it is not a single number."""
        for mention in pattern(of, self.words).finditer(text):
            written = (mention["value"] or mention["first"]).strip(".,/ ")
            number = pattern("number").fullmatch(str(NUMERALS.get(written, written)))
            value = math.nan
            scale = None
            if number:
                value = float(number[1])
                scale = number[2] or number[3]
            yield self.names[mention["name"] or mention["second"]], value, scale
