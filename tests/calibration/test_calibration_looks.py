"""Verdicts that are looked at again: the fourth-root rule by hand, its error by simulation, the end of a plan."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import ragnb as rn
from ragnb import stats
from ragnb.calibration import calibrate
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.scenario import Scenario, load_scenario

TINY = 1e-9


def rated(n=240, clusters=24, noise=0.5, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    of = rng.integers(0, clusters, n)
    human = np.clip(5.5 + 2 * (0.5 * rng.normal(size=clusters)[of] + rng.normal(size=n)), 1, 10)
    judge = np.clip(
        human + shift + noise * (0.5 * rng.normal(size=clusters)[of] + rng.normal(size=n)), 1, 10
    )
    return pd.DataFrame({"judge": judge, "human": human, "cluster": [f"d{g:02d}" for g in of]})


def card_of(frame, **how):
    return calibrate(frame, **{"scale": (1, 10), **how})


def row_of(frame, **how):
    return card_of(frame, **how).verdicts.iloc[0]


def by_hand(p, n_wilson, z):
    """Wilson's bounds as in its paper: the roots of (p − π)² = z² π(1 − π)/n."""
    a, b, c = 1 + z**2 / n_wilson, -(2 * p + z**2 / n_wilson), p**2
    return sorted(np.roots([a, b, c]))


# The rule


@pytest.mark.parametrize("plan", [240, 300, 600, 3840])
def test_the_bounds_are_wilsons_at_n_times_the_root_of_the_fraction_and_half_the_error(plan):
    rng = np.random.default_rng(3)
    agrees = (
        rng.random(240) < 0.85
    )  # every row is a cluster: n of Wilson is p(1 − p)/se², at most 240
    frame = pd.DataFrame({"judge": 5.0, "human": np.where(agrees, 5.0, 8.0)})
    row, p, n = row_of(frame, labels_planned=plan, delta=3), agrees.mean(), 239.0
    lower, upper = by_hand(p, n * (240 / plan) ** 0.5, student.ppf(0.975, 239))
    assert row[["lower", "upper"]].tolist() == pytest.approx([lower, upper], abs=2e-4)
    gap = frame["judge"] - frame["human"]
    margin = student.ppf(0.9875, 239) * gap.std(ddof=1) / 240**0.5 * (plan / 240) ** 0.25
    assert row[["bias_lower", "bias_upper"]].tolist() == pytest.approx(
        [gap.mean() - margin, gap.mean() + margin]
    )
    assert row["widened"] == pytest.approx(
        student.ppf(0.975, 239) / student.ppf(0.95, 239) * (plan / 240) ** 0.25
    )


def test_what_is_shown_stays_the_plain_interval():
    frame = rated(shift=0.2)
    once, planned = card_of(frame), card_of(frame, labels_planned=600)
    plain = ["share", "low", "high", "bias", "bias_low", "bias_high", "constant", "n"]
    assert once.verdicts[plain].equals(planned.verdicts[plain])
    assert once.table.equals(planned.table)
    row = once.verdicts.iloc[0]
    assert row[["bias_lower", "bias_upper"]].tolist() == row[["bias_low", "bias_high"]].tolist()
    assert (row["widened"], row["labels_planned"] is pd.NA) == (1.0, True)
    wide = planned.verdicts.iloc[0]
    assert wide["lower"] < row["lower"] < row["upper"] < wide["upper"]
    assert wide["bias_lower"] < row["bias_low"] < row["bias_high"] < wide["bias_upper"]


def test_a_plan_of_what_is_labelled_differs_from_no_plan_by_half_the_error_alone():
    frame = rated(seed=1)
    row = row_of(frame, labels_planned=len(frame))
    narrow = stats.within_share(frame["judge"], frame["human"], frame["cluster"], level=0.95)
    assert row[["lower", "upper"]].tolist() == pytest.approx([narrow.low, narrow.high])
    assert stats.widening(1.0, np.inf, level=0.9) == pytest.approx(norm.ppf(0.975) / norm.ppf(0.95))
    assert round(stats.widening(1.0, np.inf, level=0.9), 2) == 1.19


# Thresholds at their boundary


def test_trust_and_reject_turn_at_the_wider_bounds():
    frame = rated(noise=0.7)
    row = row_of(frame, delta=2, labels_planned=600)
    for target, want in (
        (row["lower"] - TINY, "TRUST"),
        (row["lower"] + TINY, "NOT PROVEN"),
        (row["upper"] - TINY, "NOT PROVEN"),
        (row["upper"] + TINY, "REJECT"),
    ):
        assert row_of(frame, target=target, delta=2, labels_planned=600)["verdict"] == want
    assert row_of(frame, target=row["lower"] + TINY, delta=2)["verdict"] == "TRUST"


@pytest.mark.parametrize("shift", [0.2, -0.2])
def test_the_wider_interval_of_the_bias_lies_inside_delta(shift):
    frame = rated(noise=0.4, shift=shift)
    row = row_of(frame, labels_planned=600)
    edge = max(row["bias_upper"], -row["bias_lower"])
    for delta, want in ((edge, "TRUST"), (np.nextafter(edge, 0), "NOT PROVEN")):
        found = row_of(frame, delta=float(delta), labels_planned=600)
        assert (found["verdict"], found["unbiased"]) == (want, want == "TRUST")
    assert row_of(frame, delta=float(np.nextafter(edge, 0)))["verdict"] == "TRUST"


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_the_constant_judge_is_beaten_at_the_wider_bound(seed):
    rng = np.random.default_rng(seed)
    human = np.clip(5.5 + 0.95 * rng.normal(size=120), 1, 10)
    frame = pd.DataFrame(
        {"judge": np.clip(human + 0.65 * rng.normal(size=120), 1, 10), "human": human}
    )
    row = row_of(frame, target=0.3, delta=3)
    gain = stats.within(frame["judge"], human) - stats.within(
        np.full(120, row["constant_score"]), human
    )
    assert row["beats_constant"] == (
        gain.mean() > student.ppf(0.95, 119) * gain.std(ddof=1) / 120**0.5
    )
    margin = student.ppf(0.975, 119) * gain.std(ddof=1) / 120**0.5
    edge = 120 * (gain.mean() / margin) ** 4  # the plan at which the margin is all of the gain
    for plan, want in ((int(edge), "TRUST"), (int(edge) + 1, "NOT PROVEN")):
        found = row_of(frame, target=0.3, delta=3, labels_planned=plan)
        assert (found["verdict"], found["beats_constant"]) == (want, want == "TRUST")


def test_the_bound_of_an_inflated_systems_bias_is_the_wider_one():
    frame = rated(n=600, noise=0.2).assign(system=np.arange(600) % 4 // 3)
    frame["judge"] += np.where(frame["system"] == 1, 0.75, -0.25) * frame["judge"].between(2, 9)
    found = (
        card_of(frame, labels_planned=900).inflation.query("kind == 'system' and inflated").iloc[0]
    )
    part = frame[frame["system"] == 1]
    bias = stats.bias(part["judge"], part["human"], part["cluster"])
    times = student.ppf(0.9875, bias.df) / student.ppf(0.975, bias.df) * 1.5**0.25
    assert found[["low", "high"]].tolist() == pytest.approx([bias.low, bias.high])
    assert found["upper"] == pytest.approx(bias.value + times * (bias.high - bias.value))
    edge = float(found["upper"])
    assert row_of(frame, delta=edge, labels_planned=900)["verdict"] == "TRUST"
    assert (
        row_of(frame, delta=float(np.nextafter(edge, 0)), labels_planned=900)["verdict"]
        == "NOT PROVEN"
    )


def test_a_map_and_a_band_are_looked_at_as_often_as_the_verdict():
    frame = rated(noise=0.5)
    frame["judge"] = 5.5 + (frame["judge"] - 5.5) / 2
    mapped = stats.recalibrate(frame["judge"], frame["human"], frame["cluster"])["linear"]
    pair = mapped, frame["human"], frame["cluster"]
    low = stats.within_share(*pair, level=0.9, fraction=240 / 600).low
    for target, want in ((low - TINY, True), (low + TINY, False)):
        maps = card_of(frame, target=target, delta=2, labels_planned=600).recalibration.set_index(
            "map"
        )
        assert bool(maps.loc["linear", "passes"]) == want
    human = np.where(np.arange(200) < 170, 9.0, 6.0)
    band = pd.DataFrame(
        {"judge": 9.0, "human": human, "cluster": np.random.default_rng(0).permutation(200) % 20}
    )
    low = stats.within_share(
        band["judge"], human, band["cluster"], level=0.9, fraction=200 / 600
    ).low
    for target, want in ((low - 1e-6, "TRUST"), (low + 1e-6, "NOT PROVEN")):
        assert card_of(band, target=target, labels_planned=600).bands["verdict"].item() == want


# The end of the plan


def test_beyond_the_plan_nothing_is_proven_and_the_next_step_is_said():
    frame = rated(noise=0.2)
    assert row_of(frame, labels_planned=240)["verdict"] == "TRUST"
    card = card_of(frame, labels_planned=239)
    row = card.verdicts.iloc[0]
    assert row["verdict"] == card.verdict == "NOT PROVEN"
    assert row[["lower", "upper", "bias_lower", "bias_upper", "widened"]].isna().all()
    assert "more labels than planned" in card.reasons[0]
    said = " ".join(card.reasons)
    assert "240 labels, 239 planned" in said
    assert "label new answers for it" in said
    assert "TRUST" not in set(card.bands["verdict"])
    assert not card.recalibration["passes"].any()
    bad = rated(noise=6.0)
    assert [row_of(bad, labels_planned=plan)["verdict"] for plan in (240, 239)] == [
        "REJECT",
        "NOT PROVEN",
    ]


def test_of_several_rows_the_card_names_those_whose_plan_is_spent():
    parts = [rated(n=n, noise=0.2).assign(dimension=name) for n, name in ((240, "a"), (241, "b"))]
    card = card_of(pd.concat(parts), labels_planned=240)
    assert card.verdicts.set_index("dimension")["verdict"].to_dict() == {
        "a": "TRUST",
        "b": "NOT PROVEN",
    }
    assert "plan of 240 labels is used up: this judge on b;" in " ".join(card.reasons)
    assert "one look at the labels" in " ".join(card_of(pd.concat(parts)).reasons)
    card = card_of(pd.concat(parts), labels_planned=600)
    assert "at every look at up to 600 labels" in " ".join(card.reasons)
    assert card.verdicts["widened"].round(1).tolist() == [1.5, 1.5]
    assert "| 600 | 1.5" in card.to_markdown()


# False TRUST


def shares_at_looks(draws, looks, most, truth, seed):
    """Return how many labels there are at each look, and the share of each draw that agrees."""
    at = np.linspace(most / looks, most, looks).round().astype(int)
    agrees = np.random.default_rng(seed).random((draws, most)) < truth
    return at, np.cumsum(agrees, axis=1)[:, at - 1] / at


def trusted(at, share, most, **plan):
    se = np.sqrt(share * (1 - share) / (at - 1))
    n = np.broadcast_to(at.astype(float), share.shape)
    ends = np.zeros(1), np.ones(1)
    return stats.mean_interval(share, se, n, n, ends, binary=True, level=0.9, **plan)[0] >= 0.8


def test_within_fifteen_looks_trust_is_false_in_no_more_than_five_percent_of_cases():
    draws, most = 3000, 600
    at, share = shares_at_looks(draws, 15, most, 0.8, seed=7)
    error = 2 * (0.05 * 0.95 / draws) ** 0.5
    planned = trusted(at, share, most, fraction=at / most).any(axis=1).mean()
    every = trusted(at, share, most).any(axis=1).mean()
    once = trusted(at, share, most)[:, -1].mean()
    assert planned <= 0.055 + error
    assert every > 0.15
    assert once <= 0.05 + error
    at, share = shares_at_looks(500, 15, most, 0.92, seed=8)
    early = trusted(at, share, most, fraction=at / most)
    assert early.any(axis=1).mean() > 0.99
    assert at[np.argmax(early, axis=1)].mean() < 250


def test_the_simulated_bound_is_the_cards():
    at, share = shares_at_looks(2, 3, 300, 0.85, seed=1)
    for n, p in zip(at, share[0], strict=True):
        agrees = np.arange(n) < round(p * n)
        frame = pd.DataFrame({"judge": 5.0, "human": np.where(agrees, 5.0, 8.0)})
        row = row_of(frame, labels_planned=300, delta=3)
        for step, want in ((-TINY, True), (TINY, False)):
            one = np.array([p])
            se, size = np.sqrt(one * (1 - one) / (n - 1)), np.array([float(n)])
            low = stats.mean_interval(
                one,
                se,
                size,
                size,
                (np.zeros(1), np.ones(1)),
                binary=True,
                level=0.9,
                fraction=n / 300,
            )[0][0]
            assert (low >= row["lower"] + step) == want


# At the door


@pytest.mark.parametrize(
    "value", [0, -600, 600.5, 600.0, "600", True, float("nan"), float("inf"), [600]]
)
def test_what_is_no_number_of_labels_is_refused(value):
    with pytest.raises(RagnbError, match="labels_planned=.*whole number of 1 or more"):
        calibrate(rated(), labels_planned=value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0", "at least 1"),
        ("-5", "at least 1"),
        ("600.5", "whole number"),
        ("'600'", "whole number"),
        ("true", "whole number"),
        (".nan", "whole number"),
        ("[600]", "whole number"),
    ],
)
def test_a_scenario_refuses_them_with_file_line_and_key(tmp_path, text, why):
    rated().to_csv(tmp_path / "labels.csv", index=False)
    file = tmp_path / "s.yaml"
    file.write_text(f"name: a\nratings: labels.csv\nlabels_planned: {text}\n", encoding="utf-8")
    with pytest.raises(RagnbError, match=rf"s\.yaml.*line 3.*labels_planned.*{why}"):
        load_scenario(file)


def test_a_plan_of_labels_goes_with_ratings(tmp_path):
    (tmp_path / "scores.csv").write_text("faithfulness\n0.5\n", encoding="utf-8")
    file = tmp_path / "s.yaml"
    file.write_text("scores: scores.csv\nlabels_planned: 600\n", encoding="utf-8")
    with pytest.raises(RagnbError, match=r"s\.yaml.*line 2.*labels_planned.*ratings"):
        load_scenario(file)
    with pytest.raises(RagnbError, match="labels_planned"):
        Scenario.without_files(labels_planned=600)


def test_a_scenarios_plan_reaches_its_card_and_its_files(tmp_path):
    rated().to_csv(tmp_path / "labels.csv", index=False)
    (tmp_path / "scores.csv").write_text("faithfulness\n0.5\n0.7\n0.9\n", encoding="utf-8")
    file = tmp_path / "s.yaml"
    file.write_text(
        "scores: scores.csv\nratings: labels.csv\nlabels_planned: 600\n", encoding="utf-8"
    )
    for lang, words in (
        ("en", "240 of 600 planned labels"),
        ("zh", "计划标注 600 个，已用 240 个"),
    ):
        sheet = rn.assess(file, lang=lang)
        assert sheet.calibration.verdicts["labels_planned"].item() == 600
        assert words in sheet.to_markdown()
        assert words in sheet.calibration.to_markdown()
        assert words in sheet.calibration._repr_html_()
    written = json.loads(json.dumps(sheet.calibration.to_dict()))
    assert written["verdicts"][0]["labels_planned"] == written["footer"]["labels_planned"] == 600
    assert rn.assess(file, labels_planned=239).calibration.verdicts["widened"].isna().item()
    assert load_scenario(file).replace(labels_planned=900).labels_planned == 900
    assert "labels_planned: 600" in load_scenario(file).snapshot_text()


def test_the_command_takes_a_plan(tmp_path):
    rated(noise=0.3).to_csv(tmp_path / "labels.csv", index=False)
    words = [str(tmp_path / "labels.csv"), "--scale", "1", "10", "--labels-planned"]
    assert main(["calibrate", *words, "600"]) == 0
    assert main(["calibrate", *words, "239"]) == 3
    assert main(["calibrate", *words, "0"]) == 2
