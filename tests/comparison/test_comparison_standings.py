"""Standings: every pair as `compare` has it, Holm over pairs, ranks tied where nothing is shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

import ragnb as rn
from ragnb import plots
from ragnb.errors import RagnbError


def several(means, questions=120, seed=0):
    rng = np.random.default_rng(seed)
    hard, doc = rng.normal(0, 0.15, questions), rng.integers(0, 30, questions)
    parts = []
    for name, mean in means.items():
        scores = np.clip(mean + hard + rng.normal(0, 0.05, questions), 0, 1)
        labels = {
            "sample_id": np.arange(questions),
            "system": name,
            "doc_name": [f"d{d}" for d in doc],
        }
        parts.append(pd.DataFrame({"faithfulness": scores} | labels))
    return pd.concat(parts, ignore_index=True)


def test_pairs_are_those_of_compare_with_holm_over_all_of_them():
    scores = several({"a": 0.6, "b": 0.59, "c": 0.5, "d": 0.585})
    found = rn.standings(scores)
    assert len(found.pairs) == 12
    for row in found.pairs.itertuples():
        one = rn.compare(scores, baseline=row.baseline, candidate=row.candidate).iloc[-1]
        assert (row.value, row.low, row.high, row.wins) == (
            one["value"],
            one["low"],
            one["high"],
            one["wins"],
        )
        assert row.win_rate == (one["wins"] + one["ties"] / 2) / one["n_common"]
    once = found.pairs[found.pairs["candidate"] < found.pairs["baseline"]]
    np.testing.assert_allclose(once["p_holm"], multipletests(once["p"], method="holm")[1])
    both = found.pairs.set_index(["candidate", "baseline"])
    assert both.loc[("a", "c"), "win_rate"] + both.loc[("c", "a"), "win_rate"] == pytest.approx(1)


def test_ranks_are_tied_where_nothing_is_shown():
    found = rn.standings(several({"a": 0.6, "b": 0.6, "c": 0.5, "d": 0.3}))
    ranks = found.ranks.set_index("system")
    assert ranks["rank"].to_dict() == {"a": 1, "b": 1, "c": 3, "d": 4}
    assert ranks["rank_high"].to_dict() == {"a": 2, "b": 2, "c": 3, "d": 4}
    assert repr(found).endswith("c 3, d 4)")


def test_lower_is_better_turns_the_ranks():
    scores = several({"a": 0.6, "b": 0.3}).rename(columns={"faithfulness": "noise_sensitivity"})
    found = rn.standings(scores, metric="noise_sensitivity")
    assert found.ranks["system"].tolist() == ["b", "a"]
    assert found.ranks.loc[0, ["n_better", "n_worse"]].tolist() == [1, 0]
    assert found.ranks.loc[0, "value"] > 0


def test_one_system_has_no_standing():
    with pytest.raises(RagnbError, match="two or more systems"):
        rn.standings(several({"a": 0.6}))


def test_the_chart_holds_every_win_rate_and_marks_what_is_shown():
    found = rn.standings(several({"a": 0.6, "b": 0.6, "c": 0.4}))
    ax = plots.win_rates(found)
    names = found.ranks["system"].tolist()
    assert [label.get_text() for label in ax.get_yticklabels()] == names
    pairs = found.pairs.set_index(["candidate", "baseline"])
    cells = {text.get_position(): text.get_text() for text in ax.texts if text.get_text()}
    for y, row in enumerate(names):
        for x, column in enumerate(names):
            if row != column:
                pair = pairs.loc[(row, column)]
                star = " *" if pair["outcome"] in ("better", "worse") else ""
                assert cells[x + 0.5, y + 0.5] == f"{100 * pair['win_rate']:.1f} %{star}"
    assert "wins most often" in plots.alt_text(ax)


def test_metrics_of_the_caller_and_a_candidate_of_the_scenario_leave_no_system_out():
    scores = several({"a": 0.6, "b": 0.5, "c": 0.4}).rename(columns={"faithfulness": "语气"})
    found = rn.standings(scores, metrics=[rn.Metric("语气")], candidate="b")
    assert found.ranks["system"].tolist() == ["a", "b", "c"]
    assert len(found.pairs) == 6


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
def test_what_is_shown_is_what_holm_leaves_below_the_error_of_the_level(level):
    scores = several({"a": 0.6, "b": 0.594, "c": 0.588, "d": 0.3}, questions=60)
    pairs = rn.standings(scores, level=level).pairs
    is_shown = pairs["outcome"].isin(["better", "worse"])
    assert (is_shown == (pairs["p_holm"] < 1 - level)).all()
    assert is_shown.sum() > 0


def test_a_tie_is_half_a_win():
    scores = several({"a": 0.6, "b": 0.59}, questions=40)
    scores["faithfulness"] = scores["faithfulness"].round(1)
    wide = scores.pivot(index="sample_id", columns="system", values="faithfulness")
    wins = (wide["a"] > wide["b"]).sum()
    ties = (wide["a"] == wide["b"]).sum()
    assert ties > 0
    pairs = rn.standings(scores).pairs.set_index("candidate")
    assert pairs.loc["a", "win_rate"] == (wins + ties / 2) / 40


@pytest.mark.parametrize("metric", ["faithfulness", "noise_sensitivity"])
def test_a_system_s_value_is_its_mean_lead_over_the_others_in_the_better_direction(metric):
    means = {"a": 0.6, "b": 0.5, "c": 0.35}
    scores = several(means).rename(columns={"faithfulness": metric})
    sign = {"faithfulness": 1, "noise_sensitivity": -1}[metric]
    found = rn.standings(scores, metric=metric)
    of_system = scores.groupby("system")[metric].mean()
    for row in found.ranks.itertuples():
        others = of_system.drop(row.system)
        assert row.value == pytest.approx(sign * (of_system[row.system] - others).mean())


def test_a_pair_that_compare_shows_and_holm_does_not_is_left_open():
    scores = several({"a": 0.6, "b": 0.6, "c": 0.59, "d": 0.595, "e": 0.6}, questions=90, seed=3)
    pairs = rn.standings(scores, level=0.9).pairs
    only_alone = (pairs["p"] < 0.1) & (pairs["p_holm"] >= 0.1)
    assert only_alone.any()
    # Within the margin it is the same, whichever system seems better.
    assert pairs.loc[only_alone, "outcome"].isin(["undecided", "same"]).all()
