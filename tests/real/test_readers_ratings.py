"""The four real sets of ratings, counted a second time with the csv module."""

from __future__ import annotations

import csv

import pytest

from ragnb import read_ratings

SETS = {
    "hanna": (
        [
            "judge_Beluga-13B",
            "judge_Mistral-7B",
            "judge_Llama-13B",
            "judge_ChatGPT",
            "judge_OrcaPlatypus",
        ],
        3,
    ),
    "mtrag": (["judge"], 0),
    "ragchecker_meta": (["judge"], 2),
}


def records(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", SETS)
def test_wide_sets_are_a_row_a_rating(shared, name):
    judges, raters = SETS[name]
    path = shared / "data" / "ratings" / f"{name}.csv"
    people = [f"human{i + 1}" for i in range(raters)] or ["human"]
    expected = [
        (
            row["item_id"],
            row["dimension"],
            row["system"],
            float(row[person]),
            *(float(row[j]) for j in judges),
        )
        for row in records(path)
        for person in people
        if row[person]
    ]
    frame = read_ratings(path)
    found = frame[["item_id", "dimension", "system", "human", *judges]]
    assert list(found.itertuples(index=False, name=None)) == expected
    assert ("rater" in frame) is bool(raters)
    assert frame["cluster"].nunique() == len({row["cluster"] for row in records(path)})


def test_single_ratings_of_a_long_set_give_the_means_of_the_wide_one(shared):
    folder = shared / "data" / "ratings"
    long, wide = read_ratings(folder / "mtrag_raters.csv"), read_ratings(folder / "mtrag.csv")
    assert len(long) == len(records(folder / "mtrag_raters.csv")) == 5656
    assert "judge" not in long
    assert long["rater"].nunique() == 7
    keys = ["item_id", "system", "dimension"]
    means = long.groupby(keys)["human"].mean()
    kept = wide[wide["dimension"] != "overall3"].set_index(keys)
    assert (means - kept["human"]).abs().max() < 1e-12
    assert len(means) == len(kept)
    beside = read_ratings(folder / "mtrag_raters.csv", judged=folder / "mtrag.csv")
    assert len(beside) == len(long)
    assert beside["judge"].notna().all()


def test_rescaled_columns_are_taken_where_they_are_named(shared):
    path = shared / "data" / "ratings" / "mtrag.csv"
    frame = read_ratings(path, judge="judge10", human="human10", scale=(1, 10))
    assert frame["human"].tolist() == [float(row["human10"]) for row in records(path)]
    assert frame["judge"].tolist() == [float(row["judge10"]) for row in records(path)]
