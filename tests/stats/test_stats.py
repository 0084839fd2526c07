"""The formulas, against published tables and other libraries."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackknifed import familiar_se
from scipy import stats as scipy_stats
from statsmodels.stats.proportion import proportion_confint

import ragnb as rn
from ragnb import stats

# Newcombe (1998), Stat. Med. 17:857-872, Table I, method 3.
NEWCOMBE = {
    (81, 263): (0.2553, 0.3662),
    (15, 148): (0.0624, 0.1605),
    (0, 20): (0.0, 0.1611),
    (1, 29): (0.0061, 0.1718),
}


@pytest.mark.parametrize("case", NEWCOMBE)
def test_wilson_is_newcombes_table(case):
    k, n = case
    low, high = stats.wilson(
        np.array(k / n), np.array(float(n)), np.array(scipy_stats.norm.ppf(0.975))
    )
    assert (float(low), float(high)) == pytest.approx(NEWCOMBE[case], abs=6e-5)


@given(st.integers(1, 300), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_statsmodels(n, share, level):
    k = round(share * n)
    z = np.array(scipy_stats.norm.ppf(0.5 + level / 2))
    low, high = stats.wilson(np.array(k / n), np.array(float(n)), z)
    assert (float(low), float(high)) == pytest.approx(
        proportion_confint(k, n, 1 - level, "wilson"), abs=1e-12
    )


@given(st.floats(0.01, 0.999), st.floats(1, 1e4))
def test_t_quantile_is_scipys(level, df):
    assert float(stats.t_quantile(level, df)) == pytest.approx(
        scipy_stats.t.ppf(0.5 + level / 2, df), rel=1e-9
    )


@given(st.lists(st.floats(-5, 5), min_size=8, max_size=8), st.integers(2, 4))
def test_jackknife_is_the_familiar_form_when_clusters_are_alike(values, groups):
    size = 8 // groups
    x = np.array(values[: size * groups])
    codes = np.repeat(np.arange(groups), size)
    u = np.bincount(codes, weights=x - x.mean())
    inflated = np.sum((u / (1 - 1 / groups)) ** 2)
    got = stats.jackknife_se(np.array(float(len(x))), np.array(float(groups)), np.array(inflated))
    assert float(got) == pytest.approx(familiar_se(x, codes), abs=1e-12)


def test_one_cluster_has_no_standard_error():
    assert np.isnan(stats.jackknife_se(np.array(5.0), np.array(1.0), np.array(0.0)))


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=20))
def test_kish_lies_between_one_and_the_count(weights):
    v = np.array(weights)
    assert 1 - 1e-9 <= float(stats.kish(v.sum(), (v**2).sum())) <= len(v) + 1e-9


@given(
    st.floats(0, 1),
    st.floats(0, 0.5),
    st.floats(1, 100),
    st.floats(1, 500),
    st.booleans(),
    st.sampled_from([0.8, 0.95]),
)
def test_an_interval_holds_its_mean_and_stays_in_range(value, se, g_eff, n_kish, binary, level):
    args = [np.array([x]) for x in (1 + 4 * value, 4 * se, g_eff, n_kish)]
    low, high = stats.mean_interval(
        *args, (np.array([1.0]), np.array([5.0])), binary=binary, level=level
    )
    assert 1 <= low[0] <= 1 + 4 * value + 1e-9
    assert 1 + 4 * value - 1e-9 <= high[0] <= 5
    assert high[0] > low[0]


def test_a_binary_interval_is_never_narrower_than_independent_rows():
    one = np.array([1.0])
    narrow = stats.mean_interval(
        0.5 * one, 0.001 * one, 50 * one, 40 * one, (0 * one, one), binary=True
    )
    rows = stats.mean_interval(
        0.5 * one, np.sqrt(0.25 / 40) * one, 50 * one, 40 * one, (0 * one, one)
    )
    assert (narrow[0][0], narrow[1][0]) == pytest.approx((rows[0][0], rows[1][0]))
    free = stats.mean_interval(0.5 * one, 0.001 * one, 50 * one, 40 * one, (0 * one, one))
    assert free[1][0] - free[0][0] < 0.01


def bounded(p, se, g_eff, n_kish, level=0.95):
    ends = np.zeros_like(p), np.ones_like(p)
    return stats.mean_interval(
        p, se, np.full_like(p, g_eff), np.full_like(p, n_kish), ends, level=level
    )


def test_a_skewed_mean_is_given_fewer_degrees_of_freedom_by_the_written_formula():
    p, se, g = 0.95, 0.04, 12.0
    n, t = p * (1 - p) / se**2, float(stats.t_quantile(0.95, g - 1))
    c = (p + t**2 / n / 2) / (1 + t**2 / n)
    kappa = 1.5 * (g / n) * (1 - g / n) * (1 - 2 * c) ** 2 / (c * (1 - c))
    wide = float(stats.t_quantile(0.95, (g - 1) / (1 + kappa)))
    want = stats.wilson(np.array(p), np.array(n * (t / wide) ** 2), np.array(t))
    got = bounded(np.array([p]), np.array([se]), g, 500.0)
    assert (got[0][0], got[1][0]) == pytest.approx((float(want[0]), float(want[1])), abs=1e-12)
    assert kappa > 1


def test_a_mean_in_the_middle_keeps_wilsons_interval_with_t():
    p, se = np.array([0.5]), np.array([0.05])
    want = stats.wilson(p, p * (1 - p) / se**2, stats.t_quantile(0.95, 9))
    assert np.allclose(bounded(p, se, 10.0, 400.0), want, atol=1e-12)


# The low ends for documents x questions of which none or one is wrong, which a simulation of beta-binomial
# documents bears out (ICC 0 to .5, 735 settings): three digits.
@pytest.mark.parametrize(
    ("documents", "questions", "none_wrong", "one_wrong"),
    [(5, 8, 0.762, 0.617), (10, 8, 0.873, 0.794), (10, 30, 0.912, 0.922), (20, 8, 0.934, 0.894)],
)
def test_documents_all_right_or_with_one_wrong(documents, questions, none_wrong, one_wrong):
    names = np.repeat(np.arange(documents), questions)
    right = np.ones(len(names))
    assert stats.clustered_mean(right, names, ends=(0, 1)).low == pytest.approx(
        none_wrong, abs=6e-4
    )
    right[0] = 0
    assert stats.clustered_mean(right, names, ends=(0, 1)).low == pytest.approx(one_wrong, abs=6e-4)


@given(st.integers(2, 60), st.integers(1, 40), st.sampled_from([0.8, 0.95, 0.99]))
def test_all_alike_is_clopper_and_pearsons_at_the_harmonic_size(clusters, inside, level):
    names = np.repeat(np.arange(clusters), inside)
    found = stats.clustered_mean(np.ones(len(names)), names, ends=(0, 1), level=level)
    size = clusters * sum(1 / k for k in range(1, inside + 1))
    assert found.high == 1
    assert found.low == pytest.approx(((1 - level) / 2) ** (1 / size), abs=1e-9)


def test_a_weight_moves_the_interval_without_a_jump():
    rng = np.random.default_rng(5)
    for _ in range(8):
        names = np.repeat(np.arange(6), 12)
        x = np.clip(rng.normal(0.9, 0.06, 72), 0, 1)
        widths = []
        for heavy in np.exp(np.arange(np.log(0.3), np.log(20), 0.02)):
            weights = np.where(names == 0, heavy, 1.0)
            found = stats.clustered_mean(x, names, weights=weights, ends=(0, 1))
            widths.append(found.high - found.low)
        ratio = np.array(widths[1:]) / np.array(widths[:-1])
        assert np.maximum(ratio, 1 / ratio).max() < 1.06


def test_blemishes_do_not_hide_the_rare_failure():
    """97 % at 1, 2 % at .99, and 1 % at 0 that few samples hold."""
    rng = np.random.default_rng(6)
    truth = 0.97 + 0.02 * 0.99
    covered = [0, 0]
    for _ in range(400):
        u = rng.random(100)
        x = np.where(u < 0.97, 1.0, np.where(u < 0.99, 0.99, 0.0))
        found = stats.clustered_mean(x, ends=(0, 1))
        blind = stats.mean_interval(found.value, found.se, 100.0, 100.0, (0.0, 1.0), binary=False)
        for place, (low, high) in enumerate([(found.low, found.high), blind]):
            covered[place] += low <= truth <= high
    assert covered[0] / 400 > 0.94
    assert covered[1] / 400 < 0.9


def test_the_interval_of_scores_mostly_at_the_top_covers_their_mean():
    rng = np.random.default_rng(3)
    full = rng.beta(0.9 * 7 / 3, 0.1 * 7 / 3, (4000, 20))
    x = np.where(
        rng.random((4000, 20, 10)) < full[:, :, None], 1.0, rng.beta(2, 2, (4000, 20, 10))
    ).mean(2)
    low, high = bounded(x.mean(1), x.std(1, ddof=1) / np.sqrt(20), 20.0, 200.0)
    plain = stats.wilson(
        x.mean(1), x.mean(1) * (1 - x.mean(1)) / x.var(1, ddof=1) * 20, stats.t_quantile(0.95, 19)
    )
    covered = ((low <= 0.95) & (high >= 0.95)).mean()
    assert 0.935 < covered < 0.975
    assert ((plain[0] <= 0.95) & (plain[1] >= 0.95)).mean() < covered - 0.01


def test_the_jackknifes_level_is_95_percent_by_default():
    sums = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 9.0], [1.0, 5.0]])

    def found(**how):
        return stats.jackknife(stats.ratio, sums, np.ones(4), **how)

    assert found() == found(level=0.95) != found(level=0.9)


def test_every_interval_is_at_95_percent_unless_asked_otherwise():
    functions = [getattr(stats, name) for name in stats.__all__]
    functions += [getattr(rn, name) for name in dir(rn) if inspect.isfunction(getattr(rn, name))]
    given = [inspect.signature(one).parameters.get("level") for one in functions if callable(one)]
    levels = [
        one.default
        for one in given
        if one is not None and one.default is not inspect.Parameter.empty
    ]
    assert len(levels) > 20
    assert set(levels) == {0.95}
