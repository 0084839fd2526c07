"""``ragnb inspect``: say how files are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ragnb.cli import terminal
from ragnb.cli.terminal import BAD_INPUT, PASSED, command
from ragnb.errors import RagnbError
from ragnb.markup import one_line


@command("inspect")
def inspect_command(files: Sequence[Path], lang: str | None, encoding: str | None) -> int:
    """Say what each FILE is, and print the line that reads it.

    Shows what the file is taken for, its columns and their meaning, the columns that may be metrics with
    their ranges, and what is missing for more. Nothing is scored or written.

    \b
    Examples
      ragnb inspect results.csv
      ragnb inspect .deepeval/.latest_run_full.json logs/*.eval

    Exit code: 0 if every file can be read, 2 if one cannot.
    """
    from ragnb.inputs import inspect_file

    worst = PASSED
    for i, path in enumerate(files):
        try:
            card = inspect_file(path, encoding=encoding, lang=terminal.speaking())
            click.echo("\n".join([*[""] * (i > 0), *map(one_line, str(card).splitlines())]))
        except (RagnbError, OSError) as error:
            terminal.complain(error, path)
            worst = BAD_INPUT
    return worst
