"""inspect_file: what a file is taken for; every line of a card works, also after a refusal."""

import json
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pandas
import pandas as pd
import polars as pl
import pytest
from card_lines import lines_of, run_lines, run_python

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.inputs import reading
from ragnb.readers import is_measure

SCORED = {"user_input": "Who?", "response": "Ann.", "faithfulness": 0.5}
GOLD = {"q": "Who?", "answerable": True, "gold_ids": ["a#1"]}
TRACE = {"q": "Who?", "answer": "Ann. citations: [a#1]", "chunks": [{"id": "a#1"}]}
pytestmark = pytest.mark.filterwarnings(
    "ignore::ragnb.errors.RagnbWarning"
)  # a rule that does not fit 1..5
RATING = {"item_id": "1", "dimension": "accuracy", "judge": 4, "human": 5}


def write(folder, rows, name="file.jsonl"):
    path = folder / name
    if name.endswith("csv"):
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        path.write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
        )
    return path


def repeated(row, n=6, **columns):
    made = [
        {**row, **{name: cells[i % len(cells)] for name, cells in columns.items()}}
        for i in range(n)
    ]
    asked = ("q", "user_input")
    return [
        {k: f"{v} {i}?" if k in asked else v for k, v in row.items()} for i, row in enumerate(made)
    ]


FILES = {
    "scores": (repeated(SCORED), "scores"),
    "scores on another scale": (repeated(SCORED, faithfulness=[1, 3, 5]), "scores"),
    "words among scores": (
        repeated(SCORED | {"recall": 0.9}, faithfulness=[0.5, "timeout"]),
        "scores",
    ),
    "no numbers among scores": (
        repeated(SCORED | {"recall": 0.9}, faithfulness=[0.5, "8/10"]),
        "scores",
    ),
    "percent signs": (repeated(SCORED, faithfulness=["50%", "75 %"]), "scores"),
    "other scores": (
        repeated({"q": "W", "answer": "A."}, helpful=[0.5, 1], quality=[2, 5]),
        "scores",
    ),
    "verdicts": (repeated({"q": "Who", "answer": "Ann."}, correct=[True, False]), "scores"),
    "gold": (repeated(GOLD), "gold"),
    "gold in Chinese": (repeated({"问题": "谁？", "可回答": "是"}), "gold"),
    "traces": (repeated(TRACE, latency=[1.5, 2.5], top_k=[3, 4]), "traces"),
    "cases": (repeated({"q": "Who", "ground_truth": "Ann."}), "cases"),
    "ratings": ([{**RATING, "item_id": str(i), "human": 3 + i % 3} for i in range(40)], "ratings"),
    "ratings that nothing can be said of": ([RATING], "ratings"),
    "names of no tool": (repeated({"prompt": "Who built it", "completion": "Ann did."}), "traces"),
    "Chinese names": (repeated({"用户的问题": "谁建的", "模型输出": "小王。"}), "traces"),
    "two questions": (
        repeated({"question": "Who", "input": "Who then", "faithfulness": 0.5}),
        "scores",
    ),
    "totals": (
        [{"app": f"v{i}", "faithfulness": 0.5 + i / 10, "n_rows": 9} for i in range(3)],
        "totals",
    ),
    "numbers alone": ([{"a": 37 + i, "b": -400.5 * i} for i in range(4)], "table"),
}


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_taken_for_what_it_is_and_the_lines_of_its_card_work(
    tmp_path, monkeypatch, name, ending
):
    monkeypatch.chdir(tmp_path)
    rows, kind = FILES[name]
    path = write(tmp_path, rows, f"it's.{ending}")
    card = rn.inspect_file(path)
    assert card.kind == kind
    assert card.rows == len(rows)
    assert eval(card.code, {"rn": rn, "pandas": pandas}) is not None
    if card.command:
        with redirect_stdout(StringIO()):
            assert main(shlex.split(card.command)[1:]) in (0, 1, 3)
    for lang in ("en", "zh"):
        shown = str(rn.inspect_file(path, lang=lang))
        assert card.code in shown
        assert card.command in shown


NAMED = [name for name, (_, kind) in FILES.items() if kind not in ("gold", "totals", "table")]


@pytest.mark.parametrize("name", NAMED)
def test_init_writes_a_scenario_that_loads_and_reads_the_file(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, FILES[name][0])
    for lang in ("en", "zh"):
        out = tmp_path / "made" / f"{lang}.yaml"
        assert main(["init", str(path), "--out", str(out), "--lang", lang]) == 0
        scenario = rn.load_scenario(out)
        role = FILES[name][1]
        assert getattr(scenario, role) == path.resolve()
        if role in ("scores", "traces"):
            assert rn.assess(scenario).rows == len(FILES[name][0])
        before = out.read_bytes()
        assert main(["init", str(path), "--out", str(out)]) == 2
        assert out.read_bytes() == before
    # What is offered as a comment is valid once the marks are removed.
    lines = out.read_text(encoding="utf-8").splitlines()
    marks = ("# gates", "# - ")
    full = [line.removeprefix("# ") if line.startswith(marks) else line for line in lines]
    (tmp_path / "made" / "full.yaml").write_text("\n".join(full), encoding="utf-8")
    has_gates = any(line.startswith("gates:") for line in full)
    assert (rn.load_scenario(tmp_path / "made" / "full.yaml").gates is not None) == has_gates


@pytest.mark.parametrize("name", ["gold", "totals", "numbers alone"])
def test_init_refuses_what_no_scenario_names(tmp_path, name, capsys):
    path = write(tmp_path, FILES[name][0])
    assert main(["init", str(path), "--out", str(tmp_path / "s.yaml")]) == 2
    assert "no scenario can be written" in capsys.readouterr().err
    assert not (tmp_path / "s.yaml").exists()


@pytest.mark.parametrize(
    "name",
    [
        "scores on another scale",
        "no numbers among scores",
        "other scores",
        "totals",
        "numbers alone",
    ],
)
def test_a_refusal_carries_the_card_and_its_line_works(tmp_path, capsys, name):
    path = write(tmp_path, FILES[name][0])
    with pytest.raises(RagnbError) as error:
        rn.assess(path)
    card = rn.inspect_file(path)
    assert str(error.value).endswith(str(card))
    assert main(["check", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 + len(str(card).splitlines())
    assert card.code in err


@pytest.mark.parametrize(
    "cells", [["0,5", "0,75"], ["50%", "75%"], ["0.5", "n/a"], ["True", "False"]]
)
def test_a_card_finds_the_metrics_that_the_reader_finds(tmp_path, cells):
    path = write(tmp_path, repeated(SCORED, faithfulness=cells), "s.csv")
    read, card = rn.read_scores(path), rn.inspect_file(path)
    assert card.kind == "scores"
    seen = card.metrics.set_index("metric").loc["faithfulness"]
    assert (seen["seen_low"], seen["seen_high"]) == (
        read["faithfulness"].min(),
        read["faithfulness"].max(),
    )
    assert seen["n"] == read["faithfulness"].count()


def test_a_word_among_scores_is_named_with_its_column_in_the_cards_language(tmp_path):
    path = write(tmp_path, FILES["words among scores"][0], "s.csv")
    assert "faithfulness: words, read as failed scores: 'timeout' (3)" in str(rn.inspect_file(path))
    assert "文字，按评分失败读取：'timeout'" in str(rn.inspect_file(path, lang="zh"))
    means = rn.assess(path).means.set_index("metric").loc["faithfulness"]
    assert (means["n"], means["n_failed"]) == (3, 3)


def test_text_among_scores_is_named_with_its_column_in_the_cards_language(tmp_path):
    path = write(tmp_path, FILES["no numbers among scores"][0], "s.csv")
    assert "faithfulness: no metric in 0..1: found '8/10', expected a number" in str(
        rn.inspect_file(path)
    )
    assert "不能作为 0..1 的指标：读到 '8/10'，应为数字" in str(rn.inspect_file(path, lang="zh"))


@pytest.mark.parametrize("title", [["Evaluation of May", "", ""], ["id", "scores", ""]])
def test_a_title_above_the_header_is_refused_with_what_to_delete(tmp_path, title):
    """The first row of merged cells: a workbook keeps their text in the first cell, and the others are empty."""
    header, rows = ["sample_id", "faithfulness", "recall"], [[f"q{i}", 0.5, 0.7] for i in range(5)]
    path = tmp_path / "merged.xlsx"
    pd.DataFrame([header, *rows], columns=title).to_excel(path, index=False)
    for read in (rn.assess, rn.inspect_file, rn.read_cases):
        with pytest.raises(
            RagnbError, match="faithfulness.* are not in the first row; write all names there"
        ):
            read(path)
    pd.DataFrame(rows, columns=header).to_excel(path, index=False)  # the advice, followed
    assert rn.read_scores(path)["faithfulness"].tolist() == [0.5] * 5


def test_candidates_from_0_to_1_come_first_and_none_counts_or_times(tmp_path):
    columns = {
        "latency": [0.1, 0.4],
        "runDuration": [0.2, 0.3],
        "cost": [0.1, 0.2],
        "top_k": [1, 0],
        "epoch": [1, 0],
        "stars": [2, 5],
        "helpful": [0.5, 1.0],
        "row_id": [1, 0],
    }
    card = rn.inspect_file(write(tmp_path, repeated({"q": "Who"}, **columns)))
    assert card.metrics["metric"].tolist() == ["helpful", "stars"]
    assert card.metrics[["low", "high"]].to_numpy().tolist() == [[0, 1], [1, 5]]
    assert card.metrics[["seen_low", "seen_high", "n"]].to_numpy().tolist() == [
        [0.5, 1, 6],
        [2, 5, 6],
    ]


SCALES = [(1.0, (0, 1)), (1.01, None), (4, (1, 5)), (9, (1, 10)), (87, (0, 100))]


@pytest.mark.parametrize(("high", "scale"), SCALES)
def test_a_scale_is_proposed_only_where_the_values_use_it(tmp_path, high, scale):
    path = write(tmp_path, repeated({"q": "Who"}, good=[1.0, high, high / 2 + 0.5]))
    row = rn.inspect_file(path).metrics.iloc[0]
    assert (None if pd.isna(row["low"]) else (row["low"], row["high"])) == scale


@pytest.mark.parametrize("name", ["numbers", "index", "step"])
def test_a_column_that_numbers_the_rows_is_no_candidate(tmp_path, name):
    path = write(tmp_path, [{"q": f"Who {i}?", "good": 0.5, name: i} for i in range(5)])
    assert rn.inspect_file(path).metrics["metric"].tolist() == ["good"]


def test_names_that_count_are_told_from_those_that_do_not():
    assert all(
        map(
            is_measure,
            ["total_tokens", "latency_ms", "tokenCount", "耗时（秒）", "k", "created_at"],
        )
    )
    assert not any(
        map(is_measure, ["token_overlap", "recall@5", "nDCG@10", "timely", "完整性", "accounted"])
    )


def test_what_is_missing_for_more_is_said(tmp_path):
    shown = str(rn.inspect_file(write(tmp_path, repeated(SCORED))))
    assert "doc_name, the document of each row" in shown
    with_doc = str(
        rn.inspect_file(write(tmp_path, repeated({**SCORED, "doc_name": "a", "system": "b"})))
    )
    assert "Missing" not in with_doc


def test_inspect_goes_on_after_a_file_that_cannot_be_read(tmp_path, capsys):
    good, bad = write(tmp_path, repeated(SCORED)), tmp_path / "bad.json"
    bad.write_text("{")
    assert main(["inspect", str(bad), str(good), str(tmp_path / "none.csv")]) == 2
    shown = capsys.readouterr()
    assert f"rn.assess({str(good)!r})" in shown.out
    assert "is not valid JSON" in shown.err
    assert "there is no such file" in shown.err
    assert main(["inspect", str(good), "--lang", "zh"]) == 0
    assert "评分表" in capsys.readouterr().out


def test_a_file_of_another_encoding_is_read_as_told(tmp_path):
    path = tmp_path / "gbk.csv"
    path.write_bytes("问题,答案,忠实度\n谁？,小王。,0.5\n谁？？,小李。,1\n".encode("gb18030"))
    with pytest.raises(RagnbError, match="gb18030"):
        rn.inspect_file(path)
    card = rn.inspect_file(path, encoding="gb18030")
    assert eval(card.code).means.loc[0, "value"] == 0.75
    with redirect_stdout(StringIO()):
        assert main(shlex.split(card.command)[1:]) == 0


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["What is covered?", "Who pays?", "When?"], "scores"),  # questions under an unknown name
        (
            [
                f"the parts of the pump are covered for {n} full years"
                for n in ("one", "two", "three")
            ],
            "scores",
        ),
        (
            [
                "保修期内的零件更换由谁来承担费用呢",
                "发票丢失以后还能不能申请报销",
                "门禁卡应该去哪里办理",
            ],
            "scores",
        ),
        (["baseline", "reranker", "large chunks"], "totals"),
        (
            [
                "{'top_k': 3, 'model': 'a', 'chunk': 200, 'overlap': 20, 'x': 1}",
                "{'top_k': 5}",
                "{}",
            ],
            "totals",
        ),
    ],
)
def test_samples_are_told_from_totals_by_their_texts(tmp_path, cells, kind):
    rows = [{"kind of row": cell, "faithfulness": i / 3} for i, cell in enumerate(cells)]
    assert rn.inspect_file(write(tmp_path, rows)).kind == kind


def test_lists_tell_samples_and_names_of_result_files_and_errors_of_means_tell_totals(tmp_path):
    rows = [{"ids": [f"d{i}", "d"], "faithfulness": i / 3} for i in range(3)]
    assert rn.inspect_file(write(tmp_path, rows)).kind == "scores"
    summary = [
        {"filename": f"{i}.parquet", "module_name": f"m{i}", "faithfulness": i / 3}
        for i in range(3)
    ]
    assert rn.inspect_file(write(tmp_path, summary)).kind == "totals"
    documents = [{"filename": f"{i}.pdf", "note": f"m{i}", "faithfulness": i / 3} for i in range(3)]
    assert rn.inspect_file(write(tmp_path, documents)).kind == "scores"
    spread = [
        {"run": f"r{i}", "ids": ["a", "b"], "score_mean": 0.5, "score_stderr": 0.1 * i}
        for i in range(3)
    ]
    assert rn.inspect_file(write(tmp_path, spread)).kind == "totals"


def test_a_query_is_not_collected_for_a_card(monkeypatch):
    monkeypatch.setattr(
        reading, "card_of", lambda *given, **options: pytest.fail("the query ran as a whole")
    )
    with pytest.raises(RagnbError, match="no column is a metric"):
        rn.assess(pl.LazyFrame({"question": ["Who?"] * 3, "answer": ["Ann."] * 3}))


# Whatever a frame in memory may be, each with one row at least that holds the word Who.
FRAMES = [
    repeated(SCORED),
    repeated(SCORED | {"tone_of_voice": 3}, tone_of_voice=[1, 3, 5]),
    repeated(SCORED | {"faithfulness": 3}, faithfulness=[1, 3, 5]),
    [{"question": "Who?", "answer": "Ann.", "latency_ms": 20}],
    [{"question": "Who?"}],
    [GOLD],
    [
        {**RATING, "item_id": f"Who {n}", "judge": n % 5 + 1, "human": n * 2 % 5 + 1}
        for n in range(40)
    ],
    [{"item_id": f"Who {n}", "rater": "a", "score": n % 5 + 1} for n in range(40)],
    [{"name": "Who", "text": "a"}],
]
FRAME_NAMES = [
    "scores",
    "open_choice",
    "five",
    "traces",
    "cases",
    "gold",
    "ratings",
    "human_ratings",
    "table",
]


# What the card says of the five facts, and that every line works


def table(**columns):
    return [
        {"question": f"Who is number {i}?"}
        | {name: cells[i % len(cells)] for name, cells in columns.items()}
        for i in range(12)
    ]


FACTS = {
    "a scale of five": (table(quality=[1, 2, 3, 4, 5]), []),
    "a scale of five that nothing orients": (
        table(tone_of_voice=[1, 2, 3, 4, 5]),
        ["tone_of_voice"],
    ),
    "an open metric beside a known one": (
        table(faithfulness=[0.5, 0.75], tone_of_voice=[1, 3, 5]),
        ["tone_of_voice"],
    ),
    "lower is better by its name": (table(hallucination_rate=[0.1, 0.3]), []),
    "lower in Chinese": (table(幻觉率=[0.1, 0.3]), []),
    "percent": (table(quality=[10, 55, 90]), []),
    "no usual scale": (table(quality=[-400, 55, 9000]), ["quality"]),
    "verdicts": (table(passed=["PASS", "FAIL", "PASS"]), []),
    "blank cells": (table(faithfulness=[0.5, None, 0.75]), []),
    "failed cells": (table(faithfulness=[0.5, "Failed", 0.75]), []),
    "two systems": (
        [row | {"model": name} for name in ("a", "b") for row in table(faithfulness=[0.5, 0.75])],
        [],
    ),
    "repeats": (
        [row | {"run": n} for n in (1, 2) for row in table(faithfulness=[0.5, 0.75])],
        [],
    ),
    "a rubric's dimension on another scale": (table(accuracy=[4, 5], clarity=[3, 4, 5]), []),
    "scores beside a known one on ten": (
        table(faithfulness=[0, 4, 7], correctness=[0, 3, 9], readability=[8]),
        [],
    ),
    "operation": (table(faithfulness=[0.5, 0.75], latency_ms=[900, 1200], cost_usd=[0.01]), []),
    "a question's flags": (
        table(
            faithfulness=[0.5, 0.75], needs_table=[0, 1], episode_done=[1, 0], api_calls=[2, 3, 7]
        ),
        [],
    ),
    "an empty metric": (table(faithfulness=[0.5], answer_relevancy=[None]), []),
}


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
@pytest.mark.parametrize("name", FACTS)
def test_every_line_of_a_card_works_or_names_the_choice(tmp_path, monkeypatch, name, ending):
    monkeypatch.chdir(tmp_path)
    rows, open_ones = FACTS[name]
    card = rn.inspect_file(write(tmp_path, rows, f"it's.{ending}"))
    assert [choice["name"] for choice in card.choices] == open_ones
    errors = run_lines(card)
    assert bool(errors) == bool(open_ones)
    for error in errors:
        assert "higher" in error or "lowest" in error


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", FACTS)
def test_init_writes_what_the_card_says_and_it_runs(tmp_path, monkeypatch, capsys, name, lang):
    """Settled metrics hold, open ones are a comment; answered, it loads too, and so do the gates."""
    monkeypatch.chdir(tmp_path)
    rows, open_ones = FACTS[name]
    path = write(tmp_path, rows)
    assert main(["init", str(path), "--out", "s.yaml", "--lang", lang]) == 0
    text = (tmp_path / "s.yaml").read_text(encoding="utf-8")
    assert rn.load_scenario("s.yaml").scores == path.resolve()
    assert "# baseline: " in text
    assert "gates:" in text
    card = rn.inspect_file(path)
    settled = [row["name"] for row in card.settings.get("metrics", ()) if row not in card.choices]
    assert [metric.name for metric in rn.load_scenario("s.yaml").declared.values()] == settled
    if settled or not open_ones or card.metrics["known"].any():
        with redirect_stdout(StringIO()):
            assert main(["check", "s.yaml"]) in (0, 1, 2)
        assert "Traceback" not in capsys.readouterr().err
    lines = text.splitlines()
    is_gate = re.compile(r"(# )?(gates:|- \{name: .*, op: )")
    gates = [line.removeprefix("# ") for line in lines if is_gate.match(line)]
    lines = [line for line in lines if not is_gate.match(line)]
    answered = [line for line in lines if not line.startswith(("metrics:", "- {name"))]
    assert bool(open_ones) == any(line.startswith("# metrics: ") for line in lines)
    for line in lines:
        if line.startswith("# metrics: "):
            chosen = line.removeprefix("# ").replace('better: "?"', "better: lower")
            answered.append(chosen.replace('low: "?", high: "?"', "low: -500, high: 9000"))
    if not open_ones:
        answered = lines
    (tmp_path / "full.yaml").write_text("\n".join([*answered, *gates]), encoding="utf-8")
    sheet = rn.assess("full.yaml")
    assert {gate.metric for gate in rn.load_scenario("full.yaml").gates} <= {
        *sheet.means["metric"],
        "faithfulness",
    }


def line_of(card, start):
    return next(line for line in str(card).splitlines() if line.startswith(start))


def test_the_card_shows_each_fact_with_its_evidence(tmp_path):
    rows = table(faithfulness=[0.5, None, "Failed"], toxicity=[0.1, 0.4], tone_of_voice=[1, 5])
    card = rn.inspect_file(write(tmp_path, rows))
    known = line_of(card, "- faithfulness: ")
    assert "0..1, higher is better (a metric that ragnb knows)" in known
    assert "n = 4" in known
    assert "4 blank without a reason, counted as lost" in known
    assert "4 failed" in known
    assert "lower is better ('toxicity' in its name)" in line_of(card, "- toxicity: ")
    assert "direction not known (nothing in the file says" in line_of(card, "- tone_of_voice: ")


def deepeval_run(folder, **beside):
    """A run of nine cases that all fail a hallucination metric, with further keys in each case."""

    def case(i):
        score = {
            "name": "Hallucination",
            "threshold": 0.5,
            "success": False,
            "score": 0.8 + i / 100,
        }
        told = {"input": f"Who is {i}?", "actualOutput": "Ann.", "success": False}
        return told | {"name": f"case_{i}", "metricsData": [score]} | beside

    path = folder / "run.json"
    path.write_text(json.dumps({"testCases": [case(i) for i in range(9)]}), encoding="utf-8")
    return path


def test_verdicts_beside_scores_are_the_evidence_of_a_direction(tmp_path):
    shown = line_of(rn.inspect_file(deepeval_run(tmp_path)), "- Hallucination: ")
    assert "lower is better (9 of 9 verdicts" in shown


def test_every_column_is_used_or_named_with_why(tmp_path):
    rows = table(
        faithfulness=[0.5],
        answer_relevancy=[None],
        latency_ms=[3.5],
        top_k=[4],
        needs_table=[0, 1],
        language=["en"],
        comment=["fine"],
        tags=[["a", "b"]],
        passed=[True, False],
    )
    card = rn.inspect_file(write(tmp_path, rows))
    assert card.unused == {
        "empty": ["answer_relevancy"],
        "operation": ["latency_ms"],
        "measure": ["top_k"],
        "question": ["needs_table", "language"],
        "text": ["comment"],
        "list": ["tags"],
        "flag": ["passed"],
    }
    shown = str(card)
    named = {
        *card.columns,
        *card.metrics["metric"],
        *(n for names in card.unused.values() for n in names),
    }
    assert {*rows[0]} <= named
    assert all(name in shown for name in rows[0])
    assert card.code == f"rn.assess({card.path!r})"


FLAGS = ["needs_table", "language", "episode_done", "api_calls", "replicate", "hops", "难度"]


@pytest.mark.parametrize("name", FLAGS)
def test_what_describes_the_question_is_proposed_nowhere(tmp_path, name):
    card = rn.inspect_file(write(tmp_path, table(helpful=[0.5, 1], **{name: [0, 1, 0]})))
    assert card.metrics["metric"].tolist() == ["helpful"]
    assert name not in card.code


@pytest.mark.parametrize(
    "expected", ["expected_output", "gold_answer", "correct_response", "标准答案", "参考回复"]
)
def test_what_should_come_out_is_never_the_answer(tmp_path, expected):
    rows = [{"sample_query": f"Who is {i}?", expected: "Ann.", "note": "x"} for i in range(5)]
    card = rn.inspect_file(write(tmp_path, rows))
    assert "answer" not in card.columns.values()
    rows = [row | {"model_completion": "Bo."} for row in rows]
    card = rn.inspect_file(write(tmp_path, rows))
    assert card.columns["model_completion"] == "answer"
    assert card.columns.get(expected) != "answer"


@pytest.mark.parametrize("name", ["timestamp", "created_at", "提问时间", "ts"])
def test_a_time_that_check_uses_is_not_missing(tmp_path, name):
    rows = [{**TRACE, "q": f"Who is {i}?", name: f"2026-01-0{i + 1}"} for i in range(5)]
    card = rn.inspect_file(write(tmp_path, rows))
    assert "the time of each answer" not in str(card)
    assert card.columns[name] == "ts"
    assert rn.assess(write(tmp_path, rows)).log.daily["day"].notna().sum() == 5


def test_a_refusal_and_the_card_propose_one_scale(tmp_path):
    rows = table(faithfulness=[0, 4], correctness=[0, 9])
    path = write(tmp_path, rows)
    with pytest.raises(RagnbError, match=r"rn\.Metric\('faithfulness', 0, 10\)\]"):
        rn.read_scores(path)
    assert "rn.Metric('faithfulness', 0, 10)" in rn.inspect_file(path).code


def test_a_totals_card_says_where_the_answers_may_be(tmp_path):
    shown = str(rn.inspect_file(write(tmp_path, FILES["totals"][0])))
    assert "one row per question, which most tools write beside this one" in shown
    assert "Python: import pandas; pandas.read_json(" in shown


def test_a_card_shows_itself_in_short_and_in_a_notebook(tmp_path):
    card = rn.inspect_file(write(tmp_path, table(faithfulness=[0.5], 品质=["<b>"])))
    assert repr(card) == f"FileCard({card.path!r}, scores, 12 rows, metrics: faithfulness)"
    assert "faithfulness" in card._repr_html_()
    assert "<b>" not in card._repr_html_()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("rows", FRAMES, ids=FRAME_NAMES)
@pytest.mark.parametrize("of_rows", [pd.DataFrame, pl.DataFrame, list])
def test_the_card_of_a_frame_in_memory_names_a_variable_and_no_command(rows, of_rows, lang):
    """A frame has no path: printed as one it was a text of all its cells, in a line that could not work."""
    frame = of_rows(rows)
    card = rn.inspect_file(frame, lang=lang)
    assert card.path == ""
    assert str(card).startswith("frame: " if lang == "en" else "frame：")
    assert repr(card).startswith(f"FileCard(frame, {card.kind}, ")
    assert not card.command
    assert not card.command_with_choices
    assert "ragnb check" not in str(card)
    assert "Who" not in str(card)  # no cell
    written = lines_of(card, "Python: " if lang == "en" else "Python：")
    for line in written:
        run_python(line, frame=frame)
    # What cannot be assessed and is read already has no line.
    assert bool(written) == (card.kind not in ("totals", "table"))


def test_no_scenario_names_a_frame_in_memory():
    with pytest.raises(RagnbError, match="a frame in memory; save it as a CSV or Parquet file"):
        rn.inspect_file(pd.DataFrame(table(faithfulness=[0.5]))).to_scenario()


def test_a_declared_metric_is_added_to_those_of_a_tool(tmp_path):
    """Else the line for one open metric would drop those that the file declares."""
    path = deepeval_run(tmp_path, tone=0.75)
    names = rn.assess(path, metrics=[rn.Metric("tone")]).means["metric"].tolist()
    assert names == ["Hallucination", "tone", "weighted_score"]


TOOL_FILES = sorted((Path(__file__).parent / "tool_files").glob("*.*"))


@pytest.mark.parametrize("path", TOOL_FILES, ids=lambda path: path.name)
def test_every_line_of_the_card_of_a_tools_file_works(path):
    if path.suffix == ".md" or path.name == "expected.json":
        return
    try:
        card = rn.inspect_file(path)
    except RagnbError:
        return  # which says what the file is; tests/readers/test_tool_files.py holds the words
    run_lines(card)
