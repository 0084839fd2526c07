"""Populations of documents whose true mean is known, for `coverage.py`: simulated ones, and the real sets."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ragnb import label_traces

Draw = tuple[
    np.ndarray, np.ndarray
]  # the sum and the number of scores of each document, resamples × documents
SIZES = ("10 each", "1 to 80", "1 each")


@dataclass(frozen=True)
class Population:
    """Where documents come from: `draw(rng, runs, documents, sizes)`, the true mean, whether scores are 0/1."""

    name: str
    draw: Callable[[np.random.Generator, int, int, str], Draw]
    truth: float
    binary: bool
    sizes: tuple[str, ...] = SIZES
    real: bool = False


def row_counts(rng: np.random.Generator, shape: tuple[int, int], sizes: str) -> np.ndarray:
    if sizes == "1 to 80":
        return np.minimum(1 + rng.gamma(0.8, 12, shape).astype(int), 80)
    return np.full(shape, 10 if sizes == "10 each" else 1)


def group_sums(values: np.ndarray, n: np.ndarray) -> np.ndarray:
    ends = np.cumsum(n.ravel())
    running = np.append(0.0, np.cumsum(values))
    return (running[ends] - running[ends - n.ravel()]).reshape(n.shape)


def simulated(kind: str, mean: float, icc: float) -> Population:
    """Return scores of documents that differ: the intra-document correlation is `icc`.

    ``beta``: Beta(a, b) rows with a + b = 3 overall. ``pile``: most rows are exactly 1, the rest Beta(2, 2).
    ``likert``: 1–5 in quarter steps, a five-point scale. ``binary``: 0/1.
    """

    def effects(
        rng: np.random.Generator, shape: tuple[int, int], p: float, spread: float
    ) -> np.ndarray:
        if not spread:
            return np.full(shape, p)
        return np.clip(rng.beta(p * spread, (1 - p) * spread, shape), 1e-9, 1 - 1e-9)

    def draw(rng: np.random.Generator, runs: int, documents: int, sizes: str) -> Draw:
        n = row_counts(rng, (runs, documents), sizes)
        total = {"beta": 4.0, "pile": 1.0, "likert": 4.0, "binary": 1.0}[
            kind
        ]  # 1 + a + b of the rows
        spread = total / icc - 1 if icc else 0.0
        p = 2 * mean - 1 if kind == "pile" else mean
        m = effects(rng, n.shape, p, spread)
        if kind == "binary":
            return rng.binomial(n, m).astype(float), n.astype(float)
        if kind == "likert":
            return rng.binomial(4 * n, m) / 4.0, n.astype(float)
        if kind == "pile":
            full = rng.binomial(n, m)
            return full + group_sums(rng.beta(2, 2, int((n - full).sum())), n - full), n.astype(
                float
            )
        inner = spread * total / ((1 + spread) * (1 - icc)) - 1
        each = np.repeat(m.ravel(), n.ravel()) * inner
        return group_sums(rng.beta(each, inner - each), n), n.astype(float)

    one_size = (kind == "binary" and icc > 0) or kind == "likert"
    return Population(
        f"{kind} {mean:g} icc {icc:g}", draw, mean, kind == "binary", SIZES[: 2 if one_size else 3]
    )


SIMULATED = [
    *(
        simulated("beta", *p)
        for p in [(0.5, 0.1), (0.8, 0.1), (0.8, 0.3), (0.95, 0.05), (0.95, 0.3)]
    ),
    *(simulated("pile", *p) for p in [(0.95, 0.1), (0.95, 0.3), (0.98, 0.3)]),
    *(simulated("likert", *p) for p in [(0.6, 0.1), (0.9, 0.3)]),
    *(simulated("binary", p, icc) for p in (0.5, 0.8, 0.95) for icc in (0.0, 0.1, 0.3)),
]


def real(name: str, scores: pd.Series, documents: pd.Series, low: float, high: float) -> Population:
    """Return the documents of a real set as a population, scores rescaled to 0–1."""
    table = pd.DataFrame(
        {"x": (scores.astype(float) - low) / (high - low), "document": documents}
    ).dropna()
    by = table.groupby("document")["x"]
    sums, counts = by.sum().to_numpy(), by.count().to_numpy(float)

    def draw(rng: np.random.Generator, runs: int, drawn: int, _: str) -> Draw:
        at = rng.integers(0, len(sums), (runs, drawn))
        return sums[at], counts[at]

    binary = bool(table["x"].isin([0.0, 1.0]).all())
    return Population(name, draw, sums.sum() / counts.sum(), binary, (f"{len(sums)} docs",), True)


def real_sets(data: Path) -> Iterator[Population]:
    """Yield the real sets: by document or conversation, and (``/q``) by question where each has few rows."""
    northwind = pd.read_csv(data / "scores/scores_azure_northwind.csv")
    question = northwind["sample_id"].str.split("/").str[1]
    for name in ("gpt_groundedness", "gpt_relevance"):
        yield real(f"northwind {name}", northwind[name], northwind["doc_name"], 1, 5)
        yield real(f"northwind {name} /q", northwind[name], question, 1, 5)
    pairs = pd.read_csv(data / "scores/scores_ragchecker_preference.csv")
    for name in ("factual_correctness_f1", "precision", "recall"):
        yield real(f"ragchecker {name}", pairs[name], pairs["doc_name"], 0, 1)
    for file, top, columns, dimensions in (
        ("mtrag", 10, ("human10", "judge10"), ("faithfulness", "overall3")),
        ("hanna", 5, ("human", "judge_ChatGPT"), ("coherence", "surprise")),
    ):
        ratings = pd.read_csv(data / f"ratings/{file}.csv")
        for dimension, column in itertools.product(dimensions, columns):
            part = ratings[(ratings["dimension"] == dimension) & ratings[column].between(1, top)]
            yield real(f"{file} {dimension} {column}", part[column], part["cluster"], 1, top)
    for folder, file in (
        ("mtragun", "trace_bm25.gemini-3-pro.jsonl"),
        ("drcd_zh_hant", "trace.jsonl"),
    ):
        yield from _rates(data / "traces" / folder, file)


def _rates(folder: Path, file: str) -> Iterator[Population]:
    opened = gzip.open if file.endswith(".gz") else open
    with opened(folder / file, "rt", encoding="utf-8") as lines:
        traces = pd.DataFrame([json.loads(line) for line in lines])
    gold = pd.DataFrame(json.loads((folder / "qaset.json").read_text(encoding="utf-8")))
    names = {"q": "question", "qid": "sample_id"}
    labelled = label_traces(
        traces.rename(columns=names), gold=gold.rename(columns=names), join="question"
    )
    documents = labelled.get("doc_name", labelled["sample_id"])
    for rate in (
        "answer_precision",
        "over_refusal",
        "under_refusal",
        "citation_hit_rate",
        "retrieval_recall",
    ):
        yield real(f"{folder.name} {rate}", labelled[rate], documents, 0, 1)
