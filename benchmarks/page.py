"""The report page: how big it is, how fast a browser opens and searches it, and what a run costs; prints tables.

python benchmarks/page.py [--rows 1000 5000 10000] [--runs 5] [--only run]
Needs Chromium and playwright, as the browser tests do.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import nbformat
import pandas as pd
from playwright.sync_api import sync_playwright

from ragnb.errors import RagnbWarning
from ragnb.report import report, reports, run
from ragnb.report.kernel import execute

ROOT = Path(__file__).resolve().parents[1]
SENTENCE = "the policy leave within thirty days employee claim benefit 報銷 资料 退款 期限 标准 provider network"
WORDS = SENTENCE.split()
METRICS = ("faithfulness", "answer_relevancy", "context_recall", "context_precision")


def table(rows: int, seed: int = 3) -> pd.DataFrame:
    """Return a score table with answers and three passages a question, of the length that real ones have."""
    rng = random.Random(seed)

    def say(n: int) -> str:
        return " ".join(rng.choices(WORDS, k=n))

    made = [
        {
            "sample_id": f"q{i}",
            "doc_name": f"文档_{i % 60}.pdf",
            "question": f"{say(14)}?",
            "answer": say(60),
            "ground_truth_answer": say(30),
            "retrieved_contexts": json.dumps([say(120) for _ in range(3)]),
        }
        | {name: round(rng.random(), 3) if rng.random() > 0.1 else None for name in METRICS}
        for i in range(rows)
    ]
    return pd.DataFrame(made)


def timed_page(page, address: str) -> tuple[float, float]:
    """Return seconds until the filters stand, and until a search has been answered."""
    start = time.perf_counter()
    page.goto(address)
    page.locator(".rg-samples .rg-tools").first.wait_for()
    opened = time.perf_counter() - start
    start = time.perf_counter()
    page.get_by_role("searchbox").fill("no such words")
    page.get_by_text("0 of 0 questions").wait_for()
    return opened, time.perf_counter() - start


def sizes(folder: Path, counts: list[int], runs: int) -> None:
    """Print the size of the page, and the medians of opening and searching it."""
    print("search: 0.12 s of it wait for more keys")
    print(f"{'questions':>10}{'page MB':>9}{'open s':>8}{'search s':>10}")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        for rows in counts:
            file = folder / f"{rows}.csv"
            table(rows).to_csv(file, index=False)
            html = report(file, out=folder / "reports", progress=False).html
            page = browser.new_page()
            taken = [timed_page(page, html.as_uri()) for _ in range(runs)]
            page.close()
            opened, found = (statistics.median(column) for column in zip(*taken, strict=True))
            print(f"{rows:10,}{html.stat().st_size / 1e6:9.2f}{opened:8.2f}{found:10.2f}")
        browser.close()


LOADED = """import json, ragnb, sys
ragnb.assess({scenario!r}).save({folder!r})
named = {{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names)
print(json.dumps([name for name in sys.modules if name.partition(".")[0] in named and name != "__main__"]))"""
CELL = """import importlib
from contextlib import suppress
for name in {names}:
    with suppress(ImportError):  # a few are made by what they belong to, and are no files
        importlib.import_module(name)"""


def whole_run(folder: Path, runs: int) -> None:
    """Print what a report costs beside papermill on a notebook that imports what the report's imports."""
    scenario = str(ROOT / "scenarios" / "quickstart.yaml")
    code = LOADED.format(scenario=scenario, folder=str(folder / "saved"))
    names = json.loads(subprocess.check_output([sys.executable, "-c", code], text=True))
    bare = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL.format(names=names))])
    nbformat.write(bare, folder / "bare.ipynb")

    def shell(*words: str) -> None:
        subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True, cwd=folder)

    ways = {
        "from the shell": {
            "papermill, imports only": lambda: shell(
                "papermill", "bare.ipynb", "out.ipynb", "-k", "python3"
            ),
            "ragnb report": lambda: shell("ragnb", "report", scenario),
        },
        "in one process": {
            "papermill, imports only": lambda: execute(
                folder / "bare.ipynb", folder / "out.ipynb", {}, env={}
            ),
            "ragnb report": lambda: run.report(scenario, out=folder / "reports", progress=False),
        },
    }
    for place, pair in ways.items():
        times = {way: [] for way in pair}
        for call in pair.values():
            call()
        for _ in range(runs):
            for way, call in pair.items():
                start = time.perf_counter()
                call()
                times[way].append(time.perf_counter() - start)
        whole, ours = (statistics.median(taken) for taken in times.values())
        ratio = statistics.median(b / a for a, b in zip(*times.values(), strict=True))
        print(
            f"{place}: bare {whole:.2f} s, ragnb report {ours:.2f} s, ×{ratio:.2f} (median of {runs} pairs)"
        )
    file = folder / "run.csv"
    table(80).to_csv(file, index=False)
    eight = [folder / f"run{i}.csv" for i in range(8)]
    for path in eight:
        shutil.copy(file, path)
    for jobs in (1, os.cpu_count()):
        start = time.perf_counter()
        assert all(made.result for made in reports(eight, out=folder / "batch", jobs=jobs))
        print(f"eight reports, {jobs} at a time: {time.perf_counter() - start:.1f} s")


def main() -> None:
    """Print both tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=[1_000, 5_000, 10_000])
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--only", choices=["sizes", "run"], help="one of the two tables")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        if given.only != "run":
            sizes(Path(name), given.rows, given.runs)
        if given.only != "sizes":
            whole_run(Path(name), given.runs)


if __name__ == "__main__":
    main()
