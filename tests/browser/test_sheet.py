"""The page of a sheet in a real browser: quiet, whole, fit for every width, and deaf to what strangers wrote."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from accessibility import violations
from page_runs import requests, run_of
from pages import PAYLOADS
from playwright.sync_api import expect

import ragnb as rn

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
TRACES = {
    "gold": ROOT / "data/quickstart/gold.json",
    "refusal": ["not in context", "资料中没有相关内容"],
}
ONCE = "Once in a policy and long enough to be a passage. " * 3
PAGES = ("quickstart", "chinese", "compared", "hostile")
KINDS = ("failed", "part", "systems", "judge", "log", "since")


def hostile_sheet():
    """Every text that a stranger writes is a payload, in turn."""
    rows = []
    for place in range(24):
        text = PAYLOADS[place % len(PAYLOADS)]
        row = dict.fromkeys(
            ("question", "answer", "doc_name", "ground_truth_answer"), f"{text}{place % 3}"
        )
        row |= {
            "sample_id": f"{text}{place}",
            "retrieved_contexts": [text],
            "faithfulness": place % 5 / 10,
        }
        rows.append(
            row
            | {"system": f"{PAYLOADS[place % 2]}", "faithfulness__reason": text, PAYLOADS[1]: 0.2}
        )
    metrics = ["faithfulness", rn.Metric(PAYLOADS[1])]
    gates = [rn.Gate(PAYLOADS[2], PAYLOADS[1], ">=", 0.5)]
    return rn.assess(pd.DataFrame(rows), metrics=metrics, gates=gates, title=PAYLOADS[6])


def shared_sheet():
    """Sixty questions with one passage of their own and one that all retrieved; ids with odd characters."""
    rng = np.random.default_rng(5)
    made = pd.DataFrame(
        {
            "sample_id": [f"q {i}%" for i in range(60)],
            "question": [f"How about {i}?" for i in range(60)],
            "doc_name": [f"doc {i % 4}" for i in range(60)],
            "answer": [f"Answer {i}" for i in range(60)],
            "retrieved_contexts": [[ONCE, f"own passage {i}"] for i in range(60)],
            "faithfulness": rng.uniform(0, 1, 60).round(3),
            "context_recall": rng.uniform(0.5, 1, 60).round(3),
        }
    )
    return rn.assess(made)


def kind_sheet(kind, lang="en"):
    """A run of a kind of which each page has its own first screen."""
    return run_of(kind, 1, lang)


def log_sheet():
    return rn.assess(pd.DataFrame(requests(refused=2, late=10, failed=1)), lang="zh")


def long_sheet():
    rng = np.random.default_rng(6)
    made = {
        "sample_id": [f"q{i}" for i in range(3000)],
        "question": [f"Which rule number {i}?" for i in range(3000)],
        "doc_name": [f"doc {i % 20}" for i in range(3000)],
        "faithfulness": rng.uniform(0, 1, 3000).round(3),
    }
    return rn.assess(pd.DataFrame(made), gates=[])


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of these names, each written once, when it is first asked for."""
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "quickstart": lambda: rn.assess(ROOT / "scenarios/quickstart.yaml"),
        "chinese": lambda: rn.assess(ROOT / "scenarios/simulated_judge.yaml", lang="zh"),
        "compared": lambda: rn.assess(
            ROOT / "data/quickstart/scores.csv", candidate="strong", baseline="weak"
        ),
        "traced": lambda: rn.assess(
            ROOT / "data/quickstart/traces.weak.jsonl", **TRACES, lang="zh"
        ),
        "hostile": hostile_sheet,
        "shared": shared_sheet,
        "long": long_sheet,
        "failed": lambda: kind_sheet("failed"),
        "part": lambda: kind_sheet("part", lang="zh"),
        "systems": lambda: kind_sheet("systems"),
        "judge": lambda: kind_sheet("judge", lang="zh"),
        "log": log_sheet,
        "since": lambda: rn.assess(
            ROOT / "scenarios/quickstart_weak.yaml", baseline=ROOT / "scenarios/quickstart.yaml"
        ),
    }

    def write(name):
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_text(made[name]().to_html(), encoding="utf-8")
        return path

    return write


def opened(page, file, place="", **viewport):
    if viewport:
        page.set_viewport_size({"width": 1280, "height": 800} | viewport)
    page.goto("about:blank")
    page.goto(file.as_uri() + place)


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")


def shown(page):
    return page.locator("details.q:visible")


# Quiet


@pytest.mark.parametrize("name", PAGES)
def test_page_asks_for_itself_alone_and_says_nothing(name, pages, page, page_log):
    opened(page, pages(name))
    unfold(page)
    for link in page.locator("nav a").all():
        link.click()
    page.wait_for_timeout(100)
    assert set(page_log.requests) <= {pages(name).as_uri(), "about:blank"}
    assert (page_log.errors, page_log.dialogs) == ([], [])


def test_payloads_stay_text(pages, page, page_log):
    opened(page, pages("hostile"))
    unfold(page)
    assert page.locator("iframe, img, [onload], [onerror], link").count() == 0
    assert page.locator("script").count() == 2
    assert page.title() == f"■ Not ready – {PAYLOADS[6]}"
    body = page.locator("body").text_content()
    assert all(payload in body for payload in PAYLOADS)
    assert page.locator(".rg-samples :is(script:not([type]), iframe, img)").count() == 0
    for option in page.locator("select").first.locator("option").all()[1:3]:
        page.locator("select").first.select_option(option.get_attribute("value"))
        assert shown(page).count() > 0
    assert (page_log.dialogs, page_log.errors) == ([], [])


# For everyone


@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    [
        ("quickstart", "light", 1280),
        ("quickstart", "dark", 390),
        ("chinese", "dark", 1280),
        ("chinese", "light", 390),
        ("compared", "light", 1280),
        ("traced", "dark", 1280),
        *((kind, "light", 1280) for kind in KINDS),
        *((kind, "dark", 390) for kind in KINDS),
    ],
)
def test_axe_finds_nothing(name, scheme, width, pages, page):
    page.emulate_media(color_scheme=scheme)
    opened(page, pages(name), width=width)
    # A few questions stand for the others, which are alike.
    page.evaluate(
        "document.querySelectorAll('details:not(.q)').forEach(part => { part.open = true; })"
    )
    page.evaluate(
        "[...document.querySelectorAll('details.q')].slice(0, 4).forEach(part => { part.open = true; })"
    )
    found = violations(page)
    assert [(one["id"], one["nodes"][0]["html"][:160], len(one["nodes"])) for one in found] == []


@pytest.mark.parametrize("name", ["quickstart", "compared", "traced", "hostile", *KINDS])
def test_no_width_makes_the_page_scroll_sideways(name, pages, page):
    opened(page, pages(name))
    unfold(page)
    for width in (320, 390, 640, 900, 1024, 1121, 1280, 1600):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width


@pytest.mark.parametrize("name", ["quickstart", "traced", "failed"])
def test_heads_of_questions_stand_over_what_they_name(name, pages, page):
    opened(page, pages(name), width=1280, height=900)
    places = """row => [...row.children].map(cell =>
        [getComputedStyle(cell).textAlign, Math.round(cell.getBoundingClientRect().left)])"""
    lists = page.locator(".rg-samples").all()
    assert lists
    for questions in lists:
        heads = questions.locator(".rg-heads").evaluate(places)
        assert heads == questions.locator(".q > summary").first.evaluate(places)


@pytest.mark.parametrize("name", ["quickstart", "chinese"])
def test_the_first_screen_holds_verdict_score_and_the_first_things_to_fix(name, pages, page):
    opened(page, pages(name), width=1280, height=800)
    page.wait_for_selector("nav")
    for part in ("h1", ".rg-status", ".rg-big", ".rg-marks"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= 800, part
    rows = [row.bounding_box() for row in page.locator(".rg-steps li").all()]
    assert sum(row["y"] + row["height"] <= 800 for row in rows) >= 3


@pytest.mark.parametrize("name", ["quickstart", "traced"])
def test_every_picture_and_link_has_words(name, pages, page):
    opened(page, pages(name))
    named = "nodes => nodes.filter(n => n.ariaHidden !== 'true' && !n.ariaLabel).length"
    assert page.locator("svg").count() > 5
    assert page.locator("svg").evaluate_all(named) == 0
    for link in page.locator("nav a").all():
        assert link.text_content().strip()
        assert page.locator(f"section[id='{link.get_attribute('href')[1:]}']").count() == 1


def test_the_page_is_walked_by_keys(pages, page):
    opened(page, pages("quickstart"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    row = page.locator(".rg-steps summary").first
    row.focus()
    page.keyboard.press("Enter")
    assert page.locator(".rg-steps .rg-why").first.is_visible()
    page.locator(".rg-tools button").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator(".rg-tools button").nth(1).get_attribute("aria-pressed") == "true"


# Without script, on paper


@pytest.mark.parametrize("name", ["quickstart", "shared"])
def test_every_question_can_be_read_without_script(name, pages, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages(name).as_uri())
    n = {"quickstart": 80, "shared": 60}[name]
    assert shown(page).count() == n
    assert page.locator(".rg-shown").text_content() == f"All {n} questions stand here."
    for place in (0, n - 1):
        question = shown(page).nth(place)
        question.locator("summary").click()
        assert question.locator(".rg-open").is_visible()
        assert len(question.locator(".rg-open").inner_text()) > 20
    page.locator(".rg-steps summary").first.click()
    assert page.locator(".rg-steps .rg-why").first.is_visible()
    context.close()


def test_a_link_without_script_leads_to_its_question(pages, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages("shared").as_uri())
    page.locator(".rg-steps summary").first.click()
    link = page.locator(".rg-steps a[href^='#q=']").first
    link.click()
    assert page.url.endswith(link.get_attribute("href"))
    context.close()


@pytest.mark.parametrize("name", ["quickstart", "chinese"])
def test_printed_on_a4_nothing_is_wider_than_the_page(name, pages, page):
    opened(page, pages(name), width=702, height=1000)  # 186 mm: A4 without its margins
    page.emulate_media(media="print")
    wide = "nodes => nodes.filter(n => n.getBoundingClientRect().right > 703).map(n => n.outerHTML.slice(0, 80))"
    assert page.locator("table, svg, p, figure, h1, h2, summary").evaluate_all(wide) == []
    assert not page.locator("nav").is_visible()
    assert not page.locator(".rg-tools button").first.is_visible()


def test_it_prints_to_pdf(pages, page, tmp_path):
    opened(page, pages("quickstart"))
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    text = (tmp_path / "page.pdf").read_bytes()
    assert text.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", text)) < 60


# Questions


def test_failures_come_first_and_chips_pick_by_outcome(pages, page):
    opened(page, pages("quickstart"))
    told = page.locator(".rg-shown")
    chips = page.locator(".rg-tools button[value]")
    assert chips.first.get_attribute("aria-pressed") == "true"
    for chip in chips.all():
        chip.click()
        expect(chip).to_have_attribute("aria-pressed", "true")
        n = int(chip.text_content().split()[-1].replace(",", ""))
        assert shown(page).count() == n
        assert told.text_content() == f"{n} of {n} questions that match are shown; 80 in all"
        code = chip.get_attribute("value")
        if code.isupper():
            assert set(shown(page).evaluate_all("nodes => nodes.map(n => n.dataset.o)")) == {code}
    wrong = {"HALLUCINATION", "OVER_REFUSAL", "ANS_NO_HIT"}
    chips.first.click()
    assert set(shown(page).evaluate_all("nodes => nodes.map(n => n.dataset.o)")) <= wrong


def test_lists_and_words_narrow_the_questions_together(pages, page):
    opened(page, pages("quickstart"))
    page.locator(".rg-tools button[value='']").click()
    assert shown(page).count() == 80
    document = page.locator("select").first
    document.select_option("差旅报销制度.pdf")
    docs = shown(page).evaluate_all("nodes => nodes.map(n => n.dataset.d)")
    assert set(docs) == {"差旅报销制度.pdf"}
    box = page.get_by_role("searchbox")
    box.fill("差旅 一线城市")
    expect(page.locator(".rg-shown")).not_to_contain_text(f"of {len(docs)} questions")
    assert 0 < shown(page).count() < len(docs)
    box.fill("WARRANTY no such words at all")
    expect(shown(page)).to_have_count(0)
    assert page.locator(".rg-shown").text_content().startswith("0 of 0 questions")
    box.fill("")
    expect(shown(page)).to_have_count(len(docs))
    document.select_option("")
    assert shown(page).count() == 80


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        ("#o=HALLUCINATION", "o", "HALLUCINATION"),
        ("#o=OVER_REFUSAL", "o", "OVER_REFUSAL"),
        ("#m=context_relevance", "m", "context_relevance"),
        ("#d=warranty-policy.pdf", "d", "warranty-policy.pdf"),
        ("#d=%E5%B7%AE%E6%97%85%E6%8A%A5%E9%94%80%E5%88%B6%E5%BA%A6.pdf", "d", "差旅报销制度.pdf"),
    ],
)
def test_a_link_filters_the_questions(place, key, value, pages, page):
    opened(page, pages("quickstart"), place)
    values = shown(page).evaluate_all(f"nodes => nodes.map(n => n.dataset.{key})")
    assert len(values) > 0
    assert all(value in one.split("\n") for one in values)
    every = page.locator("details.q").evaluate_all(f"nodes => nodes.map(n => n.dataset.{key})")
    assert len(values) == sum(value in one.split("\n") for one in every)


def test_the_links_of_what_to_fix_show_as_many_questions_as_they_say(pages, page):
    for name in ("quickstart", "shared"):
        opened(page, pages(name))
        page.get_by_role("searchbox").fill("no such words at all")
        expect(shown(page)).to_have_count(0)
        links = page.locator(".rg-go a")
        assert links.count() > 0
        for link in links.all():
            link.click()
            n = int(re.search(r"\d+", link.text_content())[0])
            expect(shown(page)).to_have_count(n)
            assert (
                page.locator("#questions").evaluate("n => Math.abs(n.getBoundingClientRect().top)")
                < 800
            )


@pytest.mark.parametrize("name", ["quickstart", "shared"])
def test_a_link_to_a_question_opens_it_whatever_is_filtered(name, pages, page):
    opened(page, pages(name))
    page.locator(".rg-steps summary").first.click()
    link = page.locator(".rg-steps a[href^='#q=']").first
    page.get_by_role("searchbox").fill("no such words at all")
    expect(shown(page)).to_have_count(0)
    link.click()
    opens = page.locator("details.q[open]")
    expect(opens).to_have_count(1)
    assert opens.locator("summary span").first.text_content().strip() == link.text_content().strip()
    assert opens.locator(".rg-open").is_visible()
    assert page.get_by_role("searchbox").input_value() == ""
    assert opens.evaluate("n => n.getBoundingClientRect().top") < 800
    opened(page, pages(name), link.get_attribute("href"))
    expect(page.locator("details.q[open] .rg-open")).to_be_visible()


@pytest.mark.parametrize(
    "place", ["#q=100%", "#q=no such id", "#o=NOTHING", "#x=1", "#m=%zz", "#questions"]
)
def test_a_link_that_leads_nowhere_leaves_the_page_whole(place, pages, page, page_log):
    opened(page, pages("quickstart"), place)
    assert page_log.errors == []
    assert page.locator(".rg-tools button[value]").count() > 3
    page.locator(".rg-tools button[value='']").click()
    assert shown(page).count() == 80


def test_a_passage_shown_once_is_read_where_it_is_asked_for(pages, page):
    opened(page, pages("shared"))
    page.locator(".rg-tools button[value='']").click()
    last = page.locator("details.q").last
    assert page.locator(".rg-passage", has_text=ONCE.strip()).count() == 1
    last.locator("summary").click()
    expect(last.locator(".rg-passage")).to_have_count(2)
    assert ONCE.strip() in last.locator(".rg-open").inner_text()
    assert last.locator("a.rg-again").count() == 0


def test_three_thousand_questions_are_found_though_a_thousand_stand_whole(pages, page):
    opened(page, pages("long"))
    page.locator(".rg-tools button[value='']").click()
    rows = page.locator(".rg-samples :is(details.q, div.q):visible")
    assert rows.count() == 200
    page.get_by_role("button", name="Show more").click()
    assert rows.count() == 400
    page.get_by_role("searchbox").fill("number 2999?")
    expect(rows).to_have_count(1)
    assert "q2999" in rows.first.text_content()
    assert (
        page.locator(".rg-shown").text_content()
        == "1 of 1 questions that match are shown; 3,000 in all"
    )


# In a notebook


@pytest.mark.parametrize("theme", ["true", "false"])
def test_a_cell_of_a_notebook_is_legible_in_its_theme(theme, page, page_log, tmp_path):
    sheet = rn.assess(ROOT / "scenarios/quickstart.yaml")
    colours = {"true": ("#fff", "#111"), "false": ("#111", "#eee")}[theme]
    path = tmp_path / "cell.html"
    names = "".join(f"--jp-content-font-color{n}: {colours[1]};" for n in (1, 2))
    path.write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>x</title><style>body {{ {names} "
        f"background: {colours[0]}; --jp-layout-color2: {colours[0]}; "
        f"--jp-content-link-color: {colours[1]} }}</style>"
        f"<body data-jp-theme-light={theme}><main class=jp-OutputArea><h1>x</h1>"
        f"{sheet.section('gates')._repr_html_()}</main>",
        encoding="utf-8",
    )
    page.goto(path.as_uri())
    found = violations(page, rules=["color-contrast"])
    assert [one["nodes"][0]["html"][:120] for one in found] == []
    assert page_log.errors == []
