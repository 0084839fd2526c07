"""Two systems of MTRAG compared, against values that others computed from the same ratings."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import ragnb as rn

CANDIDATE, BASELINE = "gpt-4o", "llama-3.1-405b-instruct"
KEY = "mtrag_paired_gpt4o_minus_llama405b"
METRICS = ("human10", "judge10")


@pytest.fixture(scope="module")
def ratings(shared):
    table = pd.read_csv(shared / "data" / "ratings" / "mtrag.csv")
    return table[(table["dimension"] == "overall3") & table["system"].isin([CANDIDATE, BASELINE])]


def compared(table, **options):
    metrics = [rn.Metric(name, low=1, high=10) for name in METRICS]
    rows = table[["item_id", "system", "cluster", *METRICS]].rename(
        columns={"item_id": "sample_id"}
    )
    return rn.compare(rows, baseline=BASELINE, metrics=metrics, **options).set_index("metric")


@pytest.mark.parametrize("metric", METRICS)
def test_pairs_of_rows_are_those_of_the_reference(ratings, reference, metric):
    want = {name: entry["value"] for name, entry in reference[KEY][metric].items()}
    ours = compared(ratings).loc[metric]
    assert ours["cluster_unit"] == "row"
    assert ours["value"] == pytest.approx(want["mean_diff"], abs=1e-9)
    assert [ours["low"], ours["high"]] == pytest.approx(want["paired_t95"], abs=1e-9)
    assert ours["p"] == pytest.approx(want["paired_p"], abs=1e-9)
    assert ours["se"] == pytest.approx(want["se_paired"], abs=1e-9)
    assert ours["unpaired_se"] == pytest.approx(want["se_unpaired"], abs=1e-9)
    assert ours["correlation"] == pytest.approx(want["corr_systems"], abs=1e-9)


@pytest.mark.parametrize(
    ("metric", "familiar", "jackknife"), [("human10", 0.1676, 0.1684), ("judge10", 0.1479, 0.1481)]
)
def test_conversations_widen_it_as_the_familiar_error_does(
    ratings, reference, metric, familiar, jackknife
):
    """The jackknife's standard error is a little above the familiar one where conversations differ in length."""
    want = {name: entry["value"] for name, entry in reference[KEY][metric].items()}
    ours = compared(ratings, cluster="cluster").loc[metric]
    sides = ratings.pivot(index="item_id", columns="system", values=metric)
    d = sides[CANDIDATE] - sides[BASELINE]
    clusters = ratings.drop_duplicates("item_id").set_index("item_id")["cluster"].reindex(d.index)
    names = clusters.unique()
    u = (d - d.mean()).groupby(clusters).sum()
    g = len(names)
    by_hand = math.sqrt(g / (g - 1) * (u**2).sum()) / len(d)
    assert by_hand == pytest.approx(want["se_paired_cluster"], abs=1e-9)
    assert by_hand == pytest.approx(familiar, abs=5e-5)
    moves = [d[clusters != name].mean() - d.mean() for name in names]
    se = math.sqrt((g - 1) / g * np.sum(np.square(moves)))
    h = clusters.value_counts() / len(d)
    half = scipy_stats.t.ppf(0.975, 1 / (h**2).sum() - 1) * se
    ends = [d.mean() - half, d.mean() + half]
    assert [ours["se"], ours["low"], ours["high"]] == pytest.approx([se, *ends], abs=1e-9)
    assert ours["se"] == pytest.approx(jackknife, abs=5e-5)
    assert ours["n_clusters"] == g


def test_people_do_not_bear_out_what_the_judge_alone_sees(ratings):
    """The judge's difference is +.24, the people's −.03 on the same answers."""
    people = ratings.assign(human=ratings["human10"], dimension="judge10")
    table = compared(ratings, cluster="cluster", ratings=people)
    ours = table.loc["judge10"]
    assert ours["judge_value"] == pytest.approx(0.238, abs=5e-4)
    assert ours["value"] == pytest.approx(-0.0335, abs=5e-5)
    assert ours["human_value"] == pytest.approx(-0.0335, abs=5e-5)
    for judge, person in (("low", "human_low"), ("high", "human_high")):
        assert ours[person] == pytest.approx(table.loc["human10", judge], abs=1e-9)
    assert ours["people"] == "decided"
    assert ours["outcome"] not in ("better", "better_within")
    assert ours["n_human"] == ours["n_common"]
