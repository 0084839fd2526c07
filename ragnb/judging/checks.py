"""What the words around an object in a reply do: announce it as a verdict, quote it, or take it back."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from ragnb.judging.reply import fits, has, pattern, rules_out

_HARMLESS = tomllib.loads(Path(__file__).with_name("harmless.toml").read_text("utf-8"))


@cache
def _made_of(place: str) -> re.Pattern[str]:
    """Return the pattern of a sentence that has only the words and phrases which are harmless at a place."""
    words, phrases = (
        [
            entry.replace("_", " ")
            for entry in sorted({*_HARMLESS[place][kind].split()}, key=len, reverse=True)
        ]
        for kind in ("words", "phrases")
    )
    return re.compile(
        rf"\W*+(?:(?:\b(?:{'|'.join(words)})\b|{'|'.join(phrases)})[^\w❌✗✘×≠~]*+)++", re.IGNORECASE
    )


def is_harmless(sentence: str, place: str) -> bool:
    """Return whether a sentence before or after an object has only words that cannot take it back.

    Examples
    --------
    >>> is_harmless("Ich hoffe, das hilft!", "after"), is_harmless("Das gilt nicht.", "after")
    (True, False)
    """
    return _made_of(place).fullmatch(sentence) is not None


def leaves_a_verdict(sentence: str) -> bool:
    """Return whether a sentence after an object is known to leave it as it is."""
    return is_harmless(sentence, "after") or rules_out("harmless", sentence)


def is_quoted(before: str) -> bool:
    """Return whether the words before an object call it a quotation, example or draft, or do not announce it."""
    gap: Any = pattern("gap").search(before, max(0, len(before) - 120))  # it may be empty
    words = re.sub(r"\{[^{}\n]{0,80}\}|<[^<>\n]{1,80}>", " ", before[: gap.start()]).lower()
    sentences = [part.strip(" \t*_#|-") for part in pattern("sentence_ends").split(words[-600:])]
    last = next((part for part in reversed(sentences) if re.search(r"[^\W\d_]", part)), None)
    if last is None or _is_announced(last):
        return False
    if not re.search("[?？]", last) and is_harmless(last, "before"):
        return False
    closed, quoting = last[-1] in '.!。！"”)', has("quoting", last)
    apart = "\n\n" in re.sub(r"[ \t\r]", "", gap[0])  # by an empty line
    leads_on = not closed and (not apart or last[-1] in ":：" or has("leads_on", last))
    short = len(re.findall(r"[a-zà-ÿ]+|[\u4e00-\u9fff]{2}", last)) < 3
    if leads_on or short or has("speaker_says", words):
        return True
    speaks = (not closed or has("speaks", last)) and not has("own_words", last)
    return has("named", last) and (quoting or speaks)


def _is_announced(sentence: str) -> bool:
    """Return whether a sentence (or its last clause) has only words that announce a verdict."""
    named = pattern("gives").sub(" verdict ", pattern("about_it").sub(" json ", sentence))
    if has("quoting", named) or has("asks_or_refers", named):
        return False
    for clause in (pattern("clause").split(named)[-1], named):
        rest = pattern("chinese").sub(" here ", pattern("own_digits").sub(" ", clause))
        words = set(re.findall(r"[^\W\d_]+|\d", pattern("own_reply").sub("verdict", rest)))
        if pattern("form_alone").match(clause):
            return False
        if words and all(fits("filler", word) or fits("core", word) for word in words):
            return any(fits("core", word) for word in words)
    return False


def is_disowned(before: str) -> bool:
    """Return whether the last sentence before an object with the tag makes it another's, or may do so.

    Prose that is closed by a full stop counts as prose. A sentence that leads on to the object has to speak of a
    judgement or of who judges: no list of words knows every way to lead on to what is not meant.

    Examples
    --------
    >>> is_disowned("Nach Prüfung mein Urteil:"), is_disowned("So könnte es aussehen:")
    (False, True)
    """
    text = re.split(r" {20}\n", before)[-1]  # after another object's place
    gap: Any = pattern("gap").search(text, max(0, len(text) - 120))  # it may be empty
    words = re.sub(r"[\s*_#`>|-]+$", "", text[: gap.start()])
    parts = pattern("sentence_ends").split(words[-600:])
    last = next((part for part in reversed(parts) if re.search(r"[^\W\d_]", part)), None)
    if last is None:
        return False
    closed = last.rstrip().endswith(tuple('.!?。！？"”)'))
    if has("disowning", last):
        return True
    if closed:
        return False
    return has("quoting", last) or (last.endswith((":", "：")) and not has("own_judgement", last))


def sentences_of(text: str) -> set[str]:
    """Return the sentences of a text without markup; those that are the same once."""
    text = re.sub(
        r"</?(?!draft|example|sample|template|test|quote|cite|del|strike|material|context)[\w|-]{1,30}/?>|<\|\w{1,30}\|>|`{1,8}[a-z]{0,12}",
        " ",
        text,
    )
    return {part.strip() for part in re.split(r"(?<=[?？])|[!。！\n]|\.(?!\d)", text)}
