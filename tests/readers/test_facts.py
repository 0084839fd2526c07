"""The facts of a metric: scale, direction and blank, each with its evidence; verdicts in words are scores."""

from __future__ import annotations

import itertools
import json

import pandas as pd
import polars as pl
import pytest
from pydantic import ValidationError
from reading import refused, write

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.readers.facts import count_verdicts, direction_of_name
from ragnb.readers.streams import stream_scores


def rows_of(**columns):
    """Return records of questions with these columns."""
    names = list(columns)
    cells = zip(*columns.values(), strict=True)
    return [
        {"question": f"What does rule {i} allow?", **dict(zip(names, row, strict=True))}
        for i, row in enumerate(cells)
    ]


def deepeval(name, scores, verdicts, threshold=0.5):
    """Return the test run of a DeepEval version, with one metric."""
    cases = [
        {
            "name": f"test_case_{i}",
            "input": f"What does rule {i} allow?",
            "actualOutput": "Ten days.",
            "success": passed,
            "metricsData": [
                {
                    "name": name,
                    "threshold": threshold,
                    "success": passed,
                    "score": score,
                    "reason": "made up",
                    "error": None,
                }
            ],
        }
        for i, (score, passed) in enumerate(zip(scores, verdicts, strict=True))
    ]
    return json.dumps({"testCases": cases})


def fact(frame, metric, name):
    """Return the one fact of this name that a reader found."""
    found = [f for f in frame.attrs["facts"] if (f["metric"], f["fact"]) == (metric, name)]
    assert len(found) == 1, found
    return found[0]


def promptfoo(scores, named):
    """Return results of promptfoo whose rows have a score and the named score faithfulness."""
    rows = [
        {
            "promptIdx": 0,
            "testIdx": i,
            "provider": {"id": "m"},
            "vars": {"query": f"What does rule {i} allow?"},
            "response": {"output": "Ten days."},
            "success": score > 0.5,
            "score": score,
            "namedScores": {"faithfulness": own},
        }
        for i, (score, own) in enumerate(zip(scores, named, strict=True))
    ]
    return json.dumps({"results": {"version": 3, "results": rows}})


def test_a_score_that_counts_more_than_the_named_ones_is_a_metric(tmp_path):
    # Assertions without a name fail in each row: their half of the score is 0.
    half = write(tmp_path, "half.json", promptfoo([0.45] * 20, [0.9] * 20))
    means = rn.assess(half).means.set_index("metric")["value"]
    assert means["score"] == pytest.approx(0.45)
    assert means["faithfulness"] == pytest.approx(0.9)
    mean = write(tmp_path, "mean.json", promptfoo([0.9] * 20, [0.9] * 20))
    assert "score" not in set(rn.assess(mean).means["metric"])


def test_the_score_of_an_answer_that_did_not_come_is_a_failure():
    rows = rows_of(
        answer=["Ten days.", "", None, ""],
        error=[None, "RateLimitError", "timeout", None],
        faithfulness=[0.5, 1.0, 1.0, 0.0],
    )
    sheet = rn.assess(rows)
    row = sheet.means.set_index("metric").loc["faithfulness"]
    assert (row["value"], row["n"], row["n_failed"]) == (0.25, 2, 2)
    assert sheet.verdict.startswith("Incomplete input")


@pytest.mark.parametrize("key", ["value", "score"])
@pytest.mark.parametrize("column", ["scores", "evaluations"])
def test_a_list_of_named_results_is_a_column_a_metric(tmp_path, column, key):
    lists = [[{"name": "faithfulness", key: 0.5}, {"name": "bias", key: 0.9}]] * 3 + [[]]
    lists.append([{"name": "faithfulness", key: None, "error": "timeout"}])
    rows = rows_of(answer=["Ten days."] * 5, **{column: lists})
    sheet = rn.assess(write(tmp_path, "traces.json", rows))
    means = sheet.means.set_index("metric")
    found = means.loc["faithfulness", ["value", "n", "n_failed", "n_missing"]].tolist()
    assert found == [0.5, 3, 1, 1]
    assert sheet.verdict.startswith("Incomplete input: 2 of 5 scores are missing")
    assert "left out: bias" in sheet.verdict


@pytest.mark.parametrize(
    ("labels", "bad_is"),
    [(["hallucinated", "factual"], 1), (["incorrect", "correct"], 0), (["toxic", "non-toxic"], 1)],
)
@pytest.mark.parametrize("every", [False, True])
def test_labels_beside_a_score_say_its_direction(tmp_path, labels, bad_is, every):
    bad = [True, every, True, every]
    rows = rows_of(
        answer=["Ten days."] * 4,
        label=[labels[0] if one else labels[1] for one in bad],
        score=[bad_is if one else 1 - bad_is for one in bad],
    )
    path = write(tmp_path, "phoenix.json", rows)
    card = rn.inspect_file(path)
    better = "lower" if bad_is else "higher"
    assert f"{better} is better (its label {labels[0]!r} has" in str(card)


# Direction


LOWER = [
    "hallucination",
    "hallucination_rate",
    "toxicity",
    "bias",
    "error_rate",
    "defect_rate",
    "harmfulness",
    "abstained",
    "refusal_rate",
    "latency",
    "duration_s",
    "cost",
    "tokens",
    "cosine_distance",
    "perplexity",
    "policy_violation",
    "幻觉率",
    "错误率",
    "拒答率",
    "有害性",
    "延迟",
    "Fehlerquote",
    "Halluzination",
    "taux_erreur",
    "toxicité",
    "tasa_de_error",
    "alucinaciones",
    "доля_ошибок",
    "галлюцинации",
    "오류율",
    "환각률",
    "エラー率",
    "幻覚率",
]
HIGHER = [
    "error_free",
    "non_toxic",
    "unbiased",
    "harmlessness",
    "no_hallucination",
    "hallucination_free",
    "bias_free",
    "correct_refusal",
    "faithfulness",
    "accuracy",
    "precision",
    "f1_score",
    "recall",
    "answer_quality",
    "relevance",
    "准确率",
    "无幻觉率",
    "相关性",
    "Genauigkeit",
    "pertinence",
    "exactitud",
    "точность",
    "정확도",
    "精度",
    "refusal_accuracy",
]


@pytest.mark.parametrize(
    ("name", "better"),
    [*((name, "lower") for name in LOWER), *((name, "higher") for name in HIGHER)],
)
def test_words_of_a_name_say_the_direction(name, better):
    assert direction_of_name(name).better == better


@pytest.mark.parametrize("name", ["tone_of_voice", "mapping", "emotion", "style", "语气", "Ton"])
def test_other_names_say_nothing(name):
    assert direction_of_name(name) is None


def test_verdicts_discriminate_as_a_plain_comparison_does():
    levels = (0.2, 0.5, 0.8)
    for score, threshold, passed in itertools.product(levels, levels, (True, False)):
        at_least = (score >= threshold) == passed
        at_most = (score <= threshold) == passed
        found = count_verdicts([score], [threshold], [passed])
        if score == threshold:
            assert found == (0, 0)
        else:
            assert found == (int(at_least), int(at_most))


@pytest.mark.parametrize(
    ("name", "passes_above", "better"),
    [
        (name, above, "higher" if above else "lower")
        for name in ("Hallucination", "Bias", "Toxicity", "My own", "Faithfulness")
        for above in (True, False)
    ],
)
@pytest.mark.filterwarnings("ignore:the rule 'faithfulness' does not fit")
def test_verdicts_of_a_version_decide_what_passes(tmp_path, name, passes_above, better):
    scores = [0.1, 0.2, 0.8, 0.9]
    verdicts = [(score >= 0.5) == passes_above for score in scores]
    frame = rn.read_scores(write(tmp_path, "run.json", deepeval(name, scores, verdicts)))
    (metric,) = frame.attrs["metrics"]
    assert metric["better"] == better
    sheet = rn.assess(tmp_path / "run.json")
    gate = sheet.gates[sheet.gates["threshold"] == 0.5].iloc[0]
    assert gate["op"] == (">=" if passes_above else "<=")


def test_a_run_that_fails_everywhere_blocks_and_one_that_passes_does_not(tmp_path):
    scores = [0.8 + i / 300 for i in range(30)]
    for passed in (False, True):
        path = write(tmp_path, f"{passed}.json", deepeval("Hallucination", scores, [passed] * 30))
        sheet = rn.assess(path)
        assert bool(sheet.gates["blocks"].any()) is not passed


def test_verdicts_that_contradict_each_other_are_asked(tmp_path):
    text = deepeval("Bias", [0.9, 0.8, 0.2], [True, False, True])
    path = write(tmp_path, "run.json", text)
    found = fact(rn.read_scores(path), "Bias", "direction")
    assert found["open"]
    assert "contradict" in found["evidence"]
    with pytest.raises(RagnbError, match="its direction is open"):
        rn.assess(path)


def test_a_name_against_its_tool_is_asked_where_no_verdict_tells(tmp_path):
    path = write(tmp_path, "run.json", deepeval("Toxicity", [0.5, 0.5], [True, True]))
    assert fact(rn.read_scores(path), "Toxicity", "direction")["open"]
    message = refused(lambda: rn.assess(path), "'Toxicity'", "better='lower'")
    assert "metrics=[rn.Metric('Toxicity', low, high, better='lower')]" in message
    declared = [rn.Metric("Toxicity", 0, 1, better="lower")]
    means = rn.assess(path, metrics=declared).means.set_index("metric")
    assert means.loc["Toxicity", "value"] == 0.5


@pytest.mark.parametrize("ends", [("_threshold", "_passed"), ("_threshold", "_result")])
@pytest.mark.parametrize("word", ["bool", "pass"])
def test_verdicts_beside_any_column_say_its_direction(ends, word):
    scores = [0.1, 0.9, 0.2]
    passed = [score <= 0.5 for score in scores]
    shown = passed if word == "bool" else ["pass" if good else "fail" for good in passed]
    rows = rows_of(
        faithfulness=[0.5, 0.75, 1.0],
        tone=scores,
        **{f"tone{ends[0]}": [0.5] * 3, f"tone{ends[1]}": shown},
    )
    found = fact(rn.read_scores(rows), "tone", "direction")
    assert (found["value"], found["open"]) == ("lower", False)


def test_a_candidate_whose_name_says_nothing_is_open():
    rows = rows_of(faithfulness=[0.5, 1.0], tone=[0.5, 0.25], error_rate=[0.5, 0.25])
    frame = rn.read_scores(rows)
    assert fact(frame, "tone", "direction")["open"]
    found = fact(frame, "error_rate", "direction")
    assert (found["value"], found["open"]) == ("lower", False)


# Scale


@pytest.mark.parametrize("name", ["accuracy", "completeness", "clarity"])
def test_marks_of_somebodys_judge_are_no_marks_from_1_to_10(name):
    rows = rows_of(**{name: [4, 5, 5]})
    found = fact(rn.read_scores(rows), name, "scale")
    assert found["open"]
    assert tuple(found["value"]) == (1, 5)
    refused(lambda: rn.assess(rows), f"rn.Metric('{name}', 1, 5)", "scale is open")
    means = rn.assess(rows, metrics=[rn.Metric(name, 1, 5)]).means.set_index("metric")
    assert means.loc[name, "value"] == pytest.approx(14 / 3)
    assert means.loc[name, "value"] <= 5


def test_an_open_scale_leaves_the_total_to_the_others_and_is_refused_by_name():
    rows = rows_of(faithfulness=[0.5, 0.75], accuracy=[4, 5])
    total = rn.assess(rows).means.set_index("metric").loc["weighted_score", "value"]
    assert total == pytest.approx(0.625)
    for naming in ({"metrics": ["accuracy"]}, {"metric_weights": {"accuracy": 1.0}}):
        refused(lambda naming=naming: rn.assess(rows, **naming), "'accuracy'", "scale is open")


@pytest.mark.parametrize("marks", [[4, 9, 10], [7, 8, 6]])
def test_marks_that_use_the_rubrics_scale_are_on_it(marks):
    means = rn.assess(rows_of(accuracy=marks)).means.set_index("metric")
    assert means.loc["accuracy", "value"] == pytest.approx(sum(marks) / 3)


def test_a_table_of_ragnbs_own_judge_is_on_the_rubrics_scale():
    rows = rows_of(accuracy=[4, 5], clarity=[5, 5], judge__mode=["alone", "alone"])
    assert not fact(rn.read_scores(rows), "accuracy", "scale")["open"]


def test_fractions_are_on_the_unit_scale_whatever_the_name():
    means = rn.assess(rows_of(accuracy=[0.5, 0.25, 1.0])).means.set_index("metric")
    assert means.loc["weighted_score", "value"] == pytest.approx(1.75 / 3)


def test_ones_beside_marks_to_five_are_not_perfect():
    rows = rows_of(faithfulness=[1, 1, 1], readability=[3, 4, 5])
    assert fact(rn.read_scores(rows), "faithfulness", "scale")["open"]
    refused(lambda: rn.assess(rows), "'readability' beside it goes up to 5")


@pytest.mark.filterwarnings("ignore:the rule 'faithfulness' does not fit")
def test_the_scale_that_neighbours_use_is_proposed_and_works(tmp_path):
    lines = ["id,correctness,faithfulness", *(f"{i},{i % 10},{i % 5}" for i in range(20))]
    path = write(tmp_path, "s.csv", "\n".join(lines))
    message = refused(lambda: rn.read_scores(path), "rn.Metric('faithfulness', 0, 10)")
    assert "if it is 0..10" in message
    means = rn.assess(path, metrics=[rn.Metric("faithfulness", 0, 10)]).means.set_index("metric")
    assert means.loc["faithfulness", "value"] == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"better": "?"}, ["open choice", "better: lower", "better='higher'"]),
        ({"low": "?", "high": "?"}, ["open choice", "low: 1", "rn.Metric(name, 1, 5)"]),
    ],
)
def test_an_open_choice_is_refused_with_the_choices(tmp_path, given, words):
    with pytest.raises(ValidationError) as caught:
        rn.Metric("tone", **given)
    assert all(word in str(caught.value) for word in words)
    write(tmp_path, "s.csv", "question,tone\nWho pays?,4\n")
    keys = "".join(f"    {key}: '{value}'\n" for key, value in given.items())
    path = write(tmp_path, "scenario.yaml", f"scores: s.csv\nmetrics:\n  - name: tone\n{keys}")
    line = {"better": "line 4", "low": "line 4"}[next(iter(given))]
    refused(lambda: rn.assess(path), *words, line, next(iter(given)))


# Blank


WORDS = [
    "Failed",
    "error",
    "N/A: timeout",
    "ERROR: rate limit",
    "失败",
    "超时",
    "Timeout",
    "#DIV/0!",
]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_word_among_numbers_is_a_failed_cell(word, streamed):
    cells = ["0.5", "0.25", word, "0.75", word]
    rows = rows_of(faithfulness=cells)
    source = pl.LazyFrame(rows) if streamed else rows
    means = rn.assess(source).means.set_index("metric").loc["faithfulness"]
    assert (means["value"], means["n"], means["n_failed"]) == (0.5, 3, 2)


def test_the_word_is_the_reason():
    frame = rn.read_scores(rows_of(faithfulness=["0.5", "N/A: timeout", None]))
    assert frame["faithfulness__status"].tolist()[1] == "failed"
    assert frame["faithfulness__reason"].tolist()[1] == "N/A: timeout"
    assert frame["faithfulness__status"].isna().tolist() == [True, False, True]


def test_a_tools_metric_keeps_its_numbers(tmp_path):
    cells = ["5", "4", "Failed", "3", "5", "Failed"]
    lines = [f"What is rule {i}?,ten,{cell}" for i, cell in enumerate(cells)]
    path = write(tmp_path, "s.csv", "\n".join(["question,answer,gpt_relevance", *lines]))
    means = rn.assess(path).means.set_index("metric").loc["gpt_relevance"]
    assert (means["value"], means["n"], means["n_failed"]) == (4.25, 4, 2)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_column_of_mostly_words_is_no_metric(streamed):
    rows = rows_of(faithfulness=["0.5", "good", "poor", "fair"])
    read = stream_scores if streamed else rn.read_scores
    refused(
        lambda: read(pl.LazyFrame(rows) if streamed else rows),
        "'faithfulness'",
        "expected a number",
    )


@pytest.mark.parametrize("column", ["error", "Error", "exception", "error_message", "错误信息"])
@pytest.mark.parametrize("streamed", [False, True])
def test_blank_scores_beside_an_error_failed(column, streamed):
    scores = [0.5, None, 1.0, None]
    errors = [None, "rate limit", "", "  "]
    rows = rows_of(faithfulness=scores, **{column: errors})
    source = pl.LazyFrame(rows) if streamed else rows
    means = rn.assess(source).means.set_index("metric").loc["faithfulness"]
    assert (means["n"], means["n_failed"], means["n_missing"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("beside", "lost"),
    [
        ({"status": ["ok", "failed", "ok"]}, 1),
        ({"success": [True, False, True]}, 1),
        ({"faithfulness_success": [True, False, True]}, 1),
        ({"faithfulness_error": [None, "timeout", None]}, 1),
        ({"context_recall_error": [None, "timeout", None]}, 0),
        ({"error": ["none", "None", "false"]}, 0),
    ],
)
def test_what_stands_beside_a_blank_score_says_whether_it_failed(beside, lost):
    rows = rows_of(faithfulness=[0.5, None, 1.0], **beside)
    means = rn.assess(rows).means.set_index("metric").loc["faithfulness"]
    assert (means["n"], means["n_failed"], means["n_missing"]) == (2, lost, 1 - lost)


def test_a_case_that_did_not_pass_and_has_no_score_failed(tmp_path):
    scores = [0.9, float("nan"), 0.8, None]
    text = deepeval("Faithfulness", scores, [True, False, True, False])
    means = rn.assess(write(tmp_path, "run.json", text)).means.set_index("metric")
    assert means.loc["faithfulness", ["n", "n_failed"]].tolist() == [2, 2]


# Verdicts in words


PAIRS = [
    ("PASS", "FAIL"),
    ("Passed", "Failed"),
    ("correct", "incorrect"),
    ("Right", "WRONG"),
    ("HIT", "MISS"),
    ("通过", "不通过"),
    ("通过", "未通过"),
    ("正确", "错误"),
    ("对", "错"),
    ("✅", "❌"),
    ("✓", "✗"),
    ("bestanden", "durchgefallen"),
    ("верно", "неверно"),
    ("합격", "불합격"),
]
ANSWERS = [("yes", "no"), ("True", "False"), ("是", "否"), ("ja", "nein"), ("да", "нет")]


@pytest.mark.parametrize(("good", "bad"), PAIRS)
@pytest.mark.parametrize("name", ["passed", "grading", "结果"])
def test_verdicts_of_merit_are_scores_under_any_name(tmp_path, good, bad, name):
    cells = [good, f" {bad}", good, good]
    lines = [f"What is rule {i}?,ten,{cell}" for i, cell in enumerate(cells)]
    path = write(tmp_path, "s.csv", "\n".join([f"question,answer,{name}", *lines]))
    sheet = rn.assess(path)
    means = sheet.means.set_index("metric").loc[name]
    assert (means["value"], means["n"]) == (0.75, 4)


@pytest.mark.parametrize(("yes", "no"), ANSWERS)
def test_yes_is_good_only_where_the_name_says_so(yes, no):
    cells = [yes, no, yes, yes]
    answers = ["ten"] * 4
    for name, value in (("passed", 0.75), ("is_correct", 0.75), ("hallucinated", 0.75)):
        rows = rows_of(answer=answers, **{name: cells})
        means = rn.assess(rows).means.set_index("metric")
        assert means.loc[name, "value"] == value
    total = means.loc["weighted_score", "value"]
    assert total == 0.25  # of hallucinated, whose yes is bad
    rows = rows_of(answer=answers, needs_table=cells, faithfulness=[0.5] * 4)
    assert "needs_table" not in set(rn.assess(rows).means["metric"])


def test_an_error_among_verdicts_failed():
    rows = rows_of(answer=["ten"] * 4, passed=["PASS", "FAIL", "ERROR: timeout", ""])
    means = rn.assess(rows).means.set_index("metric").loc["passed"]
    assert (means["value"], means["n"], means["n_failed"], means["n_missing"]) == (0.5, 2, 1, 1)


def test_a_known_metric_in_verdicts_is_read():
    means = rn.assess(rows_of(faithfulness=["PASS", "FAIL", "PASS", "PASS"])).means
    assert means.set_index("metric").loc["faithfulness", "value"] == 0.75


def test_what_people_say_is_no_score_of_the_answer():
    rows = rows_of(answer=["ten"] * 2, human_label=["pass", "fail"], judge_label=["pass", "pass"])
    assert "metrics" not in rn.read_cases(rows).attrs
    with pytest.raises(RagnbError, match="has no column of scores"):
        rn.assess(rows)


@pytest.mark.parametrize(("good", "bad"), [*PAIRS, *ANSWERS])
def test_labels_in_words_are_compared_exactly(good, bad):
    people = [good] * 24 + [bad] * 16
    judge = [good] * 24 + [bad] * 9 + [good] * 7
    rows = [
        {"id": f"q{i}", "human_label": human, "judge_label": found}
        for i, (human, found) in enumerate(zip(people, judge, strict=True))
    ]
    card = rn.calibrate(rn.read_ratings(rows))
    assert card.verdicts["share"].tolist() == [33 / 40]
    assert card.tolerance == 0


def test_a_declared_tolerance_as_wide_as_the_scale_is_still_refused():
    rows = [{"id": f"q{i}", "human": i % 2, "judge": 1} for i in range(8)]
    refused(lambda: rn.calibrate(rn.read_ratings(rows), tolerance=1), "every score lies within it")


ERRORS = ["timeout", "RateLimitError: 429", "judge timed out after 30 s", "请求超时", "HTTP 503"]
OPINIONS = ["missed the date", "failed to name the year", "leaves out the timeout", "年份错误"]


@pytest.mark.parametrize("column", ["error", "exception", "Ошибка", "faithfulness_error"])
@pytest.mark.parametrize("text", ERRORS)
def test_a_score_beside_an_error_of_a_program_is_failed(column, text):
    frame = pd.DataFrame(
        {
            "question": [f"q{i}" for i in range(20)],
            "answer": "It is.",
            "faithfulness": [0.9] * 12 + [1.0] * 8,
            column: [None] * 12 + [text] * 8,
        }
    )
    row = rn.weighted_means(rn.read_scores(frame)).set_index("metric").loc["faithfulness"]
    assert (row["n"], row["n_failed"], row["value"]) == (12, 8, pytest.approx(0.9))
    assert rn.assess(frame).blocked


@pytest.mark.parametrize("text", OPINIONS)
def test_an_opinion_beside_a_score_leaves_it_and_is_reported(text):
    frame = pd.DataFrame(
        {
            "question": [f"q{i}" for i in range(20)],
            "answer": "It is.",
            "faithfulness": [0.9] * 12 + [0.2] * 8,
            "error": [None] * 12 + [text] * 8,
        }
    )
    sheet = rn.assess(frame)
    row = sheet.means.set_index("metric").loc["faithfulness"]
    assert (row["n"], row["n_failed"]) == (20, 0)
    assert any("texts beside scores" in one and text in one for one in sheet.notes["text"])


@pytest.mark.parametrize(("state", "failed"), [("ERROR", 8), ("timeout", 8), ("failed", 0)])
def test_a_state_of_error_breaks_a_score_and_a_verdict_does_not(state, failed):
    frame = pd.DataFrame(
        {
            "question": [f"q{i}" for i in range(20)],
            "answer": "It is.",
            "faithfulness": [0.9] * 20,
            "state": ["OK"] * 12 + [state] * 8,
        }
    )
    assert rn.read_scores(frame)["faithfulness"].isna().sum() == failed


def test_a_stream_finds_the_same_scores_beside_errors(tmp_path):
    pl = pytest.importorskip("polars")
    texts = [*ERRORS, *OPINIONS, "", None]
    frame = pl.DataFrame(
        {
            "sample_id": [f"q{i}" for i in range(len(texts))],
            "question": [f"q{i}" for i in range(len(texts))],
            "faithfulness": [0.9] * len(texts),
            "error": texts,
        }
    )
    of_stream = rn.assess(frame.lazy()).means.set_index("metric")
    of_frame = rn.assess(frame.to_pandas()).means.set_index("metric")
    names = ["n", "n_failed", "n_missing"]
    pd.testing.assert_frame_equal(of_stream[names], of_frame[names])
    assert of_frame.loc["faithfulness", "n_failed"] == len(ERRORS)


# The built-in rules are of 0..1.
OTHER_SCALE = pytest.mark.filterwarnings("ignore:the rule:ragnb.errors.RagnbWarning")


def with_scores(*scores):
    rows = range(len(scores))
    return pd.DataFrame(
        {"question": [f"q{i}" for i in rows], "answer": "It is.", "faithfulness": scores}
    )


@OTHER_SCALE
def test_scores_on_two_scales_are_asked_and_no_scale_is_proposed(tmp_path):
    mixed = with_scores(*[0.5, 0.6, 0.7, 0.8, 0.9] * 4, *[50.0, 60.0, 70.0, 80.0, 90.0] * 4)
    message = refused(lambda: rn.assess(mixed))
    assert "20 from 0.5 to 0.9 and 20 from 50 to 90; bring them on one scale" in message
    card = rn.inspect_file(mixed)
    assert "Metric('faithfulness', '?', '?')" in str(card)
    # Following the advice works.
    scores = mixed["faithfulness"]
    rescaled = mixed.assign(faithfulness=scores.where(scores <= 1, scores / 100))
    assert rn.assess(rescaled).means["value"].iloc[0] == pytest.approx(0.7)
    # Whoever declares 0..100 all the same is told.
    declared = rn.assess(mixed, metrics=[rn.Metric("faithfulness", 0, 100)])
    assert any("two scales" in text for text in declared.notes["text"])


def test_percent_with_a_few_near_nothing_is_one_scale():
    percent = with_scores(0.5, *[40.0 + i for i in range(39)])
    assert "Metric('faithfulness', 0, 100)" in refused(lambda: rn.assess(percent))


@OTHER_SCALE
def test_minus_one_below_a_scale_is_a_failed_score():
    frame = with_scores(*[0.9] * 12, *[-1.0] * 8)
    row = rn.assess(frame).means.set_index("metric").loc["faithfulness"]
    assert (row["n"], row["n_failed"], row["value"]) == (12, 8, pytest.approx(0.9))
    assert rn.assess(frame).blocked
    ten = rn.assess(
        frame.assign(faithfulness=[9.0] * 12 + [-1.0] * 8),
        metrics=[rn.Metric("faithfulness", 0, 10)],
    )
    assert ten.means.set_index("metric").loc["faithfulness", "n_failed"] == 8


@OTHER_SCALE
def test_minus_one_on_a_scale_that_holds_it_is_a_score():
    signed = rn.Metric("faithfulness", -1, 1)
    frame = with_scores(*[1.0] * 12, *[-1.0] * 8)
    row = rn.assess(frame, metrics=[signed]).means.set_index("metric").loc["faithfulness"]
    assert (row["n"], row["value"]) == (20, pytest.approx(0.2))
    assert "-1..1" in refused(lambda: rn.assess(with_scores(0.5, -1.0, -0.4)))


GRADES = {
    "yes and no": (["yes", "no"], (0, 1), [1, 0]),
    "是否": (["是", "否"], (0, 1), [1, 0]),
    "flags": ([True, False], (0, 1), [1, 0]),
    "good and bad": (["good", "bad"], (0, 1), [1, 0]),
    "a third word": (["TRUE", "FALSE", "UNKNOWN", "TRUE"], (0, 1), [1, 0, None, 1]),
    "a verdict in part": (
        ["CORRECT", "INCORRECT", "PARTIALLY_CORRECT", "CORRECT"],
        (0, 1),
        [1, 0, None, 1],
    ),
    "skipped": (["PASS", "FAIL", "SKIP", "PASS"], (0, 1), [1, 0, None, 1]),
    "parts": (["4/5", "2/5"], (0, 5), [4, 2]),
    "decimal commas": (["0,5", "0,75"], (0, 1), [0.5, 0.75]),
}


def graded(kind, suffix, folder):
    """A table with the grades under a name that nobody knows, as a frame or as a file."""
    cells = GRADES[kind][0]
    frame = pd.DataFrame(
        {
            "question": [f"q{i}" for i in range(40)],
            "answer": "It is.",
            "faithfulness": 0.9,
            "xyz": cells * (40 // len(cells)),
        }
    )
    if suffix == "frame":
        return frame
    frame.to_csv(folder / "s.csv", index=False)
    return folder / "s.csv"


@pytest.mark.parametrize("suffix", ["frame", "csv"])
@pytest.mark.parametrize("kind", GRADES)
def test_grades_that_are_no_plain_numbers_are_candidates_and_read_once_declared(
    kind, suffix, tmp_path
):
    source = graded(kind, suffix, tmp_path)
    _, (low, high), expected = GRADES[kind]
    assert "xyz" in rn.assess(source).left_out
    row = rn.inspect_file(source).metrics.set_index("metric").loc["xyz"]
    assert (row["low"], row["high"]) == (low, high)
    metrics = ["faithfulness", rn.Metric("xyz", low, high)]
    found = rn.assess(source, metrics=metrics).means.set_index("metric").loc["xyz"]
    scored = [number for number in expected if number is not None]
    assert found["value"] == pytest.approx(sum(scored) / len(scored))
    assert found["n_failed"] == 40 * expected.count(None) / len(expected)


@pytest.mark.parametrize(
    "cells", [["easy", "hard"], ["HR", "legal"], ["yes", "maybe"], ["1/2", "3/4"]]
)
def test_words_that_are_no_grades_are_texts(cells, tmp_path):
    frame = pd.DataFrame({"question": [f"q{i}" for i in range(40)], "answer": "It is."})
    frame = frame.assign(faithfulness=0.9, xyz=cells * 20)
    assert "xyz" not in rn.assess(frame).left_out


@pytest.mark.parametrize("kind", GRADES)
def test_a_stream_names_the_grades_that_the_total_leaves_out(kind, tmp_path):
    frame = graded(kind, "frame", tmp_path)
    in_memory = rn.assess(frame).left_out
    assert rn.assess(pl.from_pandas(frame).lazy()).left_out == in_memory


@pytest.mark.parametrize("name", ["is_off_topic", "needs_review"])
def test_a_flag_of_the_answer_is_asked(name):
    frame = pd.DataFrame({"question": [f"q{i}" for i in range(40)], "answer": "It is."})
    sheet = rn.assess(frame.assign(faithfulness=0.9, **{name: ["yes", "no"] * 20}))
    assert sheet.left_out == {name: "direction"}
