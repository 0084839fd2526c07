"""The core alone, from its lock, on every Python of this machine."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import pytest
from environments import PYTHONS, ROOT, Environment, interpreter
from small_tables import COMPARED, QUESTIONS, SCENARIOS, faithfulness

import ragnb

LOCK = ROOT / "requirements-core.lock"
MOST_PACKAGES = 35
ABSENT = {
    "matplotlib",
    "seaborn",
    "pyarrow",
    "ipython",
    "ipykernel",
    "jupyterlab",
    "papermill",
    "openai",
    "ragas",
}
EVERY_ENGINE = """
import pandas as pd, polars as pl, ragnb as rn, sys
frame = pd.read_csv("scores.csv")
frame.to_csv("same.csv", index=False)
pl.read_csv("scores.csv").write_parquet("scores.parquet")
mean = frame["faithfulness"].mean()
for rows in (frame, pl.from_dicts(frame.to_dict("records")), pl.scan_csv("scores.csv"),
             pl.scan_parquet("scores.parquet")):
    assert abs(rn.weighted_means(rows)["value"].iloc[0] - mean) < 1e-10, type(rows)
    assert len(rn.diagnose(rows)) >= 0
    rn.moments(rows).to_parquet("cells.parquet")
    assert abs(rn.Moments.from_parquet("cells.parquet").means()["value"].iloc[0] - mean) < 1e-10
    assert rn.weigh(rows) is not None
for file in ("scores.csv", "scores.parquet", "得分.csv"):
    sheet = rn.assess(file)
    assert abs(sheet.means["value"].iloc[0] - mean) < 1e-10
    assert sheet.to_html().startswith("<!doctype html>")
    assert sheet._repr_html_() and sheet.to_markdown() and sheet.to_junit()
sheet.save("saved")
card = rn.calibrate(rn.read_ratings("ratings.csv"))
assert card._repr_html_() and card.to_markdown() and card.to_dict()
assert "worse" in set(rn.compare("scores.csv", baseline="worse.csv")["outcome"])
heavy = {"matplotlib", "seaborn", "pyarrow", "IPython", "ipywidgets"} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.fixture(scope="module", params=PYTHONS)
def core(request, environment, wheel, record) -> Iterator[Environment]:
    """The core as a server installs it: dependencies by hash, then the wheel."""
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"no Python {request.param} on this machine")
    made = environment(python)
    made.pip("install", "--require-hashes", "-r", LOCK)
    made.pip("install", "--no-deps", wheel)
    record(f"ragnb, Python {request.param}", made)
    return made


def test_the_lock_brings_few_packages_and_all_that_the_core_needs(core):
    core.pip("check")
    packages = core.packages()
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    named = {name.replace("_", "-").replace(".", "-") for name in packages}
    assert named - {"ragnb"} <= pins.keys()
    assert not named & ABSENT
    assert len(packages) <= MOST_PACKAGES


def test_a_package_with_another_hash_is_refused(core, tmp_path):
    text = LOCK.read_text(encoding="utf-8")
    start = text.index("\ntqdm==")
    wrong = re.sub(
        r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", text[start:].partition("    # via")[0]
    )
    (tmp_path / "wrong.lock").write_text(wrong, encoding="utf-8")
    with pytest.raises(RuntimeError, match="(?i)hash"):
        core.pip(
            "download",
            "--no-deps",
            "--require-hashes",
            "-d",
            tmp_path,
            "-r",
            tmp_path / "wrong.lock",
        )


def test_the_commands_start(core, folder):
    for words in (["ragnb", "--version"], ["python", "-m", "ragnb", "--version"]):
        done = core.run(*words, cwd=folder)
        assert (done.returncode, done.stdout) == (0, f"ragnb, version {ragnb.__version__}\n"), (
            done.stderr
        )
    place = core.run("python", "-c", "import ragnb; print(ragnb.__file__)", cwd=folder).stdout
    assert place.startswith(str(core.folder))


def test_how_long_commands_take_to_start_is_measured(core, folder, record_start):
    table = core.succeed("python", ROOT / "benchmarks" / "start.py", cwd=folder)
    times = re.findall(r"^\| (.+) \| [\d.]+ \| ([\d.]+) \|$", table, re.MULTILINE)
    assert times[0] == ("import pandas", "1.00")
    assert {"ragnb --version", "ragnb compare", "ragnb check"} <= {name for name, _ in times}
    record_start(table)


@pytest.mark.parametrize("name", SCENARIOS)
def test_gates_are_checked(core, folder, name):
    code, _ = SCENARIOS[name]
    files = ["--markdown", "a.md", "--junit", "a.xml", "--json", "a.json"]
    done = core.run("ragnb", "check", f"{name}.yaml", *files, cwd=folder)
    assert done.returncode == code, done.stderr
    if code == 2:
        assert re.fullmatch(r"ragnb: .*\n", done.stderr)
        assert not (folder / "a.md").exists()
        return
    assert re.split("[:：]", done.stdout)[0] in (folder / "a.md").read_text(encoding="utf-8")
    cases = ElementTree.parse(folder / "a.xml").getroot().iter("testcase")
    assert any(case.find("failure") is not None for case in cases) == (code == 1)
    gates = json.loads((folder / "a.json").read_text(encoding="utf-8"))["gates"]
    (value,) = [gate["value"] for gate in gates if gate["metric"] == "faithfulness"]
    assert value == pytest.approx(sum(map(faithfulness, range(QUESTIONS))) / QUESTIONS, abs=1e-10)


@pytest.mark.parametrize(("baseline", "code"), COMPARED.items())
def test_runs_are_compared(core, folder, baseline, code):
    files = ["--markdown", "a.md", "--junit", "a.xml", "--json", "a.json", "--html", "a.html"]
    done = core.run(
        "ragnb", "compare", "scores.csv", f"{baseline}.csv", "--gate", *files, cwd=folder
    )
    assert done.returncode == code, done.stderr
    assert all((folder / name).stat().st_size for name in files[1::2])


def test_a_judge_is_calibrated(core, folder):
    files = ["--markdown", "a.md", "--json", "a.json"]
    done = core.run("ragnb", "calibrate", "ratings.csv", *files, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "100.0 %" in done.stdout  # the judge is never more than 1 off
    assert all((folder / name).stat().st_size for name in files[1::2])


def test_frames_of_pandas_and_polars_are_evaluated_in_python(core, folder):
    done = core.run("python", "-W", "error::ImportWarning", "-c", EVERY_ENGINE, cwd=folder)
    assert done.returncode == 0, done.stderr
