"""The line that a page proposes to run next, as it runs beside the files of the run."""

from __future__ import annotations

import re
import shlex
from typing import Any

from ragnb.markup.blocks import Action
from ragnb.sheet.formatter import Formatter

# What a terminal or a page would not show as it is.
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f`\u2028-\u202e\u2066-\u2069]")


def source_of(w: Formatter) -> str | None:
    """Return the arguments that name the run to a command; None of a frame in memory.

    Names are those of the files, without their folders, as everywhere on the page.
    """
    path = w.whole.scenario.path
    if path is not None:
        return shown_name(path.name)
    by_role = {file["role"]: shown_name(file["path"]) for file in w.whole.inputs}
    if None in by_role.values():
        return None
    # Several files of one role are fewer roles than files.
    if len(by_role) != len(w.whole.inputs):
        return None
    roles = set(by_role)
    if roles in ({"scores"}, {"traces"}):
        return next(iter(by_role.values()))
    if roles == {"traces", "gold"}:
        return f"--traces {by_role['traces']} --gold {by_role['gold']}"
    return None


def file_of(w: Formatter, *roles: str) -> str | None:
    """Return the name of the file that has the first of some roles; None where no file or several have it."""
    for role in roles:
        paths = [file["path"] for file in w.whole.inputs if file["role"] == role]
        if len(paths) == 1:
            return shown_name(paths[0])
        if paths:
            return None
    return None


def shown_name(name: Any) -> str | None:
    """Return a name as a shell takes it, None for one that cannot be shown as it is."""
    text = str(name)
    if _UNSHOWN.search(text) or text.startswith("-"):  # which a command takes for an option
        return None
    return shlex.quote(text)


def action(w: Formatter, key: str, command: str, **words: Any) -> Action | None:
    """Return a command on the files of the run, with what it does: ``action.<key>``; None of a frame in memory.

    ``{source}`` in the command becomes the arguments that name the run.
    """
    source = source_of(w)
    if source is None:
        return None
    return Action(command.replace("{source}", source), w.say(f"action.{key}", **words))
