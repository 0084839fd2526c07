"""The set-up a newcomer runs: the lock, the two commands' files, and the wheel."""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import ragnb

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {path.name: path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("requirements*.lock"))}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!\[~; ]", name)[0]).lower()


def requirements(lock: str = "requirements.lock") -> list[str]:
    """A lock's requirements, each on one line with its hashes."""
    lines = LOCKS[lock].replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_and_hashes_every_requirement_and_names_no_index(lock):
    assert len(requirements(lock)) > 15
    for line in requirements(lock):
        assert re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line
    assert "://" not in LOCKS[lock]
    assert not re.search(r"^\s*(-i|--index|--extra-index|--find-links)", LOCKS[lock], re.MULTILINE)


def test_the_lock_of_the_core_has_its_dependencies_with_the_pins_of_the_whole():
    core = {line.split(" --hash")[0].strip() for line in requirements("requirements-core.lock")}
    assert {plain(need) for need in PYPROJECT["project"]["dependencies"]} <= {plain(line) for line in core}
    assert {line.split(";")[0].strip() for line in core} <= {
        line.split(" --hash")[0].split(";")[0].strip() for line in requirements()
    }
    assert not {plain(line) for line in core} & {"jupyterlab", "matplotlib", "ragas", "openai", "pytest"}


def test_lock_holds_every_dependency_and_the_build_back_end():
    extras = PYPROJECT["project"]["optional-dependencies"]
    assert extras["all"] == [f"ragnb[{','.join(sorted(extras.keys() - {'all'}))}]"]
    wanted = [
        *PYPROJECT["project"]["dependencies"],
        *(need for extra, needs in extras.items() if extra not in ("all", "spark") for need in needs),
        *PYPROJECT["dependency-groups"]["dev"],
        *PYPROJECT["build-system"]["requires"],
    ]
    assert {plain(name) for name in wanted} <= {plain(line) for line in requirements()}


CORE_ALONE = """
import importlib.metadata, json, re, sys, tomllib

def plain(name):
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!\\[~; (]", name)[0]).lower()

core, left = set(), json.loads(sys.argv[1])
installed = {plain(one.name) for one in importlib.metadata.distributions()}
while left:
    name = plain(left.pop())
    if name in installed - core:
        core.add(name)
        left += [need for need in importlib.metadata.requires(name) or () if "extra ==" not in need]
modules = importlib.metadata.packages_distributions()
hidden = {name for name, owners in modules.items() if not core & set(map(plain, owners))} - {"ragnb"}
hidden -= set(sys.stdlib_module_names)
assert {"matplotlib", "papermill", "IPython", "openai", "ragas", "pyarrow"} <= hidden

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
finder = importlib.metadata.MetadataPathFinder
search = finder.find_distributions

def installed_alone(*context):
    return [one for one in search(*context) if plain(one.name) in core | {"ragnb"}]

finder.find_distributions = installed_alone  # what is hidden has no version either
import warnings
warnings.simplefilter("ignore")
import ragnb as rn
from ragnb.cli import main
"""


def core_alone(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run code where only the packages of the core, and what they bring, can be imported."""
    words = [sys.executable, "-c", CORE_ALONE + code, json.dumps(PYPROJECT["project"]["dependencies"])]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=env, check=False)


def test_scores_are_checked_and_assessed_with_the_core_alone(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"faithfulness": [0.9, 0.8, 0.4] * 5, "doc_name": list("abcde") * 3})
    frame.to_csv(tmp_path / "scores.csv")
    frame.to_parquet(tmp_path / "scores.parquet")
    done = core_alone(
        f"""
sheet = rn.assess("scores.csv")
same = rn.assess("scores.parquet").means.equals(sheet.means)
page = sheet._repr_html_()
sheet.save("saved")
code = main(["check", {str(ROOT / "scenarios" / "quickstart.yaml")!r}, "--markdown", "a.md", "--junit", "a.xml"])
print(json.dumps([same, len(page) > 10_000, code, sheet.means["value"].iloc[0]]))
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [True, True, 1, pytest.approx(0.7)]
    packages = json.loads((tmp_path / "saved" / "run.json").read_text(encoding="utf-8"))["packages"]
    assert {"numpy", "polars"} <= set(packages)
    assert not {"matplotlib", "papermill"} & set(packages)


@pytest.mark.parametrize(
    ("code", "extra", "package"),
    [
        ("import ragnb.plots", "notebook", "matplotlib"),
        ("import ragnb.widgets", "notebook", "ipywidgets"),
        ("import ragnb.report", "notebook", "papermill"),
        ("rn.read_scores('book.xlsx')", "readers", "python_calamine"),
        ("from ragnb.scoring.ragas import imported; imported()", "ragas", "ragas"),
    ],
)
def test_what_a_part_lacks_is_named_with_its_extra(tmp_path, code, extra, package):
    (tmp_path / "book.xlsx").write_bytes(b"PK")
    done = core_alone(f"try: {code}\nexcept ImportError as error: print(type(error).__name__, error)", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("MissingExtraError ")
    assert f'pip install "ragnb[{extra}]"' in done.stdout
    assert package in done.stdout


def test_a_command_that_lacks_a_package_is_refused_in_one_line(tmp_path):
    scenario = str(ROOT / "scenarios" / "quickstart.yaml")
    done = core_alone(f"sys.exit(main(['report', {scenario!r}]))", tmp_path)
    line = 'ragnb: papermill is not installed; it comes with: pip install "ragnb[notebook]"\n'
    assert (done.returncode, done.stderr) == (2, line)


def test_ragnb_runs_as_a_module():
    words = [sys.executable, "-m", "ragnb", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"ragnb, version {ragnb.__version__}\n")


def test_ci_script_is_executable_and_parses():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    assert re.search(r"^make test$", script.read_text(encoding="utf-8"), re.MULTILINE)


def test_changelog_has_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[?{re.escape(ragnb.__version__)}\b", changelog, re.MULTILINE)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    done = subprocess.run(build, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_wheel_holds_everything_in_the_library_once(wheel):
    files = [path for path in (ROOT / "ragnb").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    notebooks = {f"ragnb/report/{name}.ipynb" for name in ("calibration", "report")}
    wanted = {path.relative_to(ROOT).as_posix() for path in files} | notebooks
    held = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert sorted(held) == sorted(wanted)
    assert {"ragnb/py.typed", "ragnb/texts/en.toml", "ragnb/texts/zh.toml"} <= wanted


def test_wheel_has_the_command_and_the_licence(wheel):
    info = next(name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name)
    entries = configparser.ConfigParser()
    entries.read_string(wheel.read(f"{info}/entry_points.txt").decode())
    assert dict(entries["console_scripts"]) == {"ragnb": "ragnb.cli:main"}
    assert "MIT License" in wheel.read(f"{info}/licenses/LICENSE").decode()
    assert f"Version: {ragnb.__version__}" in wheel.read(f"{info}/METADATA").decode()


@pytest.fixture
def ci_job(tmp_path):
    """The example's job, and the folder of a reader: a scenario and data, no ragnb, and a store of raw replies."""
    from ruamel.yaml import YAML

    for folder in ("scenarios", "data"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    store = tmp_path / "reports" / "quickstart" / "judged.sqlite"
    store.parent.mkdir(parents=True)
    for name in ("", "-wal", "-shm"):
        store.with_name(store.name + name).write_bytes(b"raw replies")
    (job,) = YAML(typ="safe").load(ROOT / "docs" / "ci-example.yml")["jobs"].values()
    return job


def test_the_example_of_a_ci_job_runs_step_by_step_and_uploads_no_store(ci_job, tmp_path):
    steps = [step["run"] for step in ci_job["steps"] if "run" in step and not step["run"].startswith("pip ")]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | ci_job["env"] | {"PATH": path, "GITHUB_STEP_SUMMARY": str(tmp_path / "step.md")}
    env["PYTHONPATH"] = str(ROOT)
    done = [subprocess.run(["bash", "-ec", step], env=env, cwd=tmp_path, check=False) for step in steps]
    assert [one.returncode for one in done] == [1, 0, 0]
    assert (tmp_path / "step.md").read_bytes() == (tmp_path / "summary.md").read_bytes()
    kept = [set(tmp_path.glob(name)) for name in ci_job["steps"][-1]["with"]["path"].split()]
    assert all(kept)
    page = {f"report.{kind}" for kind in ("html", "ipynb", "md")}
    tables = {"scores.csv", "means.csv", "gates.json", "run.json", "gates.xml"}
    assert {path.name for found in kept for path in found} == page | tables


def test_the_example_of_a_ci_job_installs_this_version_of_the_package(ci_job):
    (step,) = [step["run"] for step in ci_job["steps"] if step.get("run", "").startswith("pip ")]
    assert step == f'pip install "ragnb[notebook]=={ragnb.__version__}"'
