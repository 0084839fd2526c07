"""Refusals of the command line itself: the word that is wrong, the choices, and a line that works."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from inspect import cleandoc
from itertools import takewhile

import click

from ragnb.cli.terminal import OPTION_EXAMPLES
from ragnb.errors import RagnbError, did_you_mean, near_names
from ragnb.markup import one_line

# Of 100: an option is taken for a setting of the scenario only if it looks like one.
_NEAR_SETTING = 75


def usage_refusal(
    error: click.ClickException, command: click.Command | None, args: Sequence[str]
) -> RagnbError:
    """Return what click refuses, with an example.

    Parameters
    ----------
    error : ClickException
        The refusal.
    command : Command, optional
        The command that was asked for, if there is one.
    args : sequence of str
        The words of the command line.
    """
    if isinstance(error, click.NoSuchOption):
        return _unknown_option(error, command, args)
    message = one_line(error.format_message())
    sentence = message.rstrip(".")
    # Of click's two errors about an option, one has the parameter and the other the flag.
    flag = getattr(error, "option_name", None)
    parameter = getattr(error, "param", None)
    if isinstance(parameter, click.Option):
        flag = parameter.opts[0]
    name = str(command.name) if command else ""
    example = OPTION_EXAMPLES.get(f"{name} {flag}") or OPTION_EXAMPLES.get(str(flag))
    if example:
        # A flag without its value: what follows it is what was meant as one.
        given = ""
        if isinstance(error, click.BadOptionUsage):
            given = _words_after(str(flag), args)
        found = f" Found {given!r}." if given else ""
        return RagnbError(f"{sentence}.{found} Write, for example, {flag} {example}.")
    line = example_line(command) if command else ""
    if line:
        return RagnbError(f"{sentence}. Write, for example, {line}.")
    return RagnbError(message)


def example_line(command: click.Command) -> str:
    """Return the first example in the help of a command.

    Examples
    --------
    >>> from ragnb.cli import cli
    >>> example_line(cli.commands["calibrate"])
    'ragnb calibrate ratings.csv'
    """
    lines = [line.strip() for line in cleandoc(command.help or "").splitlines()]
    examples = [line for line in lines if line.startswith(f"ragnb {command.name} ")]
    if examples:
        # Several spaces set an example off from what it is for.
        return examples[0].partition("   ")[0].strip()
    return ""


def _unknown_option(
    error: click.NoSuchOption, command: click.Command | None, args: Sequence[str]
) -> RagnbError:
    """Return the refusal of an option; one that is a setting of the scenario is named as such."""
    from ragnb.scenario import Scenario

    options: list[str] = []
    if command:
        options = [flag for parameter in command.params for flag in parameter.opts]
    flags = sorted({flag for flag in options if flag.startswith("--")} | {"--help"})
    name = one_line(error.option_name)
    refusal = f"No such option {name!r}; {did_you_mean(name, flags)}"
    setting = name.lstrip("-").replace("-", "_")
    near_settings = near_names(setting, Scenario.model_fields, most=1, least=_NEAR_SETTING)
    is_near_flag = bool(near_names(name, flags, least=_NEAR_SETTING))
    if not near_settings or "-p" not in options or is_near_flag:
        return RagnbError(refusal)
    value = _words_after(name, args).split(" ")[0] or "…"
    written = shlex.quote(f"{near_settings[0]}={value}")
    return RagnbError(f"{refusal}. A setting of the scenario is written -p {written}")


def _words_after(flag: str, args: Sequence[str]) -> str:
    """Return the words between a flag and the next one, or behind its equals sign."""
    words: list[str] = []
    for place, word in enumerate(args):
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
        if word == flag:
            following = args[place + 1 :]
            # Up to the next "--": a single "-" may begin a negative number.
            words += takewhile(lambda word: not word.startswith("--"), following)
    return " ".join(words)
