"""Sections as HTML: one template, one style, one script of ours; the page asks no host and opens from a file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args

from ragnb import texts
from ragnb.markup.blocks import Block, Estimate, Picture, Samples, Section, Verdict
from ragnb.markup.text import TONES, Safe, element, escape, one_line

_HERE = Path(__file__).parent
_DARK = {
    False: "@media screen and (prefers-color-scheme: dark) { .ragnb { %s } }",
    True: '[data-jp-theme-light="false"] .ragnb, .vscode-dark .ragnb, html[theme="dark"] .ragnb { %s }',
}
_NOT_IN_SCRIPT = re.compile("[<\u2028\u2029\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
LANGUAGES = {"en": "en", "zh": "zh-CN"}


@cache
def style(*, notebook: bool = False) -> Safe:
    """Return the style sheet as a ``<style>`` element; its rules reach only into ``class="ragnb"``.

    Parameters
    ----------
    notebook : bool
        Follow the theme of the notebook (JupyterLab's, or what surrounds the output) instead of the browser's.

    Examples
    --------
    >>> "--jp-" in style(notebook=True), "--jp-" in style()
    (True, False)
    """
    return Safe(f"<style>{_style(notebook)}</style>")


@cache
def _style(notebook: bool) -> str:
    return "\n".join([_text("page.css"), _DARK[notebook] % _text("dark.css"), *[_text("notebook.css")] * notebook])


def fragment(html: str, *, lang: str = "en") -> Safe:
    """Wrap HTML of ours for the output of a notebook cell, with a style that follows its theme.

    Examples
    --------
    >>> fragment("<p>fine</p>").endswith("<p>fine</p></div>")
    True
    """
    return element("div", style(notebook=True), Safe(html), class_="ragnb rg-cellout", lang=LANGUAGES[lang])


def render_page(sections: Sequence[Section], *, title: str, facts: Sequence[str] = (), lang: str = "en") -> Safe:
    """Return a whole page: contents beside the sections, one under the other.

    Parameters
    ----------
    sections : sequence of Section
        The first one has the heading of the page.
    title : str
        What the run is called.
    facts : sequence of str
        What stands beside the title: a date, how many questions.
    lang : {"en", "zh"}

    Raises
    ------
    RagnbError
        For a language that ragnb does not speak.

    Examples
    --------
    >>> "&lt;b&gt;" in render_page([Section("a", "A", "<b>")], title="Run")
    True
    """
    blocks = [block for section in sections for block in section.blocks]
    script = _text("page.js") if any(isinstance(block, Samples) for block in blocks) else ""
    sheet = _style(False)
    # The charts of matplotlib have their colours in attributes, which no hash can name.
    inline = any(isinstance(block, Picture) and " style=" in block.svg for block in blocks)
    allowed = "'unsafe-inline'" if inline else _digest(sheet)
    policy = f"default-src 'none'; style-src {allowed}"
    policy += "; base-uri 'none'; form-action 'none'" + (f"; script-src {_digest(script)}" if script else "")
    return render(
        "page.html", sections=sections, title=title, facts=facts, style=Safe(sheet), script=Safe(script),
        say=texts.entry(lang, "page"), lang=LANGUAGES[lang], policy=Safe(policy),
        headed=any(isinstance(block, Verdict) for block in blocks),
    )  # fmt: skip


def render_fragment(sections: Sequence[Section]) -> Safe:
    """Return sections for the output of a notebook cell, in the colours of its theme.

    Examples
    --------
    >>> render_fragment([Section("a", "A", "<b>")]).count("&lt;b&gt;")
    1
    """
    lang = sections[0].lang if sections else "en"
    return fragment(render("fragment.html", sections=sections, say=texts.entry(lang, "page")), lang=lang)


@cache
def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8").strip()


def _digest(text: str) -> str:
    """Return what a content security policy names to allow this text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def draw(value: Any, lang: str = "en", *, width: int = 0) -> Safe:
    """Return a cell or a block as HTML; an estimate with a width has the ends of its scale below it.

    Examples
    --------
    >>> from ragnb.markup.blocks import Estimate
    >>> 'aria-label="0.812, 0.771–0.843"' in draw(Estimate("0.812", "0.771–0.843", 0.812, 0.771, 0.843))
    True
    """
    macros = _templates().get_template("macros.html").make_module({"say": texts.entry(lang, "page")})
    if width and isinstance(value, Estimate):
        return Safe(macros.scale(value, width, 22, True))
    return Safe(macros.block(value) if isinstance(value, get_args(Block)) else macros.cell(value))


def render(template: str, **values: Any) -> Safe:
    """Return a template of ours filled; every value is escaped where it is not `Safe`."""
    return Safe(_templates().get_template(template).render(**values))


@cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader

    made = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        # Escaped here, so that a control character never reaches the page; nothing is written for None.
        finalize=lambda value: "" if value is None else value if hasattr(value, "__html__") else escape(value),
    )  # fmt: skip
    made.filters |= {"kind": lambda value: type(value).__name__}
    made.filters |= {"json": _json, "lines": one_line, "anchor": anchor}
    made.globals |= {"TONES": TONES}
    return made


def anchor(text: object) -> str:
    """Return a name for a place, without the white space that no name may hold."""
    return re.sub(r"\s+", "_", str(text))


def _json(value: Any) -> Safe:
    """Write data that a script of the page reads; no text can close the element that it stands in."""
    held = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Safe(_NOT_IN_SCRIPT.sub(lambda char: f"\\u{ord(char[0]):04x}", held))


