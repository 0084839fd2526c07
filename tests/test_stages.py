"""What `ragnb evaluate` and `ragnb judge` wrote is found by `report`, `check` and `assess`."""

from __future__ import annotations

import json
import os
import re
import shutil

import pandas as pd
import pytest
from judge_server import CASES, SOURCE, examiner

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.readers import read_scores

pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")


def write_cases(folder, cases):
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path, CASES)
    (tmp_path / "x.yaml").write_text("cases: cases.jsonl\n", encoding="utf-8")
    return tmp_path


def report_folder(capsys):
    """The folder of the run whose page was named last."""
    return os.path.dirname(re.search("HTML: (.*)", capsys.readouterr().out)[1])


def test_report_shows_what_evaluate_wrote(folder, capsys):
    assert main(["evaluate", "x.yaml"]) == 0
    assert main(["report", "x.yaml"]) == 0
    run = report_folder(capsys)
    scores = read_scores(f"{run}/scores.csv").set_index("sample_id")
    assert scores["number_support"].tolist() == [1, 0]
    with open(f"{run}/run.json", encoding="utf-8") as file:
        assert [one["role"] for one in json.load(file)["inputs"]] == ["cases", "evaluate"]
    with open(f"{run}/report.html", encoding="utf-8") as file:
        assert "Scores of ragnb evaluate" in file.read()


def test_the_table_is_found_wherever_table_scenario_and_report_lie(
    folder, tmp_path_factory, monkeypatch, capsys
):
    elsewhere, pages = tmp_path_factory.mktemp("elsewhere"), tmp_path_factory.mktemp("pages")
    monkeypatch.chdir(elsewhere)
    assert (
        main(["evaluate", str(folder / "x.yaml"), "--out", str(folder / "tables" / "e.csv")]) == 0
    )
    assert main(["check", str(folder / "x.yaml")]) == 0
    assert "support_lexical" in capsys.readouterr().out
    assert main(["report", str(folder / "x.yaml"), "--out", str(pages)]) == 0
    assert "number_support" in read_scores(f"{report_folder(capsys)}/scores.csv")


def test_a_notebook_below_the_project_finds_the_table(folder, monkeypatch):
    main(["evaluate", "x.yaml"])
    (folder / "notebooks").mkdir()
    monkeypatch.chdir(folder / "notebooks")
    means = rn.assess("../x.yaml").means.set_index("metric")
    assert means.loc["support_lexical", "n"] == 2
    assert (
        rn.assess(rn.load_scenario("../x.yaml")).means.set_index("metric")["n"].equals(means["n"])
    )


def judged(folder, llm_server, extra=""):
    llm_server.script = examiner
    profile = f"llm_profiles:\n  judge: {{base_url: '{llm_server.base_url}', model: small}}\n"
    (folder / "x.yaml").write_text(f"cases: cases.jsonl\n{profile}{extra}", encoding="utf-8")


def test_both_stages_are_joined_by_sample_system_and_repeat(folder, llm_server):
    rows = [
        case | {"system": system, "repeat": repeat}
        for case in CASES
        for system in "pq"
        for repeat in (1, 2)
    ]
    rows[1] |= {"answer": "No idea."}
    write_cases(folder, rows)
    judged(folder, llm_server)
    assert main(["evaluate", "x.yaml", "--metric", "number_support"]) == 0
    assert main(["judge", "x.yaml", "--no-probes"]) == 0
    scores = rn.assess("x.yaml").scores
    assert len(scores) == len(rows)
    tables = [read_scores(f"reports/x/{name}.csv") for name in ("scores", "judged")]
    for name, table in zip(("number_support", "accuracy"), tables, strict=True):
        keys = ["sample_id", "system", "repeat"]
        want = table.set_index(keys)[name].sort_index()
        pd.testing.assert_series_equal(
            scores.set_index(keys)[name].sort_index(), want, check_index_type=False
        )


def test_answers_of_one_question_that_no_column_tells_apart_are_joined_by_their_text(folder):
    write_cases(folder, [*CASES, CASES[1] | {"answer": "730 days."}])
    main(["evaluate", "x.yaml"])
    scores = rn.assess("x.yaml").scores
    assert dict(zip(scores["answer"], scores["number_support"], strict=True)) == {
        SOURCE[0]: 1,
        "Ten years, 4711.": 0,
        "730 days.": 1,
    }


def test_rows_with_two_scores_and_nothing_to_tell_them_apart_are_refused(folder):
    write_cases(
        folder,
        [*CASES, CASES[0] | {"retrieved_contexts": ["The pump has a warranty of 100 days."]}],
    )
    main(["evaluate", "x.yaml"])
    with pytest.raises(RagnbError, match="two values for one cell.*sample_id 'a'.*column 'repeat'"):
        rn.assess("x.yaml")
    write_cases(folder, [{**case, "repeat": n} for n, case in enumerate([*CASES, CASES[0]])])
    main(["evaluate", "x.yaml"])
    assert len(rn.assess("x.yaml").scores) == 3


CHANGES = {
    "cases": lambda folder: write_cases(folder, CASES[:1]),
    "rubric": lambda folder: add(
        folder, "rubric: {passing: {metric: accuracy, op: '>=', threshold: 6}}\n"
    ),
    "llm_profiles.judge": lambda folder: swap(folder, "model: small", "model: large"),
    "table": lambda folder: (folder / "reports" / "x" / "judged.csv").write_text(
        "sample_id,accuracy\na,9\n"
    ),
}


def add(folder, text):
    with (folder / "x.yaml").open("a", encoding="utf-8") as file:
        file.write(text)


def swap(folder, old, new):
    path = folder / "x.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


@pytest.mark.parametrize("what", CHANGES)
def test_a_table_of_other_inputs_is_not_used_and_its_stage_is_named(
    folder, llm_server, what, capsys
):
    judged(folder, llm_server)
    assert main(["judge", "x.yaml", "--no-probes"]) == 0
    CHANGES[what](folder)
    capsys.readouterr()
    assert main(["check", "x.yaml"]) == 2
    told = capsys.readouterr().err
    assert "run ragnb evaluate x.yaml or ragnb judge x.yaml first" in told
    assert (
        f"the following has changed since ragnb judge wrote it: {what}. Run ragnb judge x.yaml again"
        in told
    )


def test_beside_other_scores_an_unused_stage_is_a_note_on_the_sheet(folder):
    main(["evaluate", "x.yaml"])
    pd.DataFrame({"sample_id": ["a", "b"], "faithfulness": [1.0, 0.5]}).to_csv(
        "own.csv", index=False
    )
    add(folder, "scores: own.csv\n")
    both = rn.assess("x.yaml")
    assert {"faithfulness", "number_support"} <= set(both.means["metric"])
    write_cases(folder, CASES[:1])
    sheet = rn.assess("x.yaml")
    assert "number_support" not in set(sheet.means["metric"])
    assert sheet.notes.set_index("code").loc["stage_unused", "about"] == "evaluate"
    shutil.rmtree(folder / "reports")
    assert "stage_unused" not in set(rn.assess("x.yaml").notes["code"])


def test_the_following_command_that_a_refusal_names_is_enough(folder, capsys):
    assert main(["report", "x.yaml"]) == 2
    assert "run ragnb evaluate x.yaml" in capsys.readouterr().err
    assert main(["evaluate", "x.yaml"]) == 0
    assert main(["report", "x.yaml"]) == 0


def test_two_values_for_one_cell_are_refused_and_gaps_are_filled(folder):
    main(["evaluate", "x.yaml"])
    own = pd.DataFrame({"sample_id": ["a", "b"], "number_support": [1.0, None]})
    own.to_csv("own.csv", index=False)
    add(folder, "scores: own.csv\n")
    assert rn.assess("x.yaml").scores["number_support"].tolist() == [1, 0]
    own.assign(number_support=[0.5, None]).to_csv("own.csv", index=False)
    with pytest.raises(
        RagnbError, match=r"number_support of sample_id 'a' is 0.5, and 1 in reports.x.scores.csv"
    ):
        rn.assess("x.yaml")
    own.assign(number_support=[None, None], number_support__status="not_applicable").to_csv(
        "own.csv", index=False
    )
    assert rn.assess("x.yaml", metrics=["support_lexical"]).scores["number_support"].isna().all()


def test_rows_that_only_the_stage_has_are_kept(folder):
    main(["evaluate", "x.yaml"])
    pd.DataFrame({"sample_id": ["b"], "faithfulness": [0.5]}).to_csv("own.csv", index=False)
    add(folder, "scores: own.csv\n")
    scores = rn.assess("x.yaml").scores
    assert scores["sample_id"].tolist() == ["b", "a"]
    assert scores["number_support"].tolist() == [0, 1]


def test_where_keeps_the_same_rows_of_a_stage(folder):
    write_cases(folder, [case | {"system": system} for case in CASES for system in "pq"])
    main(["evaluate", "x.yaml"])
    pd.DataFrame({"sample_id": ["a", "b"], "system": "p", "faithfulness": 0.5}).to_csv(
        "own.csv", index=False
    )
    for extra in ("", "scores: own.csv\n"):
        add(folder, extra)
        scores = rn.assess("x.yaml", where={"system": "p"}).scores
        assert scores["sample_id"].tolist() == ["a", "b"]
        assert scores["number_support"].tolist() == [1, 0]


def test_a_table_that_is_named_as_scores_is_not_joined_to_itself(folder):
    main(["evaluate", "x.yaml"])
    sheet = rn.assess("x.yaml", scores="reports/x/scores.csv")
    assert [one["role"] for one in sheet.inputs] == ["scores", "cases"], (
        "cases say what was expected"
    )


def test_python_runs_the_command_line_as_a_module(folder):
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "ragnb", "--version"], capture_output=True, text=True
    )
    assert done.stdout.startswith("ragnb, version")
    assert done.returncode == 0
