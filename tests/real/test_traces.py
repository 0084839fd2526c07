"""The traces of real systems: every rate, count and label equals what an independent scorer computed."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import polars as pl
import pytest

from ragnb.diagnostics import check_gates
from ragnb.errors import RagnbWarning
from ragnb.readers import read_gold, read_traces
from ragnb.traces import label_traces, outcome_counts, refusal_metrics

SETS = [
    ("mtragun", "qaset.json", "trace.gemini-3-pro.jsonl"),
    ("mtragun", "qaset.json", "trace_bm25.gemini-3-pro.jsonl"),
    ("mtragun", "qaset.json", "trace.llama-3.3-70b.jsonl.gz"),
    ("mtragun", "qaset_dupq.json", "trace_dupq.qwen2.5-32b.jsonl"),
    ("azure_northwind", "qaset.json", "trace.baseline.jsonl"),
    ("azure_northwind", "qaset.json", "trace_embedded.baseline.jsonl"),
    ("drcd_zh_hant", "qaset.json", "trace.jsonl"),
]
RATES = {
    "answer_precision": ("precision_over_answered", "n_answered_answerable_hit", "n_answered"),
    "over_refusal": ("over_refusal_rate", "n_over_refusal", "n_answerable"),
    "under_refusal": ("under_refusal_rate", "n_under_refusal", "n_unanswerable"),
    "citation_hit_rate": ("citation_hit_rate", "n_answered_answerable_hit", "n_answerable"),
    "claim_containment": ("containment_rate", "n_contain", "n_answerable"),
    "compliance": ("schema_compliance", "n_compliant", "n_scored"),
}
JOIN = {
    "n_gold": "n_gold",
    "n_repeated_questions": "n_duplicate_gold_q",
    "n_traces": "n_predictions",
    "n_unmatched": "n_unmatched_predictions",
    "n_duplicate_traces": "n_duplicate_predictions",
    "n_gold_without_trace": "n_gold_without_prediction",
    "n_matched": "n_scored",
}
NAMES = {"q": "question", "qid": "sample_id"}


def load(folder, gold, trace):
    opened = gzip.open if trace.endswith(".gz") else open
    with opened(folder / trace, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    gold_rows = json.loads((folder / gold).read_text(encoding="utf-8"))
    return pd.DataFrame(rows).rename(columns=NAMES), pd.DataFrame(gold_rows).rename(columns=NAMES)


def label_by_text(traces, gold, **options):
    if gold["question"].duplicated().any():
        with pytest.warns(RagnbWarning, match="the last one is used"):
            return label_traces(traces, gold=gold, join="question", **options)
    return label_traces(traces, gold=gold, join="question", **options)


def expectation(folder, gold, trace):
    answers = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return answers.get(trace) or answers[f"{gold} + {trace}"]


def assert_equal(labelled, expected):
    means = refusal_metrics(labelled, metrics=list(RATES)).set_index("metric")
    for metric, (rate, numerator, denominator) in RATES.items():
        row = means.loc[metric]
        assert (row["numerator"], row["n"]) == (expected[numerator], expected[denominator]), metric
        if expected[rate] is None:
            assert pd.isna(row["value"]), metric
        else:
            assert row["value"] == pytest.approx(expected[rate], abs=1e-12), metric
            assert labelled[metric].mean() == pytest.approx(expected[rate], abs=1e-12), metric
    assert labelled["refused"].sum() == expected["n_refused"]
    counts = outcome_counts(labelled).set_index("label")["n"]
    assert counts[counts > 0].to_dict() == expected["labels"]


@pytest.mark.parametrize(("folder", "gold", "trace"), SETS, ids=lambda name: name)
def test_rates_counts_and_labels_are_the_scorers(shared, folder, gold, trace):
    place = shared / "data" / "traces" / folder
    traces, gold_set = load(place, gold, trace)
    expected = expectation(place, gold, trace)
    labelled = label_by_text(traces, gold_set, containment="latin")
    assert_equal(labelled, expected)
    report = labelled.attrs["join"]
    assert {ours: report[ours] for ours in JOIN} == {
        ours: expected[theirs] for ours, theirs in JOIN.items()
    }
    for kind, by_kind in expected.get("by_kind", {}).items():
        assert_equal(labelled[labelled["kind"] == kind], by_kind)
    if "without_UNDERSPECIFIED" in expected:
        assert_equal(
            labelled[labelled["kind"] != "UNDERSPECIFIED"], expected["without_UNDERSPECIFIED"]
        )


def test_rates_by_kind_are_the_scorers(shared):
    place = shared / "data" / "traces" / "mtragun"
    traces, gold = load(place, "qaset.json", "trace.gemini-3-pro.jsonl")
    expected = expectation(place, "qaset.json", "trace.gemini-3-pro.jsonl")["by_kind"]
    means = refusal_metrics(label_traces(traces, gold=gold, containment="latin"), by="kind")
    means = means.set_index(["kind", "metric"])
    for kind, wanted in expected.items():
        for metric, (_, numerator, denominator) in RATES.items():
            row = means.loc[(kind, metric)]
            assert (row["numerator"], row["n"]) == (wanted[numerator], wanted[denominator])


def test_chinese_claims_count_when_they_occur_whole(shared):
    traces, gold = load(shared / "data" / "traces" / "drcd_zh_hant", "qaset.json", "trace.jsonl")
    row = refusal_metrics(label_traces(traces, gold=gold), metrics="claim_containment").iloc[0]
    assert (row["numerator"], row["n"]) == (401, 576)


def test_list_field_and_text_of_one_trace_give_one_result(shared):
    place = shared / "data" / "traces" / "azure_northwind"
    field, gold = load(place, "qaset.json", "trace.baseline.jsonl")
    text, _ = load(place, "qaset.json", "trace_embedded.baseline.jsonl")
    field, text = (label_by_text(traces, gold) for traces in (field, text))
    cited = field["citations_predicted"].str.len() > 0
    for column in ("label", "hit", "contained", "miss", "citation_hit_rate", "retrieval_recall"):
        pd.testing.assert_series_equal(field[column], text[column])
    assert field.loc[cited, "citations_predicted"].map(set).tolist() == (
        text.loc[cited, "citations_predicted"].map(set).tolist()
    )
    assert field["compliant"].all()
    assert text["compliant"].tolist() == cited.tolist()


def test_join_by_id_and_by_text_agree_where_questions_are_unique(shared):
    traces, gold = load(
        shared / "data" / "traces" / "mtragun", "qaset.json", "trace.gemini-3-pro.jsonl"
    )
    by_id, by_text = (
        label_traces(traces, gold=gold),
        label_traces(traces, gold=gold, join="question"),
    )
    assert (by_id.attrs["join"]["by"], by_text.attrs["join"]["by"]) == ("sample_id", "question")
    pd.testing.assert_frame_equal(by_id, by_text, check_like=False)


def test_gates_of_a_real_system_block_on_under_refusal_alone(shared):
    traces, gold = load(
        shared / "data" / "traces" / "mtragun", "qaset.json", "trace.gemini-3-pro.jsonl"
    )
    gates = check_gates(refusal_metrics(label_traces(traces, gold=gold))).set_index("gate")
    assert gates.index[gates["blocks"]].tolist() == ["G2"]
    assert gates.loc["G2", "outcome"] == "fail"
    assert gates["value"].round(4).tolist() == [0.8856, 0.2456, 0.0211, 0.9789, 1.0]


@pytest.mark.parametrize(("folder", "gold", "trace"), SETS, ids=lambda name: name)
def test_polars_frames_give_the_same_rates(shared, folder, gold, trace):
    place = shared / "data" / "traces" / folder
    ours, theirs = (
        refusal_metrics(label_by_text(frame, read_gold(place / gold)))
        for frame in (
            pl.read_ndjson(place / trace, infer_schema_length=None),
            read_traces(place / trace),
        )
    )
    pd.testing.assert_frame_equal(ours, theirs)
