"""``ragnb verify``: whether a run made again would be the same."""

from __future__ import annotations

from pathlib import Path

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import BLOCKED, PASSED, command
from ragnb.markup import one_line


@command("verify")
def verify_command(run: Path, lang: str | None) -> int:
    """Compute a RUN again, and say whether its tables are the same byte by byte.

    RUN is a folder of ragnb report. Its inputs are read where they were, with its own settings; nothing is sent
    and nothing in the folder changes. Where a table differs, the inputs, settings and versions that moved are
    named.

    \b
    Examples
      ragnb verify reports/mine/20261127T213654Z-9bbc492a

    Exit code: 0 the same, 1 if a table differs or an input is gone, 2 on bad input.
    """
    from ragnb.report.verify import verify

    say = texts.load(lang or terminal.speaking())
    checks = verify(run, lang=lang or terminal.speaking())
    key = "same" if checks.same else "different"
    click.echo(say(f"verify.{key}", run=one_line(run)))
    for row in checks.moved.to_dict("records"):
        words = {name: one_line(row[name], 200) or "—" for name in ("name", "then", "now")}
        click.echo("- " + say(f"verify.{row['what']}", **words))
    if not checks.same and set(checks.moved["what"]) == {"table"}:
        click.echo(say("verify.nothing"))
    if checks.same:
        return PASSED
    return BLOCKED
