"""One door for what is in memory: objects of other libraries, lists, dicts and paths, in every function."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ragnb as rn
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.readers import read_cases, read_scores

LONG = (
    "Rule one allows twelve days of leave in each calendar year, and the rest may be carried over. "
    * 3
)


class TextNode:
    """As of LlamaIndex: its text is in a method, and its print is cut."""

    def __init__(self, text: str, metadata: dict[str, Any]) -> None:
        self.id_ = "n1"
        self.metadata = metadata
        self._words = text

    def get_content(self) -> str:
        return self._words

    def __str__(self) -> str:
        return f"Node ID: {self.id_}\nText: {self._words[:60]}..."


class NodeWithScore:
    def __init__(self, node: Any, score: float) -> None:
        self.node = node
        self.score = score

    @property
    def text(self) -> str:
        if not isinstance(self.node, TextNode):
            raise ValueError("Node must be a TextNode to get text.")
        return self.node.get_content()

    def get_content(self) -> str:
        return self.node.get_content()

    def __str__(self) -> str:
        return f"{self.node}\nScore: {self.score:.3f}"


class Document:
    """As of Haystack: text in ``content``, what is known of it in ``meta``."""

    def __init__(self, content: str | None, meta: dict[str, Any]) -> None:
        self.id = "d1"
        self.content = content
        self.meta = meta


def langchain_document() -> Any:
    return pytest.importorskip("langchain_core.documents").Document(
        page_content=LONG, metadata={"source": "a.pdf"}
    )


PASSAGES = {
    "LlamaIndex": lambda: NodeWithScore(TextNode(LONG, {"file_name": "a.pdf"}), 0.8),
    "LlamaIndex without a score": lambda: TextNode(LONG, {"file_name": "a.pdf"}),
    "Haystack": lambda: Document(LONG, {"filename": "a.pdf"}),
    "LangChain": langchain_document,
    "a dict": lambda: {"text": LONG, "metadata": {"source": "a.pdf"}},
    "a dict with an object": lambda: {"node": TextNode(LONG, {}), "source": "a.pdf"},
    "a text": lambda: LONG,
}


@pytest.mark.parametrize("kind", PASSAGES)
@pytest.mark.parametrize("column", ["contexts", "source_nodes"])
def test_a_passage_is_its_whole_text(kind, column):
    made = PASSAGES[kind]()
    frame = read_cases([{"question": "Who?", "answer": LONG, column: [made, made]}])
    assert frame["retrieved_contexts"].tolist() == [[LONG, LONG]]
    if kind != "a text":
        assert frame["retrieved_doc_names"].tolist() in ([["a.pdf", "a.pdf"]],) or "node" in kind


@pytest.mark.parametrize("kind", PASSAGES)
def test_answers_keep_the_texts_of_what_a_retriever_returns(kind):
    made = PASSAGES[kind]()
    frame = rn.answer_cases(
        [{"question": "Who?"}],
        retrieve=lambda asked: [made],
        generate=lambda asked, found: found[0],
    )
    assert frame["retrieved_contexts"].tolist() == [[LONG]]
    assert frame["answer"].tolist() == [LONG]


@pytest.mark.parametrize("made", [object(), Document(None, {}), SimpleNamespace(score=1)])
def test_an_object_without_a_text_is_refused_with_its_type(made):
    with pytest.raises(RagnbError, match=type(made).__name__):
        read_cases([{"question": "Who?", "answer": "Ann.", "contexts": [made]}])
    with pytest.warns(RagnbWarning, match="has no text"):
        failed = rn.answer_cases(
            [{"question": "Who?"}], retrieve=lambda asked: [made], generate=lambda *given: "Ann."
        )
    assert failed["answer__status"].tolist() == ["failed"]
    assert type(made).__name__ in failed["answer__reason"][0]


READABLE = {
    "LangChain": f"[Document(metadata={{'source': 'a.pdf'}}, page_content={LONG!r})]",
    "LangChain as text": f"page_content={LONG!r} metadata={{'source': 'a.pdf'}}",
    "LlamaIndex": "[NodeWithScore(node=TextNode(id_='n1', metadata={'file_name': 'a.pdf'}, relationships="
    f"{{<NodeRelationship.SOURCE: '1'>: RelatedNodeInfo(node_id='d1')}}, text={LONG!r}), score=0.8)]",
    "NumPy": f"array([{LONG!r}], dtype=object)",
}


@pytest.mark.parametrize("kind", READABLE)
def test_a_print_that_holds_its_text_is_read(tmp_path, kind):
    path = tmp_path / "s.csv"
    rows = [{"question": "Who?", "answer": "Ann.", "contexts": READABLE[kind]}]
    pd.DataFrame(rows).to_csv(path, index=False)
    assert read_cases(path)["retrieved_contexts"].tolist() == [[LONG]]


UNREADABLE = {
    "an address": "[<llama_index.core.schema.NodeWithScore object at 0x7f0c1>]",
    "a cut node": f"Node ID: 12ab\nText: {LONG[:60]}...\nScore:  0.800",
    "a cut document": f"[Document(id=2ed35, content: '{LONG[:60]}...', meta: {{}})]",
    "a node without its text": "[NodeWithScore(node=TextNode(id_='n1', text_resource=None), score=0.8)]",
    "a long array": f"array([{LONG!r}, ..., {LONG!r}], dtype=object)",
}


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("listed", [True, False])
def test_a_print_without_its_text_is_no_passage_and_is_counted(kind, listed):
    cell = [UNREADABLE[kind].strip("[]")] if listed and kind == "an address" else UNREADABLE[kind]
    rows = [
        {"question": "Who?", "answer": "Ann.", "contexts": cell},
        {"question": "When?", "answer": "Now.", "contexts": ["Now it is."]},
    ]
    frame = read_cases(rows)
    assert frame["retrieved_contexts"].tolist() == [None, ["Now it is."]]
    (told,) = [row for row in frame.attrs["lossy"] if row["what"] == "unparsed"]
    assert (told["n"], "prints of objects" in told["detail"]) == (1, True)


def test_a_passage_that_begins_with_a_bracket_stays():
    frame = read_cases([{"question": "Who?", "answer": "Ann.", "contexts": "[Have it reissued..."}])
    assert frame["retrieved_contexts"].tolist() == [["[Have it reissued..."]]


# One door

ROWS = [{"question": "Who?", "faithfulness": 1.0}, {"question": "When?", "faithfulness": 0.5}]
COLUMNS = {"question": ["Who?", "When?"], "faithfulness": [1.0, 0.5]}


def evaluation(score: float | None, passing: bool | None, **more: Any) -> SimpleNamespace:
    told = {"query": "Who?", "response": "Ann.", "contexts": ["Ann."], "feedback": "said"}
    invalid = {"invalid_result": False, "invalid_reason": None}
    return SimpleNamespace(score=score, passing=passing, **{**told, **invalid, **more})


def scored(kind: str, tmp_path: Any) -> Any:
    frame = pd.DataFrame(ROWS)
    if kind == "path":
        frame.to_csv(tmp_path / "s.csv", index=False)
    haystack = SimpleNamespace(
        run_name="run 1",
        inputs={"questions": COLUMNS["question"]},
        results={"faithfulness": {"score": 0.75, "individual_scores": [1.0, 0.5]}},
    )
    llama = [
        evaluation(1.0, True),
        evaluation(0.5, False, query="When?"),
    ]
    return {
        "list of dicts": ROWS,
        "dict of lists": COLUMNS,
        "dict of arrays": {name: np.array(cells) for name, cells in COLUMNS.items()},
        "path": str(tmp_path / "s.csv"),
        "pandas": frame,
        "polars": pl.DataFrame(ROWS),
        "to_pandas": SimpleNamespace(to_pandas=lambda: frame),
        "Haystack": haystack,
        "LlamaIndex": {"faithfulness": llama},
    }[kind]


KINDS = [
    "list of dicts",
    "dict of lists",
    "dict of arrays",
    "path",
    "pandas",
    "polars",
    "to_pandas",
    "Haystack",
    "LlamaIndex",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_function_of_scores_takes_every_kind_of_rows(kind, tmp_path):
    source = scored(kind, tmp_path)
    want = (1.0 + 0.5) / 2
    means = rn.weighted_means(source).set_index("metric")
    assert means.loc["faithfulness", "value"] == want
    assert rn.moments(source).means().set_index("metric").loc["faithfulness", "value"] == want
    assert rn.assess(source).means.set_index("metric").loc["faithfulness", "value"] == want
    assert len(rn.diagnose(source)) == len(rn.diagnose(pd.DataFrame(ROWS)))
    assert len(rn.weighted_score(source)) == 2


def test_results_that_are_invalid_failed_and_verdicts_are_scores():
    results = [
        evaluation(None, True),
        evaluation(None, None, invalid_result=True, invalid_reason="no reply"),
    ]
    frame = read_scores({"relevancy": results})
    assert frame["answer_relevancy"].iloc[0] == 1.0
    assert frame["answer_relevancy__status"].iloc[1] == "failed"
    assert frame["answer_relevancy__reason"].iloc[1] == "no reply"
    means = rn.weighted_means({"relevancy": results}).set_index("metric")
    assert means.loc["answer_relevancy", ["n", "n_failed"]].tolist() == [1, 1]


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(RagnbError, match="question: 1, faithfulness: 2"):
        read_scores({"question": ["Who?"], "faithfulness": [1.0, 0.5]})


def test_ragas_data_sets_are_read():
    ragas = pytest.importorskip("ragas")
    made = ragas.EvaluationDataset.from_list(
        [
            {
                "user_input": "Who?",
                "response": "Ann.",
                "retrieved_contexts": ["Ann."],
                "reference": "Ann",
            }
        ]
    )
    frame = read_cases(made)
    assert frame["question"].tolist() == ["Who?"]
    assert read_cases(list(made))["answer"].tolist() == ["Ann."]


def test_gold_and_ratings_are_taken_as_path_frame_or_records(tmp_path):
    traces = [
        {"question": "x", "answer": "Yes. citations: [a]"},
        {"question": "y", "answer": "Not in context"},
    ]
    gold = [
        {"question": "x", "answerable": True, "gold_ids": ["a"]},
        {"question": "y", "answerable": False, "gold_ids": []},
    ]
    pd.DataFrame(gold).to_json(tmp_path / "gold.jsonl", orient="records", lines=True)
    labels = ["OK", "REFUSAL_OK"]
    for given in (gold, pd.DataFrame(gold), str(tmp_path / "gold.jsonl")):
        for rows in (traces, pd.DataFrame(traces)):
            assert rn.label_traces(rows, gold=given)["label"].tolist() == labels
            assert rn.assess(rows, gold=given).scores["label"].tolist() == labels
    ratings = pd.DataFrame({"judge": [4, 5, 2, 1] * 10, "human": [5, 5, 2, 1] * 10})
    ratings.to_csv(tmp_path / "r.csv", index=False)
    want = rn.calibrate(ratings, scale=(1, 5)).verdicts["share"].tolist()
    for source in (tmp_path / "r.csv", str(tmp_path / "r.csv"), ratings.to_dict("records")):
        assert rn.calibrate(source, scale=(1, 5)).verdicts["share"].tolist() == want
    renamed = ratings.rename(columns={"human": "expert", "judge": "gpt"})
    renamed.to_csv(tmp_path / "named.csv", index=False)
    card = rn.calibrate(tmp_path / "named.csv", judge="gpt", human="expert", scale=(1, 5))
    assert card.verdicts["share"].tolist() == want
