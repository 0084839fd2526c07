"""What the words around an object of a reply make of it: a verdict, a quotation, or one that is taken back.

No list of words knows every way to quote or to retract. So an object without the request's tag may follow nothing,
words that announce a verdict, or whole sentences that speak of no object; and after any object only sentences may
follow that cannot take it back. What is lost by that is asked for again.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ragnb.judging.replies import pattern, word_set

NUMERALS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
NUMERALS |= {"ten": 10, "twenty": 20, "hundred": 100}
NUMERALS |= dict(zip("一二三四五六七八九十", range(1, 11), strict=True))


def is_marked(before: str, after: str) -> bool:
    """Whether the signs next to an object make it a quotation: a line that begins with ``>``, quotes, a strike.

    Examples
    --------
    >>> is_marked("> ", ""), is_marked("Verdict: ", ".")
    (True, False)
    """
    line = before[before.rfind("\n") + 1 :]
    quoted = re.search(r"[\"“「『‘']\s{0,8}[\[{]?\s{0,8}$", before[-20:])
    return bool(
        re.match(r"\s{0,8}(?:>(?!>>)|&gt;|//|#(?!#)|/\*|<!--)", line)
        or (quoted and re.match(r"\s{0,8}[\]}]?\s{0,8}[\"”」』’']", after))
        or (before.rstrip().endswith("~~") and after.lstrip().startswith("~~"))
    )


def is_quoted(before: str) -> bool:
    """Whether the words before an object speak of a quotation, an example or a draft, or do not announce it.

    Examples
    --------
    >>> is_quoted("The answer ends with: "), is_quoted("My verdict on the answer: ")
    (True, False)
    """
    gap = pattern("gap").search(before, max(0, len(before) - 120))
    words = before[: gap.start()] if gap else before
    words = re.sub(r"\{[^{}\n]{0,80}\}|<[^<>\n]{1,80}>", " ", words).lower()
    sentences = [part.strip(" \t*_#|-") for part in pattern("sentence_ends").split(words[-600:])]
    last = next((part for part in reversed(sentences) if re.search(r"[^\W\d_]", part)), None)
    if last is None or _is_announced(last):
        return False
    closed = last[-1] in '.!。！"”)'
    apart = gap is not None and "\n\n" in re.sub(r"[ \t\r]", "", gap[0])  # by an empty line
    if not closed and (not apart or last[-1] in ":：" or pattern("leads_on").search(last)):
        return True
    if len(re.findall(r"[a-zà-ÿ]+|[\u4e00-\u9fff]{2}", last)) < 3 or pattern("speaker_says").search(words):
        return True
    quoting = pattern("quoting").search(last)
    if pattern("own_words").search(last) and not quoting:
        return False
    return bool(pattern("named").search(last) and (quoting or not closed or pattern("speaks").search(last)))


def _is_announced(sentence: str) -> bool:
    """Whether a sentence has only words that announce a verdict; of one with a comma, its last clause."""
    named = pattern("gives").sub(" verdict ", pattern("about_it").sub(" json ", sentence))
    if pattern("quoting").search(named) or pattern("asks_or_refers").search(named):
        return False
    for clause in (pattern("clause").split(named)[-1], named):
        rest = pattern("chinese").sub(" here ", pattern("own_digits").sub(" ", clause))
        words = set(re.findall(r"[^\W\d_]+|\d", pattern("own_reply").sub("verdict", rest)))
        if pattern("form_alone").match(clause):
            return False
        if words and words <= word_set("core") | word_set("filler"):
            return not words.isdisjoint(word_set("core"))
    return False


def is_taken_back(before: str, after: str, texts: str, tagged: bool = False) -> bool:
    """Whether the words around a verdict, or its own texts, say that it is none, or may do so.

    Parameters
    ----------
    before, after : str
        In small letters; of `after`, what repeats the scores is left out.
    texts : str
        The verdict's own.
    tagged : bool
        Whether the object has the request's tag: what follows it is then up to `is_revoked`.

    Examples
    --------
    >>> is_taken_back("", "wait, i was too kind.", ""), is_taken_back("", "i hope that this helps!", "")
    (True, False)
    """
    if any(pattern("refused").search(text) for text in (before, after)) or pattern("no_numbers").search(texts):
        return True
    return not tagged and not all(map(_is_harmless, _sentences(after)))


def is_disowned(before: str) -> bool:
    """Whether the last sentence before an object with the tag says that it is a draft, an example or another's.

    Examples
    --------
    >>> is_disowned("draft: "), is_disowned("the answer is a draft of a letter. ")
    (True, False)
    """
    words = re.sub(r"[\s*_#`>|-]+$", "", re.split(r" {20}\n", before)[-1])  # after another object's place
    last = [part for part in pattern("sentence_ends").split(words[-600:]) if re.search(r"\w", part)][-1:]
    open_ = words[-1:] not in tuple('.!?。！？"”)')
    return any(pattern("disowning").search(part) or (open_ and pattern("quoting").search(part)) for part in last)


def is_revoked(after: str, dimensions: str, scores: Collection[float], scale: Collection[float]) -> bool:
    """Whether the words after an object with the tag take it back or give other numbers.

    Parameters
    ----------
    after : str
        In small letters, without what repeats the scores.
    dimensions : str
        The names of the dimensions, as a pattern.
    scores, scale : collection of float
        The ends of the scale, the sum and what lies between the scores may be said again.

    Examples
    --------
    >>> [is_revoked(text, "tone", [8], [1, 10]) for text in ("scratch that.", "overall: 8/10")]
    [True, False]
    """
    fine = {*scale, sum(scores), max(scale) * len(scores)}
    for sentence in _sentences(after):
        moved = re.search(dimensions, sentence) and pattern("moves_a_score").search(sentence)
        fine_about_it = pattern("polite").match(sentence) or pattern("affirming").search(sentence)
        about_it = pattern("about_the_verdict").search(sentence) and not fine_about_it
        if moved or about_it or pattern("revoking").search(sentence):
            return True
        said = [float(one) for one in re.findall(r"\d+(?:\.\d+)?", pattern("reference").sub(" ", sentence))]
        said = [one for one in said if one not in fine and not min(scores) <= one <= max(scores)]
        if said and pattern("of_a_verdict").search(sentence):
            return True
        if sentence.endswith(("?", "？")) and not pattern("polite").match(sentence):
            return True
    return False


def _sentences(text: str) -> set[str]:
    text = re.sub(r"</?[\w|-]{1,30}/?>|<\|\w{1,30}\|>|`{1,8}[a-z]{0,12}", " ", text)
    return {part.strip() for part in re.split(r"(?<=[?？])|[!。！\n]|\.(?!\d)", text)}


def _is_harmless(sentence: str) -> bool:
    """Whether a sentence after a verdict cannot take it back: it is polite, or tells of the answer."""
    if not re.search(r"[\w?？]", sentence) or pattern("polite").match(sentence):
        return True
    if pattern("refers").search(sentence) or sentence.endswith(("?", "？")):
        return False
    if pattern("of_the_examination").search(sentence) and not pattern("labelled").match(sentence):
        return False
    return bool(pattern("chinese_tells").search(sentence) or pattern("tells_of_the_answer").match(sentence))


def states_another_scale(text: str, low: float, high: float) -> str | None:
    """Return the words by which a text names a scale that is not the one from `low` to `high`.

    Examples
    --------
    >>> states_another_scale("on a scale of 1 to 5", 1, 10)
    'scale of 1 to 5'
    """
    for found in pattern("stated").finditer(text):
        numbers = [float(NUMERALS.get(one, one)) for one in found.groups() if one]
        if numbers and (numbers[-1] != high or not {*numbers} <= {low, high}):
            return found[0]
    other = pattern("other_units").search(text) or pattern("reversed").search(text)
    return other[0] if other else None


def quoted_regions(text: str) -> list[tuple[int, int]]:
    """Return from where to where a text is marked as a quotation, an example, struck out or a comment."""
    regions, opened = list[tuple[int, int]](), list[tuple[str, int]]()
    for mark in pattern("quotations").finditer(text):
        name = (mark[2] or "!").lower()
        if not mark[1] and mark[0] != "-->":
            opened.append((name, mark.start()))
        elif opened and opened[-1][0] == name:
            regions.append((opened.pop()[1], mark.end()))
    return regions + [(start, len(text)) for _, start in opened]
