"""Every threshold of a verdict at its boundary: level, target, acceptable bias, constant judge, bands, sides."""

import numpy as np
import pandas as pd
import pytest

from ragnb import stats
from ragnb.calibration import calibrate
from ragnb.calibration.ratings import Asked
from ragnb.calibration.sentences import summary
from ragnb.calibration.verdict import verdict_row
from ragnb.stats import Estimate

TINY = 1e-9


def rated(seed=0, n=240, clusters=24, noise=0.7, shift=0.0, spread=2.0):
    """Return unrounded ratings on 1–10, a cluster's alike."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, clusters, n)
    human = np.clip(
        5.5 + spread * (0.5 * rng.normal(size=clusters)[of] + rng.normal(size=n)), 1, 10
    )
    judge = np.clip(
        human + shift + noise * (0.5 * rng.normal(size=clusters)[of] + rng.normal(size=n)), 1, 10
    )
    return pd.DataFrame({"judge": judge, "human": human, "cluster": [f"d{g:02d}" for g in of]})


def row_of(frame, **how):
    return calibrate(frame, **{"scale": (1, 10), **how}).verdicts.iloc[0]


def share(frame, level):
    return stats.within_share(frame["judge"], frame["human"], frame["cluster"], level=level)


def around(bounds, step):
    """Return the targets on both sides of each bound, and the word for each."""
    targets = [bounds.low - step, bounds.low + step, bounds.high - step, bounds.high + step]
    return zip(targets, ["TRUST", "NOT PROVEN", "NOT PROVEN", "REJECT"], strict=True)


# The share


def test_trust_needs_the_one_sided_bound_at_the_target_and_reject_needs_the_other_below_it():
    frame = rated()
    bounds = share(frame, 0.9)  # two-sided 90 % is one-sided 95 % at each end
    for target, want in around(bounds, TINY):
        assert row_of(frame, target=target, delta=2)["verdict"] == want
    row = row_of(frame, delta=2)
    assert row_of(frame, target=row["lower"], delta=2)["verdict"] == "TRUST"
    assert row_of(frame, target=row["upper"], delta=2)["verdict"] == "NOT PROVEN"
    low = share(frame, 0.8).low
    assert row_of(frame, target=low - TINY, delta=2, level=0.9)["verdict"] == "TRUST"
    assert row_of(frame, target=low + TINY, delta=2, level=0.9)["verdict"] == "NOT PROVEN"


def test_a_share_at_the_target_is_trusted_no_more_often_than_the_level_allows():
    rng, draws, found = np.random.default_rng(1), 800, 0
    asked = Asked(scale=(1.0, 10.0), tolerance=1.0, target=0.8, delta=1.0, level=0.95)
    groups = pd.DataFrame({"inflated": [False], "kind": ["overall"], "upper": [0.0]})
    ends = {"constant_score": (0, 0), "constant": (0, 0), "within": (0, 1), "bias": (0, 0)}
    measures = {name: Estimate(0.0, *both, 0.0, 1, 1) for name, both in ends.items()}
    for _ in range(draws):
        of = np.repeat(np.arange(20), rng.integers(5, 26, 20))
        agrees = rng.random(len(of)) < rng.beta(0.8 * 4, 0.2 * 4, 20)[of]
        cells = pd.DataFrame({"judge": np.where(agrees, 5.0, 8.0), "human": 5.0, "cluster": of})
        cells = cells.assign(count=1.0, weight=1.0)
        found += verdict_row(cells, measures, groups, asked)["verdict"] == "TRUST"
    assert found / draws <= 0.05 + 2 * (0.05 * 0.95 / draws) ** 0.5


@pytest.mark.parametrize(
    ("kind", "is_inflated", "want"),
    [
        ("system", True, "NOT PROVEN"),
        ("system", False, "TRUST"),
        ("overall", True, "TRUST"),
    ],
)
def test_the_bias_of_a_system_bars_trust_only_where_the_judge_inflates_it(kind, is_inflated, want):
    asked = Asked(scale=(1.0, 10.0), tolerance=1.0, target=0.8, delta=1.0, level=0.95)
    ends = {"constant_score": (0, 0), "constant": (0, 0), "within": (0, 1), "bias": (0, 0)}
    measures = {name: Estimate(0.0, *both, 0.0, 1, 1) for name, both in ends.items()}
    groups = pd.DataFrame({"inflated": [is_inflated], "kind": [kind], "upper": [1.5]})
    human = np.tile([4.0, 5.0, 6.0], 40)
    cells = pd.DataFrame({"judge": human, "human": human, "cluster": np.arange(120)})
    cells = cells.assign(count=1.0, weight=1.0)
    assert verdict_row(cells, measures, groups, asked)["verdict"] == want


# The constant judge


def test_the_judge_must_beat_the_constant_at_the_same_one_sided_level():
    seen = []
    for seed in range(12):
        frame = rated(seed, n=120, noise=0.65, spread=0.95)
        row = row_of(frame, target=0.3, delta=3)
        constant = stats.within(np.full(len(frame), row["constant_score"]), frame["human"])
        gain = stats.within(frame["judge"], frame["human"]) - constant
        lows = [
            stats.clustered_mean(gain, frame["cluster"], level=level).low for level in (0.9, 0.95)
        ]
        assert row["beats_constant"] == (lows[0] > 0)
        assert row["verdict"] == ("TRUST" if lows[0] > 0 else "NOT PROVEN")
        seen.append((lows[0] > 0, lows[1] > 0))
    assert set(seen) == {(True, True), (True, False), (False, False)}


# The bias


@pytest.mark.parametrize("shift", [0.2, -0.2])
def test_the_whole_two_sided_interval_of_the_bias_lies_inside_delta(shift):
    frame = rated(noise=0.4, shift=shift)
    found, first = stats.bias(frame["judge"], frame["human"], frame["cluster"]), row_of(frame)
    assert first[["bias_low", "bias_high"]].tolist() == pytest.approx([found.low, found.high])
    edge = max(first["bias_high"], -first["bias_low"])
    for delta, want in (
        (edge, "TRUST"),
        (np.nextafter(edge, 0), "NOT PROVEN"),
        (edge + TINY, "TRUST"),
    ):
        row = row_of(frame, delta=float(delta))
        assert (row["verdict"], row["unbiased"]) == (want, want == "TRUST")


@pytest.mark.parametrize(
    ("scale", "delta"), [((1, 10), 0.5), ((0, 1), 1 / 18), ((1, 5), 4 / 18), ((0, 100), 5.556)]
)
def test_the_acceptable_bias_is_an_eighteenth_of_the_scale_by_default(scale, delta):
    width = scale[1] - scale[0]
    frame = rated()
    for name in ("judge", "human"):
        frame[name] = scale[0] + (frame[name] - 1) / 9 * width
    card = calibrate(frame, scale=scale, tolerance=width / 9)
    assert card.delta == card.verdicts["delta"].item() == pytest.approx(delta, rel=1e-4)
    assert calibrate(frame, scale=scale, tolerance=width / 9, delta=0.3).delta == 0.3


def test_a_bias_of_a_seventh_of_the_scale_is_not_trusted():
    rng = np.random.default_rng(0)
    human = rng.uniform(0, 0.8, 600)
    frame = pd.DataFrame(
        {"judge": np.clip(human + 0.157 + 0.01 * rng.normal(size=600), 0, 1), "human": human}
    )
    card = calibrate(frame, scale=(0, 1), tolerance=0.2)
    assert card.verdicts["share"].item() > 0.99
    assert (card.verdict, card.sides) == (
        "NOT PROVEN",
        ("RECALIBRATE", "RANKING ONLY", "INFLATED")[::2],
    )
    assert "0.0556" in " ".join(card.reasons)


def test_trust_and_inflated_never_stand_on_one_row():
    verdicts = []
    for shift in np.linspace(-0.2, 0.6, 9):
        frame = rated(noise=0.3, shift=shift)
        card = calibrate(frame, scale=(1, 10))
        assert ("INFLATED" in card.sides) == card.inflation["inflated"].item()
        assert ("INFLATED" in card.sides) == any("INFLATED" in line for line in card.reasons)
        verdicts.append((card.verdict == "TRUST", "INFLATED" in card.sides))
    assert (True, True) not in verdicts
    assert {(True, False), (False, True)} <= set(verdicts)


def test_a_system_inflated_beyond_the_acceptable_bias_takes_the_trust_away():
    frame = rated(n=600, noise=0.2).assign(system=np.arange(600) % 4 // 3)
    frame["judge"] += np.where(frame["system"] == 1, 0.75, -0.25) * frame["judge"].between(2, 9)
    card = calibrate(frame, scale=(1, 10))
    row = card.verdicts.iloc[0]
    assert -0.5 < row["bias_low"] < row["bias_high"] < 0.5
    assert (row["verdict"], "INFLATED" in row["sides"]) == ("NOT PROVEN", True)
    assert any("but not for every system" in line for line in card.reasons)
    highest = card.inflation.query("kind == 'system'")["high"].max()
    assert row_of(frame, delta=highest)["verdict"] == "TRUST"
    assert row_of(frame, delta=float(np.nextafter(highest, 0)))["verdict"] == "NOT PROVEN"


# Sides


def test_inflated_is_the_two_sided_interval_above_zero_with_holm_over_systems():
    straddling = 0
    for seed in range(12):
        frame = rated(seed, n=120, noise=0.8, shift=0.2).assign(system=lambda f: f.index % 2)
        found = calibrate(frame, scale=(1, 10), target=0.99).inflation
        overall = found.iloc[0]
        assert overall["inflated"] == (overall["low"] > 0)
        narrow = stats.bias(frame["judge"], frame["human"], frame["cluster"], level=0.9).low
        straddling += overall["low"] <= 0 < narrow
        own = found[found["kind"] == "system"]
        raw = []
        for system in (0, 1):
            part = frame[frame["system"] == system]
            one = stats.p_above(stats.bias(part["judge"], part["human"], part["cluster"]), 0.0)
            raw.append(2 * min(one, 1 - one))
        assert own["p"].tolist() == pytest.approx(stats.holm(raw).tolist())
        assert own["inflated"].tolist() == ((own["p"] <= 0.05) & (own["value"] > 0)).tolist()
    assert straddling


def test_a_harsh_judge_is_biased_and_not_inflated():
    card = calibrate(rated(noise=0.4, shift=-0.6), scale=(1, 10))
    assert card.inflation["p"].item() < 0.001
    assert not card.inflation["inflated"].item()
    assert "INFLATED" not in card.sides


def test_ranking_only_is_a_kendall_interval_above_zero_without_trust():
    seen = set()
    for seed in range(12):
        frame = rated(seed, n=80, clusters=10, noise=5.0)
        card = calibrate(frame, scale=(1, 10))
        low = stats.kendall_within(frame["judge"], frame["human"], frame["cluster"], digits=10).low
        assert ("RANKING ONLY" in card.sides) == (low > 0)
        seen.add(low > 0)
    assert seen == {True, False}
    assert calibrate(rated(noise=0.2), scale=(1, 10)).sides == ()


def test_a_map_passes_by_the_bounds_that_trust_asks_for():
    frame = rated(noise=0.5)
    frame["judge"] = 5.5 + (frame["judge"] - 5.5) / 2
    mapped = stats.recalibrate(frame["judge"], frame["human"], frame["cluster"])["linear"]
    low = stats.within_share(mapped, frame["human"], frame["cluster"], level=0.9).low
    bias = stats.bias(mapped, frame["human"], frame["cluster"])
    edge = max(bias.high, -bias.low) + TINY

    def passes(**how):
        maps = calibrate(frame, scale=(1, 10), **how).recalibration.set_index("map")
        return bool(maps.loc["linear", "passes"])

    assert passes(target=low - TINY, delta=1)
    assert not passes(target=low + TINY, delta=1)
    assert passes(target=0.5, delta=edge)
    assert not passes(target=0.5, delta=edge - 2 * TINY)


def test_a_map_that_helps_nobody_or_no_more_than_a_constant_does_not_pass():
    frame = rated(noise=0.4, spread=0.2).assign(
        judge=lambda f: np.random.default_rng(0).permutation(f["judge"])
    )
    maps = calibrate(frame, scale=(1, 10), target=0.5, delta=1).recalibration
    assert maps["share"].min() > 0.6
    assert not maps["passes"].any()


def test_a_trusted_judge_needs_no_map_even_where_one_would_pass():
    frame = rated(noise=0.2)
    frame["judge"] = 5.5 + 0.9 * (frame["judge"] - 5.5)
    card = calibrate(frame, scale=(1, 10))
    assert card.recalibration["passes"].any()
    assert (card.verdict, card.sides) == ("TRUST", ())


@pytest.mark.parametrize("shift", [0.5, -0.5])
def test_more_labels_do_not_help_a_bias_shown_to_lie_outside(shift):
    frame = rated(noise=0.4, shift=shift)
    row = row_of(frame)
    nearest = max(row["bias_low"], -row["bias_high"])
    for delta, outside in ((nearest, False), (np.nextafter(nearest, 0), True)):
        card = calibrate(frame, scale=(1, 10), delta=float(delta))
        assert any("the bias itself is outside" in line for line in card.reasons) == outside
        assert any("outside the acceptable ±" in line for line in card.reasons) == outside


def test_the_worst_row_speaks_for_the_card():
    kinds = {
        "good": rated(noise=0.2),
        "biased": rated(noise=0.2, shift=0.6),
        "bad": rated(noise=5.0),
    }
    card = calibrate(pd.concat(f.assign(dimension=d) for d, f in kinds.items()), scale=(1, 10))
    words = card.verdicts.set_index("dimension")["verdict"].to_dict()
    assert words == {"bad": "REJECT", "biased": "NOT PROVEN", "good": "TRUST"}
    rows = card.verdicts.set_index("dimension", drop=False)
    for names, want in (
        (["good"] * 2, "TRUST"),
        (["good", "biased", "good"], "NOT PROVEN"),
        (["biased", "bad", "good"], "REJECT"),
    ):
        assert summary(rows.loc[names], 1.0, "en")["verdict"] == want


# Bands


def bands(frame, **how):
    return calibrate(frame, **{"scale": (1, 10), **how}).bands


def at(score, n, clusters, agreeing, seed=0):
    """Return ratings on which the judge gives one score, and some of the humans agree."""
    human = np.where(np.arange(n) < agreeing, score, score - 3)
    order = np.random.default_rng(seed).permutation(n)
    return pd.DataFrame(
        {"judge": score, "human": human[order], "cluster": [f"d{i % clusters}" for i in range(n)]}
    )


@pytest.mark.parametrize(("clusters", "want"), [(4, "too few"), (5, "TRUST")])
def test_a_band_has_a_verdict_from_five_clusters_on(clusters, want):
    assert bands(at(9, 200, clusters, 196), target=0.6)["verdict"].item() == want


def test_a_band_is_decided_at_the_one_sided_level_in_either_direction():
    frame = at(9, 200, 20, 150)
    for target, want in around(share(frame, 0.9), 1e-6):
        assert bands(frame, target=target)["verdict"].item() == want


def test_two_bands_share_the_level_by_holm():
    frame = pd.concat([at(9, 200, 20, 150), at(6, 200, 20, 150)])
    alone = share(at(9, 200, 20, 150), 0.9).low
    halved = share(
        at(9, 200, 20, 150), 0.95
    ).low  # 2.5 % at each end for the smaller of two p-values
    assert bands(frame, target=alone - 1e-6)["verdict"].tolist() == ["NOT PROVEN"] * 2
    assert bands(frame, target=halved - 1e-6)["verdict"].tolist() == ["TRUST"] * 2


@pytest.mark.parametrize(
    ("better", "sentence"),
    [
        (0, "A constant score agrees at least as often"),
        (1, "It is not shown that the judge agrees"),
    ],
)
def test_a_judge_as_good_as_a_constant_score_adds_nothing(better, sentence):
    """Humans give 5, 7 or 9: within ±1 of 6 or 8 are two thirds; the judge that always says 6 is no better."""
    human = np.tile([5.0, 7.0, 9.0], 20)
    judge = np.full(60, 6.0)
    judge[2 : 2 + 3 * better : 3] = 9.0
    card = calibrate(pd.DataFrame({"judge": judge, "human": human, "cluster": np.arange(60)}))
    assert sentence in card.to_markdown()
