"""Coefficients of agreement and order, against other libraries and deletion of each cluster by hand."""

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jackknifed import by_hand, rated
from scipy import stats as scipy_stats
from sklearn import metrics as sklearn_metrics

from ragnb import stats
from ragnb.errors import RagnbError

SCORES = st.integers(1, 5)
RATED = rated(SCORES, least=8)


def varies(*columns):
    return all(np.ptp(column) > 0 for column in columns)


def lin(judge, human):
    bottom = judge.var() + human.var() + (judge.mean() - human.mean()) ** 2
    return (
        2 * np.mean((judge - judge.mean()) * (human - human.mean())) / bottom
        if bottom > 1e-12
        else np.nan
    )


@given(RATED)
def test_quadratic_kappa_is_lins_concordance_of_labels_and_its_se_the_jackknifes(rows):
    found = stats.quadratic_kappa(rows[0], rows[1], (1, 5), rows[2])
    assert (found.value, found.se) == pytest.approx(by_hand(lin, *rows), abs=1e-8, nan_ok=True)
    assert not found.low > found.value
    assert not found.high < found.value


@given(RATED)
def test_quadratic_kappa_is_scikit_learns_with_the_full_label_range(rows):
    judge, human, cluster = rows
    assume(varies(np.concatenate([judge, human])))
    want = sklearn_metrics.cohen_kappa_score(
        judge, human, weights="quadratic", labels=[1, 2, 3, 4, 5]
    )
    assert stats.quadratic_kappa(judge, human, (1, 5), cluster).value == pytest.approx(
        want, abs=1e-12
    )
    assert stats.quadratic_kappa(judge, human, (1, 10)).value == pytest.approx(want, abs=1e-12)


def test_a_kappa_of_one_label_alone_is_not_a_number():
    assert np.isnan(stats.quadratic_kappa([3, 3], [3, 3], (1, 5)).value)


def scipys(x, y):
    return scipy_stats.kendalltau(x, y)[0] if len(x) > 1 and varies(x, y) else np.nan


@given(rows=RATED)
def test_kendall_and_its_se_are_scipys_with_each_cluster_left_out(rows):
    found, (value, se) = stats.kendall(*rows), by_hand(scipys, *rows)
    assert found.value == pytest.approx(value, abs=1e-9, nan_ok=True)
    if np.isfinite(value):
        assert found.se == pytest.approx(se, abs=1e-7, nan_ok=True)
        assert found.n_clusters == len(np.unique(rows[2]))


@given(rows=RATED)
def test_kendall_within_is_the_mean_of_the_clusters_that_have_one(rows):
    judge, human, cluster = rows
    found = stats.kendall_within(*rows)
    each = np.array([scipys(judge[cluster == g], human[cluster == g]) for g in np.unique(cluster)])
    each = each[np.isfinite(each)]
    assert found.value == pytest.approx(each.mean() if len(each) else np.nan, abs=1e-9, nan_ok=True)
    assert found.n_clusters == len(each)
    if len(each) > 1:
        assert found.se == pytest.approx(each.std(ddof=1) / np.sqrt(len(each)), abs=1e-9)


@given(rows=RATED, systems=st.lists(st.integers(0, 3), min_size=40, max_size=40))
def test_kendall_by_system_is_scipys_of_the_systems_means(rows, systems):
    system = np.array(systems[: len(rows[0])])

    def of_means(judge, human, system):
        means = [
            [np.round(v[system == s].mean(), 10) for s in np.unique(system)] for v in (judge, human)
        ]
        return scipys(*means)

    judge, human, cluster = rows
    found = stats.kendall_of_means(judge, human, system, cluster)
    want = of_means(judge, human, system)
    assert found.value == pytest.approx(want, abs=1e-9, nan_ok=True)
    kept = [cluster != g for g in np.unique(cluster)]
    assume(all(len(np.unique(system[k])) == len(np.unique(system)) for k in kept))
    without = np.array([of_means(judge[k], human[k], system[k]) for k in kept])
    if np.isfinite(want) and np.isfinite(without).all():
        se = np.sqrt((len(kept) - 1) / len(kept) * np.sum((without - want) ** 2))
        assert found.se == pytest.approx(se, abs=1e-9)
        if abs(want) < 1 and se > 1e-9:  # the interval is made on Fisher's z, by the delta method
            df = max(len(judge) ** 2 / (np.bincount(cluster) ** 2).sum() - 1, 1)
            half = scipy_stats.t.ppf(0.975, df) * se / (1 - want**2)
            ends = np.tanh([np.arctanh(want) - half, np.arctanh(want) + half])
            assert [found.low, found.high] == pytest.approx(ends, abs=1e-6)


def test_kendall_of_continuous_scores_is_scipys():
    rng = np.random.default_rng(5)
    x = rng.normal(size=3000)
    y = x + rng.normal(size=3000)
    assert stats.kendall(x, y).value == pytest.approx(scipy_stats.kendalltau(x, y)[0], abs=1e-12)


def test_scores_that_differ_in_the_last_bit_are_ties_where_digits_say_so():
    judge, human = [1.0, 1.0 + 1e-15, 2.0, 3.0], [2.0, 1.0, 3.0, 4.0]
    raw, tied = (stats.kendall(judge, human, digits=digits).value for digits in (None, 9))
    assert raw == pytest.approx(scipys(judge, human))
    assert tied == pytest.approx(scipys([1, 1, 2, 3], human))


GAPS = st.one_of(st.just(np.nan), SCORES.map(float))


@given(ratings=st.lists(st.lists(GAPS, min_size=3, max_size=3), min_size=6, max_size=25))
def test_alpha_is_the_krippendorff_packages(ratings):
    grid = np.array(ratings)
    pairable = grid[np.sum(~np.isnan(grid), axis=1) >= 2]
    assume(len(np.unique(pairable[~np.isnan(pairable)])) > 1)
    want = krippendorff.alpha(reliability_data=grid.T, level_of_measurement="interval")
    found = stats.krippendorff_alpha(grid)
    assert found.value == pytest.approx(want, abs=1e-10)
    assert found.n == len(pairable)


def test_the_jackknife_of_alpha_is_that_of_deletion():
    rng = np.random.default_rng(4)
    grid, cluster = rng.integers(1, 5, (60, 3)).astype(float), rng.integers(0, 9, 60)
    grid[rng.random(grid.shape) < 0.2] = np.nan
    want = krippendorff.alpha(reliability_data=grid.T, level_of_measurement="interval")
    kept = [grid[cluster != g] for g in range(9)]
    without = [
        krippendorff.alpha(reliability_data=part.T, level_of_measurement="interval")
        for part in kept
    ]
    se = np.sqrt(8 / 9 * np.sum((np.array(without) - want) ** 2))
    assert stats.krippendorff_alpha(grid, cluster).se == pytest.approx(se)


def test_an_alpha_of_one_value_alone_is_not_a_number():
    assert np.isnan(stats.krippendorff_alpha([[3, 3], [3, 3]]).value)
    assert stats.krippendorff_alpha([[3, np.nan]]).n == 0
    assert stats.krippendorff_alpha([[1, 1], [2, 2], [3, 3]]).value == 1.0


def test_labels_outside_the_scale_are_refused():
    with pytest.raises(RagnbError, match="judge holds 9"):
        stats.quadratic_kappa([9], [1], (1, 5))


def test_a_judge_that_never_varies_has_a_kappa_of_0_and_no_interval():
    found = stats.quadratic_kappa([1] * 8, [1] * 7 + [2], (1, 5))
    assert found.value == 0
    assert np.isnan([found.low, found.high]).all()
