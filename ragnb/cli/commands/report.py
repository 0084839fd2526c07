"""``ragnb report``: run the notebooks of scenarios and write their pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import BAD_INPUT, PASSED, command
from ragnb.errors import RagnbError
from ragnb.markup import one_line

if TYPE_CHECKING:
    from ragnb.report import Made


@command("report")
def report_command(
    scenarios: Sequence[Path],
    parameters: Sequence[str],
    out: Path,
    jobs: int | None,
    lang: str | None,
) -> int:
    """Write the report of each SCENARIO.

    SCENARIO is a scenario (.yaml) or a file with results.

    Each run gets a new folder: OUT/<scenario>/<UTC time>-<hash of the inputs>/. It contains the page
    (report.html, opens offline), the executed notebook, report.md, the tables and run.json. Earlier
    runs are not changed; latest.txt next to them names the newest. Several scenarios run in parallel,
    and OUT/index.html shows all runs of all scenarios. For a scenario with ratings: alone the report is
    the calibration of the judge.

    \b
    Examples
      ragnb report scenarios/quickstart.yaml
      ragnb report scenarios/*.yaml --jobs 4
      ragnb report my_ragas.csv --lang zh
      ragnb report a.yaml -p level=0.9 -p "metric_weights={faithfulness: 2}"

    Exit code: 0 if every report was written, whether or not a gate blocks; 2 if an input is invalid or
    the notebook failed. The other scenarios still run.
    """
    from tqdm import tqdm

    from ragnb.report import index, reports

    are_many = len(scenarios) > 1
    runs = reports(scenarios, out=out, overrides=terminal.overrides(parameters, lang), jobs=jobs)
    bar = tqdm(
        runs,
        total=len(scenarios),
        desc="Reports",
        unit="report",
        # None: shown only on a terminal.
        disable=None if are_many else True,
        leave=False,
    )
    made_of = {}
    for made in bar:
        # The bar is taken off the screen meanwhile.
        with tqdm.external_write_mode():
            _print_result(made, are_many=are_many)
        made_of[made.scenario] = made
    if are_many or out.is_dir():
        # Runs come as they are finished; a scenario may be named twice.
        in_order = [made_of[path] for path in dict.fromkeys(scenarios)]
        click.echo(f"Index: {index(out, made=in_order, lang=terminal.speaking())}")
    if any(made.result is None for made in made_of.values()):
        return BAD_INPUT
    return PASSED


def _print_result(made: Made, *, are_many: bool) -> None:
    """Print what became of a scenario, by its name where there are several."""
    result = made.result
    if result is None:
        terminal.complain(RagnbError(made.error), made.scenario if are_many else None)
        return
    for text in result.warnings:
        terminal.note(f"{made.scenario.stem}: {text}" if are_many else text)
    click.echo(f"{one_line(made.scenario.stem)}: {one_line(result.verdict)}")
    click.echo(f"  HTML: {result.html}")
    if result.blocked:
        say = texts.load(result.lang)
        click.echo(f"  {say('cli.blocked')}")
