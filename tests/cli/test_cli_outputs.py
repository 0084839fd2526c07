"""No command writes over what it reads: every option that names an output, against every file that is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest
from judge_server import examiner

from ragnb.cli import cli, main
from ragnb.cli.outputs import Output
from ragnb.errors import RagnbError
from ragnb.files import refuse_overwriting

pytestmark = pytest.mark.filterwarnings("ignore::ragnb.errors.RagnbWarning")

CASES = [
    {"sample_id": f"s{n}", "question": f"How long is warranty {n}?", "answer": f"{n} months."}
    | {"retrieved_contexts": [f"Warranty {n} is {n} months."], "doc_name": f"{n % 2}.pdf"}
    for n in range(4)
]
LOG = [
    {"question": case["question"], "answer": case["answer"], "retrieved_contexts": []}
    for case in CASES
]
GOLD = [
    {"sample_id": f"s{n}", "question": f"How long is warranty {n}?", "gold_ids": ["a"]}
    for n in range(4)
]
TRACES = [
    {"sample_id": f"s{n}", "answer": "It is.", "citations": ["a"], "retrieved_ids": ["a"]}
    for n in range(4)
]

# How each command is called with all that it reads; the options that write are added to it.
COMMANDS = {
    "check": ["checked.yaml"],
    "check a log": ["log.jsonl"],
    "check by options": ["--gold", "gold.jsonl", "--traces", "traces.jsonl"],
    "compare": ["checked.yaml", "base.csv"],
    "plan": ["comparison", "scores.csv", "--baseline", "base.csv"],
    "calibrate": ["ratings.csv"],
    "calibrate labels": ["labels.csv", "--judged", "judged.csv"],
    "calibrate a sample": ["judged.csv", "--sample", "2"],
    "calibrate golden": ["--golden"],
    "init": ["scores.csv"],
    "evaluate": ["asked.yaml", "--metric", "number_support"],
    "judge": ["asked.yaml"],
    "generate": ["made.yaml"],
    "answer": ["asked.yaml"],
    "runs": ["runs.sqlite"],
}
READ = {
    "check": ["checked.yaml", "scores.csv", "base.csv"],
    "check a log": ["log.jsonl"],
    "check by options": ["gold.jsonl", "traces.jsonl"],
    "compare": ["checked.yaml", "scores.csv", "base.csv"],
    "plan": ["scores.csv", "base.csv"],
    "calibrate": ["ratings.csv"],
    "calibrate labels": ["labels.csv", "judged.csv"],
    "calibrate a sample": ["judged.csv"],
    "calibrate golden": [],
    "init": ["scores.csv"],
    "evaluate": ["asked.yaml", "cases.jsonl", "rag.py"],
    "judge": ["asked.yaml", "cases.jsonl", "rag.py"],
    "generate": ["made.yaml", "docs/a.md"],
    "answer": ["asked.yaml", "cases.jsonl", "rag.py"],
    "runs": ["runs.sqlite", "runs.sqlite-wal"],
}
# Options and arguments of a path that is read; an option that is in neither list fails the test below.
READING = {
    *["calibrate ratings", "calibrate judged", "check source", "check gold", "check traces"],
    *["check scores", "inspect files", "init file", "evaluate source", "judge source"],
    *[
        "generate source",
        "answer source",
        "run source",
        "open folder",
        "report scenarios",
        "runs store",
        "verify run",
    ],
    *["accept scenario", "compare ratings"],
}
STORES = {"evaluate store", "judge store", "generate store", "answer store"}
FOLDERS = {"report out", "example folder"}


def path_options():
    """Every parameter of every command that takes a path, from click's own list."""
    for name, command in cli.commands.items():
        for parameter in command.params:
            if isinstance(parameter.type, click.Path):
                yield name, parameter


def written_by(command):
    return [
        parameter.opts[0]
        for name, parameter in path_options()
        if name == command and isinstance(parameter.type, Output)
    ]


def test_every_option_with_a_path_is_known_as_read_or_written():
    outputs = {
        f"{name} {parameter.name}"
        for name, parameter in path_options()
        if isinstance(parameter.type, Output)
    }
    every = {f"{name} {parameter.name}" for name, parameter in path_options()}
    assert every == READING | STORES | FOLDERS | outputs
    assert not (READING | STORES | FOLDERS) & outputs
    tested = {key.split()[0] for key in COMMANDS}
    assert {name.split()[0] for name in outputs} <= tested


@pytest.fixture
def project(tmp_path, monkeypatch, llm_server):
    monkeypatch.chdir(tmp_path)
    llm_server.script = examiner
    for name, rows in (("cases", CASES), ("log", LOG), ("gold", GOLD), ("traces", TRACES)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        Path(f"{name}.jsonl").write_text(lines, encoding="utf-8")
    for name in ("scores", "base"):
        rows = "".join(f"s{n},{n % 3}.pdf,{n % 5 / 4}\n" for n in range(30))
        Path(f"{name}.csv").write_text(f"sample_id,doc_name,faithfulness\n{rows}", encoding="utf-8")
    rows = "".join(f"s{n},{1 + n % 5},{1 + n % 4}\n" for n in range(30))
    Path("ratings.csv").write_text(f"item_id,judge,human\n{rows}", encoding="utf-8")
    rows = "".join(f"s{n},Word {n},{1 + n % 5}\n" for n in range(30))
    Path("judged.csv").write_text(f"sample_id,answer,accuracy\n{rows}", encoding="utf-8")
    rows = "".join(f"s{n},{1 + n % 5}\n" for n in range(30))
    Path("labels.csv").write_text(f"sample_id,accuracy\n{rows}", encoding="utf-8")
    Path("docs").mkdir()
    Path("docs/a.md").write_text("The warranty is 24 months.", encoding="utf-8")
    Path("rag.py").write_text("def answer(question, passages):\n    return 'Yes.'\n", "utf-8")
    Path("checked.yaml").write_text("scores: scores.csv\nbaseline: base.csv\n", encoding="utf-8")
    profile = f"{{base_url: '{llm_server.base_url}', model: small}}"
    profiles = f"llm_profiles: {{judge: {profile}, dataset: {profile}}}\n"
    system = "system: {name: mine, generate: 'rag:answer'}\n"
    Path("asked.yaml").write_text(f"cases: cases.jsonl\n{profiles}{system}", encoding="utf-8")
    Path("made.yaml").write_text(f"documents: docs\n{profiles}", encoding="utf-8")
    for name in ("runs.sqlite", "runs.sqlite-wal"):
        Path(name).write_bytes(b"as it was")
    return tmp_path


WALKED = [(key, flag) for key in COMMANDS for flag in written_by(key.split()[0])]


@pytest.mark.parametrize(("key", "flag"), WALKED, ids=" ".join)
def test_no_output_takes_the_place_of_an_input(project, llm_server, capsys, key, flag):
    command = [key.split()[0], *COMMANDS[key]]
    before = contents(project)
    for name in READ[key]:
        for spelling in spellings(Path(name)):
            assert main([*command, flag, str(spelling)]) == 2, (name, spelling)
            said = capsys.readouterr()
            assert f"{flag} {spelling}: this is an input of the run" in said.err
            remove_links(project)
    assert contents(project) == before
    assert not llm_server.log


def spellings(path):
    """The file by its name, an absolute path, a way round, a link, a hard link and a linked folder."""
    yield path
    yield path.absolute()
    yield Path("docs") / ".." / path
    link = Path("a link.out")
    link.symlink_to(path.absolute())
    yield link
    hard = Path("a hard link.out")
    hard.hardlink_to(path)
    yield hard
    Path("linked").symlink_to(path.absolute().parent)
    yield Path("linked") / path.name


def remove_links(folder):
    for name in ("a link.out", "a hard link.out", "linked"):
        (folder / name).unlink(missing_ok=True)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("key", "flag"), WALKED, ids=" ".join)
def test_no_output_is_a_folder_a_device_or_a_pipe(project, capsys, key, flag):
    os.mkfifo("pipe")
    command = [key.split()[0], *COMMANDS[key]]
    for place, what in (("docs", "a folder"), ("/dev/null", "a device"), ("pipe", "a device")):
        assert main([*command, flag, place]) == 2
        assert f"{flag} {place}: this is {what}" in capsys.readouterr().err
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("key", COMMANDS)
def test_two_outputs_are_two_files(project, capsys, key):
    flags = written_by(key.split()[0])
    for other in flags[1:]:
        words = [key.split()[0], *COMMANDS[key], flags[0], "one.out", other, "./one.out"]
        assert main(words) == 2
        assert "are the same file" in capsys.readouterr().err
    assert not Path("one.out").exists()


def test_a_file_that_is_no_input_is_written_and_written_again(project, capsys):
    for _ in range(2):
        assert main(["check", "checked.yaml", "--json", "gates.json"]) in (0, 1)
        assert main(["evaluate", "asked.yaml", "--metric", "number_support"]) == 0
        table = "reports/asked/scores.csv"
        assert main(["evaluate", "asked.yaml", "--metric", "number_support", "--out", table]) == 0
    assert json.loads(Path("gates.json").read_text(encoding="utf-8"))
    capsys.readouterr()


def test_tables_of_stages_and_settings_of_the_command_line_are_inputs_too(project, capsys):
    assert main(["answer", "asked.yaml"]) == 0
    assert main(["evaluate", "asked.yaml", "--metric", "number_support"]) == 0
    for words in (
        ["judge", "asked.yaml", "--out", "reports/asked/answers.jsonl"],
        ["judge", "asked.yaml", "--out", "reports/asked/scores.csv"],
        ["check", "asked.yaml", "--json", "reports/asked/scores.csv"],
        ["check", "checked.yaml", "-p", "scores=base.csv", "--json", "base.csv"],
        ["check", "checked.yaml", "-p", "baseline=judged.csv", "--json", "judged.csv"],
    ):
        assert main(words) == 2, words
        assert "this is an input of the run" in capsys.readouterr().err, words


def test_what_stands_beside_a_table_destroys_nothing_either(project, llm_server, capsys):
    before = Path("asked.yaml").read_bytes()
    Path("asked.snapshot.yaml").write_bytes(before)
    Path("improved.csv").write_bytes(Path("cases.jsonl").read_bytes())
    Path("docs/review.csv").write_text("text\nOne.\n", encoding="utf-8")
    assert main(["judge", "asked.snapshot.yaml", "--out", "asked.csv"]) == 2
    assert "--out (settings) asked.snapshot.yaml: this is an input" in capsys.readouterr().err
    words = ["judge", "asked.yaml", "-p", "cases=improved.csv", "--out", "b.csv"]
    assert main([*words, "--improve", "1", "--system", "rag:answer"]) == 2
    assert "--out (improved answers) improved.csv" in capsys.readouterr().err
    assert (
        main(["generate", "made.yaml", "-p", "documents=docs/review.csv", "--out", "docs/q.jsonl"])
        == 2
    )
    assert "--out (review)" in capsys.readouterr().err
    for words in (
        ["evaluate", "cases.jsonl", "--store", "cases.jsonl"],
        ["evaluate", "cases.jsonl", "--out", "a.csv", "--store", "a.csv"],
        ["judge", "asked.yaml", "--store", "rag.py"],
        ["report", "checked.yaml", "--out", "scores.csv"],
    ):
        assert main(words) == 2, words
    assert Path("asked.snapshot.yaml").read_bytes() == before
    assert not llm_server.log


def test_another_spelling_of_an_input_on_a_file_system_without_cases_is_the_input(
    tmp_path, monkeypatch
):
    """Such a file system says of both names that they exist and are one file; here two links do."""
    (tmp_path / "scores.csv").write_text("a", encoding="utf-8")
    (tmp_path / "SCORES.CSV").hardlink_to(tmp_path / "scores.csv")
    with pytest.raises(RagnbError, match="this is an input of the run"):
        refuse_overwriting({"--out": tmp_path / "SCORES.CSV"}, [tmp_path / "scores.csv"])


def test_a_run_that_is_compared_is_not_written_over(project, capsys):
    assert main(["report", "checked.yaml"]) == 0
    (run,) = [path.parent for path in Path("reports").rglob("run.json")]
    before = contents(run)
    for name in ("checked", "latest", str(run)):
        for file in ("scores.csv", "run.json", "report.html"):
            assert main(["compare", name, "base.csv", "--html", str(run / file)]) == 2
            assert "this is an input of the run" in capsys.readouterr().err
    assert contents(run) == before
