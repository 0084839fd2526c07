"""Where paid work is kept, so that it is never lost and never paid for twice: one SQLite file."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing, unknown
from ragnb.schema import without_secrets
from ragnb.store.cells import Call, Cell, Outcome, canonical, digest
from ragnb.store.database import PARTS, in_words, insert, is_empty, open_store

_CLAIMS = "SELECT owner, count(*), max(until) FROM claims GROUP BY owner"
_APART = (
    "Give each system a run of its own, such as by ragnb judge SCENARIO -p 'where={system: NAME}' with the same "
    "--store (what is judged already is not judged again), and compare those runs"
)


class Store:
    """Cells, the calls that they took and what came of them, in one file that survives ``kill -9``.

    Several processes may work on one store at a time: a cell is claimed before it is paid for. A claim ends
    with the process that holds it, at its date, or when it has given no sign of life for `lease` seconds on our
    own clock, whatever its date. A store of version 1 is read, and brought to today's version to be written.

    Parameters
    ----------
    path : str, Path or None
        The file, made where there is none; None keeps all in memory, for this process alone.
    lease : float
        Seconds.
    new : bool
        Whether a store is made of a file that is empty or not there; False to read only.

    Raises
    ------
    RagnbError
        For a file that is no store or of another version (it is left as it is), or a file system without
        write-ahead logging.

    Examples
    --------
    >>> cells = [Cell("s1", "faithfulness", {"answer": "Yes."}), Cell("s2", "faithfulness", {"answer": "No."})]
    >>> with Store(None) as store:
    ...     run = store.plan(cells, name="first")
    ...     _ = store.put([(cells[1], Outcome.of(0.5))])
    ...     store.frame(run)[["sample_id", "what", "status", "value"]]
      sample_id          what   status value
    0        s1  faithfulness  pending  None
    1        s2  faithfulness       ok   0.5
    """

    def __init__(self, path: str | Path | None, *, lease: float = 60.0, new: bool = True) -> None:
        self.path = Path(path) if path is not None else None
        self.lease = lease
        self._owner = json.dumps([_place(), os.getpid(), None, uuid.uuid4().hex, time.time()])
        # Of holders: the last sign of life, and until when it counts
        self._signs: dict[str, tuple[tuple[float, int], float]] = {}
        self.taken_over: list[str] = []  # of whom, for the run to tell
        self._lock = threading.RLock()
        with in_words(self.path), ExitStack() as parts:
            self._file = open_store(self.path, lease, new, parts)
            self._parts = parts.pop_all()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        with self._lock:
            self._parts.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path) if self.path else None!r})"

    def _query(self, query: str, **values: Any) -> list[Any]:
        with self._lock, in_words(self.path):
            return self._file.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing; when the block has ended, what it wrote survives a crash."""
        with self._lock, in_words(self.path):
            try:
                self._file.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                # One of the holders of cells must be the writer; readers need no lock.
                owners = self._file.execute("SELECT DISTINCT owner FROM claims")
                writers = " or ".join(str(_holder(owner)) for (owner,) in owners) or "another process"
                raise RagnbError(
                    f"{self.path}: {writers} has been writing to this store for {self.lease:g} s; "
                    "stop it, then run the same again"
                ) from None
            with self._file:
                yield self._file

    # Runs and their cells

    def plan(self, cells: Sequence[Cell], *, name: str = "", about: Mapping[str, Any] | None = None) -> str:
        """Write down what a run is made of, in order, and return its id (8 hexadecimal digits).

        The same cells in the same order are the same run: planning them again takes it up. A cell that
        another run has done is not done again. `about` is kept with the run, as JSON; the latest stands.
        """
        run = digest(canonical([cell.key for cell in cells]))[:8]
        text = canonical(without_secrets(dict(about or {})))
        with self._writing() as file:
            if file.execute("SELECT 1 FROM runs WHERE run = ?", [run]).fetchone():
                file.execute(PARTS["again"], {"run": run, "name": _clean(name) or None, "about": about and text})
                return run
            insert(file, "runs", [(run, _now(), text, _clean(name))])
            missing = {cell.key: cell for cell in cells}
            for key in self._keys_of(cells, "SELECT key FROM cells"):
                del missing[key]
            insert(file, "cells", ((key, _clean(c.model), canonical(c.about)) for key, c in missing.items()))
            insert(file, "plan", ((run, n, c.key, _clean(c.cluster)) for n, c in enumerate(cells)))
        return run

    def _keys_of(self, cells: Iterable[Cell], query: str) -> set[str]:
        among = f"{query} WHERE key IN (SELECT value FROM json_each(:keys))"
        return {key for (key,) in self._query(among, keys=json.dumps([cell.key for cell in cells]))}

    def settled(self, cells: Iterable[Cell]) -> set[str]:
        """The keys of those cells that need no work: ``ok`` or ``not_applicable`` in any run."""
        return self._keys_of(cells, "SELECT key FROM (SELECT key FROM attempts WHERE status <> 'failed')")

    def mark(self) -> int:
        """The number of the latest attempt; a cell that failed after it is not open again in the same run."""
        return int(self._query("SELECT coalesce(max(id), 0) FROM attempts")[0][0])

    # Who works on what

    def claim(self, keys: Sequence[str], mark: int) -> tuple[set[str], set[str]]:
        """Claim cells by their keys; return those that are ours now, and those that another process holds.

        What has been done meanwhile, or has failed since `mark`, is neither. A claimed cell is ours until `put`
        or `release`.
        """
        with self._writing() as file:
            file.executemany("DELETE FROM claims WHERE owner = ?", [[owner] for owner in self._dead(file)])
            values = {"keys": json.dumps(keys), "mark": mark}
            owners = dict(file.execute(PARTS["open"], values).fetchall())
            claimed = {key for key, owner in owners.items() if owner is None}
            claims = [(key, self._owner, time.time() + self.lease) for key in claimed]
            file.executemany("INSERT INTO claims VALUES (?, ?, ?)", claims)
        return claimed, owners.keys() - claimed

    def _dead(self, file: sqlite3.Connection) -> list[str]:
        """Holders whose claims are over.

        A claim's date is of its holder's clock, which may differ from ours, and both may be set while we wait. So
        it says only how long to wait from the moment when we first saw it, at most one lease.
        """
        dead, now = [], time.monotonic()
        for owner, n, until in file.execute(_CLAIMS):
            holder, sign, left = _holder(owner), (until, n), until - time.time()
            if owner not in self._signs or self._signs[owner][0] != sign:
                self._signs[owner] = sign, now + min(left, self.lease)
            if holder.is_gone or (owner != self._owner and now >= self._signs[owner][1]):
                dead.append(owner)
                if left > 0 and not holder.is_gone:
                    self.taken_over.append(f"{holder} gave no sign of life; its {n} cells are taken over")
        return dead

    def claims(self) -> pd.DataFrame:
        """Return who holds cells of any run.

        Returns
        -------
        DataFrame
            One row a holder: ``process`` (its id), ``host, cells, since`` (when it opened the store; None where it
            does not say) and ``until`` (when its claims end unless it renews them), both in UTC.
        """
        holders = [(_holder(owner), n, until) for owner, n, until in self._query(_CLAIMS)]
        rows = [(who.process, who.host, n, _date(who.since), _date(until)) for who, n, until in holders]
        return pd.DataFrame(rows, columns=PARTS["frames"]["claims"], dtype=object)

    def renew(self) -> None:
        """Give a sign of life: our claims hold for another `lease` seconds."""
        with self._writing() as file:
            file.execute("UPDATE claims SET until = ? WHERE owner = ?", [time.time() + self.lease, self._owner])

    def release(self) -> None:
        """Give up all our claims."""
        with self._writing() as file:
            file.execute("DELETE FROM claims WHERE owner = ?", [self._owner])

    # What was paid for

    def put(self, items: Iterable[Call | tuple[Cell, Outcome]], refused: Iterable[int] = ()) -> list[int]:
        """Write calls, and outcomes of planned cells, durably: when this returns, they survive a crash.

        Every outcome is an attempt of its own, and none is ever overwritten. The first ``ok`` of a cell stands;
        without one, the latest. Of calls that are `refused`, by their numbers, the replies are kept and not used
        again, so that the same request is sent anew.

        Returns
        -------
        list of int
            The numbers of the calls and attempts.

        Raises
        ------
        RagnbError
            For a cell that no run has planned, and where the disk refuses.
        """
        with self._writing() as file:
            file.executemany("UPDATE calls SET key = NULL WHERE id = ?", [[number] for number in refused])
            return [self._put(file, item) for item in items]

    def _put(self, file: sqlite3.Connection, item: Call | tuple[Cell, Outcome]) -> int:
        if isinstance(item, Call):
            row = (_text(item.reply), item.tag, item.tokens_in, item.tokens_out, _now(), item.key)
            return insert(file, "calls", [row])
        cell, outcome = item
        if not file.execute("SELECT 1 FROM cells WHERE key = ?", [cell.key]).fetchone():
            raise RagnbError(f"cell {cell.sample_id!r}, {cell.what!r} belongs to no run; plan it first")
        file.execute("DELETE FROM claims WHERE key = ? AND owner = ?", [cell.key, self._owner])
        return insert(file, "attempts", [(
            cell.key, outcome.status, None if outcome.value is None else canonical(outcome.value),
            _clean(outcome.reason), _text(list(outcome.replies)),
            outcome.calls, outcome.tokens_in, outcome.tokens_out, float(outcome.seconds), _now(),
        )])  # fmt: skip

    def get(self, key: str) -> tuple[int, Call] | None:
        """Return the number and the latest call of a key that has a reply; None where there is none yet."""
        query = "SELECT id, reply, tag, tokens_in, tokens_out FROM calls WHERE key = :key ORDER BY id DESC LIMIT 1"
        for number, reply, *more in self._query(query, key=key):
            return number, Call(key, json.loads(reply), *more)
        return None

    # Frames

    def frame(self, run: str) -> pd.DataFrame:
        """Return a run as it stands, one row a cell, in the order of its plan.

        Returns
        -------
        DataFrame
            ``sample_id, what, repeat, model, cluster, status, value, reason, reply, calls, tokens_in,
            tokens_out, seconds, at, key``. `status` is ``ok``, ``not_applicable``, ``failed`` or ``pending``;
            `value` is the JSON value (dtype object); `reply` the last raw reply. What is not there is None.

        Raises
        ------
        RagnbError
            For a run that the store does not hold.
        """
        return self._frame(run, "latest")

    def history(self, run: str) -> pd.DataFrame:
        """Return every attempt at the cells of a run, oldest first, with the columns of `frame`."""
        return self._frame(run, "all")

    def _frame(self, run: str, attempts: str) -> pd.DataFrame:
        names = [name for (name,) in self._query("SELECT run FROM runs ORDER BY id DESC")]
        if run not in names:
            raise unknown("run", run, names)
        rows = []
        for about, reply, replies, value, *rest in self._query(PARTS["attempts_of"][attempts], run=run):
            cell, texts = json.loads(about), [json.loads(reply)] if reply else json.loads(replies or "[]")
            row = dict(zip(PARTS["frames"]["attempts"], rest, strict=True))
            rows.append(cell | row | {"value": json.loads(value or "null"), "reply": texts[-1] if texts else None})
        return pd.DataFrame(rows, columns=PARTS["frames"]["run"], dtype=object)

    def runs(self) -> pd.DataFrame:
        """Return all runs, the oldest first.

        Returns
        -------
        DataFrame
            ``run, name, started, last`` (of its latest attempt), ``models, cells`` (distinct), ``ok,
            not_applicable, failed, pending, calls, tokens_in, tokens_out, seconds``. What was spent counts every
            attempt; a cell that two runs share counts in both. Tokens are None where an endpoint did not tell.
            ``stopped_early`` (1 or 0) where its gates were settled before all was judged, with ``calls_saved``.
        """
        rows = self._query(PARTS["runs"])
        return pd.DataFrame(rows, columns=PARTS["frames"]["runs"], dtype=object)

    def scores(self, run: str) -> pd.DataFrame:
        """Return the scores of a run as a frame: one row a sample (and repeat), one column a metric.

        Raises
        ------
        RagnbError
            For a run that the store does not hold, and one of several systems.
        """
        frame = self.frame(run)
        about = json.loads(self._query("SELECT about FROM runs WHERE run = :run", run=run)[0][0])
        _refuse_systems(frame, run, about.get("systems", ()))
        return _scores(frame)


class _Holder(NamedTuple):
    """A process that holds cells; on this host and in this container it is known whether it `is_gone`."""

    process: int | None = None
    host: str = "?"
    since: float | None = None
    is_gone: bool = False

    def __str__(self) -> str:
        return f"process {self.process or '?'} on {self.host}"


def _place() -> str:
    """Return the name of the space in which process ids mean something: host and container."""
    with suppress(OSError):
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    return f"{socket.gethostname()} ?"  # without /proc nobody knows who is gone


def _holder(owner: str) -> _Holder:
    """Read the name of a holder; one of version 1 names its place otherwise, and may not say since when."""
    try:
        place, process, _, _, *since = json.loads(owner)
        gone = place == _place() and not (place.endswith("?") or Path(f"/proc/{int(process)}").exists())
        return _Holder(int(process), place.partition(" ")[0], float(since[0]) if since else None, gone)
    except (TypeError, ValueError, AttributeError):
        return _Holder()


StoreLike = Store | str | Path | None


@contextmanager
def opened(store: StoreLike, *, new: bool = True) -> Iterator[Store]:
    """Open a store by its path; one that is open already stays open, and without `new` no file is made."""
    if isinstance(store, Store):
        yield store
        return
    there = store is not None and (new or (Path(store).exists() and not is_empty(Path(store))))
    with Store(store if there else None, new=new or not there) as kept:
        yield kept


def systems_of(cases: pd.DataFrame) -> list[str]:
    """Return the names of the systems whose answers these are, as a run keeps them: its cells do not tell."""
    return sorted({str(name) for name in cases.get("system", ()) if not pd.isna(name)})


def _refuse_systems(frame: pd.DataFrame, run: str, systems: Sequence[str]) -> None:
    """Refuse a run of several systems, named or seen by its answers: their mean says nothing of any of them."""
    task = frame["what"].str.partition("/")[0]  # rubric/contexts and rubric/alone judge the same
    answers = frame.groupby([frame["sample_id"].map(repr), task, "repeat"], sort=False)["key"].nunique()
    if (answers > 1).any():
        sample, what = answers.sort_values(ascending=False).index[0][:2]
        raise RagnbError(
            f"run={run!r} holds {answers.max()} answers to sample {sample} ({what}), as of several systems; their "
            f"mean says nothing of any of them. {_APART}"
        )
    if len(systems) > 1:
        raise RagnbError(f"run={run!r} holds several systems: {listing(systems)}; compare one with one. {_APART}")


def _scores(frame: pd.DataFrame) -> pd.DataFrame:
    """The numbers of the cells, a column a metric, with the status of those that have none."""
    rows: dict[tuple[Any, Any], dict[str, Any]] = {}
    for cell in frame.to_dict("records"):
        row = rows.setdefault((cell["sample_id"], cell["repeat"]), {"doc_name": cell["cluster"]})
        if cell["status"] == "ok":
            parts = cell["value"] if isinstance(cell["value"], dict) else {cell["what"]: cell["value"]}
            numbers = {k: v for k, v in parts.items() if isinstance(v, int | float) and not isinstance(v, bool)}
            row |= {str(name): float(value) for name, value in numbers.items()}
    table = pd.DataFrame(list(rows.values()), dtype=object)
    table.insert(0, "sample_id", [str(sample) for sample, _ in rows])
    return table


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _date(seconds: float | None) -> str | None:
    """Seconds since 1970 as a date; None for what lies beyond the calendar."""
    date: Any = pd.to_datetime(seconds or np.nan, unit="s", utc=True, errors="coerce")
    return None if pd.isna(date) else str(date.isoformat(timespec="seconds"))


def _clean(text: str | None) -> str | None:
    """A lone surrogate as ``\\udXXX``: SQLite takes only UTF-8, and what was paid for must be kept."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _text(value: Any) -> str | None:
    return _clean(json.dumps(value, ensure_ascii=False))
