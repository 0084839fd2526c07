"""Whether a store is whole, and every row that can still be read of one that is not; the file is only read."""

from __future__ import annotations

import json
import math
import re
import shlex
import sqlite3
import struct
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ragnb.errors import RagnbError
from ragnb.schema import METRICS, without_secrets
from ragnb.store.cells import canonical, digest

VERSION = 1
APPLICATION = 0x7261676E  # "ragn"
PARTS = tomllib.loads(Path(__file__).with_name("store.toml").read_text(encoding="utf-8"))
COLUMNS = PARTS["columns"]
_MAGIC = b"SQLite format 3\0"
_OURS = re.compile(rb'CREATE TABLE attempts|\{"inputs":"[0-9a-f]{32}",')
Row = dict[str, Any]


class _Busy(RagnbError):
    """A file changes faster than it can be read."""


def damaged(path: Path | None, why: str) -> RagnbError:
    """Return the refusal of a store that is not whole."""
    name = shlex.quote(str(path))
    return RagnbError(
        f"{path}: this store is damaged ({why}) and left as it is. See what is wrong with ragnb runs {name} "
        f"--verify, save what can be read with ragnb runs {name} --export saved.jsonl, and name another --store "
        "for the next run"
    )


def refuse_damaged(path: Path) -> None:
    """Refuse a file that is no store or not a whole one, before it is opened to be written."""
    if is_empty(path):
        return
    for pause in (0.0, 0.3):  # a run that begins or ends at this moment leaves a whole store the next
        time.sleep(pause)
        try:
            with _opened(path) as (_, found):
                wrong = next(found, None)
        except _Busy:
            return  # whoever writes it reads it, too
        if wrong is None:
            return
    raise damaged(path, str(wrong))


def is_empty(path: Path) -> bool:
    """Whether a file holds nothing, nor does its log: a store can be made of it."""
    return not path.stat().st_size and not _logged(path)


def no_store(path: Path | None, *, database: bool = True) -> RagnbError:
    """Return the refusal of what ragnb has not made."""
    if database:
        return RagnbError(f"{path}: this database is no store of ragnb; name another file")
    return RagnbError(f"{path}: this file is no store of ragnb; name another file")


def verified(path: Path) -> tuple[dict[str, int], list[str]]:
    """Count what a store holds, and list what is wrong with it; nothing is written, not even a lock.

    Raises
    ------
    RagnbError
        For a file that is no store, or a store of another version.
    """
    rows, _, found = _read(path, slim=True)
    return {table: len(rows[table]) for table in COLUMNS}, found


def exported(path: Path) -> Iterator[Row]:
    """Yield all that can be read of a store, keys taken out: its runs, its cells, and every call with its replies.

    The last row says how many of each there are, how many of them are not what was written (they are marked
    ``damaged``), and how many are lost.
    """
    rows, lost, _ = _read(path)
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


def _read(path: Path, *, slim: bool = False) -> tuple[dict[str, list[Row]], dict[str, int], list[str]]:
    """All rows of a store, how many of each table are lost, and what is wrong with it."""
    with _opened(path) as (file, found):
        wrong = list(found)
        try:
            if not wrong:
                if not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise no_store(path)
                return _rows(file, slim), dict.fromkeys(COLUMNS, 0), []
        except sqlite3.Error as error:
            wrong.append(str(error))
    return *_salvaged(_image(path)[0]), wrong


@contextmanager
def _opened(path: Path) -> Iterator[tuple[sqlite3.Connection, Iterator[str]]]:
    """Open a store to be read alone, with its log applied, and find what is wrong with it."""
    if path.is_dir():
        raise RagnbError(f"{path} is a folder; name the file of the store")
    with path.open("rb") as main:
        start = main.read(1 << 20)
    wrong = []
    if not start.startswith(_MAGIC):
        if not (_OURS.search(start) if start else _logged(path)):
            raise no_store(path, database=False)
        wrong.append("its first page is overwritten" if start else "it is empty, and its write-ahead log is not")
    if _logged(path):
        image, torn = _image(path)
        file = sqlite3.connect(":memory:")
        file.deserialize(image)
        wrong += torn
    else:  # opened so, SQLite makes no file and takes no lock
        file = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)
        if gone := _cut(start, path.stat().st_size):
            wrong.append(f"the file is cut: its last {gone} pages are missing")
    with closing(file):
        yield file, chain(wrong, _findings(path, file))


def _findings(path: Path, file: sqlite3.Connection) -> Iterator[str]:
    """Yield what is wrong with a store: its pages, its tables, and texts that are not what was written."""
    try:
        application, version = (
            file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        names = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
        if not names:
            return
        if application != APPLICATION:
            if not names.issuperset(COLUMNS):
                raise no_store(path)
            yield "its application id is overwritten"
        elif version != VERSION:
            raise RagnbError(
                f"{path}: a store of version {version}; this ragnb reads version {VERSION}. "
                "Read it with the ragnb that wrote it, or name a new file"
            )
        for (said,) in file.execute("PRAGMA integrity_check(3)"):
            if said != "ok":
                yield " ".join(str(said).split())
        for table, columns in COLUMNS.items():
            there = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
            if there != columns:
                yield f"table {table} has the columns {', '.join(there) or 'none'}"
                return
        rows = _rows(file, slim=True)
        for table, found in rows.items():
            if wrong := sum(row["damaged"] for row in found):
                yield f"{wrong} of {len(found)} rows of {table} are not what was written"
        yield from (f"{n} rows of {table} are missing" for table, n in _lost(rows).items() if n)
    except sqlite3.Error as error:
        yield str(error)
    except UnicodeDecodeError:  # of the names of tables and columns
        yield "its tables are named by what is no text"


def _rows(file: sqlite3.Connection, slim: bool) -> dict[str, list[Row]]:
    """All rows of a whole store; `slim`: without their long texts, of which a large store has too many to hold."""
    file.text_factory = bytes  # a text may not be UTF-8 any more
    long = ("about", "value", "replies") if slim else ()
    asked: dict[Any, Sequence[str]] = {}
    made: dict[str, list[Row]] = {table: [] for table in COLUMNS}
    for table, rows in made.items():
        for values in file.execute(f"SELECT * FROM {table}"):
            row = _fitting(table, _row(table, values), asked)
            rows.append({name: value for name, value in row.items() if name not in long})
    return made


def _row(table: str, values: Sequence[Any]) -> Row:
    """A row with its JSON read; ``damaged`` where a text is not what was written."""
    row: Row = dict(zip(COLUMNS[table], values, strict=True)) | {"damaged": False}
    for name, value in row.items():
        if isinstance(value, bytes):
            row[name] = value.decode("utf-8", "replace")
            row["damaged"] |= row[name].encode() != value
    if table == "cells":
        row["damaged"] |= digest(str(row["about"])) != row["key"]
    if table == "attempts":
        row["damaged"] |= row["status"] not in ("ok", "not_applicable", "failed")
    for name in PARTS["json"].get(table, ()):
        try:
            row[name] = json.loads(row[name], parse_constant=_refused) if isinstance(row[name], str) else row[name]
        except (ValueError, RecursionError):
            row["damaged"] = True
    row["damaged"] |= not all(_KINDS[kind](row[name]) for name, kind in PARTS["kinds"][table].items())
    return row


def _refused(constant: str) -> None:
    raise ValueError(constant)  # NaN and infinity are never written


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "texts": lambda value: isinstance(value, list) and all(isinstance(text, str) for text in value),
    "mapping": lambda value: isinstance(value, dict),
    "count": lambda value: isinstance(value, int) and value >= 0,
    "count or none": lambda value: value is None or (isinstance(value, int) and value >= 0),
    "text or none": lambda value: value is None or isinstance(value, str),
    "number": _is_number,
    "number or none": lambda value: value is None or _is_number(value),  # as endpoints count tokens
}


def _fitting(table: str, row: Row, asked: dict[Any, Sequence[str]]) -> Row:
    """Mark an attempt whose value is none of its cell's work; `asked` keeps what each cell asks for."""
    if table == "cells" and isinstance(about := row["about"], dict):
        what, parameters = str(row["what"]), about.get("parameters")
        names = parameters.get("rubric") if isinstance(parameters, dict) else None
        if what.startswith("rubric/") and isinstance(names, list):
            asked[row["key"]] = [str(name) for name in names]
        elif what in METRICS:
            asked[row["key"]] = ()
    if table == "attempts":
        value, scores = row["value"], asked.get(row["key"])
        fits = (row["status"] == "ok") == (value is not None)
        if fits and value is not None and scores is not None:
            parts = [value.get(name) for name in scores] if isinstance(value, dict) and value else [None]
            fits = all(map(_is_number, parts)) or (not scores and _is_number(value))
        row["damaged"] |= not fits
    return row


def _lost(rows: dict[str, list[Row]], last: int = 0) -> dict[str, int]:
    """How many rows other rows speak of that are not there; further ones may be lost without a trace."""
    keys = {row["key"] for row in (*rows["plan"], *rows["attempts"])}
    ids = {row["id"] for row in rows["attempts"]}
    last = max([last, *ids, *(row["attempt"] for row in rows["cells"] if isinstance(row["attempt"], int))])
    planned: dict[str, dict[int, str]] = {row["run"]: {} for row in rows["runs"]}
    for row in rows["plan"]:
        if isinstance(row["position"], int):
            planned.setdefault(row["run"], {})[row["position"]] = row["key"]
    holes = 0
    for run, places in planned.items():
        gone = max(places, default=-1) + 1 - len(places)
        whole = gone or digest(canonical([places[place] for place in sorted(places)]))[:8] == run
        holes += gone or (0 if whole else 1)  # one at least, behind those that are there
    stray = len({row["key"] for row in rows["cells"]} - {row["key"] for row in rows["plan"]})  # no cell is without
    return {
        "runs": len(planned) - len(rows["runs"]) or int(stray > 0 and not planned),
        "cells": len(keys - {row["key"] for row in rows["cells"]}),
        "plan": max(holes, stray),
        "attempts": last - len(ids),
        "claims": 0,
    }


# The bytes of the files. https://www.sqlite.org/fileformat2.html


def _logged(path: Path) -> bool:
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def _image(path: Path) -> tuple[bytes, list[str]]:
    """The pages of a store with all committed frames of its log, and what is wrong with the log.

    Frames behind a damaged one are applied, too: SQLite would pass over all of them without a word.
    """
    main, log = _parts(path)
    wrong: list[str] = []
    if len(log) >= 32:
        magic, _, size, _, *salts, one, two = struct.unpack_from(">8I", log)
        order = "<" if not magic & 1 else ">"
        total = _summed((0, 0), log[:24], order)
        valid = total == (one, two)
        pages: dict[int, bytes] = {}
        pending: dict[int, bytes] = {}
        for n, start in enumerate(range(32, len(log) - size - 23, 24 + size), 1):
            number, commit, *salted, one, two = struct.unpack_from(">6I", log, start)
            if salted != salts or not number:
                break  # of an earlier round
            pending[number] = log[start + 24 : start + 24 + size]
            total = _summed(_summed(total, log[start : start + 8], order), pending[number], order)
            valid = valid and total == (one, two)
            if commit:
                pages |= pending
                pending = {}
                if not valid and not wrong:
                    wrong.append(f"its write-ahead log is damaged at frame {n}")
        made = bytearray(main.ljust(max(pages, default=0) * size, b"\0"))
        for number, page in pages.items():
            made[(number - 1) * size : number * size] = page
        main = bytes(made)
    # Without the mark that a log belongs to it
    return main[:18] + b"\1\1" + main[20:] if len(main) >= 100 else main, wrong


def _cut(start: bytes, length: int) -> int:
    """How many pages the header of a file tells of that are not there."""
    if not start.startswith(_MAGIC) or len(start) < 100 or start[24:28] != start[92:96]:
        return 0
    size = int.from_bytes(start[16:18], "big")
    return max(0, int.from_bytes(start[28:32], "big") - length // (65536 if size == 1 else max(size, 512)))


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


def _summed(start: tuple[int, int], data: bytes, order: str) -> tuple[int, int]:
    one, two = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two


def _salvaged(image: bytes) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """Read every row of every page, whatever leads to it."""
    kept: dict[str, dict[Any, Row]] = {table: {} for table in COLUMNS}
    last = 0
    for table, values in _found(image):
        if table == "sqlite_sequence":
            last = max(last, values[1])
            continue
        row = _row(table, values)
        key = (row["run"], row["position"]) if table == "plan" else row[COLUMNS[table][0]]
        # A page that was freed may hold an older copy.
        if key not in kept[table] or _newer(row) > _newer(kept[table][key]):
            kept[table][key] = row
    asked: dict[Any, Sequence[str]] = {}
    rows = {t: [_fitting(t, row, asked) for row in found.values()] for t, found in kept.items()}
    rows["plan"].sort(key=lambda row: (row["run"], row["position"]))
    rows["attempts"].sort(key=lambda row: row["id"])
    gone = _cut(image, len(image))
    return rows, _lost(rows, last) | ({"pages": gone} if gone else {})


def _newer(row: Row) -> tuple[bool, int]:
    number = row.get("attempt")
    return not row["damaged"], number if isinstance(number, int) else 0


def _found(image: bytes) -> Iterator[tuple[str, list[Any]]]:
    """Have SQLite read each page as if it were a whole table, and each row alone, as one may be broken."""
    size = int.from_bytes(image[16:18], "big") if image.startswith(_MAGIC) else 4096
    size = 65536 if size == 1 else size if size in (512, 1024, 2048, 8192, 16384, 32768) else 4096
    with closing(sqlite3.connect(":memory:")) as file:
        file.execute(f"PRAGMA page_size = {size}")
        file.executescript(PARTS["tables"])
        first = bytearray(file.serialize()[:size])
        first[28:32] = bytes(4)  # so that the pages are counted anew
        pages = first + image[size : len(image) // size * size].ljust(16 * size, b"\0")
        _mend(pages, size)
        file.deserialize(bytes(pages))
        file.text_factory = bytes
        letters = {bytes: "t", int: "i", float: "f", type(None): "n"}
        for start in range(size, len(pages), size):
            for table, shape in PARTS["shapes"].get(str(pages[start]), {}).items():
                file.execute("PRAGMA writable_schema = ON")
                file.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", [start // size + 1, table])
                file.commit()
                file.execute("PRAGMA writable_schema = RESET")
                for nth in range(int.from_bytes(pages[start + 3 : start + 5], "big")):
                    with suppress(sqlite3.Error):
                        for values in file.execute(f"SELECT * FROM {table} LIMIT 1 OFFSET ?", [nth]):
                            if re.fullmatch(shape, "".join(letters[type(value)] for value in values)):
                                yield table, values


def _mend(pages: bytearray, size: int) -> None:
    """Make leaves of inner pages that hold rows, bound counts of rows, and end chains that bite their tails."""
    for start in range(size, len(pages), size):
        if head := {2: 12, 10: 8, 13: 8}.get(pages[start]):
            count = min(int.from_bytes(pages[start + 3 : start + 5], "big"), (size - 8) // 6)
            cells = struct.unpack_from(f">{count}H", pages, start + head)
            pages[start] = max(pages[start], 10)
            struct.pack_into(">H", pages, start + 3, count)
            struct.pack_into(f">{count}H", pages, start + 8, *((cell + head - 8) % size for cell in cells))
    after = np.append(0, np.frombuffer(pages, ">u4").reshape(-1, size // 4)[:, 0])  # by the number of a page
    ends = np.where(after < len(after), after, 0)
    for _ in range(len(ends).bit_length()):
        ends = ends[ends]
    for number in np.flatnonzero(ends).tolist():
        struct.pack_into(">I", pages, (number - 1) * size, 0)
