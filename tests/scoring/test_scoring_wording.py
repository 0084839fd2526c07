"""Figures and names that stand nowhere: what the checks see, what they do not see, and how often."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from work import lines_run

from ragnb.errors import RagnbError
from ragnb.scoring import name_support, number_support, support_lexical

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "data" / "quickstart"


def lines(name):
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("answer", "contexts", "share", "absent"),
    [
        ("24 months", ["24-month warranty"], 1.0, []),
        ("36 months", ["24 months"], 0.0, ["36"]),
        ("1,000 hours or 2.50", ["1000 hours or 2.5"], 1.0, []),
        ("80% and 5 percent", ["80 percent, 5 %"], 1.0, []),
        ("80%", ["80 pieces"], 1.0, []),
        ("80%", ["80台"], 0.0, ["80%"]),
        ("3天", ["3周，5天"], 0.0, ["3天"]),
        ("３天", ["3天"], 1.0, []),
        ("第450元", ["450 元"], 1.0, []),
        ("1. First\n2. Second: 7", ["7"], 1.0, []),
        ("Yes [1, 2]: 7", ["7"], 1.0, []),
        ("CT-300 and A4", ["nothing"], math.nan, []),
        ("no figure", ["7"], math.nan, []),
        ("7", [], 0.0, ["7"]),
    ],
)
def test_figures_are_compared_by_value_and_unit(answer, contexts, share, absent):
    value, said = number_support(answer, contexts)
    assert value == pytest.approx(share, nan_ok=True)
    assert said == absent


@pytest.mark.parametrize(
    ("answer", "contexts", "share", "absent"),
    [
        ("We asked Carl Orff.", ["Carl Orff came."], 1.0, []),
        ("We asked Carl Orff.", ["Orff, Carl"], 1.0, []),
        ("We asked Carl Orff.", ["Carl Nielsen"], 0.0, ["Carl Orff"]),
        ("Warranty lasts. Then it ends.", ["x"], math.nan, []),
        ("New York is large.", ["york"], 0.0, ["New York"]),
        ("The WHO said so.", ["who"], 1.0, []),
        ("型号CT-300可用。", ["CT-200"], 0.0, ["CT-300"]),
        ("见《操作手册》。", ["《操作手册》第2章"], 1.0, []),
        ("见《操作手册》。", ["《保修手册》"], 0.0, ["操作手册"]),
        ("北灯仪器生产。", ["x"], math.nan, []),
    ],
)
def test_names_are_looked_for_word_by_word(answer, contexts, share, absent):
    value, said = name_support(answer, contexts)
    assert value == pytest.approx(share, nan_ok=True)
    assert said == absent


@pytest.mark.parametrize("check", [number_support, name_support])
def test_what_is_missing_is_missing_and_one_string_is_refused(check):
    for answer, contexts in ((None, ["7"]), ("The WHO: 7", None), (math.nan, ["7"])):
        assert math.isnan(check(answer, contexts)[0])
    with pytest.raises(RagnbError, match="pass a list of passages"):
        check("7", "7")


@given(st.text(max_size=200))
def test_a_text_supports_itself(text):
    for check in (number_support, name_support):
        value, absent = check(text, [text])
        assert (value, absent) == (1.0, []) or math.isnan(value)


@given(
    st.text(alphabet="ab A1.,%天《》-\n", max_size=80), st.lists(st.text(max_size=30), max_size=3)
)
def test_shares_lie_between_0_and_1(answer, contexts):
    for check in (number_support, name_support):
        value, absent = check(answer, contexts)
        assert math.isnan(value) or 0 <= value <= 1
        assert (value == 1) == (not absent) or math.isnan(value)


@pytest.mark.parametrize("unit", ["A", "1", "1,", "A1-", "《", "Aa ", "1a", " -1.", "Aa'"])
def test_work_at_most_doubles_when_the_text_doubles(unit):
    def checked(n):
        return lines_run(lambda: [c(unit * n, ["7"]) for c in (number_support, name_support)])

    assert checked(4_000) <= 2.2 * checked(2_000) + 100


# Swaps: how many false figures and names are seen, on answers that copy their passages

CASES = [case for case in lines("cases.jsonl") if case["retrieved_contexts"]]
PASSAGES = [row["text"] for row in lines("corpus.jsonl")]
FIGURE = re.compile(r"(?<![A-Za-z0-9.-])\d+(?:\.\d+)?(?![A-Za-z0-9.])")
NAME = re.compile(
    r"(?<![A-Za-z0-9-])(?:[A-Z]{2,}-\d+[A-Z]?|[A-Z][a-z]+ [A-Z][a-z]+)(?![A-Za-z0-9-])"
)


def swapped(pattern, rng):
    """Each answer with one figure or name put in another's place, taken from anywhere in the corpus."""
    pool = sorted({hit.group() for text in PASSAGES for hit in pattern.finditer(text)})
    for case in CASES:
        hits = list(pattern.finditer(case["answer"]))
        if hits:
            hit = rng.choice(hits)
            new = rng.choice([one for one in pool if one != hit.group()])
            yield case, case["answer"][: hit.start()] + new + case["answer"][hit.end() :]


def seen(check, pattern, seeds=range(5)):
    found = []
    for seed in seeds:
        for case, wrong in swapped(pattern, random.Random(seed)):
            before, after = (
                check(answer, case["retrieved_contexts"])[1] for answer in (case["answer"], wrong)
            )
            found.append(len(after) > len(before))
    return sum(found), len(found)


def test_swapped_figures_are_mostly_seen():
    hits, n = seen(number_support, FIGURE)
    assert n >= 300
    assert hits / n > 0.75


def test_swapped_names_are_mostly_seen():
    hits, n = seen(name_support, NAME)
    assert n >= 50
    assert hits / n > 0.75


@pytest.mark.parametrize("check", [number_support, name_support])
def test_copied_answers_raise_few_false_alarms(check):
    alarms = [bool(check(case["answer"], case["retrieved_contexts"])[1]) for case in CASES]
    assert sum(alarms) / len(alarms) < 0.05


def test_a_not_put_in_is_not_seen():
    """The blind spot that the docs state."""
    contexts = ["The warranty of the CT-300 is 24 months."]
    right, wrong = (
        "The warranty of the CT-300 is 24 months.",
        "The warranty of the CT-300 is not 24 months.",
    )
    assert number_support(wrong, contexts) == number_support(right, contexts) == (1.0, [])
    assert name_support(wrong, contexts) == (1.0, [])
    assert support_lexical(right, contexts) - support_lexical(wrong, contexts) < 0.15
