"""`ragnb report` and `ragnb check`: scenarios as pages, and a run held against its gates as an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli.parameters import command, overrides
from ragnb.cli.terminal import BAD_INPUT, BLOCKED, PASSED, complain, note, speaking, text_table, write_files
from ragnb.errors import RagnbError
from ragnb.markup import count, one_line, percent

if TYPE_CHECKING:
    from ragnb.assessment import Assessment
    from ragnb.report import Made


@command("report")
def report_command(
    scenarios: Sequence[Path], parameters: Sequence[str], out: Path, jobs: int | None, lang: str | None
) -> int:
    """Run the report notebook for each SCENARIO and say where the HTML lies.

    SCENARIO is a scenario (.yaml) or a file of results.

    Each run gets a new folder: OUT/<scenario>/<UTC time>-<hash of the inputs>/. It holds the page
    (report.html, opens offline), the executed notebook, report.md, the tables and run.json. Earlier
    runs are not touched; latest.txt beside them names the newest. Several scenarios run at the same
    time, and OUT/index.html compares them.

    \b
    Examples
      ragnb report scenarios/quickstart.yaml
      ragnb report scenarios/*.yaml --jobs 4
      ragnb report my_ragas.csv --lang zh
      ragnb report a.yaml -p level=0.9 -p "metric_weights={faithfulness: 2}"

    Exit code: 0 when every report was made, blocked by a gate or not; 2 when an input was refused or
    a cell failed. The other scenarios still run.
    """
    from tqdm import tqdm

    from ragnb.report import index, reports

    settings, many = overrides(parameters, lang), len(scenarios) > 1
    made_of = {}
    bar = tqdm(total=len(scenarios), desc="Reports", unit="report", disable=None if many else True, leave=False)
    with bar:
        for made in reports(scenarios, out=out, overrides=settings, jobs=jobs):
            with bar.external_write_mode():
                _tell(made, many)
            bar.update()
            made_of[made.scenario] = made
    if many:
        in_order = [made_of[path] for path in dict.fromkeys(scenarios)]
        click.echo(f"Index: {index(in_order, out, lang=speaking())}")
    return BAD_INPUT if any(made.result is None for made in made_of.values()) else PASSED


def _tell(made: Made, many: bool) -> None:
    if made.result is None:
        return complain(RagnbError(made.error), made.scenario if many else None)
    for text in made.result.warnings:
        note(f"{made.scenario.stem}: {text}" if many else text)
    click.echo(f"{one_line(made.scenario.stem)}: {one_line(made.result.verdict)}")
    click.echo(f"  HTML: {made.result.html}")
    if made.result.blocked:
        click.echo(f"  {texts.load(made.result.lang)('cli.blocked')}")


@command("check")
def check_command(source: Path | None, parameters: Sequence[str], lang: str | None, **asked: Path | None) -> int:
    """Hold a run against its gates, without a kernel.

    SOURCE is a scenario (.yaml) or any results file. Without one, name traces and gold, or scores.
    Prints the verdict, the gates and the notes.

    \b
    Examples
      ragnb check scenarios/quickstart.yaml
      ragnb check my_ragas.csv
      ragnb check --gold gold.json --traces traces.jsonl --markdown gates.md --junit gates.xml

    Exit code: 0 passed, 1 blocked by a gate, 2 bad or incomplete input.
    """
    from ragnb.assessment import assess
    from ragnb.diagnostics import gates_json, gates_junit
    from ragnb.scenario import Scenario

    # As typed, these are relative to the working directory; a scenario would take them from its own folder.
    files = {role: asked[role] for role in ("gold", "traces", "scores")}
    given: dict[str, Any] = {role: path.absolute() for role, path in files.items() if path is not None}
    if source is None and not given:
        raise RagnbError("nothing to check; name a scenario, a results file, --traces with --gold, or --scores")
    settings = overrides(parameters, lang)
    sheet = assess(Scenario(**given), **settings) if source is None else assess(source, **given, **settings)
    click.echo("\n".join(_sheet_lines(sheet)))
    write_files(
        (asked["markdown"], sheet.to_markdown),
        (asked["json_file"], lambda: gates_json(sheet.gates, notes=sheet.notes)),
        (asked["junit"], lambda: gates_junit(sheet.gates, name=sheet.scenario.name, lang=sheet.scenario.lang)),
    )
    return BAD_INPUT if sheet.incomplete else BLOCKED if sheet.blocked else PASSED


def _sheet_lines(sheet: Assessment) -> Iterator[str]:
    """Yield a sheet in lines: the verdict, the gates, the notes."""
    from ragnb.assessment.front import said
    from ragnb.assessment.parts import Writer
    from ragnb.assessment.tables import gate_rows
    from ragnb.diagnostics import gate_mark

    w = Writer(sheet, linked=False)
    yield one_line(sheet.verdict)
    if len(w.gates):
        heads = ("gate", "asks", "mean", "n", "outcome", "p_flip", "more")
        rows = [["", *(w.say(f"column.{name}", level=w.level) for name in heads)]]
        for gate, told in zip(w.gates.to_dict("records"), gate_rows(w), strict=True):
            seen = [told["seen"], count(told["n"]), told["outcome"], percent(told["p_flip"]), told["more"]]
            rows.append([gate_mark(gate), str(gate["gate"]), told["asks"], *seen])
        yield ""
        yield from text_table(rows)
    if len(sheet.notes):
        yield ""
        yield from (f"- {one_line(text)}" for text in said(w))
