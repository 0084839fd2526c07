"""Citations: every form in which answers name passages gives the rate that a plain loop over the ids gives."""

from __future__ import annotations

import random

import pandas as pd
import polars as pl
import pytest

from ragnb.errors import RagnbError
from ragnb.traces import citations, label_traces

# What ids look like in real stores.
IDS = {
    "pages": lambda i: f"Benefits_Details.pdf#page={i}",
    "blanks": lambda i: f"Employee Handbook {i}.pdf",
    "brackets": lambda i: f"notes[{i}] (final).md",
    "commas": lambda i: f"Smith, {2000 + i}.txt",
    "chinese": lambda i: f"员工手册_第{i}章",
    "addresses": lambda i: f"https://docs.example.org/a/b?id={i}",
    "short": lambda i: f"{i}-{i + 1}",
    "nested": lambda i: "doc#1" + "#2" * i,
}
WRITTEN = {
    "brackets": lambda ids: "".join(f"[{one}]" for one in ids),
    "parentheses": lambda ids: " ".join(f"({one})" for one in ids),
    "lenticular": lambda ids: "".join(f"【{one}】" for one in ids),
    "footnotes": lambda ids: "".join(f"[^{one}]" for one in ids),
    "links": lambda ids: ", ".join(f"[see here]({one})" for one in ids),
    "tags": lambda ids: "".join(f"<cite>{one}</cite>" for one in ids),
    "sources": lambda ids: "\nSource: " + ", ".join(ids),
}
FILLER = [
    "The plan pays (in full).",
    "See the table [below].",
    "Costs rose by 5 % (2019).",
    "好的。",
]


def run(make_id, write, *, n=80, seed=3):
    """Return traces, gold, and which answers cite a gold id."""
    rng = random.Random(seed)
    traces, gold, hits = [], [], []
    for row in range(n):
        passages = [make_id(i) for i in rng.sample(range(1, 40), 5)]
        right = rng.sample(passages, 2)
        cited = rng.sample(passages, rng.randint(1, 2))
        answer = f"{rng.choice(FILLER)} It is so {write(cited)}"
        chunks = [{"id": one} for one in passages]
        traces.append({"question": f"q{row}", "answer": answer, "chunks": chunks})
        gold.append({"question": f"q{row}", "answerable": True, "gold_ids": right})
        hits.append(bool(set(right) & set(cited)))
    return pd.DataFrame(traces), pd.DataFrame(gold), hits


# A link's target holds no unescaped bracket.
POSSIBLE = [
    (form, kind) for form in WRITTEN for kind in IDS if (form, kind) != ("links", "brackets")
]


@pytest.mark.parametrize(("form", "kind"), POSSIBLE)
def test_every_form_is_found_and_gives_the_rate_of_a_loop(form, kind):
    traces, gold, hits = run(IDS[kind], WRITTEN[form])
    labelled = label_traces(traces, gold=gold)
    assert labelled["hit"].tolist() == hits
    assert labelled["citations_form"].unique().tolist() == [form]
    assert labelled["compliance"].eq(1).all()


@pytest.mark.parametrize("form", WRITTEN)
def test_engines_read_the_same_citations(form):
    traces, gold, _ = run(IDS["blanks"], WRITTEN[form])
    ours = label_traces(traces, gold=gold)
    theirs = label_traces(pl.DataFrame(traces.to_dict("records")), gold=gold)
    assert theirs["citations_predicted"].to_list() == ours["citations_predicted"].tolist()
    assert theirs["citation_hit_rate"].to_list() == ours["citation_hit_rate"].tolist()


PLACES = {
    "one by one": lambda at: "".join(f"[{i}]" for i in at),
    "in one": lambda at: f"[{', '.join(map(str, at))}]",
    "lenticular": lambda at: "".join(f"【{i}†source】" for i in at),
    "raised": lambda at: " and ".join(f"word{''.join('⁰¹²³⁴⁵⁶⁷⁸⁹'[i])}" for i in at),
    "footnotes": lambda at: "".join(f"[^{i}]" for i in at),
    "tags": lambda at: "".join(f"<sup>{i}</sup>" for i in at),
}


@pytest.mark.parametrize("write", PLACES.values(), ids=PLACES)
def test_numbers_are_places_among_the_passages_of_the_row(write):
    traces, gold, hits = run(IDS["pages"], lambda ids: "{}")
    rng = random.Random(5)
    for row, chunks in enumerate(traces["chunks"]):
        at = rng.sample(range(1, 6), 2)
        traces.loc[row, "answer"] = f"So it is {write(at)}."
        hits[row] = bool({chunks[i - 1]["id"] for i in at} & {*gold["gold_ids"][row]})
    labelled = label_traces(traces, gold=gold)
    assert labelled["hit"].tolist() == hits
    assert set(labelled["citations_form"]) == {"numbers"}


def test_a_range_of_numbers_is_every_place_in_it():
    traces, gold, _ = run(IDS["pages"], lambda ids: "{}", n=4)
    traces["answer"] = "So it is [2-4]."
    found = label_traces(traces, gold=gold)["citations_predicted"].tolist()
    assert found == [[chunk["id"] for chunk in chunks[1:4]] for chunks in traces["chunks"]]


def test_numbers_are_no_places_where_one_is_beyond_the_passages():
    traces, gold, _ = run(IDS["pages"], lambda ids: "{}", n=20)
    traces["answer"] = "So it is [1][7]."
    labelled = label_traces(traces, gold=gold)
    assert labelled["citation_hit_rate"].eq(0).all()
    assert labelled["citations_form"].isna().all()


def test_numbers_are_ids_where_ids_are_numbers():
    traces, gold, _ = run(lambda i: str(i), lambda ids: f"[{ids[0]}]")
    labelled = label_traces(traces, gold=gold)
    assert set(labelled["citations_form"]) == {"brackets"}


def test_numbers_of_a_list_of_sources_are_no_places():
    traces, gold, _ = run(IDS["pages"], lambda ids: "{}", n=20)
    last = [chunks[-1]["id"] for chunks in traces["chunks"]]
    traces["answer"] = [f"So it is [1].\n\nReferences:\n[1] {one}" for one in last]
    labelled = label_traces(traces, gold=gold)
    assert labelled["citations_predicted"].tolist() == [[one] for one in last]


def test_a_year_in_parentheses_is_no_citation():
    traces, gold, _ = run(lambda i: str(2000 + i), lambda ids: f"in that year ({ids[0]})")
    assert label_traces(traces, gold=gold)["citation_hit_rate"].eq(0).all()


def test_an_id_within_an_address_or_a_longer_word_is_no_citation():
    traces, gold, _ = run(lambda i: f"doc{i}", lambda ids: f"[https://x.org/{ids[0]}] [{ids[0]}x]")
    assert label_traces(traces, gold=gold)["citations_form"].isna().all()


@pytest.mark.parametrize(
    "line",
    [
        "Source: {}",
        "**Sources:** {}.",
        "(source: {})",
        "来源：{}",
        "出处：《{}》".replace("《", "[").replace("》", "]"),
        "Sources:\n- {}",
        "Quellen:\n1. {}",
        "References:\n[1] {}",
        "Reference: {}, page 4",
    ],
)
def test_a_line_of_sources_names_its_ids(line):
    traces, gold, _ = run(IDS["blanks"], lambda ids: "\n" + line.format(ids[0]), n=20)
    labelled = label_traces(traces, gold=gold, citations="sources")
    wanted = [
        [name]
        for name, chunks in zip(
            labelled["citations_predicted"].str[0], traces["chunks"], strict=True
        )
        if name in {chunk["id"] for chunk in chunks}
    ]
    assert labelled["citations_predicted"].tolist() == wanted
    assert len(wanted) == 20


def test_case_counts_only_where_two_ids_differ_in_it():
    gold = pd.DataFrame(
        {"question": ["x", "y"], "answerable": True, "gold_ids": [["Doc_A"], ["b"]]}
    )
    traces = pd.DataFrame({"question": ["x", "y"], "answer": ["Yes [doc_a].", "Yes [B]."]})
    traces["chunks"] = [["Doc_A"], ["b", "B"]]
    labelled = label_traces(traces, gold=gold)
    assert labelled["citations_predicted"].tolist() == [["Doc_A"], ["B"]]


def test_two_forms_that_name_different_ids_are_asked_and_each_answer_works():
    traces, gold, _ = run(IDS["pages"], WRITTEN["brackets"], n=60)
    other, more, _ = run(IDS["pages"], WRITTEN["sources"], n=40, seed=9)
    other["question"] = more["question"] = [f"other {i}" for i in range(40)]
    traces = pd.concat([traces, other], ignore_index=True)
    gold = pd.concat([gold, more], ignore_index=True)
    with pytest.raises(RagnbError, match=r"60 of 100 as \[id\], 40 as source: id; set citations"):
        label_traces(traces, gold=gold)
    counts = {
        form: int((label_traces(traces, gold=gold, citations=form)["compliance"] == 1).sum())
        for form in ("brackets", "sources", "inline", "list")
    }
    assert counts == {"brackets": 60, "sources": 40, "inline": 100, "list": 0}


def test_a_list_beside_inline_forms_counts_and_lists_in_half_the_answers_are_asked():
    traces, gold, _ = run(IDS["pages"], WRITTEN["brackets"], n=40)
    right = [ids[0] for ids in gold["gold_ids"]]
    both = traces["answer"] + [f"\ncitations: [{one}]" for one in right]
    labelled = label_traces(traces.assign(answer=both), gold=gold)
    assert labelled["citations_predicted"].tolist() == [[one] for one in right]
    assert set(labelled["citations_form"]) == {"list"}
    half = traces.assign(answer=both.where(both.index < 20, traces["answer"]))
    with pytest.raises(RagnbError, match=r"20 of 40 as citations: \[id, id\], 20 as \[id\]"):
        label_traces(half, gold=gold)
    forms = label_traces(half, gold=gold, citations="inline")["citations_form"].value_counts()
    assert forms.to_dict() == {"list": 20, "brackets": 20}


def test_each_system_has_its_own_form():
    one, gold, hits = run(IDS["pages"], WRITTEN["brackets"])
    two = one.assign(
        answer=[
            answer.replace("][", ", ").replace("[Ben", "\nSource: Ben").replace("]", "")
            for answer in one["answer"]
        ]
    )
    both = pd.concat([one.assign(system="a"), two.assign(system="b")], ignore_index=True)
    labelled = label_traces(both, gold=gold)
    assert labelled["hit"].tolist() == hits * 2
    assert labelled.groupby("system")["citations_form"].unique().map(list).to_dict() == {
        "a": ["brackets"],
        "b": ["sources"],
    }
    assert [row["n"] for row in labelled.attrs["join"]["citations"]] == [80, 80]


def test_a_form_is_not_asked_for_one_stray_answer():
    traces, gold, _ = run(IDS["pages"], WRITTEN["brackets"])
    stray = traces["chunks"][0][0]["id"]
    traces.loc[0, "answer"] = f"Yes ({stray})."
    labelled = label_traces(traces, gold=gold)
    assert labelled["citations_form"].isna().tolist() == [True] + [False] * 79


def test_refusals_do_not_tell_the_form():
    traces, gold, _ = run(IDS["pages"], WRITTEN["brackets"], n=10)
    refused = f"I cannot answer (see {traces['chunks'][0][0]['id']})."
    traces.loc[0, "answer"] = refused
    labelled = label_traces(traces, gold=gold, patterns=["^I cannot"])
    assert labelled.attrs["join"]["citations"] == [
        {"system": None, "form": "brackets", "n": 9, "of": 9}
    ]


def test_an_unknown_form_is_refused_with_the_choices():
    with pytest.raises(RagnbError, match="citations='bracket'"):
        label_traces(pd.DataFrame({"question": ["x"], "answer": ["y"]}), citations="bracket")


def test_batches_show_together_what_the_whole_shows():
    traces, gold, _ = run(IDS["pages"], WRITTEN["brackets"])
    frame = pl.DataFrame(traces.to_dict("records")).with_columns(
        system=pl.Series(["a", "b"] * 40), refused=False, citations=pl.lit(None, pl.List(pl.String))
    )
    chunks = pl.col("chunks").list.eval(pl.element().struct.field("id"))
    rows = frame.with_columns(chunks, gold_ids=pl.Series(gold["gold_ids"].tolist()))
    parts = [
        citations.read(part, split="space", citations="auto").seen for part in (rows[:7], rows[7:])
    ]
    whole = citations.read(rows, split="space", citations="auto").seen
    assert citations.merged(parts) == whole
    assert citations.chosen(whole, "auto") == {"a": "brackets", "b": "brackets"}


def test_a_field_that_is_always_empty_beside_inline_citations_is_asked():
    """Nothing cited by the field, everything by the text: neither rate is taken unasked."""
    asked = [f"q{i}" for i in range(40)]
    gold = pd.DataFrame(
        {"question": asked, "answerable": True, "gold_ids": [[f"d{i}"] for i in range(40)]}
    )
    traces = pd.DataFrame({"question": asked, "answer": [f"It is so [d{i}]." for i in range(40)]})
    empty = traces.assign(citations=[[] for _ in asked])
    with pytest.raises(RagnbError, match="40 of 40 as a field, 40 as \\[id\\]") as refused:
        label_traces(empty, gold=gold)
    for setting, rate in (("list", 0.0), ("brackets", 1.0)):
        assert f"citations: {setting}" in str(refused.value)
        rates = label_traces(empty, gold=gold, citations=setting)["citation_hit_rate"]
        assert rates.mean() == rate
    # Null is no field at all, and where one list is filled, an empty one says that its answer cites nothing.
    absent = traces.assign(citations=pd.Series([None] * 40, dtype=object))
    assert label_traces(absent, gold=gold)["citation_hit_rate"].mean() == 1
    filled = empty.assign(citations=[["d0"], *([] for _ in asked[1:])])
    assert label_traces(filled, gold=gold)["citation_hit_rate"].sum() == 1
