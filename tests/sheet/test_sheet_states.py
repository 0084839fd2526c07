"""Whatever the data are, the sheet says what it can, and nothing in it contradicts the rest."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from pages import Reader, island, numbers

import ragnb as rn
from ragnb import texts
from ragnb.markup.blocks import Bar, Measure, Samples, Steps, Table, Verdict
from ragnb.markup.rendering import render_page
from ragnb.sheet.formatter import Formatter
from ragnb.texts import entry, load

ROOT = Path(__file__).resolve().parents[2]
GOLD = ROOT / "data/quickstart/gold.json"
REFUSAL = ["not in context", "资料中没有相关内容"]
STATUS = {
    "incomplete": "Incomplete input",
    "failed": "Not ready",
    "undecided": "Inconclusive",
    "nothing": "Nothing to evaluate",
    "passed": "Ready",
    "no_data": "Nothing measured",
    "no_gates": "No gates set",
    "standing_met": "Thresholds met",
    "standing_met_unsure": "Thresholds met, not all conclusively",
    "standing_missed": "Thresholds missed",
    "standing_open": "Inconclusive",
    "standing_no_thresholds": "No threshold",
    "log": "Log only",
}
METRICS = ("faithfulness", "answer_relevancy", "context_recall")


def frame(n=40, mean=0.75, spread=0.02, docs=8, **columns):
    rng = np.random.default_rng(7)
    made = {
        "sample_id": [f"q{i}" for i in range(n)],
        "question": [f"question {i}?" for i in range(n)],
        "doc_name": [f"doc {i % docs}.pdf" for i in range(n)],
    }
    made |= {name: np.clip(mean + rng.normal(0, spread, n), 0, 1).round(3) for name in METRICS}
    return pd.DataFrame(made | columns)


def gate(metric="faithfulness", op=">=", threshold=0.7, name="F"):
    return rn.Gate(name, metric, op, threshold)


def logs(**options):
    traces = rn.read_traces(ROOT / "data/quickstart/traces.strong.jsonl")
    return rn.assess(traces, refusal=REFUSAL, **options)


def log_only():
    return rn.assess(
        rn.Scenario(traces=ROOT / "data/quickstart/traces.strong.jsonl", refusal=REFUSAL)
    )


def everything_failed():
    made = frame().assign(**dict.fromkeys(METRICS, np.nan))
    return rn.assess(made.assign(**{f"{name}__status": "failed" for name in METRICS}))


def wide(n=200):
    rng = np.random.default_rng(3)
    values = {f"metric_{i:03d}": rng.uniform(0, 1, 20).round(2) for i in range(n)}
    table = pd.DataFrame(
        {"sample_id": [f"q{i}" for i in range(20)], "doc_name": [f"d{i % 5}" for i in range(20)]}
    )
    scores = pd.concat([table, pd.DataFrame(values)], axis=1)
    return rn.assess(scores, metrics=[rn.Metric(name) for name in values])


def many_systems(n=50):
    parts = [frame(12, mean=0.3 + 0.6 * i / n).assign(system=f"system {i:02d}") for i in range(n)]
    return rn.assess(pd.concat(parts, ignore_index=True), gates=[gate()])


def long_run(n, passages=40):
    """Questions with answers and three passages each, which many of them share."""
    words = np.array(
        ["the", "policy", "leave", "thirty", "days", "claim", "benefit", "报销", "标准", "期限"]
    )
    rng = np.random.default_rng(2)
    texts = [f"{i} " + " ".join(rng.choice(words, 120)) for i in range(passages)]
    found = [[texts[k] for k in rng.choice(passages, 3, replace=False)] for _ in range(n)]
    answers = [" ".join(rng.choice(words, 40)) for _ in range(n)]
    return frame(n, spread=0.2, docs=30, answer=answers, retrieved_contexts=found)


TWO = [frame(mean=mean).assign(system=name) for mean, name in ((0.9, "new"), (0.4, "old"))]
ABSENT = gate("under_refusal", "<=")
STATES = {
    "scores only": lambda: (rn.assess(frame(), gates=[]), "standing_met"),
    "scores with gates": lambda: (rn.assess(frame(), gates=[gate()]), "passed"),
    "log only": lambda: (log_only(), "log"),
    "traces with gold": lambda: (logs(gold=GOLD), "failed"),
    "one document": lambda: (rn.assess(frame(docs=1), gates=[gate(threshold=0.9)]), None),
    "one question": lambda: (rn.assess(frame(1), gates=[gate()]), None),
    "two systems": lambda: (rn.assess(pd.concat(TWO), gates=[gate()]), "failed"),
    "everything failed": lambda: (everything_failed(), "nothing"),
    "nothing scored": lambda: (
        rn.assess(frame().assign(**dict.fromkeys(METRICS, np.nan))),
        "nothing",
    ),
    "no data for the gate": lambda: (rn.assess(frame(), gates=[ABSENT], no_data="skip"), "no_data"),
    "inconclusive": lambda: (
        rn.assess(frame(spread=0.2), gates=[gate(threshold=0.749)], undecided="pass"),
        None,
    ),
    "inconclusive and blocking": lambda: (
        rn.assess(frame(spread=0.2), gates=[gate(threshold=0.74)], undecided="block"),
        None,
    ),
    "200 metrics": lambda: (wide(), None),
    "50 systems": lambda: (many_systems(), "failed"),
    "1,000 questions": lambda: (rn.assess(long_run(1000), gates=[gate()]), "passed"),
}


@pytest.fixture(scope="module", params=STATES)
def state(request):
    """A sheet of each state with its parts, and the status it must have where the data leave no choice."""
    sheet, status = STATES[request.param]()
    return request.param, sheet, status, {section.key: section for section in sheet.sections()}


def is_failed(sheet):
    of_input = sheet.gates[sheet.gates["role"] == "completeness"]
    return bool(of_input["blocks"].any())


def deciding(sheet):
    return sheet.gates[(sheet.gates["reason"] == "") & (sheet.gates["role"] != "completeness")]


def status_by_thresholds(sheet):
    """Return how the means stand against the milder thresholds of their rules, by plain comparison."""
    w = Formatter(sheet)
    sides = []
    for row in w.sheet.means.to_dict("records"):
        if row["role"] != "quality" or not (limits := w.thresholds(row["metric"])):
            continue
        turn = 1 if row["better"] == "higher" else -1
        value, low, high = (turn * row[name] for name in ("value", "low", "high"))
        sides.append((*sorted([low, high]), value, turn * limits[0][1]))
    if not sides:
        return "standing_no_thresholds"
    if any(high < at for _, high, _, at in sides):
        return "standing_missed"
    if any(value < at for _, _, value, at in sides):
        return "standing_open"
    all_sure = all(low >= at for low, _, _, at in sides)
    return "standing_met" if all_sure else "standing_met_unsure"


def test_status_is_what_the_gates_say_or_else_the_thresholds(state):
    _, sheet, status, parts = state
    verdict = parts["summary"].blocks[0]
    assert isinstance(verdict, Verdict)
    gates, of_input = deciding(sheet), sheet.gates[sheet.gates["role"] == "completeness"]
    if of_input["blocks"].any():
        want = "incomplete" if sheet.means["n"].any() else "nothing"
    elif not len(gates):
        want = status_by_thresholds(sheet) if sheet.log is None else "log"
    elif gates["blocks"].any():
        want = "failed"
    elif (gates["outcome"] == "undecided").any():
        want = "undecided"
    else:
        want = "no_data" if (gates["outcome"] == "no_data").all() else "passed"
    assert verdict.status.text == STATUS[want]
    assert status in (None, want)
    assert sheet.blocked == (want in ("incomplete", "nothing", "failed"))
    tones = {
        "incomplete": "bad",
        "nothing": "bad",
        "failed": "bad",
        "undecided": "watch",
        "passed": "good",
    }
    tones |= {"standing_met": "good", "standing_missed": "bad"}
    tones |= dict.fromkeys(("standing_met_unsure", "standing_open"), "watch")
    assert verdict.status.tone == tones.get(want, "none")


def test_a_difference_that_fails_is_the_verdict_also_among_several_systems():
    runs = [
        frame(mean=mean).assign(system=name)
        for name, mean in (("new", 0.5), ("old", 0.8), ("other", 0.8))
    ]
    worse = rn.Gate("regression", "faithfulness", not_worse_than="baseline", by=0.02)
    gates = [gate(threshold=0.1), worse]
    sheet = rn.assess(
        pd.concat(runs, ignore_index=True), candidate="new", baseline="old", gates=gates
    )
    title = sheet.section("summary").blocks[0].title
    assert title.startswith("Faithfulness differs from the baseline by -0.3")
    assert title.endswith("below its threshold of -0.020.")


def test_nothing_on_the_first_screen_contradicts_the_gates_or_the_verdict(state):
    _, sheet, _, parts = state
    verdict, gates = parts["summary"].blocks[0], deciding(sheet)
    assert sheet.verdict.startswith(f"{verdict.status.text}: {verdict.title.rstrip('.')}")
    words = {"fail": "failed", "undecided": "inconclusive", "no_data": "no data", "pass": "passed"}
    counts = {words[one]: n for one, n in gates["outcome"].value_counts().items()}
    if is_failed(sheet):  # what is left of the scores decides nothing
        counts = {}
        assert "gates" not in parts
        assert "fix" not in parts
    assert {
        mark.text.split(" ", 1)[1]: int(mark.text.split()[0]) for mark in verdict.marks
    } == counts
    if "gates" in parts and len(gates):
        said = sorted(map(int, numbers(parts["gates"].finding)))
        known = [*counts.values(), len(gates)]
        assert all(n in known for n in said)
    if verdict.score is not None:
        shown = sheet if sheet.shown_system is None else sheet.of_system(sheet.shown_system)
        names = ["weighted_score", "correct_outcome"]
        values = shown.means.set_index("metric")["value"].reindex(names).dropna()
        assert verdict.score.value == values.iloc[0]
    else:
        assert sheet.means.set_index("metric").reindex(["weighted_score"])["value"].isna().all()


def test_parts_are_there_exactly_where_there_is_something_to_say(state):
    name, sheet, _, parts = state
    labels = sheet.outcomes is not None and sheet.outcomes["n"].sum() > 0
    assert ("outcomes" in parts) == labels
    assert any(isinstance(block, Bar) for block in parts["summary"].blocks) == labels
    assert ("comparison" in parts) == (sheet.systems is not None)
    assert {"summary", "questions", "run", "glossary"} <= set(parts)
    assert ("metrics" in parts) == bool(sheet.means["n"].any())
    assert ("causes" in parts) == (not sheet.means["n"].any())
    assert ("missing" in parts) == is_failed(sheet)
    assert ("gates" in parts) == (bool(len(Formatter(sheet).gates)) and not is_failed(sheet))
    if name in ("one question", "one document"):
        assert "documents" not in parts
    if sheet.systems is not None:
        (table,) = (block for block in parts["summary"].blocks if isinstance(block, Table))
        assert {row[0] for row in table.rows} == set(sheet.systems["system"])


def test_every_state_is_a_page_a_text_and_a_cell_of_a_notebook(state):
    name, sheet, _, parts = state
    page = sheet.to_html()
    read = Reader(page)
    assert [tag for tag, _ in read.tags].count("h1") == 1
    ids = [attrs["id"] for _, attrs in read.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    shown = read.text + " ".join(
        filter(None, (value for _, attrs in read.tags for value in attrs.values()))
    )
    assert not re.search(r"\b(nan|NaN|None(?! of them)|inf)\b", shown)
    heads = re.findall(r"^## (.*?)(?::|$)", sheet.to_markdown(), re.MULTILINE)
    names = [section.name for key, section in parts.items() if key != "glossary"]
    in_markdown = [re.sub("^Metrics", "Metric means", name) for name in names]  # as scripts find it
    if "label" in sheet.scores and not sheet.streamed and sheet.scores["label"].notna().any():
        in_markdown.append("Labels by question")
    assert heads == in_markdown
    assert parts["summary"].blocks[0].title in Reader(sheet._repr_html_()).text
    if name == "1,000 questions":
        assert len(page.encode()) <= 2_000_000
        assert len(read.samples) == 1000
        assert len(read.passages) == 40


def test_the_badge_of_metrics_counts_the_rows_that_are_marked(state):
    _, _, _, parts = state
    if "metrics" not in parts:
        return
    marked = [
        row
        for block in parts["metrics"].blocks
        if isinstance(block, Table) and not block.folded
        for row in block.rows
        if isinstance(row, Measure)
        and row.estimate.tone in ("watch", "bad")
        and row.code != "weighted_score"
    ]
    badge = parts["metrics"].badge
    assert (int(badge.text.split()[0]) if badge else 0) == len(marked)
    if not marked:
        assert "below" not in parts["metrics"].finding or "No mean" in parts["metrics"].finding


# Links


def test_links_of_the_first_rows_lead_to_questions_that_exist_and_are_as_many(state):
    _, sheet, _, parts = state
    page = sheet.to_html()
    places = {attrs.get("id") for _, attrs in Reader(page).tags}
    (samples,) = (block for block in parts["questions"].blocks if isinstance(block, Samples))
    every = [row.filters for row in samples.rows] + [filters for _, filters in samples.rest]
    steps = [
        step
        for block in (parts["fix"].blocks if "fix" in parts else ())
        if isinstance(block, Steps)
        for step in block.rows
    ]
    for step in steps:
        if step.link is not None:
            kind, value, system = re.fullmatch(
                r"#([om])=(.*?)(?:&s=(.*))?", step.link.target
            ).groups()
            value = unquote(value)
            own = [one for one in every if value in one[kind].split("\n")]
            # Of several systems each has its own count: questions of others are not wrong answers of this one.
            assert (system is not None) == (sheet.systems is not None)
            if system is not None:
                own = [one for one in own if one["s"] == unquote(system)]
                assert unquote(system) in step.link.text
            assert len(own) == int(numbers(step.link.text)[0])
            known = (
                [code for code, *_ in samples.chips]
                if kind == "o"
                else dict(samples.filters["m"][1])
            )
            assert value in known
    links = re.findall(r'href="#(q=[^"]*)"', page)
    assert all(unquote(link) in places for link in links)


@pytest.mark.parametrize(
    "odd", ["a b", "50%", "x%20y", "a" * 60, "a&b<c>\"d'", "甲 / 乙#?", "tab\tid", "a" * 90, "~2"]
)
def test_a_link_to_a_worst_sample_finds_it_whatever_its_id(odd):
    made = frame(6, mean=0.3, sample_id=[f"{i}{odd}" for i in range(6)])
    sheet = rn.assess(made)
    page = sheet.to_html()
    read = Reader(page)
    places = {attrs.get("id") for _, attrs in read.tags}
    links = {
        attrs["href"] for tag, attrs in read.tags if tag == "a" and attrs["href"].startswith("#q=")
    }
    assert len(links) == 6
    assert {unquote(link[1:]) for link in links} <= places


def test_ids_that_come_twice_have_places_of_their_own():
    made = frame(7, mean=0.3, sample_id=["a", "a", "a~2", "b c", "b_c", "50%", "甲"])
    places = [attrs["id"] for _, attrs in Reader(rn.assess(made).to_html()).tags if "id" in attrs]
    assert len(places) == len(set(places))
    assert len([place for place in places if place.startswith("q=")]) == 7


# Fix first


def steps_of(sheet):
    return [
        step
        for section in sheet.sections()
        for block in section.blocks * (section.key == "fix")
        if isinstance(block, Steps)
        for step in block.rows
    ]


@pytest.mark.parametrize("name", ["quickstart", "simulated_judge"])
def test_failed_gates_come_first_then_potential_gain_then_open_gates(name):
    sheet = rn.assess(ROOT / f"scenarios/{name}.yaml", lang="en")
    shown = sheet if sheet.shown_system is None else sheet.of_system(sheet.shown_system)
    gates = deciding(sheet)
    gates = gates[gates["system"].isna() | (gates["system"] == sheet.shown_system)]
    failed = gates[gates["outcome"] == "fail"]["metric"]
    found = shown.diagnoses.sort_values("cost", ascending=False)["metric"]
    open_ = set(gates[gates["outcome"] == "undecided"]["metric"])
    writer = Formatter(sheet)
    # What a row is about, by its value: an evidence begins with the mean of its metric.
    means = shown.means.set_index("metric")["value"]
    written = {metric: writer.value(metric, value) for metric, value in means.items()}
    every = [*failed, *found, *open_]
    evidence = [step.evidence.text for step in steps_of(sheet)]
    about = [next(m for m in every if text.startswith(written[m])) for text in evidence]
    rank = {m: (1, float(i)) for i, m in enumerate(found)} | dict.fromkeys(failed, (0, 0.0))
    places = [rank.get(metric, (2, 0.0)) for metric in about]
    assert places == sorted(places)
    assert len(about) == len(set(about)) > 0
    assert all(metric in open_ for metric in about if metric not in rank)


def test_a_finding_says_what_fixing_it_is_worth_and_what_it_rests_on():
    sheet = rn.assess(ROOT / "scenarios/simulated_judge.yaml", lang="en")
    costs = sheet.diagnoses.set_index("metric")["cost"]
    for row in sheet.diagnoses.to_dict("records"):
        step = next(
            s for s in steps_of(sheet) if s.evidence.text.startswith(f"{row['value']:.3f}, ")
        )
        assert f"+{costs[row['metric']]:.3f}" in step.gain
        failed = sheet.gates[
            (sheet.gates["metric"] == row["metric"]) & (sheet.gates["outcome"] == "fail")
        ]
        threshold = next(iter(failed["threshold"]), row["threshold"])
        assert f"{threshold:.3f}" in step.evidence.text
        assert f"n = {row['n']}" in step.evidence.text
        lines = str(step.parts)
        assert all(cause in str(lines) for cause in row["causes"])
        assert all(action["text"] in lines for action in row["actions"])


def test_a_threshold_out_of_reach_by_construction_says_so():
    sheet = rn.assess(ROOT / "scenarios/quickstart.yaml")
    rows = sheet.scores[sheet.scores["context_relevance"].notna()]
    shares = [
        min(1.0, len(gold) / len(got))
        for gold, got in zip(rows["gold_ids"], rows["chunks"], strict=True)
    ]
    most = np.average(shares, weights=rows["sample_weight"])
    step = next(step for step in steps_of(sheet) if "irrelevant" in step.problem)
    assert f"{most:.3f}" in step.gain
    assert f"{most:.3f}" in step.detail
    assert most < 0.4


def test_with_nothing_to_fix_there_is_no_such_section():
    sheet = rn.assess(frame(mean=0.95), gates=[gate()])
    assert "fix" not in {section.key for section in sheet.sections()}
    assert 'href="#fix"' not in sheet.to_html()


# A finding is never stronger than its interval


def moved(sheet, metric, **values):
    """The sheet with another interval of one metric in its means, as if the run had come out so."""
    means = sheet.means.copy()
    for key, value in values.items():
        means.loc[means["metric"] == metric, key] = value
    return replace(sheet, means=means)


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.6, 0.5, 0.699, "Faithfulness is below its threshold: 0.600, threshold 0.700"),
        (0.6, 0.5, 0.7, "its interval 0.500–0.700 includes the threshold"),
        (0.6, 0.5, 0.701, "its interval 0.500–0.701 includes the threshold"),
        (0.6, np.nan, np.nan, "without an interval nothing says how firm this is"),
        (0.7, 0.6, 0.8, "All 3 means meet their thresholds; closest: faithfulness 0.700"),
        (0.7, 0.7, 0.8, "All 3 means meet their thresholds; closest: faithfulness 0.700"),
        (0.69996, 0.6, 0.8, "is 0.69996, below 0.700, but its interval 0.60000–0.80000"),
    ],
)
def test_a_metric_is_called_below_its_threshold_only_where_its_whole_interval_is(
    value, low, high, words
):
    sheet = rn.assess(frame(mean=0.9), gates=[])
    sheet = moved(sheet, "faithfulness", value=value, low=low, high=high)
    assert words in sheet.section("metrics").finding
    verdict = sheet.section("summary").blocks[0]
    assert words in verdict.title
    assert verdict.status.text == STATUS[status_by_thresholds(sheet)]


def lower_is_better(mean=0.1, **means):
    made = frame(mean=0.9, spread=0.001).assign(noise_sensitivity=mean)
    return made.assign(**means)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_sentence_on_thresholds_in_each_of_its_forms(lang):
    """Counts, the furthest and the closest by their distance as a share of the range, and both directions."""

    def finding(table, **how):
        return rn.assess(table, gates=[], lang=lang, **how).section("metrics").finding

    def said(key, metric, value, **words):
        side = load(lang)("headline.above" if metric == "noise_sensitivity" else "headline.below")
        name = entry(lang, "metrics")[metric]["name"]
        limit = {"noise_sensitivity": "0.300"}.get(metric, "0.700")
        how = {"metric": name, "value": value, "limit": limit, "side": side} | words
        text = load(lang)(f"standing.{key}", **how)
        return text[:1].upper() + text[1:]

    alone = lower_is_better().drop(columns=["answer_relevancy", "context_recall", "faithfulness"])
    assert finding(alone) == said("met_one", "noise_sensitivity", "0.100")
    above = alone.assign(noise_sensitivity=0.8)
    assert finding(above) == said("missed_one", "noise_sensitivity", "0.800")
    two = lower_is_better(0.9, faithfulness=0.2)
    assert finding(two) == said("missed", "noise_sensitivity", "0.900", n=2, all=4)
    all_of_them = two[["sample_id", "question", "doc_name", "faithfulness", "noise_sensitivity"]]
    assert finding(all_of_them) == said("missed_all", "noise_sensitivity", "0.900", n=2, all=2)
    own = lower_is_better(tone=0.1, faithfulness=0.75)
    metrics = [rn.Metric("tone", 0, 1), "faithfulness", "noise_sensitivity"]
    words = {"all": 2, "n": 0}
    assert finding(own, metrics=metrics) == said("met_some", "faithfulness", "0.750", **words)
    one = {"all": 1, "n": 0}
    assert finding(own, metrics=metrics[:2]) == said("met_some_one", "faithfulness", "0.750", **one)
    plain = [rn.Metric("tone", 0, 1), rn.Metric("length", 0, 10, better="lower")]
    worst = load(lang)("standing.worst", n=2, metric="length", value="9.500")
    lonely = own[["sample_id", "question", "doc_name", "tone"]].assign(length=9.5)
    assert finding(lonely, metrics=plain) == worst


@pytest.mark.parametrize(
    ("spread", "threshold"), [(0.3, 0.749), (0.3, 0.72), (0.01, 0.7), (0.01, 0.8), (0.05, 0.75)]
)
@pytest.mark.parametrize("policy", ["block", "value", "pass"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_gate_is_called_conclusive_only_where_its_interval_leaves_the_limit_outside(
    spread, threshold, policy, lang
):
    sheet = rn.assess(
        frame(spread=spread), gates=[gate(threshold=threshold)], undecided=policy, lang=lang
    )
    row = sheet.gates[sheet.gates["gate"] == "F"].iloc[0]
    outside = not row["low"] <= threshold <= row["high"]
    verdict = sheet.section("summary").blocks[0]
    said = f"{verdict.title} {verdict.lead} {sheet.verdict}"
    sure = {"en": "This is conclusive", "zh": "可以确定"}[lang]
    if sure in said:
        assert outside
    words = {"en": "inconclusive", "zh": "尚无定论"}[lang]
    assert (words in said.lower()) == (row["outcome"] == "undecided")
    (table,) = sheet.section("gates").blocks
    own = next(cells for cells in table.rows if "F · " in str(cells[0]))
    assert (words in str(own[1])) == (row["outcome"] == "undecided")


@pytest.mark.parametrize(
    ("low", "says"), [(0.099, None), (0.1, "2"), (0.149, "2"), (0.1499, "2"), (0.15, "3")]
)
def test_how_many_times_a_limit_is_passed_is_never_rounded_up(low, says):
    sheet = rn.assess(
        frame().assign(noise_sensitivity=0.3), gates=[rn.Gate("N", "noise_sensitivity", "<=", 0.05)]
    )
    gates = sheet.gates.copy()
    gates.loc[gates["gate"] == "N", ["low", "high"]] = [low, 0.5]
    lead = replace(sheet, gates=gates).section("summary").blocks[0].lead
    found = re.search(r"is ([\d.]+) times the limit", lead)
    assert (None if found is None else found[1].split(".")[0]) == says
    if found is not None:
        assert float(found[1]) <= low / 0.05 + 1e-9


def test_a_difference_is_called_better_only_where_its_interval_is_beyond_zero():
    for shift, outcome in itertools.product((0.0, 0.004, 0.2), ("better", "worse")):
        sign = 1 if outcome == "better" else -1
        old, new = frame(spread=0.1).assign(system="old"), frame(spread=0.1).assign(system="new")
        rng = np.random.default_rng(4)
        for name in METRICS:
            new[name] = np.clip(old[name] + sign * shift + rng.normal(0, 0.03, len(old)), 0, 1)
        sheet = rn.assess(pd.concat([old, new]), candidate="new", baseline="old", gates=[])
        row = sheet.comparison[sheet.comparison["primary"]].iloc[0]
        finding = sheet.section("comparison").finding
        sure = not row["low"] <= 0 <= row["high"]
        assert ("Better than" in finding or "Worse than" in finding) <= sure
        if shift == 0.2:
            assert finding.startswith(
                {"better": "Better than old", "worse": "Worse than old"}[outcome]
            )


# Many questions


def test_ten_thousand_questions_say_how_many_stand_without_script():
    sheet = rn.assess(long_run(10_000, passages=400), gates=[])
    page = str(render_page(sheet.sections("questions"), title=""))
    read, data = Reader(page), island(page)
    assert len(read.samples) == 1000
    assert "1,000" in data["say"]["standing"]
    assert "10,000" in data["say"]["standing"]
    assert data["say"]["standing"] in read.text
    assert len(data["rest"]) == 9000
    assert data["all"] == 10_000
    (questions,) = sheet.section("questions").blocks
    listed = [row.key for row in questions.rows] + [cells[0] for cells, _ in data["rest"]]
    assert sorted(listed) == sorted(sheet.scores["sample_id"])
    assert len(page.encode()) < 5_000_000
    total = sheet.scores.set_index("sample_id")["weighted_score"]
    worst = [total[row.key] for row in questions.rows]
    assert max(worst) <= total.drop([row[0] for row in read.samples]).min() + 1e-12


@pytest.mark.parametrize(
    ("lang", "words"), [("en", "differs from the baseline by -0.2"), ("zh", "与基线之差为 -0.2")]
)
def test_the_verdict_on_a_failed_difference_says_that_it_is_one(lang, words):
    scores = np.linspace(0.5, 0.9, 40)
    ids = [f"q{place}" for place in range(40)]
    runs = [
        pd.DataFrame({"sample_id": ids, "faithfulness": scores - fall, "system": name})
        for name, fall in (("new", 0.2), ("old", 0.0))
    ]
    gates = [{"name": "kept", "metric": "faithfulness", "not_worse_than": "baseline", "by": 0.05}]
    sheet = rn.assess(pd.concat(runs), candidate="new", baseline="old", gates=gates, lang=lang)
    assert sheet.blocked
    assert words in sheet.verdict


def test_a_run_that_lost_everything_has_no_sentence_of_one_that_scored():
    """Nothing was measured: so nothing is below a threshold, and the gates of the input did fail."""
    columns = {"sample_id": [f"q{n}" for n in range(40)]}
    for metric in ("faithfulness", "answer_relevancy"):
        columns |= {metric: [None] * 40, f"{metric}__status": ["failed"] * 40}
    said = {
        "en": ("All 80 scores are missing", "0 of 40 answers have a score"),
        "zh": ("80 个得分全部缺失", "40 个回答都没有得分"),
    }
    for lang, sentences in said.items():
        sheet = rn.assess(
            pd.DataFrame(columns), metrics=["faithfulness", "answer_relevancy"], lang=lang
        )
        text = sheet.to_markdown()
        assert all(sentence in text for sentence in sentences)
        assert "No gates are set" not in text
        assert "below the threshold of at least" not in text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_has_the_difference_from_the_accepted_run(tmp_path, lang):
    """Alone, beside a baseline, not twice where both are one file, and with a note where nothing is in common."""
    rng = np.random.default_rng(1)
    accepted = pd.DataFrame(
        {"sample_id": [f"q{i}" for i in range(60)], "doc_name": [f"d{i // 4}" for i in range(60)]}
    ).assign(faithfulness=rng.uniform(0.6, 0.9, 60).round(3))
    runs = {
        "accepted": accepted,
        "before": accepted.assign(faithfulness=(accepted["faithfulness"] - 0.02).round(3)),
        "now": accepted.assign(faithfulness=(accepted["faithfulness"] - 0.08).round(3)),
        "other": accepted.assign(sample_id="x" + accepted["sample_id"]),
    }
    for name, table in runs.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    now, before = str(tmp_path / "now.csv"), str(tmp_path / "before.csv")
    how = {"lang": lang, "anchor": str(tmp_path / "accepted.csv")}
    said = texts.load(lang)("compare.anchor", head="")
    for baseline, value in ((None, None), (before, -0.06)):
        sheet = rn.assess(now, **how, baseline=baseline)
        row = sheet.accepted[sheet.accepted["primary"]].iloc[0]
        assert row["value"] == pytest.approx(-0.08)
        assert (sheet.comparison is None) is (baseline is None)
        page = sheet.to_markdown()
        assert said.strip() in page
        assert "−0.080" in page
        assert value is None or "−0.060" in page
    assert rn.assess(now, **how, baseline=how["anchor"]).accepted is None
    apart = rn.assess(now, lang=lang, anchor=str(tmp_path / "other.csv"))
    assert apart.accepted is None
    assert apart.notes.loc[apart.notes["code"] == "not_compared", "text"].str.contains("q0").all()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_answers_that_do_not_pass_their_rubric_are_counted_and_nothing_is_without_threshold(
    lang,
):
    rubric = {
        "low": 1,
        "high": 10,
        "dimensions": [{"name": "polish"}, {"name": "tone"}],
        "passing": {"metric": "polish", "op": ">=", "threshold": 7},
    }
    scores = frame(30)[["sample_id", "question", "doc_name"]]
    scores = scores.assign(polish=[*range(1, 11)] * 3, tone=9.0)
    scores.loc[0, "polish"] = np.nan
    metrics = [rn.Metric("polish", 1, 10), rn.Metric("tone", 1, 10)]
    sheet = rn.assess(scores, rubric=rubric, metrics=["polish", "tone"], lang=lang)
    failing, n = (scores["polish"] < 7).sum(), scores["polish"].notna().sum()
    words = {"n": str(failing), "all": str(n), "metric": "polish", "at": "7"}
    finding = sheet.section("questions").finding
    assert finding == load(lang)("questions.not_passing", **words)
    plain = rn.assess(scores, metrics=metrics, lang=lang).section("questions").finding
    assert plain == load(lang)("questions.plain", n="30")
