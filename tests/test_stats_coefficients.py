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
KINDS = ["pearson", "spearman", "kendall"]


def varies(*columns):
    return all(np.ptp(column) > 0 for column in columns)


def lin(judge, human):
    bottom = judge.var() + human.var() + (judge.mean() - human.mean()) ** 2
    return 2 * np.mean((judge - judge.mean()) * (human - human.mean())) / bottom if bottom > 1e-12 else np.nan


@given(RATED)
def test_concordance_is_lins_and_its_se_is_the_jackknifes(rows):
    found = stats.concordance(*rows)
    assert (found.value, found.se) == pytest.approx(by_hand(lin, *rows), abs=1e-8, nan_ok=True)
    assert not found.low > found.value
    assert not found.high < found.value


@given(RATED)
def test_quadratic_kappa_is_scikit_learns_with_the_full_label_range(rows):
    judge, human, cluster = rows
    assume(varies(np.concatenate([judge, human])))
    want = sklearn_metrics.cohen_kappa_score(judge, human, weights="quadratic", labels=[1, 2, 3, 4, 5])
    assert stats.quadratic_kappa(judge, human, (1, 5), cluster).value == pytest.approx(want, abs=1e-12)
    assert stats.quadratic_kappa(judge, human, (1, 10)).value == pytest.approx(want, abs=1e-12)


def test_a_kappa_of_one_label_alone_is_not_a_number():
    assert np.isnan(stats.within_kappa([3, 3], [3, 3]).value)
    assert np.isnan(stats.quadratic_kappa([3, 3], [3, 3], (1, 5)).value)


def anova(grid):
    """ICC(A,1) and ICC(C,1) from the sums of squares of a two-way table."""
    n, k = grid.shape
    rows, columns, whole = grid.mean(1), grid.mean(0), grid.mean()
    msr = k * np.sum((rows - whole) ** 2) / (n - 1)
    msc = n * np.sum((columns - whole) ** 2) / (k - 1)
    mse = np.sum((grid - rows[:, None] - columns + whole) ** 2) / (n - 1) / (k - 1)
    agree = msr + (k - 1) * mse + k * (msc - mse) / n
    return (msr - mse) / agree, (msr - mse) / (msr + (k - 1) * mse)


@given(RATED, st.integers(0, 3))
def test_intraclass_correlations_are_those_of_the_sums_of_squares(rows, raters):
    judge, human, cluster = rows
    extra = [np.roll(human, shift + 1) for shift in range(raters)]
    grid = np.stack([judge, human, *extra], axis=1)
    assume(np.ptp(grid.mean(1)) > 0)
    assume(np.ptp(grid, axis=1).any())
    found = stats.icc(grid, cluster)
    singles = [found[form] for form in ("ICC(A,1)", "ICC(C,1)")]
    assert [one.value for one in singles] == pytest.approx(anova(grid), abs=1e-8)
    keep = [grid[cluster != g] for g in np.unique(cluster)]
    assume(all(np.ptp(part.mean(1)) > 1e-9 and np.ptp(part, axis=1).any() for part in keep))
    without = np.array([anova(part) for part in keep])
    g = len(keep)
    want = np.sqrt((g - 1) / g * np.sum((without - anova(grid)) ** 2, axis=0))
    assert [one.se for one in singles] == pytest.approx(want, rel=1e-6, abs=1e-7)


def test_a_constant_bias_lowers_agreement_and_leaves_consistency():
    human = np.array([1, 2, 3, 4, 5, 2, 4.0])
    apart = stats.icc(np.stack([human + 2, human], axis=1))
    assert apart["ICC(C,1)"].value == pytest.approx(1)
    assert apart["ICC(A,1)"].value < 0.6
    holes = np.array([[1, 2], [2, 2], [np.nan, 3], [4, 5]])
    assert stats.icc(holes)["ICC(C,1)"].value == pytest.approx(stats.icc(holes[[0, 1, 3]])["ICC(C,1)"].value)


def scipys(kind, x, y):
    if len(x) < 2 or not varies(x, y):
        return np.nan
    call = {"pearson": scipy_stats.pearsonr, "spearman": scipy_stats.spearmanr, "kendall": scipy_stats.kendalltau}
    return call[kind](x, y)[0]


def mean_over(kind, x, y, group):
    each = [scipys(kind, x[group == g], y[group == g]) for g in np.unique(group)]
    each = [r for r in each if np.isfinite(r)]
    return np.mean(each) if each else np.nan


@pytest.mark.parametrize("kind", KINDS)
@given(rows=RATED, systems=st.lists(st.integers(0, 2), min_size=40, max_size=40), choice=st.sampled_from("pcs"))
def test_correlations_are_scipys_pooled_within_clusters_and_within_systems(rows, systems, choice, kind):
    judge, human, cluster = rows
    groups = {"p": np.zeros(len(judge)), "c": cluster, "s": np.array(systems[: len(judge)])}
    group = groups[choice]
    found = stats.correlation(judge, human, kind, cluster, within=group)
    want = mean_over(kind, judge, human, group)
    assert found.value == pytest.approx(want, abs=1e-9, nan_ok=True)
    if kind != "spearman" and np.isfinite(want):
        used = [g for g in np.unique(cluster) if any(
            np.isfinite(scipys(kind, judge[group == h], human[group == h])) for h in group[cluster == g]
        )]  # fmt: skip
        kept = [cluster != g for g in used]
        without = np.array([mean_over(kind, judge[rows], human[rows], group[rows]) for rows in kept])
        g = len(kept)
        se = np.sqrt((g - 1) / g * np.sum((without - want) ** 2)) if g > 1 else np.nan
        assert found.se == pytest.approx(se, abs=1e-7, nan_ok=True)
        assert found.n_clusters == g


def test_kendall_of_continuous_scores_is_scipys():
    rng = np.random.default_rng(5)
    x = rng.normal(size=3000)
    y = x + rng.normal(size=3000)
    assert stats.correlation(x, y, "kendall").value == pytest.approx(scipy_stats.kendalltau(x, y)[0], abs=1e-12)


def test_the_jackknife_of_spearman_is_that_of_deletion_to_a_few_percent():
    rng = np.random.default_rng(8)
    cluster = np.repeat(np.arange(25), 12)
    lean = rng.normal(size=25)[cluster]
    x, y = (np.round(2 * (lean + rng.normal(size=300))) for _ in range(2))
    _, want = by_hand(lambda a, b: scipys("spearman", a, b), x, y, cluster)
    assert stats.correlation(x, y, "spearman", cluster).se == pytest.approx(want, rel=0.05)


def test_scores_that_differ_in_the_last_bit_are_ties_where_digits_say_so():
    judge, human = [1.0, 1.0 + 1e-15, 2.0, 3.0], [2.0, 1.0, 3.0, 4.0]
    raw, tied = (stats.correlation(judge, human, "kendall", digits=digits).value for digits in (None, 9))
    assert raw == pytest.approx(scipys("kendall", judge, human))
    assert tied == pytest.approx(scipys("kendall", [1, 1, 2, 3], human))


GAPS = st.one_of(st.just(np.nan), SCORES.map(float))


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
@given(ratings=st.lists(st.lists(GAPS, min_size=3, max_size=3), min_size=6, max_size=25))
def test_alpha_is_the_krippendorff_packages(ratings, metric):
    grid = np.array(ratings)
    pairable = grid[np.sum(~np.isnan(grid), axis=1) >= 2]
    assume(len(np.unique(pairable[~np.isnan(pairable)])) > 1)
    want = krippendorff.alpha(reliability_data=grid.T, level_of_measurement=metric)
    found = stats.krippendorff_alpha(grid, metric)
    assert found.value == pytest.approx(want, abs=1e-10)
    assert found.n == len(pairable)


@pytest.mark.parametrize("metric", ["nominal", "interval"])
def test_the_jackknife_of_alpha_is_that_of_deletion(metric):
    rng = np.random.default_rng(4)
    grid, cluster = rng.integers(1, 5, (60, 3)).astype(float), rng.integers(0, 9, 60)
    grid[rng.random(grid.shape) < 0.2] = np.nan
    want = krippendorff.alpha(reliability_data=grid.T, level_of_measurement=metric)
    kept = [grid[cluster != g] for g in range(9)]
    without = [krippendorff.alpha(reliability_data=part.T, level_of_measurement=metric) for part in kept]
    se = np.sqrt(8 / 9 * np.sum((np.array(without) - want) ** 2))
    assert stats.krippendorff_alpha(grid, metric, cluster).se == pytest.approx(se)


def test_an_alpha_of_one_value_alone_is_not_a_number():
    for metric in ("nominal", "ordinal", "interval"):
        assert np.isnan(stats.krippendorff_alpha([[3, 3], [3, 3]], metric).value)
        assert stats.krippendorff_alpha([[3, np.nan]], metric).n == 0
        assert stats.krippendorff_alpha([[1, 1], [2, 2], [3, 3]], metric).value == 1.0


def test_unknown_names_and_shapes_are_refused():
    with pytest.raises(RagnbError, match="kind='tau'"):
        stats.correlation([1, 2], [1, 2], "tau")
    with pytest.raises(RagnbError, match="metric='ratio'"):
        stats.krippendorff_alpha([[1, 2]], "ratio")
    with pytest.raises(RagnbError, match="two raters"):
        stats.icc([[1], [2]])
    with pytest.raises(RagnbError, match="judge holds 9"):
        stats.quadratic_kappa([9], [1], (1, 5))


def test_a_judge_that_never_varies_has_a_concordance_of_0_and_no_interval():
    found = stats.concordance([1] * 8, [1] * 7 + [2])
    assert found.value == 0
    assert np.isnan([found.low, found.high]).all()
