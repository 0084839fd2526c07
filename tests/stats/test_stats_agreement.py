"""How close judge and humans are, against loops, other libraries and deletion of each cluster by hand."""

from decimal import ROUND_FLOOR, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackknifed import by_hand, rated
from sklearn import metrics as sklearn_metrics
from statsmodels.stats.weightstats import DescrStatsW

from ragnb import stats
from ragnb.errors import RagnbError

THIRDS = st.integers(3, 15).map(lambda k: k / 3)
RATED = rated(THIRDS, least=6)


def ends(estimate):
    return estimate.low, estimate.high


@given(st.integers(-1000, 1000))
def test_halves_round_upwards(quarters):
    want = (Decimal(quarters) / 4 + Decimal("0.5")).to_integral_value(ROUND_FLOOR)
    assert stats.round_half_up(quarters / 4) == float(want)


def test_a_half_that_arrives_a_bit_too_small_rounds_up():
    assert stats.round_half_up([0.1 * 3 + 2.2 - 1e-12, 2.4999999]).tolist() == [3.0, 2.0]


@given(RATED, st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.booleans())
def test_shares_and_floor_are_those_of_loops_in_whole_thirds(rows, tolerance, rounded):
    judge, human, _ = rows
    thirds = [(round(3 * x), round(3 * y)) for x, y in zip(judge, human, strict=True)]
    if rounded:
        thirds = [(3 * ((2 * x + 3) // 6), 3 * ((2 * y + 3) // 6)) for x, y in thirds]
    hits = [abs(x - y) <= 3 * tolerance for x, y in thirds]
    pair = (stats.round_half_up(judge), stats.round_half_up(human)) if rounded else (judge, human)
    found = stats.within_share(*pair, tolerance=tolerance)
    assert found.value == pytest.approx(np.mean(hits))
    floor = np.mean([abs(x - y) <= 3 * tolerance for x, _ in thirds for _, y in thirds])
    assert stats.chance_floor(*pair, tolerance=tolerance) == pytest.approx(floor)


@given(RATED, st.booleans())
def test_no_constant_meets_more_humans_than_the_best(rows, rounded):
    human = stats.round_half_up(rows[1]) if rounded else rows[1]
    score, share = stats.best_constant(human, levels=range(1, 6))
    tried = {c: stats.within_share(np.full(len(human), float(c)), human).value for c in range(1, 6)}
    assert share.value == max(tried.values()) == tried[score]
    free_score, free = stats.best_constant(human)
    assert human.min() <= free_score <= human.max()
    steps = [np.mean(np.abs(human - c) <= 1 + 1e-9) for c in np.arange(0, 7, 1 / 6)]
    assert free.value == pytest.approx(max(steps))


@given(
    st.lists(
        st.lists(st.one_of(st.just(np.nan), THIRDS), min_size=3, max_size=3),
        min_size=1,
        max_size=12,
    )
)
def test_ceiling_sets_each_human_beside_the_mean_of_the_others(ratings):
    others = []
    for i, row in enumerate(ratings):
        known = [x for x in row if not np.isnan(x)]
        if len(known) > 1:
            others += [(i, x, np.mean(known[:k] + known[k + 1 :])) for k, x in enumerate(known)]
    got = np.array(list(zip(*stats.leave_one_out(ratings), strict=True))).reshape(-1, 3)
    assert got == pytest.approx(np.array(others).reshape(-1, 3))
    ceiling = stats.human_ceiling(ratings)
    assert ceiling.n == len(others)
    assert ceiling.n_clusters == len({i for i, *_ in others})
    if others:
        assert ceiling.value == pytest.approx(
            np.mean([abs(x - y) <= 1 + 1e-9 for _, x, y in others])
        )


@given(RATED)
def test_errors_are_scikit_learns(rows):
    judge, human, cluster = rows
    assert stats.mae(*rows).value == pytest.approx(
        sklearn_metrics.mean_absolute_error(human, judge)
    )
    found = stats.bias(*rows)
    assert (found.value, found.se) == pytest.approx(
        by_hand(lambda j, h: np.mean(j - h), *rows), abs=1e-9
    )
    bounded = stats.mae(*rows, scale=(1, 5))
    assert 0 <= bounded.low <= bounded.value + 1e-12
    assert bounded.value - 1e-12 <= bounded.high <= 4
    assert len(np.unique(cluster)) == found.n_clusters


@given(RATED, st.sampled_from([0.8, 0.95]))
def test_bias_of_independent_rows_has_the_t_interval(rows, level):
    judge, human, _ = rows
    want = DescrStatsW(judge - human).tconfint_mean(1 - level)
    found = stats.bias(judge, human, level=level)
    if np.ptp(judge - human) > 1e-6:
        assert ends(found) == pytest.approx(want, abs=1e-9)


@given(RATED, st.lists(st.floats(0.1, 5), min_size=40, max_size=40))
def test_a_weighted_mean_is_its_own_deletion_jackknife(rows, weights):
    judge, _, cluster = rows
    v = np.array(weights[: len(judge)])
    found = stats.clustered_mean(judge, cluster, weights=v)
    assert found.value == pytest.approx(np.average(judge, weights=v))
    weighted = by_hand(lambda x, w: np.average(x, weights=w), judge, v, cluster)
    assert found.se == pytest.approx(weighted[1], abs=1e-9)


@given(RATED)
def test_the_slope_is_polyfits(rows):
    judge, human, _ = rows

    def on_mean(j, h):
        return np.polyfit((j + h) / 2, j - h, 1)[0] if np.ptp(j + h) > 1e-9 else np.nan

    found = stats.slope_on_mean(*rows)
    assert found.value == pytest.approx(on_mean(judge, human), abs=1e-7, nan_ok=True)
    assert found.se == pytest.approx(by_hand(on_mean, *rows)[1], rel=1e-5, abs=1e-7, nan_ok=True)


@given(RATED, st.sampled_from([1.96, 2.0]))
def test_limits_are_the_bias_and_its_spread_with_and_without_clusters(rows, factor):
    judge, human, _ = rows
    difference = judge - human
    clustered = stats.limits_of_agreement(*rows, factor=factor)
    plain = stats.limits_of_agreement(judge, human, factor=factor)
    spread = (plain[1].value - plain[0].value) / 2 / factor
    assert spread == pytest.approx(difference.std(ddof=1), abs=1e-12)
    for sign, one, other in ((-1, plain[0], clustered[0]), (1, plain[1], clustered[1])):

        def limit(j, h, sign=sign):
            return np.mean(j - h) + sign * factor * np.std(j - h, ddof=1) if len(j) > 1 else np.nan

        want = by_hand(limit, *rows)
        assert (one.value, other.value) == pytest.approx((want[0], want[0]), abs=1e-9)
        assert other.se == pytest.approx(want[1], abs=1e-7, nan_ok=True)


def test_missing_ratings_leave_the_count():
    judge, human = [4, np.nan, 3, 5], [4, 2, np.nan, 4]
    for measure in (stats.within_share, stats.bias, stats.mae, stats.slope_on_mean):
        assert measure(judge, human).n == 2


def test_nothing_to_compare_is_nan_with_n_0():
    for measure in (stats.within_share, stats.bias, stats.mae, stats.kendall):
        found = measure([np.nan], [1.0])
        assert np.isnan([found.value, found.low, found.high, found.se]).all()
        assert (found.n, found.n_clusters) == (0, 0)
    assert np.isnan(stats.chance_floor([], []))
    assert np.isnan(stats.best_constant([np.nan])[0])
    assert stats.human_ceiling([[1.0, np.nan]]).n == 0


def test_one_cluster_gives_a_number_and_no_interval():
    for measure in (stats.bias, stats.mae, stats.within_share, stats.slope_on_mean, stats.kendall):
        found = measure([1, 2, 3, 5], [1, 2, 4, 2], ["a"] * 4)
        assert np.isfinite(found.value)
        assert np.isnan([found.low, found.high, found.se]).all()


def test_wrong_input_is_refused_with_its_value():
    with pytest.raises(RagnbError, match="shape"):
        stats.bias([1, 2], [1])
    with pytest.raises(RagnbError, match="infinite"):
        stats.bias([1, np.inf], [1, 2])
    with pytest.raises(RagnbError, match="clusters has 1 rows"):
        stats.bias([1, 2], [1, 2], ["a"])
    with pytest.raises(RagnbError, match="tolerance=-1"):
        stats.within([1], [1], -1)


@pytest.mark.parametrize("groups", [12, 40])
def test_the_bias_interval_covers_at_its_level(groups):
    rng, hits, draws = np.random.default_rng(groups), 0, 600
    sizes = np.repeat(np.arange(groups), rng.integers(2, 9, groups))
    for _ in range(draws):
        difference = rng.normal(size=groups)[sizes] + rng.normal(size=len(sizes))
        found = stats.bias(difference, np.zeros(len(sizes)), sizes)
        hits += found.low <= 0 <= found.high
    assert 0.92 <= hits / draws <= 0.98


def test_there_is_no_slope_where_the_means_of_all_pairs_are_equal():
    for seed in range(20):  # rounding leaves some of them a little apart
        human = np.random.default_rng(seed).uniform(1, 5, 20)
        assert np.isnan(stats.slope_on_mean(6 - human, human).value)
    assert stats.slope_on_mean(6 - 1.01 * human, human).value == pytest.approx(402)


def test_a_slope_may_lie_beyond_one_and_has_the_interval_of_students_t():
    judge, human = np.array([1.0, 5, 9, 2, 7, 4]), np.array([5.0, 5.1, 5.3, 4.9, 5.2, 5.0])
    slope = stats.slope_on_mean(judge, human)
    assert 1 < slope.value < slope.high
    margin = stats.t_quantile(0.95, 5) * slope.se
    assert ends(slope) == pytest.approx((slope.value - margin, slope.value + margin))


def test_the_best_constant_is_the_best_for_the_weights():
    human = [1.0, 1.0, 1.0, 5.0, 5.0]
    score, share = stats.best_constant(human, levels=range(1, 6), weights=[1, 1, 1, 2, 2])
    assert (score, share.value) == (4.0, pytest.approx(4 / 7))
    score, share = stats.best_constant(human, levels=range(1, 6))
    assert (score, share.value) == (1.0, 0.6)


@given(RATED)
def test_a_share_within_tolerance_has_the_interval_of_a_share_and_coefficients_that_of_fisher(rows):
    judge, human, cluster = rows
    share = stats.within_share(judge, human, cluster)
    flags = stats.within(judge, human)
    assert share == stats.clustered_mean(flags, cluster, ends=(0.0, 1.0))
    assert 0 <= share.low <= share.value <= share.high <= 1
    kappa = stats.quadratic_kappa(judge, human, (1, 5), cluster)
    if np.isfinite(kappa.low):
        assert -1 < kappa.low < kappa.high < 1
        assert np.arctanh(kappa.low) + np.arctanh(kappa.high) == pytest.approx(
            2 * np.arctanh(kappa.value), abs=1e-6
        )
    assert ends(stats.quadratic_kappa(judge, human, (1, 5), cluster, level=0.95)) == (
        pytest.approx(ends(kappa), nan_ok=True)
    )


@given(RATED)
def test_limits_of_clustered_ratings_lie_in_the_middle_of_their_intervals(rows):
    judge, human, cluster = rows
    for limit in stats.limits_of_agreement(judge + 2, human, cluster):
        if np.isfinite(limit.low):
            assert (limit.low + limit.high) / 2 == pytest.approx(limit.value)
