"""The report page in a real browser: quiet, whole, and deaf to what strangers wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragnb.report import report

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
    assert page.locator("script, iframe, img, [onload], [onerror]").count() == 0
    assert page.title() == PAYLOADS[6]
    text = page.content()
    shown = page.locator("body").text_content()
    assert all(payload in shown for payload in (PAYLOADS[0], PAYLOADS[1], PAYLOADS[2]))
    assert "<script>" not in text


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
