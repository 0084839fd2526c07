"""Whatever stands in a cell of a block, both renderers write it as text: no element, no row, no script more."""

from __future__ import annotations

import json
import re
from typing import Any

import mistune
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import Reader, island

from ragnb.markup import Safe
from ragnb.markup import blocks as b
from ragnb.markup.rendering import render_fragment, render_markdown, render_page

PAYLOADS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=x>',
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
    "**b**",
    "__b__",
    "~~s~~",
    "&lt;b&gt;",
    "&amp;",
    "line\nline",
    "line\r\nline",
    "a\u2028b\u2029c",
    "# h",
    "- l",
    "> q",
    "a\x0bb\x0cc\x85d",
    "\x00\x1f\x7f",
    "{{ 7 * 7 }}",
    "{% for x in y %}",
    "{# c #}",
    "]]>",
    "'",
    "\u202e",
    "<!-- c -->",
    "javascript:alert(1)",
    "</title>",
    "</style><style>*{}",
    "1. one",
    "| --- |",
    "    code",
    "===",
    "---",
]
TEXT = st.one_of(
    st.sampled_from(PAYLOADS),
    st.lists(st.sampled_from(PAYLOADS), min_size=2, max_size=3).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
).filter(lambda text: text.strip() and not text.startswith(">"))
FORBIDDEN = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"


def estimate(text: str) -> b.Estimate:
    """The numbers of an estimate are ours; its name and those of its thresholds are not."""
    ours = "0.500", "0.400–0.600"
    return b.Estimate(
        *ours, 0.5, 0.4, 0.6, (0.0, 1.0), ((text, 0.7),), (0.7, 1.0), 0.45, "bad", text, "0.5000"
    )


def cells(text: str) -> tuple[Any, ...]:
    """One cell of each type, the tuple of several among them."""
    return (
        text,
        b.Mark("bad", text),
        b.Small(text),
        b.Code(text),
        b.Link(text, "#x"),
        b.Link(text, "file.html"),
        estimate(text),
        b.Stack((("ok", text, 3), ("miss", text, 1)), 4),
        (text, b.Small(text), (b.Code(text), text)),
    )


def every_block(text: str) -> list[b.Block]:
    row = cells(text)
    measure = b.Measure(
        text,
        text,
        text,
        "0.3",
        3,
        4,
        text,
        estimate(text),
        b.Histogram(1, (2, 3), 4, (True, False)),
        "",
        text,
    )
    gone = b.Measure("", text, text, "", 3, 4, text, estimate(text), None, text, "")
    sample = b.Sample(
        text,
        tuple(row[:6]),
        {"o": text, "d": text, "m": text, "w": "1"},
        ((text, text),),
        ((1, text, text), (2, text, f"{text}2")),
        (text,),
    )
    again = b.Sample(f"{text}~2", tuple(row[:6]), {"o": text}, (), ((1, text, text),), ())
    say = dict.fromkeys(
        ("shown", "search", "any", "more", "filters", "passages", "link", "again", "standing"), text
    )
    return [
        *(
            b.Text((*row, text), kind)
            for kind in ("lead", "text", "note", "caution", "list", "changed")
        ),
        b.Text(((text, text, text),), "terms"),
        b.Table(("head", *(f">{text}" for _ in row[1:])), (row, row), text, "", True),
        b.Table((text, *(text for _ in row[1:])), (row,), "", text),
        b.Table((text, *(f">{text}" for _ in range(5))), (measure, gone), "", text),
        b.Verdict(
            b.Mark("bad", text),
            text,
            text,
            (b.Mark("good", text),),
            text,
            estimate(text),
            text,
            row,
        ),
        b.Steps(
            (text,) * 4,
            (b.Step(text, b.Mark("watch", text), text, b.Link(text, "#m=x"), {text: row}, text),),
        ),
        b.Bar(text, text, ((text, (("ok", text, 2), ("miss", text, 1))),)),
        b.Picture(Safe("<svg></svg>"), text),
        b.Samples(
            (text,) * 6,
            (sample, again),
            (("wrong", text, 1), ("", text, 2)),
            {"d": (text, ((text, text),))},
            say,
            3,
            ((row[:1], {"o": text}),),
        ),
    ]


def section(text: str, *made: b.Block) -> b.Section:
    return b.Section("key", text, f"{text}!", text, made, b.Mark("good", text))


PLAIN = {place: section("x", block) for place, block in enumerate(every_block("x"))}
NAMES = [
    f"{type(block).__name__}-{getattr(block, 'kind', place)}"
    for place, block in enumerate(every_block("x"))
]


def structure(page: str) -> list[tuple[str, tuple[str, ...]]]:
    """Elements in their order with the names of their attributes, and no value of them that a stranger chose."""
    return [(tag, tuple(sorted(attrs))) for tag, attrs in Reader(page).tags]


@settings(max_examples=25)
@pytest.mark.parametrize("place", PLAIN, ids=NAMES)
@given(text=TEXT)
def test_text_in_any_cell_of_any_block_leaves_the_elements_as_they_are(place, text):
    hostile = section(text, every_block(text)[place])
    for write in (
        lambda one: render_page([one], title=one.name, facts=[one.name]),
        lambda one: render_fragment([one]),
    ):
        page, plain = str(write(hostile)), str(write(PLAIN[place]))
        assert structure(page) == structure(plain)
        assert not re.search(FORBIDDEN, page)
        assert page.count("</script") == plain.count("</script")
        assert page.count("</style") == plain.count("</style")


@settings(max_examples=25)
@pytest.mark.parametrize("place", PLAIN, ids=NAMES)
@given(text=TEXT)
def test_text_in_any_cell_of_any_block_adds_no_markup_to_markdown(place, text):
    made = render_markdown([section(text, every_block(text)[place])], title=text)
    plain = render_markdown([PLAIN[place]], title="x")
    rendered = mistune.create_markdown(escape=False, plugins=["table", "strikethrough", "math"])
    got, want = (
        [tag for tag, _ in Reader(str(rendered(one))).tags if tag != "br"] for one in (made, plain)
    )
    assert got == want
    assert not re.search(FORBIDDEN, made)


@given(text=TEXT)
def test_data_of_the_script_are_what_was_put_in(text):
    (samples,) = (block for block in every_block(text) if isinstance(block, b.Samples))
    page = render_page([section(text, samples)], title=text)
    data = island(page)
    assert data["say"]["search"] == text
    assert data["filters"] == json.loads(json.dumps(samples.filters))
    assert data["rest"][0][1] == {"o": text}


@given(text=TEXT)
def test_text_can_be_read_whole_where_it_stands(text):
    read = Reader(
        render_page(
            [b.Section("k", "n", "f", "", (b.Text((text,)), b.Table(("h",), ((text,),))))],
            title="t",
        )
    )

    def shown(words):
        return re.sub(r"\s+", "", re.sub(FORBIDDEN, "\ufffd", words))

    assert shown(text) in shown(read.text)
    assert shown(read.tables[0][1][0]) == shown(text)


def test_only_what_is_safe_is_put_in_as_it_is():
    ours = render_fragment(
        [b.Section("k", "n", blocks=(b.Text((Safe("<i>ours</i>"), "<i>theirs</i>")),))]
    )
    assert ours.count("<i>") == 1
    assert "&lt;i&gt;theirs" in ours


@pytest.mark.parametrize("gone", ["", None])
def test_an_empty_cell_is_a_dash_in_both_renderings(gone):
    one = b.Section("k", "n", blocks=(b.Table(("a", ">b"), (("x", gone),)),))
    assert Reader(render_fragment([one])).tables[0][1] == ["x", "—"]
    assert "| x | — |" in render_markdown([one])


def test_a_missing_mean_is_a_dash_with_its_reason_in_both_renderings():
    nan = float("nan")
    gone = b.Estimate("—", "", nan, nan, nan)
    row = b.Measure("Recall", "recall", "", "0.5", 0, 4, "4 failed", gone, None, "failed", "")
    one = b.Section("k", "n", blocks=(b.Table(("a", ">b", ">c", ">d", "e", "f"), (row,)),))
    cell = Reader(render_fragment([one])).tables[0][1]
    assert cell[3] == "— failed"
    assert cell[2] == "0 4 failed"
    assert "- recall: — (w=0.5) (failed)" in render_markdown([one])
    assert "nan" not in render_fragment([one]).split("</style>")[1]


def test_a_passage_is_written_at_its_first_question_and_linked_from_the_others():
    def sample(key, *numbers):
        return b.Sample(key, (key,), {}, (), tuple((n, "", f"passage {n}") for n in numbers))

    say = dict.fromkeys(("passages", "link", "again", "standing"), "w")
    rows = (sample("a", 1, 2), sample("b", 2, 3, 1), sample("c", 3))
    read = Reader(
        render_page(
            [b.Section("k", "n", blocks=(b.Samples(("h",), rows, (), {}, say, 3),))], title="t"
        )
    )
    assert read.passages == ["passage 1", "passage 2", "passage 3"]
    links = [attrs["href"] for tag, attrs in read.tags if attrs.get("class") == "rg-again"]
    assert links == ["#p2", "#p1", "#p3"]
    assert [attrs["id"] for tag, attrs in read.tags if tag == "li" and "id" in attrs] == [
        "p1",
        "p2",
        "p3",
    ]
