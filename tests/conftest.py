"""What every test shares: a headless backend, one hypothesis profile, the real data, the rule about skips."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["MPLBACKEND"] = "Agg"
os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
# Processes of tests fill the cores: threads of OpenBLAS on top would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from environments import install_wheel
from hypothesis import HealthCheck, settings
from llm_server import LlmServer

# Without compiled files each of some hundred processes that tests start would compile the library again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
OPTIONAL = [] if find_spec("xllamacpp") else ["optional"]
collect_ignore = [
    "release",
    "sample_project",
    "tool_files",
    *OPTIONAL,
]  # make release-check names the first
Report = pytest.TestReport | pytest.CollectReport
SHARED_REASON = "no folder shared/ beside the checkout"

# Every run draws the same examples; --hypothesis-profile=explore draws new ones.
SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "same", derandomize=True, deadline=None, database=None, suppress_health_check=SLOW
)
settings.register_profile("explore", deadline=None, suppress_health_check=SLOW, max_examples=1000)
settings.load_profile("same")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the checkout, or RAGNB_SHARED."""
    folder = Path(os.environ.get("RAGNB_SHARED") or ROOT.parent / "shared")
    if not folder.is_dir():
        pytest.skip(SHARED_REASON)
    return folder


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose ragnb is that of a wheel, as a user has it."""
    return install_wheel(tmp_path_factory.mktemp("installed"))


# One browser a module: while Playwright runs it holds an event loop, which kernels of other tests need.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        pytest.skip(f"no Chromium (looked for {', '.join(CHROMIUM)})")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=ARGS)
        yield browser
        browser.close()


@pytest.fixture
def llm_server() -> Iterator[LlmServer]:
    """An endpoint on 127.0.0.1 that answers ``ok`` until the test sets its `script`."""
    with LlmServer() as server:
        yield server


class Clock:
    """A clock that moves only when a test moves it, for the time of day and the monotonic one."""

    def __init__(self) -> None:
        self.day, self.monotonic = time.time(), time.monotonic()

    def pass_seconds(self, seconds: float) -> None:
        self.day += seconds
        self.monotonic += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Stop time for `ragnb.store`: what depends on a lease then does not depend on the machine."""
    stopped = Clock()
    monkeypatch.setattr("ragnb.store.store.time.time", lambda: stopped.day)
    monkeypatch.setattr("ragnb.store.store.time.monotonic", lambda: stopped.monotonic)
    return stopped


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in this process; return exit code, stdout and stderr."""

    def ragnb(*args: object) -> tuple[int, str, str]:
        from ragnb.cli import main

        code = main([str(arg) for arg in args])
        said = capsys.readouterr()
        return code, said.out, said.err

    return ragnb


@pytest.fixture(autouse=True)
def _no_figure_is_left() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def fail_if_required(report: Report) -> Report:
    """Turn a skip into a failure where everything has to be there; only the real data may be absent."""
    if not os.environ.get("RAGNB_REQUIRE_ALL") or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if SHARED_REASON not in reason:
        report.outcome = "failed"
        report.longrepr = f"RAGNB_REQUIRE_ALL is set, and this was skipped: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Report, Report]:
    return fail_if_required((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Report, Report]:
    return fail_if_required((yield))
