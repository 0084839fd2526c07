"""Answer with a query engine of LlamaIndex and save what it returns. It writes llama_index_*_responses.*.

    python make/llama_index_nodes.py

LlamaIndex writes no file itself: people put the source nodes of a response into a table, where pandas writes the
text of the objects, or dump them as JSON.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import pandas as pd
from llama_index.core import QueryBundle, Settings
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from questions import FOLDER, rows
from scores import support

CHOSEN = rows()[6:12]  # of en-11 nothing was retrieved


def source_nodes(row: dict[str, Any]) -> list[NodeWithScore]:
    """Return the passages of a row as a retriever of LlamaIndex returns them."""
    return [
        NodeWithScore(
            node=TextNode(
                id_=f"{row['sample_id']}-{place}",
                text=text,
                metadata={"file_name": row["doc_name"]},
            ),
            score=support(row["question"], [text]),
        )
        for place, text in enumerate(row["retrieved_contexts"])
    ]


class Recorded(BaseRetriever):
    """A retriever that returns the recorded passages of each question."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        [row] = [row for row in CHOSEN if row["question"] == query_bundle.query_str]
        return source_nodes(row)


Settings.llm = MockLLM()
synthesizer = get_response_synthesizer(response_mode=ResponseMode.NO_TEXT)
engine = RetrieverQueryEngine(retriever=Recorded(), response_synthesizer=synthesizer)
responses = [engine.query(row["question"]) for row in CHOSEN]

answered = [
    {"query": row["question"], "response": row["answer"], "source_nodes": response.source_nodes}
    for row, response in zip(CHOSEN, responses, strict=True)
]
stem = FOLDER / f"llama_index_{version('llama-index-core')}"
pd.DataFrame(answered).to_csv(f"{stem}_responses.csv", index=False)
dumped = [
    row | {"source_nodes": [node.model_dump(mode="json") for node in row["source_nodes"]]}
    for row in answered
]
with open(f"{stem}_responses.json", "w", encoding="utf-8") as file:
    json.dump(dumped, file, ensure_ascii=False)
