"""The index of all runs in a real browser, and what leads from it to the reports."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from accessibility import violations
from pages import PAYLOADS

from ragnb.report import index, report

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    return report(
        ROOT / "scenarios" / "quickstart.yaml", out=tmp_path_factory.mktemp("reports")
    ).html


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A report in which every text that a stranger writes is a payload, in turn."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = []
    for place in range(24):
        text = PAYLOADS[place % len(PAYLOADS)]
        row = dict.fromkeys(
            ("question", "answer", "doc_name", "system", "ground_truth_answer"),
            f"{text}{place % 3}",
        )
        row |= {
            "sample_id": f"{text}{place}",
            "retrieved_contexts": [text],
            "faithfulness": place % 5 / 10,
        }
        rows.append(row | {f"m {text[:40]}": 0.1, "faithfulness__reason": text, PAYLOADS[1]: 0.2})
    (folder / "scores.json").write_text(json.dumps(rows), encoding="utf-8")
    metrics = ["faithfulness", {"name": PAYLOADS[1], "low": 0, "high": 1}]
    gates = [{"name": PAYLOADS[2], "metric": PAYLOADS[1], "op": ">=", "threshold": 0.5}]
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
def test_index_opens_offline_in_both_themes_and_axe_finds_nothing(
    lang, scheme, runs, page, page_log
):
    file = index(runs, lang=lang)
    page.emulate_media(color_scheme=scheme)
    page.goto(file.as_uri())
    assert page_log.requests == [file.as_uri()]
    assert (page_log.errors, page_log.dialogs) == ([], [])
    assert page.locator("script, iframe, img").count() == 0
    assert PAYLOADS[0] in page.locator("main").text_content()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    found = violations(page)
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found] == []


def test_index_draws_each_total_where_it_lies_and_leads_to_its_report(runs, page):
    page.goto(index(runs).as_uri())
    table = page.locator("table").last
    row = table.locator("tbody tr").filter(has_text="quickstart").first
    record = next(runs.glob("quickstart/*-00000000/run.json")).read_text(encoding="utf-8")
    line, dot = (row.locator(f"svg {shape}") for shape in (".ci", ".dot"))
    total, axis = json.loads(record)["overall"], row.locator("svg .axis").get_attribute("d")
    left, right = map(float, re.match(r"M(\d+) \S+H(\d+)", axis).groups())
    for mark, name, key in ((dot, "cx", "value"), (line, "x1", "low"), (line, "x2", "high")):
        assert float(mark.get_attribute(name)) == pytest.approx(
            left + (right - left) * total[key], abs=0.1
        )
    row.get_by_role("link").click()
    page.wait_for_url("**/quickstart/*/report.html")
    assert "retriever" in page.title()
