"""What decides a run: each system by itself, whole input, named gates, a headline that inventing cannot raise."""

import json

import numpy as np
import pandas as pd
import pytest

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.weights import notes

QUICKSTART = "data/quickstart"
REFUSALS = ("not in context", "资料中没有相关内容")


def two_systems(good=0.97, bad=0.55, n=40):
    rng = np.random.default_rng(2)
    rows = [
        {
            "sample_id": f"q{i}",
            "question": f"q{i}?",
            "doc_name": f"d{i % 8}",
            "system": name,
            "faithfulness": score,
        }
        for name, mean in (("good", good), ("bad", bad))
        for i, score in enumerate(np.clip(mean + rng.normal(0, 0.02, n), 0, 1))
    ]
    return pd.DataFrame(rows)


def run(tmp_path, frame, *words, gates="{name: F, metric: faithfulness, op: '>=', threshold: 0.7}"):
    frame.to_csv(tmp_path / "scores.csv", index=False)
    files = ["--json", str(tmp_path / "gates.json")]
    code = main(["check", str(tmp_path / "scores.csv"), "-p", f"gates=[{gates}]", *words, *files])
    written = tmp_path / "gates.json"
    return code, json.loads(written.read_text(encoding="utf-8")) if written.exists() else None


# Systems


def test_a_system_that_fails_blocks_whatever_the_others_reach(tmp_path, capsys):
    code, told = run(tmp_path, two_systems())
    assert code == 1
    assert {(row["system"], row["blocks"]) for row in told["gates"] if row["gate"] == "F"} == {
        ("good", False),
        ("bad", True),
    }
    assert "1 of 2 systems fail their gates: bad" in capsys.readouterr().out
    assert run(tmp_path, two_systems(bad=0.95))[0] == 0


def test_only_the_candidate_decides_where_it_is_named(tmp_path, capsys):
    assert run(tmp_path, two_systems(), "-p", "candidate=good")[0] == 0
    code, told = run(tmp_path, two_systems(), "-p", "candidate=bad")
    assert code == 1
    assert {row["reason"] for row in told["gates"] if row["system"] == "good"} == {
        "not the candidate"
    }
    capsys.readouterr()
    assert run(tmp_path, two_systems(), "-p", "candidate=god")[0] == 2
    assert "did you mean 'good'" in capsys.readouterr().err
    with pytest.raises(RagnbError, match="name no system"):
        rn.assess(two_systems().drop(columns="system").head(40), candidate="good")


def test_systems_that_answered_different_questions_are_ranked_on_the_common_ones():
    # A is better on the 20 common questions, and answered 20 hard ones besides.
    rows = [("A", i, 0.9) for i in range(20)] + [("A", i, 0.3) for i in range(20, 40)]
    rows += [("B", i, 0.85) for i in range(20)]
    frame = pd.DataFrame(rows, columns=["system", "sample_id", "faithfulness"]).astype(
        {"sample_id": str}
    )
    sheet = rn.assess(frame)
    common = sheet.common[sheet.common["metric"] == "faithfulness"].set_index("system")
    assert common["value"].to_dict() == pytest.approx({"A": 0.9, "B": 0.85})
    assert sheet.common_questions == 20
    (text,) = sheet.notes.loc[sheet.notes["code"] == "different_questions", "text"]
    assert text.index("A 0.900") < text.index("B 0.850")
    lines = [line for line in sheet.to_markdown().splitlines() if line.startswith("| A")]
    assert lines
    apart = rn.assess(frame[(frame["system"] == "B") | (frame["sample_id"].astype(int) >= 20)])
    assert apart.common is None
    assert "no_common_questions" in set(apart.notes["code"])


# Whole input


def labelled_files(tmp_path, asked, answered, systems=("one",)):
    gold = [
        {"qid": f"q{i}", "q": f"q{i}?", "answerable": True, "gold_ids": [f"c{i}"]}
        for i in range(asked)
    ]
    traces = [
        {"qid": f"q{i}", "q": f"q{i}?", "answer": "yes", "citations": [f"c{i}"], "system": name}
        for name, n in zip(systems, answered, strict=True)
        for i in range(n)
    ]
    (tmp_path / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
    (tmp_path / "traces.jsonl").write_text(
        "".join(json.dumps(t) + "\n" for t in traces), encoding="utf-8"
    )
    return ["--gold", str(tmp_path / "gold.json"), "--traces", str(tmp_path / "traces.jsonl")]


@pytest.mark.parametrize(("answered", "code"), [(240, 1), (379, 1), (380, 0), (400, 0)])
def test_gold_questions_without_a_trace_block_below_95_percent(tmp_path, capsys, answered, code):
    words = ["-p", "no_data=skip"]
    assert main(["check", *labelled_files(tmp_path, 400, [answered]), *words]) == code
    out = capsys.readouterr().out
    assert (f"{400 - answered} of 400 gold questions have no answer" in out) == (answered < 400)
    assert (
        main(["check", *labelled_files(tmp_path, 400, [answered]), *words, "-p", "sample=true"])
        == 0
    )


@pytest.mark.parametrize(("share", "lang"), [("0.3", "en"), ("0.02", "en"), ("1", "zh")])
def test_a_sample_of_the_traces_is_checked_and_said(tmp_path, capsys, share, lang):
    """400 answers of which every seventh is wrong: the rate is that of the rows that the hash keeps."""
    words = labelled_files(tmp_path, 400, [400])
    lines = (tmp_path / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    traces = [
        json.loads(line) | ({} if i % 7 else {"citations": ["c0"]}) for i, line in enumerate(lines)
    ]
    (tmp_path / "traces.jsonl").write_text(
        "".join(json.dumps(t) + "\n" for t in traces), encoding="utf-8"
    )
    drawn = rn.sample_traces(
        pd.DataFrame({"sample_id": [t["qid"] for t in traces]}), share=float(share)
    ).index
    options = [
        "--sample",
        share,
        "--lang",
        lang,
        "-p",
        "no_data=skip",
        "--json",
        str(tmp_path / "gates.json"),
    ]
    assert main(["check", *words, *options]) == 0
    said = capsys.readouterr().out
    n, percent = len(drawn), f"{100 * float(share):g}"
    assert {"en": f"{n} of 400 traces, {percent} % drawn", "zh": f"抽取 {percent}%，共 {n} 条"}[
        lang
    ] in said
    gates = {
        row["gate"]: row
        for row in json.loads((tmp_path / "gates.json").read_text("utf-8"))["gates"]
    }
    right = sum(i % 7 > 0 or i == 0 for i in drawn)
    assert (gates["G4"]["n"], gates["G4"]["value"]) == (
        len(drawn),
        pytest.approx(right / len(drawn)),
    )
    assert "gold_coverage" not in gates


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sample", "0.001"], "takes none of the 3 traces"),
        (["--sample", "1.5"], "neither true, false nor a share"),
        (["-p", "sample=maybe"], "neither true, false nor a share"),
    ],
)
def test_a_sample_that_cannot_be_drawn_is_bad_input(tmp_path, capsys, words, said):
    assert main(["check", *labelled_files(tmp_path, 3, [3]), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_sample_of_scores_is_refused(tmp_path, capsys):
    (tmp_path / "scores.csv").write_text("question,faithfulness\na,1\nb,0.5\n", encoding="utf-8")
    assert main(["check", str(tmp_path / "scores.csv"), "--sample", "0.5"]) == 2
    assert "sample: 0.5 is a share of the traces" in capsys.readouterr().err


def test_coverage_is_of_each_system_and_leaves_out_what_where_leaves_out(tmp_path):
    words = labelled_files(tmp_path, 100, [100, 60], ["a", "b"])
    assert main(["check", *words, "-p", "no_data=skip"]) == 1
    sheet = rn.assess(words[3], gold=words[1], no_data="skip")
    rows = sheet.gates[sheet.gates["gate"] == "gold_coverage"].set_index("system")
    assert rows["value"].to_dict() == {"a": 1.0, "b": 0.6}
    assert main(["check", *words, "-p", "no_data=skip", "-p", "where={system: a}"]) == 0
    # Questions of the other language were left out on purpose; those of this one were not.
    lines = (tmp_path / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    traces = [json.loads(line) | {"lang": "en" if i % 2 else "zh"} for i, line in enumerate(lines)]
    some = [t for t in traces if t["system"] == "a"]
    (tmp_path / "traces.jsonl").write_text("\n".join(map(json.dumps, some)), encoding="utf-8")
    english = rn.assess(words[3], gold=words[1], no_data="skip", where={"lang": "en"})
    assert english.gates.set_index("gate").loc["gold_coverage", ["value", "n"]].tolist() == [
        1.0,
        50,
    ]


@pytest.mark.parametrize(("failed", "code"), [(91, 1), (11, 1), (10, 0)])
def test_failed_cells_block_above_a_tenth(tmp_path, failed, code):
    frame = pd.DataFrame({"question": [f"q{i}" for i in range(101)], "faithfulness": 0.95})
    frame["faithfulness__status"] = ["failed"] * failed + ["ok"] * (101 - failed)
    frame.loc[: failed - 1, "faithfulness"] = np.nan
    found, told = run(tmp_path, frame)
    assert found == code
    row = next(row for row in told["gates"] if row["gate"] == "scored_cells")
    assert (row["value"], row["n"]) == (pytest.approx(1 - failed / 101), 101)


def test_a_run_without_a_single_score_does_not_pass(tmp_path):
    frame = pd.DataFrame({"question": ["a", "b"], "faithfulness": [np.nan, np.nan]})
    assert run(tmp_path, frame, gates="")[0] == 1


# Gates that nobody set


def test_thresholds_of_rules_are_shown_and_block_only_where_they_are_named(tmp_path, capsys):
    frame = two_systems().query("system == 'bad'").drop(columns="system")
    frame.to_csv(tmp_path / "s.csv", index=False)
    assert main(["check", str(tmp_path / "s.csv")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Thresholds missed: ")
    assert "below" in out.splitlines()[0].lower()
    assert "advisory, never blocks" in out or "failed" in out
    sheet = rn.assess(frame)
    row = sheet.gates.set_index("gate").loc["faithfulness"]
    assert (row["outcome"], row["blocks"], row["reason"]) == ("fail", False, "advisory")
    assert run(tmp_path, frame)[0] == 1
    advisory = "{name: F, metric: faithfulness, op: '>=', threshold: 0.7, advisory: true}"
    assert run(tmp_path, frame, gates=advisory)[0] == 0


# Columns, not attrs


def test_frames_survive_sorting_filtering_a_new_index_and_a_file(tmp_path):
    frame = two_systems(0.72, 0.71).drop(columns="system").head(40)
    means = rn.weighted_means(frame)
    gate = [rn.Gate("g", "faithfulness", ">=", 0.715)]
    wanted = rn.check_gates(means, gates=gate).drop(columns="gate")
    assert wanted["more_needed"].iloc[0] > 0
    means.to_csv(tmp_path / "m.csv", index=False)
    stored = pd.read_csv(tmp_path / "m.csv")
    for same in (
        means.sort_values("value").reset_index(drop=True),
        means.head(1),
        means.copy(),
        stored,
    ):
        found = rn.check_gates(same, gates=gate).drop(columns="gate")
        pd.testing.assert_frame_equal(found, wanted, check_dtype=False)
    assert (
        notes(means.head(1))["code"].tolist() == notes(means)["code"].tolist() == ["few_clusters"]
    )
    assert notes(stored).equals(notes(means))
    assert not means.attrs


# Correct outcomes


@pytest.fixture(scope="module")
def quickstart():
    gold = rn.read_gold(f"{QUICKSTART}/gold.json")
    traces = rn.read_traces(f"{QUICKSTART}/traces.strong.jsonl")
    return gold, traces


def first_screen(gold_file, traces, scores):
    """Every figure of the first screen, oriented so that more is better."""
    frame = scores.merge(
        traces.drop(columns=["question", "answer"]), on="sample_id", suffixes=("", "__t")
    )
    frame = frame.assign(answer=frame["sample_id"].map(traces.set_index("sample_id")["answer"]))
    labelled = rn.label_traces(frame, gold=gold_file, refusal=REFUSALS)
    sheet = rn.assess(labelled, gates=list(rn.DEFAULT_GATES))
    means = sheet.means.set_index("metric")
    turned = np.where(means["better"] == "lower", -1.0, 1.0)
    figures = (means["value"] * turned).to_dict()
    return sheet, figures


def test_inventing_an_answer_in_place_of_a_correct_refusal_improves_no_figure_of_the_first_screen(
    quickstart,
):
    gold, traces = quickstart
    scores = rn.read_scores(f"{QUICKSTART}/scores.csv", metrics=[rn.Metric("support_lexical")])
    scores = scores[scores["system"] == "strong"].drop(columns=["system", "answerable"])
    metrics = [name for name in rn.METRICS if name in scores] + ["support_lexical"]
    before, plain = first_screen(gold, traces, scores)
    right = set(before.scores.loc[before.scores["label"] == "REFUSAL_OK", "sample_id"])
    assert len(right) > 10
    for some in (sorted(right)[:1], sorted(right)[3:9], sorted(right)):
        chosen = traces["sample_id"].isin(some)
        # The invented answer cites what was retrieved, and every metric finds it perfect.
        invented = traces.assign(
            answer=traces["answer"].mask(chosen, "According to the sources: 42.")
        )
        chunks = traces["chunks"].map(lambda found: [chunk["id"] for chunk in found[:1]])
        invented["citations"] = invented["citations"].where(~chosen, chunks)
        better = scores.copy()
        for name in set(metrics):
            own = better["sample_id"].isin(some)
            better.loc[own, name] = 1.0
            if f"{name}__status" in better:
                better.loc[own, f"{name}__status"] = "ok"
        after, figures = first_screen(gold, invented, better)
        assert after.scores["label"].eq("HALLUCINATION").sum() >= len(some)
        for name, value in plain.items():
            if not np.isnan(value):
                assert figures[name] <= value + 1e-12, name
        assert figures["correct_outcome"] < plain["correct_outcome"]
        assert figures["weighted_score"] == pytest.approx(plain["weighted_score"], abs=1e-12)
        assert after.gates["blocks"].sum() >= before.gates["blocks"].sum()
        lacking = ["n_missing", "n_failed"]
        assert after.means.iloc[-1][lacking].tolist() == before.means.iloc[-1][lacking].tolist()


def test_the_headline_is_the_share_of_correct_outcomes(quickstart):
    _, traces = quickstart
    sheet = rn.assess(traces, gold=f"{QUICKSTART}/gold.json", refusal=REFUSALS)
    labels = sheet.scores["label"]
    share = labels.isin(["OK", "REFUSAL_OK"]).sum() / labels.notna().sum()
    assert sheet.means.set_index("metric").loc["correct_outcome", "value"] == pytest.approx(
        share, abs=1e-12
    )
    assert f"Right outcomes {100 * share:.1f} %" in sheet.verdict
    assert f"{100 * share:.1f} %" in repr(sheet.section("summary"))


def test_a_rubric_that_grades_refusals_keeps_its_total_on_unanswerable_questions():
    rows = pd.DataFrame(
        {"answerable": [True, False], "faithfulness": [0.8, 0.1], "accuracy": [8.0, 10.0]}
    )
    sheet = rn.assess(
        rows.assign(question=["a", "b"]), metrics=["faithfulness", "accuracy"], rescale=True
    )
    means = sheet.means.set_index("metric")
    assert (means.loc["faithfulness", "value"], means.loc["faithfulness", "n_not_applicable"]) == (
        0.8,
        1,
    )
    assert means.loc["accuracy", "value"] == 9.0
    assert sheet.scores["weighted_score"].tolist() == pytest.approx(
        [(0.8 + 0.5 * 7 / 9) / 1.5, 1.0]
    )
    own = rn.Metric("tone", 1, 5, grades_refusals=True)
    toned = pd.DataFrame({"question": ["a", "b"], "answerable": [True, False], "tone": [2, 4]})
    kept = rn.assess(toned, metrics=[own])
    assert kept.means["value"].iloc[0] == 3.0
    assert means.loc["weighted_score", ["n_missing", "n_failed"]].tolist() == [0, 0]


def test_questions_that_gold_calls_unanswerable_are_never_listed_as_not_scored():
    rows = pd.DataFrame({"question": list("abc"), "faithfulness": [0.8, np.nan, 0.9]})
    sheet = rn.assess(rows.assign(answerable=[True, True, False]))
    assert (
        sheet.means[["n", "n_missing", "n_not_applicable"]].to_numpy().tolist() == [[1, 1, 1]] * 2
    )
    assert "unanswerable" in set(sheet.notes["code"])


@pytest.mark.parametrize(
    ("yes", "no"), [(True, False), ("yes", "no"), ("Y", "N"), ("是", "否"), (1.0, 0.0)]
)
def test_answerable_is_read_in_words_too_and_nothing_else_is_guessed(yes, no):
    rows = [{"doc_name": f"d{i % 16}", "answerable": yes if i % 3 else no} for i in range(48)]
    frame = pd.DataFrame(rows).assign(faithfulness=[0.6 if i % 3 else 1.0 for i in range(48)])
    row = rn.assess(frame).means.iloc[0]
    assert (row["value"], row["n"], row["n_not_applicable"]) == (pytest.approx(0.6), 32, 16)
    with pytest.raises(RagnbError, match="'answerable': found 'perhaps', expected true or false"):
        rn.assess(frame.assign(answerable="perhaps"))


def test_questions_without_a_score_are_not_common():
    hard = [i >= 20 for i in range(40)]
    a = pd.DataFrame({"system": "A", "faithfulness": [0.6 if h else 0.9 for h in hard]})
    b = pd.DataFrame({"system": "B", "faithfulness": [np.nan if h else 0.85 for h in hard]})
    frame = pd.concat([part.assign(sample_id=[f"q{i}" for i in range(40)]) for part in (a, b)])
    sheet = rn.assess(frame)
    assert sheet.common_questions == 20
    text = sheet.notes.set_index("code").loc["different_questions", "text"]
    assert "A 40, B 20" in text
    assert "A 0.900" in text


def test_a_system_that_only_the_scores_name_is_missing_from_the_traces(tmp_path):
    asked = [
        {"q": f"question {i}?", "qid": f"q{i}", "answerable": True, "gold_ids": ["x"]}
        for i in range(20)
    ]
    (tmp_path / "gold.json").write_text(json.dumps(asked), encoding="utf-8")
    lines = [
        {"qid": a["qid"], "q": a["q"], "system": "b", "answer": "A. citations: [x]"} for a in asked
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    scores = [
        {"sample_id": a["qid"], "system": s, "faithfulness": 0.9} for a in asked for s in "ab"
    ]
    pd.DataFrame(scores).to_csv(tmp_path / "s.csv", index=False)
    scenario = rn.Scenario(
        scores=tmp_path / "s.csv",
        traces=tmp_path / "t.jsonl",
        gold=tmp_path / "gold.json",
        candidate="a",
        gates=[rn.Gate("F", "faithfulness", ">=", 0.7)],
    )
    gates = rn.assess(scenario).gates.query("gate == 'gold_coverage'").set_index("system")
    assert gates["value"].to_dict() == {"b": 1.0, "a": 0.0}
    assert gates["blocks"].to_dict() == {"b": False, "a": True}


def test_the_verdict_names_a_failed_gate_before_an_undecided_one():
    frame = pd.DataFrame({"faithfulness": [0, 1] * 20, "answer_relevancy": [0.1] * 40})
    gates = [
        rn.Gate("open", "faithfulness", ">=", 0.52),
        rn.Gate("failed", "answer_relevancy", ">=", 0.9),
    ]
    sheet = rn.assess(frame, gates=gates)
    assert sheet.gates["outcome"].tolist()[:2] == ["undecided", "fail"]
    assert sheet.verdict.startswith(
        "Not ready: Answer relevancy is 0.100, below its threshold of 0.900."
    )
