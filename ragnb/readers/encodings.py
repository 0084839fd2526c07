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

# How much of a file is looked at.
_LOOKED_AT = 1 << 20
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
    fitting = [(encoding, words) for encoding, words, _ in ENCODINGS if _fits(head, encoding)]
    if not fitting:
        return "save it as UTF-8, or pass the encoding it was written in, such as encoding='cp1252'"
    encoding, words = fitting[0]
    return f"it may be {words}: pass encoding={encoding!r}"


def _fits(head: bytes, encoding: str) -> bool:
    """Return whether the text of an encoding looks like text of its languages."""
    reads = next(reads for name, _, reads in ENCODINGS if name == encoding)
    # The last character of what is looked at may be cut.
    for cut in range(4):
        with suppress(UnicodeError):
            text = head[: len(head) - cut].decode(encoding)
            return not _has_controls(text) and reads(text)
        if len(head) < _LOOKED_AT:
            return False
    return False


def _has_controls(text: str) -> bool:
    return any(unicodedata.category(c) == "Cc" and c not in "\t\r\n\f\v" for c in set(text))


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

    kana = _share(text, lambda letter: "\u3041" <= letter <= "\u3096", _is_no_sign)
    kana += _share(text, lambda letter: "\u30a1" <= letter <= "\u30fc", _is_no_sign)
    return kana >= 0.15 and _share(text, common, _is_no_sign) >= _MOSTLY


def _reads_korean(text: str) -> bool:
    # Two thirds of Chinese characters would be syllables too, so that a few prove nothing.
    syllables = sum("가" <= letter <= "힣" for letter in text)
    return syllables >= _FEWEST_SYLLABLES and _share(text, _HANGUL, _is_no_sign) >= 0.97


def _reads_cyrillic(text: str) -> bool:
    """Whether words are Cyrillic throughout, with capitals at their beginnings or in all of them."""
    words = re.findall(r"[^\W\d_]*[^\W\d_a-zA-Z][^\W\d_]*", text)
    fine = [word for word in words if re.fullmatch("[А-Яа-яЁёІіЇїЄєҐґЎўЈјЉљЊњЋћЏџЂђ]+", word)]
    cased = [word for word in fine if word.islower() or word.istitle() or word.isupper()]
    lower = sum(letter.islower() for word in cased for letter in word)
    letters = sum(map(len, words))
    vowels = sum(letter in "аеёиоуыэюяіїє" for word in words for letter in word.lower())
    worded = sum(map(len, cased)) >= _MOSTLY * letters and 2 * lower >= letters
    return len(words) > 1 and worded and 0.3 * letters <= vowels <= 0.6 * letters


def _reads_greek(text: str) -> bool:
    words = re.findall(r"[^\W\d_]*[^\W\d_a-zA-Z][^\W\d_]*", text)
    fine = [word for word in words if re.fullmatch("[Α-Ωα-ωάέήίόύώϊϋΐΰΆΈΉΊΌΎΏςΪΫ]+", word)]
    cased = [word for word in fine if word.islower() or word.istitle() or word.isupper()]
    lower = sum(letter.islower() for word in cased for letter in word)
    return bool(words) and len(cased) >= _MOSTLY * len(words) and lower > 0


def _reads_latin(text: str) -> bool:
    """Whether all that is not ASCII are accented letters in words of plain ones, and signs between words."""
    others = [letter for letter in text if ord(letter) > 127 and letter not in _SIGNS]
    plain = sum(letter.isascii() and letter.isalpha() for letter in text)
    latin = all("LATIN" in unicodedata.name(letter, "") for letter in others)
    # A capital inside a word in small letters, or a sign inside a word, comes from another encoding.
    broken = re.search(r"[a-z][^\x00-\x7f]", text) and any(
        before.islower() and after.isupper() and ord(after) > 127
        for before, after in pairwise(text)
    )
    inside = re.search(r"[a-zA-Z][‚„‹›«»•€£§©®™¨·¿¡ªº½¼¾²³±×¤¥¦¬µ¶][a-z]", text)
    return latin and 2 * len(others) <= plain and not broken and not inside


def _reads_turkish(text: str) -> bool:
    others = {letter for letter in text if ord(letter) > 127 and letter not in _SIGNS}
    return _reads_latin(text) and bool(others & {*"ışğİŞĞ"}) and others <= {*"ıİşŞğĞüÜöÖçÇâÂîÎûÛ"}


# An encoding, what its text is called, and whether a text reads so; the first that fits is proposed.
ENCODINGS: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
    ("shift_jis", "Shift-JIS", _reads_japanese),
    ("euc_jp", "EUC-JP", _reads_japanese),
    ("cp1251", "Windows-1251", _reads_cyrillic),
    ("cp1253", "Windows-1253", _reads_greek),
    ("cp949", "EUC-KR", _reads_korean),
    ("gb18030", "GBK", _reads_simplified),
    ("big5", "Big5", _reads_traditional),
    ("koi8_r", "KOI8-R", _reads_cyrillic),
    ("cp1254", "Windows-1254", _reads_turkish),
    ("cp1252", "Windows-1252", _reads_latin),
    ("cp1250", "Windows-1250", _reads_latin),
    ("mac_roman", "Mac Roman", _reads_latin),
)
