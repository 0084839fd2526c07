"""The guides and the core of the suite run with the oldest and the newest packages that the bounds allow."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from environments import ROOT, Environment

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = ("notebook", "judge", "ragas", "readers", "documents", "duckdb")
# What the tests themselves compute with; its versions have no bounds that a user would meet.
TOOLS = (
    "bm25s",
    "hatchling",
    "hypothesis",
    "krippendorff",
    "nbval",
    "openpyxl",
    "pre-commit",
    "pytest",
    "pytest-xdist",
    "rouge-score",
    "scikit-learn",
    "statsmodels",
)
CORE = ("weights", "scoring", "traces", "store", "comparison", "readers", "calibration", "judging")


def direct_requirements() -> list[str]:
    """Return what the core and its extras name, with their bounds."""
    project = PROJECT["project"]
    named = [project["dependencies"]]
    named += [project["optional-dependencies"][extra] for extra in EXTRAS]
    return [requirement for part in named for requirement in part]


@pytest.fixture(scope="module", params=["lowest-direct", "highest"])
def aged(request, environment, wheel, tmp_path_factory) -> Environment:
    """An environment with the oldest or the newest versions, the wheel, and the tools of the tests."""
    made = environment()
    made.pip("install", "uv")
    folder: Path = tmp_path_factory.mktemp("requirements")
    wanted = folder / "requirements.in"
    wanted.write_text("\n".join(direct_requirements()) + "\n", encoding="utf-8")
    install = ["uv", "pip", "install", "--python", made.python, "--only-binary", ":all:"]
    made.succeed(*install, "--resolution", request.param, "-r", wanted, cwd=folder)
    kept = folder / "kept.txt"
    kept.write_text(
        made.succeed("uv", "pip", "freeze", "--python", made.python, cwd=folder), "utf-8"
    )
    made.succeed(*install, "-c", kept, *TOOLS, cwd=folder)
    made.succeed(*install, "--no-deps", wheel, cwd=folder)
    return made


def passes(made: Environment, *tests: str) -> None:
    """Run tests of the checkout with the library of the environment; the checkout is not importable."""
    paths = [ROOT / "tests" / name for name in tests]
    # The oldest PyArrow calls what pandas 3 has deprecated, and datasets leaves a file to the garbage collector.
    how = ["-n", "2", "--dist", "loadfile", "-W", "ignore:make_block is deprecated"]
    how += ["-W", "ignore:unclosed file:ResourceWarning"]
    said = made.succeed("pytest", *how, *paths, cwd=ROOT)
    assert re.search(r"^\d+ passed", said, re.MULTILINE), said[-4000:]


def test_every_block_of_every_guide_runs(aged):
    passes(aged, "test_docs.py")


def test_the_core_of_the_suite_passes(aged):
    passes(aged, *CORE)
