"""Sections as HTML and as Markdown, the radar as SVG: templates whose cells are escaped where they are written.

Of HTML there is one style and one script of ours: the page asks no host and opens from a file. In Markdown equal
sections give equal text, and nothing of a reader's data becomes markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ragnb import texts
from ragnb.errors import RagnbError
from ragnb.markup import (
    MISSING,
    TONES,
    Safe,
    blocks,
    element,
    escape,
    is_missing,
    md_cell,
    one_line,
    text_width,
)
from ragnb.markup.blocks import Block, Estimate, Picture, Samples, Section, Verdict

if TYPE_CHECKING:
    import numpy as np

_HERE = Path(__file__).parent
_DARK = {
    False: "@media screen and (prefers-color-scheme: dark) { .ragnb { %s } }",
    True: '[data-jp-theme-light="false"] .ragnb, .vscode-dark .ragnb, html[theme="dark"] .ragnb { %s }',
}
_NOT_IN_SCRIPT = re.compile("[<\u2028\u2029\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
LANGUAGES = {"en": "en", "zh": "zh-CN"}


@cache
def style(*, notebook: bool = False) -> Safe:
    """Return the style sheet, whose rules reach only into ``class="ragnb"``.

    Parameters
    ----------
    notebook : bool
        Follow the theme of the notebook (JupyterLab's, or what surrounds the output) instead of the browser's.

    Examples
    --------
    >>> "--jp-" in style(notebook=True), "--jp-" in style()
    (True, False)
    """
    parts = [_text("page.css"), _DARK[notebook] % _text("dark.css")]
    if notebook:
        parts.append(_text("notebook.css"))
    return Safe("\n".join(parts))


def fragment(html: str, *, lang: str = "en") -> Safe:
    """Wrap HTML of ours for the output of a notebook cell, with a style that follows its theme.

    Examples
    --------
    >>> fragment("<p>fine</p>").endswith("<p>fine</p></div>")
    True
    """
    sheet = element("style", style(notebook=True))
    return element("div", sheet, Safe(html), class_="ragnb rg-cellout", lang=LANGUAGES[lang])


def render_page(
    sections: Sequence[Section], *, title: str, facts: Sequence[str] = (), lang: str = "en"
) -> Safe:
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
    # Only the list of questions has anything to do for a script.
    script = ""
    if any(isinstance(block, Samples) for block in blocks):
        script = _text("page.js")
    # The charts of matplotlib have their colours in attributes, which no hash can name.
    is_inline = any(isinstance(block, Picture) and " style=" in block.svg for block in blocks)
    styles = "'unsafe-inline'" if is_inline else _digest(style())
    rules = ["default-src 'none'", f"style-src {styles}", "base-uri 'none'", "form-action 'none'"]
    if script:
        rules.append(f"script-src {_digest(script)}")
    policy = "; ".join(rules)
    return render(
        "page.html",
        sections=sections,
        title=title,
        facts=facts,
        style=style(),
        script=Safe(script),
        say=texts.entry(lang, "page"),
        lang=LANGUAGES[lang],
        policy=Safe(policy),
        verdict=next((block for block in blocks if isinstance(block, Verdict)), None),
    )


def render_fragment(sections: Sequence[Section]) -> Safe:
    """Return sections for the output of a notebook cell, in the colours of its theme.

    Examples
    --------
    >>> render_fragment([Section("a", "A", "<b>")]).count("&lt;b&gt;")
    1
    """
    lang = sections[0].lang if sections else "en"
    return fragment(
        render("fragment.html", sections=sections, say=texts.entry(lang, "page")), lang=lang
    )


@cache
def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8").strip()


def _digest(text: str) -> str:
    """Return what a content security policy names to allow this text and no other."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def draw(value: Any, lang: str = "en", *, width: int = 0) -> Safe:
    """Return a cell or a block as HTML; an estimate with a width has the ends of its scale below it.

    Examples
    --------
    >>> from ragnb.markup.blocks import Estimate
    >>> 'aria-label="0.812, 0.771–0.843"' in draw(Estimate("0.812", "0.771–0.843", 0.812, 0.771, 0.843))
    True
    """
    template = _templates().get_template("macros.html")
    macros = template.make_module({"say": texts.entry(lang, "page")})
    if width and isinstance(value, Estimate):
        return Safe(macros.scale(value, width, 22, True))  # 22 pixels high
    if isinstance(value, get_args(Block)):
        return Safe(macros.block(value))
    return Safe(macros.cell(value))


def render(template: str, **values: Any) -> Safe:
    """Return a template of ours filled; every value is escaped where it is not `Safe`."""
    return Safe(_templates().get_template(template).render(**values))


@cache
def _templates(markdown: bool = False) -> Any:
    from jinja2 import Environment, FileSystemLoader
    from markupsafe import Markup

    def as_html(value: Any) -> Any:
        """Escape here, so that a control character never reaches the page; nothing is written for None."""
        if value is None:
            return ""
        if hasattr(value, "__html__"):
            return value
        return escape(value)

    def as_markdown(value: Any) -> Markup:
        if isinstance(value, Markup):
            return value
        return Markup(cell(value))

    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=as_markdown if markdown else as_html,
    )
    environment.filters |= {
        "kind": lambda value: type(value).__name__,  # a template tells blocks apart by their class
        "cell": as_markdown,
        "read": read,
        "width": text_width,
        "json": _json,
        "lines": one_line,
        "anchor": anchor,
    }
    environment.globals |= {"TONES": TONES}
    return environment


def anchor(text: object) -> str:
    """Return a name for a place, without the white space that no name may hold."""
    return re.sub(r"\s+", "_", str(text))


def _json(value: Any) -> Safe:
    """Write data that a script of the page reads; no text can close the element that it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Safe(_NOT_IN_SCRIPT.sub(lambda char: f"\\u{ord(char[0]):04x}", text))


def render_markdown(sections: Iterable[blocks.Section], *, title: str = "") -> str:
    """Return sections as one Markdown text.

    Examples
    --------
    >>> print(render_markdown([blocks.Section("g", "Gates", blocks=(blocks.Text(("a | b",)),))], title="Run"))
    # Run
    <BLANKLINE>
    ## Gates
    <BLANKLINE>
    a \\| b
    <BLANKLINE>
    """
    template = _templates(markdown=True).get_template("page.md")
    text = template.render(sections=list(sections), title=title)
    return re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"


def cell(value: Any, write: Callable[[Any], str] = md_cell) -> str:
    """Return a cell on one line, its texts through `write`."""
    match value:
        case blocks.Mark(tone, text):
            return f"{TONES[tone]} {write(text)}".strip()
        case blocks.Small(text) | blocks.Code(text):
            return write(text)
        case blocks.Link(text, target):
            # A place on the page is none in Markdown.
            if target.startswith("#"):
                return write(text)
            return f"[{write(text)}](<{target}>)"
        case blocks.Estimate():
            if value.interval:
                return f"{value.written} ({value.interval})"
            return value.written
        case blocks.Marked(parts):
            return write("".join(text for text, _ in parts))
        case blocks.Bars():
            return write(value.text)
        case blocks.Strip():
            return f"{value.n} / {value.all}"
        case blocks.Stack(parts):
            return ", ".join(f"{write(label)} {n}" for _, label, n in parts if n)
        case tuple():  # last, as each of the cells above is one, too
            return " · ".join(text for part in value if (text := cell(part, write)))
    if is_missing(value) or value == "":
        return MISSING
    return write(value)


def read(table: blocks.Table) -> tuple[list[str], list[list[Any]]]:
    """Return the heads and rows of a table without the columns that are only drawn."""
    kept = []
    for place in range(len(table.heads)):
        is_drawn = any(isinstance(row[place], blocks.Estimate) for row in table.rows)
        if not is_drawn:
            kept.append(place)
    heads = [table.heads[place] for place in kept]
    rows = [[row[place] for place in kept] for row in table.rows]
    return heads, rows


# The colour of text and axes where "currentColor" cannot be said.
INK = "#1f2328"
# Okabe and Ito's colours that stand 3 : 1 out from white; black is drawn in the colour of the text.
SYSTEM_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
# One dash pattern a system, in pixels, so that grey print keeps them apart.
DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4))
# What an axis is called, its range, and whether lower is better.
Axis = tuple[str, tuple[float, float], bool]


def radar_points(values: Sequence[Any], axes: Sequence[Axis] = ()) -> np.ndarray:
    """Place one value an axis on a radar of radius 1 whose rim is the good end of each range.

    The first axis points up, the others follow clockwise. A value where lower is better enters as
    low + high - value, so that outside is better on every axis.

    Parameters
    ----------
    values : sequence of float or None, length k
        One value an axis, in the units of its metric.
    axes : sequence of (name, (low, high), lower), length k, optional
        By default 0 to 1, where higher is better.

    Returns
    -------
    ndarray, shape (k, 2)
        x to the right, y upwards; NaN where the value is missing.

    Raises
    ------
    RagnbError
        For a range without finite ends.

    Examples
    --------
    >>> (radar_points([1.0, 0.5, None, 0.0]).round(3) + 0.0).tolist()
    [[0.0, 1.0], [0.5, 0.0], [nan, nan], [0.0, 0.0]]
    """
    import numpy as np

    size = len(values)
    _, spans, lower = zip(*(axes or [("", (0.0, 1.0), False)] * size), strict=True)
    ends = np.array(spans, dtype=float)
    for span in ends[~(np.isfinite(ends).all(axis=1) & (ends[:, 0] < ends[:, 1]))].tolist():
        raise RagnbError(
            f"span={tuple(span)!r} is no scale; give two finite ends, the lower one first"
        )
    raw = np.array([np.nan if is_missing(value) else float(value) for value in values])
    # A cosine below 0 is at the centre.
    share = np.clip((raw - ends[:, 0]) / (ends[:, 1] - ends[:, 0]), 0.0, 1.0)
    share = np.where(lower, 1.0 - share, share)
    angle = 2 * np.pi * np.arange(size) / size
    return np.column_stack([share * np.sin(angle), share * np.cos(angle)])


def radar_runs(points: np.ndarray) -> list[tuple[list[int], bool]]:
    """Cut the outline of a radar at its gaps: runs of neighbouring axes, and whether the run closes.

    Examples
    --------
    >>> radar_runs(radar_points([1, 1, 1])), radar_runs(radar_points([1, 1, None, 1]))
    ([([0, 1, 2], True)], [([3, 0, 1], False)])
    """
    import numpy as np

    there = ~np.isnan(points).any(axis=1)
    size = len(there)
    if not size:
        return []
    if there.all():
        return [(list(range(size)), True)]
    # The order begins with a gap, and so does each of its parts.
    order = np.roll(np.arange(size), -int(np.argmin(there)))
    parts = np.split(order, np.flatnonzero(~there[order]))
    return [(part[1:].tolist(), False) for part in parts if len(part) > 1]


def axis_names(axes: Sequence[Axis], systems: Mapping[str, Sequence[Any]], lang: str) -> list[str]:
    """Name the axes: the metric, ``↓`` where lower is better, its range where ranges differ, and its gaps."""
    missing = str(texts.entry(lang, "word.missing"))
    mixed = len({span for _, span, _ in axes}) > 1
    names = []
    for place, (metric, (low, high), lower) in enumerate(axes):
        gaps = [str(system) for system, values in systems.items() if is_missing(values[place])]
        words = [one_line(metric, 40)]
        if lower:
            words.append("↓")
        if mixed:
            words.append(f"({low:g}–{high:g})")
        if gaps and len(gaps) == len(systems):  # of all systems: no one needs to be named
            words.append(f"({missing})")
        elif gaps:
            whose = ": " + ", ".join(gaps)
            words.append(f"({missing}{one_line(whose, 40)})")
        names.append(" ".join(words))
    return names


def check_systems(systems: Collection[str]) -> None:
    """Refuse more systems than there are colours that can be told apart."""
    if len(systems) > len(SYSTEM_COLOURS):
        raise RagnbError(
            f"a chart shows at most {len(SYSTEM_COLOURS)} systems and is given {len(systems)}; choose some"
        )


def radar_svg(
    axes: Sequence[Axis],
    systems: Mapping[str, Sequence[Any]],
    *,
    label: str,
    radius: int = 130,
    lang: str = "en",
) -> Safe:
    """Draw systems as closed polygons over their metrics; of two metrics as lines, of one as points.

    Parameters
    ----------
    axes : sequence of (metric, (low, high), lower)
        The first one up. The rim is the good end of each range: where lower is better the axis is turned and
        marked ``↓``.
    systems : mapping of system to values
        One value a metric, raw, in its own units; None or NaN leaves a gap that the axis names.
    label : str
        The finding, in words, for those who cannot see the picture.
    radius : int
        Pixels.
    lang : {"en", "zh"}
        The language of the word for a gap.

    Returns
    -------
    Safe
        An ``<svg role="img">``.

    Raises
    ------
    RagnbError
        For more than five systems, and for a metric without a finite range.

    Examples
    --------
    >>> axes = [(name, (0, 1), False) for name in "abc"]
    >>> 'role="img"' in radar_svg(axes, {"mine": [0.5, None, 1.0]}, label="b is missing")
    True
    """
    check_systems(systems)
    names = axis_names(axes, systems, lang)
    spans = {span for _, span, _ in axes}
    middle = max(*map(text_width, names), 6.0) + 14 + radius
    top = radius + 24.0
    outlines = []
    for values in systems.values():
        # y grows downwards in SVG.
        points = radar_points(values, axes) * [1, -1] * radius + [middle, top]
        outlines.append([(points[run].tolist(), closed) for run, closed in radar_runs(points)])
    keys = [one_line(system, 40) for system in systems]
    dash_patterns = [" ".join(f"{dash:g}" for dash in dashes) for dashes in DASHES]
    styles = zip(SYSTEM_COLOURS, dash_patterns, strict=True)
    return render(
        "radar.svg",
        label=one_line(label),
        x=middle,
        y=top,
        radius=radius,
        styles=list(styles),
        axes=list(zip(names, radar_points([1.0] * len(names)).tolist(), strict=True)),
        outlines=outlines,
        ends=next(iter(spans)) if len(spans) == 1 else None,
        keys=keys if len(keys) > 1 else [],
        left=middle - (max(map(text_width, keys), default=0) + 40) / 2,
    )
