"""Refusal rates of 100,000 traces, file reading included, against a plain Python loop; prints a table.

python benchmarks/traces.py [--lines 100000] [--runs 7]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import tempfile
import time
import unicodedata
import warnings
from pathlib import Path

import ragnb as rn
from ragnb.errors import RagnbWarning
from ragnb.traces import RATES

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
        gold.append({"qid": f"q{i}", "q": f"What {' '.join(rng.choices(WORDS, k=10))} {i}?", "doc_name": doc})
        gold[-1] |= {"answerable": asked, "gold_ids": ids if asked else []}
        gold[-1] |= {"gold_claim": " ".join(rng.choices(WORDS, k=12)) if asked else None}
    (folder / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
    rows = [json.dumps(_trace(rng, gold[i % questions], i // questions), ensure_ascii=False) for i in range(lines)]
    (folder / "traces.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for at, bad in ((50, "{bad"), (lines // 2, "[]"), (lines - 9, '{"q": '), (500, '{"q": "\\ud800"}')):
        rows[at] = bad
    (folder / "dirty.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _trace(rng: random.Random, gold: dict, system: int) -> dict:
    chunks = [{"id": f"{gold['doc_name']}#page={rng.randrange(12)}"} for _ in range(5)]
    draw = rng.random()
    answer = ". ".join("- " + " ".join(rng.choices(WORDS, k=30)) for _ in range(2))
    answer += f"\n- citations: [{chunks[0]['id']}, {chunks[1]['id']}]" if draw > 0.35 else ""
    answer = "Not in context" if draw < 0.15 else "I'm sorry, the passages do not say." if draw < 0.25 else answer
    row = {"ts": 1723129647 + system, "qid": gold["qid"], "q": gold["q"], "chunks": chunks, "answer": answer}
    return row | {"ok": True, "system": f"s{system}"}


def tidy(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().lower()


def loop(folder: Path, name: str) -> dict[str, tuple[float, int]]:
    """The plain loop: json.loads a line, the same rules, sums and counts; no intervals, no labelled rows."""
    cited = re.compile(r"citations\s{0,8}[:：]\s{0,8}\[([^\]\[]{0,2000})\]", re.IGNORECASE)
    refusal, phrase = re.compile(PATTERNS[0], re.IGNORECASE), re.compile(r"[a-z0-9][a-z0-9\-\s]{4,}")
    gold = {}
    for row in json.loads((folder / "gold.json").read_text(encoding="utf-8")):
        phrases = [p.strip() for p in phrase.findall(tidy(row["gold_claim"] or ""))]
        gold[row["qid"]] = row["answerable"], {unicodedata.normalize("NFC", i) for i in row["gold_ids"]}, phrases
    sums = {rate: [0.0, 0] for rate in RATES}

    def add(rate: str, value: float) -> None:
        sums[rate][0] += value
        sums[rate][1] += 1

    for line in (folder / name).open(encoding="utf-8"):
        try:
            row = json.loads(line)
            found, answer = gold.get(row["qid"]), row["answer"]
        except (ValueError, KeyError, TypeError):
            continue
        if found is None:
            continue
        asked, wanted, phrases = found
        text = tidy(answer)
        refused = text == "not in context" or refusal.search(text) is not None
        ids = row.get("citations")
        if ids is None and (match := cited.search(answer)):
            ids = [part for part in re.split(r"[,，\s]+", unicodedata.normalize("NFC", match[1])) if part]
        hit = bool(ids) and not wanted.isdisjoint(ids)
        add("compliance", refused or ids is not None)
        if not refused:
            add("answer_precision", asked and hit)
        if not asked:
            add("under_refusal", not refused)
            continue
        add("over_refusal", refused)
        add("citation_hit_rate", hit and not refused)
        add("claim_containment", not refused and any(p in text for p in phrases))
        retrieved = [unicodedata.normalize("NFC", chunk["id"]).strip() for chunk in row["chunks"]]
        rank = next((place for place, name in enumerate(retrieved, 1) if name in wanted), 0)
        add("retrieval_hit", rank > 0)
        add("retrieval_recall", len(wanted.intersection(retrieved)) / len(wanted))
        add("reciprocal_rank", 1 / rank if rank else 0.0)
    return {rate: (total, n) for rate, (total, n) in sums.items()}


def ours(folder: Path, name: str, engine: str) -> dict[str, tuple[float, int]]:
    """Read, label, average with clustered intervals."""
    traces = rn.read_traces(folder / name, engine=engine)
    labelled = rn.label_traces(traces, rn.read_gold(folder / "gold.json"), patterns=PATTERNS)
    means = rn.refusal_metrics(labelled)
    return {row.metric: (row.numerator, row.n) for row in means.itertuples()}


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
                "ragnb, Polars": lambda file=file: ours(folder, file, "polars"),
                "ragnb, pandas": lambda file=file: ours(folder, file, "pandas"),
            }
            _compare(file, ways, given.runs)


def _compare(file: str, ways: dict, runs: int) -> None:
    results = {way: call() for way, call in ways.items()}
    first = results["plain loop"]
    for way, result in results.items():
        for rate, (total, n) in first.items():
            assert abs(result[rate][0] - total) < 1e-6 * max(1, total), (way, rate, result[rate], total)
            assert result[rate][1] == n, (way, rate)
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(runs):
        for way, call in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            times[way].append((time.perf_counter() - wall, time.process_time() - cpu))
    print(f"\n{file}: median of {runs} runs\n{'way':16}{'wall s':>9}{'CPU s':>9}{'wall ×':>9}{'CPU ×':>9}")
    base = [statistics.median(column) for column in zip(*times["plain loop"], strict=True)]
    for way, taken in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*taken, strict=True))
        print(f"{way:16}{wall:9.2f}{cpu:9.2f}{base[0] / wall:9.2f}{base[1] / cpu:9.2f}")


if __name__ == "__main__":
    main()
