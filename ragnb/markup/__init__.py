"""How texts and numbers are written; beside it blocks as data, and their HTML, Markdown and SVG.

Answers, questions and names are text that strangers wrote: a payload stays text, and what is missing is an em
dash. Whatever is not `Safe` is escaped here, and nothing else in the library builds markup from such text.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Iterable
from typing import Any, SupportsFloat

# C0 and C1 controls (tab, line feed and carriage return are kept), lone surrogates and non-characters:
# forbidden or silently rewritten by HTML and XML parsers, and surrogates cannot be written as UTF-8.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
# They turn the order of all that follows: a sentence around a name that holds one would read backwards.
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_LINE_BREAK = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
MISSING = "—"
# The mark that stands beside each colour of judgement; "none" is grey: no evidence.
TONES = {"good": "●", "watch": "▲", "bad": "■", "none": "○"}


def is_missing(value: Any) -> bool:
    """Say whether a cell is None, NaN, NA or NaT; a list never is.

    Examples
    --------
    >>> is_missing(float("nan")), is_missing([]), is_missing("")
    (True, False, False)
    """
    import pandas as pd  # takes longer to import than a command that needs no frame

    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))


class Safe(str):
    """Markup that ragnb wrote itself; everything else is escaped. Joining it to a plain str gives a plain str.

    Examples
    --------
    >>> escape(Safe("<b>ours</b>")), escape("<b>theirs</b>")
    ('<b>ours</b>', '&lt;b&gt;theirs&lt;/b&gt;')
    """

    __slots__ = ()

    def __html__(self) -> str:
        """Tell Jinja that this is markup; a plain str, so that it is not escaped again."""
        return str(self)


def escape(value: object) -> Safe:
    """Return a value as HTML text; characters that no document may hold become U+FFFD.

    Examples
    --------
    >>> escape("<img src=x onerror='run()'>")
    '&lt;img src=x onerror=&#x27;run()&#x27;&gt;'
    """
    if isinstance(value, Safe):
        return value
    return Safe(html.escape(_FORBIDDEN.sub("\ufffd", str(value))))


def join(parts: Iterable[object], between: str = "") -> Safe:
    """Join parts as HTML; those that are not `Safe` are escaped.

    Examples
    --------
    >>> join([Safe("<br>"), "a < b"])
    '<br>a &lt; b'
    """
    return Safe(str(escape(between)).join(escape(part) for part in parts))


def element(name: str, /, *children: object, **attributes: object) -> Safe:
    """Return an element; children that are not `Safe` and all attribute values are escaped.

    An underscore in an attribute's name becomes a hyphen, ``class_`` is ``class``, and None leaves it out.

    Examples
    --------
    >>> element("td", "a & b", class_="num", aria_label='"')
    '<td class="num" aria-label="&quot;">a &amp; b</td>'
    """
    given = {
        key.rstrip("_").replace("_", "-"): value
        for key, value in attributes.items()
        if value is not None
    }
    # By way of a plain text: an attribute has no markup, so what is `Safe` is escaped here, too.
    written = "".join(f' {key}="{escape(str(value))}"' for key, value in given.items())
    return Safe(f"<{name}{written}>{join(children)}</{name}>")


def one_line(value: object, most: int | None = None) -> str:
    """Return text on one line without controls, also of direction; longer than `most`, with an ellipsis.

    Examples
    --------
    >>> one_line("two\\nlines"), one_line("a long name", 6)
    ('two lines', 'a lon…')
    """
    text = _LINE_BREAK.sub(" ", str(value)).replace("\t", " ")
    text = _TURNS.sub("\ufffd", _FORBIDDEN.sub("\ufffd", text)).strip()
    if most is None or len(text) <= most:
        return text
    return text[: most - 1].rstrip() + "…"


def text_width(text: str, size: float = 12.0) -> float:
    """Estimate the width of text in pixels: 1 em for a wide character, 0.74 for a capital, 0.56 for any other.

    Examples
    --------
    >>> text_width("中文", 10.0)
    20.0
    """
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    capitals = sum(char.isupper() for char in text)
    others = len(text) - wide - capitals
    return size * (wide + 0.74 * capitals + 0.56 * others)


# Backslash and dollar are entities: a doubled backslash before a bracket is mathematics to Jupyter.
_MD_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "&#92;", "$": "&#36;"}
# What would open a heading, a list or a rule where a paragraph begins with it.
_MD_OPENING = re.compile(
    r"(?:#{1,6}|[-+])(?=\s|$)"  # a heading, or an item of a list
    r"|(?=[-=]{2,}$)"  # a rule, or the line below a heading
    r"|\d{1,9}(?=[.)](?:\s|$))"  # an item of a numbered list
)
# Underscores between letters or digits, as in context_recall, mark up nothing and stay.
_MD_SPECIAL = re.compile(r"[&<>\\$]|[|`*~\[\]]|(?<![^\W_])_|_(?![^\W_])")


def md_cell(value: object) -> str:
    """Return a value as one cell of a Markdown table: no text can add a row, a column or markup.

    Line breaks become ``<br>``, the only markup that is written.

    Examples
    --------
    >>> md_cell("a | b\\nc"), md_cell("context_recall *x*")
    ('a \\\\| b<br>c', 'context_recall \\\\*x\\\\*')
    """
    if isinstance(value, Safe):
        # Our own markup, in which only a bar that is not escaped yet would end the cell.
        return re.sub(r"(?<!\\)\|", r"\\|", " ".join(value.splitlines()))
    lines = [one_line(line) for line in _LINE_BREAK.split(str(value).strip(" \t\r\n"))]
    written = "<br>".join(_MD_SPECIAL.sub(_md_escaped, line) for line in lines)
    opening = _MD_OPENING.match(written)
    if opening is None:
        return written
    # The full stop of "1." is escaped: a backslash before a digit is a backslash.
    at = opening.end() if opening[0].isdigit() else 0
    return f"{written[:at]}\\{written[at:]}"


def _md_escaped(special: re.Match[str]) -> str:
    """Return a character that means something in Markdown as text."""
    char = special[0]
    return _MD_ENTITIES.get(char, f"\\{char}")


Number = SupportsFloat | None


def _fixed(value: float, digits: int) -> str:
    """Write a number with so many decimals."""
    if math.isinf(value):
        if value > 0:
            return "∞"
        return "-∞"
    # Adding 0.0 after rounding takes the sign off a zero.
    return f"{round(value, digits) + 0.0:.{digits}f}"


def number(value: Number, digits: int = 3) -> str:
    """Write a score with three decimals.

    Examples
    --------
    >>> number(0.8124), number(-0.0001), number(None)
    ('0.812', '0.000', '—')
    """
    return MISSING if is_missing(value) else _fixed(float(value), digits)  # type: ignore[arg-type]


def signed(value: float, share: bool = False) -> str:
    """Write a difference with its sign, a minus that is as wide as a plus; of shares in percentage points.

    Examples
    --------
    >>> signed(0.12), signed(-0.034, share=True), signed(-0.0001)
    ('+0.120', '−3.4', '0.000')
    """
    text = number(100 * value, 1) if share else number(value)
    # What is rounded to 0 has no sign.
    if value > 0 and text.strip("0."):
        return f"+{text}"
    return text.replace("-", "−")


def p_value(value: Number) -> str:
    """Write a p-value with three decimals, a smaller one as such.

    Examples
    --------
    >>> p_value(0.0123), p_value(0.0001), p_value(float("nan"))
    ('0.012', '< 0.001', '—')
    """
    if value is not None and not is_missing(value) and float(value) < 0.001:
        return "< 0.001"
    return number(value)


def telling_digits(values: Iterable[float], bound: float, least: int = 3) -> int:
    """Return the fewest decimals, `least` to six, at which each value is on the side of the bound that it is on.

    Examples
    --------
    >>> telling_digits([0.79996], 0.8), telling_digits([0.7996, 0.81], 0.8), telling_digits([0.79], 0.8)
    (5, 4, 3)
    """
    known = [value for value in values if not is_missing(value)]
    for digits in range(least, 6):
        shown_bound = round(bound, digits)
        if all(
            _sign(round(value, digits) - shown_bound) == _sign(value - bound) for value in known
        ):
            return digits
    return 6


def _sign(value: float) -> int:
    """Return 1 of a positive number, -1 of a negative one, else 0."""
    return (value > 0) - (value < 0)


def percent(value: Number, digits: int = 1) -> str:
    """Write a rate as a percentage with one decimal.

    Examples
    --------
    >>> percent(0.886), percent(float("nan"))
    ('88.6 %', '—')
    """
    return _percentage(value, digits)


def _percentage(value: Number, digits: int = 1) -> str:
    """Do what `percent` does, for functions with an argument of that name."""
    if value is None or is_missing(value):
        return MISSING
    return f"{_fixed(100 * float(value), digits)} %"


def count(value: Number) -> str:
    """Write a count without decimals, thousands apart.

    Examples
    --------
    >>> count(12345.0), count(None)
    ('12,345', '—')
    """
    return MISSING if is_missing(value) else f"{round(float(value)):,}"  # type: ignore[arg-type]


def amount(value: Any) -> str:
    """Write a latency, a number of tokens or a cost: four digits, or all those before the point.

    Examples
    --------
    >>> amount(1523.4), amount(0.00042), amount(2.5), amount(None), amount(float("inf"))
    ('1,523', '0.00042', '2.5', '—', '∞')
    """
    if is_missing(value):
        return MISSING
    if math.isinf(value):
        return "∞"
    # `.4g` has no comma for 1,523, and an exponent for 12,345.
    text = count(value) if abs(value) >= 1000 else f"{value:.4g}"
    if text.startswith("-"):
        return text.replace("-", "−", 1)
    return text


def amounts(low: Any, high: Any) -> str:
    """Write the interval of an amount; nothing where there is none.

    Examples
    --------
    >>> amounts(1.25, 1800.0), amounts(1.25, float("inf")), amounts(None, None)
    ('1.25–1,800', '1.25–∞', '')
    >>> amounts(-2.5, -1.0)
    '−2.5 – −1'
    """
    if is_missing(low) or is_missing(high):
        return ""
    dash = " – " if low < 0 else "–"
    return f"{amount(low)}{dash}{amount(high)}"


def with_interval(
    value: Number, low: Number, high: Number, percent: bool = False, digits: int = 3
) -> str:
    """Write an estimate with its interval; an end that is missing is a dash.

    Examples
    --------
    >>> with_interval(0.812, 0.771, 0.843)
    '0.812 [0.771, 0.843]'
    >>> with_interval(0.886, 0.8, 0.95, percent=True)
    '88.6 % [80.0, 95.0]'
    >>> with_interval(None, None, None)
    '—'
    """
    if is_missing(value):
        return MISSING
    if percent:
        ends = [_percentage(end).removesuffix(" %") for end in (low, high)]
        return f"{_percentage(value)} [{', '.join(ends)}]"
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def ends(low: Number, high: Number, percent: bool = False, digits: int | None = None) -> str:
    """Write an interval alone; nothing where an end is missing. `digits` are 1 of a percentage, else 3.

    Examples
    --------
    >>> ends(0.771, 0.843), ends(-0.02, 0.1), ends(0.8, 0.95, percent=True), ends(None, None)
    ('0.771–0.843', '-0.020 – 0.100', '80.0–95.0 %', '')
    """
    if is_missing(low) or is_missing(high):
        return ""
    if percent:
        write = _percentage
        usual = 1
    else:
        write = number
        usual = 3
    if digits is None:
        digits = usual
    first = write(low, digits).removesuffix(" %")
    last = write(high, digits)
    # A dash beside a minus is not seen as one.
    if first.startswith("-"):
        return f"{first} – {last}"
    return f"{first}–{last}"
