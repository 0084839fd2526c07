"""Several scenarios at once: a process each, as many as there are cores, and one page that compares the runs.

Papermill changes the working directory while it reads and writes, so that runs in threads would meet.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

from ragnb import markup, texts
from ragnb.errors import RagnbError, worded
from ragnb.files import write_whole
from ragnb.markup import MISSING, Column, Safe, element, join
from ragnb.report.run import Overrides, ReportResult, report
from ragnb.texts.errors import translated


@dataclass(frozen=True)
class Made:
    """What became of one scenario of a batch: its result, or why there is none."""

    scenario: Path
    result: ReportResult | None = None
    error: str = ""


def reports(
    scenarios: Sequence[str | os.PathLike[str]], *, out: str | os.PathLike[str] | None = None,
    overrides: Overrides | None = None, jobs: int | None = None,
) -> Iterator[Made]:  # fmt: skip
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
    most = min(jobs or os.cpu_count() or 1, len(paths))
    if most <= 1:
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


def index(made: Sequence[Made], out: str | os.PathLike[str], *, lang: str = "en") -> Path:
    """Write the page that compares the runs of a batch, and the same as Markdown.

    Parameters
    ----------
    made : sequence of Made
        In the order in which the page names them.
    out : path
        The folder of the reports: ``index.html`` and ``index.md`` are written there.
    lang : {"en", "zh"}

    Returns
    -------
    Path
        The page.
    """
    folder, say = Path(out), texts.load(lang)
    rows = zip(*(_row(one, folder, lang) for one in made), strict=True)
    plain, live = (pd.DataFrame(list(some), dtype=object) for some in rows)
    columns = {name: Column(say(f"index.{name}")) for name in ("run", "verdict", "gates", "overall")}
    drawn = {"drawn": Column(say("column.on_scale"))}
    table = markup.html_table(live, columns=columns | drawn, lang=lang)
    title, note = say("index.title", n=len(made)), say("index.note")
    body = join([markup.heading(title, level=1), element("p", note, class_="rg-note"), table])
    text = f"# {title}\n\n{markup.markdown_table(plain, columns=columns)}\n\n{note}\n"
    write_whole(folder / "index.md", text)
    return write_whole(folder / "index.html", markup.page(title, body, lang=lang))


def _row(one: Made, folder: Path, lang: str) -> tuple[dict[str, object], dict[str, object]]:
    """Return a row of the index as Markdown has it, and as the page does."""
    name, say = one.scenario.stem, texts.load(lang)
    if one.result is None:
        failed: dict[str, object] = {"run": name, "verdict": translated(one.error, lang), "drawn": ""}
        failed |= dict.fromkeys(("gates", "overall"), MISSING)
        return failed, failed | {"gates": markup.badge("none", say("index.no_run"))}
    record = json.loads((one.result.folder / "run.json").read_text(encoding="utf-8"))
    gates = json.loads((one.result.folder / "gates.json").read_text(encoding="utf-8"))["gates"]
    total, blocks = record["overall"], sum(bool(gate["blocks"]) for gate in gates)
    told = say("index.blocked" if blocks else "index.passed", n=blocks or len(gates), all=len(gates))
    link = os.path.relpath(one.result.html, folder).replace(os.sep, "/")
    ends = total["value"], total["low"], total["high"]
    counted = say("index.counted", n=total["n"], clusters=total["n_clusters"]) if total["n"] else ""
    overall = f"{markup.with_interval(*ends)} {counted}".strip()
    plain: dict[str, object] = {"run": name, "verdict": record["verdict"], "gates": told, "overall": overall}
    drawn = Safe("")
    if total["value"] is not None and total["range"] is not None:
        drawn = markup.thin_svg(*ends, span=tuple(total["range"]), label=name)
    badge = markup.badge("bad" if blocks else "good", told)
    return plain, plain | {"run": element("a", name, href=link), "gates": badge, "drawn": drawn}
