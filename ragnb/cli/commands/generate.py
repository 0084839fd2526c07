"""``ragnb generate``: make a question set from documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragnb.cli import terminal
from ragnb.cli.commands.stage import Stage, profile_step
from ragnb.cli.terminal import command
from ragnb.errors import RagnbError, listing
from ragnb.markup import one_line


@command("generate")
def generate_command(source: Path, **asked: Any) -> int:
    """Make a question set from the documents of a SCENARIO.

    SCENARIO names documents: (a folder of PDF, HTML, Markdown or text, or a table of passages) and
    llm_profiles.dataset; its key generation: says how many questions and of which kinds. The evidence of each
    answer stands word for word in its passage; what does not is left out and counted.

    Writes questions.jsonl and review.csv to reports/<scenario>/. Fill in the column decision (keep, edit,
    drop) and run the same command again: the questions follow the review, and nothing is generated twice.

    \b
    Examples
      ragnb generate scenarios/mine.yaml --dry-run      estimate the cost; nothing is sent
      ragnb generate scenarios/mine.yaml -p "generation={questions: 40, personas: [a new employee]}"

    Exit code: 0 if there are as many questions as wanted, 1 if fewer, 2 on bad input, 130 after Ctrl-C.
    """
    from ragnb.scoring import generate_cases, generation_cost, passages_of
    from ragnb.scoring.generation import review_sheet, reviewed, with_decisions
    from ragnb.traces import check_gold

    stage = Stage("generate", source, "questions.jsonl", asked)
    scenario = stage.scenario
    say = stage.say
    client = stage.client(role="dataset")
    if scenario.documents is None:
        raise RagnbError(
            f"{one_line(source)}: it names no documents to generate questions from; add a folder of texts or a "
            "table of passages: documents: docs/"
        )
    if client is None:
        raise RagnbError(
            f"{one_line(source)}: it names no model that writes questions; add one to the scenario, or for this "
            f"run: -p {profile_step('dataset')}"
        )
    want = scenario.generation
    reading: dict[str, Any] = {"encoding": scenario.encoding, "columns": dict(scenario.columns)}
    how: dict[str, Any] = {
        "n": want.questions,
        "lang": scenario.lang,
        **want.model_dump(exclude={"questions"}),
    }
    how |= {"client": client, "store": stage.store, **reading}
    if stage.dry_run:
        passages = passages_of(scenario.documents, **reading)
        sizes = {
            "n": want.questions,
            "passages": len(passages),
            "documents": passages["doc_name"].nunique(),
        }
        return stage.bill("generate.dry_run", generation_cost(scenario.documents, **how), **sizes)
    made = generate_cases(scenario.documents, **how)
    dropped = made.attrs["dropped"]
    if made.empty:
        click.echo(stage.closing(made.attrs["account"]))  # paid for all the same
        raise RagnbError(
            f"no usable question ({listing(dropped)}); use a stronger model or longer documents"
        )
    review = stage.out.with_name("review.csv")
    given = review if review.is_file() else review_sheet(made)
    sheet = with_decisions(made, given)
    cases = reviewed(made, given)
    terminal.write_csv(review, sheet)
    code = stage.write(cases, complete=len(made) >= want.questions)
    kinds = {
        kind: int((cases["kind"] == kind).sum()) for kind in ("single", "multi", "unanswerable")
    }
    click.echo(
        say("generate.written", n=len(cases), wanted=want.questions, out=one_line(stage.out))
    )
    click.echo(say("generate.kinds", **kinds, documents=cases["doc_name"].nunique()))
    if dropped:
        counts = ", ".join(f"{n} {say(f'generate.{why}')}" for why, n in dropped.items())
        click.echo(say("generate.dropped", counts=counts))
    decided = int((sheet["decision"] != "").sum())
    click.echo(say("generate.review", file=one_line(review), reviewed=decided, n=len(made)))
    findings = check_gold(cases.rename(columns={"source_units": "gold_ids"}), lang=scenario.lang)
    for text in findings.query("not fine")["text"]:
        terminal.note(text)
    click.echo(stage.closing(made.attrs["account"]))
    return code
