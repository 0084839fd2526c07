"""`ragnb compare` as a user runs it: runs in; a word, files and an exit code out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ragnb as rn
from ragnb.store import Cell, Outcome, Store

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")
QUESTIONS = 48


def table(shift=0.0, noise=0.05, seed=0, **columns):
    """Return one metric on 48 questions of 12 documents."""
    rng = np.random.default_rng(seed)
    hard = np.linspace(0.3, 0.7, QUESTIONS)
    scores = (hard + shift + rng.normal(0, noise, QUESTIONS)).round(4)
    places = range(QUESTIONS)
    ids = {"sample_id": [f"q{n}" for n in places], "doc_name": [f"d{n % 12}" for n in places]}
    return pd.DataFrame(ids | {"faithfulness": scores} | columns)


def interval(row, name=""):
    """Write a difference of scores with its interval, signs as wide as a plus."""
    value, low, high = (
        f"{row[name + end]:+.3f}".replace("-", "−") for end in ("value", "low", "high")
    )
    return f"{value} ({low} to {high})"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files of one evaluation: the base, and versions that are better, worse, the same and inconclusive."""
    monkeypatch.chdir(tmp_path)
    table(seed=1).to_csv("base.csv", index=False)
    for name, shift, noise in [
        ("up", 0.2, 0.05),
        ("down", -0.2, 0.05),
        ("same", 0, 0.05),
        ("open", 0.02, 0.12),
    ]:
        table(shift, noise, seed=2).to_csv(f"{name}.csv", index=False)
    return tmp_path


def test_two_csv_files_of_one_evaluation_are_answered_in_the_first_line(folder):
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "ragnb", "compare", "up.csv", "base.csv"]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("better: weighted_score +0.")


@pytest.mark.parametrize(
    ("name", "word", "code"),
    [("up", "better", 0), ("same", "same", 0), ("down", "worse", 1), ("open", "inconclusive", 3)],
)
def test_the_exit_code_is_that_of_the_outcome_only_with_gate(run, folder, name, word, code):
    assert run("compare", f"{name}.csv", "base.csv")[0] == 0
    found, out, _ = run("compare", f"{name}.csv", "base.csv", "--gate")
    assert found == code
    row = rn.compare(f"{name}.csv", baseline="base.csv").iloc[-1]
    first = (
        f"{word}: weighted_score {interval(row)}; {name} − base, 48 common questions, 12 documents"
    )
    assert out.splitlines()[0] == first


def test_of_several_candidates_the_worst_decides(run, folder):
    sides = {"new": table(0.2, seed=3), "bad": table(-0.2, seed=4), "old": table(seed=5)}
    pd.concat([side.assign(system=name) for name, side in sides.items()]).to_csv(
        "all.csv", index=False
    )
    code, out, _ = run("compare", "all.csv", "old", "--gate")
    assert code == 1
    assert {line.split(":")[0] for line in out.splitlines()[:2]} == {"better", "worse"}
    assert run("compare", "all.csv", "old", "--gate", "--candidate", "new")[0] == 0
    Path("all.yaml").write_text("scores: all.csv\nbaseline: old\ncandidate: new\n")
    assert run("compare", "all.yaml", "--gate")[0] == 0
    assert (
        run("compare", "all.yaml")[1] == run("compare", "all.csv", "old", "--candidate", "new")[1]
    )


def test_a_margin_for_all_metrics_or_for_one(run, folder):
    assert run("compare", "up.csv", "base.csv")[1].startswith("better")
    wide = run("compare", "up.csv", "base.csv", "--margin", "0.4")[1]
    assert wide.startswith("better, within the margin: weighted_score +0.2")
    assert "±0.4" in wide
    one = [
        "--primary",
        "faithfulness",
        "--margin",
        "faithfulness=0.4",
        "--margin",
        "weighted_score=0.01",
    ]
    out = run("compare", "up.csv", "base.csv", *one)[1]
    assert out.startswith("better, within the margin: faithfulness")
    assert any(
        line.startswith("weighted_score ") and "● better" in line for line in out.splitlines()
    )


def test_failures_of_one_side_are_named_with_the_worst_case(run, folder):
    new = table(0.2, seed=2)
    new.loc[:9, "faithfulness"] = np.nan
    new["faithfulness__status"] = np.where(new["faithfulness"].isna(), "failed", "ok")
    new.to_csv("n.csv", index=False)
    out = run("compare", "n.csv", "base.csv")[1]
    worst = rn.compare("n.csv", baseline="base.csv").iloc[-1]["worst_case"]
    assert "faithfulness 10 (n: 10 failed)" in out
    assert f"worst possible value: weighted_score {worst:+.3f}.".replace("-", "−") in out
    assert (
        "faithfulness 10 (n: 10 个评分失败)"
        in run("compare", "n.csv", "base.csv", "--lang", "zh")[1]
    )


def test_questions_that_changed_and_little_overlap_are_noted(run, folder):
    texts = [f"what about {n}?" for n in range(QUESTIONS)]
    table(seed=1, question=texts).to_csv("base.csv", index=False)
    table(0.2, seed=2, question=["reworded", *texts[1:]]).to_csv("new.csv", index=False)
    out = run("compare", "new.csv", "base.csv")[1]
    assert "47 common questions" in out
    assert "1 reworded" in out
    other = [f"q{n}" if n < 10 else f"new{n}" for n in range(QUESTIONS)]
    table(0.2, seed=2, sample_id=other).to_csv("new.csv", index=False)
    row = rn.compare("new.csv", baseline="base.csv").iloc[-1]
    out = run("compare", "new.csv", "base.csv")[1]
    assert f"only 10 of {10 + row['n_left_out']} questions are common to both" in out
    assert interval(row, "all_") in out


def test_a_difference_within_the_noise_of_repeats_is_called_that(run, folder):
    for name, shift in (("new", 0.01), ("base", 0.0)):
        repeats = [table(shift, 0.08, seed=n).assign(repeat=n) for n in (1, 2, 3)]
        pd.concat(repeats).to_csv(f"{name}.csv", index=False)
    row = rn.compare("new.csv", baseline="base.csv").iloc[0]
    assert row["below_noise"]
    said = f"variation between repeats: faithfulness +0.010 (±{row['noise']:.3f})"
    assert said in run("compare", "new.csv", "base.csv")[1]


def test_a_difference_that_people_do_not_see_is_not_shown(run, folder):
    rows = [
        f"q{n},faithfulness,0.5,0.5,{name}" for n in range(QUESTIONS) for name in ("up", "base")
    ]
    Path("ratings.csv").write_text(
        "item_id,dimension,judge,human,system\n" + "\n".join(rows) + "\n"
    )
    code, out, _ = run("compare", "up.csv", "base.csv", "--ratings", "ratings.csv", "--gate")
    first = out.splitlines()[0]
    assert first.startswith("not shown better: weighted_score")
    assert "judge +0.205, people 0.000" in first
    assert "on 48 pairs, the judge favours up by 0.205" in first
    assert code == 3
    assert run("compare", "up.csv", "base.csv", "-p", "ratings=ratings.csv")[1] == out
    half = "\n".join(row for row in rows if row.endswith("up"))
    Path("ratings.csv").write_text(f"item_id,dimension,judge,human,system\n{half}\n")
    code, out, _ = run("compare", "up.csv", "base.csv", "--ratings", "ratings.csv", "--gate")
    assert out.startswith("inconclusive: weighted_score")
    assert "the judge was not validated on these systems. People rated 0 questions" in out
    assert code == 3


def test_a_loss_within_the_margin_passes_but_when_strict_and_is_said(run, folder):
    table(-0.1, noise=0.001, seed=1).to_csv("less.csv", index=False)
    wide = ["--margin", "0.2"]
    code, out, _ = run("compare", "less.csv", "base.csv", *wide, "--gate", "--junit", "a.xml")
    assert out.startswith("worse, within the margin: weighted_score −0.")
    assert code == 0
    assert ET.parse("a.xml").getroot().get("failures") == "0"
    strict = ["--gate", "strict", "--junit", "b.xml"]
    assert run("compare", "less.csv", "base.csv", *wide, *strict)[0] == 1
    assert ET.parse("b.xml").getroot().get("failures") == "1"
    code, _, err = run("compare", "--gate", "less.csv", "base.csv")
    assert code == 2
    assert "'less.csv' is not one of 'margin', 'strict', 'all'" in err


def test_another_metric_that_is_worse_is_in_the_first_line_and_blocks_when_all_count(run, folder):
    base = table(seed=1).assign(answer_relevancy=0.5)
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.02, QUESTIONS)
    new = base.assign(
        faithfulness=base["faithfulness"] + 0.1 + noise,
        answer_relevancy=base["answer_relevancy"] - 0.1 + noise,
    )
    base.to_csv("b.csv", index=False)
    new.to_csv("n.csv", index=False)
    code, out, _ = run("compare", "n.csv", "b.csv", "--gate")
    assert code == 0
    assert "; but answer_relevancy −0." in out.splitlines()[0]
    assert run("compare", "n.csv", "b.csv", "--gate", "all")[0] == 1


def test_an_inconclusive_comparison_says_how_many_questions_are_needed(run, folder):
    row = rn.compare("open.csv", baseline="base.csv").iloc[-1]
    out = run("compare", "open.csv", "base.csv")[1]
    assert f"about {row['questions_needed'] - row['n_common']:,.0f} more questions needed" in out
    assert f"a difference of {row['detectable']:.3f} (80 % power)" in out


def test_a_difference_that_only_holm_leaves_open_is_explained(run):
    pair = [ROOT / "scenarios" / f"{name}.yaml" for name in ("quickstart", "quickstart_weak")]
    table = rn.compare(pair[0], baseline=pair[1])
    beyond = (table["low"] > 0) | (table["high"] < 0)
    late = table.loc[beyond & (table["outcome"] == "undecided"), "metric"].tolist()
    assert late
    assert (table.set_index("metric").loc[late, "p_holm"] >= 0.05).all()
    _, out, _ = run("compare", *pair)
    assert f"- Inconclusive although the interval excludes 0: {', '.join(late)}. Several" in out
    assert "p (Holm)" in out


def test_one_document_has_no_interval(run, folder):
    for name in ("up", "base"):
        table(0.2 * (name == "up"), doc_name="d").to_csv(f"{name}.csv", index=False)
    code, out, _ = run("compare", "up.csv", "base.csv", "--gate")
    assert code == 3
    assert out.startswith("inconclusive: weighted_score +0.200; up − base")
    assert "there is no confidence interval" in out


def test_by_a_column_follows_the_whole(run, folder):
    for name, shift in (("up", 0.2), ("base", 0.0)):
        kind = np.where(np.arange(QUESTIONS) % 2, "hard", "easy")
        table(shift, seed=len(name), kind=kind).to_csv(f"{name}.csv", index=False)
    code, out, _ = run("compare", "up.csv", "base.csv", "--by", "kind", "--json", "c.json")
    assert code == 0
    assert "weighted_score by kind" in out
    assert [
        line.count("● better") for line in out.splitlines() if line.startswith(("easy", "hard"))
    ] == [1, 1]
    slices = json.loads(Path("c.json").read_text(encoding="utf-8"))["slices"]
    assert {(row["kind"], row["metric"]) for row in slices} == {
        (kind, metric) for kind in ("easy", "hard") for metric in ("faithfulness", "weighted_score")
    }
    assert run("compare", "up.csv", "base.csv", "--by", "knd")[0] == 2


def test_each_file_holds_the_outcome(run, folder):
    words = ["--markdown", "c.md", "--html", "out/c.html", "--json", "c.json", "--junit", "c.xml"]
    code, out, _ = run("compare", "down.csv", "base.csv", *words)
    assert code == 0
    first = out.splitlines()[0]
    markdown, page = (Path(name).read_text(encoding="utf-8") for name in ("c.md", "out/c.html"))
    assert first in markdown.replace("\\", "")
    assert page.startswith("<!doctype html>")
    assert "down compared with base" in page
    saved = json.loads(Path("c.json").read_text(encoding="utf-8"))
    assert saved["outcome"] == "worse"
    row = rn.compare("down.csv", baseline="base.csv").iloc[-1]
    assert saved["metrics"][-1]["value"] == pytest.approx(row["value"])
    suite = ET.parse("c.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    assert suite.find(".//failure").get("message") == first
    run("compare", "open.csv", "base.csv", "--junit", "c.xml")
    suite = ET.parse("c.xml").getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")


def test_a_name_is_text_in_the_page(run, folder):
    name = "<b>x|y</b>"
    both = [table(seed=1, system="old"), table(0.2, seed=2, system=name)]
    pd.concat(both).to_csv("all.csv", index=False)
    run("compare", "all.csv", "old", "--html", "c.html", "--markdown", "c.md")
    assert "<b>x" not in Path("c.html").read_text(encoding="utf-8")
    rows = [
        line
        for line in Path("c.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1


def test_chinese(run, folder):
    code, out, _ = run(
        "compare", "down.csv", "base.csv", "--lang", "zh", "--gate", "--html", "c.html"
    )
    assert code == 1
    assert out.startswith("更差：weighted_score −0.")
    assert "48 个共同问题，12 个文档" in out
    assert 'lang="zh' in Path("c.html").read_text(encoding="utf-8")
    Path("zh.yaml").write_text("lang: zh\nscores: up.csv\nbaseline: base.csv\n")
    assert run("compare", "zh.yaml")[1].startswith("更好：")


def test_only_some_metrics(run, folder):
    for name in ("up", "base"):
        frame = pd.read_csv(f"{name}.csv")
        frame.assign(context_recall=0.5 + 0.4 * (name == "base")).to_csv(f"{name}.csv", index=False)
    assert "context_recall" in run("compare", "up.csv", "base.csv")[1]
    out = run("compare", "up.csv", "base.csv", "--metric", "faithfulness")[1]
    assert out.startswith("better")
    assert "context_recall" not in out
    code, _, err = run("compare", "up.csv", "base.csv", "--metric", "faithful")
    assert code == 2
    assert "did you mean 'faithfulness'" in err


def test_metrics_that_do_not_add_up_need_a_primary(run, folder):
    for name in ("up", "base"):
        frame = pd.read_csv(f"{name}.csv")
        frame.assign(tone=frame["faithfulness"] * 4 + 1).to_csv(f"{name}.csv", index=False)
    words = [
        "compare",
        "up.csv",
        "base.csv",
        "-p",
        "metrics=[faithfulness, {name: tone, low: 1, high: 5}]",
    ]
    code, out, _ = run(*words)
    assert code == 0
    assert out.startswith("No metric decides.")
    code, _, err = run(*words, "--gate")
    assert code == 2
    assert "--primary" in err
    assert run(*words, "--gate", "--primary", "tone")[1].startswith("better: tone")


def test_the_folder_of_a_run_is_a_baseline(run, folder):
    rn.assess("base.csv").save("saved")
    runs = [path.parent for path in Path("saved").rglob("scores.csv")]
    assert len(runs) == 1
    code, out, _ = run("compare", "down.csv", runs[0], "--gate")
    assert code == 1
    assert out.startswith("worse: weighted_score")
    assert "48 common questions, 12 documents" in out


def test_two_runs_of_a_store(run, folder):
    with Store("runs.sqlite") as store:
        for model, shift in (("old", 0.0), ("new", 0.2)):
            rows = table(shift)
            names = zip(rows["sample_id"], rows["doc_name"], strict=True)
            cells = [
                Cell(name, "faithfulness", {}, model=model, cluster=doc) for name, doc in names
            ]
            store.plan(cells, name=model)
            store.put(
                [(c, Outcome.of(x)) for c, x in zip(cells, rows["faithfulness"], strict=True)]
            )
        old, new = store.runs()["run"]
    code, out, _ = run("compare", f"runs.sqlite#{new}", f"runs.sqlite#{old[:6]}", "--gate")
    assert code == 0
    assert out.startswith("better: weighted_score +0.200")
    code, _, err = run("runs", "runs.sqlite", old, new)
    assert code == 2
    assert f"ragnb compare runs.sqlite#{new} runs.sqlite#{old}" in err


BAD = [
    (["compare", "up.csv"], "(ragnb compare new.csv base.csv)"),
    (["compare", "up.csv", "nothing.csv"], "baseline='nothing.csv'"),
    (["compare", "nothing.csv", "base.csv"], "nothing.csv"),
    (["compare", "up.csv", "base.csv", "--margin", "wide"], "--margin 'wide' is not a number"),
    (
        ["compare", "up.csv", "base.csv", "--margin", "faithfulnes=0.1"],
        "did you mean 'faithfulness'",
    ),
    (["compare", "up.csv", "base.csv", "--primary", "recall"], "primary='recall'"),
    (["compare", "up.csv", "base.csv", "--on", "ticket"], "on='ticket'"),
    (["compare", "up.csv", "other.csv"], "--on"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(run, folder, words, said):
    table(sample_id=[f"x{n}" for n in range(QUESTIONS)]).to_csv("other.csv", index=False)
    code, out, err = run(*words)
    assert code == 2
    assert not out
    assert said in err
    assert err.count("\n") == 1


def test_small_losses_in_a_row_are_one_large_one_beside_the_accepted_run(run, folder):
    """Each release loses .02 within the margin of .05; beside the accepted one the third is worse."""
    Path("mine.yaml").write_text("scores: r0.csv  # ours\n")
    for n in range(4):
        table(-0.02 * n, noise=0.001, seed=n).to_csv(f"r{n}.csv", index=False)
    code, out, _ = run("accept", "r0.csv", "mine.yaml")
    assert (code, out) == (0, "mine.yaml: anchor: names mine.anchor.csv now; keep both in git.\n")
    assert Path("mine.yaml").read_text() == "scores: r0.csv  # ours\nanchor: mine.anchor.csv\n"
    codes = []
    for n in (1, 2, 3):
        Path("mine.yaml").write_text(f"scores: r{n}.csv\nanchor: mine.anchor.csv\n")
        code, out, _ = run("compare", "mine.yaml", f"r{n - 1}.csv", "--gate", "--junit", "c.xml")
        assert out.startswith("worse, within the margin: weighted_score −0.02")
        codes.append(code)
    assert codes == [0, 0, 1]
    assert out.splitlines()[1].startswith("Accepted run: worse: weighted_score −0.06")
    cases = [case.get("name") for case in ET.parse("c.xml").getroot().iter("testcase")]
    assert len(cases) == len(set(cases)) == 4
    alone = run("compare", "mine.yaml", "--gate")
    assert alone[0] == 1
    assert alone[1].startswith("worse: weighted_score −0.06")
    same = run("compare", "mine.yaml", "mine.anchor.csv")[1]
    assert "Accepted run" not in same
    assert run("accept", "r3.csv", "mine.yaml")[0] == 0
    assert Path("mine.anchor.csv").read_text() == Path("r3.csv").read_text()
    code, _, err = run("accept", "nothing", "mine.yaml")
    assert code == 2
    assert "nothing: there is no such table of scores or folder of a run to accept" in err


def test_reference_answers_that_changed_are_in_the_first_line(run, folder):
    answers = [f"answer {n}" for n in range(QUESTIONS)]
    table(seed=1, ground_truth_answer=answers).to_csv("b.csv", index=False)
    table(0.2, seed=2, ground_truth_answer=[f"new {one}" for one in answers]).to_csv(
        "n.csv", index=False
    )
    out = run("compare", "n.csv", "b.csv")[1]
    assert out.splitlines()[0].endswith("; 48 reference answers changed")
    assert "The reference answers of 48 of 48 common questions differ" in out
    table(0.2, seed=2, ground_truth_answer=answers).to_csv("n.csv", index=False)
    assert "reference answers" not in run("compare", "n.csv", "b.csv")[1]


def test_drawn_pairs_that_people_fill_in_decide(run, folder):
    """The judge favours `new` by .2 on every question; people, blind to the system, see nothing."""
    base = table(seed=1, answer="so").assign(system="old")
    new = base.assign(system="new", faithfulness=base["faithfulness"] + 0.2)
    pd.concat([new, base]).to_csv("both.csv", index=False)
    draw = [
        "--dimension",
        "faithfulness",
        "--pairs",
        "--out",
        "labels.csv",
        "--cluster",
        "doc_name",
    ]
    code, out, err = run("calibrate", "--sample", "30", "both.csv", *draw)
    assert code == 0, err
    sheet, key = (pd.read_csv(name) for name in ("labels.csv", "labels.judge.csv"))
    assert "system" not in sheet
    assert key.groupby("sample_id")["system"].nunique().tolist() == [2] * 30
    assert key["cluster"].nunique() == 12
    true = base.set_index("sample_id")["faithfulness"]
    noise = np.random.default_rng(4).normal(0, 0.01, 60)
    sheet["faithfulness"] = true[key["sample_id"]].to_numpy() + noise
    sheet.to_csv("labels.csv", index=False)
    code, out, err = run("compare", "both.csv", "old", "--ratings", "labels.csv", "--gate")
    assert code != 2, err
    assert out.startswith("not shown better: weighted_score")
    assert "on 30 pairs, the judge favours new by 0.2" in out.splitlines()[0]
    assert code == 0
    code, _, err = run("calibrate", "--sample", "30", "up.csv", *draw)
    assert code == 2
    assert "the table has one; give a table with a column system" in err
