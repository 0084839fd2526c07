"""Where time grows faster than documents, systems, pairs, metrics, columns, texts and lines; prints a line each.

    python benchmarks/cliffs.py [--quick] [--only documents …] [--runs 3]

Made scores grow along one axis while the rest stays as it is. Shown are the processor time of each step at
each size, the median of the runs, and the exponent between the two largest sizes, so that 1 is in proportion
and 0 is flat. A step above 1.1 is named, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ragnb as rn
from ragnb.errors import RagnbWarning

STEEPEST = 1.1
ROWS = 20_000
SIX = (
    "faithfulness",
    "answer_relevancy",
    "context_recall",
    "context_precision",
    "answer_correctness",
    "noise_sensitivity",
)
Step = Callable[[Any], Any]


@dataclass(frozen=True)
class Axis:
    """What grows: its sizes, how a table of a size is made, and the steps that are timed on it."""

    sizes: tuple[int, ...]
    make: Callable[[int], Any]
    steps: dict[str, Step]


def scores(rows: int, documents: int, metrics: tuple[str, ...] = SIX) -> pd.DataFrame:
    """Return made scores in hundredths, 10 % of them lost."""
    rng = np.random.default_rng(1)
    table = {
        "sample_id": [f"q{row}" for row in range(rows)],
        "doc_name": [f"document {code}" for code in np.arange(rows) % documents],
    }
    for name in metrics:
        values = rng.integers(0, 101, rows) / 100
        values[rng.random(rows) < 0.1] = np.nan
        table[name] = values
    return pd.DataFrame(table)


def of_documents(n: int) -> pd.DataFrame:
    return scores(max(ROWS, n), n)


def of_categories(n: int) -> pd.DataFrame:
    return of_documents(n).astype({"doc_name": "category"})


def of_systems(n: int) -> pd.DataFrame:
    parts = [scores(500, 50).assign(system=f"system {k:02}") for k in range(n)]
    return pd.concat(parts, ignore_index=True)


def of_pairs(n: int) -> pd.DataFrame:
    """Return the scores of so many systems that they make `n` pairs."""
    return of_systems(round((1 + math.sqrt(1 + 8 * n)) / 2))


def of_metrics(n: int) -> tuple[pd.DataFrame, list[rn.Metric]]:
    names = tuple(f"metric_{k}" for k in range(n))
    return scores(2_000, 100, names), [rn.Metric(name) for name in names]


def of_columns(n: int) -> pd.DataFrame:
    table = scores(200, 20)
    return table.assign(**{f"note {k}": "as before" for k in range(n)})


def of_texts(length: int) -> pd.DataFrame:
    """Return traces of which each answer has so many characters, and cites one of its passages."""
    sentence = "The fee is 12 euros for each of the 30 days, says the contract. "
    answer = (sentence * (length // len(sentence) + 1))[:length]
    rows = [
        {
            "question": f"What is fee {row}?",
            "answer": f"{answer} [p{row}]",
            "retrieved_contexts": [{"id": f"p{row}", "text": sentence * 3}],
        }
        for row in range(20)
    ]
    return pd.DataFrame(rows)


def of_log(lines: int) -> Path:
    """Return a log of answers with passages that have ids, as a file."""
    path = Path(tempfile.mkdtemp()) / "log.jsonl"
    passage = "An item may be returned within 30 days of the day it came. " * 4
    start = pd.Timestamp("2026-01-01")
    with path.open("w", encoding="utf-8") as file:
        for line in range(lines):
            passages = [{"id": f"p{(line + k) % 500}", "text": passage} for k in range(4)]
            row = {
                "ts": (start + pd.Timedelta(minutes=line)).isoformat(),
                "question": f"How many days for item {line % 700}?",
                "answer": f"You have 30 days. [p{line % 500}]",
                "retrieved_contexts": passages,
            }
            file.write(json.dumps(row) + "\n")
    return path


def page(table: Any) -> str:
    return rn.assess(table).to_html()


AXES = {
    "documents": Axis(
        (100, 1_000, 10_000, 100_000, 1_000_000),
        of_documents,
        {"assess": rn.assess, "page": page},
    ),
    "categories": Axis((100, 1_000, 10_000, 100_000), of_categories, {"assess": rn.assess}),
    "systems": Axis((2, 10, 50), of_systems, {"assess": rn.assess}),
    "pairs": Axis((1, 45, 1_225), of_pairs, {"standings": rn.standings}),
    "metrics": Axis(
        (6, 50, 200), of_metrics, {"assess": lambda made: rn.assess(made[0], metrics=made[1])}
    ),
    "columns": Axis((100, 1_000, 9_000), of_columns, {"read": rn.read_scores}),
    "texts": Axis(
        (1_000, 10_000, 100_000),
        of_texts,
        {"label_traces": rn.label_traces, "label_claims": rn.label_claims},
    ),
    "log": Axis((2_000, 10_000, 50_000), of_log, {"assess": rn.assess}),
}


def processor_time(step: Step, table: Any, runs: int) -> float:
    """Return the processor time of a step in seconds, the median of the runs."""
    times = []
    for _ in range(runs):
        before = time.process_time()
        step(table)
        times.append(time.process_time() - before)
    return statistics.median(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=AXES, default=[*AXES])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help="two small sizes, one run, exit code 0"
    )
    given = parser.parse_args()
    steep = []
    for name in given.only:
        axis = AXES[name]
        sizes = axis.sizes[:2] if given.quick else axis.sizes
        tables = {size: axis.make(size) for size in sizes}
        for said, step in axis.steps.items():
            processor_time(step, tables[sizes[0]], 1)  # imports
            runs = 1 if given.quick else given.runs
            times = [processor_time(step, tables[size], runs) for size in sizes]
            exponent = math.log(times[-1] / times[-2]) / math.log(sizes[-1] / sizes[-2])
            cells = "  ".join(
                f"{size:>7,}: {seconds:7.2f} s" for size, seconds in zip(sizes, times, strict=True)
            )
            print(f"{name:<11} {said:<13} {cells}  exponent {exponent:.2f}", flush=True)
            if exponent > STEEPEST:
                steep.append(f"{name}, {said}: {exponent:.2f}")
    if steep:
        print(f"Steeper than {STEEPEST}: {'; '.join(steep)}")
    return int(bool(steep) and not given.quick)


if __name__ == "__main__":
    warnings.simplefilter("ignore", RagnbWarning)
    sys.exit(main())
