"""Latency, tokens and cost: shown with mean, median and 95th percentile, never in a total, never breaking one."""

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats

import ragnb as rn
from ragnb.comparison.view import compare_view
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.schema import is_operation
from ragnb.sheet.weighable import weighable

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


# Intervals, gates on quantiles, errors

NORTHWIND = Path(__file__).parents[3] / "shared" / "data" / "scores" / "scores_azure_northwind.csv"


def slow_run(n=160, documents=40, seed=0, **columns):
    rng = np.random.default_rng(seed)
    rows = {
        "question": [f"Who is {k}?" for k in range(n)],
        "doc_name": [f"{k % documents}.pdf" for k in range(n)],
        "faithfulness": rng.beta(8, 2, n),
        "latency_s": rng.lognormal(0, 0.5, n),
        "cost_usd": rng.lognormal(-6, 0.3, n),
    }
    return pd.DataFrame(rows | columns)


def test_each_statistic_of_a_run_has_an_interval_by_documents():
    frame = slow_run()
    table = rn.assess(frame).operations.set_index("metric")
    for name in ("latency_s", "cost_usd"):
        mean = rn.stats.clustered_mean(frame[name], frame["doc_name"], ends=(0, math.inf))
        row = table.loc[name]
        assert (row["mean_low"], row["mean_high"]) == pytest.approx((mean.low, mean.high))
        for statistic, q in {"median": 0.5, "p95": 0.95}.items():
            found = rn.stats.quantile_interval(frame[name], q, frame["doc_name"])
            assert row[[f"{statistic}_low", f"{statistic}_high"]].tolist() == [
                found.low,
                found.high,
            ]


@pytest.mark.parametrize("engine", [pl.from_pandas, lambda frame: pl.from_pandas(frame).lazy()])
def test_every_engine_has_the_same_operations(engine):
    frame = slow_run().assign(total_tokens=range(160))
    frame.loc[[3, 30], "latency_s"] = np.nan
    wanted = rn.assess(frame).operations
    pd.testing.assert_frame_equal(rn.assess(engine(frame)).operations, wanted)


@pytest.mark.skipif(not NORTHWIND.exists(), reason="needs the data beside the project")
def test_a_real_table_has_the_median_and_percentile_of_numpy():
    frame = pd.read_csv(NORTHWIND)
    table = rn.assess(NORTHWIND).operations
    assert set(table["system"]) == set(frame["run"])
    for row in table[table["metric"] == "latency"].to_dict("records"):
        values = frame.loc[frame["run"] == row["system"], "latency"].dropna()
        assert row["median"] == pytest.approx(np.median(values))
        assert row["p95"] == pytest.approx(np.percentile(values, 95))
        assert row["median_low"] <= row["median"] <= row["median_high"]
        assert row["p95_low"] <= row["p95"] <= row["p95_high"]


def gate_on(frame, metric, op, threshold, **settings):
    gate = rn.Gate("g", metric, op, threshold)
    sheet = rn.assess(frame, gates=[gate], **settings)
    return sheet, sheet.gates.set_index("gate").loc["g"]


@pytest.mark.parametrize("metric", ["p50(latency_s)", "median(latency_s)"])
def test_a_gate_on_a_quantile_is_decided_by_its_interval(metric):
    frame = slow_run()
    found = rn.stats.quantile_interval(frame["latency_s"], 0.5, frame["doc_name"])
    steps = {found.high: "pass", found.high - 1e-6: "undecided", found.low - 1e-6: "fail"}
    for limit, outcome in steps.items():
        sheet, row = gate_on(frame, metric, "<=", limit)
        assert row["outcome"] == outcome
        assert sheet.blocked is (outcome == "fail")
        assert row["role"] == "operation"
    assert "median of latency_s" in sheet.to_markdown()


def test_more_questions_are_named_where_no_answer_is_slow_enough_to_tell():
    sheet, row = gate_on(slow_run(120, 20), "p95(latency_s)", "<=", 100.0)
    assert row["high"] == math.inf
    assert row["outcome"] == "undecided"
    # All are within the limit: 72 questions would show 95 %, and 6 in a document count as 1 + 1/2 + … + 1/6.
    worth = 20 * sum(1 / k for k in range(1, 7))
    least = math.log(0.025) / math.log(0.95)
    assert row["more_needed"] == math.ceil(120 * (least / worth - 1))
    assert "∞" in sheet.to_markdown()
    n = 120 + int(row["more_needed"])
    more = slow_run(n + 6, math.ceil((n + 6) / 6))
    assert gate_on(more, "p95(latency_s)", "<=", 100.0)[1]["outcome"] == "pass"


def test_lost_latencies_never_let_a_gate_pass():
    frame = slow_run(400, 400)
    assert gate_on(frame, "p95(latency_s)", "<=", 5.0)[1]["outcome"] == "pass"
    frame.loc[frame["latency_s"].nlargest(30).index, "latency_s"] = np.nan
    sheet, row = gate_on(frame, "p95(latency_s)", "<=", 5.0)
    assert row["outcome"] == "undecided"
    frame.loc[:60, "latency_s"] = np.nan
    sheet, row = gate_on(frame, "p95(latency_s)", "<=", 5.0)
    cells = sheet.gates.set_index("gate").loc["scored_cells"]
    assert bool(cells["blocks"])
    assert sheet.blocked


def test_a_gate_on_a_column_that_is_not_there_blocks():
    with pytest.warns(RagnbWarning, match=r"p95\(latencys\)"):
        sheet, row = gate_on(slow_run(), "p95(latencys)", "<=", 5.0)
    assert row["outcome"] == "no_data"
    assert sheet.blocked


def test_errors_are_a_share_of_the_answers_with_an_interval():
    frame = slow_run()
    frame["faithfulness__status"] = "ok"
    frame.loc[:15, "faithfulness"] = np.nan
    frame.loc[:15, "faithfulness__status"] = "failed"
    sheet, row = gate_on(frame, "errors", "<=", 0.5, allow={"cells": 0.2})
    share = rn.stats.clustered_mean(np.arange(160) < 16, frame["doc_name"], ends=(0, 1))
    assert row[["value", "low", "high"]].tolist() == [share.value, share.low, share.high]
    assert row["outcome"] == "pass"
    assert sheet.operations.set_index("metric").loc["errors", "mean"] == share.value
    assert gate_on(frame, "errors", "<=", 0.01, allow={"cells": 0.2})[1]["outcome"] == "fail"


def test_a_scenario_takes_such_a_gate_and_the_editor_leaves_it_alone(tmp_path):
    slow_run().to_csv(tmp_path / "scores.csv", index=False)
    text = "scores: scores.csv\ngates:\n  - {name: fast, metric: p95(latency_s), op: '<=', threshold: 20}\n"
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    sheet = rn.assess(tmp_path / "mine.yaml")
    assert sheet.gates["metric"].tolist()[0] == "p95(latency_s)"
    _, _, gates, _ = weighable(tmp_path / "mine.yaml")
    assert gates == ()


# Beside a baseline


def test_a_comparison_says_what_the_answers_took(tmp_path):
    base = slow_run()
    rng = np.random.default_rng(1)
    new = base.assign(
        latency_s=base["latency_s"] * 0.5 * rng.lognormal(0, 0.2, 160),
        cost_usd=base["cost_usd"] * rng.uniform(0.1, 0.2, 160),
    )
    table = rn.compare_operations(new, baseline=base)
    rows = table.set_index(["metric", "statistic"])
    cost = rows.loc["cost_usd", "mean"]
    assert cost["change"] == pytest.approx(new["cost_usd"].mean() / base["cost_usd"].mean() - 1)
    documents = base["doc_name"].unique()
    left_out = []
    for one in documents:
        kept = base["doc_name"] != one
        left_out.append(
            math.log(new.loc[kept, "cost_usd"].mean() / base.loc[kept, "cost_usd"].mean())
        )
    middle = math.log(1 + cost["change"])
    se = math.sqrt(39 / 40 * sum((one - middle) ** 2 for one in left_out))
    half = scipy.stats.t.ppf(0.975, 39) * se
    wanted = [math.expm1(middle - half), math.expm1(middle + half)]
    assert [cost["change_low"], cost["change_high"]] == pytest.approx(wanted)
    slow = rows.loc["latency_s", "p95"]
    found = rn.stats.quantile_difference(
        new["latency_s"], base["latency_s"], 0.95, base["doc_name"]
    )
    assert slow[["value", "low", "high", "p"]].tolist() == pytest.approx(
        [found.value, found.low, found.high, found.p]
    )
    assert set(table["outcome"]) == {"better"}
    for name, frame in {"base": base, "new": new}.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    view, quality, _ = compare_view(tmp_path / "new.csv", tmp_path / "base.csv")
    (head,) = view.head
    assert head.startswith("same: weighted_score")
    assert re.search(r"; p95 of latency_s [\d.]+ s faster \([\d.]+–[\d.]+\)", head)
    assert re.search(r"; cost_usd 8\d % cheaper \(8\d %–8\d %\)", head)
    assert "latency_s" not in set(quality["metric"])
    assert "What the answers took" in view.markdown()
    turned, _, _ = compare_view(tmp_path / "base.csv", tmp_path / "new.csv")
    assert "slower" in next(iter(turned.head))
    assert "more expensive" in next(iter(turned.head))


def test_equal_systems_are_neither_cheaper_nor_faster():
    rng = np.random.default_rng(2)
    said = 0
    for seed in range(40):
        base = slow_run(60, 20, seed)
        new = base.assign(
            latency_s=rng.permutation(base["latency_s"]), cost_usd=rng.permutation(base["cost_usd"])
        )
        said += (rn.compare_operations(new, baseline=base)["outcome"] != "undecided").any()
    assert said <= 5  # Holm over the six rows: 5 % of 40, and chance


def test_repeats_leave_the_mean_alone():
    frame = pd.concat([slow_run().assign(repeat=k, system="a") for k in (1, 2)])
    other = frame.assign(system="b", latency_s=frame["latency_s"] + frame["repeat"])
    table = rn.compare_operations(pd.concat([frame, other]), baseline="a")
    assert set(table["statistic"]) == {"mean"}
    assert table.set_index("metric").loc["latency_s", "value"] == pytest.approx(1.5)


def test_a_gate_may_ask_that_the_percentile_is_no_worse_than_the_baseline():
    base = slow_run().assign(system="old")
    for factor, outcome in {0.5: "pass", 3.0: "fail"}.items():
        new = base.assign(system="new", latency_s=base["latency_s"] * factor)
        gate = rn.Gate("fast", "p95(latency_s)", not_worse_than="baseline", by=0.1)
        sheet = rn.assess(pd.concat([new, base]), baseline="old", gates=[gate])
        row = sheet.gates.set_index("gate").loc["fast"]
        assert row["outcome"] == outcome
        assert row["threshold"] == 0.1


def test_errors_of_two_systems_are_compared():
    base = slow_run().assign(system="old", faithfulness__status="ok")
    new = base.assign(system="new")
    new.loc[:40, "faithfulness"] = np.nan
    new.loc[:40, "faithfulness__status"] = "failed"
    table = rn.compare_operations(pd.concat([new, base], ignore_index=True), baseline="old")
    row = table.set_index("metric").loc["errors"]
    assert row["value"] == pytest.approx(41 / 160)
    assert row["outcome"] == "worse"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_quality_and_cost_are_drawn_with_both_intervals(lang):
    both = pd.concat([slow_run().assign(system="a"), slow_run(seed=3).assign(system="b")])
    sheet = rn.assess(both, lang=lang)
    ax = rn.plots.quality_by_cost(
        sheet.means, sheet.operations, measure="cost_usd", systems=["b", "a"], lang=lang
    )
    words = rn.plots.alt_text(ax)
    totals = sheet.means[sheet.means["metric"] == "weighted_score"]
    for value in totals["value"]:
        assert f"{value:.3f}" in words
    assert len(ax.containers) == 2
    with pytest.raises(RagnbError, match="'price' is not known"):
        rn.plots.quality_by_cost(sheet.means, sheet.operations, measure="price")
    with pytest.raises(RagnbError, match="latency_s"):
        rn.plots.quality_by_cost(sheet.means, None)


def test_an_infinite_latency_is_a_missing_one_on_both_sides():
    base = slow_run()
    new = base.assign(latency_s=base["latency_s"] / 2)
    new.loc[3, "latency_s"] = math.inf
    rows = rn.compare_operations(new, baseline=base).set_index(["metric", "statistic"])
    assert rows.loc[("latency_s", "mean"), "n_common"] == 159
    assert rows.loc[("cost_usd", "mean"), "n_common"] == 160
    assert rn.assess(new).operations["n"].tolist() == [159, 160]


def test_no_answer_takes_less_than_nothing():
    table = rn.assess(slow_run(2, 2)).operations
    assert (table[["mean_low", "median_low", "p95_low"]] >= 0).to_numpy().all()


def test_a_metric_called_errors_is_the_users_own():
    frame = slow_run().assign(errors=0.25, faithfulness__status="ok")
    own = rn.Metric("errors", 0, 1, better="lower")
    sheet = rn.assess(
        frame, metrics=["faithfulness", own], gates=[rn.Gate("e", "errors", "<=", 0.5)]
    )
    row = sheet.gates.set_index("gate").loc["e"]
    assert row["value"] == pytest.approx(0.25)
    assert row["outcome"] == "pass"
