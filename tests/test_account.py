"""The account of a run balances, and no verdict is ready where more than the allowance is lost."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.inputs.coverage import case_coverage

GATE = {"name": "F", "metric": "faithfulness", "op": ">=", "threshold": 0.5}
BLANKS = ["", "NaN", "None", "-", "#N/A"]


def rows_of(sheet, stage, subject=None):
    account = sheet.account[sheet.account["stage"] == stage]
    return account if subject is None else account[account["subject"] == subject].iloc[0]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_csv(path, faithfulness):
    lines = [f"q{i},an answer,{value}" for i, value in enumerate(faithfulness)]
    path.write_text("\n".join(["question,answer,faithfulness", *lines]) + "\n", encoding="utf-8")
    return path


CELLS = st.sampled_from([0.9, 0.9, 0.9, 0.2, None, "failed", "not_applicable"])


@st.composite
def tables(draw):
    """A table of scores with one row an answer, its cases, and what a plain loop counts."""
    systems = draw(st.sampled_from([[None], ["a", "b"]]))
    rows = []
    for system in systems:
        for number in range(draw(st.integers(1, 12))):
            row = {"sample_id": f"q{number}", "question": f"What is {number}?"}
            row |= {} if system is None else {"system": system}
            for metric in ("faithfulness", "context_recall"):
                cell = draw(CELLS)
                row[metric] = cell if isinstance(cell, float) else math.nan
                row[f"{metric}__status"] = cell if isinstance(cell, str) else None
            row["ground_truth_answer"] = draw(st.sampled_from(["yes", "yes", None]))
            rows.append(row)
    n_cases = draw(st.sampled_from([None, 0, 3]))
    most = max(int(row["sample_id"][1:]) for row in rows) + 1
    cases = None
    if n_cases is not None:
        cases = [f"q{i}" for i in range(most + n_cases)]
    return pd.DataFrame(rows), systems, cases


def absent_cells(frame, own, cases, metric):
    """Return how many cells of a metric never came, of the cases or of the questions of all systems together."""
    if cases is not None:
        return len(set(cases) - set(own["sample_id"]))
    questions = frame.drop_duplicates("sample_id")
    absent = questions.index[~questions["sample_id"].isin(own["sample_id"])]
    return sum(not explained(questions, i, metric) for i in absent)


def explained(own, row, metric):
    """Whether the row lacks a reference answer that context recall needs and other rows have."""
    lacking = own["ground_truth_answer"].isna()
    return metric == "context_recall" and lacking.any() and not lacking.all() and lacking[row]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_what_was_expected_is_what_came_and_what_is_lost(tmp_path_factory, table):
    frame, systems, cases = table
    more = {}
    if cases is not None:
        folder = tmp_path_factory.mktemp("cases")
        more["cases"] = write_lines(
            folder / "c.jsonl", [{"sample_id": one, "question": f"What is {one}?"} for one in cases]
        )
    sheet = rn.assess(frame, gates=[GATE], **more)
    account = sheet.account
    assert (account["expected"] == account["seen"] + account["lost"]).all()
    assert (account["lost"] >= account["failed"]).all()
    shares = [0.0]
    for system in systems:
        own = frame if system is None else frame[frame["system"] == system]
        for metric in ("faithfulness", "context_recall"):
            absent = absent_cells(frame, own, cases, metric)
            counts = {"ok": 0, "failed": 0, "blank": absent, "not_applicable": 0}
            for i in own.index:
                status = own[f"{metric}__status"][i]
                if not math.isnan(own[metric][i]):
                    counts["ok"] += 1
                elif isinstance(status, str):
                    counts[status] += 1
                elif explained(frame, i, metric):
                    counts["not_applicable"] += 1
                else:
                    counts["blank"] += 1
            found = account[(account["subject"] == metric) & (account["stage"] == "cells")]
            found = found[found["system"].isna() if system is None else found["system"] == system]
            row = found.iloc[0]
            assert row["seen"] == counts["ok"]
            assert row["failed"] == counts["failed"]
            assert row["lost"] == counts["failed"] + counts["blank"]
            assert row["not_applicable"] == counts["not_applicable"]
            assert row["expected"] + row["not_applicable"] == len(own) + absent
            shares += [row["lost"] / row["expected"]] if row["expected"] else []
            values = [value for value in own[metric] if not math.isnan(value)]
            if row["expected"]:
                worst = sum(values) / row["expected"]
                assert row["worst"] == pytest.approx(worst)
                best = (sum(values) + row["lost"]) / row["expected"]
                assert row["best"] == pytest.approx(best)
        asked = {*frame["sample_id"]} if cases is None else {*cases}
        shares.append(2 * len(asked - {*own["sample_id"]}) / len(asked))  # half as many may be lost
    if max(shares) > 0.1 + 1e-9:
        assert sheet.blocked
        status = "Incomplete input" if sheet.means["n"].any() else "Nothing to evaluate"
        assert sheet.verdict.startswith(status)
        assert "Ready" not in sheet.verdict


@pytest.mark.parametrize("token", BLANKS)
def test_every_blank_is_a_lost_score(tmp_path, token):
    sheet = rn.assess(write_csv(tmp_path / "s.csv", [0.9] * 8 + [token] * 2), gates=[GATE])
    row = rows_of(sheet, "cells", "faithfulness")
    assert (row["expected"], row["seen"], row["lost"], row["reason"]) == (10, 8, 2, "missing")
    assert row["worst"] == pytest.approx(0.9 * 8 / 10)
    assert "2 of 10 answers have no faithfulness score" in sheet.verdict
    assert "0.720 if all lost answers were wrong" in sheet.verdict


@pytest.mark.parametrize(("blank", "code"), [(10, 0), (11, 1)])
def test_a_tenth_of_the_scores_may_be_lost_and_is_said(tmp_path, capsys, blank, code):
    path = write_csv(tmp_path / "s.csv", [0.9] * (100 - blank) + [""] * blank)
    found = main(["check", str(path), "-p", f"gates=[{json.dumps(GATE)}]"])
    first = capsys.readouterr().out.splitlines()[0]
    assert found == code
    assert f"{blank} of 100 answers have no faithfulness score" in first
    assert first.startswith("Ready" if code == 0 else "Incomplete input")


def test_the_allowance_is_set_in_one_key(tmp_path):
    path = write_csv(tmp_path / "s.csv", [0.9] * 80 + [""] * 20)
    assert rn.assess(path, gates=[GATE]).blocked
    assert not rn.assess(path, gates=[GATE], allow={"cells": 0.2}).blocked
    assert rn.assess(path, gates=[GATE], allow={"cells": 0.19}).blocked


def test_the_worst_case_of_a_metric_where_lower_is_better_is_its_high_end():
    frame = pd.DataFrame({"noise_sensitivity": [0.1, 0.3, np.nan]})
    sheet = rn.assess(frame)
    assert rows_of(sheet, "cells", "noise_sensitivity")["worst"] == pytest.approx(1.4 / 3)
    # Turned round in the total: (0.9 + 0.7 + 0) / 3.
    assert rows_of(sheet, "total")["worst"].iloc[0] == pytest.approx(1.6 / 3)


def test_without_a_range_there_is_no_worst_case_and_without_a_total_no_row_of_it():
    seconds = rn.Metric("seconds", 0, math.inf, better="lower")
    frame = pd.DataFrame({"seconds": [1.0, 3.0, np.nan], "faithfulness": [0.9, 0.9, np.nan]})
    sheet = rn.assess(frame, metrics=[seconds, "faithfulness"])
    row = rows_of(sheet, "cells", "seconds")
    assert (row["expected"], row["lost"], math.isnan(row["worst"])) == (3, 1, True)
    assert rows_of(sheet, "total").empty


def test_a_metric_that_nothing_uses_does_not_block_and_is_said(tmp_path):
    frame = pd.DataFrame({"faithfulness": [0.9] * 10, "context_recall": [0.9] * 2 + [np.nan] * 8})
    sheet = rn.assess(frame, gates=[GATE], metric_weights={"context_recall": 0})
    assert not sheet.blocked
    assert "8 of 10 answers have no context recall score" in sheet.verdict
    assert rn.assess(frame, gates=[GATE]).blocked


def test_no_score_at_all_is_said_in_one_number():
    frame = pd.DataFrame({"faithfulness": [np.nan] * 6, "context_recall": [np.nan] * 6})
    sheet = rn.assess(frame)
    assert sheet.blocked
    assert sheet.verdict.startswith("Nothing to evaluate: All 12 scores are missing:")


def test_a_field_that_only_some_rows_lack_explains_an_empty_cell():
    rows = {"question": [*"abcd"], "context_recall": [0.9, 0.8, None, None]}
    partly = pd.DataFrame(rows | {"ground_truth_answer": ["x", "y", None, None]})
    row = rows_of(rn.assess(partly), "cells", "context_recall")
    assert (row["expected"], row["lost"], row["not_applicable"]) == (2, 0, 2)
    nowhere = pd.DataFrame(rows | {"ground_truth_answer": [None] * 4})
    row = rows_of(rn.assess(nowhere), "cells", "context_recall")
    assert (row["expected"], row["lost"], row["not_applicable"]) == (4, 2, 0)
    row = rows_of(rn.assess(pd.DataFrame(rows)), "cells", "context_recall")
    assert (row["expected"], row["lost"]) == (4, 2)


def test_a_blank_that_is_intended_is_not_applicable():
    frame = pd.DataFrame({"faithfulness": [0.9, np.nan], "tone": [3.0, np.nan]})
    tone = rn.Metric("tone", 1, 5, blank="not_applicable")
    sheet = rn.assess(frame, metrics=["faithfulness", tone], metric_weights={"tone": 0})
    assert rows_of(sheet, "cells", "faithfulness")["lost"] == 1
    assert rows_of(sheet, "cells", "tone")["not_applicable"] == 1
    sheet = rn.assess(frame[["faithfulness"]], blank="not_applicable")
    assert rows_of(sheet, "cells", "faithfulness")["lost"] == 0
    assert not sheet.blocked


@pytest.mark.parametrize("engine", ["polars", "stream"])
def test_other_engines_count_the_same(engine, tmp_path):
    pl = pytest.importorskip("polars")
    rows = {
        "sample_id": [f"q{i}" for i in range(20)],
        "answer": ["x"] * 18 + [None] * 2,
        "faithfulness": [0.9] * 15 + [None] * 5,
        "context_recall": [0.9] * 16 + [None] * 4,
        "ground_truth_answer": ["y"] * 17 + [None] * 3,
    }
    frame = pl.DataFrame(rows)
    there = frame if engine == "polars" else frame.lazy()
    found = rn.assess(there).account
    found = found[found["stage"] != "lines"].reset_index(drop=True)  # a query has lines to read
    expected = rn.assess(pd.DataFrame(rows)).account
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_cut_lines_are_lost_lines(tmp_path):
    path = write_lines(
        tmp_path / "s.jsonl", [{"question": f"q{i}", "faithfulness": 0.9} for i in range(20)]
    )
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    sheet = rn.assess(path)
    row = rows_of(sheet, "lines", "scores")
    assert (row["expected"], row["seen"], row["lost"], row["reason"]) == (20, 19, 1, "damaged")
    assert sheet.incomplete


def test_empty_records_are_lost_scores(tmp_path):
    records = [{"question": f"q{i}", "faithfulness": 0.9} for i in range(20)] + [{}] * 5
    sheet = rn.assess(write_lines(tmp_path / "s.jsonl", records))
    row = rows_of(sheet, "cells", "faithfulness")
    assert (row["expected"], row["lost"]) == (25, 5)
    assert sheet.blocked


@pytest.mark.parametrize("lost", [{"answer": None}, {}])
@pytest.mark.parametrize("known", [False, True])
def test_a_log_measures_failures_and_blocks_on_answers_that_are_simply_gone(tmp_path, lost, known):
    rows = [{"question": f"q{i}", "answer": "Ten days.", "ok": True} for i in range(93)]
    gone = [{"question": f"gone {i}", "ok": not known} | lost for i in range(7)]
    path = write_lines(tmp_path / "log.jsonl", rows + gone)
    sheet = rn.assess(path)
    row = rows_of(sheet, "answers", "answers")
    assert (row["expected"], row["seen"], row["lost"]) == (100, 93, 7)
    assert row["reason"] == ("failed" if known else "missing")
    assert main(["check", str(path)]) == (0 if known else 1)
    assert f"7 of 100 answers {'failed' if known else 'are missing'}" in sheet.verdict


def test_empty_records_of_a_log_are_lost_answers(tmp_path):
    rows = [{"question": f"q{i}", "answer": "Ten days."} for i in range(20)] + [{}] * 5
    sheet = rn.assess(write_lines(tmp_path / "log.jsonl", rows))
    assert rows_of(sheet, "answers", "answers")["lost"] == 5
    assert sheet.blocked


def test_gold_that_nobody_answered_is_lost_whether_the_trace_is_there_or_not(tmp_path):
    gold = [{"question": f"q{i}", "answerable": True, "gold_ids": ["a"]} for i in range(40)]
    traces = [{"question": f"q{i}", "answer": "Yes. citations: [a]"} for i in range(34)]
    traces += [{"question": f"q{i}", "answer": None} for i in range(34, 38)]  # two never came
    paths = [write_lines(tmp_path / f"{n}.jsonl", r) for n, r in (("t", traces), ("g", gold))]
    sheet = rn.assess(paths[0], gold=paths[1])
    row = rows_of(sheet, "questions", "gold")
    assert (row["expected"], row["seen"], row["lost"]) == (40, 34, 6)
    assert sheet.verdict.startswith("Incomplete input: 6 of 40 gold questions have no answer.")
    assert rows_of(sheet, "cells", "correct_outcome")["worst"] == pytest.approx(34 / 40)


@pytest.mark.parametrize(("rows", "blocks"), [(57, False), (56, True)])
@pytest.mark.parametrize("key", ["sample_id", "question"])
def test_a_table_shorter_than_its_cases_has_fewer_answers(tmp_path, rows, blocks, key):
    cases = write_lines(tmp_path / "c.jsonl", [{"question": f"q{i}"} for i in range(60)])
    if key == "sample_id":
        cases = write_lines(
            tmp_path / "c.jsonl", [{"sample_id": f"id{i}", "question": f"Q {i}"} for i in range(60)]
        )
    names = [f"id{i}" if key == "sample_id" else f"q{i}" for i in range(rows)]
    sheet = rn.assess(pd.DataFrame({key: names, "faithfulness": 0.9}), gates=[GATE], cases=cases)
    row = rows_of(sheet, "questions", "cases")
    assert (row["expected"], row["seen"]) == (60, rows)
    assert rows_of(sheet, "cells", "faithfulness")["expected"] == 60
    assert rows_of(sheet, "cells", "faithfulness")["worst"] == pytest.approx(0.9 * rows / 60)
    assert sheet.blocked == blocks
    assert f"{60 - rows} of 60 questions of the cases have no answer" in sheet.verdict


def test_cases_that_a_metric_does_not_apply_to_are_not_expected_of_it(tmp_path):
    cases = [{"question": f"q{i}", "answerable": i < 50} for i in range(60)]
    path = write_lines(tmp_path / "c.jsonl", cases)
    frame = pd.DataFrame({"question": [f"q{i}" for i in range(40)], "faithfulness": 0.9})
    sheet = rn.assess(frame, cases=path)
    assert rows_of(sheet, "questions", "cases")["lost"] == 20
    assert rows_of(sheet, "cells", "faithfulness")["expected"] == 50


def test_cases_of_several_systems_are_expected_of_each_its_own(tmp_path):
    cases = [{"question": f"q{i}", "system": name} for name in "ab" for i in range(10)]
    path = write_lines(tmp_path / "c.jsonl", cases)
    frame = pd.DataFrame(cases).assign(faithfulness=0.9)[:15]
    asked = rows_of(rn.assess(frame, cases=path), "questions")
    assert asked[["system", "expected", "seen"]].to_numpy().tolist() == [
        ["a", 10, 10],
        ["b", 10, 5],
    ]
    one = rows_of(rn.assess(frame, cases=path, where={"system": "b"}), "questions", "cases")
    assert (one["expected"], one["seen"]) == (10, 5)


def test_questions_that_where_leaves_out_are_not_expected(tmp_path):
    cases = [{"question": f"q{i}", "kind": "a" if i < 30 else "b"} for i in range(60)]
    path = write_lines(tmp_path / "c.jsonl", cases)
    frame = pd.DataFrame(cases).assign(faithfulness=0.9, note="x")
    assert not rn.assess(frame[:30], cases=path, where={"kind": "a"}).blocked
    frame["note"] = ["x"] * 20 + ["y"] * 40
    sheet = rn.assess(frame, cases=path, where={"note": "x"})
    row = rows_of(sheet, "questions", "cases")
    assert (row["expected"], row["seen"]) == (20, 20)


@pytest.mark.parametrize(
    ("expect", "blocks"), [(100, False), (105, False), (106, True), (90, False)]
)
def test_a_count_can_be_stated_outright(expect, blocks):
    frame = pd.DataFrame({"faithfulness": [0.9] * 100})
    sheet = rn.assess(frame, gates=[GATE], expect=expect)
    row = rows_of(sheet, "questions", "expect")
    assert (row["expected"], row["lost"]) == (expect, max(0, expect - 100))
    assert sheet.blocked == blocks
    with pytest.raises(RagnbError, match="expect"):
        rn.assess(frame, expect=0)


def test_a_baseline_with_more_questions_is_not_beaten_by_losing_them(tmp_path):
    both = pd.DataFrame({"question": [f"q{i}" for i in range(60)], "faithfulness": 0.9})
    paths = {"new": tmp_path / "new.csv", "base": tmp_path / "base.csv"}
    both.to_csv(paths["base"], index=False)
    for rows, code, outcome in ((57, 0, "same"), (56, 3, "undecided")):
        both[:rows].to_csv(paths["new"], index=False)
        assert main(["compare", str(paths["new"]), str(paths["base"]), "--gate"]) == code
        table = rn.compare(paths["new"], baseline=paths["base"])
        assert set(table["outcome"]) == {outcome}
        sheet = rn.assess(paths["new"], baseline=paths["base"], gates=[GATE])
        row = rows_of(sheet, "questions", "baseline")
        assert (row["expected"], row["seen"]) == (60, rows)
        assert sheet.blocked == (code == 3)
    allowed = ["compare", str(paths["new"]), str(paths["base"]), "--gate"]
    assert main([*allowed, "-p", "allow={questions: 0.2}"]) == 0


def test_the_first_line_of_a_comparison_counts_lost_questions(tmp_path, capsys):
    frame = pd.DataFrame({"question": [f"q{i}" for i in range(60)], "faithfulness": 0.9})
    frame.to_csv(tmp_path / "base.csv", index=False)
    frame[:48].to_csv(tmp_path / "new.csv", index=False)
    main(["compare", str(tmp_path / "new.csv"), str(tmp_path / "base.csv"), "--gate"])
    first = capsys.readouterr().out.splitlines()[0]
    assert "12 of 60 questions of the baseline are missing" in first


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_output_says_what_is_lost(tmp_path, lang):
    sheet = rn.assess(
        write_csv(tmp_path / "s.csv", [0.9] * 60 + [""] * 240), gates=[GATE], lang=lang
    )
    said = {"en": "240 of 300", "zh": "300 个回答中有 240 个"}[lang]
    folder = tmp_path / "run"
    files = sheet.save(folder)
    for name in ("report.md", "report.html", "gates.junit.xml"):
        assert said in files[name].read_text(encoding="utf-8"), name
    told = json.loads(files["gates.json"].read_text(encoding="utf-8"))
    row = next(row for row in told["account"] if row["stage"] == "cells")
    assert (row["expected"], row["seen"], row["lost"]) == (300, 60, 240)
    assert row["worst"] == pytest.approx(0.18)
    assert "0.180" in sheet.verdict
    table = {"en": "What was expected and what came", "zh": "应有多少，实有多少"}[lang]
    assert files["report.html"].read_text(encoding="utf-8").count(table) == 1
    shutil.rmtree(folder)


def test_no_mean_is_praised_where_its_metric_is_incomplete(tmp_path):
    sheet = rn.assess(write_csv(tmp_path / "s.csv", [0.9] * 6 + [""] * 4), gates=[])
    text = sheet.to_markdown()
    assert "meet their thresholds" not in text
    assert "Means of the scored answers only; no verdict is drawn from them" in text


def test_the_losses_of_each_system_are_its_own():
    rows = {"question": [f"q{i}" for i in range(20)] * 2, "system": ["a"] * 20 + ["b"] * 20}
    frame = pd.DataFrame(rows | {"faithfulness": [0.9] * 20 + [0.9] * 10 + [np.nan] * 10})
    sheet = rn.assess(frame, gates=[GATE])
    gates = sheet.gates[sheet.gates["gate"] == "scored_cells"].set_index("system")
    assert gates["blocks"].tolist() == [False, True]
    assert "b: 10 of 20 answers have no faithfulness score" in sheet.verdict
    assert not rn.assess(frame, gates=[GATE], candidate="a").blocked


@pytest.mark.parametrize(("threshold", "outcome"), [(0.5, "undecided"), (0.18, "pass")])
def test_a_gate_passes_on_what_is_left_only_if_it_would_with_all_that_is_lost_wrong(
    threshold, outcome
):
    left = [0.9] * 60
    scores = pd.DataFrame({"faithfulness": left + [None] * 240})
    gate = rn.Gate("f", "faithfulness", ">=", threshold)
    sheet = rn.assess(scores, gates=[gate])
    found = sheet.gates.set_index("gate").loc["f"]
    assert sum(left) / 300 == pytest.approx(0.18)
    assert found["outcome"] == outcome
    assert sheet.blocked
    assert "0.180 to 0.980" in sheet.to_markdown()
    assert "0.180 if all lost answers were wrong" in sheet.verdict


@pytest.mark.parametrize(("rows", "blocks"), [(38, False), (37, True)])
@pytest.mark.parametrize("engine", ["pandas", "stream"])
def test_a_system_is_expected_to_answer_what_its_neighbour_answered(rows, blocks, engine):
    pl = pytest.importorskip("polars")
    names = [f"q{i}" for i in range(40)]
    table = {
        "system": ["a"] * 40 + ["b"] * rows,
        "question": names + names[:rows],
        "faithfulness": [0.9] * (40 + rows),
    }
    frame = pd.DataFrame(table) if engine == "pandas" else pl.DataFrame(table).lazy()
    sheet = rn.assess(frame, gates=[GATE])
    asked = rows_of(sheet, "questions", None)[["system", "expected", "seen"]]
    assert asked.to_numpy().tolist() == [["a", 40, 40], ["b", 40, rows]]
    assert sheet.blocked == blocks
    assert f"{40 - rows} of the 40 questions of all systems have no answer" in sheet.verdict
    if engine == "pandas":
        worst = rows_of(sheet, "cells").set_index("system")["worst"]
        assert worst["b"] == pytest.approx(0.9 * rows / 40)
        assert "answers have no faithfulness score" not in sheet.verdict  # the same loss


def test_systems_that_share_no_question_are_not_expected_to():
    frame = pd.DataFrame({"system": [*"aab"], "question": [*"xyz"], "faithfulness": 0.9})
    assert rows_of(rn.assess(frame), "questions").empty


@pytest.mark.parametrize("where", [{}, {"system": "a"}, {"language": "en"}])
@pytest.mark.parametrize("with_scores", [False, True])
def test_a_row_without_an_answer_is_a_question_lost_and_its_score_lost_once(
    tmp_path, where, with_scores
):
    asked = [
        {"sample_id": f"q{i}", "question": f"What is {i}?", "language": "en" if i < 10 else "de"}
        for i in range(12)
    ]
    said = ["yes"] * 7 + [None] * 3 + ["ja"] * 2
    files = {
        "gold": [one | {"answerable": True} for one in asked],
        "cases": asked,
        "traces": [
            one | {"answer": text, "system": "a"} for one, text in zip(asked, said, strict=True)
        ],
    }
    if with_scores:
        files["scores"] = [
            {"sample_id": one["sample_id"], "system": "a", "language": one["language"]}
            | {"faithfulness": 0.9 if text else None}
            for one, text in zip(asked, said, strict=True)
        ]
    paths = {name: write_lines(tmp_path / f"{name}.jsonl", rows) for name, rows in files.items()}
    sheet = rn.assess(rn.Scenario(**paths, where=where))
    wanted = sum(where.get("language", one["language"]) == one["language"] for one in asked)
    for subject in ("gold", "cases"):
        row = rows_of(sheet, "questions", subject)
        assert (row["expected"], row["lost"]) == (wanted, 3)
    if with_scores:
        row = rows_of(sheet, "cells", "faithfulness")
        assert (row["expected"], row["lost"]) == (wanted, 3)
    assert not sheet.passing


def test_a_system_without_any_answer_has_lost_all_of_its_cases():
    rows = [
        {"question": f"What is {i}?", "system": name, "answer": "yes" if name == "a" else None}
        for i in range(8)
        for name in "ab"
    ]
    cases = pd.DataFrame({"question": [f"What is {i}?" for i in range(8)]})
    labelled = pd.DataFrame(rows).assign(answered=[True, None] * 8)
    found = case_coverage(labelled, labelled, cases, where={})
    assert [one[:4] for one in found] == [("cases", "a", 8, 8), ("cases", "b", 8, 0)]


@pytest.mark.filterwarnings("ignore:gold holds 2 question:ragnb.errors.RagnbWarning")
def test_a_question_that_gold_holds_twice_is_not_one_that_was_lost():
    gold = pd.DataFrame(
        {
            "sample_id": [f"g{i}" for i in range(6)],
            "question": ["a?", "b?", "c?", "d?", "a?", "b?"],
            "answerable": True,
        }
    )
    said = pd.DataFrame({"question": ["a?", "b?", "c?", "d?"], "answer": "yes"})
    gates = rn.assess(said, gold=gold).gates.set_index("gate")
    assert gates.loc["gold_coverage", "value"] == 1
    lost = rn.assess(said[:3], gold=gold).gates.set_index("gate").loc["gold_coverage"]
    assert (lost["value"], lost["n"]) == (0.75, 4)
