"""All runs below a folder of reports as one page: what the latest of each scenario says, and those before it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from ragnb import markup, texts
from ragnb.files import write_whole
from ragnb.markup import TONES, Column, Safe, element
from ragnb.report.run import Made
from ragnb.texts.errors import translated

_TONES = {"fail": "bad", "undecided": "watch", "no_data": "none", "pass": "good", "no_gates": "none"}
_TONES |= {"stopped": "none"}
"""The outcomes of a run, the worst that its gates can say first."""
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
        run: Run = dict.fromkeys((*_TOTAL, "change")) | {"scenario": before.get("scenario", folder.parent.name)}
        run |= {"page": folder / "report.ipynb", "at": at, "outcome": "stopped", "verdict": ""}
        with suppress(OSError, ValueError, KeyError, TypeError):
            run |= {} if folder.suffix else _read(folder)
        if run["value"] is not None:
            run["change"] = _change(run, before) if before else "first"
            scored[folder.parent] = run
        runs.append(run)
    return runs[::-1]


def _read(folder: Path) -> Run:
    """Return what a run that finished says of itself."""
    record, gates = (json.loads((folder / f"{name}.json").read_text("utf-8")) for name in ("run", "gates"))
    # Complete input and advisory thresholds decide nothing.
    silent = [row["role"] == "completeness" or row["reason"] == "advisory" for row in gates["gates"]]
    asked = [row for row, quiet in zip(gates["gates"], silent, strict=True) if row["blocks"] or not quiet]
    said = {row["outcome"] for row in asked if row["blocks"] or row["outcome"] != "no_data"}
    run = {key: record[key] for key in ("scenario", "verdict", "weights")} | {"page": folder / "report.html"}
    run["outcome"] = next((one for one in _TONES if one in said), "no_data" if asked else "no_gates")
    return run | {key: record["overall"][key] for key in _TOTAL}


def _change(run: Run, before: Run) -> str:
    if any(run[key] != before[key] for key in ("weights", "range")):
        return "other_weights"
    change = round(run["value"] - before["value"], 3)
    return f"{'+' * (change > 0)}{markup.number(change)}"


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
    say, runs = texts.load(lang), history(Path(out))
    latest = list({run["page"].parent.parent: run for run in reversed(runs)}.values())
    counts = {key: sum(run["outcome"] == key for run in latest) for key in _TONES}
    words = [say("index.counted", n=n, word=say(f"index.{key}")) for key, n in counts.items() if n]
    head, note = say("index.latest", counts=say("index.comma").join(words) or markup.MISSING), say("index.note")
    parts, lines = [markup.heading(head, level=1)], [f"# {markup.md_cell(head)}"]
    if errors := [f"{one.scenario.stem}: {translated(one.error, lang)}" for one in made if one.result is None]:
        parts += [element("p", markup.badge("none", say("index.no_report"))), markup.bullets(errors)]
        lines += [say("index.no_report"), "\n".join(f"- {markup.md_cell(error)}" for error in errors)]
    tables = {"latest_of_each": sorted(latest, key=lambda run: str(run["scenario"])), "history": runs[:_MOST]}
    for key, some in tables.items() if runs else ():
        title = say(f"index.{key}", n=len(runs), shown=len(some))
        kinds: dict[str, Any] = {"value": "interval", "n": "count"}
        names = ("scenario", "at", "verdict", "value", "drawn", "n", "change")
        columns = {name: Column(say(f"index.{name}"), kinds.get(name, "text")) for name in names}
        rows = zip(*(_row(run, say, sentence=key == "latest_of_each") for run in some), strict=True)
        plain, live = (pd.DataFrame(list(cells), dtype=object) for cells in rows)
        parts += [markup.heading(title, anchor=key), markup.html_table(live, columns=columns, lang=lang)]
        del columns["drawn"]
        lines += [f"## {title}", markup.markdown_table(plain, columns=columns)]
    write_whole(Path(out) / "index.md", "\n\n".join([*lines, note]) + "\n")
    page = markup.page(say("index.title"), markup.join([*parts, element("p", note, class_="rg-note")]), lang=lang)
    return write_whole(Path(out) / "index.html", page)


def _row(run: Run, say: Any, *, sentence: bool) -> tuple[Run, Run]:
    """Return the cells of a run as Markdown has them, and as the page does."""
    tone, said = _TONES[run["outcome"]], run["verdict"] if sentence else ""
    word, name, change = say(f"index.{run['outcome']}"), run["scenario"], run["change"]
    plain = run | {"change": say(f"index.{change}") if str(change).isidentifier() and change else change}
    live = plain | {"verdict": markup.join([markup.badge(tone, word), element("div", said, class_="rg-note")])}
    live |= {"scenario": element("a", name, href="/".join(run["page"].parts[-3:])), "drawn": Safe("")}
    if run["range"]:
        ends = run["value"], run["low"], run["high"]
        live["drawn"] = markup.thin_svg(*ends, span=tuple(run["range"]), label=f"{name} {run['at']}")
    return plain | {"verdict": " · ".join(filter(None, [f"{TONES[tone]} {word}", said]))}, live
