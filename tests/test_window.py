"""The parts of the window without a browser: commands that are followed and stopped, and weights as options."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import time
from pathlib import Path

import pytest
from pipeline_server import model as pipeline_model
from test_pipeline import project

from ragnb import load_scenario
from ragnb.errors import RagnbError
from ragnb.widgets import WeightEditor
from ragnb.widgets.command import Command, Progress
from ragnb.widgets.studio import Studio
from ragnb.widgets.workbench import Workbench, turned

SCORES = "sample_id,doc_name,faithfulness,context_recall\n" + "".join(
    f"s{n},{n % 4}.pdf,{n % 5 / 4},{n % 3 / 2}\n" for n in range(24)
)


@pytest.fixture
def scored(tmp_path):
    """A folder of a scenario with scores and weights."""
    (tmp_path / "scores.csv").write_text(SCORES, encoding="utf-8")
    text = "scores: scores.csv\nmetric_weights: {faithfulness: 2}\ndoc_weights: {1.pdf: 3}\n"
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def followed(command: Command) -> Command:
    assert command.wait(120) is not None, command.lines
    return command


def test_a_command_is_followed_to_its_exit_code(scored):
    changes = []
    words = ["check", "scores.csv", "--lang", "zh"]
    command = Command(words, folder=scored, changed=lambda: changes.append(1))
    assert followed(command).code == 0
    assert any("faithfulness" in line for line in command.lines)
    assert changes
    refused = followed(Command(["check", "none.csv"], folder=scored, changed=lambda: None))
    assert refused.code == 2
    assert "none.csv" in refused.lines[-1]


def test_bars_are_read_as_stages_and_not_as_lines(tmp_path, llm_server):
    llm_server.script = pipeline_model
    folder = project(tmp_path / "p", llm_server)
    command = followed(Command(["run", "x.yaml"], folder=folder, changed=lambda: None))
    assert command.code == 0, command.lines
    assert not [line for line in command.lines if "%|" in line]
    assert [*command.stages] == [
        "generate",
        "answer",
        "evaluate",
        "judge: probes",
        "judge",
        "report",
    ]
    assert all(stage.done == stage.total for stage in command.stages.values())
    assert command.stages["answer"] == Progress(8, 8)


def test_a_stopped_command_saves_and_the_next_goes_on(tmp_path, llm_server):
    def slow(request):
        time.sleep(0.2)
        return pipeline_model(request)

    llm_server.script = slow
    folder = project(tmp_path / "p", llm_server)
    command = Command(["run", "x.yaml"], folder=folder, changed=lambda: None)
    while "generate" not in command.stages or not command.stages["generate"].done:
        time.sleep(0.02)
    command.stop()
    assert followed(command).code == 130
    assert command.lines[-1].startswith("ragnb: stopped")
    assert followed(Command(["run", "x.yaml"], folder=folder, changed=lambda: None)).code == 0
    bodies = [str(sorted(request.body.items(), key=str)) for request in llm_server.log]
    assert len(bodies) == len(set(bodies))


def test_weights_are_sent_only_where_they_differ_from_the_file(scored):
    model = WeightEditor(scored / "mine.yaml").model
    assert turned(model) == []
    model.set("metric_weights", "faithfulness", 2)
    model.set("metric_weights", "context_recall", 1)
    model.set("doc_weights", "1.pdf", 3)
    assert turned(model) == []
    model.set("metric_weights", "context_recall", 4)
    model.remove("1.pdf")
    assert turned(model) == [
        "-p",
        "metric_weights={faithfulness: 2.0, context_recall: 4.0}",
        "-p",
        "doc_weights={}",
    ]


def test_a_run_has_the_weights_of_the_editor_and_the_file_has_its_own(scored):
    before = (scored / "mine.yaml").read_text(encoding="utf-8")
    bench = Workbench(scored)
    editor = WeightEditor(scored / "mine.yaml")
    editor.model.set("metric_weights", "context_recall", 6)
    command = bench.start(editor.model)
    with pytest.raises(RagnbError, match="a command is running"):
        bench.start(editor.model)
    assert followed(command).code == 0, command.lines
    (run,) = bench.runs()
    assert run["weights"]["metric_weights"]["context_recall"] == 6
    assert run["value"] == pytest.approx(editor.means["value"].iloc[-1])
    assert (scored / "mine.yaml").read_text(encoding="utf-8") == before


def test_wrong_weights_and_a_bad_scenario_are_said(scored):
    bench = Workbench(scored)
    editor = WeightEditor(scored / "mine.yaml")
    editor.model.set("metric_weights", "faithfulness", "much")
    with pytest.raises(RagnbError, match="“much” is not a number"):
        bench.start(editor.model)
    # One bad file of a folder does not close the window for the others.
    (scored / "a_bad.yaml").write_text("scores: none.csv\nwhat: 1\n", encoding="utf-8")
    assert WeightEditor(scored).model.scenario.name == "mine"
    (scored / "mine.yaml").unlink()
    with pytest.raises(RagnbError, match="what"):
        WeightEditor(scored)


def test_a_refreshed_editor_keeps_what_was_entered(scored):
    editor = WeightEditor(scored / "mine.yaml")
    editor.model.set("metric_weights", "context_recall", 5)
    editor.model.add("2.pdf")
    editor.model.set("doc_weights", "2.pdf", 7)
    entered = editor.model.entries()
    (scored / "scores.csv").write_text(SCORES + "s99,9.pdf,1,1\n", encoding="utf-8")
    editor.refresh()
    assert editor.model.entries() == entered
    assert editor.means["n"].max() == 25


def test_a_refreshed_editor_makes_no_widget_anew(scored, monkeypatch):
    # Each widget is a message; of some hundred at once a busy server drops some, and the editor is gone.
    import ipywidgets

    editor = WeightEditor(scored / "mine.yaml")
    assert editor.view is not None
    made = []
    monkeypatch.setattr(ipywidgets.Widget, "open", lambda widget: made.append(widget))
    (scored / "scores.csv").write_text(SCORES.replace(",0.0,", ",0.5,"), encoding="utf-8")
    before = shown_numbers(editor.view)
    editor.refresh()
    assert not made
    assert shown_numbers(editor.view) != before


def shown_numbers(box) -> list[str]:
    """Return the numbers of a box of widgets, in their order."""
    import ipywidgets

    texts = [w.value for w in all_below(box) if isinstance(w, ipywidgets.HTML)]
    return re.findall(r">(\d\.\d+)", "".join(texts))


def all_below(box) -> list:
    """Return a widget and all those in it."""
    return [box, *(one for child in getattr(box, "children", ()) for one in all_below(child))]


def test_a_window_draws_what_a_command_said_in_the_thread_of_the_kernel(scored):
    threads = []

    async def run() -> None:
        studio = Studio(scored, home=scored)
        drawn = studio._refresh

        def noted() -> None:
            threads.append(threading.current_thread())
            drawn()

        studio._refresh = noted
        assert studio.view is not None
        studio._press_estimate()
        deadline = time.monotonic() + 120
        while studio.model.is_busy or "rg-diff" not in studio._said.widget.value:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)

    asyncio.run(run())
    assert len(threads) > 1
    assert set(threads) == {threading.main_thread()}


def test_stop_stays_off_while_what_is_being_asked_is_finished(tmp_path, llm_server):
    """A second press does nothing; a button that comes back says that the first one was lost."""
    proceeds = threading.Event()

    def waits(request):
        assert proceeds.wait(60)
        return pipeline_model(request)

    llm_server.script = waits
    studio = Studio(project(tmp_path / "p", llm_server), home=tmp_path / "p")
    assert studio.view is not None
    # The bill alone offers the run; here it is begun at once.
    studio._begin(dry_run=False)
    assert not studio._stop.disabled
    command = studio.model.command
    while not llm_server.log:
        time.sleep(0.02)
    studio._refresh()
    assert not studio._stop.disabled
    studio._press_stop()
    assert studio._stop.disabled
    # Lines and bars of the command draw the page again.
    studio._refresh()
    assert studio.model.is_busy
    assert studio._stop.disabled
    assert studio._stop.layout.display == "inline-flex"
    proceeds.set()
    assert followed(command).code == 130
    studio._refresh()
    assert studio._stop.layout.display == "none"
    # The next command can be stopped.
    studio._begin(dry_run=True)
    assert not studio._stop.disabled
    followed(studio.model.command)


def test_saving_leaves_the_dimensions_of_a_rubric_apart(tmp_path, llm_server, monkeypatch):
    llm_server.script = pipeline_model
    folder = project(tmp_path / "p", llm_server)
    assert followed(Command(["run", "x.yaml"], folder=folder, changed=lambda: None)).code == 0
    monkeypatch.chdir(folder)
    editor = WeightEditor("x.yaml")
    before = editor.metric_weights
    editor.model.set("metric_weights", "context_relevance", 3)
    editor.save()
    assert editor.metric_weights == before | {"context_relevance": 3.0}
    assert editor.model.base.rows["weighted_score"]["n"] > 0
    assert load_scenario("x.yaml").metric_weights == {"context_relevance": 3.0}


def test_the_window_refuses_a_folder_without_scenarios(tmp_path, monkeypatch, capsys):
    from ragnb.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["open", "--no-browser"]) == 2
    assert "ragnb init" in capsys.readouterr().err
    assert main(["open", "gone"]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_a_command_that_is_attended_stops_when_its_starter_is_gone(tmp_path, llm_server):
    import os
    import signal
    import subprocess

    def slow(request):
        time.sleep(0.2)
        return pipeline_model(request)

    llm_server.script = slow
    folder = project(tmp_path / "p", llm_server)
    starter = (
        "import sys, time; from ragnb.widgets.command import Command\n"
        f"command = Command(['run', 'x.yaml'], folder={str(folder)!r}, changed=lambda: None)\n"
        "print(command._process.pid, flush=True); time.sleep(60)"
    )
    root = str(Path(__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", starter],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": root},
    )
    with process:
        pid = int(process.stdout.readline())
        while not llm_server.log:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    sent = len(llm_server.log)
    time.sleep(0.5)
    assert len(llm_server.log) == sent


def test_runs_speak_the_language_of_the_window_or_of_their_scenario(scored):
    (scored / "mine.yaml").write_text("scores: scores.csv\nlang: zh\n", encoding="utf-8")
    bench = Workbench(scored)
    assert followed(bench.start(WeightEditor(scored / "mine.yaml").model)).code == 0
    assert any("总分" in line for line in bench.command.lines)
    bench = Workbench(scored, lang="en")
    assert followed(bench.start(WeightEditor(scored / "mine.yaml").model)).code == 0
    assert any("Overall score" in line for line in bench.command.lines)


def test_start_shows_the_bill_of_a_scenario_that_was_chosen_since(scored):
    (scored / "other.yaml").write_text("scores: scores.csv\n", encoding="utf-8")
    studio = Studio(scored, home=scored)
    assert studio.view is not None
    studio._press_estimate()
    assert followed(studio.model.command).code == 0
    studio.editor._chooser.value = str(scored / "other.yaml")
    studio._press_start()
    followed(studio.model.command)
    assert studio.model.command.words[1:] == [str(scored / "other.yaml"), "--dry-run"]
    assert not studio.model.runs()
    studio._press_start()
    assert followed(studio.model.command).code == 0
    assert [run["scenario"] for run in studio.model.runs()] == ["other"]
