"""The file under the store: opened with care for what it is, and written so that a commit survives a crash."""

from __future__ import annotations

import sqlite3
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragnb.errors import RagnbError, RagnbWarning
from ragnb.store.integrity import APPLICATION, PARTS, VERSION, damaged, is_empty, no_store, refuse_damaged
from ragnb.store.owners import Holder


class Database:
    """One connection, shared by the threads of a process one at a time.

    Raises
    ------
    RagnbError
        For a file that is no store, a damaged store, or one of another version. None is touched.
    """

    def __init__(self, path: Path | None, patience: float = 60.0, *, new: bool = True) -> None:
        self.path = path
        self.patience = patience
        self._lock = threading.RLock()
        if path is not None:
            if path.is_dir():
                raise RagnbError(f"{path} is a folder; name a file for the store, such as {path / 'runs.sqlite'}")
            if not new and (not path.exists() or is_empty(path)):
                raise no_store(path, database=False)
            if path.exists():
                refuse_damaged(path)
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._worded():
            self._file = sqlite3.connect(
                path or ":memory:", timeout=2, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(new)
            except BaseException:
                self._file.close()
                raise

    def _prepare(self, new: bool) -> None:
        if not new:  # to be read, which leaves the file as it is
            if not self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise no_store(self.path)
            return
        if self.path is not None and self._pragma("journal_mode = WAL") != "wal":
            raise RagnbError(f"{self.path}: this file system cannot hold a store; put it on a local disk")
        if self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return
        with self.writing() as file:
            if not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in PARTS["tables"].split(";"):
                    file.execute(statement)
                file.execute(f"PRAGMA application_id = {APPLICATION}")
                file.execute(f"PRAGMA user_version = {VERSION}")

    def _pragma(self, words: str) -> object:
        row = self._file.execute(f"PRAGMA {words}").fetchone()
        return row[0] if row else None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read one state of the file."""
        with self._lock, self._worded(), self._transaction("BEGIN"):
            yield self._file

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Write all or nothing; when the block has ended, what it wrote survives a crash.

        Not `durable`: it survives the end of the process, but perhaps not of the machine, and waits for no disk.
        """
        with self._lock, self._worded():
            self._pragma(f"synchronous = {'FULL' if durable else 'NORMAL'}")
            with self._transaction("BEGIN IMMEDIATE"):
                yield self._file

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._begin(begin)
        try:
            yield
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise

    def _begin(self, begin: str) -> None:
        """Begin when no other process writes; a wait is told and has an end, on a clock that nobody sets."""
        started, told = time.monotonic(), False
        while True:
            try:
                self._file.execute(begin)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
            if time.monotonic() - started >= self.patience:
                raise RagnbError(
                    f"{self.path}: {self._writers()} has been writing to this store for {self.patience:g} s; "
                    "stop it, then run the same again"
                )
            if not told:
                told = True
                warnings.warn(
                    f"waiting until {self._writers()} has written to {self.path}", RagnbWarning, stacklevel=2
                )

    def _writers(self) -> str:
        """The holders of cells, one of which it must be that writes; readers need no lock."""
        owners = self._file.execute("SELECT DISTINCT owner FROM claims")
        return " or ".join(str(Holder.of(owner)) for (owner,) in owners) or "another process"

    @contextmanager
    def _worded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode to UTF-8" in str(error):
                raise damaged(self.path, str(error)) from error
            raise RagnbError(f"{self.path or 'the store in memory'}: {error}") from error

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        with self._lock:
            self._file.close()
