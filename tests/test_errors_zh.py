"""What is refused or warned of on a Chinese command line is Chinese, and no message is left out."""

from __future__ import annotations

import re
import tomllib

import pytest
from error_templates import LIBRARY, templates

from ragnb.errors import RagnbError, did_you_mean, listing, place, unknown
from ragnb.texts.errors import translated

CHINESE = tomllib.loads((LIBRARY / "texts" / "errors.zh.toml").read_text(encoding="utf-8"))
pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")


def test_every_message_has_its_chinese():
    missing = [f"{where}: {text!r}" for text, where in templates().items() if text not in CHINESE]
    assert not missing, "add to ragnb/texts/errors.zh.toml:\n" + "\n".join(missing)


@pytest.mark.parametrize("english", CHINESE)
def test_a_translation_holds_every_value_once_and_no_english_sentence(english):
    chinese = CHINESE[english]
    places = [int(number or nth) for nth, number in enumerate(re.findall(r"\{(\d?)\}", chinese), 1)]
    assert sorted(places) == list(range(1, english.count("{}") + 1))
    assert not re.search(r"\b(is|the|of|and|not|give|write)\b [a-z]+ [a-z]", chinese), chinese


MESSAGES = [
    (
        str(unknown("metric", "faithfullness", ["faithfulness", "b"])),
        "metric='faithfullness' 无法识别；是否想写 'faithfulness'？（现有：faithfulness, b）",
    ),
    (
        f"{place('s.yaml', 3, 'level')}is required",
        "s.yaml，第 3 行，键 'level'：必须填写，但没有给出",
    ),
    (
        f"{place('a.csv', 2)}column 'x': found 'y', expected a number or an empty cell",
        "a.csv，第 2 行：列 'x'：读到 'y'，应为数字或空单元格",
    ),
    (
        f"where.lang: no such column; {did_you_mean('lang', [])}",
        "where.lang：没有这一列；（现有：无）",
    ),
    (f"the items lack {listing('abc', most=2)}", "样本缺少 a, b 等，另有 1 个"),
    (
        "a.yaml: its cases have no scores yet; run ragnb evaluate a.yaml or ragnb judge a.yaml first. ",
        "a.yaml：用例还没有得分；请先运行 ragnb evaluate a.yaml 或 ragnb judge a.yaml。",
    ),
    ("3 of 40 cells are saved in the store in memory", "40 个单元格中有 3 个已保存在 内存中的存储"),
    ("mine: of no template", "mine: of no template"),
]


@pytest.mark.parametrize(("english", "chinese"), MESSAGES)
def test_values_hints_and_places_are_in_their_chinese_places(english, chinese):
    assert translated(english, "zh") == chinese
    assert translated(english, "en") == english


def test_each_line_of_several_findings_is_chinese():
    from ragnb.scenario import Scenario

    with pytest.raises(RagnbError) as refused:
        Scenario(scores="absent.csv", level=2, metric_weights={"faithfulness": "x"}, lamg="zh")
    lines = translated(str(refused.value), "zh").splitlines()
    assert len(lines) == 4
    assert all(re.search(r"[\u4e00-\u9fff]{3}", line) for line in lines), lines


def test_a_value_of_any_shape_breaks_no_message():
    for value in ("", "{}", "{0}", "\\1", "a\nb", ": ", "x is not known; y", "路径", "{" * 50):
        text = f"level={value} must lie between 0 and 1, such as 0.95"
        assert translated(text, "zh").endswith("必须在 0 和 1 之间，例如 0.95")


COMMANDS = [
    (["check", "--lang", "zh"], "没有可检查的内容"),
    (["check", "--lang=zh", "nothing.csv"], "键 'scores'：没有文件 'nothing.csv'；是否想写"),
    (["check", "none.yaml", "-p", "lang=zh"], "没有场景文件"),
    (["check", "zh.yaml"], "level"),
    (["report", "zh.yaml"], "必须小于 1"),
    (["check", "--lang", "zh", "--levle", "2"], "没有这个选项"),
    (
        ["check", "own.csv", "--lang", "zh", "-p", "metric_weigths={a: 1}"],
        "是否想写 'metric_weights'",
    ),
    (["judge", "cases.yaml", "--lang", "zh"], "没有指定评判模型"),
    (
        ["calibrate", "--lang", "zh", "ratings.csv", "--missing", "outside"],
        "--missing outside 需要知道量程",
    ),
    (["runs", "none.sqlite", "--lang", "zh"], "没有这个存储文件"),
    (
        ["check", "two.csv", "--lang", "zh"],
        "列 'faithfulness' 和 'groundedness' 都表示 'faithfulness'；有的记录",
    ),
    (
        ["check", "gbk.csv", "--lang", "zh"],
        "可能是 GBK：请用 -p encoding=gb18030 (YAML: encoding: gb18030)",
    ),
    (
        ["check", "latin.csv", "--lang", "zh"],
        "可能是 Windows-1252：请用 -p encoding=cp1252 (YAML: encoding: cp1252)",
    ),
    (
        ["check", "cut.json", "--lang", "zh"],
        "如果文件不完整，请重新写出；如果每行一条记录，请以 .jsonl 命名\n",
    ),
]


@pytest.mark.parametrize(("words", "said"), COMMANDS)
def test_a_command_in_chinese_refuses_in_chinese(run, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text("faithfulness\n0.5\n")
    (tmp_path / "zh.yaml").write_text("lang: zh\nscores: own.csv\nlevel: 2\n")
    (tmp_path / "cases.jsonl").write_text('{"question": "q", "answer": "a"}')
    (tmp_path / "cases.yaml").write_text("cases: cases.jsonl\n")
    (tmp_path / "two.csv").write_text("faithfulness,groundedness\n0.5,1\n0.6,1\n")
    (tmp_path / "gbk.csv").write_text("question,faithfulness\n差旅,0.5\n", encoding="gbk")
    (tmp_path / "latin.csv").write_bytes(b"question,faithfulness\nGr\xf6\xdfe\xff,0.5\n")
    (tmp_path / "cut.json").write_text('[{"faithfulness": 1}, {"faithfulness":')
    (tmp_path / "ratings.csv").write_text("item_id,judge,human\na,5,-3\nb,4,4\n")
    code, _, err = run(*words)
    assert code == 2
    assert said in err
    prose = err.replace("import ragnb as rn; ", "")  # the card's line for Python
    assert not re.search(r"[A-Za-z]+ [a-z]+ [a-z]+ [a-z]+", prose), err


def test_the_next_command_speaks_its_own_language(run):
    assert "没有" in run("check", "--lang", "zh")[2]
    assert "nothing to check" in run("check")[2]


def test_a_note_says_in_chinese_what_readers_leave_unclear(run, tmp_path):
    (tmp_path / "s.csv").write_text("sample_id,faithfulness\na,0.5\na,0.6\nb,0.7\n")
    _, out, _ = run("check", tmp_path / "s.csv", "--lang", "zh")
    assert "3 行对应 2 个问题" in out
    assert not re.search(r"[A-Za-z]+ [a-z]+ [a-z]+ [a-z]+", out), out


def test_notes_of_a_chinese_command_are_chinese(run, tmp_path):
    rows = "".join(f"{n},{n % 5 + 1},0,c{n % 9}\n" for n in range(40))
    (tmp_path / "judged.csv").write_text("item_id,accuracy,clarity,cluster\n" + rows)
    words = [
        "calibrate",
        "--sample",
        "60",
        tmp_path / "judged.csv",
        "--out",
        tmp_path / "labels.csv",
    ]
    err = run(*words, "--dimension", "accuracy", "--lang", "zh")[2]
    assert err == "ragnb: 提示: n=60，但只有 40 个评判过的回答；将全部抽取\n"


def test_the_index_of_chinese_scenarios_says_in_chinese_why_a_run_failed(run, tmp_path):
    (tmp_path / "own.csv").write_text("faithfulness\n0.5\n")
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text("lang: zh\nscores: own.csv\nlevel: 2\n")
    code, _, err = run("report", tmp_path / "a.yaml", tmp_path / "b.yaml", "--out", tmp_path / "r")
    assert code == 2
    assert "level" in err
    for text in (err, (tmp_path / "r" / "index.html").read_text(encoding="utf-8")):
        assert text.count("必须小于 1") == 2
