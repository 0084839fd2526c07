"""Recalibration, corrected means and sample sizes, against scikit-learn and scipy."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.stats import t as student
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GroupKFold

from ragnb import calibrate, stats
from ragnb.errors import RagnbError

COLUMN = st.lists(st.integers(1, 10).map(lambda k: k / 2), min_size=4, max_size=40)


@given(COLUMN, st.randoms(use_true_random=False))
def test_maps_are_those_of_scikit_learn_and_polyfit(judge, random):
    human = [random.choice([1, 2, 3, 4, 5]) for _ in judge]
    at = np.arange(0, 7, 0.25)
    want = IsotonicRegression(out_of_bounds="clip").fit(judge, human).predict(at)
    assert stats.fit_map(judge, human)(at) == pytest.approx(want, abs=1e-9)
    if np.ptp(judge) > 0:
        line = np.polyval(np.polyfit(judge, human, 1), at)
        assert stats.fit_map(judge, human, "linear")(at) == pytest.approx(line, abs=1e-8)
    else:
        assert stats.fit_map(judge, human, "linear")(at) == pytest.approx(
            np.full(len(at), np.mean(human))
        )


def test_a_map_leaves_what_is_missing_missing():
    for kind in ("linear", "isotonic"):
        mapped = stats.fit_map([1, 2, np.nan], [1, 2, 3], kind)([np.nan, 1.5])
        assert np.isnan(mapped[0])
        assert mapped[1] == pytest.approx(1.5)


@given(st.lists(st.integers(0, 12), min_size=5, max_size=80))
def test_folds_are_group_k_folds(clusters):
    assume(len(set(clusters)) >= 5)
    codes = np.array(clusters)
    found = stats.grouped_folds(codes)
    sizes = np.bincount(found, minlength=5)
    theirs = [len(test) for _, test in GroupKFold(5).split(codes, groups=codes)]
    assert sorted(sizes) == sorted(theirs)
    assert all(len(set(found[codes == g])) == 1 for g in set(clusters))


def test_a_clusters_own_labels_never_reach_its_scores():
    rng = np.random.default_rng(0)
    judge, cluster = rng.integers(1, 6, 60).astype(float), np.repeat(np.arange(10), 6)
    human = np.clip(judge + rng.integers(-1, 2, 60), 1, 5)
    fold = stats.grouped_folds(cluster)
    for kind in ("linear", "isotonic"):
        before = stats.recalibrate(judge, human, cluster)[kind]
        spoiled = np.where(fold == 2, 6 - human, human)
        after = stats.recalibrate(judge, spoiled, cluster)[kind]
        assert after[fold == 2] == pytest.approx(before[fold == 2])


def test_recalibration_helps_a_biased_judge_and_not_one_that_knows_nothing():
    rng = np.random.default_rng(1)
    human, cluster = (
        rng.integers(1, 6, 400).astype(float),
        np.repeat([f"{k:02}" for k in range(40)], 10),
    )
    judge = human + 2 + rng.normal(scale=0.3, size=400)
    kind = stats.recalibrate(judge, human, cluster)["isotonic"]
    assert abs(np.mean(kind - human)) < 0.1
    frame = pd.DataFrame({"judge": judge, "human": human, "cluster": cluster})
    biased = calibrate(frame, scale=(1, 9)).recalibration.set_index("map")
    assert biased.loc["isotonic", "helps"]
    assert biased.loc["isotonic", "gain_low"] > 0
    assert biased.loc["isotonic", "share"] > biased.loc["raw", "share"]
    assert biased.loc["isotonic", "mae"] == pytest.approx(np.abs(kind - human).mean())
    blind = calibrate(
        frame.assign(judge=rng.permutation(human)), scale=(1, 9)
    ).recalibration.set_index("map")
    assert not blind.loc["isotonic", "helps"]
    assert blind.loc["isotonic", "mae"] > 0.98 * blind.loc["constant", "mae"]


def test_recalibration_refuses_what_it_cannot_judge():
    with pytest.raises(RagnbError, match="one cluster"):
        stats.recalibrate([1, 2], [1, 2], ["a", "a"])
    with pytest.raises(RagnbError, match="kind='cubic'"):
        stats.fit_map([1], [1], "cubic")
    with pytest.raises(RagnbError, match="no row"):
        stats.fit_map([np.nan], [1])


def test_ppi_corrects_the_judges_bias_and_is_narrower_than_humans_alone():
    rng = np.random.default_rng(2)
    truth = rng.normal(3, 1, 2000)
    judge = truth + 1.5 + rng.normal(scale=0.4, size=2000)
    found = stats.ppi_jackknife(truth[:100], judge[:100], judge[100:])
    alone = stats.clustered_mean(truth[:100])
    assert abs(found.value - truth.mean()) < 3 * found.se
    assert stats.clustered_mean(judge).low > truth.mean() + 1
    assert found.high - found.low < 0.7 * (alone.high - alone.low)


def test_ppi_refuses_one_kind_of_clusters_and_one_label():
    with pytest.raises(RagnbError, match="one kind"):
        stats.ppi_jackknife([1, 2], [1, 2], [3], clusters=["a", "b"])
    with pytest.raises(RagnbError, match="1 rows"):
        stats.ppi_jackknife([1, np.nan], [1, 2], [3])


@given(st.integers(1, 400), st.floats(0.3, 0.95), st.floats(0.3, 0.99))
def test_power_is_that_of_scipys_binomial(n, target, share):
    critical = next(k for k in range(n + 1) if scipy_stats.binom.sf(k, n, target) <= 0.05)
    want = scipy_stats.binom.sf(critical, n, share)
    assert stats.binomial_power([n], target, share)[0] == pytest.approx(want, abs=1e-10)


def test_sample_sizes_are_the_published_table():
    table = {(0.8, 0.85): 398, (0.8, 0.9): 94, (0.8, 0.95): 37}
    table |= {(0.85, 0.9): 304, (0.85, 0.95): 68, (0.9, 0.95): 203}
    assert {pair: stats.sample_size_exact(*pair) for pair in table} == table


@pytest.mark.parametrize(("alpha", "power"), [(0.05, 0.8), (0.01, 0.9)])
def test_more_labels_than_the_sample_size_never_lose_the_power(alpha, power):
    n = stats.sample_size_exact(0.8, 0.9, alpha=alpha, power=power)
    assert (stats.binomial_power(np.arange(n, 2000), 0.8, 0.9, alpha=alpha) >= power).all()
    assert stats.binomial_power([n - 1], 0.8, 0.9, alpha=alpha)[0] < power


def test_shares_that_cannot_be_shown_are_refused():
    with pytest.raises(RagnbError, match="does not exceed"):
        stats.sample_size_normal(0.8, 0.8)
    with pytest.raises(RagnbError, match="not between 0 and 1"):
        stats.sample_size_exact(1.2, 0.9)


@given(st.integers(2, 12), st.integers(2, 8), st.integers(0, 1000))
def test_rho_is_the_one_way_icc_where_clusters_are_alike(groups, size, seed):
    grid = np.random.default_rng(seed).normal(size=(groups, size))
    within = grid.var(axis=1, ddof=1).mean()
    between = size * grid.mean(axis=1).var(ddof=1)
    want = (between - within) / (between + (size - 1) * within)
    assert stats.anova_icc(grid.ravel(), np.repeat(np.arange(groups), size)) == pytest.approx(
        want, abs=1e-9
    )


def test_rho_finds_what_was_simulated_in_clusters_of_many_sizes():
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(3000), rng.integers(1, 9, 3000))
    values = 0.6 * rng.normal(size=3000)[cluster] + 0.8 * rng.normal(size=len(cluster))
    assert stats.anova_icc(values, cluster) == pytest.approx(0.36, abs=0.03)
    sizes = np.bincount(cluster)
    assert stats.design_effect(sizes, 0.36) == pytest.approx(
        1 + (np.average(sizes, weights=sizes) - 1) * 0.36
    )
    assert stats.design_effect(sizes, -0.2) == stats.design_effect(sizes, np.nan) == 1.0
    assert np.isnan(stats.anova_icc([1, 0], ["a", "b"]))


def test_labels_needed_says_why():
    rng = np.random.default_rng(6)
    low = stats.labels_needed(rng.random(300) < 0.7, target=0.8)
    assert (low.total, low.more, low.reason) == (None, None, "share_at_or_below_target")
    close = stats.labels_needed([1] * 803 + [0] * 197, target=0.8)
    assert (close.total, close.reason) == (None, "too_close_to_tell")
    few = stats.labels_needed([1] * 27 + [0] * 3, target=0.8)
    assert few.reason == "counted"
    assert few.more == few.total - 30 > 0
    assert few.independent == stats.sample_size_exact(0.8, 0.9) == few.total
    twins = stats.labels_needed([1] * 54 + [0] * 6, np.repeat(np.arange(30), 2), target=0.8)
    assert twins.rho == pytest.approx(1)
    assert twins.deff == pytest.approx(2, rel=0.2)
    assert twins.total == pytest.approx(2 * few.total, rel=0.2)
    assert twins.chance == pytest.approx(few.chance, abs=0.02)


def test_perfect_agreement_needs_no_more_than_a_few_labels():
    sure = stats.labels_needed([1.0] * 200, target=0.8)
    assert (sure.more, sure.likely, sure.reason) == (0, 200, "counted")
    five = stats.labels_needed([1.0] * 5, target=0.8)
    assert five.total == stats.sample_size_exact(0.8, 1 - 1e-9)
    assert five.chance < 0.6  # five that agree are no proof that the next ones will


def chance_by_formula(share, n, more, target, df, size):
    """The chance of STATISTICS, from scipy's Student distribution and a margin written out."""
    ratio = (n + more) / n
    margin = student.ppf(0.95, df * ratio) * (target * (1 - target) / (size * ratio)) ** 0.5
    shrunk = (size * share + 1) / (size + 2)
    sd = (shrunk * (1 - shrunk) / size * more / (n + more)) ** 0.5
    return student.cdf((share - target - margin) / sd, df)


def test_labels_needed_come_with_the_chance_that_they_suffice():
    needs = stats.labels_needed([1] * 167 + [0] * 33, target=0.8)
    now = stats.clustered_mean([1] * 167 + [0] * 33, ends=(0, 1), level=0.9)
    size = stats.wilson_size(now.value, now.low, now.high, now.df, 0.9)
    chance = partial(chance_by_formula, 0.835, 200, target=0.8, df=199, size=size)
    assert needs.total == stats.sample_size_exact(0.8, 0.835)
    assert needs.chance == pytest.approx(chance(more=needs.more))
    assert chance(more=needs.likely - 200 - 1) < 0.8 <= chance(more=needs.likely - 200)
    assert needs.most == pytest.approx(chance(more=100 * 200 - 200))
    assert needs.chance < 0.8 < needs.most < 0.9
    never = stats.labels_needed([1] * 162 + [0] * 38, target=0.8)
    assert (never.likely, never.reason) == (None, "counted")
    assert never.most < 0.6


def test_labels_that_show_the_target_are_enough_exactly_when_the_verdict_says_so():
    seen = set()
    for right in range(160, 200):
        flags = [1] * right + [0] * (200 - right)
        shown = stats.clustered_mean(flags, ends=(0, 1), level=0.9).low >= 0.8
        needs = stats.labels_needed(flags, target=0.8)
        assert shown == (needs.likely == 200)
        seen.add(bool(shown))
    assert seen == {True, False}


def test_the_chance_holds_where_truths_are_spread_flat():
    rng, held, promised = np.random.default_rng(12), [], []
    while len(held) < 300:
        true = rng.uniform(0.65, 0.97)
        flags = rng.random(60) < true
        needs = stats.labels_needed(flags, target=0.8)
        if needs.reason != "counted" or needs.more == 0 or needs.total > 20_000:
            continue
        longer = np.r_[flags, rng.random(needs.more) < true]
        held.append(stats.clustered_mean(longer, ends=(0, 1), level=0.9).low >= 0.8)
        promised.append(needs.chance)
    assert np.mean(held) == pytest.approx(np.mean(promised), abs=0.09)


def test_the_formulas_do_not_load_scipy_stats():
    code = (
        "import json, sys, numpy as np; from ragnb import stats\n"
        "x = np.arange(20) % 5; stats.quadratic_kappa(x, x, (0, 4)); stats.labels_needed(x > 0)\n"
        "stats.kendall(x, x[::-1]); stats.ppi_jackknife(x, x, x)\n"
        "print(json.dumps('scipy.stats' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False


def test_two_labelled_rows_are_enough_for_a_correction_and_one_is_not():
    assert np.isfinite(stats.ppi_jackknife([3, 4], [2, 4], [3, 4, 5], ends=(1, 5)).value)
    with pytest.raises(RagnbError, match="1 rows have both"):
        stats.ppi_jackknife([3, np.nan], [2, 4], [3, 4, 5], ends=(1, 5))
