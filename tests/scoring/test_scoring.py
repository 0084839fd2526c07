"""Scores over cases: the real ragas against an endpoint on 127.0.0.1, our own metrics, the default without key."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from llm_server import Answer, LlmServer
from ragas_server import embed, judge

import ragnb as rn
from ragnb import texts
from ragnb.errors import MissingExtraError, RagnbError, RagnbWarning
from ragnb.schema import EvalCase, Profile
from ragnb.scoring import EMBEDDED, JUDGED, SCORERS, answer_cases, evaluate, expected
from ragnb.scoring import ragas as door
from ragnb.scoring.answering import named_function
from ragnb.store import Client, Store

ROOT = Path(__file__).resolve().parents[2]
fails = pytest.mark.filterwarnings("ignore:.*cells failed:ragnb.errors.RagnbWarning")
stops = pytest.mark.filterwarnings("ignore:.*cells are saved:ragnb.errors.RagnbWarning")


def client_of(server, **more):
    return Client(
        Profile(base_url=server.base_url, model=more.pop("model", "small")),
        **({"retries": 0} | more),
    )


CASE = {
    "sample_id": "s1",
    "question": "How long is the warranty?",
    "answer": "The warranty is 24 months. It covers theft.",
    "ground_truth_answer": "The warranty is 24 months. It starts on delivery.",
    "retrieved_contexts": ["Lunch is at noon.", "The warranty is 24 months."],
    "doc_name": "保修.pdf",
    "style": "=formal",
}


@pytest.fixture(scope="module")
def server():
    with LlmServer(judge, embed) as running:
        yield running


@pytest.fixture
def log(server):
    server.script = judge
    server.log.clear()
    return server.log


def test_the_default_is_the_nine_metrics_and_equal_requests_of_theirs_are_sent_once(server, log):
    cases = [
        CASE,
        CASE
        | {"sample_id": "s2", "retrieved_contexts": ["a.", "b.", "The warranty is 24 months."]},
    ]
    judge_client, vectors = client_of(server), client_of(server, model="vectors")
    before = expected(cases, client=judge_client, embeddings=vectors)
    assert log == []
    scores = evaluate(cases, client=judge_client, embeddings=vectors)
    assert before.calls == 2 * 14 + 2 + 3 + 7 + 9 + 8
    assert (
        len(log)
        == len({json.dumps(request.body) for request in log})
        == scores.attrs["spent"]["calls"]
        == 32
    )
    assert [name for name in scores if "__" not in name and name not in CASE] == list(JUDGED)
    assert set(scores[[f"{name}__status" for name in JUDGED]].to_numpy().ravel()) == {"ok"}
    assert list(scores["sample_id"]) == ["s1", "s2"]
    assert list(scores["style"]) == ["=formal"] * 2
    assert list(scores["doc_name"]) == ["保修.pdf"] * 2
    assert all(r.body["temperature"] == 0 for r in log if r.path.endswith("completions"))


@pytest.mark.parametrize("name", JUDGED)
def test_each_metric_makes_the_calls_that_are_expected_of_it(server, log, name):
    # At temperature 0 equal requests would be sent once.
    both = {
        "client": client_of(server),
        "embeddings": client_of(server),
        "parameters": {"temperature": 1},
    }
    calls = expected([CASE], metrics=name, **both).calls
    scores = evaluate([CASE], metrics=name, **both)
    assert calls == len(log) == SCORERS[name].judge_calls(CASE) + SCORERS[name].embeds
    assert scores[f"{name}__status"][0] == "ok"


WORKED = [
    ("faithfulness", {}, 0.5),
    ("faithfulness", {"retrieved_contexts": ["The warranty is 24 months. It covers theft."]}, 1.0),
    ("context_relevance", {}, 0.5),
    ("context_recall", {}, 0.5),
    ("context_precision_by_answer", {"ground_truth_answer": "The warranty is 24 months."}, 0.5),
    (
        "context_precision_by_answer",
        {
            "ground_truth_answer": "The warranty is 24 months.",
            "retrieved_contexts": ["The warranty is 24 months.", "Lunch is at noon."],
        },
        1.0,
    ),
    ("answer_correctness", {"answer": "The warranty is 24 months. It starts on delivery."}, 1.0),
    ("answer_correctness", {"answer": "The warranty is 36 months."}, 0.25),
    ("answer_relevancy", {}, 1.0),
    ("answer_relevancy", {"answer": "I do not know."}, 0.0),
    ("factual_correctness", {}, 0.5),
    ("semantic_similarity", {}, 1.0),
    ("semantic_similarity", {"ground_truth_answer": "Is it 24 months?"}, 0.6),
    (
        "noise_sensitivity",
        {"retrieved_contexts": ["The warranty is 24 months. It covers theft."]},
        0.5,
    ),
    ("noise_sensitivity", {}, 0.0),
]


@pytest.mark.parametrize(("name", "change", "value"), WORKED)
def test_worked_examples_through_the_whole_path(server, log, name, change, value):
    both = {"client": client_of(server), "embeddings": client_of(server)}
    scores = evaluate([CASE | change], metrics=name, **both)
    assert scores[name][0] == pytest.approx(value, abs=1e-7)


def test_a_second_run_pays_nothing_and_another_model_pays_anew(server, log, tmp_path):
    store, names = tmp_path / "runs.sqlite", ["faithfulness", "context_recall", "support_lexical"]
    first = evaluate([CASE], metrics=names, client=client_of(server), store=store)
    assert len(log) == 3
    assert expected([CASE], metrics=names, client=client_of(server), store=store).calls == 0
    again = evaluate([CASE], metrics=names, client=client_of(server), store=store)
    assert len(log) == 3
    pd.testing.assert_frame_equal(first, again)
    evaluate([CASE], metrics=names, client=client_of(server, model="large"), store=store)
    assert len(log) == 6
    evaluate(
        [CASE],
        metrics="faithfulness",
        client=client_of(server),
        store=store,
        parameters={"temperature": 1},
    )
    assert len(log) == 8
    assert log[-1].body["temperature"] == 1


@stops
def test_a_budget_stops_and_a_larger_one_goes_on(server, log, tmp_path):
    cases = [CASE | {"sample_id": f"s{i}", "answer": f"{CASE['answer']} {i}."} for i in range(5)]
    tight = client_of(server, max_calls=4, concurrency=1)
    part = evaluate(cases, metrics="faithfulness", client=tight, store=tmp_path / "a.sqlite")
    assert part["faithfulness__status"].tolist() == ["ok"] * 2 + ["missing"] * 3
    assert part["faithfulness"].isna().tolist() == [False] * 2 + [True] * 3
    assert "budget" in part.attrs["spent"]["stopped"]
    whole = evaluate(
        cases, metrics="faithfulness", client=client_of(server), store=tmp_path / "a.sqlite"
    )
    assert set(whole["faithfulness__status"]) == {"ok"}
    assert len(log) == 10


@fails
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("no JSON at all", "could not be read, twice"),
        ('{"statements": [{"statement": "a", "reason": "r", "verdict": 1}]}', "could not be read"),
        (Answer("{", finish_reason="length"), "cut off"),
        (Answer(None), "no content"),
    ],
)
def test_a_failing_cell_keeps_its_reply_and_the_others_their_scores(
    server, log, tmp_path, reply, reason
):
    server.script = lambda request: (
        reply if "twelve" in str(request.body["messages"]) else judge(request)
    )
    cases = [CASE, CASE | {"sample_id": "s2", "answer": "It is twelve months."}]
    with Store(tmp_path / "a.sqlite") as store:
        scores = evaluate(cases, metrics="faithfulness", client=client_of(server), store=store)
        kept = store.frame(scores.attrs["spent"]["run"])
    assert scores["faithfulness__status"].tolist() == ["ok", "failed"]
    assert math.isnan(scores["faithfulness"][1])
    assert reason in scores["faithfulness__reason"][1]
    (failed,) = scores.attrs["failed"]
    assert failed["reply"] == kept["reply"][1]
    if isinstance(reply, str):
        assert failed["reply"] == reply
    server.script = judge


def once(fault):
    """A judge that errs in the first reply of each kind alone."""
    seen = set()

    def script(request):
        text = judge(request)
        kind = "verdict" in text
        first, _ = (kind not in seen and len(request.body["messages"]) == 1), seen.add(kind)
        return fault(text) if first else text

    return script


@pytest.mark.parametrize(
    "fault",
    [
        lambda text: "Sorry, here: " + text[:-1],
        lambda text: text.replace('"verdict": 1', '"verdict": 7'),
        lambda text: text.replace('"verdict": 0', '"verdict": null'),
        lambda text: text.replace(
            '"reason": "r", "verdict": 0}]',
            '"reason": "r", "verdict": 0}, {"statement": "x", "reason": "r", "verdict": 1}]',
        ),
    ],
)
def test_what_cannot_be_right_is_asked_for_again_and_never_counted(server, log, fault):
    server.script = once(fault)
    scores = evaluate([CASE], metrics="faithfulness", client=client_of(server))
    assert scores["faithfulness"][0] == 0.5
    assert len(log) in (3, 4)
    server.script = judge


def test_words_and_fences_around_the_json_cost_nothing(server, log):
    server.script = lambda request: f"Of course:\n```json\n{judge(request)}\n```\nDone."
    assert (
        evaluate([CASE], metrics="faithfulness", client=client_of(server))["faithfulness"][0] == 0.5
    )
    assert len(log) == 2
    server.script = judge


@pytest.mark.parametrize("name", ["faithfulness", "answer_correctness", "noise_sensitivity"])
def test_without_a_statement_there_is_no_ratio(server, log, name):
    """ragas counts an answer without statements as perfectly correct; here it is missing, and paid for once."""
    server.script = lambda request: '{"statements": []}'
    both = {"client": client_of(server), "embeddings": client_of(server)}
    scores = evaluate([CASE], metrics=name, **both)
    assert math.isnan(scores[name][0])
    assert (scores[f"{name}__status"][0], scores[f"{name}__reason"][0]) == (
        "missing",
        "no statement was found: 0/0",
    )
    server.script = judge


def test_a_case_that_lacks_a_field_is_not_applicable_and_costs_nothing(server, log):
    production = {key: CASE[key] for key in ("question", "answer", "retrieved_contexts")}
    scores = evaluate([production], client=client_of(server), embeddings=client_of(server))
    found = {name: scores[f"{name}__status"][0] for name in JUDGED}
    assert {name for name, status in found.items() if status == "ok"} == {
        "faithfulness",
        "context_relevance",
        "answer_relevancy",
    }
    assert scores["context_recall__reason"][0] == "no ground_truth_answer"
    assert len(log) == 2 + 1 + 1 + 2, "answer_relevancy asks the same three times"


def test_what_was_not_retrieved_is_told_from_what_did_not_run(server, log):
    empty, absent = (
        CASE | {"retrieved_contexts": []},
        CASE | {"sample_id": "s2", "retrieved_contexts": None},
    )
    names = [
        "faithfulness",
        "context_recall",
        "context_precision_by_answer",
        "context_relevance",
        "noise_sensitivity",
    ]
    assert (
        expected(
            [EvalCase(**empty), EvalCase(**absent)], metrics=names, client=client_of(server)
        ).calls
        == 2
    )
    scores = evaluate(
        [EvalCase(**empty), EvalCase(**absent)], metrics=names, client=client_of(server)
    )
    status = {name: scores[f"{name}__status"].tolist() for name in names}
    assert status["faithfulness"] == status["context_recall"] == ["ok", "not_applicable"]
    assert scores["faithfulness"][0] == scores["context_recall"][0] == 0
    for name in names[2:]:
        assert status[name] == ["missing", "not_applicable"]
    assert len(log) == 2


def test_embeddings_may_be_a_function_and_the_judge_may_do_without(server, log):
    seen = []

    async def local(given):
        seen.append(list(given))
        return np.array([[1.0, -1.0] if "delivery" in text else [-1.0, 0.5] for text in given])

    scores = evaluate([CASE], metrics=["semantic_similarity", "exact_match"], embeddings=local)
    assert scores["semantic_similarity"][0] == pytest.approx(-3 / 10**0.5, abs=1e-7)
    assert scores["exact_match"][0] == 0
    assert (len(seen), len(log)) == (1, 0)
    with pytest.warns(RagnbWarning, match="failed"):
        failed = evaluate([CASE], metrics="semantic_similarity", embeddings=lambda given: [[1.0]])
    assert failed["semantic_similarity__status"][0] == "failed"


def test_without_embeddings_the_default_says_what_it_leaves_out(server, log):
    scores = evaluate([CASE], client=client_of(server), lang="zh")
    assert "answer_relevancy" not in scores
    (note,) = scores.attrs["notes"]
    assert note["code"] == "no_embeddings"
    assert "answer_relevancy, semantic_similarity, answer_correctness" in note["text"]
    assert any(texts.entry("zh", "scoring.relevance")[:20] in str(r.body) for r in log)


@pytest.mark.parametrize(
    ("name", "answer", "value"),
    [
        ("exact_match", "24 months.", 1.0),
        ("exact_match", "24 months", 0.0),
        ("string_present", "It is 24 months. Thanks.", 1.0),
        ("non_llm_string_similarity", "24 month.", 0.9),
        ("rouge_score", "24 hours.", 0.5),
    ],
)
def test_the_metrics_of_ragas_without_a_model(name, answer, value):
    case = {"question": "How long?", "answer": answer, "ground_truth_answer": "24 months."}
    assert evaluate([case], metrics=name)[name][0] == pytest.approx(value)


def test_a_package_that_ragas_needs_fails_the_cell_in_words():
    case = {"question": "How long?", "answer": "24", "ground_truth_answer": "24 months."}
    with pytest.warns(RagnbWarning, match="sacrebleu"):
        scores = evaluate([case], metrics=["bleu_score", "chrf_score"])
    assert scores["bleu_score__status"][0] == "failed"


def test_refusals_name_the_choices(server):
    for metrics, said in (
        ("faithfullness", "did you mean 'faithfulness'"),
        ("faithfulness", "needs a judge"),
        (["support_lexical", "support_lexical"], "names one metric twice"),
    ):
        with pytest.raises(RagnbError, match=said):
            evaluate([CASE], metrics=metrics)
    with pytest.raises(RagnbError, match="needs embeddings"):
        evaluate([CASE], metrics="answer_relevancy", client=client_of(server))


def test_the_pins_are_those_of_the_extra_and_are_printed(monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert list(door.PINS) == project["optional-dependencies"]["ragas"]
    code = (
        "import sys\n"
        "sys.modules['ragas._analytics'] = None\n"
        f"import ragnb as rn\nrn.evaluate([{CASE!r}], metrics='exact_match')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert 'pip install "ragnb[ragas]"' in done.stderr
    assert all(pin in done.stderr for pin in door.PINS)
    monkeypatch.setattr(door, "version", absent)
    with pytest.raises(MissingExtraError, match="langchain-community>=0.4,<0.4.2"):
        expected([CASE], metrics="exact_match")


def absent(name):
    raise door.PackageNotFoundError(name)


def test_no_socket_is_opened_but_to_the_endpoint(server, log):
    code = f"""
import json, sys
seen = []
def hook(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        seen.append([event, str(args[1] if event != "socket.getaddrinfo" else args[0])])
sys.addaudithook(hook)
import ragnb as rn
from ragnb.schema import Profile
profile = Profile(base_url={server.base_url!r}, model="m")
rn.evaluate([{CASE!r}], metrics=["faithfulness", "exact_match"], client=profile)
import time; time.sleep(0.3)
print(json.dumps(seen))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    seen = json.loads(done.stdout.splitlines()[-1])
    assert len(log) == 2
    assert seen
    assert all("127.0.0.1" in where for _, where in seen), seen


def test_scores_go_straight_into_weights_and_the_sheet(server, log):
    cases = [CASE | {"sample_id": f"s{i}", "doc_name": f"{i}.pdf"} for i in range(3)]
    scores = evaluate(cases, client=client_of(server), embeddings=client_of(server))
    sheet = rn.assess(scores, metric_weights={"faithfulness": 2})
    assert set(JUDGED) <= set(sheet.means["metric"])
    assert sheet.means.iloc[-1]["n"] == 3
    assert "faithfulness" in set(sheet.diagnoses["metric"])


# The default without a key


def test_the_default_without_a_judge_needs_no_key_and_says_what_it_is():
    cases = [CASE, CASE | {"sample_id": "s2", "retrieved_contexts": None}]
    scores = evaluate(cases)
    assert [name for name in scores if name in SCORERS] == list(EMBEDDED)
    assert scores["number_support"][0] == 1
    assert scores["support_lexical__status"].tolist() == ["ok", "not_applicable"]
    (note,) = scores.attrs["notes"]
    assert (note["code"], "not faithfulness" in note["text"]) == ("wording_only", True)
    sheet = rn.assess(scores)
    assert "wording_only" in set(sheet.notes["code"])
    assert math.isnan(sheet.means.iloc[-1]["value"]), "wording never makes a total"


# The system under test


def test_a_system_fills_its_side_in_order_and_its_faults_are_its_own(tmp_path):
    asked = []

    def retrieve(question):
        asked.append(question)
        if "down" in question:
            raise ConnectionError("no index")
        return {"none": None, "empty": []}.get(question, ["p " + question])

    async def generate(question, passages):
        return 7 if question == "seven" else f"{question}: {passages}"

    questions = ["a", "none", "empty", "down", "seven", "b"]
    cases = [
        {"sample_id": q, "question": q, "ground_truth_answer": "g", "kind": 1} for q in questions
    ]
    system = {"retrieve": retrieve, "generate": generate, "system": "mine"}
    with pytest.warns(RagnbWarning, match="2 of 6 cells failed"):
        done = answer_cases(cases, **system, store=tmp_path / "a.sqlite")
    assert done["question"].tolist() == questions
    assert done["retrieved_contexts"].tolist() == [["p a"], None, [], None, None, ["p b"]]
    assert done["answer"].tolist() == [
        "a: ['p a']",
        "none: None",
        "empty: []",
        None,
        None,
        "b: ['p b']",
    ]
    assert done["answer__status"].tolist() == ["ok", "ok", "ok", "failed", "failed", "ok"]
    assert done["answer__reason"][3] == "retrieve: ConnectionError: no index"
    assert done["answer__reason"][4] == "generate returned int, not a text"
    assert set(done["system"]) == {"mine"}
    asked.clear()
    with pytest.warns(RagnbWarning, match="2 of 6 cells failed"):
        answer_cases(
            cases, retrieve=retrieve, generate=generate, system="mine", store=tmp_path / "a.sqlite"
        )
    assert sorted(asked) == ["down", "seven"]
    scored = evaluate(done)
    lacking = ["not_applicable"] * 2
    assert scored["support_lexical__status"].tolist() == [
        "ok",
        "not_applicable",
        "missing",
        *lacking,
        "ok",
    ]
    with pytest.raises(RagnbError, match="system="):
        answer_cases(cases, retrieve=retrieve, generate=generate, store=tmp_path / "b.sqlite")


def test_two_scenarios_in_one_session_each_have_their_own_module(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        code = f"def answer():\n    return {name!r}\n"
        (tmp_path / name / "own_rag.py").write_text(code, encoding="utf-8")
    for name in ("one", "two", "one"):
        assert named_function("own_rag:answer", tmp_path / name)() == name
    monkeypatch.delitem(sys.modules, "own_rag")
