from __future__ import annotations

import io
import math
import os
import re
import traceback
import unicodedata
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

import ragnb as rn
import ragnb.scenario
from ragnb.errors import RagnbError
from ragnb.scenario import Bands, Scenario, load_scenario
from ragnb.scenario.source import read_text
from ragnb.schema import METRICS, Anchor, Dimension, Gate, Metric, Profile, Rubric
from ragnb.schema.secrets import holds_secret, masked

CANARY = "sk-canary-0123456789abcdefABCDEF"


@pytest.fixture
def folder(tmp_path):
    for name in ("scores.csv", "traces.jsonl", "gold.json", "差旅报销.csv"):
        (tmp_path / name).write_text("faithfulness\n0.5\n", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    return tmp_path


def load(folder: Path, text: str | bytes, name: str = "s.yaml") -> Scenario:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_scenario(file)


def refusal(folder: Path, text: str | bytes) -> str:
    with pytest.raises(RagnbError) as caught:
        load(folder, text)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


def refused_at(folder: Path, text: str | bytes, line: int, key: str | None, *words: str) -> None:
    message = refusal(folder, text)
    where = f"{folder / 's.yaml'}, line {line}" + (f", key {key!r}" if key else "") + ": "
    assert any(row.startswith(where) for row in message.splitlines()), message
    for word in words:
        assert word in message


# What a scenario is


def test_every_default_is_the_documented_one(folder):
    scenario = load(folder, "scores: scores.csv\n")
    assert scenario.model_dump() == {
        "name": "s",
        "title": None,
        "lang": "en",
        "scores": folder / "scores.csv",
        "traces": None,
        "cases": None,
        "ratings": None,
        "labels_planned": None,
        "gold": None,
        "documents": None,
        "generation": {
            "questions": 20,
            "unanswerable": 0.2,
            "multi_passage": 0.2,
            "personas": (),
            "seed": 0,
        },
        "system": {"name": None, "retrieve": None, "generate": None, "improve": None},
        "encoding": "utf-8",
        "columns": {},
        "where": {},
        "doc": "doc_name",
        "cluster": None,
        "slices": None,
        "rubric": None,
        "metrics": None,
        "metric_weights": {},
        "doc_weights": {},
        "orient": True,
        "rescale": False,
        "level": 0.95,
        "candidate": None,
        "baseline": None,
        "anchor": None,
        "expect": None,
        "allow": {"lines": 0.0, "questions": 0.05, "cells": 0.1},
        "blank": "lost",
        "sample": False,
        "gates": None,
        "undecided": "value",
        "documents_may_fail": False,
        "corpus": "sample",
        "no_data": "fail",
        "refusal": ("not in context",),
        "patterns": (),
        "partial": (),
        "citations": "auto",
        "split": "space",
        "containment": "auto",
        "join": "auto",
        "bands": {"good": 0.7, "watch": 0.5},
        "llm_profiles": {},
    }


FULL = """\
name: travel
title: 差旅报销评测
lang: zh
scores: 差旅报销.csv
traces: traces.jsonl
cases: sub/../scores.csv
ratings: scores.csv
labels_planned: 600
gold: gold.json
documents: sub
generation: {questions: 40, unanswerable: 0.1, multi_passage: 0, personas: [新员工], seed: 1}
system: {name: mine, retrieve: "rag.search:find", generate: "rag:answer"}
encoding: gb18030
columns: {问题: question}
where: {lang: NO, turn: 2, share: 0.5, kept: true}
doc: source
cluster: conversation
slices: [kind, 语言]
rubric:
  low: 0
  high: 5
  decimals: false
  dimensions:
  - {name: 语气, weight: .5, description: 对顾客是否客气, bands: {4-5: 客气, 0-3: 生硬}}
  - name: faithful
    bands:
      "5": |
        every statement
        stands in a passage
      0: invented
  passing: {metric: 语气, op: ">=", threshold: 3}
  anchors:
  - {question: 几点开门？, contexts: [九点开门。], answer: 自己看。, scores: {语气: 0, faithful: 5}, reason: 生硬}
metrics:
- 语气
- faithfulness
- {name: gpt_relevance, low: 1, high: 5, better: higher, kind: ordinal}
- {name: latency, low: 0, high: .inf, better: lower}
metric_weights: {faithfulness: 2, gpt_relevance: .5}
doc_weights: {322_双源CT成像技术.pdf: 0.25, "0123": 1.0e-3}
orient: false
rescale: true
level: 0.9
candidate: strong
baseline: scores.csv
anchor: scores.csv
expect: 300
allow: {lines: 0.01, questions: 0.1, cells: 0.2}
blank: not_applicable
sample: true
gates:
- {name: G1, metric: faithfulness, op: ">=", threshold: 0.8}
undecided: block
documents_may_fail: true
corpus: complete
no_data: skip
refusal: [资料中没有, NO]
patterns: ["抱歉.{0,20}无法"]
partial: ["不过|however"]
citations: brackets
split: comma
containment: latin
join: question
bands: {good: 0.8, watch: 0.6}
llm_profiles:
  judge: {base_url: "http://127.0.0.1:8080/v1", model: small, api_key_env: JUDGE_KEY}
  answer: {base_url: "https://host/v1", model: "7b"}
"""


def test_every_option_is_read(folder):
    got = load(folder, FULL)
    assert (got.name, got.title, got.lang, got.encoding) == (
        "travel",
        "差旅报销评测",
        "zh",
        "gb18030",
    )
    assert (got.scores, got.traces) == (folder / "差旅报销.csv", folder / "traces.jsonl")
    assert (got.gold, got.cases, got.ratings) == (
        folder / "gold.json",
        *[folder / "scores.csv"] * 2,
    )
    assert got.columns == {"问题": "question"}
    assert got.where == {"lang": "NO", "turn": 2, "share": 0.5, "kept": True}
    assert [type(v) for v in got.where.values()] == [str, int, float, bool]
    assert (got.doc, got.cluster) == ("source", "conversation")
    assert got.slices == ("kind", "语言")
    assert got.rubric == Rubric(
        low=0,
        high=5,
        decimals=False,
        dimensions=(
            Dimension(
                name="语气",
                weight=0.5,
                description="对顾客是否客气",
                bands={"4-5": "客气", "0-3": "生硬"},
            ),
            Dimension(
                name="faithful",
                bands={"5": "every statement\nstands in a passage", "0": "invented"},
            ),
        ),
        passing=Gate("passing", "语气", ">=", 3.0),
        anchors=(
            Anchor(
                question="几点开门？",
                contexts=("九点开门。",),
                answer="自己看。",
                reason="生硬",
                scores={"语气": 0.0, "faithful": 5.0},
            ),
        ),
    )
    assert list(got.declared) == ["语气", "faithful", "gpt_relevance", "latency"]
    assert got.declared["语气"] == Metric(
        "语气", 0, 5, kind="ordinal", family="rubric", weight=0.5, needs=("answer", "question")
    )
    own = Metric("gpt_relevance", 1, 5, kind="ordinal"), Metric("latency", 0, math.inf, "lower")
    assert got.metrics == ("语气", "faithfulness", *own)
    assert got.metric_weights == {"faithfulness": 2.0, "gpt_relevance": 0.5}
    assert got.doc_weights == {"322_双源CT成像技术.pdf": 0.25, "0123": 0.001}
    assert (got.orient, got.rescale, got.level, got.no_data) == (False, True, 0.9, "skip")
    assert (got.candidate, got.baseline) == ("strong", folder / "scores.csv")
    assert got.gates == (Gate("G1", "faithfulness", ">=", 0.8),)
    assert got.refusal == ("资料中没有", "NO")
    assert got.patterns == ("抱歉.{0,20}无法",)
    assert got.partial == ("不过|however",)
    assert (got.split, got.containment, got.join) == ("comma", "latin", "question")
    assert got.bands == Bands(good=0.8, watch=0.6)
    assert got.llm_profiles == {
        "judge": Profile(
            base_url="http://127.0.0.1:8080/v1", model="small", api_key_env="JUDGE_KEY"
        ),
        "answer": Profile(base_url="https://host/v1", model="7b"),
    }


def test_full_scenario_names_every_field():
    keys = set(re.findall(r"^(\w+):", FULL, re.MULTILINE))
    assert keys == set(Scenario.__pydantic_fields__)


def test_path_and_text_are_those_of_the_file(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    (folder / "s.yaml").write_bytes(b"\xef\xbb\xbfscores: scores.csv\r\nlevel: 0.9\r\n")
    scenario = load_scenario(Path(folder.name) / "s.yaml")
    assert scenario.path == folder / "s.yaml"
    assert scenario.text == "scores: scores.csv\r\nlevel: 0.9\r\n"
    assert scenario.level == 0.9


def test_frozen(folder):
    scenario = load(folder, "scores: scores.csv\n")
    with pytest.raises(ValueError, match="frozen"):
        scenario.level = 0.5


def test_keys_without_a_value_are_keys_left_out(folder):
    scenario = load(
        folder, "scores: scores.csv\nmetric_weights:\ndoc_weights: ~\nlang: null\nname:\n"
    )
    assert (scenario.metric_weights, scenario.doc_weights, scenario.lang, scenario.name) == (
        {},
        {},
        "en",
        "s",
    )
    assert load(folder, "scores: scores.csv\ngates: []\n").gates == (), "which differs from none"


def test_a_link_keeps_its_own_name_and_inputs_may_lie_above_the_scenario(folder):
    os.symlink(folder / "scores.csv", folder / "sub" / "linked.csv")
    assert load(folder, "scores: sub/linked.csv\n").scores == folder / "sub" / "linked.csv"
    assert load(folder / "sub", "scores: ../scores.csv\n").scores == folder / "scores.csv"


def test_in_memory_paths_are_of_the_working_directory(folder, monkeypatch):
    monkeypatch.chdir(folder)
    scenario = Scenario(scores="scores.csv", gold=Path("gold.json"), metrics=[Metric("mine", 1, 5)])
    assert (scenario.scores, scenario.gold) == (folder / "scores.csv", folder / "gold.json")
    assert (scenario.path, scenario.text, scenario.name) == (None, None, "scores")


def test_in_memory_refusals_are_one_error_with_keys(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(RagnbError) as caught:
        Scenario(scores="scores.csv", levle=0.9, metric_weights={"faithfulness": "2"})
    assert "key 'levle': is not known; did you mean 'level'?" in str(caught.value)
    assert "key 'metric_weights.faithfulness': '2' is not a number" in str(caught.value)
    assert caught.value.__context__ is None


def test_settings_without_files_are_for_frames():
    scenario = Scenario.without_files(level=0.8)
    assert scenario.replace(lang="zh").level == 0.8
    with pytest.raises(RagnbError, match="at least one of scores, traces, cases, ratings"):
        Scenario(level=0.8)


# Refusals of values


BASE = "scores: scores.csv\n"


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ("true", "true is not a number"),
        ("'0.3'", "'0.3' is not a number"),
        ("high", "'high' is not a number"),
        ("", "nothing is not a number"),
        (".nan", "nan is not finite"),
        (".inf", "inf is not finite"),
        ("-.inf", "inf is not finite"),
        ("-0.1", "-0.1 must be at least 0"),
        ("1.0e999", "inf is not finite"),
        ("9" * 390, "too large"),
        ("9" * 5000, "plain decimal number"),
        ("0123", "'0123' is a number to some YAML parsers"),
        ("1e3", "'1e3' is a number to some YAML parsers"),
        ("1_000", "plain decimal number"),
        ("0x1F", "plain decimal number"),
        ("0o17", "plain decimal number"),
        ("1:30", "plain decimal number"),
        ("[1]", "a list is not a number"),
    ],
)
@pytest.mark.parametrize("key", ["metric_weights", "doc_weights"])
def test_a_weight_is_a_finite_number_of_at_least_0(folder, key, weight, words):
    text = f"{BASE}{key}:\n  faithfulness: 1\n  差旅.pdf: {weight}\n"
    refused_at(folder, text, 4, f"{key}.差旅.pdf", words)


HUGE = "9" * 400  # a whole number for YAML and Python, and more than a float can hold


@pytest.mark.parametrize("number", [HUGE, f"-{HUGE}", f"{HUGE}.5", "9" * 5000])
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("gates: {faithfulness: #}", "gates"),
        ("gates: {faithfulness: 0.8, context_recall: #}", "gates"),
        ("gates: faithfulness>=#", "gates"),
        ("gates: [faithfulness>=#]", "gates[0]"),
        ("gates: [{name: G, metric: faithfulness, min: #}]", "gates[0].min"),
        ("gates: [{name: G, metric: faithfulness, op: '>=', threshold: #}]", "gates[0].threshold"),
        (
            "gates: [{name: G, metric: faithfulness, not_worse_than: baseline, by: #}]",
            "gates[0].by",
        ),
        ("metrics: [{name: tone, low: #, high: 5}]", "metrics[0]"),
        ("metrics: [{name: tone, weight: #}]", "metrics[0].weight"),
        ("level: #", "level"),
        ("bands: {good: #}", "bands.good"),
        ("allow: {cells: #}", "allow.cells"),
        ("sample: #", "sample"),
        ("expect: #", "expect"),
        ("ratings: scores.csv\nlabels_planned: #", "labels_planned"),
        ("generation: {questions: #}", "generation.questions"),
        ("rubric: {low: #}", "rubric"),
        ("rubric: {dimensions: [{name: accuracy, weight: #}]}", "rubric.dimensions[0].weight"),
        (
            "rubric: {passing: {metric: accuracy, op: '>=', threshold: #}}",
            "rubric.passing.threshold",
        ),
    ],
)
def test_a_number_of_hundreds_of_digits_is_refused_in_words(folder, text, key, number):
    text = text.replace("#", number)
    with pytest.raises(RagnbError) as refused:
        load(folder, f"{BASE}{text}\n")
    said = str(refused.value)
    assert "s.yaml, line " in said
    assert key.partition("[")[0].partition(".")[0] in said
    assert len(said) < 1000  # the digits are not repeated
    # What is proposed instead can be written.
    assert ".inf" not in said
    if number == HUGE:
        assert f"key '{key}" in said


@pytest.mark.parametrize("most", [("expect", 10**12), ("labels_planned", 10**12)])
def test_a_count_has_an_end(folder, most):
    key, number = most
    head = f"{BASE}ratings: scores.csv\n"
    assert getattr(load(folder, f"{head}{key}: {number}\n"), key) == number
    refused_at(folder, f"{head}{key}: {number + 1}\n", 3, key, "must be at most 1e+12")


def test_the_weight_of_an_unknown_metric_is_refused_where_it_stands(folder):
    text = f"{BASE}metric_weights:\n  faithfulness: 1\n  context_recal: 10\n"
    refused_at(folder, text, 4, "metric_weights.context_recal", "did you mean 'context_recall'")
    own = "metrics:\n  - {name: tone, low: 1, high: 5}\nrubric:\n  dimensions: [{name: 语气}, {name: 清晰}]\n"
    own += "  passing: {metric: 语气, op: '>=', threshold: 6}\n"
    weights = {"tone": 2.0, "语气": 3.0, "accuracy": 0.0}
    got = load(folder, f"{BASE}{own}metric_weights: {{tone: 2, 语气: 3, accuracy: 0}}\n")
    assert got.metric_weights == weights
    kept = got.replace(metrics=["faithfulness"])
    assert kept.metric_weights == weights
    assert "tone" not in kept.snapshot_text()


@pytest.mark.parametrize("weight", ["0", "1", "0.35", ".5", "5.", "+2", "1.0e-05", "1.5E+3"])
@pytest.mark.parametrize("key", ["metric_weights", "doc_weights"])
def test_plain_numbers_are_numbers(folder, key, weight):
    got = load(folder, f"{BASE}{key}: {{faithfulness: {weight}}}\n")
    assert getattr(got, key) == {"faithfulness": float(weight)}


@pytest.mark.parametrize(
    ("line", "key", "words"),
    [
        ("metric_weight: {a: 1}", "metric_weight", "did you mean 'metric_weights'"),
        ("metric_weights: 3", "metric_weights", "3 is not a mapping"),
        ("lang: NO", "lang", "'NO' is not known; (have: en, zh)"),
        ("orient: NO", "orient", "'NO' is neither true nor false"),
        ("rescale: 1", "rescale", "1 is neither true nor false"),
        ("level: 0", "level", "0 must lie above 0"),
        ("level: 95", "level", "95 must lie below 1"),
        ("level: .nan", "level", "nan is not finite"),
        ("level: '0.9'", "level", "'0.9' is not a number"),
        ("name: 2024", "name", "2024 is not text"),
        ("name: ' '", "name", "blank"),
        ('title: "a\\u202eb"', "title", "U+202E"),
        ("no_data: ignore", "no_data", "'ignore' is not known; (have: fail, skip)"),
        ("split: coma", "split", "did you mean 'comma'?"),
        ("containment: lat", "containment", "did you mean 'latin'?"),
        ("join: id", "join", "(have: auto, question)"),
        ("encoding: utf8x", "encoding", "did you mean 'utf-8'?"),
        ("encoding: hex", "encoding", "not a text encoding"),
        ("columns: {a: question, b: question}", "columns.b", "'a' becomes 'question' too"),
        ("columns: {a: 1}", "columns.a", "1 is not text"),
        ("where: {a: [1]}", "where.a", "a list cannot be compared"),
        ("where: {a: .inf}", "where.a", "inf cannot be compared"),
        ("where: {a: ~}", "where.a", "nothing cannot be compared"),
        ("where: {a: 0123}", "where.a", "in quotes if it is text"),
        ("doc: ''", "doc", "blank"),
        ("cluster: 1", "cluster", "1 is not text"),
        ("slices: kind", "slices", "list"),
        ("metrics: faithfulness", "metrics", "'faithfulness' is not a list"),
        ("metrics: [faithfullness]", "metrics[0]", "did you mean 'faithfulness'?"),
        ("metrics: [clarity, clarity]", "metrics[1]", "twice"),
        ("metrics: [{name: m, low: 5, high: 1}]", "metrics[0]", "low must lie below high"),
        ("metrics: [{name: m, low: '1'}]", "metrics[0].low", "'1' is not a number"),
        ("metrics: [{name: m, high: true}]", "metrics[0].high", "true is not a number"),
        ("metrics: [{name: m, weight: -1}]", "metrics[0].weight", "-1 must be at least 0"),
        ("metrics: [{name: m, weight: .nan}]", "metrics[0].weight", "nan is not finite"),
        ("metrics: [{name: m, better: hgher}]", "metrics[0].better", "did you mean 'higher'?"),
        ("metrics: [{nme: m}]", "metrics[0].nme", "did you mean 'name'?"),
        ("metrics: [{low: 1}]", "metrics[0].name", "is required"),
        ("metrics: [{name: a__b}]", "metrics[0].name", "'__'"),
        ("metrics: [3]", "metrics[0]", "3 is not a mapping"),
        ("gates: G", "gates", "'G' is not a list"),
        (
            "gates: [{name: G, metric: a, op: '=>', threshold: 1}]",
            "gates[0].op",
            "did you mean '>='",
        ),
        (
            "gates: [{name: G, metric: a, op: '>=', threshold: '1'}]",
            "gates[0].threshold",
            "'1' is not a number",
        ),
        (
            "gates: [{name: G, metric: a, op: '>=', threshold: true}]",
            "gates[0].threshold",
            "true is not a number",
        ),
        (
            "gates: [{name: G, metric: a, op: '>=', threshold: .inf}]",
            "gates[0].threshold",
            "inf is not finite",
        ),
        ("gates: [{name: G, metric: a, op: '>='}]", "gates[0].threshold", "is required"),
        (
            "gates: [{name: G, metrc: a, op: '>=', threshold: 1}]",
            "gates[0].metrc",
            "did you mean 'metric'?",
        ),
        ("refusal: no answer", "refusal", "'no answer' is not a list"),
        ("refusal: ['']", "refusal[0]", "blank"),
        ("patterns: ['ok', '(a']", "patterns[1]", "unclosed group"),
        ("patterns: ['(?=a)b']", "patterns[0]", "look-around"),
        ("patterns: ['(a)\\1']", "patterns[0]", "backreferences"),
        ("patterns: ['a{1000}{1000}']", "patterns[0]", "size limit"),
        ("patterns: ['']", "patterns[0]", "blank"),
        ("partial: ['(?=a)b']", "partial[0]", "look-around"),
        ("bands: {good: 0.5}", "bands", "good=0.5 must lie above watch=0.5"),
        ("bands: {good: 7}", "bands.good", "7 must be at most 1"),
        ("bands: {watch: -1}", "bands.watch", "-1 must be at least 0"),
        ("bands: {goood: 0.9}", "bands.goood", "did you mean 'good'?"),
        ("bands: 0.7", "bands", "is not a mapping"),
        (
            "llm_profiles: {jduge: {base_url: 'http://h/', model: m}}",
            "llm_profiles.jduge",
            "'judge'?",
        ),
        (
            "llm_profiles: {judge: {base_url: 'http://h/'}}",
            "llm_profiles.judge.model",
            "is required",
        ),
        (
            "llm_profiles: {judge: {base_url: 'http://u:p@h/', model: m}}",
            "llm_profiles.judge.base_url",
            "http",
        ),
        ("traces: trace.jsonl", "traces", "did you mean 'traces.jsonl'? (have: "),
        ("gold: 差旅报消.csv", "gold", "did you mean '差旅报销.csv'?"),
        ("cases: sub", "cases", "is a folder"),
        ("cases: nowhere/a.csv", "cases", "no such folder"),
        ("cases: https://host/a.csv", "cases", "is an address"),
        ("cases: '*.csv'", "cases", "only scores and traces may be a pattern"),
        ("cases: [a.csv, b.csv]", "cases", "is a list of files; name one file, or a pattern"),
        ("cases: 3", "cases", "3 is not a path"),
        ('cases: "a\\0b"', "cases", "is not a path"),
        ("cases: ''", "cases", "is not a path"),
        (f"cases: {'a' * 300}.csv", "cases", "no file"),
    ],
)
def test_a_value_is_refused_with_file_line_key_and_next_step(folder, line, key, words):
    refused_at(folder, f"{BASE}# a comment\n\n{line}\n", 4, key, words)


TONE = "  dimensions: [{name: tone}]\n  passing: {metric: tone, op: '>=', threshold: 3}\n"
ANCHOR = "  anchors:\n  - {question: Q, answer: A, scores: "


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("rubric: tone\n", 2, "rubric", "'tone' is not a mapping"),
        ("rubric: {dimension: []}\n", 2, "rubric.dimension", "did you mean 'dimensions'?"),
        ("rubric:\n  dimensions: tone\n", 3, "rubric.dimensions", "is not a list"),
        ("rubric:\n  dimensions: []\n", 3, "rubric.dimensions", "{name: tone, weight: 1}"),
        (
            "rubric:\n  dimensions:\n  - wieght: 1\n",
            4,
            "rubric.dimensions[0].wieght",
            "did you mean 'weight'?",
        ),
        ("rubric:\n  dimensions:\n  - weight: 1\n", 4, "rubric.dimensions[0].name", "is required"),
        (
            "rubric:\n  dimensions: [{name: a, weight: '1'}]\n",
            3,
            "rubric.dimensions[0].weight",
            "without quotes",
        ),
        (
            "rubric:\n  dimensions: [{name: a, weight: true}]\n",
            3,
            "rubric.dimensions[0].weight",
            "not a number",
        ),
        (
            "rubric:\n  dimensions: [{name: a, weight: -1}]\n",
            3,
            "rubric.dimensions[0].weight",
            "at least 0",
        ),
        (
            "rubric:\n  dimensions: [{name: a, weight: .inf}]\n",
            3,
            "rubric.dimensions[0].weight",
            "not finite",
        ),
        (
            "rubric:\n  dimensions: [{name: a, weight: 0}]\n",
            3,
            "rubric.dimensions",
            "positive weight",
        ),
        ("rubric:\n  dimensions: [{name: ' '}]\n", 3, "rubric.dimensions[0].name", "blank"),
        ("rubric:\n  dimensions: [{name: a__b}]\n", 3, "rubric.dimensions[0].name", "'__'"),
        (
            "rubric:\n  dimensions: [{name: question}]\n",
            3,
            "rubric.dimensions[0].name",
            "ragnb column",
        ),
        (
            "rubric:\n  dimensions: [{name: Reason}]\n",
            3,
            "rubric.dimensions[0].name",
            "a field of the reply",
        ),
        (
            'rubric:\n  dimensions: [{name: "a\\u200bb"}]\n',
            3,
            "rubric.dimensions[0].name",
            "invisible",
        ),
        (
            "rubric:\n  dimensions:\n  - name: Tone\n  - name: ｔone\n",
            5,
            "rubric.dimensions[1].name",
            "twice",
        ),
        (
            "rubric:\n  dimensions: [{name: a, bands: [x]}]\n",
            3,
            "rubric.dimensions[0].bands",
            "not a mapping",
        ),
        (
            "rubric:\n  dimensions:\n  - name: a\n    bands:\n      10: ''\n",
            6,
            "rubric.dimensions[0].bands.10",
            "blank",
        ),
        (f"rubric:\n{TONE}  low: '1'\n", 5, "rubric.low", "'1' is not a number"),
        (f"rubric:\n{TONE}  low: 10\n", 5, "rubric.low", "low must lie below high"),
        (
            f"rubric:\n{TONE}  decimals: NO\n",
            5,
            "rubric.decimals",
            "'NO' is neither true nor false",
        ),
        (
            "rubric:\n  dimensions: [{name: tone}]\n",
            2,
            "rubric.passing.metric",
            "'accuracy' is not a dimension; (have: tone). Or set the passing score: passing: {metric:",
        ),
        (
            "rubric:\n  high: 5\n",
            2,
            "rubric.passing.threshold",
            "7 is outside the scale 1 to 5; give a score",
        ),
        (
            "rubric:\n  passing: {metric: acuracy, op: '>=', threshold: 8}\n",
            3,
            "rubric.passing.metric",
            "'accuracy'?",
        ),
        (
            "rubric:\n  passing: {metric: accuracy, op: '<=', threshold: 8}\n",
            3,
            "rubric.passing.op",
            "write '>='",
        ),
        (
            "rubric:\n  passing: {metric: accuracy, op: '>=', threshold: '8'}\n",
            3,
            "rubric.passing.threshold",
            "not a number",
        ),
        (
            "rubric:\n  passing: {metric: accuracy, op: '>='}\n",
            3,
            "rubric.passing.threshold",
            "is required",
        ),
        (
            f"rubric:\n{TONE}{ANCHOR}{{tone: 11}}}}\n",
            6,
            "rubric.anchors[0].scores.tone",
            "which is 1 to 10",
        ),
        (
            f"rubric:\n{TONE}  decimals: false\n{ANCHOR}{{tone: 3.5}}}}\n",
            7,
            "rubric.anchors[0].scores.tone",
            "in whole numbers",
        ),
        (
            f"rubric:\n{TONE}{ANCHOR}{{tne: 3, tone: 3}}}}\n",
            6,
            "rubric.anchors[0].scores.tne",
            "mean 'tone'?",
        ),
        (f"rubric:\n{TONE}{ANCHOR}{{}}}}\n", 6, "rubric.anchors[0].scores", "no score for 'tone'"),
        (
            f"rubric:\n{TONE}{ANCHOR}{{tone: '3'}}}}\n",
            6,
            "rubric.anchors[0].scores.tone",
            "not a number",
        ),
        (
            f"rubric:\n{TONE}{ANCHOR}{{tone: 3}}, context: [x]}}\n",
            6,
            "rubric.anchors[0].context",
            "'contexts'?",
        ),
        (
            f"rubric:\n{TONE}metrics: [{{name: tone, low: 1, high: 5}}]\n",
            5,
            "metrics[0]",
            "give its name",
        ),
        (f"rubric:\n{TONE}metrics: [toen]\n", 5, "metrics[0]", "did you mean 'tone'?"),
    ],
)
def test_a_rubric_is_refused_with_file_line_key_and_next_step(folder, text, line, key, words):
    refused_at(folder, BASE + text, line, key, words)


def test_a_rubric_that_is_refused_casts_no_doubt_on_the_metrics(folder):
    text = f"{BASE}rubric:\n  dimensions: [{{name: tone}}]\nmetrics: [tone]\n"
    assert refusal(folder, text).count("\n") == 0


def test_a_rubric_survives_a_patch_of_the_weights(folder):
    load(folder, FULL)
    before = load_scenario(folder / "s.yaml").rubric
    changed = ragnb.scenario.patch_scenario(folder / "s.yaml", metric_weights={"语气": 3.0})
    assert changed == ["metric_weights.语气"]
    after = load_scenario(folder / "s.yaml")
    assert (after.rubric, after.metric_weights["语气"]) == (before, 3.0)
    again = load(folder, after.snapshot_text())
    assert again.rubric == before


def test_all_findings_stand_in_one_message(folder):
    text = f"{BASE}levle: 1\nlang: xx\nbands:\n  watch: 2\n"
    refused_at(folder, text, 2, "levle", "'level'")
    refused_at(folder, text, 3, "lang", "have: en, zh")
    refused_at(folder, text, 5, "bands.watch", "at most 1")


def test_a_long_list_of_findings_is_cut_and_counted(folder):
    message = refusal(folder, BASE + "".join(f"key{i}: 1\n" for i in range(25)))
    assert message.endswith("… and 15 more")


def test_patterns_that_hang_a_backtracking_engine_do_not_hang_this_one(folder):
    import polars as pl

    patterns = ["(a+)+$", "^(a|aa)*$", r"(\w+\s?)*x", r"^(([a-z])+.)+[A-Z]([a-z])+$"]
    listed = "".join(f"- '{p}'\n" for p in patterns)
    assert load(folder, f"{BASE}patterns:\n{listed}").patterns == tuple(patterns)
    hostile = pl.Series(["a" * 100_000 + "!"])
    assert [hostile.str.contains(p).to_list() for p in patterns] == [[False]] * 4


# Refusals of YAML


GATE = "- {name: G1, metric: a, op: '>=', threshold: 1}\n"
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
BOMB += "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10))
DEEP = "nested deeper than 12 levels"


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        (f"{BASE}gates:\n{GATE}{GATE}", 4, "gates[1].name", "another gate"),
        (BOMB, 1, "a0", "aliases"),
        pytest.param("where: " + "[" * 40, 1, "where", DEEP, id="deep in a key"),
        pytest.param("[" * 100_000, 1, None, DEEP, id="deep lists"),
        pytest.param("{a: " * 50_000, 1, "a", DEEP, id="deep mappings"),
        pytest.param("- " * 100_000, 1, None, DEEP, id="deep items"),
        pytest.param("lang: zh\ntitle: 差旅报销\n".encode("gbk"), 2, None, "GBK", id="GBK"),
        pytest.param("lang: zh\n".encode("utf-16"), 1, None, "UTF-16", id="UTF-16"),
        pytest.param(b"lang: zh\n\n# \xff\xff\n", 3, None, "not UTF-8;", id="no UTF-8"),
        (b"\xef\xbb\xbfscores: scores.csv\r\n\r\nlang: xx\r\n", 3, "lang", "have: en, zh"),
        ("", 1, None, "a scenario is a mapping"),
        ("# nothing\n", 1, None, "a scenario is a mapping"),
        ("- a\n- b\n", 1, None, "a scenario is a mapping"),
        ("just words\n", 1, None, "a scenario is a mapping"),
        ("lang: en\nlevel: 0.9\nlang: zh\n", 3, "lang", "twice, first on line 1"),
        (
            "doc_weights:\n  café: 1\n  cafe\u0301: 2\n",
            3,
            "doc_weights.cafe\u0301",
            "twice, first on line 2",
        ),
        ("title: &a x\n", 1, "title", "aliases"),
        ("lang: en\ntitle: *a\n", 2, "title", "aliases"),
        ("title: &a x\nname: &a y\n", 1, "title", "aliases"),
        ("where: {a: .5e3}\n", 1, "where.a", "a number to some YAML parsers"),
        ("title: !!python/object:os.system x\n", 1, "title", "tags"),
        ("title: !!str x\n", 1, "title", "tags"),
        ("title: ! x\n", 1, "title", "tags"),
        ("where: !x {a: 1}\n", 1, "where", "tags"),
        ("doc_weights:\n  <<: {a: 1}\n", 2, "doc_weights.<<", "merge keys"),
        ("%YAML 1.1\n---\nlang: en\n", 1, None, "directives"),
        ("# ours\n\n%TAG !e! tag:x\n---\nlang: en\n", 3, None, "directives"),
        ("lang: en\n---\nlang: zh\n", 2, None, "second YAML document"),
        ("? [a]\n: 1\n", 1, None, "a key must be a word"),
        ("where: {? {a: 1} : 2}\n", 1, "where", "a key must be a word"),
        (": 1\n", 1, None, "a key must be a word"),
        ("lang: en\ntitle: 'x\n", 2, "title", "not valid YAML"),
        ("lang: en\ntitle: a: b\n", 2, "title", "not valid YAML"),
        ("lang: en\n\ttitle: a\n", 2, "title", "a tab cannot indent"),
        ("lang: en\nwhere: {a: 1\n", 2, "where", "not valid YAML"),
        ("gates:\n- name: G\n  op: >=\n", 3, "op", 'op: ">="'),
        ("lang: en\ntitle: a\x00\n", 2, "title", "does not allow"),
        ('title: "\\UFFFFFFFF"\n', 1, None, "does not allow"),
        ("le\u202evel: 0.9\n", 1, "level", "U+202E"),
        ("lang: en\nlev\u200bel: 0.9\n", 2, "level", "U+200B"),
        (
            'metric_weights:\n  "faith\\u2066fulness": 1\n',
            2,
            "metric_weights.faithfulness",
            "U+2066",
        ),
        ("doc_weights:\n  a\ufe0f.pdf: 1\n", 2, "doc_weights.a.pdf", "U+FE0F"),
        ("doc_weights:\n  a\u3164.pdf: 1\n", 2, "doc_weights.a.pdf", "U+3164"),
    ],
)
def test_yaml_that_surprises_is_refused_with_file_line_and_key(folder, text, line, key, words):
    refused_at(folder, text, line, key, words)


def test_size_is_capped(folder):
    assert "larger than 1,000,000 bytes" in refusal(folder, "#" * 1_000_001)
    assert load(folder, BASE + "#" * 900_000).level == 0.95


def test_no_yes_and_dates_are_text(folder):
    scenario = load(folder, f"{BASE}refusal: [NO, yes, on, Off, y, 2024-01-01, =, nan]\n")
    assert scenario.refusal == ("NO", "yes", "on", "Off", "y", "2024-01-01", "=", "nan")


def test_keys_are_text_as_written(folder):
    got = load(
        folder, f"{BASE}doc_weights: {{0123: 1, 1e3: 2, NO: 3, null: 4, true: 5, 1.10: 6}}\n"
    )
    assert list(got.doc_weights) == ["0123", "1e3", "NO", "null", "true", "1.10"]


def test_a_scenario_that_is_not_there_is_refused_with_near_names(folder):
    load(folder, BASE, "quickstart.yaml")
    with pytest.raises(RagnbError, match=r"no scenario at .*; did you mean 'quickstart.yaml'"):
        load_scenario(folder / "quickstrat.yaml")
    with pytest.raises(RagnbError, match="no scenario at"):
        load_scenario(folder)
    with pytest.raises(RagnbError, match="cannot read the scenario"):
        load_scenario(folder / "nowhere" / "s.yaml")


@given(
    st.text(
        alphabet=st.sampled_from("ab:-?[]{}#&*!|>'\"%@` \n\t,.~0123e\\差\u202e\x00"), max_size=40
    )
)
def test_any_text_loads_or_is_refused_by_us(tmp_path_factory, text):
    folder = tmp_path_factory.getbasetemp()
    try:
        load(folder, text)
        pytest.fail("no such text names an input")
    except RagnbError as error:
        message = str(error)
    assert message.startswith(str(folder))


@given(st.text(alphabet=st.sampled_from("abN~-+.0123eExXo_:infaultr"), max_size=8))
def test_a_plain_word_is_what_yaml_1_2_makes_of_it(text):
    try:
        found = read_text(f"v: {text}\n", Path("t.yaml")).data
        expected = YAML(typ="safe", pure=True).load(f"v: {text}\n")
    except (RagnbError, YAMLError, ValueError, IndexError):  # the library stumbles over "._"
        return
    assert repr(found) == repr(expected)


# Keys of endpoints


PROFILE = "base_url: 'http://h/v1', model: m"


@pytest.mark.parametrize(
    "text",
    [
        f"llm_profiles: {{judge: {{{PROFILE}, api_key: {CANARY}}}}}",
        f"llm_profiles: {{judge: {{{PROFILE}, apikey: {CANARY}}}}}",
        f"llm_profiles: {{judge: {{{PROFILE}, openai_api_key: {CANARY}}}}}",
        f"llm_profiles: {{judge: {{{PROFILE}, api_key_env: {CANARY}}}}}",
        f"llm_profiles: {{judge: {{{PROFILE}, {CANARY}: 1}}}}",
        f"llm_profiles: {{judge: {{base_url: 'http://h/v1?key={CANARY}', model: m}}}}",
        f"llm_profiles: {{judge: {{base_url: 'http://{CANARY}@h/v1', model: m}}}}",
        f"llm_profiles: {{judge: {{base_url: 'http://h/v1', model: {CANARY}}}}}",
        f"llm_profiles: {{judge: {{base_url: [{CANARY}], model: m}}}}",
        f"llm_profiles: {{judge: {CANARY}}}",
        f"llm_profiles: {{{CANARY}: 1}}",
        f"llm_profiles: {CANARY}",
        f"llm_profiles: [{CANARY}]",
        f"api_key: {CANARY}",
        f"{CANARY}: 1",
        f"{CANARY}: 1\n{CANARY}: 2",
        f"judge:\n  api_key: {CANARY}",
        f"metric_weights: {{faithfulness: {CANARY}}}",
        f"lang: {CANARY}",
        f"encoding: {CANARY}",
        f"split: {CANARY}",
        f"traces: {CANARY}",
        f"metrics: [{CANARY}]",
        f"metrics: [{{name: m, better: {CANARY}}}]",
        f"gates: [{CANARY}]",
        f"patterns: ['({CANARY}']",
        f"llm_profiles: {{judge: {{api_key: '{CANARY}",
        f"llm_profiles: {{judge: {{api_key: *{CANARY}",
        f"llm_profiles: {{judge: {{api_key: &{CANARY} x",
        f"llm_profiles: {{judge: {{api_key: !{CANARY} x",
        f"  api_key: {CANARY}: {CANARY}",
        f'title: "{CANARY}\\q"',
        f"title: {CANARY}\x00",
    ],
)
def test_a_key_is_in_no_message_and_no_frame(folder, text):
    file = folder / "s.yaml"
    file.write_text(f"{BASE}{text}\n", encoding="utf-8")
    with pytest.raises(RagnbError) as caught:
        load_scenario(file)
    error = caught.value
    told = "".join(traceback.TracebackException.from_exception(error.with_traceback(None)).format())
    assert "canary" not in told + str(error) + repr(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_a_key_is_in_no_local_variable_of_the_traceback(folder):
    file = folder / "s.yaml"
    file.write_text(
        f"{BASE}llm_profiles: {{judge: {{{PROFILE}, api_key: {CANARY}}}}}\n", encoding="utf-8"
    )
    with pytest.raises(RagnbError) as caught:
        load_scenario(file)
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    ours = [
        f
        for f in frames
        if Path(f.f_code.co_filename).is_relative_to(Path(ragnb.scenario.__file__).parent)
    ]
    assert len(ours) == 1
    assert "canary" not in repr([f.f_locals for f in ours])


def test_a_literal_key_in_memory_is_in_no_message():
    with pytest.raises(RagnbError) as caught:
        Scenario.without_files(
            llm_profiles={"judge": {"base_url": "http://h/", "model": "m", "api_key": CANARY}}
        )
    assert "api_key_env" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None


def test_ordinary_names_are_not_taken_for_keys():
    names = [
        "task-force-report-2024.pdf",
        "322_双源CT成像技术.pdf",
        "gpt-4o-mini",
        "hf-internal-testing/tiny",
    ]
    assert [masked(name) for name in names if not holds_secret(name)] == names


# Overrides


def test_replace_takes_any_field_and_leaves_the_file_and_the_first_scenario_alone(folder):
    first = load(folder, FULL)
    second = first.replace(level=0.5, scores="scores.csv", metrics=["clarity"], gates=[])
    assert (second.level, second.scores, second.metrics, second.gates) == (
        0.5,
        folder / "scores.csv",
        ("clarity",),
        (),
    )
    changed = {"level", "scores", "metrics", "gates"}
    assert first.model_dump(exclude=changed) == second.model_dump(exclude=changed)
    assert (first.level, first.scores) == (0.9, folder / "差旅报销.csv")
    assert (second.path, second.text) == (first.path, FULL)
    assert (
        second.replace(traces="../" + folder.name + "/traces.jsonl").traces
        == folder / "traces.jsonl"
    )


@pytest.mark.parametrize("blank", [None, "", "  "])
def test_a_blank_override_means_the_value_of_the_file(folder, blank):
    first = load(folder, FULL)
    blanks = dict.fromkeys(Scenario.__pydantic_fields__, blank)
    assert first.replace(**blanks).model_dump() == first.model_dump()
    weights = {"faithfulness": blank, "clarity": 3, "accuracy": blank}
    assert first.replace(metric_weights=weights).metric_weights == {
        "faithfulness": 2.0,
        "clarity": 3.0,
    }
    assert first.replace(metric_weights={}).metric_weights == {}


def test_replace_refuses_what_the_file_could_not_hold(folder):
    scenario = load(folder, BASE)
    for words, override in {
        r"setting='metric_weight' is not known; did you mean 'metric_weights'": {
            "metric_weight": {"a": 1}
        },
        "key 'metric_weights.a': true is not a number": {"metric_weights": {"a": True}},
        "key 'doc_weights': 'a=1' is not a mapping": {"doc_weights": "a=1"},
        "key 'scores': no file at 'score.csv'; did you mean 'scores.csv'": {"scores": "score.csv"},
    }.items():
        with pytest.raises(RagnbError, match=words):
            scenario.replace(**override)


# Snapshot


def test_a_snapshot_loads_to_the_same_settings(folder):
    scenario = load(folder, FULL)
    run = folder / "reports" / "run"
    run.mkdir(parents=True)
    again = load(run, scenario.snapshot_text(relative_to=run), "scenario.snapshot.yaml")
    assert again.model_dump() == scenario.model_dump()
    assert again.snapshot_text(relative_to=run) == scenario.snapshot_text(relative_to=run)
    assert again.snapshot_text() == again.text


def test_a_snapshot_holds_what_was_used_not_what_the_file_says(folder):
    scenario = load(folder, BASE).replace(level=0.8, metric_weights={"faithfulness": 0.1})
    assert load(folder, scenario.snapshot_text()).model_dump() == scenario.model_dump()
    assert "level: 0.8" in scenario.snapshot_text()


def test_a_snapshot_is_readable_ordered_and_names_no_machine_path(folder):
    text = load(folder, FULL).snapshot_text()
    keys = re.findall(r"^(\w+):", text, re.MULTILINE)
    assert keys == list(Scenario.__pydantic_fields__)
    assert str(folder) not in text
    assert "差旅报销评测" in text
    assert "  322_双源CT成像技术.pdf" in text or '"322_双源CT成像技术.pdf"' in text
    assert load(folder, FULL).snapshot_text(folder / "sub").count("../差旅报销.csv") == 1


def test_a_snapshot_of_memory_is_relative_to_the_working_directory(folder, monkeypatch):
    monkeypatch.chdir(folder)
    scenario = Scenario(scores="scores.csv")
    assert "scores: scores.csv\n" in scenario.snapshot_text()
    assert load(folder, scenario.snapshot_text()).model_dump() == scenario.model_dump()


def test_numbers_of_numpy_are_snapshot_as_numbers():
    import numpy as np

    scenario = Scenario.without_files(metric_weights={np.str_("faithfulness"): np.float64(0.5)})
    assert "  faithfulness: 0.5\n" in scenario.snapshot_text()


UNSEEN = re.compile("[\\u115f\\u1160\\u2800\\u3164\\uffa0]")
NAME = (
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Mn"]),
        min_size=1,
    )
    .map(lambda text: unicodedata.normalize("NFC", text))
    .filter(lambda text: text.strip() and not UNSEEN.search(text))
)
SCALAR = st.one_of(
    st.text(st.characters(codec="utf-8")),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["NO", "0123", "1e3", "null", "~", "1:30", "0x1F", "- a", "# a", "a: b", "&a", "*a", "<<"]
    ),
)
WEIGHTS = st.dictionaries(NAME, st.floats(min_value=1e-300, allow_infinity=False), max_size=4)


@given(
    title=NAME,
    where=st.dictionaries(NAME, SCALAR, max_size=4),
    metric_weights=st.dictionaries(
        st.sampled_from([*METRICS, "mine"]), st.floats(0, allow_infinity=False)
    ),
    doc_weights=WEIGHTS,
    level=st.floats(0, 1, exclude_min=True, exclude_max=True),
    refusal=st.lists(NAME, max_size=3),
    metrics=st.lists(st.sampled_from(sorted(METRICS)), unique=True, max_size=3),
    own=st.floats(-1e6, 1e6),
    at=st.floats(allow_nan=False, allow_infinity=False),
    op=st.sampled_from([">=", "<="]),
)
def test_any_settings_survive_their_snapshot(
    tmp_path_factory, title, level, refusal, metrics, own, at, op, **more
):
    folder = tmp_path_factory.getbasetemp()
    (folder / "scores.csv").write_text("a\n", encoding="utf-8")
    mine = Metric("mine", own, math.inf, "lower", aliases=(title,))
    scenario = Scenario(
        scores=folder / "scores.csv",
        title=title,
        level=level,
        refusal=refusal,
        metrics=[*metrics, mine],
        gates=[Gate(title, "mine", op, at)],
        **more,
    )
    text = scenario.snapshot_text(relative_to=folder)
    assert load(folder, text).model_dump() == scenario.model_dump()
    other = YAML(typ="safe", pure=True).load(io.StringIO(text))
    assert other["where"] == scenario.where or not scenario.where
    assert other["metric_weights"] == scenario.metric_weights


def test_weights_in_the_place_of_metrics_are_refused_with_their_key(tmp_path):
    (tmp_path / "s.csv").write_text("faithfulness\n0.5\n")
    said = "a list of names, such as ['faithfulness']; weights go into metric_weights"
    for weights in ({"faithfulness": 9}, pd.Series({"faithfulness": 9.0})):
        with pytest.raises(RagnbError, match=re.escape(said)):
            rn.assess(tmp_path / "s.csv", metrics=weights)
    (tmp_path / "a.yaml").write_text("scores: s.csv\nmetrics:\n  faithfulness: 9\n")
    with pytest.raises(RagnbError, match="line [23].*" + re.escape(said)):
        load_scenario(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("metrics", "line", "key"),
    [
        ("metrics:\n  - faithfulness\n  - context_recall\n", 4, "metrics[1]"),
        ("metrics: [context_recall]\n", 2, "metrics[0]"),
        ("\nmetrics:\n- name: context_recall\n  low: 0\n  high: 1\n", 4, "metrics[0]"),
    ],
)
def test_a_metric_that_is_no_column_is_named_with_its_line(tmp_path, metrics, line, key):
    (tmp_path / "s.csv").write_text(
        "faithfulness,context_precision,doc_name\n0.5,0.4,a\n0.7,0.9,b\n", encoding="utf-8"
    )
    path = tmp_path / "s.yaml"
    path.write_text(f"scores: s.csv\n{metrics}", encoding="utf-8")
    with pytest.raises(RagnbError) as caught:
        rn.assess(path)
    message = str(caught.value)
    assert f"s.yaml, line {line}, key '{key}': 'context_recall' is no column" in message
    assert "did you mean 'context_precision'" in message
    path.write_text(
        path.read_text().replace("context_recall", "context_precision"), encoding="utf-8"
    )
    assert rn.assess(path).rows == 2
