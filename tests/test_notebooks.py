"""The notebooks: short callers, all but one without outputs, each run by nbval, the report's parameters typed.

pytest itself collects ``notebooks/`` with ``--nbval-lax``; the report notebook runs in test_report.py.
The quickstart keeps its outputs, for readers who do not run it; nbval compares those of tagged cells.
"""

from __future__ import annotations

import ast
import json
import os
import re
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
SHOWN = ROOT / "notebooks" / "00_quickstart.ipynb"
COMPARED = "nbval-check-output"
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
    for cell in code(path) if path != SHOWN else []:
        assert cell.outputs == []
        assert cell.execution_count is None


@pytest.mark.parametrize("path", GALLERY, ids=[path.name for path in GALLERY])
def test_notebook_teaches_with_assertions(path):
    cells = code(path)
    assert sum("assert " in cell.source for cell in cells) > len(cells) / 2
    first, *_, last = read(path).cells
    assert first.cell_type == last.cell_type == "markdown"
    assert "You learn" in first.source
    assert last.source.startswith("## On your own data")


def test_shown_notebook_holds_what_nbval_compares():
    cells = code(SHOWN)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    compared = [cell for cell in cells if COMPARED in cell.metadata.get("tags", [])]
    drawn = [cell for cell in cells if "= plots." in cell.source]
    assert all("image/png" in cell.outputs[-1].data for cell in drawn)
    # A backend without pictures leaves no output, and the sheet has tests of its own.
    assert [cell for cell in cells if cell not in compared and cell not in drawn] == cells[-2:-1]
    assert sum(bool(cell.outputs) for cell in compared) > len(compared) / 2


def test_shown_outputs_hold_no_time_path_address_or_error_stream():
    for cell in code(SHOWN):
        assert "execution" not in cell.metadata
        for output in cell.outputs:
            assert output.get("name") != "stderr", output.text
            data = {k: v for k, v in output.get("data", {}).items() if not k.startswith("image/")}
            text = str(data) + output.get("text", "")
            assert not re.search(r"0x[0-9a-f]{6,}|\d{4}-\d\d-\d\d[T ]\d\d:|/tmp/|/home/|\.venv", text)


def test_nbval_sees_a_shown_number_change(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "data").symlink_to(ROOT / "data")
    notebook = read(SHOWN)
    cells = code(SHOWN)[:3]
    for number, passes in (("0.935", True), ("0.936", False)):
        notebook.cells = nbformat.from_dict(json.loads(json.dumps(cells).replace("0.935", number)))
        path = tmp_path / "notebooks" / f"{passes}.ipynb"
        nbformat.write(notebook, path)
        words = ["-m", "pytest", "--nbval-lax", "--nbval-current-env", "-q", "-c", os.devnull, str(path)]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is passes, done.stdout


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
    assert {path.name for path in GALLERY} == {path.name for path in GALLERY if f"{path.name}:" in done.stdout}
    assert "report.ipynb" not in done.stdout, "the report runs by papermill, with parameters"
