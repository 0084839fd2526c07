"""Output of commands: plain lines, aligned tables, files; notes and errors as single lines on stderr."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from ragnb.cli.parameters import as_options
from ragnb.errors import RagnbWarning, worded
from ragnb.files import write_whole
from ragnb.markup import one_line
from ragnb.markup.blocks import Table
from ragnb.texts import LANGUAGES
from ragnb.texts.errors import translated

Rows = Sequence[Sequence[str]]
PASSED, BLOCKED, BAD_INPUT, NOT_PROVEN, OUR_ERROR, STOPPED = 0, 1, 2, 3, 70, 130


def text_table(rows: Rows) -> Iterator[str]:
    """Yield rows with aligned columns; a CJK character is two cells wide.

    Examples
    --------
    >>> list(text_table([["召回率", "0.8"], ["recall", "0.7"]]))
    ['召回率  0.8', 'recall  0.7']
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(_places, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = [cell + " " * (width - _places(cell)) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(padded).rstrip()


def report_lines(head: Iterable[str], tables: Sequence[tuple[str, Rows]], notes: Sequence[str]) -> Iterator[str]:
    """Yield what a command says of a run: its first lines, tables below their names, and notes."""
    yield from map(one_line, head)
    for name, rows in tables:
        yield from ("", one_line(name)) if len(tables) > 1 else ("",)
        yield from text_table(rows)
    if notes:
        yield ""
        yield from (f"- {one_line(text)}" for text in notes)


def block_rows(table: Table) -> list[list[str]]:
    """Return the heads and rows of a block as texts for a terminal."""
    from ragnb.markup.markdown import cell, read

    heads, rows = read(table)
    return [[head.removeprefix(">") for head in heads], *([cell(one, one_line) for one in row] for row in rows)]


def _places(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def write_files(*files: tuple[Path | None, Callable[[], str]]) -> None:
    """Write each requested file; folders are created, and an existing file is replaced."""
    for path, content in files:
        if path is not None:
            write_whole(path, content())


@contextmanager
def notes() -> Iterator[None]:
    """Print ragnb's warnings as notes, each once; other warnings are unchanged."""
    seen: set[str] = set()
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, RagnbWarning):
            usual(message, category, *place, **more)
        elif str(message) not in seen:
            seen.add(str(message))
            note(str(message))

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


_SPOKEN = ["en"]


def speak(args: Sequence[str]) -> None:
    """Set the language of errors and notes from --lang, -p lang=… or the scenario.

    The scenario itself may be invalid, so its file is searched instead of loaded.

    Examples
    --------
    >>> speak(["check", "x.csv", "--lang", "zh"])
    >>> spoken("stopped")
    '已停止'
    >>> speak([])
    """
    words = "\n".join(args)
    asked = set(re.findall(r"(?m)^--lang[=\n](\w+)$", words) or re.findall(r"(?m)^-p\n?lang=(\w+)$", words))
    for name in args if not asked else ():
        if name.lower().endswith((".yaml", ".yml")):
            with suppress(OSError), open(name, encoding="utf-8", errors="replace") as file:
                line = re.search(r"(?m)^lang: *[\"']?(\w+)", file.read(100_000))
                asked.add(line[1] if line else "en")
    _SPOKEN[0] = asked.pop() if len(asked) == 1 and asked <= set(LANGUAGES) else "en"


def speaking() -> str:
    """Return the language of this command."""
    return _SPOKEN[0]


def spoken(message: str) -> str:
    """Translate an English message into the language of this command."""
    return translated(message, _SPOKEN[0])


def complain(error: Exception, about: object = None) -> None:
    """Print an error as one line on stderr."""
    words = as_options(spoken(worded(error)))
    where = f"{about}: " if about is not None and str(about) not in words else ""
    on_stderr(where + words)


def note(text: str) -> None:
    """Print one note on stderr."""
    on_stderr(f"{spoken('note')}: {spoken(text)}")


def on_stderr(text: str) -> None:
    """Print text on stderr as one line, prefixed with ragnb."""
    click.echo(f"ragnb: {one_line(text)}", err=True)
