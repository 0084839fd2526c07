"""A run that is computed again is the same, or what moved is named; and the versions for a report of a bug."""

from __future__ import annotations

import json
import platform
from importlib import metadata
from pathlib import Path

import pandas as pd
import pytest

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.report.verify import verify

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def run(tmp_path):
    """The folder of a run of scores with a baseline."""
    scores = pd.read_csv(ROOT / "data/quickstart/scores.csv")
    for name in ("weak", "strong"):
        scores[scores["system"] == name].drop(columns="system").to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    (tmp_path / "s.yaml").write_text("scores: strong.csv\nbaseline: weak.csv\n", encoding="utf-8")
    rn.assess(tmp_path / "s.yaml").save(tmp_path / "run")
    return tmp_path / "run"


def moved(found):
    return [(row["what"], row["name"]) for row in found.moved.to_dict("records")]


def test_a_run_is_the_same_again_and_nothing_in_it_changes(run, capsys):
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    found = verify(run)
    assert found.same
    assert found.moved.empty
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    assert main(["verify", str(run)]) == 0
    assert "byte by byte" in capsys.readouterr().out


def test_an_input_that_changed_is_named_with_the_tables_that_follow(run, capsys):
    path = run.parent / "strong.csv"
    scores = pd.read_csv(path)
    scores.loc[0, "faithfulness"] = 0.123
    scores.to_csv(path, index=False)
    found = verify(run)
    assert not found.same
    assert ("input", "scores: strong.csv") in moved(found)
    assert ("table", "means.csv") in moved(found)
    for lang, word in (("en", "input scores: strong.csv"), ("zh", "输入 scores: strong.csv")):
        assert main(["verify", str(run), "--lang", lang]) == 1
        assert word in capsys.readouterr().out


def test_an_input_that_is_gone_is_named(run, capsys):
    (run.parent / "strong.csv").unlink()
    found = verify(run)
    assert not found.same
    assert "strong.csv" in found.moved.set_index("what").loc["gone", "now"]
    assert main(["verify", str(run)]) == 1
    assert "cannot be computed again" in capsys.readouterr().out


def test_settings_and_versions_that_moved_are_named(run):
    snapshot = run / "scenario.snapshot.yaml"
    text = snapshot.read_text(encoding="utf-8")
    snapshot.write_text(text.replace("level: 0.95", "level: 0.9"), encoding="utf-8")
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    record["packages"]["pandas"] = "1.0"
    (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    found = verify(run)
    assert not found.same
    assert ("setting", "scenario.snapshot.yaml") in moved(found)
    row = found.moved.set_index("name").loc["pandas"]
    assert (row["what"], row["then"], row["now"]) == ("version", "1.0", pd.__version__)


def test_another_version_with_the_same_tables_is_told_and_the_run_is_the_same(run, capsys):
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    record["python"] = "3.8.0"
    (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert verify(run).same
    assert main(["verify", str(run)]) == 0
    assert "version of python: 3.8.0 then" in capsys.readouterr().out


def test_tables_that_somebody_edited_are_told_apart_from_all_else(run, capsys):
    with (run / "means.csv").open("a", encoding="utf-8") as file:
        file.write("\n")
    assert moved(verify(run)) == [("table", "means.csv")]
    assert main(["verify", str(run)]) == 1
    assert "No input, setting or version" in capsys.readouterr().out


def test_what_is_no_run_is_refused(tmp_path, capsys):
    with pytest.raises(RagnbError, match="is not the folder of a run"):
        verify(tmp_path)
    assert main(["verify", str(tmp_path)]) == 2
    assert "run.json" in capsys.readouterr().err


def test_versions_are_those_that_are_installed(capsys, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "sk-never-shown")
    rn.show_versions()
    said = capsys.readouterr().out
    lines = dict(line.split(maxsplit=1) for line in said.splitlines())
    assert lines["pandas"] == metadata.version("pandas")
    assert lines["python"] == platform.python_version()
    assert "never-shown" not in said
    assert str(Path.home()) not in said


def test_results_are_written_into_the_cases_they_are_of():
    passages = ["The warranty is 24 months."]
    cases = [
        rn.EvalCase(
            question="How long?",
            answer="36 months.",
            retrieved_contexts=passages,
            persona={"name": "a buyer"},
            source_units=[{"doc": "a", "page": 1}],
        ),
        rn.EvalCase(question="And then?", answer="24 months.", retrieved_contexts=passages),
    ]
    table = rn.evaluate(cases)
    for case, row in zip(cases, table.to_dict("records"), strict=True):
        assert case.results["number_support"].score == row["number_support"]
        assert case.results["number_support"].status == "ok"
        assert case.results["name_support"].score is None
    assert cases[0].results["number_support"].reason == "not in the passages: 36"
    assert table["source_units"].iloc[0] == [{"doc": "a", "page": 1}]
    assert cases[0].persona == {"name": "a buyer"}
    records = [{"question": "How long?", "answer": "24 months.", "retrieved_contexts": passages}]
    rn.evaluate(records)
    assert "results" not in records[0]
