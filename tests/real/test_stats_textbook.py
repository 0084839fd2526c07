"""The examples of textbook.json that ragnb has a formula for, at the tolerance that stands beside each."""

import json

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.stats import t_interval


@pytest.fixture(scope="module")
def examples(shared):
    return json.loads((shared / "reference" / "textbook.json").read_text(encoding="utf-8"))[
        "examples"
    ]


def same(example, key, got):
    """The published value at its tolerance, the computed one at 1e-9 where the example has it."""
    tolerance = example["tol"].get(key, example["tol"].get("*"))
    if key in example["published"]:
        assert got == pytest.approx(example["published"][key], abs=tolerance), key
    assert got == pytest.approx(example["computed"][key], abs=1e-9), key


def ends(estimate):
    return [estimate.low, estimate.high]


@pytest.mark.parametrize("name", ["krippendorff_3coders_15units", "krippendorff_2011_4obs_12units"])
def test_alpha_is_krippendorffs(examples, name):
    grid = np.array(examples[name]["data"], dtype=float).T
    same(examples[name], "interval", stats.krippendorff_alpha(grid).value)


def test_limits_of_agreement_are_bland_and_altmans(examples):
    example = examples["bland_altman_1986_pefr"]
    wright, mini = (np.array(example["data"][key]) for key in ("wright_first", "mini_first"))
    two, usual = (
        stats.limits_of_agreement(wright, mini, factor=2),
        stats.limits_of_agreement(wright, mini),
    )
    bias, n = stats.bias(wright, mini), len(wright)
    sd = (two[1].value - two[0].value) / 4
    se = np.sqrt(3 * sd**2 / n)  # their approximation of 1986; ours is that of 1999
    for key, got in {
        "mean_diff": bias.value,
        "sd": (usual[1].value - usual[0].value) / 2 / 1.96,
        "loa_2sd": [two[0].value, two[1].value],
        "loa_196": [usual[0].value, usual[1].value],
        "se_mean": bias.se,
        "ci_mean": ends(bias),
        "se_loa": se,
        "ci_lower_loa": list(t_interval(two[0].value, se, n - 1, 0.95)),
        "ci_upper_loa": list(t_interval(two[1].value, se, n - 1, 0.95)),
    }.items():
        same(example, key, got)
    assert two[0].se == pytest.approx(se, rel=0.03)


def test_the_analysis_of_variance_is_shrout_and_fleiss(examples):
    example = examples["shrout_fleiss_1979"]
    items, raters = np.shape(example["data"])
    same(
        example,
        "icc11",
        stats.anova_icc(np.ravel(example["data"]), np.repeat(np.arange(items), raters)),
    )


def test_wilson_is_newcombes(examples):
    example, z = examples["newcombe_1998_wilson"], np.array(scipy_stats.norm.ppf(0.975))
    for case in example["data"]:
        k, n = (float(part) for part in case.split("/"))
        same(example, case, [float(end) for end in stats.wilson(np.array(k / n), np.array(n), z)])


def test_clustered_standard_errors_are_millers(examples):
    values, clusters = np.arange(20), np.arange(20) % 4
    same(examples["inspect_ai_clustered_se"], "se", stats.clustered_mean(values, clusters).se)
    example = examples["miller_2024_identities"]
    scores = example["data"]["scores"]
    gap = stats.clustered_mean(scores, range(6)).se - np.std(scores, ddof=1) / np.sqrt(6)
    assert gap == pytest.approx(example["published"]["singleton_clusters_equals_iid"], abs=1e-9)
    n = 200
    twice = np.repeat(np.arange(n) % 3 == 0, 2).astype(float)
    paired, single = np.repeat(np.arange(n), 2), np.arange(2 * n)
    ratio = stats.clustered_mean(twice, paired).se / stats.clustered_mean(twice, single).se
    small = np.sqrt((2 * n - 1) / (2 * n - 2))  # G/(G−1) of n pairs against that of 2n rows
    assert ratio / small == pytest.approx(
        example["published"]["perfectly_correlated_pairs_ratio"], rel=1e-9
    )


def test_a_paired_variance_is_that_of_both_less_twice_the_covariance(examples):
    data = examples["miller_2024_paired_var_identity"]["data"]
    a, b = np.array(data["a"]), np.array(data["b"])
    paired = stats.clustered_mean(a - b).se ** 2
    apart = stats.clustered_mean(a).se ** 2 + stats.clustered_mean(b).se ** 2
    assert paired == pytest.approx(apart - 2 * np.cov(a, b)[0, 1] / len(a), abs=1e-12)


def test_a_level_that_nobody_gave_does_not_move_the_quadratic_kappa(examples):
    trap = examples["qwk_missing_levels_trap"]
    judge, human = trap["judge"], trap["human"]
    full = stats.quadratic_kappa(judge, human, (1, 10)).value
    assert full == pytest.approx(trap["qwk_value_distance_1_10"], abs=1e-9)
    with pytest.raises(RagnbError, match="outside scale"):
        stats.quadratic_kappa(judge, human, (1, 5))


def test_thirds_that_differ_by_one_are_within_one(examples):
    trap = examples["float_tolerance_trap"]
    assert abs(trap["judge"] - trap["human"]) > 1
    assert stats.within([trap["judge"]], [trap["human"]]).tolist() == [1.0]
