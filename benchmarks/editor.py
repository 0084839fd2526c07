"""How fast the weight editor follows a key, in a real JupyterLab and Chromium, at 10² and at 10⁷ rows."""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ragnb as rn

ROOT = Path(__file__).resolve().parents[1]
METRICS = [
    "faithfulness",
    "answer_relevancy",
    "context_recall",
    "context_precision",
    "context_relevance",
    "answer_correctness",
]
CHUNK = 1_000_000
CELL = """\
import sys; sys.path.insert(0, {folder!r})
from editor import editor_of, kernel_times
editor = editor_of({rows})
editor
"""
# One key, and the time until the score and the radar that it gives have been painted.
PRESS = """key => new Promise(done => {
  const root = document.querySelector('.rg-editor'), handle = root.querySelector('.noUi-handle');
  const figure = root.querySelector('figure').closest('.widget-html-content') ?? root;
  const start = performance.now();
  const seen = new MutationObserver(() => {
    seen.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
  });
  seen.observe(figure, { childList: true, subtree: true, characterData: true });
  handle.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
})"""


def scores(rows: int, seed: int) -> pd.DataFrame:
    """Return made-up scores: 200 documents (20 below 1,000 rows), 2 systems, 2 % missing."""
    random = np.random.default_rng(seed)
    documents = 200 if rows >= 1000 else 20
    columns: dict[str, Any] = {}
    for name in METRICS:
        drawn = random.beta(4, 2, rows)
        drawn[random.random(rows) < 0.02] = np.nan
        columns[name] = drawn
    names = [f"doc {i}" for i in range(documents)]
    columns["doc_name"] = pd.Categorical.from_codes(random.integers(0, documents, rows), names)
    columns["system"] = pd.Categorical.from_codes(random.integers(0, 2, rows), ["a", "b"])
    return pd.DataFrame(columns)


def editor_of(rows: int) -> Any:
    """Return an editor over Moments that were reduced chunk by chunk and merged."""
    from ragnb.widgets import WeightEditor

    sizes = [min(CHUNK, rows - start) for start in range(0, rows, CHUNK)]
    found = None
    for seed, size in enumerate(sizes):
        part = rn.moments(scores(size, seed), by="system")
        found = part if found is None else found.merge(part)
    gates = [{"name": name, "metric": name, "op": ">=", "threshold": 0.6} for name in METRICS[:3]]
    return WeightEditor(found, gates=[rn.Gate(**gate) for gate in gates])


def kernel_times(editor: Any, presses: int = 100) -> dict[str, float]:
    """Return median milliseconds: the two tables of means, all numbers with gates and notes, all with the view.

    Of processor time, which other work on the machine does not lengthen.
    """
    model, name = editor.model, editor.model.metrics[0]
    _ = editor.view
    spent: dict[str, list[float]] = {"means": [], "numbers": [], "view": []}
    for i in range(presses):
        weights = model.metric_weights | {name: 0.5 + i / 100}
        calls = {
            "means": lambda weights=weights: [
                m.means(metric_weights=weights) for m in (model._pooled, model._by)
            ],
            "numbers": model._compute,
            "view": lambda i=i: model.set("metric_weights", name, 0.5 + i / 100),
        }
        for what, call in calls.items():
            start = time.process_time()
            call()
            spent[what].append(1000 * (time.process_time() - start))
    return {what: statistics.median(times) for what, times in spent.items()}


def browser_times(rows: int, presses: int) -> list[float]:
    """Return milliseconds from a key on a slider to the repaint, in a JupyterLab of its own."""
    from playwright.sync_api import sync_playwright

    spec = importlib.util.spec_from_file_location("lab", ROOT / "tests" / "browser" / "lab.py")
    assert spec is not None
    assert spec.loader is not None
    lab = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lab)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        lab.notebook(
            folder / "editor.ipynb", CELL.format(folder=str(Path(__file__).parent), rows=rows)
        )
        with lab.Lab(folder) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={"width": 1200, "height": 1300})
            server.open(page, "editor.ipynb")
            page.wait_for_selector(".rg-editor .noUi-handle", timeout=300_000)
            keys = ["End" if i % 2 else "Home" for i in range(presses + 5)]
            times = [page.evaluate(PRESS, key) for key in keys][5:]
            browser.close()
    return times


def main() -> None:
    """Print one line a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[100, 10_000_000])
    parser.add_argument("--presses", type=int, default=100)
    given = parser.parse_args()
    for rows in given.rows:
        editor = editor_of(rows)
        kernel = kernel_times(editor, given.presses)
        cells = editor.model._by.cells.size
        del editor
        paint = browser_times(rows, given.presses)
        tenths = statistics.quantiles(paint, n=10)
        kernel_said = ", ".join(f"{what} {ms:.1f}" for what, ms in kernel.items())
        print(
            f"{rows:,} rows, {cells:,} cells: kernel processor ms {kernel_said}; "
            f"key to repaint ms median {statistics.median(paint):.0f}, p90 {tenths[-1]:.0f} (n = {len(paint)})"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
