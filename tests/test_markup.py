"""Markup: whatever a cell holds stays text, n records are n rows, and pictures stand where their numbers say."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import mistune
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragnb import markup as mk
from ragnb.errors import RagnbError
from ragnb.markup import rendering
from ragnb.markup.blocks import Estimate, Histogram, Mark, Section, Stack, Table
from ragnb.markup.rendering import render_markdown, render_page

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</td></tr></table>",
    "a | b",
    "a\\|b",
    "\\",
    "|",
    "`code | x`",
    "```",
    "[x](javascript:alert(1))",
    "![x](y)",
    "$x$",
    "\\(x\\)",
    "**b**",
    "__b__",
    "_i_",
    "~~s~~",
    "&lt;b&gt;",
    "&amp;",
    "line\nline",
    "line\r\nline",
    "a\rb",
    "a\u2028b\u2029c",
    "# h",
    "- l",
    "> q",
    "a\x0bb\x0cc\x85d",
    "\x00\x1f\x7f",
    "\ud800",
    "  spaces  ",
    "",
    " ",
    "\t",
    "---",
    "| --- |",
    "<!-- c -->",
    "<br>",
    "]]>",
    "'",
    "\u202e",
    "文档 | 名称",
    "\\\\|",
    "\\`",
    "<a href='javascript:x'>",
]
TEXT = st.one_of(
    st.sampled_from(PAYLOADS),
    st.lists(st.sampled_from(PAYLOADS), min_size=2, max_size=3).map("".join),
    st.text(st.characters(), max_size=20),
    st.text("|\\`*_[]<>&$\n\r ~ab", max_size=12),
)
ROWS = st.lists(st.tuples(TEXT, TEXT), max_size=4)


class Reader(HTMLParser):
    """What a parser makes of HTML: its elements, its text by cell, and its comments and declarations."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self.odd: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("td", "th", "caption"):
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data

    def handle_comment(self, data):
        self.odd.append(data)

    handle_pi = handle_decl = unknown_decl = handle_comment

    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]


def shown(text: str) -> str:
    """What a reader may see of a text: forbidden characters replaced, line ends as a parser reads them."""
    return re.sub(
        "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]",
        "\ufffd",
        text,
    )


def svg(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
    return root


def texts_of(root: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter("text")]


# Tables


def table(rows, *heads, caption=""):
    return Table(heads, tuple(map(tuple, rows)), caption)


@given(ROWS, TEXT, TEXT)
def test_any_text_in_any_field_of_a_table_stays_text(rows, caption, label):
    read = Reader(rendering.draw(table(rows, f"x{label}", ">two", caption=f"x{caption}")))
    assert set(read.tags()) <= {
        "div",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "span",
    }
    assert not read.odd
    assert read.tags().count("tr") == 1 + len(rows)
    assert read.cells[0] == shown(f"x{caption}")
    assert read.cells[1].strip() == shown(f"x{label}").strip()
    # An empty cell is a dash; one of white space is what it is.
    want = [shown(text).strip() if text else "—" for row in rows for text in row]
    assert [cell.strip() for cell in read.cells[3:]] == want


@given(ROWS, TEXT)
def test_n_records_are_n_rows_of_markdown(rows, label):
    written = render_markdown([Section("k", "n", blocks=(table(rows, f"x{label}", ">two"),))])
    lines = written.removeprefix("## n").strip()
    assert len(re.split("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", lines)) == len(rows) + 2
    read = Reader(markdown(lines))
    assert set(read.tags()) <= {"table", "thead", "tbody", "tr", "th", "td", "br"}
    assert read.tags().count("tr") == 1 + len(rows)
    assert read.tags().count("td") == 2 * len(rows)
    assert not read.odd


def markdown(text: str) -> str:
    return str(
        mistune.create_markdown(escape=False, plugins=["table", "strikethrough", "math"])(text)
    )


@given(TEXT)
def test_a_markdown_cell_shows_its_text(text):
    cell = Reader(markdown(f"| a |\n| :--- |\n| {mk.md_cell(text)} |")).cells[1]
    without_breaks = re.sub("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", "", text)
    without_turns = re.sub("[\u202a-\u202e\u2066-\u2069]", "\ufffd", without_breaks)
    assert re.sub(r"\s", "", cell) == re.sub(r"\s", "", shown(without_turns))


def test_plain_names_stay_readable_in_markdown():
    for name in ("context_recall", "322_双源CT成像技术.pdf", "a-b (c): 0.5 % = x, y; z!"):
        assert mk.md_cell(name) == name


def test_numbers_are_written_one_way():
    assert mk.number(0.8125) == f"{0.8125:.3f}"
    assert mk.number(0.8125, 4) == "0.8125"
    assert mk.number(-0.0) == mk.number(-0.0004) == "0.000"
    assert mk.number(np.float32(0.5)) == "0.500"
    assert mk.number(float("inf")) == "∞"
    assert mk.percent(0.886) == "88.6 %"
    assert mk.count(1234.0) == "1,234"
    assert mk.with_interval(0.812, 0.771, 0.843) == "0.812 [0.771, 0.843]"
    assert mk.with_interval(0.812, None, float("nan")) == "0.812 [—, —]"
    assert mk.with_interval(0.886, 0.8, 0.95, percent=True) == "88.6 % [80.0, 95.0]"
    assert mk.with_interval(7.25, 7, 8, digits=1) == "7.2 [7.0, 8.0]"


@pytest.mark.parametrize("gone", [None, float("nan"), pd.NA, pd.NaT, np.nan])
def test_missing_is_a_dash_everywhere(gone):
    assert (
        mk.number(gone)
        == mk.percent(gone)
        == mk.count(gone)
        == mk.with_interval(gone, 0, 1)
        == mk.MISSING
    )


def test_a_table_can_be_heard():
    read = Reader(rendering.draw(table([("a", "1")], "metric", ">value", caption="Means")))
    scopes = [attrs.get("scope") for tag, attrs in read.elements if tag == "th"]
    assert scopes == ["col", "col", "row"]
    assert [attrs["class"] for tag, attrs in read.elements if tag == "td"] == ["rg-num"]
    assert read.cells[0] == "Means"


def test_markup_of_ours_is_put_in_and_nothing_else():
    drawn = rendering.draw(table([(mk.Safe("<i>ours</i>"), "<i>theirs</i>")], "a", "b"))
    assert Reader(drawn).tags().count("i") == 1
    assert mk.escape(mk.Safe("<i>") + "<b>") == "&lt;i&gt;&lt;b&gt;"
    assert mk.join([mk.Safe("<i>"), "<b>"], "<") == "<i>&lt;&lt;b&gt;"


# Pictures


def drawn(**more):
    numbers = {"value": 0.6, "low": 0.5, "high": 0.7}
    return Estimate(**{"written": "0.600", "interval": "0.500–0.700"} | numbers | more)


@given(TEXT, TEXT)
def test_any_text_in_a_picture_stays_text_and_the_picture_is_xml(one, two):
    made = [
        rendering.draw(drawn(text=one, written=two, thresholds=((two, 0.5),))),
        rendering.draw(Stack((("ok", one, 1), ("miss", two, 2)), 3)),
        rendering.radar_svg(
            axes([one, "b", "c"]), {two: [0.1, None, 0.3], two + "x": [1, 1, 1]}, label=one
        ),
        rendering.radar_svg(axes([one]), {two: [0.1]}, label=one),
    ]
    for picture in made:
        root = svg(picture)
        allowed = {
            "svg",
            "line",
            "text",
            "circle",
            "polygon",
            "polyline",
            "rect",
            "title",
            "path",
            "g",
            "tspan",
        }
        assert {node.tag for node in root.iter()} <= allowed
        assert root.get("role") == "img"
        assert root.get("aria-label") is not None


@given(st.floats(0, 10), st.floats(0.1, 10))
def test_an_estimate_stands_at_its_place_on_the_scale(value, width):
    high = min(value + width, 10.0)
    root = svg(
        rendering.draw(drawn(value=value, low=value, high=high, span=(0.0, 10.0)), width=212)
    )
    (dot,) = root.iter("circle")
    assert float(dot.get("cx", "")) == pytest.approx(6 + 200 * value / 10, abs=0.051)
    (bar,) = [node for node in root.iter("line") if node.get("class") == "ci"]
    assert float(bar.get("x1", "")) == pytest.approx(6 + 200 * value / 10, abs=0.051)
    assert float(bar.get("x2", "")) == pytest.approx(6 + 200 * high / 10, abs=0.051)


@given(st.floats(-5, 5), st.floats(-5, 5))
def test_what_lies_outside_a_scale_is_drawn_at_its_edge(value, at):
    root = svg(
        rendering.draw(
            drawn(value=value, low=value, high=value, thresholds=(("t", at),)), width=212
        )
    )
    places = [float(node.get("cx", "")) for node in root.iter("circle")]
    places += [float(node.get("x1", "")) for node in root.iter("line")]
    assert all(6 <= place <= 206 for place in places)


def test_a_scale_has_its_thresholds_by_name_and_says_what_it_shows():
    estimate = drawn(text="recall", thresholds=(("warning", 0.7), ("critical", 0.5)), before=0.4)
    root = svg(rendering.draw(estimate, width=212))
    assert root.get("aria-label") == "recall: 0.600, 0.500–0.700"
    lines = [node for node in root.iter("line") if "limit" in node.get("class", "")]
    assert [float(node.get("x1")) for node in lines] == [146, 106]
    assert [node.find("title").text.split()[0] for node in lines] == ["warning", "critical"]
    before, value = root.iter("circle")
    assert (before.get("cx"), value.get("cx")) == ("86.0", "126.0")


def test_a_missing_estimate_is_its_scale_alone():
    gone = drawn(written="—", interval="", value=math.nan, low=math.nan, high=math.nan)
    root = svg(rendering.draw(gone))
    assert not list(root.iter("circle"))
    assert not [node for node in root.iter("line") if node.get("class") == "ci"]
    assert "nan" not in rendering.draw(gone)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=5).filter(any))
def test_stacked_parts_are_as_wide_as_their_counts_and_named(counts):
    parts = tuple(("ok", f"part {place}", n) for place, n in enumerate(counts))
    root = svg(rendering.draw(Stack(parts, sum(counts))))
    bars = list(root.iter("rect"))
    some = [n for n in counts if n]
    widths = [max(220 * n / sum(counts) - 1.5, 0.5) for n in some]
    assert [float(bar.get("width", "")) for bar in bars] == pytest.approx(widths, abs=0.051)
    assert [bar.find("title").text for bar in bars] == [f"{name}: {n}" for _, name, n in parts if n]


@given(
    st.integers(0, 50), st.lists(st.integers(0, 50), min_size=1, max_size=10), st.integers(0, 50)
)
def test_bars_of_a_histogram_are_as_high_as_their_share(low, between, high):
    n = max(low + sum(between) + high, 1)
    root = svg(rendering.draw(Histogram(low, tuple(between), high, (False,) * len(between))))
    bars = [float(bar.get("height", "")) for bar in root.iter("rect")]
    want = [22 * one / n + 1 for one in (low, *between, high) if one]
    assert bars == pytest.approx(want, abs=0.051)


# Radar


def axes(names, span=(0, 1)):
    return [(name, span, False) for name in names]


@given(st.lists(st.floats(0, 1), min_size=3, max_size=12))
def test_radar_points_lie_on_their_axes_clockwise_from_the_top(values):
    points = rendering.radar_points(values)
    for place, (value, (x, y)) in enumerate(zip(values, points, strict=True)):
        turn = math.pi / 2 - 2 * math.pi * place / len(values)
        assert complex(x, y) == pytest.approx(
            value * complex(math.cos(turn), math.sin(turn)), abs=1e-12
        )


def test_the_rim_is_the_good_end_of_each_range():
    turned = [("a", (1, 10), False), ("b", (1, 10), True), ("c", (0, 1), True)]
    points = rendering.radar_points([10, 1, 0.2], turned)
    assert np.hypot(*points.T) == pytest.approx([1, 1, 0.8])


@given(st.lists(st.booleans(), min_size=3, max_size=12))
def test_runs_hold_every_present_axis_once_and_join_neighbours_only(there):
    points = rendering.radar_points([0.5 if here else None for here in there])
    runs = rendering.radar_runs(points)
    assert sorted(place for run, _ in runs for place in run) == [
        p for p, here in enumerate(there) if here
    ]
    for run, closed in runs:
        assert closed == all(there)
        assert all((after - before) % len(there) == 1 for before, after in pairwise(run))
    joined = sum(len(run) - 1 + closed for run, closed in runs)
    assert joined == sum(a and b for a, b in zip(there, [*there[1:], there[0]], strict=True))


def test_a_radar_closes_and_its_gap_is_named():
    systems = {"x": [0.5, 0.5, 0.5], "y": [0.5, None, 0.5]}
    drawn = rendering.radar_svg(axes("abc"), systems, label="b is missing")
    root = svg(drawn)
    assert len(list(root.iter("polygon"))) == 1
    assert len(list(root.iter("polyline"))) == 1
    assert "b (missing: y)" in texts_of(root)
    assert root.get("aria-label") == "b is missing"
    alone = rendering.radar_svg(axes("abc"), {"x": [0.5, None, 0.5]}, label="x", lang="zh")
    assert "b (缺失)" in texts_of(svg(alone))


def test_a_radar_marks_direction_and_range():
    turned = [("a", (0, 1), True), ("b", (1, 10), False), ("c", (0, 1), False)]
    root = svg(rendering.radar_svg(turned, {"x": [0.2, 5, 0.5]}, label="x"))
    assert {"a ↓ (0–1)", "b (1–10)", "c (0–1)"} <= set(texts_of(root))
    same = svg(rendering.radar_svg(axes("abc", (1, 5)), {"x": [2, 3, 4]}, label="x"))
    assert {"a", "b", "c", "3", "5"} == set(texts_of(same))


def test_five_systems_differ_in_colour_and_dash_and_a_sixth_is_refused():
    systems = {name: [0.1, 0.2, 0.3] for name in "vwxyz"}
    outlines = list(svg(rendering.radar_svg(axes("abc"), systems, label="x")).iter("polygon"))
    assert (
        len({node.get("stroke") for node in outlines})
        == len({node.get("stroke-dasharray") for node in outlines})
        == 5
    )
    with pytest.raises(RagnbError, match="at most 5 systems"):
        rendering.radar_svg(axes("abc"), systems | {"u": [1, 1, 1]}, label="x")


def test_two_metrics_are_a_line_and_one_is_a_point():
    root = svg(
        rendering.radar_svg(
            axes("ab"), {"x": [0.25, 0.5], "y": [0.25, None]}, label="x", radius=100
        )
    )
    (line,) = root.iter("polygon")
    ends = [tuple(map(float, corner.split(","))) for corner in line.get("points").split()]
    assert ends[0][0] == ends[1][0]
    assert ends[1][1] - ends[0][1] == pytest.approx(75)
    dots = [node for node in root.iter("circle") if node.get("r") == "3.5"]
    assert len(dots) == 3
    assert {"a", "b (missing: y)"} <= set(texts_of(root))
    (dot,) = (
        node
        for node in svg(rendering.radar_svg(axes("a"), {"x": [1.0]}, label="x")).iter("circle")
        if node.get("r") == "3.5"
    )
    assert dot.get("cx")


# Page


def test_a_page_is_whole_and_asks_for_nothing():
    sections = [
        Section("where", "Where?", "Here"),
        Section("gates", "Gates", "None", badge=Mark("good", "fine")),
    ]
    text = render_page(sections, title="<b>")
    read = Reader(text)
    policy = [attrs["content"] for _, attrs in read.elements if attrs.get("http-equiv")]
    (styled,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(styled.encode()).digest()).decode()
    assert policy[0].startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    # Without questions there is nothing for a script to do.
    assert "script-src" not in policy[0]
    assert {"script", "link", "img", "iframe"}.isdisjoint(read.tags())
    assert not re.search(r"url\(|@import|https?:", text)
    assert "<title>&lt;b&gt;</title>" in text
    anchors = {attrs.get("id") for _, attrs in read.elements} - {None}
    assert {attrs["href"] for tag, attrs in read.elements if tag == "a"} <= {
        f"#{name}" for name in anchors
    }


def test_the_language_of_a_page_decides_its_first_fonts():
    assert '<html lang="zh-CN">' in render_page([], title="x", lang="zh")
    rule = re.search(r":lang\(zh\)[^{]*\{\s*font-family: ([^;]+);", rendering.style())
    assert rule is not None
    assert rule[1].startswith('"PingFang SC"')
    assert rendering.fragment("", lang="zh").startswith(
        '<div class="ragnb rg-cellout" lang="zh-CN">'
    )
    with pytest.raises(RagnbError, match="lang"):
        render_page([], title="x", lang="fr")


def test_every_rule_of_a_notebook_reaches_only_our_parts():
    sheet = re.sub(r"@[^{]+\{", "", rendering.style(notebook=True))
    selectors = [
        one.strip() for rule in re.findall(r"([^{}]+)\{", sheet) for one in rule.split(",")
    ]
    selectors = [one.rpartition("}")[2].strip() for one in selectors]
    assert all(".ragnb" in one or ".rg-" in one for one in selectors if one), selectors


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, two: str) -> float:
    light, dark = sorted([luminance(one), luminance(two)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_stands_out_in_light_and_in_dark():
    parts = rendering.style().split("prefers-color-scheme")
    light, dark = (dict(re.findall(r"--rg-(\w+): (#\w{6})", part)) for part in parts)
    assert set(dark) <= set(light)
    for colours in (light, light | dark):
        for name in ("ink", "ink2", "ink3", "link", "good", "watch", "bad", "none"):
            for ground in ("paper", "raised"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        # What is drawn stands out from the page; counts are read in the bars that hold them.
        for name in ("goodf", "watchf", "badf", "data", "hist"):
            assert contrast(colours[name], colours["paper"]) >= 3, name
        assert contrast(colours["on"], colours["goodf"]) >= 4.5
        assert contrast(colours["on"], colours["badf"]) >= 4.5
        assert contrast(colours["good"], colours["goodl"]) >= 4.5
        assert contrast(colours["watch"], colours["watchl"]) >= 4.5
    for system in rendering.SYSTEM_COLOURS[:4]:
        assert contrast(system, light["paper"]) >= 3, system
        assert contrast(system, dark["paper"]) >= 3, system


def test_a_mark_has_a_sign_a_colour_and_a_word():
    for tone, sign in mk.TONES.items():
        read = Reader(rendering.draw(Mark(tone, "不合格")))
        assert [attrs.get("class") for _, attrs in read.elements] == [f"rg-mark rg-{tone}", None]
        assert f"{sign}</span> 不合格" in rendering.draw(Mark(tone, "不合格"))
    assert "&lt;b&gt;" in rendering.draw(Mark("good", "<b>"))


@given(TEXT)
def test_any_text_in_an_element_stays_text(text):
    read = Reader(mk.element("p", text, title=text))
    assert read.tags() == ["p"]
    assert not read.odd


def test_text_on_one_line_is_cut_with_an_ellipsis():
    assert mk.one_line(" a\u2028b\x00 ") == "a b\ufffd"
    assert mk.one_line("abcdef", 4) == "abc…"
    assert mk.text_width("中") > mk.text_width("A") > mk.text_width("a")
