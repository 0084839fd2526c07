"""`ragnb check`: a run held against its gates, as an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb.cli.parameters import FILE, options, overrides
from ragnb.cli.terminal import BAD_INPUT, BLOCKED, PASSED, plain, text_table
from ragnb.errors import RagnbError
from ragnb.files import write_whole

if TYPE_CHECKING:
    from ragnb.assessment import Assessment


@click.command("check")
@click.argument("source", required=False, type=FILE)
@options("check")
def check_command(
    source: Path | None, gold: Path | None, traces: Path | None, scores: Path | None, markdown: Path | None,
    json_file: Path | None, junit: Path | None, parameters: Sequence[str], lang: str | None,
) -> int:  # fmt: skip
    """Hold a run against its gates, without a kernel.

    SOURCE is a scenario (.yaml) or any results file. Without one, name traces and gold, or scores.
    Prints the verdict, the gates and the notes.

    \b
    Examples
      ragnb check scenarios/quickstart.yaml
      ragnb check my_ragas.csv
      ragnb check --gold gold.json --traces traces.jsonl --markdown gates.md --junit gates.xml

    Exit code: 0 passed, 1 blocked by a gate, 2 bad or incomplete input.
    """
    from ragnb.assessment import assess
    from ragnb.diagnostics import gates_json, gates_junit
    from ragnb.scenario import Scenario

    # As typed, these are relative to the working directory; a scenario would take them from its own folder.
    files = {"gold": gold, "traces": traces, "scores": scores}
    given: dict[str, Any] = {role: path.absolute() for role, path in files.items() if path is not None}
    if source is None and not given:
        raise RagnbError("nothing to check; name a scenario, a results file, --traces with --gold, or --scores")
    settings = overrides(parameters, lang)
    sheet = assess(Scenario(**given), **settings) if source is None else assess(source, **given, **settings)
    click.echo("\n".join(_lines(sheet)))
    if markdown is not None:
        write_whole(markdown, sheet.to_markdown())
    if json_file is not None:
        write_whole(json_file, gates_json(sheet.gates, notes=sheet.notes))
    if junit is not None:
        write_whole(junit, gates_junit(sheet.gates, name=sheet.scenario.name, lang=sheet.scenario.lang))
    return BAD_INPUT if sheet.incomplete else BLOCKED if sheet.blocked else PASSED


def _lines(sheet: Assessment) -> Iterator[str]:
    """Yield a sheet in lines: the verdict, the gates, the notes."""
    from ragnb.assessment.front import said
    from ragnb.assessment.parts import Writer
    from ragnb.assessment.tables import more, outcome
    from ragnb.diagnostics import gate_mark
    from ragnb.markup import count

    w = Writer(sheet, linked=False)
    yield plain(sheet.verdict)
    if len(w.gates):
        rows = [["", w.term("gate"), w.say("column.asks"), w.term("mean"), "n", w.term("outcome"), w.term("more")]]
        for gate in w.gates.to_dict("records"):
            seen = [w.interval(str(gate["metric"]), gate), count(gate["n"]), outcome(w, gate), more(w, gate)]
            rows.append([gate_mark(gate), str(gate["gate"]), w.asks(gate), *seen])
        yield ""
        yield from text_table(rows)
    if len(sheet.notes):
        yield ""
        yield from (f"- {plain(text)}" for text in said(w))
