"""Retrieved against gold passages: by id, else by text, each equal to a count by hand; nothing asks a model."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragnb as rn
from ragnb.scoring import gold

BOTH = ["context_precision", "context_recall_by_passages"]
WARRANTY = "The warranty for the pump is 24 months from the day of delivery."
LUNCH = "Lunch is served at noon in the canteen on the second floor."
NOTICE = "Repairs must be notified to the service desk within five working days."


def scored(**case):
    row = rn.evaluate([{"question": "How long?", **case}], metrics=BOTH).iloc[0]
    return [row[name] for name in BOTH]


@pytest.mark.parametrize(
    ("retrieved", "golden", "precision", "recall"),
    [
        ([LUNCH, WARRANTY], [WARRANTY], 1 / 2, 1),
        ([WARRANTY, LUNCH], [WARRANTY], 1, 1),
        ([LUNCH, NOTICE], [WARRANTY], 0, 0),
        ([WARRANTY, LUNCH, NOTICE], [WARRANTY, NOTICE], (1 + 2 / 3) / 2, 1),
        ([WARRANTY, LUNCH], [WARRANTY, NOTICE], 1, 1 / 2),
        (
            [LUNCH, "THE WARRANTY for the pump,\nis 24 months: from the day of delivery"],
            [WARRANTY],
            1 / 2,
            1,
        ),
        ([f"Chapter 7. {WARRANTY} {NOTICE}"], [WARRANTY], 1, 1),
        ([WARRANTY.replace("The warranty", "Our warranty")], [WARRANTY], 1, 1),
        ([WARRANTY.replace("24", "36")], [WARRANTY], 0, 0),
        ([LUNCH, LUNCH, WARRANTY], [WARRANTY], 1 / 2, 1),
        (
            ["年假为10天。", "须提前三天申请年假，并由主管批准。"],
            ["须提前三天申请年假，并由主管批准"],
            1 / 2,
            1,
        ),
    ],
)
def test_precision_and_recall_by_text(retrieved, golden, precision, recall):
    found = scored(retrieved_contexts=retrieved, ground_truth_contexts=golden)
    assert found == pytest.approx([precision, recall])


def test_a_piece_of_a_gold_passage_is_relevant_and_the_passage_is_found_when_its_pieces_are():
    long = f"{WARRANTY} {NOTICE}"
    assert scored(retrieved_contexts=[WARRANTY], ground_truth_contexts=[long]) == [1, 0]
    assert scored(retrieved_contexts=[WARRANTY, NOTICE], ground_truth_contexts=[long]) == [1, 1]


def test_a_fragment_that_is_found_in_almost_any_text_matches_nothing():
    assert scored(retrieved_contexts=["the pump"], ground_truth_contexts=[WARRANTY]) == [0, 0]
    assert scored(retrieved_contexts=[WARRANTY], ground_truth_contexts=["24 months"]) == [1, 1]


def test_the_overlap_is_pinned_at_its_boundary():
    gold_passage = " ".join(f"w{letter}" for letter in "abcdefghij")
    eight = gold_passage.replace("wi wj", "x y")
    seven = gold_passage.replace("wh wi wj", "x y z")
    assert scored(retrieved_contexts=[eight], ground_truth_contexts=[gold_passage]) == [1, 1]
    assert scored(retrieved_contexts=[seven], ground_truth_contexts=[gold_passage]) == [0, 0]


@pytest.mark.parametrize(
    "ids",
    [
        {"chunks": ["a", "b"], "gold_ids": ["b"]},
        {"chunks": [{"id": "a", "score": 2.5}, {"id": "b", "score": 1.5}], "gold_ids": ["b"]},
        {"chunks": [1, 2], "gold_ids": ["2"]},
        {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["b"]},
        {
            "retrieved_contexts": [{"id": "a", "text": WARRANTY}, {"id": "b", "text": LUNCH}],
            "ground_truth_contexts": [{"id": "b", "text": NOTICE}],
        },
    ],
)
def test_ids_decide_where_both_sides_have_them(ids):
    texts = {"retrieved_contexts": [WARRANTY, LUNCH], "ground_truth_contexts": [WARRANTY]}
    assert scored(**{**texts, **ids}) == [1 / 2, 1]
    row = rn.evaluate([{"question": "How long?", **texts, **ids}], metrics=BOTH).iloc[0]
    assert row["context_precision__reason"] == "gold passages matched by id: 1"


def test_ids_of_two_kinds_decide_nothing_and_the_texts_do():
    case = {
        "retrieved_contexts": [LUNCH, WARRANTY],
        "ground_truth_contexts": [WARRANTY],
        "chunks": [4, 7],
        "gold_ids": ["warranty.md"],
    }
    row = rn.evaluate([{"question": "How long?", **case}], metrics=BOTH).iloc[0]
    assert row["context_precision"] == 1 / 2
    assert row["context_precision__reason"] == "gold passages matched by text: 1 equal"


def test_a_system_that_never_finds_a_gold_id_has_zero_and_is_not_left_out():
    cases = [{"question": f"Q{n}?", "chunks": ["a", "b"], "gold_ids": ["z"]} for n in range(3)]
    scores = rn.evaluate(cases, metrics=BOTH)
    for name in BOTH:
        assert scores[name].tolist() == [0, 0, 0]
        assert set(scores[f"{name}__status"]) == {"ok"}


def test_what_does_not_apply_has_no_value_and_says_what_lacks():
    cases = [
        {"question": "a", "retrieved_contexts": [], "ground_truth_contexts": [WARRANTY]},
        {"question": "b", "retrieved_contexts": None, "ground_truth_contexts": [WARRANTY]},
        {"question": "c", "retrieved_contexts": [LUNCH], "ground_truth_contexts": []},
        {"question": "d", "retrieved_contexts": [LUNCH], "ground_truth_contexts": ["…"]},
    ]
    scores = rn.evaluate(cases, metrics=BOTH)
    status = ["missing", "not_applicable", "not_applicable", "missing"]
    assert scores["context_precision__status"].tolist() == status
    assert scores["context_recall_by_passages__status"].tolist() == ["ok", *status[1:]]
    assert scores["context_recall_by_passages"][0] == 0
    assert scores["context_precision__reason"][2] == "no ground_truth_contexts"


def test_without_gold_passages_a_note_names_the_metric_that_a_model_computes():
    scores = rn.evaluate([{"question": "a", "retrieved_contexts": [LUNCH]}], metrics=BOTH)
    assert [note["code"] for note in scores.attrs["notes"]] == ["no_gold_passages"]
    assert set(scores["context_precision__status"]) == {"not_applicable"}


def test_gold_passages_join_the_default_without_a_judge():
    case = {"question": "a", "answer": "x", "retrieved_contexts": [LUNCH]}
    assert "context_precision" not in rn.evaluate([case])
    assert {*BOTH} <= {*rn.evaluate([{**case, "ground_truth_contexts": [LUNCH]}])}


@given(st.lists(st.booleans(), max_size=12))
def test_precision_is_the_mean_of_the_precisions_at_the_relevant_ranks(relevant):
    match = gold.Match(relevant, [True], {})
    ranks = [rank for rank, one in enumerate(relevant, 1) if one]
    by_hand = [sum(relevant[:rank]) / rank for rank in ranks]
    assert gold.precision(match) == pytest.approx(sum(by_hand) / len(by_hand) if by_hand else 0)


@given(
    st.lists(st.sampled_from([WARRANTY, LUNCH, NOTICE]), min_size=1),
    st.lists(st.sampled_from([WARRANTY, LUNCH, NOTICE]), min_size=1),
)
def test_texts_and_ids_of_the_same_passages_agree(retrieved, golden):
    by_text, by_id = gold.by_text(retrieved, golden), gold.by_id(retrieved, golden)
    assert (by_text.relevant, by_text.found) == (by_id.relevant, by_id.found)


def test_passages_of_a_corpus_are_not_taken_for_one_another():
    corpus = Path(__file__).parents[2] / "data/quickstart/corpus.jsonl"
    passages = [json.loads(line)["text"] for line in corpus.read_text("utf-8").splitlines()]
    for passage in passages:
        match = gold.by_text(passages, [passage])
        assert [one for one, hit in zip(passages, match.relevant, strict=True) if hit] == [passage]


def test_real_cases_are_compared_without_a_model(shared):
    with gzip.open(shared / "data/cases/evalcases.jsonl.gz", "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    scores = rn.evaluate(cases, metrics=BOTH)
    measured = scores.dropna(subset=BOTH)
    assert len(measured) > 0
    assert measured[BOTH].apply(pd.Series.between, left=0, right=1).all(axis=None)
    hit = measured["context_recall_by_passages"] > 0
    assert (measured.loc[hit, "context_precision"] > 0).all()
