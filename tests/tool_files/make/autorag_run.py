"""Run a trial of AutoRAG: two ways of BM25, a prompt and a mock generator. It writes the files autorag_*.

python make/autorag_run.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pandas as pd
from autorag.evaluator import Evaluator
from questions import FOLDER, rows

CONFIG = """
node_lines:
- node_line_name: retrieve
  nodes:
  - node_type: lexical_retrieval
    strategy: {metrics: [retrieval_f1, retrieval_recall, retrieval_mrr]}
    top_k: 2
    modules:
    - {module_type: bm25, bm25_tokenizer: [porter_stemmer, space]}
- node_line_name: generate
  nodes:
  - node_type: prompt_maker
    strategy: {metrics: [rouge], generator_modules: [{module_type: llama_index_llm, llm: mock}]}
    modules:
    - {module_type: fstring, prompt: "{query} {retrieved_contents}"}
  - node_type: generator
    strategy: {metrics: [rouge]}
    modules:
    - {module_type: llama_index_llm, llm: mock}
"""


class Characters:
    """A tokenizer in the place of GPT-2's, which would be downloaded: a character is a token."""

    def encode(self, text: str, **options: Any) -> list[int]:
        """Return the tokens of a text."""
        return [ord(character) for character in text]

    def __call__(self, texts: list[str], **options: Any) -> SimpleNamespace:
        """Return the tokens of each text."""
        return SimpleNamespace(data={"input_ids": [self.encode(text) for text in texts]})


data = [row for row in rows() if row["ground_truth_contexts"]]
texts = sorted(
    {text for row in data for text in row["retrieved_contexts"] + row["ground_truth_contexts"]}
)
ids = {text: f"p{number:02}" for number, text in enumerate(texts)}
qa = pd.DataFrame(
    {
        "qid": [row["sample_id"] for row in data],
        "query": [row["question"] for row in data],
        "retrieval_gt": [[[ids[text] for text in row["ground_truth_contexts"]]] for row in data],
        "generation_gt": [[row["reference"]] for row in data],
    }
)
metadata = [
    {"last_modified_datetime": datetime(2026, 1, 1), "prev_id": None, "next_id": None}
    for _ in texts
]
corpus = pd.DataFrame({"doc_id": list(ids.values()), "contents": texts, "metadata": metadata})

stem = f"autorag_{version('AutoRAG')}"
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    qa.to_parquet("qa.parquet")
    corpus.to_parquet("corpus.parquet")
    Path("config.yaml").write_text(CONFIG, encoding="utf-8")
    with patch("transformers.AutoTokenizer.from_pretrained", return_value=Characters()):
        evaluator = Evaluator("qa.parquet", "corpus.parquet", project_dir=work)
        evaluator.start_trial("config.yaml", skip_validation=True)
    trial = Path("0")
    shutil.copy("qa.parquet", FOLDER / f"{stem}_qa.parquet")
    chosen = {
        "trial_summary.csv": "summary.csv",
        "retrieval_summary.csv": "retrieve/lexical_retrieval/summary.csv",
        "retrieval.parquet": "retrieve/lexical_retrieval/0.parquet",
        "generator_summary.csv": "generate/generator/summary.csv",
        "generator.parquet": "generate/generator/0.parquet",
    }
    for name, path in chosen.items():
        shutil.copy(trial / path, FOLDER / f"{stem}_{name}")
