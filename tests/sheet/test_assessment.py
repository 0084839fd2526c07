"""The sheet: a file, a frame or a scenario becomes the same numbers as the rooms give one by one."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.sheet.weighable import weighable

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"


@pytest.fixture
def scores():
    rng = np.random.default_rng(1)
    n = 40
    return pd.DataFrame(
        {
            "sample_id": [f"q{i}" for i in range(n)],
            "question": [f"问题 {i}" for i in range(n)],
            "answer": "答",
            "doc_name": rng.choice(["甲.pdf", "乙.pdf", "c.pdf"], n),
            "faithfulness": rng.uniform(0.2, 0.8, n).round(2),
            "noise_sensitivity": rng.uniform(0, 1, n).round(2),
            "tone": rng.integers(1, 6, n),
            "latency": rng.uniform(0, 9, n),
        }
    )


def test_a_strangers_ragas_table_with_one_metric_of_its_own(tmp_path, scores):
    table = scores.rename(columns={"question": "user_input", "answer": "response"}).drop(
        columns="sample_id"
    )
    path = tmp_path / "my_ragas.csv"
    table.to_csv(path)
    own = {"metrics": [rn.Metric("tone", 1, 5)], "metric_weights": {"tone": 0, "faithfulness": 1}}
    sheet, want = rn.assess(path, **own), rn.weighted_means(scores, **own)
    pd.testing.assert_frame_equal(sheet.means, want)
    assert sheet.diagnoses["metric"].tolist()[0] in ("faithfulness", "noise_sensitivity")
    assert len(sheet.diagnoses.iloc[0]["worst"]) == 3
    assert {"not_averaged", "few_clusters", "default_gates"} <= set(sheet.notes["code"])
    assert "latency" in sheet.notes.set_index("code").loc["not_averaged", "text"]
    assert sheet.gates["gate"].tolist() == [
        "faithfulness",
        "noise_sensitivity",
        "input_lines",
        "scored_cells",
    ]
    assert not sheet.gates["blocks"].any()
    assert sheet.blocked == bool(sheet.gates["blocks"].any())
    assert sheet.inputs[0]["path"] == "my_ragas.csv"


def test_mixed_ranges_leave_the_total_missing_with_a_note_and_never_raise(scores):
    sheet = rn.assess(scores, metrics=[rn.Metric("tone", 1, 5)])
    assert math.isnan(sheet.means.iloc[-1]["value"])
    assert "no_total" in set(sheet.notes["code"])
    assert sheet.scores["weighted_score"].isna().all()
    assert sheet.verdict.endswith("No overall score.")
    rescaled = rn.assess(scores, metrics=[rn.Metric("tone", 1, 5)], rescale=True)
    assert "rescaled" in set(rescaled.notes["code"])
    assert not math.isnan(rescaled.means.iloc[-1]["value"])


def test_file_scenario_and_frame_give_the_same_sheet(tmp_path, scores):
    (tmp_path / "s.csv").write_text(scores.to_csv(index=False), encoding="utf-8")
    text = "scores: s.csv\nmetrics: [faithfulness, noise_sensitivity]\nmetric_weights: {faithfulness: 2}\n"
    (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
    settings = {
        "metrics": ["faithfulness", "noise_sensitivity"],
        "metric_weights": {"faithfulness": 2},
    }
    sheets = [
        rn.assess(tmp_path / "run.yaml"),
        rn.assess(str(tmp_path / "run.yaml")),
        rn.assess(rn.load_scenario(tmp_path / "run.yaml")),
        rn.assess(tmp_path / "s.csv", **settings),
        rn.assess(scores, **settings),
    ]
    of_file = sheets[0].gates["gate"] == "input_lines"
    for sheet in sheets[1:]:
        gates = (
            sheets[0].gates if sheet.inputs else sheets[0].gates[~of_file].reset_index(drop=True)
        )
        pd.testing.assert_frame_equal(sheet.means, sheets[0].means)
        pd.testing.assert_frame_equal(sheet.gates, gates)
        assert sheet.verdict == sheets[0].verdict


def test_a_frame_from_a_damaged_file_remembers_what_was_lost(tmp_path, scores):
    lines = scores.drop(columns="tone").to_json(orient="records", lines=True, force_ascii=False)
    (tmp_path / "s.jsonl").write_text(lines + '{"question": "cut', encoding="utf-8")
    frame = rn.read_scores(tmp_path / "s.jsonl")
    for source in (tmp_path / "s.jsonl", frame, frame.head(20)):
        gate = rn.assess(source).gates.set_index("gate").loc["input_lines"]
        assert (gate["value"], gate["n"], gate["reason"]) == (40 / 41, 41, "incomplete")
        assert gate["blocks"]
    assert "input_lines" not in set(rn.assess(pd.DataFrame(frame.to_dict("list"))).gates["gate"])


def test_overrides_touch_no_file(tmp_path):
    path = SCENARIOS / "quickstart.yaml"
    before = path.read_bytes()
    plain = rn.assess(path)
    sheet = rn.assess(
        path, metric_weights={"context_recall": 5.0}, doc_weights=None, lang="zh", level=0.8
    )
    assert path.read_bytes() == before
    assert sheet.scenario.metric_weights == {"context_recall": 5.0}
    assert sheet.scenario.doc_weights == plain.scenario.doc_weights
    own, wide = ((one.means["high"] - one.means["low"]).iloc[0] for one in (sheet, plain))
    assert own < wide
    assert sheet.verdict.startswith("尚未达标")
    with pytest.raises(RagnbError, match="did you mean 'metric_weights'"):
        rn.assess(path, metric_weight={"context_recall": 1})


def test_traces_and_scores_of_one_run_are_one_table():
    sheet = rn.assess(SCENARIOS / "quickstart.yaml")
    scenario = sheet.scenario
    read, gold = rn.read_traces(scenario.traces), rn.read_gold(scenario.gold)
    traces = rn.label_traces(read, gold=gold, refusal=scenario.refusal)
    rates = rn.refusal_metrics(traces, doc_weights=scenario.doc_weights).set_index("metric")
    means = sheet.means.set_index("metric")
    for name in rates.index:
        assert means.loc[name, "value"] == pytest.approx(rates.loc[name, "value"], abs=1e-12)
        assert means.loc[name, "n"] == rates.loc[name, "n"]
        assert means.loc[name, "n_not_applicable"] == rates.loc[name, "n_not_applicable"]
    strong = rn.read_scores(scenario.scores, metrics=scenario.metrics).query(
        "system == 'strong' and answerable"
    )
    settings = {
        name: getattr(scenario, name) for name in ("metrics", "metric_weights", "doc_weights")
    }
    want = rn.weighted_means(strong, **settings).set_index("metric")
    for name in want.index:
        assert means.loc[name, "value"] == pytest.approx(want.loc[name, "value"], abs=1e-12)
    counts = traces["label"].value_counts().reindex(sheet.outcomes["label"], fill_value=0)
    assert sheet.outcomes.set_index("label")["n"].to_dict() == counts.to_dict()
    assert len(sheet.scores) == len(traces)


def test_traces_alone_and_without_gold():
    data = ROOT / "data" / "quickstart"
    refusal = ["not in context", "资料中没有相关内容"]
    sheet = rn.assess(data / "traces.strong.jsonl", gold=data / "gold.json", refusal=refusal)
    assert sheet.gates["gate"].tolist()[:5] == ["G1", "G2", "G3", "G4", "G5"]
    assert set(sheet.gates["gate"][5:]) >= {"gold_coverage", "scored_cells"}
    assert sheet.means["metric"].tolist()[-1] == "weighted_score"
    assert math.isnan(sheet.means.iloc[-1]["value"])
    frame = rn.read_traces(data / "traces.strong.jsonl")
    again = rn.assess(frame, gold=data / "gold.json", refusal=refusal)
    pd.testing.assert_frame_equal(sheet.gates, again.gates)
    bare = rn.assess(rn.Scenario(traces=data / "traces.strong.jsonl"))
    assert "no_gold" in set(bare.notes["code"])
    assert not bare.means.set_index("metric").loc["compliance"].isna()["value"]


def test_rows_that_do_not_meet_are_said(tmp_path):
    traces = [
        {"q": "a?", "answer": "A. citations: [x]"},
        {"q": "c?", "answer": "C. citations: [z]"},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, traces)), encoding="utf-8")
    sheet = rn.assess(tmp_path / "t.jsonl", gold=gold_file(tmp_path))
    assert {"unmatched", "gold_without_trace"} <= set(sheet.notes["code"])
    assert sheet.means.set_index("metric").loc["citation_hit_rate", "n"] == 1
    assert sheet.ledger["rows"].tolist()[:3] == [2, 2, 1]


def test_several_systems_have_means_gates_and_diagnoses_of_their_own(scores):
    frame = scores.assign(system=np.where(np.arange(40) % 2, "新", "旧")).drop(columns="tone")
    gates = [rn.Gate("g", "faithfulness", ">=", 0.5)]
    sheet = rn.assess(frame, gates=gates)
    assert {"systems", "no_common_questions"} <= set(sheet.notes["code"])
    for name, part in frame.groupby("system"):
        alone, own = rn.assess(part, gates=gates), sheet.of_system(name)
        for frame_name in ("means", "diagnoses", "modes", "documents"):
            pd.testing.assert_frame_equal(
                getattr(own, frame_name), getattr(alone, frame_name), check_exact=False
            )
        rows = (
            sheet.gates[sheet.gates["system"] == name].drop(columns="system").reset_index(drop=True)
        )
        pd.testing.assert_frame_equal(rows, alone.gates.drop(columns="system"), check_exact=False)
    only = rn.assess(frame, where={"system": "新"})
    assert only.systems is None
    assert len(only.scores) == 20
    assert set(sheet.means["system"]) == set(sheet.diagnoses["system"]) == {"新", "旧"}
    nothing = r"where.system='x' matches no row of the scores \(have: 新, 旧\)|have: 旧, 新"
    with pytest.raises(RagnbError, match=nothing):
        rn.assess(frame, where={"system": "x"})
    with pytest.raises(RagnbError, match="where.sistem: no such column; did you mean 'system'"):
        rn.assess(frame, where={"sistem": "x"})


def test_documents_have_intervals_of_their_own_rows(scores):
    sheet = rn.assess(scores.drop(columns="tone"), doc_weights={"甲.pdf": 3})
    rows = sheet.documents[sheet.documents["document"] == "甲.pdf"].set_index("metric")
    part = scores[scores["doc_name"] == "甲.pdf"]
    want = rn.weighted_means(part.drop(columns=["doc_name", "tone"])).set_index("metric")
    mine, theirs = (
        table.loc["faithfulness", ["value", "low", "high"]].tolist() for table in (rows, want)
    )
    assert mine == pytest.approx(theirs)


def test_scores_and_traces_that_cannot_be_joined_are_refused(tmp_path, scores):
    twice = pd.concat([scores, scores])
    (tmp_path / "s.csv").write_text(twice.to_csv(index=False), encoding="utf-8")
    traces = [{"qid": "q0", "q": "问题 0", "answer": "x"}]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, traces)), encoding="utf-8")
    with pytest.raises(RagnbError, match="joined by sample_id, which is not unique in the scores"):
        rn.assess(
            rn.Scenario(
                scores=tmp_path / "s.csv", traces=tmp_path / "t.jsonl", metrics=["faithfulness"]
            )
        )


def test_a_table_without_a_metric_is_refused_with_the_next_step():
    with pytest.raises(
        RagnbError, match=r"quality\); declare one, such as metrics=\[rn.Metric\('quality'"
    ):
        rn.assess(pd.DataFrame({"sample_id": ["1"], "question": ["q"], "quality": [3.5]}))


def test_gates_of_the_scenario_take_the_place_of_the_default_ones(scores):
    gates = [
        rn.Gate("mine", "faithfulness", ">=", 0.99),
        rn.Gate("none", "answer_precision", ">=", 0.5),
    ]
    sheet = rn.assess(scores.drop(columns="tone"), gates=gates)
    assert sheet.gates["outcome"].tolist() == ["fail", "no_data", "pass"]
    assert sheet.blocked
    assert sheet.verdict.startswith("Not ready: Faithfulness is 0.5")
    assert "Required: Faithfulness is at least 0.990." in sheet.verdict
    skipped = rn.assess(scores.drop(columns="tone"), gates=gates[1:], no_data="skip")
    assert not skipped.blocked
    assert rn.assess(scores.drop(columns="tone"), gates=[]).verdict.startswith("Thresholds missed")
    easy = [rn.Gate("easy", "faithfulness", ">=", 0.01)]
    assert rn.assess(scores.drop(columns="tone"), gates=easy).verdict.startswith("Ready: ")


def test_saving_twice_gives_the_same_bytes_and_keeps_what_was_there(tmp_path):
    first = rn.assess(SCENARIOS / "quickstart.yaml").save(tmp_path / "a")
    second = rn.assess(SCENARIOS / "quickstart.yaml").save(tmp_path / "b")
    same = ["scores.csv", "means.csv", "gates.json", "gates.junit.xml", "report.md", "report.html"]
    assert set(first) == {*same, "scenario.snapshot.yaml", "run.json"}
    for name in same:
        assert first[name].read_bytes() == second[name].read_bytes()
    record = json.loads(first["run.json"].read_text(encoding="utf-8"))
    assert {row["role"] for row in record["inputs"]} == {"scores", "traces", "gold", "cases"}
    assert all(len(row["sha256"]) == 64 for row in record["inputs"])
    # The snapshot leads from its folder to the data; the rest says nothing of where it ran.
    texts = [
        path.read_text(encoding="utf-8") for name, path in first.items() if "snapshot" not in name
    ]
    assert not any(str(ROOT) in text or str(tmp_path) in text for text in texts)
    back = rn.load_scenario(first["scenario.snapshot.yaml"])
    assert back.metric_weights == rn.load_scenario(SCENARIOS / "quickstart.yaml").metric_weights
    table = rn.read_scores(first["scores.csv"], metrics=[rn.Metric("support_lexical")])
    assert {"weighted_score", "sample_weight"} <= set(table.columns)
    again = rn.assess(table, metrics=rn.load_scenario(SCENARIOS / "quickstart.yaml").metrics)
    assert len(again.means)
    (tmp_path / "a" / "mine.txt").write_text("kept", encoding="utf-8")
    rn.assess(SCENARIOS / "quickstart.yaml").save(tmp_path / "a")
    assert (tmp_path / "a" / "mine.txt").read_text(encoding="utf-8") == "kept"
    assert not list((tmp_path / "a").glob(".*"))


def test_a_notebook_shows_it_without_loading_what_draws(tmp_path):
    code = (
        "import sys, pandas as pd, ragnb as rn\n"
        "html = rn.assess(pd.DataFrame({'faithfulness': [1.0, 0.4]}))._repr_html_()\n"
        "assert 'Faithfulness' in html\n"
        "heavy = {'matplotlib', 'seaborn', 'papermill', 'ipywidgets', 'scipy.stats', 'nbconvert'}\n"
        "bad = heavy & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_table_without_any_score_is_a_sheet_and_says_so(lang):
    sheet = rn.assess(
        pd.DataFrame({"faithfulness": [np.nan, np.nan], "doc_name": ["a", "b"]}), lang=lang
    )
    assert sheet.means["value"].isna().all()
    assert sheet.gates["outcome"].tolist() == ["no_data", "fail"]  # all expected scores are lost
    assert sheet.blocked
    assert "nan" not in sheet.to_markdown()
    assert "—" in sheet._repr_html_()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_reasons_and_counts_are_of_one_language(lang):
    frame = pd.DataFrame(
        {"faithfulness": [0.9, 0.8], "accuracy": [9.0, 8.0], "doc_name": ["a", "b"]}
    )
    note = rn.assess(frame, lang=lang).notes.set_index("code").loc["no_total", "text"]
    assert ("not combined" in note) == (lang == "en")
    assert "accuracy 1..10" in note
    verdict = rn.assess(frame.head(1)[["faithfulness", "doc_name"]], lang=lang, gates=[]).verdict
    assert verdict.endswith("n = 1 from 1 document." if lang == "en" else "n = 1，来自 1 份文档。")
    lower = rn.Metric("distance", 0, math.inf, better="lower")
    unbounded = rn.assess(pd.DataFrame({"distance": [3.0, 4.0]}), metrics=[lower], lang=lang)
    assert "distance" in unbounded.notes.set_index("code").loc["no_total", "text"]


def gold_file(folder):
    rows = [
        {"qid": str(i), "q": q, "answerable": True, "gold_ids": [i]}
        for i, q in enumerate(["a?", "b?"])
    ]
    path = folder / "gold.json"
    path.write_text(
        json.dumps(rows).replace("[0]", '["x"]').replace("[1]", '["y"]'), encoding="utf-8"
    )
    return path


TWO_TRACES = pd.DataFrame(
    {"question": ["a?", "b?"], "answer": ["Only in part: x. citations: [x]", "B. citations: [z]"]}
)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_partial_refusals_are_shown_and_count_as_answered(tmp_path, lang):
    sheet = rn.assess(TWO_TRACES, gold=gold_file(tmp_path), partial=["^only in part"], lang=lang)
    assert sheet.scores["partial"].tolist() == [True, False]
    assert sheet.scores["answered"].all()
    assert "1" in sheet.notes.set_index("code").loc["partial", "text"]
    assert "only in part" in sheet._repr_html_() or "only in part" in sheet.to_markdown()


def test_a_verdict_counts_only_the_gates_that_have_data(tmp_path):
    gates = [rn.Gate("C", "compliance", ">=", 0.0), rn.Gate("U", "under_refusal", "<=", 0.1)]
    options = {"gold": gold_file(tmp_path), "gates": gates, "no_data": "skip"}
    some, none = (
        rn.assess(frame, **options) for frame in (TWO_TRACES, TWO_TRACES.assign(question="other?"))
    )
    assert some.verdict.startswith("Ready: One of 2 gates passed; the others have no data")
    assert none.verdict.startswith("Incomplete input: 2 of 2 gold questions have no answer")
    assert (some.blocked, none.blocked) == (False, True)
    assert [sheet.section("summary").blocks[0].status.tone for sheet in (some, none)] == [
        "good",
        "bad",
    ]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_notes_name_the_first_of_what_did_not_meet(tmp_path, lang):
    asked = pd.DataFrame({"question": ["a?", *(f"其他 {i}？" for i in range(5))], "answer": "x"})
    notes = rn.assess(asked, gold=gold_file(tmp_path), lang=lang).notes.set_index("code")["text"]
    assert "其他 0？, 其他 1？, 其他 2？" in notes["unmatched"]
    assert "其他 3？" not in notes["unmatched"]
    assert "b?" in notes["gold_without_trace"]


def test_markdown_tells_labels_slices_systems_and_partial_refusals(tmp_path):
    silent = TWO_TRACES.assign(system="t", team="乙", answer="not in context")
    traces = pd.concat([TWO_TRACES.assign(system="s|1", team=["甲", None]), silent])
    options = {"partial": ["^only in part"], "slices": ["team"], "candidate": "s|1"}
    sheet = rn.assess(traces, gold=gold_file(tmp_path), **options)
    lines = sheet.to_markdown().splitlines()
    sheet = sheet.of_system("s|1")
    counts = sheet.outcomes.set_index("label")["n"]
    lines_of_tables = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")]
    rows = [[cell.strip() for cell in cells] for cells in lines_of_tables]
    told = {
        row[0].split(" · ")[-1]: int(row[1]) for row in rows if row[0].endswith(tuple(counts.index))
    }
    assert told == counts.to_dict()
    assert {name: n for name, n in told.items() if n} == {"OK": 1, "ANS_NO_HIT": 1}
    assert ["metric", "甲", "—"] in rows
    assert any("s\\|1" in row for row in rows)
    assert any("0.0 % · 0.0–84.2 % · n = 2" in row for row in rows)
    assert [row[2] for row in rows if row[1:2] == ["a?"]] == ["t", "s\\|1"]
    assert any(line.startswith("- ") and "refuse only part" in line for line in lines)


def test_a_labelled_frame_is_a_scores_frame_with_outcomes_and_gates(tmp_path):
    gold = gold_file(tmp_path)
    whole = rn.assess(TWO_TRACES, gold=gold)
    labelled = rn.assess(rn.label_traces(TWO_TRACES, gold=rn.read_gold(gold)))
    of_files = whole.gates["gate"].isin(["gold_coverage", "input_lines"])
    pd.testing.assert_frame_equal(labelled.gates, whole.gates[~of_files].reset_index(drop=True))
    pd.testing.assert_frame_equal(labelled.outcomes, whole.outcomes)
    assert labelled.verdict == whole.verdict


def test_slices_are_the_means_of_their_rows():
    sheet = rn.assess(SCENARIOS / "quickstart.yaml")
    assert sheet.slices["slice"].unique().tolist() == ["kind", "language"]
    for language, rows in sheet.scores.groupby("language"):
        part = sheet.slices[sheet.slices["group"] == language].set_index("metric")
        asked = sheet.scenario
        docs = {k: v for k, v in asked.doc_weights.items() if k in set(rows["doc_name"])}
        weights = {"metric_weights": asked.metric_weights, "doc_weights": docs}
        want = rn.weighted_means(rows, metrics=asked.metrics, **weights).set_index("metric")
        numbers = ["value", "low", "high"]
        mine = part.loc[want.index, numbers]
        np.testing.assert_allclose(mine, want[numbers], rtol=0, atol=1e-9, equal_nan=False)
    one = rn.assess(SCENARIOS / "quickstart.yaml", slices=["doc_name"])
    assert set(one.slices["group"]) == set(sheet.scores["doc_name"])
    with pytest.raises(RagnbError, match="column='kin' is not known; did you mean 'kind'"):
        rn.assess(SCENARIOS / "quickstart.yaml", slices=["kin"])
    html = sheet._repr_html_()
    assert "Means by language" in html


# Ratings

QUICKSTART = ROOT / "data" / "quickstart"


def test_a_scenario_with_ratings_gives_the_card_that_calibrate_gives():
    sheet = rn.assess(SCENARIOS / "rubric_judge.yaml")
    want = rn.calibrate(rn.read_ratings(QUICKSTART / "ratings.csv"), scale=(1, 10))
    assert sheet.calibration.to_dict() == want.to_dict()
    assert sheet.calibration.scale == (1, 10)
    notes = sheet.notes.set_index("code")
    assert want.reasons[0] in notes.loc["judge_not_trusted", "text"]
    assert "no_ratings" not in notes.index
    assert [one["role"] for one in sheet.inputs] == ["scores", "ratings"]


def test_without_ratings_nobody_knows_and_a_note_says_so(scores):
    sheet = rn.assess(scores)
    assert sheet.calibration is None
    assert "no_ratings" in set(sheet.notes["code"])
    traces = rn.assess(QUICKSTART / "traces.weak.jsonl", gold=QUICKSTART / "gold.json")
    assert "no_ratings" not in set(traces.notes["code"])


def test_a_trusted_judge_needs_no_note(tmp_path):
    ratings = rn.read_ratings(QUICKSTART / "ratings.csv")
    ratings[ratings["dimension"] == "completeness"].to_csv(tmp_path / "r.csv", index=False)
    sheet = rn.assess(SCENARIOS / "rubric_judge.yaml", ratings=str(tmp_path / "r.csv"))
    assert sheet.calibration.verdict == "TRUST"
    assert not {"judge_not_trusted", "no_ratings"} & set(sheet.notes["code"])


def test_ratings_are_taken_whole_whatever_where_keeps_and_level_and_language_reach_their_card():
    sheet = rn.assess(
        SCENARIOS / "rubric_judge.yaml", where={"system": "weak"}, level=0.9, lang="zh"
    )
    assert len(sheet.scores) == 80
    assert set(sheet.calibration.verdicts["n"]) == {120}
    assert (sheet.calibration.level, sheet.calibration.lang) == (0.9, "zh")


def test_saved_run_holds_the_card(tmp_path):
    sheet = rn.assess(SCENARIOS / "rubric_judge.yaml")
    saved = sheet.save(tmp_path)
    assert (
        json.loads(saved["calibration.json"].read_text(encoding="utf-8"))["verdict"] == "NOT PROVEN"
    )
    assert saved["calibration.md"].read_text(encoding="utf-8") == sheet.calibration.to_markdown()
    assert json.loads(saved["run.json"].read_text(encoding="utf-8"))["judge"] == "NOT PROVEN"
    assert "## Judge trust: " in saved["report.md"].read_text(encoding="utf-8")


def test_ratings_alone_are_for_calibrate():
    for source in (QUICKSTART / "ratings.csv", pd.read_csv(QUICKSTART / "ratings.csv")):
        with pytest.raises(RagnbError, match="ragnb calibrate"):
            rn.assess(source)
    with pytest.raises(RagnbError, match="ragnb calibrate"):
        rn.assess(rn.Scenario(ratings=QUICKSTART / "ratings.csv"))


def test_ratings_without_a_judge_are_refused(tmp_path):
    pd.read_csv(QUICKSTART / "ratings.csv").drop(columns="judge").to_csv(
        tmp_path / "r.csv", index=False
    )
    with pytest.raises(RagnbError, match="no scores of a judge"):
        rn.assess(SCENARIOS / "rubric_judge.yaml", ratings=str(tmp_path / "r.csv"))


@pytest.mark.parametrize("key", ["sample_id", "question"])
def test_answers_to_one_question_are_a_cluster_where_no_document_is_named(key):
    by = "repeat"
    rng = np.random.default_rng(3)
    hard, noise = rng.beta(4, 2, 30), rng.normal(0, 0.02, (30, 4))
    scores = np.clip(hard[:, None] + noise, 0, 1)
    frame = pd.DataFrame(
        {key: np.repeat([f"问题 {i}" for i in range(30)], 4), by: np.tile(list("abcd"), 30)}
    )
    sheet = rn.assess(frame.assign(faithfulness=scores.ravel()))
    row = sheet.means.iloc[0]
    each = scores.mean(axis=1)  # clusters of one size: their means are an i.i.d. sample
    assert row["se"] == pytest.approx(each.std(ddof=1) / np.sqrt(30), rel=1e-12)
    assert (row["n"], row["n_clusters"]) == (120, 30)
    told = set(sheet.notes["code"]) & {"questions_independent", "rows_independent"}
    assert told == {"questions_independent"}
    pooled = weighable(frame.assign(faithfulness=scores.ravel()))[1].pooled().means()
    pd.testing.assert_frame_equal(pooled, sheet.means)
    alone = rn.assess(frame.assign(faithfulness=scores.ravel()).iloc[::4])
    assert "rows_independent" in set(alone.notes["code"])
    named = rn.assess(frame.assign(faithfulness=scores.ravel(), doc_name=frame.index // 40))
    assert named.means.iloc[0]["n_clusters"] == 3


def test_means_by_document_are_made_when_they_are_asked_for():
    frame = pd.DataFrame(
        {
            "question": ["a", "b", "c", "d"] * 2,
            "system": ["old"] * 4 + ["new"] * 4,
            "doc_name": ["x", "x", "y", "z"] * 2,
            "faithfulness": [1.0, 0.5, 0.25, 0.75, 0.5, 0.5, 1.0, 0.0],
        }
    )
    sheet = rn.assess(frame, doc_weights={"y": 3})
    assert "documents" not in vars(sheet)
    rows = sheet.documents.set_index(["system", "document", "metric"])
    for system, own in frame.groupby("system"):
        weight = own["doc_name"].map({"y": 3}).fillna(1.0)
        whole = (own["faithfulness"] * weight).sum() / weight.sum()
        for name, of_document in own.groupby("doc_name"):
            mean = of_document["faithfulness"].mean()
            row = rows.loc[(system, name, "weighted_score")]
            share = weight[of_document.index].sum() / weight.sum()
            assert row["value"] == pytest.approx(mean)
            assert row["share"] == pytest.approx(share)
            assert row["pull"] == pytest.approx(share * (mean - whole))
        alone = rn.assess(own.drop(columns="system"), doc_weights={"y": 3}).documents
        pd.testing.assert_frame_equal(sheet.of_system(system).documents, alone)
