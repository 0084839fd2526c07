"""The small files of shared/data/meaning, each of a kind that was misread: what they mean, by json and csv."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pandas as pd
import pytest
from meaning import (
    BLOCKED,
    first_sentences,
    holds_mean,
    line_works,
    lost_cells,
    pasted,
    proposed_options,
    ragnb,
    row_of,
    systems_of,
    text_of,
)

import ragnb as rn
from ragnb.errors import RagnbError

pytestmark = pytest.mark.filterwarnings("ignore::ragnb.errors.RagnbWarning")
FAITHFUL = 'gates=[{name: faithful, metric: faithfulness, op: ">=", threshold: 0.8}]'

# What the judge of c22 would answer where a card asks.
JUDGED = {"correctness": "higher", "readability": "higher"}
TEN_POINTS = dict.fromkeys(("correctness", "readability", "faithfulness"), (0, 10))


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "data" / "meaning"


def table(path, **options):
    with path.open(encoding=options.pop("encoding", "utf-8"), newline="") as file:
        return list(csv.DictReader(file, **options))


def column(rows, name):
    return [row[name] for row in rows]


def test_every_file_of_the_folder_has_a_test(folder):
    files = {path.name for path in folder.iterdir()} - {"README.md"}
    source = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in files if name not in source} == set()


@pytest.mark.parametrize(
    ("file", "better", "code"),
    [
        ("c01_deepeval_hallucination.json", "lower", 1),
        ("c01b_deepeval4_hallucination.json", "higher", 0),
    ],
)
def test_success_beside_score_and_threshold_tells_the_direction(folder, file, better, code):
    run = json.loads((folder / file).read_text(encoding="utf-8"))
    data = [case["metricsData"][0] for case in run["testCases"]]
    passed = {metric["success"] for metric in data}
    assert passed == {better == "higher"}
    assert all(metric["score"] > metric["threshold"] for metric in data)

    sheet = rn.assess(folder / file)
    row = holds_mean(sheet, "Hallucination", (metric["score"] for metric in data))
    assert row["better"] == better
    gate = sheet.gates.set_index("metric").loc["Hallucination"]
    assert gate["op"] == {"lower": "<=", "higher": ">="}[better]
    assert gate["threshold"] == data[0]["threshold"]
    assert gate["outcome"] == ("pass" if passed == {True} else "fail")
    exit_code, said = ragnb("check", folder / file)
    assert exit_code == code, said
    assert said.startswith("Ready") == (code == 0)
    card = text_of(folder / file)
    assert f"{better} is better" in card
    assert "success" in card  # the evidence


def test_french_text_of_windows_is_read_as_such(folder):
    path = folder / "c03_french_cp1252.csv"
    rows = table(path, encoding="cp1252", delimiter=";")[:-1]  # the last is the mean of the others
    with pytest.raises(RagnbError):
        rn.inspect_file(path)
    proposed = proposed_options(text_of(path))
    assert "encoding=cp1252" in proposed
    assert "encoding=gb18030" not in proposed
    said = ragnb("check", path, "-p", "encoding=cp1252")[1]
    assert not said.startswith("ragnb:"), said
    sheet = pasted(rn.inspect_file(path, encoding="cp1252"))
    for metric in ("faithfulness", "answer_relevancy"):
        numbers = [cell.replace(",", ".") for cell in column(rows, metric)]
        holds_mean(sheet, metric, numbers)
    assert sheet.scores["question"].tolist() == column(rows, "question")


def test_totals_with_a_selection_of_the_worst_are_refused_by_name(folder):
    path = folder / "c05_aggregate_failures.json"
    with pytest.raises(RagnbError) as error:
        rn.assess(path)
    for said in (str(error.value), text_of(path)):
        assert "totals" in said
        assert "aggregate" in said
        assert "failures" in said
    assert ragnb("check", path)[0] == 2


def test_questions_that_repeat_for_each_config_are_systems(folder):
    path = folder / "c07_question_id_config.csv"
    groups = defaultdict(list)
    for row in table(path):
        groups[row["config"]].append(row)
    sheet = pasted(rn.inspect_file(path), {"citation_accuracy": "higher"})
    assert sorted(systems_of(sheet)) == sorted(groups)
    for system, rows in groups.items():
        holds_mean(sheet, "answer_correctness", column(rows, "answer_correctness"), system)
    assert fmean(float(x) for x in column(groups["c0_naive"], "answer_correctness")) == 0.175
    assert row_of(sheet, "answer_correctness", "c1_rewrite")["value"] == pytest.approx(0.85)


def test_a_filled_error_column_means_that_the_scores_failed(folder):
    path = folder / "c09_error_column.csv"
    rows = table(path)
    failed = sum(row["error"] != "" for row in rows)
    sheet = rn.assess(path)
    for metric, name in (
        ("answer_relevancy", "Answer Relevancy"),
        ("faithfulness", "Faithfulness"),
    ):
        assert holds_mean(sheet, metric, column(rows, name))["n_failed"] == failed == 8
    gate = sheet.gates.set_index("gate").loc["scored_cells"]
    assert gate["value"] == pytest.approx(12 / 20)
    assert gate["blocks"]
    code, said = ragnb("check", path)
    assert code in BLOCKED
    assert "8 of 20" in first_sentences(said)


def test_no_metric_leaves_the_total_without_a_word(folder):
    path = folder / "c11_retrieval_three.parquet"
    frame = pd.read_parquet(path)
    means = {name: frame[f"retrieval_{name}"].mean() for name in ("f1", "recall", "precision")}
    sheet = rn.assess(path)
    total = row_of(sheet, "weighted_score")["value"]
    everything = total == pytest.approx(fmean(means.values()))
    said = [line for line in ragnb("check", path)[1].splitlines() if "Overall score" in line]
    assert everything or "recall" in said[0].lower()
    for name, mean in means.items():
        assert row_of(sheet, f"retrieval_{name}")["value"] == pytest.approx(mean)


def test_the_line_of_a_card_for_input_text_and_documents_works(folder):
    path = folder / "c14_input_text_documents.csv"
    card = rn.inspect_file(path)
    sheet = pasted(card)
    line_works(card)
    rows = table(path)
    assert sheet.scores["question"].tolist() == column(rows, "input_text")
    passages = [list(passages) for passages in sheet.scores["retrieved_contexts"]]
    assert passages == [[row["context"]] for row in rows]


@pytest.mark.parametrize(
    ("file", "gold"),
    [("c15_expected_answer.json", "expected_answer"), ("c15b_gold_answer.csv", "gold_answer")],
)
def test_reference_answers_of_other_names_are_found(folder, file, gold):
    path = folder / file
    rows = table(path) if path.suffix == ".csv" else json.loads(path.read_text("utf-8"))
    cases = rn.read_cases(path)
    assert cases["ground_truth_answer"].tolist() == column(rows, gold)
    assert rn.inspect_file(path).columns[gold] == "ground_truth_answer"
    if "model_answer" in rows[0]:
        assert cases["answer"].tolist() == column(rows, "model_answer")


def test_a_run_without_most_of_its_scores_is_not_ready(folder):
    path = folder / "c17_ragas_mostly_blank.csv"
    cells = column(table(path), "faithfulness")
    scores = [float(cell) for cell in cells if cell]
    code, said = ragnb("check", path, "-p", FAITHFUL)
    assert code in BLOCKED
    assert not said.startswith("Ready")
    assert f"{len(cells) - len(scores)} of {len(cells)}" in first_sentences(said)
    worst_case = sum(scores) / len(cells)  # every lost answer unfaithful
    assert f"{worst_case:.3f}" in said
    assert row_of(rn.assess(path), "faithfulness")["n_missing"] == 240


def test_scores_of_chunks_belong_to_their_retriever(folder):
    path = folder / "c21_per_chunk_scores.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    card = rn.inspect_file(path)
    assert card.kind == "scores"
    sheet = pasted(card)
    assert sorted(systems_of(sheet)) == ["bm25", "dense"]
    for system in systems_of(sheet):
        own = [row for row in rows if row["retriever"] == system]
        assert len(own) == 40
        for metric in ("faithfulness", "context_precision", "context_recall"):
            holds_mean(sheet, metric, column(own, metric), system)


def test_a_known_name_on_another_scale_is_declared_by_the_card(folder):
    path = folder / "c22_faithfulness_0to10.csv"
    rows = table(path)
    card = rn.inspect_file(path)
    sheet = pasted(card, JUDGED, TEN_POINTS)
    for system in ("m-rag", "m-plain"):
        own = [row for row in rows if row["model"] == system]
        holds_mean(sheet, "correctness", column(own, "correctness"), system)
    rag = [row["faithfulness"] for row in rows if row["model"] == "m-rag"]
    row = holds_mean(sheet, "faithfulness", rag, "m-rag")
    assert row["range_high"] == 10  # of the same judge's correctness, which reaches 9
    line_works(card)


def test_pass_and_fail_are_scores(folder):
    path = folder / "c24_pass_fail.csv"
    verdicts = [row["passed"] == "PASS" for row in table(path)]
    sheet = pasted(rn.inspect_file(path), {"passed": "higher"})
    row = holds_mean(sheet, "passed", verdicts)
    assert (row["value"], row["n"]) == (0.75, 20)


def test_verdicts_in_words_calibrate_a_judge(folder):
    path = folder / "c27_pass_fail_labels.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    same = sum(row["human_label"] == row["judge_label"] for row in rows)
    assert (same, len(rows)) == (33, 40)
    assert rn.inspect_file(path).kind == "ratings"
    ratings = rn.read_ratings(path)
    assert (ratings["judge"] == ratings["human"]).sum() == same
    code, said = ragnb("calibrate", path)
    if code == 2 and "tolerance" in said:  # a refusal that leads on
        assert "such as 0.1" in said
        code, said = ragnb("calibrate", path, "--tolerance", "0.1")
    assert code in (0, 1, 3), said
    assert f"{same} of {len(rows)}" in said or "82.5" in said or "0.825" in said


def test_a_run_that_lost_the_hard_questions_is_not_the_same(folder):
    new, base = folder / "c29_new_lost_hard.csv", folder / "c29_base.csv"
    lost = set(column(table(base), "question")) - set(column(table(new), "question"))
    assert len(lost) == 12
    code, said = ragnb("compare", new, base, "--gate")
    assert code != 0
    assert "12 of 60" in said or "48 of 60" in said


def test_each_chunk_size_is_a_system(folder):
    path = folder / "c34_settings_chunk.csv"
    groups = defaultdict(list)
    for row in table(path):
        groups[row["chunk_size"]].append(row)
    sheet = pasted(rn.inspect_file(path))
    assert len(systems_of(sheet)) == len(groups) == 3
    for size, rows in groups.items():
        [system] = [system for system in systems_of(sheet) if size in str(system)]
        holds_mean(sheet, "faithfulness", column(rows, "faithfulness"), system)
        holds_mean(sheet, "answer_relevancy", column(rows, "answer_relevancy"), system)


def test_no_file_of_the_folder_is_lost_silently(folder):
    """What a card does not use of a file it names, so that nothing is simply gone."""
    for path in sorted(folder.glob("c*.csv")):
        encoding = "cp1252" if "cp1252" in path.name else "utf-8"
        names = path.read_text(encoding=encoding).splitlines()[0].replace(";", ",").split(",")
        shown = str(rn.inspect_file(path, encoding=None if encoding == "utf-8" else encoding))
        assert [name for name in names if name not in shown] == [], path.name


def test_lost_cells_of_a_system_without_the_metric_are_counted(folder):
    """Half the rows of c22 have no faithfulness: nothing says why, so they are lost, of that system alone."""
    sheet = pasted(rn.inspect_file(folder / "c22_faithfulness_0to10.csv"), JUDGED, TEN_POINTS)
    means = sheet.means[sheet.means["metric"] == "faithfulness"].set_index("system")
    assert lost_cells(means.loc["m-rag"]) == 0
    assert lost_cells(means.loc["m-plain"]) == 20
