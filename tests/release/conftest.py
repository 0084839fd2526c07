"""What the checks before a release share: one wheel, environments that are removed after use, and their table."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from environments import PYTHONS, ROOT, Environment, build_wheel, interpreter, markdown, weighed
from small_tables import write_tables

BUILD = ROOT / "build" / "release"
collect_ignore = [
    "spark_job.py"
]  # a script; --doctest-modules would import it, and it needs PySpark


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which versions of Python could not be tried."""
    missing = [version for version in PYTHONS if interpreter(version) is None]
    if missing:
        terminalreporter.write_line(f"Not on this machine: Python {', '.join(missing)}")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def index(wheel) -> str:
    """Return where pip finds packages besides its index: the wheel of this checkout."""
    return f"{os.environ.get('PIP_FIND_LINKS', '')} {wheel.parent}".strip()


@pytest.fixture(scope="session")
def record() -> Iterator[Callable[[str, Environment], None]]:
    """Weigh an environment for the table, which is written at the end."""
    rows: list[dict[str, object]] = []

    def add(name: str, environment: Environment) -> None:
        rows.append({"installed": name, **weighed(environment, "ragnb")})

    yield add
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "environments.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    (BUILD / "environments.md").write_text(markdown(rows) if rows else "", encoding="utf-8")


@pytest.fixture(scope="session")
def record_start() -> Callable[[str], None]:
    """Keep the table of how long commands of the installed wheel take to start."""

    def keep(table: str) -> None:
        BUILD.mkdir(parents=True, exist_ok=True)
        (BUILD / "start.md").write_text(table, encoding="utf-8")

    return keep


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> Iterator[Callable[..., Environment]]:
    """Make environments; all are removed at the end, for pytest keeps the folders of three runs."""
    made: list[Path] = []

    def make(python: Path | str = sys.executable) -> Environment:
        made.append(tmp_path_factory.mktemp("environment") / "venv")
        return Environment.make(made[-1], python)

    yield make
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with tables and scenarios, in English and Chinese, and no checkout around it."""
    write_tables(tmp_path)
    return tmp_path
