"""`ragnb compare`: compare a run with a baseline; the outcome is also an exit code for CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import pandas as pd

from ragnb import texts
from ragnb.cli.terminal import (
    BLOCKED,
    NOT_PROVEN,
    PASSED,
    as_options,
    block_rows,
    command,
    overrides,
    pair,
    report_lines,
    spoken,
    write_files,
)
from ragnb.errors import RagnbError
from ragnb.files import json_text

_CODES = {"better": PASSED, "same": PASSED, "undecided": NOT_PROVEN, "worse": BLOCKED}
"""Exit code of each outcome, from best to worst."""


@command("compare")
def compare_command(new: str, base: str | None, **asked: Any) -> int:
    """Compare a NEW run with a BASE run.

    The comparison is paired: it uses the questions that both sides have.

    NEW and BASE are tables of scores, scenarios, run folders, names of scenarios with a run in reports/ (latest is
    the newest run), or runs of a store (runs.sqlite#3fa1c2d4). BASE may also be a system of NEW, and can be left
    out if the scenario sets baseline:.

    The first line gives the outcome for the metric that decides: better, worse, same or inconclusive. Same means
    that the whole confidence interval is within the margin, by default 1/20 of the metric's range.

    \b
    Examples
      ragnb compare new.csv base.csv
      ragnb compare scores.csv old_system --by doc_name
      ragnb compare latest reports/mine/20260101T000000Z-1f0c2a3b --html compare.html
      ragnb compare runs.sqlite#9b07aa10 runs.sqlite#3fa1c2d4
      ragnb compare mine.yaml baseline.csv --gate --margin 0.02 --junit compare.xml

    Exit code: 0; 2 on bad input. With --gate: 0 better or same, 1 worse, 3 inconclusive; with several candidates,
    the worst of them.
    """
    from ragnb.comparison.view import compare_view

    try:
        how = {name: asked[name] for name in ("candidate", "system", "on", "by", "metrics", "primary")}
        settings = overrides(asked["parameters"], asked["lang"])
        view, table, slices = compare_view(new, base, settings=settings, margin=_margin(asked["margin"]), **how)
        decides = table.loc[table["primary"], "outcome"]
        if asked["gate"] and decides.empty:
            raise RagnbError("--gate needs a metric that decides; name it with --primary")
    except RagnbError as error:
        raise RagnbError(as_options(spoken(str(error)), "compare")) from error
    outcome = next((word for word in reversed(_CODES) if word in set(decides)), None)
    head = view.head or [texts.load(view.lang)("compare.no_word")]
    tables = [(name, block_rows(table)) for name, table in view.tables]
    click.echo("\n".join(report_lines(head, tables, view.notes)))
    write_files(
        (asked["markdown"], view.markdown),
        (asked["html"], view.html),
        (asked["json_file"], lambda: _json(outcome, view.notes, table, slices)),
        (asked["junit"], lambda: _junit(view.title, table, view.lang)),
    )
    return _CODES[outcome] if asked["gate"] and outcome else PASSED


def _margin(given: Sequence[str]) -> float | dict[str, float] | None:
    """Read the margins: one number for all metrics, or NAME=VALUE texts."""
    plain = len(given) == 1 and "=" not in given[0]
    pairs = {"": given[0]} if plain else dict(pair("--margin", "context_recall=0.02", text) for text in given)
    margins = {}
    for name, value in pairs.items():
        try:
            margins[name] = float(value)
        except ValueError:
            raise RagnbError(f"--margin {value!r} is not a number; write 0.02, or context_recall=0.02") from None
    return margins[""] if plain else margins or None


def _json(outcome: str | None, notes: list[str], table: pd.DataFrame, slices: pd.DataFrame | None) -> str:
    from ragnb.diagnostics.gates import plain_records

    parts = {"outcome": outcome, "notes": notes, "metrics": plain_records(table)}
    return json_text(parts if slices is None else parts | {"slices": plain_records(slices)})


def _junit(title: str, table: pd.DataFrame, lang: str) -> str:
    """Return a test suite with one case per metric; the one that decides fails if it is worse."""
    from ragnb.comparison.view import headline
    from ragnb.diagnostics import junit

    kinds, cases, say = {"worse": "failure", "undecided": "skipped"}, [], texts.load(lang)
    for row in table.to_dict("records"):
        kind = kinds.get(row["outcome"], "system-out") if row["primary"] else "system-out"
        cases.append((f"{row['candidate']}: {row['metric']}", kind, row["outcome"], headline(row, say)))
    return junit(title, cases)
