"""All runs below a folder of reports as one page: what the latest of each scenario says, and those before it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from ragnb import markup, texts
from ragnb.files import write_whole
from ragnb.markup import TONES, Column, Safe, element
from ragnb.report.run import Made
from ragnb.texts.errors import translated

_TONES = {"fail": "bad", "undecided": "watch", "no_data": "none", "pass": "good", "stopped": "none"}
"""The outcomes of a run, the worst that its gates can say first."""
_NAME = re.compile(r"(\d{8}T\d{6}Z)-[0-9a-f]{8}-?(\d*)(?:\.failed)?")
_MOST = 200
Run = dict[str, Any]


def history(out: Path) -> list[Run]:
    """Return all runs below a folder of reports, the newest first.

    Returns
    -------
    list of dict
        ``scenario, folder, at, outcome, record, total, change``. The outcome is the worst of its gates: ``fail,
        undecided, no_data, pass``; a run that left no results is ``stopped``. `record` is
        its ``run.json``, `total` the weighted score there and `change` its difference from the run before, a
        word where there is none to compare with; all empty where there is nothing.
    """
    runs: list[Run] = []
    last: dict[str, Run] = {}
    names: dict[str, str] = {}
    found = [(name, path) for path in out.glob("*/*") if (name := _NAME.fullmatch(path.name))]
    for name, folder in sorted(found, key=lambda one: (one[0][1], int(one[0][2] or 1), one[1])):
        run, scenario = _read(folder), folder.parent.name
        run["at"] = f"{datetime.strptime(name[1], '%Y%m%dT%H%M%SZ'):%Y-%m-%d %H:%M} UTC"
        names[scenario] = run["record"].get("scenario") or names.get(scenario, scenario)
        if run["total"]:
            before = last.get(scenario)
            run["change"] = _change(run, before) if before else "first"
            last[scenario] = run
        runs.append(run)
    return [run | {"scenario": names[run["folder"].parent.name]} for run in reversed(runs)]


def _read(folder: Path) -> Run:
    run: Run = {"folder": folder, "outcome": "stopped", "record": {}, "total": {}, "change": ""}
    try:
        record, gates = (json.loads((folder / f"{name}.json").read_text("utf-8")) for name in ("run", "gates"))
        # Complete input, and a metric that may be missing, say nothing of the system.
        asked = [row for row in gates["gates"] if row["blocks"] or row["role"] != "completeness"]
        said = {row["outcome"] for row in asked if row["blocks"] or row["outcome"] != "no_data"}
        total = record["overall"] if record["overall"]["value"] is not None else {}
    except (OSError, ValueError, KeyError, TypeError):
        return run
    outcome = next((one for one in _TONES if one in said), "no_data")
    return run if folder.suffix else run | {"outcome": outcome, "record": record, "total": total}


def _change(run: Run, before: Run) -> str:
    alike = [(one["record"].get("weights"), one["total"].get("range")) for one in (run, before)]
    change = round(run["total"]["value"] - before["total"]["value"], 3)
    return f"{'+' * (change > 0)}{markup.number(change)}" if alike[0] == alike[1] else "other_weights"


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
    latest = list({run["folder"].parent: run for run in reversed(runs)}.values())
    counts = {key: sum(run["outcome"] == key for run in latest) for key in _TONES}
    words = [say("index.counted", n=n, word=say(f"index.{key}")) for key, n in counts.items() if n]
    head = say("index.latest", counts=say("index.comma").join(words) or markup.MISSING)
    parts, lines = [markup.heading(head, level=1)], [f"# {markup.md_cell(head)}"]
    if errors := [f"{one.scenario.stem}: {translated(one.error, lang)}" for one in made if one.result is None]:
        parts += [element("p", markup.badge("none", say("index.no_report"))), markup.bullets(errors)]
        lines += [say("index.no_report"), "\n".join(f"- {markup.md_cell(error)}" for error in errors)]
    tables = {"latest_of_each": sorted(latest, key=lambda run: run["scenario"]), "history": runs[:_MOST]}
    for key, some in tables.items() if runs else ():
        title = say(f"index.{key}", n=len(runs), shown=len(some))
        parts, lines = [*parts, markup.heading(title, anchor=key)], [*lines, f"## {title}"]
        rows = zip(*(_row(run, say, sentence=some is not tables["history"]) for run in some), strict=True)
        plain, live = (pd.DataFrame(list(cells), dtype=object) for cells in rows)
        columns = {str(key): Column(say(f"index.{key}")) for key in live}
        parts.append(markup.html_table(live, columns=columns, lang=lang))
        lines.append(markup.markdown_table(plain, columns={k: v for k, v in columns.items() if k in plain}))
    note = say("index.note")
    write_whole(Path(out) / "index.md", "\n\n".join([*lines, note]) + "\n")
    page = markup.page(say("index.title"), markup.join([*parts, element("p", note, class_="rg-note")]), lang=lang)
    return write_whole(Path(out) / "index.html", page)


def _row(run: Run, say: Any, *, sentence: bool) -> tuple[dict[str, object], dict[str, object]]:
    """Return the cells of a run as Markdown has them, and as the page does."""
    tone, total, change = _TONES[run["outcome"]], run["total"], run["change"] or markup.MISSING
    word, verdict = say(f"index.{run['outcome']}"), run["record"].get("verdict", "") if sentence else ""
    ends: Any = [total.get(key) for key in ("value", "low", "high")]
    score, n = markup.with_interval(*ends), ""
    if total:
        n = say("index.n", n=total["n"], clusters=total["n_clusters"])
    name, page = run["scenario"], run["folder"] / ("report.html" if run["record"] else "report.ipynb")
    start: dict[str, object] = {"scenario": name, "date": element("span", run["at"], class_="rg-name")}
    end = {"change": say(f"index.{change}") if change.isidentifier() else change}
    said = " · ".join(filter(None, [f"{TONES[tone]} {word}", verdict]))
    plain = {"verdict": said, "overall": f"{score} {n}".strip()}
    live = {"verdict": _lines(markup.badge(tone, word), verdict), "overall": _lines(score, n), "drawn": Safe("")}
    if total.get("range"):
        live["drawn"] = markup.thin_svg(*ends, span=tuple(total["range"]), label=f"{name} {run['at']}")
    if page.is_file():
        live["scenario"] = element("a", name, href="/".join(page.parts[-3:]))
    return start | {"date": run["at"]} | plain | end, start | live | end


def _lines(*lines: str) -> Safe:
    return markup.join(element("div", line, class_="rg-note" if n else None) for n, line in enumerate(lines))
