"""Evaluate with RAGChecker: claims are sentences, a rule says what entails them. It writes the files ragchecker_*.

python make/ragchecker_run.py
"""

from __future__ import annotations

import json
import os
import re
from importlib.metadata import version

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from questions import ABSTENTION, FOLDER, rows
from ragchecker import RAGChecker, RAGResults
from ragchecker.metrics import all_metrics
from scores import overlap

CHOSEN = ["zh-01", "zh-20", "zh-34", "en-04", "en-11", "en-13"]  # the texts are escaped, so long
ENTAILED = 0.8  # the share of a claim's words in a passage


def claims(text: str) -> list[list[str]]:
    """Return a triplet for each sentence; an abstention makes no claim."""
    if text in ABSTENTION.values():
        return []
    return [["the answer", "states", part] for part in re.split(r"(?<=[.。])\s*", text) if part]


def judged(prompts: list[str]) -> list[str]:
    """Answer the prompts for checking claims, one label a line."""
    replies = []
    for prompt in prompts:
        reference, rest = prompt.split("### Reference:\n")[1].split("\n\n### Claims:\n")
        stated = re.findall(r'^\("the answer", "states", "(.*)"\)$', rest, re.MULTILINE)
        replies.append(
            "\n".join(
                "Entailment" if overlap(reference, x) >= ENTAILED else "Neutral" for x in stated
            )
        )
    return replies


data = [
    {
        "query_id": row["sample_id"],
        "query": row["question"],
        "gt_answer": row["reference"],
        "response": row["answer"],
        "retrieved_context": [
            {"doc_id": f"{row['sample_id']}-{number}", "text": text}
            for number, text in enumerate(row["retrieved_contexts"])
        ],
        "response_claims": claims(row["answer"]),
        "gt_answer_claims": claims(row["reference"]),
    }
    for row in rows()
    if row["sample_id"] in CHOSEN
]
checker = RAGChecker(extractor_name="rule", checker_name="rule", custom_llm_api_func=judged)
results = RAGResults.from_json(json.dumps({"results": data}))
checker.evaluate(
    results, all_metrics, save_path=str(FOLDER / f"ragchecker_{version('ragchecker')}_results.json")
)
print(results)
