"""``ragnb check``: decide the gates of a run, with an exit code."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import BAD_INPUT, BLOCKED, PASSED, command
from ragnb.errors import RagnbError

if TYPE_CHECKING:
    from ragnb.sheet import Assessment
    from ragnb.sheet.formatter import Formatter


@command("check")
def check_command(
    source: Path | None,
    parameters: Sequence[str],
    lang: str | None,
    sample: float | None,
    **asked: Path | None,
) -> int:
    """Check a run against its quality gates.

    SOURCE is a scenario (.yaml), a file with results or a log of answers. Without it, give --traces and
    --gold, or --scores. Prints the verdict, the gates and the notes.

    \b
    Examples
      ragnb check scenarios/quickstart.yaml
      ragnb check my_ragas.csv
      ragnb check --gold gold.json --traces traces.jsonl --markdown gates.md --junit gates.xml
      ragnb check scenarios/production.yaml --sample 0.01
      ragnb check log.jsonl --to-label gold.csv

    Exit code: 0 passed, 1 blocked by a gate, 2 bad or incomplete input.
    """
    from ragnb.diagnostics import gates_json
    from ragnb.scenario import Scenario
    from ragnb.sheet import assess
    from ragnb.sheet.formatter import Formatter
    from ragnb.sheet.heroes import hero_of
    from ragnb.texts import load

    # As typed, these are relative to the working directory; a scenario would take them from its own folder.
    given: dict[str, Any] = {}
    for role in ("gold", "traces", "scores"):
        path = asked[role]
        if path is not None:
            given[role] = path.absolute()
    if source is None:
        _need_answers(given, asked)
    settings = terminal.overrides(parameters, lang)
    if sample is not None:
        settings["sample"] = sample
    if source is None:
        sheet = assess(Scenario(**given), **settings)
    else:
        sheet = assess(source, **given, **settings)
    to_label = asked["to_label"]
    if to_label and sheet.log is None:
        raise RagnbError(
            f"--to-label {to_label}: only traces without gold have questions to label; leave it out"
        )
    writer = Formatter(sheet)
    lines = terminal.report_lines([sheet.verdict], _tables(writer), sheet.notes["text"].tolist())
    click.echo("\n".join(lines))
    action = hero_of(writer).action
    if action is not None:
        next_line = load(sheet.scenario.lang)("sheet.next_line", command=action.command)
        click.echo(f"\n{next_line}\n  {action.what}")
    as_json = partial(gates_json, sheet.gates, notes=sheet.notes)
    if to_label and sheet.log is not None:
        # With a byte order mark: people fill the file in with a spreadsheet, and some need the mark to read UTF-8.
        terminal.write_csv(to_label, sheet.log.to_label, mark="\ufeff")
    terminal.write_files(asked, markdown=sheet.to_markdown, json_file=as_json, junit=sheet.to_junit)
    if sheet.incomplete:
        terminal.on_stderr(_repair(sheet, source or asked["scores"] or asked["traces"]))
        return BAD_INPUT
    if sheet.blocked:
        return BLOCKED
    return PASSED


def _need_answers(given: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse a command that names no answers; where an option took the file to read, say so."""
    if not given:
        outputs = {"json_file": "--json gates.json", "markdown": "--markdown check.md"}
        for output, example in outputs.items():
            path = asked.get(output)
            if path is not None and path.is_file():
                raise RagnbError(
                    f"nothing to check: {example.split()[0]} took {str(path)!r} as the file to write; name the "
                    f"file to read and one to write: ragnb check {path} {example}"
                )
        raise RagnbError(
            "nothing to check; name a scenario, a results file, a log, --traces, or --scores"
        )
    if set(given) == {"gold"}:
        raise RagnbError(
            f"--gold {asked['gold']}: a gold set has the questions, and no answers; name the file with the "
            "answers too: --traces traces.jsonl"
        )


def _tables(writer: Formatter) -> list[tuple[str, list[list[str]]]]:
    """Return the tables that the terminal shows, each with its caption: the gates, and those of a log."""
    from ragnb.markup.blocks import Table
    from ragnb.sheet.daily import daily_table
    from ragnb.sheet.sections.gates import gate_list

    sheet = writer.sheet
    tables = []
    gates = gate_list(writer)
    if gates is not None:
        tables.append(("", terminal.block_rows(gates)))
    if sheet.log is None:
        return tables
    blocks: list[Any] = [daily_table(writer)]
    for key in ("wording", "label"):
        section = sheet.section(key)
        if section is not None:
            blocks += section.blocks
    # Charts and paragraphs are for pages.
    of_log = [block for block in blocks if isinstance(block, Table)]
    return tables + [(block.caption, terminal.block_rows(block)) for block in of_log]


def _repair(sheet: Assessment, source: Path | None) -> str:
    """Return what to do about lines that could not be read: repair them, or accept that they are lost."""
    share_read = sheet.gates.loc[sheet.gates["reason"] == "incomplete", "value"].min()
    # Rounded up: the share that is accepted must reach the one that is lost.
    share_lost = math.ceil(1000 * (1 - share_read)) / 1000
    setting = shlex.quote(f"allow={{lines: {share_lost:g}}}")
    lines = sheet.notes.loc[sheet.notes["code"] == "bad_lines", "text"]
    say = texts.load(terminal.speaking())
    return str(say("cli.repair", source=source, lines=" ".join(lines), allow=f"-p {setting}"))
