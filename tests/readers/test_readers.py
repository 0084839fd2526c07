"""Readers: what a file holds comes out under one name, nothing is guessed, and what is lost is listed."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import math
import pickle
import random
import string
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from engines import nullable
from hypothesis import given
from hypothesis import strategies as st
from reading import refused, write
from reading import rows as rows_of

from ragnb.errors import RagnbError
from ragnb.readers import (
    FORMATS,
    applicable_metrics,
    jsons,
    read_cases,
    read_gold,
    read_scores,
    read_traces,
    to_csv_text,
)
from ragnb.readers.documents import Document
from ragnb.readers.lists import parse_list
from ragnb.readers.passages import as_texts
from ragnb.readers.raw import Lossy
from ragnb.schema import EvalCase, Metric

RECORDS = [
    {
        "user_input": "Who pays?",
        "retrieved_contexts": ["The buyer pays.", 'It\'s "late".'],
        "response": "The buyer.",
        "reference": "The buyer",
        "faithfulness": 1.0,
        "context_recall": None,
    },
    {
        "user_input": "谁付款？",
        "retrieved_contexts": [],
        "response": "买方。",
        "reference": "买方",
        "faithfulness": 0.25,
        "context_recall": 0.5,
    },
]
TABLE = "question,answer,faithfulness\nq1,a1,0.5\nq2,a2,1\n"


def lossy(frame, what):
    return [row for row in frame.attrs["lossy"] if row["what"] == what]


def as_bytes(records, form):
    frame = pd.DataFrame(records)
    if form == "parquet":
        out = io.BytesIO()
        pl.DataFrame(records).write_parquet(out)
        return out.getvalue()
    if form == "excel":
        out = io.BytesIO()
        pd.read_csv(io.StringIO(frame.to_csv(index=False))).to_excel(
            out, index=False, engine="openpyxl"
        )
        return out.getvalue()
    if form == "jsonl":
        return "\n".join(json.dumps(r, ensure_ascii=False) for r in records).encode()
    return {
        "csv": lambda: frame.to_csv(),
        "tsv": lambda: frame.to_csv(sep="\t", index=False),
        "json": lambda: json.dumps(records),
    }[form]().encode()


# Formats


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", [row.name for row in FORMATS])
def test_every_format_gives_the_same_frame(tmp_path, form, packed):
    suffix = next(row.suffixes[0] for row in FORMATS if row.name == form)
    path = write(tmp_path, f"scores{suffix}{'.gz' if packed else ''}", as_bytes(RECORDS, form))
    if packed and form == "excel":  # is packed by itself
        refused(lambda: read_scores(path), "not a readable workbook", "as CSV")
        return
    frame = read_scores(path)
    expected = read_scores(RECORDS)
    pd.testing.assert_frame_equal(frame, expected)
    assert frame["retrieved_contexts"].tolist() == [r["retrieved_contexts"] for r in RECORDS]
    assert frame.attrs["source"]["format"] == form
    assert frame.attrs["source"]["layout"] == "ragas"
    assert frame.attrs["source"]["rows"] == 2


@pytest.mark.parametrize("suffix", [s for row in FORMATS for s in row.suffixes])
def test_every_listed_extension_is_read(tmp_path, suffix):
    form = next(row.name for row in FORMATS if suffix in row.suffixes)
    assert len(read_scores(write(tmp_path, f"a{suffix.upper()}", as_bytes(RECORDS, form)))) == 2


@pytest.mark.parametrize("orient", ["records", "list", "split", "dict", "table"])
def test_json_orients_of_pandas_are_read(tmp_path, orient):
    frame = pd.DataFrame(RECORDS)
    text = (
        frame.to_json(orient={"dict": "columns"}.get(orient, orient)) if orient != "list" else None
    )
    text = text or json.dumps({c: frame[c].replace({np.nan: None}).tolist() for c in frame})
    pd.testing.assert_frame_equal(
        read_scores(write(tmp_path, "a.json", text)), read_scores(RECORDS)
    )


def test_records_a_line_in_a_json_file_are_read_as_jsonl(tmp_path):
    frame = read_scores(write(tmp_path, "a.json", as_bytes(RECORDS, "jsonl")))
    assert (len(frame), frame.attrs["source"]["format"]) == (2, "jsonl")


@pytest.mark.parametrize(
    "kind", ["pandas", "polars", "lazy", "pyarrow", "to_pandas", "dicts", "cases"]
)
def test_frames_and_records_in_memory_are_read(kind):
    class Result:
        def to_pandas(self):
            return pd.DataFrame(RECORDS)

    source = {
        "pandas": lambda: pd.DataFrame(RECORDS),
        "polars": lambda: pl.DataFrame(RECORDS),
        "lazy": lambda: pl.LazyFrame(RECORDS),
        "pyarrow": lambda: pytest.importorskip("pyarrow").Table.from_pylist(RECORDS),
        "to_pandas": Result,
        "dicts": lambda: (dict(r) for r in RECORDS),
        "cases": lambda: [
            EvalCase(
                question=r["user_input"],
                answer=r["response"],
                ground_truth_answer=r["reference"],
                retrieved_contexts=r["retrieved_contexts"],
                faithfulness=r["faithfulness"],
                context_recall=r["context_recall"],
            )
            for r in RECORDS
        ],
    }[kind]()
    frame = read_scores(source)
    expected = read_scores(RECORDS)
    pd.testing.assert_frame_equal(frame[expected.columns], expected)
    assert frame.attrs["source"]["path"] is None


TYPED = {
    "sample_id": ["007", "", "b", "007"],
    "question": ["Who?", " NaN ", '[{"role": "user", "content": "x"}]', "y"],
    "answer": ["a", None, "<NA>", "b"],
    "doc_name": [1.0, 2.0, 2.5, math.nan],
    "persona": [7, 8, 8, 9],
    "system": ["s", "s", "t", "t"],
    "run": [True, False, True, True],
    "note": [math.nan] * 4,
    "faithfulness": [0.25, math.nan, 1.00000001, -1e-7],
    "context_recall": [True, False, True, True],
    "answer_relevancy": [0, 1, 1, 0],
    "style": ["1", "", "NaN", "x"],
}
KINDS = {
    "pandas": pd.DataFrame,
    "objects": lambda cells: pd.DataFrame(cells, dtype=object),
    "categories": lambda cells: pd.DataFrame(cells).astype("category"),
    "reversed": lambda cells: pd.DataFrame(cells, index=[9, 8, 7, 6]),
    "nullable": lambda cells: nullable(pd.DataFrame(cells)),
    "polars": lambda cells: pl.DataFrame(cells, nan_to_null=True),
    "arrow": lambda cells: pl.DataFrame(cells, nan_to_null=True).to_arrow(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_one_type_are_read_as_their_cells_are(kind):
    frame = KINDS[kind](TYPED)
    cells = [dict(zip(TYPED, row, strict=True)) for row in zip(*TYPED.values(), strict=True)]
    for read in (read_scores, read_cases):
        ours, theirs = read(frame), read(cells)
        pd.testing.assert_frame_equal(ours, theirs)
        assert ours.attrs["lossy"] == theirs.attrs["lossy"]
    for value in (1.5, math.inf):
        bad = {**TYPED, "faithfulness": [0.5, 0.5, value, 0.5]}
        assert "row 3: column 'faithfulness'" in refused(
            lambda bad=bad: read_scores(KINDS[kind](bad))
        )


def test_a_frame_in_memory_is_not_changed():
    frame = pd.DataFrame(RECORDS)
    before = frame.copy(deep=True)
    read_scores(frame)
    pd.testing.assert_frame_equal(frame, before)


INDEXES = {
    "numbers": pd.Index([5, 6]),
    "texts": pd.Index(["x", "y"]),
    "named numbers": pd.Index([5, 6], name="sample_id"),
    "named texts": pd.Index(["x", "y"], name="qid"),
    "levels": pd.MultiIndex.from_arrays([["s", "t"], ["x", "y"]], names=["system", "sample_id"]),
    "levels without names": pd.MultiIndex.from_arrays([["s", "t"], [5, 6]]),
    "levels of numbers": pd.MultiIndex.from_arrays([[1, 2], [5, 6]]),
    "one level without a name": pd.MultiIndex.from_arrays(
        [["s", "t"], ["x", "y"]], names=[None, "sample_id"]
    ),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_json_of_a_frame_with_its_schema_is_read_as_the_frame_with_its_index(index, tmp_path):
    frame = pd.DataFrame({"question": ["Who?", "What?"], "faithfulness": [0.5, 0.7]}, index)
    frame.to_json(tmp_path / "a.json", orient="table")
    found = read_scores(tmp_path / "a.json")
    want = read_scores(frame)
    pd.testing.assert_frame_equal(found, want)
    left_out = [row["detail"] for row in want.attrs["lossy"] if row["what"] == "left_out"]
    assert [r["detail"] for r in found.attrs["lossy"] if r["what"] == "left_out"] == left_out
    # Numbers without a name are no loss; texts are one that is told.
    is_told = any(
        index.names[i] is None and not pd.api.types.is_integer_dtype(index.get_level_values(i))
        for i in range(index.nlevels)
    )
    assert left_out == ["index without a name"] * is_told
    if "sample_id" in index.names:
        ids = index.get_level_values("sample_id")
        assert found["sample_id"].tolist() == [str(one) for one in ids]


def test_a_named_index_becomes_a_column():
    frame = pd.DataFrame({"faithfulness": [1.0]}, index=pd.Index(["007"], name="sample_id"))
    assert read_scores(frame)["sample_id"].tolist() == ["007"]


def test_results_of_cases_become_columns_with_their_status():
    case = EvalCase(
        question="q",
        results={"faithfulness": {"score": 0.5}, "context_recall": {"status": "failed"}},
    )
    frame = read_scores([case])
    assert frame["faithfulness"].tolist() == [0.5]
    assert math.isnan(frame["context_recall"][0])
    assert frame["context_recall__status"].tolist() == ["failed"]


# Files that are not there, or not what they seem


def test_a_missing_file_is_told_with_the_near_names(tmp_path):
    write(tmp_path, "scores.csv", TABLE)
    refused(lambda: read_scores(tmp_path / "score.csv"), "no such file", "'scores.csv'")
    refused(lambda: read_scores(tmp_path / "nowhere" / "score.csv"), "nor its folder")
    refused(lambda: read_scores(tmp_path), "is a folder")


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.jsonl", "a.csv.gz"])
def test_empty_files_are_refused(tmp_path, name):
    refused(lambda: read_scores(write(tmp_path, name, "")), "empty")
    refused(lambda: read_scores(write(tmp_path, name, " \n\n")), name)


def test_unknown_extensions_and_formats_are_refused_with_the_choices(tmp_path):
    path = write(tmp_path, "scores.docx", TABLE)
    refused(lambda: read_scores(path), "'.docx'", ".xlsx", ".parquet", "format='csv'")
    refused(lambda: read_scores(path, format="cvs"), "format='cvs'", "'csv'")
    assert len(read_scores(path, format="csv")) == 2
    refused(lambda: read_scores(pd.DataFrame(RECORDS), format="csv"), "format='csv'", "files")


REFUSED_FILES = {
    "JSON of another shape": (
        "a.json",
        '{"evalId": 1, "results": {}}',
        ["evalId", "list of records"],
    ),
    "records that are numbers": ("a.json", "[1, 2]", ["record 1", "found int"]),
    "no JSON": ("a.json", '[{"a": 1},\n}]', ["a.json, line 2", "not valid JSON"]),
    "a header alone": ("a.csv", "question,faithfulness\n", ["no rows", "faithfulness"]),
    "a pickle": ("a.pkl", pickle.dumps(pd.DataFrame(RECORDS)), ["a.pkl"]),
    "half a gzip file": ("a.csv", gzip.compress(TABLE.encode())[:-9], ["gzip file is damaged"]),
    "a text called Parquet": ("a.parquet", "question", ["not a Parquet"]),
    "a number that is a word": (
        "a.csv",
        'question,faithfulness\n"two\nlines",1\nq2,good\n',
        ["a.csv, line 4", "'faithfulness'", "'good'", "expected a number"],
    ),
    "a cell too many": ("a.csv", TABLE + "q3,a, b,1\n", ["line 4", "4 cells, expected 3"]),
    "a cell too few": ("a.csv", TABLE + "q3,a\n", ["line 4", "2 cells, expected 3"]),
    "a cell too few at once": (
        "a.csv",
        "question,answer,faithfulness\nq1,a\n",
        ["line 2", "2 cells, expected 3"],
    ),
    "a quote left open": ("a.csv", TABLE + '"q3,a,1\nq4,a,1\n', ["line 4", "quote"]),
    "two columns of one name": ("a.csv", "question,faithfulness,faithfulness\nq,1,0\n", ["twice"]),
    "totals": ("a.csv", "app_name,app_version,Groundedness\nx,v1,0.5\ny,v1,0.4\n", ["totals"]),
    "totals without a header": (
        "a.csv",
        "app_name,app_version,,\n甲,v1,0.5,0.4\n",
        ["table of totals"],
    ),
    "totals under two headers": (
        "a.csv",
        ",,Groundedness,latency\napp_name,app_version,,\n甲,v1,0.5,3\n",
        ["one row per sample"],
    ),
    "totals of pandas": (
        "a.csv",
        ",,A,B\nName,Temperature,,\nx,0.0,1,2\n0.3,1,2\n",
        ["one row per sample"],
    ),
    "totals by metric": ("a.csv", ",metric,value\n0,faithfulness,0.5\n1,recall,0.4\n", ["totals"]),
    "totals of models": (
        "a.csv",
        "模型,faithfulness\n小,0.5\n大,0.6\n",
        ["totals", "one row per sample"],
    ),
}


@pytest.mark.parametrize("what", REFUSED_FILES)
def test_a_file_is_refused_with_its_name_its_line_and_what_is_wrong(tmp_path, what):
    name, data, words = REFUSED_FILES[what]
    refused(lambda: read_scores(write(tmp_path, name, data)), *words)


DUMPED = {"scores": "[...]", "dataset": "Dataset({...})", "binary_columns": "[]"}
ANSWERED = {"question": "q", "response": "a", "output": "b", "faithfulness": 1}
REFUSED_RECORDS = {
    "a number": (read_scores, 42, ["int", "list of dicts"]),
    "numbers": (read_scores, [1, 2], ["list of dicts"]),
    "no rows": (read_scores, pd.DataFrame({"faithfulness": []}), ["no rows"]),
    "two columns of one name": (
        read_scores,
        pd.DataFrame([[1, 0]], columns=["faithfulness"] * 2),
        ["twice"],
    ),
    "two answers": (
        read_scores,
        [ANSWERED],
        ["'response'", "'output'", "columns={'response': 'answer'}"],
    ),
    "a dumped object": (read_scores, [DUMPED], ["dumped result object", "to_pandas()"]),
    "no scores": (
        read_scores,
        [{"question": "q", "answer": "a"}],
        ["no column of scores", "read_cases"],
    ),
    "a case without a question": (read_cases, [{"answer": "a"}], ["no 'question'", "columns="]),
    "a trace without an answer": (read_traces, [{"q": "a"}], ["no 'answer'"]),
    "a trace without a question": (read_traces, [{"answer": "a"}], ["no 'question'"]),
    "chunks in a text": (
        read_traces,
        [{"q": "a", "answer": "b", "chunks": "x"}],
        ["row 1", "'chunks'", "list of objects"],
    ),
    "citations in an object": (
        read_traces,
        [{"q": "a", "answer": "b", "citations": {"a": 1}}],
        ["'citations'", "list of ids"],
    ),
    "gold that answers nothing": (read_gold, [{"q": "a"}], ["no 'answerable'"]),
    "gold without a question": (read_gold, [{"qid": "a", "answerable": True}], ["no 'question'"]),
    **{
        f"answerable: {value!r}": (
            read_gold,
            [{"q": "a", "answerable": True}, {"q": "b", "answerable": value}],
            ["row 2", "true or false"],
        )
        for value in ("maybe", None, 2, "", [], 0.5)
    },
    **{
        f"faithfulness: {cell!r}": (
            read_scores,
            [{"question": "q", "faithfulness": 1.0}, {"question": "q", "faithfulness": cell}],
            ["row 2", "'faithfulness'", "expected a number"],
        )
        for cell in ("good", "0,5", "87%", "inf", "1_0", "0x1", "[1]", [1], float("inf"), "½")
    },
}


@pytest.mark.parametrize("what", REFUSED_RECORDS)
def test_records_are_refused_in_words(what):
    read, source, words = REFUSED_RECORDS[what]
    refused(lambda: read(source), *words)


# Encodings


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    for name, text in [
        ("a.csv", TABLE),
        ("a.jsonl", '{"question": "q", "faithfulness": 1}\n'),
        ("a.json", '[{"question": "q", "faithfulness": 1}]'),
    ]:
        frame = read_scores(write(tmp_path, name, text, "utf-8-sig"))
        assert "question" in frame.columns
        assert not lossy(frame, "bad_line")


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.jsonl"])
def test_gbk_is_refused_with_a_hint_and_read_when_named(tmp_path, name):
    records = [
        {"question": f"差旅报销{i}", "doc_name": "差旅报销制度.pdf", "faithfulness": 0.5}
        for i in range(3)
    ]
    text = {
        "a.csv": pd.DataFrame(records).to_csv(index=False),
        "a.json": json.dumps(records, ensure_ascii=False),
        "a.jsonl": "\n".join(json.dumps(r, ensure_ascii=False) for r in records),
    }[name]
    path = write(tmp_path, name, text, "gbk")
    refused(lambda: read_scores(path), "UTF-8", "encoding='gb18030'", "line")
    frame = read_scores(path, encoding="gbk")
    assert frame["question"].tolist() == [r["question"] for r in records]
    refused(lambda: read_scores(path, encoding="gkb"), "gkb")


# CSV as people have it


def test_a_cell_of_two_megabytes_is_read(tmp_path):
    before = csv.field_size_limit()
    frame = read_scores(write(tmp_path, "a.csv", f"question,faithfulness\n{'x' * 2_000_000},1\n"))
    assert frame["question"].str.len().tolist() == [2_000_000]
    assert csv.field_size_limit() == before


def test_elided_columns_and_rows_and_blank_rows_are_left_out_and_counted(tmp_path):
    text = "question,...,faithfulness\nq1,...,1\n...,...,...\n,,\n\nq2,...,0\n"
    frame = read_scores(write(tmp_path, "a.csv", text))
    assert frame["faithfulness"].tolist() == [1, 0]
    assert sum(row["n"] for row in lossy(frame, "left_out")) == 1 + 1 + 2


def test_csv_numbers_without_a_name_of_ours_become_numbers_and_codes_stay_text(tmp_path):
    text = "sample_id,question,latency,zip,flag,note\n007,q,1.5,01234,True,1\n08,q,,00001,,x\n"
    frame = read_scores(write(tmp_path, "a.csv", text))
    assert frame["sample_id"].tolist() == ["007", "08"]
    assert frame["latency"].tolist()[0] == 1.5
    assert frame["zip"].tolist() == ["01234", "00001"]
    assert str(frame["flag"].dtype) == "boolean"
    assert frame["note"].tolist() == ["1", "x"]


# Names


def test_a_pick_settles_which_of_two_columns_of_one_meaning_is_meant():
    frame = read_scores([ANSWERED], columns={"output": "answer"})
    assert frame["answer"].tolist() == ["b"]
    assert "response" in frame.columns
    scores = [{"question": "q", "faithfulness": 1, "groundedness": 0}]
    refused(lambda: read_scores(scores), "'faithfulness'", "'groundedness'")
    frame = read_scores(scores, columns={"groundedness": "faithfulness"})
    assert frame["faithfulness"].tolist() == [0]
    assert lossy(frame, "left_out")[0]["column"] == "faithfulness"


def test_a_pick_comes_before_every_alias_and_must_be_there():
    rows = [{"prompt": "q", "source": "web", "faithfulness": 1}]
    frame = read_scores(rows, columns={"prompt": "question", "source": "source"})
    assert frame.columns.tolist() == ["sample_id", "question", "source", "faithfulness"]
    refused(lambda: read_scores(rows, columns={"promt": "question"}), "columns='promt'", "'prompt'")


def test_a_declared_metric_keeps_its_column_from_an_alias():
    rows = [{"question": "q", "groundedness": 4, "faithfulness": 1}]
    frame = read_scores(rows, metrics=[Metric("groundedness", 1, 5)])
    assert frame[["groundedness", "faithfulness"]].to_numpy().tolist() == [[4, 1]]


def test_status_columns_follow_their_metric():
    frame = read_scores([{"question": "q", "Groundedness": None, "Groundedness__status": "failed"}])
    assert frame["faithfulness__status"].tolist() == ["failed"]


@pytest.mark.parametrize("name", ["run", "model", "app_name", "configuration"])
def test_the_one_column_that_names_systems_becomes_system(name):
    frame = read_scores([{"question": "q", name: "x", "faithfulness": 1}])
    assert frame["system"].tolist() == ["x"]


def test_several_columns_that_may_name_systems_stay_and_are_listed():
    frame = read_scores([{"question": "q", "run": "x", "model": "y", "faithfulness": 1}])
    assert "system" not in frame.columns
    assert {row["column"] for row in lossy(frame, "kept")} == {"run", "model"}
    frame = read_scores([{"question": "q", "run": "x", "system": "y", "faithfulness": 1}])
    assert frame.loc[0, ["run", "system"]].tolist() == ["x", "y"]


def test_a_store_is_a_system_only_where_samples_repeat():
    rows = [{"qid": "1", "store": s, "faithfulness": 1} for s in "ab"]
    assert read_scores(rows)["system"].tolist() == ["a", "b"]
    assert "store" in read_scores(rows[:1]).columns


def test_made_ids_pair_the_systems_by_question():
    rows = [{"question": q, "run": run, "faithfulness": 1} for run in "ab" for q in ["x", "y", "x"]]
    frame = read_scores(rows)
    assert frame["sample_id"].tolist() == ["1", "2", "3"] * 2
    assert lossy(frame, "made")[0]["n"] == 6


# Cells


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("[]", []),
        ("['a', \"it's\"]", ["a", "it's"]),
        ('["a\\n", "\\u3000"]', ["a\n", "\u3000"]),
        ("['a\\xa0', 'b\\\\n']", ["a\xa0", "b\\n"]),
        ("['a'\n 'b']", ["a", "b"]),
        ("['a' 'b', 'c']", ["ab", "c"]),
        ([{"text": "a"}, {"page_content": "b"}], ["a", "b"]),
        (np.array(["a", "b"]), ["a", "b"]),
        (("a",), ["a"]),
        ("One passage", ["One passage"]),
        (None, None),
        ("", None),
        ("nan", None),
        (float("nan"), None),
    ],
)
def test_context_cells_are_understood(cell, texts):
    assert as_texts(cell) == (texts, True)


@pytest.mark.parametrize(
    "cell",
    [
        "[Have the check...",
        "[8,804,000]",
        "[['nested']]",
        "[1, 2]",
        "['cut at the",
        "['cut \\u12 escape']",
        "[" * 5000,
        "['a', __import__('os')]",
        "['\\d+', 'x' ]x",
        "['bad \\q escape']",
    ],
)
def test_context_cells_that_cannot_be_parsed_are_kept_whole_and_counted(cell):
    assert as_texts(cell) == ([cell], False)
    frame = read_scores([{"question": "q", "contexts": cell, "faithfulness": 1}])
    assert frame["retrieved_contexts"].tolist() == [[cell]]
    assert [row["n"] for row in lossy(frame, "unparsed")] == [1]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_repr_and_json_lists_come_back_whole(texts):
    assert parse_list(repr(texts)) == texts
    assert parse_list(json.dumps(texts)) == texts
    assert parse_list(json.dumps(texts, ensure_ascii=False)) == texts


def test_lists_of_references_become_one_text():
    cells = ["['only']", ["a", "b"], "[cut off...", "plain", None]
    frame = read_scores([{"question": "q", "ground_truths": c, "faithfulness": 1} for c in cells])
    assert frame["ground_truth_answer"].tolist()[:4] == ["only", "a\nb", "[cut off...", "plain"]
    assert frame["ground_truth_answer"].isna().tolist() == [False] * 4 + [True]
    assert [
        (row["what"], row["n"])
        for row in frame.attrs["lossy"]
        if row["column"] == "ground_truth_answer"
    ] == [
        ("unparsed", 1),
        ("mapped", 1),
    ]


# Metrics


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("0.5", 0.5),
        (" 1e-3 ", 1e-3),
        ("True", 1),
        ("false", 0),
        (True, 1),
        (1, 1),
        (np.float32(0.5), 0.5),
        ("0.9999999999", 1),
        (1.0000000002, 1),
        (-1e-12, 0),
        ("", None),
        ("NaN", None),
        ("null", None),
        ("None", None),
        (None, None),
        (float("nan"), None),
        (pd.NA, None),
    ],
)
def test_metric_cells_become_numbers_or_are_missing(cell, value):
    frame = read_scores(
        [{"question": "q", "faithfulness": cell}, {"question": "r", "faithfulness": 0.25}]
    )
    assert frame["faithfulness"].dtype == float
    assert frame["faithfulness"].replace({np.nan: None}).tolist() == [value, 0.25]


def test_percent_is_never_rescaled_in_silence():
    rows = [{"question": "q", "faithfulness": v} for v in (87, 90.5, 0)]
    refused(
        lambda: read_scores(rows),
        "row 1",
        "percent",
        "divide by 100",
        "Metric('faithfulness', 0, 100)",
    )


def test_names_select_which_columns_are_held_to_their_range():
    rows = [{"question": "q", "context_recall": 1.5, "faithfulness": 1}]
    refused(lambda: read_scores(rows), "'context_recall'", "0..1")
    assert read_scores(rows, metrics="faithfulness")["context_recall"].tolist() == [1.5]
    own = Metric("context_recall", 0, 2)
    assert read_scores(rows, metrics=own)["context_recall"].tolist() == [1.5]


def test_declared_columns_of_truth_words_become_numbers(tmp_path):
    path = write(tmp_path, "a.csv", "question,cited\nq,True\nr,False\ns,\n")
    frame = read_scores(path, metrics=[Metric("cited", kind="binary")])
    assert frame["cited"].replace({np.nan: None}).tolist() == [1, 0, None]


# Tables that hold no samples


def test_rows_of_numbers_alone_are_samples():
    assert len(read_scores(pd.DataFrame({"faithfulness": [0.5, 1.0]}))) == 2
    assert (
        len(read_scores(pd.DataFrame({"system": ["a", "b"] * 2, "faithfulness": [1.0] * 4}))) == 4
    )


# Layouts of tools


def test_systems_side_by_side_become_rows_that_pair_by_sample():
    rows = [
        {
            "questions": f"q{i}",
            "contexts": "['c']",
            "a_responses": f"a{i}",
            "a_metric_sas": 0.1 * i,
            "a_b_responses": f"b{i}",
            "a_b_metric_sas": 0.2 * i,
        }
        for i in range(3)
    ]
    frame = read_scores(rows)
    long = [
        (s, f"q{i}", f"{s[-1]}{i}", f * i) for s, f in (("a", 0.1), ("a_b", 0.2)) for i in range(3)
    ]
    assert rows_of(frame, "system", "question", "answer", "semantic_similarity") == long
    assert frame["sample_id"].tolist() == ["1", "2", "3"] * 2


def test_the_unparsable_sentinel_of_trulens_is_failed_not_a_score():
    record = {"app_id": "x", "input": '"q"', "output": '"a', "Groundedness_calls": "[]"}
    rows = [{"record_id": str(i), **record, "Groundedness": v} for i, v in enumerate([-1.0, 0.5])]
    frame = read_scores(rows)
    assert frame["faithfulness"].replace({np.nan: None}).tolist() == [None, 0.5]
    assert frame["faithfulness__status"].fillna("").tolist() == ["failed", ""]
    assert (frame["question"][0], frame["answer"][0]) == ("q", '"a')


# Cases


def test_null_and_empty_and_absent_contexts_stay_apart(tmp_path):
    records = [{"question": "q", "retrieved_contexts": contexts} for contexts in (None, [])] + [
        {"question": "q"}
    ]
    frame = read_cases(write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, records))))
    assert frame["retrieved_contexts"].tolist() == [None, [], None]
    applies = applicable_metrics(frame.assign(answer="a"), metrics=["faithfulness"]).set_index(
        "applies"
    )
    assert applies["n_cases"].to_dict() == {True: 1, False: 2}


# JSONL


def test_bad_lines_are_all_counted_and_the_first_hundred_listed(tmp_path):
    text = "\n".join(['{"q": "x", "answer": "y"}', "{"] * 150 + ['{"q": "x", "answer": "y"}'])
    rows = lossy(read_traces(write(tmp_path, "t.jsonl", text)), "bad_line")
    assert (len(rows), sum(row["n"] for row in rows)) == (101, 150)


def test_a_file_with_no_more_good_lines_than_bad_is_refused(tmp_path):
    half = write(tmp_path, "t.jsonl", '{"q": "x", "answer": "y"}\n{\n')
    refused(lambda: read_traces(half), "line 2", "1 of 2 lines")
    refused(lambda: read_traces(write(tmp_path, "l.jsonl", '{\n"q": 1}\n')), "format='json'")


def test_a_line_over_the_limit_costs_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(jsons, "LONGEST_LINE", 1000)
    records = [{"q": "a", "answer": "x" * n} for n in (10, 2000, 900, 5000)]
    path, report = (
        write(tmp_path, "t.jsonl.gz", "\n".join(map(json.dumps, [*records, records[0]]))),
        Lossy(),
    )
    frame, found = read_traces(path), [*jsons.record_blocks(Document(path), report)]
    assert frame["answer"].str.len().tolist() == [10, 900, 10]
    assert [len(record["answer"]) for _, some in found for record in some] == [10, 900, 10]
    for rows in (lossy(frame, "bad_line"), report.rows):
        assert [row["detail"].partition(" than")[0] for row in rows] == [
            "line 2: longer",
            "line 4: longer",
        ]


def test_the_limit_of_a_line_is_sixteen_megabytes_unpacked(tmp_path):
    assert jsons.LONGEST_LINE == 16 * 2**20
    bomb = b'{"q": "' + b"x" * (jsons.LONGEST_LINE + 10) + b'"}\n'
    frame = read_traces(write(tmp_path, "t.jsonl.gz", bomb + b'{"q": "a", "answer": "b"}\n' * 2))
    assert len(frame) == 2


def test_lone_surrogates_are_replaced_and_marked_and_pairs_are_kept(tmp_path):
    text = '{"q": "\\ud83d\\ude00", "answer": "x\\ud800y"}\n'
    for name in ("t.jsonl", "t.json"):
        frame = read_traces(write(tmp_path, name, text if name.endswith("l") else f"[{text}]"))
        assert frame["question"].tolist() == ["😀"]
        assert frame["answer"].tolist() == ["x\ufffdy"]
        assert [row["n"] for row in lossy(frame, "unparsed")] == [1]
    assert read_traces([{"q": "a", "answer": "x\ud800"}])["answer"].tolist() == ["x\ufffd"]


FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON_VALUES), st.booleans())
def test_a_line_is_what_the_json_module_says(record, ascii_only):
    line = json.dumps(record, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        line.decode()
    except UnicodeDecodeError:
        assert jsons._record(line)[0] is None
        return
    assert jsons._record(line) == (json.loads(line), "", 0)


def traces_of(n):
    return [
        json.dumps(
            {
                "id": f"s{i}",
                "q": f"问题 {i}",
                "answer": f"- a{i}",
                "faithfulness": 0.5,
                "chunks": [{"id": "x", "page": 1}, {"id": "y", "page": 2}],
            },
            ensure_ascii=False,
        )
        for i in range(n)
    ]


def arrived(frame):
    return frame.attrs["source"]["lines"], frame.attrs["source"]["damaged"]


@pytest.mark.parametrize(
    ("damage", "rows", "expected"),
    [
        (lambda lines: lines, 60, (60, 0)),
        (lambda lines: [*lines[:9], "", *lines[9:]], 60, (60, 0)),
        (
            lambda lines: [line[:40] if i < 20 else line for i, line in enumerate(lines)],
            40,
            (60, 20),
        ),
        (lambda lines: [*lines[:-1], lines[-1][:-1]], 59, (60, 1)),
        (lambda lines: [*lines[:3], "".join(lines[3:7]), *lines[7:]], 56, (60, 4)),
        (lambda lines: [*lines[:3], lines[3][:30] + lines[4], *lines[5:]], 58, (60, 2)),
        (lambda lines: [*lines[:3], lines[3][:-1] + ", " + lines[4], *lines[5:]], 58, (60, 2)),
        (lambda lines: [*lines[:3], lines[3] + "\n[1]\nnull", *lines[4:]], 60, (62, 2)),
        (lambda lines: [lines[0].replace("a0", r"\ud800 \udfff"), *lines[1:]], 60, (60, 1)),
    ],
)
@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_every_damaged_or_lost_record_of_json_lines_is_counted(
    tmp_path, name, damage, rows, expected
):
    path = write(tmp_path, name, "\n".join(damage(traces_of(60))) + "\n")
    for read in (read_scores, read_cases, read_traces):
        frame = read(path)
        assert (len(frame), arrived(frame)) == (rows, expected)


def test_of_several_files_the_one_with_the_largest_share_of_damage_is_told(tmp_path):
    for name, n, cut in (("a", 90, 2), ("b", 10, 1), ("c", 50, 0)):
        lines = [line[: 30 if i < cut else None] for i, line in enumerate(traces_of(n))]
        write(tmp_path, f"{name}.jsonl", "\n".join(lines))
    assert arrived(read_traces(tmp_path)) == (10, 1)
    assert arrived(read_traces(str(tmp_path / "[ac].jsonl"))) == (90, 2)


def test_what_arrived_is_counted_for_every_format_and_remembered_by_frames(tmp_path):
    frame = read_scores(write(tmp_path, "a.csv", TABLE))
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (tmp_path / "a.csv", tmp_path / "a.parquet", frame, frame.head(1)):
        assert arrived(read_scores(source)) == (2, 0)
    # Of rows that no file is known for, none can be said to have arrived whole.
    assert arrived(read_scores(frame.to_dict("records"))) == (0, 0)
    text = json.dumps([{"question": f"q{i}", "faithfulness": 1, "note": "x"} for i in range(3)])
    assert arrived(read_scores(write(tmp_path, "a.json", text))) == (3, 0)
    text = text.replace("x", r"\ud800\ud801", 1)
    assert arrived(read_scores(write(tmp_path, "a.json", text))) == (3, 1)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("}]}", '}], "faithfulness": 0.99}', "faithfulness"),
        ("}]}", '}], "faithfulness" : 0.99}', "faithfulness"),
        ('"page": 2', '"page": 2, "page": 3', "page"),
        ('"page": 2', r'"page": 2, "\u0070age": 3', "page"),
        ("}]}", '}], "chunks": [{"id": "z", "page": 1}]}', "chunks"),
        ('"q"', '"q": null, "q"', "q"),
        ("- a7", '- a7", "note": ": 5 \\"x\\": {", "note": "', "note"),
    ],
)
@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.json"])
def test_a_key_that_a_record_holds_twice_is_refused_with_file_line_and_key(
    tmp_path, name, old, new, key
):
    lines = traces_of(20)
    lines[7] = lines[7].replace(old, new, 1)
    text = "[" + ",\n".join(lines) + "]" if name == "t.json" else "\n".join(lines)
    path = write(tmp_path, name, text)
    for read in (read_scores, read_traces):
        refused(lambda read=read: read(path), f"{name}, line 8, key {key!r}", "twice")
    if name != "t.json":
        refused(
            lambda: [*jsons.record_blocks(Document(path), Lossy())],
            f"{name}, line 8, key {key!r}",
            "twice",
        )
    gold = [{"qid": "a", "q": "Who?", "answerable": True, "m": {"at": 1}}]
    text = json.dumps(gold).replace("true", 'true, "answerable": false')
    refused(
        lambda: read_gold(write(tmp_path, "gold.json", text)), "line 1, key 'answerable'", "twice"
    )


def test_keys_that_several_objects_hold_and_colons_in_texts_are_no_repeats(tmp_path):
    deep = {"q": {"q": [{"q": 1}, {"q": 2}]}}
    record = {"q": 'a": "b', "answer": ': "q": {"q": 1} "', "m": deep, "": 1, "ключ :": 2}
    for separators in ((", ", ": "), (",", ":"), (" , ", " : ")):
        text = json.dumps(record, separators=separators, ensure_ascii=False)
        for name in ("t.jsonl", "t.json"):
            assert read_traces(write(tmp_path, name, text))["answer"].tolist() == [record["answer"]]


@given(
    st.recursive(
        st.text(':"{}\\ a'),
        lambda inner: st.lists(inner) | st.lists(st.tuples(st.text("ab:", max_size=2), inner)),
        max_leaves=12,
    )
)
def test_a_repeated_key_is_found_where_an_object_holds_fewer_keys_than_were_written(tree):
    def pairs(value):
        return isinstance(value, list) and bool(value) and isinstance(value[0], tuple)

    def text(value):
        if pairs(value):
            return "{" + ", ".join(f"{json.dumps(key)}: {text(item)}" for key, item in value) + "}"
        return (
            "[" + ", ".join(map(text, value)) + "]"
            if isinstance(value, list)
            else json.dumps(value)
        )

    def repeats(value):
        items = (
            [item for _, item in value]
            if pairs(value)
            else value
            if isinstance(value, list)
            else []
        )
        own = pairs(value) and len(dict(value)) < len(value)
        return own or any(map(repeats, items))

    line = text(tree)
    try:
        assert jsons._parsed(line) == json.loads(line)
        assert not repeats(tree)
    except jsons._Twice:
        assert repeats(tree)
        assert "appears twice" in str(jsons._second_of_two(Document(Path("t.json")), line))


def test_random_damage_never_escapes_as_another_error(tmp_path):
    source = random.Random(1)
    line = json.dumps(RECORDS[1], ensure_ascii=False).encode()
    for _ in range(300):
        broken = bytearray(line)
        for _ in range(source.randint(1, 4)):
            broken[source.randrange(len(broken))] = source.randrange(256)
        for name, read in [("a.jsonl", read_cases), ("a.json", read_cases), ("a.csv", read_scores)]:
            with contextlib.suppress(RagnbError):
                read(write(tmp_path, name, bytes(broken)))


# Traces and gold


def test_traces_keep_answers_to_the_letter_and_know_three_kinds_of_citations(tmp_path):
    records = [
        {
            "ts": 1,
            "q": " q ",
            "chunks": [{"id": "a b"}, {"id": 7, "score": 0.5}],
            "ok": True,
            "answer": " - A\n- citations: [a] ",
            "citations": ["a", 7],
            "qid": "x<::>1",
            "model": "m",
            "raw_answer": "A",
        },
        {
            "q": "r",
            "chunks": ["a", "b"],
            "answer": "not in context",
            "ok": False,
            "citations": None,
        },
        {"q": "s", "chunks": None, "answer": "", "ok": True},
        {"q": "t", "chunks": [], "answer": None, "ok": None, "citations": []},
    ]
    frame = read_traces(write(tmp_path, "t.jsonl", "\n".join(map(json.dumps, records))))
    assert frame["answer"].tolist()[:3] == [r["answer"] for r in records[:3]]
    assert frame["question"].tolist() == [" q ", "r", "s", "t"]
    assert frame["citations"].tolist() == [["a", "7"], None, None, []]
    chunks = [[{"id": "a b"}, {"id": "7", "score": 0.5}], [{"id": "a"}, {"id": "b"}], None, []]
    assert frame["chunks"].tolist() == chunks
    assert frame["system"].tolist()[0] == "m"
    assert frame["sample_id"].tolist()[0] == "x<::>1"
    assert math.isnan(frame["ts"][1])


def test_traces_come_back_from_csv(tmp_path):
    records = [
        {"q": "a", "answer": "=b", "chunks": [{"id": "1"}], "citations": ["x y", "z"], "ok": True}
    ]
    frame = read_traces(records)
    again = read_traces(write(tmp_path, "t.csv", to_csv_text(frame)))
    assert again[list(frame.columns)].to_dict("records") == frame.to_dict("records")


@pytest.mark.parametrize(
    "value", [True, "true", "TRUE", 1, "1", False, "False", 0, "0", 1.0, "yes", "否"]
)
def test_answerable_is_true_or_false(value):
    frame = read_gold([{"q": "a", "answerable": value}])
    assert frame["answerable"].dtype == bool
    assert frame["answerable"].tolist() == [str(value).lower() in ("true", "1", "1.0", "yes")]


def test_gold_ids_are_lists_of_text(tmp_path):
    cells = [["a", 7], None, "b c", '["d"]', "['e', 'f']", []]
    frame = read_gold(
        [{"q": str(i), "answerable": True, "gold_ids": c} for i, c in enumerate(cells)]
    )
    assert frame["gold_ids"].tolist() == [["a", "7"], [], ["b c"], ["d"], ["e", "f"], []]
    text = 'qid,q,answerable,gold_ids\n01,a,true,"[""x""]"\n02,b,0,\n'
    gold = read_gold(write(tmp_path, "g.csv", text))
    assert gold.to_dict("records") == [
        {"sample_id": "01", "question": "a", "answerable": True, "gold_ids": ["x"]},
        {"sample_id": "02", "question": "b", "answerable": False, "gold_ids": []},
    ]


def test_repeated_gold_questions_stay_and_are_counted():
    rows = [{"qid": str(i), "q": q, "answerable": True} for i, q in enumerate("aabbc")]
    frame = read_gold(rows)
    assert len(frame) == 5
    assert [(row["column"], row["n"]) for row in lossy(frame, "kept")] == [("question", 2)]


# Our own CSV


FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\tx",
    "\rx",
    "\nx",
    "＝1",
    "－1",
    "＠x",
    " =1",
    "\u200b=1",
    "'=1",
    "'",
    "''x",
    "'- a",
]
NO_NUL = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
CELLS = st.one_of(st.sampled_from(FORMULAS), st.text(NO_NUL, min_size=1))


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1))
def test_csv_text_is_never_a_formula_and_comes_back_the_same(tmp_path, pairs):
    empty = ("", "NaN", "<NA>", "...", "…")
    pairs = [(a, b) for a, b in pairs if a.strip() not in empty and b.strip() not in empty[:3]]
    if not pairs:
        return
    frame = pd.DataFrame(pairs, columns=["question", "answer"], dtype=object).assign(
        faithfulness=-0.5
    )
    frame["faithfulness"] = 0.5
    text = to_csv_text(frame)
    for row in csv.reader(io.StringIO(text, newline="")):
        assert not any(cell.lstrip().startswith((*"=+-@＝＋－＠\t\r",)) for cell in row)
        assert not any(cell[:1] in ("\t", "\r", "\n") for cell in row)
    again = read_scores(write(tmp_path, "own.csv", text))
    assert again[["question", "answer"]].to_numpy().tolist() == [list(pair) for pair in pairs]
    assert again["faithfulness"].tolist() == [0.5] * len(pairs)


def test_csv_text_holds_twelve_digits_and_line_feeds_and_no_guard_where_none_is_needed():
    lists = {"d": [["x", "y"], {"k": 1}], "e": [np.array([1, 2]), pd.NaT]}
    frame = pd.DataFrame({"a": [1 / 3, -0.0], "b": [1, -2], "c": [True, None], **lists})
    assert to_csv_text(frame).split("\n") == [
        "a,b,c,d,e",
        '0.333333333333,1,True,"[""x"", ""y""]","[1, 2]"',
        '0,-2,,"{""k"": 1}",',
        "",
    ]
    assert "\r" not in to_csv_text(frame)


def test_csv_text_guards_column_names_too(tmp_path):
    text = to_csv_text(pd.DataFrame({"question": ["q"], "=cmd": ["x"], "faithfulness": [1.0]}))
    assert text.splitlines()[0] == "question,'=cmd,faithfulness,ragnb__guarded"
    assert "=cmd" in read_scores(write(tmp_path, "a.csv", text)).columns


def test_a_strangers_apostrophe_is_left_alone(tmp_path):
    assert read_scores(write(tmp_path, "a.csv", "question,faithfulness\n'=1,1\n"))[
        "question"
    ].tolist() == ["'=1"]


def test_a_scores_frame_comes_back_from_its_own_csv(tmp_path):
    frame = read_scores(RECORDS)
    again = read_scores(write(tmp_path, "scores.csv", to_csv_text(frame)))
    pd.testing.assert_frame_equal(again, frame)
    assert to_csv_text(again) == to_csv_text(frame)


@given(st.lists(st.floats(0, 1), min_size=1))
def test_scores_come_back_to_twelve_digits(tmp_path, values):
    frame = read_scores(pd.DataFrame({"faithfulness": values}))
    again = read_scores(write(tmp_path, "scores.csv", to_csv_text(frame)))
    np.testing.assert_allclose(again["faithfulness"], frame["faithfulness"], rtol=1e-11, atol=0)


# The report of what was lost


def test_the_lossy_report_has_one_shape_and_the_source_its_hash(tmp_path):
    import hashlib

    path = write(tmp_path, "a.csv", TABLE)
    frame = read_scores(path)
    assert all(list(row) == ["what", "column", "detail", "n"] for row in frame.attrs["lossy"])
    assert frame.attrs["source"] == {
        "path": str(path),
        "sha256": hashlib.sha256(TABLE.encode()).hexdigest(),
        "format": "csv",
        "layout": "table",
        "rows": 2,
        "lines": 2,
        "damaged": 0,
    }


def test_polars_comes_only_with_parquet(tmp_path):
    path = write(tmp_path, "a.csv", TABLE)
    code = f"import sys, ragnb as rn; rn.read_scores({str(path)!r}); print('polars' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_random_tables_of_plain_cells_are_read_as_the_csv_module_reads_them(tmp_path):
    source = random.Random(7)
    for _ in range(30):
        words = [
            "".join(source.choices(string.ascii_letters + ' ,"\n中', k=6)).strip() or "x"
            for _ in range(5)
        ]
        rows = [[word, source.random()] for word in words]
        out = io.StringIO()
        csv.writer(out).writerows([["question", "faithfulness"], *rows])
        frame = read_scores(write(tmp_path, "a.csv", out.getvalue()))
        assert frame[["question", "faithfulness"]].to_numpy().tolist() == rows
