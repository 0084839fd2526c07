"""The file under the store: its tables, what is wrong with a file, and all that can be read of a damaged one."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import struct
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from ragnb.errors import RagnbError
from ragnb.schema import without_secrets
from ragnb.store.cells import digest

VERSION = 2
PARTS = tomllib.loads(Path(__file__).with_name("store.toml").read_text(encoding="utf-8"))
COLUMNS: dict[str, list[str]] = PARTS["columns"]
_APPLICATION = b"ragn"
_MAGIC = b"SQLite format 3\0"
_OURS = re.compile(rb'CREATE TABLE attempts|\{"inputs":"[0-9a-f]{32}",')
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)  # names of columns are texts, too
Row = dict[str, Any]


# Tables


def open_store(path: Path | None, patience: float, new: bool, parts: ExitStack) -> sqlite3.Connection:
    """Open a store until `parts` close: with `new` to be written, else a copy of it in memory, to be read.

    Raises
    ------
    RagnbError
        For a file that is no store, a damaged store, or one of another version. None is touched.
    """
    if path is not None:
        if path.is_dir():
            raise RagnbError(f"{path} is a folder; name a file for the store, such as {path / 'runs.sqlite'}")
        if not new and not path.exists():
            raise _no_store(path)
        if not new or (path.exists() and not is_empty(path)):
            copy = examined(path, new=new)
            if copy.wrong:  # a run that begins or ends at this moment leaves a whole store the next
                time.sleep(0.3)
                copy = examined(path, new=new)
            parts.enter_context(closing(copy.file))
            if copy.wrong:
                raise _damaged(path, copy.wrong[0])
            if not new:
                copy.file.text_factory = str
                return copy.file
            copy.file.close()
        path.parent.mkdir(parents=True, exist_ok=True)
    file = parts.enter_context(closing(_connect(path or ":memory:", patience)))
    if path is not None and _pragma(file, "journal_mode = WAL") != "wal":
        raise RagnbError(f"{path}: this file system cannot hold a store; put it on a local disk")
    file.execute("PRAGMA synchronous = FULL")
    if _pragma(file, "user_version") != VERSION:
        file.execute("BEGIN IMMEDIATE")
        with file:  # another process may have made it meanwhile
            if not _count(file, "sqlite_master"):
                _create(file)
            elif _pragma(file, "user_version") == 1:
                _upgrade(file)
    return file


def _connect(path: Path | str, patience: float = 2) -> sqlite3.Connection:
    file = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    file.create_function("checksum", -1, lambda *values: _checksum(values))
    return file


def _pragma(file: sqlite3.Connection, words: str) -> Any:
    return file.execute(f"PRAGMA {words}").fetchone()[0]


def _count(file: sqlite3.Connection, rows: str) -> int:
    return int(file.execute(f"SELECT count(*) FROM {rows}").fetchone()[0])


def _create(file: sqlite3.Connection) -> None:
    _run(file, "tables")
    file.execute(f"PRAGMA application_id = {int.from_bytes(_APPLICATION, 'big')}")
    file.execute(f"PRAGMA user_version = {VERSION}")


def _upgrade(file: sqlite3.Connection) -> None:
    """Bring a store of version 1 to the tables of today, whose conditions refuse what version 1 never wrote."""
    _run(file, "set_aside")
    _create(file)
    _run(file, "upgrade")


def _run(file: sqlite3.Connection, script: str) -> None:
    for statement in PARTS[script].split(";"):
        file.execute(statement)


def insert(file: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> int:
    """Add rows, given without their checksums, and return the id of the last."""
    columns = COLUMNS[table]
    place, last = columns.index("checksum"), 0
    query = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    for row in rows:
        last = file.execute(query, [*row[:place], _checksum(row[:place]), *row[place:]]).lastrowid or 0
    return last


def _checksum(values: Sequence[Any]) -> str:
    """Return what stands for the values of a row; texts count as bytes, as a damaged one may not be UTF-8."""
    return digest(repr([value.encode() if isinstance(value, str) else value for value in values]))


# What is wrong with a file


def is_empty(path: Path) -> bool:
    """Whether a file holds nothing, nor does its log: a store can be made of it."""
    log = Path(f"{path}-wal")
    return not path.stat().st_size and not (log.exists() and log.stat().st_size)


@contextmanager
def in_words(path: Path | None) -> Iterator[None]:
    """Refuse in words what SQLite cannot do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode to UTF-8" in str(error):
            raise _damaged(path, str(error)) from error
        raise RagnbError(f"{path or 'the store in memory'}: {error}") from error


def _damaged(path: Path | None, why: str) -> RagnbError:
    name = shlex.quote(str(path))
    return RagnbError(
        f"{path}: this store is damaged ({why}) and left as it is. See what is wrong with ragnb runs {name} "
        f"--verify, save what can be read with ragnb runs {name} --export saved.jsonl, and name another --store "
        "for the next run"
    )


def _no_store(path: Path) -> RagnbError:
    return RagnbError(f"{path}: this file is no store of ragnb; name another file")


class Examined(NamedTuple):
    """A copy of a store in memory, what is wrong with it, and how many rows it has, has lost, has damaged."""

    file: sqlite3.Connection
    wrong: list[str]
    rows: dict[str, int]
    lost: dict[str, int]
    damaged: int


def examined(path: Path, *, new: bool = False) -> Examined:
    """Look at a copy of a store, in today's tables where it is whole.

    With `new` a database without tables is fine.

    Raises
    ------
    RagnbError
        For a file that is no store, or a store of another version.
    """
    main, log = _snapshot(path)
    wrong = list[str]()
    if not main.startswith(_MAGIC):
        if not (_OURS.search(main) if main else log):
            raise _no_store(path)
        wrong.append("its first page is overwritten" if main else "it is empty, and its write-ahead log is not")
    wrong += _apply_log(main, log)
    if main.startswith(_MAGIC) and main[68:72] == _APPLICATION:  # https://www.sqlite.org/fileformat2.html
        gone = int.from_bytes(main[28:32], "big") - len(main) // int.from_bytes(main[16:18], "big")
        wrong += [f"the file is cut: its last {gone} pages are missing"] if gone > 0 else []
    if wrong:
        if not main.startswith(_MAGIC):  # a new store's first page stands in for it
            with closing(_connect(":memory:")) as file:
                _create(file)
                main[:4096] = file.serialize()[:4096]
        main[28:32] = bytes(4)  # so that SQLite counts the pages anew
    main[18:20] = b"\1\1"  # no log belongs to it any more
    file = _connect(":memory:")
    file.deserialize(main)
    main.clear()
    before = len(wrong)
    try:
        names = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
        version = _pragma(file, "user_version")
        if _pragma(file, "application_id") != int.from_bytes(_APPLICATION, "big") and (names or not new):
            if not names.issuperset(["runs", "cells", "plan", "attempts", "claims"]):
                raise _no_store(path)
            wrong.append("its application id is overwritten")
        elif names and version not in (1, VERSION):
            raise RagnbError(
                f"{path}: a store of version {version}; this ragnb reads version {VERSION}. "
                "Read it with the ragnb that wrote it, or name a new file"
            )
        findings = [" ".join(finding.split()) for (finding,) in file.execute("PRAGMA integrity_check(3)")]
        wrong += [finding for finding in findings if finding != "ok"]
        if version == 1 and not wrong:
            file.execute("BEGIN")
            with file:
                _upgrade(file)
        if odd := _count(file, "claims WHERE typeof(until) <> 'real'") if names else 0:
            wrong.append(f"{odd} rows of claims are not what was written")
    except sqlite3.IntegrityError as error:
        wrong.append(f"rows are not what was written: {error}")
    except _UNREADABLE as error:
        wrong.append(str(error))
    rows, lost, damaged = dict[str, int](), dict[str, int](), 0
    for table in (*COLUMNS, "claims"):
        marks = ["damaged" in row for row in _rows(file, table)]
        rows[table], lost[table] = len(marks), max(0, (_last(file, table) or 0) - len(marks))
        damaged += sum(marks)
        if any(marks):
            wrong.insert(before, f"{sum(marks)} of {len(marks)} rows of {table} are not what was written")
        if lost[table]:
            wrong.append(f"{lost[table]} rows of {table} are missing")
    return Examined(file, wrong, rows, lost, damaged)


def _snapshot(path: Path) -> tuple[bytearray, bytes]:
    """Read a store and its log as they are at one moment; what is appended to the log meanwhile may be cut."""
    for _ in range(50):
        written, log = path.stat().st_mtime_ns, b""
        main = bytearray(path.read_bytes())
        with suppress(FileNotFoundError):
            log = Path(f"{path}-wal").read_bytes()
        if path.stat().st_mtime_ns == written:  # else the log has changed its meaning
            return main, log
        time.sleep(0.05)
    raise RagnbError(f"{path}: a run is writing to it without a pause; look again when it has ended")


def _apply_log(main: bytearray, log: bytes) -> list[str]:
    """Write what a log holds into its store, and say where it is damaged: SQLite passes over all that follows."""
    size, salts, order = int.from_bytes(log[8:12], "big"), log[16:24], "<>"[log[3] & 1] if log else "<"
    frames = [log[start : start + 24 + size] for start in range(32, len(log) - size - 23, 24 + size)]
    # A frame that ends a commit holds the size of the file; those of an earlier round have other salts.
    commits = [n for n, frame in enumerate(frames, 1) if frame[4:8] != bytes(4) and frame[8:16] == salts]
    damaged, sums = list[str](), _log_sums(log[:24], order, (0, 0))
    for number, frame in enumerate(frames[: commits[-1] if commits else 0], 1):
        sums = _log_sums(frame[:8] + frame[24:], order, sums)
        if not damaged and struct.unpack(">2I", frame[16:24]) != sums:
            damaged = [f"its write-ahead log is damaged at frame {number}"]
        place = (int.from_bytes(frame[:4], "big") - 1) * size
        if 0 <= place <= len(main) + len(log):
            main.extend(bytes(max(0, place - len(main))))
            main[place : place + size] = frame[24:]
    return damaged


def _log_sums(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """Go on with the checksums of a log, as https://www.sqlite.org/walformat.html#checksum_algorithm says."""
    one, other = sums
    for even, odd in struct.iter_unpack(f"{order}2I", data):
        one = (one + even + other) & 0xFFFFFFFF
        other = (other + odd + one) & 0xFFFFFFFF
    return one, other


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
    cleaned = without_secrets({name: value for name, value in row.items() if name not in hashes})
    return {name: hashes.get(name, cleaned.get(name)) for name in row}


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
            most = _pragma(file, "page_size") * _pragma(file, "page_count") // 64 if most is None else most
        for number in range(last + 1, (most or 0) + 1):
            with suppress(*_UNREADABLE):
                yield from _selected(file, f"SELECT * FROM {table} WHERE id = {number}")


def _selected(file: sqlite3.Connection, query: str) -> Iterator[Row]:
    """Yield rows with their JSON read, marked as ``damaged`` where they are not what was written."""
    cursor = file.execute(query)
    names = [part[0] for part in cursor.description]
    place = names.index("checksum") if "checksum" in names else 0
    for values in cursor:
        row: Row = {"damaged": True} if place and _checksum(values[1:place]).encode() != values[place] else {}
        for name, value in zip(names, values, strict=True):
            row[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            if name in ("about", "value", "replies", "reply"):
                with suppress(ValueError, TypeError, RecursionError):
                    row[name] = json.loads(row[name])
        row.pop("checksum", None)
        yield row


def _last(file: sqlite3.Connection, table: str) -> int | None:
    """Return the largest id that was given in a table; None where nothing tells."""
    for query in (f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'", f"SELECT max(id) FROM {table}"):
        with suppress(*_UNREADABLE):
            if (row := file.execute(query).fetchone()) and isinstance(row[0], int):
                return int(row[0])
    return None
