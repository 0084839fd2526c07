"""What the generated pages are written with: prose of a language, targets, links and tables of Markdown."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@cache
def prose(name: str, lang: str) -> dict[str, Any]:
    """Return the prose of a page in a language."""
    return tomllib.loads((HERE / f"{name}.{lang}.toml").read_text(encoding="utf-8"))


def anchor(kind: str, name: str) -> str:
    """Return the anchor of an entry, such as ``metric-context-recall``."""
    return f"{kind}-{name}".replace("_", "-").lower()


def heading(kind: str, name: str, title: str, level: int = 3) -> str:
    """Return a heading that can be linked to by its anchor, and by its name as it is written."""
    targets = dict.fromkeys((anchor(kind, name), f"{kind}-{name}".lower()))
    return "\n".join(
        [*(f"({target})=" for target in targets), f"{'#' * level} {title[0].upper()}{title[1:]}"]
    )


def link(kind: str, name: str, text: str = "") -> str:
    """Return a link to an entry, from any page."""
    return f"[{text or f'`{name}`'}](#{anchor(kind, name)})"


def plain(text: str) -> str:
    """Return a text of the library so that Markdown shows it as it is; its placeholders become code."""
    text = re.sub(r"([\\*<\[\]])", r"\\\1", text)
    return re.sub(r"\{+(\w+)\}+", r"`\1`", text).replace("\n", " ")


def code(values: Iterable[object]) -> str:
    """Return values as code, with commas."""
    return ", ".join(f"`{value}`" for value in values)


def sentence(text: str) -> str:
    """Return a text with a mark at its end."""
    return (
        text
        if text.endswith((".", "。", "?", "？"))
        else text + ("。" if ord(text[-1]) > 0x2E80 else ".")
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return (
        "\n".join(
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines
        )
        + "\n"
    )


def page(*parts: str) -> str:
    """Return a page: its parts with a blank line between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def toctree(*names: str) -> str:
    """Return the list of the pages below this one."""
    return "\n".join(["```{toctree}", ":maxdepth: 1", "", *names, "```"])
