"""The samples that `ragnb example` writes, from an installed wheel in an empty folder."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ragnb.cli.commands import example_command
from ragnb.example import FOLDERS, write_example

ROOT = Path(__file__).resolve().parents[1]


def ragnb(line: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command line of `ragnb` as it is printed."""
    name, *words = shlex.split(line)
    assert name == "ragnb"
    command = [sys.executable, "-m", "ragnb", *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_the_three_printed_commands_work_from_a_wheel_in_an_empty_folder(installed, tmp_path):
    made = ragnb("ragnb example 'my demo'", tmp_path, installed)
    assert (made.returncode, made.stderr) == (0, "")
    printed = [line.strip() for line in made.stdout.splitlines() if line.startswith("  ")]
    assert [line.split()[1] for line in printed] == ["check", "compare", "report"]
    for line in printed:
        done = ragnb(line, tmp_path, installed)
        assert done.returncode == 0, (line, done.stderr)
        assert "ragnb: " not in done.stderr, line
        assert done.stdout.strip(), line
    assert {path.name for path in tmp_path.iterdir()} == {"my demo", "reports"}


def test_the_library_that_ran_was_that_of_the_wheel(installed, tmp_path):
    words = [sys.executable, "-c", "import ragnb.example as e; print(e.samples_folder())"]
    done = subprocess.run(words, cwd=tmp_path, env=installed, capture_output=True, text=True)
    assert Path(done.stdout.strip()) == Path(installed["PYTHONPATH"]) / "ragnb" / "samples"


def test_every_sample_is_that_of_the_repository(installed, tmp_path):
    ragnb("ragnb example demo", tmp_path, installed)
    write_example(tmp_path / "checkout")
    from_wheel, from_checkout = (
        {path.relative_to(home): path.read_bytes() for path in home.rglob("*") if path.is_file()}
        for home in (tmp_path / "demo", tmp_path / "checkout")
    )
    assert from_wheel == from_checkout
    first_scores = from_wheel.pop(Path("scores.csv"))
    assert first_scores == from_wheel[Path("data/quickstart/scores_simulated.csv")]
    for path, content in from_wheel.items():
        assert path.parts[0] in FOLDERS
        assert content == (ROOT / path).read_bytes(), path


def test_an_existing_folder_is_refused_and_left_as_it_is(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    for name in ("demo", "a-file"):
        (tmp_path / "a-file").write_text("mine")
        code, out, err = run("example", name)
        assert (code, out) == (2, "")
        assert name in err
    assert not any((tmp_path / "demo").iterdir())
    assert (tmp_path / "a-file").read_text() == "mine"
    assert run("example", "demo2")[0] == 0  # the next step that the message names


def test_an_example_that_cannot_be_written_whole_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("ragnb.example.shutil.copyfile", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_example(tmp_path / "demo")
    assert not (tmp_path / "demo").exists()


def test_without_the_notebook_packages_the_core_commands_are_printed(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"{example_command.callback.__module__}.find_spec", lambda _: None)
    out = run("example", "demo")[1]
    *_, last = out.splitlines()
    assert last.strip() == "ragnb check demo/scenarios/quickstart.yaml"
    code, said, err = run(*shlex.split(last)[1:])
    assert (code, err) == (1, "")
    assert said.startswith("Not ready")


def test_the_example_speaks_chinese(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("example", "demo", "--lang", "zh")[1].startswith("demo：示例数据")
    assert "demo 已存在" in run("example", "demo", "--lang", "zh")[2]
