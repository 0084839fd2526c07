"""The weight map: equal to `compare` at any weights, and its flips where the leader really changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ragnb as rn
from ragnb import plots
from ragnb.errors import RagnbError

NAMES = ["context_recall", "context_precision", "faithfulness", "answer_relevancy"]


def two_systems(questions=240, docs=24, gaps=0.15, shift=(0.05, -0.05, 0.02, -0.01), seed=0):
    rng = np.random.default_rng(seed)
    base, doc = rng.random((questions, len(NAMES))), rng.integers(0, docs, questions)
    parts = []
    for system, moved in (("new", shift), ("old", [0.0] * len(NAMES))):
        scores = np.clip(base * 0.6 + 0.2 + rng.normal(0, 0.15, base.shape) + moved, 0, 1)
        scores[rng.random(base.shape) < gaps] = np.nan
        labels = {
            "sample_id": np.arange(questions),
            "system": system,
            "doc_name": [f"d{d}" for d in doc],
        }
        parts.append(pd.DataFrame(scores, columns=NAMES).assign(**labels))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("docs", [24, 10**6])
def test_the_map_is_compare_at_200_random_weightings(docs):
    scores, rng = two_systems(docs=docs), np.random.default_rng(1)
    doc_weights = {"d1": 3.0, "d2": 0.0, "d3": 0.5} if docs == 24 else None
    found = rn.weight_map(scores, baseline="old", doc_weights=doc_weights)
    for _ in range(100):
        drawn = rng.exponential(size=len(NAMES)) * (rng.random(len(NAMES)) > 0.2)
        if not drawn.any():
            continue
        weights = dict(zip(found.metrics, drawn.tolist(), strict=True))
        row = rn.compare(
            scores, baseline="old", metric_weights=weights, doc_weights=doc_weights
        ).iloc[-1]
        np.testing.assert_allclose(
            found.at(weights).iloc[0],
            row[["value", "low", "high"]].astype(float),
            rtol=0,
            atol=1e-12,
        )


def test_lower_is_better_and_ranges_enter_as_in_the_total():
    scores = two_systems(gaps=0).rename(columns={"answer_relevancy": "noise_sensitivity"})
    scores["stars"] = 1 + 4 * scores["context_recall"]
    metrics = ["faithfulness", "noise_sensitivity", rn.Metric("stars", 1, 5)]
    weights = {"faithfulness": 1.0, "noise_sensitivity": 2.0, "stars": 3.0}
    found = rn.weight_map(scores, baseline="old", metrics=metrics, rescale=True)
    row = rn.compare(
        scores, baseline="old", metrics=metrics, rescale=True, metric_weights=weights
    ).iloc[-1]
    assert found.at(weights)["value"].iloc[0] == pytest.approx(row["value"], abs=1e-12)
    by_hand = scores.assign(
        total=(
            scores["faithfulness"]
            + 2 * (1 - scores["noise_sensitivity"])
            + 3 * (scores["stars"] - 1) / 4
        )
        / 6
    )
    sides = by_hand.groupby("system")["total"].mean()
    assert row["value"] == pytest.approx(sides["new"] - sides["old"], abs=1e-12)


def test_a_flip_is_where_the_leader_changes():
    found = rn.weight_map(two_systems(gaps=0), baseline="old")
    now = found.at(found.today)["value"].iloc[0]
    some = found.flips.dropna()
    assert len(some)
    for row in some.itertuples():
        assert found.strip(row.metric, points=3)["value"].iloc[[0, -1]].tolist() == [
            row.without,
            row.alone,
        ]
        place = found.metrics.index(row.metric)
        for share, side in (
            (row.flip + 1e-6 * np.sign(row.today - row.flip), 1),
            (row.flip - 1e-6 * np.sign(row.today - row.flip), -1),
        ):
            weights = found.today * (1 - share) / (1 - found.today[place])
            weights[place] = share
            assert found.at(weights)["value"].iloc[0] * now * side > 0


def test_no_weighting_is_nearer_that_flips():
    """Without gaps: with them the difference jumps where a metric's weight, and with it a question, drops out."""
    found = rn.weight_map(two_systems(gaps=0), baseline="old")
    nearest, now = found.nearest_flip, found.at(found.today)["value"].iloc[0]
    border = np.array([nearest["weights"][name] for name in found.metrics])
    assert abs(found.at(border)["value"].iloc[0]) < 1e-9
    assert nearest["distance"] == pytest.approx(np.abs(border - found.today).sum() / 2)
    points = np.random.default_rng(7).dirichlet(np.ones(len(NAMES)), 20_000)
    nearer = points[np.abs(points - found.today).sum(axis=1) / 2 < nearest["distance"] - 1e-3]
    assert (found.at(nearer)["value"] * now > 0).all()


def test_shares_are_of_fixed_points_even_over_the_simplex():
    found = rn.weight_map(two_systems(), baseline="old")
    assert len(found.points) == 100_000
    np.testing.assert_allclose(found.points[list(found.metrics)].mean(), 1 / len(NAMES), atol=5e-3)
    again = rn.weight_map(two_systems(), baseline="old")
    assert again.shares == found.shares
    p = found.points
    assert (
        found.shares["candidate_conclusive"] == (p["low"] > 0).mean() <= found.shares["candidate"]
    )


def test_a_leader_under_all_weights_never_flips():
    found = rn.weight_map(two_systems(shift=(0.3, 0.3, 0.3, 0.3)), baseline="old")
    assert found.nearest_flip is None
    assert found.flips["flip"].isna().all()
    assert found.shares["candidate"] == 1.0
    assert repr(found).startswith("WeightMap(new leads for 100% of all weightings")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"metrics": ["faithfulness"]}, "at least two metrics"),
        ({"metrics": ["faithfulness", rn.Metric("context_recall", 0, 10)]}, "rescale=True"),
    ],
)
def test_what_cannot_be_weighed_is_refused(settings, words):
    with pytest.raises(RagnbError, match=words):
        rn.weight_map(two_systems(), baseline="old", **settings)


def test_several_candidates_need_a_name():
    scores = two_systems()
    third = scores[scores["system"] == "new"].assign(system="third")
    with pytest.raises(RagnbError, match="name it: candidate="):
        rn.weight_map(pd.concat([scores, third]), baseline="old")


@pytest.mark.parametrize("weights", [{"faithfulnes": 1}, [[1, 2]], [[0, 0, 0, 0]], [[-1, 1, 1, 1]]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(RagnbError):
        rn.weight_map(two_systems(), baseline="old").at(weights)


def test_charts_show_the_leader_in_words_and_marks():
    found = rn.weight_map(two_systems(), baseline="old")
    ax = plots.weight_map(found)
    assert [label.get_text() for label in ax.get_yticklabels()] == found.flips["metric"].tolist()
    marks = [line for line in ax.lines if line.get_label() == "_flip"]
    assert [line.get_xdata()[0] for line in marks] == found.flips["flip"].dropna().tolist()
    assert "of all weightings" in plots.alt_text(ax)
    triangle = plots.weight_map(rn.weight_map(two_systems(), baseline="old", metrics=NAMES[:3]))
    assert sum(len(points.get_offsets()) for points in triangle.collections) == 20_000


def test_the_chart_of_differences_holds_the_table():
    table = rn.compare(two_systems(), baseline="old")
    ax = plots.differences(table)
    dots = [line.get_xdata()[0] for line in ax.lines if line.get_label() == "_row"]
    np.testing.assert_allclose(dots, table["value"])
    assert table.iloc[-1]["outcome"] in plots.alt_text(ax)


@pytest.mark.parametrize("docs", [8, 10**6])
@pytest.mark.parametrize("changed", [0, 1, 4, 19, 20])
def test_the_map_is_compare_where_few_questions_change(docs, changed):
    rng = np.random.default_rng(changed)
    old = (rng.random((60, 2)) < 0.8).astype(float)
    new = old.copy()
    new[:changed, 0] = 1 - new[:changed, 0]
    new[: changed // 2, 1] = 0.25
    labels = {"sample_id": range(60), "doc_name": [f"d{n % docs}" for n in range(60)]}
    names = ["faithfulness", "context_recall"]
    sides = [
        pd.DataFrame(x, columns=names).assign(**labels, system=system)
        for x, system in ((new, "new"), (old, "old"))
    ]
    scores = pd.concat(sides, ignore_index=True)
    found = rn.weight_map(scores, baseline="old")
    for drawn in [(1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.3, 2.0)]:
        weights = dict(zip(found.metrics, drawn, strict=True))
        row = rn.compare(scores, baseline="old", metric_weights=weights).iloc[-1]
        ends = row[["value", "low", "high"]].astype(float)
        np.testing.assert_allclose(found.at(weights).iloc[0], ends, rtol=0, atol=1e-12)


def test_a_rate_with_a_small_weight_has_it_and_slices_leave_no_metric_open():
    rng = np.random.default_rng(0)
    parts = []
    for name in ("old", "new"):
        refused = (rng.random(40) < 0.3).astype(float)
        columns = {"sample_id": np.arange(40), "system": name, "over_refusal": refused}
        parts.append(pd.DataFrame(columns | {"faithfulness": rng.random(40)}))
    both = pd.concat(parts, ignore_index=True).assign(doc_name="a")
    both.loc[both.index % 2 > 0, "doc_name"] = "b"
    lost = (both["system"] == "new") & (both["sample_id"] < 12)
    both["faithfulness"] = both["faithfulness"].mask(lost)
    both["faithfulness__status"] = np.where(lost, "failed", None)
    sides = {"baseline": "old", "candidate": "new"}
    weights = {"faithfulness": 1, "over_refusal": 0.5}
    table = rn.compare(both, **sides, metric_weights=weights).set_index("metric")
    assert table.loc["over_refusal", "weight"] == 0.5
    assert table["incomplete"].to_dict()["faithfulness"]
    assert not rn.compare(both, **sides, by="doc_name")["incomplete"].any()
