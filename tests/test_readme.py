"""What the README shows, in both languages, runs as it stands: in an empty folder, with an installed wheel."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ragnb as rn

ROOT = Path(__file__).resolve().parents[1]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")}
TOUR = (ROOT / "docs" / "en" / "tour.md").read_text(encoding="utf-8")
FENCE = re.compile(r"(?P<output><!-- output -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
LEFT_OUT = "…"
every_page = pytest.mark.parametrize("page", PAGES)


def blocks(page: str, kind: str) -> list[str]:
    return [block["text"] for block in FENCE.finditer(PAGES[page]) if block["kind"] == kind]


def run_line(line: str, folder: Path, env: dict[str, str]) -> str:
    """Run the commands of ragnb on a line; `&&` joins them, and what follows a # is a comment."""
    said = ""
    for command in line.partition("  #")[0].split(" && "):
        name, *words = shlex.split(command)
        assert name == "ragnb"
        call = [sys.executable, "-m", "ragnb", *words]
        done = subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said += done.stdout
    return " ".join(said.split())


@every_page
def test_every_block_runs_in_an_empty_folder_with_an_installed_wheel(page, tmp_path, installed):
    said, shown = "", 0
    for block in FENCE.finditer(PAGES[page]):
        if block["output"]:
            for line in block["text"].splitlines():
                if line != LEFT_OUT:
                    assert " ".join(line.split()) in said, line
            shown += 1
        elif block["kind"] == "sh":
            lines = [line for line in block["text"].splitlines() if line.startswith("ragnb ")]
            said = " ".join(run_line(line, tmp_path, installed) for line in lines)
        elif block["kind"] == "python":
            code = block["text"] + "\nassert [*sheet.means['value']] and not sheet.gates.empty\n"
            call = [sys.executable, "-c", code]
            done = subprocess.run(call, cwd=tmp_path, env=installed, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert done.stdout.strip()
    assert shown == 2
    assert {path.name for path in tmp_path.iterdir()} == {"demo"}


@every_page
def test_the_first_screen_is_install_try_and_what_it_prints(page):
    lines = PAGES[page].splitlines()
    assert lines[4] == "```sh"
    assert lines[5].startswith("pip install ")
    assert lines[6].startswith("ragnb example demo && ragnb check demo/scores.csv")
    assert "0.636 (0.561–0.704)" in "\n".join(lines[7:15])


@every_page
def test_the_command_of_the_report_that_the_text_names_is_one(page, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("example", "demo")
    (line,) = re.findall(r"`(ragnb report demo/[^`]+)`", PAGES[page])
    _, _, *words = shlex.split(line)
    assert run("check", *words)[0] == 1  # test_example.py runs a report


def test_both_languages_have_the_same_sections_commands_and_rows():
    english, chinese = (
        [re.findall(pattern, text, re.MULTILINE) for pattern in ("^## ", "^\\| .*`ragnb ", "^!\\[")]
        for text in PAGES.values()
    )
    assert list(map(len, english)) == list(map(len, chinese))
    commands = [re.findall(r"`(ragnb [^`]+)`", text) for text in PAGES.values()]
    plain = [[one.removesuffix(" -p lang=zh") for one in found] for found in commands]
    assert plain[0] == plain[1]


def test_the_page_is_short():
    assert len(PAGES["README.md"].split()) < 1100


@every_page
def test_the_scenario_loads_and_the_pictures_are_there(page, tmp_path):
    (text,) = blocks(page, "yaml")
    table = "sample_id,doc_name,faithfulness,context_recall,answer_correctness\n1,handbook.pdf,0.9,0.8,0.7\n"
    table += "2,差旅报销制度.pdf,0.9,0.8,0.7\n"
    (tmp_path / "my_scores.csv").write_text(table, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    gates = rn.assess(tmp_path / "mine.yaml").gates["gate"].tolist()
    assert gates[1:] == ["input_lines", "scored_cells"]
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGES[page]):
        assert (ROOT / target).exists(), target


def test_the_badges_are_true():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    licence, python = (
        (ROOT / "docs" / "static" / f"{name}.svg").read_text(encoding="utf-8")
        for name in ("licence", "python")
    )
    assert f"licence: {project['license']}" in licence
    assert project["requires-python"] == ">=3.11"
    assert "Python: 3.11 or newer" in python


def test_the_tours_cases_are_scored_judged_and_reported_in_an_empty_folder(
    tmp_path, monkeypatch, llm_server, capsys
):
    from judge_server import examiner

    from ragnb.cli import main

    llm_server.script = examiner
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_KEY", "of-no-worth")
    (text,) = [
        block for block in re.findall(r"```yaml\n(.*?)```", TOUR, re.DOTALL) if "cases:" in block
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
