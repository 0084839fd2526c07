"""Make the quickstart files: python data/quickstart/make.py [--out DIR].

The hand-written sources are corpus.jsonl and questions.jsonl; the same sources give the same bytes.
data/README.md says what every file and metric is.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipeline import STRONG, WEAK, Pipeline, Row, System
from raters import rate
from replies import replies

from ragnb.judging import support_lexical

HERE = Path(__file__).resolve().parent
START = datetime(2025, 3, 3, 9, 0, tzinfo=UTC)
METRICS = (
    "context_recall",
    "context_precision",
    "context_relevance",
    "answer_correctness",
    "support_lexical",
)
UNANSWERABLE = "unanswerable: no reference to compare with"
Cell = tuple[float | None, str, str]

SIMULATED_METRICS = {  # centre on the logit scale, weight of the document's quality, spread of one judgement
    "faithfulness": (1.05, 0.7, 0.9),
    "answer_relevancy": (1.6, 0.4, 0.7),
    "context_recall": (0.55, 1.3, 0.9),
    "context_precision": (0.2, 0.9, 0.9),
    "noise_sensitivity": (-0.8, -0.8, 0.8),
    "answer_correctness": (0.6, 1.0, 0.9),
}
SIMULATED_DOCUMENTS = (
    "301_超声波清洗机使用说明.pdf",
    "317_低温冰箱验收记录.pdf",
    "322_高速离心机保养手册.pdf",
    "340_荧光显微镜选型指南.pdf",
    "合同管理办法.pdf",
    "固定资产盘点规程.pdf",
    "实验室废弃物处理规定.pdf",
    "年度预算编制说明.pdf",
    "质量手册_第五版.pdf",
    "售后服务收费标准.pdf",
    "仓库出入库流程.pdf",
    "供应商准入与评价.pdf",
)


def read_jsonl(name: str) -> list[Row]:
    """Rows of a source file beside this script."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def jsonl(rows: list[Row]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def table(rows: list[Row]) -> str:
    """CSV with LF line ends; floats with 12 significant digits, None as an empty cell."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {k: format(v, ".12g") if isinstance(v, float) else v for k, v in row.items()}
        )
    return buffer.getvalue()


def occurs(fact: str, text: str) -> bool:
    """Whether a fact stands in a text, case aside, and not as part of a longer word or number."""
    return bool(re.search(rf"(?<![a-z0-9]){re.escape(fact.lower())}(?![a-z0-9])", text.lower()))


def share(facts: list[str], text: str) -> float:
    """Share of the facts that occur."""
    return sum(occurs(fact, text) for fact in facts) / len(facts)


def average_precision(relevant: list[bool]) -> float:
    """Mean of the precision at the rank of each relevant passage; 0 without one."""
    at_hits = [sum(relevant[:rank]) / rank for rank, hit in enumerate(relevant, 1) if hit]
    return math.fsum(at_hits) / len(at_hits) if at_hits else 0.0


def measure(question: Row, asked: Row, contexts: list[str]) -> dict[str, Cell]:
    """Each metric of one answer as value, status, reason."""
    support: Cell = (None, "not_applicable", "refused: there is no statement to look for")
    if not asked["refused"]:
        support = (support_lexical(asked["text"], contexts), "ok", "")
    if not question["answerable"]:
        return dict.fromkeys(METRICS[:-1], (None, "not_applicable", UNANSWERABLE)) | {
            METRICS[-1]: support
        }
    relevant = [chunk["id"] in question["gold_ids"] for chunk in asked["chunks"]]
    precision: Cell = (None, "missing", "nothing was retrieved: 0/0")
    relevance = precision
    if relevant:
        precision = (average_precision(relevant), "ok", "")
        relevance = (sum(relevant) / len(relevant), "ok", "")
    recall: Cell = (share(question["key_facts"], "\n".join(contexts)), "ok", "")
    correct: Cell = (share(question["key_facts"], asked["text"]), "ok", "")
    return dict(zip(METRICS, (recall, precision, relevance, correct, support), strict=True))


def spread(cells: dict[str, Cell]) -> Row:
    """The cells as columns `metric, metric__status, metric__reason`."""
    row: Row = {}
    for name, (value, status, reason) in cells.items():
        row |= {name: value, f"{name}__status": status, f"{name}__reason": reason}
    return row


def run(
    system: System, corpus: list[Row], questions: list[Row]
) -> tuple[list[Row], list[Row], list[Row]]:
    """Traces, cases and scores of one system."""
    pipeline = Pipeline(system, corpus)
    texts = {row["id"]: row["text"] for row in corpus}
    traces, cases, scores = [], [], []
    for number, question in enumerate(questions):
        asked = pipeline.ask(question)
        contexts = [texts[chunk["id"]] for chunk in asked["chunks"]]
        trace = {"ts": (START + timedelta(seconds=7 * number)).isoformat(), "qid": question["qid"]}
        trace |= {
            "q": question["q"],
            "chunks": asked["chunks"],
            "answer": asked["answer"],
            "ok": True,
        }
        trace |= {"citations": asked["cited"]} if system.list_field else {}
        traces.append(trace | {"system": system.name})
        about = {key: question[key] for key in ("doc_name", "language", "kind", "answerable")}
        head = {"sample_id": question["qid"], "system": system.name, "question": question["q"]}
        head |= {"ground_truth_answer": question["ground_truth_answer"], "answer": asked["text"]}
        gold = [texts[i] for i in question["gold_ids"]] or None
        cases.append(head | {"ground_truth_contexts": gold, "retrieved_contexts": contexts} | about)
        scores.append(head | about | spread(measure(question, asked, contexts)))
    return traces, cases, scores


def simulate(seed: int = 20250303, each: int = 10) -> list[Row]:
    """A made-up judge: quality by document and by question, noise, about 6 % of the cells without a score."""
    rng = random.Random(seed)
    rows = []
    for document in SIMULATED_DOCUMENTS:
        quality = rng.gauss(0, 0.7)
        for number in range(1, each + 1):
            own = rng.gauss(0, 0.5)
            cells: dict[str, Cell] = {}
            for name, (centre, slope, noise) in SIMULATED_METRICS.items():
                logit = centre + slope * (quality + own) + rng.gauss(0, noise)
                cells[name] = (round(1 / (1 + math.exp(-logit)), 4), "ok", "")
                fate = rng.random()
                if fate < 0.03:
                    cells[name] = (None, "failed", "模拟的失败：评审回复不是有效的JSON")
                elif fate < 0.06:
                    cells[name] = (None, "missing", "")
            head = {
                "sample_id": f"sim-{len(rows) + 1:03d}",
                "origin": "simulated",
                "doc_name": document,
            }
            rows.append(head | {"question": f"模拟问题{number}：{document}"} | spread(cells))
    return rows


def make() -> dict[str, str]:
    """Every made file by name."""
    corpus, questions = read_jsonl("corpus.jsonl"), read_jsonl("questions.jsonl")
    keys = ("qid", "q", "answerable", "gold_ids", "gold_claim", "doc_name", "language", "kind")
    gold = [{key: question[key] for key in keys} for question in questions]
    weak, strong = (run(system, corpus, questions) for system in (WEAK, STRONG))
    judged, ratings = rate(weak[2] + strong[2])
    return {
        "gold.json": json.dumps(gold, ensure_ascii=False, indent=1) + "\n",
        "traces.weak.jsonl": jsonl(weak[0]),
        "traces.strong.jsonl": jsonl(strong[0]),
        "cases.jsonl": jsonl(weak[1] + strong[1]),
        "scores.csv": table(weak[2] + strong[2]),
        "scores_simulated.csv": table(simulate()),
        "judged_simulated.csv": table(judged),
        "ratings.csv": table(ratings),
        "judge_replies.jsonl": jsonl(replies(judged, questions)),
    }


def main() -> None:
    """Write the made files."""
    parser = argparse.ArgumentParser(description="Make the quickstart files.")
    parser.add_argument(
        "--out", type=Path, default=HERE, help="folder to write to (default: beside this script)"
    )
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, text in make().items():
        (out / name).write_bytes(text.encode())


if __name__ == "__main__":
    main()
