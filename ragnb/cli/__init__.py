"""The command line: every command has an exit code, and every error is one line on stderr."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

import click

from ragnb import __version__
from ragnb.cli.commands import COMMANDS
from ragnb.cli.terminal import (
    BAD_INPUT,
    BY_SIGNAL,
    OUR_ERROR,
    PASSED,
    complain,
    notes,
    on_stderr,
    speak,
    spoken,
)
from ragnb.cli.usage import usage_refusal
from ragnb.errors import MissingExtraError, RagnbError
from ragnb.markup import one_line
from ragnb.schema.secrets import masked
from ragnb.signals import interruptible, number_of

COMMANDS_BY_NAME = {str(command.name): command for command in COMMANDS}


@click.group(
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="ragnb")
def cli() -> None:
    """Evaluate a RAG system: is it good enough, what to fix first, and can its judge be trusted?"""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    args : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        0 passed, 1 blocked, 2 bad input, 3 not proven; 130, 143 or 129 after Ctrl-C, SIGTERM or SIGHUP; 70 for an
        internal error of ragnb, which says nothing about the run and must not look like a blocking gate.
    """
    # A Windows terminal may not be UTF-8; a stream that a test puts in their place may have no such setting.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    if args is None:
        # A process of its own: with the usual 700, collecting garbage during imports is a fifteenth of its time.
        gc.set_threshold(50_000)
        words = sys.argv[1:]
    else:
        words = list(args)
    speak(words)
    try:
        with notes(), interruptible():
            return int(cli.main(args=args, prog_name="ragnb", standalone_mode=False) or PASSED)
    except click.ClickException as error:
        command = COMMANDS_BY_NAME.get(next(iter(words), ""))
        path = f"ragnb {command.name}" if command else "ragnb"
        refusal = spoken(str(usage_refusal(error, command, words)))
        # Masked, as it may repeat an API key from the command line.
        on_stderr(f"{masked(one_line(refusal))} {spoken('See')}: {path} --help")
    except (RagnbError, MissingExtraError, OSError) as error:
        # The terminal is gone, nobody reads on.
        if isinstance(error.__context__, KeyboardInterrupt):
            return BY_SIGNAL + number_of(error)
        complain(error)
    except (KeyboardInterrupt, click.Abort) as stop:
        with suppress(OSError):  # the terminal may be gone
            on_stderr(spoken(str(stop.__cause__ or stop) or "stopped"))
        return BY_SIGNAL + number_of(stop)
    except Exception:
        traceback.print_exc()
        on_stderr(
            spoken("this is an error of ragnb, not of your input; please report the lines above")
        )
        return OUR_ERROR
    return BAD_INPUT
