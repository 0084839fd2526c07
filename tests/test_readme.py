"""What the README shows runs as it stands there."""

import json
import re
import shlex
from pathlib import Path

import pytest

import ragnb as rn

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return [
        m.group(2)
        for m in re.finditer(rf"(<!-- no-run -->\n)?```{language}\n(.*?)```", README, re.DOTALL)
        if not m.group(1)
    ]


def test_the_first_screen_runs(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    code, *more = blocks("python")
    assert len([line for line in code.splitlines() if line]) <= 12
    space = {}
    exec(compile(code, "README.md", "exec"), space)
    assert capsys.readouterr().out.strip() == space["sheet"].verdict
    for code in more:
        exec(compile(code, "README.md", "exec"), space)


def test_the_scenario_loads_and_the_pictures_are_there(tmp_path):
    (text,) = blocks("yaml")
    table = "sample_id,doc_name,faithfulness,context_recall,answer_correctness\n1,差旅报销制度.pdf,0.9,0.8,0.7\n"
    (tmp_path / "my_scores.csv").write_text(table, encoding="utf-8")
    (tmp_path / "my.yaml").write_text(text, encoding="utf-8")
    assert rn.assess(tmp_path / "my.yaml").gates["gate"].tolist() == [
        "faithful",
        "input_lines",
        "scored_cells",
    ]
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


COMMANDS = [
    line
    for block in blocks("sh")
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("ragnb ")
]


@pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")
def test_the_commands_run_one_after_the_other(tmp_path, monkeypatch, run):
    for name in ("data", "scenarios"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    for line in COMMANDS:
        code, _, said = run(*shlex.split(line)[1:])
        assert code in (0, 1, 3), said
        for name in re.findall(r"\b(?:check\.md|card\.html|evaluated\.csv)\b", line):
            assert (tmp_path / name).read_text(encoding="utf-8")


def test_cases_are_scored_judged_and_reported_in_an_empty_folder(
    tmp_path, monkeypatch, llm_server, capsys
):
    from judge_server import examiner

    from ragnb.cli import main

    llm_server.script = examiner
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_KEY", "of-no-worth")
    (text,) = [
        block for block in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL) if "cases:" in block
    ]
    Path("my.yaml").write_text(
        text.replace("https://example.org/v1", llm_server.base_url), encoding="utf-8"
    )
    case = {
        "question": "How long?",
        "answer": "730 days.",
        "retrieved_contexts": ["730 days."],
        "sample_id": "a",
    }
    Path("my_cases.jsonl").write_text(json.dumps(case), encoding="utf-8")
    assert main(["evaluate", "my.yaml", "--metric", "number_support"]) == 0
    assert main(["judge", "my.yaml", "--no-probes"]) == 0
    assert main(["report", "my.yaml"]) == 0
    page = Path(capsys.readouterr().out.partition("HTML: ")[2].splitlines()[0]).read_text(
        encoding="utf-8"
    )
    assert "number_support" in page
    assert "accuracy" in page
