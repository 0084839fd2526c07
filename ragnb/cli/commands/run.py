"""``ragnb run``: all stages of a scenario in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import PASSED, command
from ragnb.markup import one_line
from ragnb.schema import METRICS, Metric, Rubric

if TYPE_CHECKING:
    from ragnb.scenario import Scenario
from ragnb.cli.commands.answer import answer_command
from ragnb.cli.commands.evaluate import evaluate_command
from ragnb.cli.commands.generate import generate_command
from ragnb.cli.commands.judge import judge_command
from ragnb.cli.commands.report import report_command
from ragnb.cli.commands.stage import Stage


@command("run")
def run_command(
    source: Path, stages: Sequence[str], dry_run: bool, lang: str | None, **asked: Any
) -> int:
    """Run what a SCENARIO names, in order: generate, answer, evaluate, judge, report.

    generate runs where there are documents: and llm_profiles.dataset, answer where there is a system: or
    llm_profiles.answer, evaluate where there are cases, judge where there is llm_profiles.judge. A stage whose
    inputs have not changed is skipped, and a stopped one goes on where it was: every call is paid once.

    \b
    Examples
      ragnb run scenarios/mine.yaml --dry-run         the whole bill; nothing is sent
      ragnb run scenarios/mine.yaml
      ragnb run scenarios/mine.yaml --stage answer --stage report

    Limits hold for each stage.

    Exit code: 0 if every stage is complete and the report is written, 1 if calls failed or are pending, 2 on bad
    input, 130 after Ctrl-C. Gates decide in ragnb check.
    """
    from ragnb.inputs import scenario_of, stage_table, with_cases

    settings = terminal.overrides(asked["parameters"], lang)
    scenario = scenario_of(source, settings, "cases")
    worst = PASSED
    named = scenario.cases is not None
    profiles = scenario.llm_profiles
    say = texts.load(scenario.lang)
    has_cases = named or scenario.documents is not None
    wanted: dict[str, tuple[click.Command, bool]] = {
        "generate": (generate_command, has_cases and not named and "dataset" in profiles),
        "answer": (answer_command, bool(scenario.system.generate or "answer" in profiles)),
        "evaluate": (evaluate_command, has_cases),
        "judge": (judge_command, has_cases and "judge" in profiles),
        "report": (report_command, True),
    }
    if stages:
        order = [stage for stage in wanted if stage in stages]
    else:
        order = [stage for stage, (_, is_named) in wanted.items() if is_named]
    _refuse_early(source, scenario, order, asked, dry_run=dry_run)
    context = click.get_current_context()
    # The whole bill comes before the first call.
    passes = [True] if dry_run else [True, False]
    for dry in passes:
        for place, stage in enumerate(order, 1):
            where = {"place": place, "of": len(order), "stage": stage}
            if stage == "report":
                kept = None
            else:
                kept = stage_table(stage, with_cases(scenario, stage))
            if kept and kept.complete:
                if dry:
                    click.echo(say("run.unchanged", **where, table=one_line(kept.path)))
                continue
            if dry and stage == "report":
                continue
            click.echo(say("run.stage", **where))
            options = asked | {"source": source, "dry_run": dry}
            if stage == "report":
                options = {"scenarios": [source], "parameters": asked["parameters"]}
            worst = max(worst, context.invoke(wanted[stage][0], lang=lang, **options))
    return worst


def _refuse_early(
    source: Path,
    scenario: Scenario,
    order: Sequence[str],
    asked: Mapping[str, Any],
    *,
    dry_run: bool,
) -> None:
    """Refuse before a call is paid what any stage would refuse: keys, functions, metrics, gates, settings."""
    from ragnb.cli.rehearsal import need_computable, need_function, rehearse
    from ragnb.scoring import SCORERS, gold, named_function
    from ragnb.scoring.run import default_metrics
    from ragnb.store.redaction import headers_of

    roles = {"generate": "dataset", "answer": "answer", "evaluate": "judge", "judge": "judge"}
    profiles = {str(role): profile for role, profile in scenario.llm_profiles.items()}
    for role in dict.fromkeys(roles[stage] for stage in order if stage in roles):
        if role in profiles:
            headers_of(profiles[role])
    if "evaluate" in order and "embeddings" in profiles:
        headers_of(profiles["embeddings"])
    system = scenario.system
    folder = scenario.path.parent if scenario.path else Path()
    if "answer" in order:
        for name in filter(None, (system.retrieve, system.generate)):
            need_function(name, folder)
            if not dry_run:  # whose modules no dry run imports
                named_function(name, folder)
    if "report" not in order or not {"evaluate", "judge"} & {*order}:
        return
    options = {"parameters": asked["parameters"], "lang": None, "dry_run": True, "out": None}
    limits = dict.fromkeys(("store", "max_calls", "max_tokens", "concurrency"))
    cases = Stage("evaluate", source, "scores.csv", options | limits).cases()
    has_vectors = "embeddings" in profiles
    computed: list[Metric] = []
    if "evaluate" in order:
        need_computable(scenario, cases, has_vectors=has_vectors)
        named = [one if isinstance(one, str) else one.name for one in scenario.metrics or ()]
        if scenario.metrics is None:
            has_gold = "generate" in order or gold.has_gold(cases)
            named = default_metrics(
                has_judge="judge" in profiles, has_vectors=has_vectors, has_gold=has_gold
            )
        computed += [METRICS.get(name, Metric(name)) for name in named if name in SCORERS]
    if "judge" in order:
        computed += (scenario.rubric or Rubric()).metrics
    answers = system.name or system.generate or ("answer" if "answer" in profiles else "")
    rehearse(scenario, cases, computed, system=answers if "answer" in order else "")
