"""The notebooks: short callers, all but one without outputs, run by nbval, or with typed parameters by papermill.

pytest itself collects ``notebooks/`` with ``--nbval-lax``; `ragnb report` runs the report's in test_report.py.
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
import numpy as np
import pandas as pd
import pytest

import ragnb as rn
from ragnb import Scenario
from ragnb.texts import load

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
REPORT = ROOT / "notebooks" / "report.ipynb"
COMPARE = ROOT / "notebooks" / "compare.ipynb"
PARAMETERS = {
    REPORT: {"scenario": "str", "out": "str", "overrides": "dict"},
    COMPARE: {
        "new": "str", "baseline": "str", "candidate": "str", "margin": "float", "by": "str", "lang": "str",
        "overrides": "dict",
    },
}  # fmt: skip
GALLERY = [path for path in NOTEBOOKS if path not in PARAMETERS]
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


@pytest.mark.parametrize("path", PARAMETERS, ids=lambda path: path.name)
def test_papermill_finds_the_typed_parameters_one_a_line(path):
    import papermill

    (cell,) = tagged(path)
    assert code(path)[0].source == cell.source
    typed = [type(line) for line in ast.parse(cell.source).body]
    assert typed == [ast.AnnAssign] * len(cell.source.splitlines())
    found = papermill.inspect_notebook(str(path))
    assert {name: one["inferred_type_name"] for name, one in found.items()} == PARAMETERS[path]


def test_no_parameter_of_the_report_is_a_field_of_a_scenario():
    assert not set(PARAMETERS[REPORT]) & set(Scenario.model_fields)


def papermill_runs(path: Path, folder: Path, **parameters: str) -> tuple[int, list[nbformat.NotebookNode], str]:
    """Run a notebook by papermill as a user does, in a folder; return exit code, outputs and what was said."""
    words = [word for name, value in parameters.items() for word in ("-p", name, value)]
    env = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    done = subprocess.run(
        [sys.executable, "-m", "papermill", str(path), "out.ipynb", *words, "-k", "python3", "--no-progress-bar"],
        capture_output=True, text=True, check=False, cwd=folder, env=env | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.returncode, [out for cell in code(folder / "out.ipynb") for out in cell.outputs], done.stderr


@pytest.mark.parametrize("path", PARAMETERS, ids=lambda path: path.name)
def test_an_unknown_parameter_is_refused_before_anything_is_read(path, tmp_path):
    near = next(iter(PARAMETERS[path]))
    status, outputs, said = papermill_runs(path, tmp_path, **{f"{near}s": "nowhere.csv"})
    assert status != 0
    assert f"RagnbError: parameter='{near}s' is not known; did you mean '{near}'?" in said
    assert [output.output_type for output in outputs] == ["error"]


QUESTIONS = {"en": "How long is the warranty ({})?", "zh": "差旅费几天内报销（{}）？"}
DOCUMENTS = {
    "en": ["warranty.pdf", "travel.pdf", "leave.pdf"], "zh": ["差旅报销制度.pdf", "休假办法.pdf", "保修.pdf"],
}  # fmt: skip


def one_run(lang: str, shift: float, seed: int, **columns: float) -> pd.DataFrame:
    """Return scores of 24 questions from 3 documents."""
    draw = np.random.default_rng(seed)
    rows = [
        {"sample_id": f"q{n}", "question": QUESTIONS[lang].format(n), "answer": f"{shift} {n}",
         "doc_name": DOCUMENTS[lang][n % 3], "faithfulness": 0.5 + shift + draw.normal(0, 0.02), **columns}
        for n in range(24)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_compare_answers_two_tables_from_any_folder(lang, tmp_path):
    more = {"new": {"context_recall": 0.4}, "base": {"context_recall": 0.6}} if lang == "en" else {}
    for name, shift in (("new", 0.3), ("base", 0.0)):
        one_run(lang, shift, seed=len(name), **more.get(name, {})).to_csv(tmp_path / f"{name}.csv", index=False)
    status, outputs, said = papermill_runs(COMPARE, tmp_path, new="new.csv", baseline="base.csv", lang=lang)
    assert status == 0, said
    assert not [out for out in outputs if out.get("name") == "stderr"]
    data = [out.data for out in outputs if "data" in out]
    pages = [one["text/html"] for one in data if "text/html" in one]
    row = rn.compare(tmp_path / "new.csv", baseline=tmp_path / "base.csv").iloc[-1]
    head = f"weighted_score +{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    assert row["outcome"] == "better"
    assert load(lang)("compared.better") in pages[0]
    assert head in pages[0]
    moved = rn.changed_questions(tmp_path / "new.csv", baseline=tmp_path / "base.csv", n=10)
    shown = moved[["question", "candidate_answer", "baseline_answer"]].to_numpy().ravel()
    assert any(all(text in page for text in shown) for page in pages)
    assert all(name in pages[-1] for name in DOCUMENTS[lang])
    text = "".join(out.text for out in outputs if out.get("name") == "stdout")
    drawn = sum("image/png" in one for one in data)
    if lang == "en":  # 0.3 w against −0.2 (1 − w)
        assert re.search(r"faithfulness: 50.0 % today, flips at (39|4[01])", text)
        assert drawn == 2
    else:  # one metric has no weights to choose
        assert "权重" in text
        assert drawn == 1


def test_nbval_collects_every_notebook_without_parameters():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "notebooks"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert {path.name for path in GALLERY} == {path.name for path in NOTEBOOKS if f"/{path.name}:" in done.stdout}
