"""The action, installed for real from its locks, in a repository of somebody else."""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from composite import Composite
from environments import KEPT, ROOT
from small_tables import COMPARED, SCENARIOS, git, scratch_repository


@pytest.fixture(scope="module")
def action(tmp_path_factory) -> Path:
    """The action as a runner checks it out: what git has of this checkout, and nothing else."""
    folder = tmp_path_factory.mktemp("action")
    for name in git(ROOT, "ls-files", "-c", "-o", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    return scratch_repository(tmp_path_factory.mktemp("theirs"))


def run(
    action: Path, repository: Path, temp: Path, given: dict[str, dict[str, str]], **inputs: str
) -> Composite:
    temp.mkdir(exist_ok=True)
    env = {
        name: value for name, value in os.environ.items() if KEPT.fullmatch(name) and name != "PATH"
    }
    done = Composite(
        action, workspace=repository, temp=temp, inputs=inputs, given=given, env=env
    ).run()
    assert not git(repository, "status", "--porcelain")
    return done


@pytest.fixture(scope="module", params=["true", "false"])
def installed(request, action, repository, tmp_path_factory):
    """A first run of the whole action, which installs; the later ones take its environment."""
    temp = tmp_path_factory.mktemp("runner")
    first = run(action, repository, temp, {}, scenario="拦截.yaml", report=request.param)
    yield request.param, first, temp
    shutil.rmtree(temp)


def test_it_installs_runs_and_keeps_what_it_wrote(installed):
    report, first, _ = installed
    assert first.steps["install"].outcome == "success", first.steps["install"].log
    assert first.code == 1
    tables = {"scores.csv", "means.csv", "run.json"} | {
        f"report.{kind}" for kind in ("html", "ipynb", "md")
    }
    wanted = {"gates.json", "gates.xml"} | (tables if report == "true" else set())
    assert {path.name for path in first.kept} == wanted
    assert "尚未达标" in first.summary.read_text(encoding="utf-8")


def test_the_environment_holds_what_the_locks_name(installed):
    _, first, _ = installed
    python = Path(first.steps["install"].outputs["ragnb"]).with_name("python")
    listed = [python, "-m", "pip", "list", "--format", "freeze", "--disable-pip-version-check"]
    names = {
        line.partition("==")[0].lower()
        for line in subprocess.check_output(listed, text=True).splitlines()
    }
    print(len(names - {"pip", "setuptools"}), "packages")
    assert "ragnb" in names
    assert not names & {"jupyterlab", "openai", "ragas"}
    assert subprocess.run([python, "-m", "pip", "check"], check=False).returncode == 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_ends_with_the_exit_code_of_the_gates(installed, action, repository, tmp_path, name):
    report, first, _ = installed
    if report == "true":
        pytest.skip("the gates are the same without the page")
    (tmp_path / "out").mkdir()
    given = {"install": first.steps["install"].outputs | {"folder": str(tmp_path / "out")}}
    done = run(
        action, repository, tmp_path / "runner", given, scenario=f"{name}.yaml", report="false"
    )
    code, _ = SCENARIOS[name]
    assert (done.code, done.outputs["exit-code"]) == (code, str(code)), done.steps["gates"].log
    assert {path.name for path in done.kept} == (
        set() if code == 2 else {"gates.json", "gates.xml"}
    )
    if code != 2:
        cases = [*ElementTree.parse(tmp_path / "out" / "gates.xml").getroot().iter("testcase")]
        failed = any(case.find("failure") is not None for case in cases)
        skipped = any(case.find("skipped") is not None for case in cases)
        assert (failed, skipped) == (code == 1, name == "inconclusive")


@pytest.mark.parametrize("let", ["fail", "pass"])
@pytest.mark.parametrize(("baseline", "code"), COMPARED.items())
def test_it_ends_with_that_of_the_comparison(
    installed, action, repository, tmp_path, baseline, code, let
):
    report, first, _ = installed
    if report == "true":
        pytest.skip("the comparison is the same without the page")
    (tmp_path / "out").mkdir()
    given = {"install": first.steps["install"].outputs | {"folder": str(tmp_path / "out")}}
    inputs = {
        "scenario": "passing.yaml",
        "baseline": f"{baseline}.csv",
        "report": "false",
        "inconclusive": let,
    }
    done = run(action, repository, tmp_path / "runner", given, **inputs)
    assert done.code == (0 if code == 3 and let == "pass" else code)
