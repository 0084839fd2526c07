"""Retrieval by rank: what trec_eval gives, computed anew in a loop, and its published figures."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ragnb as rn
from ragnb.errors import RagnbError, RagnbWarning

DATA = Path(__file__).resolve().parents[2] / "data" / "quickstart"
DEPTHS = (1, 3, 5, 10)
MEASURES = ("hit", "recall", "precision", "ndcg", "mrr", "map")


def by_loop(ranked, grades, k):
    """Return the measures of one question as trec_eval defines them."""
    relevant = {name: grade for name, grade in grades.items() if grade > 0}
    listed = list(dict.fromkeys(ranked))
    hits, summed, gain, first = 0, 0.0, 0.0, None
    for rank, name in enumerate(listed[:k], 1):
        if name in relevant:
            hits += 1
            summed += hits / rank
            gain += relevant[name] / math.log2(rank + 1)
            first = first or rank
    ideal = sorted(relevant.values(), reverse=True)[:k]
    best = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal, 1))
    return {
        "hit": float(hits > 0),
        "recall": hits / len(relevant),
        "precision": hits / k,
        "ndcg": gain / best,
        "mrr": 1 / first if first else 0.0,
        "map": summed / len(relevant),
    }


NAMES = st.sampled_from([f"p{i}" for i in range(8)])
QUESTION = st.tuples(
    st.lists(NAMES, max_size=12, unique=True), st.dictionaries(NAMES, st.integers(0, 3), max_size=5)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(QUESTION, min_size=1, max_size=8))
def test_each_question_gets_what_a_loop_gives(questions):
    traces = pd.DataFrame(
        {"sample_id": [f"q{i}" for i in range(len(questions))], "chunks": [q[0] for q in questions]}
    )
    gold = traces[["sample_id"]].assign(
        gold_ids=[[*q[1]] for q in questions], gold_relevance=[[*q[1].values()] for q in questions]
    )
    labelled = rn.label_retrieval(traces, gold=gold, k=DEPTHS)
    for row, (ranked, grades) in zip(labelled.to_dict("records"), questions, strict=True):
        for k in DEPTHS:
            if not any(grade > 0 for grade in grades.values()):
                assert math.isnan(row[f"recall@{k}"])
                assert row[f"recall@{k}__status"] == "not_applicable"
                continue
            for measure, want in by_loop(ranked, grades, k).items():
                assert row[f"{measure}@{k}"] == pytest.approx(want, abs=1e-9)


def test_the_figures_of_trec_eval_are_met(tmp_path):
    """pytrec_eval-terrier 0.5.11 on this run and these qrels, two of them with equal scores."""
    run = {"q1": {"d1": 3.0, "d2": 3.0, "d3": 1.0}, "q2": {"d4": 1.0, "d1": 2.0}}
    qrels = ["q1 0 d1 1", "q1 0 d3 2", "q1 0 d9 1", "q2 0 d4 3", "q2 0 d1 0"]
    (tmp_path / "gold.qrels").write_text("\n".join(qrels), encoding="utf-8")
    traces = pd.DataFrame(
        {
            "sample_id": [*run],
            "chunks": [[{"id": d, "score": s} for d, s in one.items()] for one in run.values()],
        }
    )
    found = rn.label_retrieval(traces, gold=tmp_path / "gold.qrels", k=3, order="score")
    want = {
        "ndcg@3": [0.5209090851403014, 0.6309297535714575],
        "map@3": [0.38888888888888884, 0.5],
        "recall@3": [2 / 3, 1.0],
        "precision@3": [2 / 3, 1 / 3],
        "mrr@3": [0.5, 0.5],
    }
    for name, values in want.items():
        assert found[name].tolist() == pytest.approx(values, abs=1e-12)


def test_the_means_are_those_of_the_questions_with_clustered_intervals():
    traces, gold = rn.read_traces(DATA / "traces.weak.jsonl"), rn.read_gold(DATA / "gold.json")
    labelled = rn.label_retrieval(traces, gold=gold, k=(1, 5))
    table = rn.retrieval(traces, gold=gold, k=(1, 5)).set_index(["measure", "k"])
    for measure in MEASURES:
        scores = labelled[f"{measure}@5"].dropna()
        row = table.loc[(measure, 5)]
        assert row["value"] == pytest.approx(scores.mean())
        assert row["n"] == len(scores)
        assert row["low"] < row["value"] < row["high"]
    assert table.loc[("hit", 5), "cluster_unit"] == "document"
    known = rn.label_traces(traces, gold=gold)
    every = rn.label_retrieval(traces, gold=gold, k=1000)
    assert every["recall@1000"].tolist() == pytest.approx(
        known["retrieval_recall"].tolist(), nan_ok=True
    )
    assert every["mrr@1000"].tolist() == pytest.approx(
        known["reciprocal_rank"].tolist(), nan_ok=True
    )


def test_systems_are_kept_apart_and_compared_on_common_questions():
    parts = [
        rn.read_traces(DATA / f"traces.{name}.jsonl").assign(system=name)
        for name in ("weak", "strong")
    ]
    gold = rn.read_gold(DATA / "gold.json")
    both = pd.concat(parts, ignore_index=True)
    table = rn.retrieval(both, gold=gold, k=5)
    assert table["system"].unique().tolist() == ["weak", "strong"]
    alone = rn.retrieval(parts[0].drop(columns="system"), gold=gold, k=5)
    assert table[table["system"] == "weak"]["value"].tolist() == alone["value"].tolist()
    labelled = rn.label_retrieval(both, gold=gold, k=5)
    row = rn.compare(labelled, baseline="weak", metrics=["recall@5"]).iloc[0]
    wide = labelled.pivot(index="sample_id", columns="system", values="recall@5").dropna()
    assert row["value"] == pytest.approx((wide["strong"] - wide["weak"]).mean())


def test_engines_and_files_give_the_same(tmp_path):
    traces = pd.DataFrame({"sample_id": ["a", "b"], "chunks": [["p", "q"], ["r", "p"]]})
    gold = pd.DataFrame({"sample_id": ["a", "b"], "gold_ids": [["q"], ["r", "s"]]})
    want = rn.label_retrieval(traces, gold=gold, k=2)["ndcg@2"].tolist()
    polars = rn.label_retrieval(pl.from_pandas(traces), gold=pl.from_pandas(gold), k=2)
    assert isinstance(polars, pl.DataFrame)
    assert polars["ndcg@2"].to_list() == pytest.approx(want)
    own = traces.merge(gold, on="sample_id")
    assert rn.label_retrieval(own, k=2)["ndcg@2"].tolist() == pytest.approx(want)


def test_gold_may_grade_its_passages(tmp_path):
    rows = [
        {"sample_id": "a", "question": "x", "answerable": True, "gold_ids": {"p": 2, "q": 0}},
        {
            "sample_id": "b",
            "question": "y",
            "answerable": True,
            "gold_ids": [{"id": "r", "relevance": 1}, {"id": "s", "relevance": 3}],
        },
        {"sample_id": "c", "question": "z", "answerable": False, "gold_ids": []},
    ]
    path = tmp_path / "gold.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    gold = rn.read_gold(path)
    assert gold["gold_ids"].tolist() == [["p"], ["r", "s"], []]
    traces = pd.DataFrame({"sample_id": [*"abc"], "chunks": [["q", "p"], ["r", "s"], ["p"]]})
    found = rn.label_retrieval(traces, gold=gold, k=2)
    want = [by_loop(["q", "p"], {"p": 2}, 2), by_loop(["r", "s"], {"r": 1, "s": 3}, 2)]
    assert found["ndcg@2"].tolist()[:2] == pytest.approx([one["ndcg"] for one in want])
    assert found["ndcg@2__status"].tolist() == ["ok", "ok", "not_applicable"]


def test_a_passage_that_is_listed_again_counts_once_and_is_said():
    traces = pd.DataFrame({"sample_id": ["a"], "chunks": [["p", "p", "q"]]})
    gold = pd.DataFrame({"sample_id": ["a"], "gold_ids": [["q"]]})
    with pytest.warns(RagnbWarning, match="1 of 1 rows list a passage more than once"):
        found = rn.label_retrieval(traces, gold=gold, k=2)
    assert found["mrr@2"].tolist() == [0.5]


def test_what_was_retrieved_may_be_unknown_or_nothing():
    traces = pd.DataFrame(
        {"sample_id": [*"abcd"], "chunks": [None, [], [{"text": "x"}], [{"text": "x"}, "p"]]}
    )
    gold = pd.DataFrame({"sample_id": [*"abcd"], "gold_ids": [["p"]] * 4})
    found = rn.label_retrieval(traces, gold=gold, k=2)
    assert found["recall@2__status"].tolist() == ["missing", "ok", "missing", "ok"]
    assert found["recall@2"].tolist() == pytest.approx([np.nan, 0, np.nan, 1], nan_ok=True)
    assert found["mrr@2"].iloc[3] == 0.5  # a passage without an id keeps its place


def test_which_search_lost_the_passage_is_seen_by_step():
    chunks = [
        [{"id": "p", "step": 1}, {"id": "x", "step": 1}, {"id": "y", "step": 2}],
        [{"id": "x", "step": 1}, {"id": "q", "step": 2}],
    ]
    traces = pd.DataFrame({"sample_id": ["a", "b"], "chunks": chunks})
    gold = pd.DataFrame({"sample_id": ["a", "b"], "gold_ids": [["p"], ["q"]]})
    table = rn.retrieval(traces, gold=gold, k=1, by="step")
    hits = table[table["measure"] == "hit"].set_index("step")["value"].to_dict()
    assert hits == {1: 0.5, 2: 0.5}
    with pytest.raises(RagnbError, match="no passage says in which step"):
        rn.retrieval(traces.assign(chunks=[["p"], ["q"]]), gold=gold, by="step")


def test_a_gate_on_a_depth_decides(tmp_path):
    lines = [f"traces: {DATA / 'traces.strong.jsonl'}", f"gold: {DATA / 'gold.json'}", "gates:"]
    for name, limit in (("R", 0.5), ("N", 0.999)):
        metric = {"R": "recall@5", "N": "ndcg@3"}[name]
        lines.append(f"  - {{name: {name}, metric: {metric}, op: '>=', threshold: {limit}}}")
    path = tmp_path / "s.yaml"
    path.write_text("\n".join(lines), encoding="utf-8")
    sheet = rn.assess(path)
    outcomes = sheet.gates.set_index("gate")["outcome"]
    assert outcomes[["R", "N"]].tolist() == ["pass", "fail"]
    labelled = rn.label_retrieval(
        rn.read_traces(DATA / "traces.strong.jsonl"), gold=DATA / "gold.json", k=(3, 5)
    )
    means = sheet.means.set_index("metric")["value"]
    for name in ("recall@5", "ndcg@3"):
        assert means[name] == pytest.approx(labelled[name].mean())
    assert not [name for name in sheet.scores if name.startswith("precision@")]
    assert "recall@5" in sheet.to_html()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "depths are whole numbers from 1 on"),
        ({"k": (1, 2.5)}, "depths are whole numbers from 1 on"),
        ({"k": ()}, "depths are whole numbers from 1 on"),
        ({"order": "rank"}, "'rank' is not known"),
        ({"order": "score"}, "passage 1 of row 0 has no score"),
    ],
)
def test_what_is_not_understood_is_refused(change, message):
    traces = pd.DataFrame({"sample_id": ["a"], "chunks": [["p"]], "gold_ids": [["p"]]})
    with pytest.raises(RagnbError, match=message):
        rn.label_retrieval(traces, **change)


def test_columns_that_lack_are_named():
    traces = pd.DataFrame({"sample_id": ["a"], "chunks": [["p"]]})
    with pytest.raises(RagnbError, match="no column 'gold_ids'"):
        rn.label_retrieval(traces)
    with pytest.raises(RagnbError, match="no column 'chunks'"):
        rn.label_retrieval(traces.drop(columns="chunks"))
    gold = pd.DataFrame({"sample_id": ["a"], "gold_ids": [["p"]], "gold_relevance": [[1.0, 2.0]]})
    with pytest.raises(RagnbError, match="2 numbers beside 1 gold_ids"):
        rn.label_retrieval(traces, gold=gold)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rn.label_retrieval(traces, gold=gold.drop(columns="gold_relevance"))


def test_a_row_that_no_gold_meets_has_no_measures():
    traces = pd.DataFrame({"sample_id": ["a", "b"], "chunks": [["p"], ["q"]]})
    gold = pd.DataFrame({"sample_id": ["b"], "gold_ids": [["q"]]})
    found = rn.label_retrieval(traces, gold=gold, k=1)
    assert found["recall@1__status"].tolist() == ["not_applicable", "ok"]
    assert found["recall@1"].tolist() == pytest.approx([np.nan, 1.0], nan_ok=True)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_curve_over_depth_holds_the_values_and_their_bands(lang):
    gold = rn.read_gold(DATA / "gold.json")
    parts = [
        rn.read_traces(DATA / f"traces.{name}.jsonl").assign(system=name)
        for name in ("weak", "strong")
    ]
    found = rn.retrieval(pd.concat(parts, ignore_index=True), gold=gold, k=(1, 3, 5))
    ax = rn.plots.by_depth(found, measure="ndcg", lang=lang)
    rows = found[found["measure"] == "ndcg"]
    for line, system in zip(ax.get_lines(), ("weak", "strong"), strict=True):
        part = rows[rows["system"] == system]
        assert line.get_xdata().tolist() == part["k"].tolist()
        assert line.get_ydata().tolist() == part["value"].tolist()
    words = rn.plots.alt_text(ax)
    for value in rows["value"]:
        assert f"{value:.3f}" in words
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["weak", "strong"]
    alone = rn.plots.by_depth(found[found["system"] == "weak"])
    assert alone.get_legend() is None
    with pytest.raises(RagnbError, match="'f1' is not known"):
        rn.plots.by_depth(found, measure="f1")
