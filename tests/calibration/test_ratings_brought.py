"""Ratings as a caller brings them: a file gives what its frame gives, and no row is lost without a word."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ragnb as rn
from ragnb.calibration import unrated
from ragnb.errors import MOST_COUNTED, RagnbError

SCALE = (1, 5)
WAYS = {"calibrate": rn.calibrate, "agreement": rn.agreement, "mean": rn.corrected_mean}


def rated(n=200, seed=0):
    """Return items with the scores of two judges and of two people, on one dimension and 40 documents."""
    rng = np.random.default_rng(seed)
    ann = rng.integers(1, 6, n)
    scores = {
        name: np.clip(ann + rng.integers(-1, 2, n), 1, 5) for name in ("bob", "judge", "second")
    }
    about = {
        "item_id": [f"i{k}" for k in range(n)],
        "dimension": "x",
        "cluster": [f"d{k % 40}" for k in range(n)],
    }
    return pd.DataFrame(about | {"ann": ann} | scores)


def two_dimensions(n=200):
    """Return the same items on two dimensions."""
    return pd.concat([rated(n), rated(n, seed=1).assign(dimension="y")], ignore_index=True)


def one_person(n=200):
    return rated(n).rename(columns={"ann": "human"}).drop(columns=["bob", "second"])


def further(n=500):
    """Return rows that the judge alone scored, of new items."""
    rows = one_person(n).drop(columns="human")
    return rows.assign(item_id=[f"more{k}" for k in range(n)])


def tables(result):
    """Return the frames of a result that hold its numbers."""
    if isinstance(result, pd.DataFrame):
        return [result]
    if isinstance(result, rn.CalibrationCard):
        return [result.verdicts, result.table, result.corrected, result.inflation]
    return [result.judges, result.added, result.worth]


def assert_same(one, other):
    for left, right in zip(tables(one), tables(other), strict=True):
        pd.testing.assert_frame_equal(left, right)


# Rows that a judge alone scored


def n_judged(card):
    return set(card.corrected.loc[card.corrected["system"] == "", "n_judged"])


@pytest.mark.parametrize("engine", [lambda frame: frame, pl.from_pandas])
@pytest.mark.parametrize("way", ["calibrate", "mean"])
def test_judged_without_the_dimension_of_the_ratings_is_asked_for_it(way, engine):
    ratings, more = engine(one_person()), engine(further().drop(columns="dimension"))
    with pytest.raises(RagnbError, match=r"judged: column='dimension' does not exist; \(have: "):
        WAYS[way](ratings, judged=more, scale=SCALE)


@pytest.mark.parametrize("way", ["calibrate", "mean"])
def test_a_dimension_in_judged_alone_is_asked_for_in_the_ratings(way):
    ratings = one_person().drop(columns="dimension")
    with pytest.raises(RagnbError, match="'dimension' is in judged and not in the ratings; add it"):
        WAYS[way](ratings, judged=further(), scale=SCALE)


def test_judged_rows_of_no_rated_dimension_are_refused_with_both_names():
    for name in ("X", "y"):
        with pytest.raises(RagnbError, match=f"of its 500 rows says {name}, the ratings say x; "):
            rn.calibrate(one_person(), judged=further().assign(dimension=name), scale=SCALE)
    gaps = further().assign(dimension=["x", None] * 250)
    with pytest.raises(RagnbError, match=r"is empty in 250 of 500 rows; .* \(x\)"):
        rn.calibrate(one_person(), judged=gaps, scale=SCALE)


def test_every_judged_row_of_a_rated_dimension_is_counted():
    ratings, more = one_person(), further()
    assert n_judged(rn.calibrate(ratings, judged=more, scale=SCALE)) == {500}
    assert n_judged(rn.calibrate(ratings, judged=more[:0], scale=SCALE)) == {0}
    nameless = [frame.drop(columns="dimension") for frame in (ratings, more)]
    assert n_judged(rn.calibrate(nameless[0], judged=nameless[1], scale=SCALE)) == {500}
    assert n_judged(rn.calibrate(ratings, judged=nameless[1], scale=SCALE, by=None)) == {500}
    # Numbers are names whatever their type.
    numbered = ratings.assign(dimension=[1, 2] * 100)
    halves = more.assign(dimension=[1.0, 2.0] * 250)
    assert n_judged(rn.calibrate(numbered, judged=halves, scale=SCALE)) == {250}
    # A judge may score more dimensions than people rate.
    both = more.assign(dimension=["x"] * 300 + ["y"] * 200)
    assert n_judged(rn.calibrate(ratings, judged=both, scale=SCALE)) == {300}
    # Rows without a dimension are a group where people rated such rows.
    gaps = [
        frame.assign(dimension=[*["x"] * 100, *[None] * (len(frame) - 100)])
        for frame in (ratings, more)
    ]
    card = rn.calibrate(gaps[0], judged=gaps[1], scale=SCALE)
    assert n_judged(card) == {100, 400}


def test_judged_names_the_system_where_ratings_have_several():
    ratings = one_person().assign(system=["a", "b"] * 100)
    with pytest.raises(RagnbError, match="judged: column='system' does not exist"):
        rn.calibrate(ratings, judged=further(), scale=SCALE)
    means = rn.calibrate(
        ratings, judged=further().assign(system=["a", "b"] * 250), scale=SCALE
    ).corrected
    assert means.groupby("system")["n_judged"].first().to_dict() == {"": 500, "a": 250, "b": 250}
    alone = rn.calibrate(ratings.assign(system="a"), judged=further(), scale=SCALE)
    assert n_judged(alone) == {500}


def test_judged_may_be_a_file_of_a_judge_alone(tmp_path):
    ratings, more = one_person(), further()
    more.to_csv(tmp_path / "more.csv", index=False)
    for way in (rn.calibrate, rn.corrected_mean):
        assert_same(
            way(ratings, judged=tmp_path / "more.csv", scale=SCALE),
            way(ratings, judged=more, scale=SCALE),
        )
    names = {"judge": "gpt", "dimension": "criterion"}
    ratings, more = ratings.rename(columns=names), more.rename(columns=names)
    more.to_csv(tmp_path / "gpt.csv", index=False)
    how = {"judge": "gpt", "by": "criterion", "scale": SCALE}
    for way in (rn.calibrate, rn.corrected_mean):
        assert_same(
            way(ratings, judged=tmp_path / "gpt.csv", **how), way(ratings, judged=more, **how)
        )


def test_unrated_rows_of_a_judge_are_the_judged_rows_of_a_card():
    ratings = one_person()
    whole = pd.concat([ratings.drop(columns="human"), further()], ignore_index=True)
    card = rn.calibrate(ratings, judged=unrated(whole, ratings), scale=SCALE)
    assert n_judged(card) == {500}


# A path in place of a frame


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("human", [["ann", "bob"], ("bob", "ann"), ["ann"], "ann"])
def test_columns_of_people_are_read_from_a_path_as_from_a_frame(way, human, tmp_path):
    frame = rated()
    frame.to_csv(tmp_path / "a.csv", index=False)
    how = {"human": human, "scale": SCALE}
    assert_same(WAYS[way](tmp_path / "a.csv", **how), WAYS[way](frame, **how))
    assert_same(WAYS[way](str(tmp_path / "a.csv"), **how), WAYS[way](frame, **how))


@pytest.mark.parametrize("way", WAYS)
def test_items_that_a_person_left_out_are_read_from_a_path_as_from_a_frame(way, tmp_path):
    frame = rated().drop(columns="item_id")
    frame[["ann", "bob"]] = frame[["ann", "bob"]].astype(float)
    frame.loc[:30, "ann"] = np.nan
    frame.loc[20:40, "bob"] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    how = {"human": ["ann", "bob"], "scale": SCALE}
    assert_same(WAYS[way](tmp_path / "a.csv", **how), WAYS[way](frame, **how))
    # The reader names the column of raters itself, whatever the frame's would be called.
    if way != "mean":
        how["rater"] = "annotator"
        assert_same(WAYS[way](tmp_path / "a.csv", **how), WAYS[way](frame, **how))


@pytest.mark.parametrize("by", ["dimension", None])
def test_a_panel_of_a_path_is_that_of_the_frame(by, tmp_path):
    frame = two_dimensions()
    frame.to_csv(tmp_path / "a.csv", index=False)
    how = {"judge": ["judge", "second"], "human": ["ann", "bob"], "scale": SCALE, "by": by}
    assert_same(rn.panel(tmp_path / "a.csv", **how), rn.panel(frame, **how))


@pytest.mark.parametrize("way", [rn.calibrate, rn.agreement])
def test_dimensions_that_nobody_asks_for_are_no_second_rating_of_an_item(way, tmp_path):
    frame = two_dimensions()
    frame.to_csv(tmp_path / "a.csv", index=False)
    how = {"human": ["ann", "bob"], "scale": SCALE, "by": None}
    long = frame.melt(
        [name for name in frame if name not in ("ann", "bob")],
        ["ann", "bob"],
        var_name="rater",
        value_name="human",
    )
    want = way(frame, **how)
    assert_same(way(tmp_path / "a.csv", **how), want)
    assert_same(way(long, scale=SCALE, by=None), want)
    again = pd.concat([long, long[:1]])
    with pytest.raises(RagnbError, match="rater 'ann' rated item i0 twice"):
        way(again, scale=SCALE, by=None)


@pytest.mark.parametrize("way", [rn.calibrate, rn.agreement, rn.panel])
def test_judges_in_rows_go_by_the_names_that_the_caller_gave(way, tmp_path):
    frame = rated()
    about = frame[["item_id", "dimension", "cluster"]]
    rows = [
        about.assign(rater=name, score=frame[column])
        for name, column in {"ann": "ann", "bob": "bob", "gpt": "judge", "claude": "second"}.items()
    ]
    pd.concat(rows).to_csv(tmp_path / "long.csv", index=False)
    wide = frame.rename(columns={"judge": "gpt", "second": "claude"})
    how = {"judge": ["gpt", "claude"], "human": ["ann", "bob"], "scale": SCALE}
    assert_same(way(tmp_path / "long.csv", **how), way(wide, **how))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("judge", ["gpt", ["gpt"]])
def test_a_judge_of_a_path_has_the_numbers_of_the_frame(way, judge, tmp_path):
    frame = one_person()
    frame.rename(columns={"judge": "gpt"}).to_csv(tmp_path / "a.csv", index=False)
    found = WAYS[way](tmp_path / "a.csv", judge=judge, scale=SCALE)
    assert_same(found, WAYS[way](frame, scale=SCALE))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("missing", [-1, "outside", ["outside", -1]])
def test_marks_of_a_path_are_those_of_the_frame(way, missing, tmp_path):
    frame = one_person()
    frame.loc[:20, "judge"] = -1
    frame.loc[15:40, "human"] = -1
    frame.to_csv(tmp_path / "a.csv", index=False)
    how = {"missing": missing, "scale": SCALE}
    assert_same(WAYS[way](tmp_path / "a.csv", **how), WAYS[way](frame, **how))
    below = frame.assign(judge=frame["judge"] - 1.0)  # -1 is a score where the scale says so
    below.to_csv(tmp_path / "b.csv", index=False)
    assert_same(WAYS[way](tmp_path / "b.csv", scale=(-2, 5)), WAYS[way](below, scale=(-2, 5)))


@pytest.mark.parametrize("way", [rn.calibrate, rn.agreement])
def test_columns_that_the_reader_renames_go_by_the_names_that_the_caller_gave(way, tmp_path):
    frame = rated()
    about = frame[["item_id", "judge"]].assign(
        criterion="x", document=frame["cluster"], split=["p", "q"] * 100
    )
    long = pd.concat([about.assign(annotator=name, human=frame[name]) for name in ("ann", "bob")])
    long = long.reset_index(drop=True)
    long.to_csv(tmp_path / "long.csv", index=False)
    how = {"rater": "annotator", "by": "criterion", "cluster": "document", "scale": SCALE}
    found, want = way(tmp_path / "long.csv", **how), way(long, **how)
    assert_same(found, want)
    # Two people on 200 items are 200 pairs, not 400.
    assert tables(found)[0]["n"].iloc[0] == 200


def long_ratings():
    """Return 200 items, each rated by two people in rows of their own."""
    about = rated()[["item_id", "dimension", "cluster", "judge"]]
    rows = [about.assign(rater=name, human=rated()[name]) for name in ("ann", "bob")]
    return pd.concat(rows, ignore_index=True)


@pytest.mark.parametrize("as_file", [False, True])
@pytest.mark.parametrize("way", [rn.calibrate, rn.agreement])
def test_a_column_of_raters_that_is_named_and_not_there_is_asked_for(way, as_file, tmp_path):
    source = long_ratings()
    if as_file:
        source.to_csv(tmp_path / "long.csv", index=False)
        source = tmp_path / "long.csv"
    with pytest.raises(RagnbError, match=r"column='ratr' does not exist; did you mean 'rater'\?"):
        way(source, rater="ratr", scale=SCALE)
    # Two people on 200 items are 200 pairs; as items of their own they would be 400.
    assert tables(way(source, scale=SCALE))[0]["n"].iloc[0] == 200
    alone = one_person().drop(columns="item_id")
    with pytest.raises(RagnbError, match=r"column='who' does not exist; \(have: "):
        way(alone, rater="who", scale=SCALE)


def test_a_panel_asks_for_the_column_of_raters_that_is_named():
    frame = long_ratings().assign(second=3)
    with pytest.raises(RagnbError, match="column='typo' does not exist"):
        rn.panel(frame, judge=["judge", "second"], rater="typo", scale=SCALE)


def test_a_corrected_mean_asks_for_the_column_of_items_that_is_named():
    with pytest.raises(RagnbError, match=r"column='itm_id' does not exist; did you mean 'item_id'"):
        rn.corrected_mean(one_person(), judged=further(), item="itm_id", scale=SCALE)


# Rows of judged that are in the ratings, too

BOTH = r"2 rows of judged are in ratings too, the first \{'item_id': .*\}: they would count twice"


@pytest.mark.parametrize("way", [rn.calibrate, rn.corrected_mean])
@pytest.mark.parametrize("engine", [lambda frame: frame, pl.from_pandas, pl.LazyFrame])
def test_judged_rows_that_are_in_the_ratings_too_are_refused(way, engine):
    ratings, more = one_person(), further()
    again = ratings.drop(columns="human")[:2]
    both = pd.concat([more, again], ignore_index=True)
    with pytest.raises(RagnbError, match=BOTH):
        way(engine(ratings), judged=engine(both), scale=SCALE)
    way(engine(ratings), judged=engine(more), scale=SCALE)
    # The same item on another dimension, or of another system, is another rating.
    rated = pd.concat([ratings, ratings[:9].assign(dimension="y")])
    way(rated, judged=pd.concat([more, ratings[9:].assign(dimension="y")]), scale=SCALE)


@pytest.mark.parametrize("way", [rn.calibrate, rn.corrected_mean])
@pytest.mark.parametrize(("of_ratings", "of_judged"), [(int, str), (str, int), (float, str)])
def test_ids_and_dimensions_are_matched_by_what_they_say_not_by_their_type(
    way, of_ratings, of_judged
):
    ratings = one_person().assign(
        item_id=np.arange(200).astype(of_ratings), dimension=of_ratings(1)
    )
    more = further().assign(item_id=np.arange(198, 698).astype(of_judged), dimension=of_judged(1))
    with pytest.raises(RagnbError, match=BOTH):
        way(ratings, judged=more, scale=SCALE)
    apart = way(ratings, judged=more[2:], scale=SCALE)
    alike = more[2:].assign(item_id=np.arange(200, 698).astype(of_ratings), dimension=of_ratings(1))
    assert_same(apart, way(ratings, judged=alike, scale=SCALE))


def test_the_corrected_mean_of_a_dimension_counts_its_judged_rows_whatever_their_type():
    ratings, more = one_person().assign(dimension=1), further().assign(dimension="1")
    found = rn.corrected_mean(ratings, judged=more, scale=SCALE)
    assert found[["dimension", "n", "n_judged"]].values.tolist() == [[1, 200, 500]]
    card = rn.calibrate(ratings, judged=more, scale=SCALE)
    by_card = card.corrected[card.corrected["way"] == "corrected"].iloc[0]
    assert found["value"].item() == pytest.approx(by_card["value"], abs=1e-12)


def test_a_row_that_nobody_rated_counts_once_where_the_ratings_hold_it_with_the_judges_score():
    ratings = one_person().astype({"human": float})
    ratings.loc[150:, "human"] = np.nan
    whole = pd.concat([ratings.drop(columns="human"), further()], ignore_index=True)
    for way in (rn.calibrate, rn.corrected_mean):
        found = way(ratings, judged=unrated(whole, ratings), scale=SCALE)
        assert_same(found, way(ratings, judged=further(), scale=SCALE))
    # Only the judge's table has the scores of these: they are not lost.
    ratings.loc[150:, "judge"] = np.nan
    assert len(unrated(whole, ratings)) == 550


def test_rows_without_an_item_are_not_taken_for_one_item():
    ratings, more = one_person().assign(item_id=None), further().assign(item_id=None)
    assert n_judged(rn.calibrate(ratings, judged=more, scale=SCALE)) == {500}


# Nothing to look at


@pytest.mark.parametrize("way", [*WAYS, "panel"])
@pytest.mark.parametrize("engine", [lambda frame: frame, pl.from_pandas])
def test_ratings_without_a_row_say_so(way, engine):
    ways = WAYS | {"panel": lambda rows: rn.panel(rows, judge=["judge", "second"])}
    empty = rated().rename(columns={"ann": "human"})[:0]
    long = empty.assign(rater=pd.Series(dtype=str))
    for frame in (empty, empty.drop(columns="dimension"), long):
        with pytest.raises(RagnbError, match="the ratings have no rows; give a row for each item"):
            ways[way](engine(frame))


@pytest.mark.parametrize("way", ["calibrate", "agreement"])
@pytest.mark.parametrize("role", ["judge", "human"])
def test_no_column_of_scores_is_refused_by_its_argument(way, role):
    with pytest.raises(RagnbError, match=rf"{role}=\[\] names no column of scores; name one"):
        WAYS[way](one_person(), **{role: []})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "value",
    [10**12 + 1, 10**400, 10**5000, -(10**5000)],
    ids=lambda value: f"{value.bit_length()} bits",
)
def test_a_plan_of_more_labels_than_there_can_be_is_refused(value):
    at = r"labels_planned is about -?10\^\d+; give a whole number of 1 or more, up to 1,000,000,"
    with pytest.raises(RagnbError, match=at):
        rn.calibrate(one_person(), scale=SCALE, labels_planned=value)
    # The end itself is the scenario's, too.
    card = rn.calibrate(one_person(), scale=SCALE, labels_planned=MOST_COUNTED)
    assert card.footer["labels_planned"] == MOST_COUNTED
