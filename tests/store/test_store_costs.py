"""What a question, an answer and a judgement cost: by hand, by the log of a server, and what no store knows."""

from __future__ import annotations

import pandas as pd
import pytest
from pipeline_server import model
from test_pipeline import project

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.store import Cell, Outcome, Store


def paid(tokens_in: int | None = 100, tokens_out: int | None = 10, status: str = "ok") -> Outcome:
    value, reason = (1.0, None) if status == "ok" else (None, "no number")
    return Outcome(status, value, reason, (), 1, tokens_in, tokens_out, 0.5)


def filled(*work: tuple[Cell, Outcome]) -> Store:
    store = Store(None)
    cells = {cell.key: cell for cell, _ in work}
    store.plan([*cells.values()], name="first")
    store.put(work)
    return store


def answer(sample: str, system: str = "mine") -> Cell:
    return Cell(sample, "answer", {"question": sample}, system)


def score(sample: str, what: str, model: str = "large", said: str = "Ann.") -> Cell:
    return Cell(sample, what, {"answer": said, "question": sample}, model)


PRICES = {"mine": 2.0, "large": (1.0, 5.0)}


def test_the_judgements_of_an_answer_are_those_by_all_metrics():
    store = filled(
        (answer("a"), paid(200, 50)),
        (answer("b"), paid(400, 150)),
        (score("a", "faithfulness"), paid(1000, 100)),
        (score("a", "rubric/contexts"), paid(3000, 200)),
        (score("b", "faithfulness"), paid(2000, 100)),
        (score("b", "rubric/alone"), paid(2000, 100)),
    )
    costs = rn.unit_costs(store, prices=PRICES)
    assert costs["answer"] == pytest.approx(2.0 * (250 + 550) / 2 / 1e6)
    assert costs["judge"] == pytest.approx((8000 * 1.0 + 500 * 5.0) / 2 / 1e6)
    assert "question" not in costs


def test_answers_of_two_systems_to_one_question_are_two_judgements():
    store = filled(
        (score("a", "faithfulness", said="Ann."), paid(1000, 0)),
        (score("a", "faithfulness", said="Bob."), paid(1000, 0)),
    )
    assert rn.unit_costs(store) == {"judge": 1000.0}


def test_what_failed_and_was_asked_again_was_paid_for_too():
    again = score("a", "faithfulness")
    lost = score("b", "faithfulness")
    store = filled(
        (again, paid(100, 10, "failed")), (again, paid(100, 30)), (lost, paid(100, 0, "failed"))
    )
    assert rn.unit_costs(store) == {"judge": 340.0}


def test_a_cell_of_two_runs_is_paid_once(tmp_path):
    cell = score("a", "faithfulness")
    with Store(tmp_path / "s.sqlite") as store:
        store.plan([cell], name="first")
        store.put([(cell, paid(100, 10))])
        store.plan([cell, score("b", "faithfulness")], name="second")
    assert rn.unit_costs(tmp_path / "s.sqlite") == {"judge": 110.0}


def test_what_a_store_cannot_say_is_asked_for_by_name(tmp_path):
    two = filled((answer("a"), paid()), (answer("a", "other"), paid()))
    with pytest.raises(RagnbError, match="mine, other, .* system='mine'"):
        rn.unit_costs(two)
    assert rn.unit_costs(two, system="mine") == {"answer": 110.0}
    with pytest.raises(RagnbError, match="yours"):
        rn.unit_costs(two, system="yours")
    mixed = filled((answer("a"), paid()), (score("a", "faithfulness"), paid()))
    with pytest.raises(RagnbError, match="do not cost the same; .* prices="):
        rn.unit_costs(mixed)
    with pytest.raises(RagnbError, match="no price of large"):
        rn.unit_costs(mixed, prices={"mine": 1.0})
    with pytest.raises(RagnbError, match="huge"):
        rn.unit_costs(mixed, prices=PRICES | {"huge": 1.0})
    with pytest.raises(RagnbError, match="0 or more"):
        rn.unit_costs(mixed, prices=PRICES | {"large": (1.0, -1.0)})
    with pytest.raises(RagnbError, match="no tokens are known of 1 of 2 attempts"):
        rn.unit_costs(filled((answer("a"), paid()), (answer("b"), paid(None, None))))
    with pytest.raises(RagnbError, match="no run is in this store"):
        rn.unit_costs(Store(None))
    with pytest.raises(RagnbError, match="nowhere"):
        rn.unit_costs(tmp_path / "nowhere.sqlite")
    with pytest.raises(RagnbError, match="no store .* in this folder"):
        rn.unit_costs(tmp_path)


def test_what_a_pipeline_paid_is_what_its_server_answered(tmp_path, monkeypatch, llm_server):
    llm_server.script = model
    project(tmp_path / "p", llm_server, monkeypatch)
    assert main(["run", "x.yaml"]) == 0
    path = tmp_path / "p" / "reports" / "x"
    with pytest.raises(RagnbError, match="do not cost the same"):
        rn.unit_costs(path)
    costs = rn.unit_costs(path, prices={"small": 1e6, "mine": 1e6})
    # A reply reports 10 and 5 tokens: one an answer, one a judgement by each of two metrics, 10 for 8 questions.
    assert costs == pytest.approx({"question": 15 * 10 / 8, "answer": 15, "judge": 30})
    assert len(llm_server.log) == 10 + 8 + 8 + 14  # 14: six are of probes
    scores = {"faithfulness": [0.9, 0.7, 0.4, 0.2, 0.6, 0.8]}
    noisy = pd.DataFrame({"sample_id": [*"aabbcc"], "repeat": [1, 2] * 3} | scores)
    steps = rn.noise(noisy, costs=costs).steps.set_index("spend_on")
    whole = 3 * (costs["question"] + 2 * (costs["answer"] + costs["judge"]))
    assert steps.loc["questions", "more"] == pytest.approx(3.0)
    assert steps.loc["answers", "more"] == pytest.approx(whole / (costs["answer"] + costs["judge"]))
