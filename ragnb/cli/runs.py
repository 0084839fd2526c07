"""`ragnb runs`: what a store of paid work holds, and how two of its runs differ."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli.parameters import FILE, options
from ragnb.cli.terminal import BAD_INPUT, PASSED, text_table
from ragnb.errors import RagnbError
from ragnb.files import write_whole
from ragnb.markup import count, number, one_line, with_interval

if TYPE_CHECKING:
    import pandas as pd

    from ragnb.store import Store


@click.command("runs")
@click.argument("store", type=FILE)
@click.argument("runs", nargs=-1, metavar="[RUN [RUN]]")
@options("runs")
def runs_command(
    store: Path, runs: Sequence[str], lang: str, verify: bool, export: Path | None, claims: bool
) -> int:
    """List the runs of paid work in a store, look into one, or compare two.

    STORE is the file that judging and scoring keep their cells in. A run is named by its id, or the beginning
    of it.

    \b
    Examples
      ragnb runs runs.sqlite                      all runs: cells, tokens, models, dates
      ragnb runs runs.sqlite 3fa1c2d4             one run: its cells by status, and why some failed
      ragnb runs runs.sqlite --claims             who holds cells, since when and until when
      ragnb runs runs.sqlite --verify             whether the store is whole; changes nothing
      ragnb runs runs.sqlite --export all.jsonl   every run, cell, attempt, call and reply, without keys
      ragnb runs runs.sqlite 3fa1c2d4 9b07aa10    what changed from the first to the second, with intervals

    Runs that are compared hold one system each. Of a damaged store, --export writes every row that can be read,
    and says how many are lost.

    Exit code: 0; 2 on bad input and for a damaged store.
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
    if len(runs) > 2:
        raise RagnbError(f"{len(runs)} runs are named; name none, one, or two to compare")
    with Store(store, new=False) as opened:
        if claims:
            click.echo("\n".join(_claimed(opened.claims(), say)))
            return PASSED
        known = opened.runs()
        ids = [_found(run, [str(name) for name in known["run"]]) for run in runs]
        if len(ids) == 2:
            lines = _compared(opened, ids[0], ids[1], say)
        elif ids:
            lines = _shown(opened.frame(ids[0]), say)
        else:
            lines = _listed(known, say)
        click.echo("\n".join(lines))
    return PASSED


def _found(asked: str, names: list[str]) -> str:
    """The one run that begins with what was asked for."""
    found = [name for name in names if name.startswith(asked)]
    if len(found) != 1:
        listed = ", ".join(found or names) or "none"
        what = "begins several runs" if found else "is no run of this store"
        raise RagnbError(f"run={one_line(asked)!r} {what} (have: {listed})")
    return found[0]


def _verified(store: Path, say: Any) -> int:
    from ragnb.store.database import VERSION, verified

    counts, wrong = verified(store)
    if not wrong:
        click.echo(say("runs.whole", store=one_line(store), version=VERSION, **counts))
        return PASSED
    click.echo(say("runs.broken", store=one_line(store), **{k: n for k, n in counts.items() if k != "claims"}))
    click.echo("\n".join(f"- {one_line(finding)}" for finding in wrong))
    click.echo(say("runs.save", command=f"ragnb runs {shlex.quote(str(store))} --export saved.jsonl"))
    return BAD_INPUT


def _exported(store: Path, file: Path, say: Any) -> int:
    from ragnb.store.database import exported

    if file.exists() and file.samefile(store):
        raise RagnbError(f"{file}: this is the store itself; name another file")
    rows = list(exported(store))
    write_whole(file, "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows))
    end = rows[-1]
    click.echo(say("runs.exported", file=one_line(file), **{k: n for k, n in end["rows"].items() if k != "plan"}))
    if not end["wrong"]:
        return PASSED
    click.echo("\n".join(f"- {one_line(finding)}" for finding in end["wrong"]))
    click.echo(say("runs.lost", damaged=end["damaged"], **end["lost"]))
    return BAD_INPUT


def _claimed(claims: pd.DataFrame, say: Any) -> Iterator[str]:
    if claims.empty:
        yield say("runs.unclaimed")
        return
    names = ["process", "host", "cells", "since", "until"]
    unknown = {"process": "?"}
    rows = [
        [str(row[name] or unknown.get(name, "—")).removesuffix("+00:00") for name in names]
        for row in claims.to_dict("records")
    ]
    yield from text_table([[say(f"runs.{name}") for name in names], *rows])


def _listed(runs: pd.DataFrame, say: Any) -> Iterator[str]:
    if runs.empty:
        yield say("runs.none")
        return
    words = ["run", "name", "cells", "ok", "not_applicable", "failed", "pending", "calls", "tokens", "took"]
    rows = [[say(f"runs.{word}") for word in (*words, "models", "started", "last")]]
    for run in runs.to_dict("records"):
        numbers = [count(run[word]) for word in words[2:8]]
        tokens = " + ".join(count(run[word]) for word in ("tokens_in", "tokens_out"))
        dates = [str(run[word] or "—")[:16].replace("T", " ") for word in ("started", "last")]
        spent = [tokens, _took(run["seconds"])]
        rows.append([run["run"], run["name"] or "—", *numbers, *spent, run["models"] or "—", *dates])
    yield from text_table(rows)


def _took(seconds: float) -> str:
    """Seconds as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _shown(frame: pd.DataFrame, say: Any) -> Iterator[str]:
    statuses = ["ok", "not_applicable", "failed", "pending"]
    rows = [[say("runs.what"), *(say(f"runs.{status}") for status in statuses)]]
    for what, part in frame.groupby("what", sort=False):
        found = part["status"].value_counts()
        rows.append([str(what), *(count(found.get(status, 0)) for status in statuses)])
    yield from text_table(rows)
    failed = frame[frame["status"] == "failed"]
    if len(failed):
        yield ""
        names = ["sample_id", "what", "reason", "reply"]
        cells = [[one_line(cell[name] or "—", 100) for name in names] for cell in failed.to_dict("records")]
        yield from text_table([[say(f"runs.{name}") for name in names], *cells])


def _compared(store: Store, old: str, new: str, say: Any) -> Iterator[str]:
    table = store.compare(old, new)
    if table.empty:
        yield say("runs.nothing_shared", old=old, new=new)
        return
    rows = [[say(f"runs.{word}") for word in ("metric", "old", "new", "difference", "n", "clusters", "changed")]]
    for row in table.to_dict("records"):
        means = [number(row["old"]), number(row["new"]), with_interval(row["value"], row["low"], row["high"])]
        rows.append([row["metric"], *means, *(count(row[word]) for word in ("n", "n_clusters", "n_changed"))])
    yield from text_table(rows)
