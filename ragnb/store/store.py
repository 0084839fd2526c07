"""The store: one SQLite file with every judge call, so that none is lost or made twice.

The store, then its file: the tables, what is wrong with a file, and all that can be read of a damaged one. Last
the loop over cells: concurrent, each saved as it finishes, can be interrupted and resumed at any time.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import shlex
import socket
import sqlite3
import threading
import time
import tomllib
import traceback
import uuid
import warnings
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

import pandas as pd

from ragnb.errors import RagnbError, RagnbWarning, listing, unknown
from ragnb.progress import is_hidden
from ragnb.schema.secrets import without_secrets
from ragnb.signals import Interrupted, interruptible, number_of
from ragnb.store.client import (
    METER,
    Call,
    CallFailed,
    Cell,
    Client,
    Meter,
    Outcome,
    Send,
    Stop,
    canonical,
    digest,
)

VERSION = 3
PARTS = tomllib.loads(Path(__file__).with_name("store.toml").read_text(encoding="utf-8"))
COLUMNS: dict[str, list[str]] = PARTS["columns"]
_APPLICATION = b"ragn"
_MAGIC = b"SQLite format 3\0"
_OURS = re.compile(rb'CREATE TABLE attempts|\{"inputs":"[0-9a-f]{32}",')
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)  # names of columns are texts, too
Row = dict[str, Any]
Work = Callable[[Cell], Awaitable[Outcome]]
_LOOK = 0.25  # seconds between checks of cells claimed by another process
_QUIET = 2.0  # seconds of waiting before a note is printed
_CLAIMS = "SELECT owner, count(*), max(until) FROM claims GROUP BY owner"
_APART = (
    "Give each system a run of its own, such as by ragnb judge SCENARIO -p 'where={system: NAME}' with the same "
    "--store (answers already judged are reused), and compare those runs"
)


class Store(AbstractContextManager["Store"]):
    """Cells, their calls and their outcomes, in one file that survives ``kill -9``.

    Several processes may work on one store at a time: a cell is claimed before it is paid for. A claim ends
    with the process that holds it, at its date, or when it has given no sign of life for `lease` seconds on our
    own clock, whatever its date.

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
        with in_words(self.path):
            self._file = open_store(self.path, lease, new)

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        with self._lock:
            self._file.close()

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
                if not _is_busy(error):
                    raise
                # One of the holders of cells must be the writer; readers need no lock.
                writers = (
                    " or ".join(str(holder) for holder, *_ in self.holders()) or "another process"
                )
                raise RagnbError(
                    f"{self.path}: {writers} has been writing to this store for {self.lease:g} s; "
                    "stop it, then run the same again"
                ) from None
            with self._file:
                yield self._file

    # Runs and their cells

    def plan(
        self, cells: Sequence[Cell], *, name: str = "", about: Mapping[str, Any] | None = None
    ) -> str:
        """Record the cells of a run, in order, and return its id (8 hexadecimal digits).

        The same cells in the same order are the same run: planning them again takes it up. A cell that
        another run has done is not done again. `about` is kept with the run, as JSON; the latest stands.
        """
        run = digest(canonical([cell.key for cell in cells]))[:8]
        text = canonical(without_secrets(dict(about or {})))
        with self._writing() as file:
            known = {"run": run, "name": _clean(name) or None, "about": about and text}
            if file.execute(PARTS["again"], known).rowcount:
                return run
            insert(file, "runs", [(run, _now(), text, _clean(name))])
            fresh = self._without(cells, "SELECT key FROM cells")
            insert(
                file,
                "cells",
                ((key, _clean(c.model), canonical(c.about)) for key, c in fresh.items()),
            )
            insert(file, "plan", ((run, n, c.key, _clean(c.cluster)) for n, c in enumerate(cells)))
        return run

    def _without(self, cells: Iterable[Cell], query: str) -> dict[str, Cell]:
        left = {cell.key: cell for cell in cells}
        among = f"{query} WHERE key IN (SELECT value FROM json_each(:keys))"
        there = {key for (key,) in self._query(among, keys=json.dumps([*left]))}
        return {key: cell for key, cell in left.items() if key not in there}

    def pending(self, cells: Iterable[Cell]) -> dict[str, Cell]:
        """Return those cells, by key, that need work: neither ``ok`` nor ``not_applicable`` in any run."""
        return self._without(
            cells, "SELECT key FROM (SELECT key FROM attempts WHERE status <> 'failed')"
        )

    def mark(self) -> int:
        """The number of the latest attempt; a cell that failed after it is not open again in the same run."""
        return int(self._query("SELECT coalesce(max(id), 0) FROM attempts")[0][0])

    # Who works on what

    def claim(self, keys: Sequence[str], mark: int) -> tuple[set[str], set[str]]:
        """Claim cells by their keys; return those that are ours now, and those claimed by another process.

        What has been done meanwhile, or has failed since `mark`, is neither. A claimed cell is ours until `put`
        or `release`.
        """
        with self._writing() as file:
            file.executemany(
                "DELETE FROM claims WHERE owner = ?", [[owner] for owner in self._dead(file)]
            )
            owners = dict(
                file.execute(PARTS["open"], {"keys": json.dumps(keys), "mark": mark}).fetchall()
            )
            claimed = {key for key, owner in owners.items() if owner is None}
            claims = [(key, self._owner, time.time() + self.lease) for key in claimed]
            file.executemany("INSERT INTO claims VALUES (?, ?, ?)", claims)
        return claimed, owners.keys() - claimed

    def _dead(self, file: sqlite3.Connection) -> Iterator[str]:
        """Owners whose claims have expired.

        A claim's date is of its holder's clock, which may differ from ours, and both may be set while we wait. So
        it says only how long to wait from the moment when we first saw it, at most one lease.
        """
        now = time.monotonic()
        for owner, n, until in file.execute(_CLAIMS):
            holder, sign, left = _holder(owner), (until, n), until - time.time()
            if owner not in self._signs or self._signs[owner][0] != sign:
                self._signs[owner] = sign, now + min(left, self.lease)
            if holder.is_gone or (owner != self._owner and now >= self._signs[owner][1]):
                yield owner
                if left > 0 and not holder.is_gone:
                    self.taken_over.append(
                        f"{holder} showed no activity; its {n} cells are taken over"
                    )

    def holders(self) -> list[tuple[_Holder, int, float]]:
        """Return who has claimed cells, how many, and until when."""
        return [(_holder(owner), n, until) for owner, n, until in self._query(_CLAIMS)]

    def claims(self) -> pd.DataFrame:
        """Return the processes that have claimed cells.

        Returns
        -------
        DataFrame
            One row a holder: ``process`` (its id), ``host, cells, since`` (when it opened the store; None where it
            does not say) and ``until`` (when its claims end unless it renews them), both in UTC.
        """
        rows = [
            (who.process, who.host, n, _date(who.since), _date(until))
            for who, n, until in self.holders()
        ]
        return pd.DataFrame(rows, columns=PARTS["frames"]["claims"], dtype=object)

    def renew(self) -> None:
        """Renew our claims for another `lease` seconds."""
        with self._writing() as file:
            file.execute(
                "UPDATE claims SET until = ? WHERE owner = ?",
                [time.time() + self.lease, self._owner],
            )

    def release(self) -> None:
        """Give up all our claims."""
        with self._writing() as file:
            file.execute("DELETE FROM claims WHERE owner = ?", [self._owner])

    # What was paid for

    def put(
        self, items: Iterable[Call | tuple[Cell, Outcome]], refused: Iterable[int] = ()
    ) -> list[int]:
        """Write calls, and outcomes of planned cells, durably: when this returns, they survive a crash.

        Every outcome is an attempt of its own, and none is ever overwritten. The first ``ok`` of a cell stands;
        without one, the latest. Of calls that are `refused`, by their numbers, the replies are kept and not used
        again, so that the same request is sent again.

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
            file.executemany(
                "UPDATE calls SET key = NULL WHERE id = ?", [[number] for number in refused]
            )
            return [self._put(file, item) for item in items]

    def _put(self, file: sqlite3.Connection, item: Call | tuple[Cell, Outcome]) -> int:
        if isinstance(item, Call):
            told = (item.tokens_in, item.tokens_out, float(item.seconds))
            return insert(file, "calls", [(_text(item.reply), item.tag, *told, _now(), item.key)])
        cell, outcome = item
        if not file.execute("SELECT 1 FROM cells WHERE key = ?", [cell.key]).fetchone():
            raise RagnbError(
                f"cell {cell.sample_id!r}, {cell.what!r} belongs to no run; plan it first"
            )
        file.execute("DELETE FROM claims WHERE key = ? AND owner = ?", [cell.key, self._owner])
        return insert(
            file,
            "attempts",
            [
                (
                    cell.key,
                    outcome.status,
                    None if outcome.value is None else canonical(outcome.value),
                    _clean(outcome.reason),
                    _text(list(outcome.replies)),
                    outcome.calls,
                    outcome.tokens_in,
                    outcome.tokens_out,
                    float(outcome.seconds),
                    _now(),
                )
            ],
        )

    def get(self, key: str) -> tuple[int, Call] | None:
        """Return the number and the latest call of a key that has a reply; None where there is none yet."""
        query = PARTS["call"]
        for number, reply, *more in self._query(query, key=key):
            return number, Call(key, json.loads(reply), *more)
        return None

    # Frames

    def named(self, start: str) -> str:
        """Return the one run whose id begins so; every method that takes a run takes the beginning of its id."""
        names = [name for (name,) in self._query("SELECT run FROM runs ORDER BY id DESC")]
        if len(fits := [name for name in names if name.startswith(start)]) != 1:
            raise unknown("run", start, fits or names)
        return str(fits[0])

    def frame(self, run: str, *, attempts: Literal["latest", "all"] = "latest") -> pd.DataFrame:
        """Return the current state of a run, one row per cell, in the order of its plan.

        With `attempts` ``"all"`` one row per attempt at its cells, the oldest first.

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
        rows, found = [], self._query(PARTS["attempts_of"][attempts], run=self.named(run))
        for about, reply, replies, value, *rest in found:
            cell, texts = (
                json.loads(about),
                [json.loads(reply)] if reply else json.loads(replies or "[]"),
            )
            row = dict(zip(PARTS["frames"]["attempts"], rest, strict=True))
            rows.append(
                cell
                | row
                | {"value": json.loads(value or "null"), "reply": texts[-1] if texts else None}
            )
        return pd.DataFrame(rows, columns=PARTS["frames"]["run"], dtype=object)

    def runs(self) -> pd.DataFrame:
        """Return all runs, the oldest first.

        Returns
        -------
        DataFrame
            ``run, name, started, last`` (of its latest attempt), ``models, cells`` (distinct), ``ok,
            not_applicable, failed, pending, calls, tokens_in, tokens_out, seconds``. What was spent counts every
            attempt; a cell that two runs share counts in both. Tokens are None where an endpoint did not report.
            ``stopped_early`` (1 or 0) where its gates were settled before all was judged, with ``calls_saved``.
        """
        return pd.DataFrame(
            self._query(PARTS["runs"]), columns=PARTS["frames"]["runs"], dtype=object
        )

    def scores(self, run: str) -> pd.DataFrame:
        """Return the scores of a run as a frame: one row per sample (and repeat), one column per metric.

        Raises
        ------
        RagnbError
            For a run that the store does not hold, and one of several systems.
        """
        frame = self.frame(run)
        # rubric/contexts and rubric/alone judge the same.
        task = frame["what"].map(lambda what: what.partition("/")[0])
        answers = frame.groupby([frame["sample_id"].map(repr), task, "repeat"], sort=False)[
            "key"
        ].nunique()
        if (answers > 1).any():
            sample, what = answers.sort_values(ascending=False).index[0][:2]
            raise RagnbError(
                f"run={run!r} contains {answers.max()} answers to sample {sample} ({what}), apparently from "
                f"several systems; their mean describes none of them. {_APART}"
            )
        about = json.loads(
            self._query("SELECT about FROM runs WHERE run = :run", run=self.named(run))[0][0]
        )
        if len(systems := about.get("systems", ())) > 1:
            raise RagnbError(
                f"run={run!r} has several systems: {listing(systems)}; compare one at a time. {_APART}"
            )
        rows: dict[tuple[Any, Any], Row] = {}
        for cell in frame.to_dict("records"):
            named = {"sample_id": str(cell["sample_id"]), "doc_name": cell["cluster"]}
            row = rows.setdefault((cell["sample_id"], cell["repeat"]), named)
            parts = (
                cell["value"] if isinstance(cell["value"], dict) else {cell["what"]: cell["value"]}
            )
            row |= {
                str(name): float(value)
                for name, value in parts.items()
                if type(value) in (int, float)
            }
        return pd.DataFrame(
            list(rows.values()), columns=None if rows else ["sample_id"], dtype=object
        )


class _Holder(NamedTuple):
    """A process that has claimed cells; on this host and in this container it is known whether it `is_gone`."""

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
    """Read the name of a holder, which may be any text in a store that others wrote to."""
    try:
        place, process, _, _, *since = json.loads(owner)
        gone = place == _place() and not (
            place.endswith("?") or Path(f"/proc/{int(process)}").exists()
        )
        return _Holder(
            int(process), place.partition(" ")[0], float(since[0]) if since else None, gone
        )
    except (TypeError, ValueError, AttributeError):
        return _Holder()


StoreLike = Store | str | Path | None


@contextmanager
def opened(store: StoreLike, *, new: bool = True) -> Iterator[Store]:
    """Open a store by its path; one that is open already stays open, and without `new` no file is made."""
    if isinstance(store, Store):
        yield store
        return
    there = store is not None and (new or not is_empty(Path(store)))
    with Store(store if there else None, new=new or not there) as kept:
        yield kept


def systems_of(cases: pd.DataFrame) -> list[str]:
    """Return the names of the systems that gave these answers, to be recorded with the run."""
    return sorted({str(name) for name in cases.get("system", ()) if not pd.isna(name)})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _date(seconds: float | None) -> str | None:
    """Seconds since 1970 as a date; None for what is beyond the calendar."""
    date: Any = pd.to_datetime(seconds or math.nan, unit="s", utc=True, errors="coerce")
    return None if pd.isna(date) else str(date.isoformat(timespec="seconds"))


def _clean(text: str | None) -> str | None:
    """A lone surrogate as ``\\udXXX``: SQLite takes only UTF-8, and what was paid for must be kept."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _text(value: Any) -> str | None:
    return _clean(json.dumps(value, ensure_ascii=False))


# Tables


def open_store(path: Path | None, patience: float, new: bool) -> sqlite3.Connection:
    """Open a store: with `new` to be written, else a copy of it in memory, to be read.

    Raises
    ------
    RagnbError
        For a file that is no store, a damaged store, or one of another version. None is touched.
    """
    if path is not None and path.is_dir():
        raise RagnbError(
            f"{path} is a folder; name a file for the store, such as {path / 'runs.sqlite'}"
        )
    if path is not None and not new and not path.exists():
        raise no_store(path)
    if path is not None and not (new and is_empty(path)):
        for pause in (
            0.3,
            0,
        ):  # a run that begins or ends at this moment leaves a whole store the next
            copy = examined(path, new=new)
            if not new and not copy.wrong:
                return copy.file
            copy.file.close()
            if not copy.wrong:
                break
            time.sleep(pause)
        else:
            raise _damaged(path, copy.wrong[0])
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + patience
    with ExitStack() as undo:
        file = undo.enter_context(closing(_connect(path or ":memory:", patience)))
        while path is not None:
            try:
                if _pragma(file, "journal_mode = WAL") != "wal":
                    raise RagnbError(
                        f"{path}: this file system does not support a store; put it on a local disk"
                    )
                break
            except (
                sqlite3.OperationalError
            ) as error:  # SQLite does not wait here for whoever opens it too
                if not _is_busy(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)
        file.execute("PRAGMA synchronous = FULL")
        if _pragma(file, "user_version") != VERSION:
            file.execute("BEGIN IMMEDIATE")
            with file:  # another process may have made it meanwhile
                if not file.execute("SELECT 1 FROM sqlite_master").fetchone():
                    _make_tables(file)
        undo.pop_all()
    return file


def _connect(path: Path | str, patience: float = 2) -> sqlite3.Connection:
    file = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    file.create_function("checksum", -1, lambda *values: _checksum(values))
    return file


def _is_busy(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _pragma(file: sqlite3.Connection, words: str) -> Any:
    return file.execute(f"PRAGMA {words}").fetchone()[0]


def _make_tables(file: sqlite3.Connection) -> None:
    for statement in PARTS["tables"].split(";"):
        file.execute(statement)


def insert(file: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> int:
    """Add rows, given without their checksums, and return the id of the last."""
    columns = COLUMNS[table]
    place, last = columns.index("checksum"), 0
    query = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    for row in rows:
        last = (
            file.execute(query, [*row[:place], _checksum(row[:place]), *row[place:]]).lastrowid or 0
        )
    return last


def _checksum(values: Sequence[Any]) -> str:
    """Return the checksum of the values of a row; texts count as bytes, because a damaged one may not be UTF-8."""
    return digest(repr([value.encode() if isinstance(value, str) else value for value in values]))


# Damage of a file


def is_empty(path: Path) -> bool:
    """Whether there is no file, or it holds nothing and nor does its log: a store can be made of it."""
    return not path.exists() or not any(
        os.path.exists(f) and os.path.getsize(f) for f in (path, f"{path}-wal")
    )


@contextmanager
def in_words(path: Path | None) -> Iterator[None]:
    """Refuse in words what SQLite cannot do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode to UTF-8" in str(
            error
        ):
            raise _damaged(path, str(error)) from error
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise DiskFull(
                f"{path}: {error}; what was saved before is kept. Make room on the disk, then run the same again "
                "to go on"
            ) from error
        raise RagnbError(f"{path or 'the store in memory'}: {error}") from error


class DiskFull(RagnbError):
    """The disk does not take what is to be saved."""


def _damaged(path: Path | None, why: str) -> RagnbError:
    name = shlex.quote(str(path))
    return RagnbError(
        f"{path}: this store is damaged ({why}) and left as it is. See what is wrong with ragnb runs {name} "
        f"--verify, save what can be read with ragnb runs {name} --export saved.jsonl, and name another --store "
        "for the next run"
    )


def _unreadable(path: Path, why: str) -> RagnbError:
    name = shlex.quote(str(path))
    return RagnbError(
        f"{path}: this store is damaged ({why}) and left as it is; SQLite reads nothing of it. Its own repair may "
        f"find something: sqlite3 {name} .recover. Name another --store for the next run"
    )


def no_store(path: Path) -> RagnbError:
    return RagnbError(
        f"{path}: this file is not a ragnb store; name one that judging or scoring wrote, or a new file"
    )


class Examined(NamedTuple):
    """A copy of a store in memory, what is wrong with it, and how many rows it has, has lost, has damaged."""

    file: sqlite3.Connection
    wrong: list[str]
    rows: dict[str, int]
    lost: dict[str, int]
    damaged: int


def examined(path: Path, *, new: bool = False) -> Examined:
    """Look at a copy of a store, with what its log holds, as SQLite reads it.

    With `new` a database without tables is fine.

    Raises
    ------
    RagnbError
        For a file that is no store, a store of another version, and one of which SQLite reads nothing.
    """
    main, log = _snapshot(path)
    if not main.startswith(_MAGIC):
        if not (_OURS.search(main) if main else log):
            raise no_store(path)
        why = "its first page is overwritten" if main else "it is empty, and its log is not"
        raise _unreadable(path, why)
    wrong = _missing_pages(main)
    try:
        file, frames_read = _in_memory(path, main, log)
    except sqlite3.Error as error:
        raise _unreadable(path, str(error)) from None
    wrong += _unread_frames(log, frames_read)
    before = len(wrong)
    try:
        wrong += _marks(path, file, new)
        findings = file.execute("PRAGMA integrity_check(3)").fetchall()
        wrong += [" ".join(text.split()) for (text,) in findings if text != "ok"]
    except _UNREADABLE as error:
        wrong.append(str(error))
    rows, lost, damaged = dict[str, int](), dict[str, int](), 0
    for table in (*COLUMNS, "claims"):
        marks = ["damaged" in row for row in _rows(file, table)]
        rows[table], lost[table] = len(marks), max(0, (_last(file, table) or 0) - len(marks))
        damaged += sum(marks)
        if any(marks):
            wrong.insert(
                before, f"{sum(marks)} of {len(marks)} rows of {table} are not what was written"
            )
        if lost[table]:
            wrong.append(f"{lost[table]} rows of {table} are missing")
    file.text_factory = str
    return Examined(file, wrong, rows, lost, damaged)


def _marks(path: Path, file: sqlite3.Connection, new: bool) -> list[str]:
    """Say what is wrong with the application id of a store; refuse a file that is none, and other versions."""
    names = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
    version = _pragma(file, "user_version")
    is_marked = _pragma(file, "application_id") == int.from_bytes(_APPLICATION, "big")
    if not is_marked and (names or not new):
        if not names.issuperset(["runs", "cells", "plan", "attempts", "claims"]):
            raise no_store(path)
        return ["its application id is overwritten"]
    if names and version != VERSION:
        raise RagnbError(
            f"{path}: a store of version {version}; this ragnb reads version {VERSION}. "
            "Read it with the ragnb that wrote it, or name a new file"
        )
    return []


def _snapshot(path: Path) -> tuple[bytes, bytes]:
    """Read a store and its log as they are at one moment; what is appended to the log meanwhile may be cut."""
    for _ in range(50):
        written, log = path.stat().st_mtime_ns, b""
        main = path.read_bytes()
        with suppress(FileNotFoundError):
            log = Path(f"{path}-wal").read_bytes()
        if path.stat().st_mtime_ns == written:  # else the log has changed its meaning
            return main, log
        time.sleep(0.05)
    raise RagnbError(f"{path}: a run is writing to it continuously; try again after it has ended")


def _in_memory(path: Path, main: bytes, log: bytes) -> tuple[sqlite3.Connection, int]:
    """Return a copy of a store in memory with what its log holds, and how many frames of the log SQLite took."""
    memory = _connect(":memory:")
    # SQLite opens a file that is cut only so; nothing is written to the copy.
    memory.execute("PRAGMA writable_schema = ON")
    if not log:
        copy = bytearray(main)
        copy[18:20] = b"\1\1"  # SQLite opens a file in memory without a log only
        memory.deserialize(copy)
        return memory, 0
    with TemporaryDirectory(prefix="ragnb-") as folder:
        place = Path(folder) / "copy.sqlite"
        try:
            place.write_bytes(main)
            Path(f"{place}-wal").write_bytes(log)
        except OSError as error:
            raise RagnbError(
                f"{path}: its log is read in a copy, for which {Path(folder).parent} has no room "
                f"({error.strerror}); set TMPDIR to a folder that has"
            ) from None
        with closing(_connect(place)) as file:
            file.execute("PRAGMA writable_schema = ON")
            frames = file.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
            file.backup(memory)
    return memory, max(0, frames)


def _missing_pages(main: bytes) -> list[str]:
    """Say how many pages a file lacks, by the size in its header: https://www.sqlite.org/fileformat2.html."""
    if main[68:72] != _APPLICATION:
        return []
    page_size = int.from_bytes(main[16:18], "big")
    missing = int.from_bytes(main[28:32], "big") - len(main) // max(1, page_size)
    return [f"the file is cut: its last {missing} pages are missing"] if missing > 0 else []


def _unread_frames(log: bytes, frames_read: int) -> list[str]:
    """Say where a log is damaged: SQLite passes over all that follows, also whole commits."""
    frame_size = 24 + int.from_bytes(log[8:12], "big")
    salts = log[16:24]
    committed = 0
    for number, start in enumerate(range(32, len(log) - frame_size + 1, frame_size), 1):
        # A frame that ends a commit holds the size of the file; those of an earlier round have other salts.
        ends_commit = log[start + 4 : start + 8] != bytes(4)
        if ends_commit and log[start + 8 : start + 16] == salts:
            committed = number
    if committed > frames_read:
        return [f"its write-ahead log is damaged at frame {frames_read + 1}"]
    return []


# What can be read of a store


def exported(path: Path) -> Iterator[Row]:
    """Yield all that can be read of a store, keys taken out: runs, cells, plan, attempts, calls with replies.

    The last row says how many of each there are, how many of them are not what was written (they are marked
    ``damaged``), how many are lost as far as the rest tells, and what else is wrong with the store.
    """
    store = examined(path)
    with closing(store.file):
        for table in COLUMNS:
            for row in _rows(store.file, table):
                yield {"type": table.removesuffix("s")} | _without_keys(row)
    counts = {"rows": store.rows, "damaged": store.damaged, "lost": store.lost}
    yield {"type": "export", "store": path.name} | counts | {"wrong": store.wrong}


def _without_keys(row: Row) -> Row:
    """Return a row without what looks like a key of an endpoint; its hashes are none."""
    hashes: Row = {name: row[name] for name in ("key", "run") if name in row}
    if isinstance(about := row.get("about"), dict) and "inputs" in about:
        hashes["about"] = about | {"parameters": without_secrets(about.get("parameters"))}
    return dict(without_secrets(row)) | hashes


def _rows(file: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Yield the rows of a table that can be read, each one alone from where the table is damaged."""
    file.text_factory = bytes  # a text may not be UTF-8 any more
    last = 0
    try:
        for row in _selected(file, f"SELECT * FROM {table}"):
            last = row.get("id", 0)
            yield row
    except _UNREADABLE:
        most = _last(file, table)
        with suppress(*_UNREADABLE):  # no row is smaller than 64 bytes
            most = (
                _pragma(file, "page_size") * _pragma(file, "page_count") // 64
                if most is None
                else most
            )
        for number in range(last + 1, (most or 0) + 1):
            with suppress(*_UNREADABLE):
                yield from _selected(file, f"SELECT * FROM {table} WHERE id = {number}")


def _selected(file: sqlite3.Connection, query: str) -> Iterator[Row]:
    """Yield rows with their JSON read, marked as ``damaged`` where they are not what was written."""
    cursor = file.execute(query)
    names = [part[0] for part in cursor.description]
    place = names.index("checksum") if "checksum" in names else 0
    for values in cursor:  # of a claim its date tells
        odd = place and _checksum(values[1:place]).encode() != values[place]
        row: Row = (
            {"damaged": True}
            if odd or (names[-1] == "until" and not isinstance(values[-1], float))
            else {}
        )
        for name, value in zip(names, values, strict=True):
            row[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            if name in ("about", "value", "replies", "reply"):
                with suppress(ValueError, TypeError, RecursionError):
                    row[name] = json.loads(row[name])
        row.pop("checksum", None)
        yield row


def _last(file: sqlite3.Connection, table: str) -> int | None:
    """Return the largest id that was given in a table; None where nothing tells."""
    for query in (
        f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",
        f"SELECT max(id) FROM {table}",
    ):
        with suppress(*_UNREADABLE):
            if (row := file.execute(query).fetchone()) and isinstance(row[0], int):
                return int(row[0])
    return None


# The loop over cells


class Stopped(Interrupted):
    """Ctrl-C, or a signal that ends a process: finished cells are in the store, the message says how to resume."""


@dataclass(frozen=True)
class Estimate:
    """A dry run: number of cells, how many are pending, and the calls and tokens they are expected to need.

    Parameters
    ----------
    cells : int
        Distinct cells.
    done : int
        Those that the store has already.
    not_applicable : int
        Further ones that lack a field, and need no call.
    calls, tokens : int
        Expected of the rest, without retries; tokens of prompts and replies, right to about a third. Calls of
        a cell that the store has already are among them, though they will not be sent.
    """

    cells: int
    done: int
    not_applicable: int
    calls: int
    tokens: int


def estimate(cells: Iterable[Cell], store: StoreLike = None) -> Estimate:
    """Estimate what a run of these cells would need; nothing is sent or written.

    Examples
    --------
    >>> estimate([Cell("s1", "rubric", {}, calls=2, tokens=900), Cell("s2", "rubric", {}, missing=("answer",))])
    Estimate(cells=2, done=0, not_applicable=1, calls=2, tokens=900)
    """
    distinct = {cell.key: cell for cell in cells}
    with opened(store, new=False) as kept:
        still = kept.pending(distinct.values())
    paid = [cell for cell in still.values() if not cell.missing]
    calls, tokens = sum(cell.calls for cell in paid), sum(cell.tokens for cell in paid)
    return Estimate(
        len(distinct), len(distinct) - len(still), len(still) - len(paid), calls, tokens
    )


@dataclass(frozen=True)
class Run:
    """The result of a run.

    Parameters
    ----------
    id : str
        Of the run in the store.
    frame : DataFrame
        One row per cell, in the order of the cells; see `Store.frame`.
    stopped : str or None
        Why it ended early.
    account : dict
        ``asked`` cells = ``done`` by this run + ``reused`` + ``not_applicable`` + ``failed`` + ``pending``, and
        the requests that it ``sent``, retries among them.
    """

    id: str
    frame: pd.DataFrame
    stopped: str | None = None
    account: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Cells by status, all four words, 0 among them."""
        counts = Counter(self.frame["status"])
        return {word: counts[word] for word in ("ok", "not_applicable", "failed", "pending")}


def run_cells(
    cells: Sequence[Cell],
    work: Work,
    store: Store,
    *,
    clients: Sequence[Client] = (),
    name: str = "",
    concurrency: int | None = None,
    about: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    rounds: Iterable[Iterable[Cell]] | None = None,
    label: str = "",
) -> Run:
    """Run the pending cells, save each outcome durably, and return the run.

    It runs in a thread of its own, so that it can be called from a script and from a notebook alike. The first
    Ctrl-C (or SIGTERM or SIGHUP) starts no further cell and waits for those under way; a second one gives them up.

    Parameters
    ----------
    cells : sequence of Cell
        In the order of the result. A cell whose key appears twice is done once. One with `missing` fields
        becomes ``not_applicable`` without a call.
    work : coroutine function, Cell → Outcome
        What to do with one cell. What it raises becomes a ``failed`` cell with the exception as its reason and
        the replies that came; `Stop` leaves the cell pending and ends the run.
    store : Store
        Cells that are ``ok`` or ``not_applicable`` in it are not done again, ``failed`` ones are. Calls that were
        answered are not sent again, but for the last one of a cell that failed by its reply. Cells that another
        process has under way are waited for.
    clients : sequence of Client
        Those that `work` uses; they are opened for the run, and their budgets end it.
    concurrency : int, optional
        Cells under way at a time; by default the clients' largest, or 8.
    name, about
        Of the run, for `Store.runs`.
    progress : bool, optional
        A progress bar; by default in a terminal and in a notebook.
    rounds : iterable of cells, optional
        The cells in the order of the work, a round at a time; by default all, as they come. A round is asked for
        when the one before has its outcomes in the store; cells of a round that never comes stay pending.
    label : str
        Of the progress bar, such as the stage of a scenario; by default the name.

    Returns
    -------
    Run
        With a RagnbWarning where a budget ended it or cells failed.

    Raises
    ------
    Stop
        Where the endpoint refuses every call (key, model). What was done before is kept.
    Stopped
        After Ctrl-C, SIGTERM or SIGHUP; a KeyboardInterrupt.
    RagnbError
        Where the store cannot be written.

    Examples
    --------
    >>> from ragnb.store import Outcome
    >>> async def shout(cell):
    ...     return Outcome.of(cell.inputs["text"].upper())
    >>> with Store(None) as store:
    ...     run = run_cells([Cell("s1", "shout", {"text": "hi"}), Cell("s2", "shout", {}, missing=("text",))],
    ...                     shout, store)
    >>> run.frame[["sample_id", "status", "value", "reason"]]
      sample_id          status value   reason
    0        s1              ok    HI     None
    1        s2  not_applicable  None  no text
    """
    from tqdm.auto import tqdm
    from tqdm.notebook import tqdm_notebook

    most = concurrency or max((client.concurrency for client in clients), default=8)
    # No more cells at a time than a budget of calls has room for, so that it is spent on whole ones.
    rooms = [
        client.budget.max_calls - client.budget.calls
        for client in clients
        if client.budget.max_calls
    ]
    most = max(
        1, min([most, *(room // max((cell.calls for cell in cells), default=1) for room in rooms)])
    )
    plan = store.plan(cells, name=name, about=about)
    job = _Job(cells, work, store, clients, most, rounds)
    sent_before = sum(client.sent for client in clients)
    if progress is None and issubclass(tqdm, tqdm_notebook):
        progress = True
    signals: list[int] = []
    bar = tqdm(
        total=job.total,
        desc=label or name or None,
        disable=is_hidden(progress),
        unit="cell",
        dynamic_ncols=True,
    )
    with interruptible(), bar, ThreadPoolExecutor(1, "ragnb-run") as pool:
        ending = pool.submit(asyncio.run, job.all())
        while not ending.done():
            try:
                wait([ending], timeout=0.1)
                bar.update(job.done - bar.n)
            except KeyboardInterrupt as stop:
                signals.append(number_of(stop))
                job.stop(at_once=len(signals) > 1)
        bar.update(job.done - bar.n)
    try:
        ending.result()
    except DiskFull as error:
        raise RagnbError(f"{error}. {_saved(store, plan)}") from error
    # Cells in progress finish when a run stops, so the usage is known only here.
    used = "; ".join(str(client.budget) for client in clients)
    run = Run(
        plan, store.frame(plan), f"{job.stopping} (used: {used or 0})" if job.stopping else None
    )
    sent = sum(client.sent for client in clients) - sent_before
    run = replace(run, account=_account(run.counts, job.answered, sent))
    counts, n = run.counts, len(run.frame)
    where = f"{n - counts['pending']} of {n} cells are saved in {store.path or 'memory'}"
    if signals:
        raise Stopped(f"stopped; {where}. Run the same again to go on", signals[0])
    if run.stopped:
        warnings.warn(f"{run.stopped}. {where}", RagnbWarning, stacklevel=2)
    if counts["failed"]:
        reasons = Counter(run.frame.loc[run.frame["status"] == "failed", "reason"]).most_common(3)
        listed = "; ".join(f"{count} × {reason}" for reason, count in reasons)
        warnings.warn(
            f"{counts['failed']} of {n} cells failed ({listed}). Their replies are in the store; "
            "run the same command again to retry them",
            RagnbWarning,
            stacklevel=2,
        )
    return run


def _account(counts: Mapping[str, int], answered: int, sent: int) -> dict[str, int]:
    """Return the account of a run; rows of equal input share a cell, which is done once and then reused."""
    return {
        "asked": sum(counts.values()),
        "done": answered,
        "reused": counts["ok"] - answered,
        **{status: counts[status] for status in ("not_applicable", "failed", "pending")},
        "sent": sent,
    }


def total_account(accounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up the accounts of runs.

    Examples
    --------
    >>> total_account([{"asked": 6, "sent": 7}, {"asked": 2, "sent": 0}])
    {'asked': 8, 'sent': 7}
    """
    total = Counter[str]()
    for account in accounts:
        total.update(account)  # `+` would leave out what is 0
    return dict(total)


def _saved(store: Store, run: str) -> str:
    """Say how much of a run is saved where its end could not be."""
    statuses = store.frame(run)["status"]
    saved = int((statuses != "pending").sum())
    return (
        f"{saved} of {len(statuses)} cells are saved; replies that came after them are not, and their calls "
        "are sent again"
    )


class _Job:
    """A run in progress: workers take cells, and continue once their outcome is on disk."""

    def __init__(
        self,
        cells: Sequence[Cell],
        work: Work,
        store: Store,
        clients: Sequence[Client],
        most: int,
        rounds: Iterable[Iterable[Cell]] | None,
    ) -> None:
        self.work, self.store, self.clients, self.most = work, store, clients, most
        self.mark, self.rounds = store.mark(), iter([cells] if rounds is None else rounds)
        self.left = store.pending(cells)
        self.open, self.total, self.done = deque[Cell](), len(self.left), 0
        self.answered = 0  # of those done, the ones that are ok
        self.stopping: Stop | None = None
        self._taken: deque[Cell] = deque()
        self._batch: list[tuple[Call | tuple[Cell, Outcome], Iterable[int]]] = []
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._workers: list[asyncio.Task[None]] = []
        self._given_up = False

    def stop(self, *, at_once: bool) -> None:
        """Start no further cell; `at_once` gives up those under way too."""
        self.stopping = self.stopping or Stop("interrupted by the user")
        self._given_up = at_once
        for worker in self._workers if at_once else ():
            with suppress(RuntimeError):  # the loop has ended meanwhile
                worker.get_loop().call_soon_threadsafe(worker.cancel)

    async def all(self) -> None:
        """Run to the end."""
        self._dealing, self._disk = asyncio.Lock(), asyncio.Lock()
        async with AsyncExitStack() as stack:
            for client in self.clients:
                await stack.enter_async_context(client.open())
            renewer, results = asyncio.create_task(self._renew()), list[BaseException | None]()
            while (
                not any(results) and self.stopping is None and await asyncio.to_thread(self._deal)
            ):
                workers = range(min(self.most, len(self.open)))
                self._workers = [asyncio.create_task(self._worker()) for _ in workers]
                results = await asyncio.gather(*self._workers, return_exceptions=True)
            renewer.cancel()
            await self._on_disk(
                self.store.release
            )  # after what was paid for is kept, in this order
        for error in [*results, self.stopping if self.stopping and self.stopping.refused else None]:
            if isinstance(error, Exception):
                raise error

    def _deal(self) -> bool:
        """Schedule the pending cells of the next round; False if there are none."""
        cells = next(self.rounds, None)
        keys = dict.fromkeys(cell.key for cell in cells or ())
        self.open.extend(self.left.pop(key) for key in keys if key in self.left)
        return cells is not None

    async def _on_disk(self, call: Callable[..., Any], *args: Any) -> Any:
        async with self._disk:
            return await asyncio.to_thread(call, *args)

    # Cells

    async def _worker(self) -> None:
        while (cell := await self._next()) is not None:
            started, meter = time.perf_counter(), Meter(cell, self._once)
            if (outcome := await self._outcome(cell, meter)) is None:
                return
            told = [outcome.value, outcome.reason, outcome.replies or meter.replies]
            value, reason, replies = self._redacted(told)
            took: Any = meter.calls, *meter.tokens, time.perf_counter() - started
            outcome = Outcome(outcome.status, value, reason, tuple(replies), *took)
            await self._keep(
                (cell, outcome), meter.latest.values() if outcome.status == "failed" else ()
            )
            self.done += 1
            self.answered += outcome.status == "ok"

    async def _outcome(self, cell: Cell, meter: Meter) -> Outcome | None:
        """Do one cell; None where the run stops and the cell stays pending."""
        if cell.missing:
            return Outcome.lacking(cell.missing)
        METER.set(meter)
        try:
            if not isinstance((outcome := await self.work(cell)), Outcome):
                raise TypeError(f"the work returned a {type(outcome).__name__}, not an Outcome")
            return outcome
        except (Exception, asyncio.CancelledError) as error:
            if self._given_up:
                raise
            stops = [
                error if isinstance(error, Stop) else None,
                *(client.stopped for client in self.clients),
            ]
            if stop := next(filter(None, stops), None):
                self.stopping = self.stopping or stop
                return None
            if isinstance(error, CallFailed):
                return Outcome.failed(str(error), *filter(None, [error.reply]))
            where = traceback.extract_tb(error.__traceback__)[-1]
            return Outcome.failed(
                f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
            )

    async def _next(self) -> Cell | None:
        """Return the next cell, claimed; at the end, wait for those claimed by another process."""
        async with self._dealing:
            notice_at = time.monotonic() + _QUIET
            while self.stopping is None and (self._taken or self.open):
                if self._taken:
                    return self._taken.popleft()
                batch = [self.open.popleft() for _ in range(min(2 * self.most, len(self.open)))]
                claimed, held = await self._on_disk(
                    self.store.claim, [cell.key for cell in batch], self.mark
                )
                self._taken.extend(cell for cell in batch if cell.key in claimed)
                self.open.extend(cell for cell in batch if cell.key in held)
                while self.store.taken_over:
                    warnings.warn(self.store.taken_over.pop(0), RagnbWarning, stacklevel=2)
                if held and not claimed and time.monotonic() >= notice_at:
                    notice_at = math.inf
                    holders = await self._on_disk(self.store.holders)
                    names = (f"{holder} (until {_date(until)})" for holder, _, until in holders)
                    waiting = (
                        f"waiting for {len(self.open)} cells claimed by another process: {listing(names)}. If it "
                        f"shows no activity for {self.store.lease:g} s, this run takes them over"
                    )
                    warnings.warn(waiting, RagnbWarning, stacklevel=2)
                await asyncio.sleep(_LOOK if held and not claimed else 0)
        return None

    # Storage

    async def _once(self, meter: Meter, key: str, send: Send) -> Any:
        """Return the reply to a request, from store or endpoint; it is on disk before its cell continues."""
        task = asyncio.current_task()
        meter.latest.pop(task, None)  # if no reply comes, the one before is not at fault
        async with self._locks.setdefault(key, asyncio.Lock()):
            known = await self._on_disk(self.store.get, key)
            if known is not None:
                number, call = known
                meter.recalled.append(call)
            else:
                call = await send()
                number = await self._keep(call)
        meter.latest[task] = number
        if not isinstance(call.reply, str):
            return call.reply
        meter.replies.append(number)
        return call.reply.replace(call.tag, meter.tag) if call.tag and meter.tag else call.reply

    def _redacted(self, value: Any) -> Any:
        """Remove keys that an endpoint or a library may have echoed."""
        for client in self.clients:
            value = client.redact(value)
        return value

    async def _keep(self, what: Call | tuple[Cell, Outcome], refused: Iterable[int] = ()) -> int:
        """Wait until something is on the disk, and return its number; only then it counts as done.

        All that comes while the disk is busy is kept by one commit.
        """
        if not self._batch:
            self._writing = asyncio.create_task(self._write())
        place, writing = len(self._batch), self._writing
        self._batch.append((what, refused))
        return (await asyncio.shield(writing))[place]

    async def _write(self) -> list[int]:
        async with self._disk:
            batch, self._batch = self._batch, []
            items, refused = zip(*batch, strict=True)
            try:
                return await asyncio.to_thread(
                    self.store.put, items, list(chain.from_iterable(refused))
                )
            except BaseException:
                self.stopping = self.stopping or Stop("the store cannot be written")
                raise

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.store.lease / 3)
            await self._on_disk(self.store.renew)
