"""The file under the store: opened with care for what it is, and written so that a commit survives a crash."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragnb.errors import RagnbError

VERSION = 1
_APPLICATION = 0x7261676E  # "ragn"
_TABLES = """
CREATE TABLE cells (
  key TEXT PRIMARY KEY, sample_id TEXT NOT NULL, what TEXT NOT NULL, model TEXT NOT NULL, about TEXT NOT NULL,
  attempt INTEGER REFERENCES attempts (id)
) WITHOUT ROWID;
CREATE TABLE attempts (
  id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL REFERENCES cells (key), status TEXT NOT NULL, value TEXT,
  reason TEXT, replies TEXT NOT NULL, calls INTEGER NOT NULL, tokens_in INTEGER, tokens_out INTEGER,
  seconds REAL NOT NULL, at TEXT NOT NULL
);
CREATE INDEX attempts_key ON attempts (key);
CREATE TABLE runs (run TEXT PRIMARY KEY, name TEXT NOT NULL, started TEXT NOT NULL, about TEXT NOT NULL);
CREATE TABLE plan (
  run TEXT NOT NULL REFERENCES runs (run), position INTEGER NOT NULL, key TEXT NOT NULL REFERENCES cells (key),
  cluster TEXT, PRIMARY KEY (run, position)
) WITHOUT ROWID;
CREATE TABLE claims (key TEXT PRIMARY KEY REFERENCES cells (key), owner TEXT NOT NULL, until REAL NOT NULL)
  WITHOUT ROWID;
"""


class Database:
    """One connection, shared by the threads of a process one at a time.

    Raises
    ------
    RagnbError
        For a file that is no store, or a store of another version. Neither is touched.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.RLock()
        if path is not None:
            _refuse_foreign(path)
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._worded():
            self._file = sqlite3.connect(
                path or ":memory:", timeout=60, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._file.close()
                raise

    def _prepare(self) -> None:
        version = self._pragma("user_version")
        empty = not self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if self._pragma("application_id") != _APPLICATION and not empty:
            raise RagnbError(f"{self.path}: this database is no store of ragnb; name another file")
        if not empty and version != VERSION:
            raise RagnbError(
                f"{self.path}: a store of version {version}; this ragnb reads version {VERSION}. "
                "Read it with the ragnb that wrote it, or name a new file"
            )
        if self.path is not None and self._pragma("journal_mode = WAL") != "wal":
            raise RagnbError(f"{self.path}: this file system cannot hold a store; put it on a local disk")
        with self.writing() as file:
            if not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in _TABLES.split(";"):
                    file.execute(statement)
                file.execute(f"PRAGMA application_id = {_APPLICATION}")
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
        self._file.execute(begin)
        try:
            yield
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise

    @contextmanager
    def _worded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise RagnbError(f"{self.path or 'the store in memory'}: {error}") from error

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        with self._lock:
            self._file.close()


def _refuse_foreign(path: Path) -> None:
    if path.is_dir():
        raise RagnbError(f"{path} is a folder; name a file for the store, such as {path / 'runs.sqlite'}")
    if path.exists():
        with path.open("rb") as file:
            head = file.read(16)
        if head not in (b"", b"SQLite format 3\0"):
            raise RagnbError(f"{path}: this file is no store of ragnb; name another file")
