"""Mistakes on the command line: each message names the value, the choices, and a next step that works.

A row of the table is a mistake as a new user makes it. `shows` must be in the message: what was given, and what
there is to choose from. `step` is the part of the message that says what to do, and `followed` is the command of
somebody who does it, perhaps after writing `files` as it says; that command must not be refused.
"""

from __future__ import annotations

import re
import shlex
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

from ragnb.cli import cli
from ragnb.cli.terminal import OPTION_EXAMPLES
from ragnb.example import write_example
from ragnb.scenario import Scenario
from ragnb.scenario.examples import EXAMPLES, example_of

pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")


@dataclass(frozen=True)
class Mistake:
    words: str
    shows: tuple[str, ...]
    step: str
    followed: str
    files: Mapping[str, str] = field(default_factory=dict)


SCORES = "question,faithfulness,context_recall\nq1,0.9,0.8\nq2,0.4,0.7\nq3,0.8,0.9\n"
GATE = '{name: faithfulness, metric: faithfulness, op: ">=", threshold: 0.8}'
PROFILE = "llm_profiles={%s: {base_url: https://example.org/v1, model: a-model}}"


def scenario(text: str) -> str:
    return f"scores: scores.csv\n{text}\n"


FILES = {
    "small.csv": SCORES,
    "words.csv": "question,faithfulness,context_recall\nq1,high,0.8\nq2,low,0.7\n",
    "tone.csv": "question,faithfulness,tone\nq1,0.9,0.8\nq2,0.4,0.7\n",
    "broken.jsonl": '{"question": "a", "faithfulness": 0.5}\n{"question": "b", "faithfuln\n'
    '{"question": "c", "faithfulness": 0.7}\n',
    "empty.csv": "",
    "notes.txt": "faithfulness of two answers\n0.5\n0.7\n",
    "folder/a.jsonl": '{"question": "a", "faithfulness": 0.5}\n',
    "folder/b.jsonl": '{"question": "a", "context_recall": 0.5}\n',
    "level.yaml": scenario("level: 95"),
    "min.yaml": scenario("gates:\n- {name: F, metric: faithfulness, min: 0.8}"),
    "text_gate.yaml": scenario("gates: faithfulness >= 0.8"),
    "sign.yaml": scenario("gates:\n- {name: F, metric: faithfulness, op: >=, threshold: 0.8}"),
    "tab.yaml": "scores: scores.csv\nwhere:\n\torigin: simulated\n",
    "bracket.yaml": scenario("metrics: [faithfulness, context_recall\nlevel: 0.9"),
    "colon.yaml": scenario("title: Answers: the second try"),
    "quote.yaml": scenario("title: 'Answers"),
    "yesterday.yaml": scenario("baseline: yesterday.csv"),
    "weight.yaml": "scores: tone.csv\nmetric_weights: {faithfulness: 1, tone: 2}\n",
    "cases.yaml": "cases: data/quickstart/cases.jsonl\n",
    "documents.yaml": "documents: data/quickstart/corpus.jsonl\n",
}

MISTAKES = {
    # Settings with -p
    "a gate as a comparison": Mistake(
        "check scores.csv -p gates=faithfulness>0.8",
        ("'gates'", "'faithfulness>0.8'", "not a list"),
        f"-p 'gates=[{GATE}]'",
        f"check scores.csv -p 'gates=[{GATE}]'",
    ),
    "gates as a mapping": Mistake(
        "check scores.csv -p 'gates={faithfulness: 0.8}'",
        ("'gates'", "a mapping", "not a list"),
        f"-p 'gates=[{GATE}]'",
        f"check scores.csv -p 'gates=[{GATE}]'",
    ),
    "gates as a word": Mistake(
        "check scores.csv -p gates=strict",
        ("'gates'", "'strict'", "not a list"),
        f"-p 'gates=[{GATE.replace('name: faithfulness', 'name: faithful')}]'",
        f"check scores.csv -p 'gates=[{GATE}]'",
    ),
    "two gates as comparisons": Mistake(
        "check scores.csv -p 'gates=[faithfulness>0.8, context_recall>=0.7]'",
        ("'gates[0]'", "'faithfulness>0.8'", "not a mapping", f"write {GATE} key 'gates[1]'"),
        'write {name: context_recall, metric: context_recall, op: ">=", threshold: 0.7}',
        f"check scores.csv -p 'gates=[{GATE}]'",
    ),
    "weights as a list": Mistake(
        "check scores.csv -p 'metric_weights=[faithfulness]'",
        ("'metric_weights'", "a list", "not a mapping"),
        "-p 'metric_weights={faithfulness: 2}'",
        "check scores.csv -p 'metric_weights={faithfulness: 2}'",
    ),
    "a word for a list": Mistake(
        "check scores.csv -p metrics=faithfulness",
        ("'metrics'", "'faithfulness'", "not a list"),
        "-p 'metrics=[faithfulness]'",
        "check scores.csv -p 'metrics=[faithfulness]'",
    ),
    "a word for a mapping": Mistake(
        "check data/quickstart/scores.csv -p where=strong",
        ("'where'", "'strong'", "not a mapping"),
        "-p 'where={system: strong}'",
        "check data/quickstart/scores.csv -p 'where={system: strong}'",
    ),
    "a percentage": Mistake(
        "check scores.csv -p level=95",
        ("'level'", "95", "below 1"),
        "write 0.95",
        "check scores.csv -p level=0.95",
    ),
    "a percent sign": Mistake(
        "check scores.csv -p level=90%",
        ("'level'", "'90%'", "not a number"),
        "write 0.9",
        "check scores.csv -p level=0.9",
    ),
    "a misspelt setting": Mistake(
        "check scores.csv -p levle=0.9",
        ("'levle'", "(have: name, title"),
        "did you mean 'level'",
        "check scores.csv -p level=0.9",
    ),
    "a setting without a value": Mistake(
        "check scores.csv -p level",
        ("'level'", "KEY=VALUE"),
        "-p level=0.9",
        "check scores.csv -p level=0.9",
    ),
    "a sign that is not one of a gate": Mistake(
        f"""check scores.csv -p 'gates=[{GATE.replace(">=", ">")}]'""",
        ("'gates[0].op'", "'>'", "(have: >=, <=)"),
        "did you mean '>=' or '<='",
        f"check scores.csv -p 'gates=[{GATE}]'",
    ),
    "a threshold in percent": Mistake(
        f"check scores.csv -p 'gates=[{GATE.replace('0.8', '80')}]'",
        ("80", "faithfulness's 0..1"),
        "write 0.8",
        f"check scores.csv -p 'gates=[{GATE}]'",
    ),
    # Options and arguments
    "a setting as an option": Mistake(
        "check scores.csv --levle 0.9",
        ("'--levle'", "(have: --gold"),
        "-p level=0.9",
        "check scores.csv -p level=0.9",
    ),
    "a misspelt option": Mistake(
        "compare small.csv small.csv --margn 0.1",
        ("'--margn'", "--markdown"),
        "did you mean '--margin'",
        "compare small.csv small.csv --margin 0.1",
    ),
    "a misspelt command": Mistake(
        "chek scores.csv", ("'chek'",), "Did you mean 'check'", "check scores.csv"
    ),
    "a scale in one word": Mistake(
        "calibrate data/quickstart/ratings.csv --scale 1-10",
        ("--scale", "'1-10'", "2 arguments"),
        "--scale 1 10",
        "calibrate data/quickstart/ratings.csv --scale 1 10",
    ),
    "a scale in one word before the file": Mistake(
        "calibrate --scale 1-10 data/quickstart/ratings.csv",
        ("--scale", "'1-10'", "not a valid float"),
        "--scale 1 10",
        "calibrate --scale 1 10 data/quickstart/ratings.csv",
    ),
    "a scale from high to low": Mistake(
        "calibrate data/quickstart/ratings.csv --scale 10 1",
        ("--scale 10.0 1.0", "lowest and highest"),
        "--scale 1 5",
        "calibrate data/quickstart/ratings.csv --scale 1 10",
    ),
    "a target in percent": Mistake(
        "calibrate data/quickstart/ratings.csv --target 80",
        ("80", "between 0 and 1"),
        "write 0.8",
        "calibrate data/quickstart/ratings.csv --target 0.8",
    ),
    "a file option without a file": Mistake(
        "check scores.csv --json",
        ("'--json'", "requires an argument"),
        "--json gates.json",
        "check scores.csv --json gates.json",
    ),
    "a file option that takes the input": Mistake(
        "check --json scores.csv",
        ("--json", "'scores.csv'"),
        "ragnb check scores.csv --json gates.json",
        "check scores.csv --json gates.json",
    ),
    "a language that is not there": Mistake(
        "report scores.csv --lang cn",
        ("'cn'", "'en', 'zh'"),
        "--lang zh",
        "check scores.csv --lang zh",
    ),
    "no calls at all": Mistake(
        "evaluate cases.yaml --max-calls 0",
        ("'--max-calls'", "0", "x>=1"),
        "--max-calls 500",
        "evaluate cases.yaml --max-calls 500",
    ),
    "a policy that is not there": Mistake(
        "compare small.csv small.csv --gate hard",
        ("'hard'", "'margin', 'strict', 'all'"),
        "--gate strict",
        "compare small.csv small.csv --gate strict",
    ),
    "report of nothing": Mistake(
        "report",
        ("'SCENARIO...'",),
        "ragnb report scenarios/quickstart.yaml",
        "check scenarios/quickstart.yaml",  # a report starts a kernel; test_example.py runs one
    ),
    "compare nothing": Mistake(
        "compare", ("'NEW'",), "ragnb compare new.csv base.csv", "compare small.csv small.csv"
    ),
    "compare without a base": Mistake(
        "compare scores.csv",
        ("baseline", "another run"),
        "ragnb compare new.csv base.csv",
        "compare scores.csv scores.csv",
    ),
    "check nothing": Mistake(
        "check", ("a scenario, a results file, a log",), "--scores", "check --scores scores.csv"
    ),
    "one argument too many": Mistake(
        "check scores.csv small.csv",
        ("(small.csv)",),
        "ragnb check scenarios/quickstart.yaml",
        "check scenarios/quickstart.yaml",
    ),
    "gold alone": Mistake(
        "check --gold data/quickstart/gold.json",
        ("--gold data/quickstart/gold.json", "no answers"),
        "--traces traces.jsonl",
        "check --gold data/quickstart/gold.json --traces data/quickstart/traces.strong.jsonl",
    ),
    # Files
    "a misspelt file": Mistake(
        "check score.csv",
        ("'score.csv'", "(have: "),
        "did you mean 'scores.csv'",
        "check scores.csv",
    ),
    "a folder": Mistake(
        "check folder",
        ("folder is a folder", "2 files were read as one table (a.jsonl, b.jsonl)"),
        "name one of them, such as",
        "check folder/a.jsonl",
    ),
    "a Word document": Mistake(
        "check report.docx",
        ("report.docx", "a Word document"),
        "save the table in it as .csv",
        "check report.csv",
        {"report.csv": SCORES},
    ),
    "a workbook by another name": Mistake(
        "check book.csv", ("book.csv", "an Excel workbook"), "name it .xlsx", "check book.xlsx"
    ),
    "an empty file": Mistake(
        "check empty.csv",
        ("empty.csv", "empty"),
        "write the results to it again",
        "check empty.csv",
        {"empty.csv": SCORES},
    ),
    "a broken line": Mistake(
        "check broken.jsonl",
        ("broken.jsonl", "line 2", "no JSON"),
        "-p 'allow={lines: 0.334}'",
        "check broken.jsonl -p 'allow={lines: 0.334}'",
    ),
    "words for scores": Mistake(
        "check words.csv",
        ("line 2", "'faithfulness'", "'high'", "a number or an empty cell"),
        '-p "columns={faithfulness: faithfulness_text}"',
        'check words.csv -p "columns={faithfulness: faithfulness_text}"',
    ),
    "a scenario to inspect": Mistake(
        "inspect scenarios/quickstart.yaml",
        ("a scenario, which names the files",),
        "run ragnb check scenarios/quickstart.yaml",
        "check scenarios/quickstart.yaml",
    ),
    "a text to inspect": Mistake(
        "inspect notes.txt",
        ("notes.txt", "'faithfulness of two answers'", "qrels"),
        "rename it notes.csv",
        "inspect notes.csv",
        {"notes.csv": "faithfulness\n0.5\n0.7\n"},
    ),
    # Scenarios
    "a percentage in a scenario": Mistake(
        "check level.yaml",
        ("level.yaml, line 2", "'level'", "95"),
        "write 0.95",
        "check level.yaml",
        {"level.yaml": scenario("level: 0.95")},
    ),
    "min in a gate": Mistake(
        "check min.yaml",
        ("min.yaml, line 3", "gates[0].min", "(have: name, metric, op, threshold"),
        'Write op: ">=", threshold: 0.8',
        "check min.yaml",
        {"min.yaml": scenario(f"gates:\n- {GATE}")},
    ),
    "a gate as text in a scenario": Mistake(
        "check text_gate.yaml",
        ("text_gate.yaml, line 2", "'faithfulness >= 0.8'", "not a list"),
        f"write gates: [{GATE}]",
        "check text_gate.yaml",
        {"text_gate.yaml": scenario(f"gates: [{GATE}]")},
    ),
    "a sign without quotes": Mistake(
        "check sign.yaml",
        ("sign.yaml, line 3", "YAML", "this sign"),
        'quotes, such as op: ">="',
        "check sign.yaml",
        {"sign.yaml": scenario(f"gates:\n- {GATE}")},
    ),
    "a tab": Mistake(
        "check tab.yaml",
        ("tab.yaml, line 3", "a tab"),
        "use spaces",
        "check tab.yaml",
        {"tab.yaml": FILES["tab.yaml"].replace("\t", "  ")},
    ),
    "a bracket that is not closed": Mistake(
        "check bracket.yaml",
        ("bracket.yaml", "a list in [ ]"),
        "close it with ]",
        "check bracket.yaml",
        {"bracket.yaml": FILES["bracket.yaml"].replace("recall", "recall]")},
    ),
    "a text with a colon": Mistake(
        "check colon.yaml",
        ("colon.yaml, line 2", "'title'", "a colon"),
        "put a text with a colon in quotes",
        "check colon.yaml",
        {"colon.yaml": scenario('title: "Answers: the second try"')},
    ),
    "a quote that is not closed": Mistake(
        "check quote.yaml",
        ("quote.yaml, line 2", "'title'", "a quote"),
        "add the closing quote",
        "check quote.yaml",
        {"quote.yaml": scenario("title: 'Answers'")},
    ),
    "a baseline that is not there": Mistake(
        "check yesterday.yaml",
        ("'yesterday.csv'", "(have: none)"),
        "Name one of these, a table of scores",
        "check yesterday.yaml",
        {"yesterday.yaml": scenario("baseline: scores.csv")},
    ),
    "a misspelt base": Mistake(
        "compare scores.csv scorez.csv",
        ("'scorez.csv'", "(have: scores.csv)"),
        "did you mean 'scores.csv'",
        "compare scores.csv scores.csv",
    ),
    "a base of several systems": Mistake(
        "compare small.csv data/quickstart/scores.csv",
        ("strong, weak", "names none"),
        "write the rows of one of them to a file of its own",
        "compare small.csv strong.csv",
        {"strong.csv": SCORES},
    ),
    "a weight that nobody declared": Mistake(
        "check weight.yaml",
        ("weight.yaml, line 2", "'tone'", "(have: faithfulness"),
        "metrics: [{name: tone, low: 0, high: 1}]",
        "check weight.yaml",
        {"weight.yaml": FILES["weight.yaml"] + "metrics: [{name: tone, low: 0, high: 1}]\n"},
    ),
    # Judges, systems, plans
    "scores to calibrate": Mistake(
        "calibrate scores.csv",
        ("scores.csv", "no human scores", "(columns: item_id"),
        "ragnb calibrate --sample 120 scores.csv --dimension faithfulness --out labels.csv",
        "calibrate --sample 120 scores.csv --dimension faithfulness --out labels.csv",
    ),
    "a table without human scores": Mistake(
        "calibrate data/quickstart/cases.jsonl",
        ("cases.jsonl", "no human scores", "(columns: item_id"),
        "--human …",
        "calibrate data/quickstart/ratings.csv --human human1",
    ),
    "a sample of nothing judged": Mistake(
        "calibrate --sample 12 scores.csv --out labels.csv",
        ("scores.csv", "no judge scores", "(have: item_id"),
        "--dimension …",
        "calibrate --sample 12 scores.csv --dimension faithfulness --out labels.csv",
    ),
    "judge without a model": Mistake(
        "judge cases.yaml",
        ("cases.yaml", "names no judge"),
        f"-p '{PROFILE % 'judge'}'",
        f"judge cases.yaml --dry-run -p '{PROFILE % 'judge'}'",
    ),
    "a judge's metric without a model": Mistake(
        "evaluate cases.yaml --metric faithfulness",
        ("'faithfulness'", "needs a judge"),
        "-p 'llm_profiles={judge: ",
        f"evaluate cases.yaml --metric faithfulness --dry-run -p '{PROFILE % 'judge'}'",
    ),
    "answer without a system": Mistake(
        "answer cases.yaml",
        ("cases.yaml", "names no system", "system: {generate: rag:answer}"),
        f"-p '{PROFILE % 'answer'}'",
        f"answer cases.yaml --dry-run -p '{PROFILE % 'answer'}'",
    ),
    "generate without a model": Mistake(
        "generate documents.yaml",
        ("documents.yaml", "no model that writes questions"),
        f"-p '{PROFILE % 'dataset'}'",
        f"generate documents.yaml --dry-run -p '{PROFILE % 'dataset'}'",
    ),
    "generate without documents": Mistake(
        "generate cases.yaml",
        ("cases.yaml", "no documents"),
        "documents: docs/",
        f"generate documents.yaml --dry-run -p '{PROFILE % 'dataset'}'",
    ),
    "a plan of nothing": Mistake(
        "plan gate",
        ("target, expected",),
        "--target 0.8 --expected 0.9",
        "plan gate --target 0.8 --expected 0.9",
    ),
    "a plan of a comparison of nothing": Mistake(
        "plan comparison",
        ("expected, sd",),
        "--expected 0.05 --sd 0.3",
        "plan comparison --expected 0.05 --sd 0.3",
    ),
    "a plan in percent": Mistake(
        "plan gate --target 80 --expected 0.9",
        ("--target 80.0", "between 0 and 1"),
        "write 0.8",
        "plan gate --target 0.8 --expected 0.9",
    ),
    "a plan of no kind": Mistake(
        "plan gates",
        ("'gates'", "(have: gate, comparison, calibration)"),
        "did you mean 'gate'",
        "plan gate --target 0.8 --expected 0.9",
    ),
    "an example into a folder that exists": Mistake(
        "example data", ("data exists",), "a folder that does not exist yet", "example demo"
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    here = write_example(tmp_path / "demo")
    for name, text in FILES.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text, encoding="utf-8")
    with zipfile.ZipFile(here / "report.docx", "w") as word:
        word.writestr("word/document.xml", "<document/>")
    pd.DataFrame({"question": ["q1", "q2"], "faithfulness": [0.5, 0.7]}).to_excel(
        here / "book.xlsx", index=False
    )
    (here / "book.csv").write_bytes((here / "book.xlsx").read_bytes())
    monkeypatch.chdir(here)
    return here


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_answered_by_value_choices_and_a_step_that_works(run, folder, mistake):
    code, _, err = run(*shlex.split(mistake.words))
    assert code == 2, err
    line = next((one for one in err.splitlines() if mistake.step in one), err)
    for part in (*mistake.shows, mistake.step):
        assert part in line
    for name, text in mistake.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    code, _, err = run(*shlex.split(mistake.followed))
    assert code in (0, 1, 3), err


# In these a further option would be taken for the value that is missing, or comes too late.
NO_LANGUAGE = re.compile(r"--lang|--json$|--scale 1-10$|^chek")
IN_CHINESE = {name: one for name, one in MISTAKES.items() if not NO_LANGUAGE.search(one.words)}


@pytest.mark.parametrize("mistake", IN_CHINESE.values(), ids=IN_CHINESE)
def test_a_mistake_is_answered_in_chinese(run, folder, mistake):
    code, _, err = run(*shlex.split(mistake.words), "--lang", "zh")
    assert code == 2
    assert re.search(r"[\u4e00-\u9fff].*[\u4e00-\u9fff]", err.splitlines()[0]), err


def test_every_option_with_a_value_has_an_example_that_its_type_takes():
    for name, command in cli.commands.items():
        for option in command.params:
            if not option.opts[0].startswith("-") or getattr(option, "is_flag", False):
                continue
            flag = option.opts[-1] if option.opts[-1].startswith("--") else option.opts[0]
            example = OPTION_EXAMPLES.get(f"{name} {flag}") or OPTION_EXAMPLES.get(flag)
            assert example is not None, f"[examples] of ragnb/cli/options.toml: {name} {flag}"
            words = example.split() if option.nargs != 1 else [example]
            assert len(words) == option.nargs, (name, flag)
            for word in words:
                option.type.convert(word, option, None)


def test_every_example_of_a_key_is_a_value_that_the_key_takes(tmp_path):
    for path, value in EXAMPLES.items():
        if "." not in path and "[]" not in path:
            assert getattr(Scenario.without_files(**{path: value}), path), path
    profile = EXAMPLES["llm_profiles.judge"]
    Scenario.without_files(llm_profiles=dict.fromkeys(("judge", "answer", "dataset"), profile))
    rubric = {
        name.partition(".")[2]: v for name, v in EXAMPLES.items() if name.startswith("rubric.")
    }
    assert rubric.pop("dimensions[]")
    Scenario.without_files(rubric=rubric)
    assert example_of(("gates",), {"noise_sensitivity": 0.3})[0]["op"] == "<="
    assert example_of(("slices",), "sk-" + "a1B2c3D4" * 4) == EXAMPLES["slices"]  # no secret
