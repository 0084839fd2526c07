"""The window of `ragnb open` in a real browser, against a local model: from weights to comparing two runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from pipeline_server import model as pipeline_model
from test_pipeline import project

from ragnb.scenario import load_scenario

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
MINUTE = 60_000


class Window:
    """`ragnb open` as a process; `address` is what it prints."""

    def __init__(self, folder: Path, *words: str) -> None:
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        home = folder / "jupyter"
        jupyter = {
            f"JUPYTER_{name}_DIR": str(home / name) for name in ("CONFIG", "DATA", "RUNTIME")
        }
        self.log = folder / "window.log"
        self._output = self.log.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ragnb", "open", "--no-browser", *words],
            cwd=folder,
            env={**os.environ, **jupyter, "PYTHONPATH": paths, "IPYTHONDIR": str(home / "ipython")},
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # A shell that starts the tests in the background has Ctrl-C ignored in all that follows.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def __enter__(self) -> Window:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", self.log.read_text())
            if found:
                self.address = found[0]
                return self
            time.sleep(0.1)
        self.process.kill()
        raise RuntimeError(self.log.read_text())

    def interrupt(self) -> int:
        """Press Ctrl-C, and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)

    def __exit__(self, *_: object) -> None:
        self._output.close()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def descendants(pid: int) -> set[int]:
    """Return the processes below one, as Linux lists them."""
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            children = {int(word) for word in task.read_text().split()}
            found |= children
            waiting += children
    return found


def alive(pids: set[int]) -> set[int]:
    def is_running(pid: int) -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        return state != "Z"

    return {pid for pid in pids if is_running(pid)}


def assert_gone(pids: set[int]) -> None:
    deadline = time.monotonic() + 30
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not alive(pids)


def press(page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click(timeout=MINUTE)


def said(page) -> str:
    return page.locator("pre.rg-diff").last.inner_text()


def run_to_end(page, end: str) -> None:
    press(page, "Run…")
    press(page, "Start")
    page.get_by_text(end).wait_for(timeout=2 * MINUTE)


@pytest.fixture
def folder(tmp_path, llm_server):
    """A project of documents, whose model is slow enough to be stopped in the middle."""

    def slow(request):
        time.sleep(0.4)
        return pipeline_model(request)

    llm_server.script = slow
    return project(tmp_path / "p", llm_server)


def test_from_weights_to_a_comparison_without_a_notebook(
    folder, llm_server, page, page_log, tmp_path
):
    scenario = folder / "x.yaml"
    page.set_viewport_size({"width": 1280, "height": 2400})
    with Window(folder) as window:
        page.goto(window.address)
        page.wait_for_selector(".rg-editor .noUi-handle", timeout=MINUTE)
        assert page.get_by_text("No runs yet.").first.is_visible()
        # The bill comes first, and nothing is sent for it.
        press(page, "Run…")
        page.get_by_text("Nothing has been sent yet.").wait_for(timeout=MINUTE)
        assert not llm_server.log
        assert "8 questions from 2 passages" in said(page)
        # Stopped in the middle: what was asked is saved, and not asked again.
        press(page, "Start")
        page.get_by_text(re.compile(r"^generate: \d+ of \d+$")).first.wait_for(timeout=MINUTE)
        press(page, "Stop")
        page.get_by_text("Stopped. Run again to go on").wait_for(timeout=MINUTE)
        paid = len(llm_server.log)
        time.sleep(0.5)
        assert len(llm_server.log) == paid
        run_to_end(page, "Complete.")
        bodies = [str(sorted(request.body.items(), key=str)) for request in llm_server.log]
        assert len(bodies) == len(set(bodies))
        assert page.get_by_text(re.compile(r"^judge: (\d+) of \1$")).is_visible()
        # The report stands in a frame of its own.
        report = page.frame_locator("iframe")
        assert report.locator("h1").first.is_visible()
        page.screenshot(path=tmp_path / "complete.png")
        # Weights turned here count in the next run, which asks nothing, and only then in the file.
        # The editor of before the run is replaced by one with its scores.
        page.get_by_text("not scored yet").first.wait_for(state="hidden", timeout=MINUTE)
        field = page.locator(".rg-row:not(:has(button)) input").first
        field.fill("3")
        field.press("Enter")
        page.wait_for_function(
            "() => [...document.querySelectorAll('button')].some(b => b.textContent === 'Save…' && !b.disabled)"
        )
        before = scenario.read_text(encoding="utf-8")
        sent = len(llm_server.log)
        run_to_end(page, "Complete.")
        assert len(llm_server.log) == sent
        assert scenario.read_text(encoding="utf-8") == before
        runs = sorted((folder / "reports" / "x").glob("*/run.json"))
        assert len(runs) == 2
        press(page, "Save…")
        press(page, "Write")
        page.get_by_text(re.compile("^Saved x.yaml")).wait_for(timeout=MINUTE)
        assert 3.0 in load_scenario(scenario).metric_weights.values()
        # Two runs compared.
        press(page, "Compare")
        heading = page.frame_locator("iframe").locator("h1")
        heading.get_by_text(re.compile("compared with|against")).wait_for(timeout=MINUTE)
        page.screenshot(path=tmp_path / "compared.png")
        below = descendants(window.process.pid)
        assert below
        assert window.interrupt() == 0
        assert_gone(below)
    hosts = {request.split("/")[2] for request in page_log.requests if "://" in request}
    assert hosts == {window.address.split("/")[2]}


def test_a_run_ends_with_the_window(folder, llm_server, page):
    with Window(folder, "--lang", "zh") as window:
        page.goto(window.address)
        page.wait_for_selector(".rg-editor .noUi-handle", timeout=MINUTE)
        press(page, "运行…")
        press(page, "开始")
        page.get_by_text(re.compile(r"^answer: \d+/\d+$")).wait_for(timeout=MINUTE)
        below = descendants(window.process.pid)
        window.interrupt()
        assert_gone(below)
    paid = len(llm_server.log)
    time.sleep(0.5)
    assert len(llm_server.log) == paid


def test_nobody_without_the_token_gets_in(folder):
    with Window(folder) as window:
        bare = window.address.split("?")[0]
        with urlopen(bare, timeout=10) as reply:
            assert "/login" in reply.url
            assert "rg-editor" not in reply.read().decode()
        with urlopen(bare + "api/kernels", timeout=10) as reply:
            assert "/login" in reply.url
        with pytest.raises(HTTPError) as refused:
            urlopen(bare + "voila/files/x.yaml", timeout=10)
        refused.value.close()
        assert refused.value.code == 403
