"""The interval of a clustered mean, beside its written formula for one number at a time."""

from __future__ import annotations

from math import inf, isnan, nan, sqrt

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from ragnb.stats import flip_probability, kish, mean_interval


def between(x, least, most):
    return min(max(x, least), most)


def wilson_roots(p, n, quantile):
    """Wilson's bounds are where (p − x)² = quantile² x (1 − x) / n."""
    z2n = quantile**2 / n
    roots = np.roots([1 + z2n, -(2 * p + z2n), p * p]).real
    return between(min(roots), 0.0, 1.0), between(max(roots), 0.0, 1.0)


def by_hand(
    value,
    se,
    g_eff,
    n_kish,
    ends,
    *,
    binary=False,
    sum_h4=None,
    elsewhere=None,
    level=0.95,
    fraction=None,
):
    """The interval as the docstring of `mean_interval` has it."""
    kept = 1.0
    if fraction is not None:
        kept = sqrt(fraction)
        level = (1 + level) / 2
    if kept > 1:
        return nan, nan
    df0 = max(g_eff - 1, 1.0)
    t = scipy.stats.t.ppf(0.5 + level / 2, df0)
    low, high = ends
    width = high - low
    apart = 4 * se * sqrt(n_kish)
    is_wide = width > 1e6 and width > 1e6 * apart and se > 1e-12 * abs(value)
    if width == inf or is_wide:
        margin = t * se / sqrt(kept)
        return max(value - margin, low), min(value + margin, high)
    p = between((value - low) / width, 0.0, 1.0)
    variance = (se / width) ** 2
    if variance > 1e-18 and 0 < p < 1:
        n = p * (1 - p) / variance
        if binary:
            n = min(n, n_kish)
        elif elsewhere is not None:
            few, scores = elsewhere
            drawn = between(1.5 - few / 20, 0, 1) * between(2 - 4 * few / scores, 0, 1)
            if n > n_kish:
                n = n ** (1 - drawn) * n_kish**drawn
        r = min(g_eff / n, 1.0)
        centre = (p + t**2 / n / 2) / (1 + t**2 / n)
        k = 1.5 * (1 - 2 * centre) ** 2 / (centre * (1 - centre)) * r * (1 - r)
        spread = 1 / df0 if sum_h4 is None else between(g_eff**2 * sum_h4, 1 / df0, 2 / df0)
        df = max(1 / (1 / df0 + k * spread), 1.0)
        share = wilson_roots(p, kept * n, scipy.stats.t.ppf(0.5 + level / 2, df))
    else:
        # Clopper and Pearson's for scores that are all alike.
        harmonic = scipy.special.digamma(max(n_kish / g_eff, 1.0) + 1) + np.euler_gamma
        size = kept * g_eff * harmonic
        exact = sqrt(size * (((1 - level) / 2) ** (-1 / size) - 1))
        share = wilson_roots(p, size, exact)
    return low + width * share[0], low + width * share[1]


scores = st.floats(0.02, 0.98)
standard_errors = st.one_of(st.just(0.0), st.floats(1e-3, 0.3))


@given(
    value=scores | st.sampled_from([0.0, 1.0]),
    se=standard_errors,
    g_eff=st.floats(1.5, 200),
    per_cluster=st.floats(1, 12),
    width=st.sampled_from([1.0, 4.0, 9.0]),
    binary=st.booleans(),
    heavy=st.none() | st.floats(0.5, 3),
    elsewhere=st.none() | st.tuples(st.integers(0, 40), st.integers(40, 120)),
    level=st.sampled_from([0.8, 0.9, 0.95, 0.99]),
    fraction=st.none() | st.sampled_from([0.05, 0.4, 1.0, 1.2]),
)
# Half of what is drawn towards Kish's number: by the number of scores elsewhere, and by their share.
@example(0.95, 0.01, 30, 2, 1.0, False, 1.5, (20, 400), 0.95, None)
@example(0.8, 0.01, 15, 1, 1.0, False, 1.5, (6, 16), 0.95, None)
def test_an_interval_on_a_range_is_the_written_formula(
    value, se, g_eff, per_cluster, width, binary, heavy, elsewhere, level, fraction
):
    n_kish = per_cluster * g_eff
    ends = (1.0, 1.0 + width)
    mean = 1.0 + width * value
    options = {
        "binary": binary,
        "sum_h4": None if heavy is None else heavy / g_eff**3,
        "elsewhere": elsewhere,
        "level": level,
        "fraction": fraction,
    }
    found = mean_interval(np.float64(mean), width * se, g_eff, n_kish, ends, **options)
    expected = by_hand(mean, width * se, g_eff, n_kish, ends, **options)
    assert [float(end) for end in found] == pytest.approx(expected, abs=1e-6, nan_ok=True)
    assert isnan(expected[0]) == (fraction == 1.2)


@pytest.mark.parametrize("ends", [(-inf, inf), (0.0, inf), (-inf, 5.0)])
@pytest.mark.parametrize("fraction", [None, 0.25])
def test_without_a_range_it_is_student_s_and_ends_where_the_scale_does(ends, fraction):
    for value, se in ((4.0, 0.3), (0.1, 0.3), (4.9, 0.3)):
        found = mean_interval(np.float64(value), se, 8.0, 40.0, ends, fraction=fraction)
        assert [float(end) for end in found] == pytest.approx(
            by_hand(value, se, 8.0, 40.0, ends, fraction=fraction)
        )


@pytest.mark.parametrize("width", [0.9e6, 1.5e6, 3.9e6, 4.1e6, 1e9])
@pytest.mark.parametrize("value", [2.0, 3e5])
def test_a_range_a_million_times_as_wide_as_the_scores_are_apart_tells_nothing(width, value):
    # 4 · se · √n is 4: the boundary lies at four million.
    ends = (0.0, width)
    found = mean_interval(np.float64(value), 0.1, 20.0, 100.0, ends)
    assert [float(end) for end in found] == pytest.approx(by_hand(value, 0.1, 20.0, 100.0, ends))
    t = scipy.stats.t.ppf(0.975, 19)
    is_students = float(found[1]) == pytest.approx(value + 0.1 * t, abs=1e-9)
    assert is_students == (width > 4e6)


def test_identical_scores_of_a_wide_range_have_an_interval_on_the_range():
    # The standard error is what rounding leaves of a large score.
    ends = (0.0, 1e15)
    assert [float(end) for end in mean_interval(np.float64(1e14), 50.0, 20.0, 100.0, ends)] == (
        pytest.approx(by_hand(1e14, 50.0, 20.0, 100.0, ends))
    )
    low, high = mean_interval(np.float64(1e14), 500.0, 20.0, 100.0, ends)
    assert float(high - low) == pytest.approx(1000 * scipy.stats.t.ppf(0.975, 19), abs=0.1)


def test_nothing_is_no_effective_number():
    assert kish([0.0, 4.0], [0.0, 8.0]).tolist() == [0.0, 2.0]


def test_of_no_scores_there_is_no_interval_and_no_warning():
    nothing = np.zeros(2)
    for end in mean_interval(
        nothing / nan, nothing / nan, nothing, nothing, (0, 1), elsewhere=(nothing, nothing)
    ):
        assert np.isnan(end).all()


@pytest.mark.parametrize(("se", "df"), [(0.0, 12.0), (nan, 12.0), (0.1, nan), (0.1, inf)])
def test_without_an_error_or_its_degrees_of_freedom_no_repeat_can_be_foretold(se, df):
    assert isnan(flip_probability(0.8, 0.7, se, df))


def test_a_repeat_has_at_least_one_degree_of_freedom():
    assert flip_probability(0.8, 0.7, 0.1, 0.4) == flip_probability(0.8, 0.7, 0.1, 1.0)
    assert flip_probability(0.8, 0.7, 0.1, 1.0) == pytest.approx(scipy.stats.t.cdf(-1 / sqrt(2), 1))
