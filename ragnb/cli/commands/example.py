"""``ragnb example``: write the samples into a folder."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import PASSED, command
from ragnb.markup import one_line


@command("example")
def example_command(folder: Path, lang: str | None) -> int:
    """Write sample data, scenarios and notebooks to DIR.

    DIR is a new folder. Prints three commands to go on with; the guides use the same files.

    \b
    Example
      ragnb example demo

    Exit code: 0 written, 2 if DIR exists.
    """
    from ragnb.example import write_example

    say = texts.load(lang or terminal.speaking())
    new = write_example(folder)
    # The report needs the extra "notebook"; without it, what the core can do.
    has_notebooks = find_spec("papermill") is not None
    next_commands = [
        "check scores.csv",
        "compare scenarios/quickstart.yaml scenarios/quickstart_weak.yaml",
        f"{'report' if has_notebooks else 'check'} scenarios/quickstart.yaml",
    ]
    click.echo(say("example.written", folder=one_line(new)))
    for next_command in next_commands:
        name, *files = next_command.split()
        words = ["ragnb", name, *(str(new / file) for file in files)]
        click.echo(f"  {shlex.join(words)}")
    return PASSED
