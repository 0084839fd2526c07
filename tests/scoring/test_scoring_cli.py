"""`ragnb evaluate` as it is typed: with no key, with a judge, dry, stopped and taken up again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from closing_line import closing
from llm_server import LlmServer, Raw

from ragnb.cli import main
from ragnb.readers import read_scores

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")
KEY = "sk-canary/5d1f0a77+e8"
CASES = [
    {
        "sample_id": f"s{n}",
        "question": f"{n}？多久？",
        "answer": f"{n}个月。",
        "retrieved_contexts": ["24个月。", "=1"],
    }
    for n in (24, 36)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in CASES)
    (tmp_path / "cases.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def scenario(folder, server, extra=""):
    path = folder / "mine.yaml"
    judge = f"llm_profiles:\n  judge: {{base_url: '{server.base_url}', model: small, api_key_env: THE_KEY}}\n"
    path.write_text(f"cases: cases.jsonl\nname: mine\n{judge}{extra}", encoding="utf-8")
    return path


def relevant(request):
    text = str(request.body["messages"][0]["content"])
    return (
        json.dumps({"relevant": {"1": True, "2": False}})
        if "relevant" in text
        else '{"statements": ["a"]}'
    )


def test_a_file_of_cases_is_scored_without_any_key(folder, capsys):
    assert main(["evaluate", "cases.jsonl", "--lang", "zh"]) == 0
    said = capsys.readouterr()
    assert "不使用模型" in said.err
    assert "number_support   0.500" in said.out
    scores = read_scores(folder / "reports" / "cases" / "scores.csv")
    assert scores["number_support"].tolist() == [1, 0]
    assert scores["number_support__reason"].tolist()[1] == "not in the passages: 36个"
    assert scores["retrieved_contexts"].tolist() == [case["retrieved_contexts"] for case in CASES]
    assert main(["check", "reports/cases/scores.csv"]) == 0


def test_scores_lie_below_reports_whatever_the_run_is_called(folder):
    (folder / "up.yaml").write_text("cases: cases.jsonl\nname: ../../up\n", encoding="utf-8")
    before = set(folder.parent.iterdir())
    assert main(["evaluate", "up.yaml"]) == 0
    assert [path.parent.parent for path in folder.rglob("scores.csv")] == [folder / "reports"]
    assert set(folder.parent.iterdir()) == before


def test_the_quickstart_scenario_is_scored_without_any_key(folder, capsys):
    out = folder / "out.csv"
    assert main(["evaluate", str(ROOT / "scenarios" / "quickstart.yaml"), "--out", str(out)]) == 0
    assert "not computed" in capsys.readouterr().err
    made = read_scores(out).set_index("sample_id")["support_lexical"].dropna()
    known = read_scores(ROOT / "data" / "quickstart" / "scores.csv").query("system == 'strong'")
    pd.testing.assert_series_equal(made, known.set_index("sample_id")["support_lexical"].dropna())


def test_a_judge_is_asked_and_a_dry_run_says_how_often(folder, capsys, monkeypatch):
    monkeypatch.setenv("THE_KEY", KEY)
    with LlmServer(relevant) as server:
        path = scenario(folder, server, "metrics: [context_relevance]\n")
        assert main(["evaluate", str(path), "--dry-run"]) == 0
        assert capsys.readouterr().out.startswith("About 2 calls and ")
        assert server.log == []
        assert not (folder / "reports").exists()
        assert main(["evaluate", str(path), "--max-calls", "1", "--concurrency", "1"]) == 1
        said = capsys.readouterr()
        assert "max_calls" in said.err
        assert closing(said.out)["pending"] == closing(said.out)["sent"] == len(server.log) == 1
        assert main(["evaluate", str(path)]) == 0
        assert main(["evaluate", str(path)]) == 0
        assert len(server.log) == 2
        capsys.readouterr()
        assert main(["evaluate", str(path), "--dry-run"]) == 0
        assert "2 already scored" in capsys.readouterr().out
        assert server.log[0].headers["authorization"] == f"Bearer {KEY}"
    scores = read_scores(folder / "reports" / "mine" / "scores.csv")
    assert scores["context_relevance"].tolist() == [0.5, 0.5]
    assert not [
        path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]


def test_the_last_line_has_the_cells_of_the_table_and_the_requests_of_the_server(
    folder, capsys, monkeypatch
):
    monkeypatch.setenv("THE_KEY", KEY)
    unretrieved = {"sample_id": "s0", "question": "多久？", "answer": "24个月。"}
    cases = [case | {"system": "a"} for case in (*CASES, unretrieved)]
    cases.append(CASES[0] | {"system": "b"})
    text = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
    (folder / "cases.jsonl").write_text(text, encoding="utf-8")
    is_mended = False

    def script(request):
        if request.number == 0:
            return Raw(status=429, headers={"Retry-After": "0"})
        unreadable = "36？" in str(request.body["messages"][0]["content"]) and not is_mended
        return "no JSON" if unreadable else relevant(request)

    metrics = ["context_relevance", "support_lexical"]

    def evaluated(*words):
        """Score once, and compare the line with the table, cell by cell, and with the server."""
        before = len(server.log)
        code = main(["evaluate", str(path), *words])
        paid = closing(capsys.readouterr().out)
        table = pd.read_csv(folder / "reports" / "mine" / "scores.csv")
        status = [cell for name in metrics for cell in table[f"{name}__status"]]
        assert paid["asked"] == len(status) == len(metrics) * len(cases)
        assert paid["done"] + paid["reused"] == status.count("ok")
        assert paid["failed"] == status.count("failed")
        assert paid["not_applicable"] == status.count("not_applicable") == 2
        assert paid["sent"] == len(server.log) - before
        return code, paid

    with LlmServer(script) as server:
        path = scenario(folder, server, f"metrics: [{', '.join(metrics)}]\n")
        code, paid = evaluated()
        assert (code, paid["failed"]) == (1, 1)
        # Two systems gave the same answer to one question: its two cells are done once.
        assert (paid["done"], paid["reused"]) == (3, 2)
        assert paid["sent"] > 2
        is_mended = True
        code, paid = evaluated()
        assert (code, paid["failed"], paid["done"]) == (0, 0, 1)
        for words in ([], ["--lang", "zh"], ["--lang", "zh"]):
            code, paid = evaluated(*words)
        assert (code, paid["done"], paid["sent"]) == (0, 0, 0)


def test_failed_cells_and_bad_input_have_their_exit_codes(folder, capsys, monkeypatch):
    monkeypatch.setenv("THE_KEY", KEY)
    with LlmServer(lambda request: f"{KEY}?") as server:
        path = scenario(folder, server)
        assert main(["evaluate", str(path), "--metric", "context_relevance"]) == 1
        assert main(["evaluate", str(path), "--metric", "faithfullness"]) == 2
        assert "did you mean 'faithfulness'" in capsys.readouterr().err
    assert main(["evaluate", "cases.jsonl", "--embeddings", "m"]) == 2
    assert main(["evaluate", "nothing.jsonl"]) == 2
    (folder / "empty.yaml").write_text("scores: cases.jsonl\n", encoding="utf-8")
    assert main(["evaluate", "empty.yaml"]) == 2
    assert "names no cases" in capsys.readouterr().err
    assert not [
        path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]


def test_help_is_there():
    done = subprocess.run(
        [sys.executable, "-c", "from ragnb.cli import main; main(['evaluate', '-h'])"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert "--dry-run" in done.stdout
