"""`ragnb judge` as a user runs it: a dry run, a run, the same again, a judge that fails."""

from __future__ import annotations

import json

import pytest
from judge_server import examiner

import ragnb as rn
from ragnb.cli import main

pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")
SOURCE = ["The pump has a warranty of 730 days."]
CASES = [
    {"sample_id": "a", "question": "How long is the warranty?", "answer": SOURCE[0], "retrieved_contexts": SOURCE},
    {"sample_id": "b", "question": "How long is it?", "answer": "Ten years, 4711.", "retrieved_contexts": SOURCE},
]


@pytest.fixture
def scenario(llm_server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    llm_server.script = examiner
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)), encoding="utf-8")
    path = tmp_path / "mine.yaml"
    profile = f"llm_profiles:\n  judge: {{base_url: '{llm_server.base_url}', model: small}}\n"
    path.write_text(f"cases: cases.jsonl\n{profile}", encoding="utf-8")
    return path


def test_answers_are_judged_kept_and_not_paid_for_twice(scenario, llm_server, capsys, tmp_path):
    words = ["judge", str(scenario), "--out", str(tmp_path / "out" / "judged.csv")]
    assert main([*words, "--dry-run"]) == 0
    assert "8 calls" in capsys.readouterr().out
    assert not llm_server.log
    assert main(words) == 0
    told = capsys.readouterr().out
    assert told.startswith("- Probes before the run")
    assert "2 of 2 answers judged by small" in told
    assert main(words) == 0
    assert len(llm_server.log) == 8
    scores = rn.read_scores(tmp_path / "out" / "judged.csv").set_index("sample_id")
    assert scores["accuracy"].tolist() == [9.5, 2.0]


def test_a_judge_that_fails_is_an_exit_code(scenario, llm_server, tmp_path):
    llm_server.script = lambda request: "no verdict"
    assert main(["judge", str(scenario), "--out", str(tmp_path / "judged.csv"), "--no-probes"]) == 1


def test_a_scenario_without_a_judge_is_refused(tmp_path, capsys):
    (tmp_path / "cases.json").write_text(json.dumps(CASES), encoding="utf-8")
    assert main(["judge", str(tmp_path / "cases.json")]) == 2
    assert "names no judge" in capsys.readouterr().err
