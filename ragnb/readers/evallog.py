"""Logs of Inspect, which are archives of JSON."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

from ragnb.errors import (
    MissingExtraError,
    RagnbError,
    place,
    require,
)
from ragnb.readers.documents import DAMAGED, Document
from ragnb.readers.raw import (
    LISTED_LINES,
    Lossy,
    Raw,
    from_records,
)

_ZSTD = 93  # among the compression methods of zip archives


def check_unpacked(document: Document, unpacked: int) -> None:
    """Refuse a Parquet file that unpacks to more bytes than a file of its size may."""
    most = document.most_unpacked
    if unpacked > most:
        raise RagnbError(
            f"{place(document.path)}unpacks to {unpacked >> 20:,} MB out of "
            f"{document.path.stat().st_size / 2**20:.1f}, the most is {most >> 20:,}; if you trust it, pass it as "
            "a frame of Polars"
        )


def read_eval(document: Document, report: Lossy, strict: bool) -> Raw:
    """Read the summaries of a log of inspect, a zip archive: the samples without their transcripts.

    A part that is damaged is lost with its samples, and counted; the others are read.
    """
    path = document.path
    damage = list[tuple[str, str]]()
    try:
        with zipfile.ZipFile(path) as packed:
            records = _summaries(packed, damage)
            about = _header(packed)
    except (*DAMAGED, ValueError, TypeError) as error:
        raise RagnbError(
            f"{place(path)}is not a readable log of inspect ({error}); take another copy"
        ) from error
    if damage and (strict or not records):
        first = ": ".join(damage[0])
        raise RagnbError(
            f"{place(path)}is not a readable log of inspect ({first}); take another copy"
        )
    samples = of_inspect(about, records, report)
    for part, why in damage[:LISTED_LINES]:
        report.add("bad_line", None, f"{place(part)}the record is damaged: {why}")
    report.add("bad_line", None, "further bad lines", len(damage[LISTED_LINES:]))
    # Where the log says how many samples it has, `of_inspect` has already counted those of lost parts. Otherwise
    # each lost part counts as one sample, the fewest it can hold.
    missing = max(len(damage) - report.damaged, 0)
    report.lines += missing
    report.damaged += missing
    return Raw(from_records(samples), "eval", str(path))


def _summaries(packed: zipfile.ZipFile, damage: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the samples of a log, those of its journal where the run did not end or the summaries are damaged."""
    names = packed.namelist()
    if "summaries.json" in names:
        records = _rows_of_part(packed, "summaries.json", damage)
        if records:
            return records
    journal = [name for name in names if name.startswith("_journal/summaries/")]
    if not journal:
        return []
    # The journal holds the samples of damaged summaries, too.
    damage.clear()
    journal.sort(key=lambda name: (len(name), name))  # 9.json before 10.json
    return [row for name in journal for row in _rows_of_part(packed, name, damage)]


def _header(packed: zipfile.ZipFile) -> dict[str, Any]:
    """Return what a log says about its run; the header is written at its end."""
    names = packed.namelist()
    for name in ("header.json", "_journal/start.json"):
        if name in names:
            about = json.loads(_member(packed, name))
            if not isinstance(about, dict):
                raise ValueError(f"{name} is a {type(about).__name__}")
            return about
    return {}


def _rows_of_part(
    packed: zipfile.ZipFile, name: str, damage: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return the samples of a member of a log; `damage` gets what is wrong with it, or with some of them."""
    try:
        rows = json.loads(_member(packed, name))
        if not isinstance(rows, list):
            raise ValueError(f"found {type(rows).__name__}, expected a list")
    except MissingExtraError:
        raise
    except Exception as error:  # each unpacker raises its own
        damage.append((name, f"{type(error).__name__}: {str(error)[:200]}"))
        return []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            why = f"found {type(row).__name__}, expected an object"
            damage.append((f"{name}, record {number}", why))
    return [row for row in rows if isinstance(row, dict)]


def of_inspect(
    about: dict[str, Any], records: list[dict[str, Any]], report: Lossy
) -> list[dict[str, Any]]:
    """Return the samples of a log of inspect with their model, and count those that an unfinished run lacks."""
    run = _object_in(about, "eval")
    ids = _object_in(run, "dataset").get("sample_ids") or ()
    epochs = _object_in(run, "config").get("epochs") or 1  # how often each sample is run
    total = _object_in(about, "results").get("total_samples")
    n_expected = len(ids) * epochs or total or 0
    status = about.get("status")
    # A run that did not end and does not say how many samples it has is taken to lack at least one.
    if status not in (None, "success") and not n_expected:
        n_expected = len(records) + 1
    n_lacking = n_expected - len(records)
    report.expect(max(n_expected, len(records)), max(n_lacking, 0))
    report.add("bad_line", None, f"samples that the run (status {status}) lacks", n_lacking)
    model = run.get("model")
    if not model:
        return records
    return [{"system": model, **row} for row in records]


def _object_in(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object under a key; an empty one where there is something else."""
    cell = value.get(key)
    if isinstance(cell, dict):
        return cell
    return {}


def _member(packed: zipfile.ZipFile, name: str) -> bytes:
    """Return an unpacked member; zipfile knows method 93, zstd, from Python 3.14 on only."""
    info = packed.getinfo(name)
    if info.compress_type != _ZSTD:
        return packed.read(name)
    zstandard = require("zstandard", extra="readers")
    stream = packed.fp
    assert stream is not None
    # The header of a member ends with the lengths of its name and of its extra field, which come before the data.
    stream.seek(info.header_offset + 26)
    name_length, extra_length = struct.unpack("<2H", stream.read(4))
    stream.seek(name_length + extra_length, os.SEEK_CUR)
    packed_data = stream.read(info.compress_size)
    data: bytes = zstandard.ZstdDecompressor().decompressobj().decompress(packed_data)
    # `packed.read` checks this itself; the raw bytes were read past it.
    if zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile(f"{name} has a wrong checksum")
    return data
