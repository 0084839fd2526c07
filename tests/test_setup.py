"""The set-up a newcomer runs: the lock, the two commands' files, and the wheel."""

from __future__ import annotations

import configparser
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
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!\[~; ]", name)[0]).lower()


def requirements() -> list[str]:
    """The lock's requirements, each on one line with its hashes."""
    lines = LOCK.replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.lstrip().startswith("#")]


def test_lock_pins_and_hashes_every_requirement():
    assert len(requirements()) > 50
    for line in requirements():
        assert re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line


def test_lock_names_no_index():
    assert "://" not in LOCK
    assert not re.search(r"^\s*(-i|--index|--extra-index|--find-links)", LOCK, re.MULTILINE)


def test_lock_holds_every_dependency_and_the_build_back_end():
    wanted = [
        *PYPROJECT["project"]["dependencies"],
        *PYPROJECT["dependency-groups"]["dev"],
        *PYPROJECT["build-system"]["requires"],
    ]
    assert {plain(name) for name in wanted} <= {plain(line) for line in requirements()}


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
    wanted = {path.relative_to(ROOT).as_posix() for path in files} | {"ragnb/report/report.ipynb"}
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
    assert step == f'pip install "ragnb=={ragnb.__version__}"'
