"""Judging in order: balanced rounds, the rule that ends a run early, and a run that is taken up after it."""

from __future__ import annotations

import json
import random
from math import ceil, sqrt

import numpy as np
import pandas as pd
import pytest
from judge_server import block
from llm_server import LlmServer

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.judging import judge
from ragnb.schema import DEFAULT_GATES, Profile, Rubric
from ragnb.store import Cell, Client, Outcome, Store, run_cells

pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")
NAMES = ("accuracy", "completeness", "clarity")
GOOD = rn.Gate("good", "accuracy", ">=", 7.0)


# Runs against a server


def cases_of(n=120, docs=12, good=0.9, **more):
    rng = random.Random(3)
    return [
        {"sample_id": f"q{i}", "doc_name": f"d{i % docs}", "question": f"Question {i}?"}
        | {"answer": "good" if rng.random() < good else "bad"}
        | more
        for i in range(n)
    ]


def strict(request):
    """Tell good answers from bad ones; say nothing of broken ones."""
    answer = block(request)["answer"]
    score = {"good": 9.5, "bad": 2.0, "fair": 6.0}.get(answer, 5.0)
    return "no verdict" if answer == "broken" else json.dumps(dict.fromkeys(NAMES, score))


@pytest.fixture
def server(llm_server):
    llm_server.script = strict
    return llm_server


def judged_by(server, cases, **how):
    client = Client(
        Profile(base_url=server.base_url, model="small"),
        retries=0,
        concurrency=how.pop("at_once", 8),
    )
    return judge(cases, client=client, probes=False, **how)


def asked(server):
    return [block(request)["question"] for request in server.log]


def test_what_is_judged_first_is_a_fair_sample_of_documents_and_all_systems_of_a_question_come_together(
    server,
):
    cases = [case | {"system": name, "answer": name} for name in "xy" for case in cases_of(60)]
    judged_by(server, cases, at_once=1)
    questions = asked(server)
    assert questions[::2] == questions[1::2]
    docs = [int(question[9:-1]) % 12 for question in questions[::2]]
    assert all(sorted(docs[start : start + 12]) == list(range(12)) for start in range(0, 60, 12))
    assert questions[::2] != sorted(questions[::2], key=lambda q: int(q[9:-1]))


def test_the_order_changes_nothing_in_the_table(server):
    cases = cases_of(30)
    table = judged_by(server, cases)
    assert table["sample_id"].tolist() == [case["sample_id"] for case in cases]
    backwards = judged_by(server, cases[::-1]).iloc[::-1].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.DataFrame(table), pd.DataFrame(backwards))


def test_any_name_of_a_document_or_none_is_one(server):
    names = [None, float("nan"), ["a", "b"], 7, "文档"]
    cases = [case | {"doc_name": names[n % 5]} for n, case in enumerate(cases_of(20))]
    assert judged_by(server, cases)["accuracy"].notna().all()


def expected_stop(cases, scores, gate_at, weights, docs=12):
    """The number of judged answers by loops, for rounds of one question a document that are all alike."""
    n = len(cases)
    for k in range(max(50, ceil(n / 5)), n, ceil(n / 10)):
        rows = [(scores[q], cases[q]["doc_name"]) for q in scores if scores[q] is not None][:k]
        w = [weights.get(doc, 1.0) for _, doc in rows]
        value = sum(a * x for a, (x, _) in zip(w, rows, strict=True)) / sum(w)
        means = {doc: np.mean([x for x, own in rows if own == doc]) for _, doc in rows}
        spread = sum((x - means[doc]) ** 2 for x, doc in rows) / (k - len(means))
        whole = [weights.get(case["doc_name"], 1.0) for case in cases.values()]
        kish_n, kish_all = (
            sum(w) ** 2 / sum(a * a for a in w),
            sum(whole) ** 2 / sum(a * a for a in whole),
        )
        reach = 3 * sqrt(max(spread, 0.2 * 81 / kish_n) * (1 / kish_n - 1 / kish_all))
        if len(means) == docs and abs(value - gate_at) > reach:
            return k
    return n


@pytest.fixture(scope="module")
def order():
    """The questions of 200 cases in the order in which all of them are asked."""
    with LlmServer(strict) as server:
        judged_by(server, cases_of(200), at_once=1)
        return asked(server)


@pytest.mark.parametrize("weights", [{}, {"d0": 4.0, "d3": 0.5}])
@pytest.mark.parametrize("at", [5.0, 7.0, 8.0, 8.5, 9.0])
def test_a_run_stops_where_the_rule_by_hand_says_so(server, order, at, weights):
    cases = {case["question"]: case for case in cases_of(200)}
    gate = rn.Gate("good", "accuracy", ">=", at)
    table = judged_by(server, cases.values(), stop_when=[gate], doc_weights=weights, at_once=1)
    full = {case["question"]: 9.5 if case["answer"] == "good" else 2.0 for case in cases.values()}
    n = len(server.log)
    assert n == expected_stop(cases, {q: full[q] for q in order}, at, weights)
    told = table.attrs["judge"]
    assert (told["stopped_early"], told["calls_saved"]) == (n < 200, 200 - n)
    assert table["accuracy"].notna().sum() == n
    left = table[table["accuracy"].isna()]
    assert (left["accuracy__status"] == "missing").all()
    assert (left["clarity__reason"] == "stopped early").all()
    assert ("stopped_early" in set(table.notes["code"])) == (n < 200)


def test_every_system_and_every_gate_has_to_be_settled(server):
    near = [case | {"system": "near"} for case in cases_of(100)]
    for n, case in enumerate(near):
        case["answer"] = "good" if n * 37 % 100 < 67 else "bad"  # a mean of 7.025
    far = [case | {"system": "far"} for case in cases_of(100)]
    assert judged_by(server, far, stop_when=[GOOD]).attrs["judge"]["calls_saved"] == 50
    assert judged_by(server, far + near, stop_when=[GOOD]).attrs["judge"]["calls_saved"] == 0
    gates = [GOOD, rn.Gate("total", "weighted_score", ">=", 8.8)]
    assert judged_by(server, far, stop_when=gates).attrs["judge"]["calls_saved"] < 50


def test_failed_judgements_are_no_scores_and_many_of_them_keep_the_run_going(server):
    cases = cases_of(100, good=1)
    for case in cases[::25]:
        case["answer"] = "broken"
    table = judged_by(server, cases, stop_when=[GOOD])
    told = table["accuracy__status"].value_counts()
    assert told["missing"] > 0
    assert told["failed"] + told["ok"] + told["missing"] == 100
    assert table["accuracy"].mean() == 9.5
    for n, case in enumerate(cases):  # a tenth: the gate on scored cells is open to the end
        case["answer"] = "broken" if n * 37 % 100 < 10 else "good"
    assert "missing" not in set(judged_by(server, cases, stop_when=[GOOD])["accuracy__status"])


def test_a_run_in_which_no_question_needs_a_call_may_have_gates_to_stop_at(server):
    table = judged_by(server, [{"question": "Who?", "answer": None}], stop_when=[GOOD])
    assert table["accuracy__status"].tolist() == ["not_applicable"]
    assert not server.log


def test_questions_without_an_answer_need_no_call_and_do_not_count(server):
    cases = [*cases_of(60, good=1), *cases_of(300, answer=None)]
    for n, case in enumerate(cases):
        case["sample_id"] = n
    table = judged_by(server, cases, stop_when=[GOOD])
    assert table["accuracy__status"].value_counts().to_dict() == {
        "not_applicable": 300,
        "ok": 50,
        "missing": 10,
    }


def test_unanswerable_questions_count_only_where_the_rubric_grades_refusals(server):
    blind = Rubric(grades_refusals=False)
    cases = cases_of(200, good=1)
    for n, case in enumerate(cases):
        case |= {"answerable": True} if n // 12 % 2 else {"answerable": False, "answer": "bad"}
    for rubric, first in ((Rubric(), False), (blind, True)):  # a mean of 5.6, and one of 9.5
        gate = rn.Gate("good", "accuracy", ">=", 5.6)
        told = judged_by(server, cases, rubric=rubric, stop_when=[gate]).attrs["judge"]
        assert (told["calls_saved"] > 0) == first


def test_what_was_judged_in_another_order_is_no_fair_sample(server, tmp_path):
    """All of one bad document was judged in a run of its own: that run must not end the next one."""
    cases, store = cases_of(200, good=1), tmp_path / "a.sqlite"
    bad = [case for case in cases if case["doc_name"] == "d0"]
    judged_by(server, bad, store=store)
    told = judged_by(server, cases, store=store, stop_when=[GOOD]).attrs["judge"]
    last = max(asked(server).index(case["question"]) for case in bad)
    assert last < len(bad)
    order = [q for q in asked(server) if q not in {case["question"] for case in bad}]
    assert len(order) + len(bad) + told["calls_saved"] == 200
    assert told["calls_saved"] < 150, "not before the turn of all that was judged has come"


REFUSED = {
    "no gate uses a metric of the judge .accuracy, completeness, clarity, weighted_score": DEFAULT_GATES,
    "gate 'n' is decided by an interval": [rn.Gate("n", "clarity", not_worse_than="baseline")],
    "gate 'g': 0.7 lies outside accuracy's 1..10": [rn.Gate("g", "accuracy", ">=", 0.7)],
}


@pytest.mark.parametrize("words", REFUSED)
def test_gates_that_judging_cannot_settle_are_refused_before_any_call(server, words):
    with pytest.raises(RagnbError, match=words):
        judged_by(server, cases_of(), stop_when=REFUSED[words])
    assert not server.log


# The command


@pytest.fixture
def scenario(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "".join(json.dumps(case) + "\n" for case in cases_of(200))
    (tmp_path / "cases.jsonl").write_text(text, encoding="utf-8")
    judge_ = f"llm_profiles:\n  judge: {{base_url: '{server.base_url}', model: small}}\n"
    gates = "gates:\n  - {name: good, metric: accuracy, op: '>=', threshold: 7}\n"
    (tmp_path / "mine.yaml").write_text(f"cases: cases.jsonl\n{gates}{judge_}", encoding="utf-8")
    return tmp_path


STOP = ["judge", "mine.yaml", "--no-probes", "--stop-when-decided"]


def run_row():
    with Store("reports/mine/judged.sqlite", new=False) as store:
        return store.runs().iloc[-1]


def test_a_stopped_run_is_marked_and_can_be_finished(scenario, server, capsys):
    assert main([*STOP[:-1], "--out", "whole.csv"]) == 0
    whole, record = (
        (scenario / name).read_bytes() for name in ("whole.csv", "reports/mine/judge.json")
    )
    assert len(server.log) == len(set(asked(server))) == 200
    server.log.clear()
    capsys.readouterr()

    assert main(STOP) == 0
    told = capsys.readouterr().out
    n = len(server.log)
    assert 50 <= n < 200
    assert f"{200 - n} calls were saved" in told
    assert run_row()[["stopped_early", "calls_saved", "pending"]].tolist() == [1, 200 - n, 200 - n]
    kept = json.loads((scenario / "reports/mine/judge.json").read_text())
    assert (kept["stopped_early"], kept["calls_saved"]) == (True, 200 - n)
    assert main(STOP) == 0, "the same again stops at the same place, without a call"
    assert len(server.log) == n
    with Store("reports/mine/judged.sqlite") as store:
        assert main(["runs", "reports/mine/judged.sqlite", "--verify"]) == 0
        assert (
            json.loads(store._query("SELECT about FROM runs")[-1][0])["order"]["balanced_by"]
            == "doc_name"
        )
    capsys.readouterr()
    assert main(["runs", "reports/mine/judged.sqlite"]) == 0
    assert "(stopped early)" in capsys.readouterr().out

    assert main(STOP[:-1]) == 0
    assert sorted(asked(server)) == sorted({case["question"] for case in cases_of(200)})
    assert (scenario / "reports/mine/judged.csv").read_bytes() == whole
    assert run_row()[["stopped_early", "calls_saved", "pending"]].tolist() == [0, 0, 0]
    ours = json.loads((scenario / "reports/mine/judge.json").read_text())
    assert ours | {"table": ""} == json.loads(record) | {"table": ""}
    assert "stopped_early" not in set(rn.assess("mine.yaml").notes["code"])
    assert main(STOP) == 0, "what is whole stays whole"
    assert (scenario / "reports/mine/judged.csv").read_bytes() == whole


def test_a_budget_in_between_changes_nothing(scenario, server):
    assert main(STOP) == 0
    n, table = len(server.log), (scenario / "reports/mine/judged.csv").read_bytes()
    for file in (scenario / "reports/mine").iterdir():
        file.unlink()
    server.log.clear()
    assert main([*STOP, "--max-calls", "37"]) == 1
    assert run_row()["stopped_early"] == 0, "a used-up budget is another end"
    assert main(STOP) == 0
    assert len(server.log) == len(set(asked(server))) == n
    assert (scenario / "reports/mine/judged.csv").read_bytes() == table


@pytest.mark.parametrize(
    ("lang", "words"), [("en", "it lies on is settled"), ("zh", "位于哪一侧已经确定")]
)
def test_the_sheet_says_that_the_run_stopped_and_counts_nothing_as_failed(
    scenario, server, lang, words, capsys
):
    assert main(STOP) == 0
    left = 200 - len(server.log)
    sheet = rn.assess("mine.yaml", lang=lang)
    note = sheet.notes.set_index("code").loc["stopped_early", "text"]
    assert words in note
    assert str(left) in note
    assert note in sheet.to_markdown()
    row = sheet.means.set_index("metric").loc["accuracy"]
    # The table says why they have no score: the gates were settled.
    assert row[["n", "n_not_applicable"]].tolist() == [200 - left, left]
    assert row[["n_missing", "n_failed"]].tolist() == [0, 0]
    cells = sheet.gates.set_index("gate").loc["scored_cells"]
    assert (cells["value"], cells["blocks"]) == (1, False)
    assert main(["check", "mine.yaml", "--json", "g.json", "--markdown", "g.md"]) == 0
    assert "stopped_early" in (scenario / "g.json").read_text(encoding="utf-8")
    alone = rn.assess("reports/mine/judged.csv", rubric=Rubric())
    assert "stopped_early" in set(alone.notes["code"]), "the table itself says so"


CHANGES = {
    "gates": ("threshold: 7}", "threshold: 9}"),
    "doc_weights": ("gates:", "doc_weights: {d1: 9}\ngates:"),
    "where": ("gates:", "where: {doc_name: d1}\ngates:"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_side_that_was_settled_for_other_gates_is_not_reported(scenario, capsys, what):
    def change(old, new):
        text = (scenario / "mine.yaml").read_text(encoding="utf-8")
        (scenario / "mine.yaml").write_text(text.replace(old, new), encoding="utf-8")

    assert main(STOP) == 0
    change(*CHANGES[what])
    capsys.readouterr()
    assert main(["check", "mine.yaml"]) == 2
    assert (
        f"the following has changed since ragnb judge wrote it: {what}. Run"
        in capsys.readouterr().err
    )
    change(*CHANGES[what][::-1])
    assert main(STOP[:-1]) == 0  # a whole run holds for any gates
    change(*CHANGES[what])
    assert main(["check", "mine.yaml"]) in (0, 1)


def test_a_total_that_counts_other_scores_too_is_not_the_judges_to_settle(scenario, capsys):
    text = (
        (scenario / "mine.yaml").read_text(encoding="utf-8").replace("accuracy", "weighted_score")
    )
    (scenario / "mine.yaml").write_text(text + "scores: own.csv\n", encoding="utf-8")
    (scenario / "own.csv").write_text("sample_id,faithfulness\nq1,1\n", encoding="utf-8")
    assert main(STOP) == 2
    assert "on a total of other scores or another scale" in capsys.readouterr().err


# The loop


def test_a_round_is_asked_for_when_the_one_before_is_in_the_store(tmp_path):
    cells = [Cell(f"s{n}", "echo", {"n": n}) for n in range(30)]

    async def work(cell):
        return Outcome.of(cell.inputs["n"])

    with Store(tmp_path / "a.sqlite") as store:
        run, seen = store.plan(cells), []

        def rounds():
            for start in (20, 0, 10):
                seen.append((store.frame(run)["status"] == "ok").sum())
                yield cells[start : start + 10]
                if start == 0:
                    return

        found = run_cells(cells, work, store, rounds=rounds())
        assert seen == [0, 10]
        assert found.stopped is None
        assert found.frame["value"].tolist() == [*range(10), *[None] * 10, *range(20, 30)]
        assert found.counts["pending"] == 10

        def broken():
            yield cells[10:12]
            raise RuntimeError("no next round")

        with pytest.raises(RuntimeError, match="no next round"):
            run_cells(cells, work, store, rounds=broken())
        assert store.claims().empty
        assert run_cells(cells, work, store).counts["ok"] == 30
