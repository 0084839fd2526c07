"""What a cell of the report notebook shows, so that the page can tell it from every other output."""

from __future__ import annotations

import re

from ragnb.markup import Safe, fragment, join

_WRAPPED = re.compile(r'<div class="ragnb"[^>]*><style>[^<]*</style>(.*)</div>', re.DOTALL)


class Shown:
    """HTML of ours as the output of a notebook cell."""

    def __init__(self, html: Safe, lang: str) -> None:
        self.html, self.lang = html, lang

    def _repr_html_(self) -> str:
        return fragment(self.html, lang=self.lang)

    def __repr__(self) -> str:
        return f"Shown({len(self.html)} characters of HTML)"


def shown(*parts: Safe, lang: str = "en") -> Shown | None:
    """Return parts of the sheet as one output; None where they are all empty.

    Parameters
    ----------
    *parts : Safe
        HTML of ours; what is not `Safe` is escaped.
    lang : {"en", "zh"}

    Examples
    --------
    >>> shown(Safe("<p>fine</p>"))
    Shown(11 characters of HTML)
    >>> shown(Safe("")) is None
    True
    """
    html = join(parts)
    return Shown(html, lang) if html else None


def inside(html: str) -> Safe | None:
    """Return what a `shown` output holds, without its wrapping and style; None for any other output.

    Examples
    --------
    >>> inside(shown(Safe("<p>fine</p>"))._repr_html_()), inside("<p>fine</p>")
    ('<p>fine</p>', None)
    """
    found = _WRAPPED.fullmatch(html)
    return Safe(found[1]) if found else None
