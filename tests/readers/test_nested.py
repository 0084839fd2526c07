"""Logs as tools write them: nested messages, steps and spans; errors in words, flags and codes; gold in memory."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import ragnb as rn
from ragnb.readers import read_traces
from ragnb.readers.failures import outcomes
from ragnb.traces import label_traces, read_log

ASKED = {"role": "user", "content": "When may I return it?"}
FOUND = [{"id": "d#1", "text": "Within 30 days."}, {"id": "d#2", "text": "With a receipt."}]
SAID = {"role": "assistant", "content": "Within 30 days [d#1]."}
CHATS = {
    "plain": [ASKED, SAID],
    "earlier turns": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        ASKED,
        SAID,
    ],
    "parts": [{"role": "user", "content": [{"type": "text", "text": ASKED["content"]}]}, SAID],
    "tool": [
        ASKED,
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
        {"role": "tool", "content": json.dumps(FOUND)},
        SAID,
    ],
    "types": [{"type": "human", "text": ASKED["content"]}, {"type": "ai", "text": SAID["content"]}],
    "Chinese": [
        {"角色": "用户", "内容": ASKED["content"]},
        {"角色": "助手", "内容": SAID["content"]},
    ],
}


@pytest.mark.parametrize("name", ["messages", "conversation", "对话"])
@pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS)
def test_the_last_question_and_its_answer_are_those_of_a_chat(chat, name):
    row = read_traces([{name: chat}]).iloc[0]
    assert (row["question"], row["answer"]) == (ASKED["content"], SAID["content"])


def test_a_question_after_the_last_answer_has_none():
    row = read_traces([{"messages": [ASKED, SAID, {"role": "user", "content": "And then?"}]}])
    assert row["question"].tolist() == ["And then?"]
    assert row["answer"].isna().all()


def test_passages_of_all_steps_are_passages_and_keep_their_step():
    steps = [{"step": 1, "retrieved_contexts": FOUND[:1]}, {"step": 2, "documents": FOUND[1:]}]
    row = read_traces([{"question": "q", "answer": "a", "steps": steps}]).iloc[0]
    assert [(one["id"], one["step"]) for one in row["chunks"]] == [("d#1", 1), ("d#2", 2)]
    texts = [{"contexts": ["One passage."]}, {"contexts": ["Another passage."]}]
    row = read_traces([{"question": "q", "answer": "a", "steps": texts}]).iloc[0]
    assert row["retrieved_contexts"] == ["One passage.", "Another passage."]
    assert [one["step"] for one in row["retrieved_fields"]] == [1, 2]


def test_tool_messages_and_spans_hold_passages():
    row = read_traces([{"messages": CHATS["tool"]}]).iloc[0]
    assert [one["id"] for one in row["chunks"]] == ["d#1", "d#2"]
    chain = {"openinference.span.kind": "CHAIN", "input.value": "q?", "output.value": "a."}
    documents = [{"document.id": one["id"], "document.content": one["text"]} for one in FOUND]
    search = {"openinference.span.kind": "RETRIEVER", "retrieval.documents": documents}
    row = read_traces([{"spans": [{"attributes": chain}, {"attributes": search}]}]).iloc[0]
    assert (row["question"], row["answer"]) == ("q?", "a.")
    assert [one["id"] for one in row["chunks"]] == ["d#1", "d#2"]


@pytest.mark.parametrize(
    ("value", "searched"),
    [(None, False), ("", False), (" \n", False), ([], True), ("[]", True), (" [ ]", True)],
)
def test_an_empty_list_shows_that_a_step_searched_and_an_empty_text_does_not(value, searched):
    """Else a log with a blank cell says that retrieval found nothing, which nothing in it shows."""
    found = {"question": "q", "answer": "a", "steps": [{"documents": FOUND}]}
    other = {"question": "r", "answer": "b", "steps": [{"documents": value}]}
    search = {"openinference.span.kind": "RETRIEVER", "output.value": value}
    span = {"question": "s", "answer": "c", "steps": [search]}
    cells = read_traces([found, other, span])["chunks"]
    expected = [] if searched else None
    assert cells.tolist()[1:] == [expected, expected]
    # A list at the top of a record is read alike.
    at_top = [
        {"question": "q", "answer": "a", "sources": cell}
        for cell in (FOUND, "" if value == " \n" else value)
    ]
    assert read_traces(at_top)["chunks"].tolist()[1] == expected
    # A question that asks for d#1: recall is 0 where nothing was found, and not known where nothing says so.
    gold = pd.DataFrame(
        {"question": ["q", "r", "s"], "answerable": True, "gold_ids": [["d#1"]] * 3}
    )
    labelled = label_traces(read_traces([found, other, span]), gold=gold)
    rank = labelled.set_index("question")["reciprocal_rank"]
    assert rank["q"] == 1
    for question in ("r", "s"):
        assert rank[question] == 0 if searched else pd.isna(rank[question])


def test_retrieval_in_steps_is_measured():
    traces = [{"question": "q", "answer": "a [d#1]", "steps": [{"results": FOUND}]}]
    gold = pd.DataFrame({"question": ["q"], "answerable": [True], "gold_ids": [["d#2"]]})
    labelled = label_traces(read_traces(traces), gold=gold)
    assert labelled["reciprocal_rank"].tolist() == [0.5]
    assert labelled["citations_predicted"].tolist() == [["d#1"]]


FAILED = {
    "error": "timeout",
    "exception": "ValueError: no",
    "status": "error",
    "status_code": 503,
    "http_status": "429",
    "success": False,
    "ok": False,
    "failed": True,
    "finish_reason": "error",
    "错误": "超时",
    "状态": "失败",
    "errorMessage": {"message": "rate limit"},
}
FINE = {"status": "ok", "status_code": 200, "http_status": "200", "success": True, "ok": True}
FINE |= {"failed": False, "finish_reason": "stop", "状态": "成功"}


@pytest.mark.parametrize("column", FAILED)
def test_a_column_that_says_so_makes_failed_answers(column, tmp_path):
    rows = [
        {"question": f"q{i}", "answer": "" if i < 3 else f"Answer {i}.", column: FINE.get(column)}
        for i in range(12)
    ]
    for row in rows[:3]:
        row[column] = FAILED[column]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert read_traces(path)["ok"].tolist() == [False] * 3 + [True] * 9
    if column != "success":  # which may be a verdict on the answer, so it is asked
        sheet = rn.assess(path)
        assert sheet.log.daily["failed"].tolist() == [0.25]
        assert "3 of 12 answers failed (25.0 %)" in sheet.verdict
        assert not sheet.blocked
        assert sheet.means["n_failed"].sum() == 0
    # The same in memory, without the reader.
    labelled = label_traces(pd.DataFrame(rows))
    assert labelled["answered"].isna().tolist() == [True] * 3 + [False] * 9
    assert read_log(labelled)[1].daily["failed"].tolist() == [0.25]


def test_a_log_without_a_word_of_failures_has_no_error_rate():
    rows = [{"question": f"q{i}", "answer": "Yes.", "status": "open"} for i in range(5)]
    sheet = rn.assess(pd.DataFrame(rows))
    assert sheet.log.daily["failed"].isna().all()
    assert "errors" not in sheet.to_markdown()
    assert "failed" not in sheet.verdict


def test_an_answer_after_an_error_counts_only_where_something_says_that_it_came():
    columns = {"error": ["timeout"] * 3, "status": ["ok", None, "ok"]}
    came, words = outcomes(columns, ["Yes.", "Yes.", ""])
    assert came == [True, False, False]
    assert words == ["timeout"] * 3


def test_a_failed_answer_is_one_lost_answer_with_gold_too():
    gold = pd.DataFrame(
        {"question": list("abcd"), "answerable": True, "gold_ids": [["x"]] * 4, "doc_name": "d"}
    )
    traces = pd.DataFrame({"question": list("abcd"), "answer": ["Yes [x]."] * 3 + [""]})
    traces["error"] = [None, None, None, "timeout"]
    traces["chunks"] = [["x"]] * 4
    sheet = rn.assess(traces, gold=gold)
    means = sheet.means.set_index("metric")
    assert means.loc["over_refusal", ["n", "n_failed", "n_not_applicable"]].tolist() == [3, 0, 1]
    assert sheet.scores["ok"].tolist() == [True, True, True, False]


def test_gold_is_a_frame_a_file_or_records(tmp_path):
    gold = [{"question": q, "answerable": True, "gold_ids": ["x"]} for q in "ab"]
    path = tmp_path / "gold.json"
    path.write_text(json.dumps(gold), encoding="utf-8")
    traces = pd.DataFrame({"question": ["a", "b"], "answer": ["Yes [x].", "Yes."]})
    for one in (pd.DataFrame(gold), gold, path):
        assert label_traces(traces, gold=one)["citation_hit_rate"].tolist() == [1, 0]
        means = rn.assess(traces, gold=one).means.set_index("metric")
        assert means.loc["citation_hit_rate", "value"] == 0.5


def test_no_citation_at_all_is_said_and_never_called_conclusive():
    gold = [{"question": f"q{i}", "answerable": True, "gold_ids": ["x"]} for i in range(60)]
    traces = pd.DataFrame({"question": [f"q{i}" for i in range(60)], "answer": "Yes."})
    sheet = rn.assess(traces, gold=gold)
    assert sheet.blocked
    assert "No citation was found in 60 answers; forms tried: a list field" in sheet.verdict
    assert "conclusive" not in sheet.verdict
    only = rn.assess(traces, gold=gold, citations="links")
    assert "forms tried: [text](id)." in only.verdict


def test_claim_containment_says_both_n():
    gold = [{"question": f"q{i}", "answerable": True, "gold_ids": ["x"]} for i in range(15)]
    for row in gold[:12]:
        row["gold_claim"] = "thirty days"
    traces = pd.DataFrame({"question": [f"q{i}" for i in range(15)], "answer": "Thirty days [x]."})
    notes = rn.assess(traces, gold=gold).notes.set_index("code")["text"]
    assert notes["claims"] == "Claim containment: n = 12 with a gold claim, of 15 answerable."
    assert notes["citations_read"] == "15 of 15 answers cite as [id]; read so."
