"""Reports on strangers' tables, read where they lie and left as they are."""

import hashlib
import html
import re

import pytest

from ragnb.report import report

HISTORY = "score_tables/ragas_history"
TABLES = {
    "scores/scores_azure_northwind.csv": [
        {"name": "gpt_groundedness", "low": 1, "high": 5},
        {"name": "gpt_relevance", "low": 1, "high": 5},
    ],
    f"{HISTORY}/16_2023-11-15_aws-bedrock_c18.csv": None,
    f"{HISTORY}/36_2024-09-23_llamaindex_c26.csv": None,
    f"{HISTORY}/42_2025-12-07_ag-ui_c13.csv": None,
}


@pytest.mark.parametrize("name", TABLES, ids=lambda name: name.rsplit("/", 1)[-1])
def test_table_becomes_a_report_without_a_scenario(shared, tmp_path, name):
    path = shared / "data" / name
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    result = report(path, out=tmp_path, overrides={"metrics": TABLES[name]})
    page = result.html.read_text(encoding="utf-8")
    assert re.search(r"<h1>(.*?)</h1>", page)[1] in html.escape(result.verdict)
    for metric in TABLES[name] or []:
        assert metric["name"] in page
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert len(list(tmp_path.glob("*/*/report.html"))) == 1
