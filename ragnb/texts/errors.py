"""Translated errors and warnings: the English message is the key, as in gettext.

``errors.<lang>.toml`` maps each English template to its translation; ``{}`` is the value of its own position,
``{3}`` the third. Values are translated in turn where they are messages: a hint, a place, the words of a cause.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from itertools import count

# The words of `place`, `listing` and `did_you_mean`, wherever a value holds them.
_PARTS = {
    "zh": (
        (r"^line (\d+)(?=[:,])", r"第 \1 行"),
        (r", line (\d+)(?=[:,])", r"，第 \1 行"),
        (r"^key (?=['\"])", "键 "),
        (r", key (?=['\"])", "，键 "),
        (r"(?<=['\"]) or (?=['\"])", " 或 "),
        (r"(?<=['\"]) and (?=['\"])", " 和 "),
        (r" and (\d+) more$", r" 等，另有 \1 个"),
        (r": ?$", "："),
    )
}


@cache
def _templates(lang: str) -> list[tuple[int, re.Pattern[str], str]]:
    """The templates of a language: how many characters of each are words, its pattern, the translation."""
    text = files(__package__).joinpath(f"errors.{lang}.toml").read_text(encoding="utf-8")
    rows = []
    for english, other in tomllib.loads(text).items():
        pieces = [re.escape(piece) for piece in english.split("{}")]
        # Each piece at its first place, without a second try: no message can take long.
        middle = "".join(f"(?>(.*?){piece})" for piece in pieces[1:-1])
        pattern = "(.*)".join([pieces[0] + middle, *pieces[1:][-1:]])
        rows.append((len(english.replace("{}", "")), re.compile(pattern, re.DOTALL), other))
    return sorted(rows, key=lambda row: -row[0])


def translated(message: str, lang: str) -> str:
    """Return a message in another language; what no template fits stays as it is.

    Examples
    --------
    >>> translated("level=2 must lie between 0 and 1, such as 0.95", "zh")
    'level=2 必须在 0 和 1 之间，例如 0.95'
    """
    if lang == "en":
        return message
    lines = [_line(line, lang) for line in message.split("\n")]
    if len(lines) == 1 or None in lines:
        return _line(message, lang) or message
    return "\n".join(map(str, lines))


def _line(message: str, lang: str) -> str | None:
    """Return the translation of one message, which may be prefixed by a file, line or key."""
    starts = [0, *(colon.end() for colon in re.finditer(": ", message))]
    fits = [
        (*fit, start) for start in starts if (fit := _fitting(message[start:], lang)) is not None
    ]
    if not fits:
        return None
    _, text, start = max(fits, key=lambda fit: (fit[0], fit[2]))
    return (_part(message[:start], lang) if start else "") + text


def _fitting(message: str, lang: str) -> tuple[int, str] | None:
    """Return the translation by the wordiest template that fits, and how many characters of it are words."""
    for words, pattern, other in _templates(lang):
        if fit := pattern.fullmatch(message):
            return words, _filled(other, [_part(value, lang) for value in fit.groups()])
    return None


def _filled(text: str, values: list[str]) -> str:
    """Put values in their places; any other brace is of the text.

    The third place, ``{}``, holds the third value; ``{2}`` holds the second one wherever it stands.
    """
    places = count(1)

    def value_of(place: re.Match[str]) -> str:
        number = next(places)
        if place[1]:
            number = int(place[1])
        return values[number - 1]

    return re.sub(r"\{(\d?)\}", value_of, text)


def _part(value: str, lang: str) -> str:
    fit = _fitting(value, lang)
    if fit is not None:
        return fit[1]
    for pattern, other in _PARTS[lang]:
        value = re.sub(pattern, other, value)
    return value
