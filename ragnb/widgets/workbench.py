"""What the window does: a bill, a run with the weights as they are turned, its report, and comparisons of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragnb import texts
from ragnb.comparison.view import compare_view
from ragnb.errors import RagnbError
from ragnb.report.history import history
from ragnb.scenario import load_scenario
from ragnb.scenario.source import flow
from ragnb.widgets.command import Command
from ragnb.widgets.model import DOC, METRIC, Weighing

RunRecord = dict[str, Any]


class Workbench:
    """The state of the window; it can be driven without a browser.

    Parameters
    ----------
    home : path
        Where commands are given: reports are in ``reports/`` of it.
    lang : {"en", "zh"}, optional
        Of the window and its runs; by default English, and each scenario's own.
    changed : callable, optional
        Called, from another thread, whenever a command says something.

    Attributes
    ----------
    command : Command or None
        The last command that was started.
    """

    def __init__(
        self,
        home: str | Path,
        *,
        lang: str | None = None,
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        self.home = Path(home).resolve()
        self.lang = lang or "en"
        self.say = texts.load(self.lang)
        # Without the option each scenario is reported in its own language.
        self._lang_of_runs = ["--lang", lang] if lang else []
        self.command: Command | None = None
        self.changed = changed

    @property
    def is_busy(self) -> bool:
        """Whether a command is running."""
        return self.command is not None and self.command.code is None

    def start(self, weighing: Weighing, *, dry_run: bool = False) -> Command:
        """Run a scenario with the weights as they stand in an editor, or say only what that costs.

        Raises
        ------
        RagnbError
            For weights that are none, and while a command is running.
        """
        if self.is_busy:
            raise RagnbError("a command is running; wait for it, or stop it")
        if weighing.problems:
            raise RagnbError(" ".join(weighing.problems.values()))
        words = ["run", str(weighing.scenario.path), *turned(weighing), *self._lang_of_runs]
        if dry_run:
            words.append("--dry-run")
        self.command = Command(words, folder=self.home, changed=self.changed)
        return self.command

    def stop(self) -> None:
        """Stop the command that runs; what it was asking is saved."""
        if self.command is not None:
            self.command.stop()

    def runs(self) -> list[RunRecord]:
        """Return the runs so far that left a report, the newest first, as `ragnb.report.run.history` does."""
        # A run that stopped early may have left only its notebook.
        return [run for run in history(self.home / "reports") if run["page"].suffix == ".html"]

    def compared(self, new: RunRecord, baseline: RunRecord) -> str:
        """Return the page that compares two runs question by question.

        Raises
        ------
        RagnbError
            As `ragnb.compare`.
        """
        view, *_ = compare_view(
            new["page"].parent, baseline["page"].parent, settings={"lang": self.lang}
        )
        return view.html()


def turned(weighing: Weighing) -> list[str]:
    """Return the options that give a run the weights of an editor; none where they are those of the file.

    Examples
    --------
    >>> from ragnb.example import samples_folder
    >>> from ragnb.widgets import WeightEditor
    >>> model = WeightEditor(samples_folder() / "scenarios" / "quickstart_weak.yaml").model
    >>> turned(model)
    []
    >>> model.set("doc_weights", "warranty-policy.pdf", 3)
    >>> turned(model)[1].split("=")[0]
    'doc_weights'
    """
    # The file itself: the scenario of an editor has more, such as the dimensions of a rubric with weight 0.
    scenario = load_scenario(str(weighing.scenario.path))
    in_editor = {METRIC: weighing.metric_weights, DOC: weighing.doc_weights}
    options: list[str] = []
    for field, weights in in_editor.items():
        in_file = dict(getattr(scenario, field))
        wanted = dict(in_file)
        # A document whose row was removed counts 1 again; a metric without a row keeps what the file says.
        if field == DOC:
            wanted = {name: weight for name, weight in in_file.items() if name in weights}
        for name, weight in weights.items():
            # A weight that was not turned stays as the file has it, named or not.
            if weight != weighing.start(field, name):
                wanted[name] = weight
        if wanted != in_file:
            options += ["-p", f"{field}={flow(wanted)}"]
    return options
