"""Latency, tokens and cost: shown with mean, median and 95th percentile, never in a total, never breaking one."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.schema import is_operation

SCORES = {
    "question": [f"Who is {i}?" for i in range(20)],
    "faithfulness": [0.5 + i / 40 for i in range(20)],
}
LATENCY = [100.0 * (i + 1) for i in range(19)] + [None]
FRAME = pd.DataFrame(SCORES | {"latency_ms": LATENCY, "total_tokens": range(20)})


@pytest.mark.parametrize("engine", [lambda frame: frame, pl.from_pandas])
def test_a_run_shows_what_its_answers_took(engine):
    sheet = rn.assess(engine(FRAME))
    table = sheet.operations.set_index("metric")
    values = FRAME["latency_ms"].dropna()
    assert table.index.tolist() == ["latency_ms", "total_tokens"]
    assert table.loc["latency_ms", "n"] == 19
    assert table.loc["latency_ms", "mean"] == pytest.approx(values.mean())
    assert table.loc["latency_ms", "median"] == pytest.approx(np.median(values))
    assert table.loc["latency_ms", "p95"] == pytest.approx(np.percentile(values, 95))
    assert "latency_ms" not in set(sheet.means["metric"])
    shown = str(sheet.section("metrics"))
    assert (
        "| latency_ms | 19 | 1,000 · 728.8–1,271 | 1,000 · 500–1,500 | 1,810 · 1,600–∞ |" in shown
    )


@pytest.mark.parametrize("ends", [(0, math.inf), (0, 5000), ()])
def test_a_declared_latency_has_a_mean_of_its_own_and_leaves_the_total_alone(ends):
    alone = rn.assess(FRAME).means.set_index("metric").loc["weighted_score"]
    declared = rn.Metric("latency_ms", *ends)
    assert declared.role == "operation"
    assert declared.better == "lower"
    sheet = rn.assess(FRAME, metrics=[declared])
    means = sheet.means.set_index("metric")
    assert means.loc["weighted_score", "value"] == alone["value"]
    assert means.loc["weighted_score", "n"] == alone["n"]
    assert means.loc["latency_ms", "value"] == pytest.approx(FRAME["latency_ms"].mean())
    assert means.loc["latency_ms", "low"] < means.loc["latency_ms", "value"]
    assert "No overall score" not in sheet.verdict


@pytest.mark.parametrize(("limit", "blocked"), [(5000.0, False), (200.0, True)])
def test_a_gate_on_a_latency_needs_no_declaration(limit, blocked):
    sheet = rn.assess(FRAME, gates=[rn.Gate("speed", "latency_ms", "<=", limit)])
    row = sheet.gates.set_index("gate").loc["speed"]
    assert row["role"] == "operation"
    assert row["value"] == pytest.approx(1000.0)
    assert sheet.blocked is blocked


def test_a_weight_on_a_latency_is_refused_and_following_the_advice_works():
    weights = {"latency_ms": 1.0, "faithfulness": 1.0}
    with pytest.raises(RagnbError, match=r"declare it with role='quality'"):
        rn.assess(FRAME, metrics=[rn.Metric("latency_ms", 0, 5000)], metric_weights=weights)
    as_quality = rn.Metric("latency_ms", 0, 5000, role="quality")
    sheet = rn.assess(FRAME, metrics=[as_quality], metric_weights=weights, rescale=True)
    part = 1 - FRAME["latency_ms"] / 5000
    wanted = pd.concat([FRAME["faithfulness"], part], axis=1).mean(axis=1).mean()
    total = sheet.means.set_index("metric").loc["weighted_score", "value"]
    assert total == pytest.approx(wanted)


def test_each_system_has_its_own_latency():
    other = FRAME.assign(system="b", latency_ms=50.0)
    both = pd.concat([FRAME.assign(system="a"), other], ignore_index=True)
    sheet = rn.assess(both)
    rows = sheet.operations.set_index(["system", "metric"])["mean"]
    assert rows["b", "latency_ms"] == 50.0
    assert rows["a", "latency_ms"] == pytest.approx(1000.0)


def test_names_of_operation_are_told_from_scores_of_it():
    names = [
        "latency_ms",
        "latencyMs",
        "耗时",
        "费用（元）",
        "completion_tokens",
        "tokenUsage",
        "time_sec",
    ]
    names += [
        "Antwortzeit",
        "coût",
        "costo_usd",
        "стоимость",
        "レイテンシ",
        "비용",
        "response_time",
    ]
    assert all(map(is_operation, names))
    others = ["token_f1", "cost_effectiveness", "latency_score", "timely", "created_time", "recall"]
    assert not any(map(is_operation, others))


# The sentence of the total


def test_recall_that_a_tool_scored_is_part_of_the_total():
    frame = pd.DataFrame(
        {
            f"retrieval_{name}": [value] * 12
            for name, value in {"f1": 0.2, "recall": 1.0, "precision": 0.1}.items()
        }
    )
    frame["retrieved_contents"] = [[f"Rule {i}."] for i in range(12)]
    frame["retrieved_ids"] = [[f"d{i}"] for i in range(12)]
    sheet = rn.assess(frame)
    total = sheet.means.set_index("metric").loc["weighted_score", "value"]
    assert total == pytest.approx(1.3 / 3)
    assert "left out" not in sheet.verdict


@pytest.mark.parametrize(
    ("lang", "words"), [("en", "left out: tone_of_voice"), ("zh", "未计入：tone_of_voice")]
)
def test_the_sentence_of_the_total_names_what_the_table_offers_beside_it(lang, words):
    frame = FRAME.assign(tone_of_voice=[1, 2, 3, 5] * 5, needs_table=[0, 1] * 10)
    sheet = rn.assess(frame, lang=lang)
    assert words in sheet.verdict
    assert words in sheet.to_markdown()
    assert "needs_table" not in sheet.verdict
    assert "latency_ms" not in sheet.verdict
    chosen = rn.assess(frame, metrics=["faithfulness"], lang=lang)
    assert words not in chosen.verdict
    assert words not in rn.assess(FRAME, lang=lang).verdict


# Several systems: each count is of one


def test_counts_of_the_first_rows_are_of_the_system_that_they_name():
    low = pd.DataFrame(SCORES).assign(faithfulness=0.1)
    both = pd.concat([low.assign(system="a"), low.assign(system="b", faithfulness=0.2)])
    sheet = rn.assess(both)
    fix = sheet.to_markdown()
    assert "20 questions of b" in fix
    assert "40 questions" not in fix
    assert "20 of 20 answers of b are below the threshold of at least one metric" in fix
