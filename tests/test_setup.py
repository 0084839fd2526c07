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
from ruamel.yaml import YAML

import ragnb
from ragnb.example import FOLDERS

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {
    path.name: path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("requirements*.lock"))
}
OLDEST = "requirements-oldest.lock"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!\[~; ]", name)[0]).lower()


def requirements(lock: str = "requirements.lock") -> list[str]:
    """A lock's requirements, each on one line with its hashes."""
    lines = LOCKS[lock].replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_and_hashes_every_requirement_and_names_no_index(lock):
    assert len(requirements(lock)) > (3 if lock == "requirements-build.lock" else 15)
    for line in requirements(lock):
        assert re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line
    assert "://" not in LOCKS[lock]
    assert not re.search(r"^\s*(-i|--index|--extra-index|--find-links)", LOCKS[lock], re.MULTILINE)


def test_the_lock_of_the_core_has_its_dependencies_with_the_pins_of_the_whole():
    core = {line.split(" --hash")[0].strip() for line in requirements("requirements-core.lock")}
    assert {plain(need) for need in PYPROJECT["project"]["dependencies"]} <= {
        plain(line) for line in core
    }
    assert {line.split(";")[0].strip() for line in core} <= {
        line.split(" --hash")[0].split(";")[0].strip() for line in requirements()
    }
    assert not {plain(line) for line in core} & {
        "jupyterlab",
        "matplotlib",
        "ragas",
        "openai",
        "pytest",
    }


@pytest.mark.parametrize("lock", [lock for lock in LOCKS if lock != OLDEST])
def test_a_smaller_lock_has_the_pins_of_the_whole(lock):
    parts, whole = (
        {line.split(" --hash")[0].split(";")[0].strip() for line in requirements(one)}
        for one in (lock, "requirements.lock")
    )
    assert parts <= whole


def test_the_lock_of_the_oldest_packages_has_the_lower_bounds_of_the_core():
    pins = {plain(line): line.split("==")[1].split()[0] for line in reversed(requirements(OLDEST))}
    for need in PYPROJECT["project"]["dependencies"]:
        bound = re.search(r">=([\d.]+)", need)
        assert bound is not None, need
        pin = pins[plain(need)]
        assert re.sub(r"(\.0)+$", "", pin) == re.sub(r"(\.0)+$", "", bound[1]), need


def test_the_lock_of_the_page_has_what_its_room_imports_and_no_jupyterlab():
    names = {plain(line) for line in requirements("requirements-report.lock")}
    core = {plain(line) for line in requirements("requirements-core.lock")}
    assert core | {"ipykernel", "matplotlib", "nbconvert", "papermill", "seaborn"} <= names
    assert not names & {"jupyterlab", "ipywidgets", "ragas", "openai", "pytest"}


def test_the_lock_of_the_build_has_the_back_end():
    names = {plain(line) for line in requirements("requirements-build.lock")}
    assert {plain(need) for need in PYPROJECT["build-system"]["requires"]} <= names


def test_lock_holds_every_dependency_and_the_build_back_end():
    extras = PYPROJECT["project"]["optional-dependencies"]
    assert extras["all"] == [f"ragnb[{','.join(sorted(extras.keys() - {'all'}))}]"]
    wanted = [
        *PYPROJECT["project"]["dependencies"],
        *(
            need
            for extra, needs in extras.items()
            if extra not in ("all", "spark")
            for need in needs
            if not need.startswith("ragnb[")
        ),
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
    words = [
        sys.executable,
        "-c",
        CORE_ALONE + code,
        json.dumps(PYPROJECT["project"]["dependencies"]),
    ]
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


LACKING = {
    "import ragnb.plots": ("notebook", "matplotlib"),
    "import ragnb.widgets": ("notebook", "ipywidgets"),
    "import ragnb.report": ("notebook", "papermill"),
    "rn.read_scores('book.xlsx')": ("readers", "python_calamine"),
    "from ragnb.scoring.ragas import imported; imported()": ("ragas", "ragas"),
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory) -> dict[str, str]:
    """What each line says, one after the other in one process: a part that was refused once stays refused."""
    folder = tmp_path_factory.mktemp("core")
    (folder / "book.xlsx").write_bytes(b"PK")
    say = "print(type(error).__name__, error)"
    lines = [f"try: {code}\nexcept ImportError as error: {say}\nelse: print()" for code in LACKING]
    done = core_alone("\n".join(lines), folder)
    assert done.returncode == 0, done.stderr
    return dict(zip(LACKING, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("code", LACKING)
def test_what_a_part_lacks_is_named_with_its_extra(refusals, code):
    extra, package = LACKING[code]
    assert refusals[code].startswith("MissingExtraError ")
    assert f'pip install "ragnb[{extra}]"' in refusals[code]
    assert package in refusals[code]


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


def test_every_place_that_names_the_version_names_this_one():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(.+)\] - (\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)
    assert newest[1] == ragnb.__version__
    cited = YAML(typ="safe").load(ROOT / "CITATION.cff")
    assert (cited["version"], cited["date-released"]) == newest.groups()
    named = {
        tag
        for page in (ROOT / "docs").rglob("*")
        if page.suffix in (".md", ".yml") and "generated" not in page.parts
        for tag in re.findall(r"OWNER/ragnb@v(\d[\d.]+\d)", page.read_text(encoding="utf-8"))
    }
    assert named == {ragnb.__version__}


def test_an_entry_of_the_changelog_is_short():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = re.split(r"^## \[", changelog, flags=re.MULTILINE)[1:]
    assert all(len(entry.splitlines()) <= 65 for entry in entries)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    done = subprocess.run(build, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_wheel_holds_everything_in_the_library_once(wheel):
    files = [
        path for path in (ROOT / "ragnb").rglob("*") if path.is_file() and path.suffix != ".pyc"
    ]
    samples = {
        f"ragnb/samples/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not re.search(r"conftest|__pycache__|/\.", path.as_posix())
    }
    wanted = {path.relative_to(ROOT).as_posix() for path in files} | samples
    assert {"ragnb/samples/notebooks/report.ipynb", "ragnb/samples/data/README.md"} <= wanted
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


def test_the_checks_before_a_release_can_be_collected_where_their_packages_are_absent():
    words = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-p",
        "no:cacheprovider",
        "tests/release",
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "test_core.py" in done.stdout


def test_a_renamed_name_works_and_says_which_to_write(monkeypatch):
    monkeypatch.setitem(ragnb._RENAMED, "appraise", "assess")
    with pytest.warns(DeprecationWarning, match=r"ragnb\.appraise is now ragnb\.assess") as said:
        assert ragnb.appraise is ragnb.assess
    assert said[0].filename == __file__
    with pytest.raises(AttributeError, match="no attribute 'apprise'"):
        ragnb.apprise  # noqa: B018
