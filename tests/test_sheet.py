"""The sheet shows the frames' numbers, in both languages, and strangers' text stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ragnb.assessment.parts import Writer
from ragnb.assessment.sheet import sections, to_html, to_markdown

import ragnb as rn
from ragnb.markup import count, interval_svg, join, page, text_width, thin_svg

ROOT = Path(__file__).resolve().parents[1]
TRACES = {"gold": ROOT / "data/quickstart/gold.json", "refusal": ["not in context", "资料中没有相关内容"]}
ORDER = [
    "verdict", "cards", "notes", "means", "gates", "diagnoses", "outcomes", "where", "judge", "systems",
    "questions", "made", "glossary",
]  # fmt: skip
DATA = {"type": "application/json"}
EVIL = "<img src=x onerror=alert(1)>\n|</td></tr>`**[a](javascript:alert(2))"


class Reader(HTMLParser):
    """Tables as lists of rows of texts, every tag with its attributes, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables, self.tags, self.text, self.in_cell = [], [], "", False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        self.inside = tag not in ("style", "title", "script")
        self.in_cell |= tag in ("td", "th")

    def handle_endtag(self, tag):
        self.in_cell &= tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.text += data
            if self.in_cell:
                self.tables[-1][-1][-1] += data


def scenario(name, **more):
    return rn.assess(ROOT / f"scenarios/{name}.yaml", **more)


@pytest.fixture(scope="module", params=["en", "zh"])
def both(request):
    """Scores and traces together."""
    return scenario("quickstart", lang=request.param)


@pytest.fixture(scope="module", params=["en", "zh"])
def judged(request):
    """Six metrics with failed and missing cells."""
    return scenario("simulated_judge", lang=request.param)


@pytest.fixture(scope="module")
def traced():
    return rn.assess(ROOT / "data/quickstart/traces.weak.jsonl", **TRACES)


def frame(n=6, **columns):
    rng = np.random.default_rng(1)
    made = {
        "sample_id": [f"s{i}" for i in range(n)],
        "doc_name": [f"d{i % 3}" for i in range(n)],
        "faithfulness": rng.uniform(0.2, 0.9, n).round(3),
        "answer_relevancy": rng.uniform(0.2, 0.9, n).round(3),
    }
    return pd.DataFrame(made | columns)


def to_page(sheet):
    return page("", join(sections(sheet).values()), lang=sheet.scenario.lang)


def wanted(row, rate):
    if rate:
        return f"{100 * row['value']:.1f} % [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    return f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"


def is_rate(name):
    """The scenario here declares support_lexical as a metric of quality."""
    return name in rn.METRICS and rn.METRICS[name].role == "rate" and rn.METRICS[name].family != "wording"


# Numbers


def test_table_of_means_holds_the_numbers_of_metrics_and_rates(both):
    check_means(both)


def test_table_of_means_holds_the_numbers_beside_failed_cells(judged):
    check_means(judged)


def check_means(sheet):
    tables = Reader(sections(sheet)["means"]).tables
    rows = {row[0].split("↓")[0].strip(): row for table in tables for row in table[1:]}
    total = {"en": "weighted score", "zh": "加权总分"}[sheet.scenario.lang]
    assert len(rows) == len(sheet.means)
    for row in sheet.means.to_dict("records"):
        shown = rows[total if row["metric"] == "weighted_score" else row["metric"]]
        assert wanted(row, is_rate(row["metric"])) in shown
        assert shown[-5:] == [
            str(row[c]) for c in ("n", "n_clusters", "n_missing", "n_failed", "n_not_applicable")
        ]
        if not np.isnan(row["weight"]):
            assert f"{row['weight']:g}" in shown


def test_markdown_lines_hold_four_decimals_weights_and_intervals(both):
    text = to_markdown(both)
    for row in both.means.to_dict("records"):
        if is_rate(row["metric"]):
            line = f"- {row['metric']}: {wanted(row, True)}, n = {row['n']}"
        elif row["metric"] == "weighted_score":
            line = (
                f"- **weighted_score**: {row['value']:.4f} [{row['low']:.4f}, {row['high']:.4f}], n = {row['n']}"
            )
        else:
            ends = f"[{row['low']:.4f}, {row['high']:.4f}], n = {row['n']}"
            line = f"- {row['metric']}: {row['value']:.4f} (w={row['weight']:g}) {ends}"
        assert any(found.startswith(line) for found in text.splitlines()), line


def test_gates_hold_the_numbers_of_the_frame_in_html_and_markdown(both):
    table = Reader(sections(both)["gates"]).tables[0][1:]
    lines = [line for line in to_markdown(both).splitlines() if line.startswith("| ")]
    gates = both.gates[both.gates["role"] != "completeness"]
    for shown, row in zip(table, gates.to_dict("records"), strict=True):
        seen = wanted(row, is_rate(row["metric"]))
        bar = f"{100 * row['threshold']:.1f} %" if is_rate(row["metric"]) else f"{row['threshold']:.3f}"
        assert shown[0] == row["gate"]
        assert shown[1] == f"{row['metric']} {'≥' if row['op'] == '>=' else '≤'} {bar}"
        assert shown[2] == seen
        assert shown[4] == str(row["n"])
        assert shown[6].startswith(f"{100 * row['p_flip']:.1f} %" if row["p_flip"] == row["p_flip"] else "—")
        more = row["more_needed"]
        assert pd.isna(more) or (count(more) in shown[7]) == (row["outcome"] == "undecided")
        assert any(line.startswith(f"| {row['gate']} ") and seen in line for line in lines)


def test_gate_words_say_what_blocks(both):
    words = {"en": ("failed, blocks", "inconclusive", "passed"), "zh": ("未通过，不放行", "尚无定论", "通过")}
    failed, undecided, passed = words[both.scenario.lang]
    said = {row[0]: row[5] for row in Reader(sections(both)["gates"]).tables[0][1:]}
    assert said["G2"].endswith(failed)
    assert said["G1"].endswith(undecided)
    assert said["recall"].endswith(passed)


def test_cards_hold_total_gates_weakest_metric_and_what_was_not_scored(judged):
    reader = Reader(sections(judged)["cards"])
    total = judged.means.iloc[-1]
    raw = judged.means[judged.means["metric"] != "weighted_score"].set_index("metric")["value"]
    raw["noise_sensitivity"] = 1 - raw["noise_sensitivity"]
    assert f"{total['value']:.3f}" in reader.text
    assert f"[{total['low']:.3f}, {total['high']:.3f}]" in reader.text
    assert raw.idxmin() in reader.text
    cells = judged.means.iloc[:-1][["n_failed", "n_missing"]].sum()
    assert re.search(rf"\b{cells['n_failed']}\b.*\b{cells['n_missing']}\b", reader.text)
    assert {"en": "0 of 120", "zh": "0 / 120"}[judged.scenario.lang] in reader.text


@pytest.mark.parametrize(
    ("score", "tone"), [(0.7, "good"), (0.69, "watch"), (0.5, "watch"), (0.49, "bad"), (1.0, "good"), (0.0, "bad")]
)
@pytest.mark.parametrize("metric", ["faithfulness", "accuracy"])
def test_bands_are_read_on_the_total_rescaled_to_its_range(metric, score, tone):
    low, high = rn.METRICS[metric].low, rn.METRICS[metric].high
    sheet = rn.assess(pd.DataFrame({metric: [low + (high - low) * score] * 3}), gates=[])
    assert Writer(sheet).tone("weighted_score", sheet.means.iloc[-1]["value"]) == tone


def test_bands_of_the_scenario_move_the_colour():
    scores = pd.DataFrame({"faithfulness": [0.8, 0.8], "doc_name": ["a", "b"]})
    sheet = rn.assess(scores, bands={"good": 0.9, "watch": 0.85})
    assert Writer(sheet).tone("weighted_score", 0.8) == "bad"


def test_documents_are_shown_lowest_first_with_the_frames_values(judged):
    names = [*judged.means["metric"]]
    table = Reader(sections(judged)["where"]).tables[0]
    assert len(table) == judged.documents["document"].nunique() + 1
    values = judged.documents.set_index(["document", "metric"])["value"]
    shown = [float(re.search(r"[\d.]+$", row[1])[0]) for row in table[1:]]
    assert shown == sorted(shown)
    for row in table[1:]:
        found = [re.search(r"[\d.]+$", cell)[0] for cell in row[1:]]
        assert sorted(found) == sorted(f"{values[row[0], name]:.3f}" for name in names)


def test_heat_says_its_words_and_not_only_its_shade(judged):
    cells = [cell for row in Reader(sections(judged)["where"]).tables[0][1:] for cell in row[1:]]
    words = {"en": {"good", "watch", "bad"}, "zh": {"满意", "需关注", "不合格"}}[judged.scenario.lang]
    assert {cell.split()[1] for cell in cells} == words
    assert {cell.split()[0] for cell in cells} == {"●", "▲", "■"}


def test_documents_past_thirty_are_counted():
    scores = frame(80, doc_name=[f"d{i:02d}" for i in range(40) for _ in range(2)])
    part = sections(rn.assess(scores))["where"]
    assert len(Reader(part).tables[0]) == 31
    assert "10 more documents" in part


def test_diagnoses_stand_by_cost_with_both_thresholds(judged):
    part = sections(judged)["diagnoses"]
    found = judged.diagnoses.sort_values("cost", ascending=False)
    places = [part.index(f'id="diagnosis-{rule}"') for rule in found["rule"]]
    assert places == sorted(places)
    for row in found.to_dict("records"):
        assert wanted(row, False) in Reader(part).text
        assert f"{row['cost']:.3f}" in part
        assert all(text in part for text in row["causes"])
        assert all(action["text"] in part for action in row["actions"])
    bars = {"en": ("warning", "critical"), "zh": ("警告", "严重")}[judged.scenario.lang]
    assert all(part.count(f">{bar}</text>") == len(found) for bar in bars)


def test_certain_is_said_in_words(judged):
    words = {"en": ("This is certain", "This is not certain"), "zh": ("可以确定", "尚不能确定")}
    said = [sections(judged)["diagnoses"].count(text) for text in words[judged.scenario.lang]]
    assert said == [judged.diagnoses["certain"].sum(), (~judged.diagnoses["certain"]).sum()]


def test_failure_modes_hold_counts_shares_and_costs(judged):
    table = Reader(sections(judged)["diagnoses"]).tables[-1][1:]
    modes = judged.modes[judged.modes["n"] > 0]
    for shown, row in zip(table, modes.to_dict("records"), strict=True):
        share = wanted(row | {"value": row["share"]}, True)
        assert shown[1:] == [str(row["n"]), share, f"{row['cost']:.3f}"]


def test_labels_are_counted(traced):
    table = Reader(sections(traced)["outcomes"]).tables[0][1:]
    assert [(row[0].split()[-1], row[2]) for row in table] == [
        (row["label"], str(row["n"])) for row in traced.outcomes.to_dict("records")
    ]


def test_worst_samples_unfold_to_contexts_and_reference():
    scores = frame(
        question=[f"Q{i}?" for i in range(6)],
        answer=["A"] * 6,
        ground_truth_answer=["the reference"] * 6,
        retrieved_contexts=[[f"passage {i}", "second"] for i in range(6)],
        faithfulness=[0.9, 0.1, 0.2, 0.3, 0.4, 0.9],
    )
    part = sections(rn.assess(scores))["diagnoses"]
    worst = Reader(part).tables[0]
    assert [row[1] for row in worst[1:]] == ["Q1?", "A", "passage 1", "second", "the reference"]


def test_a_long_text_is_cut_and_says_by_how_much():
    scores = frame(question=["Q?"] * 6, answer=["x" * 5000] * 6, faithfulness=[0.1] * 6)
    part = sections(rn.assess(scores))["diagnoses"]
    assert "… (+3,000)" in part
    assert "x" * 2001 not in part


# Rows


def test_every_question_is_a_row_worst_first():
    scores = frame(50)
    table = Reader(sections(rn.assess(scores))["questions"]).tables[0]
    assert len(table) == 51
    mean = scores[["faithfulness", "answer_relevancy"]].mean(axis=1)
    assert [row[0] for row in table[1:]] == scores["sample_id"][mean.argsort(kind="stable")].tolist()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_fifty_questions_stand_plainly_and_all_of_them_to_be_searched(lang):
    sheet = rn.assess(frame(250), lang=lang)
    part = sections(sheet)["questions"]
    assert len(Reader(part).tables[0]) == 51
    assert "scores.csv" in part
    data = live(part)
    order = sheet.scores.loc[sheet.scores["weighted_score"].round(12).sort_values(kind="stable").index]
    assert [row[0] for row in data["rows"]] == order["sample_id"].tolist()
    numbers = [i for i, column in enumerate(data["columns"]) if column["kind"] == "number"]
    for row, score in zip(data["rows"], order.to_dict("records"), strict=True):
        assert row[numbers[0]] == pytest.approx(score["weighted_score"], abs=5.001e-4)


def test_a_missing_cell_of_the_live_table_says_which_kind_and_the_row_says_why(hostile):
    data = live(sections(hostile)["questions"])
    at = [column["label"] for column in data["columns"]].index("faithfulness")
    row = next(row for row in data["rows"] if isinstance(row[at], str))
    assert row[at] == "failed"
    assert "onerror" in row[-1][data["details"].index("why scores are missing")]


def test_texts_of_ten_thousand_questions_share_the_room_of_the_page():
    long = frame(400).assign(question="长" * 4_000, answer="x" * 9_000)
    few = sections(rn.assess(long))["questions"]
    many = pd.concat([long] * 25, ignore_index=True).assign(sample_id=[str(i) for i in range(10_000)])
    assert len(few.encode()) < 400 * 2_200 + 60_000
    part = sections(rn.assess(many))["questions"]
    assert len(part.encode()) < 8_000_000
    assert len(live(part)["rows"]) == 10_000


def test_each_answer_of_traces_says_whether_it_was_answered_hit_and_refused_or_in_part():
    found = rn.assess(ROOT / "data/quickstart/traces.weak.jsonl", **TRACES, partial=["详情请咨询"])
    heads, *rows = Reader(sections(found)["questions"]).tables[0]
    facts = [dict(zip(heads, row, strict=True)) for row in rows]
    scores = found.scores.set_index("sample_id")
    words = {True: "yes", False: "no"}
    assert {fact["refused"] for fact in facts} == {"yes", "no", "in part"}
    for fact in facts:
        row = scores.loc[fact["sample"]]
        assert (fact["answered"], fact["hit"]) == (words[row["answered"]], words[row["hit"]])
        assert fact["label"] == row["label"]
        assert fact["refused"] == ("in part" if row["partial"] else words[row["refused"]])


def test_a_column_of_misses_that_is_empty_is_left_out(tmp_path):
    gold = [{"qid": "a", "q": "?", "answerable": True, "gold_ids": ["x"]}]
    for cited, there in ((["x"], False), (["y"], True)):
        row = {"qid": "a", "q": "?", "answer": "!", "citations": cited, "chunks": [{"id": "x"}]}
        said, labelled = tmp_path / "t.jsonl", tmp_path / "g.json"
        said.write_text(json.dumps(row), encoding="utf-8")
        labelled.write_text(json.dumps(gold), encoding="utf-8")
        assert ("why no hit" in sections(rn.assess(said, gold=labelled))["questions"]) is there


def test_traces_without_scores_are_ordered_by_label(traced):
    data = live(sections(traced)["questions"])
    at = [column["label"] for column in data["columns"]].index("label")
    labels = [row[at] for row in data["rows"]]
    rank = {"HALLUCINATION": 0, "OVER_REFUSAL": 1, "ANS_NO_HIT": 2}
    assert [rank.get(label, 9) for label in labels] == sorted(rank.get(label, 9) for label in labels)
    assert len(labels) == len(traced.scores)
    assert [row[at] for row in Reader(sections(traced)["questions"]).tables[0][1:]] == labels[:50]


def test_markdown_of_traces_has_one_row_an_answer(traced):
    table = to_markdown(traced).split("| sample |")[1].split("\n\n")[0].splitlines()[2:]
    assert len(table) == len(traced.scores)
    for line, row in zip(table, traced.scores.to_dict("records"), strict=True):
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        assert cells[0].strip() == row["sample_id"]
        assert cells[2:] == [*("yes" if row[c] else "no" for c in ("answered", "hit", "refused")), row["label"]]


def test_systems_stand_side_by_side_the_best_first():
    sheet = rn.assess(ROOT / "data/quickstart/scores.csv")
    part = sections(sheet)["systems"]
    table = Reader(part).tables[0]
    total = sheet.systems[sheet.systems["metric"] == "weighted_score"].set_index("system")
    assert [row[0] for row in table[1:]] == total.sort_values("value", ascending=False).index.tolist()
    for row in table[1:]:
        one = total.loc[row[0]]
        assert row[1] == f"{one['value']:.3f}[{one['low']:.3f}, {one['high']:.3f}]n = {one['n']}"
    assert "<svg" in part


def test_more_systems_than_a_radar_holds_keep_their_table():
    scores = frame(70, system=[f"m{i % 7}" for i in range(70)])
    part = sections(rn.assess(scores))["systems"]
    assert "<svg" not in part
    assert len(Reader(part).tables[0]) == 8


# What is missing


def test_parts_stand_in_reading_order_and_are_empty_where_there_is_nothing_to_say():
    parts = sections(rn.assess(frame(doc_name=["d"] * 6), gates=[]))
    assert list(parts) == ORDER
    assert [key for key, body in parts.items() if not body] == ["gates", "outcomes", "where", "systems"]


def test_notes_are_left_out_when_there_are_none(tmp_path):
    scores = frame(60, doc_name=[f"d{i}" for i in range(60)], context_relevance=[0.9] * 60)
    people = [1 + i % 9 for i in range(90)]
    pd.DataFrame({"judge": people, "human": people, "cluster": range(90)}).to_csv(tmp_path / "r.csv", index=False)
    sheet = rn.assess(scores, gates=[], ratings=tmp_path / "r.csv")
    assert not len(sheet.notes)
    assert sections(sheet)["notes"] == ""
    assert "How sure" not in to_markdown(sheet)


def test_missing_is_a_dash_with_its_reason_and_never_a_number():
    scores = frame(
        faithfulness=[0.5, None, None, 0.9, 0.5, 0.6], answer_relevancy=[0.5, None, None, 0.4, 0.5, 0.6]
    )
    scores["faithfulness__status"] = ["ok", "failed", None, "ok", "ok", "ok"]
    scores["faithfulness__reason"] = [None, "judge timed out", None, None, None, None]
    part = sections(rn.assess(scores))["questions"]
    rows = {row[0]: row for row in Reader(part).tables[0][1:]}
    assert rows["s1"][2:] == ["— missing", "— failed", "— missing"]
    assert rows["s2"][2:] == ["— missing", "— missing", "— missing"]
    assert 'title="judge timed out"' in part


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "scores",
    [
        pd.DataFrame({"faithfulness": [0.4], "doc_name": ["a"]}),
        pd.DataFrame({"faithfulness": [0.5, 0.9, np.nan], "accuracy": [3, 8, 9]}),
        pd.DataFrame({"faithfulness": [None, None, None], "answer_relevancy": [0.1, 0.2, 0.3]}),
    ],
    ids=["one row", "ranges that do not add up", "a metric without a score"],
)
def test_thin_data_never_show_nan_or_none(scores, lang):
    sheet = rn.assess(scores, lang=lang)
    for text in (Reader(to_page(sheet)).text, Reader(to_html(sheet)).text, to_markdown(sheet)):
        assert not re.search(r"\b(nan|NaN|None|<NA>)\b", text)


def test_a_total_that_does_not_exist_says_why():
    sheet = rn.assess(pd.DataFrame({"faithfulness": [0.5, 0.9], "accuracy": [3, 8]}))
    line = next(line for line in to_markdown(sheet).splitlines() if "**weighted_score**" in line)
    assert line.startswith("- **weighted_score**: — (")
    assert "different ranges" in sections(sheet)["cards"]


def test_an_endless_range_is_drawn_nowhere():
    metric = rn.Metric("latency_s", 0, float("inf"), "lower")
    scores = pd.DataFrame({"latency_s": [0.4, 9.0], "doc_name": ["a", "b"]})
    sheet = rn.assess(scores, metrics=[metric])
    assert "<svg" not in sections(sheet)["means"]
    assert "4.700" in sections(sheet)["means"]


# Strangers' text


@pytest.fixture(scope="module")
def hostile():
    scores = frame(
        12,
        question=[EVIL] * 12,
        answer=[EVIL] * 12,
        ground_truth_answer=[EVIL] * 12,
        retrieved_contexts=[[EVIL]] * 12,
        doc_name=[f"{EVIL}{i % 4}" for i in range(12)],
        sample_id=[f"{EVIL}{i}" for i in range(12)],
        system=[f"{EVIL}{i % 2}" for i in range(12)],
    )
    scores["odd<b>|metric"] = 0.2
    scores.loc[3, "faithfulness"] = None
    scores["faithfulness__status"] = ["ok"] * 3 + ["failed"] + ["ok"] * 8
    scores["faithfulness__reason"] = [None] * 3 + [EVIL] + [None] * 8
    metrics = ["faithfulness", "answer_relevancy", rn.Metric("odd<b>|metric")]
    gates = [rn.Gate(EVIL, "odd<b>|metric", ">=", 0.5)]
    return rn.assess(scores, metrics=metrics, gates=gates, title=EVIL.replace("\n", " "))


@pytest.mark.parametrize("write", [to_page, to_html])
def test_a_payload_stays_text(hostile, write):
    reader = Reader(write(hostile))
    assert not [tag for tag, _ in reader.tags if tag in ("img", "iframe", "b")]
    assert not [attrs for tag, attrs in reader.tags if tag == "script" and attrs not in ({}, DATA)]
    assert not [key for _, attrs in reader.tags for key in attrs if key.startswith("on")]
    links = [attrs["href"] for tag, attrs in reader.tags if tag == "a"]
    assert all(link.startswith("#") for link in links)
    assert "<img src=x onerror=alert(1)>" in reader.text


def test_a_payload_adds_no_row_and_no_element_to_markdown(hostile):
    text = to_markdown(hostile)
    assert "<img" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    table = [line for line in text.splitlines() if line.startswith("|")]
    gates = 2 + len(hostile.gates[hostile.gates["value"] < 1])
    assert len(table) == gates + 2 + hostile.systems["value"].notna().sum()
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in table] == [8] * gates + [5] * (len(table) - gates)


def test_hostile_rows_are_as_many_as_the_records(hostile):
    assert len(Reader(sections(hostile)["questions"]).tables[0]) == 13


# The page, the fragment, the file


def test_fragment_has_no_anchor_and_no_table_of_questions(both):
    reader = Reader(to_html(both))
    assert not [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert not [attrs for tag, attrs in reader.tags if tag == "a"]
    assert "scores.csv" not in reader.text
    assert reader.tags[0] == ("div", {"class": "ragnb", "lang": {"en": "en", "zh": "zh-CN"}[both.scenario.lang]})


def test_every_link_of_the_page_finds_its_place(both):
    tags = Reader(to_page(both)).tags
    places = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(places) == len(set(places))
    assert {attrs["href"][1:] for tag, attrs in tags if tag == "a"} <= set(places)


def test_page_asks_for_nothing_outside(both):
    assert not re.search(r"(?:src|href)=\"(?!#)|url\(|@import", to_page(both))


def test_the_policy_of_the_page_allows_its_one_script_and_no_other(both):
    text = to_page(both)
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    assert [kind for kind, _ in scripts] == [' type="application/json"', ""]
    digest = base64.b64encode(hashlib.sha256(scripts[1][1].encode()).digest()).decode()
    assert re.search(r'content="([^"]*)"', text)[1].endswith(f"; script-src 'sha256-{digest}'")


def live(part):
    """What the script of the page reads."""
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', part, re.DOTALL)[1])


def test_both_languages_show_the_same_numbers():
    english, chinese = (scenario("quickstart", lang=lang) for lang in ("en", "zh"))
    for key in ("means", "gates", "where", "questions"):
        one, other = (
            re.findall(r"\d+\.\d{3}|\d+\.\d %", Reader(sections(sheet)[key]).text) for sheet in (english, chinese)
        )
        assert one == other
        assert one
    assert "正确处理率" in sections(chinese)["cards"]
    assert "95 % 置信区间" in sections(chinese)["means"]
    assert "文档加权" in sections(chinese)["glossary"]


def test_same_input_gives_the_same_text_wherever_it_lies(tmp_path):
    texts = []
    for folder in (tmp_path / "a", tmp_path / "b" / "deep"):
        folder.mkdir(parents=True)
        frame(12).to_csv(folder / "scores.csv", index=False)
        (folder / "run.yaml").write_text("scores: scores.csv\ndoc_weights: {d1: 2.0}\n", encoding="utf-8")
        sheet = rn.assess(folder / "run.yaml")
        texts.append((to_markdown(sheet), to_page(sheet)))
        assert str(tmp_path) not in "".join(texts[-1])
    assert texts[0] == texts[1]


def test_how_it_was_made_names_files_weights_and_steps(both):
    text = Reader(sections(both)["made"]).text
    markdown = to_markdown(both)
    for one in both.inputs:
        assert one["path"] in text
        assert one["sha256"][:16] in text
        assert one["sha256"] in markdown
    for name, weight in both.scenario.doc_weights.items():
        assert f"{name}: {weight:g}" in text
        assert f"- {name}: {weight:g}" in markdown
    for step in both.ledger["step"]:
        assert step in text


# Pictures


def centres(svg):
    return [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]


@pytest.mark.parametrize(("value", "at"), [(1, 5), (5.5, 60), (10, 115)])
def test_thin_interval_is_laid_on_its_whole_scale(value, at):
    assert centres(thin_svg(value, 1, 10, label="m", span=(1, 10))) == [at]


def test_thin_interval_of_nothing_is_its_scale_alone():
    svg = thin_svg(None, None, None, label="m", bars=[0.5])
    assert not centres(svg)
    assert 'aria-label="m: —"' in svg


def test_percent_scale_is_written_in_percent():
    svg = interval_svg(0.25, 0.1, 0.5, label="rate", percent=True)
    assert ">100 %</text>" in svg
    assert 'aria-label="rate: 25.0 % [10.0, 50.0]"' in svg


@pytest.mark.parametrize("bars", [(0.05, 0.15), (0.3, 0.5), (0.9, 0.95), (0.5, 0.7), (0.0, 1.0)])
@pytest.mark.parametrize("names", [("warning", "critical"), ("警告", "严重")])
def test_names_of_thresholds_neither_meet_nor_leave_the_picture(bars, names):
    svg = interval_svg(0.5, 0.4, 0.6, bars=list(zip(names, bars, strict=True)), width=182)
    boxes = []
    for tag, name in re.findall(r"<text ([^>]*)>([^<]*)</text>", svg):
        if name in names:
            x, y = (float(re.search(rf'\b{key}="([\d.-]+)"', tag)[1]) for key in "xy")
            left = x - text_width(name) if 'anchor="end"' in tag else x
            boxes.append((left, left + text_width(name), y))
    (a, b, y), (c, d, z) = boxes
    assert y != z or b <= c or d <= a
    assert all(left >= -3 and right <= 185 for left, right, _ in boxes)
