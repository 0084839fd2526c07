"""The Markdown of a sheet as scripts of continuous integration read it: with grep, line by line."""

import json
import re

import pandas as pd
import pytest

import ragnb as rn
from ragnb.sheet import for_scripts

GOLD = [
    {"qid": "q1", "q": "a?", "answerable": True, "gold_ids": ["d1"]},
    {"qid": "q2", "q": "b?", "answerable": True, "gold_ids": ["d2"]},
    {"qid": "q3", "q": "c?", "answerable": True, "gold_ids": ["d3"]},
    {"qid": "q4", "q": "d?", "answerable": False, "gold_ids": []},
    {"qid": "q5", "q": "e|f?", "answerable": False, "gold_ids": []},
]
ANSWERS = ["Yes. [d1]", "Yes. [d9]", "not in context", "not in context", "Yes. [d1]"]
CODES = ["OK", "ANS_NO_HIT", "OVER_REFUSAL", "REFUSAL_OK", "HALLUCINATION"]


@pytest.fixture
def checked(tmp_path):
    traces = [
        {
            "qid": row["qid"],
            "q": row["q"],
            "answer": answer,
            "chunks": [{"id": "d1"}],
            "citations": re.findall(r"\[(\w+)\]", answer),
        }
        for row, answer in zip(GOLD, ANSWERS, strict=True)
    ]
    (tmp_path / "gold.json").write_text(json.dumps(GOLD))
    (tmp_path / "traces.jsonl").write_text("".join(json.dumps(one) + "\n" for one in traces))
    return rn.assess(rn.Scenario(traces=tmp_path / "traces.jsonl", gold=tmp_path / "gold.json"))


def rows_of(markdown, heading):
    part = markdown.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_each_question_has_a_row_with_its_code(checked):
    heads, _, *rows = rows_of(checked.to_markdown(), "Labels by question")
    assert heads == ["qid", "answered", "hit", "refusal", "label"]
    assert [(row[0], row[-1]) for row in rows] == [
        (gold["qid"], code) for gold, code in zip(GOLD, CODES, strict=True)
    ]
    by_id = {row[0]: row[1:4] for row in rows}
    assert by_id["q1"] == ["1", "1", "0"]
    assert by_id["q3"] == ["0", "0", "1"]
    frame = checked.scores.set_index("sample_id")
    for qid, (answered, hit, refusal) in by_id.items():
        for name, cell in (("answered", answered), ("hit", hit), ("refused", refusal)):
            value = frame.loc[qid, name]
            assert cell == ("" if pd.isna(value) else str(int(value)))


def test_what_is_left_out_is_said_and_right_answers_go_first(checked, monkeypatch):
    monkeypatch.setattr(for_scripts, "MOST_QUESTIONS", 3)
    text = checked.to_markdown()
    rows = rows_of(text, "Labels by question")[2:]
    assert [row[-1] for row in rows] == ["ANS_NO_HIT", "OVER_REFUSAL", "HALLUCINATION"]
    assert "2 more questions with labels are in scores.csv" in text


def test_the_means_are_lines_below_a_heading_that_stays():
    scores = pd.DataFrame({"faithfulness": [1.0, 0.5, 0.9], "context_recall": [0.2, 0.4, 0.1]})
    weights = {"faithfulness": 0.35, "context_recall": 0.65}
    sheet = rn.assess(scores, metric_weights=weights)
    lines = sheet.to_markdown().split("\n## Metric means\n")[1].splitlines()
    faithfulness = scores["faithfulness"].mean()
    recall = scores["context_recall"].mean()
    total = 0.35 * faithfulness + 0.65 * recall
    begins = [f"- **weighted_score: {total:.4f}**", f"- faithfulness: {faithfulness:.4f} (w=0.35)"]
    for begin in begins:
        assert sum(line.startswith(begin) for line in lines) == 1
    assert "Metrics" in sheet.section("metrics").name, "the page keeps its own heading"


def test_a_sheet_without_labels_has_no_such_table():
    assert "## Labels" not in rn.assess(pd.DataFrame({"faithfulness": [1.0, 0.5]})).to_markdown()


def test_several_systems_are_told_apart(checked, tmp_path):
    rows = (tmp_path / "traces.jsonl").read_text().splitlines()
    both = [json.loads(row) | {"system": name} for name in ("new", "old") for row in rows]
    (tmp_path / "both.jsonl").write_text("".join(json.dumps(one) + "\n" for one in both))
    sheet = rn.assess(rn.Scenario(traces=tmp_path / "both.jsonl", gold=tmp_path / "gold.json"))
    heads, _, *rows = rows_of(sheet.to_markdown(), "Labels by question")
    assert heads[0] == "system"
    assert len(rows) == len(both)
    assert {row[0] for row in rows} == {"new", "old"}
