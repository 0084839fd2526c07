"""Files as people have them: every header ragas has printed, the quirks of other tools, and files that do harm."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import pickle
import sqlite3
import tracemalloc
import unicodedata
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import csv_text, refused, told, write

import ragnb as rn
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.readers import (
    documents,
    raw,
    read_cases,
    read_gold,
    read_scores,
    read_traces,
    tables,
    to_csv_text,
)
from ragnb.schema import METRICS, Metric

# The headers of ragas, in the order of their dates

HEADERS = """
question,ground_truths,answer,contexts,context_relavency,factuality,answer_relevancy
question,ground_truths,answer,contexts,context_relavency,faithfulness,answer_relevancy
question,ground_truths,answer,contexts,Conciseness,faithfulness
question,ground_truths,answer,contexts,context_relavency,Conciseness,faithfulness
question,answer,contexts,faithfulness,answer_relevancy,context_relavency,harmfulness
question,ground_truths,answer,contexts,context_relavency,faithfulness,answer_relevancy,harmfulness
question,answer,contexts,faithfulness,answer_relevancy,context_ relevancy,harmfulness
question,ground_truths,answer,contexts,context_ relevancy,faithfulness,answer_relevancy,harmfulness
question,reference_answer,answer,contexts,context_ relevancy,faithfulness,answer_relevancy,harmfulness
question,contexts,answer,ground_truths,context_ relevancy,faithfulness,answer_relevancy,context_recall,harmfulness
question,answer,contexts,ground_truths,faithfulness,answer_relevancy,context_ relevancy,harmfulness,context_recall
question,ground_truths,answer,contexts,context_ relevancy,faithfulness,answer_relevancy,context_recall,harmfulness
question,contexts,answer,ground_truths,faithfulness,answer_relevancy,context_relevancy,harmfulness,context_recall
question,contexts,answer,ground_truths,context_precision,context_recall
question,contexts,answer,ground_truths,context_precision,faithfulness,answer_relevancy,context_recall,harmfulness
question,contexts,answer,ground_truths,faithfulness,answer_relevancy,context_recall,context_precision
question,contexts,answer,ground_truths,context_recall,context_precision,answer_relevancy,faithfulness,answer_similarity,answer_correctness,coherence,conciseness
question,contexts,answer,ground_truths,context_recall,context_precision,answer_relevancy,faithfulness,answer_similarity,answer_correctness,coherence,conciseness,awareness
question,contexts,answer,ground_truths,faithfulness,answer_relevancy,context_recall,context_precision,harmfulness
question,contexts,answer,ground_truths,faithfulness,answer_relevancy,context_precision,context_recall,harmfulness
question,ground_truths,answer,contexts,context_ relevancy
question,ground_truths,answer,contexts,answer_relevancy
question,ground_truths,answer,contexts,faithfulness
question,ground_truths,answer,contexts,context_relevancy,faithfulness,answer_relevancy,context_recall,harmfulness
question,ground_truths,answer,contexts,faithfulness,answer_relevancy,context_recall,context_precision,harmfulness
question,ground_truths,answer,contexts,faithfulness,context_recall,context_precision,harmfulness
question,contexts,answer,ground_truth,faithfulness,answer_relevancy,context_recall,context_precision,harmfulness
question,contexts,answer,faithfulness,answer_relevancy,trace_id
question,contexts,answer,ground_truth,faithfulness,answer_relevancy,context_precision,context_recall,harmfulness
question,ground_truth,answer,contexts,faithfulness,answer_relevancy,context_recall,context_precision,harmfulness
question,ground_truth,answer,contexts,faithfulness,context_recall,context_precision,harmfulness
question,ground_truth,answer,contexts,faithfulness,answer_relevancy,context_recall,context_precision,harmfulness,answer_similarity,answer_correctness
user_input,retrieved_contexts,reference_contexts,response,reference,faithfulness,answer_relevancy,context_precision,context_recall
user_input,retrieved_contexts,response,reference,answer_relevancy,context_precision,faithfulness
user_input,retrieved_contexts,response,reference,factual_correctness(mode=f1)
user_input,retrieved_contexts,response,reference,factual_correctness,answer_relevancy,conciseness
""".split("\n")[1:-1]  # noqa: SIM905
assert len(HEADERS) == len(set(HEADERS)) == 36
RENAMED = {
    "user_input": "question",
    "response": "answer",
    "contexts": "retrieved_contexts",
    "reference_contexts": "ground_truth_contexts",
    "ground_truths": "ground_truth_answer",
    "ground_truth": "ground_truth_answer",
    "reference": "ground_truth_answer",
    "reference_answer": "ground_truth_answer",
    "factuality": "faithfulness",
    "context_relavency": "context_relevancy",
    "context_ relevancy": "context_relevancy",
    "answer_similarity": "semantic_similarity",
    "factual_correctness(mode=f1)": "factual_correctness",
}
SCORED = {
    "faithfulness",
    "answer_relevancy",
    "context_relevancy",
    "context_precision",
    "context_recall",
    "semantic_similarity",
    "answer_correctness",
    "factual_correctness",
}
UNDECLARED = {"harmfulness", "Conciseness", "conciseness", "coherence", "awareness"}
TEXTS = {
    "question": ("Who pays “late” fees?", "差旅报销要几天？"),
    "answer": ("The buyer's bank.", "三十天，\n自提交之日起。"),
    "retrieved_contexts": (
        ["It's 30 days.", 'a "quote"\xa0and\ttab'],
        ["报销制度\u3000第三条", "附件"],
    ),
    "ground_truth_contexts": (["It's 30 days."], []),
    "ground_truth_answer": ("the buyer", "三十天"),
    "trace_id": ("t-1", "t-2"),
}


@pytest.mark.parametrize("header", HEADERS)
def test_every_header_of_ragas_gives_canonical_columns_and_equal_numbers(tmp_path, header):
    names = header.split(",")
    ours = [RENAMED.get(name, name) for name in names]
    numbers = {
        name: (round(0.9 - 0.07 * i, 2), None if i % 2 else 0.25) for i, name in enumerate(ours)
    }
    cells = {
        name: [[t] if old == "ground_truths" else t for t in TEXTS[name]]
        if name in TEXTS
        else numbers[name]
        for old, name in zip(names, ours, strict=True)
    }
    table = pd.DataFrame(dict(zip(names, cells.values(), strict=True)))
    frame = read_scores(write(tmp_path, "a.csv", table.to_csv()))
    assert frame.columns.tolist() == ["sample_id", *ours]
    for name in ours:
        if name in TEXTS:
            assert frame[name].tolist() == list(TEXTS[name]), name
        else:
            assert name in SCORED | UNDECLARED
            assert (name in METRICS) == (name in SCORED)
            assert frame[name].replace({np.nan: None}).tolist() == list(numbers[name]), name
    renamed = {(old, RENAMED[old], 2) for old in names if old in RENAMED}
    rows = frame.attrs["lossy"]
    assert {(r["column"], r["detail"], r["n"]) for r in rows if r["what"] == "mapped"} == renamed
    rest = [(r["what"], r["column"], r["n"]) for r in rows if r["what"] != "mapped"]
    assert rest == [("left_out", "", 2), ("made", "sample_id", 2)]
    assert set(rn.weighted_means(frame)["metric"]) == (SCORED & set(ours)) | {"weighted_score"}
    assert frame.attrs["source"]["layout"] == "ragas"


def test_other_modes_and_metrics_without_reference_stay_apart(tmp_path):
    names = [
        "factual_correctness(mode=f1)",
        "factual_correctness(mode=precision)",
        "noise_sensitivity(mode=relevant)",
        "noise_sensitivity(mode=irrelevant)",
        "context_precision",
        "llm_context_precision_without_reference",
    ]
    text = csv_text(
        ["user_input", "response", *names], ["q", "a", ".1", ".2", ".3", ".4", ".5", ".6"]
    )
    frame = read_scores(write(tmp_path, "a.csv", text))
    assert frame.columns.tolist()[3:] == [
        "factual_correctness",
        names[1],
        "noise_sensitivity",
        names[3],
        "context_precision",
        names[5],
    ]
    assert frame.iloc[0, 3:].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def test_factuality_is_agreement_with_a_reference_but_for_the_ragas_of_june_2023():
    rows = [{"question": "q", "factuality": 0.5, "faithfulness": 1.0}]
    assert read_scores(rows)[["factual_correctness", "faithfulness"]].to_numpy().tolist() == [
        [0.5, 1.0]
    ]
    old = [{"question": "q", "context_relavency": 0.2, "factuality": 0.5}]
    assert read_scores(old).columns.tolist() == [
        "sample_id",
        "question",
        "context_relevancy",
        "faithfulness",
    ]


def test_the_context_relevancy_of_2023_is_a_metric_of_its_own_without_rule_or_gate():
    rows = [{"question": q, "context_ relevancy": 0.1, "context_relevance": 0.9} for q in "abcdef"]
    frame = read_scores(rows)
    assert frame[["context_relevancy", "context_relevance"]].to_numpy().tolist() == [[0.1, 0.9]] * 6
    assert "context_relevancy" not in set(rn.diagnose(frame)["metric"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        assert "context_relevancy" not in set(rn.assess(frame).gates["metric"])


# The names of the table of formats

ALIASES = {
    "question": "user_input query input q Question questions chat_input",
    "answer": "response generated_answer output actualOutput predicted_answers generated_texts Model~answer",
    "ground_truth_answer": "reference Ground~Truth ground_truth ground_truths reference_answer gt_answer truth "
    "expectedOutput true_answers generation_gt",
    "retrieved_contexts": "Retrieved~Contexts contexts context retrieval_context retrievalContext "
    "retrieved_context retrieved_contents passage",
    "ground_truth_contexts": "reference_contexts reference_context",
    "doc_name": "doc document source file filename source_document",
    "sample_id": "id qid query_id record_id traceId Index",
    "system": "model run app_name configuration",
    "faithfulness": "Faithfulness FAITHFULNESS groundedness Groundedness nv_response_groundedness "
    "response_groundedness faithfullness_evaluator faithfulness_evaluator",
    "answer_relevancy": "response_relevancy answer-relevancy Answer~Relevance answer_relevance relevancy",
    "context_precision": "llm_context_precision_with_reference context_precision_with_reference",
    "context_relevance": "nv_context_relevance",
    "context_relevancy": "context_~relevancy context_relavency",
    "factual_correctness": "factual_correctness(mode=f1) factuality",
    "noise_sensitivity": "noise_sensitivity(mode=relevant)",
    "semantic_similarity": "answer_similarity sas",
    "answer_accuracy": "nv_accuracy",
}


@pytest.mark.parametrize(
    ("alias", "name"),
    [(a.replace("~", " "), n) for n, words in ALIASES.items() for a in words.split()],
)
def test_every_alias_of_the_formats_is_read(alias, name):
    rest = {"question": "q", "context_recall": 1.0}
    row = {alias: 1.0 if name in METRICS else "x"} | {k: v for k, v in rest.items() if k != name}
    frame = read_scores([row])
    assert name in frame.columns
    assert ("mapped", alias, 1) in told(frame) or alias == name


@pytest.mark.parametrize(
    "name", ["style", "store", "rewritten_query", "trace_id", "latency", "relevance"]
)
def test_a_text_or_group_column_after_the_metrics_is_kept_and_no_metric(tmp_path, name):
    frame = read_scores(
        write(tmp_path, "a.csv", csv_text(["question", "faithfulness", name], ["q", "1", "短"]))
    )
    assert frame[name].tolist() == ["短"]
    assert rn.weighted_means(frame)["metric"].tolist() == ["faithfulness", "weighted_score"]


# Quirks


@pytest.mark.parametrize("encoding", [None, "utf-16", "gbk", "gb18030", "utf-8-sig", "utf-8"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_one_table_in_any_encoding_and_line_end_is_the_same_frame(tmp_path, encoding, newline):
    """Without an encoding there is the mark of one."""
    text = newline.join(
        ["question,answer,faithfulness", "退款要几天？,三十天。,0.5", 'Who?,"Ann, 安",1', ""]
    )
    path = write(tmp_path, "a.csv", text if encoding else f"\ufeff{text}", encoding or "utf-8")
    if encoding == "utf-16":
        refused(lambda: read_scores(path), "encoding='utf-16'")
    frame = read_scores(path, encoding=encoding)
    assert frame["question"].tolist() == ["退款要几天？", "Who?"]
    assert frame["answer"].tolist() == ["三十天。", "Ann, 安"]
    assert frame["faithfulness"].tolist() == [0.5, 1]


@pytest.mark.parametrize(
    ("text", "encoding", "named"),
    [
        ("公司差旅怎么报销？", "gbk", "gb18030"),
        ("這份文件說明退款流程，請提出申請。", "big5", "big5"),
        ("繁體與简体混排，English too", "gb18030", "gb18030"),
    ],
)
def test_chinese_that_is_no_utf8_is_refused_with_its_encoding_and_then_read(
    tmp_path, text, encoding, named
):
    path = write(tmp_path, "a.csv", csv_text(["question", "faithfulness"], [text, "1"]), encoding)
    refused(lambda: read_scores(path), "line 2", f"encoding={named!r}")
    assert read_scores(path, encoding=named)["question"].tolist() == [text]


ODD = [
    "<b>bold</b><br/>&amp;",
    "👩🏽‍🔬 ok",
    "eﬃcient ﬁle",
    "⾦⾴",
    "soft\u00adhyphen",
    "zero\u200bwidth",
    " spaces kept ",
    "tab\tinside",
    "line\nbreak",
    "cr\r\nlf",
    'it\'s "both"',
    "a,b;c",
    "問題與问题",
    "cafe\u0301",
    "\u3000全角\xa0",
    "None",
    "TRUE",
    "1.0",
    "[not a list",
    "{braces}",
]


@pytest.mark.parametrize("text", ODD)
def test_texts_are_kept_to_the_letter(tmp_path, text):
    path = write(
        tmp_path, "a.csv", csv_text(["question", "answer", "faithfulness"], [text, text, "1"])
    )
    for frame in (
        read_scores(path),
        read_scores([{"question": text, "answer": text, "faithfulness": 1}]),
    ):
        assert frame.loc[0, ["question", "answer"]].tolist() == [text, text]
    contexts = [
        {"question": "q", "contexts": kind([text, "x"]), "faithfulness": 1}
        for kind in (repr, json.dumps)
    ]
    assert read_scores(contexts)["retrieved_contexts"].tolist() == [[text, "x"]] * 2


@pytest.mark.parametrize(
    "ident", ["mt<::>1", "a#b", "k=v", "with space", "文件一", "007", "1e5", "x]y", "None"]
)
def test_ids_are_kept_to_the_letter(tmp_path, ident):
    frame = read_scores(
        write(tmp_path, "a.csv", csv_text(["qid", "doc", "faithfulness"], [ident, ident, "1"]))
    )
    assert frame.loc[0, ["sample_id", "doc_name"]].tolist() == [ident, ident]


def test_cut_lists_and_printed_documents_are_kept_marked_and_the_rest_goes_on(tmp_path):
    cells = [
        "['a', \"it's\"]",
        "[Have the check reissued...",
        "[Document(id='1', page_content='x')]",
        "[]",
        "",
    ]
    rows = [[f"q{i}", cell, "0.5"] for i, cell in enumerate(cells)]
    frame = read_scores(
        write(tmp_path, "a.csv", csv_text(["question", "contexts", "faithfulness"], *rows))
    )
    assert frame["retrieved_contexts"].tolist() == [["a", "it's"], [cells[1]], ["x"], [], None]
    assert told(frame, "unparsed") == [("unparsed", "retrieved_contexts", 1)]


@pytest.mark.parametrize(
    ("header", "cells", "ids"),
    [
        (["question"], [["q"]], ["1"]),
        (["", "question"], [["7", "q"]], ["1"]),
        (["", "Index", "question"], [["0", "x9", "q"]], ["x9"]),
        (["Unnamed: 0", "question"], [["0", "q"]], ["1"]),
        (["", "Question"], [["r1", "q"]], ["1"]),
    ],
)
def test_index_columns_are_dropped_named_or_kept_never_lost_in_silence(
    tmp_path, header, cells, ids
):
    rows = [[*row, "0.5"] for row in cells]
    frame = read_scores(write(tmp_path, "a.csv", csv_text([*header, "faithfulness"], *rows)))
    assert frame["sample_id"].tolist() == ids
    assert frame["question"].tolist() == ["q"]
    if header[0] in ("", "Unnamed: 0"):
        kept = [("kept", "column_1", 1)] if cells[0][0] == "r1" else [("left_out", "", 1)]
        assert told(frame, "left_out", "kept") == kept


def test_an_index_of_texts_without_a_name_is_listed_when_a_frame_is_read():
    frame = pd.DataFrame({"question": ["q"], "faithfulness": [1.0]}, index=["s1"])
    assert told(read_scores(frame), "left_out") == [("left_out", "", 1)]
    assert not told(read_scores(frame.reset_index(drop=True)[::-1]), "left_out")


SCALES = [
    ("1-5", ["1", "3", "5"], (1, 5)),
    ("1-4 as text", ["1", "2", "4"], (1, 5)),
    ("-2..2", ["-2", "0", "2"], (-2, 2)),
    ("percent", ["87", "90.5", "0"], (0, 100)),
    ("1-10", ["1", "7", "10"], (1, 10)),
    ("cosine", ["-0.2", "1"], (-1, 1)),
]


@pytest.mark.parametrize(
    ("cells", "ends"), [row[1:] for row in SCALES], ids=[row[0] for row in SCALES]
)
def test_a_scale_that_is_not_the_metrics_is_refused_with_the_line_that_declares_it(
    tmp_path, cells, ends
):
    path = write(
        tmp_path, "a.csv", csv_text(["question", "faithfulness"], *[["q", cell] for cell in cells])
    )
    low, high = ends
    refused(
        lambda: read_scores(path),
        f"metrics=[rn.Metric('faithfulness', {low}, {high})]",
        "outside 0..1",
    )
    frame = read_scores(path, metrics=[rn.Metric("faithfulness", low, high)])
    assert frame["faithfulness"].tolist() == [float(cell) for cell in cells]


def test_a_sentinel_of_minus_one_is_a_failed_score_and_no_scale_is_invented():
    rows = [{"question": "q", "faithfulness": v} for v in (-1, 0.5, 1)]
    read = read_scores(rows)
    assert read["faithfulness__status"].eq("failed").tolist() == [True, False, False]
    beside = [{"question": "q", "faithfulness": v} for v in (-1, -0.5, 1)]
    refused(lambda: read_scores(beside), "-1 lies outside", "means a failed score")
    far = [{"question": "q", "faithfulness": v} for v in (-7, 40)]
    refused(lambda: read_scores(far), "rn.Metric('faithfulness', low")
    mixed = [{"question": "q", "faithfulness": v} for v in ("0.5", "87%")]
    refused(lambda: read_scores(mixed), "row 2", "'87%'", "write 0.87 for 87%")


def test_systems_on_two_scales_are_never_mixed():
    rows = [
        {"question": "q", "system": s, "faithfulness": v}
        for s, v in [("a", 0.5), ("b", 50), ("b", 80)]
    ]
    refused(lambda: read_scores(rows), "row 2", "2 of 3 values")


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["0", ".5", "1"], [0, 0.5, 1]),
        (["True", "False", "TRUE"], [1, 0, 1]),
        (["0.9999999999", "1e-12"], [1, 1e-12]),
        (["", "NaN", "null", "None", "N/A", " "], [None] * 6),
        (["1", ""], [1, None]),
    ],
)
def test_cells_of_a_metric(tmp_path, cells, values):
    rows = [[f"q{i}", cell, "0.5"] for i, cell in enumerate(cells)]
    text = csv_text(["question", "faithfulness", "context_recall"], *rows)
    frame = read_scores(write(tmp_path, "a.csv", text))
    assert frame["faithfulness"].replace({np.nan: None}).tolist() == pytest.approx(values, abs=0)
    assert rn.weighted_means(frame, metrics="faithfulness").loc[0, "n"] == sum(
        v is not None for v in values
    )


# Cosines


def test_a_cosine_enters_the_total_at_its_raw_value_beside_shares():
    values = (-0.25, 0.5, 0.75, 1.00000011921)
    rows = [
        {"question": q, "sas": v, "faithfulness": 0.5} for q, v in zip("abcd", values, strict=True)
    ]
    frame = read_scores(rows)
    assert frame["semantic_similarity"].tolist() == [-0.25, 0.5, 0.75, 1.0]
    (row,) = [r for r in frame.attrs["lossy"] if "within 1e-06 of 1" in r["detail"]]
    assert (row["what"], row["column"], row["n"]) == ("clipped", "semantic_similarity", 1)
    plain = frame[["semantic_similarity", "faithfulness"]].mean(axis=1)
    for rescale in (False, True):
        means = rn.weighted_means(frame, rescale=rescale).set_index("metric")
        assert means.loc["semantic_similarity", "value"] == pytest.approx(0.5, abs=1e-12)
        assert means.loc["weighted_score", "value"] == pytest.approx(plain.mean(), abs=1e-12)
        assert rn.weighted_score(frame, rescale=rescale).tolist() == pytest.approx(
            plain.tolist(), abs=1e-12
        )
    assert means.loc["semantic_similarity", "low"] < -0.1
    negative = frame.assign(semantic_similarity=[-0.5, -0.4, -0.3, -0.2])
    alone = rn.weighted_means(negative, metrics=["semantic_similarity"])
    assert (alone["low"] < alone["value"]).all()
    assert (alone["value"] < alone["high"]).all()
    assert alone["value"].tolist() == pytest.approx([-0.35, -0.35])


def test_the_rule_for_cosines_holds_on_any_declared_range_of_them():
    frame = pd.DataFrame({"sample_id": list("abcd"), "semantic_similarity": [0.4, 0.3, 0.2, 0.1]})
    for declared in (
        [],
        [rn.Metric("semantic_similarity", -1, 1)],
        [rn.Metric("semantic_similarity", 0, 1)],
    ):
        assert rn.diagnose(frame, metrics=declared or None)["metric"].tolist() == [
            "semantic_similarity"
        ]


@pytest.mark.parametrize(
    ("name", "value", "end"),
    [
        ("faithfulness", 1 + 9e-7, 1.0),
        ("faithfulness", -9e-7, 0.0),
        ("sas", -1.0000005, -1.0),
    ],
)
def test_a_value_a_hair_beyond_an_end_is_that_end_and_said_so(tmp_path, name, value, end):
    rows = [{"question": "a", name: value}, {"question": "b", name: end}]
    text = csv_text(["question", name], ["a", repr(value)], ["b", repr(end)])
    for source in (rows, write(tmp_path, "a.csv", text)):
        frame = read_scores(source)
        assert frame.iloc[:, -1].tolist() == [end, end]
        assert [r["n"] for r in frame.attrs["lossy"] if "1e-06" in r["detail"]] == [1]
    beyond = value + 3 * (value - end)
    refused(lambda: read_scores([{"question": "a", name: beyond}]), "lies outside")


@pytest.mark.parametrize(("value", "end"), [(10.0000009, 10.0), (0.9999995, 1.0)])
def test_a_mark_a_hair_beyond_the_declared_scale_is_its_end(value, end):
    rubric = Metric("accuracy", 1, 10)
    rows = [{"question": "a", "accuracy": value}, {"question": "b", "accuracy": end}]
    frame = read_scores(rows, metrics=rubric)
    assert frame["accuracy"].tolist() == [end, end]
    assert [r["n"] for r in frame.attrs["lossy"] if "1e-06" in r["detail"]] == [1]
    beyond = value + 3 * (value - end)
    refused(
        lambda: read_scores([{"question": "a", "accuracy": beyond}], metrics=rubric), "lies outside"
    )


@pytest.mark.parametrize(
    ("values", "proposed"),
    [
        ((0, 1.01), None),
        ((0.2, 1.005), None),
        ((1.0, 1.01), None),
        ((-0.005, 1.01), None),
        ((-0.005, 1), "-1, 1"),
        ((1, 4), "1, 5"),
        ((1, 7), "1, 10"),
        ((0, 3), None),
        ((20, 80), "0, 100"),
        ((-2, 1), "-2, 2"),
    ],
)
def test_no_scale_is_proposed_that_the_values_contradict(values, proposed):
    rows = [{"question": str(i), "faithfulness": value} for i, value in enumerate(values)]
    refused(
        lambda: read_scores(rows),
        f"Metric('faithfulness', {proposed})" if proposed else "low, high)",
    )


# Long layouts


@pytest.mark.parametrize("column", ["model", "configuration", "store", "Model", "app_name"])
def test_a_sample_repeated_for_each_system_is_long_by_system(tmp_path, column):
    rows = [[i, s, "0.5"] for i in "ab" for s in ("小", "大")]
    frame = read_scores(
        write(tmp_path, "a.csv", csv_text(["sample_id", column, "faithfulness"], *rows))
    )
    assert frame["system"].tolist() == ["小", "大"] * 2
    assert ("mapped", column, 4) in told(frame)
    assert not told(frame, "kept")


@pytest.mark.parametrize("column", ["epoch", "Trial", "attempt", "seed", "run", "repeat"])
def test_repeated_runs_are_found_by_the_column_that_counts_them(tmp_path, column):
    rows = [[i, m, n, "0.5"] for i in "ab" for m in ("x", "y") for n in "123"]
    frame = read_scores(
        write(tmp_path, "a.csv", csv_text(["qid", "model", column, "faithfulness"], *rows))
    )
    assert frame["repeat"].tolist() == ["1", "2", "3"] * 4
    assert frame["system"].tolist() == (["x"] * 3 + ["y"] * 3) * 2
    assert not told(frame, "kept")
    assert "repeat" not in rn.weighted_means(frame)["metric"].tolist()


def test_made_ids_pair_the_repeats_of_a_question():
    rows = [{"question": q, "epoch": e, "faithfulness": 1} for e in (1, 2) for q in "xy"]
    assert read_scores(rows)["sample_id"].tolist() == ["1", "2"] * 2


@pytest.mark.parametrize(
    "more", [{}, {"seed": [4, 4, 4, 4]}, {"epoch": [1, 2, 1, 2], "trial": [1, 2, 1, 2]}]
)
def test_repeats_that_no_column_tells_apart_are_offered_in_words(more):
    frame = read_scores(
        pd.DataFrame({"sample_id": [*"aabb"], "faithfulness": 1.0, "turn": [*"1212"]} | more)
    )
    ((_, column, n),) = told(frame, "kept")
    assert (column, n) == ("sample_id", 2)
    assert "columns={'…': 'repeat'}" in frame.attrs["lossy"][-1]["detail"]
    assert "repeat" not in frame
    picked = read_scores(frame, columns={"turn": "repeat"})
    assert not told(picked, "kept")
    assert (picked["repeat"].tolist(), len(picked)) == ([*"1212"], 4)


def test_a_second_header_row_and_elided_columns_are_read_in_one_table(tmp_path):
    text = ",,...,Groundedness\nrecord_id,input,...,\nr1,问,...,0.5\nr2,q,...,1\n"
    frame = read_scores(write(tmp_path, "a.csv", text))
    assert frame.to_dict("list") == {
        "sample_id": ["r1", "r2"],
        "question": ["问", "q"],
        "faithfulness": [0.5, 1],
    }
    assert ("left_out", "...", 2) in told(frame)
    assert ("left_out", None, 1) in told(frame)


# What is listed, and names beyond the file


def test_everything_that_leaves_a_table_is_listed():
    cell = {"faithfulness": {"score": 0.5, "status": "ok"}}
    assert ("mapped", "results", 1) in told(read_scores([{"question": "q", "results": cell}]))
    record = {"record_id": "1", "app_id": "x", "input": '"q"', "output": "a", "Groundedness": 1.0}
    rows = read_scores([record]).attrs["lossy"]
    assert [r["n"] for r in rows if r["column"] == "input"] == [1, 1]
    assert not [r for r in rows if r["column"] == "output" and "quotes" in r["detail"]]


def test_guards_of_our_own_csv_are_listed(tmp_path):
    text = to_csv_text(pd.DataFrame({"question": ["=q"], "faithfulness": [1.0]}))
    assert told(read_scores(write(tmp_path, "a.csv", text)), "left_out") == [
        ("left_out", "ragnb__guarded", 1)
    ]


def test_a_document_is_one_in_both_unicode_spellings_and_near_names_are_offered(tmp_path):
    spellings = [unicodedata.normalize(form, "résumé 報告.pdf") for form in ("NFC", "NFD")]
    assert len(set(spellings)) == 2
    rows = [["q", spellings[0], "1"], ["r", spellings[1], "0"], ["s", "差旅报销制度.pdf", "0"]]
    frame = read_scores(
        write(tmp_path, "a.csv", csv_text(["question", "source", "faithfulness"], *rows))
    )
    assert frame["doc_name"].tolist()[:2] == spellings
    for name in spellings:
        means = rn.weighted_means(frame, doc_weights={name: 3})
        assert means.loc[0, "value"] == pytest.approx(3 / 7)
    with pytest.warns(RagnbWarning, match="差旅报销制度.pdf"):
        rn.weighted_means(frame, doc_weights={"差旅报销制.pdf": 2})


# Files that do harm


def bomb(piece, times):
    """A gzip file of many members, so that it is made as fast as it is read."""
    return gzip.compress(piece * (20 * 2**20 // len(piece)), 9) * times


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.json", "a.jsonl.gz", "a.tsv.gz"])
def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(bomb(b'{"question": "q", "faithfulness": ' + b" " * 2**20 + b"1}\n", 10))
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    try:
        refused(lambda: read_scores(path), name, "unpacks to more than 64 MB", "unpack it yourself")
        assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    finally:
        tracemalloc.stop()


def test_a_packed_file_that_is_merely_large_is_read_to_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "_UNSUSPECTED", 1000)
    text = csv_text(["question", "faithfulness"], *[[f"问题 {i}", i / 500] for i in range(500)])
    path = write(tmp_path, "a.csv.gz", text)
    assert len(read_scores(path)) == 500
    monkeypatch.setattr(documents, "LARGEST_UNPACKED", 1000)
    refused(lambda: read_scores(path), "unpacks to more than")


def test_a_table_of_a_hundred_thousand_columns_is_refused(tmp_path):
    wide = ",".join(f"c{i}" for i in range(100_000))
    path = write(tmp_path, "a.csv", f"{wide}\n{wide}\n")
    refused(lambda: read_scores(path), "100,000 columns", "most is 10,000")
    records = [{f"k{i}": 1} for i in range(raw.MOST_COLUMNS + 1)]
    for name, text in [
        ("a.json", json.dumps(records)),
        ("a.jsonl", "\n".join(map(json.dumps, records))),
    ]:
        refused(
            lambda name=name, text=text: read_scores(write(tmp_path, name, text)), "10,001 columns"
        )
    refused(lambda: read_scores(pd.DataFrame(np.ones((1, 10_001)))), "10,001 columns")
    few = ["question", *(f"m{i}" for i in range(raw.MOST_COLUMNS - 1))]
    path = write(tmp_path, "b.csv", csv_text(few, ["q", *["0.5"] * (len(few) - 1)]))
    assert read_scores(path).shape == (1, 10_001)


def workbook():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("xl/workbook.xml", "<workbook/>")
    return out.getvalue()


def database():
    connection = sqlite3.connect(":memory:")
    connection.execute("create table a (b)")
    return connection.serialize()


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.jsonl", "a.tsv", "a.parquet", "a.csv.gz"])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (workbook(), "Excel workbook"),
        (pickle.dumps({"question": ["q"]}), "pickle"),
        (database(), "SQLite"),
        (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel workbook"),
    ],
)
def test_a_file_of_another_kind_is_told_by_what_it_is(tmp_path, name, data, words):
    path = write(tmp_path, name, data)
    for read in (read_scores, read_cases, read_traces, read_gold):
        refused(lambda read=read: read(path), name, words)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.json"])
def test_a_nul_byte_is_refused_with_its_line(tmp_path, name):
    path = write(tmp_path, name, b"question,faithfulness\nq\x00,1\n")
    refused(lambda: read_scores(path), f"{name}, line 2", "NUL", "encoding='utf-16-le'")


def test_utf16_without_its_mark_is_read_when_named(tmp_path):
    path = write(tmp_path, "a.csv", "question,faithfulness\n问,1\n", "utf-16-le")
    refused(lambda: read_scores(path), "encoding=")
    assert read_scores(path, encoding="utf-16-le")["question"].tolist() == ["问"]


def test_our_own_csv_holds_no_nul(tmp_path):
    text = to_csv_text(pd.DataFrame({"question": ["a\0b"], "faithfulness": [1.0]}))
    assert read_scores(write(tmp_path, "a.csv", text))["question"].tolist() == ["a\ufffdb"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("question,faithfulness,question\nq,1,r\n", "'question' appears twice"),
        ("question,faithfulness\n", "no rows"),
        ("question,faithfulness\n,\n\n , \n", "no rows"),
        ("\n\n\n", "names no column"),
        (" \n", "names no column"),
        (",,\n1,2,3\n", "names no column"),
    ],
)
def test_tables_without_a_sample_are_refused_in_words(tmp_path, text, words):
    refused(lambda: read_scores(write(tmp_path, "a.csv", text)), "a.csv", words)


def test_missing_columns_and_blank_columns_are_missing_not_zero(tmp_path):
    frame = read_scores(
        write(tmp_path, "a.csv", "question,faithfulness,context_recall\nq,1,\nr,0.5, \n")
    )
    means = rn.weighted_means(frame).set_index("metric")
    assert (means.loc["context_recall", "n"], means.loc["context_recall", "n_missing"]) == (0, 2)
    assert math.isnan(means.loc["context_recall", "value"])


@pytest.mark.parametrize("indent", [None, 1, "lines"])
@pytest.mark.parametrize("strict", [False, True])
def test_a_json_list_that_is_named_jsonl_is_read(tmp_path, indent, strict):
    records = [{"q": f"问 {i}", "answer": "x", "chunks": [{"id": "d"}]} for i in range(3)]
    lines = "[\n" + ",\n".join(json.dumps(r, ensure_ascii=False) for r in records) + "\n]\n"
    text = lines if indent == "lines" else json.dumps(records, ensure_ascii=False, indent=indent)
    found = read_traces(write(tmp_path, "a.jsonl", text), strict=strict)
    assert list(found["question"]) == ["问 0", "问 1", "问 2"]
    broken = write(tmp_path, "b.jsonl", text[:-4])
    refused(lambda: read_traces(broken, strict=strict), "b.jsonl", "line 1")


# Large CSV files, parsed by Polars


DAMAGE = st.tuples(st.integers(0, 200), st.sampled_from(['"', "", ",", "\n", "\r", '""', "x"]))
CELL = st.text('ab,"\n é中;\t\r', max_size=5)
TABLES = [
    st.lists(st.lists(CELL, min_size=n, max_size=n), min_size=1, max_size=4) for n in (1, 2, 3, 4)
]


ENDS, QUOTING = st.sampled_from(["\n", "\r\n"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])


@given(st.one_of(TABLES), ENDS, QUOTING, st.none() | DAMAGE)
def test_cells_that_polars_parses_are_those_of_csv_or_none(rows, end, quoting, damage):
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator=end, quoting=quoting).writerows(rows)
    text = stream.getvalue()
    if damage is not None:
        at, put = damage[0] % max(len(text), 1), damage[1]
        text = text[:at] + put + text[at + 1 :]
    found = tables.quick_cells(text.encode(), ",")
    if found is not None:
        assert list(map(list, found.rows())) == list(
            csv.reader(io.StringIO(text, newline=""), strict=True)
        )


LARGE = {
    "plain": 'question,answer,faithfulness\n"Who, then?",Ann.,0.5\n"a\nb",,1\nx,y,\n',
    "index of pandas": ",question,faithfulness\n0,a,0.5\n1,b,1.0\n",
    "lists": "question,contexts,faithfulness\n"
    + "".join(f"q{i},\"['a', 'b']\",0.{i}\n" for i in range(5)),
    "words for numbers": "question,faithfulness,correct,code\na,N/A,True,007\nb,-,False,1\nc,0.5,True,2\n",
    "ids and lists": "id,question,faithfulness,citations\n007,a,0.5,\"['d']\"\n,b,1,[]\n 8 ,c,1,\n",
    "windows": "question,faithfulness\r\na,0.5\r\nb,1\r\n",
    "a mean below": "question,faithfulness\na,0.5\nb,1\nmean,0.75\n",
    "elided rows": "question,faithfulness\na,0.5\n...,...\nb,1\n",
    "blank rows": "question,faithfulness\na,0.5\n,\nb,1\n",
    "guarded": "question,faithfulness,ragnb__guarded\n'=a,0.5,1\nb,1,1\n",
    "uneven": "question,faithfulness\na,0.5,3\nb,1\n",
    "twice": "question,question\na,b\nc,d\n",
    "tabs": "question\tfaithfulness\na\t0.5\nb\t1\n",
    "GBK": "问题,忠实度\n甲,1\n乙,0\n",
    "NUL": "q,a\nx,\0\n" * 3,
    "a wrong number": 'question,faithfulness\n"a\nb",0.5\nc,seven\n',
}
REFUSED_LARGE = {
    "GBK": "gb18030",
    "NUL": "NUL",
    "a wrong number": "line 4: column 'faithfulness': found 'seven'",
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_file_is_read_as_a_small_one(tmp_path, monkeypatch, name):
    path = tmp_path / ("a.tsv" if name == "tabs" else "a.csv")
    path.write_bytes(LARGE[name].encode("gbk" if name == "GBK" else "utf-8"))

    def outcome():
        try:
            frame = read_scores(path)
        except RagnbError as error:
            return str(error)
        return frame, frame.attrs["source"], frame.attrs["lossy"]

    small = outcome()
    monkeypatch.setattr(tables, "_LARGE", 0)
    large = outcome()
    if isinstance(small, str):
        assert large == small
        assert "a.csv" in small
        assert REFUSED_LARGE.get(name, "") in small
    else:
        assert name not in REFUSED_LARGE
        pd.testing.assert_frame_equal(large[0], small[0])
        assert large[1:] == small[1:]


# Paths that lead nowhere


TOO_LONG = {
    "a name": "a" * 300,
    "a pattern": "a" * 300 + "/*.csv",
    "a path": "a/" * 3000,
    "the text of a table": "question,faithfulness\n" + "Who?,0.5\n" * 900,
}


@pytest.mark.parametrize("path", TOO_LONG.values(), ids=TOO_LONG)
@pytest.mark.parametrize(
    "read",
    [
        read_scores,
        read_cases,
        read_traces,
        read_gold,
        rn.read_ratings,
        rn.inspect_file,
        rn.compare,
        rn.calibrate,
    ],
)
def test_a_path_that_is_too_long_is_refused_in_words(read, path):
    with pytest.raises(RagnbError, match="too long for a path; name one file") as caught:
        read(path)
    assert f"({len(path):,} characters)" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_name_that_is_too_long_for_a_path_may_name_a_baseline(tmp_path):
    table = pd.DataFrame({"question": ["a", "b"], "faithfulness": [0.5, 0.7]})
    file = write(tmp_path, "scores.csv", table.to_csv(index=False))
    long = "b" * 300
    both = pd.concat([table.assign(system=long), table.assign(system="new")])
    both.to_csv(tmp_path / "both.csv", index=False)
    result = rn.assess(tmp_path / "both.csv", baseline=long, candidate="new")
    assert result.scenario.baseline == long
    with pytest.raises(RagnbError, match="too long for a path"):
        rn.assess(file, baseline=long)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_with_a_nul_is_shown_and_not_called_by_its_type(kind):
    with pytest.raises(RagnbError, match=r"key 'scores': 'a\\x00b' is not a path; name one file"):
        rn.assess(kind("a\0b"))
