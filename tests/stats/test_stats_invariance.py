"""What must not change an estimate: a unit, an empty part, a row that counts nothing."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ragnb import stats


def test_a_document_without_weight_or_without_questions_does_not_enter_the_error():
    shares = np.array([0.5, 0.5])
    questions = np.array([5.0, 5.0])
    squares = np.array([0.4, 0.6])
    two = stats.stratified_se(shares, questions, squares)
    for share, n, left in [(0.0, 40.0, 9.0), (0.0, 0.0, 0.0), (0.3, 0.0, 0.0)]:
        three = stats.stratified_se(
            np.append(shares, share), np.append(questions, n), np.append(squares, left)
        )
        assert [float(x) for x in three] == pytest.approx([float(x) for x in two])


def test_scores_that_do_not_vary_have_all_degrees_of_freedom():
    se, df = stats.stratified_se(np.array([0.5, 0.5]), np.array([4.0, 6.0]), np.zeros(2))
    assert (float(se), float(df)) == (0.0, 8.0)


def test_without_the_judge_only_labelled_clusters_count():
    rng = np.random.default_rng(4)
    human = rng.normal(size=12)
    judge = human + rng.normal(scale=0.3, size=12)
    more = rng.normal(size=40)
    names = np.repeat(list("abcd"), 3)
    others = [f"other{i}" for i in range(40)]
    alone = stats.ppi_jackknife(
        human, judge, more, clusters=names, judged_clusters=others, weight=0.0, ends=(-9, 9)
    )
    by_hand = stats.clustered_mean(human, names, ends=(-9, 9))
    assert alone.n_clusters == by_hand.n_clusters == 4
    assert (alone.value, alone.low, alone.high) == pytest.approx(
        (by_hand.value, by_hand.low, by_hand.high)
    )


@pytest.mark.parametrize("gaps", [[1.0, 4.0], [1.0, 4.0, -2.0]])
def test_limits_of_agreement_of_a_few_pairs_by_hand(gaps):
    n = len(gaps)
    mean = np.mean(gaps)
    sd = np.std(gaps, ddof=1)
    low, high = stats.limits_of_agreement(gaps, [0.0] * n, factor=2.0)
    se = sd * np.sqrt(1 / n + 2.0**2 / (2 * (n - 1)))
    half = scipy_stats.t.ppf(0.975, n - 1) * se
    for limit, value in ((low, mean - 2 * sd), (high, mean + 2 * sd)):
        found = (limit.value, limit.se, limit.low, limit.high)
        assert found == pytest.approx((value, se, value - half, value + half))


def test_a_balanced_order_places_no_group_early_or_late():
    groups = np.repeat(["small", "middle", "large"], [3, 8, 29])
    n = len(groups)
    places = {name: [] for name in np.unique(groups)}
    for seed in range(300):
        order = groups[stats.balanced_order(groups, seed=seed)]
        for name, found in places.items():
            found.append(np.flatnonzero(order == name).mean())
    for name, found in places.items():
        error = np.std(found) / np.sqrt(len(found))
        assert abs(np.mean(found) - (n - 1) / 2) < max(4 * error, 0.02), name


def test_the_error_of_documents_that_differ_has_the_degrees_of_freedom_of_satterthwaite():
    shares = np.array([0.9, 0.06, 0.04])
    questions = np.array([4.0, 6.0, 3.0])
    squares = np.array([0.01, 1.2, 0.3])
    freedom = (questions - 1).sum()
    pool = squares.sum() / freedom
    # Each variance as if five more questions had the pooled one.
    parts = shares**2 * (squares + 5 * pool) / (questions + 4) / questions
    df = parts.sum() ** 2 / (parts**2 / (questions + 4)).sum()
    assert df < freedom
    found = stats.stratified_se(shares, questions, squares)
    assert [float(x) for x in found] == pytest.approx([np.sqrt(parts.sum()), df])


def test_the_mean_of_a_few_people_without_ends_has_the_interval_of_students_t():
    human = np.array([3.0, 4.0, 7.0, 5.0, 1.0])
    found = stats.ppi_jackknife(
        human, human + 1, [4.0, 4.0], weight=0.0, ends=(-np.inf, np.inf), level=0.9
    )
    wanted = scipy_stats.ttest_1samp(human, 0).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx(tuple(wanted))


def test_the_p_value_of_a_difference_that_no_draw_contradicts_is_the_smallest_there_is():
    old = np.linspace(0, 1, 60)
    found = stats.quantile_difference(old + 5, old, q=0.5, resamples=999)
    assert found.p == pytest.approx(2 / 1000)


def test_a_value_on_its_threshold_is_decided_by_no_number_of_questions():
    # Nothing varies and nothing is apart: 0/0 is no chance.
    assert stats.questions_to_decide(1.0, 1.0, 50, 49, 0.95, size=50) is None
    assert stats.questions_to_decide(0.5, 0.5, 50, 49, 0.95, se=0.0) is None
    assert stats.questions_to_decide(1.0, 0.9, 50, 49, 0.95, size=50) == 1


@pytest.mark.parametrize("side", [0, 1])
def test_a_share_that_varies_less_than_independent_answers_would_is_tested_as_its_interval_says(
    side,
):
    value = 0.8
    ends = stats.mean_interval(
        np.array(value), np.array(0.01), np.array(10.0), np.array(50.0), (0.0, 1.0), binary=True
    )
    # n is at most Kish's: p(1 - p)/se² would be 1,600.
    assert float(ends[1] - ends[0]) > 0.1
    found = stats.Estimate(value, *map(float, ends), 0.01, 50, 10, 9.0, 50.0)
    p = stats.p_above(found, float(ends[side]), share=True)
    assert p == pytest.approx([0.025, 0.975][side], abs=1e-6)


def test_one_score_at_an_end_is_a_share_like_any_other():
    plain = {"value": np.array(0.95), "se": np.array(0.01), "g_eff": np.array(8.0)}
    ends = [
        stats.mean_interval(
            *plain.values(), np.array(20.0), (0.0, 1.0), elsewhere=(np.array(0.0), np.array(n))
        )
        for n in (1.0, 30.0)
    ]
    # None of the scores lies elsewhere, of one as of thirty.
    assert [float(x) for x in ends[0]] == pytest.approx([float(x) for x in ends[1]])


def test_every_unit_is_drawn():
    ones = np.ones((3, 1))
    for unit in range(3):
        values = np.zeros((3, 1))
        values[unit] = 1.0
        means = stats.resampled_means(
            np.ones(3, dtype=np.int64), ones, values, 0 * ones, resamples=500, seed=1
        )
        assert float(means.mean()) == pytest.approx(1 / 3, abs=0.06)


def test_more_than_thirty_times_the_questions_is_no_plan():
    needed = [
        stats.questions_to_decide(0.8 + gap, 0.8, 84, 13, 0.95, size=84)
        for gap in np.linspace(0.025, 0.045, 201)
    ]
    known = [n for n in needed if n is not None]
    # A little nearer to the threshold a few more are needed, up to 30 × 84 and no further.
    assert 2470 < max(known) <= 2520
    assert needed[0] is None
    assert known == sorted(known, reverse=True)


@pytest.mark.parametrize("width", [9.0, 1 / 3])
def test_the_width_of_the_range_scales_an_interval_and_changes_nothing_else(width):
    rng = np.random.default_rng(11)
    shares = rng.beta(4, 1, size=60).round(2)
    names = np.arange(60) // 5
    one = stats.clustered_mean(shares, names, ends=(0, 1))
    other = stats.clustered_mean(1 + width * shares, names, ends=(1, 1 + width))
    ends = [1 + width * end for end in (one.low, one.value, one.high)]
    assert [other.low, other.value, other.high] == pytest.approx(ends)
    assert (other.n_eff, other.df) == pytest.approx((one.n_eff, one.df))


def test_a_contrast_is_the_jackknife_of_two_means_over_documents_of_many_sizes():
    rng = np.random.default_rng(12)
    names = np.repeat(list("abcdef"), [2, 9, 4, 1, 7, 3])
    values = rng.normal(size=26)
    inside = np.arange(26) % 3 == 0
    weights = rng.uniform(0.5, 2, size=26)

    def difference(kept):
        sides = (kept & inside, kept & ~inside)
        first, second = (np.average(values[side], weights=weights[side]) for side in sides)
        return first - second

    whole = difference(names != "")
    without = np.array([difference(names != name) for name in "abcdef"])
    se = np.sqrt(5 / 6 * ((without - whole) ** 2).sum())
    sizes = np.array([weights[names == name].sum() for name in "abcdef"])
    df = sizes.sum() ** 2 / (sizes**2).sum() - 1
    half = scipy_stats.t.ppf(0.975, df) * se
    found = stats.contrast(values, inside, names, weights=weights)
    assert [found.value, found.se, found.df] == pytest.approx([whole, se, df])
    assert [found.low, found.high] == pytest.approx([whole - half, whole + half])


@pytest.mark.parametrize("df", [0.4, 1.0, 1.5, 30.0])
@pytest.mark.parametrize("bounded", [False, True])
def test_an_interval_has_at_least_one_degree_of_freedom(df, bounded):
    t = scipy_stats.t.ppf(0.975, max(df, 1))
    value, half = 0.3, t * 0.01
    low, high = stats.t_interval(value, 0.01, df, 0.95, bounded=bounded)
    if bounded:
        centre = np.arctanh(value)
        ends = np.tanh([centre - half / (1 - value**2), centre + half / (1 - value**2)])
    else:
        ends = [value - half, value + half]
    assert [low, high] == pytest.approx(list(ends))
