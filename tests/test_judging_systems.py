"""Systems that answer while they are judged: the arena and the retry loop, against a server on 127.0.0.1."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from judge_server import block, examiner, scores

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.judging import arena, improve
from ragnb.schema import Profile
from ragnb.stats import clustered_mean
from ragnb.store import Client, Store

same_judge = pytest.mark.filterwarnings("ignore:The same judge:ragnb.errors.RagnbWarning")
fails = pytest.mark.filterwarnings("ignore:.*cells failed:ragnb.errors.RagnbWarning")

SOURCE = ["The pump has a warranty of 730 days. Filters are excluded from the warranty."]
RIGHT, WRONG = "The pump has a warranty of 730 days.", "Ten years, by decree 4711 of 1999."
QUESTIONS = [
    {"sample_id": str(n), "question": f"How long is the warranty of the pump, case {n}?", "doc_name": f"d{n % 3}"}
    for n in range(6)
]


def client_of(server, **more):
    return Client(Profile(base_url=server.base_url, model="small"), **({"retries": 0} | more))


@pytest.fixture
def server(llm_server):
    llm_server.script = examiner
    return llm_server


def cases(answers):
    return [q | {"answer": a, "retrieved_contexts": SOURCE} for q, a in zip(QUESTIONS, answers, strict=True)]


# The arena


async def waits(question):
    return {"answer": WRONG, "retrieved_contexts": SOURCE}


def test_systems_of_every_kind_are_judged_over_the_same_questions(server):
    recorded = pd.DataFrame([{"sample_id": q["sample_id"], "answer": RIGHT} for q in QUESTIONS[:5]])
    systems = {
        "called": lambda question: {"answer": RIGHT, "retrieved_contexts": SOURCE},
        "coroutine": waits,
        "recorded": recorded,
        "mapping": {"0": RIGHT},
    }
    found = arena(QUESTIONS, systems=systems, client=client_of(server), peek="called")
    assert found["system"].tolist() == [name for name in systems for _ in QUESTIONS]
    table = found.groupby("system", sort=False)["accuracy"].agg(["mean", "count"])
    assert table["count"].tolist() == [6, 6, 5, 1]
    assert table.loc["coroutine", "mean"] < 3 < 9 < table.loc[["called", "recorded", "mapping"], "mean"].min()
    assert found.loc[found["system"] == "recorded", "judge__mode"].eq("peek").all()
    assert (found["accuracy__status"] == "not_applicable").sum() == 6
    means = rn.weighted_means(found, by="system")
    assert set(means["system"]) == set(systems)


def test_the_judge_is_not_told_whose_answer_it_reads(server):
    arena(QUESTIONS, systems={"our-secret-name": lambda question: RIGHT}, client=client_of(server))
    assert not any("our-secret-name" in json.dumps(request.body) for request in server.log)


@fails
def test_answers_are_kept_and_a_system_that_fails_has_none(server, tmp_path):
    asked = []

    def system(question):
        asked.append(question)
        if "case 3" in question and len(asked) < 8:
            raise ConnectionError("down")
        return RIGHT

    with Store(tmp_path / "runs.sqlite") as store:
        first = arena(QUESTIONS, systems={"a": system}, client=client_of(server), store=store)
        calls = len(server.log)
        second = arena(QUESTIONS, systems={"a": system}, client=client_of(server), store=store)
        third = arena(QUESTIONS, systems={"a": system}, client=client_of(server), store=store)
    assert first["accuracy__status"].value_counts().to_dict() == {"ok": 5, "not_applicable": 1}
    assert second["accuracy__status"].tolist() == first["accuracy__status"].tolist()
    assert third["accuracy__status"].eq("ok").all()
    assert len(asked) == 8
    assert len(server.log) == calls + 1


def test_what_makes_no_sense_in_an_arena_is_refused(server):
    client = client_of(server)
    for systems, questions, message in (
        ({}, QUESTIONS, "systems is empty"),
        ({"a": {}}, [QUESTIONS[0]] * 2, "sample_id twice"),
        ({"a": pd.DataFrame({"id": [1]})}, QUESTIONS, "column='sample_id'"),
        ({"a": {"0": 7}}, QUESTIONS, "returned a int"),
    ):
        with pytest.raises(RagnbError, match=message):
            arena(questions, systems=systems, client=client)
    assert not server.log


# The retry loop


@same_judge
def test_the_system_gets_the_suggestion_until_the_bar_is_reached(server):
    told = []

    def system(question, answer, suggestion):
        told.append((question, answer, suggestion))
        return RIGHT if answer != WRONG else "Ten years, says decree 4711."

    found = improve(cases([RIGHT, WRONG] * 3), system, client_of(server), attempts=3)
    assert {suggestion for *_, suggestion in told} == {"quote the passage with the figure"}
    counts = found.attempts.groupby("sample_id").size()
    assert counts.tolist() == [1, 3] * 3
    assert len(told) == 6
    assert found.attempts.groupby("sample_id")["attempt"].max().tolist() == [0, 2] * 3
    assert (found.kept["accuracy"] > 9).all()
    assert found.kept["sample_id"].tolist() == [q["sample_id"] for q in QUESTIONS]


@same_judge
def test_the_gain_is_a_clustered_mean_of_differences_with_its_cost(server):
    found = improve(cases([RIGHT, WRONG] * 3), lambda *told: RIGHT, client_of(server))
    by_hand = clustered_mean(np.array([0, 7.5] * 3), [q["doc_name"] for q in QUESTIONS])
    row = found.gain.iloc[0]
    assert (row["value"], row["low"], row["high"]) == pytest.approx((by_hand.value, by_hand.low, by_hand.high))
    assert (row["n"], row["n_clusters"], row["n_tried"]) == (6, 3, 3)
    assert row["after"] - row["before"] == pytest.approx(row["value"])
    assert found.cost == {"answers": 3, "calls": 3, "tokens": 45}
    notes = found.notes.set_index("code")["text"]
    assert "The same judge scored the answers and guided the retries" in notes["same_judge"]
    assert "3 additional answers" in notes["cost"]


def test_a_warning_says_that_the_same_judge_scored_and_steered(server):
    with pytest.warns(UserWarning, match="The same judge scored the answers and guided the retries"):
        improve(cases([WRONG] * 6), lambda *told: RIGHT, client_of(server))


def test_good_answers_cost_nothing_more(server):
    found = improve(cases([RIGHT] * 6), lambda *told: 1 / 0, client_of(server))
    assert found.cost == {"answers": 0, "calls": 0, "tokens": 0}
    assert found.notes["code"].tolist() == ["gained_nothing", "cost"]
    assert found.gain["value"].tolist() == [0.0]


@same_judge
def test_a_worse_attempt_is_kept_in_the_table_but_not_as_the_answer(server):
    middling = "A warranty of the pump under which unspecified components and hoses count somewhat."
    found = improve(cases([middling] * 6), lambda *told: WRONG, client_of(server), attempts=1)
    assert found.attempts["accuracy"].tolist() == [6.0, 2.0] * 6
    assert found.kept["attempt"].tolist() == [0] * 6


@same_judge
@fails
def test_a_failed_judgement_is_made_again_and_never_counted_as_low(server):
    lost = set()

    def script(request):
        given = block(request)
        if "case 1" in given["question"] and given["question"] not in lost:
            lost.add(given["question"])
            return "?"
        return "?" if "case 2" in given["question"] else examiner(request)

    server.script = script
    asked = []
    found = improve(
        cases([RIGHT] * 6), lambda q, *told: asked.append(q) or RIGHT, client_of(server), tries=1, probes=False
    )
    first = found.attempts[found.attempts["attempt"] == 0].set_index("sample_id")
    assert first["accuracy__status"].tolist() == ["ok", "ok", "failed", "ok", "ok", "ok"]
    assert not asked
    assert found.gain["n"].tolist() == [5]
    assert "2 judgements" not in found.notes.set_index("code").loc["rejudged", "text"]
    assert "1 failed in the end" in found.notes.set_index("code").loc["rejudged", "text"]


@same_judge
@fails
def test_a_system_that_fails_ends_the_loop_and_keeps_what_was(server):
    def system(question, answer, suggestion):
        raise TimeoutError("gone")

    found = improve(cases([WRONG] * 6), system, client_of(server))
    assert found.attempts["attempt"].tolist() == [0] * 6
    assert (found.kept["answer"] == WRONG).all()


@same_judge
def test_a_loop_is_taken_up_where_it_stopped(server, tmp_path):
    asked = []
    path = tmp_path / "runs.sqlite"
    once = improve(cases([WRONG] * 6), lambda *told: asked.append(1) or RIGHT, client_of(server), store=path)
    calls, answers = len(server.log), len(asked)
    twice = improve(cases([WRONG] * 6), lambda *told: asked.append(1) or RIGHT, client_of(server), store=path)
    assert (len(server.log), len(asked)) == (calls, answers) == (18, 6)
    columns = ["sample_id", "attempt", "accuracy", "answer", "kept"]
    assert once.attempts[columns].equals(twice.attempts[columns])


def test_what_makes_no_sense_in_a_loop_is_refused(server):
    for bad in ({"attempts": 0}, {"rejudge": -1}, {"bar": 11}):
        with pytest.raises(RagnbError, match="give ≥ 1"):
            improve(cases([RIGHT] * 6), print, client_of(server), **bad)
    assert scores({"question": "", "answer": "The sources do not say."})["accuracy"] > 8
