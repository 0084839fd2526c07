"""`ragnb generate`, `answer` and `run`: from documents to a report, each stage resumable and by its own
command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ragnb import texts
from ragnb.cli.parameters import command, overrides
from ragnb.cli.scenarios import Stage, evaluate_command, judge_command, report_command
from ragnb.cli.terminal import PASSED, note
from ragnb.errors import RagnbError
from ragnb.files import write_whole
from ragnb.markup import one_line


@command("generate")
def generate_command(source: Path, **asked: Any) -> int:
    """Make a question set from the documents of a SCENARIO.

    SCENARIO names documents: (a folder of text or Markdown, or a table of passages) and llm_profiles.dataset;
    its key
    generation: says how many questions and of which kinds. The evidence of each answer stands word for word in its
    passage; what does not is left out and counted.

    Writes questions.jsonl and review.csv to reports/<scenario>/. Fill in the column decision (keep, edit,
    drop) and run the same command again: the questions follow the review, and nothing is generated twice.

    \b
    Examples
      ragnb generate scenarios/mine.yaml --dry-run      estimate the cost; nothing is sent
      ragnb generate scenarios/mine.yaml -p "generation={questions: 40, personas: [a new employee]}"

    Exit code: 0 if there are as many questions as wanted, 1 if fewer, 2 on bad input, 130 after Ctrl-C.
    """
    from ragnb.readers import to_csv_text
    from ragnb.scoring import generate_cases, generation_cost, passages_of
    from ragnb.scoring.reviewing import review_sheet, reviewed, with_decisions
    from ragnb.traces import check_gold

    stage = Stage("generate", source, "questions.jsonl", asked)
    scenario, say, client = stage.scenario, stage.say, stage.client(role="dataset")
    if scenario.documents is None or client is None:
        raise RagnbError(f"{one_line(source)}: generating needs documents: and llm_profiles: dataset:; add both")
    want = scenario.generation
    reading: dict[str, Any] = {"encoding": scenario.encoding, "columns": dict(scenario.columns)}
    how: dict[str, Any] = {"n": want.questions, "lang": scenario.lang, **want.model_dump(exclude={"questions"})}
    how |= {"llm": client, "store": stage.store, **reading}
    passages = passages_of(scenario.documents, **reading)
    if stage.dry_run:
        sizes = {"n": want.questions, "passages": len(passages), "documents": passages["doc_name"].nunique()}
        need = generation_cost(scenario.documents, **how)
        return stage.bill("generate.dry_run", need, **sizes)
    made = generate_cases(scenario.documents, **how)
    review = stage.out.with_name("review.csv")
    given = review if review.is_file() else review_sheet(made)
    sheet, cases = with_decisions(made, given), reviewed(made, given)
    write_whole(review, to_csv_text(sheet))
    code = stage.write(cases, complete=len(made) >= want.questions)
    kinds = {kind: int((cases["kind"] == kind).sum()) for kind in ("single", "multi", "unanswerable")}
    click.echo(say("generate.written", n=len(cases), wanted=want.questions, out=one_line(stage.out)))
    click.echo(say("generate.kinds", **kinds, documents=cases["doc_name"].nunique()))
    if dropped := made.attrs["dropped"]:
        counts = ", ".join(f"{n} {say(f'generate.{why}')}" for why, n in dropped.items())
        click.echo(say("generate.dropped", counts=counts))
    decided = int((sheet["decision"] != "").sum())
    click.echo(say("generate.review", file=one_line(review), reviewed=decided, n=len(made)))
    if len(cases):
        found = check_gold(cases.rename(columns={"source_units": "gold_ids"}), lang=scenario.lang)
        for text in found.query("not fine")["text"]:
            note(text)
    return code


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
    from ragnb.scoring import answer_cases, endpoint, named_function
    from ragnb.store import Estimate

    stage = Stage("answer", source, "answers.jsonl", asked)
    scenario, say, system = stage.scenario, stage.say, stage.scenario.system
    client = None if system.generate else stage.client(role="answer")
    if not (system.generate or client):
        raise RagnbError(f"{one_line(source)}: it names no system; add system: generate: or llm_profiles: answer:")
    name = system.name or system.generate or (client.profile.model if client else "")
    cases = stage.cases()
    if stage.dry_run:
        n, calls = len(cases), len(cases) if client else 0
        return stage.bill("answer.dry_run", Estimate(n, 0, 0, calls, 1000 * calls), system=one_line(name))
    folder = scenario.path.parent if scenario.path else Path.cwd()
    functions = {"retrieve": system.retrieve, "generate": system.generate}
    found: dict[str, Any] = {role: named_function(text, folder) for role, text in functions.items() if text}
    if client:
        found["generate"] = endpoint(client, lang=scenario.lang, refusal=scenario.refusal[0])
    clients = (client,) if client else ()
    done = answer_cases(
        cases, **found, system=name, store=stage.store, clients=clients, concurrency=stage.limits["concurrency"]
    )
    status = done["answer__status"]
    code = stage.write(done, complete=bool(status.eq("ok").all()))
    empty = sum(isinstance(one, list) and not one for one in done["retrieved_contexts"])
    numbers = {"ok": int(status.eq("ok").sum()), "n": len(done), "empty": empty}
    click.echo(say("answer.written", system=one_line(name), out=one_line(stage.out), **numbers))
    for reason, n in done.loc[status == "failed", "answer__reason"].value_counts().head(3).items():
        click.echo(say("answer.failed", n=n, reason=one_line(reason, 200)))
    return code


@command("run")
def run_command(source: Path, stages: Sequence[str], dry_run: bool, lang: str | None, **asked: Any) -> int:
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

    settings = overrides(asked["parameters"], lang)
    scenario, worst = scenario_of(source, settings, "cases"), PASSED
    named, profiles, say = scenario.cases is not None, scenario.llm_profiles, texts.load(scenario.lang)
    has_cases = named or scenario.documents is not None
    wanted: dict[str, tuple[click.Command, bool]] = {
        "generate": (generate_command, has_cases and not named and "dataset" in profiles),
        "answer": (answer_command, bool(scenario.system.generate or "answer" in profiles)),
        "evaluate": (evaluate_command, has_cases), "judge": (judge_command, has_cases and "judge" in profiles),
        "report": (report_command, True),
    }  # fmt: skip
    order = [stage for stage, (_, is_named) in wanted.items() if (stage in stages if stages else is_named)]
    for place, stage in enumerate(order, 1):
        where = {"place": place, "of": len(order), "stage": stage}
        kept = None if stage == "report" else stage_table(stage, with_cases(scenario, stage))
        if kept and kept.complete:
            click.echo(say("run.unchanged", **where, table=one_line(kept.path)))
            continue
        if dry_run and stage == "report":
            continue
        click.echo(say("run.stage", **where))
        given = asked | {"source": source, "dry_run": dry_run}
        if stage == "report":
            given = {"scenarios": [source], "parameters": asked["parameters"]}
        worst = max(worst, click.get_current_context().invoke(wanted[stage][0], lang=lang, **given))
    return worst
