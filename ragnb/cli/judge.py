"""`ragnb judge`: the answers of a scenario scored by its judge, by the scenario's rubric or ours from 1 to 10."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli.evaluate import cases_of, files_of, means_told
from ragnb.cli.parameters import FILE, options, overrides, sent
from ragnb.cli.terminal import BLOCKED, PASSED, plain
from ragnb.errors import RagnbError
from ragnb.files import write_whole

if TYPE_CHECKING:
    from ragnb.schema import Rubric


@click.command("judge")
@click.argument("source", metavar="SCENARIO", type=FILE)
@options("judge")
def judge_command(
    source: Path, out: Path | None, store: Path | None, dry_run: bool, max_calls: int | None,
    max_tokens: int | None, concurrency: int, send: Sequence[str], parameters: Sequence[str], lang: str | None,
    **options: Any,
) -> int:  # fmt: skip
    """Score the answers of a SCENARIO by a rubric, with the model of its llm_profiles.judge.

    The rubric is the scenario's (rubric:), or else accuracy, completeness and clarity from 1 to 10; metric_weights
    weigh its dimensions. Answers without passages are judged without, and several systems side by side.

    Six answers of known worth are judged first, and what that says of the judge is printed before the scores.
    Every judgement is kept in the store as it is made: the same command again goes on where this one ended. The
    settings used are written beside the table; ragnb report SCENARIO and ragnb check SCENARIO find it by
    themselves.

    \b
    Examples
      ragnb judge scenarios/mine.yaml --dry-run             the rubric and what it would cost; nothing is sent
      ragnb judge scenarios/mine.yaml --repeats 3 --temperature 0.7 --max-calls 500

    Exit code: 0 when every answer has its outcome, 1 when some failed or are still to be done, 2 on bad input.
    """
    from ragnb.assessment.build import scenario_of
    from ragnb.assessment.stages import record_stage
    from ragnb.judging import dry_run as estimated
    from ragnb.judging import judge
    from ragnb.readers import to_csv_text
    from ragnb.schema import Rubric
    from ragnb.store import Client

    scenario = scenario_of(source, overrides(parameters) | ({"lang": lang} if lang else {}), "cases")
    say, profile = texts.load(scenario.lang), scenario.llm_profiles.get("judge")
    if profile is None:
        raise RagnbError(f"{plain(source)}: it names no judge; add llm_profiles: judge: base_url and model")
    out, store = files_of(scenario, "judged.csv", out, store)
    client = Client(profile, max_calls=max_calls, max_tokens=max_tokens, concurrency=concurrency)
    rubric = (scenario.rubric or Rubric()).weighed(scenario.metric_weights)
    options |= {"store": store, "lang": scenario.lang, "rubric": rubric, "parameters": sent(send)}
    if dry_run:
        click.echo("\n".join(_shown(rubric, scenario.lang)))
        click.echo(say("judge.cli.need", **vars(estimated(cases_of(scenario), client, **options))))
        return PASSED
    store.parent.mkdir(parents=True, exist_ok=True)
    found = judge(cases_of(scenario), client=client, name=scenario.name, **options)
    write_whole(out, to_csv_text(found))
    record_stage("judge", scenario, out)
    write_whole(out.with_suffix(".snapshot.yaml"), scenario.snapshot_text(relative_to=out.parent))
    click.echo("\n".join(f"- {plain(text)}" for text in found.notes["text"]))
    click.echo("\n".join(means_told(found, rubric.metrics, scenario, "weighted_score")))
    status, passing = found[f"{rubric.passing.metric}__status"], int(found["is_passing"].sum())
    numbers = {"ok": int((status == "ok").sum()), "n": len(found), "passing": passing}
    click.echo(say("judge.cli.judged", model=plain(profile.model), **numbers, **_bar(rubric)))
    calls = found.attrs["judge"]["spent"]["calls"]
    click.echo(say("judge.cli.written", out=plain(out), store=plain(store), calls=calls))
    return BLOCKED if status.isin(["failed", "missing"]).any() else PASSED


def _bar(rubric: Rubric) -> dict[str, str]:
    return {"metric": plain(rubric.passing.metric), "at": f"{rubric.passing.threshold:g}"}


def _shown(rubric: Rubric, lang: str) -> Iterator[str]:
    """A rubric in lines: its scale, its weights, its bar, and what the judge reads of its dimensions."""
    from ragnb.judging.prompts import anchors, bands

    say = texts.load(lang)
    words = _bar(rubric) | {"low": f"{rubric.low:g}", "high": f"{rubric.high:g}"}
    words |= {"weights": ", ".join(f"{plain(d.name)} {d.weight:g}" for d in rubric.dimensions)}
    words |= {"steps": say("judge.decimals" if rubric.decimals else "judge.wholes")}
    yield say("judge.cli.rubric", anchors=len(anchors(rubric, lang)), **words)
    yield from (f"{'    ' if line[0] == ' ' else '  '}{plain(line)}" for line in bands(rubric, lang))
