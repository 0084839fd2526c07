"""Tables of scores as people have them, by kind: other names, languages and tools than any file we own.

Each row of a parametrised test is a shape met in public repositories, with contents made here; the right reading
is computed by a plain loop. Where a number and a refusal that leads on are both right, both are allowed.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict

import pandas as pd
import pytest
from meaning import (
    BLOCKED,
    first_sentences,
    holds_mean,
    line_works,
    lost_cells,
    pasted,
    ragnb,
    row_of,
    systems_of,
    text_of,
    write,
    write_json,
)

import ragnb as rn
from ragnb.errors import RagnbError

pytestmark = pytest.mark.filterwarnings("ignore::ragnb.errors.RagnbWarning")
TOPICS = [
    "the pump",
    "the valve",
    "leave",
    "payday",
    "the warranty",
    "parking",
    "the badge",
    "noise",
]
FAITHFUL = 'gates=[{name: faithful, metric: faithfulness, op: ">=", threshold: 0.8}]'


def question(number):
    return f"What does rule {number + 1} say about {TOPICS[number % len(TOPICS)]}?"


def answers(count, **columns):
    """Rows with a question and an answer each; a column is a list, or a function of the row's number."""
    rows = []
    for number in range(count):
        row = {"question": question(number), "answer": f"It allows {number + 2} days."}
        for name, cells in columns.items():
            row[name] = cells(number) if callable(cells) else cells[number % len(cells)]
        rows.append(row)
    return rows


# 1. Lost scores


@pytest.mark.parametrize("blank", ["", "NaN", "nan", "None", "null", "-", "#N/A", "N/A"])
def test_a_blank_cell_without_a_reason_is_lost(tmp_path, blank):
    cells = [blank if number % 5 < 2 else "0.9" for number in range(50)]
    path = write(tmp_path / "scores.csv", answers(50, faithfulness=cells))
    sheet = rn.assess(path)
    row = row_of(sheet, "faithfulness")
    assert (row["n"], lost_cells(row)) == (30, 20)
    code, said = ragnb("check", path, "-p", FAITHFUL)
    assert code in BLOCKED
    assert "20 of 50" in first_sentences(said)


@pytest.mark.parametrize(
    ("question_name", "metric"),
    [("Frage", "faithfulness"), ("问题", "context_recall"), ("user_input", "answer_relevancy")],
)
def test_losing_the_bad_scores_never_makes_a_run_ready(tmp_path, question_name, metric):
    rows = [
        {
            question_name: question(number),
            "response": "Ten days.",
            metric: 0.96 if number % 3 else 0.2,
        }
        for number in range(90)
    ]
    gate = f'gates=[{{name: g, metric: {metric}, op: ">=", threshold: 0.8}}]'
    whole = write(tmp_path / "whole.csv", rows)
    assert ragnb("check", whole, "-p", gate)[0] == 1
    for row in rows:
        if row[metric] < 0.5:
            row[metric] = ""
    code, said = ragnb("check", write(tmp_path / "lossy.csv", rows), "-p", gate)
    assert code in BLOCKED
    assert not said.startswith("Ready")
    assert "30 of 90" in first_sentences(said)
    assert f"{0.96 * 60 / 90:.3f}" in said  # the worst case: all that is lost is wrong


def test_a_metric_that_is_whole_does_not_hide_one_that_is_not(tmp_path):
    lossy = [None if number % 4 == 0 else 0.9 for number in range(60)]
    path = write(tmp_path / "r.jsonl", answers(60, faithfulness=[0.95], context_recall=lossy))
    gates = rn.assess(path).gates.set_index("gate")
    assert gates.loc["scored_cells", "value"] == pytest.approx(45 / 60)
    assert gates.loc["scored_cells", "blocks"]
    assert ragnb("check", path)[0] in BLOCKED


def test_a_metric_that_some_rows_cannot_have_may_be_declared_so(tmp_path):
    """A blank that is intended is said once, for the run; then nothing is lost."""
    recall = [None if number % 3 == 0 else 0.9 for number in range(60)]
    path = write(tmp_path / "scores.jsonl", answers(60, faithfulness=[0.9], context_recall=recall))
    assert ragnb("check", path)[0] in BLOCKED
    code, said = ragnb("check", path, "-p", "blank=not_applicable")
    assert code == 0, said
    row = row_of(rn.assess(path, blank="not_applicable"), "context_recall")
    assert (row["n"], row["n_not_applicable"], lost_cells(row)) == (40, 20, 0)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("error", ["", "timeout"]),
        ("exception", ["", "RateLimitError('429')"]),
        ("error_message", [None, "context length exceeded"]),
        ("status", ["ok", "error"]),
        ("status", ["success", "failed"]),
        ("Fehler", ["", "Zeitüberschreitung"]),
        ("错误", ["", "请求超时"]),
        ("erreur", ["", "délai dépassé"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_column_of_errors_says_which_scores_failed(tmp_path, column, words, ending):
    """Eight of twenty rows failed, and their scores are blank."""
    bad = [number % 5 in (1, 3) for number in range(20)]
    rows = answers(
        20,
        faithfulness=lambda number: "" if bad[number] else 0.9,
        answer_relevancy=lambda number: "" if bad[number] else 0.8,
    )
    for row, failed in zip(rows, bad, strict=True):
        row[column] = words[failed]
        if ending == "jsonl":
            row |= {name: None for name in ("faithfulness", "answer_relevancy") if failed}
    path = write(tmp_path / f"run.{ending}", rows)
    sheet = rn.assess(path)
    for metric in ("faithfulness", "answer_relevancy"):
        row = row_of(sheet, metric)
        assert (row["n"], row["n_failed"], row["n_missing"]) == (12, 8, 0)
    assert ragnb("check", path)[0] in BLOCKED


@pytest.mark.parametrize("key", ["answer", "response", "output", "generated_answer"])
def test_answers_that_are_null_are_lost(tmp_path, key):
    rows = [
        {"question": question(number), key: None if number % 5 < 2 else f"{number} days."}
        for number in range(50)
    ]
    gold = [
        {"question": question(number), "answerable": True, "gold_ids": [f"d{number}"]}
        for number in range(50)
    ]
    traces, gold_path = write(tmp_path / "t.jsonl", rows), write(tmp_path / "gold.jsonl", gold)
    code, said = ragnb("check", "--traces", traces, "--gold", gold_path)
    assert code in BLOCKED
    assert "20 of 50" in said
    code, said = ragnb("check", traces)  # a log, but nothing says why the answers are not there
    assert code in BLOCKED
    assert "20 of 50" in said


def test_empty_records_are_lost_rows(tmp_path):
    rows = answers(40, faithfulness=[0.9])
    rows = [row if number % 5 else {} for number, row in enumerate(rows)]
    path = write(tmp_path / "scores.jsonl", rows)
    code, said = ragnb("check", path)
    assert code in BLOCKED
    assert "8 of 40" in said or "8 lines" in said or "8 records" in said, said


def test_a_table_shorter_than_its_cases_is_incomplete(tmp_path):
    cases = answers(40)
    write(tmp_path / "cases.jsonl", cases)
    write(tmp_path / "scores.csv", [row | {"faithfulness": 0.9} for row in cases[:25]])
    scenario = tmp_path / "s.yaml"
    scenario.write_text("scores: scores.csv\ncases: cases.jsonl\n", encoding="utf-8")
    code, said = ragnb("check", scenario)
    assert code in BLOCKED
    assert "15 of 40" in said or "25 of 40" in said


def test_an_expected_count_that_is_not_reached_blocks(tmp_path):
    path = write(tmp_path / "scores.csv", answers(20, faithfulness=[0.9]))
    assert ragnb("check", path, "-p", "expect=20")[0] == 0
    code, said = ragnb("check", path, "-p", "expect=30")
    assert code in BLOCKED
    assert "10 of 30" in said or "20 of 30" in said


def test_the_account_balances(tmp_path):
    cells = [None if number % 6 == 0 else 0.9 for number in range(30)]
    sheet = rn.assess(write(tmp_path / "s.jsonl", answers(30, faithfulness=cells)))
    account = sheet.account
    assert (account["expected"] == account["seen"] + account["lost"]).all()
    assert account["lost"].max() == 5


# 2. Direction


def deepeval_case(number, name, score, threshold, success):
    return {
        "name": f"case {number}",
        "input": question(number),
        "actualOutput": "Ten days.",
        "success": success,
        "metricsData": [
            {
                "name": name,
                "score": score,
                "threshold": threshold,
                "success": success,
                "reason": "made",
            }
        ],
    }


@pytest.mark.parametrize(
    "name", ["Toxicity", "Bias", "PII Leakage", "Ton der Antwort [GEval]", "Misuse"]
)
@pytest.mark.parametrize("better", ["lower", "higher"])
def test_verdicts_beside_score_and_threshold_speak_before_the_name(tmp_path, name, better):
    scores = [0.1, 0.3, 0.45, 0.7, 0.9, 0.2]
    passed = [score <= 0.5 if better == "lower" else score >= 0.5 for score in scores]
    cases = [
        deepeval_case(n, name, score, 0.5, success)
        for n, (score, success) in enumerate(zip(scores, passed, strict=True))
    ]
    path = write_json(tmp_path / "run.json", {"testCases": cases})
    sheet = rn.assess(path)
    assert holds_mean(sheet, name, scores)["better"] == better
    gate = sheet.gates.set_index("metric").loc[name]
    assert gate["op"] == {"lower": "<=", "higher": ">="}[better]


def test_verdicts_that_contradict_each_other_leave_the_direction_open(tmp_path):
    """Of equal scores one passes and one fails: `success` is consistent with neither direction."""
    cases = [deepeval_case(n, "House Style", 0.8, 0.5, n % 2 == 0) for n in range(8)]
    path = write_json(tmp_path / "run.json", {"testCases": cases})
    card = text_of(path)
    assert "?" in card
    assert "success" in card
    assert not ragnb("check", path)[1].startswith("Ready")


LOWER = [
    "hallucination_rate",
    "toxicity",
    "bias_score",
    "error_rate",
    "defect_rate",
    "harmfulness",
    "policy_violation",
    "failure_rate",
    "abstained",
    "refusal_rate",
    "retrieval_fail_rate",
    "HallucinationScore",
    "幻觉率",
    "错误率",
    "毒性",
]
LOWER_ELSEWHERE = [
    "Halluzinationsrate",
    "Fehlerquote",
    "taux_d_erreur",
    "toxicité",
    "alucinación",
    "tasa_de_error",
    "ハルシネーション率",
    "エラー率",
    "환각률",
    "галлюцинации",
    "токсичность",
]


@pytest.mark.parametrize("name", LOWER + LOWER_ELSEWHERE)
def test_a_name_of_something_bad_is_never_a_merit(tmp_path, name):
    cells = [0.9, 0.8, 1.0, 0.85]
    path = write(tmp_path / "s.csv", answers(12, faithfulness=[0.5], **{name: cells}))
    sheet = rn.assess(path)  # the total has it turned round, or leaves it out
    total = row_of(sheet, "weighted_score")["value"]
    mean = sum(cells) / 4
    assert total == pytest.approx(0.5) or total == pytest.approx((0.5 + 1 - mean) / 2)
    row = holds_mean(pasted(rn.inspect_file(path), {name: "lower"}), name, cells * 3)
    assert row["better"] == "lower"


@pytest.mark.parametrize("name", ["xq7", "impact_level", "判定値", "Kennzahl"])
def test_a_name_that_tells_no_direction_is_asked(tmp_path, name):
    path = write(
        tmp_path / "s.csv", answers(12, faithfulness=[0.5], **{name: [0.9, 0.2, 1.0, 0.85]})
    )
    card = rn.inspect_file(path)
    assert row_of(rn.assess(path), "weighted_score")["value"] == pytest.approx(0.5)
    assert '"?"' in (card.code_with_choices or card.code) or "'?'" in (
        card.code_with_choices or card.code
    )
    with pytest.raises(ValueError) as error:
        eval((card.code_with_choices or card.code), {"rn": rn, "pandas": pd})
    assert name in str(error.value)
    assert "higher" in str(error.value)
    assert "lower" in str(error.value)
    for better in ("higher", "lower"):
        assert row_of(pasted(card, {name: better}), name)["better"] == better


# 3. Scale


@pytest.mark.parametrize("name", ["accuracy", "clarity", "completeness", "relevance"])
def test_a_rubric_of_the_same_name_is_not_the_scale(tmp_path, name):
    path = write(tmp_path / "judge.csv", answers(20, **{name: [4, 5, 5]}))
    card = rn.inspect_file(path)
    five = {name: (1, 5)}
    row = row_of(pasted(card, {name: "higher"}, five), name)
    assert row["range_high"] != 10
    assert row["value"] == pytest.approx(sum([4, 5, 5][n % 3] for n in range(20)) / 20)
    assert "scale 1 to 10" not in ragnb("check", path)[1]


@pytest.mark.parametrize(
    ("cells", "neighbour", "high"),
    [
        ([0, 7, 9, 10], [3, 10, 8, 9], 10),
        ([87.5, 92, 40, 66], [71, 100, 88, 95], 100),
        ([1, 4, 5, 3], [2, 5, 4, 4], 5),
    ],
)
def test_a_known_name_on_another_scale_has_a_line_that_works(tmp_path, cells, neighbour, high):
    path = write(tmp_path / "s.csv", answers(20, faithfulness=cells, answer_relevancy=neighbour))
    card = rn.inspect_file(path)
    low = 1 if high == 5 else 0
    scale = dict.fromkeys(("faithfulness", "answer_relevancy"), (low, high))
    sheet = pasted(card, {}, scale)
    row = holds_mean(sheet, "faithfulness", cells * 5)
    assert (row["range_low"], row["range_high"]) == (low, high)
    if "?" not in card.command:
        line_works(card)


@pytest.mark.parametrize("key", ["max_score", "faithfulness_max"])
def test_a_maximum_written_in_the_file_is_the_scale(tmp_path, key):
    path = write(tmp_path / "s.jsonl", answers(20, faithfulness=[3, 7, 6], **{key: [10]}))
    row = row_of(pasted(rn.inspect_file(path), {}, {"faithfulness": (0, 10)}), "faithfulness")
    assert row["range_high"] == 10


def test_values_of_a_neighbour_say_that_the_judge_has_another_scale(tmp_path):
    """Faithfulness of 0 and 1 beside relevance up to 5, by one judge: 0 and 1 need not be no and yes."""
    path = write(
        tmp_path / "s.csv", answers(20, faithfulness=[0, 1, 1], answer_relevancy=[2, 5, 4])
    )
    card = text_of(path)
    line = next(line for line in card.splitlines() if "faithfulness" in line)
    sheet_or_refusal = ragnb("check", path)
    assert not sheet_or_refusal[1].startswith("Ready"), (line, sheet_or_refusal)


# 4. Words among scores


@pytest.mark.parametrize(
    "word",
    [
        "Failed",
        "error",
        "ERROR: rate limit",
        "N/A: timeout",
        "parse error",
        "评分失败",
        "Fehler",
        "ошибка",
        "エラー",
    ],
)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_word_among_scores_is_a_failed_score(tmp_path, word, ending):
    cells = [0.5, 0.4, word, 0.3]
    rows = answers(40, faithfulness=cells, answer_relevancy=[0.9])
    sheet = rn.assess(write(tmp_path / f"s.{ending}", rows))
    row = row_of(sheet, "faithfulness")
    assert row["value"] == pytest.approx(0.4)
    assert (row["n"], row["n_failed"]) == (30, 10)
    assert row_of(sheet, "answer_relevancy")["n"] == 40


def test_a_word_among_the_scores_of_azure_is_a_failed_score(tmp_path):
    rows = answers(8, gpt_relevance=[5, 4, "Failed", 3], gpt_coherence=[4])
    row = row_of(rn.assess(write(tmp_path / "eval.jsonl", rows)), "gpt_relevance")
    assert (row["value"], row["n"], row["n_failed"]) == (4.0, 6, 2)


# 5. Rows: totals, selections, and what only looks like them

MEAN_WORDS = [
    "Average",
    "AVG",
    "Mean",
    "Overall average",
    "Durchschnitt",
    "Mittelwert",
    "MOYENNE",
    "Moyenne générale",
    "Promedio",
    "Media",
    "平均",
    "平均分",
    "均值",
    "平均値",
    "평균",
    "Среднее",
    "Среднее значение",
]


@pytest.mark.parametrize("word", MEAN_WORDS)
@pytest.mark.parametrize("place", ["question", "id"])
def test_a_row_of_means_is_no_answer(tmp_path, word, place):
    cells = [0.2, 0.9, 1.0, 0.7, 0.4, 0.8]
    rows = [
        {"id": f"q{number}", "question": question(number), "faithfulness": cell}
        for number, cell in enumerate(cells)
    ]
    last = {"id": "", "question": "", "faithfulness": round(sum(cells) / 6, 3)} | {place: word}
    path = write(tmp_path / "s.csv", [*rows, last])
    holds_mean(pasted(rn.inspect_file(path)), "faithfulness", cells)
    shown = text_of(path)
    assert word in shown or "mean or total" in shown  # not gone without a word


@pytest.mark.parametrize(
    "asked",
    ["What is the average salary?", "平均工资是多少？", "Wie hoch ist der Durchschnitt der Noten?"],
)
def test_a_question_about_a_mean_is_an_answer(tmp_path, asked):
    rows = [
        *answers(6, faithfulness=[0.5]),
        {"question": asked, "answer": "Ten.", "faithfulness": 1.0},
    ]
    holds_mean(rn.assess(write(tmp_path / "s.csv", rows)), "faithfulness", [0.5] * 6 + [1.0])


SELECTIONS = [
    ("summary", "worst_cases"),
    ("metrics", "low_scoring_examples"),
    ("overall", "top_failures"),
    ("averages", "failed_questions"),
    ("总体", "失败案例"),
]


@pytest.mark.parametrize(("totals", "selection"), SELECTIONS)
def test_a_selection_beside_totals_is_no_sample(tmp_path, totals, selection):
    worst = [
        {"question": question(n), "faithfulness": 0.01 * n, "reason": "made up"} for n in range(6)
    ]
    content = {
        totals: {"faithfulness": 0.81, "answer_relevancy": 0.77},
        "num_questions": 60,
        selection: worst,
    }
    path = write_json(tmp_path / "eval.json", content)
    with pytest.raises(RagnbError) as error:
        rn.assess(path)
    for said in (str(error.value), text_of(path)):
        assert "totals" in said
        assert totals in said
        assert selection in said


@pytest.mark.parametrize(
    ("totals", "listed"),
    [
        ("summary", "results"),
        ("final_scores", "results_by_question"),
        ("aggregate", "details"),
        ("scores", "samples"),
    ],
)
def test_all_rows_beside_their_totals_are_the_samples(tmp_path, totals, listed):
    cells = [0.2, 0.9, 1.0, 0.7, 0.4, 0.8]
    rows = answers(6, faithfulness=cells)
    content = {"model": "m", totals: {"faithfulness": sum(cells) / 6, "count": 6}, listed: rows}
    path = write_json(tmp_path / "eval.json", content)
    holds_mean(pasted(rn.inspect_file(path)), "faithfulness", cells)


SUMMARIES = [
    [{"faithfulness": 0.83, "answer_relevancy": 0.7, "num_samples": 30}],
    {"faithfulness": 0.83, "answer_relevancy": 0.7, "n": 30},
    {"ragas": {"faithfulness": 0.83, "answer_relevancy": 0.7}, "timestamp": "2026-01-01"},
    {"results": {"qa": {"faithfulness": 0.83, "faithfulness_stderr": 0.02}}},
    {"avg_faithfulness": 0.83, "avg_answer_relevancy": 0.7, "total_questions": 30},
]


@pytest.mark.parametrize("content", SUMMARIES, ids=range(len(SUMMARIES)))
def test_a_summary_is_refused_as_totals(tmp_path, content):
    path = write_json(tmp_path / "summary.json", content)
    with pytest.raises(RagnbError, match="totals") as error:
        rn.assess(path)
    assert "sample" in str(error.value)  # where they might be
    assert ragnb("check", path)[0] == 2


LEADERBOARDS = [
    ("Model", "<a href='https://example.org/org/model-{n}'>org/model-{n} chat instruct</a>"),
    ("model_path", "models/llama/7b instruct/checkpoint {n}/v2"),
    ("Modell", "org/model-{n}"),
    ("模型", "通用大模型 第{n}版"),
    ("run_url", "https://example.org/runs/{n}?view=table with all rows"),
]


@pytest.mark.parametrize(("name", "cell"), LEADERBOARDS)
def test_a_leaderboard_is_totals(tmp_path, name, cell):
    rows = [
        {
            name: cell.format(n=n),
            "faithfulness": 0.7 + n / 100,
            "context_recall": 0.6,
            "samples": 120,
        }
        for n in range(8)
    ]
    path = write(tmp_path / "leaderboard.csv", rows)
    assert rn.inspect_file(path).kind == "totals"
    with pytest.raises(RagnbError, match="totals"):
        rn.assess(path)


@pytest.mark.parametrize(
    "name", ["question_id", "query_id", "qid", "item_id", "uid", "chunk_id", "Frage-ID", "问题编号"]
)
def test_a_table_of_ids_and_scores_is_of_answers(tmp_path, name):
    rows = [
        {name: f"Q{n:03}", "faithfulness": (n % 5) / 4, "context_recall": 1.0} for n in range(20)
    ]
    path = write(tmp_path / "scores.csv", rows)
    card = rn.inspect_file(path)
    assert card.kind == "scores"
    holds_mean(pasted(card), "faithfulness", [row["faithfulness"] for row in rows])


@pytest.mark.parametrize("key", ["scores", "metrics", "evaluation", "ragas_scores"])
def test_measurements_nested_in_each_record_are_scores(tmp_path, key):
    cells = [0.2, 0.9, 1.0, 0.7, 0.4, 0.8]
    rows = [
        row | {key: {"faithfulness": cell, "context_recall": 0.5}}
        for row, cell in zip(answers(6), cells, strict=True)
    ]
    path = write_json(tmp_path / "eval.json", rows)
    card = rn.inspect_file(path)
    assert card.kind == "scores"
    holds_mean(pasted(card), "faithfulness", cells)


# 6. Owner

OWNERS = {
    "config": ["c0_naive", "c1_rewrite"],
    "pipeline": ["hybrid", "vector only"],
    "retriever": ["bm25", "dense", "rrf"],
    "prompt_key": ["short", "long"],
    "embedding_model": ["bge-m3", "e5-large"],
    "k": [3, 5, 10],
    "top_k": [4, 8],
    "chunk_size": [256, 512, 1024],
    "temperature": [0.0, 0.7],
    "variant": ["A", "B"],
    "Modell": ["alt", "neu"],
    "模型": ["基线", "新版"],
}


def owned(values, column, shuffled=False):
    rows = []
    for place, value in enumerate(values):
        for number in range(10):
            score = round(0.4 + 0.15 * place + 0.02 * number, 3)
            rows.append(
                {
                    column: value,
                    "question": question(number),
                    "faithfulness": score,
                    "context_recall": score,
                }
            )
    return rows[::-1] if shuffled else rows


@pytest.mark.parametrize("column", OWNERS)
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "reversed"])
def test_a_column_in_which_each_question_occurs_once_is_the_system(tmp_path, column, shuffled):
    rows = owned(OWNERS[column], column, shuffled)
    path = write(tmp_path / "runs.csv", rows)
    sheet = pasted(rn.inspect_file(path))
    assert len(systems_of(sheet)) == len(OWNERS[column])
    groups = defaultdict(list)
    for row in rows:
        groups[str(row[column])].append(row["faithfulness"])
    for value, cells in groups.items():
        [system] = [
            name
            for name in systems_of(sheet)
            if value in str(name).replace("=", " ").split(" ") or value == str(name)
        ]
        holds_mean(sheet, "faithfulness", cells, system)


@pytest.mark.parametrize("column", ["run", "repeat", "replicate", "seed", "trial"])
def test_numbered_repeats_are_no_systems(tmp_path, column):
    rows = owned([1, 2, 3], column)
    sheet = pasted(rn.inspect_file(write(tmp_path / "runs.csv", rows)))
    assert len(systems_of(sheet)) <= 1
    row = row_of(sheet, "faithfulness")
    assert row["value"] == pytest.approx(sum(row["faithfulness"] for row in rows) / len(rows))
    assert row["n_clusters"] == 10


@pytest.mark.parametrize(
    "names",
    [
        ("baseline_{}", "guarded_{}"),
        ("rag_{}", "no_rag_{}"),
        ("{}_baseline", "{}_reranked"),
        ("{}_v1", "{}_v2"),
    ],
)
def test_columns_that_pair_by_their_names_are_two_systems(tmp_path, names):
    rows = []
    for number in range(12):
        row = {"question": question(number)}
        for place, name in enumerate(names):
            for metric in ("faithfulness", "answer_relevancy"):
                row[name.format(metric)] = round(0.4 + 0.3 * place + number / 100, 3)
        rows.append(row)
    path = write(tmp_path / "ab.csv", rows)
    sheet = pasted(rn.inspect_file(path))
    assert len(systems_of(sheet)) == 2
    for system, name in zip(("baseline_ no_ rag_ v1", "reranked guarded v2"), names, strict=True):
        part = name.replace("{}", "").strip("_")
        [own] = [found for found in systems_of(sheet) if str(found) == part]
        holds_mean(sheet, "faithfulness", [row[name.format("faithfulness")] for row in rows], own)
        assert system


@pytest.mark.parametrize(
    "keys", [("baseline", "reranked"), ("naive_rag", "hyde"), ("旧版", "新版")]
)
def test_two_lists_under_two_keys_are_two_systems(tmp_path, keys):
    content = {
        key: answers(10, faithfulness=lambda number, place=place: 0.3 + place / 2 + number / 100)
        for place, key in enumerate(keys)
    }
    path = write_json(tmp_path / "ab.json", content)
    sheet = pasted(rn.inspect_file(path))
    assert sorted(systems_of(sheet)) == sorted(keys)
    for key in keys:
        holds_mean(sheet, "faithfulness", [row["faithfulness"] for row in content[key]], key)


def test_questions_that_repeat_without_an_owner_are_said(tmp_path):
    rows = answers(10, faithfulness=[0.4]) + answers(10, faithfulness=[0.8])
    code, said = ragnb("check", write(tmp_path / "s.csv", rows))
    assert code in (0, 1)
    assert "10 distinct questions" in said
    assert "repeat" in said


@pytest.mark.parametrize("column", ["difficulty", "category", "language", "topic"])
def test_a_slice_of_the_questions_is_no_owner(tmp_path, column):
    rows = answers(12, faithfulness=[0.4, 0.8], **{column: ["a", "b", "c"]})
    sheet = pasted(rn.inspect_file(write(tmp_path / "s.csv", rows)))
    assert len(systems_of(sheet)) <= 1
    holds_mean(sheet, "faithfulness", [row["faithfulness"] for row in rows])


# 7. Verdicts in words

VERDICTS = [
    ("passed", "PASS", "FAIL"),
    ("verdict", "pass", "fail"),
    ("is_correct", "yes", "no"),
    ("correct", "TRUE", "FALSE"),
    ("judgement", "correct", "incorrect"),
    ("retrieval", "HIT", "MISS"),
    ("结果", "通过", "不通过"),
    ("是否正确", "是", "否"),
    ("判断", "对", "错"),
    ("ok?", "✅", "❌"),
    ("grade", "Correct", "Incorrect"),
]


@pytest.mark.parametrize(("column", "good", "bad"), VERDICTS)
def test_verdicts_in_words_are_scores(tmp_path, column, good, bad):
    rows = answers(20, **{column: [good, good, bad, good]})
    path = write(tmp_path / "s.csv", rows)
    sheet = pasted(rn.inspect_file(path), {column: "higher"}, {column: (0, 1)})
    row = holds_mean(sheet, column, [cell == good for cell in [good, good, bad, good] * 5])
    assert (row["value"], row["n"]) == (0.75, 20)
    assert row["better"] == "higher"


@pytest.mark.parametrize(("column", "good", "bad"), VERDICTS[:9:2])
def test_verdicts_in_words_calibrate_a_judge(tmp_path, column, good, bad):
    rows = [
        {
            "id": f"a{n}",
            "answer": "Ten days.",
            "human": good if n % 3 else bad,
            "judge": good if n % 4 else bad,
        }
        for n in range(48)
    ]
    same = sum(row["human"] == row["judge"] for row in rows)
    path = write(tmp_path / "labels.csv", rows)
    ratings = rn.read_ratings(path)
    assert (ratings["judge"] == ratings["human"]).sum() == same
    code, said = ragnb("calibrate", path)
    if code == 2 and "tolerance" in said:
        code, said = ragnb("calibrate", path, "--tolerance", "0.1")
    assert code in (0, 1, 3), said
    assert f"{same} of 48" in said or f"{100 * same / 48:.1f}" in said or f"{same / 48:.3f}" in said


# 13. Nothing leaves the total without a word; operation never enters it


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("latency_s", [0.4, 1.2, 9.5]),
        ("response_time_ms", [400, 1200, 9500]),
        ("total_tokens", [810, 1204, 333]),
        ("cost_usd", [0.001, 0.004, 0.002]),
        ("耗时", [1.5, 2.0, 3.5]),
    ],
)
def test_operation_never_enters_a_total_or_breaks_it(tmp_path, name, cells):
    path = write(tmp_path / "s.csv", answers(12, faithfulness=[0.5, 0.9, 1.0], **{name: cells}))
    sheet = pasted(rn.inspect_file(path))
    assert row_of(sheet, "weighted_score")["value"] == pytest.approx(2.4 / 3)
    declared = rn.Metric(name, 0, 10000, better="lower", role="operation")
    sheet = rn.assess(path, metrics=["faithfulness", declared])
    assert row_of(sheet, "weighted_score")["value"] == pytest.approx(2.4 / 3)
    assert row_of(sheet, name)["value"] == pytest.approx(sum(cells) / 3)


@pytest.mark.parametrize(
    "columns",
    [
        {"retrieval_f1": [0.2], "retrieval_recall": [1.0], "retrieval_precision": [0.1]},
        {"groundedness": [0.9], "faithfulness": [0.5], "answer_relevancy": [0.7]},
    ],
    ids=["retrieval", "groundedness"],
)
def test_what_the_total_leaves_out_is_named_beside_it(tmp_path, columns):
    path = write(tmp_path / "s.csv", answers(12, **columns))
    sheet = pasted(
        rn.inspect_file(path), dict.fromkeys(columns, "higher"), dict.fromkeys(columns, (0, 1))
    )
    total = row_of(sheet, "weighted_score")["value"]
    everything = sum(cells[0] for cells in columns.values()) / len(columns)
    if not math.isclose(total, everything):
        sentence = next(line for line in sheet.verdict.split(". ") if "Overall score" in line)
        left_out = [name for name in columns if name.split("_")[-1] in sentence.lower()]
        assert left_out, sentence


def test_a_second_column_of_one_meaning_is_not_dropped_in_silence(tmp_path):
    rows = answers(8, faithfulness=[0.5], Faithfulness=[0.9])
    path = write(tmp_path / "s.csv", rows)
    shown = text_of(path)
    assert "Faithfulness" in shown.replace("Faithfulness →", "")


# 16. The card


def test_a_card_for_ratings_of_ones_own_carries_them_in_its_lines(tmp_path):
    rows = answers(20, faithfulness=[0.5, 1.0], tone_of_voice=[1, 2, 4, 5, 3])
    path = write(tmp_path / "s.csv", rows)
    card = rn.inspect_file(path)
    assert "tone_of_voice" in card.code_with_choices
    assert "tone_of_voice" in card.command_with_choices
    sheet = pasted(card, {"tone_of_voice": "higher"}, {"tone_of_voice": (1, 5)})
    row = holds_mean(sheet, "tone_of_voice", [1, 2, 4, 5, 3] * 4)
    assert (row["range_low"], row["range_high"]) == (1, 5)


def test_a_card_names_an_empty_metric_column(tmp_path):
    path = write(tmp_path / "s.csv", answers(8, faithfulness=[0.5], context_recall=[""]))
    assert "context_recall" in text_of(path)


def test_a_line_for_pandas_imports_it(tmp_path):
    rows = [{"app": f"v{n}", "faithfulness": 0.5, "n_rows": 9} for n in range(3)]
    path = write(tmp_path / "t.csv", rows)
    card = rn.inspect_file(path)
    if "pandas." in card.code:
        assert f"import pandas; {card.code}" in str(card)


@pytest.mark.parametrize(
    "flag", ["needs_table", "episode_done", "api_calls", "replicate", "language_id", "is_multi_hop"]
)
def test_a_flag_of_the_question_is_not_proposed_as_a_metric(tmp_path, flag):
    path = write(tmp_path / "s.csv", answers(12, faithfulness=[0.5], **{flag: [0, 1]}))
    assert flag not in rn.inspect_file(path).code


def test_init_offers_a_baseline_and_gates_and_keeps_what_was_seen(tmp_path):
    rows = answers(20, faithfulness=[0.5, 1.0], tone_of_voice=[1, 2, 4, 5, 3])
    path, out = write(tmp_path / "s.csv", rows), tmp_path / "s.yaml"
    assert ragnb("init", path, "--out", out)[0] == 0
    text = out.read_text(encoding="utf-8")
    assert "tone_of_voice" in text
    assert "# baseline:" in text
    assert [gate.metric for gate in rn.load_scenario(out).gates] == ["faithfulness"]
    assert "# - {name: tone_of_voice" in text or "tone_of_voice" in text.split("gates:")[0]


# 15. Encodings of Windows

ENCODINGS = [
    ("cp1252", "Quelle équipe possède le titre ?"),
    ("cp1252", "Wie groß ist die Prüfgebühr für Körperschäden?"),
    ("cp1252", "¿Cuántos días de vacaciones tiene el año?"),
    ("cp1252", "Qual é a política de férias da organização?"),
    ("gb18030", "公司的年假有几天？员工如何申请？"),
    ("gb18030", "设备的保修期是多久，由谁支付运费？"),
]


@pytest.mark.parametrize(("encoding", "asked"), ENCODINGS)
def test_the_encoding_that_a_refusal_proposes_reads_the_text(tmp_path, encoding, asked):
    rows = [{"question": f"{asked} {n}", "faithfulness": 0.5 + n / 20} for n in range(8)]
    path = write(tmp_path / "s.csv", rows, encoding=encoding)
    with pytest.raises(RagnbError) as error:
        rn.inspect_file(path)
    proposed = str(error.value).replace("'", "")
    assert f"encoding={encoding}" in proposed
    other = {"cp1252": "gb18030", "gb18030": "cp1252"}[encoding]
    assert f"encoding={other}" not in proposed
    sheet = pasted(rn.inspect_file(path, encoding=encoding))
    assert sheet.scores["question"].tolist() == [row["question"] for row in rows]
    assert ragnb("check", path, "-p", f"encoding={encoding}")[0] in (0, 1)


# 12. Several systems are never counted together


def test_counts_of_fix_first_are_of_one_system(tmp_path):
    rows = [
        row | {"system": system, "context_recall": low if number % 2 else 0.95, "faithfulness": 0.9}
        for system, low in (("old", 0.1), ("new", 0.2))
        for number, row in enumerate(answers(24))
    ]
    sheet = rn.assess(write(tmp_path / "s.csv", rows))
    markdown = sheet.to_markdown()
    start = markdown.index("Fix first")
    assert "48 questions" not in markdown[start : start + 3000]
    assert "24 of 48" not in markdown[start : start + 3000]
    assert len(json.dumps(markdown)) > start


# What stands beside the rows, or around them


ERROR_LISTS = {
    "texts": ["q91: timeout", "q92: rate limit"],
    "objects": [{"id": "q91", "message": "timeout"}, {"id": "q92", "message": "rate limit"}],
    "texts without names": ["timeout", "rate limit"],
}


@pytest.mark.parametrize("key", ["errors", "exceptions"])
@pytest.mark.parametrize("errors", ERROR_LISTS.values(), ids=ERROR_LISTS)
def test_a_list_of_errors_beside_the_results_is_of_lost_samples(tmp_path, key, errors):
    rows = answers(30, faithfulness=[0.9])
    path = write_json(tmp_path / "run.json", {"results": rows, key: errors})
    lines = rn.assess(path).account.query("stage == 'lines'").iloc[0]
    assert (lines["expected"], lines["seen"], lines["lost"]) == (32, 30, 2)
    assert ragnb("check", path)[0] in BLOCKED


def test_errors_of_samples_that_are_among_the_results_are_no_further_loss(tmp_path):
    rows = answers(30, faithfulness=[0.9], id=lambda number: f"q{number}")
    path = write_json(tmp_path / "run.json", {"results": rows, "errors": ["q3: judged twice"]})
    assert rn.assess(path).account.query("stage == 'lines'")["lost"].sum() == 0


@pytest.mark.parametrize("inner", ["individual_scores", "values", "per_sample"])
def test_columns_in_sections_are_one_row_an_answer(tmp_path, inner):
    rows = pd.DataFrame(answers(20, faithfulness=lambda number: number / 20))
    scores = rows.pop("faithfulness").tolist()
    path = write_json(
        tmp_path / "run.json",
        {
            "inputs": rows.to_dict("list"),
            "metrics": {"faithfulness": {"score": sum(scores) / 20, inner: scores}},
        },
    )
    found = rn.assess(path).means.set_index("metric").loc["faithfulness"]
    assert (found["n"], found["value"]) == (20, pytest.approx(sum(scores) / 20))


@pytest.mark.parametrize("above", ["# run 12\n", "# run 12\n# model gpt, T=0\n#\n", "#run\r\n"])
def test_remarks_above_the_names_are_no_names(tmp_path, above):
    table = pd.DataFrame(answers(20, faithfulness=[0.9])).to_csv(index=False)
    path = tmp_path / "s.csv"
    path.write_text(above + table, encoding="utf-8", newline="")
    holds_mean(rn.assess(path), "faithfulness", [0.9] * 20)


def test_a_first_column_named_with_a_hash_stays_one(tmp_path):
    frame = pd.DataFrame(answers(20, faithfulness=[0.9]))
    frame.insert(0, "#", range(20))
    frame.to_csv(tmp_path / "s.csv", index=False)
    holds_mean(rn.assess(tmp_path / "s.csv"), "faithfulness", [0.9] * 20)


# Lines that lead on


def test_a_comparison_of_an_undeclared_metric_prints_an_option_that_works(tmp_path):
    new, base = tmp_path / "new.csv", tmp_path / "base.csv"
    pd.DataFrame(answers(40, toxicity=[0.1, 0.2])).to_csv(new, index=False)
    pd.DataFrame(answers(40, toxicity=[0.3, 0.4])).to_csv(base, index=False)
    said = ragnb("compare", new, base)[1]
    option = said.partition('-p "')[2].partition('"')[0]
    assert option == "metrics=[{name: toxicity, low: …, high: …, better: lower}]"
    filled = option.replace("low: …", "low: 0").replace("high: …", "high: 1")
    code, said = ragnb("compare", new, base, "-p", filled)
    assert code == 0
    assert "better" in said


def test_a_tolerance_as_wide_as_the_scale_names_the_option_and_one_that_works(tmp_path):
    rows = answers(30, judge=[0.8, 0.6, 0.9], human=[0.7, 0.65, 0.9])
    path = tmp_path / "ratings.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    code, said = ragnb("calibrate", path)
    assert code == 2
    assert "--tolerance 0.1" in said
    assert ragnb("calibrate", path, "--tolerance", "0.1")[0] != 2


def test_an_open_choice_in_python_is_refused_in_one_message():
    with pytest.raises(ValueError, match="open choice of 'tone'") as caught:
        rn.Metric("tone", 1, 5, better="?")
    assert "1 validation error" in str(caught.value)
    assert "factory" not in str(caught.value)
