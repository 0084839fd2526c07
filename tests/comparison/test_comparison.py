"""Paired comparison, each number computed another way: scipy, statsmodels, loops over rows, arithmetic by hand."""

import io
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines import ENGINES
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

import ragnb as rn
from ragnb.comparison.estimates import (
    Verdict,
    difference,
    gate_verdict,
    outcome_of,
    p_value,
    pass_chance,
)
from ragnb.comparison.people import decided_by_people
from ragnb.comparison.source import paired_runs, run_of
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.schema import Metric

sm = pytest.importorskip("statsmodels.api")
multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests

NAN = math.nan
FAITH, RELEVANCY, NOISE = "faithfulness", "answer_relevancy", "noise_sensitivity"


def made(
    seed=3,
    *,
    n=48,
    docs=8,
    gaps=0.15,
    systems=("new", "old"),
    repeats=1,
    metrics=(FAITH, RELEVANCY, NOISE),
):
    """Rows of systems over one question set: documents that differ, gaps with their reasons, repeats."""
    rng = np.random.default_rng(seed)
    doc = np.sort(rng.integers(0, docs, n))
    easy, move = rng.uniform(0.2, 0.7, n), rng.normal(0.05, 0.1, (len(systems), docs))
    rows = []
    for s, system in enumerate(systems):
        for i in range(n):
            for _ in range(repeats):
                row = {
                    "sample_id": f"q{i:03d}",
                    "question": f"Question {i}?",
                    "doc_name": f"d{doc[i]}.pdf",
                }
                row |= {"system": system, "kind": "abc"[i % 3]}
                for name in metrics:
                    lost = rng.random() < gaps
                    score = float(np.clip(easy[i] + move[s, doc[i]] + rng.normal(0, 0.15), 0, 1))
                    row[name] = None if lost else score
                    word = ["failed", "not_applicable", "missing"][int(rng.integers(3))]
                    row[f"{name}__status"] = word if lost else "ok"
                rows.append(row)
    return pd.DataFrame(rows)


def pair(new, old, metric=FAITH, **columns):
    """Two lists of scores of the systems new and old as rows; the other columns repeat for both."""
    ids = [f"q{i}" for i in range(len(new))]
    sides = [("new", new), ("old", old)]
    parts = [pd.DataFrame({"sample_id": ids, "system": s, metric: x, **columns}) for s, x in sides]
    return pd.concat(parts, ignore_index=True)


def row(table, metric=FAITH, **where):
    for name, value in ({"metric": metric} | where).items():
        table = table[table[name] == value]
    assert len(table) == 1
    return SimpleNamespace(**table.iloc[0])


def compared(scores, metric=FAITH, **options):
    return row(rn.compare(scores, **{"baseline": "old"} | options), metric)


def wide(scores, metric, index="sample_id"):
    """Mean scores by question, a column a system."""
    return scores.astype({metric: float}).groupby([index, "system"])[metric].mean().unstack()


def brute(d, clusters, weights=None, level=0.95):
    """Value, se, df and interval of a mean by leaving out one cluster after the other."""
    v = np.ones(len(d)) if weights is None else np.asarray(weights, dtype=float)
    kept = ~np.isnan(d) & (v > 0)
    d, v, clusters = np.asarray(d)[kept], v[kept], np.asarray(clusters)[kept]
    value, names = np.average(d, weights=v), np.unique(clusters)
    without = [np.average(d[clusters != g], weights=v[clusters != g]) for g in names]
    se = math.sqrt((len(names) - 1) / len(names) * sum((x - value) ** 2 for x in without))
    h = np.array([v[clusters == g].sum() for g in names]) / v.sum()
    df = max(1 / np.sum(h**2) - 1, 1)
    half = scipy_stats.t.ppf(0.5 + level / 2, df) * se
    return SimpleNamespace(value=value, se=se, df=df, low=value - half, high=value + half, n=len(d))


# The estimate


def test_rows_as_clusters_give_scipys_paired_t_test():
    scores = made(gaps=0).drop(columns="doc_name")
    sides = wide(scores, FAITH)
    theirs = scipy_stats.ttest_rel(sides["new"], sides["old"])
    interval = theirs.confidence_interval(0.95)
    ours = compared(scores)
    assert ours.cluster_unit == "row"
    assert [ours.value, ours.p, ours.low, ours.high, ours.df] == pytest.approx(
        [
            (sides["new"] - sides["old"]).mean(),
            theirs.pvalue,
            interval.low,
            interval.high,
            theirs.df,
        ],
        abs=1e-12,
    )
    assert ours.se == pytest.approx(ours.value / theirs.statistic, abs=1e-12)
    assert [ours.candidate_mean, ours.baseline_mean] == pytest.approx(
        [sides["new"].mean(), sides["old"].mean()]
    )
    assert ours.correlation == pytest.approx(
        scipy_stats.pearsonr(sides["new"], sides["old"]).statistic
    )


def test_documents_of_one_size_give_statsmodels_clustered_regression():
    scores = made(gaps=0)
    scores["doc_name"] = scores["sample_id"].str[1:].astype(int).map(lambda i: f"d{i % 8}")
    sides = wide(scores, FAITH)
    d, doc = sides["new"] - sides["old"], [int(name[1:]) % 8 for name in sides.index]
    groups = {"groups": np.array(doc), "df_correction": True}
    fit = sm.OLS(d.to_numpy(), np.ones(len(d))).fit(cov_type="cluster", cov_kwds=groups, use_t=True)
    ours = compared(scores)
    assert ours.cluster_unit == "document"
    assert ours.n_clusters == 8
    theirs = [fit.params[0], fit.bse[0], fit.pvalues[0], *fit.conf_int()[0]]
    assert [ours.value, ours.se, ours.p, ours.low, ours.high] == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("doc_weights", [None, {"d1.pdf": 4.0, "d2.pdf": 0.0, "d3.pdf": 0.5}])
@pytest.mark.parametrize("level", [0.95, 0.8])
@pytest.mark.parametrize("cluster", [None, "kind"])
def test_interval_is_a_loop_that_leaves_out_documents_or_the_callers_clusters(
    doc_weights, level, cluster
):
    scores = made()
    table = rn.compare(
        scores, baseline="old", doc_weights=doc_weights, level=level, cluster=cluster
    )
    questions = scores.drop_duplicates("sample_id").set_index("sample_id")
    for metric in (FAITH, RELEVANCY, NOISE):
        sides = wide(scores, metric)
        docs, clusters = (
            questions[name].reindex(sides.index) for name in ("doc_name", cluster or "doc_name")
        )
        v = docs.map(lambda name: (doc_weights or {}).get(name, 1.0))
        hand = brute((sides["new"] - sides["old"]).to_numpy(), clusters.to_numpy(), v, level)
        ours = row(table, metric)
        assert ours.cluster_unit == ("cluster" if cluster else "document")
        for name in ("value", "se", "df", "low", "high"):
            assert getattr(ours, name) == pytest.approx(getattr(hand, name), abs=1e-12), (
                metric,
                name,
            )
        assert ours.n_common == hand.n
        assert ours.level == level


@pytest.mark.parametrize("documents", [2, 3, None])
def test_unpaired_interval_is_that_of_two_means_apart(documents):
    scores = made()
    scores = scores[scores["doc_name"].isin(scores["doc_name"].unique()[:documents])]
    docs = scores.drop_duplicates("sample_id").set_index("sample_id")["doc_name"]
    sides = wide(scores, FAITH)
    new, old = (
        brute(sides[s].to_numpy(), docs.reindex(sides.index).to_numpy()) for s in ("new", "old")
    )
    ours = compared(scores)
    assert ours.unpaired_value == pytest.approx(new.value - old.value)
    assert ours.unpaired_se == pytest.approx(math.hypot(new.se, old.se))
    half = scipy_stats.t.ppf(0.975, max(min(new.df, old.df), 1)) * ours.unpaired_se
    ends = [new.value - old.value - half, new.value - old.value + half]
    assert [ours.unpaired_low, ours.unpaired_high] == pytest.approx(ends)


def test_nothing_decides_where_all_metrics_are_operations():
    scores = made()
    costs = [rn.Metric(name, 0, 1, role="operation") for name in ("cost", "latency")]
    scores = scores[["sample_id", "system", FAITH]].rename(columns={FAITH: "cost"})
    scores = scores.assign(latency=scores["cost"])
    table = rn.compare(scores, baseline="old", metrics=costs)
    assert not table["primary"].any()


def test_p_is_the_level_at_which_the_interval_touches_0():
    for seed in range(5):
        scores = made(seed)
        p = compared(scores).p
        at = compared(scores, level=1 - p)
        assert min(abs(at.low), abs(at.high)) < 1e-9
        inside, beyond = (compared(scores, level=1 - p * times) for times in (0.999, 1.001))
        assert inside.low < 0 < inside.high
        assert not beyond.low < 0 < beyond.high


def test_holm_is_statsmodels_over_the_metrics_that_are_not_primary():
    table = rn.compare(made(), baseline="old")
    family = table[table["metric"] != "weighted_score"]
    assert table.loc[table["primary"], "metric"].tolist() == ["weighted_score"]
    theirs = multipletests(family["p"], method="holm")[1]
    assert family["p_holm"].tolist() == pytest.approx(theirs.tolist())
    assert table["p_holm"].isna().tolist() == [False, False, False, True]
    named = rn.compare(made(), baseline="old", primary=RELEVANCY).set_index("metric")
    others = named.loc[[FAITH, NOISE]]
    assert others["p_holm"].tolist() == pytest.approx(
        multipletests(others["p"], method="holm")[1].tolist()
    )
    assert math.isnan(named.loc[RELEVANCY, "p_holm"])


def test_detectable_difference_and_questions_needed_are_the_formula():
    ours = compared(made())
    t = scipy_stats.t(ours.df)
    shown = (t.ppf(0.975) + t.ppf(0.8)) * ours.se
    assert ours.detectable == pytest.approx(shown)
    assert ours.questions_needed == math.ceil(ours.n_common * (shown / ours.value) ** 2)


def test_one_document_has_no_interval_and_no_word():
    ours = compared(pair([0.9, 0.8, 0.9], [0.1, 0.2, 0.1], doc_name="a"))
    assert ours.value == pytest.approx(0.7333333333)
    assert ours.outcome == "undecided"
    assert all(math.isnan(x) for x in (ours.low, ours.high, ours.p, ours.detectable))


def test_a_metric_that_one_side_never_scored_has_no_difference():
    frame = made(gaps=0)
    lost = frame["system"] == "new"
    frame.loc[lost, FAITH], frame.loc[lost, f"{FAITH}__status"] = np.nan, "failed"
    ours, total = compared(frame), compared(frame, "weighted_score")
    assert (ours.n_common, ours.n_only_baseline, ours.outcome) == (0, 48, "undecided")
    assert all(
        math.isnan(x)
        for x in (ours.value, ours.low, ours.p, ours.questions_needed, ours.candidate_mean)
    )
    assert ours.left_out == "new: 48 failed"
    assert ours.worst_case == pytest.approx(-frame.loc[~lost, FAITH].mean())
    without = compared(frame.drop(columns=[FAITH, f"{FAITH}__status"]), "weighted_score")
    assert total.value == pytest.approx(without.value)


# The word


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-0.05, 0.05, "same"),
        (0.0, 0.05, "same"),
        (1e-12, 0.05, "better_within"),
        (-0.05, -1e-12, "worse_within"),
        (-0.05, 0.0, "same"),
        (-0.05 - 1e-12, 0.05, "undecided"),
        (-0.05, 0.05 + 1e-12, "undecided"),
        (1e-12, 0.05 + 1e-12, "better"),
        (0.0, 0.06, "undecided"),
        (-0.06, 0.0, "undecided"),
        (-0.06, -1e-12, "worse"),
        (NAN, 0.06, "undecided"),
        (0.01, NAN, "undecided"),
    ],
)
def test_word_turns_at_the_margin_and_at_0(low, high, word):
    assert outcome_of(low, high, margin=0.05, better="higher") == word
    mirrored = {"better": "worse", "worse": "better"}
    mirrored |= {f"{a}_within": f"{b}_within" for a, b in mirrored.items()}
    mirrored = mirrored.get(word, word)
    assert outcome_of(low, high, margin=0.05, better="lower") == mirrored


def test_word_turns_at_the_adjusted_p():
    say = {
        p: outcome_of(0.01, 0.2, margin=0.05, better="higher", p=p)
        for p in (0.05 - 1e-12, 0.05, NAN)
    }
    assert list(say.values()) == ["better", "undecided", "undecided"]
    assert outcome_of(0.01, 0.04, margin=0.05, better="higher", p=1.0) == "same"
    assert outcome_of(0.01, 0.04, margin=NAN, better="higher") == "better"


def test_margin_is_reached_exactly():
    scores = made(gaps=0)  # more than 5 % of the questions lost would never be the same
    found = compared(scores)
    edge = max(abs(found.low), abs(found.high))
    assert compared(scores, margin=edge).outcome == "same"
    assert compared(scores, margin=np.nextafter(edge, 0)).outcome != "same"
    assert compared(scores, margin={FAITH: edge}).outcome == "same"
    assert compared(scores, RELEVANCY, margin={FAITH: edge}).margin == 0.05
    assert compared(scores, margin=np.int64(1)).outcome == "same"


def test_metrics_beside_the_primary_need_holm_too():
    """Of 3 metrics with p of about .03, none is better; as the primary one it is."""
    rng = np.random.default_rng(1)
    d = rng.normal(0, 1, 40)
    d = (d - d.mean()) / d.std(ddof=1)
    new = 0.5 + 0.2 * (d + scipy_stats.t.ppf(1 - 0.03 / 2, 39) / math.sqrt(40)) * 0.5
    frame = pair(new, np.full(40, 0.5))
    frame[RELEVANCY] = frame["context_recall"] = frame[FAITH]
    table = rn.compare(frame, baseline="old", margin=0.001).set_index("metric")
    assert table["p"].tolist() == pytest.approx([0.03] * 4)
    assert table["p_holm"].tolist()[:3] == pytest.approx([0.09] * 3)
    assert table["outcome"].tolist() == ["undecided"] * 3 + ["better"]
    assert (
        rn.compare(frame, baseline="old", margin=0.001, primary=FAITH)["outcome"].tolist()[0]
        == "better"
    )


# Pass/fail pairs


def floor(d):
    n, c = len(d), sum(x != 0 for x in d)
    return math.sqrt(c + 2 - sum(d) ** 2 / (n + 2)) / (n + 2)


@pytest.mark.parametrize(("fixed", "broken"), [(0, 0), (1, 0), (3, 1), (0, 4), (12, 7)])
def test_few_changed_pairs_have_bonett_and_prices_floor(fixed, broken):
    n = 60
    new = [1] * fixed + [0] * broken + [1] * (n - fixed - broken)
    old = [0] * fixed + [1] * broken + [1] * (n - fixed - broken)
    ours = compared(pair(new, old, "correct_outcome"), "correct_outcome")
    d = [a - b for a, b in zip(new, old, strict=True)]
    jackknife = np.std(d, ddof=1) / math.sqrt(n)
    assert ours.se == pytest.approx(max(jackknife, floor(d)))
    half = scipy_stats.t.ppf(0.975, n - 1) * ours.se
    assert [ours.low, ours.high] == pytest.approx([np.mean(d) - half, np.mean(d) + half])
    assert (ours.wins, ours.losses, ours.ties) == (fixed, broken, n - fixed - broken)


def test_floor_ends_at_twenty_changed_pairs():
    for changed, floored in ((19, True), (20, False)):
        d = np.array([1.0] * changed + [0.0] * 5)
        found = difference(d, np.arange(len(d)), np.ones(len(d)), width=1.0)
        jackknife = np.std(d, ddof=1) / math.sqrt(len(d))
        assert floor(d) > jackknife
        assert found.se == pytest.approx(floor(d) if floored else jackknife)


def test_pairs_that_never_differ_still_have_an_interval():
    n = 50
    ours = compared(pair([1] * n, [1] * n, "correct_outcome"), "correct_outcome")
    half = scipy_stats.t.ppf(0.975, n - 1) * math.sqrt(2) / (n + 2)
    assert [ours.value, ours.low, ours.high] == pytest.approx([0, -half, half])
    assert ours.p == pytest.approx(1)
    assert ours.outcome == "undecided"
    assert (
        compared(pair([1] * 200, [1] * 200, "correct_outcome"), "correct_outcome").outcome == "same"
    )


@pytest.mark.parametrize(("n", "changed"), [(50, 4), (80, 1), (60, 0)])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_total_of_one_metric_has_the_interval_of_that_metric(n, changed, sign):
    new, old = [1] * n, [0] * changed + [1] * (n - changed)
    sides = (new, old) if sign > 0 else (old, new)
    frame = pd.concat(
        [
            pd.DataFrame({"sample_id": range(n), "system": name, "faithfulness": scores})
            for name, scores in zip(("new", "old"), sides, strict=True)
        ],
        ignore_index=True,
    )
    table = rn.compare(frame, baseline="old").set_index("metric")
    own, total = table.loc["faithfulness"], table.loc["weighted_score"]
    d = [sign] * changed + [0] * (n - changed)
    half = scipy_stats.t.ppf(0.975, n - 1) * floor(d)
    for row in (own, total):
        assert [row["low"], row["high"]] == pytest.approx(
            [sign * changed / n - half, sign * changed / n + half]
        )
    assert own["outcome"] == total["outcome"] == ("undecided" if changed else "same")


@pytest.mark.parametrize(("documents", "inside"), [(40, 5), (10, 10)])
def test_a_change_in_documents_counts_as_their_questions_go_together(documents, inside):
    n = documents * inside
    d = np.zeros(n)
    d[:3] = [0.5, -1.0, 1.0]
    clusters = np.arange(n) % documents
    found = difference(d, clusters, np.ones(n), width=1.0)
    harmonic = sum(1 / k for k in range(1, inside + 1))
    q, s, c = float(d @ d), float(d.sum()), 3
    least = (q + 2 * harmonic * (q + 1) / (c + 1) - s**2 / (n + 2)) / (n + 2) ** 2
    sums = [d[clusters == g].sum() for g in range(documents)]
    jackknife = np.std(sums, ddof=1) / inside / math.sqrt(documents)
    assert found.se == pytest.approx(max(jackknife, math.sqrt(least)))


def test_a_difference_never_leaves_the_range():
    found = difference(np.array([1.0, 1.0, 1.0, 0.0]), np.arange(4), np.ones(4), width=1.0)
    assert found.high == 1.0
    assert found.low >= -1.0


def test_scores_alike_by_a_constant_are_no_certainty():
    ours = compared(pair([0.75] * 10, [0.5] * 10))
    half = scipy_stats.t.ppf(0.975, 9) * math.sqrt(2) / 12
    assert [ours.low, ours.high] == pytest.approx([0.25 - half, 0.25 + half])


# Missing scores


def test_missing_scores_leave_both_sides_and_are_counted():
    new, old = [0.9, None, 0.4, None, 0.8, 0.6], [0.5, 0.6, None, None, 0.7, 0.1]
    frame = pair(new, old)
    frame[f"{FAITH}__status"] = [
        "ok",
        "failed",
        "ok",
        "failed",
        "ok",
        "ok",
        "ok",
        "ok",
        "not_applicable",
        "ok",
        "ok",
        "ok",
    ]
    more = pd.DataFrame({"sample_id": ["only new", "also"], "system": "new", FAITH: [0.2, 0.3]})
    ours = compared(pd.concat([frame, more], ignore_index=True))
    assert ours.value == pytest.approx((0.4 + 0.1 + 0.5) / 3)
    assert [ours.n_common, ours.n_only_candidate, ours.n_only_baseline, ours.n_left_out] == [
        3,
        3,
        1,
        4,
    ]
    assert ours.left_out == "new: 1 failed; old: 1 not_applicable, 2 absent"
    assert [ours.candidate_mean, ours.baseline_mean] == pytest.approx([2.3 / 3, 1.3 / 3])


def test_reasons_for_what_is_left_out_are_those_of_the_questions_counted():
    new, old = [0.9, None, 0.4, None, 0.7], [0.5, 0.6, 0.3, 0.2, None]
    frame = pair(new, old, kind=[*"xxyyy"], doc_name=[*"aabcb"])
    frame[f"{FAITH}__status"] = [
        "ok",
        "failed",
        "ok",
        "failed",
        "ok",
        "ok",
        "ok",
        "ok",
        "ok",
        "missing",
    ]
    table = rn.compare(frame, baseline="old", by="kind", doc_weights={"c": 0})
    slices = [row(table, kind=name) for name in "xy"]
    assert [(one.n_left_out, one.left_out) for one in slices] == [
        (1, "new: 1 failed"),
        (1, "old: 1 missing"),
    ]
    everywhere = compared(frame, doc_weights={"c": 0})
    assert (everywhere.n_left_out, everywhere.left_out) == (2, "new: 1 failed; old: 1 missing")
    assert compared(frame).left_out == "new: 2 failed; old: 1 missing"


@pytest.mark.parametrize(("metric", "worst"), [(FAITH, 0.0), (NOISE, 1.0)])
def test_worst_case_is_the_difference_with_the_worst_scores_filled_in(metric, worst):
    frame = pair([0.9, None, 0.4, None, 0.8, None], [0.5, 0.6, None, None, 0.7, 0.3], metric)
    words = [
        "ok",
        "failed",
        "ok",
        "failed",
        "ok",
        "not_applicable",
        "ok",
        "ok",
        "failed",
        "ok",
        "ok",
        "ok",
    ]
    ours = compared(frame.assign(**{f"{metric}__status": words}), metric)
    by_hand = [
        0.9 - 0.5,
        worst - 0.6,
        0.4 - worst,
        0.8 - 0.7,
    ]  # not applicable is no score that is lost
    assert ours.worst_case == pytest.approx(np.mean(by_hand))
    assert ours.value == pytest.approx((0.4 + 0.1) / 2)


def test_a_failed_score_of_one_system_never_helps_it():
    scores = made(gaps=0)
    hard = scores["sample_id"].isin(
        scores.loc[scores["system"] == "new"].nsmallest(9, FAITH)["sample_id"]
    )
    silent = scores.copy()
    gone = hard & (silent["system"] == "new")
    silent.loc[gone, FAITH], silent.loc[gone, f"{FAITH}__status"] = np.nan, "failed"
    ours, both_without = compared(silent), compared(scores[~hard])
    assert ours.value == pytest.approx(both_without.value)
    assert [ours.low, ours.high] == pytest.approx([both_without.low, both_without.high])
    assert ours.n_only_baseline == 9
    assert ours.left_out == "new: 9 failed"
    assert ours.worst_case < compared(scores).value


def test_little_overlap_gives_the_difference_over_all_questions_too():
    rng = np.random.default_rng(5)
    new, old = rng.uniform(0.4, 0.9, 40), rng.uniform(0.3, 0.8, 40)
    new[22:], old[:18] = np.nan, np.nan
    doc = [f"d{i % 7}" for i in range(40)]
    ours = compared(pair(new, old, doc_name=doc))
    codes = np.array([int(name[1:]) for name in doc])

    def apart(kept):
        return np.nanmean(new[kept]) - np.nanmean(old[kept])

    whole = apart(codes >= 0)
    se = math.sqrt(6 / 7 * sum((apart(codes != g) - whole) ** 2 for g in range(7)))
    assert ours.n_common == 4
    assert ours.all_value == pytest.approx(whole)
    rows = np.array([sum((~np.isnan(x[codes == g])).sum() for x in (new, old)) for g in range(7)])
    half = scipy_stats.t.ppf(0.975, rows.sum() ** 2 / (rows**2).sum() - 1) * se
    assert [ours.all_low, ours.all_high] == pytest.approx([whole - half, whole + half])
    assert math.isnan(compared(made()).all_value)
    # Documents that neither side scored, or that weigh nothing, are no clusters.
    names = ["d7", "d8", "d9"]
    for score, weight in ((np.nan, 1), (0.5, 0)):
        more = pair([score] * 3, [score] * 3, sample_id=["x", "y", "z"], doc_name=names)
        scores = pd.concat([pair(new, old, doc_name=doc), more])
        other = compared(scores, doc_weights=dict.fromkeys(names, weight))
        ends = [other.all_low, other.all_high]
        assert [other.all_value, *ends] == pytest.approx([whole, whole - half, whole + half])


# Repeats, orientation, totals


def test_repeats_enter_as_their_mean_and_tell_the_noise():
    scores = made(repeats=3, gaps=0)
    means = scores.groupby(["sample_id", "question", "doc_name", "system"], as_index=False)[
        FAITH
    ].mean()
    ours, of_means = compared(scores), compared(means)
    for name in ("value", "se", "low", "high", "n_common", "n_clusters"):
        assert getattr(ours, name) == pytest.approx(getattr(of_means, name), abs=1e-12), name
    variance = scores.groupby(["sample_id", "system"])[FAITH].var(ddof=1) / 3
    by_hand = (
        scipy_stats.norm.ppf(0.975) * math.sqrt(variance.sum()) / scores["sample_id"].nunique()
    )
    assert ours.noise == pytest.approx(by_hand)
    assert ours.below_noise == (abs(ours.value) < by_hand)
    assert math.isnan(of_means.noise)
    assert not of_means.below_noise


def test_a_difference_below_the_noise_is_called_that():
    rows = [("new", i, x) for i in range(6) for x in (0.2, 0.8)] + [
        ("old", i, 0.49) for i in range(6)
    ] * 2
    frame = pd.DataFrame(rows, columns=["system", "sample_id", FAITH])
    ours = compared(frame)
    by_hand = scipy_stats.norm.ppf(0.975) * math.sqrt(6 * 0.18 / 2) / 6
    assert ours.noise == pytest.approx(by_hand)
    assert ours.below_noise


def test_lower_is_better_where_the_metric_says_so():
    table = rn.compare(pair([0.1, 0.2, 0.1, 0.15], [0.9, 0.8, 0.9, 0.8], NOISE), baseline="old")
    ours, total = row(table, NOISE), row(table, "weighted_score")
    assert ours.value == pytest.approx(-0.7125)
    assert (ours.outcome, ours.wins, ours.losses) == ("better", 4, 0)
    assert (total.value, total.outcome) == (pytest.approx(0.7125), "better")


@pytest.mark.parametrize("weights", [None, {FAITH: 3.0, RELEVANCY: 0.0, NOISE: 0.5}])
def test_total_is_a_loop_over_metrics_that_both_have(weights):
    scores = made(gaps=0.3)
    docs = scores.drop_duplicates("sample_id").set_index("sample_id")["doc_name"]
    sides = {metric: wide(scores, metric) for metric in (FAITH, RELEVANCY, NOISE)}
    d = []
    for q in docs.index:
        top = bottom = 0.0
        for metric, side in sides.items():
            new, old = (side[s].get(q, NAN) for s in ("new", "old"))
            w = (weights or dict.fromkeys(sides, 1.0)).get(metric, 1.0)
            if not (math.isnan(new) or math.isnan(old)):
                top += w * (new - old) * (-1 if metric == NOISE else 1)
                bottom += w
        d.append(top / bottom if bottom else NAN)
    hand = brute(np.array(d), docs.to_numpy())
    ours = compared(scores, "weighted_score", metric_weights=weights)
    for name in ("value", "se", "low", "high"):
        assert getattr(ours, name) == pytest.approx(getattr(hand, name)), name
    assert ours.n_common == hand.n


MIXED = [Metric("human10", low=1, high=10), Metric(FAITH)]


def mixed():
    return pair([0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.5, 0.8]).assign(
        human10=[9, 8, 10, 7, 5, 4, 6, 7]
    )


def test_metrics_of_different_ranges_have_no_total_and_no_primary():
    table = rn.compare(mixed(), baseline="old", metrics=MIXED)
    total = row(table, "weighted_score")
    assert math.isnan(total.value)
    assert total.reason
    assert total.outcome == "undecided"
    assert not table["primary"].any()
    assert row(table, "human10").value == pytest.approx(3.0)
    assert row(table, "human10").margin == pytest.approx(0.45)
    assert table["p_holm"].notna().tolist() == [True, True, False]


def test_rescaled_metrics_have_a_total():
    total = row(rn.compare(mixed(), baseline="old", metrics=MIXED, rescale=True), "weighted_score")
    d = (np.array([4, 4, 4, 0]) / 9 + np.array([0.4, 0.2, 0.2, 0.1])) / 2
    assert total.value == pytest.approx(d.mean())
    assert total.se == pytest.approx(d.std(ddof=1) / 2)
    assert total.primary


# What is paired


def test_ids_pair_where_they_name_one_question():
    frame = made(gaps=0)
    apart = frame[frame["system"] == "old"].sample(frac=1, random_state=1).drop(columns="system")
    ours = compared(frame[frame["system"] == "new"].drop(columns="system"), baseline=apart)
    assert ours.value == pytest.approx(compared(frame).value)
    assert (ours.candidate, ours.baseline) == ("candidate", "baseline")


def test_ids_that_are_only_places_give_way_to_the_question_text():
    frame = made(gaps=0)
    old = frame[frame["system"] == "old"].iloc[::-1].assign(sample_id=[f"{i}" for i in range(48)])
    new = frame[frame["system"] == "new"].assign(sample_id=[f"{i}" for i in range(48)])
    ours = compared(new.drop(columns="system"), baseline=old.drop(columns="system"))
    assert ours.value == pytest.approx(compared(frame).value)
    assert ours.n_common == 48
    with pytest.raises(RagnbError, match="different questions under the same sample_id .48."):
        compared(new.drop(columns="system"), baseline=old.drop(columns="system"), on="sample_id")


def test_a_reworded_question_is_no_pair():
    frame = made(gaps=0)
    changed = (frame["system"] == "old") & (frame["sample_id"] == "q007")
    frame.loc[changed, "question"] = "Something else?"
    ours, without = compared(frame), compared(frame[frame["sample_id"] != "q007"])
    assert ours.n_common == 47
    assert ours.value == pytest.approx(without.value)


def test_a_column_of_their_own_tells_questions():
    frame = made(gaps=0).rename(columns={"sample_id": "ticket"}).drop(columns="question")
    assert compared(frame, on="ticket").value == pytest.approx(compared(made(gaps=0)).value)
    with pytest.raises(RagnbError, match="tickets.*did you mean 'ticket'"):
        compared(frame, on="tickets")
    renamed = frame.rename(columns={"ticket": "qid"})
    assert compared(renamed, on="qid").n_common == 48


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "baseline"),
        ({"baseline": "odl"}, "did you mean 'old'"),
        ({"baseline": "old", "candidate": "nwe"}, "did you mean 'new'"),
        ({"baseline": "new", "candidate": "new"}, "compared with itself"),
        ({"baseline": "old", "primary": "faithfullness"}, "did you mean 'faithfulness'"),
        ({"baseline": "old", "margin": {"faithfullness": 0.1}}, "did you mean 'faithfulness'"),
        ({"baseline": "old", "margin": 0}, "margin=0"),
        ({"baseline": "old", "margin": -0.1}, "margin=-0.1"),
        ({"baseline": "old", "margin": True}, "margin=True"),
        ({"baseline": "old", "by": "knd"}, "did you mean 'kind'"),
        (
            {"baseline": pd.DataFrame({"sample_id": ["q000"], "context_recall": [0.5]})},
            "share no metric",
        ),
        (
            {"baseline": pd.DataFrame({"sample_id": ["x"], FAITH: [0.5]}), "candidate": "new"},
            "no question in",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_next_step(options, words):
    with pytest.raises(RagnbError, match=words):
        rn.compare(made(), **options)


def test_a_declared_range_is_that_of_both_sides():
    new, old = (pd.DataFrame({"sample_id": ["q000"], "mark": [mark]}) for mark in (0.5, 4.0))
    assert (
        rn.compare(new, baseline=old, metrics=[Metric("mark", low=0, high=5)])["value"][0] == -3.5
    )


def test_several_candidates_are_each_their_own_comparison():
    frame = made(systems=("new", "old", "third"))
    table = rn.compare(frame, baseline="old")
    assert table["candidate"].unique().tolist() == ["new", "third"]
    for name in ("new", "third"):
        part = table[table["candidate"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(part, rn.compare(frame, baseline="old", candidate=name))
        alone = frame[frame["system"].isin([name, "old"])]
        pd.testing.assert_frame_equal(part, rn.compare(alone, baseline="old"))


@pytest.fixture
def sides():
    frame = made()
    return [frame[frame["system"] == name].drop(columns="system") for name in ("new", "old")]


def numbers(table):
    return table.drop(columns=["candidate", "baseline", "left_out"]).reset_index(drop=True)


def test_baseline_is_a_frame_a_file_a_run_folder_or_a_scenario(sides, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new, old = sides
    want = numbers(rn.compare(made(), baseline="old"))
    old.to_csv("old.csv", index=False)
    new.to_csv("new.csv", index=False)
    rn.assess("old.csv", name="weekly").save("reports/weekly/run1")
    (tmp_path / "reports/weekly/latest.txt").write_text("run1\n")
    (tmp_path / "old.yaml").write_text("name: last week\nscores: old.csv\n")
    for source in (
        old,
        "old.csv",
        tmp_path / "old.csv",
        "reports/weekly/run1",
        "reports/weekly/latest",
        "weekly",
        "latest",
        "old.yaml",
        rn.load_scenario("old.yaml"),
    ):
        pd.testing.assert_frame_equal(
            numbers(rn.compare("new.csv", baseline=source)), want, obj=str(source)
        )
    names = rn.compare("new.csv", baseline="old.csv")
    assert names[["candidate", "baseline"]].iloc[0].tolist() == ["new", "old"]
    (tmp_path / "both.yaml").write_text("name: both\nscores: new.csv\nbaseline: old.csv\n")
    pd.testing.assert_frame_equal(numbers(rn.compare("both.yaml")), want)
    with pytest.raises(RagnbError, match=r"olf\.csv"):
        rn.compare("new.csv", baseline="olf.csv")


# By document, by people


def test_by_document_has_benjamini_and_hochbergs_p_and_leaves_each_out():
    scores = made(docs=3, n=48, metrics=(FAITH, NOISE))
    table = rn.compare(scores, baseline="old", by="doc_name", cluster="sample_id")
    assert sorted(table["doc_name"].unique()) == sorted(scores["doc_name"].unique())
    assert len(table) == scores["doc_name"].nunique() * 3
    for metric, part in table.groupby("metric"):
        theirs = multipletests(part["p"], method="fdr_bh")[1]
        assert part["p_bh"].tolist() == pytest.approx(theirs.tolist())
        for one in part.to_dict("records"):
            inside = scores["doc_name"] == one["doc_name"]
            own, rest = (
                compared(scores[kept], metric, cluster="sample_id") for kept in (inside, ~inside)
            )
            assert [one["value"], one["low"], one["n_common"]] == pytest.approx(
                [own.value, own.low, own.n_common]
            )
            without = [one[f"{name}_without"] for name in ("value", "low", "high")]
            assert without == pytest.approx([rest.value, rest.low, rest.high])


@pytest.mark.parametrize("name", ["role", "weight"])
def test_a_slice_may_be_called_what_describes_a_metric(name):
    scores = made()
    want = rn.compare(scores.rename(columns={"kind": "topic"}), baseline="old", by="topic")
    found = rn.compare(scores.rename(columns={"kind": name}), baseline="old", by=name)
    assert found[name].tolist() == want["topic"].tolist() == [x for x in "abc" for _ in range(4)]
    assert found["value"].tolist() == want["value"].tolist()


@pytest.mark.parametrize("name", ["value", "outcome", "level"])
def test_a_slice_may_not_take_the_name_of_a_number(name):
    with pytest.raises(RagnbError, match="also a column of the table"):
        rn.compare(made().rename(columns={"kind": name}), baseline="old", by=name)


def test_slices_need_their_adjusted_p_for_a_word():
    scores = made(n=120, docs=40)
    table = rn.compare(scores, baseline="old", by="kind")
    claimed = table["outcome"].isin(["better", "worse"])
    assert (table.loc[claimed, "p_bh"] < 0.05).all()
    weak = ((table["low"] > 0) | (table["high"] < 0)) & (table["p_bh"] >= 0.05)
    assert not (weak & claimed).any()


def test_ratings_of_people_stand_beside_and_bear_out_or_not():
    rng = np.random.default_rng(2)
    frame = pair(rng.uniform(0.6, 0.9, 30), rng.uniform(0.2, 0.5, 30))
    ids = frame["sample_id"]
    up = np.where(frame["system"] == "new", 0.3, 0.0) + rng.uniform(0.2, 0.3, 60)
    rated = pd.DataFrame(
        {"item_id": ids, "system": frame["system"], "dimension": FAITH, "human": up}
    )
    ours = compared(frame, ratings=rated)
    sides = rated.pivot(index="item_id", columns="system", values="human")
    theirs = scipy_stats.ttest_rel(sides["new"], sides["old"]).confidence_interval(0.95)
    d = (sides["new"] - sides["old"]).mean()
    assert [ours.human_value, ours.human_low, ours.human_high] == pytest.approx(
        [d, theirs.low, theirs.high]
    )
    # Every pair is rated: the people's difference is what decides, and the judge's is kept beside it.
    assert [ours.value, ours.low, ours.high] == pytest.approx(
        [ours.human_value, ours.human_low, ours.human_high]
    )
    alone = compared(frame)
    assert [ours.judge_value, ours.judge_low] == pytest.approx([alone.value, alone.low])
    bias = alone.value - d
    assert ours.judge_bias == pytest.approx(bias)
    assert (ours.outcome, ours.people, ours.n_human) == ("better", "decided", 30)
    assert math.isnan(ours.questions_needed)
    flat = rated.assign(human=rng.uniform(0.2, 0.3, 60))
    assert compared(frame, ratings=flat).outcome == "same"
    other_way = rated.assign(human=1 - up)
    assert compared(frame, ratings=other_way).outcome == "worse"
    elsewhere = compared(frame, ratings=rated.assign(dimension="fluency"))
    assert (elsewhere.people, elsewhere.outcome) == ("unrated", "better")
    total = compared(frame, "weighted_score", ratings=other_way)
    assert (total.people, total.outcome) == ("decided", "worse")


@pytest.mark.parametrize(("pairs", "word"), [(19, "unchecked"), (20, "decided")])
def test_people_decide_from_20_pairs_on(pairs, word):
    rng = np.random.default_rng(2)
    frame = pair(rng.uniform(0.6, 0.9, 60), rng.uniform(0.2, 0.5, 60))
    rated = frame.rename(columns={"sample_id": "item_id", FAITH: "human"}).assign(dimension=FAITH)
    rated = rated[rated["item_id"].isin([f"q{n}" for n in range(pairs)])]
    for metric in (FAITH, "weighted_score"):
        ours = compared(frame, metric, ratings=rated)
        assert (ours.people, ours.n_human) == (word, pairs)
        assert ours.outcome == ("better" if word == "decided" else "undecided")
    one_system = compared(frame, ratings=rated[rated["system"] == "new"])
    assert (one_system.people, one_system.outcome) == ("unchecked", "undecided")
    total = compared(frame, "weighted_score", ratings=rated[rated["system"] == "new"])
    assert (total.people, total.outcome) == ("unchecked", "undecided")


def jackknifed_apart(human, judge, doc):
    """Return the difference of two corrected means and its se, every document left out of both in turn."""

    def point(kept):
        sides = []
        for y, f in zip(human, judge, strict=True):
            rated, rest = ~np.isnan(y) & kept, np.isnan(y) & kept
            sides.append(rn.stats.ppi_jackknife(y[rated], f[rated], f[rest]).value)
        return sides[0] - sides[1]

    every = np.ones(len(doc), dtype=bool)
    left = np.array([point(doc != one) for one in np.unique(doc)])
    value, g = point(every), len(left)
    return value, np.sqrt((g - 1) / g * np.sum((left - value) ** 2))


@pytest.mark.parametrize("n", [19, 20, 60])
def test_ratings_of_the_systems_on_different_questions_decide_too(n):
    """From 20 answers of each on; a judge that is a tenth too kind to one system no longer makes it better."""
    rng = np.random.default_rng(7)
    size = 160
    old = rng.uniform(0.4, 0.8, size).round(2)
    new = (old + rng.uniform(-0.1, 0.1, size)).round(2)
    doc = [f"d{k // 4}.pdf" for k in range(size)]
    frame = pair(new + 0.1, old, doc_name=doc)
    at = rng.permutation(size)
    sides = {"new": (new, at[:n]), "old": (old, at[n : 2 * n])}
    rated = pd.concat(
        [
            pd.DataFrame({"item_id": [f"q{k}" for k in rows], "system": name, "human": x[rows]})
            for name, (x, rows) in sides.items()
        ]
    ).assign(dimension=FAITH)
    ours = compared(frame, ratings=rated)
    assert compared(frame).outcome == "better"
    if n < 20:
        assert (ours.people, ours.outcome) == ("unchecked", "undecided")
        return
    assert ours.people == "decided on different questions"
    assert ours.outcome != "better"
    human = np.full((2, size), np.nan)
    for row, (x, rows) in zip(human, sides.values(), strict=True):
        row[rows] = x[rows]
    want = jackknifed_apart(human, np.stack([new + 0.1, old]), np.array(doc))
    assert (ours.value, ours.se) == pytest.approx(want)
    assert ours.n_human == n
    assert ours.judge_bias == pytest.approx(0.1, abs=0.01)


def test_too_few_unlike_ratings_on_different_questions_decide_nothing():
    frame = pair(np.full(100, 0.9), np.full(100, 0.8))
    rows = [("new", range(30)), ("old", range(40, 70))]
    rated = pd.concat(
        [pd.DataFrame({"item_id": [f"q{k}" for k in at], "system": one}) for one, at in rows]
    ).assign(dimension=FAITH, human=1.0)
    assert compared(frame, ratings=rated).people == "unchecked"
    few = rated.assign(human=np.where(np.arange(60) % 30 < 4, 0.5, 1.0))
    assert compared(frame, ratings=few).people == "unchecked"
    enough = rated.assign(human=np.where(np.arange(60) % 30 < 5, 0.5, 1.0))
    assert compared(frame, ratings=enough).people == "decided on different questions"


def test_a_weight_map_with_ratings_says_that_it_leaves_them_out(tmp_path):
    frame = pair(np.linspace(0.5, 0.9, 30), np.linspace(0.4, 0.8, 30)).assign(context_recall=0.5)
    rated = frame.rename(columns={"sample_id": "item_id", FAITH: "human"}).assign(dimension=FAITH)
    rated.to_csv(tmp_path / "rated.csv", index=False)
    with pytest.warns(RagnbWarning, match="ratings of people decide in rn.compare"):
        rn.weight_map(frame, baseline="old", ratings=tmp_path / "rated.csv")


@pytest.mark.parametrize(("documents", "word"), [(4, "unchecked"), (5, "decided")])
def test_people_decide_from_5_documents_on(documents, word):
    rng = np.random.default_rng(2)
    doc = [f"d{n % documents}.pdf" for n in range(60)]
    frame = pair(rng.uniform(0.6, 0.9, 60), rng.uniform(0.2, 0.5, 60), doc_name=doc)
    rated = frame.rename(columns={"sample_id": "item_id", FAITH: "human"}).assign(dimension=FAITH)
    assert compared(frame, ratings=rated).people == word


def test_a_judge_biased_for_one_system_does_not_make_it_better():
    """People see no difference: the judge alone errs always, people and judge together in 2.5 % of runs."""
    rng, runs = np.random.default_rng(5), 300
    clusters, weights = np.repeat(np.arange(40), 10), np.ones(400)
    how = {"width": 1.0, "level": 0.95, "complete": False, "is_rated": True}
    better, covered = np.zeros(2), 0
    for _ in range(runs):
        truth = rng.normal(0, 0.05, 40)[clusters] + rng.normal(0, 0.12, 400)
        judged = truth + 0.1 + rng.normal(0, 0.08, 400)
        human = np.where(rng.permutation(400) < 80, truth, NAN)
        found = decided_by_people(human, judged, clusters, weights, **how)
        alone = difference(judged, clusters, weights, width=1.0)
        better += np.array([found.corrected.low, alone.low]) > 0
        covered += found.corrected.low <= 0 <= found.corrected.high
    slack = 2 * (0.05 * 0.95 / runs) ** 0.5
    assert better[0] / runs <= 0.025 + slack
    assert better[1] / runs > 0.9
    assert covered / runs >= 0.95 - slack


def test_documents_weigh_in_the_difference_that_people_correct():
    """Weights of 1 and 3 are those of rows that are there once and three times; λ is given alike by both."""
    rng = np.random.default_rng(8)
    clusters, weights = np.repeat(np.arange(12), 10), np.repeat([1.0, 3.0] * 6, 10)
    truth = rng.normal(0.05, 0.1, 120)
    judged = truth + rng.normal(0.05, 0.05, 120)
    human = np.where(rng.permutation(120) < 60, truth, NAN)
    how = {"width": np.inf, "level": 0.95, "complete": False, "is_rated": True}
    found = decided_by_people(human, judged, clusters, weights, **how).corrected
    rated, mean = ~np.isnan(human), lambda x, rows: np.average(x[rows], weights=weights[rows])

    def point(rows):
        mine, rest = rows & rated, rows & ~rated
        y, f = mean(human, mine), mean(judged, mine)
        cov = mean((human - y) * (judged - f), mine)
        v = weights / weights.mean()
        n, m = v[mine].sum(), v[rest].sum()
        spread = v[rows] @ (judged[rows] - mean(judged, rows)) ** 2 / (n + m - 1)
        lam = min(max(cov / ((1 + n / m) * spread), 0), 1)
        return y + lam * (mean(judged, rest) - f)

    everyone = np.ones(120, dtype=bool)
    left = np.array([point(clusters != g) for g in range(12)])
    value = point(everyone)
    assert found.value == pytest.approx(value)
    assert found.se == pytest.approx(np.sqrt(11 / 12 * np.sum((left - value) ** 2)), rel=0.02)


@pytest.mark.parametrize("word", ["worse_within", "worse"])
def test_red_is_what_a_tenth_of_the_error_shows(word):
    """A loss that 95 % shows and 99.5 % does not is no red; nor is one within the margin, but when strict."""
    base = {"outcome": word, "margin": 0.05, "level": 0.95, "better": "higher", "high": -0.001}
    policies = {"margin": word == "worse", "strict": True}
    for policy, blocks in policies.items():
        sure = gate_verdict(base | {"p": 0.005 - 1e-12}, policy)
        unsure = gate_verdict(base | {"p": 0.005 + 1e-12}, policy)
        assert sure == (Verdict.BLOCKED if blocks else Verdict.PASSED)
        assert unsure == (Verdict.NOT_PROVEN if word == "worse" else Verdict.PASSED)
    beyond = base | {"outcome": "worse", "p": 0.04, "high": -0.05 - 1e-12}
    assert gate_verdict(beyond) == Verdict.BLOCKED
    assert gate_verdict(beyond | {"high": -0.05}) == Verdict.NOT_PROVEN
    mirrored = {"better": "lower", "low": 0.05 + 1e-12, "high": 0.2}
    assert gate_verdict(beyond | mirrored) == Verdict.BLOCKED
    for good in ("better", "better_within", "same"):
        assert gate_verdict(base | {"outcome": good, "p": 0.001}, "strict") == Verdict.PASSED
    assert gate_verdict(base | {"outcome": "undecided", "p": 0.001}) == Verdict.NOT_PROVEN


def test_192_of_192_questions_a_little_worse_are_not_the_same():
    rng = np.random.default_rng(0)
    old = rng.uniform(0.5, 0.9, 192)
    found = compared(pair(old - 0.039 + rng.normal(0, 0.003, 192), old))
    assert found.outcome == "worse_within"
    assert found.losses == 192


@pytest.mark.parametrize(("se", "predicted"), [(0.0126, 0.975), (0.0224, 0.586), (0.0347, 0.283)])
def test_an_unchanged_system_passes_as_often_as_is_said(se, predicted):
    """The design's three sets, by scipy's t; simulated: the share of intervals that stay above −margin."""
    chance, needed = pass_chance(
        {"margin": 0.05, "se": se, "df": 39.0, "level": 0.95, "n_common": 200}
    )
    t = scipy_stats.t(39)
    assert chance == pytest.approx(t.cdf(0.05 / se - t.ppf(0.975)))
    assert chance == pytest.approx(predicted, abs=0.04)
    drawn = t.rvs(20_000, random_state=1) * se
    assert (drawn - t.ppf(0.975) * se > -0.05).mean() == pytest.approx(chance, abs=0.01)
    assert needed == np.ceil(200 * ((t.ppf(0.975) + scipy_stats.norm.ppf(0.9)) * se / 0.05) ** 2)


@pytest.mark.parametrize(("lost", "is_open"), [(1, False), (2, True)])
def test_questions_lost_beyond_the_margin_leave_it_open(lost, is_open):
    """2 of 60 at worst move the mean by .029: more than a margin of .02, less than one of .05."""
    rng = np.random.default_rng(0)
    old = rng.uniform(0.85, 0.9, 60)
    new = old + rng.normal(0, 0.001, 60)
    new[:lost] = NAN
    frame = pair(new, old)
    found = compared(frame, margin=0.02)
    assert (found.n_lost, bool(found.incomplete)) == (lost, is_open)
    assert found.outcome == ("undecided" if is_open else "same")
    assert compared(frame, margin=0.05).outcome == "same"
    accepted = compared(frame, margin=0.02, allow={"questions": 0.2})
    assert (bool(accepted.incomplete), accepted.outcome) == (False, "same")


def test_the_hardest_questions_lost_leave_it_open_even_where_they_hardly_count():
    """12 of 60 are a fifth, though the baseline had .02 on them: at worst nothing is lost."""
    rng = np.random.default_rng(0)
    old = np.r_[np.full(12, 0.02), rng.uniform(0.85, 0.9, 48)]
    new = old + rng.normal(0, 0.001, 60)
    new[:12] = NAN
    found = compared(pair(new, old))
    assert found.worst_case > -0.01
    assert (bool(found.incomplete), found.outcome) == (True, "undecided")


def test_what_the_baseline_lost_is_no_excuse():
    rng = np.random.default_rng(0)
    old = rng.uniform(0.85, 0.9, 60)
    new = old + rng.normal(0, 0.001, 60)
    new[:2], old[2:4] = NAN, NAN
    found = compared(pair(new, old), margin=0.02)
    assert abs(found.worst_case) < 0.01
    assert (bool(found.incomplete), found.outcome) == (True, "undecided")


def test_ratings_are_found_by_id_or_text_of_any_type_and_read_from_files(tmp_path):
    frame = made(gaps=0)
    frame["sample_id"] = frame["sample_id"].str[1:].astype(int)
    judged = {"judge": frame[FAITH], "human": frame[FAITH]}
    rated = pd.DataFrame(
        {"item_id": frame["sample_id"], "system": frame["system"], "dimension": FAITH} | judged
    )
    ours = compared(frame, ratings=rated)
    assert [ours.human_value, ours.human_low, ours.n_human] == pytest.approx(
        [ours.value, ours.low, 48]
    )
    rated.to_csv(tmp_path / "rated.csv", index=False)
    texts = rated.assign(item_id=frame["question"])
    for on, ratings in ((None, tmp_path / "rated.csv"), ("question", rated), ("question", texts)):
        again = compared(frame, ratings=ratings, on=on)
        assert [again.human_value, again.n_human] == pytest.approx([ours.human_value, 48])
    with pytest.raises(RagnbError, match="ratings have no system"):
        compared(frame, ratings=rated.drop(columns="system"))


def test_ratings_of_a_slice_stand_beside_its_own_row():
    frame = made(gaps=0, n=60)
    rated = frame.rename(columns={"sample_id": "item_id"}).assign(
        dimension=FAITH, human=frame[FAITH]
    )
    table = rn.compare(frame, baseline="old", by="kind", ratings=rated)
    part = table[table["metric"] == FAITH]
    assert part["human_value"].tolist() == pytest.approx(part["value"].tolist())
    assert part["n_human"].tolist() == [20] * 3


# Same numbers whatever holds the rows


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "options", [{}, {"by": "kind"}, {"doc_weights": {"d1.pdf": 3.0}, "cluster": "kind"}]
)
def test_engines_give_the_same_table(engine, options):
    scores = made(repeats=2)
    frame = ENGINES[engine](pa.Table.from_pandas(scores, preserve_index=False))
    want = rn.compare(scores, baseline="old", **options)
    pd.testing.assert_frame_equal(
        rn.compare(frame, baseline="old", **options), want, rtol=1e-12, atol=1e-12
    )


def test_order_of_rows_does_not_matter():
    scores = made(repeats=2)
    want = rn.compare(scores, baseline="old", candidate="new")
    for mixed in (
        scores.sort_values(FAITH),
        scores.sample(frac=1, random_state=3),
        scores.iloc[::-1],
    ):
        found = rn.compare(mixed, baseline="old", candidate="new")
        pd.testing.assert_frame_equal(found, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"by": "kind"}])
def test_table_survives_a_csv(options):
    table = rn.compare(made(), baseline="old", **options)
    text = table.to_csv(index=False)
    gaps = {name: [""] for name in table.select_dtypes("number")}
    back = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=gaps)
    pd.testing.assert_frame_equal(back, table, check_dtype=False, rtol=1e-14)


SCORES = st.lists(
    st.tuples(*[st.one_of(st.none(), st.floats(0, 1, width=16))] * 2), min_size=3, max_size=30
)


@settings(max_examples=25)
@given(SCORES, st.integers(1, 6))
def test_swapping_the_sides_negates_the_difference(pairs, docs):
    new, old = (
        [None if x is None else float(x) for x in side] for side in zip(*pairs, strict=True)
    )
    if not any(a is not None and b is not None for a, b in pairs):
        return
    frame = pair(new, old, doc_name=[f"d{i % docs}" for i in range(len(pairs))]).astype(
        {FAITH: float}
    )
    one, other = compared(frame), compared(frame, baseline="new")
    assert one.value == pytest.approx(-other.value, abs=1e-12)
    assert [one.low, one.high] == pytest.approx([-other.high, -other.low], nan_ok=True, abs=1e-12)
    assert one.p == pytest.approx(other.p, nan_ok=True, abs=1e-9)
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
    assert (one.n_only_candidate, one.n_only_baseline) == (
        other.n_only_baseline,
        other.n_only_candidate,
    )
    mirrored = {"better": "worse", "worse": "better"}
    assert one.outcome == mirrored.get(other.outcome, other.outcome)
    sides = wide(frame, FAITH)
    d = (sides.get("new", NAN) - sides.get("old", NAN)).to_numpy(float)
    clusters = np.array([int(name[1:]) % docs for name in sides.index])
    assert one.p == pytest.approx(
        p_value(difference(d, clusters, np.ones(len(d)), width=1.0)), nan_ok=True
    )


@pytest.mark.parametrize(
    ("function", "given", "near"),
    [
        (rn.compare, "metric_weight", "metric_weights"),
        (rn.compare, "margn", "margin"),
        (rn.standings, "margn", "margin"),
        (rn.weight_map, "baselin", "baseline"),
        (rn.changed_questions, "metrc", "metric"),
        (rn.compare_operations, "candidat", "candidate"),
        (rn.assess, "metric_weight", "metric_weights"),
    ],
)
def test_a_misspelt_argument_is_refused_with_the_near_one(function, given, near):
    words = rf"{function.__name__}\(\) takes no argument '{given}'; did you mean '{near}'"
    with pytest.raises(RagnbError, match=words):
        function(pd.DataFrame({"faithfulness": [1.0]}), **{given: 1})
    with pytest.raises(
        RagnbError, match=r"takes no argument 'zzz'; it takes .* and what rn\.Scenario"
    ):
        function(pd.DataFrame({"faithfulness": [1.0]}), zzz=1)


def test_reference_answers_that_changed_are_counted():
    old = pd.DataFrame(
        {
            "sample_id": list("abcdef"),
            "question": [f"Question {name}?" for name in "abcdef"],
            "faithfulness": [0.9, 0.8, 0.7, 0.9, 0.6, 0.8],
            "ground_truth_answer": ["1", "2", "3", "4", None, "6"],
        }
    )
    new = old.assign(ground_truth_answer=["1", "20", "30", None, "5", "60"])
    # A reference that one side lacks has not changed; of another question it is another one.
    new.loc[2, "question"] = "Another question?"
    (pairs,) = paired_runs(run_of(new), old)[1]
    assert (pairs.new_references, pairs.reworded) == (2, 1)


def test_what_does_not_apply_to_the_candidate_is_not_lost():
    old = np.linspace(0.4, 0.9, 12)
    new = old.copy()
    new[:5] = NAN
    status = ["not_applicable"] * 3 + ["failed"] * 2 + ["ok"] * 7 + ["ok"] * 12
    frame = pair(new, old).assign(**{f"{FAITH}__status": status})
    found = compared(frame)
    assert (found.n_only_baseline, found.n_lost, found.n_common) == (5, 2, 7)


def test_a_gain_of_a_billionth_is_a_tie_and_a_larger_one_a_win():
    old = np.zeros(8)
    new = np.array([1e-9, 2e-9, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0])
    old[2:6] = [1e-9, 2e-9, 0.0, 0.5]
    found = compared(pair(new, old))
    assert (found.wins, found.ties, found.losses) == (2, 4, 2)


@pytest.mark.parametrize(("kept", "n_common"), [(2, 5), (3, 3)])
def test_texts_pair_where_they_find_more_than_twice_as_many_questions_as_ids(kept, n_common):
    """Of five questions that both sides ask, ids and texts agree on 2 (then texts decide) or 3 (then ids do)."""
    texts = [f"Question {i}?" for i in range(5)]
    ids = [f"q{i}" for i in range(5)]
    others = [*ids[:kept], *ids[kept + 1 :], ids[kept]]
    rng = np.random.default_rng(0)
    new, old = (
        pd.DataFrame(
            {"sample_id": names, "question": texts, "system": system, FAITH: rng.random(5)}
        )
        for names, system in ((ids, "new"), (others, "old"))
    )
    found = compared(pd.concat([new, old], ignore_index=True))
    assert found.n_common == n_common
