"""``ragnb init``: write a scenario for a file."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ragnb.cli import terminal
from ragnb.cli.terminal import PASSED, command
from ragnb.errors import RagnbError
from ragnb.files import write_whole


@command("init")
def init_command(file: Path, out: Path, lang: str | None, encoding: str | None) -> int:
    """Write a commented scenario for FILE.

    It names the file and the settings that reading it needs, and shows the others as comments. It loads as
    it is: ragnb check SCENARIO. A file that is there already is not replaced.

    \b
    Examples
      ragnb init results.csv
      ragnb init logs/answers.jsonl --out scenarios/production.yaml

    Exit code: 0 written, 2 if the file cannot be read or OUT exists.
    """
    from ragnb.inputs import inspect_file

    if out.exists():
        raise RagnbError(f"{out} exists; name another file with --out")
    card = inspect_file(file, encoding=encoding, lang=terminal.speaking())
    text = card.to_scenario(out.absolute().parent)
    write_whole(out, text)
    # The second line, below a comment, names the file.
    has_ratings = "ratings:" in text.splitlines()[1]
    name = "calibrate" if has_ratings else "check"
    click.echo(f"ragnb {name} {shlex.quote(str(out))}")
    return PASSED
