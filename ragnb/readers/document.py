"""A file on disk before anyone reads a format out of it: found, unpacked, decoded, identified."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from ragnb.errors import RagnbError, did_you_mean, place

LARGEST_UNPACKED = 1 << 30
_CHUNK = 1 << 20
_UTF8 = {"utf8", "utf8sig", "u8", "utf"}


@dataclass(frozen=True)
class Document:
    """A readable file.

    Parameters
    ----------
    path : Path
    encoding : str or None
        None is strict UTF-8, with or without a byte order mark.

    Examples
    --------
    >>> Document(Path("a/scores.CSV.gz")).suffix
    '.csv'
    """

    path: Path
    encoding: str | None = None

    @property
    def suffix(self) -> str:
        """The extension that names the format, lower case, without ``.gz``."""
        name = self.path.name.lower()
        return Path(name.removesuffix(".gz")).suffix

    @cached_property
    def sha256(self) -> str:
        """The hash of the bytes on disk."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def is_utf8(self) -> bool:
        """Whether the bytes are to be read as UTF-8."""
        return self.encoding is None or self.encoding.lower().replace("-", "").replace("_", "") in _UTF8

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the unpacked bytes; damage of the packing is told as such."""
        with self.path.open("rb") as probe:
            packed = probe.read(2) == b"\x1f\x8b"
        try:
            with gzip.open(self.path) if packed else self.path.open("rb") as stream:
                yield stream  # type: ignore[misc]
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise RagnbError(f"{place(self.path)}the gzip file is damaged ({error}); pack it again") from error

    def data(self) -> bytes:
        """Return all unpacked bytes; a packed bomb is refused."""
        parts, size = [], 0
        with self.open() as stream:
            while part := stream.read(_CHUNK):
                size += len(part)
                if size > LARGEST_UNPACKED and isinstance(stream, gzip.GzipFile):
                    raise RagnbError(
                        f"{place(self.path)}unpacks to more than {LARGEST_UNPACKED >> 20} MB; unpack it yourself"
                    )
                parts.append(part)
        return b"".join(parts)

    def text(self) -> str:
        """Return the decoded text without a byte order mark; bytes of another encoding are refused."""
        data = self.data()
        try:
            return data.decode("utf-8-sig" if self.is_utf8 else str(self.encoding))
        except LookupError as error:
            raise RagnbError(f"encoding={self.encoding!r} is not known; try 'utf-8' or 'gb18030'") from error
        except UnicodeError as error:
            raise self.not_text(data, error) from error

    def not_text(self, data: bytes, error: UnicodeError) -> RagnbError:
        """Return the error for bytes that are not text in the encoding, with the likely one."""
        at = getattr(error, "start", 0)
        line = data.count(b"\n", 0, at) + 1
        return RagnbError(
            f"{place(self.path, line)}byte {at} is not {self.encoding or 'UTF-8'} text; {likely_encoding(data)}"
        )


def likely_encoding(data: bytes) -> str:
    """Word which encoding the bytes may be in, as a next step.

    Examples
    --------
    >>> likely_encoding("忠实度".encode("gbk"))
    "it may be GBK: pass encoding='gb18030'"
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "it looks like UTF-16: pass encoding='utf-16'"
    try:
        data.decode("gb18030")
    except UnicodeError:
        return "save it as UTF-8, or pass the encoding it was written in as encoding="
    return "it may be GBK: pass encoding='gb18030'"


def find_document(source: str | os.PathLike[str], encoding: str | None) -> Document:
    """Return the document at a path.

    Raises
    ------
    RagnbError
        If there is no such file (with the near names of its folder), it is a folder, or it is empty.
    """
    path = Path(source)
    if path.is_dir():
        raise RagnbError(f"{place(path)}is a folder; name a file in it")
    if not path.is_file():
        if not path.parent.is_dir():
            raise RagnbError(f"{place(path)}there is no such file, nor its folder")
        names = [entry.name for entry in sorted(path.parent.iterdir()) if entry.is_file()]
        raise RagnbError(f"{place(path)}there is no such file; {did_you_mean(path.name, names)}")
    if not path.stat().st_size:
        raise RagnbError(f"{place(path)}the file is empty")
    return Document(path, encoding)
