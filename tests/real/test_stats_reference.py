"""Every value of reference.json that ragnb.stats has a formula for, computed from the real ratings."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from ragnb import stats

SETS = [
    *(f"mtrag_{name}_10pt" for name in ("faithfulness", "overall3")),
    *(f"hanna_{name}_beluga13b" for name in ("coherence", "complexity", "relevance")),
    *(f"ragchecker_{name}" for name in ("completeness", "correctness", "overall")),
]
OTHER_INTERVAL = "an interval that ragnb does not give"
OTHER_NUMBER = "a number that ragnb does not give"
FAMILIAR = "rests on the familiar standard error, where ragnb gives the jackknife's"
TEST = "a test that ragnb does not make"
# Leaves of reference.json that no formula of ragnb.stats should give, by the end of their path.
UNREACHED = {
    "within_tol/clopper95": OTHER_INTERVAL,
    "within_tol/boot95_iid": OTHER_INTERVAL,
    "within_tol/boot95_cluster": OTHER_INTERVAL,
    "recal/cv_scheme": "a sentence; the folds are tested through the values",
    "human10/wilcoxon_pratt_p": TEST,
    "human10/sign_flip_p": TEST,
    "judge10/wilcoxon_pratt_p": TEST,
    "judge10/sign_flip_p": TEST,
    "mtrag_turn_weighted/se_freq_weight_TRAP": "what weights must not be taken for",
    "qwk_rounded_no_labels_TRAP": "what levels must not be left out of",
    **dict.fromkeys(
        ("/cluster_se", "/cluster_t95", "/deff", "/wilson95_neff", "/se_paired_cluster"), FAMILIAR
    ),
    **dict.fromkeys(
        ("ppi++_ci95", "ppi_lam1_ci95", "corr/pearson_fisher95", "icc11_ci95"), OTHER_INTERVAL
    ),
    **dict.fromkeys(("slope_judge_on_human", "lin_ccc_n_minus_1", "/theta", "/ci95"), OTHER_NUMBER),
    **dict.fromkeys(("pair_exact", "pair_within1_on_4pt", "pair_mae_10pt"), OTHER_NUMBER),
    **dict.fromkeys(
        ("/pearson", "/spearman", "/nominal", "/ordinal", "kripp_nominal"), OTHER_NUMBER
    ),
    **dict.fromkeys(
        ("kripp_ordinal", "/rmse", "kappa_within1", "cohen_kappa_unweighted"), OTHER_NUMBER
    ),
    "bland_altman/pct_outside_loa": OTHER_NUMBER,
    **dict.fromkeys(("icc21", "icc31", "icc21_ci95", "icc31_ci95", "corr_systems"), OTHER_NUMBER),
    **dict.fromkeys(("lin_ccc", "lin_Cb", "lin_ccc_ci95_fisher"), OTHER_NUMBER),
}


@dataclass
class Ratings:
    judge: np.ndarray
    human: np.ndarray
    cluster: np.ndarray
    system: np.ndarray
    scale: tuple[int, int]
    rows: pd.DataFrame


@pytest.fixture(scope="module")
def ratings(shared):
    columns = {
        "mtrag": ("judge10", "human10", (1, 10)),
        "hanna": ("judge_Beluga-13B", "human", (1, 5)),
        "ragchecker": ("judge", "human", (-2, 2)),
    }
    found = {}
    for name in SETS:
        source, dimension = name.split("_")[:2]
        judge, human, scale = columns[source]
        file = "ragchecker_meta" if source == "ragchecker" else source
        frame = pd.read_csv(shared / "data" / "ratings" / f"{file}.csv")
        rows = frame[frame["dimension"] == dimension]
        parts = [rows[column].to_numpy() for column in (judge, human, "cluster", "system")]
        found[name] = Ratings(*parts, scale, rows)
    return found


def levels(r):
    return np.arange(r.scale[0], r.scale[1] + 1)


def rounded(r):
    return stats.round_half_up(r.judge), stats.round_half_up(r.human)


def flags(r):
    return stats.within(r.judge, r.human)


def ends(estimate):
    return estimate.low, estimate.high


def wilson(p, n):
    z = np.array(scipy_stats.norm.ppf(0.975))
    return [float(end) for end in stats.wilson(np.array(p), np.array(float(n)), z)]


def by_system(r):
    return pd.DataFrame({"j": r.judge, "h": r.human}).groupby(r.system).mean()


def alpha(pair):
    return stats.krippendorff_alpha(np.stack(pair, axis=1)).value


def limits(r):
    return stats.limits_of_agreement(r.judge, r.human)


def recal(r, kind):
    return stats.recalibrate(r.judge, r.human, r.cluster)[kind]


TABLE = {
    "n": lambda r: stats.bias(r.judge, r.human).n,
    "n_clusters": lambda r: stats.bias(r.judge, r.human, r.cluster).n_clusters,
    "mean_human": lambda r: stats.clustered_mean(r.human, r.cluster).value,
    "mean_judge": lambda r: stats.clustered_mean(r.judge, r.cluster).value,
    "within_tol/rate": lambda r: stats.within_share(r.judge, r.human, r.cluster).value,
    "within_tol/wilson95": lambda r: wilson(flags(r).mean(), len(r.judge)),
    "within_tol/wilson95_scipy": lambda r: wilson(flags(r).mean(), len(r.judge)),
    "exact_agreement_rounded": lambda r: stats.within_share(*rounded(r), tolerance=0).value,
    "within1_rounded": lambda r: stats.within_share(*rounded(r)).value,
    "within1_chance_floor": lambda r: stats.chance_floor(*rounded(r)),
    "within1_best_constant": lambda r: (
        stats.best_constant(rounded(r)[1], levels=levels(r))[1].value
    ),
    "mae": lambda r: stats.mae(r.judge, r.human, r.cluster).value,
    "bias/mean": lambda r: stats.bias(r.judge, r.human, r.cluster).value,
    "bias/t95": lambda r: ends(stats.bias(r.judge, r.human)),
    "bland_altman/sd_diff": lambda r: (limits(r)[1].value - limits(r)[0].value) / 2 / 1.96,
    "bland_altman/loa": lambda r: [end.value for end in limits(r)],
    "bland_altman/loa_lower_ci": lambda r: ends(limits(r)[0]),
    "bland_altman/loa_upper_ci": lambda r: ends(limits(r)[1]),
    "bland_altman/slope_diff_on_mean": lambda r: (
        stats.slope_on_mean(r.judge, r.human, r.cluster).value
    ),
    # The reference rounds its columns to ten decimals for the pooled values alone.
    "corr/kendall_b": lambda r: stats.kendall(r.judge, r.human, r.cluster, digits=10).value,
    "corr/mean_within_cluster/kendall_b": lambda r: (
        stats.kendall_within(r.judge, r.human, r.cluster).value
    ),
    "corr/mean_within_system/kendall_b": lambda r: (
        stats.kendall_within(r.judge, r.human, r.system).value
    ),
    "corr/system_level/kendall_b": lambda r: (
        stats.kendall_of_means(r.judge, r.human, r.system).value
    ),
    "qwk_rounded": lambda r: stats.quadratic_kappa(r.judge, r.human, r.scale, r.cluster).value,
    "qwk_rounded_statsmodels": lambda r: stats.quadratic_kappa(r.judge, r.human, r.scale).value,
    "kripp_alpha_rounded/interval": lambda r: alpha(rounded(r)),
    "kripp_alpha_raw/interval": lambda r: alpha((r.judge, r.human)),
    "icc11": lambda r: stats.anova_icc(
        np.r_[r.judge, r.human], np.tile(np.arange(len(r.judge)), 2)
    ),
    "recal/mae_raw": lambda r: stats.mae(recal(r, "raw"), r.human).value,
    "recal/mae_isotonic": lambda r: stats.mae(recal(r, "isotonic"), r.human).value,
    "recal/mae_linear": lambda r: stats.mae(recal(r, "linear"), r.human).value,
    "recal/mae_constant_median": lambda r: stats.mae(recal(r, "constant"), r.human).value,
    "recal/within_raw": lambda r: stats.within_share(recal(r, "raw"), r.human).value,
    "recal/within_isotonic": lambda r: stats.within_share(recal(r, "isotonic"), r.human).value,
    "recal/within_linear": lambda r: stats.within_share(recal(r, "linear"), r.human).value,
    "recal/within_constant_median": lambda r: (
        stats.within_share(recal(r, "constant"), r.human).value
    ),
    "recal/bias_isotonic": lambda r: stats.bias(recal(r, "isotonic"), r.human).value,
}


@pytest.mark.parametrize("key", TABLE)
@pytest.mark.parametrize("name", SETS)
def test_agreement_is_the_references(ratings, reference, name, key):
    want = reference[name]
    for part in key.split("/"):
        want = want.get(part, {})
    if not want:
        assert (name[:10], "system" in key) == ("ragchecker", True)  # its rows are pairs of systems
        return
    assert TABLE[key](ratings[name]) == pytest.approx(
        want["value"], abs=want["tol"] + 1e-12, nan_ok=True
    )


BAND = {
    "n": lambda b: stats.bias(b.judge, b.human).n,
    "clusters": lambda b: stats.bias(b.judge, b.human, b.cluster).n_clusters,
    "within": lambda b: stats.within_share(b.judge, b.human, b.cluster).value,
    "wilson95": lambda b: wilson(flags(b).mean(), len(b.judge)),
    "bias": lambda b: stats.bias(b.judge, b.human, b.cluster).value,
}


@pytest.mark.parametrize("key", BAND)
@pytest.mark.parametrize("name", SETS)
def test_bands_by_the_judges_score_are_the_references(ratings, reference, name, key):
    r = ratings[name]
    for score, want in reference[name]["judge_score_bands"].items():
        at = stats.round_half_up(r.judge) == float(score)
        band = Ratings(r.judge[at], r.human[at], r.cluster[at], r.system[at], r.scale, r.rows[at])
        assert BAND[key](band) == pytest.approx(want[key], abs=1e-9), score


def labelled(r, n):
    order = np.random.default_rng(0).permutation(len(r.human))
    return order[:n], order[n:]


def ppi(r, n, **how):
    mine, rest = labelled(r, n)
    return stats.ppi_jackknife(r.human[mine], r.judge[mine], r.judge[rest], **how)


PPI = {
    "ppi++_lam": lambda r, n: ppi(r, n).weight,
    "ppi++_point": lambda r, n: ppi(r, n).value,
    "human_only_t95": lambda r, n: ends(ppi(r, n, weight=0.0)),
    "judge_only_t95": lambda r, n: ends(stats.clustered_mean(r.judge)),
}
PPI_SETS = ["mtrag_faithfulness_10pt", "mtrag_overall3_10pt", "hanna_complexity_beluga13b"]


@pytest.mark.parametrize("key", PPI)
@pytest.mark.parametrize("n", [50, 100, 200])
@pytest.mark.parametrize("name", PPI_SETS)
def test_the_corrected_mean_is_the_references(ratings, reference, name, n, key):
    want = reference[name]["ppi"][f"n{n}"][key]
    assert PPI[key](ratings[name], n) == pytest.approx(want["value"], abs=want["tol"])
    truth = reference[name]["ppi"]["truth_full_human_mean"]
    assert stats.clustered_mean(ratings[name].human).value == pytest.approx(
        truth["value"], abs=truth["tol"]
    )


@pytest.mark.parametrize("n", [50, 100, 200])
@pytest.mark.parametrize("name", PPI_SETS)
def test_ppi_covers_as_the_reference_found(ratings, reference, name, n):
    r, rng, draws = ratings[name], np.random.default_rng(n), 400
    want = reference[name]["ppi"][f"n{n}"]["coverage_iid"]
    truth = r.human.mean()
    found = {key: [] for key in ("ppi++_t", "ppi_lam1", "human_only_t", "judge_only")}
    for _ in range(draws):
        mine, rest = rng.integers(0, len(r.human), n), rng.integers(0, len(r.human), 1000)
        args = r.human[mine], r.judge[mine], r.judge[rest]
        found["ppi++_t"].append(stats.ppi_jackknife(*args))
        found["ppi_lam1"].append(stats.ppi_jackknife(*args, weight=1.0))
        found["human_only_t"].append(stats.ppi_jackknife(*args, weight=0.0))
        found["judge_only"].append(stats.clustered_mean(r.judge[rest]))
    for key, estimates in found.items():
        low, high = np.array([ends(estimate) for estimate in estimates]).T
        covered = np.mean((low <= truth) & (truth <= high))
        noise = np.sqrt(2 * max(want[key]["coverage"] * (1 - want[key]["coverage"]), 0.01) / draws)
        assert covered == pytest.approx(want[key]["coverage"], abs=4 * noise), key
        # The reference takes λ as known, the jackknife finds it anew: by a tenth wider with 50 labels.
        slack = 0.1 if key == "ppi++_t" else 0.05
        assert np.mean(high - low) == pytest.approx(want[key]["mean_width"], rel=slack), key


DIMENSIONS = ["faithfulness", "appropriateness", "completeness", "naturalness"]
CEILING = {
    "loo_mae_10pt": lambda g: stats.mae(*stats.leave_one_out(1 + 3 * (g - 1))[1:]).value,
    "loo_within1_on_10pt": lambda g: stats.human_ceiling(1 + 3 * (g - 1)).value,
    "kripp_interval": lambda g: stats.krippendorff_alpha(g).value,
}


@pytest.mark.parametrize("key", CEILING)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_human_ceiling_is_the_references(shared, reference, dimension, key):
    rows = pd.read_csv(shared / "data" / "ratings" / "mtrag_raters.csv")
    rows = rows[rows["dimension"] == dimension]
    grid = rows.pivot_table(index=["item_id", "system"], columns="rater", values="score").to_numpy()
    want = reference["mtrag_human_ceiling"][dimension][key]
    assert CEILING[key](grid) == pytest.approx(want["value"], abs=want["tol"])


@pytest.mark.parametrize("name", ["completeness", "correctness", "overall"])
def test_ragcheckers_human_ceiling_is_the_references(ratings, reference, name):
    rows = ratings[f"ragchecker_{name}"].rows
    ceiling = reference["ragchecker_human_ceiling"][name]
    found = stats.within_share(rows["human1"], rows["human2"])
    assert found.value == pytest.approx(ceiling["within1"]["value"], abs=1e-9)


PAIRED = {
    "mean_diff": lambda d: stats.clustered_mean(d.a - d.b).value,
    "paired_t95": lambda d: ends(stats.clustered_mean(d.a - d.b)),
    "paired_p": lambda d: (
        2 * scipy_stats.t.sf(abs((d.a - d.b).mean()) / iid_se(d.a - d.b), len(d.a) - 1)
    ),
    "se_paired": lambda d: iid_se(d.a - d.b),
    "se_unpaired": lambda d: np.hypot(iid_se(d.a), iid_se(d.b)),
}


def iid_se(values):
    return stats.clustered_mean(values).se


@pytest.mark.parametrize("key", PAIRED)
@pytest.mark.parametrize("column", ["human10", "judge10"])
def test_the_paired_difference_is_the_references(ratings, reference, column, key):
    rows = ratings["mtrag_overall3_10pt"].rows
    wide = rows.pivot(index=["item_id", "cluster"], columns="system", values=column).reset_index()
    wide = wide.rename(columns={"gpt-4o": "a", "llama-3.1-405b-instruct": "b"})
    want = reference["mtrag_paired_gpt4o_minus_llama405b"][column][key]
    assert PAIRED[key](wide) == pytest.approx(want["value"], abs=want["tol"])


def test_the_se_of_a_weighted_total_comes_from_the_totals(shared, reference):
    rows = pd.read_csv(shared / "data" / "ratings" / "mtrag.csv")
    weights = {"faithfulness": 0.5, "appropriateness": 0.3, "completeness": 0.2}
    for system, want in reference["mtrag_weighted_mean"].items():
        mine = rows[(rows["system"] == system) & rows["dimension"].isin(weights)]
        wide = mine.pivot(index=["item_id", "cluster"], columns="dimension", values="human10")
        total = sum(wide[name] * w for name, w in weights.items())
        found = stats.clustered_mean(total)
        apart = np.sqrt(sum((w * iid_se(wide[name])) ** 2 for name, w in weights.items()))
        assert found.value == pytest.approx(want["value"]["value"], abs=1e-9)
        assert found.se == pytest.approx(want["se_item"]["value"], abs=1e-9)
        assert apart == pytest.approx(want["se_if_dims_wrongly_independent"]["value"], abs=1e-9)


def test_weights_are_not_frequencies(ratings, reference):
    r, want = ratings["mtrag_overall3_10pt"], reference["mtrag_turn_weighted"]
    v = r.rows["turn"].to_numpy(dtype=float)
    found = stats.clustered_mean(r.human, r.cluster, weights=v)
    assert found.value == pytest.approx(want["mean"]["value"], abs=1e-9)
    assert float(stats.kish(v.sum(), (v**2).sum())) == pytest.approx(
        want["kish_neff"]["value"], abs=1e-9
    )
    assert found.se == pytest.approx(want["se_cluster"]["value"], rel=0.1)
    assert found.se > 5 * want["se_freq_weight_TRAP"]["value"]


def test_sample_sizes_are_the_references(reference):
    for case, want in reference["sample_size_within1"].items():
        target, share = (float(part.split("=")[1]) for part in case.split(","))
        assert stats.sample_size_normal(target, share) == want["normal"]
        assert stats.sample_size_exact(target, share) == want["exact"]
        # The check is a simulation of 20,000 draws.
        power = float(stats.binomial_power([want["exact"]], target, share)[0])
        assert power == pytest.approx(want["power_check"], abs=0.01)


def leaves(node, path=""):
    if isinstance(node, dict) and "value" not in node:
        for key, below in node.items():
            yield from leaves(below, f"{path}/{key}" if path else key)
    else:
        yield path


def test_no_value_of_the_reference_is_passed_over(reference):
    tested = {f"{name}/{key}" for name in SETS for key in TABLE}
    tested |= {f"{name}/ppi/n{n}/{key}" for name in PPI_SETS for n in (50, 100, 200) for key in PPI}
    tested |= {f"{name}/ppi/truth_full_human_mean" for name in PPI_SETS}
    tested |= {f"mtrag_human_ceiling/{name}/{key}" for name in DIMENSIONS for key in CEILING}
    pair = "mtrag_paired_gpt4o_minus_llama405b"
    tested |= {f"{pair}/{column}/{key}" for column in ("human10", "judge10") for key in PAIRED}
    whole = (
        "ragchecker_table2",
        "ragchecker_human_ceiling",
        "mtrag_weighted_mean",
        "mtrag_turn_weighted",
    )
    whole += ("sample_size_within1", "sample_size_zero_failures")  # no formula needs the second
    rest = [
        path for path in leaves(reference) if path not in tested and path.split("/")[0] not in whole
    ]
    rest = [path for path in rest if "judge_score_bands" not in path and "/coverage" not in path]
    assert {path for path in rest if not path.endswith(tuple(UNREACHED))} == set()
