"""How many labels show a share, how likely they do, and whether those at hand were drawn at random."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.stats import binom
from scipy.stats import t as student

from ragnb import stats
from ragnb.errors import RagnbError


@given(st.integers(1, 400), st.floats(0.3, 0.95), st.floats(0.3, 0.99))
def test_power_is_that_of_scipys_binomial(n, target, share):
    critical = next(k for k in range(n + 1) if scipy_stats.binom.sf(k, n, target) <= 0.05)
    want = scipy_stats.binom.sf(critical, n, share)
    assert stats.binomial_power([n], target, share)[0] == pytest.approx(want, abs=1e-10)


def test_of_a_rare_success_the_first_one_is_enough():
    # P(X > 0) of three tries at 1 % is .03.
    assert stats.binomial_power([3], 0.01, 0.5)[0] == pytest.approx(1 - 0.5**3)


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


def test_a_number_of_labels_whose_chance_is_the_wanted_power_suffices():
    rng = np.random.default_rng(2)
    flags = (rng.random(60) < 0.87).astype(float)
    found = stats.labels_needed(flags, target=0.8)
    assert 0.5 < found.most < 1
    again = stats.labels_needed(flags, target=0.8, power=found.most)
    assert again.likely is not None
    assert stats.labels_needed(flags, target=0.8, power=found.most + 1e-6).likely is None


@pytest.mark.parametrize(
    ("size", "planned", "alpha"), [(120, None, 0.05), (200, None, 0.05), (200, 200, 0.025)]
)
def test_the_chance_of_a_verdict_is_the_exact_tests_and_a_plan_halves_its_error(
    size, planned, alpha
):
    chances = []
    for n in range(size, size + 61):
        successes = np.arange(n + 2)
        rejects = scipy_stats.binom.sf(successes - 1, n, 0.8) <= alpha
        least = successes[rejects][0]
        chances.append(scipy_stats.binom.sf(least - 1, n, 0.9))
    flags = [1] * 90 + [0] * 10
    curve = stats.label_budget(flags, target=0.8, sizes=[size], labels_planned=planned)
    assert curve["probability"].item() == pytest.approx(min(chances), rel=1e-9)


def test_labels_needed_give_eighty_percent_power_at_the_planned_bound():
    flags = [1] * 92 + [0] * 8
    once, plan = (
        stats.labels_needed(flags, target=0.8),
        stats.labels_needed(flags, target=0.8, labels_planned=600),
    )
    assert once.total < plan.total < 600
    tells = int(plan.total * (plan.total / 600) ** 0.5)
    least = next(k for k in range(tells + 2) if binom.sf(k - 1, tells, 0.8) <= 0.025)
    assert binom.sf(least - 1, tells, plan.seen) > 0.78
    assert plan.more == plan.total - 100
    assert plan.total == np.ceil(plan.independent ** (2 / 3) * 600 ** (1 / 3))


def test_labels_beyond_the_plan_are_a_new_plan_of_fresh_ones():
    flags = [1] * 46 + [0] * 4
    full = stats.labels_needed(flags, target=0.8, labels_planned=10**6).independent
    at, below = (
        stats.labels_needed(flags, target=0.8, labels_planned=plan) for plan in (full, full - 1)
    )
    assert (at.reason, at.total, at.more) == ("counted", full, full - 50)
    assert (below.reason, below.total, below.more) == ("beyond_plan", full, full)
    spent = stats.labels_needed(flags * 10, target=0.8, labels_planned=499)
    assert (spent.reason, spent.more) == ("beyond_plan", spent.total)
    curve = stats.label_budget(flags, target=0.8, labels_planned=600, sizes=[100, 600, 601])
    assert np.isnan(curve["probability"]).tolist() == [False, False, True]
    assert np.isfinite(curve["low"]).all()
    alone = stats.label_budget(flags, target=0.8, sizes=[100, 600])
    assert (curve["probability"][:2] <= alone["probability"]).all()
    assert curve["probability"][0] < alone["probability"][0]


def test_the_curve_reaches_80_percent_where_the_labels_needed_say():
    rng = np.random.default_rng(15)
    of = np.repeat(np.arange(40), 5)
    flags = (rng.random(200) < np.clip(0.9 + 0.15 * rng.normal(size=40)[of], 0, 1)).astype(float)
    need = stats.labels_needed(flags, of, target=0.75)
    assert need.deff > 1
    around = [need.total - int(2 * need.deff) - 1, need.total]
    curve = stats.label_budget(flags, of, target=0.75, sizes=around)
    assert curve["probability"][0] < 0.8 <= curve["probability"][1]
    assert np.isnan(curve["chance"]).tolist() == [size < 200 for size in around]
    whole = stats.label_budget(flags, of, target=0.75)
    assert (np.diff(whole["probability"]) >= 0).all()
    assert (np.diff(whole["high"] - whole["low"]) < 0).all()
    assert {200.0, float(need.total)} <= set(whole["labels"])
    now = stats.clustered_mean(flags, of, ends=(0, 1))
    at_hand = np.flatnonzero(whole["labels"] == 200)[0]
    assert whole["high"][at_hand] - whole["low"][at_hand] == pytest.approx(
        now.high - now.low, rel=0.25
    )


def test_a_share_at_or_below_its_target_is_never_shown_by_more_labels():
    curve = stats.label_budget([1] * 75 + [0] * 25, target=0.8, sizes=[100, 1000, 5000])
    assert (curve["probability"] <= 0.05).all()
    perfect = stats.label_budget([1.0] * 50, target=0.8)
    assert perfect["probability"][-1] == pytest.approx(1)
    assert (perfect["low"] < 1).all()


@pytest.mark.parametrize("rate", [0.0, 1.0, float("nan")])
@pytest.mark.parametrize("name", ["target", "alpha", "power"])
def test_a_rate_of_all_or_nothing_is_refused_by_name(name, rate):
    with pytest.raises(RagnbError, match=f"{name}={rate} is not between 0 and 1"):
        stats.labels_needed([1, 0, 1, 1], **{name: rate})


def test_plans_are_for_four_fifths_at_five_percent_unless_asked_otherwise():
    flags = [1] * 180 + [0] * 20
    documents = np.arange(200) // 4
    asked = {"target": 0.8, "alpha": 0.05}
    needed = stats.labels_needed(flags, documents, power=0.8, **asked)
    assert stats.labels_needed(flags, documents) == needed
    curve = stats.label_budget(flags, documents)
    for name, values in stats.label_budget(flags, documents, level=0.95, **asked).items():
        np.testing.assert_array_equal(curve[name], values)


@pytest.mark.parametrize("clusters", [None, np.arange(200) // 5])
@pytest.mark.parametrize("weights", [None, np.linspace(1, 4, 200)])
def test_the_chance_under_a_plan_is_the_fourth_root_rules_at_half_the_error(clusters, weights):
    flags = np.array([1] * 18 + [0] * 2)[np.arange(200) % 20]
    options = {"target": 0.8, "weights": weights}
    need = stats.labels_needed(flags, clusters, labels_planned=2000, **options)
    assert need.independent == stats.sample_size_exact(0.8, need.seen, alpha=0.025)
    worth = need.deff * need.independent
    assert need.total == np.ceil(worth ** (2 / 3) * 2000 ** (1 / 3) - 1e-9)
    share = stats.clustered_mean(flags, clusters, ends=(0, 1), level=0.9, weights=weights)
    size = stats.wilson_size(share.value, share.low, share.high, share.df, 0.9)
    shrunk = (size * share.value + 1) / (size + 2)

    def chance(labels):
        growth = labels / 200
        effective = size * growth * (labels / 2000) ** 0.5
        margin = student.ppf(0.975, share.df * growth) * (0.16 / effective) ** 0.5
        sd = (shrunk * (1 - shrunk) / size * (1 - 1 / growth)) ** 0.5
        return student.cdf((share.value - 0.8 - margin) / sd, share.df)

    assert need.chance == pytest.approx(chance(need.total))
    assert need.most == pytest.approx(max(chance(labels) for labels in range(201, 2001)), abs=1e-4)
    curve = stats.label_budget(
        flags, clusters, sizes=[199, 500, 2000, 2001], labels_planned=2000, **options
    )
    assert curve["chance"] == pytest.approx(
        [np.nan, chance(500), chance(2000), np.nan], nan_ok=True
    )


def test_a_design_effect_is_that_of_sizes_and_weights_and_never_less_than_the_interval_says():
    rng = np.random.default_rng(3)
    documents = np.repeat(np.arange(40), rng.integers(1, 9, 40))
    flags = (rng.random(len(documents)) < 0.9 - 0.1 * (documents % 3)).astype(float)
    weights = rng.uniform(1, 5, len(documents))
    need = stats.labels_needed(flags, documents, target=0.6, weights=weights)
    sizes = np.bincount(documents)
    by_sizes = max(1, 1 + (np.sum(sizes**2) / np.sum(sizes) - 1) * need.rho)
    by_weights = len(flags) * np.sum(weights**2) / np.sum(weights) ** 2
    share = stats.clustered_mean(flags, documents, ends=(0, 1), level=0.9, weights=weights)
    size = stats.wilson_size(share.value, share.low, share.high, share.df, 0.9)
    assert need.deff == pytest.approx(max(by_sizes * by_weights, len(flags) / size))
    independent = stats.labels_needed(flags, target=0.6, weights=weights)
    assert independent.deff == pytest.approx(by_weights)


def test_the_curve_of_clustered_labels_is_the_interval_of_so_many_clusters():
    rng = np.random.default_rng(4)
    documents = np.repeat(np.arange(30), rng.integers(1, 12, 30))
    flags = (rng.random(len(documents)) < 0.85).astype(float)
    n, sizes = len(flags), np.bincount(documents)
    need = stats.labels_needed(flags, documents, target=0.7)
    for clusters, per_label in ((documents, n**2 / np.sum(sizes**2) / n), (None, 1.0)):
        deff = stats.labels_needed(flags, clusters, target=0.7).deff
        curve = stats.label_budget(flags, clusters, target=0.7, sizes=[40, 400])
        share = flags.mean()
        for k, labels in enumerate([40, 400]):
            se = (share * (1 - share) * deff / labels) ** 0.5
            ends = stats.mean_interval(
                np.float64(share), se, max(per_label * labels, 1), labels, (0, 1), binary=True
            )
            assert (curve["low"][k], curve["high"][k]) == pytest.approx([float(x) for x in ends])
    marked = [n, need.total] + [need.likely] * (need.likely is not None)
    whole = stats.label_budget(flags, documents, target=0.7)["labels"]
    assert (whole[0], whole[-1]) == (10, max(4 * n, 200, int(1.5 * max(marked))))
    assert set(marked) <= set(whole)


def test_the_curve_goes_half_as_far_again_as_the_labels_that_are_likely_to_do():
    flags = [1] * 167 + [0] * 33
    likely = stats.labels_needed(flags, target=0.8).likely
    assert likely == 2354
    assert stats.label_budget(flags, target=0.8)["labels"][-1] == int(1.5 * likely)
