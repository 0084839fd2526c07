"""Whether labels look like a random draw, against permutations and the distributions of scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.stats import t as student

from ragnb import stats
from ragnb.errors import RagnbError


def test_of_independent_rows_it_is_the_variance_of_a_draw_without_replacement():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=300)
    found = stats.draw_test(scores[:40], scores[40:])
    se = np.sqrt(scores.var(ddof=1) * (1 / 40 + 1 / 260))
    assert found.z == pytest.approx((scores[:40].mean() - scores[40:].mean()) / se)
    assert (found.labelled, found.rest) == pytest.approx((scores[:40].mean(), scores[40:].mean()))
    shuffled = np.array([rng.permutation(scores) for _ in range(4000)])
    gaps = np.abs(shuffled[:, :40].mean(axis=1) - shuffled[:, 40:].mean(axis=1))
    assert found.p == pytest.approx(np.mean(gaps >= abs(found.labelled - found.rest)), abs=0.03)


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("n", [8, 32])
def test_the_tails_of_few_lopsided_labels_are_pearsons_type_iii(n, turn):
    rng = np.random.default_rng(3)
    scores = turn * rng.exponential(size=40) ** 2
    found = stats.draw_test(scores[:n], scores[n:])
    lopsided = scipy_stats.skew(scores) * (40 - 2 * n) / np.sqrt(40 * n * (40 - n))
    # The skewness of the gap over every draw of so many rows, but for the 40 that is 38 of a finite population.
    gaps = [shuffled[:n].mean() for shuffled in (rng.permutation(scores) for _ in range(20_000))]
    assert scipy_stats.skew(gaps) == pytest.approx(lopsided, abs=0.08)
    of_gap = scipy_stats.pearson3(lopsided)
    tail = scipy_stats.norm.ppf(min(of_gap.cdf(found.z), of_gap.sf(found.z)))
    assert found.p == pytest.approx(2 * scipy_stats.t.cdf(tail, 39), rel=1e-9)


DRAWS = {
    "rows": lambda rng, of, n: rng.permutation(len(of)) < n,
    "rows within clusters": lambda rng, of, n: (
        np.isin(of, rng.permutation(of.max() + 1)[: 2 * (of.max() + 1) // 3])
        & (rng.random(len(of)) < 0.4)
    ),
    "whole clusters": lambda rng, of, n: np.isin(
        of, rng.permutation(of.max() + 1)[: (of.max() + 1) // 4]
    ),
}


@pytest.mark.parametrize("design", DRAWS)
@pytest.mark.parametrize("kind", ["five points", "pass or fail, .93"])
def test_random_draws_are_flagged_no_more_often_than_the_level(design, kind):
    rng, draws, flagged = np.random.default_rng(4), 700, 0
    for _ in range(draws):
        of = np.repeat(np.arange(30), rng.integers(4, 20, 30))
        z = 0.5 * rng.normal(size=30)[of] + 0.85 * rng.normal(size=len(of))
        score = (
            (z < 1.5).astype(float)
            if kind != "five points"
            else np.clip(np.round(3.6 + 1.1 * z), 1, 5)
        )
        mine = DRAWS[design](rng, of, 50)
        flagged += stats.draw_test(score[mine], score[~mine], of[mine], of[~mine]).p <= 0.01
    assert flagged / draws <= 0.01 + 2 * (0.01 * 0.99 / draws) ** 0.5


def test_without_rows_on_both_sides_or_without_variation_there_is_no_test():
    for few, more in (([1, 2], []), ([3, 3], [3, 3, 3])):
        found = stats.draw_test(few, more)
        assert np.isnan([found.z, found.p]).all()
    with pytest.raises(RagnbError, match="give both clusters and rest_clusters"):
        stats.draw_test([1, 2], [1, 3], ["a", "b"])


@given(st.floats(0.01, 1000))
def test_the_unit_of_a_score_does_not_change_whether_a_draw_was_random(unit):
    rng = np.random.default_rng(3)
    labelled = rng.exponential(size=15) ** 2
    rest = rng.exponential(size=90) ** 2
    one = stats.draw_test(labelled, rest)
    other = stats.draw_test(labelled * unit, rest * unit)
    assert (other.z, other.p) == pytest.approx((one.z, one.p), rel=1e-9)
    # Lopsided scores: the tail is not the one of a normal.
    mirrored = stats.draw_test(-labelled, -rest)
    assert abs(mirrored.z) == pytest.approx(abs(one.z))


def test_rows_of_one_cluster_are_drawn_like_rows_without_clusters():
    labelled = [2.0, 3.0, 3.0, 2.0, 4.0]
    rest = [4.0, 5.0, 5.0, 4.0, 3.0, 5.0, 4.0]
    alike = stats.draw_test(
        labelled, rest, clusters=["a"] * len(labelled), rest_clusters=["a"] * len(rest)
    )
    assert alike == stats.draw_test(labelled, rest)


@pytest.mark.parametrize("towards", [min, max])
def test_the_tail_of_a_lopsided_draw_is_that_of_pearsons_type_3(towards):
    rest = np.array([0.0] * 60 + [1.0, 1.0])
    labelled = np.array([towards(0.0, 1.0)] * 3)
    found = stats.draw_test(labelled, rest)
    every = np.concatenate([labelled, rest])
    n, m = len(labelled), len(rest)
    centred = every - every.mean()
    third = np.mean(centred**3) / np.mean(centred**2) ** 1.5
    # Of rows that are clusters of their own the variance is that of a draw without replacement.
    variance = every.var(ddof=1) * (1 / n + 1 / m)
    z = (labelled.mean() - rest.mean()) / variance**0.5
    assert found.z == pytest.approx(z)
    skew = third * (variance * (n + m - 1) / (centred @ centred)) ** 0.5 * (m - n) / (n + m)
    tail = min(scipy_stats.pearson3.cdf(z, skew), scipy_stats.pearson3.sf(z, skew))
    p = 2 * scipy_stats.t.cdf(scipy_stats.norm.ppf(min(tail, 0.5)), n + m - 1)
    assert found.p == pytest.approx(min(p, 1.0), rel=1e-6)


def test_a_draw_from_two_documents_counts_what_their_rows_share():
    labelled, rest = [4.0, 5.0, 4.0, 5.0], [1.0, 2.0, 1.0, 4.0, 2.0, 1.0]
    of, of_rest = [*"aaaa"], [*"bbbabb"]
    scores, names = np.array(labelled + rest), np.array(of + of_rest)
    sides = np.array([1 / 4] * 4 + [-1 / 6] * 6)
    means = {name: scores[names == name].mean() for name in "ab"}
    n = {name: (names == name).sum() for name in "ab"}
    between = sum(n[name] * (means[name] - scores.mean()) ** 2 for name in "ab")
    inside = (
        sum(
            (scores[names == name] - means[name]) @ (scores[names == name] - means[name])
            for name in "ab"
        )
        / 8
    )
    typical = 10 - sum(size**2 for size in n.values()) / 10
    shared = sum(sides[names == name].sum() ** 2 for name in "ab") / typical
    variance = shared * between + (sides @ sides - shared) * inside
    found = stats.draw_test(labelled, rest, of, of_rest)
    assert found.z == pytest.approx(sides @ scores / variance**0.5)


@pytest.mark.parametrize("seed", range(6))
def test_a_draw_over_many_documents_has_satterthwaites_degrees_of_freedom(seed):
    rng = np.random.default_rng(seed)
    documents = np.repeat(np.arange(9), rng.integers(2, 8, 9))
    scores = np.round(3 + rng.normal(size=9)[documents] + rng.exponential(size=len(documents)))
    is_labelled = rng.random(len(documents)) < 0.3
    n, m = is_labelled.sum(), (~is_labelled).sum()
    rows, groups = n + m, 9
    sides = np.where(is_labelled, 1 / n, -1 / m)
    of = [documents == name for name in range(9)]
    between = sum(rows_of.sum() * (scores[rows_of].mean() - scores.mean()) ** 2 for rows_of in of)
    inside = sum(((scores[rows_of] - scores[rows_of].mean()) ** 2).sum() for rows_of in of)
    between /= groups - 1
    inside /= rows - groups
    between = max(between, inside)
    typical = (rows - sum(rows_of.sum() ** 2 for rows_of in of) / rows) / (groups - 1)
    shared = sum(sides[rows_of].sum() ** 2 for rows_of in of) / typical
    parts = np.array([shared * between, (sides @ sides - shared) * inside])
    variance = parts.sum()
    df = variance**2 / (parts[0] ** 2 / (groups - 1) + parts[1] ** 2 / (rows - groups))
    z = sides @ scores / variance**0.5
    spread = scores.var(ddof=1)
    skew = scipy_stats.skew(scores) * (variance / spread) ** 0.5 * (m - n) / rows
    tail = min(scipy_stats.pearson3.cdf(z, skew), scipy_stats.pearson3.sf(z, skew))
    found = stats.draw_test(
        scores[is_labelled], scores[~is_labelled], documents[is_labelled], documents[~is_labelled]
    )
    assert found.z == pytest.approx(z)
    assert found.p == pytest.approx(2 * student.cdf(scipy_stats.norm.ppf(tail), df), rel=1e-6)
