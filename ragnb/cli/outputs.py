"""What a command reads and what it writes: no option may name a file to write that the command reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb.errors import RagnbError
from ragnb.files import matched, refuse_overwriting

if TYPE_CHECKING:
    from ragnb.scenario import Scenario

_OF_SQLITE = ("", "-wal", "-shm")
"""The files of a store: SQLite keeps its log and an index of that beside it."""


class Output(click.Path):
    """A file that a command writes."""


def check_outputs(asked: Mapping[str, Any]) -> None:
    """Refuse the options of the current command that would destroy what it reads.

    Parameters
    ----------
    asked : mapping
        The command's arguments and options, as it is called with them.
    """
    command = click.get_current_context().command
    outputs = {}
    for parameter in command.params:
        path = asked.get(str(parameter.name))
        if isinstance(parameter.type, Output) and path is not None:
            outputs[parameter.opts[0]] = path
    if outputs:
        refuse_overwriting(outputs, _inputs(command, asked))


def check_stage_outputs(
    stage: str, source: Path, scenario: Scenario, outputs: Mapping[str, Path]
) -> None:
    """Refuse what a stage writes, by default or beside its table, where it would destroy what it reads."""
    refuse_overwriting(outputs, [source, *scenario_files(scenario, stage=stage)])


def _inputs(command: click.Command, asked: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the files that the arguments and options name, and those that these name in turn."""
    from ragnb.cli.terminal import overrides

    settings: dict[str, Any] = {}
    with suppress(RagnbError):  # the command says so itself, before it writes
        settings = overrides(asked.get("parameters") or ())
    for parameter in command.params:
        is_path = isinstance(parameter.type, click.Path) and not isinstance(parameter.type, Output)
        # Arguments, as those of compare, and a baseline are texts: each a file, a run, or the name of a system.
        may_be_path = isinstance(parameter, click.Argument) or parameter.name == "baseline"
        if not is_path and not may_be_path:
            continue
        value = asked.get(str(parameter.name))
        names = value if isinstance(value, tuple | list) else [value]
        for name in names:
            if isinstance(name, str | Path) and str(name):
                yield from _files_of(str(name), settings, stage=str(command.name))


def _files_of(
    name: str, settings: Mapping[str, Any], *, stage: str = "", baseline: bool = True
) -> Iterator[Path]:
    """Yield the files behind a name: a file, a folder, a pattern, a scenario, a run of a report or of a store."""
    from ragnb.comparison.source import located
    from ragnb.inputs import scenario_of

    place = Path(located(name) or name)
    store, sign, _ = str(place).rpartition("#")  # runs.sqlite#3fa1c2d4
    if sign and Path(store).is_file():
        yield from store_files(Path(store))
    elif (place / "run.json").is_file():
        yield from (file for file in place.iterdir() if file.is_file())
    else:
        yield from matched(place)
        yield from store_files(place)
        # What is no scenario names no further files; the command itself says what is wrong with it.
        with suppress(RagnbError, OSError):
            scenario = scenario_of(place, settings)
            yield from scenario_files(scenario, stage=stage, baseline=baseline)


def scenario_files(scenario: Scenario, *, stage: str = "", baseline: bool = True) -> Iterator[Path]:
    """Yield every file that a run of a scenario reads, those of its baseline among them.

    The table of the `stage` that runs is left out, as it is written again.
    """
    from ragnb.inputs.stages import input_files

    yield from input_files(scenario, stage=stage)
    if baseline:
        for other in (scenario.baseline, scenario.anchor):
            if other is not None:
                # Not the baseline of a baseline: two scenarios may name each other.
                yield from _files_of(str(other), {}, baseline=False)


def store_files(store: Path) -> Iterator[Path]:
    """Yield the files of a store."""
    for suffix in _OF_SQLITE:
        yield store.with_name(store.name + suffix)
