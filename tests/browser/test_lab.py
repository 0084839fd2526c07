"""The weight editor and the sheets in a real JupyterLab, by mouse and by keyboard, and the editor in Voila."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
from pathlib import Path

import pandas as pd
import pytest

import ragnb as rn
from ragnb.calibration import read_ratings
from ragnb.scoring.generation import reviewed

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("lab", Path(__file__).with_name("lab.py"))
lab = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(lab)
EDITOR = (
    "from ragnb.widgets import WeightEditor\neditor = WeightEditor('scenarios/{}.yaml')\neditor"
)
SHEET = "import os; open('kernel', 'w').write(str(os.getpid()))\n"
SHEET += "from ragnb.widgets import RatingSheet\nRatingSheet('items.json', 'marks.jsonl', rater='甲', lang='zh')"
REVIEW = "import pandas as pd\nfrom ragnb.widgets import ReviewSheet\n"
REVIEW += "ReviewSheet(pd.read_json('questions.json'), file='review.csv', lang='zh')"
# The fields beside the sliders follow one after the other.
SUM = """units => {
  const fields = [...document.querySelectorAll('.rg-row:not(:has(button)) input')];
  return fields.reduce((sum, field) => sum + Math.round(100 * field.value), 0) === units;
}"""
SYSTEMS = """\
import warnings; warnings.simplefilter('ignore')
import pandas as pd
from ragnb.widgets import WeightEditor
editor = WeightEditor(pd.read_csv('data/quickstart/scores.csv'), metrics={})
editor"""
# The mark of a slider, in pixels from its left end, and the width of the slider.
MARK = """row => {
  const base = row.querySelector('.noUi-base'), mark = getComputedStyle(base, '::after');
  return [mark.display === 'block' ? parseFloat(mark.left) : null, base.getBoundingClientRect().width];
}"""
THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"
MEASURED = ["context_recall", "context_relevance", "answer_correctness"]
DOCUMENT = "员工休假管理办法.pdf"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    for name in ("scenarios", "data"):
        shutil.copytree(ROOT / name, folder / name)
    items = [
        {
            "sample_id": f"q{i}",
            "question": f"第 {i} 问？",
            "answer": f"第 {i} 答。<script>alert(1)</script>",
            "retrieved_contexts": ["依据一", "依据二"],
            "doc_name": "甲.pdf",
            "system": "strong",
        }
        for i in range(5)
    ]
    (folder / "items.json").write_text(json.dumps(items), encoding="utf-8")
    questions = [
        {
            "sample_id": f"s{i}",
            "question": f"第 {i} 问？<script>alert(1)</script>",
            "doc_name": "甲.md",
            "ground_truth_answer": f"第 {i} 答。",
            "generation_params": {"kind": "single", "evidence": [f"原文第 {i} 句。", "另一句。"]},
        }
        for i in range(5)
    ]
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    lab.notebook(folder / "review.ipynb", REVIEW)
    lab.notebook(folder / "en.ipynb", EDITOR.format("quickstart"))
    lab.notebook(folder / "zh.ipynb", EDITOR.format("simulated_judge"))
    lab.notebook(folder / "two.ipynb", SYSTEMS.format(MEASURED))
    lab.notebook(folder / "rate.ipynb", SHEET)
    return folder


@pytest.fixture(scope="module")
def server(home):
    with lab.Lab(home) as running:
        yield running


@pytest.fixture
def page(page):
    page.set_viewport_size({"width": 1200, "height": 1300})
    page.set_default_timeout(30_000)
    return page


def shot(page, folder: Path, name: str) -> None:
    """Keep a picture, for people to look at."""
    path = folder / f"{name}.png"
    page.screenshot(path=path)
    assert path.stat().st_size > 20_000


def findings(page) -> list[str]:
    """What axe finds seriously wrong in our own widgets."""
    from accessibility import violations

    found = violations(page, context=".rg-editor")
    return [
        f"{one['id']}: {one['nodes'][0]['html']}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


SCORE = "document.querySelector('.rg-editor .rg-big').parentNode.innerText"


def score(page) -> str:
    """Return the score as it is shown, with its interval."""
    return " ".join(page.evaluate(SCORE).split())


def turned(page, before: str) -> str:
    """Wait until the score is another one, and return it."""
    page.wait_for_function(f"was => {SCORE}.split(/\\s+/).join(' ') !== was", arg=before)
    return score(page)


def row(page, name: str):
    return page.locator(".rg-row", has=page.locator(f"label:text-is('{name}')"))


SETTLED = """row => {
  const field = row.querySelector('input'), handle = row.querySelector('.noUi-handle');
  return Math.abs((field.value || field.placeholder) - handle.getAttribute('aria-valuetext')) < 1e-9;
}"""


def settled(page, name: str) -> float:
    """Wait until the number beside a slider is the slider's, and return it."""
    page.wait_for_function(SETTLED, arg=row(page, name).element_handle())
    return float(row(page, name).locator("input").input_value())


def test_weights_are_turned_by_mouse_and_keys_saved_and_there_after_a_reload(
    server, page, page_log, home, tmp_path
):
    path = home / "scenarios" / "quickstart.yaml"
    before = path.read_bytes()
    server.open(page, "en.ipynb")
    page.wait_for_selector(".rg-editor .noUi-handle")
    first = score(page)
    total = rn.assess(path).means.iloc[-1]
    ends = f"{total['low']:.3f}–{total['high']:.3f}"
    said = f"Overall score {total['value']:.3f} ▲ good, but a gate failed Gates: ■ 1 failed"
    assert first.startswith(said)
    assert f"95 % CI {ends}" in first
    assert not findings(page)
    assert page.locator("[class^=rg-twin]").is_hidden()

    handle = row(page, "answer_correctness").locator(".noUi-handle")
    assert handle.get_attribute("aria-label") == "answer_correctness"
    radar = page.locator(".rg-editor figure svg").inner_html()
    box = handle.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 30, box["y"] + 8, steps=8)
    page.mouse.up()
    turned(page, first)
    assert page.locator(".rg-editor figure svg").inner_html() != radar

    dragged = settled(page, "answer_correctness")
    handle.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    typed = round(dragged + 0.03, 2)
    page.wait_for_function(
        f"row => +row.querySelector('input').value === {typed}",
        arg=row(page, "answer_correctness").element_handle(),
    )
    third = score(page)

    search = page.get_by_label("Add a document")
    offered = page.locator(".rg-hits button")
    search.fill("pdf")
    page.wait_for_function("() => document.querySelectorAll('.rg-hits button').length > 1")
    assert all("pdf" in name for name in offered.all_text_contents())
    search.press("Enter")
    page.get_by_text("documents contain “pdf”; choose one").wait_for()
    search.fill("no such")
    search.press("Enter")
    page.get_by_text("No other document contains “no such”").wait_for()
    search.fill("休假")
    offered.filter(has_text=DOCUMENT).click()
    field = row(page, DOCUMENT).locator("input")
    field.fill("-3")
    field.press("Enter")
    page.get_by_text("-3 is below 0").wait_for()
    field.fill("40")
    field.press("Enter")
    fourth = turned(page, third)
    page.get_by_text(re.compile(f"{DOCUMENT} accounts for")).first.wait_for()
    page.locator(".rg-editor").get_by_role("button", name="Remove warranty-policy.pdf").click()
    page.wait_for_function("() => document.querySelectorAll('.rg-row').length === 9")
    assert fourth == score(page) or turned(page, fourth)
    shot(page, tmp_path, "turned")

    page.locator(".rg-editor").get_by_role("button", name="Save…").click()
    page.locator("pre.rg-diff").wait_for()
    assert f"+  {DOCUMENT}: 40" in page.locator("pre.rg-diff").text_content()
    assert not findings(page)
    shot(page, tmp_path, "diff")
    page.locator(".rg-editor").get_by_role("button", name="Write").click()
    page.get_by_text("Saved quickstart.yaml").wait_for()
    after = path.read_text(encoding="utf-8")
    expected = before.decode().replace("answer_correctness: 0.35", f"answer_correctness: {typed}")
    expected = expected.replace("  warranty-policy.pdf: 1.5\n", "")
    expected = expected.replace("指南.pdf: 0.5\n", f"指南.pdf: 0.5\n  {DOCUMENT}: 40.0\n")
    assert after == expected
    last = score(page)

    page.evaluate(SAVE)  # else leaving the page asks
    server.open(page, "en.ipynb")
    page.wait_for_selector(".rg-editor .noUi-handle")
    page.wait_for_function(f"was => {SCORE}.split(/\\s+/).join(' ').startsWith(was)", arg=last[:40])
    assert row(page, DOCUMENT).locator("input").input_value() == "40"
    assert not page_log.dialogs


def test_chinese_editor_is_legible_in_dark_and_narrow(server, page, tmp_path):
    server.open(page, "zh.ipynb")
    page.wait_for_selector(".rg-editor .noUi-handle")
    shot(page, tmp_path, "chinese")
    page.evaluate(THEME, "JupyterLab Dark")
    page.wait_for_selector("body[data-jp-theme-light=false]", state="attached")
    assert not findings(page)
    shot(page, tmp_path, "dark")
    page.evaluate(THEME, "JupyterLab Light")
    page.wait_for_selector("body[data-jp-theme-light=true]", state="attached")
    page.set_viewport_size({"width": 700, "height": 1600})
    page.wait_for_function("document.querySelector('.rg-editor').clientWidth < 660")
    wide = page.evaluate(
        "() => {const e = document.querySelector('.rg-editor'); return e.scrollWidth - e.clientWidth}"
    )
    assert wide <= 1
    shot(page, tmp_path, "narrow")
    before = score(page)
    page.locator(".rg-editor").get_by_role("button", name="全部相等").click()
    turned(page, before)
    page.locator(".rg-editor").get_by_role("button", name="归一化").click()
    page.wait_for_function(SUM, arg=100)


def test_a_slider_marks_where_the_other_system_leads(server, page, tmp_path):
    server.open(page, "two.ipynb")
    page.wait_for_selector(".rg-editor .rg-flip")
    scores = pd.read_csv(ROOT / "data" / "quickstart" / "scores.csv")
    found = rn.weight_map(scores, baseline="weak", metrics=MEASURED)
    share = found.flips.set_index("metric")["flip"]["context_relevance"]
    at = 2 * share / (1 - share)  # the two others weigh 1 each
    slider = row(page, "context_relevance")
    left, width = slider.evaluate(MARK)
    assert left == pytest.approx(width * at / 2, abs=1)
    assert slider.locator(".rg-flip").text_content() == f"weak leads above {at:.3g}"
    assert row(page, "context_recall").evaluate(MARK)[0] is None
    handle = slider.locator(".noUi-handle")
    assert handle.get_attribute("aria-describedby") == slider.locator(".rg-flip").get_attribute(
        "id"
    )
    assert not findings(page)
    shot(page, tmp_path, "marked")
    handle.focus()
    page.keyboard.press("End")  # at the right end the other system leads
    slider.locator(".rg-flip", has_text=f"strong leads below {at:.3g}").wait_for()
    assert handle.evaluate("handle => handle === document.activeElement")
    page.evaluate(THEME, "JupyterLab Dark")
    page.wait_for_selector("body[data-jp-theme-light=false]", state="attached")
    assert not findings(page)
    shot(page, tmp_path, "marked-dark")


GONE = ".rg-editor .rg-gone"


def test_five_items_are_rated_by_keys_through_the_death_of_the_kernel(
    server, page, page_log, home, tmp_path
):
    server.open(page, "rate.ipynb")
    keys = page.locator(".rg-keys input")
    keys.wait_for()
    assert page.locator(GONE).is_hidden()
    bands = page.locator(".rg-bands", has_text="资料中没有却编出了答案").bounding_box()
    question = page.locator(".rg-question").bounding_box()
    assert abs(bands["y"] - question["y"]) < 300  # the rubric stands beside the answer
    assert not findings(page)
    shot(page, tmp_path, "rating")
    page.get_by_label("备注").fill("依据不足")
    for done, marks in enumerate(("897", "560"), 1):
        keys.focus()
        page.keyboard.type(marks)
        page.get_by_text(f"已评 {done} / 5").first.wait_for()
    assert page.get_by_label("备注").input_value() == ""
    before = (home / "marks.jsonl").read_bytes()
    os.kill(int((home / "kernel").read_text()), signal.SIGKILL)
    page.get_by_role("button", name="OK").click()  # JupyterLab says that it starts another one
    page.wait_for_function(lab.CONNECTED)
    keys.focus()
    page.keyboard.type("33")
    page.locator(GONE).wait_for()
    assert "不会被记录" in page.locator(GONE).text_content()
    assert not findings(page)
    shot(page, tmp_path, "gone")
    assert (home / "marks.jsonl").read_bytes() == before
    page.evaluate(lab.RUN)
    page.locator(GONE).wait_for(state="hidden")
    page.get_by_text("已评 2 / 5").first.wait_for()
    keys.focus()
    page.keyboard.type("444")
    page.get_by_text("已评 3 / 5").first.wait_for()
    for done in (4, 5):
        # A button that still shows the score of the answer before would not send it once more.
        page.wait_for_function("document.querySelectorAll('.rg-scores .mod-active').length === 0")
        for name in ("accuracy", "completeness", "clarity"):
            row = page.locator(".rg-row", has=page.locator(f"label:text-is('{name}')"))
            row.get_by_role("button", name="7", exact=True).click()
        if done == 4:
            page.get_by_text("已评 4 / 5").first.wait_for()
    page.get_by_text("5 题全部评完").first.wait_for()
    assert page.locator(GONE).is_hidden()
    found = read_ratings(home / "marks.jsonl")
    assert len(found) == 15
    assert sorted(found["human"]) == sorted([8, 9, 7, 5, 6, 10, *[4] * 3, *[7] * 6])
    assert found["comment"].dropna().tolist() == ["依据不足"] * 3
    assert not page_log.dialogs


def test_five_questions_are_reviewed_by_keys_and_buttons(server, page, page_log, home, tmp_path):
    server.open(page, "review.ipynb")
    keys = page.locator(".rg-keys input")
    keys.wait_for()
    assert page.get_by_text("原文第 0 句。").is_visible()
    assert not findings(page)
    shot(page, tmp_path, "review")
    keys.focus()
    page.keyboard.type("kd")
    page.get_by_text("已审 2 / 5").first.wait_for()
    page.keyboard.type("e")
    wording = page.get_by_label("问题", exact=True)
    wording.wait_for()
    page.wait_for_function("() => document.activeElement.tagName === 'TEXTAREA'")
    assert wording.input_value().startswith("第 2 问？")
    assert not findings(page)
    shot(page, tmp_path, "edit")
    wording.fill("改写后的问题？")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="保存修改").click()
    page.get_by_text("已审 3 / 5").first.wait_for()
    assert read_review(home) == ["keep", "drop", "edit", "", ""]
    page.get_by_role("button", name="删除 (d)").click()
    page.get_by_text("已审 4 / 5").first.wait_for()
    page.evaluate(lab.RUN)
    page.locator(".rg-question", has_text="第 4 问").wait_for()
    page.locator(".rg-keys input").focus()
    page.keyboard.type("k")
    page.get_by_text("5 题全部审完").first.wait_for()
    assert read_review(home) == ["keep", "drop", "edit", "drop", "keep"]
    assert page.locator(GONE).is_hidden()
    questions = pd.DataFrame(json.loads((home / "questions.json").read_text(encoding="utf-8")))
    left = reviewed(questions, home / "review.csv")
    assert left["sample_id"].tolist() == ["s0", "s2", "s4"]
    assert left["question"].iloc[1] == "改写后的问题？"
    assert not page_log.dialogs


def read_review(home: Path) -> list[str]:
    return pd.read_csv(home / "review.csv", keep_default_na=False)["decision"].tolist()


def test_voila_shows_the_same_editor(home, page, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with lab.Voila(home, "zh.ipynb", port) as running:
        page.goto(running.url)
        page.wait_for_selector(".rg-editor .noUi-handle", timeout=60_000)
        before = score(page)
        handle = row(page, "faithfulness").locator(".noUi-handle")
        handle.focus()
        page.keyboard.press("Home")
        turned(page, before)
        shot(page, tmp_path, "voila")
