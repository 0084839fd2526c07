"""The encoding of bytes that are no UTF-8, told by what the decoded text looks like.

That bytes are legal in an encoding is no evidence: nearly all are legal in nearly all. An encoding is proposed
where its text reads like a language that uses it: common characters of Chinese, kana beside kanji, Cyrillic words,
or a few accented letters among plain ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

_LOOKED_AT = 1 << 20  # bytes of a file
# Signs that stand between accented words in the code pages of Windows.
_SIGNS = set("‘’‚“”„«»‹›–—…•€£°§©®™´¨·¿¡ªº№½¼¾²³±×\xa0\xad")
# Of the characters of a script, the share that are common ones in text of that encoding.
_MOSTLY = 0.85
_FEWEST_SYLLABLES = 8  # of Hangul: with fewer, another encoding may look Korean by chance


def likely_encoding(data: bytes) -> str:
    """Return a hint on the encoding of the bytes.

    Examples
    --------
    >>> likely_encoding("La température relevée".encode("cp1252"))
    "it may be Windows-1252: pass encoding='cp1252'"
    >>> likely_encoding("退款流程需要三天".encode("gb18030"))
    "it may be GBK: pass encoding='gb18030'"
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "it looks like UTF-16: pass encoding='utf-16'"
    head = data[:_LOOKED_AT]
    for encoding in ENCODINGS:
        if _fits(head, encoding):
            return f"it may be {encoding.name}: pass encoding={encoding.codec!r}"
    return "save it as UTF-8, or pass the encoding it was written in, such as encoding='cp1252'"


def _fits(head: bytes, encoding: Encoding) -> bool:
    """Return whether the text of an encoding looks like text of its languages."""
    # The last character of what is looked at may be cut; GB 18030 has the longest, of four bytes.
    for cut in range(4):
        with suppress(UnicodeError):
            text = head[: len(head) - cut].decode(encoding.codec)
            return not _has_controls(text) and encoding.reads(text)
        # A whole file has no cut character.
        if len(head) < _LOOKED_AT:
            return False
    return False


def _has_controls(text: str) -> bool:
    """Return whether a text holds control characters that no text has, as bytes in a wrong encoding become."""
    controls = {character for character in set(text) if unicodedata.category(character) == "Cc"}
    return bool(controls - {*"\t\r\n\f\v"})


def _share(text: str, common: Callable[[str], bool], of: Callable[[str], bool]) -> float:
    """Return the share of common characters among those outside ASCII that count."""
    counted = [letter for letter in text if ord(letter) > 127 and of(letter)]
    if counted:
        return sum(map(common, counted)) / len(counted)
    return 0.0


def _is_in(encoding: str, lead: tuple[int, int]) -> Callable[[str], bool]:
    """Return a function that tells whether the first of the two bytes of a character is in a range."""

    def common(letter: str) -> bool:
        with suppress(UnicodeError):
            code = letter.encode(encoding)
            return len(code) == 2 and lead[0] <= code[0] <= lead[1]
        return False

    return common


def _is_kana(letter: str) -> bool:
    return "\u3040" <= letter <= "\u30ff"


def _is_no_sign(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "LCM"


# The first level of each character set holds the common characters, in the order of their sounds or strokes.
_SIMPLIFIED = _is_in("gb2312", (0xB0, 0xD7))
_TRADITIONAL = _is_in("big5", (0xA4, 0xC6))
_KANJI = _is_in("shift_jis", (0x88, 0x98))
_HANGUL = _is_in("euc_kr", (0xB0, 0xC8))


def _reads_simplified(text: str) -> bool:
    # Old and new characters are mixed in what people quote.
    return _share(text, _SIMPLIFIED, _is_no_sign) >= 0.7


def _reads_traditional(text: str) -> bool:
    return _share(text, _TRADITIONAL, _is_no_sign) >= _MOSTLY


def _reads_japanese(text: str) -> bool:
    def common(letter: str) -> bool:
        return _is_kana(letter) or _KANJI(letter)

    # Chinese decoded as Japanese has hardly any of these, but kanji, or katakana of half width.
    hiragana = _share(text, lambda letter: "\u3041" <= letter <= "\u3096", _is_no_sign)
    katakana = _share(text, lambda letter: "\u30a1" <= letter <= "\u30fc", _is_no_sign)
    return hiragana + katakana >= 0.15 and _share(text, common, _is_no_sign) >= _MOSTLY


def _reads_korean(text: str) -> bool:
    # Two thirds of Chinese characters would be syllables too, so that a few prove nothing.
    syllables = sum("가" <= letter <= "힣" for letter in text)
    return syllables >= _FEWEST_SYLLABLES and _share(text, _HANGUL, _is_no_sign) >= 0.97


class _ScriptWords(NamedTuple):
    """The words of a text with letters beyond ASCII, and those of them that are of one script and a usual case."""

    words: list[str]
    usual: list[str]

    @property
    def n_lower(self) -> int:
        """How many letters of the usual words are small ones."""
        return sum(letter.islower() for word in self.usual for letter in word)


def _script_words(text: str, letters: str) -> _ScriptWords:
    """Return the words of a text, of a script with these letters: a wrong encoding mixes scripts and cases."""
    words = re.findall(r"[^\W\d_]*[^\W\d_a-zA-Z][^\W\d_]*", text)
    of_script = [word for word in words if re.fullmatch(f"[{letters}]+", word)]
    usual = [word for word in of_script if word.islower() or word.istitle() or word.isupper()]
    return _ScriptWords(words, usual)


def _reads_cyrillic(text: str) -> bool:
    """Whether words are Cyrillic throughout, with capitals at their beginnings or in all of them."""
    found = _script_words(text, "А-Яа-яЁёІіЇїЄєҐґЎўЈјЉљЊњЋћЏџЂђ")
    n_letters = sum(map(len, found.words))
    n_usual = sum(map(len, found.usual))
    n_vowels = sum(letter in "аеёиоуыэюяіїє" for word in found.words for letter in word.lower())
    # Windows-1251 and KOI8-R have small letters where the other has capitals, and vowels in other places.
    mostly_usual = n_usual >= _MOSTLY * n_letters
    mostly_lower = 2 * found.n_lower >= n_letters
    usual_vowels = 0.3 * n_letters <= n_vowels <= 0.6 * n_letters
    return len(found.words) > 1 and mostly_usual and mostly_lower and usual_vowels


def _reads_greek(text: str) -> bool:
    """Whether words are Greek throughout, with capitals at their beginnings or in all of them."""
    found = _script_words(text, "Α-Ωα-ωάέήίόύώϊϋΐΰΆΈΉΊΌΎΏςΪΫ")
    mostly_usual = len(found.usual) >= _MOSTLY * len(found.words)
    return bool(found.words) and mostly_usual and found.n_lower > 0


def _reads_latin(text: str) -> bool:
    """Whether all that is not ASCII are accented letters in words of plain ones, and signs between words."""
    accented = [letter for letter in text if ord(letter) > 127 and letter not in _SIGNS]
    if not all("LATIN" in unicodedata.name(letter, "") for letter in accented):
        return False
    n_plain = sum(letter.isascii() and letter.isalpha() for letter in text)
    if 2 * len(accented) > n_plain:
        return False
    # A capital inside a word in small letters, or a sign inside a word, comes from another encoding.
    has_capital_inside = re.search(r"[a-z][^\x00-\x7f]", text) and any(
        before.islower() and after.isupper() and ord(after) > 127
        for before, after in pairwise(text)
    )
    has_sign_inside = re.search(r"[a-zA-Z][‚„‹›«»•€£§©®™¨·¿¡ªº½¼¾²³±×¤¥¦¬µ¶][a-z]", text)
    return not has_capital_inside and not has_sign_inside


def _reads_turkish(text: str) -> bool:
    """Whether a text is Latin with a letter that only Turkish has, and none that it has not."""
    accented = {letter for letter in text if ord(letter) > 127 and letter not in _SIGNS}
    has_turkish = bool(accented & {*"ışğİŞĞ"})
    return _reads_latin(text) and has_turkish and accented <= {*"ıİşŞğĞüÜöÖçÇâÂîÎûÛ"}


class Encoding(NamedTuple):
    """An encoding as Python calls it, as people call it, and whether a text that it decodes to reads like one."""

    codec: str
    name: str
    reads: Callable[[str], bool]


# The first that fits is proposed.
ENCODINGS: tuple[Encoding, ...] = (
    Encoding("shift_jis", "Shift-JIS", _reads_japanese),
    Encoding("euc_jp", "EUC-JP", _reads_japanese),
    Encoding("cp1251", "Windows-1251", _reads_cyrillic),
    Encoding("cp1253", "Windows-1253", _reads_greek),
    Encoding("cp949", "EUC-KR", _reads_korean),
    Encoding("gb18030", "GBK", _reads_simplified),
    Encoding("big5", "Big5", _reads_traditional),
    Encoding("koi8_r", "KOI8-R", _reads_cyrillic),
    Encoding("cp1254", "Windows-1254", _reads_turkish),
    Encoding("cp1252", "Windows-1252", _reads_latin),
    Encoding("cp1250", "Windows-1250", _reads_latin),
    Encoding("mac_roman", "Mac Roman", _reads_latin),
)
