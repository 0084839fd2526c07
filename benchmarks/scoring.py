"""What scoring costs beside ragas' own batch, per cell, against an endpoint that answers at once.

python benchmarks/scoring.py [--cells 1000] [--runs 3]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from store import CONCURRENCY, SERVER

from ragnb.schema import Profile
from ragnb.scoring import evaluate
from ragnb.store import Client

REPLY = json.dumps({"classifications": [{"statement": "a", "reason": "r", "attributed": 1}]})
ENDPOINT = SERVER.replace('"content": "ok"', f'"content": {json.dumps(REPLY)}')


def cases(n: int, first: int) -> list[dict[str, object]]:
    return [
        {
            "sample_id": str(i),
            "question": f"Question {i}?",
            "ground_truth_answer": f"Reference {i}.",
            "retrieved_contexts": [f"Passage {i}. " * 20],
        }
        for i in range(first, first + n)
    ]


def ours(base_url: str, rows: list[dict[str, object]], folder: Path) -> None:
    client = Client(Profile(base_url=base_url, model="small"), concurrency=CONCURRENCY)
    scores = evaluate(
        rows,
        metrics="context_recall",
        client=client,
        store=folder / "scores.sqlite",
        progress=False,
    )
    assert (scores["context_recall"] == 1).all()


def ragas(base_url: str, rows: list[dict[str, object]], folder: Path) -> None:
    """Its batch, which has no limit of its own: in parts of as many as may be under way. Nothing is kept."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    import openai
    from ragas.llms import llm_factory
    from ragas.metrics.collections import ContextRecall

    async def all_of_them() -> list[float]:
        async with openai.AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0) as sdk:
            metric = ContextRecall(llm=llm_factory("small", client=sdk))
            inputs = [
                {
                    "user_input": row["question"],
                    "reference": row["ground_truth_answer"],
                    "retrieved_contexts": row["retrieved_contexts"],
                }
                for row in rows
            ]
            parts = [inputs[i : i + CONCURRENCY] for i in range(0, len(inputs), CONCURRENCY)]
            return [found.value for part in parts for found in await metric.abatch_score(part)]

    assert set(asyncio.run(all_of_them())) == {1.0}


def timed(way: str, n: int) -> tuple[float, float]:
    server = subprocess.Popen(
        [sys.executable, "-c", ENDPOINT, "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        base_url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        run = {"ragnb": ours, "ragas": ragas}[way]
        with tempfile.TemporaryDirectory() as folder:
            run(base_url, cases(CONCURRENCY, 10**6), Path(folder))  # imports and first connections
            wall, processor = time.perf_counter(), time.process_time()
            run(base_url, cases(n, 0), Path(folder))
            return time.perf_counter() - wall, time.process_time() - processor
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)
    found: dict[str, list[tuple[float, float]]] = {"ragas": [], "ragnb": []}
    for _ in range(given.runs):
        for way, times in found.items():
            times.append(timed(way, given.cells))
    names = {
        "ragas": "ragas abatch_score, nothing kept",
        "ragnb": "ragnb evaluate: kept, counted, resumable",
    }
    print(f"context_recall, {given.cells} cells, one call each, best of {given.runs} in turn\n")
    print("| way | wall s | processor ms a cell |\n|---|---|---|")
    for way, times in found.items():
        wall, processor = min(t[0] for t in times), min(t[1] for t in times)
        print(f"| {names[way]} | {wall:.2f} | {1000 * processor / given.cells:.2f} |")


if __name__ == "__main__":
    main()
