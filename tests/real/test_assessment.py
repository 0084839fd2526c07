"""The sheet on strangers' tables, read in place."""

import csv

import pytest

import ragnb as rn


def test_northwind_scores_without_a_scenario(shared):
    path = shared / "data" / "scores" / "scores_azure_northwind.csv"
    metrics = [rn.Metric("gpt_groundedness", 1, 5), rn.Metric("gpt_relevance", 1, 5)]
    sheet = rn.assess(path, metrics=metrics)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    means = sheet.means.set_index(["system", "metric"])
    for system in {row["run"] for row in rows}:
        for name in ("gpt_groundedness", "gpt_relevance"):
            own = [row for row in rows if row[name] and row["run"] == system]
            mean = sum(float(row[name]) for row in own) / len(own)
            assert means.loc[(system, name), "value"] == pytest.approx(mean, abs=1e-12)
            assert means.loc[(system, name), "n"] == len(own)
            assert means.loc[(system, name), "n_clusters"] == len({row["doc_name"] for row in own})
    assert set(sheet.systems["system"]) == {row["run"] for row in rows}
    assert "not_averaged" in set(sheet.notes["code"])
    assert sheet.to_markdown()
    assert "gpt_groundedness" in sheet._repr_html_()


@pytest.mark.parametrize(
    "name",
    [
        "16_2023-11-15_aws-bedrock_c18.csv",
        "36_2024-09-23_llamaindex_c26.csv",
        "42_2025-12-07_ag-ui_c13.csv",
    ],
)
def test_ragas_tables_of_three_years(shared, name):
    path = shared / "data" / "score_tables" / "ragas_history" / name
    sheet = rn.assess(path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    means = sheet.means.set_index("metric")
    assert len(sheet.scores) == len(rows)
    for column in set(rows[0]) & set(means.index):
        values = [float(row[column]) for row in rows if row[column] not in ("", "NaN")]
        assert means.loc[column, "value"] == pytest.approx(sum(values) / len(values), abs=1e-12)
    assert len(set(rows[0]) & set(means.index)) >= 2


def test_mtragun_gates_are_the_published_rates(shared):
    folder = shared / "data" / "traces" / "mtragun"
    sheet = rn.assess(
        folder / "trace.gemini-3-pro.jsonl", gold=folder / "qaset.json", containment="latin"
    )
    value = sheet.means.set_index("metric")["value"].round(4)
    assert value["answer_precision"] == 0.8856
    assert value["over_refusal"] == 0.0211
    assert value["under_refusal"] == 0.2456
    assert value["citation_hit_rate"] == 0.9789
    assert value["compliance"] == 1.0
    assert sheet.gates.set_index("gate").loc["G2", "outcome"] == "fail"
    assert sheet.blocked
