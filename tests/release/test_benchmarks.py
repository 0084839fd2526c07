"""Every benchmark runs, on a small part of what it measures: one that has died is no evidence."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "calibration": ["--quick"],
    "comparison": ["--quick"],
    "coverage": ["--quick"],
    "decisions": ["--draws", "50"],
    "editor": ["--rows", "100", "--presses", "3"],
    "install": ["--quick"],
    "memory": ["--quick"],
    "mutations": ["--n", "2"],
    "page": ["--quick"],
    "peers": ["--quick"],
    "replies": [],
    "scale": ["--rows", "10000", "--ways", "polars"],
    "scoring": ["--cells", "20", "--runs", "1"],
    "snapshot": ["--quick"],
    "speed": ["--quick"],
    "store": ["--cells", "20", "--runs", "1", "--kills", "1"],
    "traces": ["--lines", "1000", "--runs", "1"],
}


def test_none_is_left_out():
    scripts = {
        path.stem
        for path in (ROOT / "benchmarks").glob("*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    }
    assert scripts == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs(name):
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *SMALL[name]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.strip()
