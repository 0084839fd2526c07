"""The action of this repository, used by another one: exit codes, the summary, and the files that are kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from composite import Composite
from packaging.requirements import Requirement
from ruamel.yaml import YAML
from small_tables import git, scratch_repository

ROOT = Path(__file__).resolve().parents[1]
ACTION = YAML(typ="safe").load(ROOT / "action.yml")
STEPS = ACTION["runs"]["steps"]
JOB = YAML(typ="safe").load(ROOT / "docs" / "ci-example.yml")["jobs"]["gates"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    return scratch_repository(tmp_path_factory.mktemp("theirs"))


@pytest.fixture
def act(repository, tmp_path):
    """Run the action in that repository with the ragnb of this checkout instead of an installed one."""

    def run(**inputs: str) -> Composite:
        (tmp_path / "out").mkdir()
        given = {
            "ragnb": str(Path(sys.executable).with_name("ragnb")),
            "folder": str(tmp_path / "out"),
        }
        action = Composite(
            ROOT,
            workspace=repository,
            temp=tmp_path,
            inputs=inputs,
            given={"install": given},
            env={"PYTHONPATH": str(ROOT)},
        ).run()
        assert not git(repository, "status", "--porcelain")  # the checkout is as it was
        return action

    return run


def test_a_blocked_run_fails_and_keeps_its_page_tables_and_junit_and_no_store(act):
    done = act(scenario="拦截.yaml")
    assert (done.code, done.outputs["exit-code"]) == (1, "1")
    assert [key for key, step in done.steps.items() if step.outcome == "failure"] == ["Verdict"]
    page = {f"report.{kind}" for kind in ("html", "ipynb", "md")}
    tables = {"scores.csv", "means.csv", "gates.json", "gates.xml", "run.json"}
    assert {path.name for path in done.kept} == page | tables
    verdict = done.steps["gates"].log.splitlines()[0]
    assert verdict.startswith("尚未达标")
    assert verdict.split("：")[0] in done.summary.read_text(encoding="utf-8")


def test_a_passing_run_with_an_inconclusive_comparison_exits_with_3(act):
    done = act(scenario="passing.yaml", baseline="undecided.csv", margin="0.02", report="false")
    assert done.code == 3
    compared = {f"compare.{kind}" for kind in ("html", "json", "xml")}
    assert {path.name for path in done.kept} == compared | {"gates.json", "gates.xml"}
    assert done.steps["Page"].outcome == "skipped"


def test_a_broken_scenario_exits_with_2_and_one_line(act):
    done = act(scenario="有误.yaml")
    assert (done.code, done.kept, done.summary.read_text(encoding="utf-8")) == (2, [], "")
    assert done.steps["Page"].outcome == "skipped"
    (line,) = done.steps["gates"].log.splitlines()
    assert line.startswith("ragnb: 有误.yaml，第 1 行，键 'scores'：没有文件")


# What is written in the file


def test_every_input_is_explained_and_used():
    text = json.dumps(ACTION["runs"], ensure_ascii=False)
    for name, row in ACTION["inputs"].items():
        assert row["description"]
        assert ("default" in row) != row.get("required", False), name
        assert f"inputs.{name}" in text, name


def test_no_input_is_pasted_into_a_script():
    assert not [step for step in STEPS if "${{" in step.get("run", "")]
    assert {step["shell"] for step in STEPS if "run" in step} == {"bash"}


def test_other_actions_are_pinned_to_a_commit():
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert len(used) == 2
    assert [name for name in used if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name)] == []


def test_all_that_is_installed_is_hashed():
    (step,) = [step for step in STEPS if step.get("id") == "install"]
    installs = [line for line in step["run"].splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert all(
        "--require-hashes" in line or "--no-deps --no-build-isolation ." in line
        for line in installs
    )
    for lock in re.findall(r"[\w-]+\.lock", step["run"]):
        assert (ROOT / lock).is_file()


def locked(*locks: str, python: str) -> int:
    """Count what the locks install on Linux, with ragnb itself."""
    place = {"python_version": python, "python_full_version": f"{python}.1"}
    place |= {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    lines = [
        line for lock in locks for line in (ROOT / lock).read_text(encoding="utf-8").splitlines()
    ]
    needs = [Requirement(line.rstrip(" \\")) for line in lines if re.match(r"\w", line)]
    return 1 + len(
        {need.name for need in needs if need.marker is None or need.marker.evaluate(place)}
    )


def test_the_packages_that_the_guide_and_the_input_name_are_those_of_the_locks():
    python = ACTION["inputs"]["python-version"]["default"]
    few, many = (
        locked(f"requirements-{lock}.lock", "requirements-build.lock", python=python)
        for lock in ("core", "report")
    )
    assert f"installs {many - few} more packages" in ACTION["inputs"]["report"]["description"]
    for lang in ("en", "zh"):
        guide = (ROOT / "docs" / lang / "guides" / "nightly-ci.md").read_text(encoding="utf-8")
        (row,) = [line for line in guide.splitlines() if line.startswith("| `report`")]
        assert re.findall(r"\d+", row) == [str(few), str(many)]
        assert f'`"{python}"`' in guide


def test_the_runner_refuses_what_it_does_not_know(tmp_path):
    (tmp_path / "action.yml").write_text(
        "inputs: {a: {default: x}}\noutputs: {}\nruns: {steps: [{id: one, run: 'true', shell: bash}]}\n",
        encoding="utf-8",
    )
    given = {"workspace": tmp_path, "temp": tmp_path, "inputs": {}}
    known = {"inputs.a == 'X' && !failure()": "success", "inputs.a != 'x' || ''": "skipped"}
    for condition, outcome in known.items():
        action = Composite(tmp_path, **given)
        action.meta["runs"]["steps"][0]["if"] = condition
        assert action.run().steps["one"].outcome == outcome
    for condition in (
        "inputs.b == 'x'",
        "github.actor",
        "steps.none.outcome",
        "hashFiles('x')",
        "inputs.a =",
    ):
        action = Composite(tmp_path, **given)
        action.meta["runs"]["steps"][0]["if"] = condition
        with pytest.raises((KeyError, SyntaxError)):
            action.run()


def test_the_example_calls_the_action_of_the_coming_version_with_inputs_that_it_has():
    checkout, call = JOB["steps"]
    assert checkout["uses"].startswith("actions/checkout@")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert (
        call["uses"] == f"OWNER/ragnb@v{re.search(r'^## .([0-9.]+)', changelog, re.MULTILINE)[1]}"
    )
    text = (ROOT / "docs" / "ci-example.yml").read_text(encoding="utf-8")
    named = {*call["with"], *re.findall(r"# (\w+): \S+", text.partition("with:")[2])}
    assert {"scenario", "baseline", "margin"} == named <= ACTION["inputs"].keys()
    assert (ROOT / call["with"]["scenario"]).is_file()


@pytest.mark.parametrize(
    "name",
    [
        "rag-gates",
        "../../../theirs",
        "/etc",
        "a\nfolder=/tmp",
        "$(touch ran)",
        "甲 乙",
        "x" * 300,
        ".",
    ],
)
def test_a_name_becomes_one_folder_below_the_temporary_one(tmp_path, name):
    (install,) = [step for step in STEPS if step.get("id") == "install"]
    temp, theirs = tmp_path / "runner" / "temp", tmp_path / "theirs"
    temp.mkdir(parents=True)
    theirs.mkdir()
    (theirs / "kept").touch()
    output = tmp_path / "output"
    environment = {
        "NAME": name,
        "REPORT": "false",
        "PYTHON": "/bin/false",
        "RUNNER_TEMP": str(temp),
    }
    environment |= {"GITHUB_OUTPUT": str(output), "GITHUB_ACTION_PATH": str(ROOT)}
    # The script ends where it asks for an environment; the folders are made before.
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", install["run"]],
        env=os.environ | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (place,) = temp.iterdir()
    assert re.fullmatch(r"ragnb-[A-Za-z0-9._-]{1,40}-\d+", place.name)
    assert output.read_text(encoding="utf-8") == f"folder={place}/out\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output", "runner", "theirs"]
    assert (theirs / "kept").exists()


def test_names_that_differ_have_folders_that_differ(tmp_path):
    (install,) = [step for step in STEPS if step.get("id") == "install"]
    lines = [line for line in install["run"].splitlines() if line.startswith(("plain=", "place="))]
    script = "\n".join([*lines, 'printf %s "$place"'])
    names = ["a/b", "a-b", "a b", "甲", "乙", "x" * 50, "x" * 51]
    places = {
        subprocess.run(
            ["bash", "-c", script],
            env={"NAME": name, "RUNNER_TEMP": "t", "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in names
    }
    assert len(places) == len(names)


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", [ROOT / "action.yml", *WORKFLOWS], ids=lambda path: path.name)
def test_every_action_of_others_is_pinned_by_its_commit(path):
    used = re.findall(r"uses: *(\S+)(.*)", path.read_text(encoding="utf-8"))
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r"  # v\d+\.\d+\.\d+", comment), action
