"""Traces: labels and rates against a plain loop, every option, hostile text, what did not meet."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from work import lines_run

from ragnb.errors import RagnbError, RagnbWarning
from ragnb.traces import RATES, check_gold, label_traces, outcome_counts, refusal_metrics
from ragnb.traces.answers import claim_texts, occurs_whole
from ragnb.traces.citations import cited
from ragnb.traces.columns import as_series
from ragnb.weights import weighted_means


def citations_in(answer, split):
    """The ids of one answer's first list, and whether it could not be taken."""
    lists, flagged = cited(as_series([answer]), split)
    return lists.to_list()[0], bool(flagged[0])


def phrases_of(claim):
    """The phrases of a claim."""
    return claim_texts(as_series([claim]), whole=False)["text"].to_list()


def one(answer, **gold):
    """Label one trace; keywords that are no gold columns are columns of the trace."""
    ours = {k: [gold.pop(k)] for k in ("citations", "chunks", "ok") if k in gold}
    options = {k: gold.pop(k) for k in ("refusal", "patterns", "split", "containment") if k in gold}
    traces = pd.DataFrame({"question": ["q"], "answer": pd.Series([answer], dtype=object), **ours})
    theirs = {
        "question": ["q"],
        "answerable": [True],
        "gold_ids": [["a"]],
        "gold_claim": ["thirty days"],
    }
    labelled = label_traces(
        traces, gold=pd.DataFrame(theirs | {k: [v] for k, v in gold.items()}), **options
    )
    return labelled.iloc[0]


# The labels and rates, by a loop

ANSWERS = st.sampled_from(
    [
        "not in context",
        " Not In Context\n",
        "not in context.",
        "Within thirty days. citations: [a, b]",
        "citations: []",
        "citations: [c] citations: [a]",
        "Citations :[b]",
        "no list",
        "",
        None,
        "三十天內可退。citations：[a，c]",
    ]
)
IDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)
TRACE = st.fixed_dictionaries(
    {
        "question": st.sampled_from(["q1", "q2", "q3", "q9"]),
        "answer": ANSWERS,
        "citations": st.none() | IDS,
        "chunks": st.none() | IDS.map(lambda ids: [{"id": name} for name in ids]),
    }
)
GOLD_ROW = st.fixed_dictionaries(
    {
        "question": st.sampled_from(["q1", "q2", "q3", "q4"]),
        "answerable": st.none() | st.booleans(),
        "gold_ids": IDS,
        "gold_claim": st.none() | st.sampled_from(["within thirty days", "三十天", "30"]),
    }
)
GOLD = st.lists(GOLD_ROW, min_size=1, max_size=5, unique_by=lambda row: row["question"])


def by_hand(trace, gold):
    """One row's label and rates, from the definitions, with plain regular expressions."""
    out = dict.fromkeys(RATES) | {"label": None}
    rows = [row for row in gold if row["question"] == trace["question"]]
    answer, cited = trace["answer"], trace["citations"]
    if answer is None or not rows:
        retrieval_by_hand(trace, rows, out)
        return out
    (row,) = rows
    refused = answer.strip().lower() == "not in context"
    found = re.search(r"(?i)citations\s*[:：]\s*\[([^\]]*)\]", answer)
    if cited is None and found:
        cited = [part for part in re.split(r"[,，、\s]+", found[1]) if part]
    # Gold that has answerable questions and names no ids anywhere says nothing about citations.
    told = any(one["gold_ids"] for one in gold) or not any(one["answerable"] for one in gold)
    hit = bool(set(cited or ()) & set(row["gold_ids"])) if told else None
    out["compliance"] = float(cited is not None or refused)
    retrieval_by_hand(trace, rows, out)
    if not refused and row["answerable"] is not None and told:
        out["answer_precision"] = float(row["answerable"] and hit)
    if row["answerable"]:
        out["over_refusal"] = float(refused)
        out["citation_hit_rate"] = float(hit and not refused) if told else None
        out["label"] = (
            "OVER_REFUSAL" if refused else {True: "OK", False: "ANS_NO_HIT", None: None}[hit]
        )
        if row["gold_claim"]:
            holds = {"within thirty days": "within thirty days" in answer.lower()}
            holds |= {"三十天": "三十天" in answer, "30": False}
            out["claim_containment"] = float(holds[row["gold_claim"]] and not refused)
    elif row["answerable"] is False:
        out["under_refusal"] = float(not refused)
        out["label"] = "REFUSAL_OK" if refused else "HALLUCINATION"
    if told and out["label"]:
        out["correct_outcome"] = float(out["label"] in ("OK", "REFUSAL_OK"))
    return out


def retrieval_by_hand(trace, rows, out):
    if trace["chunks"] is None or not rows or not rows[0]["answerable"] or not rows[0]["gold_ids"]:
        return
    wanted = set(rows[0]["gold_ids"])
    ranks = [place for place, chunk in enumerate(trace["chunks"], 1) if chunk["id"] in wanted]
    out["retrieval_hit"] = float(bool(ranks))
    out["retrieval_recall"] = len({chunk["id"] for chunk in trace["chunks"]} & wanted) / len(wanted)
    out["reciprocal_rank"] = 1 / ranks[0] if ranks else 0.0


@given(st.lists(TRACE, min_size=1, max_size=12), GOLD)
def test_labels_and_rates_are_a_plain_loops(rows, gold):
    traces = pd.DataFrame(rows).astype({"citations": object, "chunks": object, "answer": object})
    labelled = label_traces(traces, gold=pd.DataFrame(gold).astype({"answerable": object}))
    assert len(labelled) == len(rows)
    rows_by_hand = [by_hand(row, gold) for row in rows]
    wanted = pd.DataFrame(rows_by_hand, columns=list(RATES))
    for column in RATES:
        np.testing.assert_allclose(labelled[column].to_numpy(float), wanted[column].to_numpy(float))
    assert labelled["label"].tolist() == [row["label"] for row in rows_by_hand]
    means = refusal_metrics(labelled).set_index("metric")
    for column in RATES:
        scores = [s for s in wanted[column] if s is not None and s == s]
        assert means.loc[column, "n"] == len(scores)
        assert means.loc[column, "numerator"] == pytest.approx(sum(scores))
        if scores:
            assert means.loc[column, "value"] == pytest.approx(sum(scores) / len(scores), abs=1e-12)
        else:
            assert pd.isna(means.loc[column, "value"])


# Refusals


@pytest.mark.parametrize(
    ("answer", "options", "refused"),
    [
        ("Not in Context ", {}, True),
        ("not in context.", {}, False),
        ("it is not in context", {}, False),
        ("", {}, False),
        ("", {"refusal": ["", "x"]}, True),
        ("资料中没有", {"refusal": ["not in context", "资料中没有"]}, True),
        ("I don't know", {"refusal": "i don't know"}, True),
        ("not in context", {"refusal": "i don't know"}, False),
        (unicodedata.normalize("NFD", "Désolé"), {"refusal": "désolé"}, True),
        ("sorry \ud800", {"patterns": ["^sorry"]}, True),
    ],
)
def test_a_refusal_equals_a_token_trimmed_and_lower_cased_in_one_unicode_form(
    answer, options, refused
):
    row = one(answer, **options)
    assert (row["refused"], row["label"] == "OVER_REFUSAL") == (refused, refused)


@pytest.mark.parametrize(
    "pattern", ["^sorry", "cannot (say|tell)", r"无法.{0,4}回答", r"\bno\s+answer\b"]
)
@pytest.mark.parametrize(
    "answer", ["Sorry, no.", "I CANNOT tell", "很抱歉，无法为您回答", "there is no  answer", "30"]
)
def test_patterns_find_what_re_finds(pattern, answer):
    wanted = re.search(pattern, answer, re.IGNORECASE) is not None
    assert one(answer, patterns=[pattern])["refused"] == wanted
    assert one(answer, patterns=pattern)["refused"] == wanted


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "", " "])
def test_a_pattern_that_cannot_be_run_safely_is_refused(pattern):
    with pytest.raises(RagnbError, match="pattern"):
        one("x", patterns=[pattern])


# Citations


TEXT, NAME = "citations: [a]", "résumé_双源.pdf"
SPACED = {"split": "comma", "gold_ids": ["leave policy.pdf"]}
CITED = {
    "the list field wins": (TEXT, {"citations": ["b"]}, {"citations_predicted": ["b"]}),
    "an empty list wins too": (TEXT, {"citations": []}, {"citations_predicted": []}),
    "null falls through to the text": (TEXT, {"citations": None}, {"citations_predicted": ["a"]}),
    "NaN falls through to the text": (TEXT, {"citations": float("nan")}, {"hit": True}),
    "an array is a list": (
        TEXT,
        {"citations": np.array(["a", "b"])},
        {"citations_predicted": ["a", "b"]},
    ),
    "an empty list complies": ("x citations: []", {}, {"compliance": 1}),
    "an empty list field complies": ("x", {"citations": []}, {"compliance": 1}),
    "a refusal complies": ("not in context", {}, {"compliance": 1}),
    "silence does not comply": ("x", {}, {"compliance": 0}),
    "ids with spaces need the comma": ("citations: [leave policy.pdf, b]", SPACED, {"hit": True}),
    "spaces part ids": (
        "citations: [leave policy.pdf, b]",
        {"gold_ids": ["leave policy.pdf"]},
        {"hit": False, "citations_predicted": ["leave", "policy.pdf", "b"]},
    ),
    "the first list counts": ("citations: [b] citations: [a]", {}, {"citations_predicted": ["b"]}),
    "an id counts once": ("citations: [b, b，a c]", {}, {"citations_predicted": ["b", "a", "c"]}),
    "Chinese signs part ids": (
        "引用如下。citations：[甲.pdf#1、乙.pdf]",
        {},
        {"citations_predicted": ["甲.pdf#1", "乙.pdf"]},
    ),
    "Chinese signs in ids need the comma": (
        "citations: [第三、四章.pdf，乙.pdf]",
        {"split": "comma"},
        {"citations_predicted": ["第三、四章.pdf", "乙.pdf"]},
    ),
    "quotes are taken off": (
        "CITATIONS :\n ['b', \"a\"]",
        {"split": "comma"},
        {"citations_predicted": ["b", "a"]},
    ),
    "a bracket later on the line is no cut": (
        "citations: [a], see [b]",
        {},
        {"citations_predicted": ["a"]},
    ),
    "names meet in one Unicode form": (
        "x",
        {"citations": [unicodedata.normalize("NFD", NAME)], "gold_ids": [NAME]},
        {"hit": True},
    ),
    "numbers meet texts": ("x", {"citations": [12], "gold_ids": ["12"]}, {"hit": True}),
}


@pytest.mark.parametrize("what", CITED)
def test_citations_are_taken_from_the_list_field_or_the_first_list_of_the_answer(what):
    answer, given_, want = CITED[what]
    row = one(answer, **given_)
    assert {name: row[name] for name in want} == want
    assert not row["citations_flagged"]


@pytest.mark.parametrize(
    "answer",
    [
        "citations: [a",
        "citations: [a[1], b]",
        "citations: [doc].pdf, b]",
        "citations: [" + "a, " * 900 + "b]",
    ],
)
def test_a_list_that_cannot_be_taken_whole_is_flagged_and_not_cut(answer):
    row = one(answer)
    assert row["citations_flagged"]
    assert row["citations_predicted"] is None
    assert row["compliance"] == 0


def test_text_in_the_place_of_a_list_is_refused():
    for column in ("citations", "chunks"):
        with pytest.raises(RagnbError, match=f"column '{column}', row 0"):
            one("x", **{column: "['a']"})
    with pytest.raises(RagnbError, match="'gold_ids'"):
        one("x", gold_ids="a")


HOSTILE = [
    lambda n: "citations:[" * (n // 11),
    lambda n: "citations" + " " * n,
    lambda n: "citations:" + "\t " * (n // 2) + "x",
    lambda n: "citations: [" + "a " * (n // 2),
    lambda n: "citations: [" + " " * n + "]",
    lambda n: "citations: [a]" + "b" * n,
    lambda n: "citations : citations" * (n // 21),
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_work_at_most_doubles_when_hostile_text_doubles(hostile):
    """The expressions themselves are in tests/traces/test_traces_engines.py."""
    short, long = (
        lines_run(lambda n=n: citations_in(hostile(n), "space")) for n in (5_000, 10_000)
    )
    assert long <= 2.2 * short + 100


@pytest.mark.parametrize("unit", ["ab- ", "abcde,", "a b\n", "é", "-"])
def test_phrases_of_a_long_claim_take_linear_work(unit):
    short, long = (
        lines_run(lambda n=n: phrases_of(unit * (n // len(unit)))) for n in (5_000, 10_000)
    )
    assert long <= 2.2 * short + 100


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x"])
def test_no_refusal_pattern_can_hang(pattern):
    assert not one("a" * 50_000 + "!", patterns=[pattern])["refused"]


# Containment


def test_latin_phrases_are_trimmed_runs_of_five():
    assert phrases_of("abcd; 12-34; pay - within 30 days!") == ["12-34", "pay - within 30 days"]
    assert one("PAY WITHIN 30 days", gold_claim="within 30 days, please")["contained"]


@pytest.mark.parametrize(
    ("claim", "answer", "auto", "latin"),
    [
        ("歐洲", "在歐洲開創", 1, 0),
        ("60%", "占60%。", 1, 0),
        ("1/3", "失去了1/3的人口", 1, 0),
        ("iPhone很贵", "iPhone很贵", 1, 1),
        ("235", "1235 and 2350", 0, 0),
        ("235", "2350 or 235", 1, 0),
        (None, "x", None, None),
        (" ", "x", None, None),
        ("thirty days", "not in context", 0, 0),
    ],
)
def test_auto_also_counts_a_claim_of_another_script_that_occurs_whole(claim, answer, auto, latin):
    """A claim that is not there is missing and no miss; one inside a longer number does not count."""
    for containment, want in (("auto", auto), ("latin", latin)):
        found = one(answer, gold_claim=claim, containment=containment)["claim_containment"]
        assert pd.isna(found) if want is None else found == want


def test_an_empty_claim_occurs_nowhere():
    assert not occurs_whole("", "x")


# Retrieval and misses


@pytest.mark.parametrize(
    ("answer", "chunks", "miss"),
    [
        ("x", [{"id": "b"}], "not retrieved"),
        ("x", [], "not retrieved"),
        ("x", ["b", "a"], "retrieved, not cited"),
        ("x", None, None),
        ("citations: [a]", ["a"], None),
        ("x", [{"text": "t"}], None),
        ("x", [{"text": "t"}, {"id": "b"}], "not retrieved"),
    ],
)
def test_misses_split_into_not_retrieved_and_not_cited(answer, chunks, miss):
    assert one(answer, chunks=chunks)["miss"] == miss


def test_retrieval_measures_are_missing_where_nothing_can_be_retrieved():
    for gold in ({"answerable": False}, {"gold_ids": []}):
        assert pd.isna(one("x", chunks=["a"], **gold)["retrieval_recall"])
    assert pd.isna(one("x", chunks=[{"text": "t"}, {"id": None}])["retrieval_hit"])
    assert one("x", chunks=[{"text": "t"}, {"id": "a"}])["reciprocal_rank"] == 0.5
    row = one("x", chunks=["c", "a", "a"], gold_ids=["a", "b"])
    assert (row["retrieval_hit"], row["retrieval_recall"], row["reciprocal_rank"]) == (1, 0.5, 0.5)


# What is absent


def test_without_gold_only_what_the_trace_tells_is_known():
    traces = pd.DataFrame(
        {"answer": ["x citations: [a]", "not in context", "x", None], "citations": None}
    )
    labelled = label_traces(traces)
    assert labelled["refused"].tolist() == [False, True, False, pd.NA]
    assert labelled["compliance"].tolist()[:3] == [1, 1, 0]
    assert labelled["label"].isna().all()
    others = [name for name in RATES if name != "compliance"]
    assert labelled[others].isna().all(axis=None)
    assert labelled.attrs["join"]["by"] is None
    assert labelled.attrs["join"]["n_without_answer"] == 1


def test_gold_columns_that_stand_in_the_traces_are_used():
    traces = pd.DataFrame({"answer": ["citations: [a]"], "answerable": [True], "gold_ids": [["a"]]})
    labelled = label_traces(traces)
    assert labelled["label"].tolist() == ["OK"]
    pd.testing.assert_frame_equal(label_traces(labelled), labelled)


def test_gold_that_names_no_ids_anywhere_leaves_hits_missing():
    gold = pd.DataFrame({"question": ["q", "r"], "answerable": [True, False]})
    labelled = label_traces(pd.DataFrame({"question": ["q", "r"], "answer": ["x", "x"]}), gold=gold)
    assert labelled[["hit", "answer_precision", "citation_hit_rate"]].isna().all(axis=None)
    assert labelled["under_refusal"].tolist()[1] == 1


def test_empty_lists_of_ids_everywhere_are_no_ids_unless_nothing_can_be_answered():
    traces = pd.DataFrame({"question": ["q", "r"], "answer": ["x citations: [a]", "y"]})
    gold = pd.DataFrame({"question": ["q", "r"], "answerable": [True, False], "gold_ids": [[], []]})
    labelled = label_traces(traces, gold=gold)
    assert labelled[["hit", "answer_precision", "citation_hit_rate"]].isna().all(axis=None)
    assert labelled["label"].tolist() == [None, "HALLUCINATION"]
    one_has = label_traces(traces, gold=gold.assign(gold_ids=[["b"], []]))
    assert one_has["label"].tolist() == ["ANS_NO_HIT", "HALLUCINATION"]
    none_can = label_traces(traces, gold=gold.assign(answerable=False))
    assert none_can["answer_precision"].tolist() == [0, 0]


def test_an_answer_of_a_failed_call_is_none_and_an_empty_one_of_another_call_is_told():
    gold = pd.DataFrame({"question": list("qrs"), "answerable": False, "gold_ids": [[]] * 3})
    traces = pd.DataFrame(
        {"question": list("qrs"), "answer": [" ", "", "x"], "ok": [False, True, False]}
    )
    labelled = label_traces(traces, gold=gold)
    assert labelled["label"].tolist() == [None, "HALLUCINATION", None]
    assert labelled["under_refusal__status"].tolist() == ["not_applicable", "ok", "not_applicable"]
    told = labelled.attrs["join"]
    assert (told["n_without_answer"], told["n_empty"]) == (2, 1)
    refused = label_traces(traces, gold=gold, patterns="^$")
    assert refused["label"].tolist() == [None, "REFUSAL_OK", None]
    assert refused.attrs["join"]["n_empty"] == 0


def test_an_answer_that_is_missing_is_no_refusal_and_no_answer():
    gold = pd.DataFrame(
        {"question": ["q", "r"], "answerable": [True, True], "gold_ids": [["a"], ["a"]]}
    )
    traces = pd.DataFrame({"question": ["q", "r"], "answer": [None, None], "ok": [False, True]})
    labelled = label_traces(traces, gold=gold)
    assert labelled["refused"].isna().all()
    assert labelled["label"].isna().all()
    row = refusal_metrics(labelled, metrics="over_refusal").iloc[0]
    assert (row["n"], row["n_not_applicable"], row["n_missing"]) == (0, 1, 1)


def test_rows_where_a_rate_does_not_apply_are_counted_as_such():
    gold = pd.DataFrame({"question": list("abcd"), "answerable": [True, True, False, False]})
    gold["gold_ids"] = [["x"]] * 4
    traces = pd.DataFrame(
        {"question": list("abcde"), "answer": ["y", "not in context"] * 2 + ["y"]}
    )
    means = refusal_metrics(label_traces(traces, gold=gold)).set_index("metric")
    counts = means[["n", "n_not_applicable", "n_missing"]]
    for rate in ("over_refusal", "under_refusal", "answer_precision"):
        assert counts.loc[rate].tolist() == [2, 3, 0]
    assert counts.loc["compliance"].tolist() == [4, 1, 0]


# The join

GOLD_SET = pd.DataFrame(
    {
        "sample_id": ["1", "2", "3"],
        "question": ["q1", "q2", "q3"],
        "answerable": [True, False, True],
        "gold_ids": [["a"], [], ["b"]],
        "doc_name": ["甲.pdf", "乙.pdf", "甲.pdf"],
        "kind": ["k1", "k2", "k3"],
    }
)


def test_ids_join_before_text_and_text_joins_where_ids_are_missing():
    traces = pd.DataFrame(
        {"sample_id": ["2", None, "7"], "question": ["q1", "q3", "q1"], "answer": ["x"] * 3}
    )
    labelled = label_traces(traces, gold=GOLD_SET)
    assert labelled["kind"].tolist()[:2] == ["k2", "k3"]
    assert pd.isna(labelled["kind"].iloc[2])
    report = labelled.attrs["join"]
    assert report["by"] == "sample_id"
    assert report["unmatched"] == ["7"]
    assert report["gold_without_trace"] == ["1"]
    assert report["question_differs"] == ["2"]
    assert label_traces(traces, gold=GOLD_SET, join="question")["kind"].tolist() == [
        "k1",
        "k3",
        "k1",
    ]


def test_numbers_and_texts_of_one_id_meet():
    traces = pd.DataFrame({"sample_id": [1, 3], "answer": ["x", "y"]})
    assert label_traces(traces, gold=GOLD_SET)["question"].tolist() == ["q1", "q3"]
    assert label_traces(traces.astype({"sample_id": float}), gold=GOLD_SET)["kind"].tolist() == [
        "k1",
        "k3",
    ]


def test_ids_that_never_meet_warn_and_fall_back_to_text():
    traces = pd.DataFrame({"sample_id": ["0"], "question": ["q2"], "answer": ["x"]})
    with pytest.warns(RagnbWarning, match="joined by question text") as told:
        labelled = label_traces(traces, gold=GOLD_SET)
    assert told[0].filename == __file__
    assert labelled["label"].tolist() == ["HALLUCINATION"]


def test_unmatched_rows_stay_and_leave_every_rate():
    traces = pd.DataFrame(
        {"question": ["q1", "new"], "answer": ["citations: [a]", "not in context"]}
    )
    labelled = label_traces(traces, gold=GOLD_SET)
    assert len(labelled) == 2
    assert labelled.loc[1, list(RATES)].isna().all()
    assert pd.isna(labelled.loc[1, "label"])
    assert labelled.loc[1, "refused"]
    assert (
        labelled.attrs["join"]["n_unmatched"],
        labelled.attrs["join"]["n_gold_without_trace"],
    ) == (1, 2)


def test_a_repeated_question_or_id_takes_the_last_gold_with_a_warning():
    gold = pd.concat([GOLD_SET, GOLD_SET.iloc[[0]].assign(sample_id="9", kind="last")])
    traces = pd.DataFrame({"question": ["q1"], "answer": ["x"]})
    with pytest.warns(RagnbWarning, match=r"1 question\(s\) more than once \(q1\)") as told:
        labelled = label_traces(traces, gold=gold)
    assert told[0].filename == __file__
    assert labelled["kind"].tolist() == ["last"]
    assert labelled.attrs["join"]["repeated_questions"] == ["q1"]
    by_id = label_traces(traces.assign(sample_id="1"), gold=gold)
    assert by_id["kind"].tolist() == ["k1"]
    with pytest.warns(RagnbWarning, match="sample_id"):
        labelled = label_traces(
            traces.assign(sample_id="1"), gold=gold.assign(sample_id=["1", "2", "3", "1"])
        )
    assert labelled["kind"].tolist() == ["last"]


def test_repeated_traces_are_counted_within_a_system():
    traces = pd.DataFrame({"question": ["q1"] * 3, "answer": ["x"] * 3, "system": ["s", "t", "t"]})
    labelled = label_traces(traces, gold=GOLD_SET)
    assert len(labelled) == 3
    assert labelled.attrs["join"]["n_duplicate_traces"] == 1


def test_gold_fills_the_gaps_of_a_shared_column_and_owns_its_own():
    traces = pd.DataFrame({"question": ["q1", "q2"], "answer": ["x", "x"], "kind": ["mine", None]})
    labelled = label_traces(traces.assign(answerable=False), gold=GOLD_SET)
    assert labelled["kind"].tolist() == ["mine", "k2"]
    assert labelled["answerable"].tolist() == [True, False]
    assert labelled["doc_name"].tolist() == ["甲.pdf", "乙.pdf"]


def test_the_callers_frames_and_index_stay_as_they_were():
    traces = pd.DataFrame({"question": ["q1", "q2"], "answer": ["x", "y"]}, index=[5, 5])
    before, gold_before = traces.copy(), GOLD_SET.copy()
    assert label_traces(traces, gold=GOLD_SET).index.tolist() == [5, 5]
    pd.testing.assert_frame_equal(traces, before)
    pd.testing.assert_frame_equal(GOLD_SET, gold_before)


def test_empty_traces_give_an_empty_frame():
    labelled = label_traces(pd.DataFrame({"question": [], "answer": []}), gold=GOLD_SET)
    assert len(labelled) == 0
    assert set(RATES) <= set(labelled)


@pytest.mark.parametrize(
    ("traces", "gold", "options", "message"),
    [
        ({"question": ["q"]}, GOLD_SET, {}, "'answer'"),
        ({"answer": ["x"]}, GOLD_SET, {}, "neither 'sample_id' nor 'question'"),
        ({"question": ["q"], "answer": ["x"]}, GOLD_SET[["question"]], {}, "'answerable'"),
        (
            {"question": ["q1"], "answer": ["x"]},
            GOLD_SET.assign(answerable="yes"),
            {},
            "neither true nor false",
        ),
        ({"question": ["q"], "answer": ["x"]}, None, {"split": "commas"}, "did you mean 'comma'"),
        ({"question": ["q"], "answer": ["x"]}, None, {"containment": "cjk"}, "containment='cjk'"),
        ({"question": ["q"], "answer": ["x"]}, None, {"join": "text"}, "join='text'"),
    ],
)
def test_what_cannot_be_labelled_is_refused(traces, gold, options, message):
    with pytest.raises(RagnbError, match=message):
        label_traces(pd.DataFrame(traces), gold=gold, **options)


# The rates


def many(n=60, seed=3):
    rng = np.random.default_rng(seed)
    questions = [f"q{i}" for i in range(n)]
    docs = rng.choice(["甲", "乙", "丙", "丁", "戊"], n)
    gold = pd.DataFrame(
        {"question": questions, "answerable": rng.random(n) < 0.7, "gold_ids": [["a"]] * n}
    )
    answers = rng.choice(["not in context", "x citations: [a]", "x citations: [b]"], n)
    return label_traces(
        pd.DataFrame({"question": questions, "answer": answers}),
        gold=gold.assign(doc_name=docs, lang=rng.choice(["en", "zh"], n)),
    )


def test_rates_are_the_one_estimators_rows():
    labelled = many()
    ours = refusal_metrics(labelled, doc_weights={"甲": 3.0}, level=0.9)
    theirs = weighted_means(labelled[[*RATES, "doc_name"]], doc_weights={"甲": 3.0}, level=0.9)
    columns = ["metric", "value", "low", "high", "se", "n", "n_clusters", "n_eff"]
    rates = theirs[theirs["metric"].isin(RATES)].reset_index(drop=True)
    pd.testing.assert_frame_equal(ours[columns], rates[columns])
    assert list(ours["metric"]) == list(RATES)
    assert ours["weight"].isna().all()
    assert ours.set_index("metric").loc["compliance", ["range_low", "range_high"]].tolist() == [
        0.0,
        1.0,
    ]


def test_rates_stand_beside_quality_metrics_without_touching_them():
    labelled = many().assign(faithfulness=0.5)
    pd.testing.assert_frame_equal(refusal_metrics(labelled), refusal_metrics(many()))


def test_numerators_of_groups_are_the_groups_sums():
    labelled = many()
    means = refusal_metrics(
        labelled, metrics=["over_refusal", "compliance"], by="lang", cluster="question"
    )
    for row in means.itertuples():
        scores = labelled.loc[labelled["lang"] == row.lang, row.metric].dropna()
        assert (row.numerator, row.n) == (scores.sum(), len(scores))
        assert row.value == pytest.approx(scores.mean())


def test_names_that_are_no_rates_are_refused():
    with pytest.raises(RagnbError, match="did you mean 'over_refusal'"):
        refusal_metrics(many(), metrics="over_refusals")
    with pytest.raises(RagnbError, match="label_traces"):
        refusal_metrics(pd.DataFrame({"faithfulness": [1.0]}))


def test_outcomes_count_every_label_once():
    labelled = many()
    for lang in ("en", "zh"):
        counts = outcome_counts(labelled, lang=lang)
        assert counts["n"].sum() == len(labelled)
        assert counts["share"].sum() == pytest.approx(1)
        assert counts["meaning"].is_unique
    assert outcome_counts(labelled.iloc[:0])["share"].isna().all()


# The gold set


def test_check_gold_finds_what_is_missing_repeated_and_changed():
    gold = pd.DataFrame(
        {
            "sample_id": ["1", "2", "2", "4"],
            "question": ["q1", "q2", "q2", "q4"],
            "answerable": [True, True, False, None],
            "gold_ids": [["a"], [], [], None],
        }
    )
    previous = pd.DataFrame({"sample_id": ["1", "3"], "question": ["old words", "q3"]})
    found = check_gold(gold, previous=previous).set_index("finding")
    assert found["n"].to_dict() == {
        "questions": 4,
        "answerable": 2,
        "unanswerable": 1,
        "not_marked": 1,
        "no_gold_ids": 1,
        "repeated_questions": 1,
        "repeated_ids": 1,
        "changed": 1,
        "new": 2,
        "gone": 1,
    }
    assert found.loc["changed", "names"] == ["1"]
    assert found.loc["no_gold_ids", "names"] == ["2"]
    assert not found.drop(["new", "gone"])["fine"].any()


def test_a_good_gold_set_has_only_fine_findings_in_both_languages():
    gold = pd.DataFrame({"question": [f"q{i}" for i in range(12)], "answerable": [True, False] * 6})
    gold["gold_ids"] = [["a"], []] * 6
    for lang in ("en", "zh"):
        found = check_gold(gold, previous=gold, lang=lang)
        assert found["fine"].all()
        assert found["text"].is_unique
