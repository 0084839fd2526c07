"""`ragnb judge` as a user runs it: a dry run, a run, the same again, a judge that fails."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from closing_line import closing
from judge_server import CASES, SOURCE, examiner
from llm_server import Answer

import ragnb as rn
from ragnb.cli import main
from ragnb.store import Store

pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")


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
    paid = closing(told)
    assert paid["sent"] == len(llm_server.log)
    assert main(words) == 0
    assert len(llm_server.log) == 8
    scores = rn.read_scores(tmp_path / "out" / "judged.csv").set_index("sample_id")
    assert scores["accuracy"].tolist() == [9.5, 2.0]
    assert paid["probes"] == 6
    assert paid["done"] == paid["asked"] == len(scores) + paid["probes"]
    again = closing(capsys.readouterr().out)
    assert (again["reused"], again["asked"], again["sent"]) == (paid["asked"], paid["asked"], 0)


def test_a_judge_that_fails_is_an_exit_code(scenario, llm_server, capsys, tmp_path):
    unanswered = CASES[0] | {"sample_id": "c", "answer": None}
    cases = [*CASES, unanswered]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
    llm_server.script = lambda request: "no verdict"
    words = ["judge", str(scenario), "--out", str(tmp_path / "judged.csv"), "--no-probes"]
    assert main([*words, "--repeats", "2"]) == 1
    paid = closing(capsys.readouterr().out)
    status = pd.read_csv(tmp_path / "judged.csv")["accuracy__status"]
    judgements = status.repeat(2).value_counts()
    assert paid["failed"] == judgements["failed"] == 4
    assert paid["not_applicable"] == judgements["not_applicable"] == 2
    assert paid["asked"] == judgements.sum()
    # Each reply that cannot be read is asked for once more.
    assert paid["sent"] == len(llm_server.log) == 2 * paid["failed"]


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
        words = [
            "judge",
            str(scenario),
            "--store",
            store,
            "--out",
            str(tmp_path / "out.csv"),
            "--no-probes",
        ]
        assert main([*words, *more]) == 0
        with Store(store) as opened:
            return opened.runs()["run"].iloc[-1]

    before = judged([CASES[0] | {"system": "bad"}])
    rest = CASES[0] | {
        "system": "good",
        "retrieved_contexts": None,
    }  # judged without passages: another prompt
    cases = [
        CASES[0] | {"system": "bad", "answer": "Ten years, 4711."},
        CASES[0] | {"system": "good"},
        rest,
    ]
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


def test_a_run_of_two_systems_is_refused_also_where_they_share_no_sample(
    scenario, llm_server, capsys, tmp_path
):
    def judged(*systems):
        path, words = (
            tmp_path / "cases.jsonl",
            ["judge", str(scenario), "--store", str(tmp_path / "a.sqlite")],
        )
        cases = [
            {**CASES[0], "sample_id": f"q{n}", "system": name} for n, name in enumerate(systems)
        ]
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
        words = [
            "judge",
            str(scenario),
            "--store",
            store,
            "--out",
            str(tmp_path / "out.csv"),
            "--no-probes",
        ]
        assert main([*words, "--repeats", n]) == 0
    with Store(store) as opened:
        ids = opened.runs()["run"].tolist()
    assert main(["compare", *(f"{store}#{run}" for run in ids)]) == 0


def test_an_arena_compares_every_pair_of_systems(scenario, tmp_path, capsys):
    asked = [
        CASES[0] | {"sample_id": f"q{i}", "question": f"How long is warranty {i}?"}
        for i in range(12)
    ]
    good = [case | {"system": "good"} for case in asked]
    bad = [case | {"answer": "Ten years, 4711.", "system": "bad"} for case in good]
    same = [case | {"system": "twin"} for case in good]
    (tmp_path / "cases.jsonl").write_text(
        "\n".join(map(json.dumps, good + bad + same)), encoding="utf-8"
    )
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


# The retry loop

RETRY = """
from pathlib import Path

def retry(question, answer, suggestion):
    with Path("asked.txt").open("a", encoding="utf-8") as log:
        log.write(f"{question}|{answer}|{suggestion}\\n")
    return "The pump has a warranty of 730 days."
"""


@pytest.fixture
def loop(scenario, tmp_path):
    (tmp_path / "our_rag.py").write_text(RETRY, encoding="utf-8")
    return ["judge", str(scenario), "--improve", "2", "--system", "our_rag:retry"]


def test_answers_below_the_threshold_are_retried_once_and_the_kept_ones_are_a_table(
    loop, scenario, llm_server, capsys, tmp_path
):
    assert main([*loop, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "at most 4 answers by the system and 4 judge calls" in told
    assert not llm_server.log
    assert not (tmp_path / "asked.txt").exists()
    assert main(["judge", str(scenario)]) == 0
    judged, calls = (tmp_path / "reports/mine/judged.csv").read_bytes(), len(llm_server.log)
    capsys.readouterr()
    for first in (True, False):
        assert main(loop) == 0
        told = capsys.readouterr().out
        assert "- The loop raised accuracy from 5.75 to 9.50: 3.75 [" in told
        assert "1 additional answers by the system and 1 judge calls; tokens: 15." in told
        asked = (tmp_path / "asked.txt").read_text(encoding="utf-8").splitlines()
        assert asked == ["How long is it?|Ten years, 4711.|quote the passage with the figure"]
        assert len(llm_server.log) == calls + 1
        of_answers = told.partition("- The loop raised")[0].strip()
        assert closing(of_answers)["sent"] == 0
        # Of the loop: two first answers judged before, one retry that the system answers, and its judgement.
        paid = closing(told)
        assert paid["asked"] == 2 + 1 + 1
        assert paid["reused"] == (2 if first else 4)
        assert paid["sent"] == (1 if first else 0)
    kept = rn.read_scores(tmp_path / "reports/mine/improved.csv").set_index("sample_id")
    assert kept["accuracy"].to_dict() == {"a": 9.5, "b": 9.5}
    assert kept["accuracy__before"].astype(float).to_dict() == {"a": 9.5, "b": 2.0}
    assert kept["answer"].tolist() == SOURCE * 2
    assert (tmp_path / "reports/mine/judged.csv").read_bytes() == judged, (
        "scores are those of the first answers"
    )


def test_a_budget_ends_the_loop_with_1_and_the_same_command_resumes_it(
    loop, llm_server, capsys, tmp_path
):
    assert main([*loop, "--max-calls", "8"]) == 1
    assert "The loop was interrupted" in capsys.readouterr().out
    assert main(loop) == 0
    assert "from 5.75 to 9.50" in capsys.readouterr().out
    assert len(llm_server.log) == 6 + 2 + 1
    assert len((tmp_path / "asked.txt").read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is of Unix")
def test_a_killed_loop_resumes_to_the_same_table_and_pays_nothing_twice(
    scenario, llm_server, tmp_path
):
    cases = [
        CASES[n % 2] | {"sample_id": f"q{n}", "question": f"How long is warranty {n}?"}
        for n in range(16)
    ]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
    profile = f"  answer: {{base_url: '{llm_server.base_url}', model: rag}}\n"
    scenario.write_text(scenario.read_text(encoding="utf-8") + profile, encoding="utf-8")

    def script(request):
        reply = examiner(request) if request.body["model"] == "small" else SOURCE[0]
        return Answer(reply, seconds=0.15)

    llm_server.script = script
    words = ["judge", str(scenario), "--improve", "2", "--concurrency", "2", "--out"]
    assert main([*words, str(tmp_path / "whole/judged.csv")]) == 0
    whole = len(llm_server.log)
    assert whole == 6 + 16 + 8 + 8
    rng, kills = random.Random(7), 0
    env = os.environ | {"PYTHONPATH": str(Path(rn.__file__).parents[1])}
    for _ in range(2):
        command = [sys.executable, "-m", "ragnb", *words, str(tmp_path / "killed/judged.csv")]
        before = len(llm_server.log)
        with subprocess.Popen(
            command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as run:
            while len(llm_server.log) == before and run.poll() is None:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 1))
            kills += run.poll() is None
            run.kill()
    assert main([*words, str(tmp_path / "killed/judged.csv")]) == 0
    assert kills == 2
    assert len(llm_server.log) - 2 * whole <= 2 * kills
    table = "improved.csv"
    assert (tmp_path / "killed" / table).read_bytes() == (tmp_path / "whole" / table).read_bytes()


def test_the_endpoint_of_the_answer_profile_is_asked_where_no_function_is_given(
    scenario, llm_server, capsys, tmp_path
):
    text = scenario.read_text(encoding="utf-8")
    profile = f"  answer: {{base_url: '{llm_server.base_url}', model: rag}}\n"
    scenario.write_text(text + profile, encoding="utf-8")
    llm_server.script = lambda request: (
        examiner(request) if request.body["model"] == "small" else SOURCE[0]
    )
    words = ["judge", str(scenario), "--improve", "1", "--lang", "en"]
    assert main([*words, "--max-calls", "8"]) == 1, "one budget for both models"
    assert [request.body["model"] for request in llm_server.log] == ["small"] * 8
    for _ in range(2):
        assert main(words) == 0
        assert [request.body["model"] for request in llm_server.log] == ["small"] * 8 + [
            "rag",
            "small",
        ]
    assert "tokens: 30." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--improve", "2"], "the retry loop takes --improve N and the system"),
        (["--system", "our_rag:retry"], "the retry loop takes --improve N and the system"),
        (["--improve", "2", "--system", "our_rag:retri"], "did you mean 'retry'"),
        (
            ["--improve", "2", "--system", "our_rag:retry", "--stop-when-decided"],
            "leave out --stop-when-decided",
        ),
    ],
)
def test_a_loop_that_cannot_run_is_refused_before_anything_is_sent(
    loop, scenario, llm_server, capsys, words, said
):
    assert main(["judge", str(scenario), *words]) == 2
    assert said in capsys.readouterr().err
    assert not llm_server.log


def test_answers_of_two_systems_are_not_retried_by_one(loop, llm_server, capsys, tmp_path):
    cases = [case | {"system": name} for case in CASES for name in ("one", "two")]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
    for words in (loop, [*loop, "--dry-run"]):
        assert main(words) == 2
        assert "several systems (one, two); keep those of one system" in capsys.readouterr().err
    assert not llm_server.log
    assert main([*loop, "-p", "where={system: two}"]) == 0


def test_a_system_that_fails_is_an_exit_code_of_the_loop(scenario, capsys, tmp_path):
    system = "def retry(*told):\n    raise TimeoutError('gone')\n"
    (tmp_path / "our_failing_rag.py").write_text(system, encoding="utf-8")
    assert (
        main(["judge", str(scenario), "--improve", "2", "--system", "our_failing_rag:retry"]) == 1
    )
    assert "1 retries got no answer" in capsys.readouterr().out
