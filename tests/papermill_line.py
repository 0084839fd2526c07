"""The command line of papermill in this process, which has imported what it needs; the kernel is its own."""

from __future__ import annotations

from click.testing import CliRunner


def papermill(*words: object) -> tuple[int, str]:
    """Return the exit code, and what was printed with the error that ended the run."""
    from papermill.cli import papermill as command

    done = CliRunner().invoke(command, [str(word) for word in words])
    return done.exit_code, f"{done.output}{done.exception or ''}"
