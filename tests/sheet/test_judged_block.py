"""What a judge was paid for is on the page: a block of its own, on its own scale, outside the overall score."""

import json

import numpy as np
import pandas as pd
import pytest

import ragnb as rn
from ragnb.inputs.stages import record_stage

SCORES = [(9, 8, 9), (2, 3, 8), (8, 8, 7), (7, 5, 9), (3, 2, 6), (10, 9, 9)]
WEIGHTS = {"accuracy": 0.5, "completeness": 0.3, "clarity": 0.2}


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    """Cases with the tables that `ragnb evaluate` and `ragnb judge` left, as they record them."""
    monkeypatch.chdir(tmp_path)
    cases = [
        {
            "sample_id": f"s{n}",
            "question": f"Question {n}?",
            "answer": f"Answer {n}.",
            "doc_name": f"d{n % 3}",
        }
        for n in range(len(SCORES))
    ]
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    (tmp_path / "cases.jsonl").write_text(lines, encoding="utf-8")
    scored = pd.DataFrame(cases).assign(
        faithfulness=[1, 0.5, 1, 0.75, 0.25, 1], faithfulness__status="ok"
    )
    scored.to_csv("scores.csv", index=False)
    judged = pd.DataFrame(cases).join(pd.DataFrame(SCORES, columns=[*WEIGHTS]))
    for name in WEIGHTS:
        judged[f"{name}__status"] = "ok"
    judged["suggestion"] = ["", "Quote the figure.", "", "", "Quote the figure", ""]
    judged.to_csv("judged.csv", index=False)

    def made(**settings):
        found = rn.Scenario(cases=tmp_path / "cases.jsonl", **settings)
        record_stage("evaluate", found, tmp_path / "scores.csv")
        record_stage("judge", found, tmp_path / "judged.csv")
        return found

    return made


def test_the_overall_score_is_that_of_the_metrics_and_the_judge_has_its_own(scenario):
    sheet = rn.assess(scenario())
    means = sheet.means.set_index("metric")
    by_hand = sheet.scores.groupby("doc_name")["faithfulness"].mean()
    assert means.loc["faithfulness", "value"] == pytest.approx(sheet.scores["faithfulness"].mean())
    assert means.loc["weighted_score", "value"] == pytest.approx(means.loc["faithfulness", "value"])
    assert len(by_hand) == 3
    row = sheet.passing.iloc[0]
    accuracy = np.array(SCORES)[:, 0]
    assert (row["k"], row["n"]) == ((accuracy >= 7).sum(), len(SCORES))
    weighted = (np.array(SCORES) * [*WEIGHTS.values()]).sum(axis=1)
    assert row["score"] == pytest.approx(weighted.mean())
    assert row["score_low"] < row["score"] < row["score_high"]


@pytest.mark.parametrize("metrics", [None, ("faithfulness",), ("faithfulness", "accuracy")])
def test_the_block_is_on_the_page_whatever_metrics_are_named(scenario, metrics):
    sheet = rn.assess(scenario(metrics=metrics))
    keys = [section.key for section in sheet.sections()]
    assert keys.index("judged") == keys.index("metrics") + 1
    text = sheet.to_markdown()
    assert "4 of 6 answers pass: accuracy at least 7" in text
    assert "66.7 % pass · 95 % CI" in text
    for name, weight in WEIGHTS.items():
        assert f"- {name}: " in text
        assert f"(w={weight:g})" in text
    assert "Quote the figure" in text
    assert "Not validated against human labels" in text
    metrics_part = text.split("## Metric means")[1].split("\n## ")[0]
    assert "accuracy" not in metrics_part


def test_with_rescale_the_dimensions_enter_the_overall_score(scenario):
    sheet = rn.assess(scenario(rescale=True))
    means = sheet.means.set_index("metric")
    scaled = (means.loc[[*WEIGHTS], "value"] - 1) / 9
    parts = scaled @ pd.Series(WEIGHTS) + means.loc["faithfulness", "value"]
    assert means.loc["weighted_score", "value"] == pytest.approx(parts / 2)
    assert sheet.section("judged") is None


def test_a_rubric_alone_has_the_page_of_a_judge(scenario, tmp_path):
    (tmp_path / "scores.csv").unlink()
    sheet = rn.assess(scenario_without_scores(tmp_path, scenario))
    assert sheet.section("judged") is None
    assert sheet.passing.iloc[0]["k"] == 4
    summary = sheet.section("summary")
    kinds = [type(block).__name__ for block in summary.blocks]
    assert "PassMark" in kinds
    assert "Picture" in kinds
    assert sheet.means.set_index("metric").loc["weighted_score", "value"] > 1


def scenario_without_scores(tmp_path, scenario):
    (tmp_path / "scores.csv").write_text("sample_id\n", encoding="utf-8")
    found = scenario()
    for record in (tmp_path / "reports").rglob("evaluate.json"):
        record.unlink()
    return found


def test_a_gate_on_a_dimension_is_told_beside_the_share(scenario):
    gate = rn.Gate("right", "accuracy", ">=", 9.5)
    sheet = rn.assess(scenario(gates=[gate]))
    block = sheet.section("judged").blocks[0]
    assert any("9.5" in str(line) for line in block.lines)


def test_the_block_is_in_chinese_too(scenario):
    text = rn.assess(scenario(lang="zh")).to_markdown()
    assert "6 条回答中有 4 条合格" in text
    assert "评判模型未经人工标注验证" in text


def test_the_editor_weighs_the_metrics_of_one_scale(scenario):
    widgets = pytest.importorskip("ragnb.widgets")
    editor = widgets.WeightEditor(scenario())
    assert {name: editor.metric_weights[name] for name in WEIGHTS} == dict.fromkeys(WEIGHTS, 0)
