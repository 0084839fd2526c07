"""Systems that answer while they are judged: the arena and the retry loop, against a server on 127.0.0.1."""

from __future__ import annotations

import json

import numpy as np
import pytest
from judge_server import block, examiner, scores

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.judging import arena
from ragnb.schema import Profile
from ragnb.stats import clustered_mean
from ragnb.store import Client, Store

fails = pytest.mark.filterwarnings("ignore:.*cells failed:ragnb.errors.RagnbWarning")

SOURCE = ["The pump has a warranty of 730 days. Filters are excluded from the warranty."]
RIGHT, WRONG = "The pump has a warranty of 730 days.", "Ten years, by decree 4711 of 1999."
QUESTIONS = [
    {
        "sample_id": str(n),
        "question": f"How long is the warranty of the pump, case {n}?",
        "doc_name": f"d{n % 3}",
    }
    for n in range(6)
]


def client_of(server, **more):
    return Client(Profile(base_url=server.base_url, model="small"), **({"retries": 0} | more))


@pytest.fixture
def server(llm_server):
    llm_server.script = examiner
    return llm_server


def cases(answers):
    return [
        q | {"answer": a, "retrieved_contexts": SOURCE}
        for q, a in zip(QUESTIONS, answers, strict=True)
    ]


# The arena


async def waits(question):
    return {"answer": WRONG, "retrieved_contexts": SOURCE}


def test_systems_of_every_kind_are_judged_over_the_same_questions(server):
    systems = {
        "called": lambda question: {"answer": RIGHT, "retrieved_contexts": SOURCE},
        "coroutine": waits,
        "alone": lambda question: None if "case 5" in question else RIGHT,
    }
    found = arena(QUESTIONS, systems=systems, client=client_of(server), peek="called")
    assert found["system"].tolist() == [name for name in systems for _ in QUESTIONS]
    table = found.groupby("system", sort=False)["accuracy"].agg(["mean", "count"])
    assert table["count"].tolist() == [6, 6, 5]
    assert table.loc["coroutine", "mean"] < 3 < 9 < table.loc[["called", "alone"], "mean"].min()
    assert found.loc[found["system"] == "alone", "judge__mode"].eq("peek").all()
    assert (found["accuracy__status"] == "not_applicable").sum() == 1
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
        ({"a": str}, [QUESTIONS[0]] * 2, "sample_id twice"),
    ):
        with pytest.raises(RagnbError, match=message):
            arena(questions, systems=systems, client=client)
    assert not server.log


# The retry loop


def improve(answers, system, server, **options):
    return rn.improve(cases(answers), system=system, client=client_of(server), **options)


def test_the_system_gets_the_suggestion_until_the_threshold_is_reached(server):
    told = []

    def system(question, answer, suggestion):
        told.append((question, answer, suggestion))
        return RIGHT if answer != WRONG else "Ten years, says decree 4711."

    found = improve([RIGHT, WRONG] * 3, system, server, attempts=3)
    assert {suggestion for *_, suggestion in told} == {"quote the passage with the figure"}
    counts = found.attempts.groupby("sample_id").size()
    assert counts.tolist() == [1, 3] * 3
    assert len(told) == 6
    assert found.attempts.groupby("sample_id")["attempt"].max().tolist() == [0, 2] * 3
    assert (found.kept["accuracy"] > 9).all()
    assert found.kept["sample_id"].tolist() == [q["sample_id"] for q in QUESTIONS]


def test_the_gain_is_a_clustered_mean_of_differences_with_its_cost(server):
    found = improve([RIGHT, WRONG] * 3, lambda *told: RIGHT, server)
    by_hand = clustered_mean(np.array([0, 7.5] * 3), [q["doc_name"] for q in QUESTIONS])
    row = found.gain.iloc[0]
    assert (row["value"], row["low"], row["high"]) == pytest.approx(
        (by_hand.value, by_hand.low, by_hand.high)
    )
    assert (row["n"], row["n_clusters"], row["n_tried"]) == (6, 3, 3)
    assert row["after"] - row["before"] == pytest.approx(row["value"])
    assert found.cost == {"answers": 3, "calls": 3, "tokens": 45}
    notes = found.notes.set_index("code")["text"]
    assert "The same judge scored the answers and guided the retries" in notes["same_judge"]
    assert (
        notes["cost"] == "Cost: 3 additional answers by the system and 3 judge calls; tokens: 45."
    )


def test_the_interval_is_by_the_column_and_level_that_are_named(server):
    given = [
        case | {"chapter": name}
        for case, name in zip(cases([RIGHT, WRONG] * 3), "aabbcd", strict=True)
    ]
    found = rn.improve(
        given, system=lambda *told: RIGHT, client=client_of(server), doc="chapter", level=0.8
    )
    by_hand = clustered_mean(np.array([0, 7.5] * 3), [*"aabbcd"], level=0.8)
    row = found.gain.iloc[0]
    assert (row["low"], row["high"], row["n_clusters"]) == pytest.approx(
        (by_hand.low, by_hand.high, 4)
    )


def test_a_case_without_an_id_among_others_is_judged_and_retried(server):
    given = [case | {"sample_id": None if n else "x"} for n, case in enumerate(cases([WRONG] * 6))]
    found = rn.improve(given, system=lambda *told: RIGHT, client=client_of(server))
    assert found.kept["accuracy"].tolist() == [9.5] * 6


def test_good_answers_cost_nothing_more(server):
    found = improve([RIGHT] * 6, lambda *told: 1 / 0, server)
    assert found.cost == {"answers": 0, "calls": 0, "tokens": 0}
    assert found.notes["code"].tolist() == ["gained_nothing", "cost"]
    assert found.gain["value"].tolist() == [0.0]


def test_a_worse_attempt_is_kept_in_the_table_but_not_as_the_answer(server):
    middling = "A warranty of the pump under which unspecified components and hoses count somewhat."
    found = improve([middling] * 6, lambda *told: WRONG, server, attempts=1)
    assert found.attempts["accuracy"].tolist() == [6.0, 2.0] * 6
    assert found.kept["attempt"].tolist() == [0] * 6


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
        [RIGHT] * 6, lambda q, *told: asked.append(q) or RIGHT, server, tries=1, probes=False
    )
    first = found.attempts[found.attempts["attempt"] == 0].set_index("sample_id")
    assert first["accuracy__status"].tolist() == ["ok", "ok", "failed", "ok", "ok", "ok"]
    assert not asked
    assert found.gain["n"].tolist() == [5]
    assert "2 judgements" not in found.notes.set_index("code").loc["rejudged", "text"]
    assert "1 failed in the end" in found.notes.set_index("code").loc["rejudged", "text"]


@fails
def test_a_system_that_fails_ends_the_loop_and_keeps_what_was(server):
    def system(question, answer, suggestion):
        raise TimeoutError("gone")

    found = improve([WRONG] * 6, system, server)
    assert found.attempts["attempt"].tolist() == [0] * 6
    assert (found.kept["answer"] == WRONG).all()
    assert found.notes["code"].tolist() == ["cost", "unanswered"]
    assert "6 retries got no answer" in found.notes["text"].iloc[-1]


def test_attempts_kept_answers_and_gain_are_those_of_a_loop_by_hand(server):
    """What `improve` returns, from the examiner's rule and the system's replies alone, in an order of its own."""
    replies = [
        "No idea at all.",
        "It is covered by filters.",
        RIGHT,
        "Ten years, decree 4711.",
        "730 days",
    ]

    def system(question, answer, suggestion):
        return replies[(len(question) + 3 * len(answer)) % len(replies)]

    given = [RIGHT, WRONG, "Hoses count somewhat.", "730 days", "No.", "Ten years."]
    expected = []
    for case, answer in zip(cases(given), given, strict=True):
        for attempt in range(4):
            score = scores(case | {"answer": answer, "contexts": [{"text": SOURCE[0]}]})["accuracy"]
            expected.append((case["sample_id"], attempt, answer, score))
            if score >= 8:
                break
            answer = system(case["question"], answer, "quote the passage with the figure")
    found = improve(given, system, server, attempts=3)
    columns = ["sample_id", "attempt", "answer", "accuracy"]
    assert [*found.attempts[columns].itertuples(index=False, name=None)] == expected
    rows = [[row for row in expected if row[0] == sample] for sample in map(str, range(6))]
    best = [max(tried, key=lambda row: row[3]) for tried in rows]
    assert [*found.kept[columns].itertuples(index=False, name=None)] == best
    assert found.kept["accuracy__before"].tolist() == [row[0][3] for row in rows]
    gains = np.array([row[3] - tried[0][3] for row, tried in zip(best, rows, strict=True)])
    by_hand = clustered_mean(gains, [q["doc_name"] for q in QUESTIONS])
    assert (found.gain["value"][0], found.gain["low"][0]) == pytest.approx(
        (by_hand.value, by_hand.low)
    )


def test_the_cost_is_that_of_the_log_and_a_repeated_answer_costs_nothing(server):
    asked = []
    found = improve([WRONG] * 6, lambda *told: asked.append(told) or WRONG, server, attempts=3)
    assert len(found.attempts) == 6 * 4
    assert (
        (found.cost["answers"], found.cost["calls"])
        == (len(asked), len(server.log) - 6 - 6)
        == (6, 0)
    )
    log = len(server.log)
    found = improve([WRONG] * 6, lambda q, answer, hint: "Ten " + answer, server, attempts=3)
    assert found.cost == {"answers": 18, "calls": len(server.log) - log - 12, "tokens": 15 * 18}


def test_a_budget_ends_the_loop_and_a_larger_one_resumes_it_without_paying_twice(server, tmp_path):
    asked, store = [], tmp_path / "runs.sqlite"

    def loop(budget):
        judge = client_of(server, max_calls=budget, concurrency=1)
        return rn.improve(
            cases([WRONG] * 6),
            system=lambda *told: asked.append(told) or RIGHT,
            client=judge,
            store=store,
        )

    for budget in (3, 8, 100):
        if budget < 100:
            with pytest.warns(UserWarning, match="budget"):
                found = loop(budget)
            assert "The loop was interrupted" in found.notes["text"].iloc[-1]
            assert not {"gained", "gained_nothing"} & {*found.notes["code"]}
        else:
            found = loop(budget)
    whole = improve([WRONG] * 6, lambda *told: RIGHT, server)
    columns = ["sample_id", "attempt", "answer", "accuracy", "kept"]
    assert found.attempts[columns].equals(whole.attempts[columns])
    assert found.cost == whole.cost
    assert (len(asked), len(server.log)) == (6, 2 * (6 + 6 + 6))


def test_a_client_is_given_question_answer_and_suggestion_as_one_message(server):
    server.script = lambda request: examiner(request) if request.body["model"] == "small" else RIGHT
    system = Client(Profile(base_url=server.base_url, model="rag"))
    found = improve([RIGHT, WRONG] * 3, system, server, name="rag", lang="zh")
    asked = [request for request in server.log if request.body["model"] == "rag"]
    assert len(asked) == found.cost["answers"] == 3
    for request in asked:
        assert [message["role"] for message in request.body["messages"]] == ["user"]
        assert "请重新回答" in request.prompt
        assert sum(q["question"] in request.prompt for q in QUESTIONS) == 1
        assert request.prompt.index(WRONG) < request.prompt.index(
            "quote the passage with the figure"
        )
    assert found.cost["tokens"] == 15 * (len(server.log) - 6 - 6)
    assert (found.kept["answer"] == RIGHT).all()


def test_the_result_shows_its_gain_its_cost_and_the_kept_answers(server):
    hostile = "Ten years <script>alert(1)</script>"
    found = improve([RIGHT, hostile] * 3, lambda *told: hostile, server, attempts=1)
    text, page = repr(found), found._repr_html_()
    for note in found.notes["text"]:
        assert f"- {note}" in text
    assert "<script" not in page
    assert page.count("<li>") == len(found.notes) == 3
    for name in ("sample_id", "question", "accuracy__before", "accuracy", "attempt", "answer"):
        assert f"<th>{name}</th>" in page
    row = found.gain.iloc[0]
    assert f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]" in page
    assert f"all {row['n']} judged answers" in page


@pytest.mark.parametrize(("passing", "retried"), [(8.0, 0), (8.5, 0), (8.6, 6), (10.0, 6)])
def test_the_usual_threshold_is_a_ninth_of_the_scale_above_passing(server, passing, retried):
    """An answer of 9.5 is retried where passing takes more than 8.5, and no threshold lies above the scale."""
    rubric = rn.Rubric(passing=rn.Gate("passing", "accuracy", ">=", passing))
    found = improve([RIGHT] * 6, lambda *told: RIGHT, server, rubric=rubric)
    assert found.cost["answers"] == retried


def test_a_loop_is_taken_up_where_it_stopped(server, tmp_path):
    asked = []
    path = tmp_path / "runs.sqlite"
    once = improve([WRONG] * 6, lambda *told: asked.append(1) or RIGHT, server, store=path)
    calls, answers = len(server.log), len(asked)
    twice = improve([WRONG] * 6, lambda *told: asked.append(1) or RIGHT, server, store=path)
    assert (len(server.log), len(asked)) == (calls, answers) == (18, 6)
    columns = ["sample_id", "attempt", "accuracy", "answer", "kept"]
    assert once.attempts[columns].equals(twice.attempts[columns])


def test_what_makes_no_sense_in_a_loop_is_refused(server):
    for bad, said in (
        ({"attempts": 0}, "attempts=0"),
        ({"threshold": 11}, "not on the scale, 1 to 10"),
    ):
        with pytest.raises(RagnbError, match=said):
            improve([RIGHT] * 6, print, server, **bad)
    with pytest.raises(RagnbError, match=r"several systems \(a, b\); keep those of one"):
        rn.improve(
            [case | {"system": name} for case in cases([RIGHT] * 6) for name in "ab"],
            system=print,
            client=client_of(server),
        )
    assert scores({"question": "", "answer": "The sources do not say."})["accuracy"] > 8
