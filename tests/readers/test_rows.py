"""What a row is and whose it is, in tables and JSON of many names; against plain loops over the same cells."""

import csv
import io
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.readers import read_cases, read_gold, read_scores, read_traces
from ragnb.readers.encodings import likely_encoding
from ragnb.readers.raw import Raw
from ragnb.readers.streams import stream_scores

ASKED = [f"How long is step {i}?" for i in range(8)]


def write(folder: Path, name: str, data: str | bytes | list | dict) -> Path:
    path = folder / name
    if isinstance(data, list | dict):
        data = json.dumps(data, ensure_ascii=False)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def table(rows: list[dict]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def means_by(rows: list[dict], column: str, metric: str) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for row in rows:
        groups.setdefault(str(row[column]), []).append(row[metric])
    return {name: sum(cells) / len(cells) for name, cells in groups.items()}


def crossed(column: str, values: list, key: str = "question") -> list[dict]:
    return [
        {column: value, key: one, "faithfulness": round(0.3 + 0.2 * nth + 0.01 * i, 3)}
        for nth, value in enumerate(values)
        for i, one in enumerate(ASKED)
    ]


# Owner


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("config", ["naive", "rewrite"]),
        ("retriever", ["bm25", "dense", "hybrid"]),
        ("chunk_size", [300, 500, 1000]),
        ("temperature", [0.0, 0.7]),
        ("topK", [3, 5]),
        ("Approach", ["a", "b"]),
        ("prompt_version", ["v1", "v2"]),
        ("embedding_model", ["small", "large"]),
        ("检索器", ["甲", "乙"]),
        ("Konfiguration", ["alt", "neu"]),
        ("modèle", ["a", "b"]),
        ("Estrategia", ["a", "b"]),
        ("手法", ["甲", "乙"]),
        ("모델", ["가", "나"]),
        ("конфигурация", ["а", "б"]),
        ("how it was cut", ["whole", "parts"]),
    ],
)
def test_a_column_of_which_each_question_has_each_value_once_is_the_system(
    tmp_path, column, values
):
    rows = crossed(column, values)
    frame = read_scores(write(tmp_path, "s.csv", table(rows)))
    found = frame.groupby("system")["faithfulness"].mean().to_dict()
    assert found == pytest.approx(means_by(rows, column, "faithfulness"))
    assert rn.assess(frame).systems["system"].nunique() == len(values)


@pytest.mark.parametrize("key", ["question_id", "case_id", "uid", "test_id", "chunk_id", "题号"])
def test_ids_repeat_as_questions_do(tmp_path, key):
    rows = crossed("retriever", ["bm25", "dense"], key)
    frame = read_scores(write(tmp_path, "s.csv", table(rows)))
    assert frame["sample_id"].nunique() == len(ASKED)
    found = frame.groupby("system")["faithfulness"].mean().to_dict()
    assert found == pytest.approx(means_by(rows, "retriever", "faithfulness"))


def test_two_settings_name_the_system_together(tmp_path):
    rows = [
        {"chunk_size": size, "k": k, "question": one, "faithfulness": size / 1000}
        for size in (300, 500)
        for k in (3, 5)
        for one in ASKED
    ]
    frame = read_scores(write(tmp_path, "s.csv", table(rows)))
    assert sorted(frame["system"].unique()) == ["300 / 3", "300 / 5", "500 / 3", "500 / 5"]


def test_a_few_missing_questions_leave_the_system_a_system():
    rows = crossed("config", ["a", "b"])[:-2]
    assert set(read_scores(rows)["system"]) == {"a", "b"}


@pytest.mark.parametrize("column", ["run", "replicate", "seed", "Wiederholung", "попытка"])
def test_whole_numbers_of_a_count_of_runs_are_repeats(column):
    frame = read_scores(crossed(column, [1, 2, 3]))
    assert sorted(frame["repeat"].unique()) == ["1", "2", "3"]
    assert "system" not in frame


@pytest.mark.parametrize("column", ["rater", "language", "turn"])
def test_what_is_no_system_stays_a_column(column):
    assert "system" not in read_scores(crossed(column, ["a", "b"]))


def test_questions_that_repeat_without_an_owner_are_said_in_the_verdict():
    rows = [{"question": one, "faithfulness": 0.5} for one in ASKED * 3]
    sheet = rn.assess(rows)
    assert "24 rows of 8 questions" in sheet.verdict
    assert "repeats" in sheet.notes["code"].tolist()
    single = rn.assess(rows[:8])
    assert "rows of" not in single.verdict


def test_a_stream_finds_the_system_that_a_table_finds():
    for column in ("config", "chunk_size", "how it was cut"):
        rows = crossed(column, ["300 words", "500 words"])
        stream = stream_scores(pl.DataFrame(rows).lazy())
        streamed = stream.frame.collect().to_pandas()
        want = read_scores(pd.DataFrame(rows)).groupby("system")["faithfulness"].mean()
        assert streamed.groupby("system")["faithfulness"].mean().to_dict() == want.to_dict()


PAIRED = [
    ({"baseline_f1": 0.25, "guarded_f1": 0.75}, {"baseline": 0.25, "guarded": 0.75}),
    ({"f1_baseline": 0.25, "f1_guarded": 0.75}, {"baseline": 0.25, "guarded": 0.75}),
    (
        {"alpha_f1": 0.1, "alpha_recall": 0.2, "beta_f1": 0.5, "beta_recall": 0.6},
        {"alpha": 0.1, "beta": 0.5},
    ),
]


@pytest.mark.parametrize(("cells", "want"), PAIRED)
def test_names_of_systems_in_columns_become_rows(tmp_path, cells, want):
    rows = [{"question": one, **cells} for one in ASKED]
    frame = read_scores(write(tmp_path, "s.csv", table(rows)), metrics=[rn.Metric("f1")])
    assert len(frame) == len(ASKED) * len(want)
    assert frame.groupby("system")["f1"].mean().to_dict() == pytest.approx(want)


@pytest.mark.parametrize(
    "names",
    [
        ["answer_relevance", "context_relevance"],
        ["recall_at_5", "recall_at_10"],
        ["tone_score", "style_score"],
        ["rouge_1", "rouge_2"],
        ["accuracy_easy", "accuracy_hard"],
        ["human_accuracy", "judge_accuracy"],
    ],
)
def test_parts_of_a_metrics_own_name_are_no_systems(names):
    rows = [{"question": one, "faithfulness": 1.0} | dict.fromkeys(names, 0.5) for one in ASKED]
    frame = read_scores(rows)
    assert "system" not in frame
    assert len(frame) == len(ASKED)


def test_two_lists_of_the_same_questions_are_two_systems(tmp_path):
    lists = {
        name: [{"question": one, "faithfulness": value} for one in ASKED]
        for name, value in (("bm25", 0.25), ("dense", 0.75))
    }
    for value in (lists, {name: {"results": rows, "n": 8} for name, rows in lists.items()}):
        frame = read_scores(write(tmp_path, "s.json", value))
        means = frame.groupby("system")["faithfulness"].mean().to_dict()
        assert means == {"bm25": 0.25, "dense": 0.75}
    for names in (("train", "test"), ("bm25", "dense")):
        apart = {names[0]: lists["bm25"][:4], names[1]: lists["dense"][4:]}
        with pytest.raises(RagnbError, match="keep one of these lists"):
            read_scores(write(tmp_path, "s.json", apart))


# Rows

WORDS = [
    "Average",
    "AVG",
    "mean",
    "Overall",
    "Total",
    "平均",
    "平均分",
    "总计",
    "合计",
    "MOYENNE",
    "Durchschnitt",
    "Mittelwert",
    "Media",
    "Promedio",
    "Среднее",
    "平均値",
    "평균",
    "Gesamt",
    "Gemiddelde",
    "Średnia",
    "Ortalama",
    "Итого",
]


@pytest.mark.parametrize(
    "word", [*WORDS, "Moyenne générale", "Mean (n=8)", "Gesamt:", "Total score"]
)
@pytest.mark.parametrize("first", [True, False])
def test_a_row_of_means_is_left_out_and_said(tmp_path, word, first):
    rows = [{"question": one, "faithfulness": 0.5 + i / 20} for i, one in enumerate(ASKED)]
    mean = [{"question": word, "faithfulness": 0.675}]
    frame = read_scores(write(tmp_path, "s.csv", table(mean + rows if first else rows + mean)))
    assert frame["question"].tolist() == ASKED
    (left,) = [row for row in frame.attrs["lossy"] if row["what"] == "left_out"]
    assert (left["n"], "mean or total" in left["detail"]) == (1, True)


def test_a_question_of_one_word_with_an_answer_stays():
    rows = [
        {"question": "Average", "answer": "It is the mean.", "faithfulness": 1.0},
        {"question": "Median", "answer": "It is the middle.", "faithfulness": 0.5},
    ]
    assert len(read_scores(rows)) == 2


TOTALS = {
    "counts beside": "config,faithfulness,num_samples\na,0.5,30\nb,0.6,30\n",
    "one record with a count": "faithfulness,answer_relevancy,num_samples\n0.5,0.6,30\n",
    "counts in Chinese": "模型,忠实度,样本数\n甲,0.5,30\n乙,0.6,28\n",
    "errors of means": "run,accuracy,accuracy_stderr,faithfulness\na,0.5,0.01,0.5\nb,0.6,0.02,0.7\n",
    "means of documents": "doc_name,faithfulness,n\na.pdf,0.5,12\nb.pdf,0.6,30\n",
    "a leaderboard with addresses": "model,link,faithfulness\n"
    "a,https://x.example/a/b/c/d/e/f/g?i=j,0.5\n"
    "b,https://x.example/b/b/c/d/e/f/g/h?i=j,0.6\n",
    "a leaderboard with dates": "model,submitted,faithfulness\na,2024-01-02 10:11:12,0.5\n"
    "b,2024-02-02 10:11:12,1\n",
    "only means": ",faithfulness\nmean,0.5\nstd,0.1\nmin,0.2\nmax,0.9\n",
    "means of all in one row": "metric_set,faithfulness\nAverage,0.5\n",
}


@pytest.mark.parametrize("what", TOTALS)
def test_totals_are_refused_by_that_word(tmp_path, what):
    path = write(tmp_path, "s.csv", TOTALS[what])
    with pytest.raises(RagnbError, match="totals") as error:
        read_scores(path)
    assert "one row per sample" in str(error.value)
    assert rn.inspect_file(path).kind == "totals"


@pytest.mark.parametrize(
    "value",
    [
        {"faithfulness": 0.5, "num_samples": 30},
        {"faithfulness": 0.5, "context_recall": 1},
        {"summary": {"faithfulness": 0.5, "count": 30}, "config": {"k": 3}},
        {"bm25": {"faithfulness": 0.5}, "dense": {"faithfulness": 0.6}},
        {"aggregate": {"faithfulness": 0.5}, "run_id": "a"},
    ],
)
def test_summaries_as_objects_are_refused_as_totals(tmp_path, value):
    with pytest.raises(RagnbError, match="totals") as error:
        read_scores(write(tmp_path, "s.json", value))
    assert "one record per question" in str(error.value)


WORST = [{"question": one, "faithfulness": 0.1} for one in ASKED[:3]]


@pytest.mark.parametrize(
    "name", ["failures", "worst_cases", "low_scoring", "top", "失败案例", "erreurs"]
)
@pytest.mark.parametrize("beside", [{"aggregate": {"faithfulness": 0.8}}, {"num_questions": 25}])
def test_a_selection_beside_totals_is_refused_with_both_names(tmp_path, name, beside):
    with pytest.raises(RagnbError, match="totals") as error:
        read_scores(write(tmp_path, "s.json", {**beside, name: WORST}))
    assert name in str(error.value)
    assert next(iter(beside)) in str(error.value)


def test_a_list_of_all_answers_is_read_whatever_it_is_called(tmp_path):
    whole = [
        {"examples": WORST, "version": 1},
        {"examples": WORST, "num_examples": 3, "aggregate": {"faithfulness": 0.1}},
        {"examples": WORST, "metrics": {"faithfulness": 0.1}},
        {"results": WORST, "failures": WORST[:1], "summary": {"faithfulness": 0.1}},
    ]
    for value in whole:
        frame = read_scores(write(tmp_path, "s.json", value))
        assert frame["question"].tolist() == ASKED[:3]
        assert frame.attrs["source"]["damaged"] == 0


PASSED = [{"question": one, "faithfulness": 0.9} for one in ASKED[3:6]]


@pytest.mark.parametrize("name", ["passed", "results"])
def test_failures_that_the_other_list_does_not_hold_are_of_the_same_run(tmp_path, name):
    frame = read_scores(write(tmp_path, "s.json", {name: PASSED, "failed": WORST}))
    assert frame["faithfulness"].mean() == pytest.approx(0.5)
    errors = [{"question": one, "error": "timeout"} for one in ASKED[:3]]
    frame = read_scores(write(tmp_path, "s.json", {name: PASSED, "errors": errors}))
    assert (frame["faithfulness__status"] == "failed").tolist() == [False] * 3 + [True] * 3


def test_failures_cut_short_counted_or_shown_as_examples_add_no_rows(tmp_path):
    cut = [{"question": row["question"][:14] + "...", "faithfulness": 0.9} for row in PASSED]
    for value in (
        {"results": PASSED, "failures": cut},
        {"results": PASSED, "failures": WORST, "num_questions": 3},
        {"results": PASSED, "examples": [{"question": "Who?", "answer": "The team."}]},
    ):
        assert len(read_scores(write(tmp_path, "s.json", value))) == 3


def test_one_measure_of_each_answer_is_of_two_systems(tmp_path):
    header = "question,answer_gpt4,answer_llama,faithfulness_gpt4,faithfulness_llama"
    lines = [f"{one},Ten.,Two.,0.9,0.1" for one in ASKED]
    path = write(tmp_path, "wide.csv", "\n".join([header, *lines]))
    frame = read_scores(path)
    means = frame.groupby("system")["faithfulness"].mean()
    assert means.to_dict() == pytest.approx({"gpt4": 0.9, "llama": 0.1})


def test_a_system_that_lacks_questions_is_said(tmp_path):
    lines = [f"{one},{model},0.9" for model in "AB" for one in ASKED[: 8 if model == "A" else 5]]
    path = write(tmp_path, "s.csv", "\n".join(["question,model,faithfulness", *lines]))
    facts = [
        fact["evidence"] for fact in read_scores(path).attrs["facts"] if fact["fact"] == "owner"
    ]
    assert facts == ["13 of 16 pairs of a question and a value of model occur"]


def test_a_pass_rate_below_a_mean_is_no_answer(tmp_path):
    lines = [f"{one},0.5" for one in ASKED]
    text = "\n".join(["question,faithfulness", *lines, "Average,0.5", "Pass rate,1.0"])
    assert len(read_scores(write(tmp_path, "s.csv", text))) == len(ASKED)


def test_a_list_shorter_than_its_count_lost_the_rest(tmp_path):
    frame = read_scores(write(tmp_path, "s.json", {"results": WORST, "num_questions": 5}))
    source = frame.attrs["source"]
    assert (source["lines"], source["damaged"]) == (5, 2)


def test_what_may_be_either_is_asked_and_the_answer_works(tmp_path):
    path = write(tmp_path, "s.csv", "kind of row,faithfulness\nbaseline,0.5\nreranked,0.6\n")
    with pytest.raises(RagnbError, match=r"totals or answers\?") as error:
        read_scores(path)
    for name in ("question", "sample_id"):
        assert f"columns={{'…': '{name}'}}" in str(error.value)
        assert len(read_scores(path, columns={"kind of row": name})) == 2


def test_nested_measurements_are_no_totals(tmp_path):
    rows = [
        {"test_id": f"t{i}", "retrieval": {"hits": [1, 0]}, "faithfulness": 0.5} for i in range(3)
    ]
    frame = read_scores(write(tmp_path, "s.json", rows))
    assert frame["sample_id"].tolist() == ["t0", "t1", "t2"]


# Names


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("expected_answer", "ground_truth_answer"),
        ("Gold Answer", "ground_truth_answer"),
        ("expectedInformation", "ground_truth_answer"),
        ("ideal", "ground_truth_answer"),
        ("Réponse attendue", "ground_truth_answer"),
        ("Musterantwort", "ground_truth_answer"),
        ("模範解答", "ground_truth_answer"),
        ("정답", "ground_truth_answer"),
        ("expected_contexts", "ground_truth_contexts"),
        ("source_nodes", "retrieved_contexts"),
        ("model_answer", "answer"),
    ],
)
def test_more_names_are_read(name, meant):
    frame = read_cases([{"user_query": "Who?", name: "Ann."}])
    assert meant in frame.columns


def test_a_second_column_of_one_meaning_is_kept_and_listed():
    frame = read_cases([{"question": "Who?", "context": "a", "documents": "b"}])
    assert frame["retrieved_contexts"].tolist() == [["a"]]
    assert frame["documents"].tolist() == ["b"]
    assert "documents" in [row["column"] for row in frame.attrs["lossy"]]


@pytest.mark.parametrize("names", [("question", "answer"), ("问题", "答案"), ("Frage", "Antwort")])
def test_a_bare_table_of_questions_and_answers_is_asked_for_and_both_lines_work(tmp_path, names):
    rows = [dict(zip(names, pair, strict=True)) for pair in (("Who?", "Ann."), ("When?", "Now."))]
    path = write(tmp_path, "s.csv", table(rows))
    with pytest.raises(RagnbError, match="answers of a system, or reference answers") as error:
        rn.assess(path)
    assert rn.assess(rn.read_traces(path)).log is not None
    cases = rn.read_cases(path, columns={names[1]: "ground_truth_answer"})
    assert cases["ground_truth_answer"].tolist() == ["Ann.", "Now."]
    assert str(path) in str(error.value)
    told = [{**row, "latency_ms": 20} for row in rows]
    assert rn.assess(write(tmp_path, "log.csv", table(told))).log is not None


@pytest.mark.parametrize("name", ["source", "来源"])
def test_the_source_of_a_question_does_not_say_whose_the_answers_are(tmp_path, name):
    """A test set names the source of each question as a log does, in any language."""
    rows = [
        {"question": f"Who is {n}?", "answer": "Ann.", name: f"{n}.pdf"} for n in ("Lee", "Kim")
    ]
    with pytest.raises(RagnbError, match="answers of a system, or reference answers"):
        rn.assess(write(tmp_path, "s.csv", table(rows)))


def test_a_reference_is_never_taken_for_the_answer(tmp_path):
    rows = [
        {"sample_query": "Who?", "expected_output": "Ann.", "ground_truth_answer": "Ann Lee."},
        {"sample_query": "When?", "expected_output": "Now.", "ground_truth_answer": "Today."},
    ]
    card = rn.inspect_file(write(tmp_path, "s.csv", table(rows)))
    assert "answer" not in card.columns.values()
    assert card.columns["ground_truth_answer"] == "ground_truth_answer"


# Encodings

TEXTS = {
    "cp1252": "question;réponse\nQuelle équipe possède le titre ?;L’équipe « A »\nOù est-ce ?;Près d’ici\n",
    "cp1250": "Ile dni urlopu przysługuje pracownikowi? Zażółć gęślą jaźń, także łódź",
    "cp1251": "вопрос,ответ\nСколько дней отпуска?,Десять дней\n",
    "koi8_r": "вопрос,ответ\nСколько дней отпуска?,Десять дней\n",
    "cp1253": "ερώτηση,απάντηση\nΠόσες ημέρες άδεια;,Δέκα\n",
    "cp1254": "Kaç gün izin hakkım var? Şirket değişikliği için yazılı başvuru",
    "gb18030": "问题,答案\n退款流程需要几天？,三天以内到账\n",
    "big5": "問題,答案\n退款流程需要幾天？,三天以內到帳\n",
    "shift_jis": "質問,回答\n返金には何日かかりますか？,三日です\n",
    "euc_jp": "質問,回答\n返金には何日かかりますか？,三日です\n",
    "cp949": "질문,답변\n환불은 며칠 걸립니까?,3일입니다\n",
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_the_encoding_of_a_text_is_told_by_how_it_reads(encoding):
    assert f"encoding={encoding!r}" in likely_encoding(TEXTS[encoding].encode(encoding))


def test_a_french_table_of_windows_is_read_as_the_message_says(tmp_path):
    text = (
        "question;faithfulness\nQuelle équipe possède le titre ?;0,71\n"
        "La température ?;0,25\nMOYENNE GÉNÉRALE;0,48\n"
    )
    path = write(tmp_path, "s.csv", text.encode("cp1252"))
    with pytest.raises(RagnbError, match="encoding='cp1252'"):
        read_scores(path)
    frame = read_scores(path, encoding="cp1252")
    assert frame["faithfulness"].tolist() == [0.71, 0.25]
    assert frame["question"].tolist() == ["Quelle équipe possède le titre ?", "La température ?"]


def test_logs_and_gold_take_the_id_of_the_question():
    traces = read_traces([{"question_id": "a", "question": "Who?", "answer": "Ann."}])
    gold = read_gold([{"question_id": "a", "question": "Who?", "answerable": True}])
    assert traces["sample_id"].tolist() == gold["sample_id"].tolist() == ["a"]


def test_distinct_rows_are_those_of_a_set_whatever_the_columns_are():
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(1, 30))
        texts = [
            None if gone else str(text)
            for text, gone in zip(rng.choice(list("abc"), n), rng.random(n) < 0.2, strict=True)
        ]
        numbers = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 3, n))
        raw = Raw(
            {
                "text": pd.Series(texts, dtype="str"),
                "kind": pd.Series(texts, dtype="category"),
                "number": pd.Series(numbers),
                "flag": pd.Series(
                    pd.array([None if np.isnan(x) else x > 1 for x in numbers], dtype="boolean")
                ),
                "day": pd.Series(pd.to_datetime(rng.choice(["2026-01-01", "2026-01-02", None], n))),
                "cells": [str(text) for text in texts],
            },
            "frame",
        )
        for width in (1, 2, 3):
            for names in itertools.combinations(raw.columns, width):
                columns = [
                    [None if pd.isna(cell) else cell for cell in raw.columns[name]]
                    for name in names
                ]
                assert raw.distinct(*names) == len({*zip(*columns, strict=True)}), names
