"""Answers, gold, logs and objects as people have them, by kind: what they mean, by a plain loop."""

from __future__ import annotations

import json

import pandas as pd
import polars as pl
import pytest
from meaning import BLOCKED, passages_of, pasted, proposed_options, ragnb, row_of, text_of, write

import ragnb as rn
from ragnb.errors import RagnbError

pytestmark = pytest.mark.filterwarnings("ignore::ragnb.errors.RagnbWarning")
TEXTS = [f"Rule {number} allows {number + 2} days of leave." for number in range(20)]


def question(number):
    return f"How many days of leave does rule {number} allow?"


# 8. Gold

GOLD_NAMES = [
    "expected_answer",
    "gold_answer",
    "expected_information",
    "reference_answer",
    "ideal_answer",
    "golden_answer",
    "correct_answer",
    "Musterantwort",
    "标准答案",
    "参考答案",
    "正解",
    "모범답안",
    "réponse attendue",
    "respuesta esperada",
    "эталонный ответ",
]


@pytest.mark.parametrize("name", GOLD_NAMES)
@pytest.mark.parametrize("answered", [False, True], ids=["gold alone", "with answers"])
def test_a_reference_answer_of_any_name_is_found(tmp_path, name, answered):
    rows = [{"id": f"g{n}", "question": question(n), name: TEXTS[n]} for n in range(8)]
    if answered:
        rows = [row | {"model_answer": "Ten days."} for row in rows]
    path = write(tmp_path / "set.csv", rows)
    cases = rn.read_cases(path)
    assert cases["ground_truth_answer"].tolist() == TEXTS[:8]
    assert rn.inspect_file(path).columns[name] == "ground_truth_answer"
    if answered:
        assert cases["answer"].tolist() == ["Ten days."] * 8


@pytest.mark.parametrize(
    ("asked", "answer"),
    [("question", "answer"), ("问题", "答案"), ("Frage", "Antwort"), ("質問", "回答")],
)
def test_questions_with_answers_alone_are_asked_what_they_are(tmp_path, asked, answer):
    """A set of references, or the answers of a system? Refusal rates of a gold set mean nothing."""
    rows = [{asked: question(n), answer: TEXTS[n]} for n in range(12)]
    path = write(tmp_path / "qa.csv", rows)
    said = text_of(path)
    assert "ground_truth_answer" in said  # the other reading, by name
    code, said = ragnb("check", path)
    assert code == 2 or "ground_truth_answer" in said
    if code == 2:
        options = [option for option in proposed_options(said) if option.startswith("columns=")]
        assert options, said
    cases = rn.read_cases(path, columns={answer: "ground_truth_answer"})
    assert cases["ground_truth_answer"].tolist() == TEXTS[:12]


def test_gold_beside_gold_is_never_the_answer(tmp_path):
    """Two columns of references and no answer: neither is what a system said."""
    rows = [
        {
            "sample_query": question(n),
            "expected_output": TEXTS[n],
            "ground_truth_answer": TEXTS[n].upper(),
        }
        for n in range(8)
    ]
    card = rn.inspect_file(write(tmp_path / "set.csv", rows))
    assert "answer" not in card.columns.values()
    assert "expected_output" in str(card)


# 9. Citations

FORMS = {
    "[id]": "{text} [{id}]",
    "(id)": "{text} ({id})",
    "【id】": "{text}【{id}】",
    "[^id]": "{text}[^{id}]",
    "[text](id)": "{text} [see the rule]({id})",
    "<cite>": "{text} <cite>{id}</cite>",
    "source: id": "{text}\nSource: {id}",
    "citations: [a]": "{text} citations: [{id}]",
}


def cited(tmp_path, form, hits=14, count=20, number=False):
    """Traces that cite the right passage in `hits` of `count` answers, else a wrong one, and their gold."""
    traces, gold = [], []
    for place in range(count):
        ids = [f"hr-{place}", f"hr-{place + 1}", f"hr-{place + 2}"]
        right = place < hits
        mark = (1 if right else 2) if number else ids[0 if right else 1]
        answer = form.format(text=TEXTS[place], id=mark)
        chunks = [{"id": name, "text": TEXTS[place]} for name in ids]
        traces.append(
            {"qid": f"q{place}", "q": question(place), "answer": answer, "chunks": chunks}
        )
        gold.append(
            {"qid": f"q{place}", "q": question(place), "answerable": True, "gold_ids": ids[:1]}
        )
    return write(tmp_path / "traces.jsonl", traces), write(tmp_path / "gold.jsonl", gold)


@pytest.mark.parametrize("form", FORMS)
def test_a_citation_counts_in_every_form(tmp_path, form):
    traces, gold = cited(tmp_path, FORMS[form])
    row = row_of(rn.assess(traces, gold=gold), "citation_hit_rate")
    assert (row["value"], row["n"]) == (pytest.approx(0.7), 20)
    said = ragnb("check", "--traces", traces, "--gold", gold)[1]
    assert "No citation was found" not in said


def test_numbers_are_places_in_the_passages_of_the_row(tmp_path):
    traces, gold = cited(tmp_path, "{text} [{id}]", number=True)
    row = row_of(rn.assess(traces, gold=gold), "citation_hit_rate")
    assert row["value"] == pytest.approx(0.7)


def test_a_year_in_brackets_is_no_citation(tmp_path):
    traces, gold = cited(tmp_path, "{text} [2024]")
    assert row_of(rn.assess(traces, gold=gold), "citation_hit_rate")["value"] == 0


def test_no_citation_in_any_form_is_said_and_blocks(tmp_path):
    traces, gold = cited(tmp_path, "{text}")
    code, said = ragnb("check", "--traces", traces, "--gold", gold)
    assert code in BLOCKED
    assert "No citation was found in 20 answers" in said
    assert "forms tried" in said


def test_the_form_can_be_set(tmp_path):
    traces, gold = cited(tmp_path, FORMS["【id】"])
    code, said = ragnb("check", "--traces", traces, "--gold", gold, "-p", "citations=inline")
    assert code in (0, 1), said
    row = row_of(rn.assess(traces, gold=gold, citations="inline"), "citation_hit_rate")
    assert row["value"] == pytest.approx(0.7)


# 10. Logs

ERRORS = {
    "error": (None, "timeout"),
    "exception": ("", "ReadTimeout: 30 s"),
    "status": ("ok", "error"),
    "status_code": (200, 503),
    "http_status": (200, 429),
    "ok": (True, False),
    "success": (True, False),
    "finish_reason": ("stop", "error"),
    "错误信息": (None, "请求超时"),
    "Fehlermeldung": (None, "Zeitüberschreitung"),
}


def log(count=40, failed=(3, 17), **columns):
    """Lines of a log; a failed line has no answer. A column is a pair: if fine, if failed."""
    lines = []
    for number in range(count):
        bad = number in failed
        line = {
            "timestamp": f"2026-03-{1 + number // 10:02}T10:00:00Z",
            "question": question(number),
            "answer": None if bad else f"{number} days.",
            "latency_ms": 500 + number,
        }
        lines.append(line | {name: cells[bad] for name, cells in columns.items()})
    return lines


@pytest.mark.parametrize("column", ERRORS)
def test_errors_of_a_log_are_counted_whatever_the_column(tmp_path, column):
    path = write(tmp_path / "log.jsonl", log(**{column: ERRORS[column]}))
    traces = rn.read_traces(path)
    assert (~traces["ok"].astype(bool)).sum() == 2
    code, said = ragnb("check", path)
    assert code == 0, said  # failures with evidence are a rate of the system, not lost input
    assert "5.0 %" in said
    assert "errors 0.0 %" not in said


def test_a_log_without_a_column_of_errors_has_no_error_rate(tmp_path):
    path = write(tmp_path / "log.jsonl", log(failed=()))
    code, said = ragnb("check", path)
    assert code == 0
    measures = [line.split(" · ")[0] for line in said.splitlines()]
    assert "Refused" in measures
    assert "Failed requests" not in measures
    assert "failed" not in rn.assess(path).verdict


def test_failed_answers_are_not_ten_failed_cells_each(tmp_path):
    """7 % of the answers of a log failed: nothing that needs gold is lost, for there is no gold."""
    path = write(tmp_path / "log.jsonl", log(100, failed=range(0, 98, 14), ok=(True, False)))
    code, said = ragnb("check", path)
    assert code == 0
    assert "Incomplete" not in said
    assert "7.0 %" in said
    means = rn.assess(path).means.set_index("metric")
    for rate in ("answer_precision", "citation_hit_rate", "under_refusal"):
        if rate in means.index:
            assert means.loc[rate, "n_failed"] == 0
            assert means.loc[rate, "n_missing"] == 0


CHATS = {
    "messages": lambda n: {
        "messages": [
            {"role": "system", "content": "Answer from the documents."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": question(n)},
            {"role": "assistant", "content": TEXTS[n]},
        ]
    },
    "messages of parts": lambda n: {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": question(n)}]},
            {"role": "assistant", "content": [{"type": "text", "text": TEXTS[n]}]},
        ]
    },
    "turns": lambda n: {
        "turns": [{"speaker": "user", "text": question(n)}, {"speaker": "bot", "text": TEXTS[n]}]
    },
    "conversation": lambda n: {
        "conversation": [
            {"from": "human", "value": question(n)},
            {"from": "gpt", "value": TEXTS[n]},
        ]
    },
}


@pytest.mark.parametrize("kind", CHATS)
def test_a_chat_is_its_last_question_and_answer(tmp_path, kind):
    path = write(tmp_path / "chats.jsonl", [{"id": f"c{n}"} | CHATS[kind](n) for n in range(10)])
    traces = rn.read_traces(path)
    assert traces["question"].tolist() == [question(n) for n in range(10)]
    assert traces["answer"].tolist() == TEXTS[:10]
    assert ragnb("check", path)[0] == 0


STEPS = {
    "steps": lambda n: [
        {"type": "retrieval", "documents": [{"id": f"a{n}", "text": TEXTS[n]}]},
        {"type": "retrieval", "documents": [{"id": f"b{n}", "text": "Another rule."}]},
        {"type": "generation", "output": TEXTS[n]},
    ],
    "spans": lambda n: [
        {
            "name": "retriever",
            "kind": "RETRIEVER",
            "retrieved_contexts": [TEXTS[n], "Another rule."],
        },
        {"name": "llm", "kind": "LLM", "output": TEXTS[n]},
    ],
}


@pytest.mark.parametrize("kind", STEPS)
def test_passages_of_all_steps_are_passages(tmp_path, kind):
    rows = [{"question": question(n), "answer": TEXTS[n], kind: STEPS[kind](n)} for n in range(10)]
    path = write(tmp_path / "log.jsonl", rows)
    traces = rn.read_traces(path)
    assert passages_of(traces) == [[TEXTS[n], "Another rule."] for n in range(10)]
    assert row_of(rn.assess(path), "empty_retrieval")["value"] == 0


@pytest.mark.parametrize("engine", [pd.DataFrame, pl.DataFrame, list])
def test_gold_may_be_a_frame(tmp_path, engine):
    traces, path = cited(tmp_path, FORMS["[id]"])
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    sheet = rn.assess(traces, gold=engine(rows))
    assert row_of(sheet, "citation_hit_rate")["value"] == pytest.approx(0.7)


@pytest.mark.parametrize("name", ["timestamp", "created_at", "ts"])
def test_the_card_knows_the_time_that_check_uses(tmp_path, name):
    rows = [
        {name if key == "timestamp" else key: cell for key, cell in row.items()} for row in log()
    ]
    card = rn.inspect_file(write(tmp_path / "log.jsonl", rows))
    assert "Missing for more: ts" not in str(card)
    assert "ts, the time" not in str(card)
    assert name in str(card)


# 11. Objects


class NodeWithScore:
    """What LlamaIndex returns: the text is in `get_content()`."""

    def __init__(self, text):
        self.text = text

    def get_content(self):
        return self.text

    def __str__(self):
        return f"Node ID: 1\nText: {self.text[:20]}..."


class LangChainDocument:
    def __init__(self, text):
        self.page_content, self.metadata = text, {"source": "hr.pdf"}


class HaystackDocument:
    def __init__(self, text):
        self.content, self.id = text, "1"


class Opaque:
    """An object without a text."""


@pytest.mark.parametrize("made", [NodeWithScore, LangChainDocument, HaystackDocument])
def test_passages_are_taken_from_objects_whole(made):
    rows = [
        {"question": question(n), "answer": TEXTS[n], "retrieved_contexts": [made(TEXTS[n])]}
        for n in range(8)
    ]
    assert [given[0] for given in rn.read_cases(rows)["retrieved_contexts"]] == TEXTS[:8]
    row = row_of(rn.assess(rows), "support_lexical")
    assert row["value"] == pytest.approx(1)


def test_the_passages_of_a_response_are_its_source_nodes():
    rows = [
        {"query": question(n), "response": TEXTS[n], "source_nodes": [NodeWithScore(TEXTS[n])]}
        for n in range(8)
    ]
    assert row_of(rn.assess(rows), "support_lexical")["value"] == pytest.approx(1)


def test_an_object_without_a_text_is_refused_by_its_type():
    rows = [{"question": question(0), "answer": "Ten.", "retrieved_contexts": [Opaque()]}]
    with pytest.raises(RagnbError, match="Opaque"):
        rn.read_cases(rows)


@pytest.mark.parametrize(
    "cell",
    [
        "[NodeWithScore(node=TextNode(id_='1', text='{}'), score=0.9)]",
        "[Document(page_content='{}', metadata={{'source': 'hr.pdf'}})]",
        "[Document(id=1, content: '{}', score: 0.7)]",
    ],
)
def test_the_text_of_objects_in_a_table_is_no_passage(tmp_path, cell):
    rows = [
        {"question": question(n), "answer": TEXTS[n], "contexts": cell.format(TEXTS[n])}
        for n in range(8)
    ]
    path = write(tmp_path / "log.csv", rows)
    try:
        cases = rn.read_cases(path)
    except RagnbError as error:
        refusal = str(error)
    else:
        passages = passages_of(cases)  # parsed whole, or not used
        assert passages in ([[text] for text in TEXTS[:8]], [[]] * 8)
        return
    assert cell[1:].split("(")[0] in refusal


def test_every_function_takes_rows_by_the_same_door(tmp_path):
    rows = [{"question": question(n), "faithfulness": n / 10} for n in range(10)]
    whole = rn.weighted_means(pd.DataFrame(rows))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for given in (rows, columns, pl.DataFrame(rows), write(tmp_path / "s.csv", rows)):
        pd.testing.assert_frame_equal(rn.weighted_means(given), whole)
    ratings = [{"id": f"a{n}", "judge": 1 + n % 5, "human": 1 + n % 4} for n in range(60)]
    path = write(tmp_path / "ratings.csv", ratings)
    assert str(rn.calibrate(path)) == str(rn.calibrate(rn.read_ratings(path)))


def test_answers_are_generated_from_cases_of_any_kind():
    cases = [
        {"question": question(n), "retrieved_contexts": [NodeWithScore(TEXTS[n])]} for n in range(4)
    ]
    answered = rn.answer_cases(cases, generate=lambda asked, contexts: f"{asked} Ten.")
    assert answered["answer"].tolist() == [f"{question(n)} Ten." for n in range(4)]


# 14. Claims


def test_claim_containment_says_of_how_many(tmp_path):
    """Half of the answerable questions have a claim: the rate is of them, and both counts are said."""
    traces, gold = cited(tmp_path, FORMS["[id]"])
    rows = [json.loads(line) for line in gold.read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows):
        if number % 2:
            row["gold_claim"] = f"allows {number + 2} days of leave"
    sheet = rn.assess(traces, gold=write(gold, rows))
    row = row_of(sheet, "claim_containment")
    assert (row["value"], row["n"]) == (1, 10)
    lines = [line for line in sheet.to_markdown().splitlines() if "claim" in line.lower()]
    assert any("10" in line and "20" in line for line in lines)


def test_what_a_card_prints_for_answers_and_passages_works(tmp_path):
    rows = [
        {
            "input_text": question(n),
            "answer": TEXTS[n],
            "documents": str([TEXTS[n]]),
            "context": TEXTS[n],
        }
        for n in range(8)
    ]
    card = rn.inspect_file(write(tmp_path / "log.csv", rows))
    assert pasted(card).scores["question"].tolist() == [question(n) for n in range(8)]
    shown = str(card)
    assert "documents" in shown
    assert "context" in shown


@pytest.mark.parametrize("late", [None, "faithfulness"])
def test_a_log_whose_scores_come_late_is_a_table_of_scores(tmp_path, late):
    """The first records only say what to look at first: all of them decide what a file is."""
    rows = [
        {"question": question(n), "answer": TEXTS[n % 20], "chunks": [f"r{n}"]} for n in range(80)
    ]
    if late:
        for row in rows[60:]:
            row[late] = 0.5
    sheet = rn.assess(write(tmp_path / "log.jsonl", rows))
    assert (sheet.log is None) == bool(late)
    if late:
        assert row_of(sheet, late)[["value", "n", "n_missing"]].tolist() == [0.5, 20, 60]


def test_days_of_a_log_become_weeks_and_months_where_they_are_many(tmp_path):
    for step, days, form in (("1D", 20, "%Y-%m-%d"), ("1D", 150, "%G-W%V"), ("1D", 600, "%Y-%m")):
        times = pd.Series(pd.date_range("2024-12-28", periods=days, freq=step, tz="UTC"))
        rows = [
            {"timestamp": time.isoformat(), "question": question(n), "answer": TEXTS[n % 20]}
            for n, time in enumerate(times)
        ]
        daily = rn.assess(
            write(tmp_path / "log.jsonl", [*rows, {**rows[0], "timestamp": None}])
        ).log.daily
        counts = times.dt.strftime(form).value_counts().sort_index()
        assert daily["day"].dropna().tolist() == counts.index.tolist()
        assert daily["n"].tolist() == [*counts, 1]
