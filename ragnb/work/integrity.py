"""Whether a store is whole, and every row that can still be read of one that is not; the file is only read."""

from __future__ import annotations

import json
import shlex
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from ragnb.errors import RagnbError
from ragnb.schema import without_secrets
from ragnb.work.cells import canonical, digest

VERSION = 1
APPLICATION = 0x7261676E  # "ragn"
MAGIC = b"SQLite format 3\0"
COLUMNS = {
    "runs": ("run", "name", "started", "about"),
    "cells": ("key", "sample_id", "what", "model", "about", "attempt"),
    "plan": ("run", "position", "key", "cluster"),
    "attempts": (
        "id", "key", "status", "value", "reason", "replies", "calls", "tokens_in", "tokens_out", "seconds", "at",
    ),
    "claims": ("key", "owner", "until"),
}  # fmt: skip
_WAL = struct.Struct(">8I")
_START = 1 << 20
Row = dict[str, Any]


class Damaged(RagnbError):
    """A store that is not whole."""


def damaged(path: Path | None, why: str) -> Damaged:
    """Return the refusal of a store that is not whole."""
    name = shlex.quote(str(path))
    return Damaged(
        f"{path}: this store is damaged ({why}) and left as it is. See what is wrong with ragnb runs {name} "
        f"--verify, save what can be read with ragnb runs {name} --export saved.jsonl, and name another --store "
        "for the next run"
    )


def findings(file: sqlite3.Connection) -> Iterator[str]:
    """Yield what is wrong with a store: its pages, its tables, and texts that are not what was written."""
    try:
        for (said,) in file.execute("PRAGMA integrity_check(3)"):
            if said != "ok":
                yield " ".join(str(said).split())
        for table, columns in COLUMNS.items():
            there = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
            if there != list(columns):
                yield f"table {table} has the columns {', '.join(there) or 'none'}"
                return
        file.text_factory = bytes  # a text may not be UTF-8 any more
        rows = {table: [_slim(_row(table, values)) for values in _all(file, table)] for table in COLUMNS}
        for table, found in rows.items():
            if wrong := sum(row["damaged"] for row in found):
                yield f"{wrong} of {len(found)} rows of {table} are not what was written"
        yield from (f"{n} rows of {table} are missing" for table, n in _lost(rows).items() if n)
    except sqlite3.Error as error:
        yield str(error)
    finally:
        with suppress(sqlite3.Error):
            file.text_factory = str


def refuse_damaged(path: Path) -> None:
    """Refuse a file that is no store or not a whole one, before it is opened to be written."""
    log = Path(f"{path}-wal")
    logged = log.exists() and log.stat().st_size > 0
    start = _start(path)
    if not start:
        if logged:
            raise damaged(path, "it is empty, and its write-ahead log is not")
        return
    if not start.startswith(MAGIC):
        raise _foreign(path, start)
    # Opened so, SQLite does not apply the log; without a log it makes no file and takes no lock either.
    address = f"{path.resolve().as_uri()}?{'mode=ro' if logged else 'immutable=1'}"
    wrong: str | None = None
    for pause in (0.0, 0.3):  # a run that begins or ends at this moment leaves a whole store the next
        time.sleep(pause)
        with closing(sqlite3.connect(address, uri=True)) as file:
            wrong = _wrong(path, file)
        if wrong is None:
            break
    if wrong is None and logged:
        with suppress(_Busy):  # whoever writes it reads it, too
            wrong = _overlaid(*_parts(path))[1]
    if wrong is not None:
        raise damaged(path, wrong)


def _wrong(path: Path, file: sqlite3.Connection) -> str | None:
    """The first thing that is wrong with a store; one of another kind or version is refused."""
    try:
        application, version = (
            file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        empty = not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise RagnbError(f"{path}: {error}") from error
        return str(error)
    except sqlite3.Error as error:
        return str(error)
    if empty:
        return None
    if application != APPLICATION:
        names = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
        if names.issuperset(COLUMNS):
            return "its application id is overwritten"
        raise RagnbError(f"{path}: this database is no store of ragnb; name another file")
    if version != VERSION:
        raise RagnbError(
            f"{path}: a store of version {version}; this ragnb reads version {VERSION}. "
            "Read it with the ragnb that wrote it, or name a new file"
        )
    return next(findings(file), None)


def _foreign(path: Path, start: bytes) -> RagnbError:
    if b"CREATE TABLE attempts" in start or any(table in ("cells", "attempts") for table, _ in _records(start)):
        return damaged(path, "its first page is overwritten")
    return RagnbError(f"{path}: this file is no store of ragnb; name another file")


def verified(path: Path) -> tuple[dict[str, int], list[str]]:
    """Count what a store holds, and list what is wrong with it; nothing is written, not even a lock.

    Raises
    ------
    RagnbError
        For a file that is no store, or a store of another version.
    """
    image, wrong = _image(path)
    found = [wrong] if wrong else []
    with closing(sqlite3.connect(":memory:")) as file:
        try:
            file.deserialize(image)
            if _wrong(path, file) is not None:
                found += findings(file)
            if not found:
                return {table: len(_all(file, table).fetchall()) for table in COLUMNS}, []
        except sqlite3.Error as error:
            found.append(str(error))
    return {table: len(rows) for table, rows in _salvaged(image)[0].items()}, found


def exported(path: Path) -> Iterator[Row]:
    """Yield all that can be read of a store, keys taken out: its runs, its cells, and every call with its replies.

    The last row says how many of each there are, how many of them are not what was written (they are marked
    ``damaged``), and how many are lost.
    """
    rows, lost = _rows(path)
    places: dict[str, list[Row]] = {}
    for row in rows["plan"]:
        places.setdefault(row["key"], []).append({name: row[name] for name in ("run", "position", "cluster")})
    for row in rows["runs"]:
        yield {"type": "run"} | _safe(row)
    known = {row["key"]: row for row in rows["cells"]}
    for key in dict.fromkeys([*known, *places]):
        yield {"type": "cell", "key": key} | _safe(known.get(key, {"lost": True})) | {"runs": places.get(key, [])}
    for row in rows["attempts"]:
        yield {"type": "call"} | _safe(row)
    counts = {table: len(rows[table]) for table in COLUMNS if table != "claims"}
    broken = sum(row["damaged"] for table in counts for row in rows[table])
    yield {"type": "export", "store": path.name, "rows": counts, "damaged": broken, "lost": lost}


def _safe(row: Row) -> Row:
    """A row without keys that texts hold; its hashes are none."""
    hashes: tuple[str, ...] = ("key", "run")
    made = {name: value for name, value in row.items() if not (name == "damaged" and not value)}
    if isinstance(about := made.get("about"), dict) and "inputs" in about:
        made["about"] = about | {"parameters": without_secrets(about.get("parameters"))}
        hashes = (*hashes, "about")
    safe: Row = without_secrets({name: value for name, value in made.items() if name not in hashes})
    return {name: made[name] if name in hashes else safe[name] for name in made}


def _rows(path: Path) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """All rows of a store, and how many of each table are lost."""
    image, wrong = _image(path)
    with closing(sqlite3.connect(":memory:")) as file, suppress(sqlite3.Error):
        file.deserialize(image)
        if _wrong(path, file) is None and not wrong:
            file.text_factory = bytes
            rows = {table: [_row(table, values) for values in _all(file, table)] for table in COLUMNS}
            return rows, dict.fromkeys(COLUMNS, 0)
    return _salvaged(image)


def _all(file: sqlite3.Connection, table: str) -> sqlite3.Cursor:
    return file.execute(f"SELECT * FROM {table}")


def _slim(row: Row) -> Row:
    """A row without its long texts, of which a large store has too many to hold."""
    return {name: value for name, value in row.items() if name not in ("about", "value", "replies")}


def _row(table: str, values: Sequence[Any]) -> Row:
    """A row with its JSON read; ``damaged`` where a text is not what was written."""
    row: Row = dict(zip(COLUMNS[table], values, strict=True)) | {"damaged": False}
    for name, value in row.items():
        if isinstance(value, bytes):
            row[name] = value.decode("utf-8", "replace")
            row["damaged"] |= row[name].encode() != value
    for name in {"runs": ["about"], "cells": ["about", "sample_id"], "attempts": ["value", "replies"]}.get(
        table, []
    ):
        text = row[name]
        with suppress(TypeError):
            try:
                row[name] = json.loads(text)
            except ValueError:
                row["damaged"] = True
        if table == "cells" and name == "about":
            row["damaged"] |= digest(str(text)) != row["key"]
    if table == "attempts":
        row["damaged"] |= row["status"] not in ("ok", "not_applicable", "failed")
    return row


def _lost(rows: dict[str, list[Row]], last: int = 0) -> dict[str, int]:
    """How many rows other rows speak of that are not there; further ones may be lost without a trace."""
    keys = {row["key"] for row in (*rows["plan"], *rows["attempts"])}
    ids = {row["id"] for row in rows["attempts"]}
    last = max([last, *ids, *(row["attempt"] for row in rows["cells"] if isinstance(row["attempt"], int))])
    runs = {row["run"]: row for row in rows["runs"]}
    planned: dict[str, dict[int, str]] = {run: {} for run in runs}
    for row in rows["plan"]:
        planned.setdefault(row["run"], {})[row["position"]] = row["key"]
    holes = 0
    for run, places in planned.items():
        gone = max(places, default=-1) + 1 - len(places)
        whole = gone or digest(canonical([places[place] for place in sorted(places)]))[:8] == run
        holes += gone or (0 if whole else 1)  # one at least, behind those that are there
    cells = len(keys - {row["key"] for row in rows["cells"]})
    return {
        "runs": len(planned) - len(runs),
        "cells": cells,
        "plan": holes,
        "attempts": last - len(ids),
        "claims": 0,
    }


# The file, page by page. https://www.sqlite.org/fileformat2.html


class _Busy(RagnbError):
    """A file changes faster than it can be read."""


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_START)


def _parts(path: Path) -> tuple[bytes, bytes]:
    """The bytes of a store and of its write-ahead log, of one moment."""
    files = [path, Path(f"{path}-wal")]

    def state() -> list[tuple[int, int] | None]:
        return [(file.stat().st_size, file.stat().st_mtime_ns) if file.exists() else None for file in files]

    for _ in range(50):
        before = state()
        data = [file.read_bytes() if there else b"" for file, there in zip(files, before, strict=True)]
        if state() == before:
            return data[0], data[1]
        time.sleep(0.05)
    raise _Busy(f"{path}: a run is writing to it without a pause; look again when it has ended")


def _image(path: Path) -> tuple[bytes, str | None]:
    """The pages of a store with its log applied, and what is wrong with the log."""
    if path.is_dir():
        raise RagnbError(f"{path} is a folder; name the file of the store")
    main, log = _parts(path)
    if (
        not main.startswith(MAGIC)
        and (main or not log)
        and not isinstance(fault := _foreign(path, main[:_START]), Damaged)
    ):
        raise fault
    return _overlaid(main, log)


def _overlaid(main: bytes, log: bytes) -> tuple[bytes, str | None]:
    """Apply all committed frames of a log, those behind a damaged one too."""
    if len(log) < 32:
        return _plain(main), None
    magic, _, size, _, salt, pepper, *sums = _WAL.unpack_from(log)
    little = not magic & 1
    step, total, wrong = 24 + size, _summed((0, 0), log[:24], little), None
    valid = total == tuple(sums)
    pages: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    for n, start in enumerate(range(32, len(log) - step + 1, step), 1):
        number, commit, one, two, *told = struct.unpack_from(">6I", log, start)
        if (one, two) != (salt, pepper) or not number:
            break  # of an earlier round
        total = _summed(_summed(total, log[start : start + 8], little), log[start + 24 : start + step], little)
        valid = valid and total == tuple(told)
        pending[number] = log[start + 24 : start + step]
        if commit:
            pages |= pending
            pending = {}
            if not valid:  # SQLite would pass over all that follows without a word
                wrong = wrong or f"its write-ahead log is damaged at frame {n}"
    last = max([len(main) // max(size, 1), *pages])
    made = bytearray(main.ljust(last * size, b"\0"))
    for number, page in pages.items():
        made[(number - 1) * size : number * size] = page
    return _plain(bytes(made)), wrong


def _summed(start: tuple[int, int], data: bytes, little: bool) -> tuple[int, int]:
    one, two = start
    words = struct.unpack(f"{'<' if little else '>'}{len(data) // 4}I", data)
    for i in range(0, len(words), 2):
        one = (one + words[i] + two) & 0xFFFFFFFF
        two = (two + words[i + 1] + one) & 0xFFFFFFFF
    return one, two


def _plain(image: bytes) -> bytes:
    """The same database without the mark that a log belongs to it."""
    return image[:18] + b"\1\1" + image[20:] if len(image) >= 100 else image


def _salvaged(image: bytes) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """Read every record of every page, whatever leads to it, and tell the tables by their shapes."""
    kept: dict[str, dict[Any, Row]] = {table: {} for table in COLUMNS}
    sequence = 0
    for table, values in _records(image):
        if table == "sequence":
            sequence = max(sequence, values[1])
            continue
        row = _row(table, values)
        key = {
            "plan": (row.get("run"), row.get("position")),
            "attempts": row.get("id"),
            "runs": row.get("run"),
        }.get(table, row.get("key"))
        old = kept[table].get(key)
        # A page that was freed may hold an older copy.
        if old is None or _newer(row) > _newer(old):
            kept[table][key] = row
    rows = {table: list(found.values()) for table, found in kept.items()}
    rows["plan"].sort(key=lambda row: (row["run"], row["position"]))
    rows["attempts"].sort(key=lambda row: row["id"])
    return rows, _lost(rows, sequence)


def _newer(row: Row) -> tuple[bool, int]:
    return not row["damaged"], row.get("attempt") or 0


def _records(image: bytes) -> Iterator[tuple[str, list[Any]]]:
    size = int.from_bytes(image[16:18], "big") if image.startswith(MAGIC) else 4096
    size = 65536 if size == 1 else size
    if size < 512 or size & (size - 1):
        size = 4096
    usable = size - image[20] if image.startswith(MAGIC) and image[20] < 64 else size

    def page(number: int) -> bytes:
        return image[(number - 1) * size : number * size]

    for number in range(1, len(image) // size + 1):
        data, head = page(number), 100 if number == 1 else 0
        kind = data[head]
        if kind not in (2, 10, 13):
            continue
        first = head + (12 if kind == 2 else 8)
        for i in range(min(int.from_bytes(data[head + 3 : head + 5], "big"), (size - first) // 2)):
            at = int.from_bytes(data[first + 2 * i : first + 2 * i + 2], "big")
            with suppress(IndexError, TypeError, ValueError, struct.error, OverflowError):
                yield from _record(data, at, kind, usable, page)


def _record(
    data: bytes, at: int, kind: int, usable: int, page: Callable[[int], bytes]
) -> Iterator[tuple[str, list[Any]]]:
    at += 4 if kind == 2 else 0
    length, at = _varint(data, at)
    rowid = None
    if kind == 13:
        rowid, at = _varint(data, at)
    most = usable - 35 if kind == 13 else (usable - 12) * 64 // 255 - 23
    local = length
    if length > most:
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        local = local if local <= most else least
    payload = bytearray(data[at : at + local])
    further = int.from_bytes(data[at + local : at + local + 4], "big") if local < length else 0
    seen: set[int] = set()
    while len(payload) < length:
        part = page(further)
        if not further or not part or further in seen:
            raise ValueError("the chain of pages is broken")
        seen.add(further)
        payload += part[4 : 4 + min(usable - 4, length - len(payload))]
        further = int.from_bytes(part[:4], "big")
    values = _values(bytes(payload))
    shape = "".join({bytes: "t", int: "i", float: "f", type(None): "n"}[type(value)] for value in values)
    if kind == 13 and shape.startswith("ntt") and len(shape) == 11 and rowid is not None:
        values[9] = float(values[9])  # a whole number is kept short
        yield "attempts", [rowid, *values[1:]]
    elif kind == 13 and shape == "tttt":
        yield "runs", values
    elif kind == 13 and shape == "ti" and values[0] == b"attempts":
        yield "sequence", values
    elif kind != 13 and len(shape) == 6 and shape.startswith("ttttt"):
        yield "cells", values
    elif kind != 13 and len(shape) == 4 and shape.startswith("tit"):
        yield "plan", values
    elif kind != 13 and shape in ("ttf", "tti"):
        yield "claims", values


def _values(payload: bytes) -> list[Any]:
    """The values of a record; texts stay bytes."""
    end, at = _varint(payload, 0)
    body, values = end, list[Any]()
    while at < end:
        kind, at = _varint(payload, at)
        size = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)[kind] if kind < 10 else (kind - 12) // 2
        part = payload[body : body + size]
        if len(part) != size or kind in (10, 11):
            raise ValueError("the record is cut off")
        body += size
        if kind == 0:
            values.append(None)
        elif kind == 7:
            values.append(struct.unpack(">d", part)[0])
        elif kind < 10:
            values.append(kind - 8 if kind > 7 else int.from_bytes(part, "big", signed=True))
        else:
            values.append(part)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(9):
        byte = data[at + n]
        if n == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value, at + n + 1
