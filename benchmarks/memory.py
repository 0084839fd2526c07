"""Peak memory of whole runs: rows made in pieces as Parquet, then `assess`, `ragnb check` and `ragnb report`.

Each run is a process of its own, and its peak is what the system counted: ``ru_maxrss`` of the process, for the
report that of the kernel it starts as well, whichever is higher. The rows are synthetic.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

METRICS = (
    "faithfulness",
    "answer_relevancy",
    "context_recall",
    "context_precision",
    "noise_sensitivity",
    "factual_correctness",
)
PIECE, DOCUMENTS = 1_000_000, 500
COMMAND = "import sys; from ragnb.cli import main; sys.exit(main())"
RUNS = {
    "assess": ["-c", "import sys, ragnb; ragnb.assess(sys.argv[1])"],
    "ragnb check": ["-c", COMMAND, "check"],
    "ragnb report": ["-c", COMMAND, "report", "--out", "reports"],
}
MEASURED = """
import json, os, resource, subprocess, sys, time
start = time.perf_counter()
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
code = subprocess.run([sys.executable, *sys.argv[1:]], **quiet).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
told = [used.ru_maxrss / 2**10, time.perf_counter() - start, used.ru_utime + used.ru_stime, code]
print(json.dumps(told))
"""


def make(rows: int, folder: Path) -> None:
    """Write made scores of six metrics, with a tenth of gaps and texts, a million rows a file."""
    import polars as pl

    rng = np.random.default_rng(0)
    names = np.array([f"文档_{i:03}.pdf" for i in range(DOCUMENTS)])
    for part, start in enumerate(range(0, rows, PIECE)):
        size = min(PIECE, rows - start)
        docs = rng.integers(0, DOCUMENTS, size)
        ids = pl.int_range(start, start + size, eager=True).cast(pl.String)
        columns = {
            "sample_id": ids,
            "question": "问题 " + ids + ": what does the document say of it?",
            "answer": "Made answer " + ids,
            "doc_name": pl.Series(names[docs]),
        }
        for name in METRICS:
            score = np.clip(rng.random(size) + 0.002 * (docs % 100), 0, 1)
            columns[name] = pl.Series(
                np.where(rng.random(size) < 0.1, np.nan, score), nan_to_null=True
            )
        pl.DataFrame(columns).write_parquet(folder / f"part-{part:03}.parquet")


def measure(rows: int) -> list[tuple[str, float, float, float]]:
    """Return the peak in MB, seconds and processor seconds of each run over so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        make(rows, Path(folder))
        found = []
        for name, command in RUNS.items():
            words = [sys.executable, "-c", MEASURED, *command, str(Path(folder) / "*.parquet")]
            path = os.pathsep.join(
                [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
            )
            done = subprocess.run(
                words,
                capture_output=True,
                text=True,
                check=True,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": path},
            )
            peak, wall, spent, code = json.loads(done.stdout)
            assert code in (0, 1), f"{name} ended with {code}"
            assert peak > 100, f"{name} did not start"
            found.append((name, peak, wall, spent))
    return found


def main() -> None:
    """Print one row a size and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10⁶ rows at most")
    sizes = [10**6] if parser.parse_args().quick else [10**6, 10**7]
    print("| rows | run | peak MB | wall s | processor s |\n|---|---|---|---|---|")
    for rows in sizes:
        start = time.perf_counter()
        for name, peak, wall, spent in measure(rows):
            print(f"| {rows:,} | {name} | {peak:,.0f} | {wall:.1f} | {spent:.1f} |", flush=True)
        print(f"{rows:,} rows made and run in {time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
