"""Where noise comes from: nested mean squares in loops, planted variances, and what a budget really buys."""

from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import ragnb as rn
from ragnb.errors import RagnbError

SIZES = {"G": 20, "Q": 5, "r": 2, "s": 2}


def drawn(rng, *, v=(0.01, 0.02, 0.01, 0.005), G=20, Q=5, r=2, s=2, mean=0.5):
    """Return scores with planted variances of documents, questions, answers and judgements."""
    d, q, a, j = (np.sqrt(part) for part in v)
    rows = []
    for g in range(G):
        of_document = rng.normal(0, d)
        for k in range(Q):
            of_question = rng.normal(0, q)
            for i in range(r):
                of_answer = rng.normal(0, a)
                for n in range(s):
                    score = mean + of_document + of_question + of_answer + rng.normal(0, j)
                    rows.append((f"d{g}", f"q{g}.{k}", i + 1, n + 1, score))
    names = ["doc_name", "sample_id", "repeat", "judge_repeat", "m"]
    return pd.DataFrame(rows, columns=names)


METRIC = rn.Metric("m", -10, 10)


def by_mean_squares(frame):
    """Return the components of a balanced design by the mean squares of the nested analysis of variance."""
    G = frame["doc_name"].nunique()
    Q = frame["sample_id"].nunique() // G
    r = frame.groupby("sample_id")["repeat"].nunique().iloc[0]
    s = len(frame) // (G * Q * r)
    grand = frame["m"].mean()
    ss = dict.fromkeys("dqaj", 0.0)
    for _, of_document in frame.groupby("doc_name"):
        ss["d"] += Q * r * s * (of_document["m"].mean() - grand) ** 2
        for _, of_question in of_document.groupby("sample_id"):
            ss["q"] += r * s * (of_question["m"].mean() - of_document["m"].mean()) ** 2
            for _, of_answer in of_question.groupby("repeat"):
                ss["a"] += s * (of_answer["m"].mean() - of_question["m"].mean()) ** 2
                ss["j"] += ((of_answer["m"] - of_answer["m"].mean()) ** 2).sum()
    ms_d, ms_q = ss["d"] / (G - 1), ss["q"] / (G * (Q - 1))
    ms_a, ms_j = ss["a"] / (G * Q * (r - 1)), ss["j"] / (G * Q * r * (s - 1))
    v_j, v_a = ms_j, max(0, (ms_a - ms_j) / s)
    v_q, v_d = max(0, (ms_q - ms_a) / (r * s)), max(0, (ms_d - ms_q) / (Q * r * s))
    parts = [v_d / G, v_q / (G * Q), v_a / (G * Q * r), v_j / (G * Q * r * s)]
    return [v_d, v_q, v_a, v_j], [part / sum(parts) for part in parts]


@pytest.mark.parametrize("seed", range(4))
def test_components_are_those_of_the_nested_mean_squares(seed):
    frame = drawn(np.random.default_rng(seed))
    shares = rn.noise(frame, metrics=METRIC).shares
    variances, want = by_mean_squares(frame)
    assert shares["source"].tolist() == ["documents", "questions", "answers", "judge"]
    assert shares["n"].tolist() == [20, 100, 200, 400]
    assert shares["variance"].tolist() == pytest.approx(variances, abs=1e-12)
    assert shares["share"].tolist() == pytest.approx(want, abs=1e-9)


def test_questions_stand_in_the_order_of_the_rows():
    frame = drawn(np.random.default_rng(9), G=12)
    assert rn.noise(frame, metrics=METRIC).questions["sample_id"].tolist() == list(
        dict.fromkeys(frame["sample_id"])
    )


def test_planted_variances_are_found_on_average():
    planted = (0.01, 0.02, 0.01, 0.005)
    found = [
        rn.noise(drawn(np.random.default_rng(seed), v=planted), metrics=METRIC).shares["variance"]
        for seed in range(60)
    ]
    assert np.mean(found, axis=0) == pytest.approx(planted, rel=0.12)


def test_what_the_budget_buys_is_what_a_larger_study_gets():
    """The standard error after buying as many questions again is the spread of means of such studies."""
    rng = np.random.default_rng(1)
    now = [rn.noise(drawn(rng), metrics=METRIC).steps.set_index("spend_on") for _ in range(40)]
    larger = {"documents": {"G": 40}, "answers": None}
    means = [drawn(rng, **larger["documents"])["m"].mean() for _ in range(400)]
    said = np.mean([table.loc["documents", "se_after"] ** 2 for table in now]) ** 0.5
    assert said == pytest.approx(np.std(means), rel=0.12)
    for table in now:
        assert table["best"].sum() == 1
        assert table.loc[table["best"], "se_after"].iloc[0] == table["se_after"].min()
        assert (table["se_after"] <= table["se_now"] + 1e-12).all()


def test_the_budget_buys_more_of_one_thing_at_its_price():
    frame = drawn(np.random.default_rng(9), r=3, s=2)
    costs = {"question": 0.5, "answer": 0.2, "judge": 0.1}
    table = rn.noise(frame, metrics=METRIC, costs=costs, budget=60.0).steps.set_index("spend_on")
    (v_d, v_q, v_a, v_j), _ = by_mean_squares(frame)
    answer = 0.2 + 2 * 0.1
    question = 0.5 + 3 * answer
    more = {"questions": 60 / question, "answers": 60 / answer, "judge": 60 / 0.1}
    more["documents"] = more["questions"] * 20 / 100
    grown = 1 + more["questions"] / 100
    q, a, j = more["questions"], more["answers"], more["judge"]
    after = {
        "documents": (v_d / 20 + v_q / 100 + v_a / 300 + v_j / 600) / grown,
        "questions": v_d / 20 + v_q / (100 + q) + v_a / (300 + 3 * q) + v_j / (600 + 6 * q),
        "answers": v_d / 20 + v_q / 100 + v_a / (300 + a) + v_j / (600 + 2 * a),
        "judge": v_d / 20 + v_q / 100 + v_a / 300 + v_j / (600 + j),
    }
    assert table["more"].to_dict() == pytest.approx(more)
    assert (table["se_after"] ** 2).to_dict() == pytest.approx(after)
    assert table["best"].idxmax() == min(after, key=after.get)


def test_the_interval_of_a_share_is_the_jackknife_over_documents():
    frame = drawn(np.random.default_rng(8), G=4)
    found = rn.noise(frame, metrics=METRIC).shares
    names = frame["doc_name"].unique()
    left = [frame[frame["doc_name"] != name] for name in names]
    shares = np.array([rn.noise(rows, metrics=METRIC).shares["share"] for rows in left])
    se = np.sqrt(3 / 4 * ((shares - shares.mean(axis=0)) ** 2).sum(axis=0))
    half = scipy_stats.t.ppf(0.975, 3) * se
    assert found["low"].tolist() == pytest.approx(np.clip(found["share"] - half, 0, 1))
    assert found["high"].tolist() == pytest.approx(np.clip(found["share"] + half, 0, 1))


def test_the_interval_of_a_share_covers_what_was_planted():
    v = (0.0, 0.02, 0.02, 0.01)
    truth = (0.02 / 100) / (0.02 / 100 + 0.02 / 200 + 0.01 / 400)
    inside = 0
    for seed in range(120):
        frame = drawn(np.random.default_rng(seed), v=v, G=1, Q=100).drop(columns="doc_name")
        row = rn.noise(frame, metrics=METRIC).shares.set_index("source").loc["questions"]
        inside += row["low"] <= truth <= row["high"]
    assert inside >= 105  # of 120 at 95 %


@pytest.mark.parametrize(
    ("keep", "sources"),
    [
        ({"judge_repeat": [1]}, ["documents", "questions", "answers and judge"]),
        ({"repeat": [1]}, ["documents", "questions and answers", "judge"]),
    ],
)
def test_sources_that_the_rows_cannot_tell_apart_are_one(keep, sources):
    frame = drawn(np.random.default_rng(3))
    for name, kept in keep.items():
        frame = frame[frame[name].isin(kept)]
    found = rn.noise(frame.reset_index(drop=True), metrics=METRIC)
    assert found.shares["source"].tolist() == sources
    assert found.shares["share"].sum() == pytest.approx(1)
    # What cannot be told apart cannot be bought apart.
    bought = {"documents", "questions"} | {name for name in ("answers", "judge") if name in sources}
    if "questions" in sources:
        bought.add("answers")
    assert set(found.steps["spend_on"]) == bought


@pytest.mark.parametrize(
    ("of_one", "merged"),
    [("repeat", "questions and answers"), ("judge_repeat", "answers and judge")],
)
def test_one_question_that_was_repeated_tells_its_sources_apart(of_one, merged):
    frame = drawn(np.random.default_rng(3))
    once = frame[of_one] == 1
    second = (frame["sample_id"] == "q0.0") & (frame["repeat"] <= 2) & (frame["judge_repeat"] <= 2)
    if of_one == "judge_repeat":
        second &= frame["repeat"] == 1
    found = rn.noise(frame[once | second].reset_index(drop=True), metrics=METRIC)
    assert found.shares["source"].tolist() == ["documents", "questions", "answers", "judge"]
    none = rn.noise(frame[once].reset_index(drop=True), metrics=METRIC)
    assert merged in none.shares["source"].tolist()


def test_systems_are_apart_and_their_difference_is_split_question_by_question():
    rng = np.random.default_rng(5)
    old = drawn(rng)
    new = old.assign(m=old["m"] + rng.normal(0.05, 0.1, len(old)))  # the questions are the same
    both = pd.concat([old.assign(system="old"), new.assign(system="new")], ignore_index=True)
    apart = rn.noise(both, metrics=METRIC).shares
    assert apart["system"].unique().tolist() == ["old", "new"]
    alone = rn.noise(old, metrics=METRIC).shares
    of_old = apart[apart["system"] == "old"]
    assert of_old["share"].tolist() == pytest.approx(alone["share"].tolist())
    split = rn.noise(both, metrics=METRIC, baseline="old")
    difference = old.assign(m=new["m"] - old["m"])
    want = rn.noise(difference, metrics=METRIC).shares["variance"].tolist()
    assert split.shares["variance"].tolist() == pytest.approx(want)
    assert split.shares.set_index("source").loc["judge", "share"] > 0.5
    assert split.passing.empty


def test_questions_that_flicker_and_those_right_in_every_run():
    rng = np.random.default_rng(6)
    right = rng.random((30, 5)) < rng.random((30, 1))
    rows = [
        {"sample_id": f"q{q}", "repeat": k + 1, "passed": float(right[q, k])}
        for q in range(30)
        for k in range(5)
    ]
    found = rn.noise(pd.DataFrame(rows), metrics=rn.Metric("passed", kind="binary"))
    table = found.questions.set_index("sample_id")
    for q in range(30):
        assert table.loc[f"q{q}", "n_right"] == right[q].sum()
        assert table.loc[f"q{q}", "flickers"] == (0 < right[q].sum() < 5)
    for row in found.passing.to_dict("records"):
        k = row["k"]
        want = np.mean([comb(int(c), k) / comb(5, k) for c in right.sum(axis=1)])
        assert row["value"] == pytest.approx(want)
        assert row["low"] <= want <= row["high"]
    assert found.passing["k"].tolist() == [1, 2, 3, 4, 5]


def test_unequal_numbers_of_repeats_are_averaged():
    frame = drawn(np.random.default_rng(7), G=30)
    gone = np.random.default_rng(8).random(len(frame)) < 0.2
    found = rn.noise(frame[~gone].reset_index(drop=True), metrics=METRIC).shares
    whole = rn.noise(frame, metrics=METRIC).shares
    assert found["variance"].tolist() == pytest.approx(whole["variance"].tolist(), abs=0.006)


def test_the_sentence_says_the_shares_and_what_repeats_are_worth():
    frame = drawn(np.random.default_rng(0))
    for lang, word in (("en", "questions"), ("zh", "问题")):
        found = rn.noise(frame, metrics=METRIC, lang=lang)
        for share in found.shares["share"]:
            assert f"{100 * share:.0f}" in found.summary
        assert word in found.summary
    variance = rn.noise(frame, metrics=METRIC).shares.set_index("source")["variance"]
    of_answer = variance["answers"] + variance["judge"] / 2
    worth = (variance["questions"] + of_answer) / (variance["questions"] + of_answer / 2)
    assert f"2 repeats are worth {worth:.2g} times" in rn.noise(frame, metrics=METRIC).summary
    same = frame.assign(m=0.5)
    assert "All scores are the same" in rn.noise(same, metrics=METRIC).summary


def test_a_complete_corpus_has_no_noise_of_documents():
    found = rn.noise(drawn(np.random.default_rng(2)), metrics=METRIC, corpus="complete").shares
    assert found["source"].tolist() == ["questions", "answers", "judge"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[(f["repeat"] == 1) & (f["judge_repeat"] == 1)], "no question has two rows"),
        (lambda f: f.drop(columns="judge_repeat"), "name what tells them apart"),
        (lambda f: f[f["sample_id"] == "q0.0"], "two questions or more"),
        (lambda f: f.drop(columns="repeat"), "repeat"),
        (lambda f: f.drop(columns="sample_id"), "'sample_id' or 'question'"),
    ],
)
def test_rows_that_tell_nothing_are_refused(change, message):
    frame = change(drawn(np.random.default_rng(9), G=3)).reset_index(drop=True)
    with pytest.raises(RagnbError, match=message):
        rn.noise(frame, metrics=METRIC)


PRICES = {"question": 1.0, "answer": 1.0}


def test_prices_and_systems_are_checked():
    frame = drawn(np.random.default_rng(9), G=3)
    with pytest.raises(
        RagnbError, match="no price of judge; .* costs={'question': 1.0, .*'judge': 0}"
    ):
        rn.noise(frame, metrics=METRIC, costs=PRICES)
    with pytest.raises(RagnbError, match="'judgement' is not known"):
        rn.noise(frame, metrics=METRIC, costs={"judgement": 1})
    with pytest.raises(RagnbError, match="0 or more"):
        rn.noise(frame, metrics=METRIC, costs={"judge": -1})
    with pytest.raises(RagnbError, match="no column 'system'"):
        rn.noise(frame, metrics=METRIC, baseline="old")
    # 0 is a price.
    assert len(rn.noise(frame, metrics=METRIC, costs=PRICES | {"judge": 0}).steps)
    dear = rn.noise(frame, metrics=METRIC, costs=PRICES | {"judge": 1000.0}).steps
    cheap = rn.noise(frame, metrics=METRIC, costs=PRICES | {"judge": 0.001}).steps
    more = [table.set_index("spend_on").loc["judge", "more"] for table in (dear, cheap)]
    assert more[0] < more[1]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_of_a_repeated_run_says_where_the_noise_is(lang):
    frame = drawn(np.random.default_rng(0), s=1).drop(columns="judge_repeat")
    frame = frame.rename(columns={"m": "faithfulness"})
    frame["faithfulness"] = frame["faithfulness"].clip(0, 1)
    sheet = rn.assess(frame, lang=lang)
    section = sheet.section("noise")
    shares = rn.noise(frame).shares["share"]
    for share in shares:
        assert f"{100 * share:.0f}" in section.finding
    assert [row[2] for row in section.blocks[0].rows] == [f"{100 * one:.1f} %" for one in shares]
    assert "noise" in [one.key for one in sheet.sections()]
    once = frame[frame["repeat"] == 1].reset_index(drop=True)
    assert rn.assess(once).section("noise") is None
    assert rn.assess(once.drop(columns="repeat")).section("noise") is None


@pytest.mark.parametrize("seed", range(3))
def test_conversations_are_a_source_as_documents_would_be(seed):
    """The split does not hang on what the clusters are called, and they are called by their name."""
    frame = drawn(np.random.default_rng(seed))
    of_documents = rn.noise(frame, metrics=METRIC)
    talks = rn.noise(frame.rename(columns={"doc_name": "session_id"}), metrics=METRIC)
    assert talks.shares["source"].tolist() == ["conversations", "questions", "answers", "judge"]
    assert talks.shares["share"].tolist() == of_documents.shares["share"].tolist()
    assert "conversations" in talks.steps["spend_on"].tolist()
    assert "conversations" in talks.summary


def unbalanced(seed, documents=True):
    """Return scores of questions that are asked, answered and judged unequally often."""
    rng = np.random.default_rng(seed)
    rows = []
    for g in range(6):
        of_document = rng.normal(0, 0.1)
        for k in range(rng.integers(1, 5)):
            of_question = rng.normal(0, 0.2)
            for i in range(rng.integers(1, 4)):
                of_answer = rng.normal(0, 0.1)
                for n in range(rng.integers(1, 4)):
                    score = 0.5 + of_document + of_question + of_answer + rng.normal(0, 0.05)
                    rows.append((f"d{g}", f"q{g}.{k}", i + 1, n + 1, score))
    frame = pd.DataFrame(rows, columns=["doc_name", "sample_id", "repeat", "judge_repeat", "m"])
    return frame if documents else frame.drop(columns="doc_name")


def by_definition(frame):
    """Return variances and numbers of documents, questions, answers and calls, with harmonic mean numbers."""
    answers = {key: part["m"].to_numpy() for key, part in frame.groupby(["sample_id", "repeat"])}
    questions = {}
    for (question, _), scores in answers.items():
        questions.setdefault(question, []).append(scores.mean())
    has_documents = "doc_name" in frame
    of = frame.drop_duplicates("sample_id").set_index("sample_id")
    documents = {}
    for question, means in questions.items():
        name = of.loc[question, "doc_name"] if has_documents else question
        documents.setdefault(name, []).append(np.mean(means))

    def mean_square(groups):
        ss = sum(((np.array(group) - np.mean(group)) ** 2).sum() for group in groups)
        df = sum(len(group) - 1 for group in groups)
        return ss / df if df else 0.0

    def harmonic(groups):
        return len(groups) / sum(1 / len(group) for group in groups)

    s, r = harmonic(answers.values()), harmonic(questions.values())
    calls, of_answers = mean_square(answers.values()), mean_square(questions.values())
    between = mean_square([[np.mean(means) for means in documents.values()]])
    of_questions = mean_square(documents.values()) if has_documents else between
    v_a = max(of_answers - calls / s, 0)
    v_q = max(of_questions - max(of_answers, calls / s) / r, 0)
    v_d = 0.0
    if has_documents:
        v_d = max(between - of_questions / harmonic(documents.values()), 0)
    q = len(questions)
    return [v_d, v_q, v_a, calls], [len(documents), q, q * r, q * r * s]


@pytest.mark.parametrize("documents", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_unequal_designs_are_split_by_their_harmonic_numbers_and_jackknifed(seed, documents):
    frame = unbalanced(seed, documents)
    found = rn.noise(frame, metrics=[METRIC], level=0.9).shares
    first = 0 if documents else 1

    def shares(frame):
        variances, numbers = by_definition(frame)
        parts = np.array(variances[first:]) / numbers[first:]
        return parts / parts.sum()

    variances, numbers = by_definition(frame)
    names = ["documents", "questions", "answers", "judge"][first:]
    assert found["source"].tolist() == names
    assert found["variance"].tolist() == pytest.approx(variances[first:])
    assert found["n"].tolist() == [round(number) for number in numbers[first:]]
    assert found["share"].tolist() == pytest.approx(shares(frame))
    cluster = frame["doc_name" if documents else "sample_id"]
    without = np.array([shares(frame[cluster != name]) for name in cluster.unique()])
    g = len(without)
    se = np.sqrt((g - 1) / g * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    margin = scipy_stats.t.ppf(0.95, g - 1) * se
    assert found["low"].tolist() == pytest.approx(np.clip(shares(frame) - margin, 0, 1))
    assert found["high"].tolist() == pytest.approx(np.clip(shares(frame) + margin, 0, 1))
    assert (found["n_clusters"] == g).all()


@pytest.mark.parametrize("documents", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_each_step_spends_the_budget_on_one_thing_alone(seed, documents):
    frame = unbalanced(seed, documents)
    costs, budget = {"question": 5.0, "answer": 2.0, "judge": 0.5}, 90.0
    found = rn.noise(frame, metrics=[METRIC], costs=costs, budget=budget).steps
    (v_d, v_q, v_a, v_j), (g, q, a, j) = by_definition(frame)
    answer = costs["answer"] + j / a * costs["judge"]
    question = costs["question"] + a / q * answer

    def se(g, q, a, j):
        return (v_d / g + v_q / q + v_a / a + v_j / j) ** 0.5

    now = se(g, q, a, j)
    more = budget / question
    grown = 1 + more / q
    expected = {
        "questions": (more, se(g, q * grown, a * grown, j * grown)),
        "answers": (budget / answer, se(g, q, a + budget / answer, j + budget / answer * j / a)),
        "judge": (budget / 0.5, se(g, q, a, j + budget / 0.5)),
    }
    if documents:
        expected["documents"] = (more * g / q, se(g * grown, q * grown, a * grown, j * grown))
    steps = found.set_index("spend_on")
    assert set(steps.index) == set(expected)
    for name, (bought, after) in expected.items():
        row = steps.loc[name]
        assert (row["more"], row["se_now"], row["se_after"]) == pytest.approx((bought, now, after))
        assert row["best"] == (after == min(end for _, end in expected.values()))
    by_default = rn.noise(frame, metrics=[METRIC], costs=costs).steps.set_index("spend_on")
    assert by_default.loc["questions", "more"] == pytest.approx(q)


def test_a_metric_without_a_total_is_split_all_the_same_and_rates_enter_no_total():
    frame = unbalanced(2).assign(n=lambda rows: 7 * rows["m"], rate=lambda rows: rows["m"] > 0.5)
    metrics = [METRIC, rn.Metric("n", -70, 70)]
    assert rn.noise(frame, metrics=metrics).shares["metric"].unique().tolist() == ["m", "n"]
    rate = rn.Metric("rate", role="rate")
    both = rn.noise(frame.assign(rate=frame["rate"].astype(float)), metrics=[METRIC, rate])
    assert both.shares["metric"].unique().tolist() == ["m", "rate"]
    alike = rn.noise(frame, metrics=[METRIC, rn.Metric("n", -10, 10)])
    assert alike.shares["metric"].unique().tolist() == ["weighted_score", "m", "n"]
