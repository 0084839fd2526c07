"""``ragnb runs``: what a store holds."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import BAD_INPUT, PASSED, command
from ragnb.errors import RagnbError
from ragnb.files import write_whole
from ragnb.markup import count, one_line

if TYPE_CHECKING:
    import pandas as pd


@command("runs")
def runs_command(
    store: Path, runs: Sequence[str], lang: str, verify: bool, export: Path | None, claims: bool
) -> int:
    """List the runs in a store, or show one of them.

    STORE is the file in which ragnb evaluate and ragnb judge save every call. A run is named by its id or the
    beginning of it.

    \b
    Examples
      ragnb runs runs.sqlite                      all runs: cells, tokens, models, dates
      ragnb runs runs.sqlite 3fa1c2d4             one run: cells by status, and reasons of failures
      ragnb runs runs.sqlite --claims             processes that have claimed cells
      ragnb runs runs.sqlite --verify             whether the store is intact; changes nothing
      ragnb runs runs.sqlite --export all.jsonl   every run, cell, attempt, call and reply, without keys

    To compare two runs: ragnb compare runs.sqlite#9b07aa10 runs.sqlite#3fa1c2d4.

    For a damaged store, --export writes every row that can be read and prints how many are lost.

    Exit code: 0; 2 on bad input or a damaged store.
    """
    from ragnb.store import Store
    from ragnb.store.damage import examined, exported
    from ragnb.store.file import VERSION

    say = texts.load(lang)
    if not store.exists():
        raise RagnbError(
            f"{store}: there is no such store; name the file that judging or scoring wrote"
        )
    n_actions = verify + claims + (export is not None) + bool(runs)
    if n_actions > 1:
        raise RagnbError(say("runs.one_action"))
    if verify:
        examination = examined(store)
        examination.file.close()
        key = "runs.broken" if examination.wrong else "runs.whole"
        click.echo(say(key, store=one_line(store), version=VERSION, **examination.rows))
        command = f"ragnb runs {shlex.quote(str(store))} --export saved.jsonl"
        save = say("runs.save", command=command)
        return _outcome(examination.wrong, f"{save} {_recover(store, say)}")
    if export is not None:
        rows = list(exported(store))
        exported_lines = [json.dumps(row, ensure_ascii=True) + "\n" for row in rows]
        write_whole(export, "".join(exported_lines))
        end = rows[-1]  # which counts the rows, and says what is lost
        click.echo(say("runs.exported", file=one_line(export), **end["rows"]))
        lost = say("runs.lost", damaged=end["damaged"], **end["lost"])
        return _outcome(end["wrong"], f"{lost} {_recover(store, say)}")
    if len(runs) > 1:
        raise RagnbError(
            f"{len(runs)} runs are given; give one, or compare two: "
            f"ragnb compare {store}#{runs[-1]} {store}#{runs[0]}"
        )
    lines: Iterable[str]
    with Store(store, new=False) as opened:
        if claims:
            lines = _claims(opened.claims(), say)
        elif runs:
            lines = _run(opened.frame(runs[0]), say)
        else:
            lines = _runs(opened.runs(), say)
        click.echo("\n".join(lines))
    return PASSED


def _recover(store: Path, say: Any) -> str:
    """Name SQLite's own repair, which may find rows that it does not read."""
    command = f"sqlite3 {shlex.quote(str(store))} .recover"
    return str(say("runs.recover", command=command))


def _outcome(wrong: Sequence[str], next_step: str) -> int:
    """Print the problems of a store and the next step."""
    if wrong:
        click.echo("\n".join([*terminal.as_list(wrong), next_step]))
        return BAD_INPUT
    return PASSED


def _table(say: Any, words: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table with translated column heads."""
    return terminal.text_table([[say(f"runs.{word}") for word in words], *rows])


def _claims(claims: pd.DataFrame, say: Any) -> Iterator[str]:
    """Yield the lines of the processes that have claimed cells."""
    if claims.empty:
        return iter([say("runs.unclaimed")])
    words = ["process", "host", "cells", "since", "until"]
    shown = claims[words].fillna({"process": "?"}).fillna("—").astype(str)
    # The times are in UTC, as the heads say.
    shown = shown.replace(r"\+00:00$", "", regex=True)
    return _table(say, words, shown.to_numpy())


def _runs(runs: pd.DataFrame, say: Any) -> Iterator[str]:
    """Yield the lines of all runs of a store."""
    if runs.empty:
        return iter([say("runs.none")])
    counts = ["cells", "ok", "not_applicable", "failed", "pending", "calls"]
    dates = ["started", "last"]
    tokens = []
    for sent, received in runs[["tokens_in", "tokens_out"]].to_numpy():
        tokens.append(f"{count(sent)} + {count(received)}")
    pending = []
    for n, is_stopped_early in zip(runs["pending"], runs["stopped_early"], strict=True):
        text = count(n)
        if is_stopped_early:  # the gates are decided: nobody waits for these cells
            text += f" ({say('runs.stopped_early')})"
        pending.append(text)
    shown = runs.assign(tokens=tokens, pending=pending, took=runs["seconds"].map(_duration))
    shown[dates] = runs[dates].map(lambda date: str(date or "—")[:16].replace("T", " "))
    words = ["run", "name", *counts, "tokens", "took", "models", *dates]
    # An empty text becomes None, which the table writes as a dash.
    return _table(say, words, shown[words].replace("", None).to_numpy(object))


def _duration(seconds: float) -> str:
    """Write a time as 1:02:03."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _run(cells: pd.DataFrame, say: Any) -> Iterator[str]:
    """Yield the lines of one run: how its cells ended, and why some failed."""
    import pandas as pd

    statuses = ["ok", "not_applicable", "failed", "pending"]
    words = ["sample_id", "what", "reason", "reply"]
    by_status = pd.crosstab(cells["what"], cells["status"])
    by_status = by_status.reindex(index=cells["what"].unique(), columns=statuses, fill_value=0)
    yield from _table(say, ["what", *statuses], by_status.reset_index().to_numpy(object))
    failed = cells.loc[cells["status"] == "failed", words]
    if len(failed):
        yield ""
        rows = [[one_line(cell or "—", 100) for cell in row] for row in failed.to_numpy(object)]
        yield from _table(say, words, rows)
