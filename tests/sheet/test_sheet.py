"""The sheet's sections show the frames' numbers, in both languages and renderings, and say what is missing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import Reader, anchored, island, numbers, table_of

import ragnb as rn
from ragnb import texts
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.markup.blocks import Measure, Samples, Section, Table
from ragnb.markup.rendering import render_fragment, render_markdown, render_page
from ragnb.sheet.formatter import DATA, LABELS, Formatter
from ragnb.sheet.kinds import order_of
from ragnb.sheet.sections import SECTIONS

ROOT = Path(__file__).resolve().parents[2]
TRACES = {
    "gold": ROOT / "data/quickstart/gold.json",
    "refusal": ["not in context", "资料中没有相关内容"],
}
EVIL = "<img src=x onerror=alert(1)>\n|</td></tr>`**[a](javascript:alert(2))</script>"
RIGHT = ("OK", "REFUSAL_OK")


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


@pytest.fixture(scope="module")
def compared():
    """Traces with gold beside a baseline: two systems of one scenario, one of them the candidate's before."""
    return rn.assess(ROOT / "data/quickstart/scores.csv", candidate="strong", baseline="weak")


def frame(n=6, **columns):
    rng = np.random.default_rng(1)
    made = {
        "sample_id": [f"s{i}" for i in range(n)],
        "doc_name": [f"d{i % 3}" for i in range(n)],
        "faithfulness": rng.uniform(0.2, 0.9, n).round(3),
        "answer_relevancy": rng.uniform(0.2, 0.9, n).round(3),
    }
    return pd.DataFrame(made | columns)


def ends(row, digits=3, rate=False):
    """An interval as it is read."""
    if rate:
        return f"{100 * row['low']:.1f}–{100 * row['high']:.1f} %"
    return f"{row['low']:.{digits}f}–{row['high']:.{digits}f}"


def mean(row, rate=False):
    return f"{100 * row['value']:.1f} %" if rate else f"{row['value']:.3f}"


def is_rate(sheet, name):
    return sheet.means.set_index("metric").loc[name, "role"] == "rate"


def html_of(sheet, *keys):
    return str(render_page(sheet.sections(*keys), title="", lang=sheet.scenario.lang))


def samples_of(sheet):
    (block,) = sheet.section("questions").blocks
    return block


# Numbers


@pytest.mark.parametrize("name", ["quickstart", "simulated_judge"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_rows_of_metrics_hold_mean_interval_weight_and_coverage(name, lang):
    sheet = scenario(name, lang=lang)
    tables = Reader(html_of(sheet, "metrics")).tables
    means = sheet.means.to_dict("records")
    assert sum(len(table) - 1 for table in tables) == len(means)
    flat = [row for table in tables for row in table[1:]]
    ordered = sorted(means, key=lambda row: (row["role"] == "rate", row["role"] != "total"))
    for row, cells in zip(ordered, flat, strict=True):
        rate = row["role"] == "rate"
        assert row["metric"] in cells[0] or row["metric"] == "faithfulness"
        assert mean(row, rate) in cells[3]
        assert ends(row, rate=rate) in cells[3]
        assert cells[1] == ("—" if np.isnan(row["weight"]) else f"{row['weight']:g}")
        lacking = [row[key] for key in ("n_missing", "n_failed", "n_not_applicable") if row[key]]
        assert [int(n) for n in re.findall(r"\d+", cells[2])] == [row["n"], *lacking]


def test_markdown_lines_hold_four_decimals_weights_and_intervals(both):
    lines = both.to_markdown().splitlines()
    for row in both.means.to_dict("records"):
        rate, n = row["role"] == "rate", f", n = {row['n']}"
        weight = "" if np.isnan(row["weight"]) else f" (w={row['weight']:g})"
        value = mean(row, True) if rate else f"{row['value']:.4f}"
        told = f"{row['metric']}: {value}"
        bold = f"**{told}**" if row["role"] == "total" else told
        line = f"- {bold}{weight} [{ends(row, rate=rate)}]{n}"
        assert any(found.startswith(line) for found in lines), line


def test_gates_hold_the_numbers_of_the_frame(both):
    codes = {"G1", "G2", "G3", "G4", "G5", "recall"}
    table = Reader(html_of(both, "gates")).tables[0][1:]
    table = [cells for cells in table if cells.codes]  # completeness has none: two scores are lost
    gates = both.gates[both.gates["role"] != "completeness"].set_index("gate")
    assert set(gates.index) == codes
    for cells in table:
        name = next(
            code for code in codes if any(one.startswith(f"{code} · ") for one in cells.codes)
        )
        row = gates.loc[name]
        rate = is_rate(both, row["metric"])
        assert mean(row, rate) in cells[2]
        assert ends(row, rate=rate) in cells[2]
        assert f"n = {row['n']}" in cells[2]
        limit = f"{100 * row['threshold']:g} %" if rate else f"{row['threshold']:.3f}"
        assert limit in cells[0]
        gap = abs(row["value"] - row["threshold"])
        assert (f"{100 * gap:.1f}" if rate else f"{gap:.3f}") in cells[3]
        assert cells[4] == ("—" if pd.isna(row["p_flip"]) else f"{100 * row['p_flip']:.1f} %")
        more = row["more_needed"]
        assert (
            (f"{more:,.0f}" in cells[5])
            if not pd.isna(more) and row["outcome"] == "undecided"
            else True
        )
    assert len(table) == len(codes)


def test_failed_gates_come_first_and_each_outcome_has_its_words(both):
    words = {"en": ("failed", "inconclusive", "passed"), "zh": ("未通过", "尚无定论", "通过")}[
        both.scenario.lang
    ]
    said = [
        cells[1].split()[1].strip("，,") for cells in Reader(html_of(both, "gates")).tables[0][1:]
    ]
    # The last one passed: completeness, as not every score is there.
    assert said == [words[0]] + [words[1]] * 5 + [words[2]]


@pytest.mark.parametrize(
    ("score", "tone"),
    [(0.7, "good"), (0.69, "watch"), (0.5, "watch"), (0.49, "bad"), (1.0, "good"), (0.0, "bad")],
)
@pytest.mark.parametrize("metric", ["faithfulness", "accuracy"])
def test_bands_are_read_on_the_total_rescaled_to_its_range(metric, score, tone):
    low, high = rn.METRICS[metric].low, rn.METRICS[metric].high
    # An accuracy that is 1 in all rows may be on several scales, so its scale is declared.
    metrics = [rn.Metric(metric, low, high)]
    scores = pd.DataFrame({metric: [low + (high - low) * score] * 3})
    sheet = rn.assess(scores, metrics=metrics, gates=[])
    assert Formatter(sheet).tone("weighted_score", sheet.means.iloc[-1]["value"]) == tone


def test_bands_of_the_scenario_move_the_colour():
    scores = pd.DataFrame({"faithfulness": [0.8, 0.8], "doc_name": ["a", "b"]})
    sheet = rn.assess(scores, bands={"good": 0.9, "watch": 0.85})
    assert Formatter(sheet).tone("weighted_score", 0.8) == "bad"


def test_documents_are_ordered_by_their_pull_with_the_frames_values(judged):
    table = Reader(html_of(judged, "documents")).tables[0]
    totals = judged.documents[judged.documents["metric"] == "weighted_score"].set_index("document")
    assert [row[0] for row in table[1:]] == totals["pull"].sort_values(kind="stable").index.tolist()
    values = judged.documents.set_index(["document", "metric"])["value"]
    metrics = [name for name in judged.means["metric"] if name != "weighted_score"]
    for row in table[1:]:
        found = [numbers(cell)[-1] for cell in row[2:-1]]
        assert found == [f"{values[row[0], name]:.3f}" for name in [*metrics, "weighted_score"]]
        pull = totals.loc[row[0], "pull"]
        assert row[-1] == ("−" if pull < 0 else "+") + f"{abs(pull):.3f}"
        assert row[1] == f"{100 * totals.loc[row[0], 'share']:.0f} %"


def test_documents_past_thirty_are_counted():
    scores = frame(80, doc_name=[f"d{i:02d}" for i in range(40) for _ in range(2)])
    section = rn.assess(scores).section("documents")
    assert len(section.blocks[0].rows) == 30
    assert "10 more documents" in section.lead


def test_documents_without_any_mean_have_no_table():
    none = [np.nan] * 6
    assert rn.assess(frame(faithfulness=none, answer_relevancy=none)).section("documents") is None


def test_failure_modes_hold_counts_shares_and_costs(judged):
    (table,) = (block for block in judged.section("fix").blocks if isinstance(block, Table))
    modes = judged.modes[judged.modes["n"] > 0]
    for shown, row in zip(table.rows, modes.to_dict("records"), strict=True):
        share = f"{100 * row['share']:.1f} % ({ends(row, rate=True)})"
        assert shown[1:] == (str(row["n"]), share, f"{row['cost']:.3f}")


def test_outcomes_are_counted_raw_and_their_bar_and_tables_agree(traced):
    bar = traced.section("summary").blocks[-1]
    counts = traced.outcomes.set_index("label")["n"]
    assert (
        sum(n for _, parts in bar.groups for *_, n in parts) == counts.sum() == len(traced.scores)
    )
    assert f"{counts[[*RIGHT]].sum()} of {counts.sum()}" in bar.title
    *slices, labels = [
        block for block in traced.section("outcomes").blocks if isinstance(block, Table)
    ]
    known = ["OK", "ANS_NO_HIT", "OVER_REFUSAL", "REFUSAL_OK", "HALLUCINATION"]
    assert {row[0][1].text: int(row[1]) for row in labels.rows} == counts.reindex(
        known, fill_value=0
    ).to_dict()
    for table in slices:
        assert sum(int(row[1]) for row in table.rows) == counts.sum()
        assert sum(int(row[2]) for row in table.rows) == counts[[*RIGHT]].sum()
        assert all(sum(n for *_, n in row[3].parts) == int(row[1]) for row in table.rows)


def test_the_table_of_labels_names_labels_metrics_and_notes_that_exist():
    words = texts.table("en")
    assert set(LABELS) == set(words["label"])
    assert {row["group"] for row in LABELS.values()} <= set(words["sheet"])
    assert {label for label, row in LABELS.items() if row["tone"] == "good"} == set(RIGHT)
    assert all(rn.METRICS[name].role == "rate" for name in DATA["counted"])
    assert {label for parts in DATA["counted"].values() for part in parts for label in part} == set(
        LABELS
    )
    written = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "ragnb").rglob("*.py"))
    for code in [code for codes in DATA["notes"].values() for code in codes]:
        assert f'"{code}"' in written or code in words["note"], code


def test_the_finding_of_outcomes_names_the_group_that_is_wrong_most_often():
    """By share: of single questions more are wrong (8 of 26), but of unanswerable ones a larger part."""
    sheet = rn.assess(ROOT / "scenarios" / "quickstart.yaml")
    counts = sheet.label_counts[sheet.label_counts["slice"] == "kind"]
    n = counts.groupby("group")["n"].sum()
    wrong = n - counts[counts["label"].isin(["OK", "REFUSAL_OK"])].groupby("group")["n"].sum()
    group = (wrong / n).idxmax()
    assert wrong.idxmax() != group
    assert (
        sheet.section("outcomes").finding
        == f"Most often wrong: {group}, {wrong[group]} of {n[group]}"
    )


def test_the_head_of_a_page_counts_answers_where_several_systems_gave_them():
    rows = [
        {"sample_id": str(i), "system": system, "faithfulness": 0.8}
        for i in range(9)
        for system in "ab"
    ]
    both = pd.DataFrame(rows)
    for frame, words in ((both, "18 answers"), (both[both["system"] == "a"], "9 questions")):
        text = re.sub("<[^>]+>", " ", rn.assess(frame).to_html())
        assert re.search(rf"20\d\d-\d\d-\d\d\W+{words}", text)


def test_a_finding_names_as_low_only_what_is_conclusively_so_and_says_that():
    sheet = rn.assess(ROOT / "scenarios" / "simulated_judge.yaml", lang="en")
    low = sheet.diagnoses.set_index("metric")["value"]
    recall = sheet.means.set_index("metric").loc["context_recall"]
    assert len(low) == 4
    assert recall["high"] < 0.7
    section = sheet.section("metrics")
    said = f"Context recall is below its threshold: {recall['value']:.3f}, threshold 0.700"
    assert section.finding == said
    assert "4" in section.badge.text


def test_a_name_in_two_forms_of_unicode_is_one_group_of_outcomes(tmp_path):
    kinds = [unicodedata.normalize(form, "café") for form in ("NFC", "NFD")]
    known = {"answerable": True, "gold_ids": ["p"]}
    gold = [{"qid": f"q{i}", "q": f"{i}?", "kind": kinds[i % 2]} | known for i in range(8)]
    traces = [
        {"qid": row["qid"], "q": row["q"], "answer": "yes [p]", "citations": ["p"]} for row in gold
    ]
    (tmp_path / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
    (tmp_path / "traces.jsonl").write_text("\n".join(map(json.dumps, traces)), encoding="utf-8")
    sheet = rn.assess(tmp_path / "traces.jsonl", gold=tmp_path / "gold.json", slices=["kind"])
    assert sheet.label_counts[["group", "n"]].to_numpy().tolist() == [["café", 8]]
    (row,) = sheet.section("outcomes").blocks[0].rows
    assert row[:3] == ("café", "8", "8")


def test_counts_of_the_first_sentence_are_those_of_the_labels(both):
    title = both.section("summary").blocks[0].title
    counts = both.outcomes.set_index("label")["n"]
    false, asked = counts["HALLUCINATION"], counts["HALLUCINATION"] + counts["REFUSAL_OK"]
    assert sorted(map(int, re.findall(r"\d+", title))) == [false, asked]


def test_the_overall_score_stands_on_the_first_screen_with_its_interval(both):
    block = both.section("summary").blocks[0]
    row = both.means.set_index("metric").loc["weighted_score"]
    assert block.score.written == mean(row)
    assert ends(row) in str(block.score_notes)
    assert f"n = {row['n']}" in str(block.score_notes)
    assert (block.score.value, block.score.low, block.score.high) == tuple(
        row[["value", "low", "high"]]
    )


def test_histograms_hold_every_score_once_and_the_exact_ends_apart(judged):
    for block in judged.section("metrics").blocks:
        for row in block.rows if isinstance(block, Table) else ():
            if row.code == "weighted_score":
                continue
            values = judged.scores[row.code].dropna()
            bins = row.histogram
            assert bins.low == (values == 0).sum()
            assert bins.high == (values == 1).sum()
            assert bins.low + sum(bins.between) + bins.high == len(values)


# Two renderings of the same sections


@pytest.mark.parametrize("name", ["quickstart", "simulated_judge", "rubric_judge"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_markdown_and_html_tell_the_same_numbers(name, lang):
    check_same_numbers(scenario(name, lang=lang))


def test_markdown_and_html_tell_the_same_numbers_of_several_systems_and_a_baseline(compared):
    check_same_numbers(rn.assess(ROOT / "data/quickstart/scores.csv"))
    check_same_numbers(compared)


def check_same_numbers(sheet):
    """Each row of a table, each metric, each question: one set of numbers, four decimals read as three."""
    for section in sheet.sections():
        read = Reader(render_page([section], title="", lang=section.lang))
        tables = iter(read.tables)
        for block in section.blocks:
            text = render_markdown([Section("k", "n", blocks=(block,))]).removeprefix("## n")
            if isinstance(block, Table) and isinstance(block.rows[0], Measure):
                for line, cells in zip(
                    re.findall("^- .*", text, re.MULTILINE), next(tables)[1:], strict=True
                ):
                    value, *others = numbers(line.split(": ", 1)[1])
                    if cells[3].startswith("—"):
                        continue
                    value = value if "%" in cells[3] else f"{float(value):.3f}"
                    shown = set(numbers(f"{cells[2]} {cells[3]} {line.split('n = ')[1]}"))
                    assert {value, *others} - ({cells[1]} - {"—"}) <= shown, line
                    assert set(numbers(cells[3])) <= {value, *others}, line
            elif isinstance(block, Table):
                rows = table_of(text)
                for markdown, cells in zip(rows, next(tables)[1:], strict=True):
                    assert set(numbers(" ".join(markdown))) == set(
                        numbers(" ".join(cells.whole))
                    ), markdown
            elif isinstance(block, Samples):
                for markdown, row in zip(table_of(text), read.samples, strict=True):
                    assert set(numbers(" ".join(markdown))) == set(numbers(" ".join(row))), markdown
        assert next(tables, None) is None


def test_the_first_screen_says_the_same_in_both_renderings(both):
    read = Reader(html_of(both, "summary"))
    text = render_markdown(both.sections("summary"))
    (verdict, *_) = both.section("summary").blocks
    for words in (
        verdict.title,
        verdict.lead,
        verdict.score_name,
        *(mark.text for mark in verdict.marks),
    ):
        assert words in text
        assert words in read.text
    assert verdict.title in both.verdict
    counted = {n for _, parts in both.section("summary").blocks[-1].groups for *_, n in parts}
    assert {str(n) for n in counted} <= set(numbers(text)) & set(numbers(read.text))


def test_both_languages_have_one_structure_and_the_same_numbers():
    for name in ("quickstart", "simulated_judge"):
        english, chinese = (scenario(name, lang=lang).sections() for lang in ("en", "zh"))
        assert [section.key for section in english] == [section.key for section in chinese]
        for one, other in zip(english, chinese, strict=True):
            assert [type(block) for block in one.blocks] == [type(block) for block in other.blocks]
            assert (one.finding == one.name) == (other.finding == other.name), one.key
            if one.key not in ("glossary", "run"):
                texts = (re.sub(r"(\d) %|(\d)%", r"\1\2 %", repr(part)) for part in (one, other))
                exact = (sorted(re.findall(r"\d+\.\d+", text)) for text in texts)
                assert next(exact) == next(exact), one.key
    assert "质量门禁" in render_markdown(chinese)
    assert "95% 置信区间" in render_markdown(chinese).replace("95 %", "95%")


# Questions


def test_every_question_is_a_row_worst_first():
    scores = frame(50)
    rows = samples_of(rn.assess(scores)).rows
    total = scores[["faithfulness", "answer_relevancy"]].mean(axis=1)
    assert [row.key for row in rows] == scores["sample_id"][total.argsort(kind="stable")].tolist()


def test_cells_of_a_question_are_its_scores_missing_ones_empty(judged):
    scores = judged.scores.set_index("sample_id")
    block = samples_of(judged)
    assert len(block.rows) == len(scores)
    writer = Formatter(judged)
    names = {writer.title(name): name for name in judged.means["metric"]}
    places = {
        place: names[head[1:]] for place, head in enumerate(block.heads) if head.startswith(">")
    }
    assert "weighted_score" in places.values()
    for row in block.rows:
        for place, name in places.items():
            value = scores.loc[row.key, name]
            assert row.cells[place] == ("" if pd.isna(value) else f"{value:.3f}")


def test_traces_without_scores_are_ordered_by_label_with_all_their_words(traced):
    rank = {"HALLUCINATION": 0, "OVER_REFUSAL": 1, "ANS_NO_HIT": 2}
    block = samples_of(traced)
    order = [rank.get(row.filters["o"], 9) for row in block.rows]
    assert order == sorted(order)
    scores = traced.scores.set_index("sample_id")
    assert len(block.rows) == len(scores)
    for row in block.rows:
        own = scores.loc[row.key]
        assert row.filters["o"] == own["label"]
        assert row.filters["w"] == ("0" if own["label"] in RIGHT else "1")
        assert row.filters["d"] == ("" if pd.isna(own.get("doc_name")) else own["doc_name"])


def test_chips_and_choices_count_what_they_pick(both):
    block = samples_of(both)
    labels = both.scores["label"].value_counts()
    chips = {code: n for code, _, n in block.chips}
    assert chips[""] == len(block.rows) == 80
    assert chips["wrong"] + chips["right"] == 80
    assert chips["right"] == labels[[*RIGHT]].sum()
    wrong = {code: labels[code] for code in ("HALLUCINATION", "OVER_REFUSAL", "ANS_NO_HIT")}
    assert {code: n for code, n in chips.items() if code.isupper()} == wrong
    assert block.chips[0][0] == "wrong"
    low = dict(block.filters["m"][1])
    for name in low:
        rule = next(rule for rule in rn.RULES if rule.metric == name and rule.also is None)
        values = both.scores[name]
        want = (
            values > rule.warning if rn.METRICS[name].better == "lower" else values < rule.warning
        ).sum()
        assert sum(name in row.filters["m"].split("\n") for row in block.rows) == want > 0
    assert {value for value, _ in block.filters["d"][1]} == set(both.scores["doc_name"].dropna())


def test_a_question_unfolds_to_answer_reference_and_passages():
    scores = frame(
        question=[f"Q{i}?" for i in range(6)], answer="A", ground_truth_answer="the reference"
    )
    scores["retrieved_contexts"] = [[f"passage {i}", "second"] for i in range(6)]
    block = samples_of(rn.assess(scores))
    for row in block.rows:
        assert [text for _, text in row.texts] == ["A", "the reference"]
        assert [text for *_, text in row.passages] == [f"passage {row.key[1:]}", "second"]
    read = Reader(html_of(rn.assess(scores), "questions"))
    assert read.text.count("passage 3") == 1
    assert read.passages.count("second") == 1


def test_a_passage_that_many_questions_retrieved_is_written_once():
    shared = "the same long passage " * 20
    scores = frame(40, retrieved_contexts=[[shared, f"own {i}"] for i in range(40)])
    page = html_of(rn.assess(scores), "questions")
    read = Reader(page)
    assert page.count(shared.strip()) == 1
    assert read.passages.count(shared.strip()) == 1
    assert len(read.passages) == 41
    links = [attrs["href"][1:] for tag, attrs in read.tags if attrs.get("class") == "rg-again"]
    assert len(links) == 39
    assert set(links) <= {attrs.get("id") for _, attrs in read.tags}


def test_sentences_of_an_answer_are_marked_by_what_its_passages_hold():
    answers = ["Rooms cost at most 450 yuan a night, I think.", "Nothing of this is anywhere."]
    found = [["in cities rooms cost at most 450 yuan a night"], ["something else altogether"]]
    scores = frame(2, answer=answers, retrieved_contexts=found)
    read = Reader(html_of(rn.assess(scores), "questions"))
    assert read.marked == answers
    page = html_of(rn.assess(scores), "questions")
    assert page.count("<mark>") == 1
    assert page.count('<mark class="rg-absent">') == 1
    assert "(not found)" in page


def test_long_texts_are_cut_with_an_ellipsis_and_more_questions_share_the_room():
    scores = frame(600, answer=["x" * 20_000] * 600, question=["长" * 4_000] * 600)
    page = html_of(rn.assess(scores), "questions")
    assert " …</dd>" in page
    assert len(page.encode()) < 2_000_000


def test_a_question_says_which_scores_are_missing_and_why():
    gaps = [0.5, None, None, 0.9, 0.5, 0.6]
    scores = frame(faithfulness=gaps, answer_relevancy=gaps)
    scores["faithfulness__status"] = ["ok", "failed", None, "ok", "ok", "ok"]
    scores["faithfulness__reason"] = [None, "judge timed out", None, None, None, None]
    rows = {row.key: row for row in samples_of(rn.assess(scores)).rows}
    assert rows["s1"].cells[-3:] == ("", "", "")
    assert any("failed: judge timed out" in note for note in rows["s1"].notes)
    assert any("missing" in note for note in rows["s2"].notes)
    assert not any("0.000" in str(row.cells) for row in rows.values())
    html = Reader(html_of(rn.assess(scores), "questions"))
    assert html.samples[[row[0] for row in html.samples].index("s1")][-1] == "—"


# What is missing


def test_a_section_is_asked_for_by_its_key_and_an_unknown_one_is_refused():
    sheet = rn.assess(frame(doc_name=["d"] * 6), gates=[])
    keys = [section.key for section in sheet.sections()]
    assert keys == [key for key in order_of(Formatter(sheet)) if key in keys]
    assert set(keys) <= set(SECTIONS)
    assert not {"gates", "outcomes", "comparison", "documents"} & set(keys)
    assert sheet.section("outcomes") is None
    with pytest.raises(RagnbError, match="did you mean 'gates'"):
        sheet.section("gate")


def test_a_sheet_without_notes_has_no_list_of_them(tmp_path):
    scores = frame(60, doc_name=[f"d{i}" for i in range(60)], context_relevance=[0.9] * 60)
    people = [1 + i % 9 for i in range(90)]
    pd.DataFrame({"judge": people, "human": people, "cluster": range(90)}).to_csv(
        tmp_path / "r.csv", index=False
    )
    sheet = rn.assess(scores, gates=[], ratings=tmp_path / "r.csv")
    assert not len(sheet.notes)
    assert sheet.section("run").lead == ""
    assert next(type(block) for block in sheet.section("run").blocks) is Table


THIN = {
    "one row": {"faithfulness": [0.4], "doc_name": ["a"]},
    "ranges that do not add up": {"faithfulness": [0.5, 0.9, np.nan], "accuracy": [3, 8, 9]},
    "a metric without a score": {
        "faithfulness": [None, None, None],
        "answer_relevancy": [0.1, 0.2, 0.3],
    },
    "a missing id": frame(3, sample_id=["a", None, "c"]),
    "a day of a log": {
        "question": ["How far?", "How long?"],
        "answer": ["Nine miles.", "A day."],
        "latency_s": [0.4, None],
        "ts": ["2026-03-01T09:00:00+00:00", "2026-03-02T09:00:00+00:00"],
        "citations": [["p1"], ["p2"]],
    },
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("what", THIN)
def test_thin_data_never_show_nan_or_none(what, lang):
    sheet = rn.assess(pd.DataFrame(THIN[what]), lang=lang)
    for text in (sheet.to_html(), sheet._repr_html_(), sheet.to_markdown()):
        read = Reader(text)
        shown = read.text + " ".join(
            value or "" for _, attrs in read.tags for value in attrs.values()
        )
        assert not re.search(r"\b(nan|NaN|None(?! of them)|<NA>|inf)\b", shown)


@pytest.mark.parametrize(("lang", "why"), [("en", "ranges"), ("zh", "量程")])
def test_a_total_that_does_not_exist_says_why(lang, why):
    sheet = rn.assess(pd.DataFrame({"faithfulness": [0.5, 0.9], "accuracy": [3, 8]}), lang=lang)
    line = next(
        line for line in sheet.to_markdown().splitlines() if line.startswith("- weighted_score")
    )
    assert line.startswith("- weighted_score: — (")
    row = Reader(html_of(sheet, "metrics")).tables[0][1]
    assert row[3].startswith("—")
    assert why in row[3]
    assert why in line
    assert sheet.section("summary").blocks[0].score is None


def test_an_endless_range_is_drawn_nowhere():
    metric = rn.Metric("distance", 0, float("inf"), "lower")
    scores = pd.DataFrame({"distance": [0.4, 9.0], "doc_name": ["a", "b"]})
    sheet = rn.assess(scores, metrics=[metric], gates=[rn.Gate("slow", "distance", "<=", 5.0)])
    page = html_of(sheet, "metrics", "gates")
    assert not re.search(r'class="rg-(scale|hist|svg)"', page)
    assert "4.700" in page


@pytest.mark.parametrize("own", ["good", ["good"]], ids=["a word", "a list"])
def test_a_column_of_labels_that_are_none_of_ours_changes_nothing(own):
    plain, labelled = rn.assess(frame()), rn.assess(frame(label=[own] * 6))
    assert html_of(labelled, "questions") == html_of(plain, "questions")


def test_a_failed_gate_says_its_causes_whatever_the_scale():
    scores = frame(faithfulness=[1.0, 2, 1, 3, 2, 1])
    gates = [rn.Gate("F", "faithfulness", ">=", 7.0)]
    with pytest.warns(RagnbWarning, match="does not fit"):
        sheet = rn.assess(scores, metrics=[rn.Metric("faithfulness", 1, 10)], gates=gates)
    assert sheet.blocked
    parts = sheet.section("fix").blocks[0].rows[0].parts
    assert parts["Probable causes"] == tuple(texts.entry("en", "rules.faithfulness")["causes"])


# Strangers' text


@pytest.fixture(scope="module")
def hostile():
    scores = frame(12, question=EVIL, answer=f"one two three four {EVIL}", ground_truth_answer=EVIL)
    scores["retrieved_contexts"] = [[f"one two three four {EVIL}"]] * 12
    for name, number in {
        "doc_name": lambda i: i % 4,
        "sample_id": lambda i: i % 6,
        "system": lambda i: i // 6,
        "kind": lambda i: i % 2,
    }.items():
        scores[name] = [f"{EVIL}{number(i)}" for i in range(12)]
    scores["odd<b>|metric"] = 0.2
    scores.loc[3, "faithfulness"] = None
    scores["faithfulness__status"] = ["ok"] * 3 + ["failed"] + ["ok"] * 8
    scores["faithfulness__reason"] = [None] * 3 + [EVIL] + [None] * 8
    metrics = ["faithfulness", "answer_relevancy", rn.Metric("odd<b>|metric")]
    gates = [rn.Gate(EVIL, "odd<b>|metric", ">=", 0.5)]
    return rn.assess(scores, metrics=metrics, gates=gates, title=EVIL.replace("\n", " "))


@pytest.fixture(scope="module")
def hostile_traces(tmp_path_factory):
    """Payloads in gold, answers, citations, ids of passages, slices and the name of the baseline."""
    folder, line = tmp_path_factory.mktemp("hostile"), EVIL.replace("\n", " ")
    gold = [
        {
            "qid": f"{EVIL}{i}",
            "q": f"{EVIL}{i}?",
            "answerable": i % 2 == 0,
            "kind": EVIL,
            "gold_ids": [f"{EVIL}{i}"] if i % 2 == 0 else [],
        }
        for i in range(8)
    ]
    said = {
        "answer": EVIL,
        "citations": [EVIL],
        "doc_name": EVIL,
        "chunks": [{"id": EVIL, "text": EVIL}],
    }
    sides = {"candidate": f"new{line}", "baseline": f"old{line}"}
    traces = [
        {"qid": row["qid"], "q": row["q"], "system": s} | said
        for row in gold
        for s in sides.values()
    ]
    (folder / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
    (folder / "traces.jsonl").write_text("\n".join(map(json.dumps, traces)), encoding="utf-8")
    return rn.assess(folder / "traces.jsonl", gold=folder / "gold.json", slices=["kind"], **sides)


@pytest.mark.parametrize("name", ["hostile", "hostile_traces"])
@pytest.mark.parametrize(
    "write", [lambda sheet: sheet.to_html(), lambda sheet: sheet._repr_html_()]
)
def test_a_payload_stays_text(name, write, request):
    reader = Reader(write(request.getfixturevalue(name)))
    assert not [tag for tag, _ in reader.tags if tag in ("img", "iframe")]
    scripts = [attrs for tag, attrs in reader.tags if tag == "script"]
    assert all(attrs in ({}, {"type": "application/json"}) for attrs in scripts)
    assert not [key for _, attrs in reader.tags for key in attrs if key.startswith("on")]
    links = [attrs["href"] for tag, attrs in reader.tags if tag == "a"]
    assert all(link.startswith("#") for link in links)
    assert "<img src=x onerror=alert(1)>" in reader.text


def test_a_payload_in_a_script_of_data_closes_nothing(hostile):
    page = hostile.to_html()
    assert island(page)["all"] == 12
    assert EVIL[:20] in str(island(page)["filters"])
    assert len(re.findall(r"</script", page)) == 2


@pytest.mark.parametrize("name", ["hostile", "hostile_traces"])
def test_a_payload_adds_no_row_and_no_element_to_markdown(name, request):
    text = request.getfixturevalue(name).to_markdown()
    assert "<img" not in text
    assert "</script" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    tables = [part.splitlines() for part in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
    assert tables
    for lines in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1, lines[0]


def test_hostile_rows_are_as_many_as_the_records(hostile, hostile_traces):
    assert len(Reader(html_of(hostile, "questions")).samples) == len(hostile.scores)
    assert len(Reader(html_of(hostile_traces, "questions")).samples) == len(hostile_traces.scores)


def test_control_characters_reach_neither_page_nor_markdown():
    odd = "a\x00b\x1b[2J\x07c\u2028d\ufdd0"
    scores = frame(
        question=odd, answer=odd, doc_name=[odd, "x"] * 3, retrieved_contexts=[[odd]] * 6
    )
    scores["sample_id"] = [f"{odd}{i}" for i in range(6)]
    sheet = rn.assess(scores)
    for text in (sheet.to_html(), sheet.to_markdown(), sheet._repr_html_()):
        text.encode()
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", text)


# The page, the fragment, the file


def test_every_link_of_the_page_finds_its_place(both):
    read = Reader(both.to_html())
    places = [attrs["id"] for _, attrs in read.tags if "id" in attrs]
    assert len(places) == len(set(places))
    links = {attrs["href"][1:] for tag, attrs in read.tags if tag == "a"}
    assert {link for link in links if not re.match("[omdc]=", link)} <= set(places)


def test_contents_name_every_section_with_its_state(both):
    read = Reader(both.to_html())
    nav = read.within("nav")
    for section in both.sections():
        assert section.name in nav
        assert (section.badge if isinstance(section.badge, str) else section.badge.text) in nav


def test_a_fragment_has_no_place_of_a_section_and_the_notebooks_style(both):
    read = Reader(both._repr_html_())
    ids = [attrs["id"] for _, attrs in read.tags if "id" in attrs]
    assert not set(SECTIONS) & set(ids)
    first = read.tags[0]
    assert first[0] == "div"
    assert first[1]["lang"] == {"en": "en", "zh": "zh-CN"}[both.scenario.lang]
    assert "ragnb" in first[1]["class"].split()
    assert both.section("summary").blocks[0].title in read.text


def test_a_section_shows_itself_as_in_the_sheet(both):
    section = both.section("gates")
    assert repr(section) == render_markdown([section])
    assert section._repr_html_() == render_fragment([section])
    assert repr(section).strip() in both.to_markdown()


def test_page_asks_for_nothing_outside(both):
    page = both.to_html()
    assert not re.search(r"(?:src|href)=\"(?!#)|url\(|@import", page)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_the_policy_of_the_page_allows_its_style_and_its_script_and_no_other(both):
    page = both.to_html()
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert [kind for kind, _ in scripts] == [' type="application/json"', ""]
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for text in (style, scripts[1][1]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none';")
    assert not re.search(r'\sstyle="', page)


def test_same_input_gives_the_same_text_wherever_it_lies(tmp_path):
    texts = []
    for folder in (tmp_path / "a", tmp_path / "b" / "deep"):
        folder.mkdir(parents=True)
        frame(12).to_csv(folder / "scores.csv", index=False)
        (folder / "run.yaml").write_text(
            "scores: scores.csv\ndoc_weights: {d1: 2.0}\n", encoding="utf-8"
        )
        sheet = rn.assess(folder / "run.yaml")
        texts.append((sheet.to_markdown(), re.sub(r"\d{4}-\d\d-\d\d", "", sheet.to_html())))
        assert str(tmp_path) not in "".join(texts[-1])
    assert texts[0] == texts[1]
    assert not re.search(r"20\d\d-\d\d-\d\d", texts[0][0])


def test_run_details_name_files_weights_and_steps(both):
    text, read = both.to_markdown(), Reader(html_of(both, "run"))
    for one in both.inputs:
        assert one["path"] in read.text
        assert one["sha256"] in read.text
        assert one["sha256"] in text
    settings = dict(anchored(both.section("run").blocks, Table)[0].rows)
    weights = " ".join(settings.values())
    for name, weight in both.scenario.doc_weights.items():
        assert f"{name} {weight:g}" in weights
    for step in both.ledger["step"]:
        assert step in read.text
    for note in both.notes["text"][
        ~both.notes["code"].isin(["more_needed", "no_ratings", "default_gates"])
    ]:
        assert note in read.text


def test_the_glossary_holds_a_sentence_for_each_metric_of_the_run(both):
    (terms,) = both.section("glossary").blocks
    known = {key: text for _, key, text in terms.lines}
    assert {"context_recall", "answer_correctness", "under_refusal"} <= set(known)
    assert all(known.values())
    assert "accuracy" not in known


# Systems and comparison


def test_systems_stand_side_by_side_the_best_first():
    sheet = rn.assess(ROOT / "data/quickstart/scores.csv")
    heads, *rows = Reader(html_of(sheet, "comparison")).tables[0]
    means = sheet.systems.set_index(["system", "metric"])
    total = means.xs("weighted_score", level="metric").sort_values("value", ascending=False)
    assert heads[1:-1] == total.index.tolist()
    for system, cell in zip(heads[1:-1], rows[0][1:-1], strict=True):
        one = total.loc[system]
        assert numbers(cell) == numbers(f"{mean(one)} {ends(one)} n = {one['n']}")
    assert 'class="rg-svg"' not in html_of(sheet, "comparison")


def test_a_mean_is_marked_by_the_side_of_its_threshold_that_its_interval_is_on():
    rng = np.random.default_rng(2)
    parts = []
    for name, middle in {"good": 0.85, "near": 0.7, "bad": 0.5}.items():
        values = np.clip(rng.normal(middle, 0.05, 60), 0, 1)
        parts.append(
            frame(60, system=[name] * 60, doc_name=[f"d{i % 12}" for i in range(60)]).assign(
                faithfulness=values
            )
        )
    sheet = rn.assess(pd.concat(parts, ignore_index=True), gates=[], metrics=["faithfulness"])
    table = sheet.section("comparison").blocks[0]
    row = next(row for row in table.rows if row[0][0] == "Faithfulness")
    marks = dict(zip((head.lstrip(">") for head in table.heads[1:4]), row[1:4], strict=True))
    means = sheet.systems[sheet.systems["metric"] == "faithfulness"].set_index("system")
    for system, one in means.iterrows():
        tone = "good" if one["low"] >= 0.7 else "bad" if one["high"] < 0.7 else "watch"
        assert marks[system][0].tone == tone
    assert {mark[0].tone for mark in marks.values()} == {"good", "watch", "bad"}
    first = sheet.section("summary").blocks
    standing = next(block for block in first if isinstance(block, Table))
    assert {row[0]: row[-1][0].text for row in standing.rows} == {
        "good": "1 met",
        "near": "1 inconclusive",
        "bad": "1 missed",
    }


def test_each_system_has_a_verdict_of_its_own_on_the_first_screen():
    gates = [rn.Gate("F", "faithfulness", ">=", 0.7)]
    scores = frame(
        60, system=[f"m{i % 3}" for i in range(60)], doc_name=[f"d{i // 3}" for i in range(60)]
    )
    scores["faithfulness"] = [(0.95, 0.71, 0.2)[i % 3] + i % 5 / 1000 for i in range(60)]
    sheet = rn.assess(scores, gates=gates)
    table = next(block for block in sheet.section("summary").blocks if isinstance(block, Table))
    outcomes = sheet.gates[sheet.gates["gate"] == "F"].set_index("system")["outcome"]
    words = {"pass": "passed", "fail": "failed", "undecided": "inconclusive"}
    want = {name: f"1 {words[one]}" for name, one in outcomes.items()}
    column = table.heads.index("Gates")
    assert {row[0]: row[column][0].text for row in table.rows} == want
    by_system = sheet.section("gates").blocks[0]
    assert len(by_system.rows) == 1
    cells = dict(zip(by_system.heads[1:], by_system.rows[0][1:], strict=True))
    assert {name: cell[0].text.split(",")[0] for name, cell in cells.items()} == {
        name: words[one] for name, one in outcomes.items()
    }
    assert outcomes["m0"] == "pass"
    assert outcomes["m2"] == "fail"


def test_one_of_several_systems_has_the_same_page_with_its_own_details(compared):
    assert compared.of_system("strong").to_markdown() == compared.to_markdown()
    weak = compared.of_system("weak")
    score, own = (
        weak.section("summary").blocks[0].score,
        compared.systems.set_index(["system", "metric"]),
    )
    assert score.value == own.loc[("weak", "weighted_score"), "value"]
    assert repr(weak).startswith("Assessment('")
    with pytest.raises(RagnbError, match="strong"):
        weak.of_system("strong")


def test_a_difference_stands_beside_the_score_of_its_candidate_alone():
    scores = frame(24, system=["old", "new"] * 12, sample_id=[f"s{i // 2}" for i in range(24)])
    scores["faithfulness"] = [0.3 + 0.4 * (i % 2) + i % 5 / 100 for i in range(24)]
    sheet = rn.assess(scores, baseline="old")
    assert sheet.shown_system == "old"
    assert "compared with old" not in str(sheet.section("summary"))
    assert "compared with old" in str(sheet.of_system("new").section("summary"))


def test_a_difference_that_blocks_is_the_reason_where_no_gate_of_a_system_does():
    scores = frame(24, system=["old", "new"] * 12, sample_id=[f"s{i // 2}" for i in range(24)])
    scores["faithfulness"] = [0.7 - 0.4 * (i % 2) + i % 5 / 100 for i in range(24)]
    worse = rn.Gate("worse", "faithfulness", not_worse_than="baseline", by=0.02)
    sheet = rn.assess(
        scores, baseline="old", gates=[worse, rn.Gate("F", "faithfulness", ">=", 0.1)]
    )
    assert sheet.gates.loc[sheet.gates["blocks"], "gate"].tolist() == ["worse"]
    assert "against the baseline" in sheet.verdict
    assert "0 of 2" not in sheet.verdict


def test_no_number_of_the_sheet_pools_systems():
    scores = frame(60, system=[f"m{i % 2}" for i in range(60)])
    scores["faithfulness"] = [0.9 if i % 2 else 0.401 for i in range(60)]
    pooled = f"{scores['faithfulness'].mean():.3f}"
    sheet = rn.assess(scores)
    assert pooled not in sheet.to_markdown() + Reader(sheet.to_html()).text + sheet.verdict


def test_more_systems_than_a_radar_holds_keep_their_table():
    scores = frame(70, system=[f"m{i % 7}" for i in range(70)])
    page = html_of(rn.assess(scores), "comparison")
    assert 'class="rg-svg"' not in page
    assert len(Reader(page).tables[0]) == 8


def test_differences_from_a_baseline_are_those_of_the_frame(compared):
    table = Reader(html_of(compared, "comparison")).tables[0][1:]
    rows = compared.comparison[compared.comparison["n_common"] > 0].to_dict("records")
    assert len(table) == len(rows) > 3

    def written(row):
        points = is_rate(compared.of_system("strong"), row["metric"])
        values = [
            f"{100 * row[key]:+.1f}" if points else f"{row[key]:+.3f}"
            for key in ("value", "low", "high")
        ]
        values = [value.replace("-", "−") if value.strip("+-0.") else value[1:] for value in values]
        return *values, f"{row['wins']} / {row['ties']} / {row['losses']}"

    assert sorted((*numbers(cells[3]), cells[5]) for cells in table) == sorted(map(written, rows))


def test_saved_page_and_markdown_are_those_of_the_sheet(tmp_path, both):
    saved = both.save(tmp_path)
    assert saved["report.md"].read_text(encoding="utf-8") == both.to_markdown()
    assert saved["report.html"].read_text(encoding="utf-8") == both.to_html()


def test_the_glossary_links_to_the_catalogue_where_the_site_is_named(monkeypatch, tmp_path):
    sheet = rn.assess(pd.DataFrame({"question": ["a", "b"], "faithfulness": [0.2, 0.9]}))
    assert "catalogue" not in sheet.to_html()
    monkeypatch.setenv("RAGNB_DOCS", "https://example.org/docs/")
    target = "https://example.org/docs/en/generated/catalogue/metrics.html#metric-faithfulness"
    assert f'href="{target}"' in sheet.to_html()
    monkeypatch.setenv("RAGNB_DOCS", str(tmp_path))
    assert (
        f'href="{tmp_path.as_uri()}/en/generated/catalogue/metrics.html#metric-faithfulness"'
        in sheet.to_html()
    )


def test_a_value_beside_its_threshold_has_the_digits_that_tell_them_apart():
    """0.79996 is not at least 0.800, and three digits would say that it is."""
    scores = pd.DataFrame({"faithfulness": [0.79995, 0.79996, 0.79997] * 20})
    sheet = rn.assess(scores, gates=[rn.Gate("F", "faithfulness", ">=", 0.8)])
    text = sheet.to_markdown()
    assert "0.79996" in text
    usual = rn.assess(scores, gates=[rn.Gate("F", "faithfulness", ">=", 0.7)]).to_markdown()
    assert "0.79996" not in usual


@pytest.mark.parametrize(
    ("lang", "finding"),
    [("en", "None of the 6 questions has an answer"), ("zh", "6 个问题都没有回答")],
)
def test_questions_without_any_answer_are_not_counted_as_answers_above_their_thresholds(
    lang, finding
):
    names = [f"q{k}" for k in range(6)]
    traces = pd.DataFrame(
        {"sample_id": names, "question": names, "answer": None, "error": "timeout"}
    )
    traces["chunks"] = [[name] for name in names]
    gold = pd.DataFrame({"sample_id": names, "question": names, "gold_ids": [[n] for n in names]})
    sheet = rn.assess(traces, gold=gold.assign(answerable=True), lang=lang)
    assert sheet.section("questions").finding == finding
