"""Diagnostics against bars copied by hand, a loop over plain lists, and totals made again after lifting."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragnb import texts
from ragnb.diagnostics import (
    MODES,
    RULES,
    diagnose,
    failure_modes,
    failure_summary,
    least_set_note,
    rule_texts,
)
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.schema import METRICS, Gate, Metric, Rule
from ragnb.weights import weighted_means

BARS = {
    "faithfulness": (0.7, 0.5),
    "answer_relevancy": (0.7, 0.5),
    "context_recall": (0.7, 0.5),
    "context_precision": (0.6, 0.4),
    "context_precision_by_answer": (0.6, 0.4),
    "context_recall_by_passages": (0.7, 0.5),
    "noise_sensitivity": (0.3, 0.5),
    "factual_correctness": (0.6, 0.4),
    "semantic_similarity": (0.7, 0.5),
    "context_relevance": (0.6, 0.4),
    "answer_correctness": (0.6, 0.4),
    "citation_hit_rate": (0.75, 0.5),
    "under_refusal": (0.05, 0.15),
    "over_refusal": (0.25, 0.5),
    "citations_off": (0.75, None),
}
LOWER = {"noise_sensitivity", "under_refusal", "over_refusal"}
RATES = {"citation_hit_rate", "under_refusal", "over_refusal"}
RULE_IDS = [rule.name for rule in RULES]


def frame_of(means: dict[str, float], rows: int = 4) -> pd.DataFrame:
    return pd.DataFrame({name: [value] * rows for name, value in means.items()})


def fired(scores: pd.DataFrame, **options) -> dict[str, str]:
    found = diagnose(scores, **options)
    return dict(zip(found["rule"], found["severity"], strict=True))


# The rules


def test_bars_are_the_published_ones():
    bars = {rule.name: (rule.warning, rule.critical) for rule in RULES}
    assert bars == BARS, "BARS of this file repeats the thresholds of rules.toml"
    assert all(rule.metric in METRICS for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=RULE_IDS)
def test_every_example_fires_its_rule_at_the_severity_of_its_bars(rule):
    warning, critical = BARS[rule.name]
    value = rule.example[rule.metric]
    is_critical = critical is not None and (
        value > critical if rule.metric in LOWER else value < critical
    )
    expected = {rule.name: "critical" if is_critical else "warning"}
    if rule.name == "citations_off":
        expected["citation_hit_rate"] = "warning"
    assert fired(frame_of(rule.example)) == expected
    (row,) = [
        r for r in diagnose(frame_of(rule.example)).to_dict("records") if r["rule"] == rule.name
    ]
    assert row["threshold"] == (critical if is_critical else warning)
    assert row["causes"]
    assert row["actions"]


def test_both_severities_and_both_directions_have_an_example():
    seen = {(fired(frame_of(rule.example))[rule.name], rule.metric in LOWER) for rule in RULES}
    assert seen == {(word, lower) for word in ("warning", "critical") for lower in (False, True)}


@pytest.mark.parametrize("rule", RULES, ids=RULE_IDS)
def test_the_same_means_with_the_metric_at_its_good_end_fire_nothing(rule):
    good = 0.0 if rule.metric in LOWER else 1.0
    assert fired(frame_of({**rule.example, rule.metric: good})) == {}


@pytest.mark.parametrize("rule", RULES, ids=RULE_IDS)
@pytest.mark.parametrize("which", ["warning", "critical"])
def test_a_mean_at_its_bar_does_not_fire_and_one_just_past_it_does(rule, which):
    bar = getattr(rule, which)
    if bar is None:
        assert rule.name == "citations_off"
        return
    worse = 1e-6 if rule.metric in LOWER else -1e-6
    at = fired(frame_of({**rule.example, rule.metric: bar}))
    past = fired(frame_of({**rule.example, rule.metric: bar + worse}))
    assert at.get(rule.name) == (None if which == "warning" else "warning")
    assert past[rule.name] == which


@pytest.mark.parametrize("name", ["faithfulness", "noise_sensitivity"])
def test_a_value_within_the_slack_of_a_bar_is_not_past_it(name):
    bar, worse = BARS[name][0], 1 if name in LOWER else -1
    assert fired(frame_of({name: bar + worse * 5e-10})) == {}
    assert fired(frame_of({name: bar + worse * 2e-9})) == {name: "warning"}
    assert sum([0.7] * 3) / 3 < 0.7
    assert fired(frame_of({"faithfulness": 0.7}, rows=3)) == {}


def test_a_rule_of_two_metrics_needs_both():
    low = {"citation_hit_rate": 0.6}
    assert "citations_off" not in fired(frame_of(low))
    assert "citations_off" not in fired(frame_of({**low, "answer_precision": 0.79}))
    assert "citations_off" in fired(frame_of({**low, "answer_precision": 0.8}))
    assert "citations_off" not in fired(frame_of({**low, "answer_precision": math.nan}))


def test_the_other_condition_keeps_a_slack_in_its_favour():
    scores = frame_of({"citation_hit_rate": 0.6, "answer_precision": 0.8 - 5e-10})
    assert "citations_off" in fired(scores)
    both = Rule("faithfulness", 0.7, name="b", also=Gate("b", "over_refusal", "<=", 0.1))
    assert fired(frame_of({"faithfulness": 0.6, "over_refusal": 0.1 + 5e-10}), rules=[both]) == {
        "b": "warning"
    }
    assert fired(frame_of({"faithfulness": 0.6, "over_refusal": 0.11}), rules=[both]) == {}


# Texts


@pytest.mark.parametrize("lang", texts.LANGUAGES)
@pytest.mark.parametrize("rule", RULES, ids=RULE_IDS)
def test_every_rule_speaks_both_languages_with_the_same_settings(rule, lang):
    causes, actions = rule_texts(rule, lang)
    other_causes, other_actions = rule_texts(rule, "en")
    place = f"[rules.{rule.name}] of ragnb/texts/{lang}.toml"
    assert len(causes) == len(other_causes) >= 1, f"{place} needs causes and actions"
    assert [a["setting"] for a in actions] == [a["setting"] for a in other_actions]
    han = [
        bool(re.search("[\u4e00-\u9fff]", text)) for text in causes + [a["text"] for a in actions]
    ]
    assert set(han) == {lang == "zh"}


def test_diagnose_speaks_the_language_asked_for():
    scores = frame_of({"faithfulness": 0.4})
    assert diagnose(scores, lang="zh").loc[0, "causes"] == rule_texts(RULES[0], "zh")[0]
    assert diagnose(scores).loc[0, "causes"] == rule_texts(RULES[0], "en")[0]
    with pytest.raises(RagnbError, match="lang='fr'"):
        diagnose(frame_of({"faithfulness": 1.0}), lang="fr")


def test_a_rule_of_ones_own_brings_its_texts_and_falls_back_to_the_language_it_has():
    words = {"causes": {"zh": ("原因",), "en": ("cause",)}, "actions": {"en": ("act",)}}
    rule = Rule("gpt_groundedness", 3.5, 2.0, **words)
    scores, own = frame_of({"gpt_groundedness": 3.0}), [Metric("gpt_groundedness", 1, 5)]
    row = diagnose(scores, metrics=own, rules=[rule], lang="zh").iloc[0]
    assert row["severity"] == "warning"
    assert row["causes"] == ["原因"]
    assert row["actions"] == [{"text": "act", "setting": None}]
    assert diagnose(scores, metrics=own, rules=[rule]).loc[0, "causes"] == ["cause"]
    silent = diagnose(scores, metrics=own, rules=[Rule("gpt_groundedness", 3.5)]).iloc[0]
    assert silent["causes"] == silent["actions"] == []


# Values, severities and costs against a loop


def total_of(rows, weights, orient, rescale=False):
    """The document-weighted mean of the samples' weighted scores, by the words of the specification."""
    top = bottom = 0.0
    for row in rows:
        num = den = 0.0
        for name, w in weights.items():
            if not math.isnan(row[name]):
                num += w * (1 - row[name] if orient and name in LOWER else row[name])
                den += w
        if den > 0:
            top += row["v"] * num / den
            bottom += row["v"]
    return top / bottom if bottom > 0 else math.nan


def lifted(value, bar, lower):
    return value if math.isnan(value) else min(value, bar) if lower else max(value, bar)


NAMES = ["faithfulness", "context_recall", "answer_relevancy", "noise_sensitivity", "over_refusal"]
score = st.one_of(st.just(math.nan), st.integers(0, 20).map(lambda k: k / 20))
weight = st.sampled_from([0.0, 0.3, 1.0, 2.5])


@st.composite
def cases(draw):
    rows = draw(
        st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, score)), min_size=1, max_size=12)
    )
    scores = pd.DataFrame(rows).assign(
        sample_id=[f"s{i}" for i in range(len(rows))],
        doc_name=draw(
            st.lists(st.sampled_from(["甲.pdf", "b", None]), min_size=len(rows), max_size=len(rows))
        ),
    )
    occurring = sorted(set(scores["doc_name"].dropna()))
    docs = draw(st.fixed_dictionaries(dict.fromkeys(occurring, weight)))
    named = draw(st.lists(st.sampled_from(NAMES), unique=True))
    metric_weights = draw(st.fixed_dictionaries(dict.fromkeys(named, weight)))
    docs = docs if any(docs.values()) else None
    metric_weights = metric_weights if any(metric_weights.values()) else None
    return scores, metric_weights, docs, draw(st.booleans())


def plain(scores, docs):
    return [
        {**row, "v": 1.0 if pd.isna(row["doc_name"]) else (docs or {}).get(row["doc_name"], 1.0)}
        for row in scores.to_dict("records")
    ]


def used_weights(metric_weights):
    given = metric_weights or {}
    return {n: given.get(n, 1.0) for n in NAMES if n not in RATES or given.get(n, 0.0) > 0}


@given(cases())
def test_value_severity_cost_and_worst_are_those_of_a_loop(case):
    scores, metric_weights, docs, orient = case
    how = {"metric_weights": metric_weights, "doc_weights": docs, "orient": orient}
    found = diagnose(scores, top=2, **how).set_index("rule")
    rows, weights = plain(scores, docs), used_weights(metric_weights)
    expected = {}
    for name in NAMES:
        warning, critical = BARS[name]
        scored = [r for r in rows if not math.isnan(r[name])]
        v = sum(r["v"] for r in scored)
        value = sum(r["v"] * r[name] for r in scored) / v if v > 0 else math.nan
        past = [
            (value - bar if name in LOWER else bar - value) > 1e-9 for bar in (critical, warning)
        ]
        if not any(past):
            continue
        expected[name] = "critical" if past[0] else "warning"
        row = found.loc[name]
        assert row["value"] == pytest.approx(value, abs=1e-12)
        assert row["n"] == len(scored)
        after = total_of(
            [{**r, name: lifted(r[name], warning, name in LOWER)} for r in rows], weights, orient
        )
        rise = after - total_of(rows, weights, orient) if name in weights else math.nan
        assert row["cost"] == pytest.approx(rise, abs=1e-12, nan_ok=True)
        order = sorted(scored, key=lambda r: -r[name] if name in LOWER else r[name])
        assert [w["sample_id"] for w in row["worst"]] == [r["sample_id"] for r in order[:2]]
        assert [w["score"] for w in row["worst"]] == [r[name] for r in order[:2]]
    assert found["severity"].to_dict() == expected


@given(cases())
def test_interval_and_counts_are_those_of_weighted_means(case):
    scores, _, docs, _ = case
    means = weighted_means(scores, doc_weights=docs, level=0.9).set_index("metric")
    for row in diagnose(scores, doc_weights=docs, level=0.9).to_dict("records"):
        for column in ("value", "low", "high", "n", "n_clusters"):
            assert row[column] == pytest.approx(means.at[row["metric"], column], nan_ok=True)
        edge, sign = (row["low"], 1) if row["metric"] in LOWER else (row["high"], -1)
        assert row["certain"] == (sign * (edge - row["threshold"]) > 1e-9)


@given(cases())
def test_order_is_critical_first_then_cost_with_missing_costs_last(case):
    scores, metric_weights, docs, _ = case
    found = diagnose(scores, metric_weights=metric_weights, doc_weights=docs)
    key = [
        (s != "critical", math.inf if math.isnan(c) else -c, RULE_IDS.index(rule))
        for s, c, rule in found[["severity", "cost", "rule"]].itertuples(index=False)
    ]
    assert key == sorted(key)


# What a diagnosis says


def test_certain_needs_the_whole_interval_and_an_interval():
    sure = diagnose(frame_of({"faithfulness": 0.1}, rows=200)).iloc[0]
    assert sure["certain"]
    assert sure["high"] < sure["threshold"] == 0.5
    unsure = diagnose(frame_of({"faithfulness": 0.49}, rows=5)).iloc[0]
    assert not unsure["certain"]
    alone = diagnose(frame_of({"faithfulness": 0.1}, rows=1)).iloc[0]
    assert not alone["certain"]
    assert math.isnan(alone["high"])
    high = diagnose(frame_of({"noise_sensitivity": 0.95}, rows=200)).iloc[0]
    assert high["certain"]


def test_a_rule_of_two_metrics_is_certain_only_where_both_are():
    citations = np.array([0.0] * 190 + [1.0] * 10)
    precise = np.array([1.0] * 200)
    doubtful = np.array([1.0] * 162 + [0.0] * 38)
    for other, expected in [(precise, True), (doubtful, False)]:
        found = diagnose(pd.DataFrame({"citation_hit_rate": citations, "answer_precision": other}))
        by_rule = found.set_index("rule")["certain"]
        assert by_rule["citation_hit_rate"]
        assert by_rule["citations_off"] == expected


def test_a_rate_has_no_cost_until_a_weight_names_it():
    scores = frame_of({"over_refusal": 0.75, "faithfulness": 1.0})
    assert math.isnan(diagnose(scores).loc[0, "cost"])
    assert math.isnan(diagnose(scores, metrics=["over_refusal", "faithfulness"]).loc[0, "cost"])
    assert diagnose(scores, metric_weights={"over_refusal": 3.0}).loc[0, "cost"] == pytest.approx(
        0.375
    )


def test_metrics_that_do_not_add_up_leave_the_cost_missing_unless_rescaled():
    scores = frame_of({"faithfulness": 0.4, "accuracy": 4.0})
    rules = [*RULES, Rule("accuracy", 7.0, 5.0)]
    mixed = diagnose(scores, rules=rules)
    assert mixed["metric"].tolist() == ["faithfulness", "accuracy"]
    assert mixed["cost"].isna().all()
    costs = diagnose(scores, rules=rules, rescale=True).set_index("metric")["cost"]
    assert costs["faithfulness"] == pytest.approx((0.7 - 0.4) / 1.5)
    assert costs["accuracy"] == pytest.approx((7.0 - 4.0) / 9 * 0.5 / 1.5)


def test_a_rule_with_one_bar_uses_it_for_the_cost():
    only = diagnose(frame_of({"faithfulness": 0.4}), rules=[Rule("faithfulness", None, 0.5)]).iloc[
        0
    ]
    assert (only["severity"], only["threshold"]) == ("critical", 0.5)
    assert only["cost"] == pytest.approx(0.1)
    assert fired(frame_of({"faithfulness": 0.6}), rules=[Rule("faithfulness", None, 0.5)]) == {}
    assert fired(frame_of({"faithfulness": 0.0}), rules=[Rule("faithfulness", None)]) == {}


def test_a_column_says_whether_document_weights_change_the_means():
    scores = pd.DataFrame({"faithfulness": [0.2, 0.4], "doc_name": ["a", "b"]})
    assert not diagnose(scores)["weighted"].any()
    assert not diagnose(scores, doc_weights={"a": 1.0})["weighted"].any()
    weighted = diagnose(scores, doc_weights={"a": 3.0})
    assert weighted["weighted"].all()
    assert weighted.loc[0, "value"] == pytest.approx(0.25)


def test_document_and_cluster_columns_can_have_other_names():
    scores = pd.DataFrame(
        {"faithfulness": [0.2, 0.4, 0.4], "file": ["a", "b", "b"], "talk": ["x", "x", "x"]}
    )
    by_file = diagnose(scores, doc="file", doc_weights={"a": 1.0, "b": 0.0}).iloc[0]
    assert by_file["value"] == pytest.approx(0.2)
    assert diagnose(scores, doc="file").loc[0, "n_clusters"] == 2
    assert diagnose(scores, doc="file", cluster="talk").loc[0, "n_clusters"] == 1
    with pytest.raises(RagnbError, match="chat"):
        diagnose(scores, cluster="chat")


def test_a_metric_without_rule_or_score_gives_no_diagnosis():
    found = diagnose(
        frame_of({"compliance": 0.0, "claim_containment": 0.0, "faithfulness": math.nan})
    )
    assert found.empty
    assert list(found.columns[:3]) == ["metric", "severity", "value"]
    assert diagnose(pd.DataFrame({"faithfulness": pd.Series([], dtype=float)})).empty


def test_names_select_what_is_diagnosed():
    scores = frame_of({"faithfulness": 0.1, "context_recall": 0.1})
    assert fired(scores, metrics="context_recall") == {"context_recall": "critical"}


# The worst samples


@pytest.mark.parametrize("top", [0, 1, 3, 5])
def test_worst_samples_are_as_many_as_asked_and_never_missing_ones(top):
    scores = pd.DataFrame({"sample_id": list("abcde"), "faithfulness": [0.2, None, 0.1, 0.2, 0.3]})
    worst = diagnose(scores, top=top).loc[0, "worst"]
    assert [record["sample_id"] for record in worst] == ["c", "a", "d", "e"][:top]


def test_worst_samples_carry_the_case_and_say_none_where_it_is_empty():
    scores = pd.DataFrame(
        {"sample_id": [11, 12], "question": ["报销期限？", None], "system": ["s", "s"]}
    )
    scores = scores.assign(noise_sensitivity=[0.9, 0.4], faithfulness=1.0)
    worst = diagnose(scores).loc[0, "worst"]
    empty = {"answer": None, "ground_truth_answer": None, "system": "s"}
    assert worst == [
        {"sample_id": 11, "question": "报销期限？", "score": 0.9, **empty},
        {"sample_id": 12, "question": None, "score": 0.4, **empty},
    ]
    assert json.loads(json.dumps(worst)) == worst


def test_a_row_without_id_is_called_by_its_label():
    scores = pd.DataFrame({"faithfulness": [0.3, 0.1], "doc_name": ["a", "b"]}, index=[70, 71])
    worst = diagnose(scores, top=1).loc[0, "worst"]
    assert [(r["sample_id"], r["doc_name"]) for r in worst] == [(71, "b")]


@pytest.mark.parametrize("top", [-1, 1.5, True, "3"])
def test_top_is_a_whole_number(top):
    with pytest.raises(RagnbError, match="top="):
        diagnose(frame_of({"faithfulness": 0.1}), top=top)


# Rules that do not fit


def test_bars_for_another_scale_are_left_out_with_a_warning():
    scores = frame_of({"faithfulness": 1.0})
    with pytest.warns(RagnbWarning, match="'faithfulness' on 1..5"):
        assert fired(scores, metrics=[Metric("faithfulness", 1, 5)]) == {}
    own = [Rule("faithfulness", 3.0, 2.0)]
    assert fired(scores, metrics=[Metric("faithfulness", 1, 5)], rules=own) == {
        "faithfulness": "critical"
    }


def test_direction_comes_from_the_metric():
    turned = [Metric("latency", 0, math.inf, better="lower")]
    found = fired(frame_of({"latency": 9.0}), metrics=turned, rules=[Rule("latency", 2.0, 8.0)])
    assert found == {"latency": "critical"}


def test_a_critical_bar_on_the_good_side_is_refused():
    for name, warning, critical in (("faithfulness", 0.5, 0.7), ("noise_sensitivity", 0.5, 0.3)):
        with pytest.raises(RagnbError, match="swap"):
            diagnose(frame_of({name: 0.1}), rules=[Rule(name, warning, critical)])


# Failure modes

MODE_NAMES = [
    "faithfulness",
    "answer_relevancy",
    "context_recall",
    "context_precision",
    "context_relevance",
    "noise_sensitivity",
    "answer_correctness",
    "factual_correctness",
    "semantic_similarity",
]


def mode_of(row) -> str:
    """The order of the specification, spelled out."""

    def bad(name):
        value = row.get(name, math.nan)
        bar = BARS[name][0]
        return value > bar + 1e-9 if name in LOWER else value < bar - 1e-9

    if math.isnan(row.get("faithfulness", math.nan)) or math.isnan(
        row.get("answer_relevancy", math.nan)
    ):
        return "not_enough_scores"
    if bad("context_recall"):
        return "retrieval_miss"
    if bad("context_precision") or bad("context_relevance") or bad("noise_sensitivity"):
        return "noisy_retrieval"
    if bad("faithfulness"):
        return "unsupported_answer"
    if bad("answer_relevancy"):
        return "off_the_point"
    if bad("answer_correctness") or bad("factual_correctness"):
        return "faithful_but_wrong"
    return "fine"


mostly_good = st.one_of(st.sampled_from([0.6, 0.7, 0.75, 1.0]), score)


@st.composite
def mode_tables(draw):
    names = draw(st.lists(st.sampled_from(MODE_NAMES), unique=True, min_size=1))
    values = {n: score if n == "noise_sensitivity" else mostly_good for n in names}
    rows = draw(st.lists(st.fixed_dictionaries(values), min_size=1, max_size=10))
    docs = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=len(rows), max_size=len(rows)))
    return pd.DataFrame(rows).assign(doc_name=docs)


@given(mode_tables())
def test_modes_are_the_first_that_fits(scores):
    before = scores.copy()
    found = failure_modes(scores)
    assert found["failure_mode"].tolist() == [mode_of(row) for row in scores.to_dict("records")]
    pd.testing.assert_frame_equal(scores, before)
    pd.testing.assert_frame_equal(found.drop(columns="failure_mode"), before)


@given(mode_tables(), st.booleans())
def test_summary_counts_the_modes_and_costs_what_lifting_its_samples_brings(scores, orient):
    docs = {scores["doc_name"].iloc[0]: 2.5}
    names = [n for n in MODE_NAMES if n in scores.columns]
    weights = {n: 3.0 if n == names[0] else 1.0 for n in names}
    table = failure_summary(scores, metric_weights={names[0]: 3.0}, doc_weights=docs, orient=orient)
    assert table["failure_mode"].tolist() == list(MODES)
    rows = plain(scores, docs)
    before = total_of(rows, weights, orient)
    flags = pd.DataFrame({"doc_name": scores["doc_name"]})
    for line in table.to_dict("records"):
        mode = line["failure_mode"]
        limits = {n: BARS[n][0] for n in names}
        after = [
            r | {n: lifted(r[n], at, n in LOWER) for n, at in limits.items() if mode_of(r) == mode}
            for r in rows
        ]
        rise = total_of(after, weights, orient) - before
        assert line["cost"] == pytest.approx(rise, abs=1e-12, nan_ok=True)
        assert line["n"] == sum(mode_of(r) == mode for r in rows)
        flags["flag"] = [float(mode_of(r) == mode) for r in rows]
        mean = weighted_means(
            flags, metrics=[Metric("flag", kind="binary")], doc_weights=docs
        ).iloc[0]
        for ours, theirs in [
            ("share", "value"),
            ("low", "low"),
            ("high", "high"),
            ("n_clusters", "n_clusters"),
        ]:
            assert line[ours] == pytest.approx(mean[theirs], abs=1e-12, nan_ok=True)
    assert table["n"].sum() == len(scores)
    assert table["share"].sum() == pytest.approx(1.0)


def test_costs_of_the_modes_add_up_to_lifting_everything():
    rng = np.random.default_rng(7)
    scores = pd.DataFrame(rng.uniform(size=(60, len(MODE_NAMES))), columns=MODE_NAMES)
    weighed = {"metric_weights": {"faithfulness": 2}}
    rules = [Rule(n, BARS[n][0], also=Gate("", n, ">=", 0.0)) for n in MODE_NAMES]
    everywhere = sum(diagnose(scores, rules=[rule], **weighed)["cost"].sum() for rule in rules)
    rows = [{**r, "v": 1.0} for r in scores.to_dict("records")]
    weights = {n: 2.0 if n == "faithfulness" else 1.0 for n in MODE_NAMES}
    after = [
        {n: lifted(r[n], BARS[n][0], n in LOWER) for n in MODE_NAMES} | {"v": 1.0} for r in rows
    ]
    whole = total_of(after, weights, True) - total_of(rows, weights, True)
    summed = failure_summary(scores, **weighed)["cost"].sum()
    assert summed == pytest.approx(whole)
    assert everywhere <= whole + 1e-12


def test_costliest_is_the_bad_mode_that_costs_most():
    good = {"faithfulness": 0.9, "answer_relevancy": 0.9, "semantic_similarity": 0.0}
    scores = pd.DataFrame([good, {**good, "faithfulness": 0.1}, {**good, "answer_relevancy": 0.3}])
    table = failure_summary(scores)
    cost = table.set_index("failure_mode")["cost"]
    assert cost["unsupported_answer"] > cost["off_the_point"] > cost["fine"] > 0
    assert table.loc[table["costliest"], "failure_mode"].tolist() == ["unsupported_answer"]
    assert not failure_summary(frame_of({"faithfulness": 1.0, "answer_relevancy": 1.0}))[
        "costliest"
    ].any()


def test_summary_without_a_total_has_shares_and_no_cost():
    scores = frame_of({"faithfulness": 0.1, "answer_relevancy": 1.0, "accuracy": 3.0})
    table = failure_summary(scores)
    assert table["cost"].isna().all()
    assert not table["costliest"].any()
    assert table.set_index("failure_mode").at["unsupported_answer", "share"] == 1.0
    costly = failure_summary(scores, rescale=True)
    assert costly.loc[costly["costliest"], "failure_mode"].tolist() == ["unsupported_answer"]


def test_summary_takes_other_columns_and_levels():
    scores = pd.DataFrame(
        {"faithfulness": [0.1, 1, 1, 0.1], "file": list("aabc"), "talk": list("xxyz")}
    )
    scores["answer_relevancy"] = 1.0
    how = {"doc": "file", "cluster": "talk"}
    wide, narrow = (
        failure_summary(scores, level=x, **how).set_index("failure_mode") for x in (0.99, 0.5)
    )
    assert wide.at["fine", "n_clusters"] == 3
    assert wide.at["fine", "low"] < narrow.at["fine", "low"] < narrow.at["fine", "share"] == 0.5
    weighted = failure_summary(scores, doc="file", doc_weights={"a": 1.0, "c": 0.0}).set_index(
        "failure_mode"
    )
    assert weighted.at["fine", "share"] == pytest.approx(2 / 3)
    with pytest.raises(RagnbError, match="chat"):
        failure_summary(scores, cluster="chat")


def test_modes_take_the_rules_and_metrics_given():
    scores = frame_of({"faithfulness": 0.8, "answer_relevancy": 0.9, "context_recall": 0.1}, rows=1)
    assert failure_modes(scores)["failure_mode"].item() == "retrieval_miss"
    named = {"metrics": ["faithfulness", "answer_relevancy"]}
    assert failure_modes(scores, **named)["failure_mode"].item() == "fine"
    strict = failure_modes(scores, rules=[Rule("faithfulness", 0.85)], **named)
    assert strict["failure_mode"].item() == "unsupported_answer"


def test_a_score_at_its_bar_is_not_low():
    at = {name: 0.3 if name == "noise_sensitivity" else BARS[name][0] for name in MODE_NAMES}
    assert failure_modes(pd.DataFrame([at]))["failure_mode"].item() == "fine"


def test_no_rows_give_no_modes_and_missing_shares():
    table = failure_summary(pd.DataFrame({"faithfulness": pd.Series([], dtype=float)}))
    assert table["n"].tolist() == [0] * len(MODES)
    assert table["share"].isna().all()


@pytest.mark.parametrize("lang", texts.LANGUAGES)
def test_every_mode_and_severity_has_a_word(lang):
    say = texts.load(lang)
    words = [say(f"mode.{mode}") for mode in MODES]
    assert len(set(words)) == len(MODES)
    assert say("severity.warning") != say("severity.critical")


# The least set to read together


def least_set(scores, **options):
    means = weighted_means(scores)
    return least_set_note(
        means, [METRICS[name] for name in means["metric"] if name in METRICS], **options
    )


@pytest.mark.parametrize("lang", texts.LANGUAGES)
def test_note_names_what_is_missing_of_the_least_set(lang):
    scores = frame_of({"faithfulness": 0.9, "context_relevance": math.nan})
    (row,) = least_set(scores, lang=lang)
    assert (row["code"], row["about"]) == ("least_set", "context_relevance, answer_relevancy")
    assert all(name in row["text"] for name in ("context_relevance", "answer_relevancy"))
    assert ("、" in row["text"]) == (lang == "zh")


def test_no_note_where_the_set_is_whole_or_not_meant():
    whole = {"faithfulness": 0.5, "context_relevance": 0.5, "answer_relevancy": 0.5}
    assert least_set(frame_of(whole)) == []
    assert least_set(frame_of({"over_refusal": 0.5})) == []
    assert least_set(frame_of({"accuracy": 5.0})) == []


def test_a_row_drawn_with_one_chance_in_three_gains_as_three_rows_do():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((60, 2)), columns=["faithfulness", "context_recall"])
    frame.loc[::7, "context_recall"] = np.nan
    frame["doc_name"], times = (
        [["e\u0301", *"abcdf"][i % 6] for i in range(60)],
        rng.integers(1, 4, 60),
    )
    whole = frame.loc[frame.index.repeat(times)].reset_index(drop=True)
    drawn = frame.assign(inclusion_probability=1 / times)
    found = diagnose(drawn, doc_weights={"\u00e9": 3})
    want = diagnose(whole.replace("e\u0301", "e"), doc_weights={"e": 3})
    assert found["metric"].tolist() == want["metric"].tolist() == ["faithfulness", "context_recall"]
    assert found["cost"].tolist() == pytest.approx(want["cost"].tolist(), rel=1e-12)


def test_of_a_complete_corpus_the_interval_is_that_of_the_means():
    rng = np.random.default_rng(5)
    scores = pd.DataFrame(
        {"faithfulness": rng.uniform(0, 0.6, 60), "doc_name": [f"d{k % 6}" for k in range(60)]}
    )
    found = diagnose(scores, corpus="complete").iloc[0]
    means = weighted_means(scores, corpus="complete").set_index("metric").loc["faithfulness"]
    sampled = diagnose(scores).iloc[0]
    assert found[["value", "low", "high"]].tolist() == means[["value", "low", "high"]].tolist()
    assert found["low"] != sampled["low"]
    with pytest.raises(RagnbError, match="doc_name"):
        diagnose(scores.drop(columns="doc_name"), corpus="complete")
