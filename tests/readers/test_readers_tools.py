"""What other tools write, and what people make of it in a spreadsheet: values under their names, or a sentence."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import random
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from reading import csv_text, refused, rows, told, write

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.readers import documents, read_cases, read_gold, read_scores, read_traces
from ragnb.readers.names import CASE_ALIASES, rename_map
from ragnb.schema import METRICS
from ragnb.scoring import ragas as adapter

# DeepEval

METRIC_DATA = {
    "name": "Faithfulness",
    "threshold": 0.5,
    "success": True,
    "score": 0.75,
    "reason": "fine",
}
CASE = {
    "name": "test_case_0",
    "input": "Refund window?",
    "actualOutput": "30 days",
    "expectedOutput": "30 days",
    "context": ["gold"],
    "retrievalContext": ["Refunds within 30 days."],
    "success": True,
}
RUN = {
    "testCases": [
        {**CASE, "metricsData": [METRIC_DATA]},
        {
            **CASE,
            "name": "test_case_1",
            "metricsData": [{"name": "Faithfulness", "error": "no reply", "success": False}],
        },
        {**CASE, "name": "test_case_2"},
    ],
    "conversationalTestCases": [],
    "metricsScores": [
        {"metric": "Faithfulness", "scores": [0.75], "passes": 1, "fails": 0, "errors": 1}
    ],
    "testPassed": 1,
    "runDuration": 0.14,
}


def test_a_test_run_of_deepeval_is_its_cases_with_a_column_a_metric(tmp_path):
    frame = read_scores(write(tmp_path, "test_run.json", RUN))
    assert rows(
        frame, "sample_id", "faithfulness", "faithfulness__status", "faithfulness__reason"
    ) == [
        ("test_case_0", 0.75, None, "fine"),
        ("test_case_1", None, "failed", "no reply"),
        ("test_case_2", None, None, None),
    ]
    assert rows(frame, "question", "answer", "ground_truth_answer")[0] == (
        "Refund window?",
        "30 days",
        "30 days",
    )
    assert (frame["retrieved_contexts"][0], frame["ground_truth_contexts"][0]) == (
        ["Refunds within 30 days."],
        ["gold"],
    )
    assert frame.attrs["source"]["layout"] == "deepeval"
    assert ("left_out", None, 4) in told(frame)


def test_a_layout_hands_over_the_scale_and_the_failures_of_its_metrics(tmp_path):
    lost = {"name": "Faithfulness", "threshold": 0.5, "error": "timeout"}
    cases = [
        {"input": "q", "actualOutput": "a", "metricsData": [metric]}
        for metric in (METRIC_DATA, lost)
    ]
    assert read_scores(write(tmp_path, "run.json", {"testCases": cases})).attrs["metrics"] == [
        {
            "metric": "faithfulness",
            "low": 0.0,
            "high": 1.0,
            "better": "higher",
            "threshold": 0.5,
            "n_failed": 1,
        }
    ]
    record = {"record_id": "r", "input": "q", "output": "a", "app_id": "x", "Faithfulness": -1.0}
    calls = [
        {**record, "Faithfulness_calls": "[]", "Faithfulness direction": word}
        for word in ("False", None)
    ]
    (handed,) = read_scores(calls[:1]).attrs["metrics"]
    assert (handed["metric"], handed["better"], handed["n_failed"]) == ("faithfulness", "lower", 1)
    assert read_scores(calls[1:]).attrs["metrics"][0]["better"] == "higher"
    assert "metrics" not in read_scores([{"question": "q", "faithfulness": 1.0}]).attrs


# promptfoo


def test_results_of_promptfoo_are_rows_with_their_variables_and_named_scores(tmp_path):
    row = {
        "promptIdx": 0,
        "testIdx": 0,
        "provider": {"id": "openai:x"},
        "vars": {"query": "q", "context": "c"},
        "response": {"output": "30 days"},
        "success": True,
        "score": 1,
        "namedScores": {"faithfulness": 1},
    }
    failed = {**row, "testIdx": 1, "error": "timeout", "namedScores": {}, "response": None}
    run = {
        "evalId": "e",
        "results": {
            "version": 3,
            "prompts": [{"raw": "{{query}}", "label": "p"}],
            "results": [row, failed],
            "stats": {"successes": 1},
        },
    }
    frame = read_scores(write(tmp_path, "out.json", run))
    columns = ["sample_id", "question", "answer", "system", "faithfulness", "faithfulness__status"]
    assert rows(frame, *columns) == [
        ("0", "q", "30 days", "openai:x", 1.0, None),
        ("1", "q", None, "openai:x", None, "failed"),
    ]
    assert frame["retrieved_contexts"].tolist() == [["c"], ["c"]]


@pytest.mark.parametrize("reason", [{"failureReason": 2}, {}])
def test_errored_rows_of_promptfoo_are_failed_and_no_zeros(tmp_path, reason):
    row = {
        "promptIdx": 0,
        "provider": {"id": "m"},
        "vars": {"query": "q"},
        "response": {"output": "a"},
    }
    run = [
        {**row, "testIdx": i, "score": s, "namedScores": {"faithfulness": s, "score": s}}
        for i, s in enumerate((1, 1, 0))
    ]
    run += [
        {
            **row,
            "testIdx": i,
            "score": 0,
            "namedScores": {"faithfulness": 0},
            "error": "429",
            "response": {},
            **reason,
        }
        for i in range(3, 9)
    ]
    frame = read_scores(write(tmp_path, "out.json", {"results": {"version": 3, "results": run}}))
    means = rn.weighted_means(frame, metrics=["faithfulness"]).set_index("metric")
    assert means.loc["faithfulness", "value"] == pytest.approx(2 / 3)
    assert means.loc["faithfulness", ["n", "n_failed"]].tolist() == [3, 6]
    failed = [False] * 3 + [True] * 6
    scores = frame["faithfulness"]
    assert scores.isna().tolist() == frame["faithfulness__status"].eq("failed").tolist() == failed
    # The score of a row is the mean of its named scores, and would count them twice.
    assert ("left_out", "score", len(frame)) in told(frame)
    assert frame["faithfulness__reason"].tolist()[3:] == ["429"] * 6


# MLflow


@pytest.mark.parametrize("form", ["split.json", "a.csv"])
def test_the_table_of_mlflow_has_scorers_for_metrics_and_yes_is_one(tmp_path, form):
    names = [
        "request_id",
        "inputs",
        "outputs",
        "expectations",
        "faithfulness/value",
        "faithfulness/rationale",
        "faithfulness/error_message",
    ]
    data = [
        ["r1", {"question": "q"}, "a", {"expected_response": "g"}, "yes", "because", None],
        ["r2", {"question": "r"}, "b", {"expected_response": "h"}, "no", None, None],
        ["r3", {"question": "s"}, "c", {"expected_response": "i"}, None, None, "timeout"],
    ]
    text = csv_text(
        names, *[[json.dumps(c) if isinstance(c, dict) else c for c in row] for row in data]
    )
    source = write(
        tmp_path, form, text if form.endswith("csv") else {"columns": names, "data": data}
    )
    frame = read_scores(source)
    assert rows(
        frame,
        "sample_id",
        "question",
        "answer",
        "ground_truth_answer",
        "faithfulness",
        "faithfulness__status",
        "faithfulness__reason",
    ) == [
        ("r1", "q", "a", "g", 1.0, None, "because"),
        ("r2", "r", "b", "h", 0.0, None, None),
        ("r3", "s", "c", "i", None, "failed", None),
    ]


def test_a_rating_of_mlflow_from_1_to_5_is_not_taken_for_a_share():
    table = [
        {
            "inputs": "q",
            "outputs": "a",
            "faithfulness/v1/score": 4,
            "faithfulness/v1/justification": "x",
        }
    ]
    refused(lambda: read_scores(table), "'faithfulness'", "Metric('faithfulness', 1, 5)")
    frame = read_scores(table, metrics=[rn.Metric("faithfulness", 1, 5)])
    assert rows(frame, "question", "faithfulness", "faithfulness__reason") == [("q", 4.0, "x")]


# RAGChecker, TruLens, Phoenix


def test_rows_of_ragchecker_are_shares_and_its_percent_means_stay_out(tmp_path):
    row = {
        "query_id": "1",
        "query": "q",
        "gt_answer": "g",
        "response": "a",
        "retrieved_context": [{"doc_id": "d1", "text": "t"}],
        "metrics": {"precision": 1.0, "faithfulness": 0.5},
    }
    run = {"results": [row], "metrics": {"overall_metrics": {"precision": 100.0}}}
    frame = read_scores(write(tmp_path, "checked.json", run))
    assert rows(frame, "sample_id", "question", "answer", "faithfulness", "precision") == [
        ("1", "q", "a", 0.5, 1.0)
    ]
    assert frame["retrieved_contexts"].tolist() == [["t"]]
    assert ("left_out", None, 1) in told(frame)


@pytest.mark.parametrize("written", [list, repr, json.dumps])
def test_spans_of_phoenix_have_the_texts_of_their_documents(written):
    documents = [{"document.content": "a", "document.score": 0.5}, {"document.content": "b"}]
    span = {"attributes.input.value": "q", "attributes.output.value": "x", "context.span_id": "s"}
    frame = read_cases([{**span, "attributes.retrieval.documents": written(documents)}])
    assert rows(frame, "sample_id", "question", "answer", "retrieved_contexts") == [
        ("s", "q", "x", ["a", "b"])
    ]


PROMPT = {"testIdx": 0, "provider": "x", "vars": {"query": "q"}, "response": {"output": "a"}}
FAILED = {
    **PROMPT,
    "promptIdx": 0,
    "score": 0,
    "error": "Expected b",
    "namedScores": {"faithfulness": 0},
}
APP = {
    "input": "q",
    "output": "a",
    "app_name": "bot",
    "Groundedness": 1.0,
    "Groundedness_calls": "[]",
}
DOCUMENT = {"context.span_id": "s1", "context.trace_id": "t1", "input": "q", "document_score": 0.5}
ANNOTATION = {
    "context.span_id": "s",
    "annotation_name": "faithfulness",
    "label": "x",
    "explanation": "e",
}
RECORDS_OF_TOOLS = {
    "deepeval tells what should be retrieved from what was": (
        read_cases,
        [
            {
                "input": "q",
                "actual_output": "a",
                "expected_output": "g",
                "context": ["c"],
                "retrieval_context": ["r"],
            }
        ],
        {
            "question": ["q"],
            "answer": ["a"],
            "ground_truth_answer": ["g"],
            "ground_truth_contexts": [["c"]],
            "retrieved_contexts": [["r"]],
        },
    ),
    "two prompts of promptfoo are two systems": (
        read_scores,
        [{**PROMPT, "promptIdx": i, "namedScores": {"faithfulness": i}} for i in (0, 1)],
        {"sample_id": ["0", "0"], "system": ["x prompt 0", "x prompt 1"], "faithfulness": [0, 1]},
    ),
    "a failed assertion of promptfoo is a score of zero": (
        read_scores,
        [FAILED],
        {"faithfulness": [0]},
    ),
    "a failed assertion of promptfoo that says so is one too": (
        read_scores,
        [{**FAILED, "failureReason": 1}],
        {"faithfulness": [0]},
    ),
    "the answer of rgb is the gold answer": (
        read_cases,
        [
            {
                "id": 0,
                "query": "q",
                "answer": ["2022", "22"],
                "fakeanswer": "f",
                "positive": ["p"],
                "negative": ["n"],
            }
        ],
        {"question": ["q"], "ground_truth_answer": ["2022\n22"], "answer": None},
    ),
    "-1 of trulens is a failed score, and its quotes are taken off": (
        read_scores,
        [
            {**APP, "input": '"q"', "output": '"a', "record_id": str(value), "Groundedness": value}
            for value in (1, -1)
        ],
        {
            "faithfulness": [1, None],
            "faithfulness__status": [None, "failed"],
            "question": ["q"] * 2,
            "answer": ['"a'] * 2,
        },
    ),
    "versions of an app are systems": (
        read_scores,
        [{**APP, "record_id": str(i), "app_version": f"v{i}"} for i in (1, 2)],
        {"system": ["bot v1", "bot v2"]},
    ),
    "one version of an app is the app": (
        read_scores,
        [{**APP, "record_id": "1", "app_version": "v1"}],
        {"system": ["bot"]},
    ),
    "a document of phoenix is a passage and not the name of one": (
        read_cases,
        [{**DOCUMENT, "document_position": i, "document": text} for i, text in enumerate("ab")],
        {
            "sample_id": ["s1"],
            "question": ["q"],
            "retrieved_contexts": [["a", "b"]],
            "doc_name": None,
        },
    ),
    "annotations of phoenix are scores where no person gave them": (
        read_scores,
        [
            {**ANNOTATION, "annotator_kind": "LLM", "score": 0.5},
            {**ANNOTATION, "annotator_kind": "HUMAN", "score": 1},
        ],
        {"sample_id": ["s"], "faithfulness": [0.5], "faithfulness__reason": ["e"]},
    ),
    "an object with a text is a passage, one with more than a score stays": (
        read_scores,
        [
            {
                "question": "q",
                "contexts": {"text": "t", "score": 0.9},
                "metadata": {"page": 1, "score": 2},
                "faithfulness": 1,
            }
        ],
        {
            "metadata": [{"page": 1, "score": 2}],
            "retrieved_contexts": [["t"]],
            "retrieved_fields": [[{"score": 0.9}]],
        },
    ),
    "an object in place of a text is kept as JSON": (
        read_scores,
        [{"input": {"raw": "q"}, "doc": {"a": 1}, "output": "a", "faithfulness": 1}],
        {"question": ['{"raw": "q"}'], "doc_name": ['{"a": 1}']},
    ),
    "citations may be objects with an id": (
        read_traces,
        [{"q": "x", "answer": "a", "citations": [{"id": "d1", "title": "t"}, "d2"]}],
        {"citations": [["d1", "d2"]]},
    ),
}


@pytest.mark.parametrize("what", RECORDS_OF_TOOLS)
def test_records_of_tools_become_columns_of_ours(what):
    """A column that must not be there is None."""
    read, records, columns = RECORDS_OF_TOOLS[what]
    frame = read(records)
    found = {
        name: [cell for (cell,) in rows(frame, name)] if name in frame else None for name in columns
    }
    assert found == columns
    if what == "an object in place of a text is kept as JSON":
        assert {("unparsed", "question", 1), ("unparsed", "doc_name", 1)} <= set(told(frame))


def test_damaged_records_of_tools_are_refused_in_words_or_read():
    source = random.Random(5)
    groups = [
        ["testIdx", "vars", "response", "namedScores", "provider", "promptIdx", "error"],
        ["inputs", "outputs", "expectations", "faithfulness/value", "faithfulness/error_message"],
        ["metricsData", "name", "context", "retrieval_context", "input"],
        ["document", "document_position", "document_score", "context.span_id", "input"],
        ["name", "value", "source", "dataType", "traceId"],
        ["metric", "score", "reason", "sample_id"],
        [
            "record_id",
            "app_id",
            "input",
            "app_name",
            "app_version",
            "Groundedness",
            "Groundedness_calls",
        ],
        ["metrics", "scores", "results", "faithfulness", "question"],
    ]
    values = [
        None,
        "x",
        "0.5",
        "85%",
        1,
        -1,
        True,
        math.nan,
        [],
        {},
        ["a"],
        [{"a": 1}],
        {"score": 1},
        [["x"]],
        "EVAL",
        "NUMERIC",
        "q\ud800",
        2**70,
    ]
    for _ in range(400):
        keys = source.choice(groups)
        records = [
            {key: source.choice(values) for key in keys} for _ in range(source.randint(1, 3))
        ]
        for read in (read_scores, read_cases):
            with contextlib.suppress(RagnbError):
                read(records)


# Long layouts and nested scores


@pytest.mark.parametrize(
    ("metric", "score"), [("metric", "score"), ("metric_name", "value"), ("指标", "得分")]
)
def test_one_row_a_metric_becomes_one_row_a_sample(tmp_path, metric, score):
    header = ["sample_id", "question", "model", metric, score, "reason", "seconds"]
    table = [
        ["s1", "q", "x", "faithfulness", "0.5", "why", "1"],
        ["s1", "q", "x", "context_recall", "1", "", "2"],
        ["s1", "q", "y", "faithfulness", "0.25", "", "1"],
    ]
    frame = read_scores(write(tmp_path, "a.csv", csv_text(header, *table)))
    assert rows(frame, "sample_id", "system", "faithfulness", "context_recall") == [
        ("s1", "x", 0.5, 1.0),
        ("s1", "y", 0.25, None),
    ]
    assert frame["faithfulness__reason"][0] == "why"
    assert ("left_out", "seconds", 3) in told(frame)
    assert rn.weighted_means(frame, metrics="faithfulness").loc[0, "n"] == 2


def test_two_scores_of_one_metric_and_sample_are_refused_with_their_line(tmp_path):
    text = csv_text(
        ["sample_id", "metric", "score"], ["s1", "faithfulness", "1"], ["s1", "faithfulness", "0"]
    )
    refused(
        lambda: read_scores(write(tmp_path, "a.csv", text)), "line 3", "'faithfulness'", "'repeat'"
    )


def test_scores_of_langfuse_are_those_of_evaluators_and_its_source_is_no_document():
    score = {"traceId": "t1", "dataType": "NUMERIC", "source": "EVAL", "comment": "c"}
    frame = read_scores(
        [
            {**score, "name": "faithfulness", "value": 0.8},
            {**score, "name": "context_recall", "value": 1},
            {**score, "name": "faithfulness", "value": 0.1, "source": "ANNOTATION"},
            {**score, "name": "kind", "value": None, "dataType": "CATEGORICAL"},
        ]
    )
    assert rows(frame, "sample_id", "faithfulness", "context_recall") == [("t1", 0.8, 1.0)]
    assert "doc_name" not in frame
    assert told(frame, "left_out") == [
        ("left_out", "dataType", 1),
        ("left_out", "annotator_kind", 1),
    ]
    refused(
        lambda: read_scores([{**score, "name": "f", "value": 1, "source": "ANNOTATION"}]),
        "read_ratings",
    )


@pytest.mark.parametrize(
    "cell",
    [
        {"metrics": {"faithfulness": 0.5}},
        {"scores": {"faithfulness": 0.5}},
        {"results": {"faithfulness": {"score": 0.5, "status": "ok"}}},
        {"faithfulness": {"score": 0.5, "reason": "r"}},
        {"scores": {"faithfulness": {"score": 0.5}}},
        {"faithfulness_score": {"name": "f", "score": 0.5, "explanation": "r"}},
    ],
)
def test_nested_scores_become_columns(tmp_path, cell):
    frame = read_scores(
        write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, [{"question": "q", **cell}] * 2)))
    )
    assert frame["faithfulness"].tolist() == [0.5, 0.5]
    assert any(what == "mapped" for what, _, _ in told(frame))


def test_results_in_parquet_are_read_where_a_row_lacks_a_metric(tmp_path):
    results = [
        {"faithfulness": {"score": 0.5}, "context_recall": None},
        {"faithfulness": None, "context_recall": {"score": 1.0}},
    ]
    pl.DataFrame({"question": ["q", "r"], "results": results}).write_parquet(tmp_path / "a.parquet")
    frame = read_scores(tmp_path / "a.parquet")
    assert rows(frame, "faithfulness", "context_recall") == [(0.5, None), (None, 1.0)]


# JSON as people nest it

RECORDS = [{"question": "q", "faithfulness": 0.5}, {"question": "r", "faithfulness": 1}]


@pytest.mark.parametrize(
    "value",
    [
        {"results": RECORDS},
        {"version": 1, "samples": RECORDS, "meta": {"a": 1}},
        {"questions": RECORDS, "n": 2},
        {"data": RECORDS},
        {"run": {"rows": RECORDS}},
        {"rows": RECORDS, "errors": [{"code": 3}]},
    ],
)
def test_records_under_a_key_of_their_own_are_found(tmp_path, value):
    frame = read_scores(write(tmp_path, "a.json", value))
    assert rows(frame, "question", "faithfulness") == [("q", 0.5), ("r", 1.0)]
    assert bool(told(frame, "left_out")) == (len(value) > 1)


def test_records_by_their_ids_and_a_single_record_are_read(tmp_path):
    frame = read_scores(write(tmp_path, "a.json", {"x1": RECORDS[0], "x2": RECORDS[1]}))
    assert rows(frame, "sample_id", "question", "faithfulness") == [
        ("x1", "q", 0.5),
        ("x2", "r", 1.0),
    ]
    assert len(read_scores(write(tmp_path, "b.json", RECORDS[0]))) == 1


@pytest.mark.parametrize(
    "value",
    [
        {"train": RECORDS, "test": RECORDS},
        {"faithfulness": 0.5, "context_recall": 1},
        {"bm25": {"faithfulness": 0.5}, "dense": {"faithfulness": 0.6}},
        {"config": {"query": "x"}, "stats": {"n": 1}},
    ],
)
def test_json_that_may_mean_two_things_or_holds_totals_is_refused(tmp_path, value):
    refused(lambda: read_scores(write(tmp_path, "a.json", value)), "a.json", next(iter(value)))


# Chinese headers

CHINESE = {
    "question": "问题 用户问题 問題",
    "answer": "答案 回答 模型答案 系統回答",
    "ground_truth_answer": "参考答案 标准答案 正确答案 參考答案",
    "retrieved_contexts": "上下文 检索结果 檢索結果",
    "ground_truth_contexts": "参考上下文",
    "doc_name": "文档 文件名 来源 檔名",
    "sample_id": "编号 样本编号 題號",
    "system": "模型 系统",
    "faithfulness": "忠实度 忠實度",
    "answer_relevancy": "答案相关性",
    "context_recall": "上下文召回率",
    "context_precision": "上下文精确率",
    "context_relevance": "上下文相关性",
    "answer_correctness": "答案正确性",
    "noise_sensitivity": "噪声敏感度",
    "factual_correctness": "事实正确性",
    "semantic_similarity": "语义相似度",
}


@pytest.mark.parametrize(
    ("name", "word"), [(n, w) for n, words in CHINESE.items() for w in words.split() if w != "題號"]
)
def test_chinese_headers_are_read(tmp_path, name, word):
    record = {
        "question": "退款要几天？",
        "context_recall": "0.5",
        name: "0.25" if name in METRICS else "甲",
    }
    header = [word if key == name else key for key in record]
    frame = read_scores(write(tmp_path, "a.csv", csv_text(header, list(record.values()))))
    assert name in frame.columns
    assert word not in frame.columns
    assert ("mapped", word, 1) in told(frame)


def test_a_chinese_table_from_excel_is_a_sheet(tmp_path):
    text = csv_text(
        ["问题", "答案", "参考答案", "上下文", "文档", "模型", "忠实度"],
        ["退款要几天？", "三十天。", "30 天", "['报销制度第三条']", "制度.pdf", "甲", "１"],
        ["谁付款？", "买方。", "买方", "[]", "合同.pdf", "甲", "０．５"],
        ["平均", "", "", "", "", "", "0.75"],
    )
    frame = read_scores(write(tmp_path, "表.csv", text, "gb18030"), encoding="gb18030")
    assert rows(frame, "question", "doc_name", "system", "faithfulness") == [
        ("退款要几天？", "制度.pdf", "甲", 1.0),
        ("谁付款？", "合同.pdf", "甲", 0.5),
    ]
    assert rn.weighted_means(frame).loc[0, "value"] == 0.75


# Separators, percent signs, decimal commas, marks for nothing


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("said", [False, True])
def test_the_first_line_says_what_separates_cells(tmp_path, name, separator, said):
    header = [
        "question",
        "answer",
        "one, or; two | names" if separator == "\t" else "note",
        "faithfulness",
    ]
    text = csv_text(header, ["q, r; s", "a|b", "n", "0.5"], separator=separator)
    frame = read_scores(write(tmp_path, name, (f"sep={separator}\n" if said else "") + text))
    assert frame.iloc[0, 1:].tolist() == ["q, r; s", "a|b", "n", 0.5]


def test_known_names_tell_the_separator_before_its_number_does(tmp_path):
    frame = read_scores(write(tmp_path, "a.csv", "question,a;b;c;d,faithfulness\nq,x,1\n"))
    assert frame.columns.tolist() == ["sample_id", "question", "a;b;c;d", "faithfulness"]


def test_parts_of_ten_propose_the_scale_that_they_say(tmp_path):
    path = write(tmp_path, "a.csv", "question,faithfulness\nq,8/10\nr,4/10\n")
    refused(lambda: read_scores(path), "rn.Metric('faithfulness', 0, 10)")
    ten = rn.Metric("faithfulness", 0, 10)
    assert read_scores(path, metrics=[ten])["faithfulness"].tolist() == [8, 4]


def test_a_line_that_names_the_separator_is_counted_as_a_line(tmp_path):
    path = write(tmp_path, "a.csv", "sep=;\r\nquestion;faithfulness\r\nq;fine\r\n")
    refused(lambda: read_scores(path), "a.csv, line 3")


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["0,85", "1,0", ""], [0.85, 1, None]),
        (["0,850", "1"], [0.85, 1]),
        (["85%", " 7.5 %", "-"], [0.85, 0.075, None]),
        (["85％", "０％"], [0.85, 0]),
        (["8,5%", "100%"], [0.085, 1]),
        (["yes", "No", "是", "否"], [1, 0, 1, 0]),
        (["-", "—", "/", "#N/A", "无", "(null)", "0.5"], [None] * 6 + [0.5]),
    ],
)
def test_numbers_as_spreadsheets_write_them(tmp_path, cells, values):
    table = [[f"q{i}", cell] for i, cell in enumerate(cells)]
    text = csv_text(["question", "faithfulness"], *table, separator=";")
    frame = read_scores(write(tmp_path, "a.csv", text))
    found = frame["faithfulness"].replace({np.nan: None}).tolist()
    assert [v is None for v in found] == [v is None for v in values]
    assert [v for v in found if v is not None] == pytest.approx(
        [v for v in values if v is not None], rel=1e-15
    )
    assert [row for row in told(frame, "mapped") if row[1] == "faithfulness"]


@pytest.mark.parametrize(
    "cells", [["1,234"], ["85%", "0.5"], ["0.5", "fine"], ["0.85 (good)"], ["T"]]
)
def test_numbers_that_may_mean_two_things_are_refused(tmp_path, cells):
    text = csv_text(["question", "faithfulness"], *[["q", cell] for cell in cells], separator=";")
    refused(
        lambda: read_scores(write(tmp_path, "a.csv", text)), "'faithfulness'", "expected a number"
    )


def test_percent_signs_are_points_on_a_scale_to_a_hundred():
    rows_ = [{"question": "q", "faithfulness": "85%"}]
    assert read_scores(rows_, metrics=[rn.Metric("faithfulness", 0, 100)])[
        "faithfulness"
    ].tolist() == [85]


def test_empty_cells_behind_the_last_column_are_no_column(tmp_path):
    frame = read_scores(write(tmp_path, "a.csv", "question,faithfulness\nq,1,\nr,0,,\n"))
    assert frame.columns.tolist() == ["sample_id", "question", "faithfulness"]
    refused(
        lambda: read_scores(write(tmp_path, "b.csv", "question,faithfulness\nq,1,x\n")),
        "line 2",
        "3 cells",
    )


@pytest.mark.parametrize("word", ["Average", "mean", "TOTAL", "平均", "合计"])
def test_a_mean_below_the_samples_is_no_sample(tmp_path, word):
    table = [["0", "q", "a", "1"], ["1", "r", "b", "0"], ["", word, "", "0.5"]]
    frame = read_scores(
        write(tmp_path, "a.csv", csv_text(["", "question", "answer", "faithfulness"], *table))
    )
    assert frame["question"].tolist() == ["q", "r"]
    assert any("line 4" in str(row["detail"]) for row in frame.attrs["lossy"])
    asked = [["0", "q", "a", "1"], ["1", word, "b", "0"]]
    frame = read_scores(
        write(tmp_path, "b.csv", csv_text(["", "question", "answer", "faithfulness"], *asked))
    )
    assert frame["question"].tolist() == ["q", word]


def test_a_row_that_says_nothing_beside_its_numbers_is_listed(tmp_path):
    text = "question,answer,faithfulness\nq,a,1\n,,0.5\n,b,0\n"
    assert told(read_scores(write(tmp_path, "a.csv", text)), "kept") == [("kept", None, 1)]
    assert not told(read_scores([{"faithfulness": 1}, {"faithfulness": 0}]), "kept")


# Names


def test_a_name_with_score_behind_is_the_metric_where_nothing_else_is():
    named = {"faithfulness_score": 0.5, "Context Recall Score": 1, "accuracy_score": 0.5}
    frame = read_scores([{"question": "q", **named}])
    assert frame.columns.tolist()[2:] == ["faithfulness", "context_recall", "accuracy_score"]
    frame = read_scores([{"question": "q", "faithfulness_score": 0.5, "faithfulness": 1}])
    assert rows(frame, "faithfulness", "faithfulness_score") == [(1.0, 0.5)]


def test_a_misspelt_metric_is_listed_with_the_near_one():
    frame = read_scores(
        [{"question": "q", "faithfullness": 0.5, "harmfulness": 1, "context_recall": 1}]
    )
    ((what, column, _),) = told(frame, "kept")
    assert (what, column) == ("kept", "faithfullness")
    assert "columns={'faithfullness': 'faithfulness'}" in frame.attrs["lossy"][-1]["detail"]


def test_no_alias_means_two_things():
    owners = [(alias, name) for name, aliases in CASE_ALIASES.items() for alias in aliases]
    owners += [(alias, metric.name) for metric in METRICS.values() for alias in metric.aliases]
    assert len({alias for alias, _ in owners}) == len(owners)
    assert {alias: rename_map([alias]).get(alias, alias) for alias, _ in owners} == dict(owners)


# Encodings


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "big5", "latin-1"])
def test_utf8_is_never_read_as_another_encoding(tmp_path, encoding):
    csv_file, json_lines = (
        "question,faithfulness\n退款流程,1\n",
        '{"question": "退款", "faithfulness": 1}',
    )
    for name, text in [("a.csv", csv_file), ("a.jsonl", json_lines)]:
        path = write(tmp_path, name, text)
        refused(
            lambda path=path: read_scores(path, encoding=encoding),
            "is UTF-8",
            "leave out encoding=",
        )


def test_two_bytes_that_are_good_gbk_are_not_taken_for_utf8(tmp_path):
    path = write(tmp_path, "a.csv", "question,faithfulness\n模之,1\n", "gbk")
    path.read_bytes().decode("utf-8")
    assert read_scores(path, encoding="gbk")["question"].tolist() == ["模之"]


def book(folder, name="a.xlsx", **sheets):
    with pd.ExcelWriter(folder / name, engine="openpyxl") as writer:
        for sheet, rows in sheets.items():
            pd.DataFrame(rows, dtype=object).to_excel(
                writer, sheet_name=sheet, header=False, index=False
            )
    return folder / name


SHEET = [
    ["问题", "答案", "文档", "contexts", "faithfulness", "ok", "on"],
    ["退款?", "30 天", "政策.pdf", "['a', \"b's\"]", 0.5, True, pd.Timestamp(2026, 1, 2, 3)],
    [None] * 7,
    ["b\nc", "=1+1", 12, "[]", 1, False, pd.Timestamp(2026, 1, 2, 4)],
    ["d", None, None, None, None, None, None],
    ["平均", None, None, None, 0.75, None, None],
]


@pytest.mark.parametrize("name", ["a.xlsx", "a.xlsm"])
def test_a_workbook_is_read_as_its_sheet_saved_as_csv(tmp_path, name):
    sheet = [
        [f"'{c}" if isinstance(c, str) and c.startswith("=") else c for c in row] for row in SHEET
    ]
    path = book(tmp_path, name, 说明=[["about", "x"]], 明细=sheet, leer=[])
    text = csv_text(*[["" if c is None else c for c in row] for row in sheet])
    wanted, found = read_scores(write(tmp_path, "a.csv", text)), read_scores(path)
    pd.testing.assert_frame_equal(found, wanted)
    assert found.attrs["source"]["format"] == "excel"
    assert found["faithfulness"].tolist()[:2] == [0.5, 1]
    assert found["doc_name"].tolist()[:2] == ["政策.pdf", "12"]
    assert ("left_out", None, 1) in told(found)
    assert told(found, "mapped", "made", "unparsed") == told(wanted, "mapped", "made", "unparsed")


def test_every_reader_takes_a_workbook(tmp_path):
    gold = [
        ["qid", "q", "answerable", "gold_ids"],
        ["a", "x?", True, "['d#1', 'd#2']"],
        ["b", "y?", False, None],
    ]
    read = read_gold(book(tmp_path, gold=gold))
    assert rows(read, "sample_id", "answerable", "gold_ids") == [
        ("a", True, ["d#1", "d#2"]),
        ("b", False, []),
    ]
    head = ["qid", "q", "answer", "citations"]
    traces = [head, ["a", "x?", "Yes", "['d#1']"], ["b", "y?", "Not in context", None]]
    labelled = rn.label_traces(read_traces(book(tmp_path, traces=traces)), gold=read)
    assert list(labelled["label"]) == ["OK", "REFUSAL_OK"]


def test_two_sheets_that_could_each_be_the_table_are_refused_with_the_step(tmp_path):
    path = book(tmp_path, a=SHEET, b=SHEET)
    refused(lambda: read_scores(path), "a.xlsx", "a, b", "sheet_name='a'", "as CSV")
    frame = pd.read_excel(path, sheet_name="a", engine="calamine")
    assert read_scores(frame)["faithfulness"].tolist()[0] == 0.5


def test_a_cell_that_excel_has_cut_is_told(tmp_path):
    found = read_scores(book(tmp_path, a=[["question", "faithfulness"], ["q" * 32_767, 1]]))
    assert ("kept", None, 1) in told(found)


def test_workbooks_that_cannot_be_read_are_refused(tmp_path, monkeypatch):
    refused(
        lambda: read_scores(write(tmp_path, "a.xlsx", b"PK\x03\x04...")),
        "a.xlsx",
        "not a readable",
        "as CSV",
    )
    refused(
        lambda: read_scores(write(tmp_path, "b.xlsx", "question,faithfulness\n")),
        "not a readable workbook",
    )
    refused(lambda: read_scores(book(tmp_path, leer=[])), "empty")
    monkeypatch.setattr(documents, "_UNSUSPECTED", 10)
    monkeypatch.setattr(documents, "LARGEST_RATIO", 1)
    refused(lambda: read_scores(book(tmp_path, a=SHEET * 99)), "unpacks to", "as CSV")


def test_a_damaged_workbook_and_a_lock_file_are_refused_in_words(tmp_path):
    whole = book(
        tmp_path, a=[["question", "faithfulness"], *[[f"q{i}", i / 40] for i in range(40)]]
    )
    data, expected = whole.read_bytes(), read_scores(whole)
    source = random.Random(3)
    damaged = [data[: source.randrange(1, len(data))] for _ in range(40)]
    for _ in range(160):
        part = bytearray(data)
        start = source.randrange(len(part))
        part[start : start + source.choice([1, 30])] = source.randbytes(source.choice([0, 1, 30]))
        damaged.append(bytes(part))
    for part in damaged:
        path = write(tmp_path, "b.xlsx", part)
        with contextlib.suppress(RagnbError):
            pd.testing.assert_frame_equal(read_scores(path), expected)
    lock = write(tmp_path, "~$a.xlsx", b"\x05user" + bytes(160))
    refused(lambda: read_scores(lock), "lock file", "read 'a.xlsx'")
    assert len(read_scores(tmp_path / "*a.xlsx")) == 40
    assert main(["check", str(tmp_path / "~$a.xlsx")]) == 2


# Contexts and conversations


def test_a_printed_array_is_the_list_it_holds():
    cell = "array(['a', 'b'], dtype=object)"
    frame = read_scores([{"question": "q", "contexts": cell, "faithfulness": 1}])
    assert frame["retrieved_contexts"].tolist() == [["a", "b"]]


@pytest.mark.parametrize("cell", ["('a', 'b')", "{'a', 'b'}"])
def test_printed_containers_are_kept_and_marked(cell):
    frame = read_scores([{"question": "q", "contexts": cell, "faithfulness": 1}])
    assert frame["retrieved_contexts"].tolist() == [[cell]]
    assert told(frame, "unparsed") == [("unparsed", "retrieved_contexts", 1)]


@pytest.mark.parametrize(
    ("passage", "text", "doc"),
    [
        (
            {key: "The text.", "id": "a-much-longer-identifier", "source": "d.pdf"},
            "The text.",
            "d.pdf",
        )
        for key in (
            "text",
            "content",
            "page_content",
            "pageContent",
            "document",
            "chunk",
            "chunk_text",
            "snippet",
            "passage",
            "body",
            "content_preview",
            "paragraph",
        )
    ]
    + [
        ({"pageContent": "t", "metadata": {"file_name": "d.pdf", "page": 2}}, "t", "d.pdf"),
        ({"document": "d.pdf", "contents": "A longer text."}, "A longer text.", "d.pdf"),
        ({"chunk": "12", "body": "t", "doc": "d"}, "t", "d"),
        ({"node": {"text": "t"}, "score": 0.5}, "t", None),
        ({"text": ""}, "", None),
        ("t", "t", None),
    ],
)
def test_the_text_of_a_passage_object_is_found_under_any_key(tmp_path, passage, text, doc):
    records = [{"question": "q", "contexts": [passage, "other"], "answer": "a"}]
    table = csv_text(["question", "contexts", "answer"], ["q", repr([passage, "other"]), "a"])
    for source in (records, write(tmp_path, "a.csv", table)):
        frame = read_cases(source)
        assert frame["retrieved_contexts"].tolist() == [[text, "other"]]
        if doc is not None:
            assert frame["retrieved_doc_names"].tolist() == [[doc, None]]
        if isinstance(passage, dict):
            (kept, none), *_ = frame.get("retrieved_fields", [[{}, None]])
            assert none is None
            assert kept == {key: cell for key, cell in passage.items() if cell != text}


@pytest.mark.parametrize(
    "passage", [{"id": 7, "score": 0.5}, {"source": "a.pdf", "url": "https://x"}, {}, [["a"]]]
)
def test_an_object_without_a_text_is_unparsed_and_never_a_repr(passage):
    frame = read_cases([{"question": "q", "contexts": [passage, "t"], "answer": "a"}])
    assert frame["retrieved_contexts"].tolist() == [[json.dumps(passage), "t"]]
    assert ("unparsed", "retrieved_contexts", 1) in told(frame)


def test_questions_under_two_names_are_one_column_where_no_record_fills_both(tmp_path):
    records = [
        {"q": "a", "answer": "x", "faithfulness": 1},
        {"question": "b", "answer": "y", "groundedness": 0.5},
        {"q": "", "question": "c", "answer": "z", "faithfulness": None},
    ]
    path = write(tmp_path, "t.jsonl", "\n".join(map(json.dumps, records)))
    for read in (read_scores, read_cases, read_traces):
        for source in (records, path):
            assert read(source)["question"].tolist() == ["a", "b", "c"]
    assert rows(read_scores(path), "faithfulness") == [(1,), (0.5,), (None,)]
    both = [*records, {"q": "d", "question": "e", "answer": "u"}]
    refused(
        lambda: read_cases(both),
        "'q' and 'question'",
        "records fill both",
        "columns={'question': 'question'}",
    )


def test_two_questions_of_a_record_clash_where_they_differ_and_the_advised_option_drops_none(
    tmp_path,
):
    both = [
        {"q": "a", "question": "A"},
        {"question": "b", "q": " "},
        {"q": "c"},
        {"q": "d", "question": "d "},
    ]

    def path(records):
        records = [{**record, "answer": "x", "faithfulness": 1} for record in records]
        return write(tmp_path, "t.jsonl", "\n" + "\n".join(map(json.dumps, records)))

    for read in (read_scores, read_cases, read_traces):
        assert [text.strip() for text in read(path(both[1:]))["question"]] == ["b", "c", "d"]
        refused(
            lambda read=read: read(path(both)),
            "t.jsonl, line 2: columns",
            "columns={'question': 'question'}",
        )
        assert list(read(path(both), columns={"q": "question"})["question"]) == ["a", "b", "c", "d"]
        assert list(read(path(both), columns={"question": "question"})["question"]) == [
            "A",
            "b",
            "c",
            "d ",
        ]
    found = told(read_scores(path(both), columns={"q": "question"}), "mapped", "left_out")
    assert {("mapped", "question", 1), ("left_out", "question", 1)} <= {*found}
    gold = [{"response": None, "answer": "the reference"}, {"response": "r", "answer": "another"}]
    found = read_cases([{"q": "a", **row} for row in gold], columns={"response": "answer"})
    assert rows(found, "answer") == [(None,), ("r",)], "what stands beside it may be the reference"


def test_one_row_a_passage_is_folded_by_query_and_run(tmp_path):
    header = ["query_id", "query", "query_run", "passage_id", "passage", "generated_answer"]
    table = [
        ["a", "q", "1", "[1]", "p1", "x"],
        ["a", "q", "1", "[2]", "p2", ""],
        ["a", "q", "2", "[1]", "p1", "y"],
        ["b", "r", "1", "[1]", "p3", "z"],
    ]
    path = write(tmp_path, "a.csv", csv_text(header, *table))
    frame = read_cases(path)
    assert rows(frame, "sample_id", "repeat", "answer") == [
        ("a", "1", "x"),
        ("a", "2", "y"),
        ("b", "1", "z"),
    ]
    assert frame["retrieved_contexts"].tolist() == [["p1", "p2"], ["p1"], ["p3"]]
    refused(lambda: read_scores(path), "no column of scores", "read_cases")
    scored = csv_text(
        [*header, "faithfulness"], *[[*row, "0.5" if row[5] else ""] for row in table]
    )
    assert read_scores(write(tmp_path, "b.csv", scored))["faithfulness"].tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    "turns",
    [
        [
            {"speaker": "user", "text": "Hi"},
            {"speaker": "agent", "text": "?"},
            {"speaker": "user", "text": "Who?"},
        ],
        [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "Who?"}]},
        ],
        [{"from": "human", "value": "Who?"}, {"from": "gpt", "value": "Ann."}],
        {"role": "user", "content": "Who?"},
    ],
)
def test_the_question_of_a_conversation_is_the_last_turn_of_its_user(turns):
    for read in (read_scores, read_cases, read_traces):
        assert read([{"input": turns, "output": "Ann.", "faithfulness": 1}])[
            "question"
        ].tolist() == ["Who?"]
    others = [{"role": "assistant", "content": "x"}]
    assert read_cases([{"input": others, "output": "a"}])["question"].tolist() == [
        json.dumps(others)
    ]


def test_a_quote_that_closes_early_in_a_tsv_is_text_as_pandas_reads_it(tmp_path):
    text = 'question\tanswer\tfaithfulness\n"Life" by Marvin\ta "b" c\t.5\n"x ""y"""\t"two\nlines"\t1\n'
    path = write(tmp_path, "a.tsv", text)
    frame = read_scores(path)
    theirs = pd.read_csv(path, sep="\t")
    assert (
        frame[["question", "answer"]].to_numpy().tolist()
        == theirs[["question", "answer"]].to_numpy().tolist()
    )
    assert ("mapped", None, 1) in told(frame)
    for broken in ('"open\ta\t1\n"x" y\tb\t1\n', '"open\ta\t1\n'):
        bad = write(tmp_path, "b.tsv", f"question\tanswer\tfaithfulness\n{broken}")
        refused(lambda bad=bad: read_scores(bad), "b.tsv, line 2", "quote")


def test_a_conversation_in_a_cell_gives_its_last_question(tmp_path):
    turns = [
        {"content": text, "type": kind}
        for text, kind in (("Hi", "human"), ("x", "ai"), ("Who?", "human"))
    ]
    cells = [repr(turns), json.dumps(turns), "[{'no': 'message'}]", "[HumanMessage(content='Hi')]"]
    text = csv_text(
        ["user_input", "response", "faithfulness"], *[[cell, "a", "1"] for cell in cells]
    )
    frame = read_scores(write(tmp_path, "a.csv", text))
    assert frame["question"].tolist() == ["Who?", "Who?", *cells[2:]]
    assert told(frame, "unparsed") == [("unparsed", "question", 1)]


# Traces and gold


@pytest.mark.parametrize("key", ["id", "chunk_id", "passage_id", "doc_id", "document_id"])
def test_chunks_say_their_id_under_any_of_its_names(tmp_path, key):
    trace = {"q": "x", "answer": "a", "chunks": [{key: "d1", "text": "t"}, {key: 7}]}
    gold = read_gold([{"q": "x", "answerable": True, "gold_ids": ["7"]}])
    frame = read_traces(write(tmp_path, "t.jsonl", json.dumps(trace)))
    labelled = rn.label_traces(frame, gold=gold)
    assert float(labelled["reciprocal_rank"][0]) == 0.5


def test_chunks_without_ids_measure_no_retrieval(tmp_path):
    traces = [
        {"q": "x", "answer": "a", "chunks": [{"text": "t"}]},
        {"q": "y", "answer": "a", "chunks": []},
    ]
    gold = read_gold([{"q": q, "answerable": True, "gold_ids": ["7"]} for q in "xy"])
    frame = read_traces(write(tmp_path, "t.jsonl", "\n".join(map(json.dumps, traces))))
    assert rows(rn.label_traces(frame, gold=gold), "retrieval_hit") == [(None,), (0,)]


def test_gold_says_what_it_has_no_ids_for(tmp_path):
    frame = read_gold(write(tmp_path, "g.csv", "问题,可回答,gold_id\nx,1,a\ny,1,a; b\n"))
    assert rows(frame, "question", "answerable", "gold_ids") == [
        ("x", True, ["a"]),
        ("y", True, ["a; b"]),
    ]
    assert ("kept", "gold_ids", 1) in told(frame)
    assert ("made", "gold_ids", 1) in told(read_gold([{"q": "x", "answerable": True}]))


# ragas itself, as it is installed


OF_RAGAS = {
    "AnswerAccuracy": "answer_accuracy",
    "AnswerCorrectness": "answer_correctness",
    "AnswerRelevancy": "answer_relevancy",
    "ContextPrecisionWithReference": "context_precision",
    "ContextRecall": "context_recall",
    "ContextRelevance": "context_relevance",
    "FactualCorrectness": "factual_correctness",
    "Faithfulness": "faithfulness",
    "NoiseSensitivity": "noise_sensitivity",
    "ResponseGroundedness": "faithfulness",
    "SemanticSimilarity": "semantic_similarity",
}


@pytest.mark.parametrize("made_of", OF_RAGAS)
def test_the_names_of_the_installed_ragas_are_known(made_of):
    name = inspect.signature(getattr(adapter.imported(), made_of)).parameters["name"].default
    frame = read_scores([{"user_input": "q", "response": "a", name: 0.5}])
    assert frame[OF_RAGAS[made_of]].tolist() == [0.5]


# It leaves a file of its own open, also with telemetry off.
@pytest.mark.filterwarnings("ignore:.*uuid.json:pytest.PytestUnraisableExceptionWarning")
def test_a_result_of_ragas_evaluate_is_read_as_it_is():
    adapter.imported()  # with telemetry off
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from ragas import EvaluationDataset, evaluate
        from ragas.metrics import ExactMatch, NonLLMStringSimilarity

        pairs = {"kitten": "sitting", "三十天": "二十天", "yes": "yes"}
        samples = [{"user_input": f"{a}?", "response": a, "reference": b} for a, b in pairs.items()]
        made = [NonLLMStringSimilarity(), ExactMatch(name="answer_accuracy")]
        result = evaluate(EvaluationDataset.from_list(samples), metrics=made, show_progress=False)
    frame = read_scores(result)
    assert frame["question"].tolist() == ["kitten?", "三十天?", "yes?"]
    assert frame["ground_truth_answer"].tolist() == list(pairs.values())
    edits = [1 - 3 / 7, 1 - 1 / 3, 1.0]
    assert frame["non_llm_string_similarity"].tolist() == pytest.approx(edits)
    assert frame["answer_accuracy"].tolist() == [0, 0, 1]
    own = rn.Metric("non_llm_string_similarity")
    means = rn.assess(result, metrics=[own, "answer_accuracy"]).means.set_index("metric")["value"]
    assert means[own.name] == pytest.approx(sum(edits) / 3)
    assert rn.assess(result).means.set_index("metric")["value"]["answer_accuracy"] == pytest.approx(
        1 / 3
    )
