"""`ragnb runs`: list, inspect, verify and export the runs in a store."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pandas as pd

from ragnb import texts
from ragnb.cli.terminal import BAD_INPUT, PASSED, command, text_table
from ragnb.errors import RagnbError
from ragnb.files import write_whole
from ragnb.markup import count, one_line


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

    say = texts.load(lang)
    if not store.exists():
        raise RagnbError(f"{store}: there is no such store; name the file that judging or scoring wrote")
    if verify + claims + (export is not None) + bool(runs) > 1:
        raise RagnbError(say("runs.one_action"))
    if verify:
        return _verified(store, say)
    if export is not None:
        return _exported(store, export, say)
    if len(runs) > 1:
        raise RagnbError(
            f"{len(runs)} runs are given; give one, or compare two: "
            f"ragnb compare {store}#{runs[-1]} {store}#{runs[0]}"
        )
    with Store(store, new=False) as opened:
        if claims:
            lines = _claims(opened.claims(), say)
        elif not runs:
            lines = _runs(opened.runs(), say)
        else:
            lines = _run(opened.frame(runs[0]), say)
        click.echo("\n".join(lines))
    return PASSED


def _verified(store: Path, say: Any) -> int:
    from ragnb.store.store import VERSION, examined

    found = examined(store)
    found.file.close()
    whole = "runs.broken" if found.wrong else "runs.whole"
    click.echo(say(whole, store=one_line(store), version=VERSION, **found.rows))
    save = f"ragnb runs {shlex.quote(str(store))} --export saved.jsonl"
    return _outcome(found.wrong, say("runs.save", command=save))


def _exported(store: Path, file: Path, say: Any) -> int:
    from ragnb.store.store import exported

    if file.exists() and file.samefile(store):
        raise RagnbError(f"{file}: this is the store itself; name another file")
    rows = list(exported(store))
    write_whole(file, "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows))
    end = rows[-1]
    click.echo(say("runs.exported", file=one_line(file), **end["rows"]))
    return _outcome(end["wrong"], say("runs.lost", damaged=end["damaged"], **end["lost"]))


def _outcome(wrong: Sequence[str], next_step: str) -> int:
    """Print the problems of a store and the next step."""
    if not wrong:
        return PASSED
    click.echo("\n".join([*(f"- {one_line(finding)}" for finding in wrong), next_step]))
    return BAD_INPUT


def _table(say: Any, words: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table with translated column heads."""
    return text_table([[say(f"runs.{word}") for word in words], *rows])


def _claims(claims: pd.DataFrame, say: Any) -> Iterator[str]:
    if claims.empty:
        return iter([say("runs.unclaimed")])
    words = ["process", "host", "cells", "since", "until"]
    known = claims.assign(process=[process or "?" for process in claims["process"]])
    rows = [[str(cell or "—").removesuffix("+00:00") for cell in row] for row in known[words].to_numpy(object)]
    return _table(say, words, rows)


def _runs(runs: pd.DataFrame, say: Any) -> Iterator[str]:
    if runs.empty:
        return iter([say("runs.none")])
    counts = ["cells", "ok", "not_applicable", "failed", "pending", "calls"]
    rows = []
    for run in runs.to_dict("records"):
        tokens = " + ".join(count(run[word]) for word in ("tokens_in", "tokens_out"))
        minutes, seconds = divmod(round(run["seconds"]), 60)
        took = f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
        dates = [str(run[word] or "—")[:16].replace("T", " ") for word in ("started", "last")]
        numbers = [*(count(run[word]) for word in counts), tokens, took]
        numbers[4] += f" ({say('runs.stopped_early')})" if run["stopped_early"] else ""
        rows.append([run["run"], run["name"] or "—", *numbers, run["models"] or "—", *dates])
    return _table(say, ["run", "name", *counts, "tokens", "took", "models", "started", "last"], rows)


def _run(cells: pd.DataFrame, say: Any) -> Iterator[str]:
    statuses, words = ["ok", "not_applicable", "failed", "pending"], ["sample_id", "what", "reason", "reply"]
    by_status = pd.crosstab(cells["what"], cells["status"])
    by_status = by_status.reindex(index=cells["what"].unique(), columns=statuses, fill_value=0)
    rows = [[str(what), *map(count, numbers)] for what, *numbers in by_status.itertuples()]
    yield from _table(say, ["what", *statuses], rows)
    failed = cells.loc[cells["status"] == "failed", words]
    if len(failed):
        yield ""
        rows = [[one_line(cell or "—", 100) for cell in row] for row in failed.to_numpy(object)]
        yield from _table(say, words, rows)
