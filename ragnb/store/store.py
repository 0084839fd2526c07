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
                if not is_busy(error):
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
            holder = _holder(owner)
            sign = (until, n)
            left = until - time.time()
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
            (who.process, who.host, n, date_of(who.since), date_of(until))
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
            row = (
                _text(item.reply),
                item.tag,
                item.tokens_in,
                item.tokens_out,
                float(item.seconds),
                _now(),
                item.key,
            )
            return insert(file, "calls", [row])
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
        rows = []
        found = self._query(PARTS["attempts_of"][attempts], run=self.named(run))
        for about, reply, replies, value, *rest in found:
            cell = json.loads(about)
            if reply:
                texts = [json.loads(reply)]
            else:
                texts = json.loads(replies or "[]")
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
            if isinstance(cell["value"], dict):
                parts = cell["value"]
            else:
                parts = {cell["what"]: cell["value"]}
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


def date_of(seconds: float | None) -> str | None:
    """Seconds since 1970 as a date; None for what is beyond the calendar."""
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
        # A run that begins or ends at this moment leaves a whole store the next.
        for pause in (
            0.3,
            0,
        ):
            copy = examined(path, new=new)
            if not new and not copy.wrong:
                return copy.file
            copy.file.close()
            if not copy.wrong:
                break
            time.sleep(pause)
        else:
            raise damaged_store(path, copy.wrong[0])
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + patience
    with ExitStack() as undo:
        file = undo.enter_context(closing(connect(path or ":memory:", patience)))
        while path is not None:
            try:
                if pragma(file, "journal_mode = WAL") != "wal":
                    raise RagnbError(
                        f"{path}: this file system does not support a store; put it on a local disk"
                    )
                break
            except (
                sqlite3.OperationalError
            ) as error:  # SQLite does not wait here for whoever opens it too
                if not is_busy(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)
        file.execute("PRAGMA synchronous = FULL")
        if pragma(file, "user_version") != VERSION:
            file.execute("BEGIN IMMEDIATE")
            with file:  # another process may have made it meanwhile
                if not file.execute("SELECT 1 FROM sqlite_master").fetchone():
                    make_tables(file)
        undo.pop_all()
    return file
