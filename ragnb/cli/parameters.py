"""Settings on the command line: ``-p key=value``, the value as YAML, read as strictly as a scenario."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from ragnb.cli.terminal import plain
from ragnb.errors import RagnbError

FILE = click.Path(path_type=Path)
PARAM = click.option(
    "-p", "parameters", multiple=True, metavar="KEY=VALUE",
    help="A setting of the scenario for this run only, its value as YAML; blank keeps the scenario's. Repeatable.",
)  # fmt: skip

_ASSIGNED = re.compile(r"""\b(missing|scale|human|judged?)=(?:\(([^\s,]+), ([^\s)]+)\)|["']?([^\s"';,]+)["']?)""")


def missing_mark(text: str) -> float | str:
    """Return a number that stands for no score, or the word for all that lies outside the scale.

    Examples
    --------
    >>> missing_mark("-1"), missing_mark("outside")
    (-1.0, 'outside')
    """
    try:
        return "outside" if text == "outside" else float(text)
    except ValueError:
        raise click.BadParameter(f"{plain(text)!r} is neither a number nor the word outside.") from None


def as_options(text: str) -> str:
    """Return a message that names arguments with the options of the command line instead.

    Examples
    --------
    >>> as_options("say missing=-1, or scale=(-1, 1); human='…'")
    'say --missing -1, or --scale -1 1; --human …'
    """
    return _ASSIGNED.sub(lambda m: f"--{m[1]} {' '.join(filter(None, m.groups()[1:]))}", text)


def overrides(parameters: Iterable[str]) -> dict[str, Any]:
    """Read ``key=value`` texts into fields of a scenario; the scenario checks their values.

    Raises
    ------
    RagnbError
        For a name that is no field, with the near ones, and for a value that is not plain YAML.

    Examples
    --------
    >>> overrides(["level=0.9", "metric_weights={faithfulness: 2}"])
    {'level': 0.9, 'metric_weights': {'faithfulness': 2}}
    """
    from ragnb.scenario import Scenario
    from ragnb.scenario.source import read_text

    found: dict[str, Any] = {}
    for text in parameters:
        key, sign, value = text.partition("=")
        if not sign:
            raise RagnbError(f"-p {plain(text)!r} is not KEY=VALUE; write, for example, -p level=0.9")
        Scenario.without_files().replace(**{key: None})  # refuses a name that is no field
        if key in found:
            raise RagnbError(f"-p {key} stands here twice; keep one")
        read = read_text(f"{key}: {value}", Path(f"-p {key}=…")).data
        if set(read) != {key}:
            raise RagnbError(f"-p {key}: the value holds further keys; put it in quotes")
        found[key] = _spaced(key, read[key])
    return found


def _spaced(key: str, value: Any) -> Any:
    """Refuse ``{faithfulness:2}``, which to YAML is a long name without a value."""
    for name, item in value.items() if isinstance(value, dict) else ():
        if item is None and ":" in name:
            raise RagnbError(f"-p {key}: {plain(name)!r} has no value; put a space after the colon")
    return value
