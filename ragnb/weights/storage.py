"""Moments ↔ one Parquet file: an ``about`` cell in JSON, and every array as a column of numbers."""

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
from ragnb.schema import Metric
from ragnb.weights.cells import Cells, centres

if TYPE_CHECKING:
    from ragnb.weights.reduction import Moments

VERSION = 2  # 1 had neither questions nor centres
_COLUMNS, _NAMES = ("by", "doc", "cluster", "questions"), ("groups", "docs", "clusters")


def to_parquet(self: Moments, path: str | Path) -> Path:
    """Write the moments to a file, whole or not at all, and return its path.

    Parameters
    ----------
    path : str or Path
        A file of this name is replaced; folders that are not there are made.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from ragnb.weights import Moments, moments
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = moments(pd.DataFrame({"faithfulness": [1.0, 0.5]})).to_parquet(f"{folder}/m.parquet")
    ...     Moments.from_parquet(path)
    Moments(2 rows in 1 cells: 1 metrics, 0 documents, 1 groups)
    """
    import polars as pl

    path = Path(path)
    arrays = {field.name: getattr(self.cells, field.name) for field in fields(Cells)}
    arrays |= {"counts": self.counts, "rows": self.rows}
    about: dict[str, Any] = {"ragnb": "moments", "sha256": "0" * 64, "version": VERSION}
    about["metrics"] = [asdict(metric) for metric in self.metrics]
    about |= {name: getattr(self, name) for name in (*_COLUMNS, *_NAMES)}
    about["shapes"] = {name: array.shape for name, array in arrays.items()}
    columns = [pl.Series("about", [json.dumps(about)])]
    columns += [pl.Series(name, array.ravel()) for name, array in arrays.items()]
    height = max(map(len, columns))
    frame = pl.DataFrame([column.extend_constant(None, height - len(column)) for column in columns])
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="uncompressed", statistics=False)  # else the seal cannot be found
    content = bytearray(buffer.getvalue())
    seal = _seal(content)
    content[seal] = _digest(content, seal)
    return write_whole(path, content)


def from_parquet(cls: type[Moments], path: str | Path) -> Moments:
    """Return the moments that `to_parquet` wrote, with the same bits.

    Raises
    ------
    RagnbError
        For a file that is not there, holds something else, is damaged, or is of another version.

    Examples
    --------
    >>> from ragnb.weights import Moments
    >>> Moments.from_parquet("nowhere.parquet")
    Traceback (most recent call last):
    ragnb.errors.RagnbError: nowhere.parquet: No such file or directory; write it with Moments.to_parquet
    """
    import polars as pl

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise RagnbError(f"{path}: {error.strerror or error}; write it with Moments.to_parquet") from None
    seal = _seal(content)
    if content[seal] != _digest(content, seal):  # before Parquet is decoded, which damage can make crash
        raise RagnbError(f"{path}: the file is damaged or holds no moments; write it with Moments.to_parquet")
    frame = pl.read_parquet(io.BytesIO(content))
    about = json.loads(frame["about"][0])
    version = about["version"]
    if version not in (1, VERSION):
        raise RagnbError(
            f"{path}: moments of version {version!r}; this ragnb reads version {VERSION} and before; write it anew"
        )
    arrays = {n: frame[n].drop_nulls().to_numpy().reshape(shape) for n, shape in about["shapes"].items()}
    names: dict[str, Any] = {name: about.get(name) for name in _COLUMNS}
    names |= {name: tuple(about[name]) for name in _NAMES}
    metrics = tuple(Metric(**metric) for metric in about["metrics"])
    arrays.setdefault("centre", centres(metrics))
    cells = Cells(**{field.name: arrays[field.name] for field in fields(Cells)})
    return cls(metrics, cells, **names, counts=arrays["counts"], rows=arrays["rows"])


def _seal(content: bytes | bytearray) -> slice:
    """Where the digest of the file stands in it; names cannot pretend to be it, as JSON escapes their quotes."""
    found = re.search(rb'"ragnb": "moments", "sha256": "([0-9a-f]{64})"', content)
    return slice(*found.span(1)) if found else slice(0, 0)


def _digest(content: bytes | bytearray, seal: slice) -> bytes:
    """The digest of everything but itself."""
    view = memoryview(content)
    digest = hashlib.sha256(view[: seal.start])
    digest.update(view[seal.stop :])
    return digest.hexdigest().encode()
