"""Claims of answers: how answers are taken apart, what each sentence cites, and what of it stands there."""

from __future__ import annotations

import html
import json
import math
import re
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_server import block
from llm_server import LlmServer

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.markup import escape
from ragnb.schema import Profile
from ragnb.sheet.wording import marked
from ragnb.store import Client
from ragnb.texts import load
from ragnb.traces.claims import VERDICTS, sentences_of

DATA = Path(__file__).resolve().parents[2] / "data" / "quickstart"
WARRANTY = {
    "id": "w",
    "text": "The pump has a warranty of 24 months. Seals are replaced within 90 days.",
}
TRAVEL = {
    "id": "差旅.pdf#p2",
    "text": "住宿标准：一线城市每晚不超过450元，其他城市每晚不超过320元。",
}


def claims_of(answer, chunks=(WARRANTY, TRAVEL), **how):
    traces = pd.DataFrame({"question": ["x"], "answer": [answer], "chunks": [list(chunks)]})
    return rn.label_claims(traces, **how).rows


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "It costs 3.5 euro, e.g. for Dr. Li. Ask.",
            ["It costs 3.5 euro, e.g. for Dr. Li.", "Ask."],
        ),
        ("年假为10天。病假另计！好吗？", ["年假为10天。", "病假另计！", "好吗？"]),
        ("First. [a] Second [b].", ["First. [a]", "Second [b]."]),
        ("甲。[a]乙【b】。", ["甲。[a]", "乙【b】。"]),
        ("Steps:\n1. Open it.\n2. Close it.\n- Done", ["Steps:", "Open it.", "Close it.", "Done"]),
        ("| Fee | Limit |\n|---|---|\n| taxi | 120 |", ["| Fee | Limit |", "| taxi | 120 |"]),
        ("See https://x.org/a.html now.", ["See https://x.org/a.html now."]),
        ("", []),
        (" \n -- \n", []),
    ],
)
def test_answers_are_taken_apart_by_sentences_lines_and_rows(text, want):
    assert sentences_of(text) == want


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab1 .。!?\n-|，的", max_size=60))
def test_no_word_of_an_answer_is_lost(text):
    def letters(one):
        return sorted(sign for sign in one if sign.isalpha())

    assert letters("".join(sentences_of(text))) == letters(text)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("The pump has a warranty of 24 months [w].", "supported"),
        ("The pump has a warranty of 36 months [w].", "not found"),
        ("Seals are replaced within 14 days [w].", "not found"),
        ("The pump has a warranty of 24 months or 9,999 hours [w].", "partly"),
        ("Paint jobs cost extra on Sundays in winter [w].", "not found"),
        ("The pump has a warranty of 24 months.", "uncited"),
        ("一线城市每晚不超过450元【差旅.pdf#p2】。", "supported"),
        ("一线城市每晚不超过9,999元【差旅.pdf#p2】。", "not found"),
        ("In large cities at most so much a night is paid [差旅.pdf#p2].", "undecided"),
    ],
)
def test_a_claim_is_looked_for_in_what_it_cites(answer, verdict):
    rows = claims_of(answer)
    assert rows["verdict"].tolist() == [verdict]
    assert verdict in VERDICTS


def test_each_sentence_has_its_own_citation():
    rows = claims_of(
        "The pump has a warranty of 24 months [w]. 一线城市每晚不超过450元[差旅.pdf#p2]。 Ask us."
    )
    assert rows["cited"].tolist() == [["w"], ["差旅.pdf#p2"], []]
    assert rows["verdict"].tolist() == ["supported", "supported", "uncited"]
    assert rows["place"].tolist() == [1, 2, 3]
    assert rows["claim"].iloc[0] == "The pump has a warranty of 24 months."


def test_figures_that_are_missing_are_listed():
    row = claims_of("Within 14 days, at most 24 months [w].").iloc[0]
    assert row["figures"] == 0.5
    assert row["figures_missing"] == ["14"]


def test_a_refusal_and_a_failed_answer_have_no_claims():
    traces = pd.DataFrame(
        {
            "question": ["x", "y", "z"],
            "answer": ["Not in context", None, "The pump has a warranty of 24 months [w]."],
            "chunks": [[WARRANTY]] * 3,
        }
    )
    found = rn.label_claims(traces)
    assert found.rows["question"].tolist() == ["z"]
    rate = found.rates.set_index("metric")
    assert rate.loc["claim_support", ["value", "n"]].tolist() == [1.0, 1]


def test_a_list_of_the_answer_tells_no_sentence_from_another():
    """It is looked in for each sentence, and the share of cited sentences does not apply."""
    found = rn.label_claims(
        pd.DataFrame(
            {
                "question": ["x"],
                "answer": ["The pump has a warranty of 24 months. Ask us in May. citations: [w]"],
                "chunks": [[WARRANTY]],
            }
        )
    )
    assert found.rows["cited_by"].tolist() == ["answer", "answer"]
    assert found.rows["verdict"].tolist()[0] == "supported"
    assert found.rates.set_index("metric").loc["cited_share", "n"] == 0


def test_ids_that_no_passage_has_are_told_and_passages_without_text_decide_nothing():
    traces = pd.DataFrame(
        {
            "question": ["x", "y"],
            "answer": ["Seals last 90 days.", "Seals last 90 days."],
            "citations": [["gone"], ["w"]],
            "chunks": [[WARRANTY], [{"id": "w"}]],
            "gold_ids": [["gone"], ["w"]],
        }
    )
    rows = rn.label_claims(traces).rows
    assert rows["verdict"].tolist() == ["cites nothing known", "undecided"]
    assert rows["cited_known"].tolist() == [[], ["w"]]
    assert rows["cited_gold"].tolist() == [["gone"], ["w"]]
    assert math.isnan(rows["figures"].iloc[1])
    told = rn.label_claims(traces, passages={"w": WARRANTY["text"]}).rows
    assert told["figures"].iloc[1] == 1.0
    frame = pd.DataFrame({"id": ["w"], "text": [WARRANTY["text"]]})
    assert rn.label_claims(traces, passages=frame).rows["figures"].iloc[1] == 1.0


def test_rates_are_means_of_the_claims_clustered_by_document():
    corpus = pd.read_json(DATA / "corpus.jsonl", lines=True)
    parts = [
        rn.read_traces(DATA / f"traces.{name}.jsonl").assign(system=name)
        for name in ("weak", "strong")
    ]
    found = rn.label_claims(
        pd.concat(parts, ignore_index=True),
        gold=DATA / "gold.json",
        refusal=["not in context", "资料中没有相关内容"],
        passages=corpus,
    )
    rates = found.rates.set_index(["system", "metric"])
    for system, rows in found.rows.groupby("system"):
        decided = rows[~rows["verdict"].isin(["uncited", "undecided"])]
        row = rates.loc[(system, "claim_support")]
        assert row["value"] == pytest.approx((decided["verdict"] == "supported").mean())
        assert row["n"] == len(decided)
        assert row["cluster_unit"] == "document"
        assert row["low"] < row["value"] < row["high"]
        figures = rates.loc[(system, "figure_support")]
        assert figures["value"] == pytest.approx(rows["figures"].mean())


def test_real_answers_cite_the_same_whether_a_field_repeats_it_or_not(shared):
    """Of 200 answers of the Azure sample, with and without the field of their citations."""
    names = ("trace.baseline.jsonl", "trace_embedded.baseline.jsonl")
    field, text = (rn.label_claims(shared / "data/traces/azure_northwind" / name) for name in names)
    assert field.rows["cited"].tolist() == text.rows["cited"].tolist()
    assert len(field.rows) == 801
    share = field.rates.set_index("metric").loc["cited_share"]
    assert share["value"] == pytest.approx(0.66625, abs=0.002)


@pytest.mark.parametrize(
    ("drop", "change", "message"),
    [
        ("answer", {}, "no column 'answer'"),
        ("chunks", {}, "no column 'chunks'"),
        (None, {"citations": "roman"}, "'roman' is not known"),
        (None, {"passages": pd.DataFrame({"name": ["a"]})}, "passages have no column 'id'"),
    ],
)
def test_what_is_not_understood_is_refused(drop, change, message):
    traces = pd.DataFrame({"question": ["x"], "answer": ["A [w]."], "chunks": [[WARRANTY]]})
    with pytest.raises(RagnbError, match=message):
        rn.label_claims(traces.drop(columns=drop or []), **change)


def test_passages_that_are_texts_are_cited_by_their_place():
    traces = pd.DataFrame(
        {
            "question": ["x"],
            "answer": ["The pump has a warranty of 24 months [2]. Seals last 14 days [1]."],
            "retrieved_contexts": [["Seals are replaced within 90 days.", WARRANTY["text"]]],
        }
    )
    rows = rn.label_claims(traces).rows
    assert rows["cited"].tolist() == [["2"], ["1"]]
    assert rows["verdict"].tolist() == ["supported", "not found"]


# On the page


def test_the_page_marks_each_sentence_and_names_what_no_passage_has():
    passages = [["Rooms cost at most 450 yuan a night in cities. Ms. Lee approves exceptions."]]
    answer = "Rooms cost at most 450 yuan a night. Rooms cost at most 9,999 yuan a night."
    rows = {"question": ["x"], "answer": [answer], "retrieved_contexts": passages}
    page = rn.assess(pd.DataFrame(rows | {"faithfulness": [0.5]})).to_html()
    assert "<mark>Rooms cost at most 450 yuan a night.</mark>" in page
    absent = '<mark class="rg-absent">Rooms cost at most 9,999 yuan a night.</mark>'
    assert f"{absent} <small>(not found: 9,999)</small>" in page
    zh = rn.assess(pd.DataFrame(rows | {"faithfulness": [0.5]}), lang="zh").to_html()
    assert "（未找到：9,999）" in zh or "(未找到：9,999)" in zh


def test_a_refusal_is_not_marked_on_the_page():
    chunks = [[{"id": "a", "text": "Returns are accepted within 14 days."}]] * 2
    answers = ["not in context", "Returns are accepted within 90 days [a]."]
    traces = pd.DataFrame({"question": ["x", "y"], "answer": answers, "chunks": chunks})
    gold = pd.DataFrame(
        {"question": ["x", "y"], "answerable": [False, True], "gold_ids": [[], ["a"]]}
    )
    page = rn.assess(traces, gold=gold).to_html()
    assert "<mark" not in page.split("not in context")[0]
    assert ">not in context</mark>" not in page


@given(st.text(max_size=80), st.lists(st.text(max_size=40), max_size=3))
@settings(max_examples=80, deadline=None)
def test_marking_changes_no_letter_of_an_answer(answer, passages):
    made = marked(answer, passages, load("en"))
    plain = re.sub(r" <small>\(.*?\)</small>", "", made, flags=re.DOTALL)
    plain = html.unescape(re.sub(r"</?mark[^>]*>", "", plain))
    if "<small>" not in answer:
        assert plain == html.unescape(str(escape(answer)))


# A judge for what words cannot decide

STATED = "Staff may book first-class rail travel after approval by the head of department."


def paraphrases():
    chunks = [[{"id": "a", "text": STATED}]] * 3
    answers = [
        f"{STATED} [a]",
        "Trains: the best seats need a nod from your boss [a].",
        "First-class rail travel is limited to 9,999 euro [a].",
    ]
    rows = {"sample_id": [*"123"], "question": [*"xyz"], "answer": answers, "chunks": chunks}
    return pd.DataFrame(rows)


def clerk(request):
    """Support what speaks of the boss; nothing else is asked."""
    given = block(request)
    score = 3 if "boss" in given["answer"] else 1
    return json.dumps(
        {"analysis": "a", "scores": {"support": score}, "support": score, "reason": "read"}
    )


def test_a_judge_decides_what_words_cannot_and_is_asked_once(tmp_path):
    traces = paraphrases()
    alone = rn.label_claims(traces).rows
    assert alone["verdict"].tolist() == ["supported", "not found", "not found"]
    with LlmServer(clerk) as server:
        client = Client(Profile(base_url=server.base_url, model="small"))
        how = {"client": client, "store": tmp_path / "claims.sqlite", "progress": False}
        found = rn.label_claims(traces, **how)
        asked = len(server.log)
        again = rn.label_claims(traces, **how)
        assert len(server.log) == asked  # durable
        assert asked == 1  # the figure that is missing needs no judge
    assert found.rows["verdict"].tolist() == ["supported", "supported", "not found"]
    assert found.rows["decided_by"].tolist() == ["wording", "judge", "wording"]
    assert found.rows["support"].tolist()[1] == 3
    pd.testing.assert_frame_equal(found.rows, again.rows)
    rates = found.rates.set_index("metric")["value"]
    assert rates["claim_support"] == pytest.approx(2 / 3)
    assert found.rows.attrs["judge"]["spent"]["calls"] == 1


@pytest.mark.filterwarnings("ignore:.*cells failed:ragnb.errors.RagnbWarning")
def test_a_reply_that_cannot_be_read_leaves_the_claim_undecided():
    with LlmServer(lambda request: "I would rather not say.") as server:
        client = Client(Profile(base_url=server.base_url, model="small"))
        found = rn.label_claims(paraphrases(), client=client, progress=False)
    assert found.rows["verdict"].tolist() == ["supported", "undecided", "not found"]


def test_people_may_check_the_judge_of_claims():
    rows = pd.DataFrame({"support": [3.0, 1.0, 2.0, 3.0] * 20, "human": [3, 1, 2, 3] * 20})
    card = rn.calibrate(rows, judge="support", scale=(1, 3), tolerance=0)
    assert card.verdicts["share"].tolist() == [1.0]


# Ids that are made up

PASSAGES = {
    "p1": "Seals are replaced free of charge within 14 days.",
    "p2": "The pump has a warranty of 730 days.",
}
MADE_UP = [
    ("The pump has a warranty of 730 days [p2].", ["p2"], "supported"),
    ("The pump has a warranty of 730 days [p9].", ["p9"], "cites nothing known"),
    ("The pump has a warranty of 730 days [p2, P7].", ["p2", "P7"], "supported"),
    ("The pump has a warranty [sic] of 730 days.", [], "uncited"),
    ("The pump has had a warranty of 730 days since [2019].", [], "uncited"),
]


def made_up(ids: dict[str, str], column: str) -> pd.DataFrame:
    """Return answers that cite passages of other names, as texts where the names are their places."""
    passages = [{"id": ids[name], "text": text} for name, text in PASSAGES.items()]
    answers = [answer for answer, _, _ in MADE_UP]
    for name, called in ids.items():
        answers = [text.replace(f"[{name}", f"[{called}") for text in answers]
    rows = {"sample_id": [*"abcde"], "question": [*"vwxyz"], "answer": answers}
    return pd.DataFrame(rows | {column: [passages] * len(answers)})


@pytest.mark.parametrize("column", ["chunks", "retrieved_contexts", "contexts"])
@pytest.mark.parametrize("engine", ["pandas", "polars"])
def test_an_id_that_is_made_up_is_a_citation_of_nothing_known(column, engine):
    """It differs from ids there are in its digits alone; what holds no id is no citation."""
    frame = made_up({"p1": "p1", "p2": "p2"}, column)
    labelled = rn.label_traces(pl.from_pandas(frame) if engine == "polars" else frame)
    want = [ids or None for _, ids, _ in MADE_UP]
    assert [cell and [*cell] for cell in labelled["citations_predicted"].to_list()] == want
    claims = rn.label_claims(pl.from_pandas(frame) if engine == "polars" else frame)
    assert claims.rows["verdict"].tolist() == [verdict for _, _, verdict in MADE_UP]
    support = claims.rates.set_index("metric").loc["claim_support"]
    assert (support["value"], support["n"]) == (pytest.approx(2 / 3), 3)


def test_numbers_that_no_passage_has_are_citations_of_nothing_known():
    texts = [*PASSAGES.values()]
    answers = ["The pump has a warranty of 730 days [2]."] * 40
    answers += ["It is so [9].", "The pump has a warranty of 730 days [2][7].", "Since [2019]."]
    names = [str(n) for n in range(len(answers))]
    frame = pd.DataFrame(
        {"question": names, "answer": answers, "retrieved_contexts": [texts] * len(names)}
    )
    claims = rn.label_claims(frame)
    assert claims.rows["verdict"].tolist()[40:] == ["cites nothing known", "supported", "uncited"]
    assert claims.rows["cited"].tolist()[40:] == [["9"], ["2", "7"], []]
    passages = [{"id": name, "text": text} for name, text in PASSAGES.items()]
    placed = rn.label_claims(frame.assign(retrieved_contexts=[passages] * len(names)))
    assert placed.rows["cited"].tolist()[40:] == [["9"], ["p2", "7"], []]


@pytest.mark.parametrize(
    "measure", [rn.label_retrieval, lambda frame, gold: rn.retrieval(frame, gold=gold)]
)
def test_passages_with_ids_in_a_frame_are_found_as_in_a_file(measure):
    frame = made_up({"p1": "p1", "p2": "p2"}, "retrieved_contexts").drop(columns="answer")
    gold = pd.DataFrame({"sample_id": [*"abcde"], "gold_ids": [["p2"]] * 5})
    chunks = measure(frame.rename(columns={"retrieved_contexts": "chunks"}), gold=gold)
    contexts = measure(frame, gold=gold)
    same = [name for name in chunks.columns if name not in ("chunks", "retrieved_contexts")]
    pd.testing.assert_frame_equal(contexts[same], chunks[same])


# Negation

REVERSED = [
    ("Seals are replaced within 14 days of delivery [a].", "supported"),
    ("Seals are not replaced within 14 days of delivery [a].", "undecided"),
    ("Seals aren't replaced within 14 days of delivery [a].", "undecided"),
    ("The motor is covered by the warranty [a].", "undecided"),
    ("The motor is not covered by the warranty [a].", "supported"),
    ("打车费每天上限为120元[a]。", "supported"),
    ("打车费每天上限不为120元[a]。", "undecided"),
    ("一线城市每晚450元[a]。", "undecided"),
    ("一线城市每晚不超过450元[a]。", "supported"),
]
AFFIRMED = (
    "Seals are replaced within 14 days of delivery. The motor is not covered by the warranty. "
    "打车费每天上限为120元。一线城市每晚不超过450元。"
)


@pytest.mark.parametrize(("answer", "verdict"), REVERSED)
def test_words_do_not_decide_a_claim_whose_negation_is_not_that_of_its_passage(answer, verdict):
    frame = pd.DataFrame({"question": ["x"], "answer": [answer]})
    claims = rn.label_claims(frame.assign(chunks=[[{"id": "a", "text": AFFIRMED}]]))
    assert claims.rows["verdict"].tolist() == [verdict]


def test_an_undecided_claim_is_no_success():
    chunks = [[{"id": "a", "text": AFFIRMED}]] * 2
    frame = pd.DataFrame({"question": [*"xy"], "answer": [REVERSED[0][0], REVERSED[1][0]]})
    rates = rn.label_claims(frame.assign(chunks=chunks)).rates.set_index("metric")
    assert rates.loc["claim_support", ["value", "n"]].tolist() == [1.0, 1]
