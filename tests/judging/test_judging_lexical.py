"""support_lexical against a plain loop, rouge_score and its own stated limits."""

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from ragnb.errors import RagnbError
from ragnb.judging import support_lexical

ROUGE = RougeScorer(["rougeL"], use_stemmer=False)
WORDS = st.lists(
    st.sampled_from(["the", "pump", "24", "months", "not", "covers", "a", "lamp"]), min_size=1
)
ENGLISH = WORDS.map(" ".join)
TEXT = st.text(st.sampled_from("ab 1.。！\n差旅报销é-不ｅ"), max_size=40)
CONTEXTS = st.lists(TEXT, max_size=4)


def longest_common(left, right):
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            table[i + 1][j + 1] = (
                table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
            )
    return table[-1][-1]


def tokens_by_hand(text):
    found, run = [], ""
    for char in text.lower() + " ":
        kind = "zh" if "\u4e00" <= char <= "\u9fff" else "en" if char.isalnum() else ""
        before = "" if not run else "zh" if "\u4e00" <= run[0] <= "\u9fff" else "en"
        if kind != before:
            found.append(run)
            run = ""
        run += char if kind else ""
    out = []
    for piece in filter(None, found):
        chinese = "\u4e00" <= piece[0] <= "\u9fff" and len(piece) > 1
        out += [piece[i] + piece[i + 1] for i in range(len(piece) - 1)] if chinese else [piece]
    return out


def by_hand(answer, contexts):
    passages = [t for t in map(tokens_by_hand, contexts) if t]
    scores = []
    for sentence in map(tokens_by_hand, re.split(r"[。！？；\n]|[.!?;](?:\s|$)", answer)):
        if not sentence or not passages:
            continue
        known = sum(any(token in p for p in passages) for token in sentence) / len(sentence)
        pairs = [sentence[i : i + 2] for i in range(len(sentence) - 1)]
        near = [
            any(pair == p[i : i + 2] for p in passages for i in range(len(p) - 1)) for pair in pairs
        ]
        common = max(longest_common(sentence, p) for p in passages) / len(sentence)
        parts = [known, common] + ([sum(near) / len(near)] if near else [])
        scores.append(sum(parts) / len(parts))
    return sum(scores) / len(scores) if scores else math.nan


@pytest.mark.parametrize(
    ("answer", "contexts"),
    [
        (
            "The warranty is 24 months.",
            ["The standard warranty is 24 months.", "Lamps are excluded."],
        ),
        ("Lamps are covered. Pay 3.5 euros; now!", ["Filters are covered", "pay 3 euros now"]),
        ("Yes.", ["yes, it is"]),
        (
            "一线城市每晚不超过450元。",
            ["国内住宿标准为：一线城市每晚不超过450元，其他城市每晚不超过320元。"],
        ),
        ("年假为10天，可以结转。是！", ["每年享有10天年假", "最多可以结转5天"]),
        (
            "LX-118台式显微CT的最大功率是八瓦",
            ["LX-118台式显微CT的最高管电压为90千伏，最大功率为8瓦。"],
        ),
    ],
)
def test_score_is_the_plain_loops(answer, contexts):
    assert support_lexical(answer, contexts) == pytest.approx(by_hand(answer, contexts), abs=1e-12)


@given(
    st.text(st.sampled_from("ab 1.。差旅报不"), max_size=30),
    st.lists(st.text("ab 1差旅报", max_size=30), max_size=3),
)
def test_score_is_the_plain_loops_on_random_text(answer, contexts):
    assert support_lexical(answer, contexts) == pytest.approx(
        by_hand(answer, contexts), abs=1e-12, nan_ok=True
    )


@given(ENGLISH, st.lists(ENGLISH, min_size=1, max_size=3))
def test_rouge_l_part_is_rouge_scores(answer, contexts):
    """Three times the mean, less the two other parts, leaves ROUGE-L precision against the best context."""
    said, pools = answer.split(), [context.split() for context in contexts]
    known = sum(any(word in pool for pool in pools) for word in said) / len(said)
    seen = {pair for pool in pools for pair in pairwise(pool)}
    pairs = list(pairwise(said))
    others = [known] + ([sum(pair in seen for pair in pairs) / len(pairs)] if pairs else [])
    rouge = support_lexical(answer, contexts) * (len(others) + 1) - sum(others)
    assert rouge == pytest.approx(
        max(ROUGE.score(c, answer)["rougeL"].precision for c in contexts), abs=1e-9
    )


@given(TEXT, CONTEXTS)
def test_score_lies_between_0_and_1_or_is_missing(answer, contexts):
    value = support_lexical(answer, contexts)
    assert math.isnan(value) or 0 <= value <= 1


@given(TEXT, CONTEXTS)
def test_an_answer_that_is_a_context_scores_1(answer, contexts):
    value = support_lexical(answer, [*contexts, answer])
    assert value == 1 if any(char.isalnum() for char in answer) else math.isnan(value)


@given(TEXT, CONTEXTS.filter(lambda texts: any(c.isalnum() for t in texts for c in t)), TEXT)
def test_one_more_context_never_lowers_the_score(answer, contexts, more):
    before, after = support_lexical(answer, contexts), support_lexical(answer, [*contexts, more])
    assert math.isnan(before) == math.isnan(after)
    assert math.isnan(before) or after >= before


@pytest.mark.parametrize(
    ("answer", "contexts"),
    [
        *[(answer, ["a"]) for answer in (None, math.nan, "", " …。")],
        *[("a", contexts) for contexts in (None, math.nan, [], ["", " - "], [None])],
    ],
)
def test_no_answer_or_no_contexts_is_missing_and_never_0(answer, contexts):
    assert math.isnan(support_lexical(answer, contexts))


def test_wording_that_was_not_retrieved_scores_0():
    assert support_lexical("Bananas ripen quickly.", ["The warranty is 24 months."]) == 0
    assert support_lexical("香蕉熟得快。", ["保修期为二十四个月。"]) == 0


def test_chinese_is_ranked_by_wording():
    contexts = ["国内住宿标准为：一线城市每晚不超过450元，其他城市每晚不超过320元。"]
    right = support_lexical("一线城市每晚不超过450元。", contexts)
    part = support_lexical("一线城市的酒店每晚大约六百元。", contexts)
    none = support_lexical("产品保修期为两年。", contexts)
    assert right == 1 > part > none


def test_full_width_and_case_do_not_count():
    assert support_lexical("ＬＸ－１１８ 的功率", ["lx-118 的功率"]) == 1


def test_negation_is_a_blind_spot():
    context = "Damage from liquids, falls or unauthorised repair is not covered by the warranty of the instrument."
    said = "Damage from liquids, falls or unauthorised repair is {}covered by the warranty of the instrument."
    right, wrong = (
        support_lexical(said.format("not "), [context]),
        support_lexical(said.format(""), [context]),
    )
    assert right == 1
    assert wrong > 0.95
    assert support_lexical("过期未休的年假折算工资", ["过期未休的年假不折算工资"]) > 0.75


def test_completeness_and_relevance_are_blind_spots():
    """Completeness and relevance are not seen: half an answer and one off the point both score 1."""
    contexts = [
        "Express delivery takes one day and costs 48 euros.",
        "Lab coats are washed every Friday.",
    ]
    assert support_lexical("Lab coats are washed every Friday.", contexts) == 1
    assert support_lexical("costs 48 euros", contexts) == 1


def test_one_string_for_the_contexts_is_refused():
    with pytest.raises(RagnbError, match="pass a list of passages"):
        support_lexical("a", "a b c")
