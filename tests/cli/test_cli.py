"""The command line as a user runs it: exit codes, what is printed where, files in and out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest

import ragnb
from ragnb.cli.commands.runs import _runs
from ragnb.cli.terminal import overrides
from ragnb.errors import RagnbError
from ragnb.texts import load

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "data" / "quickstart"
WEAK, STRONG, GOLD = (
    QUICKSTART / "traces.weak.jsonl",
    QUICKSTART / "traces.strong.jsonl",
    QUICKSTART / "gold.json",
)

# On the command line warnings are printed, not raised.
pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")


@pytest.fixture
def scores(tmp_path):
    """Write a scenario over two rows with one gate, and return a function that sets the bar."""

    def write(at: float, text: str = "faithfulness,doc_name\n0.9,a\n0.7,b\n") -> Path:
        (tmp_path / "scores.csv").write_text(text, encoding="utf-8")
        gates = f"gates:\n  - {{name: G, metric: faithfulness, op: '>=', threshold: {at}}}\n"
        (tmp_path / "s.yaml").write_text(f"scores: scores.csv\n{gates}", encoding="utf-8")
        return tmp_path / "s.yaml"

    return write


# check


def test_check_passes_with_0_and_blocks_with_1(run, scores):
    assert run("check", scores(at=0.75))[0] == 0
    assert run("check", scores(at=0.85))[0] == 1


def test_check_prints_verdict_gates_and_notes(run, scores):
    code, out, err = run("check", scores(at=0.85))
    first, blank, head, row, *_ = out.splitlines()
    assert first == ragnb.assess(scores(at=0.85)).verdict
    assert first.startswith("Not ready: ")
    assert "faithfulness is at least 0.850" in first.lower()
    assert blank == ""
    assert head.split()[0] == "Outcome"
    assert "G · faithfulness ≥ 0.85" in row
    assert "0.800 · 0.058–0.996, n = 2" in row
    assert row.startswith(("▲ inconclusive, blocks", "■ inconclusive, blocks"))
    assert "\n- This result is based on only 2 independent groups" in out
    assert (code, err) == (1, "")


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ("passed", "inconclusive", "no data", "failed")),
        ("zh", ("通过", "尚无定论", "无数据", "未通过")),
    ],
)
def test_each_outcome_of_a_gate_has_its_own_mark_and_word(run, tmp_path, lang, words):
    rows = "".join(f"{0.8 + n % 2 / 10},\n" for n in range(40))
    (tmp_path / "scores.csv").write_text("faithfulness,context_recall\n" + rows, encoding="utf-8")
    asked = {
        "P": ("faithfulness", 0.5),
        "U": ("faithfulness", 0.849),
        "N": ("context_recall", 0.5),
        "F": ("faithfulness", 0.99),
    }
    gates = [
        f"{{name: {name}, metric: {metric}, op: '>=', threshold: {at}}}"
        for name, (metric, at) in asked.items()
    ]
    (tmp_path / "s.yaml").write_text(
        f"scores: scores.csv\nno_data: skip\nblank: not_applicable\ngates: [{', '.join(gates)}]\n"
    )
    out = run("check", tmp_path / "s.yaml", "--lang", lang)[1]
    lines = {re.search(r"\b([PUNF]) · ", line)[1]: line for line in out.splitlines()[3:7]}
    for name, mark, word in zip("PUNF", "●▲○■", words, strict=True):
        assert lines[name].startswith((f"{mark} {word} ", f"{mark} {word},", f"{mark} {word}，"))


def test_check_takes_a_results_file_without_a_scenario(run, tmp_path):
    (tmp_path / "mine.csv").write_text("faithfulness,doc_name\n0.9,a\n0.95,b\n")
    assert run("check", tmp_path / "mine.csv")[0] == 0


def test_check_takes_gold_and_traces(run):
    tokens = ["not in context", "资料中没有相关内容"]
    code, out, _ = run(
        "check", "--gold", GOLD, "--traces", STRONG, "-p", f"refusal=[{', '.join(tokens)}]"
    )
    sheet = ragnb.assess(STRONG, gold=GOLD, refusal=tokens)
    assert code == int(sheet.blocked)
    assert out.splitlines()[0] == sheet.verdict
    codes = [re.search(r"\b(G\d) · ", line)[1] for line in out.splitlines()[3:8]]
    assert sorted(codes) == ["G1", "G2", "G3", "G4", "G5"]
    gates = sheet.gates.set_index("gate")["outcome"]
    order = ["fail", "undecided", "no_data", "pass"]
    assert [gates[code] for code in codes] == sorted(gates[codes], key=order.index)


def test_files_on_the_command_line_are_relative_to_the_working_directory(
    run, scores, tmp_path, monkeypatch
):
    scenario = scores(at=0.85)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "better.csv").write_text("faithfulness,doc_name\n0.95,a\n0.9,b\n")
    monkeypatch.chdir(tmp_path / "here")
    assert run("check", scenario)[0] == 1
    assert run("check", scenario, "--scores", "better.csv")[0] == 0
    assert run("check", "--scores", "better.csv")[0] == 0


def test_check_writes_markdown_json_and_junit(run, scores, tmp_path):
    files = [tmp_path / "new" / name for name in ("gates.md", "gates.json", "gates.xml")]
    scenario = scores(at=0.85)
    assert (
        run("check", scenario, "--markdown", files[0], "--json", files[1], "--junit", files[2])[0]
        == 1
    )
    sheet = ragnb.assess(scenario)
    assert files[0].read_text(encoding="utf-8") == sheet.to_markdown()
    assert json.loads(files[1].read_text(encoding="utf-8"))["blocked"] is True
    suite = ET.fromstring(files[2].read_text(encoding="utf-8"))
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["G: faithfulness >= 0.85"]


def test_check_speaks_chinese(run, scores):
    _, out, _ = run("check", scores(at=0.85), "--lang", "zh")
    assert "尚未达标" in out


def test_parameters_change_the_run(run, scores):
    scenario = scores(at=0.85)
    assert run("check", scenario, "-p", "gates=[]")[0] == 0
    assert (
        run(
            "check",
            scenario,
            "-p",
            "gates=[{name: G, metric: faithfulness, op: '>=', threshold: 0.1}]",
        )[0]
        == 0
    )
    assert run("check", scenario, "-p", "title=")[0] == 1


def test_strangers_text_does_not_steer_the_terminal(run, scores):
    scenario = scores(at=0.85)
    text = scenario.read_text(encoding="utf-8").replace("name: G,", 'name: "G\\x1b[2J\\x07",')
    scenario.write_text(text, encoding="utf-8")
    _, out, err = run("check", scenario)
    assert not [char for char in out + err if ord(char) < 32 and char != "\n"]


# Refusals

BAD = [
    (["check"], "nothing to check"),
    (["check", "absent.yaml"], "absent.yaml"),
    (["check", "absent.csv"], "absent.csv"),
    (["check", "--gold", "absent.json", "--traces", str(STRONG)], "absent.json"),
    (["check", str(STRONG), "-p", "levle=0.9"], "did you mean 'level'"),
    (["check", str(STRONG), "-p", "level"], "KEY=VALUE"),
    (["check", str(STRONG), "-p", "level=2"], "level"),
    (["check", str(STRONG), "-p", "level=[0.9"], "YAML"),
    (["check", str(STRONG), "-p", "metric_weights={faithfulness:2}"], "space after the colon"),
    (["check", "--lang", "fr"], "'fr'"),
    (["check", "--nope"], "--nope"),
    (["report"], "SCENARIO"),
    (["report", "absent.yaml"], "absent.yaml"),
    (["report", "absent.csv"], "absent.csv"),
    (["frobnicate"], "frobnicate"),
]


@pytest.mark.parametrize(("args", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_input_is_one_line_on_stderr_and_exit_2(run, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("ragnb: ")
    assert said in err
    assert not list(tmp_path.iterdir())


def test_unwritable_place_is_refused(run, scores, tmp_path):
    code, _, err = run("check", scores(at=0.75), "--markdown", tmp_path / "s.yaml" / "gates.md")
    assert code == 2
    assert err.startswith("ragnb: ")
    assert len(err.splitlines()) == 1


def test_error_of_ragnb_is_no_block(run, scores, monkeypatch):
    def broken(*_args, **_more):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("ragnb.sheet.assess", broken)
    code, _, err = run("check", scores(at=0.75))
    assert code == 70
    assert "ZeroDivisionError: ours" in err


def test_warnings_are_notes_on_stderr(run, scores):
    scenario = scores(at=0.75)
    text = scenario.read_text().replace("metric: faithfulness", "metric: faithfullness_")
    scenario.write_text(text)
    code, _, err = run("check", scenario)
    assert code == 1
    assert err.startswith("ragnb: note: gate 'G' refers to an unknown metric 'faithfullness_'")
    assert len(err.splitlines()) == 1


# -p


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("level=0.9", {"level": 0.9}),
        ("doc_weights={a.pdf: 2, b.pdf: }", {"doc_weights": {"a.pdf": 2, "b.pdf": None}}),
        ("metrics=[faithfulness]", {"metrics": ["faithfulness"]}),
        ("title=报告 = 1", {"title": "报告 = 1"}),
        ("title='a: b'", {"title": "a: b"}),
        ("lang=", {"lang": None}),
        ("orient=false", {"orient": False}),
    ],
)
def test_values_are_yaml(text, value):
    assert overrides([text]) == value


@pytest.mark.parametrize(
    "texts",
    [
        ["level=0.9\nlang: zh"],
        ["level=0.9", "level=0.8"],
        ["level=&a 1"],
        ["title=!!x y"],
        ["x; y=1"],
        ["=1"],
    ],
    ids=repr,
)
def test_values_that_are_not_one_plain_value_are_refused(texts):
    with pytest.raises(RagnbError):
        overrides(texts)


# report


def test_report_says_where_the_page_lies_and_goes_on_after_a_refusal(run, scores, tmp_path):
    scenario = scores(at=0.85)
    code, out, err = run(
        "report", tmp_path / "absent.yaml", scenario, "--out", tmp_path / "r", "-p", "title=T"
    )
    assert code == 2
    assert err.startswith("ragnb: no scenario at")
    (page,) = (tmp_path / "r").rglob("report.html")
    assert f"  HTML: {page}\n" in out
    assert "blocks" in out
    assert "<title>■ Not ready – T</title>" in page.read_text(encoding="utf-8")


def test_blocked_report_exits_0(run, scores, tmp_path):
    assert run("report", scores(at=0.85), "--out", tmp_path / "r")[0] == 0


def test_a_report_of_one_scenario_leaves_the_others_in_the_index(run, scores, tmp_path):
    for name in ("a", "b"):
        scores(at=0.85).rename(tmp_path / f"{name}.yaml")
        code, out, _ = run("report", tmp_path / f"{name}.yaml", "--out", tmp_path / "r")
        assert (code, out.splitlines()[-1]) == (0, f"Index: {tmp_path / 'r' / 'index.html'}")
    text = (tmp_path / "r" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^\| \[([ab])\]", text) == ["a", "b", "b", "a"]


# The process


def command(*args) -> list[str]:
    return [
        sys.executable,
        "-c",
        "import sys; from ragnb.cli import main; sys.exit(main())",
        *map(str, args),
    ]


@pytest.mark.parametrize(
    "locale", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}], ids=str
)
def test_output_is_utf8_under_a_c_locale(scores, locale):
    environment = {**os.environ, **locale}
    args = command("check", scores(at=0.85), "--lang", "zh")
    done = subprocess.run(args, capture_output=True, env=environment, check=False)
    assert done.returncode == 1, done.stderr
    assert "尚未达标" in done.stdout.decode("utf-8")


@pytest.mark.skipif(os.name != "posix", reason="signals are sent otherwise on Windows")
def test_ctrl_c_exits_130_and_leaves_no_run(scores, tmp_path):
    args = command("report", scores(at=0.85), "--out", tmp_path / "r")
    with subprocess.Popen(
        args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and not list((tmp_path / "r").rglob("report.ipynb")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130, err
    assert "ragnb: stopped" in err.splitlines()
    assert not [
        path for path in (tmp_path / "r" / "s").iterdir() if not path.name.endswith(".failed")
    ]


@pytest.mark.parametrize("args", [["--help"], ["report", "--help"], ["check", "-h"], ["--version"]])
def test_help_and_version_exit_0(run, args):
    code, out, err = run(*args)
    assert (code, err) == (0, "")
    if "--version" in args:
        assert ragnb.__version__ in out
    elif len(args) > 1:
        assert "Examples" in out
        assert "Exit code" in out


def test_one_columns_setting_names_the_columns_of_gold_and_of_traces(tmp_path, run):
    gold = [
        {"编": i, "问": f"第{i}问", "可答": i > 3, "依": [f"手册#{i}"] if i > 3 else []}
        for i in range(8)
    ]
    said = [{"编": i, "问": f"第{i}问", "答": f"答{i}", "引": [f"手册#{i}"]} for i in range(8)]
    (tmp_path / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
    (tmp_path / "traces.jsonl").write_text("\n".join(map(json.dumps, said)), encoding="utf-8")
    files = ("--gold", tmp_path / "gold.json", "--traces", tmp_path / "traces.jsonl")
    names = "编: sample_id, 问: question, 可答: answerable, 依: gold_ids, 答: answer, 引: citations"
    code, out, _ = run("check", *files, "-p", f"columns={{{names}}}")
    assert code == 1
    row = next(line for line in out.splitlines() if "citation_hit_rate ≥ 0.75" in line)
    assert "100.0 %" in row
    code, _, err = run("check", *files, "-p", f"columns={{{names}, 可达: system}}")
    assert code == 2
    assert "'可达'" in err
    assert "(have: 编, 问, 可答, 依, 答, 引)" in err


def test_a_refusal_names_the_setting_of_the_command_line_and_that_helps(tmp_path, run):
    (tmp_path / "gbk.csv").write_bytes(
        "question,faithfulness\n报销上限是多少？,0.5\n".encode("gb18030")
    )
    code, _, err = run("check", tmp_path / "gbk.csv")
    assert code == 2
    assert "pass -p encoding=gb18030" in err
    assert run("check", tmp_path / "gbk.csv", "-p", "encoding=gb18030")[0] == 0
    code, _, err = run("calibrate", tmp_path / "gbk.csv")
    assert code == 2
    assert "pass --encoding gb18030" in err
    (tmp_path / "tone.csv").write_text("question,tone\na,1\nb,5\n", encoding="utf-8")
    code, _, err = run("check", tmp_path / "tone.csv")
    assert code == 2
    assert '-p "metrics=[{name: tone, low: …, high: …, better: …}]"' in err
    assert (
        run("check", tmp_path / "tone.csv", "-p", "metrics=[{name: tone, low: 1, high: 5}]")[0] == 0
    )


def test_an_answer_that_many_questions_got_is_told_until_it_is_named_a_refusal(run):
    code, out, _ = run("check", "--gold", GOLD, "--traces", STRONG, "--lang", "zh")
    assert code == 1
    assert "“资料中没有相关内容”（8 个问题）" in out
    assert "refusal" in out
    named = "refusal=[not in context, 资料中没有相关内容]"
    _, out, _ = run("check", "--gold", GOLD, "--traces", STRONG, "-p", named)
    assert "exactly the same answer" not in out


def test_a_rate_that_a_scenario_makes_a_metric_is_written_alike_in_page_chart_and_junit(
    tmp_path, run
):
    from ragnb import plots

    sheet = ragnb.assess(ROOT / "scenarios" / "quickstart.yaml")
    value = sheet.means.set_index("metric").loc["support_lexical", "value"]
    assert "support_lexical" not in set(sheet.means.query("role == 'rate'")["metric"])
    assert "over_refusal" in set(sheet.means.query("role == 'rate'")["metric"])
    drawn = plots.intervals(sheet.means).figure.findobj(lambda artist: hasattr(artist, "get_text"))
    drawn = [text.get_text() for text in drawn]
    assert any(text.startswith(f"{value:.3f} [") for text in drawn)
    assert f"- support_lexical: {value:.4f}" in sheet.to_markdown()
    code, *_ = run("check", "--gold", GOLD, "--traces", STRONG, "--junit", tmp_path / "g.xml")
    told = "".join(ET.parse(tmp_path / "g.xml").getroot().itertext())
    assert code == 1
    assert "over_refusal ≤ 0.25; ● passed; 11.3 % · 4.7–24.8 %, n = 62; " in told


def test_a_run_of_more_than_a_day_says_its_hours():
    run = dict.fromkeys(("run", "name", "models", "started", "last"), "") | {"stopped_early": False}
    run |= dict.fromkeys(("cells", "ok", "not_applicable", "failed", "pending", "calls"), 0)
    run |= {"tokens_in": 0, "tokens_out": 0, "seconds": 26 * 3600 + 3 * 60 + 4.2}
    assert "26:03:04" in [*_runs(pd.DataFrame([run]), load("zh"))][1]
