"""Logs without gold: rates against plain loops, patterns that work when pasted, draws that weigh back."""

import json
import random
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import yaml

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.scoring.lexical import support_lexical
from ragnb.traces import label_traces, read_log
from ragnb.traces.log import REASONS, WORDS

PASSAGES = [
    "The warranty covers parts for 24 months.",
    "Returns are free for 30 days.",
    "保修期为两年。",
]
REFUSALS = [
    "I'm sorry, but I cannot answer that.",
    "The documents do not mention this.",
    "I could not find this in the sources.",
    "There is no information on prices in the context.",
    "The price is not mentioned in the document.",
    "抱歉，无法回答这个问题。",
    "资料中没有相关内容",
    "文档中未提及退款。",
]
ANSWERS = [
    "The warranty covers parts for 24 months.",
    "The plan does not cover cosmetic treatments.",
    "Services that are not covered by the plan are listed on page 4.",
    "I have a list of three steps for you.",
    "保修期为两年，不包括电池。",
    "There are no fees.",
]


def log(n=60, seed=0):
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        answer = rng.choice(
            [*ANSWERS[:3], REFUSALS[0], REFUSALS[6], f"Answer number {i} of 24 months."]
        )
        texts = rng.sample(PASSAGES, rng.choice([0, 1, 2]))
        rows.append(
            {
                "q": f"question {seed}-{i % (n - 5)}?",
                "answer": answer,
                "ok": rng.random() > 0.1,
                "chunks": [
                    {"id": f"{rng.choice('ab')}.pdf#p{k}", "text": t} for k, t in enumerate(texts)
                ],
                "ts": f"2026-03-0{1 + i % 3}T10:00:00Z",
                "latency": i / 10,
            }
        )
    return rows


def write(folder, rows, name="log.jsonl"):
    path = folder / name
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_refusal_is_proposed(answer):
    rows, found = read_log(label_traces(pd.DataFrame({"question": ["a"], "answer": [answer]})))
    assert rows["refusal_rate"].tolist() == [0]
    assert rows["refusal_rate_proposed"].tolist() == [1]
    assert all(re.search(pattern, answer, re.IGNORECASE) for pattern in found.patterns["pattern"])


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_not_proposed_as_a_refusal(answer):
    rows, found = read_log(label_traces(pd.DataFrame({"question": ["a"], "answer": [answer]})))
    assert rows["refusal_rate_proposed"].tolist() == [0]
    assert not len(found.patterns)


def test_rates_are_those_of_a_plain_loop(tmp_path):
    rows = log()
    sheet = rn.assess(write(tmp_path, rows))
    means = sheet.means.set_index("metric")
    rows = [r for r in rows if r["ok"]]  # an answer that failed is none
    refused = [
        any(re.search(p, r["answer"], re.IGNORECASE) for p in WORDS["refusals"]) for r in rows
    ]
    said = {r["answer"]: {o["q"] for o in rows if o["answer"] == r["answer"]} for r in rows}
    repeated = [len(said[r["answer"]]) >= 3 and not no for r, no in zip(rows, refused, strict=True)]
    support = [
        support_lexical(r["answer"], [c["text"] for c in r["chunks"]])
        for r, no in zip(rows, refused, strict=True)
        if r["chunks"] and not no
    ]
    assert means.loc["refusal_rate", "value"] == 0
    assert means.loc["refusal_rate_proposed", "value"] == pytest.approx(np.mean(refused))
    assert means.loc["repeated_answer", "value"] == pytest.approx(np.mean(repeated))
    assert means.loc["empty_retrieval", "value"] == pytest.approx(
        np.mean([not r["chunks"] for r in rows])
    )
    assert means.loc["support_lexical", "value"] == pytest.approx(np.nanmean(support))
    assert means.loc["correct_outcome", "n"] == 0
    assert sheet.verdict.startswith("Requests fail")
    assert not sheet.blocked


def test_a_pattern_that_is_pasted_makes_the_proposed_rate_the_rate(tmp_path):
    path = write(tmp_path, log())
    before = rn.assess(path)
    note = before.notes.set_index("code").loc["refusals_proposed", "text"]
    line = yaml.safe_load(note[note.index("patterns: ") :])
    after = rn.assess(path, **line).means.set_index("metric")["value"]
    assert (
        after["refusal_rate"]
        == before.means.set_index("metric").loc["refusal_rate_proposed", "value"]
        > 0
    )


@pytest.mark.parametrize("unit", ["iso", "s", "ms"])
def test_days_are_those_of_pandas(unit):
    rows = pd.DataFrame(log()).rename(columns={"q": "question"})
    times = pd.to_datetime(rows["ts"])
    if unit != "iso":
        rows["ts"] = [t.timestamp() * (1000 if unit == "ms" else 1) for t in times]
    daily = read_log(label_traces(rows))[1].daily.set_index("day")
    expected = rows.groupby(times.dt.strftime("%Y-%m-%d"))
    assert daily["n"].to_dict() == expected.size().to_dict()
    assert daily["latency_median"].to_dict() == pytest.approx(
        expected["latency"].median().to_dict()
    )
    assert daily["latency_p95"].to_dict() == pytest.approx(
        expected["latency"].quantile(0.95).to_dict()
    )
    assert daily["failed"].to_dict() == pytest.approx((1 - expected["ok"].mean()).to_dict())


def test_many_days_are_weeks_and_many_weeks_months():
    for days, form in ((31, r"\d{4}-\d\d-\d\d"), (32, r"\d{4}-W\d\d"), (400, r"\d{4}-\d\d")):
        rows = pd.DataFrame(
            {
                "question": [f"q{i}" for i in range(days)],
                "answer": "a",
                "ts": pd.date_range("2026-01-01", periods=days, freq="D").astype(str),
            }
        )
        daily = read_log(label_traces(rows))[1].daily
        assert daily["day"].str.fullmatch(form).all()
        assert daily["n"].sum() == days


def test_chances_count_all_questions_and_each_stratum_once():
    rows = pd.DataFrame(log(400)).rename(columns={"q": "question"})
    drawn = read_log(label_traces(rows))[1].to_label
    assert drawn["question"].is_unique
    assert set(drawn["reason"]) <= set(REASONS)
    assert drawn["inclusion_probability"].between(0, 1, inclusive="right").all()
    assert (1 / drawn["inclusion_probability"]).sum() == pytest.approx(rows["question"].nunique())
    assert 50 <= len(drawn) <= 90


def test_the_draw_weighs_back_to_all_rows_without_bias():
    """Over many logs the weighted rates are on average those of all rows; plain means of the draw are not."""
    errors, plain = [], []
    for seed in range(60):
        rows = pd.DataFrame(log(300, seed)).rename(columns={"q": "question"})
        every, found = read_log(label_traces(rows))[:2]
        drawn = found.to_label
        rng = random.Random(seed)
        # What is wrong with a question depends on what the strata see, and on chance.
        empty, refused = (every[name] == 1 for name in ("empty_retrieval", "refusal_rate_proposed"))
        risk = np.where(empty, 0.7, np.where(refused, 0.3, 0.1))
        bad = {q: rng.random() < p for q, p in zip(rows["question"], risk, strict=True)}
        truth = np.mean([bad[q] for q in rows["question"]])
        asked = rows[["question"]].merge(
            drawn[["question", "inclusion_probability"]], on="question"
        )
        scores = asked.assign(wrong=[float(bad[q]) for q in asked["question"]])
        means = rn.weighted_means(scores, metrics=[rn.Metric("wrong", better="lower")])
        errors.append(means.loc[0, "value"] - truth)
        plain.append(scores["wrong"].mean() - truth)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))
    assert abs(np.mean(plain)) > abs(np.mean(errors))


def test_a_filled_file_gives_the_full_sheet_and_blank_rows_are_left_out(tmp_path, capsys):
    path, label = write(tmp_path, log(200)), tmp_path / "gold.csv"
    assert main(["check", str(path), "--to-label", str(label)]) == 0
    blank = pd.read_csv(label, dtype=str)
    with pytest.raises(RagnbError, match="true or false"):
        rn.assess(path, gold=label)
    blank["answerable"] = [["true", "false"][i % 2] for i in range(len(blank))]
    blank["gold_ids"] = "a.pdf#p0"
    blank.loc[30:, "answerable"] = ""
    blank.to_csv(label, index=False)
    gold = rn.read_gold(label)
    assert len(gold) == 30
    sheet = rn.assess(path, gold=label)
    assert sheet.log is None
    assert {"drawn"} <= set(sheet.notes["code"])
    weight = 1 / gold.set_index("question")["inclusion_probability"]
    asked = sheet.scores[sheet.scores["question"].isin(weight.index)]
    over = asked[asked["over_refusal"].notna()]
    expected = np.average(over["over_refusal"], weights=weight[over["question"]])
    assert sheet.means.set_index("metric").loc["over_refusal", "value"] == pytest.approx(expected)
    assert main(["check", str(path), "--gold", str(label)]) in (0, 1)


def test_blank_rows_of_any_other_gold_file_are_refused():
    with pytest.raises(RagnbError, match="true or false"):
        rn.read_gold([{"q": "a", "answerable": True}, {"q": "b", "answerable": ""}])


def test_questions_to_label_are_only_those_of_a_log(tmp_path, capsys):
    scores = tmp_path / "s.csv"
    scores.write_text("question,faithfulness\na,0.5\nb,1\n")
    assert main(["check", str(scores), "--to-label", str(tmp_path / "gold.csv")]) == 2
    assert "only traces without gold" in capsys.readouterr().err
    assert not (tmp_path / "gold.csv").exists()


def test_a_gate_on_a_log_decides(tmp_path):
    path = write(tmp_path, log(200))
    gate = {"name": "empty", "metric": "empty_retrieval", "op": "<=", "threshold": 0.05}
    assert rn.assess(path, gates=[gate]).blocked
    assert not rn.assess(path, gates=[gate | {"threshold": 0.9}]).blocked


def test_a_log_in_memory_is_read_as_its_file(tmp_path):
    rows = log(50)
    frame = pd.DataFrame(rows).rename(columns={"q": "question"})
    one, other = rn.assess(write(tmp_path, rows)), rn.assess(frame)
    pd.testing.assert_frame_equal(one.means, other.means)
    pd.testing.assert_frame_equal(one.log.to_label, other.log.to_label)


def test_the_page_and_the_files_of_a_log(tmp_path):
    for lang in ("en", "zh"):
        sheet = rn.assess(write(tmp_path, log(80)), lang=lang)
        files = sheet.save(tmp_path / lang)
        assert {"to_label.csv", "log_daily.csv"} <= set(files)
        keys = [section.key for section in sheet.sections()]
        assert {"label", "wording"} <= set(keys)
        assert not [a for a, b in pairwise(keys) if a == b]
        page = files["report.html"].read_text(encoding="utf-8")
        assert str(sheet.log.to_label["question"].iloc[0]) in page


@pytest.mark.parametrize(("questions", "rate"), [(2, 0), (3, 1)])
def test_an_answer_is_repeated_from_three_questions_on(questions, rate):
    rows = pd.DataFrame({"question": [f"q{i}" for i in range(questions)], "answer": "The same."})
    assert read_log(label_traces(rows))[0]["repeated_answer"].tolist() == [rate] * questions


def test_the_lowest_quarter_of_support_and_any_lost_figure_is_a_reason_of_its_own():
    words = [f"w{chr(97 + i)}" for i in range(8)]
    passage = " ".join(words)
    answers = [" ".join([*words[:i], *["other"] * (8 - i)]) for i in range(1, 9)]
    rows = pd.DataFrame(
        {
            "question": [f"q{i}" for i in range(8)],
            "answer": answers,
            "retrieved_contexts": [[passage]] * 8,
        }
    )
    made, found = read_log(label_traces(rows))
    low = made["support_lexical"] < made["support_lexical"].quantile(0.25)
    reasons = found.to_label.set_index("question")["reason"]
    assert low.sum() == 2
    assert {q for q, reason in reasons.items() if reason == "unsupported"} == set(
        made["question"][low]
    )
    rows.loc[7, "answer"] += " 42"
    assert (
        read_log(label_traces(rows))[1].to_label.set_index("question")["reason"]["q7"]
        == "unsupported"
    )


def test_of_a_rare_reason_two_questions_are_drawn():
    rows = pd.DataFrame(
        {
            "question": [f"q{i}" for i in range(300)],
            "answer": [f"a{i}" for i in range(300)],
            "chunks": [[] if i < 3 else ["a#1"] for i in range(300)],
        }
    )
    drawn = read_log(label_traces(rows))[1].to_label
    rare = drawn[drawn["reason"] == "empty"]
    assert rare["inclusion_probability"].tolist() == [pytest.approx(2 / 3)] * 2
