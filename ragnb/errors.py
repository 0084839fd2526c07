"""Exceptions, and helpers for their messages: the value, the choices and the next step."""

from __future__ import annotations

import errno
import importlib.util
import math
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from numbers import Integral
from os import PathLike
from types import ModuleType
from typing import Any

# More than any file has rows. An int has no end of its own, and one that no float holds fails in a division.
MOST_COUNTED = 10**12


class RagnbError(ValueError):
    """Invalid input. The command line turns it into exit code 2."""


class MissingExtraError(ImportError):
    """An optional package is needed but not installed; the message names the extra."""


class RagnbWarning(UserWarning):
    """Input that is accepted, with something the user should check."""


def outside() -> int:
    """Return the ``stacklevel`` of a warning at the line outside ragnb that led to it.

    Examples
    --------
    >>> outside() >= 1
    True
    """
    frame = sys._getframe(1)
    level = 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ragnb."):
        frame = frame.f_back
        level = level + 1
    return level


def near_names(name: str, choices: Iterable[str], most: int = 3, least: float = 60) -> list[str]:
    """Return the choices that look like `name` (by `least` of 100), the nearest first.

    Examples
    --------
    >>> near_names("faithfullness", ["faithfulness", "context_recall"])
    ['faithfulness']
    """
    from rapidfuzz import fuzz, process, utils

    near = process.extract(
        name,
        list(choices),
        scorer=fuzz.ratio,
        processor=utils.default_process,
        limit=most,
        score_cutoff=least,
    )
    return [str(choice) for choice, _, _ in near]


def listing(names: Iterable[object], most: int = 12) -> str:
    """Join names for a message, truncating a long list with the number of omitted names.

    Examples
    --------
    >>> listing(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    words = [str(name) for name in names]
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    if words:
        return ", ".join(words)
    return "none"


def not_a_frame(value: object, reader: str) -> RagnbError:
    """Return the error for an argument that is not a data frame, with the function that reads a file.

    Examples
    --------
    >>> str(not_a_frame("ratings.csv", "rn.read_ratings"))
    "'ratings.csv' is not a data frame; read the file first: rn.read_ratings('ratings.csv')"
    """
    if isinstance(value, str | PathLike):
        name = repr(str(value))
        return RagnbError(f"{name} is not a data frame; read the file first: {reader}({name})")
    return RagnbError(
        f"{type(value).__name__} is not a data frame; pass one, or read the file with {reader}"
    )


def place(file: object = None, line: int | None = None, key: str | None = None) -> str:
    """Return a place as text: ``file, line 3, key 'a'``, followed by a colon.

    Examples
    --------
    >>> place("s.yaml", 3, "doc_weights.a")
    "s.yaml, line 3, key 'doc_weights.a': "
    """
    words = [str(file)] if file is not None else []
    if line is not None:
        words.append(f"line {line}")
    if key is not None:
        words.append(f"key {key!r}")
    if words:
        return f"{', '.join(words)}: "
    return ""


def did_you_mean(name: object, choices: Collection[str]) -> str:
    """Return suggestions and choices for an unknown name.

    Examples
    --------
    >>> did_you_mean("faithfullness", ["faithfulness"])
    "did you mean 'faithfulness'? (have: faithfulness)"
    """
    near = near_names(str(name), choices)
    if near:
        hint = f"did you mean {' or '.join(map(repr, near))}? "
    else:
        hint = ""
    return f"{hint}(have: {listing(choices)})"


def unknown(what: str, name: object, choices: Collection[str], next_step: str = "") -> RagnbError:
    """Return the error for a name that is not among the choices.

    Examples
    --------
    >>> print(unknown("metric", "faithfullness", ["faithfulness"]))
    metric='faithfullness' is not known; did you mean 'faithfulness'? (have: faithfulness)
    """
    tail = f". {next_step}" if next_step else ""
    return RagnbError(f"{what}={name!r} is not known; {did_you_mean(name, choices)}{tail}")


def need_known(what: str, name: object, choices: Collection[str], next_step: str = "") -> None:
    """Refuse a name that is not among the choices.

    Examples
    --------
    >>> need_known("kind", "gate", ["gate", "comparison"])
    """
    if name not in choices:
        raise unknown(what, name, choices, next_step)


def need_columns(have: Iterable[object], names: Iterable[str], next_step: str = "") -> None:
    """Refuse a frame that lacks one of the columns.

    Examples
    --------
    >>> need_columns(["metric", "value"], ["metric", "values"])
    Traceback (most recent call last):
    ragnb.errors.RagnbError: column='values' is not known; did you mean 'value'? (have: metric, value)
    """
    there = [str(name) for name in have]
    for name in names:
        need_known("column", name, there, next_step)


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or raise an error that names its extra.

    Examples
    --------
    >>> require("json", "judge").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _not_installed(module, extra) from error


def need_package(name: str, extra: str) -> None:
    """Raise an error that names the extra of a package that is not installed, without importing it.

    For the `__init__` of a room whose every part needs the package.

    Examples
    --------
    >>> need_package("json", "notebook")
    """
    with suppress(ModuleNotFoundError):
        if importlib.util.find_spec(name) is not None:
            return
    raise _not_installed(name, extra)


def _not_installed(module: str, extra: str) -> MissingExtraError:
    return MissingExtraError(
        f'{module} is not installed; it comes with: pip install "ragnb[{extra}]"'
    )


def need_whole(name: str, value: Any) -> None:
    """Refuse an argument that is not a whole number of 1 or more, up to `MOST_COUNTED`.

    Examples
    --------
    >>> need_whole("n", 3)
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if is_whole and abs(int(value)) > MOST_COUNTED:
        # Python writes no number of more than 4,300 digits.
        sign = "" if value > 0 else "-"
        exponent = int(math.log10(abs(int(value))))
        raise RagnbError(
            f"{name} is about {sign}10^{exponent}; give a whole number of 1 or more, up to {MOST_COUNTED:,}"
        )
    if not is_whole or int(value) < 1:
        raise RagnbError(f"{name}={value!r}; give a whole number of 1 or more")


def worded(error: Exception) -> str:
    """Return the message of an error; those of the operating system include the file.

    Examples
    --------
    >>> worded(FileNotFoundError(2, "No such file", "a.csv"))
    'No such file: a.csv'
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"{error.filename}: the disk is full ({error.strerror}), and this file is as it was. Make room, then "
            "run the same again; calls that a store holds are not sent again"
        )
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}"
    return str(error)
