"""Every benchmark runs, on a small part of what it measures: one that has died is no evidence."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "calibration": ["--quick"],
    "cliffs": ["--quick"],
    "comparison": ["--quick"],
    "coverage": ["--quick"],
    "decisions": ["--draws", "50"],
    "editor": ["--rows", "100", "--presses", "3"],
    "memory": ["--quick"],
    "page": ["--rows", "1000", "--runs", "1"],
    "peers": ["--draws", "20"],
    "replies": [],
    "scale": ["--rows", "10000", "--ways", "polars"],
    "scoring": ["--cells", "20", "--runs", "1"],
    "snapshot": ["{tmp}/snapshot.json"],
    "speed": ["--quick"],
    "start": ["--quick"],
    "store": ["--cells", "20", "--runs", "1", "--kills", "1"],
    "traces": ["--lines", "1000", "--runs", "1"],
}
# One runs the whole suite under coverage, two need every peer installed: hours, and a network.
TOO_LONG = {"mutations", "install", "beside"}


def test_none_is_left_out():
    scripts = {
        path.stem
        for path in (ROOT / "benchmarks").glob("*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    }
    assert scripts == set(SMALL) | TOO_LONG


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs(name, tmp_path):
    options = [option.replace("{tmp}", str(tmp_path)) for option in SMALL[name]]
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.strip() or any(tmp_path.iterdir())
