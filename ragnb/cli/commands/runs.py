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
    if verify + claims + (export is not None) + bool(runs) > 1:
        raise RagnbError(say("runs.one_action"))
    if verify:
        examination = examined(store)
        examination.file.close()
        whole = "runs.broken" if examination.wrong else "runs.whole"
        click.echo(say(whole, store=one_line(store), version=VERSION, **examination.rows))
        save = f"ragnb runs {shlex.quote(str(store))} --export saved.jsonl"
        return _outcome(
            examination.wrong, f"{say('runs.save', command=save)} {_recover(store, say)}"
        )
    if export is not None:
        rows = list(exported(store))
        write_whole(export, "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows))
        end = rows[-1]
        click.echo(say("runs.exported", file=one_line(export), **end["rows"]))
        lost = say("runs.lost", damaged=end["damaged"], **end["lost"])
        return _outcome(end["wrong"], f"{lost} {_recover(store, say)}")
    if len(runs) > 1:
        raise RagnbError(
            f"{len(runs)} runs are given; give one, or compare two: "
            f"ragnb compare {store}#{runs[-1]} {store}#{runs[0]}"
        )
    with Store(store, new=False) as opened:
        if runs:
            found_runs = _run(opened.frame(runs[0]), say)
        else:
            found_runs = _runs(opened.runs(), say)
        click.echo("\n".join(_claims(opened.claims(), say) if claims else found_runs))
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
    if claims.empty:
        return iter([say("runs.unclaimed")])
    words = ["process", "host", "cells", "since", "until"]
    shown = claims[words].fillna({"process": "?"}).fillna("—").astype(str)
    return _table(say, words, shown.replace(r"\+00:00$", "", regex=True).to_numpy())


def _runs(runs: pd.DataFrame, say: Any) -> Iterator[str]:
    if runs.empty:
        return iter([say("runs.none")])
    counts = ["cells", "ok", "not_applicable", "failed", "pending", "calls"]
    dates = ["started", "last"]
    tokens = [
        f"{count(sent)} + {count(got)}"
        for sent, got in runs[["tokens_in", "tokens_out"]].to_numpy()
    ]
    early = [f" ({say('runs.stopped_early')})" * int(stopped) for stopped in runs["stopped_early"]]
    took = [f"{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}" for s in map(round, runs["seconds"])]
    shown = runs.assign(tokens=tokens, took=took)
    shown["pending"] = [f"{count(n)}{word}" for n, word in zip(runs["pending"], early, strict=True)]
    shown[dates] = runs[dates].map(lambda date: str(date or "—")[:16].replace("T", " "))
    words = ["run", "name", *counts, "tokens", "took", "models", *dates]
    return _table(say, words, shown[words].replace("", None).to_numpy(object))


def _run(cells: pd.DataFrame, say: Any) -> Iterator[str]:
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
