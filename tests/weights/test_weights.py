"""Weighted means, scores and their intervals, against loops written another way."""

import math
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special as scipy_special
from scipy import stats as scipy_stats

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.texts import load
from ragnb.weights import notes
from ragnb.widgets import WeightEditor

NAMES = ["faithfulness", "answer_relevancy", "noise_sensitivity"]


def loop_score(row, weights, orient=True):
    top = bottom = 0.0
    for name in NAMES:
        s = row[name]
        if s is None or math.isnan(s):
            continue
        w = weights.get(name, 1.0)
        top += w * (1 - s if orient and name == "noise_sensitivity" else s)
        bottom += w
    return top / bottom if bottom > 0 else math.nan


def loop_mean(values, docs, doc_weights, clusters=None, level=0.95, low=0.0, high=1.0, ends=None):
    """The estimator of the design, by deleting one cluster after the other.

    `ends` are how many scores lie at the low and the high end, where the values do not tell.
    """
    rows = []
    for i, (x, d) in enumerate(zip(values, docs, strict=True)):
        if math.isnan(x):
            continue
        v = doc_weights.get(d, 1.0) if d is not None else 1.0
        own = clusters[i] if clusters is not None else d
        rows.append((x, v, ("row", i) if own is None else own))
    a = sum(v for _, v, _ in rows)
    if a == 0:
        return dict(
            value=math.nan,
            low=math.nan,
            high=math.nan,
            se=math.nan,
            n=len(rows),
            n_clusters=0,
            n_eff=0.0,
        )
    theta = sum(v * x for x, v, _ in rows) / a
    weight = {}
    for _, v, g in rows:
        weight[g] = weight.get(g, 0.0) + v
    groups = [g for g, w in weight.items() if w > 0]
    count = len(groups)
    n_eff = a**2 / sum(v * v for _, v, _ in rows)
    out = dict(
        value=theta,
        low=math.nan,
        high=math.nan,
        se=math.nan,
        n=len(rows),
        n_clusters=count,
        n_eff=n_eff,
    )
    if count < 2:
        return out
    moves = []
    for g in groups:
        rest = [(x, v) for x, v, h in rows if h != g]
        moves.append(sum(v * x for x, v in rest) / sum(v for _, v in rest) - theta)
    se = math.sqrt((count - 1) / count * sum(m * m for m in moves))
    g_eff = 1 / sum((weight[g] / a) ** 2 for g in groups)
    df0 = max(g_eff - 1, 1)
    p, s = (theta - low) / (high - low), se / (high - low)
    if ends is None:
        ends = sum(x == low for x, _, _ in rows), sum(x == high for x, _, _ in rows)
    if s > 1e-9 and 0 < p < 1:
        n = p * (1 - p) / s**2
        few = len(rows) - max(ends)
        if sum(ends) >= len(rows):
            n = min(n, n_eff)
        elif n > n_eff:
            drawn = min(max(1.5 - few / 20, 0), 1) * min(max(2 - 4 * few / len(rows), 0), 1)
            n = n ** (1 - drawn) * n_eff**drawn
        t = scipy_stats.t.ppf(0.5 + level / 2, df0)
        c, r = (n * p + t * t / 2) / (n + t * t), min(g_eff / n, 1)
        h4 = sum((weight[g] / a) ** 4 for g in groups)
        kurtosis = 1.5 * r * (1 - r) * (1 - 2 * c) ** 2 / (c * (1 - c))
        df = 1 / (1 / df0 + kurtosis * min(max(g_eff**2 * h4, 1 / df0), 2 / df0))
        t = scipy_stats.t.ppf(0.5 + level / 2, max(df, 1))
    else:
        inside = n_eff / g_eff
        n = g_eff * (scipy_special.digamma(inside + 1) - scipy_special.digamma(1))
        t = math.sqrt(n * (((1 - level) / 2) ** (-1 / n) - 1))
    middle, half = p + t * t / (2 * n), t * math.sqrt(p * (1 - p) / n + t * t / (4 * n * n))
    ends = [max((middle - half) / (1 + t * t / n), 0), min((middle + half) / (1 + t * t / n), 1)]
    out |= dict(se=se, low=low + (high - low) * ends[0], high=low + (high - low) * ends[1])
    return out


cell = st.one_of(st.just(math.nan), st.floats(0, 1).map(lambda x: round(x, 3)))
row = st.tuples(
    cell,
    cell,
    cell,
    st.sampled_from(["甲.pdf", "b.pdf", "c.pdf", None]),
    st.sampled_from(["u", "v", None]),
)
tables = st.lists(row, max_size=30).flatmap(
    lambda rows: st.integers(1, 4).map(lambda k: rows * k)  # repeats make real cells, not one a row
)
weight = st.sampled_from([0.0, 0.25, 1.0, 3.0])


def frame_of(rows):
    return pd.DataFrame(rows, columns=[*NAMES, "doc_name", "talk"]).astype(
        dict.fromkeys(NAMES, float)
    )


def ends_of_total(frame, weights):
    """How many rows have all scores at their bad and at their good end; of some metrics, at most the least."""
    good = {name: 0.0 if name == "noise_sensitivity" else 1.0 for name in NAMES}
    used = [name for name in NAMES if weights[name] > 0]
    counts = []
    for turn in (lambda end: 1 - end, lambda end: end):
        there = frame[NAMES].eq({name: turn(end) for name, end in good.items()})
        if used == list(NAMES):
            rows = (there | frame[NAMES].isna()).all(axis=1) & frame[NAMES].notna().any(axis=1)
            counts.append(int(rows.sum()))
        else:
            counts.append(int(there[used].sum().min()))
    return counts


def same(got, want, tolerance=1e-9):
    for key, value in want.items():
        assert got[key] == pytest.approx(value, abs=tolerance, nan_ok=True), (key, got, want)


PAIRS = st.tuples(weight, weight)


@given(tables, PAIRS, PAIRS, st.sampled_from([None, "talk"]), st.booleans())
def test_means_are_the_delete_one_loops(rows, w, v, cluster, orient):
    weights = {"faithfulness": w[0], "noise_sensitivity": w[1], "answer_relevancy": 0.5}
    doc_weights = {"甲.pdf": v[0], "b.pdf": v[1], "c.pdf": 2.0}
    frame = frame_of(rows)
    if rows and not any(doc_weights.get(d, 1.0) for d in frame["doc_name"]):
        with pytest.raises(RagnbError, match="all weights are 0"), pytest.warns(RagnbWarning):
            rn.weighted_means(frame, metric_weights=weights, doc_weights=doc_weights)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        means = rn.weighted_means(
            frame, metric_weights=weights, doc_weights=doc_weights, cluster=cluster, orient=orient
        ).set_index("metric")
    docs = [d if isinstance(d, str) else None for d in frame["doc_name"]]
    talks = None if cluster is None else [t if isinstance(t, str) else None for t in frame["talk"]]
    for name in NAMES:
        same(means.loc[name], loop_mean(frame[name], docs, doc_weights, talks))
        assert means.loc[name, "n_missing"] == int(frame[name].isna().sum())
    totals = [loop_score(r, weights, orient) for r in frame[NAMES].to_dict("records")]
    ends = ends_of_total(frame, weights)
    same(means.loc["weighted_score"], loop_mean(totals, docs, doc_weights, talks, ends=ends))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        column = rn.weighted_score(frame, metric_weights=weights, orient=orient)
    np.testing.assert_allclose(column, np.array(totals, dtype=float), atol=1e-12)


@given(tables)
def test_no_weights_and_all_ones_are_the_same_bits(rows):
    frame = frame_of(rows)
    plain = rn.weighted_means(frame)
    names = frame["doc_name"].dropna().unique()
    ones = rn.weighted_means(
        frame, metric_weights=dict.fromkeys(NAMES, 1.0), doc_weights=dict.fromkeys(names, 1)
    )
    empty = rn.weighted_means(frame, metric_weights={}, doc_weights={})
    for other in (ones, empty):
        pd.testing.assert_frame_equal(plain, other, check_exact=True)
    for name in NAMES:
        value = plain.loc[plain["metric"] == name, "value"].iloc[0]
        assert value == pytest.approx(frame[name].mean(), abs=1e-12, nan_ok=True)


@given(tables, st.sampled_from([0.125, 7.0, 1e6]))
def test_scaling_all_weights_changes_nothing(rows, factor):
    frame = frame_of([*rows, (1.0, 0.5, 0.5, "甲.pdf", "u"), (0.5, 1.0, 0.0, "b.pdf", "v")])
    w, v = (
        {"faithfulness": 0.3, "answer_relevancy": 2.0, "noise_sensitivity": 1.0},
        {"甲.pdf": 0.5, "b.pdf": 2.0},
    )
    v |= dict.fromkeys(set(frame["doc_name"].dropna()) - set(v), 1.0)
    frame = frame[frame["doc_name"].notna()]
    one = rn.weighted_means(frame, metric_weights=w, doc_weights=v)
    large = [{name: x * factor for name, x in weights.items()} for weights in (w, v)]
    two = rn.weighted_means(frame, metric_weights=large[0], doc_weights=large[1])
    columns = ["value", "low", "high", "se", "n_eff"]
    np.testing.assert_allclose(
        one[columns].to_numpy(float), two[columns].to_numpy(float), atol=1e-10
    )


@given(tables)
def test_groups_are_the_means_of_their_rows(rows):
    frame = frame_of(rows).assign(
        system=lambda f: np.where(np.arange(len(f)) % 3 == 0, "甲系统", "B")
    )
    grouped = rn.moments(frame, by="system")
    table = grouped.means()
    for system, part in frame.groupby("system"):
        alone = rn.weighted_means(part)
        block = table[table["system"] == system].drop(columns="system").reset_index(drop=True)
        told = ["cluster_unit"]  # a part without any document has rows as clusters
        pd.testing.assert_frame_equal(
            block.drop(columns=told), alone.drop(columns=told), atol=1e-10
        )
    pooled = rn.weighted_means(frame)
    pd.testing.assert_frame_equal(grouped.pooled().means(), pooled, check_exact=False, atol=1e-10)


def test_interval_of_another_level_and_range_is_the_loops():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"gpt": rng.uniform(1, 5, 60).round(1), "doc_name": rng.choice(list("abcdef"), 60)}
    )
    got = rn.weighted_means(frame, metrics=[rn.Metric("gpt", 1, 5)], level=0.8).iloc[0]
    same(got, loop_mean(frame["gpt"], frame["doc_name"], {}, level=0.8, low=1, high=5))


def test_an_unbounded_metric_has_the_symmetric_t_interval():
    frame = pd.DataFrame({"margin": [-3.0, 4.0, 1.0, 2.0, 8.0], "doc_name": list("abcde")})
    got = rn.weighted_means(frame, metrics=[rn.Metric("margin", -math.inf, math.inf)]).iloc[0]
    low, high = scipy_stats.t.interval(
        0.95, 4, frame["margin"].mean(), scipy_stats.sem(frame["margin"])
    )
    assert (got["low"], got["high"]) == pytest.approx((low, high), abs=1e-9)


def test_all_right_is_never_one_to_one():
    frame = pd.DataFrame({"faithfulness": [1.0] * 20, "doc_name": [f"d{i}" for i in range(20)]})
    got = rn.weighted_means(frame).iloc[0]
    assert got["value"] == 1.0
    assert 0.8 < got["low"] < 0.9
    assert got["high"] == 1.0
    frame["faithfulness"] = 0.7
    for alike in (frame, frame.drop(columns="doc_name")):
        got = rn.weighted_means(alike).iloc[0]
        assert got["se"] < 1e-9
        assert got["low"] < 0.6 < 0.8 < got["high"]


def test_nfc_and_nfd_names_are_one_document():
    names = ["re\u0301sume\u0301", "r\u00e9sum\u00e9", "b"]
    frame = pd.DataFrame({"faithfulness": [1.0, 0.0, 0.5], "doc_name": names})
    got = rn.weighted_means(frame, doc_weights={"re\u0301sume\u0301": 3}).iloc[0]
    assert got["n_clusters"] == 2
    assert got["value"] == pytest.approx((3 + 0 + 0.5) / 7)
    assert rn.weigh(frame, doc_weights={"r\u00e9sum\u00e9": 3})["sample_weight"].tolist() == [
        3.0,
        3.0,
        1.0,
    ]


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "object"])
def test_dtypes_agree(dtype):
    values = [1.0, None, 0.5, 0.25]
    column = pd.Series(
        [None if v is None else Decimal(str(v)) for v in values] if dtype == "object" else values
    )
    frame = pd.DataFrame({"faithfulness": column.astype(dtype)})
    assert rn.weighted_means(frame).loc[0, "value"] == pytest.approx(1.75 / 3)


def test_a_rate_gets_a_row_and_enters_the_total_only_when_a_weight_names_it():
    frame = pd.DataFrame({"faithfulness": [0.5, 0.5], "over_refusal": [1.0, 1.0]})
    plain = rn.weighted_means(frame).set_index("metric")
    assert plain.loc["over_refusal", "value"] == 1.0
    assert math.isnan(plain.loc["over_refusal", "weight"])
    assert plain.loc["weighted_score", "value"] == 0.5
    chosen = rn.weighted_means(frame, metrics=["faithfulness", "over_refusal"]).set_index("metric")
    assert chosen.loc["weighted_score", "value"] == 0.5
    named = rn.weighted_means(frame, metric_weights={"over_refusal": 1}).set_index("metric")
    assert named.loc["weighted_score", "value"] == 0.25


def test_rubric_dimensions_default_to_the_rubrics_weights():
    frame = pd.DataFrame({"accuracy": [9.0], "completeness": [6.0], "clarity": [10.0]})
    assert rn.weighted_score(frame).iloc[0] == pytest.approx(0.5 * 9 + 0.3 * 6 + 0.2 * 10)
    clear = rn.weighted_score(frame, metric_weights={"clarity": 1.0})
    assert clear.iloc[0] == pytest.approx((4.5 + 1.8 + 10) / 1.8)


def test_different_ranges_are_never_added_up_unless_rescaled():
    frame = pd.DataFrame({"accuracy": [10.0, 1.0], "faithfulness": [0.0, 0.5]})
    for call in (rn.weighted_means, rn.weighted_score, rn.weigh):
        with pytest.raises(RagnbError, match=r"different ranges.*accuracy 1\.\.10.*rescale"):
            call(frame)
    scores = rn.weighted_score(frame, rescale=True)
    assert scores.tolist() == pytest.approx([0.5 / 1.5, 0.5 / 1.5])
    means = rn.weighted_means(frame, rescale=True)
    assert means.iloc[-1]["value"] == pytest.approx(1 / 3)
    assert means.iloc[-1][["range_low", "range_high"]].tolist() == [0.0, 1.0]
    assert rn.weighted_score(frame, metric_weights={"accuracy": 0, "faithfulness": 1}).tolist() == [
        0.0,
        0.5,
    ]
    lenient = rn.moments(frame).means(strict=False)
    assert math.isnan(lenient.iloc[-1]["value"])
    assert lenient.iloc[-1]["reason"].startswith("mixed: faithfulness 0..1, accuracy 1..10")
    assert notes(lenient)["code"].tolist()[-1] == "no_total"


@given(st.floats(0, 1), st.floats(1, 5), st.booleans())
def test_rescaled_and_turned_rows_follow_the_definition(a, b, orient):
    frame = pd.DataFrame({"faithfulness": [a], "burden": [b]})
    metric = rn.Metric("burden", 1, 5, better="lower")
    share = (b - 1) / 4
    want = (a + (1 - share if orient else share)) / 2
    got = rn.weighted_score(frame, metrics=[metric], rescale=True, orient=orient)
    assert got.iloc[0] == pytest.approx(want, abs=1e-12)
    table = rn.weighted_means(frame, metrics=[metric], rescale=True, orient=orient)
    assert table.iloc[-1]["value"] == pytest.approx(want, abs=1e-12)


def test_a_rescaled_and_turned_metric_around_zero_is_its_good_share():
    frame, lean = (
        pd.DataFrame({"lean": [-1.0, 0.5, 1.0]}),
        [rn.Metric("lean", -1, 1, better="lower")],
    )
    assert rn.weighted_score(frame, metrics=lean, rescale=True).tolist() == pytest.approx(
        [1, 0.25, 0]
    )
    assert rn.weighted_means(frame, metrics=lean, rescale=True)["value"].iloc[-1] == pytest.approx(
        1.25 / 3
    )


def test_weights_zero_for_all_present_metrics_leave_no_score():
    frame = pd.DataFrame({"faithfulness": [0.5, np.nan], "answer_relevancy": [0.25, 0.75]})
    got = rn.weighted_score(frame, metric_weights={"answer_relevancy": 0.0, "faithfulness": 1.0})
    assert got.iloc[0] == 0.5
    assert math.isnan(got.iloc[1])
    assert (
        rn.weighted_means(frame, metric_weights={"answer_relevancy": 0, "faithfulness": 1}).iloc[
            -1
        ]["n"]
        == 1
    )


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -1, True, np.True_, "0.3", None, [1], 10**400]
)
@pytest.mark.parametrize("what", ["metric_weights", "doc_weights"])
def test_what_is_no_weight_is_refused_with_its_key(value, what):
    frame = pd.DataFrame({"faithfulness": [0.5], "doc_name": ["faithfulness"]})
    with pytest.raises(RagnbError, match=rf"key '{what}\.faithfulness'.*is not a weight"):
        rn.weighted_means(frame, **{what: {"faithfulness": value}})


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-160, 1e160, 1e300, 1.7e308])
@pytest.mark.parametrize("documents", [True, False], ids=["documents", "rows"])
def test_weights_of_any_size_count_by_their_proportions(size, documents):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.random((60, 2)), columns=["faithfulness", "context_recall"])
    frame["doc_name"] = [f"d{i % 6}" for i in range(60)]
    alike = {f"d{i}": 1.0 for i in range(6)}
    big = {
        "metric_weights": dict.fromkeys(frame.columns[:2], size),
        "doc_weights": dict.fromkeys(alike, size),
    }
    small = {"metric_weights": dict.fromkeys(frame.columns[:2], 1.0), "doc_weights": alike}
    cluster = {} if documents else {"cluster": "row"}
    rows = frame.assign(row=range(60)) if not documents else frame
    got, want = (
        rn.weighted_means(rows, **cluster, **how).drop(columns="weight") for how in (big, small)
    )
    pd.testing.assert_frame_equal(got, want, rtol=1e-12)
    boots = [
        rn.moments(rows, **cluster).bootstrap(resamples=100, **how)["se"].tolist()
        for how in (big, small)
    ]
    assert boots[0] == pytest.approx(boots[1], rel=1e-9)
    assert rn.weighted_score(rows, metric_weights=big["metric_weights"]).tolist() == pytest.approx(
        rn.weighted_score(rows).tolist(), rel=1e-12
    )
    costs = [rn.diagnose(rows, **cluster, **how)["cost"].tolist() for how in (big, small)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_one_weight_of_any_size_beside_others_gives_finite_results(size):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.random((60, 2)), columns=["faithfulness", "context_recall"])
    frame["doc_name"] = [f"d{i % 6}" for i in range(60)]
    frame.loc[frame["doc_name"] != "d0", "context_recall"] = np.nan
    weights = {"metric_weights": {"faithfulness": size}, "doc_weights": {"d0": size}}
    table = rn.weighted_means(frame, cluster="doc_name", **weights).set_index("metric")
    assert np.isfinite(table["value"]).all()
    assert table.loc["context_recall", "n_eff"] == pytest.approx(10)
    rows = rn.weighted_means(
        frame.drop(columns="doc_name").assign(doc_name=None), **weights | {"doc_weights": {}}
    )
    assert np.isfinite(rows[["value", "low", "high", "se"]]).all(axis=None)
    groups = rn.weighted_means(frame, by="doc_name", **weights)
    alone = rn.weighted_means(frame[frame["doc_name"] == "d0"].drop(columns="doc_name"))
    first = groups[groups["doc_name"] == "d0"].iloc[0]
    numbers = ["value", "se", "n_eff"]
    assert first[numbers].tolist() == pytest.approx(alone.iloc[0][numbers].tolist())


@pytest.mark.parametrize("heavy", [1e14, 1e16, 1e30, 1e300])
def test_a_document_beyond_rounding_of_the_others_counts_alone(heavy):
    """From 1e13 on the others' part is lost in rounding: as one document, it has no interval."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"faithfulness": rng.random(40), "doc_name": np.arange(40) // 4})
    got = rn.weighted_means(frame, doc_weights={"0": heavy}).iloc[0]
    alone = rn.weighted_means(frame, doc_weights={str(k): 0 for k in range(1, 10)}).iloc[0]
    numbers = ["value", "low", "high", "se", "n_clusters"]
    assert got[numbers].tolist() == pytest.approx(alone[numbers].tolist(), nan_ok=True)
    assert np.isnan(got["low"])
    assert got["n_clusters"] == 1
    alike = rn.weighted_means(frame, doc_weights={str(k): heavy for k in range(10)}).iloc[0]
    plain = rn.weighted_means(frame).iloc[0]
    assert alike[numbers].tolist() == pytest.approx(plain[numbers].tolist())


@pytest.mark.parametrize("heavy", [1e9, 1e11, 1e12])
def test_below_it_the_interval_no_longer_moves(heavy):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"faithfulness": rng.random(40), "doc_name": np.arange(40) // 4})
    got, want = (
        rn.weighted_means(frame, doc_weights={"0": weight}).loc[0, ["value", "low", "high"]]
        for weight in (heavy, 1e8)
    )
    assert got.tolist() == pytest.approx(want.tolist(), abs=1e-5)


def test_a_weight_of_0_leaves_a_metric_or_document_out():
    frame = pd.DataFrame({"faithfulness": [0.1, 0.9, 0.8], "context_recall": [0.5, 0.6, 1.0]})
    frame["doc_name"] = list("abc")
    without = rn.weighted_means(frame, doc_weights={"a": 0})
    want = rn.weighted_means(frame[1:])
    numbers = ["value", "low", "high", "se", "n_clusters", "n_eff"]
    pd.testing.assert_frame_equal(without[numbers], want[numbers])
    total = rn.weighted_means(frame, metric_weights={"faithfulness": 0}).iloc[-1]["value"]
    assert total == pytest.approx(frame["context_recall"].mean())
    assert rn.weigh(frame, doc_weights={"a": 0})["sample_weight"].tolist() == [0.0, 1.0, 1.0]
    sheet = rn.assess(frame, doc_weights={"a": 0}, metric_weights={"faithfulness": 0})
    assert sheet.means.iloc[-1]["value"] == pytest.approx(0.8)
    nothing = dict.fromkeys("abc", 0), dict.fromkeys(frame.columns[:2], 0)
    for call in (rn.weighted_means, rn.weigh, rn.diagnose, rn.assess):
        for how in ({"doc_weights": nothing[0]}, {"metric_weights": nothing[1]}):
            with pytest.raises(RagnbError, match="all weights are 0"):
                call(frame, **how)
    rates = pd.DataFrame({"over_refusal": [0.0, 1.0]})
    assert rn.weighted_means(rates, metric_weights={"over_refusal": 0})["value"].iloc[0] == 0.5


def test_decimal_weights_are_taken_as_decimal_scores_are():
    frame = pd.DataFrame({"faithfulness": [Decimal("0.1"), Decimal("0.9")], "doc_name": list("ab")})
    for how in (
        {"doc_weights": {"a": Decimal("3")}},
        {"doc_weights": {"a": Decimal("3")}, "level": 0.9},
    ):
        want = rn.weighted_means(frame, **how | {"doc_weights": {"a": 3.0}})
        pd.testing.assert_frame_equal(rn.weighted_means(frame, **how), want)
        assert rn.assess(frame, **how).means.equals(
            rn.assess(frame, **how | {"doc_weights": {"a": 3.0}}).means
        )
    for wrong in ("nan", "sNaN", "Infinity", "-1"):
        for call in (rn.weighted_means, rn.assess):
            with pytest.raises(RagnbError):
                call(frame, doc_weights={"a": Decimal(wrong)})


@pytest.mark.parametrize(
    "call",
    [
        rn.weighted_means,
        rn.weigh,
        rn.weighted_score,
        rn.diagnose,
        rn.assess,
        lambda frame, **how: rn.moments(frame).means(**how),
        lambda frame, **how: rn.moments(frame).bootstrap(**how),
        lambda frame, **how: WeightEditor(frame, **how),
        lambda frame, **how: WeightEditor(rn.moments(frame), **how),
    ],
)
def test_the_weight_of_an_unknown_metric_is_refused_with_near_names(call):
    frame = pd.DataFrame(
        {"faithfulness": [0.5, 0.9], "context_recall": [0.1, 0.2], "doc_name": ["a", "b"]}
    )
    with pytest.raises(RagnbError, match="did you mean 'context_recall'"):
        call(frame, metric_weights={"context_recal": 10})


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_weights_of_what_is_absent_are_notes_with_near_names_in_every_output(
    tmp_path, capsys, lang
):
    path = tmp_path / "s.csv"
    rows = pd.DataFrame({"faithfulness": [0.5, 0.9], "doc_name": ["warranty.pdf", "travel.pdf"]})
    rows.to_csv(path, index=False)
    weights = "metric_weights: {context_recall: 2}\ndoc_weights: {warrenty.pdf: 3}\n"
    (tmp_path / "s.yaml").write_text(f"scores: s.csv\nlang: {lang}\n{weights}", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sheet = rn.assess(tmp_path / "s.yaml")
    told = sheet.notes.set_index("code")
    assert told.loc["metric_weight_absent", "about"] == "context_recall"
    assert "warranty.pdf" in told.loc["doc_weight_absent", "text"]
    assert "warrenty.pdf" in sheet.to_markdown()
    assert "context_recall" in sheet.to_markdown()
    files = [str(tmp_path / name) for name in ("s.yaml", "out.md", "out.json")]
    main(["check", files[0], "--markdown", files[1], "--json", files[2]])
    written = [Path(name).read_text(encoding="utf-8") for name in files[1:]]
    for text in [capsys.readouterr().out, *written]:
        assert "warrenty.pdf" in text
        assert "context_recall" in text


def test_a_weight_for_nothing_warns_with_the_near_names():
    frame = pd.DataFrame({"faithfulness": [0.5, 1.0], "doc_name": ["322_双源CT成像技术.pdf", "b"]})
    with pytest.warns(
        RagnbWarning, match=r"'context_recall'.* does not occur; .*have: faithf"
    ) as caught:
        rn.weighted_means(frame, metric_weights={"context_recall": 2.0})
    assert caught[0].message.args[0].startswith("metric_weights names")
    with pytest.warns(RagnbWarning, match="did you mean '322_双源CT成像技术.pdf'"):
        rn.weigh(frame, doc_weights={"双源CT成像技术.pdf": 2.0})


WEIGHTS = {"faithfulness": 9, "context_recall": 1}


@pytest.mark.parametrize("metrics", [WEIGHTS, pd.Series(WEIGHTS)], ids=["mapping", "series"])
@pytest.mark.parametrize(
    "function",
    [
        rn.weighted_means,
        rn.moments,
        rn.diagnose,
        rn.failure_modes,
        rn.weigh,
        rn.weighted_score,
        rn.refusal_metrics,
        rn.applicable_metrics,
        rn.read_scores,
        rn.evaluate,
    ],
)
def test_weights_given_as_metrics_are_refused_with_the_keyword_for_them(function, metrics):
    row = {"question": "q", "faithfulness": 1.0, "context_recall": 0.1, "over_refusal": 1.0}
    frame = pd.DataFrame([row])
    with pytest.raises(RagnbError, match=r"metric_weights="):
        function(frame, metrics=metrics)
    with pytest.raises((TypeError, RagnbError)):
        function(frame, metrics)
    advised = rn.weighted_means(frame, metrics=list(WEIGHTS), metric_weights=WEIGHTS)
    assert advised["value"].iloc[-1] == pytest.approx(0.91)


HALF = {"faithfulness": [0.5]}
DISTANCE = rn.Metric("distance", 0, math.inf, better="lower")
REFUSED = {
    r"row 1: 1\.5 lies outside 0\.\.1; declare its scale": ({"faithfulness": [0.5, 1.5]}, {}),
    "'0.5' is text": ({"faithfulness": ["0.5"]}, {}),
    "did you mean 'faithfulness'": (HALF, {"metrics": ["faithfullness"]}),
    r"Declare it: Metric\('mine', low, high\)": ({"mine": [0.5]}, {"metrics": ["mine"]}),
    "names one metric twice": (HALF, {"metrics": ["faithfulness", "faithfulness"]}),
    "column='dok' is not known": (HALF, {"doc": "dok"}),
    **{f"level={level} must lie between 0 and 1": (HALF, {"level": level}) for level in (0, 1, 95)},
    "no finite range": ({"distance": [0.5]}, {"metrics": [DISTANCE]}),
    "tokens and cost never enter the total": (
        {"faithfulness": [0.5], "latency_ms": [9.0]},
        {
            "metrics": ["faithfulness", rn.Metric("latency_ms")],
            "metric_weights": {"latency_ms": 1.0},
        },
    ),
    "all weights are 0": (HALF, {"metric_weights": {"faithfulness": 0}}),
    "appears twice": (HALF, {"doc_weights": {"e\u0301": 1, "\u00e9": 2}}),
    "not a mapping": (HALF, {"metric_weights": [1.0]}),
}


@pytest.mark.parametrize("words", REFUSED)
def test_bad_tables_and_weights_are_refused_in_words(words):
    columns, options = REFUSED[words]
    with pytest.raises(RagnbError, match=words):
        rn.weighted_means(pd.DataFrame(columns), **options)


def test_a_number_that_failed_or_does_not_apply_is_an_error_and_gaps_are_counted():
    frame = pd.DataFrame({"faithfulness": [0.5, None, None, None, 1.0], "doc_name": list("aabbc")})
    frame["faithfulness__status"] = ["ok", "failed", "not_applicable", None, "ok"]
    means = rn.weighted_means(frame)
    got = means.iloc[0]
    assert got[["n", "n_missing", "n_failed", "n_not_applicable"]].tolist() == [2, 1, 1, 1]
    assert (means[["n", "n_missing", "n_failed", "n_not_applicable"]].sum(axis=1) == 5).all()
    assert "1 of 3 scores failed" in notes(means).set_index("code").loc["many_failed", "text"]
    for word in ("failed", "not_applicable"):
        with pytest.raises(RagnbError, match=f"0.5 has status '{word}'"):
            rn.weighted_means(frame.assign(faithfulness__status=[word, None, None, None, None]))
    with pytest.raises(RagnbError, match="'error' is not a status"):
        rn.weighted_means(frame.assign(faithfulness__status="error"))


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_a_mean_of_scores_all_at_one_end_is_exactly_that_end_and_so_is_its_interval(end):
    for n in [*range(2, 60), 97, 98, 103, 107]:
        docs = [f"d{i % 7}" for i in range(n)]
        frame = pd.DataFrame(
            {"faithfulness": [end] * n, "over_refusal": [end] * n, "doc_name": docs}
        )
        for options in ({}, {"doc_weights": {"d0": 0.3, "d1": 1.7}}, {"by": "doc_name"}):
            means = rn.weighted_means(frame, metrics=["faithfulness", "over_refusal"], **options)
            assert (means["value"] == end).all()
            ends = means["low" if end == 0 else "high"].dropna()
            assert (ends == end).all()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_notes_say_what_a_reader_must_know(lang):
    docs = ["大文件.pdf"] * 30 + list("abcdefghi")
    frame = pd.DataFrame({"faithfulness": np.linspace(0, 1, 39), "doc_name": docs})
    found = notes(rn.weighted_means(frame), lang=lang).set_index("code")
    assert "大文件.pdf" in found.loc["dominated", "text"]
    assert "77" in found.loc["dominated", "text"]
    assert set(notes(rn.weighted_means(frame.drop(columns="doc_name")), lang=lang)["code"]) == {
        "rows_independent"
    }
    one = notes(rn.weighted_means(frame.assign(doc_name="x")), lang=lang)
    assert set(one["code"]) == {"one_cluster"}
    alone = notes(rn.weighted_means(frame[["faithfulness"]].head(1)), lang=lang)
    assert set(alone["code"]) == {"rows_independent", "one_row"}
    few = frame.assign(doc_name=["abcd"[i % 4] for i in range(39)])
    assert (
        "4"
        in notes(rn.weighted_means(few), lang=lang).set_index("code").loc["few_clusters", "text"]
    )
    for n, few_or_not in ((19, {"few_clusters"}), (20, set())):
        some = pd.DataFrame(
            {"faithfulness": np.linspace(0, 1, n), "doc_name": [f"d{i}" for i in range(n)]}
        )
        assert set(notes(rn.weighted_means(some), lang=lang)["code"]) == few_or_not
    for n in (5, 6):
        even = frame.head(30).assign(doc_name=[*"abcdef"[:n]] * (30 // n))
        text = (
            notes(rn.weighted_means(even), lang=lang).set_index("code").loc["few_clusters", "text"]
        )
        assert text == load(lang)("note.few_clusters", n=n)
    many = frame.assign(doc_name=[f"d{i}" for i in range(39)])
    assert notes(rn.weighted_means(many), lang=lang).empty
    turned = notes(
        rn.weighted_means(many.rename(columns={"faithfulness": "noise_sensitivity"})), lang=lang
    )
    assert turned["code"].tolist() == ["lower_is_better"]
    tipped = rn.weighted_means(few, doc_weights={"a": 3.5, "b": 0.1, "c": 3.5, "d": 0.1})
    assert "few_clusters" in set(notes(tipped, lang=lang)["code"])


def test_a_lower_is_better_metric_is_turned_round_unless_asked_not_to():
    frame = pd.DataFrame({"faithfulness": [0.9, 0.4], "noise_sensitivity": [0.1, 0.3]})
    turned = [(0.9 + 0.9) / 2, (0.4 + 0.7) / 2]
    assert rn.weighted_score(frame).tolist() == pytest.approx(turned)
    assert rn.weigh(frame)["weighted_score"].tolist() == pytest.approx(turned)
    for means in (rn.weighted_means(frame), rn.moments(frame).means(), rn.assess(frame).means):
        assert means["value"].iloc[-1] == pytest.approx(sum(turned) / 2)
    assert rn.weighted_score(frame, orient=False).tolist() == pytest.approx([0.5, 0.35])


def test_weigh_adds_two_columns_and_makes_old_ones_anew():
    frame = pd.DataFrame(
        {"faithfulness": [0.5], "doc_name": ["a"], "weighted_score": [9.0], "note": ["x"]}
    )
    got = rn.weigh(frame, doc_weights={"a": 2})
    assert got[["weighted_score", "sample_weight"]].to_numpy().tolist() == [[0.5, 2.0]]
    assert frame["weighted_score"].iloc[0] == 9.0


def test_a_sample_is_spread_over_the_weight_of_the_scores_that_it_has():
    frame = pd.DataFrame(
        {"faithfulness": [1.0, np.nan, np.nan], "context_recall": [0.5, 0.5, np.nan]}
    )
    got = rn.weighted_score(frame, metric_weights={"faithfulness": 3.0})
    assert got.tolist()[:2] == [0.875, 0.5]
    assert np.isnan(got[2])


def test_moments_show_what_they_hold():
    frame = pd.DataFrame({"faithfulness": [1.0] * 8, "doc_name": list("aabbccdd")})
    assert repr(rn.moments(frame)) == "Moments(8 rows in 4 cells: 1 metrics, 4 documents, 1 groups)"


def test_notes_of_a_table_that_lacks_columns_are_refused_by_their_names():
    means = rn.weighted_means(pd.DataFrame({"faithfulness": [0.1, 0.5]}))
    for name in ("df", "cluster_unit", "n_clusters", "better", "n", "role"):
        with pytest.raises(
            RagnbError, match=f"need the columns {name}; pass the whole table of rn"
        ):
            notes(means.drop(columns=name))
    with pytest.raises(RagnbError, match="need the columns df, better"):
        notes(means.drop(columns=["df", "better"]))
