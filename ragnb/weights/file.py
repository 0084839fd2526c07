"""Files of moments: Parquet with a seal, so that what is damaged is told before it is decoded."""

from __future__ import annotations

import hashlib
import io
import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragnb.errors import RagnbError
from ragnb.files import write_whole
from ragnb.schema import METRICS, Metric
from ragnb.weights.cells import Cells

if TYPE_CHECKING:
    from ragnb.weights.moments import Moments

_VERSION = 4
# Of a metric: these may change from one ragnb to the next, its numbers stay.
_DESCRIPTION = ("family", "needs", "aliases", "variant")
_NAMES = ("by", "doc", "cluster", "questions", "corpus", "groups", "docs", "clusters")


def write_moments(found: Moments, path: Path) -> Path:
    """Write moments to a file, whole or not at all, and return its path."""
    import polars as pl

    arrays = {part.name: getattr(found.cells, part.name) for part in fields(Cells)}
    arrays |= {"counts": found.counts, "at_ends": found.at_ends, "rows": found.rows}
    about = {
        "ragnb": "moments",
        "sha256": "0" * 64,
        "version": _VERSION,
        "metrics": [asdict(metric) for metric in found.metrics],
        **{name: getattr(found, name) for name in _NAMES},
        "shapes": {name: array.shape for name, array in arrays.items()},
    }
    columns = [pl.Series("about", [json.dumps(about)])]
    columns += [pl.Series(name, array.ravel()) for name, array in arrays.items()]
    height = max(map(len, columns))
    frame = pl.DataFrame([column.extend_constant(None, height - len(column)) for column in columns])
    buffer = io.BytesIO()
    # Compressed, or with statistics of its text, the seal could not be found.
    frame.write_parquet(buffer, compression="uncompressed", statistics=False)
    content = bytearray(buffer.getvalue())
    place, digest = _seal(content)
    content[place] = digest
    return write_whole(path, content)


def read_moments(path: Path) -> dict[str, Any]:
    """Return the fields of the moments in a file.

    Raises
    ------
    RagnbError
        For a file that is not there, holds something else, is damaged, or is of another version.
    """
    import polars as pl

    try:
        content = path.read_bytes()
    except OSError as error:
        raise RagnbError(
            f"{path}: {error.strerror or error}; write it with Moments.to_parquet"
        ) from None
    place, digest = _seal(content)
    # Before Parquet is decoded, which damage can make crash.
    if content[place] != digest:
        raise RagnbError(
            f"{path}: the file is damaged or has no moments; write it with Moments.to_parquet"
        )
    frame = pl.read_parquet(io.BytesIO(content))
    about = json.loads(frame["about"][0])
    if about["version"] != _VERSION:
        raise RagnbError(
            f"{path}: moments of version {about['version']!r}; this ragnb reads version {_VERSION}; "
            "write it again"
        )
    today = {
        name: {key: getattr(known, key) for key in _DESCRIPTION} for name, known in METRICS.items()
    }
    metrics = tuple(Metric(**metric | today.get(metric["name"], {})) for metric in about["metrics"])
    arrays = {
        n: frame[n].drop_nulls().to_numpy().reshape(shape) for n, shape in about["shapes"].items()
    }
    names: dict[str, Any] = {name: about[name] for name in _NAMES if name in about}
    names |= {name: tuple(value) for name, value in names.items() if isinstance(value, list)}
    counts: dict[str, Any] = {n: arrays.pop(n) for n in ("counts", "at_ends", "rows")}
    return {"metrics": metrics, "cells": Cells(**arrays), **names, **counts}


def _seal(content: bytes | bytearray) -> tuple[slice, bytes]:
    """Where the digest of a file stands, and what it must be: that of everything but itself.

    Names cannot pretend to be it, as JSON escapes their quotes.
    """
    match = re.search(rb'"ragnb": "moments", "sha256": "([0-9a-f]{64})"', content)
    place = slice(*match.span(1)) if match else slice(0, 0)
    return place, hashlib.sha256(
        content[: place.start] + content[place.stop :]
    ).hexdigest().encode()
