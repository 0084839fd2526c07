"""Gates: outcomes by the definition, the samples still needed by search, and what CI reads."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.special
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

import ragnb as rn
from ragnb.diagnostics import check_differences, check_gates, gates_json
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.schema import DEFAULT_GATES, Gate, Metric
from ragnb.traces import refusal_metrics
from ragnb.weights import weighted_means


def row(value, low, high, n=100, metric="compliance"):
    return pd.DataFrame(
        {"metric": [metric], "value": [value], "low": [low], "high": [high], "n": [n]}
    )


def decide(value, low, high, op=">=", at=0.8, **options):
    return check_gates(
        row(value, low, high), gates=[Gate("G", "compliance", op, at)], **options
    ).iloc[0]


def wilson(p, k):
    """Wilson's bounds for k = t²/n, from the quadratic's roots."""
    roots = np.roots([1 + k, -(2 * p + k), p * p]).real
    return max(min(roots), 0.0), min(max(roots), 1.0)


LOG = rn.assess(Path(__file__).parents[1] / "scenarios" / "quickstart.yaml", gates=[])


def junit(gates):
    return replace(LOG, gates=gates).to_junit()


# Outcomes


@pytest.mark.parametrize(
    ("value", "low", "high", "op", "outcome", "blocks"),
    [
        (0.9, 0.85, 0.95, ">=", "pass", False),
        (0.9, 0.80, 0.95, ">=", "pass", False),
        (0.9, 0.75, 0.95, ">=", "undecided", False),
        (0.7, 0.60, 0.85, ">=", "undecided", True),
        (0.7, 0.60, 0.80, ">=", "undecided", True),
        (0.7, 0.60, 0.75, ">=", "fail", True),
        (0.7, 0.60, 0.75, "<=", "pass", False),
        (0.7, 0.60, 0.80, "<=", "pass", False),
        (0.9, 0.75, 0.95, "<=", "undecided", True),
        (0.9, 0.85, 0.95, "<=", "fail", True),
        (0.9, math.nan, math.nan, ">=", "undecided", False),
        (0.7, math.nan, math.nan, ">=", "undecided", True),
        (math.nan, math.nan, math.nan, ">=", "no_data", True),
    ],
)
def test_outcome_reads_the_interval_and_blocks_reads_the_value(
    value, low, high, op, outcome, blocks
):
    found = decide(value, low, high, op)
    assert (found["outcome"], found["blocks"]) == (outcome, blocks)


def test_the_mean_of_floats_at_the_bar_does_not_block():
    value = sum([0.7] * 3) / 3
    assert not decide(value, 0.6, 0.8, at=0.7)["blocks"]
    assert not decide(0.3 - 1e-12, 0.2, 0.4, at=0.3)["blocks"]
    assert decide(0.3 - 1e-8, 0.2, 0.4, at=0.3)["blocks"]


def test_nothing_to_measure_blocks_or_is_skipped_as_told():
    for means in (row(math.nan, math.nan, math.nan, 0), row(0.5, 0.4, 0.6, metric="over_refusal")):
        gate = [Gate("G", "compliance", ">=", 0.9)]
        for policy, blocks in (("fail", True), ("skip", False)):
            found = check_gates(means, gates=gate, no_data=policy)
            assert found[["outcome", "blocks"]].values.tolist() == [["no_data", blocks]]
    with pytest.raises(RagnbError, match="no_data='pass'"):
        check_gates(means, gates=gate, no_data="pass")


@given(
    st.lists(st.booleans(), min_size=2, max_size=60),
    st.floats(0.05, 0.95),
    st.sampled_from([">=", "<="]),
)
def test_pass_and_fail_never_contradict_blocks(flags, at, op):
    means = weighted_means(pd.DataFrame({"faithfulness": np.array(flags, dtype=float)}))
    found = check_gates(
        means, gates=[Gate("G", "faithfulness", op, at), Gate("T", "weighted_score", op, at)]
    )
    for gate in found.itertuples():
        assert gate.blocks == (gate.value < at - 1e-9 if op == ">=" else gate.value > at + 1e-9)
        assert gate.outcome != "pass" or not gate.blocks
        assert gate.outcome != "fail" or gate.blocks
    assert found["outcome"].nunique() == 1


# How many more


LARGE = 1e12  # degrees of freedom at which t is the normal's


def designed(value, n, metric="compliance", *, se=None, width=1, span=(0, 1)):
    """The row of a mean of independent values as `weighted_means` gives it, its interval by statsmodels."""
    p, kind = (value - span[0]) / width, "binary" if se is None else "continuous"
    if se is None:
        low, high = (span[0] + width * end for end in proportion_confint(p * n, n, method="wilson"))
        se = width * math.sqrt(p * (1 - p) / n)
    else:
        low, high = (value + sign * scipy.stats.norm.ppf(0.975) * se for sign in (-1, 1))
    design = {"se": se, "n_eff": n, "df": LARGE, "kind": kind, "level": 0.95}
    return row(value, low, high, n, metric).assign(**design, range_low=span[0], range_high=span[1])


def decided_share(p, at, half, sd, df):
    """How often a mean that wanders by sd from p lies beyond at by half its interval, to either side."""
    ways = (p - at, at - p)
    return sum(
        scipy.stats.t.cdf((way - half) / sd, df) if sd else float(way > half) for way in ways
    )


def first_that_decides(p, at, n, size, df, level=0.95, *, se=None):
    """The plan, question by question: the first k whose mean, wandering by se √(k/(n+k)), is decided with 80 %."""
    se = math.sqrt(p * (1 - p) / size) if se is None else se
    for k in range(1, 30 * n + 1):
        r = (n + k) / n
        error = se if size is None else math.sqrt(at * (1 - at) / size)
        half, sd = (
            scipy.stats.t.ppf(0.5 + level / 2, df * r) * error / math.sqrt(r),
            se * math.sqrt(k / (n + k)),
        )
        if decided_share(p, at, half, sd, df) >= 0.8:
            return k
    return None


@pytest.mark.parametrize(
    ("value", "n", "op", "at"),
    [(0.9, 60, ">=", 0.83), (1.0, 20, ">=", 0.9), (0.0, 20, "<=", 0.05), (0.7, 50, ">=", 0.8)],
)
def test_more_needed_question_by_question(value, n, op, at):
    found = check_gates(designed(value, n), gates=[Gate("G", "compliance", op, at)]).iloc[0]
    assert found["outcome"] == "undecided"
    assert found["more_needed"] == first_that_decides(value, at, n, n, LARGE)


def test_a_value_near_the_threshold_is_too_close_for_more_questions():
    near = check_gates(designed(0.85, 20), gates=[Gate("G", "compliance", ">=", 0.8)])
    assert first_that_decides(0.85, 0.8, 20, 20, LARGE) is None
    assert pd.isna(near.loc[0, "more_needed"])
    assert "More questions needed: too close to the limit" in junit(near)


@pytest.mark.parametrize(
    "means",
    [
        row(0.8, 0.7, 0.9),
        row(0.9, math.nan, math.nan),
        row(math.nan, math.nan, math.nan),
        designed(0.8 + 2e-9, 10**4),
    ],
    ids=["the value is the bar", "no interval", "no value", "a bar that no size reaches"],
)
def test_more_needed_is_missing_where_it_is_no_advice(means):
    assert pd.isna(
        check_gates(means, gates=[Gate("G", "compliance", ">=", 0.8)]).loc[0, "more_needed"]
    )


def test_more_needed_rescales_a_ten_point_scale():
    means = designed(1 + 9 * 0.6, 30, "accuracy", width=9, span=(1, 10))
    ten = check_gates(means, gates=[Gate("G", "accuracy", ">=", 1 + 9 * 0.45)]).iloc[0]
    unit = check_gates(designed(0.6, 30), gates=[Gate("G", "compliance", ">=", 0.45)]).iloc[0]
    assert ten["more_needed"] == unit["more_needed"] > 0


def test_without_a_finite_range_the_half_width_shrinks_with_the_root():
    se = 1 / scipy.stats.norm.ppf(0.975)
    means = designed(1.0, 10, "gain", se=se, span=(-math.inf, math.inf))
    found = check_gates(means, gates=[Gate("G", "gain", ">=", 0.2)]).iloc[0]
    assert found["more_needed"] == first_that_decides(1.0, 0.2, 10, None, LARGE, se=se) > 0


def test_more_needed_is_missing_where_the_means_do_not_tell_the_design_of_their_interval():
    means = designed(0.85, 20)
    gates = [Gate("G", "compliance", ">=", 0.7)]
    assert check_gates(means, gates=gates).loc[0, "more_needed"] > 0
    for other in (
        means.drop(columns="se"),
        means.assign(df=math.nan),
        means.assign(low=0.66, high=0.95),
    ):
        assert check_gates(other, gates=gates).loc[0, "outcome"] == "undecided"
        assert pd.isna(check_gates(other, gates=gates).loc[0, "more_needed"])


def wilson_of(p, se, kish, shares, level):
    """Wilson's n and interval of a rate from their definition: p(1−p)/se², t of G_eff − 1 or fewer df."""
    g = 1 / np.sum(shares**2)
    df0 = max(g - 1, 1)
    t = scipy.stats.t.ppf(0.5 + level / 2, df0)
    if se < 1e-9 or p in (0, 1):
        alike = g * (scipy.special.digamma(kish / g + 1) - scipy.special.digamma(1))
        z2n = ((1 - level) / 2) ** (-1 / alike) - 1
        return t**2 / z2n, wilson(p, z2n)
    size = min(p * (1 - p) / se**2, kish)
    centre = (p + t**2 / size / 2) / (1 + t**2 / size)
    share = min(g / size, 1)
    kurtosis = 1.5 * (1 - 2 * centre) ** 2 / (centre * (1 - centre)) * share * (1 - share)
    spread = np.clip(g**2 * np.sum(shares**4), 1 / df0, 2 / df0)
    wider = scipy.stats.t.ppf(0.5 + level / 2, max(1 / (1 / df0 + kurtosis * spread), 1))
    return size * (t / wider) ** 2, wilson(p, wider**2 / size)


FLAGS = st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=4, max_size=60)


@given(FLAGS, st.floats(0.02, 0.98), st.sampled_from([">=", "<="]), st.sampled_from([0.8, 0.95]))
def test_more_needed_goes_by_the_estimators_own_interval(rows, at, op, level):
    frame = pd.DataFrame(rows, columns=["over_refusal", "doc_name"]).astype({"over_refusal": float})
    row = weighted_means(frame, metrics="over_refusal", level=level).iloc[0]
    assume(row["n_clusters"] > 1)
    p, n = row["value"], int(row["n"])
    shares = (frame["doc_name"].value_counts() / n).to_numpy()
    g = 1 / np.sum(shares**2)
    size, ends = wilson_of(p, row["se"], n, shares, level)
    assert ends == pytest.approx((row["low"], row["high"]), abs=1e-7)
    assume(abs(ends[0] - at) > 1e-6 and abs(ends[1] - at) > 1e-6)
    found = check_gates(row.to_frame().T, gates=[Gate("G", "over_refusal", op, at)]).iloc[0]
    if not ends[0] < at < ends[1]:
        assert found["more_needed"] == 0
        return
    df, more = max(g - 1, 1), found["more_needed"]

    def decided(k):
        r, sd = (n + k) / n, math.sqrt(p * (1 - p) / size * k / (n + k))
        half = scipy.stats.t.ppf(0.5 + level / 2, df * r) * math.sqrt(at * (1 - at) / size / r)
        return decided_share(p, at, half, sd, df)

    if pd.isna(more):
        assert decided(30 * n) < 0.8 + 1e-6
    else:
        assert decided(more) >= 0.8 - 1e-6
        assert more == 1 or decided(more - 1) < 0.8 + 1e-6


def test_groups_and_means_that_were_stored_are_planned_with_what_they_tell(tmp_path):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"over_refusal": rng.integers(0, 2, 80).astype(float)})
    frame = frame.assign(
        doc_name=rng.integers(0, 7, 80).astype(str), lang=rng.choice(["en", "zh"], 80)
    )
    gate = [Gate("G", "over_refusal", "<=", 0.6)]
    alone = check_gates(weighted_means(frame[frame["lang"] == "zh"]), gates=gate).loc[
        0, "more_needed"
    ]
    assert alone > 0
    for means in (weighted_means(frame, by="lang"), refusal_metrics(frame, by="lang")):
        assert check_gates(means[means["lang"] == "zh"], gates=gate).loc[0, "more_needed"] == alone
    means = weighted_means(frame[frame["lang"] == "zh"])
    means.to_csv(tmp_path / "means.csv")
    assert (
        check_gates(pd.read_csv(tmp_path / "means.csv"), gates=gate).loc[0, "more_needed"] == alone
    )
    sorted_ = (
        weighted_means(frame, by="lang")
        .query("lang == 'zh'")
        .sort_values("n")
        .reset_index(drop=True)
    )
    assert check_gates(sorted_, gates=gate).loc[0, "more_needed"] == alone


# How far a decision holds


def test_a_flip_is_where_the_difference_of_two_runs_lies_beyond_the_threshold():
    means = designed(0.84, 84).assign(df=13.0)
    at = 0.8
    found = check_gates(means, gates=[Gate("G", "compliance", ">=", at)]).iloc[0]
    t = (0.84 - at) / (math.sqrt(2) * means.loc[0, "se"])
    assert found["p_flip"] == pytest.approx(scipy.stats.t.sf(t, 13), abs=1e-12)
    other = check_gates(means, gates=[Gate("G", "compliance", "<=", at)]).iloc[0]
    assert other["p_flip"] == found["p_flip"]
    exact = check_gates(means, gates=[Gate("G", "compliance", ">=", 0.84)]).iloc[0]
    assert exact["p_flip"] == pytest.approx(0.5)


def test_a_flip_is_missing_where_another_policy_decides_or_nothing_tells_the_noise():
    means = designed(0.84, 84)
    for policy in ("block", "pass"):
        gates = [Gate("G", "compliance", ">=", 0.8, undecided=policy)]
        assert math.isnan(check_gates(means, gates=gates).loc[0, "p_flip"])
    gate = [Gate("G", "compliance", ">=", 0.8)]
    assert math.isnan(check_gates(means.assign(se=0.0), gates=gate).loc[0, "p_flip"])
    assert math.isnan(check_gates(means.drop(columns="se"), gates=gate).loc[0, "p_flip"])


@pytest.mark.parametrize(
    ("policy", "value", "blocks"),
    [
        ("value", 0.84, False),
        ("value", 0.76, True),
        ("block", 0.84, True),
        ("block", 0.76, True),
        ("pass", 0.84, False),
        ("pass", 0.76, False),
    ],
)
def test_an_inconclusive_gate_blocks_by_its_policy(policy, value, blocks):
    gate = Gate("G", "compliance", ">=", 0.8, undecided=policy)
    found = check_gates(designed(value, 84), gates=[gate])
    assert (found.loc[0, "outcome"], found.loc[0, "blocks"]) == ("undecided", blocks)
    tag = "failure" if blocks else "skipped"
    assert ET.fromstring(junit(found)).find(f"testcase/{tag}") is not None
    for clear, word in ((0.99, "pass"), (0.5, "fail")):
        row = check_gates(designed(clear, 84), gates=[gate]).iloc[0]
        assert (row["outcome"], row["blocks"]) == (word, word == "fail")
    assert not check_gates(designed(0.76, 84), gates=[replace(gate, advisory=True)]).loc[
        0, "blocks"
    ]


def documents(n=20, m=30, scores=0.95, seed=0):
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(scores, 0.03, n * m), 0, 1)
    return pd.DataFrame({"faithfulness": x, "doc_name": [f"d{i % n}" for i in range(n * m)]})


def test_the_second_low_end_is_what_documents_that_fail_unseen_leave():
    row = weighted_means(documents()).iloc[0]
    assert row["share_unseen"] == pytest.approx(1 - 0.05 ** (1 / 20), abs=1e-6)
    assert row["low_if"] == pytest.approx(row["low"] * 0.05 ** (1 / 20), abs=1e-6)
    turned = documents().eval("noise_sensitivity = 1 - faithfulness").drop(columns="faithfulness")
    mirrored = weighted_means(turned).iloc[0]
    assert mirrored["low_if"] == pytest.approx(1 - row["low_if"])
    ten = documents().eval("accuracy = 1 + 9 * faithfulness").drop(columns="faithfulness")
    scaled = weighted_means(ten, metrics=[Metric("accuracy", 1, 10)]).iloc[0]
    assert scaled["low_if"] == pytest.approx(1 + 9 * row["low_if"])


@pytest.mark.parametrize(
    "frame",
    [
        documents(n=60),  # so many documents that few could have failed unseen
        documents(m=2),  # so few questions each that a document is hardly one
        documents().assign(
            faithfulness=lambda x: x["faithfulness"] * (x["doc_name"] != "d3")
        ),  # one did fail
        documents().drop(columns="doc_name"),
    ],
)
def test_there_is_no_second_low_end_where_it_says_nothing(frame):
    assert weighted_means(frame)[["low_if", "share_unseen"]].isna().all(axis=None)


@pytest.mark.parametrize(("worst", "failed"), [(0.51, False), (0.49, True)])
def test_a_document_below_half_of_the_mean_has_failed(worst, failed):
    rest = (
        (1 - worst / 20) * 20 / 19
    )  # so that the mean of all is that of the others but for a factor
    scores = [0.8 * (worst if name == "d3" else rest) for name in documents()["doc_name"]]
    row = weighted_means(documents().assign(faithfulness=scores)).iloc[0]
    assert row["value"] == pytest.approx(0.8)
    assert np.isnan(row["low_if"]) == failed


def test_documents_that_may_fail_count_only_where_they_are_told_to():
    means = weighted_means(documents())
    low, low_if = means.loc[0, ["low", "low_if"]]
    gates = [
        Gate(name, "faithfulness", ">=", at)
        for name, at in (
            ("under", low_if - 1e-6),
            ("at", low_if),
            ("over", low_if + 1e-6),
            ("low", low),
        )
    ]
    assert check_gates(means, gates=gates)["outcome"].tolist() == ["pass"] * 4
    strict = check_gates(means, gates=gates, documents_may_fail=True)
    assert strict["outcome"].tolist() == ["pass", "pass", "undecided", "undecided"]
    assert strict["more_needed"].isna().tolist() == [False, False, True, True]
    assert not strict["blocks"].any()
    notes = rn.assess(documents(), gates=gates).notes
    assert notes.loc[notes["code"] == "documents_may_fail", "about"].tolist() == ["over", "low"]
    wrong_way = check_gates(
        means, gates=[Gate("G", "faithfulness", "<=", 0.99)], documents_may_fail=True
    )
    assert wrong_way.loc[0, "outcome"] == "pass"


def test_a_policy_and_documents_that_may_fail_are_settings_of_a_scenario():
    at = weighted_means(documents()).loc[0, "low"]
    shared = {
        "gates": [{"name": "F", "metric": "faithfulness", "op": ">=", "threshold": float(at)}]
    }
    assert not rn.assess(documents(), **shared).blocked
    strict = rn.assess(documents(), **shared, documents_may_fail=True, undecided="block")
    assert strict.blocked
    assert strict.verdict.startswith("Not ready: Not settled: Faithfulness is at least 0.9")
    assert "This is inconclusive" in strict.verdict
    assert strict.gates.loc[0, "outcome"] == "undecided"
    assert "documents_may_fail" in set(strict.notes["code"])
    own = [{**shared["gates"][0], "undecided": "pass"}]
    assert not rn.assess(documents(), gates=own, documents_may_fail=True, undecided="block").blocked


# What is refused


def test_a_bar_outside_the_range_is_refused_with_a_hint():
    with pytest.raises(RagnbError, match=r"80 lies outside compliance's 0\.\.1; write 0\.8"):
        decide(0.9, 0.8, 0.95, at=80)
    with pytest.raises(RagnbError, match=r"0\.5 lies outside accuracy's 1\.\.10"):
        check_gates(row(5, 4, 6, metric="accuracy"), gates=[Gate("G", "accuracy", ">=", 0.5)])


def test_ranges_come_from_the_means_before_the_table():
    means = row(3.0, 2.5, 3.5, metric="mine")
    with pytest.raises(RagnbError, match="range of 'mine' is not known"):
        check_gates(means, gates=[Gate("G", "mine", ">=", 3.5)])
    for beyond in (row(3.0, 0.5, 0.9, metric="mine"), row(0.5, 0.4, 3.5, metric="mine")):
        with pytest.raises(RagnbError, match="range of 'mine' is not known"):
            check_gates(beyond, gates=[Gate("G", "mine", ">=", 0.5)])
    means = means.assign(range_low=1, range_high=5)
    assert check_gates(means, gates=[Gate("G", "mine", ">=", 3.5)]).loc[0, "blocks"]
    inside = check_gates(row(0.5, 0.4, 0.6, metric="mine"), gates=[Gate("G", "mine", ">=", 0.3)])
    assert not inside.loc[0, "blocks"]


def test_groups_are_refused_and_an_unknown_metric_is_named():
    with pytest.raises(RagnbError, match="more than once"):
        check_gates(pd.concat([row(0.5, 0.4, 0.6)] * 2), gates=[Gate("G", "compliance", ">=", 0.3)])
    with pytest.warns(RagnbWarning, match="did you mean 'compliance'"):
        found = check_gates(row(0.5, 0.4, 0.6), gates=[Gate("G", "complianse", ">=", 0.3)])
    assert found.loc[0, "outcome"] == "no_data"


# What people and CI read


def several():
    means = pd.concat(
        [
            row(0.9, 0.85, 0.95, metric="answer_precision"),
            designed(0.1, 30, "under_refusal"),
            row(0.2, 0.1, 0.3, metric="over_refusal"),
            row(0.8, math.nan, math.nan, metric="citation_hit_rate"),
        ]
    )
    return check_gates(means, gates=DEFAULT_GATES, no_data="skip")


def test_json_is_plain_and_the_same_every_time():
    first, second = gates_json(several()), gates_json(several())
    assert first == second
    body = json.loads(first, parse_constant=lambda word: pytest.fail(word))
    assert body["blocked"] is True
    rows = {gate["gate"]: gate for gate in body["gates"]}
    assert [rows[g]["outcome"] for g in ("G1", "G2", "G3", "G4", "G5")] == [
        "pass",
        "undecided",
        "undecided",
        "undecided",
        "no_data",
    ]
    assert rows["G4"]["low"] is None
    assert rows["G5"]["value"] is None
    assert rows["G1"]["more_needed"] == 0
    assert isinstance(rows["G2"]["more_needed"], int)
    assert rows["G2"]["threshold"] == 0.05


def test_no_gates_block_nothing():
    found = check_gates(row(0.5, 0.4, 0.6), gates=[])
    assert json.loads(gates_json(found)) == {"blocked": False, "gates": []}
    assert ET.fromstring(junit(found)).get("tests") == "0"


def test_json_numbers_have_twelve_digits():
    found = check_gates(row(1 / 3, 0.3, 2 / 3), gates=[Gate("G", "compliance", ">=", 0.1)])
    assert '"value": 0.333333333333,' in gates_json(found)


def test_junit_counts_failures_and_skips():
    suite = ET.fromstring(junit(several()).encode("utf-8"))
    assert {k: suite.get(k) for k in ("tests", "failures", "skipped", "errors")} == {
        "tests": "5",
        "failures": "1",
        "skipped": "3",
        "errors": "0",
    }
    cases = suite.findall("testcase")
    assert [case.find("failure") is not None for case in cases] == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert cases[1].find("failure").get("type") == "undecided"
    for kind in ("failure", "skipped"):
        told = [case.find(kind) for case in cases if case.find(kind) is not None]
        assert [one.text for one in told] == [one.get("message") for one in told] != []
    assert [case.find("skipped") is not None for case in cases] == [False] * 2 + [True] * 3


@given(st.text(max_size=20), st.text(max_size=20))
def test_junit_holds_any_name(name, suite_name):
    found = check_gates(row(0.1, 0.0, 0.2), gates=[Gate(name, "compliance", ">=", 0.9)])
    text = replace(
        LOG, scenario=LOG.scenario.model_copy(update={"name": suite_name}), gates=found
    ).to_junit()
    case = ET.fromstring(text.encode("utf-8")).find("testcase")
    assert case.get("name").endswith(": compliance >= 0.9")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_case_says_requirement_value_and_outcome_as_the_table_of_the_page_does(lang):
    sheet = replace(LOG, scenario=LOG.scenario.model_copy(update={"lang": lang}), gates=several())
    suite, table = ET.fromstring(sheet.to_junit().encode("utf-8")), sheet.section("gates").blocks[0]
    words = ["".join(case.itertext()).strip() for case in suite]
    asked = {code.text: asks for (asks, code), *_ in table.rows}
    assert len(words) == len(asked) == 5
    for text, gate in zip(words, several().itertuples(), strict=True):
        name = next(code for code in asked if code.startswith(f"{gate.gate} · {gate.metric}"))
        assert text.startswith(f"{asked[name]} · {name}")
        assert f"{100 * gate.threshold:g} %" in text  # as the page writes a rate
        assert not re.search(r"\bnan\b", text)
    assert "10.0 % · 3.5–25.6 %, n = 30" in words[1]


def test_a_brace_in_a_gates_name_stays_a_brace():
    found = check_gates(row(0.1, 0.0, 0.2), gates=[Gate("{n}", "compliance", ">=", 0.9)])
    assert "{n} · compliance ≥ 0.9" in junit(found)


@pytest.mark.parametrize(
    "gates",
    [
        {"faithfulness": 0.7},
        ["faithfulness >= 0.7"],
        [("faithfulness", ">=", 0.7)],
        None,
        3,
        "x >= 0.7",
    ],
)
def test_what_is_no_gate_is_refused_with_how_to_write_one(gates):
    with pytest.raises(
        RagnbError, match=r"is no gate; write gates=\[rn\.Gate\('G', 'faithfulness', '>='"
    ):
        check_gates(row(0.5, 0.4, 0.6), gates=gates)


def test_a_frame_without_columns_holds_no_means():
    with pytest.raises(
        RagnbError, match=r"gates compare means, not scores: need the columns metric, value"
    ):
        check_gates(pd.DataFrame())


def test_a_gate_may_call_a_metric_as_a_tool_does():
    found = check_gates(
        row(0.9, 0.8, 0.95, metric="faithfulness"), gates=[Gate("G", "Groundedness", ">=", 0.7)]
    )
    assert found[["metric", "outcome"]].values.tolist() == [["faithfulness", "pass"]]


# Differences from a baseline


def compared(low, high, better="higher", value=None):
    value = (low + high) / 2 if value is None else value
    row = {
        "candidate": "new",
        "metric": "recall",
        "value": value,
        "low": low,
        "high": high,
        "n_common": 90,
    }
    return pd.DataFrame([row | {"better": better, "range_low": 0.0, "range_high": 1.0}])


@pytest.mark.parametrize(
    ("low", "high", "better", "outcome", "blocks"),
    [
        (-0.02, 0.03, "higher", "pass", False),
        (-0.0200001, 0.03, "higher", "undecided", False),
        (-0.05, -0.0200001, "higher", "fail", True),
        (-0.05, -0.02, "higher", "undecided", True),
        (-0.03, 0.02, "lower", "pass", False),
        (0.0200001, 0.05, "lower", "fail", True),
    ],
)
def test_not_worse_than_is_decided_at_its_bound(low, high, better, outcome, blocks):
    gate = Gate("recall", "recall", not_worse_than="baseline", by=0.02)
    row = check_differences(compared(low, high, better), gates=[gate]).iloc[0]
    assert (row["outcome"], row["blocks"], row["role"]) == (outcome, blocks, "difference")


@pytest.mark.parametrize("names", [["new"], ["new", "newer"], ["new", "newer", "newest"]])
def test_each_of_several_candidates_has_a_difference_gate_of_its_own(names):
    table = pd.concat(
        [compared(-0.01, 0.03).assign(candidate=name) for name in names], ignore_index=True
    )
    found = check_differences(
        table, gates=[Gate("recall", "recall", not_worse_than="baseline", by=0.02)]
    )
    assert found["system"].tolist() == (names if len(names) > 1 else [None])


def test_a_difference_tells_its_flip_and_the_questions_it_still_needs():
    se, df = 0.01, 30.0
    half = scipy.stats.t.ppf(0.975, df) * se
    table = compared(0.02 - half, 0.02 + half, value=0.02).assign(se=se, df=df, level=0.95)
    gate = Gate("recall", "recall", not_worse_than="baseline", by=0.0)
    found = check_differences(table, gates=[gate]).iloc[0]
    assert found["outcome"] == "undecided"
    assert found["p_flip"] == pytest.approx(scipy.stats.t.sf(2 / math.sqrt(2), df))
    assert found["more_needed"] == first_that_decides(0.02, 0.0, int(found["n"]), None, df, se=se)
    strict = Gate("recall", "recall", not_worse_than="baseline", undecided="block")
    blocking = check_differences(table, gates=[strict]).iloc[0]
    assert blocking["blocks"]
    assert math.isnan(blocking["p_flip"])


def test_a_gate_without_a_baseline_has_no_data_and_blocks():
    gate = Gate("recall", "recall", not_worse_than="baseline", by=0.02)
    assert check_differences(None, gates=[gate])[["outcome", "blocks"]].to_numpy().tolist() == [
        ["no_data", True]
    ]
    with pytest.raises(RagnbError, match="ragnb compare NEW BASE --gate"):
        check_gates(pd.DataFrame({"metric": []}), gates=[gate])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"op": ">="}, "is required"),
        ({"threshold": 0.5}, "is required"),
        ({}, "is required"),
        ({"op": ">=", "threshold": 1, "by": 0.1}, "requires not_worse_than"),
        ({"op": ">=", "threshold": 1, "not_worse_than": "baseline"}, "leave it out"),
        ({"op": ">=", "threshold": 1, "undecided": "maybe"}, "'value', 'block' or 'pass'"),
    ],
)
def test_a_gate_asks_for_a_threshold_or_for_a_baseline_and_for_a_known_policy(settings, words):
    with pytest.raises(ValueError, match=words):
        Gate("recall", "recall", **settings)


def test_a_run_is_held_against_its_baseline(tmp_path):
    rng = np.random.default_rng(0)
    base = pd.DataFrame(
        {"sample_id": range(60), "context_recall": rng.random(60), "faithfulness": rng.random(60)}
    )
    new = base.assign(faithfulness=base["faithfulness"] * 0.7)
    new["context_recall"] = (base["context_recall"] + rng.normal(0, 0.01, 60)).clip(0, 1)
    base.to_csv(tmp_path / "base.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    gates = [
        {"name": name, "metric": name, "not_worse_than": "baseline", "by": 0.02}
        for name in ("context_recall", "faithfulness")
    ]
    sheet = rn.assess(tmp_path / "new.csv", baseline=tmp_path / "base.csv", gates=gates)
    found = sheet.gates.set_index("gate")
    assert found.loc[["context_recall", "faithfulness"], "outcome"].tolist() == ["pass", "fail"]
    difference = (new["faithfulness"] - base["faithfulness"]).mean()
    assert found.loc["faithfulness", "value"] == pytest.approx(difference, abs=1e-4)
    assert "Faithfulness against the baseline: at least -0.020" in sheet.to_markdown()
    with pytest.raises(RagnbError, match="the scenario names none"):
        rn.assess(tmp_path / "new.csv", gates=gates)


def test_a_gate_on_an_absent_metric_knows_whether_that_is_a_rate():
    means = rn.weighted_means(pd.DataFrame({"clarity": [7.0, 8.0, 9.0]}))
    gates = [Gate("a", "under_refusal", "<=", 0.05), Gate("b", "faithfulness", ">=", 0.5)]
    found = rn.check_gates(means, gates=gates)
    assert found[["outcome", "role"]].to_numpy().tolist() == [
        ["no_data", "rate"],
        ["no_data", "quality"],
    ]
