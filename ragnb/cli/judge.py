"""`ragnb judge`: the answers of a scenario scored by its judge, by a rubric from 1 to 10."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ragnb import texts
from ragnb.cli.evaluate import cases_of, files_of
from ragnb.cli.parameters import FILE, PARAM, overrides
from ragnb.cli.terminal import BLOCKED, PASSED, plain, text_table
from ragnb.errors import RagnbError
from ragnb.files import write_whole

_HELP = """Score the answers of a SCENARIO from 1 to 10, by the model of its llm_profiles.judge.

Six answers of known worth are judged first, and what that says of the judge is printed before the scores. Every
judgement is kept in the store as it is made: the same command again goes on where this one ended.

\b
Examples
  ragnb judge scenarios/mine.yaml --dry-run
  ragnb judge scenarios/mine.yaml --repeats 3 --temperature 0.7 --max-calls 500

Exit code: 0 when every answer has its outcome, 1 when some failed or are still to be done, 2 on bad input.
"""


@click.command("judge", help=_HELP)
@click.argument("source", metavar="SCENARIO", type=FILE)
@click.option("--out", type=FILE, help="The table of scores; by default reports/<scenario>/judged.csv.")
@click.option("--store", type=FILE, help="The file that keeps every judgement; by default beside the table.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Judgements an answer.")
@click.option("--temperature", type=float, default=0.0, show_default=True, help="Of the judge.")
@click.option("--top-k", type=click.IntRange(min=1), default=10, show_default=True, help="Passages shown at most.")
@click.option("--peek", metavar="SYSTEM", help="Whose passages stand in for those that answers lack.")
@click.option("--probes/--no-probes", default=True, show_default=True, help="Judge six known answers first.")
@click.option("--dry-run", is_flag=True, help="Say how many calls and tokens it would take; send nothing.")
@click.option("--max-calls", type=click.IntRange(min=1), help="Stop, resumably, before more calls than this.")
@click.option("--concurrency", type=click.IntRange(min=1), default=8, show_default=True, help="Calls at a time.")
@PARAM
def judge_command(
    source: Path, out: Path | None, store: Path | None, dry_run: bool, max_calls: int | None, concurrency: int,
    parameters: Sequence[str], **options: Any,
) -> int:  # fmt: skip
    """Score the answers of a scenario."""
    from ragnb.assessment.build import scenario_of
    from ragnb.judging import dry_run as estimated
    from ragnb.judging import judge
    from ragnb.markup import with_interval
    from ragnb.readers import to_csv_text
    from ragnb.weights import weighted_means
    from ragnb.work import Client

    scenario = scenario_of(source, overrides(parameters), "cases")
    say, profile = texts.load(scenario.lang), scenario.llm_profiles.get("judge")
    if profile is None:
        raise RagnbError(f"{plain(source)}: it names no judge; add llm_profiles: judge: base_url and model")
    out, store = files_of(scenario, "judged.csv", out, store)
    client = Client(profile, max_calls=max_calls, concurrency=concurrency)
    options |= {"store": store, "lang": scenario.lang}
    if dry_run:
        click.echo(say("judge.cli.need", **vars(estimated(cases_of(scenario), client, **options))))
        return PASSED
    store.parent.mkdir(parents=True, exist_ok=True)
    found = judge(cases_of(scenario), client, name=scenario.name, **options)
    write_whole(out, to_csv_text(found))
    click.echo("\n".join(f"- {plain(text)}" for text in found.notes["text"]))
    means = weighted_means(found, ["accuracy", "completeness", "clarity"]).to_dict("records")
    rows = [[row["metric"], with_interval(row["value"], row["low"], row["high"]), str(row["n"])] for row in means]
    click.echo("\n".join(text_table([["", say("evaluate.mean"), "n"], *rows])))
    status = found["accuracy__status"]
    click.echo(say("judge.cli.judged", ok=int((status == "ok").sum()), n=len(found), model=plain(profile.model)))
    click.echo(
        say("evaluate.written", out=plain(out), store=plain(store), calls=found.attrs["judge"]["spent"]["calls"])
    )
    return BLOCKED if status.isin(["failed", "missing"]).any() else PASSED
