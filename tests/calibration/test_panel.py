"""A panel of judges: its shares by hand, what each judge adds by leaving it out, and what that is worth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats

import ragnb as rn
from ragnb.errors import RagnbError

HANNA = Path(__file__).parents[3] / "shared" / "data" / "ratings" / "hanna.csv"
JUDGES = ["good", "fair", "noise"]


def rated(n=240, seed=0, **noise):
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 11, n).astype(float)
    spread = {"good": 1.0, "fair": 2.0, "noise": 6.0} | noise
    scores = {name: np.clip(human + rng.normal(0, sd, n), 1, 10) for name, sd in spread.items()}
    return pd.DataFrame(scores | {"human": human, "cluster": [f"d{k % 30}" for k in range(n)]})


def by_hand(frame, judges, tolerance=1.0):
    return (frame[judges].median(axis=1) - frame["human"]).abs() <= tolerance + 1e-9


def test_the_median_is_a_judge_beside_the_others():
    frame = rated()
    found = rn.panel(frame, judge=JUDGES, scale=(1, 10))
    assert found.judges["judge"].tolist() == [*JUDGES, "panel"]
    shares = found.judges.set_index("judge")["share"]
    assert shares["panel"] == pytest.approx(by_hand(frame, JUDGES).mean())
    assert shares["good"] == pytest.approx(by_hand(frame, ["good"]).mean())
    alone = rn.calibrate(frame, judge="fair", scale=(1, 10)).verdicts.iloc[0]
    row = found.judges.set_index("judge").loc["fair"]
    assert row[["verdict", "share", "low", "high", "bias"]].tolist() == pytest.approx(
        alone[["verdict", "share", "low", "high", "bias"]].tolist()
    )
    rho = scipy.stats.pearsonr(frame["fair"], frame["human"]).statistic
    assert row["rho"] == pytest.approx(rho)


def test_what_a_judge_adds_is_the_panel_less_the_panel_without_it():
    frame = rated()
    found = rn.panel(frame, judge=JUDGES, scale=(1, 10))
    for row in found.added.to_dict("records"):
        rest = [name for name in JUDGES if name != row["judge"]]
        gain = by_hand(frame, JUDGES).astype(float) - by_hand(frame, rest)
        wanted = rn.stats.clustered_mean(gain, frame["cluster"], ends=(-1, 1))
        assert [row["adds"], row["low"], row["high"]] == pytest.approx(
            [wanted.value, wanted.low, wanted.high]
        )
        assert row["without"] == pytest.approx(by_hand(frame, rest).mean())
    outcomes = found.added.set_index("judge")["outcome"]
    assert outcomes["good"] == "better"


def test_the_panel_stands_beside_the_judge_that_agrees_most_often():
    frame = rated(good=0.4)
    row = rn.panel(frame, judge=JUDGES, scale=(1, 10)).worth.iloc[0]
    assert row["best"] == "good"
    gain = by_hand(frame, JUDGES).mean() - by_hand(frame, ["good"]).mean()
    assert row["gain"] == pytest.approx(gain)
    assert row["outcome"] == "worse"  # noise pulls the median off
    alike = rated(good=2.0, fair=2.0, noise=2.0)
    better = rn.panel(alike, judge=JUDGES, scale=(1, 10)).worth.iloc[0]
    assert better["outcome"] == "better"


def test_labels_saved_follow_from_the_correlations_and_their_jackknife():
    frame = rated(good=2.0, fair=2.0, noise=2.5)
    row = rn.panel(frame, judge=JUDGES, scale=(1, 10)).worth.iloc[0]

    def saving(rows):
        rhos = {name: rows[name].corr(rows["human"]) for name in JUDGES}
        whole = rows[JUDGES].median(axis=1).corr(rows["human"])
        return 1 - (1 - whole**2) / (1 - rhos[row["correlated"]] ** 2)

    names = frame["cluster"].unique()
    without = [saving(frame[frame["cluster"] != name]) for name in names]
    g, value = len(names), saving(frame)
    se = np.sqrt((g - 1) / g * sum((one - value) ** 2 for one in without))
    half = scipy.stats.t.ppf(0.975, g - 1) * se
    n = len(frame)
    assert [row["labels_saved"], row["saved_low"], row["saved_high"]] == pytest.approx(
        [n * value, n * (value - half), n * (value + half)]
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("of_judge", [lambda y: y, lambda y: y / 2 + 3])
def test_beside_a_judge_that_explains_people_wholly_no_label_can_be_saved(of_judge, lang):
    frame = rated().assign(good=lambda frame: of_judge(frame["human"]))
    money = {"prices": dict.fromkeys(JUDGES, 0.01), "label_price": 100.0}
    found = rn.panel(frame, judge=JUDGES, scale=(1, 10), lang=lang, **money)
    row = found.worth.iloc[0]
    assert row["correlated"] == "good"
    assert row[["labels_saved", "saved_low", "saved_high", "saved_cost"]].tolist() == [0, 0, 0, 0]
    # Nothing is saved, and two further judges cost something.
    assert row["worth"] == "no"
    assert "inf" not in found.to_markdown()


@pytest.mark.filterwarnings("error")
def test_all_judges_that_equal_people_save_no_label_and_need_none():
    frame = rated()
    frame = frame.assign(**dict.fromkeys(JUDGES, frame["human"]))
    row = rn.panel(frame, judge=JUDGES, scale=(1, 10)).worth.iloc[0]
    assert row[["labels_saved", "saved_low", "saved_high", "gain"]].tolist() == [0, 0, 0, 0]


@pytest.mark.filterwarnings("error")
def test_a_judge_that_errs_in_one_cluster_alone_leaves_the_labels_saved_without_an_interval():
    frame = rated().assign(good=lambda frame: frame["human"])
    errs = frame["cluster"] == "d3"
    frame.loc[errs, "good"] = 11 - frame.loc[errs, "human"]
    row = rn.panel(frame, judge=JUDGES, scale=(1, 10)).worth.iloc[0]
    rho = {
        name: scipy.stats.pearsonr(x, frame["human"]).statistic
        for name, x in {"panel": frame[JUDGES].median(axis=1), "good": frame["good"]}.items()
    }
    saved = 240 * (1 - (1 - rho["panel"] ** 2) / (1 - rho["good"] ** 2))
    assert row["labels_saved"] == pytest.approx(saved)
    assert row[["saved_low", "saved_high"]].isna().all()


@pytest.mark.parametrize(("price", "worth"), [(0.0001, "yes"), (50.0, "no")])
def test_prices_decide_whether_it_is_worth_it(price, worth):
    frame = rated(600, good=2.0, fair=2.0, noise=2.0)
    prices = dict.fromkeys(JUDGES, price)
    found = rn.panel(
        frame, judge=JUDGES, scale=(1, 10), prices=prices, label_price=2.0, items=5_000
    )
    row = found.worth.iloc[0]
    assert row["extra_cost"] == pytest.approx(2 * price * 5_000)
    assert row["saved_cost"] == pytest.approx(2.0 * row["labels_saved"])
    assert row["worth"] == worth
    assert found.judges.set_index("judge").loc["panel", "price"] == pytest.approx(3 * price)
    said = {"yes": "is worth its price", "no": "is not worth its price"}
    assert said[worth] in found.summary


def test_without_prices_it_says_nothing_of_money():
    found = rn.panel(rated(), judge=JUDGES, scale=(1, 10))
    assert "price" not in found.to_markdown().casefold()
    assert found.worth["extra_cost"].isna().all()


def test_an_item_that_a_judge_lost_is_compared_with_none():
    frame = rated()
    frame.loc[:39, "fair"] = np.nan
    found = rn.panel(frame, judge=JUDGES, scale=(1, 10))
    assert set(found.added["n"]) == {200}
    assert found.judges.set_index("judge").loc["panel", "n"] == 240


@pytest.mark.parametrize("engine", [pl.from_pandas, lambda frame: frame])
def test_every_engine_and_both_languages(engine):
    found = rn.panel(engine(rated()), judge=JUDGES, scale=(1, 10), lang="zh")
    assert "小组与人工相差" in found.summary
    assert "去掉它的小组" in found.to_markdown()
    assert "<table" in found._repr_html_()


def test_one_judge_is_no_panel_and_every_judge_has_a_price():
    with pytest.raises(RagnbError, match="two judges or more"):
        rn.panel(rated(), judge="good")
    with pytest.raises(RagnbError, match="'bad' is not known"):
        rn.panel(rated(), judge=JUDGES, prices={"bad": 1.0})
    with pytest.raises(RagnbError, match="no price of noise"):
        rn.panel(rated(), judge=JUDGES, prices={"good": 1.0, "fair": 1.0})
    with pytest.raises(RagnbError, match="rename yours"):
        rn.panel(rated().assign(panel=1.0), judge=JUDGES)


@pytest.mark.skipif(not HANNA.exists(), reason="needs the data beside the project")
def test_five_real_judges_beside_three_people():
    judges = ["judge_ChatGPT", "judge_Beluga-13B", "judge_OrcaPlatypus"]
    frame = pd.read_csv(HANNA)
    frame = frame[frame["dimension"] == "coherence"]
    found = rn.panel(frame, judge=judges, scale=(1, 5), missing="outside")
    inside = frame[judges].where((frame[judges] >= 1) & (frame[judges] <= 5))
    near = (inside.median(axis=1) - frame["human"]).abs() <= 1 + 1e-9
    assert found.judges.set_index("judge").loc["panel", "share"] == pytest.approx(near.mean())
    row = found.worth.iloc[0]
    assert row["best"] == "judge_OrcaPlatypus"
    assert row["correlated"] == "judge_ChatGPT"
    assert row["outcome"] == "worse"


def marked():
    """Return ratings with marks among the scores of judges and people, and the same with gaps in their place."""
    frame = rated()
    marks = frame.copy()
    marks.loc[:39, "human"] = -1
    marks.loc[30:49, "good"] = -1
    marks.loc[60:79, "fair"] = 99
    columns = [*JUDGES, "human"]
    gaps = marks.assign(**marks[columns].where((marks[columns] >= 1) & (marks[columns] <= 10)))
    return marks, gaps


@pytest.mark.parametrize("missing", ["outside", ["outside"], ["outside", -1], [-1, 99]])
def test_marks_are_no_scores_of_judges_nor_labels_of_people(missing):
    marks, gaps = marked()
    found = rn.panel(marks, judge=JUDGES, scale=(1, 10), missing=missing)
    want = rn.panel(gaps, judge=JUDGES, scale=(1, 10))
    for name in ("judges", "added", "worth"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(want, name))
    whole = gaps.dropna()
    assert set(found.added["n"]) == {len(whole)}
    assert found.worth["n_labels"].tolist() == [len(whole)]
    near = by_hand(gaps.dropna(subset="human"), JUDGES)
    share = found.judges.set_index("judge").loc["panel", "share"]
    assert share == pytest.approx(near.mean())


def test_a_score_that_misses_an_end_by_rounding_is_in_the_median():
    frame = rated().round(0)
    frame.loc[frame["good"] == 10, "good"] += 1e-10
    found = rn.panel(frame, judge=JUDGES, scale=(1, 10), missing="outside")
    assert set(found.added["n"]) == {240}


def test_people_of_a_panel_are_those_of_the_card():
    frame = rated()
    rng = np.random.default_rng(5)
    other = np.clip(frame["human"] + rng.integers(-1, 2, 240), 1, 10)
    wide = frame.rename(columns={"human": "human1"}).assign(human2=other)
    want = rn.panel(frame.assign(human=(frame["human"] + other) / 2), judge=JUDGES, scale=(1, 10))
    # Columns that end in a number are no raters, unless they count on from human1.
    years = wide.assign(**{"2024": 7.0, "human2024": 7.0})
    items = frame.assign(item_id=range(240))
    long = pd.concat([items.assign(annotator="ann"), items.assign(annotator="bob", human=other)])
    named = {"rater": "annotator"}
    for same, how in ((wide, {}), (years, {}), (long, named)):
        found = rn.panel(same, judge=JUDGES, scale=(1, 10), **how)
        pd.testing.assert_frame_equal(found.added, want.added)
        pd.testing.assert_frame_equal(found.worth, want.worth)
        assert found.judges["rho"].tolist() == pytest.approx(want.judges["rho"].tolist())


@pytest.mark.parametrize("names", [[1.0, 2.0], [1, 2], [True, False], ["x", None]])
def test_dimensions_of_a_panel_are_named_as_on_its_card(names):
    frame = rated()
    found = rn.panel(frame.assign(dimension=names * 120), judge=JUDGES, scale=(1, 10))
    assert set(found.added["dimension"]) == set(found.card.verdicts["dimension"])
    assert set(found.worth["dimension"]) == set(found.card.verdicts["dimension"])
    half = frame.iloc[::2]
    rho = scipy.stats.pearsonr(half["good"], half["human"]).statistic
    rhos = found.judges.loc[found.judges["judge"] == "good", "rho"].tolist()
    assert any(value == pytest.approx(rho) for value in rhos)
    assert not found.judges["rho"].isna().any()
