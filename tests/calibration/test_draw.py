"""Labels that were not drawn at random are found by the judge's scores; recorded chances weigh every estimate."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from jackknifed import wide

import ragnb as rn
from ragnb import calibration, stats
from ragnb.calibration import agreement, calibrate, corrected_mean
from ragnb.errors import RagnbError

CHANCE = "inclusion_probability"


def answers(seed=0, n=1200, clusters=40):
    """Return answers that a judge and people scored on 1–5; the judge is half a point too kind."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, clusters, n)
    truth = 3.4 + 0.4 * rng.normal(size=clusters)[of] + 0.9 * rng.normal(size=n)
    judge = np.clip(np.round(truth + 0.5 + 0.6 * rng.normal(size=n)), 1, 5)
    table = pd.DataFrame({"judge": judge, "human": np.clip(np.round(truth), 1, 5), "cluster": of})
    table.insert(0, "item_id", [f"q{i}" for i in range(n)])
    return table


def labelled(table, chances, seed=0):
    """Return the table with the labels that a draw with these chances leaves."""
    drawn = np.random.default_rng(seed).random(len(table)) < chances
    return table.assign(human=table["human"].where(drawn))


def toward_low(table):
    return np.where(table["judge"] <= 3, 0.5, 0.08)


# The card


def test_a_draw_towards_low_scores_is_told_everywhere():
    table = labelled(answers(), toward_low(answers()))
    card = calibrate(table, scale=(1, 5), about={"drawn_at_random": True})
    row = card.verdicts.iloc[0]
    mine = table["human"].notna()
    assert row["judge_labelled"] == pytest.approx(table.loc[mine, "judge"].mean())
    assert row["judge_rest"] == pytest.approx(table.loc[~mine, "judge"].mean())
    assert row["draw_z"] < -8
    words = "do not look like a random sample"
    assert card.footer["drawn_at_random"] is False
    assert words in card.reasons[2]
    means = f"{row['judge_labelled']:.2f} on the labelled rows and {row['judge_rest']:.2f} on the others"
    assert means in card.reasons[2]
    assert card.notes["code"].tolist().count("not_random") == 1
    for shown in (
        card.to_markdown(),
        card._repr_html_(),
        corrected_mean(table, scale=(1, 5))["note"].item(),
    ):
        assert words in shown
    apart = calibrate(table[mine], judged=table[~mine].drop(columns="human"), scale=(1, 5))
    assert apart.verdicts["draw_z"].item() == pytest.approx(row["draw_z"])
    assert "不像随机抽取" in calibrate(table, scale=(1, 5), lang="zh").reasons[2]


def test_several_rows_share_the_level_and_name_those_that_differ():
    bad = labelled(answers(), toward_low(answers())).assign(dimension="picked")
    good = labelled(answers(1), 0.3).assign(dimension="drawn")
    card = calibrate(pd.concat([good, bad]), scale=(1, 5))
    own = [calibrate(part, scale=(1, 5)).verdicts["draw_p"].item() for part in (good, bad)]
    shared = dict(zip(("drawn", "picked"), stats.holm(own), strict=True))
    found = card.verdicts.set_index("dimension")["draw_p"].to_dict()
    assert found == pytest.approx(shared, rel=1e-6, abs=0)
    assert card.reasons[2].startswith(
        "The labels do not look like a random sample: this judge on picked"
    )
    told = card.notes[card.notes["code"] == "not_random"]
    assert told["about"].tolist() == ["this judge on picked"]
    assert "random sample" not in " ".join(card.only(dimension="drawn").reasons)


def test_the_level_of_the_draw_is_one_in_a_hundred():
    table, seen = answers(n=300), set()
    for tilt in np.linspace(0, 0.14, 15):
        part = labelled(table, 0.3 - tilt * (table["judge"] - 3))
        row = calibrate(part, scale=(1, 5)).verdicts.iloc[0]
        told = "random sample" in " ".join(row["reasons"])
        assert told == (row["draw_p"] <= 0.01)
        seen.add((told, row["draw_p"] <= 0.05))
    assert seen == {(True, True), (False, True), (False, False)}


def test_a_random_draw_is_not_flagged_and_what_the_caller_says_stays():
    table = labelled(answers(), 0.25)
    for said in (None, True, False):
        card = calibrate(table, scale=(1, 5), about={"drawn_at_random": said})
        assert card.footer["drawn_at_random"] is said
        assert "do not look like a random sample" not in card.to_markdown()
    assert "human score cannot be detected" in calibrate(table, scale=(1, 5)).to_markdown()


def test_recorded_unequal_chances_are_not_flagged_and_equal_ones_are_tested():
    table, low = answers(), toward_low(answers())
    card = calibrate(labelled(table, low).assign(**{CHANCE: low}), scale=(1, 5))
    assert card.footer["drawn_at_random"] is True
    assert {"weighted"} <= set(card.notes["code"])
    assert not {"not_random", "unknown_draw"} & set(card.notes["code"])
    wrong = calibrate(labelled(table, low).assign(**{CHANCE: 0.2}), scale=(1, 5))
    assert wrong.footer["drawn_at_random"] is False
    fair = calibrate(labelled(table, 0.25).assign(**{CHANCE: 0.25}), scale=(1, 5))
    assert fair.footer["drawn_at_random"] is True
    assert "weighted" not in set(fair.notes["code"])


# Weights


def hajek(values, weights, clusters):
    """Return Σwx/Σw and its delete-one-cluster jackknife standard error, by a loop."""
    x, w, of = (np.asarray(part) for part in (values, weights, clusters))
    value = np.sum(w * x) / np.sum(w)
    names = np.unique(of)
    left = np.array([np.sum((w * x)[of != g]) / np.sum(w[of != g]) for g in names])
    return value, np.sqrt((len(names) - 1) / len(names) * np.sum((left - value) ** 2))


@pytest.mark.parametrize("clustered", [True, False])
def test_every_mean_of_agreement_is_hajeks(clustered):
    table = labelled(answers(n=600), toward_low(answers(n=600))).assign(
        **{CHANCE: toward_low(answers(n=600))}
    )
    table = table if clustered else table.drop(columns="cluster")
    row = wide(agreement(table, scale=(1, 5))).iloc[0]
    mine = table.dropna()
    w, gap = 1 / mine[CHANCE], mine["judge"] - mine["human"]
    of = mine["cluster"] if clustered else mine["item_id"]
    constant = (row["constant_score"] - mine["human"]).abs() <= 1
    want = {
        "within": gap.abs() <= 1,
        "bias": gap,
        "mae": gap.abs(),
        "exact": gap == 0,
        "mean_judge": mine["judge"],
        "mean_human": mine["human"],
        "constant": constant,
        "over_constant": (gap.abs() <= 1).astype(float) - constant,
    }
    for name, values in want.items():
        assert row[name] == pytest.approx(hajek(values, w, of)[0]), name
    se = hajek(gap, w, of)[1]
    h = w.groupby(of).sum() / w.sum()
    t = stats.t_quantile(0.95, 1 / np.sum(h**2) - 1)
    assert row["bias_high"] - row["bias"] == pytest.approx(float(t) * se)
    assert (row["loa_low"] + row["loa_high"]) / 2 == pytest.approx(row["bias"])
    assert row["n"] == len(mine)


def test_a_weight_of_two_is_the_share_of_two_rows():
    table = answers(n=80)
    twice = pd.concat(
        [table, table[table.index % 2 == 0].assign(item_id=lambda f: f["item_id"] + "b")]
    )
    one = calibrate(
        table.assign(**{CHANCE: np.where(table.index % 2 == 0, 0.1, 0.2)}), scale=(1, 5)
    )
    two = calibrate(twice, scale=(1, 5))
    first, second = (card.table.set_index("measure")["value"] for card in (one, two))
    for name in ("within", "bias", "mae", "floor", "constant", "kendall", "qwk", "slope"):
        assert first[name] == pytest.approx(second[name]), name
    frames = {
        "bands": ["share", "bias"],
        "inflation": ["value"],
        "reliability": ["human", "isotonic"],
    }
    for frame, columns in frames.items():
        left, right = (getattr(card, frame)[columns].to_numpy(dtype=float) for card in (one, two))
        np.testing.assert_allclose(left, right)
    assert one.labels_needed["seen"].item() == pytest.approx(two.labels_needed["seen"].item())
    assert one.budget["share"].iloc[0] == pytest.approx(two.budget["share"].iloc[0])
    assert one.labels_needed["seen"].item() == pytest.approx(first["within"])
    assert one.labels_needed["deff"].item() != two.labels_needed["deff"].item()


def test_equal_chances_change_no_number():
    table = labelled(answers(n=400), 0.4)
    same = table.assign(**{CHANCE: 0.123})
    pd.testing.assert_frame_equal(
        agreement(table, scale=(1, 5)), agreement(same, scale=(1, 5)), check_exact=True
    )
    pd.testing.assert_frame_equal(corrected_mean(table), corrected_mean(same), check_exact=True)
    one, two = (calibrate(part, scale=(1, 5)) for part in (table, same))
    for name in (
        "verdicts",
        "bands",
        "inflation",
        "recalibration",
        "labels_needed",
        "reliability",
        "corrected",
    ):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name), check_exact=True)
    assert one.footer["data_sha256"] == two.footer["data_sha256"]


@pytest.mark.parametrize("engine", [pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("clustered", [True, False])
def test_engines_weigh_as_pandas_does(engine, clustered):
    low = toward_low(answers(n=300))
    table = labelled(answers(n=300), low).assign(**{CHANCE: low})
    table = table if clustered else table.drop(columns="cluster")
    one, two = (calibrate(part, scale=(1, 5)) for part in (table, engine(table)))
    for name in ("table", "verdicts", "bands", "recalibration", "reliability", "corrected"):
        pd.testing.assert_frame_equal(
            getattr(one, name), getattr(two, name), check_dtype=False, rtol=1e-9
        )


@pytest.mark.parametrize("value", [0.0, 1.5, -0.1, np.nan])
def test_a_labelled_row_needs_its_chance(value):
    table = answers(n=60).assign(**{CHANCE: 0.5})
    table.loc[7, CHANCE] = value
    with pytest.raises(RagnbError, match=r"inclusion_probability', row 7: .*not in \(0, 1\]"):
        agreement(table)
    assert agreement(table.assign(human=table["human"].where(table.index != 7)))["n"].iloc[0] == 59


def test_raters_of_one_item_share_its_chance():
    low = toward_low(answers(n=200))
    table = answers(n=200).assign(**{CHANCE: low})
    long = pd.concat([table.assign(rater="a"), table.assign(rater="b", human=table["human"] + 0.5)])
    wide = table.rename(columns={"human": "human1"}).assign(human2=table["human"] + 0.5)
    one, two = (agreement(part, scale=(1, 6)) for part in (long, wide))
    pd.testing.assert_frame_equal(one, two)
    assert one.loc[one["measure"] == "ceiling", "value"].item() == 1
    long.iloc[0, long.columns.get_loc(CHANCE)] = 0.9
    with pytest.raises(RagnbError, match="several scores in column 'inclusion_probability'"):
        agreement(long)


# The corrected mean


def test_the_weighted_corrected_mean_is_that_of_rows_taken_out_cluster_by_cluster():
    low = toward_low(answers(3, n=200, clusters=12))
    table = labelled(answers(3, n=200, clusters=12), low).assign(w=1 / low)

    def point(rows):
        mine = rows.dropna(subset="human")
        w = mine["w"]
        y, f = (np.average(mine[name], weights=w) for name in ("human", "judge"))
        cov = np.average((mine["human"] - y) * (mine["judge"] - f), weights=w)
        slope = cov / np.average((mine["judge"] - f) ** 2, weights=w)
        return y + slope * (rows["judge"].mean() - f)

    value = point(table)
    left = np.array([point(table[table["cluster"] != g]) for g in table["cluster"].unique()])
    se = np.sqrt(11 / 12 * np.sum((left - value) ** 2))
    found = corrected_mean(table.assign(**{CHANCE: low})).iloc[0]
    assert (found["value"], found["se"]) == pytest.approx((value, se))
    assert found["judge_value"] == pytest.approx(table["judge"].mean())
    mine = table.dropna(subset="human")
    assert found["human_value"] == pytest.approx(np.average(mine["human"], weights=mine["w"]))
    assert np.isnan(found["draw_p"])


def test_labels_that_represent_less_than_four_fifths_of_the_rows_are_noted():
    """50 rows with the chance 1/2 and 50 with 1/10: 25 labels of the former and k of the latter make 50 + 10 k."""
    table = answers(n=100, clusters=10).assign(**{CHANCE: np.repeat([0.5, 0.1], 50)})
    for rare, is_noted in ((2, True), (3, False)):  # 70 and 80 of 100 rows
        mine = np.zeros(100, dtype=bool)
        mine[:25] = mine[50 : 50 + rare] = True
        found = corrected_mean(table.assign(human=table["human"].where(mine))).iloc[0]
        assert ("represent about 70 of the 100 rows" in found["note"]) is is_noted, rare
        assert ("missing from the labels" in found["note"]) is is_noted
        chinese = corrected_mean(table.assign(human=table["human"].where(mine)), lang="zh")
        assert ("只代表 100 个样本中的约 70 个" in chinese["note"].item()) is is_noted


def test_equal_chances_with_labels_lost_are_no_rare_rows():
    table = answers(n=100, clusters=10).assign(**{CHANCE: 0.5})
    found = corrected_mean(table.assign(human=table["human"].where(table.index < 20))).iloc[0]
    assert "missing from the labels" not in found["note"]


@pytest.mark.parametrize("clusters", [None, 15])
def test_with_recorded_chances_the_corrected_mean_covers_under_a_draw_towards_low_scores(clusters):
    """The labels' own unweighted mean hardly ever does."""
    rng, draws = np.random.default_rng(6), 500
    hits = np.zeros(2)
    for _ in range(draws):
        of = (
            np.arange(500)
            if clusters is None
            else np.repeat(np.arange(clusters), rng.integers(10, 60, clusters))
        )
        y = (
            3.4
            + np.sqrt(0.15) * rng.normal(size=len(of))[of]
            + np.sqrt(0.85) * rng.normal(size=len(of))
        )
        f = y + 0.5 + 0.7 * rng.normal(size=len(of)) + 0.3 * (y < 3)
        chance = np.clip(np.exp(-0.8 * (f - 3)) / 6, 0.02, 1)
        mine = rng.random(len(of)) < chance
        args = y[mine], f[mine], f[~mine], of[mine], of[~mine]
        found = stats.ppi_jackknife(*args, weights=1 / chance[mine])
        for k, ends in enumerate((found, stats.clustered_mean(y[mine], of[mine]))):
            hits[k] += ends.low <= 3.4 <= ends.high
    slack = 2 * (0.05 * 0.95 / draws) ** 0.5
    assert 0.93 - slack <= hits[0] / draws <= 0.97 + slack
    assert hits[1] / draws < 0.2


# The sample


def test_drawn_labels_carry_their_chance_through_sheet_and_key(tmp_path):
    table = answers(n=90).rename(columns={"item_id": "sample_id", "judge": "accuracy"})
    table = table.drop(columns=["human", "cluster"]).assign(answer="so")
    drawn = calibration.draw_labels(table, n=30, seed=2)
    assert drawn[CHANCE].tolist() == [pytest.approx(1 / 3)] * 30
    sheet, key = calibration.write_labels(drawn, tmp_path / "labels.csv")
    assert CHANCE in key.read_text(encoding="utf-8-sig").splitlines()[0]
    filled = pd.read_csv(sheet).assign(accuracy=4)
    filled.to_csv(tmp_path / "ann.csv", index=False)
    back = calibration.read_labels(tmp_path / "ann.csv", key)
    assert back[CHANCE].tolist() == pytest.approx([1 / 3] * 30)
    card = calibrate(back, scale=(1, 5), cluster=None)
    assert card.footer["drawn_at_random"] is True
    rest = calibration.unrated(calibration.read_judged(table), back)
    assert len(rest) == 60
    assert not set(rest["item_id"]) & set(back["sample_id"])
    rows = [{"item_id": "a", "judge": 4, "human": 5, "sampling_probability": "0.25"}]
    assert rn.read_ratings(rows)[CHANCE].tolist() == [0.25], "whatever its name"


# The doors


RATED = {
    "rn.calibrate": rn.calibrate,
    "rn.agreement": rn.agreement,
    "rn.corrected_mean": rn.corrected_mean,
    "check_golden": calibration.check_golden,
    "unrated": lambda path: calibration.unrated(answers(), path),
    "judged": lambda path: rn.corrected_mean(answers(), judged=path),
    "judged of a card": lambda path: rn.calibrate(answers(), judged=path),
}


READS_PATHS = ["rn.calibrate", "rn.agreement", "rn.corrected_mean", "judged", "judged of a card"]


@pytest.mark.parametrize("name", RATED)
def test_a_path_in_place_of_ratings_is_read_or_names_their_reader(name):
    if name in READS_PATHS:
        with pytest.raises(RagnbError, match=r"r\.csv: there is no such file"):
            RATED[name]("r.csv")
    else:
        with pytest.raises(
            RagnbError, match=r"not a data frame; read the file first: rn.read_ratings\('r.csv'\)"
        ):
            RATED[name]("r.csv")
    with pytest.raises(RagnbError, match="rn.read_ratings|list of dicts"):
        RATED[name]([1])


@pytest.mark.parametrize("function", [rn.weighted_means, rn.moments, rn.diagnose, rn.weigh])
def test_ratings_in_place_of_scores_name_what_takes_them(function):
    with pytest.raises(RagnbError, match=r"these are ratings .*rn.calibrate or rn.agreement"):
        function(answers())


@pytest.mark.parametrize(
    "function",
    [
        rn.agreement,
        rn.calibrate,
        rn.corrected_mean,
        rn.read_ratings,
        calibration.draw_labels,
        calibration.read_judged,
        calibration.check_golden,
    ],
)
def test_the_frame_comes_first_and_all_else_by_keyword(function):
    first, *rest = inspect.signature(function).parameters.values()
    assert first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {part.kind for part in rest} == {inspect.Parameter.KEYWORD_ONLY}
