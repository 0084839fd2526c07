"""`ragnb report`: a page for each scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragnb import texts
from ragnb.cli.parameters import FILE, PARAM, overrides
from ragnb.cli.terminal import BAD_INPUT, PASSED, complain, note, plain
from ragnb.errors import RagnbError

if TYPE_CHECKING:
    from ragnb.report import ReportResult

_HELP = """Run the report notebook for each SCENARIO and say where the HTML lies.

SCENARIO is a scenario (.yaml) or a file of results.

Each run gets a new folder: OUT/<scenario>/<UTC time>-<hash of the inputs>/. It holds the page
(report.html, opens offline), the executed notebook, report.md, the tables and run.json. Earlier
runs are not touched; latest.txt beside them names the newest.

\b
Examples
  ragnb report scenarios/quickstart.yaml
  ragnb report a.yaml b.yaml --out reports
  ragnb report my_ragas.csv
  ragnb report a.yaml -p level=0.9 -p "metric_weights={faithfulness: 2}"

Exit code: 0 when every report was made, blocked by a gate or not; 2 when an input was refused or
a cell failed. The other scenarios still run.
"""


@click.command("report", help=_HELP)
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, required=True, type=FILE)
@PARAM
@click.option("--out", type=FILE, default=Path("reports"), show_default=True, help="The folder of all reports.")
def report_command(scenarios: Sequence[Path], parameters: Sequence[str], out: Path) -> int:
    """Run the report notebook for each scenario."""
    from ragnb.report import report

    settings = overrides(parameters)
    code = PASSED
    for scenario in scenarios:
        try:
            _tell(scenario, report(scenario, out=out, overrides=settings))
        except (RagnbError, OSError) as error:
            complain(error, scenario if len(scenarios) > 1 else None)
            code = BAD_INPUT
    return code


def _tell(scenario: Path, result: ReportResult) -> None:
    for text in result.warnings:
        note(text)
    click.echo(f"{plain(scenario.stem)}: {plain(result.verdict)}")
    click.echo(f"  HTML: {result.html}")
    if result.blocked:
        click.echo(f"  {texts.load(result.lang)('cli.blocked')}")
