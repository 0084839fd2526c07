"""The section on retrieval by rank: its numbers by hand, and when there is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ragnb as rn
from ragnb.sheet.sections import SECTIONS

N = 12


def traces(**more) -> pd.DataFrame:
    """Rows whose passage p<i> comes first in two of three; each lists a passage twice."""
    chunks = [[f"p{i}", "x", f"p{i}"] if i % 3 else ["x", "y", f"p{i}", "z", "w"] for i in range(N)]
    rows = {
        "sample_id": [f"q{i}" for i in range(N)],
        "question": [f"what is {i}?" for i in range(N)],
    }
    return pd.DataFrame(rows | {"answer": "So it is.", "chunks": chunks} | more)


def gold() -> pd.DataFrame:
    rows = {
        "sample_id": [f"q{i}" for i in range(N)],
        "question": [f"what is {i}?" for i in range(N)],
    }
    return pd.DataFrame(rows | {"gold_ids": [[f"p{i}"] for i in range(N)], "answerable": True})


def test_the_section_shows_the_measures_as_counted_by_hand():
    sheet = rn.assess(traces(), gold=gold())
    found = sheet.retrieval.set_index(["measure", "k"])["value"]
    first = np.array([1 if i % 3 else 3 for i in range(N)])  # the rank of the one relevant passage
    assert sorted(sheet.retrieval["k"].unique()) == [1, 3, 5]
    for k in (1, 3, 5):
        assert found["recall", k] == pytest.approx((first <= k).mean())
        assert found["mrr", k] == pytest.approx(((first <= k) / first).mean())
        assert found["ndcg", k] == pytest.approx(((first <= k) / np.log2(first + 1)).mean())
    section = sheet.section("retrieval")
    assert "66.7 % are listed first, 100.0 %" in section.finding
    assert "among the first 5 (n = 12)" in section.finding
    (table,) = section.blocks
    assert [row[0] for row in table.rows] == ["k = 1", "k = 3", "k = 5"]
    assert table.rows[0][1][0] == "66.7 %"
    assert "Retrieval by rank" in sheet.to_html()
    assert sheet.section("retrieval").key in SECTIONS


def test_depths_end_with_the_longest_list():
    short = traces(chunks=[[f"p{i}", "x"] for i in range(N)])
    assert sorted(rn.assess(short, gold=gold()).retrieval["k"].unique()) == [1, 3]
    alone = traces(chunks=[[f"p{i}"] for i in range(N)])
    finding = rn.assess(alone, gold=gold()).section("retrieval").finding
    assert finding.startswith("Of a question's relevant passages 100.0 %")
    assert finding.endswith("are listed first (n = 12)")


def test_what_retrieved_nothing_found_nothing():
    sheet = rn.assess(traces(chunks=[[]] * N), gold=gold())
    assert sheet.retrieval["value"].tolist() == [0.0] * 6
    assert "0.0 %" in sheet.section("retrieval").finding
    half = traces(chunks=[[] if i % 2 else None for i in range(N)])
    found = rn.assess(half, gold=gold()).retrieval
    assert set(found["n"]) == {N // 2}
    assert set(found["n_missing"]) == {N // 2}


def test_weights_of_documents_count_as_in_every_other_mean():
    rows = traces(doc_name=["a" if i % 3 else "b" for i in range(N)])
    sheet = rn.assess(rows, gold=gold(), doc_weights={"b": 4, "not there": 2})
    found = sheet.retrieval.set_index(["measure", "k"])["value"]
    of_a, of_b = N - N // 3, N // 3  # in a the passage comes first, in b third
    assert found["recall", 1] == pytest.approx(of_a / (of_a + 4 * of_b))
    means = sheet.means.set_index("metric")["value"]
    assert found["recall", 5] == pytest.approx(means["retrieval_recall"])


def test_one_question_has_no_interval():
    finding = rn.assess(traces()[:1], gold=gold()[:1]).section("retrieval").finding
    assert "0.0 % are listed first, 100.0 % among the first 5 (n = 1)" in finding


def test_without_passages_or_gold_that_names_them_there_is_no_section():
    nameless = gold().assign(gold_ids=[[]] * N)
    without_ids = traces(chunks=[[{"text": "a"}]] * N)
    scores = pd.DataFrame({"faithfulness": [0.5, 0.7], "doc_name": ["a", "b"]})
    for sheet in (
        rn.assess(traces(), gold=nameless),
        rn.assess(without_ids, gold=gold()),
        rn.assess(scores),
    ):
        assert sheet.retrieval is None
        assert sheet.section("retrieval") is None


def test_each_search_of_an_agent_is_shown_alone():
    chunks = [
        [{"id": f"p{i}" if i % 2 else "x", "step": 1}, {"id": f"p{i}", "step": 2}] for i in range(N)
    ]
    sheet = rn.assess(traces(chunks=chunks), gold=gold())
    by_step = sheet.retrieval_by_step
    recall = by_step[(by_step["measure"] == "recall") & (by_step["k"] == 1)]
    assert recall.set_index("step")["value"].to_dict() == {1: 0.5, 2: 1.0}
    steps = sheet.section("retrieval").blocks[1]
    assert [row[0] for row in steps.rows] == ["1", "2"]
    assert [row[1][0] for row in steps.rows] == ["50.0 %", "100.0 %"]


def test_of_several_systems_the_one_that_is_shown_has_its_own():
    worse = traces(chunks=[["x", f"p{i}"] for i in range(N)])
    both = pd.concat([traces().assign(system="a"), worse.assign(system="b")], ignore_index=True)
    sheet = rn.assess(both, gold=gold())
    assert set(sheet.retrieval["system"]) == {"a", "b"}
    alone = sheet.of_system("b").retrieval
    recall = alone[alone["measure"] == "recall"].set_index("k")["value"]
    assert recall[1] == 0
    assert "system" not in alone
    section = rn.assess(both, gold=gold(), candidate="b", baseline="a", lang="zh").section(
        "retrieval"
    )
    assert section.name == "检索排名 · b"
    assert "0.0 % 排在首位" in section.finding


def test_conversations_are_the_clusters_where_they_are_those_of_the_page():
    once = [["x", f"p{i}"] for i in range(N)]
    talked = traces(chunks=once, conversation_id=[i // 3 for i in range(N)])
    assert set(rn.retrieval(talked, gold=gold())["cluster_unit"]) == {"conversation"}
    assert set(rn.retrieval(talked, gold=gold())["n_clusters"]) == {N // 3}
