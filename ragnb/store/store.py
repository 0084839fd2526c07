"""The store: one SQLite file with every judge call, so that none is lost or made twice."""

from __future__ import annotations

import json
import math
import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    suppress,
)
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd

from ragnb.errors import RagnbError, listing, unknown
from ragnb.schema.secrets import without_secrets
from ragnb.store.calls import Call, Cell, Outcome, canonical, digest
from ragnb.store.damage import examined
from ragnb.store.file import (
    PARTS,
    VERSION,
    Row,
    connect,
    damaged_store,
    in_words,
    insert,
    is_busy,
    is_empty,
    make_tables,
    no_store,
    pragma,
)

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
        # The random part tells apart two stores that one process has open. `_holder` reads this text.
        self._owner = json.dumps([_place(), os.getpid(), None, uuid.uuid4().hex, time.time()])
        self._signs: dict[str, _Sign] = {}  # by owner, the latest
        self.taken_over: list[str] = []  # sentences that say of whom, for the run to warn with
        # Reentrant, because what writes also asks: `plan` looks up cells within its transaction.
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
        path = str(self.path) if self.path else None
        return f"Store({path!r})"

    def _query(self, query: str, **values: Any) -> list[Any]:
        with self._lock, in_words(self.path):
            return self._file.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing; when the block has ended, what it wrote survives a crash."""
        with self._lock, in_words(self.path):
            try:
                # A transaction that began with reading and then writes would fail at once where another process
                # has written in between (SQLITE_BUSY_SNAPSHOT); one that takes the lock first waits for it.
                self._file.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                # One of the holders of cells must be the writer; readers need no lock.
                holders = " or ".join(str(claim.holder) for claim in self.holders())
                writers = holders or "another process"
                raise RagnbError(
                    f"{self.path}: {writers} has been writing to this store for {self.lease:g} s; "
                    "stop it, then run the same again"
                ) from None
            # Commits at the end of the block, or rolls back what it wrote if it raises.
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
            # None for a name or an `about` that is not given: the query then keeps the one of the store.
            known = {"run": run, "name": _clean(name) or None, "about": about and text}
            is_known = file.execute(PARTS["again"], known).rowcount
            if is_known:
                return run
            insert(file, "runs", [(run, _now(), text, _clean(name))])
            new_cells = self._without(cells, "SELECT key FROM cells")
            insert(
                file,
                "cells",
                (
                    (key, _clean(cell.model), canonical(cell.about))
                    for key, cell in new_cells.items()
                ),
            )
            insert(
                file,
                "plan",
                ((run, n, cell.key, _clean(cell.cluster)) for n, cell in enumerate(cells)),
            )
        return run

    def _without(self, cells: Iterable[Cell], query: str) -> dict[str, Cell]:
        """Return cells by key, but for those whose keys a query selects; it must end where WHERE may follow."""
        by_key = {cell.key: cell for cell in cells}
        # The keys go as one JSON text, as SQLite limits how many values a statement may be given.
        selected = f"{query} WHERE key IN (SELECT value FROM json_each(:keys))"
        excluded = {key for (key,) in self._query(selected, keys=json.dumps([*by_key]))}
        return {key: cell for key, cell in by_key.items() if key not in excluded}

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
        # Looking and claiming are one transaction: else two processes may see a cell unclaimed, and both pay.
        with self._writing() as file:
            expired = [[owner] for owner in self._dead(file)]
            file.executemany("DELETE FROM claims WHERE owner = ?", expired)
            asked = {"keys": json.dumps(keys), "mark": mark}
            owners = dict(file.execute(PARTS["open"], asked).fetchall())
            claimed = {key for key, owner in owners.items() if owner is None}
            claims = [(key, self._owner, time.time() + self.lease) for key in claimed]
            file.executemany("INSERT INTO claims VALUES (?, ?, ?)", claims)
        return claimed, owners.keys() - claimed

    def _dead(self, file: sqlite3.Connection) -> Iterator[str]:
        """Owners whose claims have expired.

        A claim's date is of its holder's clock, which may differ from ours, and both may be set while we wait. So
        it says only how long to wait from the moment when we first saw it, at most one lease.
        """
        now = time.monotonic()  # which no setting of the clock changes
        for owner, n, until in file.execute(_CLAIMS):
            holder = _holder(owner)
            seconds_left = until - time.time()
            known = self._signs.get(owner)
            # A holder that renews its claims, takes further ones or finishes a cell changes one of these two.
            if known is None or (known.until, known.cells) != (until, n):
                known = _Sign(until, n, now + min(seconds_left, self.lease))
                self._signs[owner] = known
            is_silent = owner != self._owner and now >= known.counts_until
            if holder.is_gone or is_silent:
                yield owner
                # Of a process that has ended, or whose date is over, nobody needs to be told.
                if seconds_left > 0 and not holder.is_gone:
                    self.taken_over.append(
                        f"{holder} showed no activity; its {n} cells are taken over"
                    )

    def holders(self) -> list[_Claims]:
        """Return who has claimed cells, how many, and until when."""
        return [_Claims(_holder(owner), n, until) for owner, n, until in self._query(_CLAIMS)]

    def claims(self) -> pd.DataFrame:
        """Return the processes that have claimed cells.

        Returns
        -------
        DataFrame
            One row a holder: ``process`` (its id), ``host, cells, since`` (when it opened the store; None where it
            does not say) and ``until`` (when its claims end unless it renews them), both in UTC.
        """
        rows = []
        for holder, n, until in self.holders():
            since = date_of(holder.since)
            rows.append((holder.process, holder.host, n, since, date_of(until)))
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
            # Without its key no request finds the call; the row stays.
            numbers = [[number] for number in refused]
            file.executemany("UPDATE calls SET key = NULL WHERE id = ?", numbers)
            return [self._put(file, item) for item in items]

    def _put(self, file: sqlite3.Connection, item: Call | tuple[Cell, Outcome]) -> int:
        """Write one call or outcome, and return its number."""
        if isinstance(item, Call):
            return self._put_call(file, item)
        return self._put_outcome(file, *item)

    def _put_call(self, file: sqlite3.Connection, call: Call) -> int:
        row = (
            _text(call.reply),
            call.tag,
            call.tokens_in,
            call.tokens_out,
            # The column would make a float of a whole number, and the checksum of the row would not fit any more.
            float(call.seconds),
            _now(),
            call.key,
        )
        return insert(file, "calls", [row])

    def _put_outcome(self, file: sqlite3.Connection, cell: Cell, outcome: Outcome) -> int:
        if not file.execute("SELECT 1 FROM cells WHERE key = ?", [cell.key]).fetchone():
            raise RagnbError(
                f"cell {cell.sample_id!r}, {cell.what!r} belongs to no run; plan it first"
            )
        # In the transaction that writes its outcome: the cell is never open and unclaimed in between.
        file.execute("DELETE FROM claims WHERE key = ? AND owner = ?", [cell.key, self._owner])
        row = (
            cell.key,
            outcome.status,
            None if outcome.value is None else canonical(outcome.value),
            _clean(outcome.reason),
            _text(list(outcome.replies)),
            outcome.calls,
            outcome.tokens_in,
            outcome.tokens_out,
            float(outcome.seconds),  # as of a call
            _now(),
        )
        return insert(file, "attempts", [row])

    def get(self, key: str) -> tuple[int, Call] | None:
        """Return the number and the latest call of a key that has a reply; None where there is none yet."""
        for number, reply, *rest in self._query(PARTS["call"], key=key):
            return number, Call(key, json.loads(reply), *rest)
        return None

    # Frames

    def named(self, start: str) -> str:
        """Return the one run whose id begins so; every method that takes a run takes the beginning of its id."""
        names = [name for (name,) in self._query("SELECT run FROM runs ORDER BY id DESC")]
        matching = [name for name in names if name.startswith(start)]
        if len(matching) != 1:
            raise unknown("run", start, matching or names)
        return str(matching[0])

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
        rows = []
        selected = self._query(PARTS["attempts_of"][attempts], run=self.named(run))
        for about, reply, replies, value, *rest in selected:
            row: Row = json.loads(about)
            row.update(zip(PARTS["frames"]["attempts"], rest, strict=True))
            row["value"] = json.loads(value or "null")
            # A last reply that is the number of a call is read with it (`reply`); else the list holds its text.
            texts = [json.loads(reply)] if reply else json.loads(replies or "[]")
            row["reply"] = texts[-1] if texts else None
            rows.append(row)
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
        self._need_one_system(run, frame)
        rows: dict[tuple[Any, Any], Row] = {}
        for cell in frame.to_dict("records"):
            named = {"sample_id": str(cell["sample_id"]), "doc_name": cell["cluster"]}
            row = rows.setdefault((cell["sample_id"], cell["repeat"]), named)
            # A judgement is a mapping of dimensions to scores and of texts; a metric is a number of its name.
            if isinstance(cell["value"], dict):
                values = cell["value"]
            else:
                values = {cell["what"]: cell["value"]}
            for name, value in values.items():
                if type(value) in (int, float):  # a bool is no score
                    row[str(name)] = float(value)
        return pd.DataFrame(
            list(rows.values()), columns=None if rows else ["sample_id"], dtype=object
        )

    def _need_one_system(self, run: str, frame: pd.DataFrame) -> None:
        """Refuse a run whose cells, or whose record, name several systems."""
        # rubric/contexts and rubric/alone judge the same.
        task = frame["what"].map(lambda what: what.partition("/")[0])
        sample = frame["sample_id"].map(repr)
        answers = frame.groupby([sample, task, "repeat"], sort=False)["key"].nunique()
        if (answers > 1).any():
            worst_sample, worst_task = answers.sort_values(ascending=False).index[0][:2]
            raise RagnbError(
                f"run={run!r} contains {answers.max()} answers to sample {worst_sample} ({worst_task}), "
                f"apparently from several systems; their mean describes none of them. {_APART}"
            )
        # Systems that share no sample are seen in what the run says of itself alone.
        query = "SELECT about FROM runs WHERE run = :run"
        about = json.loads(self._query(query, run=self.named(run))[0][0])
        systems = about.get("systems", ())
        if len(systems) > 1:
            raise RagnbError(
                f"run={run!r} has several systems: {listing(systems)}; compare one at a time. {_APART}"
            )


class _Holder(NamedTuple):
    """A process that has claimed cells; on this host and in this container it is known whether it `is_gone`."""

    process: int | None = None
    host: str = "?"
    since: float | None = None
    is_gone: bool = False

    def __str__(self) -> str:
        return f"process {self.process or '?'} on {self.host}"


class _Claims(NamedTuple):
    """How many cells a holder has claimed, and until when, in seconds since 1970 on its clock."""

    holder: _Holder
    cells: int
    until: float


class _Sign(NamedTuple):
    """A sign of life: what the claims of an owner said when they last changed, and until when that counts."""

    until: float  # on the owner's clock, in seconds since 1970
    cells: int
    counts_until: float  # on our monotonic clock


def _place() -> str:
    """Return the name of the space in which process ids mean something: host and container."""
    with suppress(OSError):
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    return f"{socket.gethostname()} ?"  # without /proc nobody knows who is gone


def _holder(owner: str) -> _Holder:
    """Read the name of a holder, which may be any text in a store that others wrote to."""
    try:
        place, process, _, _, *rest = json.loads(owner)
        is_gone = False
        # Elsewhere, or without /proc, a process id says nothing.
        if place == _place() and not place.endswith("?"):
            is_gone = not Path(f"/proc/{int(process)}").exists()
        host = place.partition(" ")[0]
        since = float(rest[0]) if rest else None
        return _Holder(int(process), host, since, is_gone)
    except (TypeError, ValueError, AttributeError):
        return _Holder()


StoreLike = Store | str | Path | None


@contextmanager
def opened(store: StoreLike, *, new: bool = True) -> Iterator[Store]:
    """Open a store by its path; one that is open already stays open, and without `new` no file is made."""
    if isinstance(store, Store):
        yield store
        return
    # To read a file that is not there is to read an empty store: one in memory, which must be new.
    in_file = store is not None and (new or not is_empty(Path(store)))
    with Store(store if in_file else None, new=new or not in_file) as kept:
        yield kept


def systems_of(cases: pd.DataFrame) -> list[str]:
    """Return the names of the systems that gave these answers, to be recorded with the run."""
    return sorted({str(name) for name in cases.get("system", ()) if not pd.isna(name)})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def date_of(seconds: float | None) -> str | None:
    """Seconds since 1970 as a date; None for what is beyond the calendar."""
    # A claim of a damaged store, or of another program, may have any number for its date.
    date: Any = pd.to_datetime(seconds or math.nan, unit="s", utc=True, errors="coerce")
    if pd.isna(date):
        return None
    return str(date.isoformat(timespec="seconds"))


def _clean(text: str | None) -> str | None:
    """A lone surrogate as ``\\udXXX``: SQLite takes only UTF-8, and what was paid for must be kept."""
    if text is None:
        return None
    return text.encode("utf-8", "backslashreplace").decode()


def _text(value: Any) -> str | None:
    """Return a value as JSON in which a person can read Chinese."""
    return _clean(json.dumps(value, ensure_ascii=False))


# Opening


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
        copy = _whole_copy(path, new)
        if not new:
            if not copy.execute("SELECT 1 FROM sqlite_master").fetchone():
                # Only begun, when the process was killed: to read it is to read an empty store.
                make_tables(copy)
            return copy
        # It was made to find damage before anything is written; what is written goes into the file.
        copy.close()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + patience
    with ExitStack() as undo:
        file = undo.enter_context(closing(connect(path or ":memory:", patience)))
        if path is not None:
            _write_ahead(file, path, until)
        # With a log, SQLite's NORMAL would not wait for the disk at each commit, and a loss of power could take
        # the last replies.
        file.execute("PRAGMA synchronous = FULL")
        if pragma(file, "user_version") != VERSION:
            file.execute("BEGIN IMMEDIATE")
            with file:  # another process may have made it meanwhile
                if not file.execute("SELECT 1 FROM sqlite_master").fetchone():
                    make_tables(file)
        # All went well: the file stays open.
        undo.pop_all()
    return file


def _whole_copy(path: Path, new: bool) -> sqlite3.Connection:
    """Return a copy of a store in memory; refuse one that is damaged."""
    # A run that begins or ends at this moment leaves a whole store the next.
    for pause in (0.3, 0):  # seconds
        copy = examined(path, new=new)
        if not copy.wrong:
            return copy.file
        copy.file.close()
        time.sleep(pause)
    raise damaged_store(path, copy.wrong[0])


def _write_ahead(file: sqlite3.Connection, path: Path, until: float) -> None:
    """Turn write-ahead logging on, with which one process writes while others read; try until a time."""
    while True:
        try:
            if pragma(file, "journal_mode = WAL") != "wal":
                raise RagnbError(
                    f"{path}: this file system does not support a store; put it on a local disk"
                )
            return
        # SQLite does not wait here for whoever opens the file too, whatever its timeout.
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
