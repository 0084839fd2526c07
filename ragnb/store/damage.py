"""What is wrong with the file of a store, and all that can be read of a damaged one."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import (
    closing,
    suppress,
)
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ragnb.errors import RagnbError
from ragnb.schema.secrets import without_secrets
from ragnb.store.file import (
    APPLICATION,
    COLUMNS,
    UNREADABLE,
    VERSION,
    Row,
    checksum_of,
    connect,
    no_store,
    pragma,
    unreadable_store,
)

_MAGIC = b"SQLite format 3\0"
# What a page of a store holds somewhere: the statement that made a table, or what the key of a cell is made of.
_OURS = re.compile(rb'CREATE TABLE attempts|\{"inputs":"[0-9a-f]{32}",')


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
        if main:
            is_ours = _OURS.search(main) is not None
            why = "its first page is overwritten"
        else:
            is_ours = bool(log)
            why = "it is empty, and its log is not"
        if not is_ours:
            raise no_store(path)
        raise unreadable_store(path, why)
    wrong = _missing_pages(main, log)
    try:
        file, frames_read = _in_memory(path, main, log)
    except sqlite3.Error as error:
        raise unreadable_store(path, str(error)) from None
    wrong += _unread_frames(log, frames_read)
    before_findings = len(wrong)
    try:
        wrong += _marks(path, file, new)
        findings = file.execute("PRAGMA integrity_check(3)").fetchall()
        wrong += [" ".join(text.split()) for (text,) in findings if text != "ok"]
    except UNREADABLE as error:
        wrong.append(str(error))
    rows = dict[str, int]()
    lost = dict[str, int]()
    damaged = 0
    for table in (*COLUMNS, "claims"):
        are_damaged = ["damaged" in row for row in _rows(file, table)]
        n_damaged = sum(are_damaged)
        rows[table] = len(are_damaged)
        # Ids have no holes, so that the last of them is the number of rows that there should be.
        last_id = _last(file, table) or 0
        lost[table] = max(0, last_id - len(are_damaged))
        damaged += n_damaged
        if n_damaged:
            # Before what SQLite says, as a refusal names the first thing that is wrong.
            wrong.insert(
                before_findings,
                f"{n_damaged} of {len(are_damaged)} rows of {table} are not what was written",
            )
        if lost[table]:
            wrong.append(f"{lost[table]} rows of {table} are missing")
    file.text_factory = str  # `_rows` has made bytes of it, and the copy may be read as a store
    return Examined(file, wrong, rows, lost, damaged)


def _marks(path: Path, file: sqlite3.Connection, new: bool) -> list[str]:
    """Say what is wrong with the application id of a store; refuse a file that is none, and other versions."""
    names = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
    version = pragma(file, "user_version")
    mark = pragma(file, "application_id")
    is_marked = mark == int.from_bytes(APPLICATION, "big")
    # What a process leaves that is killed after it made the file and before it made the tables.
    is_begun = not names and mark == 0 and pragma(file, "schema_version") == 0
    if not is_marked and (names or not (new or is_begun)):
        # Without `calls`, which stores of version 1 lack: they, too, are refused as stores and not as other files.
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
    for _ in range(50):  # with the pauses at least 2.5 seconds
        written = path.stat().st_mtime_ns
        log = b""
        main = path.read_bytes()
        # SQLite deletes the log when the last process closes the store.
        with suppress(FileNotFoundError):
            log = Path(f"{path}-wal").read_bytes()
        # Else the log may have been copied into the file and begun anew meanwhile, and the two do not fit.
        if path.stat().st_mtime_ns == written:
            return main, log
        time.sleep(0.05)
    raise RagnbError(f"{path}: a run is writing to it continuously; try again after it has ended")


def _in_memory(path: Path, main: bytes, log: bytes) -> tuple[sqlite3.Connection, int]:
    """Return a copy of a store in memory with what its log holds, and how many frames of the log SQLite took."""
    memory = connect(":memory:")
    # SQLite opens a file that is cut only so; nothing is written to the copy.
    memory.execute("PRAGMA writable_schema = ON")
    if not log:
        copy = bytearray(main)
        # The versions of the format to write and to read, which are 2 with a log: SQLite opens a file in memory
        # without one only.
        copy[18:20] = b"\1\1"
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
        with closing(connect(place)) as file:
            file.execute("PRAGMA writable_schema = ON")
            # Of its answer (busy, frames in the log, frames copied) the second; -1 where it knows of no log.
            frames = file.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
            file.backup(memory)
    return memory, max(0, frames)


def _missing_pages(main: bytes, log: bytes) -> list[str]:
    """Say how many pages a file lacks, by the size in its header: https://www.sqlite.org/fileformat2.html."""
    if main[68:72] != APPLICATION:
        return []
    page_size = int.from_bytes(main[16:18], "big")  # in bytes
    pages = int.from_bytes(main[28:32], "big")
    present = len(main) // max(1, page_size)  # a damaged header may say 0
    # SQLite copies the log into the file page by page, the first, which holds the size, before the rest. A process
    # that is killed between them leaves a file that is too short and a log that still holds the pages.
    logged = {int.from_bytes(log[start : start + 4], "big") for start in _frames(log)}
    missing = pages - present - sum(present < page <= pages for page in logged)
    if missing > 0:
        return [f"the file is cut: its last {missing} pages are missing"]
    return []


def _frames(log: bytes) -> Iterator[int]:
    """Yield where the frames of a log start, those of its present round: earlier ones have other salts."""
    # The log has a header of 32 bytes, a frame one of 24 and then a page; both headers hold the salts. The header
    # of a frame begins with the number of its page and the size of the file, of 4 bytes each.
    frame_size = 24 + int.from_bytes(log[8:12], "big")
    salts = log[16:24]
    for start in range(32, len(log) - frame_size + 1, frame_size):
        if log[start + 8 : start + 16] == salts:
            yield start


def _unread_frames(log: bytes, frames_read: int) -> list[str]:
    """Say where a log is damaged: SQLite passes over all that follows, also whole commits."""
    committed = 0
    for number, start in enumerate(_frames(log), 1):
        # A frame that ends a commit holds the size of the file.
        if log[start + 4 : start + 8] != bytes(4):
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
    about = row.get("about")
    # That of a cell holds hashes too, and only its parameters may hold a key.
    if isinstance(about, dict) and "inputs" in about:
        hashes["about"] = about | {"parameters": without_secrets(about.get("parameters"))}
    return dict(without_secrets(row)) | hashes


def _rows(file: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Yield the rows of a table that can be read, each one alone from where the table is damaged."""
    file.text_factory = bytes  # a text may not be UTF-8 any more
    last_read = 0
    try:
        for row in _selected(file, f"SELECT * FROM {table}"):
            last_read = row.get("id", 0)
            yield row
    except UNREADABLE:
        last_id = _last(file, table)
        with suppress(*UNREADABLE):
            if last_id is None:  # at most as many as fit in: no row is smaller than 64 bytes
                last_id = pragma(file, "page_size") * pragma(file, "page_count") // 64
        for number in range(last_read + 1, (last_id or 0) + 1):
            with suppress(*UNREADABLE):
                yield from _selected(file, f"SELECT * FROM {table} WHERE id = {number}")


def _selected(file: sqlite3.Connection, query: str) -> Iterator[Row]:
    """Yield rows with their JSON read, marked as ``damaged`` where they are not what was written."""
    cursor = file.execute(query)
    names = [part[0] for part in cursor.description]
    place = names.index("checksum") if "checksum" in names else 0
    for values in cursor:
        # The checksum is of what stands between it and the id.
        is_damaged = place > 0 and checksum_of(values[1:place]).encode() != values[place]
        # A claim, whose date changes with each renewal, has none; of it the date tells.
        if names[-1] == "until" and not isinstance(values[-1], float):
            is_damaged = True
        row: Row = {}
        if is_damaged:
            row["damaged"] = True
        for name, value in zip(names, values, strict=True):
            row[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            if name in ("about", "value", "replies", "reply"):
                # What is no JSON any more stays a text.
                with suppress(ValueError, TypeError, RecursionError):
                    row[name] = json.loads(row[name])
        row.pop("checksum", None)
        yield row


def _last(file: sqlite3.Connection, table: str) -> int | None:
    """Return the largest id that was given in a table; None where nothing tells."""
    # SQLite's own count also tells of the last rows, where these are lost.
    queries = (
        f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",
        f"SELECT max(id) FROM {table}",
    )
    for query in queries:
        with suppress(*UNREADABLE):
            row = file.execute(query).fetchone()
            if row and isinstance(row[0], int):
                return int(row[0])
    return None
