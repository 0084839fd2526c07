"""`ragnb report`: a page for each scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragnb import texts
from ragnb.cli.parameters import FILE, options, overrides
from ragnb.cli.terminal import BAD_INPUT, PASSED, complain, note, plain, speaking
from ragnb.errors import RagnbError

if TYPE_CHECKING:
    from ragnb.report import Made


@click.command("report")
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, required=True, type=FILE)
@options("report")
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
    click.echo(f"{plain(made.scenario.stem)}: {plain(made.result.verdict)}")
    click.echo(f"  HTML: {made.result.html}")
    if made.result.blocked:
        click.echo(f"  {texts.load(made.result.lang)('cli.blocked')}")
