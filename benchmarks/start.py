"""How long a command takes to start: processor time of whole processes, beside ``import pandas``; prints a table.

    python benchmarks/start.py [--runs 9] [--quick]

The commands run in turn on a table of 120 rows, so that each has the same share of a busy machine. Errorbars and
truescore have a line where they are installed.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

RIVALS = {
    "errorbars compare": ["errorbars", "compare", "old.csv", "new.csv"],
    "truescore --help": ["truescore", "--help"],
}


def commands() -> dict[str, list[str]]:
    """Return what is timed; the first is what the others are compared with."""
    ragnb = [sys.executable, "-m", "ragnb"]
    own = {
        "import pandas": [sys.executable, "-c", "import pandas"],
        "import numpy, pandas, scipy.special": [
            sys.executable,
            "-c",
            "import numpy, pandas, scipy.special",
        ],
        "ragnb --version": [*ragnb, "--version"],
        "ragnb compare": [*ragnb, "compare", "new.csv", "old.csv"],
        "ragnb check": [*ragnb, "check", "old.csv"],
        "ragnb inspect": [*ragnb, "inspect", "old.csv"],
    }
    return own | {name: words for name, words in RIVALS.items() if shutil.which(words[0])}


def write_tables(folder: Path) -> None:
    """Write two tables of 120 rows, the new one a little better."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "sample_id": [f"q{row}" for row in range(120)],
            "doc_name": [f"document {row % 12}" for row in range(120)],
            "faithfulness": rng.uniform(0.3, 0.9, 120).round(3),
            "context_recall": rng.uniform(0.3, 0.9, 120).round(3),
        }
    )
    table.to_csv(folder / "old.csv", index=False)
    table.assign(faithfulness=table["faithfulness"] + 0.05).to_csv(folder / "new.csv", index=False)


def processor_time(words: list[str], folder: Path) -> float:
    """Return the processor time of a process, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=folder, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="one run")
    given = parser.parse_args()
    runs = 1 if given.quick else given.runs
    timed = commands()
    times: dict[str, list[float]] = {name: [] for name in timed}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        for _ in range(runs):
            for command, words in timed.items():
                times[command].append(processor_time(words, folder))
    base = statistics.median(next(iter(times.values())))
    print("| process | processor time, s | × import pandas |\n|---|---:|---:|")
    for command, found in times.items():
        print(
            f"| {command} | {statistics.median(found):.2f} | {statistics.median(found) / base:.2f} |"
        )


if __name__ == "__main__":
    main()
