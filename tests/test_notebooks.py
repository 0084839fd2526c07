"""The notebooks: short callers without outputs, each run by nbval, the report's parameters typed.

pytest itself collects ``notebooks/`` with ``--nbval-lax``; the report notebook runs in test_report.py.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from ragnb import Scenario

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
REPORT = ROOT / "notebooks" / "report.ipynb"
GALLERY = [path for path in NOTEBOOKS if path != REPORT]
IDS = [path.name for path in NOTEBOOKS]


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def tagged(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in code(path) if "parameters" in cell.metadata.get("tags", [])]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_notebook_is_valid_and_stripped(path):
    nbformat.validate(read(path))
    for cell in code(path):
        assert cell.outputs == []
        assert cell.execution_count is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_notebook_is_a_short_caller(path):
    assert len(code(path)) <= 15
    for cell in code(path):
        assert len(cell.source.splitlines()) <= 10, cell.source
        defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        assert not [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, defined)]
    assert len(tagged(path)) <= 1


def test_report_has_one_typed_parameter_a_line():
    (cell,) = tagged(REPORT)
    lines = ast.parse(cell.source).body
    assert [type(line) for line in lines] == [ast.AnnAssign] * len(cell.source.splitlines())
    assert [ast.unparse(line.target) for line in lines] == ["scenario", "out", "overrides"]
    assert code(REPORT)[0].source == cell.source


def test_papermill_finds_the_parameters():
    import papermill

    found = papermill.inspect_notebook(str(REPORT))
    assert {name: one["inferred_type_name"] for name, one in found.items()} == {
        "scenario": "str", "out": "str", "overrides": "dict",
    }  # fmt: skip
    assert not {"scenario", "out", "overrides"} & set(Scenario.model_fields)


def test_report_shows_every_section_once():
    from ragnb import assess
    from ragnb.assessment.sheet import sections

    source = "\n".join(cell.source for cell in code(REPORT))
    keys = list(sections(assess(ROOT / "scenarios" / "quickstart.yaml")))
    places = [source.index(f'part["{key}"]') for key in keys]
    assert places == sorted(places)
    assert all(source.count(f'part["{key}"]') == 1 for key in keys)


def test_nbval_collects_every_notebook_but_the_report():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "notebooks"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert {path.name for path in GALLERY} == {path.name for path in GALLERY if f"{path.name}::" in done.stdout}
    assert "report.ipynb" not in done.stdout, "the report runs by papermill, with parameters"
