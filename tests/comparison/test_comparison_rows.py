"""Every number of a row of `compare` beside loops over the questions: gaps, states, documents and weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ragnb as rn
from ragnb import stats

METRICS = [
    rn.Metric("faithfulness"),
    rn.Metric("noise_sensitivity", better="lower"),
    rn.Metric("grade", 1, 5),
]
WORST = {"faithfulness": 0.0, "noise_sensitivity": 1.0, "grade": 1.0}
BEST = {"faithfulness": 1.0, "noise_sensitivity": 0.0, "grade": 5.0}
QUESTIONS = 60
DOC_WEIGHTS = {"d0": 3.0, "d1": 0.0, "d2": 0.5}


def runs(seed, overlap=0.85):
    """Return scores of two systems, long, with cells that failed, do not apply, or are missing."""
    rng = np.random.default_rng(seed)
    rows = []
    for system in ("new", "old"):
        for k in range(QUESTIONS):
            row = {"sample_id": f"q{k}", "doc_name": f"d{k % 7}", "system": system}
            for metric in METRICS:
                score = np.round(rng.uniform(metric.low, metric.high), 1)
                state = "ok"
                if rng.random() > overlap:
                    score = np.nan
                    state = rng.choice(["failed", "not_applicable", "missing"])
                row |= {metric.name: score, f"{metric.name}__status": state}
            rows.append(row)
    return pd.DataFrame(rows)


def sides(frame, metric):
    """Return the scores and states of both systems by question, and document and weight of each."""
    new, old = (
        frame[frame["system"] == name].set_index("sample_id").sort_index()
        for name in ("new", "old")
    )
    weight = new["doc_name"].map(DOC_WEIGHTS).fillna(1.0)
    scores = {"new": new[metric], "old": old[metric]}
    states = {"new": new[f"{metric}__status"], "old": old[f"{metric}__status"]}
    return scores, states, new["doc_name"], weight


def mean(values, weight):
    kept = values.notna() & (weight > 0)
    return np.average(values[kept], weights=weight[kept]) if kept.any() else np.nan


def filled(scores, states, metric):
    """Of a question that one side scored, the worst score where the other lost its own."""
    found = {}
    for name, other in (("new", "old"), ("old", "new")):
        lost = scores[name].isna() & scores[other].notna() & (states[name] != "not_applicable")
        found[name] = scores[name].mask(lost, WORST[metric])
    return found


@pytest.mark.parametrize("metric", [metric.name for metric in METRICS])
@pytest.mark.parametrize(("seed", "overlap"), [(0, 0.85), (1, 0.85), (2, 0.4)])
def test_a_row_is_the_loops_over_its_questions(metric, seed, overlap):
    frame = runs(seed, overlap)
    table = rn.compare(frame, baseline="old", metrics=METRICS, doc_weights=DOC_WEIGHTS)
    row = table[table["metric"] == metric].iloc[0]
    scores, states, doc, weight = sides(frame, metric)
    new, old = scores["new"], scores["old"]
    both = new.notna() & old.notna() & (weight > 0)
    gap = (new - old)[both]
    assert row["n_common"] == both.sum()
    assert row["value"] == pytest.approx(mean((new - old).where(both), weight))
    assert row["candidate_mean"] == pytest.approx(mean(new.where(both), weight))
    assert row["baseline_mean"] == pytest.approx(mean(old.where(both), weight))
    sign = np.sign(BEST[metric] - WORST[metric])
    assert row["wins"] == (sign * gap > 1e-9).sum()
    assert row["losses"] == (sign * gap < -1e-9).sum()
    assert row["ties"] == (gap.abs() <= 1e-9).sum()
    only_new = new.notna() & old.isna() & (weight > 0)
    only_old = old.notna() & new.isna() & (weight > 0)
    assert (row["n_only_candidate"], row["n_only_baseline"]) == (only_new.sum(), only_old.sum())
    assert row["n_left_out"] == only_new.sum() + only_old.sum()
    assert row["n_lost"] == (only_old & (states["new"] != "not_applicable")).sum()
    assert row["correlation"] == pytest.approx(np.corrcoef(new[both], old[both])[0, 1])
    at_worst = filled(scores, states, metric)
    worst_case = mean(at_worst["new"] - at_worst["old"], weight)
    assert row["worst_case"] == pytest.approx(worst_case)
    apart = [stats.clustered_mean(side, doc, weights=weight.to_numpy()) for side in (new, old)]
    se = np.hypot(apart[0].se, apart[1].se)
    margin = stats.t_quantile(0.95, min(apart[0].df, apart[1].df)) * se
    value = apart[0].value - apart[1].value
    assert row["unpaired_value"] == pytest.approx(value)
    assert row["unpaired_se"] == pytest.approx(se)
    assert (row["unpaired_low"], row["unpaired_high"]) == pytest.approx(
        (value - margin, value + margin)
    )
    either = both.sum() + only_new.sum() + only_old.sum()
    if both.sum() >= 0.3 * either:
        assert np.isnan(row["all_value"])
    else:
        assert row["all_value"] == pytest.approx(value)
    assert row["n_eff"] == pytest.approx(weight[both].sum() ** 2 / (weight[both] ** 2).sum())
    assert row["n_clusters"] == doc[both].nunique()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("orient", [True, False])
def test_the_total_adds_up_what_both_sides_have_and_turns_what_is_better_low(seed, orient):
    frame = runs(seed, 0.7)
    weights = {"faithfulness": 2.0, "noise_sensitivity": 1.0, "grade": 0.0}
    table = rn.compare(
        frame, baseline="old", metrics=METRICS, metric_weights=weights, orient=orient
    )
    row = table[table["metric"] == "weighted_score"].iloc[0]
    differences = []
    for k in range(QUESTIONS):
        new, old = (
            frame[(frame["system"] == name) & (frame["sample_id"] == f"q{k}")].iloc[0]
            for name in ("new", "old")
        )
        have = [
            name
            for name, weight in weights.items()
            if weight and not np.isnan(new[name]) and not np.isnan(old[name])
        ]
        if not have:
            continue
        total = {}
        for name, side in (("new", new), ("old", old)):
            parts = {metric: side[metric] for metric in have}
            if orient and "noise_sensitivity" in parts:
                parts["noise_sensitivity"] = 1 - parts["noise_sensitivity"]
            weight = sum(weights[metric] for metric in have)
            total[name] = sum(weights[metric] * parts[metric] for metric in have) / weight
        differences.append((k % 7, total["new"] - total["old"]))
    clusters, values = np.array(differences).T
    assert row["n_common"] == len(values)
    assert row["value"] == pytest.approx(values.mean())
    expected = stats.clustered_mean(values, clusters)
    assert row["se"] == pytest.approx(expected.se)
    assert row["df"] == pytest.approx(expected.df)
    assert (row["wins"], row["losses"]) == ((values > 1e-9).sum(), (values < -1e-9).sum())


@pytest.mark.parametrize(("n", "is_told"), [(2, False), (3, True)])
def test_a_correlation_is_that_of_three_questions_or_more(n, is_told):
    new, old = [0.1, 0.5, 0.9][:n], [0.3, 0.4, 0.6][:n]
    frame = pd.DataFrame(
        {
            "sample_id": [*range(n)] * 2,
            "system": ["new"] * n + ["old"] * n,
            "faithfulness": new + old,
        }
    )
    row = rn.compare(frame, baseline="old").iloc[0]
    assert np.isnan(row["correlation"]) == (not is_told)
    if is_told:
        assert row["correlation"] == pytest.approx(np.corrcoef(new, old)[0, 1])


@pytest.mark.parametrize(("n_lost", "outcome"), [(2, "better"), (3, "undecided")])
def test_a_tenth_of_the_baselines_scores_may_be_lost_where_a_scenario_says_so(n_lost, outcome):
    old = np.linspace(0.3, 0.6, 20)
    new = old + np.tile([0.25, 0.27], 10)
    new[:n_lost] = np.nan
    frame = pd.DataFrame(
        {
            "sample_id": [*range(20)] * 2,
            "system": ["new"] * 20 + ["old"] * 20,
            "faithfulness": [*new, *old],
        }
    )
    row = rn.compare(frame, baseline="old", allow={"questions": 0.1}).iloc[0]
    assert (row["n_lost"], row["outcome"]) == (n_lost, outcome)
