"""What a page is made of: sections, blocks and their cells; data alone, which two renderers write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

# A text, a number as it is written, one of the cells below, or a tuple of them, one under another.
Cell = Any


class Mark(NamedTuple):
    """A judgement in words: its tone (``good``, ``watch``, ``bad`` or ``none``) decides mark and colour."""

    tone: str
    text: str


class Small(NamedTuple):
    """What is said in smaller type below something."""

    text: str


class Code(NamedTuple):
    """An identifier."""

    text: str


class Link(NamedTuple):
    """A place on the page, or a file beside it."""

    text: str
    target: str


class Estimate(NamedTuple):
    """A value with its interval on the whole range of its metric.

    Attributes
    ----------
    written, interval : str
        As they are read; without an interval an empty text.
    exact : str
        With one decimal more, for texts.
    value, low, high : float
        What is drawn; nan and, of the ends, None are not.
    span : (float, float) or None
        Ends of the scale; None draws nothing.
    thresholds : tuple of (name, at)
    shaded : (float, float) or None
        The part of the scale that meets what is asked.
    before : float or None
        The baseline.
    tone : str
        Colour of a value beyond a threshold.
    text : str
        What the picture is of, for those who hear it.
    """

    written: str
    interval: str
    value: float
    low: float
    high: float
    span: tuple[float, float] | None = (0.0, 1.0)
    thresholds: tuple[tuple[str, float], ...] = ()
    shaded: tuple[float, float] | None = None
    before: float | None = None
    tone: str = ""
    text: str = ""
    exact: str = ""


class Histogram(NamedTuple):
    """How many scores lie at the low end, between the ends by tenths, and at the high end."""

    low: int
    between: tuple[int, ...]
    high: int
    below: tuple[bool, ...] = ()


class Stack(NamedTuple):
    """Counts side by side: ``(kind, label, n)``, where the kind decides colour and outline."""

    parts: tuple[tuple[str, str, int], ...]
    all: int


class Strip(NamedTuple):
    """The rows of a table in their order, in parts of equal size: which share of each has a value.

    `n` of `all` rows have one, and `text` says what of, for those who hear it.
    """

    filled: tuple[float, ...]
    n: int
    all: int
    text: str = ""


class Marked(NamedTuple):
    """A text in parts, ``(text, is_marked)``."""

    parts: tuple[tuple[str, bool], ...]


class Bars(NamedTuple):
    """Values side by side, such as a measure by day, marked from one of them on.

    `most` is the highest as it is written, and `text` says what is drawn, for those who hear it.
    """

    values: tuple[float, ...]
    marked: int
    most: str
    text: str = ""


class Action(NamedTuple):
    """A line to run next, and what it does."""

    command: str
    what: str


class Text(NamedTuple):
    """Paragraphs: ``lead``, ``text``, ``note``, ``caution`` or ``list``."""

    lines: tuple[Cell, ...]
    kind: str = "text"


class Measure(NamedTuple):
    """A metric as a row of a table: HTML draws it, Markdown has a line of it.

    Attributes
    ----------
    name, code, gloss, weight : str
    n, all : int
        How many questions have a score, and of how many.
    rest : str
        What the others lack, in words.
    estimate : Estimate
    histogram : Histogram or None
    missing, counted : str
        Why there is no mean; where there is one, its n.
    """

    name: str
    code: str
    gloss: str
    weight: str
    n: int
    all: int
    rest: str
    estimate: Estimate
    histogram: Histogram | None = None
    missing: str = ""
    counted: str = ""


class Table(NamedTuple):
    """Rows of cells, or of metrics, below their heads; a head that begins with ``>`` is that of numbers.

    Attributes
    ----------
    folded : str
        The line that unfolds it; an empty one leaves it open.
    cards : bool
        Whether its rows become cards on a narrow page, not a table that scrolls.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] | tuple[Measure, ...]
    caption: str = ""
    folded: str = ""
    cards: bool = False


class Verdict(NamedTuple):
    """The first lines of a page: a status, its reason, how many gates there are of each outcome, and a score."""

    status: Mark
    title: str
    lead: str
    marks: tuple[Mark, ...] = ()
    marks_name: str = ""
    score: Estimate | None = None
    score_name: str = ""
    score_notes: tuple[Cell, ...] = ()
    action: Action | None = None
    action_name: str = ""


class Step(NamedTuple):
    """One thing to work on, which unfolds to its parts: ``heading -> lines``."""

    problem: str
    evidence: Mark
    gain: str
    link: Link | None
    parts: dict[str, tuple[Cell, ...]]
    detail: str = ""


class Steps(NamedTuple):
    """What to work on, in order."""

    heads: tuple[str, ...]
    rows: tuple[Step, ...]


class Bar(NamedTuple):
    """Counts of all questions as one bar in groups: ``(name, ((kind, label, n), ...))``."""

    title: str
    note: str
    groups: tuple[tuple[str, tuple[tuple[str, str, int], ...]], ...]


class PassMark(NamedTuple):
    """How many answers have each score, ``(score, n, passes)``, on both sides of the score that passes."""

    title: str
    fails: str
    passes: str
    steps: tuple[tuple[str, int, bool], ...]


class Picture(NamedTuple):
    """An SVG of ours with its caption."""

    svg: str
    caption: str


class Sample(NamedTuple):
    """One question that unfolds.

    Attributes
    ----------
    key : str
        What a link names, unique on the page.
    cells : tuple of str
        Of the row.
    filters : dict of str to str
        What the filters of the page look at: ``o`` outcome, ``d`` document, ``m`` metrics below their threshold,
        ``c`` change, ``w`` whether it is wrong.
    texts : tuple of (heading, text or Safe)
    passages : tuple of (number, title, text)
        Retrieved passages; the number is the text's on the whole page, which holds each text once, at its first.
    notes : tuple of str
    """

    key: str
    cells: tuple[Cell, ...]
    filters: dict[str, str]
    texts: tuple[tuple[str, Cell], ...] = ()
    passages: tuple[tuple[int, str, str], ...] = ()
    notes: tuple[str, ...] = ()


class Samples(NamedTuple):
    """Questions, those that ended badly first, with the filters that the page's script offers.

    Attributes
    ----------
    rows : tuple of Sample
    chips : tuple of (code, label, n)
        Of the first filter; the first one is pressed.
    filters : dict of code to (label, ((value, text), ...))
    rest : tuple of (cells, filters)
        Of the questions that are too many to stand here whole: the script lists them.
    """

    heads: tuple[str, ...]
    rows: tuple[Sample, ...]
    chips: tuple[tuple[str, str, int], ...]
    filters: dict[str, tuple[str, tuple[tuple[str, str], ...]]]
    say: dict[str, str]
    all: int
    rest: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = ()


Block = Text | Table | Verdict | Steps | Bar | PassMark | Picture | Samples


@dataclass(frozen=True, repr=False)
class Section:
    """A part of a page.

    Attributes
    ----------
    key : str
        Its place, for links.
    name : str
        What it is, such as "Metrics".
    finding : str
        What it shows here, its heading; empty where the first block says it.
    lead : str
        One line on units.
    blocks : tuple of Block
    badge : Mark or str
        Its state beside its name in the contents.
    lang : {"en", "zh"}

    Examples
    --------
    >>> print(Section("gates", "Gates", "No gate failed", blocks=(Text(("All passed.",)),)))
    ## Gates: No gate failed
    <BLANKLINE>
    All passed.
    <BLANKLINE>
    """

    key: str
    name: str
    finding: str = ""
    lead: str = ""
    blocks: tuple[Block, ...] = ()
    badge: Mark | str = ""
    lang: str = "en"

    def __repr__(self) -> str:
        from ragnb.markup.rendering import render_markdown

        return render_markdown([self])

    def _repr_html_(self) -> str:
        from ragnb.markup.rendering import render_fragment

        return render_fragment([self])
