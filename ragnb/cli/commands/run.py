"""``ragnb run``: all stages of a scenario in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.commands.answer import answer_command
from ragnb.cli.commands.evaluate import evaluate_command
from ragnb.cli.commands.generate import generate_command
from ragnb.cli.commands.judge import judge_command
from ragnb.cli.commands.report import report_command
from ragnb.cli.commands.stage import Stage
from ragnb.cli.terminal import PASSED, command
from ragnb.markup import one_line
from ragnb.schema import METRICS, Metric, Rubric

if TYPE_CHECKING:
    import pandas as pd

    from ragnb.scenario import Scenario


# In the order in which they run.
_COMMANDS: dict[str, click.Command] = {
    "generate": generate_command,
    "answer": answer_command,
    "evaluate": evaluate_command,
    "judge": judge_command,
    "report": report_command,
}


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
    say = texts.load(scenario.lang)
    order = _stages_of(scenario)
    if stages:
        order = [stage for stage in _COMMANDS if stage in stages]
    _refuse_early(source, scenario, order, asked, dry_run=dry_run)
    context = click.get_current_context()
    worst = PASSED
    # The whole bill comes before the first call.
    passes = [True] if dry_run else [True, False]
    for is_bill in passes:
        for place, stage in enumerate(order, 1):
            where = {"place": place, "of": len(order), "stage": stage}
            if stage == "report":
                if is_bill:  # a report costs nothing
                    continue
                options = {"scenarios": [source], "parameters": asked["parameters"]}
            else:
                # Looked up stage by stage, as the table of one is the cases of the next.
                kept = stage_table(stage, with_cases(scenario, stage))
                if kept and kept.complete:
                    if is_bill:
                        click.echo(say("run.unchanged", **where, table=one_line(kept.path)))
                    continue
                options = asked | {"source": source, "dry_run": is_bill}
            click.echo(say("run.stage", **where))
            worst = max(worst, context.invoke(_COMMANDS[stage], lang=lang, **options))
    return worst


def _stages_of(scenario: Scenario) -> list[str]:
    """Return the stages for which a scenario names what they need, in order."""
    profiles = scenario.llm_profiles
    has_own_cases = scenario.cases is not None
    has_cases = has_own_cases or scenario.documents is not None
    is_named = {
        "generate": has_cases and not has_own_cases and "dataset" in profiles,
        "answer": bool(scenario.system.generate or "answer" in profiles),
        "evaluate": has_cases,
        "judge": has_cases and "judge" in profiles,
        "report": True,
    }
    return [stage for stage in _COMMANDS if is_named[stage]]


def _refuse_early(
    source: Path,
    scenario: Scenario,
    order: Sequence[str],
    asked: Mapping[str, Any],
    *,
    dry_run: bool,
) -> None:
    """Refuse before a call is paid what any stage would refuse: keys, functions, metrics, gates, settings."""
    from ragnb.cli.rehearsal import rehearse

    _need_keys(scenario, order)
    if "answer" in order:
        _need_functions(scenario, dry_run=dry_run)
    if "report" not in order or not {"evaluate", "judge"} & {*order}:
        return
    # The cases as an estimate takes them: made up where they are not generated yet.
    options = {"parameters": asked["parameters"], "lang": None, "dry_run": True, "out": None}
    limits = dict.fromkeys(("store", "max_calls", "max_tokens", "concurrency"))
    cases = Stage("evaluate", source, "scores.csv", options | limits).cases()
    computed: list[Metric] = []
    if "evaluate" in order:
        computed += _evaluated_metrics(scenario, cases, order)
    if "judge" in order:
        computed += (scenario.rubric or Rubric()).metrics
    system_name = ""
    if "answer" in order:
        # As `ragnb answer` names it, but for the model of a profile.
        system_name = scenario.system.name or scenario.system.generate or ""
        if not system_name and "answer" in scenario.llm_profiles:
            system_name = "answer"
    rehearse(scenario, cases, computed, system=system_name)


def _need_keys(scenario: Scenario, order: Sequence[str]) -> None:
    """Refuse the profile of a stage whose key is not in the environment."""
    from ragnb.store.redaction import headers_of

    roles = {"generate": "dataset", "answer": "answer", "evaluate": "judge", "judge": "judge"}
    profiles = {str(role): profile for role, profile in scenario.llm_profiles.items()}
    used = list(dict.fromkeys(roles[stage] for stage in order if stage in roles))
    if "evaluate" in order:
        used.append("embeddings")
    for role in used:
        if role in profiles:
            headers_of(profiles[role])


def _need_functions(scenario: Scenario, *, dry_run: bool) -> None:
    """Refuse functions of the system that are not there; no dry run imports their modules."""
    from ragnb.cli.rehearsal import need_function
    from ragnb.scoring import named_function

    folder = scenario.path.parent if scenario.path else Path()
    for name in (scenario.system.retrieve, scenario.system.generate):
        if not name:
            continue
        need_function(name, folder)
        if not dry_run:
            named_function(name, folder)


def _evaluated_metrics(
    scenario: Scenario, cases: pd.DataFrame, order: Sequence[str]
) -> list[Metric]:
    """Return the metrics that `ragnb evaluate` will compute; refuse one that no stage can."""
    from ragnb.cli.rehearsal import need_computable
    from ragnb.scoring import SCORERS, gold
    from ragnb.scoring.run import default_metrics

    has_vectors = "embeddings" in scenario.llm_profiles
    need_computable(scenario, cases, has_vectors=has_vectors)
    if scenario.metrics is None:
        names = default_metrics(
            has_judge="judge" in scenario.llm_profiles,
            has_vectors=has_vectors,
            # Generated questions come with their sources.
            has_gold="generate" in order or gold.has_gold(cases),
        )
    else:
        names = [metric if isinstance(metric, str) else metric.name for metric in scenario.metrics]
    return [METRICS.get(name, Metric(name)) for name in names if name in SCORERS]
