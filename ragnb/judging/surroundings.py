"""What the words around an object of a reply make of it: a verdict, a quotation, or one that is taken back.

No list of words knows every way to quote or to retract. So an object without the request's tag may follow nothing,
words that announce a verdict, or whole sentences that speak of no object; and after any object only sentences may
follow that cannot take it back. What is lost by that is asked for again.
"""

from __future__ import annotations

import re

from ragnb.judging.replies import pattern, word_set

_WORDS = {"five": 5, "four": 4, "three": 3, "six": 6, "seven": 7, "ten": 10, "hundred": 100, "twenty": 20}


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


def is_quoted(before: str, after: str) -> bool:
    """Whether the words next to an object speak of a quotation, an example or a draft, or do not announce it.

    Parameters
    ----------
    before, after : str
        The text up to the object and from it on, other objects left out.

    Examples
    --------
    >>> is_quoted("The answer ends with: ", ""), is_quoted("My verdict on the answer: ", "")
    (True, False)
    """
    if pattern("within_a_sentence").match(after):
        return True
    words, sentences, apart = _sentences(before)
    if not sentences or _is_announced(sentences[-1]):
        return len(sentences) > 1 and bool(re.fullmatch(r"\W*answer\W*", sentences[-1]))
    last = sentences[-1]
    closed = last[-1] in '.!。！"”)'
    if not closed and (not apart or last[-1] in ":：" or pattern("leads_on").search(last)):
        return True
    if len(re.findall(r"[a-zà-ÿ]+|[\u4e00-\u9fff]{2}", last)) < 3 or pattern("label").search(words):
        return True
    if pattern("own_words").search(last) and not pattern("quoting").search(last):
        return False
    named = pattern("named").search(last)
    return bool(named and (pattern("quoting").search(last) or not closed or pattern("speaks").search(last)))


def is_announced(before: str) -> bool:
    """Whether the words before an object say that it is the verdict.

    Examples
    --------
    >>> is_announced("The draft was too kind. Final verdict: "), is_announced("Human verdict: ")
    (True, False)
    """
    _, sentences, _ = _sentences(before)
    return bool(sentences) and _is_announced(sentences[-1])


def is_draft(before: str) -> bool:
    """Whether the words before an object call it an earlier verdict of the judge's own.

    Examples
    --------
    >>> is_draft("My first draft: "), is_draft("The answer says: ")
    (True, False)
    """
    _, sentences, _ = _sentences(before)
    return bool(sentences and pattern("draft").search(sentences[-1]))


def _sentences(before: str) -> tuple[str, list[str], bool]:
    """The words before an object, their sentences, and whether an empty line parts them from it."""
    gap = pattern("gap").search(before, max(0, len(before) - 120))
    words = re.sub(r"\{[^{}\n]{0,80}\}|<[^<>\n]{1,80}>", " ", before[: gap.start()] if gap else before).lower()
    parts = pattern("sentence_ends").split(words[-600:])
    sentences = [part.strip(" \t*_#|-") for part in parts if re.search(r"[^\W\d_]", part)]
    return words, sentences, gap is not None and "\n\n" in re.sub(r"[ \t\r]", "", gap[0])


def _is_announced(sentence: str) -> bool:
    """Whether a sentence has only words that announce a verdict; of one with a comma, its last clause."""
    clauses = re.split(r"[,，;；]|\b(?=so\b|therefore\b|hence\b)|(?=所以|因此|于是)", sentence)
    follows = re.match(r"\W*(?:so|therefore|hence|所以|因此|于是)", clauses[-1])
    for clause in (clauses[-1], sentence):
        rest, whole = pattern("own_digits").sub(" ", _without_the_answer(clause)), _without_the_answer(sentence)
        if pattern("quoting").search(rest if follows else whole) or re.search(r"\d", rest):
            return False
        if re.search(r"[?？]$|\baccording to\b|\bbased on\b", whole):
            return False
        rest = pattern("chinese").sub(" here ", rest)
        words = re.findall(r"[^\W\d_]+", pattern("own_reply").sub("verdict", rest))
        form = re.search(r"\bform(?:at)?\b|格式(?!.{0,4}(?:评|打))", clause)
        if form and not re.search(r"\b(?:in|as|with)\b|按|用|以", clause):
            return False
        if words and all(word in word_set("core") or word in word_set("filler") for word in words):
            return bool(word_set("core").intersection(words))
    return False


def _without_the_answer(sentence: str) -> str:
    """A sentence without the words that name the answer as what is judged."""
    return pattern("gives").sub(" verdict ", pattern("about_it").sub(lambda found: " json " if "json" in found[0] else " ", sentence))


def is_taken_back(before: str, after: str, texts: str) -> bool:
    """Whether the words around a verdict, or its own texts, say that it is none, or may do so.

    Parameters
    ----------
    before, after : str
        In small letters; of `after`, what repeats the scores is left out.
    texts : str
        The verdict's own.

    Examples
    --------
    >>> is_taken_back("", "wait, i was too kind.", ""), is_taken_back("", "i hope that this helps!", "")
    (True, False)
    """
    after = re.sub(r"</?[\w|-]{1,30}/?>|<\|\w{1,30}\|>|`{1,8}[a-z]{0,12}", " ", after)
    sentences = {part.strip() for part in re.split(r"(?<=[?？])|[.!。！\n]", after)}
    refused = pattern("refused").search(before) or pattern("refused").search(after) or pattern("no_numbers").search(texts)
    return bool(refused) or not all(map(_is_harmless, sentences))


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
        numbers = [float(_WORDS.get(one, one)) for one in found.groups() if one]
        if numbers and (numbers[-1] != high or any(one not in (low, high) for one in numbers)):
            return found[0]
    other = pattern("other_units").search(text)
    return other[0] if other else None




def quoted_regions(text: str) -> list[tuple[int, int]]:
    """Return from where to where a text is marked as a quotation, an example, struck out or a comment."""
    regions, opened = list[tuple[int, int]](), list[tuple[str, int]]()
    for mark in pattern("quotations").finditer(text):
        name = (mark[1] or mark[2] or "!").lower()
        if mark[1] or mark[0] == "<!--":
            opened.append((name, mark.start()))
        elif opened and opened[-1][0] == name:
            regions.append((opened.pop()[1], mark.end()))
    return regions + [(start, len(text)) for _, start in opened]
