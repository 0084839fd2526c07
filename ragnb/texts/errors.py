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
from typing import NamedTuple

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


class _Template(NamedTuple):
    """A message with places for values: how many characters of it are words, its pattern, the translation."""

    n_characters: int
    pattern: re.Pattern[str]
    translation: str


class _Fit(NamedTuple):
    """What a template makes of a message: how many characters of it are words, and the translation."""

    n_characters: int
    translation: str


@cache
def _templates(lang: str) -> list[_Template]:
    """Return the templates of a language, the wordiest first."""
    text = files(__package__).joinpath(f"errors.{lang}.toml").read_text(encoding="utf-8")
    rows = []
    for english, other in tomllib.loads(text).items():
        first, *others = [re.escape(piece) for piece in english.split("{}")]
        pattern = first
        if others:
            # Each piece at its first place, without a second try: no message can take long.
            pattern += "".join(f"(?>(.*?){piece})" for piece in others[:-1])
            # The last value goes as far as it can, as the whole message has to fit.
            pattern += f"(.*){others[-1]}"
        n_characters = len(english.replace("{}", ""))
        rows.append(_Template(n_characters, re.compile(pattern, re.DOTALL), other))
    # The wordiest first; those of as many characters stay in the order of the file.
    return sorted(rows, key=lambda row: -row.n_characters)


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
    # Lines are messages of their own, such as findings, or parts of one message.
    if len(lines) == 1 or None in lines:
        return _line(message, lang) or message
    return "\n".join(map(str, lines))


def _line(message: str, lang: str) -> str | None:
    """Return the translation of one message, which may be prefixed by a file, line or key."""
    starts = [0, *(colon.end() for colon in re.finditer(": ", message))]
    best: _Fit | None = None
    best_start = 0
    for start in starts:
        fit = _fitting(message[start:], lang)
        if fit is None:
            continue
        # Of two that fit as well, the later one, which takes nothing of the prefix into a value.
        if best is None or fit.n_characters >= best.n_characters:
            best = fit
            best_start = start
    if best is None:
        return None
    if best_start == 0:
        return best.translation
    return _part(message[:best_start], lang) + best.translation


def _fitting(message: str, lang: str) -> _Fit | None:
    """Return the translation by the wordiest template that fits; None where none does."""
    for template in _templates(lang):
        match = template.pattern.fullmatch(message)
        if match:
            values = [_part(value, lang) for value in match.groups()]
            return _Fit(template.n_characters, _filled(template.translation, values))
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
    """Return a value of a message in another language: a message itself, or words of a place or a list in it."""
    fit = _fitting(value, lang)
    if fit is not None:
        return fit.translation
    for pattern, other in _PARTS[lang]:
        value = re.sub(pattern, other, value)
    return value
