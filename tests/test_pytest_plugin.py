"""The plug-in of pytest, used by a project that is not this one."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest

from ragnb.pytest_plugin import assert_gates

PROJECT = Path(__file__).parent / "sample_project"


@pytest.fixture
def project(tmp_path):
    return Path(shutil.copytree(PROJECT, tmp_path / "project"))


def pytest_run(folder, *words, code):
    """Run pytest with this plug-in alone; return what it prints, and its cases by name."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "ragnb.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-ra",
    ]
    places = os.pathsep.join(filter(None, sys.path))
    env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": places}
    command += ["--rootdir", str(folder), "-c", os.devnull, "--junitxml", "cases.xml", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    cases = ET.parse(folder / "cases.xml").iter("testcase")
    return done.stdout, {
        case.get("name"): next((child.tag for child in case), "passed") for case in cases
    }


def test_every_gate_of_a_scenario_is_a_test_and_the_project_has_its_own(project):
    said, cases = pytest_run(project, "--ragnb-scenario", "rag.yaml", code=0)
    assert cases == {
        "grounded: faithfulness >= 0.6": "passed",
        "found: context_recall >= 0.75": "skipped",
        "input_lines: input_lines >= 1": "passed",
        "scored_cells: scored_cells >= 0.9": "passed",
        "test_the_help_desk_is_grounded": "passed",
        "test_answers_that_were_made_now_pass_the_gates_of_the_scenario": "passed",
        "test_a_system_that_invents_is_stopped": "passed",
        "test_what_the_scenario_leaves_open_is_skipped": "skipped",
    }
    assert "inconclusive; 0.751" in said


def test_a_gate_that_blocks_fails_and_lost_input_never_passes(project):
    scenario = project / "rag.yaml"
    strict = scenario.read_text(encoding="utf-8").replace("0.75", "0.9")
    (project / "strict.yaml").write_text(strict, encoding="utf-8")
    both = ["--ragnb-scenario", "rag.yaml", "--ragnb-scenario", "strict.yaml"]
    said, cases = pytest_run(project, *both, "-k", "recall", code=1)
    assert cases == {
        "found: context_recall >= 0.75": "skipped",
        "found: context_recall >= 0.9": "failure",
    }
    assert "0.751" in said
    assert "Traceback" not in said
    scenario.write_text(strict.replace("scores.csv", "lost.csv"), encoding="utf-8")
    said, cases = pytest_run(project, "--ragnb-scenario", "rag.yaml", code=2)
    assert "lost.csv" in said
    assert "passed" not in cases.values()
    scenario.write_text("scores: scores.csv\n", encoding="utf-8")
    said, cases = pytest_run(project, "--ragnb-scenario", "rag.yaml", "-k", "rag.yaml", code=0)
    assert cases["gates"] == "skipped"
    assert "No gates are set" in said
    said, _ = pytest_run(project, "-k", "leaves_open", code=1)
    assert "--ragnb-scenario names 0 scenarios" in said


def test_gates_block_or_leave_a_test_open_as_they_do_a_run():
    rows = pd.DataFrame({"faithfulness": 0.9, "doc_name": [*"abcdefgh"]})
    with pytest.raises(pytest.skip.Exception, match="No gates"):
        assert_gates(rows)
