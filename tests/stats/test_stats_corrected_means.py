"""Means of a judge corrected by labels of people, against loops, identities and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackknifed import drawn_ratings as draw
from jackknifed import familiar_ppi
from scipy import stats as scipy_stats

from ragnb import stats

SCALE = (1.0, 5.0)


def jackknife_loop(y, f, more, of, of_more, weight=None):
    """The corrected mean without each cluster in turn, the rows taken out and everything computed anew."""
    y, f, more, of, of_more = map(np.asarray, (y, f, more, of, of_more))

    def point(y, f, more):
        n, m = len(y), len(more)
        spread = np.var([*f, *more], ddof=1)
        lam = weight if weight is not None else 0.0
        if weight is None and m and spread > 1e-9:
            lam = min(max(np.cov(y, f, ddof=0)[0, 1] / ((1 + n / m) * spread), 0), 1)
        lam = lam if m else 0.0
        return np.mean(y) + (lam * (np.mean(more) - np.mean(f)) if m else 0.0), lam

    value, lam = point(y, f, more)
    names = set(of) | (set(of_more) if lam else set())
    moved = [point(y[of != g], f[of != g], more[of_more != g])[0] for g in names]
    g = len(names)
    se = np.sqrt((g - 1) / g * np.sum((np.array(moved) - value) ** 2))
    s_e, s_f = np.std(y - lam * f), lam * np.std([*f, *more])
    h = [
        (s_e * np.mean(of == g) + (s_f * np.mean(of_more == g) if lam else 0)) / (s_e + s_f)
        for g in names
    ]
    return value, lam, se, 1 / np.sum(np.square(h)), np.sum(np.power(h, 4))


@given(st.integers(0, 10_000), st.sampled_from([None, 0.0, 0.5, 1.0]))
@settings(max_examples=40)
def test_the_interval_is_that_of_rows_taken_out_cluster_by_cluster(seed, weight):
    few, more = draw(seed)
    args = few["human"], few["judge"], more["judge"], few["cluster"], more["cluster"]
    value, lam, se, g_eff, sum_h4 = jackknife_loop(*args, weight)
    found = stats.ppi_jackknife(*args, weight=weight)
    assert (found.value, found.weight, found.se) == pytest.approx((value, lam, se), rel=1e-9)
    half = scipy_stats.t.ppf(0.975, max(g_eff - 1, 1)) * se
    assert (found.low, found.high) == pytest.approx((value - half, value + half), rel=1e-9)
    elsewhere = 30 - max(int((few["human"] == end).sum()) for end in SCALE)
    ends = stats.mean_interval(
        *map(np.array, (value, se, g_eff, 30.0)),
        (np.array(1.0), np.array(5.0)),
        sum_h4=sum_h4,
        elsewhere=None if lam else (elsewhere, 30),
        level=0.9,
    )
    bounded = stats.ppi_jackknife(*args, weight=weight, ends=SCALE, level=0.9)
    assert (bounded.low, bounded.high) == pytest.approx([float(end) for end in ends], rel=1e-9)
    assert bounded.value == pytest.approx(familiar_ppi(*args, weight=weight).value)


@given(st.integers(0, 10_000))
def test_without_weight_it_is_the_humans_mean_and_interval(seed):
    few, more = draw(seed)
    args = few["human"], few["judge"], more["judge"], few["cluster"], more["cluster"]
    alone = stats.clustered_mean(few["human"], few["cluster"], ends=SCALE)
    for found in (
        stats.ppi_jackknife(*args, weight=0.0, ends=SCALE),
        stats.ppi_jackknife(*args[:2], [], args[3], [], ends=SCALE),
        stats.ppi_jackknife(args[0], np.full(30, 3.0), np.full(60, 3.0), *args[3:], ends=SCALE),
        stats.ppi_jackknife(args[0], -args[0], args[2] * 0 - 3, *args[3:], ends=SCALE),
    ):
        assert found.weight == 0
        want = alone.value, alone.low, alone.high, alone.se, alone.n_clusters
        assert (found.value, found.low, found.high, found.se, found.n_clusters) == pytest.approx(
            want
        )


def test_a_judge_that_is_the_humans_gets_all_weight_as_judged_rows_grow():
    rng = np.random.default_rng(1)
    human, more = rng.normal(3, 1, 4000), rng.normal(3, 1, 200_000)
    found = stats.ppi_jackknife(human, human, more)
    n, many = len(human), len(more)
    exact = human.var() / ((1 + n / many) * np.concatenate([human, more]).var(ddof=1))
    assert found.weight == pytest.approx(min(exact, 1), rel=1e-9)
    assert found.weight > 0.95
    everyone = np.concatenate([human, more]).mean()
    assert stats.ppi_jackknife(human, human, more, weight=1.0).value == pytest.approx(more.mean())
    assert found.value == pytest.approx(everyone, abs=0.01)


def test_with_many_clusters_of_one_size_it_is_the_familiar_interval():
    rng = np.random.default_rng(2)
    of = np.repeat(np.arange(2000), 5)
    truth = 3 + 0.5 * rng.normal(size=2000)[of] + rng.normal(size=10_000)
    judge, mine = truth + 0.4 + rng.normal(scale=0.6, size=10_000), np.arange(10_000) % 5 < 2
    args = truth[mine], judge[mine], judge[~mine], of[mine], of[~mine]
    new, old = stats.ppi_jackknife(*args, ends=(-20, 30)), familiar_ppi(*args)
    assert new.value == pytest.approx(old.value)
    assert new.weight == pytest.approx(old.weight)
    assert new.se == pytest.approx(old.se, rel=2e-3)
    assert (new.low, new.high) == pytest.approx((old.low, old.high), rel=1e-3)


@given(st.integers(0, 10_000), st.floats(-3, 3), st.floats(0.1, 10))
def test_moving_and_stretching_the_scale_moves_and_stretches_the_result(seed, shift, stretch):
    few, more = draw(seed)
    args = [few["human"], few["judge"], more["judge"]]
    of = few["cluster"], more["cluster"]
    one = stats.ppi_jackknife(*args, *of, ends=SCALE)
    other = stats.ppi_jackknife(
        *(stretch * x + shift for x in args), *of, ends=(stretch + shift, 5 * stretch + shift)
    )
    want = [stretch * x + shift for x in (one.value, one.low, one.high)]
    assert [other.value, other.low, other.high] == pytest.approx(want, rel=1e-6, abs=1e-6)
    assert other.weight == pytest.approx(one.weight, rel=1e-6, abs=1e-9)


def test_the_interval_stays_on_the_scale_where_the_familiar_one_leaves_it():
    human, judge, more = [5, 5, 5, 5, 4, 5, 5, 5], [5, 5, 5, 5, 3, 5, 5, 5], [5] * 40
    left = familiar_ppi(human, judge, more, range(8), range(8, 48))
    found = stats.ppi_jackknife(human, judge, more, ends=SCALE)
    assert left.high > 5 >= found.high
    assert found.low < found.value <= 5


def test_it_covers_at_its_level_where_the_familiar_interval_does_not():
    """Ten clusters of very different sizes, scores piled up at the top; the judge is half a point too kind."""
    rng, draws = np.random.default_rng(3), 600
    hits = dict.fromkeys(("familiar", "corrected"), 0)
    truth = np.clip(np.round(4.6 + rng.normal(size=400_000) * np.sqrt(1.2)), 1, 5).mean()
    for _ in range(draws):
        of = np.repeat(np.arange(10), rng.integers(3, 40, 10))
        y = 4.6 + np.sqrt(0.4) * rng.normal(size=10)[of] + np.sqrt(0.8) * rng.normal(size=len(of))
        judge = np.clip(np.round(y + 0.5 + 0.5 * rng.normal(size=len(of))), 1, 5)
        human, mine = np.clip(np.round(y), 1, 5), rng.random(len(of)) < 0.3
        args = human[mine], judge[mine], judge[~mine], of[mine], of[~mine]
        for name, found in (
            ("familiar", familiar_ppi(*args)),
            ("corrected", stats.ppi_jackknife(*args, ends=SCALE)),
        ):
            hits[name] += found.low <= truth <= found.high
    assert hits["familiar"] / draws < 0.92
    assert 0.93 <= hits["corrected"] / draws <= 0.98


def regression_estimator(y, f, w, v, more, v_more):
    """Särndal's regression estimator of rows drawn with chances 1/w, each counting v in the population."""
    weight = w * v
    human = np.average(y, weights=weight)
    judge = np.average(f, weights=weight)
    beta = np.average((y - human) * (f - judge), weights=weight)
    beta /= np.average((f - judge) ** 2, weights=weight)
    everyone = np.average([*f, *more], weights=[*v, *v_more])
    return human + beta * (everyone - judge), beta


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_labels_drawn_with_unequal_chances_are_the_regression_estimator(seed):
    rng = np.random.default_rng(seed)
    few, more = draw(seed)
    w = rng.uniform(1, 6, len(few))
    v, v_more = rng.uniform(0.5, 2, len(few)), rng.uniform(0.5, 2, len(more))
    y, f, rest = few["human"].to_numpy(), few["judge"].to_numpy(), more["judge"].to_numpy()
    of, of_rest = few["cluster"].to_numpy(), more["cluster"].to_numpy()
    found = stats.ppi_jackknife(y, f, rest, of, of_rest, weights=w, shares=(v, v_more))
    value, beta = regression_estimator(y, f, w, v, rest, v_more)
    assert (found.value, found.weight) == pytest.approx((value, beta), rel=1e-9)
    names = set(of) | set(of_rest)
    without = [
        regression_estimator(
            *(part[of != g] for part in (y, f, w, v)),
            *(part[of_rest != g] for part in (rest, v_more)),
        )[0]
        for g in names
    ]
    g = len(names)
    se = np.sqrt((g - 1) / g * np.sum((np.array(without) - value) ** 2))
    assert found.se == pytest.approx(se, rel=1e-8)
    # A cluster's part of the error: of the labels by weight, of the judge's scores by the rows not labelled.
    weight = w * v
    error = y - beta * f
    error = error - np.average(error, weights=weight)
    of_labels = np.sqrt(np.average(error**2, weights=weight))
    of_judge = abs(beta) * np.std([*f, *rest])
    h = [
        of_labels * weight[of == g].sum() / weight.sum()
        + of_judge * v_more[of_rest == g].sum() / v_more.sum()
        for g in names
    ]
    g_eff = np.sum(h) ** 2 / np.sum(np.square(h))
    margin = scipy_stats.t.ppf(0.975, max(g_eff - 1, 1)) * se
    assert (found.low, found.high) == pytest.approx((value - margin, value + margin), rel=1e-6)
    assert found.df == pytest.approx(max(g_eff - 1, 1), rel=1e-6)


def test_two_clusters_have_one_degree_of_freedom():
    found = stats.ppi_jackknife([3, 4, 5, 2], [2, 4, 4, 3], [4, 3], [0, 0, 0, 1], [0, 1])
    assert (found.n_clusters, found.df) == (2, 1.0)
    margin = scipy_stats.t.ppf(0.975, 1) * found.se
    assert found.high - found.value == pytest.approx(margin)


def test_a_given_weight_is_taken_as_it_is():
    y, f, rest = [3.0, 4, 5, 4], [2.0, 3, 5, 4], [4.0, 4, 5, 3, 4, 5]
    for weight in (-0.5, 0.3, 1.7):
        found = stats.ppi_jackknife(y, f, rest, weight=weight)
        moved = weight * (np.mean(rest) - np.mean(f))
        assert (found.weight, found.value) == pytest.approx((weight, np.mean(y) + moved))


def test_a_difference_of_corrected_means_is_left_without_each_cluster_of_either():
    rng = np.random.default_rng(8)
    of = np.repeat(np.arange(6), 5)
    judge = np.round(rng.uniform(1, 5, (2, 30)))
    human = np.clip(judge + rng.integers(-1, 2, (2, 30)), 1, 5)
    human[0, ::2] = np.nan
    human[1, 1::2] = np.nan
    shares = np.ones(30)

    def corrected(kept):
        values = []
        for y, f in zip(human, judge, strict=True):
            few, rest = kept & ~np.isnan(y), kept & np.isnan(y)
            both = shares[few], shares[rest]
            values.append(stats.ppi_jackknife(y[few], f[few], f[rest], shares=both).value)
        return values[0] - values[1]

    found = stats.ppi_difference(human, judge, of, shares=shares)
    value = corrected(np.ones(30, dtype=bool))
    without = np.array([corrected(of != g) for g in range(6)])
    assert found.value == pytest.approx(value)
    assert found.se == pytest.approx(np.sqrt(5 / 6 * np.sum((without - value) ** 2)))
    margin = scipy_stats.t.ppf(0.975, found.df) * found.se
    assert (found.low, found.high) == pytest.approx((value - margin, value + margin))
