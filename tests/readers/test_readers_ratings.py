"""Ratings: one row an item, a dimension and a rater, whatever the layout; nothing is lost in silence."""

from __future__ import annotations

import csv
import io
import json

import pandas as pd
import polars as pl
import pytest
from reading import refused, rows

from ragnb.calibration import RATING_ALIASES, read_judged, read_ratings

WIDE = [
    {
        "item_id": item,
        "system": system,
        "dimension": "accuracy",
        "judge": judge,
        "human1": one,
        "human2": two,
        "doc_name": doc,
    }
    for item, system, judge, one, two, doc in (
        ("a", "x", 9, 8, 7, "d"),
        ("a", "y", 4, 3, None, "d"),
        ("b", "x", 6, None, None, "e"),
    )
]
TIDY = [
    ("a", "x", 9.0, 8.0, "human1"),
    ("a", "x", 9.0, 7.0, "human2"),
    ("a", "y", 4.0, 3.0, "human1"),
    ("b", "x", 6.0, None, None),
]
LONG = [
    {"sample_id": "a", "rater": "judge", "score": 9},
    {"sample_id": "a", "rater": "ann", "score": 8},
    {"sample_id": "a", "rater": "bo", "score": 7},
    {"sample_id": "b", "rater": "judge", "score": 5},
]


def lossy(frame, what):
    return [
        (row["column"], row["detail"], row["n"])
        for row in frame.attrs["lossy"]
        if row["what"] == what
    ]


def write(folder, form, records):
    path = folder / f"ratings.{form}"
    if form == "parquet":
        pl.DataFrame(records).write_parquet(path)
        return path
    out = io.StringIO()
    if form == "csv":
        writer = csv.DictWriter(out, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    path.write_text(
        {"csv": out.getvalue(), "json": json.dumps(records)}.get(
            form, "\n".join(map(json.dumps, records))
        ),
        encoding="utf-8",
    )
    return path


# Layouts


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet"])
def test_wide_ratings_of_every_format_are_a_row_a_rater(tmp_path, form):
    frame = read_ratings(write(tmp_path, form, WIDE))
    assert rows(frame, "item_id", "system", "judge", "human", "rater") == TIDY
    assert frame.attrs["source"]["format"] == form


@pytest.mark.parametrize(
    "engine", [pd.DataFrame, pl.DataFrame, lambda records: pl.LazyFrame(records)]
)
def test_frames_give_what_records_give(engine):
    pd.testing.assert_frame_equal(read_ratings(engine(WIDE)), read_ratings(WIDE), check_dtype=False)


def test_columns_stand_in_the_order_of_the_contract():
    columns = list(read_ratings([{"note": "n", **row} for row in WIDE]))
    assert columns == [
        "item_id",
        "dimension",
        "judge",
        "human",
        "rater",
        "system",
        "cluster",
        "note",
        "doc_name",
    ]


def test_documents_are_the_clusters_where_the_file_names_none():
    frame = read_ratings(WIDE)
    assert frame["cluster"].tolist() == frame["doc_name"].tolist()
    assert lossy(frame, "made") == [("cluster", "doc_name", 4)]
    own = read_ratings([{**row, "cluster": "c"} for row in WIDE])
    assert set(own["cluster"]) == {"c"}


def test_one_human_column_needs_no_rater():
    frame = read_ratings([{"judge": 9, "human": 8}, {"judge": 5, "human": None}])
    assert rows(frame, "item_id", "judge", "human") == [("1", 9, 8), ("2", 5, None)]
    assert list(frame) == ["item_id", "judge", "human"]
    assert lossy(frame, "made") == [("item_id", "position of the row", 2)]


def test_a_mean_beside_its_raters_is_left_out_and_said():
    frame = read_ratings([{"item_id": "a", "judge": 5, "human": 4.5, "human1": 4, "human2": 5}])
    assert frame["human"].tolist() == [4, 5]
    assert lossy(frame, "left_out") == [
        ("human", "the raters' own scores are taken: human1, human2", 1)
    ]


@pytest.mark.parametrize(
    "names", [("Human 1", "Human 2"), ("rater_1", "rater_2"), ("人工1", "人工2")]
)
def test_numbered_people_are_raters(names):
    frame = read_ratings([{"item_id": "a", "judge": 5, names[0]: 4, names[1]: 6}])
    assert rows(frame, "human", "rater") == [(4, names[0]), (6, names[1])]


def test_a_rescaled_column_is_no_tenth_rater():
    frame = read_ratings([{"item_id": "a", "human": 3, "human10": 7, "judge": 2, "judge10": 4}])
    assert rows(frame, "judge", "human", "judge10", "human10") == [(2, 3, 4, 7)]
    picked = read_ratings(
        [{"item_id": "a", "human": 3, "human10": 7, "judge": 2, "judge10": 4}],
        judge="judge10",
        human="human10",
    )
    assert rows(picked, "judge", "human") == [(4, 7)]


def test_several_judges_keep_their_names_and_one_is_the_judge():
    several = read_ratings(
        [{"item_id": "a", "judge_A": 1, "judge_B": 2, "judge_name": "x", "human": 3}]
    )
    assert list(several) == ["item_id", "judge_A", "judge_B", "human", "judge_name"]
    one = read_ratings([{"item_id": "a", "judge_A": 1, "judge_name": "x", "human": 3}])
    assert rows(one, "judge", "human") == [(1, 3)]
    assert ("judge_A", "judge", 1) in lossy(one, "mapped")


def test_named_columns_of_people_and_judges_are_taken():
    records = [{"item_id": "a", "gpt": 1, "claude": 2, "ann": 3, "bo": 4}]
    frame = read_ratings(records, judge=["gpt", "claude"], human=["ann", "bo"])
    assert rows(frame, "gpt", "claude", "human", "rater") == [(1, 2, 3, "ann"), (1, 2, 4, "bo")]
    single = read_ratings(records, judge="gpt", human="bo")
    assert rows(single, "judge", "human") == [(1, 4)]


def test_long_ratings_stand_beside_their_judge():
    frame = read_ratings(LONG)
    assert rows(frame, "item_id", "judge", "human", "rater") == [
        ("a", 9, 8, "ann"),
        ("a", 9, 7, "bo"),
        ("b", 5, None, None),
    ]


@pytest.mark.parametrize("name", ["judge", "Judge", "llm", "LLM-judge", "judge:gpt-4o", "评审"])
def test_a_rater_called_judge_is_the_judge(name):
    records = [{"id": "a", "rater": name, "score": 9}, {"id": "a", "rater": "ann", "score": 8}]
    assert rows(read_ratings(records), "judge", "human") == [(9, 8)]


MODELS = """gpt-4o,GPT-4,GPT 4,chatgpt,claude-3-opus,claude-sonnet-4,gemini,qwen2.5-72b,deepseek-v3,llama-3,mistral
o3-mini,meta-llama/Llama-3-8B,ragas,bot,machine,auto,自动,自动评分,大模型,通义千问""".replace(
    "\n", ","
).split(",")


@pytest.mark.parametrize("key", ["rater", "annotator"])
@pytest.mark.parametrize("name", MODELS)
def test_a_rater_that_is_a_model_is_the_judge_unless_called_a_person(name, key):
    records = [{"id": "a", key: name, "score": 9}, {"id": "a", key: "ann", "score": 8}]
    assert rows(read_ratings(records), "judge", "human") == [(9, 8)]
    assert "judge" not in read_ratings(records, human=[name, "ann"])
    refused(
        lambda: read_ratings(records[:1]),
        "contains no human scores",
        "all its scores come from a judge",
    )


@pytest.mark.parametrize(
    "name",
    ["Claude", "Claude Monet", "Gemma", "Yi Wang", "Kimi", "Phil", "Botond", "Grok", "王自动"],
)
def test_a_rater_with_a_name_that_people_have_is_a_person(name):
    assert "judge" not in read_ratings([{"id": "a", "rater": name, "score": 9}])


def test_any_rater_can_be_named_the_judge():
    records = [
        {**row, "rater": {"judge": "grader-4o"}.get(row["rater"], row["rater"])} for row in LONG
    ]
    pd.testing.assert_frame_equal(read_ratings(records, judge="grader-4o"), read_ratings(LONG))
    assert "judge" not in read_ratings(records)
    refused(
        lambda: read_ratings(records, judge="grader-4"),
        "judge='grader-4'",
        "did you mean 'grader-4o'",
    )


def test_several_judges_among_the_raters_are_columns():
    records = [*LONG, {"sample_id": "a", "rater": "judge_B", "score": 3}]
    frame = read_ratings(records, judge=["judge", "judge_B"])
    assert rows(frame, "judge", "judge_B", "human") == [(9, 3, 8), (9, 3, 7), (5, None, None)]


def test_repeated_scores_of_a_judge_are_averaged_and_counted():
    frame = read_ratings([*LONG, {"sample_id": "a", "rater": "judge", "score": 7}])
    assert frame.loc[frame["item_id"] == "a", "judge"].tolist() == [8, 8]
    assert ("judge", "several scores of one judge on an item are averaged", 1) in lossy(
        frame, "mapped"
    )


def test_a_rating_a_hair_beyond_the_scale_is_its_end():
    frame = read_ratings([{"item_id": "a", "judge": 1.00000011921, "human": -5e-7}], scale=(0, 1))
    assert rows(frame, "judge", "human") == [(1, 0)]
    assert [(column, n) for column, _, n in lossy(frame, "clipped")] == [("judge", 1), ("human", 1)]
    far = [{"item_id": "a", "judge": 1.00001, "human": 1}]
    refused(lambda: read_ratings(far, scale=(0, 1)), "outside the scale")


@pytest.mark.parametrize("name", ["score", "rating", "value"])
def test_a_score_of_nobody_is_no_rating_by_people(name):
    rows_ = [{"item_id": "a", name: 0.5}, {"item_id": "b", name: 1}]
    refused(
        lambda: read_ratings(rows_), f"column {name!r}", "who gave", f"human={name!r}", "judged="
    )
    assert rows(read_ratings(rows_, human=name), "item_id", "human") == [("a", 0.5), ("b", 1)]
    people = [{"item_id": "a", "human": 1}]
    assert rows(read_ratings(people, judged=rows_), "judge", "human") == [(0.5, 1)]
    assert rows(read_judged(rows_), "item_id", "judge") == [("a", 0.5), ("b", 1)]
    assert rows(read_ratings([{"item_id": "a", name: 1}], judged=rows_), "judge", "human") == [
        (0.5, 1)
    ]


@pytest.mark.parametrize(
    ("column", "person", "judge", "neither"),
    [("source", "ANNOTATION", "EVAL", "API"), ("source_type", "HUMAN", "LLM_JUDGE", "CODE")],
)
def test_a_column_that_says_who_scored_parts_people_from_judges(column, person, judge, neither):
    records = [
        {"trace_id": "t", "value": v, column: by}
        for v, by in ((1, person), (0.5, judge), (0, neither))
    ]
    frame = read_ratings(records)
    assert rows(frame, "item_id", "judge", "human") == [("t", 0.5, 1)]
    assert [n for _, _, n in lossy(frame, "left_out")] == [1]
    refused(lambda: read_ratings(records[1:]), "no human scores", "judged=")


def test_people_alone_are_read_without_a_judge():
    frame = read_ratings([row for row in LONG if row["rater"] != "judge"])
    assert list(frame) == ["item_id", "human", "rater"]


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        (n, a)
        for n in ("item_id", "dimension", "judge", "human", "cluster")
        for a in RATING_ALIASES[n]
    ],
)
def test_aliases_of_wide_ratings(name, alias):
    record = {"item_id": "a", "dimension": "d", "judge": 5, "human": 4, "cluster": "c"}
    frame = read_ratings([{alias if key == name else key: value for key, value in record.items()}])
    assert rows(frame, *record) == [tuple(record.values())]


@pytest.mark.parametrize(
    ("name", "alias"), [(n, a) for n in ("rater", "score") for a in RATING_ALIASES[n]]
)
def test_aliases_of_long_ratings(name, alias):
    records = [{alias if key == name else key: value for key, value in row.items()} for row in LONG]
    pd.testing.assert_frame_equal(read_ratings(records), read_ratings(LONG))


# Tools


def test_langfuse_annotations_stand_beside_evaluations():
    base = {
        "id": "s",
        "name": "accuracy",
        "dataType": "NUMERIC",
        "traceId": "t1",
        "observationId": None,
    }
    frame = read_ratings(
        [
            {**base, "value": 8, "source": "ANNOTATION", "authorUserId": "u1"},
            {**base, "value": 9, "source": "EVAL", "authorUserId": None},
            {**base, "value": 1, "source": "API", "authorUserId": None},
            {**base, "value": 0, "source": "ANNOTATION", "authorUserId": "u1", "dataType": "TEXT"},
            {
                **base,
                "value": 6,
                "source": "ANNOTATION",
                "authorUserId": "u2",
                "traceId": "t2",
                "observationId": "o",
            },
        ]
    )
    assert rows(frame, "item_id", "dimension", "judge", "human", "rater") == [
        ("t1", "accuracy", 9, 8, "u1"),
        ("t2:o", "accuracy", None, 6, "u2"),
    ]
    assert frame.attrs["source"]["layout"] == "langfuse"
    assert [n for _, _, n in lossy(frame, "left_out")] == [1, 1]


@pytest.mark.parametrize("score", ["score", "result.score"])
def test_phoenix_annotations_by_people_stand_beside_those_by_models(score):
    base = {"context.span_id": "s1", "annotation_name": "correctness", "label": "x"}
    frame = read_ratings(
        [
            {**base, score: 1.0, "annotator_kind": "LLM"},
            {**base, score: 0.0, "annotator_kind": "HUMAN"},
            {**base, score: 0.5, "annotator_kind": "CODE"},
        ]
    )
    assert rows(frame, "item_id", "dimension", "judge", "human") == [("s1", "correctness", 1, 0)]
    assert frame.attrs["source"]["layout"] == "phoenix"
    assert lossy(frame, "left_out") == [
        ("annotator_kind", "scores that neither a person nor a judge gave", 1)
    ]


# A second table with the judge's scores

SHEET = [
    {"sample_id": "a", "accuracy": 8, "clarity": 9, "rater": "ann"},
    {"sample_id": "b", "accuracy": None, "clarity": 4, "rater": "ann"},
]
JUDGED = [
    {"sample_id": name, "question": "q", "accuracy": accuracy, "clarity": clarity}
    for name, accuracy, clarity in (("a", 10, 7), ("b", 2, 3), ("c", 2, 3))
]


def test_one_column_a_dimension_is_joined_with_the_judges_table():
    frame = read_ratings(SHEET, judged=JUDGED)
    assert rows(frame, "item_id", "dimension", "judge", "human") == [
        ("a", "accuracy", 10, 8),
        ("a", "clarity", 7, 9),
        ("b", "clarity", 3, 4),
    ]
    assert ("human", "cells that nobody filled in", 1) in lossy(frame, "left_out")
    assert ("judge", "scores of items that nobody rated", 3) in lossy(frame, "left_out")


def test_people_in_rows_are_joined_with_dimensions_in_columns_and_the_other_way_round():
    people = [
        {"item_id": "a", "dimension": "clarity", "rater": r, "score": s}
        for r, s in (("ann", 9), ("bo", 5))
    ]
    expected = [("a", "clarity", 7, 9, "ann"), ("a", "clarity", 7, 5, "bo")]
    assert (
        rows(read_ratings(people, judged=JUDGED), "item_id", "dimension", "judge", "human", "rater")
        == expected
    )
    judged = [{"item_id": "a", "dimension": "clarity", "judge": 7}]
    assert rows(read_ratings(SHEET, judged=judged), "item_id", "judge", "human") == [
        ("a", 7, 9),
        ("b", None, 4),
    ]


def test_systems_tell_items_apart_in_a_join():
    judged = [{"item_id": "a", "system": s, "judge": v} for s, v in (("x", 1), ("y", 2))]
    people = [{"item_id": "a", "system": "y", "human": 3}]
    assert rows(read_ratings(people, judged=judged), "system", "judge", "human") == [("y", 2, 3)]
    refused(
        lambda: read_ratings([{"item_id": "a", "human": 3}], judged=judged),
        "item 'a'",
        "more than once",
    )


def test_unrated_items_of_a_second_table_do_not_come_back():
    assert set(read_ratings(SHEET, judged=JUDGED)["item_id"]) == {"a", "b"}
    refused(lambda: read_ratings([{"id": "a", "accuracy": None}], judged=JUDGED), "human")


def test_judged_items_are_read_without_people():
    assert rows(read_judged([{"id": "a", "judge": 3}]), "item_id", "judge") == [("a", 3)]
    read = rows(read_judged(JUDGED), "item_id", "dimension", "judge")
    assert read[:2] == [("a", "accuracy", 10), ("a", "clarity", 7)]
    assert set(read_judged(JUDGED, dimensions=["clarity"])["dimension"]) == {"clarity"}
    refused(
        lambda: read_judged(JUDGED, dimensions=["clarty"]),
        "'clarty' is not a column",
        "you mean 'clarity'",
    )
    refused(lambda: read_judged([{"id": "a", "question": "q"}]), "contains no judge scores")


def test_a_second_table_comes_before_the_judge_of_the_first():
    frame = read_ratings(
        [{"item_id": "a", "judge": 1, "human": 2}], judged=[{"item_id": "a", "judge": 3}]
    )
    assert frame["judge"].tolist() == [3]
    assert ("judge", "the scores of the judge's own table are taken", 1) in lossy(frame, "left_out")


# Refusals


def test_minus_one_is_refused_unless_it_is_declared(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("item_id,judge,human\na,9,8\nb,-1,7\n")
    refused(
        lambda: read_ratings(path),
        "r.csv, line 3",
        "'judge'",
        "-1 in 1 of 2",
        "missing=-1",
        "scale=(-1, 1)",
    )
    frame = read_ratings(path, missing=-1)
    assert rows(frame, "judge", "human") == [(9, 8), (None, 7)]
    assert ("judge", "-1 is missing", 1) in lossy(frame, "mapped")
    assert read_ratings(path, scale=(-1, 10))["judge"].tolist() == [9, -1]


def test_what_lies_outside_the_scale_is_missing_where_that_is_said(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("item_id,judge,human\na,9,8\nb,-0.5,7\nc,3,99\nd,1,2\n")
    frame = read_ratings(path, missing=["outside", 3], scale=(1, 10))
    assert rows(frame, "judge", "human") == [(9, 8), (None, 7), (None, None), (1, 2)]
    assert ("judge", "3, what lies outside the scale is missing", 2) in lossy(frame, "mapped")
    refused(lambda: read_ratings(path, missing="outside"), "needs the scale")


SCORE_OF_PROMPTFOO = {
    "id": "x",
    "testIdx": 0,
    "vars": {"query": "q"},
    "response": {"output": "a"},
    "score": 1,
}
HUMANS_TWICE = [{"item_id": "a", "judge": 1, "human": human} for human in (2, 3)]
REFUSED = {
    "outside the scale": (
        "item_id,judge,human\na,9,8\nb,11,7\n",
        {"scale": (1, 10)},
        ["r.csv, line 3", "11", "1 to 10", "1 of 2", "missing=11"],
    ),
    "no number": ("item_id,judge,human\na,9,8/10\n", {}, ["r.csv, line 2", "'human'", "8/10"]),
    "two scores of a person": (HUMANS_TWICE, {}, ["item_id 'a'", "more than once", "'rater'"]),
    "two scores of a rater": (
        [*LONG, {"sample_id": "a", "rater": "ann", "score": 1}],
        {},
        ["rater 'ann'"],
    ),
    "no people": (
        [{"item_id": "a", "judge": 1}],
        {},
        ["no human scores", "human='…'", "judged='…'"],
    ),
    "an empty column of people": ([{"item_id": "a", "judge": 1, "human": None}], {}, ["is empty"]),
    "no item": ([{"rater": "ann", "score": 1}], {}, ["item_id"]),
    "an unknown column": (WIDE, {"human": "humann1"}, ["human='humann1'", "did you mean 'human1'"]),
    "no common dimension": (
        [{"id": "a", "clarity": 3}],
        {"judged": [{"id": "a", "accuracy": 2}]},
        ["no dimension"],
    ),
    "no common item": (
        SHEET,
        {"judged": [{"id": "z", "accuracy": 1, "clarity": 2}]},
        ["no item in it is in", "z"],
    ),
    "the score of promptfoo": ([SCORE_OF_PROMPTFOO], {}, ["'score'", "who gave"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_ratings_are_refused_with_their_place_and_the_next_step(tmp_path, what):
    ratings, options, words = REFUSED[what]
    if isinstance(ratings, str):
        (tmp_path / "r.csv").write_text(ratings)
        ratings = tmp_path / "r.csv"
    refused(lambda: read_ratings(ratings, **options), *words)


def test_minus_one_is_a_score_where_other_numbers_lie_below_0():
    assert read_ratings([{"judge": -1, "human1": -2, "human2": 0}])["judge"].tolist() == [-1, -1]
