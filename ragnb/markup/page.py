"""The page that the report stands on, and its parts: one style, a script for live tables, nothing from outside."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ragnb import texts
from ragnb.markup.svg import TONES
from ragnb.markup.text import Safe, element, one_line

_CSP = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
CLASS = "rg-browse"
Kind = Literal["text", "long", "tag", "number"]
_LANG = {"en": "en", "zh": "zh-CN"}


@cache
def style(*, notebook: bool = False) -> Safe:
    """Return the style sheet as a ``<style>`` element; its rules reach only into ``class="ragnb"``.

    Parameters
    ----------
    notebook : bool
        Take the colours of the notebook (JupyterLab's ``--jp-`` variables, or what surrounds the output)
        instead of the page's own.

    Examples
    --------
    >>> "--jp-" in style(notebook=True), "--jp-" in style()
    (True, False)
    """
    sheets = ["notebook", "parts"] if notebook else ["page", "parts", "print"]
    rules = (files(__package__).joinpath(f"{name}.css").read_text(encoding="utf-8").strip() for name in sheets)
    return Safe("<style>\n{}\n</style>".format("\n".join(rules)))


def fragment(html: str, *, lang: str = "en") -> Safe:
    """Wrap HTML of ours for the output of a notebook cell, with a style that follows its theme.

    Parameters
    ----------
    html : str
        HTML of ours: it is put in as it is.
    lang : {"en", "zh"}
        Sets the first fonts.

    Examples
    --------
    >>> fragment("<p>fine</p>").endswith("<p>fine</p></div>")
    True
    """
    return element("div", style(notebook=True), Safe(html), class_="ragnb", lang=_LANG[lang])


def page(title: str, body: str, *, lang: str = "en", contents: Iterable[tuple[str, str]] = ()) -> Safe:
    """Return a complete document that opens from a file and asks no host; scripts only make `browse` tables live.

    Parameters
    ----------
    title : str
        Shown by the browser; the body has its own heading. Escaped.
    body : str
        HTML of ours: it is put in as it is.
    lang : {"en", "zh"}
        Sets the language of the page, its first fonts and its own words.
    contents : iterable of (anchor, text)
        The links of a list of contents, beside the page where there is room; none by default.

    Returns
    -------
    Safe
        From ``<!doctype html>`` to ``</html>``.

    Raises
    ------
    RagnbError
        For a language that ragnb does not speak.

    Examples
    --------
    >>> page("Run", "<p>fine</p>")[:31]
    '<!doctype html><html lang="en">'
    """
    say = texts.load(lang)
    live = f'<div class="{CLASS}"' in body
    policy = f"{_CSP}; script-src {script_source()}" if live else _CSP
    named = {"viewport": "width=device-width, initial-scale=1", "color-scheme": "light dark"}
    metas = [element("meta", name=name, content=content) for name, content in named.items()]
    csp = Safe(f'<meta http-equiv="Content-Security-Policy" content="{policy}">')
    first, name = element("meta", charset="utf-8"), element("title", one_line(title))
    head = element("head", first, csp, *metas, name, style())
    links = [element("li", element("a", text, href=f"#{anchor}")) for anchor, text in contents]
    nav = element("nav", element("ol", *links), class_="rg-nav", aria_label=say("page.contents")) if links else ""
    code = Safe(f"<script>{script()}</script>") if live else ""
    main = element("body", nav, element("main", Safe(body)), code, class_="ragnb rg-page")
    document = element("html", head, main, lang=_LANG[lang])
    return Safe(f"<!doctype html>{document}\n")


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


def cards(items: Iterable[str]) -> Safe:
    """Return cards side by side.

    Examples
    --------
    >>> cards([card("n", "12")]).startswith('<div class="rg-cards"><div class="rg-card">')
    True
    """
    return element("div", Safe("".join(items)), class_="rg-cards")


def figure(picture: str, finding: object) -> Safe:
    """Return a picture of ours under the finding that it shows.

    Examples
    --------
    >>> figure("<svg></svg>", "Recall is low")
    '<figure><figcaption>Recall is low</figcaption><svg></svg></figure>'
    """
    return element("figure", element("figcaption", finding), Safe(picture))


# A long table that is searched, sorted, filtered and unfolded in the browser, and read without any script: its
# rows stand in the page as data, the one script of ours writes them as text, and the page allows no other.


@cache
def script() -> Safe:
    """Return the script that makes such tables live.

    Examples
    --------
    >>> script()[:14]
    '"use strict";\\n'
    """
    return Safe(files(__package__).joinpath("browse.js").read_text(encoding="utf-8"))


@cache
def script_source() -> str:
    """Return what a content security policy names to allow this script and no other.

    Examples
    --------
    >>> script_source()[:8]
    "'sha256-"
    """
    digest = hashlib.sha256(script().encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def browse(
    columns: Mapping[str, Kind], rows: Sequence[Sequence[str | float | None]], *, details: Sequence[str],
    unfolded: Sequence[Sequence[str | None]], plain: str, lang: str = "en",
) -> Safe:  # fmt: skip
    """Return a table that a script of the page makes live.

    Parameters
    ----------
    columns : mapping of label to {"text", "long", "tag", "number"}
        ``long`` texts get room, ``tag`` columns can be picked by value, numbers show three decimals.
    rows : sequence of rows
        A cell a column: text, a number, None, or in a column of numbers the reason why there is none.
    details : sequence of str
        What the parts of an unfolded row are called.
    unfolded : sequence of rows
        The texts of an unfolded row, one a part; None leaves the part out.
    plain : str
        HTML of ours that stands there without the script.
    lang : {"en", "zh"}

    Returns
    -------
    Safe
        A ``<div class="rg-browse">``; `ragnb.markup.page` adds the script.

    Examples
    --------
    >>> texts = {"details": ["answer"], "unfolded": [["fine"]], "plain": "<table></table>"}
    >>> live = browse({"id": "text", "score": "number"}, [["<b>", 0.5]], **texts)
    >>> "\\\\u003cb>" in live, live.endswith("<table></table></div>")
    (True, True)
    """
    data: dict[str, Any] = {
        "columns": [{"label": label, "kind": kind} for label, kind in columns.items()],
        "rows": [[*row, list(texts_)] for row, texts_ in zip(rows, unfolded, strict=True)],
        "details": list(details),
        "say": texts.entry(lang, "browse"),
    }
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    held = written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    data_island = Safe(f'<script type="application/json">{held}</script>')
    return element("div", data_island, Safe(plain), class_=CLASS, aria_label=data["say"]["table"])
