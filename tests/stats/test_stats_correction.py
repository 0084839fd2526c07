"""Recalibration and corrected means, against scikit-learn and scipy."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GroupKFold

from ragnb import calibrate, stats
from ragnb.errors import RagnbError

COLUMN = st.lists(st.integers(1, 10).map(lambda k: k / 2), min_size=4, max_size=40)


@given(COLUMN, st.randoms(use_true_random=False))
def test_maps_are_those_of_scikit_learn_and_polyfit(judge, random):
    human = [random.choice([1, 2, 3, 4, 5]) for _ in judge]
    at = np.arange(0, 7, 0.25)
    want = IsotonicRegression(out_of_bounds="clip").fit(judge, human).predict(at)
    assert stats.fit_map(judge, human)(at) == pytest.approx(want, abs=1e-9)
    if np.ptp(judge) > 0:
        line = np.polyval(np.polyfit(judge, human, 1), at)
        assert stats.fit_map(judge, human, "linear")(at) == pytest.approx(line, abs=1e-8)
    else:
        assert stats.fit_map(judge, human, "linear")(at) == pytest.approx(
            np.full(len(at), np.mean(human))
        )


def test_a_map_leaves_what_is_missing_missing():
    for kind in ("linear", "isotonic"):
        mapped = stats.fit_map([1, 2, np.nan], [1, 2, 3], kind)([np.nan, 1.5])
        assert np.isnan(mapped[0])
        assert mapped[1] == pytest.approx(1.5)


@given(st.lists(st.integers(0, 12), min_size=5, max_size=80))
def test_folds_are_group_k_folds(clusters):
    assume(len(set(clusters)) >= 5)
    codes = np.array(clusters)
    found = stats.grouped_folds(codes)
    sizes = np.bincount(found, minlength=5)
    theirs = [len(test) for _, test in GroupKFold(5).split(codes, groups=codes)]
    assert sorted(sizes) == sorted(theirs)
    assert all(len(set(found[codes == g])) == 1 for g in set(clusters))


def test_a_clusters_own_labels_never_reach_its_scores():
    rng = np.random.default_rng(0)
    judge, cluster = rng.integers(1, 6, 60).astype(float), np.repeat(np.arange(10), 6)
    human = np.clip(judge + rng.integers(-1, 2, 60), 1, 5)
    fold = stats.grouped_folds(cluster)
    for kind in ("linear", "isotonic"):
        before = stats.recalibrate(judge, human, cluster)[kind]
        spoiled = np.where(fold == 2, 6 - human, human)
        after = stats.recalibrate(judge, spoiled, cluster)[kind]
        assert after[fold == 2] == pytest.approx(before[fold == 2])


def test_recalibration_helps_a_biased_judge_and_not_one_that_knows_nothing():
    rng = np.random.default_rng(1)
    human, cluster = (
        rng.integers(1, 6, 400).astype(float),
        np.repeat([f"{k:02}" for k in range(40)], 10),
    )
    judge = human + 2 + rng.normal(scale=0.3, size=400)
    kind = stats.recalibrate(judge, human, cluster)["isotonic"]
    assert abs(np.mean(kind - human)) < 0.1
    frame = pd.DataFrame({"judge": judge, "human": human, "cluster": cluster})
    biased = calibrate(frame, scale=(1, 9)).recalibration.set_index("map")
    assert biased.loc["isotonic", "helps"]
    assert biased.loc["isotonic", "gain_low"] > 0
    assert biased.loc["isotonic", "share"] > biased.loc["raw", "share"]
    assert biased.loc["isotonic", "mae"] == pytest.approx(np.abs(kind - human).mean())
    blind = calibrate(
        frame.assign(judge=rng.permutation(human)), scale=(1, 9)
    ).recalibration.set_index("map")
    assert not blind.loc["isotonic", "helps"]
    assert blind.loc["isotonic", "mae"] > 0.98 * blind.loc["constant", "mae"]


def test_recalibration_refuses_what_it_cannot_judge():
    with pytest.raises(RagnbError, match="one cluster"):
        stats.recalibrate([1, 2], [1, 2], ["a", "a"])
    with pytest.raises(RagnbError, match="kind='cubic'"):
        stats.fit_map([1], [1], "cubic")
    with pytest.raises(RagnbError, match="no row"):
        stats.fit_map([np.nan], [1])


def test_ppi_corrects_the_judges_bias_and_is_narrower_than_humans_alone():
    rng = np.random.default_rng(2)
    truth = rng.normal(3, 1, 2000)
    judge = truth + 1.5 + rng.normal(scale=0.4, size=2000)
    found = stats.ppi_jackknife(truth[:100], judge[:100], judge[100:])
    alone = stats.clustered_mean(truth[:100])
    assert abs(found.value - truth.mean()) < 3 * found.se
    assert stats.clustered_mean(judge).low > truth.mean() + 1
    assert found.high - found.low < 0.7 * (alone.high - alone.low)


def test_ppi_refuses_one_kind_of_clusters_and_one_label():
    with pytest.raises(RagnbError, match="one kind"):
        stats.ppi_jackknife([1, 2], [1, 2], [3], clusters=["a", "b"])
    with pytest.raises(RagnbError, match="1 rows"):
        stats.ppi_jackknife([1, np.nan], [1, 2], [3])


def test_the_formulas_do_not_load_scipy_stats():
    code = (
        "import json, sys, numpy as np; from ragnb import stats\n"
        "x = np.arange(20) % 5; stats.quadratic_kappa(x, x, (0, 4)); stats.labels_needed(x > 0)\n"
        "stats.kendall(x, x[::-1]); stats.ppi_jackknife(x, x, x)\n"
        "print(json.dumps('scipy.stats' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False


def test_two_labelled_rows_are_enough_for_a_correction_and_one_is_not():
    assert np.isfinite(stats.ppi_jackknife([3, 4], [2, 4], [3, 4, 5], ends=(1, 5)).value)
    with pytest.raises(RagnbError, match="1 rows have both"):
        stats.ppi_jackknife([3, np.nan], [2, 4], [3, 4, 5], ends=(1, 5))
