"""``ragnb answer``: let the system answer the questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragnb.cli.commands.stage import Stage, profile_step
from ragnb.cli.terminal import command
from ragnb.errors import RagnbError
from ragnb.markup import one_line

_TOKENS_OF_ANSWER = 1000  # of each call in an estimate, as the passages are not known yet
_MOST_REASONS = 3  # of failures that are listed, the most frequent ones


@command("answer")
def answer_command(source: Path, **asked: Any) -> int:
    """Let the system of a SCENARIO answer its questions.

    The system is system: {retrieve: module:function, generate: module:function}, looked for in the scenario's
    folder and among the installed packages. Without generate, llm_profiles.answer answers: from the passages of
    retrieve, or alone. The questions are those of cases:, or those that ragnb generate made.

    Writes answers.jsonl to reports/<scenario>/, with passages (null where there is no retrieval, [] where it found
    nothing), answer, status, latency and tokens. Every answer is saved as soon as it is there.

    \b
    Examples
      ragnb answer scenarios/mine.yaml --dry-run
      ragnb answer scenarios/mine.yaml -p "system={retrieve: rag:search, generate: rag:answer}"

    Exit code: 0 if every question is answered, 1 if some failed or are pending, 2 on bad input, 130 after Ctrl-C.
    """
    from ragnb.inputs.stages import system_version
    from ragnb.scoring import answer_cases, endpoint, named_function
    from ragnb.store import Estimate

    stage = Stage("answer", source, "answers.jsonl", asked)
    scenario = stage.scenario
    say = stage.say
    system = scenario.system
    # A function of the user goes before a model of the scenario.
    client = None if system.generate else stage.client(role="answer")
    if not system.generate and client is None:
        raise RagnbError(
            f"{one_line(source)}: it names no system; add to the scenario a function of yours in rag.py beside "
            f"it (system: {{generate: rag:answer}}), or a model: -p {profile_step('answer')}"
        )
    name = system.name or system.generate or (client.profile.model if client else "")
    cases = stage.cases()
    if stage.dry_run:
        calls = len(cases) if client else 0
        need = Estimate(len(cases), 0, 0, calls, _TOKENS_OF_ANSWER * calls)
        return stage.bill("answer.dry_run", need, system=one_line(name))
    options: dict[str, Any] = {}
    if system.retrieve:
        options["retrieve"] = named_function(system.retrieve, stage.folder)
    if system.generate:
        options["generate"] = named_function(system.generate, stage.folder)
    if client:
        options["generate"] = endpoint(client, lang=scenario.lang, refusal=scenario.refusal[0])
        options["client"] = client
    answered = answer_cases(
        cases,
        system=name,
        store=stage.store,
        concurrency=stage.limits["concurrency"],
        version=system_version(scenario),
        **options,
    )
    status = answered["answer__status"]
    is_ok = status.eq("ok")
    code = stage.write(answered, complete=bool(is_ok.all()))
    # Retrieval that finds nothing gives an empty list; without retrieval there is no list.
    n_empty = sum(
        isinstance(passages, list) and not passages for passages in answered["retrieved_contexts"]
    )
    numbers = {"ok": int(is_ok.sum()), "n": len(answered), "empty": n_empty}
    click.echo(say("answer.written", system=one_line(name), out=one_line(stage.out), **numbers))
    reasons = answered.loc[status == "failed", "answer__reason"].value_counts()
    for reason, n in reasons.head(_MOST_REASONS).items():
        click.echo(say("answer.failed", n=n, reason=one_line(reason, 200)))
    has_functions = bool(system.retrieve or system.generate)
    click.echo(stage.closing(answered.attrs["account"], own_functions=has_functions))
    return code
