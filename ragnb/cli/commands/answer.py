"""``ragnb answer``: let the system answer the questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragnb.cli.commands.stage import Stage, profile_step
from ragnb.cli.terminal import command
from ragnb.errors import RagnbError
from ragnb.markup import one_line


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
    system = stage.scenario.system
    if system.generate:
        client = None
    else:
        client = stage.client(role="answer")
    if not (system.generate or client):
        raise RagnbError(
            f"{one_line(source)}: it names no system; add to the scenario a function of yours in rag.py beside "
            f"it (system: {{generate: rag:answer}}), or a model: -p {profile_step('answer')}"
        )
    name = system.name or system.generate or (client.profile.model if client else "")
    cases = stage.cases()
    if stage.dry_run:
        n = len(cases)
        calls = len(cases) if client else 0
        return stage.bill(
            "answer.dry_run", Estimate(n, 0, 0, calls, 1000 * calls), system=one_line(name)
        )
    functions = {"retrieve": system.retrieve, "generate": system.generate}
    how: dict[str, Any] = {
        role: named_function(text, stage.folder) for role, text in functions.items() if text
    }
    if client:
        asks = endpoint(client, lang=scenario.lang, refusal=scenario.refusal[0])
        how |= {"generate": asks, "client": client}
    how |= {
        "store": stage.store,
        "concurrency": stage.limits["concurrency"],
        "version": system_version(scenario),
    }
    done = answer_cases(cases, system=name, **how)
    status = done["answer__status"]
    code = stage.write(done, complete=bool(status.eq("ok").all()))
    empty = sum(isinstance(one, list) and not one for one in done["retrieved_contexts"])
    numbers = {"ok": int(status.eq("ok").sum()), "n": len(done), "empty": empty}
    click.echo(say("answer.written", system=one_line(name), out=one_line(stage.out), **numbers))
    for reason, n in done.loc[status == "failed", "answer__reason"].value_counts().head(3).items():
        click.echo(say("answer.failed", n=n, reason=one_line(reason, 200)))
    has_own = bool(system.retrieve or system.generate)
    click.echo(stage.closing(done.attrs["account"], own_functions=has_own))
    return code
