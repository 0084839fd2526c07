"""Input and output of commands: arguments and settings, aligned tables, files, notes and errors."""

from __future__ import annotations

import ast
import math
import re
import shlex
import tomllib
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ragnb.cli.outputs import Output, check_outputs
from ragnb.errors import RagnbError, RagnbWarning, worded
from ragnb.files import write_whole
from ragnb.markup import count, one_line
from ragnb.markup.blocks import Table
from ragnb.schema.secrets import masked, refuse_secrets
from ragnb.texts import LANGUAGES
from ragnb.texts.errors import translated

Rows = Sequence[Sequence[str]]
# Exit codes.
PASSED = 0
BLOCKED = 1
BAD_INPUT = 2
NOT_PROVEN = 3
OUR_ERROR = 70  # EX_SOFTWARE of sysexits.h
BY_SIGNAL = 128  # and the number of the signal, as shells have it
STOPPED = BY_SIGNAL + 2
TERMINATED = BY_SIGNAL + 15
HUNG_UP = BY_SIGNAL + 1


def text_table(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield rows with aligned columns; a CJK character is two cells wide. Counts are written as everywhere.

    Examples
    --------
    >>> list(text_table([["召回率", 1234], ["recall", None]]))
    ['召回率  1,234', 'recall  —']
    """
    cells = [[_written(cell) for cell in row] for row in rows]
    widths = [max(map(_places, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = [
            # Not `ljust`, which counts characters, not the columns of a terminal that they take.
            cell + " " * (width - _places(cell))
            for cell, width in zip(row, widths, strict=True)
        ]
        yield "  ".join(padded).rstrip()


def _written(cell: object) -> str:
    """Return a cell as text on one line."""
    if cell is None:
        return "—"
    if isinstance(cell, int):
        return count(cell)
    return one_line(cell)


def report_lines(
    head: Iterable[str], tables: Sequence[tuple[str, Rows]], notes: Sequence[str]
) -> Iterator[str]:
    """Yield what a command says of a run: its first lines, tables below their names, and notes."""
    yield from map(one_line, head)
    for name, rows in tables:
        yield ""
        if len(tables) > 1:  # one alone needs no name
            yield one_line(name)
        yield from text_table(rows)
    if notes:
        yield ""
        yield from as_list(notes)


def block_rows(table: Table) -> list[list[str]]:
    """Return the heads and rows of a block as texts for a terminal."""
    from ragnb.markup.rendering import cell, read

    heads, rows = read(table)
    titles = [head.removeprefix(">") for head in heads]  # the mark of a column of numbers
    return [titles, *([cell(content, one_line) for content in row] for row in rows)]


def _places(text: str) -> int:
    """Return how many places of a terminal a text takes: wide (W) and fullwidth (F) characters take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def write_files(asked: Mapping[str, Any], **contents: Callable[[], str]) -> None:
    """Write each file that an option asks for; folders are created, and an existing file is replaced."""
    for option, content in contents.items():
        if asked[option] is not None:
            write_whole(asked[option], content())


def write_csv(path: Path, table: Any, mark: str = "") -> None:
    """Write a table; Excel takes it for UTF-8 by a `mark` before it."""
    from ragnb.readers import to_csv_text

    write_whole(path, mark + to_csv_text(table))


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


# The language of errors and notes, and the command whose options they name. Both are set before the command line
# is parsed, so that an error in it is told in that language, too.
_SPOKEN = ["en", ""]


def speak(args: Sequence[str]) -> None:
    """Set the command of errors and notes, and their language from --lang, -p lang=… or the scenario.

    The scenario itself may be invalid, so its file is searched instead of loaded.

    Examples
    --------
    >>> speak(["check", "x.csv", "--lang", "zh"])
    >>> spoken("stopped")
    '已停止'
    >>> speak([])
    """
    words = "\n".join(args)
    # --lang zh, --lang=zh; -p lang=zh, -plang=zh
    languages = set(re.findall(r"(?m)^--lang[=\n](\w+)$", words))
    if not languages:
        languages = set(re.findall(r"(?m)^-p\n?lang=(\w+)$", words))
    if not languages:
        languages = _languages_of_scenarios(args)
    lang = "en"
    if len(languages) == 1 and languages <= set(LANGUAGES):
        lang = languages.pop()
    _SPOKEN[:] = (lang, next(iter(args), ""))


def _languages_of_scenarios(args: Iterable[str]) -> set[str]:
    """Return what the scenarios on a command line say as their language."""
    languages = set()
    for name in args:
        if name.lower().endswith((".yaml", ".yml")):
            with suppress(OSError), open(name, encoding="utf-8", errors="replace") as file:
                line = re.search(r"(?m)^lang: *[\"']?(\w+)", file.read(100_000))
                languages.add(line[1] if line else "en")
    return languages


def speaking() -> str:
    """Return the language of this command."""
    return _SPOKEN[0]


def spoken(message: str) -> str:
    """Translate an English message into the language of this command."""
    return translated(message, _SPOKEN[0])


def complain(error: Exception, about: object = None) -> None:
    """Print an error as one line on stderr, and below it the card of the file that it is about."""
    # A card of a file follows a message behind a blank line.
    message, _, card = worded(error).partition("\n\n")
    words = as_options(spoken(message), _SPOKEN[1])
    if about is not None and str(about) not in words:
        words = f"{about}: {words}"
    on_stderr(words)
    for line in card.splitlines():
        click.echo(one_line(line), err=True)


def note(text: str) -> None:
    """Print one note on stderr."""
    on_stderr(f"{spoken('note')}: {spoken(text)}")


def on_stderr(text: str) -> None:
    """Print text on stderr as one line, prefixed with ragnb."""
    click.echo(f"ragnb: {one_line(text)}", err=True)


def temperature(text: str) -> float | None:
    """Return a temperature, or None for a model without this parameter.

    Examples
    --------
    >>> temperature("0.7"), temperature("none")
    (0.7, None)
    """
    if text == "none":
        return None
    with suppress(ValueError):
        if 0 <= float(text) < math.inf:
            return float(text)
    raise click.BadParameter(
        f"{one_line(text)!r} is neither a number of at least 0 nor the word none"
    )


def missing_mark(text: str) -> float | str:
    """Return the number that means no score, or ``outside`` for all values outside the scale.

    Examples
    --------
    >>> missing_mark("-1"), missing_mark("outside")
    (-1.0, 'outside')
    """
    if text == "outside":
        return "outside"
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(
            f"{one_line(text)!r} is neither a number nor the word outside"
        ) from None


_TYPES = {
    "file": click.Path(path_type=Path),
    "output": Output(path_type=Path),
    "folder": click.Path(path_type=Path, file_okay=False),
    "language": click.Choice(LANGUAGES),
    "policy": click.Choice(["margin", "strict", "all"]),
    "stage": click.Choice(["generate", "answer", "evaluate", "judge", "report"]),
    "count": click.IntRange(min=1),
    "whole": int,
    "number": float,
    "temperature": temperature,
    "mark": missing_mark,
    "name": masked,
}
_OPTIONS = tomllib.loads(Path(__file__).with_name("options.toml").read_text(encoding="utf-8"))
OPTION_EXAMPLES: Mapping[str, str] = _OPTIONS["examples"]


def command(name: str) -> Callable[[Callable[..., int]], click.Command]:
    """Turn a function into the command of that name, with the arguments and options in ``options.toml``."""

    def make(command_function: Callable[..., int]) -> click.Command:
        @wraps(command_function)
        def function(**asked: Any) -> int:
            check_outputs(asked)
            return command_function(**asked)

        # In reverse, as with decorators, so that the help lists them in the order of the file.
        for flags, row in reversed(_OPTIONS[name].items()):
            settings = _OPTIONS["shared"].get(flags, {}) | row
            settings["type"] = _TYPES.get(settings.get("type", ""))
            if flags.startswith("-"):
                settings.setdefault("show_default", "default" in settings)
                function = click.option(*flags.split(), **settings)(function)
            else:
                function = click.argument(flags, **settings)(function)
        return click.command(name)(function)

    return make


# A call such as rn.assess(rn.read_traces('a.csv')), with no more than two calls inside each other in it.
_IN_CALL = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
# A list or mapping with a text in it, alone or given to a setting: metrics=['…'].
_LITERAL_AT_END = re.compile(r"(?P<setting>\b[a-z_]+=)?(?<!\w)(?P<literal>[\[{]\S*['\"].*[\]}])$")
_PYTHON_CALL = re.compile(rf"(\brn\.[a-z_]+\({_IN_CALL}\))")


def as_options(text: str, command: str = "") -> str:
    """Return a message with its Python arguments replaced by options of a command or scenario settings.

    Examples
    --------
    >>> as_options("say missing=-1, or scale=(-1, 1); human='…'", "calibrate")
    'say --missing -1, or --scale -1 1; --human …'
    >>> as_options("pass encoding='gb18030'")
    'pass -p encoding=gb18030 (YAML: encoding: gb18030)'
    >>> as_options("columns={'…': 'answer'}"), as_options("metrics=[rn.Metric('stars', 1, 5)]")
    ('-p "columns={…: answer}"', '-p "metrics=[{name: stars, low: 1, high: 5}]"')
    >>> as_options("corpus='complete' needs the document of each question")
    'corpus: complete needs the document of each question'
    >>> as_options("rn.read_cases('qa.csv', columns={'a': 'answer'})")  # a line of Python stays one
    "rn.read_cases('qa.csv', columns={'a': 'answer'})"
    >>> print(as_options("write gates=[{'name': 'recall', 'op': '>='}]"))
    write -p 'gates=[{name: recall, op: ">="}]'
    """
    # Every second part is a Python call, which stays as it is.
    parts = _PYTHON_CALL.split(text)
    # An option of the command goes before a setting of the scenario.
    for wording in (command, "settings"):
        for pattern, written in _OPTIONS["wording"].get(wording, {}).items():
            parts[::2] = [re.sub(pattern, written, part) for part in parts[::2]]
    # A message may hold several findings, one a line.
    lines = "".join(parts).split("\n")
    return "\n".join(map(_with_literal_as_yaml, lines))


def _with_literal_as_yaml(text: str) -> str:
    """Return a message with YAML in place of the Python literal, alone or given to a setting, that ends it."""
    from ragnb.scenario.source import flow

    fit = _LITERAL_AT_END.search(text)
    if fit is None:
        return text
    try:
        written = flow(ast.literal_eval(fit["literal"]))
    except (ValueError, SyntaxError):
        return text
    if fit["setting"]:
        written = f"-p {shlex.quote(fit['setting'] + written)}"
    return text[: fit.start()] + written


def overrides(parameters: Iterable[str], lang: str | None = None) -> dict[str, Any]:
    """Parse ``key=value`` texts and --lang into fields of a scenario; the scenario validates the values.

    Raises
    ------
    RagnbError
        For an unknown field, with suggestions, and for a value that is not plain YAML.

    Examples
    --------
    >>> overrides(["level=0.9", "metric_weights={faithfulness: 2}"])
    {'level': 0.9, 'metric_weights': {'faithfulness': 2}}
    """
    from ragnb.scenario import Scenario

    def check(key: str) -> None:
        # With None nothing is replaced, but an unknown name is refused.
        Scenario.without_files().replace(**{key: None})

    settings = _pairs("-p", "level=0.9", parameters, check)
    if lang:
        settings["lang"] = lang
    return settings


def sent(parameters: Iterable[str]) -> dict[str, Any]:
    """Parse ``key=value`` texts into the parameters sent with each call.

    Raises
    ------
    RagnbError
        For a value that is not plain YAML, a parameter that ragnb sets itself, and a key.

    Examples
    --------
    >>> sent(["seed=1", "reasoning_effort=low"])
    {'extra_body': {'seed': 1, 'reasoning_effort': 'low'}}
    """

    def check(key: str) -> None:
        why = _OPTIONS["never_sent"].get(key)
        if why:
            raise RagnbError(f"--send {key}: {why}")

    body = _pairs("--send", "seed=1", parameters, check)
    refuse_secrets(body, "--send")
    if body:
        return {"extra_body": body}
    return {}


def pair(flag: str, example: str, text: str) -> tuple[str, str]:
    """Split a ``key=value`` text of an option.

    Examples
    --------
    >>> pair("--about", "judge_id=small-8b", "judge_id=mine")
    ('judge_id', 'mine')
    """
    key, sign, value = text.partition("=")
    if not sign:
        given = masked(one_line(text))
        raise RagnbError(f"{flag} {given!r} is not KEY=VALUE; write, for example, {flag} {example}")
    return key, value


def _pairs(
    flag: str, example: str, texts: Iterable[str], check: Callable[[str], object]
) -> dict[str, Any]:
    """Parse ``key=value`` texts, whose values are YAML; `check` refuses keys."""
    from ragnb.scenario.source import read_text

    pairs: dict[str, Any] = {}
    for text in texts:
        key, written = pair(flag, example, text)
        check(key)
        if key in pairs:
            raise RagnbError(f"{flag} {key} appears twice; keep one")
        tree = read_text(f"{key}: {written}", Path(f"{flag} {key}=…")).data
        # A value of several lines may go on with keys of its own.
        if set(tree) != {key}:
            raise RagnbError(f"{flag} {key}: the value holds further keys; put it in quotes")
        value = tree[key]
        if isinstance(value, dict):
            for name, item in value.items():
                # {faithfulness:2} is a long name without a value to YAML.
                if item is None and ":" in name:
                    raise RagnbError(
                        f"{flag} {key}: {one_line(name)!r} has no value; put a space after the colon"
                    )
        pairs[key] = value
    return pairs


def as_list(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts as the lines of a list."""
    return (f"- {one_line(text)}" for text in texts)
