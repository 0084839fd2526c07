"""Refusal rates of 100,000 traces, file reading included, against a plain Python loop; prints a table.

python benchmarks/traces.py [--lines 100000] [--runs 7]
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import random
import re
import statistics
import tempfile
import time
import unicodedata
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl

import ragnb as rn
from ragnb import stats
from ragnb.errors import RagnbWarning
from ragnb.schema import METRICS
from ragnb.traces.answers import occurs_whole

SENTENCE = (
    "the of policy leave within thirty days employee claim benefit plan provider network annual report costs "
    "covers which service 資料 退款 期限 the of policy leave within thirty days employee claim benefit"
)
WORDS = SENTENCE.split()
PATTERNS = ["^i'm sorry"]


def write(folder: Path, lines: int, questions: int = 2_000) -> None:
    """Write gold.json, traces.jsonl, and dirty.jsonl: the same with three bad lines and half a surrogate pair."""
    rng = random.Random(7)
    gold = []
    for i in range(questions):
        doc, asked = f"doc_{i % 100}.pdf", rng.random() < 0.8
        ids = [f"{doc}#page={rng.randrange(9)}" for _ in range(2)]
        gold.append(
            {
                "qid": f"q{i}",
                "q": f"What {' '.join(rng.choices(WORDS, k=10))} {i}?",
                "doc_name": doc,
            }
        )
        gold[-1] |= {"answerable": asked, "gold_ids": ids if asked else []}
        gold[-1] |= {"gold_claim": " ".join(rng.choices(WORDS, k=12)) if asked else None}
    (folder / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
    rows = [
        json.dumps(_trace(rng, gold[i % questions], i // questions), ensure_ascii=False)
        for i in range(lines)
    ]
    (folder / "traces.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for at, bad in (
        (50, "{bad"),
        (lines // 2, "[]"),
        (lines - 9, '{"q": '),
        (500, '{"q": "\\ud800"}'),
    ):
        rows[at] = bad
    (folder / "dirty.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _trace(rng: random.Random, gold: dict, system: int) -> dict:
    chunks = [{"id": f"{gold['doc_name']}#page={rng.randrange(12)}"} for _ in range(5)]
    draw = rng.random()
    answer = ". ".join("- " + " ".join(rng.choices(WORDS, k=30)) for _ in range(2))
    answer += f"\n- citations: [{chunks[0]['id']}, {chunks[1]['id']}]" if draw > 0.35 else ""
    answer = (
        "Not in context"
        if draw < 0.15
        else "I'm sorry, the passages do not say."
        if draw < 0.25
        else answer
    )
    row = {
        "ts": 1723129647 + system,
        "qid": gold["qid"],
        "q": gold["q"],
        "chunks": chunks,
        "answer": answer,
    }
    return row | {"ok": True, "system": f"s{system}"}


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


CITED = re.compile(r"citations\s*[:：]\s*\[([^\[\]]*)(\]?)([^\[\]\n]*\]?)", re.IGNORECASE)
PHRASE, QUOTED = (
    re.compile(r"[a-z0-9][a-z0-9\-\s]{4,}"),
    re.compile(r"""^(?:"(.*)"|'(.*)'|`(.*)`)$""", re.DOTALL),
)
REFUSAL, PARTING = re.compile(PATTERNS[0], re.IGNORECASE), re.compile(r"[\s，,]+")
Result = dict[str, tuple[float, int, float, float]]


def cited(answer: str) -> tuple[list[str] | None, bool]:
    """The ids of the first list of an answer, and whether one stands there that cannot be taken whole."""
    match = CITED.search(answer)
    if match is None:
        return None, False
    inside, closed, after = match.groups()
    if not closed or len(inside) > 2_000 or (after.endswith("]") and len(after) <= 201):
        return None, True
    parts = [p for p in PARTING.split(inside) if p]
    if '"' in inside or "'" in inside or "`" in inside:
        parts = [p for p in (QUOTED.sub(r"\1\2\3", p).strip() for p in parts) if p]
    return list(dict.fromkeys(parts)), False


def gold_of(folder: Path) -> dict[str, dict]:
    gold = {}
    for row in json.loads((folder / "gold.json").read_text(encoding="utf-8")):
        claim = nfc(row["gold_claim"] or "").strip().lower()
        phrases = list(dict.fromkeys(p.strip() for p in PHRASE.findall(claim)))
        own = claim if claim and (not phrases or not claim.isascii()) else None
        gold[row["qid"]] = row | {
            "wanted": {nfc(i) for i in row["gold_ids"]},
            "phrases": phrases,
            "own": own,
        }
    return gold


def label(row: dict, gold: dict) -> None:
    """Put into a trace what `label_traces` puts there: gold's columns, facts, label, rates, statuses."""
    answer = nfc(row["answer"]).strip()
    text = answer.lower()
    refused = text == "not in context" or REFUSAL.search(answer) is not None
    ids, flagged = row.get("citations"), False
    if ids is None:
        ids, flagged = cited(answer)
    asked, wanted, own = gold["answerable"], gold["wanted"], gold["own"]
    hit = bool(ids) and not wanted.isdisjoint(ids)
    held = any(p in text for p in gold["phrases"]) or (own is not None and occurs_whole(own, text))
    compliant = refused or ids is not None
    found = [nfc(chunk["id"]).strip() for chunk in row["chunks"]]
    rank = next((place for place, name in enumerate(found, 1) if name in wanted), 0)
    none = math.nan
    miss = None
    if asked:
        word = "OVER_REFUSAL" if refused else "OK" if hit else "ANS_NO_HIT"
        if word == "ANS_NO_HIT":
            miss = "retrieved, not cited" if rank else "not retrieved"
        share = len(wanted.intersection(found)) / len(wanted)
        rates = (
            none if refused else hit,
            refused,
            none,
            hit and not refused,
            held and not refused,
            compliant,
        )
        rates += (rank > 0, share, 1 / rank if rank else 0.0)
    else:
        word = "REFUSAL_OK" if refused else "HALLUCINATION"
        rates = (none if refused else 0, none, not refused, none, none, compliant, none, none, none)
    for name in ("doc_name", "answerable", "gold_ids", "gold_claim"):
        row[name] = gold[name]
    row["answered"], row["refused"], row["partial"], row["hit"] = not refused, refused, False, hit
    row["contained"], row["compliant"], row["label"], row["miss"] = held, compliant, word, miss
    row["citations_predicted"], row["citations_flagged"] = ids, flagged
    row |= zip(ORDER, rates, strict=True)
    row |= zip(
        STATUSES, ["ok" if value == value else "not_applicable" for value in rates], strict=True
    )


ORDER = (
    "answer_precision",
    "over_refusal",
    "under_refusal",
    "citation_hit_rate",
    "claim_containment",
)
ORDER += ("compliance", "retrieval_hit", "retrieval_recall", "reciprocal_rank")
STATUSES = [f"{rate}__status" for rate in ORDER]


def loop(folder: Path, name: str) -> Result:
    """The plain loop: json.loads a line, the same rules, the same columns, join report and intervals.

    The collector of cycles, which would visit every row again and again, is off.
    """
    gc.disable()
    gold, rows, bad = gold_of(folder), [], []
    met, seen = set(), set()
    report = {"n_unmatched": 0, "n_duplicate_traces": 0, "n_question_differs": 0}
    for number, line in enumerate((folder / name).open(encoding="utf-8"), 1):
        try:
            row = json.loads(line)
            key = row["qid"]
        except (ValueError, KeyError, TypeError):
            bad.append(number)
            continue
        rows.append(row)
        report["n_duplicate_traces"] += (key, row["system"]) in seen
        seen.add((key, row["system"]))
        if (found := gold.get(key)) is None:
            report["n_unmatched"] += 1
            continue
        report["n_question_differs"] += found["q"] != row["q"]
        met.add(key)
        label(row, found)
    report["gold_without_trace"] = [key for key in gold if key not in met]
    means = {rate: mean(rows, rate) for rate in ORDER}
    gc.enable()
    return means


def mean(rows: list[dict], rate: str) -> tuple[float, int, float, float]:
    """Sum, n and the clustered interval of a rate."""
    sums, counts = defaultdict(float), defaultdict(int)
    for row in rows:
        value = row.get(rate, math.nan)
        if value == value:
            sums[row["doc_name"]] += value
            counts[row["doc_name"]] += 1
    total, n = sum(sums.values()), sum(counts.values())
    value = total / n
    shares = [a / n for a in counts.values()]
    inflated = sum(((sums[d] - value * a) / (1 - a / n)) ** 2 for d, a in counts.items())
    one = np.ones(1)
    se = stats.jackknife_se(n * one, len(counts) * one, inflated * one)
    size, ends = one / sum(h * h for h in shares), (0 * one, one)
    binary = METRICS[rate].kind == "binary"
    at_ends = [sum(row.get(rate, math.nan) == end for row in rows) for end in (0, 1)]
    how = {
        "binary": binary,
        "sum_h4": one * sum(h**4 for h in shares),
        "elsewhere": (one * (n - max(at_ends)), one * n),
    }
    low, high = stats.mean_interval(value * one, se, size, n * one, ends, **how)
    return total, n, float(low[0]), float(high[0])


def ours(folder: Path, name: str, engine: str) -> Result:
    """Read, label, average with clustered intervals."""
    path = folder / name
    traces = (
        pl.read_ndjson(path, infer_schema_length=None)
        if engine == "polars"
        else rn.read_traces(path)
    )
    labelled = rn.label_traces(traces, gold=rn.read_gold(folder / "gold.json"), patterns=PATTERNS)
    means = rn.refusal_metrics(labelled)
    return {row.metric: (row.numerator, row.n, row.low, row.high) for row in means.itertuples()}


def main() -> None:
    """Run the ways in turn, so that a slow moment of the machine meets all of them, and print medians."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lines", type=int, default=100_000)
    options.add_argument("--runs", type=int, default=7)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        folder = Path(name)
        write(folder, given.lines)
        for file in ("traces.jsonl", "dirty.jsonl"):
            ways = {
                "plain loop": lambda file=file: loop(folder, file),
                "ragnb, pandas": lambda file=file: ours(folder, file, "pandas"),
            }
            if file == "traces.jsonl":  # Polars' own scanner takes no bad line
                ways["ragnb, Polars"] = lambda file=file: ours(folder, file, "polars")
            _compare(file, ways, given.runs)


def _compare(file: str, ways: dict, runs: int) -> None:
    results = {way: call() for way, call in ways.items()}
    first = results["plain loop"]
    for way, result in results.items():
        for rate, wanted in first.items():
            assert np.allclose(result[rate], wanted, rtol=1e-9), (way, rate, result[rate], wanted)
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(runs):
        for way, call in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            times[way].append((time.perf_counter() - wall, time.process_time() - cpu))
    print(
        f"\n{file}: median of {runs} runs\n{'way':16}{'wall s':>9}{'CPU s':>9}{'wall ×':>9}{'CPU ×':>9}"
    )
    base = [statistics.median(column) for column in zip(*times["plain loop"], strict=True)]
    for way, taken in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*taken, strict=True))
        print(f"{way:16}{wall:9.2f}{cpu:9.2f}{base[0] / wall:9.2f}{base[1] / cpu:9.2f}")


if __name__ == "__main__":
    main()
