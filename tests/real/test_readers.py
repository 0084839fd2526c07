"""Tables, cases, traces and gold that real tools wrote, counted a second time with the csv and json modules."""

from __future__ import annotations

import ast
import csv
import gzip
import json
import math
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.readers import applicable_metrics, read_cases, read_gold, read_scores, read_traces
from ragnb.schema import METRICS, Metric

# What the columns of these tables are called, by hand; a column that is not here keeps its name.
NAMES = {
    "user_input": "question",
    "questions": "question",
    "input": "question",
    "response": "answer",
    "output": "answer",
    "predicted_answers": "answer",
    "contexts": "retrieved_contexts",
    "ground_truths": "ground_truth_answer",
    "ground_truth": "ground_truth_answer",
    "reference": "ground_truth_answer",
    "reference_answer": "ground_truth_answer",
    "true_answers": "ground_truth_answer",
    "record_id": "sample_id",
    "run": "system",
    "model": "system",
    "factuality": "faithfulness",
    "Groundedness": "faithfulness",
    "groundedness_measure_with_cot_reasons": "faithfulness",
    "context_relevance_with_cot_reasons": "context_relevance",
    "Answer Relevance": "answer_relevancy",
    "context_relavency": "context_relevancy",
    "context_ relevancy": "context_relevancy",
    "Context Relevance": "context_relevance",
    "sas": "semantic_similarity",
    "answer_similarity": "semantic_similarity",
    "factual_correctness(mode=f1)": "factual_correctness",
    "factual_correctness_f1": "factual_correctness",
}
APPS = {"app_id": "system", "record_id": "row_id"}
TRULENS_TOTALS = ["01", "03", "05", "07", "09", "11"]
ROW_TABLES = [
    ("score_tables/ragas_history", 22),
    ("score_tables/trulens_records", 11),
    ("score_tables/haystack_native", 2),
    ("scores", 2),
]
MISSING = ("", "NaN")


def tables(shared: Path) -> list[Path]:
    """Return the row-level tables; a folder that lost one fails."""
    found = []
    for folder, n in ROW_TABLES:
        paths = sorted((shared / "data" / folder).glob("*.csv"))
        assert len(paths) == n, folder
        found += paths
    return [
        p for p in found if p.stem[:2] not in TRULENS_TOTALS or p.parent.name != "trulens_records"
    ]


def rows_of(path: Path, bare: tuple[str, ...] = ("", "...")) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows that hold something else than bare cells."""
    limit = csv.field_size_limit(2**30)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file)
    finally:
        csv.field_size_limit(limit)
    return header, [row for row in rows if set(row) - set(bare)]


def apps_answer_alike(header: list[str], rows: list[list[str]]) -> bool:
    """Whether each question stands once for each app: then the ids of records number rows, not questions."""
    if not {"app_id", "input"} <= {*header}:
        return False
    pairs = [(row[header.index("app_id")], row[header.index("input")]) for row in rows]
    apps, questions = map(set, zip(*pairs, strict=True))
    return len(apps) > 1 and len(set(pairs)) == len(rows) == len(apps) * len(questions)


def test_every_row_level_table_loads_with_canonical_names_and_the_same_numbers(shared):
    seen = Counter()
    for path in tables(shared):
        if path.name == "comparative_scores.csv":
            continue
        frame = read_scores(path)
        header, rows = rows_of(path)
        names = NAMES | (APPS if apps_answer_alike(header, rows) else {})
        expected = [names.get(name, name) for name in header if name not in ("", "...")]
        assert [
            name for name in frame.columns if name != "sample_id" or name in expected
        ] == expected, path
        assert len(frame) == len(rows)
        for i, name in enumerate(header):
            name = names.get(name, name)
            cells = [row[i] for row in rows]
            if name in METRICS:
                seen[name] += 1
                values = [math.nan if cell in MISSING else float(cell) for cell in cells]
                assert frame[name].to_numpy() == pytest.approx(values, nan_ok=True, abs=0), (
                    path,
                    name,
                )
            elif name in ("question", "answer"):
                texts = [json.loads(c) if c[:1] == c[-1:] == '"' else c for c in cells]
                assert frame[name].fillna("").tolist() == texts, (path, name)
    assert {
        "faithfulness",
        "answer_relevancy",
        "context_relevance",
        "context_recall",
        "context_precision",
        "semantic_similarity",
        "answer_correctness",
        "factual_correctness",
    } <= set(seen)


def test_contexts_of_every_table_are_lists_and_cut_ones_are_counted(shared):
    for path in tables(shared):
        header, rows = rows_of(path)
        if "contexts" not in header:
            continue
        frame = read_scores(path)
        cells = [row[header.index("contexts")] for row in rows]
        cut = sum(not (c.startswith(("['", '["')) and c.endswith("]")) and c != "[]" for c in cells)
        factor = len(frame) // len(rows)
        told = [
            r["n"]
            for r in frame.attrs["lossy"]
            if (r["what"], r["column"]) == ("unparsed", "retrieved_contexts")
        ]
        assert sum(told) == cut * factor, path
        assert frame["retrieved_contexts"].map(type).eq(list).all()
        assert (
            frame["retrieved_contexts"].str.len().tolist()
            == [
                len(ast.literal_eval(c))
                if c.startswith(("['", '["', "[]")) and c.endswith("]")
                else 1
                for c in cells
            ]
            * factor
        )


def follow(name: str, mapped: list[tuple[str, str]]) -> set[str]:
    """Return every name that a column goes by, after the renames that are listed."""
    seen, found = set(), {name}
    while found - seen:
        seen |= found
        found |= {detail.split(" of system ")[0] for column, detail in mapped if column in seen}
    return seen


def test_every_column_and_row_of_a_table_is_kept_mapped_or_left_out(shared):
    passages = shared / "data/score_tables/open_rag_eval_responses_bom.csv"
    for path in [*tables(shared), passages]:
        frame = (read_cases if path == passages else read_scores)(path)
        told = frame.attrs["lossy"]
        words = {"mapped", "made", "clipped", "kept", "unparsed", "left_out", "bad_line"}
        assert {row["what"] for row in told} <= words
        assert all(row["n"] > 0 and row["detail"] for row in told)
        mapped = [(row["column"], row["detail"]) for row in told if row["what"] == "mapped"]
        mapped += [("sample_id", "row_id") for row in told if row["detail"].endswith(": row_id")]
        left = [
            row["column"] for row in told if row["what"] == "left_out" and row["column"] is not None
        ]
        header, rows = rows_of(path, bare=())
        assert sorted(left) == sorted(name for name in header if name in ("", "...")), path
        arrived = set().union(*(follow(name, mapped) for name in header)) & set(frame.columns)
        assert all(follow(name, mapped) & arrived for name in header if name not in left), path
        made = {row["column"] for row in told if row["what"] == "made"}
        systems = {"system"} if frame.attrs["source"]["layout"] == "haystack" else set()
        assert set(frame.columns) == arrived | made | systems, path
        read = len(rows) - sum(
            row["n"] for row in told if row["what"] == "left_out" and row["column"] is None
        )
        folded = [row["n"] for row in told if "folded to one row a sample" in row["detail"]]
        assert (
            folded == [read] if path == passages else read * (2 if systems else 1) == len(frame)
        ), path


@pytest.mark.parametrize("number", TRULENS_TOTALS)
def test_totals_are_refused_in_words(shared, number):
    (path,) = (shared / "data/score_tables/trulens_records").glob(f"{number}_*.csv")
    with pytest.raises(
        RagnbError,
        match=r"is a table of totals, one row per system .*: each row has another app_|"
        r"totals or answers\? .* no question and no sample id",
    ):
        read_scores(path)


def test_systems_side_by_side_become_rows(shared):
    path = shared / "data/score_tables/haystack_native/comparative_scores.csv"
    frame = read_scores(path)
    header, rows = rows_of(path)
    for system in ("baseline_rag", "hyde_rag"):
        part = frame[frame["system"] == system]
        for theirs, ours in [
            ("metric_sas", "semantic_similarity"),
            ("metric_answer_faithfulness", "faithfulness"),
            ("metric_context_relevance", "context_relevance"),
        ]:
            at = header.index(f"{system}_{theirs}")
            assert part[ours].tolist() == [float(row[at]) for row in rows]
        assert part["answer"].tolist() == [row[header.index(f"{system}_responses")] for row in rows]
        assert part["sample_id"].tolist() == [str(i + 1) for i in range(len(rows))]


def test_float32_cosines_of_haystack_have_the_mean_of_plain_pandas(shared):
    path = shared / "data/tool_files/haystack_squad_detailed_top_k=1_chunk_size=10.csv"
    frame = read_scores(path)
    theirs = pd.read_csv(path)["sas"]
    assert theirs.max() > 1
    clipped = [row["n"] for row in frame.attrs["lossy"] if row["what"] == "clipped"]
    assert clipped == [int((theirs > 1).sum())]
    means = rn.weighted_means(frame).set_index("metric")["value"]
    assert means["semantic_similarity"] == pytest.approx(theirs.mean(), abs=1e-6)
    assert means["weighted_score"] == pytest.approx(theirs.clip(-1, 1).mean(), abs=1e-12)


def test_runs_of_a_query_are_answers_of_their_own(shared):
    path = shared / "data/tool_files/open_rag_eval_results.csv"
    frame = read_cases(path)
    theirs = pd.read_csv(path, dtype=str)
    assert frame["answer"].tolist() == theirs["generated_answer"].dropna().tolist()
    passages = theirs.groupby(["query_id", "query_run"], sort=False)["passage"].agg(list).tolist()
    assert frame["retrieved_contexts"].tolist() == passages
    assert frame[["sample_id", "repeat"]].drop_duplicates().shape == (7, 2)


def test_passages_of_ragchecker_keep_their_documents(shared):
    path = shared / "data/tool_files/ragchecker_checking_outputs.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["results"]
    frame = read_cases(path)
    for column, key in (("retrieved_contexts", "text"), ("retrieved_doc_names", "doc_id")):
        assert frame[column].tolist() == [
            [passage[key] for passage in row["retrieved_context"]] for row in rows
        ]


def test_rows_of_passages_load_as_cases(shared):
    path = shared / "data/score_tables/open_rag_eval_responses_bom.csv"
    frame = read_cases(path)
    _, rows = rows_of(path)
    passages: dict[str, list[str]] = {}
    for sample, _, _, passage, _ in rows:
        passages.setdefault(sample, []).append(passage)
    assert dict(zip(frame["sample_id"], frame["retrieved_contexts"], strict=True)) == passages
    assert frame["answer"].tolist() == [row[4] for row in rows if row[4]]
    with pytest.raises(RagnbError, match="read_cases"):
        read_scores(path)


def test_declared_metrics_of_the_northwind_runs_load_as_the_csv_module_reads_them(shared):
    path = shared / "data/scores/scores_azure_northwind.csv"
    metrics = [
        Metric("gpt_groundedness", 1, 5),
        Metric("gpt_relevance", 1, 5),
        Metric("has_citation", kind="binary"),
    ]
    frame = read_scores(path, metrics=metrics)
    header, rows = rows_of(path)
    for name in ("gpt_groundedness", "gpt_relevance"):
        assert frame[name].tolist() == [float(row[header.index(name)]) for row in rows]
    words = Counter(row[header.index("has_citation")] for row in rows)
    assert (frame["has_citation"].sum(), frame["has_citation"].isna().sum()) == (
        words["True"],
        words[""],
    )
    assert frame["system"].value_counts().to_dict() == Counter(
        row[header.index("run")] for row in rows
    )


def test_cases_have_the_patterns_that_were_counted(shared):
    folder = shared / "data/cases"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    frame = read_cases(folder / "evalcases.jsonl.gz")
    assert len(frame) == expected["n"]
    assert frame["doc_name"].value_counts().to_dict() == expected["by_source"]
    fields = list(expected["field_nonempty"])
    nonempty = {
        name: int(frame[name].map(lambda v: hasattr(v, "__len__") and len(v) > 0).sum())
        for name in fields
    }
    assert nonempty == expected["field_nonempty"]
    lists = [name for name in fields if name.endswith("contexts")]
    with gzip.open(folder / "evalcases.jsonl.gz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    for name in fields:
        values = frame[name].astype(object).where(frame[name].notna(), None).tolist()
        assert values == [record.get(name) for record in records], name
    applies = applicable_metrics(frame).query("applies").set_index("metric")["n_cases"]
    empty = expected["missing_patterns"]["ground_truth_contexts+retrieved_contexts=[]"]
    assert empty == sum(record.get("retrieved_contexts") == [] for record in records)
    assert applies["context_precision"] == expected["missing_patterns"]["complete"] + 60
    assert applies["faithfulness"] == sum(
        bool(r.get("answer")) and r.get("retrieved_contexts") is not None for r in records
    )
    assert lists == ["ground_truth_contexts", "retrieved_contexts"]


def test_traces_and_gold_hold_what_the_json_module_reads(shared):
    n = 0
    for path in sorted((shared / "data/traces").rglob("*.json*")):
        if path.name == "expected.json" or path.suffix == ".md":
            continue
        n += 1
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = data.decode("utf-8")
        if path.suffix == ".json":
            records = json.loads(text)
            frame = read_gold(path)
            assert frame["answerable"].tolist() == [r["answerable"] for r in records]
            assert frame["gold_ids"].tolist() == [r["gold_ids"] for r in records]
        else:
            records = [json.loads(line) for line in text.split("\n") if line]
            frame = read_traces(path)
            assert frame["answer"].tolist() == [r["answer"] for r in records]
            assert frame["chunks"].tolist() == [r["chunks"] for r in records]
            assert ("citations" in frame) == any("citations" in r for r in records)
        assert frame["question"].tolist() == [r["q"] for r in records]
        if "qid" in records[0]:
            assert frame["sample_id"].tolist() == [r["qid"] for r in records]
        assert not [
            row
            for row in frame.attrs["lossy"]
            if row["what"] in ("bad_line", "unparsed", "left_out")
        ]
        assert frame.attrs["source"]["rows"] == len(records)
    assert n == 11
