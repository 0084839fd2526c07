"""Elements of ours that several pages use: headings, badges, cards, lists that unfold."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ragnb import texts
from ragnb.markup.text import TONES, Safe, element


def heading(text: object, *, level: int = 2, anchor: str | None = None) -> Safe:
    """Return a heading that links to itself.

    Parameters
    ----------
    text : object
        The heading; escaped unless it is `Safe`.
    level : {1, 2, 3, 4}
        Its level.
    anchor : str, optional
        The name of the place; by default made from the text.

    Examples
    --------
    >>> heading("Where?")
    '<h2 id="where"><a href="#where">Where?</a></h2>'
    """
    name = re.sub(r"\W+", "-", (anchor or str(text)).lower()).strip("-") or "section"
    return element(f"h{level}", element("a", text, href=f"#{name}"), id=name)


def details(summary: object, body: str, *, opened: bool = False) -> Safe:
    """Return a part that unfolds; the summary is escaped unless `Safe`, the body is HTML of ours.

    Examples
    --------
    >>> details("How", "<p>so</p>")
    '<details><summary>How</summary><p>so</p></details>'
    """
    mark = {"open": ""} if opened else {}
    return element("details", element("summary", summary), Safe(body), **mark)


def bullets(items: Iterable[object]) -> Safe:
    """Return a list; items that are not `Safe` are escaped.

    Examples
    --------
    >>> bullets(["a < b"])
    '<ul><li>a &lt; b</li></ul>'
    """
    return element("ul", *(element("li", item) for item in items))


def badge(tone: str, word: object | None = None, *, lang: str = "en") -> Safe:
    """Return a judgement: its mark, its colour and its word.

    Parameters
    ----------
    tone : {"good", "watch", "bad", "none"}
        ``none`` is grey: nothing to judge by.
    word : object, optional
        The word beside the mark; by default the tone's own in that language.
    lang : {"en", "zh"}

    Examples
    --------
    >>> badge("watch")
    '<span class="rg-mark rg-watch"><span aria-hidden="true">▲</span> watch</span>'
    """
    said = texts.entry(lang, f"mark.{tone}") if word is None else word
    mark = element("span", TONES[tone], aria_hidden="true")
    return element("span", mark, " ", said, class_=f"rg-mark rg-{tone}")


def card(label: object, value: object, *, mark: str = "", picture: str = "", note: object = "") -> Safe:
    """Return a card: a number, its picture, and what it counts.

    Parameters
    ----------
    label, value, note : object
        What the number is, the number as it is written, and its n; escaped unless `Safe`.
    mark, picture : str
        HTML of ours: a `badge` and an `interval_svg`.

    Examples
    --------
    >>> "0.740" in card("Overall", "0.740", mark=badge("good"), note="n = 412")
    True
    """
    number = element("div", value, " ", Safe(mark), class_="rg-value")
    parts = element("div", label, class_="rg-label"), number, Safe(picture), element("div", note, class_="rg-note")
    return element("div", *parts, class_="rg-card")


def figure(picture: str, finding: object) -> Safe:
    """Return a picture of ours under the finding that it shows.

    Examples
    --------
    >>> figure("<svg></svg>", "Recall is low")
    '<figure><figcaption>Recall is low</figcaption><svg></svg></figure>'
    """
    return element("figure", element("figcaption", finding), Safe(picture))
