"""Corrected means and labels needed of a frame, against the formulas of statistics."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from jackknifed import drawn_ratings as draw

from ragnb import stats
from ragnb.calibration import calibrate, corrected_mean, corrected_ways
from ragnb.errors import RagnbError

SCALE = (1.0, 5.0)
COUNTS = ["value", "low", "high", "se", "n", "n_judged", "n_clusters", "weight"]


def test_the_frame_holds_the_formulas_of_each_dimension_and_system():
    few, more = draw(4, n=200, m=300)
    rng = np.random.default_rng(4)
    for part in (few, more):
        part.insert(0, "dimension", rng.choice(["clear", "true"], len(part)))
        part.insert(0, "system", rng.choice(["a", "b"], len(part)))
    table = corrected_mean(few, judged=more, by=["dimension", "system"], scale=SCALE, level=0.9)
    assert len(table) == 4
    for row in table.itertuples():
        mine, rest = (
            part[(part["dimension"] == row.dimension) & (part["system"] == row.system)]
            for part in (few, more)
        )
        of = mine["cluster"], rest["cluster"]
        want = stats.ppi_jackknife(
            mine["human"], mine["judge"], rest["judge"], *of, ends=SCALE, level=0.9
        )
        assert [getattr(row, name) for name in COUNTS] == pytest.approx(
            [
                want.value,
                want.low,
                want.high,
                want.se,
                want.n,
                want.n_judged,
                want.n_clusters,
                want.weight,
            ]
        )
        gap = stats.bias(mine["judge"], mine["human"], mine["cluster"], level=0.9)
        assert (row.bias, row.bias_low, row.bias_high) == pytest.approx(
            (gap.value, gap.low, gap.high)
        )
        both = np.concatenate([mine["judge"], rest["judge"]])
        assert row.judge_value == pytest.approx(both.mean())
        assert row.human_value == pytest.approx(mine["human"].mean())
        assert row.judge_low < row.judge_value < row.judge_high


def test_rows_without_a_label_count_as_judged_and_engines_agree():
    few, more = draw(5)
    whole = pd.concat([few, more])
    want = corrected_mean(few, judged=more)
    for labelled, judged in (
        (whole, None),
        (pl.from_pandas(whole), None),
        (pl.from_pandas(few), more),
    ):
        pd.testing.assert_frame_equal(corrected_mean(labelled, judged=judged), want)


def test_a_rater_counts_once_and_the_judge_has_one_score():
    few, more = draw(6)
    long = pd.concat([few.assign(rater="r1"), few.assign(rater="r2")])
    with pytest.raises(RagnbError, match="twice"):
        corrected_mean(long.drop(columns="rater"), judged=more)
    with pytest.raises(RagnbError, match="several scores in column 'judge'"):
        corrected_mean(long.assign(judge=np.arange(60) // 30 + 1), judged=more)


def test_a_scale_not_given_is_that_of_the_scores_at_hand():
    few, more = draw(7)
    every = [*few["human"], *few["judge"], *more["judge"]]
    ends = min(every), max(every)
    pd.testing.assert_frame_equal(
        corrected_mean(few, judged=more), corrected_mean(few, judged=more, scale=ends)
    )
    alike = corrected_mean(few.assign(human=3, judge=3), judged=more.assign(judge=3))
    assert alike["value"].item() == 3
    assert alike[["low", "high"]].isna().all(axis=None)


def test_names_of_columns_are_the_callers():
    few, more = draw(8)
    names = {"judge": "judge10", "human": "human10", "cluster": "talk", "item_id": "turn"}
    found = corrected_mean(
        few.rename(columns=names),
        judged=more.rename(columns=names),
        judge="judge10",
        human="human10",
        cluster="talk",
        item="turn",
    )
    pd.testing.assert_frame_equal(found, corrected_mean(few, judged=more))
    alone = corrected_mean(few.drop(columns="cluster"), judged=more.drop(columns="cluster"))
    assert alone["n_clusters"].item() == 90
    lone = corrected_mean(few.assign(cluster=np.nan), judged=more.assign(cluster=np.nan))
    pd.testing.assert_frame_equal(lone, alone)
    each = corrected_mean(few, judged=more, cluster="item_id")
    pd.testing.assert_frame_equal(each, alone)


def test_a_judges_mean_never_stands_without_its_bias_in_words():
    few, more = draw(9, n=200, m=300)
    row = corrected_mean(few, judged=more, scale=SCALE).iloc[0]
    assert row["bias_low"] > 0
    assert row["note"].startswith("The judge's own mean is not a valid estimate of quality")
    assert "above the human mean" in row["note"]
    below = corrected_mean(few.assign(human=5.0), judged=more, scale=SCALE).iloc[0]
    assert "below the human mean" in below["note"]
    assert "received weight 0" in below["note"]
    fair = few.assign(judge=few["human"] + np.tile([1, -1], 100) * few["human"].between(2, 4))
    assert "too high or too low" in corrected_mean(fair, judged=more).iloc[0]["note"]
    chinese = corrected_mean(few, judged=more, lang="zh").iloc[0]["note"]
    assert chinese.startswith("评判模型自身的均值")


def test_what_cannot_be_corrected_says_so():
    few, more = draw(10)
    one = corrected_mean(few.assign(cluster=1), judged=more, scale=SCALE).iloc[0]
    assert np.isfinite(one["value"])
    assert np.isnan(one[["low", "high", "se", "human_low", "bias_low"]].astype(float)).all()
    assert "one cluster" in one["note"]
    assert "no interval" in one["note"]
    two = pd.concat([few.assign(dimension="known"), more.assign(dimension="new")])
    blank = corrected_mean(two, scale=SCALE).set_index("dimension").loc["new"]
    assert blank["n"] == 0
    assert np.isnan(blank[["value", "judge_value", "weight"]].astype(float)).all()
    assert "too few" in blank["note"]
    nobody = corrected_mean(few.assign(judge=few["judge"].where(few.index > 2)), judged=more).iloc[
        0
    ]
    assert nobody["n"] == 27
    assert nobody["note"].endswith("excluded: 3.")
    assert "There are no judged rows beyond" in corrected_mean(few).iloc[0]["note"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda few, more: (few.drop(columns="human"), more, {}), "column='human' does not exist"),
        (
            lambda few, more: (few, more.drop(columns="judge"), {}),
            "judged: column='judge' does not exist",
        ),
        (lambda few, more: (few, more.drop(columns="cluster"), {}), "column='cluster'"),
        (lambda few, more: (few, more, {"cluster": "talk"}), "column='talk' does not exist"),
        (lambda few, more: (few, more, {"by": "sytem"}), "column='sytem' does not exist"),
        (lambda few, more: (few, more.assign(item_id=few["item_id"].iloc[0]), {}), "twice"),
        (
            lambda few, more: (few, more.iloc[:1].assign(item_id="q0"), {}),
            "1 rows of judged are in ratings",
        ),
        (lambda few, more: (few.assign(human=np.nan), more, {}), "no row has a human score"),
        (lambda few, more: (few, more, {"scale": (1, 4)}), "outside the scale 1 to 4"),
        (
            lambda few, more: (few, more.assign(judge=-1), {}),
            "judged: row 30: column 'judge': found -1",
        ),
        (lambda few, more: (few.assign(judge="good"), more, {}), "'good' is text, not a score"),
        (
            lambda few, more: (few, more.assign(judge=np.inf), {}),
            "judged: column 'judge' holds an infinite",
        ),
        (lambda few, more: (few, more, {"level": 95}), "level=95"),
        (lambda few, more: (few, more, {"lang": "fr"}), "lang='fr'"),
        (lambda few, more: ("few.csv", more, {}), "few.csv: there is no such file"),
    ],
)
def test_bad_input_is_refused_with_the_next_step(change, words):
    few, more, options = change(*draw(11))
    with pytest.raises(RagnbError, match=words):
        corrected_mean(few, judged=more, **options)


def test_ways_are_the_three_means_of_the_frame():
    few, more = draw(12)
    table = corrected_mean(few.assign(dimension="d"), judged=more.assign(dimension="d"))
    ways = corrected_ways(table).set_index("way")
    for way, head in (("judge", "judge_"), ("human", "human_"), ("corrected", "")):
        want = table[[head + name for name in ("value", "low", "high")]].iloc[0]
        assert ways.loc[way, ["value", "low", "high"]].tolist() == want.tolist()
    assert (ways["dimension"] == "d").all()


def test_labels_needed_are_those_of_the_flags():
    few, _ = draw(14, n=300, m=0)
    kind = few.assign(judge=few["human"] + (np.arange(300) % 12 == 0) * 3.0, dimension="kind")
    wrong = few.assign(judge=6 - few["human"], dimension="wrong")
    how = {"scale": (1, 8)}
    table = calibrate(pd.concat([kind, wrong]), target=0.8, **how).labels_needed.set_index(
        "dimension"
    )
    for name, part in (("kind", kind), ("wrong", wrong)):
        want = stats.labels_needed(
            stats.within(part["judge"], part["human"]), part["cluster"], target=0.8
        )
        row = table.loc[name]
        assert (None if pd.isna(row["total"]) else row["total"], row["reason"]) == (
            want.total,
            want.reason,
        )
    assert "will not help" in table.loc["wrong", "text"]
    assert "无济于事" in calibrate(wrong, lang="zh", **how).labels_needed["text"].item()
    strict = calibrate(kind, tolerance=0, target=0.6, level=0.99, **how).labels_needed.iloc[0]
    flags = stats.within(kind["judge"], kind["human"], 0)
    assert (
        strict["total"] == stats.labels_needed(flags, kind["cluster"], target=0.6, alpha=0.01).total
    )


def test_the_budget_frame_is_the_curve_of_each_dimension():
    few, _ = draw(16, n=200, m=0)
    both = pd.concat([few.assign(dimension="x"), few.assign(dimension="y", judge=few["human"])])
    table = calibrate(both, target=0.7, level=0.9).budget
    assert table["dimension"].unique().tolist() == ["x", "y"]
    curve = stats.label_budget(
        stats.within(few["judge"], few["human"]), few["cluster"], target=0.7, alpha=0.1, level=0.9
    )
    x = table[table["dimension"] == "x"]
    assert x["labels"].tolist() == curve["labels"].tolist()
    for name in ("low", "high", "probability", "chance"):
        assert x[name].to_numpy() == pytest.approx(curve[name], nan_ok=True), name
    assert json.loads(table.to_json(orient="records"))[0]["labels"] == 10
    assert len(x) > 30


WAYS = {
    "mean": lambda few, more, **how: corrected_mean(few, judged=more, **how),
    "needed": lambda few, more, **how: calibrate(few, **how).labels_needed,
    "budget": lambda few, more, **how: calibrate(few, **how).budget,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_declared_mark_is_a_score_that_is_not_there(way):
    few, more = draw(17, n=60, m=60)
    gaps = few["judge"].where(few.index % 7 != 0), few["human"].where(few.index % 9 != 0)
    want = WAYS[way](few.assign(judge=gaps[0], human=gaps[1]), more, scale=SCALE)
    for mark, missing in ((-1, -1), (-1, [-1, -2]), (-1, "outside"), (0.5, "outside")):
        marked = few.assign(judge=gaps[0].fillna(mark), human=gaps[1].fillna(mark))
        pd.testing.assert_frame_equal(WAYS[way](marked, more, scale=SCALE, missing=missing), want)
        with pytest.raises(RagnbError, match="lies outside"):
            WAYS[way](marked, more, scale=SCALE)
    with pytest.raises(RagnbError, match="needs the scale"):
        WAYS[way](few, more, missing="outside")


def test_raters_count_alike_in_columns_and_in_rows_and_rows_without_a_rater_are_judged():
    few, more = draw(18)
    rng = np.random.default_rng(18)
    people = {
        f"human{i}": np.clip(few["human"] + rng.integers(-1, 2, len(few)), 1, 5) for i in (1, 2)
    }
    want = corrected_mean(
        few.assign(human=(people["human1"] + people["human2"]) / 2), judged=more, scale=SCALE
    )
    wide = few.drop(columns="human").assign(**people)
    long = pd.concat([few.assign(human=scores, rater=name) for name, scores in people.items()])
    for same in (wide, pl.from_pandas(wide), long, pl.from_pandas(long)):
        pd.testing.assert_frame_equal(corrected_mean(same, judged=more, scale=SCALE), want)
    pd.testing.assert_frame_equal(corrected_mean(pd.concat([long, more]), scale=SCALE), want)
    with pytest.raises(RagnbError, match="'rater' is empty"):
        corrected_mean(pd.concat([long, more.assign(human=3.0)]), scale=SCALE)


def test_the_corrected_mean_of_a_card_takes_the_same_marks_as_its_ratings():
    few, more = draw(19, n=120, m=60)
    off = more["judge"].where(np.arange(len(more)) % 5 > 0)
    how = {"scale": SCALE}
    want = calibrate(few, judged=more.assign(judge=off), **how)
    for missing in (-1, "outside"):
        card = calibrate(few, judged=more.assign(judge=off.fillna(-1)), missing=missing, **how)
        pd.testing.assert_frame_equal(card.corrected, want.corrected)
    with pytest.raises(RagnbError, match="judged: row 120: column 'judge'"):
        calibrate(few, judged=more.assign(judge=off.fillna(-1)), **how)
