"""``ragnb plan``: how many questions or labels a decision needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import PASSED, command
from ragnb.files import json_text
from ragnb.markup import count, is_missing, number


@command("plan")
def plan_command(
    kind: Any,
    pilot: str | None,
    baseline: str | None,
    parameters: tuple[str, ...],
    json_file: Path | None,
    lang: str,
    **assumed: Any,
) -> int:
    """Plan the sample size of a decision.

    Prints how many questions or labels decide a gate, comparison or calibration with 80 % probability.

    KIND is gate, comparison or calibration. PILOT is existing data: scores or a scenario with gates, the run to
    compare with --baseline, or ratings. Without a pilot, the plan is based on the options.

    \b
    Examples
      ragnb plan gate --target 0.8 --expected 0.9
      ragnb plan gate scores.csv -p "gates=[{name: F, metric: faithfulness, op: '>=', threshold: 0.8}]"
      ragnb plan comparison --sd 0.3 --questions 200
      ragnb plan comparison new.csv --baseline base.csv --expected 0.03
      ragnb plan calibration --target 0.8 --expected 0.9 --icc 0.2 --per-document 5

    Exit code: 0; 2 on bad input.
    """
    from ragnb.comparison import plan
    from ragnb.diagnostics.gates import plain_records

    settings = terminal.overrides(parameters)
    if baseline:
        settings["baseline"] = baseline
    given = {name: value for name, value in assumed.items() if value is not None}
    table = plan(pilot, kind=kind, **given, **settings)
    say = texts.load(lang)
    click.echo("\n".join(_sentence(row, say) for row in table.to_dict("records")))
    terminal.write_files(
        {"json_file": json_file}, json_file=lambda: json_text(plain_records(table))
    )
    return PASSED


def _sentence(row: dict[Any, Any], say: Any) -> str:
    """Say what one decision needs; without an expected value, what the questions can show."""
    words = {"about": row["about"]}
    if row["system"] is not None:
        words["about"] = f"{row['system']}: {row['about']}"
    words |= {name: number(row[name]) for name in ("expected", "target", "detectable")}
    words |= {name: count(row[name]) for name in ("n", "needed", "more", "documents")}
    if row["reason"] is not None:
        key = row["reason"]
    elif is_missing(row["expected"]):
        key = "shows"
    elif is_missing(row["n"]):
        key = row["kind"]
    else:
        key = f"{row['kind']}_more"
    return str(say(f"plan.{key}", **words))
