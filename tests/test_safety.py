"""What the page on safety says and no other test shows."""

from __future__ import annotations

import json

import pytest

CASE = {
    "sample_id": "a",
    "question": "How long?",
    "retrieved_contexts": ["730 days."],
    "doc_name": "a.pdf",
}
CODE = """from pathlib import Path
Path('imported').touch()


def answer(question, passages):
    return '730 days.'
"""


@pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")
def test_only_what_asks_the_system_imports_its_functions(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hostile_rag.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "cases.jsonl").write_text(
        json.dumps(CASE | {"answer": "730 days."}), encoding="utf-8"
    )
    table = "sample_id,doc_name,faithfulness\na,a.pdf,1.0\nb,b.pdf,0.5\n"
    (tmp_path / "scores.csv").write_text(table, encoding="utf-8")
    system = 'system: {name: mine, generate: "hostile_rag:answer", improve: "hostile_rag:answer"}\n'
    (tmp_path / "scored.yaml").write_text(f"scores: scores.csv\n{system}", encoding="utf-8")
    (tmp_path / "asked.yaml").write_text(f"cases: cases.jsonl\n{system}", encoding="utf-8")
    for words in (
        ["check", "scored.yaml"],
        ["compare", "scored.yaml", "scores.csv"],
        ["report", "scored.yaml"],
        ["evaluate", "asked.yaml"],
        ["answer", "asked.yaml", "--dry-run"],
        ["run", "asked.yaml", "--dry-run"],
    ):
        exit_code, out, err = run(*words)
        assert exit_code in (0, 1), (words, out, err)
        assert not (tmp_path / "imported").exists(), words
    exit_code, out, err = run("answer", "asked.yaml")
    assert exit_code == 0, (out, err)
    assert (tmp_path / "imported").exists()
