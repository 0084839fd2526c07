"""The window of `ragnb open`: choose, weigh, run, read and compare, by the editor and the commands that exist."""

from __future__ import annotations

import asyncio
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ragnb import markup
from ragnb.errors import RagnbError
from ragnb.markup import Safe, element, join
from ragnb.markup.blocks import Mark, Table
from ragnb.markup.rendering import draw
from ragnb.report.history import TONES
from ragnb.texts.errors import translated
from ragnb.widgets.base import Html, Twin, button, field, make
from ragnb.widgets.command import Command, Progress
from ragnb.widgets.weights import WeightEditor
from ragnb.widgets.workbench import RunRecord, Workbench

# Exit codes of `ragnb run`.
_COMPLETE = 0
_INCOMPLETE = 1
_STOPPED = 130
# The time with which the folder of a run begins, as 20261128T052050Z.
_STAMP = "%Y%m%dT%H%M%SZ"
_STAMP_LENGTH = len("20261128T052050Z")
_SHOWN_RUNS = 12
_SHOWN_LINES = 40
_CHOOSER = {"width": "auto", "flex": "0 1 720px"}
_NAMED = {"description_width": "64px"}


class Studio(Twin):
    """Choose a scenario, set its weights, run it, read the report, and compare runs, on one page.

    Shown as the last line of a cell. What it runs is ``ragnb run`` in a process of its own, which stops when the
    kernel ends; the same run goes on where it was.

    Parameters
    ----------
    folder : path
        The folder of the scenarios.
    home : path
        Where commands are given: reports are in ``reports/`` of it.
    lang : {"en", "zh"}, optional
        Of the window and its runs; by default English, and each scenario's own.

    Attributes
    ----------
    editor : WeightEditor
        The scenario that is chosen, and its weights.
    model : Workbench
        What runs and what ran; it can be driven without a browser.

    Raises
    ------
    RagnbError
        For a folder without a scenario that can be read.

    Examples
    --------
    >>> from ragnb.example import samples_folder
    >>> Studio(samples_folder() / "scenarios", home=samples_folder(), lang="zh").model.is_busy
    False
    """

    def __init__(
        self, folder: str | Path, *, home: str | Path = ".", lang: str | None = None
    ) -> None:
        self.model = Workbench(home, lang=lang, changed=self._notice)
        self.editor = WeightEditor(Path(folder).resolve(), lang=self.model.lang)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False  # whether a drawing is waiting for the kernel's thread
        # Whose report is on the page.
        self._finished: Command | None = None

    def __repr__(self) -> str:
        return f"Studio({self.editor.model.scenario.name!r}: {len(self.model.runs())} runs)"

    def _static(self) -> Safe:
        hint = element("p", self.model.say("studio.static"), class_="rg-note")
        return join([_runs_table(self.model), hint])

    # The page, from top to bottom

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        say = self.model.say
        lang = self.model.lang
        self._said = Html(lang, live=True)
        self._problem = Html(lang, live=True)
        self._bars = make("VBox")
        self._runs = Html(lang)
        self._page = make("HTML", layout={"width": "auto"})
        self._estimate = button(say, "studio.estimate", self._press_estimate)
        self._start = button(say, "studio.start", self._press_start, button_style="primary")
        self._stop = button(say, "studio.stop", self._press_stop)
        self._new = field(say, "studio.run", "Dropdown", style=_NAMED, layout=_CHOOSER)
        self._base = field(say, "studio.baseline", "Dropdown", style=_NAMED, layout=_CHOOSER)
        show = button(say, "studio.show", self._press_show)
        compare = button(say, "studio.compare", self._press_compare)
        self._loop = _running_loop()
        self._list_runs()
        self._refresh()
        row = {"flex_flow": "row wrap", "grid_gap": "8px"}
        return self._box(
            say("studio.gone"),
            self._heading("studio.weigh"),
            self.editor.view,
            self._heading("studio.run_it"),
            make("HBox", [self._estimate, self._start, self._stop], layout=row),
            self._problem.widget,
            self._bars,
            self._said.widget,
            self._heading("studio.runs"),
            self._runs.widget,
            make("HBox", [self._new, show], layout=row),
            make("HBox", [self._base, compare], layout=row),
            self._page,
        )

    def _heading(self, key: str) -> Any:
        return Html(self.model.lang, element("h3", self.model.say(key))).widget

    # What buttons do

    def _press_estimate(self) -> None:
        self._begin(dry_run=True)

    def _press_start(self) -> None:
        # The button appears once a bill is complete. Another scenario may have been chosen since: its bill comes
        # first, too.
        bill = self.model.command
        path = str(self.editor.model.scenario.path)
        self._begin(dry_run=bill is None or path not in bill.words)

    def _begin(self, *, dry_run: bool) -> None:
        self._problem.warn("")
        self._bars.children = ()
        try:
            self.model.start(self.editor.model, dry_run=dry_run)
        except RagnbError as error:
            self._warn(error)
        self._refresh()

    def _press_stop(self) -> None:
        self.model.stop()
        self._refresh()

    def _press_show(self) -> None:
        run = self._chosen(self._new)
        if run:
            self._show_page(run["page"].read_text(encoding="utf-8"))

    def _press_compare(self) -> None:
        new = self._chosen(self._new)
        baseline = self._chosen(self._base)
        self._problem.warn("")
        if new is None or baseline is None:
            return
        try:
            self._show_page(self.model.compared(new, baseline))
        except RagnbError as error:
            self._warn(error)

    def _warn(self, error: RagnbError) -> None:
        self._problem.warn(translated(str(error), self.model.lang))

    # What is seen of a command

    def _notice(self) -> None:
        """Have what a command said drawn; called from the thread that reads it.

        Widgets belong to the thread of the kernel, where presses and slides arrive. What comes while it is busy is
        drawn once.
        """
        if self._loop is not None and not self._is_due:
            self._is_due = True
            self._loop.call_soon_threadsafe(self._refresh)

    def _refresh(self) -> None:
        """Show how far the command is."""
        # First, so that what is said from here on is drawn, too.
        self._is_due = False
        command = self.model.command
        # Read once: a command that ends in the middle of this is drawn again.
        code = None if command is None else command.code
        is_busy = command is not None and code is None
        is_bill = command is not None and "--dry-run" in command.words
        has_bill = is_bill and code == _COMPLETE
        self._estimate.disabled = is_busy
        self._start.layout.display = "inline-flex" if has_bill else "none"
        self._stop.layout.display = "inline-flex" if is_busy else "none"
        if command is None:
            return
        # The thread that reads the command goes on writing to its bars and lines: copies are drawn.
        self._draw_bars(dict(command.stages))
        lines = list(command.lines[-_SHOWN_LINES:])
        # What is being asked is finished first, which may take a while, and a second press does nothing.
        self._stop.disabled = command.is_stopping
        if code is not None:
            # What the sentence promises is on the page before it.
            if not is_bill and self._finished is not command:
                self._finished = command
                self._finish()
            lines.append(self._outcome(code, is_bill=is_bill, is_empty=not lines))
        self._said.show(element("pre", "\n".join(lines), class_="rg-diff"))

    def _outcome(self, code: int, *, is_bill: bool, is_empty: bool) -> str:
        """Say what became of a command."""
        ends = {_COMPLETE: "finished", _INCOMPLETE: "incomplete", _STOPPED: "stopped"}
        key = ends.get(code, "failed")
        if is_bill:
            if code == _COMPLETE:
                key = "nothing_asked" if is_empty else "bill"
            else:
                key = "refused"
        text: str = self.model.say(f"studio.{key}")
        return text

    def _draw_bars(self, stages: dict[str, Progress]) -> None:
        """Draw a bar for each stage, with its name and how much is done beside it."""
        bars = {bar.name: bar for bar in self._bars.children}
        for stage, progress in stages.items():
            bar = bars.get(stage) or make("IntProgress", layout={"width": "auto"})
            bar.name = stage
            bar.style = {"description_width": "initial"}
            # The maximum first: a value above it would be cut down to it.
            bar.max = max(progress.total, 1)
            bar.value = progress.done
            done_of_total = self.model.say(
                "studio.progress", done=progress.done, total=progress.total
            )
            bar.description = f"{stage}: {done_of_total}"
            bar.bar_style = "success" if progress.done == progress.total else "info"
            bars[stage] = bar
        self._bars.children = tuple(bars.values())

    def _finish(self) -> None:
        """Show what a run left: its report, the list of runs, and the editor with its scores."""
        before = set(self._listed)
        self._list_runs()
        new = [key for key in self._listed if key not in before]
        if new:
            self._new.value = new[0]
            self._press_show()
        try:
            self.editor.refresh()
        except RagnbError as error:
            self._warn(error)

    # Runs so far

    def _list_runs(self) -> None:
        runs = self.model.runs()
        self._listed = {str(run["page"]): run for run in runs}
        keys = list(self._listed)
        options = [(_label(run, self.model.say), key) for key, run in self._listed.items()]
        # Runs are listed newest first: by default the newest one is compared with the one before it.
        for usual, chooser in enumerate((self._new, self._base)):
            chosen = chooser.value
            chooser.options = options  # which turns the chooser to the first one
            if chosen in self._listed:
                chooser.value = chosen
            elif keys:
                chooser.value = keys[min(usual, len(keys) - 1)]
        self._runs.show(_runs_table(self.model))

    def _chosen(self, chooser: Any) -> RunRecord | None:
        return self._listed.get(chooser.value)

    def _show_page(self, page: str) -> None:
        """Show a page in a frame of its own, from which no script reaches this one."""
        self._page.value = element(
            "iframe",
            srcdoc=page,
            sandbox="allow-scripts allow-popups",
            title=self.model.say("studio.page"),
            style="width: 100%; height: 85vh; border: 1px solid var(--rg-edge);",
        )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop of the kernel; None outside of one, where nobody looks at the widgets."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _label(run: RunRecord, say: Any) -> str:
    """Write a run on one line: when, what, and what became of it."""
    if run["value"] is None:
        score = ""
    else:
        score = f" · {markup.number(run['value'])}"
    began = datetime.strptime(run["page"].parent.name[:_STAMP_LENGTH], _STAMP)
    return f"{began:%Y-%m-%d %H:%M:%S} UTC · {run['scenario']} · {say('index.' + run['outcome'])}{score}"


def _runs_table(model: Workbench) -> Safe:
    """Return the latest runs as a table."""
    runs = model.runs()
    if not runs:
        return element("p", model.say("studio.no_runs"), class_="rg-note")
    heads = [model.say(f"index.{head}") for head in ("scenario", "at", "verdict", "value")]
    heads.append(f">{model.say('index.n')}")  # a column of numbers, set to the right
    rows = [_run_row(run, model.say) for run in runs[:_SHOWN_RUNS]]
    return draw(Table(tuple(heads), tuple(rows)), model.lang)


def _run_row(run: RunRecord, say: Any) -> tuple[Any, ...]:
    """Return the cells of a run in the table of runs; one that was not scored has no score and no n."""
    score = ""
    if run["value"] is not None:
        score = f"{markup.number(run['value'])} {markup.ends(run['low'], run['high'])}"
    outcome = Mark(TONES[run["outcome"]], say(f"index.{run['outcome']}"))
    n = ""
    if run["n"] is not None:
        n = markup.count(run["n"])
    return run["scenario"], run["at"], outcome, score, n
