"""The runs so far: a table of them, and the page that lists them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from ragnb import markup, texts
from ragnb.files import write_whole
from ragnb.markup.blocks import Block, Cell, Estimate, Link, Mark, Section, Small, Table, Text
from ragnb.markup.rendering import render_markdown, render_page
from ragnb.report.run import Made
from ragnb.sheet.formatter import GATE_TONES
from ragnb.texts.errors import translated

# The outcomes of a run, the worst that its gates can say first.
TONES = GATE_TONES | {"no_gates": "none", "stopped": "none"}
_NAME = re.compile(r"(\d{8}T\d{6}Z)-[0-9a-f]{8}-?(\d*)(?:\.failed)?")
_TOTAL = ("value", "low", "high", "n", "range")
_MOST = 200  # runs that the index lists
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
    folders = []
    for path in out.glob("*/*"):
        name = _NAME.fullmatch(path.name)
        if name:
            # Two runs within a second are told by a number behind the second one's name.
            folders.append((name[1], int(name[2] or 1), path))
    runs: list[Run] = []
    scored: dict[Path, Run] = {}  # the last run with a total, by the folder of its scenario
    for stamp, _, folder in sorted(folders):
        before = scored.get(folder.parent, {})
        run: Run = dict.fromkeys(_TOTAL)
        run["scenario"] = before.get("scenario", folder.parent.name)
        run["change"] = ""
        run["page"] = folder / "report.ipynb"
        run["at"] = f"{datetime.strptime(stamp, '%Y%m%dT%H%M%SZ'):%Y-%m-%d %H:%M} UTC"
        run["outcome"] = "stopped"
        run["verdict"] = ""
        # A folder that is marked as failed has a suffix; one whose record cannot be read stays "stopped".
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
    # Of ratings alone the record says it; anything else has gates.
    if "outcome" not in record:
        gates = json.loads((folder / "gates.json").read_text("utf-8"))["gates"]
        record["outcome"] = _worst_outcome(gates)
    run = {key: record[key] for key in ("scenario", "verdict", "weights", "outcome")}
    run["page"] = folder / "report.html"
    for key in _TOTAL:
        run[key] = record["overall"][key]
    return run


def _worst_outcome(gates: Iterable[Mapping[str, Any]]) -> str:
    """Return the worst outcome of the gates that decide; ``no_gates`` where none does."""
    deciding = []
    for gate in gates:
        # Complete input and advisory thresholds decide nothing.
        is_silent = gate["role"] == "completeness" or gate["reason"] == "advisory"
        if gate["blocks"] or not is_silent:
            deciding.append(gate)
    if not deciding:
        return "no_gates"
    outcomes = {
        gate["outcome"] for gate in deciding if gate["blocks"] or gate["outcome"] != "no_data"
    }
    return next((outcome for outcome in TONES if outcome in outcomes), "no_data")


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
    # `runs` begins with the newest: backwards, the newest of each scenario's folder is what stays.
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
    change = run["change"]
    if change.isidentifier():  # "first" or "other_weights", not a number
        change = say(f"index.{change}")
    verdict: tuple[Cell, ...] = (Mark(TONES[run["outcome"]], say(f"index.{run['outcome']}")),)
    if sentence and run["verdict"]:
        verdict = (*verdict, Small(run["verdict"]))
    score: Cell = ""
    if run["value"] is not None:
        value = markup.number(run["value"])
        ends = markup.ends(run["low"], run["high"])
        score = (value, Small(ends))
        span = run["range"]
        if span:
            text = f"{run['scenario']} {run['at']}: {value} {ends}"
            drawn = Estimate("", "", run["value"], run["low"], run["high"], tuple(span), text=text)
            score = (*score, drawn)
    # <scenario>/<run>/<page>, as seen from the folder where the index lies.
    link = Link(run["scenario"], "/".join(run["page"].parts[-3:]))
    n = "" if run["n"] is None else markup.count(run["n"])
    return (link, run["at"], verdict, score, n, change)
