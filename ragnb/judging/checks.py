"""What the words around an object in a reply do: announce it as a verdict, quote it, or take it back."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ragnb.judging.reply import fits, has, pattern, rules_out

_HARMLESS = tomllib.loads(Path(__file__).with_name("harmless.toml").read_text("utf-8"))


# Kana, Chinese characters and hangul, beside which no blank tells where a word ends.
_WRITTEN_TOGETHER = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LETTER = "[a-z0-9_\u00c0-\u024f\u0400-\u04ff]"  # of scripts with blanks between words


def _entries(*lists: str) -> set[str]:
    """Return the entries of some lists as patterns: ``_`` is a blank, ``*`` any ending."""
    entries = {entry for text in lists for entry in text.split()}
    return {re.escape(entry).replace("_", " ").replace(r"\*", f"{_LETTER}*+") for entry in entries}


def _one_of(entries: set[str]) -> str:
    """Return the pattern of one entry, the longest first; scripts without blanks need none around it."""
    longest_first = sorted(entries, key=len, reverse=True)
    whole_words = "|".join(e for e in longest_first if not _WRITTEN_TOGETHER.match(e))
    joined = [e for e in longest_first if _WRITTEN_TOGETHER.match(e)]
    whole = rf"(?<!{_LETTER})(?:{whole_words})(?!{_LETTER})"
    return f"(?:{'|'.join([whole, *joined])})"


class _Place(NamedTuple):
    """The patterns of harmless sentences at a place: of those words alone, and the words that say something."""

    alone: re.Pattern[str]
    telling: re.Pattern[str]


@cache
def _place(place: str) -> _Place:
    """Return the patterns of a place: ``before`` or ``after`` an object, or before a ``signed`` one."""
    grammar = _entries(_HARMLESS["grammar"]["words"])
    entries = _entries(*_HARMLESS[place].values())
    more = grammar
    if place == "before":
        more = set()
    if place == "signed":
        entries |= _entries(*_HARMLESS["before"].values())
        more = grammar | _entries(*_HARMLESS["judged"].values())
    # Signs of a mistake are no punctuation: a cross after a word may strike the verdict out. With possessive
    # quantifiers, which give nothing back, a long sentence of other words is refused at its first one.
    alone = rf"\W*+(?:{_one_of(entries | more)}[^\w❌✗✘×≠~]*+)++"
    # A sentence of words of grammar alone says nothing (see harmless.toml).
    telling = entries if place == "before" else entries - grammar
    return _Place(re.compile(alone, re.IGNORECASE), re.compile(_one_of(telling), re.IGNORECASE))


@cache
def _judged(kind: str) -> re.Pattern[str]:
    """Return the pattern of what is judged (``words``), or of who judges (``self``)."""
    return re.compile(_one_of(_entries(_HARMLESS["judged"][kind])), re.IGNORECASE)


def is_harmless(sentence: str, place: str) -> bool:
    """Return whether a sentence before or after an object has only words that cannot take it back.

    Examples
    --------
    >>> is_harmless("Ich hoffe, das hilft!", "after"), is_harmless("Das gilt nicht.", "after")
    (True, False)
    """
    patterns = _place(place)
    if not patterns.alone.fullmatch(sentence) or not patterns.telling.search(sentence):
        return False
    # "I rate the answer as follows" announces a verdict, "the answer is as follows" what another wrote.
    names_the_judged = place == "signed" and _judged("words").search(sentence)
    return not names_the_judged or _judged("self").search(sentence) is not None


def leaves_a_verdict(sentence: str) -> bool:
    """Return whether a sentence after an object is known to leave it as it is."""
    return is_harmless(sentence, "after") or rules_out("harmless", sentence)


def is_quoted(before: str) -> bool:
    """Return whether the words before an object call it a quotation, example or draft, or do not announce it."""
    # White space, fences and brackets, with which a reply opens an object; it may be empty.
    gap: Any = pattern("gap").search(before, max(0, len(before) - 120))
    # Without small objects and tags, whose words are no prose.
    words = re.sub(r"\{[^{}\n]{0,80}\}|<[^<>\n]{1,80}>", " ", before[: gap.start()]).lower()
    sentences = [part.strip(" \t*_#|-") for part in pattern("sentence_ends").split(words[-600:])]
    with_letters = [part for part in sentences if re.search(r"[^\W\d_]", part)]
    if not with_letters:
        return False
    last = with_letters[-1]
    if _is_announced(last):
        return False
    if not re.search("[?？]", last) and is_harmless(last, "before"):
        return False
    is_closed = last[-1] in '.!。！"”)'
    is_apart = "\n\n" in re.sub(r"[ \t\r]", "", gap[0])  # by an empty line
    leads_on = not is_closed and (not is_apart or last[-1] in ":：" or has("leads_on", last))
    n_words = len(re.findall(r"[a-zà-ÿ]+|[\u4e00-\u9fff]{2}", last))  # two Chinese signs are one
    if leads_on or n_words < 3 or has("speaker_says", words):
        return True
    if not has("named", last):
        return False
    speaks = (not is_closed or has("speaks", last)) and not has("own_words", last)
    return has("quoting", last) or speaks


def _is_announced(sentence: str) -> bool:
    """Return whether a sentence (or its last clause) has only words that announce a verdict."""
    named = pattern("gives").sub(" verdict ", pattern("about_it").sub(" json ", sentence))
    if has("quoting", named) or has("asks_or_refers", named):
        return False
    last_clause = pattern("clause").split(named)[-1]
    for clause in (last_clause, named):
        if pattern("form_alone").match(clause):
            return False
        rest = pattern("own_digits").sub(" ", clause)
        rest = pattern("chinese").sub(" here ", rest)
        rest = pattern("own_reply").sub("verdict", rest)
        words = set(re.findall(r"[^\W\d_]+|\d", rest))
        if words and all(fits("filler", word) or fits("core", word) for word in words):
            return any(fits("core", word) for word in words)
    return False


def is_disowned(
    before: str, words: str, material: Sequence[str] = (), *, signed: bool = True
) -> bool:
    """Return whether the text before an object makes it another's, or may do so.

    A judge may reason in prose, so most sentences are free. None may speak of the verdict to come but by
    announcing it, and of the last one it has to be known what it is about: it announces a verdict, or it speaks
    of the answer.

    Parameters
    ----------
    before : str
        In small letters.
    words : str
        The names of the dimensions, as alternatives of a pattern.
    material : sequence of str
        What was judged: a last sentence with a word of it is about it.
    signed : bool, default True
        Whether the object has the tag. What leads on to another one is looked at by `is_quoted`.

    Examples
    --------
    >>> is_disowned("nach prüfung mein urteil:", "accuracy"), is_disowned("so könnte es aussehen:", "accuracy")
    (False, True)
    >>> is_disowned("the fee is missing in the answer.", "accuracy"), is_disowned("a mere toy.", "accuracy")
    (False, True)
    """
    text = re.split(r" {20}\n", before)[-1]  # after another object's place
    gap: Any = pattern("gap").search(text, max(0, len(text) - 120))  # it may be empty
    written = re.sub(r"[\s*_#`>|-]+$", "", text[: gap.start()])
    # A dimension and the scale are as harmless as the word score.
    prose = pattern("own_digits").sub(" ", pattern("dimension", words).sub("score", written))
    parts = [part.strip() for part in pattern("sentence_ends").split(prose)]
    sentences = [part for part in parts if re.search(r"[^\W\d_]", part)]
    if not sentences:
        return False
    last = sentences[-1]
    leads_on = last.endswith((":", "：", "=", ">", "→"))
    if not signed and (leads_on or _is_announced(last) or last[-1] not in ".!?。！？"):
        return any(map(_takes_back, sentences[:-1]))
    if any(map(_takes_back, sentences)):
        return True
    # An example of what an answer lacks is none of a verdict.
    if leads_on:
        about = last
    else:
        about = pattern("for_example").sub(" ", last)
    if has("disowning", about):
        return True
    if leads_on:
        return not _leads_on_to_a_verdict(last)
    if any(is_harmless(last, place) for place in ("signed", "after")) or _is_announced(last):
        return False
    whole = pattern("full_stops").split(written)[-1]  # with what is before a semicolon
    if has("irrealis", whole) and not has("answered", whole):
        return True
    if has("the_judged", whole) or has("dimension", whole, words):
        return False
    if _shares_a_word(whole, material):
        return False
    # What points at something in the reply, or at who writes, may be about the verdict, whatever else it says.
    if any(has(name, whole) for name in ("of_a_verdict", "forward", "pointing")):
        return True
    return not (has("of_the_answer", whole) or has("whole_sentence", whole))


def _takes_back(sentence: str) -> bool:
    """Return whether a sentence speaks of the verdict to come, or of judging, otherwise than by announcing it."""
    if is_harmless(sentence, "signed"):
        return False
    of_a_verdict = has("of_a_verdict", sentence)
    if has("comes_now", sentence) or (of_a_verdict and has("forward", sentence)):
        return True
    # An answer may be made up, or be about another question; a verdict may not.
    of_it = of_a_verdict or not has("answered", sentence)
    return has("declined", sentence) or (
        of_it and (has("made_up", sentence) or has("of_elsewhere", sentence))
    )


def withdraws(remark: str, words: str) -> bool:
    """Return whether a remark beside the scores may take them back: it is not known to speak of the answer alone.

    What the prompt asks for (analysis, reason, suggestion) speaks of the answer; a member that nobody asked for
    need not.

    Parameters
    ----------
    remark : str
        In small letters.
    words : str
        The names of the dimensions, as in a pattern.

    Examples
    --------
    >>> withdraws("please disregard.", "accuracy"), withdraws("the answer disregards the deadline.", "accuracy")
    (True, False)
    >>> withdraws("slightly verbose", "accuracy"), withdraws("unit test fixture", "accuracy")
    (False, True)
    """
    parts = _parts(pattern("own_digits").sub(" ", remark))
    return any(_may_withdraw(part, words) for part in parts)


def retracts(text: str, words: str, material: Sequence[str] = ()) -> bool:
    """Return whether what the judge says of the answer takes its own scores back.

    What begins with the answer tells what stands in it, such as an order to the judge. A sentence that speaks of
    scores, and neither of the answer nor in a word of the `material`, gives no reason for them.

    Parameters
    ----------
    text : str
        In small letters.
    words : str
        The names of the dimensions, as in a pattern.

    Examples
    --------
    >>> retracts("i made these numbers up.", "accuracy"), retracts("the answer makes numbers up.", "accuracy")
    (True, False)
    >>> retracts("the values are template values.", "accuracy", ["Who pays for the pump?"])
    True
    """
    own_words = (part for part in _parts(text) if not has("begins_with_the_answer", part))
    return any(_may_retract(part, words, material) for part in own_words)


def _parts(text: str) -> list[str]:
    """Return the sentences of a member of a verdict, none of them blank."""
    parts = map(str.strip, pattern("sentence_ends").split(text))
    return [part for part in parts if part]


def _may_retract(sentence: str, words: str, material: Sequence[str]) -> bool:
    """Return whether the judge speaks of itself or of its scores, and not as one does who gives a reason."""
    if has("own_retraction", sentence, words) or has("of_this_scoring", sentence):
        return True
    if fits("record_words", sentence) and has("record_signs", sentence):
        return True
    if has("first_person", sentence):
        return not has("looked", sentence)
    is_of_scoring = has("of_scoring", sentence) and not has("the_judged", sentence)
    if not is_of_scoring and not _is_of_scores_alone(sentence, words, material):
        return False
    return not (is_harmless(sentence, "after") or is_harmless(sentence, "signed"))


def _is_of_scores_alone(sentence: str, words: str, material: Sequence[str]) -> bool:
    """Return whether a sentence speaks of scores, of nothing of the answer, and in no word of the material."""
    if not has("of_a_verdict", sentence) or has("of_the_answer", sentence):
        return False
    if fits("number", sentence):  # a score that is written with its unit
        return False
    is_reason = has("dimension", sentence, words) or has("looked", sentence)
    is_reason = is_reason or has("suggests", sentence)
    return not is_reason and not _shares_a_word(sentence, material)


def _may_withdraw(sentence: str, words: str) -> bool:
    """Return whether a remark may take the scores back: it is not known to be of the answer alone."""
    if _takes_back(sentence) or has("disowning", sentence) or has("withdrawn", sentence):
        return True
    if (
        has("first_person", sentence)
        or has("unseen", sentence)
        or has("dimension", sentence, words)
    ):
        return True
    if is_harmless(sentence, "after") or is_harmless(sentence, "signed"):
        return False
    if has("of_a_verdict", sentence) or has("of_a_trial", sentence):
        return True
    is_told_of = has("praises_or_faults", sentence) or has("names_a_fault", sentence)
    return not (is_told_of or fits("quality_words", sentence))


def _leads_on_to_a_verdict(sentence: str) -> bool:
    """Return whether the clause that leads on to an object announces a verdict, under no condition."""
    if has("own_reply", sentence):
        return True
    if has("conditional", sentence):
        return False
    *others, clause = re.split("[,，、;；]", sentence)
    if not is_harmless(clause, "signed"):
        return False
    # "Hence:" announces what the clauses before it give a reason for.
    named = any(has(name, clause) for name in ("of_a_verdict", "forward", "here"))
    named = named or _judged("self").search(clause) is not None
    return all(is_harmless(other, "signed") or (named and _tells(other)) for other in others)


def _tells(clause: str) -> bool:
    """Return whether a clause before an announcement neither speaks of another's wish nor of a verdict."""
    if has("of_a_verdict", clause):
        return False
    return has("the_judged", clause) or not has("pointing", clause)


def _shares_a_word(sentence: str, material: Sequence[str]) -> bool:
    """Return whether a sentence has a word of the material that is none of grammar and none of judging."""
    content_words = {word for word in _words(sentence) if _is_content(word)}
    return bool(content_words) and any(content_words & _words(text.casefold()) for text in material)


def _words(text: str) -> set[str]:
    """Return the words of a text that have three letters; where words stand without blanks, each two signs."""
    words = set[str]()
    for run in re.findall(r"[^\W\d_]{2,}", text):
        if _WRITTEN_TOGETHER.match(run):
            words |= {run[place : place + 2] for place in range(len(run) - 1)}
        elif len(run) > 2:
            words.add(run)
    return words


def _is_content(word: str) -> bool:
    """Return whether a word is neither of grammar nor of judging."""
    of_judging = ("of_a_verdict", "forward", "disowning", "declined", "made_up")
    if any(has(name, word) for name in of_judging):
        return False
    # A word of grammar, with which "verdict" is still a harmless sentence.
    return not is_harmless(f"verdict {word}", "signed")


def sentences_of(text: str) -> set[str]:
    """Return the sentences of a text without markup; those that are the same once."""
    # Tags that say what becomes of their text, such as <draft> and <del>, stay to be read.
    text = re.sub(
        r"</?(?!draft|example|sample|template|test|quote|cite|del|strike|material|context)[\w|-]{1,30}/?>|<\|\w{1,30}\|>|`{1,8}[a-z]{0,12}",
        " ",
        text,
    )
    return {part.strip() for part in re.split(r"(?<=[?？])|[!。！\n]|\.(?!\d)", text)}
