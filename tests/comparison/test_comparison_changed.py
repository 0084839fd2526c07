"""The questions that changed most, against a loop over the rows and cases made by hand."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines import ENGINES

import ragnb as rn
from ragnb.errors import RagnbError

FAITH, RELEVANCY, NOISE = "faithfulness", "answer_relevancy", "noise_sensitivity"


def made(seed=1, n=30):
    rng = np.random.default_rng(seed)
    rows = []
    for system in ("new", "old"):
        for i in range(n):
            row = {
                "sample_id": f"q{i:02d}",
                "question": f"Question {i}?",
                "doc_name": f"d{i % 4}.pdf",
            }
            row |= {"system": system, "answer": f"{system} says {i}"}
            row |= {"retrieved_contexts": [f"{system} {i}", "more"]}
            row |= {name: round(float(rng.random()), 3) for name in (FAITH, RELEVANCY)}
            rows.append(row)
    return pd.DataFrame(rows)


def changed(scores, **options):
    return rn.changed_questions(scores, **{"baseline": "old"} | options)


def by_hand(scores, metric):
    """Differences by question, the largest first, ids in their order where they are alike."""
    sides = [
        scores[scores["system"] == name].set_index("sample_id")[metric] for name in ("new", "old")
    ]
    d = (sides[0] - sides[1]).dropna()
    return sorted(d.items(), key=lambda item: (-abs(item[1]), item[0]))


def test_largest_changes_come_first_and_n_bounds_each_direction():
    scores = made()
    want = by_hand(scores, FAITH)
    for n in (1, 4, 100):
        up = [q for q, d in want if d > 0][:n]
        down = [q for q, d in want if d < 0][:n]
        table = changed(scores, metric=FAITH, n=n)
        assert table["sample_id"].tolist() == [q for q, _ in want if q in {*up, *down}]
        assert table["value"].tolist() == pytest.approx([d for q, d in want if q in {*up, *down}])
    np.testing.assert_allclose(table["value"], table["candidate_value"] - table["baseline_value"])


def test_both_answers_passages_and_labels_stand_side_by_side():
    for row in changed(made(), n=3).to_dict("records"):
        i = int(row["sample_id"][1:])
        assert (row["question"], row["doc_name"]) == (f"Question {i}?", f"d{i % 4}.pdf")
        assert (row["candidate_answer"], row["baseline_answer"]) == (
            f"new says {i}",
            f"old says {i}",
        )
        assert list(row["candidate_contexts"]) == [f"new {i}", "more"]
        assert list(row["baseline_contexts"]) == [f"old {i}", "more"]
        assert (row["candidate"], row["baseline"], row["metric"]) == (
            "new",
            "old",
            "weighted_score",
        )


def test_modes_are_those_of_failure_modes_and_decide_the_word():
    scores = made()
    modes = rn.failure_modes(scores).set_index(["system", "sample_id"])["failure_mode"]
    table = changed(scores, n=30)
    assert len(table) == 30
    for row in table.to_dict("records"):
        new, old = (modes[system, row["sample_id"]] for system in ("new", "old"))
        assert (row["candidate_mode"], row["baseline_mode"]) == (new, old)
        better = row["value"] > 0
        if better:
            assert row["change"] == ("fixed" if new == "fine" != old else "better")
        else:
            assert row["change"] == ("broken" if old == "fine" != new else "worse")
    assert set(table["change"]) == {"fixed", "broken", "better", "worse"}


def test_a_mode_that_is_not_known_fixes_nothing():
    scores = pd.DataFrame(
        {
            "sample_id": ["a", "a"],
            "system": ["new", "old"],
            FAITH: [0.9, 0.5],
            RELEVANCY: [0.9, None],
        }
    )
    row = changed(scores, metric=FAITH).iloc[0]
    assert (row["baseline_mode"], row["candidate_mode"], row["change"]) == (
        "not_enough_scores",
        "fine",
        "better",
    )


def test_a_pass_or_fail_that_turned_is_fixed_or_broken():
    ids, rate = [*"abcd"] * 2, "over_refusal"
    scores = pd.DataFrame(
        {"sample_id": ids, "system": ["new"] * 4 + ["old"] * 4, rate: [0, 1, 1, 0, 1, 0, 1, 0]}
    )
    table = changed(scores)
    assert table["sample_id"].tolist() == ["a", "b"]
    assert table["change"].tolist() == ["fixed", "broken"]
    assert table["value"].tolist() == [-1, 1]
    assert "candidate_mode" not in table
    assert "candidate_answer" not in table


def test_repeats_that_disagree_are_only_better():
    rows = [("new", 1), ("new", 0), ("old", 0), ("old", 0)]
    scores = pd.DataFrame(rows, columns=["system", "correct_outcome"]).assign(sample_id="a")
    scores["answer"] = ["first", "second", "third", "fourth"]
    row = changed(scores).iloc[0]
    assert (row["change"], row["value"], row["candidate_answer"]) == ("better", 0.5, "first")
    assert row["baseline_answer"] == "third"


def test_lower_is_better_where_the_metric_says_so():
    rows = {"sample_id": [*"ab"] * 2, "system": ["new"] * 2 + ["old"] * 2}
    scores = pd.DataFrame(rows | {NOISE: [0.1, 0.9, 0.5, 0.8]})
    table = changed(scores, metric=NOISE)
    assert table["change"].tolist() == ["better", "worse"]
    assert table["value"].tolist() == pytest.approx([-0.4, 0.1])


def test_primary_metric_is_that_of_compare():
    scores = made()
    table = rn.compare(scores, baseline="old")
    assert (
        table.loc[table["primary"], "metric"].tolist()
        == changed(scores)["metric"].unique().tolist()
    )
    ranges = [rn.Metric(FAITH), rn.Metric(RELEVANCY, low=0, high=2)]
    with pytest.raises(RagnbError, match=r"name one of .*metric='…'"):
        changed(scores, metrics=ranges)
    assert changed(scores, metrics=ranges, metric=RELEVANCY)["metric"].unique().tolist() == [
        RELEVANCY
    ]


def test_questions_of_one_side_ties_and_documents_without_weight_are_not_there():
    scores = made(n=8)
    scores.loc[(scores["system"] == "new") & (scores["sample_id"] == "q00"), FAITH] = None
    scores.loc[scores["sample_id"] == "q01", FAITH] = 0.5
    more = pd.DataFrame({"sample_id": ["only"], "system": ["new"], FAITH: [1.0]})
    table = changed(
        pd.concat([scores, more], ignore_index=True), metric=FAITH, doc_weights={"d2.pdf": 0}
    )
    assert sorted(table["sample_id"]) == ["q03", "q04", "q05", "q07"]


def test_sides_may_be_two_sources_and_be_told_by_question(tmp_path):
    scores = made()
    parts = (scores[scores["system"] == name] for name in ("new", "old"))
    new, old = (part.drop(columns="system").reset_index(drop=True) for part in parts)
    want = changed(scores).drop(columns=["candidate", "baseline"])
    old["sample_id"] = [str(i) for i in range(30, 0, -1)]
    old.drop(columns="retrieved_contexts").to_csv(tmp_path / "old.csv", index=False)
    got = rn.changed_questions(new, baseline=tmp_path / "old.csv")
    assert got["baseline_contexts"].isna().all()
    for name in (
        "change",
        "value",
        "candidate_answer",
        "baseline_answer",
        "candidate_mode",
        "baseline_mode",
    ):
        assert (
            got.set_index("question")[name].to_dict() == want.set_index("question")[name].to_dict()
        ), name


def test_several_candidates_are_each_their_own():
    scores = made()
    third = scores[scores["system"] == "new"].assign(system="third", **{FAITH: 0.5})
    whole = pd.concat([scores, third], ignore_index=True)
    table = changed(whole)
    assert table["candidate"].unique().tolist() == ["new", "third"]
    for name in ("new", "third"):
        part = table[table["candidate"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(part, changed(whole, candidate=name))


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_give_the_same_table(engine):
    scores = made().drop(columns="doc_name")
    scores["sample_id"] = (
        scores["sample_id"].str[1:].astype(int)
    )  # ids that are numbers are found again
    got = changed(ENGINES[engine](pa.Table.from_pandas(scores, preserve_index=False)), n=6)
    want = changed(scores, n=6)
    assert len(want) == 12
    assert want["candidate_answer"].notna().all()
    pd.testing.assert_frame_equal(got, want)


def test_order_of_rows_does_not_matter():
    scores = made()
    scores[FAITH] = scores[FAITH].round(1)  # many ties
    want = changed(scores, metric=FAITH, n=5)
    got = changed(scores.sample(frac=1, random_state=2), metric=FAITH, n=5, candidate="new")
    pd.testing.assert_frame_equal(got, want)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "5"])
def test_n_is_a_whole_number_above_0(n):
    with pytest.raises(RagnbError, match="n="):
        changed(made(), n=n)


def test_unknown_metrics_are_refused_with_a_near_name():
    with pytest.raises(RagnbError, match="did you mean 'faithfulness'"):
        changed(made(), metric="faithfullness")


def test_nothing_changed_is_an_empty_table():
    scores = made()
    scores[FAITH] = scores[RELEVANCY] = 0.5
    table = changed(scores)
    assert table.empty
    assert {"sample_id", "change", "value", "candidate_answer", "candidate_mode"} <= set(table)
