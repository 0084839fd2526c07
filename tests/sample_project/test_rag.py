"""What a project that uses ragnb tests of its own system."""

import pandas as pd
import pytest

import ragnb as rn
from ragnb.pytest_plugin import assert_gates


def test_the_help_desk_is_grounded(ragnb_assess):
    sheet = ragnb_assess("rag.yaml", gates=[rn.Gate("grounded", "faithfulness", ">=", 0.6)])
    assert_gates(sheet)


def test_answers_that_were_made_now_pass_the_gates_of_the_scenario():
    scores = {"faithfulness": [0.9, 0.97] * 20, "context_recall": [0.99, 0.95] * 20}
    made = pd.DataFrame(scores | {"doc_name": range(40)})
    assert_gates(made, "rag.yaml")


def test_a_system_that_invents_is_stopped():
    made = pd.DataFrame(
        {"faithfulness": [0.1, 0.2] * 20, "context_recall": 0.97, "doc_name": range(40)}
    )
    with pytest.raises(AssertionError, match=r"grounded: faithfulness >= 0\.6.*fail"):
        assert_gates(made, "rag.yaml")


def test_what_the_scenario_leaves_open_is_skipped(ragnb_assess):
    assert_gates(ragnb_assess())
