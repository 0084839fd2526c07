"""``ragnb generate``: make a question set from documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb.cli import terminal
from ragnb.cli.commands.stage import Stage, profile_step
from ragnb.cli.terminal import command
from ragnb.errors import RagnbError, listing
from ragnb.markup import one_line

if TYPE_CHECKING:
    import pandas as pd


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

    stage = Stage("generate", source, "questions.jsonl", asked)
    scenario = stage.scenario
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
    wanted = scenario.generation
    reading: dict[str, Any] = {"encoding": scenario.encoding, "columns": dict(scenario.columns)}
    settings: dict[str, Any] = {
        "n": wanted.questions,
        "lang": scenario.lang,
        **wanted.model_dump(exclude={"questions"}),
        "client": client,
        "store": stage.store,
        **reading,
    }
    if stage.dry_run:
        passages = passages_of(scenario.documents, **reading)
        return stage.bill(
            "generate.dry_run",
            generation_cost(scenario.documents, **settings),
            n=wanted.questions,
            passages=len(passages),
            documents=passages["doc_name"].nunique(),
        )
    generated = generate_cases(scenario.documents, **settings)
    if generated.empty:
        click.echo(stage.closing(generated.attrs["account"]))  # paid for all the same
        raise RagnbError(
            f"no usable question ({listing(generated.attrs['dropped'])}); use a stronger model or longer documents"
        )
    review = stage.out.with_name("review.csv")
    # Decisions of an earlier run of this command are kept.
    given = review if review.is_file() else review_sheet(generated)
    sheet = with_decisions(generated, given)
    cases = reviewed(generated, given)
    terminal.write_csv(review, sheet)
    # Judged by what was generated: questions that a review drops leave no work to do.
    code = stage.write(cases, complete=len(generated) >= wanted.questions)
    _print_questions(stage, cases, generated.attrs["dropped"])
    decided = int((sheet["decision"] != "").sum())
    click.echo(
        stage.say("generate.review", file=one_line(review), reviewed=decided, n=len(generated))
    )
    _note_findings(cases, scenario.lang)
    click.echo(stage.closing(generated.attrs["account"]))
    return code


def _print_questions(stage: Stage, cases: pd.DataFrame, dropped: Mapping[str, int]) -> None:
    """Print how many questions there are, of which kinds, and how many were left out for which reason."""
    say = stage.say
    wanted = stage.scenario.generation.questions
    click.echo(say("generate.written", n=len(cases), wanted=wanted, out=one_line(stage.out)))
    kinds = {
        kind: int((cases["kind"] == kind).sum()) for kind in ("single", "multi", "unanswerable")
    }
    click.echo(say("generate.kinds", **kinds, documents=cases["doc_name"].nunique()))
    if dropped:
        counts = [f"{n} {say(f'generate.{why}')}" for why, n in dropped.items()]
        click.echo(say("generate.dropped", counts=", ".join(counts)))


def _note_findings(cases: pd.DataFrame, lang: str) -> None:
    """Note what a check of gold sets finds wrong with the questions."""
    from ragnb.traces import check_gold

    findings = check_gold(cases.rename(columns={"source_units": "gold_ids"}), lang=lang)
    for text in findings.query("not fine")["text"]:
        terminal.note(text)
