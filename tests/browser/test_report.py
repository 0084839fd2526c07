"""The report page in a real browser: quiet, whole, and deaf to what strangers wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from ragnb.report import index, report

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    '"><svg onload=alert(3)>',
    "</style><script>alert(4)</script>",
    "javascript:alert(5)",
    "'};alert(6);//",
    "</title><script>alert(7)</script>",
    "<iframe srcdoc='<script>alert(8)</script>'>",
]


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    return report(ROOT / "scenarios" / "quickstart.yaml", out=tmp_path_factory.mktemp("reports")).html


@pytest.fixture(scope="module")
def chinese(tmp_path_factory):
    return report(ROOT / "scenarios" / "simulated_judge.yaml", out=tmp_path_factory.mktemp("reports")).html


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A report in which every text that a stranger writes is a payload, in turn."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = []
    for place in range(24):
        text = PAYLOADS[place % len(PAYLOADS)]
        row = dict.fromkeys(
            ("question", "answer", "doc_name", "system", "ground_truth_answer"), f"{text}{place % 3}"
        )
        row |= {"sample_id": f"{text}{place}", "retrieved_contexts": [text], "faithfulness": place % 5 / 10}
        rows.append(row | {f"m {text[:40]}": 0.1, "faithfulness__reason": text, PAYLOADS[1]: 0.2})
    (folder / "scores.json").write_text(json.dumps(rows), encoding="utf-8")
    metrics = ["faithfulness", {"name": PAYLOADS[1], "low": 0, "high": 1}]
    gates = [{"name": PAYLOADS[2], "metric": PAYLOADS[1], "op": ">=", "at": 0.5}]
    settings = {
        "scores": "scores.json",
        "title": PAYLOADS[6],
        "name": PAYLOADS[0],
        "metrics": metrics,
        "gates": gates,
    }
    (folder / "hostile.yaml").write_text(json.dumps(settings), encoding="utf-8")
    return report(folder / "hostile.yaml", out=folder / "reports").html


@pytest.fixture(scope="module")
def runs(quickstart, hostile, tmp_path_factory):
    """Folders of reports as a browser meets them: two runs of one scenario, a hostile one, one that failed."""
    out = tmp_path_factory.mktemp("runs")
    for page, name in ((quickstart, "20260101T000000Z-00000000"), (quickstart, ""), (hostile, "")):
        shutil.copytree(page.parent, out / page.parents[1].name / (name or page.parent.name))
    (out / "quickstart" / "20260102T000000Z-00000000.failed").mkdir()
    return out


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_index_opens_offline_in_both_themes_and_axe_finds_nothing(lang, scheme, runs, page, page_log):
    file = index(runs, lang=lang)
    page.emulate_media(color_scheme=scheme)
    page.goto(file.as_uri())
    assert page_log.requests == [file.as_uri()]
    assert (page_log.errors, page_log.dialogs) == ([], [])
    assert page.locator("script, iframe, img").count() == 0
    assert PAYLOADS[0] in page.locator("main").text_content()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found] == []


def test_index_draws_each_total_where_it_lies_and_leads_to_its_report(runs, page):
    page.goto(index(runs).as_uri())
    table = page.locator("table").last
    row = table.locator("tbody tr").filter(has_text="quickstart").first
    record = next(runs.glob("quickstart/*-00000000/run.json")).read_text(encoding="utf-8")
    line, dot = (row.locator(f"svg {shape}") for shape in (".rg-interval", "circle"))
    total, axis = json.loads(record)["overall"], row.locator("svg line").first
    left, right = (float(axis.get_attribute(end)) for end in ("x1", "x2"))
    for mark, name, key in ((dot, "cx", "value"), (line, "x1", "low"), (line, "x2", "high")):
        assert float(mark.get_attribute(name)) == pytest.approx(left + (right - left) * total[key], abs=0.1)
    row.get_by_role("link").click()
    page.wait_for_url("**/quickstart/*/report.html")
    assert "retriever" in page.title()


@pytest.mark.parametrize("name", ["quickstart", "chinese", "hostile"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_asks_for_itself_alone_and_says_nothing(name, scheme, request, page, page_log):
    file = request.getfixturevalue(name)
    page.emulate_media(color_scheme=scheme)
    page.goto(file.as_uri())
    for part in page.locator("summary").all():
        part.click()
    page.wait_for_timeout(200)
    assert page_log.requests == [file.as_uri()]
    assert page_log.errors == []
    assert page_log.dialogs == []


def test_payloads_stay_text(hostile, page):
    page.goto(hostile.as_uri())
    assert page.locator("iframe, img, [onload], [onerror]").count() == 0
    assert page.locator("script").count() == 1
    assert page.title() == PAYLOADS[6]
    text = page.content()
    shown = page.locator("body").text_content()
    assert all(payload in shown for payload in (PAYLOADS[0], PAYLOADS[1], PAYLOADS[2]))
    assert text.count("<script>") == 1


def test_unfolded_payloads_stay_text(hostile, page, page_log):
    page.goto(hostile.as_uri())
    buttons = page.locator(".rg-browse td button")
    assert buttons.count() == 24
    for button in buttons.all():
        button.click()
    assert page.locator(".rg-open").count() == 24
    assert page.locator(".rg-browse :is(script, iframe, img, svg, a)").count() == 0
    shown = page.locator(".rg-browse").text_content()
    assert all(payload in shown for payload in PAYLOADS)
    assert (page_log.dialogs, page_log.errors) == ([], [])


def test_every_question_is_searched_sorted_picked_and_unfolded(quickstart, page):
    page.goto(quickstart.as_uri())
    table, told = page.locator(".rg-browse table"), page.locator(".rg-browse [role=status]")
    lines = table.locator("tbody > tr")
    assert "80 in all" in told.text_content()
    assert lines.count() == 50
    page.get_by_role("button", name="Next").click()
    assert lines.count() == 30
    page.get_by_role("searchbox").fill("WARRANTY 30")
    expect(told).not_to_contain_text("of 80 found")
    assert 0 < lines.count() < 10
    lines.first.get_by_role("button").press("Enter")
    opened = page.locator(".rg-open").text_content().lower()
    assert "warranty" in opened or "30" in opened
    page.get_by_role("searchbox").fill("差旅")
    expect(lines.first.locator("td").nth(2)).to_contain_text("差旅")
    page.get_by_role("searchbox").fill("")
    expect(lines).to_have_count(50)
    page.get_by_role("combobox", name="label").select_option(index=1)
    labels = {line.locator("td").nth(3).text_content() for line in lines.all()}
    assert len(labels) == 1
    page.get_by_role("combobox", name="label").select_option(index=0)
    head = table.get_by_role("columnheader", name="weighted score")
    for direction in ("ascending", "descending"):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == direction
        values = [line.locator("td").nth(5).text_content() for line in lines.all()]
        numbers = [float(value) for value in values if not value.startswith("—")]
        assert numbers == sorted(numbers, reverse=direction == "descending")
        assert values[: len(numbers)] == [value for value in values if not value.startswith("—")]
    page.get_by_role("searchbox").fill("no such words at all")
    expect(lines).to_have_count(0)
    expect(told).to_have_text("No question fits; 80 in all")


def test_questions_are_read_without_scripts(quickstart, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(quickstart.as_uri())
    assert page.locator(".rg-browse table tbody tr").count() == 50
    context.close()


def test_printed_on_a4_no_table_is_wider_than_the_page(quickstart, page):
    page.goto(quickstart.as_uri())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 702, "height": 1000})  # 186 mm: A4 without its margins
    wide = "nodes => nodes.filter(n => n.getBoundingClientRect().right > 703).map(n => n.outerHTML.slice(0, 80))"
    assert page.locator("table, svg, p, figure").evaluate_all(wide) == []


@pytest.mark.parametrize("name", ["quickstart", "chinese"])
@pytest.mark.parametrize("width", [1280, 700])
def test_page_fits_its_width_and_the_first_screen_holds_question_one(name, width, request, page, tmp_path):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(request.getfixturevalue(name).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 1280:
        box = page.locator(".rg-cards").first.bounding_box()
        assert box["y"] + box["height"] <= 800
    page.screenshot(path=tmp_path / f"{name}-{width}.png", full_page=True)
    assert (tmp_path / f"{name}-{width}.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["quickstart", "chinese"])
def test_every_picture_and_link_has_words(name, request, page):
    page.goto(request.getfixturevalue(name).as_uri())
    pictures = page.locator("svg, img")
    assert pictures.count() > 5
    for picture in pictures.all():
        hidden = picture.get_attribute("aria-hidden") == "true"
        assert hidden or picture.get_attribute("aria-label") or picture.get_attribute("alt")
    for link in page.locator("nav a").all():
        assert link.text_content().strip()
        target = link.get_attribute("href").removeprefix("#")
        assert page.locator(f'[id="{target}"]').count() == 1


@pytest.mark.parametrize("name", ["quickstart", "chinese"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(name, scheme, request, page):
    page.emulate_media(color_scheme=scheme)
    page.goto(request.getfixturevalue(name).as_uri())
    for part in page.locator("summary").all():
        part.click()
    found = Axe().run(page).response["violations"]
    told = [(v["id"], v["nodes"][0]["html"][:120]) for v in found if v["impact"] in ("serious", "critical")]
    assert told == []
