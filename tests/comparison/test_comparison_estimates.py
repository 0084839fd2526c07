"""The estimate of a paired difference, beside its parts computed for one set of questions at a time."""

from __future__ import annotations

from math import inf, nan, sqrt

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from ragnb import stats
from ragnb.comparison.estimates import Changes, difference, least_error, pass_chance

SHARES = st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.0, 0.25, 1.0])


def least_by_hand(shares, n_kish, g_eff, identical):
    """Two questions more change, by the mean square of those that do and of one over the whole range."""
    n = len(shares)
    seen = [share for share in shares if share != 0 and not identical]
    alike = float(stats.size_if_alike(g_eff, n_kish)) / g_eff
    mean_square = (sum(share**2 for share in seen) + 1) / (len(seen) + 1)
    squares = sum(share**2 for share in seen) + 2 * alike * mean_square
    variance = (squares - sum(seen) ** 2 / (n + 2)) / (n + 2) ** 2
    return sqrt(max(variance, 0.0) * n / n_kish)


@given(
    st.lists(st.tuples(SHARES, st.integers(0, 6)), min_size=3, max_size=60),
    st.sampled_from([1.0, 4.0]),
    st.booleans(),
)
@example([(0.0, k) for k in range(7)] * 5 + [(1.0, 0), (-0.5, 3)], 4.0, False)
@example([(0.25, k) for k in range(7)] * 3, 4.0, False)
def test_a_difference_is_sure_as_far_as_its_jackknife_and_a_few_more_changes_say(
    rows, width, weighted
):
    shares = np.array([share for share, _ in rows])
    clusters = np.unique([cluster for _, cluster in rows], return_inverse=True)[1]
    weights = np.linspace(1, 3, len(rows)) if weighted else np.ones(len(rows))
    found = difference(width * shares, clusters, weights, width=width)
    names = np.unique(clusters)
    value = np.average(width * shares, weights=weights)
    assert found.value == pytest.approx(value, abs=1e-12)
    if len(names) < 2:
        assert np.isnan([found.low, found.high]).all()
        return
    g = len(names)
    without = [
        np.average(width * shares[clusters != name], weights=weights[clusters != name])
        for name in names
    ]
    se = sqrt((g - 1) / g * sum((mean - value) ** 2 for mean in without))
    h = np.array([weights[clusters == name].sum() for name in names]) / weights.sum()
    df = max(1 / (h @ h) - 1, 1)
    # Documents of one mean each leave no error, either.
    is_identical = se < 1e-12
    changed = shares[shares != 0]
    few = len(changed) < 20
    few &= 2 * len(changed) <= len(shares) or bool((np.abs(changed) == 1).all())
    if is_identical or few:
        n_kish = weights.sum() ** 2 / (weights @ weights)
        least = least_by_hand(shares, n_kish, df + 1, is_identical)
        se = max(se, least * width)
    assert found.se == pytest.approx(se, rel=1e-6)
    margin = scipy.stats.t.ppf(0.975, df) * se
    assert found.low == pytest.approx(max(value - margin, -width), rel=1e-6, abs=1e-9)
    assert found.high == pytest.approx(min(value + margin, width), rel=1e-6, abs=1e-9)


def test_few_changes_are_fewer_than_twenty_and_at_most_half_or_over_the_whole_range():
    def few(changed, n, share):
        return Changes.of(np.array([share] * changed + [0.0] * (n - changed))).are_few

    assert few(19, 38, 0.5)
    assert not few(19, 37, 0.5)
    assert not few(20, 400, 0.5)
    assert few(19, 19, 1.0)
    assert few(19, 19, -1.0)
    assert not few(20, 20, 1.0)


def test_of_identical_differences_nothing_but_two_more_is_known():
    changes = Changes.of(np.full(30, 0.5))
    assert float(least_error(changes, 30.0, 30.0, identical=True)) == pytest.approx(
        float(least_error(Changes.of(np.zeros(30)), 30.0, 30.0))
    )


ROW = {"margin": 0.05, "se": 0.022, "df": 39.0, "level": 0.95, "n_common": 200}


@pytest.mark.parametrize(
    "change", [{"se": 0.0}, {"se": nan}, {"margin": nan}, {"margin": inf}, {"df": 0.0}, {"df": nan}]
)
def test_without_an_error_or_a_margin_no_chance_of_passing_is_known(change):
    assert np.isnan(pass_chance(ROW | change)).all()


def test_the_chance_of_passing_is_students_and_its_questions_make_it_nine_in_ten():
    chance, needed = pass_chance(ROW | {"df": 0.5})
    t = scipy.stats.t
    assert chance == pytest.approx(t.cdf(0.05 / 0.022 - float(stats.t_quantile(0.95, 0.5)), 0.5))
    chance, needed = pass_chance(ROW)
    quantile = t.ppf(0.975, 39)
    assert chance == pytest.approx(t.cdf(0.05 / 0.022 - quantile, 39))
    smaller = 0.05 / (quantile + scipy.stats.norm.ppf(0.9))
    assert needed == np.ceil(200 * (0.022 / smaller) ** 2)
