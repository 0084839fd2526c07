"""The file of a store: its tables and checksums, and what SQLite refuses, in words."""

from __future__ import annotations

import os
import shlex
import sqlite3
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import (
    contextmanager,
)
from pathlib import Path
from typing import Any

from ragnb.errors import RagnbError
from ragnb.store.calls import digest

VERSION = 3  # of the tables, as `user_version` in the file
PARTS = tomllib.loads(Path(__file__).with_name("store.toml").read_text(encoding="utf-8"))
COLUMNS: dict[str, list[str]] = PARTS["columns"]
APPLICATION = b"ragn"  # SQLite's application id: the mark of a store, in bytes 68 to 71 of its file
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)  # names of columns are texts, too
Row = dict[str, Any]


def connect(path: Path | str, patience: float = 2) -> sqlite3.Connection:
    """Open a file of SQLite as the store uses it, without any look at what it holds."""
    # Transactions begin where we say so (`isolation_level`), and threads take turns by the lock of the store.
    file = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    file.create_function("checksum", -1, lambda *values: checksum_of(values))
    return file


def is_busy(error: sqlite3.Error) -> bool:
    # The lowest byte is the kind of the error, the others its details: SQLITE_BUSY_SNAPSHOT is busy, too.
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def pragma(file: sqlite3.Connection, words: str) -> Any:
    return file.execute(f"PRAGMA {words}").fetchone()[0]


def make_tables(file: sqlite3.Connection) -> None:
    for statement in PARTS["tables"].split(";"):
        file.execute(statement)


def insert(file: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> int:
    """Add rows, given without their checksums, and return the id of the last."""
    columns = COLUMNS[table]
    place = columns.index("checksum")
    last_id = 0
    marks = ", ".join("?" * len(columns))
    query = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
    for row in rows:
        # What stands behind the checksum may change later, and is not part of it.
        fixed = row[:place]
        values = [*fixed, checksum_of(fixed), *row[place:]]
        last_id = file.execute(query, values).lastrowid or 0
    return last_id


def checksum_of(values: Sequence[Any]) -> str:
    """Return the checksum of the values of a row; texts count as bytes, because a damaged one may not be UTF-8."""
    return digest(repr([value.encode() if isinstance(value, str) else value for value in values]))


# Damage of a file


def is_empty(path: Path) -> bool:
    """Whether there is no file, or it holds nothing and nor does its log: a store can be made of it."""
    if not path.exists():
        return True
    files = (path, f"{path}-wal")
    return not any(os.path.exists(file) and os.path.getsize(file) for file in files)


@contextmanager
def in_words(path: Path | None) -> Iterator[None]:
    """Refuse in words what SQLite cannot do."""
    try:
        yield
    except sqlite3.Error as error:
        # Errors that Python's sqlite3 raises by itself have no code.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        is_corrupt = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        if is_corrupt or "decode to UTF-8" in str(error):
            raise damaged_store(path, str(error)) from error
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise DiskFull(
                f"{path}: {error}; what was saved before is kept. Make room on the disk, then run the same again "
                "to go on"
            ) from error
        raise RagnbError(f"{path or 'the store in memory'}: {error}") from error


class DiskFull(RagnbError):
    """The disk does not take what is to be saved."""


def damaged_store(path: Path | None, why: str) -> RagnbError:
    name = shlex.quote(str(path))
    return RagnbError(
        f"{path}: this store is damaged ({why}) and left as it is. See what is wrong with ragnb runs {name} "
        f"--verify, save what can be read with ragnb runs {name} --export saved.jsonl, and name another --store "
        "for the next run"
    )


def unreadable_store(path: Path, why: str) -> RagnbError:
    name = shlex.quote(str(path))
    return RagnbError(
        f"{path}: this store is damaged ({why}) and left as it is; SQLite reads nothing of it. Its own repair may "
        f"find something: sqlite3 {name} .recover. Name another --store for the next run"
    )


def no_store(path: Path) -> RagnbError:
    return RagnbError(
        f"{path}: this file is not a ragnb store; name one that judging or scoring wrote, or a new file"
    )
