"""Write expected.json: what each file contains, read with json and pandas alone.

    python make/expected.py

An evaluation that raised an error is failed and has no part in the mean; a row without a score has no part in n.
Which direction is better is what the tool's own verdicts say, or the file; where neither says it, what the metric
counts: all metrics of `scores.py` count what is right. `passed` is the number of rows that the tool itself passed.
"""

from __future__ import annotations

import ast
import json
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from questions import FOLDER


class Score(NamedTuple):
    """A score of a row: its metric, and what the tool says of it."""

    metric: str
    value: Any
    threshold: float | None = None
    passed: bool | None = None
    better: str = "higher"


Read = tuple[int, Iterable[Score | tuple[str, Any, float | None]]]  # rows, and their scores
ZSTANDARD = 93
FAILED, NOT_APPLICABLE = "failed", "not applicable"
TOTALS, NOT_RESULTS = {"totals": True}, {"not_results": True}


def summary(count: int, scores: Iterable[Score | tuple[str, Any, float | None]]) -> dict[str, Any]:
    """Return what is expected of each metric; None is a row without a score."""
    rows = defaultdict(list)
    for given in scores:
        score = Score(*given)
        rows[score.metric].append(score)
    metrics = {}
    for name, given in rows.items():
        values = [row.value for row in given if row.value not in (None, FAILED, NOT_APPLICABLE)]
        numbers = pd.Series([float(x) for x in values], dtype=float).dropna()
        verdicts = [row.passed for row in given if row.passed is not None]
        metrics[name] = {
            "mean": None if numbers.empty else round(float(numbers.mean()), 12),
            "n": len(numbers),
            "failed": sum(row.value == FAILED for row in given),
            "not_applicable": sum(row.value == NOT_APPLICABLE for row in given),
            "threshold": given[-1].threshold,
            "better": direction(given),
            "passed": sum(verdicts) if verdicts else None,
        }
    return {"rows": count, "metrics": metrics}


def direction(rows: list[Score]) -> str:
    """Return which direction is better by the tool's verdicts, where they tell; else by what the rows say."""
    judged = [
        row for row in rows if None not in (row.passed, row.threshold) and row.value != FAILED
    ]
    as_higher = all((row.value >= row.threshold) == row.passed for row in judged)
    as_lower = all((row.value <= row.threshold) == row.passed for row in judged)
    if judged and as_higher != as_lower:
        return "higher" if as_higher else "lower"
    return rows[0].better


def load(path: Path) -> Any:
    """Load a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def deepeval(path: Path) -> Read:
    """Read a test run of DeepEval."""
    run = load(path)
    cases = run.get("testRunData", run)["testCases"]
    data = [metric for case in cases for metric in case["metricsData"]]
    return len(cases), [
        Score(
            m["name"],
            FAILED if "error" in m else m["score"],
            m.get("threshold"),
            None if "error" in m else m.get("success"),
        )
        for m in data
    ]


def promptfoo(path: Path) -> Read:
    """Read the results of promptfoo; a provider's error fails every metric of the row."""
    if path.suffix == ".jsonl":
        results = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    else:
        results = load(path)["results"]["results"]
    thresholds = {a["metric"]: a.get("threshold") for a in results[0]["testCase"]["assert"]}
    scores: list[tuple[str, Any, float | None]] = []
    for result in results:
        if result["gradingResult"] is None:
            scores += [(name, FAILED, threshold) for name, threshold in thresholds.items()]
            continue
        for part in result["gradingResult"]["componentResults"]:
            name, error = (
                part["assertion"]["metric"],
                part["reason"].startswith("Error running Python script"),
            )
            scores.append((name, FAILED if error else part["score"], thresholds[name]))
    return len(results), scores


def promptfoo_csv(path: Path) -> Read:
    """Read a table of promptfoo, where an assertion's error is 0.00; two systems begin the names of metrics."""
    table = pd.read_csv(path)
    several = "Status.1" in table
    scores: list[tuple[str, Any, float | None]] = []
    system = ""
    for column in table:
        name, dot, number = column.partition(".")
        if name.startswith("["):
            system = f"{name[1:].split(']')[0]}: " if several else ""
        if name.startswith("Metric: "):
            name = system + name.removeprefix("Metric: ")
            failed = table["Status" + dot + number] == "ERROR"
            given = table[column].astype(object).where(~failed, FAILED)
            scores += [(name, value, None) for value in given]
    return len(table), scores


def inspect(path: Path) -> Read:
    """Read a log of Inspect, a row per sample and epoch; a score that is missing after an error is failed."""
    archive = zipfile.ZipFile(path) if path.suffix == ".eval" else None
    if archive and archive.infolist()[0].compress_type == ZSTANDARD and sys.version_info < (3, 14):
        return inspect(path.with_suffix(".json"))  # the same log
    if archive:
        with archive:
            header = json.loads(archive.read("header.json"))
            samples = [
                json.loads(archive.read(n)) for n in archive.namelist() if n.startswith("samples/")
            ]
    else:
        header = load(path)
        samples = header["samples"]
    names = [scorer["name"] for scorer in header["eval"]["scorers"]]
    scores: list[tuple[str, Any, float | None]] = []
    for sample in samples:
        for name in names:
            lost = name not in sample["scores"] and sample.get("error")
            scores.append((name, FAILED if lost else letter(sample["scores"][name]["value"]), None))
    return len(samples), scores


def inspect_samples(path: Path) -> Read:
    """Read the table of samples; C and I are 1 and 0."""
    table = pd.read_csv(path)
    scores: list[tuple[str, Any, float | None]] = []
    for column in table.filter(like="score_"):
        for value, error in zip(table[column], table["error"], strict=True):
            lost = pd.isna(value) and not pd.isna(error)
            scores.append((column, FAILED if lost else letter(value), None))
    return len(table), scores


def letter(value: Any) -> Any:
    """Return the number for correct and incorrect, and any other value as it is."""
    return {"C": 1.0, "I": 0.0}.get(value, value)


def mlflow(path: Path) -> Read:
    """Read a table of mlflow.genai.evaluate: an empty value beside an error message is failed."""
    table = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}[path.suffix[1:]](
        path
    )
    scores: list[tuple[str, Any, float | None]] = []
    for column in table.filter(regex="/value$").columns.drop("expected_response/value"):
        name = column.removesuffix("/value")
        errors = table.get(f"{name}/error_message", pd.Series(index=table.index, dtype=object))
        for value, error in zip(table[column], errors, strict=True):
            number = {"yes": 1.0, "no": 0.0}.get(value, value)
            scores.append((name, FAILED if pd.isna(value) and not pd.isna(error) else number, None))
    return len(table), scores


def mlflow_legacy(path: Path) -> Read:
    """Read eval_results_table.json: columns and data."""
    table = pd.DataFrame(**load(path))
    return len(table), [
        (c, value, None) for c in table.filter(regex="/score$") for value in table[c]
    ]


def langsmith(path: Path) -> Read:
    """Read to_pandas(): an empty score is one whose evaluator raised an error, of which the table says nothing."""
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_json(path, lines=True)
    words = {"contained": 1.0, "not contained": 0.0}
    scores: list[tuple[str, Any, float | None]] = []
    for column in table.filter(like="feedback."):
        scores += [(column, FAILED if pd.isna(x) else words.get(x, x), None) for x in table[column]]
    return len(table), scores


def trulens(path: Path) -> Read:
    """Read records with feedback; an empty score is one whose metric raised an error."""
    table = pd.read_csv(path)
    names = [column.removesuffix("_calls") for column in table.filter(regex="_calls$")]
    lower = [name for name in names if not table.get(f"{name} direction", pd.Series([True]))[0]]
    return len(table), [
        Score(name, FAILED if pd.isna(x) else x, better="lower" if name in lower else "higher")
        for name in names
        for x in table[name]
    ]


def ragas(path: Path) -> Read:
    """Read a table of ragas; an empty score is one whose metric raised an error, pass and fail are 1 and 0."""
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_json(path)
    texts = {"user_input", "retrieved_contexts", "reference_contexts", "response", "reference"}
    texts |= {"sample_id", "question", "answer", "context_support_reason"}
    scores: list[tuple[str, Any, float | None]] = []
    for column in table.columns.drop(list(texts & set(table))):
        numbers = [{"pass": 1.0, "fail": 0.0}.get(x, x) for x in table[column]]
        scores += [(column, FAILED if pd.isna(x) else x, None) for x in numbers]
    return len(table), scores


def phoenix(path: Path) -> Read:
    """Read a table with dictionaries of scores and of details, whose status is FAILED after an error."""
    table = pd.read_json(path, lines=True) if path.suffix == ".jsonl" else pd.read_csv(path)
    scores: list[tuple[str, Any, float | None]] = []
    for column in table.filter(regex="_score$"):
        name = column.removesuffix("_score")
        for cell, text in zip(table[column], table[f"{name}_execution_details"], strict=True):
            given = ast.literal_eval(cell) if isinstance(cell, str) else cell
            details = ast.literal_eval(text) if isinstance(text, str) else text
            value = given["score"] if isinstance(given, dict) else None
            lower = isinstance(given, dict) and given["direction"] == "minimize"
            failed = details["status"] == "FAILED"
            better = "lower" if lower else "higher"
            scores.append(Score(name, FAILED if failed else value, better=better))
    return len(table), scores


def phoenix_annotations(path: Path) -> Read:
    """Read a row per score; an empty score is one whose evaluator raised an error."""
    table = pd.read_csv(path)
    rows = zip(table["annotation_name"], table["score"], table["metadata"], strict=True)
    return table["span_id"].nunique(), [
        Score(name, FAILED if pd.isna(x) else x, better="lower" if "minimize" in said else "higher")
        for name, x, said in rows
    ]


AZURE_METRICS = (
    "f1.f1_score",
    "overlap.token_overlap",
    "exact.output",
    "support.output",
    "groundedness.groundedness",
    "relevance.relevance",
)


def azure(path: Path) -> Read:
    """Read the rows of evaluate(); NaN is an evaluator's error, unless its status is skipped."""
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    else:
        rows = load(path)["rows"]
    table = pd.DataFrame(rows)
    scores: list[tuple[str, Any, float | None]] = []
    for name in AZURE_METRICS:
        if f"outputs.{name}" not in table:
            continue
        thresholds = table.get(f"outputs.{name}_threshold", pd.Series(dtype=float)).dropna()
        threshold = None if thresholds.empty else float(thresholds.iloc[0])
        empty = pd.Series([None] * len(table))
        results = table.get(f"outputs.{name}_result", empty)
        states = table.get(f"outputs.{name}_status", empty)
        for value, result, state in zip(table[f"outputs.{name}"], results, states, strict=True):
            verdict = result == "pass" if result in ("pass", "fail") else None
            if pd.isna(value):
                value = NOT_APPLICABLE if state == "skipped" else FAILED
            scores.append(Score(name, value, threshold, verdict))
    return len(table), scores


HAYSTACK_METRICS = (
    "context_support",
    "document_mrr",
    "document_recall",
    "exact_match",
    "token_overlap",
)


def haystack(path: Path) -> Read:
    """Read a detailed report; nan is an error. In a comparison the system begins the name of each column."""
    table = pd.read_csv(path)
    scores: list[tuple[str, Any, float | None]] = []
    systems = set()
    for column in table:
        name = next((name for name in HAYSTACK_METRICS if column.endswith(name)), None)
        if name is None:
            continue
        system = column.removesuffix(name).rstrip("_")
        systems.add(system)
        name = f"{system}: {name}" if system else name
        scores += [(name, FAILED if pd.isna(x) else x, None) for x in table[column]]
    return len(table) * len(systems), scores


def llama_index(path: Path) -> Read:
    """Read the results of each metric; an invalid result is failed."""
    if path.suffix == ".csv":
        table = pd.read_csv(path)
        pairs = zip(table["score"], table["invalid_result"], strict=True)
        return len(table), [
            ("token_overlap", FAILED if invalid else x, None) for x, invalid in pairs
        ]
    found = load(path)
    pairs = [(name, result) for name, given in found.items() for result in given]
    scores = [(name, FAILED if r["invalid_result"] else r["score"], None) for name, r in pairs]
    return max(map(len, found.values())), scores


RAGCHECKER_LOWER = ("noise_sensitivity_in_", "hallucination", "self_knowledge")


def ragchecker(path: Path) -> Read:
    """Read the results; the totals beside them are percentages."""
    results = load(path)["results"]
    return len(results), [
        Score(name, x, better="lower" if name.startswith(RAGCHECKER_LOWER) else "higher")
        for result in results
        for name, x in result["metrics"].items()
    ]


def ir_measures(path: Path) -> Read:
    """Read a score a row; the rows of "all" are totals."""
    names = ["query_id", "measure", "value"]
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_csv(path, sep="\t", names=names)
    table = table[table["query_id"] != "all"]
    pairs = zip(table["measure"], table["value"], strict=True)
    return table["query_id"].nunique(), [(name, value, None) for name, value in pairs]


def autorag(path: Path) -> Read:
    """Read the scores of a module; the texts of the questions are in another file."""
    table = pd.read_parquet(path)
    names = table.columns[[pd.api.types.is_float_dtype(kind) for kind in table.dtypes]]
    return len(table), [(name, x, None) for name in names for x in table[name]]


def lm_eval(path: Path) -> Read:
    """Read the samples of a task, whose metrics are named in each."""
    samples = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return len(samples), [
        (name, sample[name], None) for sample in samples for name in sample["metrics"]
    ]


def log(path: Path) -> dict[str, Any]:
    """Return what a log of answers contains: rows, answers, rows that failed, passages."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines() if path.suffix == ".jsonl" else []
    rows = [json.loads(line) for line in lines] or json.loads(text)
    seen = [answer_of(row) for row in rows]
    return {
        "log": True,
        "rows": len(rows),
        "answers": sum(answer is not None for answer, _, _ in seen),
        "failed": sum(failed for _, failed, _ in seen),
        "passages": [len(passages) for _, _, passages in seen],
    }


def answer_of(row: dict[str, Any]) -> tuple[str | None, bool, list[str]]:
    """Return the answer of a row, whether it failed, and its passages."""
    if "messages" in row:
        last = row["messages"][-1]
        answer = last["content"] if last["role"] == "assistant" else None
        found = [json.loads(m["content"]) for m in row["messages"] if m["role"] == "tool"]
        return answer, row["error"] is not None, [part["text"] for given in found for part in given]
    if "steps" in row:
        documents = [part for step in row["steps"] for part in step.get("documents", [])]
        return row["output"], row["status"] >= 400, [part["page_content"] for part in documents]
    return row["response"], False, [node["node"]["text"] for node in row["source_nodes"]]


READERS: list[tuple[str, Callable[[Path], Any] | dict[str, bool]]] = [
    ("deepeval_*_cache.json", NOT_RESULTS),
    ("deepeval_*_link.json", NOT_RESULTS),
    ("deepeval_*.json", deepeval),
    ("promptfoo_*.json*", promptfoo),
    ("promptfoo_*.csv", promptfoo_csv),
    ("inspect_*_log.*", inspect),
    ("inspect_*_samples_df.csv", inspect_samples),
    ("inspect_*_evals_df.csv", TOTALS),
    ("mlflow_*_result_df.*", mlflow),
    ("langsmith_*", langsmith),
    ("lm_eval_*_results.json", TOTALS),
    ("lm_eval_*_samples_*.jsonl", lm_eval),
    ("autorag_*_qa.parquet", NOT_RESULTS),
    ("autorag_*_summary.csv", TOTALS),
    ("autorag_*", autorag),
    ("trec_*", NOT_RESULTS),
    ("ir_measures_*_aggregate.csv", TOTALS),
    ("ir_measures_*", ir_measures),
    ("ragchecker_*", ragchecker),
    ("chat_log_*.jsonl", log),
    ("llama_index_*_responses.json", log),
    ("llama_index_*_responses.csv", {"reprs": True}),
    ("llama_index_*_results_df.csv", TOTALS),
    ("llama_index_*", llama_index),
    ("haystack_*_aggregated_report.csv", TOTALS),
    ("haystack_*_detailed_report.csv", haystack),
    ("azure_*", azure),
    ("phoenix_evals_*_annotations.csv", phoenix_annotations),
    ("phoenix_evals_*", phoenix),
    ("ragas_*", ragas),
    ("trulens_*_records.csv", trulens),
    ("trulens_*_leaderboard.csv", TOTALS),
    ("mlflow_*_eval_results_table.json", mlflow_legacy),
]

if __name__ == "__main__":
    found: dict[str, Any] = {}
    for pattern, reader in READERS:
        for path in sorted(FOLDER.glob(pattern)):
            if path.name not in found:
                content = reader if isinstance(reader, dict) else reader(path)
                found[path.name] = content if isinstance(content, dict) else summary(*content)
    others = {path.name for path in FOLDER.iterdir() if path.is_file()} - {
        "README.md",
        "expected.json",
    }
    if unread := others - set(found):
        raise SystemExit(f"no reader for {sorted(unread)}")
    text = json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False)
    (FOLDER / "expected.json").write_text(text + "\n", encoding="utf-8")
