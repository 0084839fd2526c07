"""Metrics, cases, gates, profiles: what is taken, what is refused, which metric applies where."""

import math

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import ragnb as rn
from ragnb import errors, texts
from ragnb.schema import Profile, note_frame, note_row, resolve_metrics, undeclared_columns

NEEDS = {
    "faithfulness": {"answer", "retrieved_contexts"},
    "context_relevance": {"retrieved_contexts", "question"},
    "context_recall": {"ground_truth_answer", "retrieved_contexts"},
    "context_precision": {"ground_truth_contexts", "retrieved_contexts"},
    "answer_relevancy": {"answer", "question"},
    "answer_correctness": {"answer", "ground_truth_answer"},
    "noise_sensitivity": {"answer", "ground_truth_answer", "retrieved_contexts"},
    "factual_correctness": {"answer", "ground_truth_answer"},
    "semantic_similarity": {"answer", "ground_truth_answer"},
}


def test_the_nine_metrics_need_what_the_design_says():
    assert {name: set(rn.METRICS[name].needs) for name in NEEDS} == NEEDS
    assert [name for name in NEEDS if rn.METRICS[name].better == "lower"] == ["noise_sensitivity"]
    rates = [m for m in rn.METRICS.values() if m.role == "rate"]
    of_logs = {m.name for m in rates if m.family == "log"}
    assert {m.name for m in rates if m.better == "lower"} == {
        "over_refusal",
        "under_refusal",
        *of_logs,
    }
    assert all((m.low, m.high) == (0, 1) for m in rates)


def test_no_alias_means_two_metrics():
    names = [*rn.METRICS, *(alias for metric in rn.METRICS.values() for alias in metric.aliases)]
    assert len(names) == len(set(names))


def test_production_data_allows_exactly_three_of_the_six():
    case = rn.EvalCase(question="问", answer="答", retrieved_contexts=["文"])
    table = rn.applicable_metrics([case])
    six = set(list(NEEDS)[:6])
    assert set(table.loc[table["applies"], "metric"]) & six == {
        "faithfulness",
        "context_relevance",
        "answer_relevancy",
    }
    row = table.set_index("metric").loc["context_recall"]
    assert row["missing_fields"] == ("ground_truth_answer",)


case_fields = st.fixed_dictionaries(
    {
        "question": st.just("q"),
        "answer": st.sampled_from([None, "", " ", "a"]),
        "ground_truth_answer": st.sampled_from([None, "", "g"]),
        "retrieved_contexts": st.sampled_from([None, [], ["c"]]),
        "ground_truth_contexts": st.sampled_from([None, [], ["c"]]),
    }
)


@given(st.lists(case_fields, min_size=1, max_size=12))
def test_applicable_metrics_is_a_loop_over_cases(cases):
    table = rn.applicable_metrics([rn.EvalCase(**c) for c in cases])
    for name, needs in NEEDS.items():
        want = {}
        for case in cases:
            missing = tuple(
                f
                for f in rn.METRICS[name].needs
                if not (
                    case[f] is not None
                    if f == "retrieved_contexts"
                    else (case[f] and str(case[f]).strip())
                )
            )
            assert set(missing) <= needs
            want[missing] = want.get(missing, 0) + 1
        rows = table[table["metric"] == name]
        assert dict(zip(rows["missing_fields"], rows["n_cases"], strict=True)) == want
        assert (rows["applies"] == (rows["missing_fields"].map(len) == 0)).all()


def test_applicable_metrics_of_named_ones_and_unknown_ones():
    own = rn.Metric("tone", needs=("answer",))
    frame = pd.DataFrame({"question": ["q"]})
    assert rn.applicable_metrics(frame, metrics=["faithfulness", own])["metric"].tolist() == [
        "faithfulness",
        "tone",
    ]
    with pytest.raises(errors.RagnbError, match="did you mean 'faithfulness'"):
        rn.applicable_metrics(frame, metrics=["faithfullness"])


@pytest.mark.parametrize(
    "bad",
    [
        {"low": 1, "high": 1},
        {"low": 2, "high": 1},
        {"low": math.nan},
        {"better": "up"},
        {"kind": "text"},
        {"name": "a__status"},
        {"name": "weighted_score"},
        {"name": "question"},
        {"name": " "},
        {"range": (0, 1)},
        {"low": "0"},
        {"high": True},
        {"weight": -1},
        {"weight": math.nan},
    ],
)
def test_what_is_no_metric_is_refused(bad):
    with pytest.raises((ValidationError, TypeError)):
        rn.Metric(**{"name": "mine", **bad})


def test_metric_objects_add_and_names_select():
    columns = ["faithfulness", "context_recall", "mine"]
    mine = rn.Metric("mine", 0, 5)
    assert [m.name for m in resolve_metrics([mine], columns)] == columns
    assert [m.name for m in resolve_metrics(["context_recall", mine], columns)] == [
        "context_recall",
        "mine",
    ]
    assert resolve_metrics(mine, columns)[-1].high == 5
    other = rn.Metric("faithfulness", 1, 5)
    assert [m.high for m in resolve_metrics([other], columns)] == [1.0, 5.0]


def test_undeclared_numbers_are_listed_and_flags_texts_and_statuses_are_not():
    frame = pd.DataFrame(
        {
            "latency": [1.0],
            "ok": [True],
            "ts": [1],
            "faithfulness": [1.0],
            "a__n": [1],
            "sample_weight": [1.0],
            "t": ["x"],
        }
    )
    assert undeclared_columns(frame) == ["latency"]


@pytest.mark.parametrize(
    "bad",
    [
        {"api_key": "sk-canary"},
        {"API-KEY".replace("-", "_"): "sk-canary"},
        {"token": "sk-canary"},
        {"api_key_env": "sk-canary"},
        {"base_url": "https://user:sk-canary@host/v1"},
        {"base_url": "ftp://host"},
        {"base_url": "https://host/v1?key=sk-canary"},
    ],
)
def test_a_profile_holds_no_key_and_prints_none(bad):
    with pytest.raises(ValidationError) as caught:
        Profile(**{"base_url": "http://127.0.0.1/v1", "model": "m", **bad})
    assert "sk-canary" not in str(caught.value)
    assert "sk-canary" not in repr(caught.value)


def test_gates_and_rules_keep_their_parts():
    assert [(g.name, g.metric, g.op, g.threshold) for g in rn.DEFAULT_GATES] == [
        ("G1", "answer_precision", ">=", 0.80),
        ("G2", "under_refusal", "<=", 0.05),
        ("G3", "over_refusal", "<=", 0.25),
        ("G4", "citation_hit_rate", ">=", 0.75),
        ("G5", "compliance", ">=", 0.98),
    ]
    with pytest.raises(ValidationError):
        rn.Gate("G", "compliance", "==", 1)
    with pytest.raises(ValidationError):
        rn.Gate("G", "compliance", ">=", math.inf)
    with pytest.raises(ValidationError):
        rn.Gate("G", "compliance", ">=", "0.8")
    with pytest.raises(ValidationError, match="no dimension with a positive weight"):
        rn.Rubric(dimensions=[{"name": "a", "weight": 0}])
    with pytest.raises(ValidationError, match="low must lie below high"):
        rn.Rubric(low=5, high=5)


def test_metrics_of_the_default_rubric_are_those_of_the_table():
    assert [rn.METRICS[m.name] for m in rn.Rubric().metrics] == list(rn.Rubric().metrics)
    assert [(m.name, m.low, m.high, m.weight) for m in rn.Rubric().metrics] == [
        ("accuracy", 1.0, 10.0, 0.5),
        ("completeness", 1.0, 10.0, 0.3),
        ("clarity", 1.0, 10.0, 0.2),
    ]


def test_dimensions_of_a_rubric_select_where_other_new_metrics_add():
    columns = ["faithfulness", "tone"]
    tone = rn.Rubric(
        dimensions=[{"name": "tone"}], passing={"metric": "tone", "op": ">=", "threshold": 7.0}
    ).metrics
    assert [m.name for m in resolve_metrics(tone, columns)] == ["tone"]
    assert resolve_metrics(resolve_metrics(tone, columns), columns) == tone
    assert [m.name for m in resolve_metrics([rn.Metric("tone", 1, 10)], columns)] == columns


def test_notes_say_a_thing_once():
    rows = [note_row("a", "x", "s"), note_row("a", "x", "s"), note_row("b", "x", "t")]
    assert note_frame(rows)["code"].tolist() == ["a", "b"]
    assert note_frame([]).columns.tolist() == ["code", "about", "text"]


def test_errors_name_the_value_the_choices_and_the_next_step():
    message = str(errors.unknown("metric", "双源", ["双源CT", "x"], "Look again"))
    assert (
        message
        == "metric='双源' is not known; did you mean '双源CT'? (have: 双源CT, x). Look again"
    )
    assert errors.listing(range(20), most=3) == "0, 1, 2 and 17 more"
    assert errors.listing([]) == "none"
    with pytest.raises(errors.MissingExtraError, match=r'pip install "ragnb\[ragas\]"'):
        errors.require("no_such_module", "ragas")


def test_texts_are_there_in_both_languages_and_others_are_refused():
    assert texts.load("zh")("word.missing") == "缺失"
    assert texts.entry("en", "word.missing") == "missing"
    with pytest.raises(errors.RagnbError, match="lang='fr'"):
        texts.load("fr")
    assert "{n}" in texts.load("en")("note.bad_lines", role="{n}", n=1, detail="x")


def test_cases_with_two_columns_of_one_name_are_refused():
    names = ["answer", "answer"]
    for frame in (
        pd.DataFrame([["a", "b"]], columns=names),
        pa.Table.from_arrays([["a"], ["b"]], names),
    ):
        with pytest.raises(
            errors.RagnbError, match="column 'answer' appears twice; rename one of them"
        ):
            rn.applicable_metrics(frame)
