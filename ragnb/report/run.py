"""From scenarios to their folders: check everything, run the notebook aside, and list all runs on a page.

Several scenarios have a process each: papermill changes the working directory while it reads and writes, so that
runs in threads would meet.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from ragnb.errors import RagnbError, worded
from ragnb.example import samples_folder
from ragnb.files import json_text, write_whole
from ragnb.inputs import scenario_of
from ragnb.inputs.stages import HOME, relative
from ragnb.markup import one_line
from ragnb.report.folder import INPUTS, RunFolder
from ragnb.report.kernel import execute, tidy
from ragnb.scenario import Scenario
from ragnb.scenario.fields import SOURCES

Overrides = Mapping[str, Any]


class ReportResult(NamedTuple):
    """What a run left.

    Attributes
    ----------
    folder : Path
        Holds ``report.ipynb, report.html, report.md, scores.csv, means.csv, gates.json, gates.junit.xml,
        scenario.snapshot.yaml, run.json``; of ratings alone ``report.ipynb`` and what ``study.Study.save`` writes.
    blocked : bool
        Whether a gate blocks.
    verdict : str
        One sentence, in the language `lang`.
    lang : {"en", "zh"}
    warnings : tuple of str
        What ragnb warned of while the notebook ran.
    """

    folder: Path
    blocked: bool
    verdict: str
    lang: str = "en"
    warnings: tuple[str, ...] = ()

    @property
    def html(self) -> Path:
        """The page."""
        return self.folder / "report.html"


def report(
    scenario: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    overrides: Overrides | None = None,
    progress: bool = True,
) -> ReportResult:
    """Run the notebook of a scenario and leave its page, tables and record in a new folder.

    It is ``report.ipynb``, and ``calibration.ipynb`` for a scenario with ratings alone.

    Parameters
    ----------
    scenario : path
        A scenario's YAML file, or a file of results with no scenario at all: a table of scores, or, together
        with ``gold`` in `overrides`, traces.
    out : path, optional
        The folder of all reports; ``reports`` in the working directory by default. The run is written to
        ``<out>/<scenario's name>/<UTC time>-<hash of the inputs>/``, and that name to ``latest.txt`` beside it.
    overrides : mapping, optional
        Fields of `Scenario` for this run only. None or blank keeps the scenario's value; paths are relative to
        the scenario's folder, or without one to the working directory.
    progress : bool
        Show a bar while the cells run, where standard error is a terminal.

    Returns
    -------
    ReportResult
        Being blocked by a gate is a result, not an error.

    Raises
    ------
    RagnbError
        For settings or input that are not understood, before anything runs. When a cell fails: the message
        names it and the partial notebook, which stays in a folder marked ``.failed``.
    """
    settings, plain = check_parameters(scenario, overrides or {})
    folder = RunFolder.make(Path("reports" if out is None else out), settings)
    try:
        warned = _fill(folder, Path(scenario).absolute(), settings, plain, progress)
    except BaseException as error:  # Ctrl-C, too, leaves a folder that is marked as failed
        message = _failure(error, folder.failed() / "report.ipynb")
        if message is None:
            raise
    else:
        record = json.loads((folder.path / "run.json").read_text(encoding="utf-8"))
        return ReportResult(
            folder.done(), record["blocked"], record["verdict"], settings.lang, tuple(warned)
        )
    raise RagnbError(message)  # out of the handler: the failure's own traceback is in the notebook


class Made(NamedTuple):
    """What became of one scenario of a batch: its result, or why there is none."""

    scenario: Path
    result: ReportResult | None = None
    error: str = ""


def reports(
    scenarios: Sequence[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str] | None = None,
    overrides: Overrides | None = None,
    jobs: int | None = None,
) -> Iterator[Made]:
    """Run the report of each scenario, several at a time, and yield what became of each as it ends.

    Parameters
    ----------
    scenarios : sequence of path
        As `report` takes one.
    out, overrides
        As `report` takes them, for every run.
    jobs : int, optional
        How many kernels run at a time; by default as many as there are cores, or scenarios.

    Yields
    ------
    Made
        ``scenario, result, error``. A run that fails or is refused does not stop the others.
    """
    paths = [Path(scenario) for scenario in scenarios]
    n_processes = min(jobs or os.cpu_count() or 1, len(paths))
    if n_processes <= 1:
        is_alone = len(paths) == 1
        for path in paths:
            yield _made(path, out, overrides, progress=is_alone)
        return
    with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(_made, path, out, overrides, False): path for path in paths}
        try:
            for done in as_completed(running):
                # `_made` catches what a run raises; this is a process that ended, such as out of memory.
                died = done.exception()
                if died is None:
                    yield done.result()
                else:
                    error = f"the process of the run died ({died})"
                    yield Made(running[done], error=error)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _made(path: Path, out: Any, overrides: Overrides | None, progress: bool) -> Made:
    try:
        return Made(path, report(path, out=out, overrides=overrides, progress=progress))
    except (RagnbError, OSError) as error:
        return Made(path, error=worded(error))


def check_parameters(
    scenario: str | os.PathLike[str], overrides: Overrides
) -> tuple[Scenario, dict[str, Any]]:
    """Return the scenario as this run uses it, and the overrides as JSON holds them.

    Raises
    ------
    RagnbError
        For a name that is no field of a scenario, with the near ones, and a value that a scenario could not hold.
    """
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        plain = to_jsonable_python(dict(overrides))
    except PydanticSerializationError as error:
        raise RagnbError(f"an override cannot be passed on as JSON: {error}") from None
    return scenario_of(Path(scenario), plain), plain


def _fill(
    folder: RunFolder, source: Path, settings: Scenario, overrides: dict[str, Any], progress: bool
) -> list[str]:
    """Run the notebook in the folder and write the page; return the warnings."""
    here = folder.path
    # Paths are relative to the scenario's folder; without a scenario to the run's, so that the executed notebook
    # runs again where it lies.
    used = dict(overrides)
    if settings.path is None:
        for role in INPUTS:
            if overrides.get(role):
                used[role] = relative(getattr(settings, role), here)
    previous = folder.previous() if settings.baseline is None else None
    if previous is not None:
        used["baseline"] = relative(previous, settings.path.parent if settings.path else here)
    parameter = "ratings" if _of_ratings(settings) else "scenario"
    parameters = {parameter: relative(source, here), "out": ".", "overrides": used}
    # Keys of models are hidden from the kernel, which has no use for them.
    env = {name: "" for profile in settings.llm_profiles.values() for name in profile.variables}
    env[HOME] = str(Path.cwd())
    executed = execute(
        notebook_path(settings), here / "report.ipynb", parameters, env=env, progress=progress
    )
    warned = tidy(executed)
    import nbformat

    write_whole(here / "report.ipynb", nbformat.writes(executed) + "\n")  # type: ignore[no-untyped-call]
    record = json.loads((here / "run.json").read_text(encoding="utf-8"))
    # The notebook wrote the record as `Assessment.save` does; what was called is known only here.
    words = ["ragnb", "report", source.name]
    for key, value in overrides.items():
        words += ["-p", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    write_whole(here / "run.json", json_text(record | {"command": shlex.join(words)}))
    return warned


def _of_ratings(scenario: Scenario) -> bool:
    """Whether a scenario has ratings and nothing to assess."""
    return [role for role in SOURCES if getattr(scenario, role) is not None] == ["ratings"]


def notebook_path(scenario: Scenario) -> Path:
    """Return the notebook that reports a scenario: of ratings alone it is the calibration's."""
    if _of_ratings(scenario):
        name = "calibration.ipynb"
    else:
        name = "report.ipynb"
    return samples_folder() / "notebooks" / name


def _failure(error: BaseException, left: Path) -> str | None:
    """Word what went wrong in the kernel; None for what is not a failure of the notebook."""
    from papermill.exceptions import PapermillExecutionError

    if isinstance(error, PapermillExecutionError):
        # A refusal of ragnb is worded for the reader; of any other error its kind tells more than its text.
        name = "" if error.ename == "RagnbError" else f"{error.ename}: "
        cells = json.loads(left.read_text(encoding="utf-8"))["cells"]
        ids = [str(cell["id"]) for cell in cells if "".join(cell["source"]) == error.source]
        failed = ids[0] if ids else "?"
        return (
            f"the report notebook failed in cell {failed!r} (In [{error.exec_count}]): "
            f"{name}{one_line(error.evalue, 500)}; what ran until then: {_shown(left)}"
        )
    if isinstance(error, RuntimeError) and left.exists():
        return f"the kernel of the report died ({one_line(error, 200)}); what ran until then: {_shown(left)}"
    return None


def _shown(path: Path) -> str:
    """Return a path as it is reached from the working directory where it lies below it."""
    here = Path.cwd()
    if path.is_relative_to(here):
        return str(path.relative_to(here))
    return str(path)
