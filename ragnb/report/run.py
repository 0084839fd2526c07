"""From scenarios to their folders: check everything, run the notebook aside, and list all runs on a page.

Several scenarios have a process each: papermill changes the working directory while it reads and writes, so that
runs in threads would meet.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from ragnb import markup, texts
from ragnb.errors import RagnbError, worded
from ragnb.example import samples_folder
from ragnb.files import digest, json_text, matched, short_hash, slug, write_whole
from ragnb.inputs import Inputs, scenario_of, stage_tables, with_cases
from ragnb.inputs.stages import HOME, relative
from ragnb.markup import one_line
from ragnb.markup.blocks import (
    Block,
    Cell,
    Estimate,
    Link,
    Mark,
    Picture,
    Section,
    Small,
    Table,
    Text,
)
from ragnb.markup.rendering import render_markdown, render_page
from ragnb.readers import to_csv_text
from ragnb.report.kernel import execute, tidy
from ragnb.scenario import Scenario
from ragnb.scenario.fields import SOURCES
from ragnb.sheet.assessment import run_record
from ragnb.sheet.formatter import GATE_TONES
from ragnb.sheet.ratings import calibrated
from ragnb.sheet.sections.judge import row_name
from ragnb.texts.errors import translated

Overrides = Mapping[str, Any]
INPUTS = ("scores", "traces", "gold", "cases", "ratings")


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
    except BaseException as error:
        if (message := _failure(error, folder.failed() / "report.ipynb")) is None:
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
    if (most := min(jobs or os.cpu_count() or 1, len(paths))) <= 1:
        yield from (_made(path, out, overrides, len(paths) == 1) for path in paths)
        return
    with ProcessPoolExecutor(most, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(_made, path, out, overrides, False): path for path in paths}
        try:
            for done in as_completed(running):
                failed = done.exception()
                died = Made(running[done], error=f"the process of the run died ({failed})")
                yield died if failed is not None else done.result()
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
    # Relative to the run's folder, so that the executed notebook runs again where it lies.
    files = {
        role: relative(getattr(settings, role), here) for role in INPUTS if overrides.get(role)
    }
    used = overrides | (files if settings.path is None else {})
    if settings.baseline is None and (previous := folder.previous()) is not None:
        used = used | {
            "baseline": relative(previous, settings.path.parent if settings.path else here)
        }
    role = "ratings" if _of_ratings(settings) else "scenario"
    parameters = {role: relative(source, here), "out": ".", "overrides": used}
    env = {name: "" for profile in settings.llm_profiles.values() for name in profile.variables}
    env[HOME] = str(Path.cwd())
    executed = execute(
        notebook_path(settings), here / "report.ipynb", parameters, env=env, progress=progress
    )
    warned = tidy(executed)
    import nbformat

    write_whole(here / "report.ipynb", nbformat.writes(executed) + "\n")  # type: ignore[no-untyped-call]
    record = json.loads((here / "run.json").read_text(encoding="utf-8"))
    pairs = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in overrides.items()]
    command = shlex.join(
        ["ragnb", "report", source.name, *(word for pair in pairs for word in ("-p", pair))]
    )
    write_whole(here / "run.json", json_text(record | {"command": command}))
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
        if error.ename == "RagnbError":
            name = ""
        else:
            name = f"{error.ename}: "
        cells = json.loads(left.read_text(encoding="utf-8"))["cells"]
        failed = next(
            (str(cell["id"]) for cell in cells if "".join(cell["source"]) == error.source), "?"
        )
        return (
            f"the report notebook failed in cell {failed!r} (In [{error.exec_count}]): "
            f"{name}{one_line(error.evalue, 500)}; what ran until then: {_shown(left)}"
        )
    if isinstance(error, RuntimeError) and left.exists():
        return f"the kernel of the report died ({one_line(error, 200)}); what ran until then: {_shown(left)}"
    return None


def _shown(path: Path) -> str:
    """Return a path as it is reached from the working directory where it lies below it."""
    return str(path.relative_to(here) if path.is_relative_to(here := Path.cwd()) else path)


# Where a run is written: one folder a run, whole or marked as failed, never over an earlier one


def input_hash(scenario: Scenario) -> str:
    """Return eight hex digits of a hash over the settings and the bytes of every input file."""
    scenario = with_cases(scenario)
    files = {role: path for role in INPUTS if (path := getattr(scenario, role)) is not None}
    parts = [f"{role} {digest(matched(path))}" for role, path in files.items()]
    parts += [f"{found.stage} {digest([found.path])}" for found in stage_tables(scenario)]
    home = (scenario.path or next(iter(files.values()))).parent
    return short_hash("\n".join([scenario.snapshot_text(relative_to=home), *parts]))


class RunFolder(NamedTuple):
    """A folder that is being filled: hidden beside its final place until it is `done` or has `failed`."""

    path: Path
    final: Path

    @classmethod
    def make(cls, out: Path, scenario: Scenario) -> RunFolder:
        """Make the hidden folder ``out/<scenario>/.<UTC time>-<input hash>.partial``."""
        parent = out / slug(scenario.name)
        parent.mkdir(parents=True, exist_ok=True)
        if not parent.resolve().is_relative_to(out.resolve()):
            raise RagnbError(
                f"{str(parent)!r} is a link to a place outside {str(out)!r}; remove the link"
            )
        parent = parent.resolve()
        stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{input_hash(scenario)}"
        for again in count(1):
            name = stamp if again == 1 else f"{stamp}-{again}"
            path = parent / f".{name}.partial"
            final = parent / name
            if not final.exists() and not final.with_name(f"{name}.failed").exists():
                with suppress(FileExistsError):
                    path.mkdir()
                    break
        return cls(path, final)

    def previous(self) -> Path | None:
        """Return the folder of the last run of the scenario, None where none is left that holds all its rows."""
        with suppress(OSError, ValueError):
            folder = self.final.with_name(
                (self.final.parent / "latest.txt").read_text(encoding="utf-8").strip()
            )
            if all((folder / name).is_file() for name in ("scores.csv", "run.json")):
                return folder
            return None
        return None

    def done(self) -> Path:
        """Give the folder its name, and write that name into ``latest.txt`` beside it."""
        write_whole(self.final.parent / "latest.txt", f"{self.path.rename(self.final).name}\n")
        return self.final

    def failed(self) -> Path:
        """Mark the folder as that of a failed run; one without any file is removed."""
        marked = self.final.with_name(f"{self.final.name}.failed")
        if any(self.path.iterdir()):
            return self.path.rename(marked)
        self.path.rmdir()
        return marked


# A function of `ragnb.plots` and the frame of the card that it draws, in reading order.
_CHARTS = {
    "judge_human": "counts",
    "band_shares": "bands",
    "bias_by": "inflation",
    "reliability": "reliability",
    "bland_altman": "counts",
    "corrected_means": "corrected",
    "label_budget": "budget",
}
_TABLES = ("verdicts", "bands", "inflation", "recalibration", "labels_needed", "corrected")
_OUTCOMES = {"TRUST": "pass", "NOT PROVEN": "undecided", "REJECT": "fail"}


class Study(NamedTuple):
    """A judge's calibration from ratings alone.

    Attributes
    ----------
    scenario : Scenario
        The settings that were used, overrides included.
    card : CalibrationCard
    inputs : list of dict
        ``role, path, sha256, rows`` of the ratings.
    """

    scenario: Scenario
    card: Any
    inputs: list[dict[str, Any]]

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Write the page and the tables into a folder; each file appears whole or not at all.

        Returns
        -------
        dict of name to path
            ``report.html, report.md, calibration.json, run.json, scenario.snapshot.yaml``, and the tables of the
            card: ``verdicts.csv, agreement.csv, bands.csv, inflation.csv, recalibration.csv, labels_needed.csv,
            corrected.csv``.
        """
        card = self.card
        scenario = self.scenario
        overall = dict.fromkeys(("value", "low", "high", "range")) | {"n": card.footer["n"]}
        result = {
            "blocked": False,
            "verdict": card.reasons[0],
            "overall": overall,
            "judge": card.verdict,
        }
        written = {
            "report.html": card_page(card, title=scenario.title or scenario.name),
            "report.md": card.to_markdown(),
            "calibration.json": json_text(card.to_dict()),
            "scenario.snapshot.yaml": scenario.snapshot_text(relative_to=Path(folder)),
            "run.json": json_text(
                run_record(scenario, self.inputs, **result, outcome=_OUTCOMES[card.verdict])
            ),
            "agreement.csv": to_csv_text(card.table),
            **{f"{name}.csv": to_csv_text(getattr(card, name)) for name in _TABLES},
        }
        return {name: write_whole(Path(folder) / name, text) for name, text in written.items()}


def study(
    source: str | os.PathLike[str],
    *,
    settings: Mapping[str, Any] | None = None,
    judge: Any = None,
    human: Any = None,
    scale: Any = None,
    missing: Any = None,
    **asked: Any,
) -> Study:
    """Calibrate a judge from ratings alone.

    Parameters
    ----------
    source : path
        A table of ratings, or a scenario that names one (``ratings:``).
    settings : mapping, optional
        Fields of `Scenario`, such as ``lang``, ``level`` and ``labels_planned``.
    judge, human, missing
        As for `read_ratings`.
    scale : (low, high) or str, optional
        The lowest and the highest score, also as a text such as ``1 10``, which ``papermill -p`` can pass. By
        default the range of the scenario's metrics that the dimensions are, else what the ratings suggest.
    **asked
        As for `calibrate`: ``tolerance, target, delta, about, seed``.

    Raises
    ------
    RagnbError
        As `read_ratings` and `calibrate`; for a scenario that names no ratings.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = write_whole(folder / "r.csv", "judge,human\\n" + "4,5\\n2,2\\n1,4\\n" * 30)
    >>> result = study(folder / "r.csv", scale="1 5")
    >>> result.card.verdict, "report.html" in result.save(folder / "study")
    ('REJECT', True)
    """
    scenario = scenario_of(Path(source), settings or {}, "ratings")
    inputs = Inputs()
    if scenario.ratings is None:
        raise RagnbError(
            f"{source}: the scenario names no ratings; add one, such as 'ratings: my_ratings.csv'"
        )
    span = None if scale is None else _two_numbers(scale)
    inputs.read_rated(scenario, judge=judge, human=human, scale=span, missing=missing)
    named = [judge] if isinstance(judge, str) else judge or ()
    return Study(
        scenario,
        calibrated(scenario, inputs.ratings, judge=named, scale=span, **asked),
        inputs.files,
    )


def _two_numbers(scale: Any) -> tuple[float, float]:
    try:
        low, high = map(
            float,
            scale.strip("[]()").replace(",", " ").split() if isinstance(scale, str) else scale,
        )
    except (TypeError, ValueError):
        raise RagnbError(
            f"scale={scale!r} is not two numbers; write the lowest and highest: '1 10'"
        ) from None
    return low, high


def card_page(card: Any, *, title: str = "") -> str:
    """Return a card with its charts as a document that opens from a file, without network and without script."""
    from ragnb import plots

    say, (verdict, *numbers) = texts.load(card.lang), card.sections()
    rows = card.verdicts.to_dict("records")
    charts = []
    for place, row in enumerate(rows, 1):
        name = row_name(row) if len(rows) > 1 else say("sheet.charts")
        why: list[Block] = [Text(tuple(row["reasons"]), "list")] * (len(rows) > 1)
        one = card.only(judge=row["judge"], dimension=row["dimension"])
        some = [chart for chart, frame in _CHARTS.items() if not getattr(one, frame).empty]
        drawn = [Picture(plots.svg(getattr(plots, k)(one)), say(f"report.{k}")) for k in some]
        charts.append(Section(f"part-{place}", name, name, blocks=(*why, *drawn), lang=card.lang))
    return render_page(
        [verdict, *charts, *numbers], title=title or say("section.judge"), lang=card.lang
    )


# The outcomes of a run, the worst that its gates can say first.
TONES = GATE_TONES | {"no_gates": "none", "stopped": "none"}
_NAME = re.compile(r"(\d{8}T\d{6}Z)-[0-9a-f]{8}-?(\d*)(?:\.failed)?")
_TOTAL = ("value", "low", "high", "n", "range")
_MOST = 200
Run = dict[str, Any]


def history(out: Path) -> list[Run]:
    """Return all runs below a folder of reports, the newest first.

    Returns
    -------
    list of dict
        ``scenario, page, at, outcome, verdict``, of the total ``value, low, high, n, range``, and its ``change``
        from the run before, or ``first`` or ``other_weights`` where there is none; what is not there is None.
        The outcome is the worst of the gates: ``fail, undecided, no_data, pass``; ``no_gates`` without
        any, and ``stopped`` where a run left no results.
    """
    found = [(name, path) for path in out.glob("*/*") if (name := _NAME.fullmatch(path.name))]
    runs: list[Run] = []
    scored: dict[Path, Run] = {}
    for name, folder in sorted(found, key=lambda one: (one[0][1], int(one[0][2] or 1), one[1])):
        before = scored.get(folder.parent, {})
        at = f"{datetime.strptime(name[1], '%Y%m%dT%H%M%SZ'):%Y-%m-%d %H:%M} UTC"
        run: Run = dict.fromkeys(_TOTAL) | {
            "scenario": before.get("scenario", folder.parent.name),
            "change": "",
        }
        run |= {"page": folder / "report.ipynb", "at": at, "outcome": "stopped", "verdict": ""}
        with suppress(OSError, ValueError, KeyError, TypeError):
            if not folder.suffix:
                run |= _read(folder)
        if run["value"] is not None:
            run["change"] = "other_weights" if before else "first"
            if before and all(run[key] == before[key] for key in ("weights", "range")):
                run["change"] = markup.signed(run["value"] - before["value"])
            scored[folder.parent] = run
        runs.append(run)
    return runs[::-1]


def _read(folder: Path) -> Run:
    """Return what a run that finished says of itself; its outcome is the worst of the gates that decide."""
    record = json.loads((folder / "run.json").read_text("utf-8"))
    run = {key: record[key] for key in ("scenario", "verdict", "weights")} | {
        "page": folder / "report.html"
    }
    if "outcome" not in record:
        gates = json.loads((folder / "gates.json").read_text("utf-8"))["gates"]
        # Complete input and advisory thresholds decide nothing.
        silent = [row["role"] == "completeness" or row["reason"] == "advisory" for row in gates]
        asked = [
            row for row, quiet in zip(gates, silent, strict=True) if row["blocks"] or not quiet
        ]
        said = {row["outcome"] for row in asked if row["blocks"] or row["outcome"] != "no_data"}
        record["outcome"] = next(
            (one for one in TONES if one in said), "no_data" if asked else "no_gates"
        )
    return run | {"outcome": record["outcome"]} | {key: record["overall"][key] for key in _TOTAL}


def index(out: str | os.PathLike[str], *, made: Iterable[Made] = (), lang: str = "en") -> Path:
    """Write the page of all runs below a folder of reports, and the same as Markdown.

    Parameters
    ----------
    out : path
        The folder of the reports: ``index.html`` and ``index.md`` are written there, from the ``run.json`` and
        ``gates.json`` of every run in it, whichever command made it.
    made : iterable of Made
        What became of the scenarios that just ran: one without a report is named with the reason.
    lang : {"en", "zh"}

    Returns
    -------
    Path
        The page.
    """
    say = texts.load(lang)
    runs = history(Path(out))
    latest = list({run["page"].parent.parent: run for run in reversed(runs)}.values())
    counts = {key: sum(run["outcome"] == key for run in latest) for key in TONES}
    words = [say("index.counted", n=n, word=say(f"index.{key}")) for key, n in counts.items() if n]
    head = say("index.latest", counts=say("list.join").join(words) or markup.MISSING)
    errors = tuple(
        f"{one.scenario.stem}: {translated(one.error, lang)}" for one in made if one.result is None
    )
    blocks: list[Block] = []
    if errors:
        blocks = [Text((Mark("none", say("index.no_report")),)), Text(errors, "list")]
    blocks.append(Text((say("index.note"),), "note"))
    sections = [Section("now", say("index.title"), head, blocks=tuple(blocks), lang=lang)]
    tables = {
        "latest_of_each": sorted(latest, key=lambda run: str(run["scenario"])),
        "history": runs[:_MOST],
    }
    heads = tuple(say(f"index.{key}") for key in ("scenario", "at", "verdict", "value"))
    heads = (*heads, f">{say('index.n')}", f">{say('index.change')}")
    if runs:
        for key, some in tables.items():
            title = say(f"index.{key}", n=len(runs), shown=len(some))
            rows = tuple(_row(run, say, sentence=key == "latest_of_each") for run in some)
            sections.append(
                Section(key, title, title, blocks=(Table(heads, rows, cards=True),), lang=lang)
            )
    write_whole(Path(out) / "index.md", render_markdown(sections))
    return write_whole(
        Path(out) / "index.html", render_page(sections, title=say("index.title"), lang=lang)
    )


def _row(run: Run, say: Any, *, sentence: bool) -> tuple[Cell, ...]:
    """Return a run as a row."""
    if run["change"].isidentifier():
        change = say(f"index.{run['change']}")
    else:
        change = run["change"]
    if sentence and run["verdict"]:
        said = [Small(run["verdict"])]
    else:
        said = []
    verdict = (Mark(TONES[run["outcome"]], say(f"index.{run['outcome']}")), *said)
    score: Cell = ""
    if run["value"] is not None:
        value = markup.number(run["value"])
        ends = markup.ends(run["low"], run["high"])
        text = f"{run['scenario']} {run['at']}: {value} {ends}"
        span = run["range"]
        if span:
            drawn = [
                Estimate("", "", run["value"], run["low"], run["high"], tuple(span), text=text)
            ]
        else:
            drawn = []
        score = (value, Small(ends), *drawn)
    link = Link(run["scenario"], "/".join(run["page"].parts[-3:]))
    return (
        link,
        run["at"],
        verdict,
        score,
        "" if run["n"] is None else markup.count(run["n"]),
        change,
    )
