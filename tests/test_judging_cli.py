"""`ragnb judge` as a user runs it: a dry run, a run, the same again, a judge that fails."""

from __future__ import annotations

import json
import re

import pytest
from judge_server import examiner

import ragnb as rn
from ragnb.cli import main
from ragnb.store import Store

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


def test_runs_of_several_systems_are_not_averaged_and_the_advice_gives_runs_of_one(
    scenario, llm_server, capsys, tmp_path
):
    """BAD falls from 9.5 to 2; GOOD, judged in the second run alone, must not turn that into a rise."""
    store, path = str(tmp_path / "a.sqlite"), tmp_path / "cases.jsonl"

    def judged(cases, *more):
        path.write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
        words = ["judge", str(scenario), "--store", store, "--out", str(tmp_path / "out.csv"), "--no-probes"]
        assert main([*words, *more]) == 0
        with Store(store) as opened:
            return opened.runs()["run"].iloc[-1]

    before = judged([CASES[0] | {"system": "bad"}])
    rest = CASES[0] | {"system": "good", "retrieved_contexts": None}  # judged without passages: another prompt
    cases = [CASES[0] | {"system": "bad", "answer": "Ten years, 4711."}, CASES[0] | {"system": "good"}, rest]
    both = judged(cases)
    capsys.readouterr()
    for words in ((before, both), (both, before)):
        assert main(["compare", *(f"{store}#{run}" for run in words)]) == 2
        said = capsys.readouterr()
        assert not said.out
        assert f"run='{both}' contains 3 answers to sample 'a' (rubric)" in said.err
        assert "-p 'where={system: NAME}'" in said.err
    calls = len(llm_server.log)
    after = judged(cases, "-p", "where={system: bad}")
    assert len(llm_server.log) == calls, "answers already judged are reused"
    capsys.readouterr()
    assert main(["compare", f"{store}#{after}", f"{store}#{before}"]) == 0
    assert re.search(r"accuracy +9\.500 +2\.000 +−7\.500 +○ inconclusive ", capsys.readouterr().out)


def test_a_run_of_two_systems_is_refused_also_where_they_share_no_sample(scenario, llm_server, capsys, tmp_path):
    def judged(*systems):
        path, words = tmp_path / "cases.jsonl", ["judge", str(scenario), "--store", str(tmp_path / "a.sqlite")]
        cases = [{**CASES[0], "sample_id": f"q{n}", "system": name} for n, name in enumerate(systems)]
        path.write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
        assert main([*words, "--out", str(tmp_path / "out.csv"), "--no-probes"]) == 0
        with Store(tmp_path / "a.sqlite") as opened:
            return opened.runs()["run"].iloc[-1]

    one, both = judged("bad"), judged("bad", "good", None)
    for words in ((one, both), (both, one), (both, both)):
        assert main(["compare", *(f"{tmp_path / 'a.sqlite'}#{run}" for run in words)]) == 2
        assert f"run='{both}' has several systems: bad, good" in capsys.readouterr().err
    store = tmp_path / "a.sqlite"
    assert main(["compare", f"{store}#{one}", f"{store}#{judged('good', 'good')}"]) == 0


def test_repeats_of_one_system_are_compared_as_their_mean(scenario, tmp_path, capsys):
    store = str(tmp_path / "a.sqlite")
    for n in ("2", "3"):
        words = ["judge", str(scenario), "--store", store, "--out", str(tmp_path / "out.csv"), "--no-probes"]
        assert main([*words, "--repeats", n]) == 0
    with Store(store) as opened:
        ids = opened.runs()["run"].tolist()
    assert main(["compare", *(f"{store}#{run}" for run in ids)]) == 0


def test_an_arena_compares_every_pair_of_systems(scenario, tmp_path, capsys):
    asked = [CASES[0] | {"sample_id": f"q{i}", "question": f"How long is warranty {i}?"} for i in range(12)]
    good = [case | {"system": "good"} for case in asked]
    bad = [case | {"answer": "Ten years, 4711.", "system": "bad"} for case in good]
    same = [case | {"system": "twin"} for case in good]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, good + bad + same)), encoding="utf-8")
    assert main(["judge", str(scenario), "--no-probes", "--arena"]) == 0
    told = capsys.readouterr().out
    assert "Rank 1–2: good" in told
    assert "Rank 1–2: twin" in told
    assert "Rank 3: bad" in told
    row = next(line for line in told.splitlines() if line.startswith("good − bad"))
    assert "better" in row
    assert "12/0/0" in row
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)), encoding="utf-8")
    assert main(["judge", str(scenario), "--no-probes", "--arena"]) == 2
    assert "names two or more" in capsys.readouterr().err
