"""What the README shows runs as it stands there."""

import os
import re
import shlex
import subprocess
import sys
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
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line]) <= 12
    space = {}
    exec(compile(code, "README.md", "exec"), space)
    assert capsys.readouterr().out.strip() == space["sheet"].verdict


def test_the_scenario_loads_and_the_pictures_are_there(tmp_path):
    (text,) = blocks("yaml")
    table = "sample_id,doc_name,faithfulness,context_recall,answer_correctness\n1,差旅报销制度.pdf,0.9,0.8,0.7\n"
    (tmp_path / "my_scores.csv").write_text(table, encoding="utf-8")
    (tmp_path / "my.yaml").write_text(text, encoding="utf-8")
    assert rn.assess(tmp_path / "my.yaml").gates["gate"].tolist() == ["faithful"]
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize(
    "line",
    [x for block in blocks("sh") for x in block.replace("\\\n", " ").splitlines() if x.startswith("ragnb ")],
)
def test_the_commands_run(line, tmp_path):
    (name,) = re.findall(r"\b(?:check\.md|card\.html|evaluated\.csv)\b", line)
    words = [str(tmp_path / name) if word == name else word for word in shlex.split(line)]
    command = [sys.executable, "-c", "from ragnb.cli import main; main()", *words[1:]]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, env=os.environ | {"LC_ALL": "C.UTF-8"}
    )
    assert done.returncode in (0, 1, 3), done.stderr
    assert (tmp_path / name).read_text(encoding="utf-8")
