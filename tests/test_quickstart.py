"""The quickstart data: made again byte for byte, consistent, and scored as data/README.md says."""

import csv
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from ragnb.judging import parse_verdict, support_lexical

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "data" / "quickstart"
MADE = [
    "cases.jsonl",
    "gold.json",
    "judge_replies.jsonl",
    "judged_simulated.csv",
    "ratings.csv",
    "scores.csv",
    "scores_simulated.csv",
    "traces.strong.jsonl",
    "traces.weak.jsonl",
]


def lines(name):
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def rows(name):
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


PASSAGES = {row["id"]: row for row in lines("corpus.jsonl")}
QUESTIONS = {row["qid"]: row for row in lines("questions.jsonl")}
ANSWERABLE = [row for row in QUESTIONS.values() if row["answerable"]]


def stands_in(fact, text):
    """Look at every place of the fact; a Latin letter or digit beside it makes it part of a longer word."""
    fact, text = fact.lower(), f" {text.lower()} "
    places = [i for i in range(len(text)) if text.startswith(fact, i)]
    beside = [(text[i - 1], text[i + len(fact)]) for i in places]
    return any(not any(c.isascii() and c.isalnum() for c in pair) for pair in beside)


def test_make_gives_the_committed_bytes(tmp_path):
    subprocess.run([sys.executable, FOLDER / "make.py", "--out", tmp_path], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == MADE
    for name in MADE:
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), name


def test_quickstart_is_small():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.*")) < 600_000


def test_there_are_enough_questions_of_each_sort():
    assert (
        len(QUESTIONS)
        == len(lines("questions.jsonl"))
        == len({row["q"] for row in QUESTIONS.values()})
        == 80
    )
    assert len(QUESTIONS) - len(ANSWERABLE) == 18
    assert Counter(row["language"] for row in QUESTIONS.values()) == {"zh": 41, "en": 39}
    assert set(Counter(row["kind"] for row in ANSWERABLE)) == {"single", "numeric", "multi"}


def test_corpus_is_half_chinese_with_ids_that_citations_can_hold():
    documents = {row["doc_name"]: row["language"] for row in PASSAGES.values()}
    assert Counter(documents.values()) == {"zh": 7, "en": 7}
    assert all(4 <= n <= 8 for n in Counter(row["doc_name"] for row in PASSAGES.values()).values())
    assert len(PASSAGES) == len(lines("corpus.jsonl"))
    assert not [
        i for i in PASSAGES if set(i) & set(" \t[],") or not i.startswith(PASSAGES[i]["doc_name"])
    ]


def test_documents_of_the_questions_are_in_the_corpus():
    documents = {row["doc_name"] for row in PASSAGES.values()}
    assert {row["doc_name"] for row in QUESTIONS.values()} == documents


@pytest.mark.parametrize("question", ANSWERABLE, ids=lambda row: row["qid"])
def test_answerable_question_is_answered_by_its_gold_passages(question):
    gold = "\n".join(PASSAGES[i]["text"] for i in question["gold_ids"])
    assert question["key_facts"]
    for fact in question["key_facts"]:
        assert stands_in(fact, gold)
        assert stands_in(fact, question["ground_truth_answer"])
    assert question["gold_claim"].lower() in gold.lower()
    for i in question["gold_ids"]:
        assert any(stands_in(fact, PASSAGES[i]["text"]) for fact in question["key_facts"]), i


@pytest.mark.parametrize(
    "question",
    [row for row in QUESTIONS.values() if not row["answerable"]],
    ids=lambda row: row["qid"],
)
def test_unanswerable_question_has_no_answer_in_the_corpus(question):
    text = "\n".join(row["text"] for row in PASSAGES.values()).lower()
    assert question["absent"]
    assert not [word for word in question["absent"] if word.lower() in text]
    assert not question["gold_ids"]
    assert not question["key_facts"]
    assert question["ground_truth_answer"] is None is question["gold_claim"]


def expected_metrics(question, ids, answer, refused):
    """The definitions of data/README.md, by plain counting; None where there is no number."""
    facts, gold = question["key_facts"], question["gold_ids"]
    texts = [PASSAGES[i]["text"] for i in ids]
    out = dict.fromkeys(
        [
            "context_recall",
            "context_precision",
            "context_relevance",
            "answer_correctness",
            "support_lexical",
        ]
    )
    if not refused:
        out["support_lexical"] = support_lexical(answer, texts)
    if question["answerable"]:
        out["context_recall"] = sum(any(stands_in(f, t) for t in texts) for f in facts) / len(facts)
        out["answer_correctness"] = sum(stands_in(f, answer) for f in facts) / len(facts)
        if ids:
            seen, total = 0, 0.0
            for rank, i in enumerate(ids, 1):
                if i in gold:
                    seen += 1
                    total += seen / rank
            out["context_precision"] = total / seen if seen else 0.0
            out["context_relevance"] = seen / len(ids)
    return out


@pytest.mark.parametrize("system", ["weak", "strong"])
def test_scores_are_those_of_a_plain_loop_over_the_traces(system):
    traces = {row["qid"]: row for row in lines(f"traces.{system}.jsonl")}
    scores = {row["sample_id"]: row for row in rows("scores.csv") if row["system"] == system}
    assert list(scores) == list(traces) == list(QUESTIONS)
    for qid, row in scores.items():
        ids = [chunk["id"] for chunk in traces[qid]["chunks"]]
        answer = traces[qid]["answer"].split("\ncitations:")[0]
        refused = answer in ("not in context", "资料中没有相关内容")
        assert row["answer"] == answer
        for name, value in expected_metrics(QUESTIONS[qid], ids, answer, refused).items():
            status = row[f"{name}__status"]
            if value is None:
                assert row[name] == ""
                assert status == (
                    "missing" if row["answerable"] == "True" and not ids else "not_applicable"
                ) or (name == "support_lexical" and status == "not_applicable")
                assert row[f"{name}__reason"]
            else:
                assert float(row[name]) == pytest.approx(value, abs=1e-11)
                assert (status, row[f"{name}__reason"]) == ("ok", "")


@pytest.mark.parametrize("system", ["weak", "strong"])
def test_systems_err_in_every_way(system):
    """Right answers, over-refusals, hallucinations, right refusals and missed hits all occur."""
    outcomes = Counter()
    for trace in lines(f"traces.{system}.jsonl"):
        question = QUESTIONS[trace["qid"]]
        refused = trace["answer"] in ("not in context", "资料中没有相关内容")
        cited = trace.get("citations") or [i for i in PASSAGES if i in trace["answer"]]
        hit = bool(set(cited) & set(question["gold_ids"]))
        outcomes[question["answerable"], refused, hit] += 1
    assert outcomes[True, False, True] >= 40
    assert set(outcomes) == {(True, False, True), (True, False, False), (True, True, False)} | {
        (False, False, False),
        (False, True, False),
    }


def test_citations_stand_in_a_field_of_one_system_and_in_the_text_of_the_other():
    strong, weak = lines("traces.strong.jsonl"), lines("traces.weak.jsonl")
    assert all(
        isinstance(row["citations"], list) and "citations:" not in row["answer"] for row in strong
    )
    assert not any("citations" in row for row in weak)
    assert any("citations: [" in row["answer"] for row in weak)
    assert all(set(row["citations"]) <= {chunk["id"] for chunk in row["chunks"]} for row in strong)


def test_cases_are_the_scores_rows_with_their_passages():
    cases, scores = lines("cases.jsonl"), rows("scores.csv")
    assert [(c["sample_id"], c["system"], c["answer"]) for c in cases] == [
        (s["sample_id"], s["system"], s["answer"]) for s in scores
    ]
    texts = {row["text"] for row in PASSAGES.values()}
    assert all(set(case["retrieved_contexts"]) <= texts for case in cases)
    assert all(
        (case["ground_truth_contexts"] is None) == (not case["answerable"]) for case in cases
    )


def test_simulated_table_says_so_and_has_gaps():
    table = rows("scores_simulated.csv")
    metrics = [name.removesuffix("__status") for name in table[0] if name.endswith("__status")]
    assert len(table) == 120
    assert {row["origin"] for row in table} == {"simulated"}
    assert Counter(row["doc_name"] for row in table).most_common(1)[0][1] == 10
    statuses = Counter(row[f"{name}__status"] for row in table for name in metrics)
    assert set(statuses) == {"ok", "failed", "missing"}
    assert 0.04 < 1 - statuses["ok"] / statuses.total() < 0.08
    for row in table:
        for name in metrics:
            assert (row[name] == "") == (row[f"{name}__status"] != "ok")
            assert row[name] == "" or 0 <= float(row[name]) <= 1


def test_simulated_judge_and_raters_say_so_and_agree_on_what_they_saw():
    judged, table, scores = rows("judged_simulated.csv"), rows("ratings.csv"), rows("scores.csv")
    assert {row["origin"] for row in judged + table} == {"simulated"}
    told = [
        [(r["sample_id"], r["system"], r["question"], r["answer"]) for r in frame]
        for frame in (judged, scores)
    ]
    assert told[0] == told[1]
    of = {(row["sample_id"], row["system"]): row for row in judged}
    assert all(row["judge"] == of[row["item_id"], row["system"]][row["dimension"]] for row in table)
    assert Counter(row["dimension"] for row in table) == dict.fromkeys(
        ["accuracy", "completeness", "clarity"], 120
    )
    assert len({row["doc_name"] for row in table}) == 14
    given = [row[name] for row in table for name in ("judge", "human1", "human2", "human3")]
    assert {int(value) for value in given if value} == set(range(1, 11))
    assert 0.3 < sum(not row["human3"] for row in table) / len(table) < 0.5
    assert all(row["judge"] and row["human1"] and row["human2"] for row in table)


def test_simulated_judge_has_the_faults_that_the_readme_tells_of():
    table = rows("ratings.csv")
    for dimension, system, low, high in (
        ("accuracy", "weak", 0.6, 1.2),
        ("accuracy", "strong", -0.3, 0.3),
        ("completeness", "weak", -0.4, 0.4),
        ("completeness", "strong", -0.4, 0.4),
    ):
        chosen = [row for row in table if (row["dimension"], row["system"]) == (dimension, system)]
        people = [
            [int(row[name]) for name in ("human1", "human2", "human3") if row[name]]
            for row in chosen
        ]
        bias = [
            int(row["judge"]) - sum(given) / len(given)
            for row, given in zip(chosen, people, strict=True)
        ]
        assert low < sum(bias) / len(bias) < high, (dimension, system)
    clarity = Counter(row["judge"] for row in table if row["dimension"] == "clarity")
    assert set(clarity) == {"7", "8"}
    assert clarity["8"] > 100


def test_simulated_replies_say_so_and_give_the_simulated_scores_to_rated_answers():
    recorded = lines("judge_replies.jsonl")
    assert {row["origin"] for row in recorded} == {"simulated"}
    assert (
        len({(row["question"], row["answer"]) for row in recorded})
        == len(recorded)
        == 10 + 2 * 5 + 4
    )
    of = {(row["sample_id"], row["system"]): row for row in rows("judged_simulated.csv")}
    rated = {(row["item_id"], row["system"]) for row in rows("ratings.csv")}
    read = Counter()
    for row in recorded[:10]:
        place = row["sample_id"], row["system"]
        assert place in rated
        assert (row["question"], row["answer"]) == (of[place]["question"], of[place]["answer"])
        verdicts = [parse_verdict(text) for text in row["replies"]]
        read.update(verdict.parse_status for verdict in verdicts)
        first, second = (verdict.scores for verdict in verdicts if verdict.scores)
        assert first == {name: float(of[place][name]) for name in first}
        assert all(abs(second[name] - first[name]) <= 1 for name in first)
    assert read["no_json"] == 1
    assert read["folded"] == 4
    assert read["strict"] == 16
    assert all(parse_verdict(row["replies"][0]).status == "ok" for row in recorded[10:])
    for row in recorded[20:]:
        held = [fact in row["answer"] for fact in QUESTIONS[row["sample_id"]]["key_facts"]]
        right = parse_verdict(row["replies"][0]).scores["accuracy"] == 10
        assert (row["system"], right) == ("retried", bool(held) and all(held))


def test_judge_server_refuses_what_is_not_recorded_logs_it_and_ends_with_its_input(tmp_path):
    command = [sys.executable, FOLDER / "judge_server.py", "--log", tmp_path / "calls.jsonl"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        url = server.stdout.readline().strip()
        data = '<data-7>\n{"question": "Who?", "answer": "Ann."}\n</data-7>'
        body = {
            "model": "m",
            "messages": [{"role": "system", "content": ""}, {"role": "user", "content": data}],
        }
        request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        refused.value.close()
        server.stdin.close()
    assert (refused.value.code, server.returncode) == (422, 0)
    logged = json.loads((tmp_path / "calls.jsonl").read_text(encoding="utf-8"))
    assert logged == {"sample_id": None, "system": None, "call": 0, "again": False}
